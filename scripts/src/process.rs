//! Starts other programs for the verbs and tells how they ended.
//!
//! Output goes straight to the user's terminal unless a verb needs to read it. A program that could
//! not be started and one that failed are told apart in words. No shell is involved anywhere.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Cargo as the user started us, so that `cargo +toolchain x ci` means that toolchain throughout.
pub(crate) fn cargo(root: &Path) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root);
    command
}

/// Runs to the end with the user's own output streams.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let name = name_of(command);
    let status = command
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("could not start {name}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name} ended with {status}")) }
}

/// Runs to the end and returns what it wrote to standard output.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let name = name_of(command);
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("could not start {name}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{name} ended with {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("{name} wrote no UTF-8: {error}"))
}

/// Runs to the end, copies each line of its standard output to ours and shows it to `look`.
/// `Ok(false)` means that it ran and failed.
pub(crate) fn watch(command: &mut Command, mut look: impl FnMut(&str)) -> Result<bool, String> {
    let name = name_of(command);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("could not start {name}: {error}"))?;
    let piped = child.stdout.take().expect("standard output was just asked to be a pipe");
    for line in BufReader::new(piped).split(b'\n') {
        let line = line.map_err(|error| format!("could not read what {name} wrote: {error}"))?;
        let line = String::from_utf8_lossy(&line);
        // A closed terminal is no reason to stop the program half-way.
        let _ = writeln!(std::io::stdout(), "{line}");
        look(&line);
    }
    let status = child.wait().map_err(|error| format!("could not wait for {name}: {error}"))?;
    Ok(status.success())
}

/// Whether a program can be started at all: its `--version` is asked for and thrown away.
pub(crate) fn exists(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// What Cargo says of the workspace's own packages.
pub(crate) fn metadata(root: &Path) -> Result<serde_json::Value, String> {
    let arguments = ["metadata", "--format-version", "1", "--locked", "--no-deps"];
    serde_json::from_str(&output(cargo(root).args(arguments))?)
        .map_err(|error| format!("could not read cargo metadata: {error}"))
}

/// `cargo clippy`, `apt-get install`: the program and its verb, for messages.
fn name_of(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut name = program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    if let Some(first) = command.get_args().next() {
        name.push(' ');
        name.push_str(&first.to_string_lossy());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_cannot_be_started_is_named() {
        let error = run(&mut Command::new("no-such-program-anywhere")).expect_err("cannot start");
        assert!(error.starts_with("could not start no-such-program-anywhere"), "{error}");
        assert!(!exists(&mut Command::new("no-such-program-anywhere")));
    }

    #[test]
    fn a_program_that_fails_is_told_apart() {
        let error = run(Command::new("sh").args(["-c", "exit 3"])).expect_err("it exits with 3");
        assert!(error.starts_with("sh -c ended with"), "{error}");
    }

    #[test]
    fn every_line_is_looked_at() {
        let mut lines = Vec::new();
        let ended = watch(Command::new("sh").args(["-c", "echo one; echo two; exit 1"]), |line| {
            lines.push(line.to_owned());
        });
        assert_eq!(ended, Ok(false));
        assert_eq!(lines, ["one", "two"]);
    }
}
