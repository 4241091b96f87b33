//! The line that is told when an assessment period of a user-driven run ends.
//!
//! What the director saw and decided, while the run goes on; who was active and who idle is known
//! when the log is read, and stands in the summary.

use onbeat_shared::counted::counted;
use onbeat_shared::log::users::{Assessment, RampReason};
use onbeat_shared::units::{NANOS_PER_MILLI, NANOS_PER_SECOND};

/// The line of a period. `None` for one at whose end the run was over: the summary is next.
pub(super) fn period_line(assessment: &Assessment) -> Option<String> {
    let Assessment { period, time, ttft_ns, users, in_flight, added, reason, limited, .. } =
        *assessment;
    if reason == RampReason::Ended {
        return None;
    }
    let seconds = |ns: i64| ns as f64 / NANOS_PER_SECOND as f64;
    let ttft = ttft_ns.map_or_else(
        || "no data".to_owned(),
        |ns| format!("{:.1} ms", ns as f64 / NANOS_PER_MILLI as f64),
    );
    Some(format!(
        "period {period}, to {:.1} s: {} ({limited} rate-limited), {} in flight, TTFT {ttft}; \
         ramp: +{added} ({}{})",
        seconds(time.0),
        counted(users.into(), "user"),
        counted(in_flight.into(), "request"),
        reason.link(added.into()),
        reason.words()
    ))
}

#[cfg(test)]
mod tests {
    use onbeat_shared::units::RunNanos;

    use super::*;

    #[test]
    fn a_period_is_told_with_its_decision_unless_the_run_is_over() {
        let mut assessment = Assessment {
            period: 3,
            time: RunNanos(90 * NANOS_PER_SECOND),
            ttft_ns: Some(512_345_678),
            users: 8,
            in_flight: 1,
            limited: 2,
            added: 1,
            reason: RampReason::Ramped,
            ..Assessment::default()
        };
        let words = "period 3, to 90.0 s: 8 users (2 rate-limited), 1 request in flight, TTFT \
                     512.3 ms; ramp: +1 (all gates passed)";
        assert_eq!(period_line(&assessment).as_deref(), Some(words));
        (assessment.ttft_ns, assessment.reason) = (None, RampReason::NoData);
        let line = period_line(&assessment).expect("told");
        assert!(line.contains("TTFT no data; "), "{line}");
        (assessment.added, assessment.reason) = (5, RampReason::WorkingSet);
        let line = period_line(&assessment).expect("told");
        assert!(line.ends_with("ramp: +5 (then no room in the working set)"), "{line}");
        assessment.reason = RampReason::Ended;
        assert_eq!(period_line(&assessment), None);
    }
}
