//! What changes when a file is written to or replaced, to tell whether it is still the same one.
//!
//! A trace is read while others may write to it. Whoever reads it notes a [`Stamp`] first and looks
//! again at the end: what was read in between is one state of the file, or it is refused. Not found
//! out are who sets a file's times back on purpose, and a single write that began before the file
//! was opened and goes on meanwhile: the system notes a write's time when it begins.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::trace::TraceError;

/// A file's identity, length and last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl Stamp {
    /// Of what is known of a file. Its links and rights do not count: a file may be deleted or
    /// renamed while it is read.
    pub(crate) fn of(meta: &Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            bytes: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
        }
    }

    /// The file's length in bytes.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// The refusal of a file that is another by the time it was read.
pub(crate) fn changed(path: &Path) -> TraceError {
    TraceError::file(path, "changed while it was read; leave it alone meanwhile")
}
