//! Baseten completions: Parquet or Arrow files, one request a row, prompts as they were sent.
//!
//! Four columns must be there (`timestamp_start_unix_ms`, `prompt`, `input_tokens`,
//! `output_tokens`), the others may. Rows that share a session id form a session, in order of time
//! (see `trace::keys` for which of the two id columns counts). `output_tokens` 0 asks for one
//! token; a cancelled row is kept and told. Prompts are looked at here only to know that each is a
//! text, and read by `prompts` once it is known which of them are sent.

pub(crate) mod answers;
pub(crate) mod prompts;
mod row;

use std::collections::HashMap;
use std::path::Path;

use onbeat_shared::trace::blocks::BlockIds;
use onbeat_shared::trace::record::Record;
use onbeat_shared::trace::recorded::{File, Recorded};
use onbeat_shared::trace::session::SessionNames;
use onbeat_shared::trace::{Format, Source, Trace, Warning};

use crate::limits::REQUESTS_MAX;
use crate::trace::baseten::row::{Columns, RowFacts};
use crate::trace::columns::{Digest, Opened, Shard, shards};
use crate::trace::error::Fault;
use crate::trace::keys::{self, Keys};
use crate::trace::{SessionKey, TraceError, TraceOptions};

/// The columns a file must have.
const CORE: [&str; 4] = [row::TIMESTAMP, row::PROMPT, row::INPUT, row::OUTPUT];

/// Everything read so far.
#[derive(Debug, Default)]
struct Reader {
    records: Vec<Record>,
    blocks: BlockIds,
    recorded: Recorded,
    provided: Keys,
    poor_man: Keys,
    no_output: Oddity,
    empty_prompt: Oddity,
}

/// Rows of one odd kind: the first one and how many there are.
#[derive(Clone, Copy, Debug, Default)]
struct Oddity {
    first: Option<u64>,
    rows: u64,
}

/// Reads a Baseten trace.
pub(crate) fn load(path: &Path, options: &TraceOptions) -> Result<Trace, TraceError> {
    let shards = shards(path)?;
    let follow = options.prompts_follow;
    let digest = if follow { None } else { Some(Digest::start(path, &shards)?) };
    let mut reader = Reader::default();
    for shard in &shards {
        if path.is_dir() {
            let first_record = count(&reader.records);
            reader.recorded.files.push(File { name: shard.name.clone(), first_record });
        }
        reader.file(shard, options)?;
    }
    if reader.records.is_empty() {
        return Err(TraceError::file(path, "has no rows"));
    }
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let source = Source {
        name,
        sha256: digest.map_or(Ok(String::new()), Digest::finish)?,
        format: Format::Baseten,
        rows: reader.records.len() as u64,
        bytes: shards.iter().map(|shard| shard.bytes).sum(),
    };
    Ok(reader.finish(source, options))
}

