//! What a run can fail with, as the person who started it reads it.
//!
//! Every stage has its own small error enum that names the thing; here each is joined with the path
//! or flag it came from and gets an exit code. Server misbehaviour is never an error: it is an
//! outcome in the log. This file does not print.

pub mod beside;
pub(crate) mod lacking;
pub mod output;

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::PathBuf;

use onbeat_shared::foreign::shown_path;

/// The exit code of a run that the user stopped: 128 and the number of SIGINT.
pub const INTERRUPTED: u8 = 130;

/// A failure that ends a command, with the words for its user.
#[derive(Debug)]
pub enum EngineError {
    /// The command line or configuration cannot be meant: exit code 2.
    Usage(String),
    /// An input file or value is wrong: exit code 1. Names file, place, what was found and what
    /// would be right.
    Input(String),
    /// The operating system refused: exit code 1.
    Io {
        /// What was being done, in words ("open the run log").
        action: &'static str,
        /// The file, if there was one.
        path: Option<PathBuf>,
        /// The system's answer.
        source: io::Error,
    },
    /// The run could not start or go on: exit code 1.
    Run(String),
    /// The user stopped the run before it had sent anything: exit code 130, as after that.
    Stopped,
}

impl EngineError {
    /// The process exit code of this failure.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Input(_) | Self::Io { .. } | Self::Run(_) => 1,
            Self::Stopped => INTERRUPTED,
        }
    }

    /// An operating-system failure on a file.
    #[must_use]
    pub fn io(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io { action, path: Some(path.into()), source }
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(words) | Self::Input(words) | Self::Run(words) => out.write_str(words),
            Self::Stopped => out.write_str("stopped before anything was sent"),
            Self::Io { action, path: Some(path), source } => {
                let step = next_step(action, source);
                write!(out, "could not {action} {}: {source}{step}", shown_path(path))
            }
            Self::Io { action, path: None, source } => {
                let step = lacking::step(action, source);
                let step = step.map_or_else(String::new, |words| format!("; {words}"));
                write!(out, "could not {action}: {source}{step}")
            }
        }
    }
}

/// What to do about a file that `action` failed on, where the system's words do not say it.
pub(crate) fn next_step(action: &str, error: &io::Error) -> Cow<'static, str> {
    if let Some(words) = lacking::step(action, error) {
        return format!("; {words}").into();
    }
    match error.kind() {
        io::ErrorKind::NotFound => {
            "; check the name, and from which folder onbeat was started, or give the whole path"
        }
        io::ErrorKind::PermissionDenied => {
            "; let this user read it (chmod, chown), or run onbeat as one who may"
        }
        _ => "",
    }
    .into()
}

impl std::error::Error for EngineError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
