//! One number of every request against another, with the trend.
//!
//! Few requests are drawn one by one, many as a density picture in which every occupied cell shows.
//! The trend is made of medians and of 10th and 90th percentiles of neighbouring requests, so that
//! a few wild ones do not bend it. What a picture shows follows its view: zoomed in, the trend is
//! finer and density dissolves into single requests.

use egui_plot::PlotPoint;

use super::axes::{Across, Axis};
use super::number::Number;
use super::picture::{
    Band, Density, Heading, HeightAxis, Line, Look, MarkGroup, Marks, Picture, Readout, Rows,
};
use super::xy::{self, Spread};
use crate::fields::Field;
use crate::opened::OpenedRun;
use crate::quantity;
use crate::selection::Selection;
use crate::state::Scale;
use crate::theme::data_colour;
use crate::xy_view::Bounds;

/// What the user chose for both plots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapeChoices {
    /// What the plots show.
    pub plots: [Pair; 2],
}

/// Two numbers of a request against each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pair {
    /// What lies across.
    pub across: Number,
    /// What stands up.
    pub up: Number,
    /// How values are spread across.
    pub across_scale: Scale,
    /// How values are spread upwards.
    pub up_scale: Scale,
    /// Whether marks show the cached share.
    pub coloured: bool,
}

impl Default for ShapeChoices {
    fn default() -> Self {
        Self {
            plots: [
                Pair {
                    across: Number::Of(Field::Input),
                    up: Number::Of(Field::Ttft),
                    across_scale: Scale::Log,
                    up_scale: Scale::Log,
                    coloured: true,
                },
                Pair {
                    across: Number::InFlight,
                    up: Number::Of(Field::Itl),
                    across_scale: Scale::Linear,
                    up_scale: Scale::Linear,
                    coloured: false,
                },
            ],
        }
    }
}

/// What can be asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ask {
    /// Which of the panel's plots asks.
    pub plot: u8,
    /// Which numbers.
    pub pair: Pair,
    /// Of which requests.
    pub selection: Selection,
    /// The part that is looked at (places), `None` for everything.
    pub part: Option<Bounds>,
}

/// Where the answer is shown: an older answer about other numbers is no stand-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    plot: u8,
    pair: Pair,
}

impl Ask {
    /// Where the answer is shown.
    #[must_use]
    pub const fn place(&self) -> Place {
        Place { plot: self.plot, pair: self.pair }
    }
}

/// Above this many requests in view a density picture replaces the marks.
pub const POINTS_MAX: usize = 5_000;
/// Cells of the density picture over what is shown: about one per 3 × 3 points.
const CELLS: (usize, usize) = (180, 140);
/// How much beyond each edge is drawn, so that a drag finds something there.
const MARGIN: f64 = 0.25;
/// Groups of neighbouring requests that the trend is made of, at most.
const GROUPS: usize = 16;
/// Requests in such a group, at least.
const GROUP_REQUESTS: usize = 20;

/// Steps of the cached share: names, the same where they stand first, and what each begins at.
const STEPS: [(&str, &str, f64); 4] = [
    ("0–25 %", "cached 0–25 %", 0.0),
    ("25–50 %", "cached 25–50 %", 0.25),
    ("50–75 %", "cached 50–75 %", 0.50),
    ("75–100 %", "cached 75–100 %", 0.75),
];
/// The name of marks whose request does not say how much was cached.
const UNKNOWN: &str = "not reported";
/// The same where it stands first.
const ALL_UNKNOWN: &str = "cached share not reported";

/// One request.
#[derive(Clone, Copy)]
struct Sample {
    request: u32,
    /// Its values.
    values: (f64, f64),
    /// Where it stands.
    place: PlotPoint,
}

/// The requests of a selection that have both numbers, and those that lack a place on the axes.
struct Samples {
    all: Vec<Sample>,
    across: Axis,
    up: Axis,
    whole: Bounds,
    chosen: usize,
    unplaced: usize,
}

/// The plot.
#[must_use]
pub fn picture(opened: &OpenedRun, ask: &Ask) -> Picture {
    let samples = Samples::of(opened, ask);
    let part = ask.part.unwrap_or(samples.whole);
    let shown: Vec<Sample> = samples.within(&part);
    let mut pairs: Vec<(f64, f64)> = shown.iter().map(|sample| sample.values).collect();
    let trend = xy::trend(&mut pairs, GROUPS, GROUP_REQUESTS);
    let (line, band) = samples.trend_line(&trend);
    let marks = samples.marks(opened, ask, &part, shown.len());
    let note = samples.note(&marks, shown.len(), band.is_some());
    Picture {
        lines: line.into_iter().collect(),
        bands: band.into_iter().collect(),
        axis: HeightAxis::Of(samples.up),
        bounds: samples.whole.ys,
        across: Across::Value(samples.across),
        reach: samples.whole.xs,
        table: rows(&trend, ask.pair),
        note,
        summary: samples.summary(ask.pair, &trend),
        empty: samples.empty(ask.pair),
        marks,
        ..Picture::default()
    }
}

