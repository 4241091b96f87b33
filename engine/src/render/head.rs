//! The head of every request: a common part per server and a short part per request.
//!
//! `POST`, `Host` and everything else that no two requests to one server differ in is kept once;
//! `X-Request-ID`, the session's header and `Content-Length` follow for each request. A header of
//! the user's own replaces ours of the same name, except for those that frame the message or name
//! the request, which are refused. Values of the user's own headers are secrets: no message repeats
//! one. `Connection: keep-alive` is HTTP/1.1's default and not sent.

use std::io::Write;

use http::{HeaderName, HeaderValue};

use crate::render::options::{Destination, RenderOptions};
use crate::render::{RenderError, Secret, UrlText};

/// Names a request's head for a server's log and for ours.
const REQUEST_ID: &str = "X-Request-ID";

/// Tells a router to keep a session where it is: its name once more, as AIPerf sends it.
const AFFINITY: &str = "X-Session-Affinity";

/// Headers that decide how the message is read: never the user's.
const FRAMING: [&str; 9] = [
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "expect",
    "upgrade",
    "te",
    "trailer",
    "accept-encoding",
];

/// The path of a request: the base URL's, joined with the endpoint's; a `/v1` both have stands
/// once, and a base URL that already is the endpoint's stays as it is.
#[must_use]
pub fn request_path(base_path: &str, options: &RenderOptions) -> String {
    let own = options.path.as_ref().map(UrlText::as_sent);
    let endpoint = own.unwrap_or(options.endpoint.path());
    let endpoint = endpoint.trim_start_matches('/');
    let base = base_path.trim_end_matches('/');
    if base.strip_suffix(endpoint).is_some_and(|before| before.ends_with('/')) {
        return base.to_owned();
    }
    let rest = endpoint.strip_prefix("v1").filter(|rest| rest.is_empty() || rest.starts_with('/'));
    match rest {
        Some(rest) if base.ends_with("/v1") => format!("{base}{rest}"),
        _ => format!("{base}/{endpoint}"),
    }
}

/// What all requests to one server have in common: from the request line on, up to the headers that
/// [`append_own`] writes.
pub(crate) fn common(
    destination: &Destination,
    options: &RenderOptions,
) -> Result<Vec<u8>, RenderError> {
    let accept = if options.streaming { "text/event-stream" } else { "application/json" };
    let path = request_path(&destination.base_path, options);
    let mut head = request_line("POST", &path)?;
    put_common(&mut head, destination, options, accept)?;
    Ok(head)
}

/// A whole head for a question outside the workload, after whose answer the connection is closed;
/// with a body of so many bytes, if it has one.
///
/// # Errors
/// When a header or the path cannot be sent.
pub fn head_of_question(
    method: &str,
    path: &str,
    destination: &Destination,
    options: &RenderOptions,
    body_bytes: Option<usize>,
) -> Result<Vec<u8>, RenderError> {
    let mut head = request_line(method, path)?;
    put_common(&mut head, destination, options, "application/json")?;
    put(&mut head, "Connection", b"close");
    if let Some(bytes) = body_bytes {
        put(&mut head, "Content-Length", bytes.to_string().as_bytes());
    }
    head.extend_from_slice(b"\r\n");
    Ok(head)
}

fn request_line(method: &str, path: &str) -> Result<Vec<u8>, RenderError> {
    if path.bytes().any(|byte| !byte.is_ascii_graphic()) {
        return Err(RenderError::Header(format!(
            "the request path {:?} has a blank or a character that is not ASCII; write it \
             percent-encoded in --endpoint or --url",
            UrlText::new(path)
        )));
    }
    Ok(format!("{method} {path} HTTP/1.1\r\n").into_bytes())
}

fn put_common(
    head: &mut Vec<u8>,
    destination: &Destination,
    options: &RenderOptions,
    accept: &str,
) -> Result<(), RenderError> {
    let ours = [
        ("Host", destination.authority.as_str()),
        ("User-Agent", concat!("onbeat/", env!("CARGO_PKG_VERSION"))),
        ("Accept", accept),
        ("Accept-Encoding", "identity"),
        ("Content-Type", "application/json"),
    ];
    for (name, value) in ours {
        if !has_own(options, name) {
            put(head, name, value.as_bytes());
        }
    }
    for (name, value) in &options.headers {
        checked_name(name, options)?;
        put(head, name, checked_value(name, value)?);
    }
    if let Some(key) = options.api_key.as_ref().filter(|_| !has_own(options, "Authorization")) {
        let mut bearer = b"Bearer ".to_vec();
        bearer.extend_from_slice(checked_value("Authorization (--api-key)", key)?);
        put(head, "Authorization", &bearer);
    }
    Ok(())
}

