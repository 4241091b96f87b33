//! What the schedule asked of the sender, and what it did.
//!
//! The *sending window* goes from the first to the last instant at which a request could leave:
//! max(due, ready), or due for one that never left. Offered are the requests of that window per
//! second of it. Achieved are those of them that left, per second until the last one left; the
//! lateness limit is not held against that length, so a request that is late within the limit, or
//! by a host stall that is short against the window, does not lower the rate. Requests that a stop
//! kept from leaving were not offered, nor were those for which the server gave no connection:
//! neither is the sender's doing. Those that failed for want of a local resource were offered and
//! did not leave.

use super::latency::{count, nanos};
use super::lateness::{in_stall, lateness_ns};
use super::quantile::{Collector, Statistic};
use super::selection::Selection;
use crate::log::{DoneFlags, Outcome};
use crate::run::End;
use crate::units::{NANOS_PER_MICRO, RunNanos};

/// Counts and the sending window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sending {
    /// Requests planned.
    pub planned: u64,
    /// Requests that left.
    pub sent: u64,
    /// Requests that are known never to have left.
    pub never_sent: u64,
    /// Requests that were not reached when the log ends.
    pub not_reached: u64,
    /// Requests that left and have no end in the log.
    pub open: u64,
    /// Requests that did not leave for want of a local resource: a descriptor, a port, memory.
    pub kept_by_client: u64,
    /// Requests whose body was not ready when they were due.
    pub underruns: u64,
    /// First and last instant at which a request could leave.
    pub window: Option<(RunNanos, RunNanos)>,
    /// Requests offered in the window.
    pub offered: u64,
    /// Of these, requests that left.
    pub achieved: u64,
    /// Of those, requests that left later than the lateness limit, whatever the cause.
    pub late: u64,
    /// When the last of them left, the lateness limit taken off, but not before the window's end.
    pub achieved_until: Option<RunNanos>,
}

impl Sending {
    /// Counts over the chosen requests; `max_lateness_us` is the lateness limit.
    #[must_use]
    pub fn of(selection: &Selection<'_>, max_lateness_us: u64) -> Self {
        let requests = &selection.run().requests;
        let stopped = selection.run().state != crate::run::State::Finished;
        let mut sending = Self::default();
        let mut offered = Vec::new();
        for i in selection.requests() {
            sending.planned += 1;
            sending.underruns += u64::from(requests.flags(i).has(DoneFlags::UNDERRUN));
            let sent = requests.was_sent(i);
            sending.sent += u64::from(sent);
            let end = requests.end(i);
            sending.open += u64::from(end == End::Open);
            sending.not_reached += u64::from(end == End::NotReached);
            let never = !sent && requests.outcome(i) == Some(Outcome::NeverSent);
            sending.never_sent += u64::from(never);
            let by_client = matches!(end, End::Known(class) if !sent && class.is_client_side());
            sending.kept_by_client += u64::from(by_client);
            let offered_now = sent
                || match end {
                    End::Known(_) if by_client => true,
                    End::Known(_) | End::NeverSent => never && !stopped,
                    End::Open | End::NotReached => false,
                };
            if let (true, Some(intended)) = (offered_now, requests.intended(i)) {
                offered.push((intended, requests.sent(i)));
            }
        }
        let first = offered.iter().map(|(intended, _)| *intended).min();
        let last = offered.iter().map(|(intended, _)| *intended).max();
        sending.window = first.zip(last);
        sending.offered = offered.len() as u64;
        sending.achieved = offered.iter().filter(|(_, sent)| sent.is_some()).count() as u64;
        let limit =
            i64::try_from(max_lateness_us).unwrap_or(i64::MAX).saturating_mul(NANOS_PER_MICRO);
        let is_late = |(intended, sent): &&(RunNanos, Option<RunNanos>)| {
            sent.is_some_and(|sent| sent.0.saturating_sub(intended.0) > limit)
        };
        sending.late = offered.iter().filter(is_late).count() as u64;
        let last_sent = offered.iter().filter_map(|(_, sent)| *sent).max();
        let on_time = last_sent.map(|sent| RunNanos(sent.0.saturating_sub(limit)));
        sending.achieved_until = last.max(on_time);
        sending
    }

    /// The window's length in seconds; `None` if that is not above zero.
    #[must_use]
    pub fn window_s(&self) -> Option<f64> {
        seconds_until(self.window, self.window?.1)
    }

    /// Requests the schedule asked for per second.
    #[must_use]
    pub fn offered_rps(&self) -> Option<f64> {
        Some(count(self.offered) / self.window_s()?)
    }

