//! Gates: the table of limits, threads that race for them, and a crowd under a simulated clock.

use std::sync::atomic::AtomicUsize;
use std::thread;

use super::*;

const SECOND: i64 = NANOS_PER_SECOND;

fn at(seconds: i64) -> RunNanos {
    RunNanos(seconds * SECOND)
}

fn cost(fresh_input: u32, output: u32) -> Cost {
    Cost { fresh_input, output, due: RunNanos(i64::MAX) }
}

fn gates(limits: Limits) -> Gates {
    Gates::new(limits, 0)
}

fn why(gates: &Gates, cost: Cost, now: RunNanos) -> Option<Why> {
    gates.admit(cost, now).err().map(|blocked| blocked.why)
}

#[test]
fn layer_one_bounds_prefill_decode_and_all_in_this_order() {
    let gates = gates(Limits { concurrent: 3, prefill: 2, decode: 1, ..Limits::default() });
    let ask = || why(&gates, cost(1, 1), at(0));
    assert_eq!((ask(), ask(), ask()), (None, None, Some(Why::Prefill)));
    gates.first_token();
    assert_eq!((gates.in_flight(), gates.decoding()), (2, 1));
    assert_eq!(ask(), Some(Why::Decode));
    gates.ended(true);
    assert_eq!(ask(), None);
    assert_eq!(ask(), Some(Why::Prefill), "two wait for their first token again");
    gates.ended(false);
    gates.ended(false);
    assert_eq!((gates.in_flight(), gates.decoding()), (0, 0));
    let all = Gates::new(Limits { concurrent: 1, ..Limits::default() }, 7);
    assert_eq!(why(&all, cost(1, 1), at(0)), None);
    assert_eq!(why(&all, cost(1, 1), at(0)), Some(Why::Concurrency));
    assert!(Why::Prefill.is_layer_one() && !Why::Ttft.is_layer_one());
    assert_eq!((all.number_session(), all.number_session()), (SessionIndex(7), SessionIndex(8)));
    assert_eq!((all.number_request(), all.number_request()), (RequestIndex(0), RequestIndex(1)));
}

#[test]
fn no_limit_blocks_nothing_and_counts_all_the_same() {
    let gates = gates(Limits::default());
    for _ in 0..1_000 {
        assert_eq!(gates.admit(cost(u32::MAX, u32::MAX), at(0)), Ok(()));
    }
    assert_eq!(gates.in_flight(), 1_000);
    assert_eq!((gates.input_share(at(0)), gates.output_share(at(0))), (None, None));
}

#[test]
fn the_ttft_gate_comes_behind_layer_one_and_before_the_budgets() {
    let limits = Limits { concurrent: 1, input_per_minute: 10, ..Limits::default() };
    let gates = gates(limits);
    gates.close_for_ttft(true);
    assert_eq!(why(&gates, cost(11, 0), at(0)), Some(Why::Ttft));
    gates.close_for_ttft(false);
    assert_eq!(why(&gates, cost(10, 0), at(0)), None);
    gates.close_for_ttft(true);
    assert_eq!(why(&gates, cost(10, 0), at(0)), Some(Why::Concurrency));
    assert!(gates.is_closed_for_ttft());
}

#[test]
fn a_budget_starts_full_and_flows_in_evenly() {
    let gates = gates(Limits { input_per_minute: 600, ..Limits::default() });
    assert_eq!(gates.input_share(at(0)), Some(1.0));
    assert_eq!(why(&gates, cost(600, 9), at(0)), None);
    assert_eq!(gates.input_share(at(0)), Some(0.0));
    assert_eq!(why(&gates, cost(1, 9), at(0)), Some(Why::InputTokens));
    assert_eq!(why(&gates, cost(0, 9), at(0)), None, "what costs nothing is never blocked");
    assert_eq!(why(&gates, cost(10, 9), RunNanos(SECOND - 1)), Some(Why::InputTokens));
    assert_eq!(why(&gates, cost(10, 9), at(1)), None);
    assert_eq!(why(&gates, cost(300, 9), at(31)), None);
    assert_eq!(gates.input_share(at(61)), Some(0.5));
    assert_eq!(why(&gates, cost(600, 9), at(1_000)), None, "no more than full");
    assert_eq!(why(&gates, cost(1, 9), at(1_000)), Some(Why::InputTokens));
}

