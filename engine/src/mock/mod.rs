//! A stand-in for an inference server that is honest about time.
//!
//! It speaks the OpenAI-compatible dialect (completions, chat, models) over HTTP/1.1 and takes its
//! timing from a small model: a prefill rate, a decode step that grows with the batch, a real
//! prefix cache over content blocks, and an admission queue. It counts what it served, so that a
//! test can compare both sides. It does not run a model and its words mean nothing.
//!
//! One thread has all connections and one model, which is exact: the batch, the queue and the cache
//! are what the settings say. With more threads, each has its own share of the connections *and*
//! its own model with its own cache, like replicas behind a balancer.
//!
//! ```text
//! bytes ─▶ request ─▶ call (JSON) ─▶ model (time, cache) ─▶ reply ─▶ bytes
//! ```

mod bell;
mod cache;
mod call;
mod exposition;
mod ledger;
mod link;
mod model;
mod reply;
mod request;
mod server;
#[cfg(test)]
mod tests;
mod tokens;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};

use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use ledger::Ledger;

use crate::error::lacking;
use crate::limits::MOCK_THREADS_MAX;

/// Everything that can be set; the defaults give a quick demonstration.
#[derive(Clone, Debug, PartialEq)]
pub struct MockConfig {
    /// Address to listen on; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// Threads, each with its own connections, model and cache.
    pub threads: usize,
    /// The model's name in answers and in `/v1/models`.
    pub model: String,
    /// Answer 404 to a request for any other model.
    pub strict_model: bool,
    /// Seeds answer lengths, words and jitter.
    pub seed: u64,
    /// Prompt tokens computed in a second, cached ones excluded.
    pub prefill_tokens_per_s: f64,
    /// Time before a request enters the queue (tokenizing, scheduling), in nanoseconds.
    pub overhead_ns: i64,
    /// Length of a decode step with nothing in it, in nanoseconds.
    pub step_ns: i64,
    /// What each running sequence adds to a step, in nanoseconds.
    pub step_ns_per_sequence: i64,
    /// Tokens one step may compute, prefill and decode together.
    pub step_tokens: u32,
    /// Largest relative change of a step's length, 0 to 1, drawn anew for each.
    pub jitter: f64,
    /// Sequences that may run at once; the others wait.
    pub running_max: usize,
    /// Requests that may wait; more are answered with 503.
    pub waiting_max: usize,
    /// Longest prompt and answer together, in tokens.
    pub context_tokens: u32,
    /// Tokens of one prefix cache block.
    pub block_tokens: u32,
    /// Tokens the prefix cache holds; 0 switches it off.
    pub cache_tokens: u64,
    /// Tokens a chat template adds to each prompt.
    pub template_tokens: u32,
    /// Answer length where the request does not say, in tokens.
    pub default_max_tokens: u32,
    /// Mean answer length in tokens when the model stops by itself; `None`: only at the maximum.
    pub early_stop: Option<f64>,
    /// Tokens in one event of a stream.
    pub tokens_per_event: u32,
    /// Keep a [`Served`] for every request.
    pub keep_served: bool,
}

impl Default for MockConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            threads: 1,
            model: "onbeat-mock".into(),
            strict_model: false,
            seed: 0,
            prefill_tokens_per_s: 100_000.0,
            overhead_ns: 5_000_000,
            step_ns: 4_000_000,
            step_ns_per_sequence: 30_000,
            step_tokens: 2_048,
            jitter: 0.0,
            running_max: 256,
            waiting_max: 65_536,
            context_tokens: 1_048_576,
            block_tokens: 16,
            cache_tokens: 1_000_000,
            template_tokens: 0,
            default_max_tokens: 128,
            early_stop: None,
            tokens_per_event: 1,
            keep_served: false,
        }
    }
}

/// What a mock has counted since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MockCounts {
    /// Connections accepted.
    pub connections: u64,
    /// Requests of any kind that arrived whole.
    pub requests: u64,
    /// Completions and chats answered to their end.
    pub served: u64,
    /// Completions and chats whose client went away first.
    pub abandoned: u64,
    /// Requests answered with an error status.
    pub refused: u64,
    /// Prompt tokens of served and abandoned requests.
    pub prompt_tokens: u64,
    /// Tokens generated.
    pub completion_tokens: u64,
    /// Prompt tokens looked up in the prefix cache.
    pub cache_query_tokens: u64,
    /// Prompt tokens found there.
    pub cache_hit_tokens: u64,
    /// Most sequences that ran at once.
    pub running_peak: u64,
    /// Most requests that waited at once.
    pub waiting_peak: u64,
    /// Steps that ended late because the mock itself was too slow for its own model.
    pub late_steps: u64,
}

/// One completion or chat as the server saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// `X-Request-ID`.
    pub request_id: Option<String>,
    /// `X-Correlation-ID`.
    pub session: Option<String>,
    /// When the read that held its first byte completed, on the host's monotonic clock.
    pub arrived_mono_ns: i64,
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Tokens generated; fewer than asked if the client went away.
    pub completion_tokens: u32,
    /// Prompt tokens found in the prefix cache.
    pub cached_tokens: u32,
    /// Bytes of the request's body.
    pub body_bytes: u64,
    /// SHA-256 of the request's body.
    pub body_digest: [u8; 32],
    /// Whether the answer was written to its end.
    pub complete: bool,
}

