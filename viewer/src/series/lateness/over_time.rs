//! Lateness of every request over time, with host stalls as shaded spans.
//!
//! Few requests are drawn one by one, in the colour of their core where there are few cores, and of
//! their machine in a run that was merged from few; many
//! as a density picture in which every occupied cell shows, with the median and the 99th percentile
//! of each step. On a logarithmic axis a request that left at its very instant has no place; it
//! stands at the lower edge. Spans are at least a pixel wide and those that touch are one.

use std::sync::Arc;

use egui_plot::PlotPoint;
use onbeat_shared::{
    import,
    metrics::{hosts::by_core, lateness::lateness_ns, quantile},
    run::Run,
    units::{CoreIndex, RunNanos},
};

use crate::filter::Filter;
use crate::opened::OpenedRun;
use crate::quantity::{self, TimeUnit};
use crate::selection::Passing;
use crate::series::picture::{
    Band, Cell, Density, Heading, HeightAxis, Line, Look, MarkGroup, Marks, Picture, Readout, Rows,
    Steps, seconds, staircase,
};
use crate::series::timeline::shades::PALEST;
use crate::series::{STEPS, filtered, nothing_passes, with_margin, within_run};
use crate::state::{Scale, TimeRange};
use crate::theme::data_colour;

/// Above this many requests in view a density picture replaces the marks.
const POINTS_MAX: usize = 5_000;
/// Cores or machines that have colours of their own at most.
const COLOURED: usize = 4;
const CORES: Names = ["core 0", "core 1", "core 2", "core 3"];
/// In the order of their shards, as the table beside the plot has them.
const HOSTS: Names = ["host 0", "host 1", "host 2", "host 3"];
/// Names of the first few.
type Names = [&'static str; COLOURED];
const COLOURS: [usize; COLOURED] =
    [data_colour::BLUE, data_colour::ORANGE, data_colour::GREEN, data_colour::PURPLE];
/// Spans across a view that can be told apart.
const SPANS: i64 = 400;
/// Powers of ten shown below the smallest value on a logarithmic axis.
const LOG_ROOM: f64 = 0.12;
/// How strongly spans are tinted.
const TINT: f32 = 0.32;

/// A request that left.
#[derive(Clone, Copy, Debug)]
struct Left {
    sent: RunNanos,
    request: u32,
    late: f64,
    /// Its core, or in a merged run its machine.
    sender: Option<usize>,
}

/// Those that requests are told apart by.
#[derive(Clone, Copy)]
struct Senders {
    names: Names,
    count: usize,
    /// What another one is called.
    other: &'static str,
}

impl Senders {
    fn of(run: &Run) -> Self {
        match run.manifest.merged.as_deref() {
            Some(merged) if merged.hosts.len() > 1 => {
                Self { names: HOSTS, count: merged.hosts.len(), other: "another host" }
            }
            _ => {
                let count = run.manifest.cores.len().max(1);
                Self { names: CORES, count, other: "another core" }
            }
        }
    }

    /// Whether each has a colour of its own.
    fn are_few(self) -> bool {
        (2..=COLOURED).contains(&self.count)
    }
}

/// The plot for a view.
#[must_use]
pub fn picture(
    opened: &OpenedRun,
    view: TimeRange,
    filter: Option<&Arc<Filter>>,
    scale: Scale,
) -> Picture {
    let wide = with_margin(opened, view);
    let passing = opened.passing(filter);
    let all = left(opened, wide, &passing);
    let shown = in_view(&all, view);
    let most = shown.iter().map(|left| left.late).fold(0.0, f64::max);
    let axis = match scale {
        Scale::Log => HeightAxis::LogTime,
        Scale::Linear => HeightAxis::Time(TimeUnit::fitting(most)),
    };
    let bounds = bounds(shown, axis, limit_ns(opened));
    let senders = Senders::of(&opened.run);
    let few = shown.len() <= POINTS_MAX;
    let steps = Steps::covering(wide, 2 * STEPS);
    let lines = if few && senders.are_few() {
        sender_lines(&all, steps, senders)
    } else {
        step_lines(&all, steps, axis)
    };
    Picture {
        bands: spans(opened, view, wide, bounds),
        marks: marks(&all, few, senders, wide, axis, bounds),
        lines,
        axis,
        bounds,
        table: rows(opened, shown, within_run(opened, view)),
        note: filtered(note(opened, shown, view), &passing),
        summary: summary(opened, shown, view),
        empty: shown.is_empty().then(|| nothing_passes(&passing).unwrap_or_else(|| empty(opened))),
        ..Picture::default()
    }
}

/// The verdict's limit in nanoseconds.
#[must_use]
pub fn limit_ns(opened: &OpenedRun) -> f64 {
    opened.run.manifest.max_lateness_us as f64 * 1e3
}

fn left(opened: &OpenedRun, range: TimeRange, passing: &Passing) -> Vec<Left> {
    let run = &opened.run;
    let host_of = by_core(run);
    let is_merged = run.manifest.merged.as_deref().is_some_and(|merged| merged.hosts.len() > 1);
    let sender = |core: CoreIndex| match is_merged {
        true => host_of.get(core.as_usize()).copied(),
        false => Some(core.as_usize()),
    };
    let of = |&request: &u32| {
        let i = request as usize;
        let sent = run.requests.sent(i).filter(|_| passing.has(i))?;
        let late = lateness_ns(run, i)? as f64;
        Some(Left { sent, request, late, sender: run.requests.core(i).and_then(sender) })
    };
    opened.sent_in(range).iter().filter_map(of).collect()
}

fn in_view(all: &[Left], view: TimeRange) -> &[Left] {
    let from = all.partition_point(|left| left.sent < view.start);
    let to = all.partition_point(|left| left.sent < view.end);
    &all[from..to.max(from)]
}

/// From a little below the least to a little above the most; the verdict's limit is in sight where
/// it is not far off.
fn bounds(shown: &[Left], axis: HeightAxis, limit: f64) -> (f64, f64) {
    let places = || shown.iter().filter_map(|left| axis.place(left.late));
    let low = places().fold(f64::INFINITY, f64::min);
    let high = places().fold(f64::NEG_INFINITY, f64::max);
    if low > high {
        return if axis == HeightAxis::LogTime { (3.0, 7.0) } else { (0.0, 1.0) };
    }
    let limit = axis.place(limit);
    if axis == HeightAxis::LogTime {
        let high = limit.filter(|limit| limit - high < 2.5).map_or(high, |limit| high.max(limit));
        return (low - LOG_ROOM, (high + LOG_ROOM).max(low + 1.0));
    }
    let high = limit.filter(|&limit| limit < 4.0 * high).map_or(high, |limit| high.max(limit));
    // Zero is in sight, even if all are below it, as in a damaged log; so is more if all are zero.
    let high = high.max(0.0);
    let room = (high - low.min(0.0)) * 0.06;
    let room = if room > 0.0 { room } else { 1.0 };
    (if low < 0.0 { low - room } else { 0.0 }, high + room)
}

/// Where a request stands: what has no place stands at the lower edge.
fn height(axis: HeightAxis, late: f64, bounds: (f64, f64)) -> f64 {
    axis.place(late).unwrap_or(bounds.0)
}

fn marks(
    all: &[Left],
    few: bool,
    senders: Senders,
    wide: TimeRange,
    axis: HeightAxis,
    bounds: (f64, f64),
) -> Marks {
    if all.is_empty() {
        return Marks::None;
    }
    let placed = |left: &Left| PlotPoint::new(seconds(left.sent), height(axis, left.late, bounds));
    if !few {
        let points = all.iter().map(placed);
        let xs = (seconds(wide.start), seconds(wide.end));
        return Marks::Density(Density::of(points, xs, bounds));
    }
    let group = |name: &'static str, look: Look, of: &dyn Fn(&Left) -> bool| {
        let inside = || all.iter().filter(|left| of(left));
        MarkGroup {
            name,
            look,
            points: inside().map(placed).collect(),
            requests: inside().map(|left| left.request).collect(),
        }
    };
    if !senders.are_few() {
        let MarkGroup { points, requests, .. } = group("", Look::Unknown, &|_| true);
        return Marks::Points { points, requests };
    }
    let number = |left: &Left| left.sender.filter(|&sender| sender < senders.count);
    let of = |place: usize| move |left: &Left| number(left) == Some(place);
    let mut groups: Vec<MarkGroup> = (0..senders.count)
        .map(|place| group(senders.names[place], Look::Kind(COLOURS[place]), &of(place)))
        .collect();
    groups.push(group(senders.other, Look::Unknown, &|left| number(left).is_none()));
    groups.retain(|group| !group.points.is_empty());
    Marks::Groups(groups)
}

