//! Time limits of an exchange: which limit strikes next, and a queue that finds it.
//!
//! Limits are coarse on purpose (milliseconds), and pacing must not pay for them: each connection
//! has at most one entry in the queue, armed no later than the shortest limit from now, so an entry
//! is never later than the limit it stands for. When an entry comes up, the exchange is looked at
//! again and either ended or re-armed. Ending it is the caller's business.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use onbeat_shared::log::outcome::Class;
use onbeat_shared::units::RunNanos;

/// The limits a user set; `None` means none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Opening a connection.
    pub connect_ns: Option<i64>,
    /// From sent to a whole head of the answer, interim ones not counted: a server that sends its
    /// head byte by byte has not answered.
    pub first_byte_ns: Option<i64>,
    /// Between two reads of an answer.
    pub idle_ns: Option<i64>,
    /// From the opening of a connection for it, or from sent if one was open, to done.
    pub total_ns: Option<i64>,
}

/// What a connection is doing, as far as limits are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The connection is being opened since then.
    Connecting {
        /// When it was started.
        since: RunNanos,
        /// When the request it is for was begun with, if it is for one.
        begun: Option<RunNanos>,
    },
    /// The request has left, and no part of the answer itself has come back.
    Waiting {
        /// When it was begun with.
        begun: RunNanos,
        /// When the first byte left.
        sent: RunNanos,
    },
    /// A head is coming in.
    Heading {
        /// When it was begun with.
        begun: RunNanos,
        /// When the first byte left.
        sent: RunNanos,
        /// The latest read.
        latest: RunNanos,
    },
    /// The answer is coming in.
    Answering {
        /// When it was begun with.
        begun: RunNanos,
        /// The latest read.
        latest: RunNanos,
    },
}

impl Limits {
    /// When the next limit strikes and what its passing is called.
    #[must_use]
    pub fn next(&self, phase: Phase) -> Option<(RunNanos, Class)> {
        let at = |since: RunNanos, limit: Option<i64>, class| {
            limit.map(|limit| (RunNanos(since.0.saturating_add(limit)), class))
        };
        let total = |begun| at(begun, self.total_ns, Class::TotalTimeout);
        let (phase, total) = match phase {
            Phase::Connecting { since, begun } => {
                (at(since, self.connect_ns, Class::ConnectTimeout), begun.and_then(total))
            }
            Phase::Waiting { begun, sent } => {
                (at(sent, self.first_byte_ns, Class::FirstByteTimeout), total(begun))
            }
            Phase::Heading { begun, sent, latest } => {
                let first = at(sent, self.first_byte_ns, Class::FirstByteTimeout);
                (sooner(first, at(latest, self.idle_ns, Class::IdleTimeout)), total(begun))
            }
            Phase::Answering { begun, latest } => {
                (at(latest, self.idle_ns, Class::IdleTimeout), total(begun))
            }
        };
        sooner(phase, total)
    }

    fn shortest_ns(&self) -> Option<i64> {
        [self.connect_ns, self.first_byte_ns, self.idle_ns, self.total_ns]
            .into_iter()
            .flatten()
            .min()
    }
}

/// Of two limits the one that strikes first; the first one if both do.
fn sooner(
    one: Option<(RunNanos, Class)>,
    other: Option<(RunNanos, Class)>,
) -> Option<(RunNanos, Class)> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other.0 < one.0 { other } else { one }),
        (one, other) => one.or(other),
    }
}

/// The connections whose limits are to be looked at, soonest first.
#[derive(Debug)]
pub struct Deadlines {
    shortest_ns: Option<i64>,
    armed: Vec<bool>,
    queue: BinaryHeap<Reverse<(RunNanos, u32)>>,
}

impl Deadlines {
    /// An empty queue with room for `connections` entries.
    #[must_use]
    pub fn new(limits: &Limits, connections: usize) -> Self {
        Self {
            // An entry always lies ahead, or looking at what has come up would never end.
            shortest_ns: limits.shortest_ns().map(|shortest_ns| shortest_ns.max(1)),
            armed: vec![false; connections],
            queue: BinaryHeap::with_capacity(connections),
        }
    }

