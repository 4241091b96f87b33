//! The tool's files against what the tool writes: its heads, its formats, and a run whose right
//! answers are known.

use serde_json::{Value, json};

use super::*;
use crate::log::sample::Sample;
use crate::log::{
    Assessment, Class, LimitedBy, RampReason, Record, RecordedRow, StepFlags, UserEvent, UserFacts,
    sample_users,
};
use crate::metrics::attribution::{UserGoals, periods};
use crate::units::{CoreIndex, RequestIndex, RunNanos, SessionIndex};

const MS: i64 = 1_000_000;

/// The first lines of the tool's tables, as a run of it wrote them.
const PERIODS: &str = "period_number,start_time,end_time,active_users,idle_users,\
    users_with_requests,requests_completed,requests_launched,requests_completed_new,\
    requests_completed_prior,requests_in_progress,requests_in_progress_new,\
    requests_in_progress_prior,requests_per_second,input_tokens_per_second,\
    output_tokens_per_second,ttft_avg,ttft_p50,ttft_p95,ttft_p99,avg_cache_hit_rate,\
    working_set_blocks,users_added,users_completed,total_request_time,idle_time_pct,\
    new_tokens_ingested,ttft_headroom_pct,rate_limited_users,rate_limit_events,\
    admission_blocked_events,dispatch_delay_avg,dispatch_delay_max,in_flight_prefilling,\
    in_flight_decoding,goodput_pct,goodput_ttft_pct,goodput_decode_pct,queue_depth,\
    otpm_bucket_pct,itpm_bucket_pct,avg_decode_tps_per_user,effective_ttft_avg,\
    effective_ttft_p50,effective_ttft_p95,service_rate,requests_per_user_per_min,\
    goodput_effective_pct";
const REQUESTS: &str = "user_id,request_idx,trace_id,timestamp,request_type,input_tokens,\
    output_tokens_expected,output_tokens_actual,cache_hit_blocks,cache_miss_blocks,ttft,ttlt,itl,\
    delay_expected,delay_actual,success,error_message,queue_time,effective_ttft,\
    request_start_time,prefill_complete_time,request_complete_time,token_timestamps,\
    tokens_per_chunk";
const LIFECYCLE: &str = "timestamp,user_id,event_type,trace_id,details";
/// The keys of the tool's configuration, in its order.
const CONFIG: &str = "api_endpoint,trace_directory,output_dir,max_context,max_ttft,ttft_metric,\
    min_output_tokens_per_req,start_users,max_users,max_delay,time_scale,timing_strategy,\
    api_time_scale,assessment_period,test_duration,recycle,chunk_size,verbose,tokenizer_id,\
    min_requests,max_new_tokens_per_period,max_working_set_tokens,trace_selection_seed,\
    prompt_generation_seed,temperature,top_p,top_k,repetition_penalty,ttft_window,\
    rate_limit_backoff,max_concurrent_requests,max_prefill_concurrent,max_decode_concurrent,\
    otpm_budget,itpm_budget,slo_ttft,slo_decode_tps,fairness_window,cache_max_age,\
    warm_prefix_pct,advance_min,advance_max,advance_all_users,max_consecutive_errors,\
    circuit_breaker_window";
const TRACE_STATS: &str = "total_traces,filtered_traces,total_requests,avg_requests_per_trace,\
    avg_cache_hit_rate,min_input_tokens,max_input_tokens,total_input_tokens,\
    traces_with_tool_use,max_shared_prefix_tokens";

/// A table as a reader sees it: its heads, and its rows by head.
struct Table {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn read(text: &[u8]) -> Self {
        let mut reader = csv::Reader::from_reader(text);
        let fields = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect();
        let heads = fields(reader.headers().expect("heads"));
        let rows = reader.records().map(|record| fields(&record.expect("a row"))).collect();
        Self { heads, rows }
    }

    fn get(&self, row: usize, head: &str) -> &str {
        let column = self.heads.iter().position(|own| own == head);
        &self.rows[row][column.expect("a column of that name")]
    }

    fn sum(&self, head: &str) -> f64 {
        let value = |row| self.get(row, head).parse::<f64>().expect("a number");
        (0..self.rows.len()).map(value).sum()
    }
}

fn bytes(run: &Run, part: Part) -> Vec<u8> {
    let periods = periods(run, UserGoals::of(run));
    let mut out = Vec::new();
    let export = Export::new(run, &periods).expect("a run with users");
    export.write(part, &mut out).expect("memory takes everything");
    out
}

