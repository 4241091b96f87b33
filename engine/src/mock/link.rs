//! One connection: a task that always reads, and the two ends it shares with the task that answers.
//!
//! Reading goes on while an answer is written, so a client that leaves is noticed at once. A
//! pending read is never dropped: [`Link::hang_up`] cancels it and the task awaits the outcome.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use monoio::buf::IoBuf;
use monoio::io::{
    CancelHandle, CancelableAsyncReadRent, CancelableAsyncWriteRent, Canceller, OwnedReadHalf,
    OwnedWriteHalf,
};
use monoio::net::TcpStream;

use super::bell::Bell;
use super::request::RequestReader;
use crate::clock::monotonic_ns;
use crate::limits::MOCK_PIPELINED_MAX;

/// Bytes read at once.
const READ_BYTES: usize = 32 << 10;

/// What the two tasks of a connection share.
pub(super) struct Link {
    pub(super) requests: RefCell<RequestReader>,
    /// Rings for the answering task: a request came, tokens came, the client left.
    pub(super) news: Bell,
    /// Rings for the reading task: there is room for more requests.
    pub(super) room: Bell,
    gone: Cell<bool>,
    canceller: RefCell<Canceller>,
    handle: CancelHandle,
}

impl Link {
    pub(super) fn new() -> Self {
        let canceller = Canceller::new();
        Self {
            requests: RefCell::new(RequestReader::new()),
            news: Bell::default(),
            room: Bell::default(),
            gone: Cell::new(false),
            handle: canceller.handle(),
            canceller: RefCell::new(canceller),
        }
    }

    /// The client has left, or was hung up on.
    pub(super) fn is_gone(&self) -> bool {
        self.gone.get()
    }

    /// Ends whatever read or write is pending, and all later ones.
    pub(super) fn hang_up(&self) {
        self.gone.set(true);
        self.canceller.take().cancel();
        self.room.ring();
        self.news.ring();
    }

    /// Reads until the client leaves or is hung up on.
    pub(super) async fn read_all(self: Rc<Self>, mut socket: OwnedReadHalf<TcpStream>) {
        let mut buffer = Vec::with_capacity(READ_BYTES);
        while !self.is_gone() {
            if self.requests.borrow().waiting() >= MOCK_PIPELINED_MAX {
                self.room.heard().await;
                continue;
            }
            let (result, filled) = socket.cancelable_read(buffer, self.handle.clone()).await;
            buffer = filled;
            let now_ns = monotonic_ns();
            match result {
                Ok(length) if length > 0 => {
                    self.requests.borrow_mut().push(&buffer[..length], now_ns);
                    self.news.ring();
                }
                _ => break,
            }
        }
        self.gone.set(true);
        self.news.ring();
    }

    /// Writes all of `bytes`.
    pub(super) async fn write_all(
        &self,
        socket: &mut OwnedWriteHalf<TcpStream>,
        mut bytes: Vec<u8>,
    ) -> io::Result<()> {
        let mut written = 0;
        while written < bytes.len() {
            let rest = bytes.slice(written..);
            let (result, rest) = socket.cancelable_write(rest, self.handle.clone()).await;
            bytes = rest.into_inner();
            match result? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                length => written += length,
            }
        }
        Ok(())
    }
}
