//! The state of one pacing core and its transitions: fire, receive, close, time out, stop.
//!
//! Every transition is a method that takes the present instant; none waits, and none allocates
//! except to open a connection that the warm-up did not foresee. The tasks that call them are in
//! [`super::connection`] and [`super::pace`]. What happens to one exchange between its first and
//! its last byte is in [`super::exchange`].

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use onbeat_shared::log::outcome::{Class, FinishReason};
use onbeat_shared::log::record::{DoneFlags, Record};
use onbeat_shared::units::{RequestIndex, RunNanos};

use super::counters::Counters;
use super::idle::Idle;
use super::sealed::{Patience, Scratch};
use super::sink::Sink;
use super::slot::{Slot, State};
use super::stall::StallWatch;
use super::starved::Starved;
use super::troupe::Troupe;
use super::{Assignment, CoreReady, Pacing};
use crate::clock::{monotonic_ns, thread_cpu_ns};
use crate::pacer::Alarm;
use crate::plan::Plan;
use crate::policy::cancel::Cancellations;
use crate::policy::deadline::{Deadlines, Limits};
use crate::policy::queue::ReadyQueue;
use crate::policy::reuse::Reuse;
use crate::policy::session::Sessions;
use crate::render::echo::Budget;
use crate::render::supply::Supply;

/// Requests fired in one go before other tasks get a turn: a burst leaves back to back, and a
/// saturated core still reads its answers.
const FIRE_MAX: usize = 256;

/// From one look at a limit that has passed to the next: long enough for the driver to have told
/// what had arrived.
pub(super) const LOOK_AGAIN_NS: i64 = 1_000_000;

/// How long nothing may come of an answer that is over by the server's own word (`[DONE]`, an error
/// status) until its connection is given up: far longer than a last chunk takes behind it, and
/// short beside what a user would wait for.
const LINGER_NS: i64 = 2_000_000_000;
/// The same as a limit.
const LINGERING: Limits =
    Limits { connect_ns: None, first_byte_ns: None, idle_ns: Some(LINGER_NS), total_ns: None };

/// The shared handle of a core's tasks. Never borrowed across an await.
pub(super) type CoreHandle = Rc<RefCell<Core>>;

/// One pacing core.
pub(super) struct Core {
    pub(super) assignment: Assignment,
    pub(super) plan: Arc<Plan>,
    pub(super) supply: Supply,
    pub(super) counters: Arc<Counters>,
    pub(super) sink: Sink,
    pub(super) slots: Vec<Slot>,
    pub(super) sessions: Sessions,
    /// In a user-driven run, who plays here; the plan's rows are templates then and nothing else.
    pub(super) troupe: Option<Box<Troupe>>,
    pub(super) deadlines: Deadlines,
    /// The connections whose answers are over by the server's own word, but not by their framing.
    pub(super) lingering: Deadlines,
    /// The requests that the plan cancels, once they have left.
    pub(super) cancellations: Cancellations,
    /// The schedule's zero on the monotonic clock; set at the start barrier.
    pub(super) zero_ns: i64,
    /// Work done since the last look: a jump of the clock during work is no host stall.
    pub(super) worked: bool,
    watch: StallWatch,
    /// By how much this host wakes a sleeper late at its ordinary worst.
    pub(super) wake_margin_ns: i64,
    /// Tasks that own a socket and have not finished.
    pub(super) tasks: usize,
    /// Planned requests of this core without an end; in a user-driven run, 1 until it is over.
    pub(super) remaining: usize,
    pub(super) stopping: bool,
    /// Requests that were in flight when the run was stopped, in ascending order.
    in_flight_at_stop: Vec<RequestIndex>,
    pub(super) started: bool,
    pub(super) queue: ReadyQueue,
    /// What was due before it was rendered.
    pub(super) starved: Starved,
    /// An end has released a request since anybody looked.
    pub(super) released: bool,
    /// For each server, its connections that wait for anybody.
    pub(super) idle: Vec<Idle>,
    pub(super) reuse: Reuse,
    /// No connection is opened ahead before this instant.
    pub(super) ahead_from: RunNanos,
    pub(super) free: Vec<u32>,
    pub(super) opening: usize,
    pub(super) open_failures: Vec<std::io::Error>,
    /// Connections opened before zero, stamped on the clock of the warm-up.
    pub(super) warm_connects: Vec<Record>,
    alarm: Rc<Alarm>,
    /// When the sleeping pacer means to wake up, and earlier news moves the alarm; the beginning of
    /// time while it is awake.
    armed_ns: i64,
    /// How often the pacer has had its turn, and who waits for the next one.
    pub(super) turn: u64,
    giving_way: Vec<Waker>,
    /// How often limits have been looked at, and who waits for the next time: connections that a
    /// busy server's queue had no room for.
    pub(super) looks: u64,
    queueing: Vec<Waker>,
    /// Connections begun, counted from the core's number on: the cores' first ones differ.
    pub(super) dialled: usize,
    /// Connections that were opened over TLS, and those whose session resumed an earlier one.
    pub(super) secured: usize,
    pub(super) resumed: usize,
    pub(super) scratch: Scratch,
    /// What of requests that failed may still be looked through for what servers repeat of them.
    pub(super) echoes: Budget,
    patience: Patience,
    pub(super) handle: std::rc::Weak<RefCell<Self>>,
}

