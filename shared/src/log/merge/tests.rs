//! Merging as its callers see it: a run is divided by hand, and merged it is the run again.

use std::io::{Cursor, Read};

use proptest::prelude::{prop_assert_eq, proptest};

use super::{MergeError, Outcome, Source, merge};
use crate::log::sample::{self, Sample};
use crate::log::scraped::{number_of, text_records};
use crate::log::{
    ClockState, Host, PathRow, PlanRow, Record, RecordedRow, Scraped, SeriesKind, ShardFacts,
    Start, sample_users,
};
use crate::run::{Run, State};
use crate::units::{CoreIndex, RequestIndex, RunNanos, SessionIndex};

const ZERO: u64 = 1_767_323_045_000_000_000;

/// One shard of a run, by its sessions' numbers.
fn shard_of(whole: &Sample, index: u32, count: u32) -> Sample {
    let is_own = |session: SessionIndex| session.0 * 7 % count == index;
    let numbers: Vec<u32> =
        whole.plan.iter().filter(|row| is_own(row.session)).map(|row| row.request.0).collect();
    let new = |request: RequestIndex| {
        let place = numbers.binary_search(&request.0).ok()?;
        Some(RequestIndex(u32::try_from(place).expect("few")))
    };
    let mut sessions = Vec::new();
    let mut shard = Sample { numbers: numbers.clone(), plan: Vec::new(), ..whole.clone() };
    for row in whole.plan.iter().filter(|row| is_own(row.session)) {
        let name = &whole.sessions[row.session.as_usize()];
        let session = sessions.iter().position(|known| known == name).unwrap_or_else(|| {
            sessions.push(name.clone());
            sessions.len() - 1
        });
        shard.plan.push(PlanRow {
            request: new(row.request).expect("its own"),
            session: SessionIndex(u32::try_from(session).expect("few")),
            after: row.after.and_then(new),
            ..*row
        });
    }
    shard.sessions = sessions;
    let own = |record: &Record| -> Option<Record> {
        let mut bytes = record.encode();
        let Some(request) = crate::run::request_of(record) else { return Some(*record) };
        bytes[4..8].copy_from_slice(&new(request)?.0.to_le_bytes());
        Record::decode(&bytes)
    };
    shard.records = whole
        .records
        .iter()
        .filter_map(|(core, record)| Some((*core, own(record)?)))
        .filter(|(_, record)| index == 0 || crate::run::request_of(record).is_some())
        .collect();
    shard.recorded = (whole.recorded.iter())
        .filter_map(|row| Some(RecordedRow { request: new(row.request)?, ..*row }))
        .collect();
    shard.prefixes.paths = (whole.prefixes.paths.iter())
        .filter_map(|row| Some(PathRow { request: new(row.request)?, ..*row }))
        .collect();
    let planned = u32::try_from(whole.plan.len()).expect("few");
    named(&mut shard, index, count, planned);
    shard
}

/// Makes a log one of a shard.
fn named(shard: &mut Sample, index: u32, count: u32, planned: u32) {
    let manifest = &mut shard.manifest;
    manifest.run_id = format!("r{index}");
    manifest.host = Host { hostname: format!("h{index}"), cpus: 2, ..Host::default() };
    manifest.cores = vec![1, 0];
    manifest.shard = Some(ShardFacts { index, count, planned, plan: "5eed".to_owned() });
    manifest.start = Some(Start {
        at_unix_ns: ZERO,
        allowed_error_ns: Some(1_000_000),
        clock: Some(ClockState {
            synchronised: true,
            max_error_ns: 100_000 * u64::from(index + 1),
            estimated_error_ns: 7,
        }),
    });
    manifest.config = serde_json::json!({"machines": index, "run": {"cores": index, "n": 1}});
}

fn shards(whole: &Sample, count: u32) -> Vec<Sample> {
    (0..count).map(|index| shard_of(whole, index, count)).collect()
}

fn merged_bytes(logs: &[Vec<u8>], allow_missing: bool) -> Result<(Vec<u8>, Outcome), MergeError> {
    let sources: Vec<Source<'_>> = (0..)
        .zip(logs)
        .map(|(at, bytes)| Source {
            name: format!("{at}.beat"),
            open: Box::new(move || Ok(Box::new(Cursor::new(bytes.clone())) as Box<dyn Read>)),
        })
        .collect();
    let mut out = Vec::new();
    let outcome = merge(&sources, allow_missing, &mut out)?;
    Ok((out, outcome))
}

