//! Finds what must not be seen in a server's words, however it is spelled there.
//!
//! A server repeats a key in a URL, in JSON, in a page, in small letters, in Base64 or in
//! hexadecimal, and cuts it off where it likes. So its words are read as they stand, and again with
//! what they spell in the place of the spelling, while every letter remembers the bytes that it was
//! read from. [`needles`] is what to look for, [`cover`] overwrites what is found and takes no
//! memory. Which texts are secret is not known here, nor any cipher.

use super::Secret;

/// A shorter secret is not looked for: it would be found all over a message.
const BYTES_MIN: usize = 4;
/// A shorter word of a secret is not looked for by itself: it may be the name of a scheme.
const WORD_BYTES_MIN: usize = 8;
/// So much of a secret's beginning counts wherever it stands; less of it only where words were cut.
const BEGINNING: usize = 16;
/// Words are read as they stand, with what they spell, and with what that spells.
const READINGS: usize = 3;
/// What stands where words were cut.
const CUTS: [&[u8]; 2] = ["…".as_bytes(), b"..."];
/// Bits of the quick test whether any secret begins somewhere.
const SIEVE_BITS: usize = 1 << 13;
/// What a page writes for letters that keys may have.
const NAMED: [(&[u8], u8); 8] = [
    (b"amp;", b'&'),
    (b"apos;", b'\''),
    (b"equals;", b'='),
    (b"gt;", b'>'),
    (b"lt;", b'<'),
    (b"plus;", b'+'),
    (b"quot;", b'"'),
    (b"sol;", b'/'),
];
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE64_OF_URLS: &[u8; 64] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const HEX: &[u8; 16] = b"0123456789abcdef";

/// All that [`cover`] is to look for where `secret` must not be seen: itself, its long words, what
/// it says as HTTP's `Basic` credentials, and all of these in Base64 and hexadecimal.
pub(super) fn needles(secret: &[u8]) -> Vec<Secret> {
    let credentials = credentials(secret);
    let credentials = credentials.as_ref().map_or(&[][..], Secret::reveal);
    let password = credentials.splitn(2, |&byte| byte == b':').nth(1).unwrap_or_default();
    // A value of a query is typed as it is sent, and repeated as it is meant.
    let meant = Secret::new(meant(secret));
    let whole = [secret, meant.reveal(), credentials, password].into_iter();
    let mut all: Vec<Secret> = Vec::new();
    for word in whole.chain(words_of(secret)).filter(|word| word.len() >= BYTES_MIN) {
        let mut add = |spelled: Vec<u8>| {
            let mut spelled = spelled;
            spelled.iter_mut().for_each(|byte| *byte = folded(*byte));
            let spelled = Secret::new(spelled);
            if !all.contains(&spelled) {
                all.push(spelled);
            }
        };
        add(word.to_vec());
        let coded = |alphabet| (0..3).map(move |before| base64(word, before, alphabet));
        let coded = coded(BASE64).chain(coded(BASE64_OF_URLS));
        coded.chain([hex(word, false), hex(word, true)]).for_each(|spelled| {
            if spelled.len() >= WORD_BYTES_MIN {
                add(spelled);
            }
        });
    }
    all
}

/// Overwrites with stars what `text` has of `needles`; `room` is as long as the text at least.
pub(super) fn cover(text: &mut [u8], room: Room<'_>, needles: &[Secret]) {
    let sieve = Sieve::of(needles);
    let mut letters = Letters::of(text, room);
    for reading in 0..READINGS {
        if reading > 0 && !letters.read_on() {
            return;
        }
        letters.cover(&sieve, needles, text);
    }
}

/// Memory that a text is read in.
#[derive(Debug)]
pub(super) struct Room<'a> {
    pub(super) bytes: &'a mut [u8],
    pub(super) first: &'a mut [u32],
    pub(super) last: &'a mut [u32],
}

/// A text as it is read, folded, and for each byte the first and the last one that it stands for.
#[derive(Debug)]
struct Letters<'a> {
    room: Room<'a>,
    count: usize,
}

/// Tells of most places that no secret begins there, in one look.
#[derive(Debug)]
struct Sieve([u64; SIEVE_BITS / 64]);

impl Sieve {
    fn of(needles: &[Secret]) -> Self {
        let mut sieve = Self([0; SIEVE_BITS / 64]);
        for head in needles.iter().filter_map(|needle| needle.reveal().first_chunk()) {
            let (word, bit) = Self::place(*head);
            sieve.0[word] |= bit;
        }
        sieve
    }

    #[inline]
    const fn place(head: [u8; BYTES_MIN]) -> (usize, u64) {
        let sum = u32::from_le_bytes(head).wrapping_mul(0x9E37_79B1);
        let place = (sum >> 19) as usize % SIEVE_BITS;
        (place / 64, 1 << (place % 64))
    }

