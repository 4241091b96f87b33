//! What each machine of a merged run did: its requests, their lateness, its stalls, its clock.
//!
//! Lateness is measured by each machine's own clock from its own zero, so that a clock that is
//! wrong does not show in it; by how much the zeros of two machines may lie apart is the sum of the
//! errors of their clocks. The formulas are those of the whole run ([`super::schedule`]), over the
//! requests that a machine's cores sent; empty for a run of one machine.

use serde::Serialize;

use super::latency::nanos;
use super::lateness::{in_stall, lateness_ns};
use super::quantile::{Collector, Statistic};
use super::report::HostStalls;
use crate::counted::grouped;
use crate::quantity::number;
use crate::run::Run;
use crate::units::{CoreIndex, RunNanos};

/// One machine's part of the chosen requests.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct HostReport {
    /// The machine's name.
    pub host: String,
    /// The shard it sent.
    pub shard: u32,
    /// CPU number of each of its sending cores.
    pub cores: Vec<u16>,
    /// Requests of its plan, in the whole run; of users, those that its log tells of.
    pub planned: u64,
    /// Requests that left.
    pub sent: u64,
    /// Of these, the ones later than the verdict's limit, whatever the cause.
    pub late: u64,
    /// Their lateness.
    pub lateness_us: Option<Statistic>,
    /// Without requests hit by a host stall.
    pub lateness_outside_stalls_us: Option<Statistic>,
    /// Its host stalls that began in the chosen time.
    pub host_stalls: HostStalls,
    /// Whether its clock was synchronised right before zero; null: not known.
    pub clock_synchronised: Option<bool>,
    /// By how much it may have been wrong.
    pub clock_max_error_ms: Option<f64>,
    /// Whether its log was closed.
    pub closed: bool,
    /// Whether its user stopped it before its end.
    pub interrupted: bool,
    /// Records of its log that found no room.
    pub lost_records: u64,
}

/// What is gathered about one of them.
#[derive(Default)]
struct Work {
    sent: u64,
    late: u64,
    all: Collector,
    outside: Collector,
    stalls: HostStalls,
}

/// The machines of a run, by shard, with these requests, and the stalls that began in the stretch
/// of time (`None`: all); a request is late beyond so many microseconds.
#[must_use]
pub fn hosts(
    run: &Run,
    requests: impl IntoIterator<Item = usize>,
    range: Option<(RunNanos, RunNanos)>,
    max_lateness_us: u64,
) -> Vec<HostReport> {
    let Some(merged) = &run.manifest.merged else { return Vec::new() };
    let host_of = by_core(run);
    let mut works: Vec<Work> = merged.hosts.iter().map(|_| Work::default()).collect();
    let of_core = |core: CoreIndex| host_of.get(core.as_usize()).copied();
    let limit_ns = i64::try_from(max_lateness_us.saturating_mul(1_000)).unwrap_or(i64::MAX);
    for i in requests {
        let Some((core, late_ns)) = run.requests.core(i).zip(lateness_ns(run, i)) else { continue };
        let Some(work) = of_core(core).and_then(|host| works.get_mut(host)) else { continue };
        work.sent += 1;
        work.late += u64::from(late_ns > limit_ns);
        work.all.push(nanos(late_ns));
        if in_stall(run, i) != Some(true) {
            work.outside.push(nanos(late_ns));
        }
    }
    for stall in run.stalls.all().iter().filter(|stall| super::cores::began_in(range, stall)) {
        let Some(work) = of_core(stall.core).and_then(|host| works.get_mut(host)) else { continue };
        let length_ms = stall.length_ns as f64 / 1e6;
        work.stalls.count += 1;
        work.stalls.total_ms += length_ms;
        let longest = work.stalls.max_ms.unwrap_or(0.0);
        work.stalls.max_ms = Some(longest.max(length_ms));
    }
    let report = |(part, work): (&crate::log::HostPart, Work)| HostReport {
        host: part.host.hostname.clone(),
        shard: part.shard,
        cores: part.cores.clone(),
        planned: u64::from(part.requests),
        sent: work.sent,
        late: work.late,
        lateness_us: work.all.statistic(1e3),
        lateness_outside_stalls_us: work.outside.statistic(1e3),
        host_stalls: work.stalls,
        clock_synchronised: part.start.clock.map(|clock| clock.synchronised),
        clock_max_error_ms: part.start.clock.map(|clock| clock.max_error_ns as f64 / 1e6),
        closed: part.closed,
        interrupted: part.interrupted,
        lost_records: part.lost_records,
    };
    merged.hosts.iter().zip(works).map(report).collect()
}

/// The place of each core's machine among those of a merged run, by the core's number; `usize::MAX`
/// for a core of none, and empty for a run of one machine.
#[must_use]
pub fn by_core(run: &Run) -> Vec<usize> {
    let Some(merged) = &run.manifest.merged else { return Vec::new() };
    let mut places = Vec::new();
    for (place, host) in merged.hosts.iter().enumerate() {
        let first = usize::from(host.first_core);
        let end = (first + host.cores.len()).min(CoreIndex::CONDUCTOR.as_usize());
        if places.len() < end {
            places.resize(end, usize::MAX);
        }
        places[first.min(end)..end].fill(place);
    }
    places
}

