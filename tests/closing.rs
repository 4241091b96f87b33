//! Connections that end while requests need them: nothing is lost, nothing is sent thrice, and
//! every request has one end.

use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};

use onbeat::clock::monotonic_ns;
use onbeat_shared::log::{Class, DoneFlags};
use onbeat_shared::run::Run;
use tests::scripted::{LAST_ANSWER, Scripted, answer, good_stream, request};
use tests::{Scenario, drivers, ends, mooncake};

fn classes(run: &Run) -> Vec<&'static str> {
    (0..run.plan.len()).map(|i| run.requests.class(i).map_or("open", Class::name)).collect()
}

fn resent(run: &Run) -> usize {
    (0..run.plan.len()).filter(|&i| run.requests.flags(i).has(DoneFlags::RESENT)).count()
}

#[test]
fn a_resend_does_not_meet_a_second_stale_connection() {
    // Every connection answers once and dies of its second request, as after a server's restart.
    // The first three are answered together, so that none leaves its connection to another.
    let (arrived, three) = (AtomicUsize::new(0), Barrier::new(3));
    let server = Scripted::start(move |_, mut stream| {
        if request(&mut stream).is_some() {
            if arrived.fetch_add(1, Ordering::Relaxed) < 3 {
                three.wait();
            }
            answer(&mut stream, &good_stream());
            let _ = request(&mut stream);
        }
    });
    // Three at once fill three connections; the fourth then meets stale ones only: however busy the
    // machine, they have been answered by then.
    let trace: String = [0, 0, 0, 3_000]
        .iter()
        .enumerate()
        .map(|(row, at)| {
            format!(
                "{{\"timestamp\":{at},\"input_length\":5,\"output_length\":2,\"hash_ids\":[{row}]}}\n"
            )
        })
        .collect();
    let mut scenario = Scenario::new(&trace);
    scenario.config.warm_connections = Some(3);
    let run = ends(move || scenario.run_against(server.address));
    assert_eq!(classes(&run), ["ok"; 4]);
    assert_eq!(resent(&run), 1);
}

#[test]
fn a_connection_that_waited_unused_and_was_closed_costs_a_resend_and_no_request() {
    // The probe and the two of the warm-up die of their first request: a server or a proxy that
    // closes connections on which nobody has asked for anything.
    let server = Scripted::start(|number, mut stream| {
        while request(&mut stream).is_some() {
            if number < 3 {
                return;
            }
            answer(&mut stream, &good_stream());
        }
    });
    let mut scenario = Scenario::new(&mooncake(4, 30, 10, 2));
    scenario.config.warm_connections = Some(2);
    let run = ends(move || scenario.run_against(server.address));
    assert_eq!(classes(&run), ["ok"; 4]);
    assert!(resent(&run) >= 1);
}

#[test]
fn a_connection_opened_for_a_request_is_not_a_stale_one() {
    // Closing without an answer on a new connection is the server's failure and is counted.
    let server = Scripted::start(|_, mut stream| {
        let _ = request(&mut stream);
    });
    let mut scenario = Scenario::new(&mooncake(3, 50, 10, 2));
    scenario.config.warm_connections = Some(1);
    let run = ends(move || scenario.run_against(server.address));
    assert_eq!(classes(&run), ["reset_before_answer"; 3]);
    assert_eq!(resent(&run), 1, "only the connection of the warm-up had been waiting");
}

#[test]
fn a_resent_request_names_the_connection_that_answered_it() {
    for driver in drivers() {
        // The first connection answers once, then stops reading in the middle of a large body.
        let server = Scripted::start(|number, mut stream| {
            if request(&mut stream).is_none() {
                return;
            }
            answer(&mut stream, &good_stream());
            if number == 1 {
                let mut some = [0; 1_000];
                let _ = stream.read(&mut some);
                return;
            }
            while request(&mut stream).is_some() {
                answer(&mut stream, &good_stream());
            }
        });
        // Three seconds: however busy the machine, the first answer has come by then.
        let mut scenario = Scenario::new(&mooncake(2, 3_000, 400_000, 2));
        scenario.config.driver = Some(driver);
        scenario.config.warm_connections = Some(1);
        let run = ends(move || scenario.run_against(server.address));
        assert_eq!(classes(&run), ["ok"; 2]);
        assert_eq!(resent(&run), 1);
        let requests = &run.requests;
        assert!(requests.sent_end(1) > requests.sent(1), "its second sending ended");
        assert!(requests.sent_bytes(1) > Some(1_500_000));
        assert_ne!(requests.connection(1), requests.connection(0));
        assert!(requests.first_byte(1) >= requests.sent_end(1));
    }
}

