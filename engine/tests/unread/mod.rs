//! Outputs that take nothing: what cannot be said changes no exit code and holds nothing up, and
//! what was asked for and cannot be printed is a failure.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::time::Duration;

use onbeat::clock::monotonic_ns;
use rustix::process::{Pid, Signal, kill_process};

use super::{MockProcess, text, write_trace};

fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").expect("a full device")
}

fn command(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onbeat"));
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

#[test]
fn a_full_stderr_changes_no_exit_code() {
    let status = command(&["plan", "/nonexistent"]).stderr(full()).status().expect("it was built");
    assert_eq!(status.code(), Some(1));
    // What a log lacks is said there, too.
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = folder.path().join("cut.beat");
    let whole = onbeat_shared::log::sample::log(1, 50);
    std::fs::write(&log, &whole[..whole.len() - 100]).expect("writable");
    let status = command(&["export"]).arg(&log).stderr(full()).status().expect("it was built");
    assert_eq!(status.code(), Some(0));
}

#[test]
fn help_that_cannot_be_printed_is_a_failure() {
    for words in [&["--help"][..], &["--version"], &["replay", "--help"]] {
        let output = command(words).stdout(full()).stderr(Stdio::piped()).output();
        let output = output.expect("it was built");
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        assert!(text(&output.stderr).contains("could not print"), "{}", text(&output.stderr));
    }
}

#[test]
fn a_stderr_that_nobody_reads_keeps_no_run_from_being_stopped() {
    let mock = MockProcess::start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = write_trace(folder.path(), 100_000, 10);
    let log = folder.path().join("run.beat");
    let (_reader, mut writer) = std::io::pipe().expect("a pipe");
    rustix::io::ioctl_fionbio(writer.as_fd(), true).expect("ours");
    while !writer.write(&[b'x'; 4_096]).is_err_and(|it| it.kind() == ErrorKind::WouldBlock) {}
    rustix::io::ioctl_fionbio(writer.as_fd(), false).expect("ours");
    let mut child =
        command(&["replay", &trace, "--model", "m", "--url", &mock.url, "--ui", "simple"])
            .arg("--output")
            .arg(&log)
            .stderr(writer)
            .spawn()
            .expect("it was built");
    let begun = monotonic_ns();
    let mut ended = None;
    let mut asked = false;
    while ended.is_none() && monotonic_ns() - begun < 60_000_000_000 {
        if !asked && log.exists() {
            let id = Pid::from_child(&child);
            kill_process(id, Signal::INT).expect("it runs");
            asked = true;
        }
        ended = child.try_wait().expect("it is our own");
        #[expect(clippy::disallowed_methods, reason = "a pause between two looks")]
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    let _ = child.wait();
    assert!(asked, "it never began");
    assert_eq!(ended.and_then(|status| status.code()), Some(130));
}
