//! The manual page and the shell completions, from the declaration of the command line.
//!
//! An option is described once, in [`crate::arguments`]; packages carry what is made of it here,
//! and `cargo x docs --check` fails when a stored one is stale. Nothing is printed here.

use clap::CommandFactory as _;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::arguments::Arguments;

/// Where the viewer keeps its settings, for the manual page.
const FILES: &str = r".SH FILES
.TP
.I $XDG_CONFIG_HOME/onbeat/viewer.json
Colours, size, arrangement of panels and the runs opened last; by default below
.IR ~/.config .
It is written when one of them changes and is the only file that the viewer writes by itself.
It may be deleted at any time.
.SH SEE ALSO
.BR onbeat (1)
";

/// The manual page in roff.
#[must_use]
pub fn man() -> Vec<u8> {
    let mut page = Vec::new();
    let man = Man::new(Arguments::command());
    man.render(&mut page).expect("writing to memory cannot fail");
    page.extend(FILES.bytes());
    page
}

/// The completion script of one shell.
#[must_use]
pub fn completions(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    let mut command = Arguments::command();
    clap_complete::generate(shell, &mut command, "onbeat-viewer", &mut script);
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_and_the_completions_know_the_options() {
        let page = String::from_utf8(man()).expect("ours is text");
        for option in ["screenshot", "no\\-settings", "panel"] {
            assert!(page.contains(option), "{option}");
        }
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = String::from_utf8(completions(shell)).expect("ours is text");
            assert!(script.contains("no-settings"), "{shell}");
        }
    }
}
