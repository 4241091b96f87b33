//! The commands of AIPerf's own pages, on the rows of these pages: they run here as they stand, but
//! for their first word, the server's address and the file that the page leaves to its reader.
//! Those of kv-cache-tester's page are in `users`.
//!
//! What is asserted is what was asked of the server and that it answered, from the run's log; how
//! well the schedule held is the machine's business and not looked at.

mod users;

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use onbeat_shared::log::Class;
use onbeat_shared::run::Run;
use parquet::arrow::ArrowWriter;

use super::{MockProcess, text};

/// "Baseten Trace Replay", Command.
const BASETEN: &str = "aiperf profile \
  --model YOUR_MODEL \
  --url http://localhost:8000 \
  --endpoint-type completions \
  --input-file /path/to/trace.parquet \
  --custom-dataset-type baseten_trace \
  --fixed-schedule";

/// "Profile with Bailian Traces", Download and Profile.
const BAILIAN: &str = "aiperf profile \
    --model Qwen/Qwen3-0.6B \
    --endpoint-type chat \
    --streaming \
    --url localhost:8000 \
    --input-file bailian_short.jsonl \
    --custom-dataset-type bailian_trace \
    --fixed-schedule";

/// The same page's example entries.
const BAILIAN_ROWS: &str = r#"{"chat_id": 159, "parent_chat_id": -1, "timestamp": 61.114, "input_length": 521, "output_length": 132, "type": "text", "turn": 1}
{"chat_id": 160, "parent_chat_id": 159, "timestamp": 62.5, "input_length": 676, "output_length": 80, "type": "text", "turn": 2}
"#;

/// "Trace Replay with Mooncake Traces", Profile using a Custom Trace File.
const MOONCAKE: &str = "aiperf profile \
    --model Qwen/Qwen3-0.6B \
    --endpoint-type chat \
    --streaming \
    --url localhost:8000 \
    --input-file custom_trace.jsonl \
    --custom-dataset-type mooncake_trace \
    --fixed-schedule";

/// The same page's rows.
const MOONCAKE_ROWS: &str = r#"{"timestamp": 0, "input_length": 1200, "output_length": 52, "hash_ids": [0, 1, 2]}
{"timestamp": 105, "input_length": 1800, "output_length": 26, "hash_ids": [0, 3, 4, 5]}
{"timestamp": 274, "input_length": 1300, "output_length": 52, "hash_ids": [1, 4, 6]}
"#;

/// "Fixed Schedule Benchmarking", Time Window Execution.
const WINDOW: &str = "aiperf profile \
    --model Qwen/Qwen3-0.6B \
    --endpoint-type chat \
    --endpoint /v1/chat/completions \
    --streaming \
    --url localhost:8000 \
    --input-file precise_schedule.jsonl \
    --custom-dataset-type mooncake_trace \
    --fixed-schedule \
    --fixed-schedule-start-offset 2000 \
    --fixed-schedule-end-offset 4000";

/// The same page's rows.
const WINDOW_ROWS: &str = r#"{"timestamp": 0, "input_length": 100, "hash_ids": [3001]}
{"timestamp": 500, "input_length": 200, "hash_ids": [3002]}
{"timestamp": 750, "input_length": 150, "hash_ids": [3003]}
{"timestamp": 1000, "input_length": 300, "hash_ids": [3004]}
{"timestamp": 1250, "input_length": 180, "hash_ids": [3005]}
{"timestamp": 2000, "input_length": 400, "hash_ids": [3006]}
{"timestamp": 2500, "input_length": 250, "hash_ids": [3007]}
{"timestamp": 3000, "input_length": 350, "hash_ids": [3008]}
{"timestamp": 4000, "input_length": 500, "hash_ids": [3009]}
{"timestamp": 5000, "input_length": 600, "hash_ids": [3010, 3050]}
"#;

/// A page's command in a folder, with another first word, server and file.
fn typed(folder: &Path, command: &str, first: &[&str], url: &str) -> Output {
    // The page's first word is the program; with another subcommand, `profile` goes too.
    let words = command.split_whitespace().skip(first.len()).map(|word| match word {
        "localhost:8000" | "http://localhost:8000" => url,
        "/path/to/trace.parquet" => "trace.parquet",
        word => word,
    });
    Command::new(env!("CARGO_BIN_EXE_onbeat"))
        .args(first.iter().skip(1))
        .args(words)
        .current_dir(folder)
        .env_remove("OPENAI_API_KEY")
        .stdin(Stdio::null())
        .output()
        .expect("the binary was built")
}

