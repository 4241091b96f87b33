//! Reads a run on a thread of its own, shows it once there is something to see, and follows it
//! while it is still being written.
//!
//! File → bytes → [`Reader`] → [`OpenedRun`], again and again: after the first part of a large log,
//! after more of it, when all of it is read, and a few times a second while it grows. The window
//! never waits: it asks [`Loading::poll`] once a frame and the thread wakes it when there is news;
//! news that nobody took are not replaced, so a window that is not looked at costs nothing. A file
//! that cannot be shown becomes a [`Problem`] with words for its owner; damage inside a log is no
//! problem but a warning of the run. Nothing here draws.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU8, AtomicU16, Ordering},
    },
    thread,
    time::Duration,
};

use crossbeam::channel::{Receiver, RecvTimeoutError, Sender, bounded};
use onbeat_shared::run::{Reader, Run, Tail};

use crate::imported;
use crate::opened::{OpenedRun, Stand};
use crate::problem::{Kind, Problem};
use crate::source::{Change, Source};

/// Bytes that are read at once; a block that is longer is read in larger pieces.
const WINDOW_BYTES: usize = 4 << 20;
/// Bytes of records before the first picture of a log that is not read to its end yet; the next one
/// comes after twice as many.
const FIRST_PICTURE_BYTES: usize = 16 << 20;
/// How often a log that may grow is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Looks in vain after which a log no longer counts as being written: ten seconds.
const LOOKS_IN_VAIN: u32 = 40;

/// What a loading thread is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Reading what is there.
    Reading,
    /// All that is there has been read; the log is unfinished and does not grow.
    Waiting,
    /// The log grows, and is followed.
    Live,
    /// Nothing more will come.
    Ended,
}

/// A run that is being read or followed.
#[derive(Debug)]
pub struct Loading {
    path: PathBuf,
    shared: Arc<Shared>,
    /// Dropped, it wakes a thread that waits for the log to grow.
    _stop: Sender<()>,
}

#[derive(Debug, Default)]
struct Shared {
    /// How far it is, in thousandths.
    permille: AtomicU16,
    phase: AtomicU8,
    cancelled: AtomicBool,
    /// The thread is gone.
    left: AtomicBool,
    news: Mutex<Option<Result<OpenedRun, Problem>>>,
}

impl Loading {
    /// Starts to open a file; `wake` is called when there is something to show.
    #[must_use]
    pub fn start(path: PathBuf, wake: impl Fn() + Send + 'static) -> Self {
        let shared = Arc::new(Shared::default());
        let (stop, stopped) = bounded(0);
        let worker = {
            let (shared, path) = (Arc::clone(&shared), path.clone());
            thread::Builder::new().name("onbeat-load".to_owned()).spawn(move || {
                let presence = Presence { shared: Arc::clone(&shared), wake };
                let outcome = Following { path: &path, presence: &presence, stopped }.follow();
                if let Err(problem) = outcome {
                    shared.end(Err(problem));
                }
            })
        };
        if let Err(error) = worker {
            shared.end(Err(Problem::new(&path, Kind::Io(error.to_string()))));
        }
        Self { path, shared, _stop: stop }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How far it is, from 0 to 1.
    #[must_use]
    pub fn progress(&self) -> f32 {
        f32::from(self.shared.permille.load(Ordering::Relaxed)) / 1_000.0
    }

    /// What it is at.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.shared.phase()
    }

    /// Whether there is nothing to show that has not been taken, as far as the log is written.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.phase() != Phase::Reading && self.shared.news().is_none()
    }

    /// Asks the thread to stop, and no longer waits for it.
    pub fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
    }

    /// The newest state of the run, or the problem, once each. After [`Self::cancel`] that is
    /// [`Kind::Cancelled`] at once, whatever the thread is at.
    #[must_use]
    pub fn poll(&self) -> Option<Result<OpenedRun, Problem>> {
        if self.shared.cancelled.load(Ordering::Relaxed) {
            return Some(Err(Problem::new(&self.path, Kind::Cancelled)));
        }
        let left = self.shared.left.load(Ordering::Acquire);
        let news = self.shared.news().take();
        let crashed = left && news.is_none() && self.phase() != Phase::Ended;
        if crashed { Some(Err(Problem::new(&self.path, Kind::Crashed))) } else { news }
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl Shared {
    /// The news are whole at every unlock, so a poisoned lock is still good.
    fn news(&self) -> MutexGuard<'_, Option<Result<OpenedRun, Problem>>> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Reading,
            1 => Phase::Waiting,
            2 => Phase::Live,
            _ => Phase::Ended,
        }
    }

    fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Release);
    }

    /// The last news.
    fn end(&self, news: Result<OpenedRun, Problem>) {
        // Together: between the two there would be a thread that left without a word.
        let mut place = self.news();
        *place = Some(news);
        self.set_phase(Phase::Ended);
    }
}

