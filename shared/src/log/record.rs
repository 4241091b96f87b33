//! The records of a run log: fixed 32-byte little-endian facts, stamped in nanoseconds of the run.
//!
//! Layout of every record: `kind u8 · flags u8 · a u16 · request u32 · time_ns i64 · x u64 · y
//! u64`. What `flags`, `a`, `x` and `y` mean depends on the kind and is written at each variant. A
//! reader skips kinds it does not know. Records are encoded on the pacing core, so encoding is a
//! copy of 32 bytes and nothing else; framing, sequence and checksum belong to [`super::block`].

use super::bits::bits;
pub use super::outcome::DoneFlags;
use super::outcome::{Class, FinishReason};
use super::scraped::Scraped;
use super::together::{TOGETHER_MAX, Together};
use super::users::{self, ASSESSMENT_PART_BYTES, StepFlags, UserEvent};
use crate::units::{RequestIndex, RunNanos, SessionIndex};

/// Bytes of one encoded record.
pub const RECORD_BYTES: usize = 32;
/// "The server did not say", for a token count.
pub const UNKNOWN_TOKENS: u32 = u32::MAX;
/// Text bytes in one [`Record::Text`] part.
pub const TEXT_PART_BYTES: usize = TEXT_PART_LENGTH as usize;
const TEXT_PART_LENGTH: u8 = 24;

/// What a content event carried; several may be set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkKind(pub u8);

impl ChunkKind {
    /// Answer text.
    pub const TEXT: Self = Self(1);
    /// Reasoning text.
    pub const REASONING: Self = Self(2);
    /// Tool-call arguments or names.
    pub const TOOL: Self = Self(4);
}

bits!(ChunkKind);

/// Token counts as the server reported them; [`UNKNOWN_TOKENS`] where it did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// `prompt_tokens` (or `input_tokens`).
    pub prompt_tokens: u32,
    /// `completion_tokens` (or `output_tokens`).
    pub completion_tokens: u32,
    /// Cached prompt tokens, in any of the known spellings.
    pub cached_tokens: u32,
    /// Reasoning tokens.
    pub reasoning_tokens: u32,
}

