//! Ideal and reported hit rate over time: in each step, of the requests that left in it.

use std::sync::Arc;

use onbeat_shared::metrics::cache::{Ratio, Sums};

use crate::opened::OpenedRun;
use crate::quantity;
use crate::selection::Passing;
use crate::series::picture::{
    Cell, Heading, HeightAxis, Line, Picture, Readout, Rows, Steps, staircase,
};
use crate::series::rates::places_in;
use crate::series::{STEPS, filtered, nothing_passes, with_margin, within_run};
use crate::state::TimeRange;
use crate::theme::data_colour;

const UNIT: &str = "%";
/// A little room above a hundred per cent.
const BOUNDS: (f64, f64) = (0.0, 105.0);

/// The plot for a view.
#[must_use]
pub fn picture(opened: &OpenedRun, view: TimeRange, passing: &Passing) -> Picture {
    let steps = Steps::of_width(with_margin(opened, view), Steps::covering(view, STEPS).width);
    let mut sums = vec![Sums::default(); steps.count];
    for &i in opened.sent_in(steps.range()) {
        let i = i as usize;
        if let Some(place) = opened.run.requests.sent(i).and_then(|sent| steps.place(sent))
            && passing.has(i)
        {
            sums[place].add(&opened.run, i);
        }
    }
    let rates = |of: fn(&Sums) -> Ratio| -> Vec<Option<f64>> {
        sums.iter().map(|sums| of(sums).value().map(|rate| rate * 100.0)).collect()
    };
    let ideal = rates(|sums| sums.ideal);
    let reported = rates(|sums| sums.reported);
    let is_known = |rates: &[Option<f64>]| places_in(view, steps).any(|at| rates[at].is_some());
    let known = [is_known(&ideal), is_known(&reported)];
    let lines = [
        ("ideal", data_colour::GREY, &ideal, known[0]),
        ("reported", data_colour::BLUE, &reported, known[1]),
    ];
    Picture {
        lines: lines
            .into_iter()
            .filter(|line| line.3)
            .map(|(name, colour, rates, _)| line(name, colour, steps, rates))
            .collect(),
        axis: HeightAxis::Number { unit: UNIT },
        bounds: BOUNDS,
        table: rows(within_run(opened, view), steps, &sums, [&ideal, &reported]),
        note: filtered(note(steps, known), passing),
        summary: summary(view, steps, &sums, known),
        empty: nothing_passes(passing).or_else(|| (!known[0] && !known[1]).then(|| empty(&sums))),
        ..Picture::default()
    }
}

fn line(name: &'static str, colour: usize, steps: Steps, rates: &[Option<f64>]) -> Line {
    Line {
        name,
        colour,
        dashed: name == "ideal",
        filled: name != "ideal",
        segments: staircase(steps, rates),
        readout: Readout::Bins { start: steps.start, width: steps.width, values: Arc::from(rates) },
    }
}

fn note(steps: Steps, [ideal, reported]: [bool; 2]) -> String {
    let step = quantity::duration(steps.width as f64);
    match (ideal, reported) {
        (true, false) => format!("the server reports none; in steps of {step}"),
        (false, true) => format!("the trace has no block ids; in steps of {step}"),
        _ => format!("in steps of {step}"),
    }
}

fn empty(sums: &[Sums]) -> String {
    if sums.iter().all(|sums| sums.requests == 0) {
        return "No request left in this stretch of time".to_owned();
    }
    "Nothing is known of the cache: the trace has no block ids, and the server reports no cached \
     tokens"
        .to_owned()
}

