//! Which ready request may leave: limits that hold over all cores at once, of atomics alone.
//!
//! Layer 1 bounds how many requests are under way (in prefill, in decode, in all); then the gate
//! that the ramp closes while first tokens are late; layer 2 are budgets of tokens a minute. A
//! request is let through by all of them or by none. Nothing here waits, allocates or knows who
//! asks: whoever is blocked backs off on its own (see [`super::players`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64};

use onbeat_shared::units::{RunNanos, SessionIndex};

/// How much may be under way and be spent; 0 is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Requests under way.
    pub concurrent: u32,
    /// Requests under way that wait for their first token.
    pub prefill: u32,
    /// Requests under way that had their first token.
    pub decode: u32,
    /// Fresh input tokens a minute.
    pub input_per_minute: u64,
    /// Output tokens a minute.
    pub output_per_minute: u64,
}

/// What a request takes, and who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Input tokens that no cache has.
    pub fresh_input: u32,
    /// Output tokens it asks for.
    pub output: u32,
    /// The player's session: only to know it again when it comes back.
    pub session: SessionIndex,
    /// Since when it is ready.
    pub due: RunNanos,
}

/// A request that may not leave now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// What blocks it.
    pub why: Why,
    /// When its budget will do: set for a request that waited so long that the budget is kept for
    /// it, which comes back at this time instead of backing off.
    pub turn_at: Option<RunNanos>,
}

/// What blocks a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Too many wait for their first token.
    Prefill,
    /// Too many had their first token.
    Decode,
    /// Too many are under way.
    Concurrency,
    /// First tokens are late.
    Ttft,
    /// The budget of input tokens.
    InputTokens,
    /// The budget of output tokens.
    OutputTokens,
}

/// The limits of a run and what counts against them, shared by all cores.
#[derive(Debug)]
#[expect(dead_code, reason = "the counters are read by what follows in this file's next step")]
pub struct Gates {
    next_request: AtomicU32,
    next_session: Arc<AtomicU32>,
    /// Requests under way in the upper half, those of them that decode in the lower.
    under_way: AtomicU64,
    input: Bucket,
    output: Bucket,
    /// Who has the turn at the budgets, and until when.
    turn: AtomicU64,
    ttft_closed: AtomicBool,
    /// Requests dearer than a whole budget that left when it was full.
    dearer: AtomicU64,
    limits: Limits,
}

/// A budget of tokens a minute: full at first, and full again a minute after it was empty.
#[derive(Debug)]
#[expect(dead_code, reason = "read by what follows in this file's next step")]
struct Bucket {
    per_minute: u64,
    /// When it will be full again (ns): it holds what flows in until then less than its capacity.
    full_at: AtomicI64,
}
