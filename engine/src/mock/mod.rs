//! A stand-in for an inference server that is honest about time.
//!
//! It speaks the OpenAI-compatible dialect (completions, chat, models) over HTTP/1.1 and takes its
//! timing from a small model: a prefill rate, a decode step that grows with the batch, a real prefix
//! cache over content blocks, and an admission queue. It counts what it served, so that a test can
//! compare both sides. It does not run a model and its words mean nothing.

use std::io;
use std::net::SocketAddr;

/// Everything that can be set; the defaults give a quick demonstration.
#[derive(Clone, Debug)]
pub struct MockConfig {
    /// Address to listen on; port 0 lets the system choose.
    pub listen: SocketAddr,
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
}

/// Starts a mock on its own thread and returns when it listens.
///
/// # Errors
/// When the address cannot be listened on or the thread cannot be started.
pub fn spawn(config: MockConfig) -> io::Result<Mock> {
    let _ = config;
    Err(io::Error::new(io::ErrorKind::Unsupported, "the mock is being written"))
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
        MockCounts::default()
    }

    /// Every completion and chat that has ended, in the order they ended; empty unless
    /// [`MockConfig::keep_served`].
    #[must_use]
    pub fn served(&self) -> Vec<Served> {
        Vec::new()
    }

    /// Ends every connection and the thread, and waits for it.
    pub fn stop(self) {}
}
