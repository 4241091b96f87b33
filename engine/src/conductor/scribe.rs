//! The thread that the log is written on, from its start to its end.
//!
//! It is there before the run begins, so that a run that cannot have it leaves no log and replaces
//! none. What it writes and how is [`super::writer`]'s business.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use super::spawn;
use super::writer::Writer;
use crate::error::EngineError;
use crate::replayer::sink::Exchange;

/// The thread. Whoever drops it ends it and waits.
pub(super) struct Scribe<W> {
    finished: Arc<AtomicBool>,
    thread: Option<JoinHandle<Writer<W>>>,
}

impl<W: io::Write + Send + 'static> Scribe<W> {
    /// Begins to write down what is handed over.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub(super) fn start(
        mut writer: Writer<W>,
        exchanges: Vec<Arc<Exchange>>,
    ) -> Result<Self, EngineError> {
        let finished = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&finished);
        let thread = spawn("onbeat-writer".into(), move || {
            writer.serve(&exchanges, &ended);
            writer
        })?;
        Ok(Self { finished, thread: Some(thread) })
    }
}

impl<W> Scribe<W> {
    /// Everything has been handed over: waits until it is written.
    ///
    /// # Errors
    /// When the writer panicked.
    pub(super) fn end(mut self) -> Result<Writer<W>, EngineError> {
        let panicked = || EngineError::Run("the log writer panicked".into());
        self.join().and_then(Result::ok).ok_or_else(panicked)
    }

    fn join(&mut self) -> Option<std::thread::Result<Writer<W>>> {
        self.finished.store(true, Ordering::Release);
        self.thread.take().map(JoinHandle::join)
    }
}

impl<W> Drop for Scribe<W> {
    fn drop(&mut self) {
        let _ = self.join();
    }
}