/// The names and colours of senders, with the longest lateness of each step to read.
fn sender_lines(all: &[Left], steps: Steps, senders: Senders) -> Vec<Line> {
    (0..senders.count)
        .map(|place| {
            let mut values: Vec<Option<f64>> = vec![None; steps.count];
            for left in all.iter().filter(|left| left.sender == Some(place)) {
                if let Some(step) = steps.place(left.sent) {
                    let latest = values[step].map_or(left.late, |latest| latest.max(left.late));
                    values[step] = Some(latest);
                }
            }
            line(steps, senders.names[place], COLOURS[place], Vec::new(), values)
        })
        .collect()
}

/// Median and 99th percentile of each step.
fn step_lines(all: &[Left], steps: Steps, axis: HeightAxis) -> Vec<Line> {
    let mut columns = [const { Vec::new() }; 2];
    for place in 0..steps.count {
        let step = TimeRange { start: steps.start_of(place), end: steps.start_of(place + 1) };
        let mut inside: Vec<f64> = in_view(all, step).iter().map(|left| left.late).collect();
        inside.sort_unstable_by(f64::total_cmp);
        for (column, share) in columns.iter_mut().zip([0.50, 0.99]) {
            column.push(quantile::percentile(&inside, share));
        }
    }
    let named = [("p50", data_colour::BLUE), ("p99", data_colour::VERMILLION)];
    let lines = named.into_iter().zip(columns);
    lines
        .map(|((name, colour), values): (_, Vec<Option<f64>>)| {
            let places: Vec<_> =
                values.iter().map(|value| value.and_then(|value| axis.place(value))).collect();
            line(steps, name, colour, staircase(steps, &places), values)
        })
        .collect()
}

