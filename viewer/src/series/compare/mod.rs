//! Two or more runs beside each other: distributions on the same axes, and what differs by how
//! much.
//!
//! The shown run is A, the others follow in the order of their tabs. The same selection (stretch of
//! time and filter) is taken of each, so that a warm-up is cut off everywhere alike. How sure a
//! difference is, is a bootstrap's answer (`onbeat_shared::metrics::bootstrap`): what has no
//! interval, such as a rate of which a run has one, shows none.

mod deltas;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use onbeat_shared::metrics::{Ranked, slo::Goals};

use super::axes::{Across, Axis, Unit};
use super::number::Number;
use super::picture::{Cell, Heading, HeightAxis, Line, Picture, Readout, Rows};
use super::xy;
use crate::fields::Field;
use crate::opened::OpenedRun;
use crate::quantity;
use crate::selection::Selection;
use crate::state::Scale;
use crate::theme::data_colour;

pub use deltas::{Delta, Deltas};

/// Names of the runs in plots and tables, the shown one first. So many can be compared at once.
pub const LETTERS: [&str; 6] = ["A", "B", "C", "D", "E", "F"];

/// Their places in the palette.
pub const COLOURS: [usize; 6] = [
    data_colour::BLUE,
    data_colour::ORANGE,
    data_colour::GREEN,
    data_colour::PURPLE,
    data_colour::VERMILLION,
    data_colour::GREY,
];

/// What the user chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompareChoices {
    /// Whose distributions are drawn.
    pub number: Number,
    /// How its values are spread over their axis.
    pub scale: Scale,
    /// Place among the others of the run that the shown one is held against.
    pub baseline: usize,
}

impl Default for CompareChoices {
    fn default() -> Self {
        Self { number: Number::Of(Field::Ttft), scale: Scale::Log, baseline: 0 }
    }
}

/// Another run. Two are equal when they are the same run in memory.
#[derive(Clone, Debug)]
pub struct Peer(pub Arc<OpenedRun>);

impl PartialEq for Peer {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Peer {}

impl Hash for Peer {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

/// What can be asked about the shown run and others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    /// How a number is spread in each.
    Curves {
        /// Which number.
        number: Number,
        /// On which scale.
        scale: Scale,
        /// Of which requests of each.
        selection: Selection,
        /// The others.
        peers: Vec<Peer>,
    },
    /// What differs by how much.
    Deltas {
        /// Of which requests of both.
        selection: Selection,
        /// Goals of goodput.
        goals: Goals,
        /// The run that the shown one is held against.
        baseline: Peer,
    },
}

/// Where an answer is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The plots; an older answer about another number is no stand-in.
    Curves(Number, Scale),
    /// The table.
    Deltas,
}

/// An answer.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Distributions.
    Curves(Box<Curves>),
    /// Differences.
    Deltas(Deltas),
}

/// Distributions of one number in each run, on the same axes.
#[derive(Clone, Debug)]
pub struct Curves {
    /// The share of values at most each value.
    pub cdf: Picture,
    /// The value of every percentile.
    pub percentiles: Picture,
    /// How many values each run has.
    pub counts: Vec<u64>,
}

impl Ask {
    /// Where the answer is shown.
    #[must_use]
    pub const fn place(&self) -> Place {
        match self {
            Self::Curves { number, scale, .. } => Place::Curves(*number, *scale),
            Self::Deltas { .. } => Place::Deltas,
        }
    }

    /// Works the answer out.
    #[must_use]
    pub fn answer(&self, opened: &OpenedRun) -> Answer {
        match self {
            Self::Curves { number, scale, selection, peers } => {
                let runs = std::iter::once(opened).chain(peers.iter().map(|peer| &*peer.0));
                let ranked = runs.take(LETTERS.len()).map(|run| values(run, *number, selection));
                Answer::Curves(Box::new(Curves::of(*number, *scale, &ranked.collect::<Vec<_>>())))
            }
            Self::Deltas { selection, goals, baseline } => {
                Answer::Deltas(Deltas::of(&baseline.0, opened, selection, goals))
            }
        }
    }
}

/// The values of a number over a selection.
fn values(opened: &OpenedRun, number: Number, selection: &Selection) -> Arc<Ranked> {
    if selection.is_everything() {
        return opened.numbers.of_whole(opened, number);
    }
    Arc::new(number.ranked(opened, &opened.chosen(selection)))
}

/// Percentiles in the table.
const SHARES: [f64; 11] = [0.0, 0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 1.0];

impl Curves {
    fn of(number: Number, scale: Scale, runs: &[Arc<Ranked>]) -> Self {
        let largest = runs.iter().filter_map(|ranked| ranked.max()).fold(0.0, f64::max);
        let axis = number.axis(scale, largest);
        let range = runs
            .iter()
            .filter_map(|ranked| xy::placeable(ranked, axis))
            .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let (least, most) = range.unwrap_or((f64::INFINITY, f64::NEG_INFINITY));
        let empty = runs
            .iter()
            .all(|ranked| ranked.is_empty())
            .then(|| "No data: no request of these runs has this number".to_owned());
        let summary = summary(number, runs);
        let longest = runs.iter().map(|ranked| ranked.count()).max().unwrap_or(0);
        let cdf = Picture {
            lines: lines(runs, |ranked| vec![xy::cdf(ranked, axis)]),
            axis: HeightAxis::Of(Axis::linear("Share", Unit::Share)),
            bounds: (0.0, 104.0),
            across: Across::Value(axis),
            reach: axis.bounds(least, most),
            table: cdf_rows(number, axis, range, runs),
            summary: summary.clone(),
            empty: empty.clone(),
            ..Picture::default()
        };
        let percentiles = Picture {
            lines: lines(runs, |ranked| xy::percentile_line(ranked, |value| axis.place(value))),
            axis: HeightAxis::Of(axis),
            bounds: axis.bounds(least, most),
            across: Across::Value(Axis::percentile("Share with at most this value")),
            reach: (0.0, xy::last_percentile(longest).max(1.3)),
            table: percentile_rows(number, runs),
            note: "each line ends with its largest".to_owned(),
            summary,
            empty,
            ..Picture::default()
        };
        Self { cdf, percentiles, counts: runs.iter().map(|ranked| ranked.count()).collect() }
    }
}

