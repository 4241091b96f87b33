//! Cases of group A whose subject is the open loop: that sending depends on the schedule alone.
//!
//! No check depends on the pace of this machine: servers hold answers back until something has
//! *arrived*, not for a time, and lateness is judged outside host stalls with a wide limit.

use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use onbeat_shared::metrics::lateness::{in_stall, lateness_ns};
use onbeat_shared::metrics::{ReportOptions, report};
use onbeat_shared::run::Run;
use tests::mooncake;
use tests::scripted::{Scripted, answer, good_stream, reads_of_a_request, withholding};

use crate::case::{Case, MILLI};
use crate::found::Findings;
use crate::product::{Written, command, replay, replay_words};
use crate::server::{NO_PYTHON, Odd, Recorder};

/// The most that a send may be late outside host stalls, in microseconds: wide, for a machine that
/// does other things too, and far from the two seconds that a stalled server takes.
const LATE_US: f64 = 100_000.0;
/// How long requests that should come are waited for.
const PATIENCE: Duration = Duration::from_secs(60);

fn lateness_p99_us(run: &Run) -> f64 {
    report(run, &ReportOptions::default())
        .schedule
        .lateness_outside_stalls_us
        .map_or(0.0, |late| late.p99)
}

/// A20: a server that holds 200 answers back until two seconds' worth of requests have come.
pub(crate) fn stall(_case: &Case, found: &mut Findings) {
    const GAP_MS: i64 = 10;
    const STALL: std::ops::Range<usize> = 100..300;
    let server = withholding(STALL);
    let trace = Written::new("trace.jsonl", mooncake(400, 10, 20, 2));
    let replayed = replay(&trace.path, &format!("http://{}", server.address), &[]);
    let run = replayed.log();
    found.same("exit code", &Some(0), &replayed.told.code);
    let ok = (0..run.plan.len()).filter(|&i| run.requests.is_ok(i)).count();
    found.same("requests that succeeded", &400, &ok);
    let p99 = lateness_p99_us(run);
    found.holds("a p99 send error under 100,000 us", p99 < LATE_US, format!("{p99} us"));
    let wait = |i: usize| {
        let due = run.plan[i].due.expect("it has a time").0;
        run.requests.done(i).map(|done| done.0 - due)
    };
    // Nobody is answered before 300 requests have come, the last of them not before its time.
    // (Requests that arrive together may change places at both ends.)
    let rest = |i: usize| i64::try_from(STALL.end - 1 - i).expect("small") * GAP_MS * MILLI;
    let whole = STALL.filter(|&i| wait(i).is_some_and(|wait| wait >= rest(i))).count();
    found.holds("180 of 200 requests to wait for the stall's end, from due", whole >= 180, whole);
    let mut waits: Vec<_> = STALL.filter_map(wait).collect();
    waits.sort_unstable();
    let p90 = waits.get(waits.len() * 9 / 10).copied().unwrap_or_default();
    found.holds("a p90 of the stall of 1 s or more", p90 >= 1_000 * MILLI, format!("{p90} ns"));
}

/// A22: the first ten sends are no worse than the run, and none is before its time.
pub(crate) fn start(_case: &Case, found: &mut Findings) {
    let server = Recorder::start();
    let trace = Written::new("trace.jsonl", mooncake(100, 10, 20, 2));
    let replayed = replay(&trace.path, &server.url(), &[]);
    let run = replayed.log();
    let limit = lateness_p99_us(run).max(LATE_US);
    found.same("requests that arrived", &100, &server.seen().len());
    for i in 0..run.plan.len() {
        let late = lateness_ns(run, i).unwrap_or(i64::MAX);
        found.holds(format!("request {i} not before its time"), late >= 0, late);
        let stalled = in_stall(run, i) == Some(true);
        let within = (late as f64) / 1e3 <= limit;
        found.holds(
            format!("request {i} within {limit} us"),
            i >= 10 || stalled || within,
            format!("{late} ns"),
        );
    }
}

