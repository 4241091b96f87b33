//! The tasks that own a socket: one opens it and reads, one writes what the kernel did not take.
//!
//! A read is pending from the moment a connection is open until it is gone, also while it is idle:
//! that is how a server's close is noticed before a request is put on it, and it means that no read
//! is ever cancelled. Whoever wants a connection to end hangs it up, and the read completes.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use monoio::buf::Slice;
use monoio::io::{AsyncReadRent, AsyncWriteRent, OwnedReadHalf, OwnedWriteHalf, Splitable};
use monoio::net::TcpStream;
use onbeat_shared::log::outcome::Class;
use onbeat_shared::units::{RequestIndex, RunNanos};

use super::core::CoreHandle;
use super::slot::State;
use crate::net::lent::Lent;
use crate::net::socket::{Wire, begin_connect, finish_connect, is_passing, read_class};
use crate::net::tls::{Fault, Phase, Session};
use crate::net::way::Way;

/// Bytes of one read. Large enough for a hundred small events, small enough for twenty thousand
/// connections; pages that no read reaches are never touched.
const READ_BYTES: usize = 32 * 1024;

/// Bytes of one read of a handshake: a server's certificates fit.
const HANDSHAKE_BYTES: usize = 8 * 1024;

/// Reads of one connection before the pacer has had another turn. On epoll a read that finds bytes
/// does not give way to anybody, and a server may send faster than its answer is read.
const READS_PER_TURN: u32 = 32;

/// Opens connection number `turn` in slot `index` and then reads from it until it is gone.
pub(super) async fn open(core: CoreHandle, index: u32, way: Arc<Way>, turn: usize) {
    let mut since = core.borrow().now();
    let begun = match begin_session(&core, index, &way).await {
        Ok(session) => {
            since = core.borrow().now();
            begin(&core, index, &way, turn).await.map(|stream| (stream, session))
        }
        Err(error) => Err(error),
    };
    let (mut stream, session) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            core.borrow_mut().not_opened(index, since, error);
            return;
        }
    };
    core.borrow_mut().slots[index as usize].wire = Some(Wire::of(&stream));
    if core.borrow().slots[index as usize].state == State::Closing {
        core.borrow_mut().slots[index as usize].hang_up();
    }
    match finish(&core, session, &mut stream).await {
        Ok(session) => core.borrow_mut().slots[index as usize].tls = session,
        Err(error) => {
            core.borrow_mut().not_opened(index, since, error);
            return;
        }
    }
    let (read_half, write_half) = stream.into_split();
    let writer = monoio::spawn(write(Rc::clone(&core), index, write_half));
    core.borrow_mut().opened(index, since);
    read(&core, index, read_half).await;
    // The writer may be inside a write that the hang-up ends; the socket lives until it is done.
    writer.await;
    core.borrow_mut().free_slot(index);
}