fn merged(logs: &[Sample]) -> Run {
    let logs: Vec<Vec<u8>> = logs.iter().map(Sample::bytes).collect();
    let (bytes, _) = merged_bytes(&logs, false).expect("they belong together");
    Run::read(&bytes).expect("a log")
}

fn warnings(logs: &[Sample]) -> Vec<String> {
    let logs: Vec<Vec<u8>> = logs.iter().map(Sample::bytes).collect();
    merged_bytes(&logs, false).expect("they belong together").1.warnings
}

fn refused(logs: &[Sample]) -> String {
    let logs: Vec<Vec<u8>> = logs.iter().map(Sample::bytes).collect();
    match merged_bytes(&logs, false) {
        Err(MergeError::Apart(words)) => words,
        other => panic!("{other:?}"),
    }
}

/// Everything that a run says of a request, but for the core.
fn told(run: &Run, i: usize) -> String {
    let requests = &run.requests;
    let row = PlanRow { core: CoreIndex(0), ..run.plan[i] };
    format!(
        "{row:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        run.session_name(i),
        (requests.due(i), requests.ready(i), requests.sent(i), requests.first_byte(i)),
        (requests.first_token(i), requests.last_token(i), requests.done(i)),
        (requests.class(i), requests.status(i), requests.target(i)),
        run.chunks.row(i).times(),
        run.error_text(i),
        run.recorded(i),
        run.path(i),
        requests.end(i),
    )
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(24))]

    #[test]
    fn a_run_that_was_divided_is_merged_into_itself(
        seed in 0_u64..1_000,
        requests in 1_u32..160,
        count in 1_u32..5,
    ) {
        let mut whole = sample::sample(seed, requests);
        whole.recorded = whole.plan.iter().step_by(3)
            .map(|row| RecordedRow {
                cached_tokens: Some(row.request.0),
                ..RecordedRow::of(row.request)
            })
            .collect();
        let expected = Run::read(&whole.bytes()).expect("a log");
        let mut parts = shards(&whole, count);
        // The order in which they are named does not matter.
        parts.reverse();
        let run = merged(&parts);
        prop_assert_eq!(run.requests.len(), expected.requests.len());
        for i in 0..expected.requests.len() {
            prop_assert_eq!(told(&run, i), told(&expected, i));
            let (core, own) = (run.requests.core(i), expected.requests.core(i));
            let shard = run.plan[i].session.0 * 7 % count;
            let first = u16::try_from(2 * shard).expect("few");
            prop_assert_eq!(core, own.map(|own| CoreIndex(first + own.0)));
        }
        prop_assert_eq!(&run.sessions, &expected.sessions);
        prop_assert_eq!(run.stalls.all().len(), expected.stalls.all().len());
        prop_assert_eq!(run.state, State::Finished);
        prop_assert_eq!(run.warnings, Vec::<String>::new());
        prop_assert_eq!(run.damaged_bytes, 0);
    }
}

#[test]
fn hosts_keep_who_they_are_and_how_wrong_their_clocks_are() {
    let whole = sample::sample(3, 60);
    let run = merged(&shards(&whole, 3));
    let merged = run.manifest.merged.as_deref().expect("merged");
    assert_eq!((merged.shards, merged.planned, run.manifest.planned), (3, 60, 60));
    assert!(merged.missing.is_empty() && run.manifest.shard.is_none());
    for (index, host) in (0..).zip(&merged.hosts) {
        assert_eq!(host.shard, index);
        assert_eq!(host.host.hostname, format!("h{index}"));
        assert_eq!(usize::from(host.first_core), 2 * index as usize);
        let clock = host.start.clock.expect("it was read");
        assert_eq!(clock.max_error_ns, 100_000 * u64::from(index + 1));
    }
    assert_eq!(run.manifest.host.hostname, "h0, h1, h2");
    assert_eq!(run.manifest.host.cpus, 6);
    assert_eq!(run.manifest.cores, [1, 0, 1, 0, 1, 0]);
    assert_eq!(run.started_unix_ns(), ZERO);
    let requests: u32 = merged.hosts.iter().map(|host| host.requests).sum();
    assert_eq!(requests, 60);
}

