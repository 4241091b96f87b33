//! Which requests everything speaks of: those of a range of time that pass a filter.
//!
//! A [`Selection`] is part of every question about numbers. Which requests it chooses is worked out
//! once, on a background thread, and the last few answers are kept with the run. A request belongs
//! to the range that holds its sending, or its due time if it never left, as in
//! `onbeat_shared::metrics`. Nothing here may be asked by a frame but [`Selection::holds`], which
//! looks at one request.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use onbeat_shared::{
    metrics::{self, Report, ReportOptions},
    run::Run,
    units::RunNanos,
};

use crate::filter::Filter;
use crate::opened::OpenedRun;
use crate::state::TimeRange;

/// A choice of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Selection {
    /// Those of this stretch of time; `None`: at any time.
    pub range: Option<TimeRange>,
    /// Those that pass; `None`: all.
    pub filter: Option<Arc<Filter>>,
}

impl Selection {
    /// Whether it is every request of the run.
    #[must_use]
    pub const fn is_everything(&self) -> bool {
        self.range.is_none() && self.filter.is_none()
    }

    /// Whether request `i` belongs to it.
    #[must_use]
    pub fn holds(&self, run: &Run, i: usize) -> bool {
        let time = run.requests.sent(i).or(run.requests.due(i));
        let in_range = |range: TimeRange| time.is_some_and(|time| range.contains(time));
        self.range.is_none_or(in_range)
            && self.filter.as_ref().is_none_or(|filter| filter.matches(run, i))
    }

    fn bounds(&self) -> Option<(RunNanos, RunNanos)> {
        self.range.map(|range| (range.start, range.end))
    }
}

/// Which requests of a run pass a filter.
#[derive(Debug)]
pub struct Passing {
    /// One bit for each request; `None`: all pass.
    bits: Option<Box<[u64]>>,
    count: usize,
    /// Tells it from every other one that is or was.
    key: u64,
}

/// A number that was not given before.
fn next_key() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Passing {
    fn everything(run: &Run) -> Self {
        Self { bits: None, count: run.requests.len(), key: next_key() }
    }

    fn of(run: &Run, filter: &Filter) -> Self {
        let requests = run.requests.len();
        let mut bits = vec![0_u64; requests.div_ceil(64)].into_boxed_slice();
        let mut count = 0;
        for i in (0..requests).filter(|&i| filter.matches(run, i)) {
            bits[i / 64] |= 1 << (i % 64);
            count += 1;
        }
        Self { bits: Some(bits), count, key: next_key() }
    }

    /// Whether request `i` passes.
    #[must_use]
    #[inline]
    pub fn has(&self, i: usize) -> bool {
        self.bits.as_ref().is_none_or(|bits| bits[i / 64] >> (i % 64) & 1 == 1)
    }

    /// A number that no other one has.
    #[must_use]
    pub(crate) const fn key(&self) -> u64 {
        self.key
    }

    /// Whether there is no filter.
    #[must_use]
    pub const fn is_everything(&self) -> bool {
        self.bits.is_none()
    }

    /// How many pass.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }
}

/// The last few selections of a run that were worked out.
#[derive(Debug, Default)]
pub struct Selections {
    everything: OnceLock<Arc<Passing>>,
    passing: Kept<Arc<Filter>, Arc<Passing>>,
    chosen: Kept<Selection, Arc<[u32]>>,
}

/// How many of each are kept.
const KEPT: usize = 4;

/// The last few things that were made of a run, each for a key, newest last.
///
/// The lock is held while one is made, so that two threads do not make it twice: frames must not
/// ask.
#[derive(Debug)]
pub(crate) struct Kept<K, V> {
    entries: Mutex<VecDeque<(K, V)>>,
}

impl<K, V> Default for Kept<K, V> {
    fn default() -> Self {
        Self { entries: Mutex::new(VecDeque::new()) }
    }
}

impl<K: PartialEq, V: Clone> Kept<K, V> {
    /// The value of a key, made now if it is not there; the oldest beyond `most` are dropped.
    pub(crate) fn get(&self, most: usize, key: K, make: impl FnOnce() -> V) -> V {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let known = entries.iter().position(|entry| entry.0 == key);
        let entry = known.and_then(|place| entries.remove(place)).unwrap_or_else(|| (key, make()));
        let value = entry.1.clone();
        entries.push_back(entry);
        while entries.len() > most {
            entries.pop_front();
        }
        value
    }

