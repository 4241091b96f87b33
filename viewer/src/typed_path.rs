//! What somebody typed or pasted where a path may stand: whether it is one, and which is meant.
//!
//! Text in, path out. Nothing here asks whether there is anything at the path.

use std::path::{Path, PathBuf};

/// Whether something typed is meant as a path rather than as a part of a name.
#[must_use]
pub fn is_path(typed: &str) -> bool {
    let typed = typed.trim();
    typed.starts_with(['~', '.']) && (typed.len() == 1 || typed.contains('/') || typed == "..")
        || typed.contains('/')
        || typed.get(1..3) == Some(":\\")
}

/// A typed or pasted path: quotes and `file://` around it are dropped, `~` is the home folder.
#[must_use]
pub fn typed_path(typed: &str, home: Option<&Path>) -> PathBuf {
    let path = typed.trim().trim_matches(['"', '\'']);
    let path = path.strip_prefix("file://").unwrap_or(path);
    match (path.strip_prefix('~').map(|rest| rest.trim_start_matches('/')), home) {
        (Some(rest), Some(home)) if path == "~" || path.starts_with("~/") => home.join(rest),
        _ => PathBuf::from(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_paths_are_meant_paths() {
        let home = Some(Path::new("/me"));
        for (typed, meant) in [
            ("/runs/a.beat", "/runs/a.beat"),
            (" 'a b.beat' ", "a b.beat"),
            ("file:///runs/a.beat", "/runs/a.beat"),
            ("~/a.beat", "/me/a.beat"),
            ("~", "/me"),
            ("~other/a.beat", "~other/a.beat"),
        ] {
            assert_eq!(typed_path(typed, home), Path::new(meant), "{typed}");
        }
    }

    #[test]
    fn names_and_paths_are_told_apart() {
        for path in ["/", "/a", "a/b.beat", "~", "~/runs", "..", "./a", "C:\\runs", "'/a b'"] {
            assert!(is_path(path), "{path}");
        }
        for name in ["", "a", "a.beat", ".beat", "…", "ä:b"] {
            assert!(!is_path(name), "{name}");
        }
    }
}
