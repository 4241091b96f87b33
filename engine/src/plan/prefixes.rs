//! Which prompts of a plan begin alike, for the log: see [`onbeat_shared::log::prefix_rows`].
//!
//! With it whoever reads the log can tell what a prefix cache of any size would have had of the
//! requests, in the order in which they really left. It is worked out before zero and costs one
//! pass over the block ids that are planned; a trace with too many stretches goes without, so that
//! it never takes more memory than a few hundred bytes for each request of a large trace.

use std::collections::BTreeMap;

use onbeat_shared::log::prefix_rows::{PathRow, PrefixRows, SHARED_BY_ALL, StretchRow};
use onbeat_shared::trace::Trace;
use onbeat_shared::trace::agentic::Scope;
use onbeat_shared::units::RequestIndex;

use crate::plan::stretches::{NOTHING, Stretches};
use crate::plan::{Plan, PlanMode};

/// Stretches beyond which a log goes without them: 32 MB of it, and some 300 MB while they are
/// worked out.
const STRETCHES_MAX: usize = 4_000_000;

/// Bytes that one stretch takes while they are worked out, at most.
const STRETCH_BYTES: u64 = 100;

/// The stretches and paths of a plan's requests; nothing where the trace has no block ids, or too
/// many requests that begin in different ways: for an eighth of a budget of so many bytes, if there
/// is one.
#[must_use]
pub fn prefixes(trace: &Trace, plan: &Plan, budget: Option<u64>) -> PrefixRows {
    let room = budget.map_or(u64::MAX, |bytes| bytes / 8 / STRETCH_BYTES);
    let most = usize::try_from(room).map_or(STRETCHES_MAX, |room| room.min(STRETCHES_MAX));
    within(trace, plan, most).unwrap_or_default()
}

fn within(trace: &Trace, plan: &Plan, most: usize) -> Option<PrefixRows> {
    if trace.blocks.is_empty() {
        return None;
    }
    let mut rows = PrefixRows::default();
    let mut ends = vec![NOTHING; trace.records.len()];
    for records in by_scope(trace, plan).into_values() {
        let mut tree = Stretches::default();
        for &record in &records {
            let own = &trace.records[record as usize];
            let found = tree.find(&trace.blocks, own.first_block, own.block_count);
            let added = tree.add(&trace.blocks, own.first_block, own.block_count, found);
            ends[record as usize] = added.end;
            if rows.stretches.len() + tree.all().len() > most {
                return None;
            }
        }
        let numbers = append(&tree, &mut rows.stretches);
        for record in records {
            let end = &mut ends[record as usize];
            if *end != NOTHING {
                *end = numbers[*end as usize];
            }
        }
    }
    let shared = shared_by_all(trace, plan);
    let paths = (0_u32..).zip(&plan.record_of).filter_map(|(request, &record)| {
        let end = Some(ends[record as usize]).filter(|&end| end != NOTHING)?;
        let copy = plan.copy_of.get(request as usize).copied().unwrap_or(0);
        let copy = if shared[record as usize] { SHARED_BY_ALL } else { copy };
        Some(PathRow { request: RequestIndex(request), end, copy })
    });
    rows.paths = paths.collect();
    Some(rows)
}

/// The planned records, each once, by where their ids hold.
fn by_scope(trace: &Trace, plan: &Plan) -> BTreeMap<u32, Vec<u32>> {
    let mut planned = vec![false; trace.records.len()];
    let mut scopes: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for &record in &plan.record_of {
        if !std::mem::replace(&mut planned[record as usize], true) {
            scopes.entry(trace.scope_of(record)).or_default().push(record);
        }
    }
    scopes
}

/// Of each record, whether its ids mean the same whoever plays it: then a conversation that is
/// played again shares them.
fn shared_by_all(trace: &Trace, plan: &Plan) -> Vec<bool> {
    let mut shared = vec![false; trace.records.len()];
    let conversations = trace.recorded.agentic.iter().flat_map(|own| &own.conversations);
    for conversation in conversations.filter(|_| plan.mode == PlanMode::Users) {
        if conversation.scope == Scope::Global {
            conversation.records.clone().for_each(|record| shared[record as usize] = true);
        }
    }
    shared
}

/// Adds a tree's stretches such that each stands behind the one it follows and those that hang
/// together are neighbours; the new number of each.
fn append(tree: &Stretches, rows: &mut Vec<StretchRow>) -> Vec<u32> {
    let all = tree.all();
    let count = u32::try_from(all.len()).expect("bounded by STRETCHES_MAX");
    let mut order: Vec<u32> = (0..count).collect();
    // What a stretch follows ends before it does.
    order.sort_unstable_by_key(|&number| all[number as usize].end);
    let mut roots = vec![NOTHING; all.len()];
    for &number in &order {
        let follows = all[number as usize].follows;
        let root = if follows == NOTHING { number } else { roots[follows as usize] };
        roots[number as usize] = root;
    }
    order.sort_by_key(|&number| roots[number as usize]);
    let first = u32::try_from(rows.len()).expect("bounded by STRETCHES_MAX");
    let mut numbers = vec![NOTHING; all.len()];
    for (new, &number) in (first..).zip(&order) {
        numbers[number as usize] = new;
        let stretch = all[number as usize];
        let follows = Some(stretch.follows).filter(|&follows| follows != NOTHING);
        let follows = follows.map(|follows| numbers[follows as usize]);
        rows.push(StretchRow { follows, blocks: stretch.blocks });
    }
    numbers
}

