//! What no text file of the repository may hold: machine paths, odd characters, stray whitespace.
//!
//! A path of somebody's machine, an invisible character or an emoji is a mistake wherever it
//! stands, so this looks at every text file, not only at Rust. Line lengths and headers are
//! `style`'s.

use super::{File, Problem};

/// Text that only makes sense on one machine. In pieces, so that this file passes its own check.
const MACHINE_PATHS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/")];

/// Characters beyond ASCII that prose and pictures may use, as inclusive ranges.
const EXPECTED: &[(char, char)] = &[
    ('\u{a1}', '\u{ac}'), // Latin-1 signs, without the no-break space and the soft hyphen
    ('\u{ae}', '\u{ff}'), // more of them and Latin letters with accents
    ('\u{391}', '\u{3c9}'), // Greek letters
    ('\u{2010}', '\u{2026}'), // dashes, quotation marks, dots
    ('\u{2070}', '\u{209c}'), // superscripts and subscripts
    ('\u{2190}', '\u{22ff}'), // arrows and mathematical operators
    ('\u{2500}', '\u{25ff}'), // box drawing, blocks, geometric shapes
    ('\u{2713}', '\u{2717}'), // check marks and crosses
];

pub(super) fn check(file: &File, problems: &mut Vec<Problem>) {
    let mut report = |line: usize, words: String| {
        problems.push(Problem::new(&file.path, line, words));
    };
    for (index, line) in file.text.split('\n').enumerate() {
        let number = index + 1;
        for path in MACHINE_PATHS.iter().filter(|path| line.contains(**path)) {
            report(number, format!("`{path}` is a path of one machine"));
        }
        if let Some(odd) = line.chars().find(|letter| !is_expected(*letter)) {
            let code = u32::from(odd);
            report(number, format!("unexpected character U+{code:04X}; in code write an escape"));
        }
        if line.ends_with([' ', '\t']) {
            report(number, "space at the end of the line".to_owned());
        }
    }
    if !file.text.is_empty() && !file.text.ends_with('\n') {
        report(file.text.lines().count(), "the last line must end with a line break".to_owned());
    }
}

fn is_expected(letter: char) -> bool {
    match letter {
        ' '..='~' => true,
        _ => EXPECTED.iter().any(|(first, last)| (*first..=*last).contains(&letter)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        let mut problems = Vec::new();
        check(&File { path: "README.md".to_owned(), text: text.to_owned() }, &mut problems);
        problems.iter().map(|p| format!("{}: {}\n", p.line, p.words)).collect()
    }

    #[test]
    fn prose_with_signs_and_pictures_is_fine() {
        assert_eq!(words("\u{2264} 70 \u{b5}s \u{2192} \u{201c}x\u{201d} \u{25b6} \u{2713}\n"), "");
        assert_eq!(words(""), "");
    }

    #[test]
    fn a_machine_path_is_found() {
        for path in MACHINE_PATHS {
            assert!(words(&format!("x\nsee {path}x\n")).starts_with("2: "), "{path}");
        }
        assert_eq!(words("a network/ and a framework/ are words\n"), "");
    }

    #[test]
    fn odd_characters_are_found() {
        for odd in ["\u{feff}a", "a\u{a0}b", "\u{200b}", "\u{202e}", "\u{1f600}", "a\tb", "a\r"] {
            assert!(words(&format!("{odd}\n")).contains("unexpected"), "{odd:?}");
        }
    }

    #[test]
    fn stray_whitespace_is_found() {
        assert!(words("a \n").contains("1: space at the end"));
        assert!(words("a\nb").contains("2: the last line"));
    }
}
