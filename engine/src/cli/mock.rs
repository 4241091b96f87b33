//! `onbeat mock`: the stand-in server on the command line, until it is interrupted.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use onbeat_shared::counted::{counted, grouped};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

use super::flags::number::{real, whole};
use super::printing;
use crate::conductor::host;
use crate::error::{EngineError, lacking};
use crate::mock::{self, MockConfig, MockCounts};

/// How often it is looked whether the mock still serves.
const GLANCE: Duration = Duration::from_millis(200);

/// Options of the mock server.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Name or address to listen on.
    #[arg(long, default_value = "127.0.0.1", value_name = "HOST")]
    pub host: String,

    /// Port to listen on; 0 lets the system choose.
    #[arg(long, default_value_t = 8000, value_name = "PORT", value_parser = port)]
    pub port: u16,

    /// Threads, each with its own connections, timing model and cache, like replicas.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = whole::<usize>)]
    pub threads: usize,

    /// The model's name in answers.
    #[arg(long, default_value = "onbeat-mock", value_name = "NAME")]
    pub model: String,

    /// Answer 404 to requests for any other model.
    #[arg(long)]
    pub strict_model: bool,

    /// Seeds answer lengths, words and jitter.
    #[arg(long, default_value_t = 0, value_name = "NUMBER", value_parser = whole::<u64>)]
    pub seed: u64,

    /// Timing of the model.
    #[command(flatten)]
    pub timing: TimingArgs,

    /// Capacity of the model.
    #[command(flatten)]
    pub capacity: CapacityArgs,
}

/// How long things take.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Timing")]
pub struct TimingArgs {
    /// Prompt tokens computed in a second, cached ones excluded.
    #[arg(long, default_value_t = 100_000.0, value_name = "TOKENS/S", value_parser = real)]
    pub prefill_rate: f64,

    /// Time before a request enters the queue.
    #[arg(long, default_value = "5", value_name = "MS", value_parser = milliseconds)]
    pub overhead_ms: i64,

    /// Length of a decode step before the sequences in it are counted.
    #[arg(long, default_value = "4", value_name = "MS", value_parser = milliseconds)]
    pub step_ms: i64,

    /// What each running sequence adds to a step.
    #[arg(long, default_value = "0.03", value_name = "MS", value_parser = milliseconds)]
    pub sequence_ms: i64,

    /// Tokens one step computes at most, prefill and decode together.
    #[arg(long, default_value_t = 2_048, value_name = "TOKENS", value_parser = whole::<u32>)]
    pub step_tokens: u32,

    /// Largest relative change of a step's length, 0 to 1, drawn anew for each.
    #[arg(long, default_value_t = 0.0, value_name = "SHARE", value_parser = real)]
    pub jitter: f64,
}

/// How much fits, and how long answers are.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Capacity")]
pub struct CapacityArgs {
    /// Sequences that run at once; more requests wait.
    #[arg(long, default_value_t = 256, value_name = "N", value_parser = whole::<usize>)]
    pub running: usize,

    /// Requests that may wait; more are answered with 503.
    #[arg(long, default_value_t = 65_536, value_name = "N", value_parser = whole::<usize>)]
    pub queue: usize,

    /// Longest prompt and answer together.
    #[arg(long, default_value_t = 1_048_576, value_name = "TOKENS", value_parser = whole::<u32>)]
    pub context: u32,

    /// Tokens of a prefix cache block.
    #[arg(long, default_value_t = 16, value_name = "TOKENS", value_parser = whole::<u32>)]
    pub block_size: u32,

    /// Tokens the prefix cache holds, least recently used out first; 0 switches it off.
    #[arg(long, default_value_t = 1_000_000, value_name = "TOKENS", value_parser = whole::<u64>)]
    pub cache_tokens: u64,

    /// Tokens a chat template adds to each prompt.
    #[arg(long, default_value_t = 0, value_name = "TOKENS", value_parser = whole::<u32>)]
    pub template_tokens: u32,

    /// Answer length where the request does not say.
    #[arg(long, default_value_t = 128, value_name = "TOKENS", value_parser = whole::<u32>)]
    pub default_max_tokens: u32,

    /// Let the model stop by itself, at this length on average.
    #[arg(long, value_name = "TOKENS", value_parser = real)]
    pub early_stop: Option<f64>,

    /// Tokens in one event of a stream.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = whole::<u32>)]
    pub tokens_per_event: u32,
}

