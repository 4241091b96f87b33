//! Servers that misbehave on purpose: a listener on loopback and a script for each connection.
//!
//! The mock is a good server; these are not. Each accepted connection is handed to a function with
//! its number, on a thread of its own, and closes when the function returns. They end when dropped.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// A server whose every connection follows a script.
pub struct Scripted {
    /// Where it listens.
    pub address: SocketAddr,
    ended: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl Scripted {
    /// Starts a server; `script` gets each connection with its number, from zero.
    ///
    /// # Panics
    /// When loopback cannot be listened on.
    pub fn start(script: impl Fn(usize, TcpStream) + Send + Sync + 'static) -> Self {
        Self::start_at(([127, 0, 0, 1], 0).into(), script)
    }

    /// Starts a server at an address, for one that was there before.
    ///
    /// # Panics
    /// When it cannot be listened on.
    pub fn start_at(
        address: SocketAddr,
        script: impl Fn(usize, TcpStream) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).expect("an address that is free");
        let address = listener.local_addr().expect("it is bound");
        let ended = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&ended);
        let acceptor = std::thread::Builder::new()
            .name("scripted".to_owned())
            .spawn(move || {
                play(listener.incoming(), &over, script);
            })
            .expect("a thread");
        Self { address, ended, acceptor: Some(acceptor) }
    }
}

/// Gives each of `streams` with its number, from zero, to `script` on a thread of its own, until
/// one comes after the end.
///
/// # Panics
/// When a thread cannot be started.
pub fn play<S: Send + 'static>(
    streams: impl Iterator<Item = std::io::Result<S>>,
    ended: &AtomicBool,
    script: impl Fn(usize, S) + Send + Sync + 'static,
) {
    let script = Arc::new(script);
    for (number, stream) in streams.enumerate() {
        if ended.load(Ordering::Acquire) {
            return;
        }
        let script = Arc::clone(&script);
        let Ok(stream) = stream else { continue };
        std::thread::Builder::new()
            .name(format!("scripted-{number}"))
            .spawn(move || script(number, stream))
            .expect("a thread");
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        // One more connection wakes the acceptor.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

/// How long a server waits for requests that should come.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that holds back its answers to the requests of these numbers, in the order of arrival
/// from zero, until the last of them has come. No clock is looked at: who waits for an answer
/// before sending on gets none.
#[must_use]
pub fn withholding(held: Range<usize>) -> Scripted {
    let (arrived, came) = (Mutex::new(0_usize), Condvar::new());
    Scripted::start(move |_, mut stream| {
        while request(&mut stream).is_some() {
            let mut count = arrived.lock().expect("nobody panics with it");
            let number = *count;
            *count += 1;
            came.notify_all();
            if held.contains(&number) {
                let waits = |count: &mut usize| *count < held.end;
                drop(came.wait_timeout_while(count, PATIENCE, waits));
            } else {
                drop(count);
            }
            answer(&mut stream, &good_stream());
        }
    })
}

/// Reads one small request whose body is a JSON object; how many reads that took, or `None` at the
/// end of the connection.
pub fn reads_of_a_request(stream: &mut impl Read) -> Option<usize> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 16_384]);
    for reads in 1.. {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
        }
        if bytes.ends_with(b"}") {
            return Some(reads);
        }
    }
    None
}

/// A listener whose queue of connections is full but for some: it accepts nothing, so that a
/// connection beyond them is neither opened nor refused.
pub struct Deaf {
    /// Where it listens.
    pub address: SocketAddr,
    _listener: TcpListener,
    _queued: Vec<TcpStream>,
}

impl Deaf {
    /// A deaf server with room for `places` more connections, which will never be read from.
    ///
    /// # Panics
    /// When loopback cannot be listened on, or its queue has no end.
    #[must_use]
    pub fn with_room_for(places: usize) -> Self {
        const QUEUE_MAX: usize = 10_000;
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port on loopback");
        let address = listener.local_addr().expect("it is bound");
        let patience = Duration::from_millis(200);
        let mut queued = Vec::new();
        while let Ok(stream) = TcpStream::connect_timeout(&address, patience) {
            queued.push(stream);
            assert!(queued.len() < QUEUE_MAX, "the queue of a listener is bounded");
        }
        for _ in 0..places {
            let (taken, _) = listener.accept().expect("the queue is full");
            queued.push(taken);
        }
        Self { address, _listener: listener, _queued: queued }
    }
}

/// Reads one whole request; `None` when the client is gone first.
#[must_use]
pub fn request(stream: &mut impl Read) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 16_384];
    loop {
        if let Some(head) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
            let length: usize = text
                .lines()
                .find_map(|line| line.strip_prefix("content-length:"))
                .and_then(|value| value.trim().parse().ok())
                .unwrap_or(0);
            if bytes.len() >= head + 4 + length {
                return Some(bytes);
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
        }
    }
}

/// Writes all of `bytes`; a client that went away is no failure here.
pub fn answer(stream: &mut impl Write, bytes: &[u8]) {
    let _ = stream.write_all(bytes);
    let _ = stream.flush();
}

/// A complete streamed chat answer of two tokens, with usage, as one chunked body.
#[must_use]
pub fn good_stream() -> Vec<u8> {
    let events = concat!(
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" one\"}}]}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" two\"},",
        "\"finish_reason\":\"length\"}]}\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,",
        "\"prompt_tokens_details\":{\"cached_tokens\":1}}}\n\n",
        "data: [DONE]\n\n",
    );
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n\
         {:x}\r\n{events}\r\n0\r\n\r\n",
        events.len()
    )
    .into_bytes()
}

/// A complete streamed answer after which the server closes.
pub const LAST_ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n\
      data: {\"choices\":[{\"index\":0,\"text\":\" a\",\"finish_reason\":\"stop\"}]}\n\n\
      data: [DONE]\n\n";
