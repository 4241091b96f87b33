//! Decisions of the director one by one, with a clock that is a number.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use onbeat_shared::log::outcome::Class;
use onbeat_shared::log::users::{Assessment, RampReason};
use onbeat_shared::trace::Trace;
use onbeat_shared::units::RunNanos;

use super::*;
use crate::plan::script::{ScriptOptions, scripts};
use crate::policy::options::{Advance, TtftMetric};
use crate::policy::players::How;
use crate::trace::{TraceOptions, read};

pub(crate) const SECOND: i64 = 1_000_000_000;

/// A request of a file, with this many blocks of 64 tokens from `first` on.
pub(super) fn request(t: u32, first: u32, blocks: u32, out: u32) -> String {
    let ids: Vec<String> = (first..first + blocks).map(|id| id.to_string()).collect();
    format!(
        r#"{{"t":{t}.0,"type":"s","model":"m","in":{},"out":{out},"hash_ids":[{}],"input_types":["text"],"output_types":["text"],"stop":"","api_time":0.0,"think_time":1.0}}"#,
        blocks * 64,
        ids.join(",")
    )
}

pub(super) fn agent(requests: &[String]) -> String {
    format!(
        r#"{{"t":1.0,"type":"subagent","agent_id":"a","subagent_type":"Explore","duration_ms":1,"total_tokens":1,"tool_use_count":1,"status":"completed","models":["m"],"tool_tokens":0,"system_tokens":0,"requests":[{}]}}"#,
        requests.join(",")
    )
}

/// A trace of conversations with these entries.
pub(super) fn trace_of(conversations: &[Vec<String>]) -> Trace {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (number, entries) in conversations.iter().enumerate() {
        let text = format!(
            r#"{{"id":"trace_{number:04}","models":["m"],"block_size":64,"hash_id_scope":"local","tool_tokens":0,"system_tokens":0,"requests":[{}]}}"#,
            entries.join(",")
        );
        let path = folder.path().join(format!("trace_{number:04}.json"));
        fs::write(path, text).expect("written");
    }
    read(folder.path(), &TraceOptions::default()).expect("conversations")
}

/// Conversations of three requests: of 1, 2 and 3 blocks, of 11, 12 and 13, of 21, 22 and 23, …
pub(crate) fn growing(conversations: u32) -> Trace {
    let all: Vec<Vec<String>> = (0..conversations)
        .map(|place| (1..=3).map(|turn| request(turn, 1, place * 10 + turn, 5)).collect())
        .collect();
    trace_of(&all)
}

pub(crate) fn direction(options: &UserOptions, trace: &Trace, cores: u16) -> Direction {
    let scripts = Arc::new(scripts(trace, &ScriptOptions::default()).expect("scripts"));
    let pool = Pool::new(&scripts, trace, options.trace_seed, options.recycle);
    Direction::new(options, trace, scripts, pool, Arc::new(AtomicU32::new(0)), cores)
}

/// Periods of ten seconds.
pub(crate) fn options() -> UserOptions {
    let mut options = UserOptions { trace_seed: 42, ..UserOptions::default() };
    options.ramp.period_ns = 10 * SECOND;
    options.limits.concurrent = 0;
    options
}

struct Stage {
    direction: Direction,
    orders: Vec<Order>,
}

impl Stage {
    fn new(options: &UserOptions, trace: &Trace) -> Self {
        Self::of(direction(options, trace, 2))
    }

    fn of(mut direction: Direction) -> Self {
        let mut orders = Vec::new();
        direction.open(&mut orders);
        Self { direction, orders }
    }

    /// What is ordered at this many milliseconds.
    fn at(&mut self, ms: i64, heard: &[Heard]) -> Vec<Order> {
        let mut orders = Vec::new();
        self.direction.step(RunNanos(ms * 1_000_000), heard.iter().copied(), &mut orders);
        self.orders.extend(orders.iter().cloned());
        orders
    }
}

fn entrances(orders: &[Order]) -> Vec<(u16, Entrance)> {
    let entered = |order: &Order| match order {
        Order::Enter(core, entrance) => Some((core.0, *entrance)),
        _ => None,
    };
    orders.iter().filter_map(entered).collect()
}

fn notes(orders: &[Order]) -> Vec<Assessment> {
    let noted = |order: &Order| match order {
        Order::Note(assessment) => Some(*assessment),
        _ => None,
    };
    orders.iter().filter_map(noted).collect()
}

fn ms(ms: i64) -> RunNanos {
    RunNanos(ms * 1_000_000)
}

