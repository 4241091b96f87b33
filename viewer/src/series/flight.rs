//! Requests in flight over time: every change, thinned without losing a peak.

use std::sync::Arc;

use onbeat_shared::{
    metrics::{concurrency::Phase, levels::Levels},
    units::RunNanos,
};

use super::picture::{Cell, Heading, HeightAxis, Line, Picture, Readout, Rows, Steps};
use super::throughput::concurrency::drawn;
use super::{STEPS, filtered, from_zero, nothing_passes, with_margin, within_run};
use crate::opened::OpenedRun;
use crate::quantity;
use crate::selection::Passing;
use crate::state::TimeRange;
use crate::theme::data_colour;

/// The plot for a view on so many pixel columns, of the requests that pass a filter.
#[must_use]
pub fn picture(opened: &OpenedRun, view: TimeRange, columns: usize, passing: &Passing) -> Picture {
    let load = opened.load(passing);
    let levels = load.levels(opened, Phase::InFlight);
    let peak = levels.peak((view.start, view.end)).filter(|_| !levels.is_empty());
    Picture {
        bounds: from_zero(peak.map_or(0.0, |(_, most)| f64::from(most))),
        axis: HeightAxis::Number { unit: "requests" },
        table: rows(levels, within_run(opened, view)),
        note: filtered("every change".to_owned(), passing),
        summary: summary(view, peak),
        empty: nothing_passes(passing)
            .or_else(|| levels.is_empty().then(|| "No request left".to_owned())),
        lines: vec![Line {
            name: "in flight",
            colour: data_colour::BLUE,
            dashed: false,
            filled: true,
            segments: vec![drawn(opened, levels, with_margin(opened, view), view, columns)],
            readout: Readout::Levels { levels: Arc::clone(levels), known: opened.whole() },
        }],
        ..Picture::default()
    }
}

/// Lowest, mean and highest of each step.
fn rows(levels: &Levels, view: TimeRange) -> Rows {
    let steps = Steps::covering(view, STEPS);
    let mut rows = Rows::new(vec![
        Heading::new("from", Cell::Instant(steps.width as f64)),
        Heading::new("fewest", Cell::Number),
        Heading::new("mean", Cell::Number),
        Heading::new("most", Cell::Number),
    ]);
    for place in 0..steps.count {
        let start = steps.start_of(place);
        let step = TimeRange { start, end: steps.start_of(place + 1) }.clipped(view);
        let spread = step.and_then(|step| levels.spread((step.start, step.end)));
        rows.push(&[
            Some(start.0 as f64),
            spread.map(|spread| f64::from(spread.lowest)),
            spread.map(|spread| spread.mean),
            spread.map(|spread| f64::from(spread.highest)),
        ]);
    }
    rows
}

/// What a view of requests in flight shows.
pub(super) fn summary(view: TimeRange, peak: Option<(RunNanos, u32)>) -> String {
    let span = view.span() as f64;
    let words = |time: RunNanos| quantity::instant(time.0 as f64, span);
    let stretch = format!("From {} to {}", words(view.start), words(view.end));
    match peak {
        None => format!("{stretch}: no data."),
        Some((time, most)) => format!(
            "{stretch}: at most {} requests in flight, first at {}.",
            quantity::number(f64::from(most)),
            words(time)
        ),
    }
}
