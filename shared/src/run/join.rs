//! Joins records to the requests they are about.
//!
//! Every rule for contradictory records is here: the first sending, first stamp and first end
//! count, the last known usage wins, and what was passed over is counted for a warning. It does not
//! know about blocks or files; [`super::build`] feeds it.

use super::build::counted_words;
use super::chunks::{Chunk, Chunks, TOKENS_MAX};
use super::events::{Anchor, Connect, Loss, Stall};
use super::requests::{NO_TIME, Requests};
use crate::log::{
    ChunkKind, ContentEvent, DoneFlags, Footer, PlanRow, Record, RecordBlock, UNKNOWN_TOKENS, Usage,
};
use crate::units::{CoreIndex, NANOS_PER_MILLI, RequestIndex, RunNanos};

/// A step of the wall clock smaller than this is its ordinary steering.
const WALL_STEP_NS: i128 = 100 * NANOS_PER_MILLI as i128;

/// Records joined to requests.
pub(super) struct Join {
    pub(super) requests: Requests,
    /// Content events per request; in the second pass, how many have found their place.
    pub(super) counts: Vec<u32>,
    pub(super) stalls: Vec<Stall>,
    pub(super) connects: Vec<Connect>,
    pub(super) anchors: Vec<Anchor>,
    pub(super) losses: Vec<Loss>,
    texts: Vec<(u32, u16, u8, [u8; 24])>,
    repeated_sends: Vec<usize>,
    unknown_records: u64,
    strangers: u64,
    repeated_ends: u64,
    changed_dues: u64,
    moved: u64,
    clipped: u64,
}

impl Join {
    pub(super) fn new(plan: &[PlanRow], closed: bool) -> Self {
        let mut requests = Requests::unknown(plan.len());
        requests.closed = closed;
        for (i, row) in plan.iter().enumerate() {
            requests.due[i] = row.due.map_or(NO_TIME, |due| due.0);
            requests.core[i] = row.core.0;
            requests.target[i] = row.target;
        }
        Self {
            requests,
            counts: vec![0; plan.len()],
            stalls: Vec::new(),
            connects: Vec::new(),
            anchors: Vec::new(),
            losses: Vec::new(),
            texts: Vec::new(),
            repeated_sends: Vec::new(),
            unknown_records: 0,
            strangers: 0,
            repeated_ends: 0,
            changed_dues: 0,
            moved: 0,
            clipped: 0,
        }
    }

    /// First pass: everything but the content events, which are counted.
    pub(super) fn facts(&mut self, block: &RecordBlock<'_>) {
        let core = block.core;
        for bytes in block.raw() {
            if let Some(event) = Record::decode_chunk(bytes) {
                self.count_event(&event);
                continue;
            }
            match Record::decode(bytes) {
                None => self.unknown_records += 1,
                Some(Record::Chunks { request, time, together }) => {
                    together.events(request, time).for_each(|event| self.count_event(&event));
                }
                Some(Record::Stall { start, length_ns }) => {
                    self.stalls.push(Stall { core, start, length_ns });
                }
                Some(Record::Connect { connection, start, end, target, class, errno }) => self
                    .connects
                    .push(Connect { core, connection, start, end, target, class, errno }),
                Some(Record::Lost { time, count }) => {
                    self.losses.push(Loss { core, time, count });
                }
                Some(Record::Anchor { time, unix_ns, monotonic_ns }) => {
                    let monotonic_ns = Some(monotonic_ns);
                    self.anchors.push(Anchor { core, time, unix_ns, monotonic_ns });
                }
                Some(record) => self.about_request(core, &record),
            }
        }
    }

