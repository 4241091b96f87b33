//! Runs whose requests are rendered while others are sent: the same bytes, within the budget, and
//! what was not rendered in time is said.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use onbeat::render::When;
use onbeat::replayer::Stop;
use onbeat::run::CoreChoice;
use onbeat_shared::log::DoneFlags;
use onbeat_shared::metrics::{ReportOptions, report};
use onbeat_shared::run::Run;
use tests::scripted::{Scripted, answer, good_stream, request};
use tests::{Scenario, Stopper, drivers, ends, mooncake};

/// Room for one request of ten thousand tokens, and not for two.
const ONE: u64 = 100_000;

fn classes(run: &Run) -> Vec<&'static str> {
    (0..run.plan.len())
        .map(|i| run.requests.class(i).map_or("open", |class| class.name()))
        .collect()
}

fn has(run: &Run, flag: DoneFlags) -> Vec<bool> {
    (0..run.plan.len()).map(|i| run.requests.flags(i).has(flag)).collect()
}

/// What the mock received, by place in the plan: digests of the bodies.
fn received(when: When, budget: Option<u64>, cores: u16) -> BTreeMap<String, [u8; 32]> {
    let mut scenario = Scenario::new(&mooncake(40, 1, 5_000, 2));
    scenario.config.render.when = when;
    scenario.config.render.budget_bytes = budget;
    scenario.config.cores = CoreChoice::Count(cores);
    let outcome = scenario.run();
    assert_eq!(classes(&outcome.run), ["ok"; 40]);
    let known = outcome.run.plan.iter().filter(|row| row.body_bytes.is_some()).count();
    assert_eq!(known, if when == When::Ahead { 0 } else { 40 });
    assert!((0..40).all(|i| outcome.run.requests.sent_bytes(i).is_some_and(|n| n > 20_000)));
    let place = |id: &str| id.rsplit('-').next().expect("run and place").to_owned();
    let digest = |served: &onbeat::mock::Served| {
        (place(served.request_id.as_deref().expect("every request has one")), served.body_digest)
    };
    let digests: BTreeMap<_, _> = outcome.served.iter().map(digest).collect();
    assert_eq!(digests.len(), 40);
    digests
}

#[test]
fn the_server_gets_the_same_bytes_whenever_they_are_rendered() {
    let whole = received(When::All, None, 1);
    assert_eq!(received(When::Ahead, None, 1), whole);
    assert_eq!(received(When::Ahead, Some(150_000), 1), whole);
    let allowed = onbeat::replayer::affinity::allowed_cpus().expect("the system says");
    if allowed.len() >= 2 {
        assert_eq!(received(When::Ahead, Some(150_000), 2), whole);
    }
}

#[test]
fn what_fits_the_budget_is_rendered_before_zero_and_never_late() {
    let mut scenario = Scenario::new(&mooncake(30, 0, 2_000, 2));
    scenario.config.render.when = When::Ahead;
    let outcome = scenario.run();
    assert_eq!(has(&outcome.run, DoneFlags::UNDERRUN), [false; 30]);
    assert!(outcome.said.iter().any(|words| words.contains("rendered during the run")));
}

#[test]
fn a_request_that_is_due_before_it_is_rendered_leaves_late_and_is_counted() {
    for driver in drivers() {
        // All are due at zero, and one fits the budget. It leaves on a connection that waited, so
        // its bytes stay until its answer begins: the others are due and not there.
        let server = Scripted::start(|_, mut stream| {
            while request(&mut stream).is_some() {
                answer(&mut stream, &good_stream());
            }
        });
        let mut scenario = Scenario::new(&mooncake(6, 0, 10_000, 2));
        scenario.config.driver = Some(driver);
        scenario.config.render.budget_bytes = Some(ONE);
        scenario.config.warm_connections = Some(1);
        let run = ends(move || scenario.run_against(server.address));
        assert_eq!(classes(&run), ["ok"; 6]);
        assert_eq!(has(&run, DoneFlags::UNDERRUN), [false, true, true, true, true, true]);
        let sent: Vec<_> = (0..6).map(|i| run.requests.sent(i).expect("it left")).collect();
        assert!(sent.is_sorted() && sent[0].0 >= 0, "in plan order and not early: {sent:?}");
        let ready = (0..6).map(|i| run.requests.ready(i).map(|at| at.0));
        assert_eq!(ready.collect::<Vec<_>>(), [Some(0); 6], "their lateness counts from there");
        let report = report(&run, &ReportOptions::default());
        assert_eq!(report.schedule.render_underruns, 5);
        assert!(!report.verdict.schedule_held);
        let reasons = report.verdict.reasons.join("\n");
        assert!(reasons.contains("5 request bodies") && reasons.contains("--render-budget"));
    }
}