#[cfg(test)]
impl HostReport {
    /// A machine that sent two requests, under a name that somebody else chose.
    pub(crate) fn named(host: &str) -> Self {
        Self {
            host: host.to_owned(),
            shard: 1,
            cores: vec![0],
            planned: 2,
            sent: 2,
            late: 0,
            lateness_us: None,
            lateness_outside_stalls_us: None,
            host_stalls: HostStalls::default(),
            clock_synchronised: Some(false),
            clock_max_error_ms: None,
            closed: true,
            interrupted: false,
            lost_records: 0,
        }
    }
}

/// A machine in words, for pages: its name (foreign), shard, requests sent, lateness (p50, p99 and
/// the most, in microseconds), host stalls, and how far its clock was to be trusted.
#[must_use]
pub fn rows(hosts: &[HostReport]) -> Vec<[String; 8]> {
    let row = |host: &HostReport| {
        let late = |figure: fn(&Statistic) -> f64| {
            let late = host.lateness_us.as_ref();
            late.map_or_else(|| "no data".to_owned(), |late| number(figure(late)))
        };
        let clock = match (host.clock_synchronised, host.clock_max_error_ms) {
            (Some(true), Some(error)) => format!("within {} ms", number(error)),
            (Some(false), _) => "not synchronised".to_owned(),
            _ => "not known".to_owned(),
        };
        [
            host.host.clone(),
            host.shard.to_string(),
            grouped(host.sent),
            late(|late| late.p50),
            late(|late| late.p99),
            late(|late| late.max),
            grouped(host.host_stalls.count),
            clock,
        ]
    };
    hosts.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::sample::Sample;
    use crate::log::{ClockState, Host, HostPart, Merged, Record, Start};

    const US: i64 = 1_000;

    /// Two machines of two cores and one: requests due every millisecond, sent so many us late.
    fn run(late_us: &[(u16, i64)]) -> Run {
        let mut sample = Sample::new();
        for (at, &(core, late_us)) in (0_i64..).zip(late_us) {
            let request = sample.plan(at * 1_000 * US);
            sample.plan[request.as_usize()].core = CoreIndex(core);
            sample.dispatch(request, at * 1_000 * US, (at * 1_000 + late_us) * US);
        }
        let host = |shard: u32, first_core, cores: &[u16], clock| HostPart {
            shard,
            first_core,
            cores: cores.to_vec(),
            host: Host { hostname: format!("h{shard}"), ..Host::default() },
            requests: 2,
            start: Start { clock, ..Start::default() },
            closed: true,
            ..HostPart::default()
        };
        let clock = ClockState { synchronised: true, max_error_ns: 250_000, estimated_error_ns: 1 };
        let hosts = vec![host(0, 0, &[3, 2], Some(clock)), host(1, 2, &[3], None)];
        sample.manifest.cores = vec![3, 2, 3];
        sample.manifest.merged = Some(Box::new(Merged { shards: 2, hosts, ..Merged::default() }));
        let (start, length_ns) = (RunNanos(2_000 * US), 500_000);
        sample.push(CoreIndex(2), Record::Stall { start, length_ns });
        Run::read(&sample.bytes()).expect("a log")
    }

    #[test]
    fn each_machine_has_its_own_lateness_stalls_and_clock() {
        let run = run(&[(0, 10), (1, 30), (2, 510), (2, 1_500)]);
        let found = hosts(&run, 0..4, None, 1_000);
        let [first, second] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((first.host.as_str(), first.shard, first.sent, first.late), ("h0", 0, 2, 0));
        assert_eq!(first.lateness_us.map(|late| (late.p50, late.max)), Some((20.0, 30.0)));
        assert_eq!(by_core(&run), [0, 0, 1]);
        assert_eq!(first.host_stalls, HostStalls::default());
        assert_eq!((first.clock_synchronised, first.clock_max_error_ms), (Some(true), Some(0.25)));
        assert_eq!((second.sent, second.late), (2, 1));
        assert_eq!(second.lateness_us.map(|late| late.max), Some(1_500.0));
        let outside = second.lateness_outside_stalls_us.map(|late| late.count);
        assert_eq!(outside, Some(1), "the stall explains one of them");
        assert_eq!(second.host_stalls.max_ms, Some(0.5));
        assert_eq!((second.clock_synchronised, second.clock_max_error_ms), (None, None));
        let words = rows(&found);
        let of = |words: &[String; 8]| words[2..].join(" | ");
        assert_eq!(of(&words[0]), "2 | 20 | 29.8 | 30 | 0 | within 0.25 ms");
        assert!(words[1][7] == "not known" && words[1][0] == "h1");
        let none = hosts(&run, [], Some((RunNanos(0), RunNanos(1))), 1_000);
        assert_eq!(none[1].lateness_us, None, "no request has no lateness");
        assert_eq!(none[1].host_stalls.count, 0);
        assert_eq!(rows(&none)[1][3], "no data");
    }

    #[test]
    fn a_run_of_one_machine_has_no_table_of_them() {
        let mut sample = Sample::new();
        sample.send(5);
        let run = Run::read(&sample.bytes()).expect("a log");
        assert_eq!(hosts(&run, 0..1, None, 1_000), []);
        assert!(by_core(&run).is_empty());
    }
}