/// One fact about a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Record {
    /// A request is about to leave. `flags` bit 0: the connection was used before. `a`: target.
    /// `x`: ready (ns), `y`: due (ns; `i64::MIN` when only its predecessor decided).
    Dispatch {
        /// Which request.
        request: RequestIndex,
        /// Taken right before the write of the first byte.
        sent: RunNanos,
        /// When dependencies and gates allowed it.
        ready: RunNanos,
        /// What the schedule asked, if it did.
        due: Option<RunNanos>,
        /// Index into the manifest's targets.
        target: u16,
        /// Whether the connection had carried an earlier request.
        reused: bool,
    },
    /// The kernel accepted the last byte. `x`: bytes of head and body, `y`: connection number.
    SentEnd {
        /// Which request.
        request: RequestIndex,
        /// When.
        time: RunNanos,
        /// Bytes of head and body.
        bytes: u64,
        /// The core's own number of the connection.
        connection: u32,
    },
    /// The read that held the answer's first byte completed.
    FirstByte {
        /// Which request.
        request: RequestIndex,
        /// When.
        time: RunNanos,
    },
    /// The read that completed the first event (of any content) completed.
    FirstEvent {
        /// Which request.
        request: RequestIndex,
        /// When.
        time: RunNanos,
    },
    /// A content event. `flags`: [`ChunkKind`], `x`: tokens, `y`: content bytes.
    Chunk {
        /// Which request.
        request: RequestIndex,
        /// When the read that completed it completed.
        time: RunNanos,
        /// What it carried.
        kind: ChunkKind,
        /// Tokens: one per event unless the server's running usage says more.
        tokens: u32,
        /// Bytes of text, reasoning and tool content.
        bytes: u32,
    },
    /// Content events of one token each that came in one read. `flags`: [`ChunkKind`] of all, `a`:
    /// how many, `x` and `y`: their content bytes, one byte for each.
    Chunks {
        /// Which request.
        request: RequestIndex,
        /// When the read that completed them completed.
        time: RunNanos,
        /// The events.
        together: Together,
    },
    /// The last non-empty usage. `x`: prompt | completion << 32, `y`: cached | reasoning << 32.
    Usage {
        /// Which request.
        request: RequestIndex,
        /// When.
        time: RunNanos,
        /// The counts.
        usage: Usage,
    },
    /// The request's end, exactly one per planned request in a whole log. `flags`: class, `a`: HTTP
    /// status (0: none), `x`: response bytes, `y`: finish reason | flags << 8 (see [`DoneFlags`]).
    Done {
        /// Which request.
        request: RequestIndex,
        /// When.
        time: RunNanos,
        /// How and why it ended.
        class: Class,
        /// HTTP status, if a head arrived.
        status: Option<u16>,
        /// Bytes of the answer, head included.
        response_bytes: u64,
        /// Why the model stopped.
        finish: FinishReason,
        /// More facts.
        flags: DoneFlags,
    },
    /// A part of a text about a request (an error's words). `flags`: bytes used, `a`: part number;
    /// the 24 bytes of time, `x` and `y` hold the text.
    Text {
        /// Which request.
        request: RequestIndex,
        /// Place of this part, from zero.
        part: u16,
        /// Bytes used of `bytes`.
        used: u8,
        /// The text.
        bytes: [u8; TEXT_PART_BYTES],
    },
    /// The core's clock jumped while it polled. `x`: length (ns).
    Stall {
        /// When the gap began.
        start: RunNanos,
        /// How long it was.
        length_ns: u64,
    },
    /// A connection was opened or failed. `flags`: class (0: opened), `a`: target, request field:
    /// connection number, `x`: end (ns), `y`: errno.
    Connect {
        /// The core's own number of the connection.
        connection: u32,
        /// When it was started.
        start: RunNanos,
        /// When it ended.
        end: RunNanos,
        /// Index into the manifest's targets.
        target: u16,
        /// [`Class::Ok`] or why it failed.
        class: Class,
        /// The operating system's error number, 0 if none.
        errno: u32,
    },
    /// Records that found no room and are missing before this one. `x`: how many.
    Lost {
        /// When.
        time: RunNanos,
        /// How many records.
        count: u64,
    },
    /// Clocks read together. `x`: wall clock (ns since 1970), `y`: the host's monotonic clock (ns).
    /// The one at time zero is the schedule's zero; later ones show steps of the wall clock.
    Anchor {
        /// The run's clock.
        time: RunNanos,
        /// The wall clock.
        unix_ns: u64,
        /// The host's monotonic clock, which all of its processes share.
        monotonic_ns: u64,
    },
    /// What a user sends: the request's first record, right before its first [`Record::Dispatch`]
    /// (or its [`Record::Done`], if it never leaves), by the same core, in user-driven runs only.
    /// `flags`: [`StepFlags`], `time`: template | session << 32, `x`: after (`u32::MAX`: none) |
    /// body bytes << 32, `y`: ideal | ideal set << 32 (`u32::MAX`: unknown).
    Step {
        /// Which request.
        request: RequestIndex,
        /// The row of the plan table that it is made from.
        template: u32,
        /// The run's session of the user or sub-agent that sends it.
        session: SessionIndex,
        /// The request before it of the same session, if there is one.
        after: Option<RequestIndex>,
        /// Bytes of its body.
        body_bytes: u32,
        /// Tokens of its prompt that an endless cache has: the longest prefix of block ids that
        /// this run has sent, the warm prefix included.
        ideal_cached: Option<u32>,
        /// Tokens of blocks that the request before it of the same session had, in any place (the
        /// tool's figure, which knows no warm prefix).
        ideal_set: Option<u32>,
        /// More facts.
        flags: StepFlags,
    },
    /// What happened to a user or one of its sub-agents, in user-driven runs only. `flags`: event,
    /// request field: session, `a`: copy or [`super::users::LimitedBy`], `x`: template | cue << 32,
    /// done | total << 32, or back-off (ns), `y`: parent session (`u32::MAX`: none) | number << 32.
    User {
        /// The run's session of the user or sub-agent.
        session: SessionIndex,
        /// When.
        time: RunNanos,
        /// What.
        event: UserEvent,
        /// The session that started it, if it is a sub-agent; said when it begins.
        parent: Option<SessionIndex>,
        /// Of a user, its number (`User-001` has 1); of a sub-agent, its number among its parent's
        /// (`-SA1` has 1). 0: not said; it is said when it begins.
        number: u32,
    },
    /// A part of a decision of the ramp, see [`super::Assessment`]. `flags`: part, request field:
    /// period; the 24 bytes of time, `x` and `y` hold the part.
    Assessment {
        /// Number of the period, from 1.
        period: u32,
        /// Place of this part, from zero.
        part: u8,
        /// The part.
        bytes: [u8; ASSESSMENT_PART_BYTES],
    },
    /// Something that a server said of itself, among the conductor's records.
    Scraped(Scraped),
}

