//! What the schedule asked of the sender, and what it did.
//!
//! The *sending window* goes from the first to the last instant at which a request could leave:
//! max(due, ready), or due for one that never left. A turn is ready when its session's earlier
//! answer has ended; one that was due before has waited for it, and counts from when it was ready:
//! how many did and for how long is counted beside. Offered are the requests of that window per
//! second of it. Achieved are those of them that left, per second until the last but one had left,
//! but not less than the window. Neither the lateness limit nor time that a core lay in host stalls
//! is held against that length, and the very last one to leave is not, because one request is no
//! rate: where only a few were offered in a few milliseconds, its lateness, which is judged for
//! itself, would otherwise be a shortfall of half of them. So a request that is late, for whatever
//! reason, or a host stall does not lower the rate, and a backlog does, in a window of any length.
//! Requests that a stop kept from leaving were not offered, nor were those for which the server
//! gave no connection: neither is the sender's doing. Those that failed for want of a local
//! resource were offered and did not leave. Users offer nothing: who comes to a request decides
//! when it leaves, so a run that they drive has no such rates.

use super::latency::{count, nanos};
use super::lateness::{in_stall, lateness_ns, stalled_ns};
use super::quantile::{Collector, Statistic};
use super::report::SessionWaits;
use super::selection::Selection;
use crate::log::{Class, DoneFlags, Outcome};
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
    /// Requests of which a closed log has no record because parts of it are missing.
    pub lost: u64,
    /// Requests that left and have no end in the log.
    pub open: u64,
    /// Requests that did not leave for want of something on our side.
    pub kept: Kept,
    /// Requests that left and broke off on our side.
    pub broken_here: u64,
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
    /// Requests that left and had waited for their session's earlier answer beyond their due time.
    pub waited: u64,
    /// For how long in all.
    pub waited_ns: i64,
    /// Whether the log says of any that left when it was due and when ready.
    pub waits_known: bool,
    /// The longest of these waits.
    pub longest_wait_ns: i64,
    /// Users decided what is sent and when: nothing was offered at a rate.
    pub by_users: bool,
    /// When the last but one of them had left, the lateness limit and host stalls taken off, but
    /// not before the window's end.
    pub achieved_until: Option<RunNanos>,
}

/// Requests that did not leave, by what our side lacked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// A file descriptor.
    pub without_descriptor: u64,
    /// A local port.
    pub without_port: u64,
    /// Memory, permission, or whatever else.
    pub otherwise: u64,
}

/// A request of the sending window.
#[derive(Clone, Copy, Debug)]
struct Offered {
    intended: RunNanos,
    sent: Option<RunNanos>,
    /// How long its core lay in host stalls meanwhile.
    stalled_ns: i64,
}

