//! Groups content events by request while they come in any order.
//!
//! Events wait in the order of their arrival. When there are enough of them, those of requests that
//! have ended are moved into a segment that never changes again; those of open requests wait on, so
//! that a request's events always lie side by side. Each event is moved a bounded number of times,
//! whatever the order: a request that goes on after its end is brought back once and then waits
//! until the log's end.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::chunks::{Chunks, Place, Segment, TOKENS_MAX};
use super::requests::{NO_TIME, Requests};
use crate::log::{ChunkKind, ContentEvent};

/// Events that wait before any are moved into a segment. Few in tests, so that small logs have many
/// segments.
const SEGMENT_EVENTS: usize = if cfg!(test) { 50 } else { 1 << 18 };
/// The request has no event that waits.
const NO_ROW: u32 = u32::MAX;

/// Content events, some of them grouped.
#[derive(Debug)]
pub(super) struct Grouping {
    /// What will not change: whole segments, and the places of their requests.
    chunks: Chunks,
    /// The rest, as they came.
    waiting: Vec<Event>,
    /// How many may wait before segments are made.
    most_waiting: usize,
    /// Requests that went on after their end.
    reopened: BTreeSet<u32>,
    /// By request: its place in a list of rows while that is worked on.
    row_of: Vec<u32>,
}

/// A content event of some request.
#[derive(Clone, Copy, Debug)]
struct Event {
    time: i64,
    request: u32,
    bytes: u32,
    /// `tokens << 8 | kind`.
    tokens: u32,
}

/// Events of one request that wait.
#[derive(Clone, Copy, Debug)]
struct Row {
    request: u32,
    count: u32,
    /// Whether they go into the segment that is being made.
    moves: bool,
    /// Where the next of them goes.
    next: usize,
}

impl Default for Grouping {
    fn default() -> Self {
        Self {
            chunks: Chunks::default(),
            waiting: Vec::new(),
            most_waiting: SEGMENT_EVENTS,
            reopened: BTreeSet::new(),
            row_of: Vec::new(),
        }
    }
}

impl Grouping {
    /// Makes room for so many requests.
    pub(super) fn grow(&mut self, requests: usize) {
        self.chunks.places.grow(requests);
        self.row_of.resize(requests.max(self.row_of.len()), NO_ROW);
    }

    /// Takes an event of a known request.
    #[inline]
    pub(super) fn push(&mut self, event: &ContentEvent) {
        self.chunks.length += 1;
        self.waiting.push(Event {
            time: event.time.0,
            request: event.request.0,
            bytes: event.bytes,
            tokens: event.tokens.min(TOKENS_MAX) << 8 | u32::from(event.kind.0),
        });
    }

    /// Makes a segment of requests that have ended, if enough events wait.
    pub(super) fn tidy(&mut self, requests: &mut Requests, touched: &mut Vec<u32>) {
        if self.waiting.len() < self.most_waiting {
            return;
        }
        self.bring_back();
        let mut rows = self.rows(|request, reopened| {
            requests.class(request as usize).is_some() && !reopened.contains(&request)
        });
        let segment = self.group(&mut rows, requests, touched);
        for row in rows.iter().filter(|row| !row.moves) {
            self.chunks.places.set(row.request as usize, Place::NONE);
        }
        self.keep_waiting(&rows);
        self.forget(&rows);
        if !segment.times.is_empty() {
            self.chunks.segments.push(Arc::new(segment));
        }
        self.most_waiting = self.waiting.len() + self.waiting.len().max(SEGMENT_EVENTS);
    }

    /// All events so far, grouped; what waits goes on waiting.
    pub(super) fn snapshot(&mut self, requests: &mut Requests, touched: &mut Vec<u32>) -> Chunks {
        self.bring_back();
        let mut rows = self.rows(|_, _| true);
        let segment = self.group(&mut rows, requests, touched);
        self.forget(&rows);
        let mut chunks = self.chunks.clone();
        chunks.segments.push(Arc::new(segment));
        chunks
    }

    /// All events, grouped.
    pub(super) fn finish(mut self, requests: &mut Requests, touched: &mut Vec<u32>) -> Chunks {
        self.bring_back();
        let mut rows = self.rows(|_, _| true);
        let segment = self.group(&mut rows, requests, touched);
        self.chunks.segments.push(Arc::new(segment));
        self.chunks
    }

