//! How the users of an agentic trace behave, as meant: one value for each thing that can be chosen.
//!
//! Built by `cli/flags/users` from what was typed; nothing downstream sees an option again. Times
//! are whole nanoseconds, limits of 0 are none.

use std::path::PathBuf;

use onbeat_shared::units::NANOS_PER_SECOND;

use crate::plan::script::ScriptOptions;
use crate::policy::admission::Limits;

/// Everything about users.
#[derive(Clone, Debug, PartialEq)]
pub struct UserOptions {
    /// How conversations become scripts.
    pub script: ScriptOptions,
    /// Users that start at zero.
    pub start_users: u32,
    /// Most users at a time, sub-agents that run among them.
    pub max_users: u32,
    /// Whether a user that is done is replaced.
    pub recycle: bool,
    /// Where in their conversations users begin.
    pub advance: Advance,
    /// What the order of conversations and the places users begin at depend on.
    pub trace_seed: u64,
    /// What prompts' text depends on.
    pub prompt_seed: u64,
    /// The run ends after so long.
    pub duration_ns: Option<i64>,
    /// What holds requests back.
    pub limits: Limits,
    /// Whether late first tokens hold requests back, too.
    pub ttft_gate: bool,
    /// How the number of users grows.
    pub ramp: RampChoice,
    /// Most new tokens that users added in one period may begin with; 0 is no limit.
    pub new_tokens_per_period: u64,
    /// Most different tokens that all users together may have sent; 0 is no limit.
    pub working_set_tokens: u64,
    /// A token counts into the working set for so long after its last use.
    pub cache_age_ns: i64,
    /// Tokens of a cache block, where blocks are counted as tokens.
    pub chunk_tokens: u32,
    /// When failures to connect end the run.
    pub breaker: Breaker,
    /// What stands in a later prompt for what the server said.
    pub reply: ReplyMode,
    /// Whether requests that were not recorded as streamed are streamed.
    pub stream_all: bool,
    /// Whether a tool's result is a message of the role `tool`.
    pub tool_role: bool,
    /// The goals of a good request.
    pub slo: Slo,
    /// The folder of an interrupted run that goes on.
    pub resume: Option<PathBuf>,
    /// The folder that the run's tables go to, in kv-cache-tester's formats; `None`: nowhere.
    pub files: Option<PathBuf>,
    /// Whether a page with graphs is written beside the tables.
    pub graphs: bool,
}

/// Where in their conversations users begin, as shares of a conversation's entries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Advance {
    /// At least so far.
    pub min: f64,
    /// At most so far; 0: all begin at the beginning.
    pub max: f64,
    /// Whether that holds for users that come after zero, too.
    pub all_users: bool,
}

/// How the number of users grows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RampChoice {
    /// By which rules.
    pub way: RampWay,
    /// Longest acceptable time to first token.
    pub max_ttft_ns: i64,
    /// Which number of a period's times to first token is held against that.
    pub metric: TtftMetric,
    /// Periods whose mean [`RampWay::Rolling`] looks at.
    pub window: u32,
    /// A period below so many output tokens a second for each request counts as exceeded.
    pub min_output_tokens_per_request: Option<f64>,
    /// How long a period is.
    pub period_ns: i64,
}

/// The rules by which users are added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RampWay {
    /// kv-cache-tester's page.
    #[default]
    Documented,
    /// kv-cache-tester's present code.
    Rolling,
}

/// A number of a period's times to first token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TtftMetric {
    /// The longest.
    Max,
    /// The mean.
    Avg,
    /// The 95th percentile.
    #[default]
    P95,
}

/// When failures to connect end the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breaker {
    /// So many in a row; 0: never.
    pub errors: u32,
    /// But not while a request has succeeded within so long.
    pub window_ns: i64,
}

/// What stands in a later prompt for what the server said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplyMode {
    /// Its own words.
    #[default]
    Live,
    /// Words made from the recorded block ids.
    Recorded,
}

/// The goals of a good request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slo {
    /// Longest time to first token.
    pub ttft_ns: i64,
    /// Fewest tokens a second while decoding.
    pub decode_tps: f64,
}

impl Default for UserOptions {
    fn default() -> Self {
        Self {
            script: ScriptOptions::default(),
            start_users: 1,
            max_users: 50,
            recycle: false,
            advance: Advance { min: 0.0, max: 0.0, all_users: false },
            trace_seed: 0,
            prompt_seed: 0,
            duration_ns: None,
            limits: Limits { concurrent: 50, ..Limits::default() },
            ttft_gate: false,
            ramp: RampChoice::default(),
            new_tokens_per_period: 500_000,
            working_set_tokens: 0,
            cache_age_ns: 600 * NANOS_PER_SECOND,
            chunk_tokens: 64,
            breaker: Breaker { errors: 10, window_ns: 30 * NANOS_PER_SECOND },
            reply: ReplyMode::Live,
            stream_all: false,
            tool_role: false,
            slo: Slo { ttft_ns: 5 * NANOS_PER_SECOND, decode_tps: 30.0 },
            resume: None,
            files: None,
            graphs: true,
        }
    }
}

impl Default for RampChoice {
    fn default() -> Self {
        Self {
            way: RampWay::Documented,
            max_ttft_ns: 2 * NANOS_PER_SECOND,
            metric: TtftMetric::P95,
            window: 3,
            min_output_tokens_per_request: None,
            period_ns: 30 * NANOS_PER_SECOND,
        }
    }
}
