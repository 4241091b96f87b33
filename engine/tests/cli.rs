//! The real binary: exit codes, help, pipes, signals, and what a killed run leaves behind.

mod canaries;
mod documented;
mod gating;
mod trust;
mod unread;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use onbeat_shared::log::Class;
use onbeat_shared::run::Run;

fn onbeat(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onbeat"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the binary was built")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A mock in a process of its own; ends when dropped.
struct MockProcess {
    child: Child,
    url: String,
}

impl MockProcess {
    fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_onbeat"))
            .args(["mock", "--port", "0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary was built");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("the mock says where it listens");
        let url = line.trim().rsplit(' ').next().expect("a URL").to_owned();
        assert!(url.starts_with("http://127.0.0.1:"), "{line}");
        Self { child, url }
    }
}

impl Drop for MockProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn write_trace(folder: &Path, rows: usize, gap_ms: usize) -> String {
    let trace: String = (0..rows)
        .map(|row| {
            format!(
                "{{\"timestamp\":{},\"input_length\":20,\"output_length\":4,\"hash_ids\":[{row}]}}\n",
                row * gap_ms
            )
        })
        .collect();
    let path = folder.join("trace.jsonl");
    std::fs::write(&path, trace).expect("the folder is writable");
    path.to_string_lossy().into_owned()
}

fn replay(folder: &Path, url: &str, trace: &str) -> (Child, std::path::PathBuf) {
    replay_with(folder, url, trace, &[])
}

fn replay_with(
    folder: &Path,
    url: &str,
    trace: &str,
    more: &[&str],
) -> (Child, std::path::PathBuf) {
    let log = folder.join("run.beat");
    let child = Command::new(env!("CARGO_BIN_EXE_onbeat"))
        .args(["replay", trace, "--url", url, "--ui", "simple", "--output"])
        .arg(&log)
        .args(more)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built");
    (child, log)
}

/// Waits until the progress line says that requests have left.
fn wait_until_sending(child: &mut Child) -> BufReader<std::process::ChildStderr> {
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    loop {
        line.clear();
        let read = stderr.read_line(&mut line).expect("progress is text");
        assert!(read > 0, "the run ended before it sent anything");
        if line.contains("sent ") && !line.contains("sent 0/") {
            return stderr;
        }
    }
}

#[test]
fn help_names_every_subcommand_and_succeeds() {
    let help = onbeat(&["--help"]);
    assert!(help.status.success());
    let words = text(&help.stdout);
    for name in ["replay", "plan", "inspect", "report", "compare", "export", "mock", "demo"] {
        assert!(words.contains(name), "{name} is missing from:\n{words}");
    }
}

#[test]
fn wrong_usage_is_two_and_wrong_input_is_one() {
    assert_eq!(onbeat(&["replay", "--no-such-flag"]).status.code(), Some(2));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = write_trace(folder.path(), 1, 1);
    let wrong_url = onbeat(&["replay", &trace, "--url", "ftp://x"]);
    assert_eq!(wrong_url.status.code(), Some(2), "{}", text(&wrong_url.stderr));
    std::fs::write(&trace, "{\"timestamp\": \"soon\"}\n").expect("writable");
    let wrong_row = onbeat(&["plan", &trace]);
    assert_eq!(wrong_row.status.code(), Some(1));
    let words = text(&wrong_row.stderr);
    assert!(words.contains("trace.jsonl") && words.contains('1'), "{words}");
    assert!(wrong_row.stdout.is_empty(), "stdout carries only what was asked for");
}

#[test]
fn an_input_that_is_not_there_comes_with_the_next_step() {
    let words = [
        &["inspect", "none.jsonl"][..],
        &["plan", "none.parquet"],
        &["report", "none.beat"],
        &["merge", "none.beat", "no.beat", "-o", "merged.beat"],
        &["compare", "none.beat", "no.beat"],
        &["export", "none.beat", "--table", "requests"],
    ];
    for arguments in words {
        let said = text(&onbeat(arguments).stderr);
        assert!(said.contains("could not") && said.contains("none."), "{said}");
        assert!(said.contains("check the name"), "{arguments:?}: {said}");
    }
}

