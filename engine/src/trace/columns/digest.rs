//! SHA-256 of large files, on a thread of its own while their columns are read.
//!
//! A digest that nobody waits for any more stops soon. One that is computed beside a run has the
//! lowest priority, can be held, and is worth nothing if a file is another by the time it is done.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Builder, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, setpriority_process};
use sha2::{Digest as _, Sha256};

use crate::trace::TraceError;
use crate::trace::columns::Shard;
use crate::trace::lines::hexadecimal;
use crate::trace::stamp::{Stamp, changed};

/// A digest being computed.
#[derive(Debug)]
pub(crate) struct Digest {
    /// `None` once it was waited for.
    thread: Option<JoinHandle<Result<Read256, (PathBuf, io::Error)>>>,
    told: Arc<Told>,
}

/// What the thread is told, and tells.
#[derive(Debug, Default)]
struct Told {
    stop: AtomicBool,
    hold: AtomicBool,
    thread: OnceLock<Pid>,
}

/// A digest and what it is of.
#[derive(Debug)]
struct Read256 {
    digest: String,
    files: Vec<Noted>,
}

/// A file and its stamp before it was read, if it was there.
type Noted = (PathBuf, Option<Stamp>);

/// Bytes that are read at once: they are still in a core's own cache when they are hashed.
const READ_BYTES: usize = 256 << 10;
/// The least the kernel knows: a thread of ordinary priority gets nearly all of a CPU they share.
const NICE: i32 = 19;
/// How often a thread that is held looks whether it still is, and a caller whether it is done.
const LOOK: Duration = Duration::from_millis(10);

impl Digest {
    /// Starts reading the files, one after the other.
    pub(crate) fn start(path: &Path, shards: &[Shard]) -> Result<Self, TraceError> {
        Self::of_files(path, shards.iter().map(|shard| shard.path.clone()).collect())
    }

    /// The same, with whatever time nobody else wants; one that `rests` begins when it is no longer
    /// [held](Digest::hold).
    pub(crate) fn beside(path: &Path, shards: &[Shard], rests: bool) -> Result<Self, TraceError> {
        let told = Told { hold: AtomicBool::new(rests), ..Told::default() };
        let paths = shards.iter().map(|shard| shard.path.clone()).collect();
        Self::spawn(path, paths, told, true)
    }

    /// The same as [`Digest::start`], for files of any kind.
    pub(crate) fn of_files(path: &Path, paths: Vec<PathBuf>) -> Result<Self, TraceError> {
        Self::spawn(path, paths, Told::default(), false)
    }

    fn spawn(
        path: &Path,
        paths: Vec<PathBuf>,
        told: Told,
        beside: bool,
    ) -> Result<Self, TraceError> {
        let told = Arc::new(told);
        let own = Arc::clone(&told);
        // Before whoever reads them as well: what it reads is then what is digested, or is refused.
        let files = paths.into_iter().map(|path| {
            let stamp = path.metadata().ok().map(|meta| Stamp::of(&meta));
            (path, stamp)
        });
        let files: Vec<_> = files.collect();
        let thread = Builder::new().name("onbeat-digest".to_owned());
        let thread = thread
            .spawn(move || {
                if beside {
                    // Where that is not allowed, it competes for a few seconds.
                    let _refused = setpriority_process(None, NICE);
                    let _once = own.thread.set(rustix::thread::gettid());
                }
                of(files, &own)
            })
            .map_err(|error| TraceError::io("start a thread for the digest of", path, error))?;
        Ok(Self { thread: Some(thread), told })
    }

    /// Waits for the digest of all files' bytes, 64 hexadecimal digits.
    ///
    /// # Errors
    /// When a file cannot be read, or is another than when this was started.
    pub(crate) fn finish(self) -> Result<String, TraceError> {
        let Read256 { digest, files } = self.joined()?;
        match files.iter().find(|file| !is_same(file)) {
            Some((path, _)) => Err(changed(path)),
            None => Ok(digest),
        }
    }

