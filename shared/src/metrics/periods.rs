//! A user-driven run in assessment periods: what was measured in each, exactly attributed.
//!
//! Periods are contiguous from the schedule's zero. Prompt tokens, TTFT and cache hits belong to
//! the period of the first token, output tokens to that of their content event, a request's end and
//! its goals to that of its end, its sending to that of its sending. So every request and every
//! token that came is in exactly one period, whatever became of the request later, and sums over
//! periods are the run's; the last one, which ends with the run, is there too. (The headline counts
//! tokens of successful requests only: [`super::throughput`].) An instant on an edge belongs to the
//! later period. What has no data is `None`, never 0.

use std::fmt;

use serde::Serialize;

use super::quantile::Statistic;

/// One assessment period.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Period {
    /// From 1.
    pub number: u32,
    /// Where it begins, from the schedule's zero.
    pub start_ns: i64,
    /// Where it ends; the last one with the run.
    pub end_ns: i64,
    /// Whether it has its whole length.
    pub complete: bool,
    /// Users (and sub-agents) present at its end, by what they did in it: limited at any time,
    /// else active (a request ended in it, or is in flight at its end), else idle.
    pub users: UserStates,
    /// The same users by their state at its end: in back-off, with a request in flight, or neither.
    pub users_at_end: UserStates,
    /// Users that were there at any time in it.
    pub users_present: u32,
    /// Users, not sub-agents, that started in it.
    pub users_started: u32,
    /// Sub-agents that started in it.
    pub agents_started: u32,
    /// Users and sub-agents that completed in it.
    pub users_completed: u32,
    /// Users and sub-agents that were truncated in it.
    pub users_truncated: u32,
    /// Users and sub-agents whose requests got their first token in it.
    pub users_with_requests: u32,
    /// Requests and their states.
    pub requests: PeriodRequests,
    /// Tokens.
    pub tokens: PeriodTokens,
    /// First token − sent, of requests whose first token came in it.
    pub ttft_ms: Option<Statistic>,
    /// Queue time + TTFT, of the same requests.
    pub effective_ttft_ms: Option<Statistic>,
    /// Queue time (ready − due: held back by admission), of requests sent in it.
    pub queue_ms: Option<Statistic>,
    /// Sent − ready (the engine's own lateness), of requests sent in it.
    pub lateness_us: Option<Statistic>,
    /// How long users waited for their sub-agents beyond their own think time, of requests sent in
    /// it that waited at all.
    pub agent_wait_ms: Option<Statistic>,
    /// Prefix cache, of requests whose first token came in it.
    pub cache: PeriodCache,
    /// Goals, of successful requests that ended in it.
    pub slo: GoalCounts,
    /// Times that a limit of requests or TTFT kept a user back in it (layer 1).
    pub blocked_by_limits: u64,
    /// Times that a token budget kept a user back in it (layer 2).
    pub blocked_by_budgets: u64,
    /// The ramp's decision at its end; `None` where the log has none.
    pub ramp: Option<RampFacts>,
}

/// Users by state; the three sum to the total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct UserStates {
    /// All of them.
    pub total: u32,
    /// Active.
    pub active: u32,
    /// Idle.
    pub idle: u32,
    /// Rate-limited.
    pub limited: u32,
}

/// Requests of one period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PeriodRequests {
    /// Sent in it (the tool's `requests_launched`).
    pub sent: u64,
    /// Ended in it, in any way.
    pub ended: u64,
    /// Of those, successful ones (the tool's `requests_completed`).
    pub ok: u64,
    /// Of the successful ones, those sent in it (`requests_completed_new`).
    pub ok_sent_in_period: u64,
    /// Of the successful ones, those sent earlier (`requests_completed_prior`).
    pub ok_sent_before: u64,
    /// In flight at its end (`requests_in_progress`).
    pub in_flight: u64,
    /// Of those, the ones sent in it (`requests_in_progress_new`).
    pub in_flight_sent_in_period: u64,
    /// Of those, the ones sent earlier (`requests_in_progress_prior`).
    pub in_flight_sent_before: u64,
    /// Of those in flight, the ones without a token (`in_flight_prefilling`).
    pub prefilling: u64,
    /// Of those in flight, the ones with a token (`in_flight_decoding`).
    pub decoding: u64,
    /// Requests whose first token came in it (a successful answer without any token counts at its
    /// end).
    pub prefilled: u64,
    /// Σ (end − sent) of those, in seconds (`total_request_time`).
    pub prefilled_time_s: f64,
    /// Σ over all requests of the time that they were in flight within it, in seconds; sums over
    /// periods are the run's.
    pub in_flight_s: f64,
    /// `ok` / length.
    pub per_s: Option<f64>,
    /// `ok` / users present at its end / length in minutes (`requests_per_user_per_min`).
    pub per_user_per_min: Option<f64>,
}

