//! Where files may be: banned names, one module style, no file that is never compiled.
//!
//! Works on paths and on `mod` declarations; what is inside a module is `style`'s and `imports`'.

use std::collections::HashSet;

use super::masked::Masked;
use super::{File, Problem};

/// Names that say nothing about what is inside and so become drawers.
const BANNED_STEMS: &[&str] = &["utils", "util", "helpers", "helper", "common", "misc"];
/// Names of files that are the root of a crate, wherever they are: Cargo finds them, no `mod` does.
/// Other roots are named in their manifest.
const CRATE_ROOTS: &[&str] = &["lib.rs", "main.rs", "build.rs"];

/// Reports a folder or file whose name says nothing.
pub(super) fn check_name(path: &str, problems: &mut Vec<Problem>) {
    for part in path.split('/') {
        let stem = part.split('.').next().unwrap_or_default();
        if BANNED_STEMS.contains(&stem) {
            problems.push(Problem::new(path, 1, format!("`{stem}` says nothing: name the noun")));
        }
    }
}

/// The files that the manifests among `files` name as roots of a library, program, test or bench.
pub(super) fn named_roots(files: &[File]) -> HashSet<String> {
    let mut roots = HashSet::new();
    for manifest in files {
        let Some(folder) = manifest.path.strip_suffix("Cargo.toml") else { continue };
        for line in manifest.text.lines() {
            let path =
                line.trim().strip_prefix("path = \"").and_then(|rest| rest.strip_suffix('"'));
            roots.extend(path.map(|path| format!("{folder}{path}")));
        }
    }
    roots
}

/// Reports modules in `name.rs` + `name/` style and files that no `mod` declares and that are not
/// one of `roots`.
pub(super) fn check_modules(
    files: &[(&File, Masked)],
    roots: &HashSet<String>,
    problems: &mut Vec<Problem>,
) {
    let paths: HashSet<&str> = files.iter().map(|(file, _)| file.path.as_str()).collect();
    for (file, _) in files {
        let path = file.path.as_str();
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let stem = name.trim_end_matches(".rs");
        if paths.contains(format!("{folder}/{stem}/mod.rs").as_str()) {
            problems.push(Problem::new(path, 1, format!("`{stem}/mod.rs` exists: use one style")));
        }
        if paths.iter().any(|other| is_below(other, folder, stem)) && !CRATE_ROOTS.contains(&name) {
            let words = format!("move to `{stem}/mod.rs`: its submodules are in that folder");
            problems.push(Problem::new(path, 1, words));
        }
        let declared =
            || files.iter().any(|(parent, code)| declaration(parent, code, path).is_some());
        if is_module(path) && !roots.contains(path) && !declared() {
            problems.push(Problem::new(path, 1, "no `mod` declares this file: it never compiles"));
        }
    }
}

/// Whether `path` is a module of the package's source, as opposed to a root Cargo finds by itself.
fn is_module(path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let in_source = path.contains("/src/") || path.starts_with("tests/");
    in_source && !CRATE_ROOTS.contains(&name) && !folder.ends_with("/src/bin")
}

/// Whether the module at `path`, or one around it, is declared under `#[cfg(test)]`.
pub(super) fn is_test_only(files: &[(&File, Masked)], path: &str) -> bool {
    files.iter().any(|(parent, code)| {
        declaration(parent, code, path).is_some_and(|position| {
            let before = code.code()[..position].trim_end();
            let before = before.trim_end_matches("pub(crate)").trim_end_matches("pub(super)");
            before.trim_end().ends_with("#[cfg(test)]") || is_test_only(files, &parent.path)
        })
    })
}

