//! Cuts the text of a filter into its signs, words and quoted texts, each with its place.
//!
//! Any text is cut somehow; the one thing refused here is a quotation that does not end.

use super::FilterError;

/// A piece of the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token<'a> {
    /// Where it begins, in bytes.
    pub place: usize,
    /// How long it is, in bytes.
    pub length: usize,
    /// What it is.
    pub kind: Kind<'a>,
}

/// What a piece is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind<'a> {
    /// A run of letters, digits and whatever has no meaning of its own.
    Word(&'a str),
    /// A text in quotes, without them.
    Quoted(String),
    /// A sign.
    Sign(&'static str),
}

/// Signs, longer ones first. `=` alone is taken for `==`, `&` for `&&`, `|` for `||`.
const SIGNS: [(&str, &str); 18] = [
    ("&&", "&&"),
    ("||", "||"),
    ("==", "=="),
    ("!=", "!="),
    ("<=", "<="),
    (">=", ">="),
    ("≤", "<="),
    ("≥", ">="),
    ("≠", "!="),
    ("<", "<"),
    (">", ">"),
    ("=", "=="),
    ("!", "!"),
    ("~", "~"),
    ("(", "("),
    (")", ")"),
    ("&", "&&"),
    ("|", "||"),
];

fn sign(rest: &str) -> Option<(usize, &'static str)> {
    let found = SIGNS.iter().copied().find(|(written, _)| rest.starts_with(written));
    found.map(|(written, means)| (written.len(), means))
}

/// Whether a letter ends a word.
pub(super) fn ends_word(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '"' | '\'') || {
        let mut room = [0; 4];
        sign(letter.encode_utf8(&mut room)).is_some()
    }
}

/// The pieces of a text.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, FilterError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(letter) = text[at..].chars().next() {
        let rest = &text[at..];
        if letter.is_whitespace() {
            at += letter.len_utf8();
            continue;
        }
        let (length, kind) = if let Some((length, means)) = sign(rest) {
            (length, Kind::Sign(means))
        } else if matches!(letter, '"' | '\'') {
            let (length, words) = quoted(rest, letter).ok_or_else(|| FilterError {
                place: at,
                length: rest.len(),
                words: format!("this quotation does not end: expected another {letter}"),
            })?;
            (length, Kind::Quoted(words))
        } else {
            let length = rest.find(ends_word).unwrap_or(rest.len());
            (length, Kind::Word(&rest[..length]))
        };
        tokens.push(Token { place: at, length, kind });
        at += length;
    }
    Ok(tokens)
}

/// A quotation at the start of a text: its length with both quotes, and what it says. `\` stands
/// before a quote or itself.
fn quoted(text: &str, quote: char) -> Option<(usize, String)> {
    let mut words = String::new();
    let mut letters = text.char_indices().skip(1).peekable();
    while let Some((at, letter)) = letters.next() {
        if letter == quote {
            return Some((at + letter.len_utf8(), words));
        }
        let escapes = |next: &(usize, char)| next.1 == quote || next.1 == '\\';
        match letters.next_if(|next| letter == '\\' && escapes(next)) {
            Some((_, escaped)) => words.push(escaped),
            None => words.push(letter),
        }
    }
    None
}
