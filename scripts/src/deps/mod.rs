//! `cargo x deps`: what may be depended on, by whom, under which licence, in how many versions.
//!
//! Reads `cargo metadata`, `cargo tree` and the manifests, all as text and as locked; every check
//! is a pure function over those. Advisories are `cargo deny`'s business: they need the network.

mod graph;
mod licence;
mod manifest;
mod versions;

use std::path::Path;

use graph::Graph;

use crate::process;

/// Package → packages that must not be anywhere below it, with the reason.
const FORBIDDEN: &[(&str, &[&str], &str)] = &[
    (
        "onbeat-shared",
        &["monoio", "io-uring", "rustls", "eframe", "memmap2", "onbeat", "onbeat-viewer"],
        "shared is plain data that builds on any laptop",
    ),
    (
        "onbeat-viewer",
        &["monoio", "io-uring", "rustls", "onbeat"],
        "the viewer runs where the engine does not",
    ),
    ("onbeat", &["egui", "eframe", "onbeat-viewer"], "a load generator has no window"),
    ("scripts", &["onbeat-viewer", "eframe"], "`cargo x` must start in seconds"),
];
/// The platform whose tree must be free of duplicates: the engine's.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Entry point; takes no arguments.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    if !arguments.is_empty() {
        return Err("takes no arguments".to_owned());
    }
    let metadata = ["metadata", "--format-version", "1", "--locked"];
    let graph = Graph::parse(&process::output(process::cargo(root).args(metadata))?)?;
    let tree = ["tree", "--workspace", "--locked", "--target", PLATFORM, "--prefix", "none"];
    let tree = process::output(process::cargo(root).args(tree))?;
    let deny = read(root, ".deny.toml")?;
    let allowed = licence::allowed_in(&deny)?;

    let mut problems = Vec::new();
    for (package, banned, reason) in FORBIDDEN {
        problems.extend(graph.forbidden(package, banned, reason)?);
    }
    problems.extend(graph.licences(|expression| licence::is_allowed(expression, &allowed)));
    problems.extend(versions::problems(&tree, versions::KNOWN));
    let mut manifests = Vec::new();
    for folder in graph.member_folders(root) {
        let path = format!("{folder}/Cargo.toml");
        let text = read(root, &path)?;
        problems.extend(manifest::problems(&path, &text));
        manifests.push(text);
    }
    problems.extend(manifest::unused(&read(root, "Cargo.toml")?, &manifests));
    for problem in &problems {
        println!("{problem}");
    }
    if problems.is_empty() {
        println!("deps: {} packages", graph.len());
        return Ok(());
    }
    Err(format!("{} problems", problems.len()))
}

fn read(root: &Path, path: &str) -> Result<String, String> {
    std::fs::read_to_string(root.join(path))
        .map_err(|error| format!("could not read {path}: {error}"))
}
