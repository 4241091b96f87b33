//! Everything the log says about each planned request, one column per fact.
//!
//! Columns are plain arrays with a sentinel inside and `Option` outside, so reading a value is two
//! loads and a comparison and never allocates. They are cut into pages, which a clone shares: a
//! later state of a growing run costs what has changed. Index `i` is the request's place in the
//! plan; an index beyond [`Requests::len`] panics or finds nothing known. Nothing here is derived:
//! differences, rates and shares are [`crate::metrics`]'s.

use std::sync::Arc;

use crate::log::{Class, DoneFlags, FinishReason, Outcome, UNKNOWN_TOKENS};
use crate::units::{CoreIndex, RunNanos};

/// "This did not happen or was not recorded", in a time column.
pub(super) const NO_TIME: i64 = i64::MIN;
/// No end in the log, in the class column.
const NO_CLASS: u8 = u8::MAX;

const MARK_SENT: u8 = 1;
const MARK_REUSED: u8 = 2;
const MARK_BURST: u8 = 4;
/// Something about it has changed since the last picture of the run; in no picture.
const MARK_TOUCHED: u8 = 8;
/// Its times run backwards.
const MARK_BACKWARDS: u8 = 16;
/// It has an answer and no sending.
const MARK_ENDS_ONLY: u8 = 32;

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
    /// The log is closed and has no record of it, and is damaged or lacks records: whether it was
    /// ever sent is not known.
    Lost,
}

impl End {
    /// The name used in reports and exports: of the cause, or of why an end is not known.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Known(class) => class.name(),
            Self::Open => Self::UNKNOWN[0],
            Self::NeverSent => Self::UNKNOWN[1],
            Self::NotReached => Self::UNKNOWN[2],
            Self::Lost => Self::UNKNOWN[3],
        }
    }

    /// The names of ends that no record says.
    pub const UNKNOWN: [&'static str; 4] = [
        "in_flight_when_log_ends",
        "no_record",
        "not_reached_when_log_ends",
        "unknown_log_incomplete",
    ];
}

/// Requests of a page. A page is the unit that a later state of a growing run shares with an
/// earlier one, or copies when something in it changes. Small in tests, so that small logs have
/// many.
pub(super) const PAGE: usize = 1 << PAGE_BITS;
const PAGE_BITS: u32 = if cfg!(test) { 4 } else { 10 };

/// One entry per planned request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    pages: Vec<Arc<Page>>,
    length: usize,
    /// The log has a footer, so silence about a request means that it never left.
    pub(super) closed: bool,
    /// Records are missing from the log, so silence about a request means nothing.
    pub(super) has_gaps: bool,
}

/// The columns of some requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) due: [i64; PAGE],
    pub(super) ready: [i64; PAGE],
    pub(super) sent: [i64; PAGE],
    pub(super) sent_end: [i64; PAGE],
    pub(super) first_byte: [i64; PAGE],
    pub(super) first_event: [i64; PAGE],
    pub(super) first_token: [i64; PAGE],
    pub(super) first_output_token: [i64; PAGE],
    pub(super) second_token: [i64; PAGE],
    pub(super) last_token: [i64; PAGE],
    pub(super) done: [i64; PAGE],
    pub(super) sent_bytes: [u64; PAGE],
    pub(super) response_bytes: [u64; PAGE],
    pub(super) chunk_tokens: [u64; PAGE],
    pub(super) prompt_tokens: [u32; PAGE],
    pub(super) completion_tokens: [u32; PAGE],
    pub(super) cached_tokens: [u32; PAGE],
    pub(super) reasoning_tokens: [u32; PAGE],
    pub(super) connection: [u32; PAGE],
    pub(super) status: [u16; PAGE],
    pub(super) target: [u16; PAGE],
    pub(super) core: [u16; PAGE],
    class: [u8; PAGE],
    finish: [u8; PAGE],
    flags: [u8; PAGE],
    marks: [u8; PAGE],
}