fn table(run: &Run, part: Part) -> Table {
    Table::read(&bytes(run, part))
}

/// A user with a sub-agent: three requests, the second of which fails and the last of which has no
/// tokens of its own and ends in the second period.
fn small() -> Sample {
    let mut sample = Sample::new();
    sample.sessions = vec!["synB".to_owned(), "synB-SA1".to_owned()];
    sample.manifest.trace.block_tokens = Some(64);
    for (session, turn, place, input) in [(0, 0, 0, 130), (1, 0, 0, 70), (0, 1, 2, 200)] {
        let request = sample.plan(0);
        let row = &mut sample.plan[request.as_usize()];
        row.session = SessionIndex(session);
        row.turn = turn;
        row.input_tokens = Some(input);
        row.blocks = input / 64;
        row.think_ns = (turn > 0).then_some(100 * MS);
        let recorded = RecordedRow { place: Some(place), ..RecordedRow::of(request) };
        sample.recorded.push(recorded);
    }
    let facts = UserFacts {
        period_ns: 5_000 * MS,
        trace_ids: vec!["synB".to_owned(), "synB:agent_001".to_owned()],
        ..UserFacts::default()
    };
    sample.manifest.users = Some(Box::new(facts));
    user(&mut sample, 0, 0, UserEvent::Started { template: SessionIndex(0), cue: 0, copy: 0 });
    let limited = UserEvent::Limited { by: LimitedBy::Concurrency, backoff_ns: 200_000_000 };
    user(&mut sample, 0, 0, limited);
    let first = ask(&mut sample, 0, None, [0, 200 * MS, 200 * MS + 50_000]);
    sample.chunks(first, &[300 * MS, 320 * MS, 340 * MS]);
    sample.usage(first, 340 * MS, [Some(130), Some(3), Some(64)]);
    sample.done(first, 341 * MS, Class::Ok);
    let started = UserEvent::Started { template: SessionIndex(1), cue: 0, copy: 0 };
    user(&mut sample, 1, 341 * MS, started);
    let second = ask(&mut sample, 1, Some(first), [341 * MS; 3]);
    sample.done(second, 500 * MS, Class::Http429);
    user(&mut sample, 1, 500 * MS, UserEvent::Completed { done: 1, total: 1 });
    let third = ask(&mut sample, 0, Some(first), [500 * MS; 3]);
    sample.usage(third, 6_000 * MS, [Some(200), Some(7), None]);
    sample.done(third, 6_000 * MS, Class::Ok);
    user(&mut sample, 0, 6_000 * MS, UserEvent::Completed { done: 2, total: 2 });
    for (period, time, added, reason) in
        [(1, 5_000 * MS, 2, RampReason::Ramped), (2, 6_000 * MS, 0, RampReason::Ended)]
    {
        let decision = Assessment {
            period,
            time: RunNanos(time),
            users: 1,
            added,
            reason,
            working_set_tokens: 320,
            ..Assessment::default()
        };
        for record in decision.records() {
            sample.push(CoreIndex::CONDUCTOR, record);
        }
    }
    sample
}

fn user(sample: &mut Sample, session: u32, time: i64, event: UserEvent) {
    let parent = (session > 0).then_some(SessionIndex(0));
    let (session, time) = (SessionIndex(session), RunNanos(time));
    sample.push(CoreIndex(0), Record::User { session, time, event, parent, number: 1 });
}

/// Sends the next template; the times are due, ready and sent.
fn ask(
    sample: &mut Sample,
    session: u32,
    after: Option<RequestIndex>,
    times: [i64; 3],
) -> RequestIndex {
    let is_step = |(_, record): &&(CoreIndex, Record)| matches!(record, Record::Step { .. });
    let number = sample.records.iter().filter(is_step).count();
    let request = RequestIndex(u32::try_from(number).expect("three"));
    let [due, ready, sent] = times.map(RunNanos);
    let flags = if number == 2 { StepFlags::default() } else { StepFlags::STREAMED };
    let step = Record::Step {
        request,
        template: request.0,
        session: SessionIndex(session),
        after,
        body_bytes: 700,
        ideal_cached: Some(64),
        ideal_set: Some(64),
        flags,
    };
    sample.push(CoreIndex(0), step);
    let (target, reused, due) = (0, false, Some(due));
    let dispatch = Record::Dispatch { request, sent, ready, due, target, reused };
    sample.push(CoreIndex(0), dispatch);
    request
}

