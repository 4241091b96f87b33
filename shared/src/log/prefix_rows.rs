//! Which prompts begin alike: the trace's block ids as a tree, without the ids.
//!
//! A *stretch* is blocks that stand one after the other and that every prompt which has one of them
//! has all of; a prompt is a stretch and all that it follows. So a reader can tell what a prefix
//! cache of any size would have had of any prompt, in the order in which prompts really left,
//! without the trace. At most two stretches are new with each prompt. Only logs of traces with
//! block ids have such rows, and not all: a trace that is too long for it goes without.
//!
//! Layout, little-endian: a stretch is `follows u32 · blocks u32`, a path `request u32 · end u32 ·
//! copy u32`. A stretch follows one with a smaller number, or none (`u32::MAX`); those that hang
//! together, from one that follows none, have neighbouring numbers. A path's end is the number of
//! its last stretch. Paths share blocks only within one copy of the trace; in a user-driven run a
//! path is about a template, its copy is 0 and the copy is the user's, or it is `u32::MAX` and all
//! users share its blocks.

use super::block::{BLOCK_BYTES, BLOCK_HEADER_BYTES, BlockKind, row_blocks, sealed};
use crate::units::{CoreIndex, RequestIndex};

/// Bytes of one encoded stretch.
pub const STRETCH_ROW_BYTES: usize = 8;
/// Bytes of one encoded path.
pub const PATH_ROW_BYTES: usize = 12;
/// The copy of a path that all users share.
pub const SHARED_BY_ALL: u32 = u32::MAX;

/// Stretches in one block: behind the number of the first.
const STRETCHES_PER_BLOCK: usize = (BLOCK_BYTES - BLOCK_HEADER_BYTES - 4) / STRETCH_ROW_BYTES;

/// Blocks that the same prompts have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StretchRow {
    /// The stretch before it, by number.
    pub follows: Option<u32>,
    /// How many blocks it has.
    pub blocks: u32,
}

/// The blocks of one request, or of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathRow {
    /// The request.
    pub request: RequestIndex,
    /// Its last stretch.
    pub end: u32,
    /// The copy of the trace whose blocks they are, or [`SHARED_BY_ALL`].
    pub copy: u32,
}

/// What a log says of prompts that begin alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrefixRows {
    /// By number.
    pub stretches: Vec<StretchRow>,
    /// Of requests that have blocks.
    pub paths: Vec<PathRow>,
}

impl StretchRow {
    /// The row's bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; STRETCH_ROW_BYTES] {
        words([self.follows.unwrap_or(u32::MAX), self.blocks])
    }

    /// The row in these bytes.
    #[must_use]
    pub fn decode(bytes: &[u8; STRETCH_ROW_BYTES]) -> Self {
        let follows = Some(word(bytes, 0)).filter(|&follows| follows != u32::MAX);
        Self { follows, blocks: word(bytes, 1) }
    }
}

impl PathRow {
    /// The row's bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; PATH_ROW_BYTES] {
        words([self.request.0, self.end, self.copy])
    }

    /// The row in these bytes.
    #[must_use]
    pub fn decode(bytes: &[u8; PATH_ROW_BYTES]) -> Self {
        Self { request: RequestIndex(word(bytes, 0)), end: word(bytes, 1), copy: word(bytes, 2) }
    }
}

/// Stretches and paths as blocks of at most 64 KiB, in order.
///
/// # Panics
/// If there are more than `u32::MAX` stretches.
pub fn prefix_blocks(rows: &PrefixRows) -> impl Iterator<Item = Vec<u8>> + '_ {
    let stretches = rows.stretches.chunks(STRETCHES_PER_BLOCK);
    let number = |count: usize| u32::try_from(count).expect("stretches are numbered in 32 bits");
    let stretches = stretches.enumerate().map(move |(sequence, stretches)| {
        let mut payload = number(sequence * STRETCHES_PER_BLOCK).to_le_bytes().to_vec();
        stretches.iter().for_each(|stretch| payload.extend_from_slice(&stretch.encode()));
        let (sequence, count) = (number(sequence), number(stretches.len()));
        sealed(BlockKind::Stretches, CoreIndex::CONDUCTOR, sequence, count, &payload)
    });
    let paths = rows.paths.iter().map(PathRow::encode);
    stretches.chain(row_blocks::<PATH_ROW_BYTES>(BlockKind::Paths, paths))
}

/// A block of stretches.
#[derive(Clone, Copy, Debug)]
pub struct StretchRows<'a> {
    /// The number of the first.
    pub first: u32,
    rows: &'a [u8],
}

impl<'a> StretchRows<'a> {
    /// The rows of a payload; `None` if it ends inside one.
    pub(super) fn of(payload: &'a [u8]) -> Option<Self> {
        let (first, rows) = payload.split_first_chunk::<4>()?;
        let whole = rows.len().is_multiple_of(STRETCH_ROW_BYTES);
        whole.then_some(Self { first: u32::from_le_bytes(*first), rows })
    }

    /// The rows, in order.
    pub fn iter(&self) -> impl Iterator<Item = StretchRow> + use<'a> {
        let rows = self.rows.chunks_exact(STRETCH_ROW_BYTES);
        rows.filter_map(|row| row.first_chunk()).map(StretchRow::decode)
    }
}

/// A block of paths.
#[derive(Clone, Copy, Debug)]
pub struct PathRows<'a> {
    rows: &'a [u8],
}

impl<'a> PathRows<'a> {
    /// The rows of a payload; `None` if it ends inside one.
    pub(super) fn of(rows: &'a [u8]) -> Option<Self> {
        rows.len().is_multiple_of(PATH_ROW_BYTES).then_some(Self { rows })
    }

    /// The rows, in order.
    pub fn iter(&self) -> impl Iterator<Item = PathRow> + use<'a> {
        let rows = self.rows.chunks_exact(PATH_ROW_BYTES);
        rows.filter_map(|row| row.first_chunk()).map(PathRow::decode)
    }
}

fn words<const WORDS: usize, const BYTES: usize>(values: [u32; WORDS]) -> [u8; BYTES] {
    let mut out = [0; BYTES];
    for (place, value) in out.chunks_exact_mut(4).zip(values) {
        place.copy_from_slice(&value.to_le_bytes());
    }
    out
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let at = 4 * at;
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{Decoder, Item, file_header};

    #[test]
    fn rows_survive_the_round_trip_over_several_blocks() {
        let stretches = (0..20_000_u32)
            .map(|number| StretchRow { follows: number.checked_sub(1), blocks: number % 7 + 1 })
            .collect();
        let paths = (0..12_000_u32)
            .map(|number| PathRow {
                request: RequestIndex(number),
                end: number,
                copy: if number % 3 == 0 { SHARED_BY_ALL } else { number % 3 },
            })
            .collect();
        let rows = PrefixRows { stretches, paths };
        let mut log = file_header().to_vec();
        log.extend(prefix_blocks(&rows).flatten());
        let mut read = PrefixRows::default();
        for item in Decoder::new(&log).expect("a log") {
            match item {
                Item::Stretches(block) => {
                    assert_eq!(block.first as usize, read.stretches.len());
                    read.stretches.extend(block.iter());
                }
                Item::Paths(block) => read.paths.extend(block.iter()),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(read, rows);
        assert!(prefix_blocks(&PrefixRows::default()).next().is_none());
    }
}