fn lines(
    runs: &[Arc<Ranked>],
    draw: impl Fn(&Ranked) -> Vec<Vec<egui_plot::PlotPoint>>,
) -> Vec<Line> {
    let places = LETTERS.iter().zip(COLOURS).zip(runs);
    let line = |((name, colour), ranked): ((&&'static str, usize), &Arc<Ranked>)| Line {
        name,
        colour,
        dashed: false,
        filled: false,
        segments: draw(ranked),
        readout: Readout::None,
    };
    places.map(line).collect()
}

fn percentile_rows(number: Number, runs: &[Arc<Ranked>]) -> Rows {
    let mut columns = vec![Heading::new("percentile", Cell::Percentile)];
    columns.extend(LETTERS.iter().zip(runs).map(|(name, _)| Heading::new(*name, number.cell())));
    let mut rows = Rows::new(columns);
    for share in SHARES {
        let mut row = vec![Some(share)];
        row.extend(runs.iter().map(|ranked| ranked.percentile(share)));
        rows.push(&row);
    }
    rows
}

fn cdf_rows(number: Number, axis: Axis, range: Option<(f64, f64)>, runs: &[Arc<Ranked>]) -> Rows {
    let mut columns = vec![Heading::new("at most", number.cell())];
    columns.extend(LETTERS.iter().zip(runs).map(|(name, _)| Heading::new(*name, Cell::Share)));
    let mut rows = Rows::new(columns);
    let longest = runs.iter().map(|ranked| ranked.count()).max().unwrap_or(0);
    let edges = range.map(|range| xy::bins(axis, range, longest)).unwrap_or_default();
    for limit in edges.iter().skip(1).map(|&edge| axis.value(edge)) {
        let mut row = vec![Some(limit)];
        row.extend(runs.iter().map(|ranked| {
            (!ranked.is_empty()).then(|| ranked.up_to(limit) as f64 / ranked.count() as f64)
        }));
        rows.push(&row);
    }
    rows
}

fn summary(number: Number, runs: &[Arc<Ranked>]) -> String {
    let medians = LETTERS.iter().zip(runs).map(|(name, ranked)| {
        let median = ranked.percentile(0.5).map(|value| number.words(value));
        format!("{name} {}", median.as_deref().unwrap_or(quantity::NO_DATA))
    });
    format!("Median {}: {}.", number.name().to_lowercase(), medians.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use onbeat_shared::{log::sample, run::Run};

    use super::*;

    pub(super) fn opened(seed: u64, requests: u32) -> Arc<OpenedRun> {
        let run = Run::read(&sample::log(seed, requests)).expect("a readable log");
        Arc::new(OpenedRun::new(PathBuf::from("sample.beat"), 0, run))
    }

    #[test]
    fn every_run_has_a_line_and_a_column_and_they_agree() {
        let (shown, other) = (opened(1, 200), opened(2, 100));
        let ask = Ask::Curves {
            number: Number::Of(Field::Ttft),
            scale: Scale::Log,
            selection: Selection::default(),
            peers: vec![Peer(Arc::clone(&other))],
        };
        let Answer::Curves(curves) = ask.answer(&shown) else { panic!("curves were asked for") };
        let names: Vec<_> = curves.cdf.lines.iter().map(|line| line.name).collect();
        assert_eq!(names, ["A", "B"]);
        let median = |run: &OpenedRun| run.report().latency.ttft_ms.as_ref().map(|of| of.p50 * 1e6);
        let table = &curves.percentiles.table;
        let half = SHARES.iter().position(|&share| share == 0.5).expect("the median");
        for (column, run) in [(1, &shown), (2, &other)] {
            let found = table.cells[column][half].expect("a median");
            assert!((found - median(run).expect("a median")).abs() < 1.0);
        }
        let last = |column: usize| curves.cdf.table.cells[column].last().copied().flatten();
        assert_eq!((last(1), last(2)), (Some(1.0), Some(1.0)));
        assert!(curves.cdf.summary.starts_with("Median time to first token: A "));
    }

    #[test]
    fn more_runs_than_letters_are_left_out() {
        let shown = opened(1, 20);
        let peers = (0..8).map(|seed| Peer(opened(seed, 20))).collect();
        let (number, scale) = (Number::Of(Field::E2e), Scale::Linear);
        let ask = Ask::Curves { number, scale, selection: Selection::default(), peers };
        let Answer::Curves(curves) = ask.answer(&shown) else { panic!("curves were asked for") };
        assert_eq!(curves.counts.len(), LETTERS.len());
    }

    #[test]
    fn a_selection_without_requests_says_so() {
        let shown = opened(1, 50);
        let filter = crate::filter::Filter::parse("turn == 99").expect("a filter");
        let ask = Ask::Curves {
            number: Number::Of(Field::Ttft),
            scale: Scale::Log,
            selection: Selection { range: None, filter: Some(Arc::new(filter)) },
            peers: vec![Peer(opened(2, 50))],
        };
        let Answer::Curves(curves) = ask.answer(&shown) else { panic!("curves were asked for") };
        assert!(curves.cdf.empty.is_some() && curves.percentiles.empty.is_some());
    }
}
