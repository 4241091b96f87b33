//! Compliance over time: in each step, the share of the requests that meet the goals, or how many a
//! second do.
//!
//! A request belongs to the step that holds its sending, or its due time if it never left; only
//! requests that count in shares are there (see `onbeat_shared::metrics::slo`), failures among
//! them. A step without any has no share: it is a gap.

use std::sync::Arc;

use egui_plot::PlotPoint;
use onbeat_shared::{
    metrics::{scores::Limited, slo::Goals},
    units::NANOS_PER_SECOND,
};

use super::{Way, store::placed};
use crate::filter::Filter;
use crate::opened::OpenedRun;
use crate::quantity;
use crate::selection::Passing;
use crate::series::axes::{Axis, Unit};
use crate::series::picture::{
    Cell, Heading, HeightAxis, Line, Picture, Readout, Rows, Steps, staircase,
};
use crate::series::{STEPS, filtered, from_zero, nothing_passes, with_margin, within_run};
use crate::state::TimeRange;
use crate::theme::data_colour;

/// Requests that a step should hold, so that its share means something.
const STEP_REQUESTS: usize = 25;
/// Steps across a view at least.
const STEPS_MIN: u32 = 12;
/// Goals with a line of their own at most: more cannot be told apart.
pub const LINES: usize = 4;
/// Their colours, in the goals' order; blue is all of them together.
pub const COLOURS: [usize; LINES] =
    [data_colour::PURPLE, data_colour::ORANGE, data_colour::GREEN, data_colour::VERMILLION];

/// From nothing to everything, with room for a line at the top.
pub(super) const SHARE_BOUNDS: (f64, f64) = (0.0, 104.0);

/// The axis of shares.
pub(super) const fn share_axis() -> HeightAxis {
    HeightAxis::Of(Axis::linear("share of requests", Unit::Share))
}

/// What a step holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Step {
    of: u64,
    good: u64,
    met: Vec<u64>,
}

/// The plot for a view.
#[must_use]
pub fn picture(
    opened: &OpenedRun,
    view: TimeRange,
    filter: Option<&Arc<Filter>>,
    goals: &Goals,
    way: Way,
) -> Picture {
    let scored = opened.scored(goals, false);
    let limited = scored.limited();
    let passing = opened.passing(filter);
    let in_view = between(opened, view).len();
    let wanted = u32::try_from(in_view / STEP_REQUESTS).unwrap_or(u32::MAX);
    let width = Steps::covering(view, wanted.clamp(STEPS_MIN, STEPS)).width;
    let steps = Steps::of_width(with_margin(opened, view), width);
    let found = count(opened, steps, &passing, &limited);
    let table = Steps::of_width(within_run(opened, view), width);
    let rows = rows(table, part(steps, &found, table), goals);
    let shown = whole(part(steps, &found, Steps::of_width(view, width)));
    let lines = match way {
        Way::Share => share_lines(steps, &found, goals),
        Way::Rate => rate_lines(steps, &found, goals),
    };
    let (axis, bounds) = match way {
        Way::Share => (share_axis(), SHARE_BOUNDS),
        Way::Rate => {
            let most = found.iter().map(|step| per_second(step.of, width)).fold(0.0, f64::max);
            (HeightAxis::Number { unit: "requests/s" }, from_zero(most))
        }
    };
    Picture {
        lines,
        axis,
        bounds,
        table: rows,
        note: filtered(note(&shown, width, goals), &passing),
        summary: summary(&shown, view, goals),
        empty: (shown.of == 0).then(|| nothing_passes(&passing).unwrap_or_else(|| empty(opened))),
        ..Picture::default()
    }
}

/// The requests that count within a stretch, by time.
fn between(opened: &OpenedRun, range: TimeRange) -> &[u32] {
    let counted = opened.counted();
    let time = |&i: &u32| placed(&opened.run, i as usize);
    let from = counted.partition_point(|i| time(i) < Some(range.start));
    let to = counted.partition_point(|i| time(i) < Some(range.end));
    &counted[from..to.max(from)]
}

