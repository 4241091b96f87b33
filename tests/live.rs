//! Turns that repeat what the server replied to the turns before them.

use std::sync::{Arc, Mutex};

use onbeat::net::target::Target;
use onbeat::plan::PlanMode;
use onbeat::render::{Context, Endpoint, When};
use onbeat_shared::log::{Class, DoneFlags};
use onbeat_shared::metrics::{ReportOptions, report};
use onbeat_shared::run::Run;
use rustls::version::TLS13;
use serde_json::{Value, json};
use tests::scripted::{Scripted, answer, request};
use tests::secured::{Authority, VALID, serve};
use tests::{Scenario, drivers, ends};

/// Bodies that a server saw, in order.
type Seen = Arc<Mutex<Vec<String>>>;

/// The body of a request, noted.
fn noted(seen: &Seen, bytes: Vec<u8>) -> usize {
    let text = String::from_utf8(bytes).expect("UTF-8");
    let (_, body) = text.split_once("\r\n\r\n").expect("a head and a body");
    let mut seen = seen.lock().expect("nobody panics with it");
    seen.push(body.to_owned());
    seen.len() - 1
}

/// A streamed chat answer of deltas, each as JSON.
fn stream(deltas: &[&str], whole: bool) -> Vec<u8> {
    let mut events = String::new();
    for delta in deltas {
        events += &format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n");
    }
    if whole {
        events += "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
                   data: [DONE]\n\n";
    }
    let end = if whole { "0\r\n\r\n" } else { "" };
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n\
         {:x}\r\n{events}\r\n{end}",
        events.len()
    )
    .into_bytes()
}

/// The turns of one session of AIPerf's Mooncake dialect, with these texts.
fn session(texts: &[&str], output_length: u32) -> String {
    let row = |(turn, text): (usize, &&str)| {
        json!({
            "session_id": "s", "timestamp": turn, "text_input": text,
            "output_length": output_length,
        })
        .to_string()
            + "\n"
    };
    texts.iter().enumerate().map(row).collect()
}

fn messages(body: &str) -> Vec<(String, String)> {
    let body: Value = serde_json::from_str(body).expect("JSON");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let list = body["messages"].as_array().expect("a list");
    list.iter().map(|message| (text(&message["role"]), text(&message["content"]))).collect()
}

fn said(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|&(role, text)| (role.to_owned(), text.to_owned())).collect()
}

fn classes(run: &Run) -> Vec<&'static str> {
    (0..run.plan.len()).map(|i| run.requests.class(i).map_or("open", Class::name)).collect()
}

