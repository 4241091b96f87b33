//! What is read from small files of our own in the three formats, and from anything at all.

use proptest::prelude::{any, prop, prop_oneof, proptest};
use proptest::strategy::{Just, Strategy};

use super::{ImportError, Kind, measured_by, read};
use crate::log::Class;
use crate::metrics::latency::{e2e_ns, effective_ttft_ns, itl_ns, ttft_ns};
use crate::metrics::lateness::lateness_ns;
use crate::metrics::{ReportOptions, report, tokens};
use crate::run::Run;

const MS: i64 = 1_000_000;

fn open(bytes: &[u8]) -> Result<Run, ImportError> {
    read(Kind::of(bytes).expect("a known beginning"), "file", bytes, &|_| true)
}

const AIPERF: &str = r#"{"metadata":{"session_num":0,"x_correlation_id":"c","conversation_id":"talk","turn_index":0,"request_start_ns":1000000000000,"request_end_ns":1000050000000,"credit_issued_ns":999998000000,"worker_id":"w","benchmark_phase":"profiling","was_cancelled":false},"metrics":{"time_to_first_token":{"value":20.0,"unit":"ms"},"request_latency":{"value":40.0,"unit":"ms"},"inter_chunk_latency":{"value":[12.0,8.0],"unit":"ms"},"input_sequence_length":{"value":120,"unit":"tokens"},"output_sequence_length":{"value":5,"unit":"tokens"},"usage_prompt_cache_read_tokens":{"value":64,"unit":"tokens"}},"error":null}

{"metadata":{"session_num":9,"request_start_ns":900000000000,"benchmark_phase":"warmup"},"metrics":{}}
{"metadata":{"session_num":1,"conversation_id":"talk","turn_index":1,"request_start_ns":1000100000000,"request_end_ns":1000130000000,"benchmark_phase":"profiling","was_cancelled":false},"metrics":{},"error":{"code":429,"type":"Too Many","message":"slow down"}}
{"metadata":{"session_num":2,"request_start_ns":1000200000000,"request_end_ns":1000230000000,"benchmark_phase":"profiling","was_cancelled":true},"metrics":{}}
"#;

#[test]
fn records_of_aiperf_become_a_run() {
    let run = open(AIPERF.as_bytes()).expect("a run");
    assert_eq!(run.requests.len(), 3, "without the warm-up");
    assert_eq!(ttft_ns(&run, 0), Some(20 * MS));
    assert_eq!(e2e_ns(&run, 0), Some(40 * MS));
    assert_eq!(itl_ns(&run, 0), Some(5e6), "20 ms over four gaps");
    assert_eq!(lateness_ns(&run, 0), Some(2 * MS));
    assert_eq!(tokens::prompt(&run, 0), Some(120));
    assert_eq!(run.requests.cached_tokens(0), Some(64));
    assert_eq!((run.session_name(0), run.session_name(1)), (Some("talk"), Some("talk")));
    assert_eq!(run.plan[1].turn, 1);
    assert_eq!(run.requests.class(1), Some(Class::Http429));
    assert_eq!(run.error_text(1), Some("Too Many: slow down"));
    assert_eq!(run.requests.class(2), Some(Class::CancelledByPlan));
    assert_eq!(lateness_ns(&run, 1), None, "no credit is told");
    assert_eq!(run.requests.first_byte(0), None);
    assert_eq!(run.started_unix_ns(), 1_000_000_000_000);
    assert_eq!(measured_by(&run), Some("AIPerf"));
    let verdict = report(&run, &ReportOptions::default()).verdict;
    assert!(!verdict.schedule_held && verdict.reasons[0].contains("nobody can tell"));
    assert!(run.warnings.iter().any(|words| words.starts_with("1 request of the warm-up is")));
}

#[test]
fn a_damaged_line_is_named() {
    let broken = AIPERF.replace("\"turn_index\":1", "\"turn_index\":-1");
    let error = open(broken.as_bytes()).expect_err("no turn is below zero");
    assert!(error.to_string().starts_with("line 4: not a record of AIPerf"), "{error}");
}

