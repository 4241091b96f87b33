//! Answers who asks for our numbers: one thread, a few connections, no patience.
//!
//! It speaks as much HTTP/1 as a scraper needs: `GET` and `HEAD` of `/metrics`, one request for
//! each connection. Heads, connections and the time that either may take are bounded, so that
//! nobody who can reach the port can hold the run up. The numbers stay readable until the
//! [`Serving`] is dropped, which is when the program ends.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crossbeam::channel::bounded;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;
use rustix::thread::gettid;

use super::figures::Figures;
use super::page::{CONTENT_TYPE, page};
use crate::clock::monotonic_ns;
use crate::error::EngineError;
use crate::net::shortage::Shortage;
use crate::replayer::affinity;

/// Connections at once; who comes on top is sent away.
const CONNECTIONS_MAX: usize = 16;
/// Longest head of a request.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// Most header lines of a request.
const HEADERS_MAX: usize = 64;
/// How long a connection may take, from being accepted to being closed.
const PATIENCE_NS: i64 = 2_000_000_000;
/// How often the thread looks whether it is to end.
const GLANCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// How long somebody waits who could not be taken in, until it is tried again.
const REST: Duration = Duration::from_millis(100);

/// A port that nobody is answered on yet.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
}

/// A run's numbers, served until this is dropped.
#[derive(Debug)]
pub struct Serving {
    figures: Arc<Figures>,
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    id: Option<Pid>,
}

impl Listener {
    /// Takes the port; 0 takes any that is free.
    ///
    /// # Errors
    /// When it is not to be had.
    pub fn bind(address: SocketAddr) -> Result<Self, EngineError> {
        let bound = TcpListener::bind(address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            Ok(Self { listener, address })
        });
        bound.map_err(|error| {
            let way_out = match error.kind() {
                ErrorKind::AddrInUse => "another program has it; choose another, or 0 for any",
                ErrorKind::PermissionDenied => "ports below 1024 are the system's; choose another",
                ErrorKind::AddrNotAvailable => {
                    "--prometheus-address is no address of this host; choose one that is"
                }
                _ => "choose another port",
            };
            EngineError::Usage(format!("--prometheus-port: {address}: {error}; {way_out}"))
        })
    }

    /// Begins to answer.
    ///
    /// # Errors
    /// When no thread can be had.
    pub fn serve(self, figures: Arc<Figures>) -> Result<Serving, EngineError> {
        let Self { listener, address } = self;
        let stop = Arc::new(AtomicBool::new(false));
        let (shown, stopped) = (Arc::clone(&figures), Arc::clone(&stop));
        let (tell, told) = bounded(1);
        let thread = Builder::new()
            .name("onbeat-metrics".into())
            .spawn(move || {
                let _ = tell.send(gettid());
                answer(&listener, &shown, &stopped);
            })
            .map_err(|source| EngineError::Io { action: "start a thread", path: None, source })?;
        let id = told.recv().ok();
        Ok(Serving { figures, address, stop, thread: Some(thread), id })
    }
}

impl Serving {
    /// The numbers that are served.
    #[must_use]
    pub const fn figures(&self) -> &Arc<Figures> {
        &self.figures
    }

    /// Keeps its thread off some CPUs, unless it may use no others.
    pub fn keep_off(&self, cpus: &[u16]) {
        // Where the system does not allow it, the cores have to share.
        let _ = self.id.map(|id| affinity::keep_off(Some(id), cpus));
    }

    /// Where they are.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It panics in no case that is known, and then there is nobody to tell.
            let _ = thread.join();
        }
    }
}

fn answer(listener: &TcpListener, figures: &Figures, stop: &AtomicBool) {
    let mut connections: Vec<Connection> = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        if wait(listener, &connections).is_err() {
            return;
        }
        if !accept(listener, &mut connections) {
            #[expect(clippy::disallowed_methods, reason = "nothing is timed on this thread")]
            std::thread::sleep(REST);
        }
        let now_ns = monotonic_ns();
        connections.retain_mut(|connection| {
            connection.until_ns > now_ns && connection.go_on(figures).unwrap_or(false)
        });
    }
}

/// Until something can be done, or a little later.
fn wait(listener: &TcpListener, connections: &[Connection]) -> io::Result<()> {
    let wanted = connections.iter().map(|connection| {
        let flags = if connection.answer.is_some() { PollFlags::OUT } else { PollFlags::IN };
        let flags = if connection.closing { PollFlags::IN } else { flags };
        PollFd::new(&connection.stream, flags)
    });
    let mut all: Vec<_> = wanted.chain([PollFd::new(listener, PollFlags::IN)]).collect();
    match poll(&mut all, Some(&GLANCE)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Takes in who waits; `false` when somebody cannot be taken in for something that is lacking here:
/// they go on waiting, and the listener would be found ready without end.
fn accept(listener: &TcpListener, connections: &mut Vec<Connection>) -> bool {
    loop {
        let mut stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) => return Shortage::of(&error).is_none(),
        };
        if stream.set_nonblocking(true).is_err() {
            continue;
        }
        if connections.len() == CONNECTIONS_MAX {
            let busy = answer_of("503 Service Unavailable", "", "too many ask at once\n", false);
            let _ = stream.write(&busy);
            continue;
        }
        let until_ns = monotonic_ns().saturating_add(PATIENCE_NS);
        let (head, answer) = (Vec::new(), None);
        connections.push(Connection { stream, until_ns, head, answer, closing: false });
    }
}