impl Core {
    pub(super) fn new(
        assignment: Assignment,
        plan: Arc<Plan>,
        supply: Supply,
        troupe: Option<Box<Troupe>>,
        counters: Arc<Counters>,
        sink: Sink,
        alarm: Rc<Alarm>,
    ) -> CoreHandle {
        let core = assignment.core;
        // Nobody knows yet which templates will be sent.
        let rows = if troupe.is_some() { &[][..] } else { &plan.rows };
        let remaining = rows.iter().filter(|row| row.core == core).count();
        let remaining = if troupe.is_some() { 1 } else { remaining };
        let slots = assignment.warm_connections.iter().sum::<usize>().max(64);
        let dialled = usize::from(core.0);
        let scratch = match assignment.ways.iter().any(|way| way.tls.is_some()) {
            true => Scratch::new(),
            false => Scratch::default(),
        };
        let queue = ReadyQueue::new(rows, core);
        let starved = Starved::new(if supply.is_ahead() { remaining } else { 0 });
        let sessions = Sessions::new(rows);
        let own = rows.iter().filter(|row| row.core == core);
        let cancelled = own.filter(|row| plan.cancel_after(row.request).is_some()).count();
        let reuse = Reuse::new(assignment.reuse, rows, core);
        Rc::new_cyclic(|handle| {
            RefCell::new(Self {
                deadlines: Deadlines::new(&assignment.limits, slots),
                lingering: Deadlines::new(&LINGERING, slots),
                cancellations: Cancellations::new(cancelled),
                idle: assignment.ways.iter().map(|_| Idle::new(slots)).collect(),
                reuse,
                ahead_from: RunNanos(i64::MIN),
                free: Vec::with_capacity(slots),
                slots: Vec::with_capacity(slots),
                assignment,
                plan,
                supply,
                counters,
                sink,
                sessions,
                troupe,
                queue,
                starved,
                released: false,
                zero_ns: 0,
                worked: false,
                watch: StallWatch::new(monotonic_ns(), thread_cpu_ns()),
                wake_margin_ns: 0,
                tasks: 0,
                remaining,
                stopping: false,
                in_flight_at_stop: Vec::new(),
                started: false,
                opening: 0,
                open_failures: Vec::new(),
                warm_connects: Vec::with_capacity(slots),
                alarm,
                armed_ns: i64::MIN,
                turn: 0,
                giving_way: Vec::with_capacity(slots),
                looks: 0,
                queueing: Vec::new(),
                dialled,
                secured: 0,
                resumed: 0,
                scratch,
                echoes: Budget::full(),
                patience: Patience::default(),
                handle: handle.clone(),
            })
        })
    }

    // ---- before zero ----

    /// Starts opening the connections that are to be there at zero.
    pub(super) fn warm_up(&mut self) {
        for target in 0..self.assignment.ways.len() {
            let number = u16::try_from(target).expect("a plan has u16 targets");
            for _ in 0..self.assignment.warm_connections[target] {
                self.open_connection(number, None);
            }
        }
    }

