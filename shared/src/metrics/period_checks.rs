//! Checks of what is said of users and periods: by hand, against the tool's own figures, and as
//! properties of runs that nobody wrote by hand.

use proptest::prelude::{ProptestConfig, any, proptest};

use super::attribution::{UserGoals, agent_wait_ns, is_answered, periods, queue_ns};
use super::latency::{count, effective_ttft_ns, nanos};
use super::periods::{GoalCounts, Period};
use super::throughput::last_stamp;
use super::tokens;
use super::{ReportOptions, report, users};
use crate::log::sample::Sample;
use crate::log::sample_users::{self, Sent, empty, happens, sends};
use crate::log::{Class, LimitedBy, Record, StepFlags, UserEvent};
use crate::run::{Run, State};
use crate::units::{CoreIndex, RequestIndex, RunNanos, SessionIndex};

const MS: i64 = 1_000_000;
const SECOND: i64 = 1_000 * MS;

fn read(sample: &Sample) -> Run {
    Run::read(&sample.bytes()).expect("a log")
}

fn started() -> UserEvent {
    UserEvent::Started { template: SessionIndex(0), cue: 0, copy: 0 }
}

#[test]
fn everything_is_counted_where_it_happened() {
    let mut sample = empty(SECOND);
    happens(&mut sample, 0, 0, started());
    // Sent in the first period, first token in the second, last token and end in the third.
    let tokens = vec![1_200 * MS, 1_900 * MS, 2_000 * MS, 2_100 * MS];
    let times = [100 * MS, 300 * MS, 301 * MS];
    let base = Sent { times, tokens, ideal: Some(60), ..Sent::of(0, 0, 2_101 * MS) };
    sends(&mut sample, 0, &base);
    // An answer in one piece counts at its end; one that fails, for nobody's tokens.
    sends(&mut sample, 1, &Sent::of(0, 2_200 * MS, 2_300 * MS));
    let failed = Sent { class: Class::Http429, ..Sent::of(0, 2_400 * MS, 2_500 * MS) };
    sends(&mut sample, 2, &failed);
    let run = read(&sample);
    let found = periods(&run, UserGoals::default());
    let edges: Vec<_> =
        found.iter().map(|p| (p.start_ns / MS, p.end_ns / MS, p.complete)).collect();
    assert_eq!(edges, [(0, 1_000, true), (1_000, 2_000, true), (2_000, 2_500, false)]);
    let of = |figure: fn(&Period) -> u64| found.iter().map(figure).collect::<Vec<_>>();
    assert_eq!(of(|p| p.requests.sent), [1, 0, 2]);
    assert_eq!(of(|p| p.requests.ended), [0, 0, 3]);
    assert_eq!(of(|p| p.requests.ok), [0, 0, 2]);
    assert_eq!(of(|p| p.requests.ok_sent_before), [0, 0, 1]);
    assert_eq!(of(|p| p.requests.in_flight), [1, 1, 0]);
    assert_eq!(of(|p| p.requests.in_flight_sent_before), [0, 1, 0]);
    assert_eq!(of(|p| p.requests.prefilling), [1, 0, 0]);
    assert_eq!(of(|p| p.requests.decoding), [0, 1, 0]);
    assert_eq!(of(|p| p.requests.prefilled), [0, 1, 1]);
    assert_eq!(of(|p| p.tokens.input), [0, 100, 100]);
    assert_eq!(of(|p| p.cache.new_tokens), [0, 40, 0]);
    assert_eq!(of(|p| p.slo.of_requests), [0, 0, 1]);
    assert_eq!(of(|p| p.slo.without_ttft), [0, 0, 1]);
    let output: Vec<f64> = found.iter().map(|p| p.tokens.output).collect();
    assert_eq!(output, [0.0, 2.0, 2.0], "2,000 ms is in the third; the other answer has no count");
    let busy: Vec<f64> = found.iter().map(|p| p.requests.in_flight_s).collect();
    assert_eq!(busy, [0.699, 1.0, 0.101 + 0.1 + 0.1]);
    let ttft: Vec<_> = found.iter().map(|p| p.ttft_ms.map(|ttft| ttft.mean)).collect();
    assert_eq!(ttft, [None, Some(899.0), None]);
    let effective = found[1].effective_ttft_ms.expect("one request");
    assert_eq!(effective.mean, 1_099.0, "200 ms in the queue");
    let queue: Vec<_> = found.iter().map(|p| p.queue_ms.map(|queue| queue.max)).collect();
    assert_eq!(queue, [Some(200.0), None, Some(0.0)]);
}

