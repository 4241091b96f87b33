//! One run, finished or not, as columns: the only thing metrics, exports and the viewer read.
//!
//! [`Run::read`] joins a log's records to its plan; a [`Reader`] does it while the bytes arrive. A
//! run is made once and never changes: of a log that grows, later states are further runs, which
//! share what has not changed. It holds what the log says and nothing derived; every number that
//! needs a formula is in [`crate::metrics`]. Whatever the log lacks is `None` here, and what is
//! wrong with it is said in [`Run::warnings`], in words.
//!
//! Requests are numbered as in the plan (send order). Times are nanoseconds from the schedule's
//! zero. Reading goes through the file once and needs about 300 bytes per request, its row of the
//! plan included, and 16 per content event.

mod cast;
pub mod chunks;
pub mod events;
mod faults;
mod grouping;
mod join;
mod preamble;
pub mod prefixes;
#[cfg(test)]
mod properties;
pub mod reader;
pub mod requests;
pub mod scraped;
mod strangers;
pub mod users;

pub use chunks::{Chunk, ChunkRow, Chunks};
pub use events::{Anchor, Connect, Loss, Stall, Stalls};
#[cfg(test)]
pub(crate) use join::request_of;
pub use prefixes::{Path, Prefixes};
pub use reader::{Reader, Tail};
pub use requests::{End, Requests};
pub use scraped::Servers;
pub use users::{Left, Limit, User, Users};

use std::sync::Arc;

use crate::log::prefix_rows::SHARED_BY_ALL;
use crate::log::{Footer, LogError, Manifest, PlanRow, RecordedRow};
use crate::units::RequestIndex;

/// Bytes that are read between two words about progress. Few in tests, so that small logs have many
/// seams.
const WINDOW_BYTES: usize = if cfg!(test) { 5_000 } else { 4 << 20 };

/// How far a log goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It was closed after the whole plan.
    Finished,
    /// It was closed after the user stopped the run.
    Interrupted,
    /// It has no footer: the run was killed, the file was cut, or it is still being written.
    Unfinished {
        /// Bytes at the file's end that are no whole block. Zero: it ends between two blocks.
        cut_bytes: u64,
    },
}

/// One run.
#[derive(Clone, Debug)]
pub struct Run {
    /// What the run was asked to do, and where.
    pub manifest: Manifest,
    /// How it ended, if the log was closed.
    pub footer: Option<Footer>,
    /// What was planned, in send order, or what users sent. A row lost to damage has `row` 0.
    pub plan: Arc<Vec<PlanRow>>,
    /// The sessions' names, by session index; empty where a name was lost.
    pub sessions: Arc<Vec<String>>,
    /// What happened, one entry per planned request.
    pub requests: Requests,
    /// The content events of each request.
    pub chunks: Chunks,
    /// Host stalls.
    pub stalls: Stalls,
    /// Connections, by start.
    pub connects: Vec<Connect>,
    /// Readings of both clocks, by time.
    pub anchors: Vec<Anchor>,
    /// Lost records, by time.
    pub losses: Vec<Loss>,
    /// How far the log goes.
    pub state: State,
    /// Bytes inside the log that were refused as damaged.
    pub damaged_bytes: u64,
    /// What a reader of this run must know, in words.
    pub warnings: Vec<String>,
    /// Users, if the run was driven by users; then [`Run::plan`] has one row per request that left,
    /// and [`Run::sessions`] are the users' names.
    pub users: Option<Users>,
    /// Which prompts begin alike; `None` where the log does not say.
    pub prefixes: Option<Arc<Prefixes>>,
    /// What servers said of themselves; `None`: nobody asked them.
    pub servers: Option<Arc<Servers>>,
    recorded: Arc<Vec<RecordedRow>>,
    texts: Vec<(u32, Box<str>)>,
}

impl Run {
    /// Reads a log.
    ///
    /// # Errors
    /// If the bytes are no log of ours, need a newer reader, or end before the manifest. Damage
    /// further on is a warning.
    pub fn read(bytes: &[u8]) -> Result<Self, LogError> {
        Self::read_with_progress(bytes, &|_share| true)
    }

