//! `cargo x packaging`: whether everything that a Debian package of the programs carries is there
//! and says the same.
//!
//! The desktop entry, the MIME type, the icons and the lists of files in the manifests are looked
//! at here, without the tools that make packages, so that a mistake is found where it is made.
//! Building a package is `cargo deb`'s (`cargo deb -p onbeat-viewer`); manual pages and completions
//! are `cargo x docs`'.

use std::fs;
use std::path::Path;

use crate::icon;
use crate::process;

const FOLDER: &str = "viewer/assets/desktop";
/// The packages that are made of the workspace, with the folder of each.
const PACKAGES: [(&str, &str); 2] = [("onbeat", "engine"), ("onbeat-viewer", "viewer")];

/// Entry point; takes no arguments.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    if !arguments.is_empty() {
        return Err("takes no arguments".to_owned());
    }
    let read = |name: &str| {
        let path = format!("{FOLDER}/{name}");
        fs::read_to_string(root.join(&path)).map_err(|error| format!("{path}: {error}"))
    };
    let header = fs::read_to_string(root.join("shared/src/log/header.rs"))
        .map_err(|error| format!("shared/src/log/header.rs: {error}"))?;
    let mime = read("onbeat-viewer.xml")?;
    let mut problems = desktop_problems(&read("onbeat-viewer.desktop")?, &mime);
    problems.extend(mime_problems(&mime, &header));
    problems.extend(xml_problem(&mime).map(|words| format!("onbeat-viewer.xml: {words}")));
    let drawing = read("onbeat-viewer.svg")?;
    problems.extend(xml_problem(&drawing).map(|words| format!("onbeat-viewer.svg: {words}")));
    problems.extend(icon::run(root, &["--check".to_owned()]).err());
    problems.extend(asset_problems(root)?);
    for problem in &problems {
        println!("packaging: {problem}");
    }
    if problems.is_empty() {
        println!("packaging: desktop entry, MIME type, icons and lists of files are sound");
        return Ok(());
    }
    Err(format!("{} problems", problems.len()))
}

/// What is wrong with the desktop entry.
fn desktop_problems(text: &str, mime: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    if lines.next() != Some("[Desktop Entry]") {
        problems.push("the desktop entry does not begin with [Desktop Entry]".to_owned());
    }
    let mut entries = Vec::new();
    for line in lines {
        match line.split_once('=') {
            Some((key, value)) if !key.is_empty() && key.trim() == key => {
                if entries.iter().any(|(known, _)| *known == key) {
                    problems.push(format!("the desktop entry has {key} twice"));
                }
                entries.push((key, value));
            }
            _ => problems.push(format!("the desktop entry has a line that is no entry: {line}")),
        }
    }
    let value = |key: &str| entries.iter().find(|(known, _)| *known == key).map(|entry| entry.1);
    for (key, right) in [
        ("Type", "Application"),
        ("Exec", "onbeat-viewer %F"),
        ("Icon", "onbeat-viewer"),
        ("Terminal", "false"),
        ("StartupWMClass", "onbeat-viewer"),
    ] {
        if value(key) != Some(right) {
            problems.push(format!("the desktop entry's {key} is {:?}, not {right}", value(key)));
        }
    }
    for key in ["Name", "Comment", "Categories", "MimeType"] {
        match value(key) {
            None | Some("") => problems.push(format!("the desktop entry has no {key}")),
            Some(list) if ["Categories", "MimeType"].contains(&key) && !list.ends_with(';') => {
                problems.push(format!("the desktop entry's {key} does not end with ;"));
            }
            Some(_) => {}
        }
    }
    for kind in value("MimeType").unwrap_or_default().split_terminator(';') {
        if !mime.contains(&format!("type=\"{kind}\"")) {
            problems.push(format!("the desktop entry opens {kind}, which nothing declares"));
        }
    }
    problems
}

/// What is wrong with the MIME type: it must know a log by its ending and by its first bytes.
fn mime_problems(mime: &str, header: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if !mime.contains("<glob pattern=\"*.beat\"/>") {
        problems.push("the MIME type does not know *.beat".to_owned());
    }
    let between = |text: &str, before: &str| {
        let rest = text.split_once(before)?.1;
        rest.split_once('"').map(|(found, _)| found.to_ascii_lowercase())
    };
    let mark = between(header, "FILE_MARK: [u8; 8] = *b\"");
    let known = between(mime, " value=\"");
    if mark.is_none() || mark != known {
        problems.push(format!("a log begins with {mark:?}, the MIME type looks for {known:?}"));
    }
    problems
}