#[test]
fn the_tool_s_columns_come_first_in_its_order() {
    for (part, tools) in
        [(Part::Periods, PERIODS), (Part::Requests, REQUESTS), (Part::Lifecycle, LIFECYCLE)]
    {
        let head = part.head().expect("a table");
        assert!(head == tools || head.starts_with(&format!("{tools},")), "{head}");
        let run = Run::read(&sample_users::log(1, 6)).expect("a log");
        let text = bytes(&run, part);
        assert_eq!(text.split(|&byte| byte == b'\n').next(), Some(head.as_bytes()));
    }
    assert_eq!(Part::Metadata.head(), None);
}

#[test]
fn a_request_s_row_is_the_tool_s() {
    let table = table(&Run::read(&small().bytes()).expect("a log"), Part::Requests);
    assert_eq!(table.rows.len(), 3);
    let tools = REQUESTS.split(',').collect::<Vec<_>>();
    let row = |row: usize| tools.iter().map(|head| table.get(row, head)).collect::<Vec<_>>();
    let first = [
        "User-001",
        "0",
        "synB",
        "1767323045.341",
        "streaming",
        "130",
        "10",
        "3",
        "1",
        "1",
        "0.09995",
        "0.13995",
        "0.02",
        "0.0",
        "0.2",
        "True",
        "",
        "0.2",
        "0.29995",
        "1767323045.20005",
        "1767323045.3",
        "1767323045.341",
        "[1767323045.3, 1767323045.32, 1767323045.34]",
        "[1, 1, 1]",
    ];
    assert_eq!(row(0), first);
    let second = row(1);
    assert_eq!(second[..3], ["User-001-SA1", "0", "synB:agent_001"]);
    assert_eq!(table.get(1, "success"), "False");
    assert_eq!(table.get(1, "error_message"), "http_429");
    assert_eq!([table.get(1, "ttft"), table.get(1, "itl"), table.get(1, "ttlt")], ["", "", ""]);
    assert_eq!(table.get(1, "token_timestamps"), "[]");
    // The parent's second request stands behind its sub-agent in the list, and waited for it.
    assert_eq!(row(2)[..3], ["User-001", "2", "synB"]);
    assert_eq!(table.get(2, "request_type"), "non_streaming");
    assert_eq!(table.get(2, "output_tokens_actual"), "7");
    assert_eq!([table.get(2, "delay_expected"), table.get(2, "queue_time")], ["0.1", "0.0"]);
    assert_eq!(table.get(2, "subagent_wait_s"), "0.059");
    assert_eq!([table.get(0, "ideal_cached_tokens"), table.get(0, "cached_tokens")], ["64"; 2]);
}

#[test]
fn a_period_s_row_is_the_tool_s_and_nothing_falls_between_two() {
    let table = table(&Run::read(&small().bytes()).expect("a log"), Part::Periods);
    assert_eq!(table.rows.len(), 2, "the last partial period is there");
    let of = |row: usize, heads: &[&str]| {
        heads.iter().map(|head| table.get(row, head).to_owned()).collect::<Vec<_>>()
    };
    let edges = ["period_number", "start_time", "end_time", "complete"];
    assert_eq!(of(0, &edges), ["1", "1767323045.0", "1767323050.0", "True"]);
    assert_eq!(of(1, &edges), ["2", "1767323050.0", "1767323051.0", "False"]);
    let counts = [
        "requests_completed",
        "requests_launched",
        "requests_in_progress",
        "requests_completed_prior",
        "users_added",
        "users_completed",
        "working_set_blocks",
        "admission_blocked_events",
        "rate_limit_events",
        "requests_failed",
    ];
    assert_eq!(of(0, &counts)[..6], ["1", "3", "1", "0", "2", "1"]);
    assert_eq!(of(0, &counts)[7..], ["1", "0", "1"]);
    assert_eq!(of(1, &counts)[..6], ["1", "0", "0", "1", "0", "1"]);
    let rates = ["requests_per_second", "input_tokens_per_second", "output_tokens_per_second"];
    assert_eq!(of(0, &rates), ["0.2", "26.0", "0.6"]);
    assert_eq!(table.get(0, "ttft_avg"), "0.09995");
    assert_eq!(table.get(1, "ttft_avg"), "", "its answer came in one piece");
    assert_eq!(table.get(0, "dispatch_delay_max"), "0.2");
    assert_eq!(table.get(0, "ramp_reason"), "all gates passed");
    let service: f64 = table.get(0, "service_rate").parse().expect("a number");
    assert!(service <= 100.0);
    assert_eq!([table.get(0, "otpm_bucket_pct"), table.get(0, "itpm_bucket_pct")], ["100.0"; 2]);
}

