//! Charts over values: how durations and lateness are spread, what caches of every size would have
//! had, and how many requests would be good at every limit.
//!
//! What is drawn is [`crate::metrics`]'s: the same ranks, curves and goals that the report and the
//! viewer show; here points are chosen along them.

use super::facts::percent;
use super::still::{Axis, Level, Line, Still};
use crate::log::CacheSize;
use crate::metrics::capacity::Curve;
use crate::metrics::client_part::client_share;
use crate::metrics::goal::GoalKind;
use crate::metrics::latency::{Metric, count, nanos};
use crate::metrics::lateness::{in_stall, lateness_ns};
use crate::metrics::quantile::Collector;
use crate::metrics::ranked::Ranked;
use crate::metrics::report::Report;
use crate::metrics::scores::{Column, Group, Limited, meets_all};
use crate::metrics::slo::Goals;
use crate::run::Run;

/// Points along a line.
const POINTS: u32 = 240;

/// How the main durations are spread, from the sending on and from when it was due.
pub(super) fn durations(run: &Run) -> Vec<Still> {
    let sent = [
        (Metric::Ttft, "TTFT", 0),
        (Metric::Itl, "time between tokens", 1),
        (Metric::E2e, "end to end", 2),
    ];
    let due = [(Metric::TtftFromDue, "TTFT", 0), (Metric::E2eFromDue, "end to end", 2)];
    vec![of_durations(run, "Percentiles", &sent), of_durations(run, "Percentiles from due", &due)]
}

fn of_durations(run: &Run, title: &'static str, metrics: &[(Metric, &str, u8)]) -> Still {
    let line = |metric: Metric, name: &str, colour| {
        let successful = (0..run.requests.len()).filter(|&i| run.requests.is_ok(i));
        let values = successful.filter_map(|i| metric.value_ns(run, i)).map(|ns| ns / 1e6);
        percentile_line(name, colour, &ranked(values))
    };
    Still {
        title,
        note: "milliseconds, of successful requests; each line ends with its largest".to_owned(),
        across: Axis::Percentile,
        up: Axis::Log,
        lines: metrics.iter().map(|&(metric, name, colour)| line(metric, name, colour)).collect(),
        levels: Vec::new(),
    }
}

/// How lateness is spread, in the parts that explain it.
pub(super) fn lateness(run: &Run, report: &Report) -> Still {
    let late = |wanted: &dyn Fn(usize) -> bool| {
        let chosen = (0..run.requests.len()).filter(|&i| wanted(i));
        // What left at its very instant has no place among powers of ten: the least that is shown.
        let late = chosen.filter_map(|i| lateness_ns(run, i));
        ranked(late.map(|late| (nanos(late) / 1e3).max(0.1)))
    };
    let burst = |i: usize| run.requests.in_burst(i);
    let lines = [
        ("alone at its instant", 0, late(&|i| !burst(i))),
        ("in bursts", 1, late(&burst)),
        ("in host stalls", 4, late(&|i| in_stall(run, i) == Some(true))),
    ];
    let limit = count(report.notes.max_lateness_us);
    let lines = lines.iter().filter(|(_, _, late)| !late.is_empty());
    Still {
        title: "Lateness by percentile",
        note: "microseconds from due and ready to sent".to_owned(),
        across: Axis::Percentile,
        up: Axis::Log,
        lines: lines.map(|(name, colour, late)| percentile_line(name, *colour, late)).collect(),
        levels: vec![Level { name: "limit of the p99".to_owned(), value: limit, is_across: false }],
    }
}

/// What part of each TTFT the client itself could have caused, at most.
pub(super) fn client_part(run: &Run) -> Still {
    let successful = (0..run.requests.len()).filter(|&i| run.requests.is_ok(i));
    let shares = successful.filter_map(|i| client_share(run, i));
    let shares = ranked(shares.map(|share| share.min(1.0) * 100.0));
    Still {
        title: "The client's part of TTFT",
        note: "% of a TTFT that late sending, slow writing and stalls could explain".to_owned(),
        across: Axis::Percentile,
        up: Axis::Percent,
        lines: vec![percentile_line("at most", 0, &shares)],
        levels: Vec::new(),
    }
}

