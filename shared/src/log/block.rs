//! Blocks: the unit that is written, checked and lost as a whole.
//!
//! A pacing core fills a [`BlockBuffer`] by copying 32 bytes per record into memory it already
//! owns; header and checksum are put in place by [`BlockBuffer::seal`] on the writer thread.
//! Nothing here does IO, and pushing never allocates. The layout is in [`super`]'s page.

use crc32fast::Hasher;

use super::plan_row::{PLAN_ROW_BYTES, PlanRow};
use super::record::{RECORD_BYTES, Record};
use super::recorded_row::{RECORDED_ROW_BYTES, RecordedRow};
use crate::units::CoreIndex;

/// Bytes of the longest Records, Plan or Sessions block: a header and 2,047 records.
pub const BLOCK_BYTES: usize = 64 * 1024;
/// Bytes of a block's header.
pub const BLOCK_HEADER_BYTES: usize = 32;
/// Records in a full block.
pub const BLOCK_RECORDS: usize = (BLOCK_BYTES - BLOCK_HEADER_BYTES) / RECORD_BYTES;
/// The first eight bytes of every block. `FF` never occurs in UTF-8, so no text can imitate it.
pub const BLOCK_MARK: [u8; 8] = *b"\xFFblock\r\n";
/// Bytes of the longest JSON payload.
pub const JSON_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes of a request's number in the whole plan.
pub const NUMBER_BYTES: usize = 4;
/// Bytes of a session name that the log keeps; the trace has the rest.
pub const SESSION_NAME_BYTES_MAX: usize = 4 * 1024;

const _: () = assert!(BLOCK_RECORDS == 2_047);
const _: () = assert!(SESSION_NAME_BYTES_MAX + 8 <= BLOCK_BYTES - BLOCK_HEADER_BYTES);

/// What a block holds. The numbers are part of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum BlockKind {
    /// The manifest's JSON.
    Manifest = 1,
    /// Plan rows.
    Plan = 2,
    /// Session names.
    Sessions = 3,
    /// Records of one core.
    Records = 4,
    /// The footer's JSON.
    Footer = 5,
    /// What the trace recorded of answers.
    Recorded = 6,
    /// Blocks that the same prompts have.
    Stretches = 7,
    /// Which of those each prompt has.
    Paths = 8,
    /// The numbers of a shard's requests in the whole plan.
    Numbers = 9,
}

impl BlockKind {
    /// The kind with this number, if this version knows it.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Manifest),
            2 => Some(Self::Plan),
            3 => Some(Self::Sessions),
            4 => Some(Self::Records),
            5 => Some(Self::Footer),
            6 => Some(Self::Recorded),
            7 => Some(Self::Stretches),
            8 => Some(Self::Paths),
            9 => Some(Self::Numbers),
            _ => None,
        }
    }

    /// The longest payload this kind may have.
    #[must_use]
    pub const fn payload_bytes_max(self) -> usize {
        match self {
            Self::Manifest | Self::Footer => JSON_BYTES_MAX,
            Self::Plan
            | Self::Sessions
            | Self::Records
            | Self::Recorded
            | Self::Stretches
            | Self::Paths
            | Self::Numbers => BLOCK_BYTES - BLOCK_HEADER_BYTES,
        }
    }
}

/// The block has no room for another record: hand it to the writer and take an empty one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// One owned block of records, filled in place.
#[derive(Debug)]
pub struct BlockBuffer {
    bytes: Box<[u8]>,
    records: usize,
}

impl Default for BlockBuffer {
    fn default() -> Self {
        Self::new()
    }
}

impl BlockBuffer {
    /// An empty block. Its memory is touched here, so that no page fault waits for the pacing core.
    #[must_use]
    pub fn new() -> Self {
        // A pattern other than zero: zeroes could come from untouched pages.
        Self { bytes: vec![0xA5; BLOCK_BYTES].into_boxed_slice(), records: 0 }
    }

