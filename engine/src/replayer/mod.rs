//! Sends the plan: one pinned thread per core, each with its own connections, pacer and log buffer.
//!
//! Cores share nothing while they run but the immutable plan and bodies, a stop flag that is only
//! read, and their queues to the writer thread. The start barrier is one absolute instant: cores
//! report that they are ready, the conductor chooses zero, and from then until the last request has
//! ended a core does not allocate, lock, format or parse JSON trees (opening a connection that the
//! warm-up did not foresee is the one exception, and it is counted). Global decisions belong to
//! [`crate::conductor`].

pub mod affinity;
pub mod counters;
pub mod cues;
pub mod driver;
pub mod realtime;
pub mod sink;
pub mod stall;
pub mod troupe;

mod cancelling;
mod connection;
mod connections;
mod core;
mod exchange;
mod idle;
mod pace;
mod sealed;
mod slot;
mod starved;
#[cfg(test)]
pub(crate) mod transitions;

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};

use crossbeam::channel::Sender;
use onbeat_shared::log::header::CoreTotals;
use onbeat_shared::units::CoreIndex;

use self::core::{Core, CoreHandle};
use self::counters::Counters;
use self::driver::DriverKind;
use self::realtime::Realtime;
use self::sink::{Exchange, Sink};
use self::troupe::{Troupe, UserRun};
use crate::clock::{monotonic_ns, thread_cpu_ns};
use crate::net::way::Way;
use crate::pacer::Alarm;
use crate::plan::Plan;
use crate::policy::deadline::Limits;
use crate::policy::reuse::Strategy;
use crate::render::Secret;
use crate::render::supply::{Source, Supply};

/// How a core waits for the next due time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// Never sleeps: the core polls from zero to the end.
    Spin,
    /// Sleeps until `margin_ns` before the due time, then polls.
    Hybrid {
        /// The measured wake-up error, with a margin; 0 until it is measured.
        margin_ns: i64,
    },
    /// Sleeps until the due time: late by the wake-up error, and nearly free.
    Sleep,
}

/// What one core is told before it starts.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// Its number.
    pub core: CoreIndex,
    /// The CPU to run on; `None` leaves it to the kernel.
    pub cpu: Option<u16>,
    /// Blocks of its log, see [`sink`].
    pub log_blocks: usize,
    /// How sockets are driven.
    pub driver: DriverKind,
    /// For each server, where to connect, and from where.
    pub ways: Vec<Arc<Way>>,
    /// Which connection is used again, and for whom.
    pub reuse: Strategy,
    /// Whether answers are streams.
    pub streaming: bool,
    /// How to wait.
    pub pacing: Pacing,
    /// Ask to run before every ordinary thread.
    pub realtime: bool,
    /// Time limits of an exchange.
    pub limits: Limits,
    /// For each server, connections to open before zero.
    pub warm_connections: Vec<usize>,
    /// Most connections, if the user set a cap.
    pub max_connections: Option<usize>,
    /// How long requests in flight may finish after a stop.
    pub drain_ns: i64,
    /// Texts that must not reach the log, should a server echo them.
    pub secrets: Arc<[Secret]>,
    /// Whether the same goes for prompts.
    pub recorded_prompts: bool,
}

/// What all cores of a run share.
#[derive(Debug)]
pub struct Shared {
    /// What to send and when.
    pub plan: Arc<Plan>,
    /// The bytes of it.
    pub source: Source,
    /// What a user-driven run has beside them.
    pub users: Option<Arc<UserRun>>,
    /// The schedule's zero on the monotonic clock; [`Shared::NO_ZERO`] until all are ready.
    pub zero_ns: AtomicI64,
    /// [`Stop`] as a number.
    pub stop: AtomicU8,
}

/// How a run is to end before its plan does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Stop {
    /// Go on.
    No = 0,
    /// Send nothing new; let what is in flight finish.
    Drain = 1,
    /// End everything now.
    Now = 2,
}

