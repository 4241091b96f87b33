//! `summary_trace_replay.csv`: a row for every assessment period, the last partial one included.
//!
//! The tool's columns come first, under its names; ours follow. What each means is
//! [`crate::metrics::periods`]'s; here units are changed (milliseconds to seconds, shares to per
//! cent) and nothing else.

use super::cells::{Cell, Epoch};
use crate::log::UserFacts;
use crate::metrics::Statistic;
use crate::metrics::latency::count;
use crate::metrics::periods::Period;
use crate::units::RunNanos;

/// A row's period, and what it needs beside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'a> {
    period: &'a Period,
    facts: Option<&'a UserFacts>,
    epoch: Epoch,
    before: u32,
}

type Column = (&'static str, fn(&Row<'_>) -> Cell);

/// The tool's columns, in its order.
const COLUMNS: [Column; 48] = [
    ("period_number", |row| row.period.number.saturating_add(row.before).into()),
    ("start_time", |row| row.epoch.seconds(RunNanos(row.period.start_ns)).into()),
    ("end_time", |row| row.epoch.seconds(RunNanos(row.period.end_ns)).into()),
    ("active_users", |row| row.period.users_at_end.active.into()),
    ("idle_users", |row| row.period.users_at_end.idle.into()),
    ("users_with_requests", |row| row.period.users_with_requests.into()),
    ("requests_completed", |row| row.period.requests.ok.into()),
    ("requests_launched", |row| row.period.requests.sent.into()),
    ("requests_completed_new", |row| row.period.requests.ok_sent_in_period.into()),
    ("requests_completed_prior", |row| row.period.requests.ok_sent_before.into()),
    ("requests_in_progress", |row| row.period.requests.in_flight.into()),
    ("requests_in_progress_new", |row| row.period.requests.in_flight_sent_in_period.into()),
    ("requests_in_progress_prior", |row| row.period.requests.in_flight_sent_before.into()),
    ("requests_per_second", |row| row.period.requests.per_s.into()),
    ("input_tokens_per_second", |row| row.period.tokens.input_per_s.into()),
    ("output_tokens_per_second", |row| row.output_rate().into()),
    ("ttft_avg", |row| in_seconds(row.period.ttft_ms, |ttft| ttft.mean)),
    ("ttft_p50", |row| in_seconds(row.period.ttft_ms, |ttft| ttft.p50)),
    ("ttft_p95", |row| in_seconds(row.period.ttft_ms, |ttft| ttft.p95)),
    ("ttft_p99", |row| in_seconds(row.period.ttft_ms, |ttft| ttft.p99)),
    ("avg_cache_hit_rate", |row| row.period.cache.ideal_set_overlap_rate.into()),
    ("working_set_blocks", |row| row.working_set_blocks().into()),
    ("users_added", |row| row.period.ramp.map(|ramp| ramp.added).into()),
    ("users_completed", |row| row.period.users_completed.into()),
    ("total_request_time", |row| row.period.requests.prefilled_time_s.into()),
    ("idle_time_pct", |row| row.idle_percent().into()),
    ("new_tokens_ingested", |row| row.period.cache.new_tokens.into()),
    ("ttft_headroom_pct", |row| {
        let share = row.period.ramp.and_then(|ramp| ramp.headroom_share);
        share.map(|share| share.max(0.0) * 100.0).into()
    }),
    ("rate_limited_users", |row| row.period.users_at_end.limited.into()),
    ("rate_limit_events", |row| row.period.blocked_by_budgets.into()),
    ("admission_blocked_events", |row| row.period.blocked_by_limits.into()),
    ("dispatch_delay_avg", |row| in_seconds(row.period.queue_ms, |queue| queue.mean)),
    ("dispatch_delay_max", |row| in_seconds(row.period.queue_ms, |queue| queue.max)),
    ("in_flight_prefilling", |row| row.period.requests.prefilling.into()),
    ("in_flight_decoding", |row| row.period.requests.decoding.into()),
    ("goodput_pct", |row| row.goal_percent(row.period.slo.both).into()),
    ("goodput_ttft_pct", |row| row.goal_percent(row.period.slo.ttft).into()),
    ("goodput_decode_pct", |row| row.goal_percent(row.period.slo.decode).into()),
    ("queue_depth", |row| row.period.users_at_end.limited.into()),
    ("otpm_bucket_pct", |row| {
        let known = row.period.ramp.and_then(|ramp| ramp.output_budget_share);
        row.bucket_percent(known, |facts| facts.limits.output_tokens_per_minute)
    }),
    ("itpm_bucket_pct", |row| {
        let known = row.period.ramp.and_then(|ramp| ramp.input_budget_share);
        row.bucket_percent(known, |facts| facts.limits.input_tokens_per_minute)
    }),
    ("avg_decode_tps_per_user", |row| row.period.tokens.output_per_s_per_decoding.into()),
    ("effective_ttft_avg", |row| in_seconds(row.period.effective_ttft_ms, |ttft| ttft.mean)),
    ("effective_ttft_p50", |row| in_seconds(row.period.effective_ttft_ms, |ttft| ttft.p50)),
    ("effective_ttft_p95", |row| in_seconds(row.period.effective_ttft_ms, |ttft| ttft.p95)),
    ("service_rate", |row| {
        let (served, all) = (row.period.users_with_requests, row.period.users_present);
        percent(served.into(), all.into()).into()
    }),
    ("requests_per_user_per_min", |row| row.period.requests.per_user_per_min.into()),
    ("goodput_effective_pct", |row| row.goal_percent(row.period.slo.effective_both).into()),
];

