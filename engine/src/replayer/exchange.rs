//! One request's life on a connection: first byte out, answer in, one end.
//!
//! The stamps are taken here and nowhere else: `sent` right before the first byte is handed to the
//! kernel, a read's stamp when the read completed and before it is parsed. Bytes are given their
//! meaning by [`crate::wire`]; this file only writes it down.

use std::io::{self, IoSlice};

use onbeat_shared::log::outcome::{Class, FinishReason};
use onbeat_shared::log::record::{DoneFlags, Record, TEXT_PART_BYTES};
use onbeat_shared::log::together::Together;
use onbeat_shared::units::{RequestIndex, RunNanos};
use rustix::io::Errno;

use super::core::Core;
use super::counters::Counters;
use super::sink::Sink;
use super::slot::{Exchange, Slot, State};
use super::troupe::Troupe;
use crate::limits::ECHO_BYTES_MAX;
use crate::net::lent::Lent;
use crate::net::socket::{Wire, write_class};
use crate::render::Secret;
use crate::render::echo::{Budget, cut_echo};
use crate::render::secret::cut_out;
use crate::render::supply::Supply;
use crate::wire::{Answer, AnswerEnd};

/// Slices handed to the kernel in one call. More parts take more calls, a microsecond each.
const PARTS_PER_CALL: usize = 128;
/// Slices of most requests, or more: a list of these is made in no time.
const PARTS_FEW: usize = 8;
/// Most bytes of an error's words that are kept; the parser cuts there as well.
const ERROR_TEXT_BYTES: usize = 1_024;
/// What is said instead of words that may repeat a prompt that is too long to be looked through, or
/// that fails together with too many others.
const UNSEARCHED: [&[u8]; 2] = [
    b"(the server's words are left out: they may repeat the prompt, which is too long to look for \
      in them)",
    b"(the server's words are left out: they may repeat the prompt, and too many requests failed \
      at once to look for it in them; see those of the first)",
];

/// The end of an exchange that never got an answer.
pub(super) const fn unanswered(class: Class) -> AnswerEnd {
    AnswerEnd {
        class,
        status: None,
        finish: FinishReason::Unknown,
        flags: DoneFlags(0),
        response_bytes: 0,
        reusable: false,
    }
}

impl Core {
    /// Sends the first bytes of `exchange` on the open connection of slot `index`.
    pub(super) fn begin(&mut self, index: u32, mut exchange: Exchange) {
        let request = exchange.request;
        let slot = &mut self.slots[index as usize];
        slot.reader.begin(exchange.streaming.unwrap_or(self.assignment.streaming));
        if self.supply.begin(request) {
            slot.reader.keep_text();
        }
        let is_sealed = slot.tls.is_some();
        if is_sealed {
            self.seal_first(index, &mut exchange);
        }
        let sent = RunNanos(crate::clock::monotonic_ns() - self.zero_ns);
        let first = exchange.sent.is_none();
        if first {
            exchange.sent = Some(sent);
        }
        let ready = exchange.ready_at;
        let due = exchange.due.or_else(|| self.sessions.due(request));
        let slot = &mut self.slots[index as usize];
        slot.exchange = Some(exchange);
        let (used, target) = (slot.used, slot.target);
        if is_sealed {
            self.send_sealed(index);
        } else {
            self.send_more(index);
        }
        if first {
            self.sink.push(&Record::Dispatch { request, sent, ready, due, target, reused: used });
            self.counters.count_sent(sent.0 - ready.0);
        }
        self.log_if_sent_whole(index);
        self.deadlines.watch(index, sent);
    }

    /// Hands the kernel what it takes; leaves the rest to the connection's writer task.
    fn send_more(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        let (Some(exchange), Some(wire)) = (&mut slot.exchange, &slot.wire) else { return };
        slot.blocked = false;
        let supply = &self.supply;
        while !exchange.sent_whole {
            let few = supply.parts(exchange.request).len() <= PARTS_FEW;
            let sent = if few {
                send_parts::<PARTS_FEW>(exchange, supply, wire)
            } else {
                send_parts::<PARTS_PER_CALL>(exchange, supply, wire)
            };
            match sent {
                Ok(Some(taken)) => advance(exchange, supply, taken),
                Ok(None) => {
                    slot.blocked = true;
                    break;
                }
                Err(error) => return self.write_failed(index, error),
            }
        }
        if slot.blocked {
            slot.wake_writer();
        }
    }

