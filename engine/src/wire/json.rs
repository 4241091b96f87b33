//! Walks over JSON without building it.
//!
//! A [`Cursor`] checks the grammar of everything it passes, visits the members its caller asks for
//! and skips the rest; it neither allocates nor recurses over skipped values. It is lenient where
//! leniency cannot change a count: strings may hold raw control characters, bytes that are not
//! UTF-8, and lone surrogates (counted and shown as U+FFFD). Numbers are checked, not converted,
//! except for counts.

use memchr::{memchr, memchr2};

use super::strings::Strings;
use crate::limits::JSON_DEPTH_MAX;

/// The bytes are not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// A string as it stands in the JSON, between its quotes; its escapes are known to be well formed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text<'a> {
    raw: &'a [u8],
    escaped: bool,
}

/// A place in a JSON text. Where a method reads a value, the cursor stands on its first byte.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    strings: Strings,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, strings: Strings::new() }
    }

    /// The strings that were passed or counted so far.
    pub(super) fn strings(&self) -> Strings {
        self.strings
    }

    /// Passes blanks; the byte after them.
    #[inline]
    pub(super) fn peek(&mut self) -> Result<u8, Malformed> {
        match self.bytes.get(self.at) {
            Some(&byte) if byte > b' ' => Ok(byte),
            _ => self.peek_behind_blanks(),
        }
    }

    fn peek_behind_blanks(&mut self) -> Result<u8, Malformed> {
        loop {
            match self.bytes.get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                Some(&byte) => return Ok(byte),
                None => return Err(Malformed),
            }
        }
    }

    /// Nothing but blanks is left.
    pub(super) fn end(&mut self) -> Result<(), Malformed> {
        match self.peek() {
            Ok(_) => Err(Malformed),
            Err(Malformed) => Ok(()),
        }
    }

    /// Visits the members of the object here. `member` must pass exactly the member's value.
    pub(super) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, Text<'a>) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        self.expect(b'{')?;
        if self.peek()? == b'}' {
            self.at += 1;
            return Ok(());
        }
        loop {
            let key = self.key()?;
            member(self, key)?;
            match self.peek()? {
                b',' => self.at += 1,
                b'}' => break,
                _ => return Err(Malformed),
            }
        }
        self.at += 1;
        Ok(())
    }

    /// Visits the elements of the array here. `element` must pass exactly the element.
    pub(super) fn array(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        self.expect(b'[')?;
        if self.peek()? == b']' {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.peek()?;
            element(self)?;
            match self.peek()? {
                b',' => self.at += 1,
                b']' => break,
                _ => return Err(Malformed),
            }
        }
        self.at += 1;
        Ok(())
    }

    /// The string here.
    #[inline]
    pub(super) fn string(&mut self) -> Result<Text<'a>, Malformed> {
        self.expect(b'"')?;
        self.string_behind_quote()
    }

    #[inline]
    fn string_behind_quote(&mut self) -> Result<Text<'a>, Malformed> {
        let start = self.at;
        let mut escaped = false;
        loop {
            let rest = self.bytes.get(self.at..).ok_or(Malformed)?;
            let stop = find_stop(rest).ok_or(Malformed)?;
            self.at += stop + 1;
            if rest[stop] == b'"' {
                return Ok(Text { raw: &self.bytes[start..self.at - 1], escaped });
            }
            escaped = true;
            self.escape()?;
        }
    }

    /// The string here, or `None` after passing a value that is no string.
    #[inline]
    pub(super) fn string_or_skip(&mut self) -> Result<Option<Text<'a>>, Malformed> {
        if self.peek()? == b'"' {
            return self.string().map(Some);
        }
        self.skip()?;
        Ok(None)
    }

    /// Bytes of the string here, without escapes; 0 after passing a value that is no string.
    #[inline]
    pub(super) fn string_length(&mut self) -> Result<usize, Malformed> {
        if self.peek()? != b'"' {
            return self.skip().map(|()| 0);
        }
        let text = self.string()?;
        self.strings.note(self.at - 1, text.raw.len(), true);
        Ok(text.len())
    }

    /// The rest of a string whose opening quote is behind us and whose first escape is at
    /// `backslash`: how many bytes before the closing quote, and how many they stand for.
    pub(super) fn string_rest(&mut self, backslash: usize) -> Result<(usize, usize), Malformed> {
        self.at = backslash;
        let rest = self.string_behind_quote()?;
        Ok((self.at - 1, backslash + rest.len()))
    }

    /// The whole number here if it is one and not negative; `None` after passing anything else.
    pub(super) fn count_or_skip(&mut self) -> Result<Option<u64>, Malformed> {
        self.peek()?;
        let start = self.at;
        self.skip()?;
        let raw = &self.bytes[start..self.at];
        // Some servers write counts as floating-point numbers: `12.0` is 12.
        let digits = match memchr(b'.', raw) {
            Some(point) if raw[point + 1..].iter().all(|&byte| byte == b'0') => &raw[..point],
            _ => raw,
        };
        let mut value = 0_u64;
        for &byte in digits {
            if !byte.is_ascii_digit() {
                return Ok(None);
            }
            let grown = value.checked_mul(10).and_then(|ten| ten.checked_add((byte - b'0').into()));
            let Some(grown) = grown else { return Ok(None) };
            value = grown;
        }
        Ok(Some(value))
    }

    /// Passes the value here and returns its text.
    pub(super) fn raw_value(&mut self) -> Result<&'a [u8], Malformed> {
        self.peek()?;
        let start = self.at;
        self.skip()?;
        Ok(&self.bytes[start..self.at])
    }

    /// Passes the value here, however deep, without recursion.
    #[inline]
    pub(super) fn skip(&mut self) -> Result<(), Malformed> {
        match self.peek()? {
            b'"' => {
                let length = self.string()?.raw.len();
                self.strings.note(self.at - 1, length, false);
                Ok(())
            }
            b'{' | b'[' => self.skip_nested(),
            _ => self.scalar(),
        }
    }

    fn skip_nested(&mut self) -> Result<(), Malformed> {
        // One bit for each open bracket, the innermost lowest: 1 is an object.
        let mut open: u128 = 0;
        let mut depth: u32 = 0;
        loop {
            let first = self.peek()?;
            if first == b'{' || first == b'[' {
                self.at += 1;
                let closing = if first == b'{' { b'}' } else { b']' };
                if self.peek()? == closing {
                    self.at += 1;
                } else {
                    depth += 1;
                    if depth > JSON_DEPTH_MAX {
                        return Err(Malformed);
                    }
                    open = open << 1 | u128::from(first == b'{');
                    if first == b'{' {
                        self.key()?;
                    }
                    continue;
                }
            } else if first == b'"' {
                self.string()?;
            } else {
                self.scalar()?;
            }
            // A value has been passed: close what closes here, or go on to the next value.
            loop {
                if depth == 0 {
                    return Ok(());
                }
                let in_object = open & 1 == 1;
                match self.peek()? {
                    b',' => {
                        self.at += 1;
                        if in_object {
                            self.key()?;
                        }
                        break;
                    }
                    b'}' if in_object => self.at += 1,
                    b']' if !in_object => self.at += 1,
                    _ => return Err(Malformed),
                }
                open >>= 1;
                depth -= 1;
            }
        }
    }

    /// A key with its colon.
    #[inline]
    fn key(&mut self) -> Result<Text<'a>, Malformed> {
        self.peek()?;
        let key = self.string()?;
        if self.peek()? != b':' {
            return Err(Malformed);
        }
        self.at += 1;
        self.peek()?;
        Ok(key)
    }

    fn scalar(&mut self) -> Result<(), Malformed> {
        match self.bytes.get(self.at) {
            Some(b't') => self.literal(b"true"),
            Some(b'f') => self.literal(b"false"),
            Some(b'n') => self.literal(b"null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(Malformed),
        }
    }

    fn literal<const LENGTH: usize>(&mut self, word: &[u8; LENGTH]) -> Result<(), Malformed> {
        if self.bytes[self.at..].first_chunk() != Some(word) {
            return Err(Malformed);
        }
        self.at += LENGTH;
        Ok(())
    }

    fn number(&mut self) -> Result<(), Malformed> {
        if self.bytes[self.at] == b'-' {
            self.at += 1;
        }
        match self.bytes.get(self.at) {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.bytes.get(self.at) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    /// At least one digit.
    fn digits(&mut self) -> Result<(), Malformed> {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        if self.at == start { Err(Malformed) } else { Ok(()) }
    }

    /// Passes an escape whose backslash has been passed.
    fn escape(&mut self) -> Result<(), Malformed> {
        match self.bytes.get(self.at) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                let digits = self.bytes.get(self.at + 1..self.at + 5).ok_or(Malformed)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return Err(Malformed);
                }
                self.at += 5;
            }
            _ => return Err(Malformed),
        }
        Ok(())
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Result<(), Malformed> {
        if self.bytes.get(self.at) != Some(&byte) {
            return Err(Malformed);
        }
        self.at += 1;
        Ok(())
    }
}