#[test]
fn a_closed_pipe_is_success() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = write_trace(folder.path(), 20_000, 1);
    let mut child = Command::new(env!("CARGO_BIN_EXE_onbeat"))
        .args(["plan", &trace])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built");
    let mut first = [0; 16];
    child.stdout.take().expect("piped").read_exact(&mut first).expect("a line");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn an_interrupted_run_keeps_what_it_has_and_says_130() {
    let mock = MockProcess::start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = write_trace(folder.path(), 100_000, 10);
    let (mut child, log) = replay(folder.path(), &mock.url, &trace);
    let _progress = wait_until_sending(&mut child);
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("stopped by the user"), "{}", text(&output.stdout));
    let run = Run::read(&std::fs::read(log).expect("a log")).expect("it reads");
    assert!(run.is_whole());
    let of = |class| (0..run.plan.len()).filter(|&i| run.requests.class(i) == Some(class)).count();
    assert!(of(Class::Ok) > 0);
    assert_eq!(of(Class::Ok) + of(Class::NotReached) + of(Class::Interrupted), 100_000);
}

#[test]
fn a_stage_of_loading_that_goes_on_is_not_waited_for() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = write_trace(folder.path(), 10, 1);
    // Reading certificates from a pipe that nobody writes to never ends.
    let authorities = folder.path().join("authorities.pem");
    let made = Command::new("mkfifo").arg(&authorities).status().expect("every system has it");
    assert!(made.success());
    let cacert = authorities.to_string_lossy().into_owned();
    let url = "https://127.0.0.1:9";
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        let (child, log) = replay_with(folder.path(), url, &trace, &["--cacert", &cacert]);
        let id = rustix::process::Pid::from_child(&child);
        wait_until_it_listens(child.id());
        rustix::process::kill_process(id, signal).expect("it runs");
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
        let words = text(&output.stderr);
        assert!(words.ends_with("onbeat: stopped before anything was sent\n"), "{words}");
        assert!(output.stdout.is_empty() && !log.exists(), "nothing is left behind");
    }
}

#[test]
fn a_log_that_has_not_begun_goes_along_with_the_program() {
    let mock = MockProcess::start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = write_trace(folder.path(), 10, 1);
    // Who is asked for metrics over TLS and says nothing is waited for, when the log is there.
    let silent = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port on loopback");
    let url = format!("https://{}", silent.local_addr().expect("it is bound"));
    let more = ["--scrape", &url, "--insecure", "--force"];
    let files = || std::fs::read_dir(folder.path()).expect("a folder").count();
    for earlier in [None, Some("precious")] {
        let log = folder.path().join("run.beat");
        earlier.iter().for_each(|words| std::fs::write(&log, words).expect("writable"));
        let before = files();
        let (child, _) = replay_with(folder.path(), &mock.url, &trace, &more);
        let (_kept_open, _) = silent.accept().expect("it connects");
        assert_eq!(files(), before + 1, "the new log");
        let id = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(id, rustix::process::Signal::INT).expect("it runs");
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
        assert_eq!(files(), before, "nothing half-written is left");
        assert_eq!(std::fs::read_to_string(&log).ok().as_deref(), earlier);
    }
}

/// Waits until a replay has a thread for signals.
fn wait_until_it_listens(process: u32) {
    let has_it = || {
        let threads = std::fs::read_dir(format!("/proc/{process}/task")).expect("it runs");
        threads.flatten().any(|thread| {
            let name = std::fs::read_to_string(thread.path().join("comm"));
            name.is_ok_and(|name| name.trim() == "onbeat-signals")
        })
    };
    while !has_it() {
        std::thread::yield_now();
    }
}

