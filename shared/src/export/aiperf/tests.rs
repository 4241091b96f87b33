//! Keys, units and values of AIPerf's files, and its own results on stamps of a run of its.

use serde_json::{Value, json};

use super::values::{CHUNK_GAPS, REQUEST_METRICS};
use super::{Export, Part};
use crate::log::Class;
use crate::log::sample::{self, Sample};
use crate::metrics::goal::GoalKind;
use crate::metrics::slo::Goals;
use crate::metrics::{ReportOptions, report};
use crate::run::Run;

const MS: i64 = 1_000_000;

fn written(run: &Run, goals: &Goals, slice_ns: Option<i64>, part: Part) -> String {
    let mut out = Vec::new();
    Export::new(run, goals, slice_ns).write(part, &mut out).expect("memory takes everything");
    String::from_utf8(out).expect("text")
}

fn json_of(run: &Run, goals: &Goals, slice_ns: Option<i64>, part: Part) -> Value {
    serde_json::from_str(&written(run, goals, slice_ns, part)).expect("JSON")
}

/// Three answers whose stamps and results AIPerf 0.13 gave for a run of its own, and two requests
/// that it cancelled: start, content events (from the start), tokens, end, prompt length.
fn aiperf_run() -> Run {
    let mut sample = Sample::new();
    let zero = 1_795_962_143_127_803_037_i64;
    let cancelled =
        [(zero, 1_795_962_143_171_270_316), (1_795_962_143_900_014_237, 1_795_962_143_935_021_516)];
    let answers: [(i64, &[i64], u32, i64, u32); 3] = [
        (
            1_795_962_143_265_724_678,
            &[24_911_080, 30_383_435, 35_841_393, 41_567_324],
            8,
            1_795_962_143_307_292_002,
            48,
        ),
        (1_795_962_143_966_143_596, &[23_838_278, 29_533_521], 4, 1_795_962_143_995_677_117, 16),
        (1_795_962_144_067_803_275, &[27_800_239, 33_663_738], 4, 1_795_962_144_101_467_013, 20),
    ];
    for (start, end) in cancelled {
        let request = sample.send(start - zero);
        sample.done(request, end - zero, Class::CancelledByPlan);
    }
    for (start, events, tokens, end, prompt) in answers {
        let request = sample.send(start - zero);
        let times: Vec<i64> = events.iter().map(|event| start - zero + event).collect();
        sample.chunks(request, &times);
        sample.usage(request, end - zero, [Some(prompt), Some(tokens), None]);
        sample.done(request, end - zero, Class::Ok);
    }
    sample.plan[0].input_tokens = Some(40);
    sample.plan[1].input_tokens = Some(111);
    Run::read(&sample.bytes()).expect("a log")
}

#[track_caller]
fn close(json: &Value, path: &str, expected: f64) {
    let found = json.pointer(path).and_then(Value::as_f64);
    let found = found.unwrap_or_else(|| panic!("{path} is no number in {json}"));
    // AIPerf keeps wall clocks as 64-bit floats, which are 256 ns apart.
    assert!((found - expected).abs() <= expected.abs() * 2e-5, "{path}: {found}, not {expected}");
}

