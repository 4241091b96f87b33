//! The mock as its clients see it, over real sockets on loopback.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use super::{Mock, MockConfig, spawn};

/// A mock whose model takes next to no time.
fn quick() -> MockConfig {
    MockConfig {
        prefill_tokens_per_s: 1e9,
        overhead_ns: 0,
        step_ns: 1_000,
        step_ns_per_sequence: 0,
        keep_served: true,
        ..MockConfig::default()
    }
}

fn start(config: MockConfig) -> Mock {
    spawn(config).expect("loopback can be listened on")
}

/// One connection.
struct Client {
    socket: TcpStream,
    /// Bytes behind the last answer.
    left: Vec<u8>,
}

/// One answer.
struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Client {
    fn new(mock: &Mock) -> Self {
        let socket = TcpStream::connect(mock.address()).expect("the mock listens");
        Self { socket, left: Vec::new() }
    }

    fn send(&mut self, method: &str, path: &str, body: &str) {
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nX-Request-ID: id-{length}\r\n\
             X-Correlation-ID: s\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        self.socket.write_all(request.as_bytes()).expect("the mock reads");
    }

    fn more(&mut self) {
        let mut bytes = [0; 4096];
        let length = self.socket.read(&mut bytes).expect("the mock answers");
        assert!(length > 0, "the mock closed the connection");
        self.left.extend_from_slice(&bytes[..length]);
    }

    /// Everything up to and including `end`.
    fn until(&mut self, end: &str) -> String {
        loop {
            let place = self.left.windows(end.len()).position(|window| window == end.as_bytes());
            if let Some(place) = place {
                let bytes: Vec<u8> = self.left.drain(..place + end.len()).collect();
                return String::from_utf8(bytes).expect("text");
            }
            self.more();
        }
    }

    fn receive(&mut self) -> Reply {
        let head = self.until("\r\n\r\n");
        let status = head[9..12].parse().expect("a status");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let body = match length {
            Some(length) => {
                let length = length.parse().expect("a length");
                while self.left.len() < length {
                    self.more();
                }
                String::from_utf8(self.left.drain(..length).collect()).expect("text")
            }
            None => self.until("\r\n0\r\n\r\n"),
        };
        Reply { status, head, body }
    }

    fn ask(&mut self, method: &str, path: &str, body: &str) -> Reply {
        self.send(method, path, body);
        self.receive()
    }

    fn complete(&mut self, prompt: &str, max_tokens: u32) -> Value {
        let body = format!(r#"{{"prompt":"{prompt}","max_tokens":{max_tokens}}}"#);
        let reply = self.ask("POST", "/v1/completions", &body);
        assert_eq!(reply.status, 200, "{}", reply.body);
        serde_json::from_str(&reply.body).expect("JSON")
    }
}

fn events(body: &str) -> Vec<&str> {
    body.lines().filter_map(|line| line.strip_prefix("data: ")).collect()
}

fn usage(answer: &Value) -> [u64; 3] {
    ["/prompt_tokens", "/completion_tokens", "/prompt_tokens_details/cached_tokens"].map(|field| {
        answer.pointer(&format!("/usage{field}")).and_then(Value::as_u64).expect(field)
    })
}

fn words(count: usize) -> String {
    " word".repeat(count)
}

#[test]
fn usage_counts_words_and_cached_blocks() {
    let mock = start(quick());
    let mut client = Client::new(&mock);
    assert_eq!(usage(&client.complete(&words(100), 5)), [100, 5, 0]);
    assert_eq!(usage(&client.complete(&words(100), 5)), [100, 5, 96]);
    assert_eq!(usage(&client.complete(&words(200), 1)), [200, 1, 96]);
    assert_eq!(usage(&client.complete("other words", 1)), [2, 1, 0]);
    let counts = mock.counts();
    assert_eq!((counts.served, counts.connections, counts.requests), (4, 1, 4));
    assert_eq!((counts.prompt_tokens, counts.completion_tokens), (402, 12));
    assert_eq!((counts.cache_query_tokens, counts.cache_hit_tokens), (402, 192));
    let served = mock.served();
    let cached: Vec<u32> = served.iter().map(|one| one.cached_tokens).collect();
    assert_eq!(cached, [0, 96, 96, 0]);
    assert!(served.iter().all(|one| one.complete && one.session.as_deref() == Some("s")));
    assert!(served.windows(2).all(|pair| pair[0].arrived_mono_ns <= pair[1].arrived_mono_ns));
    assert_eq!(served[0].body_digest, served[1].body_digest);
    assert_ne!(served[0].body_digest, served[2].body_digest);
    assert_eq!(served[0].request_id, Some(format!("id-{}", served[0].body_bytes)));
    mock.stop();
}

#[test]
fn the_cache_forgets_what_was_used_longest_ago() {
    let mock = start(MockConfig { cache_tokens: 64, ..quick() });
    let mut client = Client::new(&mock);
    let mut cached = |prompt: &str| usage(&client.complete(prompt, 1))[2];
    let (one, two) = (" a".repeat(40), " b".repeat(40));
    assert_eq!([cached(&one), cached(&two), cached(&one), cached(&two)], [0, 0, 32, 32]);
    cached(&" c".repeat(40));
    assert_eq!([cached(&two), cached(&one)], [32, 0]);
    mock.stop();
}

#[test]
fn a_chat_stream_has_the_shape_of_a_real_one() {
    let mock = start(quick());
    let mut client = Client::new(&mock);
    let body = r#"{"model":"m","messages":[{"role":"user","content":"one two three"}],"stream":true,
        "stream_options":{"include_usage":true},"max_completion_tokens":4}"#;
    for cached in [0, 0] {
        let reply = client.ask("POST", "/v1/chat/completions", body);
        assert!(reply.head.contains("content-type: text/event-stream"), "{}", reply.head);
        assert!(reply.head.contains("transfer-encoding: chunked"), "{}", reply.head);
        let events = events(&reply.body);
        assert_eq!(events.len(), 1 + 4 + 1 + 1);
        assert!(events[0].contains(r#""delta":{"role":"assistant","content":""}"#));
        assert!(events[1].contains(r#""delta":{"content":" "#));
        assert!(events[4].contains(r#""finish_reason":"length""#));
        let last: Value = serde_json::from_str(events[5]).expect("JSON");
        assert_eq!(last.pointer("/choices"), Some(&Value::Array(vec![])));
        assert_eq!(usage(&last), [3, 4, cached]);
        assert_eq!(events[6], "[DONE]");
    }
    mock.stop();
}

#[test]
fn many_requests_share_a_connection_and_many_connections_a_step() {
    let mock = start(quick());
    let mut clients: Vec<Client> = (0..20).map(|_| Client::new(&mock)).collect();
    for round in 0..10 {
        for client in &mut clients {
            let body = format!(r#"{{"prompt":"a b","max_tokens":{},"stream":true}}"#, round + 1);
            client.send("POST", "/v1/completions", &body);
        }
        for client in &mut clients {
            assert_eq!(events(&client.receive().body).len(), round + 2);
        }
    }
    let counts = mock.counts();
    assert_eq!((counts.connections, counts.requests, counts.served), (20, 200, 200));
    assert_eq!(counts.completion_tokens, 20 * 55);
    mock.stop();
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let mock = start(quick());
    let mut client = Client::new(&mock);
    for max_tokens in [5, 1, 3] {
        let body = format!(r#"{{"prompt":"a","max_tokens":{max_tokens},"stream":true}}"#);
        client.send("POST", "/v1/completions", &body);
    }
    client.send("GET", "/health", "");
    let counts: Vec<usize> = (0..3).map(|_| events(&client.receive().body).len()).collect();
    assert_eq!(counts, [6, 2, 4]);
    assert_eq!(client.receive().status, 200);
    mock.stop();
}

#[test]
fn what_cannot_be_served_is_refused_in_words() {
    let mock = start(MockConfig { strict_model: true, context_tokens: 50, ..quick() });
    let mut client = Client::new(&mock);
    for (method, path, body, status, words) in [
        ("POST", "/v1/completions", "{", 400, "not what it should be"),
        ("POST", "/v1/completions", r#"{"prompt":"a","model":"x"}"#, 404, "does not exist"),
        ("POST", "/v1/completions", r#"{"prompt":"a","max_tokens":50}"#, 400, "maximum context"),
        ("POST", "/v1/embeddings", "{}", 404, "not found"),
        ("GET", "/v1/completions", "", 405, "does not know GET"),
    ] {
        let reply = client.ask(method, path, body);
        assert_eq!(reply.status, status, "{method} {path} {body}");
        let error: Value = serde_json::from_str(&reply.body).expect("JSON");
        let message = error.pointer("/error/message").and_then(Value::as_str).expect("words");
        assert!(message.contains(words), "{message}");
    }
    assert_eq!((mock.counts().refused, mock.counts().served), (5, 0));
    client.socket.write_all(b"nonsense\r\n\r\n").expect("the mock reads");
    let reply = client.receive();
    assert_eq!(reply.status, 400);
    assert!(reply.head.contains("connection: close"));
    assert_eq!(client.socket.read(&mut [0; 1]).expect("an end"), 0);
    mock.stop();
}

#[test]
fn more_threads_than_any_host_has_are_refused() {
    for threads in [0, 1_000_000] {
        let error = spawn(MockConfig { threads, ..quick() }).map(|_| ()).expect_err("refused");
        assert!(error.to_string().contains("threads"), "{error}");
    }
}

#[test]
fn side_pages_answer() {
    let mock = start(MockConfig { model: "tiny".into(), ..quick() });
    let mut client = Client::new(&mock);
    client.complete(&words(40), 2);
    client.complete(&words(40), 2);
    assert_eq!(client.ask("GET", "/health", "").status, 200);
    let models: Value =
        serde_json::from_str(&client.ask("GET", "/v1/models", "").body).expect("JSON");
    assert_eq!(models.pointer("/data/0/id"), Some(&"tiny".into()));
    let page = client.ask("GET", "/metrics?x=1", "").body;
    for line in [
        "vllm:prefix_cache_queries_total{model_name=\"tiny\"} 80",
        "vllm:prefix_cache_hits_total{model_name=\"tiny\"} 32",
        "vllm:prompt_tokens_total{model_name=\"tiny\"} 80",
        "vllm:generation_tokens_total{model_name=\"tiny\"} 4",
    ] {
        assert!(page.contains(line), "{page}");
    }
    mock.stop();
}

#[test]
fn a_client_that_leaves_frees_its_sequence() {
    let mock = start(MockConfig { running_max: 1, step_tokens: 64, step_ns: 200_000, ..quick() });
    let mut leaver = Client::new(&mock);
    let body = r#"{"prompt":"a b","max_tokens":1000000,"stream":true}"#;
    leaver.send("POST", "/v1/completions", body);
    leaver.until("\"text\"");
    drop(leaver);
    // With room for one sequence only, this would wait for minutes.
    let mut stayer = Client::new(&mock);
    assert_eq!(usage(&stayer.complete("a", 1)), [1, 1, 0]);
    let counts = mock.counts();
    assert_eq!((counts.served, counts.abandoned), (1, 1));
    let served = mock.served();
    assert!(!served[0].complete && served[0].completion_tokens > 0);
    mock.stop();
}

#[test]
fn a_full_queue_says_so() {
    let slow = MockConfig {
        running_max: 1,
        waiting_max: 1,
        step_ns: 3_600_000_000_000,
        step_tokens: 64,
        ..quick()
    };
    let mock = start(slow);
    let mut clients: Vec<Client> = (0..6).map(|_| Client::new(&mock)).collect();
    for client in &mut clients {
        client.send("POST", "/v1/completions", r#"{"prompt":"a","stream":true}"#);
        // The head of a stream comes at once, a refusal as well.
        client.until("\r\n\r\n");
    }
    assert!((4..=5).contains(&mock.counts().refused), "{:?}", mock.counts());
    // Stopping does not wait for the hour-long step or the open streams.
    mock.stop();
    for client in &mut clients {
        let mut rest = Vec::new();
        // An end or a reset: both end the stream.
        let _ = client.socket.read_to_end(&mut rest);
    }
}

#[test]
fn threads_share_a_port_and_their_counts() {
    let mock = start(MockConfig { threads: 2, ..quick() });
    for _ in 0..20 {
        assert_eq!(usage(&Client::new(&mock).complete("a b", 2))[..2], [2, 2]);
    }
    assert_eq!(mock.counts().served, 20);
    drop(mock);
}

#[test]
fn senseless_settings_are_refused() {
    for config in [
        MockConfig { jitter: 2.0, ..quick() },
        MockConfig { prefill_tokens_per_s: f64::NAN, ..quick() },
        MockConfig { step_tokens: 10, running_max: 11, ..quick() },
        MockConfig { threads: 0, ..quick() },
    ] {
        assert!(spawn(config).is_err());
    }
}
