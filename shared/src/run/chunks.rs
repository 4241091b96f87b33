//! The content events of every request: 16 bytes each, grouped by request.
//!
//! Compressed rows: request `i` owns the entries from `offsets[i]` to `offsets[i + 1]`, ordered by
//! time and, within one instant, as its core recorded them. Thirty million events take 480 MB. The
//! columns are filled when the run is built; nothing here is derived.

use crate::log::ChunkKind;
use crate::units::RunNanos;

/// The largest token count one event can hold here; the builder warns where it had to clip.
pub(super) const TOKENS_MAX: u32 = (1 << 24) - 1;

/// All content events of a run.
#[derive(Clone, Debug, Default)]
pub struct Chunks {
    offsets: Vec<u64>,
    times: Vec<i64>,
    bytes: Vec<u32>,
    /// `tokens << 8 | kind`.
    tokens: Vec<u32>,
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
    /// Room for the counted events of each request.
    pub(super) fn with_counts(counts: &[u32]) -> Self {
        let mut offsets = Vec::with_capacity(counts.len() + 1);
        let mut total = 0;
        offsets.push(0);
        for &count in counts {
            total += u64::from(count);
            offsets.push(total);
        }
        let total = usize::try_from(total).expect("every event is a record in the file");
        Self { offsets, times: vec![0; total], bytes: vec![0; total], tokens: vec![0; total] }
    }

    /// Writes the event at `place` of request `i`'s row.
    #[inline]
    pub(super) fn put(&mut self, i: usize, place: u32, chunk: Chunk) {
        let at = self.start(i) + place as usize;
        self.times[at] = chunk.time.0;
        self.bytes[at] = chunk.bytes;
        self.tokens[at] = chunk.tokens.min(TOKENS_MAX) << 8 | u32::from(chunk.kind.0);
    }

    /// Orders request `i`'s row by time, keeping the recorded order within one instant.
    pub(super) fn sort_row(&mut self, i: usize) {
        let (start, end) = (self.start(i), self.start(i + 1));
        if self.times[start..end].is_sorted() {
            return;
        }
        let mut row: Vec<Chunk> = self.row(i).iter().collect();
        row.sort_by_key(|chunk| chunk.time);
        for (place, chunk) in (0..).zip(row) {
            self.put(i, place, chunk);
        }
    }

    /// How many events the run has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// How many events request `i` has.
    #[must_use]
    #[inline]
    pub fn count(&self, i: usize) -> usize {
        self.start(i + 1) - self.start(i)
    }

    /// The events of request `i`.
    #[must_use]
    #[inline]
    pub fn row(&self, i: usize) -> ChunkRow<'_> {
        let range = self.start(i)..self.start(i + 1);
        ChunkRow {
            times: &self.times[range.clone()],
            bytes: &self.bytes[range.clone()],
            tokens: &self.tokens[range],
        }
    }

    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "offsets never exceed the columns' length, which is a usize"
    )]
    fn start(&self, i: usize) -> usize {
        self.offsets[i] as usize
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

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(time: i64, tokens: u32) -> Chunk {
        Chunk { time: RunNanos(time), tokens, bytes: 7, kind: ChunkKind::REASONING }
    }

    #[test]
    fn rows_are_separate_and_sorted_by_time_then_arrival() {
        let mut chunks = Chunks::with_counts(&[3, 0, 1]);
        for (place, (time, tokens)) in (0..).zip([(30, 1), (10, 2), (10, 3)]) {
            chunks.put(0, place, chunk(time, tokens));
        }
        chunks.put(2, 0, chunk(5, u32::MAX));
        chunks.sort_row(0);
        let row: Vec<_> = chunks.row(0).iter().collect();
        assert_eq!(row, [chunk(10, 2), chunk(10, 3), chunk(30, 1)]);
        assert_eq!(chunks.count(1), 0);
        assert_eq!(chunks.row(2).chunk(0).tokens, TOKENS_MAX);
        assert_eq!(chunks.len(), 4);
    }
}
