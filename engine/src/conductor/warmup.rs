//! How many connections a core should open before zero.
//!
//! An open-loop run needs as many as requests overlap, which depends on a server nobody has
//! measured yet. The guess: every answer takes `ANSWER_NS` plus `TOKEN_NS` a token. A guess too
//! low costs a connect in the middle of the run (logged and shown), one too high costs idle
//! sockets. Pure.

use onbeat_shared::log::plan_row::PlanRow;
use onbeat_shared::units::CoreIndex;

/// Time to a first token of a loaded server.
const ANSWER_NS: i64 = 500_000_000;
/// Time of one output token of a loaded server.
const TOKEN_NS: i64 = 25_000_000;
/// Output length where the plan does not say.
const TOKENS: u32 = 128;
/// Idle connections beyond this help nobody before the server has shown that it needs them.
const WARM_MAX: usize = 4_096;

/// The most requests of `core` that overlap under the guess.
#[must_use]
pub fn connections(rows: &[PlanRow], core: CoreIndex) -> usize {
    let mut edges: Vec<(i64, i32)> = Vec::new();
    for row in rows.iter().filter(|row| row.core == core) {
        let start = match (row.due, row.after) {
            (Some(due), _) => due.0,
            (None, None) => 0,
            // It leaves some time after another has ended, and that one's connection is free then.
            (None, Some(_)) => continue,
        };
        let tokens = i64::from(row.max_tokens.unwrap_or(TOKENS));
        edges.push((start, 1));
        edges.push((start.saturating_add(ANSWER_NS + tokens * TOKEN_NS), -1));
    }
    // At one instant ends come first: -1 sorts before 1.
    edges.sort_unstable();
    let (mut open, mut most) = (0_i32, 0_i32);
    for (_, change) in edges {
        open += change;
        most = most.max(open);
    }
    usize::try_from(most).unwrap_or(0).min(WARM_MAX)
}

#[cfg(test)]
mod tests {
    use onbeat_shared::units::{RequestIndex, RunNanos, SessionIndex};

    use super::*;

    fn row(due_ms: i64, max_tokens: u32, core: u16) -> PlanRow {
        PlanRow {
            request: RequestIndex(0),
            session: SessionIndex(0),
            turn: 0,
            core: CoreIndex(core),
            target: 0,
            row: 1,
            due: Some(RunNanos(due_ms * 1_000_000)),
            after: None,
            source: 0,
            think_ns: None,
            input_tokens: None,
            max_tokens: Some(max_tokens),
            min_tokens: None,
            ideal_cached_tokens: None,
            ideal_set_tokens: None,
            blocks: 0,
            body_bytes: None,
        }
    }

    #[test]
    fn overlap_is_counted_per_core() {
        let rows = [row(0, 1, 0), row(100, 1, 0), row(10_000, 1, 0), row(0, 1, 1)];
        assert_eq!(connections(&rows, CoreIndex(0)), 2);
        assert_eq!(connections(&rows, CoreIndex(1)), 1);
        assert_eq!(connections(&rows, CoreIndex(2)), 0);
    }

    #[test]
    fn a_turn_that_only_waits_for_another_needs_no_connection_of_its_own() {
        let later = PlanRow { due: None, after: Some(RequestIndex(0)), ..row(0, 1, 0) };
        let first = PlanRow { due: None, ..row(0, 1, 0) };
        assert_eq!(connections(&[first, later, later, later], CoreIndex(0)), 1);
        assert_eq!(connections(&[first, first], CoreIndex(0)), 2);
    }

    #[test]
    fn long_answers_overlap_longer() {
        let rows = [row(0, 1_000, 0), row(10_000, 1, 0)];
        assert_eq!(connections(&rows, CoreIndex(0)), 2);
    }
}
