//! How one number is spread over the selected requests: percentiles, cumulative share, histogram.
//!
//! All three are of the same values, and of the whole run's beside them where a selection is only a
//! part of it. Requests without the number are counted and said, never drawn as zero.

use egui_plot::PlotPoint;
use onbeat_shared::metrics::Ranked;

use super::axes::{Across, Axis, AxisScale, Unit};
use super::number::Number;
use super::picture::{Cell, Heading, HeightAxis, Line, Picture, Readout, Rows};
use super::xy::{self, Histogram};
use crate::fields::Field;
use crate::opened::OpenedRun;
use crate::quantity;
use crate::selection::Selection;
use crate::state::Scale;
use crate::theme::data_colour;

/// What the user chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DistributionChoices {
    /// Which number.
    pub number: Number,
    /// How its values are spread over their axis.
    pub scale: Scale,
    /// Whether a part of the run is shown against all of it.
    pub against_whole: bool,
}

impl Default for DistributionChoices {
    fn default() -> Self {
        Self { number: Number::Of(Field::Ttft), scale: Scale::Log, against_whole: true }
    }
}

/// What can be asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ask {
    /// Which number.
    pub number: Number,
    /// On which scale.
    pub scale: Scale,
    /// Of which requests.
    pub selection: Selection,
    /// Whether with the whole run beside it.
    pub against_whole: bool,
}

/// Where the answer is shown: an older answer about another number is no stand-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    number: Number,
    scale: Scale,
}

impl Ask {
    /// Where the answer is shown.
    #[must_use]
    pub const fn place(&self) -> Place {
        Place { number: self.number, scale: self.scale }
    }
}

/// The answer.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// The value of every percentile.
    pub percentiles: Picture,
    /// The share of values at most each value.
    pub cdf: Picture,
    /// How many values lie where.
    pub histogram: Picture,
    /// Named figures of the selection and, if asked for, of the whole run.
    pub figures: Vec<Figure>,
    /// Whether the whole run stands beside the selection.
    pub has_whole: bool,
    /// Percentiles that are lines in the other plots: name, value, place in the palette.
    pub marks: Vec<(&'static str, f64, usize)>,
    /// How many requests have the number and why others have not, in sentences.
    pub words: Vec<String>,
}

/// A named figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its name, such as `p99`.
    pub name: &'static str,
    /// What it is of the selection.
    pub chosen: Option<String>,
    /// What it is of the whole run.
    pub whole: Option<String>,
}

/// Percentiles in tables.
const SHARES: [(&str, f64); 13] = [
    ("p1", 0.01),
    ("p5", 0.05),
    ("p10", 0.10),
    ("p25", 0.25),
    ("p50", 0.50),
    ("p75", 0.75),
    ("p90", 0.90),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p99.5", 0.995),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
    ("p99.999", 0.999_99),
];

/// Percentiles that are lines in the plots.
const MARKS: [(&str, f64, usize); 3] = [
    ("p50", 0.50, data_colour::BLUE),
    ("p95", 0.95, data_colour::ORANGE),
    ("p99", 0.99, data_colour::VERMILLION),
];

/// The values that are drawn: of the selection, and of the whole run where that is more.
struct Values<'a> {
    chosen: &'a Ranked,
    whole: Option<&'a Ranked>,
    number: Number,
    axis: Axis,
}

/// Answers.
#[must_use]
pub fn answer(opened: &OpenedRun, ask: &Ask) -> Distribution {
    let number = ask.number;
    let everything = ask.selection.is_everything();
    let requests = opened.chosen(&ask.selection);
    let whole = (everything || ask.against_whole).then(|| opened.numbers.of_whole(opened, number));
    let of_selection = (!everything).then(|| number.ranked(opened, &requests));
    let none = Ranked::default();
    let (chosen, whole) = match (&of_selection, whole.as_deref()) {
        (Some(chosen), whole) => (chosen, whole),
        (None, whole) => (whole.unwrap_or(&none), None),
    };
    let most = [Some(chosen), whole].into_iter().flatten().filter_map(Ranked::max);
    let axis = number.axis(ask.scale, most.fold(0.0, f64::max));
    let values = Values { chosen, whole, number, axis };
    let coverage = Coverage::of(opened, number, &requests, chosen.count());
    let empty = chosen.is_empty().then(|| coverage.nothing(number));
    let pictures = [values.percentiles(), values.cdf(), values.histogram()];
    let [percentiles, cdf, histogram] =
        pictures.map(|picture| Picture { empty: empty.clone(), ..picture });
    Distribution {
        percentiles,
        cdf,
        histogram,
        figures: values.figures(),
        has_whole: whole.is_some(),
        marks: MARKS
            .iter()
            .filter_map(|&(name, share, colour)| Some((name, chosen.percentile(share)?, colour)))
            .collect(),
        words: coverage.words(number, &values),
    }
}

