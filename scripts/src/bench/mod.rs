//! `cargo x bench`: measures every figure the project promises, and prints them as one table.
//!
//! It builds the engine and the benches, released, runs them one after the other, keeps their lines
//! in `benches/runs` under the day and the kind of machine, and prints the table. Nothing else may
//! run meanwhile, so no check of `cargo x ci` does this.
//!
//! ```text
//! cargo x bench [WORD…] [--pairs N]     everything, or the cases with a word in their name
//! cargo x bench --base REV [WORD…]      that revision's engine against this one's, in turn
//! cargo x bench --peer NAME             another load generator against Onbeat, in turn
//! cargo x bench --table FILE [--readme] the table of results that were kept [into the README]
//! ```

mod bars;
mod base;
mod instructions;
mod table;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::process;

/// Where results are kept.
const RUNS: &str = "benches/runs";

/// What was asked for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    base: Option<String>,
    peer: Option<String>,
    table: Option<String>,
    readme: bool,
    /// Options of the replay bench, as they are.
    rest: Vec<String>,
    /// Words in the names of the cases that run; none: all of them.
    words: Vec<String>,
}

/// The programs that measure.
struct Programs {
    engine: PathBuf,
    replay: PathBuf,
    startup: PathBuf,
    micro: PathBuf,
    /// Those that measure the viewer.
    viewer: [PathBuf; 2],
}

/// Entry point.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    let asked = asked(arguments)?;
    if let Some(file) = &asked.table {
        return show(root, Path::new(file), asked.readme);
    }
    let programs = build(root)?;
    let results = fresh(root)?;
    let mut replay = programs.replay(root, &results);
    if let Some(revision) = &asked.base {
        let tree = base::Checkout::new(root, revision)?;
        let engine = tree.engine()?;
        replay.arg("--base").arg(engine).args(&asked.rest).args(&asked.words);
        process::run(&mut replay)?;
        return some(&results);
    }
    if let Some(peer) = &asked.peer {
        process::run(replay.args(["--peer", peer]).args(&asked.rest).args(&asked.words))?;
        return keep(root, &results, Some(peer));
    }
    process::run(replay.args(&asked.rest).args(&asked.words))?;
    let [opening, frames] = &programs.viewer;
    for program in [&programs.startup, &programs.micro, opening, frames] {
        let mut command = programs.command(program, root, &results);
        process::run(command.arg("--bench").args(&asked.words))?;
    }
    if !asked.words.is_empty() {
        return some(&results);
    }
    instructions::count(root, &programs.micro, &results)?;
    keep(root, &results, None)?;
    print(&results, |lines| table::markdown(lines, &bars::rows()))
}

fn asked(arguments: &[String]) -> Result<Asked, String> {
    let mut asked = Asked::default();
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let mut value = || {
            let next = rest.next().cloned();
            next.ok_or_else(|| format!("{word} needs a value"))
        };
        match word.as_str() {
            "--base" => asked.base = Some(value()?),
            "--peer" => asked.peer = Some(value()?),
            "--table" => asked.table = Some(value()?),
            "--readme" => asked.readme = true,
            "--pairs" | "--rate" | "--count" => {
                let value = value()?;
                // Before half an hour of it, not after.
                if !is_positive(&value, word == "--rate") {
                    return Err(format!("{word} {value:?}: give a number above 0"));
                }
                asked.rest.extend([word.clone(), value]);
            }
            flag if flag.starts_with('-') => return Err(format!("no such option: {flag}")),
            _ => asked.words.push(word.clone()),
        }
    }
    if asked.readme && asked.table.is_none() {
        return Err("--readme goes with --table FILE: what is shown was kept before".to_owned());
    }
    Ok(asked)
}

/// Whether a text is a number above 0, and a whole one unless it may have a `fraction`.
fn is_positive(text: &str, fraction: bool) -> bool {
    if fraction {
        return text.parse().is_ok_and(|number: f64| number.is_finite() && number > 0.0);
    }
    text.parse().is_ok_and(|number: usize| number > 0)
}

/// Builds all that measures; the engine by itself, as a user builds it.
fn build(root: &Path) -> Result<Programs, String> {
    let engine = ["build", "--release", "--locked", "--package", "onbeat", "--bin", "onbeat"];
    let engine = built(root, &engine, "onbeat", "bin")?;
    let bench = |name| {
        let benches = ["bench", "--no-run", "--locked", "--package", "benches", "--bench", name];
        built(root, &benches, name, "bench")
    };
    let (replay, startup, micro) = (bench("replay")?, bench("startup")?, bench("micro")?);
    let viewer = [bench("opening")?, bench("frames")?];
    Ok(Programs { engine, replay, startup, micro, viewer })
}

/// Runs Cargo and returns the program of this name that it built or found built.
fn built(root: &Path, arguments: &[&str], name: &str, kind: &str) -> Result<PathBuf, String> {
    let mut cargo = process::cargo(root);
    cargo.args(arguments).arg("--message-format=json-render-diagnostics");
    executable(&process::output(&mut cargo)?, name, kind)
        .ok_or_else(|| format!("Cargo did not say where it put {name}"))
}

