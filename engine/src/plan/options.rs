//! The schedule's options as meant: exact numbers, one value for each thing that can be chosen.
//!
//! Built by `cli/flags/timing.rs` from what was typed; nothing downstream sees a flag again.

use onbeat_shared::trace::decimal::Ratio;

use crate::plan::PlanMode;
use crate::plan::arrivals::Arrivals;
use crate::plan::cancel::Cancelling;
use crate::plan::sample::Share;
use crate::plan::synthesis::Synthesis;

/// How a trace becomes a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanOptions {
    /// Time runs this many times faster than recorded.
    pub speedup: Ratio,
    /// Rows before this instant of the trace's clock (ns) are left out; it is the schedule's zero.
    pub start_offset_ns: Option<i64>,
    /// Rows after this instant of the trace's clock (ns) are left out.
    pub end_offset_ns: Option<i64>,
    /// No two neighbouring requests are further apart than this (ns, after the speed-up).
    pub idle_gap_cap_ns: Option<i64>,
    /// Only this share of the sessions.
    pub sample: Option<Share>,
    /// Rows with more input tokens are left out.
    pub max_input_tokens: Option<u32>,
    /// No request asks for more output tokens.
    pub max_output_tokens: Option<u32>,
    /// Whether requests with recorded prompts ask for no fewer output tokens than recorded.
    pub force_min_tokens: bool,
    /// In the closed loop, no turn waits longer than this (ns) after the one before it.
    pub think_cap_ns: Option<i64>,
    /// Only requests due before this instant of the schedule (ns) are planned.
    pub duration_ns: Option<i64>,
    /// Only so many requests, in send order.
    pub request_count: Option<u64>,
    /// Sessions start at this rate instead of at their own times.
    pub arrivals: Option<Arrivals>,
    /// Whether times that the trace has are not wanted.
    pub ignore_times: bool,
    /// How lengths and sharing are changed first; see [`crate::plan::synthesise`].
    pub synthesis: Synthesis,
    /// How many copies of the trace are laid over each other.
    pub copies: u32,
    /// Requests to cancel by chance.
    pub cancelling: Option<Cancelling>,
    /// Whether rows whose client gave up are cancelled as recorded.
    pub replay_cancellations: bool,
    /// How many of the first requests are sent once before the run.
    pub warm_up: u32,
    /// What everything random depends on.
    pub seed: u64,
    /// The rule of the schedule.
    pub mode: PlanMode,
    /// How many cores share the sessions.
    pub cores: u16,
    /// How many servers share the sessions, in turn.
    pub targets: u16,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            speedup: Ratio::ONE,
            start_offset_ns: None,
            end_offset_ns: None,
            idle_gap_cap_ns: None,
            sample: None,
            max_input_tokens: None,
            max_output_tokens: None,
            force_min_tokens: true,
            think_cap_ns: None,
            duration_ns: None,
            request_count: None,
            arrivals: None,
            ignore_times: false,
            synthesis: Synthesis::NONE,
            copies: 1,
            cancelling: None,
            replay_cancellations: false,
            warm_up: 0,
            seed: 0,
            mode: PlanMode::OpenLoop,
            cores: 1,
            targets: 1,
        }
    }
}

impl PlanOptions {
    /// How many times faster than recorded timestamps run: one of the two speed-ups is 1.
    #[must_use]
    pub fn clock(&self) -> Ratio {
        if self.synthesis.speedup == Ratio::ONE { self.speedup } else { self.synthesis.speedup }
    }
}
