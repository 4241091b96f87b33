//! What might be meant: near names for a message, and what can follow for whoever types.

use super::lexer::ends_word;
use crate::fields::{Field, Value};

/// Names longer than this are near to nothing.
const LONGEST_NAME: usize = 40;
/// Suggestions at once.
const SUGGESTIONS: usize = 8;

/// The field whose name is nearest to a word, if one is near.
pub(super) fn nearest_field(word: &str) -> Option<Field> {
    let names = Field::ALL.iter().flat_map(|&field| {
        let row = field.row();
        [row.name].into_iter().chain(row.others.iter().copied())
    });
    nearest(word, names).and_then(Field::named)
}

/// The candidate nearest to a word, if one is near: few letters differ, or it begins with it.
pub(super) fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_ascii_lowercase();
    let letters = word.chars().count();
    if letters == 0 || letters > LONGEST_NAME {
        return None;
    }
    let allowed = match letters {
        1..=2 => 1,
        3..=6 => 2,
        _ => 3,
    };
    let far = |name: &str| {
        let apart = distance(&word, name);
        // A beginning is near even if much is still to come.
        if letters >= 2 && name.starts_with(&word) { apart.min(1) } else { apart }
    };
    let near = names
        .map(|name| (far(name), name))
        .filter(|&(apart, name)| apart <= allowed && apart < name.chars().count().max(letters));
    near.min_by_key(|&(apart, _)| apart).map(|(_, name)| name)
}

/// How many letters must be added, dropped, changed or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = [vec![0; b.len() + 1], (0..=b.len()).collect(), vec![0; b.len() + 1]];
    for i in 1..=a.len() {
        rows[2][0] = i;
        for j in 1..=b.len() {
            let changed = rows[1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = changed.min(rows[1][j] + 1).min(rows[2][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[0][j - 2] + 1);
            }
            rows[2][j] = least;
        }
        rows.rotate_left(1);
    }
    rows[1][b.len()]
}

/// Something that can be typed next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// What replaces the word before the caret.
    pub insert: &'static str,
    /// What it is.
    pub about: &'static str,
}

/// Whether a letter stands between words, for whoever looks for the word before the caret.
#[must_use]
pub fn is_boundary(letter: char) -> bool {
    ends_word(letter)
}

/// What the word before the caret may become: fields, or, after `==` and `!=`, the words that the
/// field before can have. `before` is the text before that word.
#[must_use]
pub fn completions(before: &str, word: &str) -> Vec<Completion> {
    let (is_value, field) = compared(before);
    let begins = |name: &str| {
        name.len() >= word.len()
            && name.is_char_boundary(word.len())
            && name[..word.len()].eq_ignore_ascii_case(word)
            && name.len() > word.len()
    };
    if is_value {
        let Some(Value::Word(_, words)) = field.map(|field| field.row().value) else {
            return Vec::new();
        };
        let words = words().into_iter().filter(|name| begins(name));
        return words.take(SUGGESTIONS).map(|insert| Completion { insert, about: "" }).collect();
    }
    if word.is_empty() {
        return Vec::new();
    }
    let rows = Field::ALL.iter().map(|field| field.row());
    let fields = rows.filter_map(|row| {
        let mut names = [row.name].into_iter().chain(row.others.iter().copied());
        // By its main name if that fits, else by the other one that was typed.
        let insert = names.find(|name| begins(name))?;
        Some(Completion { insert, about: row.about })
    });
    fields.take(SUGGESTIONS).collect()
}

/// Whether a text ends in a comparison, and the field that is compared.
fn compared(before: &str) -> (bool, Option<Field>) {
    let before = before.trim_end();
    let left = before.trim_end_matches(['=', '!', '<', '>', '~', '≤', '≥', '≠']);
    if left.len() == before.len() || before.ends_with('!') {
        return (false, None);
    }
    let left = left.trim_end();
    let start = left
        .rfind(ends_word)
        .map_or(0, |at| at + left[at..].chars().next().map_or(1, char::len_utf8));
    (true, Field::named(&left[start..]))
}
