//! Block ids of a whole trace in one allocation, four bytes each while they fit.
//!
//! Public traces number their blocks from zero, so 32 bits hold nearly all of them and halve the
//! memory; the first wider id widens the arena once. A negative id is kept as its 64-bit pattern:
//! ids are names, not quantities. This file does not know what a block's text is.

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

    /// The ids in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = u64> + 'a {
        (0..self.len()).map(move |at| self.id(at))
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
    fn an_empty_row_has_no_ids() {
        let ids = BlockIds::default();
        assert!(ids.slice(0, 0).is_empty());
        assert_eq!(ids.max(), None);
    }
}
