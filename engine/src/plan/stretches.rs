//! The block ids of many rows as one tree, in which what several rows lead with stands once.
//!
//! A node is a *stretch*: ids that stand one after the other in some row, and that every row which
//! has one of them here has all of. Nodes are slices of the trace's own ids, so that adding a row
//! compares slices and makes two nodes at most: a conversation of a thousand long prompts, each the
//! one before and a little more, costs one pass over its ids. What a stretch means to whom (who had
//! it last, how often it is in use) is kept by those who ask, by the numbers of the nodes.

use std::collections::HashMap;
use std::iter;

use onbeat_shared::trace::blocks::{BlockIds, Mixing};

/// Rows by their leading blocks.
#[derive(Debug, Default)]
pub struct Stretches {
    nodes: Vec<Stretch>,
    /// (what it follows, its first id) → node.
    children: HashMap<(u32, u64), u32, Mixing>,
}

/// Some blocks of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The stretch before it, or [`NOTHING`].
    pub follows: u32,
    /// Where its ids begin among the trace's.
    pub first: u64,
    /// How many it has.
    pub blocks: u32,
    /// How many blocks it and all before it have.
    pub end: u32,
}

/// What the first stretch of a row follows, and where a row without blocks ends.
pub const NOTHING: u32 = u32::MAX;

/// How far a row leads along the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The last stretch that it has whole, or [`NOTHING`].
    pub last: u32,
    /// The stretch after that, when it has the beginning of one.
    pub parting: Option<u32>,
    /// How many of its blocks are there.
    pub depth: u32,
}

/// What adding a row made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Added {
    /// The row's last stretch, or [`NOTHING`].
    pub end: u32,
    /// The stretch that was made of the beginning of [`Found::parting`].
    pub upper: Option<u32>,
    /// Whether the last stretch is new, and this row's alone.
    pub is_leaf: bool,
}

impl Stretches {
    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.nodes.clear();
        self.children.clear();
    }

    /// All stretches, by number.
    #[must_use]
    pub fn all(&self) -> &[Stretch] {
        &self.nodes
    }

    /// A stretch and those before it, the first last.
    pub fn path(&self, last: u32) -> impl Iterator<Item = u32> + '_ {
        let known = |node: u32| (node != NOTHING).then_some(node);
        iter::successors(known(last), move |&node| known(self.nodes[node as usize].follows))
    }

    /// How far a row of `count` ids that begin at `first` leads along the tree.
    #[must_use]
    pub fn find(&self, ids: &BlockIds, first: u64, count: u32) -> Found {
        let mut found = Found { last: NOTHING, parting: None, depth: 0 };
        while found.depth < count {
            let rest = ids.slice(first + u64::from(found.depth), count - found.depth);
            let Some(&child) = self.children.get(&(found.last, rest.id(0))) else { break };
            let stretch = self.nodes[child as usize];
            let common = ids.slice(stretch.first, stretch.blocks).common_prefix(rest);
            found.depth += u32::try_from(common).expect("no more than the row's blocks");
            if found.depth < stretch.end {
                found.parting = Some(child);
                break;
            }
            found.last = child;
        }
        found
    }

    /// Adds a row that was found so just now.
    pub fn add(&mut self, ids: &BlockIds, first: u64, count: u32, found: Found) -> Added {
        let upper = found.parting.map(|node| self.split(ids, node, found.depth));
        let last = upper.unwrap_or(found.last);
        if found.depth == count {
            return Added { end: last, upper, is_leaf: false };
        }
        let leaf = Stretch {
            follows: last,
            first: first + u64::from(found.depth),
            blocks: count - found.depth,
            end: count,
        };
        Added { end: self.push(ids, leaf), upper, is_leaf: true }
    }

    /// Makes the blocks of a stretch up to `depth` one of their own, which it follows from now on.
    fn split(&mut self, ids: &BlockIds, node: u32, depth: u32) -> u32 {
        let old = self.nodes[node as usize];
        let rest = old.end - depth;
        let upper = self.push(ids, Stretch { blocks: old.blocks - rest, end: depth, ..old });
        let first = old.first + u64::from(old.blocks - rest);
        self.nodes[node as usize] = Stretch { follows: upper, first, blocks: rest, end: old.end };
        self.children.insert((upper, ids.slice(first, rest).id(0)), node);
        upper
    }

    fn push(&mut self, ids: &BlockIds, stretch: Stretch) -> u32 {
        let number = u32::try_from(self.nodes.len()).expect("at most two for each row");
        let id = ids.slice(stretch.first, stretch.blocks).id(0);
        self.nodes.push(stretch);
        self.children.insert((stretch.follows, id), number);
        number
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, proptest};

    use super::*;

    /// The tree of these rows, and where each ends.
    fn tree(rows: &[Vec<u64>]) -> (Stretches, BlockIds, Vec<u32>) {
        let mut ids = BlockIds::default();
        let mut stretches = Stretches::default();
        let mut ends = Vec::new();
        for row in rows {
            let first = ids.len() as u64;
            row.iter().for_each(|&id| ids.push(id));
            let count = u32::try_from(row.len()).expect("few");
            let found = stretches.find(&ids, first, count);
            ends.push(stretches.add(&ids, first, count, found).end);
        }
        (stretches, ids, ends)
    }

    #[test]
    fn rows_part_where_their_ids_do() {
        let (mut tree, ids, ends) =
            tree(&[vec![1, 2, 3, 4], vec![1, 2, 3, 4, 5], vec![1, 2, 9], vec![], vec![7]]);
        assert_eq!(ends[3], NOTHING);
        let lengths = |end| tree.path(end).map(|node| tree.all()[node as usize].blocks);
        assert_eq!(lengths(ends[0]).collect::<Vec<_>>(), [2, 2]);
        assert_eq!(lengths(ends[1]).collect::<Vec<_>>(), [1, 2, 2]);
        assert_eq!(lengths(ends[2]).collect::<Vec<_>>(), [1, 2]);
        let (found, again) = (tree.find(&ids, 0, 3), tree.find(&ids, 0, 4));
        assert_eq!((found.depth, found.parting), (3, Some(ends[0])));
        assert_eq!(again, Found { last: ends[0], parting: None, depth: 4 });
        tree.clear();
        assert_eq!(tree.find(&ids, 0, 3), Found { last: NOTHING, parting: None, depth: 0 });
    }

    proptest! {
        /// Along the tree each row reads as it was, and a row is found as far as the earlier one
        /// that shares most with it goes.
        #[test]
        fn a_path_spells_its_row(rows in prop::collection::vec(
            prop::collection::vec(0_u64..4, 0..9), 1..20,
        )) {
            let (tree, ids, ends) = tree(&rows);
            for (row, &end) in rows.iter().zip(&ends) {
                let mut path: Vec<u32> = tree.path(end).collect();
                path.reverse();
                let spelt: Vec<u64> = path
                    .iter()
                    .map(|&node| tree.all()[node as usize])
                    .flat_map(|node| ids.slice(node.first, node.blocks).iter())
                    .collect();
                assert_eq!(&spelt, row);
            }
            let (last, before) = rows.split_last().expect("at least one");
            let mut known = ids.clone();
            let first = known.len() as u64;
            last.iter().for_each(|&id| known.push(id));
            let (tree, ..) = self::tree(before);
            let shared = |row: &Vec<u64>| row.iter().zip(last).take_while(|(a, b)| a == b).count();
            let most = before.iter().map(shared).max().unwrap_or(0);
            let count = u32::try_from(last.len()).expect("few");
            let found = tree.find(&known, first, count);
            assert_eq!(found.depth as usize, most);
        }
    }
}
