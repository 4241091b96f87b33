//! What a reader told about some bytes, in order, and what must hold for it whatever they were.

use onbeat::wire::{Answer, AnswerEnd, AnswerReader};
use onbeat_shared::log::outcome::{Class, FinishReason};
use onbeat_shared::log::record::{ChunkKind, DoneFlags, Usage};

/// Everything told about one answer; its memory is used again.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// The facts in order.
    pub(super) facts: Vec<Fact>,
    /// The bytes of texts and words, one behind the other.
    pub(super) bytes: Vec<u8>,
    /// The end, once it is known.
    pub(super) end: Option<AnswerEnd>,
    /// Bytes behind the answer.
    pub(super) left: usize,
    /// The end of the connection was the answer's.
    closed: bool,
}

/// An [`Answer`] that borrows nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fact {
    Head(u16),
    Event,
    Chunk { kind: ChunkKind, tokens: u32, bytes: u32, choice: u16 },
    Text { reasoning: bool, bytes: usize },
    ToolCall,
    Usage(Usage),
    Finish(FinishReason),
    Words(usize),
}

/// What happens behind the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behind {
    Close,
    Reset,
}

impl Told {
    /// Reads `input`, cut at `cuts`, and lets the connection end if the answer has not.
    pub(super) fn read(
        &mut self,
        reader: &mut AnswerReader,
        streaming: bool,
        input: &[u8],
        cuts: impl IntoIterator<Item = usize>,
        behind: Behind,
    ) {
        self.clear();
        let Self { facts, bytes, closed, .. } = &mut *self;
        let mut sink = |answer: Answer<'_>| {
            facts.push(match answer {
                Answer::Head { status } => Fact::Head(status),
                Answer::Event => Fact::Event,
                Answer::Chunk { kind, tokens, bytes, choice } => {
                    Fact::Chunk { kind, tokens, bytes, choice }
                }
                Answer::Text { raw, reasoning } => {
                    bytes.extend_from_slice(raw);
                    Fact::Text { reasoning, bytes: raw.len() }
                }
                Answer::ToolCall => Fact::ToolCall,
                Answer::Usage(usage) => Fact::Usage(usage),
                Answer::Finish(reason) => Fact::Finish(reason),
                Answer::ErrorText(words) => {
                    bytes.extend_from_slice(words);
                    Fact::Words(words.len())
                }
            });
        };
        reader.begin(streaming);
        reader.keep_text();
        let mut end = None;
        let mut from = 0;
        for to in cuts.into_iter().chain([input.len()]) {
            end = reader.push(&input[from..to], &mut sink);
            from = to;
            if end.is_some() {
                break;
            }
        }
        *closed = end.is_none();
        let end = end.unwrap_or_else(|| reader.close(behind == Behind::Reset, &mut sink));
        self.left = input.len() - usize::try_from(end.response_bytes).unwrap_or(usize::MAX);
        self.end = Some(end);
    }

    /// How it ended.
    pub(super) fn end(&self) -> AnswerEnd {
        self.end.expect("an answer was read")
    }

    /// The outcome's class.
    pub(super) fn class(&self) -> Class {
        self.end().class
    }

    /// The server said that it was done.
    pub(super) fn done(&self) -> bool {
        self.end().flags.has(DoneFlags::DONE_MARK)
    }

    /// Whether both tell the same, except for what the split may change: whether bytes behind the
    /// end came together with it, and how much of another protocol was seen.
    pub(super) fn agrees(&self, other: &Self) -> bool {
        if self.class() == Class::NotHttp {
            return other.class() == Class::NotHttp;
        }
        self.facts == other.facts
            && self.bytes == other.bytes
            && self.left == other.left
            && self.closed == other.closed
            && self.comparable_end() == other.comparable_end()
    }

    /// The end without what bytes behind it may change.
    fn comparable_end(&self) -> AnswerEnd {
        let mut end = self.end();
        if self.left > 0 {
            end.flags.0 &= !DoneFlags::STRAY_BYTES.0;
            end.reusable = false;
        }
        end
    }

    /// What must hold for every answer.
    pub(super) fn check(&self) -> Result<(), String> {
        let end = self.end();
        let place = |wanted: fn(&Fact) -> bool| self.facts.iter().position(wanted);
        let count =
            |wanted: fn(&Fact) -> bool| self.facts.iter().filter(|fact| wanted(fact)).count();
        let head = self.facts.iter().find_map(|fact| match fact {
            Fact::Head(status) => Some(*status),
            _ => None,
        });
        let last = self.facts.len().saturating_sub(1);
        let finish = self.facts.iter().rev().find_map(|fact| match fact {
            Fact::Finish(reason) => Some(*reason),
            _ => None,
        });
        let first_event = place(|fact| matches!(fact, Fact::Event)).unwrap_or(usize::MAX);
        let is_content = |fact: &Fact| {
            matches!(
                fact,
                Fact::Chunk { .. } | Fact::Text { .. } | Fact::ToolCall | Fact::Finish(_)
            )
        };
        let success = head.is_some_and(|status| (200..=299).contains(&status));
        for (holds, rule) in [
            (head == end.status, "the end's status is the head's"),
            (count(|fact| matches!(fact, Fact::Head(_))) <= 1, "there is one head"),
            (place(|fact| matches!(fact, Fact::Head(_))).is_none_or(|at| at == 0), "it is first"),
            (
                head.is_some() || self.facts.iter().all(|fact| matches!(fact, Fact::Words(_))),
                "nothing is told without a head",
            ),
            (place(is_content).is_none_or(|at| at > first_event), "content belongs to an event"),
            (self.facts.iter().all(is_possible), "no chunk is empty"),
            (count(|fact| matches!(fact, Fact::Usage(_))) <= 1, "usage comes once"),
            (place(|fact| matches!(fact, Fact::Usage(_))).is_none_or(|at| at == last), "and last"),
            (count(|fact| matches!(fact, Fact::Words(_))) <= 1, "words come once"),
            (finish.unwrap_or(FinishReason::Unknown) == end.finish, "the last reason is the end's"),
            (!self.closed || !end.reusable, "a closed connection is not used again"),
            (self.left == 0 || !self.closed, "a close ends what was pushed"),
            (end.class != Class::Ok || success, "success has a status of success"),
            (
                end.class != Class::Ok || count(|fact| matches!(fact, Fact::Words(_))) == 0,
                "success needs no words",
            ),
            (end.class != Class::Ok || first_event != usize::MAX, "success has an event"),
            (
                end.class != Class::Ok || self.done() || end.finish != FinishReason::Unknown,
                "success was said to be done or finished",
            ),
            (
                success || head.is_none() || end.class == Class::of_status(head.unwrap_or(0)),
                "a status that is none of success is the class",
            ),
        ] {
            if !holds {
                return Err(format!("not so: {rule}: {self:?}"));
            }
        }
        self.check_words()
    }

    /// Words are short, and harmless on a terminal.
    fn check_words(&self) -> Result<(), String> {
        let mut at = 0;
        for fact in &self.facts {
            match *fact {
                Fact::Text { bytes, .. } => at += bytes,
                Fact::Words(bytes) => {
                    let words = str::from_utf8(&self.bytes[at..at + bytes])
                        .map_err(|error| format!("words are not UTF-8: {error}"))?;
                    if bytes > 1_024 || words.chars().any(char::is_control) || bytes == 0 {
                        return Err(format!("words are empty, too long or not clean: {words:?}"));
                    }
                    at += bytes;
                }
                _ => {}
            }
        }
        if at == self.bytes.len() { Ok(()) } else { Err("texts do not add up".to_owned()) }
    }

    fn clear(&mut self) {
        self.facts.clear();
        self.bytes.clear();
        self.end = None;
        self.left = 0;
        self.closed = false;
    }
}

fn is_possible(fact: &Fact) -> bool {
    match fact {
        Fact::Chunk { kind, tokens, bytes, .. } => *bytes > 0 && *tokens > 0 && kind.0 != 0,
        Fact::Text { bytes, .. } => *bytes > 0,
        _ => true,
    }
}
