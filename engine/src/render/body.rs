//! The JSON around a prompt: what comes before the text and what comes after it.
//!
//! Keys come in AIPerf's order, so that bodies can be compared byte for byte. The text itself needs
//! no escaping: it is made of lower-case words, or was escaped when it was read.

use std::io::Write;

use onbeat_shared::log::plan_row::PlanRow;
use onbeat_shared::trace::Trace;
use onbeat_shared::trace::record::Record;
use onbeat_shared::trace::recorded::Content;
use onbeat_shared::units::RequestIndex;
use serde_json::{Map, Value, json};

use crate::plan::{Plan, id_of_copy};
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

/// What a row adds to its body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Own {
    /// The tools that its messages may call.
    tools: Option<Value>,
    /// Members of its own choice.
    extra: Map<String, Value>,
}

impl Own {
    /// What [`Recorded::members`](onbeat_shared::trace::recorded::Recorded::members) keeps of it.
    pub(crate) fn read(members: &[u8]) -> Self {
        let mut own = Self::default();
        for value in serde_json::Deserializer::from_slice(members).into_iter() {
            match value.expect("members were checked when read") {
                Value::Object(extra) => own.extra = extra,
                Value::Null => {}
                tools => own.tools = Some(tools),
            }
        }
        own
    }
}

/// Output lengths that members of ours say: at most, and at least.
pub(crate) type Limits = (Option<u32>, Option<u32>);

/// What stands before a list of messages, and how many bytes of a chat's closing it makes needless:
/// those that end the list.
pub(crate) const fn messages_opening() -> (&'static [u8], usize) {
    (b"{\"messages\":", b"\"}]".len())
}

/// What stands behind the prompt's text, in two pieces: a request's own hints come between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Closing {
    pub(crate) before: Vec<u8>,
    pub(crate) after: Vec<u8>,
}

impl Closing {
    /// Both pieces with nothing between them.
    pub(crate) fn joined(&self) -> Vec<u8> {
        [self.before.as_slice(), &self.after].concat()
    }
}

/// The output lengths of a request. A row without a length asks for none, whatever the user's own
/// members say; where those replace a length, ours stands in its place and does not count.
pub(crate) fn limits(row: &PlanRow, record: &Record) -> Limits {
    let most = row.max_tokens.or(Some(0));
    (record.output_tokens.and(most), row.min_tokens)
}

/// What stands behind the text of a request of these output lengths, with what is its `own`.
///
/// Members are merged as AIPerf does it: ours with the row's tools, then the user's own, then the
/// row's; the last value of a key counts, in the place of the first.
pub(crate) fn closing(
    options: &RenderOptions,
    (max_tokens, min_tokens): Limits,
    own: Own,
) -> Closing {
    let mut members = Map::new();
    members.insert("model".to_owned(), options.model.as_str().into());
    members.insert("stream".to_owned(), options.streaming.into());
    if let Some(tools) = own.tools {
        members.insert("tools".to_owned(), tools);
    }
    if let Some(max_tokens) = max_tokens {
        let key = match options.endpoint {
            Endpoint::Chat if !options.legacy_max_tokens => "max_completion_tokens",
            _ => "max_tokens",
        };
        members.insert(key.to_owned(), max_tokens.into());
    }
    members.extend(options.generation.members().map(|(key, value)| (key.to_owned(), value)));
    members.extend(options.extra.iter().cloned());
    members.extend(own.extra);
    if let Some(min_tokens) = min_tokens {
        members.insert("min_tokens".to_owned(), min_tokens.into());
    }
    let mut after = Vec::new();
    if options.streaming && options.include_usage {
        match members.get_mut("stream_options") {
            Some(Value::Object(own)) => {
                own.entry("include_usage").or_insert(true.into());
            }
            Some(_) => {}
            None => after.extend_from_slice(b",\"stream_options\":{\"include_usage\":true}"),
        }
    }
    after.push(b'}');
    let mut before = match options.endpoint {
        Endpoint::Chat => b"\"}],".to_vec(),
        Endpoint::Completions => b"\",".to_vec(),
    };
    let mut object = serde_json::to_vec(&members).expect("plain values serialise");
    // The brackets of the whole are elsewhere.
    object.pop();
    before.extend_from_slice(&object[1..]);
    Closing { before, after }
}

