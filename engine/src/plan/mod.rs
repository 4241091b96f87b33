//! What will be sent, when, by which core and after what: the trace made into a schedule.
//!
//! A [`Plan`] is computed once, before anything is sent, and never changes; the same trace and
//! options give the same plan on every machine, and the number of cores changes nothing in it but
//! the `core` column. It does not know what the bytes of a request are (see [`crate::render`]) and
//! makes no decision at run time (see [`crate::policy`]).

mod arrivals;
mod cancel;
mod cores;
mod curve;
mod depend;
pub mod error;
mod ideal;
pub mod options;
mod prefixes;
mod recorded;
mod sample;
mod schedule;
pub mod script;
pub mod shard;
mod steps;
pub mod stretches;
mod synthesis;
mod templates;
mod tile;
pub(crate) mod twister;
mod warm_up;

use std::fmt;

use onbeat_shared::counted::agreeing;
use onbeat_shared::log::plan_row::PlanRow;
use onbeat_shared::log::recorded_row::RecordedRow;
use onbeat_shared::trace::Trace;
use onbeat_shared::units::{CoreIndex, RequestIndex, RunNanos};
use serde::{Deserialize, Serialize};

pub use crate::plan::arrivals::{Arrivals, Pattern};
pub use crate::plan::cancel::Cancelling;
pub use crate::plan::curve::cache_curve;
pub use crate::plan::error::PlanError;
pub use crate::plan::options::PlanOptions;
pub use crate::plan::prefixes::prefixes;
pub use crate::plan::sample::Share;
pub use crate::plan::script::{ScriptOptions, Scripts, scripts};
pub use crate::plan::shard::{Part, Shard};
pub use crate::plan::steps::{Step, Steps, steps};
pub use crate::plan::synthesis::{Factor, Synthesis, synthesise};
pub use crate::plan::templates::templates;
pub use crate::plan::tile::id_of_copy;
pub use crate::plan::twister::stable_seed;

/// Which rule decides when a request may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlanMode {
    /// A request leaves when it is due, but not before the previous turn of its session has ended.
    OpenLoop,
    /// Every request leaves when it is due.
    OpenLoopStrict,
    /// A session's first request leaves when it is due, each other one a think time after the end
    /// of the one before it.
    ClosedLoop,
    /// Nothing is scheduled: rows are templates, and users decide during the run which are sent,
    /// how often and when.
    Users,
}

/// The schedule of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The requests in send order: a row's place is its request index.
    pub rows: Vec<PlanRow>,
    /// For each request, the place of its record in the trace.
    pub record_of: Vec<u32>,
    /// For each request, the copy of the trace it belongs to; empty when there is only one.
    pub copy_of: Vec<u32>,
    /// How many copies of the trace are laid over each other, at least 1.
    pub copies: u32,
    /// For each request that is to be cancelled, how long (ns) after it has left whole; empty when
    /// none is.
    pub cancel_after: Vec<Option<i64>>,
    /// What the trace recorded of the answers, for requests of which it recorded something.
    pub recorded: Vec<RecordedRow>,
    /// The names of the sessions, in order of their first request; rows hold indices into it.
    pub sessions: Vec<String>,
    /// The rule of the schedule.
    pub mode: PlanMode,
    /// Rows of the trace that are not planned, by reason.
    pub left_out: LeftOut,
    /// What its reader should know before it is sent.
    pub warnings: Vec<String>,
    /// Which part of a whole plan this is; `None`: it is the whole.
    pub part: Option<Part>,
}

/// Rows of the trace that the options leave out, each counted once for every copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Of sessions that `--trace-session-sample-ratio` does not keep.
    pub not_sampled: u64,
    /// Before `--fixed-schedule-start-offset`.
    pub before_start: u64,
    /// After `--fixed-schedule-end-offset`.
    pub after_end: u64,
    /// With more input tokens than `--max-isl`.
    pub too_long: u64,
    /// Due at or after `--benchmark-duration`.
    pub beyond_duration: u64,
    /// Beyond the first `--request-count`.
    pub beyond_count: u64,
}

impl LeftOut {
    /// Why rows are left out and how many, in words; nothing for what no row is left out for.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        [
            (self.not_sampled, ["is", "are"], "of sessions that are not sampled"),
            (self.before_start, ["lies", "lie"], "before --fixed-schedule-start-offset"),
            (self.after_end, ["lies", "lie"], "after --fixed-schedule-end-offset"),
            (self.too_long, ["has", "have"], "more input tokens than --max-isl"),
            (self.beyond_duration, ["is", "are"], "due after --benchmark-duration"),
            (self.beyond_count, ["is", "are"], "beyond --request-count"),
        ]
        .into_iter()
        .filter(|(rows, _, _)| *rows > 0)
        .map(|(rows, [one, more], why)| format!("{rows} {} {why}", agreeing(rows, one, more)))
        .collect()
    }
}

