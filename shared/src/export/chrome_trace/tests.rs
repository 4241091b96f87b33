//! The rules of the trace-event format, held against what is written, and what is shown.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{write, write_of};
use crate::log::sample::{self, Sample};
use crate::log::start::{HostPart, Merged};
use crate::log::{Class, Host, Record, sample_users};
use crate::metrics::selection::{Selection, parse_range};
use crate::run::Run;
use crate::units::{CoreIndex, RunNanos};

const MS: i64 = 1_000_000;

fn written(run: &Run) -> Vec<Value> {
    let mut out = Vec::new();
    write(run, &mut out).expect("memory takes everything");
    let text = String::from_utf8(out).expect("text");
    assert!(text.starts_with("[\n") && text.ends_with("\n]\n"), "an array, an event a line");
    let events: Vec<Value> = serde_json::from_str(&text).expect("one JSON value");
    assert_eq!(text.lines().count(), events.len() + 2);
    events
}

/// A time in whole nanoseconds.
fn nanos(event: &Value) -> i64 {
    let micros = event["ts"].as_f64().expect("a time");
    assert!(micros >= 0.0, "{event}");
    #[expect(clippy::cast_possible_truncation, reason = "times of tests are small")]
    let nanos = (micros * 1e3).round() as i64;
    nanos
}

/// Checks every event by itself and the slices of each track; returns the tracks' names.
fn check(events: &[Value]) -> BTreeMap<(u64, u64), String> {
    let mut names = BTreeMap::new();
    let mut threads = BTreeSet::new();
    let mut open: BTreeMap<(u64, u64), Vec<i64>> = BTreeMap::new();
    let mut free: BTreeMap<(u64, u64), i64> = BTreeMap::new();
    for event in events {
        let kind = event["ph"].as_str().expect("a kind");
        let pid = event["pid"].as_u64().expect("a process");
        let track = (pid, event["tid"].as_u64().unwrap_or(0));
        assert!(kind == "E" || event["name"].is_string(), "{event}");
        match kind {
            "M" if event["name"] == "thread_name" => {
                let name = event["args"]["name"].as_str().expect("a name").to_owned();
                assert!(threads.insert(track.1), "threads have numbers of their own: {event}");
                names.insert(track, name);
            }
            "M" => assert!(event["args"].is_object(), "{event}"),
            "B" => {
                assert!(names.contains_key(&track), "{event}");
                let (at, inside) = (nanos(event), open.entry(track).or_default());
                let after =
                    inside.last().copied().unwrap_or(0).max(free.remove(&track).unwrap_or(0));
                assert!(at >= after, "it begins before {after}: {event}");
                inside.push(at);
            }
            "E" => {
                let (at, inside) = (nanos(event), open.entry(track).or_default());
                let began = inside.pop().expect("something had begun");
                assert!(at >= began.max(free.remove(&track).unwrap_or(0)), "{event}");
                free.insert(track, at);
            }
            "i" => {
                assert!(names.contains_key(&track) && event["s"] == "t", "{event}");
                let since = open.get(&track).and_then(|inside| inside.last());
                assert!(since.is_none_or(|&since| nanos(event) >= since), "{event}");
            }
            "C" => {
                nanos(event);
                assert!(event["args"]["value"].as_f64().is_some_and(|value| value >= 0.0));
            }
            other => panic!("a kind of its own: {other}"),
        }
    }
    assert!(open.values().all(Vec::is_empty), "what begins ends");
    names
}

fn count(events: &[Value], kind: &str, category: &str) -> usize {
    events.iter().filter(|event| event["ph"] == kind && event["cat"] == category).count()
}

