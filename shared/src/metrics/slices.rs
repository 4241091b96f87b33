//! A run in slices of equal length, as AIPerf cuts it.
//!
//! The grid begins at the first sending. A request belongs to the slice that holds its sending,
//! whenever it ends, and rates divide by the slice. The last slice ends with the run and is then
//! not complete. Slices in which nothing begins and no token arrives are left out. Tokens are also
//! counted where they arrived: prompt tokens at the first content event, completion tokens at each
//! event, so that the sums over all slices are the run's.

use std::collections::BTreeMap;

use super::latency::count;
use super::selection::Selection;
use super::throughput::{Window, last_stamp};
use super::tokens;
use crate::run::Run;
use crate::units::RunNanos;

/// One slice.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// Its place on the grid, from zero.
    pub index: u64,
    /// Where it begins.
    pub start: RunNanos,
    /// Where it ends: with the grid, or with the run.
    pub end: RunNanos,
    /// Whether it has its whole length.
    pub complete: bool,
    /// The requests that were sent in it, ascending.
    pub requests: Vec<u32>,
    /// Tokens that arrived in it.
    pub arrived: Arrived,
}

/// Tokens of successful requests, counted when they arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Arrived {
    /// Prompt tokens of requests whose first content event came.
    pub prompt: f64,
    /// Completion tokens of content events that came.
    pub completion: f64,
}

impl Slice {
    /// Its requests.
    #[must_use]
    pub fn selection<'a>(&'a self, run: &'a Run) -> Selection<'a> {
        Selection::of_list(run, Some((self.start, self.end)), Some(&self.requests))
    }

    /// Its two ends as numbers.
    #[must_use]
    pub const fn window(&self) -> (i64, i64) {
        (self.start.0, self.end.0)
    }
}

/// The slices of a run, each `length_ns` long, by time. None if nothing was sent, or the length is
/// not above zero.
#[must_use]
pub fn slices(run: &Run, length_ns: i64) -> Vec<Slice> {
    let whole = Selection::new(run, None);
    let Some(Window { start, end }) = Window::of(&whole).filter(|_| length_ns > 0) else {
        return Vec::new();
    };
    let mut grid = Grid { start, end, length_ns, slices: BTreeMap::new() };
    for (i, number) in (0..run.requests.len()).zip(0_u32..) {
        if let Some(sent) = run.requests.sent(i) {
            let index = grid.index(sent);
            grid.at(index).requests.push(number);
        }
    }
    for i in whole.successful() {
        grid.arrivals(run, i);
    }
    grid.slices.into_values().collect()
}

/// The slices so far, by their places.
struct Grid {
    start: RunNanos,
    end: RunNanos,
    length_ns: i64,
    slices: BTreeMap<u64, Slice>,
}

impl Grid {
    fn index(&self, time: RunNanos) -> u64 {
        let since = time.0.saturating_sub(self.start.0).max(0).cast_unsigned();
        since / self.length_ns.cast_unsigned()
    }

    fn at(&mut self, index: u64) -> &mut Slice {
        let (start, end, length_ns) = (self.start, self.end, self.length_ns);
        let edge = |place: u64| {
            let offset = i64::try_from(place).unwrap_or(i64::MAX).saturating_mul(length_ns);
            RunNanos(start.0.saturating_add(offset))
        };
        self.slices.entry(index).or_insert_with(|| Slice {
            index,
            start: edge(index),
            end: edge(index + 1).min(end),
            complete: edge(index + 1) <= end,
            requests: Vec::new(),
            arrived: Arrived::default(),
        })
    }

    /// Counts the tokens of a successful request where they arrived.
    fn arrivals(&mut self, run: &Run, i: usize) {
        let prompt = count(tokens::prompt(run, i).unwrap_or(0));
        let Some(weight) = tokens::per_chunk_token(run, i) else {
            // An answer that was not streamed arrived at its end.
            let Some(done) = last_stamp(run, i) else { return };
            let index = self.index(done);
            let arrived = &mut self.at(index).arrived;
            arrived.prompt += prompt;
            arrived.completion += count(tokens::completion(run, i).unwrap_or(0));
            return;
        };
        if let Some(first) = run.requests.first_token(i) {
            let index = self.index(first);
            self.at(index).arrived.prompt += prompt;
        }
        // Events come in order: the map is asked once per slice and request.
        let row: Vec<(u64, u64)> = (run.chunks.row(i).iter())
            .map(|chunk| (self.index(chunk.time), u64::from(chunk.tokens)))
            .collect();
        for events in row.chunk_by(|a, b| a.0 == b.0) {
            let sum: u64 = events.iter().map(|event| event.1).sum();
            self.at(events[0].0).arrived.completion += count(sum) * weight;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Class;
    use crate::log::sample::{self, Sample};

    const MS: i64 = 1_000_000;

    #[test]
    fn requests_belong_where_they_were_sent_and_tokens_where_they_arrived() {
        let mut sample = Sample::new();
        let first = sample.send(10 * MS);
        sample.chunks(first, &[90 * MS, 160 * MS, 310 * MS]);
        sample.done(first, 320 * MS, Class::Ok);
        let failed = sample.send(105 * MS);
        sample.done(failed, 120 * MS, Class::Http429);
        sample.plan(400 * MS);
        let run = Run::read(&sample.bytes()).expect("a log");
        let found = slices(&run, 100 * MS);
        let shown: Vec<_> = (found.iter())
            .map(|s| (s.index, s.start.0 / MS, s.end.0 / MS, s.complete, s.requests.clone()))
            .collect();
        assert_eq!(
            shown,
            [
                (0, 10, 110, true, vec![0, 1]),
                (1, 110, 210, true, vec![]),
                (3, 310, 320, false, vec![])
            ]
        );
        let arrived: Vec<_> =
            found.iter().map(|s| (s.arrived.prompt, s.arrived.completion)).collect();
        assert_eq!(arrived, [(100.0, 1.0), (0.0, 1.0), (0.0, 1.0)]);
        assert_eq!(slices(&run, 0), []);
        assert_eq!(slices(&Run::read(&Sample::new().bytes()).expect("a log"), MS), []);
    }

    #[test]
    fn sums_over_slices_are_the_runs() {
        let run = Run::read(&sample::log(3, 400)).expect("a log");
        let whole = super::super::throughput::Totals::of(&Selection::new(&run, None));
        for length_ns in [7 * MS, 250 * MS, 3_000 * MS, i64::MAX] {
            let found = slices(&run, length_ns);
            let sent: usize = found.iter().map(|slice| slice.requests.len()).sum();
            assert_eq!(sent, (0..run.requests.len()).filter(|&i| run.requests.was_sent(i)).count());
            let sum = |of: fn(&Arrived) -> f64| found.iter().map(|s| of(&s.arrived)).sum::<f64>();
            let (prompt, completion) = (sum(|a| a.prompt), sum(|a| a.completion));
            assert!((prompt - count(whole.prompt.expect("tokens"))).abs() < 1e-6, "{prompt}");
            let all = count(whole.completion.expect("tokens"));
            assert!((completion - all).abs() < 1e-6, "{completion}");
            assert!(found.iter().rev().skip(1).all(|slice| slice.complete));
        }
    }
}
