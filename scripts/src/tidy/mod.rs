//! `cargo x tidy`: the house style that rustfmt and clippy cannot see.
//!
//! Every check is a pure function from paths and text to problems, one file per subject; this file
//! reads the repository once and prints what they found as `path:line: what is wrong`. It does not
//! repair anything, and it looks at every text file of the tree, tracked or not, so that a new file
//! is judged before it is committed.

mod imports;
mod masked;
mod style;
mod text;
mod tree;

use std::path::Path;

use masked::Masked;

/// One text file of the repository: its path from the root with `/` between folders, and its text.
#[derive(Debug)]
struct File {
    path: String,
    text: String,
}

/// One thing to put right.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Problem {
    path: String,
    line: usize,
    words: String,
}

impl Problem {
    fn new(path: &str, line: usize, words: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, words: words.into() }
    }
}

/// Folders that hold nothing of ours, or what is meant to be odd: inputs of fuzz targets.
const SKIPPED_FOLDERS: &[&str] = &[".git", "target", "corpus"];

/// Entry point; takes no arguments.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    if !arguments.is_empty() {
        return Err("takes no arguments".to_owned());
    }
    let mut files = Vec::new();
    read_folder(root, "", &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let mut problems = check(&files);
    problems.extend(unlisted(&files));
    problems.sort();
    for Problem { path, line, words } in &problems {
        println!("{path}:{line}: {words}");
    }
    if problems.is_empty() {
        println!("tidy: {} files", files.len());
        return Ok(());
    }
    Err(format!("{} problems in {} files", problems.len(), files.len()))
}

/// Every check over every file.
fn check(files: &[File]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in files {
        text::check(file, &mut problems);
        tree::check_name(&file.path, &mut problems);
    }
    let rust: Vec<(&File, Masked)> = files
        .iter()
        .filter(|file| file.path.ends_with(".rs"))
        .map(|file| (file, Masked::new(&file.text)))
        .collect();
    for (file, masked) in &rust {
        style::check(file, masked, &mut problems);
    }
    tree::check_modules(&rust, &tree::named_roots(files), &mut problems);
    match files.iter().find(|file| file.path == imports::TABLE_FILE) {
        Some(file) => imports::check(file, &rust, &mut problems),
        None => problems.push(Problem::new(imports::TABLE_FILE, 1, "holds the import table")),
    }
    problems
}

/// Files with `unsafe` that the architecture does not list.
fn unlisted(files: &[File]) -> Vec<Problem> {
    let list = files.iter().find(|file| file.path == imports::TABLE_FILE);
    let list = list.map_or("", |file| file.text.as_str());
    let is_missing = |path: &&&str| !list.contains(&format!("`{path}`"));
    let problem = |path: &&str| {
        Problem::new(path, 1, format!("`unsafe` that {} does not list", imports::TABLE_FILE))
    };
    style::UNSAFE.iter().filter(is_missing).map(problem).collect()
}

/// Reads the text files below `root/folder`.
fn read_folder(root: &Path, folder: &str, files: &mut Vec<File>) -> Result<(), String> {
    let place = root.join(folder);
    let wrong = |error: std::io::Error| format!("could not read {}: {error}", place.display());
    for entry in std::fs::read_dir(&place).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        if entry.file_type().map_err(wrong)?.is_dir() {
            if !SKIPPED_FOLDERS.contains(&name.as_str()) {
                read_folder(root, &path, files)?;
            }
            continue;
        }
        let bytes = std::fs::read(entry.path()).map_err(wrong)?;
        // Pictures, fonts, traces and logs are not text.
        if let Some(text) = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')) {
            files.push(File { path, text });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_unsafe_are_listed() {
        let all: String =
            style::UNSAFE.iter().map(|path| format!("| `{path}`, this | x |\n")).collect();
        let file =
            |text: &str| [File { path: imports::TABLE_FILE.to_owned(), text: text.to_owned() }];
        assert_eq!(unlisted(&file(&all)), []);
        let missing = unlisted(&file(&all.replace("net/lent", "net/other")));
        assert_eq!(missing.len(), 1);
        assert_eq!(missing[0].path, "engine/src/net/lent.rs");
    }

    #[test]
    fn problems_of_every_subject_are_found_in_one_pass() {
        let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
        let header = "//! Holds what the test below needs; it promises nothing and does nothing.\n";
        let files = [
            file("ARCHITECTURE.md", "## Who may import whom\n\n| `cli` | all |\n| `wire` | - |\n"),
            file("engine/src/lib.rs", &format!("{header}pub mod cli;\npub mod wire;\n")),
            file("engine/src/cli.rs", header),
            file("engine/src/utils.rs", header),
            file("engine/src/wire/mod.rs", &format!("{header}use crate::cli;\nfn a() {{}} \n")),
        ];
        let mut problems = check(&files);
        problems.sort();
        let found: Vec<_> = problems.iter().map(|p| (p.path.as_str(), p.line)).collect();
        let expected = [
            ("engine/src/utils.rs", 1),    // banned name
            ("engine/src/utils.rs", 1),    // no row in the table
            ("engine/src/utils.rs", 1),    // no `mod utils;`
            ("engine/src/wire/mod.rs", 2), // import against the table
            ("engine/src/wire/mod.rs", 3), // trailing space
        ];
        assert_eq!(found, expected, "{problems:#?}");
    }
}
