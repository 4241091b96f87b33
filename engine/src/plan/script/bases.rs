//! Which earlier request of a conversation a prompt goes on from.
//!
//! Requests are paths in a tree of stretches of block ids ([`crate::plan::stretches`]). Every
//! stretch knows the latest request that led with it, so the walk back from where a request left
//! the tree finds what it shares with whom, latest first. Sub-agents play side by side, and when
//! one starts, the latest of another is still to come: so a stretch knows the first of its part,
//! too.

use onbeat_shared::trace::Trace;
use onbeat_shared::trace::record::Record;

use crate::plan::script::{Base, Shared};
use crate::plan::stretches::{Found, Stretches};

/// The requests of one conversation so far, by their leading blocks.
pub(super) struct Tree<'a> {
    trace: &'a Trace,
    stretches: Stretches,
    /// Of each stretch.
    had: Vec<Had>,
}

/// Which records lead with all blocks up to the end of a stretch.
#[derive(Clone, Copy)]
struct Had {
    /// The latest one.
    latest: u32,
    /// The first of the latest one's session.
    opener: u32,
}

impl<'a> Tree<'a> {
    pub(super) fn new(trace: &'a Trace) -> Self {
        Self { trace, stretches: Stretches::default(), had: Vec::new() }
    }

    /// Forgets all requests.
    pub(super) fn clear(&mut self) {
        self.stretches.clear();
        self.had.clear();
    }

    /// Adds a record, and to `bases` what it shares with earlier ones: each of them shares less
    /// than the one before and is later. Where the first is of another part, the second may be that
    /// part's first that shares as much.
    pub(super) fn add(&mut self, number: u32, bases: &mut Vec<Shared>) -> Option<Base> {
        let trace = self.trace;
        let record = &trace.records[number as usize];
        let found = self.stretches.find(&trace.blocks, record.first_block, record.block_count);
        let first = bases.len();
        let is_beside = |other: u32| trace.records[other as usize].session != record.session;
        let mut last = None;
        let mut push = |blocks: u32, stretch: u32| {
            let Had { latest, opener } = self.had[stretch as usize];
            if last.is_none_or(|last| latest > last) {
                let tokens = tokens(trace, record, blocks);
                bases.push(Shared { record: latest, tokens });
                if last.is_none() && opener != latest && is_beside(opener) {
                    bases.push(Shared { record: opener, tokens });
                }
                last = Some(latest);
            }
        };
        if let Some(stretch) = found.parting {
            push(found.depth, stretch);
        }
        for stretch in self.stretches.path(found.last) {
            push(self.stretches.all()[stretch as usize].end, stretch);
        }
        self.learn(number, record, found);
        let shared = bases.get(first)?;
        let old = &trace.records[shared.record as usize];
        let whole = found.depth == old.block_count && record.input_tokens >= old.input_tokens;
        let keep = if whole { old.input_tokens } else { shared.tokens };
        Some(Base { record: shared.record, keep, whole })
    }

    /// Adds what of a record was not there.
    fn learn(&mut self, number: u32, record: &Record, found: Found) {
        let ids = &self.trace.blocks;
        let added = self.stretches.add(ids, record.first_block, record.block_count, found);
        if let (Some(parting), Some(_upper)) = (found.parting, added.upper) {
            self.had.push(self.had[parting as usize]);
        }
        if added.is_leaf {
            self.had.push(Had { latest: number, opener: number });
        }
        for stretch in self.stretches.path(added.end) {
            let opener = self.opener(self.had[stretch as usize], number);
            self.had[stretch as usize] = Had { latest: number, opener };
        }
    }

    /// The opener of a stretch once `number` is its latest.
    fn opener(&self, had: Had, number: u32) -> u32 {
        let session = |record: u32| self.trace.records[record as usize].session;
        if session(had.latest) == session(number) { had.opener } else { number }
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