#[cfg(test)]
mod tests {
    use onbeat_shared::log::sample::Sample;
    use onbeat_shared::metrics::capacity::Curve;
    use onbeat_shared::run::Run;
    use onbeat_shared::trace::capacity::hit_rates;
    use proptest::prelude::{prop, proptest};

    use super::*;
    use crate::plan::{PlanOptions, build};
    use crate::trace::{TraceOptions, load};

    /// A trace of these rows of ids, 512 tokens each, and its plan.
    fn planned(rows: &[Vec<u32>], copies: u32) -> (Trace, Plan) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("t.jsonl");
        let line = |(at, ids): (usize, &Vec<u32>)| {
            let input = ids.len() * 512;
            format!(
                "{{\"timestamp\":{at},\"input_length\":{input},\"output_length\":1,\
                 \"hash_ids\":{ids:?}}}\n"
            )
        };
        let lines: String = rows.iter().enumerate().map(line).collect();
        std::fs::write(&path, lines).expect("room");
        let trace = load(&path, &TraceOptions::default()).expect("a trace");
        let options = PlanOptions { copies, ..PlanOptions::default() };
        let plan = build(&trace, &options).expect("a plan");
        (trace, plan)
    }

    /// The stretches of a path, the first first.
    fn spelt(rows: &PrefixRows, end: u32) -> Vec<u32> {
        let next = |&at: &u32| rows.stretches[at as usize].follows;
        let mut path: Vec<u32> = std::iter::successors(Some(end), next).collect();
        path.reverse();
        path
    }

    proptest! {
        /// Two paths share as many blocks as their rows of ids have in common at their begin.
        #[test]
        fn paths_share_what_their_rows_begin_with(rows in prop::collection::vec(
            prop::collection::vec(0_u32..3, 1..7), 1..12,
        )) {
            let (trace, plan) = planned(&rows, 1);
            let found = prefixes(&trace, &plan, None);
            let blocks = |path: &[u32]| -> u32 {
                path.iter().map(|&at| found.stretches[at as usize].blocks).sum()
            };
            assert_eq!(found.paths.len(), rows.len());
            for (a, one) in found.paths.iter().zip(&rows) {
                for (b, other) in found.paths.iter().zip(&rows) {
                    let (a, b) = (spelt(&found, a.end), spelt(&found, b.end));
                    let common = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
                    let same = one.iter().zip(other).take_while(|(a, b)| a == b).count();
                    assert_eq!(blocks(&a[..common]) as usize, same);
                }
            }
            for (number, stretch) in (0_u32..).zip(&found.stretches) {
                assert!(stretch.blocks > 0 && stretch.follows.is_none_or(|at| at < number));
            }
        }
    }

    proptest! {
        /// A reader of the log finds the hit rates that the trace itself has, at every size.
        #[test]
        fn the_log_tells_the_curve_of_the_trace(rows in prop::collection::vec(
            prop::collection::vec(0_u32..4, 1..6), 1..15,
        )) {
            let (trace, plan) = planned(&rows, 1);
            let mut sample = Sample::new();
            sample.manifest.trace.block_tokens = Some(trace.block_tokens);
            sample.plan.clone_from(&plan.rows);
            sample.prefixes = prefixes(&trace, &plan, None);
            for (at, row) in (0_i64..).zip(&plan.rows) {
                sample.dispatch(row.request, at, at);
            }
            let run = Run::read(&sample.bytes()).expect("a log");
            let order: Vec<u32> = (0..).take(plan.rows.len()).collect();
            let curve = Curve::of(&run, &order, |_| true).expect("a curve");
            let sizes: Vec<u64> = curve.sizes.iter().map(|size| size.cache_tokens).collect();
            let records: Vec<usize> =
                plan.record_of.iter().map(|&record| record as usize).collect();
            let expected = hit_rates(&trace, &records, &sizes);
            for (found, expected) in curve.sizes.iter().zip(expected) {
                assert_eq!(Some(found.ideal_hit_rate), expected.ideal_hit_rate);
            }
        }
    }

    #[test]
    fn copies_have_paths_of_their_own_and_too_many_stretches_none() {
        let (trace, plan) = planned(&[vec![1, 2], vec![1, 3]], 2);
        let found = prefixes(&trace, &plan, None);
        assert_eq!(found.stretches.len(), 3);
        let mut copies: Vec<u32> = found.paths.iter().map(|path| path.copy).collect();
        copies.sort_unstable();
        assert_eq!(copies, [0, 0, 1, 1]);
        assert_eq!(within(&trace, &plan, 2), None);
    }
}
