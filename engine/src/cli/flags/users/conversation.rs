//! How a user replays a conversation, its pauses and its prompts: options as typed.

use std::num::NonZero;

use clap::{Args, ValueEnum};
use onbeat_shared::trace::decimal::Ratio;
use serde::Serialize;

use super::{scale, share};
use crate::cli::flags::Typed;
use crate::cli::flags::number::whole;
use crate::cli::flags::timing::{positive_seconds, seconds};

/// A conversation's pauses and prompts.
#[derive(Clone, Debug, Args, Serialize, schemars::JsonSchema)]
#[command(next_help_heading = "Conversations of an agentic trace")]
pub struct ConversationFlags {
    /// What a user's pause between two requests is made of.
    #[arg(long, value_enum, default_value_t, value_name = "STRATEGY")]
    pub timing_strategy: TimingFlag,

    /// Longest pause of a user between two requests, before --time-scale.
    #[arg(long, default_value = "60.0", value_name = "SECONDS", value_parser = seconds)]
    pub max_delay: Typed<i64>,

    /// Make users' pauses this many times as long; 0.5 is twice as fast.
    #[arg(long, default_value = "1.0", value_name = "FACTOR", value_parser = scale)]
    pub time_scale: Typed<Ratio>,

    /// With --timing-strategy api-scaled, count the recorded server's time this many times; 0.2 is
    /// a server five times as fast.
    #[arg(long, default_value = "1.0", value_name = "FACTOR", value_parser = scale)]
    pub api_time_scale: Typed<Ratio>,

    /// Cut a recorded think time to the recorded gap that it was part of, and count how many were
    /// longer; it is so anyway.
    #[arg(long, overrides_with = "no_clamp_think_time")]
    pub clamp_think_time: bool,

    /// Keep think times that are longer than the recorded gap, as kv-cache-tester does.
    #[arg(long, overrides_with = "clamp_think_time")]
    pub no_clamp_think_time: bool,

    /// End the run after so many seconds (default: when no user is left).
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds)]
    pub test_duration: Option<Typed<i64>>,

    /// What stands in a later prompt for what the server said: its own words, or words made from
    /// the recorded block ids.
    #[arg(long, value_enum, default_value_t, value_name = "MODE")]
    pub reply_mode: ReplyFlag,

    /// Whether a user waits for sub-agents that were recorded as launched to run beside it.
    #[arg(long, value_enum, default_value_t, value_name = "WAY")]
    pub async_subagents: AsyncFlag,

    /// Ask for a stream also where the recorded request did not, as kv-cache-tester's present code
    /// does; without a stream there is no time to first token, which the ramp and the goals go by.
    #[arg(long)]
    pub stream_all: bool,

    /// Send what was a tool's result as a message of the role `tool`, not `user`.
    #[arg(long)]
    pub tool_role: bool,

    /// Begin every prompt with text that all users share: this share of the longest tool
    /// definitions and system prompt in the trace; 0 is none.
    #[arg(long, default_value = "0.5", value_name = "SHARE", value_parser = share)]
    pub warm_prefix_pct: f64,

    /// Tokens of a cache block in counts of new tokens and of the working set.
    #[arg(long, default_value = "64", value_name = "TOKENS", value_parser = whole::<NonZero<u32>>)]
    pub chunk_size: NonZero<u32>,
}

/// `--timing-strategy` as typed.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum TimingFlag {
    /// The recorded think time.
    #[default]
    ThinkOnly,
    /// The recorded gap between two requests' starts.
    Original,
    /// The recorded server's time, scaled, and the recorded think time.
    ApiScaled,
}

/// `--reply-mode` as typed.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ReplyFlag {
    /// What this run's server replied.
    #[default]
    Live,
    /// Words made from the recorded block ids: prompts do not depend on the server.
    Recorded,
}

/// `--async-subagents` as typed.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum AsyncFlag {
    /// It waits for them as for any other.
    #[default]
    Wait,
    /// It goes on beside them.
    Detach,
}