fn line(
    steps: Steps,
    name: &'static str,
    colour: usize,
    segments: Vec<Vec<PlotPoint>>,
    values: Vec<Option<f64>>,
) -> Line {
    Line {
        name,
        colour,
        dashed: false,
        filled: false,
        segments,
        readout: Readout::Bins {
            start: steps.start,
            width: steps.width,
            values: Arc::from(values),
        },
    }
}

/// Host stalls of all cores as spans. Those that are shorter than a pixel, or lie so close that
/// they are one span, are paler: a hundred short ones are not to look like a host that was away all
/// the time.
fn spans(opened: &OpenedRun, view: TimeRange, wide: TimeRange, bounds: (f64, f64)) -> Vec<Band> {
    let pixel = (view.span() / SPANS).max(1);
    let mut stalls: Vec<(i64, i64)> = opened
        .run
        .stalls
        .all()
        .iter()
        .map(|stall| (stall.start.0, stall.end().0))
        .filter(|&(start, end)| {
            start < wide.end.0 && end.max(start.saturating_add(pixel)) > wide.start.0
        })
        .collect();
    stalls.sort_unstable();
    // Where each span begins and ends, and how much of it was stalled.
    let mut merged: Vec<(i64, i64, i64)> = Vec::new();
    for (start, end) in stalls {
        let (length, least) = (end.saturating_sub(start), start.saturating_add(pixel));
        match merged.last_mut() {
            Some(last) if start <= last.1.saturating_add(pixel) => {
                last.1 = last.1.max(end.max(least));
                last.2 = last.2.saturating_add(length);
            }
            _ => merged.push((start, end.max(least), length)),
        }
    }
    let band = |(start, end, stalled): (i64, i64, i64)| {
        #[expect(clippy::cast_possible_truncation, reason = "a share of one")]
        let share = (stalled as f64 / end.saturating_sub(start).max(1) as f64) as f32;
        Band {
            name: "host stall",
            colour: data_colour::VERMILLION,
            strength: TINT * share.clamp(PALEST, 1.0),
            xs: vec![seconds(RunNanos(start)), seconds(RunNanos(end))],
            low: vec![bounds.0; 2],
            high: vec![bounds.1; 2],
        }
    };
    merged.into_iter().map(band).collect()
}

fn stalls_in(opened: &OpenedRun, view: TimeRange) -> (u64, u64) {
    let stalls = opened.run.stalls.all().iter().filter(|stall| view.contains(stall.start));
    stalls.fold((0, 0), |(count, longest), stall| (count + 1, longest.max(stall.length_ns)))
}

