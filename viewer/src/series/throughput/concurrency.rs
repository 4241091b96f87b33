//! Requests at once over time: all that are in flight, and those in prefill and in decode.
//!
//! Where there are more changes than pixels, each column keeps the value it begins with and its
//! lowest and highest one, so no peak is lost at any zoom.

use std::sync::Arc;

use egui_plot::PlotPoint;
use onbeat_shared::{
    metrics::{concurrency::Phase, levels::Levels},
    units::RunNanos,
};

use crate::opened::OpenedRun;
use crate::selection::Passing;
use crate::series::picture::{
    Cell, Heading, HeightAxis, Line, Picture, Readout, Rows, Steps, seconds,
};
use crate::series::{STEPS, filtered, flight, from_zero, nothing_passes, with_margin, within_run};
use crate::state::TimeRange;
use crate::theme::data_colour;

/// Columns with points of their own in one view, at most.
const COLUMNS_MAX: usize = 500;

/// The plot for a view on so many pixel columns.
#[must_use]
pub fn picture(opened: &OpenedRun, view: TimeRange, columns: usize, passing: &Passing) -> Picture {
    let load = opened.load(passing);
    let wide = with_margin(opened, view);
    let [in_flight, prefill, decode] =
        [Phase::InFlight, Phase::Prefill, Phase::Decode].map(|phase| load.levels(opened, phase));
    let line = |name, colour, filled, levels: &Arc<Levels>| Line {
        name,
        colour,
        dashed: false,
        filled,
        segments: vec![drawn(opened, levels, wide, view, columns)],
        readout: Readout::Levels { levels: Arc::clone(levels), known: opened.whole() },
    };
    let peak = in_flight.peak((view.start, view.end)).filter(|_| !in_flight.is_empty());
    Picture {
        lines: vec![
            line("in flight", data_colour::BLUE, true, in_flight),
            line("in prefill", data_colour::ORANGE, false, prefill),
            line("in decode", data_colour::GREEN, false, decode),
        ],
        axis: HeightAxis::Number { unit: "requests" },
        bounds: from_zero(peak.map_or(0.0, |(_, most)| f64::from(most))),
        table: rows(within_run(opened, view), [in_flight, prefill, decode]),
        note: filtered("every change".to_owned(), passing),
        summary: flight::summary(view, peak),
        empty: nothing_passes(passing)
            .or_else(|| in_flight.is_empty().then(|| "No request left".to_owned())),
        ..Picture::default()
    }
}

/// A line through a stretch that is wider than the view, on so many pixel columns of the view:
/// every change, or the extremes of each column. It ends where the log does.
#[must_use]
pub fn drawn(
    opened: &OpenedRun,
    levels: &Levels,
    wide: TimeRange,
    view: TimeRange,
    columns: usize,
) -> Vec<PlotPoint> {
    let Some(range) = wide.clipped(opened.whole()) else { return Vec::new() };
    let (start, end) = (range.start, range.end);
    let columns = columns.clamp(1, COLUMNS_MAX);
    let changes = levels.changes((start, end));
    let mut points = vec![PlotPoint::new(seconds(start), f64::from(levels.at(start)))];
    if changes.len() <= 2 * columns {
        let mut before = points[0].y;
        for (time, value) in changes {
            let (x, y) = (seconds(time), f64::from(value));
            points.extend([PlotPoint::new(x, before), PlotPoint::new(x, y)]);
            before = y;
        }
        points.push(PlotPoint::new(seconds(end), before));
        return points;
    }
    let width = (view.span() / i64::try_from(columns).unwrap_or(1)).max(1);
    let mut from = start;
    while from < end {
        let to = RunNanos(from.0.saturating_add(width).min(end.0));
        let Some(spread) = levels.spread((from, to)) else { break };
        let first = f64::from(levels.at(from));
        let (low, high) = (f64::from(spread.lowest), f64::from(spread.highest));
        let x = seconds(from);
        points.extend([first, low, high].map(|y| PlotPoint::new(x, y)));
        from = to;
    }
    points.push(PlotPoint::new(seconds(end), f64::from(levels.at(RunNanos(end.0 - 1)))));
    points
}

/// Lowest, mean and highest in flight in each step, and the phases' means.
fn rows(view: TimeRange, levels: [&Arc<Levels>; 3]) -> Rows {
    let steps = Steps::covering(view, STEPS);
    let mut rows = Rows::new(vec![
        Heading::new("from", Cell::Instant(steps.width as f64)),
        Heading::new("fewest in flight", Cell::Number),
        Heading::new("mean", Cell::Number),
        Heading::new("most", Cell::Number),
        Heading::new("mean in prefill", Cell::Number),
        Heading::new("mean in decode", Cell::Number),
    ]);
    for place in 0..steps.count {
        let start = steps.start_of(place);
        let step = TimeRange { start, end: steps.start_of(place + 1) }.clipped(view);
        let spread = |levels: &Levels| step.and_then(|step| levels.spread((step.start, step.end)));
        let [in_flight, prefill, decode] = levels.map(|levels| spread(levels));
        rows.push(&[
            Some(start.0 as f64),
            in_flight.map(|spread| f64::from(spread.lowest)),
            in_flight.map(|spread| spread.mean),
            in_flight.map(|spread| f64::from(spread.highest)),
            prefill.map(|spread| spread.mean),
            decode.map(|spread| spread.mean),
        ]);
    }
    rows
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use onbeat_shared::{log::sample, run::Run};

    use super::*;

    /// Whatever the zoom, the drawn line reaches the highest and the lowest value of the stretch,
    /// and has few points.
    #[test]
    fn no_extreme_is_lost_and_points_are_few() {
        let bytes = sample::log(11, 3_000);
        let run = Run::read(&bytes).expect("a readable log");
        let opened = OpenedRun::new(PathBuf::from("sample.beat"), 0, run);
        let passing = opened.passing(None);
        let load = opened.load(&passing);
        let whole = opened.whole();
        for (share, columns) in [(1, 40), (1, 700), (3, 40), (50, 40), (500, 100)] {
            let end = RunNanos(whole.start.0 + whole.span() / share);
            let view = TimeRange { start: whole.start, end };
            let found = picture(&opened, view, columns, &passing);
            for (line, phase) in
                found.lines.iter().zip([Phase::InFlight, Phase::Prefill, Phase::Decode])
            {
                let points = &line.segments[0];
                assert!(points.len() <= 4 * 2 * columns.min(COLUMNS_MAX) + 10);
                assert!(points.is_sorted_by(|a, b| a.x <= b.x));
                let wide = with_margin(&opened, view).clipped(whole).expect("a stretch");
                let spread = load.levels(&opened, phase).spread((wide.start, wide.end));
                let spread = spread.expect("a stretch");
                let ys = || points.iter().map(|point| point.y);
                assert_eq!(ys().fold(0.0, f64::max), f64::from(spread.highest));
                assert_eq!(ys().fold(f64::MAX, f64::min), f64::from(spread.lowest));
            }
        }
    }
}
