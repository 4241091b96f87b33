//! Reads one HTTP/1.1 answer of an inference server out of bytes, without doing any IO.
//!
//! Sans-IO: the caller pushes whatever a read returned and is told what it meant, through a sink
//! that is called for every fact in order ([`Answer`]), and once with the end ([`AnswerEnd`]). The
//! facts do not depend on how the bytes were split. Every class that the bytes alone decide is
//! decided here; timeouts, cancellation and connecting belong to [`crate::replayer`].
//!
//! ```text
//! bytes ─▶ response (head) ─▶ chunked ─▶ sse ─▶ delta (JSON) ─▶ facts
//!                                          └──▶ pattern ──────▶┘
//! ```
//!
//! Nothing here reads a clock, allocates in steady state (events up to 64 KiB), builds a JSON tree,
//! or trusts a length: every cap is in [`crate::limits`].

mod answer;
mod body;
mod chunked;
mod delta;
mod facts;
mod json;
mod pattern;
mod response;
mod said;
mod sse;
mod strings;
mod usage;
mod words;

#[cfg(test)]
mod cases;
#[cfg(test)]
mod plain;
#[cfg(test)]
mod plain_events;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod transcript;

pub use answer::{AnswerReader, Place};

use onbeat_shared::log::outcome::{Class, FinishReason};
use onbeat_shared::log::record::{ChunkKind, DoneFlags, Usage};

/// A fact about an answer that is being read, in the order of its bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Answer<'a> {
    /// The head of the final response is complete (interim 1xx heads are skipped).
    Head {
        /// The HTTP status.
        status: u16,
    },
    /// A complete event of a stream, of any content; or the whole body of an answer that is not a
    /// stream.
    Event,
    /// A content event of a stream: text, reasoning or tool-call content that is not empty. Follows
    /// its [`Answer::Event`]; one per choice with content. An answer that is not a stream has none,
    /// because it has no token times.
    Chunk {
        /// What it carried.
        kind: ChunkKind,
        /// Tokens: one, unless the server's running usage grew by more.
        tokens: u32,
        /// Bytes of text, reasoning and tool content, after JSON unescaping.
        bytes: u32,
        /// The choice's index.
        choice: u16,
    },
    /// A piece of what the choice with index 0 says, in the order it says it; only for who asked
    /// ([`AnswerReader::keep_text`]).
    Text {
        /// The inside of a JSON string, or of one of several; its escapes are well formed.
        raw: &'a [u8],
        /// It is reasoning, and its event has no answer text.
        reasoning: bool,
    },
    /// An event with a piece of a tool call of the choice with index 0, which is no text; only for
    /// who asked for that.
    ToolCall,
    /// The last usage that said anything; comes once, right before the end.
    Usage(Usage),
    /// A choice is finished.
    Finish(FinishReason),
    /// Words about a failure, the server's or ours: at most 1 KiB of UTF-8 without control
    /// characters. It may still hold a secret that the caller knows and must cut out.
    ErrorText(&'a [u8]),
}

/// How an answer ended, as far as its bytes tell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AnswerEnd {
    /// The outcome's class.
    pub class: Class,
    /// The HTTP status, if a head arrived.
    pub status: Option<u16>,
    /// Why the model stopped, if it said.
    pub finish: FinishReason,
    /// [`DoneFlags::DONE_MARK`] and [`DoneFlags::STRAY_BYTES`] as they apply.
    pub flags: DoneFlags,
    /// Bytes of this answer: heads and body with its framing, without stray bytes behind it.
    pub response_bytes: u64,
    /// Whether the connection may carry another request.
    pub reusable: bool,
}
