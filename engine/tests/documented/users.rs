//! The example commands of kv-cache-tester's page "Trace Replay Tester", on small conversations of
//! our own: they run here as they stand, but for their first words, the server's address and how
//! long they last.
//!
//! What is asserted is what was sent, that it was answered, and which files there are afterwards;
//! what the numbers in them are depends on the machine and is not looked at.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use onbeat_shared::log::Class;
use onbeat_shared::run::Run;

use super::{MockProcess, text};

/// Quick Start.
const QUICK_START: &str = r"python trace_replay_tester.py \
    --api-endpoint http://localhost:8000 \
    --trace-directory ../traces \
    --output-dir ./results \
    --start-users 5 \
    --max-users 50 \
    --max-ttft 2.0 \
    --test-duration 300";

/// Timing Strategies: a server five times as fast as the recorded one.
const TIMING: &str = r"python trace_replay_tester.py \
    --api-endpoint http://localhost:8000 \
    --trace-directory ./traces \
    --output-dir ./results \
    --timing-strategy api-scaled \
    --api-time-scale 0.2";

/// Basic Test.
const BASIC: &str = r"python trace_replay_tester.py \
    --api-endpoint http://localhost:8000 \
    --trace-directory ../traces \
    --output-dir ./results \
    --test-duration 300";

/// Production Capacity Test.
const CAPACITY: &str = r"python trace_replay_tester.py \
    --api-endpoint http://localhost:8000 \
    --trace-directory ../traces \
    --output-dir ./capacity_test \
    --start-users 10 \
    --max-users 100 \
    --max-ttft 2.0 \
    --ttft-metric p95 \
    --max-new-tokens-per-period 1000000 \
    --test-duration 1800 \
    --recycle \
    --seed 42";

/// Test with Warm Prefix, the default of one half.
const WARM: &str = r"python trace_replay_tester.py \
    --api-endpoint http://localhost:8000 \
    --trace-directory new_traces/full_64_split1day_normalized \
    --output-dir ./warm_test \
    --start-users 5 \
    --warm-prefix-pct 0.5";

/// Test with Warm Prefix, disabled.
const COLD: &str = r"python trace_replay_tester.py \
    --api-endpoint http://localhost:8000 \
    --trace-directory new_traces/full_64_split1day_normalized \
    --output-dir ./no_warm_test \
    --warm-prefix-pct 0";

/// Strict Admission Control.
const STRICT: &str = r"python trace_replay_tester.py \
    --api-endpoint http://localhost:8000 \
    --trace-directory ../traces \
    --output-dir ./admission_test \
    --max-concurrent-requests 20 \
    --max-users 50 \
    --test-duration 600";

/// What the page says is left in the output folder; a page of graphs among it.
const FILES: [&str; 6] = [
    "summary_trace_replay.csv",
    "detailed_results.csv",
    "user_lifecycle.csv",
    "test_metadata.json",
    "progress.json",
    "index.html",
];

/// A folder in which the page's commands find their traces, and the one they are typed in.
struct Place {
    _folder: tempfile::TempDir,
    here: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let here = folder.path().join("kv-cache-tester");
        let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conversations");
        for traces in ["traces", "../traces", "new_traces/full_64_split1day_normalized"] {
            std::fs::create_dir_all(&here).expect("the folder is writable");
            let traces = here.join(traces);
            std::fs::create_dir_all(&traces).expect("the folder is writable");
            for file in std::fs::read_dir(&ours).expect("they are in the repository") {
                let file = file.expect("an entry");
                std::fs::copy(file.path(), traces.join(file.file_name())).expect("copied");
            }
        }
        Self { _folder: folder, here }
    }

    /// Types a page's command with more options; the test's duration is the seconds given.
    fn typed(&self, command: &str, url: &str, seconds: &str, more: &str) -> Output {
        let mut words: Vec<&str> =
            command.split_whitespace().filter(|&word| word != "\\").skip(2).collect();
        for at in 1..words.len() {
            match words[at - 1] {
                "--api-endpoint" => words[at] = url,
                "--test-duration" => words[at] = seconds,
                _ => {}
            }
        }
        Command::new(env!("CARGO_BIN_EXE_onbeat"))
            .arg("replay")
            .args(words)
            .args(more.split_whitespace())
            .current_dir(&self.here)
            .env_remove("OPENAI_API_KEY")
            .stdin(Stdio::null())
            .output()
            .expect("the binary was built")
    }

    /// Runs a page's command against a mock; returns the log of the run, in which all that ended
    /// by itself went well, and what was printed.
    fn carried_out(&self, command: &str, more: &str) -> (Run, String, String) {
        let mock = MockProcess::start();
        let output = self.typed(command, &mock.url, "3", more);
        let code = output.status.code();
        let (said, told) = (text(&output.stdout), text(&output.stderr));
        // 3: the machine was too busy for the schedule.
        assert!(matches!(code, Some(0 | 3)), "{code:?}: {told}\n{said}");
        let folder = command.split_whitespace().skip_while(|&word| word != "--output-dir").nth(1);
        let folder = self.here.join(folder.expect("each names one"));
        for file in FILES {
            let size = std::fs::metadata(folder.join(file)).map(|facts| facts.len());
            assert!(size.is_ok_and(|size| size > 0), "{file} is in the folder: {told}");
        }
        let logs = std::fs::read_dir(&folder).expect("it was made");
        let mut logs = logs.map(|entry| entry.expect("an entry").path());
        let log = logs.find(|path| path.extension().is_some_and(|end| end == "beat"));
        let bytes = std::fs::read(log.expect("the run left a log")).expect("readable");
        let run = Run::read(&bytes).expect("the log reads back");
        assert!(!run.plan.is_empty(), "something was sent: {told}");
        for request in 0..run.plan.len() {
            // Those under way when the time is up are not waited for without end.
            let fine = matches!(run.requests.class(request), Some(Class::Ok | Class::CutAtEnd));
            assert!(fine, "request {request}: {:?}", run.requests.class(request));
        }
        (run, said, told)
    }
}