fn count(opened: &OpenedRun, steps: Steps, passing: &Passing, goals: &[Limited<'_>]) -> Vec<Step> {
    let run = &opened.run;
    let of_step = |place: usize| {
        let range = TimeRange { start: steps.start_of(place), end: steps.start_of(place + 1) };
        let mut step = Step { met: vec![0; goals.len()], ..Step::default() };
        for i in between(opened, range).iter().map(|&i| i as usize).filter(|&i| passing.has(i)) {
            step.of += 1;
            // A column has no number of a failure, but without goals nothing would ask it.
            let mut good = run.requests.is_ok(i);
            for (met, &(column, limit)) in step.met.iter_mut().zip(goals) {
                let is_met = column.is_met(i, limit);
                *met += u64::from(is_met);
                good &= is_met;
            }
            step.good += u64::from(good);
        }
        step
    };
    (0..steps.count).map(of_step).collect()
}

/// The steps that lie in others of the same length.
fn part(steps: Steps, found: &[Step], inner: Steps) -> &[Step] {
    let from = steps.place(inner.start).unwrap_or(0);
    let to = found.len().min(from + inner.count);
    &found[from.min(to)..to]
}

/// All steps together.
fn whole(steps: &[Step]) -> Step {
    let goals = steps.first().map_or(0, |step| step.met.len());
    let mut whole = Step { met: vec![0; goals], ..Step::default() };
    for step in steps {
        whole.of += step.of;
        whole.good += step.good;
        for (sum, met) in whole.met.iter_mut().zip(&step.met) {
            *sum += met;
        }
    }
    whole
}

/// A share; `None` of nothing.
fn share(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

fn per_second(requests: u64, width: i64) -> f64 {
    requests as f64 * NANOS_PER_SECOND as f64 / width as f64
}

/// What the line of good requests is called.
pub(super) fn good_name(goals: &Goals) -> &'static str {
    match goals.list().len() {
        0 => "successful",
        1 => "good",
        _ => "all goals",
    }
}

fn share_lines(steps: Steps, found: &[Step], goals: &Goals) -> Vec<Line> {
    let several = goals.list().len() > 1;
    let own = goals.list().iter().zip(COLOURS).enumerate().filter(|_| several);
    let mut lines: Vec<Line> = own
        .map(|(place, (goal, colour))| {
            let values = found.iter().map(|step| share(step.met[place], step.of)).collect();
            let line = line(steps, goal.kind.label(), colour, share_axis(), values);
            // Several staircases over each other cannot be told apart.
            Line { segments: through_middles(&line.segments), ..line }
        })
        .collect();
    let values = found.iter().map(|step| share(step.good, step.of)).collect();
    let good = line(steps, good_name(goals), data_colour::BLUE, share_axis(), values);
    lines.push(Line { filled: true, ..good });
    lines
}

fn rate_lines(steps: Steps, found: &[Step], goals: &Goals) -> Vec<Line> {
    let rate = |requests: fn(&Step) -> u64| -> Vec<Option<f64>> {
        let of_step = |step: &Step| (step.of > 0).then(|| per_second(requests(step), steps.width));
        found.iter().map(of_step).collect()
    };
    let axis = HeightAxis::Number { unit: "requests/s" };
    let good = line(steps, good_name(goals), data_colour::BLUE, axis, rate(|step| step.good));
    vec![
        line(steps, "all requests", data_colour::GREY, axis, rate(|step| step.of)),
        Line { filled: true, ..good },
    ]
}

fn line(
    steps: Steps,
    name: &'static str,
    colour: usize,
    axis: HeightAxis,
    values: Vec<Option<f64>>,
) -> Line {
    let places: Vec<_> =
        values.iter().map(|value| value.and_then(|value| axis.place(value))).collect();
    Line {
        name,
        colour,
        dashed: false,
        filled: false,
        segments: staircase(steps, &places),
        readout: Readout::Bins {
            start: steps.start,
            width: steps.width,
            values: Arc::from(values),
        },
    }
}

/// A staircase as lines from the middle of each step to that of the next.
fn through_middles(stairs: &[Vec<PlotPoint>]) -> Vec<Vec<PlotPoint>> {
    let middle = |pair: &[PlotPoint]| PlotPoint::new((pair[0].x + pair[1].x) / 2.0, pair[0].y);
    let through = |segment: &Vec<PlotPoint>| {
        // A lone step has no neighbour to go to: it stays as long as it is.
        if segment.len() <= 2 {
            return segment.clone();
        }
        segment.chunks_exact(2).map(middle).collect()
    };
    stairs.iter().map(through).collect()
}

fn rows(steps: Steps, found: &[Step], goals: &Goals) -> Rows {
    let mut headings = vec![
        Heading::new("sent from", Cell::Instant(steps.width as f64)),
        Heading::new("counted", Cell::Number),
        Heading::new("good", Cell::Number),
        Heading::new("share", Cell::Share),
    ];
    let own = goals.list().iter();
    headings.extend(own.map(|goal| Heading::new(goal.kind.label(), Cell::Share)));
    let mut rows = Rows::new(headings);
    for (place, step) in found.iter().enumerate() {
        let mut row = vec![
            Some(steps.start_of(place).0 as f64),
            Some(step.of as f64),
            (step.of > 0).then_some(step.good as f64),
            share(step.good, step.of),
        ];
        row.extend(step.met.iter().map(|&met| share(met, step.of)));
        rows.push(&row);
    }
    rows
}

fn note(shown: &Step, width: i64, goals: &Goals) -> String {
    let requests = quantity::counted(shown.of, "request");
    let steps = quantity::duration(width as f64);
    let more = goals.list().len().saturating_sub(LINES);
    if more > 0 {
        return format!("{requests} in steps of {steps}; the table has {more} more");
    }
    format!("{requests} in steps of {steps}")
}

fn summary(shown: &Step, view: TimeRange, goals: &Goals) -> String {
    let span = view.span() as f64;
    let words = |nanos: i64| quantity::instant(nanos as f64, span);
    let stretch = format!("From {} to {}", words(view.start.0), words(view.end.0));
    if shown.of == 0 {
        return format!("{stretch}: no data.");
    }
    let good = quantity::percent(shown.good as f64 / shown.of as f64);
    let meet = if goals.is_empty() { "succeed" } else { "meet all goals" };
    format!("{stretch}: {good} of {} {meet}.", quantity::counted(shown.of, "request"))
}

fn empty(opened: &OpenedRun) -> String {
    if opened.counted().is_empty() {
        "No data: no request has ended".to_owned()
    } else {
        "No data: no request in this stretch of time".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use onbeat_shared::{
        log::{Class, sample, sample::Sample},
        run::Run,
        units::RunNanos,
    };

    use super::*;

    fn opened(bytes: &[u8]) -> OpenedRun {
        let run = Run::read(bytes).expect("a log");
        OpenedRun::new(PathBuf::from("sample.beat"), 0, run)
    }

    fn goals(text: &str) -> Goals {
        Goals::parse(text).expect("goals")
    }

    #[test]
    fn steps_count_what_looking_at_each_request_counts() {
        let opened = opened(&sample::log(9, 400));
        let goals = goals("ttft:30 e2e:400");
        let scored = opened.scored(&goals, false);
        let whole = opened.whole();
        for (range, width) in [(whole, 700_000_000), (whole.widened(-0.2), 333)] {
            let steps = Steps::of_width(range, width);
            let found = count(&opened, steps, &opened.passing(None), &scored.limited());
            let run = &opened.run;
            for (place, step) in found.iter().enumerate().filter(|(_, step)| step.of > 0) {
                let from = steps.start_of(place)..steps.start_of(place + 1);
                let inside = |&i: &usize| {
                    onbeat_shared::metrics::slo::counts(run, i)
                        && placed(run, i).is_some_and(|time| from.contains(&time))
                };
                let all: Vec<usize> = (0..run.requests.len()).filter(inside).collect();
                assert_eq!(step.of, all.len() as u64);
                let good = all.iter().filter(|&&i| goals.is_good(run, i, false)).count();
                assert_eq!(step.good, good as u64);
            }
        }
    }

    #[test]
    fn a_step_in_which_nothing_was_sent_is_a_gap() {
        let mut sample = Sample::new();
        for sent in [0, 1_000_000, 9_000_000_000, 9_001_000_000] {
            let request = sample.send(sent);
            sample.chunks(request, &[sent + 1_000_000, sent + 2_000_000]);
            sample.done(request, sent + 3_000_000, Class::Ok);
        }
        let opened = opened(&sample.bytes());
        for way in [Way::Share, Way::Rate] {
            let shown = picture(&opened, opened.whole(), None, &goals("ttft:5"), way);
            let good = shown.lines.last().expect("a line");
            assert_eq!(good.segments.len(), 2, "{way:?}");
            assert_eq!(good.readout.at(RunNanos(5_000_000_000)), None);
            let empty = (0..shown.table.len()).find(|&row| shown.table.text(row, 1) == "0");
            assert_eq!(shown.table.text(empty.expect("an empty step"), 3), quantity::NO_DATA_CELL);
        }
    }

    #[test]
    fn failures_that_never_left_lower_the_share_where_they_were_due() {
        let mut sample = Sample::new();
        let request = sample.send(0);
        sample.chunks(request, &[1_000_000, 2_000_000]);
        sample.done(request, 3_000_000, Class::Ok);
        let refused = sample.plan(0);
        sample.done(refused, 4_000_000, Class::ConnectRefused);
        let opened = opened(&sample.bytes());
        let shown = picture(&opened, opened.whole(), None, &Goals::default(), Way::Share);
        let line = &shown.lines[0];
        assert_eq!((line.name, line.readout.at(RunNanos(0))), ("successful", Some(0.5)));
        assert!(shown.summary.contains("50 % of 2 requests succeed"), "{}", shown.summary);
    }

    #[test]
    fn each_goal_has_its_line_and_column() {
        let opened = opened(&sample::log(9, 400));
        let five = goals("ttft:30 itl:20 e2e:400 decode_tps:40 ntpot:50");
        let shown = picture(&opened, opened.whole(), None, &five, Way::Share);
        let names: Vec<_> = shown.lines.iter().map(|line| line.name).collect();
        assert_eq!(names, ["TTFT", "ITL", "e2e", "decode speed", "all goals"]);
        assert_eq!(shown.table.columns.len(), 4 + 5);
        assert!(shown.note.ends_with("the table has 1 more"), "{}", shown.note);
        let one = picture(&opened, opened.whole(), None, &goals("ttft:30"), Way::Share);
        assert_eq!(one.lines.len(), 1, "one goal and all goals are the same line");
    }
}
