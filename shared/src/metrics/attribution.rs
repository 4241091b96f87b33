//! Puts every request, token and decision of a user-driven run into its one assessment period.
//!
//! The rules are those of [`mod@super::periods`]. Requests that are in flight over many periods
//! cost no more than others: what holds at the end of periods is summed from where it begins and
//! ends. Nothing here depends on the order of requests.

use super::goal::{Goal, GoalKind};
use super::latency::{Metric, count, effective_ttft_ns, nanos, span, ttft_ns};
use super::lateness::lateness_ns;
use super::periods::{GoalCounts, Period, PeriodCache, RampFacts};
use super::quantile::Collector;
use super::slo::Goals;
use super::states;
use super::throughput::last_stamp;
use super::tokens;
use crate::log::{Assessment, StepFlags};
use crate::run::{Left, Run, User, Users};
use crate::units::{RequestIndex, RunNanos};

/// A run that claims more periods than this is cut there; the last one holds the rest. A week of
/// the usual ones, at about two kilobytes each: a damaged log must not take all memory.
const PERIODS_MAX: usize = 20_000;

/// The goals of the end-of-test summary; `None` is met by all.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UserGoals {
    /// `--slo-ttft`, in milliseconds.
    pub ttft_ms: Option<f64>,
    /// `--slo-decode-tps`, in tokens per second.
    pub decode_tokens_per_s: Option<f64>,
}

impl UserGoals {
    /// The run's own.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        let goals = run.manifest.users.as_ref().map(|facts| &facts.goals);
        Self {
            ttft_ms: goals.and_then(|goals| goals.ttft_ns).map(|limit| nanos(limit) / 1e6),
            decode_tokens_per_s: goals.and_then(|goals| goals.decode_tokens_per_s),
        }
    }

    /// The same, but for goals on TTFT and decode speed among others.
    #[must_use]
    pub fn or(mut self, goals: Option<&Goals>) -> Self {
        for goal in goals.map_or(&[][..], Goals::list) {
            match goal.kind {
                GoalKind::AtMost(Metric::Ttft) => self.ttft_ms = Some(goal.limit),
                GoalKind::DecodeSpeed => self.decode_tokens_per_s = Some(goal.limit),
                _ => {}
            }
        }
        self
    }

    /// Counts a successful request; one without a first token is in none of the counts.
    pub(super) fn count(&self, run: &Run, i: usize, counts: &mut GoalCounts) {
        let Some(ttft) = ttft_ns(run, i).map(nanos) else {
            counts.without_ttft += 1;
            return;
        };
        let within = |value: f64| self.ttft_ms.is_none_or(|limit| value <= limit * 1e6);
        let ttft = within(ttft);
        let effective = effective_ttft_ns(run, i).map(nanos).is_some_and(within);
        let decode = self
            .decode_tokens_per_s
            .is_none_or(|limit| Goal { kind: GoalKind::DecodeSpeed, limit }.is_met(run, i, false));
        counts.of_requests += 1;
        counts.ttft += u64::from(ttft);
        counts.decode += u64::from(decode);
        counts.both += u64::from(ttft && decode);
        counts.effective_ttft += u64::from(effective);
        counts.effective_both += u64::from(effective && decode);
    }
}

/// Whether anything of request `i`'s answer counts: it has a token, whatever became of it then, or
/// it is a success without one. The server has done that work in a period, also for an answer that
/// breaks off or that the end of the run cuts.
pub(super) fn is_answered(run: &Run, i: usize) -> bool {
    run.requests.first_token(i).is_some() || run.requests.is_ok(i)
}

/// When a user-driven run ends: with the last thing that the log says of requests, users or the
/// ramp. Not before its zero.
#[must_use]
pub fn end(run: &Run, users: &Users) -> RunNanos {
    let requests = (0..run.requests.len()).filter_map(|i| last_stamp(run, i));
    let events = users.users.iter().flat_map(|user| [user.started, user.ended]).flatten();
    let limits = users.limits.iter().map(|limit| limit.time);
    let ramp = users.assessments.iter().map(|assessment| assessment.time);
    requests.chain(events).chain(limits).chain(ramp).max().unwrap_or(RunNanos(0)).max(RunNanos(0))
}

