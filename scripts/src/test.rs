//! `cargo x test`: sets up what the tests need, runs all of them, closes with the totals.
//!
//! This is the one test command the README names. It promises that its last line is
//! `N passed, N failed` over every test program of the workspace, that lines before it repeat what
//! was skipped for want of something, and that its exit code agrees. It does not check style or
//! lints (see `ci`).

use std::path::Path;

use crate::{process, setup};

/// How a test program begins a line about what it skips.
const SKIPPED: &str = "skipped: ";

/// Tests counted over all test programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    /// What was skipped and why, in the programs' own lines.
    pub(crate) skipped: Vec<String>,
}

impl Totals {
    /// Adds what one line of a test program's output says; most lines say nothing.
    pub(crate) fn count(&mut self, line: &str) {
        let line = line.trim();
        if line.starts_with(SKIPPED) {
            self.skipped.push(line.to_owned());
        }
        let Some(rest) = line.strip_prefix("test result: ") else { return };
        self.passed += number_before(rest, " passed");
        self.failed += number_before(rest, " failed");
    }
}

impl std::fmt::Display for Totals {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for skipped in &self.skipped {
            writeln!(out, "{skipped}")?;
        }
        write!(out, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// Entry point. `--no-setup` leaves the machine as it is.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    match arguments {
        [] => setup::ensure()?,
        [one] if one == "--no-setup" => {}
        _ => return Err("takes only --no-setup; one test: cargo test -p PACKAGE NAME".to_owned()),
    }
    let (totals, ended_well) = workspace(root)?;
    println!("{totals}");
    verdict(&totals, ended_well)
}

/// Runs every test of the workspace and counts; the flag says whether Cargo ended well.
pub(crate) fn workspace(root: &Path) -> Result<(Totals, bool), String> {
    let mut totals = Totals::default();
    let ended_well = process::watch(
        process::cargo(root).args(["test", "--workspace", "--locked", "--no-fail-fast"]),
        |line| totals.count(line),
    )?;
    Ok((totals, ended_well))
}

/// Whether those totals mean that the tests passed.
pub(crate) fn verdict(totals: &Totals, ended_well: bool) -> Result<(), String> {
    match (totals.passed, totals.failed, ended_well) {
        (1.., 0, true) => Ok(()),
        (0, 0, true) => Err("no test ran".to_owned()),
        (_, 0, false) => {
            Err("a test program did not build or was killed; the first error is above".to_owned())
        }
        (_, failed, _) => Err(format!("{failed} tests failed; they are named above")),
    }
}

/// The number that stands right before `word`, 0 when there is none.
fn number_before(text: &str, word: &str) -> u64 {
    let before = text.split(word).next().unwrap_or_default();
    let digits = before.rsplit(|letter: char| !letter.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_add_up_over_programs() {
        let mut totals = Totals::default();
        totals.count("running 3 tests");
        totals.count("test a ... ok");
        totals.count("test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out");
        totals.count("test result: FAILED. 10 passed; 2 failed; 0 ignored; 0 measured");
        assert_eq!(totals, Totals { passed: 13, failed: 2, skipped: Vec::new() });
        assert_eq!(totals.to_string(), "13 passed, 2 failed");
    }

    #[test]
    fn what_was_skipped_is_said_before_the_totals() {
        let mut totals = Totals::default();
        totals.count("test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured");
        totals.count("skipped: conformance: no folder");
        assert_eq!(totals.to_string(), "skipped: conformance: no folder\n3 passed, 0 failed");
    }

    #[test]
    fn only_tests_that_ran_and_passed_are_a_pass() {
        let totals = |passed, failed| Totals { passed, failed, skipped: Vec::new() };
        assert_eq!(verdict(&totals(5, 0), true), Ok(()));
        assert!(verdict(&totals(0, 0), true).is_err(), "nothing ran");
        assert!(verdict(&totals(5, 0), false).is_err(), "something did not build");
        assert!(verdict(&totals(5, 1), false).is_err(), "one failed");
    }
}
