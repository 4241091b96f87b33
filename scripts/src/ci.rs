//! `cargo x ci`: every check, in order, one local command. CI runs exactly this.
//!
//! Each step prints its name before and its time after; the last lines are all times and the test
//! totals. The first step that fails ends the run and says how to run it alone. Steps share one
//! build profile and feature set where Cargo lets them, so that nothing is compiled a third time.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::test::Totals;
use crate::{demo_trace, deploy, deps, docs, packaging, process, targets, test, tidy};

/// What a step may tell beside having passed.
#[derive(Debug, PartialEq, Eq)]
enum Passed {
    /// Nothing to add.
    Plain,
    /// Test totals, repeated in the closing line.
    Counted(Totals),
    /// The step could not run here and says why; that is not a failure.
    DidNotRun(&'static str),
    /// A part of the step could not run here, the rest passed.
    Partly(&'static str),
}

type Action = fn(&Path) -> Result<Passed, String>;

/// The steps in order: name and action.
const STEPS: &[(&str, Action)] = &[
    ("fmt", fmt),
    ("clippy", clippy),
    ("test", run_tests),
    ("doc", doc),
    ("bench", bench),
    ("tidy", |root| tidy::run(root, &[]).map(|()| Passed::Plain)),
    ("deps", |root| deps::run(root, &[]).map(|()| Passed::Plain)),
    ("docs", |root| docs::run(root, &["--check".to_owned()]).map(|()| Passed::Plain)),
    ("assets", |root| demo_trace::run(root, &["--check".to_owned()]).map(|()| Passed::Plain)),
    ("packaging", |root| packaging::run(root, &[]).map(|()| Passed::Plain)),
    ("deploy", |root| deploy::run(root, &[]).map(|()| Passed::Plain)),
    ("targets", other_systems),
    ("deny", deny),
];

/// Entry point: all steps, or those that `--only NAME` and `--skip NAME` leave.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    let chosen = choose(arguments)?;
    let started = now();
    let mut lines = Vec::new();
    let mut totals = None;
    for (name, action) in STEPS.iter().filter(|(name, _)| chosen.contains(name)) {
        println!("==> {name}");
        let step_started = now();
        let passed = action(root).map_err(|words| {
            format!("stopped at `{name}`: {words}\n(that step alone: cargo x ci --only {name})")
        })?;
        let mut line = format!("{name:<8} {}", seconds(step_started.elapsed()));
        match passed {
            Passed::Plain => {}
            Passed::Counted(counted) => totals = Some(counted),
            Passed::DidNotRun(why) => line = format!("{name:<8}     did not run: {why}"),
            Passed::Partly(what) => line = format!("{line}, {what}"),
        }
        println!("    {line}");
        lines.push(line);
    }
    println!("==> ci passed\n    {}", lines.join("\n    "));
    println!("    {:<8} {} for {} steps", "total", seconds(started.elapsed()), lines.len());
    if let Some(totals) = totals {
        println!("{totals}");
    }
    Ok(())
}

/// The names of the steps that the arguments ask for, in the order they will run.
fn choose(arguments: &[String]) -> Result<Vec<&'static str>, String> {
    let mut only = Vec::new();
    let mut skip = Vec::new();
    let mut rest = arguments.iter();
    while let Some(flag) = rest.next() {
        let list = match flag.as_str() {
            "--only" => &mut only,
            "--skip" => &mut skip,
            other => return Err(format!("takes --only STEP and --skip STEP, not `{other}`")),
        };
        let name = rest.next().map_or("", String::as_str);
        let Some((known, _)) = STEPS.iter().find(|(known, _)| *known == name) else {
            let known: Vec<_> = STEPS.iter().map(|(known, _)| *known).collect();
            return Err(format!("no step is named `{name}`; steps: {}", known.join(", ")));
        };
        list.push(*known);
    }
    let wanted = |name: &&str| (only.is_empty() || only.contains(name)) && !skip.contains(name);
    Ok(STEPS.iter().map(|(name, _)| *name).filter(wanted).collect())
}

fn fmt(root: &Path) -> Result<Passed, String> {
    process::run(process::cargo(root).args(["fmt", "--all", "--check"]))
        .map_err(|words| format!("{words}; `cargo fmt` puts it right"))?;
    Ok(Passed::Plain)
}

fn clippy(root: &Path) -> Result<Passed, String> {
    let arguments = ["clippy", "--workspace", "--all-targets", "--locked", "--quiet"];
    process::run(process::cargo(root).args(arguments).args(["--", "-D", "warnings"]))?;
    Ok(Passed::Plain)
}

fn run_tests(root: &Path) -> Result<Passed, String> {
    let (totals, ended_well) = test::workspace(root)?;
    test::verdict(&totals, ended_well)?;
    Ok(Passed::Counted(totals))
}

fn doc(root: &Path) -> Result<Passed, String> {
    let arguments = ["doc", "--workspace", "--no-deps", "--locked", "--quiet"];
    process::run(process::cargo(root).args(arguments).env("RUSTDOCFLAGS", "-D warnings"))?;
    Ok(Passed::Plain)
}

/// The benches at their small size, in the profile and with the features that `test` built:
/// `cargo bench` would compile every dependency again, optimised, to show only that they still run.
fn bench(root: &Path) -> Result<Passed, String> {
    let arguments = ["test", "--workspace", "--locked", "--quiet"];
    let benches =
        ["micro", "replay", "startup", "opening", "frames"].map(|bench| ["--bench", bench]);
    process::run(process::cargo(root).args(arguments).args(benches.iter().flatten()))?;
    Ok(Passed::Plain)
}

fn other_systems(root: &Path) -> Result<Passed, String> {
    match targets::check(root)? {
        0 => Ok(Passed::DidNotRun("the toolchain has no other system (see cargo x targets)")),
        _ => Ok(Passed::Plain),
    }
}

/// Licences, duplicates and sources from what is here; advisories only where their database can be
/// fetched, which is said.
fn deny(root: &Path) -> Result<Passed, String> {
    if !process::exists(Command::new("cargo-deny").arg("--version")) {
        return Ok(Passed::DidNotRun("cargo-deny is not installed (cargo x setup installs it)"));
    }
    let here = ["deny", "--offline", "check", "bans", "licenses", "sources"];
    process::run(process::cargo(root).args(here))?;
    if !process::exists(process::cargo(root).args(["deny", "fetch", "db"])) {
        return Ok(Passed::Partly("without advisories: their database cannot be fetched here"));
    }
    process::run(process::cargo(root).args(["deny", "check", "--disable-fetch", "advisories"]))?;
    Ok(Passed::Plain)
}

#[expect(clippy::disallowed_methods, reason = "tells the developer how long a step took")]
fn now() -> Instant {
    Instant::now()
}

fn seconds(time: Duration) -> String {
    format!("{:>7.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(arguments: &[&str]) -> Result<Vec<&'static str>, String> {
        choose(&arguments.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn steps_can_be_chosen_and_left_out() {
        assert_eq!(chosen(&[]).expect("all").len(), STEPS.len());
        assert_eq!(chosen(&["--only", "tidy", "--only", "fmt"]), Ok(vec!["fmt", "tidy"]));
        assert!(!chosen(&["--skip", "test"]).expect("known").contains(&"test"));
    }

    #[test]
    fn an_unknown_step_or_flag_is_refused() {
        assert!(chosen(&["--only", "nothing"]).expect_err("no such step").contains("clippy"));
        assert!(chosen(&["--only"]).is_err());
        assert!(chosen(&["--fast"]).is_err());
    }
}
