//! Tests of whole reports: their JSON against the schema, and the cases people disagree about.

use serde_json::{Map, Value};

use super::slo::Goals;
use super::{Report, ReportOptions, report};
use crate::log::sample::{self, Sample};
use crate::log::sample_users;
use crate::log::{Class, Record};
use crate::run::{Run, State};
use crate::units::{CoreIndex, RunNanos};

const MS: i64 = 1_000_000;
const SCHEMA: &str = include_str!("../../report.schema.json");

fn read(sample: &Sample) -> Run {
    Run::read(&sample.bytes()).expect("a log")
}

fn plain(sample: &Sample) -> Report {
    report(&read(sample), &ReportOptions::default())
}

/// Checks a value against the part of JSON Schema that our schema uses.
pub(super) fn check(schema: &Value, value: &Value, root: &Value, at: &str) {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        let target = root.pointer(name.trim_start_matches('#')).expect("a definition");
        check(target, value, root, at);
    }
    if let Some(constant) = schema.get("const") {
        assert_eq!(value, constant, "{at}");
    }
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        assert!(choices.contains(value), "{at}: {value}");
    }
    let types: Vec<&str> = match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => return,
    };
    assert!(types.iter().any(|name| has_type(value, name)), "{at}: {value} is not {types:?}");
    match value {
        Value::Object(fields) => check_fields(schema, fields, root, at),
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                check(&schema["items"], item, root, &format!("{at}[{i}]"));
            }
        }
        _ => {}
    }
}

fn check_fields(schema: &Value, fields: &Map<String, Value>, root: &Value, at: &str) {
    let none = Map::new();
    let known = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        assert!(fields.contains_key(name.as_str().expect("a name")), "{at} lacks {name}");
    }
    for (name, value) in fields {
        let at = format!("{at}.{name}");
        match (known.get(name), schema.get("additionalProperties")) {
            (Some(schema), _) => check(schema, value, root, &at),
            (None, Some(schema @ Value::Object(_))) => check(schema, value, root, &at),
            (None, _) => panic!("{at} is not in the schema"),
        }
    }
}

fn has_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        other => panic!("a type the schema must not use: {other}"),
    }
}

#[test]
fn reports_fit_the_schema() {
    let schema: Value = serde_json::from_str(SCHEMA).expect("JSON");
    let full = Run::read(&sample::log(4, 300)).expect("a log");
    let empty = read(&Sample::new());
    let goals = Goals::parse("ttft:200 itl:12 decode_tps:20").expect("goals");
    let with_goals = ReportOptions { slo: Some(goals), ..ReportOptions::default() };
    let sliced = ReportOptions { slice_ns: Some(500 * MS), ..with_goals.clone() };
    let users = Run::read(&sample_users::log(4, 8)).expect("a log");
    let idle = read(&sample_users::empty(MS));
    let scraped = read(&sample::scraped(4));
    for run in [&full, &empty, &users, &idle, &scraped] {
        for options in [&ReportOptions::default(), &with_goals, &sliced] {
            let json = serde_json::to_value(report(run, options)).expect("JSON");
            check(&schema, &json, &schema, "report");
        }
    }
}

#[test]
fn a_run_that_was_given_up_did_not_hold() {
    let mut sample = Sample::new();
    sample.send(0);
    assert!(plain(&sample).verdict.schedule_held);
    sample.given_up = Some("9 connections failed".to_owned());
    let verdict = plain(&sample).verdict;
    assert_eq!(verdict.reasons, ["the run was given up: 9 connections failed"]);
    assert!(!verdict.schedule_held);
    // What it did not come to is nobody's delay, and no longer drain would have helped.
    for k in 1..9 {
        let left = sample.plan(k * 1_000 * MS);
        sample.done(left, MS, Class::NotReached);
    }
    let reasons = plain(&sample).verdict.reasons;
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert_eq!(reasons[1], "8 of 9 planned requests were never sent, because of that");
}

#[test]
fn what_precision_rests_on_is_reported_as_the_manifest_has_it() {
    let mut sample = Sample::new();
    sample.manifest.realtime = Some("throttled".to_owned());
    sample.manifest.doctor = Some(serde_json::json!({"findings": [{"check": "governor"}]}));
    let precision = serde_json::to_value(plain(&sample).run.precision).expect("JSON");
    assert_eq!(precision["pacing"], "spin");
    assert_eq!(precision["driver"], "io_uring");
    assert_eq!(precision["wake_error_ns"], 4_000);
    assert_eq!(precision["stall_threshold_ns"], 50_000);
    assert_eq!(precision["realtime"], "throttled");
    assert_eq!(precision["memory_lock"], Value::Null);
    assert_eq!(precision["doctor"]["findings"][0]["check"], "governor");
    sample.manifest.pacing.wake_error_ns = 0;
    assert_eq!(plain(&sample).run.precision.wake_error_ns, None, "it was not measured");
}

