//! Content events of one read, in one record.
//!
//! A busy server's read holds dozens of events that share request, stamp and kind and differ in
//! their length only. A record each would make the log sixteen times as long as what it says, and
//! the thread that writes it would take its CPU from the server under test. Nothing is lost: what
//! does not fit (an event of several tokens, or of more than 255 bytes) has a record of its own.

use super::record::{ChunkKind, ContentEvent};
use crate::units::{RequestIndex, RunNanos};

/// Events in one record.
pub const TOGETHER_MAX: usize = 16;

/// Up to sixteen content events of one token each, in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Together {
    kind: ChunkKind,
    count: u8,
    /// Content bytes of each.
    bytes: [u8; TOGETHER_MAX],
}

impl Together {
    /// Adds an event; `false` when it does not belong here or has no room, and nothing was added.
    #[inline]
    pub fn add(&mut self, kind: ChunkKind, tokens: u32, bytes: u32) -> bool {
        let Ok(bytes) = u8::try_from(bytes) else { return false };
        let Some(place) = self.bytes.get_mut(usize::from(self.count)) else { return false };
        if tokens != 1 || (self.count > 0 && self.kind != kind) {
            return false;
        }
        *place = bytes;
        self.kind = kind;
        self.count += 1;
        true
    }

    /// How many there are.
    #[must_use]
    #[inline]
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there is none.
    #[must_use]
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The events, each as if it had a record of its own.
    pub fn events(
        self,
        request: RequestIndex,
        time: RunNanos,
    ) -> impl Iterator<Item = ContentEvent> {
        self.bytes.into_iter().take(self.len()).map(move |bytes| ContentEvent {
            request,
            time,
            kind: self.kind,
            tokens: 1,
            bytes: u32::from(bytes),
        })
    }

    /// The event, if there is exactly one.
    #[inline]
    pub fn only(self, request: RequestIndex, time: RunNanos) -> Option<ContentEvent> {
        if self.count == 1 { self.events(request, time).next() } else { None }
    }

    /// What its record holds: kind, count, lengths.
    #[inline]
    pub(super) const fn parts(self) -> (ChunkKind, u8, [u8; TOGETHER_MAX]) {
        (self.kind, self.count, self.bytes)
    }

    /// From what a record holds, which may be anything.
    pub(super) fn from_parts(kind: ChunkKind, count: u16, bytes: [u8; TOGETHER_MAX]) -> Self {
        // A lying count must not reach past the record.
        let mut together = Self { kind, count: 0, bytes: [0; TOGETHER_MAX] };
        for (place, bytes) in together.bytes.iter_mut().zip(bytes).take(usize::from(count)) {
            *place = bytes;
            together.count += 1;
        }
        together
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_events_alike_go_together() {
        let mut together = Together::default();
        assert!(!together.add(ChunkKind::TEXT, 2, 4), "two tokens");
        assert!(!together.add(ChunkKind::TEXT, 1, 256), "too long");
        assert!(together.is_empty());
        assert!(together.add(ChunkKind::TEXT, 1, 255));
        assert!(!together.add(ChunkKind::REASONING, 1, 4), "another kind");
        for bytes in 1..16 {
            assert!(together.add(ChunkKind::TEXT, 1, bytes));
        }
        assert!(!together.add(ChunkKind::TEXT, 1, 1), "full");
        let found: Vec<_> = together.events(RequestIndex(3), RunNanos(9)).collect();
        let bytes: Vec<_> = found.iter().map(|event| event.bytes).collect();
        assert_eq!(bytes, [255, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
        assert!(found.iter().all(|event| event.tokens == 1 && event.time == RunNanos(9)));
    }
}
