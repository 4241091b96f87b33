//! Ideal cache hits: what an infinite prefix cache would find of each request.
//!
//! A server reuses a block only when everything before it is the same too, so the figure that
//! counts is the longest run of leading blocks that some earlier request had as its own leading
//! blocks: a walk down a tree of block sequences, exact, without hashing away collisions. The
//! number of tokens of known blocks in *any* place is a second figure, always labelled "set": other
//! tools report it, and it promises hits that no prefix cache can give. Capacity, eviction and
//! requests still under way are not modelled here.

use std::collections::HashMap;

use crate::trace::Trace;
use crate::trace::blocks::{BLOCK_IDS_MAX, Blocks, Mixing, NUMBERS_END, Numbering};
use crate::trace::record::Record;

/// What was found of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hits {
    /// Leading blocks that an earlier request led with too.
    pub prefix_blocks: u32,
    /// Their tokens.
    pub prefix_tokens: u32,
    /// Blocks that an earlier request had in any place.
    pub set_blocks: u32,
    /// Their tokens.
    pub set_tokens: u32,
}

/// A cache that never forgets, asked with one request after the other.
#[derive(Debug)]
pub struct IdealCache {
    block_tokens: u32,
    names: Numbering,
    /// For each block, the node its first appearance followed; that appearance is the block's node.
    first_parent: Vec<u32>,
    /// Nodes of blocks that appeared elsewhere too: (parent, block) → node.
    others: HashMap<u64, u32, Mixing>,
}

/// No parent was seen yet, so the block was not.
const UNSEEN: u32 = u32::MAX;
/// The node before the first block.
const ROOT: u32 = u32::MAX - 1;
/// Nodes of blocks that appeared elsewhere too are numbered from here on, above all blocks.
const OTHERS: u32 = NUMBERS_END;
const _: () = assert!(OTHERS as usize + BLOCK_IDS_MAX < ROOT as usize);

impl IdealCache {
    /// An empty cache for the requests of one trace.
    ///
    /// # Panics
    /// When the trace has more than [`BLOCK_IDS_MAX`] block ids, which no reader lets through.
    #[must_use]
    pub fn new(trace: &Trace) -> Self {
        let names = Numbering::of(&trace.blocks);
        Self {
            block_tokens: trace.block_tokens,
            first_parent: vec![UNSEEN; names.len()],
            names,
            others: HashMap::default(),
        }
    }

    /// What is there of this request's prompt; from now on all of it is.
    pub fn ask(&mut self, trace: &Trace, record: &Record) -> Hits {
        let blocks = trace.blocks_of(record);
        let hits = self.look(blocks, record.input_tokens);
        self.learn(blocks);
        hits
    }

    /// How many different block ids were asked for so far.
    #[must_use]
    pub fn unique_blocks(&self) -> u64 {
        self.first_parent.iter().filter(|&&parent| parent != UNSEEN).count() as u64
    }

    fn look(&self, blocks: Blocks<'_>, input_tokens: u32) -> Hits {
        let mut hits = Hits::default();
        let mut node = Some(ROOT);
        let mut covered: u32 = 0;
        for id in blocks.iter() {
            let tokens = self.block_tokens.min(input_tokens.saturating_sub(covered));
            covered = covered.saturating_add(self.block_tokens);
            let Some(block) = self.names.number(id) else {
                node = None;
                continue;
            };
            let seen = self.first_parent[block as usize] != UNSEEN;
            if seen {
                hits.set_blocks += 1;
                hits.set_tokens += tokens;
            }
            node = node.and_then(|parent| self.child(parent, block));
            if node.is_some() {
                hits.prefix_blocks += 1;
                hits.prefix_tokens += tokens;
            }
        }
        hits
    }

    fn learn(&mut self, blocks: Blocks<'_>) {
        let mut parent = ROOT;
        for id in blocks.iter() {
            let block = self.names.number_or_new(id);
            if block as usize == self.first_parent.len() {
                self.first_parent.push(UNSEEN);
            }
            parent = match self.child(parent, block) {
                Some(node) => node,
                None if self.first_parent[block as usize] == UNSEEN => {
                    self.first_parent[block as usize] = parent;
                    block
                }
                None => {
                    let count = u32::try_from(self.others.len()).expect("bounded: see OTHERS");
                    self.others.insert(edge(parent, block), OTHERS + count);
                    OTHERS + count
                }
            };
        }
    }

