//! Joins records to the requests they are about, one after the other.
//!
//! Every rule for contradictory records is here: the first sending, first stamp and first end
//! count, the last known usage wins, and what was passed over is counted for a warning. It does not
//! know about blocks or files; [`super::reader`] feeds it, and may ask for a picture at any time.

use super::chunks::{Chunks, TOKENS_MAX};
use super::events::{Anchor, Connect, Loss, Stall};
use super::faults::counted_words;
use super::grouping::Grouping;
use super::requests::{Entry, NO_TIME, Requests};
use crate::log::{ContentEvent, DoneFlags, Footer, PlanRow, Record, UNKNOWN_TOKENS, Usage};
use crate::quantity::duration_ns;
use crate::units::{CoreIndex, NANOS_PER_MILLI, RequestIndex, RunNanos};

/// A step of the wall clock smaller than this is its ordinary steering.
const WALL_STEP_NS: i128 = 100 * NANOS_PER_MILLI as i128;

/// A part of a failure's words: request, place of the part, bytes used, bytes.
type TextPart = (u32, u16, u8, [u8; 24]);

/// Records joined to requests.
#[derive(Default)]
pub(super) struct Join {
    pub(super) requests: Requests,
    events: Grouping,
    pub(super) stalls: Vec<Stall>,
    pub(super) connects: Vec<Connect>,
    pub(super) anchors: Vec<Anchor>,
    pub(super) losses: Vec<Loss>,
    texts: Vec<TextPart>,
    /// Requests of which something has changed since they were last looked at.
    touched: Vec<u32>,
    /// Dues or cores are no longer those that bursts were looked for with.
    bursts_changed: bool,
    repeated_sends: Vec<usize>,
    unknown_records: u64,
    repeated_ends: u64,
    changed_dues: u64,
    moved: u64,
    clipped: u64,
    backwards: u64,
    ends_only: u64,
}

impl Join {
    /// Of requests that were planned.
    pub(super) fn planned(plan: &[PlanRow]) -> Self {
        let mut join = Self::default();
        join.grow(plan.len());
        for (i, row) in plan.iter().enumerate() {
            let Entry { page, at } = join.requests.entry(i);
            page.due[at] = row.due.map_or(NO_TIME, |due| due.0);
            page.core[at] = row.core.0;
            page.target[at] = row.target;
        }
        join.bursts_changed = true;
        join
    }

    /// The plan was none of requests: forgets them.
    pub(super) fn forget_requests(&mut self) {
        self.requests = Requests::default();
        self.events = Grouping::default();
        self.bursts_changed = false;
    }

    /// How many requests are known.
    pub(super) const fn known(&self) -> usize {
        self.requests.len()
    }

    /// From now on that many requests are known, if they are more than before.
    pub(super) fn grow(&mut self, requests: usize) {
        self.requests.grow(requests);
        self.events.grow(requests);
    }

    /// Which core is to send a known request, and where to.
    pub(super) fn planned_for(&mut self, request: RequestIndex, core: CoreIndex, target: u16) {
        let Entry { page, at } = self.requests.entry(request.as_usize());
        if page.core[at] == u16::MAX {
            page.core[at] = core.0;
        }
        if page.target[at] == u16::MAX {
            page.target[at] = target;
        }
    }

    /// Takes a record about no request, or about one that is known.
    pub(super) fn take(&mut self, core: CoreIndex, record: &Record) {
        match *record {
            Record::Stall { start, length_ns } => {
                self.stalls.push(Stall { core, start, length_ns });
            }
            Record::Connect { connection, start, end, target, class, errno } => {
                self.connects.push(Connect { core, connection, start, end, target, class, errno });
            }
            Record::Lost { time, count } => self.losses.push(Loss { core, time, count }),
            Record::Anchor { time, unix_ns, monotonic_ns } => {
                let monotonic_ns = Some(monotonic_ns);
                self.anchors.push(Anchor { core, time, unix_ns, monotonic_ns });
            }
            Record::Chunks { request, time, together } => {
                together.events(request, time).for_each(|event| self.event(&event));
            }
            _ => self.about_request(core, record),
        }
    }

    /// A record of a kind that this version does not know.
    pub(super) const fn unknown(&mut self) {
        self.unknown_records += 1;
    }

