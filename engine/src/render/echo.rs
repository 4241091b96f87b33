//! Takes out of a server's words what they repeat of the prompt.
//!
//! A server that refuses a request may quote it, and the log keeps no prompt. The words are
//! compared with the texts in the request's body by letters, digits and whatever is not ASCII
//! alone, so that it does not matter how either side writes quotes and line ends; a stretch of
//! `LETTERS_MIN` of them that the body has too becomes stars. Names of members, and the model's,
//! stay. It allocates nothing and looks at every byte of the body once, in the order of nanoseconds
//! each, on a core that has others to send: a [`Budget`] bounds how many it looks at in a second,
//! however many requests fail. Who has none left keeps no words.

use onbeat_shared::units::RunNanos;

use crate::limits::{ECHO_BYTES_MAX, ECHO_BYTES_PER_S};

/// A shorter stretch is not looked for: it may as well be the server's own words.
const LETTERS_MIN: usize = 16;
/// Most bytes of words that are looked at, as many as are kept.
const WORDS_MAX: usize = 1_024;
/// The factor of the rolling sum, odd and large.
const FACTOR: u32 = 0x9E37_79B1;
/// Bits of the quick test whether the words have a stretch at all.
const SIEVE_BITS: usize = 1 << 13;
/// What ends a request's head.
const HEAD_END: [u8; 4] = *b"\r\n\r\n";

/// Overwrites with stars what `words` repeat of the body in `parts`, a request's slices in order,
/// head first. Only the first `WORDS_MAX` bytes of the words are looked at.
pub fn cut_echo<'a>(words: &mut [u8], parts: impl Iterator<Item = &'a [u8]>) {
    let mut wanted = Wanted::of(words);
    if wanted.letters < LETTERS_MIN {
        return;
    }
    let mut body = Body::new();
    for byte in parts.flatten() {
        body.take(*byte, &mut wanted);
    }
    wanted.cover(words);
}

/// How many bytes of requests one core may still look through.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    left: u64,
    /// When it was last filled up.
    at: RunNanos,
}

impl Budget {
    /// A full one: what fails first is looked through, unless it is longer than any may be.
    #[must_use]
    pub const fn full() -> Self {
        Self { left: ECHO_BYTES_MAX, at: RunNanos(i64::MIN) }
    }

    /// Takes `bytes` out of it at `time`, if there are so many.
    pub fn spend(&mut self, bytes: u64, time: RunNanos) -> bool {
        const SECOND: u128 = 1_000_000_000;
        let since = u128::from(time.0.saturating_sub(self.at.0).max(0).unsigned_abs());
        let more = since * u128::from(ECHO_BYTES_PER_S) / SECOND;
        let room = ECHO_BYTES_MAX - self.left;
        if more >= room.into() {
            (self.left, self.at) = (ECHO_BYTES_MAX, self.at.max(time));
        } else if let Ok(more) = u64::try_from(more) {
            // What is not a whole byte yet is not forgotten.
            let worth = (u128::from(more) * SECOND).div_ceil(ECHO_BYTES_PER_S.into());
            self.left += more;
            self.at.0 += i64::try_from(worth).expect("no longer than there was");
        }
        let is_enough = bytes <= self.left;
        if is_enough {
            self.left -= bytes;
        }
        is_enough
    }
}

/// The letters of the words, where they stand, and which of them the body has too.
struct Wanted {
    letter: [u8; WORDS_MAX],
    /// Their first byte and their last, which differ where they are written as escapes.
    first: [u16; WORDS_MAX],
    last: [u16; WORDS_MAX],
    letters: usize,
    /// Sum of the stretch that starts at a letter.
    sums: [u32; WORDS_MAX],
    sieve: [u64; SIEVE_BITS / 64],
    /// Letters found in the text that is being read, and in those before.
    here: [u64; WORDS_MAX / 64],
    found: [u64; WORDS_MAX / 64],
}

impl Wanted {
    fn of(words: &[u8]) -> Self {
        let mut wanted = Self {
            letter: [0; WORDS_MAX],
            first: [0; WORDS_MAX],
            last: [0; WORDS_MAX],
            letters: 0,
            sums: [0; WORDS_MAX],
            sieve: [0; SIEVE_BITS / 64],
            here: [0; WORDS_MAX / 64],
            found: [0; WORDS_MAX / 64],
        };
        let mut escapes = Escapes::default();
        let mut began = 0;
        for (place, &byte) in (0_u16..).zip(words.iter().take(WORDS_MAX)) {
            if escapes.is_between() {
                began = place;
            }
            escapes.take(byte, &mut |letter| {
                // A character has at most as many bytes as its escape, so there is room.
                wanted.letter[wanted.letters] = letter;
                wanted.first[wanted.letters] = began;
                wanted.last[wanted.letters] = place;
                wanted.letters += 1;
            });
        }
        for start in 0..(wanted.letters + 1).saturating_sub(LETTERS_MIN) {
            let stretch = &wanted.letter[start..start + LETTERS_MIN];
            let sum = stretch.iter().fold(0, |sum, &letter| add(sum, letter));
            wanted.sums[start] = sum;
            let (word, bit) = sieve_place(sum);
            wanted.sieve[word] |= bit;
        }
        wanted
    }

