//! Tokens without a tokenizer: a token is a word, and a prompt is a chain of blocks of words.
//!
//! A word is a run of bytes between blanks (bytes up to the space); its hash is its token. The
//! prompts that the engine renders have exactly one such word a token, so that what is counted here
//! can be compared with what the trace asked for. Block hashes are chained: equal hashes mean equal
//! prefixes, as in the prefix caches of real servers. Collisions of 64-bit hashes are not handled.

/// The words of answers: plain ones, so that an answer is text and needs no escaping.
const WORDS: [&str; 64] = [
    "able",
    "above",
    "after",
    "again",
    "along",
    "also",
    "among",
    "another",
    "around",
    "away",
    "back",
    "become",
    "before",
    "begin",
    "between",
    "both",
    "bring",
    "call",
    "carry",
    "change",
    "come",
    "could",
    "country",
    "course",
    "different",
    "does",
    "down",
    "each",
    "early",
    "enough",
    "even",
    "every",
    "example",
    "find",
    "first",
    "follow",
    "found",
    "give",
    "good",
    "great",
    "hand",
    "head",
    "help",
    "high",
    "home",
    "house",
    "idea",
    "important",
    "into",
    "keep",
    "kind",
    "know",
    "large",
    "last",
    "later",
    "learn",
    "leave",
    "life",
    "light",
    "line",
    "little",
    "long",
    "look",
    "made",
];

/// How many words answers are made of.
pub(super) const WORD_COUNT: u64 = WORDS.len() as u64;

/// One word of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word(u8);

impl Word {
    /// The word that `number` picks.
    pub(super) fn pick(number: u64) -> Self {
        Self((number % WORD_COUNT).to_le_bytes()[0])
    }

    /// Its letters.
    pub(super) fn text(self) -> &'static str {
        WORDS[usize::from(self.0)]
    }
}

/// The tokens of a prompt and its answer so far, as chained hashes of full blocks.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    block_tokens: u32,
    /// Hash of everything so far.
    state: u64,
    tokens: u32,
    blocks: Vec<u64>,
}

impl Chain {
    /// An empty chain of blocks of `block_tokens`.
    pub(super) fn new(block_tokens: u32) -> Self {
        assert!(block_tokens > 0, "a block holds at least a token");
        Self { block_tokens, state: 0, tokens: 0, blocks: Vec::new() }
    }

    /// Adds the words of a text. A text's last word ends with the text.
    pub(super) fn text(&mut self, text: &str) {
        let mut hash = WORD_START;
        for &byte in text.as_bytes() {
            if byte > b' ' {
                hash = word_step(hash, byte);
            } else if hash != WORD_START {
                self.token(hash);
                hash = WORD_START;
            }
        }
        if hash != WORD_START {
            self.token(hash);
        }
    }

    /// Adds a word of an answer; the same as its text.
    pub(super) fn word(&mut self, word: Word) {
        self.text(word.text());
    }

    /// Adds a token known by its hash or its number.
    pub(super) fn token(&mut self, token: u64) {
        self.state = mix(self.state ^ token);
        self.tokens = self.tokens.saturating_add(1);
        if self.tokens.is_multiple_of(self.block_tokens) {
            self.blocks.push(self.state);
        }
    }

    /// Hash of everything so far.
    pub(super) fn state(&self) -> u64 {
        self.state
    }

    /// Tokens so far.
    pub(super) fn tokens(&self) -> u32 {
        self.tokens
    }

    /// Chained hashes of the full blocks so far.
    pub(super) fn blocks(&self) -> &[u64] {
        &self.blocks
    }
}

/// FNV-1a: one multiplication a byte.
const WORD_START: u64 = 0xcbf2_9ce4_8422_2325;

fn word_step(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
}

/// A bijection of 64 bits in which every input bit reaches every output bit (splitmix64).
pub(super) fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A number from 0 up to 1, of 53 bits.
pub(super) fn unit(number: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
    let fraction = (number >> 11) as f64;
    fraction / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(texts: &[&str]) -> Chain {
        let mut chain = Chain::new(4);
        for text in texts {
            chain.text(text);
        }
        chain
    }

    #[test]
    fn words_are_counted_however_they_are_separated() {
        for (text, tokens) in
            [("", 0), (" ", 0), ("one", 1), (" one two", 2), ("one  two\n\tthree ", 3), ("é ü", 2)]
        {
            assert_eq!(chain(&[text]).tokens(), tokens, "{text:?}");
        }
        assert_eq!(chain(&["one two", "three"]).tokens(), 3);
    }

    #[test]
    fn equal_prefixes_have_equal_blocks_and_no_others() {
        let one = chain(&[" a b c d e f g h i"]);
        let same = chain(&["a b c", " d e f g", "h x"]);
        assert_eq!(one.blocks().len(), 2);
        assert_eq!(one.blocks(), same.blocks());
        assert_ne!(one.state(), same.state());
        let other = chain(&[" x b c d e f g h i"]);
        assert!(one.blocks().iter().all(|block| !other.blocks().contains(block)));
    }

    #[test]
    fn an_answer_continues_its_prompt() {
        let mut grown = chain(&[" a b c"]);
        let word = Word::pick(70);
        grown.word(word);
        let next = chain(&[" a b c", &format!(" {}", word.text())]);
        assert_eq!(grown.blocks(), next.blocks());
        assert_eq!(grown.blocks().len(), 1);
    }

    #[test]
    fn units_stay_below_one() {
        assert!(unit(u64::MAX) < 1.0);
        assert!(unit(0) >= 0.0);
    }
}
