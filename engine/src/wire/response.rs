//! The head of an answer: status, and how its body is framed.
//!
//! [`HeadEnd`] finds where a head ends in bytes of any split; [`parse`] reads one whole head with
//! httparse and decides the framing by RFC 9112, section 6.3. Lean and odd but legal heads pass (no
//! reason phrase, folded values, bare line feeds); contradictory framing does not, because the next
//! answer on the connection would start at a place of the server's choosing.

use std::mem::MaybeUninit;

use httparse::{Header, ParserConfig, Response};
use memchr::{memchr, memrchr};

use super::words::Words;
use crate::limits::HEADERS_MAX;

/// A parsed head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) framing: Framing,
    /// The server keeps the connection open, as far as the head says.
    pub(super) keep_alive: bool,
    pub(super) content: Content,
}

/// How the body's end is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// So many bytes.
    Length(u64),
    Chunked,
    /// By the end of the connection.
    Close,
}

/// What the head says the body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    EventStream,
    Json,
    /// A type that is neither.
    Other,
    /// The head does not say.
    Unsaid,
    /// Compressed, although we asked for plain bytes.
    Encoded,
}

/// Why a head is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeadError {
    Malformed,
    /// Contradictory or unknown framing.
    Framing,
    TooManyHeaders,
}

/// Finds the end of a head: the first empty line behind at least one line that is not empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeadEnd {
    line: Line,
    any_line: bool,
    /// Bytes of `HTTP/1.` that have matched.
    matched: usize,
    /// The last byte was a CR of an empty line before them.
    after_cr: bool,
}

/// What the current line holds so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Nothing,
    /// A CR alone.
    Cr,
    More,
}

/// What every answer we can read starts with.
const PREFIX: &[u8] = b"HTTP/1.";

/// What a search for the end of a head found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Search {
    /// The head goes on.
    More,
    /// So many bytes of the slice belong to the head, and it is complete.
    End(usize),
    /// This is not HTTP/1.
    NotHttp,
}

impl HeadEnd {
    pub(super) const fn new() -> Self {
        Self { line: Line::Nothing, any_line: false, matched: 0, after_cr: false }
    }

    /// Looks at the next bytes of the head.
    pub(super) fn search(&mut self, bytes: &[u8]) -> Search {
        if self.matched < PREFIX.len() && !self.is_http(bytes) {
            return Search::NotHttp;
        }
        let mut from = 0;
        while let Some(length) = memchr(b'\n', &bytes[from..]) {
            let line = self.line.and(&bytes[from..from + length]);
            from += length + 1;
            self.line = Line::Nothing;
            if line == Line::More {
                self.any_line = true;
            } else if self.any_line {
                return Search::End(from);
            }
        }
        self.line = self.line.and(&bytes[from..]);
        Search::More
    }

    /// Whether the bytes so far, empty lines before them apart, agree with [`PREFIX`].
    fn is_http(&mut self, bytes: &[u8]) -> bool {
        for &byte in bytes {
            match (self.matched, byte) {
                (0, b'\n') => self.after_cr = false,
                _ if self.after_cr => return false,
                (0, b'\r') => self.after_cr = true,
                (matched, _) if PREFIX.get(matched) == Some(&byte) => self.matched += 1,
                (matched, _) => return matched == PREFIX.len(),
            }
        }
        true
    }
}

/// The latest head of a connection: most servers begin their answers of one second alike.
#[derive(Debug)]
pub(super) struct Known {
    /// Empty while there is none.
    bytes: Vec<u8>,
    head: Head,
}

/// Longest delay that is quoted: a date has 29 bytes.
const DELAY_BYTES_MAX: usize = 64;
/// Longest head that is kept.
const KNOWN_BYTES_MAX: usize = 512;

impl Known {
    pub(super) fn new() -> Self {
        let (framing, content) = (Framing::Close, Content::Unsaid);
        let head = Head { status: 0, framing, keep_alive: false, content };
        Self { bytes: Vec::with_capacity(KNOWN_BYTES_MAX), head }
    }

    /// The head that an answer of these first bytes has, and its length, if it is the one known.
    #[inline]
    pub(super) fn find(&self, bytes: &[u8]) -> Option<(Head, usize)> {
        let length = self.bytes.len();
        (length > 0 && bytes.starts_with(&self.bytes)).then_some((self.head, length))
    }

    /// Keeps `head`, which was read from `bytes`, if it is one of a success: others have words.
    pub(super) fn keep(&mut self, bytes: &[u8], head: Head) {
        if bytes.len() <= KNOWN_BYTES_MAX && (200..=299).contains(&head.status) {
            self.bytes.clear();
            self.bytes.extend_from_slice(bytes);
            self.head = head;
        }
    }
}

