//! Agentic conversations: what kv-cache-tester's traces say beyond lengths and block ids.
//!
//! A [`Conversation`] is a list of [`Entry`]s in file order: requests, and [`Group`]s (sub-agents),
//! which are lists of entries again, to any depth. Each request is one record of the trace, in
//! document order, and has one [`Call`] with what only these traces record. A conversation and
//! every sub-agent that asks for something are sessions of their own, called `ID`, `ID-SA1`,
//! `ID-SA1-SA2`: the number counts a parent's sub-agents that are not empty. Times of records are
//! on the conversation's own clock: there is none that conversations share. Who waits for whom in
//! a replay is not decided here.

pub mod stats;

use std::fmt::Write as _;
use std::ops::Range;

use serde::Serialize;

use crate::units::{SessionIndex, TraceNanos};

/// All conversations of an agentic trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Agentic {
    /// In order of their files, and inside a file in file order.
    pub conversations: Vec<Conversation>,
    /// All sub-agents, in order of where they end in their files: a nested one before its parent.
    pub groups: Vec<Group>,
    /// One for each record of the trace.
    pub calls: Vec<Call>,
    /// Names of models, kinds and states, each once; [`Word`]s are places here.
    pub words: Vec<String>,
}

/// A text that many requests share: its place in [`Agentic::words`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Word(pub u16);

/// One conversation of a user with an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    /// What the file calls it.
    pub id: String,
    /// The number of its file, from zero.
    pub file: u32,
    /// How far its block ids reach.
    pub scope: Scope,
    /// Tokens that all its requests start with.
    pub prefix: Prefix,
    /// The models it names.
    pub models: Vec<Word>,
    /// What happens, in order.
    pub entries: Vec<Entry>,
    /// Its records, those of its sub-agents among them.
    pub records: Range<u32>,
    /// The session of its own requests.
    pub session: SessionIndex,
}

/// How far block ids reach: where the same id means the same block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// In the conversation and its sub-agents.
    #[default]
    Local,
    /// In all conversations whose ids are global.
    Global,
}

/// Tokens at the start of every request; `None` when the file does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prefix {
    /// Of the descriptions of tools.
    pub tool_tokens: Option<u32>,
    /// Of the system prompt.
    pub system_tokens: Option<u32>,
}

/// One step of a conversation or of a sub-agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A request: the place of its record.
    Request(u32),
    /// A sub-agent: its place in [`Agentic::groups`].
    Group(u32),
}

/// A sub-agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// What the file calls it.
    pub agent_id: String,
    /// What kind of agent it is ("Explore").
    pub kind: Option<Word>,
    /// How it ended ("completed"), or that nobody waited for it ("`async_launched`").
    pub status: Option<Word>,
    /// When it was started, on the conversation's clock.
    pub at: TraceNanos,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// Tokens it used, by the agent's own count.
    pub total_tokens: Option<u64>,
    /// How often it used a tool.
    pub tool_use_count: Option<u64>,
    /// Tokens that all its requests start with.
    pub prefix: Prefix,
    /// The models it names.
    pub models: Vec<Word>,
    /// What it does, in order.
    pub entries: Vec<Entry>,
    /// The sub-agent it belongs to; `None` when that is the conversation itself.
    pub parent: Option<u32>,
    /// Its place in the list it stands in.
    pub place: u32,
    /// The session of its own requests; `None` when it has none.
    pub session: Option<SessionIndex>,
}

/// What an agentic trace records of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The model that was asked.
    pub model: Option<Word>,
    /// Whether the answer came as a stream.
    pub kind: Kind,
    /// What the newest messages consist of.
    pub input: Parts,
    /// What the answer consists of; empty when nobody kept it.
    pub output: Parts,
    /// Why the answer ended.
    pub stop: Stop,
    /// Tokens of the answer as recorded: 0 where the record asks for 1.
    pub output_tokens: u32,
    /// From the request to the end of its answer.
    pub api_ns: Option<i64>,
    /// From the end of the answer before to the request.
    pub think_ns: Option<i64>,
    /// From the request to the first token.
    pub first_token_ns: Option<i64>,
    /// The sub-agent it belongs to; `None` when that is the conversation itself.
    pub group: Option<u32>,
    /// Its place in the list it stands in.
    pub place: u32,
}