/// What the server had done counts when it did it, also for answers that break off, fail or are cut
/// by the end of the run; only their goals are nobody's.
#[test]
fn an_answer_that_does_not_end_well_counts_what_came() {
    for class in [Class::ResetMidAnswer, Class::CutAtEnd, Class::TotalTimeout] {
        let mut sample = empty(SECOND);
        happens(&mut sample, 0, 0, started());
        let tokens = vec![900 * MS, 950 * MS, 1_100 * MS];
        let cut = Sent { tokens, class, ideal: Some(60), ..Sent::of(0, 0, 2_100 * MS) };
        sends(&mut sample, 0, &cut);
        // It never got a token: none of its input was answered.
        sends(&mut sample, 1, &Sent { class, ..Sent::of(0, 1_200 * MS, 2_100 * MS) });
        let run = read(&sample);
        let found = periods(&run, UserGoals::default());
        let output: Vec<f64> = found.iter().map(|p| p.tokens.output).collect();
        assert_eq!(output, [2.0, 1.0, 0.0], "{class:?}");
        let input: Vec<u64> = found.iter().map(|p| p.tokens.input).collect();
        assert_eq!(input, [100, 0, 0], "{class:?}");
        let ttft: Vec<_> = found.iter().map(|p| p.ttft_ms.map(|ttft| ttft.mean)).collect();
        assert_eq!(ttft, [Some(900.0), None, None], "{class:?}");
        assert_eq!(found.iter().map(|p| p.requests.ok).sum::<u64>(), 0, "{class:?}");
        assert_eq!(found.iter().map(|p| p.slo.of_requests).sum::<u64>(), 0, "{class:?}");
        assert_eq!(found[0].cache.new_tokens, 40, "{class:?}");
        let users = users::users(&run, UserGoals::default()).expect("users");
        assert_eq!(users.cache.new_tokens, 40, "{class:?}");
    }
}

/// No data is not zero: the page shows it as such.
#[test]
fn a_period_without_a_prefill_has_no_data() {
    let mut sample = empty(SECOND);
    happens(&mut sample, 0, 0, started());
    let tokens = vec![500 * MS, 1_500 * MS];
    sends(&mut sample, 0, &Sent { tokens, ..Sent::of(0, 0, 2_100 * MS) });
    let found = periods(&read(&sample), UserGoals::default());
    let rates = found.iter().map(|p| (p.tokens.input_per_s, p.tokens.output_per_s));
    assert_eq!(rates.collect::<Vec<_>>(), [(Some(100.0), Some(1.0)), (None, None), (None, None)]);
    assert_eq!(found[1].tokens.output, 1.0, "what came is still counted");
    for period in &found {
        assert_eq!(period.cache.ideal_hit_rate, None, "nobody said what a cache has");
        assert_eq!(period.cache.reported_hit_rate, None);
    }
    assert_eq!(found[2].requests.per_s, Some(10.0));
    assert_eq!(found[1].ttft_ms, None);
}

#[test]
fn winding_a_run_up_makes_no_period_of_its_own() {
    let ends = |stopped: i64, done: i64| {
        let mut sample = empty(SECOND);
        happens(&mut sample, 0, 0, started());
        sends(&mut sample, 0, &Sent { tokens: vec![500 * MS], ..Sent::of(0, 0, done) });
        happens(&mut sample, 0, stopped, UserEvent::Stopped { done: 1, total: 2 });
        let found = periods(&read(&sample), UserGoals::default());
        found.iter().map(|period| period.end_ns / MS).collect::<Vec<_>>()
    };
    assert_eq!(ends(2_013 * MS, 900 * MS), [1_000, 2_000]);
    assert_eq!(ends(2_013 * MS, 2_005 * MS), [1_000, 2_000, 2_013], "a request ended there");
    assert_eq!(ends(2_500 * MS, 900 * MS), [1_000, 2_000, 2_500], "somebody waited there");
    assert_eq!(ends(913 * MS, 900 * MS), [913]);
}

