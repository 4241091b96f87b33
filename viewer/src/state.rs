//! Everything the user chose: which run and panel, which stretch of time, which way to look at it.
//!
//! Pure: each wish (pan, zoom, brush, fit, clear) is a method that changes plain values, so that
//! the rules can be tested without a window. The chosen *range* is what every number speaks of; the
//! *view* is the stretch the time plots show; the *cursor* is the instant under the pointer. All
//! three are shared by every time plot. This module draws nothing and computes no number of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use onbeat_shared::{metrics::slo::Goals, units::RunNanos};

use crate::filter::{Filter, FilterError};
use crate::selection::Selection;
use crate::series::cache::CacheChoices;
use crate::series::compare::CompareChoices;
use crate::series::distribution::DistributionChoices;
use crate::series::lateness::LatenessChoices;
use crate::series::requests::RequestsChoices;
use crate::series::shape::ShapeChoices;
use crate::series::slo::SloChoices;
use crate::series::timeline::TimelineChoices;
use crate::series::users::UsersChoices;
use crate::xy_view::XyView;

/// A stretch of a run's time, from `start` up to and without `end`. Never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeRange {
    /// First instant.
    pub start: RunNanos,
    /// First instant after it.
    pub end: RunNanos,
}

/// The shortest stretch that can be shown or chosen: 1 µs.
const SHORTEST: i64 = 1_000;
/// A view is at least the instants' size by two to this power: it has thousands of instants that
/// differ in seconds. Twelve days and shorter are not touched by it.
const DIGITS: u32 = 40;

impl TimeRange {
    /// The stretch between two instants in any order, made at least 1 µs long.
    #[must_use]
    pub fn between(a: RunNanos, b: RunNanos) -> Self {
        let start = a.0.min(b.0).min(i64::MAX - SHORTEST);
        let end = a.0.max(b.0).max(start.saturating_add(SHORTEST));
        Self { start: RunNanos(start), end: RunNanos(end) }
    }

    /// Its length (ns).
    #[must_use]
    pub const fn span(self) -> i64 {
        self.end.0.saturating_sub(self.start.0)
    }

    /// Whether the instant lies in it.
    #[must_use]
    pub fn contains(self, time: RunNanos) -> bool {
        (self.start..self.end).contains(&time)
    }

    /// The part of it that lies in `outer`, if any.
    #[must_use]
    pub fn clipped(self, outer: Self) -> Option<Self> {
        let (start, end) = (self.start.max(outer.start), self.end.min(outer.end));
        (start < end).then_some(Self { start, end })
    }

    /// It with `share` of its length added on both sides.
    #[must_use]
    pub fn widened(self, share: f64) -> Self {
        let more = scaled(self.span(), share);
        Self {
            start: RunNanos(self.start.0.saturating_sub(more)),
            end: RunNanos(self.end.0.saturating_add(more)),
        }
    }
}

/// Where a latency is measured from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// When the request left.
    #[default]
    Sent,
    /// When the schedule wanted it to leave, so that our own delay counts too.
    Due,
}

/// A latency of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Metric {
    /// Time to first token.
    #[default]
    Ttft,
    /// Mean time between tokens.
    Itl,
    /// The whole answer.
    EndToEnd,
}

/// What the throughput plot counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Flow {
    /// Output tokens, by chunk.
    #[default]
    OutputTokens,
    /// Input tokens, at the first token.
    InputTokens,
    /// Requests completed.
    Requests,
}

/// How heights are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scale {
    /// From zero, even steps.
    #[default]
    Linear,
    /// Powers of ten.
    Log,
}

/// A brush stroke in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stroke {
    /// Where it began.
    pub from: RunNanos,
    /// Where it is.
    pub to: RunNanos,
}

