//! A few rounds of the long runs of `soak`: every byte that a server sent is accounted for.

use std::time::Duration;

use tests::soak::long;
use tests::soak::resets::{self, Early};
use tests::soak::rounds::{self, Limit, Wish};
use tests::soak::streams;
use tests::{drivers, ends};

/// A round of fifty streams, with a token every ten milliseconds.
fn round(limit: Limit, seconds_in_all: bool) {
    let (streams, tokens) = (50, if seconds_in_all { 100 } else { 40 });
    for driver in drivers() {
        let gap = Duration::from_millis(10);
        let wish = Wish { driver, streams, tokens, gap, limit };
        let round = ends(move || rounds::play(&wish)).expect("every byte is accounted for");
        if round.paused == 0 {
            assert_eq!(round.tokens, (streams * tokens) as u64, "{wish:?}: {round:?}");
        }
        assert_eq!(round.ok + round.given_up, streams, "{wish:?}: {round:?}");
    }
}

#[test]
fn a_limit_above_the_gap_costs_no_token() {
    round(Limit::Idle(Duration::from_millis(30)), false);
}

#[test]
fn a_limit_below_the_gap_costs_no_byte_that_was_read() {
    round(Limit::Idle(Duration::from_millis(5)), false);
}

#[test]
fn a_limit_in_the_middle_of_the_answers_costs_no_byte_that_was_read() {
    round(Limit::Total(Duration::from_millis(500)), true);
}

#[test]
fn a_reset_stream_is_counted_once_with_its_tokens_and_costs_no_other_any() {
    for driver in drivers() {
        let broken = ends(move || resets::mid_stream(400, 2, driver));
        assert_eq!(broken, Ok(400 / resets::ONE_IN), "{}", driver.name());
    }
}

#[test]
fn an_early_answer_keeps_its_status_however_its_server_ends() {
    for driver in drivers() {
        for how in [Early::Closed, Early::HalfClosed] {
            assert_eq!(ends(move || resets::early(20, how, driver)), Ok(()), "{}", driver.name());
        }
    }
}

#[test]
fn every_token_of_many_open_streams_is_counted() {
    let program = env!("CARGO_BIN_EXE_soak").into();
    let product = tests::hardship::Product { program, first: vec!["onbeat".to_owned()] };
    let wish = streams::Wish {
        streams: 300,
        tokens: 8,
        step_ms: 100,
        driver: "epoll".to_owned(),
        more: Vec::new(),
    };
    let told = streams::open(&product, &wish).expect("a log");
    assert_eq!((told.ok, told.tokens), (300, 2_400), "{told:?}");
    assert!(told.at_once > 100, "{told:?}");
}

#[test]
fn a_long_run_is_looked_at_from_its_first_request_to_its_last() {
    let program = env!("CARGO_BIN_EXE_soak").into();
    let product = tests::hardship::Product { program, first: vec!["onbeat".to_owned()] };
    let driver = "epoll".to_owned();
    let wish = long::Wish { seconds: 2, rate: 50, tokens: 5, look_ms: 20, driver };
    let told = long::run(&product, &wish).expect("a log");
    assert_eq!((told.ok, told.tokens), ([100, 100], 500), "{told:?}");
    let growth = told.growth().expect("looks");
    assert!(told.late_ns.is_some() && growth.bytes[0] > 0 && growth.files[0] > 3, "{told:?}");
    // What it has of memory a second time would be its log or its trace, whole.
    assert!(growth.bytes[1] < growth.bytes[0] + (32 << 20), "{growth:?}");
}