/// What only one request has, up to and with the empty line that ends the head.
pub(crate) fn append_own(
    head: &mut Vec<u8>,
    options: &RenderOptions,
    request: u32,
    session: &str,
    body_bytes: u64,
) {
    append_open(head, options, request, session);
    write!(head, "{body_bytes}\r\n\r\n").expect("a Vec takes everything");
}

/// [`append_own`] for a body whose length is not known yet: up to where it belongs.
pub(crate) fn append_open(
    head: &mut Vec<u8>,
    options: &RenderOptions,
    request: u32,
    session: &str,
) {
    head.extend_from_slice(REQUEST_ID.as_bytes());
    head.extend_from_slice(b": ");
    append_plain(head, &options.run_id);
    write!(head, "-{request}\r\n{}: ", options.session_header).expect("a Vec takes everything");
    append_plain(head, session);
    // Whose name the session's header has taken, or the user's own, is there already.
    if !options.session_header.eq_ignore_ascii_case(AFFINITY) && !has_own(options, AFFINITY) {
        write!(head, "\r\n{AFFINITY}: ").expect("a Vec takes everything");
        append_plain(head, session);
    }
    head.extend_from_slice(b"\r\nContent-Length: ");
}

/// Most bytes that [`append_own`] adds for a request of this session.
pub(crate) fn own_bytes_at_most(options: &RenderOptions, session: &str) -> usize {
    // Names, separators, ten digits of the request, twenty of the length; a byte may become three.
    const FIXED: usize = 80 + AFFINITY.len();
    FIXED + options.session_header.len() + 3 * (options.run_id.len() + 2 * session.len())
}

/// Whether the name of the session's header can be sent.
pub(crate) fn check_session_header(options: &RenderOptions) -> Result<(), RenderError> {
    let name = &options.session_header;
    let taken = FRAMING.iter().chain(&["host", "content-type", "authorization", "x-request-id"]);
    let usable = HeaderName::from_bytes(name.as_bytes()).is_ok()
        && !taken.into_iter().any(|taken| name.eq_ignore_ascii_case(taken));
    if usable {
        return Ok(());
    }
    Err(RenderError::Header(format!(
        "--session-header {name:?} cannot carry the session; use a name like X-Session-ID"
    )))
}

/// Whether the user gave a header of this name.
pub(crate) fn has_own(options: &RenderOptions, name: &str) -> bool {
    options.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
}

fn put(head: &mut Vec<u8>, name: &str, value: &[u8]) {
    head.extend_from_slice(name.as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(value);
    head.extend_from_slice(b"\r\n");
}

/// Adds a text whose characters a header can carry; the others are percent-encoded.
pub(crate) fn append_plain(head: &mut Vec<u8>, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_graphic() {
            head.push(byte);
        } else {
            write!(head, "%{byte:02X}").expect("a Vec takes everything");
        }
    }
}

fn checked_name(name: &str, options: &RenderOptions) -> Result<(), RenderError> {
    if HeaderName::from_bytes(name.as_bytes()).is_err() {
        return Err(RenderError::Header(format!("--header {name:?} is not a header's name")));
    }
    let is = |other: &&str| name.eq_ignore_ascii_case(other);
    if FRAMING.iter().any(is) {
        return Err(RenderError::Header(format!(
            "--header {name:?} decides how a message is read, which is onbeat's business"
        )));
    }
    if [REQUEST_ID, &options.session_header].iter().any(is) {
        return Err(RenderError::Header(format!(
            "--header {name:?} is set for each request; --session-header renames the session's"
        )));
    }
    Ok(())
}