/// Requests of which nothing is known yet.
static UNKNOWN: Page = Page {
    due: [NO_TIME; PAGE],
    ready: [NO_TIME; PAGE],
    sent: [NO_TIME; PAGE],
    sent_end: [NO_TIME; PAGE],
    first_byte: [NO_TIME; PAGE],
    first_event: [NO_TIME; PAGE],
    first_token: [NO_TIME; PAGE],
    first_output_token: [NO_TIME; PAGE],
    second_token: [NO_TIME; PAGE],
    last_token: [NO_TIME; PAGE],
    done: [NO_TIME; PAGE],
    sent_bytes: [u64::MAX; PAGE],
    response_bytes: [u64::MAX; PAGE],
    chunk_tokens: [0; PAGE],
    prompt_tokens: [UNKNOWN_TOKENS; PAGE],
    completion_tokens: [UNKNOWN_TOKENS; PAGE],
    cached_tokens: [UNKNOWN_TOKENS; PAGE],
    reasoning_tokens: [UNKNOWN_TOKENS; PAGE],
    connection: [u32::MAX; PAGE],
    status: [0; PAGE],
    target: [u16::MAX; PAGE],
    core: [u16::MAX; PAGE],
    class: [NO_CLASS; PAGE],
    finish: [0; PAGE],
    flags: [0; PAGE],
    marks: [0; PAGE],
};

/// One request, to be written to.
pub(super) struct Entry<'a> {
    pub(super) page: &'a mut Page,
    pub(super) at: usize,
}

macro_rules! times {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])*
        #[must_use]
        #[inline]
        pub fn $name(&self, i: usize) -> Option<RunNanos> {
            known_time(self.column(i, |page| &page.$name))
        })*
    };
}

macro_rules! tokens {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])*
        #[must_use]
        #[inline]
        pub fn $name(&self, i: usize) -> Option<u32> {
            Some(self.column(i, |page| &page.$name)).filter(|&tokens| tokens != UNKNOWN_TOKENS)
        })*
    };
}

impl Requests {
    /// Makes the requests that many, if they are fewer; of the new ones nothing is known yet.
    pub(super) fn grow(&mut self, length: usize) {
        while self.pages.len() * PAGE < length {
            self.pages.push(Arc::new(UNKNOWN.clone()));
        }
        self.length = self.length.max(length);
    }

    /// Request `i`, to be written to.
    #[inline]
    pub(super) fn entry(&mut self, i: usize) -> Entry<'_> {
        Entry { page: Arc::make_mut(&mut self.pages[i >> PAGE_BITS]), at: i % PAGE }
    }

    #[inline]
    fn column<T: Copy>(&self, i: usize, of: impl Fn(&Page) -> &[T; PAGE]) -> T {
        of(&self.pages[i >> PAGE_BITS])[i % PAGE]
    }

    /// How many requests the plan has.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Whether nothing was planned.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
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
        known_time(self.column(i, |page| &page.due).max(self.column(i, |page| &page.ready)))
    }

    /// Whether it left.
    #[must_use]
    #[inline]
    pub fn was_sent(&self, i: usize) -> bool {
        self.column(i, |page| &page.marks) & MARK_SENT != 0
    }

    /// Whether it left on a connection that had carried an earlier request.
    #[must_use]
    #[inline]
    pub fn connection_reused(&self, i: usize) -> Option<bool> {
        self.was_sent(i).then_some(self.column(i, |page| &page.marks) & MARK_REUSED != 0)
    }

    /// Whether another request of its core is due at the same instant.
    #[must_use]
    #[inline]
    pub fn in_burst(&self, i: usize) -> bool {
        self.column(i, |page| &page.marks) & MARK_BURST != 0
    }

    /// The sum of its content events' own token counts (one each unless the server's running usage
    /// said more). Zero if none arrived.
    #[must_use]
    #[inline]
    pub fn chunk_tokens(&self, i: usize) -> u64 {
        self.column(i, |page| &page.chunk_tokens)
    }

    /// The core that sent it, or was to.
    #[must_use]
    #[inline]
    pub fn core(&self, i: usize) -> Option<CoreIndex> {
        let core = CoreIndex(self.column(i, |page| &page.core));
        (core != CoreIndex::CONDUCTOR).then_some(core)
    }

    /// Index into the manifest's targets.
    #[must_use]
    #[inline]
    pub fn target(&self, i: usize) -> Option<u16> {
        Some(self.column(i, |page| &page.target)).filter(|&target| target != u16::MAX)
    }

    /// Its core's own number of the connection that carried it.
    #[must_use]
    #[inline]
    pub fn connection(&self, i: usize) -> Option<u32> {
        Some(self.column(i, |page| &page.connection)).filter(|&connection| connection != u32::MAX)
    }

    /// Bytes of head and body that the kernel accepted.
    #[must_use]
    #[inline]
    pub fn sent_bytes(&self, i: usize) -> Option<u64> {
        Some(self.column(i, |page| &page.sent_bytes)).filter(|&bytes| bytes != u64::MAX)
    }

    /// Bytes of the answer, head included.
    #[must_use]
    #[inline]
    pub fn response_bytes(&self, i: usize) -> Option<u64> {
        Some(self.column(i, |page| &page.response_bytes)).filter(|&bytes| bytes != u64::MAX)
    }

    /// HTTP status, if a head arrived.
    #[must_use]
    #[inline]
    pub fn status(&self, i: usize) -> Option<u16> {
        Some(self.column(i, |page| &page.status)).filter(|&status| status != 0)
    }

    /// Why the model stopped, if the answer ended.
    #[must_use]
    #[inline]
    pub fn finish(&self, i: usize) -> FinishReason {
        FinishReason::from_number(self.column(i, |page| &page.finish))
    }

    /// Rare facts about its end.
    #[must_use]
    #[inline]
    pub fn flags(&self, i: usize) -> DoneFlags {
        DoneFlags(self.column(i, |page| &page.flags))
    }

    /// How it ended, as the log says it.
    #[must_use]
    #[inline]
    pub fn class(&self, i: usize) -> Option<Class> {
        Class::from_number(self.column(i, |page| &page.class))
    }

    /// How it ended, or why that is not known.
    #[must_use]
    #[inline]
    pub fn end(&self, i: usize) -> End {
        match self.class(i) {
            Some(class) => End::Known(class),
            None if self.was_sent(i) => End::Open,
            None if self.closed && self.has_gaps => End::Lost,
            None if self.closed => End::NeverSent,
            None => End::NotReached,
        }
    }

    /// The outcome people count; `None` while it is open, was not reached when the log ends, or was
    /// lost with a part of the log.
    #[must_use]
    #[inline]
    pub fn outcome(&self, i: usize) -> Option<Outcome> {
        match self.end(i) {
            End::Known(class) => Some(class.outcome()),
            End::NeverSent => Some(Outcome::NeverSent),
            End::Open | End::NotReached | End::Lost => None,
        }
    }

    /// Whether its answer was complete and successful. Only such requests enter latency statistics.
    #[must_use]
    #[inline]
    pub fn is_ok(&self, i: usize) -> bool {
        self.column(i, |page| &page.class) == Class::Ok as u8
    }

    /// Says whether it is in a burst, without copying a page that says so already.
    pub(super) fn set_burst(&mut self, i: usize, burst: bool) {
        if self.in_burst(i) != burst {
            let entry = self.entry(i);
            entry.page.marks[entry.at] ^= MARK_BURST;
        }
    }
}

