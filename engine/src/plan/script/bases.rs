//! Which earlier request of a conversation a prompt goes on from.
//!
//! A tree of the block ids of all requests so far, in which a branch is a slice of some request's
//! own ids: adding a request compares slices and makes two nodes at most, so that a conversation of
//! a thousand long prompts, each the one before and a little more, costs one pass over its ids.
//! Every node knows the latest request that led with it, so the walk back from where a request left
//! the tree finds what it shares with whom, latest first. Sub-agents play side by side, and when
//! one starts, the latest of another is still to come: so a node knows the first of its part, too.

use std::collections::HashMap;

use onbeat_shared::trace::Trace;
use onbeat_shared::trace::blocks::Mixing;
use onbeat_shared::trace::record::Record;

use crate::plan::script::{Base, Shared};

/// The requests of one conversation so far, by their leading blocks.
pub(super) struct Tree<'a> {
    trace: &'a Trace,
    nodes: Vec<Node>,
    /// (node, the block that follows it) → node.
    children: HashMap<(u32, u64), u32, Mixing>,
}

/// A branch: blocks `start..end` of a record.
#[derive(Clone, Copy)]
struct Node {
    record: u32,
    start: u32,
    end: u32,
    /// The latest record that leads with all blocks up to its end.
    latest: u32,
    /// The first of the latest one's session that does.
    opener: u32,
}

/// Where a record leaves the tree.
struct Walk {
    /// Nodes that it leads with whole.
    path: Vec<u32>,
    /// A node of which it has a part only.
    parting: Option<u32>,
    /// How many blocks it found.
    depth: u32,
}

const ROOT: u32 = 0;

impl<'a> Tree<'a> {
    pub(super) fn new(trace: &'a Trace) -> Self {
        let mut tree = Self { trace, nodes: Vec::new(), children: HashMap::default() };
        tree.clear();
        tree
    }

    /// Forgets all requests.
    pub(super) fn clear(&mut self) {
        self.children.clear();
        self.nodes.clear();
        let nobody = u32::MAX;
        self.nodes.push(Node { record: nobody, start: 0, end: 0, latest: nobody, opener: nobody });
    }

    /// Adds a record, and to `bases` what it shares with earlier ones: each of them shares less
    /// than the one before and is later. Where the first is of another part, the second may be that
    /// part's first that shares as much.
    pub(super) fn add(&mut self, number: u32, bases: &mut Vec<Shared>) -> Option<Base> {
        let trace = self.trace;
        let record = &trace.records[number as usize];
        let walk = self.walk(record);
        let first = bases.len();
        let tokens = |blocks: u32| tokens(trace, record, blocks);
        let is_beside = |other: u32| trace.records[other as usize].session != record.session;
        let mut last = None;
        let mut push = |blocks: u32, node: u32| {
            let Node { latest, opener, .. } = self.nodes[node as usize];
            if last.is_none_or(|last| latest > last) {
                bases.push(Shared { record: latest, tokens: tokens(blocks) });
                if last.is_none() && opener != latest && is_beside(opener) {
                    bases.push(Shared { record: opener, tokens: tokens(blocks) });
                }
                last = Some(latest);
            }
        };
        if let Some(node) = walk.parting {
            push(walk.depth, node);
        }
        for &node in walk.path.iter().rev() {
            push(self.nodes[node as usize].end, node);
        }
        self.learn(number, record, &walk);
        let shared = bases.get(first)?;
        let old = &trace.records[shared.record as usize];
        let whole = walk.depth == old.block_count && record.input_tokens >= old.input_tokens;
        let keep = if whole { old.input_tokens } else { shared.tokens };
        Some(Base { record: shared.record, keep, whole })
    }

    fn walk(&self, record: &Record) -> Walk {
        let ids = self.trace.blocks_of(record);
        let mut walk = Walk { path: Vec::new(), parting: None, depth: 0 };
        let mut node = ROOT;
        while walk.depth < record.block_count {
            let next = ids.id(walk.depth as usize);
            let Some(&child) = self.children.get(&(node, next)) else { break };
            let Node { record: other, start, end, .. } = self.nodes[child as usize];
            let other = &self.trace.records[other as usize];
            let blocks = |record: &Record, from: u32, count: u32| {
                self.trace.blocks.slice(record.first_block + u64::from(from), count)
            };
            let rest = blocks(record, walk.depth, record.block_count - walk.depth);
            let common = blocks(other, start, end - start).common_prefix(rest);
            walk.depth += u32::try_from(common).expect("no more than its blocks");
            if walk.depth < end {
                walk.parting = Some(child);
                break;
            }
            walk.path.push(child);
            node = child;
        }
        walk
    }

    /// Adds what of a record was not there.
    fn learn(&mut self, number: u32, record: &Record, walk: &Walk) {
        for &node in &walk.path {
            let opener = self.opener(&self.nodes[node as usize], number);
            let node = &mut self.nodes[node as usize];
            (node.latest, node.opener) = (number, opener);
        }
        let mut from = walk.path.last().copied().unwrap_or(ROOT);
        if let Some(node) = walk.parting {
            from = self.split(from, node, walk.depth, number);
        }
        if walk.depth < record.block_count {
            let next = self.trace.blocks_of(record).id(walk.depth as usize);
            let (start, end) = (walk.depth, record.block_count);
            let leaf = Node { record: number, start, end, latest: number, opener: number };
            self.link(from, next, leaf);
        }
    }

    /// The opener of a node once `number` is its latest.
    fn opener(&self, node: &Node, number: u32) -> u32 {
        let session = |record: u32| self.trace.records[record as usize].session;
        if session(node.latest) == session(number) { node.opener } else { number }
    }

    /// Cuts a node in two at a depth inside it; the upper half, which is returned, is `latest`'s.
    fn split(&mut self, parent: u32, node: u32, depth: u32, latest: u32) -> u32 {
        let old = self.nodes[node as usize];
        let ids = self.trace.blocks_of(&self.trace.records[old.record as usize]);
        let upper = Node { end: depth, latest, opener: self.opener(&old, latest), ..old };
        let upper = self.link(parent, ids.id(old.start as usize), upper);
        self.nodes[node as usize].start = depth;
        self.children.insert((upper, ids.id(depth as usize)), node);
        upper
    }

    fn link(&mut self, parent: u32, next: u64, node: Node) -> u32 {
        let place = u32::try_from(self.nodes.len()).expect("at most two for each record");
        self.nodes.push(node);
        self.children.insert((parent, next), place);
        place
    }
}

/// Tokens of a record's first blocks.
pub(super) fn tokens(trace: &Trace, record: &Record, blocks: u32) -> u32 {
    blocks.saturating_mul(trace.block_tokens).min(record.input_tokens)
}

/// Of a record and the one before it in its part: tokens of the leading blocks in common, and of
/// blocks in common in any place.
pub(super) fn in_common(trace: &Trace, before: &Record, record: &Record) -> (u32, u32) {
    let (old, new) = (trace.blocks_of(before), trace.blocks_of(record));
    let prefix = old.common_prefix(new);
    let rest = |blocks: onbeat_shared::trace::blocks::Blocks<'_>| {
        let mut ids: Vec<u64> = (prefix..blocks.len()).map(|at| blocks.id(at)).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    };
    let mut both = prefix;
    if prefix < old.len() && prefix < new.len() {
        let old = rest(old);
        both += rest(new).iter().filter(|id| old.binary_search(id).is_ok()).count();
    }
    let count = |blocks: usize| u32::try_from(blocks).expect("no more than its blocks");
    (tokens(trace, record, count(prefix)), tokens(trace, record, count(both)))
}
