//! A replay of ours with a command of kv-cache-tester: its words after `onbeat replay`, but for
//! paths and durations, against a server that answers at once, with as many tokens as the tool's
//! server gave.
//!
//! Pauses are cut short by `--time-scale`, which comes after everything that decides their length.
//! A run that would not end by itself is interrupted when the server has got what is waited for, so
//! that nothing depends on the pace of this machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use onbeat_shared::run::Run;
use serde_json::{Value, json};

use crate::open_loop::rest;
use crate::product::{Told, command, read, text};
use crate::recorded::{Arrival, Tables, arrivals_of};
use crate::server::{Recorder, Seen, reply_of, whole};

/// How long a run is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// What the tool's server called itself.
pub(crate) const MODEL: &str = "Qwen3-Coder-mock";
/// Options of ours: what a run shows does not depend on how late this machine was.
const OURS: [&str; 6] =
    ["--max-lateness-us", "60000000", "--request-timeout-seconds", "60", "--ui", "none"];

/// What is replayed, and how.
pub(crate) struct Command<'a> {
    /// The folder that the command's paths are in.
    pub(crate) folder: &'a Path,
    /// The tool's words.
    pub(crate) words: &'a str,
    /// `--time-scale`.
    pub(crate) scale: &'a str,
    /// Words of ours.
    pub(crate) more: &'a [&'a str],
}

impl Command<'_> {
    /// The words after `onbeat`; the last of them are ours.
    fn all(&self, url: &str, log: &Path, files: &Path) -> Vec<String> {
        let mut words = vec!["replay".to_owned()];
        let mut tool = self.words.split_whitespace();
        while let Some(word) = tool.next() {
            let value = match word {
                // (Each has a value, which is let go with it.)
                "--test-duration" | "--time-scale" => {
                    let _ = tool.next();
                    continue;
                }
                "--trace-directory" | "--tokenizer" => {
                    tool.next().map(|name| text(&self.folder.join(name)).to_owned())
                }
                "--assessment-period" => tool.next().map(|_| "1".to_owned()),
                _ => None,
            };
            words.extend(std::iter::once(word.to_owned()).chain(value));
        }
        let paths = ["--output", text(log), "--output-dir", text(files)];
        let ours = ["--time-scale", self.scale, "--api-endpoint", url];
        let ours = ours.iter().chain(&paths).chain(&OURS).chain(self.more);
        words.extend(ours.map(|&word| word.to_owned()));
        words
    }

    /// The value of an option; `None` where the command does not have it.
    pub(crate) fn value(&self, option: &str) -> Option<&str> {
        self.words.split_whitespace().skip_while(|word| *word != option).nth(1)
    }

    /// The conversations it plays: by trace id, and by that and the agent's of a sub-agent, the
    /// entries of the list.
    pub(crate) fn lists(&self) -> BTreeMap<String, Vec<Value>> {
        let folder = self.folder.join(self.value("--trace-directory").unwrap_or_default());
        let mut lists = BTreeMap::new();
        for file in crate::oracle::traces(&folder) {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            let one: Value = serde_json::from_str(&text).unwrap_or_default();
            gather(one["id"].as_str().unwrap_or_default(), &one, &mut lists);
        }
        lists
    }
}

fn gather(id: &str, own: &Value, lists: &mut BTreeMap<String, Vec<Value>>) {
    let entries = own["requests"].as_array().cloned().unwrap_or_default();
    for entry in entries.iter().filter(|entry| is_agent(entry)) {
        gather(&format!("{id}:{}", entry["agent_id"].as_str().unwrap_or_default()), entry, lists);
    }
    lists.insert(id.to_owned(), entries);
}

/// Whether an entry of a conversation's list is a sub-agent.
pub(crate) fn is_agent(entry: &Value) -> bool {
    entry["type"] == "subagent"
}

/// A replay that has ended.
pub(crate) struct Played {
    /// What was said.
    pub(crate) told: Told,
    /// The log, if there is one.
    pub(crate) run: Option<Run>,
    /// The tables in the output folder.
    pub(crate) tables: Tables,
    /// What arrived at the server, in order.
    pub(crate) arrivals: Vec<Arrival>,
    /// The names of the output folder's files.
    pub(crate) files: Vec<String>,
    /// The waits that the tables say a request was given, by row of the table of requests: user and
    /// seconds.
    pub(crate) waits: Vec<(String, Option<f64>)>,
    /// Whether it had to be given up.
    pub(crate) hung: bool,
}

/// The server of the oracle: a list of one model, answers of so many tokens.
pub(crate) fn answer(seen: &Seen, tokens: impl Fn(u64) -> u64) -> Vec<u8> {
    if seen.line.contains("/v1/models") {
        let list = json!({"object": "list", "data": [{"id": MODEL, "object": "model"}]});
        return whole("application/json", &list.to_string());
    }
    let body = seen.json();
    reply_of(&body, tokens(body["max_tokens"].as_u64().unwrap_or(0)))
}

/// Replays against a server; interrupts the run as soon as `is_enough` of what has arrived.
pub(crate) fn play(
    given: &Command<'_>,
    server: &Recorder,
    is_enough: impl Fn(&[Seen]) -> bool,
) -> Played {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (log, files) = (folder.path().join("run.beat"), folder.path().join("files"));
    let words = given.all(&server.url(), &log, &files);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (out, err) = (folder.path().join("out"), folder.path().join("err"));
    let stream = |path: &PathBuf| Stdio::from(std::fs::File::create(path).expect("writable"));
    let mut child = command(&words)
        .stdout(stream(&out))
        .stderr(stream(&err))
        .spawn()
        .expect("this program can be started");
    let deadline =
        onbeat::clock::monotonic_ns() + i64::try_from(PATIENCE.as_nanos()).expect("small");
    let (mut interrupted, mut hung) = (false, false);
    let status = loop {
        if let Some(status) = child.try_wait().expect("it is ours") {
            break status;
        }
        if !interrupted && server.look(&is_enough) {
            interrupted = true;
            let id = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process(id, rustix::process::Signal::INT).expect("it runs");
        }
        if onbeat::clock::monotonic_ns() > deadline {
            hung = true;
            let _ = child.kill();
        }
        rest(Duration::from_millis(20));
    };
    let said = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    let names = std::fs::read_dir(&files).into_iter().flatten().flatten();
    let waits = ["user_id", "delay_expected"];
    let waits = crate::tool_runs::table(&files.join("detailed_results.csv"), &waits);
    Played {
        told: Told { code: status.code(), out: said(&out), err: said(&err) },
        run: read(&log),
        tables: Tables::of(&files),
        arrivals: server.look(arrivals_of),
        files: names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect(),
        waits: waits.into_iter().map(|row| (row[0].clone(), row[1].parse().ok())).collect(),
        hung,
    }
}

/// No run is interrupted.
pub(crate) fn to_its_end(_: &[Seen]) -> bool {
    false
}
