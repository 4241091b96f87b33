//! A small seeded generator (SplitMix64): the same numbers on every machine, forever.

/// Numbers from a seed.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is small enough here for the remainder to be fair.
    pub(super) const fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// True once in `n` times.
    pub(super) const fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}
