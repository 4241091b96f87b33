//! Ends the program when the user no longer wants a run that is still being made ready.
//!
//! The stages before a run look whether it is wanted between each other, and one of a large trace
//! takes minutes. A thread that sleeps until a signal comes gives them a moment to end by
//! themselves; then it ends the process, when nothing has been sent and the only file that the run
//! has opened for itself goes along. Once the run has begun, what a signal means is the conductor's
//! to say, and this thread does nothing any more.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use std::time::Duration;

use signal_hook::SigId;
use signal_hook::low_level::{pipe, unregister};

use crate::error::EngineError;
use crate::last_words;

/// How long the stages have to end by themselves.
const GRACE: Duration = Duration::from_millis(300);

/// The program ends on a signal until this is dropped, or the run has begun.
#[derive(Debug)]
pub(super) struct Quitting {
    /// Whether it is decided what becomes of the run: it has begun, is over, or the program ends.
    decided: Arc<AtomicBool>,
    /// What tells of signals, as long as it is there.
    told_by: Vec<SigId>,
}

impl Quitting {
    /// Listens to these signals. Where that cannot be had, stages are waited for.
    pub(super) fn on(signals: &[i32]) -> Self {
        let mut quitting = Self { decided: Arc::default(), told_by: Vec::new() };
        if let Ok(stream) = quitting.listen(signals) {
            let decided = Arc::clone(&quitting.decided);
            let quit = move || {
                if quits(stream, GRACE, &decided) {
                    end();
                }
            };
            let _ = Builder::new().name("onbeat-signals".into()).spawn(quit);
        }
        quitting
    }

    /// A stream that gets a byte with each signal.
    fn listen(&mut self, signals: &[i32]) -> io::Result<UnixStream> {
        let (stream, tells) = UnixStream::pair()?;
        for &signal in signals {
            self.told_by.push(pipe::register(signal, tells.try_clone()?)?);
        }
        Ok(stream)
    }

    /// The run begins; `false` if the program is being ended instead.
    pub(super) fn begin(&self) -> bool {
        !self.decided.swap(true, Ordering::AcqRel)
    }
}

impl Drop for Quitting {
    fn drop(&mut self) {
        self.decided.store(true, Ordering::Release);
        // The stream ends with them, and the thread with the stream.
        for id in self.told_by.drain(..) {
            unregister(id);
        }
    }
}

/// Waits for a signal and then for so long; whether the program is to be ended.
fn quits(mut told: UnixStream, grace: Duration, decided: &AtomicBool) -> bool {
    let heard = told.read_exact(&mut [0]).is_ok();
    if !heard || decided.load(Ordering::Acquire) {
        return false;
    }
    #[expect(clippy::disallowed_methods, reason = "nothing is timed before a run has begun")]
    std::thread::sleep(grace);
    !decided.swap(true, Ordering::AcqRel)
}

/// Ends the process as a run that is stopped before it began ends.
fn end() -> ! {
    last_words::take_away();
    let stopped = EngineError::Stopped;
    // Whoever closed stderr does not want to know.
    let _ = writeln!(io::stderr(), "onbeat: {stopped}");
    std::process::exit(stopped.exit_code().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a signal ends the program, and whether a run may begin afterwards.
    fn signalled(decided_before: bool) -> (bool, bool) {
        let (told, mut tells) = UnixStream::pair().expect("two descriptors");
        let quitting = Quitting { decided: Arc::default(), told_by: Vec::new() };
        if decided_before {
            assert!(quitting.begin());
        }
        tells.write_all(&[0]).expect("room");
        (quits(told, Duration::ZERO, &quitting.decided), quitting.begin())
    }

    #[test]
    fn a_signal_ends_what_has_not_begun_and_nothing_begins_afterwards() {
        assert_eq!(signalled(false), (true, false));
        assert_eq!(signalled(true), (false, false));
    }

    #[test]
    fn nobody_who_signals_and_nobody_who_listens_end_nothing() {
        let (told, tells) = UnixStream::pair().expect("two descriptors");
        drop(tells);
        assert!(!quits(told, Duration::ZERO, &AtomicBool::new(false)));
        let quitting = Quitting { decided: Arc::default(), told_by: Vec::new() };
        let decided = Arc::clone(&quitting.decided);
        drop(quitting);
        let (told, mut tells) = UnixStream::pair().expect("two descriptors");
        tells.write_all(&[0]).expect("room");
        assert!(!quits(told, Duration::ZERO, &decided), "the command is over");
    }
}