    /// Brings events of finished segments back if their request has gone on.
    fn bring_back(&mut self) {
        let mut old = Vec::new();
        for event in &self.waiting {
            let place = self.chunks.places.of(event.request as usize);
            let Some(segment) = self.chunks.segments.get(place.segment as usize) else { continue };
            let range = place.start..place.start + place.count as usize;
            old.extend(range.map(|at| Event {
                time: segment.times[at],
                request: event.request,
                bytes: segment.bytes[at],
                tokens: segment.tokens[at],
            }));
            self.reopened.insert(event.request);
            self.chunks.places.set(event.request as usize, Place::NONE);
        }
        if !old.is_empty() {
            self.waiting.splice(0..0, old);
        }
    }

    /// The requests whose events wait, ascending; `moves` says whose are to be grouped.
    fn rows(&mut self, moves: impl Fn(u32, &BTreeSet<u32>) -> bool) -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::new();
        for &Event { request, .. } in &self.waiting {
            let at = &mut self.row_of[request as usize];
            match rows.get_mut(*at as usize) {
                Some(row) => row.count += 1,
                None => {
                    *at = u32::try_from(rows.len()).expect("no more rows than requests");
                    rows.push(Row { request, count: 1, moves: false, next: 0 });
                }
            }
        }
        rows.sort_unstable_by_key(|row| row.request);
        for (at, row) in (0..).zip(&mut rows) {
            row.moves = moves(row.request, &self.reopened);
            self.row_of[row.request as usize] = at;
        }
        rows
    }

    /// A segment of the rows that move, and their places in it; what their requests know of their
    /// events is brought up to date.
    fn group(
        &mut self,
        rows: &mut [Row],
        requests: &mut Requests,
        touched: &mut Vec<u32>,
    ) -> Segment {
        let mut length = 0;
        for row in rows.iter_mut().filter(|row| row.moves) {
            row.next = length;
            length += row.count as usize;
        }
        let mut segment = Segment::of(length);
        for event in &self.waiting {
            let row = &mut rows[self.row_of[event.request as usize] as usize];
            if row.moves {
                segment.put(row.next, event.time, event.bytes, event.tokens);
                row.next += 1;
            }
        }
        let number = u32::try_from(self.chunks.segments.len()).expect("segments are large");
        for row in rows.iter().filter(|row| row.moves) {
            let request = row.request as usize;
            let start = row.next - row.count as usize;
            segment.sort_row(start, row.count as usize);
            // The same events as in the last snapshot say the same.
            if self.chunks.places.of(request).count != row.count {
                note(&segment, start, row, requests);
                if requests.entry(request).touch() {
                    touched.push(row.request);
                }
            }
            let place = Place { start, segment: number, count: row.count };
            self.chunks.places.set(request, place);
        }
        segment
    }

    fn keep_waiting(&mut self, rows: &[Row]) {
        let row_of = &self.row_of;
        self.waiting.retain(|event| !rows[row_of[event.request as usize] as usize].moves);
    }

    fn forget(&mut self, rows: &[Row]) {
        for row in rows {
            self.row_of[row.request as usize] = NO_ROW;
        }
    }
}

/// Writes what a request's columns say of its events.
fn note(segment: &Segment, start: usize, row: &Row, requests: &mut Requests) {
    let range = start..start + row.count as usize;
    let (times, tokens) = (&segment.times[range.clone()], &segment.tokens[range]);
    let Some((&first, later)) = times.split_first() else { return };
    let reasoning = u32::from(ChunkKind::REASONING.0);
    let output = tokens.iter().position(|&tokens| tokens & 0xFF != reasoning);
    let entry = requests.entry(row.request as usize);
    let (page, at) = (entry.page, entry.at);
    page.first_token[at] = first;
    page.second_token[at] = later.first().copied().unwrap_or(NO_TIME);
    page.last_token[at] = later.last().copied().unwrap_or(first);
    page.first_output_token[at] = output.map_or(NO_TIME, |place| times[place]);
    page.chunk_tokens[at] = tokens.iter().map(|&tokens| u64::from(tokens >> 8)).sum();
}
