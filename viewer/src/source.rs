//! The bytes of a log file, read piece by piece while the file may grow.
//!
//! Read, never mapped: a mapped file that is cut short under us would end the process, and its
//! pages would count beside the run that is made of them. Reading is the loading thread's business,
//! so a slow disk delays nothing else. A log only ever grows; a file that becomes shorter, or is
//! another one than before, is noticed when it is looked at.

use std::{
    fs::{File, Metadata},
    io::{self, Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

/// Bytes at the file's begin that tell whether it is still the same file.
const HEAD_BYTES: usize = 4_096;

/// A log file.
#[derive(Debug)]
pub struct Source {
    path: PathBuf,
    file: File,
    head: Vec<u8>,
    length: u64,
}

/// What has become of the file since it was last looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    None,
    /// There are more bytes.
    Grown,
    /// There are fewer bytes.
    Shrunk,
    /// Another file is in its place, or it was written anew.
    Replaced,
}

impl Source {
    /// Opens a file.
    ///
    /// # Errors
    /// The operating system's, for a file that cannot be opened or read, is a directory, a pipe or
    /// a device.
    pub fn open(path: &Path) -> io::Result<Self> {
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
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut source = Self { path: path.to_owned(), file, head: Vec::new(), length };
        source.head = source.first_bytes()?;
        Ok(source)
    }

    /// How many bytes there were when it was last looked at.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// Puts up to `most` of the bytes from an offset on into the buffer, in place of what it holds.
    /// Fewer only where the file ends.
    ///
    /// # Errors
    /// The operating system's.
    pub fn read(&mut self, from: u64, most: usize, buffer: &mut Vec<u8>) -> io::Result<()> {
        buffer.resize(most, 0);
        self.file.seek(SeekFrom::Start(from))?;
        let mut filled = 0;
        while filled < most {
            match self.file.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        buffer.truncate(filled);
        Ok(())
    }

    fn first_bytes(&mut self) -> io::Result<Vec<u8>> {
        let mut head = Vec::new();
        self.read(0, HEAD_BYTES, &mut head)?;
        Ok(head)
    }

    /// Looks at the file again.
    ///
    /// # Errors
    /// The operating system's.
    pub fn look(&mut self) -> io::Result<Change> {
        let now = self.file.metadata()?;
        // Moved or deleted, it can still be read. That another one has its name is another matter.
        if self.path.metadata().is_ok_and(|other| !is_same_file(&now, &other)) {
            return Ok(Change::Replaced);
        }
        let before = std::mem::replace(&mut self.length, now.len());
        if now.len() == before {
            return Ok(Change::None);
        }
        if now.len() < before {
            return Ok(Change::Shrunk);
        }
        let head = self.first_bytes()?;
        let same = head.starts_with(&self.head);
        self.head = head;
        Ok(if same { Change::Grown } else { Change::Replaced })
    }
}

#[cfg(unix)]
fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Where files have no number that is easily asked for, their first bytes tell.
#[cfg(not(unix))]
fn is_same_file(_one: &Metadata, _other: &Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn written(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("log.beat");
        fs::write(&path, bytes).expect("written");
        (folder, path)
    }

    #[test]
    fn pieces_are_the_files_and_end_where_it_does() {
        let bytes: Vec<u8> = (0..10_000_u32).flat_map(u32::to_le_bytes).collect();
        let (_folder, path) = written(&bytes);
        let mut source = Source::open(&path).expect("opened");
        assert_eq!(source.length(), 40_000);
        let mut buffer = vec![1, 2, 3];
        source.read(39_000, 500, &mut buffer).expect("read");
        assert_eq!(buffer, bytes[39_000..39_500]);
        source.read(39_900, 500, &mut buffer).expect("read");
        assert_eq!(buffer, bytes[39_900..]);
    }

    #[test]
    fn growing_shrinking_and_being_replaced_are_told_apart() {
        let (_folder, path) = written(&[7; 9_000]);
        let mut source = Source::open(&path).expect("opened");
        assert_eq!(source.look().expect("looked at"), Change::None);
        fs::write(&path, [7; 9_500]).expect("grown");
        assert_eq!(source.look().expect("looked at"), Change::Grown);
        assert_eq!(source.length(), 9_500);
        File::options().write(true).open(&path).and_then(|file| file.set_len(10)).expect("cut");
        assert_eq!(source.look().expect("looked at"), Change::Shrunk);
        fs::write(&path, [8; 9_800]).expect("written anew");
        assert_eq!(source.look().expect("looked at"), Change::Replaced);
    }

    #[cfg(unix)]
    #[test]
    fn another_file_of_its_name_is_another_file() {
        let (_folder, path) = written(&[7; 100]);
        let mut source = Source::open(&path).expect("opened");
        fs::rename(&path, path.with_extension("old")).expect("moved");
        assert_eq!(source.look().expect("looked at"), Change::None, "moved, it stays readable");
        fs::write(&path, [7; 100]).expect("another file");
        assert_eq!(source.look().expect("looked at"), Change::Replaced);
    }

    #[test]
    fn empty_files_are_read_and_what_is_no_file_is_refused() {
        let (folder, path) = written(&[]);
        let mut buffer = Vec::new();
        let mut source = Source::open(&path).expect("opened");
        source.read(0, 10, &mut buffer).expect("read");
        assert_eq!((source.length(), buffer.len()), (0, 0));
        let refused = Source::open(folder.path()).expect_err("a directory is no log");
        assert_eq!(refused.kind(), io::ErrorKind::IsADirectory);
        if cfg!(unix) {
            let refused = Source::open(Path::new("/dev/zero")).expect_err("it has no end");
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        }
    }
}
