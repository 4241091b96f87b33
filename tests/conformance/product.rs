//! The program under test: started as a process, and its answers as values.
//!
//! It is this very program, which becomes `onbeat` when its first word says so: what is tested is
//! what was just compiled. The environment's own servers and keys are kept away from it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use onbeat_shared::run::Run;
use serde_json::Value;

use crate::found::Findings;

/// The first word that makes this program the product.
pub(crate) const NAME: &str = "onbeat";
/// Names the file that the product leaves its peak of resident memory in.
const PEAK: &str = "ONBEAT_CONFORMANCE_PEAK";

/// Is `onbeat`, with these words after its name.
pub(crate) fn be(words: impl Iterator<Item = OsString>) -> ExitCode {
    let code = onbeat::cli::start(std::iter::once(NAME.into()).chain(words));
    if let Some(file) = std::env::var_os(PEAK) {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let peak = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
        // Without the file the check says so.
        let _ = std::fs::write(file, peak);
    }
    code
}

/// A command that runs the product.
pub(crate) fn command(words: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    command
        .arg(NAME)
        .args(words)
        .env_remove("ONBEAT_URL")
        .env_remove("OPENAI_API_KEY")
        .stdin(Stdio::null());
    command
}

/// What the product said.
#[derive(Debug)]
pub(crate) struct Told {
    /// Its exit code; `None` when a signal ended it.
    pub(crate) code: Option<i32>,
    /// What it wrote to standard output.
    pub(crate) out: String,
    /// What it wrote to standard error.
    pub(crate) err: String,
}

impl Told {
    /// Of a process that has ended.
    pub(crate) fn of(output: &std::process::Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Runs the product to its end.
pub(crate) fn onbeat(words: &[&str]) -> Told {
    Told::of(&command(words).output().expect("this program can be started"))
}

/// A line of `onbeat plan`.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// Everything in it.
    pub(crate) value: Value,
    /// 1-based row of the trace.
    pub(crate) row: u64,
    /// Name of its session.
    pub(crate) session: String,
    /// Place in its session, from zero.
    pub(crate) turn: u64,
    /// When it is due, in nanoseconds after the schedule's zero.
    pub(crate) due_ns: Option<i64>,
    /// What it waits after the end of the turn before it.
    pub(crate) think_ns: Option<i64>,
    /// The most tokens it asks for.
    pub(crate) max_tokens: Option<u64>,
    /// The fewest.
    pub(crate) min_tokens: Option<u64>,
}

impl Row {
    fn of(line: &str) -> Self {
        let value: Value = serde_json::from_str(line).expect("a plan is JSON Lines");
        Self {
            row: value["row"].as_u64().expect("a row"),
            session: value["session"].as_str().expect("a session").to_owned(),
            turn: value["turn"].as_u64().expect("a turn"),
            due_ns: value["due_ns"].as_i64(),
            think_ns: value["think_ns"].as_i64(),
            max_tokens: value["max_tokens"].as_u64(),
            min_tokens: value["min_tokens"].as_u64(),
            value,
        }
    }

    /// The body that would be sent, as JSON whose keys have their order.
    pub(crate) fn body(&self) -> &Value {
        &self.value["body"]
    }

    /// The text of the only message of a chat.
    pub(crate) fn chat_text(&self) -> &str {
        self.body()["messages"][0]["content"].as_str().unwrap_or_default()
    }
}

/// What `onbeat plan --bodies` says of a trace.
pub(crate) struct Planned {
    /// Everything it said.
    pub(crate) told: Told,
    /// Its lines.
    pub(crate) rows: Vec<Row>,
}

impl Planned {
    /// When its requests are due, in nanoseconds.
    pub(crate) fn due_ns(&self) -> Vec<Option<i64>> {
        self.rows.iter().map(|row| row.due_ns).collect()
    }

