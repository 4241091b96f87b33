//! The working set against a count of blocks one by one.

use std::collections::HashMap;

use onbeat_shared::trace::agentic::{Agentic, Conversation, Entry, Prefix, Scope};
use onbeat_shared::trace::blocks::BlockIds;
use onbeat_shared::trace::record::Record;
use onbeat_shared::trace::recorded::Recorded;
use onbeat_shared::trace::session::SessionNames;
use onbeat_shared::trace::{Format, Source, Trace};
use onbeat_shared::units::{RunNanos, SessionIndex, TraceNanos};
use proptest::prelude::{any, prop, proptest};
use proptest::sample::Index;

use super::{Shape, WorkingSet};

/// Conversations of requests that have these block ids.
fn trace_of(conversations: &[(Scope, Vec<Vec<u64>>)]) -> Trace {
    let mut blocks = BlockIds::default();
    let mut records: Vec<Record> = Vec::new();
    let mut agentic = Agentic::default();
    for (place, (scope, requests)) in (0_u32..).zip(conversations) {
        let first = u32::try_from(records.len()).expect("few");
        for (turn, ids) in (0_u32..).zip(requests) {
            records.push(Record {
                row: records.len() as u64 + 1,
                at: TraceNanos(0),
                input_tokens: 64 * u32::try_from(ids.len()).expect("few") + 1,
                output_tokens: Some(1),
                session: SessionIndex(place),
                turn,
                first_block: blocks.len() as u64,
                block_count: u32::try_from(ids.len()).expect("few"),
            });
            ids.iter().for_each(|&id| blocks.push(id));
        }
        let own = first..u32::try_from(records.len()).expect("few");
        agentic.conversations.push(Conversation {
            id: format!("trace_{place}"),
            file: place,
            scope: *scope,
            prefix: Prefix::default(),
            models: Vec::new(),
            entries: own.clone().map(Entry::Request).collect(),
            records: own,
            session: SessionIndex(place),
        });
    }
    Trace {
        source: Source {
            name: "traces".into(),
            sha256: "0".repeat(64),
            format: Format::Agentic,
            rows: records.len() as u64,
            bytes: 0,
        },
        records,
        blocks,
        block_tokens: 64,
        sessions: SessionNames::Fresh(u32::try_from(conversations.len()).expect("few")),
        recorded: Recorded { agentic: Some(agentic), ..Recorded::default() },
        warnings: Vec::new(),
    }
}

fn local(requests: &[&[u64]]) -> (Scope, Vec<Vec<u64>>) {
    (Scope::Local, requests.iter().map(|ids| ids.to_vec()).collect())
}

fn is_tree(set: &WorkingSet) -> bool {
    set.spaces.iter().all(|space| matches!(space.shape, Shape::Tree(_)))
}

#[test]
fn a_conversation_that_grows_and_forks_counts_each_block_once() {
    let trace = trace_of(&[local(&[&[1, 2], &[1, 2, 3, 4], &[1, 2, 3, 9], &[1], &[]])]);
    let mut set = WorkingSet::new(&trace, 64, 100);
    assert!(is_tree(&set));
    let mut tokens_after = |at, record| {
        set.touch(RunNanos(at), record, 0);
        set.tokens(RunNanos(at))
    };
    assert_eq!(tokens_after(0, 4), 0);
    assert_eq!(tokens_after(0, 3), 64);
    assert_eq!(tokens_after(1, 2), 4 * 64);
    assert_eq!(tokens_after(2, 1), 5 * 64);
    assert_eq!(tokens_after(3, 0), 5 * 64);
    assert_eq!(tokens_after(102, 0), 4 * 64, "the one of instant 1 was 101 old: 9 went with it");
    assert_eq!(set.tokens(RunNanos(103)), 2 * 64);
    assert_eq!(set.tokens(RunNanos(202)), 2 * 64, "just as old as may be");
    assert_eq!(set.tokens(RunNanos(203)), 0);
    assert!(set.uses.is_empty());
}

#[test]
fn copies_of_local_ids_are_other_blocks_and_global_ids_are_one() {
    let shared = || (Scope::Global, vec![vec![7, 8, 9]]);
    let trace = trace_of(&[local(&[&[7, 8]]), shared(), shared()]);
    let mut set = WorkingSet::new(&trace, 10, 1_000);
    for (record, copy, tokens) in [(0, 0, 20), (0, 0, 20), (0, 1, 40), (1, 0, 70), (2, 5, 70)] {
        set.touch(RunNanos(0), record, copy);
        assert_eq!(set.tokens(RunNanos(0)), tokens, "record {record}, copy {copy}");
    }
}

#[test]
fn ids_in_another_order_are_the_same_blocks() {
    let trace = trace_of(&[local(&[&[1, 2, 3], &[3, 2, 1, 1], &[5]])]);
    let mut set = WorkingSet::new(&trace, 64, 1_000);
    assert!(!is_tree(&set));
    for (record, blocks) in [(1, 3), (0, 3), (2, 4)] {
        set.touch(RunNanos(0), record, 0);
        assert_eq!(set.tokens(RunNanos(0)), blocks * 64);
    }
}

/// Block by block: when each was last touched.
#[derive(Default)]
struct Naive(HashMap<(u32, u32, u64), i64>);

impl Naive {
    fn touch(&mut self, trace: &Trace, at: i64, record: u32, copy: u32) {
        let agentic = trace.recorded.agentic.as_ref().expect("conversations");
        let scope = agentic.scope_of(record);
        let copy = if scope == 0 { 0 } else { copy };
        for id in trace.blocks_of(&trace.records[record as usize]).iter() {
            self.0.insert((scope, copy, id), at);
        }
    }

    fn tokens(&self, now: i64, max_age: i64) -> u64 {
        self.0.values().filter(|&&at| now - at <= max_age).count() as u64 * 64
    }
}

proptest! {
    #[test]
    fn the_figure_is_that_of_counting_one_by_one(
        paths in prop::collection::vec((0_usize..40, 0_usize..9, 0_usize..5), 1..40),
        shuffled in any::<bool>(),
        global in any::<bool>(),
        touches in prop::collection::vec((any::<Index>(), 0_u32..3, 0_i64..40), 1..60),
    ) {
        // Each request keeps some of an earlier one's blocks and adds new ones.
        let mut requests: Vec<Vec<u64>> = vec![vec![]];
        let mut next = 1;
        for (base, keep, fresh) in paths {
            let mut ids = requests[base % requests.len()].clone();
            ids.truncate(ids.len().saturating_sub(keep));
            ids.extend(next..next + fresh as u64);
            next += fresh as u64;
            if shuffled && fresh == 3 {
                ids.reverse();
            }
            requests.push(ids);
        }
        let half = requests.split_off(requests.len() / 2);
        let scope = if global { Scope::Global } else { Scope::Local };
        let trace = trace_of(&[(scope, requests), (scope, half)]);
        let mut set = WorkingSet::new(&trace, 64, 100);
        let mut naive = Naive::default();
        let mut now = 0;
        for (record, copy, pause) in touches {
            now += pause;
            let record = u32::try_from(record.index(trace.records.len())).expect("few");
            set.touch(RunNanos(now), record, copy);
            naive.touch(&trace, now, record, copy);
            assert_eq!(set.tokens(RunNanos(now)), naive.tokens(now, 100));
        }
        assert_eq!(set.tokens(RunNanos(now + 101)), 0);
        assert!(set.recent.is_empty() && set.uses.is_empty());
    }
}
