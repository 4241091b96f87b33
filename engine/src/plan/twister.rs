//! CPython's random numbers, as AIPerf and kv-cache-tester draw them: the same seed, the same
//! choices.
//!
//! MT19937 with 53-bit draws. AIPerf seeds it through the digest of a run's seed and a stream's
//! name, so that one thing that is drawn never moves another; kv-cache-tester with the run's seed
//! itself, or with that and a digest of a user's name.

use sha2::{Digest, Sha256};

/// CPython's generator: MT19937 with 53-bit draws.
pub(crate) struct Twister {
    state: [u32; Self::WORDS],
    next: usize,
}

impl Twister {
    const WORDS: usize = 624;
    const MIDDLE: usize = 397;

    /// The generator that AIPerf 0.13 derives from a run's seed for what it calls `stream`.
    pub(crate) fn of_stream(seed: u64, stream: &str) -> Self {
        let digest = Sha256::digest(format!("{seed}:{stream}"));
        Self::new(u64::from_be_bytes(digest[..8].try_into().expect("32 bytes")))
    }

    /// `random.Random(seed)`.
    pub(crate) fn new(seed: u64) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
        let halves = [seed as u32, (seed >> 32) as u32];
        let key = if halves[1] == 0 { &halves[..1] } else { &halves[..] };
        let mut state = [0_u32; Self::WORDS];
        state[0] = 19_650_218;
        for at in 1..Self::WORDS {
            state[at] = Self::mixed(&state, at, 1_812_433_253).wrapping_add(index(at));
        }
        let (mut at, mut place) = (1, 0);
        for _ in 0..Self::WORDS {
            let mixed = state[at] ^ Self::mixed(&state, at, 1_664_525);
            state[at] = mixed.wrapping_add(key[place]).wrapping_add(index(place));
            (at, place) = (Self::step(&mut state, at), (place + 1) % key.len());
        }
        for _ in 1..Self::WORDS {
            let mixed = state[at] ^ Self::mixed(&state, at, 1_566_083_941);
            state[at] = mixed.wrapping_sub(index(at));
            at = Self::step(&mut state, at);
        }
        state[0] = 0x8000_0000;
        Self { state, next: Self::WORDS }
    }

    /// The word before place `at`, folded onto itself and multiplied.
    fn mixed(state: &[u32; Self::WORDS], at: usize, factor: u32) -> u32 {
        let before = state[at - 1];
        (before ^ (before >> 30)).wrapping_mul(factor)
    }

    /// The next place: behind the last comes the second, and the first becomes the last.
    fn step(state: &mut [u32; Self::WORDS], at: usize) -> usize {
        if at + 1 < Self::WORDS {
            return at + 1;
        }
        state[0] = state[Self::WORDS - 1];
        1
    }

    fn word(&mut self) -> u32 {
        if self.next == Self::WORDS {
            for at in 0..Self::WORDS {
                let upper = self.state[at] & 0x8000_0000;
                let joined = upper | (self.state[(at + 1) % Self::WORDS] & 0x7fff_ffff);
                let odd = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
                self.state[at] =
                    self.state[(at + Self::MIDDLE) % Self::WORDS] ^ (joined >> 1) ^ odd;
            }
            self.next = 0;
        }
        let mut word = self.state[self.next];
        self.next += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    /// `random()` times 2^53.
    pub(crate) fn draw(&mut self) -> u64 {
        let (high, low) = (self.word() >> 5, self.word() >> 6);
        u64::from(high) << 26 | u64::from(low)
    }

    /// `random()`: at least 0 and below 1.
    pub(crate) fn random(&mut self) -> f64 {
        self.draw() as f64 / (1_u64 << 53) as f64
    }

    /// `_randbelow(count)`, the place that `choice` takes.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        let bits = usize::BITS - count.leading_zeros();
        loop {
            let place = (self.word() >> (u32::BITS - bits)) as usize;
            if place < count {
                return place;
            }
        }
    }
}

impl Twister {
    /// `randint(low, high)`: both ends are possible.
    pub(crate) fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    /// `shuffle(list)`.
    pub(crate) fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            let other = self.below(at + 1);
            list.swap(at, other);
        }
    }
}

/// kv-cache-tester's `stable_seed`: the first half of a word of the text's digest.
#[must_use]
pub fn stable_seed(text: &str) -> u32 {
    let digest = Sha256::digest(text);
    u32::from_be_bytes(digest[..4].try_into().expect("32 bytes"))
}

fn index(at: usize) -> u32 {
    u32::try_from(at).expect("below the number of words")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_those_of_cpython() {
        // python3 -c "import random; r = random.Random(S); print([r.random() for _ in range(2)])"
        let draws = |seed: u64| {
            let mut twister = Twister::new(seed);
            [twister.draw(), twister.draw()].map(|draw| draw as f64 / (1_u64 << 53) as f64)
        };
        assert_eq!(draws(42), [0.639_426_798_457_883_7, 0.025_010_755_222_666_936]);
        let wide = [0.877_735_582_668_534, 0.829_677_306_065_455_3];
        assert_eq!(draws(0xdead_beef_cafe_f00d), wide);
        let mut twister = Twister::new(7);
        let places: Vec<usize> = [1, 5, 100, 1_000].map(|count| twister.below(count)).to_vec();
        assert_eq!(places, [0, 1, 50, 666]);
    }

    #[test]
    fn lists_are_shuffled_as_cpython_shuffles_them() {
        let shuffled = |seed: u64, count: usize| {
            let mut list: Vec<usize> = (0..count).collect();
            Twister::new(seed).shuffle(&mut list);
            list
        };
        for (seed, three, ten) in [
            (0, [0, 2, 1], [7, 8, 1, 5, 3, 4, 2, 0, 9, 6]),
            (1, [1, 2, 0], [6, 8, 9, 7, 5, 3, 0, 4, 1, 2]),
            (42, [1, 0, 2], [7, 3, 2, 8, 5, 6, 9, 4, 0, 1]),
            (123_456_789, [0, 1, 2], [0, 1, 9, 4, 3, 5, 2, 6, 8, 7]),
        ] {
            assert_eq!(shuffled(seed, 3), three, "{seed}");
            assert_eq!(shuffled(seed, 10), ten, "{seed}");
        }
        let many = shuffled(42, 710);
        let head = [
            383, 614, 327, 251, 612, 411, 101, 569, 150, 222, 15, 533, 439, 402, 16, 649, 13, 280,
            74, 354,
        ];
        assert_eq!(many[..20], head);
        assert_eq!(shuffled(1, 710)[..5], [201, 97, 370, 197, 600]);
        assert!(shuffled(1, 0).is_empty() && shuffled(1, 1) == [0]);
    }

    #[test]
    fn a_text_has_the_same_seed_everywhere() {
        for (text, seed) in [
            ("canonical_warm_prefix_v1", 2_255_059_821),
            ("User-001", 3_181_664_310),
            ("User-002", 797_275_044),
            ("User-010", 2_310_302_785),
            ("User-001-SA1_1_200", 143_967_574),
        ] {
            assert_eq!(stable_seed(text), seed, "{text}");
        }
    }
}
