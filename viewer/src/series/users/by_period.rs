//! Lines and tables whose values hold for one assessment period each.

use std::sync::Arc;

use egui_plot::PlotPoint;
use onbeat_shared::metrics::periods::Period;
use onbeat_shared::units::RunNanos;

use super::listing::periods_in;
use crate::decimate;
use crate::series::picture::{Cell, Heading, HeightAxis, Line, Readout, Rows, seconds};
use crate::state::TimeRange;

/// Pixel columns that lines are thinned for, should a run have that many periods.
const COLUMNS: usize = 800;

/// A number of each period.
pub(super) struct Figure<'a> {
    /// Its name.
    pub(super) name: &'static str,
    /// Place in [`crate::theme::Palette::data`].
    pub(super) colour: usize,
    /// Whether its line is broken.
    pub(super) dashed: bool,
    /// The number, in the axis' own measure.
    pub(super) value: &'a dyn Fn(&Period) -> Option<f64>,
}

/// A staircase for each figure within a stretch, with gaps where a period has no number.
pub(super) fn period_lines(
    periods: &[Period],
    figures: &[Figure<'_>],
    axis: HeightAxis,
    stretch: TimeRange,
) -> Vec<Line> {
    let (from, to) = (seconds(stretch.start), seconds(stretch.end));
    let line = |figure: &Figure<'_>| {
        let mut segments: Vec<Vec<PlotPoint>> = vec![Vec::new()];
        for period in &periods[periods_in(periods, stretch)] {
            let value = (figure.value)(period).and_then(|value| axis.place(value));
            match (value, segments.last_mut()) {
                (Some(y), Some(last)) => {
                    last.push(PlotPoint::new(seconds(RunNanos(period.start_ns)), y));
                    last.push(PlotPoint::new(seconds(RunNanos(period.end_ns)), y));
                }
                (None, Some(last)) if !last.is_empty() => segments.push(Vec::new()),
                _ => {}
            }
        }
        segments.retain(|segment| !segment.is_empty());
        for segment in &mut segments {
            *segment = decimate::min_max(segment, from, to, COLUMNS);
        }
        Line {
            name: figure.name,
            colour: figure.colour,
            dashed: figure.dashed,
            filled: false,
            segments,
            readout: readout(periods, figure),
        }
    };
    figures.iter().map(line).collect()
}

fn readout(periods: &[Period], figure: &Figure<'_>) -> Readout {
    let Some(first) = periods.first() else { return Readout::None };
    let values: Vec<Option<f64>> = periods.iter().map(figure.value).collect();
    let width = first.end_ns.saturating_sub(first.start_ns);
    Readout::Bins { start: RunNanos(first.start_ns), width, values: Arc::from(values) }
}

/// A row for each period that touches a stretch.
pub(super) fn table(
    periods: &[Period],
    figures: &[Figure<'_>],
    cell: Cell,
    stretch: TimeRange,
) -> Rows {
    let length = periods.first().map_or(1, |first| first.end_ns.saturating_sub(first.start_ns));
    let mut columns = vec![
        Heading::new("period", Cell::Number),
        Heading::new("from", Cell::Instant(length as f64)),
    ];
    columns.extend(figures.iter().map(|figure| Heading::new(figure.name, cell)));
    let mut rows = Rows::new(columns);
    for period in &periods[periods_in(periods, stretch)] {
        let mut row = vec![Some(f64::from(period.number)), Some(period.start_ns as f64)];
        row.extend(figures.iter().map(|figure| (figure.value)(period)));
        rows.push(&row);
    }
    rows
}
