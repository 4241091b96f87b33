//! How the number of users grows, period by period: options as typed.

use std::num::NonZero;

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::cli::flags::Typed;
use crate::cli::flags::number::{real, whole};
use crate::cli::flags::timing::positive_seconds;

/// The ramp of an agentic run.
#[derive(Clone, Debug, Args, Serialize, schemars::JsonSchema)]
#[command(next_help_heading = "Ramp of an agentic trace's users")]
pub struct RampFlags {
    /// Longest acceptable time to first token: users are added while it is well below.
    #[arg(long, default_value = "2.0", value_name = "SECONDS", value_parser = positive_seconds)]
    pub max_ttft: Typed<i64>,

    /// Which number of a period's times to first token is held against --max-ttft.
    #[arg(long, value_enum, default_value_t, value_name = "METRIC")]
    pub ttft_metric: MetricFlag,

    /// A period below so many output tokens a second for each request counts as exceeded, like one
    /// above --max-ttft (default: none does).
    #[arg(long, value_name = "TOKENS_PER_SECOND", value_parser = rate)]
    pub min_output_tokens_per_req: Option<f64>,

    /// How long a period is, after which users are counted, added and reported.
    #[arg(long, default_value = "30", value_name = "SECONDS", value_parser = positive_seconds)]
    pub assessment_period: Typed<i64>,

    /// When users are added: as kv-cache-tester's page has it, with a cooldown after periods above
    /// --max-ttft, or as its present code has it, by the mean of the last periods.
    #[arg(long, value_enum, default_value_t, value_name = "WAY")]
    pub ramp: WayFlag,

    /// Periods whose mean --ramp rolling looks at.
    #[arg(long, default_value = "3", value_name = "PERIODS", value_parser = whole::<NonZero<u32>>)]
    pub ttft_window: NonZero<u32>,

    /// Most tokens that are new to the server's cache which users added in one period may begin
    /// with; 0 is no limit.
    #[arg(long, default_value = "500000", value_name = "TOKENS", value_parser = whole::<u64>)]
    pub max_new_tokens_per_period: u64,

    /// Add no user while all users together have sent so many different tokens lately, or would
    /// with it; those that play already go on, so it may still grow. 0 is no limit.
    #[arg(long, default_value = "0", value_name = "TOKENS", value_parser = whole::<u64>)]
    pub max_working_set_tokens: u64,

    /// Count a token into the working set for so many seconds after its last use.
    #[arg(long, default_value = "600", value_name = "SECONDS", value_parser = positive_seconds)]
    pub cache_max_age: Typed<i64>,
}

/// `--ttft-metric` as typed.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum MetricFlag {
    /// The longest.
    Max,
    /// The mean.
    Avg,
    /// The 95th percentile.
    #[default]
    P95,
}

/// `--ramp` as typed.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum WayFlag {
    /// As the page has it.
    #[default]
    Documented,
    /// As the present code has it.
    Rolling,
}

fn rate(text: &str) -> Result<f64, String> {
    let right = "give tokens a second, above 0, like 20";
    real(text).ok().filter(|&rate| rate > 0.0).ok_or_else(|| right.to_owned())
}
