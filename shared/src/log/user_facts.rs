//! What a user-driven run was asked to do: the manifest's part about users.
//!
//! Its presence says that the plan table holds templates and not requests. Everything in it is
//! JSON that a later version may add to; what a writer does not know is left out and read as
//! `None`, 0 or empty. It holds options as they were resolved, and facts about the pool of
//! conversations; nothing that happened.

use serde::{Deserialize, Serialize};

/// Options and facts of a user-driven run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct UserFacts {
    /// Length of an assessment period, in nanoseconds.
    pub period_ns: i64,
    /// When the run was to end, in nanoseconds from zero; `None`: with its last user.
    pub duration_ns: Option<i64>,
    /// Users of the runs that this one goes on from: whoever has such a number goes on with what
    /// it played.
    pub users_before: u32,
    /// Users that started at zero.
    pub start_users: u32,
    /// The most users at once.
    pub max_users: u32,
    /// Whether a user that ends is replaced.
    pub recycle: bool,
    /// TTFT limit of the ramp, in nanoseconds.
    pub max_ttft_ns: i64,
    /// Which TTFT the ramp compares: `max`, `avg` or `p95`.
    pub ttft_metric: String,
    /// Output tokens per second and request below which a period counts as exceeded.
    pub min_output_rate: Option<f64>,
    /// `documented` (with its cooldown) or `rolling`.
    pub ramp: String,
    /// Periods of the rolling mean, where the ramp is `rolling`.
    pub ttft_window: Option<u32>,
    /// Budgets and limits; 0 is none.
    pub limits: UserLimits,
    /// When requests leave.
    pub timing: UserTiming,
    /// What prompts are made of.
    pub prompts: UserPrompts,
    /// Goals of the end-of-test summary.
    pub goals: UserGoals,
    /// The conversations.
    pub pool: PoolFacts,
    /// Seed of the selection of conversations; `None`: it was drawn.
    pub trace_seed: Option<u64>,
    /// The trace's own id for each session of the templates, by their session index: `trace_0001`
    /// for a conversation, `trace_0001:agent_001` for a sub-agent.
    pub trace_ids: Vec<String>,
}

/// Budgets and limits; 0 is none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct UserLimits {
    /// Requests in flight.
    pub concurrent: u32,
    /// Requests without a token.
    pub prefill: u32,
    /// Requests that receive tokens.
    pub decode: u32,
    /// Input tokens per minute.
    pub input_tokens_per_minute: u64,
    /// Output tokens per minute.
    pub output_tokens_per_minute: u64,
    /// Whether TTFT above its limit keeps requests back.
    pub by_ttft: bool,
    /// New tokens of users that start in one period.
    pub new_tokens_per_period: u64,
    /// Tokens of the working set.
    pub working_set_tokens: u64,
    /// After how long without use a block leaves the working set, in nanoseconds.
    pub cache_max_age_ns: i64,
    /// Connection errors in a row that end the run.
    pub consecutive_errors: u32,
    /// Without a success for how long they must be, in nanoseconds.
    pub circuit_breaker_ns: i64,
}

/// When requests leave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct UserTiming {
    /// `think-only`, `original` or `api-scaled`.
    pub strategy: String,
    /// The longest wait, in nanoseconds, before scaling.
    pub max_delay_ns: i64,
    /// Factor of every wait.
    pub time_scale: f64,
    /// Factor of the recorded time of an answer, where the strategy is `api-scaled`.
    pub api_time_scale: f64,
    /// Think times that were longer than the gap they fill and were cut to it.
    pub clamped_think_times: u64,
    /// Whether those are cut.
    pub clamp_think_times: bool,
    /// What is done with sub-agents that ran on their own: `wait` or `detach`.
    pub async_subagents: String,
    /// The least share of a conversation that is passed over.
    pub advance_min: f64,
    /// The largest share of a conversation that is passed over.
    pub advance_max: f64,
    /// Whether users that start later are advanced too.
    pub advance_all_users: bool,
}

/// What prompts are made of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct UserPrompts {
    /// Share of the tool and system tokens that all users have in common.
    pub warm_prefix_share: f64,
    /// Tokens that all users have in common.
    pub warm_prefix_tokens: u32,
    /// `live` or `recorded`.
    pub reply_mode: String,
    /// Tokens of a cache block, for the working set.
    pub chunk_tokens: u32,
    /// Whether every request streams.
    pub stream_all: bool,
    /// Role of messages that hold results of tools: `user` or `tool`.
    pub tool_role: String,
    /// Seed of the text.
    pub seed: u64,
}

/// Goals of the end-of-test summary.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct UserGoals {
    /// `--slo-ttft`, in nanoseconds.
    pub ttft_ns: Option<i64>,
    /// `--slo-decode-tps`: tokens per second.
    pub decode_tokens_per_s: Option<f64>,
}

/// The conversations that could be played.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct PoolFacts {
    /// Fewest requests of a conversation.
    pub min_requests: u32,
    /// Longest prompt.
    pub max_context: u32,
    /// Conversations that were read.
    pub read: u64,
    /// Of those, the ones that could be played.
    pub usable: u64,
    /// Requests of those, without sub-agents'.
    pub requests: u64,
    /// Their input tokens.
    pub input_tokens: u64,
    /// The fewest input tokens of one conversation, summed.
    pub min_input_tokens: Option<u64>,
    /// The most input tokens of one conversation, summed.
    pub max_input_tokens: Option<u64>,
    /// The mean over conversations of their own ideal hit rate.
    pub cache_hit_rate: Option<f64>,
    /// Conversations with a call of a tool.
    pub with_tool_use: u64,
    /// The most tool and system tokens of one conversation.
    pub max_prefix_tokens: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_version_knows_more_or_less_of_does_no_harm() {
        let facts = UserFacts {
            period_ns: 5,
            goals: UserGoals { ttft_ns: Some(7), decode_tokens_per_s: Some(0.5) },
            trace_ids: vec!["trace_0001".to_owned()],
            ..UserFacts::default()
        };
        let mut json = serde_json::to_value(&facts).expect("JSON's own types");
        assert_eq!(serde_json::from_value::<UserFacts>(json.clone()).expect("reads"), facts);
        json["limits"]["a_later_limit"] = 1.into();
        json.as_object_mut().expect("an object").remove("pool");
        assert_eq!(serde_json::from_value::<UserFacts>(json).expect("reads"), facts);
        let nothing = serde_json::from_str::<UserFacts>("{}").expect("reads");
        assert_eq!(nothing, UserFacts::default());
    }
}
