//! What the simulated server says: an answer's bytes, and what is true of them.
//!
//! [`say`] draws an answer of any kind that servers give, good and bad, with the offsets at which
//! things become known. The truth is written from the rules in `onbeat::wire`'s pages, next to the
//! bytes and without the parser, so that what the parser finds can be held against it however the
//! bytes arrive and wherever they are cut.

use onbeat_shared::log::outcome::Class;

use super::random::Random;

/// An answer.
pub(super) struct Said {
    pub(super) bytes: Vec<u8>,
    pub(super) truth: Truth,
}

/// What is true of an answer; offsets count its bytes.
#[derive(Clone, Debug)]
pub(super) struct Truth {
    /// What it is, for whoever reads a failure.
    pub(super) kind: &'static str,
    /// Its class when it arrives whole.
    pub(super) class: Class,
    /// Where a cut no longer changes its class.
    pub(super) settled: usize,
    /// Between these two offsets its reader knows that it has ended.
    pub(super) ends: (usize, usize),
    /// Where the head of the answer proper is complete.
    head_end: usize,
    /// Its body ends with the connection; then, where its finish reason is complete.
    by_close: Option<usize>,
    /// A reader may name its fault before it has been cut.
    pub(super) may_know_early: bool,
    /// Where each of its content events is complete.
    tokens: Vec<usize>,
    /// The text of those events.
    text: String,
    /// Where the text of the first so many events ends.
    text_ends: Vec<usize>,
    /// Its connection may serve again.
    pub(super) reusable: bool,
    /// The server closes behind it.
    pub(super) closes: bool,
}

const NEVER: usize = usize::MAX;

impl Truth {
    /// Content events among the first `bytes` bytes, and their text.
    pub(super) fn content(&self, bytes: usize) -> (usize, &str) {
        let count = self.tokens.partition_point(|&end| end <= bytes);
        let end = if count == 0 { 0 } else { self.text_ends[count - 1] };
        (count, &self.text[..end])
    }

    /// Whether an answer of which `bytes` bytes came before its connection was closed, or reset,
    /// may be called this.
    pub(super) fn allows_cut(&self, bytes: usize, reset: bool, class: Class) -> bool {
        if bytes == 0 {
            return class == Class::ResetBeforeAnswer;
        }
        if bytes >= self.settled {
            return class == self.class;
        }
        let cut = if reset { Class::ResetMidAnswer } else { Class::TruncatedBody };
        if let Some(finish) = self.by_close
            && bytes >= self.head_end
            && !reset
        {
            return match class {
                Class::Ok => bytes >= finish,
                Class::EmptyAnswer => bytes == self.head_end,
                Class::NoFinish | Class::BadEvent | Class::TruncatedBody => bytes < finish,
                _ => false,
            };
        }
        class == cut || self.may_know_early && class == self.class
    }
}

/// What an answer is made of while it is drawn.
#[derive(Default)]
struct Body {
    bytes: Vec<u8>,
    tokens: Vec<usize>,
    text: String,
    text_ends: Vec<usize>,
}

impl Body {
    fn token(&mut self, number: u32, place: u64) {
        let word = format!("r{number}t{place} ");
        self.event(&format!(
            r#"{{"choices":[{{"index":0,"delta":{{"content":"{word}"}},"finish_reason":null}}]}}"#
        ));
        self.text.push_str(&word);
        self.text_ends.push(self.text.len());
        self.tokens.push(self.bytes.len());
    }

