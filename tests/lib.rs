//! What every end-to-end test needs: a scenario from trace text to a run that can be questioned.
//!
//! A [`Scenario`] writes a trace into a folder of its own, starts a mock server on loopback,
//! replays in process and reads the log back. Tests assert on the log and on what the server
//! counted, never on wall time. It does not know any single test's expectations.

pub mod alloc;
pub mod fuzz;
pub mod hardship;
pub mod scripted;
pub mod secured;
pub mod sim;
pub mod soak;
pub mod torture;

use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use onbeat::cli::progress::Quiet;
use onbeat::clock_state::Trust;
use onbeat::conductor::Watch;
use onbeat::error::EngineError;
use onbeat::live::LiveOptions;
use onbeat::mock::{self, MockConfig, MockCounts, Served};
use onbeat::net::target::Target;
use onbeat::net::way::WayOptions;
use onbeat::plan::PlanOptions;
use onbeat::policy::deadline::Limits;
use onbeat::policy::options::UserOptions;
use onbeat::policy::reuse::Strategy;
use onbeat::readiness::Readiness;
use onbeat::render::RenderOptions;
use onbeat::replayer::counters::Snapshot;
use onbeat::replayer::driver::DriverKind;
use onbeat::replayer::{Pacing, Stop};
use onbeat::run::{CoreChoice, Ran, RunConfig, Wishes};
use onbeat::trace::{Given, TraceOptions};
use onbeat_shared::run::Run;

/// A trace, options and a folder, before anything has been sent.
pub struct Scenario {
    folder: tempfile::TempDir,
    /// The run as it will be carried out; tests change what they are about.
    pub config: RunConfig,
    /// The server.
    pub mock: MockConfig,
}

/// What came of a scenario.
pub struct Outcome {
    /// The log, read back.
    pub run: Run,
    /// The log's bytes.
    pub bytes: Vec<u8>,
    /// What the engine said to its user.
    pub said: Vec<String>,
    /// How it was carried out.
    pub ran: Ran,
    /// What the server counted.
    pub counts: MockCounts,
    /// What the server served, in the order it ended.
    pub served: Vec<Served>,
}

impl Scenario {
    /// A scenario over a trace's text, with a fast mock and one core that is not pinned down.
    ///
    /// # Panics
    /// When no temporary folder can be had.
    #[must_use]
    pub fn new(trace: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("trace.jsonl");
        std::fs::write(&path, trace).expect("the folder is writable");
        let config = config(path, folder.path().join("run.beat"), "http://127.0.0.1:9");
        let mock = MockConfig {
            overhead_ns: 0,
            step_ns: 200_000,
            step_ns_per_sequence: 0,
            prefill_tokens_per_s: 1e9,
            keep_served: true,
            ..MockConfig::default()
        };
        Self { folder, config, mock }
    }

    /// Replays against the mock and reads the log.
    ///
    /// # Panics
    /// When the run fails; use [`Scenario::fail`] for one that should.
    #[must_use]
    pub fn run(mut self) -> Outcome {
        let server = mock::spawn(self.mock.clone()).expect("a mock on loopback");
        self.config.target =
            Target::parse(&format!("http://{}", server.address())).expect("a loopback address");
        let (ran, said) = carry_out(self.config.clone());
        let ran = ran.unwrap_or_else(|error| panic!("the run failed: {error}"));
        let bytes = std::fs::read(&ran.log).expect("the run left a log");
        let run = Run::read(&bytes).expect("the log reads back");
        let outcome =
            Outcome { run, bytes, said, ran, counts: server.counts(), served: server.served() };
        server.stop();
        drop(self.folder);
        outcome
    }

    /// Replays against a server at `address` that is not the mock.
    ///
    /// # Panics
    /// When the run fails.
    #[must_use]
    pub fn run_against(mut self, address: std::net::SocketAddr) -> Run {
        self.config.target =
            Target::parse(&format!("http://{address}")).expect("a loopback address");
        let (ran, _) = carry_out(self.config.clone());
        let ran = ran.unwrap_or_else(|error| panic!("the run failed: {error}"));
        let bytes = std::fs::read(&ran.log).expect("the run left a log");
        Run::read(&bytes).expect("the log reads back")
    }

    /// Replays against a server at `address` that is not the mock, under the eyes of `watch`;
    /// returns what came of it and the log, if there is one.
    pub fn run_watched(
        mut self,
        address: std::net::SocketAddr,
        watch: &mut dyn Watch,
    ) -> (Result<Ran, EngineError>, Option<Run>) {
        self.config.target =
            Target::parse(&format!("http://{address}")).expect("a loopback address");
        let log = self.config.output.clone();
        let ran = onbeat::run::run(self.config.clone(), watch);
        let run = std::fs::read(log).ok().map(|bytes| Run::read(&bytes).expect("it reads back"));
        (ran, run)
    }