/// Where `parent` declares the module at `path`, if it is the file that would and does.
fn declaration(parent: &File, code: &Masked, path: &str) -> Option<usize> {
    let (mut folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut stem = name.trim_end_matches(".rs");
    if stem == "mod" {
        (folder, stem) = folder.rsplit_once('/').unwrap_or(("", folder));
    }
    let (parent_folder, parent_name) = parent.path.rsplit_once('/').unwrap_or(("", &parent.path));
    let is_parent = parent_name == "mod.rs" || CRATE_ROOTS.contains(&parent_name);
    let declaration = format!("mod {stem};");
    let is_parent = is_parent && parent_folder == folder && parent.path != path;
    if is_parent { code.positions(&declaration).next() } else { None }
}

/// Whether `other` is a Rust file in the folder `folder/stem`, not being its `mod.rs`.
fn is_below(other: &str, folder: &str, stem: &str) -> bool {
    other
        .strip_prefix(folder)
        .and_then(|rest| rest.strip_prefix('/'))
        .and_then(|rest| rest.strip_prefix(stem))
        .is_some_and(|rest| rest.starts_with('/') && rest != "/mod.rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<File> = files
            .iter()
            .map(|(path, text)| File { path: (*path).to_owned(), text: (*text).to_owned() })
            .collect();
        let rust = files.iter().filter(|file| file.path.ends_with(".rs"));
        let masked: Vec<_> = rust.map(|file| (file, Masked::new(&file.text))).collect();
        let mut problems = Vec::new();
        check_modules(&masked, &named_roots(&files), &mut problems);
        problems.into_iter().map(|problem| format!("{}: {}", problem.path, problem.words)).collect()
    }

    #[test]
    fn names_that_say_nothing_are_refused() {
        for path in ["engine/src/utils.rs", "viewer/src/common/mod.rs", "misc/a.txt"] {
            let mut problems = Vec::new();
            check_name(path, &mut problems);
            assert_eq!(problems.len(), 1, "{path}");
        }
        let mut problems = Vec::new();
        check_name("shared/src/units.rs", &mut problems);
        assert_eq!(problems, []);
    }

    #[test]
    fn a_declared_tree_is_fine() {
        let tree = [
            ("engine/src/lib.rs", "pub mod wire;\nmod clock;\n"),
            ("engine/src/clock.rs", ""),
            ("engine/src/wire/mod.rs", "mod sse;\n#[cfg(test)]\nmod properties;\n"),
            ("engine/src/wire/sse.rs", ""),
            ("engine/src/wire/properties.rs", ""),
            ("engine/tests/cli.rs", ""),
            ("tests/main.rs", "mod sim;\n"),
            ("tests/sim/mod.rs", ""),
            ("tests/Cargo.toml", "[[test]]\nname = \"no_alloc\"\npath = \"no_alloc.rs\"\n"),
            ("tests/no_alloc.rs", ""),
        ];
        assert_eq!(words(&tree), [] as [String; 0]);
    }

    #[test]
    fn a_file_that_nothing_declares_is_found() {
        let tree = [("engine/src/lib.rs", "// mod dead;\n"), ("engine/src/dead.rs", "")];
        assert_eq!(words(&tree).len(), 1);
        let tree = [("tests/main.rs", ""), ("tests/faults.rs", "")];
        assert_eq!(words(&tree).len(), 1);
    }

    #[test]
    fn modules_for_tests_only_are_told_from_others() {
        let tree = [
            ("engine/src/lib.rs", "pub mod wire;\n"),
            ("engine/src/wire/mod.rs", "mod sse;\n#[cfg(test)]\npub(crate) mod cases;\n"),
            ("engine/src/wire/cases/mod.rs", "mod deep;\n"),
            ("engine/src/wire/cases/deep.rs", ""),
            ("engine/src/wire/sse.rs", ""),
        ];
        let files = tree.map(|(path, text)| File { path: path.to_owned(), text: text.to_owned() });
        let masked: Vec<_> = files.iter().map(|file| (file, Masked::new(&file.text))).collect();
        let told: Vec<bool> = files.iter().map(|file| is_test_only(&masked, &file.path)).collect();
        assert_eq!(told, [false, false, true, true, false]);
    }

    #[test]
    fn both_module_styles_at_once_are_found() {
        let tree = [
            ("engine/src/lib.rs", "mod wire;\n"),
            ("engine/src/wire.rs", "mod sse;\n"),
            ("engine/src/wire/sse.rs", ""),
        ];
        assert!(words(&tree).iter().any(|line| line.contains("move to `wire/mod.rs`")));
    }
}