/// A core's answer to the start barrier.
#[derive(Debug)]
pub struct CoreReady {
    /// Which core.
    pub core: CoreIndex,
    /// By how much a sleeping core wakes late here, in nanoseconds.
    pub wake_error_ns: i64,
    /// Connections open.
    pub connections: usize,
    /// Connections that were opened over TLS.
    pub secured: usize,
    /// Of those, the ones whose session resumed an earlier one.
    pub resumed: usize,
    /// Why others could not be opened.
    pub failures: Vec<io::Error>,
    /// What came of asking for real-time scheduling, if it was to be asked for.
    pub realtime: Option<Realtime>,
}

impl Shared {
    /// How many requests are planned; in a user-driven run, how many have left so far.
    #[must_use]
    pub fn planned(&self) -> u64 {
        match &self.users {
            Some(run) => u64::from(run.gates.requests()),
            None => self.plan.rows.len() as u64,
        }
    }

    /// "Zero has not been chosen yet".
    pub const NO_ZERO: i64 = i64::MIN;

    /// How the run is to end.
    #[must_use]
    pub fn stop(&self) -> Stop {
        match self.stop.load(Ordering::Relaxed) {
            0 => Stop::No,
            1 => Stop::Drain,
            _ => Stop::Now,
        }
    }
}

impl Pacing {
    /// How long before the due time a core wakes up.
    #[must_use]
    pub const fn margin_ns(self) -> i64 {
        match self {
            Self::Hybrid { margin_ns } => margin_ns,
            Self::Spin | Self::Sleep => 0,
        }
    }

    /// The name `--pacing` knows it by.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Spin => "spin",
            Self::Hybrid { .. } => "hybrid",
            Self::Sleep => "sleep",
        }
    }
}

/// Runs one core on the calling thread until its part of the plan has ended.
///
/// # Errors
/// When the runtime cannot be built or its timer fails; nothing has been sent then.
pub fn run_core(
    assignment: Assignment,
    shared: &Arc<Shared>,
    counters: Arc<Counters>,
    exchange: &Arc<Exchange>,
    ready: &Sender<CoreReady>,
) -> io::Result<CoreTotals> {
    if let Some(cpu) = assignment.cpu {
        affinity::pin(cpu).map_err(|error| not_pinned(cpu, &error))?;
    }
    let sink = Sink::new(Arc::clone(exchange));
    let driver = assignment.driver;
    // The ring's own threads, if it starts any, inherit it.
    let realtime = assignment.realtime.then(|| realtime::ask(assignment.pacing));
    let ready = Barrier { ready: ready.clone(), realtime };
    driver.block_on(life(assignment, Arc::clone(shared), counters, sink, ready))?
}

/// What is said of a CPU that a core cannot have.
fn not_pinned(cpu: u16, error: &io::Error) -> io::Error {
    let words = format!(
        "CPU {cpu} cannot be had to send from ({error}): it may be offline, or this process's \
         cpuset or a seccomp profile may forbid it; name others with --cores (`nproc`, `taskset \
         -p $$`)"
    );
    io::Error::new(error.kind(), words)
}

/// Where a core says that it is ready, and what it knows already.
struct Barrier {
    ready: Sender<CoreReady>,
    realtime: Option<Realtime>,
}

