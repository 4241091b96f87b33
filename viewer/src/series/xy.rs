//! Curves of a distribution and of one number against another, made small enough to draw.
//!
//! Pure functions from values to points. A distribution may have millions of values, a curve has at
//! most [`POINTS_MAX`] points: it is read where pixels are, and what is read is exact, so that its
//! first and last point are the smallest and the largest value whatever lies between. Values that
//! have no place on an axis, such as zero on a logarithmic one, are counted and never moved.

use egui_plot::PlotPoint;
use onbeat_shared::metrics::{Ranked, quantile};

use super::axes::{Axis, AxisScale, decimal_step};

/// Most points of one curve.
pub const POINTS_MAX: usize = 2_000;
/// Columns in which a distribution is read.
const COLUMNS: u32 = 900;
/// Bins of a histogram, at least and at most.
const BINS: (f64, f64) = (12.0, 90.0);
/// How far the last percentile reaches beyond the last nine that the values can tell.
const LAST_NINE: f64 = 0.5;

/// Where the rightmost percentile of so many values stands on an axis of percentiles.
#[must_use]
pub fn last_percentile(count: u64) -> f64 {
    (count.max(1) as f64).log10() + LAST_NINE
}

/// The value of every percentile: `x` on an axis of percentiles, `y` where `place` puts the value.
/// It ends with the largest value. Unbroken stretches; it is broken where a value has no place.
#[must_use]
pub fn percentile_line(ranked: &Ranked, place: impl Fn(f64) -> Option<f64>) -> Vec<Vec<PlotPoint>> {
    let end = last_percentile(ranked.count());
    let read = |step: u32| {
        let x = end * f64::from(step) / f64::from(COLUMNS);
        let share = if step == COLUMNS { 1.0 } else { 1.0 - 10_f64.powf(-x) };
        Some(PlotPoint::new(x, place(ranked.percentile(share)?)?))
    };
    let points: Vec<Option<PlotPoint>> = (0..=COLUMNS).map(read).collect();
    points
        .split(Option::is_none)
        .filter(|stretch| !stretch.is_empty())
        .map(|stretch| stretch.iter().flatten().copied().collect())
        .collect()
}

/// The smallest and the largest value that have a place on an axis.
#[must_use]
pub fn placeable(ranked: &Ranked, axis: Axis) -> Option<(f64, f64)> {
    let least = match axis.scale {
        AxisScale::Log10 => ranked.at(ranked.up_to(0.0))?,
        AxisScale::Linear | AxisScale::Percentile => ranked.min()?,
    };
    let most = ranked.max()?;
    (axis.place(least).is_some() && axis.place(most).is_some()).then_some((least, most))
}

/// The share of values at most each value: `x` on the axis, `y` from 0 to 100 %. It rises from the
/// share that has no place on the axis, at the smallest value that has, to everything.
#[must_use]
pub fn cdf(ranked: &Ranked, axis: Axis) -> Vec<PlotPoint> {
    let Some((least, most)) = placeable(ranked, axis) else { return Vec::new() };
    let (Some(low), Some(high)) = (axis.place(least), axis.place(most)) else {
        return Vec::new();
    };
    let percent = |count: u64| 100.0 * count as f64 / ranked.count().max(1) as f64;
    let mut points = vec![PlotPoint::new(low, percent(ranked.below(least)))];
    if ranked.count() <= u64::from(COLUMNS) || low >= high {
        points.extend(stairs(ranked, axis, percent));
        return points;
    }
    points.push(PlotPoint::new(low, percent(ranked.up_to(least))));
    let width = (high - low) / f64::from(COLUMNS);
    for column in 1..COLUMNS {
        let x = low + width * f64::from(column);
        points.push(PlotPoint::new(x, percent(ranked.up_to(axis.value(x).clamp(least, most)))));
    }
    points.push(PlotPoint::new(high, percent(ranked.below(most))));
    points.push(PlotPoint::new(high, 100.0));
    points
}

/// Every step of a distribution of few values.
fn stairs(ranked: &Ranked, axis: Axis, percent: impl Fn(u64) -> f64) -> Vec<PlotPoint> {
    let mut points: Vec<PlotPoint> = Vec::new();
    let mut rank = 0;
    while let Some(value) = ranked.at(rank) {
        let after = ranked.up_to(value);
        if let Some(x) = axis.place(value) {
            points.push(PlotPoint::new(x, percent(rank)));
            points.push(PlotPoint::new(x, percent(after)));
        }
        rank = after;
    }
    points
}

