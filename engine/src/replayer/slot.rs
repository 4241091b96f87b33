//! One connection of a core and the exchange it carries, as plain state.
//!
//! A slot outlives its connection: when the connection is gone it is used for the next one. The
//! tasks that own the socket are in [`super::connection`]; the transitions are in [`super::core`].

use std::io::IoSlice;
use std::task::Waker;

use onbeat_shared::log::outcome::Class;
use onbeat_shared::log::record::Usage;
use onbeat_shared::units::{RequestIndex, RunNanos, SessionIndex};

use crate::net::socket::Wire;
use crate::net::tls::Session;
use crate::policy::deadline::Phase;
use crate::policy::session::Ready;
use crate::wire::{AnswerReader, Place};

/// Where a slot's connection is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// No connection.
    Free,
    /// Being opened since then.
    Connecting {
        /// When it was started.
        since: RunNanos,
    },
    /// Open. Idle when the slot has no exchange.
    Open,
    /// Hung up; its tasks are finishing.
    Closing,
}

/// Looks that find a limit passed before it strikes. A core that was away finds limits passed and
/// answers unread, in whatever order; by the third look, each after a turn of the driver, every
/// reader has had what was there at the first.
const LOOKS: u8 = 3;
/// Looks after which a limit strikes although there is something to read, where reading does not
/// move it: an answer that never pauses is still over in time.
const LOOKS_AT_MOST: u8 = 50;

/// A limit that has passed, and how often that was seen.
#[derive(Clone, Copy, Debug, Default)]
struct Overdue {
    since: RunNanos,
    looks: u8,
}

/// A request on its way: sent or waiting for its connection to open.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) request: RequestIndex,
    pub(super) ready_at: RunNanos,
    /// When it was due, if the plan's edges do not say.
    pub(super) due: Option<RunNanos>,
    /// Whether its answer is a stream, if not all of the run's are alike.
    pub(super) streaming: Option<bool>,
    /// When it was begun with, if a connection had to be opened for it first.
    pub(super) begun: Option<RunNanos>,
    /// Taken right before the first byte was handed over; `None` while the connection opens.
    pub(super) sent: Option<RunNanos>,
    /// The first part that has not left whole, and how much of it has.
    pub(super) part: usize,
    pub(super) part_offset: usize,
    /// Bytes the kernel has accepted.
    pub(super) accepted: u64,
    pub(super) sent_whole: bool,
    pub(super) latest_read: Option<RunNanos>,
    pub(super) event_seen: bool,
    pub(super) usage: Option<Usage>,
    /// Sent a second time, because a connection that had waited for it was closed under it.
    pub(super) resent: bool,
    /// It was due before it was rendered.
    pub(super) underrun: bool,
    /// Why we ended it ourselves, if we did.
    pub(super) doomed: Option<Class>,
}

impl Exchange {
    pub(super) fn new(ready: Ready) -> Self {
        Self {
            request: ready.request,
            ready_at: ready.at,
            due: None,
            streaming: None,
            begun: None,
            sent: None,
            part: 0,
            part_offset: 0,
            accepted: 0,
            sent_whole: false,
            latest_read: None,
            event_seen: false,
            usage: None,
            resent: false,
            underrun: false,
            doomed: None,
        }
    }

    /// The same request before its first byte, for the one resend: its first stamp stays.
    pub(super) fn again(&self) -> Self {
        Self {
            resent: true,
            underrun: self.underrun,
            due: self.due,
            streaming: self.streaming,
            begun: self.begun.or(self.sent),
            sent: self.sent,
            ..Self::new(Ready { at: self.ready_at, request: self.request })
        }
    }
}