/// The assessment periods of a run, by time. None if it is not driven by users, its log does not
/// say how long a period is, or nothing happened.
#[must_use]
pub fn periods(run: &Run, goals: UserGoals) -> Vec<Period> {
    let length = run.manifest.users.as_ref().map_or(0, |facts| facts.period_ns);
    let Some(users) = run.users.as_ref().filter(|_| length > 0) else { return Vec::new() };
    let end = without_tail(run, users, end(run, users).0, length);
    if end == 0 {
        return Vec::new();
    }
    let whole = usize::try_from((end - 1) / length).unwrap_or(PERIODS_MAX) + 1;
    let mut grid = Grid::new(length, end, whole.min(PERIODS_MAX));
    for i in 0..run.requests.len() {
        grid.request(run, i);
        if is_answered(run, i) {
            grid.answer(run, i);
        }
        if run.requests.is_ok(i) {
            let ended = last_stamp(run, i).map_or(0, |end| grid.of(end));
            goals.count(run, i, &mut grid.tallies[ended].period.slo);
        }
    }
    for limit in &users.limits {
        let period = grid.of(limit.time);
        let blocked = &mut grid.tallies[period].period;
        if limit.by.is_budget() {
            blocked.blocked_by_budgets += 1;
        } else {
            blocked.blocked_by_limits += 1;
        }
    }
    grid.lives(users);
    grid.decisions(&users.assessments);
    states::fill(run, users, &mut grid);
    grid.finish()
}

/// The end of the last period: `end`, or the boundary right before it when nothing happened behind
/// that but that the run was wound up.
fn without_tail(run: &Run, users: &Users, end: i64, length: i64) -> i64 {
    /// Winding a run up takes less.
    const TAIL_NS: i64 = 100_000_000;
    let boundary = end / length * length;
    if boundary == 0 || end - boundary > TAIL_NS {
        return end;
    }
    let is_behind = |time: RunNanos| time.0 > boundary;
    let own_end = |user: &User| user.ended.filter(|_| user.left != Some(Left::Stopped));
    let asked = (0..run.requests.len()).filter_map(|i| last_stamp(run, i)).any(is_behind);
    let lived = |user: &User| user.started.into_iter().chain(own_end(user)).any(is_behind);
    let limited = users.limits.iter().any(|limit| is_behind(limit.time));
    if asked || limited || users.users.iter().any(lived) { end } else { boundary }
}

/// The periods so far.
pub(super) struct Grid {
    length: i64,
    end: i64,
    pub(super) tallies: Vec<Tally>,
    /// By how much more requests are in flight at the end of a period than at that of the one
    /// before; one place longer than the periods.
    flight: Vec<i64>,
    /// The same for requests without a token.
    prefill: Vec<i64>,
    /// The same for requests that are in flight all through a period.
    through: Vec<i64>,
}

/// One period so far.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) period: Period,
    ttft: Collector,
    effective: Collector,
    queue: Collector,
    lateness: Collector,
    agents: Collector,
    /// Sessions with a first token.
    prefilled: Vec<u32>,
    cache: CacheSums,
}

/// Sums over requests whose first token came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CacheSums {
    requests: u64,
    ideal: [u64; 2],
    set: [u64; 2],
    reported: [u64; 2],
    reporting: u64,
    compared: [u64; 2],
}

