//! The loop of a pacing core: fire what is due, do the chores, wait the right way, again.
//!
//! This is the only task of a core that waits for time. Everything it calls is a transition of
//! [`super::core::Core`]; how it waits is [`crate::pacer`]'s. It ends when every planned request of
//! the core has its end, or the run was stopped and nothing is in flight any more.

use std::io;
use std::rc::Rc;

use onbeat_shared::units::RunNanos;

use super::core::{Core, CoreHandle, LOOK_AGAIN_NS};
use super::{Pacing, Shared, Stop};
use crate::clock::monotonic_ns;
use crate::pacer::{Alarm, Yielder};

/// Limits, flushes and the stop flag are looked at this often.
const CHORES_NS: i64 = 10_000_000;
/// A connection is opened for requests to come when nothing is due for so long.
const OPENING_NS: i64 = 300_000;
/// A block that is not full is handed to the writer after this long: with the writer's own period a
/// kill loses well under a second.
const FLUSH_NS: i64 = 250_000_000;

/// Paces one core to its end. Runs as a task of its own, because a runtime never parks while its
/// main future is runnable.
pub(super) async fn pace(
    core: &CoreHandle,
    alarm: &Rc<Alarm>,
    shared: &std::sync::Arc<Shared>,
) -> io::Result<()> {
    let (core, alarm, shared) = (Rc::clone(core), Rc::clone(alarm), std::sync::Arc::clone(shared));
    monoio::spawn(async move {
        let yielder = Yielder::new();
        let mut pacer = Pacer::new(monotonic_ns());
        loop {
            // A statement of its own: a borrow in the `match` head would last across its awaits.
            let step = pacer.step(&mut core.borrow_mut(), &shared);
            match step {
                Step::Done => return Ok(()),
                Step::Turn => yielder.turn().await,
                Step::Sleep { until_ns } => {
                    alarm.wait(until_ns).await?;
                    core.borrow_mut().disarm();
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
    next_chores_ns: i64,
    latest_chores_ns: i64,
    /// The latest chores came too late to judge by time limits.
    excused: bool,
    next_flush_ns: i64,
    drained_ns: i64,
}

impl Pacer {
    const fn new(now_ns: i64) -> Self {
        Self {
            next_chores_ns: now_ns,
            latest_chores_ns: now_ns,
            excused: false,
            next_flush_ns: now_ns + FLUSH_NS,
            drained_ns: i64::MAX,
        }
    }

    fn step(&mut self, core: &mut Core, shared: &Shared) -> Step {
        let now_ns = monotonic_ns();
        core.look(now_ns);
        core.take_turn();
        let more = core.fire_due_at(RunNanos(now_ns - core.zero_ns));
        // A turn in which nothing was due, as nearly all are, reads the clock once.
        let now_ns = if core.worked { monotonic_ns() } else { now_ns };
        core.cancel_due(RunNanos(now_ns - core.zero_ns));
        if now_ns >= self.next_chores_ns {
            self.next_chores_ns = now_ns + CHORES_NS;
            self.chores(core, shared, now_ns);
        }
        if core.remaining == 0 {
            return Step::Done;
        }
        let pacing = core.assignment.pacing;
        let due_ns = core.next_due().map_or(i64::MAX, |due| due.0.saturating_add(core.zero_ns));
        let until_ns = due_ns.saturating_sub(pacing.margin_ns()).min(self.next_chores_ns);
        let cancel = core.next_cancellation();
        let cancel_ns = cancel.map_or(i64::MAX, |at| at.0.saturating_add(core.zero_ns));
        let until_ns = until_ns.min(cancel_ns);
        let pause = !more && until_ns.saturating_sub(now_ns) > OPENING_NS;
        if pause && core.open_ahead(RunNanos(now_ns - core.zero_ns)) {
            return Step::Turn;
        }
        if more || pacing == Pacing::Spin {
            return Step::Turn;
        }
        if until_ns <= now_ns {
            return Step::Turn;
        }
        core.supply.stock();
        core.arm(until_ns);
        Step::Sleep { until_ns }
    }

    fn chores(&mut self, core: &mut Core, shared: &Shared, now_ns: i64) {
        // Ending connections by the hundred is work, and no host's jitter.
        core.worked = true;
        // After a pause of our own (a stopped process, a host that was away) what the servers sent
        // meanwhile has not been read. It is by the next chores, and then limits strike again.
        let away = now_ns - self.latest_chores_ns > 2 * CHORES_NS;
        self.latest_chores_ns = now_ns;
        self.excused = away && !self.excused;
        if !self.excused && core.check_limits(RunNanos(now_ns - core.zero_ns)) {
            self.next_chores_ns = now_ns + LOOK_AGAIN_NS;
        }
        core.look_again();
        core.supply.stock();
        core.let_users_in();
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
            core.doom_all(core.cut_by(stop));
        }
        if !core.has_in_flight() {
            core.give_up_unsent();
        }
    }
}