/// The user's choices about one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Choices {
    /// The whole run, padded; the view never leaves it.
    extent: TimeRange,
    /// The whole run.
    whole: TimeRange,
    view: TimeRange,
    range: Option<TimeRange>,
    /// The instant under the pointer, in whichever plot.
    pub cursor: Option<RunNanos>,
    /// Whether the pointer is in a time plot in this frame.
    pub pointed: bool,
    /// The stroke being drawn.
    pub stroke: Option<Stroke>,
    /// Which requests count: the last text that was a filter; `None`: all.
    pub filter: Option<Arc<Filter>>,
    /// What is typed as a filter.
    pub filter_text: String,
    /// Why that is none, if it is none.
    pub filter_wrong: Option<FilterError>,
    /// About the table of requests.
    pub requests: RequestsChoices,
    /// What the Distribution panel shows.
    pub distribution: DistributionChoices,
    /// About this run and others.
    pub compare: CompareChoices,
    /// What the Shape panel shows.
    pub shape: ShapeChoices,
    /// What a request must meet to be good; at first what the run was started with.
    pub goals: Goals,
    /// About goals.
    pub slo: SloChoices,
    /// About lateness.
    pub lateness: LatenessChoices,
    /// About the cache.
    pub cache: CacheChoices,
    /// About the timeline.
    pub timeline: TimelineChoices,
    /// About users.
    pub users: UsersChoices,
    /// Which latency the Latency panel shows.
    pub metric: Metric,
    /// From where it is measured.
    pub origin: Origin,
    /// On which scale.
    pub scale: Scale,
    /// What the throughput plot counts.
    pub flow: Flow,
    /// What plots that are not over time show, by id.
    pub plots: BTreeMap<&'static str, XyView>,
    /// Plots shown as their table twin, by id.
    tables: BTreeSet<&'static str>,
}

impl Choices {
    /// Nothing chosen yet about a run that lasts from `whole.start` to `whole.end`.
    #[must_use]
    pub fn new(whole: TimeRange) -> Self {
        let extent = whole.widened(0.015);
        Self {
            extent,
            whole,
            view: extent,
            range: None,
            cursor: None,
            pointed: false,
            stroke: None,
            filter: None,
            filter_text: String::new(),
            filter_wrong: None,
            requests: RequestsChoices::default(),
            distribution: DistributionChoices::default(),
            compare: CompareChoices::default(),
            shape: ShapeChoices::default(),
            goals: Goals::default(),
            slo: SloChoices::default(),
            lateness: LatenessChoices::default(),
            cache: CacheChoices::default(),
            timeline: TimelineChoices::default(),
            users: UsersChoices::default(),
            metric: Metric::default(),
            origin: Origin::default(),
            scale: Scale::default(),
            flow: Flow::default(),
            plots: BTreeMap::new(),
            tables: BTreeSet::new(),
        }
    }

    /// The run has become longer. A view of all of it, or that ends where the run ended, goes
    /// along; any other stays where it is, and so does the range.
    pub fn grow(&mut self, whole: TimeRange) {
        let (all, at_end) = (!self.is_zoomed(), self.view.end == self.extent.end);
        self.whole = whole;
        self.extent = whole.widened(0.015);
        if all {
            self.view = self.extent;
        } else if at_end {
            self.pan_by(i64::MAX);
        } else {
            self.view = self.clamped(self.view);
        }
    }

    /// Chooses a range; what lies outside the run is cut off, and a range that misses it entirely
    /// changes nothing. Says whether there was anything to choose.
    pub fn choose(&mut self, range: TimeRange) -> bool {
        let inside = range.clipped(self.extent);
        self.range = inside.or(self.range);
        inside.is_some()
    }

    /// Ends the stroke: chooses what it covered.
    pub fn finish_stroke(&mut self) {
        if let Some(stroke) = self.stroke.take() {
            self.choose(TimeRange::between(stroke.from, stroke.to));
        }
    }

    /// Esc: drops the stroke, else the range, else the zoom. Says whether there was anything.
    pub fn clear(&mut self) -> bool {
        if self.stroke.take().is_some() || self.range.take().is_some() {
            return true;
        }
        let zoomed = self.view != self.extent;
        self.view = self.extent;
        zoomed
    }

    /// Numbers speak of the whole run again.
    pub fn clear_range(&mut self) {
        self.range = None;
    }

