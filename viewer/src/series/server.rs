//! What a server said of itself over time: its queue, and how its cache fared.
//!
//! Each value holds until the server was asked again; where an asking failed there is a gap, and
//! nothing is drawn in it. Of several servers each has a line of its own, up to three. Filters do
//! not matter here: the server knows nothing of them.

use std::sync::Arc;

use egui_plot::PlotPoint;
use onbeat_shared::{metrics::server::Quantity, run::Servers, units::RunNanos};

use super::picture::{
    Cell, Heading, HeightAxis, Line, Picture, Readout, Rows, Steps, seconds, staircase,
};
use super::{Answer, STEPS, from_zero, with_margin, within_run};
use crate::opened::OpenedRun;
use crate::quantity;
use crate::state::TimeRange;
use crate::theme::data_colour;

/// Servers that are drawn.
const SERVERS_MOST: usize = 3;
/// More values than this in a view are drawn as means of steps.
const VALUES_MOST: usize = 1_500;
/// A little room above a hundred per cent.
const SHARES: (f64, f64) = (0.0, 105.0);
/// Room below zero, as a share of the height: a line at zero must not look like none.
const BELOW_ZERO: f64 = 0.03;

/// A question about what servers said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ask {
    /// Which plot.
    pub plot: Plot,
    /// What it shows.
    pub view: TimeRange,
}

/// A plot of what servers said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plot {
    /// Requests that run and wait.
    Queue,
    /// How much of the cache is used, and what was found in it.
    Cache,
}

/// A value at an asking; none where it failed.
type Point = (RunNanos, Option<f64>);

impl Ask {
    /// Draws it.
    #[must_use]
    pub fn answer(&self, opened: &OpenedRun) -> Answer {
        Answer::Picture(Box::new(picture(opened, *self)))
    }
}

fn picture(opened: &OpenedRun, Ask { plot, view }: Ask) -> Picture {
    let Some(servers) = opened.run.servers.as_deref() else {
        let empty = Some("No server was asked: onbeat replay --scrape URL".to_owned());
        return Picture { empty, summary: "No data.".to_owned(), ..Picture::default() };
    };
    let wide = with_margin(opened, view);
    let curves = curves(servers, plot);
    let drawn = curves.iter().map(|(quantity, source, curve)| {
        let known = curve.iter().filter(|(time, _)| wide.contains(*time)).count();
        let (segments, readout) =
            if known > VALUES_MOST { means(view, wide, curve) } else { held(curve) };
        Line {
            name: name(*quantity, *source),
            colour: colour(*quantity, *source),
            dashed: *source > 0,
            filled: *quantity == Quantity::Waiting && *source == 0,
            segments,
            readout,
        }
    });
    let most = curves.iter().flat_map(|(_, _, curve)| in_view(view, curve)).fold(0.0, f64::max);
    let (axis, bounds) = match plot {
        Plot::Queue => (HeightAxis::Number { unit: "requests" }, from_zero(most)),
        Plot::Cache => (HeightAxis::Number { unit: "%" }, SHARES),
    };
    Picture {
        lines: drawn.collect(),
        axis,
        bounds: (-BELOW_ZERO * bounds.1, bounds.1),
        table: rows(within_run(opened, view), &curves),
        note: note(servers),
        summary: summary(view, &curves, axis),
        empty: curves.is_empty().then(|| "The server does not say".to_owned()),
        ..Picture::default()
    }
}

/// The curves of a plot, those that the servers tell; shares in per cent.
fn curves(servers: &Servers, plot: Plot) -> Vec<(Quantity, usize, Vec<Point>)> {
    let quantities = match plot {
        Plot::Queue => [Quantity::Running, Quantity::Waiting],
        Plot::Cache => [Quantity::CacheUsage, Quantity::HitRate],
    };
    let scale = if plot == Plot::Cache { 100.0 } else { 1.0 };
    let sources = 0..servers.sources.len().min(SERVERS_MOST);
    let all = sources.flat_map(|source| quantities.map(|quantity| (quantity, source)));
    all.filter_map(|(quantity, source)| {
        let curve = quantity.curve(servers, source);
        let curve: Vec<Point> =
            curve.into_iter().map(|(time, value)| (time, value.map(|it| it * scale))).collect();
        (!curve.is_empty()).then_some((quantity, source, curve))
    })
    .collect()
}