#[test]
fn what_was_planned_and_what_was_sent_add_up() {
    let mut sample = sample::sample(6, 300);
    for class in [Class::CancelledByPlan, Class::Interrupted, Class::CutAtEnd] {
        let request = sample.send(4 * MS);
        sample.done(request, 9 * MS, class);
    }
    sample.send(5 * MS);
    let refused = sample.plan(6 * MS);
    sample.done(refused, 7 * MS, Class::ConnectRefused);
    let goals = Goals::parse("ttft:200").expect("a goal");
    for closed in [true, false] {
        sample.closed = closed;
        sample.plan(9_000 * MS);
        let run = read(&sample);
        let slo = Some(goals.clone());
        let options = ReportOptions { slo, slice_ns: Some(700 * MS), ..ReportOptions::default() };
        let report = report(&run, &options);
        let ends = |of: &report::Outcomes| of.ended() + of.cancelled + of.in_flight();
        let all = &report.outcomes;
        assert!(all.cancelled >= 3 && all.in_flight() > 0, "{all:?}");
        let unsent = all.never_sent + report.notes.not_reached + report.notes.lost;
        assert_eq!(ends(all) + unsent, report.schedule.planned);
        assert_eq!(all.by_class.values().sum::<u64>(), report.schedule.planned);
        let slo = &report.slo;
        let counted = slo.of_requests.expect("goals") + slo.cut_off_requests.expect("goals");
        assert_eq!(counted, ends(all), "{slo:?}");
        for slice in report.slices.as_ref().expect("asked for") {
            assert_eq!(ends(&slice.outcomes), slice.sent, "{:?}", slice.outcomes);
        }
    }
}

#[test]
fn a_run_without_data_has_null_everywhere() {
    let json = serde_json::to_value(plain(&Sample::new())).expect("JSON");
    for section in ["latency", "failures_as_infinite", "tokens", "throughput", "concurrency"] {
        for (name, value) in json[section].as_object().expect("a section") {
            assert!(value.is_null(), "{section}.{name} is {value}");
        }
    }
    for path in ["/run/duration_s", "/schedule/offered_rps", "/schedule/lateness_us"] {
        assert!(json.pointer(path).expect(path).is_null(), "{path}");
    }
    let goals = ["/slo/goodput_requests", "/slo/of_requests", "/slo/cut_off_requests"];
    for path in ["/cache/ideal_hit_rate", "/cache/reported_hit_rate"].into_iter().chain(goals) {
        assert!(json.pointer(path).expect(path).is_null(), "{path}");
    }
    assert_eq!(json["verdict"]["schedule_held"], false);
}

#[test]
fn failures_do_not_thin_the_latency() {
    // Case H08: 50 answers after 100 ms, 50 refused at once.
    let mut sample = Sample::new();
    for k in 0..100 {
        let request = sample.plan(k * MS);
        if k % 2 == 0 {
            sample.dispatch(request, k * MS, k * MS);
            sample.chunks(request, &[(k + 100) * MS, (k + 101) * MS]);
            sample.done(request, (k + 101) * MS, Class::Ok);
        } else {
            sample.done(request, k * MS, Class::ConnectRefused);
        }
    }
    let report = plain(&sample);
    let ttft = report.latency.ttft_ms.expect("fifty answers");
    assert_eq!((ttft.count, ttft.p50, ttft.min), (50, 100.0, 100.0));
    assert_eq!((report.outcomes.ok, report.outcomes.connect_error), (50, 50));
    assert_eq!(report.outcomes.by_class["connect_refused"], 50);
    assert_eq!(report.notes.ttft_ms_p99_failures_as_infinite, None, "half of them never came");
    assert!(report.verdict.schedule_held, "{:?}", report.verdict.reasons);
}

