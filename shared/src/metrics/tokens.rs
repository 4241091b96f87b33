//! Token counts of one request, and who counted them.
//!
//! The server's `usage` counts where it is reported. Without it, completion tokens are content
//! events and prompt tokens the recorded length that was sent; whoever shows a sum says which
//! ([`Source`]). Nothing is estimated.

use super::report::Report;
use crate::run::Run;

/// Who counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The server's usage, for every request.
    Usage,
    /// We did, for every request: content events or recorded lengths.
    Own,
    /// Some of both.
    Mixed,
}

impl Source {
    /// Joins the source of one more request.
    #[must_use]
    pub fn joined(so_far: Option<Self>, reported: bool) -> Self {
        let one = if reported { Self::Usage } else { Self::Own };
        match so_far {
            None => one,
            Some(source) if source == one => one,
            Some(_) => Self::Mixed,
        }
    }
}

/// Completion tokens of request `i`: reported, else the sum over its content events. `None` if
/// neither exists.
#[must_use]
pub fn completion(run: &Run, i: usize) -> Option<u64> {
    match run.requests.completion_tokens(i) {
        Some(tokens) => Some(u64::from(tokens)),
        None => Some(run.requests.chunk_tokens(i)).filter(|_| run.chunks.count(i) > 0),
    }
}

/// Prompt tokens of request `i`: reported, else the recorded length.
#[must_use]
pub fn prompt(run: &Run, i: usize) -> Option<u64> {
    run.requests.prompt_tokens(i).or(run.plan[i].input_tokens).map(u64::from)
}

/// The share of planned output tokens whose lack is said to have a cause.
const SHORTFALL_MAX: f64 = 0.1;

/// What makes answers as long as planned, where they are much shorter and nobody has asked for it.
#[must_use]
pub fn length_hint(report: &Report) -> Option<&'static str> {
    let tokens = &report.tokens;
    let mean = tokens.output_mismatch_mean_shortfall?;
    let lacks = mean * super::latency::count(tokens.output_mismatch_requests?);
    let is_short = lacks > SHORTFALL_MAX * super::latency::count(tokens.planned_output?);
    // Content events may be of several tokens: they show no lack.
    let is_counted = tokens.source == Some("usage");
    let is_asked = report.run.config.to_string().contains("ignore_eos");
    (is_short && is_counted && !is_asked).then_some(
        "servers stop where the model ends its answer: --extra-inputs ignore_eos:true (vLLM, \
         SGLang) makes answers as long as recorded",
    )
}

/// Completion tokens that one content event's own token stands for. One where nothing but events
/// was counted; otherwise the reported sum spread over the events, so that tokens over time add up
/// to the total. `None` if the request has no content event.
#[must_use]
pub fn per_chunk_token(run: &Run, i: usize) -> Option<f64> {
    let counted = run.requests.chunk_tokens(i);
    let total = completion(run, i)?;
    (counted > 0).then(|| super::latency::count(total) / super::latency::count(counted))
}
