//! Traces of columns through the real binary: what names them in the log, and what memory a run of
//! them takes.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use onbeat_shared::log::Class;
use onbeat_shared::run::Run;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use rustix::process::{Pid, Signal, kill_process};
use sha2::{Digest, Sha256};

/// A mock in a process of its own; ends when dropped.
struct MockProcess {
    child: Child,
    url: String,
}

impl MockProcess {
    fn start() -> Self {
        let mut child = onbeat(&["mock", "--port", "0"]).spawn().expect("the binary was built");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("the mock says where it listens");
        let url = line.trim().rsplit(' ').next().expect("a URL").to_owned();
        Self { child, url }
    }
}

impl Drop for MockProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server that reads requests as fast as they come and says one word to each.
fn one_word() -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    let builder = || std::thread::Builder::new().name("one-word".to_owned());
    let serve = move || {
        for stream in listener.incoming() {
            let stream = stream.expect("a connection");
            let _detached = builder().spawn(move || answer(BufReader::new(stream)));
        }
    };
    // It ends with the test's process.
    let _detached = builder().spawn(serve).expect("a thread");
    url
}

/// Answers the requests of one connection until there are no more.
fn answer(mut stream: BufReader<TcpStream>) {
    const BODY: &str = "{\"choices\":[{\"text\":\"x\",\"finish_reason\":\"length\"}]}";
    let mut length = 0;
    let mut line = String::new();
    while stream.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
        if let Some(bytes) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = bytes.trim().parse().expect("a number");
        }
        if line == "\r\n" {
            let body = &mut stream.by_ref().take(length);
            std::io::copy(body, &mut std::io::sink()).expect("the body");
            let bytes = BODY.len();
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length:";
            let whole = format!("{head} {bytes}\r\n\r\n{BODY}");
            if stream.get_mut().write_all(whole.as_bytes()).is_err() {
                return;
            }
        }
        line.clear();
    }
}

fn onbeat(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onbeat"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A replay whose pace is not judged, with the log beside the trace.
fn replay(trace: &Path, url: &str, more: &[&str]) -> (Command, PathBuf) {
    let log = trace.with_extension("beat");
    let mut command = onbeat(&["replay", "--url", url, "--ui", "none", "--force"]);
    command.args(["--max-lateness-us", "60000000", "--max-osl", "1", "--output"]);
    command.arg(&log).arg(trace).args(more);
    (command, log)
}

/// Writes a trace of these prompts, so many milliseconds apart.
fn write(path: &Path, prompts: &[String], gap_ms: i64, codec: Compression) {
    let rows = i64::try_from(prompts.len()).expect("few");
    let numbers = |factor: i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..rows).map(|row| row * factor)))
    };
    let answers = (0..rows).map(|row| format!("answer {row}"));
    let columns: [(&str, ArrayRef); 5] = [
        ("timestamp_start_unix_ms", numbers(gap_ms)),
        ("prompt", Arc::new(StringArray::from_iter_values(prompts))),
        ("input_tokens", numbers(1)),
        ("output_tokens", numbers(1)),
        ("output_text", Arc::new(StringArray::from_iter_values(answers))),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("equal lengths");
    let layout = WriterProperties::builder().set_compression(codec).set_dictionary_enabled(false);
    let file = File::create(path).expect("a file");
    let mut writer =
        ArrowWriter::try_new(file, batch.schema(), Some(layout.build())).expect("types");
    writer.write(&batch).expect("written");
    writer.close().expect("closed");
}

/// Makes a Parquet file longer by a hole before its footer, which nothing refers to.
fn stretch(path: &Path, bytes: i64) {
    let whole = std::fs::read(path).expect("readable");
    let end = whole.len();
    let length = whole[end - 8..end - 4].try_into().expect("four bytes");
    let footer = end - 8 - u32::from_le_bytes(length) as usize;
    let mut file = File::create(path).expect("writable");
    file.write_all(&whole[..footer]).expect("written");
    file.seek(SeekFrom::Current(bytes)).expect("a hole");
    file.write_all(&whole[footer..]).expect("written");
}