impl CacheSums {
    /// Adds a request.
    pub(super) fn add(&mut self, run: &Run, i: usize) {
        let row = &run.plan[i];
        let requests = &run.requests;
        let mut pair =
            |sums: fn(&mut Self) -> &mut [u64; 2], part: Option<u32>, of: Option<u32>| {
                if let (Some(part), Some(of)) = (part, of) {
                    let sums = sums(self);
                    sums[0] += u64::from(part);
                    sums[1] += u64::from(of);
                }
            };
        pair(|sums| &mut sums.ideal, row.ideal_cached_tokens, row.input_tokens);
        pair(|sums| &mut sums.set, row.ideal_set_tokens, row.input_tokens);
        pair(|sums| &mut sums.reported, requests.cached_tokens(i), requests.prompt_tokens(i));
        pair(|sums| &mut sums.compared, requests.cached_tokens(i), row.ideal_cached_tokens);
        self.requests += 1;
        self.reporting += u64::from(requests.cached_tokens(i).is_some());
    }

    /// What they say.
    pub(super) fn facts(&self) -> PeriodCache {
        let share = |[part, of]: [u64; 2]| (of > 0).then(|| count(part) / count(of));
        let [cached, of] = self.ideal;
        PeriodCache {
            ideal_cached_tokens: cached,
            ideal_of_tokens: of,
            new_tokens: of.saturating_sub(cached),
            ideal_hit_rate: share(self.ideal),
            ideal_set_overlap_rate: share(self.set),
            reported_hit_rate: share(self.reported),
            requests_reporting: self.reporting,
            compared_cached_tokens: self.compared[0],
            compared_ideal_tokens: self.compared[1],
        }
    }
}

impl Grid {
    fn new(length: i64, end: i64, periods: usize) -> Self {
        let tally = |at: usize| {
            let start = i64::try_from(at).unwrap_or(i64::MAX).saturating_mul(length);
            let whole = start.saturating_add(length);
            let end = if at + 1 == periods { end } else { whole };
            let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
            let complete = end == whole;
            let period =
                Period { number, start_ns: start, end_ns: end, complete, ..Period::default() };
            Tally { period, ..Tally::default() }
        };
        Self {
            length,
            end,
            tallies: (0..periods).map(tally).collect(),
            flight: vec![0; periods + 1],
            prefill: vec![0; periods + 1],
            through: vec![0; periods + 1],
        }
    }

    /// The place of the period that holds an instant; what lies outside goes to the nearest.
    pub(super) fn of(&self, time: RunNanos) -> usize {
        let place = usize::try_from(time.0.max(0) / self.length).unwrap_or(usize::MAX);
        place.min(self.tallies.len() - 1)
    }

    /// What belongs to a request's sending and end.
    fn request(&mut self, run: &Run, i: usize) {
        let requests = &run.requests;
        let Some(sent) = requests.sent(i) else { return };
        let at = self.of(sent);
        let tally = &mut self.tallies[at];
        tally.period.requests.sent += 1;
        tally.queue.extend(queue_ns(run, i).map(nanos));
        tally.lateness.extend(lateness_ns(run, i).map(nanos));
        tally.agents.extend(agent_wait_ns(run, i).map(nanos));
        let done = requests.done(i);
        let ended = done.map_or(self.tallies.len(), |done| self.of(done).max(at));
        let token = requests.first_token(i);
        let decodes = token.map_or(ended, |token| self.of(token).max(at)).min(ended);
        step(&mut self.flight, at, ended);
        step(&mut self.prefill, at, decodes);
        if ended > at {
            self.tallies[at].period.requests.in_flight_sent_in_period += 1;
        }
        self.time_in_flight(sent.0, done.map_or(self.end, |done| done.0));
        let Some(done) = done else { return };
        let ended = self.of(done);
        let counts = &mut self.tallies[ended].period.requests;
        counts.ended += 1;
        if requests.is_ok(i) {
            counts.ok += 1;
            if ended == at {
                counts.ok_sent_in_period += 1;
            } else {
                counts.ok_sent_before += 1;
            }
        }
    }

