//! What passed in each step of time: tokens and requests, for any stretch, without a look at most
//! of the run.
//!
//! Output tokens count when their content event came, prompt tokens at the first token, requests
//! at their end. All of it is of all chosen requests, whatever became of them: the headline rates
//! count successful ones only ([`super::throughput`]). One pass sums everything into narrow steps
//! from the run's begin on, of a power of ten nanoseconds, so that wider steps on their multiples
//! are differences of two sums. What is asked for in narrower ones is counted anew: a stretch that
//! is so short holds few events.

use std::sync::Arc;

use super::latency::count;
use super::tokens;
use crate::log::Outcome;
use crate::run::Run;
use crate::units::RunNanos;

/// The run has at most so many narrow steps.
const STEPS_MAX: i64 = 1_000_000;

/// What can pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Output tokens, when their content event came.
    Output,
    /// Prompt tokens, at the first token.
    Input,
    /// Successful requests, at their end.
    Completed,
    /// Requests that ended by themselves without success, at their end.
    Failed,
    /// Requests that were cancelled, by the plan, the user or the run's end, at their end.
    Cancelled,
}

/// How many kinds there are.
pub const KINDS: usize = 5;

/// The amounts of one step or stretch, by [`Kind`].
pub type Amounts = [f64; KINDS];

/// Equal steps of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Start of the first.
    pub start: RunNanos,
    /// Length of each, above zero.
    pub width: i64,
    /// How many.
    pub count: usize,
}

impl Grid {
    /// The end of the last step.
    #[must_use]
    pub fn end(self) -> RunNanos {
        let count = i64::try_from(self.count).unwrap_or(i64::MAX);
        RunNanos(self.start.0.saturating_add(self.width.saturating_mul(count)))
    }

    fn place(self, time: i64) -> Option<usize> {
        let place = time.checked_sub(self.start.0)?.div_euclid(self.width);
        usize::try_from(place).ok().filter(|&place| place < self.count)
    }
}

/// What passed in a run.
#[derive(Clone, Debug)]
pub struct Flows {
    grid: Grid,
    /// For each narrow step, what had passed before it; one more for the end.
    before: Vec<Amounts>,
    /// Only these requests count.
    chosen: Option<Arc<[u32]>>,
}

impl Flows {
    /// Sums what passed of all requests, or of those chosen, from `start` to `end`.
    #[must_use]
    pub fn of(run: &Run, chosen: Option<Arc<[u32]>>, (start, end): (RunNanos, RunNanos)) -> Self {
        let span = end.0.saturating_sub(start.0).max(1);
        let mut width = 1_000;
        while span / width >= STEPS_MAX {
            width *= 10;
        }
        let first = start.0.div_euclid(width);
        let steps = (end.0.max(start.0)).div_euclid(width).saturating_sub(first).saturating_add(1);
        let count = usize::try_from(steps.clamp(1, STEPS_MAX + 1)).unwrap_or(1);
        let grid = Grid { start: RunNanos(first.saturating_mul(width)), width, count };
        let mut before = vec![[0.0; KINDS]; grid.count + 1];
        each_event(run, chosen.as_deref(), grid, |place, kind, amount| {
            before[place + 1][kind as usize] += amount;
        });
        let mut sums = [0.0; KINDS];
        for amounts in &mut before {
            for (sum, amount) in sums.iter_mut().zip(amounts) {
                *sum += *amount;
                *amount = *sum;
            }
        }
        Self { grid, before, chosen }
    }

    /// Length of the narrow steps: wider ones on its multiples cost nothing.
    #[must_use]
    pub const fn width(&self) -> i64 {
        self.grid.width
    }

    /// What passed in each of these steps.
    #[must_use]
    pub fn amounts(&self, run: &Run, grid: Grid) -> Vec<Amounts> {
        let own = self.grid;
        let aligned = grid.width % own.width == 0 && grid.start.0 % own.width == 0;
        if !aligned {
            let mut amounts = vec![[0.0; KINDS]; grid.count];
            each_event(run, self.chosen.as_deref(), grid, |place, kind, amount| {
                amounts[place][kind as usize] += amount;
            });
            return amounts;
        }
        let mut edges = (0_i64..).map(|place| {
            let edge = grid.start.0.saturating_add(grid.width.saturating_mul(place));
            self.before[self.place(edge)]
        });
        let mut last = edges.next().unwrap_or_default();
        edges
            .take(grid.count)
            .map(|next| difference(next, std::mem::replace(&mut last, next)))
            .collect()
    }

    /// What passed from one instant up to another.
    #[must_use]
    pub fn between(&self, run: &Run, (start, end): (RunNanos, RunNanos)) -> Amounts {
        let width = self.grid.width;
        let from = start.0.div_euclid(width).saturating_mul(width);
        let from = if from < start.0 { from.saturating_add(width) } else { from };
        let to = end.0.div_euclid(width).saturating_mul(width);
        if from >= to {
            return self.counted(run, start.0, end.0);
        }
        let inner = difference(self.before[self.place(to)], self.before[self.place(from)]);
        let edges = [self.counted(run, start.0, from), self.counted(run, to, end.0)];
        edges.into_iter().fold(inner, |sum, edge| std::array::from_fn(|at| sum[at] + edge[at]))
    }

    /// What passed in a short stretch.
    fn counted(&self, run: &Run, start: i64, end: i64) -> Amounts {
        let mut amounts = [0.0; KINDS];
        if start < end {
            let grid = Grid { start: RunNanos(start), width: end - start, count: 1 };
            each_event(run, self.chosen.as_deref(), grid, |_, kind, amount| {
                amounts[kind as usize] += amount;
            });
        }
        amounts
    }

