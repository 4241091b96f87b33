//! A user stops the run: in every state a connection can be in, the run ends, and every planned
//! request has its end in the log.

use std::io::Write;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use onbeat::conductor::Watch;
use onbeat::replayer::Stop;
use onbeat::replayer::counters::Snapshot;
use onbeat::replayer::driver::DriverKind;
use onbeat_shared::log::{Class, DoneFlags};
use onbeat_shared::run::Run;
use tests::scripted::{Deaf, LAST_ANSWER, Scripted, answer, good_stream, request};
use tests::{Scenario, Stopper, drivers, ends, mooncake};

/// How long a server waits for what is sure to come.
const PATIENCE: Duration = Duration::from_secs(30);

fn classes(run: &Run) -> Vec<&'static str> {
    (0..run.plan.len()).map(|i| run.requests.class(i).map_or("open", Class::name)).collect()
}

/// Stops a run of `scenario` once `sent` requests have left, and reads its log.
fn stopped(
    mut scenario: Scenario,
    driver: DriverKind,
    address: std::net::SocketAddr,
    mut watch: Stopper,
) -> Run {
    scenario.config.driver = Some(driver);
    scenario.config.drain_ns = 100_000_000;
    let (ran, run) = ends(move || scenario.run_watched(address, &mut watch));
    assert!(ran.expect("it took place").conducted.interrupted);
    let run = run.expect("a run that began leaves a log");
    assert!(run.is_whole(), "{:?}", run.warnings);
    assert!(run.warnings.is_empty(), "{:?}", run.warnings);
    run
}

#[test]
fn a_run_can_be_stopped_while_requests_wait_for_their_answers() {
    for driver in drivers() {
        for how in [Stop::Drain, Stop::Now] {
            let server = Scripted::start(|_, mut stream| while request(&mut stream).is_some() {});
            let scenario = Scenario::new(&mooncake(500, 10, 10, 2));
            let run = stopped(scenario, driver, server.address, Stopper::after(3, how));
            let classes = classes(&run);
            assert!(classes.starts_with(&["interrupted"; 3]), "{classes:?}");
            assert_eq!(classes.last(), Some(&"not_reached"));
            let other = |class: &&str| !["interrupted", "not_reached"].contains(class);
            assert!(!classes.iter().any(other), "{classes:?}");
        }
    }
}

#[test]
fn a_run_can_be_stopped_while_bodies_are_stuck_half_way() {
    for driver in drivers() {
        for how in [Stop::Drain, Stop::Now] {
            // Reads nothing, so that the kernel's buffers fill up.
            let unread = Mutex::new(Vec::new());
            let server = Scripted::start(move |_, stream| {
                unread.lock().expect("nobody panics with it").push(stream);
            });
            let scenario = Scenario::new(&mooncake(3, 1, 2_000_000, 2));
            let run = stopped(scenario, driver, server.address, Stopper::after(3, how));
            assert_eq!(classes(&run), ["interrupted"; 3]);
            assert_eq!(run.requests.sent_end(0), None, "it never left whole");
        }
    }
}

#[test]
fn a_run_can_be_stopped_while_answers_come_in() {
    for driver in drivers() {
        for how in [Stop::Drain, Stop::Now] {
            let server = Scripted::start(|_, mut stream| {
                if request(&mut stream).is_some() {
                    let whole = good_stream();
                    answer(&mut stream, &whole[..whole.len() / 2]);
                    let _ = request(&mut stream);
                }
            });
            let scenario = Scenario::new(&mooncake(300, 10, 10, 2));
            // A token of each, whenever they come.
            let watch = Stopper::after(3, how).and_tokens(3);
            let run = stopped(scenario, driver, server.address, watch);
            assert!(classes(&run).starts_with(&["interrupted"; 3]), "{:?}", classes(&run));
            assert!(run.chunks.count(0) > 0, "the tokens that came are kept");
        }
    }
}

#[test]
fn a_run_can_be_stopped_while_connections_neither_open_nor_fail() {
    for driver in drivers() {
        for how in [Stop::Drain, Stop::Now] {
            // Room for the probe and the warm-up; further connections hang.
            let server = Deaf::with_room_for(2);
            let mut scenario = Scenario::new(&mooncake(5, 10, 10, 2));
            scenario.config.warm_connections = Some(1);
            let run = stopped(scenario, driver, server.address, Stopper::after(1, how));
            assert_eq!(classes(&run)[..2], ["interrupted"; 2]);
            assert_eq!(run.requests.sent(1), None, "it never had a connection");
        }
    }
}

#[test]
fn a_run_can_be_stopped_while_hundreds_of_connections_open() {
    for driver in drivers() {
        // No connection is used twice, so that every burst opens its own.
        let server = Scripted::start(|_, mut stream| {
            if request(&mut stream).is_some() {
                answer(&mut stream, LAST_ANSWER);
            }
        });
        // A burst every few milliseconds: whenever the stop comes, some are opening.
        let trace: String = (0..6_000)
            .map(|row| {
                let at = row / 50 * 10;
                format!(
                    "{{\"timestamp\":{at},\"input_length\":5,\"output_length\":2,\
                     \"hash_ids\":[{row}]}}\n"
                )
            })
            .collect();
        let mut scenario = Scenario::new(&trace);
        scenario.config.warm_connections = Some(1);
        let run = stopped(scenario, driver, server.address, Stopper::after(1, Stop::Now));
        let fair = ["ok", "interrupted", "not_reached"];
        let classes = classes(&run);
        let unfair: Vec<_> =
            classes.iter().enumerate().filter(|(_, class)| !fair.contains(class)).collect();
        assert!(unfair.is_empty(), "{unfair:?}");
    }
}

