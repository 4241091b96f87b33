//! Which prompts of a sample begin alike: a tree made of lists of block ids, the slow and obvious
//! way. For tests only.

use std::collections::HashMap;

use super::{PathRow, PlanRow, PrefixRows, StretchRow};
use crate::units::RequestIndex;

/// Tokens of a sample's blocks.
const BLOCK_TOKENS: u32 = 16;
/// Blocks that all prompts of [`super::sample::sample`] begin with.
const SYSTEM_BLOCKS: u64 = 4;

/// Ids in the places where some row has them.
#[derive(Default)]
struct Tree {
    ids: Vec<u64>,
    children: Vec<Vec<u32>>,
    /// Whether a row ends there.
    ends: Vec<bool>,
    roots: Vec<u32>,
    places: HashMap<(Option<u32>, u64), u32>,
}

impl Tree {
    fn node(&mut self, parent: Option<u32>, id: u64) -> u32 {
        if let Some(&node) = self.places.get(&(parent, id)) {
            return node;
        }
        let node = u32::try_from(self.ids.len()).expect("a small sample");
        self.places.insert((parent, id), node);
        self.ids.push(id);
        self.children.push(Vec::new());
        self.ends.push(false);
        match parent {
            Some(parent) => self.children[parent as usize].push(node),
            None => self.roots.push(node),
        }
        node
    }

    /// The stretches, and the number of each node that ends one.
    fn stretches(&self, blocks_of: impl Fn(u64) -> u32) -> (Vec<StretchRow>, HashMap<u32, u32>) {
        let mut rows = Vec::new();
        let mut numbers = HashMap::new();
        for &root in &self.roots {
            let mut waiting = vec![(root, None)];
            while let Some((first, follows)) = waiting.pop() {
                let mut node = first;
                let mut blocks = blocks_of(self.ids[node as usize]);
                while let [only] = self.children[node as usize][..]
                    && !self.ends[node as usize]
                {
                    node = only;
                    blocks += blocks_of(self.ids[node as usize]);
                }
                let number = u32::try_from(rows.len()).expect("a small sample");
                rows.push(StretchRow { follows, blocks });
                numbers.insert(node, number);
                let children = self.children[node as usize].iter();
                waiting.extend(children.map(|&child| (child, Some(number))));
            }
        }
        (rows, numbers)
    }
}

/// Of rows of block ids, each with its copy, the request of each row being its place. An id stands
/// for `blocks_of` it.
///
/// # Panics
/// If there are more rows or ids than a log can number.
#[must_use]
pub fn prefix_rows(rows: &[(Vec<u64>, u32)], blocks_of: impl Fn(u64) -> u32) -> PrefixRows {
    let mut tree = Tree::default();
    let mut ends = Vec::new();
    for (ids, _) in rows {
        let end = ids.iter().fold(None, |parent, &id| Some(tree.node(parent, id)));
        if let Some(end) = end {
            tree.ends[end as usize] = true;
        }
        ends.push(end);
    }
    let (stretches, numbers) = tree.stretches(blocks_of);
    let paths = (0..).zip(rows).zip(ends).filter_map(|((request, (_, copy)), end)| {
        let end = numbers[&end?];
        Some(PathRow { request: RequestIndex(request), end, copy: *copy })
    });
    let paths = paths.collect();
    PrefixRows { stretches, paths }
}

/// Of a sample's plan: all prompts begin with the same few blocks, and a turn goes on from the one
/// before as far as its ideal hits say. That may be further than the prompt before went: then it is
/// as if the ids of its answer were known.
pub(super) fn of_sessions(plan: &[PlanRow]) -> PrefixRows {
    let known = |row: &PlanRow| row.ideal_cached_tokens.unwrap_or(0) / BLOCK_TOKENS;
    let mut wanted: HashMap<u32, u32> = HashMap::new();
    let mut lengths = vec![0; plan.len()];
    for (length, row) in lengths.iter_mut().zip(plan).rev() {
        let later = wanted.insert(row.session.0, known(row)).unwrap_or(0);
        *length = row.blocks.max(later) as usize;
    }
    let mut last: HashMap<u32, Vec<u64>> = HashMap::new();
    let mut next = SYSTEM_BLOCKS;
    let rows: Vec<(Vec<u64>, u32)> = plan
        .iter()
        .zip(lengths)
        .map(|(row, length)| {
            let before = last.entry(row.session.0).or_insert_with(|| (0..SYSTEM_BLOCKS).collect());
            before.truncate(known(row) as usize);
            while before.len() < length {
                before.push(next);
                next += 1;
            }
            (before.clone(), 0)
        })
        .collect();
    prefix_rows(&rows, |_| 1)
}