    /// Whether a connection should wait for a ticket, of which `seen` have come: never once the run
    /// has begun.
    pub(super) fn awaits_tickets(&mut self, seen: u64) -> bool {
        let now = self.now();
        !self.started && self.patience.lasts(seen, now, self.assignment.limits.connect_ns)
    }

    /// Whether connections are still being opened.
    pub(super) fn is_opening(&self) -> bool {
        self.opening > 0
    }

    /// What came of the warm-up; how long waking up takes here, others know.
    pub(super) fn readiness(&mut self) -> CoreReady {
        CoreReady {
            core: self.assignment.core,
            wake_error_ns: 0,
            connections: self.idle.iter().map(Idle::len).sum(),
            secured: self.secured,
            resumed: self.resumed,
            failures: std::mem::take(&mut self.open_failures),
            realtime: None,
        }
    }

    /// The schedule's zero is known. What the warm-up stamped moves to the run's clock.
    pub(super) fn start(&mut self, zero_ns: i64) {
        assert!(!self.started, "a run starts once");
        let earlier_ns = self.zero_ns - zero_ns;
        self.zero_ns = zero_ns;
        self.started = true;
        self.watch = StallWatch::new(monotonic_ns(), thread_cpu_ns());
        for mut record in self.warm_connects.drain(..) {
            if let Record::Connect { start, end, .. } = &mut record {
                start.0 += earlier_ns;
                end.0 += earlier_ns;
            }
            self.sink.push(&record);
        }
        self.deadlines = Deadlines::new(&self.assignment.limits, self.slots.capacity());
        self.lingering = Deadlines::new(&LINGERING, self.slots.capacity());
    }

    // ---- the run ----

    /// The run's own time.
    pub(super) fn now(&self) -> RunNanos {
        RunNanos(monotonic_ns() - self.zero_ns)
    }

    /// Sends what is due; returns whether more is due already. Readers call it too, also before
    /// zero, when nothing is.
    pub(super) fn fire_due(&mut self) -> bool {
        let now = self.now();
        self.look(now.0 + self.zero_ns);
        self.fire_due_at(now)
    }

    /// [`Core::fire_due`] for who has just read the clock, and looked.
    pub(super) fn fire_due_at(&mut self, now: RunNanos) -> bool {
        if !self.started || self.stopping {
            return false;
        }
        let mut now = now;
        for _ in 0..FIRE_MAX {
            let Some(exchange) = self.next_exchange(now) else { return false };
            self.worked = true;
            self.dispatch(exchange);
            now = self.now();
            self.look(now.0 + self.zero_ns);
        }
        true
    }

    /// When the next request is due, if one is known: in the past while one is not rendered.
    pub(super) fn next_due(&self) -> Option<RunNanos> {
        if self.stopping {
            return None;
        }
        if let Some(troupe) = &self.troupe {
            return troupe.next_at();
        }
        self.starved.first().or_else(|| self.queue.peek()).map(|next| next.at)
    }

    /// The pacer goes to sleep until `wake_ns` on the monotonic clock.
    pub(super) fn arm(&mut self, wake_ns: i64) {
        self.armed_ns = wake_ns;
        let until_ns = self.overdue_ns(wake_ns);
        self.watch.sleeps(monotonic_ns(), until_ns, thread_cpu_ns());
    }

    /// The pacer is awake: nobody needs to wake it.
    pub(super) fn disarm(&mut self) {
        self.armed_ns = i64::MIN;
        let now_ns = monotonic_ns();
        self.look(now_ns);
        self.watch.wakes(now_ns, thread_cpu_ns());
    }

    /// The pacer has its turn.
    pub(super) fn take_turn(&mut self) {
        self.turn += 1;
        for waiting in self.giving_way.drain(..) {
            waiting.wake();
        }
    }

    /// Waits until the pacer has had a turn after `turn`, which comes at once.
    pub(super) fn poll_next_turn(&mut self, turn: u64, context: &Context<'_>) -> Poll<()> {
        if self.turn != turn {
            return Poll::Ready(());
        }
        self.giving_way.push(context.waker().clone());
        if self.armed_ns != i64::MIN {
            let _ = self.alarm.ring_at(0);
        }
        Poll::Pending
    }

