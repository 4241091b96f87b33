//! Why a file cannot be shown, in words its owner can act on.
//!
//! Each kind has a headline, what was found, and what to do. The words are made here, where they
//! can be tested; [`crate::screens`] only draws them. Commands stand in backticks.

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

use onbeat_shared::log::{FORMAT_VERSION, LogError};

use crate::quantity;

/// A file that cannot be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub kind: Kind,
    /// Logs in its place that could be opened instead.
    pub others: Vec<PathBuf>,
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// There is no such file.
    Missing,
    /// We may not read it.
    Forbidden,
    /// It is a folder.
    Folder,
    /// It has no bytes.
    Empty,
    /// It is something else; its first bytes.
    Foreign(Vec<u8>),
    /// It ends inside its header.
    Short {
        /// How many bytes there are.
        bytes: usize,
    },
    /// A newer version wrote it.
    Newer {
        /// Its format version.
        version: u16,
        /// The oldest version whose readers may read it.
        readable_from: u16,
    },
    /// Its header or manifest makes no sense.
    Unreadable(String),
    /// It is another tool's result, and not as it should be.
    Import {
        /// The tool.
        tool: String,
        /// Where and what.
        words: String,
    },
    /// It became shorter while it was read.
    Shrank,
    /// Another file took its place while it was followed.
    Replaced,
    /// The operating system refused, for another reason.
    Io(String),
    /// The user stopped it.
    Cancelled,
    /// The reader failed; a defect of ours.
    Crashed,
}

/// Logs offered instead, at most.
const OTHERS_MAX: usize = 6;

impl Problem {
    /// A problem with a file. Looks for logs beside or in it where that helps.
    #[must_use]
    pub fn new(path: &Path, kind: Kind) -> Self {
        let folder = match kind {
            Kind::Folder => Some(path),
            Kind::Missing => path
                .parent()
                .map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent }),
            _ => None,
        };
        let others = folder.map(logs_in).unwrap_or_default();
        Self { path: path.to_owned(), kind, others }
    }

    /// The operating system's refusal as a problem.
    #[must_use]
    pub fn of_io(path: &Path, error: &io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Kind::Missing,
            io::ErrorKind::PermissionDenied => Kind::Forbidden,
            io::ErrorKind::IsADirectory => Kind::Folder,
            _ => Kind::Io(error.to_string()),
        };
        Self::new(path, kind)
    }

    /// A log's error as a problem.
    #[must_use]
    pub fn of_log(path: &Path, error: LogError) -> Self {
        let kind = match error {
            LogError::Empty => Kind::Empty,
            LogError::NotALog { found } => Kind::Foreign(found),
            LogError::ShortHeader { bytes } => Kind::Short { bytes },
            LogError::Newer { version, readable_from } => Kind::Newer { version, readable_from },
            LogError::Cancelled => Kind::Cancelled,
            error @ (LogError::Layout { .. } | LogError::NoManifest { .. }) => {
                Kind::Unreadable(error.to_string())
            }
        };
        Self::new(path, kind)
    }

    /// One line that says what is wrong.
    #[must_use]
    pub fn headline(&self) -> &'static str {
        match self.kind {
            Kind::Missing => "There is no such file",
            Kind::Forbidden => "This file may not be read",
            Kind::Folder => "This is a folder, not a run log",
            Kind::Empty => "This file is empty",
            Kind::Foreign(_) => "This is not an Onbeat run log",
            Kind::Short { .. } => "This log ends before anything was recorded",
            Kind::Newer { .. } => "A newer Onbeat wrote this log",
            Kind::Unreadable(_) => "This log cannot be read",
            Kind::Import { .. } => "This result cannot be read",
            Kind::Shrank => "This file became shorter while it was read",
            Kind::Replaced => "Another file took this one's place",
            Kind::Io(_) => "This file could not be opened",
            Kind::Cancelled => "Opening was stopped",
            Kind::Crashed => "The viewer failed while reading this file",
        }
    }

    /// What was found.
    #[must_use]
    pub fn found(&self) -> String {
        match &self.kind {
            Kind::Missing => "Nothing is at this path.".to_owned(),
            Kind::Forbidden => "The system refuses to open it for reading.".to_owned(),
            Kind::Folder if self.others.is_empty() => "It holds no file that ends in .beat.".into(),
            Kind::Folder => "It holds run logs; open one of them.".to_owned(),
            Kind::Empty => {
                "It has no bytes at all. A run log has a header from its first moment.".to_owned()
            }
            Kind::Import { tool, words } => format!("It is a result of {tool}: {words}."),
            Kind::Foreign(found) => format!("{} A run log begins with \\x89BEAT.", guess(found)),
            Kind::Short { bytes } => format!(
                "It has {} of the 64 of its header, so the run was stopped at its very start.",
                quantity::counted(*bytes as u64, "byte")
            ),
            Kind::Newer { version, readable_from } => format!(
                "Its format is version {version} and needs a reader of version {readable_from} or \
                 later. This viewer reads versions up to {FORMAT_VERSION}."
            ),
            Kind::Unreadable(reason) => quantity::sentence(reason),
            Kind::Shrank => "Something cut or replaced it in the meantime.".to_owned(),
            Kind::Replaced => {
                "It was still being followed when its name was given to another file, or it was \
                 written anew."
                    .to_owned()
            }
            Kind::Io(reason) => quantity::sentence(reason),
            Kind::Cancelled => "You stopped it before it was complete.".to_owned(),
            Kind::Crashed => "This is a defect of the viewer, not of your file.".to_owned(),
        }
    }

    /// What to do.
    #[must_use]
    pub fn remedy(&self) -> String {
        match &self.kind {
            Kind::Missing => "Check the path, or drop the file onto this window.".to_owned(),
            Kind::Forbidden => format!(
                "Give yourself the right to read it, for example: `chmod u+r '{}'`",
                self.path.display()
            ),
            Kind::Folder => "Choose a file in it (Ctrl+O), or drop one onto the window.".to_owned(),
            Kind::Empty | Kind::Short { .. } => {
                "Nothing can be shown of it. Run `onbeat replay` again; if the run is just starting, \
                 try again in a moment."
                    .to_owned()
            }
            Kind::Import { tool, .. } => {
                format!("Let {tool} write it again, or check that it was copied whole.")
            }
            Kind::Foreign(_) => {
                "Open the .beat file that `onbeat replay` wrote. For a trace, use `onbeat inspect`."
                    .to_owned()
            }
            Kind::Newer { .. } => {
                "Install the Onbeat that wrote it, or a later one. What its \
                 `onbeat report --format json` says can be read anywhere."
                    .to_owned()
            }
            Kind::Unreadable(_) => {
                "Copy the file again from the machine that made it. If the original says the same, \
                 its beginning is damaged and the run is lost."
                    .to_owned()
            }
            Kind::Shrank | Kind::Cancelled => "Try again.".to_owned(),
            Kind::Replaced => "Try again to open the new one.".to_owned(),
            Kind::Io(_) => "Check that it is a plain file, and the disk or the network it is on; \
                            then try again."
                .to_owned(),
            Kind::Crashed => "Please report it, with the file if you may share it.".to_owned(),
        }
    }
}

