//! The file of a run's log until the run has begun.
//!
//! A run that never begins leaves no log behind, however it ends, and takes none away: a log has
//! its name, and takes that of an earlier one, when it has its first blocks; one that is put
//! together from others, when it is whole. What is written into the file is [`super::writer`]'s
//! business.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{EngineError, beside, output};
use crate::last_words;

/// A new log, readable by its owner only. Gone when dropped before [`LogFile::keep`].
#[derive(Debug)]
pub struct LogFile {
    file: File,
    /// Where it will be found.
    path: PathBuf,
    /// Where it is until then.
    beside: PathBuf,
    /// Whether it may take the place of another.
    overwrite: bool,
    kept: bool,
}

impl LogFile {
    /// Creates the log of a run; never through a symbolic link.
    ///
    /// # Errors
    /// As [`output::check`], or when the system refuses.
    pub fn create(path: &Path, overwrite: bool) -> Result<Self, EngineError> {
        output::check(path, overwrite)?;
        let (file, beside) = beside::create(path, true, "new")
            .map_err(|source| output::refused("create the run log", path, source))?;
        last_words::take_along(Some(&beside));
        Ok(Self { file, path: path.to_owned(), beside, overwrite, kept: false })
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
        if let Err(error) = beside::settle(&self.beside, &self.path, self.overwrite) {
            // It may have been made meanwhile.
            output::check(&self.path, self.overwrite)?;
            return Err(output::refused("put the run log at", &self.path, error));
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
            let _ = std::fs::remove_file(&self.beside);
        }
    }
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
        let log = LogFile::create(&path, false).expect("nothing is there");
        assert!(!path.exists(), "whoever is killed before it began leaves no log");
        drop(log);
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
        let other = folder.path().join("other.beat");
        let two = [(), ()].map(|()| LogFile::create(&other, false).expect("nothing is there"));
        let kept = two.map(LogFile::keep);
        assert!(kept[0].is_ok());
        let words = kept[1].as_ref().expect_err("another run was quicker").to_string();
        assert!(words.contains("other.beat exists; name another file"), "{words}");
        assert_eq!(files(), 2);
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
