//! A plot as plain values: lines, bands, marks, the table that says the same, and a sentence.
//!
//! A [`Picture`] is made on a background thread and drawn as it is. `x` is seconds from the
//! schedule's zero, or what else lies across; `y` is what stands on the axis (a fitting unit, or a
//! common logarithm of nanoseconds), so that drawing needs no arithmetic beyond the screen's. A gap
//! in the data is a gap in a line: it is never drawn as zero.

use std::sync::Arc;

use egui_plot::PlotPoint;
use onbeat_shared::{
    metrics::levels::Levels,
    units::{NANOS_PER_SECOND, RunNanos},
};

use super::axes::{Across, Axes, Axis, Unit};
pub use super::marks::{Density, Look, MarkGroup, Marks};
use crate::quantity::{self, TimeUnit};
use crate::state::TimeRange;

/// One plot, ready to draw.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    /// Lines, drawn in order.
    pub lines: Vec<Line>,
    /// Filled areas under the lines.
    pub bands: Vec<Band>,
    /// Single requests.
    pub marks: Marks,
    /// Requests that failed, at the bottom of the plot.
    pub crosses: Vec<PlotPoint>,
    /// Things that happened at an instant, such as a decision.
    pub signs: Vec<Sign>,
    /// What stands on the vertical axis.
    pub axis: HeightAxis,
    /// Lowest and highest `y` to show.
    pub bounds: (f64, f64),
    /// What lies across: the run's time unless said otherwise.
    pub across: Across,
    /// First and last `x` to show where that is not time: the time plots' view is the user's.
    pub reach: (f64, f64),
    /// The same facts as rows.
    pub table: Rows,
    /// How the picture was made, in words (step, window, thinning).
    pub note: String,
    /// What it shows, in a sentence for people who do not see it.
    pub summary: String,
    /// Why there is nothing to see, if there is not.
    pub empty: Option<String>,
}

/// What stands on the vertical axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HeightAxis {
    /// Plain numbers of something.
    Number {
        /// Of what.
        unit: &'static str,
    },
    /// Times in one unit.
    Time(TimeUnit),
    /// Common logarithms of nanoseconds.
    LogTime,
    /// Anything else.
    Of(Axis),
}

impl Picture {
    /// Both its axes.
    #[must_use]
    pub const fn axes(&self) -> Axes {
        Axes { across: self.across, height: self.axis }
    }
}

impl Default for HeightAxis {
    fn default() -> Self {
        Self::Number { unit: "" }
    }
}

impl HeightAxis {
    /// Where a value (a number, or nanoseconds) stands on the axis; `None` where it has no place,
    /// such as zero on a logarithmic axis.
    #[must_use]
    pub fn place(self, value: f64) -> Option<f64> {
        match self {
            Self::Number { .. } => Some(value),
            Self::Time(unit) => Some(value / unit.nanos()),
            Self::LogTime => (value > 0.0).then(|| value.log10()),
            Self::Of(axis) => axis.place(value),
        }
    }

    /// The value that stands at a place: the inverse of [`Self::place`].
    #[must_use]
    pub fn value(self, place: f64) -> f64 {
        match self {
            Self::Number { .. } => place,
            Self::Time(unit) => place * unit.nanos(),
            Self::LogTime => 10_f64.powf(place),
            Self::Of(axis) => axis.value(place),
        }
    }

    /// The unit in words beside the axis' title.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Number { unit } => unit,
            Self::Time(unit) => unit.sign(),
            Self::LogTime => "log scale",
            Self::Of(axis) => axis.unit(),
        }
    }

    /// The label of a grid line that is `step` places away from its neighbours.
    #[must_use]
    pub fn label(self, place: f64, step: f64) -> String {
        match self {
            Self::LogTime => quantity::duration(self.value(place)),
            Self::Number { .. } | Self::Time(_) => quantity::at_step(place, step),
            Self::Of(axis) => axis.mark(place, step),
        }
    }

    /// The narrowest stretch (places) that can be looked at, where `whole` is all there is.
    #[must_use]
    pub fn narrowest(self, whole: f64) -> f64 {
        let unit = Unit::Number("");
        match self {
            Self::Number { .. } | Self::Time(_) => Axis::linear("", unit).narrowest(whole),
            Self::LogTime => Axis::log("", unit).narrowest(whole),
            Self::Of(axis) => axis.narrowest(whole),
        }
    }

    /// A value with its unit.
    #[must_use]
    pub fn words(self, value: f64) -> String {
        match self {
            Self::Number { unit } => format!("{} {unit}", quantity::number(value)),
            Self::Time(_) | Self::LogTime => quantity::measured(value),
            Self::Of(axis) => axis.words(value),
        }
    }
}

