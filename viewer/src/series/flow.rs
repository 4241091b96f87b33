//! Throughput over time: output tokens at their chunk's time, input tokens at the first token,
//! requests at their end.
//!
//! These are what passed over the wire in each step, of all requests, whatever became of them; the
//! headline rates in the report count successful requests only.

use std::sync::Arc;

use onbeat_shared::{
    metrics::flows::{Grid, Kind},
    units::NANOS_PER_SECOND,
};

use super::picture::{Cell, Heading, HeightAxis, Line, Picture, Readout, Rows, Steps, staircase};
use super::rates::places_in;
use super::{STEPS, filtered, from_zero, nothing_passes, with_margin, within_run};
use crate::opened::OpenedRun;
use crate::quantity;
use crate::selection::Passing;
use crate::state::{Flow, TimeRange};
use crate::theme::data_colour;

/// Amounts per step, and what they are called.
struct Counted {
    name: &'static str,
    colour: usize,
    amounts: Vec<f64>,
}

/// The plot for a view, of the requests that pass a filter.
#[must_use]
pub fn picture(opened: &OpenedRun, view: TimeRange, flow: Flow, passing: &Passing) -> Picture {
    let steps = Steps::of_width(with_margin(opened, view), Steps::covering(view, STEPS).width);
    let (unit, counted) = counted(opened, steps, passing, flow);
    let total: f64 = counted.iter().flat_map(|counted| &counted.amounts).sum();
    let rates: Vec<Vec<Option<f64>>> =
        counted.iter().map(|counted| per_second(opened, steps, &counted.amounts)).collect();
    let largest = places_in(view, steps)
        .flat_map(|place| rates.iter().filter_map(move |rate| rate[place]))
        .fold(0.0, f64::max);
    let lines = counted.iter().zip(&rates).map(|(counted, rates)| Line {
        name: counted.name,
        colour: counted.colour,
        dashed: false,
        filled: true,
        segments: staircase(steps, rates),
        readout: Readout::Bins {
            start: steps.start,
            width: steps.width,
            values: Arc::from(rates.as_slice()),
        },
    });
    Picture {
        lines: lines.collect(),
        axis: HeightAxis::Number { unit },
        bounds: from_zero(largest),
        table: rows(within_run(opened, view), steps, &counted, &rates, unit),
        note: filtered(format!("in steps of {}", quantity::duration(steps.width as f64)), passing),
        summary: summary(view, &counted, largest, unit),
        empty: nothing_passes(passing)
            .or_else(|| (total == 0.0).then(|| "No data in this stretch of time".to_owned())),
        ..Picture::default()
    }
}

/// What passed in each step, and its unit per second.
fn counted(
    opened: &OpenedRun,
    steps: Steps,
    passing: &Passing,
    flow: Flow,
) -> (&'static str, Vec<Counted>) {
    let load = opened.load(passing);
    let flows = load.flows(opened);
    let grid = Grid { start: steps.start, width: steps.width, count: steps.count };
    let amounts = flows.amounts(&opened.run, grid);
    let of = |name, colour, kind: Kind| {
        let amounts = amounts.iter().map(|amounts| amounts[kind as usize]).collect();
        Counted { name, colour, amounts }
    };
    match flow {
        Flow::OutputTokens => {
            ("tokens/s", vec![of("output tokens", data_colour::BLUE, Kind::Output)])
        }
        Flow::InputTokens => {
            ("tokens/s", vec![of("input tokens", data_colour::GREEN, Kind::Input)])
        }
        Flow::Requests => {
            let mut counted = vec![of("completed", data_colour::BLUE, Kind::Completed)];
            let whole = opened.whole().widened(1.0);
            let all = flows.between(&opened.run, (whole.start, whole.end));
            for (name, colour, kind) in [
                ("failed", data_colour::VERMILLION, Kind::Failed),
                ("cancelled", data_colour::GREY, Kind::Cancelled),
            ] {
                if all[kind as usize] > 0.0 {
                    counted.push(of(name, colour, kind));
                }
            }
            ("requests/s", counted)
        }
    }
}

fn per_second(opened: &OpenedRun, steps: Steps, amounts: &[f64]) -> Vec<Option<f64>> {
    let whole = opened.whole();
    let seconds = steps.width as f64 / NANOS_PER_SECOND as f64;
    let inside =
        |place| steps.start_of(place) < whole.end && steps.start_of(place + 1) > whole.start;
    (0..).zip(amounts).map(|(place, &n)| inside(place).then(|| n / seconds)).collect()
}

fn rows(
    view: TimeRange,
    steps: Steps,
    counted: &[Counted],
    rates: &[Vec<Option<f64>>],
    unit: &str,
) -> Rows {
    let mut columns = vec![Heading::new("from", Cell::Instant(steps.width as f64))];
    for counted in counted {
        columns.push(Heading::new(format!("{} ({unit})", counted.name), Cell::Number));
    }
    let mut rows = Rows::new(columns);
    for place in places_in(view, steps) {
        let mut row = vec![Some(steps.start_of(place).0 as f64)];
        row.extend(rates.iter().map(|rate| rate[place]));
        rows.push(&row);
    }
    rows
}

fn summary(view: TimeRange, counted: &[Counted], largest: f64, unit: &str) -> String {
    let span = view.span() as f64;
    let nothing = counted.iter().all(|counted| counted.amounts.iter().all(|&n| n == 0.0));
    let names: Vec<_> = counted.iter().map(|counted| counted.name).collect();
    let stretch = format!(
        "From {} to {}",
        quantity::instant(view.start.0 as f64, span),
        quantity::instant(view.end.0 as f64, span)
    );
    if nothing {
        return format!("{stretch}: no data.");
    }
    let (names, most) = (names.join(" and "), quantity::number(largest));
    format!("{stretch}: {names} per second, at most {most} {unit}.")
}
