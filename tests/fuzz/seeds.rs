//! The corpus: small inputs of our own making, one folder a target, and what was once found.
//!
//! Files are read in the order of their names, so that a run's inputs depend on nothing else. What
//! a run finds is written elsewhere; whoever mends it moves the file here.

use std::io;
use std::path::PathBuf;

/// Where the corpus of `target` is.
#[must_use]
pub fn folder(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target)
}

/// The inputs of `target`'s corpus; none if it has no folder.
///
/// # Errors
/// When the folder or a file in it cannot be read.
pub fn read(target: &str) -> io::Result<Vec<Vec<u8>>> {
    let entries = match std::fs::read_dir(folder(target)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    files.sort();
    files.into_iter().map(std::fs::read).collect()
}