    /// The narrow step that begins at an instant, or the nearest one.
    fn place(&self, edge: i64) -> usize {
        let place = edge.saturating_sub(self.grid.start.0).div_euclid(self.grid.width);
        usize::try_from(place.max(0)).unwrap_or(usize::MAX).min(self.grid.count)
    }
}

fn difference(a: Amounts, b: Amounts) -> Amounts {
    std::array::from_fn(|at| a[at] - b[at])
}

/// Calls `each` with everything that passed within a grid: its step, what it was, how much.
fn each_event(
    run: &Run,
    chosen: Option<&[u32]>,
    grid: Grid,
    mut each: impl FnMut(usize, Kind, f64),
) {
    match chosen {
        Some(chosen) => {
            chosen.iter().for_each(|&i| each_of_request(run, i as usize, grid, &mut each));
        }
        None => (0..run.requests.len()).for_each(|i| each_of_request(run, i, grid, &mut each)),
    }
}

/// What the end of request `i` counts as; one that never left had none, whatever the log says.
fn ended_as(run: &Run, i: usize) -> Option<Kind> {
    match run.requests.outcome(i)? {
        Outcome::Ok => Some(Kind::Completed),
        Outcome::Cancelled => Some(Kind::Cancelled),
        Outcome::NeverSent => None,
        _ => Some(Kind::Failed),
    }
}

fn each_of_request(run: &Run, i: usize, grid: Grid, each: &mut impl FnMut(usize, Kind, f64)) {
    let requests = &run.requests;
    if let Some(place) = requests.done(i).and_then(|time| grid.place(time.0))
        && let Some(kind) = ended_as(run, i)
    {
        each(place, kind, 1.0);
    }
    let Some(first) = requests.first_token(i).filter(|&first| first < grid.end()) else { return };
    if let Some(place) = grid.place(first.0)
        && let Some(tokens) = tokens::prompt(run, i)
    {
        each(place, Kind::Input, count(tokens));
    }
    if requests.last_token(i).is_none_or(|last| last < grid.start) {
        return;
    }
    let Some(weight) = tokens::per_chunk_token(run, i) else { return };
    let row = run.chunks.row(i);
    let from = row.times().partition_point(|&time| time < grid.start.0);
    for place in from..row.len() {
        let chunk = row.chunk(place);
        let Some(step) = grid.place(chunk.time.0) else { break };
        each(step, Kind::Output, f64::from(chunk.tokens) * weight);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, proptest};

    use super::*;
    use crate::log::sample;

    fn run(seed: u64, requests: u32) -> (Run, (RunNanos, RunNanos)) {
        let run = Run::read(&sample::log(seed, requests)).expect("a log");
        let last = (0..run.requests.len()).filter_map(|i| run.requests.done(i)).max();
        (run, (RunNanos(0), last.expect("ends")))
    }

    /// What passed, event by event.
    fn by_hand(run: &Run, chosen: &[u32], start: i64, end: i64) -> Amounts {
        let mut amounts = [0.0; KINDS];
        let inside = |time: RunNanos| (start..end).contains(&time.0);
        for &i in chosen {
            let i = i as usize;
            if run.requests.done(i).is_some_and(inside) {
                amounts[if run.requests.is_ok(i) { 2 } else { 3 }] += 1.0;
            }
            if run.requests.first_token(i).is_some_and(inside) {
                amounts[1] += tokens::prompt(run, i).map_or(0.0, count);
            }
            for chunk in run.chunks.row(i).iter().filter(|chunk| inside(chunk.time)) {
                let weight = tokens::per_chunk_token(run, i).expect("it has events");
                amounts[0] += f64::from(chunk.tokens) * weight;
            }
        }
        amounts
    }

    fn close(found: Amounts, expected: Amounts) -> bool {
        found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6)
    }

    proptest! {
        /// Steps of any width and begin, and stretches, hold what passed in them.
        #[test]
        fn any_step_holds_what_passed_in_it(
            seed in 0_u64..3,
            start in -2_000_000_000_i64..6_000_000_000,
            width in prop::sample::select(vec![
                1_i64, 999, 1_000, 5_000, 10_000, 20_000, 37_777, 1_000_000, 500_000_000,
            ]),
            steps in 1_usize..40,
            chosen in prop::bool::ANY,
        ) {
            let (run, span) = run(seed, 120);
            let all: Vec<u32> = (0..120).filter(|i| !chosen || i % 3 == 0).collect();
            let flows = Flows::of(&run, chosen.then(|| Arc::from(all.as_slice())), span);
            for start in [start, start.div_euclid(width) * width] {
                let grid = Grid { start: RunNanos(start), width, count: steps };
                for (place, found) in (0_i64..).zip(flows.amounts(&run, grid)) {
                    let from = start + place * width;
                    let expected = by_hand(&run, &all, from, from + width);
                    assert!(close(found, expected), "{found:?} {expected:?}");
                }
                let whole = flows.between(&run, (grid.start, grid.end()));
                assert!(close(whole, by_hand(&run, &all, start, grid.end().0)));
            }
        }
    }

    #[test]
    fn a_run_of_nothing_has_no_flow() {
        let run = Run::read(&sample::Sample::new().bytes()).expect("a log");
        let flows = Flows::of(&run, None, (RunNanos(0), RunNanos(0)));
        assert_eq!(flows.between(&run, (RunNanos(-5), RunNanos(5))), [0.0; KINDS]);
    }
}
