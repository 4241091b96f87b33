//! Fewer points for the same picture: the first, lowest, highest and last of every pixel column.
//!
//! A line through these four draws the same pixels as a line through all of them, so a spike of one
//! sample survives any zoom. Points must be sorted by `x`. This module knows nothing of runs or
//! screens; the caller says how many columns there are.

use egui_plot::PlotPoint;

/// Most points kept per column.
pub const PER_COLUMN: usize = 4;

/// The points from `start` to `end` (and one neighbour on each side, so that lines reach the edge),
/// thinned to at most [`PER_COLUMN`] in each of `columns` equal columns. A `NaN` height breaks the
/// line and is kept as such.
#[must_use]
pub fn min_max(points: &[PlotPoint], start: f64, end: f64, columns: usize) -> Vec<PlotPoint> {
    let from = points.partition_point(|point| point.x < start).saturating_sub(1);
    let to = (points.partition_point(|point| point.x <= end) + 1).min(points.len());
    let inside = &points[from..to.max(from)];
    let width = (end - start) / columns.max(1) as f64;
    if inside.len() <= PER_COLUMN * columns || !(width.is_finite() && width > 0.0) {
        return inside.to_vec();
    }
    let column_of = |point: &PlotPoint| ((point.x - start) / width).floor();
    let mut kept = Vec::with_capacity(PER_COLUMN * (columns + 2));
    for column in inside.chunk_by(|a, b| {
        a.y.is_nan() == b.y.is_nan() && column_of(a).total_cmp(&column_of(b)).is_eq()
    }) {
        keep_extremes(column, &mut kept);
    }
    kept
}

/// The first, lowest, highest and last of a non-empty column, each once and in their own order.
fn keep_extremes(column: &[PlotPoint], kept: &mut Vec<PlotPoint>) {
    let mut lowest = 0;
    let mut highest = 0;
    for (place, point) in column.iter().enumerate() {
        if point.y < column[lowest].y {
            lowest = place;
        }
        if point.y > column[highest].y {
            highest = place;
        }
    }
    let mut places = [0, lowest, highest, column.len() - 1];
    places.sort_unstable();
    let mut previous = None;
    for place in places {
        if previous != Some(place) {
            kept.push(column[place]);
            previous = Some(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use onbeat_shared::dice::Dice;

    use super::*;

    fn random_points(dice: &mut Dice) -> Vec<PlotPoint> {
        let count = dice.place(3_000);
        let mut x = dice.unit() * 10.0 - 5.0;
        (0..count)
            .map(|_| {
                // Clusters, equal times and long gaps, as requests have them.
                x += match dice.place(10) {
                    0 => 1.0,
                    1..=3 => 0.0,
                    _ => dice.unit() * 0.01,
                };
                let spike = if dice.place(200) == 0 { 1_000.0 } else { 1.0 };
                let sign = if dice.place(2) == 0 { -1.0 } else { 1.0 };
                PlotPoint::new(x, sign * dice.unit() * spike)
            })
            .collect()
    }

    /// Lowest and highest of each column, the slow and obvious way.
    fn extremes(points: &[PlotPoint], start: f64, width: f64, column: usize) -> (f64, f64) {
        points
            .iter()
            .filter(|point| ((point.x - start) / width).floor() == column as f64)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), point| {
                (low.min(point.y), high.max(point.y))
            })
    }

    #[test]
    fn every_column_keeps_its_extremes_for_any_points() {
        for seed in 0..200 {
            let mut dice = Dice(seed);
            let points = random_points(&mut dice);
            let start = -5.0 + dice.unit() * 20.0;
            let end = start + 0.01 + dice.unit() * 300.0;
            let columns = 1 + dice.place(300);
            let kept = min_max(&points, start, end, columns);
            assert!(kept.len() <= PER_COLUMN * (columns + 2), "seed {seed}: {}", kept.len());
            assert!(kept.is_sorted_by(|a, b| a.x <= b.x), "seed {seed}: out of order");
            assert!(kept.iter().all(|point| points.contains(point)), "seed {seed}: made up");
            let width = (end - start) / columns as f64;
            for column in 0..columns {
                assert_eq!(
                    extremes(&kept, start, width, column),
                    extremes(&points, start, width, column),
                    "seed {seed}, column {column}"
                );
            }
        }
    }

    #[test]
    fn a_single_spike_survives_the_widest_zoom() {
        let mut points: Vec<_> =
            (0..1_000_000).map(|place| PlotPoint::new(f64::from(place), 1.0)).collect();
        points[777_777].y = 9_000.0;
        let kept = min_max(&points, 0.0, 1_000_000.0, 500);
        assert!(kept.len() <= 2_008);
        assert!(kept.iter().any(|point| point.y >= 9_000.0 && point.x >= 777_777.0));
    }

    #[test]
    fn lines_reach_past_both_edges_and_gaps_stay() {
        let points: Vec<_> = (0..10).map(|x| PlotPoint::new(f64::from(x), 0.0)).collect();
        let kept = min_max(&points, 3.5, 6.5, 100);
        assert_eq!(kept.first().map(|point| point.x), Some(3.0));
        assert_eq!(kept.last().map(|point| point.x), Some(7.0));
        let broken: Vec<_> = (0..1_000)
            .map(|x| PlotPoint::new(f64::from(x), if x == 500 { f64::NAN } else { 1.0 }))
            .collect();
        let kept = min_max(&broken, 0.0, 999.0, 10);
        assert_eq!(kept.iter().filter(|point| point.y.is_nan()).count(), 1);
    }

    #[test]
    fn nothing_in_nothing_out() {
        assert!(min_max(&[], 0.0, 1.0, 100).is_empty());
        let one = [PlotPoint::new(5.0, 1.0)];
        assert_eq!(min_max(&one, 5.0, 5.0, 0).len(), 1);
    }
}
