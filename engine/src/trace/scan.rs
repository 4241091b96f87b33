//! Finds the raw text of a top-level value in a line of JSON.
//!
//! A typed parser hands out `f64`s, but `61.114` is no binary fraction and a message should repeat
//! what stands in the file, so the text itself is wanted. The scan trusts nothing: on a line that
//! is not an object it stops early, it never panics, and it decides nothing about validity (the
//! parser in `row` does).

use std::borrow::Cow;

/// The top-level members of an object, as far as the text can be followed.
#[derive(Clone, Debug)]
pub(crate) struct Members<'a> {
    line: &'a [u8],
    at: usize,
}

/// One member: the text between the quotes of its key, and the text of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member<'a> {
    /// Escapes are not undone.
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
}

impl<'a> Members<'a> {
    /// Scans a line; one that does not start with `{` has no members.
    pub(crate) fn of(line: &'a [u8]) -> Self {
        let at = if line.first() == Some(&b'{') { 1 } else { line.len() };
        Self { line, at }
    }

    /// The raw value of the last member called `name`: the one a parser keeps.
    pub(crate) fn last_value(self, name: &str) -> Option<&'a [u8]> {
        self.filter(|member| member.is_called(name)).last().map(|member| member.value)
    }

    /// The text of the object without its members called `name`; every other byte stays.
    pub(crate) fn without(mut self, name: &str) -> Cow<'a, [u8]> {
        let line = self.line;
        let mut kept: Vec<&[u8]> = Vec::new();
        let mut cut = false;
        let mut from = self.at;
        while let Some(member) = self.next() {
            if member.is_called(name) {
                cut = true;
            } else {
                kept.push(&line[from..self.at]);
            }
            from = self.at;
        }
        if !cut {
            return Cow::Borrowed(line);
        }
        let mut text = b"{".to_vec();
        for (place, member) in kept.into_iter().enumerate() {
            // Each but the object's first member begins with the comma before it.
            let member = if place == 0 { after_comma(member) } else { member };
            text.extend_from_slice(member);
        }
        text.extend_from_slice(&line[from..]);
        Cow::Owned(text)
    }

    fn blanks(&mut self) {
        while self.line.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    /// Steps over a string whose opening quote is here; gives the text between the quotes.
    fn string(&mut self) -> Option<&'a [u8]> {
        if self.line.get(self.at) != Some(&b'"') {
            return None;
        }
        let start = self.at + 1;
        let mut at = start;
        loop {
            match self.line.get(at)? {
                b'"' => break,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        self.at = at + 1;
        self.line.get(start..at)
    }

    fn value(&mut self) -> Option<&'a [u8]> {
        let start = self.at;
        let mut depth = 0_usize;
        loop {
            match self.line.get(self.at) {
                Some(b'"') => {
                    self.string()?;
                    continue;
                }
                Some(b'{' | b'[') => depth += 1,
                Some(b'}' | b']' | b',') if depth == 0 => break,
                Some(b'}' | b']') => depth -= 1,
                Some(_) => {}
                None => break,
            }
            self.at += 1;
        }
        Some(self.line[start..self.at].trim_ascii())
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = Member<'a>;

    fn next(&mut self) -> Option<Member<'a>> {
        self.blanks();
        if self.line.get(self.at) == Some(&b',') {
            self.at += 1;
            self.blanks();
        }
        let key = self.string()?;
        self.blanks();
        if self.line.get(self.at) != Some(&b':') {
            return None;
        }
        self.at += 1;
        self.blanks();
        Some(Member { key, value: self.value()? })
    }
}

impl Member<'_> {
    /// Whether the key is `name`, however it is escaped.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        if !self.key.contains(&b'\\') {
            return self.key == name.as_bytes();
        }
        let quoted = [b"\"", self.key, b"\""].concat();
        serde_json::from_slice::<String>(&quoted).is_ok_and(|key| key == name)
    }
}

/// A member's text without the comma before it.
fn after_comma(member: &[u8]) -> &[u8] {
    let trimmed = member.trim_ascii_start();
    trimmed.strip_prefix(b",").unwrap_or(member)
}

