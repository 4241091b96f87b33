//! The run log: one file that says everything a run did, in a format that any prefix of can be
//! read.
//!
//! This page is the format's specification. It promises that a log of any released version stays
//! readable, that damage is noticed and never becomes a number, and that a reader needs neither the
//! trace nor the engine. It does not hold prompt or answer text, and no secret.
//!
//! All integers are little-endian. All times are `i64` nanoseconds from the schedule's zero, on the
//! monotonic clock. The zero is tied to the wall clock by the conductor's first
//! [`Record::Anchor`]. Extension: `.beat`. Format version: [`FORMAT_VERSION`].
//!
//! # File
//!
//! ```text
//! ┌────────────┬──────────┬──────┬─────────┬─────┬─────────┬──────┬─────────┬────────┐
//! │ header 64 B│ Manifest │ Plan │ Plan …  │ Ses-│ Records │ Re-  │ Records │ Footer │
//! │            │  (JSON)  │      │         │sions│ core 0  │cords…│ core 1  │ (JSON) │
//! └────────────┴──────────┴──────┴─────────┴─────┴─────────┴──────┴─────────┴────────┘
//! ```
//!
//! Everything before the first `Records` block is written before the first request leaves, so a log
//! that was cut at any later byte still says what was planned. Blocks follow each other without
//! padding. Blocks of one core are in that core's order; blocks of different cores are in the order
//! in which the one writer thread received them. Nothing is ever rewritten.
//!
//! # File header: 64 bytes
//!
//! ```text
//!  0..8   mark            89 42 45 41 54 0D 0A 1A  ("\x89BEAT\r\n\x1A": notices text-mode copies)
//!  8..10  version         u16, this is 7 (1 had no records of several content events, 2 no
//!                         Recorded blocks, 3 no user-driven runs, 4 no Stretches and Paths,
//!                         5 no shards, 6 nothing that servers say of themselves)
//! 10..12  readable from   u16, oldest format version whose readers may read the file: 2, or 4
//!                         for a user-driven run
//! 12..14  header bytes    u16, 64
//! 14..16  block header    u16, 32
//! 16..18  record bytes    u16, 32
//! 18..20  plan row bytes  u16, 80; a later version may append fields: readers skip what they
//!                         do not know at the end of each row
//! 20..24  block bytes     u32, 65,536: no block but Manifest and Footer is longer
//! 24..60  zero
//! 60..64  CRC-32 of bytes 0..60 (IEEE, as in zlib)
//! ```
//!
//! A header that is damaged but is followed by a block is read as this version's, with a warning.
//! So is a log whose manifest is damaged but whose plan is not.
//!
//! # Block: 32 bytes of header, then the payload
//!
//! ```text
//!  0..8   mark            FF 62 6C 6F 63 6B 0D 0A  ("\xFFblock\r\n": cannot occur in UTF-8 text)
//!  8      kind            1 Manifest, 2 Plan, 3 Sessions, 4 Records, 5 Footer, 6 Recorded,
//!                         7 Stretches, 8 Paths, 9 Numbers
//!  9      zero
//! 10..12  core            u16, whose records (FFFF: the conductor); other kinds FFFF
//! 12..16  sequence        u32, from 0 for each core's Records and for each other kind
//! 16..20  count           u32, entries in the payload (1 for JSON)
//! 20..24  payload bytes   u32
//! 24..28  zero
//! 28..32  CRC-32 of bytes 0..28 followed by the payload
//! ```
//!
//! | kind | payload | bytes at most |
//! |---|---|---|
//! | Manifest | [`Manifest`] as JSON; the file's first block | 16 MiB |
//! | Plan | rows of [`plan_row`], 80 bytes each | 64 KiB |
//! | Sessions | index of the first name u32, then per name: bytes u32, UTF-8 | 64 KiB |
//! | Recorded | rows of [`recorded_row`], 32 bytes each; behind the sessions, if any | 64 KiB |
//! | Stretches | number of the first u32, then rows of [`prefix_rows`], 8 bytes each | 64 KiB |
//! | Paths | rows of [`prefix_rows`], 12 bytes each; behind the stretches | 64 KiB |
//! | Numbers | per request of a shard, its number in the whole plan u32; before the plan | 64 KiB |
//! | Records | records of [`record`], 32 bytes each | 64 KiB |
//! | Footer | [`Footer`] as JSON; the file's last block | 16 MiB |
//!
//! # User-driven runs
//!
//! A manifest with `users` says that users decided during the run what was sent, so nobody knew it
//! before:
//!
//! * The Plan table holds *templates*: a row for each record of the trace, whose `request` is the
//!   record's place and whose `session` is the trace's. The Sessions block has the templates'
//!   sessions; [`UserFacts::trace_ids`] has their names in the trace. Recorded rows and paths are
//!   about templates.
//! * Requests are numbered in the order of their sending. [`Record::Step`] is a request's first
//!   record and says which template it is made from, and for which session of the run.
//! * Sessions of the run are users and their sub-agents, numbered as they begin. What becomes of
//!   them is told by [`Record::User`]. Their names are made from their numbers: `User-001`, and
//!   `User-001-SA1` for the first sub-agent of it.
//! * In a [`Record::Dispatch`], due is when the user came to the request (its wait over, its
//!   sub-agents done) and ready is when limits let it through.
//! * The ramp's decisions are [`Assessment`]s in the conductor's records.
//!
//! A request whose step is lost has a row that says nothing; numbers between known requests that
//! have no record are lost requests.
//!
//! # Runs on several machines
//!
//! A manifest with `shard` says that the log is about a part of a plan. Its requests and sessions
//! are numbered as in any log; `Numbers` blocks, before the plan, give each request its number in
//! the whole plan. Its stretches are those of the whole plan. Times count from the shard's own
//! zero, which is the instant that `start` names as the shard's wall clock showed it.
//!
//! A log that was merged from those of several shards has `merged` instead: requests are numbered
//! as in the whole plan (or without gaps where shards are missing), each machine's cores follow
//! those of the one before, and every machine's times count from its own zero. The conductor's
//! records are all machines'.
//!
//! # What servers say of themselves
//!
//! With `--scrape` the conductor's records hold what a server's `/metrics` said during the run:
//! [`scraped`] says how. A manifest does not list the sources; they are told when they are asked.
//!
//! # Evolution
//!
//! * Readers skip block kinds, record kinds and JSON keys that they do not know, and count them in
//!   a warning. So a new kind of record, a new key or a longer plan row needs a new `version` but
//!   leaves `readable from` as it is.
//! * A number once given to a record kind, class or block kind is never given a new meaning.
//! * A change that an old reader would misread raises `readable from`; old readers then refuse with
//!   [`LogError::Newer`]. New readers keep reading every older version.
//!
//! # Damage
//!
//! * A block counts only if its mark, its lengths and its checksum are right. Otherwise all of it
//!   is refused ([`Item::Damaged`]) and reading goes on at the next mark: one flipped bit costs one
//!   block, and no changed number passes.
//! * **Torn tail**: if the file ends inside a block (or in bytes that begin no block), those bytes
//!   are reported as [`Item::TornTail`] and everything before them stands. In a file that is still
//!   being written this is the normal state; [`Decoder::offset`] then is where to resume.
//! * A missing sequence number means a lost block: a warning that names the core.
//! * A log without a footer is *unfinished*: killed, cut, or still being written.
//!
//! # What kill -9 can lose
//!
//! The records a core still had in memory. A core hands its block over when it is full (2,047
//! records) and at least once a second, and the writer writes it at once, so after a kill the log
//! lacks at most the last second; the operating system keeps what was written. After a power cut
//! the last seconds that the kernel had not yet put on the disk are missing too. Either way the log
//! opens, and requests without an end are shown as in flight when it ends.

