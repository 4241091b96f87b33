//! HTTP/1.1 requests out of bytes, on the server's side and without IO.
//!
//! Independent of [`crate::wire`] on purpose: the two sides of a test must not share their
//! mistakes. Reads Content-Length and chunked bodies, any number of requests on one connection,
//! each with the time its first byte arrived. A request it cannot read ends the connection with an
//! error status.

use std::collections::VecDeque;

use httparse::{EMPTY_HEADER, Header, Status};

use crate::limits::{MOCK_BODY_BYTES_MAX, MOCK_HEAD_BYTES_MAX, MOCK_HEADERS_MAX};

/// A whole request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    /// The target without its query.
    pub(super) path: String,
    /// `X-Request-ID`.
    pub(super) request_id: Option<String>,
    /// `X-Correlation-ID`.
    pub(super) session: Option<String>,
    pub(super) keep_alive: bool,
    pub(super) body: Vec<u8>,
    /// When the read that held its first byte completed.
    pub(super) arrived_ns: i64,
}

/// Why a connection's bytes are not read on: an HTTP status and words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) status: u16,
    pub(super) words: &'static str,
}

/// Reads the requests of one connection.
#[derive(Debug)]
pub(super) struct RequestReader {
    state: State,
    /// Bytes of a head, or of a chunk's size line, that are not whole yet.
    cut: Vec<u8>,
    request: Request,
    ready: VecDeque<Request>,
    fault: Option<Fault>,
    /// A body was announced with `Expect: 100-continue` and has not been asked for.
    continue_due: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Between requests.
    Idle,
    Head,
    /// Bytes of the body to come.
    Body(usize),
    ChunkSize,
    /// Bytes of the chunk and its CR LF to come.
    Chunk(usize),
    Trailer,
}

impl RequestReader {
    pub(super) fn new() -> Self {
        Self {
            state: State::Idle,
            cut: Vec::new(),
            request: Request::default(),
            ready: VecDeque::new(),
            fault: None,
            continue_due: false,
        }
    }

    /// Takes the bytes of one read that completed at `now_ns`.
    pub(super) fn push(&mut self, bytes: &[u8], now_ns: i64) {
        let mut rest = bytes;
        while !rest.is_empty() && self.fault.is_none() {
            if let Err(fault) = self.step(&mut rest, now_ns) {
                self.fault = Some(fault);
            }
        }
    }

    /// The next whole request.
    pub(super) fn next(&mut self) -> Option<Request> {
        self.ready.pop_front()
    }

    /// Requests that wait for [`RequestReader::next`].
    pub(super) fn waiting(&self) -> usize {
        self.ready.len()
    }

    /// Why no further request will come, once those before it are taken.
    pub(super) fn fault(&self) -> Option<Fault> {
        self.fault.filter(|_| self.ready.is_empty())
    }

    /// Whether the client waits to be asked for a body; true once.
    pub(super) fn take_continue(&mut self) -> bool {
        std::mem::take(&mut self.continue_due)
    }

    fn step(&mut self, rest: &mut &[u8], now_ns: i64) -> Result<(), Fault> {
        match self.state {
            State::Idle => {
                // Empty lines between requests are passed.
                let blank = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
                *rest = &rest[blank..];
                if !rest.is_empty() {
                    self.request = Request { arrived_ns: now_ns, ..Request::default() };
                    self.state = State::Head;
                }
            }
            State::Head => {
                if let Some(head) = self.take_until(b"\r\n\r\n", MOCK_HEAD_BYTES_MAX, rest)? {
                    self.head(&head)?;
                }
            }
            State::Body(left) => {
                let left = left - self.take_body(left, rest);
                self.state = State::Body(left);
                if left == 0 {
                    self.complete();
                }
            }
            State::ChunkSize => {
                if let Some(line) = self.take_until(b"\r\n", 1024, rest)? {
                    self.chunk_size(&line)?;
                }
            }
            State::Chunk(left) => {
                let body = left.saturating_sub(2);
                let left = left - if body > 0 { self.take_body(body, rest) } else { 0 };
                self.state = State::Chunk(left);
                if left <= 2 && !rest.is_empty() {
                    let expected = if left == 2 { b'\r' } else { b'\n' };
                    if rest[0] != expected {
                        return Err(Fault { status: 400, words: "malformed chunk" });
                    }
                    *rest = &rest[1..];
                    self.state = if left == 1 { State::ChunkSize } else { State::Chunk(1) };
                }
            }
            State::Trailer => {
                if let Some(line) = self.take_until(b"\r\n", MOCK_HEAD_BYTES_MAX, rest)?
                    && line.len() == 2
                {
                    self.complete();
                }
            }
        }
        Ok(())
    }

