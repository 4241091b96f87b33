//! What AIPerf sent on known traces, held against what we plan and send of them.
//!
//! Bodies are compared as JSON with the order of keys, but for the text of prompts that are made up
//! on both sides; the times of AIPerf's own records against our schedule, within what its loop is
//! late by (these are stored figures: nothing here depends on this machine's pace).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use onbeat_shared::log::Class;
use serde_json::{Value, json};

use crate::Item;
use crate::case::MILLI;
use crate::found::{Findings, outcome};
use crate::product::{Planned, Row, planned, replay};
use crate::server::{Recorder, Seen, headers, value_of};

/// How late AIPerf's own loop is at most in the captures.
const ITS_LATENESS_NS: i64 = 15 * MILLI;
/// What AIPerf writes before a session's name.
const PREFIX: &str = "fixed-schedule-";

/// How later turns of a session follow from earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turns {
    /// Each is as recorded.
    Alone,
    /// Each goes on after the server's own answers.
    Deltas,
}

/// A run of AIPerf's.
struct Captured {
    name: &'static str,
    trace: &'static str,
    turns: Turns,
    /// The same options as we have them, beside the model, the session column and the seed.
    options: &'static [&'static str],
}

#[rustfmt::skip]
const CAPTURES: &[Captured] = &[
    Captured { name: "baseten_default", trace: "tiny_baseten.parquet", turns: Turns::Alone,
        options: &["--extra-inputs", "temperature:0.5"] },
    Captured { name: "baseten_closed", trace: "tiny_baseten.parquet", turns: Turns::Alone,
        options: &["--no-open-loop-replay", "--inter-turn-delay-cap-seconds", "0.25"] },
    Captured { name: "baseten_strict", trace: "tiny_baseten.parquet", turns: Turns::Alone,
        options: &["--open-loop-strict", "--replay-speedup", "2", "--max-idle-gap-cap-seconds",
            "0.1", "--omit-kv-hints", "--no-force-min-tokens"] },
    Captured { name: "baseten_nonstream", trace: "tiny_baseten.parquet", turns: Turns::Alone,
        options: &["--no-streaming"] },
    Captured { name: "bailian", trace: "tiny_bailian.jsonl", turns: Turns::Deltas, options: &[] },
    Captured { name: "bailian_cancel", trace: "tiny_bailian.jsonl", turns: Turns::Deltas,
        options: CANCELLED },
    Captured { name: "mooncake", trace: "tiny_mooncake.jsonl", turns: Turns::Deltas, options: &[] },
];

const CANCELLED: &[&str] =
    &["--request-cancellation-rate", "60", "--request-cancellation-delay", "0.03"];
const SAME: &[&str] =
    &["--model", "mock-model", "--session-key", "provided", "--random-seed", "42"];
const ALONE: &[&str] = &["--context-mode", "message_array_with_responses"];
const DELTAS: &[&str] = &["--context-mode", "deltas_without_responses"];

/// Session and turn.
type Key = (String, u64);

/// A captured request.
struct Sent {
    line: String,
    headers: Vec<(String, String)>,
    body: Value,
}

/// A check for every capture there is, and a failure for one that is not known.
pub(crate) fn items(folder: &Path) -> Vec<Item> {
    let mut names: Vec<String> = std::fs::read_dir(folder.join("out"))
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort_unstable();
    let item = |name: String| {
        let folder = folder.to_owned();
        let known = CAPTURES.iter().find(|capture| capture.name == name);
        Item {
            name: format!("aiperf:{name}"),
            check: Box::new(move || {
                outcome(|found| match known {
                    Some(capture) => check(capture, &folder, found),
                    None => found.wrong("a capture that no check knows"),
                })
            }),
        }
    };
    names.into_iter().map(item).collect()
}

fn check(capture: &Captured, folder: &Path, found: &mut Findings) {
    let trace = folder.join("traces").join(capture.trace);
    let out = folder.join("out").join(capture.name);
    let sent = sent(&out);
    let recorded = recorded_texts(&trace);
    let options = [SAME, capture.options].concat();
    let is_cancelling = capture.options == CANCELLED;
    let own_turns = if capture.turns == Turns::Deltas { ALONE } else { &[] };
    let plan = planned(&trace, &[&options, own_turns].concat(), found);
    let planned_keys: BTreeSet<Key> = plan.rows.iter().map(key).collect();
    found.same("sessions and turns", &sent.keys().cloned().collect(), &planned_keys);
    for row in &plan.rows {
        let key = key(row);
        if let Some(theirs) = sent.get(&key)
            && (capture.turns == Turns::Alone || row.turn == 0)
        {
            let theirs = without_synthesis(&theirs.body, &recorded);
            let ours = without_synthesis(row.body(), &recorded);
            found.same(format!("planned body of {key:?}"), &theirs, &ours);
        }
    }
    schedule(&out, &plan, found);
    let cancelled = if is_cancelling { cancelled(&out, &plan, found) } else { BTreeSet::new() };
    let wire = Wire { capture, sent: &sent, recorded: &recorded, cancelled };
    wire.check(&trace, &options, found);
}

