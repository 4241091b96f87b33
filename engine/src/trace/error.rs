//! Why a trace file cannot be used: where, which field, what was found and what would be right.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use onbeat_shared::foreign::{printable, shown, shown_path};

use crate::error::{EngineError, next_step};

/// A trace that cannot be loaded.
#[derive(Debug)]
pub enum TraceError {
    /// The operating system refused.
    Io {
        /// What was being done ("open the trace").
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The file as a whole is nothing we read.
    File {
        /// The file.
        path: PathBuf,
        /// What was found and what would be right.
        words: String,
    },
    /// One row is wrong.
    Row {
        /// The file.
        path: PathBuf,
        /// 1-based physical line.
        line: u64,
        /// What is wrong with it.
        fault: Fault,
    },
    /// One place of a file that is a tree is wrong.
    Entry {
        /// The file.
        path: PathBuf,
        /// Where in it: `requests[3].requests[0]`; empty for the whole of it.
        at: String,
        /// What is wrong with it.
        fault: Fault,
    },
    /// One row of a file that has no lines is wrong.
    Cell {
        /// The file.
        path: PathBuf,
        /// 1-based row.
        row: u64,
        /// What is wrong with it.
        fault: Fault,
    },
}

/// What is wrong with a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The field, when one is to blame.
    pub field: Option<&'static str>,
    /// What was found.
    pub found: String,
    /// What would be right.
    pub right: String,
}

impl Fault {
    /// A fault of one field.
    pub(crate) fn field(
        field: &'static str,
        found: impl Into<String>,
        right: impl Into<String>,
    ) -> Self {
        Self { field: Some(field), found: found.into(), right: right.into() }
    }

    /// A fault of the line as a whole.
    pub(crate) fn line(found: impl Into<String>, right: impl Into<String>) -> Self {
        Self { field: None, found: found.into(), right: right.into() }
    }
}

impl TraceError {
    /// The file as a whole is wrong.
    pub(crate) fn file(path: &Path, words: impl Into<String>) -> Self {
        Self::File { path: path.to_owned(), words: words.into() }
    }

    /// A system call failed.
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(field) = self.field {
            write!(out, "field {field:?}: ")?;
        }
        write!(out, "found {}; right would be {}", printable(&self.found), self.right)
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { action, path, source } => {
                let step = next_step(action, source);
                write!(out, "could not {action} {}: {source}{step}", shown_path(path))
            }
            Self::File { path, words } => {
                write!(out, "{}: {}", shown_path(path), printable(words))
            }
            Self::Row { path, line, fault } => {
                write!(out, "{}: line {line}: {fault}", shown_path(path))
            }
            Self::Entry { path, at, fault } if at.is_empty() => {
                write!(out, "{}: {fault}", shown_path(path))
            }
            Self::Entry { path, at, fault } => {
                write!(out, "{}#{}: {fault}", shown_path(path), shown(at))
            }
            Self::Cell { path, row, fault } => {
                write!(out, "{}: row {row}: {fault}", shown_path(path))
            }
        }
    }
}

impl std::error::Error for TraceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<TraceError> for EngineError {
    fn from(error: TraceError) -> Self {
        match error {
            TraceError::Io { action, path, source } => Self::io(action, path, source),
            other => Self::Input(other.to_string()),
        }
    }
}
