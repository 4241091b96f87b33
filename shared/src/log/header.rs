//! The log's two documents: the manifest that opens it and the footer that closes it.
//!
//! Both are JSON inside a checksummed block, so that a later version can add keys and a person can
//! read them with `strings`. The manifest holds the resolved configuration; whoever fills it in has
//! already cut the secrets out. Neither document holds anything that the records can say.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::block::{BLOCK_BYTES, BLOCK_HEADER_BYTES, BlockKind, sealed};
use super::plan_row::PLAN_ROW_BYTES;
use super::record::RECORD_BYTES;
use super::start::{Merged, ShardFacts, Start};
use super::user_facts::UserFacts;
use super::{FORMAT_VERSION, LogError, READABLE_FROM, USERS_READABLE_FROM};
use crate::counted::counted;
use crate::units::CoreIndex;

/// Bytes of the file header.
pub const FILE_HEADER_BYTES: usize = 64;
/// The first eight bytes of every log.
pub const FILE_MARK: [u8; 8] = *b"\x89BEAT\r\n\x1A";

/// What a run was asked to do, and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Manifest {
    /// Unique name of the run.
    pub run_id: String,
    /// Version of the program that wrote the log.
    pub onbeat_version: String,
    /// Wall clock at the schedule's zero, nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// How requests were released, for example `open_loop` or `open_loop_strict`.
    pub mode: String,
    /// The trace that was replayed.
    pub trace: TraceSource,
    /// The resolved configuration, secrets cut out.
    pub config: serde_json::Value,
    /// Base URLs; [`super::PlanRow::target`] is an index into them.
    pub targets: Vec<String>,
    /// The machine.
    pub host: Host,
    /// How sockets were driven: `io_uring` or `epoll`.
    pub driver: String,
    /// The CPU number each core was pinned to, by [`CoreIndex`].
    pub cores: Vec<u16>,
    /// How the cores waited for their deadlines.
    pub pacing: Pacing,
    /// The p99 lateness outside host stalls above which the schedule counts as not held.
    pub max_lateness_us: u64,
    /// The seed of everything that was drawn.
    pub seed: u64,
    /// Where prompt tokens come from, for example `words-4096`.
    pub token_source: String,
    /// How many requests the plan has.
    pub planned: u32,
    /// Path of the endpoint, for example `/v1/completions`.
    pub endpoint: String,
    /// The model asked for.
    pub model: String,
    /// What the machine does to precision, as `onbeat doctor` words it; logs of older versions have
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doctor: Option<serde_json::Value>,
    /// What became of the wish to lock memory: `whole`, `at_start` (what was allocated later is
    /// not locked) or `refused`; `None`: it was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_lock: Option<String>,
    /// What became of the wish for memory close to the pacing cores: `node N`, `single` (all memory
    /// is equally close), `several` (the cores are on several nodes) or `refused`; `None`: it was
    /// not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_node: Option<String>,
    /// What became of the wish for real-time scheduling: `fifo`, `throttled` (the kernel would stop
    /// a core that polls), `unknown` (whether it would is not known) or `refused`; `None`: it was
    /// not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub realtime: Option<String>,
    /// Turns that continue a session repeat the turns before them, which their recorded length does
    /// not count; logs of older versions do not say so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeats_turns: bool,
    /// What prefix caches of growing size would have of the plan's prompts; empty where that is not
    /// known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cache_curve: Vec<CacheSize>,
    /// Requests that were sent before zero; `None`: there were none, or the log is of an older
    /// version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUp>,
    /// How requests were encrypted; `None`: they were not, or the log is of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// Options and facts of a user-driven run: the plan table then holds templates, one for each
    /// record of the trace, and requests are told by [`super::Record::Step`]. `None`: every row of
    /// the plan is a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<Box<UserFacts>>,
    /// Which part of a plan the log is about; `None`: all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<ShardFacts>,
    /// The instant that the user made the zero; `None`: it was as soon as everything was ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
    /// What the log was made from, if it was merged from those of several machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<Box<Merged>>,
}

/// What a prefix cache of one size would have.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CacheSize {
    /// Tokens it holds.
    pub cache_tokens: u64,
    /// Its share of all prompt tokens.
    pub ideal_hit_rate: f64,
}

