//! A run as a timeline for Perfetto and `chrome://tracing`: the trace-event format, a JSON array.
//!
//! | group | a track is | on it |
//! |---|---|---|
//! | run | – | counters: requests in flight, output tokens per second; the schedule's zero |
//! | sessions | a session or user | a slice per request, its phases inside; content events |
//! | connections | a connection of a core | its opening, a slice per request it carried |
//! | cores of a host | a core | host stalls as slices, sendings as instants |
//!
//! A request's slice goes from when it could leave to its end; what never left is an instant. A
//! session whose requests overlap has more tracks than one, and so has a connection.
//!
//! Times are microseconds from the schedule's zero, or from the first connection if that was
//! opened before it: the instant `zero` says. Events are written as they are found, by track;
//! readers sort them. Beside the run itself this holds some 30 bytes per request, and nothing per
//! content event. What is not known is null in an event's `args`, or not there. Phases are
//! [`crate::metrics::phases`]'s, figures [`crate::metrics`]'s.

mod events;
mod lanes;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{self, Write};

use events::{Events, Track};
use lanes::Lanes;
use serde::Serialize;
use serde_json::{Value, json};

use crate::log::{ChunkKind, Class};
use crate::metrics::Metric;
use crate::metrics::concurrency::{Phase, phase};
use crate::metrics::latency::{count, nanos};
use crate::metrics::lateness::lateness_ns;
use crate::metrics::phases::{Openings, phases};
use crate::metrics::selection::Selection;
use crate::metrics::throughput::last_stamp;
use crate::metrics::tokens;
use crate::run::{Connect, Run};
use crate::units::{CoreIndex, NANOS_PER_SECOND, RunNanos};

/// Writes the whole timeline.
///
/// # Errors
/// If writing fails; a closed pipe keeps its kind.
pub fn write(run: &Run, out: impl Write) -> io::Result<()> {
    write_of(&Selection::new(run, None), out)
}

/// Writes what of it is about some requests; of openings, stalls and counters, what is in their
/// range.
///
/// # Errors
/// If writing fails; a closed pipe keeps its kind.
pub fn write_of(chosen: &Selection<'_>, out: impl Write) -> io::Result<()> {
    let mut events = Events::begin(out, earliest(chosen))?;
    counters(chosen, &mut events)?;
    sessions(chosen, &mut events)?;
    connections(chosen, &mut events)?;
    cores(chosen, &mut events)?;
    events.finish()
}

/// The earliest instant that is shown; zero if nothing is before it.
fn earliest(chosen: &Selection<'_>) -> i64 {
    let run = chosen.run();
    let connects = openings_of(chosen).map(|connect| connect.start.0);
    let stalls = run.stalls.all().iter().map(|stall| stall.start);
    let stalls = stalls.filter(|&start| chosen.holds(start)).map(|start| start.0);
    let requests = chosen.requests().filter_map(|i| Some(span(run, i)?.0));
    connects.chain(stalls).chain(requests).chain([0]).min().unwrap_or(0)
}

/// Connections that were opened in the range.
fn openings_of<'a>(chosen: &Selection<'a>) -> impl Iterator<Item = &'a Connect> + use<'a> {
    let (chosen, connects) = (*chosen, &chosen.run().connects);
    connects.iter().filter(move |connect| chosen.holds(connect.start))
}

/// From when request `i` could leave to when it was last heard of; `None` if neither is known.
fn span(run: &Run, i: usize) -> Option<(i64, i64)> {
    let requests = &run.requests;
    let start = match (requests.intended(i), requests.sent(i)) {
        (Some(intended), Some(sent)) => intended.min(sent),
        (intended, sent) => intended.or(sent)?,
    };
    Some((start.0, last_stamp(run, i).map_or(start.0, |end| end.0.max(start.0))))
}

/// Levels count every request, also those that are not chosen.
fn counters<W: Write>(chosen: &Selection<'_>, events: &mut Events<W>) -> io::Result<()> {
    let run = chosen.run();
    let process = events.process("run")?;
    let track = events.track(process, "schedule")?;
    let facts = json!({"run": run.manifest.run_id, "unix_ns": run.started_unix_ns()});
    events.instant(track, 0, ("schedule", "zero"), &facts)?;
    let mut changes = Vec::with_capacity(2 * run.requests.len());
    for i in 0..run.requests.len() {
        if let Some((start, end)) = phase(run, i, Phase::InFlight, None) {
            // At one instant ends come first.
            changes.extend([(start.0, true), (end.0.max(start.0), false)]);
        }
    }
    changes.sort_unstable();
    let mut in_flight = 0_i32;
    // What there was when the range begins is said there.
    let mut before = chosen.begins().map(|begin| (begin.0, 0));
    for at in changes.chunk_by(|a, b| a.0 == b.0) {
        let time = at[0].0;
        if let Some((begin, level)) = before.take_if(|(begin, _)| time >= *begin) {
            events.counter(process, begin, "requests in flight", f64::from(level))?;
        }
        in_flight += at.iter().map(|change| if change.1 { 1 } else { -1 }).sum::<i32>();
        before = before.map(|(begin, _)| (begin, in_flight));
        if chosen.holds(RunNanos(time)) {
            events.counter(process, time, "requests in flight", f64::from(in_flight))?;
        }
    }
    for (second, tokens) in tokens_by_second(run) {
        let time = second.saturating_mul(NANOS_PER_SECOND);
        if chosen.holds(RunNanos(time)) {
            events.counter(process, time, "output tokens per second", tokens)?;
        }
    }
    Ok(())
}

