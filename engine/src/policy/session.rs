//! Which request becomes ready when another one ends.
//!
//! The plan's edges say it all: a request without a predecessor is ready at its due time, one with
//! a predecessor at the later of its due time and (the predecessor's end + think time). A failed or
//! cancelled predecessor releases its followers just the same. This type does not order requests in
//! time (see [`super::queue`]) and does not know what a core or a connection is.

use onbeat_shared::log::plan_row::PlanRow;
use onbeat_shared::units::{RequestIndex, RunNanos};

const NONE: u32 = u32::MAX;

/// A request that may leave, and from when on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ready {
    /// When its due time has come and its predecessor has ended.
    pub at: RunNanos,
    /// Which request.
    pub request: RequestIndex,
}

/// The edges of one core's requests.
#[derive(Debug)]
pub struct Sessions {
    /// The first request of this core: followers are stored relative to nothing, so that an index
    /// is a plain plan index.
    first_follower: Vec<u32>,
    next_sibling: Vec<u32>,
    due: Vec<Option<RunNanos>>,
    think_ns: Vec<i64>,
    ended: Vec<bool>,
}

impl Sessions {
    /// The edges of a whole plan. Requests of other cores cost their table entries and nothing
    /// else.
    ///
    /// # Panics
    /// When an edge points to a request outside the plan or the plan is not in index order: plans
    /// are built by [`crate::plan`], which never does that.
    #[must_use]
    pub fn new(rows: &[PlanRow]) -> Self {
        let mut sessions = Self {
            first_follower: vec![NONE; rows.len()],
            next_sibling: vec![NONE; rows.len()],
            due: Vec::with_capacity(rows.len()),
            think_ns: Vec::with_capacity(rows.len()),
            ended: vec![false; rows.len()],
        };
        for (index, row) in rows.iter().enumerate() {
            assert_eq!(row.request.as_usize(), index, "a plan is in index order");
            sessions.due.push(row.due);
            sessions.think_ns.push(row.think_ns.unwrap_or(0));
        }
        // Backwards, so that followers of one request are found in plan order.
        for row in rows.iter().rev() {
            if let Some(after) = row.after {
                assert!(after.as_usize() < rows.len(), "an edge stays inside the plan");
                assert!(after != row.request, "a request does not wait for itself");
                sessions.next_sibling[row.request.as_usize()] =
                    sessions.first_follower[after.as_usize()];
                sessions.first_follower[after.as_usize()] = row.request.0;
            }
        }
        sessions
    }

    /// Tells that `request` has ended at `now` and hands each follower it released to `release`.
    ///
    /// # Panics
    /// When it had ended before: a request ends once.
    pub fn end(&mut self, request: RequestIndex, now: RunNanos, mut release: impl FnMut(Ready)) {
        let ended = &mut self.ended[request.as_usize()];
        assert!(!*ended, "a request ends once");
        *ended = true;
        let mut follower = self.first_follower[request.as_usize()];
        while follower != NONE {
            let index = follower as usize;
            let after = RunNanos(now.0.saturating_add(self.think_ns[index]));
            let at = self.due[index].map_or(after, |due| due.max(after));
            release(Ready { at, request: RequestIndex(follower) });
            follower = self.next_sibling[index];
        }
    }

    /// When the schedule asked for `request`, if it did.
    #[must_use]
    pub fn due(&self, request: RequestIndex) -> Option<RunNanos> {
        self.due[request.as_usize()]
    }

    /// Whether `request` has ended.
    #[must_use]
    pub fn has_ended(&self, request: RequestIndex) -> bool {
        self.ended[request.as_usize()]
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use onbeat_shared::units::{CoreIndex, SessionIndex};

    use super::*;

    /// A row of a plan, for the tests of all who read one: what they are about, they change.
    pub(crate) fn row(request: u32, due: Option<i64>, after: Option<u32>, think: i64) -> PlanRow {
        PlanRow {
            request: RequestIndex(request),
            session: SessionIndex(0),
            turn: 0,
            core: CoreIndex(0),
            target: 0,
            row: u64::from(request) + 1,
            due: due.map(RunNanos),
            after: after.map(RequestIndex),
            source: 0,
            think_ns: Some(think),
            input_tokens: None,
            max_tokens: None,
            min_tokens: None,
            ideal_cached_tokens: None,
            ideal_set_tokens: None,
            blocks: 0,
            body_bytes: None,
        }
    }

    fn released(sessions: &mut Sessions, request: u32, now: i64) -> Vec<(i64, u32)> {
        let mut out = Vec::new();
        sessions.end(RequestIndex(request), RunNanos(now), |ready| {
            out.push((ready.at.0, ready.request.0));
        });
        out
    }

    #[test]
    fn a_follower_waits_for_the_later_of_due_and_end() {
        let rows = [row(0, Some(0), None, 0), row(1, Some(100), Some(0), 0)];
        assert_eq!(released(&mut Sessions::new(&rows), 0, 40), [(100, 1)]);
        assert_eq!(released(&mut Sessions::new(&rows), 0, 140), [(140, 1)]);
    }

    #[test]
    fn think_time_counts_from_the_end_and_a_fork_releases_all_in_plan_order() {
        let rows = [
            row(0, Some(0), None, 0),
            row(1, None, Some(0), 7),
            row(2, None, Some(0), 5),
            row(3, None, Some(2), 0),
        ];
        let mut sessions = Sessions::new(&rows);
        assert_eq!(released(&mut sessions, 0, 10), [(17, 1), (15, 2)]);
        assert_eq!(released(&mut sessions, 2, 30), [(30, 3)]);
        assert!(sessions.has_ended(RequestIndex(2)));
        assert!(!sessions.has_ended(RequestIndex(3)));
    }
}
