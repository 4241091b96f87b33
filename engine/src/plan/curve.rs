//! How much of a plan's prompts a prefix cache of a given size would have: the ideal hit rate as a
//! curve.
//!
//! Requests are asked in send order, as for the ideal hits of each. The work grows with the blocks
//! that are asked for, so beyond a bound the curve is left out: a replay must not wait for it.

use onbeat_shared::log::header::CacheSize;
use onbeat_shared::log::plan_row::PlanRow;
use onbeat_shared::trace::Trace;
use onbeat_shared::trace::capacity::{hit_rates, ladder};

use crate::plan::Plan;

/// Blocks asked for in all beyond which there is no curve: it would take more than a few seconds.
const BLOCKS_MAX: u64 = 5_000_000;

/// The hit rates of caches of growing size; empty when the trace has no block ids, several copies
/// of it are laid over each other, or it is too long for this.
#[must_use]
pub fn cache_curve(trace: &Trace, plan: &Plan) -> Vec<CacheSize> {
    let blocks: u64 = plan.rows.iter().map(|row| u64::from(row.blocks)).sum();
    if blocks == 0 || blocks > BLOCKS_MAX || plan.copies > 1 {
        return Vec::new();
    }
    let new = |row: &PlanRow| {
        let known = row.ideal_cached_tokens.unwrap_or(0);
        u64::from(row.input_tokens.unwrap_or(0).saturating_sub(known))
    };
    let sizes = ladder(plan.rows.iter().map(new).sum());
    let order: Vec<usize> = plan.record_of.iter().map(|&record| record as usize).collect();
    hit_rates(trace, &order, &sizes)
        .into_iter()
        .filter_map(|sized| {
            let ideal_hit_rate = sized.ideal_hit_rate?;
            Some(CacheSize { cache_tokens: sized.cache_tokens, ideal_hit_rate })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{PlanOptions, build};
    use crate::trace::{TraceOptions, load};

    #[test]
    fn the_largest_cache_has_what_an_infinite_one_has() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("t.jsonl");
        let row = |at: u32, first: u32| {
            format!(
                "{{\"timestamp\":{at},\"input_length\":20480,\"output_length\":1,\"hash_ids\":{:?}}}\n",
                (first..first + 40).collect::<Vec<_>>()
            )
        };
        // The first prompt comes back after another one, which a cache of one prompt forgets.
        std::fs::write(&path, [row(0, 0), row(1, 100), row(2, 0)].concat()).expect("room");
        let trace = load(&path, &TraceOptions::default()).expect("a trace");
        let plan = build(&trace, &PlanOptions::default()).expect("a plan");
        let curve = cache_curve(&trace, &plan);
        let shown: Vec<_> = curve.iter().map(|size| size.cache_tokens).collect();
        assert_eq!(shown, [10_000, 20_000, 50_000]);
        assert_eq!(curve[0].ideal_hit_rate, 0.0);
        assert!((curve[2].ideal_hit_rate - 1.0 / 3.0).abs() < 1e-9, "{curve:?}");
        let tiled = PlanOptions { copies: 2, ..PlanOptions::default() };
        assert_eq!(cache_curve(&trace, &build(&trace, &tiled).expect("a plan")), []);
    }
}
