//! Block ids of a whole trace in one allocation, four bytes each while they fit.
//!
//! Public traces number their blocks from zero, so 32 bits hold nearly all of them and halve the
//! memory; the first wider id widens the arena once. A negative id is kept as its 64-bit pattern:
//! ids are names, not quantities. This file does not know what a block's text is.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Most ids a trace may have: 2 GiB of narrow ones, five times the largest public trace known.
pub const BLOCK_IDS_MAX: usize = 1 << 29;

/// The ids of all rows, one row after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockIds {
    /// Every id so far fits 32 bits.
    Narrow(Vec<u32>),
    /// At least one does not.
    Wide(Vec<u64>),
}

/// The ids of one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks<'a> {
    /// A slice of a narrow arena.
    Narrow(&'a [u32]),
    /// A slice of a wide arena.
    Wide(&'a [u64]),
}

/// Ids as small numbers, to index tables with.
#[derive(Clone, Debug)]
pub enum Numbering {
    /// They are small already: they count from about zero. How many numbers there are.
    Same(u32),
    /// They are numbered in order of appearance.
    Numbered(HashMap<u64, u32, Mixing>),
}

/// Hashing for keys that nobody chooses to collide.
pub type Mixing = BuildHasherDefault<Mixer>;

/// Spreads a 64-bit key.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mixer(u64);

/// Ids are their own numbers when the largest is below this many times their count: a table of them
/// then has at most so many unused places for each id of the trace.
const SPARSEST: usize = 3;

/// All numbers are below this.
pub const NUMBERS_END: u32 = 1 << 31;
const _: () = assert!((SPARSEST + 1) * (BLOCK_IDS_MAX + 1) <= NUMBERS_END as usize + SPARSEST + 1);

impl Default for BlockIds {
    fn default() -> Self {
        Self::Narrow(Vec::new())
    }
}

impl BlockIds {
    /// Adds an id at the end.
    pub fn push(&mut self, id: u64) {
        match self {
            Self::Narrow(ids) => match u32::try_from(id) {
                Ok(id) => ids.push(id),
                Err(_) => {
                    let mut wide: Vec<u64> = ids.iter().map(|&id| u64::from(id)).collect();
                    wide.push(id);
                    *self = Self::Wide(wide);
                }
            },
            Self::Wide(ids) => ids.push(id),
        }
    }

    /// Forgets every id from place `len` on.
    pub fn truncate(&mut self, len: usize) {
        match self {
            Self::Narrow(ids) => ids.truncate(len),
            Self::Wide(ids) => ids.truncate(len),
        }
    }

    /// Gives back memory that was set aside for more ids.
    pub fn shrink_to_fit(&mut self) {
        match self {
            Self::Narrow(ids) => ids.shrink_to_fit(),
            Self::Wide(ids) => ids.shrink_to_fit(),
        }
    }

    /// How many ids there are, repeated ones counted each time.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::Narrow(ids) => ids.len(),
            Self::Wide(ids) => ids.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The largest id; `None` when there are none.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        match self {
            Self::Narrow(ids) => ids.iter().max().map(|&id| u64::from(id)),
            Self::Wide(ids) => ids.iter().max().copied(),
        }
    }

    /// The ids from place `first` on, `count` of them.
    ///
    /// # Panics
    /// When the arena does not hold so many: a record of another trace.
    #[must_use]
    pub fn slice(&self, first: u64, count: u32) -> Blocks<'_> {
        let first = usize::try_from(first).expect("an arena in memory is addressed by usize");
        let range = first..first + count as usize;
        match self {
            Self::Narrow(ids) => Blocks::Narrow(&ids[range]),
            Self::Wide(ids) => Blocks::Wide(&ids[range]),
        }
    }
}

impl<'a> Blocks<'a> {
    /// How many ids the row has.
    #[must_use]
    pub const fn len(self) -> usize {
        match self {
            Self::Narrow(ids) => ids.len(),
            Self::Wide(ids) => ids.len(),
        }
    }