    fn finish(&mut self) {
        self.event(r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#);
    }

    fn usage(&mut self, tokens: u64) {
        self.event(&format!(
            r#"{{"choices":[],"usage":{{"prompt_tokens":7,"completion_tokens":{tokens}}}}}"#
        ));
    }

    fn event(&mut self, data: &str) {
        self.bytes.extend_from_slice(b"data: ");
        self.bytes.extend_from_slice(data.as_bytes());
        self.bytes.extend_from_slice(b"\n\n");
    }

    fn comment(&mut self) {
        self.bytes.extend_from_slice(b": keep-alive\n\n");
    }
}

/// The server's answer to request `number`.
pub(super) fn say(random: &mut Random, number: u32, streaming: bool) -> Said {
    match random.below(20) {
        0..=8 if streaming => stream(random, number),
        0..=8 => json(number),
        9 => refusal(random),
        10 => error_event(random, number),
        11 => no_finish(random, number),
        12 => by_close(random, number),
        13 => bad_chunk(random, number),
        14 => bad_event(random, number),
        15 => foreign(random),
        16 => empty(),
        17 => not_http(),
        18 => bad_head(random),
        _ => stream_with_stray(random, number),
    }
}

fn head(status: &str, lines: &str, random: &mut Random) -> Vec<u8> {
    let mut head = Vec::new();
    for _ in 0..if random.one_in(8) { random.below(3) } else { 0 } {
        head.extend_from_slice(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
    }
    head.extend_from_slice(format!("HTTP/1.1 {status}\r\n{lines}\r\n").as_bytes());
    head
}

const STREAM: &str = "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n";

/// Frames a body in chunks; `ends` are offsets of the body that matter, which become offsets of
/// the answer.
fn chunked(head: Vec<u8>, body: &[u8], random: &mut Random, ends: &mut [usize]) -> Vec<u8> {
    let mut out = head;
    let mut at = 0;
    let mut places = vec![0; body.len() + 1];
    while at < body.len() {
        let most = (body.len() - at) as u64;
        let longest = if random.one_in(3) { most.min(9) } else { most };
        let length = usize::try_from(1 + random.below(longest)).expect("a body's length");
        let extension = if random.one_in(9) { ";a=b" } else { "" };
        out.extend_from_slice(format!("{length:x}{extension}\r\n").as_bytes());
        for place in 1..=length {
            places[at + place] = out.len() + place;
        }
        out.extend_from_slice(&body[at..at + length]);
        out.extend_from_slice(b"\r\n");
        at += length;
    }
    for end in ends {
        *end = places[*end];
    }
    out
}

/// A chunked stream: its body, the offset in it that settles its class, and how it closes.
fn framed(
    body: Body,
    settled: usize,
    class: Class,
    kind: &'static str,
    random: &mut Random,
) -> Said {
    let head = head("200 OK", STREAM, random);
    let head_end = head.len();
    let Body { bytes: body, tokens, text, text_ends } = body;
    let mut ends = tokens;
    let has_settled = settled != NEVER;
    ends.push(if has_settled { settled } else { 0 });
    let mut bytes = chunked(head, &body, random, &mut ends);
    bytes.extend_from_slice(b"0\r\n\r\n");
    let settled = ends.pop().filter(|_| has_settled).unwrap_or(NEVER);
    let whole = bytes.len();
    let truth = Truth {
        kind,
        class,
        settled,
        ends: (whole, whole),
        head_end,
        by_close: None,
        may_know_early: false,
        tokens: ends,
        text,
        text_ends,
        reusable: true,
        closes: random.one_in(10),
    };
    Said { bytes, truth }
}

fn good(random: &mut Random, number: u32) -> (Body, usize) {
    let mut body = Body::default();
    let tokens = 1 + random.below(6);
    for place in 0..tokens {
        if random.one_in(6) {
            body.comment();
        }
        body.token(number, place);
    }
    body.finish();
    if random.one_in(2) {
        body.usage(tokens);
    }
    body.event("[DONE]");
    let done = body.bytes.len();
    (body, done)
}

fn stream(random: &mut Random, number: u32) -> Said {
    let (body, done) = good(random, number);
    framed(body, done, Class::Ok, "stream", random)
}

/// A good stream, and bytes behind it that nobody asked for.
fn stream_with_stray(random: &mut Random, number: u32) -> Said {
    let mut said = stream(random, number);
    said.bytes.extend_from_slice(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    said.truth.kind = "stream with stray bytes";
    said
}

fn no_finish(random: &mut Random, number: u32) -> Said {
    let mut body = Body::default();
    for place in 0..1 + random.below(5) {
        body.token(number, place);
    }
    framed(body, NEVER, Class::NoFinish, "no finish", random)
}

fn error_event(random: &mut Random, number: u32) -> Said {
    let mut body = Body::default();
    for place in 0..random.below(4) {
        body.token(number, place);
    }
    body.event(r#"{"error":{"message":"out of memory","code":500}}"#);
    let settled = body.bytes.len();
    let mut said = framed(body, settled, Class::ErrorEvent, "error event", random);
    // Whether its reader reads on to the end of the framing is its own affair.
    said.truth.ends.0 = said.truth.settled;
    said
}

fn bad_event(random: &mut Random, number: u32) -> Said {
    let mut body = Body::default();
    for place in 0..random.below(4) {
        body.token(number, place);
    }
    body.event(r#"{"choices":[{"index":0,"delta":{"content":"#);
    let settled = body.bytes.len();
    let mut said = framed(body, settled, Class::BadEvent, "bad event", random);
    said.truth.ends.0 = said.truth.settled;
    said
}

fn bad_chunk(random: &mut Random, number: u32) -> Said {
    let mut body = Body::default();
    for place in 0..1 + random.below(3) {
        body.token(number, place);
    }
    let mut said = framed(body, NEVER, Class::BadFraming, "bad chunk", random);
    said.bytes.truncate(said.bytes.len() - b"0\r\n\r\n".len());
    let first = said.bytes.len() + 1;
    said.bytes.extend_from_slice(b"xyz\r\nmore");
    said.truth.ends = (first, first + 4);
    said.truth.reusable = false;
    said
}

/// A stream without a length, which ends with its connection.
fn by_close(random: &mut Random, number: u32) -> Said {
    let head = head("200 OK", "Content-Type: text/event-stream\r\n", random);
    let head_end = head.len();
    let mut body = Body::default();
    for place in 0..1 + random.below(4) {
        body.token(number, place);
    }
    body.finish();
    let Body { bytes: body, tokens, text, text_ends } = body;
    let mut bytes = head;
    bytes.extend_from_slice(&body);
    let whole = bytes.len();
    let truth = Truth {
        kind: "ends by close",
        class: Class::Ok,
        settled: NEVER,
        ends: (NEVER, NEVER),
        head_end,
        // A line that the end of the connection ends is a line.
        by_close: Some(whole - b"\n\n".len()),
        may_know_early: false,
        tokens: tokens.iter().map(|end| head_end + end).collect(),
        text,
        text_ends,
        reusable: false,
        closes: true,
    };
    Said { bytes, truth }
}

/// An answer with a length and without content events.
fn plain(bytes: Vec<u8>, head_end: usize, class: Class, kind: &'static str) -> Said {
    let whole = bytes.len();
    let truth = Truth {
        kind,
        class,
        settled: NEVER,
        ends: (whole, whole),
        head_end,
        by_close: None,
        may_know_early: false,
        tokens: Vec::new(),
        text: String::new(),
        text_ends: Vec::new(),
        reusable: true,
        closes: false,
    };
    Said { bytes, truth }
}

fn with_length(head: Vec<u8>, body: &[u8], class: Class, kind: &'static str) -> Said {
    let head_end = head.len();
    let mut bytes = head;
    bytes.extend_from_slice(body);
    plain(bytes, head_end, class, kind)
}

fn json(number: u32) -> Said {
    let message = serde_json::json!({"content": format!("r{number} ")});
    let choice = serde_json::json!({"index": 0, "message": message, "finish_reason": "stop"});
    let usage = serde_json::json!({"prompt_tokens": 7, "completion_tokens": 1});
    let body = serde_json::json!({"choices": [choice], "usage": usage}).to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    with_length(head.into_bytes(), body.as_bytes(), Class::Ok, "json")
}

fn refusal(random: &mut Random) -> Said {
    let (status, class) = [
        ("429 Too Many Requests\r\nRetry-After: 1", Class::Http429),
        ("503 Service Unavailable", Class::Http5xx),
        ("500 Internal Server Error", Class::Http5xx),
        ("400 Bad Request", Class::Http4xx),
        ("302 Found\r\nLocation: http://elsewhere/", Class::HttpRedirect),
    ][usize::try_from(random.below(5)).expect("five")];
    let body = br#"{"error":{"message":"not now"}}"#;
    let lines = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    let head = head(status, &lines, random);
    let mut said = with_length(head, body, class, "refusal");
    said.truth.settled = said.truth.head_end;
    said
}

fn foreign(random: &mut Random) -> Said {
    let body = b"<html><body>Sign in to the network</body></html>";
    let lines = format!("Content-Type: text/html\r\nContent-Length: {}\r\n", body.len());
    let head = head("200 OK", &lines, random);
    let mut said = with_length(head, body, Class::WrongContentType, "foreign");
    said.truth.ends.0 = said.truth.head_end;
    said.truth.may_know_early = true;
    said
}

fn empty() -> Said {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec();
    with_length(head, b"", Class::EmptyAnswer, "empty")
}

fn not_http() -> Said {
    let bytes = b"SSH-2.0-OpenSSH_9.2\r\n".to_vec();
    let mut said = plain(bytes, NEVER, Class::NotHttp, "not http");
    said.truth.ends = (1, 1);
    said.truth.reusable = false;
    said
}

fn bad_head(random: &mut Random) -> Said {
    let (lines, class) = [
        ("Content-Length: 3\r\nContent-Length: 4\r\n", Class::BadFraming),
        ("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", Class::BadFraming),
        ("A header without a colon\r\n", Class::BadHead),
    ][usize::try_from(random.below(3)).expect("three")];
    let bytes = head("200 OK", lines, random);
    let mut said = plain(bytes, NEVER, class, "bad head");
    said.truth.reusable = false;
    said
}