    /// The body has a stretch with this sum.
    #[inline]
    fn meet(&mut self, sum: u32, stretch: impl Fn(usize) -> u8) {
        let (word, bit) = sieve_place(sum);
        if self.sieve[word] & bit == 0 {
            return;
        }
        for start in 0..=self.letters - LETTERS_MIN {
            let same = self.sums[start] == sum
                && (0..LETTERS_MIN).all(|at| self.letter[start + at] == stretch(at));
            if same {
                for at in start..start + LETTERS_MIN {
                    self.here[at / 64] |= 1 << (at % 64);
                }
            }
        }
    }

    /// The text has ended; what was found in it counts if it `is_value`.
    fn settle(&mut self, is_value: bool) {
        for (found, here) in self.found.iter_mut().zip(&mut self.here) {
            if is_value {
                *found |= *here;
            }
            *here = 0;
        }
    }

    /// Overwrites in `words` what was found, and what stands between.
    fn cover(&self, words: &mut [u8]) {
        let is_found = |at: usize| self.found[at / 64] >> (at % 64) & 1 == 1;
        let mut at = 0;
        while at < self.letters {
            let start = at;
            while at < self.letters && is_found(at) {
                at += 1;
            }
            if at > start {
                let mut from = usize::from(self.first[start]);
                let mut to = usize::from(self.last[at - 1]) + 1;
                // No character is left in halves.
                let goes_on =
                    |at: usize, words: &[u8]| words.get(at).is_some_and(|it| it >> 6 == 2);
                while from > 0 && goes_on(from, words) {
                    from -= 1;
                }
                while goes_on(to, words) {
                    to += 1;
                }
                words[from..to].fill(b'*');
            } else {
                at += 1;
            }
        }
    }
}

#[inline]
const fn add(sum: u32, letter: u8) -> u32 {
    sum.wrapping_mul(FACTOR).wrapping_add(letter as u32 + 1)
}

/// What the oldest letter of a stretch is worth when the next one comes.
const OLDEST: u32 = {
    let (mut power, mut at) = (1_u32, 0);
    while at < LETTERS_MIN {
        power = power.wrapping_mul(FACTOR);
        at += 1;
    }
    power
};

#[inline]
const fn sieve_place(sum: u32) -> (usize, u64) {
    let place = (sum >> 19) as usize % SIEVE_BITS;
    (place / 64, 1 << (place % 64))
}

/// Reads a request: where its head ends, which strings of its body are values, and their letters.
struct Body {
    /// How much of the empty line that ends the head has come.
    head_end: usize,
    /// The letters of the last stretch, in a ring, and how many there have been in this string.
    ring: [u8; LETTERS_MIN],
    count: usize,
    sum: u32,
    in_string: bool,
    /// A string has ended, and what comes next says what it was.
    ended: bool,
    escaped: bool,
    escapes: Escapes,
    /// The first bytes of the string, to know the model's member by its name.
    name: [u8; 6],
    bytes: usize,
    is_model: bool,
}

impl Body {
    const fn new() -> Self {
        Self {
            head_end: 0,
            ring: [0; LETTERS_MIN],
            count: 0,
            sum: 0,
            in_string: false,
            ended: false,
            escaped: false,
            escapes: Escapes::NONE,
            name: [0; 6],
            bytes: 0,
            is_model: false,
        }
    }

    #[inline]
    fn take(&mut self, byte: u8, wanted: &mut Wanted) {
        if !self.in_string {
            match HEAD_END.get(self.head_end) {
                None => self.between(byte, wanted),
                Some(&next) if byte == next => self.head_end += 1,
                Some(_) => self.head_end = usize::from(byte == HEAD_END[0]),
            }
            return;
        }
        if byte == b'"' && !self.escaped {
            (self.in_string, self.ended) = (false, true);
            return;
        }
        self.escaped = byte == b'\\' && !self.escaped;
        if self.bytes < self.name.len() {
            self.name[self.bytes] = byte;
        }
        self.bytes += 1;
        let (ring, count, sum) = (&mut self.ring, &mut self.count, &mut self.sum);
        self.escapes.take(byte, &mut |letter| {
            let place = *count % LETTERS_MIN;
            *sum = add(*sum, letter);
            if *count >= LETTERS_MIN {
                *sum = sum.wrapping_sub((u32::from(ring[place]) + 1).wrapping_mul(OLDEST));
            }
            ring[place] = letter;
            *count += 1;
            if *count >= LETTERS_MIN {
                let oldest = *count;
                wanted.meet(*sum, |at| ring[(oldest + at) % LETTERS_MIN]);
            }
        });
    }

