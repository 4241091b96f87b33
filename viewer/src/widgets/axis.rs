//! Where the lines of a plot's grid stand, and what is written beside them.
//!
//! Time steps are those of clocks (1, 2, 5 s; 10, 15, 30 s; minutes; hours), heights are 1, 2 or 5
//! times a power of ten, and a logarithmic axis has its decades. Pure functions from bounds to
//! marks, so that label overlap can be tested without drawing.

use std::f64::consts::{LN_10, LOG10_2};

use egui_plot::GridMark;
use onbeat_shared::units::NANOS_PER_SECOND;

use crate::quantity;
use crate::series::axes::{Axis, AxisScale, decimal_step};

/// Room a time label needs (points).
const TIME_LABEL: f64 = 84.0;
/// Room a height label needs (points).
pub const HEIGHT_LABEL: f64 = 34.0;
/// The share of it that the label of a percentile needs.
const PERCENTILE_ROOM: f64 = 0.72;
/// Room a label of a horizontal axis of values needs (points).
pub const VALUE_LABEL: f64 = 64.0;

/// Digits that stand between two decades, those that come first first.
const DIGITS: [&[f64]; 6] = [&[1.0], &[2.0, 5.0], &[3.0], &[7.0], &[1.5, 4.0], &[6.0, 8.0, 9.0]];

/// Steps of a clock in seconds, above one second.
const CLOCK_STEPS: [f64; 18] = [
    1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1_800.0, 3_600.0, 7_200.0,
    14_400.0, 21_600.0, 43_200.0, 86_400.0,
];

/// Marks of a time axis in seconds; `per_point` is the time one point of width stands for.
#[must_use]
pub fn time_marks(start: f64, end: f64, per_point: f64) -> Vec<GridMark> {
    marks(start, end, time_step(per_point * TIME_LABEL))
}

/// The label of a time mark (seconds) on an axis that shows `span` seconds in steps of `step`.
#[must_use]
pub fn time_label(seconds: f64, step: f64, end: f64) -> String {
    if end.abs() >= 600.0 && step >= 1.0 {
        return quantity::clock_time(seconds);
    }
    // An instant is written as finely as a hundred steps of its span would need.
    let nanos = NANOS_PER_SECOND as f64;
    let label = quantity::instant(seconds * nanos, step * 100.0 * nanos);
    if step >= 1.0 { label.replace(".0 s", " s") } else { label }
}

/// Marks of a height axis with even steps.
#[must_use]
pub fn height_marks(low: f64, high: f64, per_point: f64) -> Vec<GridMark> {
    marks(low, high, decimal_step(per_point * HEIGHT_LABEL))
}

