//! One latency of every request over time, with rolling percentiles.
//!
//! Few requests are drawn one by one, many as a density picture in which every occupied cell shows,
//! so that no extreme is lost. Percentiles are those of all successful requests sent within a
//! window that slides over the view. Failures have no latency: they are drawn as crosses below the
//! data and counted in the table.

use std::sync::Arc;

use egui_plot::PlotPoint;
use onbeat_shared::{
    metrics::{latency, quantile},
    units::RunNanos,
};

use super::picture::{
    Band, Cell, Density, Heading, HeightAxis, Line, Marks, Picture, Readout, Rows, Steps,
    round_step, seconds,
};
use super::{filtered, nothing_passes, with_margin, within_run};
use crate::fate::Fate;
use crate::opened::OpenedRun;
use crate::quantity::{self, TimeUnit};
use crate::selection::Passing;
use crate::state::{Metric, Origin, Scale, TimeRange};
use crate::theme::data_colour;

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Which latency.
    pub metric: Metric,
    /// From where.
    pub origin: Origin,
    /// How heights are drawn.
    pub scale: Scale,
}

/// Above this many requests in view a density picture replaces the marks: egui tessellates every
/// mark in every frame.
pub const POINTS_MAX: usize = 20_000;
/// Windows next to each other across a view, at most.
const WINDOWS: i64 = 50;
/// Requests a window should hold, so that its percentiles mean something.
const WINDOW_REQUESTS: f64 = 25.0;
/// How many steps a window takes to slide by its own width.
const SLIDE: i64 = 4;
/// Height of the lane for failures below the data, as a share of the data's.
const LANE: f64 = 0.07;
/// Crosses next to each other in that lane, at most.
const CROSSES: i64 = 150;
/// Powers of ten shown below the smallest value on a logarithmic axis.
const LOG_ROOM: f64 = 0.12;

const PERCENTILES: [(&str, f64, usize); 3] = [
    ("p50", 0.50, data_colour::BLUE),
    ("p95", 0.95, data_colour::ORANGE),
    ("p99", 0.99, data_colour::VERMILLION),
];

/// The chosen latency of a request (ns); `None` where it has none.
#[must_use]
pub fn value(opened: &OpenedRun, i: usize, metric: Metric, origin: Origin) -> Option<f64> {
    let run = &opened.run;
    if !run.requests.is_ok(i) {
        return None;
    }
    let metric = match (metric, origin) {
        (Metric::Ttft, Origin::Sent) => latency::Metric::Ttft,
        (Metric::Ttft, Origin::Due) => latency::Metric::TtftFromDue,
        (Metric::Itl, _) => latency::Metric::Itl,
        (Metric::EndToEnd, Origin::Sent) => latency::Metric::E2e,
        (Metric::EndToEnd, Origin::Due) => latency::Metric::E2eFromDue,
    };
    metric.value_ns(run, i).filter(|nanos| nanos.is_finite())
}

/// A request's sending and its latency.
#[derive(Clone, Copy)]
struct Sample {
    sent: RunNanos,
    request: u32,
    nanos: f64,
}

/// The plot for a view.
#[must_use]
pub fn picture(opened: &OpenedRun, view: TimeRange, choice: Choice, passing: &Passing) -> Picture {
    let wide = with_margin(opened, view);
    let samples = samples(opened, wide, choice, passing);
    let shown = in_view(&samples, view);
    let axis = match choice.scale {
        Scale::Log => HeightAxis::LogTime,
        Scale::Linear => HeightAxis::Time(TimeUnit::fitting(
            shown.iter().map(|sample| sample.nanos).fold(0.0, f64::max),
        )),
    };
    let failed = failures(opened, view, passing);
    let data = bounds(shown, axis);
    let lane = if failed.sent.is_empty() { 0.0 } else { LANE * (data.1 - data.0) };
    let window = window(view, shown.len());
    let rolling = Rolling::over(&samples, wide, window);
    Picture {
        lines: rolling.lines(axis),
        bands: rolling.bands(axis),
        marks: marks(&samples, shown.len(), wide, axis, data),
        crosses: crosses(&failed.sent, view, data.0 - lane / 2.0),
        axis,
        bounds: (data.0 - lane, data.1),
        table: rows(shown, &failed, within_run(opened, view), window),
        note: filtered(note(shown.len(), &failed, window), passing),
        summary: summary(shown, view),
        empty: nothing_passes(passing)
            .or_else(|| shown.is_empty().then(|| empty(opened, choice, passing))),
        ..Picture::default()
    }
}

