//! The content events of every request: 16 bytes each, grouped by request.
//!
//! A request's events lie side by side in one of some segments, ordered by time and, within one
//! instant, as its core recorded them. Thirty million events take 480 MB. Segments and the table of
//! places are shared by clones, so that a later state of a growing run costs only what has changed;
//! `grouping` fills them. Nothing here is derived.

use std::sync::Arc;

use super::requests::PAGE;
use crate::log::ChunkKind;
use crate::units::RunNanos;

/// The largest token count one event can hold here; the builder warns where it had to clip.
pub(super) const TOKENS_MAX: u32 = (1 << 24) - 1;

/// All content events of a run.
#[derive(Clone, Debug, Default)]
pub struct Chunks {
    pub(super) segments: Vec<Arc<Segment>>,
    pub(super) places: Places,
    pub(super) length: usize,
}

/// The events of some requests.
#[derive(Debug, Default)]
pub(super) struct Segment {
    pub(super) times: Vec<i64>,
    pub(super) bytes: Vec<u32>,
    /// `tokens << 8 | kind`.
    pub(super) tokens: Vec<u32>,
}

/// Where a request's events lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) start: usize,
    pub(super) segment: u32,
    pub(super) count: u32,
}

/// Where each request's events lie, in pages that clones share.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    pages: Vec<Arc<[Place; PAGE]>>,
}

/// One content event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// When the read that completed it completed.
    pub time: RunNanos,
    /// Tokens: one unless the server's running usage said more.
    pub tokens: u32,
    /// Bytes of text, reasoning and tool content.
    pub bytes: u32,
    /// What it carried.
    pub kind: ChunkKind,
}

/// The content events of one request.
#[derive(Clone, Copy, Debug)]
pub struct ChunkRow<'a> {
    times: &'a [i64],
    bytes: &'a [u32],
    tokens: &'a [u32],
}

impl Chunks {
    /// How many events the run has.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// How many events request `i` has.
    #[must_use]
    #[inline]
    pub fn count(&self, i: usize) -> usize {
        self.places.of(i).count as usize
    }

    /// The events of request `i`.
    #[must_use]
    #[inline]
    pub fn row(&self, i: usize) -> ChunkRow<'_> {
        let Place { start, segment, count } = self.places.of(i);
        let range = start..start + count as usize;
        match self.segments.get(segment as usize) {
            Some(segment) if count > 0 => ChunkRow {
                times: &segment.times[range.clone()],
                bytes: &segment.bytes[range.clone()],
                tokens: &segment.tokens[range],
            },
            _ => ChunkRow { times: &[], bytes: &[], tokens: &[] },
        }
    }
}

impl Segment {
    /// Room for so many events.
    pub(super) fn of(events: usize) -> Self {
        Self { times: vec![0; events], bytes: vec![0; events], tokens: vec![0; events] }
    }

    /// Writes an event.
    #[inline]
    pub(super) fn put(&mut self, at: usize, time: i64, bytes: u32, tokens: u32) {
        self.times[at] = time;
        self.bytes[at] = bytes;
        self.tokens[at] = tokens;
    }

    /// Orders a row by time, keeping the order of arrival within one instant.
    pub(super) fn sort_row(&mut self, start: usize, count: usize) {
        let range = start..start + count;
        if self.times[range.clone()].is_sorted() {
            return;
        }
        let mut row: Vec<_> =
            range.clone().map(|at| (self.times[at], self.bytes[at], self.tokens[at])).collect();
        row.sort_by_key(|event| event.0);
        for (at, (time, bytes, tokens)) in range.zip(row) {
            self.put(at, time, bytes, tokens);
        }
    }
}

impl Place {
    /// No event.
    pub(super) const NONE: Self = Self { start: 0, segment: u32::MAX, count: 0 };
}

impl Places {
    /// Makes room for so many requests.
    pub(super) fn grow(&mut self, requests: usize) {
        while self.pages.len() * PAGE < requests {
            self.pages.push(Arc::new([Place::NONE; PAGE]));
        }
    }

    #[inline]
    pub(super) fn of(&self, i: usize) -> Place {
        self.pages[i / PAGE][i % PAGE]
    }

    pub(super) fn set(&mut self, i: usize, place: Place) {
        Arc::make_mut(&mut self.pages[i / PAGE])[i % PAGE] = place;
    }
}

impl<'a> ChunkRow<'a> {
    /// How many events there are.
    #[must_use]
    #[inline]
    pub const fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there is none.
    #[must_use]
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// The events' times in nanoseconds of the run, ascending.
    #[must_use]
    #[inline]
    pub const fn times(&self) -> &'a [i64] {
        self.times
    }

    /// The event at a place; panics beyond the row.
    #[must_use]
    #[inline]
    pub fn chunk(&self, place: usize) -> Chunk {
        Chunk {
            time: RunNanos(self.times[place]),
            tokens: self.tokens[place] >> 8,
            bytes: self.bytes[place],
            kind: ChunkKind(self.tokens[place].to_le_bytes()[0]),
        }
    }

    /// The events in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = Chunk> + use<'a> {
        (0..self.len()).map(move |place| self.chunk(place))
    }
}