/// Queue time, TTFT and total time in milliseconds, and tokens, of the tool's run with limits; it
/// printed 17/17, 16/17, 16/17, 15/17 and 14/17.
#[test]
fn goals_are_counted_as_the_tool_counts_them() {
    let rows = [
        (216, 660, 1_608, 60),
        (266, 2_081, 3_030, 60),
        (3_171, 376, 644, 24),
        (3_223, 446, 5_117, 60),
        (52, 420, 1_182, 60),
        (52, 436, 1_177, 60),
        (240, 351, 1_054, 60),
        (5_175, 338, 1_062, 60),
        (14, 333, 1_158, 60),
        (11_088, 363, 1_156, 60),
        (1_096, 376, 1_280, 60),
        (50, 360, 1_190, 60),
        (1_040, 347, 945, 39),
        (342, 363, 1_274, 60),
        (78, 343, 1_166, 60),
        (516, 346, 1_195, 60),
        (3_450, 355, 1_093, 60),
    ];
    let mut sample = empty(5 * SECOND);
    happens(&mut sample, 0, 0, started());
    for (number, (queue, ttft, whole, tokens)) in (0..).zip(rows) {
        let due = i64::from(number) * SECOND;
        let sent = due + queue * MS;
        let step = (whole - ttft) * MS / (tokens - 1);
        let first = sent + ttft * MS;
        let times = (0..tokens).map(|at| first + at * step).collect();
        let done = sent + whole * MS;
        let sent = Sent { times: [due, sent, sent], tokens: times, ..Sent::of(0, sent, done) };
        sends(&mut sample, number, &sent);
    }
    let run = read(&sample);
    let goals = UserGoals { ttft_ms: Some(5_000.0), decode_tokens_per_s: Some(30.0) };
    let found = users::users(&run, goals).expect("users").slo.counts;
    let expected = GoalCounts {
        of_requests: 17,
        without_ttft: 0,
        ttft: 17,
        decode: 16,
        both: 16,
        effective_ttft: 15,
        effective_both: 14,
    };
    assert_eq!(found, expected);
    let all = GoalCounts { decode: 17, both: 17, effective_ttft: 17, effective_both: 17, ..found };
    let none = users::users(&run, UserGoals::default()).expect("users").slo.counts;
    assert_eq!(none, all, "a goal that nobody set is met");
}

/// At its limit a goal is met, and a short decode passes whatever its speed.
#[test]
fn goals_are_met_at_their_limits() {
    let goals = UserGoals { ttft_ms: Some(500.0), decode_tokens_per_s: Some(20.0) };
    let counts = |ready: i64, tokens: &[i64]| {
        let mut sample = empty(SECOND);
        happens(&mut sample, 0, 0, started());
        let times = [0, ready * MS, ready * MS];
        let tokens: Vec<i64> = tokens.iter().map(|at| (ready + at) * MS).collect();
        let done = tokens[tokens.len() - 1];
        sends(&mut sample, 0, &Sent { times, tokens, done, ..Sent::of(0, 0, 0) });
        let counts = users::users(&read(&sample), goals).expect("users").slo.counts;
        [counts.ttft, counts.decode, counts.both, counts.effective_ttft, counts.effective_both]
    };
    assert_eq!(counts(0, &[500, 600]), [1, 1, 1, 1, 1], "a decode of 0.1 s passes");
    assert_eq!(counts(0, &[501, 601]), [0, 1, 0, 0, 0]);
    assert_eq!(counts(0, &[500, 601]), [1, 0, 0, 1, 0], "19.8 tokens per second");
    assert_eq!(counts(0, &[400, 500, 540, 550]), [1, 1, 1, 1, 1]);
    assert_eq!(counts(1, &[500, 600]), [1, 1, 1, 0, 0], "queue time counts");
}

#[test]
fn waiting_for_sub_agents_is_not_queueing() {
    let mut sample = empty(SECOND);
    sample.plan(0);
    sample.plan[1].think_ns = Some(300 * MS);
    happens(&mut sample, 0, 0, started());
    sends(&mut sample, 0, &Sent::of(0, 0, 100 * MS));
    // By itself ready at 400 ms; the sub-agents end at 700 ms; admission keeps it 50 ms.
    let times = [700 * MS, 750 * MS, 751 * MS];
    let second = Sent { template: 1, after: Some(0), times, ..Sent::of(0, 0, 900 * MS) };
    sends(&mut sample, 1, &second);
    // From the start of the one before: by itself ready when that one ends.
    let flags = StepFlags::FROM_START;
    let times = [905 * MS, 905 * MS, 906 * MS];
    let third = Sent { template: 1, after: Some(1), times, flags, ..Sent::of(0, 0, 950 * MS) };
    sends(&mut sample, 2, &third);
    let run = read(&sample);
    let waits: Vec<_> = (0..3).map(|i| agent_wait_ns(&run, i).map(|wait| wait / MS)).collect();
    assert_eq!(waits, [None, Some(300), None], "751 + 300 ms is later than it was due");
    let queues: Vec<_> = (0..3).map(|i| queue_ns(&run, i).map(|queue| queue / MS)).collect();
    assert_eq!(queues, [Some(0), Some(50), Some(0)]);
    assert_eq!(effective_ttft_ns(&run, 1), None, "an answer in one piece");
}

