//! Torture: the program with one of its system calls made to fail, the n-th, by `strace`.
//!
//! A [`Rack`] starts a mock and replays a small trace against it, as a process of its own whose
//! n-th call of a name (in each thread) fails with a number that the kernel could give. Whatever
//! fails, the program ends within half a minute with an exit code that is documented, says so
//! without a panic, and leaves a log that can be read and has every request once. Without `strace`,
//! or where it may not trace, there is no rack. Blows before the program's first own instruction,
//! in the loader, are not counted.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use onbeat::clock::monotonic_ns;
use onbeat::mock::{self, Mock, MockConfig};
use onbeat_shared::log::LogError;
use onbeat_shared::run::{End, Run};

/// Calls, and what they may fail with.
pub const BLOWS: &[(&str, &[&str])] = &[
    ("socket", &["EMFILE", "ENOBUFS"]),
    ("connect", &["EINTR", "EADDRNOTAVAIL", "ECONNREFUSED"]),
    ("poll", &["EINTR", "ENOMEM"]),
    ("epoll_wait", &["EINTR", "EIO"]),
    ("epoll_ctl", &["ENOMEM"]),
    ("io_uring_setup", &["EPERM", "ENOMEM"]),
    ("io_uring_enter", &["EINTR", "EAGAIN", "EBUSY", "ENOMEM"]),
    ("read", &["EINTR", "EIO"]),
    ("recvfrom", &["EINTR", "EAGAIN", "ENOMEM"]),
    ("sendmsg", &["EINTR", "EAGAIN", "EIO", "ENOBUFS"]),
    ("write", &["EINTR", "EIO", "ENOSPC", "EAGAIN"]),
    ("fdatasync", &["EINTR", "EIO", "ENOSPC"]),
    ("timerfd_settime", &["EIO"]),
    ("mmap", &["ENOMEM"]),
    ("openat", &["EINTR", "EMFILE", "EIO"]),
    ("clone3", &["EAGAIN", "ENOMEM"]),
];

/// Requests of the trace.
const REQUESTS: usize = 12;
/// A program that has not ended by then hangs.
const PATIENCE: Duration = Duration::from_secs(30);
/// What may end a program as documented.
const CODES: [i32; 5] = [0, 1, 2, 3, 130];

/// One failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blow<'a> {
    /// The system call.
    pub call: &'a str,
    /// What it fails with.
    pub errno: &'a str,
    /// Which one, from 1, in each thread.
    pub nth: u32,
    /// The driver of the run's cores.
    pub driver: &'a str,
}

/// What came of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The program makes no such call so often.
    Missed,
    /// It fell before the program's own first instruction.
    Early,
    /// The program ended in order, with this exit code.
    Stood(i32),
    /// The runtime below the program had no memory for itself and gave up; the log can be read.
    OutOfMemory,
    /// Something that must not be.
    Broken(String),
}

/// A mock, a trace and a program.
pub struct Rack {
    program: PathBuf,
    folder: tempfile::TempDir,
    mock: Mock,
}

