//! Finds a log's blocks in bytes that come piece by piece.
//!
//! Promises that the blocks found do not depend on where the pieces are cut: a block that is not
//! there yet is waited for, until the caller says that nothing more comes. It holds no bytes: the
//! caller gives those from [`Scanner::at`] on, and gives what was left over again with more behind
//! it. What [`super::decode`] promises of hostile bytes is kept here.

use super::block::{
    BLOCK_HEADER_BYTES, BLOCK_MARK, BlockKind, JSON_BYTES_MAX, NUMBER_BYTES, block_checksum,
};
use super::decode::{Item, Numbers, PlanRows, RecordBlock, RecordedRows, SessionNames, opening};
use super::header::{FILE_HEADER_BYTES, FileHeader};
use super::prefix_rows::{PathRows, StretchRows};
use super::record::RECORD_BYTES;
use super::recorded_row::RECORDED_ROW_BYTES;
use super::{BLOCK_BYTES, LogError};
use crate::units::CoreIndex;

/// Checksums that may be taken in vain before the scanner starts to skip whole blocks.
const WASTE_FREE: usize = 64 * BLOCK_BYTES;

/// What of a file's begin must be there before its header can be judged: it and the next mark.
const OPENING_BYTES: usize = FILE_HEADER_BYTES + BLOCK_MARK.len();

/// Where a scan of a log stands.
#[derive(Debug)]
pub(crate) struct Scanner {
    at: usize,
    plan_row_bytes: usize,
    /// Bytes that are no block and whose end has not been found yet.
    skipping: Option<Skip>,
    /// Bytes whose checksum was taken in vain. Crafted input could make this quadratic, so past a
    /// bound a bad block is skipped whole instead of being searched.
    wasted: usize,
}

/// Bytes that are no block.
#[derive(Debug)]
struct Skip {
    offset: usize,
    reason: &'static str,
    /// All of the block that they claim to be is there.
    whole: bool,
}

impl Scanner {
    /// Begins at an offset of the file, or at the first block if that comes later.
    pub(super) const fn new(header: &FileHeader, offset: usize) -> Self {
        let at = if offset < FILE_HEADER_BYTES { FILE_HEADER_BYTES } else { offset };
        Self { at, plan_row_bytes: header.plan_row_bytes, skipping: None, wasted: 0 }
    }

    /// Judges a file by its first bytes: a scanner at its first block, and whether its header is
    /// damaged. `None`: more bytes must come first, if any will.
    ///
    /// # Errors
    /// If the bytes are no log, or one that a newer version must read.
    pub(crate) fn open(bytes: &[u8], ended: bool) -> Result<Option<(Self, bool)>, LogError> {
        if bytes.len() < OPENING_BYTES && !ended {
            return Ok(None);
        }
        let header = opening(bytes)?;
        Ok(Some((Self::new(&header, FILE_HEADER_BYTES), header.damaged)))
    }

    /// The file's offset whose bytes are wanted next.
    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    /// Where the bytes begin that are no whole block yet.
    pub(crate) fn pending_from(&self) -> usize {
        self.skipping.as_ref().map_or(self.at, |skip| skip.offset)
    }

