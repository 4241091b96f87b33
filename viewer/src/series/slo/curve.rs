//! Goodput against a threshold: how many requests would be good at every limit of one goal, the
//! other goals as they are.
//!
//! [`Thresholds`] says once for each request between which thresholds its number lies; a curve is
//! then one pass of counting, so that the other goals can be dragged. At each threshold the count
//! is exact. Thresholds are even on a logarithmic axis (on a linear one where numbers are not all
//! above zero), with round ones among them for the table.

use egui_plot::PlotPoint;
use onbeat_shared::metrics::{
    goal::GoalKind,
    scores::{Column, Group, Limited, meets_all},
    slo::Goals,
};

use super::compliance::{SHARE_BOUNDS, share_axis};
use super::{Way, limits};
use crate::opened::OpenedRun;
use crate::quantity::{self, TimeUnit};
use crate::selection::Selection;
use crate::series::axes::{Across, Axis, Unit, decimal_step};
use crate::series::from_zero;
use crate::series::picture::{Cell, Heading, HeightAxis, Line, Picture, Readout, Rows};
use crate::theme::data_colour;

/// Even thresholds across the axis.
const EVEN: u32 = 500;
/// How far the axis goes beyond the numbers, as a factor.
const BEYOND: f64 = 1.3;
/// Rows of the table at most, about.
const ROWS: usize = 48;

/// A request without the number lies nowhere.
const NOWHERE: u16 = u16::MAX;

/// Where the numbers of a group lie among thresholds.
#[derive(Clone, Debug, Default)]
pub struct Thresholds {
    /// Ascending, in the kind's unit; empty if no request has a finite number.
    limits: Vec<f64>,
    /// Which of them are round.
    round: Vec<bool>,
    /// Whether they are even on a logarithmic axis.
    is_log: bool,
    /// For each successful request of the group, the strictest threshold it meets.
    strictest: Vec<u16>,
}

impl Thresholds {
    /// Places a group's requests.
    #[must_use]
    pub fn of(column: &Column, group: &Group) -> Self {
        let values = || group.successful.iter().map(|&i| column.value(i as usize));
        let finite = || values().flatten().filter(|value| value.is_finite());
        let least = finite().fold(f64::INFINITY, f64::min);
        let most = finite().fold(f64::NEG_INFINITY, f64::max);
        if least > most {
            return Self::default();
        }
        let is_log = least > 0.0;
        let (limits, round) = thresholds(least, most, is_log);
        let lower = column.kind().has_lower_limit();
        let place = |value: Option<f64>| {
            let Some(value) = value else { return NOWHERE };
            let place = if lower {
                // The last threshold that is not above it.
                limits.partition_point(|&limit| limit <= value).saturating_sub(1)
            } else {
                limits.partition_point(|&limit| limit < value)
            };
            // Fewer thresholds than 16 bits can number.
            u16::try_from(place).unwrap_or(NOWHERE)
        };
        let strictest = values().map(place).collect();
        Self { limits, round, is_log, strictest }
    }

