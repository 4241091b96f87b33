//! The instants that divide one exchange, for pictures: connect, send, prefill, decode, tail.
//!
//! | part | from | to |
//! |---|---|---|
//! | connect | its connection's opening began (only if it waited for that) | sent |
//! | send | sent | the kernel had accepted the last byte |
//! | prefill | sent | first token |
//! | decode | first token | last token |
//! | tail | last token | end |
//!
//! Instants that run backwards, as a damaged log may have them, are raised to the one before, so
//! the parts never overlap. Lengths are [`super::latency`]'s and [`super::life`]'s.

use crate::log::Class;
use crate::run::{Connect, Run};
use crate::units::RunNanos;

/// The instants that divide one exchange, ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phases {
    /// When the opening of its connection began, if the request waited for it.
    pub connect: Option<RunNanos>,
    /// When it left.
    pub sent: RunNanos,
    /// When the kernel had accepted its last byte; sent, if the log does not say.
    pub accepted: RunNanos,
    /// First token; `None`: there was none yet, or the answer came in one piece.
    pub first_token: Option<RunNanos>,
    /// Last token so far.
    pub last_token: Option<RunNanos>,
    /// When it ended; `None`: in flight when the log ends.
    pub end: Option<RunNanos>,
}

/// The phases of request `i`; `None` if it never left.
#[must_use]
pub fn phases(run: &Run, openings: &Openings, i: usize) -> Option<Phases> {
    let requests = &run.requests;
    let sent = requests.sent(i)?;
    let first_token = requests.first_token(i).map(|first| first.max(sent));
    let last_token =
        first_token.map(|first| requests.last_token(i).map_or(first, |last| last.max(first)));
    let end = requests.done(i).map(|end| end.max(last_token.unwrap_or(sent)));
    // An answer may begin before the kernel says that it took the whole question.
    let accepted = requests.sent_end(i).map_or(sent, |accepted| accepted.max(sent));
    let accepted = accepted.min(first_token.unwrap_or(accepted)).min(end.unwrap_or(accepted));
    let connect = openings.waited_for(run, i).map(|connect| connect.start.min(sent));
    Some(Phases { connect, sent, accepted, first_token, last_token, end })
}

/// The run's connections by their core's number, to find the one that carried a request.
#[derive(Clone, Debug, Default)]
pub struct Openings {
    /// Opened ones, by core, number and start.
    rows: Vec<Connect>,
}

impl Openings {
    /// All of a run.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        let opened = |connect: &&Connect| connect.class == Class::Ok;
        let mut rows: Vec<Connect> = run.connects.iter().filter(opened).copied().collect();
        rows.sort_by_key(|row| (row.core, row.connection, row.start));
        Self { rows }
    }

    /// The opening that request `i` waited for: it was the first on that connection, and could have
    /// left before the opening ended.
    #[must_use]
    pub fn waited_for(&self, run: &Run, i: usize) -> Option<&Connect> {
        let requests = &run.requests;
        if requests.connection_reused(i)? {
            return None;
        }
        let key = (requests.core(i)?, requests.connection(i)?);
        let sent = requests.sent(i)?;
        // A number may be used again; the last opening before the sending is meant.
        let after =
            self.rows.partition_point(|row| ((row.core, row.connection), row.start) <= (key, sent));
        let found = self.rows.get(after.checked_sub(1)?)?;
        let is_its = (found.core, found.connection) == key && found.end <= sent;
        let waited = requests.intended(i).is_some_and(|intended| intended < found.end);
        (is_its && waited).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Record;
    use crate::log::sample::{self, Sample};
    use crate::units::CoreIndex;

    const MS: i64 = 1_000_000;

    fn at(millis: i64) -> RunNanos {
        RunNanos(millis * MS)
    }

    fn read(sample: &Sample) -> Run {
        Run::read(&sample.bytes()).expect("a log")
    }

    #[test]
    fn the_parts_of_every_request_follow_each_other() {
        for seed in 0..4 {
            let run = Run::read(&sample::log(seed, 300)).expect("a log");
            let openings = Openings::of(&run);
            for i in 0..run.requests.len() {
                let Some(found) = phases(&run, &openings, i) else {
                    assert!(!run.requests.was_sent(i));
                    continue;
                };
                let order = [
                    found.connect,
                    Some(found.sent),
                    Some(found.accepted),
                    found.first_token,
                    found.last_token,
                    found.end,
                ];
                let known: Vec<_> = order.into_iter().flatten().collect();
                assert!(known.is_sorted(), "seed {seed}, request {i}: {found:?}");
                assert_eq!(Some(found.sent), run.requests.sent(i));
                assert_eq!(found.first_token, run.requests.first_token(i));
                assert_eq!(found.end, run.requests.done(i));
            }
        }
    }

    #[test]
    fn times_that_run_backwards_are_raised() {
        let mut sample = Sample::new();
        let request = sample.plan(0);
        sample.dispatch(request, 0, 5 * MS);
        sample.chunks(request, &[3 * MS, 4 * MS]);
        sample.done(request, 2 * MS, Class::Ok);
        let found = phases(&read(&sample), &Openings::default(), 0).expect("sent");
        assert_eq!((found.first_token, found.last_token), (Some(at(5)), Some(at(5))));
        assert_eq!(found.end, Some(at(5)));
    }

    #[test]
    fn a_connection_counts_only_if_the_request_waited_for_it() {
        let opening = |connection, start, end| Record::Connect {
            connection,
            start: at(start),
            end: at(end),
            target: 0,
            class: Class::Ok,
            errno: 0,
        };
        let connects = |openings: &[Record]| {
            let mut sample = Sample::new();
            let request = sample.plan(10 * MS);
            sample.dispatch(request, 10 * MS, 12 * MS);
            let time = at(13);
            let sent = Record::SentEnd { request, time, connection: 7, bytes: 9 };
            sample.push(CoreIndex(0), sent);
            openings.iter().for_each(|&opening| sample.push(CoreIndex(0), opening));
            let run = read(&sample);
            phases(&run, &Openings::of(&run), 0).expect("sent").connect
        };
        assert_eq!(connects(&[opening(7, 10, 12)]), Some(at(10)));
        assert_eq!(connects(&[opening(7, 1, 2)]), None, "it was there before");
        assert_eq!(connects(&[opening(8, 10, 12)]), None, "another's");
        let twice = [opening(7, 1, 2), opening(7, 11, 12), opening(7, 30, 31)];
        assert_eq!(connects(&twice), Some(at(11)), "the one before it left");
    }
}