/// Begins to connect, as soon as the server has room for it.
async fn begin(core: &CoreHandle, index: u32, way: &Way, turn: usize) -> io::Result<TcpStream> {
    loop {
        if let Some(stream) = begin_connect(way, turn)? {
            return Ok(stream);
        }
        let look = core.borrow().looks;
        poll_fn(|context| core.borrow_mut().poll_next_look(look, context)).await;
        if core.borrow().slots[index as usize].state == State::Closing {
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
    }
}

/// The TLS session of a connection that is yet to be opened, if it is to have one. Before zero
/// there is time to wait for a ticket that another session brings.
async fn begin_session(
    core: &CoreHandle,
    index: u32,
    way: &Way,
) -> io::Result<Option<Box<Session>>> {
    let Some(client) = &way.tls else { return Ok(None) };
    while client.resumes()
        && !client.may_resume()
        && core.borrow_mut().awaits_tickets(client.tickets_seen())
    {
        let look = core.borrow().looks;
        poll_fn(|context| core.borrow_mut().poll_next_look(look, context)).await;
        if core.borrow().slots[index as usize].state == State::Closing {
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
    }
    Ok(Some(Box::new(client.begin()?)))
}

/// Waits until a connection is open, and its TLS session as well.
async fn finish(
    core: &CoreHandle,
    session: Option<Box<Session>>,
    stream: &mut TcpStream,
) -> io::Result<Option<Box<Session>>> {
    finish_connect(stream).await?;
    let Some(mut session) = session else { return Ok(None) };
    let mut buffer = vec![0; HANDSHAKE_BYTES];
    loop {
        flush(&mut session, stream).await.map_err(|error| Fault::broken_off(&error))?;
        if session.phase() != Phase::Handshake {
            return Ok(Some(session));
        }
        let (read, returned) = stream.read(buffer).await;
        buffer = returned;
        if read.as_ref().is_err_and(is_passing) {
            continue;
        }
        let count = read.map_err(|error| Fault::broken_off(&error))?;
        if count == 0 {
            return Err(Fault::closed().into());
        }
        // Reading the server's part takes many sends' time: what is due goes first.
        core.borrow_mut().fire_due();
        if let Err(fault) = session.receive(&buffer[..count], &mut Vec::new()) {
            // The alert that says why; whether it arrives changes nothing.
            let _ = flush(&mut session, stream).await;
            return Err(fault.into());
        }
        core.borrow_mut().worked = true;
    }
}

async fn flush(session: &mut Session, stream: &mut TcpStream) -> io::Result<()> {
    while !session.ready().is_empty() {
        let (result, lent) = stream.write(session.lend()).await;
        session.give_back(lent, *result.as_ref().unwrap_or(&0));
        result?;
    }
    Ok(())
}

async fn read(core: &CoreHandle, index: u32, mut half: OwnedReadHalf<TcpStream>) {
    let mut buffer = vec![0; READ_BYTES];
    let (mut turn, mut reads) = (0, 0);
    loop {
        let (result, returned) = half.read(buffer).await;
        buffer = returned;
        if result.as_ref().is_err_and(is_passing) {
            continue;
        }
        if !core.borrow_mut().arrived(index, result.map(|length| &buffer[..length])) {
            return;
        }
        let present = core.borrow().turn;
        reads = if present == turn { reads + 1 } else { 1 };
        turn = present;
        if reads >= READS_PER_TURN {
            poll_fn(|context| core.borrow_mut().poll_next_turn(turn, context)).await;
        }
    }
}

async fn write(core: CoreHandle, index: u32, mut half: OwnedWriteHalf<TcpStream>) {
    while let Some(next) = next_write(&core, index).await {
        match next {
            Write::Plain(request, lent) => {
                let (result, _) = half.write(lent).await;
                core.borrow_mut().wrote(index, request, result);
            }
            Write::Sealed(lent) => {
                let (result, lent) = half.write(lent).await;
                core.borrow_mut().wrote_sealed(index, lent, result);
            }
        }
    }
    // Both halves must be gone before the slot may be used again.
    drop(half);
}

/// What the driver is to write.
enum Write {
    /// Bytes of a request.
    Plain(RequestIndex, Lent),
    /// Ciphertext.
    Sealed(Slice<Vec<u8>>),
}

/// Waits until the connection has something for the driver to write; `None` when it is gone.
async fn next_write(core: &CoreHandle, index: u32) -> Option<Write> {
    poll_fn(|context| {
        let mut core = core.borrow_mut();
        let slot = &mut core.slots[index as usize];
        if slot.state == State::Closing {
            return Poll::Ready(None);
        }
        if slot.tls.is_some() && slot.blocked {
            return Poll::Ready(core.next_sealed_write(index).map(Write::Sealed));
        }
        let Some(request) = slot.writing() else {
            if !slot.writer.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
                slot.writer = Some(context.waker().clone());
            }
            return Poll::Pending;
        };
        Poll::Ready(core.next_write(index).map(|lent| Write::Plain(request, lent)))
    })
    .await
}

impl super::core::Core {
    /// A read of slot `index` has completed; returns whether there will be another.
    pub(super) fn arrived(&mut self, index: u32, read: io::Result<&[u8]>) -> bool {
        let time = self.now();
        self.look(time.0 + self.zero_ns);
        let goes_on = match read {
            Ok(bytes) if !bytes.is_empty() => {
                // A due request does not wait for the parsing of an answer, but must not be put on
                // a connection that talks out of turn.
                if self.slots[index as usize].exchange.is_some() {
                    self.fire_due_at(time);
                }
                if self.slots[index as usize].tls.is_some() {
                    self.unseal(index, time, bytes)
                } else {
                    self.received(index, time, bytes);
                    true
                }
            }
            ended => {
                // Nor on one that is gone.
                if let Err(error) = &ended {
                    self.blame_ourselves(index, read_class(error));
                }
                let reset = self.is_reset(index, &ended);
                self.close_slot(index, time, reset);
                self.fire_due();
                false
            }
        };
        // The next turn of a session leaves as the one before it ends.
        self.send_released();
        goes_on
    }

    /// A failure of slot `index` is of `class`, if it is not the server's.
    fn blame_ourselves(&mut self, index: u32, class: Option<Class>) {
        let slot = &mut self.slots[index as usize];
        // An answer that has said all it will say keeps its own outcome.
        let settled = slot.reader.settled();
        if let Some(exchange) = slot.exchange.as_mut().filter(|_| !settled) {
            exchange.doomed = exchange.doomed.or(class);
        }
    }

    /// The connection of slot `index` is gone: ends what it carried and lets its tasks finish.
    pub(super) fn close_slot(&mut self, index: u32, time: RunNanos, reset: bool) {
        self.closed(index, time, reset);
        let slot = &mut self.slots[index as usize];
        debug_assert_eq!(slot.state, State::Closing, "an end hangs up, which ends a pending write");
        // The tasks are about to let go of the socket.
        slot.wire = None;
    }
}
