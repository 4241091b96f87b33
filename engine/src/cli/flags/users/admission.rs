//! What holds users' requests back: options as typed. 0 is no limit.

use clap::Args;
use serde::Serialize;

use crate::cli::flags::Typed;
use crate::cli::flags::number::whole;
use crate::cli::flags::timing::seconds;

/// Limits of an agentic run, over all cores.
#[derive(Clone, Debug, Args, Serialize, schemars::JsonSchema)]
#[command(next_help_heading = "Admission of an agentic trace's requests")]
pub struct AdmissionFlags {
    /// Most requests in flight; 0 is no limit. A user that is held back tries again after 0.2
    /// seconds, then twice as long each time, up to 30, give or take a quarter.
    #[arg(long, default_value = "50", value_name = "REQUESTS", value_parser = whole::<u32>)]
    pub max_concurrent_requests: u32,

    /// Most requests in flight without a first token; 0 is no limit.
    #[arg(long, default_value = "0", value_name = "REQUESTS", value_parser = whole::<u32>)]
    pub max_prefill_concurrent: u32,

    /// Send nothing while so many requests in flight have a first token; 0 is no limit. Those that
    /// are sent already get theirs all the same, so more may decode at once: what bounds that is
    /// `--max-concurrent-requests`.
    #[arg(long, default_value = "0", value_name = "REQUESTS", value_parser = whole::<u32>)]
    pub max_decode_concurrent: u32,

    /// Input tokens a minute that are not expected in the server's cache; 0 is no limit. A request
    /// of more than a minute's tokens goes when the budget is full.
    #[arg(long, default_value = "0", value_name = "TOKENS", value_parser = whole::<u64>)]
    pub itpm_budget: u64,

    /// Output tokens a minute; 0 is no limit.
    #[arg(long, default_value = "0", value_name = "TOKENS", value_parser = whole::<u64>)]
    pub otpm_budget: u64,

    /// Hold users back, too, while the time to first token is above --max-ttft.
    #[arg(long)]
    pub enable_request_rate_limiting: bool,

    /// End the run after so many failures to connect in a row; 0 never does.
    #[arg(long, default_value = "10", value_name = "ERRORS", value_parser = whole::<u32>)]
    pub max_consecutive_errors: u32,

    /// Go on beyond --max-consecutive-errors while a request has succeeded within so many seconds.
    #[arg(long, default_value = "30", value_name = "SECONDS", value_parser = seconds)]
    pub circuit_breaker_window: Typed<i64>,

    /// Changes nothing: who is held back tries again as --max-concurrent-requests says.
    #[arg(long, hide_short_help = true, value_name = "SECONDS", value_parser = seconds)]
    pub rate_limit_backoff: Option<Typed<i64>>,

    /// Changes nothing: no decision rests on what a user consumed before.
    #[arg(long, hide_short_help = true, value_name = "SECONDS", value_parser = seconds)]
    pub fairness_window: Option<Typed<i64>>,
}

impl AdmissionFlags {
    /// What the user should know about what was typed.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let backoff = "back-off begins at 0.2 seconds, doubles each time and ends at 30";
        let fairness = "nothing is decided by what a user consumed before";
        [
            (self.rate_limit_backoff.is_some(), "--rate-limit-backoff", backoff),
            (self.fairness_window.is_some(), "--fairness-window", fairness),
        ]
        .into_iter()
        .filter(|(given, _, _)| *given)
        .map(|(_, name, why)| format!("{name} changes nothing: {why}"))
        .collect()
    }
}