    #[inline]
    const fn may_hold(&self, head: [u8; BYTES_MIN]) -> bool {
        let (word, bit) = Self::place(head);
        self.0[word] & bit != 0
    }
}

impl<'a> Letters<'a> {
    fn of(text: &[u8], room: Room<'a>) -> Self {
        for (at, byte) in (0..).zip(text) {
            let place = at as usize;
            room.bytes[place] = folded(*byte);
            (room.first[place], room.last[place]) = (at, at);
        }
        Self { room, count: text.len() }
    }

    fn bytes(&self) -> &[u8] {
        &self.room.bytes[..self.count]
    }

    /// Puts what is spelled in the place of its spelling; whether there was anything.
    fn read_on(&mut self) -> bool {
        let Some(start) = memchr::memchr3(b'%', b'\\', b'&', self.bytes()) else { return false };
        let (mut from, mut to) = (start, start);
        while from < self.count {
            let spelled = spelled(&self.bytes()[from..]);
            let alone = || Spelled { taken: 1, bytes: [self.room.bytes[from], 0, 0, 0], count: 1 };
            let Spelled { taken, bytes, count } = spelled.unwrap_or_else(alone);
            let (first, last) = (self.room.first[from], self.room.last[from + taken - 1]);
            from += taken;
            // No spelling is shorter than what it stands for.
            for byte in &bytes[..count] {
                self.room.bytes[to] = folded(*byte);
                (self.room.first[to], self.room.last[to]) = (first, last);
                to += 1;
            }
        }
        let changed = to < self.count;
        self.count = to;
        changed
    }

    fn cover(&self, sieve: &Sieve, needles: &[Secret], text: &mut [u8]) {
        let mut at = 0;
        while let Some(&head) = self.bytes()[at..].first_chunk() {
            let length = if sieve.may_hold(head) { self.longest(at, needles) } else { 0 };
            if length > 0 {
                self.star(at..at + length, text);
            }
            at += length.max(1);
        }
    }

    /// How much of a secret begins at a place: all of it, enough of it, or as much as was not cut.
    fn longest(&self, at: usize, needles: &[Secret]) -> usize {
        let rest = &self.bytes()[at..];
        let begun = |needle: &Secret| {
            let needle = needle.reveal();
            let pairs = rest.iter().zip(needle);
            let length = pairs.take_while(|(one, other)| one == other).count();
            let behind = &rest[length..];
            let in_a_spelling =
                matches!(behind, [b'%' | b'\\' | b'&', rest @ ..] if rest.len() < 8);
            let was_cut = behind.is_empty()
                || in_a_spelling
                || CUTS.iter().any(|mark| behind.starts_with(mark));
            let enough = needle.len().clamp(BYTES_MIN, BEGINNING);
            let counts = length >= enough || (was_cut && length >= BYTES_MIN);
            if counts { length } else { 0 }
        };
        needles.iter().map(begun).max().unwrap_or(0)
    }

    fn star(&self, letters: std::ops::Range<usize>, text: &mut [u8]) {
        let mut from = self.room.first[letters.start] as usize;
        let mut to = self.room.last[letters.end - 1] as usize + 1;
        // No character is left in halves.
        let goes_on = |at: usize| text.get(at).is_some_and(|byte| byte >> 6 == 2);
        while from > 0 && goes_on(from) {
            from -= 1;
        }
        while goes_on(to) {
            to += 1;
        }
        text[from..to].fill(b'*');
    }
}

/// A text with what it spells in the place of the spelling.
fn meant(text: &[u8]) -> Vec<u8> {
    let mut meant = Vec::with_capacity(text.len());
    let mut from = 0;
    while from < text.len() {
        match spelled(&text[from..]) {
            Some(Spelled { taken, bytes, count }) => {
                meant.extend_from_slice(&bytes[..count]);
                from += taken;
            }
            None => {
                meant.push(text[from]);
                from += 1;
            }
        }
    }
    meant
}

/// A byte as it is compared: capitals do not matter, nor do the ways to write a space in a URL.
const fn folded(byte: u8) -> u8 {
    match byte {
        b'+' | b'\t' | b'\r' | b'\n' => b' ',
        _ => byte.to_ascii_lowercase(),
    }
}

/// The long words of a header's value: a key behind its scheme, the cookies of a list.
fn words_of(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value
        .split(|byte| matches!(byte, b' ' | b'\t' | b',' | b';' | b'=' | b'"'))
        .filter(|word| word.len() >= WORD_BYTES_MIN)
}

/// One character, and how it was spelled.
struct Spelled {
    /// Bytes of the spelling.
    taken: usize,
    bytes: [u8; 4],
    count: usize,
}