/// A running mock; stops when dropped.
#[derive(Debug)]
pub struct Mock {
    address: SocketAddr,
    ledger: Arc<Ledger>,
    threads: Vec<Thread>,
}

/// A thread, and the socket that tells it to end by being closed.
#[derive(Debug)]
struct Thread {
    control: UnixStream,
    handle: JoinHandle<()>,
}

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4_096;

/// Starts a mock on its own threads and returns when it listens.
///
/// # Errors
/// When a setting makes no sense, the address cannot be listened on, or a thread cannot be started
/// or does not come to take connections.
pub fn spawn(config: MockConfig) -> io::Result<Mock> {
    config.check()?;
    let is_shared = config.threads > 1;
    let first = listen(config.listen, is_shared)?;
    let address = first.local_addr()?;
    let ledger = Arc::new(Ledger::default());
    let config = Arc::new(config);
    let mut mock = Mock { address, ledger, threads: Vec::new() };
    let mut listener = Some(first);
    for number in 0..config.threads {
        let listener = match listener.take() {
            Some(listener) => listener,
            None => listen(address, is_shared)?,
        };
        let (control, ours) = UnixStream::pair()?;
        let (config, ledger) = (Arc::clone(&config), Arc::clone(&mock.ledger));
        let (tell, told) = sync_channel(1);
        let handle = thread::Builder::new().name(format!("mock-{number}")).spawn(move || {
            if let Err(error) = server::serve(&config, &ledger, listener, ours, &tell) {
                let step = lacking::step("serve", &error);
                let step = step.map_or_else(String::new, |words| format!("; {words}"));
                ledger.fail(format!("a thread of the mock ended: {error}{step}"));
            }
        })?;
        mock.threads.push(Thread { control, handle });
        // A mock with a thread that takes no connections would refuse, or leave waiting, some.
        if told.recv().is_err() {
            let words = mock.failure().unwrap_or_else(|| "a thread of the mock ended".to_owned());
            return Err(io::Error::other(words));
        }
    }
    Ok(mock)
}

impl Mock {
    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it has counted so far.
    #[must_use]
    pub fn counts(&self) -> MockCounts {
        self.ledger.counts()
    }

    /// Every completion and chat that has ended, in the order they ended; empty unless
    /// [`MockConfig::keep_served`].
    #[must_use]
    pub fn served(&self) -> Vec<Served> {
        self.ledger.served()
    }

    /// Why a thread ended although nobody asked it to.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.ledger.failure()
    }

    /// Ends every connection and the threads, and waits for them.
    ///
    /// # Panics
    /// When a thread of the mock had panicked.
    pub fn stop(mut self) {
        if let Some(panic) = self.end().pop() {
            std::panic::resume_unwind(panic);
        }
    }

    /// Ends the threads; what those that panicked said.
    fn end(&mut self) -> Vec<Box<dyn std::any::Any + Send>> {
        let threads = std::mem::take(&mut self.threads);
        // All of them are told before the first is waited for.
        let handles: Vec<_> = threads
            .into_iter()
            .map(|Thread { control, handle }| {
                drop(control);
                handle
            })
            .collect();
        handles.into_iter().filter_map(|handle| handle.join().err()).collect()
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        // A destructor has nobody to tell.
        drop(self.end());
    }
}

impl MockConfig {
    fn check(&self) -> io::Result<()> {
        let running = u32::try_from(self.running_max).unwrap_or(u32::MAX);
        for (holds, words) in [
            ((1..=MOCK_THREADS_MAX).contains(&self.threads), "threads: from 1 to 1024"),
            (self.prefill_tokens_per_s > 0.0, "prefill rate: more than 0 tokens a second"),
            (self.overhead_ns >= 0, "overhead: not negative"),
            (self.step_ns >= 0, "step: not negative"),
            (self.step_ns_per_sequence >= 0, "step per sequence: not negative"),
            ((0.0..=1.0).contains(&self.jitter), "jitter: from 0 to 1"),
            (running > 0, "running: at least 1"),
            (self.step_tokens >= running, "step tokens: at least one for each running sequence"),
            (self.waiting_max > 0, "waiting: at least 1"),
            (self.context_tokens > 1, "context: at least 2 tokens"),
            (self.block_tokens > 0, "block: at least 1 token"),
            (self.default_max_tokens > 0, "default answer length: at least 1 token"),
            (self.early_stop.is_none_or(|mean| mean > 0.0), "early stop: a mean above 0"),
            (self.tokens_per_event > 0, "tokens per event: at least 1"),
        ] {
            if !holds {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
            }
        }
        Ok(())
    }
}

/// A listener; if shared, other threads may listen on the same port.
fn listen(address: SocketAddr, is_shared: bool) -> io::Result<TcpListener> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let socket = rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseport(&socket, is_shared)?;
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(TcpListener::from(socket))
}
