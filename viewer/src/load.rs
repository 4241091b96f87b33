//! Opens a run on a thread of its own and says how far it is.
//!
//! File → bytes → [`Run`] → the first numbers, so that the first picture needs no more work. The
//! window never waits: it asks [`Loading::poll`] once a frame and the thread wakes it when there is
//! news. A file that cannot be shown becomes a [`Problem`] with words for its owner; damage inside
//! a log is no problem but a warning of the run. Nothing here draws.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread,
};

use crossbeam::channel::{Receiver, TryRecvError, bounded};
use onbeat_shared::{log::LogError, run::Run};

use crate::mapped::Bytes;
use crate::opened::OpenedRun;
use crate::problem::{Kind, Problem};

/// A run that is being opened.
#[derive(Debug)]
pub struct Loading {
    path: PathBuf,
    shared: Arc<Shared>,
    result: Receiver<Result<OpenedRun, Problem>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// How far it is, in thousandths.
    permille: AtomicU32,
    cancelled: AtomicBool,
}

/// Share of the progress bar for reading; the rest is for the first numbers.
const READING_SHARE: f32 = 0.9;

impl Loading {
    /// Starts to open a file; `wake` is called when there is something to show.
    #[must_use]
    pub fn start(path: PathBuf, wake: impl Fn() + Send + 'static) -> Self {
        let shared = Arc::new(Shared::default());
        let (sender, result) = bounded(1);
        let worker = {
            let shared = Arc::clone(&shared);
            let path = path.clone();
            let sender = sender.clone();
            thread::Builder::new().name("onbeat-load".to_owned()).spawn(move || {
                let opened = open(&path, &|share| {
                    shared.permille.store(permille(share), Ordering::Relaxed);
                    wake();
                    !shared.cancelled.load(Ordering::Relaxed)
                });
                // Nobody listens any more when the run was closed meanwhile.
                let _ = sender.send(opened);
                wake();
            })
        };
        if let Err(error) = worker {
            let problem = Problem::new(&path, Kind::Io(error.to_string()));
            let _ = sender.send(Err(problem));
        }
        Self { path, shared, result }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How far it is, from 0 to 1.
    #[must_use]
    pub fn progress(&self) -> f32 {
        let permille = self.shared.permille.load(Ordering::Relaxed);
        u16::try_from(permille).map_or(1.0, f32::from) / 1_000.0
    }

    /// Asks the thread to stop, and no longer waits for it.
    pub fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
    }

    /// The run or the problem, once. After [`Self::cancel`] that is [`Kind::Cancelled`] at once,
    /// whatever the thread is at.
    #[must_use]
    pub fn poll(&self) -> Option<Result<OpenedRun, Problem>> {
        if self.shared.cancelled.load(Ordering::Relaxed) {
            return Some(Err(Problem::new(&self.path, Kind::Cancelled)));
        }
        match self.result.try_recv() {
            Ok(opened) => Some(opened),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(Problem::new(&self.path, Kind::Crashed))),
        }
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// A share from 0 to 1 in thousandths.
fn permille(share: f32) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float-to-integer cast saturates, and the share is at most one"
    )]
    let permille = (share * 1_000.0) as u32;
    permille.min(1_000)
}

/// Opens a file on the calling thread. `progress` hears a share from 0 to 1; its answer `false`
/// stops the work.
///
/// # Errors
/// A [`Problem`] that says what is wrong with the file and what to do.
pub fn open(path: &Path, progress: &dyn Fn(f32) -> bool) -> Result<OpenedRun, Problem> {
    let bytes = Bytes::open(path).map_err(|error| Problem::of_io(path, &error))?;
    let read = Run::read_with_progress(bytes.as_slice(), &|share| {
        progress(share * READING_SHARE) && !bytes.shrank()
    });
    let run = match read {
        Ok(run) => run,
        Err(LogError::Cancelled) if bytes.shrank() => {
            return Err(Problem::new(path, Kind::Shrank));
        }
        Err(error) => return Err(Problem::of_log(path, error)),
    };
    let file_bytes = bytes.as_slice().len() as u64;
    drop(bytes);
    if !progress(READING_SHARE) {
        return Err(Problem::new(path, Kind::Cancelled));
    }
    Ok(OpenedRun::new(path.to_owned(), file_bytes, run))
}