    /// At each threshold, how many of the group's requests meet it, and how many of them meet the
    /// others as well.
    fn counts(&self, group: &Group, others: &[Limited<'_>], lower: bool) -> Vec<(u64, u64)> {
        let mut counts = vec![(0, 0); self.limits.len()];
        for (&i, &place) in group.successful.iter().zip(&self.strictest) {
            if let Some((alone, good)) = counts.get_mut(usize::from(place)) {
                *alone += 1;
                *good += u64::from(meets_all(others, i as usize));
            }
        }
        // Whoever meets a strict limit meets every laxer one.
        let mut sums = (0, 0);
        let mut add = |count: &mut (u64, u64)| {
            sums = (sums.0 + count.0, sums.1 + count.1);
            *count = sums;
        };
        if lower {
            counts.iter_mut().rev().for_each(&mut add);
        } else {
            counts.iter_mut().for_each(&mut add);
        }
        counts
    }
}

/// Thresholds from a little below the least to a little above the most, and which are round.
fn thresholds(least: f64, most: f64, is_log: bool) -> (Vec<f64>, Vec<bool>) {
    let (low, high) = if is_log {
        (least / BEYOND, most * BEYOND)
    } else {
        let room = ((most - least) * (BEYOND - 1.0)).max(1.0);
        (least - room, most + room)
    };
    let even = |step: u32| {
        let share = f64::from(step) / f64::from(EVEN);
        if is_log { low * (high / low).powf(share) } else { low + (high - low) * share }
    };
    let mut all: Vec<(f64, bool)> = (0..=EVEN).map(|step| (even(step), false)).collect();
    all.extend([(least, false), (most, false)]);
    all.extend(round_between(low, high, is_log).into_iter().map(|limit| (limit, true)));
    // Of two that are equal the round one stays.
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
    all.dedup_by(|later, earlier| later.0 == earlier.0);
    all.into_iter().unzip()
}

/// Round numbers of a stretch: 1, 1.5, 2, 3, 5, 7 times powers of ten, more of them where the
/// stretch is short; or even steps.
fn round_between(low: f64, high: f64, is_log: bool) -> Vec<f64> {
    let mut found = Vec::new();
    if is_log {
        let decades = (high / low).log10();
        let digits: &[f64] = if decades > 3.0 {
            &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0]
        } else {
            &[
                1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2.0, 2.2, 2.5, 2.8, 3.0, 3.5, 4.0, 4.5,
                5.0, 5.5, 6.0, 7.0, 8.0, 9.0,
            ]
        };
        let mut power = 10_f64.powf(low.log10().floor());
        // Below the smallest number there is nothing to multiply.
        while power > 0.0 && power <= high && found.len() < 10 * ROWS {
            let here = digits.iter().map(|digit| limits::rounded(digit * power, 3));
            found.extend(here.filter(|&limit| low <= limit && limit <= high));
            power *= 10.0;
        }
        return found;
    }
    let step = decimal_step((high - low) / 20.0);
    let mut place = (low / step).ceil();
    while place * step <= high && found.len() < 10 * ROWS {
        found.push(limits::rounded(place * step, 6));
        place += 1.0;
    }
    found
}

/// The plot of a selection.
#[must_use]
pub fn picture(
    opened: &OpenedRun,
    selection: &Selection,
    kind: GoalKind,
    others: &Goals,
    way: Way,
) -> Picture {
    let group = opened.group(selection);
    let thresholds = opened.thresholds(selection, kind);
    let scored = opened.scored(others, false);
    let counts = thresholds.counts(&group, &scored.limited(), kind.has_lower_limit());
    let height = |requests: u64| match way {
        Way::Share => group.share(requests).and_then(|share| share_axis().place(share)),
        Way::Rate => group.rate(requests),
    };
    let axis = axis(kind, &thresholds);
    let points = |requests: fn(&(u64, u64)) -> u64| -> Vec<PlotPoint> {
        let counts = thresholds.limits.iter().zip(&counts);
        counts
            .filter_map(|(&limit, count)| {
                let x = axis.place(limits::plotted(kind, limit))?;
                Some(PlotPoint::new(x, height(requests(count))?))
            })
            .collect()
    };
    let mut lines = Vec::new();
    if !others.is_empty() {
        lines.push(line("this goal alone", data_colour::GREY, true, points(|count| count.0)));
    }
    lines.push(line("good", data_colour::BLUE, false, points(|count| count.1)));
    let (height_axis, bounds) = match way {
        Way::Share => (share_axis(), SHARE_BOUNDS),
        Way::Rate => {
            let most = group.rate(group.of).unwrap_or(0.0);
            (HeightAxis::Number { unit: "requests/s" }, from_zero(most))
        }
    };
    let known = thresholds.strictest.iter().filter(|&&place| place != NOWHERE).count() as u64;
    Picture {
        lines,
        axis: height_axis,
        across: Across::Value(axis),
        reach: reach(kind, &thresholds, axis),
        bounds,
        table: rows(kind, &thresholds, &counts, &group),
        note: note(known, &group, kind),
        summary: summary(kind, &thresholds, &counts, &group),
        empty: thresholds.limits.is_empty().then(|| empty(kind, &group)),
        ..Picture::default()
    }
}

