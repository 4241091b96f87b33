//! Which of AIPerf's numbers one request has, and from which of ours each comes.
//!
//! Tags, names and units are AIPerf 0.13's; a number that we do not know, or that means something
//! else there, has no row here. Tokens are the server's counts, else content events and recorded
//! lengths. Definitions are AIPerf's too: an answer that came as one content event has an
//! inter-token latency of 0 here, where our own report has none.

use crate::metrics::latency::{Metric, count, nanos, tokens_per_s_per_user};
use crate::metrics::throughput::last_stamp;
use crate::metrics::{latency, tokens};
use crate::run::Run;
use crate::units::RunNanos;

/// Most tokens by which an answer may miss its length before AIPerf calls it a mismatch.
const MISMATCH_TOKENS: f64 = 50.0;
/// The same as a share of the length.
const MISMATCH_SHARE: f64 = 0.05;

/// One number of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestMetric {
    pub(super) tag: &'static str,
    pub(super) header: &'static str,
    pub(super) unit: &'static str,
    /// Whether it is a whole number.
    pub(super) whole: bool,
    /// Its value in its unit.
    pub(super) value: fn(&Run, usize) -> Option<f64>,
}

/// What requests have, in the order the files list it.
pub(super) const REQUEST_METRICS: &[RequestMetric] = &[
    real("request_latency", "Request Latency", "ms", |run, i| ms(run, i, Metric::E2e)),
    real("time_to_first_token", "Time to First Token", "ms", |run, i| ms(run, i, Metric::Ttft)),
    real("time_to_second_token", "Time to Second Token", "ms", |run, i| ms(run, i, Metric::Ttst)),
    real("time_to_first_output_token", "Time to First Output Token", "ms", |run, i| {
        ms(run, i, Metric::FirstOutputToken)
    }),
    real("inter_token_latency", "Inter Token Latency", "ms", token_gap_ms),
    real("decode_duration", "Decode Duration", "ms", |run, i| ms(run, i, Metric::Decode)),
    real(
        "output_token_throughput_per_user",
        "Output Token Throughput Per User",
        "tokens/sec/user",
        tokens_per_s_per_user,
    ),
    real(
        "e2e_output_token_throughput",
        "E2E Output Token Throughput",
        "tokens/sec/user",
        |run, i| per_second(output(run, i)?, latency::e2e_ns(run, i)?),
    ),
    real(
        "prefill_throughput_per_user",
        "Prefill Throughput Per User",
        "tokens/sec/user",
        |r, i| per_second(input(r, i)?, latency::ttft_ns(r, i)?),
    ),
    whole("output_sequence_length", "Output Sequence Length", output),
    whole("output_token_count", "Output Token Count", |run, i| {
        let reasoning = run.requests.reasoning_tokens(i).unwrap_or(0);
        output(run, i).map(|all| (all - f64::from(reasoning)).max(0.0))
    }),
    whole("reasoning_token_count", "Reasoning Token Count", |run, i| {
        run.requests.reasoning_tokens(i).map(f64::from)
    }),
    whole("input_sequence_length", "Input Sequence Length", input),
    whole("usage_prompt_tokens", "Usage Prompt Tokens", |run, i| {
        run.requests.prompt_tokens(i).map(f64::from)
    }),
    whole("usage_completion_tokens", "Usage Completion Tokens", |run, i| {
        run.requests.completion_tokens(i).map(f64::from)
    }),
    whole("usage_total_tokens", "Usage Total Tokens", |run, i| {
        let completion = run.requests.completion_tokens(i)?;
        Some(f64::from(run.requests.prompt_tokens(i)?) + f64::from(completion))
    }),
    whole("usage_reasoning_tokens", "Usage Reasoning Tokens", |run, i| {
        run.requests.reasoning_tokens(i).map(f64::from)
    }),
    whole("usage_prompt_cache_read_tokens", "Usage Prompt Cache Read Tokens", |run, i| {
        run.requests.cached_tokens(i).map(f64::from)
    }),
    real("osl_mismatch_diff_pct", "OSL Mismatch Diff %", "%", |run, i| {
        let asked = asked(run, i)?;
        Some((output(run, i)? - asked) / asked * 100.0)
    }),
    real("http_req_sending", "HTTP Sending", "ms", |run, i| ms(run, i, Metric::Send)),
    real("http_req_waiting", "HTTP Waiting (TTFB)", "ms", |run, i| {
        between(run.requests.sent_end(i), run.requests.first_byte(i))
    }),
    real("http_req_receiving", "HTTP Receiving", "ms", |run, i| {
        between(run.requests.first_byte(i), run.requests.done(i))
    }),
    real("http_req_duration", "HTTP Duration (excl. conn)", "ms", |run, i| {
        between(run.requests.sent(i), run.requests.done(i))
    }),
    RequestMetric {
        tag: "http_req_connection_reused",
        header: "HTTP Connection Reused",
        unit: "ratio",
        whole: true,
        value: |run, i| run.requests.connection_reused(i).map(|reused| f64::from(u8::from(reused))),
    },
    real("http_req_data_sent", "HTTP Data Sent", "KB", |run, i| {
        Some(count(run.plan[i].body_bytes?.get()) / 1024.0)
    }),
];

