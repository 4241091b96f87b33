//! The bench's server: stamps the first byte of each request and answers with fixed bytes.
//!
//! One thread, pinned, busy-polling epoll over non-blocking sockets, so that what it sees is when
//! bytes arrived and not when it woke up. It understands just enough HTTP to find the end of a
//! request and the number at the end of its `X-Request-ID`. When it has answered as many requests
//! as it was told to expect, it writes their arrival times (request number, nanoseconds of the
//! monotonic clock) and ends.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;

use onbeat::clock::monotonic_ns;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::time::Timespec;

/// What the server was told.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// Requests to answer before it ends.
    pub(crate) expect: usize,
    /// Content events in each answer.
    pub(crate) chunks: usize,
    /// Gives up after this long without a request.
    pub(crate) patience_ns: i64,
}

struct Peer {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// Bytes of the current request's body still to come, once its head is known.
    body_left: usize,
    /// When its first byte was read.
    arrived_ns: i64,
    number: u32,
    in_body: bool,
    unsent: Vec<u8>,
}

/// Serves until every expected request is answered; returns (request number, arrival).
pub(crate) fn serve(listener: &TcpListener, task: &Task) -> std::io::Result<Vec<(u32, i64)>> {
    listener.set_nonblocking(true)?;
    let poll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&poll, listener, EventData::new_u64(u64::MAX), EventFlags::IN)?;
    let answer = answer(task.chunks);
    let mut peers: HashMap<u64, Peer> = HashMap::new();
    let mut seen = Vec::with_capacity(task.expect);
    let mut events = Vec::with_capacity(1_024);
    let mut input = vec![0; 256 * 1024];
    let mut last_ns = monotonic_ns();
    while seen.len() < task.expect {
        events.clear();
        let no_wait = Timespec { tv_sec: 0, tv_nsec: 0 };
        epoll::wait(&poll, spare_capacity(&mut events), Some(&no_wait))?;
        if events.is_empty() {
            if monotonic_ns() - last_ns > task.patience_ns {
                break;
            }
            continue;
        }
        for event in &events {
            let key = event.data.u64();
            if key == u64::MAX {
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nonblocking(true)?;
                    stream.set_nodelay(true)?;
                    let key = u64::try_from(stream.as_raw_fd()).expect("descriptors count up");
                    let flags = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
                    epoll::add(&poll, &stream, EventData::new_u64(key), flags)?;
                    peers.insert(key, Peer::new(stream));
                }
                continue;
            }
            let Some(peer) = peers.get_mut(&key) else { continue };
            last_ns = monotonic_ns();
            if !peer.pump(&mut input, &answer, &mut seen) {
                peers.remove(&key);
            }
        }
    }
    // Answers still in socket buffers are on their way; the client hangs up when it has them.
    let until = monotonic_ns() + 500_000_000;
    while monotonic_ns() < until && peers.values_mut().any(|peer| !peer.flush()) {}
    Ok(seen)
}

impl Peer {
    fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            buffer: Vec::new(),
            body_left: 0,
            arrived_ns: 0,
            number: 0,
            in_body: false,
            unsent: Vec::new(),
        }
    }

    /// Reads and answers all there is; `false` when the client is gone.
    fn pump(&mut self, input: &mut [u8], answer: &[u8], seen: &mut Vec<(u32, i64)>) -> bool {
        self.flush();
        loop {
            match self.stream.read(input) {
                Ok(0) => return false,
                Ok(length) => self.take(monotonic_ns(), &input[..length], answer, seen),
                Err(error) => return error.kind() == std::io::ErrorKind::WouldBlock,
            }
        }
    }

    fn take(&mut self, now: i64, mut bytes: &[u8], answer: &[u8], seen: &mut Vec<(u32, i64)>) {
        while !bytes.is_empty() {
            if !self.in_body {
                if self.buffer.is_empty() {
                    self.arrived_ns = now;
                }
                let before = self.buffer.len();
                self.buffer.extend_from_slice(bytes);
                let Some(end) = find(&self.buffer, b"\r\n\r\n") else { return };
                let (number, length) = head(&self.buffer[..end]);
                bytes = &bytes[end + 4 - before..];
                self.buffer.clear();
                (self.number, self.body_left, self.in_body) = (number, length, true);
            }
            let here = self.body_left.min(bytes.len());
            self.body_left -= here;
            bytes = &bytes[here..];
            if self.body_left == 0 {
                self.in_body = false;
                seen.push((self.number, self.arrived_ns));
                self.unsent.extend_from_slice(answer);
                self.flush();
            }
        }
    }

    /// Writes what the socket takes; `true` when nothing is left.
    fn flush(&mut self) -> bool {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(taken) => drop(self.unsent.drain(..taken)),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return false,
                Err(_) => self.unsent.clear(),
            }
        }
        true
    }
}

/// The number at the end of `X-Request-ID` and the body's length.
fn head(bytes: &[u8]) -> (u32, usize) {
    let (mut number, mut length) = (u32::MAX, 0);
    for line in bytes.split(|&byte| byte == b'\n') {
        let Ok(line) = std::str::from_utf8(line) else { continue };
        let Some((name, value)) = line.trim_end().split_once(": ") else { continue };
        if name.eq_ignore_ascii_case("x-request-id") {
            number = value.rsplit('-').next().and_then(|n| n.parse().ok()).unwrap_or(u32::MAX);
        } else if name.eq_ignore_ascii_case("content-length") {
            length = value.parse().unwrap_or(0);
        }
    }
    (number, length)
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// A streamed completion of `chunks` content events, in one chunk of HTTP.
pub(crate) fn answer(chunks: usize) -> Vec<u8> {
    let mut events = String::new();
    for _ in 0..chunks {
        events.push_str(
            "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\
             \"delta\":{\"content\":\" word\"},\"finish_reason\":null}]}\n\n",
        );
    }
    events.push_str(
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\n\
         data: [DONE]\n\n",
    );
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n\
         {:x}\r\n{events}\r\n0\r\n\r\n",
        events.len()
    )
    .into_bytes()
}