/// Requests that were sent before zero to warm the server; no statistic counts them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WarmUp {
    /// Wall clock when the first one could leave, nanoseconds since 1970; their times count from
    /// there.
    pub started_unix_ns: u64,
    /// Those that succeeded.
    pub ok: u64,
    /// All of them, in order.
    pub requests: Vec<WarmUpRequest>,
}

/// One request that was sent before zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WarmUpRequest {
    /// 1-based line or row of the trace.
    pub row: u64,
    /// Right before the write of its first byte.
    pub sent_ns: Option<i64>,
    /// First content event.
    pub first_token_ns: Option<i64>,
    /// End of the exchange.
    pub done_ns: Option<i64>,
    /// How it ended.
    pub class: String,
    /// Status of the answer.
    pub status: Option<u16>,
}

impl WarmUp {
    /// From the first sending to the last end, in nanoseconds.
    #[must_use]
    pub fn length_ns(&self) -> Option<i64> {
        let first = self.requests.iter().filter_map(|request| request.sent_ns).min()?;
        let last = self.requests.iter().filter_map(|request| request.done_ns).max()?;
        last.checked_sub(first)
    }
}

impl fmt::Display for WarmUp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = counted(self.requests.len() as u64, "request");
        write!(out, "warm-up: {} of {all} before zero succeeded", self.ok)?;
        if let Some(length_ns) = self.length_ns() {
            write!(out, ", in {:.1} s", crate::metrics::latency::nanos(length_ns) / 1e9)?;
        }
        out.write_str("; no statistic counts them")
    }
}

/// What the TLS sessions of a run had in common, and how they began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Tls {
    /// `TLS 1.3` or `TLS 1.2`.
    pub version: String,
    /// The cipher suite's name.
    pub cipher: String,
    /// Whether the server's certificate was verified; not under `--insecure`.
    pub verified: bool,
    /// Connections opened, with their handshake, before zero.
    pub connections: u32,
    /// Of those, the ones that resumed an earlier session.
    pub resumed: u32,
}

impl fmt::Display for Tls {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, cipher, verified, connections, resumed } = self;
        let verified = if *verified { "verified" } else { "NOT VERIFIED (--insecure)" };
        write!(
            out,
            "{version}, {cipher}, server certificate {verified}; {resumed} of {connections} \
             connections before zero resumed a session"
        )
    }
}

/// The lateness limit where the manifest does not say: 1 ms.
const MAX_LATENESS_US: u64 = 1_000;

impl Manifest {
    /// What stands in for a manifest that was damaged: nothing is known but the plan's length.
    pub(crate) fn lost(planned: u32) -> Self {
        let unknown = || "unknown".to_owned();
        Self {
            run_id: unknown(),
            onbeat_version: unknown(),
            started_unix_ns: 0,
            mode: unknown(),
            trace: TraceSource {
                name: unknown(),
                sha256: unknown(),
                format: unknown(),
                ..TraceSource::default()
            },
            config: serde_json::Value::Null,
            targets: Vec::new(),
            host: Host { hostname: unknown(), kernel: unknown(), cpu: unknown(), cpus: 0 },
            driver: unknown(),
            cores: Vec::new(),
            pacing: Pacing { kind: unknown(), ..Pacing::default() },
            max_lateness_us: MAX_LATENESS_US,
            seed: 0,
            token_source: unknown(),
            planned,
            endpoint: unknown(),
            model: unknown(),
            doctor: None,
            memory_lock: None,
            memory_node: None,
            realtime: None,
            repeats_turns: false,
            cache_curve: Vec::new(),
            warm_up: None,
            tls: None,
            users: None,
            shard: None,
            start: None,
            merged: None,
        }
    }
}

/// A trace, by name and digest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TraceSource {
    /// File name without its folder.
    pub name: String,
    /// SHA-256 of its bytes, in hexadecimal. Empty in a log that was begun before it was known: see
    /// [`Footer::trace_sha256`].
    pub sha256: String,
    /// The format it was read as.
    pub format: String,
    /// Rows it has, before any filter.
    pub rows: u64,
    /// Tokens in one block of its block ids, if it has them.
    pub block_tokens: Option<u32>,
    /// Names of its files where it is a folder; [`super::PlanRow::source`] is an index into them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// The machine that sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Host {
    /// Host name.
    pub hostname: String,
    /// Kernel release.
    pub kernel: String,
    /// Processor model.
    pub cpu: String,
    /// Online processors.
    pub cpus: u32,
}

