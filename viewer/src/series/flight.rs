//! Requests in flight over time: every change, thinned without losing a peak.

use std::sync::Arc;

use egui_plot::PlotPoint;
use onbeat_shared::units::RunNanos;

use super::picture::{Cell, Heading, HeightAxis, Line, Picture, Readout, Rows, Steps, seconds};
use super::{STEPS, filtered, from_zero, nothing_passes, with_margin, within_run};
use crate::decimate;
use crate::opened::OpenedRun;
use crate::quantity;
use crate::selection::Passing;
use crate::state::TimeRange;
use crate::theme::data_colour;

/// The plot for a view on so many pixel columns.
#[must_use]
pub fn picture(
    opened: &OpenedRun,
    view: TimeRange,
    columns: usize,
    passing: &Passing,
) -> Picture {
    let flight = &opened.flight_of(passing);
    let wide = with_margin(opened, view);
    let drawn = staircase(within(flight, wide, opened.whole().end));
    let ratio = wide.span() as f64 / view.span().max(1) as f64;
    let wide_columns = columns.saturating_mul(if ratio > 1.0 { 2 } else { 1 });
    let thin = decimate::min_max(&drawn, seconds(wide.start), seconds(wide.end), wide_columns);
    let peak = peak_in(flight, view);
    Picture {
        bounds: from_zero(peak.map_or(0.0, |(_, most)| most)),
        axis: HeightAxis::Number { unit: "requests" },
        table: rows(opened, flight, within_run(opened, view)),
        note: filtered("every change".to_owned(), passing),
        summary: summary(view, peak),
        empty: nothing_passes(passing)
            .or_else(|| opened.by_sent().is_empty().then(|| "No request left".to_owned())),
        lines: vec![Line {
            name: "in flight",
            colour: data_colour::BLUE,
            dashed: false,
            filled: true,
            segments: vec![thin],
            readout: Readout::Steps(Arc::clone(flight)),
        }],
        ..Picture::default()
    }
}

/// The changes within a stretch, with the values that hold at both its ends.
fn within(flight: &[(RunNanos, f64)], range: TimeRange, last: RunNanos) -> Vec<(RunNanos, f64)> {
    let from = flight.partition_point(|&(time, _)| time <= range.start).saturating_sub(1);
    let to = flight.partition_point(|&(time, _)| time < range.end);
    let mut inside: Vec<_> = flight[from..to.max(from)].to_vec();
    if let Some(&(time, value)) = inside.last()
        && range.end.min(last) > time
    {
        inside.push((range.end.min(last), value));
    }
    inside
}

/// A line that holds each value until the next change.
fn staircase(changes: Vec<(RunNanos, f64)>) -> Vec<PlotPoint> {
    let mut points = Vec::with_capacity(2 * changes.len());
    let mut before = None;
    for (time, value) in changes {
        let x = seconds(time);
        if let Some(before) = before {
            points.push(PlotPoint::new(x, before));
        }
        points.push(PlotPoint::new(x, value));
        before = Some(value);
    }
    points
}

/// The largest value within a stretch, and since when it held.
fn peak_in(flight: &[(RunNanos, f64)], range: TimeRange) -> Option<(RunNanos, f64)> {
    within(flight, range, range.end)
        .into_iter()
        .max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))
}

/// Lowest, mean and highest of each step.
fn rows(opened: &OpenedRun, flight: &[(RunNanos, f64)], view: TimeRange) -> Rows {
    let steps = Steps::covering(view, STEPS);
    let mut rows = Rows::new(vec![
        Heading::new("from", Cell::Instant(steps.width as f64)),
        Heading::new("fewest", Cell::Number),
        Heading::new("mean", Cell::Number),
        Heading::new("most", Cell::Number),
    ]);
    for place in 0..steps.count {
        let start = steps.start_of(place);
        let step = TimeRange { start, end: steps.start_of(place + 1) };
        let known = step.clipped(opened.whole());
        let [fewest, mean, most] = known
            .map_or([None; 3], |known| spread(&within(flight, known, known.end), known));
        rows.push(&[Some(start.0 as f64), fewest, mean, most]);
    }
    rows
}

/// Lowest, time-weighted mean and highest of changes that begin at or before a stretch.
fn spread(changes: &[(RunNanos, f64)], range: TimeRange) -> [Option<f64>; 3] {
    if changes.is_empty() {
        return [None; 3];
    }
    let fewest = changes.iter().map(|change| change.1).fold(f64::INFINITY, f64::min);
    let most = changes.iter().map(|change| change.1).fold(f64::NEG_INFINITY, f64::max);
    let area: f64 = changes
        .windows(2)
        .map(|pair| {
            let from = pair[0].0.max(range.start);
            pair[1].0.0.saturating_sub(from.0).max(0) as f64 * pair[0].1
        })
        .sum();
    [Some(fewest), Some(area / range.span().max(1) as f64), Some(most)]
}

fn summary(view: TimeRange, peak: Option<(RunNanos, f64)>) -> String {
    let span = view.span() as f64;
    let words = |time: RunNanos| quantity::instant(time.0 as f64, span);
    let stretch = format!("From {} to {}", words(view.start), words(view.end));
    match peak {
        None => format!("{stretch}: no data."),
        Some((time, most)) => format!(
            "{stretch}: at most {} requests in flight, first at {}.",
            quantity::number(most),
            words(time.max(view.start))
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: i64, end: i64) -> TimeRange {
        TimeRange { start: RunNanos(start), end: RunNanos(end) }
    }

    fn changes() -> Vec<(RunNanos, f64)> {
        [(0, 0.0), (10, 1.0), (20, 2.0), (30, 1.0), (50, 0.0)]
            .map(|(time, value)| (RunNanos(time), value))
            .to_vec()
    }

    #[test]
    fn a_stretch_knows_the_value_it_begins_with() {
        let inside = within(&changes(), range(25, 40), RunNanos(50));
        assert_eq!(inside, [(RunNanos(20), 2.0), (RunNanos(30), 1.0), (RunNanos(40), 1.0)]);
        let [fewest, mean, most] = spread(&inside, range(25, 40));
        assert_eq!((fewest, most), (Some(1.0), Some(2.0)));
        assert!((mean.expect("data") - (5.0 * 2.0 + 10.0) / 15.0).abs() < 1e-9);
        assert_eq!(peak_in(&changes(), range(0, 50)), Some((RunNanos(20), 2.0)));
        assert_eq!(peak_in(&changes(), range(42, 45)), Some((RunNanos(30), 1.0)));
    }

    #[test]
    fn the_line_holds_each_value_until_the_next() {
        let points = staircase(changes());
        assert_eq!(points.len(), 9);
        assert_eq!((points[3].x, points[3].y), (20e-9, 1.0));
        assert_eq!((points[4].x, points[4].y), (20e-9, 2.0));
    }
}
