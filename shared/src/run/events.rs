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
    /// For each place in `rows`, and for its end, the length of all stalls before it.
    before_ns: Vec<u64>,
}

impl Stalls {
    pub(super) fn new(mut rows: Vec<Stall>) -> Self {
        rows.sort_by_key(|stall| (stall.core, stall.start));
        let lengths = rows.iter().scan(0_u64, |sum, stall| {
            *sum = sum.saturating_add(stall.length_ns);
            Some(*sum)
        });
        let before_ns = std::iter::once(0).chain(lengths).collect();
        Self { rows, before_ns }
    }

    /// Every stall, by core and then by time.
    #[must_use]
    pub fn all(&self) -> &[Stall] {
        &self.rows
    }

    /// One core's stalls, by time.
    #[must_use]
    pub fn of_core(&self, core: CoreIndex) -> &[Stall] {
        let (start, end) = self.places_of(core);
        &self.rows[start..end]
    }

    /// How much of the time between two instants one core lay in stalls, in nanoseconds.
    #[must_use]
    pub fn stalled_ns(&self, core: CoreIndex, from: RunNanos, to: RunNanos) -> u64 {
        let start = self.places_of(core).0;
        // Stalls of one core follow each other, so both their starts and their ends ascend.
        let stalls = self.of_core(core);
        let first = stalls.partition_point(|stall| stall.end() <= from);
        let end = stalls.partition_point(|stall| stall.start < to);
        if first >= end {
            return 0;
        }
        let all = self.before_ns[start + end].saturating_sub(self.before_ns[start + first]);
        let early = from.0.saturating_sub(stalls[first].start.0).max(0).cast_unsigned();
        let late = stalls[end - 1].end().0.saturating_sub(to.0).max(0).cast_unsigned();
        all.saturating_sub(early).saturating_sub(late)
    }

    fn places_of(&self, core: CoreIndex) -> (usize, usize) {
        let start = self.rows.partition_point(|stall| stall.core < core);
        (start, self.rows.partition_point(|stall| stall.core <= core))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalled_time_is_that_of_the_core_between_the_instants() {
        let stall = |core, start, length_ns| Stall {
            core: CoreIndex(core),
            start: RunNanos(start),
            length_ns,
        };
        let rows = vec![stall(1, 0, 1_000), stall(0, 100, 10), stall(0, 200, 50), stall(0, 400, 5)];
        let stalls = Stalls::new(rows);
        for (from, to, ns) in [
            (0, 1_000, 65),
            (0, 100, 0),
            (105, 210, 15),
            (110, 200, 0),
            (210, 220, 10),
            (249, 401, 2),
            (405, 900, 0),
            (300, 250, 0),
        ] {
            let found = stalls.stalled_ns(CoreIndex(0), RunNanos(from), RunNanos(to));
            assert_eq!(found, ns, "{from} to {to}");
        }
        assert_eq!(stalls.stalled_ns(CoreIndex(2), RunNanos(0), RunNanos(9)), 0);
    }
}
