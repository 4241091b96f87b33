//! What one party of a pair showed: the server's stamps and its own, judged by the log's own rules.
//!
//! Whatever sent, the same code decides what lateness is and whether a host stall explains it: the
//! floor's times are put into a log like the engine's and read back.

use std::io::{Error, Result};

use benches::steady::{IN_TIME_NS, steady};
use onbeat_shared::log::sample::Sample;
use onbeat_shared::log::{Class, DoneFlags, Record};
use onbeat_shared::metrics::lateness::{in_stall, lateness_ns};
use onbeat_shared::metrics::quantile::percentile;
use onbeat_shared::run::Run;
use onbeat_shared::units::{CoreIndex, RunNanos};

use super::floor::Floor;
use super::server::Seen;

/// Times in nanoseconds from the schedule's zero; lists are sorted.
#[derive(Debug)]
pub(crate) struct Side {
    /// Lateness of arrivals as the server saw them.
    pub(crate) arrivals: Vec<f64>,
    /// Of those, what no host stall of the sender or the server explains.
    pub(crate) arrivals_outside: Vec<f64>,
    /// And what neither a stall nor catching up after one explains.
    pub(crate) arrivals_steady: Vec<f64>,
    /// Its own lateness: all of it, and what no host stall explains.
    pub(crate) own: Vec<f64>,
    pub(crate) outside: Vec<f64>,
    /// And what neither a stall nor catching up after one explains.
    pub(crate) steady: Vec<f64>,
    /// When the kernel had taken the last byte of the last request.
    pub(crate) sent_end_ns: f64,
    /// When the last byte of the last answer was read.
    pub(crate) end_ns: f64,
    /// Chunk records a second while the schedule ran.
    pub(crate) records_per_s: f64,
    /// How often the kernel gave its core to another thread, ours or a stranger's.
    pub(crate) switches: u64,
    /// Records that found no room.
    pub(crate) lost_records: u64,
    /// Requests of the schedule that did not end well.
    pub(crate) failed: usize,
    /// Requests that were due before they were written.
    pub(crate) underruns: usize,
    pub(crate) server: Seen,
    /// Host stalls: start and length.
    pub(crate) stalls: Vec<(i64, u64)>,
    /// The most memory its process has had, where that was watched.
    pub(crate) peak_bytes: Option<u64>,
    /// From when until when its process was stopped by us.
    pub(crate) stopped: Option<(i64, i64)>,
}

impl Side {
    /// From a run whose first `streams` requests are not part of the schedule `due`.
    pub(crate) fn of_run(run: &Run, zero_ns: i64, due: &[i64], seen: Seen) -> Result<Self> {
        let streams = run.plan.len().saturating_sub(due.len());
        let scheduled = streams..run.plan.len();
        let lateness = |outside: bool| {
            let wanted = |&i: &usize| !outside || in_stall(run, i) == Some(false);
            let late = scheduled.clone().filter(wanted).filter_map(|i| lateness_ns(run, i));
            sorted(late.map(|ns| ns as f64).collect())
        };
        let last = |times: &mut dyn Iterator<Item = i64>| times.max().unwrap_or(0) as f64;
        let requests = &run.requests;
        let late = arrivals(&seen, due, zero_ns, streams)?;
        let outside = late.iter().filter(|late| {
            in_stall(run, streams + late.place) != Some(true) && !late.explained_by(&seen.stalls)
        });
        let stalls: Vec<_> =
            run.stalls.all().iter().map(|stall| (stall.start.0, stall.length_ns)).collect();
        let own_stalls = stalls.iter().map(|&(start, length)| (start, length.cast_signed()));
        let its_stalls = seen.stalls.iter().map(|&(start, length)| (start - zero_ns, length));
        let both: Vec<_> = own_stalls.chain(its_stalls).collect();
        let times = |i| Some((requests.intended(i)?.0, lateness_ns(run, i)?));
        let times: Vec<_> = scheduled.clone().filter_map(times).collect();
        let arrivals_outside = sorted(outside.map(|late| late.ns as f64).collect());
        let mut arrived: Vec<_> = late.iter().map(|late| (due[late.place], late.ns)).collect();
        arrived.sort_unstable();
        let starved = |i: &usize| requests.flags(*i).has(DoneFlags::UNDERRUN);
        let is_ok = |i: &usize| requests.class(*i) == Some(Class::Ok);
        Ok(Self {
            arrivals: sorted(late.iter().map(|late| late.ns as f64).collect()),
            arrivals_outside,
            arrivals_steady: steady(&arrived, &both),
            own: lateness(false),
            outside: lateness(true),
            steady: steady(&times, &both),
            sent_end_ns: last(&mut scheduled.clone().filter_map(|i| Some(requests.sent_end(i)?.0))),
            end_ns: last(&mut scheduled.clone().filter_map(|i| Some(requests.done(i)?.0))),
            records_per_s: records_per_s(run, due),
            switches: run.footer.as_ref().map_or(0, |footer| {
                footer.cores.iter().map(|core| core.involuntary_switches).sum()
            }),
            lost_records: run.footer.as_ref().map_or(0, |footer| footer.lost_records),
            underruns: scheduled.clone().filter(starved).count(),
            failed: due.len() - scheduled.filter(is_ok).count(),
            server: seen,
            stalls,
            peak_bytes: None,
            stopped: None,
        })
    }

