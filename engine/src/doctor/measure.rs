//! What no file says: how a pinned thread fares on this machine, in a second and a half.
//!
//! The thread first does nothing but read the clock and notices imaginary deadlines: nothing can be
//! on time more precisely on this core, so its lateness is the floor of every run. Then it naps as
//! a pacing core does and looks how late it wakes.

use std::thread::Builder;

use crate::clock::monotonic_ns;
use crate::pacer::Alarm;
use crate::replayer::affinity;
use crate::replayer::driver::DriverKind;
use crate::replayer::stall::THRESHOLD_NS;

/// How long the clock is watched.
const WATCH_NS: i64 = 1_000_000_000;
/// Between two imaginary deadlines: 10,000 of them a second.
const STEP_NS: i64 = 100_000;
/// Naps of one millisecond.
const NAPS: usize = 200;
const NAP_NS: i64 = 1_000_000;
/// Reads of the clock that are timed together, and how often.
const READS: i64 = 1_000;
const ROUNDS: usize = 20;

/// A few quantiles of a time, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Half are shorter.
    pub p50_ns: i64,
    /// One in a hundred is longer.
    pub p99_ns: i64,
    /// None is longer.
    pub max_ns: i64,
}

impl Spread {
    /// Of at least one time; the order does not matter. Quantiles by nearest rank.
    #[must_use]
    pub fn of(mut times: Vec<i64>) -> Option<Self> {
        times.sort_unstable();
        let at = |percent: usize| {
            let rank = (times.len() * percent).div_ceil(100);
            times.get(rank.checked_sub(1)?).copied()
        };
        Some(Self { p50_ns: at(50)?, p99_ns: at(99)?, max_ns: at(100)? })
    }
}

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// On which CPU.
    pub cpu: u16,
    /// One read of the clock, in nanoseconds, at best.
    pub clock_read_ns: i64,
    /// How late the imaginary deadlines were noticed.
    pub late: Spread,
    /// Jumps of the clock longer than a host stall's threshold.
    pub stalls: u32,
    /// Their length in all.
    pub stalled_ns: i64,
    /// The longest jump of the clock.
    pub gap_max_ns: i64,
    /// How late a sleeper woke.
    pub wake: Spread,
}

/// Measures on one CPU, with a thread of its own.
///
/// # Errors
/// Why it could not be measured, in words.
pub fn on_cpu(cpu: u16, driver: DriverKind) -> Result<Measured, String> {
    let measure = move || {
        affinity::pin(cpu).map_err(|error| format!("CPU {cpu} may not be used: {error}"))?;
        let clock_read_ns = clock_read_ns();
        let watched = watch();
        let naps = driver
            .block_on(naps())
            .and_then(|naps| naps)
            .map_err(|error| format!("a timer could not be used: {error}"))?;
        let (Some(late), Some(wake)) = (Spread::of(watched.late), Spread::of(naps)) else {
            return Err("the core was away the whole time".to_owned());
        };
        Ok(Measured {
            cpu,
            clock_read_ns,
            late,
            stalls: watched.stalls,
            stalled_ns: watched.stalled_ns,
            gap_max_ns: watched.gap_max_ns,
            wake,
        })
    };
    Builder::new()
        .name("onbeat-doctor".to_owned())
        .spawn(measure)
        .map_err(|error| format!("no thread could be started: {error}"))?
        .join()
        .unwrap_or_else(|_| Err("the measurement panicked".to_owned()))
}

struct Watched {
    late: Vec<i64>,
    stalls: u32,
    stalled_ns: i64,
    gap_max_ns: i64,
}

fn watch() -> Watched {
    let deadlines = usize::try_from(WATCH_NS / STEP_NS).unwrap_or(0);
    // Written once, so that the pages are there before they are timed.
    let mut late = vec![1; deadlines];
    late.clear();
    let start_ns = monotonic_ns();
    let (mut latest_ns, mut next_ns) = (start_ns, start_ns + STEP_NS);
    let mut watched = Watched { late, stalls: 0, stalled_ns: 0, gap_max_ns: 0 };
    while watched.late.len() < deadlines {
        let now_ns = monotonic_ns();
        let gap_ns = now_ns - latest_ns;
        latest_ns = now_ns;
        watched.gap_max_ns = watched.gap_max_ns.max(gap_ns);
        if gap_ns > THRESHOLD_NS {
            watched.stalls += 1;
            watched.stalled_ns += gap_ns;
        }
        while next_ns <= now_ns && watched.late.len() < deadlines {
            watched.late.push(now_ns - next_ns);
            next_ns += STEP_NS;
        }
    }
    watched
}

async fn naps() -> std::io::Result<Vec<i64>> {
    let alarm = Alarm::new()?;
    let mut late = Vec::with_capacity(NAPS);
    for _ in 0..NAPS {
        let deadline_ns = monotonic_ns() + NAP_NS;
        alarm.until(deadline_ns).await?;
        late.push(monotonic_ns() - deadline_ns);
    }
    Ok(late)
}

fn clock_read_ns() -> i64 {
    let round = || {
        let start_ns = monotonic_ns();
        for _ in 1..READS {
            std::hint::black_box(monotonic_ns());
        }
        (monotonic_ns() - start_ns) / READS
    };
    (0..ROUNDS).map(|_| round()).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_by_nearest_rank() {
        let spread = Spread::of((1..=200).rev().collect()).expect("some");
        assert_eq!(spread, Spread { p50_ns: 100, p99_ns: 198, max_ns: 200 });
        assert_eq!(Spread::of(vec![7]).expect("one").p50_ns, 7);
        assert_eq!(Spread::of(Vec::new()), None);
    }

    #[test]
    fn this_machine_can_be_measured() {
        let cpu = *affinity::allowed_cpus().expect("some").last().expect("one");
        let measured = on_cpu(cpu, DriverKind::Epoll).expect("measured");
        assert!(measured.clock_read_ns >= 0 && measured.late.p50_ns >= 0);
        assert!(measured.gap_max_ns > 0 && measured.wake.max_ns >= measured.wake.p50_ns);
        assert!(on_cpu(u16::MAX, DriverKind::Epoll).is_err());
    }
}