impl Sending {
    /// Counts over the chosen requests; `max_lateness_us` is the lateness limit.
    #[must_use]
    pub fn of(selection: &Selection<'_>, max_lateness_us: u64) -> Self {
        let run = selection.run();
        let requests = &run.requests;
        // What a run that was given up did not come to was offered to nobody.
        let given_up = run.footer.as_ref().is_some_and(|footer| footer.given_up.is_some());
        let stopped = given_up || run.state != crate::run::State::Finished;
        let mut sending = Self { by_users: run.users.is_some(), ..Self::default() };
        let mut offered = Vec::new();
        for i in selection.requests() {
            sending.planned += 1;
            sending.underruns += u64::from(requests.flags(i).has(DoneFlags::UNDERRUN));
            let sent = requests.was_sent(i);
            sending.sent += u64::from(sent);
            sending.waits(requests.due(i).zip(requests.ready(i)).filter(|_| sent));
            let end = requests.end(i);
            sending.open += u64::from(end == End::Open);
            sending.not_reached += u64::from(end == End::NotReached);
            sending.lost += u64::from(end == End::Lost);
            let never = !sent && requests.outcome(i) == Some(Outcome::NeverSent);
            sending.never_sent += u64::from(never);
            let ours = match end {
                End::Known(class) if class.is_client_side() => Some(class),
                _ => None,
            };
            let by_client = ours.is_some() && !sent;
            sending.broken_here += u64::from(ours.is_some() && sent);
            match ours.filter(|_| by_client) {
                Some(Class::ClientNoDescriptor) => sending.kept.without_descriptor += 1,
                Some(Class::ClientNoPort) => sending.kept.without_port += 1,
                Some(_) => sending.kept.otherwise += 1,
                None => {}
            }
            let offered_now = sent
                || match end {
                    End::Known(_) if by_client => true,
                    End::Known(_) | End::NeverSent => never && !stopped,
                    End::Open | End::NotReached | End::Lost => false,
                };
            if let (true, Some(intended)) = (offered_now, requests.intended(i)) {
                let stalled_ns = stalled_ns(run, i).unwrap_or(0);
                offered.push(Offered {
                    intended,
                    sent: requests.sent(i),
                    stalled_ns: i64::try_from(stalled_ns).unwrap_or(i64::MAX),
                });
            }
        }
        let limit_ns = i64::try_from(max_lateness_us).unwrap_or(i64::MAX);
        sending.judge(&offered, limit_ns.saturating_mul(NANOS_PER_MICRO));
        sending
    }

    /// Counts a request that left, with the instants at which it was due and ready.
    fn waits(&mut self, instants: Option<(RunNanos, RunNanos)>) {
        let Some((due, ready)) = instants else { return };
        self.waits_known = true;
        let wait = ready.0.saturating_sub(due.0);
        if wait > 0 {
            self.waited += 1;
            self.waited_ns = self.waited_ns.saturating_add(wait);
            self.longest_wait_ns = self.longest_wait_ns.max(wait);
        }
    }

    /// Requests that waited for their session's earlier answer; `None` where users decide, whom
    /// admission holds back, and where no request has both instants.
    #[must_use]
    pub fn session_waits(&self) -> Option<SessionWaits> {
        let waits = SessionWaits {
            count: self.waited,
            total_ms: nanos(self.waited_ns) / 1e6,
            max_ms: (self.waited > 0).then(|| nanos(self.longest_wait_ns) / 1e6),
        };
        (self.waits_known && !self.by_users).then_some(waits)
    }

    /// Fills in what the requests of the sending window say together.
    fn judge(&mut self, offered: &[Offered], limit_ns: i64) {
        let first = offered.iter().map(|request| request.intended).min();
        let last = offered.iter().map(|request| request.intended).max();
        self.window = first.zip(last);
        self.offered = offered.len() as u64;
        // The two that left last.
        let mut latest = [None; 2];
        for request in offered {
            let Some(sent) = request.sent else { continue };
            self.achieved += 1;
            self.late += u64::from(sent.0.saturating_sub(request.intended.0) > limit_ns);
            let on_time = sent.0.saturating_sub(limit_ns).saturating_sub(request.stalled_ns);
            let on_time = Some(RunNanos(on_time));
            if on_time > latest[0] {
                latest = [on_time, latest[0]];
            } else if on_time > latest[1] {
                latest[1] = on_time;
            }
        }
        self.achieved_until = last.max(latest[1]);
    }

    /// The window's length in seconds; `None` if that is not above zero.
    #[must_use]
    pub fn window_s(&self) -> Option<f64> {
        seconds_until(self.window, self.window?.1)
    }

    /// Requests that could leave per second of the window; `None` where users decide.
    #[must_use]
    pub fn offered_rps(&self) -> Option<f64> {
        if self.by_users {
            return None;
        }
        Some(count(self.offered) / self.window_s()?)
    }