/// What the text begins with, if that is the spelling of a character: in a URL, in JSON or another
/// program's string, in a page.
fn spelled(text: &[u8]) -> Option<Spelled> {
    let byte = |taken, byte| Some(Spelled { taken, bytes: [byte, 0, 0, 0], count: 1 });
    match *text {
        [b'%', high, low, ..] => byte(3, hex_byte(high, low)?),
        [b'\\', b'x', high, low, ..] => byte(4, hex_byte(high, low)?),
        [b'\\', b'u', b'{', ref rest @ ..] => character(3, rest, 16, Some(b'}')),
        [b'\\', b'u', ref rest @ ..] => character(2, rest.get(..4)?, 16, None),
        [b'\\', b'n' | b'r' | b't', ..] => byte(2, b' '),
        [b'\\', other, ..] if other.is_ascii_punctuation() => byte(2, other),
        [b'&', b'#', b'x', ref rest @ ..] => character(3, rest, 16, Some(b';')),
        [b'&', b'#', ref rest @ ..] => character(2, rest, 10, Some(b';')),
        [b'&', ref rest @ ..] => {
            let (name, letter) = NAMED.iter().find(|(name, _)| rest.starts_with(name))?;
            byte(1 + name.len(), *letter)
        }
        _ => None,
    }
}

/// A character by its number, behind `before` bytes and up to `end`.
fn character(before: usize, rest: &[u8], radix: u32, end: Option<u8>) -> Option<Spelled> {
    const DIGITS_MAX: usize = 8;
    let digits = match end {
        Some(end) => rest.iter().take(DIGITS_MAX).position(|&byte| byte == end)?,
        None => rest.len(),
    };
    let mut number = 0_u32;
    for digit in rest[..digits].iter().map(|&byte| char::from(byte).to_digit(radix)) {
        number = number.checked_mul(radix)?.checked_add(digit?)?;
    }
    let character = char::from_u32(number).filter(|_| digits > 0)?;
    let mut bytes = [0; 4];
    let count = character.encode_utf8(&mut bytes).len();
    let taken = before + digits + usize::from(end.is_some());
    (count <= taken).then_some(Spelled { taken, bytes, count })
}

fn hex_byte(high: u8, low: u8) -> Option<u8> {
    let digit = |byte| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(high)? << 4 | digit(low)?)
}

/// Two digits for each byte, as they stand in one word or with spaces between.
fn hex(bytes: &[u8], spaced: bool) -> Vec<u8> {
    let mut spelled = Vec::with_capacity(3 * bytes.len());
    for (at, byte) in bytes.iter().enumerate() {
        if spaced && at > 0 {
            spelled.push(b' ');
        }
        spelled.extend([byte >> 4, byte & 15].map(|digit| HEX[usize::from(digit)]));
    }
    spelled
}

/// The letters of Base64 that these bytes alone decide, where `before` others begin their group of
/// three.
fn base64(bytes: &[u8], before: usize, alphabet: &[u8; 64]) -> Vec<u8> {
    let letters = (8 * before).div_ceil(6)..8 * (before + bytes.len()) / 6;
    let bit = |at: usize| bytes[at / 8] >> (7 - at % 8) & 1;
    let letter = |letter: usize| {
        let from = 6 * letter - 8 * before;
        (from..from + 6).fold(0, |value, at| value << 1 | bit(at))
    };
    letters.map(|at| alphabet[usize::from(letter(at))]).collect()
}

/// What HTTP's `Basic` credentials say: a user and a password.
fn credentials(value: &[u8]) -> Option<Secret> {
    const SCHEME: &[u8] = b"basic ";
    let (scheme, coded) = value.split_at_checked(SCHEME.len())?;
    let coded = coded.trim_ascii();
    let end = coded.iter().rposition(|&byte| byte != b'=')?;
    if !scheme.eq_ignore_ascii_case(SCHEME) {
        return None;
    }
    let mut said = Vec::with_capacity(coded.len());
    let (mut bits, mut known) = (0_u32, 0_u32);
    for letter in &coded[..=end] {
        let value = BASE64.iter().position(|it| it == letter)?;
        bits = bits << 6 | u32::try_from(value).ok()?;
        known += 6;
        if known >= 8 {
            known -= 8;
            said.push(u8::try_from(bits >> known & 0xff).ok()?);
            bits &= (1 << known) - 1;
        }
    }
    Some(Secret::new(said))
}

#[cfg(test)]
mod tests {
    use super::super::secret::scrubbed;
    use super::*;

    fn cut(words: &str, secret: &str) -> String {
        scrubbed(words.to_owned(), &needles(secret.as_bytes()))
    }

    fn stars(words: &str) -> String {
        format!("[{}]", "*".repeat(words.len()))
    }