#[test]
fn the_same_stamps_give_aiperfs_results() {
    let goals = Goals::parse("time_to_first_token:100 request_latency:500").expect("goals");
    let json = json_of(&aiperf_run(), &goals, Some(300 * MS), Part::SummaryJson);
    for (path, expected) in [
        ("/request_latency/avg", 34.921_527_666_666_66),
        ("/request_latency/p1", 29.616_125_34),
        ("/request_latency/p90", 39.986_606_8),
        ("/request_latency/std", 4.992_636_564_306_968),
        ("/request_latency/sum", 104.764_583),
        ("/time_to_first_token/p75", 26.355_659_499_999_998),
        ("/time_to_second_token/avg", 5.677_032_333_333_333),
        ("/inter_token_latency/avg", 2.077_459_142_857_142_7),
        ("/inter_chunk_latency/p95", 5.835_985_4),
        ("/output_token_throughput_per_user/p5", 429.400_523_282_433_4),
        ("/benchmark_duration/avg", 0.835_742_464_000_000_1),
        ("/error_isl/p10", 47.1),
        ("/total_error_isl/avg", 151.0),
        ("/request_error_rate/avg", 40.0),
        ("/good_request_fraction/avg", 0.6),
        ("/adj_request_latency/p50", 41.567_324),
        ("/adj_request_latency/p25", 33.663_737_999_999_995),
        ("/tokens_in_flight/max", 56.0),
    ] {
        close(&json, path, expected);
    }
    // These are from AIPerf's tables, which have two decimals.
    for (path, expected) in [
        ("/decode_duration/avg", 9.40),
        ("/prefill_throughput_per_user/avg", 1_105.82),
        ("/e2e_output_token_throughput/avg", 148.91),
        ("/active_decode_throughput/avg", 460.74),
        ("/active_prefill_throughput/avg", 1_097.33),
    ] {
        let found = json.pointer(path).and_then(Value::as_f64).expect(path);
        let allowed = 0.0051 + expected * 2e-5;
        assert!((found - expected).abs() <= allowed, "{path}: {found}, not {expected}");
    }
    // These divide by AIPerf's phase, which is longer than from the first start to the last end.
    let longer = 1.026_578 / 0.973_663_976;
    for (path, expected) in [
        ("/output_token_throughput/avg", 15.585_761_824_834_453),
        ("/request_throughput/avg", 2.922_330_342_156_46),
        ("/total_token_throughput/avg", 97.410_7),
        ("/goodput/avg", 2.922_330_342_156_46),
        ("/effective_concurrency/avg", 0.178_495_138_488_854_32),
    ] {
        close(&json, path, expected * longer);
    }
    assert_eq!(json.pointer("/adj_request_latency/p90"), None, "infinite is left out");
    assert_eq!(json["adj_request_latency"]["count"], 5);
    assert_eq!(json["input_config"]["slos"]["request_latency"], 500.0);
    assert_eq!(json["input_config"]["artifacts"]["slice_duration"], 0.3);
    assert_eq!(json["error_summary"][0]["error_details"]["code"], 499);
    assert_eq!(json["error_summary"][0]["count"], 2);
}

#[test]
fn every_number_of_a_request_can_be_a_goal_and_shares_are_aiperfs() {
    for metric in REQUEST_METRICS.iter().chain([&CHUNK_GAPS]) {
        let tag = metric.tag;
        let kind = GoalKind::from_name(tag).unwrap_or_else(|| panic!("{tag} is no goal"));
        // (Two tags that are the same number here share the first one's name.)
        let known_as = kind.aiperf_tag().expect("it has one");
        assert!(known_as == tag || tag == "usage_reasoning_tokens", "{tag} is {known_as}");
    }
    let run = aiperf_run();
    let goals =
        Goals::parse("time_to_first_token:25 e2e_output_token_throughput:10").expect("goals");
    let json = json_of(&run, &goals, None, Part::SummaryJson);
    let options = ReportOptions { slo: Some(goals), ..ReportOptions::default() };
    let slo = report(&run, &options).slo;
    assert_eq!((slo.goodput_requests, slo.of_requests), (Some(2), Some(5)), "two are cancelled");
    assert_eq!(slo.goodput_share, json["good_request_fraction"]["avg"].as_f64());
    assert_eq!(json["input_config"]["slos"]["e2e_output_token_throughput"], 10.0);
}

#[test]
fn slices_are_cut_as_aiperf_cuts_them() {
    let run = aiperf_run();
    let goals = Goals::default();
    let json = json_of(&run, &goals, Some(300 * MS), Part::SlicesJson);
    let slices = json["timeslices"].as_array().expect("slices");
    assert_eq!(slices.len(), 3, "the one without a start is left out");
    for (slice, rate, concurrency) in [
        (0, 3.333_333_333_333_333, 0.283_448_32),
        (1, 3.333_333_333_333_333, 0.215_136_426_666_666_66),
        (2, 13.575_152_041_702_866, 0.456_990_443_092_962_66),
    ] {
        let at = |path: &str| format!("/timeslices/{slice}{path}");
        close(&json, &at("/request_throughput/avg"), rate);
        close(&json, &at("/effective_concurrency/avg"), concurrency);
        close(&json, &at("/request_count/avg"), 1.0);
    }
    assert_eq!(slices[0].get("is_complete"), None);
    assert_eq!(slices[2]["is_complete"], false);
    assert_eq!(slices[2].get("replay_sched_lag_p50"), None, "of whole runs only");
    let csv = written(&run, &goals, Some(300 * MS), Part::SlicesCsv);
    assert!(csv.starts_with("Timeslice,Start_NS,End_NS,Metric,Unit,Stat,Value\r\n"), "{csv}");
    assert!(csv.contains(",Request Throughput,requests/sec,avg,13.58\r\n"), "{csv}");
    let names = |slice_ns| {
        let export = Export::new(&run, &goals, slice_ns);
        export.parts().into_iter().map(Part::file_name).collect::<Vec<_>>()
    };
    assert_eq!(names(None).len(), 3);
    assert_eq!(names(Some(MS))[4], "profile_export_aiperf_timeslices.csv");
}