    /// The next item in `rest`, the file's bytes from [`Self::at`] on; `None` when that takes more
    /// bytes than there are. `ended`: no more will come, so what is left is torn or damaged.
    pub(crate) fn next<'a>(&mut self, rest: &'a [u8], ended: bool) -> Option<Item<'a>> {
        if let Some(skip) = self.skipping.take() {
            return self.skip(skip, rest, 0, ended);
        }
        if rest.is_empty() {
            return None;
        }
        let fault = match Block::read(rest) {
            Ok(block) => {
                let bytes = BLOCK_HEADER_BYTES + block.payload.len();
                let offset = self.at;
                let item = self.item(&block).unwrap_or_else(|reason| Item::Damaged {
                    offset,
                    bytes,
                    reason,
                });
                self.at += bytes;
                return Some(item);
            }
            Err(fault) => fault,
        };
        if fault.early && !ended {
            return None;
        }
        self.wasted = self.wasted.saturating_add(fault.hashed);
        let exhausted = self.wasted > self.at.saturating_mul(4).saturating_add(WASTE_FREE);
        let from = if exhausted { fault.hashed.max(1) } else { 1 };
        let skip = Skip { offset: self.at, reason: fault.reason, whole: fault.whole };
        self.skip(skip, rest, from, ended)
    }

    /// Skips bytes that are no block: to the next mark, or to the end.
    fn skip<'a>(&mut self, skip: Skip, rest: &[u8], from: usize, ended: bool) -> Option<Item<'a>> {
        let Skip { offset, reason, whole } = skip;
        if let Some(next) = find_mark(rest, from) {
            self.at += next;
            return Some(Item::Damaged { offset, bytes: self.at - offset, reason });
        }
        if !ended {
            // A mark may have begun.
            let searched = rest.len().saturating_sub(BLOCK_MARK.len() - 1).max(from);
            self.at += searched.min(rest.len());
            self.skipping = Some(skip);
            return None;
        }
        let bytes = self.at + rest.len() - offset;
        if whole {
            self.at += rest.len();
            return Some(Item::Damaged { offset, bytes, reason });
        }
        self.at = offset;
        Some(Item::TornTail { offset, bytes })
    }

    /// Turns a whole block into an item; `Err` names what its payload breaks.
    fn item<'a>(&self, block: &Block<'a>) -> Result<Item<'a>, &'static str> {
        let Some(kind) = BlockKind::from_number(block.kind) else {
            return Ok(Item::Unknown { kind: block.kind });
        };
        let payload = block.payload;
        let whole = |entry: usize| payload.len().is_multiple_of(entry);
        match kind {
            BlockKind::Manifest => serde_json::from_slice(payload)
                .map(|manifest| Item::Manifest(Box::new(manifest)))
                .map_err(|_error| "the manifest's JSON lacks what a manifest must have"),
            BlockKind::Footer => serde_json::from_slice(payload)
                .map(|footer| Item::Footer(Box::new(footer)))
                .map_err(|_error| "the footer's JSON lacks what a footer must have"),
            BlockKind::Plan if whole(self.plan_row_bytes) => Ok(Item::Plan(PlanRows {
                sequence: block.sequence,
                payload,
                row_bytes: self.plan_row_bytes,
            })),
            BlockKind::Plan => Err("a plan block ends inside a row"),
            BlockKind::Sessions => {
                let (first, names) =
                    payload.split_first_chunk::<4>().ok_or("a sessions block has no index")?;
                Ok(Item::Sessions(SessionNames { first: u32::from_le_bytes(*first), names }))
            }
            BlockKind::Recorded if whole(RECORDED_ROW_BYTES) => {
                Ok(Item::Recorded(RecordedRows { payload }))
            }
            BlockKind::Recorded => Err("a block of recorded answers ends inside a row"),
            BlockKind::Stretches => StretchRows::of(payload)
                .map(Item::Stretches)
                .ok_or("a block of stretches ends inside a row"),
            BlockKind::Paths => {
                PathRows::of(payload).map(Item::Paths).ok_or("a block of paths ends inside a row")
            }
            BlockKind::Numbers if whole(NUMBER_BYTES) => Ok(Item::Numbers(Numbers { payload })),
            BlockKind::Numbers => Err("a block of numbers ends inside one"),
            BlockKind::Records if whole(RECORD_BYTES) => Ok(Item::Records(RecordBlock {
                core: block.core,
                sequence: block.sequence,
                offset: self.at,
                payload,
            })),
            BlockKind::Records => Err("a records block ends inside a record"),
        }
    }
}

/// A block whose lengths and checksum are right.
struct Block<'a> {
    kind: u8,
    core: CoreIndex,
    sequence: u32,
    payload: &'a [u8],
}

/// Why bytes are no block.
struct Fault {
    reason: &'static str,
    /// Bytes that were checked before this was known.
    hashed: usize,
    /// All of the block's claimed bytes are there.
    whole: bool,
    /// More bytes could make it a block.
    early: bool,
}

impl<'a> Block<'a> {
    fn read(rest: &'a [u8]) -> Result<Self, Fault> {
        let fault = |reason| Fault { reason, hashed: 0, whole: false, early: false };
        let Some(header) = rest.first_chunk::<BLOCK_HEADER_BYTES>() else {
            return Err(Fault { early: true, ..fault("bytes that begin no block") });
        };
        if header[..8] != BLOCK_MARK {
            return Err(fault("bytes that begin no block"));
        }
        let word = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let payload_bytes = word(20) as usize;
        // A kind that a later version added is bounded like the longest one we know.
        let limit =
            BlockKind::from_number(header[8]).map_or(JSON_BYTES_MAX, BlockKind::payload_bytes_max);
        if payload_bytes > limit {
            return Err(fault("a block longer than its kind may be"));
        }
        let Some(block) = rest.get(..BLOCK_HEADER_BYTES + payload_bytes) else {
            return Err(Fault { early: true, ..fault("a block longer than the file") });
        };
        if block_checksum(block) != word(28) {
            let hashed = block.len();
            return Err(Fault { hashed, whole: true, ..fault("a block with a wrong checksum") });
        }
        Ok(Self {
            kind: header[8],
            core: CoreIndex(u16::from_le_bytes([header[10], header[11]])),
            sequence: word(12),
            payload: &block[BLOCK_HEADER_BYTES..],
        })
    }
}

/// The place of the next block's mark at or after `from`.
pub(crate) fn find_mark(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let rest = bytes.get(at..)?;
        at += rest.iter().position(|&byte| byte == BLOCK_MARK[0])?;
        if bytes[at..].starts_with(&BLOCK_MARK) {
            return Some(at);
        }
        at += 1;
    }
}
