//! The order in which one core's ready requests leave: by ready time, then by plan order.
//!
//! Requests without a predecessor are known before zero, so they are a sorted list with a cursor;
//! those that an end releases go to a heap with room for all of them. Nothing here allocates after
//! [`ReadyQueue::new`], and nothing is ever dropped or moved in time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use onbeat_shared::log::plan_row::PlanRow;
use onbeat_shared::units::{CoreIndex, RequestIndex, RunNanos};

use super::session::Ready;

/// One core's requests in the order they may leave.
#[derive(Debug)]
pub struct ReadyQueue {
    roots: Vec<Ready>,
    next_root: usize,
    released: BinaryHeap<Reverse<Ready>>,
}

impl ReadyQueue {
    /// The requests of `core` that wait for nothing but their due time; one without a due time and
    /// without a predecessor is ready at zero.
    #[must_use]
    pub fn new(rows: &[PlanRow], core: CoreIndex) -> Self {
        let own = || rows.iter().filter(|row| row.core == core);
        let mut roots: Vec<Ready> = own()
            .filter(|row| row.after.is_none())
            .map(|row| Ready { at: row.due.unwrap_or(RunNanos(0)), request: row.request })
            .collect();
        roots.sort_unstable();
        let followers = own().filter(|row| row.after.is_some()).count();
        Self { roots, next_root: 0, released: BinaryHeap::with_capacity(followers) }
    }

    /// Adds a request that an end released.
    pub fn push(&mut self, ready: Ready) {
        debug_assert!(self.released.len() < self.released.capacity(), "room for every follower");
        self.released.push(Reverse(ready));
    }

    /// The request that leaves next, if any is known.
    #[must_use]
    pub fn peek(&self) -> Option<Ready> {
        let root = self.roots.get(self.next_root).copied();
        let released = self.released.peek().map(|&Reverse(ready)| ready);
        match (root, released) {
            (Some(root), Some(released)) => Some(root.min(released)),
            (one, other) => one.or(other),
        }
    }

    /// Takes the next request if it may leave at `now`.
    pub fn pop(&mut self, now: RunNanos) -> Option<Ready> {
        let next = self.peek().filter(|ready| ready.at <= now)?;
        self.take(next);
        Some(next)
    }

    /// Takes the next request whatever the time: how a stopped run lists what never left.
    pub fn drain_one(&mut self) -> Option<RequestIndex> {
        let next = self.peek()?;
        self.take(next);
        Some(next.request)
    }

    fn take(&mut self, next: Ready) {
        if self.roots.get(self.next_root) == Some(&next) {
            self.next_root += 1;
        } else {
            self.released.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::session::tests::row;
    use super::*;

    #[test]
    fn roots_and_released_requests_leave_in_one_order() {
        let rows = [
            row(0, Some(0), None, 0),
            row(1, Some(0), None, 0),
            row(2, Some(50), None, 0),
            row(3, Some(10), Some(0), 0),
        ];
        let mut queue = ReadyQueue::new(&rows, CoreIndex(0));
        let mut order = Vec::new();
        while let Some(ready) = queue.pop(RunNanos(0)) {
            order.push(ready.request.0);
        }
        assert_eq!(order, [0, 1]);
        queue.push(Ready { at: RunNanos(50), request: RequestIndex(3) });
        assert_eq!(queue.pop(RunNanos(49)), None);
        assert_eq!(queue.pop(RunNanos(50)).map(|ready| ready.request.0), Some(2));
        assert_eq!(queue.drain_one(), Some(RequestIndex(3)));
        assert_eq!(queue.peek(), None);
    }

    #[test]
    fn a_core_sees_only_its_own_requests() {
        let mut rows = [row(0, Some(0), None, 0), row(1, Some(0), None, 0)];
        rows[1].core = CoreIndex(1);
        let mut queue = ReadyQueue::new(&rows, CoreIndex(1));
        assert_eq!(queue.drain_one(), Some(RequestIndex(1)));
        assert_eq!(queue.drain_one(), None);
    }
}