impl Samples {
    fn of(opened: &OpenedRun, ask: &Ask) -> Self {
        let chosen = opened.chosen(&ask.selection);
        let Pair { across, up, across_scale, up_scale, .. } = ask.pair;
        let both: Vec<(u32, (f64, f64))> = chosen
            .iter()
            .filter_map(|&request| {
                let i = request as usize;
                Some((request, (across.value(opened, i)?, up.value(opened, i)?)))
            })
            .collect();
        let most = |of: fn(&(f64, f64)) -> f64| {
            both.iter().map(|(_, values)| of(values)).fold(0.0, f64::max)
        };
        let across = across.axis(across_scale, most(|values| values.0));
        let up = up.axis(up_scale, most(|values| values.1));
        let placed = |&(request, values): &(u32, (f64, f64))| {
            let place = PlotPoint::new(across.place(values.0)?, up.place(values.1)?);
            Some(Sample { request, values, place })
        };
        let mut all: Vec<Sample> = both.iter().filter_map(placed).collect();
        all.sort_unstable_by(|a, b| a.place.x.total_cmp(&b.place.x));
        let bounds = |axis: Axis, of: fn(&(f64, f64)) -> f64| {
            let values = all.iter().map(|sample| of(&sample.values));
            let none = (f64::INFINITY, f64::NEG_INFINITY);
            let (least, most) =
                values.fold(none, |found, value| (found.0.min(value), found.1.max(value)));
            axis.close_bounds(least, most)
        };
        let whole =
            Bounds { xs: bounds(across, |values| values.0), ys: bounds(up, |values| values.1) };
        let unplaced = both.len() - all.len();
        Self { all, across, up, whole, chosen: chosen.len(), unplaced }
    }

    fn within(&self, part: &Bounds) -> Vec<Sample> {
        let inside = |sample: &&Sample| part.contains(sample.place.x, sample.place.y);
        self.all.iter().filter(inside).copied().collect()
    }

    fn marks(&self, opened: &OpenedRun, ask: &Ask, part: &Bounds, shown: usize) -> Marks {
        let wide = part.widened(MARGIN, &self.whole);
        if shown > POINTS_MAX {
            return Marks::Density(self.density(part, &wide));
        }
        let mut drawn = self.within(&wide);
        if drawn.len() > 2 * POINTS_MAX {
            drawn = self.within(part);
        }
        if !ask.pair.coloured {
            let (points, requests) =
                drawn.iter().map(|sample| (sample.place, sample.request)).unzip();
            return Marks::Points { points, requests };
        }
        let share =
            |sample: &Sample| Field::CachedShare.number(&opened.run, sample.request as usize);
        let mut groups: Vec<MarkGroup> = STEPS
            .iter()
            .enumerate()
            .map(|(step, &(name, _, _))| group(name, Look::Step(step)))
            .collect();
        groups.push(group(UNKNOWN, Look::Unknown));
        for sample in &drawn {
            let step = share(sample).map_or(STEPS.len(), step_of);
            groups[step].points.push(sample.place);
            groups[step].requests.push(sample.request);
        }
        groups.retain(|group| !group.points.is_empty());
        // The first says what the shares are of.
        if let Some(first) = groups.first_mut() {
            first.name = match first.look {
                Look::Step(step) => STEPS[step].1,
                _ => ALL_UNKNOWN,
            };
        }
        Marks::Groups(groups)
    }

    fn density(&self, part: &Bounds, wide: &Bounds) -> Density {
        // As fine beyond the edges as between them.
        let cells = |most: usize, wide: (f64, f64), part: (f64, f64)| {
            let ratio = (wide.1 - wide.0) / (part.1 - part.0).max(f64::MIN_POSITIVE);
            if ratio > 1.0 { 2 * most } else { most }
        };
        let columns = cells(CELLS.0, wide.xs, part.xs);
        let rows = cells(CELLS.1, wide.ys, part.ys);
        let inside = |sample: &&Sample| wide.contains(sample.place.x, sample.place.y);
        let places = self.all.iter().filter(inside).map(|sample| sample.place);
        Density::in_cells(places, wide.xs, wide.ys, (columns, rows))
    }