    fn about_request(&mut self, core: CoreIndex, record: &Record) {
        let Some(request) = request_of(record) else { return };
        let i = request.as_usize();
        if i >= self.counts.len() {
            self.strangers += 1;
            return;
        }
        match *record {
            Record::Dispatch { sent, ready, due, target, reused, .. } => {
                self.dispatch(i, core, [sent, ready], due, target, reused);
            }
            Record::SentEnd { time, bytes, connection, .. } => {
                // Of two, the second belongs to the sending that was answered.
                self.requests.sent_end[i] = time.0;
                self.requests.sent_bytes[i] = bytes;
                self.requests.connection[i] = connection;
            }
            Record::FirstByte { time, .. } => keep_first(&mut self.requests.first_byte[i], time),
            Record::FirstEvent { time, .. } => keep_first(&mut self.requests.first_event[i], time),
            Record::Usage { usage, .. } => self.usage(i, usage),
            Record::Done { .. } => self.done(i, record),
            Record::Text { part, used, bytes, .. } => {
                self.texts.push((request.0, part, used, bytes));
            }
            // Content events are counted before they come here.
            Record::Chunk { .. }
            | Record::Chunks { .. }
            | Record::Stall { .. }
            | Record::Connect { .. }
            | Record::Lost { .. }
            | Record::Anchor { .. }
            | Record::Step { .. }
            | Record::User { .. }
            | Record::Assessment { .. } => {}
        }
    }

    fn count_event(&mut self, event: &ContentEvent) {
        let i = event.request.as_usize();
        let Some(count) = self.counts.get_mut(i) else {
            self.strangers += 1;
            return;
        };
        *count += 1;
        self.requests.chunk_tokens[i] += u64::from(event.tokens.min(TOKENS_MAX));
        self.clipped += u64::from(event.tokens > TOKENS_MAX);
    }

    fn dispatch(
        &mut self,
        i: usize,
        core: CoreIndex,
        [sent, ready]: [RunNanos; 2],
        due: Option<RunNanos>,
        target: u16,
        reused: bool,
    ) {
        let requests = &mut self.requests;
        if requests.was_sent(i) {
            self.repeated_sends.push(i);
            return;
        }
        let due = due.map_or(NO_TIME, |due| due.0);
        self.changed_dues += u64::from(requests.due[i] != NO_TIME && requests.due[i] != due);
        self.moved += u64::from(requests.core[i] != u16::MAX && requests.core[i] != core.0);
        requests.sent[i] = sent.0;
        requests.ready[i] = ready.0;
        requests.due[i] = due;
        requests.target[i] = target;
        requests.core[i] = core.0;
        requests.mark_sent(i, reused);
    }

    /// The last count that says something wins, field by field.
    fn usage(&mut self, i: usize, usage: Usage) {
        let requests = &mut self.requests;
        let columns = [
            (&mut requests.prompt_tokens[i], usage.prompt_tokens),
            (&mut requests.completion_tokens[i], usage.completion_tokens),
            (&mut requests.cached_tokens[i], usage.cached_tokens),
            (&mut requests.reasoning_tokens[i], usage.reasoning_tokens),
        ];
        for (column, tokens) in columns {
            if tokens != UNKNOWN_TOKENS {
                *column = tokens;
            }
        }
    }

    fn done(&mut self, i: usize, record: &Record) {
        let Record::Done { time, class, status, response_bytes, finish, flags, .. } = *record
        else {
            return;
        };
        if self.requests.class(i).is_some() {
            self.repeated_ends += 1;
            return;
        }
        self.requests.done[i] = time.0;
        self.requests.response_bytes[i] = response_bytes;
        self.requests.status[i] = status.unwrap_or(0);
        self.requests.set_end(i, class, finish, flags.0);
    }

    /// Second pass: the content events find their places.
    pub(super) fn events(&mut self, block: &RecordBlock<'_>, chunks: &mut Chunks) {
        for bytes in block.raw() {
            if let Some(event) = Record::decode_chunk(bytes) {
                self.place(event, chunks);
            } else if let Some(Record::Chunks { request, time, together }) = Record::decode(bytes) {
                together.events(request, time).for_each(|event| self.place(event, chunks));
            }
        }
    }

    #[inline]
    fn place(&mut self, event: ContentEvent, chunks: &mut Chunks) {
        let i = event.request.as_usize();
        if let Some(place) = self.counts.get_mut(i) {
            let ContentEvent { time, kind, tokens, bytes, .. } = event;
            chunks.put(i, *place, Chunk { time, tokens, bytes, kind });
            *place += 1;
        }
    }

