//! A trace file's bytes, read as windows, one after the other.
//!
//! A window is mapped, handed out and unmapped, so that resident memory does not grow with the
//! file; where that cannot be done it is read into a buffer. A file that is cut, written to or on a
//! disk that fails is an error in words ([`super::mapped`]), and one that is deleted or replaced is
//! read to its end, as it was opened. A file counts only if it is the same at its end as when it
//! was opened. All of a trace is parsed before the schedule's zero: nothing reads it while requests
//! are sent.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::limits::TRACE_WINDOW_BYTES;
use crate::trace::TraceError;
use crate::trace::mapped::Mapped;
use crate::trace::stamp::{Stamp, changed};

/// An open trace file, to be read once from start to end.
#[derive(Debug)]
pub(crate) struct Windows<'a> {
    path: &'a Path,
    file: File,
    stamp: Stamp,
    at: u64,
    window: Window,
}

/// The bytes that were handed out last.
#[derive(Debug)]
enum Window {
    Mapped(Mapped),
    Read(Vec<u8>),
}

impl<'a> Windows<'a> {
    /// Opens a file for reading.
    pub(crate) fn open(path: &'a Path) -> Result<Self, TraceError> {
        // Looked at before it is opened: opening a pipe that nobody writes to would wait forever.
        let meta = path.metadata().map_err(|error| TraceError::io("open", path, error))?;
        if meta.is_dir() {
            return Err(TraceError::file(
                path,
                "is a folder; a Bailian or Mooncake trace is one JSON Lines file",
            ));
        }
        if !meta.is_file() {
            return Err(TraceError::file(
                path,
                "is not a regular file; a trace is read more than once, so write it to a file first",
            ));
        }
        let file = File::open(path).map_err(|error| TraceError::io("open", path, error))?;
        let meta = file.metadata().map_err(|error| TraceError::io("look at", path, error))?;
        let window = Window::Read(Vec::new());
        Ok(Self { path, file, stamp: Stamp::of(&meta), at: 0, window })
    }

    /// The file's size in bytes when it was opened.
    pub(crate) const fn len(&self) -> u64 {
        self.stamp.bytes()
    }

    /// The next window; `None` at the end of a file that is still the same.
    pub(crate) fn next_window(&mut self) -> Result<Option<&[u8]>, TraceError> {
        let left = self.len() - self.at;
        if left == 0 || self.is_torn() {
            self.check()?;
        }
        if left == 0 {
            return Ok(None);
        }
        if self.file.metadata().is_ok_and(|meta| meta.len() < self.len()) {
            return Err(self.cut());
        }
        let len = usize::try_from(left).map_or(TRACE_WINDOW_BYTES, |l| l.min(TRACE_WINDOW_BYTES));
        // The last one goes first, so that there is never more than one.
        let mut buffer = match std::mem::replace(&mut self.window, Window::Read(Vec::new())) {
            Window::Read(buffer) => buffer,
            Window::Mapped(_) => Vec::new(),
        };
        self.window = match Mapped::of(&self.file, self.at, len) {
            Some(window) => Window::Mapped(window),
            None => {
                buffer.resize(len, 0);
                self.file.read_exact_at(&mut buffer, self.at).map_err(|error| {
                    let is_short = error.kind() == io::ErrorKind::UnexpectedEof;
                    if is_short { self.cut() } else { TraceError::io("read", self.path, error) }
                })?;
                Window::Read(buffer)
            }
        };
        self.at += len as u64;
        Ok(Some(match &self.window {
            Window::Mapped(window) => window,
            Window::Read(buffer) => buffer,
        }))
    }

    /// Whether some bytes of the last window were not there when they were read.
    fn is_torn(&self) -> bool {
        matches!(&self.window, Window::Mapped(window) if window.is_torn())
    }

    /// Whether the file is still as it was opened.
    ///
    /// # Errors
    /// That it changed, when it did.
    pub(crate) fn check(&self) -> Result<(), TraceError> {
        let meta = self.file.metadata();
        let meta = meta.map_err(|error| TraceError::io("look at", self.path, error))?;
        let now = Stamp::of(&meta);
        if now.bytes() < self.len() {
            return Err(self.cut());
        }
        if now != self.stamp {
            return Err(changed(self.path));
        }
        if self.is_torn() {
            let words = "could not be read whole: a part of it was not there, or its disk failed";
            return Err(TraceError::file(self.path, words));
        }
        Ok(())
    }

    fn cut(&self) -> TraceError {
        let now = self.file.metadata().map_or(0, |meta| meta.len());
        TraceError::file(
            self.path,
            format!(
                "was cut from {} to {now} bytes while it was read; right would be a file that \
                 nobody writes to",
                self.len()
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn windows_follow_each_other_to_the_end() {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        let bytes: Vec<u8> = (0..=255).cycle().take(TRACE_WINDOW_BYTES + 5).collect();
        file.write_all(&bytes).expect("written");
        let mut windows = Windows::open(file.path()).expect("opens");
        let mut read = Vec::new();
        while let Some(window) = windows.next_window().expect("reads") {
            read.extend_from_slice(window);
        }
        assert!(read == bytes, "every byte comes once, in order");
    }

    #[test]
    fn a_file_cut_between_windows_is_an_error() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.as_file().set_len(TRACE_WINDOW_BYTES as u64 * 2).expect("grows");
        let mut windows = Windows::open(file.path()).expect("opens");
        assert!(windows.next_window().expect("reads").is_some());
        file.as_file().set_len(10).expect("shrinks");
        let words = windows.next_window().expect_err("cut").to_string();
        assert!(words.contains("to 10 bytes"), "{words}");
    }

    #[test]
    fn a_file_that_is_written_to_is_refused_and_a_deleted_one_is_read_to_its_end() {
        for (written, deleted) in [(false, false), (false, true), (true, false), (true, true)] {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let path = folder.path().join("trace");
            std::fs::write(&path, "some bytes").expect("written");
            let writing = std::fs::OpenOptions::new().write(true).open(&path).expect("writable");
            let past = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1);
            writing.set_modified(past).expect("its owner may");
            let mut windows = Windows::open(&path).expect("opens");
            assert_eq!(windows.next_window().expect("reads"), Some(b"some bytes".as_slice()));
            if deleted {
                std::fs::remove_file(&path).expect("it is there");
            }
            if written {
                writing.write_all_at(b"S", 0).expect("written");
                let words = windows.next_window().expect_err("another").to_string();
                assert!(words.contains("changed while it was read"), "{words}");
            } else {
                assert_eq!(windows.next_window().expect("the same"), None);
            }
        }
    }

    #[test]
    fn a_pipe_is_refused_without_waiting_for_its_writer() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
        assert!(made.success());
        let words = Windows::open(&pipe).expect_err("no file").to_string();
        assert!(words.contains("not a regular file"), "{words}");
    }

    #[test]
    fn a_folder_is_told_apart() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let words = Windows::open(folder.path()).expect_err("no file").to_string();
        assert!(words.contains("is a folder"), "{words}");
    }
}