/// Serves until SIGINT or SIGTERM.
///
/// # Errors
/// When the settings make no sense or the address cannot be listened on.
pub fn run(args: &Args, out: &mut dyn Write) -> Result<u8, EngineError> {
    let mut signals = signals()?;
    // Every connection is an open file, and whoever has none left accepts nobody.
    host::raise_files();
    let config = args.config()?;
    let place = format!("{}:{}", args.host, args.port);
    let mock = mock::spawn(config).map_err(|error| match error.kind() {
        ErrorKind::InvalidInput => EngineError::Usage(error.to_string()),
        _ => {
            let is_thread = error.kind() == ErrorKind::WouldBlock;
            let step = lacking::step(if is_thread { "start a thread" } else { "listen" }, &error);
            let step = step.map_or_else(String::new, |words| format!("; {words}"));
            EngineError::Run(format!("could not listen on {place}: {error}{step}"))
        }
    })?;
    writeln!(out, "listening on http://{}", mock.address()).map_err(printing)?;
    out.flush().map_err(printing)?;
    let waiting = |source| EngineError::Io { action: "wait for a signal", path: None, source };
    signals.set_read_timeout(Some(GLANCE)).map_err(waiting)?;
    while mock.failure().is_none() {
        match signals.read(&mut [0]) {
            Ok(_) => break,
            Err(error) if is_early(&error) => {}
            Err(error) => return Err(waiting(error)),
        }
    }
    let (counts, failure) = (mock.counts(), mock.failure());
    mock.stop();
    // Whoever closed stderr does not want to know.
    let _unread = writeln!(io::stderr(), "{}", summary(&counts));
    match failure {
        Some(words) => Err(EngineError::Run(words)),
        None => Ok(0),
    }
}

impl Args {
    fn config(&self) -> Result<MockConfig, EngineError> {
        let Self { timing, capacity, .. } = self;
        Ok(MockConfig {
            listen: self.address()?,
            threads: self.threads,
            model: self.model.clone(),
            strict_model: self.strict_model,
            seed: self.seed,
            prefill_tokens_per_s: timing.prefill_rate,
            overhead_ns: timing.overhead_ms,
            step_ns: timing.step_ms,
            step_ns_per_sequence: timing.sequence_ms,
            step_tokens: timing.step_tokens,
            jitter: timing.jitter,
            running_max: capacity.running,
            waiting_max: capacity.queue,
            context_tokens: capacity.context,
            block_tokens: capacity.block_size,
            cache_tokens: capacity.cache_tokens,
            template_tokens: capacity.template_tokens,
            default_max_tokens: capacity.default_max_tokens,
            early_stop: capacity.early_stop,
            tokens_per_event: capacity.tokens_per_event,
            keep_served: false,
        })
    }

    fn address(&self) -> Result<SocketAddr, EngineError> {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        #[expect(clippy::disallowed_methods, reason = "where the mock listens, before it does")]
        let found = (host, self.port).to_socket_addrs().ok().and_then(|mut all| all.next());
        found.ok_or_else(|| {
            EngineError::Usage(format!("--host {}: not an address or a known name", self.host))
        })
    }
}

/// A port to listen on.
fn port(text: &str) -> Result<u16, String> {
    whole(text).map_err(|_no_port| "give a port, from 0 to 65535".to_owned())
}

/// Milliseconds with a fraction, as nanoseconds.
fn milliseconds(text: &str) -> Result<i64, String> {
    let value: f64 = text.parse().map_err(|_not_a_number| "not a number of milliseconds")?;
    // A day is longer than any step, and far from where a double loses nanoseconds.
    if !(0.0..=86_400_000.0).contains(&value) {
        return Err("from 0 up to a day of milliseconds".into());
    }
    #[expect(clippy::cast_possible_truncation, reason = "bounded above")]
    let nanos = (value * 1e6).round() as i64;
    Ok(nanos)
}

/// A byte can be read from it once the process is told to end.
fn signals() -> Result<UnixStream, EngineError> {
    let pair = || -> io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        pipe::register(SIGINT, theirs.try_clone()?)?;
        pipe::register(SIGTERM, theirs)?;
        Ok(ours)
    };
    pair().map_err(|source| EngineError::Io { action: "catch signals", path: None, source })
}

/// Whether no signal has come yet.
fn is_early(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn summary(counts: &MockCounts) -> String {
    let MockCounts { served, abandoned, refused, prompt_tokens, completion_tokens, .. } = counts;
    let MockCounts { cache_hit_tokens, cache_query_tokens, late_steps, .. } = counts;
    format!(
        "served {served}, abandoned {abandoned}, refused {refused}; {}, {} generated; \
         {} of {} from the cache; {}",
        counted(*prompt_tokens, "prompt token"),
        grouped(*completion_tokens),
        grouped(*cache_hit_tokens),
        counted(*cache_query_tokens, "prompt token"),
        counted(*late_steps, "late step")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        args: Args,
    }

    fn config(arguments: &[&str]) -> Result<MockConfig, EngineError> {
        let typed = Typed::try_parse_from([&["mock"], arguments].concat()).expect("legal");
        typed.args.config()
    }

    #[test]
    fn the_defaults_are_the_library_s() {
        let typed = config(&["--port", "0"]).expect("legal");
        assert_eq!(typed, MockConfig::default());
    }

    #[test]
    fn times_keep_their_fractions() {
        assert_eq!(milliseconds("0.03"), Ok(30_000));
        assert_eq!(milliseconds("0.0000014"), Ok(1));
        for wrong in ["-1", "x", "1e9", "NaN"] {
            assert!(milliseconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn hosts_may_be_names_and_bracketed() {
        let at = |host: &str| config(&["--host", host, "--port", "7"]).map(|typed| typed.listen);
        assert_eq!(at("[::1]").expect("good"), SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], 7)));
        assert!(at("localhost").expect("good").ip().is_loopback());
        assert!(at("no such host").is_err());
    }
}
