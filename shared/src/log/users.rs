//! What a log says of users: facts of a user-driven run, its users' lives and its ramp's decisions.
//!
//! In such a run nobody knows before zero which requests will be sent, so the plan table holds
//! *templates*, one for each record of the trace, and [`super::Record::Step`] says which template a
//! sent request is. A user is a session of the run: a person who plays a conversation, or one of
//! its sub-agents. This module gives the facts types and their encodings; it decides nothing.

use serde::{Deserialize, Serialize};

use super::bits::bits;
use super::record::{KIND_STEP, KIND_USER, Raw, Record, high, low, pair};
use crate::units::{RequestIndex, RunNanos, SessionIndex};

const EVENT_STARTED: u8 = 1;
const EVENT_COMPLETED: u8 = 2;
const EVENT_TRUNCATED: u8 = 3;
const EVENT_STOPPED: u8 = 4;
const EVENT_LIMITED: u8 = 5;

/// Parts of one [`Assessment`].
pub const ASSESSMENT_PARTS: usize = 3;
/// Bytes of an [`Assessment`] in one part.
pub const ASSESSMENT_PART_BYTES: usize = 24;

/// Facts about one sent request of a user-driven run; several may be set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepFlags(pub u8);

impl StepFlags {
    /// The think time counts from the start of the request before it (and it never leaves before
    /// that one's end); without it, from its end.
    pub const FROM_START: Self = Self(1);
    /// The earlier request whose prompt this one continues was played by this user.
    pub const BASE_PLAYED: Self = Self(2);
    /// It costs more than a whole token budget and left when the budget was full.
    pub const OVER_BUDGET: Self = Self(4);
    /// Recorded text stands where the server's reply should: that was empty, cut or failed.
    pub const REPLY_REPLACED: Self = Self(8);
    /// It was sent as one that streams.
    pub const STREAMED: Self = Self(16);
}

bits!(StepFlags);

/// What happened to a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserEvent {
    /// It began to play.
    Started {
        /// The session of the templates that it plays.
        template: SessionIndex,
        /// Its first place in that session's list, sub-agents counted; more than 0: advanced.
        cue: u32,
        /// How often the run had used this conversation before.
        copy: u16,
    },
    /// It played its list to the end.
    Completed {
        /// Requests of its own that ended.
        done: u32,
        /// Requests of its own that it was to play.
        total: u32,
    },
    /// Its next request was longer than the context limit.
    Truncated {
        /// Requests of its own that ended.
        done: u32,
        /// Requests of its own that it was to play.
        total: u32,
    },
    /// The run ended before its conversation did.
    Stopped {
        /// Requests of its own that ended.
        done: u32,
        /// Requests of its own that it was to play.
        total: u32,
    },
    /// Its request was not let through and waits.
    Limited {
        /// What stood in its way.
        by: LimitedBy,
        /// How long it waits before it asks again, in nanoseconds.
        backoff_ns: u64,
    },
}

/// What kept a request back.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum LimitedBy {
    /// As many requests as may had no token yet.
    Prefill = 1,
    /// As many requests as may were receiving tokens.
    Decode = 2,
    /// As many requests as may were in flight.
    Concurrency = 3,
    /// TTFT was above its limit.
    Ttft = 4,
    /// The budget of input tokens per minute.
    InputBudget = 5,
    /// The budget of output tokens per minute.
    OutputBudget = 6,
}

impl LimitedBy {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Prefill,
        Self::Decode,
        Self::Concurrency,
        Self::Ttft,
        Self::InputBudget,
        Self::OutputBudget,
    ];

    /// From its number in a log.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|by| *by as u8 == number)
    }

    /// Whether it is a token budget (the tool's layer 2) and not a limit of requests (layer 1).
    #[must_use]
    pub const fn is_budget(self) -> bool {
        matches!(self, Self::InputBudget | Self::OutputBudget)
    }

    /// Its name in outputs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prefill => "prefill",
            Self::Decode => "decode",
            Self::Concurrency => "concurrency",
            Self::Ttft => "ttft",
            Self::InputBudget => "input_budget",
            Self::OutputBudget => "output_budget",
        }
    }
}

/// Why the ramp added users, or did not.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum RampReason {
    /// A later version's reason.
    #[default]
    Unknown = 0,
    /// All gates passed: as many as the headroom allows.
    Ramped = 1,
    /// All gates passed; one, because it is one of the first two ramps of the run or after a
    /// cooldown.
    Throttled = 2,
    /// No request completed its prefill.
    NoData = 3,
    /// TTFT is not below its limit.
    Ttft = 4,
    /// Requests get fewer output tokens per second than they must.
    OutputRate = 5,
    /// Too many requests are in flight.
    InFlight = 6,
    /// Not enough good periods since the last bad one.
    Cooldown = 7,
    /// The headroom is below its floor.
    Headroom = 8,
    /// There are as many users as may be.
    MaxUsers = 9,
    /// The working set has no room.
    WorkingSet = 10,
    /// The period's budget of new tokens has no room.
    NewTokens = 11,
    /// No conversation is left.
    PoolEmpty = 12,
    /// Users are being kept back (rolling ramp only).
    Limited = 13,
    /// The run ends: this assessment is of its last part and decides nothing.
    Ended = 14,
}