/// How the cores waited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Pacing {
    /// Name of the way of waiting.
    pub kind: String,
    /// By how much a sleeping core woke late when it was measured before the run.
    pub wake_error_ns: u64,
    /// A jump of the core's own clock longer than this is a host stall.
    pub stall_threshold_ns: u64,
    /// The clock's own resolution: the smallest step between two of its readings, as measured
    /// before the run. `None`: the log is of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_step_ns: Option<u64>,
}

/// How a run ended, as its writer saw it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Footer {
    /// The user stopped it.
    pub interrupted: bool,
    /// Every planned request has its end in the log.
    pub complete: bool,
    /// Records written.
    pub records: u64,
    /// Requests whose end was written.
    pub requests_done: u64,
    /// Records that found no room and are missing.
    pub lost_records: u64,
    /// The two clocks, read together when the log was closed.
    pub closing: Closing,
    /// Totals per core.
    pub cores: Vec<CoreTotals>,
    /// The trace's SHA-256 where it was not known when the run began; `None`: the manifest says it,
    /// or the trace was changed meanwhile, or the user did not wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_sha256: Option<String>,
    /// Why the run was given up before its end, in words; `None`: it was not, or the user did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_up: Option<String>,
}

/// The two clocks at the end of a run.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Closing {
    /// The run's clock, from the schedule's zero.
    pub time_ns: i64,
    /// The wall clock, nanoseconds since 1970.
    pub unix_ns: u64,
}

/// What one core did.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct CoreTotals {
    /// Records it wrote.
    pub records: u64,
    /// Processor time it used.
    pub cpu_ns: u64,
    /// How often the kernel took the processor away from it.
    pub involuntary_switches: u64,
}

/// The bytes that open the file of a run whose plan is requests.
///
/// # Panics
/// Never: the sizes are constants that fit their fields.
#[must_use]
pub fn file_header() -> [u8; FILE_HEADER_BYTES] {
    file_header_from(READABLE_FROM)
}

/// The bytes that open the file of this run. A version that does not know user-driven runs would
/// take their templates for requests, and may not read them.
///
/// # Panics
/// Never: the sizes are constants that fit their fields.
#[must_use]
pub fn file_header_of(manifest: &Manifest) -> [u8; FILE_HEADER_BYTES] {
    let users = manifest.users.is_some();
    file_header_from(if users { USERS_READABLE_FROM } else { READABLE_FROM })
}

fn file_header_from(readable_from: u16) -> [u8; FILE_HEADER_BYTES] {
    let size = |bytes: usize| u16::try_from(bytes).expect("the format's sizes fit 16 bits");
    let mut out = [0; FILE_HEADER_BYTES];
    out[..8].copy_from_slice(&FILE_MARK);
    let halves = [
        FORMAT_VERSION,
        readable_from,
        size(FILE_HEADER_BYTES),
        size(BLOCK_HEADER_BYTES),
        size(RECORD_BYTES),
        size(PLAN_ROW_BYTES),
    ];
    for (half, place) in halves.iter().zip(out[8..20].chunks_exact_mut(2)) {
        place.copy_from_slice(&half.to_le_bytes());
    }
    let block = u32::try_from(BLOCK_BYTES).expect("a block's size fits 32 bits");
    out[20..24].copy_from_slice(&block.to_le_bytes());
    let checksum = crc32fast::hash(&out[..60]);
    out[60..].copy_from_slice(&checksum.to_le_bytes());
    out
}

/// The manifest as a block. The JSON of a configuration stays far below the 16 MiB bound.
///
/// # Panics
/// If the manifest's JSON is longer than 16 MiB.
#[must_use]
pub fn manifest_block(manifest: &Manifest) -> Vec<u8> {
    let json = serde_json::to_vec(manifest).expect("a manifest has only JSON's own types");
    sealed(BlockKind::Manifest, CoreIndex::CONDUCTOR, 0, 1, &json)
}

/// The footer as a block.
///
/// # Panics
/// If the footer's JSON is longer than 16 MiB.
#[must_use]
pub fn footer_block(footer: &Footer) -> Vec<u8> {
    let json = serde_json::to_vec(footer).expect("a footer has only JSON's own types");
    sealed(BlockKind::Footer, CoreIndex::CONDUCTOR, 0, 1, &json)
}

/// What a reader takes from the file header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileHeader {
    /// Bytes of one plan row; at least [`PLAN_ROW_BYTES`].
    pub(super) plan_row_bytes: usize,
    /// The header's own bytes are damaged and were not believed.
    pub(super) damaged: bool,
}

