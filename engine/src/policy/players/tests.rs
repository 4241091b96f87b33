//! Players: single rules one by one, then random conversations in random orders of ends.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use onbeat_shared::units::{NANOS_PER_SECOND, RequestIndex, RunNanos, SessionIndex};

use super::*;
use crate::plan::script::{ScriptOptions, Scripts, scripts};
use crate::policy::admission::Blocked;

pub(super) fn request(t: i64, tokens: u32, ids: &[u32], more: &str) -> String {
    format!("{{\"t\":{t},\"in\":{tokens},\"out\":3,\"hash_ids\":{ids:?}{more}}}")
}

pub(super) fn agent(more: &str, requests: &[String]) -> String {
    format!("{{\"type\":\"subagent\",\"t\":1{more},\"requests\":[{}]}}", requests.join(","))
}

pub(super) const DETACHED: &str = ",\"status\":\"async_launched\"";

/// The scripts of conversations, each a list of requests.
pub(super) fn of(conversations: &[Vec<String>], options: &ScriptOptions) -> Scripts {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (number, requests) in conversations.iter().enumerate() {
        let text = format!("{{\"models\":[],\"requests\":[{}]}}", requests.join(","));
        std::fs::write(folder.path().join(format!("c{number:03}.json")), text).expect("written");
    }
    let options_of_trace = crate::trace::TraceOptions::default();
    let trace = crate::trace::read(folder.path(), &options_of_trace).expect("reads");
    scripts(&trace, options).expect("played")
}

const SECOND: i64 = NANOS_PER_SECOND;

fn at(seconds: i64) -> RunNanos {
    RunNanos(seconds * SECOND)
}

/// One core's players and what was heard of them.
struct Stage {
    players: Players,
    events: Vec<Event>,
    next_request: u32,
}

impl Stage {
    fn new(conversations: &[Vec<String>], options: &ScriptOptions) -> Self {
        let scripts = Arc::new(of(conversations, options));
        let sessions = Arc::new(AtomicU32::new(100));
        let players = Players::new(scripts, 4, 1, sessions);
        Self { players, events: Vec::new(), next_request: 0 }
    }

    fn enter(&mut self, user: u32, cue: u32, start: i64, now: i64) {
        let entrance = Entrance {
            user,
            session: SessionIndex(user),
            conversation: 0,
            cue,
            at: at(start),
            copy: 0,
        };
        self.players.enter(entrance, at(now), &mut |event| self.events.push(event));
    }

    fn pop(&mut self, now: i64) -> Option<Act> {
        self.players.pop(at(now), &mut |event| self.events.push(event))
    }

    /// Begins the next request, which has to be this record of this part.
    fn begin(&mut self, now: i64, part: u16, record: u32) -> (Act, RequestIndex) {
        let act = self.pop(now).unwrap_or_else(|| panic!("record {record} is ready at {now}"));
        assert_eq!((act.who.part, act.turn.record), (part, record), "at {now}");
        let request = RequestIndex(self.next_request);
        self.next_request += 1;
        self.players.begun(act.who.player, request, at(now));
        (act, request)
    }

    fn end(&mut self, (act, request): (Act, RequestIndex), now: i64) {
        self.end_as((act, request), now, true);
    }

    fn end_as(&mut self, (act, request): (Act, RequestIndex), now: i64, well: bool) {
        let mut emit = |event| self.events.push(event);
        self.players.end(act.who.player, request, at(now), well, &mut emit);
    }

    fn next(&self) -> Option<i64> {
        self.players.peek().map(|next| next.at.0 / SECOND)
    }