    /// From what the floor says of itself.
    pub(crate) fn of_floor(floor: &Floor, due: &[i64], seen: Seen) -> Result<Self> {
        let mut sample = Sample::new();
        for (&due, &sent) in due.iter().zip(&floor.sent_ns) {
            let request = sample.plan(due);
            sample.dispatch(request, due, sent);
        }
        for stall in &floor.stalls {
            let start = RunNanos(stall.start_ns - floor.zero_ns);
            let length_ns = stall.length_ns.unsigned_abs();
            sample.push(CoreIndex(0), Record::Stall { start, length_ns });
        }
        let run = Run::read(&sample.bytes()).map_err(Error::other)?;
        let side = Self::of_run(&run, floor.zero_ns, due, seen)?;
        let (sent_end_ns, end_ns) = (floor.sent_end_ns as f64, floor.end_ns as f64);
        // The floor does not look at answers: it counts their bytes, and all of them came.
        Ok(Self { sent_end_ns, end_ns, failed: 0, ..side })
    }

    /// From the server's stamps alone. The zero is not known: it is the one that makes every
    /// arrival as little late as can be without being early.
    pub(crate) fn of_stamps(mut seen: Seen, due: &[i64]) -> Result<Self> {
        let mut at: Vec<i64> = seen.requests.iter().map(|request| request.1).collect();
        at.sort_unstable();
        // What came before the schedule's first is the client's own probing.
        let extra = at.len().checked_sub(due.len()).ok_or_else(|| missing(at.len(), due.len()))?;
        let at = at.split_off(extra);
        let zero_ns = at.iter().zip(due).map(|(at, due)| at - due).min().unwrap_or(0);
        let late = at.iter().zip(due).map(|(at, due)| (at - due - zero_ns) as f64).collect();
        seen.requests.clear();
        Ok(Self {
            arrivals: sorted(late),
            arrivals_outside: Vec::new(),
            arrivals_steady: Vec::new(),
            own: Vec::new(),
            outside: Vec::new(),
            steady: Vec::new(),
            sent_end_ns: 0.0,
            end_ns: 0.0,
            records_per_s: 0.0,
            switches: 0,
            lost_records: 0,
            failed: 0,
            underruns: 0,
            server: seen,
            stalls: Vec::new(),
            peak_bytes: None,
            stopped: None,
        })
    }

    /// Share of requests whose lateness a host stall explains; none where it is not known.
    pub(crate) fn share_in_stalls(&self) -> f64 {
        (self.own.len() - self.outside.len()) as f64 / self.own.len().max(1) as f64
    }

    /// How long it was stopped by us, and how long the stall is that it reports there.
    pub(crate) fn stopped_and_reported(&self) -> Option<(f64, f64)> {
        let (from, to) = self.stopped?;
        let overlap = |&(start, length_ns): &(i64, u64)| {
            let end = start.saturating_add_unsigned(length_ns);
            end.min(to) - start.max(from)
        };
        let found =
            self.stalls.iter().filter(|stall| overlap(stall) > 0).max_by_key(|s| overlap(s));
        Some(((to - from) as f64, found.map_or(0.0, |stall| stall.1 as f64)))
    }

    /// Share of the arrivals outside host stalls that waited behind others.
    pub(crate) fn share_waiting(&self) -> f64 {
        let waited = self.arrivals_outside.iter().filter(|&&ns| ns > IN_TIME_NS as f64).count();
        waited as f64 / self.arrivals_outside.len().max(1) as f64
    }

    /// The lateness that a share of arrivals does not exceed.
    pub(crate) fn arrival(&self, share: f64) -> Option<f64> {
        percentile(&self.arrivals, share)
    }
}

/// When one request of the schedule arrived.
struct Arrival {
    /// Which of the schedule.
    place: usize,
    arrived_ns: i64,
    /// How late that was.
    ns: i64,
}

impl Arrival {
    /// Whether stalls of the server explain it, as stalls of the sender explain its lateness: they
    /// fill at least half of it.
    fn explained_by(&self, stalls: &[(i64, i64)]) -> bool {
        let due_ns = self.arrived_ns - self.ns;
        let overlap = |&(start, length): &(i64, i64)| {
            ((start + length).min(self.arrived_ns) - start.max(due_ns)).max(0)
        };
        self.ns > 0 && stalls.iter().map(overlap).sum::<i64>() * 2 >= self.ns
    }
}

/// Lateness of the schedule's arrivals, by the server's clock.
fn arrivals(seen: &Seen, due: &[i64], zero_ns: i64, streams: usize) -> Result<Vec<Arrival>> {
    let mut late = Vec::with_capacity(due.len());
    for &(number, arrived_ns) in &seen.requests {
        let Some(place) = (number as usize).checked_sub(streams) else { continue };
        let due_ns = due.get(place).ok_or_else(|| Error::other("an unknown request"))?;
        late.push(Arrival { place, arrived_ns, ns: arrived_ns - zero_ns - due_ns });
    }
    if late.len() != due.len() {
        return Err(missing(late.len(), due.len()));
    }
    Ok(late)
}

fn missing(found: usize, expected: usize) -> Error {
    Error::other(format!("{found} of {expected} requests arrived"))
}

/// Chunk records while the schedule ran, not while streams were opened.
fn records_per_s(run: &Run, due: &[i64]) -> f64 {
    let (Some(&first), Some(&last)) = (due.first(), due.last()) else { return 0.0 };
    if last <= first {
        return 0.0;
    }
    let in_time = |i: usize| {
        let chunks = run.chunks.row(i).iter();
        chunks.filter(|chunk| (first..last).contains(&chunk.time.0)).count()
    };
    let count: usize = (0..run.plan.len()).map(in_time).sum();
    count as f64 / (last - first) as f64 * 1e9
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}