#[test]
fn sums_over_periods_are_the_run_s() {
    for seed in 0..20 {
        let run = Run::read(&sample_users::log(seed, 9)).expect("a log");
        let (periods, requests) = (table(&run, Part::Periods), table(&run, Part::Requests));
        let ok = (0..requests.rows.len()).filter(|&row| requests.get(row, "success") == "True");
        let ok = crate::metrics::latency::count(ok.count() as u64);
        let all = crate::metrics::latency::count(requests.rows.len() as u64);
        assert!((periods.sum("requests_completed") - ok).abs() < 1e-9, "seed {seed}");
        assert!((periods.sum("requests_launched") - all).abs() < 1e-9, "seed {seed}");
        let users = table(&run, Part::Lifecycle);
        let completed = (0..users.rows.len())
            .filter(|&row| users.get(row, "event_type") == "completed")
            .count();
        let completed = crate::metrics::latency::count(completed as u64);
        assert!((periods.sum("users_completed") - completed).abs() < 1e-9, "seed {seed}");
    }
}

#[test]
fn no_token_is_without_a_rate() {
    let mut sample = Sample::new();
    sample.sessions = vec!["a".to_owned()];
    let template = sample.plan(0);
    sample.plan[template.as_usize()].input_tokens = Some(70);
    let facts = UserFacts { period_ns: 5_000 * MS, ..UserFacts::default() };
    sample.manifest.users = Some(Box::new(facts));
    user(&mut sample, 0, 0, UserEvent::Started { template: SessionIndex(0), cue: 0, copy: 0 });
    let only = ask(&mut sample, 0, None, [0; 3]);
    sample.chunks(only, &[300 * MS, 6_000 * MS, 7_000 * MS]);
    sample.done(only, 7_000 * MS, Class::Ok);
    user(&mut sample, 0, 7_000 * MS, UserEvent::Completed { done: 1, total: 1 });
    let table = table(&Run::read(&sample.bytes()).expect("a log"), Part::Periods);
    assert_eq!(table.get(0, "output_tokens_per_second"), "0.2");
    assert_eq!(table.get(1, "output_tokens_per_second"), "1.0", "a stream went on");
    assert_eq!(table.get(1, "input_tokens_per_second"), "", "and no prefill ended");
}

#[test]
fn a_user_s_life_is_told_in_the_tool_s_words() {
    let text = bytes(&Run::read(&small().bytes()).expect("a log"), Part::Lifecycle);
    let text = String::from_utf8(text).expect("text");
    let expected = "\
        timestamp,user_id,event_type,trace_id,details\n\
        1767323045.0,User-001,started,synB,\"2 requests, 130 initial tokens\"\n\
        1767323045.341,User-001-SA1,started,synB:agent_001,\"1 requests, 70 initial tokens\"\n\
        1767323045.5,User-001-SA1,completed,synB:agent_001,\"1/1 requests, 100.0% cache hit\"\n\
        1767323051.0,User-001,completed,synB,\"2/2 requests, 40.0% cache hit\"\n";
    assert_eq!(text, expected);
}

#[test]
fn whoever_goes_on_with_an_earlier_run_is_not_advanced() {
    for (before, words, advanced) in
        [(0, "1 requests remaining (advanced 75%)", 1), (1, "1 requests remaining (resumed)", 0)]
    {
        let mut sample = Sample::new();
        sample.sessions = vec!["a".to_owned()];
        sample.plan(0);
        let facts = UserFacts { period_ns: MS, users_before: before, ..UserFacts::default() };
        sample.manifest.users = Some(Box::new(facts));
        user(&mut sample, 0, 0, UserEvent::Started { template: SessionIndex(0), cue: 3, copy: 0 });
        user(&mut sample, 0, MS, UserEvent::Completed { done: 1, total: 1 });
        let run = Run::read(&sample.bytes()).expect("a log");
        let text = String::from_utf8(bytes(&run, Part::Lifecycle)).expect("text");
        assert!(text.contains(words), "{text}");
        let report = crate::metrics::report(&run, &crate::metrics::ReportOptions::default());
        assert_eq!(report.users.expect("users").advanced, advanced);
    }
}