    /// What was heard since the last time, in short.
    fn heard(&mut self) -> Vec<String> {
        let told = |event: Event| {
            let who = event.who();
            let name = format!("{}.{}", who.user, who.part);
            match event {
                Event::Started { parent, number, at, .. } => {
                    let parent = parent.map(|parent| parent.0);
                    format!("{name} starts at {} ({parent:?}, {number})", at.0 / SECOND)
                }
                Event::Completed { at, done, total, .. } => {
                    format!("{name} completes at {} ({done}/{total})", at.0 / SECOND)
                }
                Event::Truncated { at, done, total, .. } => {
                    format!("{name} is cut at {} ({done}/{total})", at.0 / SECOND)
                }
                Event::Stopped { at, done, total, .. } => {
                    format!("{name} is stopped at {} ({done}/{total})", at.0 / SECOND)
                }
                Event::Limited { why, .. } => format!("{name} is limited by {why:?}"),
                Event::Left { at, cue, how, .. } => {
                    format!("{name} leaves at {} (cue {cue}, {how:?})", at.0 / SECOND)
                }
            }
        };
        self.events.drain(..).map(told).collect()
    }
}

fn ask(t: i64, think: i64) -> String {
    request(t, 64, &[1], &format!(",\"think_time\":{think},\"api_time\":1"))
}

fn options() -> ScriptOptions {
    ScriptOptions { detach_async: true, ..ScriptOptions::default() }
}

#[test]
fn who_plays_when_the_run_ends_is_told_as_stopped() {
    let agent = agent("", &[request(0, 64, &[9], ""), request(5, 64, &[9], "")]);
    let mine = vec![request(0, 64, &[1], ""), agent, request(9, 64, &[1], "")];
    let mut stage = Stage::new(&[mine], &ScriptOptions::default());
    stage.enter(1, 0, 0, 0);
    stage.enter(2, 0, 50, 0);
    let first = stage.begin(0, 0, 0);
    stage.end(first, 2);
    let inner = stage.begin(2, 1, 1);
    stage.end(inner, 3);
    stage.heard();
    stage.players.stop(at(4), &mut |event| stage.events.push(event));
    // The second user has not begun.
    let told = ["1.0 is stopped at 4 (1/2)", "1.1 is stopped at 4 (1/2)"];
    let mut heard = stage.heard();
    heard.sort_unstable();
    assert_eq!(heard, told);
}

#[test]
fn a_user_thinks_from_the_end_of_each_answer() {
    let mut stage = Stage::new(&[vec![ask(0, 0), ask(10, 4)]], &options());
    stage.enter(1, 0, 5, 2);
    assert_eq!((stage.next(), stage.pop(4)), (Some(5), None));
    assert!(stage.heard().is_empty(), "it starts at its time");
    let first = stage.begin(5, 0, 0);
    assert_eq!((first.0.due, first.0.after), (at(5), None));
    assert_eq!((stage.next(), stage.players.users()), (None, 1), "an active user is not ready");
    stage.end(first, 8);
    assert_eq!(stage.next(), Some(12));
    let second = stage.begin(13, 0, 1);
    assert_eq!((second.0.due, second.0.after), (at(12), Some(RequestIndex(0))));
    assert!(second.0.base_played && second.0.ideal_cached == 64 && second.0.ideal_set == 64);
    stage.end(second, 15);
    let heard = [
        "1.0 starts at 5 (None, 1)",
        "1.0 completes at 15 (2/2)",
        "1.0 leaves at 15 (cue 2, Completed)",
    ];
    assert_eq!(stage.heard(), heard);
    assert!(stage.players.is_empty() && stage.next().is_none());
}

#[test]
fn original_counts_from_the_start_but_never_before_the_end() {
    let gap = |t| request(t, 64, &[1], "");
    let mut stage = Stage::new(&[vec![gap(0), gap(10), gap(20)]], &options());
    stage.enter(1, 0, 0, 0);
    let first = stage.begin(0, 0, 0);
    stage.end(first, 3);
    assert_eq!(stage.next(), Some(10));
    let second = stage.begin(12, 0, 1);
    stage.end(second, 40);
    assert_eq!(stage.next(), Some(40), "22 has passed");
}

