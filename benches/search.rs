//! The search for the highest rate that holds, as a pure state machine.
//!
//! Rates climb by a fixed factor until one does not hold, or descend until one does, and the gap
//! between the two is then halved (geometrically) until it is small. A rate holds when any of a few
//! tries holds: a busy host makes tries fail and never makes one succeed. The search ends by itself
//! after a bounded number of tries. It runs nothing and reads no clock: whoever asks
//! [`Search::next`] tries that rate and tells the outcome.

/// Tries of one rate before it counts as not held.
const TRIES: u32 = 3;
/// Factor between neighbouring rates while the bounds are unknown.
const STEP: f64 = 1.25;
/// The search ends when the bounds are this close.
const PRECISION: f64 = 1.02;
/// Most tries in all: some forty are enough from a start that is wrong by a factor of ten.
const TRIES_MAX: u32 = 60;

/// One side's search.
#[derive(Clone, Debug)]
pub struct Search {
    rate: f64,
    /// Highest rate that held and lowest that did not.
    held: Option<f64>,
    failed: Option<f64>,
    misses: u32,
    tries: u32,
    tries_max: u32,
}

impl Search {
    /// A search that begins at `start` requests a second.
    #[must_use]
    pub const fn new(start: f64) -> Self {
        Self::bounded(start, TRIES_MAX)
    }

    /// A search of at most `tries_max` tries.
    #[must_use]
    pub const fn bounded(start: f64, tries_max: u32) -> Self {
        Self { rate: start, held: None, failed: None, misses: 0, tries: 0, tries_max }
    }

    /// The rate to try now; `None` when the search is over.
    #[must_use]
    pub fn next(&self) -> Option<f64> {
        let close = matches!((self.held, self.failed), (Some(a), Some(b)) if b / a <= PRECISION);
        let hopeless = self.held.is_none() && self.rate < 1.0;
        (!close && !hopeless && self.tries < self.tries_max).then_some(self.rate)
    }

    /// Whether the rate of [`Search::next`] held.
    pub fn tell(&mut self, held: bool) {
        self.tries += 1;
        if held {
            self.held = Some(self.rate);
        } else {
            self.misses += 1;
            if self.misses < TRIES {
                return;
            }
            self.failed = Some(self.rate);
        }
        self.misses = 0;
        self.rate = match (self.held, self.failed) {
            (Some(held), Some(failed)) => (held * failed).sqrt(),
            (Some(held), None) => held * STEP,
            (None, Some(failed)) => failed / STEP,
            (None, None) => self.rate,
        };
    }

    /// The highest rate that held.
    #[must_use]
    pub const fn highest(&self) -> Option<f64> {
        self.held
    }

    /// Whether the bounds met, as opposed to having run out of tries.
    #[must_use]
    pub fn converged(&self) -> bool {
        matches!((self.held, self.failed), (Some(a), Some(b)) if b / a <= PRECISION)
    }

    /// Tries so far.
    #[must_use]
    pub const fn tries(&self) -> u32 {
        self.tries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a search in a world where rates up to `limit` hold, but for every `flaky`-th try.
    fn found(start: f64, limit: f64, flaky: u32) -> (f64, u32) {
        let mut search = Search::new(start);
        let mut count = 0;
        while let Some(rate) = search.next() {
            count += 1;
            search.tell(rate <= limit && !(flaky > 0 && count % flaky == 0));
        }
        (search.highest().expect("something holds"), search.tries())
    }

    #[test]
    fn the_limit_is_found_from_below_and_from_above() {
        for start in [100.0, 9_000.0, 80_000.0] {
            let (highest, tries) = found(start, 10_000.0, 0);
            assert!(highest <= 10_000.0 && highest > 10_000.0 / 1.03, "{start}: {highest}");
            assert!(tries <= 60, "{tries}");
        }
    }

    #[test]
    fn a_host_that_spoils_some_tries_does_not_move_the_limit() {
        let (highest, _) = found(9_000.0, 10_000.0, 2);
        assert!(highest > 10_000.0 / 1.03, "{highest}");
    }

    #[test]
    fn a_search_ends_when_nothing_holds_or_everything_does() {
        let mut search = Search::new(1_000.0);
        while search.next().is_some() {
            search.tell(false);
        }
        assert_eq!(search.highest(), None);
        let mut search = Search::bounded(1_000.0, 5);
        while search.next().is_some() {
            search.tell(true);
        }
        assert_eq!(search.tries(), 5);
        assert!(!search.converged() && search.highest().is_some());
    }
}