impl Entry<'_> {
    #[inline]
    pub(super) const fn was_sent(&self) -> bool {
        self.page.marks[self.at] & MARK_SENT != 0
    }

    #[inline]
    pub(super) const fn has_ended(&self) -> bool {
        self.page.class[self.at] != NO_CLASS
    }

    pub(super) const fn mark_sent(&mut self, reused: bool) {
        self.page.marks[self.at] |= MARK_SENT | if reused { MARK_REUSED } else { 0 };
    }

    pub(super) const fn set_end(&mut self, class: Class, finish: FinishReason, flags: u8) {
        self.page.class[self.at] = class as u8;
        self.page.finish[self.at] = finish as u8;
        self.page.flags[self.at] = flags;
    }

    /// Notes that something about it has changed; `false` if that was noted already.
    #[inline]
    pub(super) const fn touch(&mut self) -> bool {
        let marks = &mut self.page.marks[self.at];
        let first = *marks & MARK_TOUCHED == 0;
        *marks |= MARK_TOUCHED;
        first
    }

    /// It has been looked at: its times run backwards or not, it has an answer without a sending or
    /// not. Says what was found before.
    pub(super) const fn settle(&mut self, [backwards, ends_only]: [bool; 2]) -> [bool; 2] {
        let marks = &mut self.page.marks[self.at];
        let before = [*marks & MARK_BACKWARDS != 0, *marks & MARK_ENDS_ONLY != 0];
        *marks &= !(MARK_TOUCHED | MARK_BACKWARDS | MARK_ENDS_ONLY);
        *marks |= if backwards { MARK_BACKWARDS } else { 0 };
        *marks |= if ends_only { MARK_ENDS_ONLY } else { 0 };
        before
    }
}

#[inline]
fn known_time(time: i64) -> Option<RunNanos> {
    (time != NO_TIME).then_some(RunNanos(time))
}
