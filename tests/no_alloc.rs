//! Between the start barrier and the last end a pacing core does not allocate.
//!
//! A binary of its own, because an allocator belongs to a whole process: the cores of other tests
//! that run beside it would be counted as well.

use std::sync::{Mutex, PoisonError};

use onbeat::plan::Cancelling;
use onbeat::render::When;
use onbeat::replayer::driver::DriverKind;
use tests::{Scenario, drivers, mooncake};

/// Remembers when the pacing cores allocate.
#[global_allocator]
static ALLOCATOR: tests::alloc::Watching = tests::alloc::Watching;

/// One run after the other: beside each other they would be counted together.
static TURN: Mutex<()> = Mutex::new(());

/// Bytes that hold a tenth of the run's requests.
const WINDOW: u64 = 500_000;

/// A hundred sessions of three turns, each of which repeats the replies to those before it.
fn sessions() -> String {
    let row = |row: usize| {
        format!(
            "{{\"session_id\":\"s{}\",\"timestamp\":{},\"input_length\":300,\
             \"output_length\":20}}\n",
            row % 100,
            row * 2
        )
    };
    (0..300).map(row).collect()
}

/// The cores' calls to the allocator between zero and the last end of a run of 300 requests.
fn calls_of_a_run(driver: DriverKind, when: When, trace: &str) -> usize {
    calls_of(Scenario::new(trace), driver, when)
}

fn calls_of(mut scenario: Scenario, driver: DriverKind, when: When) -> usize {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    // A connection for every request, so that none is opened during the run, however slow the
    // machine is.
    scenario.config.driver = Some(driver);
    scenario.config.render.when = when;
    scenario.config.render.budget_bytes = Some(WINDOW).filter(|_| when == When::Ahead);
    scenario.config.warm_connections = Some(300);
    let outcome = scenario.run();
    let run = &outcome.run;
    let zero = run.anchors.iter().find(|anchor| anchor.time.0 == 0).expect("the zero anchor");
    let zero_ns = zero.monotonic_ns.expect("both clocks were read").cast_signed();
    let last_ns = (0..300).filter_map(|i| run.requests.done(i)).max().expect("requests ended").0;
    assert_eq!(outcome.ran.conducted.counters.opened, 0, "the warm-up foresaw every connection");
    assert!(outcome.run.chunks.len() >= 300 * 20);
    tests::alloc::calls_between(zero_ns, zero_ns + last_ns)
}

#[test]
fn the_hot_loop_does_not_allocate() {
    let alone = mooncake(300, 2, 900, 20);
    let repeating = sessions();
    for driver in drivers() {
        for (when, trace) in [(When::All, &alone), (When::Ahead, &alone), (When::All, &repeating)] {
            let calls = calls_of_a_run(driver, when, trace);
            assert!(
                tests::alloc::calls() > 0,
                "the cores do allocate before zero, and it was seen"
            );
            assert_eq!(calls, 0, "calls on a pacing core in the run ({}, {when:?})", driver.name());
        }
    }
}

#[test]
fn timers_of_cancellations_do_not_allocate() {
    for driver in drivers() {
        let mut scenario = Scenario::new(&mooncake(300, 2, 900, 20));
        let delay_ns = 3_600_000_000_000;
        scenario.config.plan.cancelling = Some(Cancelling { share: None, delay_ns });
        let calls = calls_of(scenario, driver, When::All);
        assert_eq!(calls, 0, "calls on a pacing core in the run ({})", driver.name());
    }
}
