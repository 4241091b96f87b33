//! How much the packed parts of a file of columns may unpack to, before room is made for it.
//!
//! A packed buffer says itself how long it was, and its reader makes room for that: a few bytes
//! can ask for all memory there is, or really unpack to it. What stands together in memory, the
//! columns of one batch, may claim [`TRACE_UNPACK_BYTES_FREE`] whatever it is packed in, beyond
//! that [`TRACE_UNPACK_RATIO_MAX`] times its packed size, and never more than
//! [`TRACE_BATCH_BYTES_MAX`]. What is not packed counts for nothing: it is as long as its file.
//! Encodings that repeat values are bounded by the number of those, [`TRACE_BATCH_VALUES_MAX`]; for
//! those that write texts as differences see `deltas`.

use crate::limits::{
    TRACE_BATCH_BYTES_MAX, TRACE_BATCH_VALUES_MAX, TRACE_UNPACK_BYTES_FREE, TRACE_UNPACK_RATIO_MAX,
};

/// What the packed parts of a batch have claimed so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Claims {
    packed: u64,
    unpacked: u64,
    values: u64,
}

/// What a page's header says: bytes, and how many values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) unpacked: u64,
    pub(super) packed: u64,
    pub(super) values: u64,
    /// How the values of a page of Parquet are written, by the number that the format has for it.
    pub(super) encoding: Option<u64>,
}

impl Claims {
    /// One more part.
    ///
    /// # Errors
    /// What it claims and what would be right, when it is too much with those before it.
    pub(super) fn add(&mut self, part: Page) -> Result<(), String> {
        if part.unpacked > part.packed {
            self.packed = self.packed.saturating_add(part.packed);
            self.unpacked = self.unpacked.saturating_add(part.unpacked);
        }
        self.values = self.values.saturating_add(part.values);
        let most = self.packed.saturating_mul(TRACE_UNPACK_RATIO_MAX);
        let most = most.clamp(TRACE_UNPACK_BYTES_FREE, TRACE_BATCH_BYTES_MAX);
        if self.unpacked > most {
            return Err(format!(
                "{} packed bytes say that they unpack to {} ({} of {} with the rest of their \
                 rows); right would be at most {most} of rows that are read together: write fewer \
                 rows to a batch, or write it without compression",
                part.packed, part.unpacked, self.unpacked, self.packed
            ));
        }
        if self.values > TRACE_BATCH_VALUES_MAX {
            return Err(format!(
                "a page says that it has {} values ({} with the others of its rows); right would \
                 be at most {TRACE_BATCH_VALUES_MAX}",
                part.values, self.values
            ));
        }
        Ok(())
    }
}

/// The kind of a page without values.
const INDEX_PAGE: u64 = 1;
/// The kind of a page that also says how many nulls and rows it has, before how it is written.
const DATA_PAGE_V2: u64 = 3;
/// The numbers of the encodings that write texts as differences.
const DELTAS: [u64; 2] = [6, 7];

impl Page {
    /// What the header of a page of Parquet at the start of `bytes` says; `None` where it ends too
    /// early, or has its members in another order than all writers.
    pub(super) fn of_header(bytes: &[u8]) -> Option<Self> {
        let mut header = Compact { bytes };
        let kind = header.member()?;
        let unpacked = header.member()?;
        let packed = header.member()?;
        let mut page = Self { unpacked, packed, ..Self::default() };
        if kind == INDEX_PAGE {
            return Some(page);
        }
        let mut next = header.byte()?;
        if next == MEMBER_I32 {
            let _checksum = header.number()?;
            next = header.byte()?;
        }
        if next & 0x0f != STRUCT || next >> 4 == 0 {
            return None;
        }
        page.values = header.member()?;
        if kind == DATA_PAGE_V2 {
            let _nulls = header.member()?;
            let _rows = header.member()?;
        }
        page.encoding = Some(header.member()?);
        Some(page)
    }