    /// Appends a record: a copy of 32 bytes.
    ///
    /// # Errors
    /// [`Full`] if the block holds 2,047 records; the record is not in it.
    #[inline]
    pub fn push(&mut self, record: &Record) -> Result<(), Full> {
        if self.records == BLOCK_RECORDS {
            return Err(Full);
        }
        let at = BLOCK_HEADER_BYTES + self.records * RECORD_BYTES;
        self.bytes[at..at + RECORD_BYTES].copy_from_slice(&record.encode());
        self.records += 1;
        Ok(())
    }

    /// Forgets the records; the memory stays.
    pub const fn clear(&mut self) {
        self.records = 0;
    }

    /// Writes header and checksum in place and shows the block's bytes as the file holds them.
    /// Called on the writer thread: the checksum of a full block takes microseconds.
    ///
    /// # Panics
    /// Never: the sizes are bounded by the buffer.
    pub fn seal(&mut self, core: CoreIndex, sequence: u32) -> &[u8] {
        let end = BLOCK_HEADER_BYTES + self.records * RECORD_BYTES;
        let count = u32::try_from(self.records).expect("at most 2,047 records");
        seal_in_place(&mut self.bytes[..end], BlockKind::Records, core, sequence, count);
        &self.bytes[..end]
    }

    /// The records in it, in order; `None` for one that cannot be told from its bytes.
    pub fn records(&self) -> impl Iterator<Item = Option<Record>> + '_ {
        let records = &self.bytes[BLOCK_HEADER_BYTES..][..self.records * RECORD_BYTES];
        records.chunks_exact(RECORD_BYTES).map(|record| Record::decode(record.first_chunk()?))
    }

    /// Records in the block.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.records
    }

    /// Whether there is no record.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.records == 0
    }
}

/// The plan's rows as blocks of at most 64 KiB, in order.
pub fn plan_blocks(rows: impl IntoIterator<Item = PlanRow>) -> impl Iterator<Item = Vec<u8>> {
    row_blocks::<PLAN_ROW_BYTES>(BlockKind::Plan, rows.into_iter().map(|row| row.encode()))
}

/// What the trace recorded of answers, as blocks of at most 64 KiB, in order.
pub fn recorded_blocks(
    rows: impl IntoIterator<Item = RecordedRow>,
) -> impl Iterator<Item = Vec<u8>> {
    let rows = rows.into_iter().map(|row| row.encode());
    row_blocks::<RECORDED_ROW_BYTES>(BlockKind::Recorded, rows)
}

/// The numbers of a shard's requests in the whole plan, as blocks of at most 64 KiB, in order.
pub fn number_blocks(numbers: &[u32]) -> impl Iterator<Item = Vec<u8>> + '_ {
    row_blocks::<NUMBER_BYTES>(
        BlockKind::Numbers,
        numbers.iter().map(|number| number.to_le_bytes()),
    )
}

/// Rows of a fixed size as blocks of one kind.
pub(super) fn row_blocks<const BYTES: usize>(
    kind: BlockKind,
    mut rows: impl Iterator<Item = [u8; BYTES]>,
) -> impl Iterator<Item = Vec<u8>> {
    let mut sequence = 0;
    std::iter::from_fn(move || {
        let mut block = vec![0; BLOCK_HEADER_BYTES];
        let mut count = 0;
        for row in rows.by_ref().take((BLOCK_BYTES - BLOCK_HEADER_BYTES) / BYTES) {
            block.extend_from_slice(&row);
            count += 1;
        }
        if count == 0 {
            return None;
        }
        seal_in_place(&mut block, kind, CoreIndex::CONDUCTOR, sequence, count);
        sequence += 1;
        Some(block)
    })
}