fn sent(at: i64, user: u32, record: u32) -> Heard {
    Heard::Sent { at: ms(at), user, record }
}

fn token(at: i64, ttft_ms: i64) -> Heard {
    Heard::FirstToken { at: ms(at), ttft_ns: ttft_ms * 1_000_000 }
}

fn ended(at: i64, user: u32, record: u32, class: Class) -> Heard {
    let decode_ns = SECOND;
    let had_first_token = class == Class::Ok;
    Heard::Ended { at: ms(at), user, record, class, tokens: 50, decode_ns, had_first_token }
}

fn left(at: i64, user: u32) -> Heard {
    Heard::Left { at: ms(at), user, conversation: 0, cue: 3, how: How::Completed }
}

#[test]
fn the_first_users_start_at_zero_on_the_cores_with_the_fewest() {
    let options = UserOptions { start_users: 5, max_users: 4, ..options() };
    let stage = Stage::new(&options, &growing(8));
    let entered = entrances(&stage.orders);
    assert_eq!(entered.len(), 4, "never above --max-users");
    assert_eq!(entered.iter().map(|(core, _)| *core).collect::<Vec<_>>(), [0, 1, 0, 1]);
    for ((_, entrance), number) in entered.iter().zip(1..) {
        assert_eq!((entrance.user, entrance.session.0), (number, number - 1));
        assert_eq!((entrance.at, entrance.cue, entrance.copy), (RunNanos(0), 0, 0));
    }
}

#[test]
fn a_user_that_leaves_is_replaced_on_its_core_when_recycled_and_else_the_run_ends() {
    for recycle in [true, false] {
        let options = UserOptions { start_users: 3, recycle, ..options() };
        let mut stage = Stage::new(&options, &growing(8));
        let orders = stage.at(1_000, &[left(999, 1), left(998, 3)]);
        let entered = entrances(&orders);
        if recycle {
            assert_eq!(entered.len(), 2);
            assert!(entered.iter().all(|(core, _)| *core == 0));
            assert!(entered.iter().all(|(_, entrance)| entrance.at == ms(1_020)));
            assert_eq!(stage.at(1_005, &[left(1_004, 2)]).len(), 1);
            continue;
        }
        assert_eq!(orders, []);
        assert_eq!(stage.at(1_005, &[left(1_004, 2)]), [Order::Stop(End::AllPlayed)]);
        assert_eq!(stage.at(1_010, &[]), [], "once");
    }
}

#[test]
fn a_fact_counts_in_the_period_it_happened_in_whenever_it_is_heard() {
    let mut stage = Stage::new(&options(), &growing(8));
    stage.at(9_990, &[sent(9_000, 1, 0)]);
    // Just at the end, told after it, with one of the next period before it.
    assert_eq!(stage.at(10_003, &[token(10_001, 900), token(10_000, 100)]), []);
    assert_eq!(stage.at(10_009, &[]), []);
    let orders = stage.at(10_010, &[]);
    let noted = notes(&orders)[0];
    assert_eq!((noted.period, noted.time, noted.ttft_ns), (1, ms(10_000), Some(100_000_000)));
    assert_eq!((noted.in_flight, noted.users, noted.added), (1, 1, 1));
    assert_eq!(noted.reason, RampReason::Throttled);
    assert_eq!(noted.headroom, Some(0.95));
    let entered = entrances(&orders);
    assert_eq!(entered.len(), 1);
    assert_eq!(entered[0].1.at, ms(10_030));
    // The director was held up: periods are contiguous all the same.
    let noted = notes(&stage.at(40_500, &[]));
    let times: Vec<_> = noted.iter().map(|noted| (noted.period, noted.time.0 / SECOND)).collect();
    assert_eq!(times, [(2, 20), (3, 30), (4, 40)]);
    assert_eq!(noted[0].ttft_ns, Some(900_000_000));
    assert_eq!((noted[1].ttft_ns, noted[1].reason), (None, RampReason::NoData));
}

#[test]
fn users_of_one_assessment_start_apart() {
    let mut stage = Stage::new(&options(), &growing(20));
    for period in 1..=3 {
        stage.at(period * 10_000 + 10, &[token(period * 10_000 - 1, 500)]);
    }
    let entered = entrances(&stage.orders);
    let at: Vec<i64> = entered.iter().map(|(_, entrance)| entrance.at.0 / 1_000_000).collect();
    assert_eq!(at, [0, 10_030, 20_030, 30_030, 30_080, 30_130, 30_180, 30_230, 30_280]);
}

