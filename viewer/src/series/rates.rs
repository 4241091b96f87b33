//! Offered against achieved: requests the schedule wanted and requests that left, per second.

use std::sync::Arc;

use onbeat_shared::units::{NANOS_PER_SECOND, RunNanos};

use super::picture::{Cell, Heading, HeightAxis, Line, Picture, Readout, Rows, Steps, staircase};
use super::{STEPS, filtered, from_zero, nothing_passes, with_margin, within_run};
use crate::opened::OpenedRun;
use crate::quantity;
use crate::selection::Passing;
use crate::state::TimeRange;
use crate::theme::data_colour;

const UNIT: &str = "requests/s";

/// The plot for a view. A run whose requests have no due times of their own has no offered line,
/// nor has one that users drive.
#[must_use]
pub fn picture(opened: &OpenedRun, view: TimeRange, passing: &Passing) -> Picture {
    let steps = Steps::of_width(with_margin(opened, view), Steps::covering(view, STEPS).width);
    let requests = &opened.run.requests;
    // Where users decide, a request is due when its user comes to it: nothing was offered.
    let has_schedule =
        opened.run.users.is_none() && (0..requests.len()).any(|i| requests.due(i).is_some());
    let due = (0..requests.len()).filter(|&i| passing.has(i)).filter_map(|i| requests.due(i));
    let due = count(steps, due);
    let sent = opened.sent_of(steps.range(), passing).filter_map(|i| requests.sent(i as usize));
    let sent = count(steps, sent);
    let offered = has_schedule.then(|| per_second(opened, steps, &due));
    let achieved = per_second(opened, steps, &sent);
    let mut lines = Vec::new();
    if let Some(offered) = &offered {
        lines.push(line("offered", data_colour::GREY, true, steps, offered));
    }
    let name = if opened.run.users.is_some() { "sent" } else { "achieved" };
    lines.push(line(name, data_colour::BLUE, false, steps, &achieved));
    let largest =
        lines.iter().map(|line| largest_in(view, steps, &line.readout)).fold(0.0_f64, f64::max);
    Picture {
        bounds: from_zero(largest),
        axis: HeightAxis::Number { unit: UNIT },
        table: rows(within_run(opened, view), steps, offered.as_deref(), &achieved),
        note: filtered(format!("in steps of {}", quantity::duration(steps.width as f64)), passing),
        summary: summary(view, offered.as_deref(), &achieved, largest),
        empty: nothing_passes(passing)
            .or_else(|| opened.by_sent().is_empty().then(|| "No request left".to_owned())),
        lines,
        ..Picture::default()
    }
}

/// How many instants lie in each step.
fn count(steps: Steps, times: impl Iterator<Item = RunNanos>) -> Vec<u32> {
    let mut counts = vec![0; steps.count];
    for place in times.filter_map(|time| steps.place(time)) {
        counts[place] += 1;
    }
    counts
}

/// Counts per second; no data outside the run.
fn per_second(opened: &OpenedRun, steps: Steps, counts: &[u32]) -> Vec<Option<f64>> {
    let whole = opened.whole();
    let seconds = steps.width as f64 / NANOS_PER_SECOND as f64;
    let inside =
        |place| steps.start_of(place) < whole.end && steps.start_of(place + 1) > whole.start;
    (0..).zip(counts).map(|(place, &n)| inside(place).then(|| f64::from(n) / seconds)).collect()
}

fn line(
    name: &'static str,
    colour: usize,
    planned: bool,
    steps: Steps,
    values: &[Option<f64>],
) -> Line {
    Line {
        name,
        colour,
        dashed: planned,
        filled: !planned,
        segments: staircase(steps, values),
        readout: Readout::Bins {
            start: steps.start,
            width: steps.width,
            values: Arc::from(values),
        },
    }
}

fn largest_in(view: TimeRange, steps: Steps, readout: &Readout) -> f64 {
    places_in(view, steps).filter_map(|place| readout.at(steps.start_of(place))).fold(0.0, f64::max)
}

/// The steps that a view shows.
pub(super) fn places_in(view: TimeRange, steps: Steps) -> impl Iterator<Item = usize> {
    (0..steps.count).filter(move |&place| {
        steps.start_of(place) < view.end && steps.start_of(place + 1) > view.start
    })
}

fn rows(
    view: TimeRange,
    steps: Steps,
    offered: Option<&[Option<f64>]>,
    achieved: &[Option<f64>],
) -> Rows {
    let mut rows = Rows::new(vec![
        Heading::new("from", Cell::Instant(steps.width as f64)),
        Heading::new("offered (requests/s)", Cell::Number),
        Heading::new("achieved (requests/s)", Cell::Number),
    ]);
    for place in places_in(view, steps) {
        let from = Some(steps.start_of(place).0 as f64);
        rows.push(&[from, offered.and_then(|values| values[place]), achieved[place]]);
    }
    rows
}

fn summary(
    view: TimeRange,
    offered: Option<&[Option<f64>]>,
    achieved: &[Option<f64>],
    largest: f64,
) -> String {
    let span = view.span() as f64;
    let stretch = format!(
        "From {} to {}",
        quantity::instant(view.start.0 as f64, span),
        quantity::instant(view.end.0 as f64, span)
    );
    if achieved.iter().all(Option::is_none) {
        return format!("{stretch}: no data.");
    }
    let what = if offered.is_some() {
        "requests offered and achieved per second"
    } else {
        "requests per second; the schedule offers none at fixed times"
    };
    format!("{stretch}: {what}, at most {} {UNIT}.", quantity::number(largest))
}