    /// A byte outside of strings.
    fn between(&mut self, byte: u8, wanted: &mut Wanted) {
        if byte.is_ascii_whitespace() {
            return;
        }
        if self.ended {
            self.ended = false;
            let is_name = byte == b':';
            wanted.settle(!is_name && !self.is_model);
            self.is_model = is_name && self.bytes == 5 && self.name.starts_with(b"model");
        }
        if byte == b'"' {
            self.in_string = true;
            (self.count, self.sum, self.bytes) = (0, 0, 0);
            self.escapes = Escapes::NONE;
        }
    }
}

/// Tells letters from the rest, and puts characters together that JSON writes as escapes.
#[derive(Clone, Copy, Default)]
struct Escapes {
    state: State,
    /// The number of an escape so far, and the first half of a pair.
    number: u32,
    high: u32,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Plain,
    /// Behind a backslash.
    Begun,
    /// Behind `\u` and so many digits.
    Digits(u8),
}

impl Escapes {
    const NONE: Self = Self { state: State::Plain, number: 0, high: 0 };

    /// Whether no character is half read.
    fn is_between(self) -> bool {
        self.state == State::Plain && self.high == 0
    }

    #[inline]
    fn take(&mut self, byte: u8, letter: &mut impl FnMut(u8)) {
        match self.state {
            // Several backslashes are one: whoever quotes a quotation doubles them.
            State::Plain | State::Begun if byte == b'\\' => self.state = State::Begun,
            State::Plain if byte.is_ascii_alphanumeric() || !byte.is_ascii() => letter(byte),
            State::Plain => {}
            State::Begun if byte == b'u' => (self.state, self.number) = (State::Digits(0), 0),
            State::Begun => self.state = State::Plain,
            State::Digits(count) => {
                let Some(digit) = char::from(byte).to_digit(16) else {
                    self.state = State::Plain;
                    return;
                };
                self.number = self.number << 4 | digit;
                self.state = State::Digits(count + 1);
                if count == 3 {
                    self.state = State::Plain;
                    self.write(letter);
                }
            }
        }
    }

