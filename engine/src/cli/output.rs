//! Files on their way to where they go: whole or not at all, and of several all or none.
//!
//! What is written is as private as the log it is made from: only its owner may read it. A file has
//! its name when it is whole and not before, so that whoever ends the program at any moment leaves
//! no half of one under it, and nothing that was there before is ever written to. Whether a file
//! may be where it is wanted, and in which words that is refused, is [`crate::error::output`]'s.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{EngineError, beside, output};

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
    /// Those that have not got their names yet.
    written: Vec<Written>,
    /// Folders that were made for them, outermost first.
    made: Vec<PathBuf>,
}

/// A file that is written, or being written.
#[derive(Debug)]
struct Written {
    /// Where it is.
    beside: PathBuf,
    /// Where it goes.
    path: PathBuf,
    /// Whether it may take the place of another.
    force: bool,
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
        output::check(path, force)?;
        let created = beside::create(path, false, "part");
        let (file, beside) = created.map_err(|error| output::refused("create", path, error))?;
        self.written.push(Written { beside, path: path.to_owned(), force });
        write(&file).map_err(|error| output::refused("write", path, error))
    }

    /// All are written: they get their names.
    pub(super) fn keep(mut self) -> Result<(), EngineError> {
        while let Some(Written { beside, path, force }) = self.written.last() {
            if let Err(error) = beside::settle(beside, path, *force) {
                // It may have been made meanwhile.
                output::check(path, *force)?;
                return Err(output::refused("put a file at", path, error));
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
        for written in &self.written {
            let _kept = fs::remove_file(&written.beside);
        }
        for folder in self.made.iter().rev() {
            let _kept = fs::remove_dir(folder);
        }
    }
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
    fn a_file_has_its_name_when_it_is_whole_and_takes_nobodys() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("table");
        for force in [false, true] {
            let before = fs::read(&path).ok();
            to_file(&path, force, |mut file| {
                file.write_all(b"half")?;
                assert_eq!(fs::read(&path).ok(), before, "whoever is killed now left no half");
                file.write_all(b" and half")
            })
            .expect("room");
            assert_eq!(fs::read(&path).expect("there"), b"half and half");
        }
        let late = folder.path().join("late");
        let meanwhile = to_file(&late, false, |_file| fs::write(&late, "another's"));
        assert!(meanwhile.expect_err("it came meanwhile").to_string().contains("late"));
        assert_eq!(fs::read(&late).expect("kept"), b"another's");
        assert_eq!(names(folder.path()), ["late", "table"]);
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
