//! `onbeat doctor`: what this machine does to precision and what would help, for a person in one
//! line each or for a program as JSON.
//!
//! It always answers with exit code 0 when it could run: a machine that is not perfect is the
//! usual case, and whether a run was good is the run's own verdict.

use std::io::Write;

use clap::ValueEnum;

use crate::cli::flags::run::{CoresFlag, cores};
use crate::cli::summary::page::Page;
use crate::cli::write_out;
use crate::doctor::{self, Finding, Level, Report};
use crate::error::EngineError;
use crate::replayer::affinity;
use crate::run::CoreChoice;

/// Columns of the level and of the check's name.
const LEVEL_WIDTH: usize = 9;
const NAME_WIDTH: usize = 17;

/// The arguments of `onbeat doctor`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Cores that would send, as in a replay: `auto`, a number of them, or a list of CPUs.
    #[arg(long, default_value = "auto", value_name = "N|LIST", value_parser = cores)]
    cores: CoresFlag,

    /// How the answer is written.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Output,
}

/// `--format` as typed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For a person.
    #[default]
    Text,
    /// For a program: every number has its unit in its name, and null is unknown.
    Json,
}

/// Examines the machine, which takes about a second and a half, and prints what was found.
///
/// # Errors
/// When the system does not say which CPUs may be used, or the output cannot be written.
pub fn run(args: &Args, out: &mut dyn Write) -> Result<u8, EngineError> {
    let allowed = affinity::allowed_cpus().map_err(|source| EngineError::Io {
        action: "ask which CPUs may be used",
        path: None,
        source,
    })?;
    let report = doctor::examine(&chosen(&args.cores, &allowed)?);
    let text = match args.format {
        Output::Text => text(&report),
        Output::Json => {
            serde_json::to_string_pretty(&report.json()).expect("plain data serialises") + "\n"
        }
    };
    write_out(out, text.as_bytes())
}

/// The CPUs a replay would choose; one where it would decide by the plan. A list is taken as it is:
/// an isolated CPU is not among those allowed until it is asked for.
fn chosen(cores: &CoresFlag, allowed: &[u16]) -> Result<Vec<u16>, EngineError> {
    let count = match cores {
        CoresFlag::List(cpus) => return Ok(cpus.clone()),
        CoresFlag::Auto => 1,
        CoresFlag::Count(count) => usize::from(*count),
    };
    let Some(first) = allowed.len().checked_sub(count) else {
        return Err(CoreChoice::refused(count, allowed.len()));
    };
    Ok(allowed[first..].to_vec())
}

fn text(report: &Report) -> String {
    let mut page = Page::default();
    for finding in &report.findings {
        let first = format!(
            "{:<LEVEL_WIDTH$}{:<NAME_WIDTH$}",
            level(finding.level),
            finding.check.replace('_', " ")
        );
        page.wrapped(&first, &finding.found);
        advice(&mut page, finding);
    }
    page.blank();
    page.paragraph(&closing(&report.findings));
    page.text
}

fn advice(page: &mut Page, finding: &Finding) {
    let margin = " ".repeat(LEVEL_WIDTH);
    if let Some(command) = &finding.command {
        page.command(&format!("{margin}$ "), command);
    }
    if let Some(help) = &finding.help {
        page.wrapped(&format!("{margin}> "), help);
    }
}

fn closing(findings: &[Finding]) -> String {
    let count = |level| findings.iter().filter(|finding| finding.level == level).count();
    let (problems, better) = (count(Level::Problem), count(Level::Better));
    let unknown = count(Level::Unknown);
    format!(
        "{problems} to solve, {better} that could be better, {unknown} unknown, {} ok. Nothing was changed.",
        count(Level::Ok)
    )
}

const fn level(level: Level) -> &'static str {
    match level {
        Level::Ok => "ok",
        Level::Better => "better",
        Level::Problem => "problem",
        Level::Unknown => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Only {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn cores_are_chosen_from_the_highest_down() {
        assert_eq!(chosen(&CoresFlag::Auto, &[0, 2, 5]).expect("one"), [5]);
        assert_eq!(chosen(&CoresFlag::Count(2), &[0, 2, 5]).expect("two"), [2, 5]);
        assert_eq!(chosen(&CoresFlag::List(vec![7]), &[0]).expect("as typed"), [7]);
        assert!(chosen(&CoresFlag::Count(4), &[0, 2, 5]).is_err());
    }

    #[test]
    fn a_person_reads_aligned_lines() {
        let long = "echo performance | sudo tee \
             /sys/devices/system/cpu/cpu{1,2,3,4,5,6,7,8,9}/cpufreq/scaling_governor";
        let findings = vec![
            Finding::new("cpus", Level::Ok, "CPU 1 would pace"),
            Finding::new("governor", Level::Better, "powersave").command(long),
            Finding::new("virtual_machine", Level::Problem, "yes\u{1b}[31m").help("another"),
            Finding::unknown("swap", "not said"),
        ];
        let mut page = Page::default();
        for finding in &findings {
            advice(&mut page, finding);
        }
        assert!(page.text.lines().all(|line| line.len() <= 100), "{}", page.text);
        let joined = page.text.lines().take(2).collect::<String>();
        let words: Vec<&str> = joined.split_whitespace().filter(|word| *word != "\\").collect();
        assert_eq!(words[1..].join(" "), long.split_whitespace().collect::<Vec<_>>().join(" "));
        assert_eq!(
            closing(&findings),
            "1 to solve, 1 that could be better, 1 unknown, 1 ok. Nothing was changed."
        );
    }

    #[test]
    fn this_machine_is_examined_in_both_forms() {
        let printed = |options: &[&str]| {
            let words = std::iter::once(&"onbeat").chain(options);
            let only = Only::try_parse_from(words).expect("parses");
            let mut out = Vec::new();
            assert_eq!(run(&only.args, &mut out).expect("runs"), 0);
            String::from_utf8(out).expect("UTF-8")
        };
        let text = printed(&[]);
        assert!(text.lines().all(|line| line.len() <= 100 && line.is_ascii()), "{text}");
        assert!(text.lines().any(|line| line.contains("floor")), "{text}");
        let json: serde_json::Value =
            serde_json::from_str(&printed(&["--format", "json"])).expect("JSON");
        assert_eq!(json["schema_version"], 1);
        assert_eq!(json["measured"], true);
        assert!(json["findings"].as_array().is_some_and(|findings| findings.len() > 15));
    }
}
