//! What this machine does to precision, and what would help: one finding for each thing that
//! matters, with the exact command.
//!
//! Facts are read from `/proc` and `/sys` by [`machine`], through a folder that tests replace; they
//! are taken apart by the pure functions of [`parse`] and judged by the pure functions of
//! [`checks`]; what a planned run needs is held against what there is by [`needs`]. What no file
//! says is measured by [`measure`]. A missing file makes a finding "unknown", never an error.
//! Nothing here changes the machine: the commands are for its owner.

pub mod checks;
pub mod machine;
pub mod measure;
pub mod needs;
pub mod parse;

use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::replayer::driver::DriverKind;

use self::machine::{Counts, Facts};

/// Changes when a key of the JSON form changes its meaning or goes away.
const SCHEMA_VERSION: u32 = 1;

/// How much a finding matters for precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As it should be.
    Ok,
    /// Runs are good; the help would make them better.
    Better,
    /// Expect it in the numbers.
    Problem,
    /// The system does not say.
    Unknown,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Its name, the same in every version.
    pub check: &'static str,
    /// How much it matters.
    pub level: Level,
    /// What was found, for a person.
    pub found: String,
    /// The command that would help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What else would help, or what would where no command can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// What was found, for a program; every number has its unit in its name.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub facts: Map<String, Value>,
}

impl Finding {
    /// A finding without help and facts.
    #[must_use]
    pub fn new(check: &'static str, level: Level, found: impl Into<String>) -> Self {
        Self { check, level, found: found.into(), command: None, help: None, facts: Map::new() }
    }

    /// The system does not say.
    #[must_use]
    pub fn unknown(check: &'static str, why: impl Into<String>) -> Self {
        Self::new(check, Level::Unknown, why)
    }

    /// With the command that would help.
    #[must_use]
    pub fn command(mut self, command: impl Into<String>) -> Self {
        self.command = Some(command.into());
        self
    }

    /// With words on what would help.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// With a fact for programs.
    #[must_use]
    pub fn fact(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(name.to_owned(), value.into());
        self
    }
}

/// Everything that was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    schema_version: u32,
    /// The CPUs that pace, or would.
    pub cpus: Vec<u16>,
    /// Whether the second of measurements was part of it.
    pub measured: bool,
    /// In the order they are best read.
    pub findings: Vec<Finding>,
}

impl Report {
    /// With findings that are about one run.
    #[must_use]
    pub fn and(mut self, findings: Vec<Finding>) -> Self {
        self.findings.extend(findings);
        self
    }

    /// The JSON form.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::to_value(self).expect("plain data serialises")
    }
}

/// What can be told in about a millisecond, for the manifest of a run on `cpus`.
#[must_use]
pub fn glance(cpus: &[u16]) -> Report {
    let facts = Facts::read(Path::new("/"), cpus);
    let mut findings = checks::of_facts(&facts, cpus, None);
    let (driver, refusal) = DriverKind::probe(1);
    findings.push(checks::system::io_uring(driver, refusal.as_deref(), &facts));
    Report { schema_version: SCHEMA_VERSION, cpus: cpus.to_vec(), measured: false, findings }
}

/// Everything, with a second and a half of measurements on the last of `cpus`. Without a CPU that
/// may be used nothing is measured.
#[must_use]
pub fn examine(cpus: &[u16]) -> Report {
    let root = Path::new("/");
    let facts = Facts::read(root, cpus);
    let (driver, refusal) = DriverKind::probe(1);
    let measured = match cpus.last() {
        Some(&cpu) => measure::on_cpu(cpu, driver),
        None => Err("no CPU may be used".to_owned()),
    };
    let after = measured.is_ok().then(|| Counts::read(root));
    let mut findings = checks::of_facts(&facts, cpus, after.as_ref());
    findings.push(checks::system::io_uring(driver, refusal.as_deref(), &facts));
    findings.extend(checks::measured::all(measured.as_ref().map_err(String::as_str)));
    Report {
        schema_version: SCHEMA_VERSION,
        cpus: cpus.to_vec(),
        measured: measured.is_ok(),
        findings,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replayer::affinity::allowed_cpus;

    #[test]
    fn this_machine_can_be_glanced_at() {
        let cpus = allowed_cpus().expect("the system says");
        let report = glance(&cpus[cpus.len() - 1..]);
        assert!(!report.measured && report.findings.len() > 10);
        assert!(report.findings.iter().any(|finding| finding.check == "io_uring"));
        assert_eq!(report.json()["schema_version"], 1);
    }
}