#[test]
fn one_straggler_leaves_the_sending_windows_rate_alone() {
    // Case H11: 999 requests in 10 s, one of them ends after 60 s.
    let mut sample = Sample::new();
    for k in 0..1_000 {
        let sent = k * 10 * MS;
        let request = sample.send(sent);
        let first = if k == 999 { 59_000 * MS } else { sent + 100 * MS };
        sample.chunks(request, &[first, first + MS]);
        sample.done(request, if k == 999 { 60_000 * MS } else { first + MS }, Class::Ok);
    }
    let report = plain(&sample);
    let close = |found: Option<f64>, expected: f64| {
        assert!((found.expect("a rate") - expected).abs() < expected * 1e-3, "{found:?}");
    };
    close(report.throughput.requests_per_s, 1_000.0 / 60.0);
    close(report.notes.requests_per_s_of_sending_window, 1_000.0 / 9.99);
    close(report.schedule.offered_rps, 1_000.0 / 9.99);
    assert_eq!(report.run.duration_s, Some(60.0));
}

#[test]
fn the_verdict_names_every_cause() {
    let mut sample = Sample::new();
    for k in 0..100 {
        let request = sample.plan(k * MS);
        sample.dispatch(request, k * MS, k * MS + 2 * MS);
        sample.done(request, 400 * MS, Class::Ok);
    }
    let late = plain(&sample);
    assert!(!late.verdict.schedule_held);
    assert!(
        late.verdict.reasons.iter().any(|words| words.contains("is 2 ms, above the limit of 1 ms")),
        "{late:?}"
    );
    let options = ReportOptions { max_lateness_us: Some(3_000), ..ReportOptions::default() };
    assert!(report(&read(&sample), &options).verdict.schedule_held, "a higher limit");

    let never = sample.plan(100 * MS);
    let report = plain(&sample);
    assert_eq!((report.schedule.never_sent, report.outcomes.never_sent), (1, 1));
    assert_eq!(report.outcomes.by_class["no_record"], 1);
    assert!(report.verdict.reasons[0].contains("1 of 101"), "{:?}", report.verdict);
    sample.done(never, 401 * MS, Class::NotReached);
    sample.interrupted = true;
    let stopped = plain(&sample);
    assert!(stopped.run.interrupted);
    assert!(stopped.verdict.reasons.iter().all(|words| !words.contains("never sent")));
}

#[test]
fn a_short_trace_with_one_late_request_is_judged_by_its_lateness() {
    // The host took the processor away when the second one was due.
    let run_of = |stall: Option<(i64, u64)>| {
        let mut sample = Sample::new();
        for (due, sent) in [(0, 20_000), (5 * MS, 9 * MS)] {
            let request = sample.plan(due);
            sample.dispatch(request, due, sent);
            sample.done(request, 50 * MS, Class::Ok);
        }
        if let Some((start, length_ns)) = stall {
            sample.push(CoreIndex(0), Record::Stall { start: RunNanos(start), length_ns });
        }
        plain(&sample)
    };
    let stalled = run_of(Some((5 * MS - 1_000, 3_900_000)));
    assert!(stalled.verdict.schedule_held, "{:?}", stalled.verdict);
    // Of requests that were all hit none shows anything, unless they left in time all the same.
    let mut hit = Sample::new();
    let request = hit.plan(5 * MS);
    hit.dispatch(request, 5 * MS, 9 * MS);
    hit.done(request, 50 * MS, Class::Ok);
    let (start, length_ns) = (RunNanos(5 * MS - 1_000), 3_900_000);
    hit.push(CoreIndex(0), Record::Stall { start, length_ns });
    let reasons = plain(&hit).verdict.reasons;
    assert!(reasons.len() == 1 && reasons[0].starts_with("host stalls explain"), "{reasons:?}");
    let options = ReportOptions { max_lateness_us: Some(5_000), ..ReportOptions::default() };
    assert!(report(&read(&hit), &options).verdict.schedule_held);
    // Nobody else is to blame: it is late, and the client is not saturated.
    let late = run_of(None);
    let reasons = &late.verdict.reasons;
    assert!(!late.verdict.schedule_held && reasons.len() == 1, "{reasons:?}");
    assert!(reasons[0].starts_with("p99 lateness outside host stalls"), "{reasons:?}");
}