/// Changes one of two shards; why they are refused then.
fn refused_after(change: impl Fn(&mut Sample)) -> String {
    let mut logs = shards(&sample::sample(1, 40), 2);
    change(&mut logs[1]);
    refused(&logs)
}

#[test]
fn what_does_not_belong_together_is_refused_with_the_reason() {
    type Case = (&'static str, fn(&mut Sample));
    let cases: [Case; 10] = [
        ("replay different traces", |log| log.manifest.trace.sha256 = "f00d".repeat(16)),
        ("were written by onbeat", |log| log.manifest.onbeat_version = "0.0.0".to_owned()),
        ("different options: run.n is 1 and 2", |log| {
            log.manifest.config = serde_json::json!({"run": {"cores": 9, "n": 2}});
        }),
        ("asked for different models", |log| log.manifest.model = "other".to_owned()),
        ("are shards of 2 and of 3", |log| {
            log.manifest.shard.as_mut().expect("a shard").count = 3;
        }),
        ("are of different plans", |log| {
            log.manifest.shard.as_mut().expect("a shard").plan = "other".to_owned();
        }),
        ("are both shard 0 of 2", |log| {
            log.manifest.shard.as_mut().expect("a shard").index = 0;
        }),
        ("0.500 s apart; +LENGTH counts from", |log| {
            log.manifest.start.as_mut().expect("a start").at_unix_ns += 500_000_000;
        }),
        ("was not given --start-at", |log| log.manifest.start = None),
        ("is the log of a whole run", |log| log.manifest.shard = None),
    ];
    for (expected, change) in cases {
        let words = refused_after(change);
        assert!(words.contains(expected), "{expected}: {words}");
        assert!(words.contains("1.beat"), "{words}");
    }
    assert!(refused(&[]).contains("no log"));
}

#[test]
fn a_merged_log_is_not_merged_again() {
    let logs: Vec<Vec<u8>> = shards(&sample::sample(1, 20), 2).iter().map(Sample::bytes).collect();
    let (bytes, _) = merged_bytes(&logs, false).expect("they belong together");
    let again = merged_bytes(&[bytes], false).expect_err("again").to_string();
    assert!(again.contains("merge the logs that it was made from"), "{again}");
}

#[test]
fn requests_that_are_there_twice_or_not_at_all_are_noticed() {
    let words = refused_after(|log| log.numbers[0] = 0);
    assert!(words.contains("the same request") || words.contains("do not agree"), "{words}");
    let words = refused_after(|log| {
        log.numbers.pop();
    });
    assert!(words.contains("do not agree"), "{words}");
}

#[test]
fn a_missing_shard_is_named_and_left_out_only_if_that_is_wanted() {
    let whole = sample::sample(5, 80);
    let logs: Vec<Vec<u8>> = shards(&whole, 4).iter().map(Sample::bytes).collect();
    let three = [logs[0].clone(), logs[3].clone()];
    let words = merged_bytes(&three, false).expect_err("two are missing").to_string();
    assert!(words.contains("shards 1, 2 of 4 are missing; --allow-missing"), "{words}");
    let (bytes, outcome) = merged_bytes(&three, true).expect("as far as they go");
    let run = Run::read(&bytes).expect("a log");
    assert_eq!(run.warnings, ["shards 1, 2 of 4 are missing"]);
    assert_eq!(outcome.manifest.merged.as_ref().map(|merged| merged.planned), Some(80));
    let kept: Vec<usize> =
        (0..80).filter(|&i| [0, 3].contains(&(whole.plan[i].session.0 * 7 % 4))).collect();
    assert_eq!(run.requests.len(), kept.len());
    let expected = Run::read(&whole.bytes()).expect("a log");
    for (i, &own) in kept.iter().enumerate() {
        assert_eq!(run.requests.sent(i), expected.requests.sent(own));
        assert_eq!(run.requests.done(i), expected.requests.done(own));
    }
    assert!(!run.footer.expect("closed").complete);
}

#[test]
fn an_open_or_damaged_log_is_merged_as_far_as_it_goes() {
    let whole = sample::sample(9, 120);
    let mut parts = shards(&whole, 2);
    parts[1].closed = false;
    let mut logs: Vec<Vec<u8>> = parts.iter().map(Sample::bytes).collect();
    let (bytes, outcome) = merged_bytes(&logs, false).expect("open");
    assert!(outcome.warnings[0].contains("1.beat was not closed"), "{:?}", outcome.warnings);
    let run = Run::read(&bytes).expect("a log");
    assert!(matches!(run.state, State::Unfinished { cut_bytes: 0 }));
    // A flipped bit near the end costs a block of records.
    let at = logs[0].len() - 4_000;
    logs[0][at] ^= 1;
    let (bytes, outcome) = merged_bytes(&logs, false).expect("damaged");
    assert!(outcome.warnings[0].contains("0.beat: "), "{:?}", outcome.warnings);
    let host = &outcome.manifest.merged.as_ref().expect("merged").hosts[0];
    assert!(host.damaged_bytes > 0);
    assert_eq!(Run::read(&bytes).expect("a log").requests.len(), 120);
    // In its plan it costs the log.
    logs[0][3_000] ^= 1;
    let words = merged_bytes(&logs, false).expect_err("no plan").to_string();
    assert!(words.contains("0.beat: its plan cannot be read whole"), "{words}");
    let none = merged_bytes(&[b"no log at all".to_vec()], false).expect_err("none").to_string();
    assert!(none.starts_with("0.beat: not an Onbeat run log"), "{none}");
}

/// All that is behind it decodes, and yet somebody has written into the file.
#[test]
fn a_damaged_header_is_said() {
    let whole = shards(&sample::sample(9, 60), 2);
    let logs: Vec<Vec<u8>> = whole.iter().map(Sample::bytes).collect();
    let (expected, outcome) = merged_bytes(&logs, false).expect("shards of one run");
    assert_eq!(outcome.warnings, Vec::<String>::new());
    for at in [0, 7, 9, 40, 63] {
        let mut logs = logs.clone();
        logs[1][at] ^= 1;
        let (bytes, outcome) = merged_bytes(&logs, false).expect("readable");
        let said = ["1.beat: its file header is damaged; it was read as this version's"];
        assert_eq!(outcome.warnings, said, "byte {at}");
        assert_eq!(bytes, expected, "byte {at}");
        let run = Run::read(&logs[1]).expect("readable");
        assert!(run.warnings[0].contains("file header is damaged"), "{:?}", run.warnings);
    }
}

#[test]
fn values_that_logs_hide_are_said_to_be_unseen() {
    use serde_json::json;
    let told = |requests: serde_json::Value| {
        let mut logs = shards(&sample::sample(1, 40), 3);
        logs.iter_mut().for_each(|log| log.manifest.config["requests"] = requests.clone());
        warnings(&logs)
    };
    for (requests, named) in [
        (json!({"extra_inputs": [{"user": "[text]", "n": 1}]}), "--extra-inputs user"),
        (json!({"extra_inputs": [{"stop": ["auto", "[text]"]}]}), "--extra-inputs stop"),
        (json!({"header": ["X-Team: [secret]", "X-Key: [secret]"]}), "--header X-Team"),
        (json!({"endpoint": "/v1/x?team=[secret]&key=[secret]"}), "the query of --endpoint"),
        (json!({"endpoint": "/v1/x?[secret]"}), "the query of --endpoint"),
        (
            json!({"header": ["X-Team: [secret]"], "extra_inputs": [{"user": "[text]"}]}),
            "--header X-Team, --extra-inputs user",
        ),
    ] {
        let words = format!(
            "logs hide values of {named}: whether all shards sent the same ones cannot be seen here"
        );
        assert_eq!(told(requests), [words], "once");
    }
    // Who asks is not what is asked, and machines may have keys of their own.
    for requests in [
        json!({"extra_inputs": [{"api_token": "[secret]", "ignore_eos": true}]}),
        json!({"header": ["Authorization: [secret]", "x-api-key: [secret]"]}),
        json!({"endpoint": "/v1/x?key=[secret]", "api_key": "[secret]"}),
        json!({"endpoint": "/v1/x", "header": [], "extra_inputs": [{"top_k": 2}]}),
    ] {
        assert_eq!(told(requests), Vec::<String>::new());
    }
}

#[test]
fn names_of_what_logs_hide_that_differ_are_refused() {
    use serde_json::json;
    for (name, one, other) in [
        ("header", json!(["X-A: [secret]"]), json!(["X-B: [secret]"])),
        ("header", json!(["X-A-Key: [secret]"]), json!([])),
        ("endpoint", json!("/x?a=[secret]"), json!("/x?b=[secret]")),
        ("extra_inputs", json!([{"a": "[text]"}]), json!([{"b": "[text]"}])),
    ] {
        let mut logs = shards(&sample::sample(1, 40), 2);
        logs[0].manifest.config["requests"] = json!({ name: one });
        logs[1].manifest.config["requests"] = json!({ name: other });
        let words = refused(&logs);
        let expected = format!("different options: requests.{name} is ");
        assert!(words.contains(&expected), "{words}");
    }
}

/// Lets a shard ask a source each second, with one series whose value is its own; `step` is added
/// to the numbers of texts, as where another text had the number.
fn ask(shard: &mut Sample, source: &str, seconds: std::ops::Range<i64>, value: f64, step: u32) {
    let series = format!("{source} queue{{a=\"b c\"}}");
    let number = |text: &str| number_of(text).wrapping_add(step);
    let mut push = |fact| shard.push(CoreIndex::CONDUCTOR, fact);
    for text in [source, &series, "no answer"] {
        text_records(number(text), text).for_each(&mut push);
    }
    for second in seconds {
        let time = RunNanos(second * 1_000_000_000);
        let failed = second == 5;
        if !failed {
            let (kind, series) = (SeriesKind::Gauge, number(&series));
            push(Record::Scraped(Scraped::Value { series, time, within_ns: 1, kind, value }));
        }
        push(Record::Scraped(Scraped::Asked {
            source: number(source),
            start: time,
            end: time,
            status: Some(200),
            values: 1,
            left_out: 0,
            impossible: 0,
            failure: failed.then(|| number("no answer")),
        }));
    }
}

/// Of each series of a merged run: its source, how many values, and the one they all have.
fn heard(logs: &[Sample]) -> (Vec<(String, usize, f64)>, usize, Vec<String>) {
    let logs: Vec<Vec<u8>> = logs.iter().map(Sample::bytes).collect();
    let (bytes, outcome) = merged_bytes(&logs, false).expect("they belong together");
    let run = Run::read(&bytes).expect("a log");
    let servers = run.servers.as_deref().expect("somebody was asked");
    let series = servers.series.iter().map(|series| {
        let values: Vec<f64> = series.points.iter().map(|point| point.value).collect();
        assert!(values.iter().all(|&value| value == values[0]), "one log's alone: {values:?}");
        assert_eq!((series.name.as_str(), series.labels.as_str()), ("queue", "{a=\"b c\"}"));
        (servers.sources[series.source].clone(), values.len(), values[0])
    });
    let failed = servers.askings.iter().filter_map(|asking| asking.failure.as_deref());
    failed.clone().for_each(|words| assert_eq!(words, "no answer"));
    (series.collect(), failed.count(), outcome.warnings)
}

#[test]
fn what_a_server_said_is_kept_of_the_shard_that_heard_most_of_it() {
    let mut logs = shards(&sample::sample(1, 40), 3);
    ask(&mut logs[0], "http://a/metrics", 0..3, 1.0, 0);
    ask(&mut logs[1], "http://a/metrics", 0..9, 2.0, 7);
    let (series, failed, told) = heard(&logs);
    assert_eq!((series, failed), (vec![("http://a/metrics".to_owned(), 8, 2.0)], 1));
    assert_eq!(told, Vec::<String>::new(), "the other one heard nothing more");
    // A few askings before and behind it are none the less of the same time.
    ask(&mut logs[2], "http://a/metrics", 7..11, 3.0, 0);
    assert_eq!(heard(&logs).2, Vec::<String>::new());
}

#[test]
fn what_others_heard_meanwhile_is_told_once() {
    let words = |named: &str| {
        format!(
            "of what a server said of itself one shard's answers are kept, those over the longest \
             time, and others heard it while that shard did not: {named}"
        )
    };
    let mut logs = shards(&sample::sample(1, 40), 3);
    ask(&mut logs[0], "http://a/metrics", 0..5, 1.0, 0);
    ask(&mut logs[1], "http://a/metrics", 10..30, 2.0, 7);
    ask(&mut logs[2], "http://a/metrics", 3..9, 3.0, 9);
    // From 0 to 4 s by one and 3 to 4 s by another; the two from 6 to 8 s are but two askings.
    let a = "http://a/metrics of 1.beat (20 answers over 19.0 s; 4.0 s left out)";
    assert_eq!(heard(&logs).2, [words(a)]);
    for (source, first) in [("http://b/metrics", 0), ("http://c/metrics", 1)] {
        ask(&mut logs[first], source, 20..30, 4.0, 0);
        ask(&mut logs[2], source, 0..6, 5.0, 0);
    }
    let told = warnings(&logs);
    let b = "http://b/metrics of 0.beat (10 answers over 9.0 s; 4.0 s left out)";
    let c = "http://c/metrics of 1.beat (10 answers over 9.0 s; 4.0 s left out)";
    assert_eq!(told, [words(&[a, b, c].join("; "))]);
}

#[test]
fn each_server_is_heard_whichever_shard_asked_it() {
    let mut logs = shards(&sample::sample(1, 40), 3);
    ask(&mut logs[1], "http://b/metrics", 0..9, 2.0, 0);
    let of_b = || ("http://b/metrics".to_owned(), 8, 2.0);
    assert_eq!(heard(&logs), (vec![of_b()], 1, vec![]), "one shard asks for all");
    // Texts of this one have the numbers that those of the other have, and must not get its values.
    let step = number_of("http://b/metrics").wrapping_sub(number_of("http://a/metrics"));
    ask(&mut logs[2], "http://a/metrics", 0..4, 3.0, step);
    let of_a = ("http://a/metrics".to_owned(), 4, 3.0);
    let (mut series, failed, told) = heard(&logs);
    series.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!((series, failed, told), (vec![of_a, of_b()], 1, vec![]));
}

#[test]
fn no_cut_or_flip_of_a_log_ends_the_program() {
    let logs: Vec<Vec<u8>> = shards(&sample::sample(2, 12), 2).iter().map(Sample::bytes).collect();
    for at in (0..logs[1].len()).step_by(97) {
        let cut = [logs[0].clone(), logs[1][..at].to_vec()];
        let mut flipped = logs.clone();
        flipped[1][at] ^= 0x10;
        for logs in [cut.to_vec(), flipped] {
            if let Ok((bytes, _)) = merged_bytes(&logs, true) {
                Run::read(&bytes).expect("what was merged is a log");
            }
        }
    }
}

#[test]
fn users_of_all_shards_are_users_of_one_run() {
    let mut parts: Vec<Sample> = (0..2).map(|_| sample_users::sample(4, 60)).collect();
    for (index, part) in (0..).zip(&mut parts) {
        let planned = u32::try_from(part.plan.len()).expect("few");
        named(part, index, 2, planned);
    }
    let one = Run::read(&parts[0].bytes()).expect("a log");
    let run = merged(&parts);
    assert_eq!(run.requests.len(), 2 * one.requests.len());
    let (users, own) = (run.users.as_ref().expect("users"), one.users.as_ref().expect("users"));
    assert_eq!(users.users.len(), 2 * own.users.len());
    let mut names: Vec<&String> = run.sessions.iter().collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 2 * own.users.len(), "everybody has a name of their own");
    assert_eq!(users.assessments.len(), own.assessments.len());
    for (both, own) in users.assessments.iter().zip(&own.assessments) {
        assert_eq!((both.users, both.in_flight), (2 * own.users, 2 * own.in_flight));
        assert_eq!((both.ttft_ns, both.reason), (own.ttft_ns, own.reason));
    }
    let mut sent: Vec<_> = (0..run.requests.len()).map(|i| run.requests.sent(i)).collect();
    assert!(sent.iter().flatten().is_sorted(), "in the order of their sending");
    let mut expected: Vec<_> = (0..one.requests.len()).map(|i| one.requests.sent(i)).collect();
    expected.extend(expected.clone());
    expected.sort();
    sent.sort();
    assert_eq!(sent, expected);
    let facts = run.manifest.users.as_deref().expect("users");
    let limit = one.manifest.users.as_deref().expect("users").max_users;
    assert_eq!(facts.max_users, 2 * limit);
    assert_eq!(run.warnings, one.warnings);
}