    fn about_request(&mut self, core: CoreIndex, record: &Record) {
        let Some(request) = request_of(record) else { return };
        let i = request.as_usize();
        let mut entry = self.requests.entry(i);
        if entry.touch() {
            self.touched.push(request.0);
        }
        let Entry { page, at } = entry;
        match *record {
            Record::Dispatch { .. } => self.dispatch(i, core, record),
            Record::SentEnd { time, bytes, connection, .. } => {
                // Of two, the second belongs to the sending that was answered.
                page.sent_end[at] = time.0;
                page.sent_bytes[at] = bytes;
                page.connection[at] = connection;
            }
            Record::FirstByte { time, .. } => keep_first(&mut page.first_byte[at], time),
            Record::FirstEvent { time, .. } => keep_first(&mut page.first_event[at], time),
            Record::Usage { usage, .. } => set_usage(Entry { page, at }, usage),
            Record::Done { .. } => self.done(i, record),
            Record::Text { part, used, bytes, .. } => {
                self.texts.push((request.0, part, used, bytes));
            }
            // Content events have come another way; the others are about no request.
            Record::Chunk { .. }
            | Record::Chunks { .. }
            | Record::Stall { .. }
            | Record::Connect { .. }
            | Record::Lost { .. }
            | Record::Anchor { .. }
            | Record::Step { .. }
            | Record::User { .. }
            | Record::Assessment { .. }
            | Record::Scraped(_) => {}
        }
    }

    /// Takes a content event of a known request.
    #[inline]
    pub(super) fn event(&mut self, event: &ContentEvent) {
        self.clipped += u64::from(event.tokens > TOKENS_MAX);
        self.events.push(event);
    }

    /// To be called now and then, so that events do not pile up.
    pub(super) fn tidy(&mut self) {
        self.events.tidy(&mut self.requests, &mut self.touched);
    }

    fn dispatch(&mut self, i: usize, core: CoreIndex, record: &Record) {
        let Record::Dispatch { sent, ready, due, target, reused, .. } = *record else { return };
        let mut entry = self.requests.entry(i);
        if entry.was_sent() {
            self.repeated_sends.push(i);
            return;
        }
        entry.mark_sent(reused);
        let Entry { page, at } = entry;
        let due = due.map_or(NO_TIME, |due| due.0);
        let (planned_due, planned_core) = (page.due[at], page.core[at]);
        self.changed_dues += u64::from(planned_due != NO_TIME && planned_due != due);
        self.moved += u64::from(planned_core != u16::MAX && planned_core != core.0);
        self.bursts_changed |= planned_due != due || planned_core != core.0;
        page.sent[at] = sent.0;
        page.ready[at] = ready.0;
        page.due[at] = due;
        page.target[at] = target;
        page.core[at] = core.0;
    }

    fn done(&mut self, i: usize, record: &Record) {
        let Record::Done { time, class, status, response_bytes, finish, flags, .. } = *record
        else {
            return;
        };
        let mut entry = self.requests.entry(i);
        if entry.has_ended() {
            self.repeated_ends += 1;
            return;
        }
        entry.set_end(class, finish, flags.0);
        let Entry { page, at } = entry;
        page.done[at] = time.0;
        page.response_bytes[at] = response_bytes;
        page.status[at] = status.unwrap_or(0);
    }

    /// The content events so far; with them, everything about requests is up to date.
    pub(super) fn snapshot(&mut self) -> Chunks {
        let chunks = self.events.snapshot(&mut self.requests, &mut self.touched);
        self.settle();
        chunks
    }

    /// All content events. Nothing comes after them.
    pub(super) fn finish(&mut self) -> Chunks {
        let events = std::mem::take(&mut self.events);
        let chunks = events.finish(&mut self.requests, &mut self.touched);
        self.settle();
        chunks
    }

    /// Looks at what has changed.
    fn settle(&mut self) {
        for request in std::mem::take(&mut self.touched) {
            let i = request as usize;
            let backwards = runs_backwards(&self.requests, i);
            let ends_only = !self.requests.was_sent(i) && self.requests.first_byte(i).is_some();
            let mut entry = self.requests.entry(i);
            let [was_backwards, was_ends_only] = entry.settle([backwards, ends_only]);
            self.backwards = self.backwards + u64::from(backwards) - u64::from(was_backwards);
            self.ends_only = self.ends_only + u64::from(ends_only) - u64::from(was_ends_only);
        }
        if std::mem::take(&mut self.bursts_changed) {
            mark_bursts(&mut self.requests);
        }
    }

    /// The failures' words, joined from their parts.
    pub(super) fn error_texts(&self) -> Vec<(u32, Box<str>)> {
        let mut texts = self.texts.clone();
        texts.sort_by_key(|&(request, part, ..)| (request, part));
        texts
            .chunk_by(|a, b| a.0 == b.0)
            .map(|parts| {
                let bytes: Vec<u8> = parts
                    .iter()
                    .flat_map(|(_, _, used, bytes)| &bytes[..usize::from(*used)])
                    .copied()
                    .collect();
                (parts[0].0, String::from_utf8_lossy(&bytes).into())
            })
            .collect()
    }

