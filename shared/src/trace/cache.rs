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
#[derive(Clone, Debug)]
pub struct IdealCache {
    block_tokens: u32,
    names: Numbering,
    /// For each block, the node its first appearance followed; that appearance is the block's node.
    /// Blocks beyond its end were not seen yet.
    first_parent: Vec<u32>,
    /// Nodes of blocks that appeared elsewhere too: (parent, block) → node.
    others: HashMap<u64, u32, Mixing>,
}

/// The caches of a trace whose block ids hold in several scopes: one each.
#[derive(Debug)]
pub struct ScopedCache {
    empty: IdealCache,
    scopes: Vec<Option<IdealCache>>,
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
        Self {
            block_tokens: trace.block_tokens,
            names: Numbering::of(&trace.blocks),
            first_parent: Vec::new(),
            others: HashMap::default(),
        }
    }

    /// What is there of this request's prompt; from now on all of it is.
    pub fn ask(&mut self, trace: &Trace, record: &Record) -> Hits {
        let blocks = trace.blocks_of(record);
        let hits = self.look(blocks, record.input_tokens);
        self.learn(blocks, |_node| {});
        hits
    }

    /// The same, and adds the nodes of all its blocks to `path`: small numbers, each of one
    /// sequence of blocks from the first on.
    pub fn ask_path(&mut self, trace: &Trace, record: &Record, path: &mut Vec<u32>) -> Hits {
        let blocks = trace.blocks_of(record);
        let hits = self.look(blocks, record.input_tokens);
        self.learn(blocks, |node| path.push(node));
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
            let seen = self.parent_of(block) != UNSEEN;
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

    fn learn(&mut self, blocks: Blocks<'_>, mut each: impl FnMut(u32)) {
        let mut parent = ROOT;
        for id in blocks.iter() {
            let block = self.names.number_or_new(id);
            if block as usize >= self.first_parent.len() {
                self.first_parent.resize(block as usize + 1, UNSEEN);
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
            each(parent);
        }
    }

    fn parent_of(&self, block: u32) -> u32 {
        self.first_parent.get(block as usize).copied().unwrap_or(UNSEEN)
    }

    /// The node of `block` after `parent`, if some request had it there.
    fn child(&self, parent: u32, block: u32) -> Option<u32> {
        match self.parent_of(block) {
            first if first == parent => Some(block),
            UNSEEN => None,
            _ => self.others.get(&edge(parent, block)).copied(),
        }
    }
}

impl ScopedCache {
    /// Empty caches for the requests of one trace.
    ///
    /// # Panics
    /// When the trace has more than [`BLOCK_IDS_MAX`] block ids, which no reader lets through.
    #[must_use]
    pub fn new(trace: &Trace) -> Self {
        Self { empty: IdealCache::new(trace), scopes: Vec::new() }
    }

    /// What is there of the prompt of the `record`th request; from now on all of it is.
    ///
    /// # Panics
    /// When the trace has no such record.
    pub fn ask(&mut self, trace: &Trace, record: u32) -> Hits {
        self.cache_of(trace, record).ask(trace, &trace.records[record as usize])
    }

    /// The cache that answers for a record.
    pub fn cache_of(&mut self, trace: &Trace, record: u32) -> &mut IdealCache {
        let scope = trace.scope_of(record) as usize;
        if scope >= self.scopes.len() {
            self.scopes.resize(scope + 1, None);
        }
        self.scopes[scope].get_or_insert_with(|| self.empty.clone())
    }

    /// How many different sequences of blocks, from the first on, were asked for so far: what a
    /// cache that forgets nothing holds.
    #[must_use]
    pub fn prefixes(&self) -> u64 {
        let others = |cache: &IdealCache| cache.others.len() as u64;
        self.unique_blocks() + self.scopes.iter().flatten().map(others).sum::<u64>()
    }

    /// How many different blocks were asked for so far.
    #[must_use]
    pub fn unique_blocks(&self) -> u64 {
        self.scopes.iter().flatten().map(IdealCache::unique_blocks).sum()
    }
}

/// Whether a node is a block's first one: then it is the block's own small number, else it counts
/// from zero among the others.
#[must_use]
pub const fn node_place(node: u32) -> (bool, usize) {
    if node < OTHERS { (true, node as usize) } else { (false, (node - OTHERS) as usize) }
}

fn edge(parent: u32, block: u32) -> u64 {
    u64::from(parent) << 32 | u64::from(block)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::trace::blocks::BlockIds;
    use crate::trace::recorded::Recorded;
    use crate::trace::session::SessionNames;
    use crate::trace::{Format, Source};
    use crate::units::{SessionIndex, TraceNanos};

    pub(crate) fn trace(rows: &[(u32, &[u64])], block_tokens: u32) -> Trace {
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
