//! A plan's rows as a core's work: the real plan, [`Sessions`] and [`ReadyQueue`].

use std::sync::Arc;

use onbeat::plan::Plan;
use onbeat::policy::queue::ReadyQueue;
use onbeat::policy::session::Sessions;
use onbeat_shared::log::outcome::{Class, FinishReason};
use onbeat_shared::log::record::{DoneFlags, Record};
use onbeat_shared::units::{CoreIndex, RequestIndex, RunNanos, SessionIndex};

use super::outside::Outside;
use super::work::{Ask, Work};

/// One core's part of a plan.
pub(super) struct Planned {
    plan: Arc<Plan>,
    core: CoreIndex,
    sessions: Sessions,
    queue: ReadyQueue,
    /// When each request ended, by its place in the plan.
    ends: Vec<Option<RunNanos>>,
    sent: Vec<bool>,
    remaining: usize,
    /// Nothing but the schedule decides when a request leaves.
    prompt: bool,
}

impl Planned {
    pub(super) fn new(plan: Arc<Plan>, core: CoreIndex, prompt: bool) -> Self {
        Self {
            sessions: Sessions::new(&plan.rows),
            queue: ReadyQueue::new(&plan.rows, core),
            ends: vec![None; plan.rows.len()],
            sent: vec![false; plan.rows.len()],
            remaining: plan.rows.iter().filter(|row| row.core == core).count(),
            plan,
            core,
            prompt,
        }
    }

    /// When a request may leave, from the plan's row alone.
    fn ready(&self, request: RequestIndex) -> RunNanos {
        let row = &self.plan.rows[request.as_usize()];
        let after = row.after.map(|after| {
            let ended = self.ends[after.as_usize()].expect("its predecessor has ended");
            RunNanos(ended.0 + row.think_ns.unwrap_or(0))
        });
        match (row.due, after) {
            (Some(due), Some(after)) => due.max(after),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => RunNanos(0),
        }
    }
}

impl Work for Planned {
    fn cancelled(&self) -> usize {
        self.plan.cancel_after.iter().flatten().count()
    }

    fn next_at(&self) -> Option<RunNanos> {
        self.queue.peek().map(|ready| ready.at)
    }

    fn next_place(&self, now: RunNanos) -> Option<(u16, SessionIndex)> {
        let next = self.queue.peek().filter(|next| next.at <= now)?;
        let row = &self.plan.rows[next.request.as_usize()];
        Some((row.target, row.session))
    }

    fn take(&mut self, _core: usize, out: &mut Outside) -> Option<Ask> {
        let ready = self.queue.pop(out.now)?;
        let row = &self.plan.rows[ready.request.as_usize()];
        assert_eq!(row.core, self.core, "a core sends its own requests");
        let late_ns = out.now.0 - ready.at.0;
        assert!(!self.prompt || late_ns == 0, "{:?} left {late_ns} ns late", ready.request);
        Some(Ask {
            request: ready.request,
            session: row.session,
            target: row.target,
            ready: ready.at,
            due: self.sessions.due(ready.request),
            streaming: true,
            cancel_after: self.plan.cancel_after(ready.request),
        })
    }

    fn left(&mut self, ask: &Ask, _now: RunNanos) {
        let request = ask.request;
        let sent = std::mem::replace(&mut self.sent[request.as_usize()], true);
        assert!(!sent, "{request:?} leaves twice");
        assert_eq!(ask.ready, self.ready(request), "{request:?} was ready at the wrong time");
    }

    fn tokens(&mut self, _request: RequestIndex, _now: RunNanos, _more: usize) {}

    fn ended(&mut self, _core: usize, request: RequestIndex, _class: Class, out: &mut Outside) {
        self.remaining -= 1;
        self.ends[request.as_usize()] = Some(out.now);
        let queue = &mut self.queue;
        self.sessions.end(request, out.now, |ready| queue.push(ready));
    }

    fn give_up(&mut self, core: usize, in_flight_at_stop: &[RequestIndex], out: &mut Outside) {
        let (plan, own) = (Arc::clone(&self.plan), self.core);
        for row in plan.rows.iter().filter(|row| row.core == own) {
            if self.sessions.has_ended(row.request) {
                continue;
            }
            assert!(!self.sent[row.request.as_usize()], "what left has an end of its own");
            let waited =
                row.after.is_some_and(|after| in_flight_at_stop.binary_search(&after).is_ok());
            let class = if waited { Class::PredecessorPending } else { Class::NotReached };
            let (request, time) = (row.request, out.now);
            let done = Record::Done {
                request,
                time,
                class,
                status: None,
                response_bytes: 0,
                finish: FinishReason::Unknown,
                flags: DoneFlags::default(),
            };
            out.journal.push(core, &done);
            self.ended(core, request, class, out);
        }
    }

    fn is_over(&self) -> bool {
        self.remaining == 0
    }
}