    /// The number of an escape is whole.
    fn write(&mut self, letter: &mut impl FnMut(u8)) {
        let high = std::mem::take(&mut self.high);
        let number = match self.number {
            first @ 0xD800..0xDC00 => {
                self.high = first;
                return;
            }
            second @ 0xDC00..0xE000 if high > 0 => {
                0x1_0000 + ((high - 0xD800) << 10) + (second - 0xDC00)
            }
            number => number,
        };
        let Some(character) = char::from_u32(number) else { return };
        let mut bytes = [0; 4];
        let bytes = character.encode_utf8(&mut bytes).as_bytes();
        bytes.iter().filter(|it| it.is_ascii_alphanumeric() || !it.is_ascii()).for_each(|it| {
            letter(*it);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = concat!(
        r#"{"model":"meta-llama/Llama-3.1-8B-Instruct","max_completion_tokens":4,"messages":["#,
        r#"{"role":"user","content":"the patient \"Jane Roe\"\nis in room 17, called \u540d\u524d"#,
        r#"\ud83d\ude00 by "#,
        "\u{65e5}\u{672c}\u{8a9e}\u{306e}\u{60a3}\u{8005}\u{3055}\u{3093}\u{305f}\u{3061}",
        r#""}],"tools":[{"reading_of_blood_pressure":1}]}"#,
    );

    /// A head with an odd quote.
    const HEAD: &[u8] = b"POST /v1/chat/completions HTTP/1.1\r\nX-A: \"\r\n\r\n";

    /// The words without what they repeat of the body, however its slices are cut.
    fn cut(words: &str) -> String {
        let whole = [HEAD, BODY.as_bytes()].concat();
        let all = [1, 7, 4_096].map(|size| {
            let mut bytes = words.as_bytes().to_vec();
            cut_echo(&mut bytes, whole.chunks(size));
            String::from_utf8(bytes).expect("no character is left in halves")
        });
        assert!(all.iter().all(|text| *text == all[0]), "{all:?}");
        all[0].clone()
    }

    #[test]
    fn a_core_looks_through_so_much_in_a_second_and_no_more() {
        const SECOND: i64 = 1_000_000_000;
        let mut budget = Budget::full();
        assert!(!budget.spend(ECHO_BYTES_MAX + 1, RunNanos(-5)), "longer than any may be");
        assert!(budget.spend(ECHO_BYTES_MAX, RunNanos(-5)) && budget.spend(0, RunNanos(-5)));
        // Ten thousand failures within a second, each with a prompt of a kilobyte.
        let looked =
            (0..10_000_i64).filter(|n| budget.spend(1 << 10, RunNanos(n * SECOND / 10_000)));
        let looked = looked.count() as u64;
        assert_eq!(looked, ECHO_BYTES_PER_S / (1 << 10) - 1);
        assert!(!budget.spend(ECHO_BYTES_MAX, RunNanos(SECOND)));
        assert!(!budget.spend(ECHO_BYTES_MAX, RunNanos(0)), "a clock does not go back");
        // However long nobody failed, it holds no more than one.
        let later = RunNanos(1_000 * SECOND);
        assert!(budget.spend(ECHO_BYTES_MAX, later) && !budget.spend(1, later));
        assert!(budget.spend(1, RunNanos(i64::MAX)));
    }

    #[test]
    fn a_quoted_prompt_is_cut_out_however_it_is_quoted() {
        for quoted in [
            r#"the patient "Jane Roe" is in room 17"#,
            r#"the patient \"Jane Roe\"\nis in room 17"#,
            r"the patient \'Jane Roe\'\n is in room 17",
        ] {
            let shown = cut(&format!("bad input: [{quoted}]; try again"));
            let letters = quoted.trim_end_matches(']');
            assert_eq!(shown, format!("bad input: [{}]; try again", "*".repeat(letters.len())));
        }
    }

    #[test]
    fn a_quote_that_is_cut_off_is_cut_out() {
        let words = format!("{} the patient \"Jane Roe\" is in", "x ".repeat(20));
        assert_eq!(cut(&words), format!("{} {}", "x ".repeat(20), "*".repeat(28)));
    }

    #[test]
    fn characters_are_the_same_as_escapes() {
        for quoted in [
            "\u{540d}\u{524d}\u{1f600} by \u{65e5}\u{672c}\u{8a9e}\u{306e}\u{60a3}\u{8005}\u{3055}\u{3093}",
            r"\u540d\u524d\ud83d\ude00 by \u65e5\u672c\u8a9e\u306e",
        ] {
            let shown = cut(&format!("called {quoted}!"));
            assert!(
                !shown.contains(['\u{540d}', '\u{65e5}', '\u{60a3}']) && shown.contains("**"),
                "{shown}"
            );
            assert!(!shown.contains("540d") && shown.ends_with('!'), "{shown}");
        }
    }

    #[test]
    fn names_of_members_the_model_and_short_words_stay() {
        for words in [
            "the model `meta-llama/Llama-3.1-8B-Instruct` does not exist",
            "max_completion_tokens is too large: 4",
            "reading_of_blood_pressure is no tool",
            "the patient is unknown",
            "POST /v1/chat/completions HTTP/1.1 is not allowed",
            "",
        ] {
            assert_eq!(cut(words), words);
        }
    }

    #[test]
    fn long_words_and_broken_bodies_are_no_trouble() {
        let long = "the patient Jane Roe is in room 17; ".repeat(100);
        let shown = cut(&long);
        assert!(shown[..WORDS_MAX - 40].chars().all(|it| "*; ".contains(it)), "{shown}");
        for body in [&b"\"\\u12\"\\"[..], b"{\"a\":\"\\ud800\\ud800\\udc00\\udc00", b"\\\"\\\""] {
            let mut words = *b"0123456789abcdef0123456789abcdef \\u12 \\ud800 \\";
            cut_echo(&mut words, [HEAD, body].into_iter());
        }
    }

    #[test]
    fn all_that_is_repeated_of_any_text_is_cut_out() {
        let mut dice = onbeat_shared::dice::Dice(7);
        let letters: Vec<char> = "abc \"\n\\\u{e9}\u{65e5}\u{1f600}".chars().collect();
        for _ in 0..300 {
            let prompt: String = (0..200).map(|_| letters[dice.place(letters.len())]).collect();
            let body = serde_json::json!({ "prompt": prompt }).to_string();
            let quoted: String = prompt.chars().skip(50).collect();
            let words = match dice.place(2) {
                0 => quoted,
                _ => serde_json::Value::from(quoted).to_string(),
            };
            let mut words = format!("no: {words}").into_bytes();
            words.truncate(WORDS_MAX);
            cut_echo(&mut words, [HEAD, body.as_bytes()].into_iter());
            let left = words.iter().filter(|it| it.is_ascii_alphanumeric() || !it.is_ascii());
            assert!(left.count() <= 2 + LETTERS_MIN, "{}", String::from_utf8_lossy(&words));
        }
    }
}