/// Tells the window that the thread is there, and that it left, in whatever way.
struct Presence<W: Fn()> {
    shared: Arc<Shared>,
    wake: W,
}

impl<W: Fn()> Drop for Presence<W> {
    fn drop(&mut self) {
        self.shared.left.store(true, Ordering::Release);
        (self.wake)();
    }
}

/// The loading thread's work.
struct Following<'a, W: Fn()> {
    path: &'a Path,
    presence: &'a Presence<W>,
    stopped: Receiver<()>,
}

impl<W: Fn()> Following<'_, W> {
    fn follow(&self) -> Result<(), Problem> {
        let shared = &self.presence.shared;
        let mut log = Log::open(self.path)?;
        if let Some(kind) = imported::kind(&mut log.source, self.path)? {
            let opened = imported::open(kind, &mut log.source, self.path, &|share| {
                shared.permille.store(thousandths(share), Ordering::Relaxed);
                (self.presence.wake)();
                !shared.cancelled.load(Ordering::Relaxed)
            })?;
            shared.end(Ok(opened));
            return Ok(());
        }
        let mut next_picture = FIRST_PICTURE_BYTES;
        log.catch_up(&mut |log| {
            shared.permille.store(thousandths(log.share()), Ordering::Relaxed);
            if log.records_bytes() >= next_picture && shared.news().is_none() {
                next_picture = log.records_bytes().saturating_mul(2);
                self.publish(log, Stand::Part(thousandths(log.share())))?;
            }
            (self.presence.wake)();
            Ok(!shared.cancelled.load(Ordering::Relaxed))
        })?;
        if log.is_over() {
            return self.finish(log);
        }
        self.publish(&mut log, Stand::Complete)?;
        shared.set_phase(Phase::Waiting);
        (self.presence.wake)();
        let mut in_vain = 0;
        let mut unseen = false;
        while self.stopped.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
            let grown = log.look()?;
            in_vain = if grown { 0 } else { in_vain + 1 };
            if grown {
                log.catch_up(&mut |_log| Ok(!shared.cancelled.load(Ordering::Relaxed)))?;
                if log.is_over() {
                    return self.finish(log);
                }
                unseen = true;
                self.enter(Phase::Live);
            } else if in_vain >= LOOKS_IN_VAIN && shared.phase() == Phase::Live {
                unseen = true;
                self.enter(Phase::Waiting);
            }
            if unseen && shared.news().is_none() {
                let live = shared.phase() == Phase::Live;
                self.publish(&mut log, if live { Stand::Growing } else { Stand::Complete })?;
                unseen = false;
                (self.presence.wake)();
            }
        }
        Ok(())
    }

    fn enter(&self, phase: Phase) {
        if self.presence.shared.phase() != phase {
            self.presence.shared.set_phase(phase);
            (self.presence.wake)();
        }
    }

    fn publish(&self, log: &mut Log, stand: Stand) -> Result<(), Problem> {
        let opened = log.snapshot(stand)?;
        *self.presence.shared.news() = Some(Ok(opened));
        Ok(())
    }

    fn finish(&self, log: Log) -> Result<(), Problem> {
        let opened = log.finish()?;
        self.presence.shared.end(Ok(opened));
        Ok(())
    }
}

/// A log that is being read.
struct Log {
    path: PathBuf,
    source: Source,
    reader: Reader,
    /// The bytes from the reader's offset on that are there and are no whole block.
    rest: Vec<u8>,
    /// Where the records begin, once that is known.
    records_at: Option<usize>,
}

impl Log {
    fn open(path: &Path) -> Result<Self, Problem> {
        let source = Source::open(path).map_err(|error| Problem::of_io(path, &error))?;
        let reader = Reader::new();
        Ok(Self { path: path.to_owned(), source, reader, rest: Vec::new(), records_at: None })
    }

