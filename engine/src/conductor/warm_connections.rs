//! How many connections a core should open before zero.
//!
//! An open-loop run needs as many as requests overlap, which depends on a server nobody has
//! measured yet. The guess: every answer takes `ANSWER_NS` plus `TOKEN_NS` a token. A guess too
//! low costs a connect in the middle of the run (logged and shown), one too high costs idle
//! sockets. Pure.

use std::collections::BTreeMap;

use onbeat_shared::log::plan_row::PlanRow;
use onbeat_shared::units::{CoreIndex, SessionIndex};

use crate::policy::reuse::Strategy;

/// Time to a first token of a loaded server.
const ANSWER_NS: i64 = 500_000_000;
/// Time of one output token of a loaded server.
const TOKEN_NS: i64 = 25_000_000;
/// Output length where the plan does not say.
const TOKENS: u32 = 128;
/// Idle connections beyond this help nobody before the server has shown that it needs them.
const WARM_MAX: usize = 4_096;

/// For each of so many servers, how many connections `core` should open to it: a share of `wanted`,
/// where the user named it, else by the guess. A server that gets a request gets a connection.
#[must_use]
pub fn for_each_server(
    rows: &[PlanRow],
    core: CoreIndex,
    servers: usize,
    reuse: Strategy,
    wanted: Option<usize>,
) -> Vec<usize> {
    let guessed = overlapping(rows, core, servers, reuse).into_iter().enumerate();
    guessed
        .map(|(number, guess)| {
            let share = |all: usize| all / servers + usize::from(number < all % servers);
            let least = usize::from(guess > 0 || servers == 1);
            wanted.map_or(guess.min(WARM_MAX), share).max(least)
        })
        .collect()
}

/// For each of so many servers, how many connections `core` may have at a time, by the guess; none
/// to a server that gets no request.
#[must_use]
pub fn overlapping(
    rows: &[PlanRow],
    core: CoreIndex,
    servers: usize,
    reuse: Strategy,
) -> Vec<usize> {
    let server = |number: usize| -> Vec<PlanRow> {
        let own = |row: &&PlanRow| row.core == core && usize::from(row.target) == number;
        rows.iter().filter(own).copied().collect()
    };
    let guess = |number: usize| {
        let rows = server(number);
        let guess = match reuse {
            Strategy::Pooled | Strategy::Never => connections(&rows),
            Strategy::StickyUserSessions => sessions(&rows),
        };
        // Requests that only wait for others have a connection as well.
        guess.max(usize::from(!rows.is_empty()))
    };
    (0..servers).map(guess).collect()
}

/// The same numbers, lowered until they are no more than `most` together.
#[must_use]
pub fn within(mut warm: Vec<usize>, most: usize) -> Vec<usize> {
    let mut left = most;
    let servers = warm.len();
    for (number, warm) in warm.iter_mut().enumerate() {
        *warm = (*warm).min(left.div_ceil(servers - number));
        left -= *warm;
    }
    warm
}

/// The most sessions that overlap under the guess, from their first request to their last answer.
fn sessions(rows: &[PlanRow]) -> usize {
    let mut spans: BTreeMap<SessionIndex, (i64, i64)> = BTreeMap::new();
    for row in rows {
        let known = spans.get(&row.session).map(|&(_, end)| end);
        let start = match row.due {
            Some(due) => due.0,
            None => known.unwrap_or(0).saturating_add(row.think_ns.unwrap_or(0)),
        };
        let span = spans.entry(row.session).or_insert((start, start));
        span.1 = span.1.max(start.saturating_add(answer_ns(row)));
    }
    overlap(spans.into_values())
}

/// The most requests that overlap under the guess.
fn connections(rows: &[PlanRow]) -> usize {
    let span = |row: &PlanRow| {
        let start = match (row.due, row.after) {
            (Some(due), _) => due.0,
            (None, None) => 0,
            // It leaves some time after another has ended, and that one's connection is free then.
            (None, Some(_)) => return None,
        };
        Some((start, start.saturating_add(answer_ns(row))))
    };
    overlap(rows.iter().filter_map(span))
}

/// How long an answer takes, as a guess.
fn answer_ns(row: &PlanRow) -> i64 {
    ANSWER_NS + i64::from(row.max_tokens.unwrap_or(TOKENS)) * TOKEN_NS
}

/// The most spans that overlap.
fn overlap(spans: impl Iterator<Item = (i64, i64)>) -> usize {
    let mut edges: Vec<(i64, i32)> =
        spans.flat_map(|(start, end)| [(start, 1), (end, -1)]).collect();
    // At one instant ends come first: -1 sorts before 1.
    edges.sort_unstable();
    let (mut open, mut most) = (0_i32, 0_i32);
    for (_, change) in edges {
        open += change;
        most = most.max(open);
    }
    usize::try_from(most).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use onbeat_shared::units::RequestIndex;

    use super::*;
    use crate::policy::session::tests::row as planned;

    fn row(due_ms: i64, max_tokens: u32, core: u16) -> PlanRow {
        PlanRow {
            core: CoreIndex(core),
            max_tokens: Some(max_tokens),
            ..planned(0, Some(due_ms * 1_000_000), None, 0)
        }
    }

    #[test]
    fn overlap_is_counted_per_core() {
        let rows = [row(0, 1, 0), row(100, 1, 0), row(10_000, 1, 0), row(0, 1, 1)];
        let of = |core| for_each_server(&rows, CoreIndex(core), 1, Strategy::Pooled, None);
        assert_eq!((of(0), of(1)), (vec![2], vec![1]));
        assert_eq!(of(2), [1], "who has nothing to send finds out whether it could");
    }

    #[test]
    fn a_turn_that_only_waits_for_another_needs_no_connection_of_its_own() {
        let later = PlanRow { due: None, after: Some(RequestIndex(0)), ..row(0, 1, 0) };
        let first = PlanRow { due: None, ..row(0, 1, 0) };
        assert_eq!(connections(&[first, later, later, later]), 1);
        assert_eq!(connections(&[first, first]), 2);
    }

    #[test]
    fn long_answers_overlap_longer() {
        let rows = [row(0, 1_000, 0), row(10_000, 1, 0)];
        assert_eq!(connections(&rows), 2);
    }

    #[test]
    fn sessions_that_stick_overlap_from_their_first_turn_to_their_last() {
        let of =
            |session: u32, due_ms| PlanRow { session: SessionIndex(session), ..row(due_ms, 1, 0) };
        let rows = [of(0, 0), of(1, 20_000), of(0, 60_000)];
        assert_eq!((connections(&rows), sessions(&rows)), (1, 2));
    }

    #[test]
    fn servers_share_what_the_user_allows() {
        let mut rows = [row(0, 1, 0), row(1, 1, 0), row(2, 1, 0)];
        rows[1].target = 1;
        let of = |wanted| for_each_server(&rows, CoreIndex(0), 3, Strategy::Never, wanted);
        assert_eq!(of(None), [2, 1, 0]);
        assert_eq!(of(Some(7)), [3, 2, 2]);
        assert_eq!(within(of(Some(7)), 4), [2, 1, 1]);
        assert_eq!(within(of(None), 100), [2, 1, 0]);
        assert_eq!(within(vec![9], 4), [4]);
    }
}