/// Gaps between content events: a list in each request, pooled over the run.
pub(super) const CHUNK_GAPS: RequestMetric =
    real("inter_chunk_latency", "Inter Chunk Latency", "ms", |_run, _i| None);

/// Prompt length of a request that failed.
pub(super) const ERROR_ISL: RequestMetric =
    whole("error_isl", "Error Input Sequence Length", |run, i| {
        run.plan[i].input_tokens.map(f64::from)
    });

/// When its record begins: its sending or, if no connection could be had, when it should have left.
pub(super) fn start(run: &Run, i: usize) -> Option<RunNanos> {
    run.requests.sent(i).or(run.requests.intended(i)).or(run.requests.done(i))
}

/// When its record ends.
pub(super) fn end(run: &Run, i: usize) -> Option<RunNanos> {
    last_stamp(run, i).or(start(run, i))
}

/// Whether the answer's length is far from the one that was asked for; `None` if either is unknown.
pub(super) fn is_mismatch(run: &Run, i: usize) -> Option<bool> {
    let (asked, got) = (asked(run, i)?, output(run, i)?);
    Some((got - asked).abs() > (asked * MISMATCH_SHARE).min(MISMATCH_TOKENS))
}

/// Completion tokens.
pub(super) fn output(run: &Run, i: usize) -> Option<f64> {
    tokens::completion(run, i).map(count)
}

/// Prompt tokens.
pub(super) fn input(run: &Run, i: usize) -> Option<f64> {
    tokens::prompt(run, i).map(count)
}

fn asked(run: &Run, i: usize) -> Option<f64> {
    run.plan[i].max_tokens.filter(|&tokens| tokens > 0).map(f64::from)
}

/// Time between tokens, zero where all came at once.
fn token_gap_ms(run: &Run, i: usize) -> Option<f64> {
    let tokens = tokens::completion(run, i).filter(|&tokens| tokens >= 2)?;
    Some(nanos(latency::decode_ns(run, i)?) / count(tokens - 1) / 1e6)
}

fn ms(run: &Run, i: usize, metric: Metric) -> Option<f64> {
    metric.value_ns(run, i).map(|value| value / 1e6)
}

fn between(from: Option<RunNanos>, to: Option<RunNanos>) -> Option<f64> {
    to?.0.checked_sub(from?.0).map(|length| nanos(length.max(0)) / 1e6)
}

fn per_second(amount: f64, length_ns: i64) -> Option<f64> {
    (length_ns > 0).then(|| amount / (nanos(length_ns) / 1e9))
}

const fn real(
    tag: &'static str,
    header: &'static str,
    unit: &'static str,
    value: fn(&Run, usize) -> Option<f64>,
) -> RequestMetric {
    RequestMetric { tag, header, unit, whole: false, value }
}

const fn whole(
    tag: &'static str,
    header: &'static str,
    value: fn(&Run, usize) -> Option<f64>,
) -> RequestMetric {
    RequestMetric { tag, header, unit: "tokens", whole: true, value }
}