    /// Reads all that was there when the file was last looked at. `each` is called after every
    /// piece; its answer `false` stops the reading.
    fn catch_up(
        &mut self,
        each: &mut dyn FnMut(&mut Self) -> Result<bool, Problem>,
    ) -> Result<(), Problem> {
        let mut window = WINDOW_BYTES;
        loop {
            if !each(self)? {
                return Err(self.problem(Kind::Cancelled));
            }
            let offset = self.reader.offset() as u64;
            let left = self.source.length().saturating_sub(offset);
            let wanted = usize::try_from(left).map_or(window, |left| left.min(window));
            let mut bytes = std::mem::take(&mut self.rest);
            let read = self.source.read(offset, wanted, &mut bytes);
            read.map_err(|error| Problem::of_io(&self.path, &error))?;
            if bytes.len() < wanted {
                return Err(self.problem(Kind::Shrank));
            }
            let taken = self.reader.feed(&bytes);
            let taken = taken.map_err(|error| Problem::of_log(&self.path, error))?;
            if self.records_at.is_none() && self.reader.has_records() {
                self.records_at = Some(self.reader.offset());
            }
            bytes.drain(..if wanted as u64 == left { taken } else { bytes.len() });
            self.rest = bytes;
            if wanted as u64 == left {
                return Ok(());
            }
            window = if taken == 0 { window.saturating_mul(2) } else { WINDOW_BYTES };
        }
    }

    /// Whether there are more bytes than there were.
    fn look(&mut self) -> Result<bool, Problem> {
        let change = self.source.look().map_err(|error| Problem::of_io(&self.path, &error))?;
        match change {
            Change::None => Ok(false),
            Change::Grown => Ok(true),
            Change::Shrunk => Err(self.problem(Kind::Shrank)),
            Change::Replaced => Err(self.problem(Kind::Replaced)),
        }
    }

    /// Whether nothing more is to be expected: the log was closed, or what stands at its end is not
    /// the begin of a block but a damaged one.
    fn is_over(&self) -> bool {
        self.reader.is_closed() || !self.reader.has_begun() || Reader::is_damaged(&self.rest)
    }

    /// How much of it has been read.
    fn share(&self) -> f32 {
        let (offset, length) = (self.reader.offset() as f64, self.source.length().max(1) as f64);
        #[expect(clippy::cast_possible_truncation, reason = "a share for a progress bar")]
        let share = (offset / length) as f32;
        share.min(1.0)
    }

    /// Bytes of records that have been read.
    fn records_bytes(&self) -> usize {
        self.records_at.map_or(0, |at| self.reader.offset().saturating_sub(at))
    }

    fn snapshot(&mut self, stand: Stand) -> Result<OpenedRun, Problem> {
        let tail = if stand == Stand::Complete { Tail::Torn } else { Tail::Growing };
        let run = self.reader.snapshot(tail);
        let run = run.map_err(|error| Problem::of_log(&self.path, error))?;
        Ok(self.opened(run, stand))
    }

    fn finish(mut self) -> Result<OpenedRun, Problem> {
        let run = std::mem::take(&mut self.reader).finish(&self.rest);
        let run = run.map_err(|error| Problem::of_log(&self.path, error))?;
        Ok(self.opened(run, Stand::Complete))
    }

    fn opened(&self, run: Run, stand: Stand) -> OpenedRun {
        OpenedRun::standing(self.path.clone(), self.source.length(), run, stand)
    }

    fn problem(&self, kind: Kind) -> Problem {
        Problem::new(&self.path, kind)
    }
}

/// A share from 0 to 1 in thousandths.
fn thousandths(share: f32) -> u16 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float-to-integer cast saturates, and the share is at most one"
    )]
    let thousandths = (share * 1_000.0) as u16;
    thousandths.min(1_000)
}

/// Opens a file as it is now, on the calling thread. `progress` hears a share from 0 to 1; its
/// answer `false` stops the work.
///
/// # Errors
/// A [`Problem`] that says what is wrong with the file and what to do.
pub fn open(path: &Path, progress: &dyn Fn(f32) -> bool) -> Result<OpenedRun, Problem> {
    let mut log = Log::open(path)?;
    if let Some(kind) = imported::kind(&mut log.source, path)? {
        return imported::open(kind, &mut log.source, path, progress);
    }
    log.catch_up(&mut |log| Ok(progress(log.share())))?;
    log.finish()
}
