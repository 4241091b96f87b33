//! Which connection a request leaves on, and what becomes of it afterwards.
//!
//! Opening a connection that the warm-up did not foresee is the one thing a core allocates for
//! while it runs.

use std::sync::Arc;

use onbeat_shared::log::outcome::Class;
use onbeat_shared::log::record::Record;
use onbeat_shared::units::RunNanos;

use super::connection;
use super::core::Core;
use super::exchange::unanswered;
use super::slot::{Exchange, Slot, State};

impl Core {
    /// Puts `exchange` on a connection: an idle one, or one opened for it.
    pub(super) fn dispatch(&mut self, exchange: Exchange) {
        match self.idle.pop() {
            Some(index) => {
                self.slots[index as usize].waited = true;
                self.begin(index, exchange);
            }
            None => self.open_connection(Some(exchange)),
        }
    }

    /// Makes an open connection ready for the next request, or lets it go.
    pub(super) fn release(&mut self, index: u32, reusable: bool) {
        let slot = &mut self.slots[index as usize];
        if reusable && slot.state == State::Open && !slot.blocked {
            slot.used = true;
            self.idle.push(index);
        } else {
            slot.hang_up();
        }
    }

    /// Whether the user's cap on connections allows one more request to leave.
    pub(super) fn may_connect(&self) -> bool {
        !self.idle.is_empty()
            || self
                .assignment
                .max_connections
                .is_none_or(|max| self.slots.len() - self.free.len() < max)
    }

    /// Opens a connection, for `exchange` if there is one.
    pub(super) fn open_connection(&mut self, exchange: Option<Exchange>) {
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
        slot.exchange = exchange;
        slot.used = false;
        slot.waited = false;
        slot.blocked = false;
        self.opening += 1;
        self.tasks += 1;
        self.deadlines.watch(index, now);
        let handle = self.handle.upgrade().expect("a core's tasks hold it");
        let way = Arc::clone(&self.assignment.way);
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
        self.log_connect(index, since, now, Class::Ok, 0);
        match exchange {
            Some(exchange) => self.begin(index, exchange),
            None => self.idle.push(index),
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
            Some(exchange) => self.finish_exchange(&exchange, now, &unanswered(class)),
            None if class == Class::ConnectTimeout => {
                self.open_failures.push(std::io::Error::from(std::io::ErrorKind::TimedOut));
            }
            None => self.open_failures.push(error),
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
        self.idle.remove(index);
        self.slots[index as usize].hang_up();
    }

    fn log_connect(
        &mut self,
        index: u32,
        start: RunNanos,
        end: RunNanos,
        class: Class,
        errno: u32,
    ) {
        let record = Record::Connect { connection: index, start, end, target: 0, class, errno };
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
