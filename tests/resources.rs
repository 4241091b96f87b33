//! What a host can run out of: said before zero with the number that is needed, counted as ours
//! during the run, and never blamed on the server.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use onbeat::mock::{self, Mock, MockConfig};
use onbeat_shared::log::Class;
use onbeat_shared::run::Run;
use tests::mooncake;

/// A trace, a server that is slow to begin an answer, and the program behind a shell's limits.
struct Bench {
    folder: tempfile::TempDir,
    mock: Mock,
}

impl Bench {
    fn new(requests: usize, overhead_ns: i64) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let trace = mooncake(requests, 1, 10, 2);
        std::fs::write(folder.path().join("trace.jsonl"), trace).expect("it is writable");
        let config = MockConfig { overhead_ns, ..MockConfig::default() };
        Self { folder, mock: mock::spawn(config).expect("a mock on loopback") }
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("run.beat")
    }

    /// A log of an earlier run, which is there until another run has begun.
    fn keeps(&self, text: &str) {
        std::fs::write(self.log(), text).expect("it is writable");
    }

    /// The program behind a shell's lines, which end with `exec "$@"`, or behind a tracer's words.
    fn run(&self, first: &[&str], more: &[&str]) -> Output {
        if !more.contains(&"--force") {
            let _ = std::fs::remove_file(self.log());
        }
        let url = format!("http://{}", self.mock.address());
        let program = env!("CARGO_BIN_EXE_soak");
        let mut words: Vec<&str> = first.to_vec();
        words.extend([program, "onbeat", "replay"]);
        Command::new(words[0])
            .args(&words[1..])
            .arg(self.folder.path().join("trace.jsonl"))
            .args(["--url", &url, "--ui", "simple", "--cores", "1", "--output"])
            .arg(self.log())
            .args(more)
            .env_remove("OPENAI_API_KEY")
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null())
            .output()
            .expect("the program is there")
    }

    fn limited(&self, limit: &str, more: &[&str]) -> Output {
        // Mocks of other tests are in this process, and their runtime accepts connections that
        // children inherit: they would count against the limit.
        let closed = "for fd in /proc/$$/fd/*; do fd=${fd##*/}; \
                      if [ $fd -gt 2 ] && [ $fd -ne 255 ]; then eval \"exec $fd>&-\"; fi; done";
        let line = format!("{closed}; {limit}; exec \"$@\"");
        self.run(&["bash", "-c", &line, "bash"], more)
    }

    /// The program, whose system call fails; `None` where nothing can be traced.
    fn struck(&self, blow: &str, more: &[&str]) -> Option<Output> {
        self.traced(blow, "/dev/null", more)
    }

    /// Any command of the program in the bench's folder, whose system call fails.
    fn struck_program(&self, blow: &str, words: &[&str]) -> Option<Output> {
        let call = blow.split(':').next().unwrap_or_default();
        let (trace, inject) = (format!("trace={call}"), format!("inject={blow}"));
        if !may_trace() {
            return None;
        }
        let mut command = Command::new("strace");
        command
            .args(["-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject])
            .arg(env!("CARGO_BIN_EXE_soak"))
            .arg("onbeat")
            .args(words)
            .current_dir(self.folder.path())
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null());
        Some(command.output().expect("it has just been started"))
    }

    /// The same, with a list of these calls in a file.
    fn traced(&self, blow: &str, calls: &str, more: &[&str]) -> Option<Output> {
        if !may_trace() {
            return None;
        }
        let call = blow.split(':').next().unwrap_or_default();
        let (trace, inject) = (format!("trace={call}"), format!("inject={blow}"));
        let tracer = ["strace", "-f", "-qq", "-o", calls, "-e", &trace, "-e", &inject];
        Some(self.run(&tracer, more))
    }
}

/// Whether programs can be traced here.
fn may_trace() -> bool {
    let traced = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=getppid", "true"])
        .output();
    let may = traced.is_ok_and(|output| output.status.success());
    if !may {
        #[expect(clippy::print_stderr, reason = "a test that is left out says so")]
        {
            eprintln!("left out: strace is not here, or may not trace");
        }
    }
    may
}