#[test]
fn both_budgets_or_neither_input_first() {
    let limits = Limits { input_per_minute: 100, output_per_minute: 10, ..Limits::default() };
    let gates = gates(limits);
    assert_eq!(why(&gates, cost(10, 10), at(0)), None);
    assert_eq!(why(&gates, cost(91, 1), at(0)), Some(Why::InputTokens));
    assert_eq!(why(&gates, cost(90, 1), at(0)), Some(Why::OutputTokens));
    assert_eq!(gates.input_share(at(0)), Some(0.9), "it was given back");
    assert_eq!(gates.in_flight(), 1);
    assert_eq!(why(&gates, cost(90, 0), at(0)), None);
}

#[test]
fn a_request_dearer_than_its_budget_leaves_when_it_is_full_and_is_paid_for() {
    let gates = gates(Limits { input_per_minute: 100, ..Limits::default() });
    assert_eq!(why(&gates, cost(1, 1), at(0)), None);
    assert_eq!(why(&gates, cost(250, 1), at(0)), Some(Why::InputTokens));
    assert_eq!(why(&gates, cost(250, 1), at(1)), None, "full again");
    assert_eq!(gates.dearer(), 1);
    assert_eq!(gates.input_share(at(1)), Some(0.0));
    assert_eq!(why(&gates, cost(1, 1), at(91)), Some(Why::InputTokens), "250 are paid for first");
    assert_eq!(why(&gates, cost(1, 1), at(92)), None);
}

#[test]
fn who_waits_half_a_minute_gets_the_turn_at_the_budgets() {
    let gates = gates(Limits { input_per_minute: 60, ..Limits::default() });
    let large = |due: i64| Cost { fresh_input: 50, output: 1, due: at(due) };
    assert_eq!(why(&gates, cost(60, 1), at(0)), None);
    let early = gates.admit(large(0), at(29)).expect_err("29 of 50");
    assert_eq!(early, Blocked { why: Why::InputTokens, turn_at: None });
    assert_eq!(why(&gates, cost(5, 1), at(29)), None, "small ones pass");
    let turn = gates.admit(large(0), at(30)).expect_err("25 of 50");
    assert_eq!(turn.turn_at, Some(at(55)));
    assert_eq!(why(&gates, cost(5, 1), at(31)), Some(Why::InputTokens), "not any more");
    assert_eq!(why(&gates, cost(0, 1), at(31)), None, "what costs nothing does");
    assert_eq!(gates.admit(large(0), at(55)), Ok(()));
    assert_eq!(why(&gates, cost(5, 1), at(60)), None, "the turn is over");
    // Of two, the one that waits longer has it.
    assert_eq!(gates.admit(large(20), at(61)).expect_err("few").turn_at, Some(at(110)));
    assert_eq!(gates.admit(large(30), at(62)).expect_err("few").turn_at, None);
    assert_eq!(gates.admit(large(10), at(63)).expect_err("few").turn_at, Some(at(110)));
    assert_eq!(gates.admit(large(20), at(64)).expect_err("few").turn_at, None);
    // A turn that nobody uses lapses.
    assert_eq!(why(&gates, cost(5, 1), at(90)), Some(Why::InputTokens));
    assert_eq!(why(&gates, cost(5, 1), at(200)), None);
}

/// So many threads ask without end; each request that is let through is checked and ended.
fn race(limits: Limits, rounds: usize, check: impl Fn(&Gates) + Sync) -> usize {
    let gates = gates(limits);
    let admitted = AtomicUsize::new(0);
    let clock = AtomicI64::new(0);
    thread::scope(|scope| {
        for number in 0..4_u32 {
            let (gates, admitted, clock, check) = (&gates, &admitted, &clock, &check);
            let run = move || {
                for round in 0..rounds {
                    let now = RunNanos(clock.fetch_add(1_000, Ordering::Relaxed));
                    let size = 1 + (number + u32::try_from(round).expect("few")) % 7;
                    let cost = Cost { fresh_input: size, output: 1, due: now };
                    if gates.admit(cost, now).is_ok() {
                        admitted.fetch_add(size as usize, Ordering::Relaxed);
                        check(gates);
                        let had_token = round % 2 == 0;
                        if had_token {
                            gates.first_token();
                        }
                        check(gates);
                        gates.ended(had_token);
                    }
                }
            };
            let named = thread::Builder::new().name(format!("asks-{number}"));
            named.spawn_scoped(scope, run).expect("a thread");
        }
    });
    assert_eq!((gates.in_flight(), gates.decoding()), (0, 0));
    admitted.into_inner()
}