#[test]
fn every_event_keeps_the_formats_rules_and_nothing_is_left_out() {
    let users = Run::read(&sample_users::log(3, 8)).expect("a log");
    let some = Run::read(&sample::log(3, 400)).expect("a log");
    let nothing = Run::read(&Sample::new().bytes()).expect("a log");
    for run in [&users, &some, &nothing] {
        let events = written(run);
        let names = check(&events);
        let sent = (0..run.requests.len()).filter(|&i| run.requests.was_sent(i)).count();
        assert_eq!(count(&events, "B", "request"), sent);
        assert_eq!(count(&events, "i", "send"), sent);
        assert_eq!(count(&events, "i", "request"), run.requests.len() - sent);
        assert_eq!(count(&events, "B", "stall"), run.stalls.all().len());
        let chunks: usize = (0..run.requests.len()).map(|i| run.chunks.count(i)).sum();
        assert_eq!(count(&events, "i", "chunk"), chunks);
        let openings = events.iter().filter(|event| event["name"] == "connect");
        assert!(openings.count() >= run.connects.len());
        for i in 0..run.requests.len() {
            let name = run.session_name(i).expect("a name");
            assert!(names.values().any(|track| track == name), "{name}");
        }
        let zero = events.iter().find(|event| event["name"] == "zero").expect("one");
        assert_eq!(zero["args"]["unix_ns"], run.started_unix_ns());
    }
}

#[test]
fn names_are_escaped_and_what_overlaps_gets_a_track_of_its_own() {
    let mut sample = Sample::new();
    // Three turns of one session, of which two overlap; a connection that is opened before zero.
    for (sent, done) in [(0, 30), (10, 20), (30, 40)] {
        let request = sample.send(sent * MS);
        sample.chunks(request, &[(sent + 5) * MS]);
        sample.done(request, done * MS, Class::Ok);
    }
    let hostile = "a\"b\\c\n</script>\u{1}\u{2028}é";
    for session in &mut sample.sessions {
        hostile.clone_into(session);
    }
    sample.manifest.targets = vec![hostile.to_owned()];
    let (start, end) = (RunNanos(-3 * MS), RunNanos(-MS));
    let (core, class) = (CoreIndex(0), Class::Ok);
    let connect = Record::Connect { connection: 9, start, end, target: 0, class, errno: 0 };
    sample.push(core, connect);
    let run = Run::read(&sample.bytes()).expect("a log");
    let events = written(&run);
    let names = check(&events);
    let own: Vec<&String> = names.values().filter(|name| name.contains("script")).collect();
    assert_eq!(own, [hostile, &format!("{hostile} (2)")]);
    let zero = events.iter().find(|event| event["name"] == "zero").expect("one");
    assert_eq!(nanos(zero), 3 * MS, "no time is below zero");
    let connect = events.iter().find(|event| event["name"] == "connect").expect("one");
    assert_eq!((nanos(connect), &connect["args"]["target"]), (0, &Value::from(hostile)));
    let in_flight: Vec<f64> = events
        .iter()
        .filter(|event| event["name"] == "requests in flight")
        .filter_map(|event| event["args"]["value"].as_f64())
        .collect();
    assert_eq!(in_flight, [1.0, 2.0, 1.0, 1.0, 0.0]);
}

#[test]
fn a_request_has_its_phases_and_its_figures() {
    let mut sample = Sample::new();
    let request = sample.plan(10 * MS);
    sample.dispatch(request, 12 * MS, 15 * MS);
    sample.chunks(request, &[50 * MS, 90 * MS]);
    sample.done(request, 95 * MS, Class::Ok);
    // The second of these stalls begins inside the first.
    for (start, length_ns) in [(12, 2_500_000), (13, 4_000_000)] {
        sample.push(CoreIndex(0), Record::Stall { start: RunNanos(start * MS), length_ns });
    }
    let run = Run::read(&sample.bytes()).expect("a log");
    let events = written(&run);
    check(&events);
    let at = |name: &str| {
        let event = events.iter().find(|event| event["name"] == name).expect(name);
        nanos(event) / MS
    };
    assert_eq!(["request 0", "late", "prefill", "decode", "tail"].map(at), [12, 12, 15, 50, 90]);
    let stalls: Vec<i64> =
        events.iter().filter(|event| event["cat"] == "stall").map(nanos).collect();
    assert_eq!(stalls, [12 * MS, 14_500_000], "slices of a track do not overlap");
    let facts = &events.iter().find(|event| event["name"] == "request 0").expect("one")["args"];
    assert_eq!((&facts["ttft_ms"], &facts["lateness_us"]), (&35.0.into(), &3_000.0.into()));
    assert!(facts["cached_tokens"].is_null(), "unknown is null");
}