/// Ours, behind them.
const MORE: [Column; 15] = [
    ("complete", |row| row.period.complete.into()),
    ("users_in_period_active", |row| row.period.users.active.into()),
    ("users_in_period_idle", |row| row.period.users.idle.into()),
    ("users_in_period_rate_limited", |row| row.period.users.limited.into()),
    ("users_started", |row| row.period.users_started.into()),
    ("subagents_started", |row| row.period.agents_started.into()),
    ("users_truncated", |row| row.period.users_truncated.into()),
    ("requests_failed", |row| row.failed().into()),
    ("ideal_hit_rate", |row| row.period.cache.ideal_hit_rate.into()),
    ("reported_hit_rate", |row| row.period.cache.reported_hit_rate.into()),
    ("subagent_wait_avg", |row| in_seconds(row.period.agent_wait_ms, |wait| wait.mean)),
    ("lateness_p99_us", |row| row.period.lateness_us.map(|late| late.p99).into()),
    ("ramp_ttft", |row| {
        row.period.ramp.and_then(|ramp| ramp.ttft_ms).map(|ttft| ttft / 1e3).into()
    }),
    ("ramp_reason", |row| row.period.ramp.map(|ramp| ramp.reason.words()).into()),
    ("working_set_tokens", |row| row.period.ramp.map(|ramp| ramp.working_set_tokens).into()),
];

/// The heads of all columns.
pub(super) fn heads() -> impl Iterator<Item = &'static str> {
    COLUMNS.iter().chain(&MORE).map(|(name, _value)| *name)
}

/// Every row; `before` periods were in the table already.
pub(super) fn rows<'a>(
    periods: &'a [Period],
    facts: Option<&'a UserFacts>,
    epoch: Epoch,
    before: u32,
) -> impl Iterator<Item = Vec<Cell>> + 'a {
    periods.iter().map(move |period| {
        let row = Row { period, facts, epoch, before };
        COLUMNS.iter().chain(&MORE).map(|(_name, value)| value(&row)).collect()
    })
}

fn in_seconds(statistic: Option<Statistic>, figure: fn(&Statistic) -> f64) -> Cell {
    statistic.as_ref().map(|statistic| figure(statistic) / 1e3).into()
}

fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| count(part) / count(whole) * 100.0)
}

impl Row<'_> {
    /// Also of a period in which no prefill ended and the streams before it went on: what is summed
    /// over all rows is the run's.
    fn output_rate(&self) -> Option<f64> {
        let tokens = &self.period.tokens;
        let streamed = || (tokens.output > 0.0).then_some(tokens.output);
        tokens.output_per_s.or_else(|| Some(streamed()? / self.period.seconds()?))
    }

    fn working_set_blocks(&self) -> Option<u64> {
        let chunk = self.facts.map_or(0, |facts| facts.prompts.chunk_tokens);
        self.period.ramp?.working_set_tokens.checked_div(u64::from(chunk))
    }

    /// How much of the time of the users that are there at its end no request was in flight.
    fn idle_percent(&self) -> Option<f64> {
        let users = f64::from(self.period.users_at_end.total);
        let time_s = self.period.seconds()? * users;
        (time_s > 0.0).then(|| (1.0 - self.period.requests.in_flight_s / time_s).max(0.0) * 100.0)
    }

    fn failed(&self) -> u64 {
        self.period.requests.ended.saturating_sub(self.period.requests.ok)
    }

    fn goal_percent(&self, met: u64) -> Option<f64> {
        percent(met, self.period.slo.of_requests)
    }

    /// How full a budget is. One that there is not is full, as the tool has it.
    fn bucket_percent(&self, known: Option<f64>, budget: fn(&UserFacts) -> u64) -> Cell {
        let none = self.facts.is_some_and(|facts| budget(facts) == 0);
        known.map(|share| share * 100.0).or(none.then_some(100.0)).into()
    }
}
