//! Block id → the same words every time.
//!
//! The generator is part of the product's promise and will not change; written out, so that anyone
//! can repeat it:
//!
//! ```text
//! mix(z):  z ^= z >> 30;  z *= 0xbf58476d1ce4e5b9;          (all arithmetic modulo 2^64)
//!          z ^= z >> 27;  z *= 0x94d049bb133111eb;  return z ^ (z >> 31)
//! m(z):    mix(z + G)                  with G = 0x9e3779b97f4a7c15   (one step of SplitMix64)
//! key:     m(m(m(m(seed) + kind) + scope) + id)
//!          kind 1: a block; scope 0 where ids are global to the file; id the block id
//!          kind 2: the tail of one request; scope its file's number; id its physical line
//!          copy c of a trace laid over itself: c·2^32 is added to the scope
//! draws:   x(k) = m(key + k·G) for k = 0, 1, …; each gives five words: bits 0–11 choose the first,
//!          bits 12–23 the second, … bits 48–59 the fifth
//! text:    for each word a space and the word
//! ```
//!
//! The words of a text do not depend on how many are asked for, so an id seen at two sizes shares
//! its prefix. Different ids have different keys; their texts differ unless all draws agree, which
//! for a block of 16 words has probability 2^-192.

use crate::prompt::vocabulary::{Vocabulary, WORD_BITS, WORD_BYTES_MAX};

/// What decides a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TextKey(u64);

/// The golden ratio's fraction: SplitMix64's step.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
/// Words one draw of the generator gives.
pub const WORDS_PER_DRAW: usize = (u64::BITS / WORD_BITS) as usize;
/// A word is stored as eight bytes, whatever its length: so many more than the text itself.
const SLACK: usize = 8;

impl TextKey {
    /// The text of a block; `scope` keeps equal ids apart, see [`scope`].
    #[must_use]
    pub const fn block(seed: u64, scope: u64, id: u64) -> Self {
        Self::of(seed, 1, scope, id)
    }

    /// The text that only one request has: the one of row `row`; `scope` is its file, see
    /// [`scope`].
    #[must_use]
    pub const fn tail(seed: u64, scope: u64, row: u64) -> Self {
        Self::of(seed, 2, scope, row)
    }

    const fn of(seed: u64, kind: u64, scope: u64, id: u64) -> Self {
        let seed = step(seed).wrapping_add(kind);
        let scope = step(seed).wrapping_add(scope);
        Self(step(step(scope).wrapping_add(id)))
    }

    /// Most bytes [`TextKey::write`] needs room for, for so many words.
    #[must_use]
    pub const fn room(words: usize) -> usize {
        words * WORD_BYTES_MAX + SLACK
    }

    /// The text that follows the first `draws` times [`WORDS_PER_DRAW`] words of this one.
    #[must_use]
    pub const fn beyond(self, draws: usize) -> Self {
        Self(self.0.wrapping_add(STEP.wrapping_mul(draws as u64)))
    }

    /// Most words that [`TextKey::write`] is sure to find room for in so many bytes.
    #[must_use]
    pub const fn fitting(bytes: usize) -> usize {
        bytes.saturating_sub(SLACK) / WORD_BYTES_MAX
    }

    /// Writes the first `words` words to the start of `out`; gives the number of bytes of text.
    /// Up to [`TextKey::room`] bytes of `out` are overwritten.
    ///
    /// # Panics
    /// When `out` is shorter than [`TextKey::room`].
    pub fn write(self, words: usize, out: &mut [u8]) -> usize {
        assert!(out.len() >= Self::room(words), "room for every word at its longest");
        let vocabulary = Vocabulary::shared();
        let mut at = 0;
        let mut left = words;
        let mut state = self.0;
        while left > 0 {
            let mut draw = step(state);
            state = state.wrapping_add(STEP);
            for _ in 0..left.min(WORDS_PER_DRAW) {
                let bytes = vocabulary.entry(draw).to_le_bytes();
                out[at..at + 8].copy_from_slice(&bytes);
                at += usize::from(bytes[7]);
                draw >>= WORD_BITS;
            }
            left = left.saturating_sub(WORDS_PER_DRAW);
        }
        at
    }

    /// Adds the first `words` words to `out`.
    pub fn append(self, words: usize, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + Self::room(words), 0);
        let bytes = self.write(words, &mut out[start..]);
        out.truncate(start + bytes);
    }
}

/// What keeps the texts of one copy of a trace apart from another's, and those of one file.
#[must_use]
pub const fn scope(copy: u32, file: u32) -> u64 {
    (copy as u64) << 32 | file as u64
}

/// One step of SplitMix64.
const fn step(state: u64) -> u64 {
    let mut z = state.wrapping_add(STEP);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, prop_assert_ne, proptest};

    use super::*;

    fn text(key: TextKey, words: usize) -> String {
        let mut out = Vec::new();
        key.append(words, &mut out);
        String::from_utf8(out).expect("words are ASCII")
    }

    /// SplitMix64's published test vector for the seed 1234567.
    #[test]
    fn the_generator_is_splitmix64() {
        let draws: Vec<u64> =
            (0..3_u64).map(|k| step(STEP.wrapping_mul(k).wrapping_add(1_234_567))).collect();
        assert_eq!(
            draws,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    /// What these lines say must never change: recorded runs would not be repeatable.
    #[test]
    fn texts_are_the_same_for_ever() {
        for (key, words) in [
            (
                TextKey::block(0, 0, 0),
                " rose refer shoes green begins heart ag see face olive holy persu",
            ),
            (TextKey::block(0, 0, 1), " pseud trim month shine mejor area"),
            (TextKey::block(42, 0, 0), " ak rec cr lim inher adv"),
            (TextKey::block(0, 7, 0), " booth amid adopt plate gle worry"),
            (TextKey::tail(0, 0, 1), " no acting sweat dise arrow suff"),
        ] {
            assert_eq!(text(key, words.matches(' ').count()), words);
        }
    }

    proptest! {
        #[test]
        fn texts_have_their_words_and_share_prefixes(
            seed in any::<u64>(), id in any::<u64>(), short in 0_usize..40, more in 0_usize..40,
        ) {
            let key = TextKey::block(seed, 0, id);
            let long = text(key, short + more);
            prop_assert_eq!(long.matches(' ').count(), short + more);
            prop_assert!(long.starts_with(&text(key, short)));
            prop_assert!(long.len() <= TextKey::room(short + more));
            let (draws, rest) = (short / WORDS_PER_DRAW, short % WORDS_PER_DRAW + more);
            let begun = text(key, draws * WORDS_PER_DRAW);
            prop_assert_eq!(begun + &text(key.beyond(draws), rest), long);
            prop_assert!(TextKey::room(TextKey::fitting(short + 8)) <= short + 8);
        }

        #[test]
        fn different_ids_have_different_texts(
            seed in any::<u64>(), a in any::<u64>(), b in any::<u64>(),
        ) {
            proptest::prop_assume!(a != b);
            let block = |id| text(TextKey::block(seed, 0, id), 16);
            prop_assert_ne!(block(a), block(b));
            prop_assert_ne!(block(a), text(TextKey::tail(seed, 0, a), 16));
            prop_assert_ne!(block(a), text(TextKey::block(seed, scope(1, 0), a), 16));
        }
    }
}
