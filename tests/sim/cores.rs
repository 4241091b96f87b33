//! A pacing core without threads or sockets: connections, exchanges, limits, the end.
//!
//! It does with events what `onbeat::replayer` does with completions, step for step, and lets the
//! real code decide and read: [`Reuse`], [`Limits`], [`Deadlines`], [`Cancellations`] and
//! [`AnswerReader`]. What a request is and when it may leave is its [`Work`]'s.

use onbeat::policy::cancel::Cancellations;
use onbeat::policy::deadline::{Deadlines, Limits, Phase};
use onbeat::policy::reuse::{Fate, Reuse};
use onbeat::wire::{Answer, AnswerEnd, AnswerReader};
use onbeat_shared::log::outcome::{Class, FinishReason};
use onbeat_shared::log::record::{DoneFlags, Record};
use onbeat_shared::units::{RequestIndex, RunNanos, SessionIndex};

use super::checks;
use super::outside::{Event, News, Outside, Pipe};
use super::work::{Ask, Work};

/// How often limits are looked at.
pub(super) const CHORES_NS: i64 = 10_000_000;
/// From a hang-up to the read that ends with it, at most.
pub(super) const HANG_UP_NS: u64 = 200_000;

/// Where a slot's connection is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Connecting { since: RunNanos },
    Open,
    Closing,
}

/// A request on its way.
pub(super) struct Exchange {
    pub(super) ask: Ask,
    pub(super) begun: Option<RunNanos>,
    pub(super) sent: Option<RunNanos>,
    pub(super) sent_whole: bool,
    pub(super) latest: Option<RunNanos>,
    pub(super) resent: bool,
    pub(super) doomed: Option<Class>,
    /// Bytes of its answer that were read.
    pub(super) read: usize,
    /// Content events among them, and their text.
    pub(super) tokens: usize,
    pub(super) text: Vec<u8>,
    pub(super) truth: Option<super::answers::Truth>,
}

struct Slot {
    state: State,
    link: u32,
    target: u16,
    held: Option<SessionIndex>,
    used: bool,
    waited: bool,
    reader: AnswerReader,
    pipe: Pipe,
    exchange: Option<Exchange>,
}

/// What a core is told before it starts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Orders {
    pub(super) limits: Limits,
    pub(super) max_connections: Option<usize>,
}

/// One core.
pub(super) struct Core {
    number: usize,
    orders: Orders,
    pub(super) work: Box<dyn Work>,
    slots: Vec<Slot>,
    free: Vec<usize>,
    idle: Vec<Vec<usize>>,
    reuse: Reuse,
    deadlines: Deadlines,
    cancellations: Cancellations,
    stopping: bool,
    in_flight_at_stop: Vec<RequestIndex>,
    chores_at: Option<RunNanos>,
    /// When it looks at its schedule again.
    due_at: Option<RunNanos>,
}

impl Core {
    pub(super) fn new(
        number: usize,
        orders: Orders,
        work: Box<dyn Work>,
        reuse: Reuse,
        targets: usize,
    ) -> Self {
        Self {
            number,
            orders,
            cancellations: Cancellations::new(work.cancelled()),
            work,
            slots: Vec::new(),
            free: Vec::new(),
            idle: vec![Vec::new(); targets],
            reuse,
            deadlines: Deadlines::new(&orders.limits, 8),
            stopping: false,
            in_flight_at_stop: Vec::new(),
            chores_at: None,
            due_at: None,
        }
    }

    fn event(&self, slot: usize, news: News) -> Event {
        let link = self.slots.get(slot).map_or(0, |slot| slot.link);
        Event { core: self.number, slot, link, news }
    }

    /// Something happened.
    pub(super) fn hear(&mut self, event: Event, out: &mut Outside) {
        let Event { slot, link, news, .. } = event;
        match news {
            News::Due => {}
            News::Chores => self.chores(out),
            News::Stop { now } => self.stop(now, out),
            News::Drained => self.doom_all(out),
            News::Direct => unreachable!("cores are not directors"),
            _ if self.slots[slot].link != link => {}
            News::Opened => self.opened(slot, out),
            News::NotOpened(class) => self.not_opened(slot, class, out),
            News::SentWhole(request) => self.sent_whole(slot, request, out),
            News::Piece => self.received(slot, out),
            News::Gone { reset } => self.closed(slot, reset, out),
        }
        self.cancel_due(out);
        self.fire(out);
        if self.stopping && !self.has_in_flight() {
            self.work.give_up(self.number, &self.in_flight_at_stop, out);
        }
    }

