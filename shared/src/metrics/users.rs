//! What a user-driven run says of its users as a whole: the end-of-test summary's numbers.
//!
//! Sums are those of [`mod@super::periods`] over the whole run, by the same rules. Goals are of
//! successful requests whose first token is known; what is not known is counted beside them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::attribution::{CacheSums, UserGoals, agent_wait_ns, is_answered, queue_ns};
use super::latency::{count, effective_ttft_ns, nanos};
use super::periods::{GoalCounts, PeriodCache};
use super::quantile::{Collector, Statistic};
use crate::log::StepFlags;
use crate::run::{Left, Run, User};

/// Users of a run, and what became of them and their requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct UsersReport {
    /// Users that started.
    pub users: u64,
    /// Sub-agents that started.
    pub agents: u64,
    /// Most users and sub-agents at once.
    pub peak_users: u64,
    /// Users and sub-agents that played their list to the end.
    pub completed: u64,
    /// Users and sub-agents that ended at the context limit.
    pub truncated: u64,
    /// Users and sub-agents that the end of the run stopped.
    pub stopped: u64,
    /// Users that started with a later turn.
    pub advanced: u64,
    /// Users whose conversation the run had used before.
    pub recycled: u64,
    /// Ready − due: how long admission kept requests back, of all that left.
    pub queue_ms: Option<Statistic>,
    /// Queue time + TTFT, of successful requests whose first token is known.
    pub effective_ttft_ms: Option<Statistic>,
    /// How long users waited for their sub-agents, of requests that waited at all.
    pub agent_wait_ms: Option<Statistic>,
    /// Prefix cache, of requests with a first token, as in periods.
    pub cache: PeriodCache,
    /// Most tokens of the working set at the end of a period; null if the log has no decision of
    /// the ramp.
    pub peak_working_set_tokens: Option<u64>,
    /// The tokens that all users have in common.
    pub warm_prefix_tokens: Option<u64>,
    /// Think times that were cut to the gap they fill.
    pub clamped_think_times: Option<u64>,
    /// Goals and how many requests meet them.
    pub slo: UsersSlo,
    /// How often users were kept back, by what did it.
    pub limited: BTreeMap<&'static str, u64>,
    /// Requests dearer than a whole token budget, sent when it was full.
    pub over_budget_requests: u64,
    /// Requests in which recorded text stands for a reply that was empty, cut or failed.
    pub replaced_replies: u64,
}

/// Goals of the end-of-test summary; shares are of `counts.of_requests`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct UsersSlo {
    /// TTFT at most.
    pub ttft_limit_ms: Option<f64>,
    /// Decode speed at least.
    pub decode_limit_tokens_per_s: Option<f64>,
    /// Requests that meet them.
    pub counts: GoalCounts,
    /// TTFT met.
    pub ttft_share: Option<f64>,
    /// Decode met.
    pub decode_share: Option<f64>,
    /// Goodput (both).
    pub goodput_share: Option<f64>,
    /// Effective TTFT met.
    pub effective_ttft_share: Option<f64>,
    /// Effective goodput.
    pub effective_goodput_share: Option<f64>,
}

/// The users of a run; `None` if it is not driven by users.
#[must_use]
pub fn users(run: &Run, goals: UserGoals) -> Option<UsersReport> {
    let told = run.users.as_ref()?;
    let facts = run.manifest.users.as_deref();
    let all = &told.users;
    let tally = |has: &dyn Fn(&User) -> bool| all.iter().filter(|user| has(user)).count() as u64;
    let left = |how: Left| tally(&|user| user.left == Some(how));
    // Whoever has no end in a closed log was there when the run ended.
    let closed = run.footer.is_some();
    let remained = tally(&|user| user.left.is_none() && user.started.is_some() && closed);
    let is_user = |user: &User| user.parent.is_none();
    let [mut queue, mut effective, mut agents] = std::array::from_fn(|_| Collector::new());
    let mut cache = CacheSums::default();
    let mut counts = GoalCounts::default();
    let mut report = UsersReport {
        users: tally(&|user| is_user(user) && user.started.is_some()),
        agents: tally(&|user| !is_user(user) && user.started.is_some()),
        peak_users: peak(all),
        completed: left(Left::Completed),
        truncated: left(Left::Truncated),
        stopped: left(Left::Stopped) + remained,
        advanced: tally(&|user| is_user(user) && user.is_advanced(facts)),
        recycled: tally(&|user| is_user(user) && user.copy > 0),
        peak_working_set_tokens: told.assessments.iter().map(|a| a.working_set_tokens).max(),
        warm_prefix_tokens: facts.map(|facts| u64::from(facts.prompts.warm_prefix_tokens)),
        clamped_think_times: facts.map(|facts| facts.timing.clamped_think_times),
        ..UsersReport::default()
    };
    for i in 0..run.requests.len() {
        if !run.requests.was_sent(i) {
            continue;
        }
        queue.extend(queue_ns(run, i).map(nanos));
        agents.extend(agent_wait_ns(run, i).map(nanos));
        let flags = told.flags(i);
        report.over_budget_requests += u64::from(flags.has(StepFlags::OVER_BUDGET));
        report.replaced_replies += u64::from(flags.has(StepFlags::REPLY_REPLACED));
        if is_answered(run, i) {
            cache.add(run, i);
        }
        if run.requests.is_ok(i) {
            effective.extend(effective_ttft_ns(run, i).map(nanos));
            goals.count(run, i, &mut counts);
        }
    }
    for limit in &told.limits {
        *report.limited.entry(limit.by.name()).or_insert(0) += 1;
    }
    report.queue_ms = queue.statistic(1e6);
    report.effective_ttft_ms = effective.statistic(1e6);
    report.agent_wait_ms = agents.statistic(1e6);
    report.cache = cache.facts();
    report.slo = slo(goals, counts);
    Some(report)
}

fn slo(goals: UserGoals, counts: GoalCounts) -> UsersSlo {
    let of = counts.of_requests;
    let share = |met: u64| (of > 0).then(|| count(met) / count(of));
    UsersSlo {
        ttft_limit_ms: goals.ttft_ms,
        decode_limit_tokens_per_s: goals.decode_tokens_per_s,
        counts,
        ttft_share: share(counts.ttft),
        decode_share: share(counts.decode),
        goodput_share: share(counts.both),
        effective_ttft_share: share(counts.effective_ttft),
        effective_goodput_share: share(counts.effective_both),
    }
}

/// Most users at once. One that leaves makes room for one that starts at the same instant.
fn peak(users: &[User]) -> u64 {
    let mut steps: Vec<(i64, i64)> = Vec::new();
    for user in users {
        let Some(started) = user.started else { continue };
        steps.push((started.0, 1));
        steps.extend(user.ended.map(|ended| (ended.0.max(started.0), -1)));
    }
    steps.sort_unstable();
    let mut now = 0_i64;
    let highest = steps.into_iter().map(|(_, step)| {
        now += step;
        now
    });
    highest.max().map_or(0, |most| u64::try_from(most).unwrap_or(0))
}