/// One line of a plot.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its name in the legend.
    pub name: &'static str,
    /// Place in [`crate::theme::Palette::data`].
    pub colour: usize,
    /// Drawn broken, for what was merely planned.
    pub dashed: bool,
    /// The area under it is tinted.
    pub filled: bool,
    /// Unbroken stretches.
    pub segments: Vec<Vec<PlotPoint>>,
    /// Its value at any instant, before it was placed on the axis. Lines of plots that are not over
    /// time need none: they are read where they are drawn.
    pub readout: Readout,
}

impl Line {
    /// Where it stands at `x`, between its points if need be; `None` in a gap.
    #[must_use]
    pub fn place_at(&self, x: f64) -> Option<f64> {
        let reaches = |segment: &&Vec<PlotPoint>| {
            segment.first().is_some_and(|first| first.x <= x)
                && segment.last().is_some_and(|last| x <= last.x)
        };
        let segment = self.segments.iter().find(reaches)?;
        let after = segment.partition_point(|point| point.x <= x);
        let before = segment[after.checked_sub(1)?];
        let Some(next) = segment.get(after) else { return Some(before.y) };
        Some(before.y + (next.y - before.y) * (x - before.x) / (next.x - before.x))
    }
}

/// The area between two lines.
#[derive(Clone, Debug)]
pub struct Band {
    /// Its name for people who do not see it.
    pub name: &'static str,
    /// Place in [`crate::theme::Palette::data`].
    pub colour: usize,
    /// How strongly it is tinted.
    pub strength: f32,
    /// Times.
    pub xs: Vec<f64>,
    /// Lower edge.
    pub low: Vec<f64>,
    /// Upper edge.
    pub high: Vec<f64>,
}

/// Something that happened at an instant.
#[derive(Clone, Debug)]
pub struct Sign {
    /// Where it stands.
    pub at: PlotPoint,
    /// Its shape.
    pub shape: Shape,
    /// Place in [`crate::theme::Palette::data`].
    pub colour: usize,
    /// What is said of it under the pointer.
    pub words: String,
}

/// The shape of a sign; it carries its meaning as much as the colour does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// More of something.
    Up,
    /// Nothing changed.
    Dot,
    /// Something is wrong.
    Cross,
}

/// How to find a line's value at an instant.
#[derive(Clone, Debug, Default)]
pub enum Readout {
    /// It cannot be told.
    #[default]
    None,
    /// Equal steps of time.
    Bins {
        /// Start of the first step.
        start: RunNanos,
        /// Length of a step (ns).
        width: i64,
        /// Value in each, `None` for no data.
        values: Arc<[Option<f64>]>,
    },
    /// A value that holds from each instant to the next, or none.
    Held(Arc<[(RunNanos, Option<f64>)]>),
    /// A value that holds from each instant to the next.
    Steps(Arc<[(RunNanos, f64)]>),
    /// The same as whole numbers.
    Levels {
        /// The values.
        levels: Arc<Levels>,
        /// Nothing is known outside.
        known: TimeRange,
    },
}

impl Readout {
    /// The value at an instant, `None` for no data.
    #[must_use]
    pub fn at(&self, time: RunNanos) -> Option<f64> {
        match self {
            Self::None => None,
            Self::Bins { start, width, values } => {
                let place = time.0.saturating_sub(start.0).div_euclid((*width).max(1));
                values.get(usize::try_from(place).ok()?).copied().flatten()
            }
            Self::Held(steps) => {
                let after = steps.partition_point(|&(from, _)| from <= time);
                after.checked_sub(1).and_then(|last| steps[last].1)
            }
            Self::Steps(steps) => {
                let after = steps.partition_point(|&(from, _)| from <= time);
                after.checked_sub(1).map(|last| steps[last].1)
            }
            Self::Levels { levels, known } => {
                known.contains(time).then(|| f64::from(levels.at(time)))
            }
        }
    }
}

/// The table twin of a plot.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// Headings with units.
    pub columns: Vec<Heading>,
    /// Values, column by column; `None` for no data.
    pub cells: Vec<Vec<Option<f64>>>,
}

/// A column's heading and how its values are written.
#[derive(Clone, Debug, PartialEq)]
pub struct Heading {
    /// The heading.
    pub name: String,
    /// How its values are written.
    pub kind: Cell,
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell {
    /// An instant (ns), fine enough for steps of this length (ns).
    Instant(f64),
    /// A length of time (ns).
    Duration,
    /// A number.
    Number,
    /// A share of one, in per cent.
    Share,
    /// A share of one, with as many nines as it has.
    Percentile,
}

impl Rows {
    /// An empty column list to be filled.
    #[must_use]
    pub fn new(columns: Vec<Heading>) -> Self {
        let cells = vec![Vec::new(); columns.len()];
        Self { columns, cells }
    }