/// Values counted in bins that are equally wide on an axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Edges of the bins (places), one more than there are bins.
    pub edges: Vec<f64>,
    /// Values in each: from its left edge up to and without its right one.
    pub counts: Vec<u64>,
}

/// Round bins over all values between two that have places on the axis (see [`placeable`]), as
/// wide as so many values deserve.
#[must_use]
pub fn bins(axis: Axis, (least, most): (f64, f64), count: u64) -> Vec<f64> {
    let (Some(low), Some(high)) = (axis.place(least), axis.place(most)) else {
        return Vec::new();
    };
    let wanted = (2.0 * (count as f64).cbrt()).clamp(BINS.0, BINS.1);
    let width = match axis.scale {
        // Parts of a decade: a 2nd, 5th, 10th, 20th, 50th…
        AxisScale::Log10 => decimal_step((high - low) / wanted).clamp(0.01, 1.0),
        AxisScale::Linear | AxisScale::Percentile => decimal_step((high - low) / wanted),
    };
    let first = (low / width).floor();
    let last = (high / width).floor().max(first) + 1.0;
    let mut edges = Vec::new();
    let mut edge = first;
    while edge <= last && edges.len() <= POINTS_MAX / 2 {
        edges.push(edge * width);
        edge += 1.0;
    }
    edges
}

impl Histogram {
    /// Counts values in bins. Those that have no place on the axis are in none.
    #[must_use]
    pub fn of(ranked: &Ranked, axis: Axis, edges: Vec<f64>) -> Self {
        let Some((least, _)) = placeable(ranked, axis) else { return Self::default() };
        let bins = edges.len().saturating_sub(1);
        let below = |place: usize| match place {
            0 => ranked.below(least),
            // Rounding must not put the largest value on the edge beyond its bin.
            last if last == bins => ranked.count(),
            inner => ranked.below(axis.value(edges[inner])).max(ranked.below(least)),
        };
        let counts = (0..bins).map(|bin| below(bin + 1) - below(bin)).collect();
        Self { edges, counts }
    }

    /// The bins as a staircase that begins and ends at zero; heights are shares of `of` in %.
    #[must_use]
    pub fn outline(&self, of: u64) -> Vec<PlotPoint> {
        let (Some(&first), Some(&last)) = (self.edges.first(), self.edges.last()) else {
            return Vec::new();
        };
        let mut points = vec![PlotPoint::new(first, 0.0)];
        for (bin, &count) in self.counts.iter().enumerate() {
            let y = 100.0 * count as f64 / of.max(1) as f64;
            points.push(PlotPoint::new(self.edges[bin], y));
            points.push(PlotPoint::new(self.edges[bin + 1], y));
        }
        points.push(PlotPoint::new(last, 0.0));
        points
    }

    /// The share of `of` in the fullest bin, in %.
    #[must_use]
    pub fn highest(&self, of: u64) -> f64 {
        let most = self.counts.iter().copied().max().unwrap_or(0);
        100.0 * most as f64 / of.max(1) as f64
    }
}

/// How `y` is spread where `x` lies between two values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Smallest `x`.
    pub from: f64,
    /// Largest `x`.
    pub to: f64,
    /// Median `x`.
    pub middle: f64,
    /// How many pairs.
    pub count: u64,
    /// 10th percentile of `y`.
    pub p10: f64,
    /// Median of `y`.
    pub p50: f64,
    /// 90th percentile of `y`.
    pub p90: f64,
    /// Largest `y`.
    pub max: f64,
}

/// Pairs of `x` and `y` in at most `most` groups of neighbouring `x`, about equally many in each,
/// but no fewer than `least` if there are so many: a trend that a few wild values do not bend.
/// Equal `x` are never parted. Sorts the pairs by `x`.
#[must_use]
pub fn trend(pairs: &mut [(f64, f64)], most: usize, least: usize) -> Vec<Spread> {
    pairs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let wanted = (pairs.len() / most.max(1)).max(least).max(1);
    let mut groups = Vec::new();
    let mut start = 0;
    while start < pairs.len() {
        let mut end = (start + wanted).min(pairs.len());
        while end < pairs.len() && pairs[end].0.total_cmp(&pairs[end - 1].0).is_eq() {
            end += 1;
        }
        // A rest too small for a group of its own belongs to the last one.
        if pairs.len() - end < least.div_ceil(2) {
            end = pairs.len();
        }
        groups.extend(spread(&pairs[start..end]));
        start = end;
    }
    groups
}

