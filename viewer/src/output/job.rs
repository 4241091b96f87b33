//! An order on a thread of its own.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use crossbeam::channel::{Receiver, TryRecvError, bounded};

use super::file::Refusal;
use super::order::{self, Done, Order, Progress};

/// An order that is being carried out. Dropping it stops it.
pub(super) struct Job {
    path: PathBuf,
    progress: Arc<Progress>,
    result: Receiver<Result<Done, Refusal>>,
}

impl Job {
    /// Starts to carry an order out; `wake` is called when there is news.
    #[must_use]
    pub(super) fn start(order: Order, wake: impl Fn() + Send + 'static) -> Self {
        let path = order.path.clone();
        let progress = Arc::new(Progress::default());
        let (sender, result) = bounded(1);
        let worker = {
            let progress = Arc::clone(&progress);
            let sender = sender.clone();
            thread::Builder::new().name("onbeat-export".to_owned()).spawn(move || {
                let done = order::carry_out(&order, &progress);
                // Nobody listens any more when the window was closed meanwhile.
                let _ = sender.send(done);
                wake();
            })
        };
        if let Err(error) = worker {
            let _ = sender.send(Err(Refusal::Io(path.clone(), error.to_string())));
        }
        Self { path, progress, result }
    }

    /// Where it goes.
    #[must_use]
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// How far it is.
    #[must_use]
    pub(super) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// How it went, once.
    #[must_use]
    pub(super) fn poll(&self) -> Option<Result<Done, Refusal>> {
        match self.result.try_recv() {
            Ok(done) => Some(done),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(Refusal::Io(
                self.path.clone(),
                "the viewer failed while writing; this is a defect of the viewer".to_owned(),
            ))),
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.progress.stop();
    }
}
