//! A replay against the mock, exported as other tools write theirs, and tables that others read.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use clap::Parser;
use onbeat::cli::Cli;
use onbeat_shared::dice::Dice;
use onbeat_shared::export::aiperf::{Export, Part};
use onbeat_shared::export::queries::{COMMAND, QUERIES};
use onbeat_shared::export::vllm_bench;
use onbeat_shared::log::sample::Sample;
use onbeat_shared::log::{Class, Record};
use onbeat_shared::metrics::slo::Goals;
use onbeat_shared::metrics::{ReportOptions, report};
use onbeat_shared::run::Run;
use onbeat_shared::units::{CoreIndex, RunNanos, SessionIndex};
use serde_json::Value;
use tests::{Scenario, mooncake};

const SLICE_NS: i64 = 60_000_000;

fn json(export: &Export<'_>, part: Part) -> Value {
    serde_json::from_slice(&bytes(export, part)).expect("JSON")
}

fn bytes(export: &Export<'_>, part: Part) -> Vec<u8> {
    let mut out = Vec::new();
    export.write(part, &mut out).expect("memory takes everything");
    out
}

#[test]
fn what_the_server_served_is_what_the_peers_files_say() {
    let outcome = Scenario::new(&mooncake(6, 30, 600, 5)).run();
    let goals = Goals::parse("time_to_first_token:60000").expect("a goal");
    let export = Export::new(&outcome.run, &goals, Some(SLICE_NS));
    let summary = json(&export, Part::SummaryJson);
    for (tag, figure, expected) in [
        ("request_count", "avg", 6.0),
        ("good_request_count", "avg", 6.0),
        ("output_sequence_length", "sum", 30.0),
        ("usage_prompt_tokens", "sum", 3_600.0),
        ("time_to_first_token", "count", 6.0),
        ("inter_chunk_latency", "count", 24.0),
    ] {
        assert_eq!(summary[tag][figure].as_f64(), Some(expected), "{tag}");
    }
    let lines = String::from_utf8(bytes(&export, Part::Records)).expect("text");
    let lines: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let named = |key: &str| -> BTreeSet<String> {
        lines.iter().filter_map(|line| Some(line["metadata"][key].as_str()?.to_owned())).collect()
    };
    let served = |of: fn(&onbeat::mock::Served) -> Option<String>| -> BTreeSet<String> {
        outcome.served.iter().filter_map(of).collect()
    };
    assert_eq!(named("x_request_id"), served(|served| served.request_id.clone()));
    assert_eq!(named("x_correlation_id"), served(|served| served.session.clone()));
    let slices = json(&export, Part::SlicesJson);
    let count = |slice: &Value| slice["request_count"]["avg"].as_f64().unwrap_or(0.0);
    let sum: f64 = slices["timeslices"].as_array().expect("slices").iter().map(count).sum();
    assert!((sum - 6.0).abs() < f64::EPSILON, "{sum}");

    let mut bench = Vec::new();
    vllm_bench::write(&outcome.run, &goals, &mut bench).expect("memory takes everything");
    let bench: Value = serde_json::from_slice(&bench).expect("JSON");
    assert_eq!(bench["completed"], 6);
    assert_eq!(bench["output_lens"], serde_json::json!([5, 5, 5, 5, 5, 5]));
    let options = ReportOptions { slice_ns: Some(SLICE_NS), ..ReportOptions::default() };
    let report = report(&outcome.run, &options);
    let ttft = report.latency.ttft_ms.expect("answers");
    for found in [&bench["mean_ttft_ms"], &summary["time_to_first_token"]["avg"]] {
        assert!((found.as_f64().expect("a number") - ttft.mean).abs() < 1e-6, "{found}");
    }
    let sent: u64 = report.slices.expect("asked for").iter().map(|slice| slice.sent).sum();
    assert_eq!(sent, 6);
    let curve = report.cache.ideal_hit_rate_by_capacity.expect("block ids");
    assert!(curve.iter().all(|size| size.ideal_hit_rate.abs() < f64::EPSILON), "all are new");
}

/// A run of five minutes: three sessions, two cores, failures, a server that does not always report
/// what it had cached, host stalls.
fn five_minutes(run_id: &str, seed: u64) -> Vec<u8> {
    const MS: i64 = 1_000_000;
    let mut dice = Dice(seed);
    let mut sample = Sample::new();
    run_id.clone_into(&mut sample.manifest.run_id);
    sample.manifest.cores = vec![2, 3];
    sample.sessions = ["alice", "bob's; DROP", "carol"].map(str::to_owned).to_vec();
    for k in 0..60_u32 {
        let due = i64::from(k) * 5_000 * MS;
        let request = sample.plan(due);
        let row = &mut sample.plan[request.as_usize()];
        (row.session, row.core) = (SessionIndex(k % 3), CoreIndex(u16::from(k % 4 == 0)));
        row.ideal_cached_tokens = (k % 3 != 2).then_some(k);
        if k == 59 {
            continue;
        }
        let mut draw = |most: usize| i64::try_from(dice.place(most)).expect("small");
        let sent = due + draw(900_000);
        let first = sent + 20 * MS + draw(300_000_000);
        sample.dispatch(request, due, sent);
        if k % 10 == 7 {
            sample.done(request, first, Class::Http5xx);
            continue;
        }
        sample.chunks(request, &[first, first + 9 * MS]);
        let cached = (k % 3 != 1).then_some(3 * k % 90);
        sample.usage(request, first + 9 * MS, [Some(100 + k), Some(2), cached]);
        sample.done(request, first + 9 * MS, Class::Ok);
        if k % 8 == 0 {
            let (start, length_ns) = (RunNanos(due - MS), 1_500_000);
            sample.push(CoreIndex(1), Record::Stall { start, length_ns });
        }
    }
    sample.bytes()
}

