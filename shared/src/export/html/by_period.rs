//! The four dashboards of a user-driven run, over its assessment periods.
//!
//! They show what kv-cache-tester's do: performance over time, cache and user activity, the users'
//! timeline, rate limiting. Values are [`crate::metrics::periods`]'s.

use super::chart::{Chart, Shape, Span};
use super::facts::{number, percent};
use super::page::{Dashboard, Numbers};
use super::scale::time;
use super::series::{LEAST_S, Of, PER_SECOND, PERCENT, in_percent, right};
use super::{lateness, lives, servers, spread};
use crate::log::UserFacts;
use crate::metrics::Statistic;
use crate::metrics::latency::{count, nanos};
use crate::metrics::periods::Period;
use crate::metrics::report::Report;
use crate::metrics::slo::Goals;
use crate::run::{Run, Users};

const SECONDS: &str = " s";

/// The time that the page is about.
pub(super) fn span(periods: &[Period]) -> Span {
    let seconds = |ns: i64| nanos(ns) / 1e9;
    let slots: Vec<_> =
        periods.iter().map(|one| (seconds(one.start_ns), seconds(one.end_ns))).collect();
    let end_s = slots.last().map_or(1.0, |slot| slot.1).max(LEAST_S);
    Span { start_s: 0.0, end_s, slots }
}

/// The dashboards, in the tool's order.
pub(super) fn dashboards(
    run: &Run,
    users: &Users,
    report: &Report,
    periods: &[Period],
) -> Vec<Dashboard> {
    let facts = run.manifest.users.as_deref();
    let of = Of { rows: periods };
    let end_s = span(periods).end_s;
    vec![
        Dashboard { stills: spread::durations(run), ..performance(of, facts, report) },
        servers::beside(
            Dashboard { stills: vec![spread::capacity(run, report)], ..cache(of) },
            run,
            report,
            &span(periods),
        ),
        Dashboard {
            id: "users",
            title: "User timeline",
            timeline: Some(lives::timeline(run, users, end_s)),
            ..Dashboard::default()
        },
        Dashboard {
            stills: spread::thresholds(run, &Goals::of_run(&run.manifest)),
            ..limiting(of, facts, report)
        },
        lateness::dashboard(run, report, &span(periods)),
        lateness::fidelity(report),
    ]
}

fn in_seconds(statistic: Option<Statistic>, figure: fn(&Statistic) -> f64) -> Option<f64> {
    statistic.as_ref().map(|statistic| figure(statistic) / 1e3)
}

fn performance(of: Of<'_, Period>, facts: Option<&UserFacts>, report: &Report) -> Dashboard {
    let limit = facts.map(|facts| facts.max_ttft_ns).filter(|limit| *limit > 0);
    let ttft = Chart {
        title: "TTFT".to_owned(),
        note: "seconds, by the period of the first token".to_owned(),
        series: vec![
            of.series("p50", SECONDS, Shape::Line, 0, |one| in_seconds(one.ttft_ms, |s| s.p50)),
            of.series("p95", SECONDS, Shape::Line, 1, |one| in_seconds(one.ttft_ms, |s| s.p95)),
            of.series("p99", SECONDS, Shape::Dashed, 2, |one| in_seconds(one.ttft_ms, |s| s.p99)),
        ],
        level: limit.map(|limit| ("Threshold".to_owned(), nanos(limit) / 1e9)),
        ..Chart::default()
    };
    let throughput = Chart {
        title: "Throughput".to_owned(),
        note: "tokens per second; input at its first token, output when it came".to_owned(),
        series: vec![
            of.series("input", PER_SECOND, Shape::Line, 0, |one| one.tokens.input_per_s),
            right(of.series("output", PER_SECOND, Shape::Line, 1, |one| one.tokens.output_per_s)),
        ],
        ..Chart::default()
    };
    let state = |value: u32| Some(f64::from(value));
    let users = Chart {
        title: "Users".to_owned(),
        note: "with sub-agents, by what they did in the period".to_owned(),
        series: vec![
            of.series("active", "", Shape::Bars, 3, |one| state(one.users.active)),
            of.series("idle", "", Shape::Bars, 5, |one| state(one.users.idle)),
            of.series("rate-limited", "", Shape::Bars, 1, |one| state(one.users.limited)),
            of.series("added by the ramp", "", Shape::Line, 4, |one| {
                one.ramp.map(|ramp| f64::from(ramp.added))
            }),
        ],
        ..Chart::default()
    };
    Dashboard {
        id: "performance",
        title: "Performance over time",
        note: whole_answers(report),
        charts: vec![ttft, throughput, users],
        ..Dashboard::default()
    }
}