#[test]
fn an_answer_before_the_body_has_left_is_read_and_the_connection_given_up() {
    // Ten megabytes: more than the kernel takes while nobody reads.
    for driver in drivers() {
        for linger in [true, false] {
            let unread = Mutex::new(Vec::new());
            let server = Scripted::start(move |_, mut stream| {
                let mut some = [0; 1_000];
                let _ = stream.read(&mut some);
                answer(
                    &mut stream,
                    b"HTTP/1.1 413 Payload Too Large\r\nContent-Length: 9\r\n\r\ntoo large",
                );
                if linger {
                    // Stays open, but never reads the body.
                    unread.lock().expect("nobody panics with it").push(stream);
                }
            });
            let mut scenario = Scenario::new(&mooncake(3, 5, 2_000_000, 2));
            scenario.config.driver = Some(driver);
            let run = ends(move || scenario.run_against(server.address));
            for i in 0..3 {
                let class = run.requests.class(i).map(Class::name);
                // A server that closes with bytes unread resets, and may take its answer along.
                let fair = ["http_4xx", "reset_before_answer", "reset_mid_answer"];
                assert!(class.is_some_and(|class| fair.contains(&class)), "{i}: {class:?}");
                if linger {
                    assert_eq!(run.requests.status(i), Some(413), "{i}");
                    assert!(run.requests.flags(i).has(DoneFlags::EARLY_ANSWER));
                    assert!(run.error_text(i).is_some_and(|text| text.contains("too large")));
                }
            }
        }
    }
}

#[test]
fn requests_due_while_idle_connections_close_are_all_answered() {
    for driver in drivers() {
        // Each connection lives for one answer and some silence; hundreds close as others are due.
        let server = Scripted::start(|number, mut stream| {
            let patience = std::time::Duration::from_millis(20 + (number as u64 * 7) % 90);
            // The first request has all the time it needs: a new connection is never stale.
            while request(&mut stream).is_some() {
                answer(&mut stream, &good_stream());
                let _ = stream.set_read_timeout(Some(patience));
            }
        });
        let mut scenario = Scenario::new(&mooncake(400, 1, 10, 2));
        scenario.config.driver = Some(driver);
        scenario.config.warm_connections = Some(60);
        let run = ends(move || scenario.run_against(server.address));
        assert_eq!(classes(&run), ["ok"; 400]);
        assert!(run.warnings.is_empty(), "{:?}", run.warnings);
    }
}

#[test]
fn words_on_an_idle_connection_are_nobodys_answer() {
    // A server that is too busy to say it before anything can be asked tries again: what comes
    // later may well be the answer to a request.
    let in_time = (0..20).any(|_| {
        let (run, said) = spoken_to_while_idle();
        let zero = run.anchors.iter().find(|anchor| anchor.time.0 == 0).expect("the zero anchor");
        let zero_ns = zero.monotonic_ns.expect("both clocks were read").cast_signed();
        let in_time = said.len() == 3 && said.iter().all(|at_ns| at_ns + 20_000_000 < zero_ns);
        assert!(!in_time || classes(&run) == ["ok"; 5], "{:?}", classes(&run));
        in_time
    });
    assert!(in_time, "no server was ever quick enough");
}

/// A run on whose three connections its server says something before it is asked, and when it had.
fn spoken_to_while_idle() -> (Run, Vec<i64>) {
    let said = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&said);
    // What a proxy says before it closes a connection on which nothing was asked.
    let server = Scripted::start(move |number, mut stream| {
        if (1..4).contains(&number) {
            answer(&mut stream, b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n");
            drop(stream);
            notes.lock().expect("nobody panics with it").push(monotonic_ns());
            return;
        }
        while request(&mut stream).is_some() {
            answer(&mut stream, &good_stream());
        }
    });
    let mut scenario = Scenario::new(&mooncake(5, 10, 10, 2));
    scenario.config.warm_connections = Some(3);
    let run = ends(move || scenario.run_against(server.address));
    let said = said.lock().expect("nobody panics with it").clone();
    (run, said)
}

#[test]
fn connections_given_up_while_they_open_end_their_requests_by_name() {
    for driver in drivers() {
        // Nothing opens within a nanosecond, but most or all open before the limit strikes: what
        // the kernel has by then counts. A server whose queue is full is in `scripted`.
        let server = Scripted::start(|_, mut stream| {
            if request(&mut stream).is_some() {
                answer(&mut stream, LAST_ANSWER);
            }
        });
        // The first ten find connections open and leave slots behind; the burst opens hundreds.
        let trace: String = (0..500)
            .map(|row| {
                let at = if row < 10 { row * 5 } else { 300 };
                format!(
                    "{{\"timestamp\":{at},\"input_length\":5,\"output_length\":2,\
                     \"hash_ids\":[{row}]}}\n"
                )
            })
            .collect();
        let mut scenario = Scenario::new(&trace);
        scenario.config.driver = Some(driver);
        scenario.config.warm_connections = Some(10);
        scenario.config.limits.connect_ns = Some(1);
        let run = ends(move || scenario.run_against(server.address));
        let classes = classes(&run);
        let named = |class: &&str| ["ok", "connect_timeout"].contains(class);
        assert!(classes.iter().all(named), "{classes:?}");
        assert_eq!(classes.len(), 500, "each has one end");
    }
}