#[test]
fn a_follower_of_a_request_in_flight_is_told_from_one_that_was_not_reached() {
    let trace: String = [(1, -1, 10.0), (2, 1, 10.005), (3, 2, 10.010), (4, -1, 99.0)]
        .iter()
        .map(|(id, parent, at)| {
            format!(
                "{{\"chat_id\": {id}, \"parent_chat_id\": {parent}, \"timestamp\": {at}, \
                 \"input_length\": 20, \"output_length\": 2, \"type\": \"text\", \
                 \"turn\": {id}, \"hash_ids\": [{id}]}}\n"
            )
        })
        .collect();
    for driver in drivers() {
        let server = Scripted::start(|_, mut stream| while request(&mut stream).is_some() {});
        let scenario = Scenario::new(&trace);
        let run = stopped(scenario, driver, server.address, Stopper::after(1, Stop::Now));
        let expected = ["interrupted", "predecessor_pending", "not_reached", "not_reached"];
        assert_eq!(classes(&run), expected);
    }
}

/// How far a user is who stops the run because of what its server saw.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
enum Stage {
    /// No connection has had a second request yet.
    Waits,
    /// One has it, and keeps it.
    Met,
    /// The user has said that the run is to end.
    Said,
    /// The cores have been told.
    Told,
}

/// A stage that the user and the server's connections share.
type Shared = Arc<(Mutex<Stage>, Condvar)>;

struct StopsOnceMet(Shared);

impl StopsOnceMet {
    /// Goes from one stage to the next, if this is the one.
    fn go(&self, from: Stage, to: Stage) {
        let mut stage = self.0.0.lock().expect("nobody panics with it");
        if *stage == from {
            *stage = to;
            self.0.1.notify_all();
        }
    }
}

impl Watch for StopsOnceMet {
    fn say(&mut self, _words: &str) {}

    fn look(&mut self, _elapsed_ns: i64, _planned: u64, _counters: &Snapshot) {
        self.go(Stage::Said, Stage::Told);
    }

    fn stop(&mut self) -> Stop {
        self.go(Stage::Met, Stage::Said);
        let stage = *self.0.0.lock().expect("nobody panics with it");
        if stage >= Stage::Said { Stop::Drain } else { Stop::No }
    }
}

#[test]
fn a_stale_connection_costs_no_request_while_a_run_drains() {
    for driver in drivers() {
        // The second request of a connection waits until the run has been stopped, and finds it
        // closed.
        let stage = Shared::new((Mutex::new(Stage::Waits), Condvar::new()));
        let mut watch = StopsOnceMet(Arc::clone(&stage));
        let server = Scripted::start(move |_, mut stream| {
            if request(&mut stream).is_some() {
                answer(&mut stream, &good_stream());
                if request(&mut stream).is_some() {
                    StopsOnceMet(Arc::clone(&stage)).go(Stage::Waits, Stage::Met);
                    let at = stage.0.lock().expect("nobody panics with it");
                    let before = |at: &mut Stage| *at != Stage::Told;
                    drop(stage.1.wait_timeout_while(at, PATIENCE, before));
                }
            }
        });
        let mut scenario = Scenario::new(&mooncake(300, 30, 10, 2));
        scenario.config.warm_connections = Some(1);
        scenario.config.driver = Some(driver);
        scenario.config.drain_ns = 20_000_000_000;
        let (ran, run) = ends(move || scenario.run_watched(server.address, &mut watch));
        assert!(ran.expect("it took place").conducted.interrupted);
        let run = run.expect("a run that began leaves a log");
        let classes = classes(&run);
        let lost: Vec<_> = classes.iter().filter(|&&class| class != "not_reached").collect();
        assert!(lost.len() >= 2 && lost.iter().all(|&&class| class == "ok"), "{lost:?}");
        // Which of them it was depends on how soon the first answer came.
        let resent = (0..300).filter(|&i| run.requests.flags(i).has(DoneFlags::RESENT)).count();
        assert!(resent >= 1, "one met a stale connection");
    }
}

#[test]
fn a_run_can_be_stopped_while_an_answer_comes_in_faster_than_it_is_read() {
    for driver in drivers() {
        for how in [Stop::Drain, Stop::Now] {
            let event = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" a\"}}]}\n\n";
            let many = event.repeat(1_000).into_bytes();
            let server = Scripted::start(move |_, mut stream| {
                if request(&mut stream).is_some() {
                    answer(
                        &mut stream,
                        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n",
                    );
                    // Never ends and never pauses.
                    while stream.write_all(&many).is_ok() {}
                }
            });
            let mut scenario = Scenario::new(&mooncake(40, 10, 10, 2));
            scenario.config.driver = Some(driver);
            scenario.config.drain_ns = 100_000_000;
            let mut watch = Stopper::after(2, how);
            let (ran, run) = ends(move || scenario.run_watched(server.address, &mut watch));
            assert!(ran.expect("it took place").conducted.interrupted);
            let run = run.expect("a run that began leaves a log");
            assert_eq!(classes(&run)[..2], ["interrupted"; 2]);
        }
    }
}
