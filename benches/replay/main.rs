//! The whole process against the floor: how late requests arrive, and how many a core can send.
//!
//! Three programs, each a process of its own: the server (pinned to one CPU) stamps the first byte
//! of each request; the floor and Onbeat (pinned to another) send the same schedule in turn, floor,
//! Onbeat, floor, Onbeat, …, so that the machine's moods hit both. Printed are ratios of pairs and
//! their medians, one JSON line a case. There are no thresholds: judging is the reader's.
//!
//! `cargo bench -p benches --bench replay` measures; anything else runs one tiny pair, to show that
//! it still works. `ONBEAT` names the engine's binary (default: beside this program's folder).

mod case;
mod floor;
mod pair;
mod schedule;
mod server;

use std::path::PathBuf;
use std::process::ExitCode;

use case::Case;
use pair::Runner;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.first().map(String::as_str) {
        Some("server") => pair::server_process(&arguments[1..]),
        Some("floor") => pair::floor_process(&arguments[1..]),
        _ => bench(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("replay bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn bench(arguments: &[String]) -> std::io::Result<()> {
    let real = arguments.iter().any(|argument| argument == "--bench")
        && !arguments.iter().any(|argument| argument == "--test");
    let filter = arguments.iter().find(|argument| !argument.starts_with('-')).cloned();
    let Some(engine) = engine_binary() else {
        println!("replay bench: skipped, no engine binary (build it: cargo build --release)");
        return Ok(());
    };
    let Some(runner) = Runner::new(engine)? else {
        println!("replay bench: skipped, two CPUs are needed");
        return Ok(());
    };
    let cases = if real { Case::measured() } else { Case::tiny() };
    for case in cases {
        if filter.as_deref().is_none_or(|word| case.name().contains(word)) {
            println!("{}", runner.run(&case)?);
        }
    }
    Ok(())
}

fn engine_binary() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("ONBEAT") {
        return Some(PathBuf::from(named));
    }
    // target/PROFILE/deps/replay-HASH → target/release/onbeat or target/debug/onbeat.
    let own = std::env::current_exe().ok()?;
    let target = own.parent()?.parent()?.parent()?;
    ["release", "debug"]
        .iter()
        .map(|profile| target.join(profile).join("onbeat"))
        .find(|path| path.is_file())
}