    /// When a pacer that is to wake at `wake_ns` is so late that it is the host's doing.
    fn overdue_ns(&self, wake_ns: i64) -> i64 {
        wake_ns.saturating_add(match self.assignment.pacing {
            Pacing::Hybrid { margin_ns } => margin_ns,
            // It keeps no margin, and is late by the ordinary wake-up error.
            Pacing::Sleep | Pacing::Spin => self.wake_margin_ns,
        })
    }

    /// Looks whether the host took the core away since the last look, and writes it down.
    pub(super) fn look(&mut self, now_ns: i64) {
        let worked = std::mem::take(&mut self.worked);
        if let Some(span) = self.watch.look(now_ns, worked, thread_cpu_ns)
            && self.started
        {
            self.sink.push(&Record::Stall {
                start: RunNanos(span.start_ns - self.zero_ns),
                length_ns: span.length_ns.cast_unsigned(),
            });
        }
    }

    /// Records the one end of `request` and releases what waited for it.
    pub(super) fn end(&mut self, request: RequestIndex, done: &Record) {
        self.sink.push(done);
        let Record::Done { time, class, .. } = *done else { return };
        if class == Class::NotHttp {
            self.counters.count_foreign();
        }
        if self.troupe.is_some() {
            return self.end_act(request, time, class);
        }
        self.remaining -= 1;
        self.supply.ended(request, class == Class::Ok);
        let queue = &mut self.queue;
        let released = &mut self.released;
        self.sessions.end(request, time, |ready| {
            *released = true;
            queue.push(ready);
        });
    }

    /// Sends what an end has released, or sees to it that the pacer does in time.
    pub(super) fn send_released(&mut self) {
        if !std::mem::take(&mut self.released) {
            return;
        }
        self.fire_due();
        let Some(due) = self.next_due() else { return };
        let margin_ns = self.assignment.pacing.margin_ns();
        self.wake_by(due.0.saturating_add(self.zero_ns).saturating_sub(margin_ns));
    }

    /// Moves the alarm of a sleeping pacer to `wake_ns` on the monotonic clock, if it is later.
    pub(super) fn wake_by(&mut self, wake_ns: i64) {
        if wake_ns < self.armed_ns {
            self.armed_ns = wake_ns;
            self.watch.hurries(self.overdue_ns(wake_ns));
            // The pacer looks again within its housekeeping period if the alarm cannot be moved.
            let _ = self.alarm.ring_at(wake_ns);
        }
    }

    /// Lets connections try again that found no room.
    pub(super) fn look_again(&mut self) {
        self.looks += 1;
        for waiting in self.queueing.drain(..) {
            waiting.wake();
        }
    }

    /// Waits until [`Core::look_again`] has been called after look number `look`.
    pub(super) fn poll_next_look(&mut self, look: u64, context: &Context<'_>) -> Poll<()> {
        if self.looks != look {
            return Poll::Ready(());
        }
        self.queueing.push(context.waker().clone());
        Poll::Pending
    }

    /// Ends exchanges whose limit has passed and to whom nothing has come meanwhile, which takes
    /// several looks; returns whether there is to be another in [`LOOK_AGAIN_NS`].
    pub(super) fn check_limits(&mut self, now: RunNanos) -> bool {
        self.check_lingering(now);
        let mut again = false;
        while let Some(index) = self.deadlines.pop(now) {
            let slot = &mut self.slots[index as usize];
            let Some((at, class)) =
                slot.phase().and_then(|phase| self.assignment.limits.next(phase))
            else {
                continue;
            };
            if at > now {
                self.deadlines.again(index, at, now);
            } else if slot.state != State::Closing {
                // A handshake of TLS has room for bytes all the time.
                let is_plain = self.assignment.ways[usize::from(slot.target)].tls.is_none();
                if slot.strikes(at, class, is_plain) {
                    self.doom(index, class);
                } else {
                    again = true;
                    self.deadlines.again(index, RunNanos(now.0 + LOOK_AGAIN_NS), now);
                }
            }
        }
        again
    }

