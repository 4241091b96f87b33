//! Which requests are cancelled, and how long after they have left whole: decided before zero.
//!
//! Two rules, which may both apply; the earlier one then strikes. `--request-cancellation-rate`
//! draws once for each request, in send order, from the generator that AIPerf 0.13 derives for
//! this, so that the same seed cancels the same requests. `--replay-cancellations` cancels the rows
//! whose client gave up, after as long as their recorded end took, with the schedule's speed-up. An
//! answer that ends before its time is up is an ordinary one.

use onbeat_shared::counted::{agreeing, counted};
use onbeat_shared::trace::Trace;

use crate::plan::PlanOptions;
use crate::plan::sample::Share;
use crate::plan::schedule::Send;
use crate::plan::twister::Twister;

/// What AIPerf derives this stream's seed from, beside the run's own.
const STREAM: &str = "timing.request.cancellation";

/// Requests to cancel by chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelling {
    /// The share of them; `None`: all.
    pub share: Option<Share>,
    /// How long after the last byte of a request has left.
    pub delay_ns: i64,
}

/// For each request, how long after it has left whole it is cancelled; empty when none is.
pub(crate) fn after(
    trace: &Trace,
    sends: &[Send],
    options: &PlanOptions,
    warnings: &mut Vec<String>,
) -> Vec<Option<i64>> {
    let mut after = match options.cancelling {
        Some(cancelling) => drawn(sends.len(), cancelling, options.seed),
        None => Vec::new(),
    };
    if options.replay_cancellations {
        after.resize(sends.len(), None);
        let untimed = as_recorded(trace, sends, options, &mut after);
        warnings.extend(told(trace, untimed));
    } else {
        warnings.extend(answered_whole(trace, sends));
    }
    if after.iter().all(Option::is_none) { Vec::new() } else { after }
}

fn drawn(requests: usize, cancelling: Cancelling, seed: u64) -> Vec<Option<i64>> {
    let mut draws = Twister::of_stream(seed, STREAM);
    let mut is_taken = || cancelling.share.is_none_or(|share| share.takes(&mut draws));
    (0..requests).map(|_| is_taken().then_some(cancelling.delay_ns)).collect()
}

/// Fills in what is recorded; returns how many were cancelled at a time that is not.
fn as_recorded(
    trace: &Trace,
    sends: &[Send],
    options: &PlanOptions,
    after: &mut [Option<i64>],
) -> u64 {
    let mut untimed = 0;
    for (send, after) in sends.iter().zip(after) {
        if trace.recorded.is_cancelled(send.record) != Some(true) {
            continue;
        }
        let took = trace.recorded.duration_ns.get(send.record as usize).copied().flatten();
        let took = took.and_then(|took_ns| options.speedup.divide(i128::from(took_ns)));
        untimed += u64::from(took.is_none());
        *after = match (*after, took) {
            (Some(drawn), Some(recorded)) => Some(drawn.min(recorded)),
            (one, other) => one.or(other),
        };
    }
    untimed
}

/// What a user should know who did not ask for the cancellations that the trace records.
fn answered_whole(trace: &Trace, sends: &[Send]) -> Option<String> {
    let is_cancelled = |send: &&Send| trace.recorded.is_cancelled(send.record) == Some(true);
    let mut cancelled = sends.iter().filter(is_cancelled);
    let first = trace.records[cancelled.next()?.record as usize].row;
    let more = cancelled.count() as u64;
    let others = if more > 0 { format!(" ({} such requests)", more + 1) } else { String::new() };
    Some(format!(
        "row {first}: request_canceled: cancelled only with --replay-cancellations{others}"
    ))
}

/// What a user who asked for recorded cancellations should know.
fn told(trace: &Trace, untimed: u64) -> Option<String> {
    if trace.recorded.cancelled.is_empty() {
        return Some(
            "--replay-cancellations changes nothing: no row of the trace says that its client gave \
             up"
            .to_owned(),
        );
    }
    (untimed > 0).then(|| {
        format!(
            "{} whose client gave up {} not cancelled: no duration_e2e_ms says when",
            counted(untimed, "request"),
            agreeing(untimed, "is", "are")
        )
    })
}

