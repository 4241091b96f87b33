//! Results of other load generators as runs, to be looked at beside Onbeat's own.
//!
//! AIPerf's `profile_export.jsonl`, `vllm bench serve --save-result --save-detailed` and the Trace
//! Replay Tester's `detailed_results.csv`. A file's facts become the records of a log, and that is
//! read like any other, so every number comes from [`crate::metrics`]. Nothing is made up: what a
//! file does not say (host stalls, first bytes, connections, often the schedule) is missing in the
//! run, and the run's warnings say so. A request counts as *due* when the other tool itself says it
//! was to go; how late that already was is not in its file. Bytes come from the caller; no file is
//! opened here.

mod aiperf;
mod facts;
mod kv_cache_tester;
#[cfg(test)]
mod tests;
mod vllm_bench;

use std::fmt;

use crate::run::Run;

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// AIPerf's `profile_export.jsonl`.
    AiperfRecords,
    /// The JSON of `vllm bench serve --save-result --save-detailed`.
    VllmBench,
    /// The Trace Replay Tester's `detailed_results.csv`.
    KvCacheTester,
}

/// Why a file is no run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportError {
    /// Something in it is not as it should be.
    Wrong {
        /// 1-based line, where the file has lines.
        line: Option<u64>,
        /// What was found and what would be right.
        words: String,
    },
    /// `progress` said to stop.
    Cancelled,
}

/// How much of a file's beginning [`Kind::of`] needs.
pub const HEAD_BYTES: usize = 16 * 1024;

impl Kind {
    /// Whose file begins like this, if it is one of these.
    #[must_use]
    pub fn of(head: &[u8]) -> Option<Self> {
        let head = &head[..head.len().min(HEAD_BYTES)];
        let head = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head).trim_ascii_start();
        let has = |words: &str| head.windows(words.len()).any(|part| part == words.as_bytes());
        if head.first() == Some(&b'{') {
            if has("\"metadata\"") && has("\"request_start_ns\"") {
                return Some(Self::AiperfRecords);
            }
            let is_bench = has("\"num_prompts\"") && (has("\"backend\"") || has("\"date\""));
            return is_bench.then_some(Self::VllmBench);
        }
        let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let columns = || line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
        let is_csv = ["user_id", "request_idx", "request_start_time"]
            .iter()
            .all(|name| columns().any(|column| column == name.as_bytes()));
        is_csv.then_some(Self::KvCacheTester)
    }

    /// The tool's name.
    #[must_use]
    pub const fn tool(self) -> &'static str {
        match self {
            Self::AiperfRecords => "AIPerf",
            Self::VllmBench => "vllm bench",
            Self::KvCacheTester => "Trace Replay Tester",
        }
    }
}

/// How the mode of such a run begins.
const MEASURED_BY: &str = "measured by ";

/// The tool that measured a run, if it was read from the file of another one.
#[must_use]
pub fn measured_by(run: &Run) -> Option<&str> {
    let is_foreign = run.manifest.driver.is_empty() && run.manifest.run_id.is_empty();
    run.manifest.mode.strip_prefix(MEASURED_BY).filter(|_| is_foreign)
}

/// Reads a file of this kind; `name` is shown as its trace's. `progress` hears a share from 0 to 1;
/// its answer `false` stops the work.
///
/// # Errors
/// [`ImportError::Wrong`] with the place where the file is not as it should be.
pub fn read(
    kind: Kind,
    name: &str,
    bytes: &[u8],
    progress: &dyn Fn(f32) -> bool,
) -> Result<Run, ImportError> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let facts = match kind {
        Kind::AiperfRecords => aiperf::facts(bytes, progress)?,
        Kind::VllmBench => vllm_bench::facts(bytes)?,
        Kind::KvCacheTester => kv_cache_tester::facts(bytes, progress)?,
    };
    if !progress(0.9) {
        return Err(ImportError::Cancelled);
    }
    facts.into_run(kind, name, bytes.len() as u64)
}

impl ImportError {
    fn at(line: u64, words: impl Into<String>) -> Self {
        Self::Wrong { line: Some(line), words: words.into() }
    }

    fn new(words: impl Into<String>) -> Self {
        Self::Wrong { line: None, words: words.into() }
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrong { line: Some(line), words } => write!(out, "line {line}: {words}"),
            Self::Wrong { line: None, words } => out.write_str(words),
            Self::Cancelled => out.write_str("stopped"),
        }
    }
}

impl std::error::Error for ImportError {}