/// A24: a thousand requests are open at once when no answer comes. The script's five seconds are
/// made so long that none does.
pub(crate) fn no_cap(case: &Case, found: &mut Findings) {
    let script = std::fs::read_to_string(case.file("hold.srv")).expect("the script can be read");
    let Some(server) = Odd::play(&case.cases, &script.replace("sleep 5000", "sleep 600000")) else {
        return found.skip(NO_PYTHON);
    };
    let peak = case.number("peak_open");
    let rows = usize::try_from(peak).expect("a count");
    let trace = Written::new("trace.jsonl", mooncake(rows, 1, 20, 2));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (url, log) = (server.url(), folder.path().join("run.beat"));
    let words = replay_words(&trace.path, &url, &log, &["--drain-seconds", "0"]);
    let mut child = command(&words)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("this program can be started");
    let open = || server.log().iter().filter(|line| line["line"].is_string()).count();
    let until = onbeat::clock::monotonic_ns() + i64::try_from(PATIENCE.as_nanos()).expect("small");
    let ended = |child: &mut std::process::Child| child.try_wait().is_ok_and(|end| end.is_some());
    while open() < rows && !ended(&mut child) && onbeat::clock::monotonic_ns() < until {
        rest(Duration::from_millis(50));
    }
    found.same("open requests before the first answer", &rows, &open());
    let _ = child.kill();
    let _ = child.wait();
}

/// Lets others run for a while, where nobody announces what is waited for.
pub(crate) fn rest(length: Duration) {
    let nobody = Mutex::new(());
    let lock = nobody.lock().expect("nobody else has it");
    drop(Condvar::new().wait_timeout(lock, length));
}

/// A25: more than one core can send is not a valid run, and the first lines say so.
pub(crate) fn saturated(_case: &Case, found: &mut Findings) {
    let server = Recorder::start();
    let rows = (0..2_000).map(|row| {
        format!(
            "{{\"timestamp\":{}.{:03},\"input_length\":20,\"output_length\":1,\"hash_ids\":[{row}]}}\n",
            row / 1_000,
            row % 1_000
        )
    });
    let trace = Written::new("trace.jsonl", rows.collect::<String>());
    // The limit of a user who expects precision.
    let options = ["--cores", "1", "--max-lateness-us", "1000", "--max-connections", "200"];
    let told = replay(&trace.path, &server.url(), &options).told;
    found.same("exit code", &Some(3), &told.code);
    let first: String = told.out.lines().take(8).collect::<Vec<_>>().join("\n");
    let words = ["NOT HELD", "CLIENT SATURATED", "requests per second that were offered", "late"];
    found.says("the first lines of the summary", &first, &words);
}

/// A27: head and body leave in one piece, and no answer waits for a delayed acknowledgement.
pub(crate) fn one_packet(_case: &Case, found: &mut Findings) {
    const REQUESTS: usize = 60;
    static PIECES: AtomicUsize = AtomicUsize::new(0);
    static WHOLE: AtomicUsize = AtomicUsize::new(0);
    let server = Scripted::start(|_, mut stream| {
        while let Some(reads) = reads_of_a_request(&mut stream) {
            PIECES.fetch_add(reads, Ordering::Relaxed);
            WHOLE.fetch_add(1, Ordering::Relaxed);
            answer(&mut stream, &good_stream());
        }
    });
    let trace = Written::new("trace.jsonl", mooncake(REQUESTS, 10, 20, 2));
    let options = ["--warm-connections", "1"];
    let replayed = replay(&trace.path, &format!("http://{}", server.address), &options);
    let run = replayed.log();
    found.same("requests that arrived", &REQUESTS, &WHOLE.load(Ordering::Relaxed));
    found.same("reads they took", &REQUESTS, &PIECES.load(Ordering::Relaxed));
    let waits = |i| Some(run.requests.first_byte(i)?.0 - run.requests.sent(i)?.0);
    let waits: Vec<i64> = (0..run.plan.len()).filter_map(waits).collect();
    // With the two algorithms at odds nearly every request on a warm connection takes 40 ms.
    let mode = waits.iter().filter(|wait| (38 * MILLI..46 * MILLI).contains(*wait)).count();
    found.holds("no mode at 40 ms", mode * 2 < REQUESTS, format!("{mode} of {REQUESTS} there"));
}
