//! What one chunk of an answer costs, in instructions: counted by callgrind, the same every time.
//!
//! The micro bench reads answers of each kind at its small size; only instructions below its
//! function that reads are counted, and divided by the events that it read. Without valgrind a line
//! says that this was left out.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::process;

/// The small size reads everything twice: once to warm up, once to count.
const ROUNDS: u64 = 2;
/// What is counted, as callgrind names it.
const READING: &str = "--toggle-collect=*Case*read*";

/// Appends one line for each kind of answer to `results`.
pub(super) fn count(root: &Path, micro: &Path, results: &Path) -> Result<(), String> {
    let mut file = OpenOptions::new()
        .append(true)
        .open(results)
        .map_err(|error| format!("{}: {error}", results.display()))?;
    let mut say = |line: Value| {
        println!("{line}");
        writeln!(file, "{line}").map_err(|error| format!("{}: {error}", results.display()))
    };
    if !process::exists(Command::new("valgrind").arg("--version")) {
        let why = "valgrind is not installed (apt install valgrind)";
        return say(json!({"bench": "instructions", "case": "chunks", "skipped": why}));
    }
    let list = process::output(Command::new(micro).current_dir(root).arg("chunk_"))?;
    for line in list.lines() {
        let line: Value = serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))?;
        let (Some(name), Some(events)) = (line["bench"].as_str(), line["items"].as_u64()) else {
            continue;
        };
        let counted = counted(root, micro, name)?;
        say(json!({
            "bench": "instructions",
            "case": format!("{name}/instructions"),
            "command": "cargo x bench",
            "instructions_per_event": counted / (events * ROUNDS),
        }))?;
    }
    Ok(())
}

/// Instructions of one kind of answer, in all.
fn counted(root: &Path, micro: &Path, name: &str) -> Result<u64, String> {
    let output = Command::new("valgrind")
        .current_dir(root)
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", READING])
        .arg(micro)
        .args(["--exact", name])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("could not start valgrind: {error}"))?;
    let words = String::from_utf8_lossy(&output.stderr);
    collected(&words).ok_or_else(|| format!("valgrind did not count {name}: {words}"))
}

/// The number behind `Collected :`.
fn collected(words: &str) -> Option<u64> {
    let rest = words.lines().find_map(|line| line.split_once("Collected :"))?.1;
    rest.split_whitespace().next()?.parse().ok().filter(|&count| count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_read_from_callgrinds_last_words() {
        let words = "==7== Events    : Ir\n==7== Collected : 1396480\n==7== \n";
        assert_eq!(collected(words), Some(1_396_480));
        assert_eq!(collected("==7== Collected : 0\n"), None, "nothing matched: no count");
        assert_eq!(collected("a crash"), None);
    }
}