/// The program of a name and kind among Cargo's messages.
fn executable(messages: &str, name: &str, kind: &str) -> Option<PathBuf> {
    let artifacts = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut found = artifacts.filter(|message| {
        message["target"]["name"] == name && message["target"]["kind"][0] == kind
    });
    found.find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

impl Programs {
    fn command(&self, program: &Path, root: &Path, results: &Path) -> std::process::Command {
        let mut command = std::process::Command::new(program);
        command.current_dir(root).env("ONBEAT", &self.engine).arg("--json").arg(results);
        command
    }

    fn replay(&self, root: &Path, results: &Path) -> std::process::Command {
        let mut command = self.command(&self.replay, root, results);
        command.arg("--bench").env("CARGO_MANIFEST_DIR", root.join("benches"));
        command
    }
}

/// An empty file for lines of results, below `target`.
fn fresh(root: &Path) -> Result<PathBuf, String> {
    let folder = root.join("target/bench");
    let path = folder.join("results.jsonl");
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(&path, ""))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

fn read(path: &Path) -> Result<Vec<Value>, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    table::parse(&text).map_err(|words| format!("{}: {words}", path.display()))
}

fn print(results: &Path, words: impl FnOnce(&[Value]) -> String) -> Result<(), String> {
    println!("{}", words(&read(results)?));
    Ok(())
}

/// Prints what some cases came to, if there were any.
fn some(results: &Path) -> Result<(), String> {
    let lines = read(results)?;
    if lines.iter().all(|line| line["bench"] == "machine") {
        return Err("no case of any bench has one of these words in its name".to_owned());
    }
    println!("{}", table::ratios(&lines));
    Ok(())
}

/// Copies results to where they stay; those of a peer have its name in theirs.
fn keep(root: &Path, results: &Path, peer: Option<&str>) -> Result<(), String> {
    let lines = read(results)?;
    let mut stem = stem(&lines).ok_or("the results do not begin with the machine")?;
    if let Some(peer) = peer {
        stem = format!("{stem}-{peer}");
    }
    let folder = root.join(RUNS);
    fs::create_dir_all(&folder).map_err(|error| format!("{RUNS}: {error}"))?;
    let mut name = format!("{stem}.jsonl");
    for number in 2.. {
        if !folder.join(&name).exists() {
            break;
        }
        name = format!("{stem}-{number}.jsonl");
    }
    fs::copy(results, folder.join(&name)).map_err(|error| format!("{RUNS}/{name}: {error}"))?;
    println!("kept in {RUNS}/{name}");
    Ok(())
}

/// The day and the kind of machine: `2026-01-02-amd-epyc-2-cpus`.
fn stem(lines: &[Value]) -> Option<String> {
    let machine = lines.first().filter(|line| line["bench"] == "machine")?;
    let (date, cpu) = (machine["date"].as_str()?, machine["cpu"].as_str().unwrap_or("unknown"));
    let words: Vec<String> = cpu
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    Some(format!("{date}-{}-{}-cpus", words.join("-"), machine["cpus"]))
}

/// Prints the table of a file of results, or writes it into the README.
fn show(root: &Path, file: &Path, into_readme: bool) -> Result<(), String> {
    let text = table::markdown(&read(file)?, &bars::rows());
    if !into_readme {
        print!("{text}");
        return Ok(());
    }
    let path = root.join("README.md");
    let wrong = |error: std::io::Error| format!("README.md: {error}");
    let readme = fs::read_to_string(&path).map_err(wrong)?;
    fs::write(&path, table::replaced(&readme, &text)?).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Asked, String> {
        asked(&words.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn options_of_the_replay_bench_are_handed_on() {
        let asked = parsed(&["rate", "--pairs", "3", "--base", "HEAD~1"]).expect("right");
        assert_eq!(asked.base.as_deref(), Some("HEAD~1"));
        assert_eq!(
            (asked.rest, asked.words),
            (vec!["--pairs".into(), "3".into()], vec!["rate".into()])
        );
        assert!(parsed(&["--pairs", "3"]).expect("right").words.is_empty());
        assert!(parsed(&["--quick"]).is_err() && parsed(&["--base"]).is_err());
        assert!(parsed(&["--readme"]).is_err(), "which results?");
        for wrong in [["--pairs", "0"], ["--pairs", "1.5"], ["--count", "x"], ["--rate", "-1"]] {
            assert!(parsed(&wrong).is_err(), "{wrong:?}");
        }
        assert!(parsed(&["--peer", "vllm", "--rate", "0.5", "--count", "9"]).is_ok());
    }

    #[test]
    fn the_program_is_found_among_cargos_messages() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"onbeat","kind":["lib"]},"executable":null}
{"reason":"compiler-artifact","target":{"name":"onbeat","kind":["bin"]},"executable":"/t/onbeat"}
{"reason":"build-finished","success":true}"#;
        assert_eq!(executable(messages, "onbeat", "bin"), Some(PathBuf::from("/t/onbeat")));
        assert_eq!(executable(messages, "onbeat", "bench"), None);
    }

    #[test]
    fn results_are_named_after_the_day_and_the_machine() {
        let line = r#"{"bench":"machine","date":"2026-01-02","cpu":"AMD EPYC (Zen)","cpus":2}"#;
        let lines = table::parse(line).expect("a line");
        assert_eq!(stem(&lines).as_deref(), Some("2026-01-02-amd-epyc-zen-2-cpus"));
        assert_eq!(stem(&[]), None);
    }
}
