//! What the users of an agentic trace do: every conversation as scripts of requests and sub-agents.
//!
//! A [`Script`] says in which order a conversation's threads of control go on, how long each
//! request waits for the one before it, and which earlier request its prompt goes on from. Waiting
//! is final here: strategy, clamp, longest delay and time scale are applied, in this order. Who
//! plays which script, and when, is decided during the run (see [`crate::policy::players`]).
//!
//! Choices where the page is silent: `original` and `api-scaled` are start-to-start, from the start
//! of the request before, but nothing leaves before that one has ended; a script's first request
//! waits for nothing; a gap that runs backwards is no wait.

mod bases;
mod build;
mod waits;

use std::ops::Range;

use onbeat_shared::counted::{agreeing, counted};
use onbeat_shared::trace::Trace;
use onbeat_shared::trace::decimal::Ratio;
use onbeat_shared::units::{NANOS_PER_SECOND, SessionIndex};

use crate::plan::PlanError;
pub(crate) use crate::plan::script::build::all;

/// How a trace becomes scripts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScriptOptions {
    /// Which recorded times a request waits.
    pub strategy: Strategy,
    /// No request waits longer than this (ns), before [`Self::time_scale`].
    pub max_delay_ns: i64,
    /// Waits are this many times as long; may be 0.
    pub time_scale: Ratio,
    /// The server's recorded time counts this many times ([`Strategy::ApiScaled`]); may be 0.
    pub api_time_scale: Ratio,
    /// Whether think times longer than the recorded gap are cut to it.
    pub clamp_think: bool,
    /// Whether sub-agents that were launched asynchronously run beside their parent.
    pub detach_async: bool,
    /// A request with more input tokens ends its player instead of being sent.
    pub max_context: u32,
    /// Conversations with fewer requests of their own are not played.
    pub min_requests: u32,
    /// How much of the longest tool and system prompt all prompts share, 0 to 1.
    pub warm_prefix_share: f64,
}

/// Which recorded times a request waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// The client's: from the end of the answer before to the request.
    #[default]
    ThinkOnly,
    /// All: from the start of the request before to the request.
    Original,
    /// The client's and a multiple of the server's.
    ApiScaled,
}

/// Every conversation of a trace as it is to be played.
#[derive(Clone, Debug, Default)]
pub struct Scripts {
    /// One for each conversation, in the trace's order.
    pub scripts: Vec<Script>,
    /// Think times that were cut to the gap they fill.
    pub clamped: u64,
    /// Tokens at the start of every prompt that all users share.
    pub warm_tokens: u32,
    /// Tokens of one block id.
    pub block_tokens: u32,
    /// Which conversations are played, in numbers.
    pub pool: PoolFacts,
}

/// Which conversations are played and why others are not: each is counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolFacts {
    /// All conversations.
    pub conversations: u32,
    /// Those that may be played.
    pub kept: u32,
    /// Without any request.
    pub empty: u32,
    /// Whose first own request has more input tokens than `--max-context`.
    pub too_long: u32,
    /// With fewer requests of their own than `--min-requests`.
    pub too_few: u32,
    /// Left to other shards.
    pub elsewhere: u32,
}

/// One conversation.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// The user's own part, then those of its sub-agents of all depths, in document order.
    pub parts: Vec<Part>,
    /// The conversation's records.
    pub records: Range<u32>,
    /// How many requests it has, those of sub-agents among them.
    pub requests: u32,
    /// Most players that a user of it can be at a time: itself and its sub-agents.
    pub width: u32,
    /// Whether it may be played.
    pub in_pool: bool,
    /// Whether it may be, but by another shard's users.
    pub elsewhere: bool,
    /// Where [`Turn::bases`] points into.
    pub bases: Vec<Shared>,
}

/// One thread of control: a user's own, or a sub-agent's.
#[derive(Clone, Debug)]
pub struct Part {
    /// The part that starts it; `None` for the user's own.
    pub parent: Option<u16>,
    /// The `k` of its name `-SAk`: its number among its parent's sub-agents that ask for something;
    /// 0 for the user's own.
    pub number: u32,
    /// What it does, one cue for each entry of the file's list, in order.
    pub cues: Vec<Cue>,
    /// The session of its requests in the trace, and of its templates in the plan.
    pub session: SessionIndex,
    /// How many of the cues are requests.
    pub requests: u32,
}