fn sha256(path: &Path) -> String {
    let mut digest = Sha256::new();
    let mut file = File::open(path).expect("there");
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer).expect("readable") {
            0 => break,
            bytes => digest.update(&buffer[..bytes]),
        }
    }
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read(log: &Path) -> Run {
    Run::read(&std::fs::read(log).expect("a log")).expect("it reads back")
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn prompts(count: usize, bytes: usize) -> Vec<String> {
    let text = |row: usize| format!("\"{row}\" words\n").repeat(bytes / 12);
    (0..count).map(text).collect()
}

/// More than what is read before a run begins.
const LARGE: i64 = 20 << 20;

#[test]
fn the_log_names_its_trace_whether_the_run_or_the_digest_is_longer() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mock = MockProcess::start();
    for (name, hole, gap_ms) in [("small", 0, 1), ("large", LARGE, 1), ("long", LARGE, 400)] {
        let path = folder.path().join(format!("{name}.parquet"));
        write(&path, &prompts(4, 1_000), gap_ms, Compression::UNCOMPRESSED);
        if hole > 0 {
            stretch(&path, hole);
        }
        let (mut command, log) = replay(&path, &mock.url, &[]);
        let output = command.output().expect("the binary was built");
        assert_eq!(output.status.code(), Some(0), "{name}: {}", words(&output));
        let run = read(&log);
        assert_eq!(run.manifest.trace.sha256, sha256(&path), "{name}");
        assert!((0..4).all(|i| run.requests.class(i) == Some(Class::Ok)), "{name}");
        // What checks the trace by its digest finds it.
        let mut export = onbeat(&["export", "--recorded-text"]);
        let output = export.arg(&path).arg(&log).output().expect("the binary was built");
        assert!(output.status.success(), "{name}: {}", words(&output));
        assert!(String::from_utf8_lossy(&output.stdout).contains("answer 3"), "{name}");
    }
}

#[test]
fn the_log_of_an_interrupted_run_names_its_trace() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mock = MockProcess::start();
    let path = folder.path().join("t.parquet");
    write(&path, &prompts(4, 1_000), 100_000, Compression::SNAPPY);
    stretch(&path, LARGE);
    let (mut command, log) = replay(&path, &mock.url, &[]);
    let child = command.spawn().expect("the binary was built");
    // It is there under its name, with its plan, once the run has begun.
    while std::fs::metadata(&log).map_or(0, |meta| meta.len()) < 1_000 {
        std::thread::yield_now();
    }
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::INT).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", words(&output));
    let run = read(&log);
    assert!(run.footer.as_ref().is_some_and(|footer| footer.interrupted));
    assert_eq!(run.manifest.trace.sha256, sha256(&path));
}

/// The most memory a process has had, as far as it was seen, and how it ended.
fn weighed(mut command: Command) -> (u64, Output) {
    let child = command.spawn().expect("the binary was built");
    let status = format!("/proc/{}/status", child.id());
    let looking = std::thread::Builder::new().name("weigh".to_owned());
    let looking = looking.spawn(move || {
        let mut peak = 0;
        while let Ok(text) = std::fs::read_to_string(&status) {
            let Some(line) = text.lines().find_map(|line| line.strip_prefix("VmHWM:")) else {
                break;
            };
            let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
            peak = peak.max(kib << 10);
            std::thread::yield_now();
        }
        peak
    });
    let output = child.wait_with_output().expect("it ends");
    let peak = looking.expect("a thread").join().expect("no panic");
    (peak, output)
}

#[test]
fn a_run_stays_within_its_memory_or_is_refused_with_what_would_do() {
    const PROMPTS: usize = 72;
    const BYTES: usize = 2 << 20;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let url = one_word();
    for codec in [Compression::UNCOMPRESSED, Compression::SNAPPY] {
        let path = folder.path().join("t.parquet");
        write(&path, &prompts(PROMPTS, BYTES), 1, codec);
        let (mut command, log) = replay(&path, &url, &["--render-budget", "20MB"]);
        let refused = command.output().expect("the binary was built");
        let told = words(&refused);
        assert_eq!(refused.status.code(), Some(1), "{told}");
        assert!(!log.exists(), "nothing was sent");
        let right = told.split("right would be ").nth(1).expect("it says what would do");
        let right: u64 = right.split(' ').next().expect("a number").parse().expect("a number");
        assert!(right < (PROMPTS * BYTES) as u64, "less than the prompts: {right}");
        let budget = right.to_string();
        let more = ["--render-budget", &budget, "--no-streaming", "--model", "m"];
        let (command, log) = replay(&path, &url, &more);
        let (peak, output) = weighed(command);
        let told = words(&output);
        assert!(matches!(output.status.code(), Some(0 | 3)), "{told}");
        assert!(told.contains("rendered during the run"), "{told}");
        let run = read(&log);
        assert!((0..PROMPTS).all(|i| run.requests.class(i) == Some(Class::Ok)), "{codec}");
        assert!(peak <= right, "{codec}: {peak} bytes of {right}");
        std::fs::remove_file(&log).expect("it was read");
    }
}
