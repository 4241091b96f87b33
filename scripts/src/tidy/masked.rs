//! Rust source with comments and literals blanked out, so that checks see code and only code.
//!
//! Line breaks and byte positions stay as they are: a position in the masked text is the position
//! in the file. It knows Rust's nested comments, raw strings and the difference between a character
//! and a lifetime; it does not parse anything beyond that.

/// Source text in which every comment and the inside of every literal is spaces.
#[derive(Debug)]
pub(super) struct Masked {
    code: String,
}

impl Masked {
    pub(super) fn new(text: &str) -> Self {
        let mut masker = Masker { bytes: text.as_bytes(), at: 0, code: Vec::new() };
        while masker.at < masker.bytes.len() {
            masker.step();
        }
        let code = String::from_utf8(masker.code).expect("literals are blanked whole, as spaces");
        Self { code }
    }

    pub(super) fn code(&self) -> &str {
        &self.code
    }

    /// The 1-based line of a byte position.
    pub(super) fn line_of(&self, position: usize) -> usize {
        1 + self.code.as_bytes()[..position].iter().filter(|byte| **byte == b'\n').count()
    }

    /// Where the `{` at `open` is closed, if it is.
    pub(super) fn closing_brace(&self, open: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for (offset, byte) in self.code.bytes().enumerate().skip(open) {
            match byte {
                b'{' => depth += 1,
                b'}' if depth == 1 => return Some(offset),
                b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        None
    }

    /// Byte positions of `word` where it stands on its own and not inside a longer name.
    pub(super) fn positions<'a>(&'a self, word: &'a str) -> impl Iterator<Item = usize> + 'a {
        let is_name = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
        self.code.match_indices(word).map(|(position, _)| position).filter(move |position| {
            let code = self.code.as_bytes();
            let before = position.checked_sub(1).map(|before| code[before]);
            let after = code.get(position + word.len());
            let last_is_name = word.bytes().last().is_some_and(is_name);
            !(before.is_some_and(is_name) || last_is_name && after.copied().is_some_and(is_name))
        })
    }
}

struct Masker<'a> {
    bytes: &'a [u8],
    at: usize,
    code: Vec<u8>,
}

impl Masker<'_> {
    /// Consumes one comment, literal, name or other byte.
    fn step(&mut self) {
        let rest = &self.bytes[self.at..];
        match rest[0] {
            b'/' if rest.starts_with(b"//") => {
                let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                self.blank(end);
            }
            b'/' if rest.starts_with(b"/*") => self.blank(block_comment(rest)),
            b'"' => self.literal(1, quoted(rest, b'"')),
            b'\'' => match character(rest) {
                Some(end) => self.literal(1, end),
                None => self.keep(1),
            },
            letter if letter == b'_' || letter.is_ascii_alphanumeric() => self.name(),
            _ => self.keep(1),
        }
    }

    /// Consumes a name, and the string behind it when the name is a literal's prefix.
    fn name(&mut self) {
        let rest = &self.bytes[self.at..];
        let is_name = |byte: &u8| *byte == b'_' || byte.is_ascii_alphanumeric();
        let length = rest.iter().position(|byte| !is_name(byte)).unwrap_or(rest.len());
        let (name, behind) = rest.split_at(length);
        let hashes = behind.iter().take_while(|byte| **byte == b'#').count();
        let raw = matches!(name, b"r" | b"br" | b"cr") && behind.get(hashes) == Some(&b'"');
        self.keep(length);
        if raw {
            self.literal(hashes + 1, raw_string(behind, hashes));
        }
    }

    /// Keeps the literal's opening and closing byte and blanks what is between.
    fn literal(&mut self, opening: usize, length: usize) {
        self.keep(opening);
        self.blank(length.saturating_sub(opening + 1));
        self.keep(usize::from(length > opening));
    }

    fn keep(&mut self, length: usize) {
        let end = (self.at + length).min(self.bytes.len());
        self.code.extend(
            self.bytes[self.at..end].iter().map(|byte| if byte.is_ascii() { *byte } else { b' ' }),
        );
        self.at = end;
    }

    fn blank(&mut self, length: usize) {
        let end = (self.at + length).min(self.bytes.len());
        let blank = |byte: &u8| if *byte == b'\n' { b'\n' } else { b' ' };
        self.code.extend(self.bytes[self.at..end].iter().map(blank));
        self.at = end;
    }
}

/// Length of the block comment at the start of `text`; comments nest.
fn block_comment(text: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// Length of the literal at the start of `text`, closed by an unescaped `quote`.
fn quoted(text: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// Length of the raw string at the start of `text`, which opens with `hashes` and a quote.
fn raw_string(text: &[u8], hashes: usize) -> usize {
    let mut closing = vec![b'"'];
    closing.resize(hashes + 1, b'#');
    let inside = &text[hashes + 1..];
    let found = inside.windows(closing.len()).position(|window| window == closing);
    found.map_or(text.len(), |position| hashes + 1 + position + closing.len())
}

/// Length of the character literal at the start of `text`; `None` for a lifetime or label.
fn character(text: &[u8]) -> Option<usize> {
    if text.get(1) == Some(&b'\\') {
        return Some(quoted(text, b'\''));
    }
    // One character of up to four bytes, then the closing quote.
    let width = (1..=4).find(|width| {
        text.get(1..1 + width).is_some_and(|bytes| std::str::from_utf8(bytes).is_ok())
    })?;
    (text.get(1 + width) == Some(&b'\'')).then_some(width + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_in_place() {
        let table = [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            (r#"f("x\"y", z)"#, r#"f("    ", z)"#),
            ("r#\"x\"y\"# z", "r#\"    # z"),
            ("'x' 'a: &'b ' '", "' ' 'a: &'b ' '"),
            (r"'\'' '\u{7d}' x", r"'  ' '      ' x"),
            ("b\"{\" b'{' br\"{\"", "b\" \" b' ' br\" \""),
            ("\"\u{e9}\"x", "\"  \"x"),
        ];
        for (text, expected) in table {
            assert_eq!(Masked::new(text).code(), expected, "of {text}");
            assert_eq!(text.len(), expected.len(), "positions stay, in {text}");
        }
    }

    #[test]
    fn an_unclosed_literal_ends_with_the_file() {
        for text in ["\"abc", "/* abc", "r#\"abc", "'\\", "b'", "\"\\"] {
            assert_eq!(Masked::new(text).code().len(), text.len(), "of {text}");
        }
    }

    #[test]
    fn words_are_found_only_on_their_own() {
        let masked = Masked::new("line!(x); my_line!(x); crate::a; crates::b // line!");
        assert_eq!(masked.positions("line!").collect::<Vec<_>>(), [0]);
        assert_eq!(masked.positions("crate").collect::<Vec<_>>(), [23]);
    }

    #[test]
    fn braces_are_matched_outside_literals() {
        let masked = Masked::new("mod t { fn a() { '}'; \"}\" } } fn b() {}");
        assert_eq!(masked.closing_brace(6), Some(28));
        assert_eq!(masked.closing_brace(15), Some(26));
    }
}