#[test]
fn a_turn_repeats_the_replies_that_came_whole() {
    for driver in drivers() {
        let seen = Seen::default();
        let writing = Arc::clone(&seen);
        let server = Scripted::start(move |_, mut stream_| {
            while let Some(bytes) = request(&mut stream_) {
                let deltas: &[&str] = &[
                    r#"{"role":"assistant","content":""}"#,
                    r#"{"content":"a\n\ud83d"}"#,
                    r#"{"content":"\ude00 é"}"#,
                    r#"{"content":"!"}"#,
                ];
                match noted(&writing, bytes) {
                    0 => answer(&mut stream_, &stream(deltas, true)),
                    1 => {
                        answer(&mut stream_, b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy")
                    }
                    // An answer that breaks off is none.
                    2 => {
                        answer(&mut stream_, &stream(deltas, false));
                        return;
                    }
                    3 => answer(
                        &mut stream_,
                        &stream(
                            &[
                                r#"{"reasoning_content":"hm"}"#,
                                r#"{"content":" so"}"#,
                                r#"{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}"#,
                            ],
                            true,
                        ),
                    ),
                    _ => answer(&mut stream_, &stream(deltas, true)),
                }
            }
        });
        let mut scenario = Scenario::new(&session(&["one", "two", "three", "four", "five"], 4));
        scenario.config.driver = Some(driver);
        let address = server.address;
        let run = ends(move || scenario.run_against(address));
        assert_eq!(classes(&run), ["ok", "http_5xx", "truncated_body", "ok", "ok"]);
        let seen = seen.lock().expect("nobody panics with it").clone();
        let first = [("user", "one"), ("assistant", "a\n\u{1f600} é!"), ("user", "two")];
        assert_eq!(messages(&seen[0]), said(&[("user", "one")]));
        assert_eq!(messages(&seen[1]), said(&first));
        let third = [&first[..], &[("user", "three")]].concat();
        assert_eq!(messages(&seen[2]), said(&third));
        let fourth = [&third[..], &[("user", "four")]].concat();
        assert_eq!(messages(&seen[3]), said(&fourth));
        let fifth = [&fourth[..], &[("assistant", "hm so"), ("user", "five")]].concat();
        assert_eq!(messages(&seen[4]), said(&fifth));
        assert!(seen[4].ends_with(
            "\"five\"}],\"model\":\"default\",\"stream\":true,\"max_completion_tokens\":4,\
             \"stream_options\":{\"include_usage\":true}}"
        ));
        // A turn waits for the one before it, whose reply it repeats, and for nothing else.
        for turn in 1..5 {
            let (ready, ended) = (run.requests.ready(turn), run.requests.done(turn - 1));
            assert!(ready.is_some() && ready >= ended, "{ready:?} {ended:?}");
        }
        let partial: Vec<bool> =
            (0..5).map(|i| run.requests.flags(i).has(DoneFlags::REPLY_CUT)).collect();
        assert_eq!(partial, [false, false, false, true, false], "a tool call is left out");
        let known: Vec<bool> = run.plan.iter().map(|row| row.body_bytes.is_some()).collect();
        assert_eq!(known, [true, false, false, false, false]);
    }
}

#[test]
fn prompts_grow_by_what_the_server_said() {
    let trace = concat!(
        "{\"session_id\":\"a\",\"timestamp\":0,\"input_length\":20,\"output_length\":5}\n",
        "{\"session_id\":\"a\",\"delay\":3,\"input_length\":21,\"output_length\":6}\n",
        "{\"session_id\":\"a\",\"input_length\":22,\"output_length\":7}\n",
    );
    for (context, expected) in [
        (None, [20, 20 + 5 + 21, 20 + 5 + 21 + 6 + 22]),
        (Some(Context::Turns), [20, 20 + 21, 20 + 21 + 22]),
        (Some(Context::Alone), [20, 21, 22]),
    ] {
        for streaming in [true, false] {
            let mut scenario = Scenario::new(trace);
            scenario.config.render.context = context;
            scenario.config.render.streaming = streaming;
            let outcome = scenario.run();
            assert_eq!(classes(&outcome.run), ["ok"; 3]);
            let prompts: Vec<_> = outcome.served.iter().map(|one| one.prompt_tokens).collect();
            assert_eq!(prompts, expected, "{context:?} {streaming}");
            let told = outcome.said.iter().any(|words| words.contains("reserved for replies"));
            assert_eq!(told, context.is_none(), "{:?}", outcome.said);
        }
    }
}

#[test]
fn what_cannot_be_repeated_is_refused_before_anybody_is_asked() {
    let refused = |change: fn(&mut Scenario)| {
        let mut scenario = Scenario::new(&session(&["one", "two"], 4));
        change(&mut scenario);
        let log = scenario.log_path();
        let words = scenario.fail().to_string();
        assert!(!log.exists() && words.contains("message_array_with_responses"), "{words}");
        words
    };
    let strict = refused(|scenario| scenario.config.plan.mode = PlanMode::OpenLoopStrict);
    assert!(strict.contains("line 2") && strict.contains("--open-loop-strict"), "{strict}");
    let ahead = refused(|scenario| scenario.config.render.when = When::Ahead);
    assert!(ahead.contains("leave out --render ahead"), "{ahead}");
    let completions = refused(|scenario| {
        scenario.config.render.endpoint = Endpoint::Completions;
        scenario.config.render.endpoint_named = true;
    });
    assert!(completions.contains("use --endpoint-type chat"), "{completions}");
}

#[test]
fn a_reply_longer_than_its_room_is_cut_and_told() {
    let long = "é".repeat(4_000);
    let delta = format!("{{\"content\":\"a{long}\"}}");
    let seen = Seen::default();
    let writing = Arc::clone(&seen);
    let server = Scripted::start(move |_, mut stream_| {
        while let Some(bytes) = request(&mut stream_) {
            noted(&writing, bytes);
            answer(&mut stream_, &stream(&[&delta], true));
        }
    });
    let scenario = Scenario::new(&session(&["one", "two"], 1));
    let address = server.address;
    let run = ends(move || scenario.run_against(address));
    assert_eq!(classes(&run), ["ok", "ok"]);
    let cut: Vec<bool> = (0..2).map(|i| run.requests.flags(i).has(DoneFlags::REPLY_CUT)).collect();
    assert_eq!(cut, [true, false], "nobody repeats the last one");
    let report = report(&run, &ReportOptions::default());
    let words = report.notes.warnings.join("; ");
    assert!(words.contains("1 reply not whole"), "{words}");
    let body = seen.lock().expect("nobody panics with it")[1].clone();
    let repeated = &messages(&body)[1].1;
    // Room for one token and the spare bytes, of which one is half a character.
    assert_eq!(repeated.len(), 16 + 1_024 - 1);
    assert!(format!("a{long}").starts_with(repeated.as_str()));
}

#[test]
fn a_long_reply_passes_a_full_socket() {
    // A megabyte of reply: more than a socket takes at once, so the driver writes from its pages.
    let long = "word ".repeat(2_000);
    let deltas = vec![format!("{{\"content\":\"{long}\"}}"); 100];
    let deltas: Vec<&str> = deltas.iter().map(String::as_str).collect();
    let reply = stream(&deltas, true);
    let texts = ["x".repeat(2_000_000), "second".to_owned(), "third".to_owned()];
    let trace = session(&[&texts[0], &texts[1], &texts[2]], 100_000);
    let reply_text = long.repeat(100);
    let expected = said(&[
        ("user", &texts[0]),
        ("assistant", &reply_text),
        ("user", &texts[1]),
        ("assistant", &reply_text),
        ("user", &texts[2]),
    ]);
    let authority = Authority::new();
    for (driver, secure) in drivers().into_iter().flat_map(|it| [(it, false), (it, true)]) {
        let seen = Seen::default();
        let (writing, reply) = (Arc::clone(&seen), reply.clone());
        let mut scenario = Scenario::new(&trace);
        scenario.config.driver = Some(driver);
        let server = if secure {
            let config = authority.issue("localhost", VALID).config(&[&TLS13], None);
            scenario.config.way.tls.cacert = Some(authority.file());
            serve(config, move |_, stream| {
                while let Some(bytes) = request(stream) {
                    noted(&writing, bytes);
                    answer(stream, &reply);
                }
            })
        } else {
            Scripted::start(move |_, mut stream| {
                while let Some(bytes) = request(&mut stream) {
                    noted(&writing, bytes);
                    answer(&mut stream, &reply);
                }
            })
        };
        let scheme = if secure { "https" } else { "http" };
        let url = format!("{scheme}://localhost:{}", server.address.port());
        scenario.config.target = Target::parse(&url).expect("a URL");
        let run = ends(move || scenario.run_as_meant());
        assert_eq!(classes(&run), ["ok"; 3]);
        let last = seen.lock().expect("nobody panics with it").pop().expect("three requests");
        assert!(messages(&last) == expected, "{} bytes, {secure}", last.len());
    }
}