impl Values<'_> {
    /// Each distribution with its name and whether it is the main one.
    fn each(&self) -> impl Iterator<Item = (&Ranked, &'static str, bool)> {
        let main = match self.whole {
            Some(_) => "selection",
            None if self.number == Number::ChunkGap => "all gaps",
            None => "all requests",
        };
        let whole = self.whole.map(|whole| (whole, "whole run", false));
        // The main line lies over the other.
        whole.into_iter().chain([(self.chosen, main, true)])
    }

    /// Smallest and largest value that have a place.
    fn range(&self) -> Option<(f64, f64)> {
        self.each()
            .filter_map(|(ranked, _, _)| xy::placeable(ranked, self.axis))
            .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    fn bounds(&self) -> (f64, f64) {
        let (least, most) = self.range().unwrap_or((f64::INFINITY, f64::NEG_INFINITY));
        self.axis.bounds(least, most)
    }

    fn percentiles(&self) -> Picture {
        let longest = self.each().map(|(ranked, _, _)| ranked.count()).max().unwrap_or(0);
        let lines = self.each().map(|(ranked, name, main)| {
            line(name, main, xy::percentile_line(ranked, |value| self.axis.place(value)))
        });
        Picture {
            lines: lines.collect(),
            axis: HeightAxis::Of(self.axis),
            bounds: self.bounds(),
            across: Across::Value(Axis::percentile(match self.number {
                Number::ChunkGap => "Share of gaps at most this long",
                _ => "Share of requests with at most this value",
            })),
            reach: (0.0, xy::last_percentile(longest).max(1.3)),
            table: self.percentile_rows(),
            note: "ends with the largest".to_owned(),
            summary: self.summary(),
            ..Picture::default()
        }
    }

    fn cdf(&self) -> Picture {
        let lines = self
            .each()
            .map(|(ranked, name, main)| line(name, main, vec![xy::cdf(ranked, self.axis)]));
        Picture {
            lines: lines.collect(),
            axis: HeightAxis::Of(Axis::linear("Share", Unit::Share)),
            bounds: (0.0, 104.0),
            across: Across::Value(self.axis),
            reach: self.bounds(),
            table: self.cdf_rows(),
            note: self.without_place(),
            summary: self.summary(),
            ..Picture::default()
        }
    }

    fn edges(&self) -> Vec<f64> {
        self.range().map_or_else(Vec::new, |range| xy::bins(self.axis, range, self.chosen.count()))
    }

    fn histogram(&self) -> Picture {
        let edges = self.edges();
        let of = |ranked: &Ranked| Histogram::of(ranked, self.axis, edges.clone());
        let lines = self.each().map(|(ranked, name, main)| Line {
            filled: main,
            ..line(name, main, vec![of(ranked).outline(ranked.count())])
        });
        let highest = self.each().map(|(ranked, _, _)| of(ranked).highest(ranked.count()));
        let highest = highest.fold(0.0, f64::max);
        Picture {
            lines: lines.collect(),
            axis: HeightAxis::Of(Axis::linear("Share", Unit::Share)),
            bounds: super::from_zero(highest),
            across: Across::Value(self.axis),
            reach: self.around(&edges),
            table: self.histogram_rows(&edges),
            note: self.bin_note(&edges),
            summary: self.summary(),
            ..Picture::default()
        }
    }

    /// Bounds that hold the outermost bins.
    fn around(&self, edges: &[f64]) -> (f64, f64) {
        let (low, high) = self.bounds();
        let first = edges.first().copied().unwrap_or(low);
        (low.min(first), high.max(edges.last().copied().unwrap_or(high)))
    }

    fn bin_note(&self, edges: &[f64]) -> String {
        let width = match edges {
            [first, second, ..] => second - first,
            _ => return String::new(),
        };
        match self.axis.scale {
            AxisScale::Log10 => {
                let bins = (1.0 / width).round();
                let plural = if bins > 1.0 { "s" } else { "" };
                format!("{} bin{plural} to a decade", quantity::number(bins))
            }
            AxisScale::Linear | AxisScale::Percentile => {
                format!("bins of {}", self.axis.words(self.axis.value(width)))
            }
        }
    }

    /// What is said of values that have no place on the axis.
    fn without_place(&self) -> String {
        let without = match self.axis.scale {
            AxisScale::Log10 => self.chosen.up_to(0.0),
            AxisScale::Linear | AxisScale::Percentile => 0,
        };
        if without == 0 {
            return String::new();
        }
        format!("{} at zero or below, left of all", quantity::count(without))
    }

    /// Columns of the selection, then the same of the whole run under their other names.
    fn columns(&self, first: &[Heading], kinds: &[(&str, &str, Cell)]) -> Vec<Heading> {
        let mut columns = first.to_vec();
        columns.extend(kinds.iter().map(|&(name, _, kind)| Heading::new(name, kind)));
        if self.whole.is_some() {
            columns.extend(kinds.iter().map(|&(_, whole, kind)| Heading::new(whole, kind)));
        }
        columns
    }

    fn percentile_rows(&self) -> Rows {
        let cell = self.number.cell();
        let first = [Heading::new("percentile", Cell::Percentile)];
        let mut rows = Rows::new(self.columns(&first, &[(self.number.name(), "whole run", cell)]));
        let shares = std::iter::once(0.0).chain(SHARES.map(|(_, share)| share)).chain([1.0]);
        for share in shares {
            let mut row = vec![Some(share), self.chosen.percentile(share)];
            row.extend(self.whole.map(|whole| whole.percentile(share)));
            rows.push(&row);
        }
        rows
    }

    fn cdf_rows(&self) -> Rows {
        let first = [Heading::new("at most", self.number.cell())];
        let kinds = [("values", "run", Cell::Number), ("share", "run share", Cell::Share)];
        let mut rows = Rows::new(self.columns(&first, &kinds));
        for &edge in self.edges().iter().skip(1) {
            let limit = self.axis.value(edge);
            let mut row = vec![Some(limit)];
            for ranked in [Some(self.chosen), self.whole].into_iter().flatten() {
                let count = ranked.up_to(limit) as f64;
                row.extend([Some(count), share(count, ranked.count())]);
            }
            rows.push(&row);
        }
        rows
    }

    fn histogram_rows(&self, edges: &[f64]) -> Rows {
        let cell = self.number.cell();
        let first = [Heading::new("from", cell), Heading::new("to", cell)];
        let kinds = [("values", "run", Cell::Number), ("share", "run share", Cell::Share)];
        let mut rows = Rows::new(self.columns(&first, &kinds));
        let all: Vec<(Histogram, u64)> = [Some(self.chosen), self.whole]
            .into_iter()
            .flatten()
            .map(|ranked| (Histogram::of(ranked, self.axis, edges.to_vec()), ranked.count()))
            .collect();
        for bin in 0..edges.len().saturating_sub(1) {
            let edge = |place: usize| Some(self.axis.value(edges[place]));
            let mut row = vec![edge(bin), edge(bin + 1)];
            for (histogram, total) in &all {
                let count = histogram.counts.get(bin).copied().unwrap_or(0) as f64;
                row.extend([Some(count), share(count, *total)]);
            }
            rows.push(&row);
        }
        rows
    }

    fn figures(&self) -> Vec<Figure> {
        let words = |value: Option<f64>| value.map(|value| self.number.words(value));
        let of = |name, read: &dyn Fn(&Ranked) -> Option<String>| Figure {
            name,
            chosen: read(self.chosen),
            whole: self.whole.and_then(read),
        };
        let mut figures = vec![
            of("count", &|ranked| Some(quantity::count(ranked.count()))),
            of("mean", &|ranked| words(ranked.mean())),
            of("min", &|ranked| words(ranked.min())),
        ];
        // A percentile beyond what so many values can tell is the largest over and over.
        let tells = |share: f64| (1.0 - share) * self.chosen.count() as f64 >= 0.999;
        for (name, share) in SHARES.into_iter().filter(|&(_, share)| tells(share)) {
            figures.push(of(name, &|ranked| words(ranked.percentile(share))));
        }
        figures.push(of("max", &|ranked| words(ranked.max())));
        figures
    }

    fn summary(&self) -> String {
        let words =
            |share: f64| self.chosen.percentile(share).map(|value| self.number.words(value));
        match [words(0.5), words(0.95), words(0.99), words(1.0)] {
            [Some(median), Some(p95), Some(p99), Some(most)] => format!(
                "{} of {}: median {median}, p95 {p95}, p99 {p99}, at most {most}.",
                self.number.name(),
                quantity::counted(self.chosen.count(), self.noun())
            ),
            _ => format!("{}: no data.", self.number.name()),
        }
    }

    /// What the values are of.
    const fn noun(&self) -> &'static str {
        match self.number {
            Number::ChunkGap => "gap",
            _ => "request",
        }
    }
}

