//! One server that is nasty in three score ways, each request meeting one of them among all the
//! others: every request has one end, by its right name, and keeps the tokens that came.
//!
//! What a request meets is in the number of tokens that it asks for, so it does not matter which
//! connection carries it, nor whether it is sent a second time. On TLS an end that was not
//! announced is a reset, and everything else is the same.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use onbeat::net::target::Target;
use onbeat::replayer::driver::DriverKind;
use onbeat_shared::log::Class;
use onbeat_shared::metrics::{ReportOptions, report};
use onbeat_shared::run::Run;
use rustls::version::TLS13;
use tests::scripted::{Scripted, answer, good_stream, request};
use tests::secured::{Authority, Secured, VALID, serve};
use tests::{Scenario, drivers, ends};

/// How often each way is met.
const ROUNDS: usize = 3;
/// What the first way is asked for by; the others follow.
const FIRST: usize = 100;
/// Longer than any limit of these runs.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a server does next.
#[derive(Clone)]
enum Act {
    Say(Vec<u8>),
    /// One byte after the other.
    Spell(Vec<u8>),
    /// Again and again, until the client has had enough.
    Repeat(Vec<u8>),
    /// Nothing, until then.
    Wait,
    /// It says that nothing more will come, and waits.
    Half,
    Reset,
    /// It serves the next request of the connection.
    Next,
}
use Act::{Half, Next, Repeat, Reset, Say, Spell, Wait};

/// A way of being nasty, and what must come of it.
struct Way {
    name: &'static str,
    acts: Vec<Act>,
    class: Class,
    /// Its class over TLS, where that is another.
    sealed: Class,
    /// Content events that are kept; `None`: some.
    kept: Option<usize>,
}

/// The two ends of a connection, sealed or not.
trait Line: Read + Write {
    fn socket(&self) -> &TcpStream;
}

impl Line for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }
}

impl Line for Secured {
    fn socket(&self) -> &TcpStream {
        &self.sock
    }
}

fn way(name: &'static str, class: Class, kept: usize, acts: impl Into<Vec<Act>>) -> Way {
    // Nobody announced that end.
    let sealed = if class == Class::TruncatedBody { Class::ResetMidAnswer } else { class };
    Way { name, acts: acts.into(), class, sealed, kept: Some(kept) }
}

fn say(bytes: impl AsRef<[u8]>) -> Act {
    Say(bytes.as_ref().to_vec())
}

const STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                      Transfer-Encoding: chunked\r\n\r\n";
const OPEN: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
const ONE: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" one\"}}]}\n\n";
const END: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" two\"},\
                   \"finish_reason\":\"stop\"}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";
const LAST: &str = "0\r\n\r\n";
const WHOLE: &str = "{\"choices\":[{\"index\":0,\"message\":{\"content\":\"Hi\"},\
                     \"finish_reason\":\"stop\"}]}";

/// Events, each in a chunk of its own.
fn chunks(events: &[&str]) -> String {
    events.iter().map(|event| format!("{:x}\r\n{event}\r\n", event.len())).collect()
}

/// A chunked stream of these events, not ended.
fn stream(events: &[&str]) -> String {
    STREAM.to_owned() + &chunks(events)
}

/// An answer with its length.
fn sized(status: &str, kind: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}")
}

