//! What a reader said about some bytes, as values that tests can compare.

use onbeat_shared::log::outcome::{Class, FinishReason};
use onbeat_shared::log::record::{DoneFlags, Usage};

use super::{Answer, AnswerEnd, AnswerReader};

/// Everything said about one answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Transcript {
    pub(super) heads: Vec<u16>,
    pub(super) events: usize,
    /// Choice, kind, tokens and bytes of every content event.
    pub(super) chunks: Vec<(u16, u8, u32, u32)>,
    /// Pieces of the first choice's text, and whether each is reasoning.
    pub(super) text: Vec<(bool, Vec<u8>)>,
    /// Events with pieces of its tool calls.
    pub(super) tool_calls: usize,
    pub(super) usage: Option<Usage>,
    pub(super) finishes: Vec<FinishReason>,
    pub(super) words: Option<String>,
    pub(super) end: AnswerEnd,
    /// Bytes that were left when the end was known.
    pub(super) left: usize,
}

/// What happens behind the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behind {
    Close,
    Reset,
}

impl Transcript {
    pub(super) fn class(&self) -> Class {
        self.end.class
    }

    /// Content bytes of all chunks.
    pub(super) fn content_bytes(&self) -> u32 {
        self.chunks.iter().map(|chunk| chunk.3).sum()
    }

    pub(super) fn tokens(&self) -> Vec<u32> {
        self.chunks.iter().map(|chunk| chunk.2).collect()
    }

    /// The transcript without what the split may change: whether bytes behind the end came together
    /// with it, and how much of another protocol was seen.
    pub(super) fn comparable(mut self) -> Self {
        if self.left > 0 {
            self.end.flags.0 &= !DoneFlags::STRAY_BYTES.0;
            self.end.reusable = false;
        }
        if self.class() == Class::NotHttp {
            self.words = None;
            self.end.response_bytes = 0;
            self.left = 0;
        }
        self
    }

    pub(super) fn words(&self) -> &str {
        self.words.as_deref().unwrap_or_default()
    }
}

/// Pushes `parts` one after another and then lets the connection end, if the answer has not.
pub(super) fn read<'p>(
    reader: &mut AnswerReader,
    parts: impl IntoIterator<Item = &'p [u8]>,
    behind: Behind,
) -> Transcript {
    let mut transcript = Transcript {
        heads: vec![],
        events: 0,
        chunks: vec![],
        text: vec![],
        tool_calls: 0,
        usage: None,
        finishes: vec![],
        words: None,
        end: AnswerEnd {
            class: Class::Ok,
            status: None,
            finish: FinishReason::Unknown,
            flags: DoneFlags(0),
            response_bytes: 0,
            reusable: false,
        },
        left: 0,
    };
    let said = &mut transcript;
    let mut sink = |answer: Answer<'_>| match answer {
        Answer::Head { status } => said.heads.push(status),
        Answer::Event => said.events += 1,
        Answer::Chunk { kind, tokens, bytes, choice } => {
            assert!(said.events > 0, "content belongs to an event");
            said.chunks.push((choice, kind.0, tokens, bytes));
        }
        Answer::Text { raw, reasoning } => said.text.push((reasoning, raw.to_vec())),
        Answer::ToolCall => said.tool_calls += 1,
        Answer::Usage(usage) => assert_eq!(said.usage.replace(usage), None, "usage comes once"),
        Answer::Finish(reason) => said.finishes.push(reason),
        Answer::ErrorText(text) => {
            let text = String::from_utf8(text.to_vec()).expect("words are UTF-8");
            assert!(text.len() <= 1024 && !text.chars().any(char::is_control), "{text:?}");
            assert_eq!(said.words.replace(text), None, "words come once");
        }
    };
    reader.begin(true);
    reader.keep_text();
    assert!(!reader.started() && !reader.settled());
    let mut end = None;
    let mut pushed = 0;
    let mut total = 0;
    for part in parts {
        total += part.len();
        if end.is_none() {
            pushed += part.len();
            end = reader.push(part, &mut sink);
            assert_eq!(reader.started(), pushed > 0);
        }
    }
    let end = end.unwrap_or_else(|| reader.close(behind == Behind::Reset, &mut sink));
    let used = usize::try_from(end.response_bytes).expect("no more than was pushed");
    said.left = total.checked_sub(used).expect("no more than there was");
    said.end = end;
    transcript
}