/// Why a text is no well-formed XML, as far as our own files need it: every element is closed in
/// order, there is one root, attributes are quoted, `<` and `&` are nowhere else.
fn xml_problem(text: &str) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    let mut roots = 0;
    let mut rest = text;
    while let Some((before, tag)) = rest.split_once('<') {
        let outside = if open.is_empty() { before.trim() } else { "" };
        if !outside.is_empty() || has_bare_ampersand(before) {
            return Some(format!("text out of place: {}", before.trim()));
        }
        let Some((tag, after)) = tag.split_once('>') else {
            return Some(format!("an element is not ended: <{tag}"));
        };
        rest = after;
        if tag.starts_with('?') || tag.starts_with("!--") {
            continue;
        }
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name.trim()) {
                return Some(format!("</{name}> closes another element"));
            }
            continue;
        }
        let (tag, alone) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, attributes) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
        if !are_attributes(attributes) {
            return Some(format!("attributes of <{name}> are not name=\"value\": {attributes}"));
        }
        roots += usize::from(open.is_empty());
        if !alone {
            open.push(name);
        }
    }
    if !open.is_empty() || roots != 1 || !rest.trim().is_empty() {
        return Some(format!("{roots} roots, not closed: {open:?}"));
    }
    None
}

fn are_attributes(mut text: &str) -> bool {
    loop {
        text = text.trim_start();
        if text.is_empty() {
            return true;
        }
        let Some((name, rest)) = text.split_once("=\"") else { return false };
        let Some((value, rest)) = rest.split_once('"') else { return false };
        if name.is_empty() || name.contains(char::is_whitespace) || has_bare_ampersand(value) {
            return false;
        }
        text = rest;
    }
}

fn has_bare_ampersand(text: &str) -> bool {
    text.split('&').skip(1).any(|rest| {
        rest.split_once(';').is_none_or(|(name, _)| {
            name.is_empty() || !name.chars().all(|sign| sign.is_ascii_alphanumeric() || sign == '#')
        })
    })
}

/// Files that the manifests want in a package and that are not there; manifests without a package.
fn asset_problems(root: &Path) -> Result<Vec<String>, String> {
    let metadata = process::metadata(root)?;
    let empty = Vec::new();
    let packages = metadata["packages"].as_array().unwrap_or(&empty);
    let mut problems = Vec::new();
    for (name, folder) in PACKAGES {
        let package = packages.iter().find(|package| package["name"] == name);
        let deb = package.map_or(&serde_json::Value::Null, |package| &package["metadata"]["deb"]);
        let Some(assets) = deb["assets"].as_array() else {
            problems.push(format!("{folder}/Cargo.toml has no [package.metadata.deb] with assets"));
            continue;
        };
        for asset in assets {
            let source = asset[0].as_str().unwrap_or_default();
            // Built when the package is; everything else lies beside the manifest.
            if !source.starts_with("target/") && !root.join(folder).join(source).exists() {
                problems.push(format!("{folder}/Cargo.toml packs {source}, which is not there"));
            }
        }
    }
    Ok(problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIME: &str = "<mime-info><mime-type type=\"application/x-a\"><magic>\
        <match offset=\"0\" value=\"\\x89A\\x1a\"/></magic><glob pattern=\"*.beat\"/>\
        </mime-type></mime-info>";

    fn desktop() -> String {
        "[Desktop Entry]\nType=Application\nName=A\nComment=B\nExec=onbeat-viewer %F\n\
         Icon=onbeat-viewer\nTerminal=false\nCategories=Development;\n\
         MimeType=application/x-a;\nStartupWMClass=onbeat-viewer\n"
            .to_owned()
    }

    #[test]
    fn a_sound_desktop_entry_passes_and_each_fault_is_found() {
        assert_eq!(desktop_problems(&desktop(), MIME), Vec::<String>::new());
        for (right, wrong, words) in [
            ("[Desktop Entry]", "[Entry]", "[Desktop Entry]"),
            ("Exec=onbeat-viewer %F", "Exec=viewer", "Exec"),
            ("Name=A\n", "", "no Name"),
            ("Development;", "Development", "does not end with ;"),
            ("application/x-a;", "application/x-b;", "nothing declares"),
            ("Comment=B", "Comment=B\nComment=C", "twice"),
            ("Comment=B", "Comment B", "no entry"),
        ] {
            let problems = desktop_problems(&desktop().replace(right, wrong), MIME);
            assert!(problems.iter().any(|problem| problem.contains(words)), "{problems:?}");
        }
    }

    #[test]
    fn the_type_must_know_the_logs_first_bytes() {
        let header = |mark: &str| format!("pub const FILE_MARK: [u8; 8] = *b\"{mark}\";");
        assert_eq!(mime_problems(MIME, &header("\\x89A\\x1A")), Vec::<String>::new());
        assert_eq!(mime_problems(MIME, &header("\\x89B\\x1A")).len(), 1);
        assert_eq!(mime_problems("", "").len(), 2);
    }

    #[test]
    fn xml_is_well_formed_or_not() {
        for sound in [MIME, "<?xml version=\"1.0\"?>\n<a b=\"c\">d &amp; e<f/></a>\n"] {
            assert_eq!(xml_problem(sound), None, "{sound}");
        }
        for wrong in [
            "",
            "<a>",
            "</a>",
            "<a></b>",
            "<a/><b/>",
            "<a b=c/>",
            "<a",
            "<a>x & y</a>",
            "x<a/>",
            "<a b=\"1\" c></a>",
        ] {
            assert!(xml_problem(wrong).is_some(), "{wrong}");
        }
    }
}
