//! Hit rate against the size of the cache, and the size that the server's own rate stands for.
//!
//! The curve comes from what the log says prompts have in common, in the order in which they left.
//! Where the log lacks that, what was worked out of the plan before the run stands in, if anything
//! was. All requests fill the cache; only the chosen ones are counted.

use egui_plot::PlotPoint;
use onbeat_shared::{
    log::CacheSize,
    metrics::{
        cache::Sums,
        capacity::{Capacity, Curve, NoCurve, capacity_at},
    },
};

use crate::opened::OpenedRun;
use crate::quantity;
use crate::selection::Selection;
use crate::series::axes::{Across, Axis, Unit};
use crate::series::picture::{Cell, Heading, HeightAxis, Line, Picture, Readout, Rows};
use crate::theme::data_colour;

/// A little room above a hundred per cent.
const BOUNDS: (f64, f64) = (0.0, 105.0);

/// The curve with what is said beside it.
#[derive(Clone, Debug, Default)]
pub struct CurveAnswer {
    /// The plot.
    pub picture: Picture,
    /// What the server says it had, in per cent.
    pub reported: Option<f64>,
    /// The size of a cache that would have had as much, in tokens.
    pub capacity: Option<f64>,
    /// What that means, in a sentence; empty where there is no curve.
    pub words: String,
}

/// Where a curve comes from.
enum Source {
    /// The requests as they left.
    Sent(Curve),
    /// The plan.
    Planned(Vec<CacheSize>),
}

/// The curve of the chosen requests.
#[must_use]
pub fn answer(opened: &OpenedRun, selection: &Selection) -> CurveAnswer {
    let run = &opened.run;
    let chosen = opened.chosen(selection);
    let mut sums = Sums::default();
    let sent = chosen.iter().filter(|&&i| run.requests.was_sent(i as usize));
    sent.for_each(|&i| sums.add(run, i as usize));
    let reported = sums.reported.value();
    let is_chosen = |i: usize| u32::try_from(i).is_ok_and(|i| chosen.binary_search(&i).is_ok());
    let source = match Curve::of(run, opened.by_sent(), is_chosen) {
        Ok(curve) => Source::Sent(curve),
        Err(reason) if run.manifest.cache_curve.is_empty() => {
            let empty = Some(reason_words(reason).to_owned());
            let across = Axis::log("cache size", Unit::Number("tokens"));
            let picture = Picture {
                empty,
                summary: "No data.".to_owned(),
                across: Across::Value(across),
                reach: across.bounds(1_000.0, 1_000_000.0),
                axis: HeightAxis::Number { unit: "%" },
                bounds: BOUNDS,
                ..Picture::default()
            };
            let words = reason_details(reason).to_owned();
            return CurveAnswer { picture, words, ..CurveAnswer::default() };
        }
        Err(_) => Source::Planned(run.manifest.cache_curve.clone()),
    };
    let found = reported.map(|rate| capacity_at(source.sizes(), rate));
    let words = match reported.zip(found) {
        Some((rate, found)) => words(rate, found, source.servers()),
        None => "The server reports no cached tokens to compare with.".to_owned(),
    };
    let capacity = match found {
        Some(Capacity::About(tokens)) => Some(rounded(tokens)),
        _ => None,
    };
    let picture = picture(&source, &words);
    CurveAnswer { picture, reported: reported.map(|rate| rate * 100.0), capacity, words }
}

impl Source {
    fn sizes(&self) -> &[CacheSize] {
        match self {
            Self::Sent(curve) => &curve.sizes,
            Self::Planned(sizes) => sizes,
        }
    }

    const fn servers(&self) -> usize {
        match self {
            Self::Sent(curve) => curve.servers,
            Self::Planned(_) => 1,
        }
    }

    fn note(&self) -> String {
        match self {
            Self::Sent(_) => "least recently used goes first".to_owned(),
            Self::Planned(_) => "from the plan, in steps of 1, 2, 5".to_owned(),
        }
    }
}

fn picture(source: &Source, words: &str) -> Picture {
    let sizes = source.sizes();
    let label = if source.servers() > 1 { "cache size of each server" } else { "cache size" };
    let across = Axis::log(label, Unit::Number("tokens"));
    let point = |size: &CacheSize| {
        let x = across.place(size.cache_tokens as f64)?;
        Some(PlotPoint::new(x, size.ideal_hit_rate * 100.0))
    };
    let points: Vec<PlotPoint> = sizes.iter().filter_map(point).collect();
    let mut table = Rows::new(vec![
        Heading::new("cache size (tokens)", Cell::Number),
        Heading::new("hit rate (%)", Cell::Number),
    ]);
    for size in sizes {
        table.push(&[Some(size.cache_tokens as f64), Some(size.ideal_hit_rate * 100.0)]);
    }
    let most = sizes.last().map_or(0.0, |size| size.ideal_hit_rate);
    let summary = format!("From nothing to {} of the tokens. {words}", quantity::percent(most));
    Picture {
        across: Across::Value(across),
        reach: reach(across, sizes),
        lines: vec![Line {
            name: "simulated cache",
            colour: data_colour::GREEN,
            dashed: false,
            filled: true,
            segments: vec![points],
            readout: Readout::None,
        }],
        axis: HeightAxis::Number { unit: "%" },
        bounds: BOUNDS,
        table,
        note: source.note(),
        summary,
        ..Picture::default()
    }
}

