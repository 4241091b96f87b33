//! What each core did, every host stall with the requests it hit, and the client's part of TTFT.

use onbeat_shared::{
    metrics::{
        client_part::ClientShare,
        cores::{self, CoreWork, began_in},
        hosts::{HostReport, hosts},
        lateness::lateness_ns,
    },
    units::{CoreIndex, NANOS_PER_MICRO, RunNanos},
};

use super::StallOrder;
use crate::opened::OpenedRun;
use crate::selection::Selection;

/// One host stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StallRow {
    /// Whose clock jumped.
    pub core: CoreIndex,
    /// When the gap began.
    pub start: RunNanos,
    /// How long it was.
    pub length_ns: u64,
    /// How many of the chosen requests it made late.
    pub hit: u32,
}

/// Figures of a selection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Requests that left.
    pub sent: u64,
    /// Of these, requests that left later than the limit.
    pub beyond: u64,
    /// Of these, requests whose lateness host stalls explain.
    pub beyond_in_stalls: u64,
    /// Each core's work, by core.
    pub cores: Vec<(CoreIndex, CoreWork)>,
    /// Each machine's work, in a run that was merged from several.
    pub hosts: Vec<HostReport>,
    /// Host stalls, as they are to be listed.
    pub stalls: Vec<StallRow>,
    /// Requests whose lateness stalls explain.
    pub hit: u64,
    /// The client's part of TTFT.
    pub client: ClientShare,
}

/// The figures of a selection.
#[must_use]
pub fn figures(opened: &OpenedRun, selection: &Selection, order: StallOrder) -> Figures {
    let run = &opened.run;
    let chosen = opened.chosen(selection);
    let requests = || chosen.iter().map(|&i| i as usize);
    let range = selection.range.map(|range| (range.start, range.end));
    let works = cores::cores(run, requests(), range);
    let hits = cores::stall_hits(run, requests());
    let limit_us = i64::try_from(run.manifest.max_lateness_us).unwrap_or(i64::MAX);
    let limit_ns = limit_us.saturating_mul(NANOS_PER_MICRO);
    let is_beyond = |&i: &usize| lateness_ns(run, i).is_some_and(|late| late > limit_ns);
    let beyond: Vec<usize> = requests().filter(is_beyond).collect();
    let explained = |&&i: &&usize| !cores::stalls_of(run, i).is_empty();
    let rows = run.stalls.all().iter().zip(&hits).filter(|(stall, _)| began_in(range, stall));
    let mut stalls: Vec<StallRow> = rows
        .map(|(stall, &hit)| StallRow {
            core: stall.core,
            start: stall.start,
            length_ns: stall.length_ns,
            hit,
        })
        .collect();
    stalls.sort_by_key(|stall| (stall.start, stall.core));
    match order {
        StallOrder::Time => {}
        StallOrder::Length => stalls.sort_by_key(|stall| std::cmp::Reverse(stall.length_ns)),
        StallOrder::Hit => stalls.sort_by_key(|stall| std::cmp::Reverse(stall.hit)),
    }
    Figures {
        sent: works.values().map(|work| work.sent).sum(),
        beyond: beyond.len() as u64,
        beyond_in_stalls: beyond.iter().filter(explained).count() as u64,
        hit: works.values().map(|work| work.hit).sum(),
        cores: works.into_iter().collect(),
        hosts: hosts(run, requests(), range, run.manifest.max_lateness_us),
        stalls,
        client: ClientShare::of(run, requests().filter(|&i| run.requests.is_ok(i))),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use onbeat_shared::{log::sample, run::Run};

    use super::*;
    use crate::state::TimeRange;

    #[test]
    fn stalls_are_those_of_the_range_in_the_wanted_order() {
        let run = Run::read(&sample::log(5, 400)).expect("a log");
        let all = run.stalls.all().len();
        let opened = OpenedRun::new(PathBuf::from("sample.beat"), 0, run);
        let everything = Selection::default();
        let by_time = figures(&opened, &everything, StallOrder::Time);
        assert_eq!(by_time.stalls.len(), all);
        assert!(by_time.stalls.is_sorted_by_key(|stall| stall.start));
        let by_length = figures(&opened, &everything, StallOrder::Length);
        assert!(by_length.stalls.windows(2).all(|pair| pair[0].length_ns >= pair[1].length_ns));
        let by_hit = figures(&opened, &everything, StallOrder::Hit);
        assert!(by_hit.stalls.windows(2).all(|pair| pair[0].hit >= pair[1].hit));
        assert!(by_hit.stalls[0].hit > 0 && by_time.hit > 0);
        let whole = opened.whole();
        let range = TimeRange::between(whole.start, RunNanos(whole.start.0 + whole.span() / 2));
        let half = Selection { range: Some(range), filter: None };
        let found = figures(&opened, &half, StallOrder::Time);
        assert!(found.stalls.len() < all && !found.stalls.is_empty());
        assert!(found.stalls.iter().all(|stall| range.contains(stall.start)));
        assert!(found.sent < by_time.sent);
    }

    #[test]
    fn late_requests_are_told_by_cause() {
        let run = Run::read(&sample::log(5, 400)).expect("a log");
        let opened = OpenedRun::new(PathBuf::from("sample.beat"), 0, run);
        let found = figures(&opened, &Selection::default(), StallOrder::Time);
        // The sample is late in stalls only.
        assert_eq!(found.beyond, found.beyond_in_stalls);
        assert!(found.client.requests > 300 && found.client.p50.is_some());
    }
}
