//! Which module of the engine may use which: the table in ARCHITECTURE.md, enforced.
//!
//! Cargo checks direction between crates only. Inside the engine the table under
//! [`TABLE_HEADING`] is the law: every `crate::module` path (and `super::` path that reaches the
//! crate's root) in code that ships must be allowed there. Tests may use anything; `error` and
//! `limits` are open to all. The table itself is checked too: every module has a row, every row a
//! module, and every permission a use, so that it stays a true map.

use std::collections::{BTreeMap, HashSet};

use super::masked::Masked;
use super::{File, Problem, tree};

/// Where the table is.
pub(super) const TABLE_FILE: &str = "ARCHITECTURE.md";
/// The heading above it.
const TABLE_HEADING: &str = "## Who may import whom";
/// The crate the table speaks about.
const SOURCE: &str = "engine/src/";
/// Modules that everybody may use.
const OPEN_TO_ALL: &[&str] = &["error", "limits"];

/// Module name → names it may use; `None` means all of them.
type Table = BTreeMap<String, (usize, Option<Vec<String>>)>;

pub(super) fn check(architecture: &File, files: &[(&File, Masked)], problems: &mut Vec<Problem>) {
    let table = parse(&architecture.text);
    if table.is_empty() {
        let words = format!("no import table under `{TABLE_HEADING}`");
        problems.push(Problem::new(TABLE_FILE, 1, words));
        return;
    }
    let mut seen = HashSet::new();
    let mut used_by = HashSet::new();
    for (file, masked) in files {
        let Some(inside) = file.path.strip_prefix(SOURCE) else { continue };
        let module = module_of(inside);
        if module == "lib" || module == "main" {
            continue;
        }
        seen.insert(module);
        let Some((_, allowed)) = table.get(module) else {
            let words = format!("module `{module}` has no row in {TABLE_FILE}'s import table");
            problems.push(Problem::new(&file.path, 1, words));
            continue;
        };
        let Some(allowed) = allowed else { continue };
        if tree::is_test_only(files, &file.path) {
            continue;
        }
        for (line, used) in uses(inside, masked) {
            let open = used == module || OPEN_TO_ALL.contains(&used.as_str());
            used_by.insert((module, used.clone()));
            if !open && table.contains_key(&used) && !allowed.contains(&used) {
                let words = format!("`{module}` may not use `{used}` ({TABLE_FILE}, import table)");
                problems.push(Problem::new(&file.path, line, words));
            }
        }
    }
    for (module, (line, allowed)) in &table {
        if !seen.contains(module.as_str()) {
            let words = format!("the import table names `{module}`, which does not exist");
            problems.push(Problem::new(TABLE_FILE, *line, words));
            continue;
        }
        for name in allowed.iter().flatten() {
            if !used_by.contains(&(module.as_str(), name.clone())) {
                let words = format!("`{module}` does not use `{name}`: take it off the table");
                problems.push(Problem::new(TABLE_FILE, *line, words));
            }
        }
    }
}

/// Reads the table: `| names | may use | … |`, names in back quotes, `all` for no limit.
fn parse(text: &str) -> Table {
    let mut table = Table::new();
    let lines = text.lines().enumerate().skip_while(|(_, line)| line.trim() != TABLE_HEADING);
    for (index, line) in lines.skip(1).take_while(|(_, line)| !line.starts_with("## ")) {
        let mut cells = line.trim().trim_start_matches('|').split('|');
        let (Some(names), Some(may_use)) = (cells.next(), cells.next()) else { continue };
        let allowed = (may_use.trim() != "all").then(|| quoted(may_use));
        for name in quoted(names) {
            table.insert(name, (index + 1, allowed.clone()));
        }
    }
    table
}

/// The words in back quotes.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// `wire/sse.rs` → `wire`, `clock.rs` → `clock`.
fn module_of(inside: &str) -> &str {
    inside.split('/').next().unwrap_or_default().trim_end_matches(".rs")
}

/// How many `super::` lead from a file's own module to the crate's root.
fn depth_of(inside: &str) -> usize {
    inside.trim_end_matches(".rs").trim_end_matches("/mod").split('/').count()
}

/// The top-level modules that code in a file refers to, with lines; tests are left out.
fn uses(inside: &str, masked: &Masked) -> Vec<(usize, String)> {
    let tests = test_spans(masked);
    let code = masked.code();
    let up = vec!["super"; depth_of(inside)].join("::");
    let mut found = Vec::new();
    for root in ["crate", up.as_str()] {
        for position in masked.positions(root) {
            let in_tests = tests.iter().any(|(start, end)| (*start..=*end).contains(&position));
            let Some(path) = code[position + root.len()..].trim_start().strip_prefix("::") else {
                continue;
            };
            let before = code[..position].trim_end();
            // `super::super::x` is also found at its second `super`, which is not the root.
            if in_tests || before.ends_with("::") {
                continue;
            }
            let line = masked.line_of(position);
            found.extend(first_names(path).into_iter().map(|name| (line, name)));
        }
    }
    found
}