#[test]
fn a_user_driven_run_offers_no_rate_and_holds_its_schedule() {
    let run = read(&sample_users::sample(5, 8));
    let found = report(&run, &ReportOptions::default());
    assert!(found.verdict.schedule_held, "{:?}", found.verdict.reasons);
    assert_eq!((found.schedule.offered_rps, found.schedule.achieved_rps), (None, None));
    assert_eq!(found.schedule.planned, found.schedule.sent);
    assert_eq!(found.users.as_ref().map(|users| users.users), Some(8));
    assert_eq!(found.periods.as_ref().map(Vec::len), Some(4));
    let late = found.schedule.lateness_us.expect("requests left");
    assert!(late.max <= 40.0, "sent − ready, not − due: {}", late.max);
    let plain = report(&read(&crate::log::sample::sample(1, 20)), &ReportOptions::default());
    assert_eq!((plain.users, plain.periods), (None, None));
}

/// A log that was cut says so, and its users' requests are not what was "never sent".
#[test]
fn a_lost_step_costs_its_request_only() {
    let whole = sample_users::sample(5, 8);
    let mut sample = whole.clone();
    let third = RequestIndex(3);
    let is_third =
        |record: &Record| matches!(record, Record::Step { request, .. } if *request == third);
    sample.records.retain(|(_, record)| !is_third(record));
    let (run, whole) = (read(&sample), read(&whole));
    assert_eq!(run.requests.len(), whole.requests.len());
    assert_eq!((run.plan[3].row, run.session_name(3)), (0, None));
    assert_eq!(run.plan[4], whole.plan[4]);
    assert_eq!(run.warnings, ["1 request has no record of what it replays; it was lost"]);
    let found = report(&run, &ReportOptions::default());
    assert!(found.verdict.schedule_held, "{:?}", found.verdict.reasons);
    assert_eq!(found.outcomes.never_sent, 0);
    let mut cut = whole.manifest.clone();
    cut.users = None;
    let mut older = sample.clone();
    older.manifest = cut;
    older.records.retain(|(_, record)| !matches!(record, Record::Step { .. }));
    let run = read(&older);
    assert!(run.users.is_none() && run.state == State::Finished, "no user record, no users");
}

/// Sums over periods equal the run, whatever the length of a period.
fn check_sums(run: &Run) {
    let goals = UserGoals { ttft_ms: Some(300.0), decode_tokens_per_s: Some(30.0) };
    let found = periods(run, goals);
    let told = run.users.as_ref().expect("users");
    let sum = |of: &dyn Fn(&Period) -> u64| found.iter().map(of).sum::<u64>();
    let requests = &run.requests;
    let has = |is: &dyn Fn(usize) -> bool| (0..requests.len()).filter(|&i| is(i)).count() as u64;
    assert_eq!(sum(&|p| p.requests.sent), has(&|i| requests.was_sent(i)));
    assert_eq!(sum(&|p| p.requests.ended), has(&|i| requests.done(i).is_some()));
    assert_eq!(sum(&|p| p.requests.ok), has(&|i| requests.is_ok(i)));
    assert_eq!(sum(&|p| p.requests.prefilled), has(&|i| is_answered(run, i)));
    let answered = || (0..requests.len()).filter(|&i| is_answered(run, i));
    let input: u64 = answered().filter_map(|i| tokens::prompt(run, i)).sum();
    assert_eq!(sum(&|p| p.tokens.input), input);
    // Whatever became of the request: every token that came is in a period.
    let came: u64 = (0..requests.len())
        .filter(|&i| requests.is_ok(i) || run.chunks.count(i) > 0)
        .filter_map(|i| tokens::completion(run, i))
        .sum();
    let output: f64 = found.iter().map(|p| p.tokens.output).sum();
    assert!((output - count(came)).abs() < 1e-6, "{output}");
    let end = super::attribution::end(run, told);
    let busy: f64 = found.iter().map(|p| p.requests.in_flight_s).sum();
    let all: f64 = (0..requests.len())
        .filter_map(|i| Some((requests.sent(i)?, requests.done(i).unwrap_or(end))))
        .map(|(sent, done)| nanos(done.0 - sent.0) / 1e9)
        .sum();
    assert!((busy - all).abs() < 1e-6 * all.max(1.0), "{busy} for {all}");
    let users = users::users(run, goals).expect("users");
    let (cache, slo) = (users.cache, users.slo.counts);
    assert_eq!(sum(&|p| p.cache.ideal_cached_tokens), cache.ideal_cached_tokens);
    assert_eq!(sum(&|p| p.cache.new_tokens), cache.new_tokens);
    assert_eq!(sum(&|p| p.cache.compared_cached_tokens), cache.compared_cached_tokens);
    assert_eq!(sum(&|p| p.cache.requests_reporting), cache.requests_reporting);
    assert_eq!(sum(&|p| p.slo.of_requests), slo.of_requests);
    assert_eq!(sum(&|p| p.slo.both), slo.both);
    assert_eq!(sum(&|p| p.slo.effective_both), slo.effective_both);
    assert_eq!(sum(&|p| p.slo.without_ttft), slo.without_ttft);
    let blocked = sum(&|p| p.blocked_by_limits + p.blocked_by_budgets);
    assert_eq!(blocked, told.limits.len() as u64);
    assert_eq!(sum(&|p| u64::from(p.users_started)), users.users);
    assert_eq!(sum(&|p| u64::from(p.users_completed)), users.completed);
    check_edges(run, &found, end);
}