/// Errors inside a success, and streams that do not end as they should.
fn streams() -> Vec<Way> {
    let error = "data: {\"error\":{\"message\":\"out of memory\",\"code\":500}}\n\n";
    let named = "event: error\ndata: overloaded\n\n";
    let abort = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"abort\"}]}\n\n";
    let torn = "data: {\"choices\":[{\"index\":0,\"del\n\n";
    let ended = |events: &[&str]| say(stream(events) + LAST);
    let inside = say(stream(&[ONE]) + &chunks(&[END])[..30]);
    vec![
        way("error object", Class::ErrorEvent, 1, [ended(&[ONE, error, DONE]), Next]),
        way("error first", Class::ErrorEvent, 0, [ended(&[error, DONE]), Next]),
        way("error among tokens", Class::ErrorEvent, 2, [ended(&[ONE, error, END, DONE]), Next]),
        way("error event", Class::ErrorEvent, 1, [ended(&[ONE, named]), Next]),
        way("error, then cut", Class::ErrorEvent, 1, [say(stream(&[ONE, error]))]),
        way("error, then reset", Class::ErrorEvent, 1, [say(stream(&[ONE, error])), Reset]),
        way("error, then silence", Class::ErrorEvent, 1, [say(stream(&[ONE, error])), Wait]),
        way("given up", Class::ErrorEvent, 1, [ended(&[ONE, abort, DONE]), Next]),
        way("nothing but [DONE]", Class::EmptyAnswer, 0, [ended(&[DONE]), Next]),
        way("torn event", Class::BadEvent, 2, [ended(&[ONE, torn, END, DONE]), Next]),
        way("cut between events", Class::TruncatedBody, 1, [say(stream(&[ONE]))]),
        way("cut inside one", Class::TruncatedBody, 1, [inside]),
        way("cut behind the reason", Class::TruncatedBody, 2, [say(stream(&[ONE, END]))]),
        way("cut, half-closed", Class::TruncatedBody, 1, [say(stream(&[ONE])), Half]),
        way("cut behind [DONE]", Class::Ok, 2, [say(stream(&[ONE, END, DONE]))]),
        way("reset behind [DONE]", Class::Ok, 2, [say(stream(&[ONE, END, DONE])), Reset]),
        way("silent behind [DONE]", Class::Ok, 2, [say(stream(&[ONE, END, DONE])), Wait]),
        way("no [DONE]", Class::Ok, 2, [ended(&[ONE, END]), Next]),
        way("no reason", Class::Ok, 1, [ended(&[ONE, DONE]), Next]),
        way("neither", Class::NoFinish, 2, [ended(&[ONE, ONE]), Next]),
        way("pings only", Class::NoFinish, 0, [ended(&[": ping\n\n"]), Next]),
        way("no event", Class::EmptyAnswer, 0, [ended(&[]), Next]),
        way("reset among tokens", Class::ResetMidAnswer, 2, [say(stream(&[ONE, ONE])), Reset]),
        way("spelt out", Class::Ok, 2, [Spell(good_stream()), Next]),
        // By its own word it had ended, which is enough on TLS, too.
        way("until it closes", Class::Ok, 2, [say(OPEN.to_owned() + ONE + END + DONE)]),
        Way {
            sealed: Class::ResetMidAnswer,
            ..way("until it closes, no [DONE]", Class::Ok, 2, [say(OPEN.to_owned() + ONE + END)])
        },
    ]
}

/// Answers that are no success, or say that they are and are not.
fn answers() -> Vec<Way> {
    let page = format!("<html>{}</html>", "busy ".repeat(20_000));
    let no = |status: &str| say(sized(status, "application/json", "{\"detail\":\"no\"}"));
    let cut = "HTTP/1.1 503 Busy\r\nContent-Length: 100\r\n\r\nbusy";
    let refused = "HTTP/1.1 429 Slow\r\nContent-Type: text/event-stream\r\nRetry-After: 2\r\n\
                   Transfer-Encoding: chunked\r\n\r\n";
    let event = format!("{refused}{}{LAST}", chunks(&[ONE, END, DONE]));
    let packed = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x08..";
    let moved = "HTTP/1.1 307 There\r\nLocation: /v2\r\nContent-Length: 0\r\n\r\n";
    let lost = "HTTP/1.1 301 There\r\nContent-Length: 0\r\n\r\n";
    let typed = |kind: &str, body: &str| say(sized("200 OK", kind, body));
    let none = "HTTP/1.1 204 No Content\r\n\r\n";
    let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: </x>\r\n\r\n";
    vec![
        way("a page as a page", Class::WrongContentType, 0, [typed("text/html", &page), Next]),
        way(
            "a page as a stream",
            Class::WrongContentType,
            0,
            [typed("text/event-stream", "<html>busy"), Next],
        ),
        way("words", Class::WrongContentType, 0, [typed("text/plain", "upstream gone"), Next]),
        way("packed", Class::WrongContentType, 0, [say(packed), Next]),
        way(
            "a stream as JSON",
            Class::Ok,
            2,
            [typed("application/json", &(ONE.to_owned() + END + DONE)), Next],
        ),
        way("JSON as a stream", Class::Ok, 0, [typed("text/event-stream", WHOLE), Next]),
        way(
            "an error as JSON",
            Class::ErrorEvent,
            0,
            [typed("application/json", "{\"error\":{\"message\":\"no\"}}"), Next],
        ),
        way("cut JSON", Class::BadEvent, 0, [typed("application/json", &WHOLE[..40]), Next]),
        way("nothing", Class::EmptyAnswer, 0, [typed("application/json", ""), Next]),
        way("204", Class::EmptyAnswer, 0, [say(none), Next]),
        way("400", Class::Http4xx, 0, [no("400 Bad Request"), Next]),
        way("401", Class::Http4xx, 0, [no("401 Unauthorized"), Next]),
        way("429 that streams", Class::Http429, 0, [say(event), Next]),
        way("500", Class::Http5xx, 0, [no("500 Oops"), Next]),
        way("502 with a page", Class::Http5xx, 0, [say(sized("502 X", "text/html", &page)), Next]),
        way("503, cut", Class::Http5xx, 0, [say(cut)]),
        way("503, reset", Class::Http5xx, 0, [say(cut), Reset]),
        way("503, silent", Class::Http5xx, 0, [say(cut), Wait]),
        way("307", Class::HttpRedirect, 0, [say(moved), Next]),
        way("301", Class::HttpRedirect, 0, [say(lost), Next]),
        way("101", Class::HttpOther, 0, [say("HTTP/1.1 101 Switch\r\nUpgrade: h2c\r\n\r\n")]),
        way("interim answers", Class::Ok, 2, [say(interim), say(good_stream()), Next]),
        way("closed in between", Class::Ok, 2, [say(good_stream())]),
        way("half-closed behind", Class::Ok, 2, [say(good_stream()), Half]),
        // In one write: what comes later may meet the connection's next request.
        way("stray bytes", Class::Ok, 2, [say([&good_stream()[..], b"and more"].concat()), Wait]),
        way("answers unasked", Class::Ok, 2, [say([good_stream(), good_stream()].concat()), Wait]),
    ]
}

