//! One run, finished or not, as columns: the only thing metrics, exports and the viewer read.
//!
//! [`Run::read`] joins a log's records to its plan. It is made once and never changes. It holds what
//! the log says and nothing derived; every number that needs a formula is in [`crate::metrics`].
//! Whatever the log lacks is `None` here, and what is wrong with it is said in
//! [`Run::warnings`], in words.
//!
//! Requests are numbered as in the plan (send order). Times are nanoseconds from the schedule's
//! zero. Building reads the file twice and needs about 170 bytes per request, 16 per content event.

mod build;
pub mod chunks;
pub mod events;
mod join;
pub mod requests;

pub use chunks::{Chunk, ChunkRow, Chunks};
pub use events::{Anchor, Connect, Loss, Stall, Stalls};
pub use requests::{End, Requests};

use crate::log::{Footer, LogError, Manifest, PlanRow};

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
    /// What was planned, in send order. A row lost to damage has `row` 0.
    pub plan: Vec<PlanRow>,
    /// The sessions' names, by session index; empty where a name was lost.
    pub sessions: Vec<String>,
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
        build::build(bytes, progress)
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

    /// Wall clock at the schedule's zero, nanoseconds since 1970.
    #[must_use]
    pub fn started_unix_ns(&self) -> u64 {
        let zero = self.anchors.iter().find(|anchor| anchor.time.0 == 0);
        zero.map_or(self.manifest.started_unix_ns, |anchor| anchor.unix_ns)
    }

    /// Whether the log is whole: closed, and without damage.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.footer.is_some() && self.damaged_bytes == 0
    }
}