    /// Sends what may leave, and sees to it that somebody looks again in time.
    pub(super) fn fire(&mut self, out: &mut Outside) {
        while !self.stopping
            && let Some((target, session)) = self.work.next_place(out.now)
        {
            let sticks = self.reuse.is_sticky() && self.reuse.holds(session);
            if !sticks && !self.may_connect_to(target, out) {
                break;
            }
            if let Some(ask) = self.work.take(self.number, out) {
                self.dispatch(ask, out);
            }
        }
        let held = self.stopping || self.orders.max_connections.is_some();
        let next = self.work.next_at().filter(|_| !self.stopping);
        assert!(held || next.is_none_or(|at| at > out.now), "somebody who may leave is kept");
        let next = next.into_iter().chain(self.cancellations.next());
        let Some(at) = next.filter(|&at| at > out.now).min() else { return };
        if self.due_at.is_none_or(|known| known <= out.now || at < known) {
            self.due_at = Some(at);
            out.at(at, Event { core: self.number, slot: 0, link: 0, news: News::Due });
        }
    }

    fn dispatch(&mut self, ask: Ask, out: &mut Outside) {
        let target = ask.target;
        let held = match self.reuse.is_pooled() {
            true => None,
            false => self.reuse.take(ask.session).map(|slot| slot as usize),
        };
        let exchange = Exchange::of(ask);
        match held.or_else(|| self.idle[usize::from(target)].pop()) {
            Some(slot) => {
                self.slots[slot].waited = true;
                self.slots[slot].held = None;
                self.begin(slot, exchange, out);
            }
            None => self.open(target, exchange, out),
        }
    }

    fn may_connect_to(&mut self, target: u16, out: &mut Outside) -> bool {
        let Some(max) = self.orders.max_connections else { return true };
        if !self.idle[usize::from(target)].is_empty() || self.slots.len() - self.free.len() < max {
            return true;
        }
        if !self.slots.iter().any(|slot| slot.state == State::Closing) {
            let idle = self.idle.iter().find_map(|idle| idle.last().copied());
            let held = || self.slots.iter().position(|slot| slot.held.is_some());
            if let Some(slot) = idle.or_else(held) {
                self.drop_idle(slot, out);
            }
        }
        false
    }

