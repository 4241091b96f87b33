//! How many different blocks the requests of the last minutes had: the load on a server's cache.
//!
//! A block counts while a request that has it was sent within the age that was asked for, and it
//! counts once, however many requests have it; a conversation that is used again, under ids that
//! hold for itself only, brings other blocks. The figure is exact at every instant, over forks,
//! pull-backs and ids in any order. Blocks are touched when a request leaves, as the tool does it;
//! what a server has of them is not known here.
//!
//! Requests of one conversation have most of their blocks in common, so blocks are not counted one
//! by one but by *stretch*: blocks that the same requests have. A request then touches as many
//! stretches as there are requests before it in its conversation, and not thousands of blocks.

use std::collections::{HashMap, HashSet, VecDeque};

use onbeat_shared::trace::Trace;
use onbeat_shared::trace::agentic::Scope;
use onbeat_shared::trace::blocks::Mixing;
use onbeat_shared::trace::record::Record;
use onbeat_shared::units::RunNanos;

use crate::plan::stretches::{NOTHING, Stretches};

/// The blocks in use, as of the last instant it was asked for.
#[derive(Debug)]
pub struct WorkingSet {
    block_tokens: u64,
    max_age_ns: i64,
    spaces: Vec<Space>,
    /// For each record, its space and the last of its stretches; `None`: it has no blocks.
    places: Vec<Option<Place>>,
    /// Requests that are young enough, the oldest first.
    recent: VecDeque<Touch>,
    /// For each stretch of a space in use, how many of those have it.
    uses: HashMap<(u32, u32), Uses>,
    blocks: u64,
}

/// Where a record's blocks are.
#[derive(Clone, Copy, Debug)]
struct Place {
    space: u32,
    end: u32,
}

/// A request that was sent.
#[derive(Clone, Copy, Debug)]
struct Touch {
    at: RunNanos,
    place: Place,
    copy: u32,
}

/// One use of a space: a conversation's, or what all conversations with global ids share.
#[derive(Debug)]
struct Uses {
    touches: u32,
    of_stretch: Vec<u32>,
}

/// Where ids mean the same block.
#[derive(Debug)]
struct Space {
    is_global: bool,
    /// Blocks of each stretch.
    lengths: Vec<u32>,
    shape: Shape,
}

/// Which stretches a record has.
#[derive(Debug)]
enum Shape {
    /// Every block follows one other wherever it stands: a stretch and those before it, by what
    /// they follow.
    Tree(Vec<u32>),
    /// Anything: lists, and stretches of one block.
    Lists(Vec<Box<[u32]>>),
}

impl WorkingSet {
    /// Nothing is in use yet.
    #[must_use]
    pub fn new(trace: &Trace, block_tokens: u32, max_age_ns: i64) -> Self {
        let mut places = vec![None; trace.records.len()];
        let mut spaces = Vec::new();
        let mut add = |records: &[u32], is_global: bool| {
            let space = u32::try_from(spaces.len()).expect("fewer spaces than records");
            let (made, ends) = Space::of(trace, records, is_global);
            spaces.push(made);
            for (&record, end) in records.iter().zip(ends) {
                places[record as usize] = end.map(|end| Place { space, end });
            }
        };
        let mut global = Vec::new();
        let conversations = trace.recorded.agentic.iter().flat_map(|own| &own.conversations);
        for conversation in conversations {
            let records = conversation.records.clone();
            match conversation.scope {
                Scope::Local => add(&records.collect::<Vec<_>>(), false),
                Scope::Global => global.extend(records),
            }
        }
        add(&global, true);
        Self {
            block_tokens: u64::from(block_tokens),
            max_age_ns,
            spaces,
            places,
            recent: VecDeque::new(),
            uses: HashMap::new(),
            blocks: 0,
        }
    }

    /// A request of this record was sent, in this use of its conversation. Times may not decrease
    /// by much: an older touch than one before it stays as long as that one.
    ///
    /// # Panics
    /// When the trace has no such record.
    pub fn touch(&mut self, at: RunNanos, record: u32, copy: u32) {
        let Some(place) = self.places[record as usize] else { return };
        let space = &self.spaces[place.space as usize];
        let copy = if space.is_global { 0 } else { copy };
        let at = self.recent.back().map_or(at, |last| last.at.max(at));
        self.recent.push_back(Touch { at, place, copy });
        let uses = self
            .uses
            .entry((place.space, copy))
            .or_insert_with(|| Uses { touches: 0, of_stretch: vec![0; space.lengths.len()] });
        uses.touches += 1;
        let blocks = &mut self.blocks;
        space.each_stretch(place.end, |stretch| {
            let uses = &mut uses.of_stretch[stretch as usize];
            *uses += 1;
            if *uses == 1 {
                *blocks += u64::from(space.lengths[stretch as usize]);
            }
        });
    }