fn share(count: f64, of: u64) -> Option<f64> {
    (of > 0).then(|| count / of as f64)
}

fn line(name: &'static str, main: bool, segments: Vec<Vec<PlotPoint>>) -> Line {
    Line {
        name,
        colour: if main { data_colour::BLUE } else { data_colour::GREY },
        dashed: !main,
        filled: false,
        segments,
        readout: Readout::None,
    }
}

/// Which of the chosen requests have the number, and why others have not.
struct Coverage {
    chosen: u64,
    with: u64,
    /// Sent or not, they cannot have it: it is a number of successful requests.
    unsuccessful: u64,
    never_sent: u64,
    values: u64,
}

impl Coverage {
    fn of(opened: &OpenedRun, number: Number, requests: &[u32], values: u64) -> Self {
        let columns = &opened.run.requests;
        let mut found =
            Self { chosen: requests.len() as u64, with: 0, unsuccessful: 0, never_sent: 0, values };
        for i in requests.iter().map(|&i| i as usize) {
            let has = match number {
                Number::ChunkGap => columns.is_ok(i) && opened.run.chunks.count(i) > 1,
                _ => number.value(opened, i).is_some(),
            };
            if has {
                found.with += 1;
            } else if !columns.was_sent(i) {
                found.never_sent += 1;
            } else if !columns.is_ok(i) {
                found.unsuccessful += 1;
            }
        }
        found
    }

