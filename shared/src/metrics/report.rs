//! The report: one struct that every output of a run's numbers renders.
//!
//! Its JSON is a stable interface; the schema is `shared/report.schema.json`. Every number has its
//! unit in its name, a number without data is null and never 0, and a count of things that were
//! looked for and not found is 0. [`super::report()`] fills it in; the formulas are the other
//! modules'.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::adjusted::FailuresAsInfinite;
use super::concurrency::Concurrency;
use super::fidelity::Fidelity;
use super::gate::Judged;
use super::hosts::HostReport;
use super::left_out::LeftOut;
use super::periods::Period;
use super::quantile::Statistic;
use super::server::ServerReport;
use super::users::UsersReport;
use crate::units::RunNanos;

/// Version of the report's JSON; raised when a key changes its meaning or disappears.
pub const SCHEMA_VERSION: u32 = 1;

/// What to report.
#[derive(Clone, Debug, Default)]
pub struct ReportOptions {
    /// Only requests whose sending (or due time, if they never left) lies in `start..end`.
    pub range: Option<(RunNanos, RunNanos)>,
    /// Only these requests, by their places in the plan, ascending; with a range, all of them must
    /// lie in it. Users, periods, host stalls and connections are those of the range all the same.
    pub requests: Option<Arc<[u32]>>,
    /// Goals for goodput; those on TTFT and decode speed are the users' too, in the place of the
    /// run's own.
    pub slo: Option<super::slo::Goals>,
    /// The p99 lateness outside host stalls above which the schedule counts as not held; by default
    /// the run's own.
    pub max_lateness_us: Option<u64>,
    /// Length of the slices to report as well, in nanoseconds; of the whole run, whatever the
    /// range.
    pub slice_ns: Option<i64>,
}

/// Everything a run's outputs show.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Report {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// What ran, where.
    pub run: RunFacts,
    /// Whether the measurement is valid.
    pub verdict: Verdict,
    /// What was asked of the sender and what it did.
    pub schedule: Schedule,
    /// How requests ended.
    pub outcomes: Outcomes,
    /// Durations of successful requests.
    pub latency: Latency,
    /// Durations if every failure had taken forever.
    pub failures_as_infinite: FailuresAsInfinite,
    /// Tokens of successful requests.
    pub tokens: Tokens,
    /// Rates.
    pub throughput: Throughput,
    /// Requests at once, weighted by time.
    pub concurrency: Concurrency,
    /// Prefix cache.
    pub cache: Cache,
    /// Goals.
    pub slo: Slo,
    /// How faithful the replay was to what was recorded.
    pub fidelity: Fidelity,
    /// Users and what became of them; of the whole run, whatever the range. Only of a run that is
    /// driven by users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub users: Option<UsersReport>,
    /// The assessment periods of such a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub periods: Option<Vec<Period>>,
    /// The run in slices of equal length, where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slices: Option<Vec<SliceReport>>,
    /// What each machine did, in a run that was merged from several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostReport>,
    /// What servers said of themselves (`--scrape`); only of a run that asked them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers: Option<Vec<ServerReport>>,
    /// What a reader must know beside the numbers.
    pub notes: Notes,
    /// What was asked to fail (`--fail-on`), and whether it did; empty where nothing was asked.
    pub gates: Vec<Judged>,
}

/// What ran, where.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RunFacts {
    /// Unique name of the run.
    pub id: String,
    /// Wall clock at the schedule's zero.
    pub started_unix_ns: u64,
    /// First sending to last end, over all outcomes.
    pub duration_s: Option<f64>,
    /// The user stopped it.
    pub interrupted: bool,
    /// The log has no footer, ends inside a block, or has damaged blocks: facts are missing.
    pub torn: bool,
    /// The machine that sent.
    pub host: crate::log::Host,
    /// CPU number of each sending core.
    pub cores: Vec<u16>,
    /// How requests were released.
    pub mode: String,
    /// The trace.
    pub trace: TraceFacts,
    /// What the precision of the sending rests on.
    pub precision: Precision,
    /// The resolved configuration, secrets cut out.
    pub config: serde_json::Value,
    /// Requests before zero, if there were any; nothing else counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUpFacts>,
    /// How requests were encrypted, if they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<crate::log::Tls>,
}

