//! A replay against the mock, exported as other tools write theirs.

use std::collections::BTreeSet;

use onbeat_shared::export::aiperf::{Export, Part};
use onbeat_shared::export::vllm_bench;
use onbeat_shared::metrics::slo::Goals;
use onbeat_shared::metrics::{ReportOptions, report};
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