    /// The kernel refused bytes of slot `index`. A broken connection's pending read is about to say
    /// so; whatever else it is, hanging up makes sure that the read ends.
    pub(super) fn write_failed(&mut self, index: u32, error: Errno) {
        let slot = &mut self.slots[index as usize];
        slot.blocked = false;
        if let Some(exchange) = &mut slot.exchange
            && exchange.doomed.is_none()
        {
            exchange.doomed = write_class(error);
        }
        slot.hang_up();
    }

    /// What the writer task should hand to the driver, if the connection waits for that.
    pub(super) fn next_write(&mut self, index: u32) -> Option<Lent> {
        let slot = &self.slots[index as usize];
        let exchange = slot.exchange.as_ref().filter(|_| slot.blocked)?;
        let (request, part, offset) = (exchange.request, exchange.part, exchange.part_offset);
        Some(Lent::new(self.supply.share(request, part), offset))
    }

    /// The driver wrote bytes of `request` on slot `index`, or could not.
    pub(super) fn wrote(&mut self, index: u32, request: RequestIndex, result: io::Result<usize>) {
        self.worked = true;
        let slot = &mut self.slots[index as usize];
        let Some(exchange) = slot.exchange.as_mut().filter(|it| it.request == request) else {
            // Answered or given up in the meantime.
            slot.blocked = false;
            return;
        };
        let refused = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
        match result.map_err(refused) {
            Ok(taken) => advance(exchange, &self.supply, taken),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return self.write_failed(index, error),
        }
        self.send_more(index);
        self.log_if_sent_whole(index);
    }

    pub(super) fn log_if_sent_whole(&mut self, index: u32) {
        let time = self.now();
        let Some(exchange) = &self.slots[index as usize].exchange else { return };
        if exchange.sent_whole {
            self.sink.push(&Record::SentEnd {
                request: exchange.request,
                time,
                bytes: exchange.accepted,
                connection: index,
            });
            self.time_cancellation(index, time);
            self.let_go(index);
        }
    }

    /// `bytes` arrived on slot `index` in a read that completed at `time`.
    pub(super) fn received(&mut self, index: u32, time: RunNanos, bytes: &[u8]) {
        self.worked = true;
        let slot = &mut self.slots[index as usize];
        let Some(exchange) = &mut slot.exchange else {
            // Nobody asked: a connection that talks out of turn cannot be trusted with a request.
            if slot.state == State::Open {
                self.drop_idle(index);
            }
            return;
        };
        if exchange.doomed.is_some() {
            return;
        }
        let first = exchange.latest_read.replace(time).is_none();
        if first {
            self.sink.push(&Record::FirstByte { request: exchange.request, time });
        }
        let mut scribe = Scribe {
            exchange,
            supply: &mut self.supply,
            sink: &mut self.sink,
            counters: &self.counters,
            troupe: self.troupe.as_deref_mut(),
            secrets: &self.assignment.secrets,
            recorded_prompts: self.assignment.recorded_prompts,
            echoes: &mut self.echoes,
            time,
            together: Together::default(),
        };
        let end = slot.reader.push(bytes, &mut |answer| scribe.write(&answer));
        scribe.write_together();
        if let Some(end) = end {
            self.answered(index, time, &end);
            return;
        }
        if slot.reader.settled() {
            self.lingering.watch(index, time);
        }
        if first {
            self.let_go(index);
        }
    }

    /// The peer closed or reset the connection of slot `index`; returns once its exchange has
    /// ended.
    pub(super) fn closed(&mut self, index: u32, time: RunNanos, reset: bool) {
        self.worked = true;
        let slot = &mut self.slots[index as usize];
        let resend = slot
            .exchange
            .as_ref()
            .is_some_and(|exchange| exchange.doomed.is_none() && slot.may_resend(exchange));
        let Some(exchange) = &mut slot.exchange else {
            if slot.state == State::Open {
                self.drop_idle(index);
            }
            return;
        };
        if resend {
            // The server closed an idle connection while our request was on its way to it. Nothing
            // of the request was answered, so it goes out once more, at once; its stamp stays. It
            // gets a connection of its own: what closed one idle connection may have closed all.
            let again = exchange.again();
            slot.exchange = None;
            slot.hang_up();
            let target = slot.target;
            self.open_connection(target, Some(again));
            return;
        }
        let mut scribe = Scribe {
            exchange,
            supply: &mut self.supply,
            sink: &mut self.sink,
            counters: &self.counters,
            troupe: self.troupe.as_deref_mut(),
            secrets: &self.assignment.secrets,
            recorded_prompts: self.assignment.recorded_prompts,
            echoes: &mut self.echoes,
            time,
            together: Together::default(),
        };
        let mut end = slot.reader.close(reset, &mut |answer| scribe.write(&answer));
        scribe.write_together();
        if let Some(class) = exchange.doomed {
            end.class = class;
        }
        end.reusable = false;
        self.answered(index, time, &end);
    }

