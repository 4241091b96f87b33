//! The digest of a trace whose files are too large to be waited for.
//!
//! It names the trace in a log, and nothing that is sent depends on it. So it is computed beside
//! everything else with the lowest priority; a log that is begun before it is known names the trace
//! when it is closed. While a large trace is read it rests: two threads of one core's caches would
//! only slow each other down.

use std::path::Path;

use onbeat_shared::trace::Trace;
use rustix::process::Pid;

use crate::trace::columns::{Digest, shards};
use crate::trace::sniff::{self, Look};
use crate::trace::stamp::changed;
use crate::trace::{TraceError, TraceOptions, is_columns};

/// A trace of no more bytes is read in ten milliseconds, before anything has to wait for it.
const AT_ONCE_BYTES: u64 = 16 << 20;

/// The digest of a trace of columns whose prompts follow; for any other trace,
/// [`load`](crate::trace::load) computes it and there is nothing to be done here.
#[derive(Debug, Default)]
pub struct Digesting(Option<Digest>);

impl Digesting {
    /// Begins; to be called before the trace is read.
    ///
    /// # Errors
    /// When the trace is not there, or is no folder of a trace, or no thread can be started.
    pub fn start(path: &Path, options: &TraceOptions) -> Result<Self, TraceError> {
        let beside = options.prompts_follow
            && matches!(sniff::look(path, options)?, Look::Other)
            && is_columns(path, options)?;
        if !beside {
            return Ok(Self(None));
        }
        let shards = shards(path)?;
        let rests = shards.iter().map(|shard| shard.bytes).sum::<u64>() > AT_ONCE_BYTES;
        Ok(Self(Some(Digest::beside(path, &shards, rests)?)))
    }

    /// Writes the digest into the trace if it is known by now.
    ///
    /// # Errors
    /// When a file could not be read, or is another by now.
    pub fn note(&mut self, path: &Path, trace: &mut Trace) -> Result<(), TraceError> {
        if let Some(digest) = self.0.take_if(|digest| digest.is_done()) {
            let digest = digest.finish_while(&mut || true)?;
            trace.source.sha256 = digest.ok_or_else(|| changed(path))?;
        }
        Ok(())
    }

    /// Whether it is still to be waited for.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.0.is_some()
    }

    /// The thread that computes it, while it does.
    #[must_use]
    pub fn thread(&self) -> Option<Pid> {
        self.0.as_ref().and_then(Digest::thread)
    }

    /// Whether it is to rest for the time being; that of a large trace does from the beginning.
    pub fn hold(&self, hold: bool) {
        if let Some(digest) = &self.0 {
            digest.hold(hold);
        }
    }

    /// Waits for the digest as long as `go_on`, which is asked now and then, says so. `None` when
    /// it said no, or when the trace was changed or replaced since [`Digesting::start`].
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn wait(self, go_on: &mut dyn FnMut() -> bool) -> Result<Option<String>, TraceError> {
        self.0.map_or(Ok(None), |digest| digest.finish_while(go_on))
    }
}
