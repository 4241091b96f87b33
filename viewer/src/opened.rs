//! A run that is open: its columns, where they came from, and the orders every picture needs.
//!
//! Made on the loading thread and never changed; later states of a log that is still being read or
//! written are further ones. What one picture needs and no other is worked out when it is first
//! asked for, on a background thread; so are the numbers of a large run.

use std::{path::PathBuf, sync::OnceLock};

use onbeat_shared::{
    metrics::{self, Report, ReportOptions, latency},
    run::Run,
    units::RunNanos,
};

use crate::remarks::{self, Incomplete};
use crate::selection::Selections;
use crate::series::number::Numbers;
use crate::series::slo::store::Store;
use crate::series::throughput::load::Loads;
use crate::series::{timeline, users};
use crate::state::TimeRange;

/// How much of its log a run is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stand {
    /// All of it.
    #[default]
    Complete,
    /// The part that has been read so far, in thousandths of the file.
    Part(u16),
    /// All that has been written so far, and more is to come.
    Growing,
}

/// Runs with more requests or content events have their numbers worked out when they are asked for.
const QUICK_REQUESTS: usize = 20_000;
const QUICK_EVENTS: usize = 1_000_000;
/// The longest latency over the median from which a tail is long.
const LONG_TAIL: f64 = 12.0;
/// Requests that are looked at for it.
const TAIL_SAMPLE: usize = 10_000;

/// An open run.
#[derive(Debug)]
pub struct OpenedRun {
    /// The file.
    pub path: PathBuf,
    /// Its size when it was read.
    pub file_bytes: u64,
    /// The run.
    pub run: Run,
    /// How much of the log it is made of.
    pub stand: Stand,
    /// Whether and how the log falls short of a whole run, once no more of it is to come.
    pub incomplete: Option<Incomplete>,
    /// Whether some first tokens took so much longer than the median that even steps would press
    /// all others to the ground.
    pub long_tail: bool,
    report: OnceLock<Box<Report>>,
    /// Requests that left, by when they left.
    by_sent: Vec<u32>,
    whole: TimeRange,
    pub(crate) loads: Loads,
    pub(crate) selections: Selections,
    pub(crate) numbers: Numbers,
    /// What the timeline needs of it.
    pub(crate) timeline: timeline::Cache,
    /// What pictures of its users need.
    pub(crate) people: users::Cache,
    /// What goals need of it.
    pub(crate) scores: Store,
}

impl OpenedRun {
    /// Prepares a run for looking at.
    #[must_use]
    pub fn new(path: PathBuf, file_bytes: u64, run: Run) -> Self {
        Self::standing(path, file_bytes, run, Stand::Complete)
    }

    /// Prepares a run that may be a part.
    #[must_use]
    pub fn standing(path: PathBuf, file_bytes: u64, run: Run, stand: Stand) -> Self {
        let sent = (0_u32..).zip((0..run.requests.len()).map(|i| run.requests.sent(i)));
        let mut by_sent: Vec<(RunNanos, u32)> =
            sent.filter_map(|(i, sent)| Some((sent?, i))).collect();
        by_sent.sort_unstable();
        let by_sent = by_sent.into_iter().map(|(_, i)| i).collect();
        let incomplete = match stand {
            Stand::Complete => remarks::incomplete(&run),
            Stand::Part(_) | Stand::Growing => None,
        };
        let opened = Self {
            whole: extent(&run),
            long_tail: has_long_tail(&run),
            path,
            file_bytes,
            stand,
            run,
            incomplete,
            by_sent,
            report: OnceLock::new(),
            loads: Loads::default(),
            selections: Selections::default(),
            numbers: Numbers::default(),
            scores: Store::default(),
            timeline: timeline::Cache::default(),
            people: users::Cache::default(),
        };
        let (requests, events) = (opened.run.requests.len(), opened.run.chunks.len());
        if requests <= QUICK_REQUESTS && events <= QUICK_EVENTS {
            opened.report();
        }
        opened
    }

    /// The numbers of the whole run. Takes seconds the first time if the run is large, so drawing
    /// code asks [`Self::known_report`].
    pub fn report(&self) -> &Report {
        let work_out = || Box::new(metrics::report(&self.run, &ReportOptions::default()));
        self.report.get_or_init(work_out)
    }

    /// The numbers of the whole run, if they have been worked out.
    #[must_use]
    pub fn known_report(&self) -> Option<&Report> {
        self.report.get().map(|report| &**report)
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
}

/// Looks at some of the requests, evenly spread.
fn has_long_tail(run: &Run) -> bool {
    let requests = run.requests.len();
    let step = requests.div_ceil(TAIL_SAMPLE).max(1);
    let ok = (0..requests).step_by(step).filter(|&i| run.requests.is_ok(i));
    let mut waits: Vec<i64> = ok.filter_map(|i| latency::ttft_ns(run, i)).collect();
    waits.sort_unstable();
    match (waits.get(waits.len() / 2), waits.last()) {
        (Some(&median), Some(&longest)) => longest as f64 > LONG_TAIL * median as f64,
        _ => false,
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
