//! Quantities that hold until they change: requests in flight, tokens in flight, rates.
//!
//! A step function is built from changes at instants. At one instant decreases come before
//! increases, and a value holds from its instant to the next; before the first instant it is zero.
//! Statistics over a window weigh every value by the time it held: a percentile is the smallest
//! value that covers its share of the time. These are AIPerf's rules, so that both tools give the
//! same figures for the same stamps.

use serde::Serialize;

use super::latency::{count, nanos};

/// Shares of the largest magnitude below which a sum of many changes is rounding, not a value.
const ROUNDING: f64 = 1e-9;

/// A step function of time, in nanoseconds of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Steps {
    times: Vec<i64>,
    values: Vec<f64>,
}

/// Statistics of a step function over a window, weighted by time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TimeWeighted {
    /// Mean over time.
    pub mean: f64,
    /// Standard deviation over time.
    pub std: f64,
    /// Smallest value that held for any time.
    pub min: f64,
    /// Value not exceeded for half of the time.
    pub p50: f64,
    /// For nine tenths of it.
    pub p90: f64,
    /// For 95 % of it.
    pub p95: f64,
    /// For 99 % of it.
    pub p99: f64,
    /// Largest value that held for any time.
    pub max: f64,
}

impl Steps {
    /// The function that changes by these amounts at these instants.
    #[must_use]
    pub fn from_changes(mut changes: Vec<(i64, f64)>) -> Self {
        changes.sort_by(|a, b| a.0.cmp(&b.0).then((a.1 > 0.0).cmp(&(b.1 > 0.0))));
        let mut value = 0.0_f64;
        let mut largest = 0.0_f64;
        let mut steps = Self::default();
        for (time, change) in changes {
            value += change;
            largest = largest.max(value.abs());
            if steps.times.last() == Some(&time) {
                steps.values.pop();
                steps.times.pop();
            }
            steps.times.push(time);
            steps.values.push(value);
        }
        for value in &mut steps.values {
            if value.abs() < ROUNDING * largest {
                *value = 0.0;
            }
        }
        steps
    }

    /// How many intervals hold at each instant: each holds from its start to its end.
    #[must_use]
    pub fn of_intervals(intervals: impl IntoIterator<Item = (i64, i64)>) -> Self {
        let changes = intervals.into_iter().flat_map(|(start, end)| [(start, 1.0), (end, -1.0)]);
        Self::from_changes(changes.collect())
    }

    /// Whether it never changes, and so is zero everywhere.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// First and last instant of change.
    #[must_use]
    pub fn span(&self) -> Option<(i64, i64)> {
        Some((*self.times.first()?, *self.times.last()?))
    }

    /// This over another; zero where the other is not above zero.
    #[must_use]
    pub fn over(&self, other: &Self) -> Self {
        let mut times: Vec<i64> = self.times.iter().chain(&other.times).copied().collect();
        times.sort_unstable();
        times.dedup();
        let (mut own, mut others) = (Cursor::new(self), Cursor::new(other));
        let ratio = |time: i64| {
            let (upper, lower) = (own.at(time), others.at(time));
            if lower > 0.0 { upper / lower } else { 0.0 }
        };
        let values = times.iter().copied().map(ratio).collect();
        Self { times, values }
    }

    /// Statistics from `start` to `end`; `None` where the function never changes or the window is
    /// empty.
    #[must_use]
    pub fn weighted(&self, (start, end): (i64, i64)) -> Option<TimeWeighted> {
        if self.is_empty() || end <= start {
            return None;
        }
        weigh(self.pieces(start, end).collect())
    }

    /// The same of those times only at which `mask` is above zero; `None` where it never is.
    #[must_use]
    pub fn weighted_where(&self, mask: &Self, window: (i64, i64)) -> Option<TimeWeighted> {
        let (start, end) = window;
        if self.is_empty() || end <= start {
            return None;
        }
        let mut pieces = Vec::new();
        let mut own = self.pieces(start, end).peekable();
        let mut masks = mask.pieces(start, end).peekable();
        let (mut value_left, mut mask_left) = (0_u64, 0_u64);
        let (mut value, mut masked) = (0.0, 0.0);
        loop {
            if value_left == 0 {
                let Some((length, next)) = own.next() else { break };
                (value_left, value) = (length, next);
            }
            if mask_left == 0 {
                let Some((length, next)) = masks.next() else { break };
                (mask_left, masked) = (length, next);
            }
            let length = value_left.min(mask_left);
            if masked > 0.0 {
                pieces.push((length, value));
            }
            value_left -= length;
            mask_left -= length;
        }
        weigh(pieces)
    }

