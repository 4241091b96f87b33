//! The floor: a bare program that writes prepared requests at their deadlines and nothing else.
//!
//! No runtime, no parser, no log: one pinned thread spins on the clock, sends with one non-blocking
//! system call, and between deadlines polls epoll to see which connections have had their (known)
//! number of answer bytes. This is what the host allows; Onbeat is measured against it. It watches
//! its own clock by a pacing core's rule, so that host stalls are told apart on both sides.

use std::io::{IoSlice, Read};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;

use onbeat::clock::{monotonic_ns, thread_cpu_ns};
use onbeat::replayer::stall::{Span, StallWatch};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags};
use rustix::time::Timespec;

/// What the floor was told.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) address: SocketAddr,
    pub(crate) connections: usize,
    pub(crate) body_bytes: usize,
    pub(crate) answer_bytes: usize,
}

/// What the floor saw.
#[derive(Debug)]
pub(crate) struct Floor {
    /// The schedule's zero on the monotonic clock.
    pub(crate) zero_ns: i64,
    /// When each request was handed to the kernel, from zero; in schedule order.
    pub(crate) sent_ns: Vec<i64>,
    /// When the last byte of the last answer was read, from zero.
    pub(crate) end_ns: i64,
    /// When the kernel had taken the last byte of the last request, from zero.
    pub(crate) sent_end_ns: i64,
    /// When the host took the core away; on the monotonic clock.
    pub(crate) stalls: Vec<Span>,
}

struct Connection {
    stream: TcpStream,
    left: usize,
    request: usize,
    offset: usize,
}

/// Sends every request of `due` (ns from zero) once.
pub(crate) fn run(task: &Task, due: &[i64]) -> std::io::Result<Floor> {
    let requests = Requests {
        heads: (0..due.len()).map(|i| head(i, task.body_bytes)).collect(),
        body: vec![b'x'; task.body_bytes],
    };
    let poll = epoll::create(CreateFlags::CLOEXEC)?;
    let mut connections = connect(task, &poll)?;
    let mut idle: Vec<usize> = (0..connections.len()).rev().collect();
    let mut events = Vec::with_capacity(1_024);
    let mut input = vec![0; 64 * 1024];
    let mut stalls = Vec::with_capacity(1_024);
    let mut sent_ns = vec![0; due.len()];
    let (mut next, mut ended, mut sent_end_ns) = (0, 0, 0);
    let mut worked = false;
    let mut watch = StallWatch::new(monotonic_ns(), thread_cpu_ns());
    let zero_ns = monotonic_ns() + 100_000_000;
    while ended < due.len() {
        let now_ns = monotonic_ns();
        stalls.extend(watch.look(now_ns, worked, thread_cpu_ns));
        worked = true;
        let now = now_ns - zero_ns;
        if next < due.len()
            && now >= due[next]
            && let Some(index) = idle.pop()
        {
            sent_ns[next] = now;
            let connection = &mut connections[index];
            (connection.left, connection.request, connection.offset) = (task.answer_bytes, next, 0);
            if connection.send(&requests)? {
                sent_end_ns = monotonic_ns() - zero_ns;
            }
            next += 1;
            continue;
        }
        events.clear();
        let no_wait = Timespec { tv_sec: 0, tv_nsec: 0 };
        epoll::wait(&poll, spare_capacity(&mut events), Some(&no_wait))?;
        worked = !events.is_empty();
        for event in &events {
            let index = usize::try_from(event.data.u64()).expect("an index");
            let connection = &mut connections[index];
            if connection.request != usize::MAX && connection.send(&requests)? {
                sent_end_ns = monotonic_ns() - zero_ns;
            }
            if connection.receive(&mut input)? {
                ended += 1;
                idle.push(index);
            }
        }
    }
    Ok(Floor { zero_ns, sent_ns, end_ns: monotonic_ns() - zero_ns, sent_end_ns, stalls })
}

/// Opens every connection, watched by `poll` under its index.
fn connect(task: &Task, poll: &OwnedFd) -> std::io::Result<Vec<Connection>> {
    let mut connections = Vec::with_capacity(task.connections);
    for index in 0..task.connections {
        let stream = TcpStream::connect(task.address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
        epoll::add(poll, &stream, EventData::new_u64(index as u64), flags)?;
        connections.push(Connection { stream, left: 0, request: usize::MAX, offset: 0 });
    }
    Ok(connections)
}

/// Every request: a head of its own, and one body for all.
struct Requests {
    heads: Vec<Vec<u8>>,
    body: Vec<u8>,
}

impl Connection {
    /// Hands the kernel what it takes; `true` when the request has left whole, just now.
    fn send(&mut self, requests: &Requests) -> std::io::Result<bool> {
        let head = &requests.heads[self.request];
        let length = head.len() + requests.body.len();
        while self.offset < length {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            let head_left = &head[self.offset.min(head.len())..];
            let body_left = &requests.body[self.offset.saturating_sub(head.len())..];
            let parts = [IoSlice::new(head_left), IoSlice::new(body_left)];
            let mut no_control = SendAncillaryBuffer::default();
            match rustix::net::sendmsg(&self.stream, &parts, &mut no_control, flags) {
                Ok(taken) => self.offset += taken,
                Err(Errno::AGAIN) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        self.request = usize::MAX;
        Ok(true)
    }

    /// Reads what there is; `true` when the answer is complete, just now.
    fn receive(&mut self, input: &mut [u8]) -> std::io::Result<bool> {
        let waiting = self.left > 0;
        loop {
            match self.stream.read(input) {
                // A server that has answered everything hangs up; one that owes an answer may not.
                Ok(0) if self.left == 0 => return Ok(waiting),
                Ok(0) => return Err(std::io::Error::other("the server closed a connection")),
                Ok(length) => self.left = self.left.saturating_sub(length),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    return Ok(waiting && self.left == 0);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// A head of the shape Onbeat sends, for a body of `body_bytes`.
fn head(number: usize, body_bytes: usize) -> Vec<u8> {
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nUser-Agent: floor\r\n\
         X-Request-ID: 0123456789abcdef-{number}\r\nX-Correlation-ID: session_{number:06}\r\n\
         Accept: text/event-stream\r\nAccept-Encoding: identity\r\n\
         Content-Type: application/json\r\nContent-Length: {body_bytes}\r\n\r\n"
    )
    .into_bytes()
}