/// The fields of a [`Record::Chunk`], or one event of a [`Record::Chunks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentEvent {
    /// Which request.
    pub request: RequestIndex,
    /// When the read that completed it completed.
    pub time: RunNanos,
    /// What it carried.
    pub kind: ChunkKind,
    /// Tokens.
    pub tokens: u32,
    /// Bytes of text, reasoning and tool content.
    pub bytes: u32,
}

impl From<ContentEvent> for Record {
    fn from(event: ContentEvent) -> Self {
        let ContentEvent { request, time, kind, tokens, bytes } = event;
        Self::Chunk { request, time, kind, tokens, bytes }
    }
}

const NO_TIME: i64 = i64::MIN;

const KIND_DISPATCH: u8 = 1;
const KIND_SENT_END: u8 = 2;
const KIND_FIRST_BYTE: u8 = 3;
const KIND_FIRST_EVENT: u8 = 4;
const KIND_CHUNK: u8 = 5;
const KIND_USAGE: u8 = 6;
const KIND_DONE: u8 = 7;
const KIND_TEXT: u8 = 8;
const KIND_STALL: u8 = 9;
const KIND_CONNECT: u8 = 10;
const KIND_LOST: u8 = 11;
const KIND_ANCHOR: u8 = 12;
const KIND_CHUNKS: u8 = 13;
pub(super) const KIND_STEP: u8 = 14;
pub(super) const KIND_USER: u8 = 15;
const KIND_ASSESSMENT: u8 = 16;
pub(super) const KIND_SCRAPE_TEXT: u8 = 17;
pub(super) const KIND_SCRAPE_VALUE: u8 = 18;
pub(super) const KIND_SCRAPE_ASKED: u8 = 19;

/// The raw fields every record shares, before they are given a meaning.
#[derive(Clone, Copy, Default)]
pub(super) struct Raw {
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) a: u16,
    pub(super) request: u32,
    pub(super) time: i64,
    pub(super) x: u64,
    pub(super) y: u64,
}

impl Raw {
    #[inline]
    pub(super) fn to_bytes(self) -> [u8; RECORD_BYTES] {
        let mut out = [0; RECORD_BYTES];
        out[0] = self.kind;
        out[1] = self.flags;
        out[2..4].copy_from_slice(&self.a.to_le_bytes());
        out[4..8].copy_from_slice(&self.request.to_le_bytes());
        out[8..16].copy_from_slice(&self.time.to_le_bytes());
        out[16..24].copy_from_slice(&self.x.to_le_bytes());
        out[24..32].copy_from_slice(&self.y.to_le_bytes());
        out
    }

    fn from_bytes(bytes: &[u8; RECORD_BYTES]) -> Self {
        let eight = |at: usize| {
            let mut part = [0; 8];
            part.copy_from_slice(&bytes[at..at + 8]);
            part
        };
        Self {
            kind: bytes[0],
            flags: bytes[1],
            a: u16::from_le_bytes([bytes[2], bytes[3]]),
            request: u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
            time: i64::from_le_bytes(eight(8)),
            x: u64::from_le_bytes(eight(16)),
            y: u64::from_le_bytes(eight(24)),
        }
    }
}