/// The first name of a path, or of every path of a `{a::b, c}` group.
fn first_names(path: &str) -> Vec<String> {
    let path = path.trim_start();
    let is_name = |letter: char| letter == '_' || letter.is_ascii_alphanumeric();
    let name = |text: &str| -> String { text.chars().take_while(|c| is_name(*c)).collect() };
    let Some(group) = path.strip_prefix('{') else { return vec![name(path)] };
    let mut names = vec![name(group.trim_start())];
    let mut depth = 1_usize;
    for (position, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 1 => break,
            '}' => depth -= 1,
            ',' if depth == 1 => names.push(name(group[position + 1..].trim_start())),
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// First and last byte of every item under `#[cfg(test)]` that has braces.
fn test_spans(masked: &Masked) -> Vec<(usize, usize)> {
    let code = masked.code();
    code.match_indices("#[cfg(test)]")
        .filter_map(|(start, _)| {
            let length = code[start..].find(['{', ';'])?;
            let end = start + length;
            let braces = code.as_bytes()[end] == b'{';
            Some((start, if braces { masked.closing_brace(end)? } else { end }))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "# A\n\n## Who may import whom\n\n| module | may use | why |\n\
        |---|---|---|\n| `clock`, `wire` | - | |\n| `net` | `wire`, `clock` | |\n\
        | `cli` | all | |\n\n## Next\n| `not` | `this` |\n";

    /// What `net` must use for the table to be true.
    const ALL: &str = "use crate::{wire, clock};";

    fn words(files: &[(&str, &str)]) -> Vec<String> {
        let architecture = File { path: TABLE_FILE.to_owned(), text: TABLE.to_owned() };
        let files: Vec<File> = files
            .iter()
            .map(|(path, text)| File { path: (*path).to_owned(), text: (*text).to_owned() })
            .collect();
        let masked: Vec<_> = files.iter().map(|file| (file, Masked::new(&file.text))).collect();
        let mut problems = Vec::new();
        check(&architecture, &masked, &mut problems);
        problems.iter().map(|p| format!("{}:{}: {}", p.path, p.line, p.words)).collect()
    }

    /// A tree in which every row of the table has its module.
    fn tree<'a>(net: &'a str, sse: &'a str) -> [(&'a str, &'a str); 5] {
        [
            ("engine/src/lib.rs", "pub mod net;"),
            ("engine/src/clock.rs", ""),
            ("engine/src/net/mod.rs", net),
            ("engine/src/wire/sse.rs", sse),
            ("engine/src/cli/mod.rs", "use crate::{net, wire, clock};"),
        ]
    }

    #[test]
    fn what_the_table_allows_passes() {
        let net = "use crate::wire::A;\nuse crate::{clock::{B, C}, limits};\n// crate::cli\n";
        let sse = "use super::Head;\nuse crate::error::E;\n\
            #[cfg(test)]\nmod tests {\n    use crate::cli;\n}\n";
        assert_eq!(words(&tree(net, sse)), [] as [String; 0]);
    }

    #[test]
    fn what_it_does_not_allow_is_found_however_it_is_spelled() {
        let table = [
            ("use crate::cli::A;", 1),
            ("use crate::{\n    wire::{A, B},\n    cli::C,\n};", 1),
            ("fn a() {\n    crate::cli::run();\n}", 2),
            ("use super::cli::A;", 1),
        ];
        for (net, line) in table {
            let expected = format!("engine/src/net/mod.rs:{line}: `net` may not use `cli`");
            let found = words(&tree(&format!("{net}\n{ALL}"), ""));
            assert!(found.len() == 1 && found[0].starts_with(&expected), "{net}: {found:?}");
        }
        let found = words(&tree(ALL, "use super::super::net::A;"));
        assert!(found[0].contains("`wire` may not use `net`"), "{found:?}");
    }

    #[test]
    fn a_module_without_a_row_and_a_row_without_a_module_are_found() {
        let found = words(&[("engine/src/stray.rs", "")]);
        assert!(found[0].contains("`stray` has no row"), "{found:?}");
        assert_eq!(found.len(), 5, "and four rows have no module: {found:?}");
    }

    #[test]
    fn a_permission_that_nobody_uses_is_found() {
        let found = words(&tree("use crate::wire;", ""));
        let expected = "ARCHITECTURE.md:8: `net` does not use `clock`: take it off the table";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn a_missing_table_is_found() {
        assert!(parse("# Nothing here\n").is_empty());
        assert_eq!(parse(TABLE).keys().collect::<Vec<_>>(), ["cli", "clock", "net", "wire"]);
    }
}
