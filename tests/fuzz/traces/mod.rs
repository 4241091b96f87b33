//! Traces under fuzzing: files of every format that is read, damaged, some of them compressed.
//!
//! Each input is written to a file in memory and read as a run reads it, prompts included. Nothing
//! panics or takes long or much memory; a refusal names the file, and a row's the line; and what is
//! accepted as rows of JSON has the values that serde_json finds in it.

mod agreement;
mod columns;
mod grammar;
mod place;

use super::Target;

/// Rows, tables and trees of text.
pub(super) const TRACES: Target = Target {
    name: "traces",
    about: "trace files of text: refusals name file and line, values are serde_json's",
    short_runs: 500,
    make: || Box::new(place::Texts::new()),
};

/// Parquet and Arrow.
pub(super) const COLUMNS: Target = Target {
    name: "columns",
    about: "trace files of columns: read or refused by name, with a cap on memory",
    short_runs: 30,
    make: || Box::new(columns::Columns::new()),
};