/// What is to be said where some answers came in one piece.
fn whole_answers(report: &Report) -> String {
    let known = report.latency.ttft_ms.map_or(0, |ttft| ttft.count);
    let all = report.outcomes.ok;
    if known >= all {
        return String::new();
    }
    format!(
        "TTFT is of {known} of the {all} successful requests: the others were not streamed, as the \
         trace records them, and have no first token (--stream-all streams every request)."
    )
}

fn cache(of: Of<'_, Period>) -> Dashboard {
    let rates = Chart {
        title: "Cache hit rate".to_owned(),
        note: "% of input tokens, by the period of the first token".to_owned(),
        tops: [Some(100.0), None],
        series: vec![
            of.series("ideal (common prefix)", PERCENT, Shape::Area, 3, |one| {
                in_percent(one.cache.ideal_hit_rate)
            }),
            of.series("overlap of sets", PERCENT, Shape::Dashed, 2, |one| {
                in_percent(one.cache.ideal_set_overlap_rate)
            }),
            of.series("reported by the server", PERCENT, Shape::Line, 1, |one| {
                in_percent(one.cache.reported_hit_rate)
            }),
        ],
        ..Chart::default()
    };
    let activity = Chart {
        title: "Users and requests".to_owned(),
        note: "users at the period's end, requests that completed in it".to_owned(),
        series: vec![
            of.series("users", "", Shape::Bars, 0, |one| Some(f64::from(one.users.total))),
            right(of.series("requests", "", Shape::Line, 1, |one| Some(count(one.requests.ok)))),
            right(of.series("not successful", "", Shape::Line, 4, |one| {
                let failed = one.requests.ended.saturating_sub(one.requests.ok);
                (failed > 0).then(|| count(failed))
            })),
        ],
        ..Chart::default()
    };
    let mut charts = vec![rates, activity];
    if of.rows.iter().any(|one| one.ramp.is_some()) {
        charts.push(Chart {
            title: "Working set and new tokens".to_owned(),
            note: "tokens".to_owned(),
            series: vec![
                of.series("working set", " tokens", Shape::Area, 0, |one| {
                    one.ramp.map(|ramp| count(ramp.working_set_tokens))
                }),
                right(of.series("new input tokens", " tokens", Shape::Line, 1, |one| {
                    one.cache.ideal_hit_rate.map(|_known| count(one.cache.new_tokens))
                })),
            ],
            ..Chart::default()
        });
    }
    Dashboard {
        id: "cache",
        title: "Cache and user activity",
        note: String::new(),
        charts,
        ..Dashboard::default()
    }
}

fn limiting(of: Of<'_, Period>, facts: Option<&UserFacts>, report: &Report) -> Dashboard {
    let queue = Chart {
        title: "Queue depth and service rate".to_owned(),
        note: "users in back-off at the period's end; share of users that were served".to_owned(),
        tops: [None, Some(100.0)],
        series: vec![
            of.series("queue depth", " users", Shape::Bars, 1, |one| {
                Some(f64::from(one.users_at_end.limited))
            }),
            right(of.series("service rate", PERCENT, Shape::Line, 0, |one| {
                let all = one.users_present;
                let served = f64::from(one.users_with_requests);
                (all > 0).then(|| served / f64::from(all) * 100.0)
            })),
        ],
        ..Chart::default()
    };
    let mut charts = vec![queue];
    let has_budget = |facts: &UserFacts| {
        let limits = &facts.limits;
        limits.input_tokens_per_minute > 0 || limits.output_tokens_per_minute > 0
    };
    let budgeted = facts.is_some_and(has_budget);
    if budgeted {
        charts.push(budgets(of));
    }
    if of.rows.iter().any(|one| one.blocked_by_limits + one.blocked_by_budgets > 0) {
        charts.push(Chart {
            title: "Requests kept back".to_owned(),
            note: "times in the period, by what did it".to_owned(),
            series: vec![
                of.series("limits of requests, TTFT", "", Shape::Bars, 2, |one| {
                    Some(count(one.blocked_by_limits))
                }),
                of.series("token budgets", "", Shape::Bars, 1, |one| {
                    Some(count(one.blocked_by_budgets))
                }),
            ],
            ..Chart::default()
        });
    }
    charts.push(effective(of, report));
    let note = if budgeted { "" } else { "The run had no token budgets." };
    Dashboard {
        id: "limits",
        title: "Rate limiting",
        note: note.to_owned(),
        charts,
        ..Dashboard::default()
    }
}

