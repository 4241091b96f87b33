//! What the events of one answer add up to.
//!
//! Decides which events are content, how many tokens each stands for, and which failure came first;
//! [`super::answer`] joins that with how the bytes ended. The rules:
//!
//! * A content event has text, reasoning or tool-call content that is not empty. Role-only, empty,
//!   usage-only and `[DONE]` events are none.
//! * A content event is one token, unless the server's running usage says that more were generated
//!   since the last one; then it is that many.
//! * `[DONE]` ends the answer. Events behind it are ignored and flagged.
//! * The first failure gives the class. Events behind it still count, so partial tokens are kept.

use onbeat_shared::log::outcome::{Class, FinishReason};
use onbeat_shared::log::record::{UNKNOWN_TOKENS, Usage};

use super::Answer;
use super::delta::{self, Choice, Complaint, Document};
use super::sse::{Event, Name};
use super::words::Words;

/// The running state of one answer.
#[derive(Debug)]
pub(super) struct Facts {
    choices: Vec<Choice>,
    pub(super) words: Words,
    pub(super) usage: Option<Usage>,
    pub(super) finish: FinishReason,
    /// `[DONE]` was read.
    pub(super) done: bool,
    /// Events came behind `[DONE]`.
    pub(super) stray: bool,
    /// The first failure.
    pub(super) trouble: Option<Class>,
    /// Events so far.
    pub(super) events: u64,
    /// Content events so far.
    pub(super) contents: u64,
    /// Tokens that content events have been given.
    tokens: u32,
}

impl Facts {
    pub(super) fn new() -> Self {
        Self {
            choices: Vec::with_capacity(16),
            words: Words::new(),
            usage: None,
            finish: FinishReason::Unknown,
            done: false,
            stray: false,
            trouble: None,
            events: 0,
            contents: 0,
            tokens: 0,
        }
    }

    /// Makes ready for the next answer.
    pub(super) fn clear(&mut self) {
        self.words.clear();
        self.usage = None;
        self.finish = FinishReason::Unknown;
        self.done = false;
        self.stray = false;
        self.trouble = None;
        self.events = 0;
        self.contents = 0;
        self.tokens = 0;
    }

    /// An event of a stream.
    pub(super) fn event(&mut self, event: Event<'_>, sink: &mut impl FnMut(Answer<'_>)) {
        if self.done {
            self.stray = true;
            return;
        }
        sink(Answer::Event);
        self.events += 1;
        let data = event.data.trim_ascii();
        if data == b"[DONE]" {
            self.done = true;
            return;
        }
        match (delta::read(data, &mut self.choices), event.name) {
            (Ok(document), Name::Error) => {
                let said = document.error.or(document.message).unwrap_or(Complaint::Raw(data));
                self.complain(said);
            }
            (Err(_), Name::Error) => self.complain(Complaint::Raw(data)),
            (Ok(Document { error: Some(complaint), .. }), _) => self.complain(complaint),
            (Ok(document), _) => self.content(document.usage, sink),
            // An event without data is a heartbeat, and foreign event types need not be JSON.
            (Err(_), Name::Message) if !data.is_empty() => self.not_json(data),
            (Err(_), Name::Message | Name::Other) => {}
        }
    }

    /// The whole body of an answer that is not a stream.
    pub(super) fn whole(&mut self, body: &[u8], sink: &mut impl FnMut(Answer<'_>)) {
        sink(Answer::Event);
        self.events += 1;
        let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
        match delta::read(body, &mut self.choices) {
            Ok(Document { error: Some(complaint), .. }) => self.complain(complaint),
            Ok(document) => {
                self.usage = document.usage;
                self.finishes(sink);
            }
            Err(_) => self.not_json(body),
        }
    }

    /// Notes a failure; says whether it is the first, whose words are wanted.
    pub(super) fn fail(&mut self, class: Class) -> bool {
        let first = self.trouble.is_none();
        if first {
            self.trouble = Some(class);
        }
        first
    }

    fn content(&mut self, usage: Option<Usage>, sink: &mut impl FnMut(Answer<'_>)) {
        if usage.is_some() {
            self.usage = usage;
        }
        let generated = usage.map_or(UNKNOWN_TOKENS, |usage| usage.completion_tokens);
        let contents = self.choices.iter().filter(|choice| choice.bytes() > 0).count();
        let contents = u32::try_from(contents).unwrap_or(u32::MAX);
        // What the running usage has beyond one token for each choice goes to the first of them.
        let mut more = match generated {
            UNKNOWN_TOKENS => 0,
            _ => generated.saturating_sub(self.tokens.saturating_add(contents)),
        };
        for choice in &self.choices {
            let bytes = choice.bytes();
            if bytes > 0 {
                let tokens = 1_u32.saturating_add(std::mem::take(&mut more));
                self.tokens = self.tokens.saturating_add(tokens);
                self.contents += 1;
                sink(Answer::Chunk { kind: choice.kind(), tokens, bytes, choice: choice.index });
            }
        }
        self.finishes(sink);
    }

    fn finishes(&mut self, sink: &mut impl FnMut(Answer<'_>)) {
        for reason in self.choices.iter().filter_map(|choice| choice.finish) {
            self.finish = reason;
            sink(Answer::Finish(reason));
        }
    }

    fn complain(&mut self, complaint: Complaint<'_>) {
        if self.fail(Class::ErrorEvent) {
            self.words.complain(complaint);
        }
    }

    /// The excerpt is short: what a server generated does not belong into a log.
    fn not_json(&mut self, data: &[u8]) {
        const EXCERPT: usize = 64;
        if self.fail(Class::BadEvent) {
            self.words.say(format_args!("event {} is not JSON: ", self.events));
            self.words.quote(&data[..data.len().min(EXCERPT)]);
        }
    }
}
