//! Judgements on what was measured.

use crate::doctor::measure::{Measured, Spread};
use crate::doctor::{Finding, Level};

/// A read of the clock that is no system call takes less.
const CLOCK_READ_GOOD_NS: i64 = 150;
/// Wake-up errors that the hybrid pacing hides at a small price.
const WAKE_GOOD_NS: i64 = 150_000;
/// Wake-up errors beyond what the hybrid pacing hides.
const WAKE_BAD_NS: i64 = 1_000_000;
/// Lateness of the floor's p99 that a run does not notice.
const FLOOR_GOOD_NS: i64 = 10_000;
/// The lateness from which a schedule counts as not held, unless a run sets another.
const FLOOR_BAD_NS: i64 = 1_000_000;
/// What helps when a core is taken away.
const HELP: &str = "see steal, isolation, interrupts and cpu_quota above; stop what else runs here";

/// All of them, or why there are none.
#[must_use]
pub fn all(measured: Result<&Measured, &str>) -> Vec<Finding> {
    match measured {
        Ok(measured) => vec![clock_read(measured), wake_up(measured), floor(measured)],
        Err(why) => vec![Finding::unknown("floor", why)],
    }
}

fn clock_read(measured: &Measured) -> Finding {
    const CHECK: &str = "clock_read";
    let ns = measured.clock_read_ns;
    let finding = |level| Finding::new(CHECK, level, format!("{ns} ns")).fact("clock_read_ns", ns);
    if ns <= CLOCK_READ_GOOD_NS {
        return finding(Level::Ok);
    }
    finding(Level::Better).help("a faster clock source, see clock_source above")
}

fn wake_up(measured: &Measured) -> Finding {
    const CHECK: &str = "wake_up";
    let level = level(measured.wake.p99_ns, WAKE_GOOD_NS, WAKE_BAD_NS);
    let words = format!("a sleeper wakes late by {}", text(measured.wake));
    let finding = spread(Finding::new(CHECK, level, words), measured.wake);
    if level == Level::Ok {
        return finding;
    }
    finding
        .command("onbeat replay --pacing spin ...")
        .help("which never sleeps and uses the whole core")
}

fn floor(measured: &Measured) -> Finding {
    const CHECK: &str = "floor";
    let level = level(measured.late.p99_ns, FLOOR_GOOD_NS, FLOOR_BAD_NS);
    let mut words =
        format!("a bare loop on CPU {} is late by {}", measured.cpu, text(measured.late));
    if measured.stalls > 0 {
        words += &format!(
            "; {} jumps over 50 us, {} in all, longest {}",
            measured.stalls,
            length(measured.stalled_ns),
            length(measured.gap_max_ns)
        );
    }
    let finding = spread(Finding::new(CHECK, level, words), measured.late)
        .fact("gap_max_ns", measured.gap_max_ns)
        .fact("stalls", measured.stalls)
        .fact("stalled_ns", measured.stalled_ns);
    if level == Level::Ok { finding } else { finding.help(HELP) }
}

fn level(ns: i64, good_ns: i64, bad_ns: i64) -> Level {
    match ns {
        ns if ns <= good_ns => Level::Ok,
        ns if ns < bad_ns => Level::Better,
        _ => Level::Problem,
    }
}

fn spread(finding: Finding, spread: Spread) -> Finding {
    finding
        .fact("p50_ns", spread.p50_ns)
        .fact("p99_ns", spread.p99_ns)
        .fact("max_ns", spread.max_ns)
}

fn text(spread: Spread) -> String {
    let Spread { p50_ns, p99_ns, max_ns } = spread;
    format!("p50 {}, p99 {}, max {}", length(p50_ns), length(p99_ns), length(max_ns))
}

/// A length of time for a person.
fn length(ns: i64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "shown with two digits")]
    let ns_f64 = ns as f64;
    match ns {
        ..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", ns_f64 / 1e3),
        _ => format!("{:.1} ms", ns_f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured() -> Measured {
        let quick = Spread { p50_ns: 30, p99_ns: 900, max_ns: 9_000 };
        Measured {
            cpu: 3,
            clock_read_ns: 31,
            late: quick,
            stalls: 0,
            stalled_ns: 0,
            gap_max_ns: 9_100,
            wake: Spread { p50_ns: 40_000, p99_ns: 90_000, max_ns: 2_000_000 },
        }
    }

    #[test]
    fn a_quiet_core_is_ok() {
        let findings = all(Ok(&measured()));
        assert!(findings.iter().all(|finding| finding.level == Level::Ok), "{findings:?}");
        let words = "a bare loop on CPU 3 is late by p50 30 ns, p99 900 ns, max 9.0 us";
        assert_eq!(findings[2].found, words);
    }

    #[test]
    fn a_core_that_is_taken_away_is_not() {
        let late = Spread { p50_ns: 30, p99_ns: 3_000_000, max_ns: 9_000_000 };
        let taken =
            Measured { late, stalls: 4, stalled_ns: 20_000_000, clock_read_ns: 900, ..measured() };
        let findings = all(Ok(&taken));
        assert_eq!(findings[0].level, Level::Better);
        assert_eq!(findings[2].level, Level::Problem);
        assert!(findings[2].found.contains("4 jumps over 50 us, 20.0 ms in all"));
        assert!(
            findings
                .iter()
                .all(|f| f.level == Level::Ok || f.help.is_some() || f.command.is_some())
        );
    }

    #[test]
    fn without_a_measurement_the_floor_is_unknown() {
        let findings = all(Err("CPU 3 may not be used"));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].level, Level::Unknown);
    }
}
