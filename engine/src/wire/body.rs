//! The body of one answer: its framing, what it turns out to be, and what of it is kept.
//!
//! Bytes of an event stream are read in place; whole JSON answers and the start of error pages are
//! collected in the reader's buffer. What the body means for the request is decided elsewhere
//! ([`super::facts`], [`super::answer`]).

use onbeat_shared::log::outcome::Class;

use super::Answer;
use super::chunked::{ChunkDecoder, ChunkError, Piece};
use super::delta::{self, Complaint};
use super::facts::{Facts, Reading};
use super::response::{Content, Framing, Head};
use super::sse::EventSplitter;
use super::words::Words;
use crate::limits::{ERROR_BODY_BYTES_KEPT, EVENT_BYTES_MAX};

/// The state of one body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Body {
    framing: Framing,
    chunks: ChunkDecoder,
    events: EventSplitter,
    kind: Kind,
    content: Content,
    /// The request asked for a stream.
    streaming: bool,
    /// Bytes of the body so far, without its framing.
    got: u64,
    /// First bytes that do not tell yet what the body is.
    start: [u8; START_BYTES],
    start_length: usize,
}

/// How bodies begin that are packed with gzip and with zstd; neither is text.
const PACKED: [&[u8]; 2] = [b"\x1f\x8b", b"\x28\xb5\x2f\xfd"];

/// Enough to know a byte-order mark and the longest field name.
const START_BYTES: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Its first bytes have not told.
    Undecided,
    Events,
    /// One JSON document.
    Whole,
    /// A success that is neither.
    Foreign,
    /// The body of an error status.
    Refusal,
}

/// Why a body is not read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A malformed chunk.
    Chunk,
    /// Chunk extensions or trailers over their cap.
    Slack,
    /// An event over its cap.
    Event,
    /// A whole body over its cap.
    Whole,
}

impl Body {
    /// No body.
    pub(super) const fn none() -> Self {
        Self {
            framing: Framing::Length(0),
            chunks: ChunkDecoder::new(),
            events: EventSplitter::new(),
            kind: Kind::Undecided,
            content: Content::Unsaid,
            streaming: false,
            got: 0,
            start: [0; START_BYTES],
            start_length: 0,
        }
    }

    /// The body behind this head.
    pub(super) const fn new(head: &Head, streaming: bool) -> Self {
        let success = head.status >= 200 && head.status <= 299;
        let kind = if success { Kind::Undecided } else { Kind::Refusal };
        Self { framing: head.framing, kind, content: head.content, streaming, ..Self::none() }
    }

    /// Only the end of the connection ends this body.
    pub(super) fn ends_by_close(&self) -> bool {
        self.framing == Framing::Close
    }

    /// Nothing but blanks came.
    pub(super) fn is_empty(&self) -> bool {
        self.kind == Kind::Undecided && self.start_length == 0
    }

