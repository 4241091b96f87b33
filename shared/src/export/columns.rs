//! Every exported column, once: name, unit, meaning and where its value comes from.
//!
//! CSV, JSON Lines, Parquet and the generated column reference all read these two tables. Names and
//! meanings are a stable interface: add columns at the end, never change one. An absent value is
//! `None` in every format. Times are nanoseconds from the schedule's zero.

use std::borrow::Cow;

use crate::log::{Class, HostPart, PlanRow};
use crate::metrics::attribution::{agent_wait_ns, queue_ns};
use crate::metrics::cache;
use crate::metrics::goal::GoalKind;
use crate::metrics::latency::{Metric, effective_ttft_ns, nanos};
use crate::metrics::lateness::{in_stall, lateness_ns};
use crate::metrics::slo::{self, Goals};
use crate::run::{Chunk, End, Run};
use crate::units::RunNanos;

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 64-bit signed integer.
    Int,
    /// 64-bit float.
    Float,
    /// True or false.
    Bool,
    /// UTF-8 text.
    Text,
}

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// Of a [`Kind::Int`] column.
    Int(i64),
    /// Of a [`Kind::Float`] column.
    Float(f64),
    /// Of a [`Kind::Bool`] column.
    Bool(bool),
    /// Of a [`Kind::Text`] column.
    Text(Cow<'a, str>),
}

/// One column of a table whose rows are `R`.
#[derive(Clone, Copy, Debug)]
pub struct Column<'a, R> {
    /// Its name, unit included.
    pub name: &'static str,
    /// The type of its values.
    pub kind: Kind,
    /// What it means, in one line.
    pub doc: &'static str,
    /// Its value in a row.
    pub value: fn(&R) -> Option<Value<'a>>,
}

/// A row of the table of requests.
#[derive(Clone, Copy, Debug)]
pub struct RequestRow<'a> {
    /// The run.
    pub run: &'a Run,
    /// The request's place in the plan.
    pub i: usize,
    /// Requests in flight right after it was sent, itself included.
    pub in_flight: Option<u32>,
    /// Goals for the `slo_…` columns.
    pub goals: &'a Goals,
    /// The answer that the trace recorded, if it was looked for and is there.
    pub recorded_text: Option<&'a str>,
}

/// A row of the table of chunks.
#[derive(Clone, Copy, Debug)]
pub struct ChunkRow {
    /// The request's place in the plan.
    pub request: u32,
    /// The event's place in its request, from zero.
    pub index: u32,
    /// The event.
    pub chunk: Chunk,
}

/// A column of the table of requests.
pub type RequestColumn<'a> = Column<'a, RequestRow<'a>>;

/// The columns of the table of requests, in order.
#[must_use]
pub fn request_columns<'a>() -> Vec<RequestColumn<'a>> {
    let mut columns = identity();
    columns.extend(times());
    columns.extend(ends());
    columns.extend(sizes());
    columns.extend(derived());
    columns.extend(recorded());
    columns.extend(users());
    columns.extend(machines());
    columns
}

/// The columns that only a table with recorded answers has, after all others.
#[must_use]
pub fn answer_columns<'a>() -> Vec<RequestColumn<'a>> {
    vec![
        int("recorded_output_bytes", "In the trace: bytes of the answer's text", |row| {
            row.recorded_text.map(|text| whole(text.len()))
        }),
        text("recorded_output_text", "In the trace: the answer's text", |row| {
            row.recorded_text.map(|text| Value::Text(text.into()))
        }),
    ]
}

/// The columns of the table of chunks, in order.
#[must_use]
pub fn chunk_columns() -> Vec<Column<'static, ChunkRow>> {
    let int = |name, doc, value: fn(&ChunkRow) -> Option<Value<'static>>| Column {
        name,
        kind: Kind::Int,
        doc,
        value,
    };
    vec![
        int("request", "The request's place in the plan, from zero", |row| {
            Some(Value::Int(i64::from(row.request)))
        }),
        int("index", "The content event's place in its request, from zero", |row| {
            Some(Value::Int(i64::from(row.index)))
        }),
        int("time_ns", "When the read that completed it completed", |row| {
            Some(Value::Int(row.chunk.time.0))
        }),
        int("tokens", "Its tokens: one unless the server's running usage said more", |row| {
            Some(Value::Int(i64::from(row.chunk.tokens)))
        }),
        int("bytes", "Bytes of text, reasoning and tool content in it", |row| {
            Some(Value::Int(i64::from(row.chunk.bytes)))
        }),
    ]
}