#[test]
fn final_numbers_stay_as_long_as_is_wanted_or_until_a_signal() {
    let mock = MockProcess::start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = write_trace(folder.path(), 3, 1);
    let more = ["--prometheus-port", "0", "--prometheus-linger-seconds", "600"];
    let (mut child, log) = replay_with(folder.path(), &mock.url, &trace, &more);
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    while !line.contains("final numbers stay at http://") {
        line.clear();
        assert!(stderr.read_line(&mut line).expect("text") > 0, "the command ended");
    }
    let address = line.split_once("http://").and_then(|(_, rest)| rest.split('/').next());
    let mut stream = std::net::TcpStream::connect(address.expect("an address")).expect("served");
    std::io::Write::write_all(&mut stream, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        .expect("it is read");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("text");
    assert!(page.contains("\nonbeat_run_finished 1\n"), "{page}");
    assert!(page.contains("\nonbeat_requests_sent_total 3\n"), "{page}");
    assert!(Run::read(&std::fs::read(log).expect("a log")).expect("it reads").is_whole());
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    // A debug build on a busy machine may miss its schedule: that is exit code 3.
    assert!([Some(0), Some(3)].contains(&output.status.code()), "{:?}", output.status);
    assert!(text(&output.stdout).contains("The run is in "), "{}", text(&output.stdout));
}

#[test]
fn a_killed_run_leaves_a_log_that_lacks_at_most_its_last_second() {
    let mock = MockProcess::start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = write_trace(folder.path(), 100_000, 10);
    let (mut child, log) = replay(folder.path(), &mock.url, &trace);
    let mut progress = wait_until_sending(&mut child);
    // Lines come two seconds apart: what one says was sent must be on disk when the next is there,
    // however little of the processor the run was given in between.
    let mut said = String::new();
    progress.read_line(&mut said).expect("progress is text");
    progress.read_line(&mut String::new()).expect("progress is text");
    child.kill().expect("it runs");
    let _ = child.wait();
    let sent: usize = said
        .split_once("sent ")
        .and_then(|(_, rest)| rest.split('/').next())
        .and_then(|count| count.parse().ok())
        .expect("the line counts");
    let run = Run::read(&std::fs::read(log).expect("a log")).expect("it reads");
    assert!(!run.is_whole(), "there is no footer");
    let kept = (0..run.plan.len()).filter(|&i| run.requests.was_sent(i)).count();
    assert!(kept >= sent, "{kept} of {sent} requests are in the log two seconds later");
}

#[test]
fn the_demo_does_the_whole_job() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = folder.path().join("demo.beat");
    let output = onbeat(&["demo", "--output", &log.to_string_lossy()]);
    let words = text(&output.stdout);
    // A debug build on a busy machine may miss its schedule: that is exit code 3 and said.
    assert!([Some(0), Some(3)].contains(&output.status.code()), "{}", text(&output.stderr));
    assert!(words.contains("onbeat-viewer"), "it says how to look at the run:\n{words}");
    let run = Run::read(&std::fs::read(log).expect("a log")).expect("it reads");
    assert!(run.is_whole());
    assert!(run.plan.len() >= 200, "a few hundred requests");
    for i in 0..run.plan.len() {
        assert_eq!(run.requests.class(i), Some(Class::Ok), "request {i}");
        assert_eq!(run.requests.prompt_tokens(i), run.plan[i].input_tokens);
    }
    let cached = (0..run.plan.len()).filter_map(|i| run.requests.cached_tokens(i)).max();
    assert!(cached > Some(0), "the trace shares prefixes");
}

#[test]
fn a_pause_of_the_process_is_a_host_stall_however_it_waits() {
    let mock = MockProcess::start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = write_trace(folder.path(), 100_000, 10);
    for pacing in ["spin", "hybrid", "sleep"] {
        let (mut child, log) =
            replay_with(folder.path(), &mock.url, &trace, &["--force", "--pacing", pacing]);
        let _progress = wait_until_sending(&mut child);
        let id = child.id();
        let paused = Command::new("sh")
            .args(["-c", &format!("kill -STOP {id}; sleep 0.2; kill -CONT {id}; kill -INT {id}")])
            .status()
            .expect("a shell");
        assert!(paused.success());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
        let run = Run::read(&std::fs::read(log).expect("a log")).expect("it reads");
        let longest = run.stalls.all().iter().map(|stall| stall.length_ns).max();
        assert!(longest > Some(150_000_000), "{pacing}: {longest:?}");
    }
}

#[test]
fn a_limit_on_file_sizes_is_an_error_of_the_log_and_not_the_end() {
    let mock = MockProcess::start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = write_trace(folder.path(), 300, 1);
    let log = folder.path().join("run.beat");
    // Room for what comes before zero, not for the records.
    let output = Command::new("sh")
        .args(["-c", "ulimit -f 120; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_onbeat")])
        .args(["replay", &trace, "--url", &mock.url, "--output"])
        .arg(&log)
        .stdin(Stdio::null())
        .output()
        .expect("a shell");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("incomplete"), "{}", text(&output.stderr));
    let run = Run::read(&std::fs::read(log).expect("a log")).expect("what was written reads");
    assert!(!run.is_whole() && run.plan.len() == 300);
}

