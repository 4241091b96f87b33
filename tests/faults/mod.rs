//! Servers that misbehave: each failure is counted once, under its right name, and hurts no other.

mod around;

use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use onbeat::net::target::Target;
use onbeat_shared::log::{Class, DoneFlags};
use onbeat_shared::run::Run;
use tests::scripted::{Scripted, answer, good_stream, request};
use tests::{Scenario, drivers, ends, mooncake};

fn classes(run: &Run) -> Vec<&'static str> {
    (0..run.plan.len()).map(|i| run.requests.class(i).map_or("open", Class::name)).collect()
}

#[test]
fn an_error_status_is_an_outcome_and_the_session_goes_on() {
    let server = Scripted::start(|_, mut stream| {
        while request(&mut stream).is_some() {
            let body = b"{\"error\":{\"message\":\"slow down\"}}";
            let head = format!(
                "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\n\
                 Content-Length: {}\r\n\r\n",
                body.len()
            );
            answer(&mut stream, head.as_bytes());
            answer(&mut stream, body);
        }
    });
    let run = Scenario::new(&mooncake(3, 2, 10, 2)).run_against(server.address);
    assert_eq!(classes(&run), ["http_429"; 3]);
    assert_eq!(run.requests.status(0), Some(429));
    assert!(run.error_text(0).is_some_and(|text| text.contains("slow down")));
    assert_eq!(run.requests.prompt_tokens(0), None, "unknown is not zero");
}

#[test]
fn a_reset_in_mid_stream_keeps_the_tokens_that_came() {
    for driver in drivers() {
        let server = Scripted::start(|_, mut stream| {
            if request(&mut stream).is_some() {
                let whole = good_stream();
                let cut = whole.windows(5).position(|five| five == b" two\"").expect("in there");
                answer(&mut stream, &whole[..cut]);
            }
        });
        let mut scenario = Scenario::new(&mooncake(4, 2, 10, 2));
        scenario.config.driver = Some(driver);
        let run = scenario.run_against(server.address);
        for (i, class) in classes(&run).iter().enumerate() {
            assert!(["truncated_body", "reset_mid_answer"].contains(class), "{i}: {class}");
            assert_eq!(run.chunks.count(i), 1, "the token that came is kept");
        }
    }
}

#[test]
fn a_connection_closed_while_idle_costs_one_resend_and_no_request() {
    // Answers one request on each connection, then closes as the next one arrives.
    let server = Scripted::start(|_, mut stream| {
        if request(&mut stream).is_some() {
            answer(&mut stream, &good_stream());
            let _ = request(&mut stream);
        }
    });
    // One session: each turn leaves when the one before it has ended, on its connection.
    let trace: String = (0..6)
        .map(|turn| {
            format!(
                "{{\"chat_id\":{turn},\"parent_chat_id\":{},\"timestamp\":1.0,\"input_length\":5,\
                 \"output_length\":2,\"type\":\"text\",\"turn\":{},\"hash_ids\":[1]}}\n",
                turn - 1,
                turn + 1
            )
        })
        .collect();
    for driver in drivers() {
        let mut scenario = Scenario::new(&trace);
        scenario.config.driver = Some(driver);
        scenario.config.warm_connections = Some(1);
        let address = server.address;
        let run = ends(move || scenario.run_against(address));
        assert_eq!(classes(&run), ["ok"; 6]);
        for i in 0..6 {
            let resent = run.requests.flags(i).has(DoneFlags::RESENT);
            assert_eq!(resent, i > 0, "request {i}: all but the first met a closing connection");
            let before = i.checked_sub(1).and_then(|before| run.requests.done(before));
            assert!(run.requests.sent(i) >= before, "a resend keeps the order: {i}");
        }
    }
}