const fn reason_words(reason: NoCurve) -> &'static str {
    match reason {
        NoCurve::NotInLog => "The log has no block ids",
        NoCurve::NoRequest => "No request with block ids left",
        NoCurve::TooLarge => "Too many prompts begin alike to tell",
    }
}

/// What else is to be said then.
const fn reason_details(reason: NoCurve) -> &'static str {
    match reason {
        NoCurve::NotInLog => {
            "The trace has none, or too many for the log, or the log is of an older version."
        }
        NoCurve::NoRequest => "Nothing can be said of this stretch of time.",
        NoCurve::TooLarge => "It would take minutes to work the curve out.",
    }
}

/// What the plot shows: from where the curve leaves the ground to its end.
fn reach(across: Axis, sizes: &[CacheSize]) -> (f64, f64) {
    let begins = sizes.partition_point(|size| size.ideal_hit_rate <= 0.0).saturating_sub(1);
    let size = |size: Option<&CacheSize>| size.map_or(1.0, |size| size.cache_tokens as f64);
    across.bounds(size(sizes.get(begins)), size(sizes.last()))
}

/// What the reported rate says of the server's cache.
fn words(rate: f64, found: Capacity, servers: usize) -> String {
    let each = if servers > 1 { " on each server" } else { "" };
    let share = quantity::percent(rate);
    let tokens = |tokens: f64| quantity::number(rounded(tokens));
    match found {
        Capacity::About(size) => format!(
            "The reported {share} is what a cache of about {} tokens{each} would have had.",
            tokens(size)
        ),
        Capacity::Below(size) => format!(
            "The reported {share} is less than a cache of {} tokens{each} would have had.",
            tokens(size as f64)
        ),
        Capacity::Above => format!(
            "The reported {share} is more than any cache would have had of these block ids: \
             prompts have more in common than the ids say, such as what a chat template adds."
        ),
    }
}

/// A number to two digits: the curve tells no more.
fn rounded(value: f64) -> f64 {
    if value < 10.0 {
        return value.round();
    }
    let unit = 10_f64.powf(value.log10().floor() - 1.0);
    (value / unit).round() * unit
}

#[cfg(test)]
mod tests {
    use onbeat_shared::log::sample;

    use super::super::opened;
    use super::*;

    #[test]
    fn the_curve_rises_and_the_reported_rate_has_its_size() {
        let opened = opened(&sample::sample(2, 400));
        let found = answer(&opened, &Selection::default());
        let points = &found.picture.lines[0].segments[0];
        assert!(points.len() > 50 && points.is_sorted_by(|a, b| a.x < b.x && a.y <= b.y));
        assert!(points.iter().all(|point| (0.0..=100.0).contains(&point.y)));
        assert!(found.reported.is_some_and(|rate| rate > 10.0), "{:?}", found.reported);
        assert!(found.words.contains("about"), "{}", found.words);
        let place = found.capacity.expect("a size").log10();
        let below = points.iter().rev().find(|point| point.x <= place).expect("a point");
        assert!((below.y - found.reported.expect("reported")).abs() < 5.0);
        let (from, to) = found.picture.reach;
        assert!(from < place && place < to);
        assert_eq!(found.picture.table.len(), points.len());
        let range = Some(opened.whole().widened(-0.3));
        let part = answer(&opened, &Selection { range, filter: None });
        assert_ne!(part.picture.lines[0].segments, found.picture.lines[0].segments);
    }

    #[test]
    fn a_log_that_says_nothing_of_prompts_shows_the_plan_or_a_word() {
        let mut sample = sample::sample(2, 50);
        sample.prefixes = onbeat_shared::log::PrefixRows::default();
        let found = answer(&opened(&sample), &Selection::default());
        assert!(found.picture.empty.expect("empty").starts_with("The log has no block ids"));
        sample.manifest.cache_curve = [(10_000, 0.2), (20_000, 0.9)]
            .map(|(cache_tokens, ideal_hit_rate)| CacheSize { cache_tokens, ideal_hit_rate })
            .to_vec();
        let found = answer(&opened(&sample), &Selection::default());
        assert!(found.picture.note.starts_with("from the plan"), "{}", found.picture.note);
        assert!(found.words.contains("about 1"), "{}", found.words);
    }

    #[test]
    fn sizes_have_two_digits() {
        assert_eq!((rounded(1_437_000.0), rounded(7.4), rounded(99.6)), (1_400_000.0, 7.0, 100.0));
    }
}