/// What foreign bytes probably are.
fn guess(found: &[u8]) -> String {
    let known: [(&[u8], &str); 7] = [
        (b"PAR1", "It looks like a Parquet file."),
        (b"\x1f\x8b", "It looks like a gzip archive."),
        (b"\x28\xb5\x2f\xfd", "It looks like a zstd archive."),
        (b"PK\x03\x04", "It looks like a zip archive."),
        (b"\x89PNG", "It looks like a picture."),
        (b"{", "It looks like JSON: a trace, perhaps, or a report."),
        (b"[", "It looks like JSON."),
    ];
    let words = known.iter().find(|(mark, _)| found.starts_with(mark)).map(|&(_, words)| words);
    words.map_or_else(|| format!("It begins with {}.", found.escape_ascii()), str::to_owned)
}

/// The newest logs in a folder, by name where times are equal or unknown.
fn logs_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut logs: Vec<_> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.path().extension() == Some(OsStr::new("beat")))
        // A folder may hold anything; look at no more than a screenful of candidates.
        .take(1_000)
        .map(|entry| (entry.metadata().and_then(|data| data.modified()).ok(), entry.path()))
        .collect();
    logs.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    logs.into_iter().take(OTHERS_MAX).map(|(_, path)| path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_says_what_and_what_to_do() {
        let kinds = [
            Kind::Missing,
            Kind::Forbidden,
            Kind::Folder,
            Kind::Empty,
            Kind::Foreign(b"PAR1".to_vec()),
            Kind::Short { bytes: 9 },
            Kind::Newer { version: 9, readable_from: 7 },
            Kind::Unreadable("no manifest".to_owned()),
            Kind::Import { tool: "AIPerf".to_owned(), words: "line 2: no number".to_owned() },
            Kind::Shrank,
            Kind::Io("disk on fire".to_owned()),
            Kind::Cancelled,
            Kind::Crashed,
        ];
        for kind in kinds {
            let problem = Problem::new(Path::new("/nowhere/run.beat"), kind);
            for words in [problem.headline(), &problem.found(), &problem.remedy()] {
                assert!(words.len() > 5, "{problem:?}");
                assert!(words.chars().next().is_some_and(char::is_uppercase), "{words}");
            }
            assert!(!problem.headline().ends_with('.'));
        }
    }

    #[test]
    fn foreign_bytes_are_named() {
        let words =
            |found: &[u8]| Problem::new(Path::new("x"), Kind::Foreign(found.to_vec())).found();
        assert!(words(b"PAR1\x15\x04").starts_with("It looks like a Parquet file."));
        assert!(words(b"{\"timest").contains("a trace, perhaps"));
        assert!(words(b"\x7fELF").contains("It begins with \\x7fELF."));
    }

    #[test]
    fn a_folder_offers_its_logs() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for name in ["a.beat", "b.beat", "notes.txt"] {
            fs::write(folder.path().join(name), "x").expect("written");
        }
        let problem = Problem::new(folder.path(), Kind::Folder);
        assert_eq!(problem.others.len(), 2);
        assert_eq!(problem.found(), "It holds run logs; open one of them.");
        let missing = Problem::new(&folder.path().join("c.beat"), Kind::Missing);
        assert_eq!(missing.others.len(), 2);
    }
}