#[test]
fn cores_of_a_merged_run_are_in_a_group_for_each_host() {
    let mut sample = Sample::new();
    for core in 0..3 {
        let request = sample.plan(0);
        sample.plan[request.as_usize()].core = CoreIndex(core);
        sample.dispatch(request, 0, MS);
    }
    let host = |shard, first_core, cores: &[u16], name: &str| HostPart {
        shard,
        first_core,
        cores: cores.to_vec(),
        host: Host { hostname: name.to_owned(), ..Host::default() },
        ..HostPart::default()
    };
    let hosts = vec![host(0, 0, &[4, 5], "a"), host(1, 2, &[4], "b")];
    sample.manifest.merged = Some(Box::new(Merged { shards: 2, hosts, ..Merged::default() }));
    let run = Run::read(&sample.bytes()).expect("a log");
    let events = written(&run);
    let names = check(&events);
    let tracks = |group: &str| -> Vec<&str> {
        let is_it =
            |event: &&Value| event["name"] == "process_name" && event["args"]["name"] == group;
        let pid = events.iter().find(is_it).expect(group)["pid"].as_u64();
        names.iter().filter(|row| Some(row.0.0) == pid).map(|row| row.1.as_str()).collect()
    };
    assert_eq!(tracks("cores of a (shard 0)"), ["core 0", "core 1"]);
    assert_eq!(tracks("cores of b (shard 1)"), ["core 2"]);
}

#[test]
fn a_range_has_its_requests_and_levels_count_all() {
    let run = Run::read(&sample::log(2, 300)).expect("a log");
    let range = parse_range("1..3").expect("a range");
    let chosen = Selection::new(&run, Some(range));
    let mut out = Vec::new();
    write_of(&chosen, &mut out).expect("memory takes everything");
    let events: Vec<Value> = serde_json::from_slice(&out).expect("one JSON value");
    check(&events);
    let of = |name: &str| -> Vec<&Value> {
        events.iter().filter(|event| event["cat"] == name && event["ph"] != "E").collect()
    };
    let expected: BTreeSet<u64> = chosen.requests().map(|i| i as u64).collect();
    let found = |name: &str| -> BTreeSet<u64> {
        of(name).iter().filter_map(|event| event["args"]["request"].as_u64()).collect()
    };
    assert!(expected.len() > 20 && expected.len() < 200);
    assert_eq!(found("request"), expected);
    assert_eq!(found("send"), expected);
    assert!(of("stall").iter().all(|event| {
        let start = event["args"]["start_ns"].as_i64().expect("a start");
        chosen.holds(RunNanos(start))
    }));
    // Connections were opened before it.
    assert!(of("connection").iter().all(|event| event["name"] != "connect"));
    let whole = written(&run);
    let levels = |events: &[Value]| -> Vec<(i64, u64)> {
        let level = |event: &&Value| event["name"] == "requests in flight";
        let pair = |event: &Value| {
            let level = event["args"].as_object()?.values().next()?.as_f64()?;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
            Some((nanos(event), level as u64))
        };
        events.iter().filter(level).filter_map(pair).collect()
    };
    // The whole timeline begins with the first connection, half a second before zero.
    let zero = whole.iter().find(|event| event["name"] == "zero").map(nanos).expect("one");
    let inside: Vec<(i64, u64)> = levels(&whole)
        .into_iter()
        .map(|(time, level)| (time - zero, level))
        .filter(|&(time, _)| chosen.holds(RunNanos(time)))
        .collect();
    let found = levels(&events);
    assert_eq!(found[0].0, 1_000 * MS, "what there was when it begins");
    assert_eq!(found[1..], inside);
}
