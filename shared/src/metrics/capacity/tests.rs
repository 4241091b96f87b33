//! The curve of all sizes against lists of blocks, one for each size.

use proptest::prelude::{Strategy, prop, prop_assert_eq, proptest};

use super::{Capacity, Curve, NoCurve, capacity_at};
use crate::log::sample::{Sample, prefix_rows};
use crate::log::{CacheSize, Class};
use crate::run::Run;

const BLOCK: u32 = 16;

/// A request: its blocks, its copy of the trace, its server, how many tokens its last block lacks,
/// and whether it counts.
#[derive(Clone, Debug)]
struct Ask {
    blocks: Vec<u64>,
    copy: u32,
    target: u16,
    short: u32,
    counts: bool,
}

impl Ask {
    /// Every id stands for one to three blocks of the trace.
    fn expanded(&self) -> Vec<u64> {
        let parts = |&id: &u64| (0..id % 3 + 1).map(move |part| id * 3 + part);
        self.blocks.iter().flat_map(parts).collect()
    }

    fn input(&self) -> u32 {
        let blocks = u32::try_from(self.expanded().len()).expect("few");
        (blocks * BLOCK).saturating_sub(self.short)
    }
}

fn run(asks: &[Ask]) -> (Run, Vec<u32>) {
    let mut sample = Sample::new();
    sample.manifest.trace.block_tokens = Some(BLOCK);
    sample.manifest.targets = vec!["http://a".to_owned(), "http://b".to_owned()];
    for (at, ask) in (0_i64..).zip(asks) {
        let request = sample.plan(at);
        let row = &mut sample.plan[request.as_usize()];
        (row.input_tokens, row.ideal_cached_tokens) = (Some(ask.input()), Some(0));
        row.target = ask.target;
        sample.dispatch(request, at, at);
        sample.done(request, at + 1, Class::Ok);
    }
    let rows: Vec<(Vec<u64>, u32)> =
        asks.iter().map(|ask| (ask.blocks.clone(), ask.copy)).collect();
    sample.prefixes = prefix_rows(&rows, |id| u32::try_from(id % 3 + 1).expect("few"));
    let run = Run::read(&sample.bytes()).expect("a log");
    let order = (0..).take(asks.len()).collect();
    (run, order)
}

/// Tokens that a cache of so many blocks has of what counts: a list for each server, the newest
/// block first.
fn by_hand(asks: &[Ask], size: usize) -> u64 {
    let mut lists: [Vec<(u32, Vec<u64>)>; 2] = Default::default();
    let mut hits = 0;
    for ask in asks {
        let list = &mut lists[usize::from(ask.target)];
        let row = ask.expanded();
        let prefixes: Vec<_> = (1..=row.len()).map(|len| (ask.copy, row[..len].to_vec())).collect();
        let there = prefixes.iter().take_while(|prefix| list.contains(prefix)).count();
        if ask.counts {
            let tokens = u32::try_from(there).expect("few") * BLOCK;
            hits += u64::from(tokens.min(ask.input()));
        }
        for prefix in prefixes.into_iter().rev() {
            list.retain(|other| *other != prefix);
            list.insert(0, prefix);
        }
        list.truncate(size);
    }
    hits
}

fn asks() -> impl Strategy<Value = Vec<Ask>> {
    let ask = (prop::collection::vec(0_u64..4, 0..5), 0_u32..2, 0_u16..2, 0_u32..20, 0_u8..4);
    let ask = ask.prop_map(|(blocks, copy, target, short, counts)| Ask {
        blocks,
        copy,
        target,
        short,
        counts: counts > 0,
    });
    prop::collection::vec(ask, 1..25)
}

proptest! {
    #[test]
    fn every_size_has_what_a_list_of_that_size_has(asks in asks()) {
        let (run, order) = run(&asks);
        let counts = |i: usize| asks[i].counts;
        let input: u32 = asks.iter().filter(|ask| ask.counts).map(Ask::input).sum();
        let found = Curve::of(&run, &order, counts);
        if asks.iter().all(|ask| ask.blocks.is_empty()) {
            prop_assert_eq!(found, Err(NoCurve::NotInLog));
            return Ok(());
        }
        if input == 0 {
            prop_assert_eq!(found, Err(NoCurve::NoRequest));
            return Ok(());
        }
        let found = found.expect("a curve");
        for size in &found.sizes {
            let blocks = usize::try_from(size.cache_tokens / u64::from(BLOCK)).expect("few");
            let hits = by_hand(&asks, blocks) as f64;
            prop_assert_eq!(size.ideal_hit_rate, hits / f64::from(input), "{} blocks", blocks);
        }
        let most = by_hand(&asks, usize::MAX) as f64 / f64::from(input);
        prop_assert_eq!(found.sizes.last().expect("a size").ideal_hit_rate, most);
    }
}

#[test]
fn a_rate_has_its_size_between_two() {
    let sizes = [(10, 0.1), (100, 0.3), (1_000, 0.3), (10_000, 0.5)]
        .map(|(cache_tokens, ideal_hit_rate)| CacheSize { cache_tokens, ideal_hit_rate });
    assert_eq!(capacity_at(&sizes, 0.05), Capacity::Below(10));
    assert_eq!(capacity_at(&sizes, 0.6), Capacity::Above);
    let about = |rate| match capacity_at(&sizes, rate) {
        Capacity::About(tokens) => tokens.round(),
        other => panic!("{other:?}"),
    };
    assert_eq!((about(0.2), about(0.3), about(0.4)), (32.0, 100.0, 3_162.0));
    assert_eq!(capacity_at(&[], 0.4), Capacity::Above);
}

#[test]
fn what_users_share_is_asked_for_by_all_of_them() {
    // Two conversations with one block in common for all users, and two of their own.
    let asks = [(&[1_u64, 2][..], 0), (&[1, 2], 1), (&[1, 2], 0)].map(|(blocks, copy)| Ask {
        blocks: blocks.to_vec(),
        copy,
        target: 0,
        short: 0,
        counts: true,
    });
    let (mut run, order) = run(&asks);
    let facts = crate::log::sample_users::sample(1, 1).manifest.users.expect("facts of users");
    run.manifest.users = Some(facts);
    let users = run.manifest.users.as_mut().expect("just put there");
    users.prompts.warm_prefix_tokens = 2 * BLOCK + 3;
    let found = Curve::of(&run, &order, |_| true).expect("a curve");
    // An id stands for 1 + id % 3 blocks: 5 in all, of which 2 are shared.
    let rate = |blocks: u32| {
        let tokens = u64::from(blocks * BLOCK);
        let size = found.sizes.iter().find(|size| size.cache_tokens == tokens);
        size.expect("a size").ideal_hit_rate
    };
    let all = found.sizes.last().expect("a size").ideal_hit_rate;
    // Nothing, then the shared 2, then all 5.
    assert!((all - 7.0 / 15.0).abs() < 1e-12, "{all}");
    assert!((rate(2) - 4.0 / 15.0).abs() < 1e-12, "{}", rate(2));
    assert!((rate(5) - 4.0 / 15.0).abs() < 1e-12, "the other user's blocks are between");
    assert!((rate(8) - 7.0 / 15.0).abs() < 1e-12, "{}", rate(8));
}