/// Marks of an axis of common logarithms: decades, and 2 and 5 between them where there is room.
#[must_use]
pub fn decade_marks(low: f64, high: f64, per_point: f64) -> Vec<GridMark> {
    let decade_points = 1.0 / per_point.max(f64::MIN_POSITIVE);
    if decade_points < HEIGHT_LABEL {
        return marks(low, high, decimal_step(per_point * HEIGHT_LABEL).max(1.0));
    }
    let between: &[f64] =
        if decade_points >= 4.0 * HEIGHT_LABEL { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let mut out = Vec::new();
    let mut decade = low.floor();
    while decade <= high && out.len() < 200 {
        for &digit in between {
            let value = decade + digit.log10();
            if (low..=high).contains(&value) {
                out.push(GridMark { value, step_size: 1.0 });
            }
        }
        decade += 1.0;
    }
    out
}

/// Marks of an axis of values, whichever it is, that have so much room (points) each.
#[must_use]
pub fn value_marks(axis: Axis, bounds: (f64, f64), per_point: f64, room: f64) -> Vec<GridMark> {
    let (low, high) = bounds;
    match axis.scale {
        AxisScale::Linear => marks(low, high, decimal_step(per_point * room)),
        AxisScale::Log10 => log_marks(bounds, per_point, room),
        // Percentiles are short words.
        AxisScale::Percentile => percentile_marks(bounds, per_point, PERCENTILE_ROOM * room),
    }
}

/// Decades, rounder digits before others between them where there is room, and even steps where
/// hardly any of those is in sight.
fn log_marks((low, high): (f64, f64), per_point: f64, room: f64) -> Vec<GridMark> {
    let decade = 1.0 / per_point.max(f64::MIN_POSITIVE);
    if decade < room {
        return marks(low, high, decimal_step(per_point * room).max(1.0));
    }
    let mut places: Vec<f64> = Vec::new();
    for digits in DIGITS {
        let mut power = low.floor();
        while power <= high && places.len() < 200 {
            for place in digits.iter().map(|digit| power + digit.log10()) {
                let far = |other: &f64| (place - other).abs() >= room * per_point;
                if (low..=high).contains(&place) && places.iter().all(far) {
                    places.push(place);
                }
            }
            power += 1.0;
        }
    }
    if places.len() >= 3 || high - low >= 0.5 {
        return sorted(places, high - low);
    }
    // Even steps of values come closer to each other towards the right.
    let (least, most) = (10_f64.powf(low), 10_f64.powf(high));
    let step = decimal_step(room * per_point * most * LN_10);
    let even = marks(least, most, step).into_iter();
    even.map(|mark| GridMark { value: mark.value.log10(), step_size: high - low }).collect()
}

/// Marks at places that have their room already, whatever the width of a step is.
fn sorted(mut places: Vec<f64>, span: f64) -> Vec<GridMark> {
    places.sort_unstable_by(f64::total_cmp);
    let step_size = span.max(1.0);
    places.into_iter().map(|value| GridMark { value, step_size }).collect()
}

/// 0, 90, 99, 99.9 %…, then 50, 95, 99.5 %… and 75, 97.5 %… where there is room between them, and
/// even steps where all of them are out of sight.
fn percentile_marks((low, high): (f64, f64), per_point: f64, room: f64) -> Vec<GridMark> {
    let mut places: Vec<f64> = Vec::new();
    // 97.5 % without 95 % beside it would say little.
    let offsets: &[f64] =
        if LOG10_2 < room * per_point { &[0.0, LOG10_2] } else { &[0.0, LOG10_2, 2.0 * LOG10_2] };
    for offset in offsets {
        let mut nines = low.floor().max(0.0);
        while nines + offset <= high && places.len() < 200 {
            let place = nines + offset;
            // Beyond 97.5 % such labels are long and say little.
            if *offset > LOG10_2 && nines >= 2.0 {
                break;
            }
            let far = places.iter().all(|other| (place - other).abs() >= room * per_point);
            if place >= low && far {
                places.push(place);
            }
            nines += 1.0;
        }
    }
    if places.len() >= 2 {
        return sorted(places, high - low);
    }
    let share = |place: f64| 1.0 - 10_f64.powf(-place);
    let step = decimal_step(room * per_point * (1.0 - share(low)) * LN_10);
    let even = marks(share(low), share(high), step).into_iter();
    even.map(|mark| GridMark { value: -(1.0 - mark.value).log10(), step_size: high - low })
        .collect()
}

/// The smallest step of a clock that is at least `least` seconds.
#[must_use]
pub fn time_step(least: f64) -> f64 {
    if least <= 1.0 {
        return decimal_step(least);
    }
    CLOCK_STEPS
        .into_iter()
        .find(|&step| step >= least)
        .unwrap_or_else(|| 86_400.0 * decimal_step(least / 86_400.0))
}

fn marks(low: f64, high: f64, step: f64) -> Vec<GridMark> {
    let count = (high - low) / step;
    if !(count.is_finite() && (0.0..=1_000.0).contains(&count)) {
        return Vec::new();
    }
    let first = (low / step).ceil();
    // So far from zero that steps no longer differ, as in a damaged log, adding one to a place does
    // not move it.
    let mut out: Vec<GridMark> = Vec::new();
    for place in 0..=1_000 {
        let value = (first + f64::from(place)) * step;
        if value > high {
            break;
        }
        if out.last().is_none_or(|last| last.value < value) {
            out.push(GridMark { value, step_size: step });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::axes::Unit;

    /// A microsecond three centuries after zero is less than the digits of its seconds tell apart.
    #[test]
    fn far_from_zero_marks_are_few_and_end() {
        for (start, span) in [(9.2e9, 1e-6), (-9.2e9, 2e-6), (9.2e9, 4e-3), (1e300, 1.0)] {
            for width in [1.0, 700.0, 5_000.0] {
                let marks = time_marks(start, start + span, span / width);
                assert!(marks.len() <= 1_001, "{start} {span}: {}", marks.len());
                assert!(marks.is_sorted_by(|a, b| a.value < b.value));
                assert!(marks.iter().all(|mark| mark.value <= start + span));
            }
        }
    }

    #[test]
    fn labels_never_come_closer_than_their_room() {
        for exponent in -60..70 {
            let span = 10_f64.powf(f64::from(exponent) / 10.0);
            let per_point = span / 700.0;
            for marks in [time_marks(0.3 * span, 1.3 * span, per_point)] {
                assert!((3..=12).contains(&marks.len()), "{span}: {}", marks.len());
                for pair in marks.windows(2) {
                    assert!((pair[1].value - pair[0].value) / per_point >= TIME_LABEL * 0.99);
                }
            }
            let marks = height_marks(0.0, span, span / 160.0);
            assert!((2..=6).contains(&marks.len()), "{span}: {}", marks.len());
        }
    }

    #[test]
    fn clocks_step_like_clocks() {
        assert_eq!(time_step(0.03), 0.05);
        assert_eq!(time_step(7.0), 10.0);
        assert_eq!(time_step(11.0), 15.0);
        assert_eq!(time_step(200.0), 300.0);
        assert_eq!(time_step(200_000.0), 432_000.0);
        assert_eq!(time_label(20.0, 10.0, 60.0), "20 s");
        assert_eq!(time_label(0.25, 0.05, 1.0), "0.25 s");
        assert_eq!(time_label(750.0, 30.0, 900.0), "12:30");
    }

    #[test]
    fn decades_are_marked_and_split_when_there_is_room() {
        let wide: Vec<_> =
            decade_marks(6.0, 9.0, 3.0 / 150.0).iter().map(|mark| mark.value).collect();
        assert_eq!(wide, [6.0, 7.0, 8.0, 9.0]);
        let close = decade_marks(6.0, 7.0, 1.0 / 200.0);
        assert_eq!(close.len(), 4, "1, 2, 5 and 10");
        assert!(decade_marks(0.0, 300.0, 2.0).len() < 60);
    }

    #[test]
    fn marks_of_values_keep_their_room_at_any_zoom() {
        let axes = [
            Axis::linear("x", Unit::Number("")),
            Axis::log("x", Unit::Number("")),
            Axis::percentile("x"),
        ];
        for axis in axes {
            for start in [0.0, 0.31, 2.7, 5.99] {
                for width in [0.2, 0.5, 1.0, 2.5, 6.0] {
                    let per_point = width / 600.0;
                    let bounds = (start, start + width);
                    let marks = value_marks(axis, bounds, per_point, VALUE_LABEL);
                    assert!(marks.len() >= 2, "{axis:?} {bounds:?}: {}", marks.len());
                    for pair in marks.windows(2) {
                        let gap = (pair[1].value - pair[0].value) / per_point;
                        assert!(gap >= VALUE_LABEL * 0.71, "{axis:?} {bounds:?}: {gap}");
                    }
                    let labels: Vec<_> =
                        marks.iter().map(|mark| axis.mark(mark.value, mark.step_size)).collect();
                    let mut unique = labels.clone();
                    unique.dedup();
                    assert_eq!(labels, unique, "{axis:?} {bounds:?}");
                }
            }
        }
    }

    #[test]
    fn senseless_bounds_have_no_marks() {
        assert!(marks(f64::NAN, 1.0, 1.0).is_empty());
        assert!(marks(0.0, 1e12, 1.0).is_empty());
        assert!(height_marks(1.0, 1.0, 0.0).len() <= 1);
    }
}
