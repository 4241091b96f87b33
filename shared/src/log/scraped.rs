//! What a server says of itself at its `/metrics`, as records of the conductor's stream.
//!
//! A source is a URL that is asked now and then; a series is a metric's name with its labels, as
//! the page has it. Either is a text, told once in parts of 24 bytes, and referred to by a number
//! that depends on nothing but the text ([`number_of`]), so that logs of several machines can be
//! put behind each other. The text of a source is its URL without secrets; of a series, the
//! source's text, a space, and the name with its labels. Words of a failure are texts too.
//!
//! An asking that failed is a record as one that did not is: what is missing is known to be
//! missing, and no value stands in for it. Layout: see each variant, in the fields that every
//! record has.

use super::record::{
    KIND_SCRAPE_ASKED, KIND_SCRAPE_TEXT, KIND_SCRAPE_VALUE, RECORD_BYTES, Raw, Record,
    TEXT_PART_BYTES, filled, high, low, pair,
};
use crate::units::{RequestIndex, RunNanos};

/// Bytes of the longest text; a longer series is not recorded.
pub const SCRAPED_TEXT_BYTES_MAX: usize = 1_024;
/// Most values that could not be which an asking counts: there are seven bits for them.
pub const IMPOSSIBLE_MAX: u8 = 127;
/// Parts of the longest text.
const PARTS_MAX: usize = SCRAPED_TEXT_BYTES_MAX.div_ceil(TEXT_PART_BYTES);

const _: () = assert!(PARTS_MAX <= u8::MAX as usize);

/// Whether a series says how things are or how often something has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum SeriesKind {
    /// A level that goes up and down.
    Gauge = 1,
    /// A sum that only grows, or begins again from zero.
    Counter = 2,
}

impl SeriesKind {
    /// Its name in exports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
        }
    }

    const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Gauge),
            2 => Some(Self::Counter),
            _ => None,
        }
    }
}

/// One fact that was scraped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scraped {
    /// A part of a text. Request field: the text's number, `flags`: bytes used, `a`: place of the
    /// part | number of parts << 8; the 24 bytes of time, `x` and `y` hold the text.
    Text {
        /// The text's number.
        number: u32,
        /// Place of this part, from zero.
        part: u8,
        /// How many parts the text has.
        parts: u8,
        /// Bytes used of `bytes`.
        used: u8,
        /// The text.
        bytes: [u8; TEXT_PART_BYTES],
    },
    /// A value. Request field: number of the series' text, `flags`: kind, `x`: the value as a
    /// double's bits, `y`: nanoseconds.
    Value {
        /// Number of the series' text.
        series: u32,
        /// The middle between asking and the whole answer.
        time: RunNanos,
        /// The server read it so many nanoseconds before or after `time`, at most.
        within_ns: u64,
        /// What the server says that it is.
        kind: SeriesKind,
        /// The value; finite.
        value: f64,
    },
    /// An asking, recorded when it is over. Request field: number of the source's text, `time`:
    /// start, `x`: end, `a`: HTTP status (0: none), `flags` bit 0: it failed, bits 1 to 7: values
    /// that could not be (0 in logs of versions that did not count them), `y`: values | series left
    /// out << 16 (both at most 65,535) | number of the failure's text << 32.
    Asked {
        /// Number of the source's text.
        source: u32,
        /// When the connection was begun.
        start: RunNanos,
        /// When the answer was whole, or was given up.
        end: RunNanos,
        /// The answer's status, if a head arrived.
        status: Option<u16>,
        /// Values that were recorded of it.
        values: u16,
        /// Series of its that were left out, because there were too many or they were too long.
        left_out: u16,
        /// Values that are missing because they could not be, like a queue below zero; so many or,
        /// at [`IMPOSSIBLE_MAX`], more.
        impossible: u8,
        /// Why it failed: number of a text. `None`: it did not.
        failure: Option<u32>,
    },
}

/// The number that a text should have; who has two texts of one number gives the second the next
/// number that is free.
#[must_use]
pub fn number_of(text: &str) -> u32 {
    crc32fast::hash(text.as_bytes())
}

/// The records that tell a text; a text beyond 1 KiB is cut.
///
/// # Panics
/// Never: the number of parts is bounded.
pub fn text_records(number: u32, text: &str) -> impl Iterator<Item = Record> {
    let text = &text.as_bytes()[..text.floor_char_boundary(SCRAPED_TEXT_BYTES_MAX)];
    let parts = text.len().div_ceil(TEXT_PART_BYTES).max(1);
    let parts = u8::try_from(parts).expect("a text has at most 43 parts");
    (0..parts).map(move |part| {
        let from = usize::from(part) * TEXT_PART_BYTES;
        let piece = &text[from..text.len().min(from + TEXT_PART_BYTES)];
        let mut bytes = [0; TEXT_PART_BYTES];
        bytes[..piece.len()].copy_from_slice(piece);
        let used = u8::try_from(piece.len()).expect("a part has 24 bytes");
        Record::Scraped(Scraped::Text { number, part, parts, used, bytes })
    })
}