/// How the cores waited and what the machine allowed, as it was found before the run.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Precision {
    /// How a core waited: `spin`, `hybrid` or `sleep`.
    pub pacing: String,
    /// How sockets were driven: `io_uring` or `epoll`.
    pub driver: String,
    /// By how much a sleeping core woke late, in nanoseconds.
    pub wake_error_ns: Option<u64>,
    /// A jump of a core's clock longer than this is a host stall, in nanoseconds.
    pub stall_threshold_ns: u64,
    /// What became of `--lock-memory`, if it was asked for.
    pub memory_lock: Option<String>,
    /// What became of `--numa-local`, if it was asked for.
    pub memory_node: Option<String>,
    /// What became of `--realtime`, if it was asked for.
    pub realtime: Option<String>,
    /// What `onbeat doctor` finds without measuring, in its own form.
    pub doctor: Option<serde_json::Value>,
}

/// Requests that were sent before zero.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct WarmUpFacts {
    /// How many.
    pub requests: u64,
    /// Those that succeeded.
    pub ok: u64,
    /// First sending to last end.
    pub duration_s: Option<f64>,
}

/// A trace, by name and digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct TraceFacts {
    /// File name.
    pub name: String,
    /// SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// Format.
    pub format: String,
    /// Rows before any filter.
    pub rows: u64,
}

/// Whether the measurement is valid.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Verdict {
    /// Every planned request left, at the offered rate, on time but for those left out.
    pub schedule_held: bool,
    /// Requests that are not judged by their lateness.
    pub left_out: LeftOut,
    /// Why not, each with its numbers and the next step. Empty if it held.
    pub reasons: Vec<String>,
}

/// The sender's side.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Schedule {
    /// Requests planned.
    pub planned: u64,
    /// Requests that left.
    pub sent: u64,
    /// Requests that are known never to have left.
    pub never_sent: u64,
    /// Requests that could leave / the sending window, which goes from the first to the last
    /// instant at which one could: when it was due or, if its session's earlier answer ended later,
    /// then (see `session_waits`). Not counted are those that a stop kept back or that got no
    /// connection from the server. Null where users decide, and where there is one instant only.
    pub offered_rps: Option<f64>,
    /// Of these, requests that left, per second until the last but one had left (lateness limit and
    /// host stalls taken off).
    pub achieved_rps: Option<f64>,
    /// Sent − max(due, ready), all requests.
    pub lateness_us: Option<Statistic>,
    /// The same without requests hit by a host stall.
    pub lateness_outside_stalls_us: Option<Statistic>,
    /// The same for requests that share their due instant with others on their core.
    pub burst_lateness_us: Option<Statistic>,
    /// Jumps of the sending cores' clocks.
    pub host_stalls: HostStalls,
    /// Requests whose body was not ready when they were due.
    pub render_underruns: u64,
    /// Requests that left and were due before their session's earlier answer had ended; null where
    /// users decide, who have no such schedule, and where it is not known.
    pub session_waits: Option<SessionWaits>,
}

/// Requests that waited for their session's earlier answer, longer than the schedule had it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SessionWaits {
    /// How many.
    pub count: u64,
    /// Σ (ready − due) of them.
    pub total_ms: f64,
    /// The longest; null if none waited.
    pub max_ms: Option<f64>,
}

/// Jumps of the sending cores' clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct HostStalls {
    /// How many.
    pub count: u64,
    /// Their sum over all cores.
    pub total_ms: f64,
    /// The longest; null if there was none.
    pub max_ms: Option<f64>,
}

/// How requests ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Outcomes {
    /// Complete answers with success status.
    pub ok: u64,
    /// Streams that stopped politely but unfinished.
    pub incomplete: u64,
    /// Any status but 2xx.
    pub http_error: u64,
    /// No connection.
    pub connect_error: u64,
    /// A time limit passed.
    pub timeout: u64,
    /// The connection broke.
    pub disconnected: u64,
    /// The answer broke the protocol's rules.
    pub protocol_error: u64,
    /// An error inside a success stream.
    pub stream_error: u64,
    /// Ended on purpose.
    pub cancelled: u64,
    /// Planned and never left.
    pub never_sent: u64,
    /// The share of requests that ended by themselves without success; null if none ended.
    pub error_rate: Option<f64>,
    /// The finer causes that occurred, and why an end is not known.
    pub by_class: BTreeMap<String, u64>,
}

