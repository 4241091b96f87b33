//! The program as a process that is killed, or whose disk is full: a few of the long runs of
//! `hardship`, the same ones on every machine.

use onbeat_shared::log::block::BLOCK_RECORDS;
use tests::hardship::{Noting, Product, disk, kills};

/// The program under test.
fn product() -> Product {
    let program = env!("CARGO_BIN_EXE_hardship").into();
    Product { program, first: vec!["onbeat".to_owned()] }
}

#[test]
fn a_killed_run_leaves_a_log_that_lacks_its_end_and_invents_nothing() {
    let (product, server) = (product(), Noting::start());
    for seed in 0..5 {
        let loss = kills::drawn(&product, &server, seed, 400_000_000).expect("a log");
        assert!(loss.arrived - loss.kept.min(loss.arrived) < BLOCK_RECORDS, "{loss:?}");
    }
}

#[test]
fn a_full_disk_keeps_no_request_back_and_the_log_says_what_it_has() {
    let told = disk::full(&product(), &Noting::start());
    assert_eq!(disk::check_full(&told), Ok(()));
    #[expect(clippy::print_stderr, reason = "a figure that is no verdict on a machine")]
    {
        eprintln!("full disk: {}", disk::lateness_in_words(told.run.as_ref().expect("a log")));
    }
}
