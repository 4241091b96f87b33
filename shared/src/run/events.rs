//! Facts of a run that belong to a core rather than to a request.
//!
//! Plain rows, sorted once when the run is built. Whether a request was hit by a stall is
//! [`crate::metrics::lateness`]'s question.

use crate::log::Class;
use crate::units::{CoreIndex, RunNanos};

/// A jump of a core's clock while it polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Whose clock.
    pub core: CoreIndex,
    /// When the gap began.
    pub start: RunNanos,
    /// How long it was.
    pub length_ns: u64,
}

impl Stall {
    /// When the gap ended.
    #[must_use]
    pub const fn end(&self) -> RunNanos {
        RunNanos(self.start.0.saturating_add_unsigned(self.length_ns))
    }
}

/// All stalls, by core and then by time.
#[derive(Clone, Debug, Default)]
pub struct Stalls {
    rows: Vec<Stall>,
}

impl Stalls {
    pub(super) fn new(mut rows: Vec<Stall>) -> Self {
        rows.sort_by_key(|stall| (stall.core, stall.start));
        Self { rows }
    }

    /// Every stall, by core and then by time.
    #[must_use]
    pub fn all(&self) -> &[Stall] {
        &self.rows
    }

    /// One core's stalls, by time.
    #[must_use]
    pub fn of_core(&self, core: CoreIndex) -> &[Stall] {
        let start = self.rows.partition_point(|stall| stall.core < core);
        let end = self.rows.partition_point(|stall| stall.core <= core);
        &self.rows[start..end]
    }
}

/// A connection that was opened, or could not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connect {
    /// Whose connection.
    pub core: CoreIndex,
    /// The core's own number of it.
    pub connection: u32,
    /// When it was started.
    pub start: RunNanos,
    /// When it ended.
    pub end: RunNanos,
    /// Index into the manifest's targets.
    pub target: u16,
    /// [`Class::Ok`], or why it failed.
    pub class: Class,
    /// The operating system's error number, 0 if none.
    pub errno: u32,
}

/// Two clocks read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// Who read them.
    pub core: CoreIndex,
    /// The run's clock.
    pub time: RunNanos,
    /// The wall clock, nanoseconds since 1970.
    pub unix_ns: u64,
    /// The host's monotonic clock, where it was read as well.
    pub monotonic_ns: Option<u64>,
}

/// Records that found no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Whose records.
    pub core: CoreIndex,
    /// When.
    pub time: RunNanos,
    /// How many.
    pub count: u64,
}
