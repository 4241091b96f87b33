//! Words that others wrote, as a message may repeat them: names of files, of models, of columns,
//! and what servers say.
//!
//! A terminal obeys control sequences, and a reader believes lines, so neither may come from a file
//! or a server: what is no plain character is written as an escape, and what is long is cut. What
//! is stored or sent is never changed, only what is shown.

use std::borrow::Cow;
use std::path::Path;

/// Most characters of a foreign text that are shown.
pub const CHARACTERS_MAX: usize = 200;

/// A foreign text on one line, at most [`CHARACTERS_MAX`] characters of it.
#[must_use]
pub fn shown(text: &str) -> String {
    let mut start = text;
    let mut cut = "";
    if let Some((end, _)) = text.char_indices().nth(CHARACTERS_MAX) {
        (start, cut) = (&text[..end], "…");
    }
    let mut shown: String = start.chars().flat_map(escaped).collect();
    shown.push_str(cut);
    shown
}

/// A path on one line; of a long one the end, which says more.
#[must_use]
pub fn shown_path(path: &Path) -> String {
    let text = path.to_string_lossy();
    let beyond = text.chars().count().saturating_sub(CHARACTERS_MAX);
    let cut = if beyond > 0 { "…" } else { "" };
    let rest = text.chars().skip(beyond).flat_map(escaped);
    cut.chars().chain(rest).collect()
}

/// Words of ours that may hold foreign ones: whole, with their lines, and nothing that a terminal
/// obeys. What prints messages calls it last, whatever was done before.
#[must_use]
pub fn printable(words: &str) -> Cow<'_, str> {
    let odd = |character: char| character != '\n' && is_odd(character);
    if !words.contains(odd) {
        return Cow::Borrowed(words);
    }
    let escape = |character| {
        let (plain, escape) = match odd(character) {
            true => (None, Some(character.escape_default())),
            false => (Some(character), None),
        };
        plain.into_iter().chain(escape.into_iter().flatten())
    };
    Cow::Owned(words.chars().flat_map(escape).collect())
}

fn escaped(character: char) -> impl Iterator<Item = char> {
    let (plain, escape) = match is_odd(character) {
        true => (None, Some(character.escape_default())),
        false => (Some(character), None),
    };
    plain.into_iter().chain(escape.into_iter().flatten())
}

/// Whether a terminal does something else with it than to show it: controls, ends of lines, and
/// marks that turn the direction of what follows.
fn is_odd(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_a_terminal_obeys_is_shown() {
        let text = "a\u{1b}[31mb\r\nc\u{202e}d\u{9b}é✓";
        assert_eq!(shown(text), "a\\u{1b}[31mb\\r\\nc\\u{202e}d\\u{9b}é✓");
        assert_eq!(shown_path(Path::new("x/\u{7}y")), "x/\\u{7}y");
        assert_eq!(printable("one\ntwo\t\u{1b}c"), "one\ntwo\\t\\u{1b}c");
        assert!(matches!(printable("caf\u{e9}\n"), Cow::Borrowed("caf\u{e9}\n")));
    }

    #[test]
    fn what_is_long_is_cut() {
        let whole = "é".repeat(CHARACTERS_MAX);
        assert_eq!(shown(&whole), whole);
        assert_eq!(shown(&format!("{whole}x")), format!("{whole}…"));
        let path = format!("{}/end", "x".repeat(5_000));
        let cut = shown_path(Path::new(&path));
        assert!(cut.starts_with("…x") && cut.ends_with("x/end"), "{cut}");
        assert_eq!(cut.chars().count(), CHARACTERS_MAX + 1);
    }
}