fn samples(opened: &OpenedRun, range: TimeRange, choice: Choice, passing: &Passing) -> Vec<Sample> {
    let sample = |request: u32| {
        let i = request as usize;
        let sent = opened.run.requests.sent(i)?;
        let nanos = value(opened, i, choice.metric, choice.origin)?;
        Some(Sample { sent, request, nanos })
    };
    opened.sent_of(range, passing).filter_map(sample).collect()
}

fn in_view(samples: &[Sample], view: TimeRange) -> &[Sample] {
    let from = samples.partition_point(|sample| sample.sent < view.start);
    let to = samples.partition_point(|sample| sample.sent < view.end);
    &samples[from..to.max(from)]
}

/// Requests that ended, but not well.
#[derive(Default)]
struct Failures {
    /// When each that failed was sent.
    sent: Vec<RunNanos>,
    /// When each that was cancelled was sent: that is no failure, and no cross.
    cancelled: Vec<RunNanos>,
}

fn failures(opened: &OpenedRun, view: TimeRange, passing: &Passing) -> Failures {
    let requests = &opened.run.requests;
    let mut failures = Failures::default();
    for i in opened.sent_of(view, passing).map(|i| i as usize) {
        match Fate::of(&opened.run, i) {
            Fate::Failed => failures.sent.extend(requests.sent(i)),
            Fate::Cut => failures.cancelled.extend(requests.sent(i)),
            Fate::Ok | Fate::Open | Fate::Unsent => {}
        }
    }
    failures
}

fn bounds(shown: &[Sample], axis: HeightAxis) -> (f64, f64) {
    let places = shown.iter().filter_map(|sample| axis.place(sample.nanos));
    let (low, high) = places.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), place| {
        (low.min(place), high.max(place))
    });
    if !low.is_finite() || !high.is_finite() {
        // Nothing to show; an axis all the same, from 1 ms to 1 s or from zero to one.
        return if axis == HeightAxis::LogTime { (6.0, 9.0) } else { (0.0, 1.0) };
    }
    if axis == HeightAxis::LogTime {
        return (low - LOG_ROOM, (high + LOG_ROOM).max(low + 1.0));
    }
    // Zero is in sight, even if all are below it, as in a damaged log; so is more if all are zero.
    let high = high.max(0.0);
    let room = (high - low.min(0.0)) * 0.06;
    let room = if room > 0.0 { room } else { 1.0 };
    (if low < 0.0 { low - room } else { 0.0 }, high + room)
}

/// Failures in their lane, at most one in each of [`CROSSES`] steps of the view.
fn crosses(failed: &[RunNanos], view: TimeRange, y: f64) -> Vec<PlotPoint> {
    let step = (view.span() / CROSSES).max(1);
    failed
        .chunk_by(|a, b| a.0.div_euclid(step) == b.0.div_euclid(step))
        .filter_map(|near| near.first())
        .map(|&sent| PlotPoint::new(seconds(sent), y))
        .collect()
}

/// Length of the sliding window: round, a fiftieth of the view or longer if it would hold too few.
fn window(view: TimeRange, samples: usize) -> i64 {
    let span = view.span() as f64;
    let for_requests = span * WINDOW_REQUESTS / samples.max(1) as f64;
    let least = for_requests.max(span / WINDOWS as f64).min(span / 4.0);
    #[expect(clippy::cast_possible_truncation, reason = "a part of an i64 span fits")]
    let least = least as i64;
    round_step(least)
}