impl Record {
    /// The record's 32 bytes. Inlined, because the caller knows the kind.
    #[must_use]
    #[inline]
    pub fn encode(&self) -> [u8; RECORD_BYTES] {
        match *self {
            Self::Dispatch { request, sent, ready, due, target, reused } => Raw {
                kind: KIND_DISPATCH,
                flags: u8::from(reused),
                a: target,
                request: request.0,
                time: sent.0,
                x: ready.0.cast_unsigned(),
                y: due.map_or(NO_TIME, |due| due.0).cast_unsigned(),
            },
            Self::SentEnd { request, time, bytes, connection } => Raw {
                x: bytes,
                y: u64::from(connection),
                ..Raw::stamped(KIND_SENT_END, request, time)
            },
            Self::FirstByte { request, time } => Raw::stamped(KIND_FIRST_BYTE, request, time),
            Self::FirstEvent { request, time } => Raw::stamped(KIND_FIRST_EVENT, request, time),
            Self::Chunk { request, time, kind, tokens, bytes } => Raw {
                flags: kind.0,
                x: u64::from(tokens),
                y: u64::from(bytes),
                ..Raw::stamped(KIND_CHUNK, request, time)
            },
            Self::Chunks { request, time, together } => {
                let (kind, count, bytes) = together.parts();
                let [x, y] = words(bytes);
                let a = u16::from(count);
                Raw { flags: kind.0, a, x, y, ..Raw::stamped(KIND_CHUNKS, request, time) }
            }
            Self::Usage { request, time, usage } => Raw {
                x: pair(usage.prompt_tokens, usage.completion_tokens),
                y: pair(usage.cached_tokens, usage.reasoning_tokens),
                ..Raw::stamped(KIND_USAGE, request, time)
            },
            Self::Done { request, time, class, status, response_bytes, finish, flags } => Raw {
                flags: class as u8,
                a: status.unwrap_or(0),
                x: response_bytes,
                y: u64::from(finish as u8) | u64::from(flags.0) << 8,
                ..Raw::stamped(KIND_DONE, request, time)
            },
            Self::Text { request, part, used, bytes } => return text(request, part, used, &bytes),
            Self::Stall { start, length_ns } => {
                Raw { x: length_ns, ..Raw::stamped(KIND_STALL, RequestIndex(u32::MAX), start) }
            }
            Self::Connect { connection, start, end, target, class, errno } => Raw {
                flags: class as u8,
                a: target,
                x: end.0.cast_unsigned(),
                y: u64::from(errno),
                ..Raw::stamped(KIND_CONNECT, RequestIndex(connection), start)
            },
            Self::Lost { time, count } => {
                Raw { x: count, ..Raw::stamped(KIND_LOST, RequestIndex(u32::MAX), time) }
            }
            Self::Anchor { time, unix_ns, monotonic_ns } => Raw {
                x: unix_ns,
                y: monotonic_ns,
                ..Raw::stamped(KIND_ANCHOR, RequestIndex(u32::MAX), time)
            },
            Self::Step { .. } | Self::User { .. } => users::raw(self),
            Self::Assessment { period, part, bytes } => {
                let raw = Raw { flags: part, ..Raw::default() };
                let raw = Raw { kind: KIND_ASSESSMENT, request: period, ..raw };
                return filled(raw, &bytes);
            }
            Self::Scraped(fact) => return fact.encode(),
        }
        .to_bytes()
    }

    /// The content event in these bytes, if they hold one. Nearly all records of a run are content
    /// events, so readers ask for them first: this is half the cost of [`Record::decode`].
    #[must_use]
    #[inline]
    pub(crate) fn decode_chunk(bytes: &[u8; RECORD_BYTES]) -> Option<ContentEvent> {
        if bytes[0] != KIND_CHUNK {
            return None;
        }
        let raw = Raw::from_bytes(bytes);
        Some(ContentEvent {
            request: RequestIndex(raw.request),
            time: RunNanos(raw.time),
            kind: ChunkKind(raw.flags),
            tokens: low(raw.x),
            bytes: low(raw.y),
        })
    }

    /// Whether the log that these bytes are a record of is user-driven; `None` if they do not tell.
    #[must_use]
    pub(crate) const fn tells_of_users(bytes: &[u8; RECORD_BYTES]) -> Option<bool> {
        match bytes[0] {
            KIND_STEP | KIND_USER | KIND_ASSESSMENT => Some(true),
            KIND_DISPATCH..=KIND_TEXT | KIND_CHUNKS => Some(false),
            _ => None,
        }
    }

    /// Whether it says by itself that there is a request of its number.
    #[must_use]
    pub(crate) const fn makes_request_known(&self) -> bool {
        matches!(self, Self::Step { .. } | Self::Dispatch { .. } | Self::Done { .. })
    }

