//! Why a log cannot be read at all, in words its owner can act on.
//!
//! Damage inside a log is not an error: it is a warning beside everything that could still be read
//! (see [`super::decode`]). Only a file that holds no run of ours, or one that a newer version must
//! read, ends here.

use std::fmt;

use super::FORMAT_VERSION;

/// A log that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogError {
    /// The file has no bytes.
    Empty,
    /// The file does not begin with a run log's mark.
    NotALog {
        /// Its first bytes, as far as there are any.
        found: Vec<u8>,
    },
    /// The file begins like a run log but ends inside its 64-byte header.
    ShortHeader {
        /// How many bytes there are.
        bytes: usize,
    },
    /// A newer version wrote it and says that this version must not read it.
    Newer {
        /// The version of the format it was written in.
        version: u16,
        /// The oldest version of the format whose readers may read it.
        readable_from: u16,
    },
    /// The header is whole but states a layout that this version of the format does not have.
    Layout {
        /// Which size.
        what: &'static str,
        /// What the file says.
        found: u64,
        /// What it must be.
        expected: u64,
    },
    /// No manifest could be read: the file ends before it or it is damaged.
    NoManifest {
        /// What was found in its place.
        reason: String,
    },
    /// The caller stopped the reading.
    Cancelled,
}

impl fmt::Display for LogError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => out.write_str("the file is empty; a run log is never empty"),
            Self::NotALog { found } => write!(
                out,
                "not an Onbeat run log: it begins with {}, a log begins with \\x89BEAT",
                found.escape_ascii()
            ),
            Self::ShortHeader { bytes } => write!(
                out,
                "the log ends after {bytes} bytes, inside its 64-byte header; nothing was recorded"
            ),
            Self::Newer { version, readable_from } => write!(
                out,
                "the log has format version {version} and needs a reader of version \
                 {readable_from} or newer; this one reads up to {FORMAT_VERSION}: use a newer onbeat"
            ),
            Self::Layout { what, found, expected } => write!(
                out,
                "the log's header says {what} is {found}; this format version has {expected}"
            ),
            Self::NoManifest { reason } => {
                write!(out, "the log has no readable manifest: {reason}")
            }
            Self::Cancelled => out.write_str("reading was stopped"),
        }
    }
}

impl std::error::Error for LogError {}