    /// Hangs up where nothing more has come of an answer for [`LINGER_NS`] although it was over:
    /// its outcome is known, and what waits for its end should not wait for the framing.
    fn check_lingering(&mut self, now: RunNanos) {
        while let Some(index) = self.lingering.pop(now) {
            let slot = &mut self.slots[index as usize];
            let Some(latest) = slot.lingers_since() else { continue };
            let at = RunNanos(latest.0.saturating_add(LINGER_NS));
            // What has arrived is read first, however late.
            let has_news = slot.wire.as_ref().is_some_and(|wire| wire.has_news(false));
            if at > now || has_news {
                self.lingering.again(index, at.max(RunNanos(now.0 + LOOK_AGAIN_NS)), now);
            } else {
                slot.hang_up();
            }
        }
    }

    // ---- the end ----

    /// Sends nothing new from now on.
    pub(super) fn stop(&mut self) {
        self.stopping = true;
        let in_flight = self.slots.iter().filter_map(|slot| slot.exchange.as_ref());
        self.in_flight_at_stop = in_flight.map(|exchange| exchange.request).collect();
        self.in_flight_at_stop.sort_unstable();
    }

    /// Ends every exchange in flight with `class`; connecting ones as well.
    pub(super) fn doom_all(&mut self, class: Class) {
        for index in 0..self.slots.len() {
            let slot = &self.slots[index];
            if slot.exchange.is_some() && slot.state != State::Closing {
                let index = u32::try_from(index).expect("slots are counted in u32");
                self.doom(index, class);
            }
        }
    }

    /// The core cannot go on: every request that is in flight ends for a reason of ours, with what
    /// there is of it, those that are not do not leave, and all of it is handed to the writer.
    pub(super) fn give_up(&mut self) {
        self.stop();
        let now = self.now();
        for index in 0..self.slots.len() {
            let index = u32::try_from(index).expect("slots are counted in u32");
            self.cut_off(index, now);
        }
        // What the driver is still asked to read ends with the connections, while there is room.
        self.hang_up_all();
        self.give_up_unsent();
        self.sink.wait_for_room();
        self.sink.flush();
        self.counters.set_lost(self.sink.lost_records());
    }

    /// Whether a request is on its way.
    pub(super) fn has_in_flight(&self) -> bool {
        self.slots.iter().any(|slot| slot.exchange.is_some())
    }

    /// Gives every planned request without an end the end "never sent", with the reason.
    pub(super) fn give_up_unsent(&mut self) {
        if self.troupe.is_some() {
            // What users would have sent was never planned.
            self.stop_users();
            self.remaining = 0;
            return;
        }
        let plan = Arc::clone(&self.plan);
        let now = self.now();
        let core = self.assignment.core;
        let starved = self.starved.requests();
        for row in plan.rows.iter().filter(|row| row.core == core) {
            if self.sessions.has_ended(row.request) {
                continue;
            }
            let waited =
                row.after.is_some_and(|after| self.in_flight_at_stop.binary_search(&after).is_ok());
            let class = if waited { Class::PredecessorPending } else { Class::NotReached };
            let underrun = starved.binary_search(&row.request).is_ok();
            let done = Record::Done {
                request: row.request,
                time: now,
                class,
                status: None,
                response_bytes: 0,
                finish: FinishReason::Unknown,
                flags: if underrun { DoneFlags::UNDERRUN } else { DoneFlags::default() },
            };
            // Its followers are in the same list and get their own end; nothing fires any more.
            self.counters.count_never_sent();
            // A plan may have more requests left than there is room for.
            self.sink.wait_for_room();
            self.end(row.request, &done);
        }
    }

    /// Hangs up every connection, so that the tasks that own them finish.
    pub(super) fn hang_up_all(&mut self) {
        self.idle.iter_mut().for_each(|idle| *idle = Idle::default());
        for slot in &mut self.slots {
            if slot.state != State::Free && slot.state != State::Closing {
                slot.hang_up();
            }
        }
    }

    /// What is ready next, for the pacer's progress report.
    pub(super) fn report_next_due(&self) {
        self.counters.set_next_due(self.next_due().map(|at| at.0));
    }
}