impl Rack {
    /// A rack for `program`, which is the product when its first word is `onbeat`; `None`, and why,
    /// where nothing can be traced.
    ///
    /// # Errors
    /// Why not.
    ///
    /// # Panics
    /// When there is no temporary folder or no port.
    pub fn new(program: &Path) -> Result<Self, String> {
        let traced = Command::new("strace")
            .args(["-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-e", "trace=getppid", "true"])
            .stdin(Stdio::null())
            .output();
        match traced {
            Err(error) => return Err(format!("strace cannot be started: {error}")),
            Ok(output) if !output.status.success() => {
                let why = String::from_utf8_lossy(&output.stderr).into_owned();
                return Err(format!("strace may not trace here: {}", why.trim()));
            }
            Ok(_) => {}
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let trace = crate::mooncake(REQUESTS, 4, 600, 3);
        std::fs::write(folder.path().join("trace.jsonl"), trace).expect("the folder is writable");
        let config = MockConfig { overhead_ns: 500_000, step_ns: 500_000, ..MockConfig::default() };
        let mock = mock::spawn(config).expect("a mock on loopback");
        Ok(Self { program: program.to_owned(), folder, mock })
    }

    /// Lets one call fail.
    ///
    /// # Panics
    /// When the program cannot be started.
    #[must_use]
    pub fn strike(&self, blow: &Blow<'_>) -> Fate {
        let log = self.folder.path().join("run.beat");
        let calls = self.folder.path().join("calls");
        for file in [&log, &calls] {
            // It may not be there.
            let _ = std::fs::remove_file(file);
        }
        let begun_ns = monotonic_ns();
        let Some(output) = finish(self.start(blow, &log, &calls), begun_ns) else {
            return Fate::Broken(format!("it had not ended after {PATIENCE:?}"));
        };
        let calls = std::fs::read_to_string(&calls).unwrap_or_default();
        let place = |word: &str| calls.lines().position(|line| line.contains(word));
        match (place("(INJECTED)"), place("poll([{fd=0")) {
            (None, _) => return Fate::Missed,
            // What every Rust program does first is to look at its standard streams.
            (Some(blow), start) if start.is_none_or(|start| blow <= start) => return Fate::Early,
            _ => {}
        }
        judge(&output, std::fs::read(&log).ok().as_deref())
    }

    fn start(&self, blow: &Blow<'_>, log: &Path, calls: &Path) -> Child {
        let Blow { call, errno, nth, driver } = blow;
        let mut command = Command::new("strace");
        command
            .args(["-f", "--seccomp-bpf", "-qq", "-o"])
            .arg(calls)
            .arg("-e")
            .arg(format!("trace={call},poll"))
            .arg("-e")
            .arg(format!("inject={call}:error={errno}:when={nth}"))
            .arg(&self.program)
            .args(["onbeat", "replay"])
            .arg(self.folder.path().join("trace.jsonl"))
            .arg("--url")
            .arg(format!("http://{}", self.mock.address()))
            .arg("--output")
            .arg(log)
            .args(["--driver", driver, "--max-lateness-us", "10000000"])
            // A kernel that says "nothing there" of what is there, as no kernel does, is waited for
            // as long as requests may take.
            .args(["--request-timeout-seconds", "10"])
            .env_remove("OPENAI_API_KEY")
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        command.spawn().expect("strace has just been started")
    }
}

/// Waits for the end of `child`; `None` when it hangs, and then it is killed.
fn finish(mut child: Child, begun_ns: i64) -> Option<Output> {
    let patience_ns = i64::try_from(PATIENCE.as_nanos()).expect("half a minute");
    // What it prints fits into a pipe, so nobody has to read meanwhile.
    while child.try_wait().expect("it is ours").is_none() {
        if monotonic_ns() - begun_ns > patience_ns {
            let group = rustix::process::Pid::from_child(&child);
            // It may end just now.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            let _ = child.wait();
            return None;
        }
        std::thread::park_timeout(Duration::from_millis(3));
    }
    Some(child.wait_with_output().expect("it has ended"))
}

/// Whether a program's end and its log are as they must be.
fn judge(output: &Output, log: Option<&[u8]>) -> Fate {
    let words = String::from_utf8_lossy(&output.stderr);
    let broken = |why: &str| Fate::Broken(format!("{why}; it said: {}", words.trim()));
    let closed = match read_log(log) {
        Ok(closed) => closed,
        Err(why) => return broken(&why),
    };
    // Rust's runtime ends a program that has no memory, or none for a thread's own signal stack.
    let aborted = output.status.signal() == Some(6) || output.status.code() == Some(134);
    if aborted && (words.contains("memory") || words.contains("fatal runtime error")) {
        return Fate::OutOfMemory;
    }
    if words.contains("panicked") {
        return broken("it panicked");
    }
    let Some(code) = output.status.code().filter(|code| CODES.contains(code)) else {
        return broken(&format!("it ended with {}", output.status));
    };
    match (code, closed) {
        (0 | 3, false) => broken(&format!("exit code {code} and a log that was not closed")),
        (1 | 2, _) if words.trim().is_empty() => broken(&format!("exit code {code} and no word")),
        _ => Fate::Stood(code),
    }
}

/// Whether the log was closed, with every request once. One that was never begun was not.
fn read_log(log: Option<&[u8]>) -> Result<bool, String> {
    let Some(bytes) = log else { return Ok(false) };
    let run = match Run::read(bytes) {
        Ok(run) => run,
        Err(LogError::Empty) => return Ok(false),
        Err(error) if error.to_string().contains("nothing was recorded") => return Ok(false),
        Err(error) => return Err(format!("its log cannot be read: {error}")),
    };
    let contradicts = |words: &&String| {
        ["more than one", "were not planned", "run backwards"].iter().any(|it| words.contains(it))
    };
    if let Some(words) = run.warnings.iter().find(contradicts) {
        return Err(format!("its log contradicts itself: {words}"));
    }
    if run.footer.is_none() {
        return Ok(false);
    }
    let whole = run.footer.as_ref().is_some_and(|footer| footer.complete);
    for i in 0..run.requests.len() {
        if whole && !matches!(run.requests.end(i), End::Known(_)) {
            return Err(format!("request {i} of a complete log has no end"));
        }
    }
    Ok(whole)
}
