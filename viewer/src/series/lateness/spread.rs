//! How lateness is spread: as a histogram over powers of ten, or as what each percentile is late.
//!
//! In the parts that explain it, as `onbeat_shared::metrics::schedule` divides them: requests alone
//! at their instant, requests in bursts, and (of both) requests whose lateness a host stall
//! explains. Sent at its very instant has no logarithm: the histogram's first step holds those too.

use egui_plot::PlotPoint;
use onbeat_shared::{
    metrics::{
        lateness::{in_stall, lateness_ns},
        quantile,
    },
    run::Run,
};

use super::Spread;
use crate::opened::OpenedRun;
use crate::quantity::{self, TimeUnit};
use crate::selection::Selection;
use crate::series::axes::{Across, Axis, Unit};
use crate::series::picture::{Cell, Heading, HeightAxis, Line, Picture, Readout, Rows};
use crate::series::{from_zero, xy};
use crate::theme::data_colour;

/// Steps of the histogram in a power of ten.
const STEPS_PER_DECADE: f64 = 12.0;
/// Points of a percentile line.
const POINTS: u32 = 400;
/// What lies across the histogram.
const LATENESS: Axis = Axis::log("lateness", Unit::Time(TimeUnit::Micros));
/// Percentiles of the table.
const SHARES: [f64; 11] = [0.0, 0.05, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 0.999, 0.9999, 1.0];

/// The parts, with their colours.
const PARTS: [(&str, usize); 4] = [
    ("all", data_colour::GREY),
    ("lone", data_colour::BLUE),
    ("in bursts", data_colour::ORANGE),
    ("in host stalls", data_colour::VERMILLION),
];

/// Sorted lateness (ns) of each part.
type Parts = [Vec<f64>; PARTS.len()];

fn parts(run: &Run, chosen: &[u32]) -> Parts {
    let mut parts = Parts::default();
    for i in chosen.iter().map(|&i| i as usize) {
        let Some(late) = lateness_ns(run, i) else { continue };
        let late = late as f64;
        let [all, lone, burst, stalled] = &mut parts;
        all.push(late);
        if run.requests.in_burst(i) { burst } else { lone }.push(late);
        if in_stall(run, i) == Some(true) {
            stalled.push(late);
        }
    }
    parts.iter_mut().for_each(|part| part.sort_unstable_by(f64::total_cmp));
    parts
}

/// The plot of a selection.
#[must_use]
pub fn picture(opened: &OpenedRun, selection: &Selection, spread: Spread) -> Picture {
    let parts = parts(&opened.run, &opened.chosen(selection));
    let mut picture = match spread {
        Spread::Histogram => histogram(&parts),
        Spread::Percentiles => percentiles(&parts),
    };
    picture.note = quantity::counted(parts[0].len() as u64, "request");
    picture.summary = summary(&parts);
    picture.empty = parts[0].is_empty().then(|| "No data: no request left".to_owned());
    picture
}

/// Steps of equal width on a logarithmic axis, from the least lateness above zero to the most.
#[derive(Clone, Copy, Debug)]
struct Bins {
    first: f64,
    count: usize,
}

impl Bins {
    fn over(sorted: &[f64]) -> Self {
        let low = sorted.iter().copied().find(|&late| late > 0.0).unwrap_or(1e3);
        let high = sorted.last().copied().filter(|&late| late > low).unwrap_or(low);
        let first = (low.log10() * STEPS_PER_DECADE).floor();
        let last = (high.log10() * STEPS_PER_DECADE).floor();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a run's times span fewer than 20 powers of ten"
        )]
        let count = (last - first) as usize + 1;
        Self { first, count }
    }

    /// Its edge as a length in nanoseconds.
    fn edge(self, place: usize) -> f64 {
        10_f64.powf((self.first + place as f64) / STEPS_PER_DECADE)
    }

    /// How many sorted values lie in each step; what is not above zero lies in the first.
    fn count(self, sorted: &[f64]) -> Vec<usize> {
        let mut before = 0;
        (0..self.count)
            .map(|place| {
                let edge = self.edge(place + 1);
                let is_last = place + 1 == self.count;
                let until = if is_last {
                    sorted.len()
                } else {
                    sorted.partition_point(|&late| late < edge)
                };
                let inside = until - before;
                before = until;
                inside
            })
            .collect()
    }
}