/// A core from its warm-up to its last record.
async fn life(
    mut assignment: Assignment,
    shared: Arc<Shared>,
    counters: Arc<Counters>,
    sink: Sink,
    barrier: Barrier,
) -> io::Result<CoreTotals> {
    /// Naps of one millisecond each: a calibration takes about 50 ms.
    const CALIBRATION_NAPS: usize = 40;
    let alarm = Rc::new(Alarm::new()?);
    let wake_error_ns = alarm.calibrate(CALIBRATION_NAPS).await?;
    if let Pacing::Hybrid { margin_ns } = &mut assignment.pacing
        && *margin_ns == 0
    {
        *margin_ns = margin_for(wake_error_ns);
    }
    let core_index = assignment.core;
    let (plan, supply) = (Arc::clone(&shared.plan), Supply::of(&shared.source, core_index));
    let troupe = shared.users.as_ref().map(|run| Box::new(Troupe::new(run, core_index)));
    let core = Core::new(assignment, plan, supply, troupe, counters, sink, Rc::clone(&alarm));
    core.borrow_mut().zero_ns = monotonic_ns();
    core.borrow_mut().wake_margin_ns = wake_margin(wake_error_ns);
    core.borrow_mut().warm_up();
    while core.borrow().is_opening() && shared.stop() == Stop::No {
        alarm.until(monotonic_ns() + 200_000).await?;
        let mut core = core.borrow_mut();
        let now = core.now();
        core.check_limits(now);
        core.look_again();
    }
    let Barrier { ready, realtime } = barrier;
    // A conductor that has gone away has already failed the run.
    let _ = ready.send(CoreReady { wake_error_ns, realtime, ..core.borrow_mut().readiness() });
    let begun = match zero(&shared, &alarm).await? {
        Some(zero_ns) => {
            core.borrow_mut().start(zero_ns);
            if let Err(error) = pace::pace(&core, &alarm, &shared).await {
                // Nobody wakes this core any more: what it knows goes into the log before it ends.
                core.borrow_mut().give_up();
                return Err(error);
            }
            true
        }
        None => false,
    };
    wind_down(&core, &alarm).await?;
    let Ok(core) = Rc::try_unwrap(core) else {
        return Err(io::Error::other("a task outlived its core"));
    };
    if begun {
        let core = core.into_inner();
        core.counters.set_lost(core.sink.lost_records());
        core.sink.finish();
    }
    Ok(CoreTotals {
        records: 0,
        cpu_ns: thread_cpu_ns().cast_unsigned(),
        involuntary_switches: affinity::involuntary_switches(),
    })
}

/// Waits for the schedule's zero; `None` when the run has ended before it began: nobody reads
/// records then, and there are none.
async fn zero(shared: &Shared, alarm: &Alarm) -> io::Result<Option<i64>> {
    loop {
        let zero_ns = shared.zero_ns.load(Ordering::Acquire);
        if zero_ns != Shared::NO_ZERO {
            return Ok(Some(zero_ns));
        }
        if shared.stop() == Stop::Now {
            return Ok(None);
        }
        alarm.until(monotonic_ns() + 1_000_000).await?;
    }
}

/// How late a sleeper's waking is still its host's ordinary doing: twice the wake-up error, at
/// least 50 µs, which is the best behaviour of a host, and at most 2 ms.
fn wake_margin(wake_error_ns: i64) -> i64 {
    (wake_error_ns * 2).clamp(50_000, 2_000_000)
}

/// How long before a due time a core wakes up: twice the wake-up error, between 4 and 8 ms. Where
/// waking up needs less, it is 4 ms still: a core that has just slept sends microseconds later than
/// one that has not, and shorter naps save little. On a Poisson schedule of 1,000 requests a second
/// one wait in fifty is longer than that. At 250 even ones a second it does not sleep.
fn margin_for(wake_error_ns: i64) -> i64 {
    (wake_error_ns * 2).clamp(4_000_000, 8_000_000)
}

/// Closes every connection and waits until the tasks that own them have finished.
async fn wind_down(core: &CoreHandle, alarm: &Alarm) -> io::Result<()> {
    core.borrow_mut().hang_up_all();
    while core.borrow().tasks > 0 {
        alarm.until(monotonic_ns() + 200_000).await?;
        let mut core = core.borrow_mut();
        core.hang_up_all();
        core.look_again();
        // The pacer has had its last turn; a reader may be waiting for another.
        core.take_turn();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_cannot_be_had_is_named_with_the_option() {
        let words = not_pinned(7, &rustix::io::Errno::INVAL.into()).to_string();
        assert!(words.starts_with("CPU 7 cannot be had") && words.contains("--cores"), "{words}");
    }

    #[test]
    fn the_margin_covers_the_wake_up_error_within_bounds() {
        assert_eq!(wake_margin(0), 50_000);
        assert_eq!(wake_margin(100_000), 200_000);
        assert_eq!(wake_margin(i64::MAX / 4), 2_000_000);
        assert_eq!(margin_for(100_000), 4_000_000, "a core that has slept is slower");
        assert_eq!(margin_for(3_000_000), 6_000_000);
        assert_eq!(margin_for(i64::MAX / 4), 8_000_000);
    }
}
