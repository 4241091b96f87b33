//! Seed → a simulated run: the real policy code, a virtual clock, a server with a temper.
//!
//! One `u64` makes a plan, a server and its faults; the world runs until every request has ended,
//! and its invariants are checked after every event. A failure prints its seed, and that seed
//! reproduces it. Sockets, threads and the real clock are elsewhere.

mod checks;
mod random;
mod world;

use world::World;

/// Enough to meet every combination of edges, ties and faults many times over.
const SEEDS: u64 = 1_000;

#[test]
fn sessions_hold_their_invariants_for_a_thousand_seeds() {
    for seed in 0..SEEDS {
        let world = World::new(seed);
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.run()));
        assert!(ended.is_ok(), "seed {seed} breaks an invariant; run it alone to see which");
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in [0, 1, 77] {
        assert_eq!(World::new(seed).run(), World::new(seed).run());
    }
}
