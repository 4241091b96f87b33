//! What differs for a connection that speaks TLS: bytes are encrypted on their way out and
//! decrypted on their way in.
//!
//! A request is encrypted after it is due and on the connection it leaves on, one record before
//! its `sent` stamp and the rest, a piece at a time, as the kernel takes it: so its lateness
//! includes encrypting 16 KiB at most, and its sending time the rest. A read is stamped when it
//! completes and decrypted after that. Plain connections pass none of this but the branch that
//! leads here.

use std::io::{self, IoSlice};

use monoio::buf::Slice;
use onbeat_shared::units::RunNanos;
use rustix::io::Errno;

use super::core::Core;
use super::exchange::write_words;
use super::slot::{Exchange, State};
use crate::net::tls::{Fault, PIECE_BYTES, Phase, RECORD_BYTES, Session};
use crate::render::supply::Supply;

/// Plaintext between a session and what it is for; a core uses it for one thing at a time.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// What has been decrypted.
    opened: Vec<u8>,
    /// What is to be encrypted.
    gathered: Vec<u8>,
}

impl Scratch {
    /// Room for what one read can hold, and for one piece of a request.
    pub(super) fn new() -> Self {
        const READS_BYTES: usize = 64 * 1024;
        Self { opened: Vec::with_capacity(READS_BYTES), gathered: Vec::with_capacity(PIECE_BYTES) }
    }
}

impl Core {
    /// Encrypts the first record of `exchange`, which is about to leave on slot `index`.
    pub(super) fn seal_first(&mut self, index: u32, exchange: &mut Exchange) {
        let Some(tls) = &mut self.slots[index as usize].tls else { return };
        // A session that is over says so again when the record should leave.
        let _ = seal(tls, &self.supply, exchange, RECORD_BYTES, &mut self.scratch.gathered);
    }

