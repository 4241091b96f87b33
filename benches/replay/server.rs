//! The bench's server: stamps the first byte of each request and answers with fixed bytes.
//!
//! One thread, pinned, busy-polling epoll over non-blocking sockets, so that what it sees is when
//! bytes arrived and not when it woke up. It understands just enough HTTP to find the end of a
//! request and the number at the end of its `X-Request-ID`; requests without one are numbered in
//! the order of their arrival. The first so many requests can be held: they are streams that stay
//! open, on which events are pushed at a given rate until every other request is answered. Then it
//! writes what it saw and ends. A GET is answered and not counted: clients ask for models. A DELETE
//! ends it, for clients of which it is not known how much they send.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;

use onbeat::clock::{monotonic_ns, thread_cpu_ns};
use onbeat::replayer::stall::StallWatch;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::time::Timespec;

/// Pushes made before the sockets are looked at again.
const PUSHES_TOGETHER: u32 = 4;

/// What the server was told.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// Requests to answer before it ends, held ones not counted.
    pub(crate) expect: usize,
    /// Content events in each answer.
    pub(crate) chunks: usize,
    /// Requests with a number below this are streams that stay open.
    pub(crate) hold: u32,
    /// Events in one push on a held stream.
    pub(crate) events: usize,
    /// Whether pushed events have text; otherwise they are as long but carry nothing.
    pub(crate) text: bool,
    /// Pushes a second over all held streams, once all are open.
    pub(crate) pushes_per_s: f64,
    /// Gives up after this long without a request.
    pub(crate) patience_ns: i64,
}

/// What the server saw.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Number and arrival of each request, held ones too, in the order in which they were whole.
    pub(crate) requests: Vec<(u32, i64)>,
    /// Share of the time between the first request and the last in which it had work.
    pub(crate) busy_share: f64,
    /// Events pushed on held streams.
    pub(crate) pushed_events: u64,
    /// Pushes left out because the client had not read the previous ones.
    pub(crate) skipped_pushes: u64,
    /// Host stalls of the server itself on the monotonic clock: start and length.
    pub(crate) stalls: Vec<(i64, i64)>,
}

/// What is sent.
struct Answers {
    whole: Vec<u8>,
    opening: Vec<u8>,
    push: Vec<u8>,
    ending: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Method {
    Post,
    Get,
    Delete,
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
    method: Method,
    unsent: Vec<u8>,
}

struct Server<'a> {
    task: &'a Task,
    answers: Answers,
    /// By descriptor.
    peers: Vec<Option<Box<Peer>>>,
    held: Vec<usize>,
    seen: Seen,
    answered: usize,
    pushes: u64,
    pushing_since_ns: Option<i64>,
}

/// Serves until every expected request is answered.
pub(crate) fn serve(listener: &TcpListener, task: &Task) -> Result<Seen> {
    listener.set_nonblocking(true)?;
    let poll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&poll, listener, EventData::new_u64(u64::MAX), EventFlags::IN)?;
    let mut server = Server::new(task);
    let mut events = Vec::with_capacity(1_024);
    let mut input = vec![0; 256 * 1024];
    let mut last_ns = monotonic_ns();
    let (mut busy_ns, mut first_ns) = (0, None);
    let mut watch = StallWatch::new(last_ns, thread_cpu_ns());
    let mut worked = true;
    while server.answered < task.expect {
        events.clear();
        let no_wait = Timespec { tv_sec: 0, tv_nsec: 0 };
        epoll::wait(&poll, spare_capacity(&mut events), Some(&no_wait))?;
        let begun_ns = monotonic_ns();
        if let Some(stall) = watch.look(begun_ns, worked, thread_cpu_ns) {
            server.seen.stalls.push((stall.start_ns, stall.length_ns));
        }
        let pushed = server.push(begun_ns);
        worked = pushed || !events.is_empty();
        if events.is_empty() {
            if begun_ns - last_ns > task.patience_ns {
                break;
            }
            busy_ns += if pushed { monotonic_ns() - begun_ns } else { 0 };
            continue;
        }
        last_ns = begun_ns;
        for event in &events {
            let key = usize::try_from(event.data.u64()).unwrap_or(usize::MAX);
            if key == usize::MAX {
                while let Ok((stream, _)) = listener.accept() {
                    server.welcome(&poll, stream)?;
                }
            } else {
                server.pump(key, &mut input);
            }
        }
        if first_ns.is_none() && !server.seen.requests.is_empty() {
            first_ns = Some(begun_ns);
        }
        busy_ns += first_ns.map_or(0, |_| monotonic_ns() - begun_ns);
    }
    let span_ns = first_ns.map_or(1, |first_ns| (monotonic_ns() - first_ns).max(1));
    server.seen.busy_share = busy_ns as f64 / span_ns as f64;
    Ok(server.farewell())
}