#[test]
fn a_long_hole_is_told_and_a_stop_in_it_ends_the_run() {
    let mock = MockProcess::start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = write_trace(folder.path(), 2, 32_400_000);
    let (mut child, log) = replay(folder.path(), &mock.url, &trace);
    let mut progress = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    while !(line.contains("sent 1/2") && line.contains("next send in") && line.contains(" h ")) {
        line.clear();
        assert!(progress.read_line(&mut line).expect("text") > 0, "the run ended before that");
    }
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stdout));
    let run = Run::read(&std::fs::read(log).expect("a log")).expect("it reads");
    let classes: Vec<_> = (0..2).map(|i| run.requests.class(i)).collect();
    assert_eq!(classes, [Some(Class::Ok), Some(Class::NotReached)]);
}

#[test]
fn a_server_that_refuses_a_member_is_quoted_with_the_option_that_leaves_it_out() {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port on loopback");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    std::thread::Builder::new()
        .name("refusing".to_owned())
        .spawn(move || {
            let body = "{\"error\":{\"message\":\"Unrecognized request argument: stream_options\"}}";
            let answer = format!(
                "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\n\
                 Content-Length: {}\r\n\r\n{body}",
                body.len()
            );
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                // A request is here whole; a connection that carries none ends by itself.
                if stream.read(&mut [0; 65_536]).is_ok_and(|read| read > 0) {
                    let _ = std::io::Write::write_all(&mut stream, answer.as_bytes());
                }
            }
        })
        .expect("a thread");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = write_trace(folder.path(), 1, 1);
    let more = ["--warm-connections", "1", "--max-connections", "1"];
    let (child, _) = replay_with(folder.path(), &url, &trace, &more);
    let output = child.wait_with_output().expect("it ends");
    let words = text(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{words}");
    let flat = words.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("HTTP 400: Unrecognized request argument: stream_options"), "{words}");
    assert!(flat.contains("the server does not take stream_options: try --no-include-usage"));
}

#[test]
fn fewer_connections_before_the_start_than_were_asked_for_are_told() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mock = MockProcess::start();
    let trace = write_trace(folder.path(), 2, 1);
    for (limit, more, told) in [
        (
            90,
            "",
            "--warm-connections 40: 26 connections before the start, because the limit on open \
             files leaves room for no more; to raise it: sudo prlimit --nofile=104:104 --pid $$",
        ),
        (
            200,
            "--max-connections 3",
            "--warm-connections 40: 3 connections before the start, because --max-connections 3 \
             allows no more; raise it to 40",
        ),
        (200, "--max-connections 40", ""),
    ] {
        let output = Command::new("sh")
            .arg("-c")
            .arg(format!("ulimit -n {limit}; exec \"$@\" {more}"))
            .args(["sh", env!("CARGO_BIN_EXE_onbeat"), "replay", &trace, "--url", &mock.url])
            .args(["--ui", "simple", "--cores", "1", "--warm-connections", "40", "--force"])
            .arg("--output")
            .arg(folder.path().join("run.beat"))
            .output()
            .expect("a shell");
        let words = text(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 3)), "{words}");
        let line = words.lines().find(|line| line.contains("--warm-connections")).unwrap_or("");
        assert!(line.ends_with(told) && line.is_empty() == told.is_empty(), "{words}");
    }
}

#[test]
fn whole_bodies_keep_their_own_lengths_and_options_that_miss_them_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let mock = MockProcess::start();
    let body = |tokens: u32| {
        format!(
            "{{\"timestamp\":0,\"output_length\":2,\"payload\":{{\"model\":\"m\",\"stream\":true,\
             \"stream_options\":{{\"include_usage\":true}},\"max_tokens\":{tokens},\
             \"messages\":[{{\"role\":\"user\",\"content\":\"x\"}}]}}}}\n"
        )
    };
    let words = "{\"timestamp\":0,\"input_length\":4,\"output_length\":2}\n".to_owned();
    let trace = folder.path().join("t.jsonl");
    std::fs::write(&trace, [body(3), body(4), words].concat()).expect("written");
    let trace = trace.to_string_lossy().into_owned();
    let more = ["--max-osl", "1", "--extra-inputs", "max_completion_tokens:7", "--session-key"];
    let more = [&more[..], &["poor-man"]].concat();
    let (child, log) = replay_with(folder.path(), &mock.url, &trace, &more);
    let output = child.wait_with_output().expect("it ends");
    let said = text(&output.stderr);
    let plan = onbeat(&[&["plan", &trace][..], &more].concat());
    for said in [said, text(&plan.stderr)] {
        for words in [
            "--extra-inputs, --max-osl change nothing in 2 of 3 rows: they are whole bodies",
            "--session-key changes nothing: it is for baseten_trace, and this is mooncake_trace",
        ] {
            assert_eq!(said.matches(words).count(), 1, "{words}:\n{said}");
        }
    }
    let run = Run::read(&std::fs::read(log).expect("a log")).expect("it reads");
    let planned: Vec<_> = run.plan.iter().map(|row| row.max_tokens).collect();
    assert_eq!(planned, [Some(3), Some(4), Some(7)]);
    let answered: Vec<_> = (0..3).map(|i| run.requests.completion_tokens(i)).collect();
    assert_eq!(answered, planned, "what was asked for came back");
    let lines = text(&plan.stdout);
    let shown: Vec<_> = lines
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"))
        .map(|line| line["max_tokens"].as_u64())
        .collect();
    assert_eq!(shown, [Some(3), Some(4), Some(7)]);
}

