//! The loop of a pacing core: fire what is due, do the chores, wait the right way, again.
//!
//! This is the only task of a core that waits for time. Everything it calls is a transition of
//! [`super::core::Core`]; how it waits is [`crate::pacer`]'s. It ends when every planned request of
//! the core has its end, or the run was stopped and nothing is in flight any more.

use std::io;
use std::rc::Rc;

use onbeat_shared::log::outcome::Class;
use onbeat_shared::log::record::Record;
use onbeat_shared::units::RunNanos;

use super::core::{Core, CoreHandle};
use super::stall::{Span, StallWatch};
use super::{Pacing, Shared, Stop};
use crate::clock::{monotonic_ns, thread_cpu_ns};
use crate::pacer::{Alarm, Yielder};

/// Limits, flushes and the stop flag are looked at this often.
const CHORES_NS: i64 = 10_000_000;
/// A block that is not full is handed to the writer after this long: with the writer's own period a
/// kill loses well under a second.
const FLUSH_NS: i64 = 250_000_000;

/// Paces one core to its end. Runs as a task of its own, because a runtime never parks while its
/// main future is runnable. Waking up later than `wake_margin_ns` is the host's doing.
pub(super) async fn pace(
    core: &CoreHandle,
    alarm: &Rc<Alarm>,
    shared: &std::sync::Arc<Shared>,
    wake_margin_ns: i64,
) -> io::Result<()> {
    let (core, alarm, shared) = (Rc::clone(core), Rc::clone(alarm), std::sync::Arc::clone(shared));
    monoio::spawn(async move {
        let yielder = Yielder::new();
        let mut pacer = Pacer::new(monotonic_ns(), wake_margin_ns);
        loop {
            // A statement of its own: a borrow in the `match` head would last across its awaits.
            let step = pacer.step(&mut core.borrow_mut(), &shared);
            match step {
                Step::Done => return Ok(()),
                Step::Turn => yielder.turn().await,
                Step::Sleep { until_ns } => {
                    alarm.wait(until_ns).await?;
                    pacer.woke(&mut core.borrow_mut());
                }
            }
        }
    })
    .await
}

enum Step {
    Done,
    Turn,
    Sleep { until_ns: i64 },
}

struct Pacer {
    watch: StallWatch,
    wake_margin_ns: i64,
    next_chores_ns: i64,
    latest_chores_ns: i64,
    /// The latest chores came too late to judge by time limits.
    excused: bool,
    next_flush_ns: i64,
    drained_ns: i64,
}

impl Pacer {
    fn new(now_ns: i64, wake_margin_ns: i64) -> Self {
        Self {
            watch: StallWatch::new(now_ns, thread_cpu_ns()),
            wake_margin_ns,
            next_chores_ns: now_ns,
            latest_chores_ns: now_ns,
            excused: false,
            next_flush_ns: now_ns + FLUSH_NS,
            drained_ns: i64::MAX,
        }
    }

    fn step(&mut self, core: &mut Core, shared: &Shared) -> Step {
        let worked = std::mem::take(&mut core.worked);
        let span = self.watch.look(monotonic_ns(), worked, thread_cpu_ns);
        log_stall(core, span);
        let more = core.fire_due();
        let now_ns = monotonic_ns();
        if now_ns >= self.next_chores_ns {
            self.next_chores_ns = now_ns + CHORES_NS;
            self.chores(core, shared, now_ns);
        }
        if core.remaining == 0 {
            return Step::Done;
        }
        let pacing = core.assignment.pacing;
        if more || pacing == Pacing::Spin {
            return Step::Turn;
        }
        let due_ns = core.next_due().map_or(i64::MAX, |due| due.0.saturating_add(core.zero_ns));
        let until_ns = due_ns.saturating_sub(pacing.margin_ns()).min(self.next_chores_ns);
        if until_ns <= now_ns {
            return Step::Turn;
        }
        core.arm(until_ns);
        self.watch.sleeps(monotonic_ns(), thread_cpu_ns());
        Step::Sleep { until_ns }
    }

    fn woke(&mut self, core: &mut Core) {
        // The alarm may have been moved forward while the core slept.
        let wanted_ns = core.disarm();
        let margin_ns = match core.assignment.pacing {
            // It keeps no margin, and is as late as this host wakes a sleeper at its ordinary worst.
            Pacing::Sleep => self.wake_margin_ns,
            other => other.margin_ns(),
        };
        let span = self.watch.woke(monotonic_ns(), wanted_ns, margin_ns, thread_cpu_ns());
        log_stall(core, span);
    }

    fn chores(&mut self, core: &mut Core, shared: &Shared, now_ns: i64) {
        // Ending connections by the hundred is work, and no host's jitter.
        core.worked = true;
        // After a pause of our own (a stopped process, a host that was away) what the servers sent
        // meanwhile has not been read. It is by the next chores, and then limits strike again.
        let away = now_ns - self.latest_chores_ns > 2 * CHORES_NS;
        self.latest_chores_ns = now_ns;
        self.excused = away && !self.excused;
        if !self.excused {
            core.check_limits(RunNanos(now_ns - core.zero_ns));
        }
        core.report_next_due();
        core.counters.set_lost(core.sink.lost_records());
        if now_ns >= self.next_flush_ns {
            self.next_flush_ns = now_ns + FLUSH_NS;
            core.sink.flush();
        }
        let stop = shared.stop();
        if stop == Stop::No {
            return;
        }
        if !core.stopping {
            core.stop();
            self.drained_ns = now_ns.saturating_add(core.assignment.drain_ns);
        }
        if stop == Stop::Now || now_ns >= self.drained_ns {
            core.doom_all(Class::Interrupted);
        }
        if !core.has_in_flight() {
            core.give_up_unsent();
        }
    }
}

fn log_stall(core: &mut Core, span: Option<Span>) {
    if let Some(span) = span {
        core.sink.push(&Record::Stall {
            start: RunNanos(span.start_ns - core.zero_ns),
            length_ns: span.length_ns.cast_unsigned(),
        });
    }
}