#[test]
fn sub_agents_start_together_and_their_parent_waits_for_all() {
    let sub = agent("", &[ask(0, 0), ask(9, 2)]);
    let requests = vec![ask(0, 0), sub, agent("", &[]), agent("", &[ask(0, 0)]), ask(10, 4)];
    let mut stage = Stage::new(&[requests], &options());
    stage.enter(1, 0, 0, 0);
    let first = stage.begin(0, 0, 0);
    stage.end(first, 2);
    let started = [
        "1.0 starts at 0 (None, 1)",
        "1.1 starts at 2 (Some(1), 1)",
        "1.2 starts at 2 (Some(1), 2)",
    ];
    assert_eq!(stage.heard(), started);
    let one = stage.begin(2, 1, 1);
    let two = stage.begin(2, 2, 3);
    assert_eq!(one.0.after, Some(RequestIndex(0)), "they follow what their parent asked before");
    assert_eq!((one.0.who.session, two.0.who.session), (SessionIndex(100), SessionIndex(101)));
    assert_eq!((one.0.who.seat, stage.players.players()), (two.0.who.seat, 3));
    stage.end(two, 3);
    stage.end(one, 4);
    assert_eq!(stage.next(), Some(6), "the parent still waits");
    let one = stage.begin(6, 1, 2);
    stage.end(one, 9);
    let done = ["1.2 completes at 3 (1/1)", "1.1 completes at 9 (2/2)"];
    assert_eq!(stage.heard(), done);
    let last = stage.begin(9, 0, 4);
    assert_eq!((last.0.due, last.0.own_due), (at(9), at(6)), "three seconds for its sub-agents");
    assert_eq!(last.0.after, Some(RequestIndex(0)));
    stage.end(last, 10);
    assert!(stage.players.is_empty());
}

#[test]
fn a_parent_that_still_thinks_does_not_hurry() {
    let requests = vec![ask(0, 0), agent("", &[ask(0, 0)]), ask(30, 20)];
    let mut stage = Stage::new(&[requests], &options());
    stage.enter(1, 0, 0, 0);
    let first = stage.begin(0, 0, 0);
    stage.end(first, 2);
    let sub = stage.begin(2, 1, 1);
    stage.end(sub, 5);
    assert_eq!(stage.next(), Some(22));
    let last = stage.begin(22, 0, 2);
    assert_eq!((last.0.due, last.0.own_due), (at(22), at(22)));
}

#[test]
fn sub_agents_may_come_first_and_last() {
    let requests = vec![agent("", &[ask(0, 0)]), ask(5, 3), agent("", &[ask(0, 0)])];
    let mut stage = Stage::new(&[requests], &options());
    stage.enter(1, 0, 0, 0);
    let sub = stage.begin(0, 1, 0);
    assert_eq!(sub.0.after, None);
    stage.end(sub, 4);
    let own = stage.begin(4, 0, 1);
    assert_eq!(
        (own.0.due, own.0.after),
        (at(4), Some(RequestIndex(0))),
        "it waits for nothing else"
    );
    stage.end(own, 6);
    stage.heard();
    let trailing = stage.begin(6, 2, 2);
    assert_eq!(stage.players.users(), 1);
    stage.end(trailing, 9);
    let heard = [
        "1.2 completes at 9 (1/1)",
        "1.0 completes at 9 (1/1)",
        "1.0 leaves at 9 (cue 3, Completed)",
    ];
    assert_eq!(stage.heard(), heard);
}

#[test]
fn nobody_waits_for_a_detached_sub_agent_but_its_user_stays() {
    let requests = vec![ask(0, 0), agent(DETACHED, &[ask(0, 0)]), ask(10, 4)];
    let mut stage = Stage::new(&[requests], &options());
    stage.enter(1, 0, 0, 0);
    let first = stage.begin(0, 0, 0);
    stage.end(first, 1);
    let beside = stage.begin(1, 1, 1);
    let second = stage.begin(5, 0, 2);
    stage.end(second, 7);
    stage.heard();
    assert_eq!((stage.players.users(), stage.players.is_empty()), (1, false));
    stage.end(beside, 20);
    assert_eq!(stage.heard(), ["1.1 completes at 20 (1/1)", "1.0 leaves at 20 (cue 3, Completed)"]);
    assert_eq!(stage.players.users(), 0);
}