#[test]
fn a_run_tells_where_its_log_is_and_what_shows_it() {
    let mock = MockProcess::start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = write_trace(folder.path(), 3, 20);
    let output = Command::new(env!("CARGO_BIN_EXE_onbeat"))
        .args(["replay", &trace, "--url", &mock.url])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .expect("the binary was built");
    let words = text(&output.stdout);
    let next = |start: &str| words.lines().find_map(|line| line.trim_start().strip_prefix(start));
    let log = next("onbeat report ").expect(&words);
    assert_eq!(next("onbeat-viewer "), Some(log));
    let run = Run::read(&std::fs::read(folder.path().join(log)).expect("a log")).expect("it reads");
    assert_eq!(run.plan.len(), 3);
}

#[test]
fn what_cannot_be_meant_is_refused_before_anything_is_sent() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = write_trace(folder.path(), 1, 1);
    for (option, value, words) in [
        ("--url", "http://127.0.0.1:99999", "from 1 to 65535"),
        ("--url", "127.0.0.1:70000", "from 1 to 65535"),
        ("--concurrency", "8", "is no replay"),
        ("--max-osl", "0", "give a whole number, 1 or more"),
        ("--inter-turn-delay-cap-seconds", "-1", "give 0 seconds or more"),
    ] {
        let output = onbeat(&["replay", &trace, option, value]);
        assert_eq!(output.status.code(), Some(2), "{option} {value}");
        assert!(text(&output.stderr).contains(words), "{}", text(&output.stderr));
    }
}

#[test]
fn goals_slices_and_warm_up_are_typed_as_peers_type_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let mock = MockProcess::start();
    let trace = write_trace(folder.path(), 5, 30);
    let more = ["--goodput", "ttft:60000", "tpot:60000", "--slice-duration", "0.05"];
    let more = [&more[..], &["--warmup-request-count", "2"]].concat();
    let (child, log) = replay_with(folder.path(), &mock.url, &trace, &more);
    let output = child.wait_with_output().expect("it ends");
    let shown = text(&output.stdout);
    for words in ["5 requests meet every goal", "slice, s", "Warm-up      2 requests before zero"] {
        assert!(shown.contains(words), "{words} is not in\n{shown}\n{}", text(&output.stderr));
    }
    let log = log.to_string_lossy().into_owned();
    let report = onbeat(&["report", &log, "--format", "json", "--slice-duration", "0.05"]);
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).expect("JSON");
    let slices = report["slices"].as_array().expect("slices");
    let sent: u64 = slices.iter().filter_map(|slice| slice["sent"].as_u64()).sum();
    assert_eq!((sent, &report["run"]["warm_up"]["ok"]), (5, &serde_json::json!(2)));
    let files = folder.path().join("artifacts");
    let export = ["export", &log, "--as", "aiperf", "--output", &files.to_string_lossy()];
    assert!(onbeat(&export).status.success());
    let lines = std::fs::read_to_string(files.join("profile_export.jsonl")).expect("written");
    assert_eq!(lines.lines().count(), 5);
    let bench = onbeat(&["export", &log, "--as", "vllm-bench"]);
    let bench: serde_json::Value = serde_json::from_slice(&bench.stdout).expect("JSON");
    assert_eq!(bench["completed"], 5);
    // A table of a cut log has no place for what is missing.
    assert!(onbeat(&["export", &log]).stderr.is_empty());
    let whole = std::fs::read(&log).expect("a log");
    std::fs::write(&log, &whole[..whole.len() - 10]).expect("it is writable");
    let cut = text(&onbeat(&["export", &log]).stderr);
    assert!(cut.contains("the log has no footer"), "{cut}");
}
