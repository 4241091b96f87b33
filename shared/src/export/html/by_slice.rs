//! The dashboards of a run that a schedule drives, over slices of its time.
//!
//! Such a run has no users: it has what the viewer's panels show of it, in their order and from the
//! same numbers. Values over time are [`crate::metrics::slices`]'s.

use super::chart::{Chart, Shape, Span};
use super::facts::{number, percent};
use super::page::{Dashboard, Numbers};
use super::scale::time;
use super::series::{LEAST_S, Of, PER_SECOND, PERCENT, in_percent, right};
use super::{lateness, servers, spread};
use crate::metrics::Statistic;
use crate::metrics::goal::{Goal, GoalKind};
use crate::metrics::latency::{count, nanos};
use crate::metrics::report::{Report, SliceReport};
use crate::metrics::slo::Goals;
use crate::run::Run;

const MILLIS: &str = " ms";

/// Most slices that a page is cut into unasked.
const SLICES: i64 = 80;
/// Lengths of slices, in nanoseconds.
const LENGTHS_S: [i64; 10] = [1, 2, 5, 10, 30, 60, 300, 600, 1_800, 3_600];

/// The length of slices for a run that takes so long: a round one, and not too many of them.
pub(super) fn slice_ns(length_ns: i64) -> i64 {
    let second = crate::units::NANOS_PER_SECOND;
    let short = [second / 20, second / 10, second / 2];
    let lengths = short.into_iter().chain(LENGTHS_S.map(|length_s| length_s * second));
    let fits = |length: &i64| length_ns / *length < SLICES;
    lengths.into_iter().find(fits).unwrap_or(86_400 * second)
}

/// The time that the page is about.
pub(super) fn span(slices: &[SliceReport]) -> Span {
    let seconds = |ns: i64| nanos(ns) / 1e9;
    let slots: Vec<_> =
        slices.iter().map(|one| (seconds(one.start_ns), seconds(one.end_ns))).collect();
    let start_s = slots.first().map_or(0.0, |slot| slot.0);
    let end_s = slots.last().map_or(1.0, |slot| slot.1).max(start_s + LEAST_S);
    Span { start_s, end_s, slots }
}

/// The dashboards: what the viewer's panels of the same names show.
pub(super) fn dashboards(run: &Run, report: &Report, slices: &[SliceReport]) -> Vec<Dashboard> {
    let of = Of { rows: slices };
    vec![
        overview(of, run, slices),
        latency(of, run, report),
        throughput(of),
        servers::beside(
            Dashboard { stills: vec![spread::capacity(run, report)], ..cache(of) },
            run,
            report,
            &span(slices),
        ),
        Dashboard { stills: spread::thresholds(run, &goals(report)), ..outcomes(of, report) },
        lateness::dashboard(run, report, &span(slices)),
        lateness::fidelity(report),
    ]
}

/// The goals that the report is about.
fn goals(report: &Report) -> Goals {
    let mut goals = Goals::default();
    for (name, &limit) in &report.slo.goals {
        if let Some(kind) = GoalKind::from_name(name) {
            goals.add(Goal { kind, limit });
        }
    }
    goals
}

fn percentiles(
    of: Of<'_, SliceReport>,
    title: &str,
    value: fn(&SliceReport) -> Option<Statistic>,
    level: Option<(String, f64)>,
) -> Chart {
    let figure =
        |figure: fn(&Statistic) -> f64| move |one: &SliceReport| value(one).as_ref().map(figure);
    Chart {
        title: title.to_owned(),
        note: "milliseconds, by the slice of the sending".to_owned(),
        series: vec![
            of.series("p50", MILLIS, Shape::Line, 0, figure(|s| s.p50)),
            of.series("p95", MILLIS, Shape::Line, 1, figure(|s| s.p95)),
            of.series("p99", MILLIS, Shape::Dashed, 2, figure(|s| s.p99)),
        ],
        level,
        ..Chart::default()
    }
}

fn overview(of: Of<'_, SliceReport>, run: &Run, slices: &[SliceReport]) -> Dashboard {
    let per_second = |one: &SliceReport, requests: u64| {
        let length_s = nanos(one.end_ns - one.start_ns) / 1e9;
        (length_s > 0.0).then(|| count(requests) / length_s)
    };
    let mut due: Vec<i64> =
        (0..run.requests.len()).filter_map(|i| run.requests.due(i)).map(|due| due.0).collect();
    due.sort_unstable();
    // The last slice ends with the run, and holds what is due at its very end.
    let last = slices.last().map(|one| one.index);
    let offered = |one: &SliceReport| {
        let before = |time: i64| due.partition_point(|&due| due < time) as u64;
        let end = if Some(one.index) == last { i64::MAX } else { one.end_ns };
        let start = if one.index == 0 { i64::MIN } else { one.start_ns };
        (!due.is_empty()).then(|| per_second(one, before(end) - before(start))).flatten()
    };
    let rates = Chart {
        title: "Offered and achieved rate".to_owned(),
        note: "requests per second: due in the slice, and sent in it".to_owned(),
        series: vec![
            of.series("offered", "/s", Shape::Dashed, 5, offered),
            of.series("achieved", "/s", Shape::Line, 0, |one| per_second(one, one.sent)),
        ],
        ..Chart::default()
    };
    let flight = Chart {
        title: "Requests in flight".to_owned(),
        note: "the mean and the most over the slice".to_owned(),
        series: vec![
            of.series("mean", "", Shape::Area, 3, |one| {
                one.concurrency.effective.map(|figures| figures.mean)
            }),
            of.series("most", "", Shape::Line, 1, |one| {
                one.concurrency.effective.map(|figures| figures.max)
            }),
        ],
        ..Chart::default()
    };
    Dashboard {
        id: "overview",
        title: "Overview",
        charts: vec![rates, flight],
        ..Dashboard::default()
    }
}