/// Durations of successful requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Latency {
    /// First token − sent.
    pub ttft_ms: Option<Statistic>,
    /// First token − due.
    pub ttft_from_due_ms: Option<Statistic>,
    /// First token that is not reasoning − sent.
    pub time_to_first_output_token_ms: Option<Statistic>,
    /// Second content event − first.
    pub ttst_ms: Option<Statistic>,
    /// (Last token − first token) / (completion tokens − 1), one value for each request, as AIPerf
    /// has it. `vllm bench serve` calls this TPOT, and its ITL is `icl_ms`.
    pub itl_ms: Option<Statistic>,
    /// Gaps between successive content events, pooled over requests: the ITL of `vllm bench serve`.
    pub icl_ms: Option<Statistic>,
    /// End to end / completion tokens.
    pub ntpot_ms: Option<Statistic>,
    /// Last token − first token.
    pub decode_ms: Option<Statistic>,
    /// Last token − sent.
    pub e2e_ms: Option<Statistic>,
    /// Last token − due.
    pub e2e_from_due_ms: Option<Statistic>,
    /// Opening a connection, all that opened.
    pub connect_ms: Option<Statistic>,
    /// Kernel accepted the last byte − sent.
    pub send_ms: Option<Statistic>,
    /// First byte of the answer − sent.
    pub first_byte_ms: Option<Statistic>,
}

/// Tokens of successful requests.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Tokens {
    /// Prompt tokens: the server's count, or the recorded length where it gave none.
    pub prompt: Option<u64>,
    /// Completion tokens: the server's count, or content events where it gave none.
    pub completion: Option<u64>,
    /// Reasoning tokens, as reported.
    pub reasoning: Option<u64>,
    /// Cached prompt tokens, as reported.
    pub cached: Option<u64>,
    /// Prompt tokens of each, counted as for the sum.
    pub prompt_tokens: Option<Statistic>,
    /// Completion tokens of each, counted as for the sum.
    pub completion_tokens: Option<Statistic>,
    /// Where completion counts come from: `usage`, `chunks` or `mixed`.
    pub source: Option<&'static str>,
    /// Sum of the planned output limits.
    pub planned_output: Option<u64>,
    /// Requests whose completion differs from the planned output.
    pub output_mismatch_requests: Option<u64>,
    /// By how many tokens the answers of those were too short on average; below zero: too long.
    pub output_mismatch_mean_shortfall: Option<f64>,
}

/// Rates over the whole run: successful requests / first sending to last end of any.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Throughput {
    /// Successful requests per second.
    pub requests_per_s: Option<f64>,
    /// Prompt tokens per second.
    pub input_tokens_per_s: Option<f64>,
    /// Completion tokens per second.
    pub output_tokens_per_s: Option<f64>,
    /// Both.
    pub total_tokens_per_s: Option<f64>,
    /// 1 / ITL of each request.
    pub output_tokens_per_s_per_user: Option<Statistic>,
    /// Most completion tokens in one second, seconds counted from the schedule's zero.
    pub peak_output_tokens_per_s: Option<f64>,
    /// Most requests in flight at once.
    pub peak_in_flight: Option<u64>,
}

/// Prefix cache.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Cache {
    /// Σ longest prefix of blocks already sent / Σ input tokens: an infinite cache. Of a turn that
    /// repeats its session: Σ prompt tokens but for its own text / Σ prompt tokens.
    pub ideal_hit_rate: Option<f64>,
    /// The same for blocks already sent in any place; no real prefix cache can reach it.
    pub ideal_set_overlap_rate: Option<f64>,
    /// The ideal hit rate of caches of growing size, of the whole plan; null for a part of the run
    /// and where it is not known.
    pub ideal_hit_rate_by_capacity: Option<Vec<crate::log::CacheSize>>,
    /// Σ cached / Σ prompt over requests that report.
    pub reported_hit_rate: Option<f64>,
    /// How many requests report cached tokens.
    pub requests_reporting: u64,
}