/// What Python's DuckDB answers; `None`, with a word about it, where there is none.
fn asked(folder: &Path, sql: &str) -> Option<Vec<Vec<Value>>> {
    let python = |program: &str| {
        let mut python = Command::new("python3");
        python.args(["-c", program]).current_dir(folder);
        python.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    };
    let is_there = python("import duckdb").and_then(std::process::Child::wait_with_output);
    if !is_there.is_ok_and(|out| out.status.success()) {
        eprintln!("left out: python3 is not here or has no module duckdb");
        return None;
    }
    let program = "import duckdb, json, sys\n\
                   print(json.dumps(duckdb.sql(sys.stdin.read()).fetchall()))";
    let mut child = python(program).expect("it was there");
    child.stdin.take().expect("piped").write_all(sql.as_bytes()).expect("it reads");
    let out = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{sql}: {said}");
    Some(serde_json::from_slice(&out.stdout).expect("JSON"))
}

/// The answers that the report's own figures are, one row for each that has a request.
fn answers(run: &Run, query: usize) -> Vec<Vec<Option<f64>>> {
    let places = || 0..u32::try_from(run.requests.len()).expect("few");
    let figures = |of: &dyn Fn(usize) -> bool| {
        let requests: Arc<[u32]> = places().filter(|&i| of(i as usize)).collect();
        report(run, &ReportOptions { requests: Some(requests), ..ReportOptions::default() })
    };
    let sent = |i: usize| run.requests.sent(i);
    let count = |value: u64| Some(f64::from(u32::try_from(value).expect("few")));
    match query {
        0 => (0..5)
            .map(|minute| {
                let in_it = |i| sent(i).is_some_and(|sent| sent.0 / 60_000_000_000 == minute);
                let ttft = figures(&in_it).latency.ttft_ms.expect("answers in each minute");
                vec![count(ttft.count), Some(ttft.p50), Some(ttft.p90), Some(ttft.p99)]
            })
            .collect(),
        1 => (0..3)
            .map(|session| {
                let of_it = |i| sent(i).is_some() && run.plan[i].session.0 == session;
                let found = figures(&of_it);
                let cache = found.cache;
                vec![count(found.schedule.sent), cache.reported_hit_rate, cache.ideal_hit_rate]
            })
            .collect(),
        _ => (0..2)
            .map(|core| {
                let of_it = |i| sent(i).is_some() && run.requests.core(i) == Some(CoreIndex(core));
                let found = figures(&of_it).schedule;
                let late = found.lateness_us.expect("some left");
                let outside = found.lateness_outside_stalls_us.expect("some");
                let in_stalls = count(late.count - outside.count);
                let figures = [late.p50, late.p99, late.max].map(Some);
                [&[count(late.count)], &figures[..], &[in_stalls, Some(outside.p99)]].concat()
            })
            .collect(),
    }
}

#[test]
fn ready_queries_give_the_reports_figures() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut runs = Vec::new();
    for (run_id, seed) in [("first", 1), ("second", 2)] {
        let log = five_minutes(run_id, seed);
        let path = folder.path().join("run.beat");
        std::fs::write(&path, &log).expect("room");
        // The very command of the page, with paths in the place of names.
        let words = COMMAND.split(' ').map(|word| match word {
            "run.beat" | "runs" => folder.path().join(word).into_os_string(),
            word => word.into(),
        });
        let typed = Cli::try_parse_from(words).expect("it can be typed");
        assert_eq!(onbeat::cli::run(typed).expect("files"), 0);
        runs.push((run_id, Run::read(&log).expect("a log")));
    }
    for (place, query) in QUERIES.iter().enumerate() {
        let Some(rows) = asked(folder.path(), query.sql) else { return };
        let mut rows = rows.into_iter();
        for (run_id, run) in &runs {
            for wanted in answers(run, place) {
                let row = rows.next().expect("a row for each");
                assert_eq!(row[0], *run_id, "{}", query.title);
                let found: Vec<Option<f64>> = row[2..].iter().map(Value::as_f64).collect();
                let same = |a: &Option<f64>, b: &Option<f64>| match (a, b) {
                    (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * b.abs(),
                    (a, b) => a == b,
                };
                let all = found.len() == wanted.len();
                let close = found.iter().zip(&wanted).all(|(a, b)| same(a, b));
                assert!(all && close, "{}: {row:?} is not {wanted:?}", query.title);
            }
        }
        assert_eq!(rows.next(), None, "{}", query.title);
    }
}