fn ranked(values: impl Iterator<Item = f64>) -> Ranked {
    let mut collector = Collector::with_steps(1_000.0);
    collector.extend(values);
    collector.ranked()
}

/// The value of every percentile that so many values have.
fn percentile_line(name: &str, colour: u8, values: &Ranked) -> Line {
    let last = count(values.count()).max(1.0).log10();
    let point = |step: u32| {
        let share = 1.0 - 10_f64.powf(-last * f64::from(step) / f64::from(POINTS));
        Some((share, values.percentile(share)?))
    };
    let mut points: Vec<_> = (0..=POINTS).filter_map(point).collect();
    if let (Some(end), Some(most)) = (points.last_mut(), values.max()) {
        end.1 = most;
    }
    Line { name: name.to_owned(), colour, dashed: false, points }
}

/// What prefix caches of every size would have had of the requests as they left, beside what the
/// server says it had.
pub(super) fn capacity(run: &Run, report: &Report) -> Still {
    let mut order: Vec<u32> =
        (0_u32..).take(run.requests.len()).filter(|&i| run.requests.was_sent(i as usize)).collect();
    order.sort_by_key(|&i| run.requests.sent(i as usize));
    let (sizes, from) = match Curve::of(run, &order, |_| true) {
        Ok(curve) => (curve.sizes, "as requests left, least recently used goes first"),
        Err(_) => (run.manifest.cache_curve.clone(), "of the plan"),
    };
    let point = |size: &CacheSize| (count(size.cache_tokens), size.ideal_hit_rate * 100.0);
    let lines = match sizes.is_empty() {
        true => Vec::new(),
        false => vec![Line {
            name: "ideal".to_owned(),
            colour: 3,
            dashed: false,
            points: sizes.iter().map(point).collect(),
        }],
    };
    let level = |rate: f64| Level {
        name: format!("reported: {}", percent(rate)),
        value: rate * 100.0,
        is_across: false,
    };
    Still {
        title: "Hit rate by cache size",
        note: format!("% of input tokens, by tokens of the cache; {from}"),
        across: Axis::Log,
        up: Axis::Percent,
        lines,
        levels: report.cache.reported_hit_rate.map(level).into_iter().collect(),
    }
}

/// How many requests would be good at every limit of each goal, the other goals as they are.
pub(super) fn thresholds(run: &Run, goals: &Goals) -> Vec<Still> {
    let group = Group::of(run, 0..run.requests.len());
    let columns: Vec<(Column, f64)> =
        goals.list().iter().map(|goal| (Column::of(run, goal.kind, false), goal.limit)).collect();
    let chart = |place: usize| {
        let (column, limit) = &columns[place];
        let others: Vec<Limited<'_>> = (0..columns.len())
            .filter(|&other| other != place)
            .map(|other| (&columns[other].0, columns[other].1))
            .collect();
        threshold(&group, column, *limit, &others)
    };
    (0..columns.len()).map(chart).collect()
}