/// Runs a page's command against a mock; returns the log of the run, in which all went well.
fn carried_out(folder: &Path, command: &str) -> Run {
    let mock = MockProcess::start();
    let output = typed(folder, command, &["onbeat"], &mock.url);
    let code = output.status.code();
    // 3: the machine was too busy for the schedule.
    assert!(matches!(code, Some(0 | 3)), "{code:?}: {}", text(&output.stderr));
    let logs = std::fs::read_dir(folder).expect("a folder");
    let mut logs = logs.map(|entry| entry.expect("an entry").path());
    let log = logs.find(|path| path.extension().is_some_and(|end| end == "beat"));
    let bytes = std::fs::read(log.expect("the run left a log")).expect("readable");
    let run = Run::read(&bytes).expect("the log reads back");
    for request in 0..run.plan.len() {
        assert_eq!(run.requests.class(request), Some(Class::Ok), "request {request}");
    }
    run
}

/// Due time in milliseconds (`None`: its own time does not count), session, input, most and least
/// output tokens of each request.
type Row = (Option<i64>, u32, Option<u32>, Option<u32>, Option<u32>);

fn rows(run: &Run) -> Vec<Row> {
    let due_ms = |due: i64| due / 1_000_000;
    let row = |row: &onbeat_shared::log::plan_row::PlanRow| {
        let due = row.due.map(|due| due_ms(due.0));
        (due, row.session.0, row.input_tokens, row.max_tokens, row.min_tokens)
    };
    run.plan.iter().map(row).collect()
}

/// Two turns of a session, a request of its own, and one that was cancelled before its first token.
fn baseten(path: &Path) {
    let start = 1_760_000_000_000;
    let at: ArrayRef =
        Arc::new(Int64Array::from_iter_values([0, 40, 90, 150].map(|ms| start + ms)));
    let prompts = ["Alpha one", "Beta \"two\"", "Alpha one and more", "Gamma\n"];
    let columns: [(&str, ArrayRef); 7] = [
        ("timestamp_start_unix_ms", at),
        ("prompt", Arc::new(StringArray::from_iter_values(prompts))),
        ("input_tokens", Arc::new(Int64Array::from_iter_values([2, 4, 4, 2]))),
        ("output_tokens", Arc::new(Int64Array::from_iter_values([5, 3, 2, 0]))),
        (
            "provided_session_id",
            Arc::new(StringArray::from(vec![Some("a"), Some("b"), Some("a"), None])),
        ),
        ("block_size", Arc::new(Int64Array::from_iter_values([64; 4]))),
        ("duration_e2e_ms", Arc::new(Int64Array::from_iter_values([30, 30, 30, 10]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let file = std::fs::File::create(path).expect("the folder is writable");
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).expect("a writer");
    writer.write(&batch).expect("written");
    writer.close().expect("closed");
}

#[test]
fn the_baseten_pages_command_runs_as_it_stands() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    baseten(&folder.path().join("trace.parquet"));
    let run = carried_out(folder.path(), BASETEN);
    let expected = [
        (Some(0), 0, Some(2), Some(5), Some(5)),
        (Some(40), 1, Some(4), Some(3), Some(3)),
        (Some(90), 0, Some(4), Some(2), Some(2)),
        (Some(150), 2, Some(2), Some(1), Some(1)),
    ];
    assert_eq!(rows(&run), expected);
}

#[test]
fn the_bailian_pages_command_runs_as_it_stands() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("bailian_short.jsonl");
    std::fs::write(path, BAILIAN_ROWS).expect("the folder is writable");
    let run = carried_out(folder.path(), BAILIAN);
    let expected =
        [(Some(0), 0, Some(521), Some(132), None), (Some(1_386), 0, Some(676), Some(80), None)];
    assert_eq!(rows(&run), expected);
    assert_eq!(run.plan[1].after.map(|after| after.0), Some(0), "a turn follows its parent");
}

#[test]
fn the_mooncake_pages_command_runs_as_it_stands() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("custom_trace.jsonl");
    std::fs::write(path, MOONCAKE_ROWS).expect("the folder is writable");
    let run = carried_out(folder.path(), MOONCAKE);
    let expected = [
        (Some(0), 0, Some(1200), Some(52), None),
        (Some(105), 1, Some(1800), Some(26), None),
        (Some(274), 2, Some(1300), Some(52), None),
    ];
    assert_eq!(rows(&run), expected);
}