#[test]
fn a_backlog_beyond_the_host_stalls_is_the_clients() {
    // Stalls hit every request, and the client is short with their time taken off as well.
    let mut sample = Sample::new();
    for k in 0..100 {
        let request = sample.plan(k * MS);
        sample.dispatch(request, k * MS, 4 * k * MS);
        sample.done(request, 500 * MS, Class::Ok);
        let (start, length_ns) = (RunNanos(4 * k * MS), 2_500_000);
        sample.push(CoreIndex(0), Record::Stall { start, length_ns });
    }
    let report = plain(&sample);
    let reasons = &report.verdict.reasons;
    assert!(!report.verdict.schedule_held && reasons.len() == 1, "{reasons:?}");
    assert!(reasons[0].starts_with("CLIENT SATURATED: 480.8 of the 1010.1"), "{reasons:?}");
    assert!(reasons[0].contains("time in host stalls is taken off"), "{reasons:?}");
}

#[test]
fn a_burst_that_found_no_descriptor_was_not_held() {
    // One instant has no rate, and what never left has no lateness.
    let mut sample = Sample::new();
    let left = sample.send(0);
    sample.done(left, MS, Class::Ok);
    let kept = sample.plan(0);
    sample.done(kept, MS, Class::ClientNoDescriptor);
    let report = plain(&sample);
    assert!(!report.verdict.schedule_held);
    assert!(report.verdict.reasons[0].contains("1 of 2"), "{:?}", report.verdict);
    assert!(report.verdict.reasons[0].contains("ulimit -n"), "{:?}", report.verdict);
}

#[test]
fn each_thing_that_was_lacking_here_is_said_with_what_would_help_and_before_all_else() {
    let mut sample = Sample::new();
    for class in [Class::ClientNoPort, Class::ClientOther, Class::Http5xx] {
        let kept = sample.plan(0);
        sample.done(kept, MS, class);
    }
    for class in [Class::Ok, Class::ClientOther] {
        let left = sample.send(0);
        sample.done(left, MS, class);
    }
    let verdict = plain(&sample).verdict;
    assert!(!verdict.schedule_held);
    for (reason, parts) in verdict.reasons.iter().zip([
        ["1 of 5 planned requests found no local port", "ip_local_port_range"],
        ["1 of 5 planned requests were kept back on this side", "sudo nft list ruleset"],
        ["1 of 2 requests that left broke off on this side", "not by the server"],
    ]) {
        assert!(parts.iter().all(|part| reason.contains(part)), "{verdict:?}");
        assert!(!reason.contains("ulimit -n"), "{reason}");
    }
}

#[test]
fn a_log_with_damage_does_not_show_that_a_schedule_held() {
    let whole = sample::log(1, 40);
    let report_of = |bytes: &[u8]| {
        let run = Run::read(bytes).expect("a log");
        (run.damaged_bytes, report(&run, &ReportOptions::default()).verdict)
    };
    let (none, verdict) = report_of(&whole);
    assert!(none == 0 && verdict.schedule_held, "{verdict:?}");
    let mut flipped = whole.clone();
    let place = whole.len() * 9 / 10;
    flipped[place] ^= 1;
    let (damaged, verdict) = report_of(&flipped);
    assert!(damaged > 0 && !verdict.schedule_held, "{damaged}: {verdict:?}");
    let said = format!("{damaged} bytes of the log are damaged");
    let is_said = |reason: &String| reason.replace(',', "").starts_with(&said);
    assert!(verdict.reasons.iter().any(is_said), "{verdict:?}");
    let blamed = |reason: &String| reason.contains("--drain-seconds");
    assert!(
        !verdict.reasons.iter().any(blamed),
        "what is missing was not left unsent: {verdict:?}"
    );
}

#[test]
fn what_damage_took_from_a_log_was_not_left_unsent() {
    let mut sample = sample::sample(3, 200);
    let never = sample.plan(9_000 * MS);
    sample.done(never, 9_001 * MS, Class::NotReached);
    let whole = sample.bytes();
    let mut most = 0;
    for place in (whole.len() / 3..whole.len()).step_by(whole.len() / 30) {
        let mut flipped = whole.clone();
        flipped[place] ^= 1;
        let run = Run::read(&flipped).expect("a log");
        let report = report(&run, &ReportOptions::default());
        let of = |name: &str| report.outcomes.by_class.get(name).copied().unwrap_or(0);
        if run.footer.is_none() {
            continue;
        }
        assert_eq!(of("no_record"), 0, "at {place}: {:?}", report.outcomes);
        // What a record says is known, whatever is missing beside it.
        assert_eq!(report.outcomes.never_sent, of("not_reached"), "at {place}");
        assert_eq!(report.schedule.never_sent, of("not_reached"), "at {place}");
        assert_eq!(report.notes.lost, of("unknown_log_incomplete"), "at {place}");
        assert_eq!(report.outcomes.by_class.values().sum::<u64>(), 201, "at {place}");
        most = most.max(report.notes.lost);
    }
    assert!(most > 10, "a block of records is many requests");
    // Records that found no room are no better.
    let mut sample = Sample::new();
    sample.plan(0);
    assert_eq!(plain(&sample).outcomes.never_sent, 1, "nothing is missing");
    sample.push(CoreIndex(0), Record::Lost { time: RunNanos(MS), count: 3 });
    let report = plain(&sample);
    assert_eq!((report.outcomes.never_sent, report.notes.lost), (0, 1));
    assert!(report.verdict.reasons.iter().all(|words| !words.contains("never sent")));
}

