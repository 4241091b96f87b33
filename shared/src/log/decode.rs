//! Reads a log's bytes block by block, whatever state they are in.
//!
//! Promises: it never panics, on any input; it never allocates by a number that the file states; it
//! yields nothing from a block whose checksum is wrong; it finds the next whole block after a
//! damaged one; its work is bounded by a small multiple of the input's length. It borrows the bytes
//! and does no IO. Finding blocks is `super::scan`'s part, joining records to requests
//! [`crate::run`]'s job.

use super::LogError;
use super::block::{BLOCK_MARK, NUMBER_BYTES};
use super::header::{FILE_HEADER_BYTES, FileHeader, Footer, Manifest};
use super::plan_row::{PLAN_ROW_BYTES, PlanRow};
use super::prefix_rows::{PathRows, StretchRows};
use super::record::{RECORD_BYTES, Record};
use super::recorded_row::{RECORDED_ROW_BYTES, RecordedRow};
use super::scan::Scanner;
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
    /// Some of the blocks that the same prompts have.
    Stretches(StretchRows<'a>),
    /// Which of those some prompts have.
    Paths(PathRows<'a>),
    /// Numbers of a shard's requests in the whole plan.
    Numbers(Numbers<'a>),
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
    pub(super) payload: &'a [u8],
    pub(super) row_bytes: usize,
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
    pub(super) payload: &'a [u8],
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

/// A block of numbers of a shard's requests in the whole plan.
#[derive(Clone, Copy, Debug)]
pub struct Numbers<'a> {
    pub(super) payload: &'a [u8],
}

impl<'a> Numbers<'a> {
    /// The numbers, in order of the shard's own.
    pub fn iter(&self) -> impl Iterator<Item = u32> + use<'a> {
        let numbers = self.payload.chunks_exact(NUMBER_BYTES);
        numbers.filter_map(|number| number.first_chunk()).map(|bytes| u32::from_le_bytes(*bytes))
    }
}

/// A block of session names.
#[derive(Clone, Copy, Debug)]
pub struct SessionNames<'a> {
    /// The session index of the first name.
    pub first: u32,
    pub(super) names: &'a [u8],
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
    pub(super) payload: &'a [u8],
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
    scanner: Scanner,
    header_damage: bool,
    torn: bool,
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
        let header = opening(bytes)?;
        Ok(Self {
            bytes,
            scanner: Scanner::new(&header, offset.min(bytes.len())),
            header_damage: header.damaged && offset <= FILE_HEADER_BYTES,
            torn: false,
        })
    }

    /// Where the next unread block begins. After a torn tail this is the tail's begin: once the
    /// file has grown, [`Decoder::resume`] there.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.scanner.at()
    }
}

impl<'a> Iterator for Decoder<'a> {
    type Item = Item<'a>;

    fn next(&mut self) -> Option<Item<'a>> {
        if self.header_damage {
            self.header_damage = false;
            return Some(Item::DamagedHeader);
        }
        if self.torn {
            return None;
        }
        let item = self.scanner.next(self.bytes.get(self.scanner.at()..)?, true);
        self.torn = matches!(item, Some(Item::TornTail { .. }));
        item
    }
}

/// A file's header, judged by the file's first bytes.
pub(super) fn opening(bytes: &[u8]) -> Result<FileHeader, LogError> {
    let next_is_block =
        bytes.get(FILE_HEADER_BYTES..).is_some_and(|rest| rest.starts_with(&BLOCK_MARK));
    FileHeader::read(bytes, next_is_block)
}
