//! Which trace is read, and how: options as typed.

use std::num::NonZero;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use onbeat_shared::trace::Format;
use serde::Serialize;

use crate::error::EngineError;
use crate::trace::TraceOptions;

/// The trace.
#[derive(Clone, Debug, Default, Args, Serialize)]
#[command(next_help_heading = "Trace")]
pub struct TraceFlags {
    /// The trace file.
    #[arg(value_name = "TRACE")]
    pub trace: Option<PathBuf>,

    /// The trace file, by the name the benchmark AIPerf has for this option.
    #[arg(long, value_name = "FILE", conflicts_with = "trace")]
    pub input_file: Option<PathBuf>,

    /// The trace, by kv-cache-tester's name for it; no format of this version is a folder yet.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["trace", "input_file"])]
    pub trace_directory: Option<PathBuf>,

    /// The trace's format (default: told from its content).
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub custom_dataset_type: Option<FormatFlag>,

    /// Tokens that one block id stands for (default: 16 for Bailian, 512 for Mooncake).
    #[arg(long, value_name = "TOKENS")]
    pub isl_block_size: Option<NonZero<u32>>,

    /// Cut off block ids that do not fit a row's input length, and count them, instead of refusing
    /// the file.
    #[arg(long)]
    pub lenient: bool,
}

/// `--custom-dataset-type` as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum FormatFlag {
    /// Bailian JSON Lines: seconds, parent chains, 16-token blocks.
    BailianTrace,
    /// Mooncake JSON Lines: milliseconds, 512-token blocks.
    MooncakeTrace,
}

impl TraceFlags {
    /// The trace's path as meant.
    ///
    /// # Errors
    /// When no trace is named.
    pub fn path(&self) -> Result<&Path, EngineError> {
        let named = [&self.trace, &self.input_file, &self.trace_directory];
        named.into_iter().flatten().next().map(PathBuf::as_path).ok_or_else(|| {
            EngineError::Usage("no trace is named; give a file, like `conversation.jsonl`".into())
        })
    }

    /// How to read it, as meant.
    #[must_use]
    pub fn options(&self) -> TraceOptions {
        TraceOptions {
            format: self.custom_dataset_type.map(|format| match format {
                FormatFlag::BailianTrace => Format::Bailian,
                FormatFlag::MooncakeTrace => Format::Mooncake,
            }),
            block_tokens: self.isl_block_size.map(NonZero::get),
            lenient: self.lenient,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Only {
        #[command(flatten)]
        flags: TraceFlags,
    }

    fn parse(line: &str) -> Result<TraceFlags, String> {
        let words = std::iter::once("onbeat").chain(line.split_whitespace());
        Only::try_parse_from(words).map(|only| only.flags).map_err(|error| error.to_string())
    }

    #[test]
    fn a_trace_is_named_in_one_of_three_ways() {
        for line in ["t.jsonl", "--input-file t.jsonl", "--trace-directory t.jsonl"] {
            let flags = parse(line).expect("parses");
            assert_eq!(flags.path().expect("named"), Path::new("t.jsonl"), "{line}");
        }
        assert!(parse("t.jsonl --input-file u.jsonl").is_err());
        let none = parse("").expect("parses").path().expect_err("none").to_string();
        assert!(none.contains("no trace is named"), "{none}");
    }

    #[test]
    fn formats_have_aiperfs_names() {
        let flags = parse("t --custom-dataset-type mooncake_trace --isl-block-size 64 --lenient");
        let expected =
            TraceOptions { format: Some(Format::Mooncake), block_tokens: Some(64), lenient: true };
        assert_eq!(flags.expect("parses").options(), expected);
        assert!(parse("t --custom-dataset-type weka").is_err());
        assert!(parse("t --isl-block-size 0").is_err());
    }
}