fn threshold(group: &Group, column: &Column, limit: f64, others: &[Limited<'_>]) -> Still {
    let kind: GoalKind = column.kind();
    let values = |is_in: &dyn Fn(usize) -> bool| {
        let chosen = group.successful.iter().map(|&i| i as usize).filter(|&i| is_in(i));
        ranked(chosen.filter_map(|i| column.value(i)))
    };
    let (alone, good) = (values(&|_| true), values(&|i| meets_all(others, i)));
    let line = |name: &str, colour, dashed, met: &Ranked| {
        let lies = |limit: f64| match kind.has_lower_limit() {
            true => met.count() - met.below(limit),
            false => met.up_to(limit),
        };
        let share = |limit: f64| Some((limit, group.share(lies(limit))? * 100.0));
        let points = limits(&alone, limit).into_iter().filter_map(share).collect();
        Line { name: name.to_owned(), colour, dashed, points }
    };
    let mut lines = vec![line("goodput", 3, false, &good)];
    if !others.is_empty() {
        lines.push(line("this goal alone", 0, true, &alone));
    }
    let sign = kind.unit().sign();
    Still {
        title: "Goodput by threshold",
        note: format!("% of requests, by the limit of {} ({sign})", kind.label()),
        across: Axis::Log,
        up: Axis::Percent,
        lines,
        levels: vec![Level {
            name: format!("goal: {limit} {sign}"),
            value: limit,
            is_across: true,
        }],
    }
}

/// Limits from below the least value to above the most, the goal's own among them.
fn limits(values: &Ranked, goal: f64) -> Vec<f64> {
    // What is far below all others would make a curve a step.
    let (Some(least), Some(most)) = (values.percentile(0.005), values.max()) else {
        return Vec::new();
    };
    let (low, high) = (least.min(goal).max(1e-6).log10() - 0.1, most.max(goal).log10() + 0.1);
    let step = |step: u32| 10_f64.powf(low + (high - low) * f64::from(step) / f64::from(POINTS));
    let mut limits: Vec<f64> = (0..=POINTS).map(step).chain([goal]).collect();
    limits.sort_unstable_by(f64::total_cmp);
    limits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::sample::{self, Sample};
    use crate::metrics::{ReportOptions, report};

    #[test]
    fn lines_go_through_the_reports_own_numbers() {
        let run = Run::read(&sample::log(3, 400)).expect("a log");
        let goals = Goals::parse("ttft:100 itl:12").expect("goals");
        let slo = Some(goals.clone());
        let report = report(&run, &ReportOptions { slo, ..ReportOptions::default() });
        let ttft = &durations(&run)[0].lines[0];
        let statistic = report.latency.ttft_ms.expect("values");
        let (share, value) = *ttft.points.last().expect("points");
        assert!(share > 0.99 && (value - statistic.max).abs() < 1e-9);
        let near = |wanted: f64| {
            let away = |point: &&(f64, f64)| (point.0 - wanted).abs();
            ttft.points.iter().min_by(|a, b| away(a).total_cmp(&away(b))).expect("points").1
        };
        assert!((near(0.9) / statistic.p90 - 1.0).abs() < 0.05, "{} {}", near(0.9), statistic.p90);
        for (place, still) in thresholds(&run, &goals).iter().enumerate() {
            let goal = still.levels[0].value;
            let at = |line: &Line| line.points.iter().find(|point| point.0 == goal).expect("it").1;
            let share = report.slo.goodput_share.expect("goals") * 100.0;
            assert!((at(&still.lines[0]) - share).abs() < 1e-9, "{place}");
            let name = goals.list()[place].kind.name();
            let alone = report.slo.met[name].share.expect("some") * 100.0;
            assert!((at(&still.lines[1]) - alone).abs() < 1e-9, "{name}");
        }
        let curve = capacity(&run, &report);
        assert!(!curve.lines[0].points.is_empty() && curve.levels.len() == 1);
        assert!(!lateness(&run, &report).lines.is_empty());
    }

    #[test]
    fn a_run_without_data_has_charts_without_lines() {
        let run = Run::read(&Sample::new().bytes()).expect("a log");
        let report = report(&run, &ReportOptions::default());
        let mut stills = durations(&run);
        stills.extend([capacity(&run, &report), lateness(&run, &report), client_part(&run)]);
        for still in stills {
            assert!(still.lines.iter().all(|line| line.points.is_empty()), "{}", still.title);
        }
        assert!(thresholds(&run, &Goals::default()).is_empty());
    }
}