    #[test]
    fn a_secret_is_cut_however_it_is_spelled() {
        for (secret, spelled) in [
            ("ab/cd+ef==", r"ab\/cd+ef=="),
            ("ab/cd+ef==", r"ab\/cd\u002bef\u003D\u003d"),
            ("ab/cd+ef==", "ab%2Fcd%2Bef%3D%3D"),
            ("ab/cd+ef==", "ab%2fcd%2bef%3d%3d"),
            ("ab/cd+ef==", "ab%252Fcd%252Bef%253D%253D"),
            ("ab/cd+ef==", "ab&#x2F;cd&#43;ef&equals;&#61;"),
            ("ab/cd+ef==", "AB/CD+EF=="),
            (r#"ab"cd\ef"#, r#"ab\"cd\\ef"#),
            (r#"ab"cd\ef"#, r#"ab\\\"cd\\\\ef"#),
            (r#"ab"cd&ef'"#, "ab&quot;cd&amp;ef&apos;"),
            ("a b/c", "a%20b%2Fc"),
            ("a b/c", "a+b%2Fc"),
            ("a%2Fbcd", "a%2Fbcd"),
            ("a%2Fbcd", "a/bcd"),
            ("schlüssel", "schl%C3%BCssel"),
            ("schlüssel", r"schl\u00fcssel"),
            ("schlüssel", r"schl\xc3\xbcssel"),
            ("schlüssel", "schl&#252;ssel"),
            ("tab\u{1b}[cd", r"tab\u{1b}[cd"),
            ("sk-12345", "73 6b 2d 31 32 33 34 35"),
            ("sk-12345", "736b2d3132333435"),
        ] {
            assert_eq!(cut(&format!("[{spelled}]"), secret), stars(spelled), "{secret}");
        }
        for plain in ["50% off", r"C:\users\x", "a & b &c;", r"\u12", "&#;&#x;&#99999999;", "%zz"] {
            assert_eq!(cut(plain, "sk-12345"), plain);
        }
    }

    #[test]
    fn a_secret_is_cut_out_of_base64_wherever_it_stands() {
        let secret = "sk-hunter2/hunter2+7f3a";
        for before in ["", "u", "us", "user:"] {
            for behind in ["", ":", "ab"] {
                let text = [before, secret, behind].concat();
                for alphabet in [BASE64, BASE64_OF_URLS] {
                    let coded = base64(text.as_bytes(), 0, alphabet);
                    let coded = String::from_utf8(coded).expect("letters");
                    let left = cut(&coded, secret);
                    let shown = left.bytes().filter(|&byte| byte != b'*').count();
                    // At either end a letter that others decide as well.
                    let most = (8 * (text.len() - secret.len())).div_ceil(6) + 2;
                    assert!(shown <= most, "{coded} is {left}");
                }
            }
        }
        assert_eq!(base64(b"Many hands", 0, BASE64), b"TWFueSBoYW5kc");
    }

    #[test]
    fn what_basic_credentials_say_is_as_secret_as_they_are() {
        let header = "Basic YWRtaW46aHVudGVyMi1odW50ZXI=";
        for said in ["no user admin:hunter2-hunter", "wrong password hunter2-hunter", header] {
            let left = cut(said, header);
            assert!(!left.contains("hunter") && !left.contains("YWRt"), "{left}");
        }
        for other in ["Basic", "Basic !!", "Basic ", "basically nothing"] {
            assert_eq!(credentials(other.as_bytes()).filter(|it| !it.reveal().is_empty()), None);
        }
    }

    #[test]
    fn a_secret_that_was_cut_is_cut_out_as_far_as_it_goes() {
        let secret = "sk-0123456789abcdefghijkl";
        for (words, left) in [
            ("cut at sk-0123", "cut at *******"),
            ("cut at sk-012345…", "cut at *********…"),
            ("cut at sk-0123... for short", "cut at *******... for short"),
            ("sk-0123456789abcdef is half of it", "******************* is half of it"),
            ("retry-after sk-0123456789abcdefg: busy", "retry-after ********************: busy"),
            ("sk- is how keys begin", "sk- is how keys begin"),
            ("sk-01234 is too short to tell", "sk-01234 is too short to tell"),
        ] {
            assert_eq!(cut(words, secret), left);
        }
        assert_eq!(cut("cut at ab/cd%2", "ab/cd+ef=="), "cut at *****%2");
        assert_eq!(cut(&"sk-0...".repeat(1_000), secret), "****...".repeat(1_000));
    }

    #[test]
    fn no_character_is_left_in_halves() {
        let secret = "0123456789abcdeéf";
        let left = cut("0123456789abcdeèf", secret);
        assert!(left.ends_with('f') && !left.contains('\u{fffd}'), "{left}");
        assert_eq!(cut("é0123456789abcdeéfé", secret), format!("é{}é", "*".repeat(18)));
    }
}
