//! Reads a trace file into a [`Trace`], or says exactly why it cannot.
//!
//! The format is told from the file's content, or named by the user; then nothing is guessed. Every
//! row is read and checked before anything is sent: a bad row refuses the file with its line,
//! field, what was found and what would be right. What is odd but usable becomes a warning of the
//! trace. Windows, speed-ups and limits are the plan's business, not the reader's.
//!
//! Choices where a format says nothing: `input_length` 0 is an empty prompt (warned about);
//! `output_length` 0 asks for one token (counted); a Mooncake row without `output_length` asks for
//! no limit; lengths must be whole (`512.0` is, `512.5` is not).

mod agentic;
mod bailian;
mod baseten;
mod chains;
mod check;
mod columns;
mod detect;
mod diagnose;
mod dialect;
mod digesting;
pub mod error;
mod keys;
mod lines;
mod mapped;
pub mod material;
mod meaning;
mod mistaken;
mod mooncake;
mod otel;
mod packed;
mod ragpulse;
mod row;
mod rows;
mod scan;
mod sniff;
mod spill;
mod stamp;
mod tables;
mod whole;
mod windows;

use std::path::{Path, PathBuf};

use onbeat_shared::trace::recorded::Texts;
use onbeat_shared::trace::{Format, Source, Trace};

pub use crate::trace::baseten::answers::recorded_answers;
use crate::trace::columns::shards::{has_ending, kind_of};
pub use crate::trace::digesting::Digesting;
pub use crate::trace::error::{Fault, TraceError};
use crate::trace::material::Material;
pub use crate::trace::meaning::{Given, options_with_meaning, without_meaning};
use crate::trace::packed::Packing;
use crate::trace::rows::RowReader;
use crate::trace::sniff::Look;

/// How a trace file is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceOptions {
    /// The format; `None`: told from the content.
    pub format: Option<Format>,
    /// Tokens of one block; `None`: the format's own.
    pub block_tokens: Option<u32>,
    /// Whether block ids beyond `input_length` are cut off and counted instead of refused.
    pub lenient: bool,
    /// Which column of a Baseten trace says which rows form a session.
    pub session_key: SessionKey,
    /// Whether [`load_prompts`] is called afterwards: recorded prompts are then not looked at
    /// before that, and the digest of their files is [`Digesting`]'s.
    pub prompts_follow: bool,
}

/// Which column of a Baseten trace says which rows form a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionKey {
    /// The one with the stronger sign of repeated sessions.
    #[default]
    Auto,
    /// `provided_session_id`.
    Provided,
    /// `poor_man_session_id`.
    PoorMan,
    /// None: every row is its own session.
    None,
}

impl Default for TraceOptions {
    fn default() -> Self {
        Self {
            format: None,
            block_tokens: None,
            lenient: false,
            session_key: SessionKey::Auto,
            prompts_follow: false,
        }
    }
}

/// Reads a trace that is to be planned, but for the prompts that some formats record: see
/// [`load_prompts`].
///
/// # Errors
/// When the file cannot be read, is of no known format or of one that can only be inspected, or has
/// a row that is wrong.
pub fn load(path: &Path, options: &TraceOptions) -> Result<Trace, TraceError> {
    let trace = read(path, options)?;
    check_scheduled(path, &trace)?;
    Ok(trace)
}

/// Whether a trace is conversations, which users replay.
///
/// # Errors
/// When the file cannot be read.
pub fn is_agentic(path: &Path, options: &TraceOptions) -> Result<bool, TraceError> {
    Ok(matches!(sniff::look(path, options)?, Look::Agentic(_)))
}

/// Refuses a trace that no schedule is made of.
///
/// # Errors
/// When it is one: why, and what to do instead.
pub fn check_scheduled(path: &Path, trace: &Trace) -> Result<(), TraceError> {
    let words = only_inspected(trace.source.format);
    words.map_or(Ok(()), |words| Err(TraceError::file(path, words)))
}

/// Reads a trace of any format.
///
/// # Errors
/// When the file cannot be read, is of no known format, or has a row that is wrong.
pub fn read(path: &Path, options: &TraceOptions) -> Result<Trace, TraceError> {
    if let Some(format) = options.format {
        detect::check_named(path, format)?;
    }
    let mut trace = match sniff::look(path, options)? {
        Look::Agentic(files) => agentic::load(path, &files, options)?,
        Look::Otel(files) => otel::load(path, &files)?,
        Look::RagPulse => ragpulse::load(path)?,
        Look::Material(kind) => {
            return Err(TraceError::file(path, format!("is {}", kind.words())));
        }
        Look::Other if is_columns(path, options)? => baseten::load(path, options)?,
        Look::Other => lines_of(path, options)?,
    };
    check::whole(&mut trace);
    trace.warnings.extend(sniff::unread(path)?);
    Ok(trace)
}

