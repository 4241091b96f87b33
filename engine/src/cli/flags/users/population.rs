//! Which conversations are replayed and how many users replay them: options as typed.

use std::num::NonZero;

use clap::Args;
use serde::Serialize;

use super::share;
use crate::cli::flags::number::whole;

/// The users and what they are given.
#[derive(Clone, Debug, Args, Serialize, schemars::JsonSchema)]
#[command(next_help_heading = "Users of an agentic trace")]
pub struct PopulationFlags {
    /// Users that start at zero.
    #[arg(long, default_value = "1", value_name = "USERS", value_parser = whole::<NonZero<u32>>)]
    pub start_users: NonZero<u32>,

    /// Most users at a time; a sub-agent that runs counts as one, but is never refused.
    #[arg(long, default_value = "50", value_name = "USERS", value_parser = whole::<NonZero<u32>>)]
    pub max_users: NonZero<u32>,

    /// Replace a user whose conversation has ended by one with another conversation; when all have
    /// been used, they are used again.
    #[arg(long)]
    pub recycle: bool,

    /// Leave out conversations with fewer requests than this, sub-agents' not counted.
    #[arg(long, default_value = "1", value_name = "REQUESTS", value_parser = whole::<u32>)]
    pub min_requests: u32,

    /// Leave out conversations that begin with more input tokens than this; one that grows beyond
    /// it ends there, truncated.
    #[arg(long, default_value = "128000", value_name = "TOKENS")]
    #[arg(value_parser = whole::<NonZero<u32>>)]
    pub max_context: NonZero<u32>,

    /// Start the first users this far into their conversations at least, as a share of their
    /// requests; a user's place is drawn by --trace-seed and the user's name.
    #[arg(long, default_value = "0.0", value_name = "SHARE", value_parser = share)]
    pub advance_min: f64,

    /// Start the first users this far into their conversations at most; 0 starts them at the
    /// beginning.
    #[arg(long, default_value = "0.0", value_name = "SHARE", value_parser = share)]
    pub advance_max: f64,

    /// Let users that come later start within their conversations, too.
    #[arg(long)]
    pub advance_all_users: bool,

    /// What the order and the starting places of conversations depend on (default: --seed).
    #[arg(long, value_name = "NUMBER", value_parser = whole::<u64>)]
    pub trace_seed: Option<u64>,

    /// What prompts' text depends on (default: --seed).
    #[arg(long, value_name = "NUMBER", value_parser = whole::<u64>)]
    pub prompt_seed: Option<u64>,
}