    /// Takes a text for the filter. One that is none changes nothing but what is said about it.
    pub fn type_filter(&mut self, text: &str) {
        text.clone_into(&mut self.filter_text);
        self.filter_wrong = None;
        if text.trim().is_empty() {
            self.filter = None;
            return;
        }
        match Filter::parse(text) {
            Err(wrong) => self.filter_wrong = Some(wrong),
            // The same filter stays the same one, so that nothing is worked out anew.
            Ok(filter) if self.filter.as_deref() == Some(&filter) => {}
            Ok(filter) => self.filter = Some(Arc::new(filter)),
        }
    }

    /// All requests count again.
    pub fn clear_filter(&mut self) {
        self.type_filter("");
    }

    /// What every number speaks of.
    #[must_use]
    pub fn selection(&self) -> Selection {
        Selection { range: self.range, filter: self.filter.clone() }
    }

    /// Fits the view: to the range if one is chosen and not yet fitted, else to the whole run.
    pub fn fit(&mut self) {
        let to_range = self.range.map(|range| self.clamped(range.widened(0.03)));
        self.view = match to_range {
            Some(target) if target != self.view => target,
            _ => self.extent,
        };
    }

    /// Shows the whole run.
    pub fn fit_whole(&mut self) {
        self.view = self.extent;
    }

    /// Zooms by `factor` (above 1: closer) around an instant.
    pub fn zoom(&mut self, factor: f64, around: RunNanos) {
        if !(factor.is_finite() && factor > 0.0) {
            return;
        }
        let before = scaled(around.0.saturating_sub(self.view.start.0), 1.0 / factor);
        let after = scaled(self.view.end.0.saturating_sub(around.0), 1.0 / factor);
        let zoomed = TimeRange::between(
            RunNanos(around.0.saturating_sub(before)),
            RunNanos(around.0.saturating_add(after)),
        );
        self.view = self.clamped(zoomed);
    }

    /// Zooms around the cursor, or the middle of the view when there is none in it.
    pub fn zoom_here(&mut self, factor: f64) {
        let middle = RunNanos(self.view.start.0 + self.view.span() / 2);
        let around = self.cursor.filter(|&cursor| self.view.contains(cursor)).unwrap_or(middle);
        self.zoom(factor, around);
    }

    /// Moves the view by `share` of its length (above 0: later).
    pub fn pan(&mut self, share: f64) {
        self.pan_by(scaled(self.view.span(), share));
    }

    /// Moves the view by this many nanoseconds.
    pub fn pan_by(&mut self, nanos: i64) {
        let span = self.view.span();
        let first = self.extent.start.0;
        let last = self.extent.end.0.saturating_sub(span).max(first);
        let start = self.view.start.0.saturating_add(nanos).clamp(first, last);
        self.view = TimeRange { start: RunNanos(start), end: RunNanos(start.saturating_add(span)) };
    }

    /// Moves the cursor by `share` of the view, from its middle when there is none yet.
    pub fn step_cursor(&mut self, share: f64) {
        let middle = self.view.start.0 + self.view.span() / 2;
        let from = self.cursor.map_or(middle, |cursor| cursor.0);
        let to = from.saturating_add(scaled(self.view.span(), share));
        self.cursor = Some(RunNanos(to.clamp(self.view.start.0, self.view.end.0)));
    }

    /// Makes the cursor the range's start, keeping its end if that comes later.
    pub fn start_at_cursor(&mut self) {
        if let Some(cursor) = self.cursor {
            let end = self.range.map_or(self.whole.end, |range| range.end);
            let end = if end > cursor { end } else { self.whole.end };
            self.choose(TimeRange::between(cursor, end));
        }
    }

    /// Makes the cursor the range's end, keeping its start if that comes earlier.
    pub fn end_at_cursor(&mut self) {
        if let Some(cursor) = self.cursor {
            let start = self.range.map_or(self.whole.start, |range| range.start);
            let start = if start < cursor { start } else { self.whole.start };
            self.choose(TimeRange::between(start, cursor));
        }
    }

