//! A user-driven run as the files of kv-cache-tester's Trace Replay Tester.
//!
//! `summary_trace_replay.csv` (a row per assessment period), `detailed_results.csv` (a row per
//! request), `user_lifecycle.csv`, `test_metadata.json` and `progress.json`, with the tool's
//! columns in its order and its formats, so that what reads its files reads these; columns of ours
//! follow the tool's. All is taken from the run, so a run that was interrupted, or killed, has its
//! files too. The page with graphs is [`super::html`]'s.
//!
//! Where the tool is wrong, these files are not like its own:
//!
//! * *Periods hold everything.* Each request and token is in exactly one row, whenever the request
//!   ended, and the last partial period has a row: sums over rows are the run's. The tool's rows
//!   miss what spans a boundary and what comes after the last one.
//! * *No data is an empty field*, never 0 or 100: times of a period without requests, the first
//!   token of an answer that came in one piece or of a failure.
//! * `users_completed` counts, `users_added` is of the period's own end, and `service_rate` is of
//!   all users that were there, so that it is never above 100.
//! * `error_message` says what went wrong; requests that the run's end cut off have rows, and
//!   sub-agents a start.
//! * `queue_time` is what admission held back. What a user waited for its sub-agents is
//!   `subagent_wait_s`, what the sender itself lost `lateness_s`; the tool adds all three.
//! * `delay_expected` is the wait that the timing options asked for, not the bare recorded gap.
//! * `output_tokens_expected` is what was asked for: 1 where an answer of 0 tokens is recorded.
//! * `output_tokens_actual` is the server's count where it reports one; token counts per chunk and
//!   sums over periods come from content events. `request_type` is how it was sent.
//! * `cache_hit_blocks` and `avg_cache_hit_rate` are the tool's figure, the overlap of sets of
//!   blocks; the longest common prefix is `ideal_cached_tokens` and `ideal_hit_rate`, and what the
//!   server says `cached_tokens` and `reported_hit_rate`. An advanced user's first request hits
//!   nothing of what it did not send; the tool counts that as hit.
//! * `ttlt` ends with the last token; of a failure it is not known.
//! * `delay_actual` equals `queue_time`, as there.

mod cells;
mod lifecycle;
mod metadata;
mod periods;
mod progress;
mod requests;

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use cells::{Cell, Epoch};
pub use progress::{Difference, Equal, PROGRESS_VERSION, Progress, Rest, Unfinished};
use serde::Serialize;

use crate::metrics::periods::Period;
use crate::run::{Run, Users};

/// One of the tool's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A row per assessment period.
    Periods,
    /// A row per request.
    Requests,
    /// A row per event of a user's life.
    Lifecycle,
    /// What was asked for, and of which trace.
    Metadata,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Periods, Self::Requests, Self::Lifecycle, Self::Metadata];

    /// Its file's name.
    #[must_use]
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::Periods => "summary_trace_replay.csv",
            Self::Requests => "detailed_results.csv",
            Self::Lifecycle => "user_lifecycle.csv",
            Self::Metadata => "test_metadata.json",
        }
    }

    /// Whether it is a table, to which a run that goes on adds its rows.
    #[must_use]
    pub const fn is_table(self) -> bool {
        !matches!(self, Self::Metadata)
    }

    /// The table's first line, without its end; `None` for what is no table.
    #[must_use]
    pub fn head(self) -> Option<String> {
        self.heads().map(|heads| heads.join(","))
    }

    fn heads(self) -> Option<Vec<&'static str>> {
        match self {
            Self::Periods => Some(periods::heads().collect()),
            Self::Requests => Some(requests::heads().collect()),
            Self::Lifecycle => Some(lifecycle::HEADS.to_vec()),
            Self::Metadata => None,
        }
    }
}

/// The name of the file that a later run can go on from.
pub const PROGRESS_FILE: &str = "progress.json";

/// A user-driven run, ready to be written as the tool's files.
#[derive(Clone, Copy, Debug)]
pub struct Export<'a> {
    run: &'a Run,
    users: &'a Users,
    periods: &'a [Period],
}

impl<'a> Export<'a> {
    /// Of a run and its assessment periods; `None` if the run has no users: the tool has no files
    /// for it.
    #[must_use]
    pub fn new(run: &'a Run, periods: &'a [Period]) -> Option<Self> {
        Some(Self { run, users: run.users.as_ref()?, periods })
    }

    /// The files there are to write: as with the tool, a table without rows is none.
    #[must_use]
    pub fn parts(&self) -> Vec<Part> {
        let has_rows = |part: &Part| match part {
            Part::Periods => !self.periods.is_empty(),
            Part::Requests => (0..self.run.requests.len()).any(|i| self.run.requests.was_sent(i)),
            Part::Lifecycle => self.users.users.iter().any(|user| user.started.is_some()),
            Part::Metadata => true,
        };
        Part::ALL.into_iter().filter(has_rows).collect()
    }

    /// Writes one of them whole.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write(&self, part: Part, out: &mut dyn Write) -> io::Result<()> {
        self.write_rows(part, true, 0, out)
    }

    /// Writes a table's rows without its first line, behind those of the run it went on from, whose
    /// table has `periods_before` periods. What is no table is written whole.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write_after(
        &self,
        part: Part,
        periods_before: u32,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        self.write_rows(part, false, periods_before, out)
    }

    fn write_rows(
        &self,
        part: Part,
        is_first: bool,
        periods_before: u32,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let heads = part.heads().filter(|_| is_first);
        let epoch = Epoch(self.run.started_unix_ns());
        let facts = self.run.manifest.users.as_deref();
        let mut table = |rows: &mut dyn Iterator<Item = Vec<Cell>>| {
            cells::write_table(heads.as_deref(), rows, out)
        };
        match part {
            Part::Periods => table(&mut periods::rows(self.periods, facts, epoch, periods_before)),
            Part::Requests => table(&mut requests::rows(self.run, self.users)),
            Part::Lifecycle => table(&mut lifecycle::rows(self.run, self.users).into_iter()),
            Part::Metadata => write_json(&metadata::document(self.run), out),
        }
    }

    /// What a later run can go on from; `state` is where users and pool were at the end, `earlier`
    /// the document of the run that this one went on from.
    #[must_use]
    pub fn progress<S>(&self, state: Option<S>, earlier: Option<&Progress<S>>) -> Progress<S> {
        Progress::new(self.run, self.periods.len(), state, earlier)
    }
}

/// Writes a document as the tool does: two spaces a step, and no line's end behind it.
///
/// # Errors
/// If writing fails.
pub fn write_json(document: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    let mut out = io::BufWriter::with_capacity(1 << 16, out);
    serde_json::to_writer_pretty(&mut out, document)?;
    out.flush()
}