fn rows(opened: &OpenedRun, shown: &[Left], view: TimeRange) -> Rows {
    let steps = Steps::covering(view, STEPS);
    let mut rows = Rows::new(vec![
        Heading::new("sent from", Cell::Instant(steps.width as f64)),
        Heading::new("sent", Cell::Number),
        Heading::new("p50", Cell::Duration),
        Heading::new("p99", Cell::Duration),
        Heading::new("latest", Cell::Duration),
        Heading::new("host stalls", Cell::Number),
        Heading::new("longest stall", Cell::Duration),
    ]);
    let silent = import::measured_by(&opened.run).is_some();
    let mut stalls = vec![(0_u64, None::<u64>); steps.count];
    for stall in opened.run.stalls.all() {
        if let Some(place) = steps.place(stall.start) {
            let (count, longest) = &mut stalls[place];
            *count += 1;
            *longest = (*longest).max(Some(stall.length_ns));
        }
    }
    for (place, (count, longest)) in stalls.into_iter().enumerate() {
        let step = TimeRange { start: steps.start_of(place), end: steps.start_of(place + 1) };
        let mut inside: Vec<f64> = in_view(shown, step).iter().map(|left| left.late).collect();
        inside.sort_unstable_by(f64::total_cmp);
        rows.push(&[
            Some(step.start.0 as f64),
            Some(inside.len() as f64),
            quantile::percentile(&inside, 0.50),
            quantile::percentile(&inside, 0.99),
            inside.last().copied(),
            Some(count as f64).filter(|_| !silent),
            longest.map(|length| length as f64),
        ]);
    }
    rows
}

fn note(opened: &OpenedRun, shown: &[Left], view: TimeRange) -> String {
    let (stalls, _) = stalls_in(opened, view);
    let stalls = match import::measured_by(&opened.run) {
        None => format!("{} shaded", quantity::counted(stalls, "host stall")),
        Some(_) => "host stalls not known".to_owned(),
    };
    let at_once = shown.iter().filter(|left| left.late <= 0.0).count() as u64;
    if at_once > 0 {
        let at_once = quantity::count(at_once);
        return format!("{stalls}, {at_once} not late, at the edge");
    }
    stalls
}

fn summary(opened: &OpenedRun, shown: &[Left], view: TimeRange) -> String {
    let span = view.span() as f64;
    let words = |time: RunNanos| quantity::instant(time.0 as f64, span);
    let stretch = format!("From {} to {}", words(view.start), words(view.end));
    let latest = shown.iter().max_by(|a, b| a.late.total_cmp(&b.late));
    let Some(latest) = latest else { return format!("{stretch}: no data.") };
    let (stalls, longest) = stalls_in(opened, view);
    let stalls = match stalls {
        _ if import::measured_by(&opened.run).is_some() => "host stalls not known".to_owned(),
        0 => "no host stall".to_owned(),
        some => format!(
            "{}, {} at most",
            quantity::counted(some, "host stall"),
            quantity::duration(longest as f64)
        ),
    };
    format!(
        "{stretch}: {} left, {} late at most, at {}; {stalls}.",
        quantity::counted(shown.len() as u64, "request"),
        quantity::measured(latest.late),
        words(latest.sent)
    )
}