/// Goals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Slo {
    /// Limit per goal.
    pub goals: BTreeMap<String, f64>,
    /// Requests that meet each goal.
    pub met: BTreeMap<String, Met>,
    /// What the shares are of: requests that ended by themselves, failures included, and requests
    /// that the plan cancelled.
    pub of_requests: Option<u64>,
    /// Requests that the shares leave out: cut off by the user, by the run's end or the log's.
    pub cut_off_requests: Option<u64>,
    /// Successful requests that meet every goal.
    pub goodput_requests: Option<u64>,
    /// Their share of `of_requests`.
    pub goodput_share: Option<f64>,
    /// Their rate over the run's duration.
    pub goodput_rps: Option<f64>,
    /// The same share if the time a request waited for its sending counts into TTFT.
    pub effective_goodput_share: Option<f64>,
}

/// Requests that meet a goal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Met {
    /// How many.
    pub count: u64,
    /// Their share of `of_requests`; null if there is none.
    pub share: Option<f64>,
}

/// One slice of the run: the requests that were sent in it, and the tokens that arrived in it.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SliceReport {
    /// Place on the grid, from zero; slices in which nothing happened are left out.
    pub index: u64,
    /// Where it begins, from the schedule's zero; the first one at the first sending.
    pub start_ns: i64,
    /// Where it ends.
    pub end_ns: i64,
    /// Whether it has its whole length; the last one ends with the run.
    pub complete: bool,
    /// Requests sent in it.
    pub sent: u64,
    /// How they ended, whenever that was.
    pub outcomes: Outcomes,
    /// Durations of the successful ones.
    pub latency: Latency,
    /// Durations if every failure had taken forever.
    pub failures_as_infinite: FailuresAsInfinite,
    /// Tokens of the successful ones.
    pub tokens: Tokens,
    /// Rates of the successful ones over the slice.
    pub throughput: Throughput,
    /// Prompt tokens whose first answer token arrived in it, per second.
    pub arrived_input_tokens_per_s: Option<f64>,
    /// Completion tokens that arrived in it, per second.
    pub arrived_output_tokens_per_s: Option<f64>,
    /// Requests at once during it, of all requests of the run.
    pub concurrency: Concurrency,
    /// Prefix cache.
    pub cache: Cache,
    /// Goals; the rate is over the slice.
    pub slo: Slo,
}

/// What a reader must know beside the numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Notes {
    /// Rule of the percentiles: interpolated linearly between order statistics.
    pub percentiles: &'static str,
    /// Statistics of more than 10^7 values: their percentiles come from a histogram with three
    /// significant digits. All others are exact.
    pub binned: Vec<&'static str>,
    /// What rates divide by: first sending to last end, over all outcomes (`run.duration_s`).
    pub rate_window_s: Option<f64>,
    /// First to last instant at which a request could leave.
    pub sending_window_s: Option<f64>,
    /// Successful requests per second of the sending window.
    pub requests_per_s_of_sending_window: Option<f64>,
    /// Who counted prompt tokens: `usage`, `recorded` or `mixed`.
    pub prompt_source: Option<&'static str>,
    /// The limit of the verdict.
    pub max_lateness_us: u64,
    /// Requests in flight when the log ends, or whose end was lost.
    pub open: u64,
    /// Requests not reached when the log ends.
    pub not_reached: u64,
    /// Requests of which a closed log has no record because it is damaged or lacks records: whether
    /// they were sent is not known.
    pub lost: u64,
    /// Lateness of requests that share their due instant with no other on their core.
    pub lone_lateness_us: Option<Statistic>,
    /// Lateness of requests that a host stall explains.
    pub lateness_in_stalls_us: Option<Statistic>,
    /// TTFT's 99th percentile if every failure had taken forever; null if that is infinite.
    pub ttft_ms_p99_failures_as_infinite: Option<f64>,
    /// The same for e2e.
    pub e2e_ms_p99_failures_as_infinite: Option<f64>,
    /// No successful answer came in pieces: there is no ITL, and TTFT equals e2e or is unknown.
    pub answers_came_whole: bool,
    /// For each class of failure, what the first of its requests says in words, if it says any.
    pub first_errors: BTreeMap<&'static str, String>,
    /// What is wrong with the log, in words.
    pub warnings: Vec<String>,
}
