//! A server that sends one token to each of its streams at even times, and remembers exactly what
//! the kernel took of each and how long it paused itself.
//!
//! All streams are written by one thread; every connection has another that reads requests and
//! notices the client's end. The answer's bytes are the same for every request, so that how many of
//! them came says how many tokens must have been counted.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use onbeat::clock::monotonic_ns;

use super::number;
use crate::scripted::{Scripted, request};

/// An answer as it goes over the wire.
#[derive(Debug)]
pub struct Answer {
    /// The head is before the first token, the rest of the stream behind the last.
    pieces: Vec<Vec<u8>>,
    /// Where each token's event is complete.
    ends: Vec<u64>,
    bytes: u64,
}

impl Answer {
    /// An answer of so many tokens, each in an event and a chunk of its own.
    ///
    /// # Panics
    /// Without a token.
    #[must_use]
    pub fn new(tokens: usize) -> Self {
        assert!(tokens > 0, "an answer has a token");
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                    Transfer-Encoding: chunked\r\n\r\n";
        let event = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" tick\"}}]}\n\n";
        let rest = format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"length\"}}]}}\n\n\
             data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":1,\"completion_tokens\":{tokens}}}\
             }}\n\ndata: [DONE]\n\n"
        );
        let (mut pieces, mut ends, mut bytes) = (Vec::new(), Vec::new(), 0);
        for token in 0..tokens {
            let mut piece = if token == 0 { head.as_bytes().to_vec() } else { Vec::new() };
            piece.extend_from_slice(format!("{:x}\r\n{event}", event.len()).as_bytes());
            ends.push(bytes + piece.len() as u64);
            piece.extend_from_slice(b"\r\n");
            if token + 1 == tokens {
                let last = format!("{:x}\r\n{rest}\r\n0\r\n\r\n", rest.len());
                piece.extend_from_slice(last.as_bytes());
            }
            bytes += piece.len() as u64;
            pieces.push(piece);
        }
        Self { pieces, ends, bytes }
    }

    /// How many tokens are complete in the first `bytes` of it.
    #[must_use]
    pub fn tokens_in(&self, bytes: u64) -> usize {
        self.ends.partition_point(|&end| end <= bytes)
    }

    /// All its bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The bytes up to and with the event of token number `tokens`, from 1.
    #[must_use]
    pub fn first(&self, tokens: usize) -> Vec<u8> {
        self.pieces[..tokens].concat()
    }
}

/// What a server did for one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Bytes that its kernel took.
    pub bytes: u64,
    /// The longest time from before one write to behind the next: no two tokens were further apart
    /// on their way.
    pub pause_ns: i64,
}

/// The server.
pub struct Metronome {
    server: Scripted,
    shared: Arc<Shared>,
    ticker: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    arrived: Mutex<Vec<Stream>>,
    sent: Mutex<BTreeMap<usize, Sent>>,
    over: AtomicBool,
}

/// An answer under way.
struct Stream {
    number: usize,
    socket: TcpStream,
    pieces: usize,
    next_ns: i64,
    before_ns: Option<i64>,
    sent: Sent,
}

/// How long the writing thread pauses at most: a request may have come.
const LOOK_NS: i64 = 1_000_000;

