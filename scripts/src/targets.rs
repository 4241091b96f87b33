//! `cargo x targets`: whether the viewer compiles for the other systems it is meant for.
//!
//! A target is checked where the toolchain has it; of the others it says that it did not, and how
//! to get them, because not every machine can. It only type-checks: linking for another system
//! needs that system's linker.

use std::path::Path;
use std::process::Command;

use crate::process;

/// The viewer's systems besides Linux.
const TARGETS: [&str; 3] =
    ["aarch64-apple-darwin", "x86_64-apple-darwin", "x86_64-pc-windows-msvc"];

/// Entry point; takes no arguments.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    if !arguments.is_empty() {
        return Err("takes no arguments".to_owned());
    }
    let checked = check(root)?;
    println!("targets: {checked} of {} checked", TARGETS.len());
    Ok(())
}

/// Checks the targets that the toolchain has. Returns how many.
pub(crate) fn check(root: &Path) -> Result<usize, String> {
    let installed = installed();
    let mut checked = 0;
    for target in TARGETS {
        if !installed.iter().any(|known| known == target) {
            println!("targets: {target} was not checked (rustup target add {target})");
            continue;
        }
        let arguments = ["check", "--package", "onbeat-viewer", "--locked", "--quiet"];
        let mut check = process::cargo(root);
        check.args(arguments).args(["--target", target]);
        // The one library in C: nothing is linked, so it need only be found, as `echo` says it is.
        check.envs([("ZSTD_SYS_USE_PKG_CONFIG", "1"), ("PKG_CONFIG_ALLOW_CROSS", "1")]);
        process::run(check.env("PKG_CONFIG", "echo"))?;
        println!("targets: {target} compiles");
        checked += 1;
    }
    Ok(checked)
}

/// The targets of the toolchain in use; none where nobody can say.
fn installed() -> Vec<String> {
    let mut rustup = Command::new("rustup");
    let listed = process::output(rustup.args(["target", "list", "--installed"]));
    listed.map(|list| list.lines().map(str::to_owned).collect()).unwrap_or_default()
}
