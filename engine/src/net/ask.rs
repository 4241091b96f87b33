//! One question to a server outside the workload: asked and answered before zero.
//!
//! A connection of its own, blocking, plain or TLS as the [`Way`] says; the whole answer is read,
//! then the connection is closed. Nothing here is timed, and nothing is asked twice.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::reach::{flush, probe};
use super::shortage::{Shortage, told};
use super::tls::{Fault, Phase, Session};
use super::way::Way;
use crate::clock::monotonic_ns;
use crate::error::EngineError;

/// Most bytes of an answer: lists of models are short.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// Most headers of an answer.
const HEADERS_MAX: usize = 128;
/// How often the user is listened to while a server is silent.
const GLANCE: Duration = Duration::from_millis(100);

/// What a server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// The body, without its framing.
    pub body: Vec<u8>,
}

/// Why there is no reply.
#[derive(Debug)]
pub struct NoReply {
    /// What went wrong.
    pub words: String,
    /// What is lacking here, if the server is not to blame.
    pub shortage: Option<Shortage>,
}

impl From<String> for NoReply {
    fn from(words: String) -> Self {
        Self { words, shortage: None }
    }
}

impl From<io::Error> for NoReply {
    fn from(error: io::Error) -> Self {
        Self { words: told(&error), shortage: Shortage::of(&error) }
    }
}

impl From<Fault> for NoReply {
    fn from(fault: Fault) -> Self {
        fault.to_string().into()
    }
}

impl NoReply {
    /// The end of a run that cannot begin for it, if it is this host's own doing.
    #[must_use]
    pub fn ours(&self) -> Option<EngineError> {
        self.shortage?;
        Some(EngineError::Run(format!("could not connect to the server: {}", self.words)))
    }
}

/// Sends `request`, a whole HTTP/1.1 request that asks for the connection to be closed, and reads
/// the answer. Gives up after `patience_ns`, or as soon as `go_on` says no.
///
/// # Errors
/// What went wrong, in words, and whose doing it is.
pub fn ask(
    way: &Way,
    request: &[u8],
    patience_ns: i64,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Reply, NoReply> {
    let until_ns = monotonic_ns().saturating_add(patience_ns);
    let socket = probe(way, 0).map_err(io::Error::from)?;
    // Whatever kind of stream socket it is: it is read from and written to.
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(GLANCE))?;
    let session = way.tls.as_ref().map(|client| client.begin()).transpose()?;
    let mut conversation = Conversation { session, answer: Vec::new() };
    conversation.send(&mut stream, request)?;
    loop {
        if let Some(reply) = reply_of(&conversation.answer, false)? {
            return Ok(reply);
        }
        if !go_on() {
            return Err("given up".to_owned().into());
        }
        if monotonic_ns() >= until_ns {
            return Err(format!("no answer within {:.1} s", patience_ns as f64 / 1e9).into());
        }
        if conversation.answer.len() > ANSWER_BYTES_MAX {
            return Err("the answer is longer than 4 MiB".to_owned().into());
        }
        if !conversation.receive(&mut stream, request)? {
            let whole = reply_of(&conversation.answer, true)?;
            return whole.ok_or_else(|| "closed before the answer was whole".to_owned().into());
        }
    }
}

/// Both directions of a question.
struct Conversation {
    session: Option<Session>,
    answer: Vec<u8>,
}

impl Conversation {
    /// Sends the request, or what comes before it.
    fn send(&mut self, stream: &mut TcpStream, request: &[u8]) -> io::Result<()> {
        match &mut self.session {
            None => stream.write_all(request),
            Some(session) => flush(stream, session),
        }
    }