fn identity<'a>() -> Vec<RequestColumn<'a>> {
    vec![
        int("request", "Place in the plan (send order), from zero", |row| Some(whole(row.i))),
        int("row", "1-based line or row of the trace", |row| Some(long(plan(row)?.row))),
        text("session", "Name of its session", |row| {
            row.run.session_name(row.i).map(|name| Value::Text(name.into()))
        }),
        int("turn", "Turn in its session, from zero", |row| {
            Some(Value::Int(i64::from(plan(row)?.turn)))
        }),
        text("user", "The simulated user that sent it; null in runs without users", |row| {
            let users = row.run.users.as_ref()?;
            let root = users.root(row.run.plan[row.i].session)?;
            Some(Value::Text(root.name.as_str().into())).filter(|_| !root.name.is_empty())
        }),
        int(
            "core",
            "The core that sent it, or was to: its place among the run's cores, from zero",
            |row| row.run.requests.core(row.i).map(|core| Value::Int(i64::from(core.0))),
        ),
        text("target", "Base URL of the server", |row| {
            let target = row.run.requests.target(row.i)?;
            let url = row.run.manifest.targets.get(usize::from(target))?;
            Some(Value::Text(url.into()))
        }),
    ]
}

fn times<'a>() -> Vec<RequestColumn<'a>> {
    vec![
        int(
            "due_ns",
            "When the schedule asked for it; null if only its predecessor decides",
            |r| time(r.run.requests.due(r.i)),
        ),
        int("ready_ns", "When its dependencies and gates allowed it", |r| {
            time(r.run.requests.ready(r.i))
        }),
        int("sent_ns", "Right before the write of its first byte", |r| {
            time(r.run.requests.sent(r.i))
        }),
        int("sent_end_ns", "When the kernel had accepted its last byte", |r| {
            time(r.run.requests.sent_end(r.i))
        }),
        int("first_byte_ns", "First byte of the answer", |r| time(r.run.requests.first_byte(r.i))),
        int("first_token_ns", "First content event", |r| time(r.run.requests.first_token(r.i))),
        int("second_token_ns", "Second content event", |r| time(r.run.requests.second_token(r.i))),
        int("last_token_ns", "Last content event", |r| time(r.run.requests.last_token(r.i))),
        int("done_ns", "End of the exchange, in whatever way", |r| time(r.run.requests.done(r.i))),
    ]
}

fn ends<'a>() -> Vec<RequestColumn<'a>> {
    vec![
        text("outcome", "How it ended (see below); null if the log ends before it does", |row| {
            row.run.requests.outcome(row.i).map(|outcome| Value::Text(outcome.name().into()))
        }),
        int("http_status", "Status of the answer", |row| {
            row.run.requests.status(row.i).map(|status| Value::Int(i64::from(status)))
        }),
        text("error", "Cause, and the server's words if it gave any; null if it succeeded", error),
        text("finish_reason", "Why the model stopped, as the answer said", |row| {
            row.run.requests.finish(row.i).name().map(|name| Value::Text(name.into()))
        }),
    ]
}

