//! The thread that renders ahead of the pacing cores; like the conductor it is off their CPUs.
//!
//! It polls, because a core that had to wake it would pay for that. It ends when the whole plan is
//! rendered, when the run is stopped, when a recorded text cannot be read any more (which stops the
//! run), or when the conductor lets go of it; what it has rendered
//! stays where it is until then, so that no core ever frees memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::cores::Others;
use super::spawn;
use crate::error::EngineError;
use crate::render::{Renderer, Step};
use crate::replayer::{Shared, Stop};

/// How often the thread looks whether there is room again. At 70 MB/s a core gives back 70 kB
/// meanwhile.
const POLL: Duration = Duration::from_millis(1);

/// The thread. Whoever drops it ends it and waits.
pub(super) struct Rendering {
    leave: Arc<AtomicBool>,
    thread: Option<JoinHandle<Renderer>>,
}

impl Rendering {
    /// Starts the thread, on the CPUs that the conductor itself may use.
    pub(super) fn start(renderer: Renderer, shared: &Arc<Shared>) -> Result<Self, EngineError> {
        let leave = Arc::new(AtomicBool::new(false));
        let (leaving, shared) = (Arc::clone(&leave), Arc::clone(shared));
        let thread = spawn("onbeat-render".into(), move || {
            let mut others = Others { shared: &shared, go_on: false };
            let renderer = serve(renderer, &leaving, &shared);
            others.go_on = renderer.check().is_ok();
            renderer
        })?;
        Ok(Self { leave, thread: Some(thread) })
    }

    /// Ends the thread.
    ///
    /// # Errors
    /// When it had failed.
    pub(super) fn end(mut self) -> Result<(), EngineError> {
        self.join()
    }

    fn join(&mut self) -> Result<(), EngineError> {
        self.leave.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(_panic)) => Err(EngineError::Run("the rendering thread panicked".into())),
            Some(Ok(renderer)) => Ok(renderer.check()?),
            None => Ok(()),
        }
    }
}

impl Drop for Rendering {
    fn drop(&mut self) {
        let _ = self.join();
    }
}

fn serve(mut renderer: Renderer, leave: &AtomicBool, shared: &Shared) -> Renderer {
    while !leave.load(Ordering::Relaxed) && shared.stop() == Stop::No {
        match renderer.step() {
            Step::Rendered => {}
            Step::Finished | Step::Unreadable => break,
            #[expect(clippy::disallowed_methods, reason = "nothing is timed on this thread")]
            Step::Full => std::thread::sleep(POLL),
        }
    }
    renderer
}