fn checked_value<'a>(name: &str, value: &'a Secret) -> Result<&'a [u8], RenderError> {
    if HeaderValue::from_bytes(value.reveal()).is_err() {
        return Err(RenderError::Header(format!(
            "the value of the header {name} has a line break or another control character"
        )));
    }
    Ok(value.reveal())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn destination(authority: &str, base_path: &str) -> Destination {
        Destination { authority: authority.to_owned(), base_path: base_path.to_owned() }
    }

    fn head(options: &RenderOptions) -> Result<String, String> {
        let common = common(&destination("[::1]:8000", "/v1"), options);
        let mut head = common.map_err(|error| error.to_string())?;
        append_own(&mut head, options, 7, "session 1", 42);
        Ok(String::from_utf8(head).expect("ASCII"))
    }

    fn with_header(name: &str, value: &str) -> RenderOptions {
        let headers = vec![(name.to_owned(), Secret::new(value))];
        RenderOptions { headers, ..RenderOptions::default() }
    }

    #[test]
    fn a_head_has_what_a_server_wants_to_know() {
        let options = RenderOptions {
            run_id: "r1".to_owned(),
            api_key: Some(Secret::new("k")),
            ..RenderOptions::default()
        };
        let expected = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nHost: [::1]:8000\r\nUser-Agent: onbeat/{}\r\n\
             Accept: text/event-stream\r\nAccept-Encoding: identity\r\n\
             Content-Type: application/json\r\nAuthorization: Bearer k\r\nX-Request-ID: r1-7\r\n\
             X-Correlation-ID: session%201\r\nX-Session-Affinity: session%201\r\n\
             Content-Length: 42\r\n\r\n",
            env!("CARGO_PKG_VERSION")
        );
        assert_eq!(head(&options), Ok(expected));
    }

    #[test]
    fn a_session_is_named_once_under_each_name() {
        let count = |options: &RenderOptions| {
            let head = head(options).expect("a head").to_lowercase();
            (head.matches("x-session-affinity").count(), head.matches("session%201").count())
        };
        assert_eq!(count(&RenderOptions::default()), (1, 2));
        assert_eq!(count(&with_header("x-session-affinity", "mine")), (1, 1));
        let session_header = "X-Session-Affinity".to_owned();
        assert_eq!(count(&RenderOptions { session_header, ..RenderOptions::default() }), (1, 1));
    }

    #[test]
    fn a_question_is_no_part_of_a_session() {
        let options =
            RenderOptions { api_key: Some(Secret::new("k")), ..with_header("X-Team", "search") };
        let ask =
            |bytes| head_of_question("GET", "/v1/models", &destination("h:1", ""), &options, bytes);
        let head = String::from_utf8(ask(None).expect("a head")).expect("ASCII");
        assert!(head.starts_with("GET /v1/models HTTP/1.1\r\nHost: h:1\r\n"), "{head}");
        assert!(head.contains("X-Team: search\r\nAuthorization: Bearer k\r\n"), "{head}");
        assert!(head.ends_with("Connection: close\r\n\r\n") && !head.contains("Correlation"));
        let head = String::from_utf8(ask(Some(7)).expect("a head")).expect("ASCII");
        assert!(head.ends_with("Content-Length: 7\r\n\r\n"), "{head}");
    }

    #[test]
    fn the_longest_head_is_foreseen() {
        let options = RenderOptions { run_id: "ü r".to_owned(), ..RenderOptions::default() };
        for session in ["", "s", "  ", "täglich"] {
            let mut own = Vec::new();
            append_own(&mut own, &options, u32::MAX, session, u64::MAX);
            let most = own_bytes_at_most(&options, session);
            assert!(own.len() <= most && most <= own.len() + 100, "{} {most}", own.len());
        }
    }

    #[test]
    fn paths_join_with_one_v1() {
        let path = |base: &str, own: Option<&str>| {
            let path = own.map(UrlText::new);
            request_path(base, &RenderOptions { path, ..RenderOptions::default() })
        };
        for (base, own, joined) in [
            ("", None, "/v1/chat/completions"),
            ("/v1", None, "/v1/chat/completions"),
            ("/openai/v1/", None, "/openai/v1/chat/completions"),
            ("/base", None, "/base/v1/chat/completions"),
            ("/v1", Some("/generate"), "/v1/generate"),
            ("/v1", Some("v1/generate"), "/v1/generate"),
            ("/v1", Some("/v1beta/x"), "/v1/v1beta/x"),
            ("/v1/chat/completions", None, "/v1/chat/completions"),
            ("/openai/v1/chat/completions/", None, "/openai/v1/chat/completions"),
            ("/x/generate", Some("/generate"), "/x/generate"),
            ("/regenerate", Some("generate"), "/regenerate/generate"),
            ("", Some("generate"), "/generate"),
        ] {
            assert_eq!(path(base, own), joined, "{base} + {own:?}");
        }
    }

    #[test]
    fn the_users_headers_replace_ours() {
        let head = head(&with_header("user-agent", "mine")).expect("a head");
        assert!(head.contains("user-agent: mine\r\n"));
        assert!(!head.contains("User-Agent: onbeat"));
        let mut options = with_header("authorization", "Basic x");
        options.api_key = Some(Secret::new("k"));
        let head = self::head(&options).expect("a head");
        assert!(head.contains("authorization: Basic x\r\n") && !head.contains("Bearer"));
    }

    #[test]
    fn what_cannot_be_sent_is_refused_without_its_value() {
        for (name, value) in [
            ("Content-Length", "hunter2"),
            ("X-Request-ID", "hunter2"),
            ("x-correlation-id", "hunter2"),
            ("bad name", "hunter2"),
            ("X-Key", "hunter2\r\nEvil: 1"),
        ] {
            let words = head(&with_header(name, value)).expect_err("refused");
            assert!(words.contains(name) && !words.contains("hunter2"), "{words}");
        }
        let session = |name: &str| RenderOptions {
            session_header: name.to_owned(),
            ..RenderOptions::default()
        };
        assert!(check_session_header(&session("X-Session")).is_ok());
        assert!(check_session_header(&session("Host")).is_err());
        assert!(check_session_header(&session("a b")).is_err());
    }
}