/// What lies across: limits of the goal.
fn axis(kind: GoalKind, thresholds: &Thresholds) -> Axis {
    let most = thresholds.limits.last().copied().unwrap_or(1.0);
    let unit = if limits::is_duration(kind) {
        Unit::Time(TimeUnit::fitting(limits::plotted(kind, most)))
    } else {
        Unit::Number(kind.unit().sign())
    };
    if thresholds.is_log || thresholds.limits.is_empty() {
        Axis::log(kind.label(), unit)
    } else {
        Axis::linear(kind.label(), unit)
    }
}

/// From the first threshold to the last.
fn reach(kind: GoalKind, thresholds: &Thresholds, axis: Axis) -> (f64, f64) {
    let place = |limit: Option<&f64>| axis.place(limits::plotted(kind, *limit?));
    let ends = place(thresholds.limits.first()).zip(place(thresholds.limits.last()));
    ends.unwrap_or_else(|| axis.bounds(f64::INFINITY, f64::NEG_INFINITY))
}

fn line(name: &'static str, colour: usize, dashed: bool, points: Vec<PlotPoint>) -> Line {
    let segments = if points.is_empty() { Vec::new() } else { vec![points] };
    Line { name, colour, dashed, filled: !dashed, segments, readout: Readout::None }
}

fn rows(kind: GoalKind, thresholds: &Thresholds, counts: &[(u64, u64)], group: &Group) -> Rows {
    let cell = if limits::is_duration(kind) { Cell::Duration } else { Cell::Number };
    let unit = if limits::is_duration(kind) { "" } else { kind.unit().sign() };
    let comma = if unit.is_empty() { "" } else { ", " };
    let sign = limits::sign(kind);
    let mut rows = Rows::new(vec![
        Heading::new(format!("{} {sign}{comma}{unit}", kind.label()), cell),
        Heading::new("good", Cell::Number),
        Heading::new("share", Cell::Share),
        Heading::new("good per s", Cell::Number),
        Heading::new("this goal alone", Cell::Number),
    ]);
    let round = (0..thresholds.limits.len()).filter(|&place| thresholds.round[place]);
    for place in round {
        let (alone, good) = counts[place];
        rows.push(&[
            Some(limits::plotted(kind, thresholds.limits[place])),
            Some(good as f64),
            group.share(good),
            group.rate(good),
            Some(alone as f64),
        ]);
    }
    rows
}

fn note(known: u64, group: &Group, kind: GoalKind) -> String {
    let requests = quantity::counted(group.of, "request");
    let lacking = group.successful.len() as u64 - known;
    if lacking == 0 {
        return requests;
    }
    format!("{requests}, {} without {}", quantity::count(lacking), kind.label())
}

fn summary(
    kind: GoalKind,
    thresholds: &Thresholds,
    counts: &[(u64, u64)],
    group: &Group,
) -> String {
    let ends = thresholds.limits.first().zip(thresholds.limits.last());
    let goods = counts.first().zip(counts.last());
    let (Some((least, most)), Some((first, last))) = (ends, goods) else {
        return "No data.".to_owned();
    };
    let good = |count: &(u64, u64)| {
        group.share(count.1).map_or_else(|| quantity::NO_DATA.to_owned(), quantity::percent)
    };
    format!(
        "With {} {} {} {} of requests are good, with {} {}.",
        kind.label(),
        limits::sign(kind),
        limits::measured(kind, *least),
        good(first),
        limits::measured(kind, *most),
        good(last),
    )
}