    fn time_in_flight(&mut self, from: i64, to: i64) {
        let (first, last) = (self.of(RunNanos(from)), self.of(RunNanos(to)));
        let seconds = |length: i64| nanos(length.max(0)) / 1e9;
        if first >= last {
            self.tallies[first].period.requests.in_flight_s += seconds(to.saturating_sub(from));
            return;
        }
        let (before, after) = (&self.tallies[first].period, &self.tallies[last].period);
        let parts = [before.end_ns.saturating_sub(from), to.saturating_sub(after.start_ns)];
        self.tallies[first].period.requests.in_flight_s += seconds(parts[0]);
        self.tallies[last].period.requests.in_flight_s += seconds(parts[1]);
        step(&mut self.through, first + 1, last);
    }

    /// What belongs to an answered request's first token and its tokens.
    fn answer(&mut self, run: &Run, i: usize) {
        let requests = &run.requests;
        let Some(end) = last_stamp(run, i) else { return };
        let prefilled = self.of(requests.first_token(i).unwrap_or(end));
        let tally = &mut self.tallies[prefilled];
        tally.period.requests.prefilled += 1;
        let time = span(requests.sent(i), requests.done(i)).map_or(0.0, nanos);
        tally.period.requests.prefilled_time_s += time / 1e9;
        tally.period.tokens.input += tokens::prompt(run, i).unwrap_or(0);
        tally.ttft.extend(ttft_ns(run, i).map(nanos));
        tally.effective.extend(effective_ttft_ns(run, i).map(nanos));
        tally.prefilled.push(run.plan[i].session.0);
        tally.cache.add(run, i);
        let ended = self.of(end);
        let Some(weight) = tokens::per_chunk_token(run, i) else {
            // An answer that was not streamed arrived at its end.
            let all = count(tokens::completion(run, i).unwrap_or(0));
            self.tallies[ended].period.tokens.output += all;
            return;
        };
        // Events come in order: few periods are asked for.
        let row: Vec<(usize, u64)> = (run.chunks.row(i).iter())
            .map(|chunk| (self.of(chunk.time), u64::from(chunk.tokens)))
            .collect();
        for events in row.chunk_by(|a, b| a.0 == b.0) {
            let sum: u64 = events.iter().map(|event| event.1).sum();
            self.tallies[events[0].0].period.tokens.output += count(sum) * weight;
        }
    }

    /// Beginnings and ends of users.
    fn lives(&mut self, users: &Users) {
        for user in &users.users {
            if let Some(started) = user.started {
                let period = self.of(started);
                let period = &mut self.tallies[period].period;
                if user.parent.is_none() {
                    period.users_started += 1;
                } else {
                    period.agents_started += 1;
                }
            }
            if let (Some(ended), Some(left)) = (user.ended, user.left) {
                let period = self.of(ended);
                let period = &mut self.tallies[period].period;
                match left {
                    Left::Completed => period.users_completed += 1,
                    Left::Truncated => period.users_truncated += 1,
                    Left::Stopped => {}
                }
            }
        }
    }

    /// The ramp's decisions; of several about one period the first counts.
    fn decisions(&mut self, assessments: &[Assessment]) {
        for assessment in assessments {
            let at = (assessment.period as usize).checked_sub(1);
            if let Some(tally) = at.and_then(|at| self.tallies.get_mut(at)) {
                tally.period.ramp.get_or_insert_with(|| ramp_facts(assessment));
            }
        }
    }

    fn finish(self) -> Vec<Period> {
        let (mut flight, mut prefill, mut through) = (0, 0, 0);
        let steps = self.flight.iter().zip(&self.prefill).zip(&self.through);
        let mut periods = Vec::with_capacity(self.tallies.len());
        for (tally, ((more, waiting), all)) in self.tallies.into_iter().zip(steps) {
            (flight, prefill, through) = (flight + more, prefill + waiting, through + all);
            let mut period = tally.finish();
            let seconds = period.seconds();
            let whole = |sum: i64| u64::try_from(sum).unwrap_or(0);
            let requests = &mut period.requests;
            requests.in_flight = whole(flight);
            requests.in_flight_sent_before =
                requests.in_flight.saturating_sub(requests.in_flight_sent_in_period);
            requests.prefilling = whole(prefill);
            requests.decoding = whole(flight - prefill);
            requests.in_flight_s += count(whole(through)) * seconds.unwrap_or(0.0);
            rates(&mut period, seconds);
            periods.push(period);
        }
        periods
    }
}

