//! The dependency graph out of `cargo metadata`, and the questions asked of it.
//!
//! Edges are those of normal and build dependencies, plus the workspace's own dev-dependencies;
//! Cargo leaves other packages' dev-dependencies out. Features are as resolved for the workspace.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use serde::Deserialize;

/// Packages and who depends on whom.
#[derive(Debug)]
pub(super) struct Graph {
    packages: BTreeMap<String, Package>,
    edges: HashMap<String, Vec<String>>,
    members: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    manifest_path: String,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: Vec<String>,
    resolve: Resolve,
}

#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    dependencies: Vec<String>,
}

impl Graph {
    /// Reads what `cargo metadata --format-version 1` wrote. Packages that no resolved package
    /// needs are left out.
    pub(super) fn parse(json: &str) -> Result<Self, String> {
        let metadata: Metadata = serde_json::from_str(json)
            .map_err(|error| format!("could not read cargo metadata: {error}"))?;
        let edges: HashMap<_, _> =
            metadata.resolve.nodes.into_iter().map(|node| (node.id, node.dependencies)).collect();
        let packages = metadata
            .packages
            .into_iter()
            .filter(|package| edges.contains_key(&package.id))
            .map(|package| (package.id.clone(), package))
            .collect();
        Ok(Self { packages, edges, members: metadata.workspace_members })
    }

    /// How many packages there are.
    pub(super) fn len(&self) -> usize {
        self.packages.len()
    }

    /// The workspace's packages as folders below the root.
    pub(super) fn member_folders(&self, root: &Path) -> Vec<String> {
        let folder = |id: &String| {
            let manifest = Path::new(&self.packages[id].manifest_path);
            let folder = manifest.parent().unwrap_or(manifest);
            folder.strip_prefix(root).unwrap_or(folder).display().to_string()
        };
        self.members.iter().map(folder).collect()
    }

    /// One line for each banned package that is somewhere below `package`, with the way to it.
    pub(super) fn forbidden(
        &self,
        package: &str,
        banned: &[&str],
        reason: &str,
    ) -> Result<Vec<String>, String> {
        let start = self
            .members
            .iter()
            .find(|id| self.packages[*id].name == package)
            .ok_or_else(|| format!("the workspace has no package `{package}`"))?;
        let mut came_from: HashMap<&str, &str> = HashMap::new();
        let mut queue: Vec<&str> = vec![start.as_str()];
        let mut found = BTreeSet::new();
        while let Some(id) = queue.pop() {
            for next in &self.edges[id] {
                if next == start || came_from.contains_key(next.as_str()) {
                    continue;
                }
                came_from.insert(next, id);
                queue.push(next);
                if banned.contains(&self.packages[next].name.as_str()) {
                    found.insert(next.as_str());
                }
            }
        }
        Ok(found
            .into_iter()
            .map(|id| format!("forbidden: {} ({reason})", self.way(&came_from, id)))
            .collect())
    }

    /// `a -> b -> c`, from the package the walk began at to `id`.
    fn way(&self, came_from: &HashMap<&str, &str>, id: &str) -> String {
        let mut names = vec![self.packages[id].name.as_str()];
        let mut at = id;
        while let Some(before) = came_from.get(at) {
            names.push(&self.packages[*before].name);
            at = before;
        }
        names.reverse();
        names.join(" -> ")
    }

    /// One line for each package whose licence `is_allowed` refuses or that states none.
    pub(super) fn licences(&self, is_allowed: impl Fn(&str) -> bool) -> Vec<String> {
        let refused = |package: &&Package| !package.license.as_deref().is_some_and(&is_allowed);
        let line = |package: &Package| {
            let licence = package.license.as_deref().unwrap_or("none stated");
            format!("licence: {} {}: {licence}", package.name, package.version)
        };
        self.packages.values().filter(refused).map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A workspace of `shared` and `viewer`; `viewer` reaches `monoio` through `deep`.
    const METADATA: &str = r#"{
        "packages": [
            {"id":"s", "name":"shared", "version":"0.1.0", "license":"MIT",
                "manifest_path":"/r/shared/Cargo.toml"},
            {"id":"v", "name":"viewer", "version":"0.1.0", "license":"MIT",
                "manifest_path":"/r/viewer/Cargo.toml"},
            {"id":"d1", "name":"deep", "version":"0.4.2", "license":"MIT", "manifest_path":"/x"},
            {"id":"d2", "name":"deep", "version":"0.5.0", "license":null, "manifest_path":"/x"},
            {"id":"m", "name":"monoio", "version":"0.2.4", "license":"GPL-3.0",
                "manifest_path":"/x"},
            {"id":"w", "name":"other-system", "version":"1.0.0", "license":"MIT",
                "manifest_path":"/x"}
        ],
        "workspace_members": ["s", "v"],
        "resolve": {"nodes": [
            {"id":"s","dependencies":["d2"]}, {"id":"v","dependencies":["s","d1"]},
            {"id":"d1","dependencies":["m"]}, {"id":"d2","dependencies":[]},
            {"id":"m","dependencies":["d1"]}
        ]}
    }"#;

    fn graph() -> Graph {
        Graph::parse(METADATA).expect("the text above is metadata")
    }

    #[test]
    fn a_forbidden_edge_is_found_with_the_way_to_it() {
        let found = graph().forbidden("viewer", &["monoio", "rustls"], "why").expect("a member");
        assert_eq!(found, ["forbidden: viewer -> deep -> monoio (why)"]);
        assert_eq!(graph().forbidden("shared", &["monoio"], "why"), Ok(Vec::new()));
        assert!(graph().forbidden("engine", &["egui"], "why").is_err(), "no such member");
    }

    #[test]
    fn refused_and_missing_licences_are_found() {
        let found = graph().licences(|licence| licence != "GPL-3.0");
        assert_eq!(found, ["licence: deep 0.5.0: none stated", "licence: monoio 0.2.4: GPL-3.0"]);
    }

    #[test]
    fn only_what_was_resolved_counts_and_members_have_folders() {
        assert_eq!(graph().len(), 5);
        assert_eq!(graph().member_folders(Path::new("/r")), ["shared", "viewer"]);
        assert!(Graph::parse("{}").is_err());
    }
}
