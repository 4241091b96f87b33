//! Cases of group A whose subject is time in the trace.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use onbeat::mock::{self, MockConfig};
use onbeat_shared::log::Class;

use crate::case::{Case, MILLI, each_planned, holds_expected};
use crate::found::Findings;
use crate::product::{self, Told, name, planned, replay};
use crate::server::Recorder;

/// A01: three formats have three units; a named one is not guessed from magnitude.
pub(crate) fn units(case: &Case, found: &mut Findings) {
    each_planned(case, &[], found);
    for (file, format) in [("bailian.jsonl", "bailian_trace"), ("mooncake.jsonl", "mooncake_trace")]
    {
        let file = case.file(file);
        let plan = planned(&file, &["--custom-dataset-type", format], found);
        holds_expected(&case.expect, &plan, &format!("{} named", name(&file)), found);
    }
    // The seconds of one format, read as the milliseconds of another because the user says so.
    let options = ["--custom-dataset-type", "mooncake_trace", "--isl-block-size", "16"];
    let plan = planned(&case.file("bailian.jsonl"), &options, found);
    found.same("seconds named milliseconds", &vec![Some(0), Some(1_386_000)], &plan.due_ns());
}

/// A05: rows of one instant are kept, and leave in file order.
pub(crate) fn ties(case: &Case, found: &mut Findings) {
    let plans = each_planned(case, &[], found);
    let rows: Vec<u64> = plans[0].rows.iter().map(|row| row.row).collect();
    found.same("rows in planned order", &(1..=6).collect(), &rows);
    let server = Recorder::start();
    let replayed = replay(&case.file("mooncake.jsonl"), &server.url(), &[]);
    let run = replayed.log();
    let sent: Vec<_> = (0..run.plan.len()).filter_map(|i| run.requests.sent(i)).collect();
    found.same("requests sent", &case.number("n"), &i64::try_from(sent.len()).unwrap_or(-1));
    found.holds("instants of sending in file order", sent.is_sorted(), format!("{sent:?}"));
}

/// A09: a hole of nine hours is told, and a stop in it ends the run at once.
pub(crate) fn hole(case: &Case, found: &mut Findings) {
    let server = Recorder::start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (trace, log) = (case.file("mooncake.jsonl"), folder.path().join("run.beat"));
    let url = server.url();
    let words = product::replay_words(&trace, &url, &log, &["--ui", "simple"]);
    let mut child = product::command(&words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("this program can be started");
    let mut progress = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    while !line.contains("sent 1/2") || !line.contains("next send in") {
        line.clear();
        if progress.read_line(&mut line).expect("progress is text") == 0 {
            found.wrong("expected progress with the time to the next send, found none");
            break;
        }
    }
    found.says("progress", &line, &["next send in", " h "]);
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).expect("it runs");
    let stopped = onbeat::clock::monotonic_ns();
    let told = Told::of(&child.wait_with_output().expect("it ends"));
    let took_ms = (onbeat::clock::monotonic_ns() - stopped) / MILLI;
    // Less than the time that requests in flight would be given: nothing is in flight.
    found.holds("an end at once", took_ms < 9_000, format!("{took_ms} ms"));
    found.same("exit code", &Some(130), &told.code);
    let run = product::read(&log).expect("an interrupted run leaves a log");
    found.holds("a whole log", run.is_whole(), "a part of one");
    let classes: Vec<_> = (0..run.plan.len()).map(|i| run.requests.class(i)).collect();
    found.same("ends", &vec![Some(Class::Ok), Some(Class::NotReached)], &classes);
}

/// A15: seconds in a column of milliseconds run as told, with a warning. (The span of 60 rows a
/// second apart is 59 of them; the manifest counts 60.)
pub(crate) fn unit_warning(case: &Case, found: &mut Findings) {
    let plan = planned(&case.file("baseten.parquet"), &[], found);
    found.same("requests", &60, &plan.rows.len());
    let words = ["span 0.059 s for 60 rows", "looks like seconds"];
    found.says("the warning", &plan.told.err, &words);
}

/// A17: both ends of the window are in, its start is the zero, and what is left out is told.
pub(crate) fn window(case: &Case, found: &mut Findings) {
    let options = ["--fixed-schedule-start-offset", "1000", "--fixed-schedule-end-offset", "2000"];
    for plan in each_planned(case, &options, found) {
        found.same("due times", &vec![Some(0), Some(1_000 * MILLI)], &plan.due_ns());
        let rows: Vec<u64> = plan.rows.iter().map(|row| row.row).collect();
        found.same("rows", &vec![2, 3], &rows);
        let words = ["2 of 4 rows are planned", "1 lies before", "1 lies after"];
        found.says("what is left out", &plan.told.err, &words);
    }
}

/// A18: what a turn waits is counted from the end of the turn before it, so that service is in it
/// once: the server's own.
pub(crate) fn think_time(case: &Case, found: &mut Findings) {
    const SERVICE_MS: i64 = 100;
    let trace = case.file("baseten.parquet");
    let options = ["--no-open-loop-replay"];
    let plan = planned(&trace, &options, found);
    let sends = case.numbers("sends_ms");
    found.same("turns", &plan.rows.len(), &sends.len());
    let waits: Vec<i64> =
        sends.windows(2).map(|pair| (pair[1] - pair[0] - SERVICE_MS) * MILLI).collect();
    let thinks: Vec<i64> = plan.rows.iter().filter_map(|row| row.think_ns).collect();
    found.same("think times", &waits, &thinks);
    let config = MockConfig { overhead_ns: SERVICE_MS * MILLI, ..MockConfig::default() };
    let server = mock::spawn(config).expect("a mock on loopback");
    let url = format!("http://{}", server.address());
    let replayed = replay(&trace, &url, &options);
    let (run, requests) = (replayed.log(), &replayed.log().requests);
    let first = requests.sent(0).expect("the first turn leaves").0;
    for turn in 1..run.plan.len() {
        let end = requests.done(turn - 1).expect("a turn ends").0;
        let ready = requests.intended(turn).map(|at| at.0);
        found.same(format!("turn {turn} may leave at"), &Some(end + waits[turn - 1]), &ready);
        let sent = requests.sent(turn).expect("a turn leaves").0;
        found.holds(
            format!("turn {turn} not before {} ms", sends[turn]),
            sent - first >= sends[turn] * MILLI,
            format!("{} ns", sent - first),
        );
    }
}