/// Completion tokens of all requests by the second in which they came, with a zero after each
/// stretch of seconds.
fn tokens_by_second(run: &Run) -> BTreeMap<i64, f64> {
    let mut seconds = BTreeMap::new();
    for i in 0..run.requests.len() {
        let Some(weight) = tokens::per_chunk_token(run, i) else { continue };
        for chunk in run.chunks.row(i).iter() {
            let second = chunk.time.0.div_euclid(NANOS_PER_SECOND);
            *seconds.entry(second).or_insert(0.0) += f64::from(chunk.tokens) * weight;
        }
    }
    let after: Vec<i64> = seconds.keys().map(|second| second + 1).collect();
    for second in after {
        seconds.entry(second).or_insert(0.0);
    }
    seconds
}

fn sessions<W: Write>(chosen: &Selection<'_>, events: &mut Events<W>) -> io::Result<()> {
    let run = chosen.run();
    let name = if run.users.is_some() { "users" } else { "sessions" };
    let process = events.process(name)?;
    let openings = Openings::of(run);
    let mut order: Vec<(u32, i64, u32)> = chosen
        .requests()
        .filter_map(|i| Some((run.plan[i].session.0, span(run, i)?.0, u32::try_from(i).ok()?)))
        .collect();
    order.sort_unstable();
    let mut lanes = Lanes::of(process);
    for session in order.chunk_by(|a, b| a.0 == b.0) {
        lanes.next_owner();
        for i in session.iter().map(|row| row.2 as usize) {
            let Some(bounds) = span(run, i) else { continue };
            let owner = || match run.session_name(i) {
                Some(name) => name.to_owned(),
                None => format!("session {}", run.plan[i].session.0),
            };
            let track = lanes.free(events, owner, bounds)?;
            request(run, &openings, i, track, events)?;
        }
    }
    Ok(())
}

/// A request with its phases and content events, or the instant at which it should have left.
fn request<W: Write>(
    run: &Run,
    openings: &Openings,
    i: usize,
    track: Track,
    events: &mut Events<W>,
) -> io::Result<()> {
    let Some((start, end)) = span(run, i) else { return Ok(()) };
    let name = format!("request {i}");
    let Some(phases) = phases(run, openings, i) else {
        return events.instant(track, start, ("request", &name), &facts(run, i));
    };
    let end = phases.end.or(phases.last_token).map_or(end, |last| last.0.max(end));
    events.start(track, start, ("request", &name), &facts(run, i))?;
    let none = serde_json::Map::new();
    let stretch = |events: &mut Events<W>, name, (from, to): (i64, i64)| {
        if from < to {
            events.start(track, from, ("phase", name), &none)?;
            events.end(track, to)?;
        }
        io::Result::Ok(())
    };
    let sent = phases.sent.0;
    match phases.connect.map(|connect| connect.0.max(start)).filter(|&connect| connect < sent) {
        Some(connect) => {
            stretch(events, "late", (start, connect))?;
            stretch(events, "connect", (connect, sent))?;
        }
        None => stretch(events, "late", (start, sent))?,
    }
    let (first, last) = (phases.first_token, phases.last_token);
    let (name, answered) = first.map_or(("answer", end), |first| ("prefill", first.0));
    events.start(track, sent, ("phase", name), &none)?;
    stretch(events, "send", (sent, phases.accepted.0))?;
    events.end(track, answered)?;
    if let (Some(first), Some(last)) = (first, last) {
        stretch(events, "decode", (first.0, last.0))?;
        stretch(events, "tail", (last.0, end))?;
    }
    for chunk in run.chunks.row(i).iter() {
        let facts = ChunkFacts { tokens: chunk.tokens, bytes: chunk.bytes };
        let time = chunk.time.0.clamp(start, end);
        events.instant(track, time, ("chunk", content(chunk.kind)), &facts)?;
    }
    events.end(track, end)
}

/// What is said of a content event; there are many.
#[derive(Serialize)]
struct ChunkFacts {
    tokens: u32,
    bytes: u32,
}

/// What a content event carried.
fn content(kind: ChunkKind) -> &'static str {
    match kind {
        ChunkKind::TEXT => "text",
        ChunkKind::REASONING => "reasoning",
        ChunkKind::TOOL => "tool",
        _ => "content",
    }
}