const fn name(quantity: Quantity, source: usize) -> &'static str {
    match (quantity, source) {
        (Quantity::Running, 0) => "running",
        (Quantity::Running, 1) => "running, 2nd server",
        (Quantity::Running, _) => "running, 3rd server",
        (Quantity::Waiting, 0) => "waiting",
        (Quantity::Waiting, 1) => "waiting, 2nd server",
        (Quantity::Waiting, _) => "waiting, 3rd server",
        (Quantity::CacheUsage, 0) => "used",
        (Quantity::CacheUsage, 1) => "used, 2nd server",
        (Quantity::CacheUsage, _) => "used, 3rd server",
        (Quantity::HitRate, 0) => "hit rate",
        (Quantity::HitRate, 1) => "hit rate, 2nd server",
        (Quantity::HitRate, _) => "hit rate, 3rd server",
    }
}

const fn colour(quantity: Quantity, source: usize) -> usize {
    match (quantity, source) {
        (Quantity::Running | Quantity::HitRate, 0) => data_colour::BLUE,
        (Quantity::Running | Quantity::HitRate, 1) => data_colour::GREEN,
        (Quantity::Running | Quantity::HitRate, _) => data_colour::PURPLE,
        (_, 0) => data_colour::ORANGE,
        (_, 1) => data_colour::VERMILLION,
        (_, _) => data_colour::GREY,
    }
}

fn note(servers: &Servers) -> String {
    match servers.sources.len() {
        0 | 1 => "as the server says".to_owned(),
        count if count <= SERVERS_MOST => format!("as {count} servers say"),
        count => format!("as the first {SERVERS_MOST} of {count} servers say"),
    }
}

/// Values of a view.
fn in_view(view: TimeRange, curve: &[Point]) -> impl Iterator<Item = f64> {
    curve.iter().filter(move |(time, _)| view.contains(*time)).filter_map(|&(_, value)| value)
}

/// Each value until the next asking.
fn held(curve: &[Point]) -> (Vec<Vec<PlotPoint>>, Readout) {
    let mut segments: Vec<Vec<PlotPoint>> = Vec::new();
    let mut unbroken: Vec<PlotPoint> = Vec::new();
    for (place, &(time, value)) in curve.iter().enumerate() {
        let Some(value) = value else {
            segments.extend(Some(std::mem::take(&mut unbroken)).filter(|it| !it.is_empty()));
            continue;
        };
        let until = curve.get(place + 1).map_or(time, |&(next, _)| next);
        unbroken.push(PlotPoint::new(seconds(time), value));
        unbroken.push(PlotPoint::new(seconds(until), value));
    }
    segments.extend(Some(unbroken).filter(|it| !it.is_empty()));
    (segments, Readout::Held(Arc::from(curve)))
}

/// Means of steps, where there are more values than pixels.
fn means(view: TimeRange, wide: TimeRange, curve: &[Point]) -> (Vec<Vec<PlotPoint>>, Readout) {
    let steps = Steps::of_width(wide, Steps::covering(view, 2 * STEPS).width);
    let mut sums = vec![(0_u32, 0.0); steps.count];
    for &(time, value) in curve {
        if let (Some(place), Some(value)) = (steps.place(time), value) {
            sums[place].0 += 1;
            sums[place].1 += value;
        }
    }
    let mean = |&(count, sum): &(u32, f64)| (count > 0).then(|| sum / f64::from(count));
    let values: Vec<Option<f64>> = sums.iter().map(mean).collect();
    let segments = staircase(steps, &values);
    let (start, width) = (steps.start, steps.width);
    (segments, Readout::Bins { start, width, values: Arc::from(values) })
}