    /// Takes what belongs to the body off `rest`; `Ok(true)` when the body is complete.
    pub(super) fn advance(
        &mut self,
        rest: &mut &[u8],
        buffer: &mut Vec<u8>,
        facts: &mut Facts,
        sink: &mut impl FnMut(Answer<'_>),
    ) -> Result<bool, Fault> {
        match self.framing {
            Framing::Length(length) => {
                let left = usize::try_from(length - self.got).unwrap_or(usize::MAX);
                let (data, behind) = rest.split_at(left.min(rest.len()));
                *rest = behind;
                self.take(data, buffer, facts, sink)?;
                Ok(self.got == length)
            }
            Framing::Close => {
                let data = std::mem::take(rest);
                self.take(data, buffer, facts, sink)?;
                Ok(false)
            }
            Framing::Chunked => loop {
                match self.chunks.next(rest) {
                    Ok(Piece::Data(data)) => self.take(data, buffer, facts, sink)?,
                    Ok(Piece::More) => return Ok(false),
                    Ok(Piece::End) => return Ok(true),
                    Err(ChunkError::Malformed) => return Err(Fault::Chunk),
                    Err(ChunkError::OverLimit) => return Err(Fault::Slack),
                }
            },
        }
    }

    /// The body is complete: reads what was waiting for its end.
    pub(super) fn finish(
        &mut self,
        buffer: &mut Vec<u8>,
        facts: &mut Facts,
        sink: &mut impl FnMut(Answer<'_>),
    ) {
        if self.kind == Kind::Undecided && self.start_length > 0 {
            let kind = if self.content == Content::Json { Kind::Whole } else { Kind::Foreign };
            self.settle(kind, facts);
            buffer.extend_from_slice(&self.start[..self.start_length]);
        }
        match self.kind {
            Kind::Events => self.events.finish(buffer, &mut Reading { facts, sink }),
            Kind::Whole => facts.whole(buffer, sink),
            Kind::Undecided | Kind::Foreign | Kind::Refusal => {}
        }
    }

    /// Says what a success lacks that ended as it should and is no answer.
    pub(super) fn say_unfinished(&self, facts: &mut Facts) {
        let (events, contents) = (facts.events, facts.contents);
        let words = &mut facts.words;
        match self.kind {
            Kind::Whole => words.say(format_args!("JSON without a finish reason")),
            _ if events == 0 => words.say(format_args!("an event stream without an event")),
            _ if contents == 0 && facts.is_foreign => words.say(format_args!(
                "a clean end after {events} events, none with choices: is it another dialect than \
                 OpenAI's chat or completions?"
            )),
            _ => words.say(format_args!(
                "a clean end after {contents} content events, without [DONE] or a finish reason"
            )),
        }
    }

    /// Says how much of the body came before it was cut.
    pub(super) fn say_cut(&self, words: &mut Words) {
        let got = self.got;
        match self.framing {
            Framing::Length(length) => {
                words.say(format_args!("truncated: {got} of {length} bytes"))
            }
            _ => words.say(format_args!("truncated: {got} bytes and no last chunk")),
        }
    }

    /// Quotes the body of an error status.
    pub(super) fn quote_refusal(&self, buffer: &[u8], words: &mut Words) {
        let body = buffer.trim_ascii();
        if self.kind != Kind::Refusal || body.is_empty() {
            return;
        }
        if !words.is_empty() {
            words.say(format_args!(": "));
        }
        if self.is_packed(body) {
            words.say(format_args!("a compressed body, although none was asked for"));
            return;
        }
        let said = delta::read(body, &mut Vec::new()).ok();
        let said = said.and_then(|document| document.error.or(document.message));
        words.complain(said.unwrap_or(Complaint::Raw(body)));
    }

    /// Quotes the start of a body that is no answer of ours.
    pub(super) fn quote_foreign(&self, buffer: &[u8], words: &mut Words) {
        const EXCERPT: usize = 200;
        if self.is_packed(buffer) {
            words.say(format_args!("a compressed answer, although none was asked for"));
            return;
        }
        words.say(format_args!("neither an event stream nor JSON: "));
        words.quote(&buffer[..buffer.len().min(EXCERPT)]);
    }

    /// Whether a body that begins with these bytes is compressed, by its own word or by its head's.
    fn is_packed(&self, bytes: &[u8]) -> bool {
        self.content == Content::Encoded || PACKED.iter().any(|mark| bytes.starts_with(mark))
    }

    #[inline]
    fn take(
        &mut self,
        data: &[u8],
        buffer: &mut Vec<u8>,
        facts: &mut Facts,
        sink: &mut impl FnMut(Answer<'_>),
    ) -> Result<(), Fault> {
        self.got += data.len() as u64;
        if self.kind == Kind::Undecided {
            return self.sniff(data, buffer, facts, sink);
        }
        self.read(data, buffer, facts, sink)
    }

    #[inline]
    fn read(
        &mut self,
        data: &[u8],
        buffer: &mut Vec<u8>,
        facts: &mut Facts,
        sink: &mut impl FnMut(Answer<'_>),
    ) -> Result<(), Fault> {
        match self.kind {
            Kind::Events => self
                .events
                .feed(data, buffer, &mut Reading { facts, sink })
                .map_err(|_too_long| Fault::Event),
            Kind::Whole => {
                if buffer.len() + data.len() > EVENT_BYTES_MAX {
                    return Err(Fault::Whole);
                }
                buffer.extend_from_slice(data);
                Ok(())
            }
            Kind::Undecided | Kind::Foreign | Kind::Refusal => {
                if self.got > EVENT_BYTES_MAX as u64 {
                    return Err(Fault::Whole);
                }
                let room = ERROR_BODY_BYTES_KEPT.saturating_sub(buffer.len());
                buffer.extend_from_slice(&data[..data.len().min(room)]);
                Ok(())
            }
        }
    }

    /// Looks at the body's first bytes until they tell what it is.
    fn sniff(
        &mut self,
        data: &[u8],
        buffer: &mut Vec<u8>,
        facts: &mut Facts,
        sink: &mut impl FnMut(Answer<'_>),
    ) -> Result<(), Fault> {
        // Blank lines before a stream and blanks before JSON mean nothing.
        let data = if self.start_length == 0 { data.trim_ascii_start() } else { data };
        if data.is_empty() {
            return Ok(());
        }
        let known = self.start_length;
        let added = data.len().min(START_BYTES - known);
        self.start[known..known + added].copy_from_slice(&data[..added]);
        self.start_length += added;
        let Some(kind) = self.decide() else { return Ok(()) };
        self.settle(kind, facts);
        let start = self.start;
        self.read(&start[..known], buffer, facts, sink)?;
        self.read(data, buffer, facts, sink)
    }

    /// What the body is, if its first bytes and its declared type tell.
    fn decide(&self) -> Option<Kind> {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        const FIELDS: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];
        if self.content == Content::Encoded {
            return Some(Kind::Foreign);
        }
        let start = &self.start[..self.start_length];
        if MARK.starts_with(start) {
            return None;
        }
        if PACKED.iter().any(|mark| start.starts_with(mark)) {
            return Some(Kind::Foreign);
        }
        if PACKED.iter().any(|mark| mark.starts_with(start)) {
            return None;
        }
        let start = start.strip_prefix(MARK).unwrap_or(start).trim_ascii_start();
        let full = self.start_length == START_BYTES;
        match start {
            [] if !full => return None,
            [b'{' | b'[', ..] => return Some(Kind::Whole),
            [b'<', ..] => return Some(Kind::Foreign),
            _ if self.content == Content::EventStream => return Some(Kind::Events),
            _ => {}
        }
        if FIELDS.iter().any(|field| start.starts_with(field)) {
            return Some(Kind::Events);
        }
        if !full && FIELDS.iter().any(|field| field.starts_with(start)) {
            return None;
        }
        Some(match self.content {
            Content::Json => Kind::Whole,
            Content::Unsaid if self.streaming => Kind::Events,
            _ => Kind::Foreign,
        })
    }

    fn settle(&mut self, kind: Kind, facts: &mut Facts) {
        self.kind = kind;
        if kind == Kind::Foreign {
            facts.fail(Class::WrongContentType);
        }
    }
}
