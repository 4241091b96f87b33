//! What stands above the charts: the run's facts, and its numbers as the end-of-test summary has
//! them.
//!
//! Every number is the report's; here it only gets digits and words. What is not known is left out
//! or said, never shown as zero.

use jiff::Timestamp;

use super::page::{Card, Verdict};
use crate::counted::{counted, grouped};
use crate::log::Class;
use crate::metrics::Statistic;
use crate::metrics::gate::Judged;
use crate::metrics::report::Report;
use crate::metrics::stopped;
use crate::metrics::tokens::length_hint;
use crate::metrics::users::UsersReport;
use crate::quantity::{TimeUnit, duration, duration_us};
use crate::run::{End, Run, State};

/// A number with the digits that people read.
pub(super) fn number(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 1_000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    match text.parse::<u64>() {
        Ok(whole) if decimals == 0 => grouped(whole),
        _ => text,
    }
}

/// A share as per cent.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A statistic of milliseconds, in the unit that fits its mean.
fn lengths(statistic: Option<Statistic>) -> Option<String> {
    let Statistic { mean, p50, p95, max, .. } = statistic?;
    let unit = TimeUnit::fitting(mean * 1e6);
    let [mean, p50, p95, max] = [mean, p50, p95, max].map(|ms| number(ms * 1e6 / unit.nanos()));
    Some(format!("{mean} / {p50} / {p95} / {max} {}", unit.sign()))
}

/// The page's title.
pub(super) fn title(run: &Run) -> String {
    let manifest = &run.manifest;
    format!("{} · {}", manifest.trace.name, manifest.model)
}

/// The line under it.
pub(super) fn lead(run: &Run, report: &Report) -> String {
    let started = run.started_unix_ns();
    let time = Timestamp::from_nanosecond(i128::from(started)).ok().filter(|_| started > 0);
    let time = time.map_or_else(
        || "start unknown".to_owned(),
        |time| time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
    );
    let length = report.run.duration_s.map(|s| format!(" · {} s", number(s))).unwrap_or_default();
    let ended = match run.state {
        State::Finished => String::new(),
        State::Interrupted => {
            stopped::by_whom(report).map_or_else(String::new, |how| format!(" · {how}"))
        }
        State::Unfinished { .. } => {
            " · the log has no end: the run was killed or goes on".to_owned()
        }
    };
    let targets = run.manifest.targets.join(", ");
    format!("{targets}{} · {time}{length}{ended}", run.manifest.endpoint)
}

/// Whether the measurement is valid.
pub(super) fn verdict(report: &Report) -> Verdict {
    let schedule = &report.schedule;
    let held = report.verdict.schedule_held;
    let late = schedule.lateness_outside_stalls_us.map_or_else(String::new, |late| {
        let (late, limit) = (duration(late.p99 * 1e3), duration_us(report.notes.max_lateness_us));
        format!("; p99 lateness {late} outside host stalls (limit {limit})")
    });
    let sent = counted(schedule.sent, "request");
    let of = match report.users {
        Some(_) => format!("{sent} sent"),
        None => format!("{sent} of {} sent", grouped(schedule.planned)),
    };
    let word = if held { "held" } else { "NOT held" };
    let left_out = report.verdict.left_out.words(held);
    let words = format!("Schedule {word}{left_out}: {of}{late}");
    Verdict { held, words, reasons: report.verdict.reasons.clone() }
}

/// What became of gates; `None` where there were none.
pub(super) fn gates(report: &Report) -> Option<Verdict> {
    let judged = &report.gates;
    let failed = judged.iter().filter(|one| one.failed).count() as u64;
    let all = counted(judged.len() as u64, "gate");
    let words = match failed {
        0 => format!("Passed: {all}"),
        _ => format!("FAILED: {} of {all}", grouped(failed)),
    };
    let said = |one: &Judged| {
        let word = if one.failed { "FAIL" } else { "pass" };
        format!("{word} {}: {}", one.gate, one.words)
    };
    let reasons = judged.iter().map(said).collect();
    (!judged.is_empty()).then_some(Verdict { held: failed == 0, words, reasons })
}

/// What a reader must know beside the numbers.
pub(super) fn notes(report: &Report) -> Vec<String> {
    let warnings = report.notes.warnings.iter().map(|words| format!("Warning: {words}"));
    let warnings = warnings.chain(length_hint(report).map(str::to_owned));
    let errors = report.notes.first_errors.iter();
    warnings.chain(errors.map(|(class, words)| format!("First {class}: {words}"))).collect()
}