    /// Orders each request's events and notes the four that have columns of their own.
    pub(super) fn first_and_last(&mut self, chunks: &mut Chunks) {
        for i in 0..self.requests.len() {
            chunks.sort_row(i);
            let row = chunks.row(i);
            let times = row.times();
            let (Some(&first), Some(&last)) = (times.first(), times.last()) else { continue };
            self.requests.first_token[i] = first;
            self.requests.last_token[i] = last;
            self.requests.second_token[i] = times.get(1).copied().unwrap_or(NO_TIME);
            let output = row.iter().find(|chunk| chunk.kind != ChunkKind::REASONING);
            self.requests.first_output_token[i] = output.map_or(NO_TIME, |chunk| chunk.time.0);
        }
    }

    /// The failures' words, joined from their parts.
    pub(super) fn error_texts(&mut self) -> Vec<(u32, Box<str>)> {
        self.texts.sort_by_key(|&(request, part, ..)| (request, part));
        self.texts
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

    /// What the records contradict.
    pub(super) fn warnings(&self, footer: Option<&Footer>) -> Vec<String> {
        const RECORDS: [&str; 2] = ["record is", "records are"];
        const HAVE: [&str; 2] = ["request has", "requests have"];
        const WERE: [&str; 2] = ["request was", "requests were"];
        let requests = &self.requests;
        let repeated = self
            .repeated_sends
            .iter()
            .filter(|&&i| !requests.flags(i).has(DoneFlags::RESENT))
            .count() as u64;
        let lost = self.losses.iter().fold(0_u64, |sum, loss| sum.saturating_add(loss.count));
        let lost = lost.max(footer.map_or(0, |footer| footer.lost_records));
        let backwards = (0..requests.len()).filter(|&i| runs_backwards(requests, i)).count();
        let ends_only = (0..requests.len())
            .filter(|&i| !requests.was_sent(i) && requests.first_byte(i).is_some())
            .count();
        let counts = [
            (lost, RECORDS, " missing: no room while the run went on"),
            (self.unknown_records, RECORDS, " of a kind that this version does not know"),
            (self.strangers, RECORDS, " about requests that were not planned; ignored"),
            (repeated, HAVE, " more than one sending; the first counts"),
            (self.repeated_ends, HAVE, " more than one end; the first counts"),
            (self.changed_dues, WERE, " due at another time than planned"),
            (self.moved, WERE, " sent by another core than planned"),
            (
                self.clipped,
                ["content event claims", "content events claim"],
                " more than 16,777,215 tokens; clipped",
            ),
            (backwards as u64, HAVE, " times that run backwards"),
            (ends_only as u64, HAVE, " an answer but no sending; it was lost"),
        ];
        let mut words = counted_words(&counts);
        words.extend(wall_step(&self.anchors));
        words
    }
}

fn request_of(record: &Record) -> Option<RequestIndex> {
    match *record {
        Record::Dispatch { request, .. }
        | Record::SentEnd { request, .. }
        | Record::FirstByte { request, .. }
        | Record::FirstEvent { request, .. }
        | Record::Chunk { request, .. }
        | Record::Chunks { request, .. }
        | Record::Usage { request, .. }
        | Record::Done { request, .. }
        | Record::Text { request, .. } => Some(request),
        Record::Stall { .. }
        | Record::Connect { .. }
        | Record::Lost { .. }
        | Record::Anchor { .. }
        | Record::Step { .. }
        | Record::User { .. }
        | Record::Assessment { .. } => None,
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
pub(super) fn mark_bursts(requests: &mut Requests) {
    let mut dues: Vec<(u16, i64, usize)> = (0..requests.len())
        .filter(|&i| requests.due[i] != NO_TIME)
        .map(|i| (requests.core[i], requests.due[i], i))
        .collect();
    dues.sort_unstable();
    for burst in dues.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).filter(|burst| burst.len() > 1) {
        for &(_, _, i) in burst {
            requests.mark_burst(i);
        }
    }
}

/// Says by how much the wall clock was stepped during the run, if it was.
fn wall_step(anchors: &[Anchor]) -> Option<String> {
    let offset = |anchor: &Anchor| i128::from(anchor.unix_ns) - i128::from(anchor.time.0);
    let first = offset(anchors.first()?);
    let largest = anchors.iter().map(|anchor| offset(anchor) - first).max_by_key(|s| s.abs())?;
    (largest.abs() > WALL_STEP_NS).then(|| {
        format!(
            "the wall clock was stepped by {} ms during the run; no length is affected",
            largest / i128::from(NANOS_PER_MILLI)
        )
    })
}
