//! Open-loop truth: what leaves, and when, depends on the schedule alone and not on the server.
//!
//! Nothing here depends on the pace of the machine: servers hold answers back until requests have
//! *arrived*, and what is compared are instants of which one causes the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use onbeat_shared::metrics::{ReportOptions, report};
use onbeat_shared::run::Run;
use tests::scripted::{Scripted, answer, good_stream, reads_of_a_request, withholding};
use tests::{Scenario, drivers, mooncake};

/// How many of the requests ended well.
fn ok(run: &Run) -> usize {
    (0..run.plan.len()).filter(|&i| run.requests.is_ok(i)).count()
}

#[test]
fn a_server_that_stalls_keeps_no_request_from_leaving() {
    const GAP_NS: i64 = 5_000_000;
    const HELD: std::ops::Range<usize> = 20..60;
    for driver in drivers() {
        let server = withholding(HELD);
        let mut scenario = Scenario::new(&mooncake(80, 5, 20, 2));
        scenario.config.driver = Some(driver);
        let run = scenario.run_against(server.address);
        assert_eq!(ok(&run), 80);
        // Nobody is answered before sixty requests have come, and the last of those is not sent
        // before its time: the wait is in the latency that counts from due. (Requests that arrive
        // together may change places at both ends.)
        let waits_to_the_end = |&i: &usize| {
            let due = run.plan[i].due.expect("it has a time").0;
            let rest = i64::try_from(HELD.end - 1 - i).expect("small") * GAP_NS;
            run.requests.done(i).expect("it ended").0 - due >= rest
        };
        let waited = HELD.filter(waits_to_the_end).count();
        assert!(waited >= 30, "{waited} of 40");
        for (i, row) in run.plan.iter().enumerate() {
            assert_eq!(run.requests.intended(i), row.due, "request {i} was ready when due");
        }
    }
}

#[test]
fn as_many_requests_are_open_as_are_due() {
    const REQUESTS: usize = 300;
    for driver in drivers() {
        let server = withholding(0..REQUESTS);
        let mut scenario = Scenario::new(&mooncake(REQUESTS, 1, 20, 2));
        scenario.config.driver = Some(driver);
        let run = scenario.run_against(server.address);
        assert_eq!(ok(&run), REQUESTS);
        let last_sent = (0..REQUESTS).filter_map(|i| run.requests.sent(i)).max();
        let first_done = (0..REQUESTS).filter_map(|i| run.requests.done(i)).min();
        assert!(first_done > last_sent, "{first_done:?} {last_sent:?}");
    }
}

#[test]
fn head_and_body_leave_in_one_piece() {
    const REQUESTS: usize = 20;
    for driver in drivers() {
        let (whole, pieces) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (counted, read) = (Arc::clone(&whole), Arc::clone(&pieces));
        let server = Scripted::start(move |_, mut stream| {
            while let Some(reads) = reads_of_a_request(&mut stream) {
                counted.fetch_add(1, Ordering::Relaxed);
                read.fetch_add(reads, Ordering::Relaxed);
                answer(&mut stream, &good_stream());
            }
        });
        let mut scenario = Scenario::new(&mooncake(REQUESTS, 5, 20, 2));
        scenario.config.driver = Some(driver);
        scenario.config.warm_connections = Some(1);
        assert_eq!(ok(&scenario.run_against(server.address)), REQUESTS);
        assert_eq!(whole.load(Ordering::Relaxed), REQUESTS);
        assert_eq!(pieces.load(Ordering::Relaxed), REQUESTS, "reads that it took");
    }
}

#[test]
fn more_than_a_core_can_send_is_said_to_be_the_clients_doing() {
    let row = |row: usize| {
        let (ms, us) = (row / 1_000, row % 1_000);
        format!("{{\"timestamp\":{ms}.{us:03},\"input_length\":20,\"output_length\":1}}\n")
    };
    let mut scenario = Scenario::new(&(0..2_000).map(row).collect::<String>());
    scenario.config.max_connections = Some(200);
    let outcome = scenario.run();
    let verdict = report(&outcome.run, &ReportOptions::default()).verdict;
    assert!(!verdict.schedule_held);
    let reason = verdict.reasons.first().expect("a reason");
    assert!(reason.starts_with("CLIENT SATURATED: "), "{reason}");
    assert!(reason.contains("of the 10005") && reason.contains("% of them more than"), "{reason}");
}