#[test]
fn a_log_without_footer_tells_flight_from_not_reached() {
    // Case H10, with the sender killed.
    let mut sample = Sample::new();
    sample.closed = false;
    for k in 0..3 {
        let request = sample.send(k * MS);
        if k == 0 {
            sample.done(request, 9 * MS, Class::Ok);
        }
    }
    sample.plan(20 * MS);
    let run = read(&sample);
    assert_eq!(run.state, State::Unfinished { cut_bytes: 0 });
    let report = report(&run, &ReportOptions::default());
    assert!(report.run.torn);
    assert_eq!((report.notes.open, report.notes.not_reached), (2, 1));
    assert_eq!(report.schedule.never_sent, 0);
    assert!(!report.verdict.schedule_held);
    assert_eq!(report.outcomes.by_class["in_flight_when_log_ends"], 2);
}

#[test]
fn a_step_of_the_wall_clock_is_said_and_changes_nothing() {
    // Case H19.
    let mut sample = Sample::new();
    let request = sample.send(0);
    sample.chunks(request, &[100 * MS, 120 * MS]);
    sample.done(request, 121 * MS, Class::Ok);
    let before = plain(&sample);
    let unix_ns = sample.manifest.started_unix_ns + 3_600_000_000_000;
    let time = RunNanos(60 * MS);
    sample.push(CoreIndex::CONDUCTOR, Record::Anchor { time, unix_ns, monotonic_ns: 0 });
    let after = plain(&sample);
    assert_eq!(after.latency, before.latency);
    assert!(after.notes.warnings[0].contains("stepped by 1 h 00 min during"), "{:?}", after.notes);
}

#[test]
fn a_range_speaks_of_its_own_requests() {
    let mut sample = Sample::new();
    for k in 0..10 {
        let request = sample.send(k * MS);
        sample.chunks(request, &[(k + 10) * MS, (k + 11) * MS]);
        sample.done(request, (k + 11) * MS, Class::Ok);
    }
    let range = Some((RunNanos(2 * MS), RunNanos(5 * MS)));
    let part = report(&read(&sample), &ReportOptions { range, ..ReportOptions::default() });
    assert_eq!((part.schedule.planned, part.outcomes.ok), (3, 3));
    assert_eq!(part.run.duration_s, Some(0.013));
    assert!(part.verdict.schedule_held);
}

#[test]
fn slices_report_their_own_requests_and_add_up() {
    let run = Run::read(&sample::log(5, 300)).expect("a log");
    let slo = Some(Goals::parse("ttft:200").expect("a goal"));
    let options = ReportOptions { slo, slice_ns: Some(1_000 * MS), ..ReportOptions::default() };
    let report = report(&run, &options);
    let slices = report.slices.as_ref().expect("asked for");
    assert!(slices.len() > 3, "{}", slices.len());
    assert_eq!(slices.iter().map(|slice| slice.sent).sum::<u64>(), report.schedule.sent);
    assert_eq!(slices.iter().map(|slice| slice.outcomes.ok).sum::<u64>(), report.outcomes.ok);
    let good = |slo: &report::Slo| slo.goodput_requests.unwrap_or(0);
    assert_eq!(slices.iter().map(|slice| good(&slice.slo)).sum::<u64>(), good(&report.slo));
    let first = &slices[0];
    assert_eq!(first.end_ns - first.start_ns, 1_000 * MS);
    let rate = first.throughput.requests_per_s.expect("answers");
    assert_eq!(rate.to_bits(), super::latency::count(first.outcomes.ok).to_bits(), "over 1 s");
    assert!(first.concurrency.effective.expect("requests").max >= 1.0);
    assert!(!slices.last().expect("some").complete, "the run ends inside the last one");
}