/// What was said, one row for each asking of any server.
fn rows(view: TimeRange, curves: &[(Quantity, usize, Vec<Point>)]) -> Rows {
    let mut times: Vec<RunNanos> = curves
        .iter()
        .flat_map(|(_, _, curve)| curve.iter().map(|&(time, _)| time))
        .filter(|time| view.contains(*time))
        .collect();
    times.sort_unstable();
    times.dedup();
    let step = view.span() / i64::try_from(times.len().max(1)).unwrap_or(i64::MAX);
    let mut columns = vec![Heading::new("at", Cell::Instant(step.max(1) as f64))];
    columns.extend(curves.iter().map(|(quantity, source, _)| {
        let unit = match quantity {
            Quantity::Running | Quantity::Waiting => "requests",
            Quantity::CacheUsage | Quantity::HitRate => "%",
        };
        Heading::new(format!("{} ({unit})", name(*quantity, *source)), Cell::Number)
    }));
    let mut rows = Rows::new(columns);
    for time in times {
        let values = curves.iter().map(|(_, _, curve)| {
            let place = curve.binary_search_by_key(&time, |&(time, _)| time).ok()?;
            curve[place].1
        });
        let row: Vec<Option<f64>> = [Some(time.0 as f64)].into_iter().chain(values).collect();
        rows.push(&row);
    }
    rows
}

fn summary(view: TimeRange, curves: &[(Quantity, usize, Vec<Point>)], axis: HeightAxis) -> String {
    let span = view.span() as f64;
    let instant = |time: RunNanos| quantity::instant(time.0 as f64, span);
    let parts = curves.iter().map(|(quantity, source, curve)| {
        let most = in_view(view, curve).reduce(f64::max);
        let most = most.map_or_else(|| quantity::NO_DATA.to_owned(), |most| axis.words(most));
        format!("{} at most {most}", name(*quantity, *source))
    });
    let parts: Vec<String> = parts.collect();
    let words = if parts.is_empty() { "no data".to_owned() } else { parts.join(", ") };
    format!("From {} to {}: {words}.", instant(view.start), instant(view.end))
}

#[cfg(test)]
mod tests {
    use onbeat_shared::{log::sample, run::Run};

    use super::*;

    fn opened(log: &[u8]) -> OpenedRun {
        let run = Run::read(log).expect("a readable log");
        OpenedRun::new(std::path::PathBuf::from("sample.beat"), 0, run)
    }

    fn drawn(opened: &OpenedRun, plot: Plot) -> Picture {
        picture(opened, Ask { plot, view: opened.whole() })
    }

    #[test]
    fn a_failed_asking_is_a_gap_in_every_line_and_a_word_in_the_table() {
        let opened = opened(&sample::scraped(3).bytes());
        for plot in [Plot::Queue, Plot::Cache] {
            let found = drawn(&opened, plot);
            assert_eq!(found.lines.len(), 2, "{plot:?}");
            for line in &found.lines {
                assert_eq!(line.segments.len(), 2, "{}", line.name);
                assert_eq!(line.readout.at(RunNanos(4_800_000_000)), None, "{}", line.name);
                assert!(line.readout.at(RunNanos(3_500_000_000)).is_some(), "{}", line.name);
            }
            let gap = (0..found.table.len()).filter(|&row| found.table.cells[1][row].is_none());
            assert_eq!(gap.count(), 1, "{plot:?}");
        }
        let words = drawn(&opened, Plot::Queue).summary;
        assert!(words.contains("waiting at most"), "{words}");
    }

    #[test]
    fn many_values_are_means_and_a_gap_stays_one() {
        let curve: Vec<Point> = (0..6_000)
            .map(|at| (RunNanos(at * 1_000), (!(2_000..3_000).contains(&at)).then_some(2.0)))
            .collect();
        let view = TimeRange { start: RunNanos(0), end: RunNanos(6_000_000) };
        let (segments, readout) = means(view, view, &curve);
        assert_eq!(segments.len(), 2);
        assert_eq!(readout.at(RunNanos(2_500_000)), None);
        assert_eq!(readout.at(RunNanos(5_000_000)), Some(2.0));
    }

    #[test]
    fn a_run_that_was_not_scraped_has_a_word() {
        let opened = opened(&sample::log(3, 20));
        assert!(drawn(&opened, Plot::Queue).empty.expect("empty").contains("--scrape"));
    }
}