/// The requests of a capture by session and turn.
fn sent(out: &Path) -> BTreeMap<Key, Sent> {
    let text = std::fs::read_to_string(out.join("capture.jsonl")).expect("a capture");
    let mut turns = BTreeMap::new();
    let mut sent = BTreeMap::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).expect("a capture is JSON Lines");
        let Some(head) = line["head"].as_str().filter(|head| head.starts_with("POST ")) else {
            continue;
        };
        let mut lines = head.lines();
        let (line_sent, headers) = (lines.next().unwrap_or_default(), headers(lines));
        let session = value_of(&headers, "x-correlation-id").expect("a session");
        let session = session.strip_prefix(PREFIX).expect("AIPerf's prefix");
        let next = turns.entry(session.to_owned()).or_insert(0_u64);
        let key = apart(session, *next);
        *next += 1;
        let body = line["body"].as_str().expect("a body");
        let body = serde_json::from_str(body).expect("a body is JSON");
        sent.insert(key, Sent { line: line_sent.to_owned(), headers, body });
    }
    sent
}

/// AIPerf makes a session of every turn where none waits for another, and numbers them: `s#2`.
fn apart(session: &str, turn: u64) -> Key {
    match session.rsplit_once('#') {
        Some((session, number)) if number.parse::<u64>().is_ok() => {
            (session.to_owned(), number.parse().unwrap_or_default())
        }
        _ => (session.to_owned(), turn),
    }
}

fn key(row: &Row) -> Key {
    (row.session.clone(), row.turn)
}

/// The prompts that the trace holds as texts.
fn recorded_texts(trace: &Path) -> BTreeSet<String> {
    let text = std::fs::read(trace).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    text.unwrap_or_default()
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|row| Some(row["text_input"].as_str()?.to_owned()))
        .collect()
}

/// A body as text, keys in their order, without the words of prompts that were made up.
fn without_synthesis(body: &Value, recorded: &BTreeSet<String>) -> String {
    let mut body = body.clone();
    for message in body["messages"].as_array_mut().into_iter().flatten() {
        let is_recorded = message["content"].as_str().is_some_and(|text| recorded.contains(text));
        if message["role"] == "user" && !is_recorded {
            message["content"] = json!("(made up)");
        }
    }
    if body["messages"].is_null() {
        // Asking for a key that is not there adds none to what is compared.
        body.as_object_mut().expect("a body is an object").shift_remove("messages");
    }
    body.to_string()
}

/// AIPerf's own records of a run, in the order it let requests go.
fn its_records(out: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(out.join("art/profile_export.jsonl")).expect("its records");
    let mut records: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON Lines")["metadata"].clone())
        .collect();
    records.sort_by_key(|record| record["credit_issued_ns"].as_i64());
    records
}

/// When AIPerf let each request go is when we mean to; where a turn waits, it waited as long.
fn schedule(out: &Path, plan: &Planned, found: &mut Findings) {
    let records = its_records(out);
    let at = |record: &Value, key: &str| record[key].as_i64().expect("a time");
    let zero = records.first().map_or(0, |record| at(record, "credit_issued_ns"));
    let mut ends: BTreeMap<String, i64> = BTreeMap::new();
    for record in &records {
        let conversation = record["conversation_id"].as_str().expect("a session");
        let turn = record["turn_index"].as_u64().expect("a turn");
        let wanted = apart(conversation, turn);
        let Some(row) = plan.rows.iter().find(|row| key(row) == wanted) else {
            found.wrong(format!("{wanted:?} was sent by AIPerf and is not planned"));
            continue;
        };
        let issued = at(record, "credit_issued_ns");
        let (what, ours, theirs) = match (row.due_ns, row.think_ns) {
            (Some(due), None) => ("due", due, issued - zero),
            (None, Some(think)) => {
                let end = ends.get(&wanted.0).copied().unwrap_or_default();
                ("think time", think, issued - end)
            }
            times => {
                found.wrong(format!("{wanted:?}: expected a due or a think time, found {times:?}"));
                continue;
            }
        };
        let near = (theirs - ours).abs() <= ITS_LATENESS_NS;
        found.holds(format!("{what} of {wanted:?} near its {theirs} ns"), near, ours);
        ends.insert(wanted.0, at(record, "request_end_ns"));
    }
}