    /// How many there are.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl OpenedRun {
    /// Which requests pass a filter. Frames must not ask.
    #[must_use]
    pub fn passing(&self, filter: Option<&Arc<Filter>>) -> Arc<Passing> {
        let Some(filter) = filter else {
            let everything = || Arc::new(Passing::everything(&self.run));
            return Arc::clone(self.selections.everything.get_or_init(everything));
        };
        let make = || Arc::new(Passing::of(&self.run, filter));
        self.selections.passing.get(KEPT, Arc::clone(filter), make)
    }

    /// The places in the plan, ascending, of the requests that belong to a selection. Frames must
    /// not ask.
    #[must_use]
    pub fn chosen(&self, selection: &Selection) -> Arc<[u32]> {
        let passing = self.passing(selection.filter.as_ref());
        self.selections.chosen.get(KEPT, selection.clone(), || {
            let in_range = metrics::Selection::new(&self.run, selection.bounds());
            let chosen = in_range.requests().filter(|&i| passing.has(i));
            // A log numbers its requests in 32 bits.
            chosen.filter_map(|i| u32::try_from(i).ok()).collect()
        })
    }

    /// The numbers of a selection.
    #[must_use]
    pub fn report_of(&self, selection: &Selection, options: &ReportOptions) -> Report {
        let requests = selection.filter.is_some().then(|| self.chosen(selection));
        let range = selection.bounds();
        metrics::report(&self.run, &ReportOptions { range, requests, ..options.clone() })
    }

    /// The requests that pass and left within a stretch, by when they left.
    pub fn sent_of<'a>(
        &'a self,
        range: TimeRange,
        passing: &'a Passing,
    ) -> impl Iterator<Item = u32> + 'a {
        self.sent_in(range).iter().copied().filter(|&i| passing.has(i as usize))
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use onbeat_shared::log::sample;

    use super::*;

    fn opened() -> OpenedRun {
        let run = Run::read(&sample::log(4, 300)).expect("a readable log");
        OpenedRun::new(PathBuf::from("sample.beat"), 0, run)
    }

    fn filter(text: &str) -> Option<Arc<Filter>> {
        Some(Arc::new(Filter::parse(text).expect("a filter")))
    }

    #[test]
    fn a_selection_is_what_looking_at_each_request_finds() {
        let opened = opened();
        let whole = opened.whole();
        let middle = whole.start.0 + whole.span() / 3;
        let range = Some(TimeRange::between(RunNanos(middle), whole.end));
        for filter in [None, filter("ttft > 20ms"), filter("failed"), filter("turn == 99")] {
            for range in [None, range] {
                let selection = Selection { range, filter: filter.clone() };
                let expected: Vec<u32> =
                    (0..300).filter(|&i| selection.holds(&opened.run, i as usize)).collect();
                assert_eq!(*opened.chosen(&selection), *expected, "{selection:?}");
                assert!(Arc::ptr_eq(&opened.chosen(&selection), &opened.chosen(&selection)));
            }
            let passing = opened.passing(filter.as_ref());
            let count = (0..300).filter(|&i| passing.has(i)).count();
            assert_eq!((passing.count(), passing.is_everything()), (count, filter.is_none()));
        }
    }

    #[test]
    fn numbers_are_those_of_the_chosen_requests_only() {
        let opened = opened();
        let selection = Selection { range: None, filter: filter("ttft > 20ms") };
        let report = opened.report_of(&selection, &ReportOptions::default());
        let chosen = opened.chosen(&selection);
        assert_eq!(report.schedule.planned, chosen.len() as u64);
        assert!(report.latency.ttft_ms.expect("some").min > 20.0);
        let none = Selection { range: None, filter: filter("turn == 99") };
        let report = opened.report_of(&none, &ReportOptions::default());
        assert_eq!((report.schedule.planned, report.latency.ttft_ms), (0, None));
        let all = opened.report_of(&Selection::default(), &ReportOptions::default());
        assert_eq!(all, *opened.report());
    }

    #[test]
    fn only_the_last_few_are_kept() {
        let opened = opened();
        for turn in 0..20 {
            let passing = opened.passing(filter(&format!("turn == {turn}")).as_ref());
            assert!(!passing.is_everything());
        }
        assert_eq!(opened.selections.passing.count(), KEPT);
    }
}
