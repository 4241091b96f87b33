//! Which of AIPerf's numbers one request has, and from which of ours each comes.
//!
//! Tags, names and units are AIPerf 0.13's; a number that we do not know, or that means something
//! else there, has no row here. Tokens are the server's counts, else content events and recorded
//! lengths. Definitions are AIPerf's too: an answer that came as one content event has an
//! inter-token latency of 0 here, where our own report, and with it a goal, has none. AIPerf waits
//! for the first byte of an answer's body, `http_req_waiting` here for that of its head.

use crate::metrics::goal::Figure;
use crate::metrics::latency::{self, Metric, count, nanos};
use crate::metrics::throughput::last_stamp;
use crate::metrics::tokens;
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
    source: Source,
}

/// Where a number comes from.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// A duration, in milliseconds.
    Duration(Metric),
    /// A number in the unit that AIPerf has for it.
    Number(Figure),
    /// What only AIPerf defines so.
    Own(fn(&Run, usize) -> Option<f64>),
}

impl RequestMetric {
    /// Its value in its unit.
    pub(super) fn value(&self, run: &Run, i: usize) -> Option<f64> {
        match self.source {
            Source::Duration(metric) => metric.value_ns(run, i).map(|value| value / 1e6),
            Source::Number(figure) => figure.value(run, i),
            Source::Own(value) => value(run, i),
        }
    }
}

/// What requests have, in the order the files list it.
pub(super) const REQUEST_METRICS: &[RequestMetric] = &[
    duration("request_latency", "Request Latency", Metric::E2e),
    duration("time_to_first_token", "Time to First Token", Metric::Ttft),
    duration("time_to_second_token", "Time to Second Token", Metric::Ttst),
    duration("time_to_first_output_token", "Time to First Output Token", Metric::FirstOutputToken),
    own("inter_token_latency", "Inter Token Latency", "ms", token_gap_ms),
    duration("decode_duration", "Decode Duration", Metric::Decode),
    real(
        "output_token_throughput_per_user",
        "Output Token Throughput Per User",
        PER_USER,
        Figure::PerUserSpeed,
    ),
    real("e2e_output_token_throughput", "E2E Output Token Throughput", PER_USER, Figure::E2eSpeed),
    real(
        "prefill_throughput_per_user",
        "Prefill Throughput Per User",
        PER_USER,
        Figure::PrefillSpeed,
    ),
    whole("output_sequence_length", "Output Sequence Length", Figure::Completion),
    whole("output_token_count", "Output Token Count", Figure::Output),
    whole("reasoning_token_count", "Reasoning Token Count", Figure::Reasoning),
    whole("input_sequence_length", "Input Sequence Length", Figure::Prompt),
    whole("usage_prompt_tokens", "Usage Prompt Tokens", Figure::ReportedPrompt),
    whole("usage_completion_tokens", "Usage Completion Tokens", Figure::ReportedCompletion),
    whole("usage_total_tokens", "Usage Total Tokens", Figure::ReportedTotal),
    whole("usage_reasoning_tokens", "Usage Reasoning Tokens", Figure::Reasoning),
    whole("usage_prompt_cache_read_tokens", "Usage Prompt Cache Read Tokens", Figure::Cached),
    real("osl_mismatch_diff_pct", "OSL Mismatch Diff %", "%", Figure::LengthMiss),
    duration("http_req_sending", "HTTP Sending", Metric::Send),
    real("http_req_waiting", "HTTP Waiting (TTFB)", "ms", Figure::Waiting),
    real("http_req_receiving", "HTTP Receiving", "ms", Figure::Receiving),
    real("http_req_duration", "HTTP Duration (excl. conn)", "ms", Figure::Exchange),
    RequestMetric {
        tag: "http_req_connection_reused",
        header: "HTTP Connection Reused",
        unit: "ratio",
        whole: true,
        source: Source::Number(Figure::Reused),
    },
    real("http_req_data_sent", "HTTP Data Sent", "KB", Figure::Body),
];

const PER_USER: &str = "tokens/sec/user";

/// Gaps between content events: a list in each request, pooled over the run.
pub(super) const CHUNK_GAPS: RequestMetric =
    own("inter_chunk_latency", "Inter Chunk Latency", "ms", |_run, _i| None);

/// Prompt length of a request that failed.
pub(super) const ERROR_ISL: RequestMetric = RequestMetric {
    tag: "error_isl",
    header: "Error Input Sequence Length",
    unit: "tokens",
    whole: true,
    source: Source::Own(|run, i| run.plan[i].input_tokens.map(f64::from)),
};

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

const fn duration(tag: &'static str, header: &'static str, metric: Metric) -> RequestMetric {
    RequestMetric { tag, header, unit: "ms", whole: false, source: Source::Duration(metric) }
}

const fn real(
    tag: &'static str,
    header: &'static str,
    unit: &'static str,
    figure: Figure,
) -> RequestMetric {
    RequestMetric { tag, header, unit, whole: false, source: Source::Number(figure) }
}

const fn whole(tag: &'static str, header: &'static str, figure: Figure) -> RequestMetric {
    RequestMetric { tag, header, unit: "tokens", whole: true, source: Source::Number(figure) }
}

const fn own(
    tag: &'static str,
    header: &'static str,
    unit: &'static str,
    value: fn(&Run, usize) -> Option<f64>,
) -> RequestMetric {
    RequestMetric { tag, header, unit, whole: false, source: Source::Own(value) }
}