    /// The node of `block` after `parent`, if some request had it there.
    fn child(&self, parent: u32, block: u32) -> Option<u32> {
        match self.first_parent[block as usize] {
            first if first == parent => Some(block),
            UNSEEN => None,
            _ => self.others.get(&edge(parent, block)).copied(),
        }
    }
}

fn edge(parent: u32, block: u32) -> u64 {
    u64::from(parent) << 32 | u64::from(block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::blocks::BlockIds;
    use crate::trace::recorded::Recorded;
    use crate::trace::session::SessionNames;
    use crate::trace::{Format, Source};
    use crate::units::{SessionIndex, TraceNanos};

    fn trace(rows: &[(u32, &[u64])], block_tokens: u32) -> Trace {
        let mut blocks = BlockIds::default();
        let records = rows
            .iter()
            .zip(1..)
            .map(|(&(input_tokens, ids), row)| {
                let first_block = blocks.len() as u64;
                ids.iter().for_each(|&id| blocks.push(id));
                Record {
                    row,
                    at: TraceNanos(0),
                    input_tokens,
                    output_tokens: Some(1),
                    session: SessionIndex(0),
                    turn: 0,
                    first_block,
                    block_count: u32::try_from(ids.len()).expect("few"),
                }
            })
            .collect();
        Trace {
            source: Source {
                name: String::new(),
                sha256: String::new(),
                format: Format::Mooncake,
                rows: rows.len() as u64,
                bytes: 0,
            },
            records,
            blocks,
            block_tokens,
            sessions: SessionNames::Fresh(1),
            recorded: Recorded::default(),
            warnings: Vec::new(),
        }
    }

    fn hits(rows: &[(u32, &[u64])], block_tokens: u32) -> Vec<(u32, u32)> {
        let trace = trace(rows, block_tokens);
        let mut cache = IdealCache::new(&trace);
        let ask = |record| {
            let hits = cache.ask(&trace, record);
            (hits.prefix_tokens, hits.set_tokens)
        };
        trace.records.iter().map(ask).collect()
    }

    #[test]
    fn a_changed_first_block_hits_nothing_by_prefix_and_three_as_a_set() {
        let rows: [(u32, &[u64]); 2] = [(2048, &[1, 2, 3, 4]), (2048, &[9, 2, 3, 4])];
        assert_eq!(hits(&rows, 512), [(0, 0), (0, 1536)]);
    }

    #[test]
    fn known_blocks_in_an_unknown_order_are_no_prefix() {
        let rows: [(u32, &[u64]); 4] =
            [(32, &[1, 2]), (32, &[3, 4]), (32, &[1, 4]), (48, &[1, 4, 2])];
        assert_eq!(hits(&rows, 16), [(0, 0), (0, 0), (16, 32), (32, 48)]);
    }

    #[test]
    fn a_cut_last_block_counts_its_own_tokens() {
        let rows: [(u32, &[u64]); 2] = [(520, &[1, 2]), (520, &[1, 2])];
        assert_eq!(hits(&rows, 512), [(0, 0), (520, 520)]);
    }

    #[test]
    fn a_request_does_not_hit_itself() {
        let rows: [(u32, &[u64]); 2] = [(48, &[5, 5, 5]), (64, &[5, 5, 5, 5])];
        assert_eq!(hits(&rows, 16), [(0, 0), (48, 64)]);
    }

    #[test]
    fn wide_and_sparse_ids_give_the_same_figures_as_small_ones() {
        let small: [(u32, &[u64]); 4] =
            [(48, &[1, 2, 3]), (48, &[1, 2, 9]), (48, &[2, 2, 3]), (48, &[1, 2, 9])];
        let far = |id: u64| u64::MAX - id * 1_000_003;
        let ids: Vec<Vec<u64>> =
            small.iter().map(|(_, ids)| ids.iter().map(|&id| far(id)).collect()).collect();
        let wide: Vec<(u32, &[u64])> =
            small.iter().zip(&ids).map(|(&(tokens, _), ids)| (tokens, ids.as_slice())).collect();
        assert_eq!(hits(&small, 16), hits(&wide, 16));
    }
}