#[test]
fn new_users_are_charged_to_the_period_they_start_in() {
    // Every conversation but the first begins with 704 tokens or more.
    let options =
        UserOptions { start_users: 2, recycle: true, new_tokens_per_period: 3_000, ..options() };
    let mut stage = Stage::new(&options, &growing(6));
    let mut charged = Vec::new();
    for period in 1..=6 {
        let from = stage.orders.len();
        let user = entrances(&stage.orders).last().expect("somebody").1.user;
        stage.at(period * 10_000 - 500, &[left(period * 10_000 - 600, user)]);
        let orders = stage.at(period * 10_000 + 10, &[token(period * 10_000 - 1, 100)]);
        charged.push(notes(&orders)[0].new_tokens);
        assert!(stage.orders.len() > from);
    }
    assert_eq!(charged[0], charge_of(&stage, 0, 10_000), "users at zero are not charged");
    for (place, charged) in (1..).zip(&charged[1..]) {
        assert_eq!(*charged, charge_of(&stage, place * 10_000, (place + 1) * 10_000));
        assert!(*charged <= 3_000, "{charged}");
    }
}

/// Tokens of the first prompts of users that entered between these milliseconds.
fn charge_of(stage: &Stage, from: i64, to: i64) -> u64 {
    let tokens = |(_, entrance): &(u16, Entrance)| {
        let script = &stage.direction.scripts.scripts[entrance.conversation as usize];
        u64::from(script.parts[0].cues[0].turn().expect("a request").input_tokens)
    };
    let entered = entrances(&stage.orders);
    entered.iter().filter(|(_, own)| ms(from) < own.at && own.at <= ms(to)).map(tokens).sum()
}

#[test]
fn what_finds_no_room_is_tried_again_and_alone_whoever_is_dearer_starts() {
    let options =
        UserOptions { start_users: 1, recycle: true, new_tokens_per_period: 100, ..options() };
    // One conversation fits (64 tokens); the others have 704 and more.
    let mut stage = Stage::new(&options, &growing(12));
    let orders = stage.at(1_000, &[left(999, 1)]);
    let entered = entrances(&orders);
    let first = |entrance: &Entrance| entrance.conversation == 0;
    if !entered.iter().any(|(_, entrance)| first(entrance)) {
        // Nobody plays and nothing is spent: the last one tried starts, and it is said once.
        assert_eq!(entered.len(), 1);
        assert!(orders.iter().any(|order| matches!(order, Order::Say(_))));
    }
    let number = entered[0].1.user;
    // In the same period nothing is left, in the next one all of it.
    assert_eq!(stage.at(2_000, &[left(1_999, number)]), []);
    assert_eq!(entrances(&stage.at(9_999, &[])), []);
    let orders = stage.at(10_010, &[]);
    assert_eq!(entrances(&orders).len(), 1, "as soon as there is room");
    assert_eq!(notes(&orders)[0].added, 0, "it replaces somebody");
}

#[test]
fn the_ramp_says_which_budget_stopped_it() {
    let trace = growing(6);
    let noted = |options: &UserOptions| {
        let mut stage = Stage::new(options, &trace);
        let heard = [sent(1, 1, entrances(&stage.orders)[0].1.conversation * 3), token(2, 100)];
        notes(&stage.at(10_010, &heard))[0]
    };
    let new_tokens = UserOptions { new_tokens_per_period: 1, ..options() };
    assert_eq!((noted(&new_tokens).added, noted(&new_tokens).reason), (0, RampReason::NewTokens));
    let working_set = UserOptions { working_set_tokens: 64, ..options() };
    let none = noted(&working_set);
    assert_eq!((none.added, none.reason), (0, RampReason::WorkingSet));
    assert!(none.working_set_tokens > 0);
    let empty = UserOptions { start_users: 6, ..options() };
    assert_eq!((noted(&empty).added, noted(&empty).reason), (0, RampReason::PoolEmpty));
    let full = UserOptions { start_users: 6, max_users: 6, ..options() };
    assert_eq!((noted(&full).added, noted(&full).reason), (0, RampReason::MaxUsers));
}

#[test]
fn sub_agents_take_places_and_are_not_replaced() {
    let options = UserOptions { start_users: 1, max_users: 2, recycle: true, ..options() };
    let mut stage = Stage::new(&options, &growing(8));
    let entered = |at| Heard::AgentEntered { at: ms(at), user: 1 };
    stage.at(1_000, &[entered(1), entered(2)]);
    assert_eq!(stage.direction.present(), 3, "they are never refused");
    let noted = notes(&stage.at(10_010, &[token(9, 10)]))[0];
    assert_eq!((noted.users, noted.added, noted.reason), (3, 0, RampReason::MaxUsers));
    let agent_left = |at| Heard::AgentLeft { at: ms(at), user: 1 };
    assert_eq!(stage.at(11_000, &[agent_left(10_500), agent_left(10_600)]), []);
    assert_eq!(stage.direction.present(), 1);
}