fn read(log: &Path) -> Run {
    Run::read(&std::fs::read(log).expect("a log")).expect("it reads")
}

/// Both streams as one line.
fn flat(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let all = text(&output.stderr) + &text(&output.stdout);
    all.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn has(words: &str, parts: &[&str]) {
    for part in parts {
        assert!(words.contains(part), "{part:?} is not in: {words}");
    }
}

#[test]
fn descriptors_that_run_out_are_foretold_and_counted_as_ours() {
    const REQUESTS: usize = 200;
    let bench = Bench::new(REQUESTS, 2_000_000_000);
    let output = bench.limited("ulimit -n 100", &["--driver", "epoll"]);
    let words = flat(&output);
    has(
        &words,
        &[
            "this run may have about 200 connections open at a time",
            "open files for that; the limit is 100, and requests beyond it would find no descriptor",
            "; to raise it: sudo prlimit --nofile=",
        ],
    );
    assert_eq!(output.status.code(), Some(3), "{words}");
    let run = read(&bench.log());
    let of = |class| (0..REQUESTS).filter(|&i| run.requests.class(i) == Some(class)).count();
    let (ours, ok) = (of(Class::ClientNoDescriptor), of(Class::Ok));
    assert_eq!(ours + ok, REQUESTS, "{words}");
    assert!(ours > 50, "{ours} found none");
    // First in the verdict, and first among what became of requests.
    let first = words.find(" - ").expect("a reason");
    has(&words[first..][..120], &[&format!("{ours} of 200 planned requests found no descriptor")]);
    has(&words, &[&format!("by themselves) client_no_descriptor {ours}")]);
    // Who waits for a connection instead loses none.
    let most = words.split("--max-connections ").nth(1).expect("it is proposed");
    let most = most.split(|sign: char| !sign.is_ascii_digit()).next().expect("a number");
    let output = bench.limited("ulimit -n 100", &["--max-connections", most]);
    let run = read(&bench.log());
    let ok = (0..REQUESTS).filter(|&i| run.requests.class(i) == Some(Class::Ok)).count();
    assert_eq!(ok, REQUESTS, "{}", flat(&output));
    assert!(!flat(&output).contains("open files"), "{}", flat(&output));
}

#[test]
fn a_first_probe_that_finds_nothing_here_does_not_blame_the_server() {
    let bench = Bench::new(3, 0);
    for (error, word) in [
        ("EMFILE", "sudo prlimit --nofile="),
        ("ENFILE", "sudo sysctl -w fs.file-max="),
        ("ENOBUFS", "sudo sysctl -w net.ipv4.tcp_mem="),
        ("ENOMEM", "sudo sysctl -w net.ipv4.tcp_mem="),
    ] {
        // No socket at all: neither what asks for the model's name, or only whether somebody is
        // there, nor what may come before it.
        for (first, more) in [(1, &[][..]), (1, &["--model", "m"]), (2, &[])] {
            // The second one is for the question for the model.
            let blow = format!("socket:error={error}:when={first}+");
            let Some(output) = bench.struck(&blow, more) else { return };
            let words = flat(&output);
            assert_eq!(output.status.code(), Some(1), "{blow}: {words}");
            has(&words, &["could not connect to the server: ", word]);
            assert!(!words.contains("Is the server running"), "{blow}: {words}");
            assert!(!bench.log().exists(), "{blow}: a run that did not start leaves no log");
        }
    }
}

#[test]
fn who_asked_for_a_ring_is_told_why_there_is_none_and_what_would_do() {
    let bench = Bench::new(3, 0);
    for (error, words) in [
        ("ENOMEM", ["too little lockable memory (ENOMEM", "sudo prlimit --memlock="]),
        ("ENOSYS", ["this kernel has no io_uring (ENOSYS)", "use --driver epoll"]),
    ] {
        let blow = format!("io_uring_setup:error={error}");
        let Some(output) = bench.struck(&blow, &["--driver", "io_uring"]) else { return };
        assert_eq!(output.status.code(), Some(1), "{blow}: {}", flat(&output));
        has(&flat(&output), &words);
        assert!(!bench.log().exists(), "{blow}: a run that did not start leaves no log");
    }
}

#[test]
fn authorities_that_cannot_be_read_for_lack_of_descriptors_are_not_missing() {
    let bench = Bench::new(1, 0);
    // From the loader's files to those behind the authorities.
    for first in (2..60).step_by(2) {
        let blow = format!("openat:error=EMFILE:when={first}+");
        let words = ["replay", "trace.jsonl", "--url", "https://127.0.0.1:1", "-o", "none.beat"];
        let Some(output) = bench.struck_program(&blow, &words) else { return };
        let words = flat(&output);
        assert!(!words.contains("no authority is trusted"), "{blow}: {words}");
    }
}

#[test]
fn a_ring_that_may_be_set_up_and_not_entered_is_none() {
    let bench = Bench::new(3, 0);
    for error in ["EPERM", "ENOSYS"] {
        let blow = format!("io_uring_enter:error={error}");
        let Some(output) = bench.struck(&blow, &["--driver", "io_uring"]) else { return };
        assert_eq!(output.status.code(), Some(1), "{blow}: {}", flat(&output));
        has(&flat(&output), &["use --driver epoll"]);
        let Some(output) = bench.struck(&blow, &["--driver", "auto"]) else { return };
        has(&flat(&output), &[error, "; using epoll instead"]);
        let run = read(&bench.log());
        assert_eq!(run.manifest.driver, "epoll");
        assert!((0..3).all(|i| run.requests.class(i) == Some(Class::Ok)), "{}", flat(&output));
    }
}

#[test]
fn a_mock_that_cannot_have_a_ring_serves_without_and_one_that_cannot_serve_says_so() {
    let bench = Bench::new(1, 0);
    let demo = |blow: &str| bench.struck_program(blow, &["demo", "--ui", "none"]);
    for blow in ["io_uring_setup:error=ENOMEM:when=2+", "io_uring_enter:error=EPERM"] {
        let Some(output) = demo(blow) else { return };
        let words = flat(&output);
        assert!(matches!(output.status.code(), Some(0 | 3)), "{blow}: {words}");
        let run = read(&bench.folder.path().join("demo.beat"));
        let ok = (0..run.requests.len()).filter(|&i| run.requests.class(i) == Some(Class::Ok));
        assert_eq!(ok.count(), run.requests.len(), "{blow}: {words}");
        std::fs::remove_file(bench.folder.path().join("demo.beat")).expect("it is there");
    }
    let blow = "timerfd_create:error=EMFILE";
    let Some(output) = bench.struck_program(blow, &["mock", "--port", "0"]) else { return };
    assert_eq!(output.status.code(), Some(1), "{}", flat(&output));
    has(&flat(&output), &["a thread of the mock ended: ", "sudo prlimit --nofile="]);
}

#[test]
fn a_thread_that_cannot_be_had_ends_a_run_that_has_not_begun_and_takes_no_log_away() {
    let bench = Bench::new(3, 0);
    let more = ["--force", "--model", "m", "--scrape", "http://127.0.0.1:9"];
    let mut refused = 0;
    for nth in 1..20 {
        bench.keeps("precious");
        let blow = format!("clone3:error=EAGAIN:when={nth}");
        let Some(output) = bench.struck(&blow, &more) else { return };
        let words = flat(&output);
        match output.status.code() {
            Some(1) => {
                refused += 1;
                has(&words, &["a thread", "sudo prlimit --nproc=unlimited"]);
                let kept = std::fs::read(bench.log()).expect("it is there");
                assert_eq!(kept, b"precious", "{blow}: {words}");
            }
            // One that the program can do without, or no such thread.
            Some(0 | 3) => assert!(read(&bench.log()).footer.is_some(), "{blow}: {words}"),
            _ => panic!("{blow}: {:?}: {words}", output.status),
        }
    }
    assert!(refused >= 3, "a core's, a scraper's and the writer's: {refused}");
}

#[test]
fn a_core_that_fails_in_the_middle_loses_no_record_and_is_told_first() {
    const REQUESTS: usize = 200;
    let bench = Bench::new(REQUESTS, 20_000_000);
    // Five milliseconds between two requests, and a sleep before each.
    let more = ["--driver", "epoll", "--pacing", "sleep", "--replay-speedup", "0.2"];
    let Some(output) = bench.struck("timerfd_settime:error=EIO:when=170+", &more) else { return };
    let words = flat(&output);
    assert_eq!(output.status.code(), Some(1), "{words}");
    has(
        &words,
        &[
            "SCHEDULE NOT HELD",
            "the run was given up: could not run a pacing core: Input/output error",
            "What was recorded until then can be read",
        ],
    );
    let run = read(&bench.log());
    let of = |class| (0..REQUESTS).filter(|&i| run.requests.class(i) == Some(class)).count();
    let sums = [Class::Ok, Class::ClientOther, Class::NotReached].map(of);
    assert_eq!(sums.iter().sum::<usize>(), REQUESTS, "every request has its end: {sums:?}");
    assert!(sums[0] > 0 && sums[1] > 0 && sums[2] > 0, "{sums:?}");
    assert!(run.footer.is_some_and(|footer| footer.complete && footer.given_up.is_some()));
    let first = words.find(" - ").expect("a reason");
    has(&words[first..][..120], &[&format!("{} of ", sums[1]), "broke off on this side"]);
}

#[test]
fn who_asks_for_our_numbers_and_cannot_be_taken_in_keeps_no_cpu_busy() {
    let bench = Bench::new(20, 500_000_000);
    let free = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = free.local_addr().expect("it has one");
    drop(free);
    let calls = bench.folder.path().join("calls");
    let asking = move || {
        for _ in 0..2_000 {
            if let Ok(mut stream) = TcpStream::connect(address) {
                // The run's end ends it.
                return stream.read(&mut [0]).is_ok_and(|count| count == 0);
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
        false
    };
    let asks = std::thread::Builder::new().name("asks".to_owned()).spawn(asking).expect("a thread");
    let port = address.port().to_string();
    let more = ["--model", "m", "--prometheus-port", &port];
    let calls_text = calls.display().to_string();
    let Some(output) = bench.traced("accept4:error=EMFILE", &calls_text, &more) else { return };
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", flat(&output));
    let _ended_or_reset = asks.join().expect("no panic");
    let calls = std::fs::read_to_string(&calls).expect("a list");
    let count = calls.lines().count();
    assert!((1..100).contains(&count), "{count} in a second");
}

#[test]
fn memory_that_is_refused_ends_the_program_in_words() {
    let bench = Bench::new(200, 0);
    let mut refused = 0;
    // From what the program itself cannot be loaded in to what is enough for it.
    for mebibytes in (20..=400).step_by(20) {
        let limit = format!("ulimit -v {}", mebibytes << 10);
        let output = bench.limited(&limit, &[]);
        let words = flat(&output);
        match output.status.code() {
            // The shell or the loader found no room.
            Some(126 | 127) => {}
            Some(0 | 3) => break,
            Some(1) if words.contains("out of memory: the system refused ") => {
                refused += 1;
                has(&words, &["sudo prlimit --as=unlimited"]);
                assert!(!bench.log().exists(), "{limit}: it had not begun");
            }
            // A thread has no room for its stack.
            Some(1) if words.contains("could not start a thread") => {}
            // The runtime, before the program's first instruction.
            _ if words.contains("alternative stack") || words.is_empty() => {}
            _ => panic!("{limit}: {:?}: {words}", output.status),
        }
    }
    assert!(refused > 0, "no limit was met by the program itself");
}

#[test]
fn a_disk_that_is_sure_to_be_too_small_is_refused_and_one_that_may_be_is_told() {
    let bench = Bench::new(400, 0);
    let output = bench.limited("ulimit -f 8", &[]);
    let words = flat(&output);
    assert_eq!(output.status.code(), Some(1), "{words}");
    has(&words, &["the run log needs 44 KiB", "nothing was sent", "sudo prlimit --fsize="]);
    assert!(!bench.log().exists());
    let output = bench.limited("ulimit -f 160", &[]);
    let words = flat(&output);
    has(&words, &["the run log may take 169 KiB", "would be lost; to raise it: sudo prlimit"]);
}
