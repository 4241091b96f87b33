//! What passes between the director of a user-driven run and one core: who starts, and what was
//! heard of those who play.
//!
//! Two bounded lanes, each with one end that pushes and one that pops. Neither end ever waits for
//! the other, not even for a queue operation that the other has begun and lost its CPU in: each
//! counts what is over, and only that is taken or written over. What finds no room on the way to
//! the director is counted, never waited for; a core that loses news still plays on.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam::queue::ArrayQueue;

use crate::policy::heard::Heard;
use crate::policy::players::Entrance;

/// Entrances on their way: far more than a director makes between two looks of a core.
const ENTRANCES_MAX: usize = 4_096;
/// News on their way: a director looks every few milliseconds, and a busy core makes about three
/// for each request.
const NEWS_MAX: usize = 65_536;

/// A bounded queue between two threads that never wait for each other.
#[derive(Debug)]
pub struct Lane<T> {
    queue: ArrayQueue<T>,
    pushed: AtomicU64,
    popped: AtomicU64,
    room: u64,
}

impl<T> Lane<T> {
    /// An empty lane with room for so many.
    #[must_use]
    pub fn new(room: usize) -> Self {
        Self {
            queue: ArrayQueue::new(room.max(1)),
            pushed: AtomicU64::new(0),
            popped: AtomicU64::new(0),
            room: room.max(1) as u64,
        }
    }

    /// Adds an item; called by one thread only.
    ///
    /// # Errors
    /// The item, when there is no room for it.
    pub fn push(&self, item: T) -> Result<(), T> {
        let pushed = self.pushed.load(Ordering::Relaxed);
        if pushed - self.popped.load(Ordering::Acquire) >= self.room {
            return Err(item);
        }
        self.queue.push(item)?;
        self.pushed.store(pushed + 1, Ordering::Release);
        Ok(())
    }

    /// Takes the oldest item, if one is there whole; called by one thread only.
    pub fn pop(&self) -> Option<T> {
        let popped = self.popped.load(Ordering::Relaxed);
        if popped == self.pushed.load(Ordering::Acquire) {
            return None;
        }
        let item = self.queue.pop();
        self.popped.store(popped + 1, Ordering::Release);
        item
    }
}

/// The lanes between the director and one core.
#[derive(Debug)]
pub struct Cues {
    /// From the director: who starts.
    pub entrances: Lane<Entrance>,
    /// From the core: what happened.
    heard: Lane<Heard>,
    lost: AtomicU64,
}

impl Default for Cues {
    fn default() -> Self {
        Self {
            entrances: Lane::new(ENTRANCES_MAX),
            heard: Lane::new(NEWS_MAX),
            lost: AtomicU64::new(0),
        }
    }
}

impl Cues {
    /// Tells the director; counts what finds no room.
    pub fn tell(&self, news: Heard) {
        if self.heard.push(news).is_err() {
            self.lost.store(self.lost.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    /// The director's next news, if there are any.
    pub fn hear(&self) -> Option<Heard> {
        self.heard.pop()
    }

    /// News that found no room so far.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_gives_back_what_it_has_no_room_for() {
        let lane = Lane::new(2);
        assert_eq!((lane.push(1), lane.push(2), lane.push(3)), (Ok(()), Ok(()), Err(3)));
        assert_eq!(lane.pop(), Some(1));
        assert_eq!(lane.push(4), Ok(()));
        assert_eq!((lane.pop(), lane.pop(), lane.pop()), (Some(2), Some(4), None));
    }

    #[test]
    fn everything_arrives_once_and_in_order_between_two_threads() {
        const ITEMS: u32 = 50_000;
        let lane = Lane::new(16);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for item in 0..ITEMS {
                    while lane.push(item).is_err() {
                        std::thread::yield_now();
                    }
                }
            });
            let mut next = 0;
            while next < ITEMS {
                match lane.pop() {
                    Some(item) => {
                        assert_eq!(item, next);
                        next += 1;
                    }
                    None => std::thread::yield_now(),
                }
            }
        });
        assert_eq!(lane.pop(), None);
    }
}
