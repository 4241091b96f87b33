//! The only place that reads a clock.
//!
//! Everything else takes time as an argument, so that the same decisions run under [`SimClock`].
//! [`MonotonicClock`] is `CLOCK_MONOTONIC` in nanoseconds (through the vDSO, about 30-40 ns a
//! read); it is one clock for all threads and processes of a host, which is what lets a server on
//! the same machine judge our send times. This module does not wait (see [`crate::pacer`]).

#![expect(clippy::disallowed_methods, reason = "the one module that reads clocks")]

use std::cell::Cell;

use rustix::time::{ClockId, clock_gettime};

/// A source of "now", in nanoseconds on some clock that never runs backwards.
pub trait Clock {
    /// The present instant.
    fn now_ns(&self) -> i64;
}

/// The host's monotonic clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct MonotonicClock;

impl Clock for MonotonicClock {
    fn now_ns(&self) -> i64 {
        monotonic_ns()
    }
}

/// A clock that moves only when told: the simulation's.
#[derive(Debug, Default)]
pub struct SimClock {
    now_ns: Cell<i64>,
}

impl SimClock {
    /// Moves to `now_ns`.
    ///
    /// # Panics
    /// When that would run the clock backwards: a simulation that does so is wrong.
    pub fn advance_to(&self, now_ns: i64) {
        assert!(now_ns >= self.now_ns.get(), "a monotonic clock does not run backwards");
        self.now_ns.set(now_ns);
    }
}

impl Clock for SimClock {
    fn now_ns(&self) -> i64 {
        self.now_ns.get()
    }
}

/// `CLOCK_MONOTONIC` in nanoseconds.
#[must_use]
pub fn monotonic_ns() -> i64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// The monotonic clock's own resolution: the smallest step between two of its readings that are
/// not equal. Takes microseconds; never below the nanosecond that the clock counts in.
#[must_use]
pub fn monotonic_step_ns() -> u64 {
    const STEPS: usize = 200;
    let mut smallest = i64::MAX;
    let mut latest = monotonic_ns();
    let mut seen = 0;
    while seen < STEPS {
        let now = monotonic_ns();
        if now > latest {
            smallest = smallest.min(now - latest);
            seen += 1;
        }
        latest = now;
    }
    smallest.unsigned_abs()
}

/// The wall clock in nanoseconds since 1970; used for anchors in the log, never for lengths.
#[must_use]
pub fn unix_ns() -> u64 {
    let time = clock_gettime(ClockId::Realtime);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap_or(0)
}

/// What the monotonic clock shows when the wall clock shows `unix_ns`, which should be near:
/// between now and then the wall clock is steered.
#[must_use]
pub fn monotonic_at(at_unix_ns: u64) -> i64 {
    const READINGS: usize = 9;
    // Of several readings of both clocks, those that were closest together say it best.
    let reading = |_| {
        let before_ns = monotonic_ns();
        let wall_ns = unix_ns();
        let after_ns = monotonic_ns();
        let (middle_ns, apart_ns) = (before_ns.midpoint(after_ns), after_ns - before_ns);
        (apart_ns, middle_ns.saturating_add(at_unix_ns.wrapping_sub(wall_ns).cast_signed()))
    };
    (0..READINGS).map(reading).min().map_or_else(monotonic_ns, |(_, at_ns)| at_ns)
}

/// CPU time this thread has used, in nanoseconds: wall time minus this is time it did not run.
#[must_use]
pub fn thread_cpu_ns() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_monotonic_clock_does_not_run_backwards() {
        let first = monotonic_ns();
        assert!(monotonic_ns() >= first);
    }

    #[test]
    fn the_clock_has_a_step_and_it_is_none_of_a_coarse_clock() {
        let step_ns = monotonic_step_ns();
        assert!(step_ns > 0);
        // A clock that ticks would step by a timer's period: a millisecond at the least.
        assert!(step_ns < 1_000_000, "{step_ns} ns");
    }

    #[test]
    fn an_instant_of_the_wall_clock_is_one_of_the_monotonic_clock() {
        let before_ns = monotonic_ns();
        let now_ns = monotonic_at(unix_ns());
        let after_ns = monotonic_ns();
        // Unless somebody sets the wall clock in between.
        assert!((before_ns..=after_ns).contains(&now_ns), "{before_ns} {now_ns} {after_ns}");
        let later_ns = monotonic_at(unix_ns() + 5_000_000_000);
        assert!(later_ns - now_ns > 4_000_000_000, "{later_ns} {now_ns}");
    }

    #[test]
    fn a_simulated_clock_moves_only_when_told() {
        let clock = SimClock::default();
        assert_eq!(clock.now_ns(), 0);
        clock.advance_to(5);
        assert_eq!(clock.now_ns(), 5);
    }
}
