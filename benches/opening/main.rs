//! Opening a large log in the viewer: how long until there is something to see, how long until all
//! of it is there, and how much memory that takes.
//!
//! A log of a million requests and thirty million content events is written to a temporary file (or
//! is the file named by `ONBEAT_BIG_LOG`, which is written if it does not exist), and opened by a
//! process of its own, with the viewer's own loading thread and without a window. The file is in the
//! page cache: it was just written, or is read once before. Peak memory is the kernel's high-water
//! mark of the process.
//!
//! `cargo bench -p benches --bench opening -- [--json FILE]` measures; anything else runs small.

use std::fs::File;
use std::io::{BufWriter, Error, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::mpsc::sync_channel;

use benches::big_log::{self, Size};
use benches::{Bencher, memory};
use onbeat::clock::monotonic_ns;
use onbeat_viewer::load::{Loading, Phase};
use serde_json::{Value, json};

const NAME: &str = "opening";
/// What the process that opens the log is called with.
const CHILD: &str = "--open";
const ROUNDS: usize = 5;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.as_slice() {
        [child, path] if child == CHILD => open(Path::new(path)),
        _ => bench(&Bencher::from_arguments(arguments)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("opening bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn bench(bencher: &Bencher) -> Result<()> {
    if !bencher.wants(NAME) {
        return Ok(());
    }
    let size = bencher.pick(Size { requests: 500, events: 10 }, big_log::LARGE);
    let folder = tempfile::tempdir()?;
    let named = std::env::var_os("ONBEAT_BIG_LOG").map(PathBuf::from);
    let path = named.unwrap_or_else(|| folder.path().join("large.beat"));
    if !path.exists() {
        big_log::write(size, BufWriter::new(File::create(&path)?))?;
    }
    let file_bytes = std::io::copy(&mut File::open(&path)?, &mut std::io::sink())?;
    let mut rounds = Vec::new();
    for _ in 0..bencher.pick(1, ROUNDS) {
        rounds.push(opened_by_child(&path)?);
    }
    let numbers = |key: &str| {
        let mut values: Vec<f64> = rounds.iter().filter_map(|round| round[key].as_f64()).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let peak = numbers("peak_bytes").last().copied();
    let mut line = json!({
        "bench": NAME,
        "command": "cargo bench -p benches --bench opening",
        "size": bencher.pick("small", "real"),
        "requests": rounds[0]["requests"],
        "events": rounds[0]["events"],
        "file_bytes": file_bytes,
        "rounds": rounds.len(),
    });
    if bencher.pick(false, true) {
        line["first_picture_ms"] = json!(numbers("first_ms"));
        line["complete_ms"] = json!(numbers("complete_ms"));
        line["pictures"] = rounds[0]["pictures"].clone();
        line["peak_bytes"] = json!(peak);
        let share = |peak: f64| (peak / file_bytes as f64 * 1e3).round() / 1e3;
        line["peak_of_file"] = json!(peak.map(share));
    }
    bencher.say(&line);
    Ok(())
}

fn opened_by_child(path: &Path) -> Result<Value> {
    let output = Command::new(std::env::current_exe()?).arg(CHILD).arg(path).output()?;
    if !output.status.success() {
        return Err(Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    serde_json::from_slice(&output.stdout).map_err(Error::other)
}

/// Opens a log as the window does and says how that went.
fn open(path: &Path) -> Result<()> {
    let (wake, woken) = sync_channel(1);
    let begin = monotonic_ns();
    let since = || (monotonic_ns() - begin) as f64 / 1e6;
    let loading = Loading::start(path.to_owned(), move || {
        let _ = wake.try_send(());
    });
    let (mut first, mut complete, mut pictures) = (None, 0.0, 0);
    let mut last = None;
    loop {
        let ended = loading.phase() == Phase::Ended;
        match loading.poll() {
            Some(Ok(opened)) => {
                complete = since();
                first.get_or_insert(complete);
                pictures += 1;
                last = Some(opened);
            }
            Some(Err(problem)) => return Err(Error::other(problem.found())),
            None if ended => break,
            None => {
                let _ = woken.recv();
            }
        }
    }
    let last = last.ok_or_else(|| Error::other("it ended without a picture"))?;
    let peak = memory::high_water(std::process::id());
    let t = monotonic_ns();
    let again = onbeat_viewer::opened::OpenedRun::standing(path.to_owned(), 1, last.run.clone(), onbeat_viewer::opened::Stand::Growing);
    eprintln!("standing {} us", (monotonic_ns() - t) / 1000);
    let t = monotonic_ns();
    again.report();
    eprintln!("report {} us", (monotonic_ns() - t) / 1000);
    let t = monotonic_ns();
    eprintln!("flight {} us", (monotonic_ns() - t) / 1000);
    let t = monotonic_ns();
    drop(again);
    eprintln!("drop {} us", (monotonic_ns() - t) / 1000);
    let line = json!({
        "first_ms": first,
        "complete_ms": complete,
        "pictures": pictures,
        "requests": last.run.requests.len(),
        "events": last.run.chunks.len(),
        "peak_bytes": peak,
    });
    println!("{line}");
    Ok(())
}
