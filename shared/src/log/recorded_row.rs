//! What the trace recorded of one planned request's original answer: 32 bytes, fixed.
//!
//! Only traces that record answers have such rows, and only for requests of which something is
//! known; they let a reader compare a replay with what happened then, without the trace. Lengths
//! and times, never text.
//!
//! Layout, little-endian: `request u32 · cached_tokens u32 · duration_ns i64 · first_token_ns i64 ·
//! cancelled u8 · streamed u8 · zero u16 · place + 1 u32`. `u32::MAX` and `i64::MIN` mean "none",
//! and so does 0 in the last field; `cancelled` and `streamed` are 0 unknown, 1 no, 2 yes. The last
//! two fields are new in version 4 of the format: they were 0 before. In a user-driven run a row is
//! about a template.

use crate::units::RequestIndex;

/// Bytes of one encoded row.
pub const RECORDED_ROW_BYTES: usize = 32;

/// What was recorded of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedRow {
    /// The request.
    pub request: RequestIndex,
    /// Prompt tokens that were cached then.
    pub cached_tokens: Option<u32>,
    /// From the request to the end of its answer.
    pub duration_ns: Option<i64>,
    /// From the request to the first token.
    pub first_token_ns: Option<i64>,
    /// Whether the client gave up.
    pub cancelled: Option<bool>,
    /// Whether the answer was streamed.
    pub streamed: Option<bool>,
    /// Its place in its conversation's (or sub-agent's) list, sub-agents counted, from zero.
    pub place: Option<u32>,
}

impl RecordedRow {
    /// A row that says nothing.
    #[must_use]
    pub const fn of(request: RequestIndex) -> Self {
        Self {
            request,
            cached_tokens: None,
            duration_ns: None,
            first_token_ns: None,
            cancelled: None,
            streamed: None,
            place: None,
        }
    }

    /// Whether it says nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::of(self.request)
    }

    /// The row's bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; RECORDED_ROW_BYTES] {
        let mut out = [0; RECORDED_ROW_BYTES];
        out[..4].copy_from_slice(&self.request.0.to_le_bytes());
        out[4..8].copy_from_slice(&self.cached_tokens.unwrap_or(u32::MAX).to_le_bytes());
        out[8..16].copy_from_slice(&self.duration_ns.unwrap_or(i64::MIN).to_le_bytes());
        out[16..24].copy_from_slice(&self.first_token_ns.unwrap_or(i64::MIN).to_le_bytes());
        out[24] = answer(self.cancelled);
        out[25] = answer(self.streamed);
        // The last place of all has no number left and is not known.
        let place = self.place.and_then(|place| place.checked_add(1)).unwrap_or(0);
        out[28..].copy_from_slice(&place.to_le_bytes());
        out
    }

    /// The row in these bytes.
    #[must_use]
    pub fn decode(bytes: &[u8; RECORDED_ROW_BYTES]) -> Self {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let known = |at: usize| Some(word(at)).filter(|&value| value != u32::MAX);
        let time = |at: usize| {
            let long = u64::from(word(at)) | u64::from(word(at + 4)) << 32;
            Some(long.cast_signed()).filter(|&value| value != i64::MIN)
        };
        Self {
            request: RequestIndex(word(0)),
            cached_tokens: known(4),
            duration_ns: time(8),
            first_token_ns: time(16),
            cancelled: said(bytes[24]),
            streamed: said(bytes[25]),
            place: word(28).checked_sub(1),
        }
    }
}

const fn answer(said: Option<bool>) -> u8 {
    match said {
        None => 0,
        Some(false) => 1,
        Some(true) => 2,
    }
}

const fn said(answer: u8) -> Option<bool> {
    match answer {
        1 => Some(false),
        2 => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_survives_the_round_trip() {
        let nothing = RecordedRow::of(RequestIndex(7));
        let all = RecordedRow {
            cached_tokens: Some(0),
            duration_ns: Some(1 << 40),
            first_token_ns: Some(0),
            cancelled: Some(false),
            streamed: Some(true),
            place: Some(0),
            ..nothing
        };
        let place = RecordedRow { place: Some(1 << 31), ..nothing };
        for row in [nothing, all, place, RecordedRow { cancelled: Some(true), ..all }] {
            assert_eq!(RecordedRow::decode(&row.encode()), row);
        }
        assert!(nothing.is_empty() && !all.is_empty());
    }
}
