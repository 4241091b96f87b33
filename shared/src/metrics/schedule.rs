//! What the schedule asked of the sender, and what it did.
//!
//! The *sending window* goes from the first to the last instant at which a request could leave:
//! max(due, ready), or due for one that never left. Offered are the requests of that window, achieved
//! those of them that left before it ended or at most the lateness limit after; both are divided by
//! the same length, so that 99 % means 99 of 100 requests. Requests that a stop kept from leaving
//! were not offered, nor were those for which the server gave no connection: neither is the
//! sender's doing. Those that failed for want of a local resource were offered and not achieved.

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
    /// Requests whose body was not ready when they were due.
    pub underruns: u64,
    /// First and last instant at which a request could leave.
    pub window: Option<(RunNanos, RunNanos)>,
    /// Requests offered in the window.
    pub offered: u64,
    /// Of these, requests that left in the window or at most the limit after.
    pub achieved: u64,
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
            let offered_now = sent
                || match end {
                    End::Known(class) if class.is_client_side() => true,
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
        let limit =
            i64::try_from(max_lateness_us).unwrap_or(i64::MAX).saturating_mul(NANOS_PER_MICRO);
        let deadline = last.map(|last| RunNanos(last.0.saturating_add(limit)));
        let in_time = |sent: &Option<RunNanos>| sent.is_some() && *sent <= deadline;
        sending.achieved = offered.iter().filter(|(_, sent)| in_time(sent)).count() as u64;
        sending
    }

    /// The window's length in seconds; `None` if that is not above zero.
    #[must_use]
    pub fn window_s(&self) -> Option<f64> {
        let (first, last) = self.window?;
        let length = last.0.checked_sub(first.0).filter(|&length| length > 0)?;
        Some(nanos(length) / 1e9)
    }

    /// Requests the schedule asked for per second.
    #[must_use]
    pub fn offered_rps(&self) -> Option<f64> {
        Some(count(self.offered) / self.window_s()?)
    }

    /// Requests that left in time for the window, per second.
    #[must_use]
    pub fn achieved_rps(&self) -> Option<f64> {
        Some(count(self.achieved) / self.window_s()?)
    }
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