/// Connections that break, and framing that is none.
fn breaks() -> Vec<Way> {
    let early = Class::ResetBeforeAnswer;
    let headers = "X-Fill: a\r\n".repeat(300);
    let both =
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    let two = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n{}{}{}";
    let coded = "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n";
    let short = "HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n{\"choices\":[";
    let long = format!("{}5\r\nmore than five\r\n", stream(&[ONE]));
    vec![
        way("closed at once", early, 0, []),
        way("reset at once", early, 0, [Reset]),
        way("half-closed at once", early, 0, [Half]),
        way("half a head", Class::TruncatedBody, 0, [say(&STREAM[..20])]),
        way("half a head, then silence", Class::FirstByteTimeout, 0, [say(&STREAM[..20]), Wait]),
        way("a short body", Class::TruncatedBody, 0, [say(short)]),
        way("two framings", Class::BadFraming, 0, [say(both), Wait]),
        way("two lengths", Class::BadFraming, 0, [say(two), Wait]),
        way("an unknown coding", Class::BadFraming, 0, [say(coded), Wait]),
        way("no size", Class::BadFraming, 1, [say(stream(&[ONE]) + "+5\r\nhello\r\n"), Wait]),
        way("a size that lies", Class::BadFraming, 1, [say(long), Wait]),
        way("no colon", Class::BadHead, 0, [say("HTTP/1.1 200 OK\r\nno colon\r\n\r\n"), Wait]),
        way("no status", Class::BadHead, 0, [say("HTTP/1.1 2x0 OK\r\n\r\n"), Wait]),
        way(
            "headers without end",
            Class::OverLimit,
            0,
            [say(format!("HTTP/1.1 200 OK\r\n{headers}\r\n")), Wait],
        ),
        way(
            "interim without end",
            Class::OverLimit,
            0,
            [say("HTTP/1.1 102 X\r\n\r\n".repeat(17)), Wait],
        ),
        way("another protocol", Class::NotHttp, 0, [say("SSH-2.0-x\r\n"), Wait]),
    ]
}

/// Servers that say nothing, too little or too much, until a limit strikes.
fn silences() -> Vec<Way> {
    let tokens = chunks(&[ONE]);
    vec![
        way("silence", Class::FirstByteTimeout, 0, [Wait]),
        way(
            "interim, then silence",
            Class::FirstByteTimeout,
            0,
            [say("HTTP/1.1 102 X\r\n\r\n"), Wait],
        ),
        way(
            "a head that drips",
            Class::FirstByteTimeout,
            0,
            [say("HTTP/1.1 200 OK\r\n"), Repeat(b"X: y\r\n".to_vec())],
        ),
        way("a token, then silence", Class::IdleTimeout, 1, [say(stream(&[ONE])), Wait]),
        way(
            "half an event, then silence",
            Class::IdleTimeout,
            0,
            [say(STREAM.to_owned() + &tokens[..20]), Wait],
        ),
        way(
            "pings without end",
            Class::TotalTimeout,
            0,
            [say(STREAM), Repeat(b"3\r\n:\n\n\r\n".to_vec())],
        ),
        Way {
            kept: None,
            ..way(
                "tokens without end",
                Class::TotalTimeout,
                0,
                [say(STREAM), Repeat(tokens.clone().into_bytes())],
            )
        },
    ]
}

fn ways() -> Vec<Way> {
    [streams(), answers(), breaks(), silences()].into_iter().flatten().collect()
}

/// Does what a way does; `false` ends the connection.
fn act(stream: &mut impl Line, acts: &[Act]) -> bool {
    let wait = |stream: &mut dyn Line| while matches!(stream.read(&mut [0; 512]), Ok(1..)) {};
    for act in acts {
        match act {
            Say(bytes) => answer(stream, bytes),
            Spell(bytes) => bytes.iter().for_each(|byte| answer(stream, &[*byte])),
            Repeat(bytes) => repeat(stream, bytes),
            Wait => wait(stream),
            Half => {
                let _ = stream.socket().shutdown(Shutdown::Write);
                wait(stream);
            }
            Reset => {
                let at_once = Some(Duration::ZERO);
                let _ = rustix::net::sockopt::set_socket_linger(stream.socket(), at_once);
                return false;
            }
            Next => return true,
        }
    }
    false
}

