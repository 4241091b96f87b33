//! The simulation's chances: seeded, the same on every machine.

use onbeat_shared::dice::Dice;

/// Numbers from a seed.
#[derive(Clone, Debug)]
pub(super) struct Random(Dice);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(Dice(seed))
    }

    pub(super) const fn next(&mut self) -> u64 {
        self.0.roll()
    }

    /// A number below `bound`, which is small enough here for the remainder to be fair.
    pub(super) const fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Nanoseconds below so many.
    pub(super) fn ns(&mut self, bound: u64) -> i64 {
        i64::try_from(self.below(bound)).expect("less than a century")
    }

    /// True once in `n` times.
    pub(super) const fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}
