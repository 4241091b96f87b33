//! What an answer should be told as, given its events or its whole body.
//!
//! The second opinion behind several targets: whoever splits bytes into events hands them over, and
//! the plainest reading of each ([`document`]) is added up by the rules that the wire states.

use onbeat_shared::log::outcome::{Class, FinishReason};
use onbeat_shared::log::record::{UNKNOWN_TOKENS, Usage};

use super::document::{self, Document};
use super::told::{Fact, Told};
use super::tree::NoTree;

/// What an event calls itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// Nothing, or `message`.
    Message,
    Error,
    Other,
}

impl Name {
    /// The kind of a name.
    pub(super) fn of(name: &[u8]) -> Self {
        match name {
            b"" | b"message" => Self::Message,
            b"error" => Self::Error,
            _ => Self::Other,
        }
    }
}

/// What should be told.
#[derive(Debug, Default)]
pub(super) struct Expected {
    /// Without head and usage.
    facts: Vec<Fact>,
    texts: Vec<(bool, String)>,
    tool_calls: usize,
    pub(super) usage: Option<Usage>,
    /// Tokens so far.
    tokens: u32,
    pub(super) trouble: Option<Class>,
    pub(super) done: bool,
    /// A document of another dialect was read: it has no member for choices.
    foreign: bool,
    /// Numbers are written in a way that leaves counts open.
    unsure: bool,
    /// Something is JSON for a reader that does not judge text, and for no other: nothing is known
    /// of what the rest says.
    pub(super) lenient: bool,
}

impl Expected {
    /// One more event of a stream.
    pub(super) fn event(&mut self, name: Name, data: &[u8]) {
        if self.done {
            return;
        }
        self.facts.push(Fact::Event);
        let data = data.trim_ascii();
        if data == b"[DONE]" {
            self.done = true;
            return;
        }
        match (document::read(data), name) {
            (Err(NoTree::Strict), _) => self.lenient = true,
            (Err(NoTree::Malformed), Name::Error) => self.fail(Class::ErrorEvent),
            (Err(NoTree::Malformed), Name::Message) if !data.is_empty() => {
                self.fail(Class::BadEvent);
            }
            (Err(NoTree::Malformed), _) => {}
            (Ok(document), name) => {
                if document.is_error || name == Name::Error {
                    self.fail(Class::ErrorEvent);
                }
                self.foreign |= !document.has_choices;
                self.content(&document);
            }
        }
    }

    /// The whole body of an answer that is no stream.
    pub(super) fn whole(&mut self, body: &[u8]) {
        self.facts.push(Fact::Event);
        match document::read(body) {
            Err(NoTree::Strict) => self.lenient = true,
            Err(NoTree::Malformed) => self.fail(Class::BadEvent),
            Ok(document) => {
                if document.is_error {
                    self.fail(Class::ErrorEvent);
                }
                self.unsure |= document.unsure;
                self.usage = document.usage;
                self.say(&document);
                self.finish(&document);
            }
        }
    }

    /// A failure; only the first counts.
    pub(super) fn fail(&mut self, class: Class) {
        self.trouble = self.trouble.or(Some(class));
    }

    /// The class of an answer whose body came to its end.
    pub(super) fn class(&self) -> Class {
        let finished = self.facts.iter().any(|fact| matches!(fact, Fact::Finish(_)));
        let said = self.facts.iter().any(|fact| matches!(fact, Fact::Chunk { .. }));
        match self.trouble {
            Some(trouble) => trouble,
            None if self.done && !finished && !said && !self.foreign => Class::EmptyAnswer,
            None if self.done || finished => Class::Ok,
            None => Class::NoFinish,
        }
    }

    /// Whether that was told, the head and the class apart.
    pub(super) fn check(&self, told: &Told) -> Result<(), String> {
        if self.lenient {
            return Ok(());
        }
        let facts = || {
            let facts = told.facts.iter().copied();
            facts.filter(|fact| !matches!(fact, Fact::Head(_) | Fact::Usage(_)))
        };
        let usage = told.facts.iter().find_map(|fact| match fact {
            Fact::Usage(usage) => Some(*usage),
            _ => None,
        });
        let same = if self.unsure {
            facts().map(countless).eq(self.facts.iter().copied().map(countless))
        } else {
            usage == self.usage && facts().eq(self.facts.iter().copied())
        };
        let same_texts = self.unsure
            || told.silent
            || told.tool_calls == self.tool_calls && texts(told).as_deref() == Some(&self.texts);
        if same && same_texts {
            return Ok(());
        }
        Err(format!("told {told:?}, but it says {self:?}"))
    }

    fn content(&mut self, document: &Document) {
        self.unsure |= document.unsure;
        self.say(document);
        let contents = || document.choices.iter().filter(|choice| choice.bytes() > 0);
        let count = u32::try_from(contents().count()).expect("few");
        let mut more = 0;
        if let Some(usage) = document.usage {
            self.usage = Some(usage);
            if usage.completion_tokens != UNKNOWN_TOKENS {
                more = usage.completion_tokens.saturating_sub(self.tokens.saturating_add(count));
            }
        }
        for choice in contents() {
            let tokens = std::mem::take(&mut more).saturating_add(1);
            self.tokens = self.tokens.saturating_add(tokens);
            self.facts.push(Fact::Chunk {
                kind: choice.kind(),
                tokens,
                bytes: u32::try_from(choice.bytes()).expect("short"),
                choice: u16::try_from(choice.index).unwrap_or(u16::MAX),
            });
        }
        self.finish(document);
    }

    fn say(&mut self, document: &Document) {
        self.texts.extend(document.texts.iter().cloned());
        let called = document.choices.iter().any(|choice| choice.index == 0 && choice.tool > 0);
        self.tool_calls += usize::from(called);
    }

    fn finish(&mut self, document: &Document) {
        let reasons = document.choices.iter().filter_map(|choice| choice.finish);
        self.facts.extend(reasons.map(Fact::Finish));
        if document.choices.iter().any(|choice| choice.given_up) {
            self.fail(Class::ErrorEvent);
        }
    }
}

/// The fact without numbers of tokens and choices.
fn countless(fact: Fact) -> Fact {
    match fact {
        Fact::Chunk { kind, bytes, .. } => Fact::Chunk { kind, tokens: 1, bytes, choice: 0 },
        Fact::Usage(_) => Fact::Finish(FinishReason::Unknown),
        fact => fact,
    }
}

/// The texts as what they stand for; `None` if one is no inside of a JSON string.
fn texts(told: &Told) -> Option<Vec<(bool, String)>> {
    let mut from = 0;
    let unescaped = told.texts.iter().map(|&(reasoning, to)| {
        let raw = &told.text[from..to];
        from = to;
        let quoted = [b"\"", raw, b"\""].concat();
        serde_json::from_slice(&quoted).ok().map(|text| (reasoning, text))
    });
    unescaped.collect()
}