fn budgets(of: Of<'_, Period>) -> Chart {
    Chart {
        title: "Token budgets".to_owned(),
        note: "how full each is at the period's end, %".to_owned(),
        tops: [Some(100.0), None],
        series: vec![
            of.series("output (OTPM)", PERCENT, Shape::Line, 1, |one| {
                in_percent(one.ramp.and_then(|ramp| ramp.output_budget_share))
            }),
            of.series("input (ITPM)", PERCENT, Shape::Line, 0, |one| {
                in_percent(one.ramp.and_then(|ramp| ramp.input_budget_share))
            }),
        ],
        ..Chart::default()
    }
}

fn effective(of: Of<'_, Period>, report: &Report) -> Chart {
    let limit_ms = report.users.as_ref().and_then(|users| users.slo.ttft_limit_ms);
    Chart {
        title: "Effective TTFT and goodput".to_owned(),
        note: "seconds, queue time included; share of requests that meet both goals".to_owned(),
        tops: [None, Some(100.0)],
        series: vec![
            right(of.series("effective goodput", PERCENT, Shape::Area, 3, |one| {
                let all = one.slo.of_requests;
                (all > 0).then(|| count(one.slo.effective_both) / count(all) * 100.0)
            })),
            of.series("mean", SECONDS, Shape::Line, 0, |one| {
                in_seconds(one.effective_ttft_ms, |s| s.mean)
            }),
            of.series("p95", SECONDS, Shape::Dashed, 1, |one| {
                in_seconds(one.effective_ttft_ms, |s| s.p95)
            }),
        ],
        level: limit_ms.map(|limit| ("SLO".to_owned(), limit / 1e3)),
    }
}

/// The table under the charts.
pub(super) fn numbers(periods: &[Period]) -> Numbers {
    let heads = vec![
        "period",
        "from",
        "users",
        "active",
        "idle",
        "limited",
        "added",
        "ok",
        "failed",
        "TTFT p50 s",
        "TTFT p95 s",
        "input tok/s",
        "output tok/s",
        "ideal hit",
        "reported hit",
        "goodput",
        "the ramp",
    ];
    let shown = |value: Option<f64>| value.map_or_else(|| "no data".to_owned(), number);
    let rate = |value: Option<f64>| value.map_or_else(|| "no data".to_owned(), percent);
    let row = |one: &Period| {
        let failed = one.requests.ended.saturating_sub(one.requests.ok);
        let goals = &one.slo;
        let good = (goals.of_requests > 0).then(|| count(goals.both) / count(goals.of_requests));
        let partial = if one.complete { "" } else { " (part)" };
        vec![
            format!("{}{partial}", one.number),
            time(nanos(one.start_ns) / 1e9, 1.0),
            one.users.total.to_string(),
            one.users.active.to_string(),
            one.users.idle.to_string(),
            one.users.limited.to_string(),
            one.ramp.map_or_else(|| "no data".to_owned(), |ramp| ramp.added.to_string()),
            one.requests.ok.to_string(),
            failed.to_string(),
            shown(in_seconds(one.ttft_ms, |s| s.p50)),
            shown(in_seconds(one.ttft_ms, |s| s.p95)),
            shown(one.tokens.input_per_s),
            shown(one.tokens.output_per_s),
            rate(one.cache.ideal_hit_rate),
            rate(one.cache.reported_hit_rate),
            rate(good),
            one.ramp.map_or_else(String::new, |ramp| ramp.reason.words().to_owned()),
        ]
    };
    Numbers { heads, rows: periods.iter().map(row).collect(), is_words: false }
}
