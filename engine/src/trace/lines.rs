//! A file's windows as physical lines, with their numbers, and the file's digest on the way.
//!
//! A line ends at LF; a CR before it, a UTF-8 mark at the start of the file and a missing last LF
//! are forgiven, and lines of blanks are skipped but counted, so that an error names the line an
//! editor shows. A line is copied before anybody looks into it: its file may be written to
//! meanwhile, and what was checked once is then still so. A compressed file's lines are those of
//! what is in it, and its digest is its own.

use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::thread;

use memchr::{memchr, memchr_iter};
use sha2::{Digest, Sha256};

use crate::limits::TRACE_LINE_BYTES_MAX;
use crate::trace::TraceError;
use crate::trace::packed::{Packing, Unpacker};
use crate::trace::windows::Windows;

/// What is known of a file once all its lines were read.
#[derive(Debug)]
pub(crate) struct FileFacts {
    /// SHA-256, 64 hexadecimal digits.
    pub(crate) sha256: String,
    /// Bytes.
    pub(crate) bytes: u64,
}

/// Calls `each` with the number and the bytes of every line that is not blank.
pub(crate) fn for_each_line(
    path: &Path,
    each: impl FnMut(u64, &[u8]) -> Result<(), TraceError>,
) -> Result<FileFacts, TraceError> {
    let most = TRACE_LINE_BYTES_MAX;
    let (carried, line) = (Vec::new(), Vec::new());
    let mut splitter = Splitter { path, each, number: 0, carried, line, most };
    if let Some(packing) = Packing::of_file(path)? {
        let mut file = Unpacker::open(path, packing)?;
        splitter.most = file.together_max();
        while let Some(window) = file.next_window()? {
            let split = splitter.split(window);
            split.or_else(|error| file.check().and(Err(error)))?;
        }
        splitter.finish()?;
        return file.facts();
    }
    let mut file = Windows::open(path)?;
    let mut digest = Sha256::new();
    while let Some(window) = file.next_window()? {
        let split = digested_beside(path, &mut digest, window, || splitter.split(window));
        // What is wrong with a row that was written over meanwhile helps nobody.
        split.or_else(|error| file.check().and(Err(error)))?;
    }
    splitter.finish()?;
    Ok(FileFacts { sha256: hexadecimal(&digest.finalize()), bytes: file.len() })
}

/// Cuts windows into lines.
struct Splitter<'a, F> {
    path: &'a Path,
    each: F,
    /// Lines so far.
    number: u64,
    /// The start of a line whose end is in no window yet.
    carried: Vec<u8>,
    /// Room for a line that is whole in its window.
    line: Vec<u8>,
    /// Longest line.
    most: usize,
}

impl<F: FnMut(u64, &[u8]) -> Result<(), TraceError>> Splitter<'_, F> {
    fn split(&mut self, window: &[u8]) -> Result<(), TraceError> {
        let mut rest = window;
        if !self.carried.is_empty() {
            let end = memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
            if self.carried.len() + end > self.most {
                return Err(too_long(self.path, self.number + 1, self.most));
            }
            self.carried.extend_from_slice(&rest[..end]);
            rest = &rest[end..];
            if self.carried.last() == Some(&b'\n') {
                let line = std::mem::take(&mut self.carried);
                self.take(&line)?;
                self.carried = line;
                self.carried.clear();
            }
        }
        let mut start = 0;
        let mut line = std::mem::take(&mut self.line);
        for end in memchr_iter(b'\n', rest) {
            line.clear();
            line.extend_from_slice(&rest[start..end]);
            self.take(&line)?;
            start = end + 1;
        }
        self.line = line;
        self.carried.extend_from_slice(&rest[start..]);
        Ok(())
    }

    /// Takes what is left as the last line.
    fn finish(&mut self) -> Result<(), TraceError> {
        let line = std::mem::take(&mut self.carried);
        if line.is_empty() { Ok(()) } else { self.take(&line) }
    }

    fn take(&mut self, line: &[u8]) -> Result<(), TraceError> {
        self.number += 1;
        let line = trimmed(self.number, line);
        if line.is_empty() { Ok(()) } else { (self.each)(self.number, line) }
    }
}

/// Does `work` while another thread adds `window` to `digest`. For a small window a thread is not
/// worth its start.
fn digested_beside(
    path: &Path,
    digest: &mut Sha256,
    window: &[u8],
    work: impl FnOnce() -> Result<(), TraceError>,
) -> Result<(), TraceError> {
    const WORTH_A_THREAD: usize = 256 * 1024;
    if window.len() < WORTH_A_THREAD {
        digest.update(window);
        return work();
    }
    thread::scope(|scope| {
        let started = thread::Builder::new()
            .name("digest".to_owned())
            .spawn_scoped(scope, || digest.update(window));
        // The scope waits for it.
        started.map_err(|error| TraceError::io("start a thread to read", path, error))?;
        work()
    })
}