mod bits;
pub mod block;
pub mod decode;
pub mod error;
pub mod header;
pub mod merge;
pub mod outcome;
pub mod plan_row;
pub mod prefix_rows;
pub mod record;
pub mod recorded_row;
#[doc(hidden)]
pub mod sample;
mod sample_prefixes;
mod sample_scraped;
#[doc(hidden)]
pub mod sample_users;
pub(crate) mod scan;
pub mod scraped;
pub(crate) mod scraped_texts;
pub mod start;
pub mod together;
pub mod user_facts;
pub mod users;

#[cfg(test)]
pub(crate) mod properties;
#[cfg(test)]
mod properties_damage;
#[cfg(test)]
mod properties_scraped;
#[cfg(test)]
mod properties_users;

pub use block::{
    BLOCK_BYTES, BlockBuffer, Full, number_blocks, plan_blocks, recorded_blocks, session_blocks,
};
pub use decode::{Decoder, Item, Numbers, PlanRows, RecordBlock, RecordedRows, SessionNames};
pub use error::LogError;
pub use header::{
    CacheSize, Closing, CoreTotals, Footer, Host, Manifest, Pacing, Tls, TraceSource, WarmUp,
    WarmUpRequest, file_header, file_header_of, footer_block, manifest_block,
};
pub use outcome::{Class, DoneFlags, FinishReason, Outcome};
pub use plan_row::{PLAN_ROW_BYTES, PlanRow};
pub use prefix_rows::{PathRow, PrefixRows, StretchRow, prefix_blocks};
pub use record::{
    ChunkKind, ContentEvent, RECORD_BYTES, Record, TEXT_PART_BYTES, UNKNOWN_TOKENS, Usage,
};
pub use recorded_row::{RECORDED_ROW_BYTES, RecordedRow};
pub use scraped::{IMPOSSIBLE_MAX, SCRAPED_TEXT_BYTES_MAX, Scraped, SeriesKind};
pub use start::{ClockState, HostPart, Merged, ShardFacts, Start};
pub use together::{TOGETHER_MAX, Together};
pub use user_facts::{PoolFacts, UserFacts, UserGoals, UserLimits, UserPrompts, UserTiming};
pub use users::{ASSESSMENT_PARTS, Assessment, LimitedBy, RampReason, StepFlags, UserEvent};

/// The version of the format that this code writes, and the newest it reads.
pub const FORMAT_VERSION: u16 = 7;

/// The oldest version whose readers may read what this code writes: one that does not know records
/// of several content events would count too few.
pub const READABLE_FROM: u16 = 2;

/// The oldest version whose readers may read a user-driven run: an older one would take the
/// templates for requests.
pub const USERS_READABLE_FROM: u16 = 4;
