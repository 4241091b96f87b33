//! Versions stand in the root manifest and nowhere else.
//!
//! Reads a member's manifest line by line: in every dependency section each entry must inherit from
//! the workspace. Features may be added there; versions, paths and sources may not. A version in
//! the root manifest that no member inherits is refused too.

/// One line for each dependency of the manifest at `path` that does not inherit.
pub(super) fn problems(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut section = Section::Other;
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(heading) = line.strip_prefix('[') {
            section = Section::of(heading.trim_end_matches(']'));
            continue;
        }
        if section == Section::Dependencies && !line.is_empty() && !inherits(line) {
            found.push(format!("{path}:{}: `{line}` must be `NAME.workspace = true`", index + 1));
        }
        if section == Section::OneDependency && !["workspace", "features"].contains(&key(line)) {
            found.push(format!("{path}:{}: write it as `NAME.workspace = true`", index + 1));
        }
    }
    found
}

/// One line for each entry of the root manifest's `[workspace.dependencies]` that no member names.
pub(super) fn unused(root: &str, members: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    let mut inside = false;
    for (index, line) in root.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.starts_with('[') {
            inside = line == "[workspace.dependencies]";
            continue;
        }
        let name = key(line);
        let is_used = |text: &String| text.lines().any(|line| names(line, name));
        if inside && !line.is_empty() && !members.iter().any(is_used) {
            found.push(format!("Cargo.toml:{}: no member uses `{name}`", index + 1));
        }
    }
    found
}

/// Whether a member's line is the dependency `name`.
fn names(line: &str, name: &str) -> bool {
    let line =
        line.trim().trim_start_matches("[dependencies.").trim_start_matches("[dev-dependencies.");
    line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['.', ' ', '=', ']']))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    /// `[dependencies]`, also of one target or kind.
    Dependencies,
    /// `[dependencies.NAME]`.
    OneDependency,
    Other,
}

impl Section {
    fn of(heading: &str) -> Self {
        let is_list = |part: &str| part.ends_with("dependencies");
        match heading.rsplit_once('.') {
            _ if heading.rsplit('.').next().is_some_and(is_list) => Self::Dependencies,
            Some((before, _)) if is_list(before) => Self::OneDependency,
            _ => Self::Other,
        }
    }
}

/// Whether a dependency's line takes everything but features from the workspace.
fn inherits(line: &str) -> bool {
    let name_inherits = line.split('=').next().unwrap_or_default().trim().ends_with(".workspace");
    let table_inherits = line.contains("workspace = true");
    let own = ["version", "path", "git", "registry", "branch", "rev"];
    let names_source = own.iter().any(|word| line.contains(&format!("{word} =")));
    (name_inherits || table_inherits) && !names_source
}

/// `features = [...]` → `features`; an empty line counts as one that may stand anywhere.
fn key(line: &str) -> &str {
    let key = line.split('=').next().unwrap_or_default().trim();
    if key.is_empty() { "workspace" } else { key }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inherited_dependencies_pass() {
        let text = "[package]\nversion = \"1\"\n[dependencies]\na.workspace = true # why\n\n\
            b = { workspace = true, features = [\"x\"] }\n[target.'cfg(unix)'.dependencies]\n\
            c.workspace = true\n[dependencies.d]\nworkspace = true\nfeatures = []\n\
            [lints]\nx = 1\n";
        assert_eq!(problems("a/Cargo.toml", text), [] as [String; 0]);
    }

    #[test]
    fn entries_that_nobody_inherits_are_found() {
        let root = "[workspace.dependencies]\na = \"1\"\n# why\nab = { path = \"ab\" }\nc = \"1\"\n\
            [profile.dev]\ndebug = 1\n";
        let members =
            ["[dependencies]\nab.workspace = true\n", "[dependencies.a]\nworkspace = true\n"];
        let found = unused(root, &members.map(str::to_owned));
        assert_eq!(found, ["Cargo.toml:5: no member uses `c`"]);
    }

    #[test]
    fn own_versions_and_sources_are_found_with_their_line() {
        let table = [
            "[dependencies]\na = \"1\"\n",
            "[dev-dependencies]\na = { version = \"1\" }\n",
            "[build-dependencies]\na = { path = \"../a\" }\n",
            "[target.'cfg(unix)'.dependencies]\na = \"1\"\n",
            "[dependencies.a]\nversion = \"1\"\n",
            "[dependencies]\na = { workspace = true, version = \"2\" }\n",
        ];
        for text in table {
            let found = problems("a/Cargo.toml", text);
            assert!(
                found.len() == 1 && found[0].starts_with("a/Cargo.toml:2: "),
                "{text}{found:?}"
            );
        }
    }
}
