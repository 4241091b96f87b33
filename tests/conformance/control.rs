//! Cases of group I: how a run is stopped, killed, kept, shown and refused, and what its files say.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use onbeat_shared::dice::Dice;
use onbeat_shared::log::{Class, Outcome as End};
use onbeat_shared::run::Run;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tests::scripted::{LAST_ANSWER, Scripted, answer, good_stream, request};

use crate::case::{Case, MILLI};
use crate::found::{Findings, flat};
use crate::open_loop::rest;
use crate::product::{Told, Written, command, onbeat, read, replay, replay_words, text};
use crate::server::{Recorder, Then, reply};
use crate::wire::lone;

/// Looks that something that should happen is waited for, 20 ms each.
const LOOKS: usize = 3_000;
/// A key that must not be anywhere.
const CANARY: &str = "CANARY-7f3a";

/// Waits until something is so; `false` when it never is.
fn waited(is_so: impl Fn() -> bool) -> bool {
    (0..LOOKS).any(|_| {
        let so = is_so();
        if !so {
            rest(Duration::from_millis(20));
        }
        so
    })
}

fn count(run: &Run, class: Class) -> usize {
    (0..run.plan.len()).filter(|&i| run.requests.class(i) == Some(class)).count()
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("it runs");
}

/// I01: an interrupted run keeps everything, says so, and names what was in flight.
pub(crate) fn interrupted(_case: &Case, found: &mut Findings) {
    let server = Recorder::holding(|seen| seen.body.contains("lone"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = folder.path().join("run.beat");
    let trace = Written::new("trace.jsonl", lone(3_000, 20, 2));
    let url = server.url();
    let words = replay_words(&trace.path, &url, &log, &["--drain-seconds", "0.2"]);
    let child = command(&words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("this program can be started");
    found.holds("requests in flight", waited(|| server.look(<[_]>::len) >= 20), "none");
    signal(&child, Signal::INT);
    let stopped = onbeat::clock::monotonic_ns();
    let told = Told::of(&child.wait_with_output().expect("it ends"));
    let took = onbeat::clock::monotonic_ns() - stopped;
    found.holds("an end soon", took < 10_000 * MILLI, took);
    found.same("exit code", &Some(130), &told.code);
    let run = read(&log).expect("an interrupted run leaves a log");
    found.holds("a whole log", run.is_whole(), "a part of one");
    let (cut, never) = (count(&run, Class::Interrupted), count(&run, Class::NotReached));
    found.same("every request, by its end", &3_000, &(cut + never));
    found.holds("those in flight by name", cut >= 20, cut);
    found.says("the summary", &flat(&told.out), &["interrupted"]);
}

/// I03: whenever a run is killed, its log opens, and lacks a second at most.
pub(crate) fn killed(_case: &Case, found: &mut Findings) {
    /// What a log may lack: a second, and a second for a machine that does other things too.
    const LOST_NS: i64 = 2_000 * MILLI;
    let server = Recorder::start();
    let trace = Written::new("trace.jsonl", lone(2_000, 5, 2));
    let mut dice = Dice(3);
    for round in 0..5 {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let logs: Vec<_> = (0..4).map(|it| folder.path().join(format!("{it}.beat"))).collect();
        let url = server.url();
        let children: Vec<Child> = logs
            .iter()
            .map(|log| {
                let words =
                    replay_words(&trace.path, &url, log, &["--cores", "1", "--pacing", "sleep"]);
                let mut command = command(&words);
                command.stdout(Stdio::null()).stderr(Stdio::null());
                command.spawn().expect("this program can be started")
            })
            .collect();
        for (mut child, log) in children.into_iter().zip(&logs) {
            let begun = || std::fs::metadata(log).is_ok_and(|file| file.len() > 64);
            found.holds("a log that is begun", waited(begun), "none");
            rest(Duration::from_millis(dice.below(900)));
            let killed_ns = onbeat::clock::unix_ns();
            signal(&child, Signal::KILL);
            let _ = child.wait();
            let bytes = std::fs::read(log).expect("it is there");
            let Ok(run) = Run::read(&bytes) else {
                found.wrong(format!("round {round}: a log of {} bytes does not open", bytes.len()));
                continue;
            };
            let sent = (0..run.plan.len()).filter_map(|i| run.requests.sent(i)).max();
            let lived = killed_ns.saturating_sub(run.started_unix_ns()).cast_signed();
            let lost = lived - sent.map_or(0, |sent| sent.0);
            found.holds(format!("round {round}: a second lost at most"), lost < LOST_NS, lost);
            found.holds("a part of a run", !run.is_whole(), "a whole one");
        }
    }
    let trace = Written::new("torn.beat", torn_log());
    let told = onbeat(&["report", text(&trace.path)]);
    found.says("a torn tail", &flat(&told.out), &["bytes"]);
}

/// A log whose last block is cut.
fn torn_log() -> Vec<u8> {
    let bytes = whole_log();
    bytes[..bytes.len() - 100].to_vec()
}

/// A log of a short good run.
fn whole_log() -> Vec<u8> {
    let server = Recorder::start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = folder.path().join("run.beat");
    let trace = Written::new("trace.jsonl", lone(5, 5, 2));
    let url = server.url();
    let told = onbeat(&replay_words(&trace.path, &url, &log, &[]));
    assert_eq!(told.code, Some(0), "{}", told.err);
    std::fs::read(log).expect("it left a log")
}

/// I06: a full disk is told, ends in failure, and costs nothing that was written.
pub(crate) fn disk_full(_case: &Case, found: &mut Findings) {
    let server = Recorder::start();
    let trace = Written::new("trace.jsonl", lone(3_000, 0, 40));
    let url = server.url();
    let options = ["--force"];
    let words = replay_words(&trace.path, &url, Path::new("/dev/full"), &options);
    let told = onbeat(&words);
    found.holds("/dev/full refused", told.code.is_some_and(|code| code > 0), format!("{told:?}"));
    found.says("the refusal", &told.err, &["/dev/full"]);
    found.same("requests sent to it", &0, &server.look(<[_]>::len));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (small, kept) = (folder.path().join("small"), folder.path().join("kept.beat"));
    std::fs::create_dir(&small).expect("the folder is writable");
    let log = small.join("run.beat");
    let words = replay_words(&trace.path, &url, &log, &["--max-connections", "200"]);
    let lines = "mount -t tmpfs -o size=1m tmpfs \"$1\" || exit 77; kept=$2; log=$3; shift 3; \
        \"$@\"; code=$?; cp \"$log\" \"$kept\"; exit $code";
    let output = Command::new("unshare")
        .args(["-rm", "sh", "-c", lines, "sh", text(&small), text(&kept), text(&log)])
        .arg(command(&words).get_program())
        .args(command(&words).get_args())
        .env_remove("OPENAI_API_KEY")
        .output();
    let told = match output {
        Ok(output) if output.status.code() != Some(77) => Told::of(&output),
        _ => return found.skip("a small disk cannot be mounted here"),
    };
    found.same("exit code", &Some(1), &told.code);
    found.says("what is told", &flat(&told.err), &["log", "No space left on device"]);
    match read(&kept) {
        Some(run) => {
            let ended = (0..run.plan.len()).filter(|&i| run.requests.class(i).is_some()).count();
            found.holds("a part of the run", !run.is_whole() && ended > 0, ended);
        }
        None => found.wrong(format!("expected a log that opens, found none: {}", told.err)),
    }
}

/// I08: a key is in no file, no output and, given by the environment, in no list of processes.
pub(crate) fn secret(_case: &Case, found: &mut Findings) {
    let server = Recorder::answering(|seen| {
        let key = seen.header("authorization").unwrap_or_default().to_owned();
        let body = format!("{{\"error\":{{\"message\":\"bad key {key}\"}}}}");
        let head = format!(
            "HTTP/1.1 401 No\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        ((head + &body).into_bytes(), Then::GoesOn)
    });
    for by_option in [false, true] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let log = folder.path().join("run.beat");
        let trace = Written::new("trace.jsonl", lone(20, 30, 2));
        let url = server.url();
        let option: &[&str] =
            if by_option { &["--verbose", "--api-key", CANARY] } else { &["--verbose"] };
        let words = replay_words(&trace.path, &url, &log, option);
        let mut command = command(&words);
        if !by_option {
            command.env("OPENAI_API_KEY", CANARY);
        }
        let before = server.look(<[_]>::len);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("this program can be started");
        found.holds("requests", waited(|| server.look(<[_]>::len) > before), "none");
        let line = std::fs::read(format!("/proc/{}/cmdline", child.id())).unwrap_or_default();
        let told = Told::of(&child.wait_with_output().expect("it ends"));
        let mut places = vec![
            ("standard output", told.out.into_bytes()),
            ("standard error", told.err.into_bytes()),
            ("the log", std::fs::read(&log).unwrap_or_default()),
        ];
        for (name, words) in [
            ("the report", &["report", "--verbose", text(&log)][..]),
            ("the report as JSON", &["report", "--format", "json", text(&log)]),
            ("the page", &["report", "--format", "html", text(&log)]),
            ("the table", &["export", text(&log)]),
        ] {
            places.push((name, onbeat(words).out.into_bytes()));
        }
        if !by_option {
            places.push(("the command line", line));
        }
        for (name, bytes) in places {
            let there = bytes.windows(CANARY.len()).any(|part| part == CANARY.as_bytes());
            found.holds(format!("no key in {name}"), !there, "it");
            let said = !bytes.is_empty() || name == "standard error";
            found.holds(format!("something in {name}"), said, "nothing");
        }
        let run = read(&log).expect("it left a log");
        found.says("the server's words", run.error_text(0).unwrap_or_default(), &["bad key"]);
    }
    let arrived = server.look(|seen| {
        let with_key = |it: &&crate::server::Seen| {
            it.header("authorization").is_some_and(|value| value.contains(CANARY))
        };
        seen.iter().filter(with_key).count()
    });
    found.same("requests with the key", &40, &arrived);
}

/// I10: lengths and counts that lie are refused or passed over at once, whatever they claim.
pub(crate) fn lying_lengths(_case: &Case, found: &mut Findings) {
    let bytes = whole_log();
    let limit_ns = 1_000 * MILLI;
    for at in (8..bytes.len().min(2_048)).step_by(2) {
        for lie in [u32::MAX, 1 << 31, 0x0100_0000] {
            let mut lying = bytes.clone();
            let end = (at + 4).min(lying.len());
            lying[at..end].copy_from_slice(&lie.to_le_bytes()[..end - at]);
            let begun = onbeat::clock::monotonic_ns();
            if let Err(error) = Run::read(&lying) {
                found.holds("words", !error.to_string().is_empty(), "none");
            }
            let took = onbeat::clock::monotonic_ns() - begun;
            found.holds(format!("{lie:#x} at {at} within a second"), took < limit_ns, took);
        }
    }
    // The lengths of a block's header, where its checksum agrees with the lie.
    let first_block = 64;
    for (field, lie) in [(16, u32::MAX), (20, u32::MAX), (20, 1 << 30), (16, 1 << 30)] {
        let mut lying = bytes.clone();
        lying[first_block + field..first_block + field + 4].copy_from_slice(&lie.to_le_bytes());
        let mut crc = flate2::Crc::new();
        crc.update(&lying[first_block..first_block + 28]);
        crc.update(&lying[first_block + 32..]);
        lying[first_block + 28..first_block + 32].copy_from_slice(&crc.sum().to_le_bytes());
        let file = Written::new("lying.beat", &lying);
        let begun = onbeat::clock::monotonic_ns();
        let told = onbeat(&["report", text(&file.path)]);
        let took = onbeat::clock::monotonic_ns() - begun;
        found.holds("a refusal or a warning within 20 s", took < 20_000 * MILLI, took);
        let said = flat(&(told.out + &told.err));
        found.holds("no panic", !said.contains("panicked"), &said);
        found.holds("where it is", said.contains("byte") || said.contains("damaged"), &said);
    }
}

/// I12: what is no log of ours is told by name, and nothing crashes.
pub(crate) fn no_logs(_case: &Case, found: &mut Findings) {
    let mut newer = whole_log();
    newer[8..12].copy_from_slice(&[99, 0, 99, 0]);
    let mut crc = flate2::Crc::new();
    crc.update(&newer[..60]);
    newer[60..64].copy_from_slice(&crc.sum().to_le_bytes());
    let picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0".to_vec();
    for (name, bytes, words) in [
        ("newer.beat", newer, "version 99"),
        ("picture.png", picture, "picture.png"),
        ("empty.beat", Vec::new(), "empty"),
    ] {
        let file = Written::new(name, bytes);
        let told = onbeat(&["report", text(&file.path)]);
        found.same(format!("{name}: exit code"), &Some(1), &told.code);
        found.says(format!("{name}: what is told"), &flat(&told.err), &[words]);
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let told = onbeat(&["report", text(folder.path())]);
    found.same("a folder: exit code", &Some(1), &told.code);
    found.says("a folder: what is told", &flat(&told.err), &["folder"]);
}

/// I14: output that goes into files or to a dumb terminal has no control codes.
pub(crate) fn progress(_case: &Case, found: &mut Findings) {
    let server = Recorder::start();
    let short = Written::new("trace.jsonl", lone(3, 50, 2));
    let long = Written::new("trace.jsonl", lone(2, 4_500, 2));
    for (terminal, ui) in [("dumb", "auto"), ("xterm", "auto"), ("xterm", "simple")] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let log = folder.path().join("run.beat");
        let url = server.url();
        let trace = if ui == "simple" { &long } else { &short };
        let words = replay_words(&trace.path, &url, &log, &["--ui", ui]);
        let mut command = command(&words);
        command.env("TERM", terminal).env("COLUMNS", "40");
        let told = Told::of(&command.output().expect("this program can be started"));
        let what = format!("{terminal}, {ui}");
        let plain = |text: &str| !text.contains(['\x1b', '\r']);
        found.holds(format!("{what}: plain text"), plain(&told.out) && plain(&told.err), "codes");
        if ui == "simple" {
            let lines = told.err.lines().filter(|line| line.contains("sent ")).count();
            found.holds(format!("{what}: a line each period"), (1..=5).contains(&lines), lines);
            found.says(
                format!("{what}: a line"),
                &told.err,
                &["sent 1/2", "next send in", "lateness"],
            );
        }
    }
}

/// I16: nothing that is there is replaced unasked, nothing but a log's own file ever, and all of
/// that is known before anything is sent.
pub(crate) fn outputs(_case: &Case, found: &mut Findings) {
    let server = Recorder::start();
    let trace = Written::new("trace.jsonl", lone(1, 0, 2));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (there, link) = (folder.path().join("there.beat"), folder.path().join("link.beat"));
    let victim = folder.path().join("victim");
    std::fs::write(&there, "precious").expect("the folder is writable");
    std::fs::write(&victim, "precious").expect("the folder is writable");
    std::os::unix::fs::symlink(&victim, &link).expect("the folder is writable");
    let url = server.url();
    let tried =
        |log: &Path, options: &[&str]| onbeat(&replay_words(&trace.path, &url, log, options));
    let is = |file: &Path| std::fs::read_to_string(file).unwrap_or_default();
    for (name, log, options) in [
        ("a file that is there", &there, &[][..]),
        ("a link", &link, &[][..]),
        ("a link, by force", &link, &["--force"]),
        ("a folder", &folder.path().to_owned(), &["--force"]),
        ("a place that may not be written", &"/proc/run.beat".into(), &[]),
    ] {
        let told = tried(log, options);
        found.holds(format!("{name} refused"), told.code.is_some_and(|code| code > 0), &told.out);
        found.says(name, &told.err, &[text(log)]);
    }
    let told = tried(&there.join("run.beat"), &[]);
    found.holds("a file in a folder's place", told.code == Some(1), &told.out);
    found.says("a file in a folder's place", &told.err, &[text(&there), "not a folder"]);
    found.same("requests sent", &0, &server.look(<[_]>::len));
    found.same("what was there", "precious", is(&there).as_str());
    found.same("what the link leads to", "precious", is(&victim).as_str());
    let old = folder.path().join("old.beat");
    std::fs::write(&old, whole_log()).expect("the folder is writable");
    let told = tried(&old, &["--force"]);
    found.same("an old log, by force: exit code", &Some(0), &told.code);
    let mode = std::fs::metadata(&old).map(|file| file.permissions().mode() & 0o777).unwrap_or(0);
    found.same("mode of a log", &0o600, &mode);
}

/// I17: exit codes are those that are documented.
pub(crate) fn codes(_case: &Case, found: &mut Findings) {
    let good = Recorder::start();
    let half = Recorder::answering(|seen| {
        let body: Value = serde_json::from_str(&seen.body).unwrap_or_default();
        match seen.header("x-request-id").is_some_and(|id| id.ends_with(['0', '2', '4', '6', '8']))
        {
            true => (reply(&body), Then::GoesOn),
            false => (b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n".to_vec(), Then::GoesOn),
        }
    });
    let bad = Recorder::answering(|_| {
        (b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n".to_vec(), Then::GoesOn)
    });
    let trace = Written::new("trace.jsonl", lone(10, 1, 2));
    let broken = Written::new("broken.jsonl", "{\"timestamp\":");
    for (name, trace, url, options, code) in [
        ("all ok", &trace, good.url(), &[][..], 0),
        ("some failed", &trace, half.url(), &[], 0),
        ("some failed, and a limit", &trace, half.url(), &["--failed-request-threshold", "0.2"], 3),
        ("all failed", &trace, bad.url(), &[], 3),
        ("goals missed", &trace, good.url(), &["--goodput", "ttft:0.000001"], 0),
        ("bad input", &broken, good.url(), &[], 1),
        ("nobody there", &trace, "http://127.0.0.1:9".to_owned(), &[], 1),
        ("wrong usage", &trace, good.url(), &["--no-such-option"], 2),
        ("not held", &trace, good.url(), &["--max-lateness-us", "0"], 3),
    ] {
        let told = replay(&trace.path, &url, options).told;
        found.same(format!("{name}: exit code"), &Some(code), &told.code);
    }
}

/// I18: a server that goes and comes back costs the requests of that time; one that stays away
/// costs all that are left, each counted, unless the user set a limit.
pub(crate) fn storm(_case: &Case, found: &mut Findings) {
    let trace = Written::new("trace.jsonl", lone(300, 10, 2));
    for (comes_back, options) in [
        (true, &["--stop-after-failures", "1000"][..]),
        (false, &[][..]),
        (false, &["--stop-after-failures", "20"][..]),
    ] {
        let first = leaving(80);
        let address = first.address;
        let waits = std::thread::Builder::new()
            .name("comes-back".to_owned())
            .spawn(move || {
                rest(Duration::from_millis(1_300));
                drop(first);
                rest(Duration::from_millis(500));
                comes_back.then(|| {
                    Scripted::start_at(address, |_, mut stream| {
                        while request(&mut stream).is_some() {
                            answer(&mut stream, &good_stream());
                        }
                    })
                })
            })
            .expect("a thread");
        let replayed = replay(&trace.path, &format!("http://{address}"), options);
        let again = waits.join().expect("it ends");
        let run = replayed.log();
        let of = |end| (0..300).filter(|&i| run.requests.outcome(i) == Some(end)).count();
        let (ok, refused, never) = (of(End::Ok), of(End::ConnectError), of(End::NeverSent));
        let what = format!("comes back: {comes_back}, {options:?}");
        let broken = of(End::Disconnected);
        found.same(format!("{what}: every request"), &300, &(ok + refused + never + broken));
        found.holds(format!("{what}: some refused"), refused >= 5, refused);
        let given_up = options.contains(&"20");
        found.holds(
            format!("{what}: never sent only where given up"),
            (never > 0) == given_up,
            never,
        );
        found.same(
            format!("{what}: exit code"),
            &Some(if given_up { 3 } else { 0 }),
            &replayed.told.code,
        );
        if given_up {
            found.says(&what, &replayed.told.err, &["the run is given up"]);
            found.holds(format!("{what}: a whole log"), run.is_whole(), "a part of one");
        }
        if comes_back {
            let last = run.requests.class(299);
            found.same(format!("{what}: the last request"), &Some(Class::Ok), &last);
        }
        drop(again);
    }
}

/// A good server that closes each connection after its answer, so that nothing holds its port.
fn leaving(_answers: usize) -> Scripted {
    Scripted::start(|_, mut stream| {
        if request(&mut stream).is_some() {
            answer(&mut stream, LAST_ANSWER);
        }
        let _ = stream.flush();
    })
}