/// What a page's command plans, with more options: each request's due time in milliseconds.
fn planned(folder: &Path, command: &str, more: &str) -> (Vec<Option<f64>>, String) {
    let command = format!("{command} {more}");
    let output = typed(folder, &command, &["onbeat", "plan"], "localhost:8000");
    let told = text(&output.stderr);
    assert!(output.status.success(), "{more}: {told}");
    let due = |line: &str| {
        let row: serde_json::Value = serde_json::from_str(line).expect("JSON");
        row["due_ns"].as_f64().map(|due| due / 1e6)
    };
    (text(&output.stdout).lines().map(due).collect(), told)
}

#[test]
fn a_window_is_the_one_of_the_fixed_schedules_page() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("precise_schedule.jsonl");
    std::fs::write(path, WINDOW_ROWS).expect("the folder is writable");
    let (dues, _) = planned(folder.path(), WINDOW, "");
    assert_eq!(dues, [0.0, 500.0, 1_000.0, 2_000.0].map(Some));
}

#[test]
fn every_option_of_the_baseten_page_shows_in_the_plan() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    baseten(&folder.path().join("trace.parquet"));
    let dues = |more: &str| planned(folder.path(), BASETEN, more).0;
    let recorded = [0.0, 40.0, 90.0, 150.0].map(Some);
    for unmoved in [
        "",
        "--open-loop-replay",
        "--open-loop-strict",
        "--omit-kv-hints",
        "--force-min-tokens",
        "--no-force-min-tokens",
        "--trace-session-sample-ratio 1",
        "--endpoint /v2/complete",
        "--use-legacy-max-tokens",
    ] {
        assert_eq!(dues(unmoved), recorded, "{unmoved}");
    }
    assert_eq!(dues("--replay-speedup 10"), [0.0, 4.0, 9.0, 15.0].map(Some));
    let capped = "--max-idle-gap-cap-seconds 0.045";
    assert_eq!(dues(capped), [0.0, 40.0, 85.0, 130.0].map(Some));
    let closed = "--no-open-loop-replay --inter-turn-delay-cap-seconds 0.01";
    assert_eq!(dues(closed), [Some(0.0), Some(40.0), None, Some(150.0)]);
    let sampled =
        |seed: u32| dues(&format!("--trace-session-sample-ratio 0.5 --random-seed {seed}")).len();
    let kept = [1, 2, 3].map(sampled);
    assert!(kept.iter().all(|count| (1..=4).contains(count)), "{kept:?}");
    assert!(kept.iter().any(|&count| count < 4), "{kept:?}");
}

#[test]
fn options_that_change_nothing_here_are_taken_and_told_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("custom_trace.jsonl");
    std::fs::write(path, MOONCAKE_ROWS).expect("the folder is writable");
    let more = "--tokenizer gpt2 --ui dashboard --artifact-dir out/runs --workers-max 4 \
                --no-gpu-telemetry --no-server-metrics --use-server-token-count \
                --export-http-trace --per-chunk-usage --benchmark-grace-period 30 \
                --profile-export-prefix mine --prompt-corpus coding -v \
                --dataset-sampling-strategy sequential --concurrency 64 \
                --server-metrics localhost:8000/metrics";
    let (dues, _) = planned(folder.path(), MOONCAKE, more);
    assert_eq!(dues.len(), 3);
    let mock = MockProcess::start();
    let command = format!("{MOONCAKE} {more}");
    let output = typed(folder.path(), &command, &["onbeat"], &mock.url);
    let told = text(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{told}");
    assert_eq!(told.matches("--tokenizer").count(), 1, "{told}");
    assert_eq!(told.matches("--no-gpu-telemetry").count(), 1, "{told}");
    assert_eq!(told.matches("--benchmark-grace-period").count(), 1, "{told}");
    assert!(text(&output.stdout).contains("Formulas"), "-v shows every metric with its formula");
    let logs = std::fs::read_dir(folder.path().join("out/runs")).expect("it was created");
    assert!(logs.count() > 0, "the log is in the folder that was named");
}
