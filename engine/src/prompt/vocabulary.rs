//! The word list, laid out so that a word is written with one eight-byte store.
//!
//! The list is `assets/words-4096.txt`: 4,096 lower-case ASCII words of two to six letters, sorted;
//! its order is part of what a seed means and never changes. With the space in front, a word has at
//! most seven bytes, so it and its length fit a `u64`.

use std::sync::OnceLock;

/// Words in the list: twelve bits choose one.
pub const WORDS: usize = 1 << WORD_BITS;
/// Bits that choose a word.
pub const WORD_BITS: u32 = 12;
/// Most bytes of a word with the space in front of it.
pub const WORD_BYTES_MAX: usize = 7;

static LIST: &str = include_str!("../../assets/words-4096.txt");

/// All words, each with its space in front.
#[derive(Debug)]
pub struct Vocabulary {
    entries: Box<[u64; WORDS]>,
    bytes: u64,
}

impl Vocabulary {
    /// The one vocabulary there is.
    #[must_use]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Vocabulary> = OnceLock::new();
        SHARED.get_or_init(Self::of_list)
    }

    /// Its words, without the space, in their order.
    pub fn words() -> impl Iterator<Item = &'static str> {
        LIST.lines()
    }

    /// A word as it is written: the space and the letters in the low bytes, first byte lowest, and
    /// the number of bytes in the highest. Only the low twelve bits of `draw` count.
    #[must_use]
    pub fn entry(&self, draw: u64) -> u64 {
        // The mask keeps the subscript below the array's length, so no check is left of it.
        self.entries
            [usize::from(draw.to_le_bytes()[0]) | usize::from(draw.to_le_bytes()[1] & 0x0f) << 8]
    }

    /// Bytes that so many words take on average, rounded up.
    #[must_use]
    pub fn expected_bytes(&self, words: u64) -> u64 {
        let bytes = u128::from(words) * u128::from(self.bytes);
        u64::try_from(bytes.div_ceil(WORDS as u128)).unwrap_or(u64::MAX)
    }

    fn of_list() -> Self {
        let mut entries = Box::new([0; WORDS]);
        let mut bytes = 0;
        let mut words = LIST.lines();
        for entry in &mut *entries {
            let word = words.next().expect("the embedded list has 4,096 words").as_bytes();
            assert!(word.len() < WORD_BYTES_MAX, "a word has at most six letters");
            let mut text = [0; 8];
            text[0] = b' ';
            text[1..=word.len()].copy_from_slice(word);
            text[7] = u8::try_from(word.len() + 1).expect("at most seven");
            *entry = u64::from_le_bytes(text);
            bytes += word.len() as u64 + 1;
        }
        assert!(words.next().is_none(), "the embedded list has 4,096 words");
        Self { entries, bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_what_it_promises() {
        let words: Vec<&str> = Vocabulary::words().collect();
        assert_eq!(words.len(), WORDS);
        assert!(words.is_sorted_by(|a, b| a < b), "sorted, no word twice");
        let plain = |word: &&str| {
            (2..=6).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_lowercase())
        };
        assert!(words.iter().all(plain));
    }

    #[test]
    fn entries_hold_the_word_and_its_length() {
        let vocabulary = Vocabulary::shared();
        for (word, draw) in Vocabulary::words().zip(0_u64..) {
            let bytes = vocabulary.entry(draw | 0xabc_d000).to_le_bytes();
            let len = usize::from(bytes[7]);
            assert_eq!(&bytes[..len], format!(" {word}").as_bytes());
        }
    }

    #[test]
    fn expected_bytes_is_five_a_word() {
        let bytes = Vocabulary::shared().expected_bytes(1_000_000);
        assert!((4_990_000..5_050_000).contains(&bytes), "{bytes}");
        assert_eq!(Vocabulary::shared().expected_bytes(0), 0);
    }
}