impl Scraped {
    pub(super) fn encode(&self) -> [u8; RECORD_BYTES] {
        let raw = |kind, number, time| Raw::stamped(kind, RequestIndex(number), time);
        match *self {
            Self::Text { number, part, parts, used, bytes } => {
                let a = u16::from_le_bytes([part, parts]);
                let raw = Raw { flags: used, a, ..raw(KIND_SCRAPE_TEXT, number, RunNanos(0)) };
                filled(raw, &bytes)
            }
            Self::Value { series, time, within_ns, kind, value } => Raw {
                flags: kind as u8,
                x: value.to_bits(),
                y: within_ns,
                ..raw(KIND_SCRAPE_VALUE, series, time)
            }
            .to_bytes(),
            Self::Asked { source, start, end, status, values, left_out, impossible, failure } => {
                Raw {
                    flags: u8::from(failure.is_some()) | impossible.min(IMPOSSIBLE_MAX) << 1,
                    a: status.unwrap_or(0),
                    x: end.0.cast_unsigned(),
                    y: pair(
                        u32::from(values) | u32::from(left_out) << 16,
                        failure.unwrap_or_default(),
                    ),
                    ..raw(KIND_SCRAPE_ASKED, source, start)
                }
                .to_bytes()
            }
        }
    }

    /// The fact in these bytes; `None` for one that this version does not know, or a value that is
    /// no number.
    pub(super) fn decode(raw: Raw, bytes: &[u8; RECORD_BYTES]) -> Option<Self> {
        let time = RunNanos(raw.time);
        match raw.kind {
            KIND_SCRAPE_TEXT => {
                let [part, parts] = raw.a.to_le_bytes();
                let mut text = [0; TEXT_PART_BYTES];
                text.copy_from_slice(&bytes[8..]);
                // A lying length must not reach past the part.
                let used = raw.flags.min(TEXT_PART_BYTES.to_le_bytes()[0]);
                Some(Self::Text { number: raw.request, part, parts, used, bytes: text })
            }
            KIND_SCRAPE_VALUE => Some(Self::Value {
                series: raw.request,
                time,
                within_ns: raw.y,
                kind: SeriesKind::from_number(raw.flags)?,
                value: Some(f64::from_bits(raw.x)).filter(|value| value.is_finite())?,
            }),
            KIND_SCRAPE_ASKED => {
                let [a, b, c, d] = low(raw.y).to_le_bytes();
                Some(Self::Asked {
                    source: raw.request,
                    start: time,
                    end: RunNanos(raw.x.cast_signed()),
                    status: Some(raw.a).filter(|&status| status != 0),
                    values: u16::from_le_bytes([a, b]),
                    left_out: u16::from_le_bytes([c, d]),
                    impossible: raw.flags >> 1,
                    failure: (raw.flags & 1 == 1).then(|| high(raw.y)),
                })
            }
            _ => None,
        }
    }

    /// When it would be written.
    #[must_use]
    pub const fn written_at(&self) -> RunNanos {
        match *self {
            Self::Text { .. } => RunNanos(i64::MIN),
            Self::Value { time, .. } => time,
            Self::Asked { end, .. } => end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_told_in_as_many_parts_as_it_needs() {
        for (length, parts) in [(0, 1), (1, 1), (24, 1), (25, 2), (1_024, 43), (5_000, 43)] {
            let text = "x".repeat(length);
            let records: Vec<Record> = text_records(7, &text).collect();
            assert_eq!(records.len(), parts, "{length}");
            let told: usize = records
                .iter()
                .map(|record| match record {
                    Record::Scraped(Scraped::Text { used, .. }) => usize::from(*used),
                    other => panic!("{other:?}"),
                })
                .sum();
            assert_eq!(told, length.min(SCRAPED_TEXT_BYTES_MAX));
            for record in records {
                assert_eq!(Record::decode(&record.encode()), Some(record));
            }
        }
    }

    #[test]
    fn a_value_that_is_no_number_is_no_value() {
        let value = |value| {
            let (series, time, within_ns, kind) = (1, RunNanos(2), 3, SeriesKind::Gauge);
            Record::Scraped(Scraped::Value { series, time, within_ns, kind, value }).encode()
        };
        assert!(Record::decode(&value(0.5)).is_some());
        for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Record::decode(&value(odd)), None);
        }
        let mut other = value(0.5);
        other[1] = 9;
        assert_eq!(Record::decode(&other), None, "a kind of a later version");
    }
}