/// Refuses a file that lacks a core column, and says what it has instead.
fn check_columns(shard: &Shard, file: &Opened<'_>) -> Result<(), TraceError> {
    let found = file.names();
    let missing: Vec<&str> = CORE.into_iter().filter(|core| !found.contains(core)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let cased: Vec<&str> = found
        .iter()
        .copied()
        .filter(|name| missing.iter().any(|core| core.eq_ignore_ascii_case(name)))
        .collect();
    let cased = if cased.is_empty() {
        String::new()
    } else {
        format!(" (found {}: names are in lower case)", cased.join(", "))
    };
    Err(TraceError::file(
        &shard.path,
        format!(
            "lacks {}{cased}; a Baseten trace has the columns {}",
            missing.join(", "),
            CORE.join(", ")
        ),
    ))
}

impl Reader {
    fn file(&mut self, shard: &Shard, options: &TraceOptions) -> Result<(), TraceError> {
        let file = Opened::new(&shard.path, shard.kind)?;
        check_columns(shard, &file)?;
        let mut asked = row::ASKED.to_vec();
        let (provided, poor_man) = match options.session_key {
            SessionKey::Auto => (true, true),
            SessionKey::Provided => (true, false),
            SessionKey::PoorMan => (false, true),
            SessionKey::None => (false, false),
        };
        for (column, wanted) in [
            (row::PROVIDED, provided),
            (row::POOR_MAN, poor_man),
            (row::PROMPT, !options.prompts_follow),
        ] {
            if !wanted {
                asked.retain(|name| *name != column);
            }
        }
        let mut table = file.table(&asked, None)?;
        let mut row = 0_u64;
        while let Some(batch) = table.next()? {
            let columns = Columns::of(&asked, &batch).map_err(|(column, found)| {
                let right = row::types_of(column);
                let words =
                    format!("column {column:?} has the type {found}; right would be {right}");
                TraceError::file(&shard.path, words)
            })?;
            self.recorded.knows_cancelled |= columns.know_cancelled();
            for place in 0..batch.rows {
                row += 1;
                let read = columns.row(place, &mut self.blocks);
                let read = read.and_then(|facts| self.add(row, facts));
                read.map_err(|fault| TraceError::Cell { path: shard.path.clone(), row, fault })?;
            }
        }
        Ok(())
    }

    fn add(&mut self, row: u64, facts: RowFacts<'_>) -> Result<(), Fault> {
        if self.records.len() == REQUESTS_MAX {
            return Err(Fault::line("one row too many", format!("at most {REQUESTS_MAX} rows")));
        }
        if facts.output_tokens == 0 {
            self.no_output.count(row);
        }
        if facts.input_tokens == 0 {
            self.empty_prompt.count(row);
        }
        let first_block = self.blocks.len() - facts.block_count as usize;
        self.records.push(Record {
            row,
            at: facts.at,
            input_tokens: facts.input_tokens,
            output_tokens: Some(facts.output_tokens.max(1)),
            session: onbeat_shared::units::SessionIndex(0),
            turn: 0,
            first_block: first_block as u64,
            block_count: facts.block_count,
        });
        self.provided.push(facts.provided);
        self.poor_man.push(facts.poor_man);
        let recorded = &mut self.recorded;
        recorded.duration_ns.push(facts.duration_ns);
        recorded.first_token_ns.push(facts.first_token_ns);
        recorded.cancelled.push(facts.cancelled);
        recorded.cached_tokens.push(facts.cached_tokens);
        recorded.block_tokens.push(facts.block_tokens);
        recorded.signed_ids |= facts.signed_ids;
        Ok(())
    }

    fn finish(mut self, source: Source, options: &TraceOptions) -> Trace {
        let warnings = self.warnings();
        let (mut sessions, names) = match options.session_key {
            SessionKey::Provided => self.provided.sessions(),
            SessionKey::PoorMan => self.poor_man.sessions(),
            SessionKey::None => (Vec::new(), SessionNames::Fresh(count(&self.records))),
            SessionKey::Auto => keys::stronger(self.provided, self.poor_man)
                .map_or((Vec::new(), SessionNames::Fresh(count(&self.records))), Keys::sessions),
        };
        if sessions.is_empty() {
            sessions = (0..count(&self.records)).collect();
        }
        keys::place(&mut self.records, &sessions);
        let block_tokens = options
            .block_tokens
            .or_else(|| most_frequent(&self.recorded.block_tokens))
            .unwrap_or(source.format.block_tokens());
        let mut recorded = self.recorded;
        recorded.prompts = true;
        drop_empty(&mut recorded.duration_ns);
        drop_empty(&mut recorded.first_token_ns);
        drop_empty(&mut recorded.block_tokens);
        drop_empty(&mut recorded.cached_tokens);
        if !recorded.cancelled.contains(&true) {
            recorded.cancelled = Vec::new();
        }
        self.records.shrink_to_fit();
        self.blocks.shrink_to_fit();
        Trace {
            source,
            records: self.records,
            blocks: self.blocks,
            block_tokens,
            sessions: names,
            recorded,
            warnings,
        }
    }

    fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let mut warn = |oddity: Oddity, one: &str| {
            if let Some(first) = oddity.first {
                let rows = oddity.rows;
                let more = if rows > 1 { format!(" ({rows} such rows)") } else { String::new() };
                let words = format!("row {first}: {one}{more}");
                warnings.push(Warning { line: None, rows, words });
            }
        };
        warn(self.no_output, "output_tokens is 0; one token is asked for");
        warn(self.empty_prompt, "input_tokens is 0: is the prompt empty?");
        warnings
    }
}

impl Oddity {
    fn count(&mut self, row: u64) {
        self.first = self.first.or(Some(row));
        self.rows += 1;
    }
}

/// How many records there are.
fn count(records: &[Record]) -> u32 {
    u32::try_from(records.len()).expect("bounded by REQUESTS_MAX")
}

/// The value that most rows have; the smallest of those.
fn most_frequent(values: &[Option<u32>]) -> Option<u32> {
    let mut counts: HashMap<u32, u64> = HashMap::new();
    for &value in values.iter().flatten() {
        *counts.entry(value).or_default() += 1;
    }
    counts.into_iter().max_by_key(|&(value, rows)| (rows, std::cmp::Reverse(value))).map(|(v, _)| v)
}

/// A column that no row has a value in is no column.
fn drop_empty<T>(column: &mut Vec<Option<T>>) {
    if column.iter().all(Option::is_none) {
        *column = Vec::new();
    }
}

#[cfg(test)]
mod bombs;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod standing;
#[cfg(test)]
mod tests;