/// Somebody who asks.
struct Connection {
    stream: TcpStream,
    until_ns: i64,
    head: Vec<u8>,
    /// What is left of the answer, once there is one.
    answer: Option<Vec<u8>>,
    /// All is written; their end is waited for, so that none of it is lost.
    closing: bool,
}

impl Connection {
    /// Does what can be done at once; `false` when there is nothing left to do.
    fn go_on(&mut self, figures: &Figures) -> io::Result<bool> {
        if self.answer.is_none() {
            let ended = !self.read()?;
            self.answer = answer_to(&self.head, figures);
            if self.answer.is_none() {
                return Ok(!ended);
            }
        }
        if !self.closing {
            self.write()?;
        }
        if !self.closing {
            return Ok(true);
        }
        self.head.clear();
        self.read()
    }

    /// Reads what is there; `false` at their end.
    fn read(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 1 << 10];
        while self.head.len() <= HEAD_BYTES_MAX {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Ok(false),
                Ok(count) => self.head.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn write(&mut self) -> io::Result<()> {
        let Some(answer) = &mut self.answer else { return Ok(()) };
        while !answer.is_empty() {
            match self.stream.write(answer) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => drop(answer.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.closing = true;
        self.stream.shutdown(Shutdown::Write)
    }
}

/// The answer to a request, once its head is whole or cannot be one.
fn answer_to(head: &[u8], figures: &Figures) -> Option<Vec<u8>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let plain = |status, words| Some(answer_of(status, "", words, false));
    match request.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if head.len() <= HEAD_BYTES_MAX => return None,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            let words = "the request's head is too long\n";
            return plain("431 Request Header Fields Too Large", words);
        }
        Err(_) => return plain("400 Bad Request", "this is no HTTP/1 request\n"),
    }
    let (method, path) = (request.method.unwrap_or(""), request.path.unwrap_or(""));
    let path = path.split('?').next().unwrap_or("");
    if path != "/metrics" {
        return plain("404 Not Found", "the run's numbers are at /metrics\n");
    }
    match method {
        "GET" | "HEAD" => {
            let page = page(&figures.moment());
            Some(answer_of("200 OK", "", &page, method == "HEAD"))
        }
        _ => {
            let words = "only GET and HEAD are answered\n";
            Some(answer_of("405 Method Not Allowed", "Allow: GET, HEAD\r\n", words, false))
        }
    }
}

fn answer_of(status: &str, more: &str, body: &str, only_head: bool) -> Vec<u8> {
    let kind = if status.starts_with('2') { CONTENT_TYPE } else { "text/plain; charset=utf-8" };
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nConnection: close\r\n{more}\r\n",
        body.len()
    );
    if !only_head {
        answer.push_str(body);
    }
    answer.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serving() -> Serving {
        let any = "127.0.0.1:0".parse().expect("literal");
        Listener::bind(any).expect("a port").serve(Arc::default()).expect("a thread")
    }

    fn connect(serving: &Serving) -> TcpStream {
        let stream = TcpStream::connect(serving.address()).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("an option");
        stream
    }

    fn asked(serving: &Serving, request: &str) -> String {
        let mut stream = connect(serving);
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    #[test]
    fn a_scraper_gets_the_page_and_others_get_words() {
        let serving = serving();
        let page = asked(&serving, "GET /metrics?x=1 HTTP/1.1\r\nHost: x\r\n\r\n");
        let (head, body) = page.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains("Content-Type: text/plain; version=0.0.4; charset=utf-8"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
        assert!(body.contains("# TYPE onbeat_requests_sent_total counter\n"), "{body}");
        let head = asked(&serving, "HEAD /metrics HTTP/1.0\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        for (request, status) in [
            ("GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), "404"),
            ("POST /metrics HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), "405"),
            ("hello\r\n\r\n".to_owned(), "400"),
            (format!("GET /metrics HTTP/1.1\r\nX: {}", "x".repeat(9_000)), "431"),
            (format!("GET /metrics HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(65)), "431"),
        ] {
            let answer = asked(&serving, &request);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{status}: {answer}");
        }
    }

    #[test]
    fn those_who_say_nothing_do_not_keep_others_waiting() {
        let serving = serving();
        let silent: Vec<_> = (0..CONNECTIONS_MAX - 1).map(|_| connect(&serving)).collect();
        let page = asked(&serving, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200"), "{page}");
        // They are sent away by the clock, so this ends.
        for mut stream in silent {
            assert_eq!(stream.read(&mut [0; 8]).unwrap_or(0), 0);
        }
    }

    #[test]
    fn a_port_that_is_taken_is_refused_with_what_to_do() {
        let serving = serving();
        let error = Listener::bind(serving.address()).expect_err("it is taken").to_string();
        assert!(error.contains("--prometheus-port") && error.contains("0 for any"), "{error}");
        let address = serving.address();
        drop(serving);
        assert!(TcpStream::connect(address).is_err(), "nobody listens any more");
    }
}