fn facts(run: &Run, i: usize) -> Value {
    let requests = &run.requests;
    let ms = |metric: Metric| metric.value_ns(run, i).map(|value| value / 1e6);
    json!({
        "request": i,
        "row": Some(run.plan[i].row).filter(|&row| row != 0),
        "turn": run.plan[i].turn,
        "core": requests.core(i).map(|core| core.0),
        "end": requests.end(i).name(),
        "error": run.error_text(i),
        "http_status": requests.status(i),
        "due_ns": requests.due(i).map(|time| time.0),
        "sent_ns": requests.sent(i).map(|time| time.0),
        "lateness_us": lateness_ns(run, i).map(|late| nanos(late) / 1e3),
        "ttft_ms": ms(Metric::Ttft),
        "itl_ms": ms(Metric::Itl),
        "e2e_ms": ms(Metric::E2e),
        "prompt_tokens": requests.prompt_tokens(i),
        "completion_tokens": requests.completion_tokens(i),
        "cached_tokens": requests.cached_tokens(i),
    })
}

/// What a connection did.
#[derive(Clone, Copy)]
enum Carried<'a> {
    Opening(&'a Connect),
    Request(u32),
}

fn connections<W: Write>(chosen: &Selection<'_>, events: &mut Events<W>) -> io::Result<()> {
    let run = chosen.run();
    let process = events.process("connections")?;
    let openings = openings_of(chosen).map(|connect| {
        let key = (connect.core.0, connect.connection);
        (key, connect.start.0, connect.end.0.max(connect.start.0), Carried::Opening(connect))
    });
    let carried = chosen.requests().filter_map(|i| {
        let number = u32::try_from(i).ok()?;
        let requests = &run.requests;
        let key = (requests.core(i)?.0, requests.connection(i)?);
        let sent = requests.sent(i)?.0;
        let end = last_stamp(run, i).map_or(sent, |end| end.0.max(sent));
        Some((key, sent, end, Carried::Request(number)))
    });
    let mut rows: Vec<_> = openings.chain(carried).collect();
    rows.sort_by_key(|row| (row.0, row.1, row.2));
    let mut lanes = Lanes::of(process);
    for connection in rows.chunk_by(|a, b| a.0 == b.0) {
        lanes.next_owner();
        for &((core, number), start, end, what) in connection {
            let owner = || format!("core {core}, connection {number}");
            let track = lanes.free(events, owner, (start, end))?;
            let (name, facts) = match what {
                Carried::Opening(connect) => ("connect".to_owned(), opening(run, connect)),
                Carried::Request(i) => (format!("request {i}"), json!({"request": i})),
            };
            events.start(track, start, ("connection", &name), &facts)?;
            events.end(track, end)?;
        }
    }
    Ok(())
}

fn opening(run: &Run, connect: &Connect) -> Value {
    json!({
        "target": run.manifest.targets.get(usize::from(connect.target)),
        "error": Some(connect.class.name()).filter(|_| connect.class != Class::Ok),
        "errno": Some(connect.errno).filter(|&errno| errno != 0),
    })
}

/// Stalls and sendings, core by core and host by host.
fn cores<W: Write>(chosen: &Selection<'_>, events: &mut Events<W>) -> io::Result<()> {
    let run = chosen.run();
    let sent =
        |i: usize| Some((run.requests.core(i)?, run.requests.sent(i)?.0, u32::try_from(i).ok()?));
    let mut sends: Vec<(CoreIndex, i64, u32)> = chosen.requests().filter_map(sent).collect();
    sends.sort_unstable();
    let mut known: Vec<CoreIndex> = sends.iter().map(|send| send.0).collect();
    known.extend(run.stalls.all().iter().map(|stall| stall.core));
    known.extend((0_u16..).zip(&run.manifest.cores).map(|(core, _)| CoreIndex(core)));
    known.sort_unstable();
    known.dedup();
    let mut processes = BTreeMap::new();
    for core in known {
        let host = run.manifest.merged.as_ref().and_then(|merged| merged.host_of(core.0));
        let process = match processes.get(&host) {
            Some(&process) => process,
            None => {
                let process = events.process(&group(run, host))?;
                processes.insert(host, process);
                process
            }
        };
        let track = events.track(process, &format!("core {}", core.0))?;
        // They ascend, but one may begin before the one before it has ended.
        let mut free = i64::MIN;
        for stall in run.stalls.of_core(core).iter().filter(|stall| chosen.holds(stall.start)) {
            let ms = count(stall.length_ns) / 1e6;
            let facts = json!({"start_ns": stall.start.0, "length_ms": ms});
            let start = stall.start.0.max(free);
            free = stall.end().0.max(start);
            events.start(track, start, ("stall", "host stall"), &facts)?;
            events.end(track, free)?;
        }
        let from = sends.partition_point(|send| send.0 < core);
        let to = sends.partition_point(|send| send.0 <= core);
        for &(_, sent, number) in &sends[from..to] {
            let late = lateness_ns(run, number as usize).map(|late| nanos(late) / 1e3);
            let facts = json!({"request": number, "lateness_us": late});
            events.instant(track, sent, ("send", "sent"), &facts)?;
        }
    }
    Ok(())
}

/// What the cores of a host are called.
fn group(run: &Run, host: Option<usize>) -> String {
    match host.zip(run.manifest.merged.as_ref()) {
        Some((host, merged)) => format!("cores of {}", merged.hosts[host].name()),
        None => format!("cores of {}", run.manifest.host.hostname),
    }
}
