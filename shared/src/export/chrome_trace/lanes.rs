//! Tracks on which slices do not overlap.
//!
//! The format's slices nest: two that overlap on one track are taken for one inside the other, or
//! dropped. Of things that may overlap (turns of a session that are sent on schedule alone) each
//! goes to the first lane of its owner that is free, and a lane is a track.

use std::io::{self, Write};

use super::events::{Events, Track};

/// The tracks of one owner at a time.
pub(super) struct Lanes {
    process: u32,
    /// Each track and when its last slice ends.
    lanes: Vec<(Track, i64)>,
}

impl Lanes {
    /// No track yet.
    pub(super) const fn of(process: u32) -> Self {
        Self { process, lanes: Vec::new() }
    }

    /// The next owner has tracks of its own.
    pub(super) fn next_owner(&mut self) {
        self.lanes.clear();
    }

    /// A track that is free from `start` to `end`. To be asked in the order of the starts; a track
    /// that is new is named after its owner.
    pub(super) fn free<W: Write>(
        &mut self,
        events: &mut Events<W>,
        owner: impl Fn() -> String,
        (start, end): (i64, i64),
    ) -> io::Result<Track> {
        if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.1 <= start) {
            lane.1 = end;
            return Ok(lane.0);
        }
        let name = match self.lanes.len() {
            0 => owner(),
            others => format!("{} ({})", owner(), others + 1),
        };
        let track = events.track(self.process, &name)?;
        self.lanes.push((track, end));
        Ok(track)
    }
}
