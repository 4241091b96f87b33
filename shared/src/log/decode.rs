//! Reads a log's bytes block by block, whatever state they are in.
//!
//! Promises: it never panics, on any input; it never allocates by a number that the file states; it
//! yields nothing from a block whose checksum is wrong; it finds the next whole block after a
//! damaged one; its work is bounded by a small multiple of the input's length. It borrows the bytes
//! (usually a mapped file) and does no IO. Joining records to requests is [`crate::run`]'s job.

use super::block::{BLOCK_HEADER_BYTES, BLOCK_MARK, BlockKind, block_checksum};
use super::header::{FILE_HEADER_BYTES, FileHeader, Footer, Manifest};
use super::plan_row::{PLAN_ROW_BYTES, PlanRow};
use super::record::{RECORD_BYTES, Record};
use super::recorded_row::{RECORDED_ROW_BYTES, RecordedRow};
use super::{BLOCK_BYTES, LogError};
use crate::units::CoreIndex;

/// What the decoder found next.
#[derive(Debug)]
pub enum Item<'a> {
    /// The manifest.
    Manifest(Box<Manifest>),
    /// A part of the plan.
    Plan(PlanRows<'a>),
    /// A part of the sessions' names.
    Sessions(SessionNames<'a>),
    /// A part of what the trace recorded of answers.
    Recorded(RecordedRows<'a>),
    /// A block of one core's records.
    Records(RecordBlock<'a>),
    /// The footer.
    Footer(Box<Footer>),
    /// A whole block of a kind that this version does not know.
    Unknown {
        /// The kind's number.
        kind: u8,
    },
    /// The file header is damaged; reading goes on as if it were this version's.
    DamagedHeader,
    /// Bytes that are no whole block, with whole blocks after them.
    Damaged {
        /// Where they begin in the file.
        offset: usize,
        /// How many they are.
        bytes: usize,
        /// What is wrong with them.
        reason: &'static str,
    },
    /// Bytes at the file's end that are no whole block.
    TornTail {
        /// Where they begin in the file.
        offset: usize,
        /// How many they are.
        bytes: usize,
    },
}

/// A block of plan rows.
#[derive(Clone, Copy, Debug)]
pub struct PlanRows<'a> {
    /// Place among the plan's blocks, from zero.
    pub sequence: u32,
    payload: &'a [u8],
    row_bytes: usize,
}

impl<'a> PlanRows<'a> {
    /// The rows, in order.
    pub fn iter(&self) -> impl Iterator<Item = PlanRow> + use<'a> {
        self.payload
            .chunks_exact(self.row_bytes)
            .filter_map(|row| row.first_chunk::<PLAN_ROW_BYTES>())
            .map(PlanRow::decode)
    }
}

/// A block of rows about recorded answers.
#[derive(Clone, Copy, Debug)]
pub struct RecordedRows<'a> {
    payload: &'a [u8],
}

impl<'a> RecordedRows<'a> {
    /// The rows, in order.
    pub fn iter(&self) -> impl Iterator<Item = RecordedRow> + use<'a> {
        self.payload
            .chunks_exact(RECORDED_ROW_BYTES)
            .filter_map(|row| row.first_chunk())
            .map(RecordedRow::decode)
    }
}

/// A block of session names.
#[derive(Clone, Copy, Debug)]
pub struct SessionNames<'a> {
    /// The session index of the first name.
    pub first: u32,
    names: &'a [u8],
}

impl<'a> SessionNames<'a> {
    /// The names in order, as the file has them (UTF-8 unless another program wrote them).
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut rest = self.names;
        std::iter::from_fn(move || {
            let (bytes, after) = rest.split_first_chunk::<4>()?;
            let length = usize::try_from(u32::from_le_bytes(*bytes)).ok()?;
            let (name, after) = after.split_at_checked(length)?;
            rest = after;
            Some(name)
        })
    }
}

/// A block of one core's records, in the core's own order.
#[derive(Clone, Copy, Debug)]
pub struct RecordBlock<'a> {
    /// Whose records; [`CoreIndex::CONDUCTOR`] for the control plane's.
    pub core: CoreIndex,
    /// Place among the core's blocks, from zero.
    pub sequence: u32,
    /// Where the block begins in the file.
    pub offset: usize,
    payload: &'a [u8],
}

impl<'a> RecordBlock<'a> {
    /// The records; `None` for one whose kind or class this version does not know.
    pub fn iter(&self) -> impl Iterator<Item = Option<Record>> + use<'a> {
        self.raw().map(Record::decode)
    }

    /// The records' bytes, for readers that do not need all of them decoded.
    pub(crate) fn raw(&self) -> impl Iterator<Item = &'a [u8; RECORD_BYTES]> + use<'a> {
        self.payload.chunks_exact(RECORD_BYTES).filter_map(|record| record.first_chunk())
    }

    /// How many records there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.payload.len() / RECORD_BYTES
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.payload.is_empty()
    }
}

