//! One answer from its first byte to its end: where heads, framing, events and facts meet.
//!
//! The rules that join them:
//!
//! * A status other than 2xx decides the class, whatever its body does.
//! * `[DONE]` is the end of a stream by the server's own word; one that has said nothing before it
//!   is an empty answer. The rest of the framing is read, so that the connection can be used again;
//!   but a missing last chunk, an early close or broken framing behind `[DONE]` only costs the
//!   connection, not the answer.
//! * Without `[DONE]`, an answer is complete when its framing ends *and* a finish reason was read.
//!   A finish reason alone does not excuse a body that was cut: usage may be missing from it.
//! * Bytes behind an answer's end belong to nobody: flagged, and the connection is not used again.
//!   Events between `[DONE]` and a proper end of the body are flagged as well, but their framing is
//!   sound, so the connection is kept.
//! * What a body is, its first bytes decide rather than its declared type alone, because proxies
//!   lie in both directions: `{` is JSON, `<` is somebody's web page, `data:` is an event stream.

use onbeat_shared::log::outcome::{Class, FinishReason};
use onbeat_shared::log::record::DoneFlags;

use super::body::{Body, Fault};
use super::facts::Facts;
use super::response::{self, Head, HeadEnd, HeadError, Known, Search};
use super::{Answer, AnswerEnd};
use crate::limits::{EVENT_BYTES_KEPT, HEAD_BYTES_MAX, HEADERS_MAX, INTERIM_HEADS_MAX};

/// Room for a kept event and the field name and line ends around it.
const BUFFER_BYTES: usize = EVENT_BYTES_KEPT + 1024;

/// Reads one answer after another on one connection; its buffers are kept between answers.
#[derive(Debug)]
pub struct AnswerReader {
    phase: Phase,
    streaming: bool,
    head_end: HeadEnd,
    known: Known,
    interim_heads: u32,
    status: Option<u16>,
    keep_alive: bool,
    body: Body,
    facts: Facts,
    /// A cut head, then whatever the body has to keep.
    buffer: Vec<u8>,
    bytes: u64,
}

/// How far an answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nothing of its head has arrived, or only interim answers.
    BeforeHead,
    /// A part of a head has arrived.
    Head,
    /// Its head is whole.
    Body,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Head,
    Body,
    Ended,
}

/// How the bytes of an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// As the framing promised.
    Complete,
    /// We stopped reading.
    Fault(Class),
    /// Closed too early.
    Closed,
    Reset,
}

impl AnswerReader {
    /// A reader with its buffers, about 66 KiB of them.
    #[must_use]
    pub fn new() -> Self {
        Self {
            phase: Phase::Ended,
            streaming: true,
            head_end: HeadEnd::new(),
            known: Known::new(),
            interim_heads: 0,
            status: None,
            keep_alive: false,
            body: Body::none(),
            facts: Facts::new(),
            buffer: Vec::with_capacity(BUFFER_BYTES),
            bytes: 0,
        }
    }

    /// Makes ready for the answer to the next request; `streaming` is what the request asked for,
    /// and decides only what no byte of the answer says.
    pub fn begin(&mut self, streaming: bool) {
        self.phase = Phase::Head;
        self.streaming = streaming;
        self.head_end = HeadEnd::new();
        self.interim_heads = 0;
        self.status = None;
        self.keep_alive = false;
        self.body = Body::none();
        self.facts.clear();
        self.buffer.clear();
        self.bytes = 0;
    }

    /// Hands out what the answer says ([`Answer::Text`]), until the next [`AnswerReader::begin`].
    pub const fn keep_text(&mut self) {
        self.facts.keeps_text = true;
    }