/// The spread of pairs sorted by `x`.
fn spread(pairs: &[(f64, f64)]) -> Option<Spread> {
    let (first, last) = (pairs.first()?, pairs.last()?);
    let mut ys: Vec<f64> = pairs.iter().map(|pair| pair.1).collect();
    ys.sort_unstable_by(f64::total_cmp);
    Some(Spread {
        from: first.0,
        to: last.0,
        middle: pairs[pairs.len() / 2].0,
        count: pairs.len() as u64,
        p10: quantile::percentile(&ys, 0.10)?,
        p50: quantile::percentile(&ys, 0.50)?,
        p90: quantile::percentile(&ys, 0.90)?,
        max: *ys.last()?,
    })
}

#[cfg(test)]
mod tests {
    use onbeat_shared::dice::Dice;

    use super::*;
    use crate::series::axes::Unit;

    /// Values with ties, zeros, values below zero and spikes, as hostile logs have them.
    fn random_values(dice: &mut Dice) -> Vec<f64> {
        let most = if dice.place(3) == 0 { 20 } else { 5_000 };
        let count = dice.place(most);
        let wild = dice.place(2) == 0;
        (0..count)
            .map(|_| match dice.place(40) {
                0 if wild => 0.0,
                1 if wild => -dice.unit() * 1e3,
                2 => 1e11 * dice.unit(),
                3..=12 => (dice.unit() * 20.0).floor() + 1.0,
                _ => 1e6 * (1.0 + dice.unit() * 100.0),
            })
            .collect()
    }

    const AXES: [Axis; 2] = [Axis::log("x", Unit::Number("")), Axis::linear("x", Unit::Number(""))];

    /// How many values are at most `limit`, the slow and obvious way, in per cent of all.
    fn percent_up_to(values: &[f64], limit: f64) -> f64 {
        100.0 * values.iter().filter(|&&value| value <= limit).count() as f64 / values.len() as f64
    }

    #[test]
    fn a_cdf_is_exact_wherever_it_is_read_and_loses_no_extreme() {
        for seed in 0..60 {
            let values = random_values(&mut Dice(seed));
            let ranked = Ranked::from(values.clone());
            for axis in AXES {
                let points = cdf(&ranked, axis);
                assert!(points.len() <= POINTS_MAX, "seed {seed}");
                let placed: Vec<f64> =
                    values.iter().copied().filter(|&value| axis.place(value).is_some()).collect();
                if placed.is_empty() {
                    assert!(points.is_empty(), "seed {seed}");
                    continue;
                }
                assert!(points.is_sorted_by(|a, b| a.x <= b.x && a.y <= b.y), "seed {seed}");
                let least = placed.iter().copied().fold(f64::INFINITY, f64::min);
                let most = placed.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let (first, last) = (points[0], points[points.len() - 1]);
                assert_eq!(first.x, axis.place(least).expect("placed"), "seed {seed}");
                let without = 100.0 * (values.len() - placed.len()) as f64 / values.len() as f64;
                assert!((first.y - without).abs() < 1e-9, "seed {seed}");
                assert_eq!((last.x, last.y), (axis.place(most).expect("placed"), 100.0));
                // The last of the points at one x is the share up to it.
                for pair in points.windows(2).filter(|pair| pair[0].x < pair[1].x) {
                    let value = axis.value(pair[0].x);
                    let near = |by: f64| percent_up_to(&values, value + by * value.abs());
                    let (low, high) = (near(-1e-12), near(1e-12));
                    let y = pair[0].y;
                    assert!(low - 1e-9 <= y && y <= high + 1e-9, "seed {seed}: {y} at {value}");
                }
            }
        }
    }

