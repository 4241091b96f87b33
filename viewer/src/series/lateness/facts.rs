//! What the precision of a run rests on, as lines of a table: how cores waited, what the machine
//! allowed, and how its clocks went.

use onbeat_shared::{
    metrics::Report,
    run::{Anchor, Run},
    units::CoreIndex,
};

use crate::quantity;

/// CPUs that are named at most.
const CPUS: usize = 8;

/// A fact: its name, and what the log says of it.
pub type Fact = (&'static str, String);

/// Everything the log says.
#[must_use]
pub fn facts(run: &Run, report: &Report) -> Vec<Fact> {
    let precision = &report.run.precision;
    // A result of another program says nothing of its precision, not even how it waited.
    let is_silent = named(&precision.pacing) == quantity::NO_DATA;
    let or_not_asked = |words: &Option<String>| match words.as_deref() {
        Some(words) => memory_words(words),
        None if is_silent => quantity::NO_DATA.to_owned(),
        None => "not asked for".to_owned(),
    };
    let mut facts = vec![
        ("pacing", pacing_words(&precision.pacing)),
        ("sockets", named(&precision.driver)),
        ("pinned to", cores_words(&report.run.cores)),
        (
            "wakes late by",
            match precision.wake_error_ns {
                Some(error) => quantity::duration(error as f64),
                None if precision.pacing == "spin" => "never sleeps".to_owned(),
                None => quantity::NO_DATA.to_owned(),
            },
        ),
        ("a stall is above", quantity::duration(precision.stall_threshold_ns as f64)),
        ("lateness limit", quantity::duration(report.notes.max_lateness_us as f64 * 1e3)),
        ("memory locked", or_not_asked(&precision.memory_lock)),
        ("memory node", or_not_asked(&precision.memory_node)),
        ("real time", or_not_asked(&precision.realtime)),
        ("wall clock drift", drift_words(run)),
    ];
    if let Some((used, taken)) = processor(run) {
        facts.push(("processor time", quantity::duration(used as f64)));
        facts.push(("taken away", format!("{} times", quantity::count(taken))));
    }
    facts
}

fn cores_words(cpus: &[u16]) -> String {
    if cpus.is_empty() {
        return quantity::NO_DATA.to_owned();
    }
    let shown: Vec<_> = cpus.iter().take(CPUS).map(u16::to_string).collect();
    let more = cpus.len().saturating_sub(CPUS);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("CPU {}{more}", shown.join(", "))
}

fn named(name: &str) -> String {
    if name.is_empty() || name == "unknown" {
        quantity::NO_DATA.to_owned()
    } else {
        name.to_owned()
    }
}

fn pacing_words(kind: &str) -> String {
    match kind {
        "spin" => "spin: polls all the time".to_owned(),
        "hybrid" => "hybrid: sleeps, then polls".to_owned(),
        "sleep" => "sleep: the kernel wakes it".to_owned(),
        other => named(other),
    }
}

fn memory_words(found: &str) -> String {
    found.replace('_', " ")
}

/// By how much the wall clock went ahead of the run's clock from zero to the log's last reading of
/// both.
fn drift_words(run: &Run) -> String {
    let conductor = |anchor: &&Anchor| anchor.core == CoreIndex::CONDUCTOR;
    let first = run.anchors.iter().find(conductor);
    let last = run.anchors.iter().rev().find(conductor);
    let (Some(first), Some(last)) = (first, last) else { return quantity::NO_DATA.to_owned() };
    let run_ns = i128::from(last.time.0) - i128::from(first.time.0);
    if run_ns <= 0 {
        return quantity::NO_DATA.to_owned();
    }
    let ahead = i128::from(last.unix_ns) - i128::from(first.unix_ns) - run_ns;
    let ahead = ahead as f64;
    let parts = ahead / run_ns as f64 * 1e6;
    format!("{} ({} ppm)", quantity::duration(ahead), quantity::number(parts))
}

/// Processor time of all cores together, and how often it was taken away from them.
fn processor(run: &Run) -> Option<(u64, u64)> {
    let cores = &run.footer.as_ref()?.cores;
    if cores.is_empty() {
        return None;
    }
    let used = cores.iter().fold(0_u64, |sum, core| sum.saturating_add(core.cpu_ns));
    let taken = cores.iter().fold(0_u64, |sum, core| sum.saturating_add(core.involuntary_switches));
    Some((used, taken))
}

#[cfg(test)]
mod tests {
    use onbeat_shared::{
        log::sample::{self, Sample},
        metrics::{ReportOptions, report},
    };

    use super::*;

    fn found(run: &Run, name: &str) -> String {
        let report = report(run, &ReportOptions::default());
        let facts = facts(run, &report);
        facts.into_iter().find(|fact| fact.0 == name).expect(name).1
    }

    #[test]
    fn facts_are_words_with_units() {
        let run = Run::read(&sample::log(2, 50)).expect("a log");
        assert_eq!(found(&run, "pacing"), "spin: polls all the time");
        assert_eq!(found(&run, "a stall is above"), "50 µs");
        assert_eq!(found(&run, "lateness limit"), "1 ms");
        assert_eq!(found(&run, "memory locked"), "not asked for");
        assert_eq!(found(&run, "pinned to"), "CPU 0, 1");
        assert_eq!(found(&run, "wall clock drift"), "0 µs (0 ppm)");
    }

    #[test]
    fn what_a_log_does_not_say_is_a_word() {
        let mut sample = Sample::new();
        sample.closed = false;
        sample.manifest.pacing.kind = "unknown".to_owned();
        sample.manifest.pacing.wake_error_ns = 0;
        let run = Run::read(&sample.bytes()).expect("a log");
        for name in ["pacing", "wakes late by", "wall clock drift"] {
            assert_eq!(found(&run, name), quantity::NO_DATA, "{name}");
        }
    }
}