impl RampReason {
    /// All that this version knows.
    pub const ALL: [Self; 15] = [
        Self::Unknown,
        Self::Ramped,
        Self::Throttled,
        Self::NoData,
        Self::Ttft,
        Self::OutputRate,
        Self::InFlight,
        Self::Cooldown,
        Self::Headroom,
        Self::MaxUsers,
        Self::WorkingSet,
        Self::NewTokens,
        Self::PoolEmpty,
        Self::Limited,
        Self::Ended,
    ];

    /// From its number in a log.
    #[must_use]
    pub fn from_number(number: u8) -> Self {
        Self::ALL.into_iter().find(|reason| *reason as u8 == number).unwrap_or_default()
    }

    /// What it says, in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Unknown => "a reason that this version does not know",
            Self::Ramped => "all gates passed",
            Self::Throttled => "throttled, as the first two ramps are",
            Self::NoData => "no request completed its prefill",
            Self::Ttft => "TTFT is not below its limit",
            Self::OutputRate => "output tokens per second and request are below their minimum",
            Self::InFlight => "too many requests in flight",
            Self::Cooldown => "cooldown: not enough good periods yet",
            Self::Headroom => "headroom below its floor",
            Self::MaxUsers => "as many users as may be",
            Self::WorkingSet => "no room in the working set",
            Self::NewTokens => "no room in the period's budget of new tokens",
            Self::PoolEmpty => "no conversation left",
            Self::Limited => "users are being kept back",
            Self::Ended => "the run ended",
        }
    }
}

impl RampReason {
    /// What goes before [`RampReason::words`] where so many users were added: the reason is then
    /// why there were not more.
    #[must_use]
    pub const fn link(self, added: u64) -> &'static str {
        let ends =
            matches!(self, Self::MaxUsers | Self::WorkingSet | Self::NewTokens | Self::PoolEmpty);
        if added > 0 && ends { "then " } else { "" }
    }
}

/// The ramp's decision at the end of an assessment period, with what it saw. Written by the
/// conductor, in [`ASSESSMENT_PARTS`] records.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Assessment {
    /// Number of the period that ended, from 1.
    pub period: u32,
    /// When the period ended: start + number × length; the last one of a run may end earlier.
    pub time: RunNanos,
    /// The ramp's TTFT (maximum, mean or p95, of the period or rolling); `None`: no data.
    pub ttft_ns: Option<i64>,
    /// Users and sub-agents present, before any was added.
    pub users: u32,
    /// Requests in flight.
    pub in_flight: u32,
    /// Users added because of this decision.
    pub added: u16,
    /// Why.
    pub reason: RampReason,
    /// (limit − TTFT) / limit; `None`: no data. Stored with 32 bits.
    pub headroom: Option<f32>,
    /// Good periods in a row.
    pub good: u16,
    /// Periods in a row in which a limit was exceeded.
    pub exceeded: u16,
    /// Good periods that the cooldown asks for; 0: none.
    pub required: u16,
    /// Ramps since the last cooldown.
    pub ramps: u16,
    /// Tokens of all blocks that were used lately.
    pub working_set_tokens: u64,
    /// Tokens of prompts that no cache can have had, of requests and users that began in the
    /// period: what the period's budget counts.
    pub new_tokens: u64,
    /// Users in back-off at that moment.
    pub limited: u32,
    /// How full the budget of input tokens is, from 0 to 1; `None`: there is no such budget.
    pub input_budget: Option<f32>,
    /// How full the budget of output tokens is.
    pub output_budget: Option<f32>,
    /// Output tokens per second and request, as the ramp compares them; `None`: no data or not
    /// asked for.
    pub output_rate: Option<f32>,
}

impl Assessment {
    /// Its records, to be pushed in this order.
    #[must_use]
    pub fn records(&self) -> [Record; ASSESSMENT_PARTS] {
        let mut all = [0; ASSESSMENT_PARTS * ASSESSMENT_PART_BYTES];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            all[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&self.time.0.to_le_bytes());
        put(&self.ttft_ns.unwrap_or(i64::MIN).to_le_bytes());
        put(&self.users.to_le_bytes());
        put(&self.in_flight.to_le_bytes());
        put(&self.working_set_tokens.to_le_bytes());
        put(&self.new_tokens.to_le_bytes());
        for count in [self.added, self.good, self.exceeded, self.required] {
            put(&count.to_le_bytes());
        }
        for share in [self.headroom, self.input_budget, self.output_budget, self.output_rate] {
            put(&share.unwrap_or(f32::NAN).to_le_bytes());
        }
        put(&self.limited.to_le_bytes());
        put(&self.ramps.to_le_bytes());
        put(&[self.reason as u8, 0]);
        std::array::from_fn(|part| {
            let mut bytes = [0; ASSESSMENT_PART_BYTES];
            let from = part * ASSESSMENT_PART_BYTES;
            bytes.copy_from_slice(&all[from..from + ASSESSMENT_PART_BYTES]);
            // At most two: the number of parts is three.
            Record::Assessment { period: self.period, part: [0, 1, 2][part], bytes }
        })
    }

