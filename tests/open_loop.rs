//! A trace goes in, every request leaves once, when it should and as it should.

use onbeat::plan::PlanMode;
use onbeat::replayer::Pacing;
use onbeat::run::CoreChoice;
use onbeat_shared::log::{Class, Outcome as End};
use tests::{Outcome, Scenario, drivers, mooncake};

/// What must hold for any run of any plan against a good server.
fn holds(outcome: &Outcome, planned: usize) {
    let run = &outcome.run;
    assert_eq!(run.plan.len(), planned);
    assert!(run.is_whole(), "the log has its footer and lost nothing: {:?}", run.warnings);
    let mut served: Vec<_> = outcome.served.iter().map(|one| one.prompt_tokens).collect();
    let mut planned_tokens = Vec::new();
    for (i, row) in run.plan.iter().enumerate() {
        let requests = &run.requests;
        assert_eq!(requests.class(i), Some(Class::Ok), "request {i}: {:?}", run.error_text(i));
        let sent = requests.sent(i).expect("it left");
        assert!(sent >= row.due.expect("a recorded time"), "request {i} left early");
        assert!(requests.sent_end(i) >= Some(sent));
        assert!(requests.first_byte(i) >= Some(sent));
        assert!(requests.done(i) >= requests.last_token(i));
        assert_eq!(requests.prompt_tokens(i), row.input_tokens, "request {i}'s prompt");
        assert_eq!(requests.completion_tokens(i), row.max_tokens, "request {i}'s answer");
        assert_eq!(run.chunks.count(i) as u64, requests.chunk_tokens(i));
        planned_tokens.push(row.input_tokens.expect("recorded"));
    }
    served.sort_unstable();
    planned_tokens.sort_unstable();
    assert_eq!(served, planned_tokens, "the server saw other prompts than were planned");
    assert_eq!(outcome.counts.served, planned as u64);
    let tokens: u64 =
        (0..planned).filter_map(|i| run.requests.completion_tokens(i)).map(u64::from).sum();
    assert_eq!(outcome.counts.completion_tokens, tokens);
}

#[test]
fn every_request_is_sent_once_and_counted_alike_on_both_sides() {
    for driver in drivers() {
        let mut scenario = Scenario::new(&mooncake(60, 3, 700, 5));
        scenario.config.driver = Some(driver);
        let outcome = scenario.run();
        holds(&outcome, 60);
        assert_eq!(outcome.run.manifest.driver, driver.name());
        let doctor = outcome.run.manifest.doctor.as_ref().expect("the machine was looked at");
        assert_eq!(doctor["measured"], false);
    }
}

#[test]
fn every_way_of_waiting_and_any_number_of_cores_sends_the_same() {
    for pacing in [Pacing::Spin, Pacing::Hybrid { margin_ns: 0 }, Pacing::Sleep] {
        let mut scenario = Scenario::new(&mooncake(20, 5, 40, 3));
        scenario.config.pacing = pacing;
        holds(&scenario.run(), 20);
    }
    let allowed = onbeat::replayer::affinity::allowed_cpus().expect("the system says");
    if allowed.len() >= 2 {
        let mut scenario = Scenario::new(&mooncake(40, 3, 40, 3));
        scenario.config.cores = CoreChoice::Count(2);
        let outcome = scenario.run();
        holds(&outcome, 40);
        let used: std::collections::BTreeSet<_> =
            (0..40).filter_map(|i| outcome.run.requests.core(i)).collect();
        assert_eq!(used.len(), 2, "both cores sent");
    }
}

#[test]
fn a_burst_at_one_instant_leaves_in_file_order() {
    let outcome = Scenario::new(&mooncake(30, 0, 64, 2)).run();
    holds(&outcome, 30);
    let sent: Vec<_> = (0..30).map(|i| outcome.run.requests.sent(i)).collect();
    assert!(sent.is_sorted(), "{sent:?}");
}

#[test]
fn a_body_larger_than_the_socket_buffer_arrives_whole() {
    for driver in drivers() {
        let mut scenario = Scenario::new(&mooncake(6, 1, 400_000, 2));
        scenario.config.driver = Some(driver);
        let outcome = scenario.run();
        holds(&outcome, 6);
        assert!(outcome.run.requests.sent_bytes(0) > Some(1_500_000));
    }
}

