//! Read-only bytes of a log file, mapped when it is large and copied when it is not.
//!
//! A mapped file that is cut short under us ends the process (SIGBUS), and a run that is still
//! being written may be replaced at any moment. So files below [`COPY_BELOW`] are simply read into
//! memory, where nothing can happen to them: at the disk's speed that costs well under a second.
//! Larger files are mapped, only for as long as the run is being built, so that opening them needs
//! no second copy; [`Bytes::shrank`] lets the reader stop when the file has become shorter. What
//! remains is the instant between that check and the next page; the engine never shortens a log.
//! Where mapping is refused (some network and FUSE file systems) the file is read instead. This is
//! the viewer's only module with `unsafe`.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

/// Files below this many bytes are copied rather than mapped.
pub const COPY_BELOW: u64 = 64 * 1024 * 1024;

/// A file's bytes as they were when it was opened; bytes appended later are not part of them.
#[derive(Debug)]
pub struct Bytes {
    file: File,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Copied(Vec<u8>),
    Mapped(memmap2::Mmap),
}

impl Bytes {
    /// Opens and maps or reads a file.
    ///
    /// # Errors
    /// The operating system's, for a file that cannot be opened, is a directory, a pipe or a
    /// device, or cannot be read.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::open_copying_below(path, COPY_BELOW)
    }

    fn open_copying_below(path: &Path, limit: u64) -> io::Result<Self> {
        // Looked at before it is opened: opening a pipe that nobody writes to would wait forever,
        // and a device may never end.
        let metadata = path.metadata()?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if !metadata.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is not a regular file; a run log is one",
            ));
        }
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        // An empty file maps badly.
        if length >= limit
            && length > 0
            && let Ok(map) = map(&file)
        {
            return Ok(Self { file, content: Content::Mapped(map) });
        }
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
        file.read_to_end(&mut bytes)?;
        Ok(Self { file, content: Content::Copied(bytes) })
    }

    /// The bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        match &self.content {
            Content::Copied(bytes) => bytes,
            Content::Mapped(map) => map,
        }
    }

    /// Whether the bytes are mapped and their file has become shorter since: reading on may touch a
    /// page that is gone. A copy cannot shrink.
    #[must_use]
    pub fn shrank(&self) -> bool {
        match &self.content {
            Content::Copied(_) => false,
            Content::Mapped(map) => {
                let now = self.file.metadata().map_or(0, |metadata| metadata.len());
                now < map.len() as u64
            }
        }
    }
}

#[expect(unsafe_code, reason = "mapping a file is unsafe by nature; see the module's header")]
fn map(file: &File) -> io::Result<memmap2::Mmap> {
    // SAFETY: the map is read-only and private to this process. Another process may still write to
    // the file: the decoder treats the bytes as hostile and never reads one of them twice where a
    // change between the reads would matter for memory safety (it only slices within the length
    // fixed here). Shortening is handled as the module's header says.
    let map = unsafe { memmap2::Mmap::map(file) }?;
    // The decoder goes through the file once, from front to back.
    #[cfg(unix)]
    let _ = map.advise(memmap2::Advice::Sequential);
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copied_and_mapped_bytes_are_the_files() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("log.beat");
        let written: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        std::fs::write(&path, &written).expect("written");
        let copied = Bytes::open(&path).expect("opened");
        assert!(matches!(copied.content, Content::Copied(_)));
        let mapped = Bytes::open_copying_below(&path, 0).expect("opened");
        assert!(matches!(mapped.content, Content::Mapped(_)));
        assert_eq!(copied.as_slice(), written);
        assert_eq!(mapped.as_slice(), written);
    }

    #[test]
    fn a_file_that_grows_keeps_its_length_and_one_that_shrinks_says_so() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("log.beat");
        std::fs::write(&path, vec![7; 20_000]).expect("written");
        let mapped = Bytes::open_copying_below(&path, 0).expect("opened");
        let copied = Bytes::open(&path).expect("opened");
        std::fs::write(&path, vec![7; 30_000]).expect("grown");
        assert_eq!(mapped.as_slice().len(), 20_000);
        File::options().write(true).open(&path).and_then(|file| file.set_len(10)).expect("cut");
        assert!(mapped.shrank());
        assert!(!copied.shrank());
        assert_eq!(copied.as_slice().len(), 20_000);
    }

    #[test]
    fn empty_files_and_directories_do_not_map() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("empty.beat");
        std::fs::write(&path, []).expect("written");
        let empty = Bytes::open_copying_below(&path, 0).expect("opened");
        assert!(empty.as_slice().is_empty());
        let refused = Bytes::open(folder.path()).expect_err("a directory is no log");
        assert_eq!(refused.kind(), io::ErrorKind::IsADirectory);
        let refused = Bytes::open(Path::new("/dev/zero")).expect_err("it has no end");
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    }
}