/// Reads a file that goes with a trace and is none; `None` when it is something else.
///
/// # Errors
/// When the file cannot be read, or has a row that is wrong.
pub fn material(path: &Path, options: &TraceOptions) -> Result<Option<Material>, TraceError> {
    match sniff::look(path, options)? {
        Look::Material(kind) => kind.describe(path).map(Some),
        _ => Ok(None),
    }
}

/// Why traces of a format are not planned, and what can be done instead; `None` when they are.
const fn only_inspected(format: Format) -> Option<&'static str> {
    match format {
        Format::Otel => Some(
            "is a trace of OpenTelemetry spans, which this version inspects and does not replay: \
             what a call says depends on answers to others, and spans do not say which; to send the \
             recorded messages on time, write one row a call with timestamp (ms), messages and \
             output_length",
        ),
        _ => None,
    }
}

/// Reads what the records that are `wanted` hold of their requests (prompts, messages, bodies) into
/// the trace; nothing happens when it has nothing of the kind. More than `memory` bytes of it go to
/// a temporary file.
///
/// # Errors
/// When the file cannot be read, is another by now, or has a prompt that is no text, or when there
/// is no room for a temporary file.
pub fn load_prompts(
    path: &Path,
    trace: &mut Trace,
    wanted: &(dyn Fn(u32) -> bool + Sync),
    memory: u64,
) -> Result<(), TraceError> {
    trace.recorded.texts = Texts::default();
    trace.recorded.members = Texts::default();
    if trace.recorded.prompts {
        trace.recorded.texts = baseten::prompts::load(path, trace, wanted, memory)?;
    } else if trace.recorded.dialect {
        let (texts, members) = dialect::texts(path, trace, wanted, memory)?;
        (trace.recorded.texts, trace.recorded.members) = (texts, members);
    }
    Ok(())
}

/// The files beside a trace file that are read with it if it is of a format that has such.
pub fn tables_beside(path: &Path) -> impl Iterator<Item = PathBuf> {
    ragpulse::PIECES.map(|(_, name)| path.with_file_name(name)).into_iter()
}

/// Whether the trace is files of columns, as told or as found.
fn is_columns(path: &Path, options: &TraceOptions) -> Result<bool, TraceError> {
    if let Some(format) = options.format {
        return Ok(format == Format::Baseten);
    }
    if path.is_dir() || kind_of(path)?.is_some() {
        return Ok(true);
    }
    // A file that is called so, and is neither rows nor a table, is refused as what it is called.
    if !has_ending(path) || Packing::of_file(path)?.is_some() {
        return Ok(false);
    }
    let rows = |line: Vec<u8>| {
        tables::unmarked(&line).starts_with(b"{") || tables::format_of(&line).is_some()
    };
    Ok(lines::first_line(path)?.is_some_and(|line| !rows(line)))
}

/// The format of a trace that is a table, as told or as found.
fn table_of(path: &Path, options: &TraceOptions) -> Result<Option<Format>, TraceError> {
    if let Some(format) = options.format {
        return Ok(format.is_table().then_some(format));
    }
    let Some(line) = lines::first_line(path)? else { return Ok(None) };
    let found = tables::format_of(&line);
    match tables::why_not(&line, tables::is_called_so(path)).filter(|_| found.is_none()) {
        Some(words) => Err(TraceError::file(path, words)),
        None => Ok(found),
    }
}

/// Reads a trace of JSON Lines, or a table.
fn lines_of(path: &Path, options: &TraceOptions) -> Result<Trace, TraceError> {
    let mut reader: Option<RowReader> = None;
    if let Some(format) = table_of(path, options)? {
        return tables::load(path, format);
    }
    let facts = lines::for_each_line(path, |line, bytes| {
        let reader = match &mut reader {
            Some(reader) => reader,
            none => {
                let format = match options.format {
                    Some(format) => format,
                    None => detect::format_of(path, line, bytes)?,
                };
                none.insert(RowReader::new(format, options))
            }
        };
        let row = |fault| TraceError::Row { path: path.to_owned(), line, fault };
        reader.read(line, bytes).map_err(row)
    })?;
    let Some(reader) = reader else {
        let right = match tables::is_called_so(path) {
            true => "a header and rows",
            false => "JSON Lines with one request a line",
        };
        return Err(TraceError::file(path, format!("has no rows; right would be {right}")));
    };
    let source = Source {
        name: path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into()),
        sha256: facts.sha256,
        format: reader.format(),
        rows: reader.rows(),
        bytes: facts.bytes,
    };
    Ok(match source.format {
        Format::Bailian => bailian::finish(reader, source),
        _ => mooncake::finish(path, reader, source)?,
    })
}

#[cfg(test)]
mod tests;
