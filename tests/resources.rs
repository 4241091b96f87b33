//! What a host can run out of: said before zero with the number that is needed, counted as ours
//! during the run, and never blamed on the server.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

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

    /// The program behind a shell's lines, which end with `exec "$@"`, or behind a tracer's words.
    fn run(&self, first: &[&str], more: &[&str]) -> Output {
        let _ = std::fs::remove_file(self.log());
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
        let traced = Command::new("strace")
            .args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=getppid", "true"])
            .output();
        if !traced.is_ok_and(|output| output.status.success()) {
            #[expect(clippy::print_stderr, reason = "a test that is left out says so")]
            {
                eprintln!("left out: strace is not here, or may not trace");
            }
            return None;
        }
        let call = blow.split(':').next().unwrap_or_default();
        let (trace, inject) = (format!("trace={call}"), format!("inject={blow}"));
        let tracer = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject];
        Some(self.run(&tracer, more))
    }
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
        for more in [&[][..], &["--model", "m"]] {
            let blow = format!("socket:error={error}:when=1+");
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
    has(&words, &["the run log needs 44 KiB", "nothing was sent", "--output"]);
    assert!(!bench.log().exists());
    let output = bench.limited("ulimit -f 160", &[]);
    has(&flat(&output), &["the run log may take 169 KiB", "records beyond that would be lost"]);
}
