//! Sizes around every cap, in pieces of any size: what is well below is read, what is well above is
//! refused as over the limit, and at the very border the pieces do not matter.
//!
//! An input is a recipe of six bytes, so that sixteen megabytes need not be mutated: which cap, how
//! far from it (two bytes), the sizes of pieces of two readings, and a byte to fill with.

use onbeat::limits::{
    CHUNK_EXTENSION_BYTES_MAX, EVENT_BYTES_MAX, HEAD_BYTES_MAX, HEADERS_MAX, INTERIM_HEADS_MAX,
    TRAILER_BYTES_MAX,
};
use onbeat::wire::AnswerReader;
use onbeat_shared::dice::Dice;
use onbeat_shared::log::outcome::Class;

use super::super::Subject;
use super::told::{Behind, Told};

/// Recipes.
pub(super) struct Caps {
    first: Told,
    second: Told,
    answer: Vec<u8>,
}

/// What is repeated, and how.
struct Cap {
    /// How many bytes or things there may be.
    most: usize,
    before: &'static [u8],
    /// Repeated; `*` is the byte to fill with.
    unit: &'static [u8],
    behind: &'static [u8],
    /// How far from the cap nothing is promised but that the pieces do not matter.
    margin: usize,
}

const OK: &[u8] = b"\r\ndata: [DONE]\n\n";
const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/// The cheap ones first; those of [`EVENT_BYTES_MAX`] last.
const CAPS: [Cap; 9] = [
    Cap {
        most: HEAD_BYTES_MAX,
        before: b"HTTP/1.1 200 OK\r\nx: ",
        unit: b"*",
        behind: b"\r\n\r\ndata: [DONE]\n\n",
        margin: 64,
    },
    Cap {
        most: HEADERS_MAX,
        before: b"HTTP/1.1 200 OK\r\n",
        unit: b"x: *\r\n",
        behind: OK,
        margin: 0,
    },
    Cap {
        most: INTERIM_HEADS_MAX as usize,
        before: b"",
        unit: b"HTTP/1.1 102 *\r\n\r\n",
        behind: b"HTTP/1.1 200 OK\r\n\r\ndata: [DONE]\n\n",
        margin: 0,
    },
    Cap {
        most: CHUNK_EXTENSION_BYTES_MAX as usize,
        before: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\ne;",
        unit: b"*",
        behind: b"\r\ndata: [DONE]\n\n\r\n0\r\n\r\n",
        margin: 8,
    },
    Cap {
        most: CHUNK_EXTENSION_BYTES_MAX as usize,
        before: CHUNKED,
        unit: b"01\r\n*\r\n",
        behind: b"0\r\n\r\n",
        margin: 8,
    },
    Cap {
        most: TRAILER_BYTES_MAX as usize,
        before: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nx:",
        unit: b"*",
        behind: b"\r\n\r\n",
        margin: 8,
    },
    Cap {
        most: EVENT_BYTES_MAX,
        before: b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: ",
        unit: b"*",
        behind: b"\n\ndata: [DONE]\n\n",
        margin: 64,
    },
    Cap {
        most: EVENT_BYTES_MAX / 2,
        before: b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: *\n",
        unit: b"data:*\n",
        behind: b"\ndata: [DONE]\n\n",
        margin: 64,
    },
    Cap {
        most: EVENT_BYTES_MAX,
        before: b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[",
        unit: b"*",
        behind: b"]",
        margin: 64,
    },
];
const CHEAP: usize = 6;

impl Caps {
    pub(super) fn new() -> Self {
        Self { first: Told::default(), second: Told::default(), answer: Vec::new() }
    }
}

impl Subject for Caps {
    fn generate(&mut self, dice: &mut Dice, out: &mut Vec<u8>) {
        let places = if dice.below(32) == 0 { CAPS.len() } else { CHEAP };
        let far = if dice.below(4) == 0 { dice.below(1_000) } else { 32_763 + dice.below(10) };
        out.push(dice.place(places).to_le_bytes()[0]);
        out.extend_from_slice(&far.to_le_bytes()[..2]);
        out.extend_from_slice(&dice.roll().to_le_bytes()[..3]);
    }

    fn mutate(&mut self, dice: &mut Dice, input: &mut Vec<u8>) {
        // Another byte somewhere, but no other cap: most of a day would go by at the largest.
        if let Some(byte) = input.get_mut(1 + dice.place(5)) {
            *byte = dice.roll().to_le_bytes()[0];
        }
    }

    fn judge(&mut self, input: &[u8]) -> Result<(), String> {
        let &[place, low, high, first, second, fill, ..] = input else { return Ok(()) };
        let Some(cap) = CAPS.get(usize::from(place)) else { return Ok(()) };
        // 32,768 is the cap itself; below and above in steps that reach from nothing to twice it.
        let far = i64::from(u16::from_le_bytes([low, high])) - 32_768;
        let step = if far.abs() < 128 { 1 } else { (cap.most as i64 / 32_768).max(1) };
        let count = usize::try_from(cap.most as i64 + far * step).unwrap_or(0);
        self.answer.clear();
        self.answer.extend_from_slice(cap.before);
        for _ in 0..count {
            self.answer.extend_from_slice(cap.unit);
        }
        self.answer.extend_from_slice(cap.behind);
        let fill = if fill.is_ascii_alphanumeric() { fill } else { b'1' };
        for byte in self.answer.iter_mut().filter(|byte| **byte == b'*') {
            *byte = fill;
        }
        let length = self.answer.len();
        let cuts = |size: u8| {
            let piece = (length >> 12).max(1) << (size % 14);
            (piece..length).step_by(piece)
        };
        let reader = &mut AnswerReader::new();
        self.first.read(reader, true, &self.answer, cuts(first), Behind::Close);
        self.second.read(reader, true, &self.answer, cuts(second), Behind::Close);
        self.first.check()?;
        let over = self.first.class() == Class::OverLimit;
        let wrong =
            if over { count + cap.margin < cap.most } else { count > cap.most + cap.margin };
        // A reader that stops has seen no more of the rest than its piece.
        let same = self.first.same_content(&self.second)
            && self.first.class() == self.second.class()
            && (over || self.first.agrees(&self.second));
        if same && !wrong {
            return Ok(());
        }
        let (first, second) = (self.first.end(), self.second.end());
        Err(format!("{count} of {} (cap {place}): {first:?}, {second:?}", cap.most))
    }
}