    /// Shows a plot as its table, or the table as its plot.
    pub fn toggle_table(&mut self, plot: &'static str) {
        if !self.tables.remove(plot) {
            self.tables.insert(plot);
        }
    }

    /// Shows all these plots as tables, or, when they all are, as plots.
    pub fn toggle_tables(&mut self, plots: &[&'static str]) {
        if plots.iter().all(|plot| self.tables.contains(plot)) {
            self.tables.retain(|plot| !plots.contains(plot));
        } else {
            self.tables.extend(plots);
        }
    }

    /// Whether a plot is shown as its table.
    #[must_use]
    pub fn is_table(&self, plot: &str) -> bool {
        self.tables.contains(plot)
    }

    /// The stretch the time plots show.
    #[must_use]
    pub const fn view(&self) -> TimeRange {
        self.view
    }

    /// The stretch every number speaks of, if one is chosen.
    #[must_use]
    pub const fn range(&self) -> Option<TimeRange> {
        self.range
    }

    /// The whole run.
    #[must_use]
    pub const fn whole(&self) -> TimeRange {
        self.whole
    }

    /// Whether the view shows less than the whole run.
    #[must_use]
    pub fn is_zoomed(&self) -> bool {
        self.view != self.extent
    }

    /// A view moved and shortened until it lies in the run.
    fn clamped(&self, view: TimeRange) -> TimeRange {
        // So far from zero that a microsecond is less than the digits of its seconds tell apart, as
        // in a damaged log, more of it is shown.
        let farthest = self.extent.start.0.unsigned_abs().max(self.extent.end.0.unsigned_abs());
        let told_apart = i64::try_from(farthest >> DIGITS).unwrap_or(i64::MAX);
        let whole = self.extent.span();
        let span = view.span().clamp(SHORTEST.max(told_apart).min(whole), whole);
        let last = self.extent.end.0 - span;
        let start = view.start.0.clamp(self.extent.start.0, last);
        TimeRange { start: RunNanos(start), end: RunNanos(start + span) }
    }
}

/// A length of time times a factor, saturating.
fn scaled(nanos: i64, factor: f64) -> i64 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float-to-integer cast saturates, which is what is wanted"
    )]
    let scaled = (nanos as f64 * factor).round() as i64;
    scaled
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn seconds(start: i64, end: i64) -> TimeRange {
        TimeRange::between(RunNanos(start * SECOND), RunNanos(end * SECOND))
    }

    fn choices() -> Choices {
        Choices::new(seconds(0, 100))
    }

    #[test]
    fn a_stroke_chooses_whatever_its_direction() {
        let mut choices = choices();
        choices.stroke = Some(Stroke { from: RunNanos(20 * SECOND), to: RunNanos(10 * SECOND) });
        choices.finish_stroke();
        assert_eq!(choices.range(), Some(seconds(10, 20)));
        assert_eq!(choices.stroke, None);
        choices.choose(seconds(500, 600));
        assert_eq!(choices.range(), Some(seconds(10, 20)), "a miss changes nothing");
    }

    #[test]
    fn escape_clears_one_thing_at_a_time() {
        let mut choices = choices();
        choices.zoom(4.0, RunNanos(50 * SECOND));
        choices.choose(seconds(45, 55));
        choices.stroke = Some(Stroke { from: RunNanos(0), to: RunNanos(1) });
        assert!(choices.clear());
        assert!(choices.stroke.is_none() && choices.range().is_some());
        assert!(choices.clear());
        assert!(choices.range().is_none() && choices.is_zoomed());
        assert!(choices.clear());
        assert!(!choices.is_zoomed());
        assert!(!choices.clear(), "nothing left");
    }

    #[test]
    fn zooming_keeps_the_instant_under_the_pointer() {
        let mut choices = choices();
        let around = RunNanos(30 * SECOND);
        let share = |choices: &Choices| {
            (around.0 - choices.view().start.0) as f64 / choices.view().span() as f64
        };
        let before = share(&choices);
        choices.zoom(8.0, around);
        assert!((share(&choices) - before).abs() < 1e-6);
        choices.zoom(1.0 / 8.0, around);
        assert!((choices.view().span() - choices.extent.span()).abs() < 10);
        choices.zoom(1e30, around);
        assert_eq!(choices.view().span(), SHORTEST);
        choices.zoom(f64::NAN, around);
        choices.zoom(0.0, around);
        assert_eq!(choices.view().span(), SHORTEST);
    }

    #[test]
    fn the_view_never_leaves_the_run() {
        let mut choices = choices();
        choices.zoom(10.0, RunNanos(50 * SECOND));
        let span = choices.view().span();
        choices.pan(100.0);
        assert_eq!(choices.view().end, choices.extent.end);
        assert_eq!(choices.view().span(), span);
        choices.pan(-1e300);
        assert_eq!(choices.view().start, choices.extent.start);
        choices.zoom(0.001, RunNanos(0));
        assert_eq!(choices.view(), choices.extent);
    }

    #[test]
    fn a_view_of_all_or_of_the_end_goes_along_with_a_run_that_grows() {
        let mut choices = choices();
        choices.grow(seconds(0, 200));
        assert!(!choices.is_zoomed());
        assert_eq!(choices.whole(), seconds(0, 200));
        choices.zoom(4.0, RunNanos(50 * SECOND));
        let (before, span) = (choices.view(), choices.view().span());
        choices.grow(seconds(0, 300));
        assert_eq!(choices.view(), before, "in the middle it stays");
        choices.pan(100.0);
        choices.choose(seconds(10, 20));
        choices.grow(seconds(0, 400));
        assert_eq!((choices.view().end, choices.view().span()), (choices.extent.end, span));
        assert_eq!(choices.range(), Some(seconds(10, 20)));
    }

    #[test]
    fn fitting_goes_to_the_range_and_then_to_the_run() {
        let mut choices = choices();
        choices.choose(seconds(40, 60));
        choices.fit();
        assert!(choices.view().span() < 22 * SECOND && choices.view().span() > 20 * SECOND);
        choices.fit();
        assert!(!choices.is_zoomed());
    }

    #[test]
    fn a_range_can_be_chosen_with_the_cursor_alone() {
        let mut choices = choices();
        choices.step_cursor(-0.25);
        choices.start_at_cursor();
        let start = choices.range().expect("chosen").start;
        choices.step_cursor(0.5);
        choices.end_at_cursor();
        let range = choices.range().expect("chosen");
        assert_eq!(range.start, start);
        assert!(range.end > start && range.end < seconds(0, 100).end);
    }

    #[test]
    fn a_run_of_one_instant_can_be_looked_at() {
        let mut choices = Choices::new(TimeRange::between(RunNanos(5), RunNanos(5)));
        assert!(choices.view().span() >= SHORTEST);
        choices.zoom(2.0, RunNanos(5));
        choices.pan(1.0);
        choices.fit();
    }

    #[test]
    fn a_text_that_is_no_filter_leaves_the_last_one() {
        let mut choices = choices();
        choices.type_filter("ttft > 5ms");
        let filter = choices.filter.clone().expect("a filter");
        choices.type_filter("ttft  >  5 ms");
        assert!(Arc::ptr_eq(&filter, choices.filter.as_ref().expect("the same")));
        choices.type_filter("ttft > 5");
        assert_eq!(choices.filter.as_ref(), Some(&filter));
        assert!(choices.filter_wrong.is_some());
        choices.choose(seconds(10, 20));
        let selection = choices.selection();
        assert_eq!((selection.range, selection.filter), (choices.range(), Some(filter)));
        choices.clear_filter();
        assert!(choices.filter.is_none() && choices.filter_wrong.is_none());
        assert!(choices.filter_text.is_empty());
    }

    #[test]
    fn tables_toggle_one_by_one_and_together() {
        let mut choices = choices();
        choices.toggle_table("rates");
        assert!(choices.is_table("rates"));
        choices.toggle_tables(&["rates", "flight"]);
        assert!(choices.is_table("rates") && choices.is_table("flight"));
        choices.toggle_tables(&["rates", "flight"]);
        assert!(!choices.is_table("rates") && !choices.is_table("flight"));
    }
}