/// Every table above the charts.
pub(super) fn cards(run: &Run, report: &Report) -> Vec<Card> {
    let mut cards = vec![facts(run, report), outcomes(report), latency(report)];
    if let Some(users) = &report.users {
        cards.push(population(run, users));
        cards.push(compliance(users));
    } else {
        cards.push(goals(report));
    }
    cards.push(throughput(report));
    cards
}

fn facts(run: &Run, report: &Report) -> Card {
    let manifest = &run.manifest;
    let mut card = Card::new("Run");
    card.add("Run", manifest.run_id.clone());
    let rows = counted(manifest.trace.rows, "row");
    card.add("Trace", format!("{} ({}, {rows})", manifest.trace.name, manifest.trace.format));
    card.add("Mode", manifest.mode.clone());
    card.add("Model", manifest.model.clone());
    let cores = counted(manifest.cores.len() as u64, "core");
    card.add("Sent from", format!("{cores} of {}", manifest.host.hostname));
    card.add("Seed", manifest.seed.to_string());
    if let Some(duration_s) = report.run.duration_s {
        card.add("Duration, drain included", format!("{} s", number(duration_s)));
    }
    card.add("Onbeat", manifest.onbeat_version.clone());
    card
}

fn outcomes(report: &Report) -> Card {
    let outcomes = &report.outcomes;
    let mut card = Card::new("Requests");
    card.add("Sent", grouped(report.schedule.sent));
    card.add("Successful", grouped(outcomes.ok));
    card.add("Failed", grouped(outcomes.failed()));
    let without = [End::Open, End::NotReached, End::Lost].map(End::name);
    // What the plan cancelled has a line of its own.
    let others = ["ok", Class::CancelledByPlan.name()];
    let words = |name: &str| !others.contains(&name) && !without.contains(&name);
    for (class, count) in outcomes.by_class.iter().filter(|(name, _)| words(name)) {
        card.add(format!("  {class}"), grouped(*count));
    }
    card.add("Connection errors", grouped(outcomes.connect_error));
    let planned = outcomes.by_class.get(Class::CancelledByPlan.name()).copied().unwrap_or(0);
    if planned > 0 {
        card.add("Cancelled as planned", grouped(planned));
    }
    let cut = outcomes.cancelled.saturating_sub(planned) + report.notes.open;
    if cut > 0 {
        card.add("Cut off at the end", grouped(cut));
    }
    if outcomes.never_sent > 0 {
        card.add("Never sent", grouped(outcomes.never_sent));
    }
    if report.notes.lost > 0 {
        card.add("Not known: the log is incomplete", grouped(report.notes.lost));
    }
    card
}

fn latency(report: &Report) -> Card {
    let mut card = Card::new("Latency, mean / p50 / p95 / max");
    let latency = &report.latency;
    let users = report.users.as_ref();
    let rows = [
        ("TTFT", lengths(latency.ttft_ms)),
        ("Effective TTFT", users.and_then(|users| lengths(users.effective_ttft_ms))),
        ("Queue time", users.and_then(|users| lengths(users.queue_ms))),
        ("Wait for sub-agents", users.and_then(|users| lengths(users.agent_wait_ms))),
        ("Time between tokens", lengths(latency.itl_ms)),
        ("End to end", lengths(latency.e2e_ms)),
    ];
    for (name, value) in rows {
        if let Some(value) = value {
            card.add(name, value);
        }
    }
    if card.rows.is_empty() {
        card.add("No successful request", "no data");
    }
    card
}

fn population(run: &Run, users: &UsersReport) -> Card {
    let mut card = Card::new("Users");
    card.add("Users created", grouped(users.users));
    card.add("Sub-agents", grouped(users.agents));
    card.add("Peak, with sub-agents", grouped(users.peak_users));
    let ends = [users.completed, users.truncated, users.stopped].map(grouped).join(" / ");
    card.add("Completed, truncated, stopped", ends);
    if users.advanced > 0 {
        card.add("Advanced", grouped(users.advanced));
    }
    if users.recycled > 0 {
        card.add("Playing a conversation again", grouped(users.recycled));
    }
    let kept: u64 = users.limited.values().sum();
    card.add("Rate-limit events", grouped(kept));
    for (by, count) in &users.limited {
        card.add(format!("  {by}"), grouped(*count));
    }
    if users.over_budget_requests > 0 {
        card.add("Dearer than a whole budget", grouped(users.over_budget_requests));
    }
    if let Some(tokens) = users.peak_working_set_tokens {
        card.add("Peak working set", format!("{} tokens", grouped(tokens)));
    }
    if let Some(tokens) = users.warm_prefix_tokens {
        let share = run.manifest.users.as_ref().map(|facts| facts.prompts.warm_prefix_share);
        let share = share.map(|share| format!(" ({})", percent(share)));
        card.add("Warm prefix", format!("{} tokens{}", grouped(tokens), share.unwrap_or_default()));
    }
    if let Some(count) = users.clamped_think_times.filter(|count| *count > 0) {
        card.add("Think times cut to their gap", grouped(count));
    }
    card
}