    /// Requests that left, per second until the last one left. `None` where there is no offered
    /// rate to compare it with.
    #[must_use]
    pub fn achieved_rps(&self) -> Option<f64> {
        self.window_s()?;
        Some(count(self.achieved) / seconds_until(self.window, self.achieved_until?)?)
    }
}

fn seconds_until(window: Option<(RunNanos, RunNanos)>, end: RunNanos) -> Option<f64> {
    let length = end.0.checked_sub(window?.0.0).filter(|&length| length > 0)?;
    Some(nanos(length) / 1e9)
}

/// Lateness in microseconds, in the parts that explain it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LatenessStatistics {
    /// All requests that left.
    pub all: Option<Statistic>,
    /// Without requests hit by a host stall.
    pub outside_stalls: Option<Statistic>,
    /// Requests hit by a host stall.
    pub in_stalls: Option<Statistic>,
    /// Requests that share their due instant with others on their core.
    pub burst: Option<Statistic>,
    /// The other requests.
    pub lone: Option<Statistic>,
    /// Whether any of them has three digits only.
    pub binned: bool,
}

impl LatenessStatistics {
    /// The lateness of the chosen requests.
    #[must_use]
    pub fn of(selection: &Selection<'_>) -> Self {
        let run = selection.run();
        let [mut all, mut outside, mut inside, mut burst, mut lone] =
            std::array::from_fn(|_| Collector::new());
        for i in selection.requests() {
            let Some(lateness) = lateness_ns(run, i).map(nanos) else { continue };
            all.push(lateness);
            let stalled = in_stall(run, i) == Some(true);
            if stalled { &mut inside } else { &mut outside }.push(lateness);
            if run.requests.in_burst(i) { &mut burst } else { &mut lone }.push(lateness);
        }
        let binned = all.is_binned();
        let us = |collector: Collector| collector.statistic(1e3);
        Self {
            all: us(all),
            outside_stalls: us(outside),
            in_stalls: us(inside),
            burst: us(burst),
            lone: us(lone),
            binned,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Class;
    use crate::log::sample::Sample;
    use crate::run::Run;

    const MS: i64 = 1_000_000;

    fn sending(sample: &Sample) -> Sending {
        let run = Run::read(&sample.bytes()).expect("a log");
        Sending::of(&Selection::new(&run, None), 1_000)
    }

    /// A hundred requests, 10 ms apart, each sent so many ms late.
    fn hundred(late: impl Fn(i64) -> i64) -> Sample {
        let mut sample = Sample::new();
        for k in 0..100 {
            let request = sample.plan(k * 10 * MS);
            sample.dispatch(request, k * 10 * MS, k * 10 * MS + late(k) * MS);
        }
        sample
    }

    fn share(sending: &Sending) -> f64 {
        sending.achieved_rps().expect("a rate") / sending.offered_rps().expect("a rate")
    }

    #[test]
    fn the_achieved_rate_falls_with_backlog_not_with_a_late_request() {
        assert!((share(&sending(&hundred(|_| 0))) - 1.0).abs() < 1e-9);
        assert!((share(&sending(&hundred(|k| i64::from(k == 99)))) - 1.0).abs() < 1e-9);
        let stalled = share(&sending(&hundred(|k| if k == 99 { 4 } else { 0 })));
        assert!(stalled > 0.99, "{stalled}");
        let backlog = share(&sending(&hundred(|k| k * 10)));
        assert!((backlog - 0.5).abs() < 0.01, "{backlog}");
    }

    #[test]
    fn requests_beyond_the_lateness_limit_are_counted() {
        assert_eq!(sending(&hundred(|_| 1)).late, 0, "the limit itself is in it");
        assert_eq!(sending(&hundred(|k| if k < 30 { 2 } else { 0 })).late, 30);
    }

    #[test]
    fn who_kept_a_request_from_leaving_decides_whether_it_was_offered() {
        let mut sample = hundred(|_| 0);
        for class in [Class::ConnectRefused, Class::ClientNoPort, Class::NotReached] {
            let request = sample.plan(500 * MS);
            sample.done(request, 501 * MS, class);
        }
        let whole = sending(&sample);
        assert_eq!((whole.planned, whole.sent, whole.never_sent), (103, 100, 1));
        assert_eq!((whole.offered, whole.achieved), (102, 100), "the server refused one");
        assert_eq!(whole.kept_by_client, 1);
        sample.interrupted = true;
        assert_eq!(sending(&sample).offered, 101, "the user kept one back");
    }

    #[test]
    fn one_instant_has_no_rate() {
        let mut sample = Sample::new();
        sample.send(5);
        sample.send(5);
        let sending = sending(&sample);
        assert_eq!(sending.window, Some((RunNanos(5), RunNanos(5))));
        assert_eq!((sending.offered_rps(), sending.achieved_rps()), (None, None));
    }
}
