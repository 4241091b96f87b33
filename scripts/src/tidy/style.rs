//! How one Rust file must look: header, size, columns, banned words, tests at the bottom.
//!
//! Nothing here looks at more than one file (see `tree` and `imports`). Prose is a reviewer's
//! business: this only checks that the header paragraph is there and is more than a name.

use super::masked::Masked;
use super::{File, Problem};

/// Longest file that is not a table.
const LINES_MAX: usize = 600;
/// Files that are flat lists and may be longer: one row more is not one idea more.
const TABLES: &[&str] = &["shared/src/export/columns.rs", "shared/src/log/record.rs"];
/// Longest line, as in `.rustfmt.toml`. rustfmt leaves long literals and comments alone: a literal
/// may be long, since breaking it makes it harder to find, a comment may not.
const COLUMNS_MAX: usize = 100;
/// Fewest letters in a header: less only repeats the file's name.
const HEADER_LETTERS_MIN: usize = 30;
/// Where printing is the job. Elsewhere a message belongs in a returned error or in the log.
const PRINTERS: &[&str] = &[
    "engine/src/cli/",
    "engine/src/main.rs",
    "viewer/src/main.rs",
    "scripts/",
    "benches/",
    "tests/",
    "engine/tests/",
    "viewer/tests/",
];

/// Where `unsafe` may be: what cannot be done otherwise, each with its `// SAFETY:` and a place in
/// the architecture's list.
pub(super) const UNSAFE: &[&str] = &[
    "engine/src/clock_state.rs",
    "engine/src/conductor/memory_node.rs",
    "engine/src/last_words.rs",
    "engine/src/net/lent.rs",
    "engine/src/net/socket.rs",
    "engine/src/replayer/realtime.rs",
    "engine/src/trace/mapped.rs",
    "engine/tests/counting/mod.rs",
    "tests/alloc.rs",
    "tests/fuzz/memory.rs",
];

pub(super) fn check(file: &File, masked: &Masked, problems: &mut Vec<Problem>) {
    let mut report = |line: usize, words: String| {
        problems.push(Problem::new(&file.path, line, words));
    };
    let lines = file.text.lines().count();
    if lines > LINES_MAX && !TABLES.contains(&file.path.as_str()) {
        report(1, format!("{lines} lines, at most {LINES_MAX}: split it by noun"));
    }
    if let Some(words) = header_problem(&file.text) {
        report(1, words);
    }
    for (index, (line, code)) in file.text.lines().zip(masked.code().lines()).enumerate() {
        let columns = columns_that_count(line, code);
        if columns > COLUMNS_MAX && !line.contains("https://") {
            report(index + 1, format!("{columns} columns, at most {COLUMNS_MAX}"));
        }
        // In pieces, so that this file passes its own check.
        if line.contains(concat!("FIX", "ME")) {
            report(
                index + 1,
                "unfinished work does not land: finish it or open an issue".to_owned(),
            );
        }
    }
    for word in ["dbg!", "todo!", "unimplemented!"] {
        for position in masked.positions(word) {
            report(masked.line_of(position), format!("`{word}` does not land"));
        }
    }
    if !UNSAFE.contains(&file.path.as_str()) {
        for position in masked.positions("unsafe") {
            report(masked.line_of(position), "`unsafe` outside the files named for it".to_owned());
        }
    }
    if !PRINTERS.iter().any(|place| file.path.starts_with(place)) {
        for word in ["println!", "eprintln!", "print!", "eprint!"] {
            for position in masked.positions(word) {
                let words = format!("`{word}` outside the command line: return it or log it");
                report(masked.line_of(position), words);
            }
        }
    }
    for (line, words) in tests_problems(masked) {
        report(line, words);
    }
}

/// The columns of a line without the insides of its literals; `code` is the line masked.
fn columns_that_count(line: &str, code: &str) -> usize {
    let columns = line.chars().count();
    let behind_code = line[code.trim_end().len()..].trim_start();
    if behind_code.starts_with("//") {
        return columns;
    }
    let blanked = |(place, letter): &(usize, char)| {
        *letter != ' ' && code.as_bytes().get(*place) == Some(&b' ')
    };
    columns - line.char_indices().filter(blanked).count()
}

/// What is wrong with the paragraph that opens the file.
fn header_problem(text: &str) -> Option<String> {
    let header: Vec<&str> =
        text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim).collect();
    let letters = header.iter().map(|line| line.chars().count()).sum::<usize>();
    if header.is_empty() {
        Some(
            "must open with a `//!` paragraph: why it exists, what it promises and does not do"
                .into(),
        )
    } else if letters < HEADER_LETTERS_MIN {
        Some("the header must say why the file exists, what it promises and does not do".into())
    } else {
        None
    }
}

