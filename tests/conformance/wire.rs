//! Cases of groups F and G: what a scripted server says, and what of it must be in the log.
//!
//! Every script is played to both drivers, for a session of two turns: the second repeats what was
//! said to the first, so that the text that was read is seen on the wire. Times of the manifest
//! hold as they are below; above, one of some requests has to hold them, because the machine may
//! have been doing something else.

use std::collections::BTreeSet;
use std::path::Path;

use onbeat_shared::log::{ChunkKind, Class, Outcome};
use onbeat_shared::run::Run;
use serde_json::{Value, json};

use crate::case::{Case, MILLI};
use crate::found::Findings;
use crate::product::{Replayed, Written, name, replay};
use crate::server::{NO_PYTHON, Odd};

/// Times a script is played when only the machine's pace is in the way.
const TRIES: usize = 5;
/// The drivers of sockets.
pub(crate) const DRIVERS: [&str; 2] = ["epoll", "io_uring"];

/// What must come of a script: its file, the class of its requests, and words of their error.
pub(crate) type Said = (&'static str, Class, &'static str);

/// A script that was played to a trace.
pub(crate) struct Play {
    /// What we did.
    pub(crate) replayed: Replayed,
    /// What the server saw, with the numbers of connections.
    pub(crate) seen: Vec<(u64, crate::server::Seen)>,
}

impl Play {
    /// How many connections carried a request.
    pub(crate) fn connections(&self) -> usize {
        self.seen.iter().map(|(number, _)| number).collect::<BTreeSet<_>>().len()
    }
}

/// Plays a script to a trace; `None` where there is no Python.
pub(crate) fn play(cases: &Path, script: &str, trace: &str, options: &[&str]) -> Option<Play> {
    let server = Odd::play(cases, script)?;
    let trace = Written::new("trace.jsonl", trace);
    let replayed = replay(&trace.path, &server.url(), options);
    Some(Play { replayed, seen: server.seen() })
}

/// A script's text.
pub(crate) fn script(file: &Path) -> String {
    std::fs::read_to_string(file).expect("the script can be read")
}

/// So many requests, each in a session of its own.
pub(crate) fn lone(count: usize, gap_ms: usize, output: u64) -> String {
    let row = |row: usize| {
        json!({"session_id": row.to_string(), "timestamp": row * gap_ms, "text_input": "lone",
            "output_length": output})
    };
    (0..count).map(|number| row(number).to_string() + "\n").collect()
}

/// A session of two turns.
fn turns(output: u64) -> String {
    let row = |turn: u64| {
        json!({"session_id": "s", "timestamp": turn, "text_input": format!("turn {turn}"),
            "output_length": output})
    };
    (0..2).map(|turn| row(turn).to_string() + "\n").collect()
}

/// How each script of a case ends, by its expectation and by the table.
pub(crate) fn scripts(case: &Case, said: &[Said], found: &mut Findings) {
    scripts_with(case, said, &[], found);
}

/// How each script of a case ends with these options.
pub(crate) fn scripts_with(case: &Case, said: &[Said], options: &[&str], found: &mut Findings) {
    for file in case.files.iter().filter(|file| name(file).ends_with(".srv")) {
        let stem = name(file).trim_end_matches(".srv").to_owned();
        let Some(said) = said.iter().find(|(known, ..)| *known == stem) else {
            found.wrong(format!("{stem} is a script that the table does not know"));
            continue;
        };
        // What a case's words say of a flood is not in its expectation.
        let expect = match stem.ends_with("flood") {
            true => json!({"outcome": "error"}),
            false => expected_of(&case.expect, &stem),
        };
        for driver in DRIVERS {
            let options = [&["--driver", driver], options].concat();
            for left in (0..TRIES).rev() {
                let mut now = Findings::default();
                if !script_holds((case, file), &expect, said, &options, &mut now) {
                    return found.skip(NO_PYTHON);
                }
                if left == 0 || !now.only_late() {
                    found.take(now);
                    break;
                }
            }
        }
    }
}

/// What a case expects of one of its scripts: some say it for each.
fn expected_of(expect: &Value, stem: &str) -> Value {
    let mut own = serde_json::Map::new();
    for (key, value) in expect.as_object().into_iter().flatten() {
        match value.get(stem) {
            Some(value) => drop(own.insert(key.clone(), value.clone())),
            None if key == stem => own.extend(value.as_object().cloned().unwrap_or_default()),
            // Said of another script.
            None if expect.get(stem).is_some() => {}
            None => drop(own.insert(key.clone(), value.clone())),
        }
    }
    Value::Object(own)
}

/// Whether the script could be played; what came of it is held against what must.
fn script_holds(
    (case, file): (&Case, &Path),
    expect: &Value,
    (stem, class, words): &Said,
    options: &[&str],
    found: &mut Findings,
) -> bool {
    let length = expect["text_len"].as_u64().unwrap_or(2);
    let trace = match expect["requests"].as_u64() {
        Some(requests) => lone(usize::try_from(requests).expect("few"), 80, length),
        None => turns(length),
    };
    // Before the first request a connection is opened to see whether anybody is there.
    let text = script(file).replace("conn 1\n", "conn 2\n");
    // A request that came while another is answered would need a second connection.
    let one: &[&str] = match expect["connections"].is_u64() {
        true => &["--max-connections", "1"],
        false => &[],
    };
    let Some(played) = play(&case.cases, &text, &trace, &[options, one].concat()) else {
        return false;
    };
    let run = played.replayed.log();
    let what = format!("{stem} with {}", options.join(" "));
    for i in 0..run.plan.len() {
        found.same(format!("{what}: class of request {i}"), &Some(*class), &run.requests.class(i));
        let error = run.error_text(i).unwrap_or_default();
        found.says(format!("{what}: error of request {i}"), error, &[*words]);
    }
    let code = if *class == Class::Ok { 0 } else { 3 };
    found.same(format!("{what}: exit code"), &Some(code), &played.replayed.told.code);
    if text.contains("recv") {
        found.same(format!("{what}: requests that arrived"), &run.plan.len(), &played.seen.len());
    }
    holds(expect, &played, &what, found);
    true
}