#[test]
fn lines_have_aiperfs_fields() {
    let run = aiperf_run();
    let goals = Goals::parse("itl:2").expect("a goal");
    let lines = written(&run, &goals, None, Part::Records);
    let lines: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 5);
    let metadata = &lines[2]["metadata"];
    let zero = run.started_unix_ns();
    assert_eq!(metadata["request_start_ns"], zero + 137_921_641);
    assert_eq!(metadata["request_end_ns"], zero + 179_488_965);
    for (key, value) in [
        ("session_num", json!(2)),
        ("x_request_id", json!("sample-2")),
        ("conversation_id", json!("session_000000")),
        ("benchmark_phase", json!("profiling")),
        ("was_cancelled", json!(false)),
        ("worker_id", json!("core_0")),
    ] {
        assert_eq!(metadata[key], value, "{key}");
    }
    let metrics = &lines[2]["metrics"];
    assert_eq!(metrics["request_latency"], json!({"value": 41.567_324, "unit": "ms"}));
    assert_eq!(metrics["output_sequence_length"], json!({"value": 8, "unit": "tokens"}));
    assert_eq!(metrics["inter_chunk_latency"]["value"][1], 5.457_958);
    assert_eq!(metrics["good_request_count"]["value"], 0, "2.38 ms between tokens");
    assert_eq!(metrics.get("usage_prompt_cache_read_tokens"), None, "unknown is left out");
    assert_eq!(lines[2].get("error"), None);
    assert_eq!(lines[0]["metrics"], json!({"error_isl": {"value": 40, "unit": "tokens"}}));
    assert_eq!(lines[0]["error"]["type"], "RequestCancellationError");
    assert_eq!(lines[0]["metadata"]["was_cancelled"], true);
    assert_eq!(lines[0]["metadata"]["cancellation_time_ns"], zero + 43_467_279);
}

#[test]
fn tables_are_split_as_aiperfs() {
    let csv = written(&aiperf_run(), &Goals::default(), None, Part::SummaryCsv);
    let lines: Vec<&str> = csv.split("\r\n").collect();
    assert_eq!(lines[0], "Metric,avg,min,max,sum,p1,p5,p10,p25,p50,p75,p90,p95,p99,std");
    for line in [
        "Request Latency (ms),34.92,29.53,41.57,104.76,29.62,29.95,30.36,31.60,33.66,37.62,39.99,\
         40.78,41.41,4.99",
        "Request Latency (error-adjusted) (ms),,29.53,,,29.53,29.53,29.53,33.66,41.57,,,,,",
        "Effective Concurrency,0.19,0.00,1.00,,,,,,0.00,,1.00,1.00,1.00,0.39",
        "Metric,Value",
        "Request Count,3.00",
        "Request Throughput (requests/sec),3.08",
    ] {
        assert!(lines.contains(&line), "{line} is not in\n{csv}");
    }
    let blank = lines.iter().position(|line| line.is_empty()).expect("a blank line");
    assert_eq!(lines[blank + 1], "Metric,Value");
}

#[test]
fn any_run_can_be_exported() {
    let goals = Goals::parse("ttft:200").expect("a goal");
    let mut torn = Sample::new();
    torn.closed = false;
    torn.send(5 * MS);
    torn.plan(9 * MS);
    for log in [sample::log(9, 250), Sample::new().bytes(), torn.bytes()] {
        let run = Run::read(&log).expect("a log");
        let export = Export::new(&run, &goals, Some(400 * MS));
        for part in export.parts() {
            let mut out = Vec::new();
            export.write(part, &mut out).expect("memory takes everything");
            let text = String::from_utf8(out).expect("text");
            assert!(!text.contains("NaN") && !text.contains("inf,"), "{text}");
        }
    }
    let run = Run::read(&torn.bytes()).expect("a log");
    let json = json_of(&run, &goals, None, Part::SummaryJson);
    assert_eq!((&json["is_complete"], &json["request_count"]["avg"]), (&json!(false), &json!(0.0)));
    // What was in flight then is neither a success nor an error.
    assert_eq!(json["error_summary"], json!([]));
    assert_eq!(json["error_request_count"], Value::Null);
    assert_eq!(written(&run, &goals, None, Part::Records), "");
}
