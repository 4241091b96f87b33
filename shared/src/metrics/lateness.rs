//! How late a request left, and what explains it.
//!
//! Lateness is sent − max(due, ready): what the sender itself added. It is never negative in a
//! sound log. A *host stall* is a jump of the sending core's own clock (the host took the processor
//! away); lateness inside one is the host's, not ours. A *burst* is more than one request due at
//! one instant on one core: they leave back to back, so the k-th of them waits for k − 1 sendings.

use super::latency::span;
use crate::run::{Run, Stall};
use crate::units::NANOS_PER_MICRO;

/// A request that was due this shortly after a stall's end still counts as hit by it: the core
/// first sends what had gathered. As long as the shortest stall that is logged.
pub const STALL_SHADOW_NS: i64 = 50 * NANOS_PER_MICRO;

/// Sent − max(due, ready) of request `i`; `None` if it never left.
#[must_use]
pub fn lateness_ns(run: &Run, i: usize) -> Option<i64> {
    span(run.requests.intended(i), run.requests.sent(i))
}

/// Whether a host stall of request `i`'s core lies between the instant it could leave and the
/// instant it left, or had ended just before. `None` if it never left.
#[must_use]
pub fn in_stall(run: &Run, i: usize) -> Option<bool> {
    let sent = run.requests.sent(i)?;
    let intended = run.requests.intended(i)?;
    let stalls = run.stalls.of_core(run.requests.core(i)?);
    // Stalls of one core follow each other, so the last that began before the sending decides.
    let begun = stalls.partition_point(|stall| stall.start <= sent);
    let hit = |stall: &Stall| stall.end().0.saturating_add(STALL_SHADOW_NS) >= intended.0;
    Some(stalls[..begun].last().is_some_and(hit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Record;
    use crate::log::sample::Sample;
    use crate::units::{CoreIndex, RunNanos};

    const US: i64 = 1_000;

    #[test]
    fn stalls_touch_requests_of_their_core_and_time_only() {
        let mut sample = Sample::new();
        // Due, sent; the stall of core 0 lasts from 1,000 to 1,300 us.
        let times = [
            (0, 5, false),
            (900, 905, false),
            (900, 1_310, true),
            (1_100, 1_310, true),
            (1_340, 1_345, true),
            (1_360, 1_380, false),
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