    /// Whether its texts are written as differences.
    pub(super) fn is_delta(&self) -> bool {
        self.encoding.is_some_and(|encoding| DELTAS.contains(&encoding))
    }
}

/// The next member of a structure, a number of 32 bits.
const MEMBER_I32: u8 = 0x15;
/// The type of a structure.
const STRUCT: u8 = 0x0c;

/// Thrift's compact encoding, as far as it takes.
struct Compact<'a> {
    bytes: &'a [u8],
}

impl Compact<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    /// The next member, which must be a number that is not negative.
    fn member(&mut self) -> Option<u64> {
        let is_number = self.byte()? == MEMBER_I32;
        let doubled = self.number().filter(|doubled| is_number && doubled % 2 == 0)?;
        Some(doubled / 2)
    }

    /// A number as it is written: twice its value, or less one than twice a negative one.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..).step_by(7).take(5) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_says_how_much_a_page_is_and_how_many() {
        // A page of data, 300 bytes in 20, 7 values; then one with a checksum; then one of the
        // newer kind; then an index.
        let page = [0x15, 0, 0x15, 0xd8, 4, 0x15, 40, 0x2c, 0x15, 14, 0x15, 0];
        let right = Page { unpacked: 300, packed: 20, values: 7, encoding: Some(0) };
        assert_eq!(Page::of_header(&page), Some(right));
        let page = [0x15, 4, 0x15, 0xd8, 4, 0x15, 40, 0x15, 0xff, 1, 0x4c, 0x15, 14, 0x15, 14];
        let delta = Page { encoding: Some(7), ..right };
        assert_eq!(Page::of_header(&page), Some(delta));
        assert!(delta.is_delta() && !right.is_delta());
        assert_eq!(Page::of_header(&page[..11]), None);
        let page = [6, 0x15, 0xd8, 4, 0x15, 40, 0x5c, 0x15, 14, 0x15, 2, 0x15, 14, 0x15, 12];
        let newer = Page { encoding: Some(6), ..right };
        assert_eq!(Page::of_header(&[&[0x15], &page[..]].concat()), Some(newer));
        let index = Page { values: 0, encoding: None, ..right };
        assert_eq!(Page::of_header(&[0x15, 2, 0x15, 0xd8, 4, 0x15, 40]), Some(index));
        // A negative size, another order, too long a number.
        assert_eq!(Page::of_header(&[0x15, 0, 0x15, 1, 0x15, 40, 0x2c, 0x15, 14]), None);
        assert_eq!(Page::of_header(&[0x15, 0, 0x25, 40, 0x05, 4, 20, 0x2c, 0x15, 14]), None);
        assert_eq!(Page::of_header(&[0x15, 0, 0x15, 255, 255, 255, 255, 255, 1]), None);
    }

    #[test]
    fn claims_are_bounded_together() {
        let part = |unpacked, packed| Page { unpacked, packed, values: 1, ..Page::default() };
        let mut claims = Claims::default();
        assert_eq!(claims.add(part(TRACE_UNPACK_BYTES_FREE, 1)), Ok(()));
        assert_eq!(claims.add(part(u64::MAX / 2, u64::MAX / 2)), Ok(()), "it is not packed");
        let words = claims.add(part(2, 1)).expect_err("one too many");
        assert!(words.contains("1 packed bytes say that they unpack to 2"), "{words}");
        let mut claims = Claims::default();
        let packed = TRACE_BATCH_BYTES_MAX / TRACE_UNPACK_RATIO_MAX;
        assert_eq!(claims.add(part(TRACE_BATCH_BYTES_MAX, packed)), Ok(()));
        assert!(claims.add(part(packed + 1, packed)).is_err(), "whatever it is packed in");
        let many = Page { values: TRACE_BATCH_VALUES_MAX, ..Page::default() };
        let mut claims = Claims::default();
        assert!(claims.add(many).is_ok() && claims.add(part(1, 1)).is_err());
    }
}
