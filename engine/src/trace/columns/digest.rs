//! SHA-256 of large files, on a thread of its own while their columns are read.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::thread::{Builder, JoinHandle};

use sha2::{Digest as _, Sha256};

use crate::trace::TraceError;
use crate::trace::columns::Shard;
use crate::trace::lines::hexadecimal;

/// A digest being computed.
#[derive(Debug)]
pub(crate) struct Digest {
    thread: JoinHandle<Result<String, (PathBuf, io::Error)>>,
}

/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 20;

impl Digest {
    /// Starts reading the files, one after the other.
    pub(crate) fn start(path: &Path, shards: &[Shard]) -> Result<Self, TraceError> {
        Self::of_files(path, shards.iter().map(|shard| shard.path.clone()).collect())
    }

    /// The same, for files of any kind.
    pub(crate) fn of_files(path: &Path, paths: Vec<PathBuf>) -> Result<Self, TraceError> {
        let thread = Builder::new().name("onbeat-digest".to_owned()).spawn(move || of(&paths));
        let thread = thread
            .map_err(|error| TraceError::io("start a thread for the digest of", path, error))?;
        Ok(Self { thread })
    }

    /// Waits for the digest of all files' bytes, 64 hexadecimal digits.
    pub(crate) fn finish(self) -> Result<String, TraceError> {
        let read = self.thread.join().expect("reading a file does not panic");
        read.map_err(|(path, error)| TraceError::io("read", &path, error))
    }
}

fn of(paths: &[PathBuf]) -> Result<String, (PathBuf, io::Error)> {
    let mut digest = Sha256::new();
    let mut buffer = vec![0; READ_BYTES];
    for path in paths {
        let failed = |error| (path.clone(), error);
        let mut file = File::open(path).map_err(failed)?;
        loop {
            let count = file.read(&mut buffer).map_err(failed)?;
            if count == 0 {
                break;
            }
            digest.update(&buffer[..count]);
        }
    }
    Ok(hexadecimal(&digest.finalize()))
}