impl FileHeader {
    /// Reads the file's first bytes; `next_is_block` says whether a block's mark follows them.
    pub(super) fn read(bytes: &[u8], next_is_block: bool) -> Result<Self, LogError> {
        if bytes.is_empty() {
            return Err(LogError::Empty);
        }
        let shown = bytes.len().min(FILE_MARK.len());
        let marked = bytes[..shown] == FILE_MARK[..shown];
        let Some(header) = bytes.first_chunk::<FILE_HEADER_BYTES>() else {
            return Err(if marked {
                LogError::ShortHeader { bytes: bytes.len() }
            } else {
                LogError::NotALog { found: bytes[..shown].to_vec() }
            });
        };
        if !marked && !next_is_block {
            return Err(LogError::NotALog { found: bytes[..shown].to_vec() });
        }
        let checksum = u32::from_le_bytes([header[60], header[61], header[62], header[63]]);
        if !marked || crc32fast::hash(&header[..60]) != checksum {
            return Ok(Self { plan_row_bytes: PLAN_ROW_BYTES, damaged: true });
        }
        Self::checked(header)
    }

    fn checked(header: &[u8; FILE_HEADER_BYTES]) -> Result<Self, LogError> {
        let half = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let (version, readable_from) = (half(8), half(10));
        if readable_from > FORMAT_VERSION {
            return Err(LogError::Newer { version, readable_from });
        }
        let fixed = [
            ("the file header", 12, FILE_HEADER_BYTES),
            ("a block header", 14, BLOCK_HEADER_BYTES),
            ("a record", 16, RECORD_BYTES),
        ];
        for (what, at, expected) in fixed {
            if usize::from(half(at)) != expected {
                return Err(LogError::Layout {
                    what,
                    found: u64::from(half(at)),
                    expected: expected as u64,
                });
            }
        }
        let plan_row_bytes = usize::from(half(18));
        if plan_row_bytes < PLAN_ROW_BYTES {
            return Err(LogError::Layout {
                what: "a plan row",
                found: plan_row_bytes as u64,
                expected: PLAN_ROW_BYTES as u64,
            });
        }
        Ok(Self { plan_row_bytes, damaged: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_reads_back_and_refuses_what_it_must() {
        let header = file_header();
        let read = FileHeader::read(&header, false).expect("our own header");
        assert_eq!(read, FileHeader { plan_row_bytes: PLAN_ROW_BYTES, damaged: false });
        assert_eq!(FileHeader::read(&[], false), Err(LogError::Empty));
        assert_eq!(FileHeader::read(&header[..9], false), Err(LogError::ShortHeader { bytes: 9 }));
        assert!(matches!(
            FileHeader::read(b"{\"timestamp\": 1}", false),
            Err(LogError::NotALog { .. })
        ));
    }

    #[test]
    fn a_manifest_of_an_older_version_reads() {
        let mut manifest = Manifest::lost(7);
        let old = serde_json::to_value(&manifest).expect("JSON's own types");
        for newer in ["doctor", "memory_lock", "memory_node", "realtime"] {
            assert!(old.get(newer).is_none(), "{newer}");
        }
        assert_eq!(serde_json::from_value::<Manifest>(old).expect("reads"), manifest);
        manifest.doctor = Some(serde_json::json!({"schema_version": 1}));
        manifest.memory_lock = Some("whole".to_owned());
        manifest.memory_node = Some("node 1".to_owned());
        manifest.realtime = Some("fifo".to_owned());
        let new = serde_json::to_value(&manifest).expect("JSON's own types");
        assert_eq!(serde_json::from_value::<Manifest>(new).expect("reads"), manifest);
    }

    #[test]
    fn a_newer_format_says_so_and_a_flipped_header_does_not() {
        let mut header = file_header();
        header[8] = 99;
        header[10] = 98;
        let flipped = FileHeader::read(&header, true).expect("the checksum is wrong");
        assert!(flipped.damaged);
        let checksum = crc32fast::hash(&header[..60]);
        header[60..].copy_from_slice(&checksum.to_le_bytes());
        let error = FileHeader::read(&header, true).expect_err("a newer format");
        assert_eq!(error, LogError::Newer { version: 99, readable_from: 98 });
        assert!(error.to_string().contains("use a newer onbeat"), "{error}");
    }
}
