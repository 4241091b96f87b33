//! One recorded request: facts of the file, in 48 bytes, so that millions of rows fit in memory.
//!
//! Lengths are tokens as recorded. A record does not hold its block ids (they lie in the trace's
//! one arena) and does not know when it will be sent.

use crate::units::{SessionIndex, TraceNanos};

/// A row of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// 1-based physical line of the file, or row where a file has no lines.
    pub row: u64,
    /// When it arrived, on the trace's own clock.
    pub at: TraceNanos,
    /// Prompt length in tokens.
    pub input_tokens: u32,
    /// Answer length in tokens, at least 1; `None` when the row does not say.
    pub output_tokens: Option<u32>,
    /// The session it belongs to.
    pub session: SessionIndex,
    /// Its place in the session, from zero: a child never comes before its parent.
    pub turn: u32,
    /// Where its block ids start in the trace's arena.
    pub first_block: u64,
    /// How many block ids it has.
    pub block_count: u32,
}
