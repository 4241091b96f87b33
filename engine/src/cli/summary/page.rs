//! Lines of a fixed width and numbers as people write them.
//!
//! Everything that comes out is ASCII without control characters, because names come from files and
//! may hold anything. What the lines say is [`super`]'s.

pub(super) use onbeat_shared::counted::{counted as plural, grouped as group};

/// No line is longer, unless one word is.
pub(super) const WIDTH: usize = 100;
/// Where the text of a line begins, after its label.
const INDENT: usize = 13;

/// Lines of text with labels at the left.
#[derive(Default)]
pub(in crate::cli) struct Page {
    pub(in crate::cli) text: String,
}

impl Page {
    /// An empty line.
    pub(in crate::cli) fn blank(&mut self) {
        self.text.push('\n');
    }

    /// A line as it is.
    pub(super) fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// A label and words, wrapped behind it.
    pub(super) fn entry(&mut self, label: &str, words: &str) {
        self.wrapped(&format!("{label:<INDENT$}"), words);
    }

    /// Words, wrapped.
    pub(in crate::cli) fn paragraph(&mut self, words: &str) {
        self.wrapped("", words);
    }

    /// A shell's command behind `first`, in lines that the shell joins.
    pub(in crate::cli) fn command(&mut self, first: &str, command: &str) {
        self.broken(first, command, " \\");
    }

    /// Words behind `first`, wrapped.
    pub(in crate::cli) fn wrapped(&mut self, first: &str, words: &str) {
        self.broken(first, words, "");
    }

    /// Wraps; `joint` ends every line but the last.
    fn broken(&mut self, first: &str, words: &str, joint: &str) {
        let indent = first.len();
        let mut line = first.to_owned();
        for word in words.split_whitespace() {
            let word = ascii(word);
            if line.len() > indent && line.len() + 1 + word.len() + joint.len() > WIDTH {
                self.line(&(line + joint));
                line = " ".repeat(indent);
            }
            if line.len() > indent {
                line.push(' ');
            }
            line.push_str(&word);
        }
        self.line(&line);
    }
}

/// A word that any terminal shows: names come from files and may hold anything.
fn ascii(word: &str) -> String {
    let shown = |c: char| match c {
        'µ' => 'u',
        '−' => '-',
        c if c.is_ascii_graphic() => c,
        _ => '?',
    };
    word.chars().map(shown).collect()
}

/// A number with at least three digits and no more than it needs.
pub(super) fn number(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 1_000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    if decimals > 0 {
        return text;
    }
    let digits = text.trim_start_matches('-');
    let sign = &text[..text.len() - digits.len()];
    match digits.parse() {
        Ok(count) => format!("{sign}{}", group(count)),
        Err(_) => text,
    }
}

/// A share of counts.
pub(super) fn percent(part: u64, whole: u64) -> String {
    // Tenths of a per cent, rounded half up, in integers.
    let tenths = (u128::from(part) * 2_000 + u128::from(whole)) / (2 * u128::from(whole).max(1));
    format!("{}.{} %", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::{number, percent};

    #[test]
    fn numbers_are_written_for_people() {
        let shown = [0.0, 0.0004, 1.0, 9.9994, 12.345, 999.94, 1234.5, 1e7, -1234.4].map(number);
        assert_eq!(
            shown,
            ["0.000", "0.000", "1.000", "9.999", "12.35", "999.9", "1,234", "10,000,000", "-1,234"]
        );
        assert_eq!((percent(1, 3), percent(1, 1), percent(0, 0)), {
            ("33.3 %".to_owned(), "100.0 %".to_owned(), "0.0 %".to_owned())
        });
    }
}