#[test]
fn a_detailed_result_of_vllm_bench_becomes_a_run() {
    let text = r#"{"date":"20260102-030405","endpoint_type":"openai","backend":"openai",
        "model_id":"m","num_prompts":2,"duration":2.0,"mean_ttft_ms":NaN,
        "input_lens":[10,20],"output_lens":[3,0],"ttfts":[0.5,0.0],
        "itls":[[0.25,0.25],[]],"start_times":[77.0,78.0],"queue_times":[0.001,0],
        "generated_texts":["a \"NaN\" b",""],"errors":["","HTTP 503 Service Unavailable"]}"#;
    let run = open(text.as_bytes()).expect("a run");
    assert_eq!(run.requests.len(), 2);
    assert_eq!(ttft_ns(&run, 0), Some(500 * MS));
    assert_eq!(e2e_ns(&run, 0), Some(1_000 * MS));
    assert_eq!(itl_ns(&run, 0), Some(250e6));
    assert_eq!(tokens::completion(&run, 0), Some(3));
    assert_eq!(run.requests.sent(1).map(|sent| sent.0), Some(1_000 * MS));
    assert_eq!(ttft_ns(&run, 1), None, "zero stands for nothing there");
    assert_eq!(run.requests.class(1), Some(Class::Http5xx));
    assert_eq!(run.manifest.model, "m");
    assert_eq!(run.started_unix_ns(), 1_767_323_043_000_000_000);
}

#[test]
fn a_time_that_is_no_number_moves_no_other() {
    let text = r#"{"backend":"openai","num_prompts":2,"start_times":[1.0,2.0],"queue_times":null,
        "ttfts":[0.5,0.5],"itls":[[0.25,NaN,0.25],[0.25,-1.0]],"latencies":[2.0,null]}"#;
    let run = open(text.as_bytes()).expect("a run");
    let times = |i: usize| run.chunks.row(i).iter().map(|one| one.time.0 / MS).collect::<Vec<_>>();
    assert_eq!(times(0), [500, 2_000], "the first, and the end that is told");
    assert_eq!(times(1), [1_500], "of the other no end is told");
    assert!(run.warnings.iter().any(|words| words.contains("are no numbers")));
    let broken = AIPERF.replace("[12.0,8.0]", "[12.0,null]");
    let run = open(broken.as_bytes()).expect("a run");
    let times = run.chunks.row(0).iter().map(|one| one.time.0 / MS).collect::<Vec<_>>();
    assert_eq!(times, [20, 40], "the first, and the latency that is told");
    assert!(run.warnings.iter().any(|words| words.contains("have no gaps")));
}

/// The last line of a tool that was killed, or that still writes.
#[test]
fn a_last_line_that_is_cut_is_left_out_and_told() {
    for (text, line, requests) in [(AIPERF, 5, 2), (TESTER, 4, 2)] {
        let cut = &text[..text.len() - 40];
        let run = open(cut.as_bytes()).expect("the lines before it are whole");
        assert_eq!(run.requests.len(), requests);
        let words = format!("the file ends within line {line}, which is left out");
        assert!(run.warnings.contains(&words), "{:?}", run.warnings);
        let damaged = format!("{cut}\n{text}");
        assert!(open(damaged.as_bytes()).is_err(), "amid a file it is damage");
    }
    let text = r#"{"backend":"openai","num_prompts":1,"ttfts":[],"itls":[]"#;
    let error = open(text.as_bytes()).expect_err("half of a document");
    assert!(error.to_string().ends_with("the file is cut off"), "{error}");
    let error = open(format!("{text}}}\n{text}}}").as_bytes()).expect_err("two documents");
    assert!(error.to_string().contains("--append-result"), "{error}");
}

#[test]
fn totals_alone_are_no_run() {
    let error = open(br#"{"backend":"openai","num_prompts":2}"#).expect_err("no lists");
    assert!(error.to_string().contains("--save-detailed"), "{error}");
}

#[test]
fn without_start_times_it_is_said() {
    let text = r#"{"backend":"openai","num_prompts":1,"input_lens":[1],"output_lens":[1],
        "ttfts":[0.5],"itls":[[]],"errors":[""]}"#;
    let run = open(text.as_bytes()).expect("a run");
    assert_eq!(ttft_ns(&run, 0), Some(500 * MS));
    assert_eq!(lateness_ns(&run, 0), None);
    assert!(run.warnings.iter().any(|words| words.contains("start_times")));
}

const TESTER: &str = "\
user_id,request_idx,trace_id,timestamp,request_type,input_tokens,output_tokens_expected,\
output_tokens_actual,cache_hit_blocks,cache_miss_blocks,ttft,ttlt,itl,delay_expected,delay_actual,\
success,error_message,queue_time,effective_ttft,request_start_time,prefill_complete_time,\
request_complete_time,token_timestamps,tokens_per_chunk
User-002,3,t,12.0,streaming,130,4,4,1,1,0.5,1.5,0.3,1.0,0.25,True,,0.25,0.75,11.0,11.5,12.5,\
\"[11.5, 12.0, 12.5]\",\"[1, 2, 1]\"
User-001,0,t,10.5,streaming,64,9,0,0,1,0,0.5,0,0.0,0.0,True,,0.0,0.0,10.0,10.0,10.5,[],[]
User-001,1,t,14.0,streaming,200,9,2,0,3,0.5,1,0,0.0,0.0,False,boom,0.0,0.0,13.0,13.5,14.0,[],[]
";