#[test]
fn a_server_that_closes_after_each_answer_is_served_with_new_connections() {
    let server = Scripted::start(|_, mut stream| {
        if request(&mut stream).is_some() {
            answer(
                &mut stream,
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n\
                  data: {\"choices\":[{\"index\":0,\"text\":\" a\",\"finish_reason\":\"stop\"}]}\n\n\
                  data: [DONE]\n\n",
            );
        }
    });
    let run = Scenario::new(&mooncake(5, 5, 10, 1)).run_against(server.address);
    assert_eq!(classes(&run), ["ok"; 5]);
    assert!((0..5).all(|i| run.requests.connection_reused(i) == Some(false)));
}

#[test]
fn limits_strike_by_their_own_names() {
    let server = Scripted::start(|_, mut stream| {
        let Some(bytes) = request(&mut stream) else { return };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if text.contains("\"max_completion_tokens\":7") {
            // Begins and then falls silent.
            answer(
                &mut stream,
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n\
                  data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" a\"}}]}\n\n",
            );
        }
        // Until the client hangs up.
        let _ = stream.read(&mut [0]);
    });
    let trace = concat!(
        "{\"timestamp\":0,\"input_length\":5,\"output_length\":7,\"hash_ids\":[1]}\n",
        "{\"timestamp\":1,\"input_length\":5,\"output_length\":8,\"hash_ids\":[2]}\n",
    );
    let mut scenario = Scenario::new(trace);
    scenario.config.limits.first_byte_ns = Some(300_000_000);
    scenario.config.limits.idle_ns = Some(200_000_000);
    let run = scenario.run_against(server.address);
    assert_eq!(classes(&run), ["idle_timeout", "first_byte_timeout"]);
    assert_eq!(run.chunks.count(0), 1);
    let waited = run.requests.done(1).expect("ended").0 - run.requests.sent(1).expect("left").0;
    assert!(waited >= 300_000_000, "never before the limit: {waited}");
}

#[test]
fn an_answer_that_is_over_is_not_waited_for_until_a_limit() {
    for driver in drivers() {
        let server = Scripted::start(|_, mut stream| {
            let Some(bytes) = request(&mut stream) else { return };
            let whole = good_stream();
            // The last chunk never comes, or a part of the words, and nobody closes.
            let without_end = whole.strip_suffix(b"0\r\n\r\n").expect("it is chunked");
            let busy = b"HTTP/1.1 503 Busy\r\nContent-Length: 100\r\n\r\nbusy";
            let text = String::from_utf8_lossy(&bytes);
            let is_first = text.contains("\"max_completion_tokens\":7");
            answer(&mut stream, if is_first { without_end } else { busy });
            let _ = stream.read(&mut [0]);
        });
        let trace = concat!(
            "{\"timestamp\":0,\"input_length\":5,\"output_length\":7,\"hash_ids\":[1]}\n",
            "{\"timestamp\":1,\"input_length\":5,\"output_length\":8,\"hash_ids\":[2]}\n",
        );
        let mut scenario = Scenario::new(trace);
        scenario.config.driver = Some(driver);
        // Nobody limits anything: what is over ends nevertheless.
        let run = ends(move || scenario.run_against(server.address));
        assert_eq!(classes(&run), ["ok", "http_5xx"]);
        assert_eq!((run.chunks.count(0), run.error_text(1)), (2, Some("busy")));
    }
}

#[test]
fn a_key_echoed_by_a_server_does_not_reach_the_log() {
    const CANARY: &str = "CANARY-7f3a-secret";
    let server = Scripted::start(|_, mut stream| {
        while let Some(bytes) = request(&mut stream) {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let echoed = text.lines().find(|line| line.contains(CANARY)).unwrap_or("nothing");
            let body = format!("{{\"error\":{{\"message\":\"bad key {echoed}\"}}}}");
            let head = format!(
                "HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\n\
                 Content-Length: {}\r\n\r\n{body}",
                body.len()
            );
            answer(&mut stream, head.as_bytes());
        }
    });
    let mut scenario = Scenario::new(&mooncake(1, 1, 10, 1));
    scenario.config.render.api_key = Some(onbeat::render::Secret::new(CANARY));
    let run = scenario.run_against(server.address);
    let text = run.error_text(0).expect("the server's words are kept");
    assert!(text.contains("bad key") && !text.contains("CANARY"), "{text}");
}

/// Says `bytes` one by one with pauses between, until the client hangs up.
fn drip(stream: &mut std::net::TcpStream, bytes: &[u8], pause: Duration) {
    let _ = stream.set_read_timeout(Some(pause));
    for byte in bytes {
        answer(stream, &[*byte]);
        if matches!(stream.read(&mut [0]), Ok(0)) {
            return;
        }
    }
}

#[test]
fn a_head_that_comes_byte_by_byte_is_no_beginning_of_an_answer() {
    for driver in drivers() {
        let server = Scripted::start(|_, mut stream| {
            if request(&mut stream).is_some() {
                drip(
                    &mut stream,
                    &b"HTTP/1.1 200 OK\r\nX: ".repeat(100),
                    Duration::from_millis(20),
                );
            }
        });
        let mut scenario = Scenario::new(&mooncake(3, 1, 5, 2));
        scenario.config.driver = Some(driver);
        scenario.config.limits.first_byte_ns = Some(300_000_000);
        scenario.config.limits.idle_ns = Some(10_000_000_000);
        let run = ends(move || scenario.run_against(server.address));
        assert_eq!(classes(&run), ["first_byte_timeout"; 3]);
        assert!((0..3).all(|i| run.requests.first_byte(i).is_some()), "it is known all the same");
    }
}

#[test]
fn interim_answers_are_not_the_answer_that_is_waited_for() {
    // The pause behind them is the server at work, and not one of its answer.
    let server = Scripted::start(|_, mut stream| {
        while request(&mut stream).is_some() {
            answer(&mut stream, b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n");
            let _ = stream.set_read_timeout(Some(Duration::from_millis(600)));
            if matches!(stream.read(&mut [0]), Ok(0)) {
                return;
            }
            let _ = stream.set_read_timeout(None);
            answer(&mut stream, &good_stream());
        }
    });
    let with = |first_byte_ns, idle_ns| {
        let mut scenario = Scenario::new(&mooncake(2, 1, 5, 2));
        scenario.config.limits.first_byte_ns = first_byte_ns;
        scenario.config.limits.idle_ns = idle_ns;
        let address = server.address;
        classes(&ends(move || scenario.run_against(address)))
    };
    assert_eq!(with(None, Some(200_000_000)), ["ok"; 2]);
    assert_eq!(with(Some(200_000_000), None), ["first_byte_timeout"; 2]);
}

/// How many requests of a run ended in a class.
fn count(run: &Run, class: Class) -> usize {
    (0..run.plan.len()).filter(|&i| run.requests.class(i) == Some(class)).count()
}

#[test]
fn a_run_is_given_up_after_so_many_failures_in_a_row_and_not_before() {
    const REQUESTS: usize = 2_000;
    let busy = b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy";
    let with = |good_one_in: Option<usize>, requests: usize| {
        let seen = AtomicUsize::new(0);
        let server = Scripted::start(move |_, mut stream| {
            while request(&mut stream).is_some() {
                let number = seen.fetch_add(1, Ordering::Relaxed);
                match good_one_in.is_some_and(|one_in| number.is_multiple_of(one_in)) {
                    true => answer(&mut stream, &good_stream()),
                    false => answer(&mut stream, busy),
                }
            }
        });
        let mut scenario = Scenario::new(&mooncake(requests, 2, 5, 2));
        scenario.config.stop_after_failures = Some(50);
        ends(move || scenario.run_against(server.address))
    };
    let run = with(None, REQUESTS);
    let (failed, never) = (count(&run, Class::Http5xx), count(&run, Class::NotReached));
    assert!(failed >= 50 && never > 0, "{failed} failed, {never} never left");
    assert_eq!(failed + never, REQUESTS);
    let given_up = run.footer.as_ref().and_then(|footer| footer.given_up.as_deref());
    assert!(given_up.is_some_and(|why| why.contains("--stop-after-failures 50")), "{given_up:?}");
    assert!(run.is_whole());
    let run = with(Some(10), 100);
    assert_eq!((count(&run, Class::Ok), count(&run, Class::Http5xx)), (10, 90));
}

#[test]
fn a_port_of_another_protocol_is_not_asked_for_ever() {
    let server = Scripted::start(|_, mut stream| {
        answer(&mut stream, b"SSH-2.0-x\r\n");
        let _ = stream.read(&mut [0; 1_000]);
    });
    let scenario = Scenario::new(&mooncake(2_000, 2, 5, 2));
    let run = ends(move || scenario.run_against(server.address));
    // What it says to nobody, on connections that wait, costs no request.
    let (foreign, never) = (count(&run, Class::NotHttp), count(&run, Class::NotReached));
    assert!(foreign >= 20 && never > 0, "{foreign} {never}");
    assert_eq!(foreign + never, 2_000);
    assert!(run.error_text(0).is_some_and(|text| text.contains("53 53 48 2d")));
}

#[test]
fn localhost_is_found_on_either_family_and_the_log_says_where() {
    for own in ["127.0.0.1", "::1"] {
        if std::net::TcpListener::bind((own, 0)).is_err() {
            // A machine without that family has no such server.
            continue;
        }
        let address = std::net::SocketAddr::new(own.parse().expect("an address"), 0);
        let server = Scripted::start_at(address, |_, mut stream| {
            while request(&mut stream).is_some() {
                answer(&mut stream, &good_stream());
            }
        });
        let mut scenario = Scenario::new(&mooncake(3, 2, 5, 2));
        let url = format!("http://localhost:{}", server.address.port());
        scenario.config.target = Target::parse(&url).expect("a URL");
        let run = ends(move || scenario.run_as_meant());
        assert_eq!(classes(&run), ["ok"; 3]);
        let addresses = run.manifest.config["addresses"].to_string();
        assert!(addresses.contains(own), "{addresses}");
    }
}