#[test]
fn the_gate_closes_after_a_late_period_and_opens_without_data() {
    let late = UserOptions { ttft_gate: true, ..options() };
    let mut stage = Stage::new(&late, &growing(8));
    let gate = |orders: Vec<Order>| {
        orders.iter().find_map(|order| match order {
            Order::Gate { closed } => Some(*closed),
            _ => None,
        })
    };
    assert_eq!(gate(stage.at(10_010, &[token(9_000, 1_999)])), None);
    assert_eq!(gate(stage.at(20_010, &[token(19_000, 2_000)])), Some(true));
    assert_eq!(gate(stage.at(30_010, &[token(29_000, 2_001)])), None, "it stays closed");
    assert_eq!(gate(stage.at(40_010, &[])), Some(false));
    assert_eq!(gate(stage.at(50_010, &[token(49_000, 2_001)])), Some(true));
    assert_eq!(gate(stage.at(60_010, &[token(59_000, 1)])), Some(false));
    let mut stage = Stage::new(&options(), &growing(8));
    assert_eq!(gate(stage.at(10_010, &[token(9_000, 9_999)])), None, "only when asked for");
}

#[test]
fn limited_players_keep_the_rolling_ramp_back() {
    let mut options = options();
    options.ramp.way = RampWay::Rolling;
    let mut stage = Stage::new(&options, &growing(8));
    let limited = Heard::Limited { at: ms(9_000), until: ms(10_001) };
    let noted = notes(&stage.at(10_010, &[token(9_000, 500), limited]))[0];
    assert_eq!((noted.added, noted.reason, noted.limited), (0, RampReason::Limited, 1));
    let noted = notes(&stage.at(20_010, &[token(19_000, 500)]))[0];
    assert_eq!((noted.added, noted.reason, noted.limited), (6, RampReason::Ramped, 0));
}

#[test]
fn a_run_ends_when_its_time_has_passed_or_the_server_is_gone() {
    let short = UserOptions { duration_ns: Some(25 * SECOND), ..options() };
    let mut stage = Stage::new(&short, &growing(8));
    stage.at(24_999, &[]);
    assert_eq!(stage.at(25_000, &[]), [Order::Stop(End::Duration)]);
    let mut orders = Vec::new();
    stage.direction.close(ms(31_500), [token(26_000, 7), token(31_000, 8)], &mut orders);
    let noted: Vec<_> = notes(&orders)
        .iter()
        .map(|noted| (noted.period, noted.time, noted.ttft_ns, noted.reason))
        .collect();
    let reason = RampReason::Ended;
    let wanted =
        [(3, ms(30_000), Some(7_000_000), reason), (4, ms(31_500), Some(8_000_000), reason)];
    assert_eq!(noted, wanted);

    let mut options = options();
    options.breaker.errors = 2;
    let mut stage = Stage::new(&options, &growing(8));
    let refused = |at| ended(at, 1, 0, Class::ConnectRefused);
    assert_eq!(stage.at(10, &[refused(9)]), []);
    let stop = Order::Stop(End::ConnectionErrors { errors: 2 });
    assert_eq!(stage.at(20, &[refused(19)]), [stop]);
}

#[test]
fn output_that_is_too_slow_is_overload() {
    let mut options = options();
    options.ramp.min_output_tokens_per_request = Some(60.0);
    let mut stage = Stage::new(&options, &growing(8));
    let heard = [token(8_000, 100), ended(9_000, 1, 0, Class::Ok)];
    let noted = notes(&stage.at(10_010, &heard))[0];
    assert_eq!((noted.added, noted.reason), (0, RampReason::OutputRate));
    assert_eq!((noted.output_rate, noted.exceeded, noted.required), (Some(50.0), 1, 2));
}