impl<'a> Text<'a> {
    /// The text without escapes if it fits `space`; a longer one is no name anybody asks for and
    /// reads as empty.
    #[inline]
    pub(super) fn name<'s>(&self, space: &'s mut [u8; 40]) -> &'s [u8]
    where
        'a: 's,
    {
        if self.escaped { self.copy_name(space) } else { self.raw }
    }

    /// The text as it stands, with its escapes.
    #[inline]
    pub(super) const fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// Bytes of the text without escapes.
    #[inline]
    pub(super) fn len(&self) -> usize {
        if !self.escaped {
            return self.raw.len();
        }
        let mut length = 0;
        self.pieces(&mut |piece| length += piece.len());
        length
    }

    /// Whether there is no text.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// The text without escapes, piece by piece.
    pub(super) fn pieces(&self, piece: &mut impl FnMut(&[u8])) {
        let mut rest = self.raw;
        while let Some(stop) = memchr(b'\\', rest) {
            if stop > 0 {
                piece(&rest[..stop]);
            }
            let (character, used) = unescape(&rest[stop..]);
            let mut space = [0; 4];
            piece(character.encode_utf8(&mut space).as_bytes());
            rest = &rest[stop + used..];
        }
        if !rest.is_empty() {
            piece(rest);
        }
    }

    #[cold]
    fn copy_name<'s>(&self, space: &'s mut [u8; 40]) -> &'s [u8] {
        let mut length = 0;
        self.pieces(&mut |piece| {
            if let Some(free) = space.get_mut(length..length + piece.len()) {
                free.copy_from_slice(piece);
            }
            length += piece.len();
        });
        space.get(..length).unwrap_or_default()
    }
}

