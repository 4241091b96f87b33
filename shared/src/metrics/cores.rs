//! What each sending core did, and which requests each host stall hit.
//!
//! A stall *hit* a request if it is among those that explain the request's lateness
//! ([`super::lateness::in_stall`]): the request could have left and its core lay in it, or it had
//! ended just before. A request that waited through several stalls is counted with each of them.

use std::collections::BTreeMap;
use std::ops::Range;

use super::latency::nanos;
use super::lateness::{STALL_SHADOW_NS, in_stall, lateness_ns, until_sent};
use super::quantile::{Collector, Statistic};
use crate::log::CoreTotals;
use crate::run::{Run, Stall};
use crate::units::{CoreIndex, RunNanos};

/// One core's part of the chosen requests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CoreWork {
    /// Requests that left.
    pub sent: u64,
    /// Their lateness in microseconds.
    pub lateness_us: Option<Statistic>,
    /// Host stalls that began in the chosen time.
    pub stalls: u64,
    /// Their sum, in nanoseconds.
    pub stalled_ns: u64,
    /// The longest, in nanoseconds.
    pub longest_ns: Option<u64>,
    /// Of these requests, the ones that host stalls explain the lateness of.
    pub hit: u64,
    /// The processor it was pinned to, where the log says.
    pub cpu: Option<u16>,
    /// What it did in the whole run, if the log was closed.
    pub totals: Option<CoreTotals>,
}

/// The cores of a run, by number: those of the manifest, and any other that a request or a stall
/// belongs to. Their requests are these; their stalls began in the stretch of time, `None` for all.
#[must_use]
pub fn cores(
    run: &Run,
    requests: impl IntoIterator<Item = usize>,
    range: Option<(RunNanos, RunNanos)>,
) -> BTreeMap<CoreIndex, CoreWork> {
    let mut works: BTreeMap<CoreIndex, (CoreWork, Collector)> = BTreeMap::new();
    for (core, &cpu) in (0..).map(CoreIndex).zip(&run.manifest.cores) {
        let work = CoreWork { cpu: Some(cpu), ..CoreWork::default() };
        works.insert(core, (work, Collector::new()));
    }
    for i in requests {
        let Some((core, late)) = run.requests.core(i).zip(lateness_ns(run, i)) else { continue };
        let (work, collector) = works.entry(core).or_default();
        work.sent += 1;
        work.hit += u64::from(in_stall(run, i) == Some(true));
        collector.push(nanos(late));
    }
    for stall in run.stalls.all().iter().filter(|stall| began_in(range, stall)) {
        let (work, _) = works.entry(stall.core).or_default();
        work.stalls += 1;
        work.stalled_ns = work.stalled_ns.saturating_add(stall.length_ns);
        work.longest_ns = work.longest_ns.max(Some(stall.length_ns));
    }
    let totals = run.footer.as_ref().map_or(&[][..], |footer| &footer.cores);
    let finished = |(core, (mut work, collector)): (CoreIndex, (CoreWork, Collector))| {
        work.totals = totals.get(core.as_usize()).copied();
        work.lateness_us = collector.statistic(1e3);
        (core, work)
    };
    works.into_iter().map(finished).collect()
}

/// Whether a stall began in a stretch of time; `None` is all time.
#[must_use]
pub fn began_in(range: Option<(RunNanos, RunNanos)>, stall: &Stall) -> bool {
    range.is_none_or(|(start, end)| start <= stall.start && stall.start < end)
}

/// The stalls that explain the lateness of request `i`, as places in [`crate::run::Stalls::all`];
/// empty if none does, or it never left.
#[must_use]
pub fn stalls_of(run: &Run, i: usize) -> Range<usize> {
    hitting(run, i).unwrap_or_default()
}

