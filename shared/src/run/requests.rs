//! Everything the log says about each planned request, one column per fact.
//!
//! Columns are plain vectors with a sentinel inside and `Option` outside, so reading a value is one
//! load and a comparison and never allocates. Index `i` is the request's place in the plan; an
//! index beyond [`Requests::len`] panics like a slice. Nothing here is derived: differences, rates
//! and shares are [`crate::metrics`]'s.

use crate::log::{Class, DoneFlags, FinishReason, Outcome, UNKNOWN_TOKENS};
use crate::units::{CoreIndex, RunNanos};

/// "This did not happen or was not recorded", in a time column.
pub(super) const NO_TIME: i64 = i64::MIN;
/// No end in the log, in the class column.
const NO_CLASS: u8 = u8::MAX;

const MARK_SENT: u8 = 1;
const MARK_REUSED: u8 = 2;
const MARK_BURST: u8 = 4;

/// How a request ended, or why that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// The log says how.
    Known(Class),
    /// It was sent and the log has no end for it: in flight when the log ends, or its end was lost.
    Open,
    /// The log is closed and has no record of it: it never left.
    NeverSent,
    /// The log has no footer and no record of it: not reached when the log ends.
    NotReached,
}

/// One entry per planned request.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    pub(super) due: Vec<i64>,
    pub(super) ready: Vec<i64>,
    pub(super) sent: Vec<i64>,
    pub(super) sent_end: Vec<i64>,
    pub(super) first_byte: Vec<i64>,
    pub(super) first_event: Vec<i64>,
    pub(super) first_token: Vec<i64>,
    pub(super) first_output_token: Vec<i64>,
    pub(super) second_token: Vec<i64>,
    pub(super) last_token: Vec<i64>,
    pub(super) done: Vec<i64>,
    pub(super) sent_bytes: Vec<u64>,
    pub(super) response_bytes: Vec<u64>,
    pub(super) prompt_tokens: Vec<u32>,
    pub(super) completion_tokens: Vec<u32>,
    pub(super) cached_tokens: Vec<u32>,
    pub(super) reasoning_tokens: Vec<u32>,
    pub(super) chunk_tokens: Vec<u64>,
    pub(super) connection: Vec<u32>,
    pub(super) status: Vec<u16>,
    pub(super) target: Vec<u16>,
    pub(super) core: Vec<u16>,
    class: Vec<u8>,
    finish: Vec<u8>,
    flags: Vec<u8>,
    marks: Vec<u8>,
    /// The log has a footer, so silence about a request means that it never left.
    pub(super) closed: bool,
}

macro_rules! times {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])*
        #[must_use]
        #[inline]
        pub fn $name(&self, i: usize) -> Option<RunNanos> {
            known_time(self.$name[i])
        })*
    };
}

macro_rules! tokens {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])*
        #[must_use]
        #[inline]
        pub fn $name(&self, i: usize) -> Option<u32> {
            Some(self.$name[i]).filter(|&tokens| tokens != UNKNOWN_TOKENS)
        })*
    };
}

impl Requests {
    /// `n` requests of which nothing is known yet.
    pub(super) fn unknown(n: usize) -> Self {
        let times = || vec![NO_TIME; n];
        let tokens = || vec![UNKNOWN_TOKENS; n];
        Self {
            due: times(),
            ready: times(),
            sent: times(),
            sent_end: times(),
            first_byte: times(),
            first_event: times(),
            first_token: times(),
            first_output_token: times(),
            second_token: times(),
            last_token: times(),
            done: times(),
            sent_bytes: vec![u64::MAX; n],
            response_bytes: vec![u64::MAX; n],
            prompt_tokens: tokens(),
            completion_tokens: tokens(),
            cached_tokens: tokens(),
            reasoning_tokens: tokens(),
            chunk_tokens: vec![0; n],
            connection: vec![u32::MAX; n],
            status: vec![0; n],
            target: vec![u16::MAX; n],
            core: vec![u16::MAX; n],
            class: vec![NO_CLASS; n],
            finish: vec![0; n],
            flags: vec![0; n],
            marks: vec![0; n],
            closed: false,
        }
    }

