//! Files on their way to where they go: whole or not at all, and of several all or none.
//!
//! What is written is as private as the log it is made from: only its owner may read it. Nothing
//! that was there before is ever written to: a file that is replaced keeps its name until the new
//! one is whole. Whether a file may be where it is wanted, and in which words that is refused, is
//! [`crate::error::output`]'s.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::error::{EngineError, output};

/// Most bytes of a file's name that stay in the name of what will replace it.
const KEPT_BYTES: usize = 200;

/// Writes a file whole, or leaves what was there.
pub(super) fn to_file(
    path: &Path,
    force: bool,
    write: impl FnOnce(&File) -> io::Result<()>,
) -> Result<(), EngineError> {
    let mut files = Together::default();
    files.write(path, force, write)?;
    files.keep()
}

/// Files that belong together. Dropped before [`Together::keep`], none of them was ever there.
#[derive(Debug, Default)]
pub(super) struct Together {
    /// Where each is until then, and where it goes.
    written: Vec<(PathBuf, PathBuf)>,
    /// Folders that were made for them, outermost first.
    made: Vec<PathBuf>,
}

impl Together {
    /// Makes a folder for some of them.
    pub(super) fn folder(&mut self, folder: &Path) -> Result<(), EngineError> {
        self.made.extend(output::make_folder(folder)?);
        Ok(())
    }

    /// Writes one of them.
    pub(super) fn write(
        &mut self,
        path: &Path,
        force: bool,
        write: impl FnOnce(&File) -> io::Result<()>,
    ) -> Result<(), EngineError> {
        let replaces = output::check(path, force)?;
        let place = if replaces { beside(path) } else { path.to_owned() };
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&place);
        let file = file.map_err(|error| output::refused("create", path, error))?;
        self.written.push((place, path.to_owned()));
        write(&file).map_err(|error| output::refused("write", path, error))
    }

    /// All are written: they get their names.
    pub(super) fn keep(mut self) -> Result<(), EngineError> {
        while let Some((place, path)) = self.written.last() {
            if place != path {
                fs::rename(place, path).map_err(|error| output::refused("replace", path, error))?;
            }
            // What has its name is not taken away again.
            self.written.pop();
            self.made.clear();
        }
        Ok(())
    }
}

impl Drop for Together {
    fn drop(&mut self) {
        // Half a table would be taken for a whole one. If even this fails, the error that led here
        // has been said.
        for (place, _path) in &self.written {
            let _kept = fs::remove_file(place);
        }
        for folder in self.made.iter().rev() {
            let _kept = fs::remove_dir(folder);
        }
    }
}

/// Where a file is until it replaces one: in the same folder, under a name that begins alike.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let begin = &name[..name.floor_char_boundary(KEPT_BYTES)];
    path.with_file_name(format!("{begin}.{}.part", rustix::process::getpid().as_raw_nonzero()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        let name = |entry: io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
        let mut names: Vec<String> =
            entries.map(|entry| name(entry).into_string().expect("ASCII")).collect();
        names.sort();
        names
    }

    #[test]
    fn of_several_files_all_are_there_or_none_and_no_folder_of_theirs() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("old"), "old").expect("room");
        let write = |files: &mut Together, name: &str| {
            files.write(&at(name), true, |mut file| file.write_all(b"new"))
        };
        for fails in [true, false] {
            let mut files = Together::default();
            files.folder(&at("deep/er")).expect("made");
            for name in ["deep/er/a", "b", "old"] {
                write(&mut files, name).expect("room");
            }
            assert_eq!(fs::read(at("old")).expect("there"), b"old", "until all are written");
            if fails {
                let full = |_file: &File| Err(io::ErrorKind::StorageFull.into());
                let error = files.write(&at("c"), true, full).expect_err("no room");
                assert!(error.to_string().contains("make room"), "{error}");
                drop(files);
                assert_eq!(names(folder.path()), ["old"]);
                assert_eq!(fs::read(at("old")).expect("there"), b"old");
            } else {
                files.keep().expect("a file system");
                assert_eq!(names(folder.path()), ["b", "deep", "old"]);
                assert_eq!(fs::read(at("old")).expect("there"), b"new");
                assert_eq!(fs::read(at("deep/er/a")).expect("there"), b"new");
            }
        }
    }

    #[test]
    fn a_file_with_the_longest_name_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("é".repeat(127));
        for text in ["one", "two"] {
            to_file(&path, true, |mut file| file.write_all(text.as_bytes())).expect("replaced");
            assert_eq!(fs::read_to_string(&path).expect("there"), text);
        }
        assert_eq!(names(folder.path()).len(), 1);
    }
}