    /// Requests that left, per second until the last but one had left. `None` where there is no
    /// offered rate to compare it with.
    #[must_use]
    pub fn achieved_rps(&self) -> Option<f64> {
        self.offered_rps()?;
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
    use crate::log::sample::Sample;
    use crate::log::{Class, Record};
    use crate::run::Run;
    use crate::units::CoreIndex;

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
        for late_ms in [1, 4, 1_000] {
            let one = hundred(|k| if k == 99 { late_ms } else { 0 });
            assert!((share(&sending(&one)) - 1.0).abs() < 1e-9, "{late_ms} ms");
        }
        let backlog = share(&sending(&hundred(|k| k * 10)));
        assert!((backlog - 0.5).abs() < 0.01, "{backlog}");
    }

    /// Requests with the instants at which they are due and leave, and stalls of their core with
    /// their starts and lengths, in microseconds.
    fn timed(requests: &[(i64, i64)], stalls: &[(i64, u64)]) -> Sending {
        let mut sample = Sample::new();
        for &(due_us, sent_us) in requests {
            let request = sample.plan(due_us * 1_000);
            sample.dispatch(request, due_us * 1_000, sent_us * 1_000);
        }
        for &(start_us, length_us) in stalls {
            let (start, length_ns) = (RunNanos(start_us * 1_000), length_us * 1_000);
            sample.push(CoreIndex(0), Record::Stall { start, length_ns });
        }
        sending(&sample)
    }

    #[test]
    fn one_late_request_of_a_short_window_is_no_rate() {
        for late_us in [900, 1_500, 60_000] {
            let two = timed(&[(0, 20), (5_000, 5_000 + late_us)], &[]);
            assert!((share(&two) - 1.0).abs() < 1e-9, "{late_us} us");
            assert_eq!(two.late, u64::from(late_us > 1_000));
        }
        // Two of two are a backlog.
        let both = timed(&[(0, 20_000), (5_000, 20_010)], &[]);
        assert!(share(&both) < 0.5, "{}", share(&both));
    }

    #[test]
    fn a_host_stall_does_not_lower_the_rate_and_a_backlog_behind_it_does() {
        // Both wait for the end of one stall, and so does the window.
        let stalled = timed(&[(0, 9_000), (5_000, 9_010)], &[(10, 8_900)]);
        assert!((share(&stalled) - 1.0).abs() < 1e-9, "{stalled:?}");
        assert_eq!(stalled.late, 2);
        // The host takes half of the time, and the sender needs all of it.
        let requests: Vec<_> = (0..100).map(|k| (k * 10_000, k * 20_000)).collect();
        let stalls: Vec<_> = (0..200).map(|k| (k * 10_000, 5_000)).collect();
        let shared = share(&timed(&requests, &stalls));
        assert!((shared - 0.67).abs() < 0.01, "{shared}");
    }

    #[test]
    fn requests_beyond_the_lateness_limit_are_counted() {
        assert_eq!(sending(&hundred(|_| 1)).late, 0, "the limit itself is in it");
        assert_eq!(sending(&hundred(|k| if k < 30 { 2 } else { 0 })).late, 30);
    }

    #[test]
    fn turns_that_wait_for_their_session_are_counted_with_their_waits() {
        let mut sample = Sample::new();
        assert_eq!(sending(&sample).session_waits(), None, "nothing left");
        for (due, ready) in [(0, 0), (10, 35), (20, 20), (30, 40)] {
            let request = sample.plan(due * MS);
            sample.dispatch(request, ready * MS, (ready + 1) * MS);
            sample.done(request, (ready + 5) * MS, Class::Ok);
        }
        let waits = sending(&sample).session_waits().expect("they are known");
        assert_eq!((waits.count, waits.total_ms, waits.max_ms), (2, 35.0, Some(25.0)));
        let whole = sending(&sample);
        assert_eq!(whole.window, Some((RunNanos(0), RunNanos(40 * MS))), "from when they could");
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
        assert_eq!(whole.kept, Kept { without_port: 1, ..Kept::default() });
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
