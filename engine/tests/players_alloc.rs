//! Playing users must not allocate: players and gates are asked on a pacing core between two sends.
//!
//! A binary of its own, because it replaces the global allocator with one that counts.

mod counting;

use std::sync::Arc;

use onbeat::plan::{ScriptOptions, scripts};
use onbeat::policy::admission::{Gates, Limits};
use onbeat::policy::players::{Act, Entrance, Event, Players};
use onbeat::trace::{TraceOptions, read};
use onbeat_shared::units::{RequestIndex, RunNanos, SessionIndex};

use self::counting::allocations;

const USERS: usize = 20_000;

/// Four conversations: three of eight requests, and one whose user has three sub-agents.
fn conversations(folder: &std::path::Path) {
    let request = |t: u32, ids: &str| {
        format!("{{\"t\":{t},\"in\":200,\"out\":9,\"hash_ids\":[{ids}],\"think_time\":1}}")
    };
    let plain: Vec<String> = (0..8).map(|t| request(t, "1,2,3")).collect();
    let agent =
        "{\"type\":\"subagent\",\"t\":1,\"requests\":[".to_owned() + &request(0, "7") + "]}";
    let wide = [request(0, "1"), agent.clone(), agent.clone(), agent, request(9, "1,2")];
    for number in 0..4 {
        let requests = if number == 3 { wide.join(",") } else { plain.join(",") };
        let text = format!("{{\"models\":[],\"requests\":[{requests}]}}");
        std::fs::write(folder.join(format!("{number}.json")), text).expect("written");
    }
}

#[test]
fn playing_users_does_not_allocate() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    conversations(folder.path());
    let trace = read(folder.path(), &TraceOptions::default()).expect("reads");
    let scripts = Arc::new(scripts(&trace, &ScriptOptions::default()).expect("played"));
    let limits = Limits { concurrent: 50, input_per_minute: 1 << 40, ..Limits::default() };
    let gates = Gates::new(limits, 0);
    let mut players = Players::new(Arc::clone(&scripts), USERS, 1, gates.sessions());
    let mut flying: Vec<(Act, RequestIndex)> = Vec::with_capacity(64);
    let (mut events, mut left, mut sent, mut now) = (0_u64, 0_usize, 0_usize, 0_i64);
    let mut emit = |event: Event| {
        events += 1;
        left += usize::from(matches!(event, Event::Left { .. }));
    };
    let before = allocations();
    for user in 0..u32::try_from(USERS).expect("few") {
        let entrance = Entrance {
            user,
            session: SessionIndex(user),
            conversation: user % 4,
            cue: 0,
            at: RunNanos(i64::from(user) * 1_000_000),
            copy: 0,
        };
        players.enter(entrance, RunNanos(0), &mut emit);
    }
    while !players.is_empty() {
        if let Some(next) = players.peek() {
            now = now.max(next.at.0);
        }
        while let Some(act) = players.pop(RunNanos(now), &mut emit) {
            let player = act.who.player;
            match gates.admit(act.cost(), RunNanos(now)) {
                Ok(()) => {
                    let request = gates.number_request();
                    players.begun(player, request, RunNanos(now));
                    gates.first_token();
                    flying.push((act, request));
                }
                Err(blocked) => {
                    players.block(player, RunNanos(now), blocked, &mut emit);
                }
            }
        }
        now += 1_000_000;
        for (act, request) in flying.drain(..) {
            sent += 1;
            gates.ended(true);
            players.end(act.who.player, request, RunNanos(now), sent % 9 > 0, &mut emit);
        }
    }
    assert_eq!(allocations() - before, 0);
    assert_eq!(sent, USERS / 4 * (3 * 8 + 5));
    assert_eq!(left, USERS);
    assert!(events > 4 * USERS as u64, "some were blocked on the way: {events}");
}