/// A text of the file as a message repeats it: at most 40 characters, control characters escaped.
pub(crate) fn shown(text: &[u8]) -> String {
    const CHARACTERS_MAX: usize = 40;
    let text = String::from_utf8_lossy(&text[..text.len().min(4 * CHARACTERS_MAX)]);
    let mut shown: String = text.chars().take(CHARACTERS_MAX).flat_map(plain).collect();
    if text.chars().count() > CHARACTERS_MAX {
        shown.push('…');
    }
    shown
}

fn plain(character: char) -> impl Iterator<Item = char> {
    let control = character.is_control();
    let escaped = control.then(|| character.escape_default());
    escaped.into_iter().flatten().chain((!control).then_some(character))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, proptest};

    use super::*;

    fn members(line: &str) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Members::of(line.as_bytes()).map(|member| (text(member.key), text(member.value))).collect()
    }

    #[test]
    fn a_member_is_cut_out_and_nothing_else_changes() {
        for (line, expected) in [
            (r#"{"t":1, "a" : [1,"t"],"b":2 }"#, r#"{ "a" : [1,"t"],"b":2 }"#),
            (r#"{"a":1,"t":{"t":2},"b":3}"#, r#"{"a":1,"b":3}"#),
            (r#"{"a":{"t":1} ,"t":2}"#, r#"{"a":{"t":1}}"#),
            (r#"{"t":2}"#, "{}"),
            (r#"{"\u0074":2,"t":3,"a":1}"#, r#"{"a":1}"#),
            (r#"{"a": 1}"#, r#"{"a": 1}"#),
        ] {
            let text = Members::of(line.as_bytes()).without("t");
            let text = std::str::from_utf8(&text).expect("UTF-8");
            assert!(serde_json::from_str::<serde_json::Value>(text).is_ok(), "{line} → {text}");
            let value = |text| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
            assert_eq!(value(text), value(expected), "{line} → {text}");
        }
        let text = Members::of(br#"{"x" :1.50,"t":1, "y":"\u00e9"}"#).without("t");
        assert_eq!(&*text, br#"{"x" :1.50, "y":"\u00e9"}"#);
    }

    #[test]
    fn values_come_as_they_stand() {
        let found =
            members(r#"{ "a" : 61.1140 , "b":{"a":[1,"}]"]},"c":"x\",y" ,"d":[],"e":null}"#);
        let expected = [
            ("a", "61.1140"),
            ("b", r#"{"a":[1,"}]"]}"#),
            ("c", r#""x\",y""#),
            ("d", "[]"),
            ("e", "null"),
        ];
        let expected: Vec<(String, String)> =
            expected.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_last_of_two_counts_and_nested_ones_do_not() {
        let line = br#"{"t":1,"x":{"t":9},"\u0074":2.50}"#;
        assert_eq!(Members::of(line).last_value("t"), Some(&b"2.50"[..]));
        assert_eq!(Members::of(line).last_value("u"), None);
    }

    #[test]
    fn torn_lines_end_early() {
        assert_eq!(members(r#"{"a": 1, "b"#), [("a".to_owned(), "1".to_owned())]);
        assert!(members("[1,2]").is_empty());
        assert!(members(r#"{"a"#).is_empty());
        assert_eq!(members(r#"{"a":NaN}"#), [("a".to_owned(), "NaN".to_owned())]);
    }

    #[test]
    fn shown_text_is_short_and_plain() {
        assert_eq!(shown(b"a\x1b[31m\n"), "a\\u{1b}[31m\\n");
        assert_eq!(shown(&[b'x'; 100]).chars().count(), 41);
    }

    proptest! {
        #[test]
        fn no_line_makes_the_scan_panic(line in prop::collection::vec(any::<u8>(), 0..80)) {
            let _count = Members::of(&line).count();
            let mut object = b"{\"a\":".to_vec();
            object.extend_from_slice(&line);
            let _value = Members::of(&object).last_value("a");
            let _shown = shown(&line);
        }
    }
}
