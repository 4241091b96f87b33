//! Which connection carries which request: each its own, each session its own, several servers,
//! and caps that do not make a run wait for ever.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use onbeat::net::target::Target;
use onbeat::policy::reuse::Strategy;
use onbeat_shared::log::Class;
use onbeat_shared::run::Run;
use tests::scripted::{Scripted, answer, good_stream, request};
use tests::{Scenario, drivers, ends, mooncake};

/// For each connection that carried anything, the sessions of its requests in order.
type Carried = Arc<Mutex<BTreeMap<usize, Vec<String>>>>;

fn classes(run: &Run) -> Vec<&'static str> {
    (0..run.plan.len()).map(|i| run.requests.class(i).map_or("open", Class::name)).collect()
}

fn session_of(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).to_lowercase();
    let name = text.lines().find_map(|line| line.strip_prefix("x-correlation-id: "));
    name.expect("every request names its session").to_owned()
}

/// A server that writes down what its connections carry, and answers with what `reply` says of a
/// session's request number.
fn server(reply: fn(&str, usize) -> Vec<u8>) -> (Scripted, Carried) {
    let carried = Carried::default();
    let notes = Arc::clone(&carried);
    let turns = Mutex::new(BTreeMap::<String, usize>::new());
    let serve = move |number: usize, mut stream: TcpStream| {
        while let Some(bytes) = request(&mut stream) {
            let session = session_of(&bytes);
            notes.lock().expect("no panic").entry(number).or_default().push(session.clone());
            let turn = {
                let mut turns = turns.lock().expect("no panic");
                let turn = turns.entry(session.clone()).or_default();
                *turn += 1;
                *turn
            };
            answer(&mut stream, &reply(&session, turn));
        }
    };
    (Scripted::start(serve), carried)
}

fn good(_session: &str, _turn: usize) -> Vec<u8> {
    good_stream()
}

/// So many sessions of three turns each, interleaved.
fn sessions(count: u32) -> String {
    (0..3 * count)
        .map(|row| {
            let parent = i64::from(row) - i64::from(count);
            format!(
                "{{\"chat_id\":{row},\"parent_chat_id\":{},\"timestamp\":{},\"input_length\":2,\
                 \"output_length\":1,\"type\":\"text\",\"turn\":{},\"hash_ids\":[1]}}\n",
                parent.max(-1),
                1.0 + f64::from(row) * 0.004,
                row / count + 1,
            )
        })
        .collect()
}

fn carried(notes: &Carried) -> Vec<Vec<String>> {
    notes.lock().expect("no panic").values().cloned().collect()
}

#[test]
fn a_connection_that_is_never_used_again_carries_one_request() {
    for driver in drivers() {
        for warm in [None, Some(1)] {
            let (server, notes) = server(good);
            let mut scenario = Scenario::new(&mooncake(12, 5, 10, 2));
            scenario.config.driver = Some(driver);
            scenario.config.warm_connections = warm;
            scenario.config.reuse = Strategy::Never;
            let run = ends(move || scenario.run_against(server.address));
            assert_eq!(classes(&run), ["ok"; 12]);
            assert!((0..12).all(|i| run.requests.connection_reused(i) == Some(false)));
            let carried = carried(&notes);
            assert_eq!(carried.len(), 12);
            assert!(carried.iter().all(|requests| requests.len() == 1), "{carried:?}");
        }
    }
}

#[test]
fn a_session_that_sticks_has_one_connection_for_itself() {
    for driver in drivers() {
        for warm in [None, Some(1)] {
            let (server, notes) = server(good);
            let mut scenario = Scenario::new(&sessions(4));
            scenario.config.driver = Some(driver);
            scenario.config.warm_connections = warm;
            scenario.config.reuse = Strategy::StickyUserSessions;
            let run = ends(move || scenario.run_against(server.address));
            assert_eq!(classes(&run), ["ok"; 12]);
            let carried = carried(&notes);
            assert_eq!(carried.len(), 4, "{carried:?}");
            for requests in &carried {
                assert_eq!(requests.len(), 3);
                assert!(requests.iter().all(|session| *session == requests[0]), "{carried:?}");
            }
        }
    }
}

#[test]
fn an_error_ends_a_sessions_connection() {
    let (server, notes) = server(|session, turn| match (session, turn) {
        ("0", 2) => b"HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\n{}".to_vec(),
        _ => good_stream(),
    });
    let mut scenario = Scenario::new(&sessions(2));
    scenario.config.reuse = Strategy::StickyUserSessions;
    let run = ends(move || scenario.run_against(server.address));
    assert_eq!(classes(&run).iter().filter(|class| **class == "http_5xx").count(), 1);
    let mut lengths: Vec<usize> = carried(&notes).iter().map(Vec::len).collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [1, 2, 3], "the first session went on on another");
}

/// A scenario over two servers.
fn over_two(trace: &str, first: SocketAddr, second: SocketAddr) -> Scenario {
    let mut scenario = Scenario::new(trace);
    let target = |address: SocketAddr| Target::parse(&address.to_string()).expect("an address");
    scenario.config.target = target(first);
    scenario.config.more_targets = vec![target(second)];
    scenario
}

#[test]
fn sessions_take_servers_in_turn_and_stay() {
    for reuse in [Strategy::Pooled, Strategy::Never, Strategy::StickyUserSessions] {
        for most in [None, Some(1)] {
            let (first, first_notes) = server(good);
            let (second, second_notes) = server(good);
            let mut scenario = over_two(&sessions(5), first.address, second.address);
            scenario.config.reuse = reuse;
            scenario.config.max_connections = most;
            let run = ends(move || scenario.run_as_meant());
            assert_eq!(classes(&run), ["ok"; 15], "{reuse:?} {most:?}");
            for i in 0..15 {
                let turn = u16::try_from(run.plan[i].session.0 % 2).expect("two servers");
                assert_eq!((run.plan[i].target, run.requests.target(i)), (turn, Some(turn)));
            }
            let sessions = |notes: &Carried| -> BTreeSet<String> {
                carried(notes).into_iter().flatten().collect()
            };
            let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
            let expected: [BTreeSet<String>; 2] = [named(&["0", "2", "4"]), named(&["1", "3"])];
            assert_eq!([sessions(&first_notes), sessions(&second_notes)], expected);
            assert_eq!(run.manifest.targets.len(), 2);
        }
    }
}

#[test]
fn a_cap_on_connections_does_not_stop_sessions_that_stick() {
    for driver in drivers() {
        let (server, _notes) = server(good);
        let mut scenario = Scenario::new(&sessions(6));
        scenario.config.driver = Some(driver);
        scenario.config.reuse = Strategy::StickyUserSessions;
        scenario.config.max_connections = Some(2);
        let run = ends(move || scenario.run_against(server.address));
        assert_eq!(classes(&run), ["ok"; 18]);
    }
}

#[test]
fn a_time_limit_on_the_whole_covers_the_opening_of_a_connection() {
    let deaf = tests::scripted::Deaf::with_room_for(2);
    let mut scenario = Scenario::new(&mooncake(3, 1, 10, 1));
    // One for the probe, one for the warm-up, and none for the others.
    scenario.config.warm_connections = Some(1);
    scenario.config.limits.total_ns = Some(200_000_000);
    let address = deaf.address;
    let run = ends(move || scenario.run_against(address));
    assert_eq!(classes(&run), ["total_timeout"; 3]);
}