/// One connection.
pub(super) struct Slot {
    pub(super) state: State,
    /// The server it leads to.
    pub(super) target: u16,
    /// The session it waits for, while it does.
    pub(super) held: Option<SessionIndex>,
    pub(super) wire: Option<Wire>,
    /// The connection's TLS session; `None`: it speaks plain HTTP.
    pub(super) tls: Option<Box<Session>>,
    pub(super) exchange: Option<Exchange>,
    pub(super) reader: AnswerReader,
    /// Whether the connection has carried a request before the present one.
    pub(super) used: bool,
    /// Whether the present request found the connection open, rather than had it opened.
    pub(super) waited: bool,
    /// The writer task, when it waits for something to write.
    pub(super) writer: Option<Waker>,
    /// The kernel's buffer was full: the writer task has the rest.
    pub(super) blocked: bool,
    overdue: Overdue,
}

impl Slot {
    pub(super) fn new() -> Self {
        Self {
            state: State::Free,
            target: 0,
            held: None,
            wire: None,
            tls: None,
            exchange: None,
            reader: AnswerReader::new(),
            used: false,
            waited: false,
            writer: None,
            blocked: false,
            overdue: Overdue::default(),
        }
    }

    /// Whether the limit `class`, which passed at `since`, strikes now that it is looked at once
    /// more. What the kernel holds for us has arrived, whoever comes late to read it; to a plain
    /// connection that is being opened, so has room for bytes.
    pub(super) fn strikes(&mut self, since: RunNanos, class: Class, is_plain: bool) -> bool {
        if self.overdue.looks == 0 || self.overdue.since != since {
            self.overdue = Overdue { since, looks: 0 };
        }
        let looks = self.overdue.looks.saturating_add(1);
        self.overdue.looks = looks;
        if looks < LOOKS {
            return false;
        }
        let room = is_plain && matches!(self.state, State::Connecting { .. });
        let has_news = self.wire.as_ref().is_some_and(|wire| wire.has_news(room));
        let moves = matches!(class, Class::IdleTimeout | Class::FirstByteTimeout);
        let strikes = !has_news || (!moves && looks >= LOOKS_AT_MOST);
        if strikes {
            self.overdue = Overdue::default();
        }
        strikes
    }

    /// When the latest bytes came of an answer that is over by its own word and goes on; `None` if
    /// the slot carries none.
    pub(super) fn lingers_since(&self) -> Option<RunNanos> {
        let exchange = self.exchange.as_ref().filter(|exchange| exchange.doomed.is_none())?;
        exchange.latest_read.filter(|_| self.state == State::Open && self.reader.settled())
    }

    /// What the time limits look at; `None` while nothing is limited.
    pub(super) fn phase(&self) -> Option<Phase> {
        if let State::Connecting { since } = self.state {
            let begun = self.exchange.as_ref().and_then(|exchange| exchange.begun);
            return Some(Phase::Connecting { since, begun });
        }
        let exchange = self.exchange.as_ref()?;
        let sent = exchange.sent?;
        let begun = exchange.begun.unwrap_or(sent);
        Some(match (self.reader.place(), exchange.latest_read) {
            (Place::Body, Some(latest)) => Phase::Answering { begun, latest },
            (Place::Head, Some(latest)) => Phase::Heading { begun, sent, latest },
            (Place::BeforeHead, _) | (_, None) => Phase::Waiting { begun, sent },
        })
    }

    /// Whether `exchange`, which it carries, would go out a second time if its server closed: it
    /// found a connection that had waited for it, and nothing of it has been answered.
    pub(super) fn may_resend(&self, exchange: &Exchange) -> bool {
        self.waited && !exchange.resent && !self.reader.started()
    }

    /// Ends the connection; its tasks notice and finish.
    pub(super) fn hang_up(&mut self) {
        if let Some(wire) = &self.wire {
            if let Some(tls) = &mut self.tls
                && tls.say_goodbye()
            {
                // Whether it arrives changes nothing.
                let _ = wire.send_now(&[IoSlice::new(tls.ready())]);
            }
            wire.hang_up();
        }
        self.state = State::Closing;
        self.wake_writer();
    }

    pub(super) fn wake_writer(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.wake();
        }
    }
}