#[test]
fn turns_follow_each_other_through_a_budget_of_one() {
    let turns = 8;
    let trace: String = (0..turns)
        .map(|turn| {
            format!(
                "{{\"chat_id\":{turn},\"parent_chat_id\":{},\"timestamp\":1.0,\
                 \"input_length\":10000,\"output_length\":2,\"type\":\"text\",\"turn\":{},\
                 \"hash_ids\":[{}]}}\n",
                turn - 1,
                turn + 1,
                (0..625).map(|block| block.to_string()).collect::<Vec<_>>().join(",")
            )
        })
        .collect();
    for driver in drivers() {
        let mut scenario = Scenario::new(&trace);
        scenario.config.driver = Some(driver);
        scenario.config.render.when = When::Ahead;
        scenario.config.render.budget_bytes = Some(ONE);
        let run = ends(move || scenario.run()).run;
        assert_eq!(classes(&run), ["ok"; 8]);
        let ends: Vec<_> = (0..8).map(|i| run.requests.done(i).expect("ended").0).collect();
        assert!((1..8).all(|i| run.requests.sent(i).expect("sent").0 >= ends[i - 1]));
    }
}

#[test]
fn a_request_that_waits_for_memory_is_passed_by_those_that_hold_it() {
    // The third needs what the second holds, and the second is released when the third is due
    // already: a queue that kept its order would stand still for ever.
    let row = |id: i32, parent: i32, at: f64, tokens: usize| {
        let ids: Vec<_> = (0..tokens / 16).map(|block| block.to_string()).collect();
        format!(
            "{{\"chat_id\":{id},\"parent_chat_id\":{parent},\"timestamp\":{at},\
             \"input_length\":{tokens},\"output_length\":2,\"type\":\"text\",\"turn\":1,\
             \"hash_ids\":[{}]}}\n",
            ids.join(",")
        )
    };
    let trace =
        [row(1, -1, 1.0, 9_600), row(2, 1, 1.001, 9_600), row(3, -1, 1.002, 20_000)].concat();
    for driver in drivers() {
        let server = Scripted::start(|_, mut stream| {
            while request(&mut stream).is_some() {
                // Long enough for the third to be due before the first is answered.
                #[expect(clippy::disallowed_methods, reason = "a server that takes its time")]
                std::thread::sleep(std::time::Duration::from_millis(30));
                answer(&mut stream, &good_stream());
            }
        });
        let mut scenario = Scenario::new(&trace);
        scenario.config.driver = Some(driver);
        scenario.config.render.when = When::Ahead;
        scenario.config.render.budget_bytes = Some(180_000);
        scenario.config.warm_connections = Some(1);
        let run = ends(move || scenario.run_against(server.address));
        assert_eq!(classes(&run), ["ok"; 3]);
    }
}