    /// Ends the exchange of slot `index` from our side.
    pub(super) fn doom(&mut self, index: u32, class: Class) {
        let slot = &mut self.slots[index as usize];
        // An answer that has said all it will say keeps its own outcome. Before a connection is
        // open, its reader still holds the answer of the connection before it.
        let settled = slot.state == State::Open && slot.reader.settled();
        if let Some(exchange) = &mut slot.exchange
            && !settled
        {
            exchange.doomed = Some(class);
        }
        slot.hang_up();
    }

    /// Ends the exchange of slot `index`, if it has one, without waiting for its connection.
    pub(super) fn cut_off(&mut self, index: u32, time: RunNanos) {
        let slot = &self.slots[index as usize];
        let Some(exchange) = &slot.exchange else { return };
        // Before a connection is open its reader still holds the answer of the one before it.
        let is_told = exchange.sent.is_some() && !matches!(slot.state, State::Connecting { .. });
        if exchange.doomed.is_none() {
            self.doom(index, Class::ClientOther);
        }
        if is_told {
            self.closed(index, time, true);
        } else if let Some(exchange) = self.slots[index as usize].exchange.take() {
            let class = exchange.doomed.unwrap_or(Class::ClientOther);
            self.finish_exchange(&exchange, time, &unanswered(class));
        }
    }

    fn answered(&mut self, index: u32, time: RunNanos, end: &AnswerEnd) {
        let slot = &mut self.slots[index as usize];
        let Some(exchange) = slot.exchange.take() else { return };
        let whole = exchange.sent_whole;
        self.finish_exchange(&exchange, time, end);
        self.release(index, end.reusable && whole, exchange.request, end.class);
    }

    /// Writes down the end of `exchange`.
    pub(super) fn finish_exchange(&mut self, exchange: &Exchange, time: RunNanos, end: &AnswerEnd) {
        let request = exchange.request;
        if let Some(usage) = exchange.usage {
            self.sink.push(&Record::Usage { request, time, usage });
            if let Some(troupe) = &mut self.troupe {
                troupe.hear_usage(request, usage);
            }
        }
        let mut flags = end.flags;
        if exchange.resent {
            flags = flags.with(DoneFlags::RESENT);
        }
        if self.supply.is_cut(request) {
            flags = flags.with(DoneFlags::REPLY_CUT);
        }
        if exchange.underrun {
            flags = flags.with(DoneFlags::UNDERRUN);
        }
        if exchange.sent.is_some() && !exchange.sent_whole && exchange.latest_read.is_some() {
            flags = flags.with(DoneFlags::EARLY_ANSWER);
        }
        let done = Record::Done {
            request,
            time,
            class: end.class,
            status: end.status,
            response_bytes: end.response_bytes,
            finish: end.finish,
            flags,
        };
        let as_planned = matches!(end.class, Class::Ok | Class::CancelledByPlan);
        self.counters.count_ended(exchange.sent.is_some(), as_planned);
        self.end(request, &done);
    }
}

/// Hands the kernel the next `N` parts of `exchange`, or what is left of them.
fn send_parts<const N: usize>(
    exchange: &Exchange,
    supply: &Supply,
    wire: &Wire,
) -> Result<Option<usize>, Errno> {
    let mut parts = [IoSlice::new(&[]); N];
    let mut count = 0;
    let mut offset = exchange.part_offset;
    let rest = supply.parts(exchange.request).skip(exchange.part);
    for (place, part) in parts.iter_mut().zip(rest) {
        *place = IoSlice::new(&part[offset..]);
        offset = 0;
        count += 1;
    }
    wire.send_now(&parts[..count])
}

/// Moves the position of `exchange` forward by `taken` bytes.
fn advance(exchange: &mut Exchange, supply: &Supply, taken: usize) {
    exchange.accepted += taken as u64;
    exchange.sent_whole = exchange.accepted == supply.request_bytes(exchange.request);
    if exchange.sent_whole {
        // Nobody asks for the place of a request that has left.
        return;
    }
    let mut left = taken;
    let mut parts = supply.parts(exchange.request).skip(exchange.part);
    while left > 0 {
        let Some(part) = parts.next() else { break };
        let here = (part.len() - exchange.part_offset).min(left);
        left -= here;
        exchange.part_offset += here;
        if exchange.part_offset == part.len() {
            exchange.part += 1;
            exchange.part_offset = 0;
        }
    }
}