/// Says the same again, 25 ms apart, until nobody takes it.
fn repeat(stream: &mut impl Line, bytes: &[u8]) {
    let _ = stream.socket().set_read_timeout(Some(Duration::from_millis(25)));
    while stream.write_all(bytes).and_then(|()| stream.flush()).is_ok() {
        if matches!(stream.read(&mut [0]), Ok(0)) {
            return;
        }
    }
}

/// Serves a connection: each request meets what it asks for.
fn serve_all(stream: &mut impl Line, ways: &[Way]) {
    let _ = stream.socket().set_nodelay(true);
    let _ = stream.socket().set_read_timeout(Some(PATIENCE));
    while let Some(bytes) = request(stream) {
        let text = String::from_utf8_lossy(&bytes);
        let asked = text.split("\"max_completion_tokens\":").nth(1).expect("it asks for some");
        let digits: String = asked.chars().take_while(char::is_ascii_digit).collect();
        let number: usize = digits.parse().expect("a number");
        if !act(stream, &ways[number - FIRST].acts) {
            return;
        }
    }
}

/// A trace in which each way is met in each round.
fn trace(ways: usize) -> String {
    (0..ROUNDS * ways)
        .map(|row| {
            format!(
                "{{\"timestamp\":{row},\"input_length\":5,\"output_length\":{},\
                 \"hash_ids\":[{row}]}}\n",
                FIRST + row % ways
            )
        })
        .collect()
}

fn run(mut scenario: Scenario, driver: DriverKind) -> Run {
    scenario.config.driver = Some(driver);
    scenario.config.limits.first_byte_ns = Some(1_500_000_000);
    scenario.config.limits.idle_ns = Some(1_500_000_000);
    scenario.config.limits.total_ns = Some(3_000_000_000);
    ends(move || scenario.run_as_meant())
}

/// Every request of `run` ended as its way does, and the sums say so.
fn holds(run: &Run, sealed: bool, driver: DriverKind) {
    let ways = ways();
    let mut wrong = Vec::new();
    for i in 0..run.plan.len() {
        let way = &ways[i % ways.len()];
        let class = if sealed { way.sealed } else { way.class };
        let (found, kept) = (run.requests.class(i), run.chunks.count(i));
        let enough = way.kept.map_or(kept > 1, |wanted| wanted == kept);
        if found != Some(class) || !enough {
            let words = run.error_text(i).unwrap_or_default();
            wrong.push(format!("{}: {found:?}, {kept} events, {words:?}", way.name));
        }
    }
    assert!(wrong.is_empty(), "sealed: {sealed}, {driver:?}:\n{}", wrong.join("\n"));
    assert!(run.is_whole() && run.warnings.is_empty(), "{:?}", run.warnings);
    let outcomes = report(run, &ReportOptions::default()).outcomes;
    let good = ways.iter().filter(|way| (if sealed { way.sealed } else { way.class }) == Class::Ok);
    assert_eq!(outcomes.ok, (ROUNDS * good.count()) as u64, "nothing else counts as a success");
    assert_eq!(outcomes.by_class.values().sum::<u64>(), run.plan.len() as u64, "each once");
}

#[test]
fn every_request_is_counted_once_by_its_right_name() {
    let plain = |driver| {
        let server = Scripted::start(|_, mut stream| serve_all(&mut stream, &ways()));
        let mut scenario = Scenario::new(&trace(ways().len()));
        scenario.config.target =
            Target::parse(&format!("http://{}", server.address)).expect("a loopback address");
        holds(&run(scenario, driver), false, driver);
    };
    let sealed = |driver| {
        let authority = Authority::new();
        let config = authority.issue("localhost", VALID).config(&[&TLS13], None);
        let server = serve(config, |_, stream| serve_all(stream, &ways()));
        let mut scenario = Scenario::new(&trace(ways().len()));
        let url = format!("https://localhost:{}", server.address.port());
        scenario.config.target = Target::parse(&url).expect("a URL");
        scenario.config.way.tls.cacert = Some(authority.file());
        holds(&run(scenario, driver), true, driver);
    };
    std::thread::scope(|scope| {
        for driver in drivers() {
            for side in [&plain as &(dyn Fn(DriverKind) + Sync), &sealed] {
                let name = "nasty".to_owned();
                let thread = std::thread::Builder::new().name(name);
                thread.spawn_scoped(scope, move || side(driver)).expect("a thread");
            }
        }
    });
}
