//! `cargo x docs`: writes the references that are generated from the program's own declarations.
//!
//! The programs print each of them (`onbeat reference NAME`, hidden from its help; manual pages and
//! completions); this verb only stores what they printed. `--check` writes nothing and fails when a
//! stored one is stale. So a flag or a column is described once, in code, and the documents cannot
//! drift.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process;

/// The program, what makes it print, and where that is kept.
const REFERENCES: &[(&str, &[&str], &str)] = &[
    ("onbeat", &["reference", "flags"], "engine/FLAGS.md"),
    ("onbeat", &["reference", "columns"], "shared/COLUMNS.md"),
    ("onbeat", &["reference", "queries"], "shared/QUERIES.md"),
    ("onbeat", &["reference", "plan-schema"], "shared/plan.schema.json"),
    ("onbeat", &["reference", "report-schema"], "shared/report.schema.json"),
    ("onbeat", &["reference", "compare-schema"], "shared/compare.schema.json"),
    ("onbeat", &["reference", "manifest-schema"], "shared/manifest.schema.json"),
    ("onbeat", &["man"], "engine/assets/onbeat.1"),
    ("onbeat", &["completions", "bash"], "engine/assets/completions/onbeat.bash"),
    ("onbeat-viewer", &["--man"], "viewer/assets/onbeat-viewer.1"),
    ("onbeat-viewer", &["--completions", "bash"], "viewer/assets/completions/onbeat-viewer.bash"),
    ("onbeat-viewer", &["--completions", "zsh"], "viewer/assets/completions/_onbeat-viewer"),
    ("onbeat-viewer", &["--completions", "fish"], "viewer/assets/completions/onbeat-viewer.fish"),
];

/// Entry point: writes, or with `--check` compares.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    let check = match arguments {
        [] => false,
        [one] if one == "--check" => true,
        _ => return Err("takes only --check".to_owned()),
    };
    let mut stale = Vec::new();
    let programs = programs(root)?;
    for (program, arguments, path) in REFERENCES {
        let mut command = Command::new(programs.join(program));
        let fresh = without_trailing_spaces(&process::output(command.args(*arguments))?);
        let place = root.join(path);
        let stored = std::fs::read_to_string(&place).unwrap_or_default();
        if let Some(line) = first_difference(&stored, &fresh) {
            if check {
                println!("{path}:{line}: stale");
                stale.push(*path);
            } else {
                let folder = place.parent().unwrap_or(root);
                std::fs::create_dir_all(folder)
                    .and_then(|()| std::fs::write(&place, fresh))
                    .map_err(|error| format!("could not write {path}: {error}"))?;
                println!("{path}: written");
            }
        }
    }
    if stale.is_empty() {
        println!("docs: {} references are fresh", REFERENCES.len());
        return Ok(());
    }
    Err(format!("{} are stale; write them again with: cargo x docs", stale.join(" and ")))
}

/// The folder with both programs, built with the whole workspace's features so that `cargo x ci`
/// finds them already there.
fn programs(root: &Path) -> Result<PathBuf, String> {
    let build = ["build", "--workspace", "--locked", "--quiet", "--bins"];
    process::run(process::cargo(root).args(build))?;
    let metadata = process::metadata(root)?;
    let target = metadata["target_directory"].as_str().ok_or("cargo metadata names no target")?;
    Ok(Path::new(target).join("debug"))
}

/// Generators of manual pages leave spaces at the ends of lines, which no text here has.
fn without_trailing_spaces(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The 1-based line at which the two texts part, `None` when they are the same.
fn first_difference(stored: &str, fresh: &str) -> Option<usize> {
    if stored == fresh {
        return None;
    }
    let same = stored.lines().zip(fresh.lines()).take_while(|(a, b)| a == b).count();
    Some(same + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_text_is_found_with_its_first_line() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(first_difference("a\nb\n", "a\nc\n"), Some(2));
        assert_eq!(first_difference("a\nb\n", "a\nb\nc\n"), Some(3));
        assert_eq!(first_difference("", "a\n"), Some(1));
        assert_eq!(first_difference("a", "a\n"), Some(2), "also the last line break counts");
    }
}