/// One step of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cue {
    /// It asks.
    Request(Turn),
    /// It starts a sub-agent.
    Agent {
        /// The sub-agent's part.
        part: u16,
        /// Whether nobody waits for its end.
        detached: bool,
    },
    /// A sub-agent that asks for nothing: passed over.
    Nothing,
}

/// One request of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Its record in the trace, which is its template in the plan.
    pub record: u32,
    /// How long it waits for the request before it in its part.
    pub wait: Wait,
    /// Whether it has more input tokens than `--max-context`: its player ends instead.
    pub too_long: bool,
    /// Tokens of its prompt.
    pub input_tokens: u32,
    /// Tokens of its answer as recorded, at least 1.
    pub output_tokens: u32,
    /// The earlier record of the conversation with which it shares most leading blocks, the latest
    /// of several; `None` when it shares none.
    pub base: Option<Base>,
    /// Leading tokens that it shares, by block ids, with the request before it in its part.
    pub with_previous: u32,
    /// Tokens of blocks that the request before it in its part has in any place: the set figure.
    pub overlap: u32,
    /// Whether it has block ids: its prompt then starts with the tokens all users share.
    pub has_blocks: bool,
    /// The place in [`Script::bases`] of what it shares with earlier records, and how many: each
    /// shares less than the one before and is later in the trace. The first is [`Self::base`];
    /// where that is of another part, the second may be that part's first that shares as much.
    pub bases: (u32, u32),
}

/// What a prompt goes on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Base {
    /// The earlier record.
    pub record: u32,
    /// How many tokens of that record's prompt this one starts with.
    pub keep: u32,
    /// Whether that is its whole prompt.
    pub whole: bool,
}

/// Blocks in common with an earlier record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shared {
    /// The record.
    pub record: u32,
    /// Tokens of the leading blocks in common.
    pub tokens: u32,
}

/// How long a request waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// What the time counts from.
    pub from: From,
    /// Nanoseconds, 0 or more.
    pub ns: i64,
}

/// What a wait counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// The end of the request before it in its part.
    End,
    /// The start of the request before it in its part; it does not leave before that one's end.
    Start,
}

impl Default for ScriptOptions {
    fn default() -> Self {
        Self {
            strategy: Strategy::ThinkOnly,
            max_delay_ns: 60 * NANOS_PER_SECOND,
            time_scale: Ratio::ONE,
            api_time_scale: Ratio::ONE,
            clamp_think: true,
            detach_async: false,
            max_context: 128_000,
            min_requests: 1,
            warm_prefix_share: 0.5,
        }
    }
}

/// Makes an agentic trace's conversations into scripts.
///
/// # Errors
/// When the trace has no conversations, or none that may be played: how many are left out for what.
pub fn scripts(trace: &Trace, options: &ScriptOptions) -> Result<Scripts, PlanError> {
    let found = all(trace, options)?;
    if found.pool.kept == 0 {
        let words = found.pool.words().join(", ");
        return Err(PlanError::Nothing(format!("no conversation may be played: {words}")));
    }
    Ok(found)
}

impl PoolFacts {
    /// Why conversations are not played and how many, in words.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        [
            (self.empty, ["has", "have"], "no request"),
            (self.too_long, ["starts", "start"], "with more input tokens than --max-context"),
            (self.too_few, ["has", "have"], "fewer requests than --min-requests"),
            (self.elsewhere, ["is", "are"], "left to other shards"),
        ]
        .into_iter()
        .filter(|(count, _, _)| *count > 0)
        .map(|(count, [one, more], why)| {
            let count = u64::from(count);
            let verb = agreeing(count, one, more);
            format!("{} {verb} {why}", counted(count, "conversation"))
        })
        .collect()
    }
}

impl Cue {
    /// The request, if it is one.
    #[must_use]
    pub fn turn(&self) -> Option<&Turn> {
        match self {
            Self::Request(turn) => Some(turn),
            Self::Agent { .. } | Self::Nothing => None,
        }
    }
}

impl Script {
    /// What a request of it shares with earlier records.
    ///
    /// # Panics
    /// When the turn is of another script.
    #[must_use]
    pub fn shared_of(&self, turn: &Turn) -> &[Shared] {
        let (first, count) = turn.bases;
        &self.bases[first as usize..][..count as usize]
    }
}

#[cfg(test)]
mod tests;