/// The same requests are cancelled; which of the capture were, in fact. (One that is drawn and ends
/// before its delay is over is an ordinary one.)
fn cancelled(out: &Path, plan: &Planned, found: &mut Findings) -> BTreeSet<Key> {
    let mut cancelled = BTreeSet::new();
    for record in its_records(out) {
        let session = record["conversation_id"].as_str().expect("a session");
        let wanted = (session.to_owned(), record["turn_index"].as_u64().expect("a turn"));
        let row = plan.rows.iter().find(|row| key(row) == wanted).expect("it is planned");
        let drawn = row.value["cancel_after_ns"].as_i64();
        let took = record["request_end_ns"].as_i64().zip(record["request_start_ns"].as_i64());
        let took = took.map(|(end, start)| end - start);
        let was = record["was_cancelled"] == true;
        let alike = was == drawn.is_some() || (!was && took < drawn);
        found.holds(format!("{wanted:?} cancelled: {was}"), alike, format!("{drawn:?}"));
        if was {
            found.same(format!("the delay of {wanted:?}"), &Some(30 * MILLI), &drawn);
            cancelled.insert(wanted);
        }
    }
    cancelled
}

/// What arrives at a server is what arrived at AIPerf's: path, headers that matter, body.
struct Wire<'a> {
    capture: &'a Captured,
    sent: &'a BTreeMap<Key, Sent>,
    recorded: &'a BTreeSet<String>,
    cancelled: BTreeSet<Key>,
}

impl Wire<'_> {
    fn check(&self, trace: &Path, options: &[&str], found: &mut Findings) {
        let context = if self.capture.turns == Turns::Deltas { DELTAS } else { &[] };
        let limit = |key: &Key| self.sent[key].body["max_completion_tokens"].clone();
        // Answers that were cancelled have no end here either; their lengths tell which they are.
        let held: Vec<Value> = self.cancelled.iter().map(limit).collect();
        let server =
            Recorder::holding(move |seen| held.contains(&seen.json()["max_completion_tokens"]));
        let replayed = replay(trace, &server.url(), &[options, context].concat());
        found.same("exit code", &Some(0), &replayed.told.code);
        let requests = &replayed.log().requests;
        let ends = (0..requests.len()).filter_map(|i| requests.class(i));
        let cancelled = ends.filter(|class| *class == Class::CancelledByPlan).count();
        found.same("requests that are cancelled", &self.cancelled.len(), &cancelled);
        let (mut turns, mut ids) = (BTreeMap::new(), BTreeSet::new());
        let arrived = server.seen();
        found.same("requests that arrive", &self.sent.len(), &arrived.len());
        for seen in &arrived {
            let session = seen.header("x-correlation-id").unwrap_or_default().to_owned();
            let turn = turns.entry(session.clone()).or_insert(0_u64);
            let key = (session, *turn);
            *turn += 1;
            let id = seen.header("x-request-id").unwrap_or_default().to_owned();
            found.holds("a request id of its own", !id.is_empty() && ids.insert(id), "another's");
            match self.sent.get(&key) {
                Some(theirs) => self.same(&key, theirs, seen, found),
                None => found.wrong(format!("{key:?} arrives and was not sent by AIPerf")),
            }
        }
    }

    fn same(&self, key: &Key, theirs: &Sent, ours: &Seen, found: &mut Findings) {
        found.same(format!("request line of {key:?}"), &theirs.line, &ours.line);
        for name in ["accept", "content-type"] {
            let theirs = value_of(&theirs.headers, name);
            found.same(format!("{name} of {key:?}"), &theirs, &ours.header(name));
        }
        let theirs = without_synthesis(&theirs.body, self.recorded);
        let ours = without_synthesis(&ours.json(), self.recorded);
        found.same(format!("body of {key:?} on the wire"), &theirs, &ours);
    }
}

/// A file of the folder of traces.
pub(crate) fn traces(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    files.sort_unstable();
    files
}