fn latency(of: Of<'_, SliceReport>, run: &Run, report: &Report) -> Dashboard {
    let goal = |name: &str| report.slo.goals.get(name).map(|limit| ("Goal".to_owned(), *limit));
    Dashboard {
        id: "latency",
        title: "Latency",
        charts: vec![
            percentiles(of, "TTFT", |one| one.latency.ttft_ms, goal("ttft_ms")),
            percentiles(of, "Time between tokens", |one| one.latency.itl_ms, goal("itl_ms")),
            percentiles(of, "End to end", |one| one.latency.e2e_ms, goal("e2e_ms")),
        ],
        stills: spread::durations(run),
        ..Dashboard::default()
    }
}

fn throughput(of: Of<'_, SliceReport>) -> Dashboard {
    let tokens = Chart {
        title: "Tokens".to_owned(),
        note: "tokens per second; input at its first token, output when it came".to_owned(),
        series: vec![
            of.series("input", PER_SECOND, Shape::Line, 0, |one| one.arrived_input_tokens_per_s),
            right(of.series("output", PER_SECOND, Shape::Line, 1, |one| {
                one.arrived_output_tokens_per_s
            })),
        ],
        ..Chart::default()
    };
    let phases = Chart {
        title: "Prefill and decode".to_owned(),
        note: "requests at once in each phase, the mean over the slice; successful ones per second"
            .to_owned(),
        series: vec![
            of.series("prefill", "", Shape::Line, 0, |one| {
                one.concurrency.prefill.map(|figures| figures.mean)
            }),
            of.series("decode", "", Shape::Line, 3, |one| {
                one.concurrency.decode.map(|figures| figures.mean)
            }),
            right(
                of.series("successful", "/s", Shape::Dashed, 1, |one| {
                    one.throughput.requests_per_s
                }),
            ),
        ],
        ..Chart::default()
    };
    Dashboard {
        id: "throughput",
        title: "Throughput",
        charts: vec![tokens, phases],
        ..Dashboard::default()
    }
}

fn cache(of: Of<'_, SliceReport>) -> Dashboard {
    let rates = Chart {
        title: "Cache hit rate".to_owned(),
        note: "% of input tokens, by the slice of the sending".to_owned(),
        tops: [Some(100.0), None],
        series: vec![
            of.series("ideal (common prefix)", PERCENT, Shape::Area, 3, |one| {
                in_percent(one.cache.ideal_hit_rate)
            }),
            of.series("reported by the server", PERCENT, Shape::Line, 1, |one| {
                in_percent(one.cache.reported_hit_rate)
            }),
        ],
        ..Chart::default()
    };
    Dashboard { id: "cache", title: "Cache", charts: vec![rates], ..Dashboard::default() }
}

fn outcomes(of: Of<'_, SliceReport>, report: &Report) -> Dashboard {
    let ends = Chart {
        title: "Outcomes".to_owned(),
        note: "requests, by the slice of the sending".to_owned(),
        series: vec![
            of.series("ok", "", Shape::Bars, 3, |one| Some(count(one.outcomes.ok))),
            of.series("failed", "", Shape::Bars, 1, |one| Some(count(one.outcomes.failed()))),
            of.series("cancelled", "", Shape::Bars, 5, |one| Some(count(one.outcomes.cancelled))),
        ],
        ..Chart::default()
    };
    let mut charts = vec![ends];
    if !report.slo.goals.is_empty() {
        charts.push(Chart {
            title: "Goodput".to_owned(),
            note: "% of requests that meet every goal".to_owned(),
            tops: [Some(100.0), None],
            series: vec![
                of.series("goodput", PERCENT, Shape::Area, 3, |one| {
                    in_percent(one.slo.goodput_share)
                }),
                of.series("effective", PERCENT, Shape::Dashed, 0, |one| {
                    in_percent(one.slo.effective_goodput_share)
                }),
            ],
            ..Chart::default()
        });
    }
    Dashboard { id: "slo", title: "Outcomes and goals", charts, ..Dashboard::default() }
}

/// The table under the charts.
pub(super) fn numbers(slices: &[SliceReport]) -> Numbers {
    let heads = vec![
        "slice",
        "from",
        "sent",
        "ok",
        "failed",
        "cancelled",
        "TTFT p50 ms",
        "TTFT p99 ms",
        "ITL p50 ms",
        "input tok/s",
        "output tok/s",
        "ideal hit",
        "reported hit",
        "goodput",
    ];
    let shown = |value: Option<f64>| value.map_or_else(|| "no data".to_owned(), number);
    let rate = |value: Option<f64>| value.map_or_else(|| "no data".to_owned(), percent);
    let row = |(place, one): (usize, &SliceReport)| {
        let partial = if one.complete { "" } else { " (part)" };
        vec![
            format!("{}{partial}", place + 1),
            time(nanos(one.start_ns) / 1e9, 0.1),
            one.sent.to_string(),
            one.outcomes.ok.to_string(),
            one.outcomes.failed().to_string(),
            one.outcomes.cancelled.to_string(),
            shown(one.latency.ttft_ms.as_ref().map(|s| s.p50)),
            shown(one.latency.ttft_ms.as_ref().map(|s| s.p99)),
            shown(one.latency.itl_ms.as_ref().map(|s| s.p50)),
            shown(one.arrived_input_tokens_per_s),
            shown(one.arrived_output_tokens_per_s),
            rate(one.cache.ideal_hit_rate),
            rate(one.cache.reported_hit_rate),
            rate(one.slo.goodput_share),
        ]
    };
    Numbers { heads, rows: slices.iter().enumerate().map(row).collect(), is_words: false }
}