    /// Appends a row.
    ///
    /// # Panics
    /// If it has not one value for each column.
    pub fn push(&mut self, row: &[Option<f64>]) {
        assert_eq!(row.len(), self.cells.len(), "a row has a value for each column");
        for (column, &value) in self.cells.iter_mut().zip(row) {
            column.push(value);
        }
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cells.first().map_or(0, Vec::len)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The text of a cell.
    #[must_use]
    pub fn text(&self, row: usize, column: usize) -> String {
        let Some(value) = self.cells[column][row] else {
            return quantity::NO_DATA_CELL.to_owned();
        };
        match self.columns[column].kind {
            Cell::Instant(step) => quantity::instant(value, step * 100.0),
            Cell::Duration => quantity::measured(value),
            Cell::Number => quantity::number(value),
            Cell::Share => quantity::percent(value),
            Cell::Percentile => quantity::percentile(value),
        }
    }
}

impl Heading {
    /// A heading.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: Cell) -> Self {
        Self { name: name.into(), kind }
    }
}

/// Seconds from the schedule's zero, as plots use them.
#[must_use]
pub fn seconds(time: RunNanos) -> f64 {
    time.0 as f64 / NANOS_PER_SECOND as f64
}

/// The instant at a place on the time axis.
#[must_use]
pub fn instant_at(seconds: f64) -> RunNanos {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float-to-integer cast saturates, which is what is wanted"
    )]
    let nanos = (seconds * NANOS_PER_SECOND as f64).round() as i64;
    RunNanos(nanos)
}

/// Equal steps of time that cover a view, on round multiples of their length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// Start of the first.
    pub start: RunNanos,
    /// Length of each (ns).
    pub width: i64,
    /// How many.
    pub count: usize,
}

/// No picture has more steps than that, whatever is asked for.
const STEPS_MOST: i64 = 100_000;

impl Steps {
    /// Steps of a round length such that about `wanted` cover the view. They lie on multiples of
    /// their length, so that panning does not change what a step holds.
    #[must_use]
    pub fn covering(view: TimeRange, wanted: u32) -> Self {
        Self::of_width(view, round_step(view.span() / i64::from(wanted.max(1))))
    }

    /// Steps of this length that cover the view.
    #[must_use]
    pub fn of_width(view: TimeRange, width: i64) -> Self {
        let width = width.max(1);
        let first = view.start.0.div_euclid(width);
        let last = view.end.0.saturating_sub(1).div_euclid(width);
        // The view lies in the run, and a step is at least a thousandth of the view or so.
        let count = last.saturating_sub(first).saturating_add(1).clamp(0, STEPS_MOST);
        let count = usize::try_from(count).unwrap_or_default();
        Self { start: RunNanos(first.saturating_mul(width)), width, count }
    }

    /// The step that holds an instant.
    #[must_use]
    pub fn place(self, time: RunNanos) -> Option<usize> {
        let place = time.0.saturating_sub(self.start.0).div_euclid(self.width);
        usize::try_from(place).ok().filter(|&place| place < self.count)
    }

    /// Start of a step.
    #[must_use]
    pub fn start_of(self, place: usize) -> RunNanos {
        let place = i64::try_from(place).unwrap_or(i64::MAX);
        RunNanos(self.start.0.saturating_add(self.width.saturating_mul(place)))
    }

    /// All of them together.
    #[must_use]
    pub fn range(self) -> TimeRange {
        TimeRange { start: self.start, end: self.start_of(self.count) }
    }
}

/// The smallest 1, 2 or 5 times a power of ten nanoseconds that is at least `least`.
#[must_use]
pub fn round_step(least: i64) -> i64 {
    let mut power: i64 = 1;
    loop {
        for digit in [1, 2, 5] {
            let step = power.saturating_mul(digit);
            if step >= least || step == i64::MAX {
                return step;
            }
        }
        power = power.saturating_mul(10);
    }
}

