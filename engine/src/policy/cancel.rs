//! Requests that are to be cancelled: whose time is up next.
//!
//! A timer starts when the last byte of a request has left, and strikes once. It names the
//! connection the request left on, because a request that goes out a second time leaves on another,
//! with a timer of its own: whoever takes one looks whether the connection still carries that
//! request. Nothing here allocates after [`Cancellations::new`].

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use onbeat_shared::units::{RequestIndex, RunNanos};

/// One core's running timers, soonest first.
#[derive(Debug)]
pub struct Cancellations {
    timers: BinaryHeap<Reverse<(RunNanos, RequestIndex, u32)>>,
}

impl Cancellations {
    /// With room for the timers of so many requests.
    #[must_use]
    pub fn new(requests: usize) -> Self {
        // A request leaves twice at most.
        Self { timers: BinaryHeap::with_capacity(2 * requests) }
    }

    /// Starts the timer of `request`, whose last byte left at `now` on `connection`; returns when
    /// it strikes.
    pub fn start(
        &mut self,
        request: RequestIndex,
        connection: u32,
        now: RunNanos,
        after_ns: i64,
    ) -> RunNanos {
        debug_assert!(self.timers.len() < self.timers.capacity(), "room for every timer");
        let at = RunNanos(now.0.saturating_add(after_ns.max(0)));
        self.timers.push(Reverse((at, request, connection)));
        at
    }

    /// When the next timer strikes.
    #[must_use]
    pub fn next(&self) -> Option<RunNanos> {
        self.timers.peek().map(|&Reverse((at, ..))| at)
    }

    /// Takes a request whose time is up by `now`, and the connection it left on.
    pub fn pop(&mut self, now: RunNanos) -> Option<(RequestIndex, u32)> {
        let &Reverse((at, request, connection)) = self.timers.peek()?;
        if at > now {
            return None;
        }
        self.timers.pop();
        Some((request, connection))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_strike_in_the_order_of_time_and_once() {
        let mut timers = Cancellations::new(3);
        let start = |timers: &mut Cancellations, request: u32, now: i64, after_ns: i64| {
            timers.start(RequestIndex(request), 10 + request, RunNanos(now), after_ns).0
        };
        assert_eq!(start(&mut timers, 0, 5, 100), 105);
        assert_eq!(start(&mut timers, 1, 6, 20), 26);
        assert_eq!(start(&mut timers, 2, 7, 0), 7);
        assert_eq!(timers.next(), Some(RunNanos(7)));
        assert_eq!(timers.pop(RunNanos(6)), None);
        let mut taken = Vec::new();
        while let Some((request, connection)) = timers.pop(RunNanos(104)) {
            taken.push((request.0, connection));
        }
        assert_eq!(taken, [(2, 12), (1, 11)]);
        assert_eq!(timers.pop(RunNanos(105)), Some((RequestIndex(0), 10)));
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn a_request_that_leaves_twice_has_a_timer_for_each_connection() {
        let mut timers = Cancellations::new(1);
        timers.start(RequestIndex(4), 1, RunNanos(0), 50);
        timers.start(RequestIndex(4), 2, RunNanos(30), 50);
        assert_eq!(timers.pop(RunNanos(60)), Some((RequestIndex(4), 1)));
        assert_eq!(timers.pop(RunNanos(60)), None);
        assert_eq!(timers.pop(RunNanos(80)), Some((RequestIndex(4), 2)));
        let forever = timers.start(RequestIndex(4), 2, RunNanos(1), i64::MAX);
        assert_eq!(forever, RunNanos(i64::MAX));
    }
}