    fn open(&mut self, target: u16, mut exchange: Exchange, out: &mut Outside) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::new());
            self.slots.len() - 1
        });
        if let Some(max) = self.orders.max_connections
            && !exchange.resent
        {
            let open = self.slots.len() - self.free.len();
            assert!(open <= max + 1, "{open} connections are open, {max} are allowed");
        }
        exchange.begun.get_or_insert(out.now);
        let slot = &mut self.slots[place];
        slot.link += 1;
        slot.state = State::Connecting { since: out.now };
        (slot.target, slot.used, slot.waited) = (target, false, false);
        slot.exchange = Some(exchange);
        self.watch(place, out);
        out.connect(self.event(place, News::Opened));
    }

    fn opened(&mut self, place: usize, out: &mut Outside) {
        let slot = &mut self.slots[place];
        match slot.state {
            State::Connecting { .. } => {
                slot.state = State::Open;
                let exchange = slot.exchange.take().expect("nothing is opened ahead here");
                self.begin(place, exchange, out);
            }
            // Given up while it opened.
            State::Closing => self.closed(place, false, out),
            State::Free | State::Open => unreachable!("a connection opens once"),
        }
    }

    fn not_opened(&mut self, place: usize, class: Class, out: &mut Outside) {
        let slot = &mut self.slots[place];
        let exchange = slot.exchange.take().expect("nothing is opened ahead here");
        let class = exchange.doomed.unwrap_or(class);
        self.let_go(place);
        self.finish(&exchange, &unanswered(class), out);
    }

    fn begin(&mut self, place: usize, mut exchange: Exchange, out: &mut Outside) {
        let (number, request) = (self.number, exchange.ask.request);
        let slot = &mut self.slots[place];
        assert!(slot.exchange.is_none(), "a connection carries one request at a time");
        slot.reader.begin(exchange.ask.streaming);
        slot.reader.keep_text();
        let first = exchange.sent.is_none();
        exchange.sent.get_or_insert(out.now);
        let event = Event { core: number, slot: place, link: slot.link, news: News::Piece };
        let (streaming, used) = (exchange.ask.streaming, slot.used);
        let truth = out.answer(event, &mut slot.pipe, request, streaming, slot.waited);
        exchange.truth = Some(truth);
        let (ask, target) = (exchange.ask, slot.target);
        slot.exchange = Some(exchange);
        if first {
            checks::not_early(&ask, out.now);
            self.work.left(&ask, out.now);
            let (sent, ready, due) = (out.now, ask.ready, ask.due);
            let record = Record::Dispatch { request, sent, ready, due, target, reused: used };
            out.journal.push(number, &record);
        }
        if out.random.one_in(6) {
            let delay = out.pause_ns();
            out.after(delay, Event { news: News::SentWhole(request), ..event });
        } else {
            self.sent_whole(place, request, out);
        }
        self.watch(place, out);
    }

    fn sent_whole(&mut self, place: usize, request: RequestIndex, out: &mut Outside) {
        let Some(exchange) = &mut self.slots[place].exchange else { return };
        if exchange.ask.request != request || exchange.doomed.is_some() {
            return;
        }
        exchange.sent_whole = true;
        let time = out.now;
        let cancel_after = exchange.ask.cancel_after;
        let connection = u32::try_from(place).expect("few");
        let record = Record::SentEnd { request, time, bytes: 1_000, connection };
        out.journal.push(self.number, &record);
        if let Some(after_ns) = cancel_after {
            self.cancellations.start(request, connection, time, after_ns);
        }
    }

    fn received(&mut self, place: usize, out: &mut Outside) {
        out.reads += 1;
        let (number, time) = (self.number, out.now);
        let slot = &mut self.slots[place];
        let Some(length) = slot.pipe.pieces.pop_front() else { return };
        let from = slot.pipe.at;
        slot.pipe.at += length;
        let Some(exchange) = &mut slot.exchange else {
            // Nobody asked: this connection cannot be trusted with a request.
            if slot.state == State::Open {
                self.drop_idle(place, out);
            }
            return;
        };
        if exchange.doomed.is_some() {
            return;
        }
        checks::read_in_time(&self.orders.limits, exchange, time);
        let request = exchange.ask.request;
        if exchange.latest.replace(time).is_none() {
            out.journal.push(number, &Record::FirstByte { request, time });
        }
        exchange.read += length;
        let before = exchange.tokens;
        let bytes = &slot.pipe.bytes[from..from + length];
        let end = slot.reader.push(bytes, &mut |answer| note(&answer, exchange));
        let more = exchange.tokens - before;
        checks::content(exchange, end.is_some());
        if more > 0 {
            self.work.tokens(request, time, more);
        }
        for _ in 0..more {
            let kind = onbeat_shared::log::ChunkKind::TEXT;
            out.journal.push(number, &Record::Chunk { request, time, kind, tokens: 1, bytes: 1 });
        }
        let Some(end) = end else { return };
        checks::whole(exchange, &end);
        let (whole, session) = (exchange.sent_whole, exchange.ask.session);
        let exchange = slot.exchange.take().expect("just seen");
        // Bytes of the server that nobody waits for may come later.
        let stray = !slot.pipe.pieces.is_empty();
        self.finish(&exchange, &end, out);
        self.release(place, end.reusable && whole, session, end.class, out);
        debug_assert!(!stray || self.slots[place].exchange.is_none(), "fired by nobody yet");
    }

    fn release(
        &mut self,
        place: usize,
        reusable: bool,
        session: SessionIndex,
        class: Class,
        out: &mut Outside,
    ) {
        let slot = &mut self.slots[place];
        if !reusable || slot.state != State::Open {
            return self.hang_up(place, out);
        }
        let connection = u32::try_from(place).expect("few");
        let clean = matches!(class, Class::Ok | Class::NoFinish);
        let fate = self.reuse.fate(session, connection, clean);
        slot.held = (fate == Fate::ForSession).then_some(session);
        slot.used = true;
        match fate {
            Fate::ForAll => self.idle[usize::from(slot.target)].push(place),
            Fate::ForSession => {}
            Fate::Closed => self.hang_up(place, out),
        }
    }

    fn closed(&mut self, place: usize, reset: bool, out: &mut Outside) {
        let slot = &mut self.slots[place];
        let Some(exchange) = &mut slot.exchange else {
            if slot.state == State::Open {
                self.forget_idle(place);
            }
            return self.let_go(place);
        };
        let opening = matches!(slot.state, State::Connecting { .. }) || exchange.sent.is_none();
        let may_resend = slot.waited && !exchange.resent && !slot.reader.started();
        if exchange.doomed.is_none() && may_resend {
            let exchange = slot.exchange.take().expect("just seen");
            let target = slot.target;
            self.let_go(place);
            return self.open(target, exchange.again(), out);
        }
        let mut end = if opening || exchange.truth.is_none() {
            unanswered(Class::ConnectTimeout)
        } else {
            slot.reader.close(reset, &mut |answer| note(&answer, exchange))
        };
        match exchange.doomed {
            Some(class) => end.class = class,
            None => checks::cut(exchange, &end, reset),
        }
        let exchange = slot.exchange.take().expect("just seen");
        self.let_go(place);
        self.finish(&exchange, &end, out);
    }

    /// Writes down the end of `exchange`.
    fn finish(&mut self, exchange: &Exchange, end: &AnswerEnd, out: &mut Outside) {
        let (request, time) = (exchange.ask.request, out.now);
        checks::in_time(&self.orders.limits, exchange, end.class, time);
        let flags = if exchange.resent { end.flags.with(DoneFlags::RESENT) } else { end.flags };
        out.journal.push(
            self.number,
            &Record::Done {
                request,
                time,
                class: end.class,
                status: end.status,
                response_bytes: end.response_bytes,
                finish: end.finish,
                flags,
            },
        );
        self.work.ended(self.number, request, end.class, out);
    }

    fn chores(&mut self, out: &mut Outside) {
        self.chores_at = None;
        while let Some(index) = self.deadlines.pop(out.now) {
            let place = index as usize;
            let next = self.phase(place).and_then(|phase| self.orders.limits.next(phase));
            let Some((at, class)) = next else { continue };
            if at > out.now {
                self.deadlines.again(index, at, out.now);
            } else if self.slots[place].state != State::Closing {
                self.doom(place, class, out);
            }
        }
        if out.random.one_in(30) {
            out.journal.flush(self.number);
        }
        self.arm_chores(out);
    }

    fn phase(&self, place: usize) -> Option<Phase> {
        let slot = &self.slots[place];
        if let State::Connecting { since } = slot.state {
            let begun = slot.exchange.as_ref().and_then(|exchange| exchange.begun);
            return Some(Phase::Connecting { since, begun });
        }
        let exchange = slot.exchange.as_ref()?;
        let sent = exchange.sent?;
        let begun = exchange.begun.unwrap_or(sent);
        Some(match exchange.latest {
            Some(latest) => Phase::Answering { begun, latest },
            None => Phase::Waiting { begun, sent },
        })
    }

    fn doom(&mut self, place: usize, class: Class, out: &mut Outside) {
        let slot = &mut self.slots[place];
        let settled = slot.state == State::Open && slot.reader.settled();
        if let Some(exchange) = &mut slot.exchange {
            if settled {
                checks::settled(exchange);
            } else {
                exchange.doomed = Some(class);
            }
        }
        self.hang_up(place, out);
    }

    fn cancel_due(&mut self, out: &mut Outside) {
        while let Some((request, connection)) = self.cancellations.pop(out.now) {
            let slot = &self.slots[connection as usize];
            let carries = slot.exchange.as_ref().is_some_and(|it| it.ask.request == request);
            if carries && slot.state == State::Open {
                self.doom(connection as usize, Class::CancelledByPlan, out);
            }
        }
    }

    fn stop(&mut self, now: bool, out: &mut Outside) {
        self.stopping = true;
        let in_flight = self.slots.iter().filter_map(|slot| slot.exchange.as_ref());
        self.in_flight_at_stop = in_flight.map(|exchange| exchange.ask.request).collect();
        self.in_flight_at_stop.sort_unstable();
        if now {
            self.doom_all(out);
        }
    }

    fn doom_all(&mut self, out: &mut Outside) {
        for place in 0..self.slots.len() {
            let slot = &self.slots[place];
            if slot.exchange.is_some() && slot.state != State::Closing {
                self.doom(place, Class::Interrupted, out);
            }
        }
    }

    fn has_in_flight(&self) -> bool {
        self.slots.iter().any(|slot| slot.exchange.is_some())
    }

    /// Whether nothing is open that nobody would ever close.
    pub(super) fn is_over(&self) -> bool {
        !self.has_in_flight() && self.work.is_over()
    }

    fn hang_up(&mut self, place: usize, out: &mut Outside) {
        let slot = &mut self.slots[place];
        if matches!(slot.state, State::Closing | State::Free) {
            return;
        }
        let opening = matches!(slot.state, State::Connecting { .. });
        slot.state = State::Closing;
        if opening {
            // What the network said of it comes too late.
            slot.link += 1;
        }
        let delay = out.random.ns(HANG_UP_NS);
        out.after(delay, self.event(place, News::Gone { reset: false }));
    }

    fn drop_idle(&mut self, place: usize, out: &mut Outside) {
        self.forget_idle(place);
        self.hang_up(place, out);
    }

    fn forget_idle(&mut self, place: usize) {
        let slot = &mut self.slots[place];
        match slot.held.take() {
            Some(session) => self.reuse.lost(session),
            None => self.idle[usize::from(slot.target)].retain(|&other| other != place),
        }
    }

    fn let_go(&mut self, place: usize) {
        let slot = &mut self.slots[place];
        assert_ne!(slot.state, State::Free, "a connection goes once");
        slot.state = State::Free;
        slot.link += 1;
        self.free.push(place);
    }

    fn watch(&mut self, place: usize, out: &mut Outside) {
        self.deadlines.watch(u32::try_from(place).expect("few"), out.now);
        self.arm_chores(out);
    }

    /// Limits are looked at while anything is on its way.
    fn arm_chores(&mut self, out: &mut Outside) {
        if self.chores_at.is_none() && self.has_in_flight() {
            self.chores_at = Some(RunNanos(out.now.0 + CHORES_NS));
            let event = Event { core: self.number, slot: 0, link: 0, news: News::Chores };
            out.after(CHORES_NS, event);
        }
    }
}

