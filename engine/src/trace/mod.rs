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

mod bailian;
mod chains;
mod check;
mod detect;
mod diagnose;
pub mod error;
mod lines;
mod mmap;
mod mooncake;
mod row;
mod rows;
mod scan;

use std::path::Path;

use onbeat_shared::trace::{Format, Source, Trace};

pub use crate::trace::error::{Fault, TraceError};
use crate::trace::rows::RowReader;

/// How a trace file is to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceOptions {
    /// The format; `None`: told from the content.
    pub format: Option<Format>,
    /// Tokens of one block; `None`: the format's own.
    pub block_tokens: Option<u32>,
    /// Whether block ids beyond `input_length` are cut off and counted instead of refused.
    pub lenient: bool,
}

/// Reads a trace.
///
/// # Errors
/// When the file cannot be read, is of no known format, or has a row that is wrong.
pub fn load(path: &Path, options: &TraceOptions) -> Result<Trace, TraceError> {
    let mut reader: Option<RowReader> = None;
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
        return Err(TraceError::file(
            path,
            "has no rows; right would be JSON Lines with one request a line",
        ));
    };
    let source = Source {
        name: path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into()),
        sha256: facts.sha256,
        format: reader.format(),
        rows: reader.rows(),
        bytes: facts.bytes,
    };
    let mut trace = match source.format {
        Format::Bailian => bailian::finish(reader, source),
        Format::Mooncake => mooncake::finish(reader, source),
    };
    check::whole(&mut trace);
    Ok(trace)
}

#[cfg(test)]
mod tests;