impl Metronome {
    /// Starts one that sends a token of `answer` to each stream every `gap`.
    ///
    /// # Panics
    /// When loopback cannot be listened on or a thread not be started.
    #[must_use]
    pub fn start(answer: Arc<Answer>, gap: Duration) -> Self {
        let shared = Arc::new(Shared::default());
        let arriving = Arc::clone(&shared);
        let server = Scripted::start(move |_, mut stream| {
            while let Some(bytes) = request(&mut stream) {
                let (Some(number), Ok(socket)) = (number(&bytes), stream.try_clone()) else {
                    return;
                };
                let (next_ns, sent) = (monotonic_ns(), Sent::default());
                let stream = Stream { number, socket, pieces: 0, next_ns, before_ns: None, sent };
                arriving.arrived.lock().expect("nobody panics with it").push(stream);
            }
        });
        let ticking = Arc::clone(&shared);
        let gap_ns = i64::try_from(gap.as_nanos()).expect("a short time");
        let ticker = std::thread::Builder::new()
            .name("metronome".to_owned())
            .spawn(move || tick(&ticking, &answer, gap_ns))
            .expect("a thread");
        Self { server, shared, ticker: Some(ticker) }
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// Ends it, and says what it sent for each request that came.
    ///
    /// # Panics
    /// When its thread panicked.
    #[must_use]
    pub fn end(mut self) -> BTreeMap<usize, Sent> {
        self.stop();
        std::mem::take(&mut self.shared.sent.lock().expect("nobody panics with it"))
    }

    fn stop(&mut self) {
        self.shared.over.store(true, Ordering::Release);
        if let Some(ticker) = self.ticker.take() {
            ticker.join().expect("it does not panic");
        }
    }
}

impl Drop for Metronome {
    fn drop(&mut self) {
        self.stop();
    }
}

fn tick(shared: &Shared, answer: &Answer, gap_ns: i64) {
    let mut streams: Vec<Stream> = Vec::new();
    loop {
        let over = shared.over.load(Ordering::Acquire);
        streams.append(&mut shared.arrived.lock().expect("nobody panics with it"));
        let mut next_ns = monotonic_ns() + LOOK_NS;
        streams.retain_mut(|stream| {
            let goes_on = !over && (stream.next_ns > monotonic_ns() || stream.say(answer, gap_ns));
            next_ns = next_ns.min(stream.next_ns);
            if !goes_on {
                let mut sent = shared.sent.lock().expect("nobody panics with it");
                sent.insert(stream.number, stream.sent);
            }
            goes_on
        });
        if over {
            return;
        }
        let pause_ns = u64::try_from(next_ns - monotonic_ns()).unwrap_or(0);
        if pause_ns > 0 {
            #[expect(clippy::disallowed_methods, reason = "a server that sends at even times")]
            std::thread::sleep(Duration::from_nanos(pause_ns));
        }
    }
}

impl Stream {
    /// Sends the next token; `false` when that was the last, or the client is gone.
    fn say(&mut self, answer: &Answer, gap_ns: i64) -> bool {
        let before_ns = monotonic_ns();
        let mut piece = answer.pieces[self.pieces].as_slice();
        while !piece.is_empty() {
            match self.socket.write(piece) {
                Ok(taken) if taken > 0 => {
                    self.sent.bytes += taken as u64;
                    piece = &piece[taken..];
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                _ => return false,
            }
        }
        if let Some(earlier_ns) = self.before_ns.replace(before_ns) {
            self.sent.pause_ns = self.sent.pause_ns.max(monotonic_ns() - earlier_ns);
        }
        self.pieces += 1;
        self.next_ns += gap_ns;
        self.pieces < answer.pieces.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_say_how_many_tokens_are_complete() {
        let answer = Answer::new(3);
        assert_eq!(answer.tokens_in(0), 0);
        assert_eq!(answer.tokens_in(answer.bytes()), 3);
        for tokens in 1..3 {
            let bytes = answer.first(tokens).len() as u64;
            assert_eq!(answer.tokens_in(bytes), tokens);
            // Two bytes behind the event end its chunk.
            assert_eq!(answer.tokens_in(bytes - 2), tokens);
            assert_eq!(answer.tokens_in(bytes - 3), tokens - 1);
        }
    }

    #[test]
    fn a_request_tells_its_number() {
        let request = b"POST /v1 HTTP/1.1\r\nHost: a\r\nX-Request-ID: 18-ab-40\r\n\r\n";
        assert_eq!(number(request), Some(40));
        assert_eq!(number(b"GET / HTTP/1.1\r\n\r\nX-Request-ID: 1-2"), None);
    }
}