#[test]
fn a_request_that_is_too_long_ends_its_player_only() {
    let long = request(1, 500, &[1], "");
    let short = |t| request(t, 64, &[1], "");
    let requests = vec![short(0), agent("", &[short(0), long.clone(), short(9)]), short(2), long];
    let cut = ScriptOptions { max_context: 400, ..options() };
    let mut stage = Stage::new(&[requests], &cut);
    stage.enter(7, 0, 0, 0);
    let first = stage.begin(0, 0, 0);
    stage.end(first, 1);
    let sub = stage.begin(1, 1, 1);
    stage.end(sub, 3);
    stage.heard();
    let second = stage.begin(3, 0, 4);
    assert_eq!(stage.heard(), ["7.1 is cut at 3 (1/3)"]);
    stage.end(second, 4);
    assert_eq!(stage.pop(9), None);
    let heard = ["7.0 is cut at 9 (2/3)", "7.0 leaves at 9 (cue 3, Truncated)"];
    assert_eq!(stage.heard(), heard);
    assert!(stage.players.is_empty());
}

#[test]
fn a_failed_request_is_followed_and_was_not_answered() {
    let grow = |t, ids: &[u32]| request(t, 200, ids, "");
    let requests = vec![grow(0, &[1]), grow(1, &[1, 2]), grow(2, &[1, 2, 3])];
    let mut stage = Stage::new(&[requests], &options());
    stage.enter(1, 0, 0, 0);
    let first = stage.begin(0, 0, 0);
    stage.end(first, 1);
    let failed = stage.begin(1, 0, 1);
    stage.end_as(failed, 2, false);
    let third = stage.begin(2, 0, 2);
    assert!(!third.0.base_played, "there is no answer to go on from");
    assert_eq!(third.0.ideal_cached, 128, "but its prompt was sent");
}

#[test]
fn an_advanced_user_begins_with_its_own_wait_and_an_empty_cache() {
    let grow = |t, ids: &[u32]| request(t, 300, ids, ",\"think_time\":7,\"api_time\":1");
    let requests = vec![
        grow(0, &[1]),
        agent("", &[ask(0, 0)]),
        grow(20, &[1, 2, 3]),
        grow(40, &[1, 2, 3, 4]),
        grow(60, &[1, 9]),
    ];
    let mut stage = Stage::new(&[requests], &options());
    stage.enter(1, 2, 3, 0);
    let first = stage.begin(10, 0, 2);
    assert_eq!((first.0.due, first.0.ideal_cached, first.0.ideal_set), (at(10), 0, 0));
    assert!(!first.0.base_played, "that record was not played by it");
    stage.end(first, 11);
    let second = stage.begin(18, 0, 3);
    assert_eq!((second.0.ideal_cached, second.0.base_played), (192, true));
    stage.end(second, 19);
    let last = stage.begin(26, 0, 4);
    assert_eq!(last.0.ideal_cached, 64, "what it shares with what was sent");
    stage.end(last, 27);
    assert!(stage.heard().contains(&"1.0 completes at 27 (3/3)".to_owned()));
}

#[test]
fn the_warm_prefix_is_cached_in_whole_blocks() {
    let scripts =
        Scripts { warm_tokens: 150, ..of(&[vec![ask(0, 0), request(1, 99, &[], "")]], &options()) };
    let mut players = Players::new(Arc::new(scripts), 1, 1, Arc::new(AtomicU32::new(0)));
    let entrance =
        Entrance { user: 1, session: SessionIndex(0), conversation: 0, cue: 0, at: at(0), copy: 0 };
    players.enter(entrance, at(0), &mut |_| {});
    let act = players.pop(at(0), &mut |_| {}).expect("ready");
    assert_eq!((act.ideal_cached, act.cost().fresh_input), (64, 0));
    players.begun(act.who.player, RequestIndex(0), at(0));
    players.end(act.who.player, RequestIndex(0), at(0), true, &mut |_| {});
    let act = players.pop(at(9), &mut |_| {}).expect("ready");
    assert_eq!(act.ideal_cached, 0, "without block ids it has a text of its own");
}