    /// Waits for it as long as `go_on`, which is asked now and then, says so. `None` when it said
    /// no, or when a file is another by now.
    pub(crate) fn finish_while(
        self,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<String>, TraceError> {
        self.hold(false);
        while !self.is_done() {
            if !go_on() {
                return Ok(None);
            }
            #[expect(clippy::disallowed_methods, reason = "nothing is timed meanwhile")]
            thread::sleep(LOOK);
        }
        let Read256 { digest, files } = self.joined()?;
        Ok(files.iter().all(is_same).then_some(digest))
    }

    /// Whether nobody would have to wait for it.
    pub(crate) fn is_done(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// The thread that computes it beside, while it does.
    pub(crate) fn thread(&self) -> Option<Pid> {
        self.told.thread.get().copied().filter(|_| !self.is_done())
    }

    /// Whether it is to do nothing for the time being.
    pub(crate) fn hold(&self, hold: bool) {
        self.told.hold.store(hold, Ordering::Relaxed);
    }

    fn joined(mut self) -> Result<Read256, TraceError> {
        let thread = self.thread.take().expect("it is waited for once");
        let read = thread.join().expect("reading a file does not panic");
        read.map_err(|(path, error)| TraceError::io("read", &path, error))
    }
}

impl Drop for Digest {
    fn drop(&mut self) {
        self.told.stop.store(true, Ordering::Relaxed);
    }
}

fn of(files: Vec<Noted>, told: &Told) -> Result<Read256, (PathBuf, io::Error)> {
    let mut digest = Sha256::new();
    let mut buffer = vec![0; READ_BYTES];
    for (path, _) in &files {
        let added = add(path, &mut digest, &mut buffer, told);
        added.map_err(|error| (path.clone(), error))?;
    }
    Ok(Read256 { digest: hexadecimal(&digest.finalize()), files })
}

/// Whether a file is as it was when it was noted.
fn is_same((path, stamp): &Noted) -> bool {
    path.metadata().ok().map(|meta| Stamp::of(&meta)) == *stamp
}

/// Adds a file's bytes.
fn add(path: &Path, digest: &mut Sha256, buffer: &mut [u8], told: &Told) -> io::Result<()> {
    let mut file = File::open(path)?;
    loop {
        while told.hold.load(Ordering::Relaxed) && !told.stop.load(Ordering::Relaxed) {
            #[expect(clippy::disallowed_methods, reason = "nothing is timed on this thread")]
            thread::sleep(LOOK);
        }
        let count = file.read(buffer)?;
        if count == 0 || told.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        digest.update(&buffer[..count]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beside(path: &Path) -> Digest {
        let shard = Shard {
            path: path.to_owned(),
            name: "t".to_owned(),
            kind: crate::trace::columns::Kind::Parquet,
            bytes: 0,
        };
        Digest::beside(path, &[shard], true).expect("starts")
    }

    #[test]
    fn a_digest_beside_is_that_of_the_bytes_unless_they_are_others_by_now() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), "some bytes").expect("written");
        let done = || {
            let digest = beside(file.path());
            digest.hold(false);
            while !digest.is_done() {
                thread::yield_now();
            }
            assert_eq!(digest.thread(), None);
            digest
        };
        let expected = Some(hexadecimal(&Sha256::digest("some bytes")));
        assert_eq!(done().finish_while(&mut || false).expect("reads"), expected);
        let digest = done();
        std::fs::write(file.path(), "more bytes than before").expect("written");
        assert_eq!(digest.finish_while(&mut || true).expect("reads"), None);
    }

    #[test]
    fn nobody_waits_longer_than_the_user_wants() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.as_file().set_len(1 << 40).expect("a hole");
        let digest = beside(file.path());
        let mut left = 3;
        let mut go_on = || {
            left -= 1;
            left > 0
        };
        assert_eq!(digest.finish_while(&mut go_on).expect("no error"), None);
        assert_eq!(left, 0);
    }
}
