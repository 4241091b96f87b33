//! The threads of the pacing cores, from their start to their ends.
//!
//! They start together, say that they are ready, and are waited for; one that fails stops the
//! others. When zero is, and what is written down meanwhile, others decide.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use crossbeam::channel::{Receiver, bounded};
use onbeat_shared::log::header::CoreTotals;

use super::{TICK, Watch, spawn, warmed};
use crate::error::EngineError;
use crate::replayer::counters::{Counters, Snapshot};
use crate::replayer::realtime::Realtime;
use crate::replayer::sink::Exchange;
use crate::replayer::{Assignment, CoreReady, Shared, Stop, run_core};

/// The threads of the cores. Whoever drops them before they have ended stops them and waits, so
/// that a run that fails before zero leaves nothing behind.
pub(super) struct Cores {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<io::Result<CoreTotals>>>,
    counters: Vec<Arc<Counters>>,
    /// Where each hands over its records.
    pub(super) exchanges: Vec<Arc<Exchange>>,
    ready: Receiver<CoreReady>,
}

impl Cores {
    pub(super) fn start(
        assignments: &[Assignment],
        shared: &Arc<Shared>,
    ) -> Result<Self, EngineError> {
        let (sender, ready) = bounded(assignments.len().max(1));
        let mut cores = Self {
            shared: Arc::clone(shared),
            threads: Vec::new(),
            counters: Vec::new(),
            exchanges: Vec::new(),
            ready,
        };
        for assignment in assignments {
            let counters = Arc::new(Counters::new());
            let exchange = Arc::new(Exchange::new(assignment.core, assignment.log_blocks));
            cores.counters.push(Arc::clone(&counters));
            cores.exchanges.push(Arc::clone(&exchange));
            let (assignment, shared, sender) =
                (assignment.clone(), Arc::clone(shared), sender.clone());
            cores.threads.push(spawn(format!("onbeat-core-{}", assignment.core.0), move || {
                let mut others = Others { shared: &shared, go_on: false };
                let end = run_core(assignment, &shared, counters, &exchange, &sender);
                others.go_on = end.is_ok();
                end
            })?);
        }
        Ok(cores)
    }

    /// Waits for every core's "ready"; returns what they report together.
    pub(super) fn wait_ready(&mut self, watch: &mut dyn Watch) -> Result<Warmed, EngineError> {
        let mut warmed = Warmed::default();
        let mut waiting = self.threads.len();
        while waiting > 0 {
            if watch.stop() != Stop::No {
                return Err(EngineError::Stopped);
            }
            match self.ready.recv_timeout(TICK) {
                Ok(ready) => {
                    waiting -= 1;
                    warmed::judge(&ready, watch)?;
                    warmed.add(ready);
                }
                // A core that ends before it is ready has failed.
                Err(_) if self.threads.iter().any(JoinHandle::is_finished) => {
                    self.stop_now();
                    let early = || EngineError::Run("a core ended before the start".into());
                    return Err(self.join().1.unwrap_or_else(early));
                }
                Err(_) => {}
            }
        }
        Ok(warmed)
    }

    pub(super) fn all_finished(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot::of(self.counters.iter().map(Arc::as_ref))
    }

    fn stop_now(&self) {
        self.shared.stop.store(Stop::Now as u8, Ordering::Relaxed);
    }

    /// Waits for every core's end; what each used, and the first failure.
    pub(super) fn join(&mut self) -> (Vec<CoreTotals>, Option<EngineError>) {
        let ends: Vec<_> = self.threads.drain(..).map(JoinHandle::join).collect();
        let mut failure = None;
        let totals = ends.into_iter().map(|end| {
            let failed = match end {
                Ok(Ok(totals)) => return totals,
                Ok(Err(source)) => {
                    EngineError::Io { action: "run a pacing core", path: None, source }
                }
                Err(_panic) => EngineError::Run("a pacing core panicked".into()),
            };
            failure.get_or_insert(failed);
            CoreTotals::default()
        });
        (totals.collect(), failure)
    }
}

/// What the other cores do when one ends: a core that fails, or panics, stops the run, because the
/// rest of its part of the plan will not be sent.
pub(super) struct Others<'a> {
    pub(super) shared: &'a Shared,
    pub(super) go_on: bool,
}

impl Drop for Others<'_> {
    fn drop(&mut self) {
        if !self.go_on {
            self.shared.stop.fetch_max(Stop::Drain as u8, Ordering::Relaxed);
        }
    }
}

impl Drop for Cores {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            self.stop_now();
            let _ = self.join();
        }
    }
}

/// What the warm-up of all cores came to.
#[derive(Debug, Default)]
pub(super) struct Warmed {
    /// The largest wake-up error.
    pub(super) wake_error_ns: i64,
    /// Connections opened over TLS, and those of them whose session resumed an earlier one.
    pub(super) secured: u32,
    pub(super) resumed: u32,
    /// What came of asking for real-time scheduling; a refusal, if any core met one.
    pub(super) realtime: Option<Realtime>,
}

impl Warmed {
    fn add(&mut self, ready: CoreReady) {
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        self.wake_error_ns = self.wake_error_ns.max(ready.wake_error_ns);
        self.secured = self.secured.saturating_add(count(ready.secured));
        self.resumed = self.resumed.saturating_add(count(ready.resumed));
        if matches!(self.realtime, None | Some(Realtime::First)) {
            self.realtime = ready.realtime;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::progress::Quiet;
    use crate::replayer::transitions::{burst, job};

    #[test]
    fn a_core_that_fails_before_zero_ends_those_that_wait() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let (healthy, shared) = job(&listener, &burst(3));
        let failing = Assignment { cpu: Some(u16::MAX), ..healthy.clone() };
        // The failing one last: whoever waits for the first one first waits forever.
        let mut cores = Cores::start(&[healthy, failing], &shared).expect("threads");
        let error = cores.wait_ready(&mut Quiet::default()).expect_err("no such CPU");
        assert!(error.to_string().contains("run a pacing core"), "{error}");
        assert!(cores.threads.is_empty(), "and none is left");
    }

    #[test]
    fn a_core_that_fails_stops_the_run() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let (healthy, shared) = job(&listener, &burst(3));
        let failing = Assignment { cpu: Some(u16::MAX), ..healthy };
        let mut cores = Cores::start(&[failing], &shared).expect("threads");
        assert!(cores.join().1.is_some());
        assert_eq!(shared.stop(), Stop::Drain);
    }
}