#[test]
fn results_of_the_trace_replay_tester_become_a_run() {
    let run = open(TESTER.as_bytes()).expect("a run");
    assert_eq!(run.session_name(0), Some("User-001"), "in order of sending");
    assert_eq!(ttft_ns(&run, 0), None, "a reply without tokens has none");
    assert_eq!(ttft_ns(&run, 1), Some(500 * MS));
    assert_eq!(effective_ttft_ns(&run, 1), Some(750 * MS));
    assert_eq!(e2e_ns(&run, 1), Some(1_500 * MS));
    assert_eq!(run.chunks.row(1).iter().map(|chunk| chunk.tokens).collect::<Vec<_>>(), [1, 2, 1]);
    assert_eq!(run.plan[1].ideal_set_tokens, Some(64), "two blocks of 64 fit, and no other size");
    assert_eq!(run.plan[1].turn, 3);
    assert_eq!(run.requests.class(2), Some(Class::FailedElsewhere));
    assert_eq!(run.error_text(2), Some("boom"));
    assert_eq!(e2e_ns(&run, 2), Some(1_000 * MS));
}

#[test]
fn a_wrong_cell_is_named() {
    let broken = TESTER.replace("13.0,13.5", "soon,13.5");
    let error = open(broken.as_bytes()).expect_err("no time");
    assert_eq!(error.to_string(), "line 4: request_start_time is \"soon\", not seconds since 1970");
}

#[test]
fn an_end_that_is_not_told_is_no_end_at_once() {
    let text = r#"{"metadata":{"request_start_ns":1000},"metrics":{}}
        {"metadata":{"request_start_ns":2000},"metrics":{},"error":{"message":"boom"}}"#;
    let run = open(text.as_bytes()).expect("a run");
    assert_eq!((run.requests.done(0), e2e_ns(&run, 0)), (None, None), "nobody knows");
    assert_eq!(run.requests.class(1), Some(Class::FailedElsewhere));
    let words = "1 failed request does not say when it ended";
    assert!(run.warnings.iter().any(|warning| warning.starts_with(words)), "{:?}", run.warnings);
}

#[test]
fn other_files_are_of_no_kind() {
    for text in ["", "{}", "a,b\n1,2\n", "{\"hello\": 1}", "user_id,request_idx\n", "\u{feff}"] {
        assert_eq!(Kind::of(text.as_bytes()), None, "{text:?}");
    }
}

#[test]
fn work_can_be_stopped() {
    let stopped = read(Kind::AiperfRecords, "file", AIPERF.as_bytes(), &|_| false);
    assert_eq!(stopped.map(|_| ()), Err(ImportError::Cancelled));
}

/// Numbers as files have them, and as they should not.
fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<f64>().prop_map(|number| number.to_string()),
        any::<i64>().prop_map(|number| number.to_string()),
        (0_u32..2_000).prop_map(|number| number.to_string()),
        Just("null".to_owned()),
        Just("[]".to_owned()),
    ]
}

/// A file is refused with words, or a run whose every number can be worked out.
fn refused_or_reported(kind: Kind, text: &str) {
    match read(kind, "f", text.as_bytes(), &|_| true) {
        Ok(run) => {
            let report = report(&run, &ReportOptions::default());
            assert_eq!(report.schedule.sent, 1);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

proptest! {
    /// Whatever the numbers are, the file is refused with words or is a run.
    #[test]
    fn no_number_breaks_it(numbers in prop::collection::vec(number(), 4), text in ".{0,60}") {
        let [a, b, c, d] = &numbers[..] else { unreachable!("four were made") };
        let aiperf = format!(
            "{{\"metadata\":{{\"request_start_ns\":{a},\"request_end_ns\":{b}}},\
             \"metrics\":{{\"time_to_first_token\":{{\"value\":{c},\"unit\":\"s\"}},\
             \"request_latency\":{{\"value\":{d}}}}}}}"
        );
        refused_or_reported(Kind::AiperfRecords, &aiperf);
        let bench = format!(
            "{{\"ttfts\":[{a}],\"itls\":[[{b}]],\"start_times\":[{c}],\"latencies\":[{d}]}}"
        );
        refused_or_reported(Kind::VllmBench, &bench);
        let tester = format!(
            "user_id,request_idx,request_start_time,queue_time,token_timestamps\n\
             {text},{a},{b},{c},\"[{d}, {a}]\"\n"
        );
        refused_or_reported(Kind::KvCacheTester, &tester);
    }
}
