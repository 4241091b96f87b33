//! What will be sent, when, by which core and after what: the trace made into a schedule.
//!
//! A [`Plan`] is computed once, before anything is sent, and never changes; the same trace and
//! options give the same plan on every machine, and the number of cores changes nothing in it but
//! the `core` column. It does not know what the bytes of a request are (see [`crate::render`]) and
//! makes no decision at run time (see [`crate::policy`]).

pub mod error;
pub mod options;

use std::fmt;

use onbeat_shared::log::plan_row::PlanRow;
use serde::{Deserialize, Serialize};

pub use crate::plan::error::PlanError;
pub use crate::plan::options::PlanOptions;

/// Which rule decides when a request may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlanMode {
    /// A request leaves when it is due, but not before the previous turn of its session has ended.
    OpenLoop,
    /// Every request leaves when it is due.
    OpenLoopStrict,
}

/// The schedule of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The requests in send order: a row's place is its request index.
    pub rows: Vec<PlanRow>,
    /// For each request, the place of its record in the trace.
    pub record_of: Vec<u32>,
    /// The names of the sessions, in order of their first request; rows hold indices into it.
    pub sessions: Vec<String>,
    /// The rule of the schedule.
    pub mode: PlanMode,
    /// Rows of the trace that are not planned, by reason.
    pub left_out: LeftOut,
    /// What its reader should know before it is sent.
    pub warnings: Vec<String>,
}

/// Rows of the trace that the options leave out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Before `--fixed-schedule-start-offset`.
    pub before_start: u64,
    /// After `--fixed-schedule-end-offset`.
    pub after_end: u64,
    /// Due at or after `--benchmark-duration`.
    pub beyond_duration: u64,
    /// Beyond the first `--request-count`.
    pub beyond_count: u64,
}

impl fmt::Display for PlanMode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::OpenLoop => "open-loop",
            Self::OpenLoopStrict => "open-loop-strict",
        })
    }
}
