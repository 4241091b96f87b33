//! As many streams as a process may have open, at one token a second each: every token is counted,
//! and it is known what a stream takes of memory.
//!
//! Server and engine are two processes, because each has a limit of its own on open files. What the
//! engine has of memory is read while it runs: right before it opens its first connection, and
//! while all are open.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use onbeat_shared::log::Class;
use onbeat_shared::metrics::{ReportOptions, report};
use onbeat_shared::run::Run;

use crate::hardship::Product;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Wish {
    /// Streams, all open at once.
    pub streams: usize,
    /// Tokens of each.
    pub tokens: usize,
    /// Between two tokens (ms).
    pub step_ms: usize,
    /// How the engine drives its sockets.
    pub driver: String,
    /// Words for the engine beside those that are needed.
    pub more: Vec<String>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// The engine's exit code.
    pub code: Option<i32>,
    /// What it said.
    pub words: String,
    /// Requests that ended well.
    pub ok: usize,
    /// Content tokens in the log.
    pub tokens: u64,
    /// Streams that were open at once.
    pub at_once: usize,
    /// Resident memory (bytes) before connections were made ready and while all were open; zero if
    /// the run was too short to look.
    pub before_bytes: u64,
    /// See there.
    pub open_bytes: u64,
    /// Lateness of sends (µs), half of them and one in a hundred, outside host stalls.
    pub late_us: Option<[f64; 2]>,
}

impl Told {
    /// Memory of one stream, in bytes.
    #[must_use]
    pub fn bytes_each(&self, streams: usize) -> u64 {
        self.open_bytes.saturating_sub(self.before_bytes) / streams.max(1) as u64
    }
}

/// A process that ends with its owner.
pub(super) struct Running(pub(super) Child);

impl Running {
    /// Starts a program that only writes what it says, into a file.
    pub(super) fn begin(mut command: Command, errors: &Path) -> Self {
        let errors = fs::File::create(errors).expect("it is writable");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        Self(command.spawn().expect("the program is there"))
    }
}

/// How fast the mock is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mocking {
    /// Between two tokens.
    pub(super) step_ms: usize,
    /// Answers that are written at once.
    pub(super) running: usize,
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Requests begin within so many milliseconds.
const SPREAD_MS: usize = 5_000;

/// Opens them.
///
/// # Errors
/// When the engine leaves no log that can be read.
///
/// # Panics
/// When a process cannot be started.
pub fn open(product: &Product, wish: &Wish) -> Result<Told, String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mocking = Mocking { step_ms: wish.step_ms, running: wish.streams };
    let (server, url) = serve(product, mocking);
    let (trace, log) = (folder.path().join("trace.jsonl"), folder.path().join("run.beat"));
    let spread = SPREAD_MS.min(wish.tokens * wish.step_ms / 4);
    let row = |row: usize| {
        let at = row * spread / wish.streams;
        let tokens = wish.tokens;
        format!(
            "{{\"timestamp\":{at},\"input_length\":10,\"output_length\":{tokens},\
             \"hash_ids\":[{row}]}}\n"
        )
    };
    fs::write(&trace, (0..wish.streams).map(row).collect::<String>()).expect("it is writable");
    let errors = folder.path().join("errors");
    let (streams, driver) = (wish.streams.to_string(), wish.driver.as_str());
    let mut command = replay(product, &url, &trace, &log, driver);
    command.args(["--warm-connections", &streams]).args(&wish.more);
    let mut engine = Running::begin(command, &errors);
    let (before_bytes, open_bytes) = watch(&mut engine.0, wish.streams);
    let code = engine.0.wait().expect("it is ours").code();
    drop(server);
    let words = fs::read_to_string(&errors).unwrap_or_default();
    let bytes = fs::read(&log).map_err(|error| format!("no log ({error}): {words}"))?;
    let run = Run::read(&bytes).map_err(|error| format!("{error}: {words}"))?;
    let late = report(&run, &ReportOptions::default()).schedule.lateness_outside_stalls_us;
    Ok(Told {
        code,
        words,
        ok: (0..run.plan.len()).filter(|&i| run.requests.class(i) == Some(Class::Ok)).count(),
        tokens: (0..run.plan.len()).map(|i| run.requests.chunk_tokens(i)).sum(),
        at_once: at_once(&run),
        before_bytes,
        open_bytes,
        late_us: late.map(|late| [late.p50, late.p99]),
    })
}

/// What replays a trace from one core.
pub(super) fn replay(
    product: &Product,
    url: &str,
    trace: &Path,
    log: &Path,
    driver: &str,
) -> Command {
    let mut command = product.command(&["replay"]);
    command.arg(trace).args(["--url", url, "--driver", driver, "--cores", "1", "--ui", "simple"]);
    command.arg("--output").arg(log);
    command
}

/// The mock as a process of its own, and its URL.
pub(super) fn serve(product: &Product, mocking: Mocking) -> (Running, String) {
    let (step, running) = (mocking.step_ms.to_string(), mocking.running.to_string());
    let mut server = product
        .command(&["mock", "--port", "0", "--step-ms", &step, "--sequence-ms", "0"])
        .args(["--overhead-ms", "0", "--prefill-rate", "1000000000", "--cache-tokens", "0"])
        .args(["--step-tokens", "1000000000", "--running", &running])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program is there");
    let mut line = String::new();
    let stdout = server.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut line).expect("the mock says where it listens");
    let url = line.trim().rsplit(' ').next().expect("a URL").to_owned();
    (Running(server), url)
}

/// Resident memory of a process before it opens connections, and at most while `streams` are open.
fn watch(child: &mut Child, streams: usize) -> (u64, u64) {
    let folder = format!("/proc/{}", child.id());
    let folder = Path::new(&folder);
    let (mut before, mut open) = (None, 0);
    while child.try_wait().expect("it is ours").is_none() {
        if before.is_none() && has_core(folder) {
            // It measures for forty milliseconds how late it wakes, and makes nothing meanwhile.
            pause(15);
            before = resident(folder);
        }
        let files = match before {
            None => 0,
            Some(_) => fs::read_dir(folder.join("fd")).map_or(0, Iterator::count),
        };
        if files >= streams {
            open = open.max(resident(folder).unwrap_or(0));
        }
        // Counting that many takes its time from the server.
        pause(if before.is_none() { 2 } else { 500 });
    }
    (before.unwrap_or(0), open)
}

/// Whether a process has begun to send, or to get ready for it.
pub(super) fn has_core(folder: &Path) -> bool {
    let tasks = fs::read_dir(folder.join("task")).into_iter().flatten().flatten();
    let mut names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.any(|name| name.starts_with("onbeat-core"))
}

pub(super) fn pause(ms: u64) {
    #[expect(clippy::disallowed_methods, reason = "somebody else is watched")]
    std::thread::sleep(Duration::from_millis(ms));
}

/// Memory of a process that lies in RAM.
pub(super) fn resident(folder: &Path) -> Option<u64> {
    let status = fs::read_to_string(folder.join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The most answers that were under way at once.
fn at_once(run: &Run) -> usize {
    let mut changes = Vec::new();
    for i in 0..run.plan.len() {
        if let (Some(from), Some(to)) = (run.requests.first_token(i), run.requests.done(i)) {
            changes.extend([(from.0, 1_i64), (to.0, -1)]);
        }
    }
    changes.sort_unstable();
    let (mut open, mut most) = (0, 0);
    for (_, change) in changes {
        open += change;
        most = most.max(open);
    }
    usize::try_from(most).unwrap_or(0)
}