    /// One read; `false` at the end.
    fn receive(&mut self, stream: &mut TcpStream, request: &[u8]) -> Result<bool, NoReply> {
        let mut buffer = [0; 16_384];
        let count = match stream.read(&mut buffer) {
            Ok(count) => count,
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock
                | io::ErrorKind::TimedOut
                | io::ErrorKind::Interrupted => return Ok(true),
                _ => return Err(error.into()),
            },
        };
        let Some(session) = &mut self.session else {
            self.answer.extend_from_slice(&buffer[..count]);
            return Ok(count > 0);
        };
        if count == 0 {
            return Ok(false);
        }
        let before = session.phase();
        let phase = session.receive(&buffer[..count], &mut self.answer);
        let after = phase?;
        if before == Phase::Handshake && after == Phase::Open {
            session.seal(request)?;
        }
        flush(stream, session)?;
        Ok(after != Phase::Closed)
    }
}

/// The answer in `bytes`, if it is whole; `ended`: no more will come.
fn reply_of(mut bytes: &[u8], ended: bool) -> Result<Option<Reply>, String> {
    loop {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut headers);
        let parsed = response.parse(bytes).map_err(|error| format!("no HTTP/1 answer: {error}"))?;
        let httparse::Status::Complete(length) = parsed else { return Ok(None) };
        let status = response.code.unwrap_or(0);
        let rest = &bytes[length..];
        if (100..200).contains(&status) {
            bytes = rest;
            continue;
        }
        let header = |name: &str| {
            let mut all = response.headers.iter().filter(|it| it.name.eq_ignore_ascii_case(name));
            all.next().map(|header| String::from_utf8_lossy(header.value).to_ascii_lowercase())
        };
        let body = if header("transfer-encoding").is_some_and(|value| value.contains("chunked")) {
            chunks(rest)?
        } else if let Some(length) = header("content-length") {
            let length: usize = length
                .trim()
                .parse()
                .map_err(|_no_number| "its Content-Length is no number".to_owned())?;
            rest.get(..length).map(<[u8]>::to_vec)
        } else {
            ended.then(|| rest.to_vec())
        };
        return Ok(body.map(|body| Reply { status, body }));
    }
}

/// The body in `bytes`, which come in chunks; `None` before the last one.
fn chunks(mut bytes: &[u8]) -> Result<Option<Vec<u8>>, String> {
    let mut body = Vec::new();
    loop {
        let size = httparse::parse_chunk_size(bytes);
        let size = size.map_err(|_invalid| "a chunk's size is no number".to_owned())?;
        let httparse::Status::Complete((start, size)) = size else { return Ok(None) };
        if size == 0 {
            return Ok(Some(body));
        }
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let end = start.saturating_add(size);
        let Some(chunk) = bytes.get(start..end) else { return Ok(None) };
        body.extend_from_slice(chunk);
        let Some(rest) = bytes.get(end + 2..) else { return Ok(None) };
        bytes = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(text: &str, ended: bool) -> Option<(u16, String)> {
        let reply = reply_of(text.as_bytes(), ended).expect("an answer");
        reply.map(|it| (it.status, String::from_utf8(it.body).expect("text")))
    }

    #[test]
    fn answers_of_every_framing_are_read_once_they_are_whole() {
        for (text, body) in [
            ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", "ok"),
            ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", "x"),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
                "abc",
            ),
        ] {
            assert_eq!(reply(text, false), Some((200, body.to_owned())), "{text}");
            for cut in 0..text.len() - 4 {
                assert_eq!(reply(&text[..cut], false), None, "{cut} of {text}");
            }
        }
        let closing = "HTTP/1.0 503 Busy\r\n\r\nlater";
        assert_eq!(reply(closing, false), None);
        assert_eq!(reply(closing, true), Some((503, "later".to_owned())));
        assert!(reply_of(b"SSH-2.0-server\r\n", false).is_err());
        let wrong = b"HTTP/1.1 200 OK\r\nContent-Length: hunter2\r\n\r\n";
        let words = reply_of(wrong, false).expect_err("no number");
        assert_eq!(words, "its Content-Length is no number", "it may be anything");
    }
}
