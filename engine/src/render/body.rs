//! The JSON around a prompt: what comes before the text and what comes after it.
//!
//! Keys come in AIPerf's order, so that bodies can be compared byte for byte. The text itself needs
//! no escaping: it is made of lower-case words.

use std::io::Write;

use onbeat_shared::log::plan_row::PlanRow;
use onbeat_shared::trace::Trace;
use onbeat_shared::trace::record::Record;
use onbeat_shared::units::RequestIndex;

use crate::plan::Plan;
use crate::prompt::{TextKey, scope};
use crate::render::{Endpoint, RenderOptions};

/// A run of words of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Span {
    /// The first words of a block.
    Block { id: u64, words: u32 },
    /// Words that only this request has.
    Tail { words: u32 },
}

/// What stands before the prompt's text.
pub(crate) const fn opening(endpoint: Endpoint) -> &'static [u8] {
    match endpoint {
        Endpoint::Chat => b"{\"messages\":[{\"role\":\"user\",\"content\":\"",
        Endpoint::Completions => b"{\"prompt\":\"",
    }
}

/// What stands behind the prompt's text.
pub(crate) fn closing(options: &RenderOptions, max_tokens: Option<u32>) -> Vec<u8> {
    let mut out = match options.endpoint {
        Endpoint::Chat => b"\"}]".to_vec(),
        Endpoint::Completions => b"\"".to_vec(),
    };
    let model = serde_json::Value::from(options.model.as_str());
    write!(out, ",\"model\":{model},\"stream\":{}", options.streaming).expect("a Vec takes all");
    if let Some(max_tokens) = max_tokens {
        let key = match options.endpoint {
            Endpoint::Chat if !options.legacy_max_tokens => "max_completion_tokens",
            _ => "max_tokens",
        };
        write!(out, ",\"{key}\":{max_tokens}").expect("a Vec takes all");
    }
    if options.streaming && options.include_usage {
        out.extend_from_slice(b",\"stream_options\":{\"include_usage\":true}");
    }
    out.push(b'}');
    out
}

/// The runs of words a record's prompt is made of, `input_tokens` words in all.
pub(crate) fn spans<'a>(
    trace: &'a Trace,
    record: &'a Record,
) -> impl Iterator<Item = Span> + use<'a> {
    let block_tokens = trace.block_tokens;
    let mut left = record.input_tokens;
    let blocks = trace.blocks_of(record).iter().map(Some);
    blocks.chain([None]).filter_map(move |id| {
        let words = if id.is_some() { left.min(block_tokens) } else { left };
        left -= words;
        let span = id.map_or(Span::Tail { words }, |id| Span::Block { id, words });
        (words > 0).then_some(span)
    })
}

/// The texts of a request's prompt in their order, each with how many of its words there are.
pub(crate) fn texts<'a>(
    plan: &'a Plan,
    trace: &'a Trace,
    options: &RenderOptions,
    request: RequestIndex,
) -> impl Iterator<Item = (TextKey, usize)> + use<'a> {
    let row = &plan.rows[request.as_usize()];
    let record = &trace.records[plan.record_of[request.as_usize()] as usize];
    let (seed, copy) = (options.seed, plan.copy(request));
    spans(trace, record).map(move |span| (span.key(seed, copy, row), span.words() as usize))
}

impl Span {
    /// What decides the span's words: block ids of Bailian and Mooncake are global to the file, and
    /// every copy of the trace has its own text.
    pub(crate) const fn key(self, seed: u64, copy: u32, row: &PlanRow) -> TextKey {
        match self {
            Self::Block { id, .. } => TextKey::block(seed, scope(copy, 0), id),
            Self::Tail { .. } => TextKey::tail(seed, scope(copy, row.source), row.row),
        }
    }

    /// How many words it has.
    pub(crate) const fn words(self) -> u32 {
        match self {
            Self::Block { words, .. } | Self::Tail { words } => words,
        }
    }
}
