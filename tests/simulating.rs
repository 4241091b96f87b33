//! Simulated runs, from one seed each: a few of the million that `simulate` makes by command.

use onbeat_shared::log::outcome::Class;
use tests::sim;

/// Enough to meet every kind of answer, fault and stop many times over.
const SEEDS: u64 = 1_000;

#[test]
fn simulated_runs_hold_their_invariants_and_meet_every_fault() {
    let figures = sim::run_all(0..SEEDS).unwrap_or_else(|broken| panic!("{broken}"));
    assert_eq!(figures.runs, SEEDS);
    // Only what the simulation has is listed; a class that is no longer met is no longer tested.
    let met = [
        Class::Ok,
        Class::NoFinish,
        Class::EmptyAnswer,
        Class::HttpRedirect,
        Class::Http4xx,
        Class::Http429,
        Class::Http5xx,
        Class::ConnectRefused,
        Class::ConnectFailed,
        Class::ConnectTimeout,
        Class::FirstByteTimeout,
        Class::IdleTimeout,
        Class::TotalTimeout,
        Class::ResetBeforeAnswer,
        Class::ResetMidAnswer,
        Class::TruncatedBody,
        Class::NotHttp,
        Class::BadHead,
        Class::BadFraming,
        Class::BadEvent,
        Class::WrongContentType,
        Class::ErrorEvent,
        Class::CancelledByPlan,
        Class::Interrupted,
        Class::NotReached,
        Class::PredecessorPending,
        Class::ClientNoDescriptor,
        Class::ClientNoPort,
    ];
    for class in met {
        let count = figures.classes.get(&class).copied().unwrap_or(0);
        assert!(count >= 5, "{}: {count} times in {SEEDS} runs", class.name());
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in [0, 1, 2, 3, 77, 78, 79, 80] {
        assert_eq!(sim::run(seed), sim::run(seed), "seed {seed}");
    }
}
