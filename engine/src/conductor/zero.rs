//! The schedule's zero: as soon as everything is ready, or the instant that the user named.
//!
//! For a named instant the machine first waits while nothing is open, so that no server loses
//! patience with idle connections; then cores and connections are made ready, and right before the
//! zero it is found on the monotonic clock, which alone counts from there. Whoever is not ready in
//! time does not begin: machines that start together would otherwise not have started together.

use std::time::Duration;

use jiff::Timestamp;
use onbeat_shared::log::start::Start;

use super::{TICK, Watch};
use crate::clock::{monotonic_at, monotonic_ns, unix_ns};
use crate::error::EngineError;
use crate::replayer::Stop;

/// From the last core's "ready" to zero, unless the user named an instant.
const LEAD_NS: i64 = 50_000_000;
/// From the end of the wait with nothing open to a named zero: room to open connections.
const PREPARATION_NS: u64 = 10_000_000_000;
/// From the end of all waiting to a named zero. In this time the wall clock may be steered by 50 us
/// at the most (500 parts in a million).
const NAMED_LEAD_NS: u64 = 100_000_000;
/// Less than this before a named zero is too late to begin.
const TOO_LATE_NS: u64 = 10_000_000;

/// Waits while nothing is open, if the zero is named and far.
///
/// # Errors
/// When the user does not want the run any more.
pub(super) fn wait_apart(start: Option<&Start>, watch: &mut dyn Watch) -> Result<(), EngineError> {
    let Some(start) = start else { return Ok(()) };
    let left_ns = start.at_unix_ns.saturating_sub(unix_ns());
    if left_ns > 0 {
        watch.say(&format!(
            "ready to start at {}, in {:.1} s",
            shown(start.at_unix_ns),
            left_ns as f64 / 1e9
        ));
    }
    wait(start.at_unix_ns.saturating_sub(PREPARATION_NS), watch)
}

/// Waits until shortly before a named zero.
///
/// # Errors
/// When it has come while something was being made ready, or the user does not want the run any
/// more.
pub(super) fn wait_ready(start: Option<&Start>, watch: &mut dyn Watch) -> Result<(), EngineError> {
    let Some(start) = start else { return Ok(()) };
    let now_ns = unix_ns();
    if now_ns.saturating_add(TOO_LATE_NS) > start.at_unix_ns {
        let late_ns = i128::from(now_ns) - i128::from(start.at_unix_ns);
        return Err(EngineError::Run(format!(
            "--start-at {}: everything was ready only {:.3} s {} that, and nothing was sent; give \
             a later time",
            shown(start.at_unix_ns),
            late_ns.unsigned_abs() as f64 / 1e9,
            if late_ns < 0 { "before" } else { "after" }
        )));
    }
    wait(start.at_unix_ns.saturating_sub(NAMED_LEAD_NS), watch)
}

/// The zero on the monotonic clock.
pub(super) fn choose(start: Option<&Start>) -> i64 {
    start.map_or_else(|| monotonic_ns() + LEAD_NS, |start| monotonic_at(start.at_unix_ns))
}

fn wait(until_unix_ns: u64, watch: &mut dyn Watch) -> Result<(), EngineError> {
    loop {
        let left = Duration::from_nanos(until_unix_ns.saturating_sub(unix_ns()));
        if left.is_zero() {
            return Ok(());
        }
        if watch.stop() != Stop::No {
            return Err(EngineError::Stopped);
        }
        #[expect(clippy::disallowed_methods, reason = "nothing is timed on this thread")]
        std::thread::sleep(left.min(TICK));
    }
}

fn shown(unix_ns: u64) -> String {
    Timestamp::from_nanosecond(i128::from(unix_ns))
        .map_or_else(|_| unix_ns.to_string(), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replayer::counters::Snapshot;

    struct Says(Stop, Vec<String>);

    impl Watch for Says {
        fn say(&mut self, words: &str) {
            self.1.push(words.to_owned());
        }

        fn look(&mut self, _elapsed_ns: i64, _planned: u64, _counters: &Snapshot) {}

        fn stop(&mut self) -> Stop {
            self.0
        }
    }

    fn in_ns(ns: u64) -> Start {
        Start { at_unix_ns: unix_ns() + ns, ..Start::default() }
    }

    #[test]
    fn a_zero_that_has_passed_is_refused_and_nothing_begins() {
        let mut watch = Says(Stop::No, Vec::new());
        let past = Start { at_unix_ns: 5_000_000_000, ..Start::default() };
        let words = wait_ready(Some(&past), &mut watch).expect_err("long ago").to_string();
        assert!(words.contains("--start-at 1970-01-01T00:00:05Z"), "{words}");
        assert!(words.contains("nothing was sent; give a later time"), "{words}");
        wait_ready(None, &mut watch).expect("nobody named one");
    }

    #[test]
    fn who_waits_can_be_stopped() {
        let mut watch = Says(Stop::Drain, Vec::new());
        let far = in_ns(3_600_000_000_000);
        assert!(matches!(wait_apart(Some(&far), &mut watch), Err(EngineError::Stopped)));
        assert!(watch.1[0].starts_with("ready to start at "), "{:?}", watch.1);
        assert!(matches!(wait_ready(Some(&far), &mut watch), Err(EngineError::Stopped)));
    }

    #[test]
    fn a_named_zero_is_to_come_and_another_one_too() {
        let now_ns = monotonic_ns();
        assert!(choose(None) > now_ns);
        let named = choose(Some(&in_ns(60_000_000_000))) - now_ns;
        assert!((55_000_000_000..65_000_000_000).contains(&named), "{named}");
    }
}
