//! Mooncake JSON Lines, and lines that are bodies: every row is a request of its own, unless it
//! says otherwise.
//!
//! `timestamp` in milliseconds, `input_length`, `output_length`, `hash_ids` of 512-token blocks;
//! and the members that AIPerf added (see `dialect`), which give rows sessions, delays and
//! contents.

use std::path::Path;

use onbeat_shared::trace::record::Record;
use onbeat_shared::trace::recorded::{Content, Recorded, SaidLengths};
use onbeat_shared::trace::session::SessionNames;
use onbeat_shared::trace::{Source, Trace, Warning};
use onbeat_shared::units::{SessionIndex, TraceNanos};

use crate::trace::TraceError;
use crate::trace::dialect;
use crate::trace::error::Fault;
use crate::trace::row::Name;
use crate::trace::rows::RowReader;

/// The trace of all rows: a row without a session is its own, with a fresh name.
pub(crate) fn finish(path: &Path, reader: RowReader, source: Source) -> Result<Trace, TraceError> {
    let mut rows = reader.into_rows();
    let (sessions, recorded) = if rows.dialect.facts.is_empty() {
        let sessions = u32::try_from(rows.records.len()).expect("bounded by REQUESTS_MAX");
        (SessionNames::Fresh(sessions), Recorded::default())
    } else {
        let dialect::Rows { sessions, facts, completions, unsettled } = rows.dialect;
        let (session_of, names) = sessions.sessions();
        let first = turns(&mut rows.records, &session_of, &facts, names.len());
        if let Some(line) = first.filter(|_| facts.iter().any(|facts| !facts.untimed)) {
            let fault = Fault::field(
                Name::Timestamp.key(),
                "nothing",
                "a time in the first row of every session, or in no row at all",
            );
            return Err(TraceError::Row { path: path.to_owned(), line, fault });
        }
        if let Some(line) = first {
            let words = "the rows have no timestamps: they are sent at --request-rate".to_owned();
            rows.warnings.push(Warning { line: Some(line), rows: facts.len() as u64, words });
        }
        let untimed = first.is_some();
        let completions = completions.unwrap_or(false);
        (names, Recorded { untimed, completions, unsettled, ..recorded(&facts) })
    };
    Ok(Trace {
        source,
        records: rows.records,
        blocks: rows.blocks,
        block_tokens: rows.block_tokens,
        sessions,
        recorded,
        warnings: rows.warnings,
    })
}

/// Writes into each record its session and its turn there, in file order, and where it stands when
/// it has no time of its own: its delay behind the turn before it, or the start. Gives the line of
/// the first row that has neither a time nor a turn before it.
fn turns(
    records: &mut [Record],
    session_of: &[u32],
    facts: &[dialect::Facts],
    sessions: usize,
) -> Option<u64> {
    let mut last: Vec<Option<(u32, TraceNanos)>> = vec![None; sessions];
    let mut unplaced = None;
    for ((record, &session), facts) in records.iter_mut().zip(session_of).zip(facts) {
        let before = &mut last[session as usize];
        record.session = SessionIndex(session);
        record.turn = before.map_or(0, |(turn, _)| turn + 1);
        if facts.untimed {
            record.at = match *before {
                Some((_, at)) => TraceNanos(at.0.saturating_add(facts.delay_ns.unwrap_or(0))),
                None => {
                    unplaced = unplaced.or(Some(record.row));
                    TraceNanos(0)
                }
            };
        }
        *before = Some((record.turn, record.at));
    }
    unplaced
}

fn recorded(facts: &[dialect::Facts]) -> Recorded {
    let untimed = facts.iter().any(|facts| facts.untimed);
    let contents = facts.iter().any(|facts| facts.content != Content::Words);
    let said = facts.iter().any(|facts| facts.said != SaidLengths::default());
    Recorded {
        delay_ns: match untimed {
            true => facts.iter().map(|f| f.untimed.then_some(f.delay_ns.unwrap_or(0))).collect(),
            false => Vec::new(),
        },
        contents: match contents {
            true => facts.iter().map(|facts| facts.content).collect(),
            false => Vec::new(),
        },
        said: match said {
            true => facts.iter().map(|facts| facts.said).collect(),
            false => Vec::new(),
        },
        dialect: true,
        ..Recorded::default()
    }
}