    /// Reads a log and says how far it is, as a share from 0 to 1, about every 4 MiB; the answer
    /// `false` stops the reading.
    ///
    /// # Errors
    /// As [`Run::read`], and [`LogError::Cancelled`].
    pub fn read_with_progress(
        bytes: &[u8],
        progress: &dyn Fn(f32) -> bool,
    ) -> Result<Self, LogError> {
        let mut reader = Reader::new();
        let mut window = WINDOW_BYTES;
        loop {
            let offset = reader.offset();
            report(progress, share(offset, bytes.len()))?;
            let end = bytes.len().min(offset.saturating_add(window));
            let taken = reader.feed(&bytes[offset..end])?;
            if end == bytes.len() {
                report(progress, 1.0)?;
                let rest = &bytes[reader.offset()..];
                return reader.finish(rest);
            }
            // A block may be longer than the window.
            window = if taken == 0 { window.saturating_mul(2) } else { WINDOW_BYTES };
        }
    }

    /// The name of request `i`'s session.
    #[must_use]
    pub fn session_name(&self, i: usize) -> Option<&str> {
        let name = self.sessions.get(self.plan[i].session.as_usize())?;
        (!name.is_empty()).then_some(name.as_str())
    }

    /// The words that came with request `i`'s failure (the server's, or the system's).
    #[must_use]
    pub fn error_text(&self, i: usize) -> Option<&str> {
        let request = u32::try_from(i).ok()?;
        let place = self.texts.binary_search_by_key(&request, |text| text.0).ok()?;
        Some(&self.texts[place].1)
    }

    /// What the trace recorded of request `i`'s original answer, if it recorded anything.
    #[must_use]
    pub fn recorded(&self, i: usize) -> Option<&RecordedRow> {
        let request = RequestIndex(match &self.users {
            Some(users) => users.template(i)?,
            None => u32::try_from(i).ok()?,
        });
        let place = self.recorded.binary_search_by_key(&request, |row| row.request).ok()?;
        Some(&self.recorded[place])
    }

    /// The blocks of request `i`'s prompt, if the log says which; they are places in
    /// [`Run::prefixes`].
    #[must_use]
    pub fn path(&self, i: usize) -> Option<Path> {
        let prefixes = self.prefixes.as_deref()?;
        let Some(users) = &self.users else { return prefixes.path(i) };
        let path = prefixes.path(users.template(i)? as usize)?;
        if path.copy == SHARED_BY_ALL {
            return Some(path);
        }
        // What a conversation has in common is its own in each of its uses.
        let user = users.root(self.plan[i].session)?;
        Some(Path { copy: u32::from(user.copy), ..path })
    }

    /// Wall clock at the schedule's zero, nanoseconds since 1970.
    #[must_use]
    pub fn started_unix_ns(&self) -> u64 {
        let zero = self.anchors.iter().find(|anchor| anchor.time.0 == 0);
        zero.map_or(self.manifest.started_unix_ns, |anchor| anchor.unix_ns)
    }

    /// Whether the log is whole: closed, and without damage.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let merged = self.manifest.merged.as_deref();
        let is_whole = merged.is_none_or(|merged| merged.warnings().is_empty());
        self.footer.is_some() && self.damaged_bytes == 0 && is_whole
    }
}

fn report(progress: &dyn Fn(f32) -> bool, share: f32) -> Result<(), LogError> {
    if progress(share.min(1.0)) { Ok(()) } else { Err(LogError::Cancelled) }
}