    /// Records that found no room while the run went on.
    pub(super) fn lost_records(&self, footer: Option<&Footer>) -> u64 {
        let lost = self.losses.iter().fold(0_u64, |sum, loss| sum.saturating_add(loss.count));
        lost.max(footer.map_or(0, |footer| footer.lost_records))
    }

    /// What the records contradict; `strangers` are about requests that nobody knows.
    pub(super) fn warnings(
        &self,
        footer: Option<&Footer>,
        anchors: &[Anchor],
        strangers: u64,
    ) -> Vec<String> {
        const RECORDS: [&str; 2] = ["record is", "records are"];
        const HAVE: [&str; 2] = ["request has", "requests have"];
        const WERE: [&str; 2] = ["request was", "requests were"];
        let requests = &self.requests;
        let repeated = self
            .repeated_sends
            .iter()
            .filter(|&&i| !requests.flags(i).has(DoneFlags::RESENT))
            .count() as u64;
        let counts = [
            (self.lost_records(footer), RECORDS, " missing: no room while the run went on"),
            (self.unknown_records, RECORDS, " of a kind that this version does not know"),
            (strangers, RECORDS, " about requests that were not planned; ignored"),
            (repeated, HAVE, " more than one sending; the first counts"),
            (self.repeated_ends, HAVE, " more than one end; the first counts"),
            (self.changed_dues, WERE, " due at another time than planned"),
            (self.moved, WERE, " sent by another core than planned"),
            (
                self.clipped,
                ["content event claims", "content events claim"],
                " more than 16,777,215 tokens; clipped",
            ),
            (self.backwards, HAVE, " times that run backwards"),
            (self.ends_only, HAVE, " an answer but no sending; it was lost"),
        ];
        let mut words = counted_words(&counts);
        words.extend(wall_step(anchors));
        words
    }
}

/// The request that a record is about.
pub(crate) const fn request_of(record: &Record) -> Option<RequestIndex> {
    match *record {
        Record::Dispatch { request, .. }
        | Record::SentEnd { request, .. }
        | Record::FirstByte { request, .. }
        | Record::FirstEvent { request, .. }
        | Record::Chunk { request, .. }
        | Record::Chunks { request, .. }
        | Record::Usage { request, .. }
        | Record::Done { request, .. }
        | Record::Text { request, .. }
        | Record::Step { request, .. } => Some(request),
        Record::Stall { .. }
        | Record::Connect { .. }
        | Record::Lost { .. }
        | Record::Anchor { .. }
        | Record::User { .. }
        | Record::Assessment { .. }
        | Record::Scraped(_) => None,
    }
}

/// The last count that says something wins, field by field.
fn set_usage(entry: Entry<'_>, usage: Usage) {
    let Entry { page, at } = entry;
    let columns = [
        (&mut page.prompt_tokens[at], usage.prompt_tokens),
        (&mut page.completion_tokens[at], usage.completion_tokens),
        (&mut page.cached_tokens[at], usage.cached_tokens),
        (&mut page.reasoning_tokens[at], usage.reasoning_tokens),
    ];
    for (column, tokens) in columns {
        if tokens != UNKNOWN_TOKENS {
            *column = tokens;
        }
    }
}

fn keep_first(column: &mut i64, time: RunNanos) {
    if *column == NO_TIME {
        *column = time.0;
    }
}

/// Whether the known stamps of a request are not in the order of nature.
fn runs_backwards(requests: &Requests, i: usize) -> bool {
    let stamps = [
        requests.sent(i),
        requests.first_byte(i),
        requests.first_event(i),
        requests.first_token(i),
        requests.last_token(i),
        requests.done(i),
    ];
    !stamps.iter().flatten().is_sorted()
}

/// Marks requests of one core that are due at one instant.
fn mark_bursts(requests: &mut Requests) {
    let of = |i: usize| requests.due(i).map(|due| (requests.core(i), due, i));
    let mut dues: Vec<_> = (0..requests.len()).filter_map(of).collect();
    dues.sort_unstable();
    for burst in dues.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        for &(_, _, i) in burst {
            requests.set_burst(i, burst.len() > 1);
        }
    }
}

/// Says by how much the wall clock was stepped during the run, if it was.
fn wall_step(anchors: &[Anchor]) -> Option<String> {
    let offset = |anchor: &Anchor| i128::from(anchor.unix_ns) - i128::from(anchor.time.0);
    let first = offset(anchors.first()?);
    let largest = anchors.iter().map(|anchor| offset(anchor) - first).max_by_key(|s| s.abs())?;
    (largest.abs() > WALL_STEP_NS).then(|| {
        let direction = if largest < 0 { " back" } else { "" };
        format!(
            "the wall clock was stepped{direction} by {} during the run; no length is affected",
            duration_ns(i64::try_from(largest.unsigned_abs()).unwrap_or(i64::MAX))
        )
    })
}
