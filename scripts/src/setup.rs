//! `cargo x setup`: installs what building, running, testing and checking need.
//!
//! [`PACKAGES`] is the one list of Debian packages, with the reason for each; README and CI use it
//! through this verb. Only missing packages are installed, with `apt-get`, through `sudo` when not
//! root. On a system without `apt-get` it prints what to look for. Cargo installs cargo-deny, in
//! the one version that the checks were written for; tests go without it. `--check` only lists what
//! is missing. It does not install Rust: Cargo is what runs this program.

use std::path::Path;
use std::process::Command;

use crate::process;

/// What a package is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// Compiling the workspace.
    Build,
    /// Opening the viewer's window.
    Run,
    /// Passing every test.
    Test,
}

/// Every Debian package, why, and what it is needed for. Names as in Debian 12.
const PACKAGES: &[(&str, Need, &str)] = &[
    ("gcc", Need::Build, "links every program and compiles the C of zstd and ring"),
    ("libc6-dev", Need::Build, "the C library's headers and start files"),
    ("ca-certificates", Need::Build, "Cargo fetches crates over https"),
    ("libgl1", Need::Run, "the viewer draws with OpenGL, loaded when it starts"),
    ("libgl1-mesa-dri", Need::Run, "OpenGL in software where there is no graphics card"),
    ("libglx-mesa0", Need::Run, "OpenGL on X11"),
    ("libegl1", Need::Run, "OpenGL on Wayland and without a window system"),
    ("libx11-6", Need::Run, "X11 windows"),
    ("libx11-xcb1", Need::Run, "X11 windows"),
    ("libxcursor1", Need::Run, "X11 cursors"),
    ("libxi6", Need::Run, "X11 mouse wheel and touch"),
    ("libxrandr2", Need::Run, "X11 screen sizes and scale"),
    ("libxkbcommon-x11-0", Need::Run, "keyboard layouts on X11"),
    ("strace", Need::Test, "makes system calls of the program fail, one after the other"),
    ("xvfb", Need::Test, "the viewer's real window is opened on a screen in memory"),
];

/// The version of cargo-deny that `.deny.toml` is written for.
const DENY_VERSION: &str = "0.20.2";

/// Entry point.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    match arguments {
        [] => ensure().and_then(|()| ensure_deny(root)),
        [one] if one == "--check" => check(),
        _ => Err("takes only --check".to_owned()),
    }
}

/// Lists what is missing; an error when something is, with the command that installs it.
fn check() -> Result<(), String> {
    let missing = missing(installed);
    let has_deny = has_deny();
    if missing.is_empty() && has_deny {
        println!("setup: all {} packages and cargo-deny are installed", PACKAGES.len());
        return Ok(());
    }
    if !missing.is_empty() {
        print_missing(&missing);
    }
    if !has_deny {
        println!("setup: missing cargo-deny {DENY_VERSION}, for `cargo x ci` only");
    }
    Err("something is missing; install it with: cargo x setup".to_owned())
}

/// Installs what is missing. Does nothing, and asks nothing, when all is there.
pub(crate) fn ensure() -> Result<(), String> {
    let missing = missing(installed);
    if missing.is_empty() {
        return Ok(());
    }
    print_missing(&missing);
    if !process::exists(Command::new("apt-get").arg("--version")) {
        println!("setup: no apt-get here; install the like of these with your own package manager");
        return Ok(());
    }
    println!("setup: installing them with apt-get");
    process::run(apt_get()?.args(["update", "--quiet"]))?;
    process::run(
        apt_get()?.args(["install", "--yes", "--quiet", "--no-install-recommends"]).args(missing),
    )
}

/// Installs cargo-deny, unoptimised: that takes a minute instead of five, and it runs for seconds.
fn ensure_deny(root: &Path) -> Result<(), String> {
    if has_deny() {
        return Ok(());
    }
    println!("setup: installing cargo-deny {DENY_VERSION} with Cargo");
    let package = format!("cargo-deny@{DENY_VERSION}");
    process::run(
        process::cargo(root)
            .args(["install", "--locked", "--debug", "--quiet", &package])
            .env("CARGO_PROFILE_DEV_DEBUG", "0"),
    )
}

/// Whether that version of cargo-deny is there.
fn has_deny() -> bool {
    let asked = Command::new("cargo-deny").arg("--version").output();
    asked.is_ok_and(|answer| is_deny(&String::from_utf8_lossy(&answer.stdout)))
}

fn is_deny(version: &str) -> bool {
    version.split_whitespace().nth(1) == Some(DENY_VERSION)
}

/// The names for which `installed` says no, in the table's order.
fn missing(installed: impl Fn(&str) -> bool) -> Vec<&'static str> {
    PACKAGES.iter().map(|(name, _, _)| *name).filter(|name| !installed(name)).collect()
}

/// Whether dpkg has the package unpacked and configured.
fn installed(name: &str) -> bool {
    Command::new("dpkg-query")
        .args(["--show", "--showformat=${db:Status-Status}", name])
        .output()
        .is_ok_and(|answer| answer.stdout == b"installed")
}

fn print_missing(missing: &[&str]) {
    println!("setup: missing Debian packages:");
    for (name, need, why) in PACKAGES {
        if missing.contains(name) {
            let need = match need {
                Need::Build => "to build",
                Need::Run => "to run the viewer",
                Need::Test => "to test",
            };
            println!("  {name:<22} {need}: {why}");
        }
    }
}

/// `apt-get` with the rights to install: as root directly, else through `sudo`.
fn apt_get() -> Result<Command, String> {
    let user = process::output(Command::new("id").arg("--user"))?;
    let mut command = if user.trim() == "0" {
        Command::new("apt-get")
    } else if process::exists(Command::new("sudo").arg("--version")) {
        let mut sudo = Command::new("sudo");
        sudo.arg("apt-get");
        sudo
    } else {
        return Err("installing needs root: run `cargo x setup` as root once".to_owned());
    };
    command.env("DEBIAN_FRONTEND", "noninteractive");
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_machine_misses_every_package_and_a_full_one_none() {
        assert_eq!(missing(|_| false).len(), PACKAGES.len());
        assert!(missing(|_| true).is_empty());
        assert_eq!(missing(|name| name != "gcc"), ["gcc"]);
    }

    #[test]
    fn the_table_names_each_package_once_with_a_reason() {
        for (index, (name, _, why)) in PACKAGES.iter().enumerate() {
            assert!(!why.is_empty(), "{name} needs a reason");
            assert!(
                PACKAGES[index + 1..].iter().all(|(other, _, _)| other != name),
                "{name} is listed twice"
            );
        }
    }

    #[test]
    fn another_version_of_cargo_deny_is_replaced() {
        assert!(is_deny("cargo-deny 0.20.2\n"));
        assert!(!is_deny("cargo-deny 0.14.2\n") && !is_deny(""));
    }

    #[test]
    fn an_unknown_package_is_not_installed() {
        assert!(!installed("no-such-package-anywhere"));
    }
}