impl Slot {
    fn new() -> Self {
        Self {
            state: State::Free,
            link: 0,
            target: 0,
            held: None,
            used: false,
            waited: false,
            reader: AnswerReader::new(),
            pipe: Pipe::default(),
            exchange: None,
        }
    }
}

impl Exchange {
    const fn of(ask: Ask) -> Self {
        Self {
            ask,
            begun: None,
            sent: None,
            sent_whole: false,
            latest: None,
            resent: false,
            doomed: None,
            read: 0,
            tokens: 0,
            text: Vec::new(),
            truth: None,
        }
    }

    /// The same request before its first byte, for the one resend.
    fn again(&self) -> Self {
        let begun = self.begun.or(self.sent);
        Self { begun, sent: self.sent, resent: true, ..Self::of(self.ask) }
    }
}

fn note(answer: &Answer<'_>, exchange: &mut Exchange) {
    match *answer {
        Answer::Chunk { tokens, .. } => exchange.tokens += tokens as usize,
        Answer::Text { raw, .. } => exchange.text.extend_from_slice(raw),
        _ => {}
    }
}

const fn unanswered(class: Class) -> AnswerEnd {
    AnswerEnd {
        class,
        status: None,
        finish: FinishReason::Unknown,
        flags: DoneFlags(0),
        response_bytes: 0,
        reusable: false,
    }
}
