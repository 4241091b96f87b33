//! What a reader told about some bytes, in order, and what must hold for it whatever they were.

use onbeat::wire::{Answer, AnswerEnd, AnswerReader};
use onbeat_shared::log::outcome::{Class, FinishReason};
use onbeat_shared::log::record::{ChunkKind, DoneFlags, Usage};

/// Everything told about one answer; its memory is used again.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// The facts in order, without texts and words.
    pub(super) facts: Vec<Fact>,
    /// Texts in order: whether each is reasoning, and where it ends in `text`.
    pub(super) texts: Vec<(bool, usize)>,
    /// All texts, as they stand in their JSON.
    pub(super) text: Vec<u8>,
    /// Events with pieces of tool calls.
    pub(super) tool_calls: usize,
    /// Words about a failure.
    pub(super) words: Vec<u8>,
    /// How often there were words.
    worded: usize,
    /// The end, once it is known.
    end: Option<AnswerEnd>,
    /// Bytes behind the answer.
    pub(super) left: usize,
    /// The end of the connection was the answer's.
    pub(super) closed: bool,
    /// Nobody asks for texts: the reader has shorter ways then.
    pub(super) silent: bool,
}

/// An [`Answer`] that borrows nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fact {
    Head(u16),
    Event,
    Chunk { kind: ChunkKind, tokens: u32, bytes: u32, choice: u16 },
    Usage(Usage),
    Finish(FinishReason),
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
        reader.begin(streaming);
        if !self.silent {
            reader.keep_text();
        }
        let mut from = 0;
        for to in cuts.into_iter().chain([input.len()]) {
            self.end = reader.push(&input[from..to], &mut |answer| self.note(answer));
            from = to;
            if self.end.is_some() {
                break;
            }
        }
        if self.end.is_none() {
            self.closed = true;
            let reset = behind == Behind::Reset;
            self.end = Some(reader.close(reset, &mut |answer| self.note(answer)));
        }
        let used = usize::try_from(self.end().response_bytes).unwrap_or(usize::MAX);
        self.left = input.len().checked_sub(used).expect("no more bytes than there were");
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
        self.same_content(other)
            && self.words == other.words
            && self.left == other.left
            && self.closed == other.closed
            && self.comparable_end() == other.comparable_end()
    }

    /// Whether both have the same facts, and texts where both were asked for them.
    pub(super) fn same_content(&self, other: &Self) -> bool {
        let same_texts = self.silent
            || other.silent
            || self.texts == other.texts
                && self.text == other.text
                && self.tool_calls == other.tool_calls;
        self.facts == other.facts && same_texts
    }

    /// What must hold for every answer.
    pub(super) fn check(&self) -> Result<(), String> {
        let (mut heads, mut events, mut usages) = (0, 0, 0);
        let mut head = None;
        let mut finish = FinishReason::Unknown;
        let mut rules = Vec::new();
        for (place, fact) in self.facts.iter().enumerate() {
            match *fact {
                Fact::Head(status) => (head, heads) = (Some(status), heads + 1),
                Fact::Event => events += 1,
                Fact::Chunk { kind, tokens, bytes, .. } => {
                    rules.push((bytes > 0 && tokens > 0 && kind.0 != 0, "no chunk is empty"));
                    rules.push((events > 0, "content belongs to an event"));
                }
                Fact::Finish(reason) => {
                    finish = reason;
                    rules.push((events > 0, "a reason belongs to an event"));
                }
                Fact::Usage(_) => {
                    usages += 1;
                    rules.push((place + 1 == self.facts.len(), "usage is the last fact"));
                }
            }
            rules.push((place > 0 || heads == 1, "the head is first"));
        }
        let end = self.end();
        let success = head.is_some_and(|status| (200..=299).contains(&status));
        let ok = end.class == Class::Ok;
        rules.extend([
            (head == end.status, "the end's status is the head's"),
            (heads <= 1 && usages <= 1 && self.worded <= 1, "head, usage and words come once"),
            (finish == end.finish, "the last reason is the end's"),
            (!self.closed || !end.reusable, "a closed connection is not used again"),
            (!self.closed || self.left == 0, "a close ends what was pushed"),
            (!ok || success, "success has a status of success"),
            (!ok || self.worded == 0, "success needs no words"),
            (!ok || events > 0, "success has an event"),
            (!ok || self.done() || finish != FinishReason::Unknown, "success is done or finished"),
            (
                success || head.is_none_or(|status| Class::of_status(status) == end.class),
                "a status that is none of success is the class",
            ),
            (!self.silent || self.texts.is_empty(), "nobody asked for texts"),
            (self.texts.iter().all(|text| text.1 > 0), "no text is empty"),
        ]);
        match rules.iter().find(|rule| !rule.0) {
            Some((_, rule)) => Err(format!("not so: {rule}: {self:?}")),
            None => self.check_words(),
        }
    }

    /// Words are short, and harmless on a terminal.
    fn check_words(&self) -> Result<(), String> {
        let words = str::from_utf8(&self.words).map_err(|error| format!("words: {error}"))?;
        let empty = self.worded > 0 && words.is_empty();
        if empty || words.len() > 1_024 || words.chars().any(char::is_control) {
            return Err(format!("words are empty, too long or not clean: {words:?}"));
        }
        Ok(())
    }

    fn note(&mut self, answer: Answer<'_>) {
        self.facts.push(match answer {
            Answer::Head { status } => Fact::Head(status),
            Answer::Event => Fact::Event,
            Answer::Chunk { kind, tokens, bytes, choice } => {
                Fact::Chunk { kind, tokens, bytes, choice }
            }
            Answer::Usage(usage) => Fact::Usage(usage),
            Answer::Finish(reason) => Fact::Finish(reason),
            Answer::Text { raw, reasoning } => {
                self.text.extend_from_slice(raw);
                self.texts.push((reasoning, self.text.len()));
                return;
            }
            Answer::ToolCall => {
                self.tool_calls += 1;
                return;
            }
            Answer::ErrorText(words) => {
                self.words.extend_from_slice(words);
                self.worded += 1;
                return;
            }
        });
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

    fn clear(&mut self) {
        self.facts.clear();
        self.texts.clear();
        self.text.clear();
        self.tool_calls = 0;
        self.words.clear();
        self.worded = 0;
        self.end = None;
        self.left = 0;
        self.closed = false;
    }
}
