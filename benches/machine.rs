//! What a line of results must say about the machine it was measured on, and nothing that names it.
//!
//! No host name, user or path: results are kept in the repository. What the system does not say is
//! `null`. Describing never fails.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use onbeat::clock::unix_ns;
use serde_json::{Value, json};

/// The machine and the program as one line of JSON: the first of every file of results.
#[must_use]
pub fn describe(engine: Option<&Path>) -> Value {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| cpu_field(&cpuinfo, name);
    let flags = field("flags").unwrap_or_default();
    let virtual_machine = (!flags.is_empty()).then(|| flags.split(' ').any(|f| f == "hypervisor"));
    let governor = fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
    json!({
        "bench": "machine",
        "date": date(),
        "cpu": field("model name"),
        "cpus": std::thread::available_parallelism().map(usize::from).ok(),
        "kernel": kernel,
        "virtual": virtual_machine,
        "governor": governor.ok().map(|text| text.trim().to_owned()),
        "onbeat": engine.and_then(version),
        "revision": revision(),
    })
}

/// Today, in UTC.
fn date() -> Option<String> {
    let now = jiff::Timestamp::from_nanosecond(i128::from(unix_ns())).ok()?;
    Some(now.strftime("%Y-%m-%d").to_string())
}

/// The value of a field of `/proc/cpuinfo`, of the first CPU.
fn cpu_field(cpuinfo: &str, name: &str) -> Option<String> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

fn version(engine: &Path) -> Option<String> {
    said(Command::new(engine).arg("--version"))
}

/// The revision of the checkout that this was built from, `+` behind it when files were changed.
fn revision() -> Option<String> {
    let git = |words: &[&str]| {
        said(Command::new("git").args(["-C", env!("CARGO_MANIFEST_DIR")]).args(words))
    };
    let revision = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changes = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changes.is_empty() { revision } else { revision + "+" })
}

/// What a command wrote, when it ended well.
fn said(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_described_without_its_name() {
        let line = describe(None);
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        for value in line.as_object().expect("an object").values() {
            assert_ne!(value.as_str(), Some(host.as_str()));
        }
        assert!(line["cpus"].as_u64() > Some(0), "{line}");
        assert!(line["onbeat"].is_null());
    }

    #[test]
    fn fields_are_those_of_the_first_cpu() {
        let text = "processor\t: 0\nmodel name\t: A CPU\nprocessor\t: 1\nmodel name\t: Other\n";
        assert_eq!(cpu_field(text, "model name").as_deref(), Some("A CPU"));
        assert_eq!(cpu_field(text, "flags"), None);
    }
}
