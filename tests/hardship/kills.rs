//! `kill -9` at moments that are drawn: the log opens, has all but its end, and invents nothing.
//!
//! The log of a killed run is held against what a server noted: its requests are the first of those
//! that arrived, none is missing between others, and each answer has the events that were sent.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use onbeat::clock::monotonic_ns;
use onbeat_shared::dice::Dice;
use onbeat_shared::log::Class;
use onbeat_shared::log::block::BLOCK_RECORDS;
use onbeat_shared::run::{Run, State};

use super::{EVENTS, Noting, Product};
use crate::mooncake;

/// A run that is killed.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A schedule of two hundred requests a second.
    Schedule,
    /// Users.
    Users,
}

/// What a kill cost.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// Requests that had arrived.
    pub arrived: usize,
    /// Of these the log knows.
    pub kept: usize,
    /// From the arrival of the first that the log lacks to the kill; zero if it lacks none.
    pub seconds: f64,
}

/// Kills a run once, so many nanoseconds after its first request arrived.
///
/// # Errors
/// What is wrong with the log.
///
/// # Panics
/// When the program cannot be started, or sends nothing for a minute.
pub fn kill(product: &Product, server: &Noting, kind: Kind, after_ns: u64) -> Result<Loss, String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = folder.path().join("run.beat");
    let trace = write_trace(folder.path(), kind);
    server.forget();
    let (url, output) = (server.url(), log.to_string_lossy());
    let mut words = vec!["replay", &trace, "--url", &url, "--output", &output, "--ui", "simple"];
    words.extend(["--cores", "1"]);
    if matches!(kind, Kind::Users) {
        words.extend(["--start-users", "20", "--test-duration", "60", "--recycle"]);
    }
    let mut child = product
        .command(&words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let begun = monotonic_ns();
    while server.count() == 0 {
        let ended = child.try_wait().expect("it is our own").is_some();
        if ended || monotonic_ns() - begun > 60_000_000_000 {
            let _ = child.kill();
            let output = child.wait_with_output().expect("it is our own");
            return Err(format!("it sends nothing: {}", String::from_utf8_lossy(&output.stderr)));
        }
        std::thread::yield_now();
    }
    #[expect(clippy::disallowed_methods, reason = "a moment is waited for, nothing is measured")]
    std::thread::sleep(Duration::from_nanos(after_ns));
    let killed = monotonic_ns();
    child.kill().expect("it is our own");
    child.wait().expect("it is our own");
    let arrivals = server.arrivals();
    let bytes = fs::read(&log).map_err(|error| format!("no log: {error}"))?;
    let run = Run::read(&bytes).map_err(|error| format!("the log does not open: {error}"))?;
    judge(&run, &arrivals, killed)
}

/// Draws a moment and a kind of run from a seed, and kills it.
///
/// # Errors
/// As [`kill`], with the seed.
pub fn drawn(product: &Product, server: &Noting, seed: u64, most_ns: u64) -> Result<Loss, String> {
    let mut dice = Dice(seed);
    let kind = if dice.below(2) == 0 { Kind::Schedule } else { Kind::Users };
    let after_ns = dice.below(most_ns);
    let loss = kill(product, server, kind, after_ns);
    loss.map_err(|words| format!("seed {seed}, {kind:?}, after {after_ns} ns: {words}"))
}

fn judge(run: &Run, arrivals: &[i64], killed: i64) -> Result<Loss, String> {
    let State::Unfinished { .. } = run.state else {
        return Err(format!("a killed run is {:?}", run.state));
    };
    if run.damaged_bytes > 0 {
        return Err(format!("{} bytes are damaged", run.damaged_bytes));
    }
    let requests = run.requests.len();
    let sent = |i: &usize| run.requests.was_sent(*i);
    let kept = (0..requests).filter(sent).count();
    // What had wholly left was there for the server, whatever became of the sender.
    let left = (0..requests).filter(|&i| run.requests.sent_end(i).is_some()).count();
    if left > arrivals.len() {
        return Err(format!("{left} requests left whole, {} arrived", arrivals.len()));
    }
    if let Some(gap) = (0..kept).find(|i| !sent(i)) {
        return Err(format!("request {gap} is missing between others"));
    }
    for i in 0..requests {
        let events = run.chunks.count(i);
        let fair = match run.requests.class(i) {
            Some(Class::Ok) => events == EVENTS,
            Some(class) => return Err(format!("request {i} is {class:?}")),
            None => events <= EVENTS,
        };
        if !fair {
            return Err(format!("request {i} has {events} events"));
        }
    }
    let lacks = arrivals.len().saturating_sub(kept);
    if lacks >= BLOCK_RECORDS {
        return Err(format!("{lacks} requests are lost, more than a block"));
    }
    let first = arrivals.get(kept).copied().unwrap_or(killed);
    let seconds = (killed - first).max(0) as f64 / 1e9;
    Ok(Loss { arrived: arrivals.len(), kept, seconds })
}

fn write_trace(folder: &Path, kind: Kind) -> String {
    let (name, text) = match kind {
        Kind::Schedule => ("trace.jsonl", mooncake(20_000, 5, 20, 2)),
        Kind::Users => {
            let request = |at: u32| {
                format!(
                    "{{\"t\": {at}.0, \"type\": \"s\", \"in\": 100, \"out\": 2, \
                     \"hash_ids\": [1, {at}], \"input_types\": [\"text\"], \
                     \"output_types\": [\"text\"], \"stop\": \"\", \"api_time\": 0.01, \
                     \"think_time\": 0.05}}"
                )
            };
            let requests: Vec<String> = (2..400).map(request).collect();
            let text = format!(
                "{{\"id\": \"trace_0001\", \"models\": [], \"block_size\": 64, \
                 \"hash_id_scope\": \"local\", \"tool_tokens\": 0, \"system_tokens\": 0, \
                 \"requests\": [{}]}}",
                requests.join(", ")
            );
            ("trace.json", text)
        }
    };
    let path = folder.join(name);
    fs::write(&path, text).expect("the folder is writable");
    path.to_string_lossy().into_owned()
}
