//! What must hold after every event of a simulated run.

use onbeat_shared::log::plan_row::PlanRow;
use onbeat_shared::units::RunNanos;

/// One request's history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct History {
    /// When it left.
    pub(super) sent: Option<RunNanos>,
    /// When it ended.
    pub(super) ended: Option<RunNanos>,
    /// Whether its time was up before its answer came.
    pub(super) cancelled: bool,
}

/// A request leaves once, not before it is due, not before its predecessor has ended and its think
/// time has passed, and at once when both are true.
pub(super) fn sent_on_time(rows: &[PlanRow], history: &[History], index: usize, now: RunNanos) {
    let row = &rows[index];
    assert_eq!(history[index].sent, None, "request {index} left twice");
    let after = row.after.map(|after| {
        let ended = history[after.as_usize()].ended.expect("its predecessor has ended");
        RunNanos(ended.0 + row.think_ns.unwrap_or(0))
    });
    let ready = match (row.due, after) {
        (Some(due), Some(after)) => due.max(after),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => RunNanos(0),
    };
    assert_eq!(now, ready, "request {index} left at the wrong time");
}

/// Every request has left and ended, and a session never had two in flight at once.
pub(super) fn whole(rows: &[PlanRow], history: &[History]) {
    for (index, row) in rows.iter().enumerate() {
        let sent = history[index].sent.expect("every request leaves");
        let ended = history[index].ended.expect("every request ends");
        assert!(ended >= sent);
        if let Some(after) = row.after {
            let before = history[after.as_usize()].ended.expect("its predecessor has ended");
            assert!(sent >= before, "request {index} overtook its predecessor");
        }
    }
}

/// A request is cancelled the moment its time is up, and only if it has one; one that is not ended
/// by then.
pub(super) fn cancelled_on_time(after_ns: &[Option<i64>], history: &[History]) {
    for (index, (after_ns, history)) in after_ns.iter().zip(history).enumerate() {
        let (sent, ended) = history.sent.zip(history.ended).expect("every request ends");
        let took_ns = ended.0 - sent.0;
        match (after_ns, history.cancelled) {
            (Some(after_ns), true) => assert_eq!(took_ns, *after_ns, "request {index}"),
            (Some(after_ns), false) => assert!(took_ns <= *after_ns, "request {index} went on"),
            (None, cancelled) => assert!(!cancelled, "request {index} was to be answered"),
        }
    }
}

/// Requests that become ready at one instant leave in plan order.
pub(super) fn in_order(left: &[(RunNanos, u32)]) {
    for pair in left.windows(2) {
        assert!(pair[0].0 <= pair[1].0, "time ran backwards: {pair:?}");
    }
}
