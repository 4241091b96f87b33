//! Which connection a request leaves on, and what becomes of it afterwards.
//!
//! Opening a connection that the warm-up did not foresee is the one thing a core allocates for
//! while it runs. Where connections are not shared, or cancelled with what they carry, those of
//! requests to come are opened in the pauses between requests, as many at a time as the warm-up
//! opened.

use std::sync::Arc;

use onbeat_shared::log::outcome::Class;
use onbeat_shared::log::record::Record;
use onbeat_shared::units::{RequestIndex, RunNanos, SessionIndex};

use super::connection;
use super::core::Core;
use super::exchange::{unanswered, write_words};
use super::idle::Idle;
use super::slot::{Exchange, Slot, State};
use crate::policy::reuse::Fate;

/// After a connection that was opened ahead came to nothing, the next is opened so much later.
const AHEAD_AGAIN_NS: i64 = 100_000_000;

impl Core {
    /// Puts `exchange` on a connection: one that waits for it or for anybody, or one opened for it.
    pub(super) fn dispatch(&mut self, exchange: Exchange) {
        let target = self.target_of(exchange.request);
        let held = match self.reuse.is_pooled() {
            true => None,
            false => self.reuse.take(self.session_of(exchange.request)),
        };
        match held.or_else(|| self.idle[usize::from(target)].pop()) {
            Some(index) => {
                let slot = &mut self.slots[index as usize];
                slot.waited = true;
                slot.held = None;
                self.begin(index, exchange);
            }
            None => self.open_connection(target, Some(exchange)),
        }
    }

    /// The server of `request`.
    fn target_of(&self, request: RequestIndex) -> u16 {
        // A plan's row is far away in memory: it is looked at only if there is a choice.
        match (self.idle.len(), &self.troupe) {
            (1, _) => 0,
            (servers, Some(troupe)) => troupe.target_of(request, servers),
            (_, None) => self.plan.rows[request.as_usize()].target,
        }
    }

    /// The session of `request`.
    fn session_of(&self, request: RequestIndex) -> SessionIndex {
        match &self.troupe {
            Some(troupe) => troupe.session_of(request),
            None => self.plan.rows[request.as_usize()].session,
        }
    }

    /// The exchange of `request` on slot `index` ended as `class`: makes the connection ready for
    /// another, if it is `reusable`, or lets it go.
    pub(super) fn release(
        &mut self,
        index: u32,
        reusable: bool,
        request: RequestIndex,
        class: Class,
    ) {
        let session = (!self.reuse.is_pooled()).then(|| self.session_of(request));
        let slot = &mut self.slots[index as usize];
        if !reusable || slot.state != State::Open || slot.blocked {
            slot.hang_up();
            return;
        }
        let fate = match session {
            None => Fate::ForAll,
            Some(session) => {
                let clean = matches!(class, Class::Ok | Class::NoFinish);
                let fate = self.reuse.fate(session, index, clean);
                slot.held = (fate == Fate::ForSession).then_some(session);
                fate
            }
        };
        slot.used = true;
        match fate {
            Fate::ForAll => self.idle[usize::from(slot.target)].push(index),
            Fate::ForSession => {}
            Fate::Closed => slot.hang_up(),
        }
    }

    /// Whether the user's cap on connections allows `request` to leave; makes room for it if others
    /// hold what they do not use.
    pub(super) fn may_connect(&mut self, request: RequestIndex) -> bool {
        if self.assignment.max_connections.is_none() {
            return true;
        }
        let sticks = self.reuse.is_sticky() && self.reuse.holds(self.session_of(request));
        sticks || self.may_connect_to(self.target_of(request))
    }

    /// Whether the user's cap on connections leaves one for `target`.
    pub(super) fn may_connect_to(&mut self, target: u16) -> bool {
        let Some(max) = self.assignment.max_connections else { return true };
        if !self.idle[usize::from(target)].is_empty() || self.slots.len() - self.free.len() < max {
            return true;
        }
        if self.idle.len() > 1 || self.reuse.is_sticky() {
            self.make_room();
        }
        false
    }

    /// Closes a connection that waits, unless one is being closed.
    fn make_room(&mut self) {
        if self.slots.iter().any(|slot| slot.state == State::Closing) {
            return;
        }
        let held = || self.slots.iter().position(|slot| slot.held.is_some());
        let idle = self.idle.iter().find_map(Idle::top);
        let held = || held().map(|index| u32::try_from(index).expect("slots are counted in u32"));
        if let Some(index) = idle.or_else(held) {
            self.drop_idle(index);
        }
    }

    /// Opens a connection for requests to come, if they want one that is not there; returns whether
    /// it did.
    pub(super) fn open_ahead(&mut self, now: RunNanos) -> bool {
        // A pool comes back by itself, but for what cancellations take out of it.
        let pooled = self.reuse.is_pooled();
        if pooled && self.plan.cancel_after.is_empty() {
            return false;
        }
        if self.stopping || !self.started || now < self.ahead_from {
            return false;
        }
        let waiting: usize = self.idle.iter().map(Idle::len).sum();
        let open = self.slots.len() - self.free.len();
        let most = self.assignment.max_connections.unwrap_or(usize::MAX);
        let (most, wanted) = match pooled {
            true => (most.min(self.assignment.warm_connections.iter().sum()), self.remaining),
            false => (most, self.reuse.to_come()),
        };
        if open >= most || waiting + self.opening >= wanted {
            return false;
        }
        let warm = self.assignment.warm_connections.iter();
        let short = warm.zip(&self.idle).position(|(&warm, idle)| idle.len() + self.opening < warm);
        let Some(target) = short else { return false };
        self.open_connection(u16::try_from(target).expect("a plan has u16 targets"), None);
        true
    }

