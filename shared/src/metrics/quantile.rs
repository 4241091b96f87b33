//! Percentiles, mean and deviation, by one rule.
//!
//! Percentiles interpolate linearly between order statistics (numpy's default) and are exact up to
//! 10⁷ values. Beyond that values go into a histogram with three significant digits: at most 0.1 %
//! off, bounded memory; [`Collector::is_binned`] says so. The deviation is the population's.

use hdrhistogram::Histogram;
use serde::Serialize;

use super::latency::count;
use super::ranked::Ranked;

/// Most values that are kept one by one: 80 MB.
pub const EXACT_VALUES_MAX: usize = 10_000_000;

/// The percentiles every statistic shows, as shares.
const SHARES: [f64; 11] = [0.01, 0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 0.999, 0.9999];

/// One distribution as the fixed set of numbers that outputs show.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Statistic {
    /// How many values.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Population standard deviation.
    pub std: f64,
    /// Smallest.
    pub min: f64,
    /// 1st percentile.
    pub p1: f64,
    /// 5th percentile.
    pub p5: f64,
    /// 10th percentile.
    pub p10: f64,
    /// 25th percentile.
    pub p25: f64,
    /// Median.
    pub p50: f64,
    /// 75th percentile.
    pub p75: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// 99.99th percentile.
    pub p9999: f64,
    /// Largest.
    pub max: f64,
}

/// Gathers values of one distribution.
#[derive(Clone, Debug)]
pub struct Collector {
    exact: Vec<f64>,
    exact_max: usize,
    /// Histogram steps per unit of a value.
    steps: f64,
    binned: Option<Box<Binned>>,
}

impl Collector {
    /// For whole numbers (nanoseconds): the histogram's smallest step is one.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_steps(1.0)
    }

    /// For small fractional numbers: the histogram has `steps` steps per unit.
    #[must_use]
    pub const fn with_steps(steps: f64) -> Self {
        Self { exact: Vec::new(), exact_max: EXACT_VALUES_MAX, steps, binned: None }
    }

    /// Adds a value; one that is not finite is ignored.
    pub fn push(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        match &mut self.binned {
            Some(binned) => binned.push(value, self.steps),
            None if self.exact.len() < self.exact_max => self.exact.push(value),
            None => {
                let mut binned = Box::new(Binned::new());
                for value in std::mem::take(&mut self.exact) {
                    binned.push(value, self.steps);
                }
                binned.push(value, self.steps);
                self.binned = Some(binned);
            }
        }
    }

    /// Adds values.
    pub fn extend(&mut self, values: impl IntoIterator<Item = f64>) {
        for value in values {
            self.push(value);
        }
    }

    /// Whether there were more than 10⁷ values, so that percentiles have three digits.
    #[must_use]
    pub const fn is_binned(&self) -> bool {
        self.binned.is_some()
    }

    /// The values in order, for those who need more than the statistic's numbers.
    #[must_use]
    pub fn ranked(self) -> Ranked {
        match &self.binned {
            Some(binned) => binned.ranked(self.steps),
            None => Ranked::from(self.exact),
        }
    }

    /// The statistic, every number divided by `unit`; `None` without a value.
    #[must_use]
    pub fn statistic(mut self, unit: f64) -> Option<Statistic> {
        if let Some(binned) = &self.binned {
            return Some(binned.statistic(self.steps, unit));
        }
        self.exact.sort_unstable_by(f64::total_cmp);
        let n = self.exact.len();
        let mean = self.exact.iter().sum::<f64>() / count(n as u64);
        let squares = self.exact.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        let (&min, &max) = (self.exact.first()?, self.exact.last()?);
        let shares = SHARES.map(|share| percentile(&self.exact, share).unwrap_or(max));
        let moments = Moments { count: n as u64, mean, std: (squares / count(n as u64)).sqrt() };
        Some(arrange(&moments, min, max, shares, unit))
    }
}

impl Default for Collector {
    fn default() -> Self {
        Self::new()
    }
}

/// The value below which a share of the sorted values lies, interpolated linearly between the two
/// nearest as numpy does. `None` without values.
#[must_use]
pub fn percentile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = share.clamp(0.0, 1.0) * count(last as u64);
    let below = floor(place).min(last);
    let above = (below + 1).min(last);
    let fraction = place - count(below as u64);
    let (low, high) = (sorted[below], sorted[above]);
    let gap = high - low;
    // numpy's own order of operations: exact at both ends.
    Some(if fraction < 0.5 { low + gap * fraction } else { high - gap * (1.0 - fraction) })
}