/// Two turns of one session, the second due while the first is still being answered.
const TWO_TURNS: &str = concat!(
    r#"{"chat_id": 1, "parent_chat_id": -1, "timestamp": 10.0, "input_length": 20, "#,
    r#""output_length": 120, "type": "text", "turn": 1, "hash_ids": [1, 2]}"#,
    "\n",
    r#"{"chat_id": 2, "parent_chat_id": 1, "timestamp": 10.005, "input_length": 30, "#,
    r#""output_length": 2, "type": "text", "turn": 2, "hash_ids": [1, 3]}"#,
    "\n",
);

#[test]
fn a_later_turn_waits_for_the_end_of_the_one_before() {
    let outcome = Scenario::new(TWO_TURNS).run();
    holds(&outcome, 2);
    let (run, requests) = (&outcome.run, &outcome.run.requests);
    assert_eq!(run.plan[1].due.expect("recorded").0, 5_000_000);
    assert!(requests.done(0) > run.plan[1].due, "the first answer takes 24 ms");
    assert_eq!(requests.ready(1), requests.done(0), "ready when the first turn ended");
    assert!(requests.sent(1) >= requests.done(0));
    assert_eq!(requests.connection(0), requests.connection(1), "and the connection is reused");
}

#[test]
fn strict_open_loop_waits_for_nobody() {
    let mut scenario = Scenario::new(TWO_TURNS);
    scenario.config.plan.mode = PlanMode::OpenLoopStrict;
    let outcome = scenario.run();
    holds(&outcome, 2);
    assert_eq!(outcome.run.requests.ready(1), outcome.run.plan[1].due);
    assert_eq!(outcome.run.plan[1].after, None);
}

#[test]
fn a_server_that_reports_cached_tokens_is_quoted() {
    let trace: String = (0..4)
        .map(|row| {
            format!(
                "{{\"timestamp\": {}, \"input_length\": 1024, \"output_length\": 2, \
                 \"hash_ids\": [7, 8]}}\n",
                row * 40
            )
        })
        .collect();
    let outcome = Scenario::new(&trace).run();
    holds(&outcome, 4);
    assert_eq!(outcome.run.requests.cached_tokens(0), Some(0));
    let later = outcome.run.requests.cached_tokens(3).expect("the mock reports");
    assert!(later >= 1_000, "an identical prompt is cached but for its last block: {later}");
}

#[test]
fn nothing_listening_is_said_before_anything_is_written() {
    let scenario = Scenario::new(&mooncake(2, 1, 10, 1));
    let log = scenario.log_path();
    let words = scenario.fail().to_string();
    assert!(words.contains("Is the server running"), "{words}");
    assert!(!log.exists(), "a run that did not start leaves no log");
}

#[test]
fn an_existing_log_is_not_replaced() {
    let scenario = Scenario::new(&mooncake(2, 1, 10, 1));
    std::fs::write(scenario.log_path(), "precious").expect("the folder is writable");
    let server = tests::scripted::Scripted::start(|_, _| {});
    let mut scenario = scenario;
    scenario.config.target =
        onbeat::net::target::Target::parse(&server.address.to_string()).expect("an address");
    let log = scenario.log_path();
    let folder = scenario; // keeps the folder alive until the file has been looked at
    let error =
        onbeat::run::run(folder.config.clone(), &mut onbeat::cli::progress::Quiet::default())
            .expect_err("it exists");
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("--force"), "{error}");
    assert_eq!(std::fs::read(log).expect("still there"), b"precious");
}

#[test]
fn a_summary_of_outcomes_adds_up() {
    let outcome = Scenario::new(&mooncake(10, 1, 10, 1)).run();
    let ok = (0..10).filter(|&i| outcome.run.requests.outcome(i) == Some(End::Ok)).count();
    assert_eq!(ok, 10);
    assert_eq!(outcome.ran.conducted.counters.sent, 10);
    assert_eq!(outcome.ran.conducted.counters.ended, 10);
    // Other tests replay beside this one, and may be told of.
    let others = |words: &&String| words.starts_with("another replay on this host");
    let own: Vec<_> = outcome.said.iter().filter(|words| !others(words)).collect();
    assert!(own.is_empty(), "nothing to warn of: {own:?}");
}
