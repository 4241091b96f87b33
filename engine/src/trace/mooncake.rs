//! Mooncake JSON Lines, the plain kind: every row is a request of its own.
//!
//! `timestamp` in milliseconds, `input_length`, `output_length`, `hash_ids` of 512-token blocks.
//! The members that AIPerf added (sessions, delays, verbatim prompts) change what a row means; they
//! are refused rather than ignored until a reader understands them.

use onbeat_shared::trace::recorded::Recorded;
use onbeat_shared::trace::session::SessionNames;
use onbeat_shared::trace::{Source, Trace};

use crate::trace::error::Fault;
use crate::trace::row::{Name, Row, Value};
use crate::trace::rows::RowReader;

/// Refuses a row that this reader would misunderstand.
pub(crate) fn refuse_dialect(row: &Row) -> Result<(), Fault> {
    let Some(member) = row.dialect else { return Ok(()) };
    let right = match row.value(Name::InputLength) {
        Value::Absent | Value::Null => "a row with input_length and hash_ids",
        _ => "a plain row (timestamp, input_length, output_length, hash_ids)",
    };
    Err(Fault::field(
        member,
        "a member of AIPerf's Mooncake dialect, which this version does not read yet",
        right,
    ))
}

/// The trace of all rows: each its own session, with a fresh name.
pub(crate) fn finish(reader: RowReader, source: Source) -> Trace {
    let rows = reader.into_rows();
    let sessions = u32::try_from(rows.records.len()).expect("bounded by REQUESTS_MAX");
    Trace {
        source,
        records: rows.records,
        blocks: rows.blocks,
        block_tokens: rows.block_tokens,
        sessions: SessionNames::Fresh(sessions),
        recorded: Recorded::default(),
        warnings: rows.warnings,
    }
}
