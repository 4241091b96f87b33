//! SHA-256 of large files, on a thread of its own while their columns are read.
//!
//! A digest that nobody waits for any more stops soon.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

use sha2::{Digest as _, Sha256};

use crate::trace::TraceError;
use crate::trace::columns::Shard;
use crate::trace::lines::hexadecimal;

/// A digest being computed.
#[derive(Debug)]
pub(crate) struct Digest {
    /// `None` once it was waited for.
    thread: Option<JoinHandle<Result<String, (PathBuf, io::Error)>>>,
    stop: Arc<AtomicBool>,
}

/// Bytes that are read at once: they are still in a core's own cache when they are hashed.
const READ_BYTES: usize = 256 << 10;

impl Digest {
    /// Starts reading the files, one after the other.
    pub(crate) fn start(path: &Path, shards: &[Shard]) -> Result<Self, TraceError> {
        Self::of_files(path, shards.iter().map(|shard| shard.path.clone()).collect())
    }

    /// The same, for files of any kind.
    pub(crate) fn of_files(path: &Path, paths: Vec<PathBuf>) -> Result<Self, TraceError> {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = Builder::new().name("onbeat-digest".to_owned());
        let thread = thread
            .spawn(move || of(&paths, &told))
            .map_err(|error| TraceError::io("start a thread for the digest of", path, error))?;
        Ok(Self { thread: Some(thread), stop })
    }

    /// Waits for the digest of all files' bytes, 64 hexadecimal digits.
    pub(crate) fn finish(mut self) -> Result<String, TraceError> {
        let thread = self.thread.take().expect("it is waited for once");
        let read = thread.join().expect("reading a file does not panic");
        read.map_err(|(path, error)| TraceError::io("read", &path, error))
    }
}

impl Drop for Digest {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn of(paths: &[PathBuf], stop: &AtomicBool) -> Result<String, (PathBuf, io::Error)> {
    let mut digest = Sha256::new();
    let mut buffer = vec![0; READ_BYTES];
    for path in paths {
        let failed = |error| (path.clone(), error);
        let mut file = File::open(path).map_err(failed)?;
        loop {
            let count = file.read(&mut buffer).map_err(failed)?;
            if count == 0 || stop.load(Ordering::Relaxed) {
                break;
            }
            digest.update(&buffer[..count]);
        }
    }
    Ok(hexadecimal(&digest.finalize()))
}