    /// Requests that might have the number and do not.
    const fn silent(&self) -> u64 {
        self.chosen - self.with - self.unsuccessful - self.never_sent
    }

    /// Why there is no value at all.
    fn nothing(&self, number: Number) -> String {
        if self.chosen == 0 {
            return "No request in this selection".to_owned();
        }
        if self.silent() > 0 {
            return match number {
                Number::Of(Field::Itl) => "No data: no answer has two tokens or more".to_owned(),
                Number::Of(Field::Cached | Field::CachedShare) => {
                    "No data: the server does not report cached tokens".to_owned()
                }
                Number::Of(Field::Reasoning) => {
                    "No data: the server does not report reasoning tokens".to_owned()
                }
                _ => "No data: no request of this selection has this number".to_owned(),
            };
        }
        if self.unsuccessful > 0 {
            return "No data: no request of this selection succeeded".to_owned();
        }
        "No data: no request of this selection left".to_owned()
    }

    /// In sentences.
    fn words(&self, number: Number, values: &Values<'_>) -> Vec<String> {
        let requests = |count: u64| quantity::counted(count, "request");
        let mut words = vec![if number == Number::ChunkGap {
            let gaps = quantity::counted(self.values, "gap");
            format!("{gaps} in {} of {}", quantity::count(self.with), requests(self.chosen))
        } else {
            format!("{} of {} have it", quantity::count(self.with), requests(self.chosen))
        }];
        let reasons = [
            (self.unsuccessful, "did not succeed"),
            (self.never_sent, "never left"),
            (self.silent(), "succeeded without it"),
        ];
        for (count, reason) in reasons.into_iter().filter(|&(count, _)| count > 0) {
            words.push(format!("{} {reason}", quantity::count(count)));
        }
        if values.chosen.is_binned() {
            words.push("more than 10 million values: read to three digits".to_owned());
        }
        let without = values.without_place();
        if !without.is_empty() {
            words.push(without);
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use std::{path::PathBuf, sync::Arc};

    use onbeat_shared::{
        log::{
            Class,
            sample::{self, Sample},
        },
        metrics::quantile,
        run::Run,
    };

    use super::*;
    use crate::filter::Filter;

    fn opened(bytes: &[u8]) -> OpenedRun {
        let run = Run::read(bytes).expect("a readable log");
        OpenedRun::new(PathBuf::from("sample.beat"), 0, run)
    }

    fn ask(number: Number, filter: Option<&str>) -> Ask {
        let parsed = |text| Arc::new(Filter::parse(text).expect("a filter"));
        let selection = Selection { range: None, filter: filter.map(parsed) };
        Ask { number, scale: Scale::Log, selection, against_whole: true }
    }

    /// The values of a number, the slow and obvious way.
    fn values(opened: &OpenedRun, number: Number, selection: &Selection) -> Vec<f64> {
        let all = 0..opened.run.requests.len();
        let mut values: Vec<f64> = all
            .filter(|&i| selection.holds(&opened.run, i))
            .filter_map(|i| number.value(opened, i))
            .collect();
        values.sort_by(f64::total_cmp);
        values
    }

    #[test]
    fn figures_curves_and_bins_are_of_the_selected_requests() {
        let opened = opened(&sample::log(6, 500));
        for number in Number::single() {
            for filter in [None, Some("turn == 0"), Some("turn == 99")] {
                let ask = ask(number, filter);
                let found = answer(&opened, &ask);
                let values = values(&opened, number, &ask.selection);
                let count = quantity::count(values.len() as u64);
                assert_eq!(found.figures[0].chosen.as_ref(), Some(&count), "{number:?}");
                assert_eq!(found.has_whole, filter.is_some());
                assert_eq!(found.cdf.empty.is_some(), values.is_empty(), "{number:?} {filter:?}");
                let table = &found.percentiles.table;
                let last = table.cells[1].last().copied().flatten();
                assert_eq!(last, values.last().copied(), "{number:?}");
                for &(name, value, _) in &found.marks {
                    let share = MARKS.iter().find(|mark| mark.0 == name).expect("a mark").1;
                    assert_eq!(Some(value), quantile::percentile(&values, share), "{number:?}");
                }
                let counted: f64 = found.histogram.table.cells[2].iter().flatten().sum();
                let placed = values.iter().filter(|&&value| value > 0.0).count();
                let is_linear = number.axis(Scale::Log, 1.0).scale == AxisScale::Linear;
                let expected = if is_linear { values.len() } else { placed };
                assert_eq!(counted, expected as f64, "{number:?} {filter:?}");
            }
        }
    }

    #[test]
    fn requests_without_the_number_are_counted_and_said() {
        let mut sample = Sample::new();
        for (place, class) in [Class::Ok, Class::Ok, Class::Http5xx].into_iter().enumerate() {
            let start = i64::try_from(place).expect("small") * 1_000_000;
            let request = sample.send(start);
            if place == 0 {
                sample.chunks(request, &[start + 500, start + 900, start + 1_000]);
            }
            sample.done(request, start + 2_000, class);
        }
        sample.plan(9_000_000);
        let opened = opened(&sample.bytes());
        let found = answer(&opened, &ask(Number::Of(Field::Ttft), None));
        let words = ["1 of 4 requests have it", "1 did not succeed", "1 never left"];
        assert_eq!(found.words[..3], words);
        assert_eq!(found.words[3], "1 succeeded without it");
        let gaps = answer(&opened, &ask(Number::ChunkGap, None));
        assert_eq!(gaps.words[0], "2 gaps in 1 of 4 requests");
        assert!(gaps.percentiles.summary.contains("2 gaps"), "{}", gaps.percentiles.summary);
        let cached = answer(&opened, &ask(Number::Of(Field::CachedShare), None));
        let empty = cached.cdf.empty.expect("words");
        assert_eq!(empty, "No data: the server does not report cached tokens");
        assert!(cached.marks.is_empty() && cached.figures[1].chosen.is_none());
        let nobody = answer(&opened, &ask(Number::Of(Field::Ttft), Some("turn == 99")));
        assert_eq!(nobody.histogram.empty.as_deref(), Some("No request in this selection"));
        assert!(nobody.figures[0].whole.is_some(), "the whole run still stands beside it");
    }
}