/// The sessions' names as blocks of at most 64 KiB, in order. A name beyond 4 KiB is cut.
///
/// # Panics
/// If there are more than `u32::MAX` names.
pub fn session_blocks(names: &[String]) -> impl Iterator<Item = Vec<u8>> + '_ {
    let mut next = 0;
    let mut sequence = 0;
    std::iter::from_fn(move || {
        if next == names.len() {
            return None;
        }
        let first = u32::try_from(next).expect("session numbers are 32 bits");
        let mut block = vec![0; BLOCK_HEADER_BYTES];
        block.extend_from_slice(&first.to_le_bytes());
        let mut count = 0;
        while let Some(name) = names.get(next) {
            let name = &name.as_bytes()[..name.floor_char_boundary(SESSION_NAME_BYTES_MAX)];
            if block.len() + 4 + name.len() > BLOCK_BYTES {
                break;
            }
            let bytes = u32::try_from(name.len()).expect("a kept name has at most 4 KiB");
            block.extend_from_slice(&bytes.to_le_bytes());
            block.extend_from_slice(name);
            count += 1;
            next += 1;
        }
        seal_in_place(&mut block, BlockKind::Sessions, CoreIndex::CONDUCTOR, sequence, count);
        sequence += 1;
        Some(block)
    })
}

/// A whole block around a payload.
pub(super) fn sealed(
    kind: BlockKind,
    core: CoreIndex,
    sequence: u32,
    count: u32,
    payload: &[u8],
) -> Vec<u8> {
    let mut block = vec![0; BLOCK_HEADER_BYTES];
    block.extend_from_slice(payload);
    seal_in_place(&mut block, kind, core, sequence, count);
    block
}

/// Writes the header of a block whose payload is already behind it.
fn seal_in_place(block: &mut [u8], kind: BlockKind, core: CoreIndex, sequence: u32, count: u32) {
    let payload = block.len() - BLOCK_HEADER_BYTES;
    assert!(payload <= kind.payload_bytes_max(), "{kind:?} payload of {payload} bytes");
    let payload = u32::try_from(payload).expect("payloads are bounded by 16 MiB");
    block[..8].copy_from_slice(&BLOCK_MARK);
    block[8] = kind as u8;
    block[9] = 0;
    block[10..12].copy_from_slice(&core.0.to_le_bytes());
    block[12..16].copy_from_slice(&sequence.to_le_bytes());
    block[16..20].copy_from_slice(&count.to_le_bytes());
    block[20..24].copy_from_slice(&payload.to_le_bytes());
    block[24..28].fill(0);
    let checksum = block_checksum(block);
    block[28..32].copy_from_slice(&checksum.to_le_bytes());
}

/// The checksum of a block: its header without the checksum, then its payload.
pub(super) fn block_checksum(block: &[u8]) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(&block[..28]);
    hasher.update(&block[BLOCK_HEADER_BYTES..]);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::RunNanos;

    #[test]
    fn a_block_fills_refuses_and_empties() {
        let mut block = BlockBuffer::new();
        let record = Record::Stall { start: RunNanos(5), length_ns: 60_000 };
        assert!(block.is_empty());
        for _ in 0..BLOCK_RECORDS {
            block.push(&record).expect("room for 2,047 records");
        }
        assert_eq!(block.push(&record), Err(Full));
        assert_eq!(block.seal(CoreIndex(3), 9).len(), BLOCK_BYTES);
        block.clear();
        block.push(&record).expect("an empty block has room");
        assert_eq!(block.len(), 1);
        assert_eq!(block.seal(CoreIndex(3), 10).len(), BLOCK_HEADER_BYTES + RECORD_BYTES);
    }

    #[test]
    fn long_names_are_cut_at_a_character() {
        let names = vec!["é".repeat(SESSION_NAME_BYTES_MAX), "b".to_owned()];
        let blocks: Vec<_> = session_blocks(&names).collect();
        assert_eq!(blocks.len(), 1);
        assert_eq!(blocks[0].len(), BLOCK_HEADER_BYTES + 4 + 4 + SESSION_NAME_BYTES_MAX + 4 + 1);
    }
}