    #[test]
    fn a_percentile_line_is_the_percentiles_and_ends_with_the_largest() {
        for seed in 0..300 {
            let mut values = random_values(&mut Dice(seed));
            let ranked = Ranked::from(values.clone());
            values.sort_by(f64::total_cmp);
            let line = percentile_line(&ranked, Some);
            let Some(&most) = values.last() else {
                assert!(line.is_empty());
                continue;
            };
            assert_eq!(line.len(), 1, "seed {seed}: no gap");
            let points = &line[0];
            assert!(points.len() <= POINTS_MAX);
            assert_eq!(points[0].y, values[0], "seed {seed}: the smallest");
            assert_eq!(points[points.len() - 1].y, most, "seed {seed}: the largest");
            assert!(points.is_sorted_by(|a, b| a.x < b.x && a.y <= b.y), "seed {seed}");
            for point in &points[..points.len() - 1] {
                let share = 1.0 - 10_f64.powf(-point.x);
                assert_eq!(Some(point.y), quantile::percentile(&values, share), "seed {seed}");
            }
        }
    }

    #[test]
    fn what_has_no_place_breaks_the_percentile_line() {
        let ranked = Ranked::from(vec![0.0, 0.0, 0.0, 10.0, 100.0]);
        let axis = Axis::log("x", Unit::Number(""));
        let line = percentile_line(&ranked, |value| axis.place(value));
        assert_eq!(line.len(), 1);
        assert!(line[0][0].x > 0.3, "half of the values are zero");
        assert_eq!(line[0].last().map(|point| point.y), Some(2.0));
    }

    #[test]
    fn every_value_is_in_the_one_bin_that_holds_it() {
        for seed in 0..100 {
            let values = random_values(&mut Dice(seed));
            let ranked = Ranked::from(values.clone());
            for axis in AXES {
                let Some(range) = placeable(&ranked, axis) else { continue };
                let histogram = Histogram::of(&ranked, axis, bins(axis, range, ranked.count()));
                let Histogram { edges, counts } = &histogram;
                assert!(edges.len() <= POINTS_MAX / 2 + 1, "seed {seed}: {}", edges.len());
                assert!(histogram.outline(1).len() <= POINTS_MAX + 2);
                let placed = values.iter().filter(|&&value| axis.place(value).is_some()).count();
                assert_eq!(counts.iter().sum::<u64>(), placed as u64, "seed {seed}, {axis:?}");
                for (bin, &count) in counts.iter().enumerate() {
                    let (left, right) = (axis.value(edges[bin]), axis.value(edges[bin + 1]));
                    let inside = |value: &&f64| left <= **value && **value < right;
                    let found = values.iter().filter(inside).count() as u64;
                    // Only the outermost bins may hold a value that rounding put on their edge.
                    let outer = bin == 0 || bin + 1 == counts.len();
                    assert!(found == count || outer, "seed {seed}, bin {bin}: {found}, {count}");
                }
            }
        }
    }

    #[test]
    fn a_trend_parts_no_equal_values_and_counts_everything() {
        for seed in 0..200 {
            let mut dice = Dice(seed);
            let count = dice.place(3_000);
            let spikes = 1 + dice.place(50) as u64;
            let mut pairs: Vec<(f64, f64)> = (0..count)
                .map(|_| ((dice.unit() * spikes as f64).floor(), dice.unit() * 100.0))
                .collect();
            let groups = trend(&mut pairs, 30, 20);
            assert!(groups.len() <= 31, "seed {seed}");
            assert_eq!(groups.iter().map(|group| group.count).sum::<u64>(), count as u64);
            for pair in groups.windows(2) {
                assert!(pair[0].to < pair[1].from, "seed {seed}");
            }
            for group in &groups {
                let inside = |pair: &&(f64, f64)| group.from <= pair.0 && pair.0 <= group.to;
                let mut ys: Vec<f64> = pairs.iter().filter(inside).map(|pair| pair.1).collect();
                ys.sort_by(f64::total_cmp);
                assert_eq!(ys.len() as u64, group.count, "seed {seed}");
                assert_eq!(quantile::percentile(&ys, 0.5), Some(group.p50));
                assert_eq!(quantile::percentile(&ys, 0.9), Some(group.p90));
                assert!(group.from <= group.middle && group.middle <= group.to);
                assert!(group.count >= 10 || groups.len() == 1, "seed {seed}: {}", group.count);
            }
        }
    }
}