impl Tally {
    fn finish(mut self) -> Period {
        let mut period = self.period;
        self.prefilled.sort_unstable();
        self.prefilled.dedup();
        period.users_with_requests = u32::try_from(self.prefilled.len()).unwrap_or(u32::MAX);
        period.ttft_ms = self.ttft.statistic(1e6);
        period.effective_ttft_ms = self.effective.statistic(1e6);
        period.queue_ms = self.queue.statistic(1e6);
        period.lateness_us = self.lateness.statistic(1e3);
        period.agent_wait_ms = self.agents.statistic(1e6);
        period.cache = self.cache.facts();
        period
    }
}

fn rates(period: &mut Period, seconds: Option<f64>) {
    let per_s = |sum: f64| seconds.map(|seconds| sum / seconds);
    let ok = count(period.requests.ok);
    period.requests.per_s = per_s(ok);
    let total = period.users.total;
    period.requests.per_user_per_min =
        per_s(ok).filter(|_| total > 0).map(|rate| rate / f64::from(total) * 60.0);
    let tokens = &mut period.tokens;
    let has_data = period.requests.prefilled > 0;
    tokens.input_per_s = per_s(count(tokens.input)).filter(|_| has_data);
    tokens.output_per_s = per_s(tokens.output).filter(|_| has_data);
    let decoding = period.requests.decoding;
    tokens.output_per_s_per_decoding =
        per_s(tokens.output).filter(|_| decoding > 0).map(|rate| rate / count(decoding));
}

/// One more from one place to before another.
fn step(steps: &mut [i64], from: usize, to: usize) {
    if from < to {
        steps[from] += 1;
        steps[to] -= 1;
    }
}

/// Ready − due of request `i`: how long admission kept it back. `None` if it never left.
#[must_use]
pub fn queue_ns(run: &Run, i: usize) -> Option<i64> {
    span(run.requests.due(i), run.requests.ready(i))
}

/// How long request `i` waited for sub-agents beyond its own think time; `None` if it did not wait
/// for them, or the log does not say since when it was ready by itself.
#[must_use]
pub fn agent_wait_ns(run: &Run, i: usize) -> Option<i64> {
    let users = run.users.as_ref()?;
    let due = run.requests.due(i)?;
    let row = &run.plan[i];
    let ready = match row.after.map(RequestIndex::as_usize) {
        Some(after) if run.plan.get(after).is_some_and(|other| other.session == row.session) => {
            let end = run.requests.done(after)?.0;
            let think = row.think_ns.unwrap_or(0);
            if users.flags(i).has(StepFlags::FROM_START) {
                end.max(run.requests.sent(after)?.0.saturating_add(think))
            } else {
                end.saturating_add(think)
            }
        }
        _ if row.turn == 0 => users.users.get(row.session.as_usize())?.started?.0,
        _ => return None,
    };
    due.0.checked_sub(ready).filter(|&wait| wait > 0)
}

fn ramp_facts(assessment: &Assessment) -> RampFacts {
    RampFacts {
        ttft_ms: assessment.ttft_ns.map(|ttft| nanos(ttft) / 1e6),
        headroom_share: assessment.headroom.map(f64::from),
        added: u32::from(assessment.added),
        reason: assessment.reason,
        users: assessment.users,
        in_flight: assessment.in_flight,
        good_periods: u32::from(assessment.good),
        exceeded_periods: u32::from(assessment.exceeded),
        required_periods: u32::from(assessment.required),
        ramps: u32::from(assessment.ramps),
        working_set_tokens: assessment.working_set_tokens,
        new_tokens: assessment.new_tokens,
        input_budget_share: assessment.input_budget.map(f64::from),
        output_budget_share: assessment.output_budget.map(f64::from),
        output_tokens_per_s: assessment.output_rate.map(f64::from),
    }
}