    /// Opens a connection to a server, for `exchange` if there is one.
    pub(super) fn open_connection(&mut self, target: u16, exchange: Option<Exchange>) {
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.slots.push(Slot::new());
                u32::try_from(self.slots.len() - 1).expect("slots are counted in u32")
            }
        };
        let now = self.now();
        if exchange.is_some() {
            self.counters.count_opened();
        }
        let slot = &mut self.slots[index as usize];
        slot.state = State::Connecting { since: now };
        slot.target = target;
        slot.exchange = exchange;
        if let Some(exchange) = &mut slot.exchange {
            exchange.begun.get_or_insert(now);
        }
        slot.used = false;
        slot.waited = false;
        slot.blocked = false;
        self.opening += 1;
        self.tasks += 1;
        self.deadlines.watch(index, now);
        let handle = self.handle.upgrade().expect("a core's tasks hold it");
        let way = Arc::clone(&self.assignment.ways[usize::from(target)]);
        let turn = self.dialled;
        self.dialled += 1;
        monoio::spawn(connection::open(handle, index, way, turn));
    }

    /// The connection of slot `index` is open.
    pub(super) fn opened(&mut self, index: u32, since: RunNanos) {
        let now = self.now();
        self.worked = true;
        self.opening -= 1;
        let slot = &mut self.slots[index as usize];
        self.secured += usize::from(slot.tls.is_some());
        self.resumed += usize::from(slot.tls.as_ref().is_some_and(|tls| tls.is_resumed()));
        let exchange = slot.exchange.take();
        if slot.state == State::Closing {
            // Given up while it opened: its tasks will see the hang-up.
            slot.hang_up();
            let class = given_up(exchange.as_ref());
            self.log_connect(index, since, now, class, 0);
            if let Some(exchange) = exchange {
                self.finish_exchange(&exchange, now, &unanswered(class));
                self.send_released();
            }
            return;
        }
        slot.state = State::Open;
        let target = slot.target;
        self.log_connect(index, since, now, Class::Ok, 0);
        match exchange {
            Some(exchange) => self.begin(index, exchange),
            None => self.idle[usize::from(target)].push(index),
        }
    }

    /// The connection of slot `index` could not be opened.
    pub(super) fn not_opened(&mut self, index: u32, since: RunNanos, error: std::io::Error) {
        let now = self.now();
        self.worked = true;
        self.opening -= 1;
        let slot = &mut self.slots[index as usize];
        let exchange = slot.exchange.take();
        let class = match slot.state {
            State::Closing => given_up(exchange.as_ref()),
            _ => crate::net::socket::connect_class(&error),
        };
        let errno = error.raw_os_error().and_then(|errno| u32::try_from(errno).ok()).unwrap_or(0);
        self.log_connect(index, since, now, class, errno);
        self.free_slot(index);
        match exchange {
            Some(exchange) => {
                // Others are told by their class alone: that of TLS does not say what is wrong.
                if crate::net::tls::class_of(&error) == Some(class) {
                    let error = crate::net::tls::without_secrets(error, &self.assignment.secrets);
                    write_words(&mut self.sink, exchange.request, &error.to_string());
                }
                self.finish_exchange(&exchange, now, &unanswered(class));
            }
            None if self.started => self.ahead_from = RunNanos(now.0 + AHEAD_AGAIN_NS),
            None if class == Class::ConnectTimeout => {
                self.open_failures.push(std::io::Error::from(std::io::ErrorKind::TimedOut));
            }
            None => {
                let error = crate::net::tls::without_secrets(error, &self.assignment.secrets);
                self.open_failures.push(error);
            }
        }
        self.send_released();
    }

    /// The tasks of slot `index` are done with its socket.
    pub(super) fn free_slot(&mut self, index: u32) {
        self.worked = true;
        let slot = &mut self.slots[index as usize];
        assert!(slot.exchange.is_none(), "an exchange ends before its connection is forgotten");
        slot.state = State::Free;
        slot.wire = None;
        slot.tls = None;
        slot.writer = None;
        self.free.push(index);
        self.tasks -= 1;
    }

    /// A connection without an exchange is no longer usable.
    pub(super) fn drop_idle(&mut self, index: u32) {
        let now = self.now();
        let slot = &mut self.slots[index as usize];
        match slot.held.take() {
            Some(session) => self.reuse.lost(session),
            None => self.idle[usize::from(slot.target)].remove(index),
        }
        if !slot.used {
            self.ahead_from = RunNanos(now.0 + AHEAD_AGAIN_NS);
        }
        slot.hang_up();
    }

    fn log_connect(
        &mut self,
        index: u32,
        start: RunNanos,
        end: RunNanos,
        class: Class,
        errno: u32,
    ) {
        let target = self.slots[index as usize].target;
        let record = Record::Connect { connection: index, start, end, target, class, errno };
        if self.started {
            self.sink.push(&record);
        } else {
            self.warm_connects.push(record);
        }
    }
}

/// Why we gave up a connection while it opened. One that nobody needs yet is given up for taking
/// too long only.
fn given_up(exchange: Option<&Exchange>) -> Class {
    exchange.and_then(|exchange| exchange.doomed).unwrap_or(Class::ConnectTimeout)
}