    /// The record in these bytes; `None` for a kind or class this version does not know.
    #[must_use]
    pub fn decode(bytes: &[u8; RECORD_BYTES]) -> Option<Self> {
        let raw = Raw::from_bytes(bytes);
        let request = RequestIndex(raw.request);
        let time = RunNanos(raw.time);
        Some(match raw.kind {
            KIND_DISPATCH => Self::Dispatch {
                request,
                sent: time,
                ready: RunNanos(raw.x.cast_signed()),
                due: Some(raw.y.cast_signed()).filter(|&due| due != NO_TIME).map(RunNanos),
                target: raw.a,
                reused: raw.flags & 1 == 1,
            },
            KIND_SENT_END => Self::SentEnd { request, time, bytes: raw.x, connection: low(raw.y) },
            KIND_FIRST_BYTE => Self::FirstByte { request, time },
            KIND_FIRST_EVENT => Self::FirstEvent { request, time },
            KIND_CHUNK => Self::decode_chunk(bytes)?.into(),
            KIND_CHUNKS => {
                let mut sizes = [0; TOGETHER_MAX];
                sizes.copy_from_slice(&bytes[16..]);
                let together = Together::from_parts(ChunkKind(raw.flags), raw.a, sizes);
                Self::Chunks { request, time, together }
            }
            KIND_USAGE => Self::Usage {
                request,
                time,
                usage: Usage {
                    prompt_tokens: low(raw.x),
                    completion_tokens: high(raw.x),
                    cached_tokens: low(raw.y),
                    reasoning_tokens: high(raw.y),
                },
            },
            KIND_DONE => Self::Done {
                request,
                time,
                class: Class::from_number(raw.flags)?,
                status: Some(raw.a).filter(|&status| status != 0),
                response_bytes: raw.x,
                finish: FinishReason::from_number(raw.y.to_le_bytes()[0]),
                flags: DoneFlags(raw.y.to_le_bytes()[1]),
            },
            KIND_TEXT => {
                let mut text = [0; TEXT_PART_BYTES];
                text.copy_from_slice(&bytes[8..]);
                // A lying length must not reach past the part.
                let used = raw.flags.min(TEXT_PART_LENGTH);
                Self::Text { request, part: raw.a, used, bytes: text }
            }
            KIND_STALL => Self::Stall { start: time, length_ns: raw.x },
            KIND_CONNECT => Self::Connect {
                connection: raw.request,
                start: time,
                end: RunNanos(raw.x.cast_signed()),
                target: raw.a,
                class: Class::from_number(raw.flags)?,
                errno: low(raw.y),
            },
            KIND_LOST => Self::Lost { time, count: raw.x },
            KIND_ANCHOR => Self::Anchor { time, unix_ns: raw.x, monotonic_ns: raw.y },
            KIND_STEP => users::step(raw),
            KIND_USER => users::user(raw)?,
            KIND_ASSESSMENT => {
                let mut part = [0; ASSESSMENT_PART_BYTES];
                part.copy_from_slice(&bytes[8..]);
                Self::Assessment { period: raw.request, part: raw.flags, bytes: part }
            }
            KIND_SCRAPE_TEXT..=KIND_SCRAPE_ASKED => Self::Scraped(Scraped::decode(raw, bytes)?),
            _ => return None,
        })
    }
}

impl Raw {
    #[inline]
    pub(super) fn stamped(kind: u8, request: RequestIndex, time: RunNanos) -> Self {
        Self { kind, request: request.0, time: time.0, ..Self::default() }
    }
}

fn text(
    request: RequestIndex,
    part: u16,
    used: u8,
    bytes: &[u8; TEXT_PART_BYTES],
) -> [u8; RECORD_BYTES] {
    filled(Raw { flags: used, a: part, ..Raw::stamped(KIND_TEXT, request, RunNanos(0)) }, bytes)
}

/// A record whose last 24 bytes are these.
pub(super) fn filled(raw: Raw, bytes: &[u8; TEXT_PART_BYTES]) -> [u8; RECORD_BYTES] {
    let mut out = raw.to_bytes();
    out[8..].copy_from_slice(bytes);
    out
}

/// Sixteen bytes as two words.
#[inline]
fn words(bytes: [u8; TOGETHER_MAX]) -> [u64; 2] {
    let word = |at: usize| {
        let mut eight = [0; 8];
        eight.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(eight)
    };
    [word(0), word(8)]
}

pub(super) const fn pair(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

pub(super) fn low(word: u64) -> u32 {
    let bytes = word.to_le_bytes();
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

pub(super) fn high(word: u64) -> u32 {
    low(word >> 32)
}

const _: () = assert!(size_of::<[u8; RECORD_BYTES]>() == 32);