impl Line {
    /// This line continued by `bytes`.
    fn and(self, bytes: &[u8]) -> Self {
        match (self, bytes) {
            (_, []) => self,
            (Self::Nothing, b"\r") => Self::Cr,
            _ => Self::More,
        }
    }
}

/// Reads a whole head. Words about a redirect or a retry delay are added to `words`.
pub(super) fn parse(head: &[u8], words: &mut Words) -> Result<Head, HeadError> {
    let mut space = [const { MaybeUninit::<Header<'_>>::uninit() }; HEADERS_MAX];
    let mut response = Response::new(&mut []);
    let parsed = ParserConfig::default()
        .allow_obsolete_multiline_headers_in_responses(true)
        .parse_response_with_uninit_headers(&mut response, head, &mut space);
    match parsed {
        Ok(httparse::Status::Complete(length)) if length == head.len() => {}
        Err(httparse::Error::TooManyHeaders) => return Err(HeadError::TooManyHeaders),
        _ => return Err(HeadError::Malformed),
    }
    let status = response.code.ok_or(HeadError::Malformed)?;
    let version_one = response.version == Some(1);
    let mut fields = Fields::default();
    for header in response.headers.iter() {
        fields.read(header)?;
    }
    let framing = fields.framing(status)?;
    // RFC 9112, 6.1: chunked in HTTP/1.0 is read, but the connection cannot be trusted after it.
    let keep_alive = match framing {
        Framing::Close => false,
        Framing::Chunked if !version_one => false,
        _ => !fields.close && (version_one || fields.keep_alive),
    };
    match status {
        300..=399 => match fields.location {
            Some(place) => {
                words.say(format_args!("redirect {status} to "));
                quote_place(place, words);
            }
            None => words.say(format_args!("redirect {status} without a Location")),
        },
        _ if status >= 400 => {
            if let Some(delay) = fields.retry_after {
                words.say(format_args!("retry-after "));
                match delay.len() {
                    0..=DELAY_BYTES_MAX => words.quote(delay),
                    // A secret that was cut in its middle could be told no more.
                    length => words.say(format_args!("of {length} bytes, which is no delay")),
                }
            }
        }
        _ => {}
    }
    Ok(Head { status, framing, keep_alive: keep_alive && status != 101, content: fields.content() })
}

/// Quotes where a redirect leads, without the parts of the address that may hold a secret.
fn quote_place(place: &[u8], words: &mut Words) {
    let place = place.split(|byte| matches!(byte, b'?' | b'#')).next().unwrap_or_default();
    let authority = place.windows(2).position(|pair| pair == b"//").map_or(0, |at| at + 2);
    let end = memchr(b'/', &place[authority..]).map_or(place.len(), |at| authority + at);
    let host = memrchr(b'@', &place[authority..end]).map_or(authority, |at| authority + at + 1);
    words.quote(&place[..authority]);
    words.quote(&place[host..]);
}

/// The header fields that matter.
#[derive(Default)]
struct Fields<'a> {
    length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
    content_type: Option<&'a [u8]>,
    encoded: bool,
    location: Option<&'a [u8]>,
    retry_after: Option<&'a [u8]>,
}

impl<'a> Fields<'a> {
    fn read(&mut self, header: &Header<'a>) -> Result<(), HeadError> {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        // The first letter and the length keep most headers from being compared at all.
        let first = header.name.bytes().next().unwrap_or(0).to_ascii_lowercase();
        match (first, header.name.len()) {
            (b'c', 14) if is("content-length") => self.length(header.value)?,
            (b't', 17) if is("transfer-encoding") => self.transfer_encoding(header.value)?,
            (b'c', 10) if is("connection") => {
                for option in list(header.value) {
                    self.close |= option.eq_ignore_ascii_case(b"close");
                    self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            (b'c', 12) if is("content-type") => self.content_type = Some(header.value),
            (b'c', 16) if is("content-encoding") => {
                self.encoded |= list(header.value).any(is_packing);
            }
            (b'l', 8) if is("location") => self.location = Some(header.value),
            (b'r', 11) if is("retry-after") => self.retry_after = Some(header.value),
            _ => {}
        }
        Ok(())
    }

    /// One or more equal lengths; digits only.
    fn length(&mut self, value: &[u8]) -> Result<(), HeadError> {
        for part in list(value) {
            if part.is_empty() || !part.iter().all(u8::is_ascii_digit) {
                return Err(HeadError::Framing);
            }
            let text = str::from_utf8(part).map_err(|_not_digits| HeadError::Framing)?;
            let length = text.parse().map_err(|_too_large| HeadError::Framing)?;
            if self.length.is_some_and(|known| known != length) {
                return Err(HeadError::Framing);
            }
            self.length = Some(length);
        }
        Ok(())
    }

    /// `chunked` once is the only coding we understand; `identity` is none.
    fn transfer_encoding(&mut self, value: &[u8]) -> Result<(), HeadError> {
        for coding in list(value) {
            if coding.eq_ignore_ascii_case(b"chunked") && !self.chunked {
                self.chunked = true;
            } else if !coding.eq_ignore_ascii_case(b"identity") {
                return Err(HeadError::Framing);
            }
        }
        Ok(())
    }

    fn framing(&self, status: u16) -> Result<Framing, HeadError> {
        match (status, self.chunked, self.length) {
            (100..=199 | 204 | 304, _, _) => Ok(Framing::Length(0)),
            (_, true, Some(_)) => Err(HeadError::Framing),
            (_, true, None) => Ok(Framing::Chunked),
            (_, false, Some(length)) => Ok(Framing::Length(length)),
            (_, false, None) => Ok(Framing::Close),
        }
    }

    fn content(&self) -> Content {
        if self.encoded {
            return Content::Encoded;
        }
        let Some(value) = self.content_type else { return Content::Unsaid };
        let end = memchr(b';', value).unwrap_or(value.len());
        let media = value[..end].trim_ascii();
        let ends_with = |suffix: &[u8]| {
            media.len() >= suffix.len()
                && media[media.len() - suffix.len()..].eq_ignore_ascii_case(suffix)
        };
        if media.eq_ignore_ascii_case(b"text/event-stream") {
            Content::EventStream
        } else if ends_with(b"/json") || ends_with(b"+json") {
            Content::Json
        } else {
            Content::Other
        }
    }
}

/// Whether a content coding compresses. Some servers write `none` or the charset there, which says
/// nothing about the bytes.
fn is_packing(coding: &[u8]) -> bool {
    const CODINGS: [&str; 9] =
        ["gzip", "x-gzip", "deflate", "br", "zstd", "compress", "x-compress", "dcb", "dcz"];
    CODINGS.iter().any(|known| coding.eq_ignore_ascii_case(known.as_bytes()))
}

/// The elements of a comma-separated list.
fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(lines: &str) -> Result<Head, HeadError> {
        let text = format!("{}\r\n\r\n", lines.replace('|', "\r\n"));
        let mut search = HeadEnd::new();
        assert_eq!(search.search(text.as_bytes()), Search::End(text.len()), "{text:?}");
        parse(text.as_bytes(), &mut Words::new())
    }

    fn framing(lines: &str) -> Result<(Framing, bool), HeadError> {
        head(&format!("HTTP/1.1 200 OK{lines}")).map(|head| (head.framing, head.keep_alive))
    }

    #[test]
    fn framing_follows_the_rfc() {
        let length = |bytes| Ok((Framing::Length(bytes), true));
        assert_eq!(framing("|Content-Length: 60"), length(60));
        assert_eq!(framing("|content-length:60 |CONTENT-LENGTH: 60,  60"), length(60));
        assert_eq!(framing("|Transfer-Encoding: Chunked"), Ok((Framing::Chunked, true)));
        assert_eq!(framing("|Transfer-Encoding: identity|Content-Length: 1"), length(1));
        assert_eq!(framing(""), Ok((Framing::Close, false)));
        assert_eq!(framing("|Connection: keep-alive"), Ok((Framing::Close, false)));
        for doubtful in [
            "|Content-Length: 1|Content-Length: 2",
            "|Content-Length: 1, 2",
            "|Content-Length: +1",
            "|Content-Length: 1|Transfer-Encoding: chunked",
            "|Content-Length: -1",
            "|Content-Length:",
            "|Content-Length: 0x1",
            "|Content-Length: 1 2",
            "|Content-Length: 6| 0",
            "|Content-Length: 18446744073709551616",
            "|Transfer-Encoding: gzip, chunked",
            "|Transfer-Encoding: chunked, chunked",
            "|Transfer-Encoding: chunked|Transfer-Encoding: chunked",
            "|Transfer-Encoding: xchunked",
            "|Transfer-Encoding:",
        ] {
            assert_eq!(framing(doubtful), Err(HeadError::Framing), "{doubtful}");
        }
    }

    #[test]
    fn a_head_is_known_by_all_of_its_bytes() {
        let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n";
        let head = parse(bytes, &mut Words::new()).expect("legal");
        let mut known = Known::new();
        assert_eq!(known.find(bytes), None);
        known.keep(bytes, head);
        let answer = [&bytes[..], b"content"].concat();
        assert_eq!(known.find(&answer), Some((head, bytes.len())));
        assert_eq!(known.find(&bytes[..bytes.len() - 1]), None);
        assert_eq!(known.find(&answer.to_ascii_lowercase()), None);
        known.keep(b"HTTP/1.1 503 Busy\r\n\r\n", Head { status: 503, ..head });
        assert_eq!(known.find(&answer), Some((head, bytes.len())));
    }

    #[test]
    fn connections_are_kept_only_when_both_sides_may() {
        let kept = |start: &str, lines: &str| {
            head(&format!("HTTP/{start} X|Content-Length: 0{lines}")).expect("a head").keep_alive
        };
        assert!(kept("1.1 200", ""));
        assert!(!kept("1.1 200", "|Connection: Close"));
        assert!(!kept("1.1 200", "|Connection: foo|connection: bar, close"));
        assert!(!kept("1.0 200", ""));
        assert!(kept("1.0 200", "|Connection: Keep-Alive"));
        assert!(!kept("1.1 101", ""));
        let old = head("HTTP/1.0 200 OK|Connection: keep-alive|Transfer-Encoding: chunked");
        assert!(!old.expect("a head").keep_alive);
    }

    #[test]
    fn bodies_that_cannot_be_have_no_length() {
        for status in [103, 204, 304] {
            let head = head(&format!("HTTP/1.1 {status} X|Content-Length: 9")).expect("a head");
            assert_eq!(head.framing, Framing::Length(0));
        }
    }

    #[test]
    fn lean_and_odd_heads_are_legal() {
        for lines in [
            "HTTP/1.1 200 ",
            "HTTP/1.1 200",
            "HTTP/1.1 200 OK|x-fold: a|\tb|x-e:|x-t:\tv ",
            "HTTP/1.0 200 \u{e9}",
            "||HTTP/1.1 200 OK",
        ] {
            assert_eq!(head(lines).map(|head| head.status), Ok(200), "{lines}");
        }
        let bare = b"HTTP/1.1 200 OK\nContent-Length: 3\n\n";
        assert_eq!(HeadEnd::new().search(bare), Search::End(bare.len()));
        assert_eq!(parse(bare, &mut Words::new()).expect("legal").framing, Framing::Length(3));
    }

    #[test]
    fn malformed_heads_are_refused() {
        for lines in [
            "HTTP/1.1 20 OK",
            "HTTP/1.1 OK",
            "HTTP/1.2 200 OK",
            "HTTP/1.1  200 OK",
            "HTTP/1.1",
            "HTTP/1.1 200 OK|no colon",
            "HTTP/1.1 200 OK|: x",
            "HTTP/1.1 200 OK|a b: c",
            "HTTP/1.1 200 OK|Content-Length : 3",
            "HTTP/1.1 200 OK| x: y",
            "HTTP/1.1 200 OK|a: \0",
        ] {
            assert_eq!(head(lines), Err(HeadError::Malformed), "{lines}");
        }
        let headers = |count: usize| head(&format!("HTTP/1.1 200 OK{}", "|a: b".repeat(count)));
        assert!(headers(HEADERS_MAX).is_ok());
        assert_eq!(headers(HEADERS_MAX + 1), Err(HeadError::TooManyHeaders));
    }

    #[test]
    fn redirects_are_quoted_without_secrets() {
        let quoted = |place: &str| {
            let mut words = Words::new();
            quote_place(place.as_bytes(), &mut words);
            String::from_utf8(words.as_bytes().to_vec()).expect("UTF-8")
        };
        assert_eq!(quoted("https://me:pass@host:1/v2?key=1#x"), "https://host:1/v2");
        assert_eq!(quoted("/v2/chat/completions"), "/v2/chat/completions");
        assert_eq!(quoted("//me@host"), "//host");
        assert_eq!(quoted("http://host/a@b"), "http://host/a@b");
    }

    #[test]
    fn the_end_is_found_in_any_split() {
        let text = b"\r\nHTTP/1.1 200 OK\r\na: b\nc: d\r\n\r\nbody\r\n\r\n";
        let expected = text.len() - b"body\r\n\r\n".len();
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let mut search = HeadEnd::new();
                let mut passed = 0;
                let mut found = None;
                for part in [&text[..first], &text[first..second], &text[second..]] {
                    if let Search::End(used) = search.search(part) {
                        found = Some(passed + used);
                        break;
                    }
                    passed += part.len();
                }
                assert_eq!(found, Some(expected), "{first} {second}");
            }
        }
    }

    #[test]
    fn other_protocols_are_known_by_their_first_byte() {
        for bytes in
            [&b"SSH-2.0-x\r\n"[..], b"\x15\x03\x01", b"\0\0\x12\x04", b"HTTP/2 200", b"<html>"]
        {
            assert_eq!(HeadEnd::new().search(bytes), Search::NotHttp);
        }
        assert_eq!(HeadEnd::new().search(b"HTT"), Search::More);
    }
}