    /// The window as pieces of constant value: length above zero, and value.
    fn pieces(&self, start: i64, end: i64) -> impl Iterator<Item = (u64, f64)> + '_ {
        let first = self.times.partition_point(|&time| time <= start);
        let last = self.times.partition_point(|&time| time < end);
        let before = first.checked_sub(1).map_or(0.0, |place| self.values[place]);
        let changes = first..last.max(first);
        let froms = std::iter::once((start, before))
            .chain(changes.clone().map(|place| (self.times[place], self.values[place])));
        let tos = changes.map(|place| self.times[place]).chain(std::iter::once(end));
        froms.zip(tos).filter_map(|((from, value), to)| {
            let length = to.saturating_sub(from).max(0).cast_unsigned();
            (length > 0).then_some((length, value))
        })
    }
}

/// Reads a function at instants that ascend.
struct Cursor<'a> {
    steps: &'a Steps,
    next: usize,
}

impl<'a> Cursor<'a> {
    const fn new(steps: &'a Steps) -> Self {
        Self { steps, next: 0 }
    }

    fn at(&mut self, time: i64) -> f64 {
        while self.steps.times.get(self.next).is_some_and(|&then| then <= time) {
            self.next += 1;
        }
        self.next.checked_sub(1).map_or(0.0, |place| self.steps.values[place])
    }
}

fn weigh(mut pieces: Vec<(u64, f64)>) -> Option<TimeWeighted> {
    let whole: u64 = pieces.iter().map(|piece| piece.0).sum();
    if whole == 0 {
        return None;
    }
    let whole = count(whole);
    let sum = |of: &dyn Fn(f64) -> f64| {
        pieces.iter().map(|&(length, value)| count(length) * of(value)).sum::<f64>() / whole
    };
    let mean = sum(&|value| value);
    let std = sum(&|value| (value - mean).powi(2)).sqrt();
    pieces.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (min, max) = (pieces.first()?.1, pieces.last()?.1);
    let covering = |share: f64| {
        let mut covered = 0_u64;
        let piece = pieces.iter().find(|piece| {
            covered += piece.0;
            count(covered) / whole >= share
        });
        piece.map_or(max, |piece| piece.1)
    };
    let [p50, p90, p95, p99] = [0.5, 0.9, 0.95, 0.99].map(covering);
    Some(TimeWeighted { mean, std, min, p50, p90, p95, p99, max })
}

/// A window's length in seconds; `None` if that is not above zero.
#[must_use]
pub fn seconds((start, end): (i64, i64)) -> Option<f64> {
    let length = end.checked_sub(start).filter(|&length| length > 0)?;
    Some(nanos(length) / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_weigh_as_long_as_they_hold() {
        // One request from 0 to 10, another from 5 to 10 and a third from 10 to 20.
        let steps = Steps::of_intervals([(0, 10), (5, 10), (10, 20)]);
        let all = steps.weighted((0, 20)).expect("changes");
        assert_eq!((all.mean, all.min, all.max), (1.25, 1.0, 2.0));
        assert_eq!((all.p50, all.p90, all.p99), (1.0, 2.0, 2.0));
        assert!((all.std - 0.1875_f64.sqrt()).abs() < 1e-12, "{}", all.std);
        let part = steps.weighted((5, 10)).expect("changes");
        assert_eq!((part.mean, part.std), (2.0, 0.0));
        let wider = steps.weighted((-20, 20)).expect("changes");
        assert_eq!((wider.mean, wider.min, wider.p50), (0.625, 0.0, 0.0));
        assert_eq!(steps.weighted((5, 5)), None);
        assert_eq!(Steps::default().weighted((0, 5)), None);
    }

    #[test]
    fn a_mask_leaves_the_idle_time_out() {
        let rate = Steps::from_changes(vec![(0, 4.0), (10, -4.0), (30, 2.0), (40, -2.0)]);
        let busy = Steps::of_intervals([(0, 10), (30, 40)]);
        let active = rate.weighted_where(&busy, (0, 40)).expect("busy");
        assert_eq!((active.mean, active.min, active.max), (3.0, 2.0, 4.0));
        assert_eq!(rate.weighted((0, 40)).expect("changes").mean, 1.5);
        assert_eq!(rate.weighted_where(&Steps::default(), (0, 40)), None);
    }

    #[test]
    fn a_quotient_is_zero_where_nobody_shares() {
        let tokens = Steps::from_changes(vec![(0, 6.0), (10, -6.0)]);
        let users = Steps::of_intervals([(0, 10), (5, 10)]);
        let each = tokens.over(&users).weighted((0, 20)).expect("changes");
        assert_eq!((each.max, each.min, each.mean), (6.0, 0.0, 2.25));
    }

    #[test]
    fn rounding_of_many_changes_is_no_value() {
        let changes = (0..1_000).flat_map(|k| [(k, 0.1), (k + 1_000, -0.1)]).collect();
        let steps = Steps::from_changes(changes);
        assert_eq!(steps.values.last(), Some(&0.0));
    }
}