    /// Whether it has none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The id in place `at`.
    ///
    /// # Panics
    /// When there is no such place.
    #[must_use]
    pub fn id(self, at: usize) -> u64 {
        match self {
            Self::Narrow(ids) => u64::from(ids[at]),
            Self::Wide(ids) => ids[at],
        }
    }

    /// How many leading ids two rows have in common.
    #[must_use]
    pub fn common_prefix(self, other: Self) -> usize {
        match (self, other) {
            (Self::Narrow(own), Self::Narrow(other)) => common(own, other),
            (Self::Wide(own), Self::Wide(other)) => common(own, other),
            _ => self.iter().zip(other.iter()).take_while(|(own, other)| own == other).count(),
        }
    }

    /// The ids in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = u64> + 'a {
        (0..self.len()).map(move |at| self.id(at))
    }
}

fn common<T: Eq>(own: &[T], other: &[T]) -> usize {
    own.iter().zip(other).take_while(|(own, other)| own == other).count()
}

impl Numbering {
    /// A numbering for the ids of one trace.
    ///
    /// # Panics
    /// When there are more than [`BLOCK_IDS_MAX`], which no reader lets through.
    #[must_use]
    pub fn of(ids: &BlockIds) -> Self {
        let count = ids.len();
        assert!(count <= BLOCK_IDS_MAX, "readers bound the number of block ids");
        let largest = usize::try_from(ids.max().unwrap_or(0)).unwrap_or(usize::MAX);
        if largest / SPARSEST > count {
            return Self::Numbered(HashMap::default());
        }
        Self::Same(u32::try_from(largest + 1).expect("bounded: see NUMBERS_END"))
    }

    /// How many numbers there are so far.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Same(len) => *len as usize,
            Self::Numbered(numbers) => numbers.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of an id, if it has one.
    #[must_use]
    pub fn number(&self, id: u64) -> Option<u32> {
        match self {
            Self::Same(len) => u32::try_from(id).ok().filter(|number| number < len),
            Self::Numbered(numbers) => numbers.get(&id).copied(),
        }
    }

    /// The number of an id, a fresh one if it has none.
    ///
    /// # Panics
    /// When the id is not of the trace the numbering was made for.
    pub fn number_or_new(&mut self, id: u64) -> u32 {
        match self {
            Self::Same(_) => self.number(id).expect("an id of another trace"),
            Self::Numbered(numbers) => {
                let next = u32::try_from(numbers.len()).expect("bounded by BLOCK_IDS_MAX");
                *numbers.entry(id).or_insert(next)
            }
        }
    }
}

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, key: u64) {
        let mut mixed = (self.0 ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^= mixed >> 32;
        self.0 = mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ (mixed >> 29);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_id_widens_what_came_before() {
        let mut ids = BlockIds::default();
        ids.push(7);
        assert!(matches!(ids, BlockIds::Narrow(_)));
        ids.push(u64::MAX);
        ids.push(8);
        assert!(matches!(ids, BlockIds::Wide(_)));
        assert_eq!(ids.slice(0, 3).iter().collect::<Vec<_>>(), [7, u64::MAX, 8]);
        assert_eq!(ids.slice(2, 1).id(0), 8);
        assert_eq!(ids.max(), Some(u64::MAX));
    }

    #[test]
    fn small_ids_are_their_own_numbers_and_others_are_counted() {
        let numbering = |ids: &[u64]| {
            let mut arena = BlockIds::default();
            ids.iter().for_each(|&id| arena.push(id));
            let mut numbering = Numbering::of(&arena);
            ids.iter().map(|&id| numbering.number_or_new(id)).collect::<Vec<_>>()
        };
        assert_eq!(numbering(&[5, 0, 5]), [5, 0, 5]);
        assert_eq!(numbering(&[1 << 40, 7, 1 << 40]), [0, 1, 0]);
        assert_eq!(Numbering::of(&BlockIds::default()).number(9), None);
    }

    #[test]
    fn an_empty_row_has_no_ids() {
        let ids = BlockIds::default();
        assert!(ids.slice(0, 0).is_empty());
        assert_eq!(ids.max(), None);
    }
}