#[cfg(test)]
mod tests {
    use onbeat_shared::trace::blocks::BlockIds;
    use onbeat_shared::trace::decimal::Decimal;
    use onbeat_shared::trace::record::Record;
    use onbeat_shared::trace::recorded::Recorded;
    use onbeat_shared::trace::session::SessionNames;
    use onbeat_shared::trace::{Format, Source};
    use onbeat_shared::units::{NANOS_PER_SECOND, SessionIndex, TraceNanos};

    use super::*;
    use crate::plan::build;

    fn places(rate_percent: f64, seed: u64, requests: usize) -> Vec<usize> {
        let share = Share::of(rate_percent / 100.0).expect("a share");
        let after = drawn(requests, Cancelling { share, delay_ns: 5 }, seed);
        (0..requests).filter(|&request| after[request] == Some(5)).collect()
    }

    #[test]
    fn the_same_requests_are_cancelled_as_aiperf_cancels() {
        // python3 -c "import hashlib, random
        // seed = hashlib.sha256(b'42:timing.request.cancellation').digest()[:8]
        // r = random.Random(int.from_bytes(seed, 'big'))
        // print([i for i in range(20) if r.random() < 30 / 100.0])"
        assert_eq!(places(30.0, 42, 20), [2, 3, 12, 14, 16, 19]);
        assert_eq!(places(100.0, 42, 3), [0, 1, 2]);
    }

    /// Four rows a second apart: given up after 3 s, after a time nobody noted, and never.
    fn trace() -> Trace {
        let record = |row: u64| Record {
            row,
            at: TraceNanos(i64::try_from(row).expect("few") * NANOS_PER_SECOND),
            input_tokens: 1,
            output_tokens: Some(1),
            session: SessionIndex(u32::try_from(row).expect("few") - 1),
            turn: 0,
            first_block: 0,
            block_count: 0,
        };
        let recorded = Recorded {
            cancelled: vec![true, true, false, true],
            duration_ns: vec![Some(3 * NANOS_PER_SECOND), None, Some(9), Some(60)],
            ..Recorded::default()
        };
        Trace {
            source: Source {
                name: "t.parquet".to_owned(),
                sha256: String::new(),
                format: Format::Baseten,
                rows: 4,
                bytes: 0,
            },
            records: (1..=4).map(record).collect(),
            blocks: BlockIds::default(),
            block_tokens: 16,
            sessions: SessionNames::Fresh(4),
            recorded,
            warnings: Vec::new(),
        }
    }

    #[test]
    fn recorded_cancellations_come_when_they_came_then() {
        let speedup = Decimal::parse("20").and_then(|number| number.ratio()).expect("a factor");
        let options = PlanOptions { replay_cancellations: true, speedup, ..PlanOptions::default() };
        let plan = build(&trace(), &options).expect("a plan");
        assert_eq!(plan.cancel_after, [Some(150_000_000), None, None, Some(3)]);
        assert!(plan.warnings[0].starts_with("1 request whose client gave up is"));
        let both = PlanOptions {
            cancelling: Some(Cancelling { share: None, delay_ns: 50 }),
            ..options.clone()
        };
        let plan = build(&trace(), &both).expect("a plan");
        assert_eq!(plan.cancel_after, [Some(50), Some(50), Some(50), Some(3)]);
        let mut silent = trace();
        silent.recorded = Recorded::default();
        let plan = build(&silent, &options).expect("a plan");
        assert!(plan.cancel_after.is_empty() && plan.warnings[0].contains("changes nothing"));
        let plan = build(&trace(), &PlanOptions::default()).expect("a plan");
        assert!(plan.cancel_after.is_empty());
        let told = "row 1: request_canceled: cancelled only with --replay-cancellations";
        assert_eq!(plan.warnings, [format!("{told} (3 such requests)")]);
        let plan = build(&silent, &PlanOptions::default()).expect("a plan");
        assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);
    }
}
