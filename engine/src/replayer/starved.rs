//! What a core sends next, when some of it may not be rendered yet.
//!
//! A request that is due and not rendered is an underrun: it waits, the core keeps looking, and it
//! leaves as soon as it is there, its lateness told as it is and the cause with it. It holds up
//! nobody: what is rendered passes it, because the memory it waits for may be theirs. And what is
//! sent gives its memory back as early as nothing can need it any more, which is long before the
//! answer's end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use onbeat_shared::units::{RequestIndex, RunNanos};

use super::core::Core;
use super::slot::Exchange;
use crate::policy::session::Ready;

/// Requests that are due and not rendered, in plan order, which is the order of rendering.
#[derive(Debug)]
pub(super) struct Starved(BinaryHeap<Reverse<(RequestIndex, RunNanos)>>);

impl Starved {
    /// With room for so many, so that it never allocates again.
    pub(super) fn new(room: usize) -> Self {
        Self(BinaryHeap::with_capacity(room))
    }

    /// The one that will be rendered first.
    pub(super) fn first(&self) -> Option<Ready> {
        self.0.peek().map(|&Reverse((request, at))| Ready { request, at })
    }

    /// All of them in ascending order, for the end of a run: it allocates.
    pub(super) fn requests(&self) -> Vec<RequestIndex> {
        let mut all: Vec<_> = self.0.iter().map(|&Reverse((request, _))| request).collect();
        all.sort_unstable();
        all
    }

    fn push(&mut self, late: Ready) {
        debug_assert!(self.0.len() < self.0.capacity(), "room for every request of the core");
        self.0.push(Reverse((late.request, late.at)));
    }
}

impl Core {
    /// The request that leaves now, if one is due, rendered and may have a connection.
    pub(super) fn next_exchange(&mut self, now: RunNanos) -> Option<Exchange> {
        if self.troupe.is_some() {
            return self.next_act(now);
        }
        if let Some(late) = self.starved.first()
            && self.may_connect(late.request)
            && self.supply.ready(late.request)
        {
            self.starved.0.pop();
            return Some(Exchange { underrun: true, ..Exchange::new(late) });
        }
        loop {
            let next = self.queue.peek().filter(|next| next.at <= now)?;
            if !self.may_connect(next.request) {
                return None;
            }
            let ready = self.queue.pop(now)?;
            if self.supply.ready(ready.request) {
                return Some(Exchange::new(ready));
            }
            self.starved.push(ready);
        }
    }

    /// Gives the bytes of slot `index`'s request back if they are needed no more: they have left,
    /// and it will not be sent a second time.
    pub(super) fn let_go(&mut self, index: u32) {
        if !self.supply.is_ahead() {
            return;
        }
        let slot = &self.slots[index as usize];
        if let Some(exchange) = &slot.exchange
            && exchange.sent_whole
            && !slot.may_resend(exchange)
        {
            self.supply.done(exchange.request);
        }
    }
}