    /// From what its records hold, in order, which may be anything.
    #[must_use]
    pub fn from_parts(
        period: u32,
        parts: &[[u8; ASSESSMENT_PART_BYTES]; ASSESSMENT_PARTS],
    ) -> Self {
        let all = parts.as_flattened();
        let half = |at: usize| u16::from_le_bytes([all[at], all[at + 1]]);
        let word = |at: usize| u32::from(half(at)) | u32::from(half(at + 2)) << 16;
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let share = |at: usize| Some(f32::from_bits(word(at))).filter(|share| share.is_finite());
        Self {
            period,
            time: RunNanos(long(0).cast_signed()),
            ttft_ns: Some(long(8).cast_signed()).filter(|&ttft| ttft != i64::MIN),
            users: word(16),
            in_flight: word(20),
            working_set_tokens: long(24),
            new_tokens: long(32),
            added: half(40),
            good: half(42),
            exceeded: half(44),
            required: half(46),
            headroom: share(48),
            input_budget: share(52),
            output_budget: share(56),
            output_rate: share(60),
            limited: word(64),
            ramps: half(68),
            reason: RampReason::from_number(all[70]),
        }
    }
}

/// The fields of the records about users; of any other, nothing.
pub(super) fn raw(record: &Record) -> Raw {
    match *record {
        Record::Step {
            request,
            template,
            session,
            after,
            body_bytes,
            ideal_cached,
            ideal_set,
            flags,
        } => Raw {
            kind: KIND_STEP,
            flags: flags.0,
            request: request.0,
            time: pair(template, session.0).cast_signed(),
            x: pair(after.map_or(u32::MAX, |after| after.0), body_bytes),
            y: pair(ideal_cached.unwrap_or(u32::MAX), ideal_set.unwrap_or(u32::MAX)),
            ..Raw::default()
        },
        Record::User { session, time, event, parent, number } => {
            let (flags, a, x) = match event {
                UserEvent::Started { template, cue, copy } => {
                    (EVENT_STARTED, copy, pair(template.0, cue))
                }
                UserEvent::Completed { done, total } => (EVENT_COMPLETED, 0, pair(done, total)),
                UserEvent::Truncated { done, total } => (EVENT_TRUNCATED, 0, pair(done, total)),
                UserEvent::Stopped { done, total } => (EVENT_STOPPED, 0, pair(done, total)),
                UserEvent::Limited { by, backoff_ns } => {
                    (EVENT_LIMITED, u16::from(by as u8), backoff_ns)
                }
            };
            let y = pair(parent.map_or(u32::MAX, |parent| parent.0), number);
            Raw { flags, a, x, y, ..Raw::stamped(KIND_USER, RequestIndex(session.0), time) }
        }
        _ => Raw::default(),
    }
}

/// The request's step in these fields.
pub(super) fn step(raw: Raw) -> Record {
    let known = |word: u32| Some(word).filter(|&word| word != u32::MAX);
    let time = raw.time.cast_unsigned();
    Record::Step {
        request: RequestIndex(raw.request),
        template: low(time),
        session: SessionIndex(high(time)),
        after: known(low(raw.x)).map(RequestIndex),
        body_bytes: high(raw.x),
        ideal_cached: known(low(raw.y)),
        ideal_set: known(high(raw.y)),
        flags: StepFlags(raw.flags),
    }
}

/// The user's event in these fields; `None` for one that this version does not know.
pub(super) fn user(raw: Raw) -> Option<Record> {
    let (done, total) = (low(raw.x), high(raw.x));
    let event = match raw.flags {
        EVENT_STARTED => {
            UserEvent::Started { template: SessionIndex(done), cue: total, copy: raw.a }
        }
        EVENT_COMPLETED => UserEvent::Completed { done, total },
        EVENT_TRUNCATED => UserEvent::Truncated { done, total },
        EVENT_STOPPED => UserEvent::Stopped { done, total },
        EVENT_LIMITED => UserEvent::Limited {
            by: LimitedBy::from_number(u8::try_from(raw.a).ok()?)?,
            backoff_ns: raw.x,
        },
        _ => return None,
    };
    let parent = low(raw.y);
    Some(Record::User {
        session: SessionIndex(raw.request),
        time: RunNanos(raw.time),
        event,
        parent: (parent != u32::MAX).then_some(SessionIndex(parent)),
        number: high(raw.y),
    })
}