/// Makes a trace into a schedule.
///
/// The order of operations is part of what the options mean: sampling → window and input lengths →
/// zero → speed-up → arrivals → copies → idle-gap cap → order of sending → duration → request count
/// → sessions, edges and cores → output lengths; [`synthesise`] comes before all of it, and changes
/// the rows that the first two steps keep. The zero is the start offset when there is one, else
/// the first row that is kept; a due time is the exact quotient of its distance from zero and the
/// speed-up, rounded half to even to a nanosecond.
///
/// A row's `body_bytes` is not known before it is rendered; `render` fills it in.
///
/// # Errors
/// When nothing is left to send, or a due time or the number of requests cannot be represented.
pub fn build(trace: &Trace, options: &PlanOptions) -> Result<Plan, PlanError> {
    let mut schedule = schedule::of(trace, options)?;
    let cancel_after = cancel::after(trace, &schedule.sends, options, &mut schedule.warnings);
    let hits = ideal::hits(trace, &schedule.sends);
    let chains = depend::chains(trace, &schedule.sends, options);
    let mut rows = Vec::with_capacity(schedule.sends.len());
    for (request, send) in (0_u32..).zip(&schedule.sends) {
        let record = &trace.records[send.record as usize];
        let link = chains.links[request as usize];
        let hits = hits.as_ref().map(|hits| hits[request as usize]);
        let limit = options.max_output_tokens.unwrap_or(u32::MAX);
        let max_tokens = record.output_tokens.map(|tokens| tokens.min(limit));
        let forced = options.force_min_tokens && trace.recorded.prompts;
        rows.push(PlanRow {
            request: RequestIndex(request),
            session: link.session,
            turn: link.turn,
            core: CoreIndex(0),
            target: target(link.session.0, options.targets),
            row: record.row,
            due: link.think_ns.is_none().then_some(RunNanos(send.due_ns)),
            after: link.after,
            source: trace.recorded.file_of(send.record),
            think_ns: link.think_ns,
            input_tokens: Some(record.input_tokens)
                .filter(|_| trace.recorded.is_length_known(send.record)),
            max_tokens,
            min_tokens: max_tokens.filter(|_| forced),
            ideal_cached_tokens: hits.map(|hits| hits.prefix),
            ideal_set_tokens: hits.map(|hits| hits.set),
            blocks: record.block_count,
            body_bytes: None,
        });
    }
    let mut plan = Plan {
        rows,
        record_of: schedule.sends.iter().map(|send| send.record).collect(),
        cancel_after,
        recorded: recorded::rows(trace, &schedule.sends),
        sessions: chains.names,
        mode: options.mode,
        copy_of: match options.copies {
            0 | 1 => Vec::new(),
            _ => schedule.sends.iter().map(|send| send.copy).collect(),
        },
        copies: options.copies.max(1),
        left_out: schedule.left_out,
        warnings: schedule.warnings,
        part: None,
    };
    plan.deal(trace, options.cores);
    Ok(plan)
}

impl Plan {
    /// How long after it has left whole a request is cancelled; `None` when it is not to be.
    #[must_use]
    pub fn cancel_after(&self, request: RequestIndex) -> Option<i64> {
        self.cancel_after.get(request.as_usize()).copied().flatten()
    }

    /// The copy of the trace that a request belongs to, from zero.
    ///
    /// # Panics
    /// When the plan has no such request.
    #[must_use]
    pub fn copy(&self, request: RequestIndex) -> u32 {
        if self.copies == 1 { 0 } else { self.copy_of[request.as_usize()] }
    }
}

impl LeftOut {
    /// Counts every row once for each copy.
    fn multiply(&mut self, copies: u32) {
        for rows in
            [&mut self.not_sampled, &mut self.before_start, &mut self.after_end, &mut self.too_long]
        {
            *rows *= u64::from(copies);
        }
    }
}

/// Sessions take the servers in turn, and stay with theirs.
fn target(session: u32, targets: u16) -> u16 {
    u16::try_from(session % u32::from(targets.max(1))).expect("below the number of targets")
}

impl fmt::Display for PlanMode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::OpenLoop => "open-loop",
            Self::OpenLoopStrict => "open-loop-strict",
            Self::ClosedLoop => "closed-loop",
            Self::Users => "users",
        })
    }
}

#[cfg(test)]
mod tests;