    /// Makes sure that `connection` is looked at before any limit that starts at `now` can pass.
    pub fn watch(&mut self, connection: u32, now: RunNanos) {
        let Some(shortest_ns) = self.shortest_ns else { return };
        let index = connection as usize;
        if index >= self.armed.len() {
            self.armed.resize(index + 1, false);
        }
        if !self.armed[index] {
            self.armed[index] = true;
            self.queue.push(Reverse((RunNanos(now.0.saturating_add(shortest_ns)), connection)));
        }
    }

    /// Takes a connection whose entry has come up by `now`.
    pub fn pop(&mut self, now: RunNanos) -> Option<u32> {
        let &Reverse((at, connection)) = self.queue.peek()?;
        if at > now {
            return None;
        }
        self.queue.pop();
        self.armed[connection as usize] = false;
        Some(connection)
    }

    /// Puts a looked-at connection back: its limit strikes at `deadline`.
    pub fn again(&mut self, connection: u32, deadline: RunNanos, now: RunNanos) {
        let Some(shortest_ns) = self.shortest_ns else { return };
        if !self.armed[connection as usize] {
            self.armed[connection as usize] = true;
            let latest = RunNanos(now.0.saturating_add(shortest_ns));
            self.queue.push(Reverse((deadline.min(latest), connection)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        connect_ns: Some(5),
        first_byte_ns: Some(50),
        idle_ns: Some(20),
        total_ns: Some(100),
    };

    #[test]
    fn each_phase_has_its_own_limit_and_the_total_bounds_all() {
        let next = |phase| LIMITS.next(phase).map(|(at, class)| (at.0, class.name()));
        let at = RunNanos;
        let connecting = |since, begun| Phase::Connecting { since: at(since), begun };
        assert_eq!(next(connecting(1, None)), Some((6, "connect_timeout")));
        assert_eq!(next(connecting(1, Some(at(1)))), Some((6, "connect_timeout")));
        assert_eq!(next(connecting(97, Some(at(0)))), Some((100, "total_timeout")));
        let waiting = |sent| Phase::Waiting { begun: at(0), sent: at(sent) };
        assert_eq!(next(waiting(0)), Some((50, "first_byte_timeout")));
        assert_eq!(next(waiting(60)), Some((100, "total_timeout")));
        let heading = |latest| Phase::Heading { begun: at(0), sent: at(0), latest: at(latest) };
        assert_eq!(next(heading(10)), Some((30, "idle_timeout")));
        assert_eq!(next(heading(40)), Some((50, "first_byte_timeout")));
        let answering = |latest| Phase::Answering { begun: at(0), latest: at(latest) };
        assert_eq!(next(answering(60)), Some((80, "idle_timeout")));
        assert_eq!(next(answering(90)), Some((100, "total_timeout")));
        assert_eq!(Limits::default().next(answering(1)), None);
    }

    #[test]
    fn a_limit_of_nothing_comes_up_once_a_look() {
        let mut deadlines = Deadlines::new(&Limits { connect_ns: Some(0), ..LIMITS }, 1);
        let now = RunNanos(7);
        deadlines.watch(0, RunNanos(6));
        assert_eq!(deadlines.pop(now), Some(0));
        deadlines.again(0, RunNanos(50), now);
        assert_eq!(deadlines.pop(now), None);
    }

    #[test]
    fn an_entry_comes_up_before_any_limit_and_only_once() {
        let mut deadlines = Deadlines::new(&LIMITS, 2);
        deadlines.watch(1, RunNanos(0));
        deadlines.watch(1, RunNanos(3));
        assert_eq!(deadlines.pop(RunNanos(4)), None);
        assert_eq!(deadlines.pop(RunNanos(5)), Some(1));
        assert_eq!(deadlines.pop(RunNanos(500)), None);
        deadlines.again(1, RunNanos(50), RunNanos(5));
        assert_eq!(deadlines.pop(RunNanos(9)), None);
        assert_eq!(deadlines.pop(RunNanos(10)), Some(1));
    }
}