#[test]
fn metadata_has_the_tool_s_keys_in_its_order() {
    let run = Run::read(&sample_users::log(1, 6)).expect("a log");
    let document: Value = serde_json::from_slice(&bytes(&run, Part::Metadata)).expect("JSON");
    let keys = |value: &Value| {
        let keys: Vec<&str> = value.as_object().expect("keys").keys().map(String::as_str).collect();
        keys.join(",")
    };
    assert_eq!(keys(&document), "model,api_endpoint,mode,timestamp,trace_stats,config,onbeat");
    assert_eq!(keys(&document["config"]), CONFIG);
    assert_eq!(keys(&document["trace_stats"]), TRACE_STATS);
    assert_eq!(document["mode"], "trace_replay");
    let time = document["timestamp"].as_str().expect("a time");
    assert!(time.starts_with("2026-01-02T03:04:") && time.ends_with("+00:00"), "{time}");
    assert_eq!(document["config"]["assessment_period"], 5);
}

#[test]
fn hostile_names_come_back_as_they_were() {
    let hostile = "a,\"b\"\n=HYPERLINK(\"x\")\u{202e}";
    let mut sample = small();
    let facts = sample.manifest.users.as_mut().expect("users");
    facts.trace_ids[0] = hostile.to_owned();
    let run = Run::read(&sample.bytes()).expect("a log");
    for part in [Part::Requests, Part::Lifecycle] {
        assert_eq!(table(&run, part).get(0, "trace_id"), hostile, "{}", part.file_name());
    }
}

#[test]
fn a_run_that_goes_on_adds_rows_and_counts_its_periods_on() {
    let run = Run::read(&small().bytes()).expect("a log");
    let periods = periods(&run, UserGoals::of(&run));
    let export = Export::new(&run, &periods).expect("users");
    let mut both = bytes(&run, Part::Periods);
    let alone = both.len();
    export.write_after(Part::Periods, 2, &mut both).expect("memory takes everything");
    assert!(both.len() < 2 * alone, "one line of heads");
    let table = Table::read(&both);
    let numbers: Vec<&str> = (0..4).map(|row| table.get(row, "period_number")).collect();
    assert_eq!(numbers, ["1", "2", "3", "4"]);
}

#[test]
fn a_run_without_users_has_no_such_files_and_an_empty_one_no_tables() {
    let schedule = Run::read(&crate::log::sample::log(1, 5)).expect("a log");
    assert!(Export::new(&schedule, &[]).is_none());
    let mut sample = small();
    sample.records.clear();
    let run = Run::read(&sample.bytes()).expect("a log");
    assert_eq!(Export::new(&run, &[]).expect("users").parts(), [Part::Metadata]);
}

#[test]
fn progress_comes_back_as_it_was_and_goes_on() {
    let mut sample = small();
    sample.interrupted = true;
    let run = Run::read(&sample.bytes()).expect("a log");
    let periods = periods(&run, UserGoals::of(&run));
    let export = Export::new(&run, &periods).expect("users");
    let first = export.progress(Some(json!({"next_user": 2})), None);
    assert!(!first.completed, "the user stopped it");
    let mut out = Vec::new();
    write_json(&first, &mut out).expect("memory takes everything");
    let text = std::str::from_utf8(&out).expect("text");
    assert!(text.starts_with("{\n  \"parameters\": {\n    \"api_endpoint\": "), "{text}");
    let back: Progress<Value> = serde_json::from_slice(&out).expect("reads");
    assert_eq!(back, first);
    let second = export.progress(None, Some(&back));
    assert_eq!(second.onbeat.periods, 4);
    assert_eq!(second.onbeat.run_ids.len(), 2);
}

#[test]
fn what_must_be_equal_is_named_when_it_is_not() {
    let facts = UserFacts { period_ns: 5_000 * MS, ..UserFacts::default() };
    let before = Equal::new("traces", "0123456789abcdef", &facts);
    assert_eq!(before.differences(&before), []);
    let mut other = facts;
    other.pool.max_context = 9_000;
    other.period_ns = 30_000 * MS;
    // Limits and the ramp may change.
    other.limits.concurrent = 7;
    other.max_users = 9;
    let now = Equal::new("more", "fedcba9876543210", &other);
    let words: Vec<String> = before.differences(&now).iter().map(ToString::to_string).collect();
    assert_eq!(
        words,
        [
            "the trace was traces (sha256 0123456789ab…) and is more (sha256 fedcba987654…)",
            "--max-context was 0 and is 9000",
            "--assessment-period was 5.0 and is 30.0",
        ]
    );
    let mut older = before.clone();
    older.options.shift_remove("--reply-mode");
    let words: Vec<String> = older.differences(&before).iter().map(ToString::to_string).collect();
    assert_eq!(words, ["--reply-mode was not given and is "]);
}