    /// The names of its sessions, each once, in the order of their first requests.
    pub(crate) fn sessions(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for row in &self.rows {
            if !names.contains(&row.session.as_str()) {
                names.push(&row.session);
            }
        }
        names
    }
}

/// Plans a trace, with bodies.
pub(crate) fn plan(trace: &Path, options: &[&str]) -> Planned {
    plan_without_bodies(trace, &[&["--bodies"], options].concat())
}

/// Plans a trace.
pub(crate) fn plan_without_bodies(trace: &Path, options: &[&str]) -> Planned {
    let told = onbeat(&[&["plan", text(trace)], options].concat());
    let rows = told.out.lines().map(Row::of).collect();
    Planned { told, rows }
}

/// Plans a trace that must be usable.
pub(crate) fn planned(trace: &Path, options: &[&str], found: &mut Findings) -> Planned {
    let planned = plan(trace, options);
    let Told { code, err, .. } = &planned.told;
    found.holds(format!("{} to be planned", name(trace)), *code == Some(0), err);
    planned
}

/// A replay that has ended.
pub(crate) struct Replayed {
    /// What was said.
    pub(crate) told: Told,
    /// The log, if there is one.
    pub(crate) run: Option<Run>,
}

impl Replayed {
    /// The log of a replay that must have left one.
    pub(crate) fn log(&self) -> &Run {
        let words = || panic!("expected a log, found none: {}", self.told.err);
        self.run.as_ref().unwrap_or_else(words)
    }
}

/// Replays a trace against a server.
pub(crate) fn replay(trace: &Path, url: &str, options: &[&str]) -> Replayed {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = folder.path().join("run.beat");
    let told = onbeat(&replay_words(trace, url, &log, options));
    Replayed { told, run: read(&log) }
}

/// Replays a trace and tells the peak of resident memory in KiB, too.
pub(crate) fn replay_weighed(trace: &Path, url: &str, options: &[&str]) -> (Replayed, Option<u64>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (log, peak) = (folder.path().join("run.beat"), folder.path().join("peak"));
    let words = replay_words(trace, url, &log, options);
    let output = command(&words).env(PEAK, &peak).output().expect("this program can be started");
    let peak = std::fs::read_to_string(peak).unwrap_or_default();
    let peak = peak.split_whitespace().nth(1).and_then(|number| number.parse().ok());
    (Replayed { told: Told::of(&output), run: read(&log) }, peak)
}

/// The words of a replay.
pub(crate) fn replay_words<'a>(
    trace: &'a Path,
    url: &'a str,
    log: &'a Path,
    options: &[&'a str],
) -> Vec<&'a str> {
    // (A server that holds an answer back for good ends a check, not the test.)
    let patience = ["--request-timeout-seconds", "60"];
    let fixed = [&["replay", text(trace), "--url", url, "--output", text(log)][..], &patience];
    // What a check proves does not depend on this machine's pace.
    let limit = ["--max-lateness-us", "60000000"];
    // A model that is named need not be asked for; a plan says this one, too.
    let model = ["--model", "default"];
    let unless_given = |option: &[&'a str; 2]| match options.contains(&option[0]) {
        true => Vec::new(),
        false => option.to_vec(),
    };
    [fixed.concat(), unless_given(&limit), unless_given(&model), options.to_vec()].concat()
}

/// A log, if it is there and reads.
pub(crate) fn read(log: &Path) -> Option<Run> {
    std::fs::read(log).ok().map(|bytes| Run::read(&bytes).expect("the log reads back"))
}

/// A path as a word of a command.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// The last part of a path.
pub(crate) fn name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// A file with this text in a folder of its own.
pub(crate) struct Written {
    _folder: tempfile::TempDir,
    /// Where it is.
    pub(crate) path: PathBuf,
}

impl Written {
    /// Writes it.
    pub(crate) fn new(name: &str, bytes: impl AsRef<[u8]>) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("the folder is writable");
        Self { _folder: folder, path }
    }
}