#[test]
fn a_run_that_is_stopped_while_requests_wait_to_be_rendered_ends() {
    for driver in drivers() {
        for how in [Stop::Drain, Stop::Now] {
            let server = Scripted::start(|_, mut stream| while request(&mut stream).is_some() {});
            let mut scenario = Scenario::new(&mooncake(50, 0, 10_000, 2));
            scenario.config.driver = Some(driver);
            scenario.config.drain_ns = 100_000_000;
            scenario.config.render.budget_bytes = Some(ONE);
            scenario.config.warm_connections = Some(1);
            let mut watch = Stopper::after(1, how);
            let (ran, run) = ends(move || scenario.run_watched(server.address, &mut watch));
            assert!(ran.expect("it took place").conducted.interrupted);
            let run = run.expect("a run that began leaves a log");
            assert!(run.is_whole(), "{:?}", run.warnings);
            let classes = classes(&run);
            assert_eq!(classes[0], "interrupted");
            assert_eq!(classes[1..], ["not_reached"; 49]);
            let late = has(&run, DoneFlags::UNDERRUN);
            assert!(!late[0] && late[1..].iter().all(|&late| late), "they were due: {late:?}");
        }
    }
}

#[test]
fn a_run_can_be_stopped_while_it_renders_what_comes_before_the_first_request() {
    let server = Scripted::start(|_, _| {});
    let mut scenario = Scenario::new(&mooncake(2_000, 0, 5_000, 2));
    scenario.config.render.when = When::Ahead;
    // Looks: behind the trace, behind the probe, before the first of the requests.
    let mut watch = Patient(3);
    let (ran, run) = ends(move || scenario.run_watched(server.address, &mut watch));
    assert!(matches!(ran, Err(onbeat::error::EngineError::Stopped)), "{ran:?}");
    assert!(run.is_none(), "a run that did not begin leaves no log");
}

/// A user who wants the run to end when he has been asked so often.
struct Patient(u32);

impl onbeat::conductor::Watch for Patient {
    fn say(&mut self, _words: &str) {}

    fn look(&mut self, _: i64, _: u64, _: &onbeat::replayer::counters::Snapshot) {}

    fn stop(&mut self) -> Stop {
        self.0 = self.0.saturating_sub(1);
        if self.0 == 0 { Stop::Now } else { Stop::No }
    }
}

#[test]
fn a_request_that_has_to_be_sent_again_is_still_there() {
    for driver in drivers() {
        // The probe and the two of the warm-up die of their first request.
        let server = Scripted::start(|number, mut stream| {
            while request(&mut stream).is_some() {
                if number < 3 {
                    return;
                }
                answer(&mut stream, &good_stream());
            }
        });
        let mut scenario = Scenario::new(&mooncake(4, 30, 10_000, 2));
        scenario.config.driver = Some(driver);
        scenario.config.render.budget_bytes = Some(ONE);
        scenario.config.warm_connections = Some(2);
        let run = ends(move || scenario.run_against(server.address));
        assert_eq!(classes(&run), ["ok"; 4]);
        assert!(has(&run, DoneFlags::RESENT).contains(&true));
    }
}

#[test]
fn bodies_of_megabytes_leave_whole_while_others_are_rendered() {
    for driver in drivers() {
        let bodies = |when| {
            let kept = Arc::new(Mutex::new(Vec::new()));
            let keep = Arc::clone(&kept);
            let server = Scripted::start(move |_, mut stream| {
                while let Some(bytes) = request(&mut stream) {
                    let head = bytes.windows(4).position(|four| four == b"\r\n\r\n");
                    let body = bytes[head.expect("a whole request") + 4..].to_vec();
                    keep.lock().expect("no panic").push(body);
                    answer(&mut stream, &good_stream());
                }
            });
            let mut scenario = Scenario::new(&mooncake(5, 1, 720_000, 2));
            scenario.config.driver = Some(driver);
            scenario.config.render.when = when;
            // One of them and a half.
            let budget = Some(8_000_000).filter(|_| when == When::Ahead);
            scenario.config.render.budget_bytes = budget;
            let run = ends(move || scenario.run_against(server.address));
            assert_eq!(classes(&run), ["ok"; 5]);
            let mut bodies = std::mem::take(&mut *kept.lock().expect("no panic"));
            bodies.sort_unstable();
            bodies
        };
        let ahead = bodies(When::Ahead);
        assert!(ahead.iter().all(|body| body.len() > 3_500_000));
        assert!(ahead == bodies(When::All), "{}", driver.name());
    }
}