/// The names of sessions that sent something.
fn senders(run: &Run) -> Vec<String> {
    let users = run.users.as_ref().expect("users replayed it");
    users.users.iter().map(|user| user.name.clone()).collect()
}

#[test]
fn the_quick_start_runs_as_it_stands() {
    let (run, said, _) = Place::new().carried_out(QUICK_START, "");
    let names = senders(&run);
    for name in ["User-001", "User-002", "User-005"] {
        assert!(names.iter().any(|found| found == name), "{names:?}");
    }
    assert!(!names.iter().any(|name| name == "User-006"), "nobody was added: {names:?}");
    assert!(said.contains("TTFT met"), "{said}");
}

#[test]
fn the_timing_example_runs_as_it_stands() {
    let (run, _, told) = Place::new().carried_out(TIMING, "");
    assert_eq!(senders(&run)[0], "User-001");
    assert!(!told.contains("changes nothing"), "{told}");
}

#[test]
fn the_basic_test_runs_as_it_stands() {
    let (run, _, _) = Place::new().carried_out(BASIC, "");
    assert_eq!(senders(&run)[0], "User-001");
}

#[test]
fn the_capacity_test_runs_as_it_stands() {
    let (run, _, _) = Place::new().carried_out(CAPACITY, "");
    assert!(senders(&run).iter().any(|name| name == "User-010"), "{:?}", senders(&run));
}

#[test]
fn the_warm_prefix_tests_run_as_they_stand() {
    let place = Place::new();
    place.carried_out(WARM, "");
    place.carried_out(COLD, "");
}

#[test]
fn strict_admission_runs_as_it_stands() {
    Place::new().carried_out(STRICT, "");
}

#[test]
fn every_other_option_of_the_page_is_taken() {
    let more = "--min-output-tokens-per-req 1 --max-working-set-tokens 900000 --min-requests 2 \
                --max-context 128000 --max-delay 60.0 --time-scale 0.5 --assessment-period 1 \
                --max-prefill-concurrent 10 --max-decode-concurrent 20 --itpm-budget 100000000 \
                --otpm-budget 10000000 --enable-request-rate-limiting --temperature 0.7 \
                --top-p 0.8 --top-k 20 --repetition-penalty 1.05 \
                --tokenizer Qwen/Qwen2.5-Coder-32B-Instruct --chunk-size 64 --seed 7 --verbose \
                --skip-graphs --advance-min 0.3 --advance-max 0.6 --advance-all-users \
                --trace-seed 3 --slo-ttft 5.0 --slo-decode-tps 30 --no-color --prompt-seed 4 \
                --fairness-window 60 --rate-limit-backoff 30";
    let place = Place::new();
    let mock = MockProcess::start();
    let output = place.typed(BASIC, &mock.url, "3", more);
    let told = text(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{told}");
    for said_once in ["--tokenizer", "--fairness-window", "--rate-limit-backoff"] {
        assert_eq!(told.matches(said_once).count(), 1, "{said_once}: {told}");
    }
    assert!(told.contains("exact word prompts are used instead"), "{told}");
    assert_eq!(told.matches("changes nothing").count(), 3, "{told}");
    let page = place.here.join("results/index.html");
    assert!(!page.exists(), "--skip-graphs");
}

#[test]
fn options_of_users_and_of_a_schedule_are_told_where_the_other_is_meant() {
    let place = Place::new();
    let mock = MockProcess::start();
    let schedule = "--replay-speedup 20 --fixed-schedule --warmup-request-count 1 --max-osl 5";
    let output = place.typed(BASIC, &mock.url, "3", schedule);
    let told = text(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{told}");
    let words = "--replay-speedup, --fixed-schedule, --warmup-request-count change nothing: users";
    assert!(
        told.contains(words) && told.contains("--max-osl changes nothing: it is for"),
        "{told}"
    );
    let rows = "{\"timestamp\":0,\"input_length\":20,\"output_length\":2}\n";
    std::fs::write(place.here.join("rows.jsonl"), rows).expect("the folder is writable");
    let users = "python trace_replay_tester.py rows.jsonl --api-endpoint x --output-dir out \
                 --max-users 50 --recycle --fairness-window 60";
    let output = place.typed(users, &mock.url, "3", "");
    let told = text(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{told}");
    let words = "--max-users, --recycle, --fairness-window change nothing: users replay agentic \
                 traces, and this is mooncake_trace";
    assert!(told.contains(words), "{told}");
    assert_eq!(told.matches("change nothing").count(), 1, "{told}");
    let left = std::fs::read_dir(place.here.join("out")).expect("it was made").count();
    assert_eq!(left, 1, "the log, and none of the tool's files");
}