fn sizes<'a>() -> Vec<RequestColumn<'a>> {
    vec![
        int("input_tokens_recorded", "Prompt length in the trace", |r| {
            tokens(plan(r)?.input_tokens)
        }),
        int("output_tokens_planned", "Output limit as sent", |r| tokens(plan(r)?.max_tokens)),
        int("prompt_tokens", "Prompt tokens, as the server reports", |r| {
            tokens(r.run.requests.prompt_tokens(r.i))
        }),
        int("completion_tokens", "Completion tokens, as the server reports", |r| {
            tokens(r.run.requests.completion_tokens(r.i))
        }),
        int("reasoning_tokens", "Reasoning tokens, as the server reports", |r| {
            tokens(r.run.requests.reasoning_tokens(r.i))
        }),
        int("cached_tokens", "Cached prompt tokens, as the server reports", |r| {
            tokens(r.run.requests.cached_tokens(r.i))
        }),
        int(
            "ideal_cached_tokens",
            "Longest prefix of blocks already sent, in tokens; null for a turn that repeats its \
             session, which its blocks are not of",
            |r| {
                let is_whole = !cache::repeats_turns(r.run, r.i);
                tokens(plan(r)?.ideal_cached_tokens.filter(|_| is_whole))
            },
        ),
        int("chunks", "Content events", |row| {
            row.run.requests.was_sent(row.i).then(|| whole(row.run.chunks.count(row.i)))
        }),
        int("body_bytes", "Bytes of the request's body, if rendered before the start", |row| {
            Some(long(plan(row)?.body_bytes?.get()))
        }),
        int("response_bytes", "Bytes of the answer, head included", |row| {
            row.run.requests.response_bytes(row.i).map(long)
        }),
        flag("connection_reused", "Its connection had carried an earlier request", |row| {
            row.run.requests.connection_reused(row.i).map(Value::Bool)
        }),
    ]
}

fn derived<'a>() -> Vec<RequestColumn<'a>> {
    vec![
        float("lateness_us", "Sent - max(due, ready)", |row| {
            Some(Value::Float(nanos(lateness_ns(row.run, row.i)?) / 1e3))
        }),
        flag("in_stall", "A host stall explains its lateness", |row| {
            in_stall(row.run, row.i).map(Value::Bool)
        }),
        float("ttft_ms", "First token - sent", |row| ms(row, Metric::Ttft)),
        float("ttft_from_due_ms", "First token - due", |row| ms(row, Metric::TtftFromDue)),
        float(
            "itl_ms",
            "(Last token - first token) / (completion tokens - 1); `vllm bench` calls it TPOT",
            |row| ms(row, Metric::Itl),
        ),
        float("e2e_ms", "Last token (end of an answer without content events) - sent", |row| {
            ms(row, Metric::E2e)
        }),
        float(
            "e2e_from_due_ms",
            "Last token (end of an answer without content events) - due",
            |row| ms(row, Metric::E2eFromDue),
        ),
        flag("slo_ttft", "Succeeded and meets the TTFT goal; null without one or an end", |row| {
            meets(row, GoalKind::AtMost(Metric::Ttft))
        }),
        flag("slo_decode", "Succeeded and meets the decode-speed goal; null likewise", |row| {
            meets(row, GoalKind::DecodeSpeed)
        }),
        int(
            "in_flight_at_send",
            "Requests in flight right after it was sent, itself included",
            |r| tokens(r.in_flight),
        ),
    ]
}

fn recorded<'a>() -> Vec<RequestColumn<'a>> {
    vec![
        flag("recorded_canceled", "In the trace: the client gave up", |row| {
            row.run.recorded(row.i)?.cancelled.map(Value::Bool)
        }),
        float("recorded_ttft_ms", "In the trace: first token - request", |row| {
            row.run.recorded(row.i)?.first_token_ns.map(|ns| Value::Float(nanos(ns) / 1e6))
        }),
        float("recorded_e2e_ms", "In the trace: end of the answer - request", |row| {
            row.run.recorded(row.i)?.duration_ns.map(|ns| Value::Float(nanos(ns) / 1e6))
        }),
        int("recorded_cached_tokens", "In the trace: cached prompt tokens", |row| {
            tokens(row.run.recorded(row.i)?.cached_tokens)
        }),
    ]
}

/// What only runs have that users drive; null in others.
fn users<'a>() -> Vec<RequestColumn<'a>> {
    vec![
        text(
            "trace_id",
            "What its user plays, by the trace's own name; null without users",
            |row| {
                let users = row.run.users.as_ref()?;
                let user = users.users.get(row.run.plan[row.i].session.as_usize())?;
                Some(Value::Text(user.trace_id.as_deref()?.into()))
            },
        ),
        float("queue_ms", "Ready - due: admission kept it back; null without users", |row| {
            row.run.users.as_ref()?;
            Some(Value::Float(nanos(queue_ns(row.run, row.i)?) / 1e6))
        }),
        float("agent_wait_ms", "Due - end of its own think time, if it waited for agents", |row| {
            Some(Value::Float(nanos(agent_wait_ns(row.run, row.i)?) / 1e6))
        }),
        float("effective_ttft_ms", "queue_ms + ttft_ms; null without users", |row| {
            row.run.users.as_ref()?;
            Some(Value::Float(nanos(effective_ttft_ns(row.run, row.i)?) / 1e6))
        }),
        int(
            "ideal_set_tokens",
            "Tokens of blocks of the user's request before it, in any place",
            |row| {
                row.run.users.as_ref()?;
                tokens(plan(row)?.ideal_set_tokens)
            },
        ),
    ]
}

