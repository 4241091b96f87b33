//! Which text is kept, once, and in which order: decided before any of it is written.
//!
//! Texts lie in the order in which requests first need them, so that the blocks a request adds lie
//! side by side behind each other and a later request that shares a prefix finds it in one piece.
//! They are cut into chunks of a fixed number of words, only between requests where that is
//! possible: a chunk is what one thread renders, and its borders depend on the plan alone.

use onbeat_shared::log::plan_row::PlanRow;
use onbeat_shared::trace::Trace;
use onbeat_shared::trace::blocks::Numbering;
use onbeat_shared::trace::record::Record;
use onbeat_shared::units::RequestIndex;

use crate::limits::PROMPT_TOKENS_MAX;
use crate::plan::Plan;
use crate::prompt::TextKey;
use crate::render::body::{Span, spans};

/// A text that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) key: TextKey,
    pub(crate) words: u32,
}

/// All texts of a plan.
#[derive(Debug)]
pub(crate) struct Layout {
    numbering: Numbering,
    /// For each copy of the trace, for each block's number, its item.
    item_of_block: Vec<u32>,
    /// For each request, the item of its tail.
    item_of_tail: Vec<u32>,
    /// The texts, in order.
    pub(crate) items: Vec<Item>,
    /// Where each chunk's items end.
    pub(crate) chunk_ends: Vec<usize>,
    words: u64,
}

/// Not an item.
const NONE: u32 = u32::MAX;
/// Words of a chunk: about 1.3 MB of text, enough for a thread to be busy and to fit its cache.
const CHUNK_WORDS: u64 = 1 << 18;
/// A chunk is closed inside a request from here on, so that offsets in it fit 32 bits with room for
/// one more item: at most seven bytes a word.
const CHUNK_WORDS_MAX: u64 = 1 << 28;
const _: () = assert!((CHUNK_WORDS_MAX + PROMPT_TOKENS_MAX as u64) * 7 + 8 < u32::MAX as u64);

impl Layout {
    /// Looks at all requests: how many words are kept. [`Layout::place`] then orders them.
    pub(crate) fn measure(plan: &Plan, trace: &Trace) -> Self {
        let mut layout = Self {
            // Recorded prompts have no text of blocks, and may have millions of ids.
            numbering: match trace.recorded.prompts {
                true => Numbering::Same(0),
                false => Numbering::of(&trace.blocks),
            },
            item_of_block: Vec::new(),
            item_of_tail: Vec::new(),
            items: Vec::new(),
            chunk_ends: Vec::new(),
            words: 0,
        };
        // One copy after the other, so that what one copy's blocks need is all that is in memory.
        let mut needed = vec![0; layout.numbering.len()];
        let mut copy = 0;
        for request in by_copy(plan) {
            if plan.copy(request) != copy {
                copy = plan.copy(request);
                needed.fill(0);
            }
            let place = plan.record_of[request.as_usize()] as usize;
            for span in spans(trace, &trace.records[place]) {
                match span {
                    Span::Tail { words } => layout.words += u64::from(words),
                    Span::Block { id, words } => {
                        let block = layout.numbering.number_or_new(id) as usize;
                        if block == needed.len() {
                            needed.push(0);
                        }
                        let needed = &mut needed[block];
                        layout.words += u64::from(words.saturating_sub(*needed));
                        *needed = words.max(*needed);
                    }
                }
            }
        }
        layout
    }

    /// Words of all texts together.
    pub(crate) const fn words(&self) -> u64 {
        self.words
    }

    /// Puts the texts in order and cuts them into chunks.
    pub(crate) fn place(&mut self, plan: &Plan, trace: &Trace, seed: u64) {
        let needed = self.needed(plan, trace);
        self.item_of_block = vec![NONE; needed.len()];
        self.item_of_tail = vec![NONE; plan.rows.len()];
        let mut chunk_words = 0;
        for (row, record) in requests(plan, trace) {
            let copy = plan.copy(row.request);
            for span in spans(trace, record) {
                let next = u32::try_from(self.items.len()).expect("fewer than ids and requests");
                let (slot, words) = match span {
                    Span::Tail { words } => (&mut self.item_of_tail[row.request.as_usize()], words),
                    Span::Block { id, .. } => {
                        let block = self.block(copy, id);
                        (&mut self.item_of_block[block], needed[block])
                    }
                };
                if *slot != NONE {
                    continue;
                }
                *slot = next;
                self.items.push(Item { key: span.key(seed, copy, row), words });
                chunk_words += u64::from(words);
                if chunk_words >= CHUNK_WORDS_MAX {
                    self.chunk_ends.push(self.items.len());
                    chunk_words = 0;
                }
            }
            if chunk_words >= CHUNK_WORDS {
                self.chunk_ends.push(self.items.len());
                chunk_words = 0;
            }
        }
        if chunk_words > 0 {
            self.chunk_ends.push(self.items.len());
        }
    }

    /// For each copy, for each block's number, the most words any request has of it.
    fn needed(&self, plan: &Plan, trace: &Trace) -> Vec<u32> {
        let mut needed = vec![0; self.numbering.len() * plan.copies as usize];
        for (row, record) in requests(plan, trace) {
            let copy = plan.copy(row.request);
            for span in spans(trace, record) {
                if let Span::Block { id, words } = span {
                    let needed = &mut needed[self.block(copy, id)];
                    *needed = words.max(*needed);
                }
            }
        }
        needed
    }

    /// The place of a block's number among those of all copies.
    fn block(&self, copy: u32, id: u64) -> usize {
        let number = self.numbering.number(id).expect("every planned block was measured");
        copy as usize * self.numbering.len() + number as usize
    }

    /// The item that holds a span of a request of a copy.
    pub(crate) fn item(&self, copy: u32, row: &PlanRow, span: Span) -> usize {
        let item = match span {
            Span::Tail { .. } => self.item_of_tail[row.request.as_usize()],
            Span::Block { id, .. } => self.item_of_block[self.block(copy, id)],
        };
        item as usize
    }
}

/// The planned requests, one copy of the trace after the other.
fn by_copy(plan: &Plan) -> Vec<RequestIndex> {
    let mut requests: Vec<_> = plan.rows.iter().map(|row| row.request).collect();
    if plan.copies > 1 {
        requests.sort_by_key(|&request| plan.copy(request));
    }
    requests
}

/// The planned requests with their records, in send order.
pub(crate) fn requests<'a>(
    plan: &'a Plan,
    trace: &'a Trace,
) -> impl Iterator<Item = (&'a PlanRow, &'a Record)> {
    let records = plan.record_of.iter().map(|&place| &trace.records[place as usize]);
    plan.rows.iter().zip(records)
}
