//! How late a request left, and what explains it.
//!
//! Lateness is sent − max(due, ready): what the sender itself added. It is never negative in a
//! sound log. A *host stall* is a jump of the sending core's own clock (the host took the processor
//! away); lateness inside one is the host's, not ours. A *burst* is more than one request due at
//! one instant on one core: they leave back to back, so the k-th of them waits for k − 1 sendings.

use super::latency::span;
use crate::run::{Run, Stall};
use crate::units::{NANOS_PER_MICRO, RunNanos};

/// A request that was due this shortly after a stall's end can still be late by it: the core first
/// sends what had gathered. As long as the shortest stall that is logged.
pub const STALL_SHADOW_NS: i64 = 50 * NANOS_PER_MICRO;

/// Sent − max(due, ready) of request `i`; `None` if it never left.
#[must_use]
pub fn lateness_ns(run: &Run, i: usize) -> Option<i64> {
    span(run.requests.intended(i), run.requests.sent(i))
}

/// How long the core of request `i` lay in stalls while the request could have left, a stall that
/// had ended just before included. `None` if it never left.
pub(super) fn stalled_ns(run: &Run, i: usize) -> Option<u64> {
    let sent = run.requests.sent(i)?;
    let intended = run.requests.intended(i)?;
    let core = run.requests.core(i)?;
    let stalls = run.stalls.of_core(core);
    let ended = stalls.partition_point(|stall| stall.end() <= intended);
    let casts_shadow = |stall: &&Stall| stall.end().0.saturating_add(STALL_SHADOW_NS) >= intended.0;
    let shadow_ns = stalls[..ended].last().filter(casts_shadow).map_or(0, |s| s.length_ns);
    let until = until_sent(stalls, sent);
    Some(run.stalls.stalled_ns(core, intended, until).saturating_add(shadow_ns))
}

/// The end of what can have kept a request that left at `sent`. A stall begins when the core last
/// looked, a little before it sent, but the core ran when it stamped `sent`: of a stall that goes
/// on after that, only so much lay before as is a stall of its own. Where server and client share
/// a host, the server is woken by the very sending, and may take the core.
pub(super) fn until_sent(stalls: &[Stall], sent: RunNanos) -> RunNanos {
    let begun = stalls.partition_point(|stall| stall.start < sent);
    let after = |stall: &&Stall| {
        stall.end() > sent && sent.0.saturating_sub(stall.start.0) < STALL_SHADOW_NS
    };
    stalls[..begun].last().filter(after).map_or(sent, |stall| stall.start)
}

/// Whether host stalls explain the lateness of request `i`: half of it or more is time that its
/// core lay in stalls, one that had ended just before it could leave included. A short stall
/// during a long wait of another cause explains nothing. `None` if it never left.
#[must_use]
pub fn in_stall(run: &Run, i: usize) -> Option<bool> {
    let stalled_ns = stalled_ns(run, i)?;
    let late_ns = lateness_ns(run, i)?.max(0).cast_unsigned();
    Some(stalled_ns > 0 && stalled_ns.saturating_mul(2) >= late_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Record;
    use crate::log::sample::Sample;
    use crate::units::CoreIndex;

    const US: i64 = 1_000;

    #[test]
    fn stalls_touch_requests_of_their_core_and_time_only() {
        let mut sample = Sample::new();
        // Due, sent; the stall of core 0 lasts from 1,000 to 1,300 us.
        let times = [
            (0, 5, false),
            (900, 905, false),
            (900, 1_310, true),
            // Sent by then: the stall that followed explains nothing. A part of it may.
            (990, 1_010, false),
            (1_005, 1_010, false),
            (990, 1_060, true),
            (1_100, 1_310, true),
            (1_340, 1_345, true),
            (1_360, 1_380, false),
            // Late by something else, in which the stall was a small part.
            (600, 1_310, false),
            (900, 60_000, false),
        ];
        for (due, sent, _) in times {
            let request = sample.plan(due * US);
            sample.dispatch(request, due * US, sent * US);
        }
        for core in [CoreIndex(0), CoreIndex(1)] {
            let start = RunNanos(if core.0 == 0 { 1_000 * US } else { 0 });
            sample.push(core, Record::Stall { start, length_ns: 300_000 });
        }
        let never = sample.plan(1_200 * US);
        let run = Run::read(&sample.bytes()).expect("a log");
        for (i, (due, sent, stalled)) in times.into_iter().enumerate() {
            assert_eq!(in_stall(&run, i), Some(stalled), "due {due}, sent {sent}");
            assert_eq!(lateness_ns(&run, i), Some((sent - due) * US));
        }
        assert_eq!(in_stall(&run, never.as_usize()), None);
        assert_eq!(lateness_ns(&run, never.as_usize()), None);
        assert!(run.requests.in_burst(1) && run.requests.in_burst(2));
        assert!(!run.requests.in_burst(0));
    }
}
