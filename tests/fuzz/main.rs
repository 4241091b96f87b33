//! `fuzz`: long runs of the fuzz targets, by command.
//!
//! Prints how many inputs were judged, how fast, and what was found; writes each finding to a file
//! that repeats it. Ends with 1 if there is one. What is fuzzed and how is the library's.

use std::path::PathBuf;
use std::process::ExitCode;

use tests::fuzz::memory::Counting;
use tests::fuzz::runner::{self, Report, Work};
use tests::fuzz::{TARGETS, Target, target};

/// Memory is counted: an input that makes a reader ask for too much of it is a finding.
#[global_allocator]
static MEMORY: Counting = Counting;

const USAGE: &str = "usage: fuzz list
       fuzz TARGET|all [--runs N] [--seconds N] [--seed N] [--first N] [--threads N] [--out DIR]
       fuzz TARGET FILE...      judges these files";

/// What the command line asks for.
struct Wish {
    targets: Vec<&'static Target>,
    files: Vec<PathBuf>,
    work: Work,
    out: PathBuf,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words == ["list"] {
        for target in TARGETS {
            println!("{:<12} {}", target.name, target.about);
        }
        return ExitCode::SUCCESS;
    }
    let wish = match read(&words) {
        Ok(wish) => wish,
        Err(wrong) => {
            eprintln!("fuzz: {wrong}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let found: usize = wish.targets.iter().map(|target| carry_out(target, &wish)).sum();
    if found == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn read(words: &[String]) -> Result<Wish, String> {
    let (name, rest) = words.split_first().ok_or("no target")?;
    let targets = match (name.as_str(), target(name)) {
        ("all", _) => TARGETS.iter().collect(),
        (_, Some(target)) => vec![target],
        (_, None) => return Err(format!("no target is called {name}; `fuzz list` has them")),
    };
    let work =
        Work { seed: 1, first: 0, runs: 1_000_000, threads: 1, ns_max: None, findings_max: 5 };
    let mut wish = Wish { targets, files: Vec::new(), work, out: PathBuf::from("target/fuzz") };
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        if !word.starts_with("--") {
            wish.files.push(PathBuf::from(word));
            continue;
        }
        let value = rest.next().ok_or_else(|| format!("{word} wants a value"))?;
        if word == "--out" {
            wish.out = PathBuf::from(value);
            continue;
        }
        let number: u64 =
            value.replace('_', "").parse().map_err(|error| format!("{word} {value}: {error}"))?;
        match word.as_str() {
            "--runs" => wish.work.runs = number,
            "--seed" => wish.work.seed = number,
            "--first" => wish.work.first = number,
            "--threads" => {
                wish.work.threads = usize::try_from(number).map_err(|error| error.to_string())?;
            }
            "--seconds" => {
                let ns = number.checked_mul(1_000_000_000).and_then(|ns| i64::try_from(ns).ok());
                wish.work.ns_max = Some(ns.ok_or("--seconds: too many")?);
            }
            _ => return Err(format!("no option is called {word}")),
        }
    }
    Ok(wish)
}

/// Fuzzes one target, or judges files; how many findings there were.
fn carry_out(target: &Target, wish: &Wish) -> usize {
    if wish.files.is_empty() {
        let report = runner::run(target, wish.work);
        tell(target, wish, &report);
        return report.findings.len();
    }
    let mut found = 0;
    for path in &wish.files {
        let said = match std::fs::read(path) {
            Ok(input) => runner::judge_one(target, &input),
            Err(error) => Some(error.to_string()),
        };
        found += usize::from(said.is_some());
        println!("{}: {}", path.display(), said.as_deref().unwrap_or("good"));
    }
    found
}

fn tell(target: &Target, wish: &Wish, report: &Report) {
    let seconds = report.elapsed_ns as f64 / 1e9;
    let (slow, slow_ns) = report.slowest.unwrap_or_default();
    println!(
        "{}: seed {}, {} executions, {} bytes, {seconds:.1} s ({:.0} a second), slowest {:.3} ms \
         (number {slow}), {} findings",
        target.name,
        wish.work.seed,
        report.executions,
        report.bytes,
        report.executions as f64 / seconds.max(1e-9),
        slow_ns as f64 / 1e6,
        report.findings.len(),
    );
    for finding in &report.findings {
        let path = wish.out.join(format!("{}-{}-{}", target.name, wish.work.seed, finding.number));
        let written = std::fs::create_dir_all(&wish.out)
            .and_then(|()| std::fs::write(&path, &finding.small))
            .and_then(|()| std::fs::write(path.with_extension("whole"), &finding.input));
        let place = match written {
            Ok(()) => path.display().to_string(),
            Err(error) => format!("not written: {error}"),
        };
        println!(
            "FOUND --seed {} --first {} --runs 1: {}\n  {} bytes, {}: {}",
            wish.work.seed,
            finding.number,
            finding.words,
            finding.small.len(),
            place,
            finding.small[..finding.small.len().min(400)].escape_ascii()
        );
    }
}