    /// Hands the kernel what it takes; leaves the rest to the connection's writer task.
    pub(super) fn send_sealed(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        let (Some(tls), Some(wire)) = (&mut slot.tls, &slot.wire) else { return };
        if tls.is_lent() {
            return;
        }
        slot.blocked = false;
        loop {
            if tls.ready().is_empty() {
                let Some(exchange) = &mut slot.exchange else { break };
                if exchange.sent_whole {
                    break;
                }
                match seal(tls, &self.supply, exchange, PIECE_BYTES, &mut self.scratch.gathered) {
                    Ok(true) => {}
                    Ok(false) => {
                        exchange.sent_whole = true;
                        break;
                    }
                    Err(fault) => return self.session_broke(index, &fault),
                }
            }
            match wire.send_now(&[IoSlice::new(tls.ready())]) {
                Ok(Some(taken)) => tls.left(taken),
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

    /// What the writer task should hand to the driver, if a session waits for that.
    pub(super) fn next_sealed_write(&mut self, index: u32) -> Option<Slice<Vec<u8>>> {
        let slot = &mut self.slots[index as usize];
        let blocked = slot.blocked;
        slot.tls.as_mut().filter(|tls| blocked && !tls.is_lent()).map(|tls| tls.lend())
    }

    /// The driver wrote ciphertext of slot `index`, or could not.
    pub(super) fn wrote_sealed(
        &mut self,
        index: u32,
        lent: Slice<Vec<u8>>,
        result: io::Result<usize>,
    ) {
        self.worked = true;
        let slot = &mut self.slots[index as usize];
        let Some(tls) = &mut slot.tls else { return };
        tls.give_back(lent, *result.as_ref().unwrap_or(&0));
        if slot.state == State::Closing {
            slot.blocked = false;
            return;
        }
        let refused = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
        match result.map_err(refused) {
            Ok(_) | Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return self.write_failed(index, error),
        }
        let was_whole = slot.exchange.as_ref().is_none_or(|exchange| exchange.sent_whole);
        self.send_sealed(index);
        if !was_whole {
            self.log_if_sent_whole(index);
        }
    }

    /// Ciphertext arrived on slot `index` in a read that completed at `time`; returns whether there
    /// is to be another read.
    pub(super) fn unseal(&mut self, index: u32, time: RunNanos, bytes: &[u8]) -> bool {
        let Some(tls) = &mut self.slots[index as usize].tls else { return false };
        let mut plain = std::mem::take(&mut self.scratch.opened);
        plain.clear();
        let phase = tls.receive(bytes, &mut plain);
        if !plain.is_empty() {
            self.received(index, time, &plain);
        }
        self.scratch.opened = plain;
        self.worked = true;
        match phase {
            Ok(Phase::Closed) => {
                // The end, in so many words: what was not framed is whole.
                self.close_slot(index, time, false);
                self.fire_due();
                false
            }
            Ok(Phase::Handshake | Phase::Open) => {
                let slot = &self.slots[index as usize];
                // An answer to a message of TLS itself, such as new keys.
                if slot.state == State::Open && !slot.blocked {
                    self.send_sealed(index);
                    let slot = &mut self.slots[index as usize];
                    if slot.blocked && slot.exchange.is_none() {
                        self.drop_idle(index);
                    }
                }
                true
            }
            Err(fault) => {
                self.session_broke(index, &fault);
                self.close_slot(index, time, true);
                self.fire_due();
                false
            }
        }
    }

    /// The session of slot `index` is over: tells the server why, if there is a way to, and ends
    /// the connection.
    fn session_broke(&mut self, index: u32, fault: &Fault) {
        let slot = &mut self.slots[index as usize];
        if let (Some(tls), Some(wire)) = (&slot.tls, &slot.wire)
            && !tls.ready().is_empty()
        {
            let _ = wire.send_now(&[IoSlice::new(tls.ready())]);
        }
        // An answer that has said all it will say keeps its own outcome.
        let settled = slot.reader.settled();
        if let Some(exchange) = &mut slot.exchange
            && exchange.doomed.is_none()
            && !settled
        {
            exchange.doomed = Some(fault.class);
            // What its reader says then is not the cause, and is not written.
            write_words(&mut self.sink, exchange.request, &fault.to_string());
        }
        slot.blocked = false;
        if slot.exchange.is_some() {
            slot.hang_up();
        }
    }

    /// How an end of the connection in slot `index` is to be taken: over TLS, an end that the
    /// session did not announce may be anybody's, and counts as a reset.
    pub(super) fn is_reset(&self, index: u32, ended: &io::Result<&[u8]>) -> bool {
        ended.is_err() || self.slots[index as usize].tls.is_some()
    }
}

/// The wait for tickets before zero.
#[derive(Debug, Default)]
pub(super) struct Patience {
    seen: u64,
    since: RunNanos,
}

impl Patience {
    /// Whether it is worth waiting for another ticket at `now`, `limit_ns` being what a connection
    /// may take in all: they come one or two for each session, so while some come, more will.
    pub(super) fn lasts(&mut self, seen: u64, now: RunNanos, limit_ns: Option<i64>) -> bool {
        /// A server that has one to give gives it at once.
        const PAUSE_NS: i64 = 300_000_000;
        const IN_ALL_NS: i64 = 3_000_000_000;
        if seen > self.seen {
            (self.seen, self.since) = (seen, now);
        }
        let in_all_ns = limit_ns.map_or(IN_ALL_NS, |limit_ns| IN_ALL_NS.min(limit_ns / 2));
        now.0 < in_all_ns && now.0 - self.since.0 < PAUSE_NS
    }
}

/// Encrypts up to `most` more bytes of a request; `false` when there are none.
fn seal(
    tls: &mut Session,
    supply: &Supply,
    exchange: &mut Exchange,
    most: usize,
    gathered: &mut Vec<u8>,
) -> Result<bool, Fault> {
    gathered.clear();
    let (mut part, mut offset) = (exchange.part, exchange.part_offset);
    for bytes in supply.parts(exchange.request).skip(part) {
        let taken = (bytes.len() - offset).min(most - gathered.len());
        gathered.extend_from_slice(&bytes[offset..offset + taken]);
        offset += taken;
        if offset < bytes.len() {
            break;
        }
        (part, offset) = (part + 1, 0);
    }
    if gathered.is_empty() {
        return Ok(false);
    }
    tls.seal(gathered)?;
    (exchange.part, exchange.part_offset) = (part, offset);
    exchange.accepted += gathered.len() as u64;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_lasts_while_tickets_come_and_not_for_ever() {
        let at = |ms: i64| RunNanos(ms * 1_000_000);
        let mut patience = Patience::default();
        assert!(patience.lasts(1, at(10), None) && patience.lasts(1, at(300), None));
        assert!(!patience.lasts(1, at(320), None), "none has come for a while");
        assert!(patience.lasts(2, at(330), None), "one has");
        let mut patience = Patience::default();
        assert!((0..30).all(|turn: i32| {
            patience.lasts(u64::from(turn.unsigned_abs()), at(i64::from(turn) * 99), None)
        }));
        assert!(!patience.lasts(99, at(3_001), None), "all in all");
        assert!(!Patience::default().lasts(1, at(60), Some(100_000_000)), "half a limit");
    }
}