    /// The medians as a line and what lies between the 10th and the 90th percentiles.
    fn trend_line(&self, trend: &[Spread]) -> (Option<Line>, Option<Band>) {
        let placed: Vec<[f64; 4]> = trend
            .iter()
            .filter_map(|group| {
                let up = |value| self.up.place(value);
                Some([
                    self.across.place(group.middle)?,
                    up(group.p10)?,
                    up(group.p50)?,
                    up(group.p90)?,
                ])
            })
            .collect();
        if placed.len() < 2 {
            return (None, None);
        }
        let column = |place: usize| placed.iter().map(|row| row[place]).collect::<Vec<f64>>();
        let points = placed.iter().map(|row| PlotPoint::new(row[0], row[2])).collect();
        let line = Line {
            name: "median",
            colour: data_colour::VERMILLION,
            dashed: false,
            filled: false,
            segments: vec![points],
            readout: Readout::None,
        };
        let band = Band {
            name: "p10 to p90",
            colour: data_colour::VERMILLION,
            strength: 0.16,
            xs: column(0),
            low: column(1),
            high: column(3),
        };
        (Some(line), Some(band))
    }

    fn note(&self, marks: &Marks, shown: usize, band: bool) -> String {
        let requests = quantity::counted(shown as u64, "request");
        let how = match marks {
            Marks::Density(_) => ", darker where more are",
            _ => "",
        };
        let unplaced = match self.unplaced as u64 {
            0 => String::new(),
            some => format!(", {} at zero not shown", quantity::count(some)),
        };
        let band = if band { ", band p10 to p90" } else { "" };
        format!("{requests}{how}{unplaced}{band}")
    }

    fn summary(&self, pair: Pair, trend: &[Spread]) -> String {
        let requests = quantity::counted(self.all.len() as u64, "request");
        let (Some(first), Some(last)) = (trend.first(), trend.last()) else {
            return "No data.".to_owned();
        };
        let (across, up) = (|value| pair.across.words(value), |value| pair.up.words(value));
        format!(
            "{requests}. Median of {} {} near {} of {} and {} near {}.",
            pair.up.name(),
            up(first.p50),
            across(first.middle),
            pair.across.name(),
            up(last.p50),
            across(last.middle)
        )
    }

    fn empty(&self, pair: Pair) -> Option<String> {
        if !self.all.is_empty() {
            return None;
        }
        Some(if self.chosen == 0 {
            "No request in this selection".to_owned()
        } else if self.unplaced > 0 {
            "No data above zero: a logarithmic axis has no place for it".to_owned()
        } else {
            format!(
                "No data: no request of this selection has both {} and {}",
                lower(pair.up.name()),
                lower(pair.across.name())
            )
        })
    }
}

/// A name within a sentence.
fn lower(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_lowercase().collect::<String>() + letters.as_str()
    })
}

const fn group(name: &'static str, look: Look) -> MarkGroup {
    MarkGroup { name, look, points: Vec::new(), requests: Vec::new() }
}

/// The step that a share of one belongs to; the last one includes everything.
fn step_of(share: f64) -> usize {
    STEPS.iter().rposition(|&(_, _, from)| share >= from).unwrap_or(0)
}

fn rows(trend: &[Spread], pair: Pair) -> Rows {
    let (across, up) = (pair.across.cell(), pair.up.cell());
    let name = pair.up.name();
    let mut rows = Rows::new(vec![
        Heading::new(format!("{} from", pair.across.name()), across),
        Heading::new("to", across),
        Heading::new("requests", super::picture::Cell::Number),
        Heading::new(format!("{name}: p10"), up),
        Heading::new("median", up),
        Heading::new("p90", up),
        Heading::new("max", up),
    ]);
    for group in trend {
        let Spread { from, to, count, p10, p50, p90, max, .. } = *group;
        rows.push(&[from, to, count as f64, p10, p50, p90, max].map(Some));
    }
    rows
}

#[cfg(test)]
mod tests {
    use std::{path::PathBuf, sync::Arc};

    use onbeat_shared::{
        log::{
            Class,
            sample::{self, Sample as Log},
        },
        run::Run,
    };

    use super::*;
    use crate::filter::Filter;

    fn opened(bytes: &[u8]) -> OpenedRun {
        let run = Run::read(bytes).expect("a readable log");
        OpenedRun::new(PathBuf::from("sample.beat"), 0, run)
    }

    fn ask(plot: u8) -> Ask {
        let pair = ShapeChoices::default().plots[usize::from(plot)];
        Ask { plot, pair, selection: Selection::default(), part: None }
    }

    /// Which requests are drawn.
    fn drawn(marks: &Marks) -> Vec<u32> {
        let mut drawn: Vec<u32> = match marks {
            Marks::Points { requests, .. } => requests.clone(),
            Marks::Groups(groups) => {
                groups.iter().flat_map(|group| group.requests.clone()).collect()
            }
            Marks::None | Marks::Density(_) => Vec::new(),
        };
        drawn.sort_unstable();
        drawn
    }

