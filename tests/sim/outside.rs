//! The simulated network: what happens to a connection and when, drawn from the seed.
//!
//! Time is a heap of events. A connection opens, or does not; an answer comes in pieces of any
//! length at any distance, is cut, reset, or stops coming; a request's last byte leaves at once or
//! later.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use onbeat_shared::log::outcome::Class;
use onbeat_shared::units::{RequestIndex, RunNanos};

use super::answers::{self, Truth};
use super::journal::Journal;
use super::random::Random;

/// Something that happens to a slot of a core. `link` tells the connection from those that had the
/// slot before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum News {
    Opened,
    NotOpened(Class),
    /// The kernel took the request's last byte.
    SentWhole(RequestIndex),
    /// A piece of an answer arrives.
    Piece,
    /// The connection is closed, or reset.
    Gone {
        reset: bool,
    },
    /// A core looks at limits.
    Chores,
    /// A core's next request may be due, or its time be up.
    Due,
    /// The user stops the run.
    Stop {
        now: bool,
    },
    /// The time for what is in flight is over.
    Drained,
    /// The director looks.
    Direct,
}

/// News for somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Event {
    pub(super) core: usize,
    pub(super) slot: usize,
    pub(super) link: u32,
    pub(super) news: News,
}

/// How hostile this run's network is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Temper {
    /// One in so many connections is not made.
    refuses: u64,
    /// One in so many answers is cut, reset, or stops coming.
    breaks: u64,
    /// Most pieces of an answer, about.
    pieces: u64,
    /// Longest pause, in ns.
    pause_ns: u64,
}

impl Temper {
    pub(super) fn draw(random: &mut Random) -> Self {
        let pause_max = if random.one_in(3) { 15_000_000 } else { 1_500_000 };
        Self {
            refuses: 4 + random.below(40),
            breaks: 2 + random.below(20),
            pieces: 1 + random.below(12),
            pause_ns: 1 + random.below(pause_max),
        }
    }
}

/// The bytes on their way on a connection.
#[derive(Debug, Default)]
pub(super) struct Pipe {
    pub(super) bytes: Vec<u8>,
    pub(super) at: usize,
    pub(super) pieces: VecDeque<usize>,
}

/// Everything around the cores.
pub(super) struct Outside {
    pub(super) random: Random,
    pub(super) temper: Temper,
    pub(super) journal: Journal,
    pub(super) now: RunNanos,
    heap: BinaryHeap<Reverse<(i64, u64, Event)>>,
    count: u64,
    /// Reads so far.
    pub(super) reads: u64,
}

impl Outside {
    pub(super) fn new(mut random: Random, journal: Journal) -> Self {
        let temper = Temper::draw(&mut random);
        let heap = BinaryHeap::new();
        Self { random, temper, journal, now: RunNanos(0), heap, count: 0, reads: 0 }
    }

    pub(super) fn after(&mut self, delay_ns: i64, event: Event) {
        self.at(RunNanos(self.now.0 + delay_ns.max(0)), event);
    }

    pub(super) fn at(&mut self, at: RunNanos, event: Event) {
        self.heap.push(Reverse((at.0.max(self.now.0), self.count, event)));
        self.count += 1;
    }

    /// The next event; moves the clock.
    pub(super) fn next(&mut self) -> Option<Event> {
        let Reverse((at, _, event)) = self.heap.pop()?;
        assert!(at >= self.now.0, "a monotonic clock does not run backwards");
        self.now = RunNanos(at);
        Some(event)
    }

    /// A pause of the network or the server, in ns.
    pub(super) fn pause_ns(&mut self) -> i64 {
        let ns = match self.random.below(4) {
            0 => 0,
            1 => self.random.below(1_000),
            _ => self.random.below(self.temper.pause_ns),
        };
        i64::try_from(ns).expect("milliseconds")
    }

    /// A connection is begun: how it goes.
    pub(super) fn connect(&mut self, event: Event) {
        let delay = self.pause_ns();
        let news = if self.random.one_in(self.temper.refuses) {
            match self.random.below(5) {
                // Nobody answers.
                0 => return,
                1 => News::NotOpened(Class::ClientNoDescriptor),
                2 => News::NotOpened(Class::ClientNoPort),
                3 => News::NotOpened(Class::ConnectFailed),
                _ => News::NotOpened(Class::ConnectRefused),
            }
        } else {
            News::Opened
        };
        self.after(delay, Event { news, ..event });
    }

    /// A request leaves on a connection: what the server answers and when it arrives.
    pub(super) fn answer(
        &mut self,
        event: Event,
        pipe: &mut Pipe,
        request: RequestIndex,
        streaming: bool,
        reused: bool,
    ) -> Truth {
        let said = answers::say(&mut self.random, request.0, streaming);
        pipe.at = 0;
        pipe.pieces.clear();
        pipe.bytes = said.bytes;
        let breaks = self.random.one_in(self.temper.breaks);
        // A server that closes idle connections closes some right under a request.
        let stale = reused && self.random.one_in(12);
        let length = pipe.bytes.len();
        let whole = if stale {
            0
        } else if breaks {
            usize::try_from(self.random.below(length as u64)).expect("a length")
        } else {
            length
        };
        let mut at = self.now.0 + self.pause_ns();
        let mut left = whole;
        while left > 0 {
            let longest = (length as u64 / self.temper.pieces).max(1);
            let longest = if self.random.one_in(9) { 2 } else { 2 * longest };
            let piece = usize::try_from(1 + self.random.below(longest)).expect("a piece").min(left);
            pipe.pieces.push_back(piece);
            self.at(RunNanos(at), Event { news: News::Piece, ..event });
            left -= piece;
            at += self.pause_ns();
        }
        let reset = self.random.one_in(2);
        let ends = match (stale, breaks) {
            (true, _) => true,
            // Or nothing comes any more.
            (_, true) => !self.random.one_in(4),
            _ => said.truth.closes || self.random.one_in(15),
        };
        if ends {
            let reset = reset && (stale || breaks);
            self.at(RunNanos(at), Event { news: News::Gone { reset }, ..event });
        }
        said.truth
    }
}
