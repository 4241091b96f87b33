//! The whole process against the floor: how late requests arrive, and how many a core can send.
//!
//! Three programs, each a process of its own: the server (pinned to one CPU) stamps the first byte
//! of each request; two parties (pinned to another) send the same schedule in turn, so that the
//! machine's moods hit both. The parties are the floor and Onbeat, or Onbeat in two ways, or Onbeat
//! and a base revision, or Onbeat and another load generator. Printed are medians and ratios, one
//! JSON line a case.
//!
//! ```text
//! cargo bench -p benches --bench replay -- [WORD…] [--pairs N] [--json FILE]
//! cargo bench -p benches --bench replay -- --base ENGINE [WORD…]
//! cargo bench -p benches --bench replay -- --peer NAME [--rate R]… [--count N]
//! ```
//!
//! measures the cases whose name contains one of the words; without `--bench`, which `cargo bench`
//! adds, one tiny pair of each kind runs, to show that it still works. `--json` appends the lines
//! to a file, the machine's description first. `ONBEAT` names the engine's binary (default: beside
//! this program's folder). The server can be had alone, for clients of one's own:
//!
//! ```text
//! REPLAY server --cpu 0 --expect 1000 [--port 8000] [--chunks 1] > stamps
//! ```
//!
//! It prints its address, answers 1,000 requests, and writes what [`server::write_seen`] says.

mod case;
mod catalogue;
mod floor;
mod measure;
mod options;
mod processes;
mod runner;
mod schedule;
mod server;
mod side;

use std::fs::OpenOptions;
use std::io::{Error, Result, Write};
use std::process::ExitCode;

use options::Options;
use runner::Runner;
use serde_json::Value;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.first().map(String::as_str) {
        Some("server") => processes::server(&arguments[1..]),
        Some("floor") => processes::floor(&arguments[1..]),
        _ => bench(arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("replay bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn bench(arguments: Vec<String>) -> Result<()> {
    let options = Options::parse(arguments)?;
    let Some(engine) = benches::engine_binary() else {
        println!("replay bench: skipped, no engine binary (build it: cargo build --release)");
        return Ok(());
    };
    let Some(runner) = Runner::new(engine, options.base.clone())? else {
        println!("replay bench: skipped, two CPUs are needed");
        return Ok(());
    };
    measure::raise_file_limit()?;
    let mut file = match &options.json {
        Some(path) => Some(OpenOptions::new().create(true).append(true).open(path)?),
        None => None,
    };
    let mut say = |line: &Value| -> Result<()> {
        println!("{line}");
        file.as_mut().map_or(Ok(()), |file| writeln!(file, "{line}"))
    };
    if options.is_real {
        say(&benches::machine::describe(Some(&runner.engine)))?;
    }
    let cases = options.cases();
    // With a file for its lines it is one of several benches: whoever runs them all looks there.
    if options.is_real && options.json.is_none() && cases.is_empty() {
        return Err(Error::other("no case has any of these words in its name"));
    }
    for mut case in cases {
        case.pairs = options.pairs.unwrap_or(case.pairs);
        say(&measure::run(&runner, &case)?)?;
    }
    Ok(())
}
