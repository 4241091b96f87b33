//! The prefix cache: which blocks are in memory, least recently used out first.
//!
//! Keyed by chained block hashes, so a block is found only behind the whole prefix it was computed
//! for. A prompt's blocks are touched from its last to its first: the tail of a prefix is evicted
//! before its head, because the tail is useless without the head. Memory of running sequences is
//! not modelled: a block may be evicted while a sequence that has it still runs.

use std::collections::HashMap;

/// No entry.
const NONE: u32 = u32::MAX;

/// A bounded set of blocks in order of use.
#[derive(Debug)]
pub(super) struct PrefixCache {
    capacity: usize,
    places: HashMap<u64, u32>,
    entries: Vec<Entry>,
    newest: u32,
    oldest: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    block: u64,
    newer: u32,
    older: u32,
}

impl PrefixCache {
    /// An empty cache for `capacity` blocks.
    pub(super) fn new(capacity: usize) -> Self {
        let capacity = capacity.min(NONE as usize - 1);
        Self { capacity, places: HashMap::new(), entries: Vec::new(), newest: NONE, oldest: NONE }
    }

    /// How many blocks it can hold.
    pub(super) const fn capacity(&self) -> usize {
        self.capacity
    }

    /// How many of `blocks`, from the first on, are in the cache; they count as used now.
    pub(super) fn use_prefix(&mut self, blocks: &[u64]) -> usize {
        let found = blocks.iter().take_while(|block| self.places.contains_key(block)).count();
        self.insert(&blocks[..found]);
        found
    }

    /// Adds `blocks`, or marks them as used. Of a prefix longer than the cache the head is kept.
    pub(super) fn insert(&mut self, blocks: &[u64]) {
        for &block in blocks[..blocks.len().min(self.capacity)].iter().rev() {
            let place = match self.places.get(&block) {
                Some(&place) => {
                    self.unlink(place);
                    place
                }
                None => self.place_for(block),
            };
            self.link_newest(place);
        }
    }

    /// A place for a new block: a free one, or the oldest block's.
    fn place_for(&mut self, block: u64) -> u32 {
        let place = if self.entries.len() < self.capacity {
            self.entries.push(Entry { block, newer: NONE, older: NONE });
            u32::try_from(self.entries.len() - 1).unwrap_or(NONE)
        } else {
            let place = self.oldest;
            self.unlink(place);
            self.places.remove(&self.entries[place as usize].block);
            self.entries[place as usize].block = block;
            place
        };
        self.places.insert(block, place);
        place
    }

    fn unlink(&mut self, place: u32) {
        let Entry { newer, older, .. } = self.entries[place as usize];
        match newer {
            NONE => self.newest = older,
            _ => self.entries[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            _ => self.entries[older as usize].newer = newer,
        }
    }

    fn link_newest(&mut self, place: u32) {
        let older = self.newest;
        self.entries[place as usize].newer = NONE;
        self.entries[place as usize].older = older;
        match older {
            NONE => self.oldest = place,
            _ => self.entries[older as usize].newer = place,
        }
        self.newest = place;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{ProptestConfig, any, prop_assert_eq};
    use proptest::proptest;

    #[test]
    fn a_prefix_counts_only_from_its_start() {
        let mut cache = PrefixCache::new(10);
        cache.insert(&[1, 2, 3]);
        assert_eq!(cache.use_prefix(&[1, 2, 3, 4]), 3);
        assert_eq!(cache.use_prefix(&[2, 3]), 2);
        assert_eq!(cache.use_prefix(&[9, 1, 2]), 0);
    }

    #[test]
    fn the_tail_of_an_old_prefix_goes_first() {
        let mut cache = PrefixCache::new(4);
        cache.insert(&[1, 2, 3]);
        cache.insert(&[7, 8]);
        assert_eq!(cache.use_prefix(&[1, 2, 3]), 2);
        assert_eq!(cache.use_prefix(&[7, 8]), 2);
        cache.insert(&[11, 12, 13, 14, 15, 16]);
        assert_eq!(cache.use_prefix(&[11, 12, 13, 14, 15]), 4);
        assert_eq!(cache.use_prefix(&[1]), 0);
    }

    #[test]
    fn without_capacity_nothing_is_kept() {
        let mut cache = PrefixCache::new(0);
        cache.insert(&[1, 2]);
        assert_eq!(cache.use_prefix(&[1, 2]), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn it_agrees_with_a_list_in_order_of_use(
            uses in proptest::collection::vec((0..6_u64, 1..6_usize, any::<bool>()), 0..40),
            capacity in 0..9_usize,
        ) {
            let mut cache = PrefixCache::new(capacity);
            let mut list: Vec<u64> = Vec::new();
            for (prefix, length, only_look) in uses {
                let blocks: Vec<u64> = (0..length as u64).map(|at| prefix * 3 + at).collect();
                let found = blocks.iter().take_while(|block| list.contains(block)).count();
                let touched = if only_look { &blocks[..found] } else { &blocks[..] };
                for &block in touched[..touched.len().min(capacity)].iter().rev() {
                    list.retain(|&known| known != block);
                    list.push(block);
                    if list.len() > capacity {
                        list.remove(0);
                    }
                }
                if only_look {
                    prop_assert_eq!(cache.use_prefix(&blocks), found);
                } else {
                    cache.insert(&blocks);
                }
                prop_assert_eq!(cache.places.len(), list.len());
            }
        }
    }
}