    /// Replays against the server the configuration names.
    ///
    /// # Panics
    /// When the run fails.
    #[must_use]
    pub fn run_as_meant(self) -> Run {
        let (ran, _) = carry_out(self.config.clone());
        let ran = ran.unwrap_or_else(|error| panic!("the run failed: {error}"));
        let bytes = std::fs::read(&ran.log).expect("the run left a log");
        Run::read(&bytes).expect("the log reads back")
    }

    /// Replays against nothing and returns what the user would read.
    ///
    /// # Panics
    /// When the run succeeds.
    #[must_use]
    pub fn fail(self) -> EngineError {
        match carry_out(self.config.clone()).0 {
            Ok(_) => panic!("the run should have failed"),
            Err(error) => error,
        }
    }

    /// Where the log goes.
    #[must_use]
    pub fn log_path(&self) -> PathBuf {
        self.config.output.clone()
    }
}

/// A user who wants the run to end in a way, as soon as so many requests have been sent and so many
/// tokens have come.
#[derive(Debug)]
pub struct Stopper {
    /// How many requests.
    pub sent: u64,
    /// How many tokens.
    pub tokens: u64,
    /// How the run is to end.
    pub how: Stop,
    /// Whether it is so.
    over: bool,
}

impl Stopper {
    /// Ends a run `how` once `sent` requests have been sent.
    #[must_use]
    pub const fn after(sent: u64, how: Stop) -> Self {
        Self { sent, tokens: 0, how, over: false }
    }

    /// The same, but not before so many tokens have come.
    #[must_use]
    pub const fn and_tokens(self, tokens: u64) -> Self {
        Self { tokens, ..self }
    }
}

impl Watch for Stopper {
    fn say(&mut self, _words: &str) {}

    fn look(&mut self, elapsed_ns: i64, _planned: u64, counters: &Snapshot) {
        // The first look comes at the start.
        if elapsed_ns > 0 {
            self.over = counters.sent >= self.sent && counters.tokens >= self.tokens;
        }
    }

    fn stop(&mut self) -> Stop {
        if self.over { self.how } else { Stop::No }
    }
}

/// Runs `body` on a thread of its own and hands back what it returns: a run that would never end
/// fails its test instead.
///
/// # Panics
/// When it has not ended after a minute, or panicked.
pub fn ends<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> T {
    const PATIENCE: Duration = Duration::from_secs(60);
    let (sender, receiver) = mpsc::sync_channel(1);
    let thread = std::thread::Builder::new()
        .name("ends".to_owned())
        .spawn(move || sender.send(body()))
        .expect("a thread");
    match receiver.recv_timeout(PATIENCE) {
        Ok(value) => value,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("still running after {PATIENCE:?}"),
        Err(mpsc::RecvTimeoutError::Disconnected) => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(_) => unreachable!("it sends before it ends"),
        },
    }
}

/// A plain open-loop run of `trace`.
///
/// # Panics
/// When `url` is none.
#[must_use]
pub fn config(trace: PathBuf, output: PathBuf, url: &str) -> RunConfig {
    RunConfig {
        trace,
        trace_options: TraceOptions::default(),
        given: Given::default(),
        shard: None,
        start_unix_ns: None,
        trust: Trust::Within(1_000_000),
        users: UserOptions::default(),
        resumed: None,
        plan: PlanOptions::default(),
        render: RenderOptions::default(),
        target: Target::parse(url).expect("a URL"),
        more_targets: Vec::new(),
        readiness: Readiness::default(),
        reuse: Strategy::Pooled,
        way: WayOptions::default(),
        cores: CoreChoice::Count(1),
        wishes: Wishes::default(),
        pacing: Pacing::Hybrid { margin_ns: 0 },
        driver: None,
        limits: Limits::default(),
        warm_connections: None,
        max_connections: None,
        memory: None,
        drain_ns: 1_000_000_000,
        stop_after_failures: None,
        live: LiveOptions::default(),
        output,
        overwrite: false,
        max_lateness_us: 1_000,
        config: serde_json::json!({}),
    }
}

/// Both drivers this machine has.
#[must_use]
pub fn drivers() -> Vec<DriverKind> {
    let (best, _) = DriverKind::probe(1);
    if best == DriverKind::Epoll { vec![best] } else { vec![best, DriverKind::Epoll] }
}

fn carry_out(config: RunConfig) -> (Result<Ran, EngineError>, Vec<String>) {
    let mut watch = Quiet::default();
    let ran = onbeat::run::run(config, &mut watch);
    (ran, watch.said)
}

/// `count` Mooncake rows, `gap_ms` apart, with `input` prompt tokens and `output` answer tokens.
#[must_use]
pub fn mooncake(count: usize, gap_ms: usize, input: usize, output: usize) -> String {
    let blocks = input.div_ceil(512);
    (0..count)
        .map(|row| {
            let ids: Vec<String> =
                (0..blocks).map(|block| (row * blocks + block).to_string()).collect();
            format!(
                "{{\"timestamp\": {}, \"input_length\": {input}, \"output_length\": {output}, \
                 \"hash_ids\": [{}]}}\n",
                row * gap_ms,
                ids.join(", ")
            )
        })
        .collect()
}