fn rows(view: TimeRange, steps: Steps, sums: &[Sums], rates: [&[Option<f64>]; 2]) -> Rows {
    let mut rows = Rows::new(vec![
        Heading::new("from", Cell::Instant(steps.width as f64)),
        Heading::new("requests sent", Cell::Number),
        Heading::new("input tokens", Cell::Number),
        Heading::new("ideal (%)", Cell::Number),
        Heading::new("reported (%)", Cell::Number),
        Heading::new("requests reporting", Cell::Number),
    ]);
    for place in places_in(view, steps) {
        let sums = &sums[place];
        rows.push(&[
            Some(steps.start_of(place).0 as f64),
            Some(sums.requests as f64),
            Some(sums.input as f64),
            rates[0][place],
            rates[1][place],
            Some(sums.reporting as f64),
        ]);
    }
    rows
}

fn summary(view: TimeRange, steps: Steps, sums: &[Sums], [ideal, reported]: [bool; 2]) -> String {
    let span = view.span() as f64;
    let stretch = format!(
        "From {} to {}",
        quantity::instant(view.start.0 as f64, span),
        quantity::instant(view.end.0 as f64, span)
    );
    let of = |ratio: fn(&Sums) -> Ratio| {
        let parts = places_in(view, steps).map(|place| ratio(&sums[place]));
        let (part, whole) =
            parts.fold((0, 0), |sum, ratio| (sum.0 + ratio.part, sum.1 + ratio.whole));
        let rate = Ratio { part, whole }.value();
        rate.map_or_else(|| quantity::NO_DATA.to_owned(), quantity::percent)
    };
    match (ideal, reported) {
        (false, false) => format!("{stretch}: no data."),
        (true, false) => format!(
            "{stretch}: ideal hit rate {}; the server reports no cached tokens.",
            of(|sums| sums.ideal)
        ),
        (false, true) => format!(
            "{stretch}: reported hit rate {}; the trace has no block ids.",
            of(|sums| sums.reported)
        ),
        (true, true) => format!(
            "{stretch}: ideal hit rate {}, reported {}.",
            of(|sums| sums.ideal),
            of(|sums| sums.reported)
        ),
    }
}

#[cfg(test)]
mod tests {
    use onbeat_shared::{
        log::{Class, sample, sample::Sample},
        metrics::Selection,
        metrics::cache::HitRates,
        units::RunNanos,
    };

    use super::super::opened;
    use super::*;

    /// Each step has the rate that the report has for the same stretch.
    #[test]
    fn a_step_is_a_report_of_its_stretch() {
        let opened = opened(&sample::sample(3, 500));
        let view = opened.whole();
        let found = picture(&opened, view, &opened.passing(None));
        let Readout::Bins { start, width, values } = &found.lines[1].readout else {
            panic!("steps");
        };
        let mut compared = 0;
        for (place, value) in (0_i64..).zip(values.iter()) {
            let from = start.0 + place * width;
            let range = (RunNanos(from), RunNanos(from + width));
            let rates = HitRates::of(&Selection::new(&opened.run, Some(range)));
            assert_eq!(*value, rates.reported.map(|rate| rate * 100.0), "from {from}");
            let ideal = found.lines[0].readout.at(range.0);
            assert_eq!(ideal, rates.ideal.map(|rate| rate * 100.0));
            compared += 1;
        }
        assert!(compared > 100);
        assert!(found.summary.contains("reported"), "{}", found.summary);
    }

    #[test]
    fn what_is_not_reported_has_no_line_and_a_word() {
        let mut sample = Sample::new();
        let request = sample.send(0);
        sample.plan[0].ideal_cached_tokens = Some(50);
        sample.chunks(request, &[5_000_000]);
        sample.usage(request, 6_000_000, [Some(100), Some(1), None]);
        sample.done(request, 6_000_000, Class::Ok);
        let silent = opened(&sample);
        let found = picture(&silent, silent.whole(), &silent.passing(None));
        assert_eq!(found.lines.len(), 1);
        assert!(found.note.contains("reports none"), "{}", found.note);
        sample.plan[0].ideal_cached_tokens = None;
        let nothing = opened(&sample);
        let found = picture(&nothing, nothing.whole(), &nothing.passing(None));
        assert!(found.empty.expect("empty").starts_with("Nothing is known"));
    }
}