fn histogram(parts: &Parts) -> Picture {
    let bins = Bins::over(&parts[0]);
    let counts: Vec<Vec<usize>> = parts.iter().map(|part| bins.count(part)).collect();
    let of = parts[0].len().max(1) as f64;
    let share = |count: usize| count as f64 / of;
    let height = Axis::linear("share of requests", Unit::Share);
    let percent = |count: usize| height.place(share(count)).unwrap_or(0.0);
    let steps = |counts: &[usize]| staircase(bins, LATENESS, counts, percent);
    let used = |place: usize| place == 0 || !parts[place].is_empty();
    let lines = (0..PARTS.len()).filter(|&place| used(place)).map(|place| {
        let (name, colour) = PARTS[place];
        line(name, colour, place == 0, steps(&counts[place]))
    });
    let most = counts[0].iter().map(|&count| percent(count)).fold(0.0, f64::max);
    Picture {
        lines: lines.collect(),
        axis: HeightAxis::Of(height),
        across: Across::Value(LATENESS),
        reach: LATENESS.bounds(bins.edge(0), bins.edge(bins.count)),
        bounds: from_zero(most),
        table: histogram_rows(bins, &counts),
        ..Picture::default()
    }
}

fn staircase(
    bins: Bins,
    axis: Axis,
    counts: &[usize],
    height: impl Fn(usize) -> f64,
) -> Vec<PlotPoint> {
    let at = |place: usize, y: f64| axis.place(bins.edge(place)).map(|x| PlotPoint::new(x, y));
    let mut points: Vec<PlotPoint> = at(0, 0.0).into_iter().collect();
    for (place, &count) in counts.iter().enumerate() {
        points.extend(at(place, height(count)));
        points.extend(at(place + 1, height(count)));
    }
    points.extend(at(bins.count, 0.0));
    points
}

fn histogram_rows(bins: Bins, counts: &[Vec<usize>]) -> Rows {
    let mut headings = vec![Heading::new("late from", Cell::Duration)];
    headings.push(Heading::new("to", Cell::Duration));
    headings.extend(PARTS.iter().map(|part| Heading::new(part.0, Cell::Number)));
    let mut rows = Rows::new(headings);
    for place in 0..bins.count {
        let mut row = vec![Some(bins.edge(place)), Some(bins.edge(place + 1))];
        row.extend(counts.iter().map(|counts| Some(counts[place] as f64)));
        rows.push(&row);
    }
    rows
}

fn percentiles(parts: &Parts) -> Picture {
    let height = HeightAxis::LogTime;
    let across = Axis::percentile("share of requests");
    let points = |sorted: &Vec<f64>| -> Vec<PlotPoint> {
        if sorted.is_empty() {
            return Vec::new();
        }
        // It ends with the latest request, a little beyond the last nine that so many can tell.
        let end = xy::last_percentile(sorted.len() as u64);
        (0..=POINTS)
            .filter_map(|step| {
                let x = end * f64::from(step) / f64::from(POINTS);
                let share = if step == POINTS { 1.0 } else { across.value(x) };
                let late = quantile::percentile(sorted, share)?;
                Some(PlotPoint::new(x, height.place(late)?))
            })
            .collect()
    };
    let used = |place: &usize| !parts[*place].is_empty();
    let lines: Vec<Line> = (0..PARTS.len())
        .filter(used)
        .map(|place| {
            let (name, colour) = PARTS[place];
            line(name, colour, false, points(&parts[place]))
        })
        .collect();
    let heights = || lines.iter().flat_map(|line| line.segments.iter().flatten());
    let low = heights().map(|point| point.y).fold(f64::INFINITY, f64::min);
    let high = heights().map(|point| point.y).fold(f64::NEG_INFINITY, f64::max);
    let bounds = if low > high { (3.0, 7.0) } else { (low - 0.12, (high + 0.12).max(low + 1.0)) };
    Picture {
        axis: height,
        across: Across::Value(across),
        reach: (0.0, xy::last_percentile(parts[0].len() as u64)),
        bounds,
        table: percentile_rows(parts),
        lines,
        ..Picture::default()
    }
}