    /// Bytes up to and including `end`, once they are whole.
    fn take_until(
        &mut self,
        end: &[u8],
        max: usize,
        rest: &mut &[u8],
    ) -> Result<Option<Vec<u8>>, Fault> {
        let from = self.cut.len().saturating_sub(end.len() - 1);
        let known = self.cut.len();
        let room = (max + 1 - known).min(rest.len());
        self.cut.extend_from_slice(&rest[..room]);
        let found = self.cut[from..].windows(end.len()).position(|window| window == end);
        let Some(found) = found else {
            if self.cut.len() > max {
                return Err(Fault { status: 431, words: "request head too long" });
            }
            *rest = &rest[room..];
            return Ok(None);
        };
        let length = from + found + end.len();
        *rest = &rest[length - known..];
        self.cut.truncate(length);
        Ok(Some(std::mem::take(&mut self.cut)))
    }

    fn take_body(&mut self, left: usize, rest: &mut &[u8]) -> usize {
        let here = left.min(rest.len());
        self.request.body.extend_from_slice(&rest[..here]);
        *rest = &rest[here..];
        here
    }

    fn head(&mut self, head: &[u8]) -> Result<(), Fault> {
        let mut headers = [EMPTY_HEADER; MOCK_HEADERS_MAX];
        let mut parsed = httparse::Request::new(&mut headers);
        match parsed.parse(head) {
            Ok(Status::Complete(_)) => {}
            Err(httparse::Error::TooManyHeaders) => {
                return Err(Fault { status: 431, words: "too many headers" });
            }
            _ => return Err(Fault { status: 400, words: "malformed request head" }),
        }
        let target = parsed.path.unwrap_or_default();
        self.request.method = parsed.method.unwrap_or_default().to_owned();
        self.request.path = target.split('?').next().unwrap_or_default().to_owned();
        self.request.keep_alive = parsed.version == Some(1);
        let mut framing = Framing::default();
        for header in parsed.headers.iter() {
            framing.read(header)?;
            self.field(header);
        }
        let expects = framing.expects_continue;
        match (framing.chunked, framing.length) {
            (true, Some(_)) => return Err(Fault { status: 400, words: "two kinds of framing" }),
            (true, None) => self.state = State::ChunkSize,
            (false, length) => {
                let length = length.unwrap_or(0);
                if length > MOCK_BODY_BYTES_MAX {
                    return Err(Fault { status: 413, words: "request body too long" });
                }
                self.request.body.reserve_exact(length);
                self.state = State::Body(length);
                if length == 0 {
                    self.complete();
                    return Ok(());
                }
            }
        }
        self.continue_due = expects;
        Ok(())
    }

    fn field(&mut self, header: &Header<'_>) {
        let text = || Some(String::from_utf8_lossy(header.value).into_owned());
        if header.name.eq_ignore_ascii_case("x-request-id") {
            self.request.request_id = text();
        } else if header.name.eq_ignore_ascii_case("x-correlation-id") {
            self.request.session = text();
        } else if header.name.eq_ignore_ascii_case("connection") {
            for option in header.value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
                if option.eq_ignore_ascii_case(b"close") {
                    self.request.keep_alive = false;
                } else if option.eq_ignore_ascii_case(b"keep-alive") {
                    self.request.keep_alive = true;
                }
            }
        }
    }

    fn chunk_size(&mut self, line: &[u8]) -> Result<(), Fault> {
        let malformed = Fault { status: 400, words: "malformed chunk size" };
        let digits = line.split(|byte| b";\r \t".contains(byte)).next().unwrap_or_default();
        let mut size = 0_usize;
        for &digit in digits {
            let value = char::from(digit).to_digit(16).ok_or(malformed)?;
            size = size.checked_mul(16).ok_or(malformed)? + value as usize;
        }
        if digits.is_empty() {
            return Err(malformed);
        }
        if size.saturating_add(self.request.body.len()) > MOCK_BODY_BYTES_MAX {
            return Err(Fault { status: 413, words: "request body too long" });
        }
        self.state = if size == 0 { State::Trailer } else { State::Chunk(size + 2) };
        Ok(())
    }

    fn complete(&mut self) {
        self.ready.push_back(std::mem::take(&mut self.request));
        self.state = State::Idle;
        self.continue_due = false;
    }
}

