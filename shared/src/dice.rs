//! Numbers that look drawn and are the same everywhere: SplitMix64.
//!
//! For samples, resamples, benches and tests, where a seed must mean the same on every machine and
//! for good. It is fast and small, not secret; what users' seeds select in a trace follows the
//! generators of the tools that defined it, which are elsewhere.

/// A seeded generator.
#[derive(Clone, Debug)]
pub struct Dice(pub u64);

impl Dice {
    /// Any number.
    #[must_use]
    pub const fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ (word >> 31)
    }

    /// From zero up to and without a bound, which is not zero. The bias of the remainder does not
    /// matter for bounds far below 2⁶⁴.
    ///
    /// # Panics
    /// If the bound is zero.
    #[must_use]
    pub const fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound
    }

    /// A place among so many, which are not none.
    ///
    /// # Panics
    /// If there are none.
    #[must_use]
    pub fn place(&mut self, places: usize) -> usize {
        usize::try_from(self.below(places as u64)).expect("below a usize")
    }

    /// From `low` to `high`, both included.
    ///
    /// # Panics
    /// If `high` is below `low`.
    #[must_use]
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        let drawn = self.below(u64::from(high - low) + 1);
        low + u32::try_from(drawn).expect("below a 32-bit bound")
    }

    /// From zero up to and without one.
    #[must_use]
    pub fn unit(&mut self) -> f64 {
        (self.roll() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_means_the_same_everywhere() {
        // The reference's first numbers for the seed 1234567.
        let mut dice = Dice(1_234_567);
        let first = [dice.roll(), dice.roll(), dice.roll()];
        let known =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(first, known);
        assert!((0..1_000).all(|_| (0.0..1.0).contains(&dice.unit())));
        assert!((0..1_000).all(|_| (3..=5).contains(&dice.between(3, 5))));
        assert!((0..1_000).all(|_| dice.place(7) < 7 && dice.below(2) < 2));
    }
}