/// A run is what the expectation says, key by key; one that is not known here is wrong.
fn holds(expect: &Value, played: &Play, what: &str, found: &mut Findings) {
    let run = played.replayed.log();
    for (key, value) in expect.as_object().into_iter().flatten() {
        let what = format!("{what}: {key}");
        let number = |number: Option<u64>| number.map_or(Value::Null, Value::from);
        match key.as_str() {
            "outcome" => outcome_holds(value.as_str().expect("a word"), run, &what, found),
            "requests" => found.same(what, value, &Value::from(played.seen.len())),
            "connections" => found.same(what, value, &Value::from(played.connections())),
            "content_events" => {
                let wanted = value.as_u64().expect("a count");
                found.same(what, &wanted, &contents(run, expect["ttfo_ms"].is_array()));
            }
            "text" => {
                // Reasoning is part of a reply, before its text.
                let text = said_to_the_first(played);
                let wanted = value.as_str().expect("a text");
                found.holds(&what, text.ends_with(wanted) && text.len() < 14, &text);
                found.same(format!("{what}: bytes"), &wanted.len(), &text_bytes(run));
            }
            "text_len" => {
                let wanted = usize::try_from(value.as_u64().expect("a length")).expect("small");
                found.same(&what, &wanted, &text_bytes(run));
                found.same(&what, &wanted, &said_to_the_first(played).len());
            }
            "prompt_tokens" => {
                found.same(what, value, &number(run.requests.prompt_tokens(0).map(u64::from)));
            }
            "completion_tokens" => {
                found.same(what, value, &number(run.requests.completion_tokens(0).map(u64::from)));
            }
            "cached_tokens" => {
                found.same(what, value, &number(run.requests.cached_tokens(0).map(u64::from)));
            }
            "ttft" => found.same(what, &None, &run.requests.first_token(0)),
            "ttft_ms" => {
                span_holds(value, run, &what, |i| run.requests.first_token(i), found);
            }
            "ttfo_ms" => {
                span_holds(value, run, &what, |i| run.requests.first_output_token(i), found);
            }
            other => found.wrong(format!("the case expects {other:?}, which no check knows")),
        }
    }
}

fn outcome_holds(wanted: &str, run: &Run, what: &str, found: &mut Findings) {
    for i in 0..run.plan.len() {
        let (outcome, status) = (run.requests.outcome(i), run.requests.status(i));
        let holds = match wanted.strip_prefix("http_") {
            Some(code) => {
                outcome == Some(Outcome::HttpError)
                    && status.map(|it| it.to_string()).as_deref() == Some(code)
            }
            None if wanted == "ok" => outcome == Some(Outcome::Ok),
            None if wanted == "timeout" => outcome == Some(Outcome::Timeout),
            None => !matches!(
                outcome,
                None | Some(Outcome::Ok | Outcome::Cancelled | Outcome::NeverSent)
            ),
        };
        found.holds(
            format!("{what} {wanted:?} of request {i}"),
            holds,
            format!("{outcome:?} {status:?}"),
        );
    }
}

/// Content events of the first request; without reasoning where the case counts text alone.
fn contents(run: &Run, text_only: bool) -> u64 {
    let is_text = |kind: ChunkKind| kind.has(ChunkKind::TEXT);
    let events = run.chunks.row(0).iter().filter(|event| !text_only || is_text(event.kind));
    u64::try_from(events.count()).expect("few")
}

/// Bytes of text that the first request's events brought.
fn text_bytes(run: &Run) -> usize {
    let events = run.chunks.row(0).iter().filter(|event| event.kind.has(ChunkKind::TEXT));
    events.map(|event| event.bytes as usize).sum()
}

/// What the second turn says was said to the first.
pub(crate) fn said_to_the_first(played: &Play) -> String {
    let Some((_, second)) = played.seen.get(1) else { return String::new() };
    let body = second.json();
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let said = messages.iter().find(|message| message["role"] == "assistant");
    said.and_then(|message| message["content"].as_str()).unwrap_or_default().to_owned()
}

/// Every time from sending lies beyond the lower bound, and one within both.
fn span_holds(
    bounds: &Value,
    run: &Run,
    what: &str,
    time: impl Fn(usize) -> Option<onbeat_shared::units::RunNanos>,
    found: &mut Findings,
) {
    let bound = |at: usize| bounds[at].as_i64().expect("a bound") * MILLI;
    let took = |i| Some(time(i)?.0 - run.requests.sent(i)?.0);
    let times: Vec<i64> = (0..run.plan.len()).filter_map(took).collect();
    found.same(format!("{what}: how many"), &run.plan.len(), &times.len());
    for time in &times {
        found.holds(format!("{what} of {bounds} or more"), *time >= bound(0), time);
    }
    let soonest = times.iter().min().copied().unwrap_or(i64::MAX);
    if soonest > bound(1) {
        found.late(format!("expected {what} of {bounds}, found {soonest} ns at best"));
    }
}