fn percentile_rows(parts: &Parts) -> Rows {
    let mut headings = vec![Heading::new("share within", Cell::Percentile)];
    headings.extend(PARTS.iter().map(|part| Heading::new(part.0, Cell::Duration)));
    let mut rows = Rows::new(headings);
    for share in SHARES {
        let mut row = vec![Some(share)];
        row.extend(parts.iter().map(|part| quantile::percentile(part, share)));
        rows.push(&row);
    }
    rows
}

fn line(name: &'static str, colour: usize, filled: bool, points: Vec<PlotPoint>) -> Line {
    let segments = if points.is_empty() { Vec::new() } else { vec![points] };
    Line { name, colour, dashed: false, filled, segments, readout: Readout::None }
}

fn summary(parts: &Parts) -> String {
    let all = &parts[0];
    let at = |share: f64| quantile::percentile(all, share).map(quantity::measured);
    let (Some(half), Some(most), Some(last)) = (at(0.5), at(0.99), at(1.0)) else {
        return "No data.".to_owned();
    };
    format!(
        "{}: half left within {half} of their time, 99 % within {most}, all within {last}; {} in \
         bursts, {} in host stalls.",
        quantity::counted(all.len() as u64, "request"),
        quantity::count(parts[2].len() as u64),
        quantity::count(parts[3].len() as u64),
    )
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use onbeat_shared::{
        log::sample::{self, Sample},
        metrics::{ReportOptions, report},
    };

    use super::*;

    fn opened(bytes: &[u8]) -> OpenedRun {
        let run = Run::read(bytes).expect("a log");
        OpenedRun::new(PathBuf::from("sample.beat"), 0, run)
    }

    #[test]
    fn parts_have_the_reports_percentiles() {
        let opened = opened(&sample::log(4, 500));
        let shown = picture(&opened, &Selection::default(), Spread::Percentiles);
        let report = report(&opened.run, &ReportOptions::default());
        let parts = [
            report.schedule.lateness_us,
            report.notes.lone_lateness_us,
            report.schedule.burst_lateness_us,
            report.notes.lateness_in_stalls_us,
        ];
        let p99 = SHARES.iter().position(|&share| share == 0.99).expect("a row");
        for (column, part) in parts.into_iter().enumerate() {
            let expected = part.map(|part| part.p99 * 1e3);
            let found = shown.table.cells[column + 1][p99];
            let apart = found.zip(expected).map_or(0.0, |(found, expected)| found / expected - 1.0);
            assert_eq!(found.is_some(), expected.is_some(), "{column}");
            assert!(apart.abs() < 1e-6, "{column}");
        }
    }

    #[test]
    fn every_request_is_in_one_step() {
        let mut sample = sample::sample(4, 300);
        sample.send(99_000_000_000);
        let opened = opened(&sample.bytes());
        let parts = parts(&opened.run, &opened.chosen(&Selection::default()));
        let bins = Bins::over(&parts[0]);
        for part in &parts {
            assert_eq!(bins.count(part).iter().sum::<usize>(), part.len());
        }
        assert_eq!(parts[0].len(), parts[1].len() + parts[2].len());
        assert!(bins.edge(bins.count) > *parts[0].last().expect("some"));
        let least = parts[0].iter().find(|&&late| late > 0.0).expect("some");
        assert!(bins.edge(0) <= *least && bins.count < 80);
    }

    #[test]
    fn a_run_of_nothing_says_so() {
        let opened = opened(&Sample::new().bytes());
        for spread in [Spread::Histogram, Spread::Percentiles] {
            let shown = picture(&opened, &Selection::default(), spread);
            assert_eq!(shown.empty.as_deref(), Some("No data: no request left"));
        }
    }
}