#[test]
fn a_blocked_player_backs_off_until_a_success() {
    let mut stage = Stage::new(&[vec![ask(0, 0), ask(0, 0), ask(0, 0)]], &options());
    stage.enter(1, 0, 0, 0);
    let blocked = Blocked { why: Why::Concurrency, turn_at: None };
    let mut now = at(0);
    let back_off = |stage: &mut Stage, now: &mut RunNanos| {
        let mut emit = |event| stage.events.push(event);
        let act = stage.players.pop(*now, &mut emit).expect("ready");
        let back = stage.players.block(act.who.player, *now, blocked, &mut emit);
        assert_eq!(stage.players.peek().map(|next| next.at), Some(back));
        let backoff_ns = back.0 - now.0;
        let told_ns = match stage.events.pop() {
            Some(Event::Limited { backoff_ns, .. }) => Some(backoff_ns),
            _ => None,
        };
        assert_eq!(told_ns, Some(backoff_ns), "it is told");
        *now = back;
        (backoff_ns, act.due)
    };
    let middles = [200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000];
    for middle_ms in middles.map(|ms: i64| ms * 1_000_000) {
        let (backoff_ns, due) = back_off(&mut stage, &mut now);
        assert!((middle_ms / 4 * 3..=middle_ms / 4 * 5).contains(&backoff_ns), "{backoff_ns}");
        assert_eq!(due, at(0), "since when it is ready does not change");
    }
    let go = |stage: &mut Stage, now: RunNanos, well: bool| {
        let act = stage.players.pop(now, &mut |_| {}).expect("ready");
        stage.players.begun(act.who.player, RequestIndex(0), now);
        stage.players.end(act.who.player, RequestIndex(0), now, well, &mut |_| {});
    };
    go(&mut stage, now, false);
    assert!(back_off(&mut stage, &mut now).0 > 20 * SECOND, "a failure changes nothing");
    go(&mut stage, now, true);
    assert!(back_off(&mut stage, &mut now).0 < SECOND, "a success does");
    let turn = Blocked { why: Why::InputTokens, turn_at: Some(RunNanos(now.0 + 5)) };
    let act = stage.players.pop(now, &mut |_| {}).expect("ready");
    let back = stage.players.block(act.who.player, now, turn, &mut |_| {});
    assert_eq!(back.0, now.0 + 5, "whoever has the turn comes when the budget does");
}

#[test]
fn back_offs_depend_on_the_seed_and_the_user_only() {
    let back_off = |seed: u64, user: u32| {
        let scripts = Arc::new(of(&[vec![ask(0, 0)]], &options()));
        let mut players = Players::new(scripts, 1, seed, Arc::new(AtomicU32::new(0)));
        let session = SessionIndex(0);
        let entrance = Entrance { user, session, conversation: 0, cue: 0, at: at(0), copy: 0 };
        players.enter(entrance, at(0), &mut |_| {});
        let act = players.pop(at(0), &mut |_| {}).expect("ready");
        let blocked = Blocked { why: Why::Prefill, turn_at: None };
        players.block(act.who.player, at(0), blocked, &mut |_| {}).0
    };
    assert_eq!(back_off(1, 1), back_off(1, 1));
    assert_ne!(back_off(1, 1), back_off(1, 2));
    assert_ne!(back_off(1, 1), back_off(2, 1));
}

#[test]
fn more_users_than_announced_are_let_in() {
    let sub = agent("", &[ask(0, 0)]);
    let mut stage = Stage::new(&[vec![ask(0, 0), sub.clone(), sub.clone(), sub]], &options());
    for user in 0..100 {
        stage.enter(user, 0, 0, 0);
    }
    assert_eq!((stage.players.users(), stage.players.players()), (100, 100));
    assert!(stage.players.room() >= 400);
    while let Some(next) = stage.next() {
        let act = stage.pop(next).expect("ready");
        stage.players.begun(act.who.player, RequestIndex(0), at(next));
        stage.end((act, RequestIndex(0)), next);
    }
    assert!(stage.players.is_empty() && stage.players.users() == 0);
}