/// Periods touch, and what holds at their ends is what the records say of those instants.
fn check_edges(run: &Run, found: &[Period], end: RunNanos) {
    let requests = &run.requests;
    let last = found.last().expect("a period");
    // Or at the boundary before, when only the run was wound up behind it.
    let is_wound_up = last.complete && (0..=100 * MS).contains(&(end.0 - last.end_ns));
    assert!(last.end_ns == end.0 || is_wound_up, "{} of {}", last.end_ns, end.0);
    assert!(found.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns));
    assert!(found.iter().rev().skip(1).all(|period| period.complete));
    for (at, period) in found.iter().enumerate() {
        let is_last = at + 1 == found.len();
        let before = |time: RunNanos| time.0 < period.end_ns || is_last;
        let in_flight = |i: &usize| {
            requests.sent(*i).is_some_and(before) && !requests.done(*i).is_some_and(before)
        };
        let flight = (0..requests.len()).filter(in_flight).count() as u64;
        assert_eq!(period.requests.in_flight, flight, "period {}", period.number);
        let token = |i: &usize| requests.first_token(*i).is_some_and(before);
        let decoding = (0..requests.len()).filter(in_flight).filter(token).count() as u64;
        assert_eq!(period.requests.decoding, decoding, "period {}", period.number);
        for states in [period.users, period.users_at_end] {
            assert_eq!(states.active + states.idle + states.limited, states.total);
        }
        assert_eq!(period.users.total, period.users_at_end.total);
        assert!(period.users_present >= period.users.total);
        assert!(period.users_with_requests <= period.users_present.max(period.users.total));
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn sums_over_periods_are_the_runs(
        seed in any::<u64>(),
        users in 1_u32..14,
        period_ms in 20_i64..9_000,
        keep in 1_usize..400,
    ) {
        let mut sample = sample_users::sample(seed, users);
        if let Some(facts) = &mut sample.manifest.users {
            facts.period_ns = period_ms * MS;
        }
        check_sums(&read(&sample));
        // Records are missing: then numbers are, but they still add up.
        let mut at = 0;
        sample.records.retain(|_| {
            at += 1;
            at % keep != 0
        });
        sample.closed = false;
        let run = read(&sample);
        if !run.requests.is_empty() {
            let _numbers = report(&run, &ReportOptions::default());
            let last = (0..run.requests.len()).filter_map(|i| last_stamp(&run, i)).max();
            let end = super::attribution::end(&run, run.users.as_ref().expect("users"));
            assert!(last.is_none_or(|last| last <= end));
        }
    }
}

#[test]
fn two_kinds_of_limits_are_counted_apart() {
    let mut sample = empty(SECOND);
    happens(&mut sample, 0, 0, started());
    for (at, by) in LimitedBy::ALL.into_iter().enumerate() {
        let at = i64::try_from(at).expect("six") * 300 * MS;
        happens(&mut sample, 0, at, UserEvent::Limited { by, backoff_ns: 1 });
    }
    sample.push(CoreIndex(0), Record::Lost { time: RunNanos(0), count: 0 });
    let found = periods(&read(&sample), UserGoals::default());
    let counts: Vec<_> =
        found.iter().map(|p| (p.blocked_by_limits, p.blocked_by_budgets)).collect();
    assert_eq!(counts, [(4, 0), (0, 2)]);
}
