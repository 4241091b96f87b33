//! What the trace recorded of the answers to planned requests, as the log keeps it.

use onbeat_shared::log::recorded_row::RecordedRow;
use onbeat_shared::trace::Trace;
use onbeat_shared::units::RequestIndex;

use crate::plan::schedule::Send;

/// A row for each request of whose answer the trace recorded something, in send order; empty for
/// traces that record no answers.
pub(crate) fn rows(trace: &Trace, sends: &[Send]) -> Vec<RecordedRow> {
    let recorded = &trace.recorded;
    let row = |(request, send): (u32, &Send)| {
        let place = send.record as usize;
        let row = RecordedRow {
            cached_tokens: recorded.cached_tokens.get(place).copied().flatten(),
            duration_ns: recorded.duration_ns.get(place).copied().flatten(),
            first_token_ns: recorded.first_token_ns.get(place).copied().flatten(),
            cancelled: recorded.is_cancelled(send.record),
            ..RecordedRow::of(RequestIndex(request))
        };
        (!row.is_empty()).then_some(row)
    };
    (0_u32..).zip(sends).filter_map(row).collect()
}