    /// Takes the bytes of one read and tells `sink` what they meant. Returns the end as soon as it
    /// is known; the connection is then either reusable or to be closed.
    ///
    /// # Panics
    /// When no answer is expected: before [`AnswerReader::begin`] and after an end.
    pub fn push(&mut self, bytes: &[u8], sink: &mut impl FnMut(Answer<'_>)) -> Option<AnswerEnd> {
        assert!(self.phase != Phase::Ended, "bytes are pushed only while an answer is expected");
        let mut rest = bytes;
        let how = self.advance(&mut rest, sink);
        self.bytes += (bytes.len() - rest.len()) as u64;
        // Behind a fault nothing can be told apart, so nothing is called stray.
        how.map(|how| self.end(how, how == How::Complete && !rest.is_empty(), sink))
    }

    /// The peer closed the connection, or reset it.
    ///
    /// # Panics
    /// When no answer is expected: before [`AnswerReader::begin`] and after an end.
    pub fn close(&mut self, reset: bool, sink: &mut impl FnMut(Answer<'_>)) -> AnswerEnd {
        assert!(self.phase != Phase::Ended, "an end is asked for only while an answer is expected");
        let how = match self.phase {
            _ if reset => How::Reset,
            Phase::Body if self.body.ends_by_close() => How::Complete,
            _ => How::Closed,
        };
        self.end(how, false, sink)
    }

    /// Whether any byte of the answer has arrived.
    #[must_use]
    pub fn started(&self) -> bool {
        self.bytes > 0
    }

    /// How far the answer has come.
    #[must_use]
    pub fn place(&self) -> Place {
        match self.phase {
            Phase::Head if self.buffer.is_empty() => Place::BeforeHead,
            Phase::Head => Place::Head,
            Phase::Body | Phase::Ended => Place::Body,
        }
    }

    /// Whether the outcome can no longer change although the answer's bytes have not ended:
    /// `[DONE]`, a failure or an error status was read. A caller whose time limit passes then
    /// should [`AnswerReader::close`] instead of recording a timeout.
    #[must_use]
    pub fn settled(&self) -> bool {
        self.facts.done || self.facts.trouble.is_some() || !self.status.is_none_or(is_success)
    }

    /// Goes on until the bytes are used up (`None`) or the answer has ended.
    fn advance(&mut self, rest: &mut &[u8], sink: &mut impl FnMut(Answer<'_>)) -> Option<How> {
        while self.phase == Phase::Head {
            match self.head(rest, sink) {
                Ok(true) => {}
                Ok(false) => return None,
                Err(class) => return Some(How::Fault(class)),
            }
        }
        match self.body.advance(rest, &mut self.buffer, &mut self.facts, sink) {
            Ok(true) => Some(How::Complete),
            Ok(false) => None,
            Err(fault) => Some(How::Fault(self.describe(fault))),
        }
    }

    /// Reads the rest of a head; `Ok(false)` when it goes on behind these bytes.
    fn head(&mut self, rest: &mut &[u8], sink: &mut impl FnMut(Answer<'_>)) -> Result<bool, Class> {
        if self.buffer.is_empty()
            && let Some((head, used)) = self.known.find(rest)
        {
            *rest = &rest[used..];
            self.begin_body(&head, sink);
            return Ok(true);
        }
        let (used, is_whole) = match self.head_end.search(rest) {
            Search::NotHttp => return Err(self.not_http(rest)),
            Search::More => (rest.len(), false),
            Search::End(used) => (used, true),
        };
        if self.buffer.len() + used > HEAD_BYTES_MAX {
            self.facts.words.say(format_args!("a head of more than {HEAD_BYTES_MAX} bytes"));
            return Err(Class::OverLimit);
        }
        let (piece, behind) = rest.split_at(used);
        *rest = behind;
        if !is_whole {
            self.buffer.extend_from_slice(piece);
            return Ok(false);
        }
        let piece = if self.buffer.is_empty() {
            piece
        } else {
            self.buffer.extend_from_slice(piece);
            &self.buffer
        };
        let head = match response::parse(piece, &mut self.facts.words) {
            Ok(head) => head,
            Err(error) => return Err(self.bad_head(error)),
        };
        self.known.keep(piece, head);
        self.buffer.clear();
        if (100..=199).contains(&head.status) && head.status != 101 {
            self.interim_heads += 1;
            if self.interim_heads > INTERIM_HEADS_MAX {
                self.facts.words.say(format_args!("more than {INTERIM_HEADS_MAX} interim answers"));
                return Err(Class::OverLimit);
            }
            self.head_end = HeadEnd::new();
            return Ok(true);
        }
        self.begin_body(&head, sink);
        Ok(true)
    }

    fn begin_body(&mut self, head: &Head, sink: &mut impl FnMut(Answer<'_>)) {
        self.phase = Phase::Body;
        self.status = Some(head.status);
        self.keep_alive = head.keep_alive;
        self.body = Body::new(head, self.streaming && is_success(head.status));
        sink(Answer::Head { status: head.status });
    }

    /// Everything is known: the last facts and the end.
    fn end(&mut self, how: How, stray: bool, sink: &mut impl FnMut(Answer<'_>)) -> AnswerEnd {
        let in_body = self.phase == Phase::Body;
        self.phase = Phase::Ended;
        if in_body && how == How::Complete {
            self.body.finish(&mut self.buffer, &mut self.facts, sink);
        }
        let class = self.class(how);
        if class != Class::Ok {
            self.explain(how, class);
            if !self.facts.words.is_empty() {
                sink(Answer::ErrorText(self.facts.words.as_bytes()));
            }
        }
        if let Some(usage) = self.facts.usage {
            sink(Answer::Usage(usage));
        }
        if self.buffer.capacity() > 4 * BUFFER_BYTES {
            // One huge event must not hold its memory until the connection's next answer, which may
            // never come.
            self.buffer = Vec::with_capacity(BUFFER_BYTES);
        }
        let broken_behind_done = self.facts.done && matches!(how, How::Fault(_));
        let mut flags = DoneFlags::default();
        if self.facts.done {
            flags = flags.with(DoneFlags::DONE_MARK);
        }
        if stray || self.facts.stray || broken_behind_done {
            flags = flags.with(DoneFlags::STRAY_BYTES);
        }
        AnswerEnd {
            class,
            status: self.status,
            finish: self.facts.finish,
            flags,
            response_bytes: self.bytes,
            reusable: how == How::Complete && self.keep_alive && !stray,
        }
    }

    fn class(&self, how: How) -> Class {
        if let Some(status) = self.status.filter(|&status| !is_success(status)) {
            return Class::of_status(status);
        }
        if let Some(trouble) = self.facts.trouble {
            return trouble;
        }
        if self.facts.is_done_with_nothing() {
            return Class::EmptyAnswer;
        }
        if self.facts.done {
            return Class::Ok;
        }
        match how {
            How::Fault(class) => class,
            How::Closed | How::Reset if self.bytes == 0 => Class::ResetBeforeAnswer,
            How::Closed => Class::TruncatedBody,
            How::Reset => Class::ResetMidAnswer,
            How::Complete if self.body.is_empty() => Class::EmptyAnswer,
            How::Complete if self.facts.finish == FinishReason::Unknown => Class::NoFinish,
            How::Complete => Class::Ok,
        }
    }

    /// Adds words to a failure that has none of its own.
    fn explain(&mut self, how: How, class: Class) {
        let words = &mut self.facts.words;
        if self.status.is_some_and(|status| !is_success(status)) {
            self.body.quote_refusal(&self.buffer, words);
            return;
        }
        if !words.is_empty() {
            return;
        }
        match (how, class) {
            (_, Class::EmptyAnswer) if self.facts.done => {
                words.say(format_args!("[DONE] behind no content and no finish reason"));
            }
            (_, Class::ErrorEvent) => words.say(format_args!("an error without words")),
            (How::Complete, Class::EmptyAnswer) => words.say(format_args!("no body")),
            (How::Complete, Class::NoFinish) => self.body.say_unfinished(&mut self.facts),
            (How::Complete, Class::WrongContentType) => {
                self.body.quote_foreign(&self.buffer, words)
            }
            (How::Closed, Class::ResetBeforeAnswer) => {
                words.say(format_args!("closed before any byte of the answer"));
            }
            (How::Reset, Class::ResetBeforeAnswer) => {
                words.say(format_args!("reset before any byte of the answer"));
            }
            (How::Closed, Class::TruncatedBody) if self.status.is_some() => {
                self.body.say_cut(words)
            }
            (How::Closed, Class::TruncatedBody) if self.buffer.is_empty() => {
                words.say(format_args!("closed behind an interim answer, before the answer"));
            }
            (How::Closed, Class::TruncatedBody) => {
                words.say(format_args!("truncated: {} bytes of a head", self.buffer.len()));
            }
            (How::Reset, Class::ResetMidAnswer) => {
                words.say(format_args!("reset after {} content events", self.facts.contents));
            }
            _ => {}
        }
    }

    fn describe(&mut self, fault: Fault) -> Class {
        let (class, words) = match fault {
            Fault::Chunk => (Class::BadFraming, "a malformed chunk"),
            Fault::Slack => (Class::OverLimit, "too many bytes of chunk extensions or trailers"),
            Fault::Event => (Class::OverLimit, "an event of more than 16 MiB"),
            Fault::Whole => (Class::OverLimit, "a body of more than 16 MiB"),
        };
        if self.facts.words.is_empty() {
            self.facts.words.say(format_args!("{words}"));
        }
        class
    }

    fn bad_head(&mut self, error: HeadError) -> Class {
        self.facts.words.clear();
        let (class, words) = match error {
            HeadError::Malformed => (Class::BadHead, "a malformed head"),
            HeadError::Framing => (Class::BadFraming, "contradictory or unknown body framing"),
            HeadError::TooManyHeaders => {
                self.facts.words.say(format_args!("more than {HEADERS_MAX} header lines"));
                return Class::OverLimit;
            }
        };
        self.facts.words.say(format_args!("{words}"));
        class
    }

    /// Names the protocol that answered instead of HTTP/1, by the bytes that are here.
    fn not_http(&mut self, rest: &mut &[u8]) -> Class {
        const SHOWN: usize = 16;
        let room = SHOWN.saturating_sub(self.buffer.len()).min(rest.len());
        self.buffer.extend_from_slice(&rest[..room]);
        let start = &self.buffer[..self.buffer.len().min(SHOWN)];
        let name = match *start {
            [0x15 | 0x16, 3, ..] => "the server speaks TLS",
            // A settings frame: how an HTTP/2 server opens.
            [0, 0, _, 4, ..] => "the server speaks HTTP/2",
            _ if start.starts_with(b"HTTP/2") => "the server speaks HTTP/2",
            _ => "not HTTP",
        };
        self.facts.words.say(format_args!("{name}; its first bytes:"));
        self.facts.words.hex(start);
        *rest = &[];
        Class::NotHttp
    }
}

impl Default for AnswerReader {
    fn default() -> Self {
        Self::new()
    }
}

fn is_success(status: u16) -> bool {
    (200..=299).contains(&status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_huge_event_leaves_no_memory_behind() {
        let mut reader = AnswerReader::new();
        let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: ";
        let part = [b'a'; 1 << 16];
        // Given up at the cap, and given up by the server: the connection may carry no other.
        for parts in [1_000, 100] {
            reader.begin(true);
            let mut end = reader.push(head, &mut |_| {});
            for _ in 0..parts {
                if end.is_none() {
                    end = reader.push(&part, &mut |_| {});
                }
            }
            let class = end.unwrap_or_else(|| reader.close(true, &mut |_| {})).class;
            assert_eq!(
                class,
                if parts == 1_000 { Class::OverLimit } else { Class::ResetMidAnswer }
            );
            assert!(reader.buffer.capacity() <= 4 * BUFFER_BYTES, "{parts}");
        }
    }
}