/// How an answer came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Kind {
    /// As a stream ("s").
    #[default]
    Streamed,
    /// In one piece ("n").
    Whole,
    /// The file says something else ("?").
    Unknown,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stop {
    /// The file does not say.
    #[default]
    Unsaid,
    /// To use a tool.
    ToolUse,
    /// The turn was over.
    EndTurn,
    /// It had the most tokens allowed.
    MaxTokens,
    /// Something else.
    Other,
}

/// What messages consist of: a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts(pub u8);

impl Parts {
    /// Text.
    pub const TEXT: Self = Self(1);
    /// Thinking.
    pub const THINKING: Self = Self(2);
    /// Calls of tools.
    pub const TOOL_USE: Self = Self(4);
    /// What tools answered.
    pub const TOOL_RESULT: Self = Self(8);
    /// Something else.
    pub const OTHER: Self = Self(16);

    /// The part with this name in the file.
    #[must_use]
    pub fn named(name: &str) -> Self {
        match name {
            "text" => Self::TEXT,
            "thinking" => Self::THINKING,
            "tool_use" => Self::TOOL_USE,
            "tool_result" => Self::TOOL_RESULT,
            _ => Self::OTHER,
        }
    }

    /// Both sets together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` is in here.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether there is nothing.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl Agentic {
    /// The text behind a word.
    ///
    /// # Panics
    /// When it is of another trace.
    #[must_use]
    pub fn word(&self, word: Word) -> &str {
        &self.words[usize::from(word.0)]
    }

    /// The place of the conversation that a record belongs to.
    #[must_use]
    pub fn conversation_of(&self, record: u32) -> usize {
        self.conversations.partition_point(|own| own.records.end <= record)
    }

    /// Where a record's block ids hold: 0 for everywhere, else a number of the conversation's own.
    #[must_use]
    pub fn scope_of(&self, record: u32) -> u32 {
        let place = self.conversation_of(record);
        match self.conversations.get(place).map(|own| own.scope) {
            Some(Scope::Local) => u32::try_from(place + 1).unwrap_or(u32::MAX),
            Some(Scope::Global) | None => 0,
        }
    }

    /// Where in its conversation a request stands: `requests[3].requests[0]`.
    ///
    /// # Panics
    /// When the trace has no such record.
    #[must_use]
    pub fn position(&self, record: u32) -> String {
        let call = &self.calls[record as usize];
        let mut places = vec![call.place];
        let mut group = call.group;
        while let Some(number) = group {
            let own = &self.groups[number as usize];
            places.push(own.place);
            group = own.parent;
        }
        position(places.into_iter().rev())
    }
}

/// Places in lists inside lists, as a message shows them.
#[must_use]
pub fn position(places: impl Iterator<Item = u32>) -> String {
    let mut text = String::new();
    for place in places {
        let dot = if text.is_empty() { "" } else { "." };
        write!(text, "{dot}requests[{place}]").expect("a String takes everything");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_a_set() {
        let both = Parts::named("text").and(Parts::named("tool_result"));
        assert!(both.has(Parts::TEXT) && both.has(Parts::TOOL_RESULT));
        assert!(!both.has(Parts::THINKING) && Parts::default().is_empty());
        assert_eq!(Parts::named("image"), Parts::OTHER);
    }

    #[test]
    fn positions_are_paths() {
        assert_eq!(position([3, 0].into_iter()), "requests[3].requests[0]");
        assert_eq!(position([].into_iter()), "");
    }
}
