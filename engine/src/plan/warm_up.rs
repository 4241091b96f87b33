//! The requests that are sent once before a run: its first ones, one after the other.

use onbeat_shared::log::plan_row::PlanRow;
use onbeat_shared::units::{CoreIndex, RequestIndex, RunNanos};

use crate::plan::{LeftOut, Part, Plan, PlanMode};

impl Plan {
    /// The first `count` requests as a schedule of their own, for one core: each leaves when the
    /// one before it has ended.
    #[must_use]
    pub fn warm_up(&self, count: u32) -> Self {
        let first = self.rows.len().min(count as usize);
        let rows = self.rows[..first].iter().map(|row| PlanRow {
            core: CoreIndex(0),
            due: (row.request.0 == 0).then_some(RunNanos(0)),
            after: row.request.0.checked_sub(1).map(RequestIndex),
            think_ns: (row.request.0 > 0).then_some(0),
            ..*row
        });
        Self {
            rows: rows.collect(),
            record_of: self.record_of[..first].to_vec(),
            copy_of: self.copy_of.iter().copied().take(first).collect(),
            copies: self.copies,
            cancel_after: Vec::new(),
            recorded: Vec::new(),
            // Sessions are numbered by their first requests.
            sessions: self.sessions.iter().take(first).cloned().collect(),
            mode: PlanMode::ClosedLoop,
            left_out: LeftOut::default(),
            warnings: Vec::new(),
            part: self.part.as_ref().map(|part| Part {
                numbers: part.numbers.iter().copied().take(first).collect(),
                ..part.clone()
            }),
        }
    }
}