/// The top bit of each byte of `word` that is a quote or a backslash. Only the lowest mark is sure:
/// bytes above it may be marked without being either.
#[inline]
pub(super) fn mark_stops(word: u64) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const TOPS: u64 = u64::from_le_bytes([0x80; 8]);
    let quotes = word ^ u64::from_le_bytes([b'"'; 8]);
    let slashes = word ^ u64::from_le_bytes([b'\\'; 8]);
    let marks = (quotes.wrapping_sub(ONES) & !quotes) | (slashes.wrapping_sub(ONES) & !slashes);
    marks & TOPS
}

/// Where the first quote or backslash is.
#[inline]
fn find_stop(bytes: &[u8]) -> Option<usize> {
    /// Most strings of an event are shorter, and for them a call costs more than it saves.
    const SHORT: usize = 32;
    let mut at = 0;
    while at < SHORT
        && let Some(word) = bytes[at..].first_chunk()
    {
        let marks = mark_stops(u64::from_le_bytes(*word));
        if marks != 0 {
            return Some(at + (marks.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    memchr2(b'"', b'\\', &bytes[at..]).map(|stop| at + stop)
}

/// The character of the well-formed escape that starts here, and the escape's length.
fn unescape(bytes: &[u8]) -> (char, usize) {
    let simple = match bytes[1] {
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => {
            let high = code_unit(&bytes[2..]).unwrap_or(0);
            let low = match bytes.get(6..8) {
                Some(b"\\u") if (0xd800..0xdc00).contains(&high) => code_unit(&bytes[8..]),
                _ => None,
            };
            return match low {
                Some(low @ 0xdc00..0xe000) => {
                    let code = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                    (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 12)
                }
                _ => (char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER), 6),
            };
        }
        other => char::from(other),
    };
    (simple, 2)
}

/// The four hexadecimal digits here.
fn code_unit(bytes: &[u8]) -> Option<u32> {
    let mut unit = 0;
    for &byte in bytes.get(..4)? {
        unit = unit << 4 | char::from(byte).to_digit(16)?;
    }
    Some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(json: &str) -> bool {
        let mut cursor = Cursor::new(json.as_bytes());
        cursor.skip().and_then(|()| cursor.end()).is_ok()
    }

    #[test]
    fn the_grammar_is_checked() {
        for good in [
            "{}",
            "[]",
            " [ 1 , -0.5e+3 , 0 ] ",
            r#"{"a":{"b":[{}, []]},"c":null}"#,
            "true",
            r#""\u00e9\n\"""#,
            "-0",
            "1E9",
            r#"[[[["deep"]]]]"#,
            r#"{"":""}"#,
        ] {
            assert!(accepts(good), "{good}");
        }
        for bad in [
            "",
            "{",
            "[1,]",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "[1 2]",
            "{]",
            "[}",
            "tru",
            "01",
            "1.",
            "-",
            "+1",
            ".5",
            "1e",
            r#""\x""#,
            r#""\u12g4""#,
            "\"open",
            "{a:1}",
            "[]]",
            "nul",
            "{\"a\":1}}",
            "NaN",
            "[,1]",
            "{,}",
            r#"{"a":1 "b":2}"#,
            r#"[{"a":1]}"#,
        ] {
            assert!(!accepts(bad), "{bad}");
        }
    }

    #[test]
    fn nesting_is_bounded_without_recursion() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(accepts(&nested(128)));
        assert!(!accepts(&nested(130)));
        assert!(!accepts(&"[".repeat(1_000_000)));
    }

    #[test]
    fn escapes_count_what_they_stand_for() {
        let decode = |json: &str| {
            let text = Cursor::new(json.as_bytes()).string().expect("a string");
            let mut out = Vec::new();
            text.pieces(&mut |piece| out.extend_from_slice(piece));
            assert_eq!(out.len(), text.len());
            String::from_utf8(out).expect("UTF-8")
        };
        assert_eq!(decode(r#""a\n\t\"\\\/b""#), "a\n\t\"\\/b");
        assert_eq!(decode(r#""\u00e9\ud83d\ude00é""#), "é\u{1f600}é");
        assert_eq!(decode(r#""\ud83d x \ude00 \ud83d\u0041""#), "\u{fffd} x \u{fffd} \u{fffd}A");
    }

    #[test]
    fn counts_are_whole_numbers() {
        let count = |json: &str| Cursor::new(json.as_bytes()).count_or_skip();
        assert_eq!(count("12"), Ok(Some(12)));
        assert_eq!(count("12.00"), Ok(Some(12)));
        for not_a_count in ["-1", "1.5", "1e3", "null", "\"7\"", "[7]", "99999999999999999999"] {
            assert_eq!(count(not_a_count), Ok(None), "{not_a_count}");
        }
        assert_eq!(count("x"), Err(Malformed));
    }
}