/// Tokens of one period, of all requests that got any, whatever became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PeriodTokens {
    /// Prompt tokens of requests whose first token came in it.
    pub input: u64,
    /// Output tokens that arrived in it.
    pub output: f64,
    /// `input` / length; `None` if no request completed its prefill in it.
    pub input_per_s: Option<f64>,
    /// `output` / length; `None` if no request completed its prefill in it.
    pub output_per_s: Option<f64>,
    /// (`output` / length) / requests decoding at its end (`avg_decode_tps_per_user`); `None` if
    /// there is none.
    pub output_per_s_per_decoding: Option<f64>,
}

/// Prefix cache of one period; `None` where no request completed its prefill in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PeriodCache {
    /// Σ ideal cached tokens: the longest prefix that an endless cache has.
    pub ideal_cached_tokens: u64,
    /// Input tokens of the requests of which that is known.
    pub ideal_of_tokens: u64,
    /// `ideal_of_tokens` − `ideal_cached_tokens` (`new_tokens_ingested`).
    pub new_tokens: u64,
    /// `ideal_cached_tokens` / `ideal_of_tokens`.
    pub ideal_hit_rate: Option<f64>,
    /// The same with blocks that the request before it of the same user had, in any place (the
    /// tool's `avg_cache_hit_rate`).
    pub ideal_set_overlap_rate: Option<f64>,
    /// Σ cached / Σ prompt tokens, over requests that report both.
    pub reported_hit_rate: Option<f64>,
    /// How many requests report cached tokens.
    pub requests_reporting: u64,
    /// Input tokens of those that report and whose ideal is known, cached as reported.
    pub compared_cached_tokens: u64,
    /// The ideal of the same requests; the difference is what the server's cache had lost.
    pub compared_ideal_tokens: u64,
}

/// Requests that meet the goals of the end-of-test summary. A goal that was not set is met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct GoalCounts {
    /// Successful requests with a first token.
    pub of_requests: u64,
    /// Successful requests whose answer came in one piece: their TTFT is not known, and they are in
    /// none of the other counts.
    pub without_ttft: u64,
    /// TTFT ≤ goal.
    pub ttft: u64,
    /// Decode time ≤ 0.1 s, or output tokens / decode time ≥ goal.
    pub decode: u64,
    /// Both (goodput).
    pub both: u64,
    /// Queue time + TTFT ≤ goal.
    pub effective_ttft: u64,
    /// That and decode (effective goodput).
    pub effective_both: u64,
}

/// A decision of the ramp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RampFacts {
    /// The TTFT that it compared.
    pub ttft_ms: Option<f64>,
    /// (limit − TTFT) / limit.
    pub headroom_share: Option<f64>,
    /// Users added (`users_added`; of this period's end).
    pub added: u32,
    /// Why.
    pub reason: crate::log::RampReason,
    /// Users and sub-agents that it had let in and not heard of as gone, before that. One on its
    /// way to its core is in this number and not in `users` of the period, those whom the log
    /// shows to have begun and not left.
    pub users: u32,
    /// Requests in flight.
    pub in_flight: u32,
    /// Good periods in a row.
    pub good_periods: u32,
    /// Bad periods in a row.
    pub exceeded_periods: u32,
    /// Good periods that the cooldown asks for.
    pub required_periods: u32,
    /// Ramps since the last cooldown.
    pub ramps: u32,
    /// Tokens of blocks that were used lately (`working_set_blocks` × block size).
    pub working_set_tokens: u64,
    /// What the period's budget of new tokens counts.
    pub new_tokens: u64,
    /// How full the budget of input tokens is, from 0 to 1 (`itpm_bucket_pct` / 100).
    pub input_budget_share: Option<f64>,
    /// The same of output tokens (`otpm_bucket_pct` / 100).
    pub output_budget_share: Option<f64>,
    /// Output tokens per second and request, if the ramp compares them.
    pub output_tokens_per_s: Option<f64>,
}

impl fmt::Display for UserStates {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { total, active, idle, limited } = self;
        write!(out, "Users: {total} total ({active} active, {idle} idle, {limited} rate-limited)")
    }
}

impl Period {
    /// Its length in seconds; `None` if that is not above zero.
    #[must_use]
    pub fn seconds(&self) -> Option<f64> {
        let length = self.end_ns.checked_sub(self.start_ns).filter(|&length| length > 0)?;
        Some(super::latency::nanos(length) / 1e9)
    }
}
