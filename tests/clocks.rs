//! Clocks: the wall clock is written down and never subtracted, and the log says how good the
//! clocks of a run were.

use std::path::{Path, PathBuf};

use onbeat_shared::log::record::Record;
use onbeat_shared::log::sample;
use onbeat_shared::metrics::{self, ReportOptions};
use onbeat_shared::run::Run;
use onbeat_shared::units::{CoreIndex, RunNanos};
use serde_json::Value;
use tests::{Scenario, drivers, mooncake};

const HOUR_NS: i64 = 3_600_000_000_000;

/// A run whose wall clock was stepped by so much in its middle; with a suspended machine, the wall
/// clock goes on and the run's own does not, which is a step forward.
fn stepped(step_ns: i64) -> Run {
    let mut sample = sample::sample(5, 120);
    let zero = sample.manifest.started_unix_ns;
    for second in 1..4 {
        let time = RunNanos(second * 500_000_000);
        let wall_ns = time.0 + if second >= 2 { step_ns } else { 0 };
        let (unix_ns, monotonic_ns) = (zero.saturating_add_signed(wall_ns), 0);
        sample.push(CoreIndex::CONDUCTOR, Record::Anchor { time, unix_ns, monotonic_ns });
    }
    Run::read(&sample.bytes()).expect("a log")
}

/// Every number of a run's report, without its words about the run.
fn numbers(run: &Run) -> Value {
    let report = metrics::report(run, &ReportOptions::default());
    let mut value = serde_json::to_value(&report).expect("a report is JSON");
    let object = value.as_object_mut().expect("a report is an object");
    object.retain(|name, _| !name.contains("warnings"));
    for part in object.values_mut().filter_map(Value::as_object_mut) {
        part.retain(|name, _| !name.contains("warnings"));
    }
    value
}

#[test]
fn a_step_of_the_wall_clock_or_a_suspend_touches_no_number_and_is_said() {
    let still = stepped(0);
    assert_eq!(still.warnings, Vec::<String>::new());
    for step_ns in [HOUR_NS, -HOUR_NS] {
        let run = stepped(step_ns);
        let back = if step_ns < 0 { "back " } else { "" };
        let said = format!("the wall clock was stepped {back}by 1 h 00 min during the run");
        assert!(run.warnings.iter().any(|words| words.contains(&said)), "{:?}", run.warnings);
        assert_eq!(run.requests, still.requests);
        assert_eq!(numbers(&run), numbers(&still));
        assert_eq!(run.started_unix_ns(), still.started_unix_ns());
        for i in 0..run.requests.len() {
            let (sent, done) = (run.requests.sent(i), run.requests.done(i));
            if let (Some(sent), Some(done)) = (sent, done) {
                assert!((0..HOUR_NS).contains(&(done.0 - sent.0)), "request {i}");
            }
        }
    }
}

#[test]
fn a_log_ties_its_time_to_the_wall_twice_and_says_how_fine_its_clocks_are() {
    for driver in drivers() {
        let mut scenario = Scenario::new(&mooncake(4, 2, 10, 2));
        scenario.config.driver = Some(driver);
        let run = scenario.run().run;
        let anchors: Vec<_> =
            run.anchors.iter().filter(|anchor| anchor.core == CoreIndex::CONDUCTOR).collect();
        let (first, last) = (anchors[0], anchors[anchors.len() - 1]);
        assert_eq!(first.time, RunNanos(0));
        assert!(last.time > first.time, "one at zero, one at the end");
        let monotonic = |of: &onbeat_shared::run::Anchor| of.monotonic_ns.map(u64::cast_signed);
        let zero = monotonic(first).expect("both clocks were read");
        for anchor in &anchors {
            // The closing one is in the footer, which has the wall's time only.
            let run_ns = monotonic(anchor).map(|at| at - zero);
            assert!(run_ns.is_none_or(|run_ns| run_ns == anchor.time.0), "{anchor:?}");
            assert!(anchor.unix_ns > 0);
        }
        let pacing = &run.manifest.pacing;
        let step_ns = pacing.clock_step_ns.expect("the clock's resolution was measured");
        assert!((1..1_000_000).contains(&step_ns), "{step_ns} ns");
        assert!(pacing.wake_error_ns > 0, "the pacer's own granularity was measured");
    }
}

/// Where the wall clock may be read: none of these computes how long something took.
const WALL_READERS: [&str; 8] = [
    "cli/demo.rs",
    "cli/replay.rs",
    "clock.rs",
    "conductor/mod.rs",
    "conductor/warm_requests.rs",
    // A zero that is named is an instant of the wall clock.
    "conductor/zero.rs",
    "mock/reply.rs",
    "run/mod.rs",
];

#[test]
fn no_length_is_taken_from_the_wall_clock() {
    let engine = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/src");
    let mut folders = vec![engine.clone()];
    let mut readers = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the sources are there") {
            let path: PathBuf = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a source is text");
            let name = path.strip_prefix(&engine).expect("inside").display().to_string();
            assert!(!text.contains("ClockId::Realtime") || name == "clock.rs", "{name}");
            // `started_unix_ns()` is a fact of a log.
            if text.replace("started_unix_ns(", "").contains("unix_ns()") {
                readers.push(name);
            }
        }
    }
    readers.sort();
    assert_eq!(readers, WALL_READERS);
}