fn compliance(users: &UsersReport) -> Card {
    let slo = &users.slo;
    let mut card = Card::new("SLO compliance");
    let counts = &slo.counts;
    if let Some(limit) = slo.ttft_limit_ms {
        card.add("Goal: TTFT", format!("≤ {}", duration(limit * 1e6)));
    }
    if let Some(limit) = slo.decode_limit_tokens_per_s {
        card.add("Goal: decode", format!("≥ {} tok/s", number(limit)));
    }
    for (name, met, share) in [
        ("TTFT met", counts.ttft, slo.ttft_share),
        ("Decode met", counts.decode, slo.decode_share),
        ("Goodput (both)", counts.both, slo.goodput_share),
        ("Effective TTFT met", counts.effective_ttft, slo.effective_ttft_share),
        ("Effective goodput", counts.effective_both, slo.effective_goodput_share),
    ] {
        let of = format!("{}/{}", grouped(met), grouped(counts.of_requests));
        let share = share.map_or_else(|| "no data".to_owned(), percent);
        card.add(name, format!("{of} ({share})"));
    }
    if counts.without_ttft > 0 {
        card.add("Without a first token", format!("{} more", grouped(counts.without_ttft)));
    }
    card
}

fn goals(report: &Report) -> Card {
    let slo = &report.slo;
    let mut card = Card::new("Goals");
    for (name, limit) in &slo.goals {
        let met = slo.met.get(name).and_then(|met| Some((met.count, met.share?)));
        let met = met.map(|(count, share)| format!(": {} ({})", grouped(count), percent(share)));
        card.add(format!("{name} {}", number(*limit)), {
            met.map_or_else(|| "no data".to_owned(), |met| met.trim_start_matches(": ").to_owned())
        });
    }
    if let (Some(requests), Some(share)) = (slo.goodput_requests, slo.goodput_share) {
        card.add("Goodput", format!("{} ({})", grouped(requests), percent(share)));
    }
    if let Some(share) = slo.effective_goodput_share {
        card.add("Effective goodput", percent(share));
    }
    card
}

fn throughput(report: &Report) -> Card {
    let mut card = Card::new("Throughput and cache");
    let rates = &report.throughput;
    for (name, value) in [
        ("Requests", rates.requests_per_s.map(|rate| format!("{}/s", number(rate)))),
        ("Input", rates.input_tokens_per_s.map(|rate| format!("{} tok/s", number(rate)))),
        ("Output", rates.output_tokens_per_s.map(|rate| format!("{} tok/s", number(rate)))),
        ("Most in flight", rates.peak_in_flight.map(grouped)),
    ] {
        card.add(name, value.unwrap_or_else(|| "no data".to_owned()));
    }
    let users = report.users.as_ref().map(|users| &users.cache);
    let rate = |of: Option<f64>| of.map_or_else(|| "no data".to_owned(), percent);
    let ideal = users.map_or(report.cache.ideal_hit_rate, |cache| cache.ideal_hit_rate);
    let overlap =
        users.map_or(report.cache.ideal_set_overlap_rate, |cache| cache.ideal_set_overlap_rate);
    card.add("Ideal cache hit rate", rate(ideal));
    if users.is_some() {
        card.add("  as the overlap of sets", rate(overlap));
    }
    let answers = counted(report.cache.requests_reporting, "answer");
    let of = report.cache.reported_hit_rate.map_or_else(String::new, |_| format!(" in {answers}"));
    card.add("Reported by the server", rate(report.cache.reported_hit_rate) + &of);
    if let Some(users) = &report.users {
        card.add("New input tokens", grouped(users.cache.new_tokens));
    }
    card
}