/// A line of equal steps as unbroken stretches, drawn as a staircase.
#[must_use]
pub fn staircase(steps: Steps, places: &[Option<f64>]) -> Vec<Vec<PlotPoint>> {
    let mut segments = Vec::new();
    let mut current: Vec<PlotPoint> = Vec::new();
    for (place, value) in places.iter().enumerate() {
        if let Some(y) = value {
            current.push(PlotPoint::new(seconds(steps.start_of(place)), *y));
            current.push(PlotPoint::new(seconds(steps.start_of(place + 1)), *y));
        } else if !current.is_empty() {
            segments.push(std::mem::take(&mut current));
        }
    }
    if !current.is_empty() {
        segments.push(current);
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: i64, end: i64) -> TimeRange {
        TimeRange { start: RunNanos(start), end: RunNanos(end) }
    }

    #[test]
    fn steps_are_round_and_cover_the_view() {
        for (start, end, wanted) in [(0, 60_000_000_000, 150), (-7, 5, 3), (123, 124, 200)] {
            let steps = Steps::covering(range(start, end), wanted);
            assert!(steps.range().start.0 <= start && steps.range().end.0 >= end);
            assert_eq!(steps.start.0.rem_euclid(steps.width), 0);
            assert_eq!(steps.place(RunNanos(start)), Some(0));
            assert_eq!(steps.place(RunNanos(end - 1)), Some(steps.count - 1));
            assert_eq!(steps.place(steps.range().end), None);
        }
        assert_eq!(round_step(400_000_000), 500_000_000);
        assert_eq!(round_step(0), 1);
        assert_eq!(round_step(i64::MAX), i64::MAX);
    }

    /// A damaged log may have any instant there is, and steps of any width may be asked for.
    #[test]
    fn steps_of_any_view_are_few_and_ascend() {
        let ends = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX];
        for (start, end) in ends.into_iter().flat_map(|start| ends.map(|end| (start, end))) {
            for width in [i64::MIN, 0, 1, 3, 1_000, i64::MAX / 150, i64::MAX] {
                let steps = Steps::of_width(range(start, end), width);
                assert!(steps.count <= 100_000 && steps.width > 0);
                assert!(steps.range().start <= steps.range().end);
                for time in ends {
                    assert!(steps.place(RunNanos(time)).is_none_or(|place| place < steps.count));
                }
            }
            assert!(Steps::covering(range(start, end), 150).count <= 400);
        }
    }

    #[test]
    fn gaps_break_the_staircase() {
        let steps = Steps { start: RunNanos(0), width: NANOS_PER_SECOND, count: 4 };
        let segments = staircase(steps, &[Some(1.0), None, Some(2.0), Some(3.0)]);
        assert_eq!(segments.len(), 2);
        assert_eq!(segments[0].len(), 2);
        assert_eq!(segments[1][3].x, 4.0);
    }

    #[test]
    fn readouts_tell_no_data_from_zero() {
        let bins = Readout::Bins {
            start: RunNanos(-10),
            width: 10,
            values: Arc::from([Some(0.0), None, Some(3.0)]),
        };
        assert_eq!(bins.at(RunNanos(-1)), Some(0.0));
        assert_eq!(bins.at(RunNanos(5)), None);
        assert_eq!(bins.at(RunNanos(10)), Some(3.0));
        assert_eq!(bins.at(RunNanos(20)), None);
        assert_eq!(bins.at(RunNanos(-11)), None);
        let steps = Readout::Steps(Arc::from([(RunNanos(0), 1.0), (RunNanos(5), 2.0)]));
        assert_eq!(steps.at(RunNanos(-1)), None);
        assert_eq!(steps.at(RunNanos(4)), Some(1.0));
        assert_eq!(steps.at(RunNanos(500)), Some(2.0));
    }

    #[test]
    fn lines_are_read_between_their_points_and_not_in_their_gaps() {
        let points =
            |list: &[(f64, f64)]| list.iter().map(|&(x, y)| PlotPoint::new(x, y)).collect();
        let line = Line {
            name: "line",
            colour: 0,
            dashed: false,
            filled: false,
            segments: vec![points(&[(0.0, 1.0), (1.0, 1.0), (1.0, 5.0)]), points(&[(2.0, 7.0)])],
            readout: Readout::None,
        };
        assert_eq!(line.place_at(0.5), Some(1.0));
        assert_eq!(line.place_at(1.0), Some(5.0), "the end of an upright");
        assert_eq!(line.place_at(1.5), None);
        assert_eq!(line.place_at(2.0), Some(7.0));
        assert_eq!(line.place_at(-0.1), None);
    }

    #[test]
    fn heights_go_there_and_back() {
        for axis in [
            HeightAxis::Number { unit: "requests" },
            HeightAxis::Time(TimeUnit::Millis),
            HeightAxis::LogTime,
        ] {
            let place = axis.place(12_345_678.0).expect("a positive value has a place");
            assert!((axis.value(place) - 12_345_678.0).abs() < 1e-3);
        }
        assert_eq!(HeightAxis::LogTime.place(0.0), None);
        assert_eq!(HeightAxis::LogTime.label(6.0, 1.0), "1 ms");
        assert_eq!(HeightAxis::Time(TimeUnit::Millis).words(12_000_000.0), "12.0 ms");
    }
}
