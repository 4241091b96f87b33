//! What passed and what was under way in a run, summed up once so that every zoom is cheap.
//!
//! Made when a plot first asks, on a background thread: for all requests, and for those that pass
//! the last filter that was asked about. After that a plot of any stretch costs no more than its
//! own steps.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use onbeat_shared::{
    metrics::{
        concurrency::{Phase, phase},
        flows::Flows,
        levels::Levels,
    },
    units::RunNanos,
};

use crate::opened::OpenedRun;
use crate::selection::Passing;

/// What passed and what was under way, of some requests.
#[derive(Debug, Default)]
pub struct Load {
    chosen: Option<Arc<[u32]>>,
    flows: OnceLock<Flows>,
    in_flight: OnceLock<Arc<Levels>>,
    prefill: OnceLock<Arc<Levels>>,
    decode: OnceLock<Arc<Levels>>,
}

/// The loads of a run that are kept.
#[derive(Debug, Default)]
pub struct Loads {
    everything: OnceLock<Arc<Load>>,
    /// Of the last filter; each one takes as much memory as all the other pictures together.
    filtered: Mutex<Option<(u64, Arc<Load>)>>,
}

impl Load {
    /// Tokens and requests in steps of time.
    #[must_use]
    pub fn flows(&self, opened: &OpenedRun) -> &Flows {
        let whole = opened.whole();
        let make = || Flows::of(&opened.run, self.chosen.clone(), (whole.start, whole.end));
        self.flows.get_or_init(make)
    }

    /// How many requests were in a phase. What has not ended goes on until the log ends.
    #[must_use]
    pub fn levels(&self, opened: &OpenedRun, of: Phase) -> &Arc<Levels> {
        let slot = match of {
            Phase::InFlight => &self.in_flight,
            Phase::Prefill => &self.prefill,
            Phase::Decode => &self.decode,
        };
        slot.get_or_init(|| {
            let end = Some(opened.whole().end);
            let span = |i: usize| phase(&opened.run, i, of, end).map(nanos);
            Arc::new(match &self.chosen {
                Some(chosen) => {
                    Levels::of_intervals(chosen.iter().filter_map(|&i| span(i as usize)))
                }
                None => Levels::of_intervals((0..opened.run.requests.len()).filter_map(span)),
            })
        })
    }
}

fn nanos((start, end): (RunNanos, RunNanos)) -> (i64, i64) {
    (start.0, end.0)
}

impl OpenedRun {
    /// What passed and what was under way of the requests that pass a filter. Frames must not ask.
    #[must_use]
    pub fn load(&self, passing: &Passing) -> Arc<Load> {
        if passing.is_everything() {
            return Arc::clone(self.loads.everything.get_or_init(Arc::default));
        }
        let mut kept = self.loads.filtered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((key, load)) = kept.as_ref()
            && *key == passing.key()
        {
            return Arc::clone(load);
        }
        let requests = u32::try_from(self.run.requests.len()).unwrap_or(u32::MAX);
        let chosen = (0..requests).filter(|&i| passing.has(i as usize)).collect();
        let load = Arc::new(Load { chosen: Some(chosen), ..Load::default() });
        *kept = Some((passing.key(), Arc::clone(&load)));
        load
    }
}