    /// Tokens of all blocks in use at `now`.
    pub fn tokens(&mut self, now: RunNanos) -> u64 {
        let oldest = RunNanos(now.0.saturating_sub(self.max_age_ns));
        while let Some(&touch) = self.recent.front().filter(|touch| touch.at < oldest) {
            self.recent.pop_front();
            self.forget(touch);
        }
        self.blocks * self.block_tokens
    }

    /// Tokens of the blocks that a record has.
    ///
    /// # Panics
    /// When the trace has no such record.
    #[must_use]
    pub fn tokens_of(&self, record: u32) -> u64 {
        let Some(place) = self.places[record as usize] else { return 0 };
        let space = &self.spaces[place.space as usize];
        let mut blocks = 0;
        space.each_stretch(place.end, |stretch| {
            blocks += u64::from(space.lengths[stretch as usize]);
        });
        blocks * self.block_tokens
    }

    fn forget(&mut self, touch: Touch) {
        let key = (touch.place.space, touch.copy);
        let space = &self.spaces[touch.place.space as usize];
        let Some(uses) = self.uses.get_mut(&key) else { return };
        let blocks = &mut self.blocks;
        space.each_stretch(touch.place.end, |stretch| {
            let uses = &mut uses.of_stretch[stretch as usize];
            *uses -= 1;
            if *uses == 0 {
                *blocks -= u64::from(space.lengths[stretch as usize]);
            }
        });
        uses.touches -= 1;
        if uses.touches == 0 {
            self.uses.remove(&key);
        }
    }
}

impl Space {
    /// The space of these records, and the last stretch of each.
    fn of(trace: &Trace, records: &[u32], is_global: bool) -> (Self, Vec<Option<u32>>) {
        let ids = &trace.blocks;
        let mut tree = Stretches::default();
        // While each id stands in one place of the tree, a stretch is all there is of its blocks.
        let mut seen: HashSet<u64, Mixing> = HashSet::default();
        let mut ends = Vec::with_capacity(records.len());
        for &record in records {
            let &Record { first_block, block_count, .. } = &trace.records[record as usize];
            let found = tree.find(ids, first_block, block_count);
            let new = first_block + u64::from(found.depth);
            if !ids.slice(new, block_count - found.depth).iter().all(|id| seen.insert(id)) {
                return Self::of_lists(trace, records, is_global);
            }
            let end = tree.add(ids, first_block, block_count, found).end;
            ends.push((end != NOTHING).then_some(end));
        }
        let lengths = tree.all().iter().map(|stretch| stretch.blocks).collect();
        let shape = Shape::Tree(tree.all().iter().map(|stretch| stretch.follows).collect());
        (Self { is_global, lengths, shape }, ends)
    }

    /// The same for ids that stand in different orders, or twice in one record.
    fn of_lists(trace: &Trace, records: &[u32], is_global: bool) -> (Self, Vec<Option<u32>>) {
        let mut numbers: HashMap<u64, u32, Mixing> = HashMap::default();
        let mut lists = Vec::new();
        let mut ends = Vec::with_capacity(records.len());
        for &record in records {
            let blocks = trace.blocks_of(&trace.records[record as usize]);
            let mut list = Vec::with_capacity(blocks.len());
            for id in blocks.iter() {
                let next = u32::try_from(numbers.len()).expect("bounded by BLOCK_IDS_MAX");
                list.push(*numbers.entry(id).or_insert(next));
            }
            list.sort_unstable();
            list.dedup();
            let end = u32::try_from(lists.len()).expect("no more than records");
            ends.push((!list.is_empty()).then_some(end));
            lists.push(list.into_boxed_slice());
        }
        let space = Self { is_global, lengths: vec![1; numbers.len()], shape: Shape::Lists(lists) };
        (space, ends)
    }

    fn each_stretch(&self, end: u32, mut each: impl FnMut(u32)) {
        match &self.shape {
            Shape::Tree(follows) => {
                let mut stretch = end;
                while stretch != NOTHING {
                    each(stretch);
                    stretch = follows[stretch as usize];
                }
            }
            Shape::Lists(lists) => lists[end as usize].iter().copied().for_each(each),
        }
    }
}

#[cfg(test)]
mod tests;