/// How far `at` is on the way to `of`.
#[expect(clippy::cast_precision_loss, reason = "progress needs no more than a few digits")]
fn share(at: usize, of: usize) -> f32 {
    at as f32 / of.max(1) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::sample::{self, Sample};
    use crate::log::{Class, DoneFlags, FinishReason, Outcome, Record, file_header};
    use crate::units::{CoreIndex, RequestIndex, RunNanos};

    const MS: i64 = 1_000_000;

    fn read(sample: &Sample) -> Run {
        Run::read(&sample.bytes()).expect("a log")
    }

    #[test]
    fn records_are_joined_to_their_requests() {
        let run = Run::read(&sample::log(2, 300)).expect("a log");
        assert_eq!(run.state, State::Finished);
        assert!(run.is_whole());
        for i in 0..run.requests.len() {
            let requests = &run.requests;
            assert_eq!(run.plan[i].request, RequestIndex(u32::try_from(i).expect("small")));
            assert!(requests.sent(i) >= requests.intended(i), "request {i}");
            let row = run.chunks.row(i);
            assert_eq!(requests.first_token(i), row.times().first().copied().map(RunNanos));
            assert_eq!(requests.last_token(i), row.times().last().copied().map(RunNanos));
            assert!(row.times().is_sorted());
            assert_eq!(requests.core(i), Some(run.plan[i].core));
            let error = run.error_text(i);
            assert_eq!(error, (requests.class(i) == Some(Class::Http429)).then_some("slow down"));
        }
        let chunks: usize = (0..run.requests.len()).map(|i| run.chunks.count(i)).sum();
        assert_eq!(chunks, run.chunks.len());
        assert_eq!(run.connects.len(), 16);
        assert_eq!(run.started_unix_ns(), run.manifest.started_unix_ns);
    }

    #[test]
    fn a_request_without_records_depends_on_whether_the_log_is_closed() {
        let mut sample = Sample::new();
        sample.send(0);
        sample.plan(MS);
        let closed = read(&sample);
        assert_eq!((closed.requests.end(0), closed.requests.end(1)), (End::Open, End::NeverSent));
        assert_eq!(closed.requests.outcome(1), Some(Outcome::NeverSent));
        sample.closed = false;
        let open = read(&sample);
        assert_eq!((open.requests.end(0), open.requests.end(1)), (End::Open, End::NotReached));
        assert_eq!(open.requests.outcome(1), None);
    }

    #[test]
    fn contradictions_become_warnings() {
        let mut sample = Sample::new();
        let request = sample.plan(0);
        sample.dispatch(request, 0, 5 * MS);
        sample.dispatch(request, 0, 6 * MS);
        sample.chunks(request, &[4 * MS]);
        sample.done(request, 8 * MS, Class::Ok);
        sample.done(request, 9 * MS, Class::BadEvent);
        let stranger = RequestIndex(77);
        let time = RunNanos(MS);
        sample.push(CoreIndex(0), Record::FirstByte { request: stranger, time });
        sample.push(CoreIndex(0), Record::Lost { time, count: 3 });
        let run = read(&sample);
        assert_eq!(run.requests.sent(0), Some(RunNanos(5 * MS)), "the first sending counts");
        assert_eq!(run.requests.class(0), Some(Class::Ok), "the first end counts");
        assert_eq!(
            run.warnings,
            [
                "3 records are missing: no room while the run went on",
                "1 record is about requests that were not planned; ignored",
                "1 request has more than one sending; the first counts",
                "1 request has more than one end; the first counts",
                "1 request has times that run backwards",
            ]
        );
    }

    #[test]
    fn a_second_sending_that_was_asked_for_is_no_contradiction() {
        let mut sample = Sample::new();
        let request = sample.plan(0);
        sample.dispatch(request, 0, MS);
        sample.dispatch(request, 0, 2 * MS);
        let (time, flags) = (RunNanos(9 * MS), DoneFlags::RESENT);
        let (class, status, finish) = (Class::Ok, Some(200), FinishReason::Stop);
        let response_bytes = 3;
        let done = Record::Done { request, time, class, status, response_bytes, finish, flags };
        sample.push(CoreIndex(0), done);
        let run = read(&sample);
        assert_eq!(run.warnings, Vec::<String>::new());
        assert_eq!(run.requests.sent(0), Some(RunNanos(MS)), "the wait began there");
    }

    #[test]
    fn what_is_no_run_is_refused_and_reading_can_be_stopped() {
        assert_eq!(Run::read(&[]).expect_err("nothing"), LogError::Empty);
        let error = Run::read(&file_header()).expect_err("no manifest");
        assert!(error.to_string().contains("nothing was recorded"), "{error}");
        let log = sample::log(1, 100);
        let stopped = Run::read_with_progress(&log, &|share| share < 0.4);
        assert_eq!(stopped.expect_err("stopped"), LogError::Cancelled);
    }

    #[test]
    fn a_damaged_manifest_does_not_cost_the_run() {
        let mut log = sample::log(1, 30);
        log[200] ^= 1;
        let run = Run::read(&log).expect("the plan is there");
        assert_eq!(run.requests.len(), 30);
        assert_eq!(run.manifest.run_id, "unknown");
        assert!(run.warnings.iter().any(|words| words.contains("manifest is damaged")));
    }
}
