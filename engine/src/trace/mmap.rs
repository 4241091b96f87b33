//! The only mapping of trace files: read-only windows, one after the other.
//!
//! A window is mapped, handed out and unmapped, so that resident memory does not grow with the
//! file. Everything in it is copied or parsed before the next one is mapped, and all of a trace is
//! parsed before the schedule's zero: nothing reads the file while requests are sent. The file's
//! length is checked again before each window, so a file that was cut short meanwhile is an error.
//! What is not covered: a file that is cut in the instant between that check and the reading of the
//! window kills the process with SIGBUS, as any mapping would.

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::{Advice, Mmap, MmapOptions};

use crate::limits::TRACE_WINDOW_BYTES;
use crate::trace::TraceError;

/// An open trace file, to be read once from start to end.
#[derive(Debug)]
pub(crate) struct MappedFile<'a> {
    path: &'a Path,
    file: File,
    len: u64,
    at: u64,
}

impl<'a> MappedFile<'a> {
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
                "is not a regular file; a trace is mapped into memory, so write it to a file first",
            ));
        }
        let file = File::open(path).map_err(|error| TraceError::io("open", path, error))?;
        let meta = file.metadata().map_err(|error| TraceError::io("look at", path, error))?;
        Ok(Self { path, file, len: meta.len(), at: 0 })
    }

    /// The file's size in bytes when it was opened.
    pub(crate) const fn len(&self) -> u64 {
        self.len
    }

    /// The next window; `None` at the end of the file.
    pub(crate) fn next_window(&mut self) -> Result<Option<Mmap>, TraceError> {
        let left = self.len - self.at;
        if left == 0 {
            return Ok(None);
        }
        let meta = self.file.metadata().map_err(|error| self.io("look at", error))?;
        if meta.len() < self.len {
            return Err(TraceError::file(
                self.path,
                format!(
                    "was cut from {} to {} bytes while it was read; right would be a file that \
                     nobody writes to",
                    self.len,
                    meta.len()
                ),
            ));
        }
        let len = usize::try_from(left).map_or(TRACE_WINDOW_BYTES, |l| l.min(TRACE_WINDOW_BYTES));
        let window = map(&self.file, self.at, len).map_err(|error| self.io("map", error))?;
        // Reading ahead is a hint: a system that refuses it reads all the same.
        let _refused = window.advise(Advice::Sequential);
        self.at += len as u64;
        Ok(Some(window))
    }

    fn io(&self, action: &'static str, error: io::Error) -> TraceError {
        TraceError::io(action, self.path, error)
    }
}

#[expect(unsafe_code, reason = "a file can only be mapped through an unsafe call")]
fn map(file: &File, offset: u64, len: usize) -> io::Result<Mmap> {
    // SAFETY: the mapping is read-only and lives only while its window is parsed. The bytes may
    // change under us when someone writes to the file: they are copied out line by line before
    // anything is assumed about them (UTF-8 is checked on the copy), so a change gives a parse
    // error or another number, never undefined behaviour in what we derive. A cut file is checked
    // for above; the instant that check cannot cover ends in SIGBUS, not in wrong memory.
    unsafe { MmapOptions::new().offset(offset).len(len).map(file) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn windows_follow_each_other_to_the_end() {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        let bytes: Vec<u8> = (0..=255).cycle().take(TRACE_WINDOW_BYTES + 5).collect();
        file.write_all(&bytes).expect("written");
        let mut mapped = MappedFile::open(file.path()).expect("opens");
        let mut read = Vec::new();
        while let Some(window) = mapped.next_window().expect("maps") {
            read.extend_from_slice(&window);
        }
        assert!(read == bytes, "every byte comes once, in order");
    }

    #[test]
    fn a_file_cut_between_windows_is_an_error() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.as_file().set_len(TRACE_WINDOW_BYTES as u64 * 2).expect("grows");
        let mut mapped = MappedFile::open(file.path()).expect("opens");
        assert!(mapped.next_window().expect("maps").is_some());
        file.as_file().set_len(10).expect("shrinks");
        let words = mapped.next_window().expect_err("cut").to_string();
        assert!(words.contains("to 10 bytes"), "{words}");
    }

    #[test]
    fn a_pipe_is_refused_without_waiting_for_its_writer() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
        assert!(made.success());
        let words = MappedFile::open(&pipe).expect_err("no file").to_string();
        assert!(words.contains("not a regular file"), "{words}");
    }

    #[test]
    fn a_folder_is_told_apart() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let words = MappedFile::open(folder.path()).expect_err("no file").to_string();
        assert!(words.contains("is a folder"), "{words}");
    }
}
