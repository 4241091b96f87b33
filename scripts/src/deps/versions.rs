//! One version of each crate, except those that a list explains.
//!
//! Two incompatible versions of a crate are compiled twice and their types do not mix. Reads what
//! `cargo tree` prints for one platform, because only it leaves out what no feature asks for. The
//! list must stay true: an entry that is no longer needed is a problem too.

use std::collections::{BTreeMap, BTreeSet};

/// Crates that are there in several incompatible versions, and who asks for the odd one.
pub(super) const KNOWN: &[(&str, &str)] = &[
    ("base64", "0.22: hdrhistogram's log"),
    ("bitflags", "1: io-uring 0.6, which monoio 0.2.4 exposes"),
    ("cpufeatures", "0.3: proptest's generator, in tests only"),
    ("getrandom", "0.3: ahash in egui; 0.4: tempfile and proptest, in tests only"),
    ("hashbrown", "0.16: simd-json's values"),
    ("linux-raw-sys", "0.4: rustix 0.38"),
    ("miniz_oxide", "0.8: png in the viewer"),
    ("nom", "7: eventsource-stream, in tests only"),
    ("rustix", "0.38: calloop in the viewer's window library"),
    ("syn", "3: newer derive macros; build time only"),
    ("thiserror", "1: calloop in the viewer's window library"),
    ("thiserror-impl", "1: thiserror 1"),
];

/// One line for each crate in several incompatible versions that `known` does not name, and for
/// each name in `known` that is no longer needed. `tree` has one `NAME vVERSION …` a line.
pub(super) fn problems(tree: &str, known: &[(&str, &str)]) -> Vec<String> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in tree.lines() {
        let mut words = line.split_whitespace();
        let (Some(name), Some(version)) = (words.next(), words.next()) else { continue };
        let version = version.trim_start_matches('v');
        versions.entry(name).or_default().insert(compatible(version));
    }
    versions.retain(|_, versions| versions.len() > 1);
    let mut lines: Vec<String> = versions
        .iter()
        .filter(|(name, _)| !known.iter().any(|(known, _)| known == *name))
        .map(|(name, versions)| {
            let versions: Vec<_> = versions.iter().copied().collect();
            format!("duplicate: {name} in versions {}", versions.join(" and "))
        })
        .collect();
    for (name, _) in known.iter().filter(|(name, _)| !versions.contains_key(name)) {
        lines.push(format!("duplicate: {name} has one version now: take it off the list"));
    }
    lines
}

/// The part of a version that Cargo unifies by: `1.2.3` → `1`, `0.4.2` → `0.4`, `0.0.3` → `0.0.3`.
fn compatible(version: &str) -> &str {
    let mut end = 0;
    for part in version.split('.') {
        end += part.len();
        if part != "0" {
            break;
        }
        end += 1;
    }
    &version[..end.min(version.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "viewer v0.1.0 (/r/viewer)\ndeep v0.4.2\nmonoio v0.2.4 (*)\n\n\
        deep v0.5.0 (proc-macro)\ndeep v0.5.1\none v1.0.0\none v1.9.0\n";

    #[test]
    fn duplicates_are_found_and_the_list_of_known_ones_stays_true() {
        assert_eq!(problems(TREE, &[]), ["duplicate: deep in versions 0.4 and 0.5"]);
        assert_eq!(problems(TREE, &[("deep", "why")]), [] as [String; 0]);
        let stale = problems(TREE, &[("deep", "why"), ("one", "why")]);
        assert_eq!(stale, ["duplicate: one has one version now: take it off the list"]);
    }

    #[test]
    fn versions_are_grouped_as_cargo_does() {
        let table = [("1.2.3", "1"), ("0.4.2", "0.4"), ("0.0.3", "0.0.3"), ("10.0.0", "10")];
        for (version, expected) in table {
            assert_eq!(compatible(version), expected);
        }
    }
}
