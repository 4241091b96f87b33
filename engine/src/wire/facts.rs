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
//! * An error object, an event called `error`, or a finish reason that says that the generation was
//!   given up (`abort`, `error`, ...) is a failure.
//! * The first failure gives the class. What stands beside and behind it still counts, so partial
//!   tokens are kept.

use onbeat_shared::log::outcome::{Class, FinishReason};
use onbeat_shared::log::record::{ChunkKind, UNKNOWN_TOKENS, Usage};

use super::Answer;
use super::delta::{self, Choice, Complaint};
use super::pattern::{Common, Pattern};
use super::said::{Said, said};
use super::sse::{Event, Listener, Name};
use super::words::Words;

/// How nearly all streams end.
const DONE_EVENT: &[u8] = b"data: [DONE]\n\n";

/// Sees that the events of a stream become facts.
pub(super) struct Reading<'a, S> {
    pub(super) facts: &'a mut Facts,
    pub(super) sink: &'a mut S,
}

/// The running state of one answer.
#[derive(Debug)]
pub(super) struct Facts {
    choices: Vec<Choice>,
    pattern: Pattern,
    /// The event that ends an answer.
    ending: Pattern,
    /// Somebody wants to know what is said.
    pub(super) keeps_text: bool,
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
    /// A document without a list of choices was read: another dialect, whose content is not known.
    pub(super) is_foreign: bool,
    /// Tokens that content events have been given.
    tokens: u32,
}

