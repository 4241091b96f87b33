//! The file of a run's log until the run has begun.
//!
//! A run that never begins leaves no log behind, and takes none away: a log that is to be replaced
//! stays where it is until the new one has its first blocks. What is written into the file is
//! [`super::writer`]'s business.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::error::{EngineError, output};
use crate::last_words;

/// A new log, readable by its owner only. Gone when dropped before [`LogFile::keep`].
#[derive(Debug)]
pub struct LogFile {
    file: File,
    /// Where it will be found.
    path: PathBuf,
    /// Where it is until then, if that is elsewhere.
    beside: Option<PathBuf>,
    kept: bool,
}

impl LogFile {
    /// Creates the log of a run; never through a symbolic link.
    ///
    /// # Errors
    /// As [`output::check`], or when the system refuses.
    pub fn create(path: &Path, overwrite: bool) -> Result<Self, EngineError> {
        let beside = output::check(path, overwrite)?.then(|| name_beside(path));
        let place = beside.as_deref().unwrap_or(path);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(place)
            .map_err(|source| output::refused("create the run log", path, source))?;
        last_words::take_along(Some(place));
        Ok(Self { file, path: path.to_owned(), beside, kept: false })
    }

    /// The file to write to.
    ///
    /// # Errors
    /// When the system has no descriptor left.
    pub fn writer(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// The run has begun: from now on the log is found under its name, whatever happens.
    ///
    /// # Errors
    /// When it cannot be put there; it is gone then.
    pub fn keep(mut self) -> Result<(), EngineError> {
        if let Some(beside) = &self.beside {
            std::fs::rename(beside, &self.path)
                .map_err(|source| EngineError::io("replace the run log", &self.path, source))?;
        }
        self.kept = true;
        last_words::take_along(None);
        Ok(())
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        if !self.kept {
            last_words::take_along(None);
            let _ = std::fs::remove_file(self.beside.as_deref().unwrap_or(&self.path));
        }
    }
}

/// A name in the same folder, so that the file can be renamed into its place; of its own name only
/// as much as leaves it a name.
fn name_beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let begin = &name[..name.floor_char_boundary(200)];
    path.with_file_name(format!(".{begin}.{}.new", std::process::id()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_log_is_replaced_when_the_run_has_begun_and_not_before() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("run.beat");
        let files = || std::fs::read_dir(folder.path()).expect("a folder").count();
        drop(LogFile::create(&path, false).expect("nothing is there"));
        assert_eq!(files(), 0, "a run that did not begin");
        std::fs::write(&path, "precious").expect("writable");
        assert!(LogFile::create(&path, false).is_err());
        drop(LogFile::create(&path, true).expect("it may be replaced"));
        assert_eq!(std::fs::read(&path).expect("still there"), b"precious");
        let log = LogFile::create(&path, true).expect("it may be replaced");
        log.writer().expect("a descriptor").write_all(b"new").expect("writable");
        log.keep().expect("the same folder");
        assert_eq!(std::fs::read(&path).expect("replaced"), b"new");
        assert_eq!(files(), 1);
    }

    #[test]
    fn nothing_but_a_regular_file_is_replaced() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        std::fs::write(&target, "precious").expect("writable");
        std::os::unix::fs::symlink(&target, &link).expect("a link");
        for wrong in [link.as_path(), folder.path()] {
            assert_eq!(LogFile::create(wrong, true).expect_err("refused").exit_code(), 2);
        }
    }
}
