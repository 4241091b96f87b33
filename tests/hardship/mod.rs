//! The program as a process to which something happens: it is killed, or its disk is full or slow.
//!
//! A server in this process notes when each request arrived, and so knows what a log must have. The
//! program under test is the one that [`Product`] starts. What a fault costs the log is said in
//! requests and seconds; nothing here asserts how fast the machine is.

pub mod disk;
pub mod kills;

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use onbeat::clock::monotonic_ns;

use crate::scripted::{Scripted, answer, good_stream, request};

/// How the program is started: these words, then its own.
#[derive(Clone, Debug)]
pub struct Product {
    /// The file.
    pub program: PathBuf,
    /// Words before the program's own.
    pub first: Vec<String>,
}

impl Product {
    /// The command that runs it with `words`; its environment names no server and no key.
    #[must_use]
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.first).args(words).env_remove("ONBEAT_URL").env_remove("OPENAI_API_KEY");
        command
    }
}

/// A server that answers everything with two tokens and notes what came.
pub struct Noting {
    server: Scripted,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    /// Monotonic instants of requests that arrived whole, in order.
    arrivals: Mutex<Vec<i64>>,
    /// Connections that are open.
    open: AtomicUsize,
}

/// The content events of each answer.
pub const EVENTS: usize = 2;

impl Noting {
    /// Starts it.
    #[must_use]
    pub fn start() -> Self {
        let seen = Arc::new(Seen::default());
        let own = Arc::clone(&seen);
        let server = Scripted::start(move |_, mut stream| {
            own.open.fetch_add(1, Ordering::AcqRel);
            serve(&own, &mut stream);
            own.open.fetch_sub(1, Ordering::AcqRel);
        });
        Self { server, seen }
    }

    /// Where it is.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// Forgets what came.
    ///
    /// # Panics
    /// Never: nobody panics while they look.
    pub fn forget(&self) {
        self.seen.arrivals.lock().expect("nobody panics with it").clear();
    }

    /// How many requests came so far.
    ///
    /// # Panics
    /// Never.
    #[must_use]
    pub fn count(&self) -> usize {
        self.seen.arrivals.lock().expect("nobody panics with it").len()
    }

    /// When requests came, once nothing more can come: the program is gone.
    ///
    /// # Panics
    /// When connections of a program that is gone stay open for a minute.
    #[must_use]
    pub fn arrivals(&self) -> Vec<i64> {
        let begun = monotonic_ns();
        while self.seen.open.load(Ordering::Acquire) > 0 {
            assert!(monotonic_ns() - begun < 60_000_000_000, "a connection stays open");
            std::thread::yield_now();
        }
        self.seen.arrivals.lock().expect("nobody panics with it").clone()
    }
}

fn serve<S: Read + Write>(seen: &Seen, stream: &mut S) {
    while let Some(bytes) = request(stream) {
        // What is asked before zero is not of the run.
        if bytes.starts_with(b"POST") {
            let now = monotonic_ns();
            seen.arrivals.lock().expect("nobody panics with it").push(now);
        }
        answer(stream, &good_stream());
    }
}
