//! What a mock has counted, where its owner's thread can see it.
//!
//! Written by the mock's threads, a few short locks a request; nobody waits long for one.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::model::Tally;
use super::{MockCounts, Served};

/// Counts and records of one mock.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    counts: Mutex<MockCounts>,
    served: Mutex<Vec<Served>>,
    failure: Mutex<Option<String>>,
}

/// A record's place, if records are kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place(Option<usize>);

impl Ledger {
    /// Changes the counts.
    pub(super) fn count(&self, change: impl FnOnce(&mut MockCounts)) {
        change(&mut lock(&self.counts));
    }

    pub(super) fn counts(&self) -> MockCounts {
        *lock(&self.counts)
    }

    pub(super) fn served(&self) -> Vec<Served> {
        lock(&self.served).clone()
    }

    /// Adds what one model counted since it said `before`.
    pub(super) fn tally(&self, before: &Tally, now: &Tally) {
        self.count(|counts| {
            counts.cache_query_tokens += now.cache_query_tokens - before.cache_query_tokens;
            counts.cache_hit_tokens += now.cache_hit_tokens - before.cache_hit_tokens;
            counts.late_steps += now.late_steps - before.late_steps;
            counts.running_peak = counts.running_peak.max(now.running_peak as u64);
            counts.waiting_peak = counts.waiting_peak.max(now.waiting_peak as u64);
        });
    }

    /// An answer's last bytes are about to be written, or its client is gone. Counted before the
    /// write, so that a client that has read the whole answer finds it counted.
    pub(super) fn ended(&self, served: Served, keep: bool) -> Place {
        self.count(|counts| {
            counts.prompt_tokens += u64::from(served.prompt_tokens);
            counts.completion_tokens += u64::from(served.completion_tokens);
            match served.complete {
                true => counts.served += 1,
                false => counts.abandoned += 1,
            }
        });
        if !keep {
            return Place(None);
        }
        let mut records = lock(&self.served);
        records.push(served);
        Place(Some(records.len() - 1))
    }

    /// The last bytes could not be written after all.
    pub(super) fn abandoned(&self, place: Place) {
        self.count(|counts| {
            counts.served -= 1;
            counts.abandoned += 1;
        });
        if let Place(Some(index)) = place {
            lock(&self.served)[index].complete = false;
        }
    }

    /// A thread ended although nobody asked it to.
    pub(super) fn fail(&self, words: String) {
        lock(&self.failure).get_or_insert(words);
    }

    pub(super) fn failure(&self) -> Option<String> {
        lock(&self.failure).clone()
    }
}

/// Counts stay readable after a panic elsewhere: each change is complete in itself.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
