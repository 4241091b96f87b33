//! A recorded workload, independent of the file format it came from.
//!
//! A [`Trace`] is what a trace file says and nothing else: who asked, when, how long the prompt and
//! the answer were, which blocks the prompt shares with others. It is built once (by
//! `engine::trace`), never changed, and knows nothing of speed-ups, windows or servers: those are
//! the plan's. Times stay on the trace's own clock.

pub mod agentic;
pub mod blocks;
pub mod cache;
pub mod capacity;
pub mod decimal;
mod escape;
pub mod record;
pub mod recorded;
pub mod session;
pub mod stats;
mod texts;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::trace::blocks::{BlockIds, Blocks};
use crate::trace::record::Record;
use crate::trace::recorded::Recorded;
use crate::trace::session::SessionNames;
use crate::units::{SessionIndex, TraceNanos};

/// How a trace file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Format {
    /// Bailian JSON Lines: seconds, chats linked by `parent_chat_id`, 16-token blocks.
    #[serde(rename = "bailian_trace")]
    Bailian,
    /// Mooncake JSON Lines: milliseconds, every row its own session, 512-token blocks.
    #[serde(rename = "mooncake_trace")]
    Mooncake,
    /// Baseten completions in Parquet or Arrow files: Unix milliseconds, prompts as recorded.
    #[serde(rename = "baseten_trace")]
    Baseten,
    /// Azure's LLM inference traces: a CSV table with dates, lengths and nothing else.
    #[serde(rename = "azure_csv")]
    AzureCsv,
    /// BurstGPT: a CSV table with seconds and lengths, in newer ones sessions and durations too.
    #[serde(rename = "burst_gpt_trace")]
    BurstGpt,
    /// Request bodies in JSON Lines, sent as they stand.
    #[serde(rename = "raw_payload")]
    RawPayload,
    /// Conversations of agents, as kv-cache-tester replays them: JSON, seconds, 64-token blocks.
    #[serde(rename = "agentic")]
    Agentic,
    /// RAGPulse JSON Lines: seconds as texts, prompts as lists of pieces with their own lengths.
    #[serde(rename = "ragpulse")]
    RagPulse,
    /// Sessions as OpenTelemetry spans: JSON, dates, messages as they were sent.
    #[serde(rename = "otel")]
    Otel,
}

/// Where a trace came from, as a log's manifest keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The file's or folder's name, without the folder it is in.
    pub name: String,
    /// SHA-256 of the file's bytes (of a folder: of its files' bytes, one after the other), 64
    /// lower-case hexadecimal digits.
    pub sha256: String,
    /// How it is written.
    pub format: Format,
    /// Requests in it.
    pub rows: u64,
    /// Its size in bytes.
    pub bytes: u64,
}

/// One recorded workload.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The file.
    pub source: Source,
    /// The requests, in file order.
    pub records: Vec<Record>,
    /// Every row's block ids, one after the other; [`Trace::blocks_of`] finds a row's own.
    pub blocks: BlockIds,
    /// Tokens that one block id stands for.
    pub block_tokens: u32,
    /// What the sessions are called.
    pub sessions: SessionNames,
    /// What only some formats record.
    pub recorded: Recorded,
    /// What is odd about the file but does not stop it from being used.
    pub warnings: Vec<Warning>,
}

/// Something odd that the person who named the file should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// The first line it was seen on (1-based), where it belongs to one.
    pub line: Option<u64>,
    /// How many rows it concerns.
    pub rows: u64,
    /// What was found and what is done about it.
    pub words: String,
}

impl Format {
    /// The name `--custom-dataset-type` knows it by.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bailian => "bailian_trace",
            Self::Mooncake => "mooncake_trace",
            Self::Baseten => "baseten_trace",
            Self::AzureCsv => "azure_csv",
            Self::BurstGpt => "burst_gpt_trace",
            Self::RawPayload => "raw_payload",
            Self::Agentic => "agentic",
            Self::RagPulse => "ragpulse",
            Self::Otel => "otel",
        }
    }

    /// Tokens of one block where neither the file nor the user says otherwise.
    #[must_use]
    pub const fn block_tokens(self) -> u32 {
        match self {
            Self::Bailian => 16,
            Self::Mooncake | Self::RawPayload | Self::AzureCsv | Self::BurstGpt | Self::Otel => 512,
            Self::Baseten | Self::Agentic => 64,
            Self::RagPulse => 1,
        }
    }

    /// Whether it is a CSV table.
    #[must_use]
    pub const fn is_table(self) -> bool {
        matches!(self, Self::AzureCsv | Self::BurstGpt)
    }

    /// Whether its times count from 1970, so that a window's offsets count from its first row.
    #[must_use]
    pub const fn counts_from_1970(self) -> bool {
        matches!(self, Self::Baseten | Self::AzureCsv | Self::Otel)
    }
}

impl Trace {
    /// The smallest timestamp of the whole file; `None` when it has no rows.
    #[must_use]
    pub fn origin(&self) -> Option<TraceNanos> {
        self.records.iter().map(|record| record.at).min()
    }

    /// The block ids of a record of this trace, as recorded.
    #[must_use]
    pub fn blocks_of(&self, record: &Record) -> Blocks<'_> {
        self.blocks.slice(record.first_block, record.block_count)
    }

    /// Where a record's block ids hold: records with one scope share blocks, others never do.
    #[must_use]
    pub fn scope_of(&self, record: u32) -> u32 {
        self.recorded.agentic.as_ref().map_or(0, |agentic| agentic.scope_of(record))
    }

    /// What a session is called.
    #[must_use]
    pub fn session_name(&self, session: SessionIndex) -> String {
        self.sessions.name(session)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(out, "line {line}: {}", self.words),
            None => out.write_str(&self.words),
        }
    }
}
