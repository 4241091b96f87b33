//! Seed → a simulated run: the real plan, policy and parser, a virtual clock, a hostile network.
//!
//! One `u64` makes a workload (a plan's rows, or users with a ramp, limits and budgets), time
//! limits, a network and its faults: connections that are refused or never open, answers in pieces
//! of any length, cut, reset, broken, late or never, bytes that nobody asked for, cancellations,
//! and a stop at any moment. What is held, after every event: each row leaves at most once, not
//! before it may, and at once when it may; its end is one, of the class that the server's bytes
//! mean; no limit is passed; nobody is forgotten; and the log, written by its own encoder, reads
//! back as what memory says. A failure prints its seed, and that seed reproduces it.
//!
//! What a core does between events is written here a second time (`cores`), since the engine's own
//! is tied to sockets and the machine's clock; those are held by the runs against the mock. The
//! director's decisions are held against a second account in `onbeat::policy::direction`.

mod answers;
mod checks;
mod cores;
mod journal;
mod outside;
mod planned;
mod random;
mod users;
mod work;
mod workloads;
mod world;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use onbeat_shared::log::outcome::Class;

use self::outside::Outside;
use self::world::World;

/// What simulated runs came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Runs.
    pub runs: u64,
    /// Requests, those that never left included.
    pub requests: u64,
    /// Requests that left.
    pub sent: u64,
    /// Content events.
    pub tokens: u64,
    /// Reads of answers.
    pub reads: u64,
    /// Events of the simulation.
    pub events: u64,
    /// Virtual time, in nanoseconds.
    pub virtual_ns: u64,
    /// Bytes of logs.
    pub log_bytes: u64,
    /// Requests by class.
    pub classes: BTreeMap<Class, u64>,
    /// A checksum of all logs: equal runs have equal ones.
    pub checksum: u32,
}

impl Figures {
    fn of(out: &Outside, events: u64, log: &[u8]) -> Self {
        let mut figures = Self {
            runs: 1,
            reads: out.reads,
            events,
            virtual_ns: out.now.0.unsigned_abs(),
            log_bytes: log.len() as u64,
            checksum: log
                .iter()
                .fold(0, |sum: u32, &byte| sum.rotate_left(5).wrapping_add(u32::from(byte))),
            ..Self::default()
        };
        for known in &out.journal.known {
            figures.requests += 1;
            figures.sent += u64::from(known.sent.is_some());
            figures.tokens += known.tokens.len() as u64;
            if let Some((_, class)) = known.ended {
                *figures.classes.entry(class).or_default() += 1;
            }
        }
        figures
    }

    /// These and others.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.runs += other.runs;
        self.requests += other.requests;
        self.sent += other.sent;
        self.tokens += other.tokens;
        self.reads += other.reads;
        self.events += other.events;
        self.virtual_ns += other.virtual_ns;
        self.log_bytes += other.log_bytes;
        self.checksum = self.checksum.rotate_left(1) ^ other.checksum;
        for (&class, count) in &other.classes {
            *self.classes.entry(class).or_default() += count;
        }
        self
    }
}

/// The run of one seed.
///
/// # Panics
/// When it breaks an invariant: in which way.
#[must_use]
pub fn run(seed: u64) -> Figures {
    World::new(seed).run()
}

/// The runs of `seeds`; or the first seed whose run breaks an invariant, and how.
///
/// # Errors
/// That seed and what it breaks.
pub fn run_all(seeds: impl IntoIterator<Item = u64>) -> Result<Figures, String> {
    let mut figures = Figures::default();
    for seed in seeds {
        match catch_unwind(AssertUnwindSafe(|| run(seed))) {
            Ok(one) => figures = figures.and(&one),
            Err(panic) => {
                let words = panic.downcast_ref::<String>().map(String::as_str);
                let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
                return Err(format!("seed {seed}: {}", words.unwrap_or("a panic without words")));
            }
        }
    }
    Ok(figures)
}
