//! The engine's whole process before it sends anything: from start to a printed plan.
//!
//! `onbeat plan` reads a trace, schedules it and prints what would be sent; its output is counted
//! and thrown away. Measured are wall time and the peak of resident memory (the kernel's high-water
//! mark; memory and end are looked for every two milliseconds), for a made-up trace of as many rows
//! as Mooncake's conversation trace has (or that file itself, named by `ONBEAT_MOONCAKE_TRACE`) and
//! for two million rows. The files are in the page cache: they were just written or read.
//!
//! `cargo bench -p benches --bench startup -- [WORD] [--json FILE]` measures; anything else runs
//! small. `ONBEAT` names the engine's binary, as in the replay bench. What loading a trace of
//! columns takes is measured beside it, see `baseten`.

mod baseten;
mod columns;

use std::fs::File;
use std::io::{BufWriter, Error, Read, Result, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread::Builder;
use std::time::Duration;

use benches::memory::high_water;
use benches::{Bencher, traces};
use onbeat::clock::monotonic_ns;
use serde_json::json;

/// How often memory is looked at.
const LOOK: Duration = Duration::from_millis(2);
/// Rounds of a short plan; odd, so that the median is one of them.
const ROUNDS: usize = 9;
const LARGE_ROWS: u64 = 2_000_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = baseten::child(&arguments).unwrap_or_else(|| {
        let bencher = Bencher::from_arguments(arguments);
        let folder = tempfile::tempdir()?;
        plans(&bencher, folder.path())?;
        baseten::bench(&bencher, folder.path())
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("startup bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn plans(bencher: &Bencher, folder: &Path) -> Result<()> {
    let Some(engine) = benches::engine_binary() else {
        println!("startup bench: skipped, no engine binary (build it: cargo build --release)");
        return Ok(());
    };
    let named = std::env::var_os("ONBEAT_MOONCAKE_TRACE").map(PathBuf::from);
    let rows = bencher.pick(50, traces::CONVERSATION_ROWS);
    measure(
        bencher,
        &engine,
        "plan_conversation",
        rows,
        bencher.pick(1, ROUNDS),
        || match named {
            Some(path) => Ok(path),
            None => write(folder, rows),
        },
    )?;
    let rows = bencher.pick(200, LARGE_ROWS);
    measure(bencher, &engine, "plan_large", rows, bencher.pick(1, 3), || write(folder, rows))
}

fn write(folder: &Path, rows: u64) -> Result<PathBuf> {
    let path = folder.join("trace.jsonl");
    let mut out = BufWriter::new(File::create(&path)?);
    traces::write_mooncake(rows, &mut out)?;
    out.flush()?;
    Ok(path)
}

/// Plans a trace so many times and says what it took.
fn measure(
    bencher: &Bencher,
    engine: &Path,
    name: &str,
    rows: u64,
    rounds: usize,
    trace: impl FnOnce() -> Result<PathBuf>,
) -> Result<()> {
    if !bencher.wants(name) {
        return Ok(());
    }
    let trace = trace()?;
    let mut found = Vec::new();
    // The first round reads the file and the program into memory and is not counted.
    for round in 0..=rounds {
        let plan = plan(engine, &trace)?;
        if round > 0 {
            found.push(plan);
        }
    }
    if found.iter().any(|plan| plan.lines != found[0].lines) {
        return Err(Error::other(format!("{name}: two plans of one trace differ in length")));
    }
    found.sort_by_key(|plan| plan.wall_ns);
    let peak = found.iter().filter_map(|plan| plan.peak_bytes).max();
    let mut line = json!({
        "bench": "startup",
        "case": name,
        "command": format!("cargo bench -p benches --bench startup -- --exact {name}"),
        "size": bencher.pick("small", "real"),
        "rows": rows,
        "planned": found[0].lines,
        "rounds": rounds,
    });
    if bencher.pick(false, true) {
        line["wall_ms_median"] = json!(millis(found[found.len() / 2].wall_ns));
        line["wall_ms_min"] = json!(millis(found[0].wall_ns));
        line["peak_memory_mib"] = json!(peak.map(|bytes| bytes / (1 << 20)));
    }
    bencher.say(&line);
    Ok(())
}

/// One `onbeat plan`.
struct Planned {
    wall_ns: i64,
    lines: usize,
    /// `None` when it was over before it could be looked at.
    peak_bytes: Option<u64>,
}

fn plan(engine: &Path, trace: &Path) -> Result<Planned> {
    let begun_ns = monotonic_ns();
    let mut child = Command::new(engine)
        .arg("plan")
        .arg(trace)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut stdout = child.stdout.take().ok_or_else(|| Error::other("no pipe"))?;
    let reader = Builder::new().name("reader".to_owned()).spawn(move || -> Result<usize> {
        let (mut lines, mut buffer) = (0, vec![0; 256 * 1024]);
        loop {
            match stdout.read(&mut buffer)? {
                0 => return Ok(lines),
                length => lines += buffer[..length].iter().filter(|&&b| b == b'\n').count(),
            }
        }
    })?;
    let mut peak_bytes = None;
    let status = loop {
        peak_bytes = high_water(child.id()).or(peak_bytes);
        match child.try_wait()? {
            Some(status) => break status,
            #[expect(clippy::disallowed_methods, reason = "waits for another process")]
            None => std::thread::sleep(LOOK),
        }
    };
    let wall_ns = monotonic_ns() - begun_ns;
    if !status.success() {
        return Err(Error::other(format!("onbeat plan ended with {status}")));
    }
    let lines = reader.join().map_err(|_panic| Error::other("the reader panicked"))??;
    Ok(Planned { wall_ns, lines, peak_bytes })
}

fn millis(ns: i64) -> f64 {
    (ns as f64 / 1e4).round() / 100.0
}