    #[test]
    fn every_request_with_both_numbers_has_one_mark_within_the_bounds() {
        let opened = opened(&sample::log(5, 400));
        for plot in [0, 1] {
            let ask = ask(plot);
            let picture = picture(&opened, &ask);
            let expected: Vec<u32> = (0..400)
                .filter(|&i| {
                    let has = |number: Number| number.value(&opened, i as usize).is_some();
                    has(ask.pair.across) && has(ask.pair.up)
                })
                .collect();
            assert!(!expected.is_empty());
            assert_eq!(drawn(&picture.marks), expected, "plot {plot}");
            let points: Vec<PlotPoint> = match &picture.marks {
                Marks::Points { points, .. } => points.clone(),
                Marks::Groups(groups) => {
                    groups.iter().flat_map(|group| group.points.clone()).collect()
                }
                Marks::None | Marks::Density(_) => panic!("few enough for points"),
            };
            let whole = Bounds { xs: picture.reach, ys: picture.bounds };
            assert!(points.iter().all(|point| whole.contains(point.x, point.y)), "plot {plot}");
            let counted: f64 = picture.table.cells[2].iter().flatten().sum();
            assert_eq!(counted, expected.len() as f64, "every request is in one row");
        }
    }

    #[test]
    fn a_filter_and_a_part_leave_out_what_lies_outside() {
        let opened = opened(&sample::log(5, 400));
        let mut ask = ask(0);
        let all = drawn(&picture(&opened, &ask).marks);
        ask.selection.filter = Some(Arc::new(Filter::parse("turn == 0").expect("a filter")));
        let some = picture(&opened, &ask);
        assert!(drawn(&some.marks).len() < all.len());
        ask.selection = Selection::default();
        let whole = picture(&opened, &ask);
        let middle = f64::midpoint(whole.reach.0, whole.reach.1);
        ask.part = Some(Bounds { xs: (middle, whole.reach.1), ys: whole.bounds });
        let part = picture(&opened, &ask);
        assert!(drawn(&part.marks).len() < all.len());
        assert_eq!((part.reach, part.bounds), (whole.reach, whole.bounds), "the whole stays");
        let first = part.table.cells[0][0].expect("a row").log10();
        assert!(first >= middle - 1e-9, "the trend is that of the part");
    }

    /// So many requests that they are drawn as density; one of them took very long.
    fn many(requests: u32) -> OpenedRun {
        let mut log = Log::new();
        for i in 0..i64::from(requests) {
            let request = log.send(i * 100_000);
            let ttft = if i == 77 { 9_000_000_000 } else { 4_000_000 + i % 1_000 };
            log.chunks(request, &[i * 100_000 + ttft, i * 100_000 + ttft + 30_000_000]);
            let input = u32::try_from(i % 5_000 + 1).expect("small");
            // A third does not say what was cached, and that is not a share of zero.
            let cached = (i % 3 != 0).then_some(input / 2);
            log.usage(request, i * 100_000 + ttft, [Some(input), Some(2), cached]);
            log.done(request, i * 100_000 + ttft + 30_000_000, Class::Ok);
        }
        opened(&log.bytes())
    }

    #[test]
    fn a_density_picture_loses_no_request_and_dissolves_into_points() {
        let requests = u32::try_from(POINTS_MAX).expect("small") + 2_000;
        let opened = many(requests);
        let mut ask = ask(0);
        let whole = picture(&opened, &ask);
        let Marks::Density(density) = &whole.marks else { panic!("too many for points") };
        assert_eq!(density.counts.iter().sum::<u32>(), requests);
        let top: u32 = density.counts[..density.columns * density.rows / 2].iter().sum();
        assert_eq!(top, 1, "the longest has a cell of its own");
        ask.part = Some(Bounds { xs: (3.4, 3.6), ys: whole.bounds });
        let part = picture(&opened, &ask);
        let Marks::Groups(groups) = &part.marks else { panic!("few enough for points") };
        let names: Vec<_> = groups.iter().map(|group| group.name).collect();
        assert_eq!(names, ["cached 25–50 %", "50–75 %", UNKNOWN], "odd inputs have less than half");
    }

    #[test]
    fn shares_fall_into_their_step() {
        for (share, step) in [(0.0, 0), (0.2499, 0), (0.25, 1), (0.5, 2), (0.99, 3), (1.0, 3)] {
            assert_eq!(step_of(share), step, "{share}");
        }
    }

    #[test]
    fn nothing_to_see_is_said() {
        let nothing = opened(&Log::new().bytes());
        let empty = picture(&nothing, &ask(0)).empty.expect("words");
        assert_eq!(empty, "No request in this selection");
        let mut log = Log::new();
        let request = log.send(0);
        log.done(request, 5, Class::Http5xx);
        let empty = picture(&opened(&log.bytes()), &ask(1)).empty.expect("words");
        assert!(empty.contains("time between tokens and requests in flight"), "{empty}");
    }
}