#[derive(Default)]
struct Framing {
    length: Option<usize>,
    chunked: bool,
    expects_continue: bool,
}

impl Framing {
    fn read(&mut self, header: &Header<'_>) -> Result<(), Fault> {
        if header.name.eq_ignore_ascii_case("content-length") {
            let text = str::from_utf8(header.value).unwrap_or_default();
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let length = text.parse().ok().filter(|_| digits);
            let malformed = Fault { status: 400, words: "malformed content length" };
            if length.is_none() || self.length.is_some_and(|known| Some(known) != length) {
                return Err(malformed);
            }
            self.length = length;
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            if !header.value.eq_ignore_ascii_case(b"chunked") {
                return Err(Fault { status: 501, words: "unknown transfer coding" });
            }
            self.chunked = true;
        } else if header.name.eq_ignore_ascii_case("expect") {
            self.expects_continue = header.value.eq_ignore_ascii_case(b"100-continue");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All requests, with one push for `step` bytes; the n-th push happens at n.
    fn read(bytes: &[u8], step: usize) -> (Vec<Request>, Option<Fault>) {
        let mut reader = RequestReader::new();
        let mut requests = Vec::new();
        for (now_ns, part) in (0..).zip(bytes.chunks(step)) {
            reader.push(part, now_ns);
            while let Some(request) = reader.next() {
                requests.push(request);
            }
        }
        (requests, reader.fault())
    }

    #[test]
    fn requests_are_read_in_any_split() {
        let bytes = b"POST /v1/completions?x=1 HTTP/1.1\r\nHost: a\r\nX-Request-ID: r-1\r\n\
            X-Correlation-ID: s\r\nContent-Length: 5\r\n\r\nhello\r\n\
            POST /two HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\
            3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nTrailer: x\r\n\r\n\
            GET /health HTTP/1.1\r\nConnection: close\r\n\r\nGET / HTTP/1.0\r\n\r\n";
        for step in 1..=bytes.len() {
            let (requests, fault) = read(bytes, step);
            assert_eq!(fault, None);
            let seen: Vec<_> = requests.iter().map(|r| (r.path.as_str(), &r.body[..])).collect();
            let hello = &b"hello"[..];
            assert_eq!(
                seen,
                [("/v1/completions", hello), ("/two", hello), ("/health", b""), ("/", b"")]
            );
            assert_eq!(requests[0].request_id.as_deref(), Some("r-1"));
            assert_eq!(requests[0].session.as_deref(), Some("s"));
            let kept: Vec<bool> = requests.iter().map(|request| request.keep_alive).collect();
            assert_eq!(kept, [true, true, false, false]);
        }
    }

    #[test]
    fn a_request_arrives_with_its_first_byte() {
        let one = b"GET /a HTTP/1.1\r\n\r\n";
        let bytes = [&one[..], one].concat();
        let (requests, _) = read(&bytes, one.len() + 1);
        assert_eq!(requests.iter().map(|request| request.arrived_ns).collect::<Vec<_>>(), [0, 0]);
        let (requests, _) = read(&bytes, one.len());
        assert_eq!(requests.iter().map(|request| request.arrived_ns).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn what_cannot_be_read_ends_the_connection() {
        let long = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "a".repeat(MOCK_HEAD_BYTES_MAX));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(MOCK_HEADERS_MAX + 1));
        for (bytes, status) in [
            ("nonsense\r\n\r\n", 400),
            (&long, 431),
            (&many, 431),
            ("POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", 413),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", 400),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc", 400),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\n", 413),
        ] {
            for step in [1, 7, bytes.len()] {
                let (requests, fault) = read(bytes.as_bytes(), step);
                assert_eq!(requests, []);
                assert_eq!(fault.map(|fault| fault.status), Some(status), "{bytes:.60}");
            }
        }
    }

    #[test]
    fn a_client_that_asks_first_is_answered_once() {
        let mut reader = RequestReader::new();
        let head = b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
        reader.push(head, 0);
        assert!(reader.take_continue());
        assert!(!reader.take_continue());
        reader.push(b"hi", 0);
        assert_eq!(reader.next().expect("whole").body, b"hi");
        reader.push(&[&head[..], b"hi"].concat(), 0);
        assert!(!reader.take_continue());
    }
}