fn empty(kind: GoalKind, group: &Group) -> String {
    if group.successful.is_empty() {
        return "No data: no request succeeded".to_owned();
    }
    format!("No data: no successful request has this number ({})", kind.label())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use onbeat_shared::{log::sample, metrics::goal::Goal, run::Run};

    use super::*;

    fn opened(requests: u32) -> OpenedRun {
        let run = Run::read(&sample::log(12, requests)).expect("a log");
        OpenedRun::new(PathBuf::from("sample.beat"), 0, run)
    }

    #[test]
    fn every_threshold_counts_what_looking_at_each_request_counts() {
        let opened = opened(300);
        let others = Goals::parse("e2e:500").expect("goals");
        let everything = Selection::default();
        for kind in GoalKind::all() {
            let others = others.without(kind);
            let thresholds = opened.thresholds(&everything, kind);
            let group = opened.group(&everything);
            let scored = opened.scored(&others, false);
            let limited = scored.limited();
            let counts = thresholds.counts(&group, &limited, kind.has_lower_limit());
            assert!(thresholds.limits.is_sorted_by(|a, b| a < b), "{}", kind.name());
            for (place, &limit) in thresholds.limits.iter().enumerate().step_by(7) {
                let mut goals = others.clone();
                let alone = Goal { kind, limit };
                goals.set(alone);
                let good = (0..300).filter(|&i| goals.is_good(&opened.run, i, false)).count();
                let ok = |&i: &usize| opened.run.requests.is_ok(i);
                let met = (0..300).filter(ok).filter(|&i| alone.is_met(&opened.run, i, false));
                let expected = (met.count() as u64, good as u64);
                assert_eq!(counts[place], expected, "{} at {limit}", kind.name());
            }
        }
    }

    #[test]
    fn the_curve_ends_where_all_have_the_number_and_goes_one_way() {
        let opened = opened(300);
        let everything = Selection::default();
        for (name, rises) in [("ttft", true), ("e2e_output_tokens_per_s", false)] {
            let kind = GoalKind::from_name(name).expect("a name");
            let shown = picture(&opened, &everything, kind, &Goals::default(), Way::Share);
            let ys: Vec<f64> = shown.lines[0].segments[0].iter().map(|point| point.y).collect();
            let ordered =
                |pair: &[f64]| if rises { pair[0] <= pair[1] } else { pair[0] >= pair[1] };
            assert!(ys.windows(2).all(ordered), "{name}");
            let ends = [ys.first(), ys.last()].map(|y| *y.expect("points"));
            assert_eq!(if rises { ends[0] } else { ends[1] }, 0.0, "{name}");
            assert!(shown.lines[0].segments[0].len() < 700);
            assert!((10..200).contains(&shown.table.len()), "{}", shown.table.len());
        }
    }

    #[test]
    fn the_other_goals_cap_the_curve() {
        let opened = opened(300);
        let kind = GoalKind::from_name("ttft").expect("a name");
        let others = Goals::parse("e2e:300").expect("goals");
        let everything = Selection::default();
        let shown = picture(&opened, &everything, kind, &others, Way::Rate);
        assert_eq!(shown.lines.len(), 2);
        let last = |line: &Line| line.segments[0].last().expect("points").y;
        assert!(last(&shown.lines[1]) < last(&shown.lines[0]));
        let good = (0..300).filter(|&i| others.is_good(&opened.run, i, false)).count() as u64;
        let rate = opened.group(&everything).rate(good).expect("a rate");
        assert!((last(&shown.lines[1]) - rate).abs() < 1e-9);
    }

    #[test]
    fn without_numbers_there_is_a_sentence() {
        let opened = opened(40);
        let kind = GoalKind::from_name("reasoning_tokens").expect("a name");
        let everything = Selection::default();
        let shown = picture(&opened, &everything, kind, &Goals::default(), Way::Share);
        let empty = shown.empty.expect("nobody reports reasoning");
        assert!(empty.contains("no successful request has this number"), "{empty}");
        assert!(shown.table.is_empty());
    }
}