/// The start of a file's text up to its first line's end, at most a few kilobytes; `None` when it
/// is no regular file, which whoever reads it says.
pub(crate) fn first_line(path: &Path) -> Result<Option<Vec<u8>>, TraceError> {
    const BYTES: u16 = 4096;
    let start = match Packing::of_file(path)? {
        Some(packing) => {
            let mut file = Unpacker::open(path, packing)?;
            let window = file.next_window()?.unwrap_or_default();
            Some(window[..window.len().min(BYTES.into())].to_vec())
        }
        None => start_of(path, BYTES.into())?,
    };
    Ok(start.map(|mut start| {
        start.truncate(memchr(b'\n', &start).unwrap_or(start.len()));
        start
    }))
}

/// The first bytes of a file, at most so many; `None` when it is no regular file.
pub(crate) fn start_of(path: &Path, bytes: u64) -> Result<Option<Vec<u8>>, TraceError> {
    if !path.is_file() {
        return Ok(None);
    }
    let file = File::open(path).map_err(|error| TraceError::io("open", path, error))?;
    let mut start = Vec::new();
    let read = file.take(bytes).read_to_end(&mut start);
    read.map_err(|error| TraceError::io("read", path, error))?;
    Ok(Some(start))
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a String takes everything");
    }
    text
}

/// A line without its end, the blanks around it and the file's UTF-8 mark.
fn trimmed(number: u64, line: &[u8]) -> &[u8] {
    let mark = if number == 1 { line.strip_prefix(b"\xef\xbb\xbf") } else { None };
    mark.unwrap_or(line).trim_ascii()
}

fn too_long(path: &Path, line: u64, most: usize) -> TraceError {
    let packed = match most {
        TRACE_LINE_BYTES_MAX => "",
        _ => "; if so small a file is meant to have such a line, unpack it first",
    };
    TraceError::file(
        path,
        format!(
            "line {line} is longer than {most} bytes; right would be one JSON object a line{packed}"
        ),
    )
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;
    use crate::limits::{TRACE_UNPACK_BYTES_FREE, TRACE_WINDOW_BYTES};

    fn lines(bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(bytes).expect("written");
        let mut found = Vec::new();
        for_each_line(file.path(), |number, line| {
            found.push((number, line.to_vec()));
            Ok(())
        })
        .expect("reads");
        found
    }

    #[test]
    fn a_line_stays_as_it_was_whatever_is_written_into_its_file_meanwhile() {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all("é first\nsecond\n".as_bytes()).expect("written");
        let mut seen = Vec::new();
        let read = for_each_line(file.path(), |_number, line| {
            let text = std::str::from_utf8(line).expect("it was text");
            std::os::unix::fs::FileExt::write_all_at(file.as_file(), b"\xc3\xc3\xc3", 0)
                .expect("written");
            seen.push((text.to_owned(), line.to_vec()));
            Ok(())
        });
        assert_eq!(seen[0].0, "é first");
        assert!(seen.iter().all(|(text, line)| text.as_bytes() == line), "{seen:?}");
        // Whether that is told is the file's times' to say.
        drop(read);
    }

    #[test]
    fn marks_carriage_returns_and_blank_lines_keep_physical_numbers() {
        let found = lines(b"\xef\xbb\xbf\r\n{1}\r\n \t\r\n{2}");
        assert_eq!(found, [(2, b"{1}".to_vec()), (4, b"{2}".to_vec())]);
        assert_eq!(lines(b"\xef\xbb\xbf{1}\n"), [(1, b"{1}".to_vec())]);
        assert!(lines(b"").is_empty());
    }

    #[test]
    fn a_line_may_cross_windows() {
        let long = vec![b'x'; TRACE_WINDOW_BYTES * 2 + 3];
        let mut bytes = b"a\n".to_vec();
        bytes.extend_from_slice(&long);
        bytes.extend_from_slice(b"\nb\n");
        let found = lines(&bytes);
        assert_eq!(found.len(), 3);
        assert_eq!(found[1], (2, long));
        assert_eq!(found[2], (3, b"b".to_vec()));
    }

    #[test]
    fn a_line_that_a_small_file_unpacks_to_without_end_is_refused() {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        let line = std::io::repeat(b'x').take(TRACE_UNPACK_BYTES_FREE + 1);
        let line = b"a\n".as_slice().chain(line);
        zstd::stream::copy_encode(line, file.as_file_mut(), 1).expect("written");
        let read = for_each_line(file.path(), |_, _| Ok(()));
        let words = read.expect_err("a bomb").to_string();
        assert!(words.contains("line 2 is longer than 134217728 bytes"), "{words}");
    }

    #[test]
    fn the_digest_is_of_the_whole_file() {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(b"abc").expect("written");
        let facts = for_each_line(file.path(), |_, _| Ok(())).expect("reads");
        assert_eq!(
            facts.sha256,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(facts.bytes, 3);
    }
}
