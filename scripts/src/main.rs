//! `cargo x VERB`: the project's own build tool, in Rust so that it runs where the product builds.
//!
//! Each verb is one file beside this one and says there what it promises. This file only picks the
//! verb and turns its answer into an exit code: 0 done, 1 a check failed, 2 not a verb we know.

mod bench;
mod ci;
mod demo_trace;
mod deploy;
mod deps;
mod docs;
mod icon;
mod packaging;
mod process;
mod setup;
mod shards;
mod targets;
mod test;
mod tidy;
mod words;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What a verb does: it gets the repository's root and the arguments after its own name.
type Verb = fn(&Path, &[String]) -> Result<(), String>;

/// Every verb, with the line that `cargo x` shows for it.
const VERBS: &[(&str, &str, Verb)] = &[
    ("ci", "every check, in the order CI runs them [--only STEP] [--skip STEP]", ci::run),
    ("test", "set up what the tests need, run them all, print the totals", test::run),
    ("setup", "install the Debian packages that are missing [--check: only list them]", setup::run),
    ("tidy", "house style that rustfmt and clippy cannot see", tidy::run),
    ("deps", "dependency edges, licences, duplicate and unpinned versions", deps::run),
    (
        "bench",
        "every promised figure, measured [--base REV] [--peer NAME] [--table FILE]",
        bench::run,
    ),
    ("words", "the word list against tokenizers: --check FILE… | --derive FILE…", words::run),
    ("demo-trace", "write the demo's trace [--check: only compare it]", demo_trace::run),
    ("docs", "write the generated references [--check: fail when one is stale]", docs::run),
    ("icon", "write the viewer's icon in every size [--check: only compare it]", icon::run),
    ("packaging", "look at everything that a Debian package carries", packaging::run),
    ("deploy", "whether the files for clusters fit the program", deploy::run),
    (
        "shards",
        "a run of four shards in namespaces, held against its plan: TRACE [OPTION…]",
        shards::run,
    ),
    ("targets", "compile the viewer for other systems, where the toolchain can", targets::run),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let name = arguments.first().map_or("", String::as_str);
    let Some((_, _, verb)) = VERBS.iter().find(|(known, _, _)| *known == name) else {
        eprintln!("usage: cargo x VERB");
        for (known, about, _) in VERBS {
            eprintln!("  {known:<10} {about}");
        }
        return ExitCode::from(2);
    };
    match verb(&root(), &arguments[1..]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(words) => {
            eprintln!("cargo x {name}: {words}");
            ExitCode::FAILURE
        }
    }
}

/// The repository's root: the folder above this package, wherever it was moved to.
fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}
