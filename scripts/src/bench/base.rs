//! The engine of another revision: checked out below `target`, built apart, gone again afterwards.
//!
//! The checkout is a worktree of its own, so that neither the user's files nor his build are
//! touched; what was compiled for it stays, so that the next comparison builds quickly.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process;

/// A worktree, taken away when dropped.
#[derive(Debug)]
pub(super) struct Checkout {
    root: PathBuf,
    tree: PathBuf,
}

impl Checkout {
    /// Checks `revision` out.
    pub(super) fn new(root: &Path, revision: &str) -> Result<Self, String> {
        let tree = root.join("target/bench/base-tree");
        let checkout = Self { root: root.to_owned(), tree };
        // What a run that was killed left behind.
        checkout.remove();
        let add = ["worktree", "add", "--quiet", "--force", "--detach"];
        process::run(checkout.git().args(add).arg(&checkout.tree).arg(revision))?;
        Ok(checkout)
    }

    /// Builds the engine and returns its binary.
    pub(super) fn engine(&self) -> Result<PathBuf, String> {
        let target = self.root.join("target/bench/base");
        let build = ["build", "--release", "--locked", "--package", "onbeat", "--bin", "onbeat"];
        process::run(process::cargo(&self.tree).args(build).arg("--target-dir").arg(&target))?;
        Ok(target.join("release/onbeat"))
    }

    fn git(&self) -> Command {
        let mut git = Command::new("git");
        git.arg("-C").arg(&self.root);
        git
    }

    fn remove(&self) {
        if self.tree.exists() {
            let remove = ["worktree", "remove", "--force"];
            // A tree that cannot be removed is told by the next checkout.
            let _ = process::run(self.git().args(remove).arg(&self.tree));
        }
        let _ = process::run(self.git().args(["worktree", "prune"]));
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        self.remove();
    }
}