/// The percentile if each failure had taken forever: nearest rank over values and failures, of two
/// that are equally near the even one; `None` where the answer is infinite or there is neither.
#[must_use]
pub fn error_adjusted(sorted: &[f64], failures: u64, share: f64) -> Option<f64> {
    let last = (sorted.len() as u64 + failures).checked_sub(1)?;
    let rank = (share.clamp(0.0, 1.0) * count(last)).round_ties_even();
    sorted.get(floor(rank)).copied()
}

/// More than 10⁷ values.
#[derive(Clone, Debug)]
struct Binned {
    /// Of values from zero up.
    positive: Histogram<u64>,
    /// Of the magnitude of values below zero, which only an unsound log has.
    negative: Histogram<u64>,
    count: u64,
    mean: f64,
    /// Sum of squared distances from the mean, by Welford's method.
    squares: f64,
    min: f64,
    max: f64,
}

impl Binned {
    fn new() -> Self {
        let histogram = || Histogram::new(3).expect("three digits are legal");
        Self {
            positive: histogram(),
            negative: histogram(),
            count: 0,
            mean: 0.0,
            squares: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
        }
    }

    fn push(&mut self, value: f64, steps: f64) {
        let side = if value < 0.0 { &mut self.negative } else { &mut self.positive };
        let bin = whole_steps(value.abs() * steps);
        // The histogram grows as needed; where it cannot, its last bin takes the value.
        if side.record(bin).is_err() {
            side.saturating_record(bin);
        }
        self.count += 1;
        let distance = value - self.mean;
        self.mean += distance / count(self.count);
        self.squares += distance * (value - self.mean);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    fn statistic(&self, steps: f64, unit: f64) -> Statistic {
        let shares = SHARES.map(|share| self.at(share, steps).clamp(self.min, self.max));
        let std = (self.squares / count(self.count)).sqrt();
        let moments = Moments { count: self.count, mean: self.mean, std };
        arrange(&moments, self.min, self.max, shares, unit)
    }

    fn ranked(&self, steps: f64) -> Ranked {
        let value = |bin: u64| count(bin) / steps;
        let mut bins: Vec<(f64, u64)> = self
            .negative
            .iter_recorded()
            .map(|bin| (-value(bin.value_iterated_to()), bin.count_at_value()))
            .collect();
        bins.reverse();
        let positive = self.positive.iter_recorded();
        bins.extend(positive.map(|bin| (value(bin.value_iterated_to()), bin.count_at_value())));
        for (value, _) in &mut bins {
            *value = value.clamp(self.min, self.max);
        }
        if let Some(first) = bins.first_mut() {
            first.0 = self.min;
        }
        if let Some(last) = bins.last_mut() {
            last.0 = self.max;
        }
        Ranked::of_bins(bins)
    }

    fn at(&self, share: f64, steps: f64) -> f64 {
        let below_zero = count(self.negative.len());
        let rank = (share * count(self.count)).max(1.0);
        if rank <= below_zero {
            let from_zero = (below_zero - rank + 1.0) / below_zero;
            return -count(self.negative.value_at_quantile(from_zero)) / steps;
        }
        let from_zero = (rank - below_zero) / count(self.positive.len());
        count(self.positive.value_at_quantile(from_zero)) / steps
    }
}

struct Moments {
    count: u64,
    mean: f64,
    std: f64,
}

fn arrange(moments: &Moments, min: f64, max: f64, shares: [f64; 11], unit: f64) -> Statistic {
    let [p1, p5, p10, p25, p50, p75, p90, p95, p99, p999, p9999] = shares.map(|value| value / unit);
    Statistic {
        count: moments.count,
        mean: moments.mean / unit,
        std: moments.std / unit,
        min: min / unit,
        p1,
        p5,
        p10,
        p25,
        p50,
        p75,
        p90,
        p95,
        p99,
        p999,
        p9999,
        max: max / unit,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a place in a slice: not negative, and float-to-integer casts saturate"
)]
const fn floor(place: f64) -> usize {
    place as usize
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a magnitude, rounded to the nearest step; float-to-integer casts saturate"
)]
fn whole_steps(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = f64>) -> Statistic {
        let mut collector = Collector::new();
        collector.extend(values);
        collector.statistic(1.0).expect("values")
    }

    #[track_caller]
    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
    }

    #[test]
    fn percentiles_of_a_known_list() {
        // Case H04: 1..10 ms, in nanoseconds, shown in ms.
        let mut collector = Collector::new();
        collector.extend((1..=10).rev().map(|ms| f64::from(ms) * 1e6));
        let list = collector.statistic(1e6).expect("values");
        close(list.p50, 5.5);
        close(list.p90, 9.1);
        close(list.p95, 9.55);
        close(list.p99, 9.91);
        close(list.mean, 5.5);
        close(list.std, 8.25_f64.sqrt());
        assert_eq!((list.count, list.min, list.max), (10, 1.0, 10.0));
    }

    #[test]
    fn percentiles_at_the_edges() {
        // Case H05.
        let one = of([7.25]);
        assert_eq!([one.min, one.p1, one.p50, one.p9999, one.max], [7.25; 5]);
        assert_eq!(one.std, 0.0);
        let hundred = of((1..=100).map(f64::from));
        close(hundred.p99, 99.01);
        assert_eq!(hundred.max, 100.0);
        let thousand = of((1..=1000).map(f64::from));
        close(thousand.p999, 999.001);
        let equal = of([3.0; 57]);
        assert_eq!([equal.p1, equal.p50, equal.p9999, equal.max], [3.0; 4]);
        assert_eq!(Collector::new().statistic(1.0), None);
        assert_eq!(percentile(&[], 0.5), None);
        assert_eq!(percentile(&[1.0, 2.0], 1.0), Some(2.0));
    }

    #[test]
    fn beyond_the_bound_three_digits_remain() {
        let mut collector = Collector { exact_max: 1_000, ..Collector::new() };
        collector.extend((1..=100_000).map(|value| f64::from(value) * 1_000.0));
        assert!(collector.is_binned());
        let binned = collector.statistic(1_000.0).expect("values");
        assert_eq!((binned.count, binned.min, binned.max), (100_000, 1.0, 100_000.0));
        for (found, exact) in
            [(binned.p50, 50_000.5), (binned.p99, 99_000.01), (binned.p1, 1_000.99)]
        {
            assert!((found - exact).abs() <= exact * 0.0011, "{found} for {exact}");
        }
        assert!((binned.mean - 50_000.5).abs() < 1e-6);
        assert!((binned.std - 28_867.513).abs() < 0.01, "{}", binned.std);
    }

    #[test]
    fn values_below_zero_keep_their_order_in_the_histogram() {
        let mut collector = Collector { exact_max: 0, ..Collector::new() };
        collector.extend((-50..50).map(f64::from));
        let binned = collector.statistic(1.0).expect("values");
        assert_eq!((binned.min, binned.max), (-50.0, 49.0));
        assert!(binned.p10 < -38.0 && binned.p10 > -43.0, "{}", binned.p10);
        assert!(binned.p90 > 37.0 && binned.p90 < 42.0, "{}", binned.p90);
    }

    #[test]
    fn values_in_order_are_those_of_the_statistic() {
        let values = || (-500..100_000).rev().map(|value| f64::from(value) * 1_000.0);
        for exact_max in [EXACT_VALUES_MAX, 1_000] {
            let mut collector = Collector { exact_max, ..Collector::new() };
            collector.extend(values());
            let ranked = collector.clone().ranked();
            let statistic = collector.statistic(1.0).expect("values");
            assert_eq!(ranked.count(), statistic.count);
            assert_eq!(ranked.is_binned(), exact_max == 1_000);
            assert_eq!(ranked.min(), Some(statistic.min));
            assert_eq!(ranked.max(), Some(statistic.max));
            for (share, value) in [(0.01, statistic.p1), (0.5, statistic.p50)] {
                let found = ranked.percentile(share).expect("values");
                assert!((found - value).abs() <= value.abs() * 0.0021, "{found} for {value}");
            }
            let share = count(ranked.below(50_000_000.0)) / count(ranked.count());
            assert!((share - 50_500.0 / 100_500.0).abs() < 0.002, "{share}");
        }
    }

    #[test]
    fn failures_count_as_never() {
        let values: Vec<f64> = (1..=98).map(f64::from).collect();
        assert_eq!(error_adjusted(&values, 2, 0.5), Some(51.0), "rank 49.5 goes to the even 50");
        assert_eq!(error_adjusted(&values, 2, 0.99), None);
        assert_eq!(error_adjusted(&[], 0, 0.5), None);
    }
}
