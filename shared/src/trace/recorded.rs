//! What only some trace formats record: files of a folder, durations, cancellations, prompts.
//!
//! Columns beside [`Trace::records`](crate::trace::Trace::records), each either empty or with one
//! entry for each record, so that a trace without them pays nothing. A value that a row does not
//! have is `None`. Prompts are kept as JSON writes them (see [`Texts`]), because that is what they
//! are needed for.

use crate::trace::agentic::Agentic;
pub use crate::trace::escape::escape;
pub use crate::trace::texts::{Elsewhere, Origin, Texts};

/// What a trace records beside its records.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// The files of a trace that is a folder, in order; empty when it is one file.
    pub files: Vec<File>,
    /// From the request to the end of its answer, in nanoseconds.
    pub duration_ns: Vec<Option<i64>>,
    /// From the request to the first token, in nanoseconds.
    pub first_token_ns: Vec<Option<i64>>,
    /// Whether the client gave up; empty when none did.
    pub cancelled: Vec<bool>,
    /// Whether the trace says of each request if its client gave up.
    pub knows_cancelled: bool,
    /// Prompt tokens that were cached.
    pub cached_tokens: Vec<Option<u32>>,
    /// Tokens of a block, where the row says.
    pub block_tokens: Vec<Option<u32>>,
    /// Whether block ids were written as signed numbers, so that the upper half is negative.
    pub signed_ids: bool,
    /// Whether all rows hold their prompts, which are then sent as they stand.
    pub prompts: bool,
    /// What each row holds of its request, where rows differ.
    pub contents: Vec<Content>,
    /// For rows without a time of their own, how long they wait after the turn before them, in
    /// nanoseconds.
    pub delay_ns: Vec<Option<i64>>,
    /// Whether rows hold whole bodies that are for the completions endpoint.
    pub completions: bool,
    /// The first row whose body does not go where the first one's goes: it has neither messages nor
    /// a prompt, or the other of the two.
    pub unsettled: Option<u32>,
    /// Whether no session's first row has a time of its own, so that they need a rate to start at.
    pub untimed: bool,
    /// Whether rows are in AIPerf's dialect of Mooncake's format, and may add members to bodies.
    pub dialect: bool,
    /// Conversations and their sub-agents.
    pub agentic: Option<Agentic>,
    /// Output lengths that rows say in members of their own; empty when none does.
    pub said: Vec<SaidLengths>,
    /// What rows hold, once it was read.
    pub texts: Texts,
    /// What rows add to their bodies, once it was read: each its tools or null, a blank and an
    /// object of other members (two values, so that none is nested deeper than in its row), or
    /// empty.
    pub members: Texts,
}

/// Output lengths in members that a row adds to its body, or that stand in the body it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SaidLengths {
    /// `max_completion_tokens`.
    pub max_completion_tokens: Said,
    /// `max_tokens`.
    pub max_tokens: Said,
    /// `min_tokens`.
    pub min_tokens: Said,
}

/// A length as a member of a body says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Said {
    /// There is no such member.
    #[default]
    Nothing,
    /// There is one that is no whole number of tokens, like null.
    NoNumber,
    /// So many tokens.
    Tokens(u32),
}

/// What a row holds of its request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// Lengths and block ids: the prompt is made of words.
    #[default]
    Words,
    /// The prompt.
    Prompt,
    /// The list of messages.
    Messages,
    /// The whole body.
    Body,
}

/// One file of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name, without its folder.
    pub name: String,
    /// How many records of the trace come before its own.
    pub first_record: u32,
}

impl Recorded {
    /// Number of the file that a record is from; 0 when there is only one.
    #[must_use]
    pub fn file_of(&self, record: u32) -> u32 {
        let after = self.files.partition_point(|file| file.first_record <= record);
        u32::try_from(after.saturating_sub(1)).unwrap_or(0)
    }

    /// What a record holds of its request.
    #[must_use]
    pub fn content_of(&self, record: u32) -> Content {
        let all = if self.prompts { Content::Prompt } else { Content::Words };
        self.contents.get(record as usize).copied().unwrap_or(all)
    }

    /// Whether some record's text or members have to be read before it can be sent.
    #[must_use]
    pub const fn has_texts(&self) -> bool {
        self.prompts || self.dialect
    }

    /// Adds what a record holds, as it stands in JSON, to `out`: nothing when its prompt is made of
    /// words, or was not read.
    ///
    /// # Panics
    /// When texts are elsewhere and cannot be read.
    pub fn append_text(&self, record: u32, out: &mut Vec<u8>) {
        if !self.texts.is_empty() {
            self.texts.append(record, out);
        }
    }

    /// Bytes of what a record holds.
    #[must_use]
    pub fn text_len(&self, record: u32) -> usize {
        if self.texts.is_empty() { 0 } else { self.texts.len_of(record) }
    }

    /// What a record adds to its body, as [`Recorded::members`] has it; empty when that is nothing,
    /// or was not read.
    #[must_use]
    pub fn members_of(&self, record: u32) -> &[u8] {
        if self.members.is_empty() { &[] } else { self.members.get(record) }
    }

    /// Output lengths that a record says in members of its own.
    #[must_use]
    pub fn said_by(&self, record: u32) -> SaidLengths {
        self.said.get(record as usize).copied().unwrap_or_default()
    }

    /// Whether the length of a record's prompt in tokens is known.
    #[must_use]
    pub fn is_length_known(&self, record: u32) -> bool {
        self.contents.get(record as usize).is_none_or(|&content| content == Content::Words)
    }

    /// Whether a record's client gave up; `None` when the trace does not say.
    #[must_use]
    pub fn is_cancelled(&self, record: u32) -> Option<bool> {
        let none = self.knows_cancelled.then_some(false);
        self.cancelled.get(record as usize).copied().or(none)
    }
}

impl Said {
    /// The member whose value is written so; `None`: there is none.
    #[must_use]
    pub fn of(value: Option<&str>) -> Self {
        // The top value means "none" in a log.
        let tokens = |text: &str| text.parse().ok().filter(|&tokens: &u32| tokens != u32::MAX);
        value.map_or(Self::Nothing, |text| tokens(text).map_or(Self::NoNumber, Self::Tokens))
    }

    /// Itself, or `other` where there is no such member.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        match self {
            Self::Nothing => other,
            said => said,
        }
    }

    /// The number; `None` when none is said.
    #[must_use]
    pub const fn tokens(self) -> Option<u32> {
        match self {
            Self::Tokens(tokens) => Some(tokens),
            Self::Nothing | Self::NoNumber => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_knows_its_file() {
        let file = |name: &str, first_record| File { name: name.to_owned(), first_record };
        let recorded = Recorded {
            files: vec![file("a", 0), file("empty", 5), file("c", 5)],
            ..Recorded::default()
        };
        assert_eq!([0, 4, 5, 9].map(|record| recorded.file_of(record)), [0, 0, 2, 2]);
        assert_eq!(Recorded::default().file_of(7), 0);
    }
}