/// Turns what one read says into records. Content events are gathered: [`Scribe::write_together`]
/// belongs behind the last.
struct Scribe<'a> {
    exchange: &'a mut Exchange,
    supply: &'a mut Supply,
    sink: &'a mut Sink,
    counters: &'a Counters,
    /// Who else wants to know of tokens, in a user-driven run.
    troupe: Option<&'a mut Troupe>,
    secrets: &'a [Secret],
    recorded_prompts: bool,
    /// What of requests may still be looked through.
    echoes: &'a mut Budget,
    time: RunNanos,
    /// Content events that have no record yet.
    together: Together,
}

impl Scribe<'_> {
    /// Nearly every answer ends in the first two lines, which become part of the parser's loop.
    #[inline]
    fn write(&mut self, answer: &Answer<'_>) {
        match *answer {
            Answer::Event if self.exchange.event_seen => {}
            Answer::Chunk { kind, tokens, bytes, .. } if self.together.add(kind, tokens, bytes) => {
            }
            _ => self.write_rarer(answer),
        }
    }

    #[inline(never)]
    fn write_rarer(&mut self, answer: &Answer<'_>) {
        let (request, time) = (self.exchange.request, self.time);
        match *answer {
            Answer::Event if !self.exchange.event_seen => {
                self.exchange.event_seen = true;
                self.sink.push(&Record::FirstEvent { request, time });
            }
            Answer::Chunk { kind, tokens, bytes, .. } => {
                self.write_together();
                if !self.together.add(kind, tokens, bytes) {
                    self.counters.count_tokens(1);
                    self.tell_troupe(tokens);
                    self.sink.push(&Record::Chunk { request, time, kind, tokens, bytes });
                }
            }
            Answer::Text { raw, reasoning } => self.supply.hear(request, raw, reasoning),
            Answer::ToolCall => self.supply.leave_out(request),
            Answer::Usage(usage) => self.exchange.usage = Some(usage),
            // What the reader says of an answer that we ended ourselves is not the cause.
            Answer::ErrorText(_) if self.exchange.doomed.is_some() => {}
            Answer::ErrorText(text) => self.write_error(text),
            // Status and finish reason come with the end.
            Answer::Event | Answer::Head { .. } | Answer::Finish(_) => {}
        }
    }

    /// Gives the gathered events a record.
    #[inline]
    fn write_together(&mut self) {
        let together = std::mem::take(&mut self.together);
        if together.is_empty() {
            return;
        }
        self.counters.count_tokens(together.len() as u64);
        self.tell_troupe(u32::try_from(together.len()).unwrap_or(u32::MAX));
        let (request, time) = (self.exchange.request, self.time);
        // Readers are quickest with a record of one event, and most reads have one.
        let record = match together.only(request, time) {
            Some(event) => Record::from(event),
            None => Record::Chunks { request, time, together },
        };
        self.sink.push(&record);
    }

    #[inline]
    fn tell_troupe(&mut self, tokens: u32) {
        if let Some(troupe) = &mut self.troupe {
            troupe.hear_tokens(self.exchange.request, self.time, tokens);
        }
    }

    #[cold]
    fn write_error(&mut self, text: &[u8]) {
        let mut kept = [0; ERROR_TEXT_BYTES];
        let kept = &mut kept[..text.len().min(ERROR_TEXT_BYTES)];
        kept.copy_from_slice(&text[..kept.len()]);
        cut_out(kept, self.secrets);
        let request = self.exchange.request;
        if self.recorded_prompts {
            let bytes = self.supply.request_bytes(request);
            if !self.echoes.spend(bytes, self.time) {
                let why = UNSEARCHED[usize::from(bytes <= ECHO_BYTES_MAX)];
                return write_text(self.sink, request, why);
            }
            cut_echo(kept, self.supply.parts(request));
        }
        write_text(self.sink, request, kept);
    }
}

/// Writes down our own words about the end of `request`.
#[cold]
pub(super) fn write_words(sink: &mut Sink, request: RequestIndex, words: &str) {
    write_text(sink, request, &words.as_bytes()[..words.floor_char_boundary(ERROR_TEXT_BYTES)]);
}

fn write_text(sink: &mut Sink, request: RequestIndex, text: &[u8]) {
    for (part, piece) in (0..=u16::MAX).zip(text.chunks(TEXT_PART_BYTES)) {
        let mut bytes = [0; TEXT_PART_BYTES];
        bytes[..piece.len()].copy_from_slice(piece);
        let used = u8::try_from(piece.len()).expect("a part is at most 24 bytes");
        sink.push(&Record::Text { request, part, used, bytes });
    }
}

impl Slot {
    /// The request the writer task is writing for.
    pub(super) fn writing(&self) -> Option<RequestIndex> {
        self.exchange.as_ref().filter(|_| self.blocked).map(|exchange| exchange.request)
    }
}