impl<S: FnMut(Answer<'_>)> Listener for Reading<'_, S> {
    fn event(&mut self, event: Event<'_>) {
        self.facts.event(event, self.sink);
    }

    fn known(&mut self, rest: &[u8]) -> usize {
        self.facts.known(rest, self.sink)
    }
}

impl Facts {
    pub(super) fn new() -> Self {
        Self {
            choices: Vec::with_capacity(16),
            pattern: Pattern::new(),
            ending: Pattern::of_ends(),
            keeps_text: false,
            words: Words::new(),
            usage: None,
            finish: FinishReason::Unknown,
            done: false,
            stray: false,
            trouble: None,
            events: 0,
            contents: 0,
            is_foreign: false,
            tokens: 0,
        }
    }

    /// Makes ready for the next answer.
    pub(super) fn clear(&mut self) {
        self.pattern.begin();
        self.ending.begin();
        self.keeps_text = false;
        self.words.clear();
        self.usage = None;
        self.finish = FinishReason::Unknown;
        self.done = false;
        self.stray = false;
        self.trouble = None;
        self.events = 0;
        self.contents = 0;
        self.is_foreign = false;
        self.tokens = 0;
    }

    /// `[DONE]` was read, and before it neither content nor a finish reason, nor anything that may
    /// stand for them in another dialect.
    pub(super) fn is_done_with_nothing(&self) -> bool {
        let said = self.contents > 0 || self.finish != FinishReason::Unknown;
        self.done && !said && !self.is_foreign
    }

    /// Events at the start of `rest` that are like one that was parsed, each closed by an empty
    /// line; says how many bytes they are.
    fn known(&mut self, rest: &[u8], sink: &mut impl FnMut(Answer<'_>)) -> usize {
        let mut used = 0;
        if self.done {
            return used;
        }
        while let Some(found) = self.pattern.match_line(&rest[used..]) {
            let end = used + found.used;
            let Some(ends) = line_ends(&rest[end..]) else { return used };
            if self.keeps_text {
                self.say(self.pattern.text_of(&rest[used..end], true), sink);
            }
            self.alike(found.text, sink);
            used = end + ends;
        }
        if used < rest.len() { used + self.known_end(&rest[used..], sink) } else { used }
    }

    /// The same for the events that end a stream: the one that says why, and `[DONE]`.
    #[inline(never)]
    fn known_end(&mut self, rest: &[u8], sink: &mut impl FnMut(Answer<'_>)) -> usize {
        let mut used = 0;
        if let Some(found) = self.ending.match_line(rest)
            && let Some(ends) = line_ends(&rest[found.used..])
        {
            self.ends_alike(sink);
            used = found.used + ends;
        }
        if rest[used..].starts_with(DONE_EVENT) {
            sink(Answer::Event);
            self.events += 1;
            self.done = true;
            used += DONE_EVENT.len();
        }
        used
    }

    /// An event that ends the answer as an earlier one was ended; it has no text to hand out.
    fn ends_alike(&mut self, sink: &mut impl FnMut(Answer<'_>)) {
        sink(Answer::Event);
        self.events += 1;
        let Common { usage, finish, .. } = self.ending.hit();
        self.usage = usage.or(self.usage);
        if let Some(reason) = finish {
            self.finish = reason;
            sink(Answer::Finish(reason));
        }
    }

    /// An event that differs from the pattern only in having `text` bytes of text.
    #[inline]
    fn alike(&mut self, text: u32, sink: &mut impl FnMut(Answer<'_>)) {
        sink(Answer::Event);
        self.events += 1;
        let Common { kind, choice, usage, .. } = self.pattern.hit();
        let more = self.unseen(usage, 1);
        self.chunk(kind, more, text, choice, sink);
    }

    /// Hands out the text of an event like the pattern.
    fn say(&self, raw: &[u8], sink: &mut impl FnMut(Answer<'_>)) {
        let Common { kind, choice, .. } = self.pattern.common();
        match kind {
            _ if choice != 0 => {}
            ChunkKind::TOOL => sink(Answer::ToolCall),
            _ => sink(Answer::Text { raw, reasoning: kind == ChunkKind::REASONING }),
        }
    }

    /// An event of a stream.
    fn event(&mut self, event: Event<'_>, sink: &mut impl FnMut(Answer<'_>)) {
        if self.done {
            self.stray = true;
            return;
        }
        let data = event.data.trim_ascii();
        if event.name != Name::Error
            && let Some(found) = self.pattern.match_data(data)
        {
            if self.keeps_text {
                self.say(self.pattern.text_of(data, false), sink);
            }
            self.alike(found.text, sink);
            return;
        }
        if event.name != Name::Error && self.ending.match_data(data).is_some() {
            self.ends_alike(sink);
            return;
        }
        sink(Answer::Event);
        self.events += 1;
        if data == b"[DONE]" {
            self.done = true;
            return;
        }
        let document = match (delta::read(data, &mut self.choices), event.name) {
            (Ok(document), _) => document,
            (Err(_), Name::Error) => return self.complain(Complaint::Raw(data)),
            // An event without data is a heartbeat, and foreign event types need not be JSON.
            (Err(_), Name::Message) if !data.is_empty() => {
                let event = self.events;
                return self.not_json(format_args!("event {event}"), data);
            }
            (Err(_), Name::Message | Name::Other) => return,
        };
        match (event.name, document.error) {
            (Name::Error, error) => {
                self.complain(error.or(document.message).unwrap_or(Complaint::Raw(data)));
            }
            (_, Some(complaint)) => self.complain(complaint),
            (_, None) => {
                self.pattern.learn(data, &document, &self.choices);
                self.ending.learn(data, &document, &self.choices);
            }
        }
        self.is_foreign |= !document.has_choices;
        // Also what stands beside an error: gateways put the last token there, and the usage.
        if self.keeps_text {
            say_all(data, &self.choices, sink);
        }
        self.content(document.usage, sink);
    }

    /// The whole body of an answer that is not a stream.
    pub(super) fn whole(&mut self, body: &[u8], sink: &mut impl FnMut(Answer<'_>)) {
        sink(Answer::Event);
        self.events += 1;
        let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
        match delta::read(body, &mut self.choices) {
            Ok(document) => {
                if let Some(complaint) = document.error {
                    self.complain(complaint);
                }
                self.usage = document.usage;
                if self.keeps_text {
                    say_all(body, &self.choices, sink);
                }
                self.finishes(sink);
                // Without a finish reason it is no answer, and this may say why.
                if let Some(said) = document.message
                    && self.finish == FinishReason::Unknown
                    && self.words.is_empty()
                {
                    self.words.complain(said);
                }
            }
            Err(_) => self.not_json(format_args!("the body"), body),
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
        let contents = self.choices.iter().filter(|choice| choice.bytes() > 0).count();
        let mut more = self.unseen(usage, u32::try_from(contents).unwrap_or(u32::MAX));
        for at in 0..self.choices.len() {
            let choice = self.choices[at];
            if choice.bytes() > 0 {
                let more = std::mem::take(&mut more);
                self.chunk(choice.kind(), more, choice.bytes(), choice.index, sink);
            }
        }
        self.finishes(sink);
    }

    /// What the running usage of an event has beyond one token for each of its choices with
    /// content; it goes to the first of them.
    fn unseen(&mut self, usage: Option<Usage>, contents: u32) -> u32 {
        if usage.is_some() {
            self.usage = usage;
        }
        match usage.map_or(UNKNOWN_TOKENS, |usage| usage.completion_tokens) {
            UNKNOWN_TOKENS => 0,
            generated => generated.saturating_sub(self.tokens.saturating_add(contents)),
        }
    }

    fn chunk(
        &mut self,
        kind: ChunkKind,
        more: u32,
        bytes: u32,
        choice: u16,
        sink: &mut impl FnMut(Answer<'_>),
    ) {
        let tokens = more.saturating_add(1);
        self.tokens = self.tokens.saturating_add(tokens);
        self.contents += 1;
        sink(Answer::Chunk { kind, tokens, bytes, choice });
    }

    fn finishes(&mut self, sink: &mut impl FnMut(Answer<'_>)) {
        for reason in self.choices.iter().filter_map(|choice| choice.finish) {
            self.finish = reason;
            sink(Answer::Finish(reason));
        }
        let given_up = self.choices.iter().find_map(|choice| choice.given_up);
        if let Some(word) = given_up
            && self.fail(Class::ErrorEvent)
        {
            self.words.say(format_args!("the server gave it up: finish_reason \"{word}\""));
        }
    }

    fn complain(&mut self, complaint: Complaint<'_>) {
        if self.fail(Class::ErrorEvent) {
            self.words.complain(complaint);
        }
    }

    /// The excerpt is short: what a server generated does not belong into a log.
    fn not_json(&mut self, what: std::fmt::Arguments<'_>, data: &[u8]) {
        const EXCERPT: usize = 64;
        if self.fail(Class::BadEvent) {
            self.words.say(format_args!("{what} is not one JSON object: "));
            self.words.quote(&data[..data.len().min(EXCERPT)]);
        }
    }
}

/// How long the line ends are that close the event whose only line is right before `rest`.
fn line_ends(rest: &[u8]) -> Option<usize> {
    match *rest {
        [b'\n', b'\n', ..] => Some(2),
        [b'\r', b'\n', b'\r', b'\n', ..] => Some(4),
        _ => None,
    }
}

/// Hands out the text of a document that was read as `choices`.
fn say_all(json: &[u8], choices: &[Choice], sink: &mut impl FnMut(Answer<'_>)) {
    said(json, &mut |Said { raw, reasoning }| sink(Answer::Text { raw, reasoning }));
    if choices.iter().any(|choice| choice.index == 0 && choice.tool > 0) {
        sink(Answer::ToolCall);
    }
}