impl<'a> Server<'a> {
    fn new(task: &'a Task) -> Self {
        Self {
            task,
            answers: Answers::new(task),
            peers: Vec::new(),
            held: Vec::new(),
            seen: Seen::default(),
            answered: 0,
            pushes: 0,
            pushing_since_ns: None,
        }
    }

    fn welcome(&mut self, poll: &std::os::fd::OwnedFd, stream: TcpStream) -> Result<()> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let key = usize::try_from(stream.as_raw_fd()).expect("descriptors count up");
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
        epoll::add(poll, &stream, EventData::new_u64(key as u64), flags)?;
        if self.peers.len() <= key {
            self.peers.resize_with(key + 1, || None);
        }
        self.peers[key] = Some(Box::new(Peer::new(stream)));
        Ok(())
    }

    /// Reads and answers all there is on one connection.
    fn pump(&mut self, key: usize, input: &mut [u8]) {
        let Some(mut peer) = self.peers[key].take() else { return };
        peer.flush();
        loop {
            match peer.stream.read(input) {
                Ok(0) => return,
                Ok(length) => {
                    let now = monotonic_ns();
                    let mut bytes = &input[..length];
                    while peer.take(now, &mut bytes) {
                        self.answer(key, &mut peer);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return,
            }
        }
        self.peers[key] = Some(peer);
    }

    /// A request is whole.
    fn answer(&mut self, key: usize, peer: &mut Peer) {
        if peer.method != Method::Post {
            peer.unsent.extend_from_slice(&models());
            peer.flush();
            if peer.method == Method::Delete {
                self.answered = self.task.expect;
            }
            return;
        }
        let count = u32::try_from(self.seen.requests.len()).unwrap_or(u32::MAX);
        let number = if peer.number == u32::MAX { count } else { peer.number };
        self.seen.requests.push((number, peer.arrived_ns));
        if number < self.task.hold {
            peer.unsent.extend_from_slice(&self.answers.opening);
            self.held.push(key);
        } else {
            peer.unsent.extend_from_slice(&self.answers.whole);
            self.answered += 1;
        }
        peer.flush();
    }

    /// Pushes what is due on held streams; `true` when there was something.
    fn push(&mut self, now: i64) -> bool {
        if self.held.is_empty() || self.held.len() < self.task.hold as usize {
            return false;
        }
        let since_ns = *self.pushing_since_ns.get_or_insert(now);
        #[expect(clippy::cast_possible_truncation, reason = "far below 2^53")]
        #[expect(clippy::cast_sign_loss, reason = "time goes on")]
        let due = ((now - since_ns) as f64 / 1e9 * self.task.pushes_per_s) as u64;
        let mut pushed = 0;
        while self.pushes < due && pushed < PUSHES_TOGETHER {
            #[expect(clippy::cast_possible_truncation, reason = "a remainder of a usize")]
            let place = (self.pushes % self.held.len() as u64) as usize;
            self.pushes += 1;
            pushed += 1;
            let Some(peer) = &mut self.peers[self.held[place]] else { continue };
            if peer.flush() {
                peer.unsent.extend_from_slice(&self.answers.push);
                peer.flush();
                self.seen.pushed_events += self.task.events as u64;
            } else {
                self.seen.skipped_pushes += 1;
            }
        }
        pushed > 0
    }

    /// Ends held streams and waits until answers have left; the client hangs up when it has them.
    fn farewell(mut self) -> Seen {
        for key in &self.held {
            if let Some(peer) = &mut self.peers[*key] {
                peer.unsent.extend_from_slice(&self.answers.ending);
            }
        }
        let until = monotonic_ns() + 500_000_000;
        while monotonic_ns() < until
            && self
                .peers
                .iter_mut()
                .flatten()
                .filter_map(|peer| (!peer.flush()).then_some(()))
                .count()
                > 0
        {}
        self.seen
    }
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
            method: Method::Post,
            unsent: Vec::new(),
        }
    }

    /// Takes bytes of a request; `true` when it is whole. What is behind it stays in `bytes`.
    fn take(&mut self, now: i64, bytes: &mut &[u8]) -> bool {
        if bytes.is_empty() {
            return false;
        }
        if !self.in_body {
            if self.buffer.is_empty() {
                self.arrived_ns = now;
            }
            let before = self.buffer.len();
            self.buffer.extend_from_slice(bytes);
            let Some(end) = find(&self.buffer, b"\r\n\r\n") else {
                *bytes = &[];
                return false;
            };
            (self.number, self.body_left) = head(&self.buffer[..end]);
            self.method = match self.buffer.first() {
                Some(b'G') => Method::Get,
                Some(b'D') => Method::Delete,
                _ => Method::Post,
            };
            *bytes = &bytes[end + 4 - before..];
            self.buffer.clear();
            self.in_body = true;
        }
        let here = self.body_left.min(bytes.len());
        self.body_left -= here;
        *bytes = &bytes[here..];
        self.in_body = self.body_left > 0;
        !self.in_body
    }

    /// Writes what the socket takes; `true` when nothing is left.
    fn flush(&mut self) -> bool {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(taken) => drop(self.unsent.drain(..taken)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
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

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                    Transfer-Encoding: chunked\r\n\r\n";
const FINISH: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\
                      \n\ndata: [DONE]\n\n";

/// So many events. Those without text are as long, and no content to a client.
fn events(count: usize, text: bool) -> String {
    let delta = if text { "\"content\":\" word\"" } else { "\"comments\":\"word\"" };
    format!(
        "data: {{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{{\"index\":0,\
         \"delta\":{{{delta}}},\"finish_reason\":null}}]}}\n\n"
    )
    .repeat(count)
}

/// One chunk of HTTP.
fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

/// A streamed completion of `chunks` content events, in one chunk of HTTP.
pub(crate) fn answer(chunks: usize) -> Vec<u8> {
    format!("{HEAD}{}0\r\n\r\n", chunk(&(events(chunks, true) + FINISH))).into_bytes()
}

impl Answers {
    fn new(task: &Task) -> Self {
        Self {
            whole: answer(task.chunks),
            // An event with text: an answer whose first event came is under way.
            opening: format!("{HEAD}{}", chunk(&events(1, true))).into_bytes(),
            push: chunk(&events(task.events, task.text)).into_bytes(),
            ending: format!("{}0\r\n\r\n", chunk(FINISH)).into_bytes(),
        }
    }
}

/// What a client that asks for the models is told.
fn models() -> Vec<u8> {
    let body = "{\"object\":\"list\",\"data\":[{\"id\":\"bench\",\"object\":\"model\"}]}";
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Writes what the server saw: its totals as one line of JSON, then twelve bytes a request (number,
/// nanoseconds of the monotonic clock; little endian).
pub(crate) fn write_seen(seen: &Seen, out: &mut impl Write) -> Result<()> {
    let totals = serde_json::json!({
        "busy_share": seen.busy_share,
        "pushed_events": seen.pushed_events,
        "skipped_pushes": seen.skipped_pushes,
        "stalls": seen.stalls,
    });
    writeln!(out, "{totals}")?;
    for (number, arrived_ns) in &seen.requests {
        out.write_all(&number.to_le_bytes())?;
        out.write_all(&arrived_ns.to_le_bytes())?;
    }
    out.flush()
}

/// The opposite of [`write_seen`].
pub(crate) fn read_seen(bytes: &[u8]) -> Result<Seen> {
    let wrong = || Error::new(ErrorKind::InvalidData, "the server did not say what it saw");
    let line = bytes.iter().position(|&byte| byte == b'\n').ok_or_else(wrong)?;
    let mut totals: serde_json::Value = serde_json::from_slice(&bytes[..line])?;
    let mut seen = Seen {
        requests: Vec::new(),
        busy_share: totals["busy_share"].as_f64().ok_or_else(wrong)?,
        pushed_events: totals["pushed_events"].as_u64().ok_or_else(wrong)?,
        skipped_pushes: totals["skipped_pushes"].as_u64().ok_or_else(wrong)?,
        stalls: serde_json::from_value(totals["stalls"].take())?,
    };
    for record in bytes[line + 1..].chunks_exact(12) {
        let (number, arrived) = record.split_at(4);
        let number = u32::from_le_bytes(number.try_into().expect("four bytes"));
        let arrived = i64::from_le_bytes(arrived.try_into().expect("eight bytes"));
        seen.requests.push((number, arrived));
    }
    Ok(seen)
}
