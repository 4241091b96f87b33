//! One planned request as the log keeps it: 80 bytes, fixed, so that a reader needs no trace.
//!
//! The table is written before the first request leaves; with it a log says what *should* have
//! happened beside what did. It holds lengths and times, never prompt text.
//!
//! Layout, little-endian: `request u32 · session u32 · turn u32 · core u16 · target u16 · row u64 ·
//! due_ns i64 · after u32 · source u32 · think_ns i64 · input_tokens u32 · max_tokens u32 ·
//! min_tokens u32 · ideal_cached_tokens u32 · ideal_set_tokens u32 · blocks u32 · body_bytes u64`.
//! `u32::MAX` and `i64::MIN` mean "none". A body has at least one byte, so its length 0 means "not
//! known when the table was written": the body was rendered during the run.

use std::num::NonZero;

use crate::units::{CoreIndex, RequestIndex, RunNanos, SessionIndex};

/// Bytes of one encoded row.
pub const PLAN_ROW_BYTES: usize = 80;

/// What was planned for one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanRow {
    /// Place in send order.
    pub request: RequestIndex,
    /// Its session.
    pub session: SessionIndex,
    /// Turn in the session, from zero.
    pub turn: u32,
    /// The core that sends it.
    pub core: CoreIndex,
    /// Index into the manifest's targets.
    pub target: u16,
    /// 1-based line or row of the trace.
    pub row: u64,
    /// When it is due, if the schedule says.
    pub due: Option<RunNanos>,
    /// The request whose end it waits for.
    pub after: Option<RequestIndex>,
    /// Index into the manifest's trace files.
    pub source: u32,
    /// Delay after that end.
    pub think_ns: Option<i64>,
    /// Prompt length as recorded.
    pub input_tokens: Option<u32>,
    /// Output limit as sent.
    pub max_tokens: Option<u32>,
    /// Output minimum as sent.
    pub min_tokens: Option<u32>,
    /// Tokens of the longest prefix of blocks already sent before it (infinite cache).
    pub ideal_cached_tokens: Option<u32>,
    /// Tokens of blocks already sent, in any place (the set figure).
    pub ideal_set_tokens: Option<u32>,
    /// How many block ids the row has.
    pub blocks: u32,
    /// Bytes of the request body, if it was rendered before the table was written.
    pub body_bytes: Option<NonZero<u64>>,
}

impl PlanRow {
    /// The row's bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; PLAN_ROW_BYTES] {
        let mut out = [0; PLAN_ROW_BYTES];
        let mut put = Cursor { bytes: &mut out, at: 0 };
        put.bytes(&self.request.0.to_le_bytes());
        put.bytes(&self.session.0.to_le_bytes());
        put.bytes(&self.turn.to_le_bytes());
        put.bytes(&self.core.0.to_le_bytes());
        put.bytes(&self.target.to_le_bytes());
        put.bytes(&self.row.to_le_bytes());
        put.bytes(&self.due.map_or(i64::MIN, |due| due.0).to_le_bytes());
        put.bytes(&self.after.map_or(u32::MAX, |after| after.0).to_le_bytes());
        put.bytes(&self.source.to_le_bytes());
        put.bytes(&self.think_ns.unwrap_or(i64::MIN).to_le_bytes());
        for tokens in [
            self.input_tokens,
            self.max_tokens,
            self.min_tokens,
            self.ideal_cached_tokens,
            self.ideal_set_tokens,
        ] {
            put.bytes(&tokens.unwrap_or(u32::MAX).to_le_bytes());
        }
        put.bytes(&self.blocks.to_le_bytes());
        put.bytes(&self.body_bytes.map_or(0, NonZero::get).to_le_bytes());
        assert_eq!(put.at, PLAN_ROW_BYTES, "every byte of a row has a field");
        out
    }

    /// The row in these bytes.
    #[must_use]
    pub fn decode(bytes: &[u8; PLAN_ROW_BYTES]) -> Self {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let known = |at: usize| Some(word(at)).filter(|&value| value != u32::MAX);
        let time = |at: usize| Some(long(at).cast_signed()).filter(|&value| value != i64::MIN);
        Self {
            request: RequestIndex(word(0)),
            session: SessionIndex(word(4)),
            turn: word(8),
            core: CoreIndex(half(12)),
            target: half(14),
            row: long(16),
            due: time(24).map(RunNanos),
            after: known(32).map(RequestIndex),
            source: word(36),
            think_ns: time(40),
            input_tokens: known(48),
            max_tokens: known(52),
            min_tokens: known(56),
            ideal_cached_tokens: known(60),
            ideal_set_tokens: known(64),
            blocks: word(68),
            body_bytes: NonZero::new(long(72)),
        }
    }
}

struct Cursor<'a> {
    bytes: &'a mut [u8; PLAN_ROW_BYTES],
    at: usize,
}

impl Cursor<'_> {
    fn bytes(&mut self, field: &[u8]) {
        self.bytes[self.at..self.at + field.len()].copy_from_slice(field);
        self.at += field.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_survives_the_round_trip() {
        let row = PlanRow {
            request: RequestIndex(7),
            session: SessionIndex(3),
            turn: 2,
            core: CoreIndex(1),
            target: 0,
            row: 1 << 40,
            due: Some(RunNanos(-5)),
            after: None,
            source: 0,
            think_ns: Some(0),
            input_tokens: Some(0),
            max_tokens: None,
            min_tokens: Some(9),
            ideal_cached_tokens: Some(512),
            ideal_set_tokens: None,
            blocks: 14,
            body_bytes: NonZero::new(1 << 33),
        };
        assert_eq!(PlanRow::decode(&row.encode()), row);
        let unknown = PlanRow { body_bytes: None, ..row };
        assert_eq!(PlanRow::decode(&unknown.encode()), unknown);
        assert_eq!(unknown.encode()[72..], [0; 8]);
    }
}