/// Percentiles of a window that slides in equal steps.
struct Rolling {
    /// The steps; each stands for the window around its middle.
    steps: Steps,
    /// One value for each of [`PERCENTILES`], step by step.
    values: [Vec<Option<f64>>; 3],
}

impl Rolling {
    fn over(samples: &[Sample], wide: TimeRange, window: i64) -> Self {
        let steps = Steps::of_width(wide, (window / SLIDE).max(1));
        let mut values = [const { Vec::new() }; 3];
        let mut inside = Vec::new();
        // Before the first request and after the last a window is only half full.
        let first = samples.first().map_or(i64::MAX, |sample| sample.sent.0);
        let last = samples.last().map_or(i64::MIN, |sample| sample.sent.0);
        for place in 0..steps.count {
            let middle = middle(steps, place);
            if !(first..=last).contains(&middle) {
                values.iter_mut().for_each(|column| column.push(None));
                continue;
            }
            let around = TimeRange {
                start: RunNanos(middle.saturating_sub(window / 2)),
                end: RunNanos(middle.saturating_add(window / 2)),
            };
            inside.clear();
            inside.extend(in_view(samples, around).iter().map(|sample| sample.nanos));
            inside.sort_unstable_by(f64::total_cmp);
            for (column, (_, share, _)) in values.iter_mut().zip(PERCENTILES) {
                column.push(quantile::percentile(&inside, share));
            }
        }
        Self { steps, values }
    }

    fn lines(&self, axis: HeightAxis) -> Vec<Line> {
        let lines = PERCENTILES.iter().zip(&self.values);
        lines
            .map(|(&(name, _, colour), values)| Line {
                name,
                colour,
                dashed: false,
                filled: false,
                segments: self.segments(axis, values),
                readout: Readout::Bins {
                    start: self.steps.start,
                    width: self.steps.width,
                    values: Arc::from(values.as_slice()),
                },
            })
            .collect()
    }

    fn segments(&self, axis: HeightAxis, values: &[Option<f64>]) -> Vec<Vec<PlotPoint>> {
        let placed: Vec<Option<PlotPoint>> = (0..)
            .zip(values)
            .map(|(place, value)| {
                let y = value.and_then(|value| axis.place(value))?;
                Some(PlotPoint::new(seconds(RunNanos(middle(self.steps, place))), y))
            })
            .collect();
        placed
            .split(Option::is_none)
            .filter(|stretch| !stretch.is_empty())
            .map(|stretch| stretch.iter().flatten().copied().collect())
            .collect()
    }

    /// The areas between neighbouring percentiles.
    fn bands(&self, axis: HeightAxis) -> Vec<Band> {
        let mut bands = Vec::new();
        for (lower, name, strength) in [(0, "p50 to p95", 0.13), (1, "p95 to p99", 0.10)] {
            let low = self.segments(axis, &self.values[lower]);
            let high = self.segments(axis, &self.values[lower + 1]);
            // Both have values in the same steps, so their stretches match.
            for (low, high) in low.iter().zip(&high).filter(|(low, high)| low.len() == high.len()) {
                bands.push(Band {
                    name,
                    colour: PERCENTILES[lower + 1].2,
                    strength,
                    xs: low.iter().map(|point| point.x).collect(),
                    low: low.iter().map(|point| point.y).collect(),
                    high: high.iter().map(|point| point.y).collect(),
                });
            }
        }
        bands
    }
}

fn middle(steps: Steps, place: usize) -> i64 {
    steps.start_of(place).0.saturating_add(steps.width / 2)
}

fn marks(
    samples: &[Sample],
    shown: usize,
    wide: TimeRange,
    axis: HeightAxis,
    bounds: (f64, f64),
) -> Marks {
    if samples.is_empty() {
        return Marks::None;
    }
    let placed = samples.iter().filter_map(|sample| {
        let y = axis.place(sample.nanos)?;
        Some((PlotPoint::new(seconds(sample.sent), y), sample.request))
    });
    if shown > POINTS_MAX {
        let xs = (seconds(wide.start), seconds(wide.end));
        return Marks::Density(Density::of(placed.map(|(point, _)| point), xs, bounds));
    }
    let (points, requests) = placed.unzip();
    Marks::Points { points, requests }
}

