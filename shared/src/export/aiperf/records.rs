//! `profile_export.jsonl`: one line per request, as AIPerf writes it.
//!
//! Times are nanoseconds since 1970: the wall clock at the schedule's zero and the monotonic time
//! from there, so that a step of the wall clock changes none of them. The credit is issued when the
//! request could leave: the later of due and ready.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Map, Number, Value, json};

use super::values::{CHUNK_GAPS, ERROR_ISL, REQUEST_METRICS, RequestMetric, end, start};
use crate::log::{Class, Outcome};
use crate::metrics::latency::{chunk_gaps_ns, nanos};
use crate::metrics::slo::Goals;
use crate::run::Run;
use crate::units::RunNanos;

/// Status that AIPerf gives a request which its client ended.
const CANCELLED: u16 = 499;
/// Status that AIPerf gives an error inside a stream.
const STREAM_ERROR: u16 = 502;

#[derive(Serialize)]
struct Line<'a> {
    metadata: Metadata<'a>,
    metrics: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Error>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    session_num: u32,
    x_request_id: String,
    x_correlation_id: Option<&'a str>,
    conversation_id: Option<&'a str>,
    turn_index: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    credit_issued_ns: Option<u64>,
    request_start_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_ack_ns: Option<u64>,
    request_end_ns: u64,
    worker_id: String,
    record_processor_id: &'static str,
    benchmark_phase: &'static str,
    phase_index: u32,
    profiling_index: u32,
    phase_name: &'static str,
    phase_kind: &'static str,
    was_cancelled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancellation_time_ns: Option<u64>,
    context_overflow_skip: bool,
    agent_depth: u32,
    root_correlation_id: Option<&'a str>,
}

/// What went wrong, as AIPerf words it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Error {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) code: Option<u16>,
    pub(super) r#type: &'static str,
    pub(super) message: String,
}

/// Writes a line for each of the given records.
pub(super) fn write(
    run: &Run,
    goals: &Goals,
    records: impl Iterator<Item = u32>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut out = io::BufWriter::with_capacity(1 << 16, out);
    for number in records {
        let Some(metadata) = metadata(run, number) else { continue };
        let i = number as usize;
        let line = Line { metadata, metrics: metrics(run, goals, i), error: error(run, i) };
        serde_json::to_writer(&mut out, &line)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// What became of request `i`, unless it succeeded.
pub(super) fn error(run: &Run, i: usize) -> Option<Error> {
    let words = |fallback: &str| run.error_text(i).unwrap_or(fallback).to_owned();
    let class = run.requests.class(i).filter(|&class| class != Class::Ok)?;
    let status = run.requests.status(i);
    let (code, kind) = match class.outcome() {
        Outcome::Cancelled => (Some(CANCELLED), "RequestCancellationError"),
        Outcome::StreamError => (Some(STREAM_ERROR), class.name()),
        Outcome::HttpError => (status, class.name()),
        _ => (None, class.name()),
    };
    Some(Error { code, r#type: kind, message: words(class.name()) })
}

fn metadata(run: &Run, number: u32) -> Option<Metadata<'_>> {
    let i = number as usize;
    let zero = run.started_unix_ns();
    let wall = |time: RunNanos| zero.saturating_add_signed(time.0);
    let requests = &run.requests;
    let cancelled = requests.outcome(i) == Some(Outcome::Cancelled);
    let session = run.session_name(i);
    let users = run.users.as_ref();
    Some(Metadata {
        session_num: number,
        x_request_id: format!("{}-{number}", run.manifest.run_id),
        x_correlation_id: session,
        conversation_id: session,
        turn_index: run.plan[i].turn,
        credit_issued_ns: requests.intended(i).map(wall),
        request_start_ns: wall(start(run, i)?),
        request_ack_ns: requests.first_byte(i).map(wall),
        request_end_ns: wall(end(run, i)?),
        worker_id: requests.core(i).map_or("core".to_owned(), |core| format!("core_{}", core.0)),
        record_processor_id: "onbeat",
        benchmark_phase: "profiling",
        phase_index: 0,
        profiling_index: 0,
        phase_name: "profiling",
        phase_kind: "profiling",
        was_cancelled: cancelled,
        cancellation_time_ns: requests.done(i).filter(|_| cancelled).map(wall),
        context_overflow_skip: false,
        agent_depth: users.map_or(0, |users| users.depth(run.plan[i].session)),
        root_correlation_id: users
            .and_then(|users| users.root(run.plan[i].session))
            .map_or(session, |root| Some(root.name.as_str()).filter(|name| !name.is_empty())),
    })
}

fn metrics(run: &Run, goals: &Goals, i: usize) -> Map<String, Value> {
    let mut metrics = Map::new();
    let mut put = |tag: &str, unit: &str, value: Value| {
        metrics.insert(tag.to_owned(), json!({"value": value, "unit": unit}));
    };
    if !run.requests.is_ok(i) {
        if let Some(value) = number(&ERROR_ISL, run, i) {
            put(ERROR_ISL.tag, ERROR_ISL.unit, value);
        }
        return metrics;
    }
    for metric in REQUEST_METRICS {
        if let Some(value) = number(metric, run, i) {
            put(metric.tag, metric.unit, value);
        }
    }
    let gaps: Vec<f64> = chunk_gaps_ns(run, i).map(|gap| nanos(gap) / 1e6).collect();
    if !gaps.is_empty() {
        put(CHUNK_GAPS.tag, CHUNK_GAPS.unit, gaps.into());
    }
    if !goals.is_empty() {
        let good = u8::from(goals.is_good(run, i, false));
        put("good_request_count", "requests", good.into());
    }
    metrics
}

fn number(metric: &RequestMetric, run: &Run, i: usize) -> Option<Value> {
    let value = metric.value(run, i)?;
    if metric.whole {
        return Some(whole(value).into());
    }
    Number::from_f64(value).map(Value::Number)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count; float-to-integer casts saturate"
)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}