/// Who sent it, in a run that was merged from several machines'.
fn machines<'a>() -> Vec<RequestColumn<'a>> {
    vec![
        text("host", "In a merged run: the machine that sent it, or was to", |row| {
            Some(Value::Text(machine(row)?.host.hostname.as_str().into()))
        }),
        int("shard", "In a merged run: the machine's shard of the plan", |row| {
            Some(long(u64::from(machine(row)?.shard)))
        }),
        int("cpu", "The CPU that the core was pinned to", |row| {
            let core = row.run.requests.core(row.i)?.as_usize();
            row.run.manifest.cores.get(core).map(|&cpu| long(u64::from(cpu)))
        }),
    ]
}

fn machine<'a>(row: &RequestRow<'a>) -> Option<&'a HostPart> {
    let merged = row.run.manifest.merged.as_deref()?;
    merged.hosts.get(merged.host_of(row.run.requests.core(row.i)?.0)?)
}

fn int<'a>(
    name: &'static str,
    doc: &'static str,
    value: fn(&RequestRow<'a>) -> Option<Value<'a>>,
) -> RequestColumn<'a> {
    Column { name, kind: Kind::Int, doc, value }
}

fn float<'a>(
    name: &'static str,
    doc: &'static str,
    value: fn(&RequestRow<'a>) -> Option<Value<'a>>,
) -> RequestColumn<'a> {
    Column { name, kind: Kind::Float, doc, value }
}

fn text<'a>(
    name: &'static str,
    doc: &'static str,
    value: fn(&RequestRow<'a>) -> Option<Value<'a>>,
) -> RequestColumn<'a> {
    Column { name, kind: Kind::Text, doc, value }
}

fn flag<'a>(
    name: &'static str,
    doc: &'static str,
    value: fn(&RequestRow<'a>) -> Option<Value<'a>>,
) -> RequestColumn<'a> {
    Column { name, kind: Kind::Bool, doc, value }
}

/// The plan's row, unless the log lost it.
fn plan<'a>(row: &RequestRow<'a>) -> Option<&'a PlanRow> {
    Some(&row.run.plan[row.i]).filter(|plan| plan.row != 0)
}

fn time(time: Option<RunNanos>) -> Option<Value<'static>> {
    time.map(|time| Value::Int(time.0))
}

fn tokens(tokens: Option<u32>) -> Option<Value<'static>> {
    tokens.map(|tokens| Value::Int(i64::from(tokens)))
}

fn whole(number: usize) -> Value<'static> {
    long(number as u64)
}

/// A number that no sound log lets leave 63 bits.
fn long(number: u64) -> Value<'static> {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

fn ms(row: &RequestRow<'_>, metric: Metric) -> Option<Value<'static>> {
    metric.value_ns(row.run, row.i).map(|value| Value::Float(value / 1e6))
}

fn error<'a>(row: &RequestRow<'a>) -> Option<Value<'a>> {
    let end = row.run.requests.end(row.i);
    if end == End::Known(Class::Ok) {
        return None;
    }
    let cause = end.name();
    Some(Value::Text(match row.run.error_text(row.i) {
        Some(words) => format!("{cause}: {words}").into(),
        None => cause.into(),
    }))
}

/// Whether the request succeeded and meets the goal of a kind; a failure is a miss, and so is one
/// that the plan cancelled. `None` without such a goal, and for requests that were cut off or never
/// left.
fn meets(row: &RequestRow<'_>, kind: GoalKind) -> Option<Value<'static>> {
    let goal = row.goals.list().iter().find(|goal| goal.kind == kind)?;
    slo::counts(row.run, row.i)
        .then(|| Value::Bool(row.run.requests.is_ok(row.i) && goal.is_met(row.run, row.i, false)))
}