/// Iterates over a log's blocks.
#[derive(Debug)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
    plan_row_bytes: usize,
    header_damage: bool,
    torn: bool,
    /// Bytes whose checksum was taken in vain. Crafted input could make this quadratic, so past a
    /// bound a bad block is skipped whole instead of being searched.
    wasted: usize,
}

impl<'a> Decoder<'a> {
    /// Begins at the first block.
    ///
    /// # Errors
    /// If the bytes are no log, or one that a newer version must read.
    pub fn new(bytes: &'a [u8]) -> Result<Self, LogError> {
        Self::resume(bytes, FILE_HEADER_BYTES)
    }

    /// Begins at an offset that [`Decoder::offset`] gave for a shorter state of the same file.
    ///
    /// # Errors
    /// As [`Decoder::new`].
    pub fn resume(bytes: &'a [u8], offset: usize) -> Result<Self, LogError> {
        let next_is_block =
            bytes.get(FILE_HEADER_BYTES..).is_some_and(|rest| rest.starts_with(&BLOCK_MARK));
        let header = FileHeader::read(bytes, next_is_block)?;
        Ok(Self {
            bytes,
            at: offset.clamp(FILE_HEADER_BYTES, bytes.len()),
            plan_row_bytes: header.plan_row_bytes,
            header_damage: header.damaged && offset <= FILE_HEADER_BYTES,
            torn: false,
            wasted: 0,
        })
    }

    /// Where the next unread block begins. After a torn tail this is the tail's begin: once the
    /// file has grown, [`Decoder::resume`] there.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.at
    }

    /// Turns a whole block into an item; `Err` names what its payload breaks.
    fn item(&self, block: &Block<'a>) -> Result<Item<'a>, &'static str> {
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
            BlockKind::Records if whole(RECORD_BYTES) => Ok(Item::Records(RecordBlock {
                core: block.core,
                sequence: block.sequence,
                offset: self.at,
                payload,
            })),
            BlockKind::Records => Err("a records block ends inside a record"),
        }
    }

    /// Skips bytes that are no block: to the next mark, or to the end.
    fn skip(&mut self, fault: &Fault) -> Item<'a> {
        let offset = self.at;
        self.wasted = self.wasted.saturating_add(fault.hashed);
        let exhausted = self.wasted > self.bytes.len().saturating_mul(4) + WASTE_FREE;
        let from = if exhausted { offset + fault.hashed.max(1) } else { offset + 1 };
        match find_mark(self.bytes, from) {
            Some(next) => {
                self.at = next;
                Item::Damaged { offset, bytes: next - offset, reason: fault.reason }
            }
            None if fault.whole => {
                self.at = self.bytes.len();
                Item::Damaged { offset, bytes: self.at - offset, reason: fault.reason }
            }
            None => {
                self.torn = true;
                Item::TornTail { offset, bytes: self.bytes.len() - offset }
            }
        }
    }
}

/// Checksums that may be taken in vain before the decoder starts to skip whole blocks.
const WASTE_FREE: usize = 64 * BLOCK_BYTES;

impl<'a> Iterator for Decoder<'a> {
    type Item = Item<'a>;

    fn next(&mut self) -> Option<Item<'a>> {
        if self.header_damage {
            self.header_damage = false;
            return Some(Item::DamagedHeader);
        }
        if self.torn || self.at >= self.bytes.len() {
            return None;
        }
        let block = match Block::read(&self.bytes[self.at..]) {
            Ok(block) => block,
            Err(fault) => return Some(self.skip(&fault)),
        };
        let bytes = BLOCK_HEADER_BYTES + block.payload.len();
        let item = self.item(&block).unwrap_or_else(|reason| Item::Damaged {
            offset: self.at,
            bytes,
            reason,
        });
        self.at += bytes;
        Some(item)
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
}

impl<'a> Block<'a> {
    fn read(rest: &'a [u8]) -> Result<Self, Fault> {
        let fault = |reason, hashed, whole| Fault { reason, hashed, whole };
        let Some(header) = rest.first_chunk::<BLOCK_HEADER_BYTES>() else {
            return Err(fault("bytes that begin no block", 0, false));
        };
        if header[..8] != BLOCK_MARK {
            return Err(fault("bytes that begin no block", 0, false));
        }
        let word = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let payload_bytes = word(20) as usize;
        // A kind that a later version added is bounded like the longest one we know.
        let limit = BlockKind::from_number(header[8])
            .map_or(super::block::JSON_BYTES_MAX, BlockKind::payload_bytes_max);
        if payload_bytes > limit {
            return Err(fault("a block longer than its kind may be", 0, false));
        }
        let Some(block) = rest.get(..BLOCK_HEADER_BYTES + payload_bytes) else {
            return Err(fault("a block longer than the file", 0, false));
        };
        if block_checksum(block) != word(28) {
            return Err(fault("a block with a wrong checksum", block.len(), true));
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
fn find_mark(bytes: &[u8], from: usize) -> Option<usize> {
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