fn hitting(run: &Run, i: usize) -> Option<Range<usize>> {
    if in_stall(run, i) != Some(true) {
        return None;
    }
    let (intended, sent) = (run.requests.intended(i)?, run.requests.sent(i)?);
    let core = run.requests.core(i)?;
    let first = run.stalls.all().partition_point(|stall| stall.core < core);
    let stalls = run.stalls.of_core(core);
    let ended = stalls.partition_point(|stall| stall.end() <= intended);
    let casts_shadow = |stall: &Stall| stall.end().0.saturating_add(STALL_SHADOW_NS) >= intended.0;
    let shadow = ended.checked_sub(1).filter(|&last| casts_shadow(&stalls[last]));
    let until = until_sent(stalls, sent);
    let to = stalls.partition_point(|stall| stall.start < until);
    let from = shadow.unwrap_or(ended);
    Some(first + from..first + to.max(from))
}

/// How many of these requests each stall hit, by its place in [`crate::run::Stalls::all`].
#[must_use]
pub fn stall_hits(run: &Run, requests: impl IntoIterator<Item = usize>) -> Vec<u32> {
    let mut hits = vec![0; run.stalls.all().len()];
    for i in requests {
        for place in stalls_of(run, i) {
            hits[place] += 1;
        }
    }
    hits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Record;
    use crate::log::sample::{self, Sample};

    const US: i64 = 1_000;

    fn stall(sample: &mut Sample, core: u16, start: i64, length: u64) {
        let (start, length_ns) = (RunNanos(start * US), length * 1_000);
        sample.push(CoreIndex(core), Record::Stall { start, length_ns });
    }

    #[test]
    fn each_stall_knows_whom_it_hit() {
        let mut sample = Sample::new();
        // Due, sent, which of the stalls at 1,000 to 1,300 and at 1,400 to 1,450 us.
        let times = [
            (0, 5, vec![]),
            (1_100, 1_310, vec![0]),
            (1_340, 1_345, vec![0]),
            (1_360, 1_370, vec![]),
            (1_200, 1_460, vec![0, 1]),
            (1_455, 1_470, vec![1]),
            // Late by something else.
            (0, 9_000, vec![]),
        ];
        for &(due, sent, _) in &times {
            let request = sample.plan(due * US);
            sample.dispatch(request, due * US, sent * US);
        }
        stall(&mut sample, 0, 1_000, 300);
        stall(&mut sample, 0, 1_400, 50);
        stall(&mut sample, 1, 0, 5_000);
        let never = sample.plan(1_200 * US);
        let run = Run::read(&sample.bytes()).expect("a log");
        for (i, (due, sent, expected)) in times.iter().enumerate() {
            let found: Vec<usize> = stalls_of(&run, i).collect();
            assert_eq!(&found, expected, "due {due}, sent {sent}");
        }
        assert!(stalls_of(&run, never.as_usize()).is_empty());
        assert_eq!(stall_hits(&run, 0..times.len()), [3, 2, 0]);
    }

    #[test]
    fn a_stall_hits_someone_exactly_if_somebody_was_hit() {
        for seed in 0..4 {
            let run = Run::read(&sample::log(seed, 400)).expect("a log");
            for i in 0..run.requests.len() {
                let explained = in_stall(&run, i) == Some(true);
                assert_eq!(!stalls_of(&run, i).is_empty(), explained, "seed {seed}, request {i}");
            }
        }
    }

    #[test]
    fn cores_share_the_work_and_idle_ones_are_there() {
        let mut sample = sample::sample(3, 300);
        sample.manifest.cores = vec![4, 6, 8];
        let run = Run::read(&sample.bytes()).expect("a log");
        let works = cores(&run, 0..300, None);
        assert_eq!(works.len(), 3);
        let sent: u64 = works.values().map(|work| work.sent).sum();
        assert_eq!(sent, (0..300).filter(|&i| run.requests.was_sent(i)).count() as u64);
        let stalled: u64 = works.values().map(|work| work.stalled_ns).sum();
        assert_eq!(stalled, run.stalls.all().iter().map(|stall| stall.length_ns).sum::<u64>());
        let idle = &works[&CoreIndex(2)];
        assert_eq!((idle.sent, idle.lateness_us, idle.cpu), (0, None, Some(8)));
        assert_eq!(idle.longest_ns, None, "no stall is no length");
        let late = works[&CoreIndex(0)].lateness_us.expect("it sent");
        assert!(late.p50 > 0.0 && late.max < 4_000.0, "{late:?}");
    }
}
