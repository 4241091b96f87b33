//! A run that is open: its columns, where they came from, and the orders every picture needs.
//!
//! Made once on the loading thread and never changed. What one picture needs and no other is worked
//! out when it is first asked for, on a background thread.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use onbeat_shared::{
    metrics::{self, Report, ReportOptions},
    run::Run,
    units::RunNanos,
};

use crate::remarks::{self, Incomplete};
use crate::state::TimeRange;

/// An open run.
#[derive(Debug)]
pub struct OpenedRun {
    /// The file.
    pub path: PathBuf,
    /// Its size when it was read.
    pub file_bytes: u64,
    /// The run.
    pub run: Run,
    /// The numbers of the whole run.
    pub report: Report,
    /// Whether and how the log falls short of a whole run.
    pub incomplete: Option<Incomplete>,
    /// Requests that left, by when they left.
    by_sent: Vec<u32>,
    whole: TimeRange,
    flight: OnceLock<Arc<[(RunNanos, f64)]>>,
}

impl OpenedRun {
    /// Prepares a run for looking at.
    #[must_use]
    pub fn new(path: PathBuf, file_bytes: u64, run: Run) -> Self {
        let requests = u32::try_from(run.requests.len()).unwrap_or(u32::MAX);
        let mut by_sent: Vec<u32> =
            (0..requests).filter(|&i| run.requests.was_sent(i as usize)).collect();
        by_sent.sort_by_key(|&i| run.requests.sent(i as usize));
        let whole = extent(&run);
        let report = metrics::report(&run, &ReportOptions::default());
        let incomplete = remarks::incomplete(&run);
        let flight = OnceLock::new();
        Self { path, file_bytes, run, report, incomplete, by_sent, whole, flight }
    }

    /// The file's name, to be shown.
    #[must_use]
    pub fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        name.to_string_lossy().into_owned()
    }

    /// From the schedule's zero (or the first sending before it) to the last thing that happened.
    #[must_use]
    pub const fn whole(&self) -> TimeRange {
        self.whole
    }

    /// Requests that left within a stretch, by when they left.
    #[must_use]
    pub fn sent_in(&self, range: TimeRange) -> &[u32] {
        let sent = |&i: &u32| self.run.requests.sent(i as usize);
        let from = self.by_sent.partition_point(|i| sent(i) < Some(range.start));
        let to = self.by_sent.partition_point(|i| sent(i) < Some(range.end));
        &self.by_sent[from..to.max(from)]
    }

    /// Requests that left, by when they left.
    #[must_use]
    pub fn by_sent(&self) -> &[u32] {
        &self.by_sent
    }

    /// How many requests were in flight from each instant on. Starts with nothing in flight; a
    /// request without an end stays in flight until the log ends.
    #[must_use]
    pub fn flight(&self) -> &Arc<[(RunNanos, f64)]> {
        self.flight.get_or_init(|| flight(&self.run, &self.by_sent, self.whole))
    }
}

fn extent(run: &Run) -> TimeRange {
    let requests = &run.requests;
    let mut start = 0;
    let mut end = i64::MIN;
    for i in 0..requests.len() {
        let times =
            [requests.sent(i), requests.first_byte(i), requests.last_token(i), requests.done(i)];
        for time in times.into_iter().flatten() {
            start = start.min(time.0);
            end = end.max(time.0);
        }
    }
    if end == i64::MIN {
        // Nothing left: show what was planned.
        end =
            (0..requests.len()).filter_map(|i| requests.due(i)).map(|due| due.0).max().unwrap_or(0);
    }
    TimeRange::between(RunNanos(start), RunNanos(end.max(start)))
}

fn flight(run: &Run, by_sent: &[u32], whole: TimeRange) -> Arc<[(RunNanos, f64)]> {
    let mut changes: Vec<(RunNanos, i8)> = Vec::with_capacity(2 * by_sent.len());
    for &i in by_sent {
        let i = i as usize;
        if let Some(sent) = run.requests.sent(i) {
            changes.push((sent, 1));
            if let Some(done) = run.requests.done(i) {
                changes.push((done.max(sent), -1));
            }
        }
    }
    // At one instant an end comes before a start, so that nothing is counted twice.
    changes.sort_unstable();
    let mut steps = Vec::with_capacity(changes.len() + 1);
    steps.push((whole.start, 0.0));
    let mut now = 0.0;
    for (time, change) in changes {
        now += f64::from(change);
        match steps.last_mut() {
            Some(last) if last.0 == time => last.1 = now,
            _ => steps.push((time, now)),
        }
    }
    steps.into()
}