    /// How many requests the plan has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sent.len()
    }

    /// Whether nothing was planned.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    times! {
        /// What the schedule asked; `None` where only its predecessor decides.
        due;
        /// When its dependencies and gates allowed it; `None` if it never left.
        ready;
        /// Taken right before the write of its first byte; `None` if it never left.
        sent;
        /// When the kernel had accepted its last byte.
        sent_end;
        /// When the read with the answer's first byte completed.
        first_byte;
        /// When the first event, of any content, was complete.
        first_event;
        /// When the first content event was complete: text, reasoning or tool call.
        first_token;
        /// When the first content event other than reasoning was complete.
        first_output_token;
        /// When the second content event was complete.
        second_token;
        /// When the last content event was complete.
        last_token;
        /// When the exchange ended, in whatever way.
        done;
    }

    tokens! {
        /// Prompt tokens as the server reported them.
        prompt_tokens;
        /// Completion tokens as the server reported them.
        completion_tokens;
        /// Cached prompt tokens as the server reported them.
        cached_tokens;
        /// Reasoning tokens as the server reported them.
        reasoning_tokens;
    }

    /// When it could first leave: the later of due and ready. For a request that never left this is
    /// its due time, if it has one.
    #[must_use]
    #[inline]
    pub fn intended(&self, i: usize) -> Option<RunNanos> {
        // The sentinel is the smallest number, so the larger of the two is the known one.
        known_time(self.due[i].max(self.ready[i]))
    }

    /// Whether it left.
    #[must_use]
    #[inline]
    pub fn was_sent(&self, i: usize) -> bool {
        self.marks[i] & MARK_SENT != 0
    }

    /// Whether it left on a connection that had carried an earlier request.
    #[must_use]
    #[inline]
    pub fn connection_reused(&self, i: usize) -> Option<bool> {
        self.was_sent(i).then_some(self.marks[i] & MARK_REUSED != 0)
    }

    /// Whether another request of its core is due at the same instant.
    #[must_use]
    #[inline]
    pub fn in_burst(&self, i: usize) -> bool {
        self.marks[i] & MARK_BURST != 0
    }

    /// The sum of its content events' own token counts (one each unless the server's running usage
    /// said more). Zero if none arrived.
    #[must_use]
    #[inline]
    pub fn chunk_tokens(&self, i: usize) -> u64 {
        self.chunk_tokens[i]
    }

    /// The core that sent it, or was to.
    #[must_use]
    #[inline]
    pub fn core(&self, i: usize) -> Option<CoreIndex> {
        Some(CoreIndex(self.core[i])).filter(|&core| core != CoreIndex::CONDUCTOR)
    }

    /// Index into the manifest's targets.
    #[must_use]
    #[inline]
    pub fn target(&self, i: usize) -> Option<u16> {
        Some(self.target[i]).filter(|&target| target != u16::MAX)
    }

    /// Its core's own number of the connection that carried it.
    #[must_use]
    #[inline]
    pub fn connection(&self, i: usize) -> Option<u32> {
        Some(self.connection[i]).filter(|&connection| connection != u32::MAX)
    }

    /// Bytes of head and body that the kernel accepted.
    #[must_use]
    #[inline]
    pub fn sent_bytes(&self, i: usize) -> Option<u64> {
        Some(self.sent_bytes[i]).filter(|&bytes| bytes != u64::MAX)
    }

    /// Bytes of the answer, head included.
    #[must_use]
    #[inline]
    pub fn response_bytes(&self, i: usize) -> Option<u64> {
        Some(self.response_bytes[i]).filter(|&bytes| bytes != u64::MAX)
    }

    /// HTTP status, if a head arrived.
    #[must_use]
    #[inline]
    pub fn status(&self, i: usize) -> Option<u16> {
        Some(self.status[i]).filter(|&status| status != 0)
    }

    /// Why the model stopped, if the answer ended.
    #[must_use]
    #[inline]
    pub fn finish(&self, i: usize) -> FinishReason {
        FinishReason::from_number(self.finish[i])
    }

    /// Rare facts about its end.
    #[must_use]
    #[inline]
    pub fn flags(&self, i: usize) -> DoneFlags {
        DoneFlags(self.flags[i])
    }

    /// How it ended, as the log says it.
    #[must_use]
    #[inline]
    pub fn class(&self, i: usize) -> Option<Class> {
        Class::from_number(self.class[i])
    }

    /// How it ended, or why that is not known.
    #[must_use]
    #[inline]
    pub fn end(&self, i: usize) -> End {
        match self.class(i) {
            Some(class) => End::Known(class),
            None if self.was_sent(i) => End::Open,
            None if self.closed => End::NeverSent,
            None => End::NotReached,
        }
    }

    /// The outcome people count; `None` while it is open or was not reached when the log ends.
    #[must_use]
    #[inline]
    pub fn outcome(&self, i: usize) -> Option<Outcome> {
        match self.end(i) {
            End::Known(class) => Some(class.outcome()),
            End::NeverSent => Some(Outcome::NeverSent),
            End::Open | End::NotReached => None,
        }
    }

    /// Whether its answer was complete and successful. Only such requests enter latency statistics.
    #[must_use]
    #[inline]
    pub fn is_ok(&self, i: usize) -> bool {
        self.class[i] == Class::Ok as u8
    }

    pub(super) fn mark_sent(&mut self, i: usize, reused: bool) {
        self.marks[i] |= MARK_SENT | if reused { MARK_REUSED } else { 0 };
    }

    pub(super) fn mark_burst(&mut self, i: usize) {
        self.marks[i] |= MARK_BURST;
    }

    pub(super) fn set_end(&mut self, i: usize, class: Class, finish: FinishReason, flags: u8) {
        self.class[i] = class as u8;
        self.finish[i] = finish as u8;
        self.flags[i] = flags;
    }
}

#[inline]
fn known_time(time: i64) -> Option<RunNanos> {
    (time != NO_TIME).then_some(RunNanos(time))
}