fn empty(opened: &OpenedRun) -> String {
    if opened.by_sent().is_empty() {
        "No data: no request left".to_owned()
    } else {
        "No data: no request left in this stretch of time".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use onbeat_shared::{
        log::{
            HostPart, Merged, Record,
            sample::{self, Sample},
        },
        run::Run,
    };

    use super::*;

    fn opened(bytes: &[u8]) -> OpenedRun {
        let run = Run::read(bytes).expect("a log");
        OpenedRun::new(PathBuf::from("sample.beat"), 0, run)
    }

    #[test]
    fn every_stall_is_under_a_span_and_spans_do_not_touch() {
        let opened = opened(&sample::log(3, 500));
        let whole = opened.whole();
        for view in [whole, TimeRange::between(whole.start, RunNanos(whole.span() / 9))] {
            let shown = picture(&opened, view, None, Scale::Log);
            assert!(!shown.bands.is_empty() && shown.bands.len() < 2_000);
            let over = |time: f64| shown.bands.iter().any(|b| b.xs[0] <= time && time <= b.xs[1]);
            let seen = |time: RunNanos| view.contains(time);
            for stall in opened.run.stalls.all().iter().filter(|stall| seen(stall.start)) {
                assert!(over(seconds(stall.start)));
            }
            assert!(shown.bands.windows(2).all(|pair| pair[0].xs[1] < pair[1].xs[0]));
        }
    }

    #[test]
    fn short_stalls_are_paler_than_long_ones() {
        let mut sample = Sample::new();
        sample.send(0);
        sample.send(10_000_000_000);
        let mut stall = |start: i64, length_ns: u64| {
            let start = RunNanos(start);
            sample.push(CoreIndex(0), Record::Stall { start, length_ns });
        };
        (0..200).for_each(|k| stall(k * 10_000_000, 80_000));
        stall(6_000_000_000, 900_000_000);
        let opened = opened(&sample.bytes());
        let bands = picture(&opened, opened.whole(), None, Scale::Log).bands;
        let (last, others) = bands.split_last().expect("stalls");
        assert_eq!(last.strength, TINT);
        assert!(others.iter().all(|band| band.strength == TINT * PALEST), "{others:?}");
    }

    #[test]
    fn cores_have_names_and_the_latest_request_is_in_sight() {
        let opened = opened(&sample::log(3, 500));
        for scale in [Scale::Log, Scale::Linear] {
            let shown = picture(&opened, opened.whole(), None, scale);
            let names: Vec<_> = shown.lines.iter().map(|line| line.name).collect();
            assert_eq!(names, ["core 0", "core 1"]);
            let late = |i| lateness_ns(&opened.run, i);
            let latest = (0..500).filter_map(late).max().expect("some left") as f64;
            let place = shown.axis.place(latest).expect("a place");
            assert!(place <= shown.bounds.1);
            assert!(shown.summary.contains(&quantity::measured(latest)), "{}", shown.summary);
        }
    }

    #[test]
    fn a_merged_run_is_coloured_by_its_machines() {
        let mut sample = sample::sample(3, 300);
        let host = |shard, first_core| HostPart {
            shard,
            first_core,
            cores: vec![0],
            ..HostPart::default()
        };
        let hosts = vec![host(0, 1), host(1, 0)];
        sample.manifest.merged = Some(Box::new(Merged { shards: 2, hosts, ..Merged::default() }));
        let opened = opened(&sample.bytes());
        let shown = picture(&opened, opened.whole(), None, Scale::Log);
        let names: Vec<_> = shown.lines.iter().map(|line| line.name).collect();
        assert_eq!(names, ["host 0", "host 1"]);
        let Marks::Groups(groups) = &shown.marks else { panic!("two hosts") };
        for (group, core) in groups.iter().zip([1, 0]) {
            let cores = group.requests.iter().map(|&i| opened.run.requests.core(i as usize));
            assert!(cores.flatten().all(|found| found == CoreIndex(core)), "{}", group.name);
        }
    }

    #[test]
    fn many_requests_are_a_density_with_percentiles() {
        let mut sample = Sample::new();
        for k in 0..6_000 {
            let request = sample.plan(k * 1_000_000);
            sample.dispatch(request, 0, k * 1_000_000 + 20_000 + k);
        }
        let opened = opened(&sample.bytes());
        let shown = picture(&opened, opened.whole(), None, Scale::Log);
        let Marks::Density(density) = &shown.marks else { panic!("too many for marks") };
        assert_eq!(density.counts.iter().sum::<u32>(), 6_000);
        assert_eq!(shown.lines.len(), 2);
    }

    #[test]
    fn requests_that_all_left_at_their_instant_have_an_axis() {
        let mut sample = Sample::new();
        for k in 0..5 {
            sample.send(k * 1_000_000);
        }
        sample.manifest.max_lateness_us = 0;
        let opened = opened(&sample.bytes());
        let (low, high) = picture(&opened, opened.whole(), None, Scale::Linear).bounds;
        assert!(low <= 0.0 && high - low >= 1.0, "{low} to {high}");
    }

    #[test]
    fn a_request_at_its_very_instant_is_not_lost() {
        let mut sample = Sample::new();
        sample.send(0);
        let request = sample.plan(1_000_000);
        sample.dispatch(request, 0, 1_030_000);
        sample.push(CoreIndex(0), Record::Stall { start: RunNanos(500_000), length_ns: 60_000 });
        let opened = opened(&sample.bytes());
        let shown = picture(&opened, opened.whole(), None, Scale::Log);
        assert!(shown.note.contains("1 not late, at the edge"), "{}", shown.note);
        let Marks::Groups(groups) = &shown.marks else { panic!("two cores") };
        let points = &groups[0].points;
        assert_eq!(points.len(), 2);
        assert!(points.iter().any(|point| point.y <= shown.bounds.0));
    }
}