/// Where an inline test module is followed by something else.
fn tests_problems(masked: &Masked) -> Vec<(usize, String)> {
    let code = masked.code();
    let mut problems = Vec::new();
    for (position, attribute) in code.match_indices("#[cfg(test)]") {
        let item = code[position + attribute.len()..].trim_start();
        let Some(name) = item.strip_prefix("mod ") else { continue };
        let Some(length) = name.find(['{', ';']) else { continue };
        if name.as_bytes()[length] == b';' {
            continue;
        }
        let open = code.len() - name.len() + length;
        let Some(close) = masked.closing_brace(open) else { continue };
        let behind = code[close + 1..].trim_start();
        if !behind.is_empty() && !behind.starts_with("#[cfg(test)]") {
            problems.push((masked.line_of(close + 1), "tests come last in a file".to_owned()));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str =
        "//! Holds what a test needs; promises nothing, and does nothing at all.\n";

    /// The problems of a file at `path` with a good header before `text`.
    fn problems_of(path: &str, text: &str) -> Vec<Problem> {
        let text = format!("{HEADER}{text}");
        let masked = Masked::new(&text);
        let mut problems = Vec::new();
        check(&File { path: path.to_owned(), text }, &masked, &mut problems);
        problems
    }

    fn words(path: &str, text: &str) -> String {
        let problems = problems_of(path, text);
        problems.iter().map(|p| format!("{}: {}\n", p.line, p.words)).collect()
    }

    #[test]
    fn a_good_file_has_no_problem() {
        let text = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n";
        assert_eq!(problems_of("engine/src/a.rs", text), []);
    }

    #[test]
    fn a_long_file_is_refused_unless_it_is_a_table() {
        let long = "// x\n".repeat(LINES_MAX);
        assert!(words("engine/src/a.rs", &long).contains("601 lines"));
        assert_eq!(words(TABLES[0], &long), "");
    }

    #[test]
    fn a_missing_or_thin_header_is_refused() {
        assert!(header_problem("fn main() {}\n").is_some());
        assert!(header_problem("// A comment.\nfn main() {}\n").is_some());
        assert!(header_problem("//! The main file.\nfn main() {}\n").is_some());
        assert_eq!(header_problem(HEADER), None);
    }

    #[test]
    fn a_long_line_is_refused_unless_it_is_a_literal_or_an_address() {
        let literal = format!("const A: &str = \"{}\";\n", "x".repeat(COLUMNS_MAX));
        assert_eq!(words("engine/src/a.rs", &literal), "");
        let code = format!("const {}: u8 = 1;\n", "X".repeat(COLUMNS_MAX));
        assert!(words("engine/src/a.rs", &code).contains("2: 115 columns"));
        let long = format!("// {}\n", "x".repeat(COLUMNS_MAX));
        assert!(words("engine/src/a.rs", &long).contains("2: 103 columns"));
        assert_eq!(words("engine/src/a.rs", &long.replacen("xx", "https://", 1)), "");
    }

    #[test]
    fn unfinished_work_is_refused() {
        assert!(words("a.rs", concat!("// FIX", "ME: later\n")).contains("2: unfinished"));
        for unfinished in [concat!("db", "g!"), concat!("to", "do!")] {
            let code = format!("fn a() {{\n    {unfinished}(1);\n}}\n");
            assert!(words("a.rs", &code).contains(&format!("3: `{unfinished}`")), "{unfinished}");
            assert_eq!(words("a.rs", &format!("// never {unfinished}\n")), "");
        }
    }

    #[test]
    fn only_the_command_line_prints() {
        assert!(words("engine/src/plan/mod.rs", "fn a() { println!() }\n").contains("println"));
        assert_eq!(words("engine/src/cli/mod.rs", "fn a() { println!() }\n"), "");
    }

    #[test]
    fn unsafe_is_kept_where_it_is_known() {
        let text = "fn a() { unsafe { b() } } // unsafe_code\n#[expect(unsafe_code)]\n";
        assert!(words("engine/src/plan/mod.rs", text).contains("2: `unsafe` outside"));
        assert_eq!(words("engine/src/net/lent.rs", text), "");
    }

    #[test]
    fn code_behind_the_tests_is_refused() {
        let text = "#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n\nfn a() {}\n";
        assert!(words("engine/src/a.rs", text).contains("5: tests come last"));
        let two = "#[cfg(test)]\nmod tests {\n}\n#[cfg(test)]\nmod more {\n}\n";
        assert_eq!(words("engine/src/a.rs", two), "");
        assert_eq!(words("engine/src/a.rs", "#[cfg(test)]\nmod properties;\nfn a() {}\n"), "");
    }
}