/// One row for each window next to each other: how many requests, and their spread.
fn rows(shown: &[Sample], failed: &Failures, view: TimeRange, window: i64) -> Rows {
    let steps = Steps::of_width(view, window);
    let any_cancelled = !failed.cancelled.is_empty();
    let mut columns = vec![
        Heading::new("sent from", Cell::Instant(window as f64)),
        Heading::new("successful", Cell::Number),
        Heading::new("failed", Cell::Number),
    ];
    columns.extend(any_cancelled.then(|| Heading::new("cancelled", Cell::Number)));
    columns.extend(["p50", "p95", "p99", "max"].map(|name| Heading::new(name, Cell::Duration)));
    let mut rows = Rows::new(columns);
    for place in 0..steps.count {
        let step = TimeRange { start: steps.start_of(place), end: steps.start_of(place + 1) };
        let mut inside: Vec<f64> = in_view(shown, step).iter().map(|sample| sample.nanos).collect();
        inside.sort_unstable_by(f64::total_cmp);
        let within = |sent: &[RunNanos]| {
            let from = sent.partition_point(|&sent| sent < step.start);
            sent.partition_point(|&sent| sent < step.end).saturating_sub(from) as f64
        };
        let percentile = |share| quantile::percentile(&inside, share);
        let mut row = vec![Some(step.start.0 as f64), Some(inside.len() as f64)];
        row.push(Some(within(&failed.sent)));
        row.extend(any_cancelled.then(|| Some(within(&failed.cancelled))));
        row.extend([0.50, 0.95, 0.99].map(percentile));
        row.push(inside.last().copied());
        rows.push(&row);
    }
    rows
}

fn note(shown: usize, failed: &Failures, window: i64) -> String {
    let some = |count: usize, words: &str| match count as u64 {
        0 => String::new(),
        some => format!("{} {words}, ", quantity::count(some)),
    };
    let cancelled = some(failed.cancelled.len(), "cancelled");
    let failed = some(failed.sent.len(), "failed (crosses)");
    let requests = quantity::counted(shown as u64, "request");
    let window = quantity::duration(window as f64);
    format!("{requests}, {failed}{cancelled}percentiles over {window}")
}

fn summary(shown: &[Sample], view: TimeRange) -> String {
    let span = view.span() as f64;
    let words = |time: RunNanos| quantity::instant(time.0 as f64, span);
    let stretch = format!("From {} to {}", words(view.start), words(view.end));
    let by_size = |a: &&Sample, b: &&Sample| a.nanos.total_cmp(&b.nanos);
    let (Some(least), Some(most)) = (shown.iter().min_by(by_size), shown.iter().max_by(by_size))
    else {
        return format!("{stretch}: no data.");
    };
    format!(
        "{stretch}: {} between {} and {}, the longest sent at {}.",
        quantity::counted(shown.len() as u64, "request"),
        quantity::measured(least.nanos),
        quantity::measured(most.nanos),
        words(most.sent)
    )
}

fn empty(opened: &OpenedRun, choice: Choice, passing: &Passing) -> String {
    let requests = &opened.run.requests;
    let mut all = (0..requests.len()).filter(|&i| passing.has(i));
    if !all.clone().any(|i| requests.is_ok(i)) {
        return "No data: no request succeeded".to_owned();
    }
    let anywhere = all.any(|i| value(opened, i, choice.metric, choice.origin).is_some());
    if anywhere {
        return "No data in this stretch of time".to_owned();
    }
    match (choice.metric, choice.origin) {
        (Metric::Itl, _) => "No data: no answer has two tokens or more".to_owned(),
        (_, Origin::Due) => "No data: the schedule gives no due times".to_owned(),
        (_, Origin::Sent) => "No data: no answer has a token".to_owned(),
    }
}