#[test]
fn a_resumed_run_goes_on_where_its_users_were() {
    let options = UserOptions { start_users: 3, recycle: true, ..options() };
    let trace = growing(5);
    let mut stage = Stage::new(&options, &trace);
    let record = |stage: &Stage, user: usize, turn: u32| {
        entrances(&stage.orders)[user].1.conversation * 3 + turn
    };
    let records = [record(&stage, 0, 0), record(&stage, 0, 1), record(&stage, 1, 0)];
    let heard = [
        sent(10, 1, records[0]),
        token(20, 10),
        ended(30, 1, records[0], Class::Ok),
        sent(40, 1, records[1]),
        sent(41, 2, records[2]),
        ended(50, 1, records[1], Class::Http5xx),
        left(60, 3),
    ];
    stage.at(100, &heard);
    stage.at(10_010, &[token(9_000, 1_000)]);
    stage.direction.stop();
    let mut orders = Vec::new();
    let cut = ended(11_000, 2, records[2], Class::Interrupted);
    stage.direction.close(ms(11_001), [cut], &mut orders);
    let state = stage.direction.state();
    let text = serde_json::to_string(&state).expect("plain data");
    let read: DirectorState = serde_json::from_str(&text).expect("what was written");
    assert_eq!(read, state);
    let cues: Vec<_> = state.playing.iter().map(|own| (own.user, own.cue)).collect();
    assert_eq!(cues, [(1, 2), (2, 0), (4, 0), (5, 0)], "a failed request is played, a cut one not");
    assert_eq!((state.users_created, state.owed), (5, 0));

    let mut resumed = Stage::of(direction(&options, &trace, 2).resumed(read));
    let before = entrances(&stage.orders);
    let after = entrances(&resumed.orders);
    assert_eq!(after.len(), 4);
    for (_, entrance) in &after {
        let same = before.iter().find(|(_, own)| own.user == entrance.user).expect("the same");
        assert_eq!(entrance.conversation, same.1.conversation);
        assert_eq!((entrance.at, entrance.copy), (RunNanos(0), same.1.copy));
    }
    // New users go on in the order of numbers and of conversations.
    let next = |stage: &mut Stage| {
        let mut orders = Vec::new();
        stage.direction.over = None;
        stage.direction.step(ms(12_000), [left(11_900, 1)], &mut orders);
        let (_, entrance) = entrances(&orders)[0];
        (entrance.user, entrance.conversation, entrance.copy)
    };
    assert_eq!(next(&mut resumed), next(&mut stage));
}

#[test]
fn a_state_of_another_trace_is_refused_in_words() {
    let state = |conversation: u32, cue: u32| {
        let user = Returning { user: 7, conversation, copy: 0, cue };
        DirectorState { playing: vec![user], users_created: 7, ..DirectorState::default() }
    };
    let scripts = scripts(&growing(2), &ScriptOptions::default()).expect("scripts");
    assert_eq!(state(1, 2).check(&scripts), Ok(()));
    let words = |state: DirectorState| state.check(&scripts).expect_err("it cannot go on");
    let wanted = "playing: user 7 plays conversation 2, and the trace has 2";
    assert_eq!(words(state(2, 0)), wanted);
    let wanted = "playing: user 7 is at cue 3 of conversation 1, which has 3";
    assert_eq!(words(state(1, 3)), wanted);
    let wanted = "playing: user 7 is there twice or is none of users 1 to 6";
    assert_eq!(words(DirectorState { users_created: 6, ..state(1, 2) }), wanted);
    let wanted = "owed: 9 users are to be replaced, and there were 7";
    assert_eq!(words(DirectorState { owed: 9, ..state(1, 2) }), wanted);
}

#[test]
fn only_users_of_the_beginning_are_advanced_unless_all_are() {
    for all_users in [false, true] {
        let options = UserOptions {
            start_users: 2,
            recycle: true,
            advance: Advance { min: 0.4, max: 0.4, all_users },
            ..options()
        };
        let mut stage = Stage::new(&options, &growing(8));
        stage.at(1_000, &[left(999, 1)]);
        let cues: Vec<u32> =
            entrances(&stage.orders).iter().map(|(_, entrance)| entrance.cue).collect();
        assert_eq!(cues, [1, 1, u32::from(all_users)]);
    }
}

#[test]
fn every_metric_is_at_hand() {
    for (metric, wanted) in [(TtftMetric::Max, 400), (TtftMetric::Avg, 250), (TtftMetric::P95, 385)]
    {
        let mut options = options();
        options.ramp.metric = metric;
        let mut stage = Stage::new(&options, &growing(8));
        let heard: Vec<Heard> = [100, 200, 300, 400].map(|ttft| token(5_000, ttft)).to_vec();
        let noted = notes(&stage.at(10_010, &heard))[0];
        assert_eq!(noted.ttft_ns, Some(wanted * 1_000_000));
    }
}
