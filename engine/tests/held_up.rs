//! The real binary on a host that takes its processor away for a while.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use onbeat_shared::log::Class;
use onbeat_shared::run::Run;
use rustix::process::{Pid, Signal, kill_process};

/// A process that ends with its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn onbeat(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onbeat"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// A server of slow, steady streams, and its URL.
fn slow_mock() -> (Running, String) {
    let mut mock = onbeat(&["mock", "--port", "0", "--step-ms", "20"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary was built");
    let mut line = String::new();
    let stdout = mock.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut line).expect("the mock says where it listens");
    let url = line.trim().rsplit(' ').next().expect("a URL").to_owned();
    (Running(mock), url)
}

#[test]
fn a_pause_of_our_own_is_no_timeout_of_the_server() {
    for driver in ["auto", "epoll"] {
        let (_mock, url) = slow_mock();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (trace, log) = (folder.path().join("trace.jsonl"), folder.path().join("run.beat"));
        // Twenty streams of four seconds each.
        let row = "{\"timestamp\":0,\"input_length\":20,\"output_length\":200,\"hash_ids\":[1]}\n";
        std::fs::write(&trace, row.repeat(20)).expect("the folder is writable");
        let (trace, log) = (trace.to_string_lossy(), log.to_string_lossy());
        let mut arguments = vec!["replay", &trace, "--url", &url, "--output", &log];
        arguments.extend(["--ui", "simple", "--driver", driver, "--idle-timeout-seconds", "2"]);
        let run = onbeat(&arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built");
        let mut run = Running(run);
        let mut progress = BufReader::new(run.0.stderr.take().expect("piped"));
        let mut line = String::new();
        while !line.contains("sent 20/20") {
            line.clear();
            assert!(progress.read_line(&mut line).expect("text") > 0, "it ended early");
        }
        let id = Pid::from_child(&run.0);
        kill_process(id, Signal::STOP).expect("it runs");
        #[expect(clippy::disallowed_methods, reason = "the pause is what is tested")]
        std::thread::sleep(Duration::from_secs(3));
        kill_process(id, Signal::CONT).expect("it is there");
        let ended = run.0.wait().expect("it ends");
        assert!(ended.code().is_some_and(|code| code == 0 || code == 3), "{ended}");
        let run = Run::read(&std::fs::read(&*log).expect("a log")).expect("it reads");
        for i in 0..20 {
            assert_eq!(run.requests.class(i), Some(Class::Ok), "request {i} ({driver})");
        }
        let longest = run.stalls.all().iter().map(|stall| stall.length_ns).max();
        assert!(longest > Some(2_900_000_000), "the pause is in the log: {longest:?}");
    }
}