/// What stands behind the text of a user's request, with kv-cache-tester's keys in its order: what
/// is `None` there and no member of the user's own is left out.
///
/// A member of the user's own takes the place of ours.
pub(crate) fn closing_of_user(options: &RenderOptions, max_tokens: u32) -> Vec<u8> {
    let mut members = Map::new();
    members.insert("model".to_owned(), options.model.as_str().into());
    members.insert("max_tokens".to_owned(), max_tokens.into());
    members.insert("stream".to_owned(), options.streaming.into());
    let usage = options.streaming && options.include_usage;
    if usage {
        members.insert("stream_options".to_owned(), json!({"include_usage": true}));
    }
    members.extend(options.generation.members().map(|(key, value)| (key.to_owned(), value)));
    // A request that is not streamed has no options of its stream, whoever gives them.
    let own = options.extra.iter().filter(|(key, _)| options.streaming || key != "stream_options");
    members.extend(own.cloned());
    if usage && let Some(Value::Object(own)) = members.get_mut("stream_options") {
        own.entry("include_usage").or_insert(true.into());
    }
    let object = serde_json::to_vec(&members).expect("plain values serialise");
    // The brackets of the whole are elsewhere: the opening one, that is.
    [b"\"}],", &object[1..]].concat()
}

/// Adds the hints of one request, which stand between the pieces of its closing: block ids and
/// block size as recorded with its prompt. A copy of the trace has ids of its own.
pub(crate) fn append_hints(
    trace: &Trace,
    options: &RenderOptions,
    place: u32,
    copy: u32,
    out: &mut Vec<u8>,
) {
    if !trace.recorded.prompts || options.omit_kv_hints {
        return;
    }
    let ids = trace.blocks_of(&trace.records[place as usize]);
    let mut before = b",\"hash_ids\":[".as_slice();
    for id in ids.iter() {
        out.extend_from_slice(before);
        before = b",";
        let id = id_of_copy(id, copy);
        let written = if copy == 0 && trace.recorded.signed_ids {
            write!(out, "{}", id.cast_signed())
        } else {
            write!(out, "{id}")
        };
        written.expect("a Vec takes all");
    }
    if !ids.is_empty() {
        out.push(b']');
    }
    if let Some(tokens) = trace.recorded.block_tokens.get(place as usize).copied().flatten() {
        write!(out, ",\"block_size\":{tokens}").expect("a Vec takes all");
    }
}

/// Words that a copy of the trace puts before its recorded prompts, so that it shares no prefix
/// with another copy.
const MARK_WORDS: usize = 4;

/// Adds what stands before the recorded prompts of a copy of the trace: nothing for the first one.
pub(crate) fn append_mark(
    trace: &Trace,
    options: &RenderOptions,
    place: u32,
    copy: u32,
    out: &mut Vec<u8>,
) {
    if copy > 0 && trace.recorded.content_of(place) == Content::Prompt {
        TextKey::block(options.seed, scope(copy, 0), 0).append(MARK_WORDS, out);
        out.extend_from_slice(b"\\n");
    }
}

/// The runs of words a record's prompt is made of, `input_tokens` words in all; none when the
/// prompt itself was recorded.
pub(crate) fn spans<'a>(
    trace: &'a Trace,
    record: &'a Record,
) -> impl Iterator<Item = Span> + use<'a> {
    let block_tokens = trace.block_tokens;
    // Rows that hold their text have no words, and but for Baseten's no ids either.
    let recorded = trace.recorded.prompts;
    let mut left = if recorded { 0 } else { record.input_tokens };
    let most = if recorded { 0 } else { usize::MAX };
    let blocks = trace.blocks_of(record).iter().take(most).map(Some);
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