#[test]
fn threads_never_exceed_a_limit_of_what_is_under_way() {
    for limit in [1, 2, 3] {
        let most = |gates: &Gates| assert!(gates.in_flight() <= limit);
        let limits = Limits { concurrent: limit, ..Limits::default() };
        assert!(race(limits, 20_000, most) > 0);
        let most = |gates: &Gates| {
            let under_way = gates.under_way.load(Ordering::Relaxed);
            let (in_flight, decoding) = halves(under_way);
            assert!(in_flight - decoding <= limit, "{in_flight} - {decoding}");
        };
        assert!(race(Limits { prefill: limit, ..Limits::default() }, 20_000, most) > 0);
    }
}

#[test]
fn threads_never_spend_more_than_a_budget() {
    // 4 × 20,000 microseconds: less than a token flows in, so that the budget is what it starts
    // with.
    for budget in [1, 100, 700] {
        let limits = Limits { input_per_minute: budget, ..Limits::default() };
        let spent = race(limits, 20_000, |_| {}) as u64;
        // The first to come may cost more than all of it: that is what `dearer` is for.
        assert!(spent <= budget.max(7), "{spent} of {budget}");
        assert!(spent + 7 > budget, "{spent} of {budget}: nothing is left that somebody wanted");
    }
}

/// Someone who asks for the same again and again.
struct Asker {
    cost: u32,
    due: i64,
    next: i64,
    blocked: u32,
    longest_ns: i64,
    sent: u32,
}

#[test]
fn nobody_starves_among_requests_of_all_sizes() {
    // A budget of 6,000 a minute, and a crowd that wants several times as much of it.
    for seed in 0..20_u64 {
        let gates = gates(Limits { input_per_minute: 6_000, ..Limits::default() });
        let mut draw = seed;
        let mut drawn = |below: i64| {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
            i64::try_from(draw >> 33).expect("31 bits") % below
        };
        let sizes = [10, 20, 50, 100, 300, 1_000, 3_000, 5_900, 9_000];
        let mut askers: Vec<Asker> = (0..40_usize)
            .map(|number| Asker {
                cost: sizes[if number < sizes.len() { number } else { number % 4 }],
                due: drawn(SECOND),
                next: 0,
                blocked: 0,
                longest_ns: 0,
                sent: 0,
            })
            .collect();
        let (mut spent, end) = (0_u64, 3_600 * SECOND);
        loop {
            let next = askers.iter_mut().min_by_key(|own| own.next.max(own.due));
            let own = next.expect("many");
            let now = own.next.max(own.due);
            if now > end {
                break;
            }
            let cost = Cost { fresh_input: own.cost, output: 1, due: RunNanos(own.due) };
            match gates.admit(cost, RunNanos(now)) {
                Ok(()) => {
                    gates.ended(false);
                    spent += u64::from(own.cost);
                    own.longest_ns = own.longest_ns.max(now - own.due);
                    (own.sent, own.blocked) = (own.sent + 1, 0);
                    own.due = now + SECOND + drawn(SECOND);
                }
                Err(Blocked { turn_at: Some(turn_at), .. }) => own.next = turn_at.0,
                Err(_) => {
                    let backoff = ((SECOND / 5) << own.blocked.min(8)).min(30 * SECOND);
                    own.next = now + backoff / 4 * 3 + drawn(backoff / 2);
                    own.blocked += 1;
                }
            }
        }
        // What was there at first, what flowed in, and one debt for the dearest.
        assert!(spent <= 6_000 + 60 * 6_000 + 9_000, "{spent}");
        for own in &askers {
            assert!(own.sent >= 3, "seed {seed}: {} tokens left {} times", own.cost, own.sent);
            let waits_s = own.longest_ns.max(end - own.due) / SECOND;
            assert!(waits_s < 1_200, "seed {seed}: {} tokens waited {waits_s} s", own.cost);
        }
    }
}
