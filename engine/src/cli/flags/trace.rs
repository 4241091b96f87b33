//! Which trace is read, and how: options as typed.

use std::num::NonZero;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use onbeat_shared::foreign::shown_path;
use onbeat_shared::trace::Format;
use serde::Serialize;

use crate::cli::flags::number::whole;
use crate::error::EngineError;
use crate::trace::{SessionKey, TraceOptions};

/// The trace.
#[derive(Clone, Debug, Default, Args, Serialize, schemars::JsonSchema)]
#[command(next_help_heading = "Trace")]
pub struct TraceFlags {
    /// The trace file, or the folder that its Parquet, Arrow or JSON files are in.
    #[arg(value_name = "TRACE")]
    pub trace: Option<PathBuf>,

    /// The trace file, by the name the benchmark AIPerf has for this option.
    #[arg(long, value_name = "FILE", conflicts_with = "trace")]
    pub input_file: Option<PathBuf>,

    /// The trace's folder, by kv-cache-tester's name for this option.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["trace", "input_file"])]
    pub trace_directory: Option<PathBuf>,

    /// The trace's format (default: told from its content).
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub custom_dataset_type: Option<FormatFlag>,

    /// Tokens that one block id stands for (default: 16 for Bailian, 512 for Mooncake; for Baseten
    /// and agentic traces the file's block_size, or 64).
    #[arg(long, visible_alias = "prompt-input-tokens-block-size", value_name = "TOKENS")]
    #[arg(value_parser = whole::<NonZero<u32>>)]
    pub isl_block_size: Option<NonZero<u32>>,

    /// Cut off block ids that do not fit a row's input length, and count them, instead of refusing
    /// the file.
    #[arg(long)]
    pub lenient: bool,

    /// Which column of a Baseten trace says which rows form a session.
    #[arg(long, value_enum, default_value_t, value_name = "COLUMN")]
    pub session_key: SessionKeyFlag,
}

/// `--session-key` as typed.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum SessionKeyFlag {
    /// The one whose values repeat more; provided_session_id if they repeat alike.
    #[default]
    Auto,
    /// provided_session_id, as AIPerf 0.13 has it.
    Provided,
    /// poor_man_session_id.
    PoorMan,
    /// None: every row is its own session.
    None,
}

/// `--custom-dataset-type` as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum FormatFlag {
    /// Bailian JSON Lines: seconds, parent chains, 16-token blocks.
    BailianTrace,
    /// Mooncake JSON Lines: milliseconds, 512-token blocks.
    MooncakeTrace,
    /// Baseten Parquet or Arrow files: Unix milliseconds, prompts as recorded.
    BasetenTrace,
    /// Request bodies in JSON Lines, sent as they stand; a `timestamp` in milliseconds is when, and
    /// not sent.
    RawPayload,
    /// Azure's LLM inference traces, a CSV table.
    AzureCsv,
    /// BurstGPT, a CSV table.
    BurstGptTrace,
    /// Conversations of agents in kv-cache-tester's JSON, one a file; users replay them.
    #[value(aliases = ["weka_trace", "kv_cache_tester"])]
    Agentic,
    /// RAGPulse JSON Lines, with its tables of pieces beside it.
    #[value(name = "ragpulse")]
    RagPulse,
    /// Sessions as OpenTelemetry spans, one a file; only inspected.
    Otel,
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

    /// The same beside options that take all values behind them, each with its own: a trace that
    /// was typed there is one of those.
    ///
    /// # Errors
    /// When no trace is named.
    pub fn path_beside(&self, greedy: &[(&str, Vec<String>)]) -> Result<&Path, EngineError> {
        self.path().map_err(|error| {
            let Some((option, values)) = greedy.first() else { return error };
            // Only what is there is no URL, which may hold a key.
            let there = values.iter().map(Path::new).find(|value| value.exists());
            let taken = there.map_or_else(
                || format!("what follows {option} is"),
                |value| format!("{} follows {option} and is", shown_path(value)),
            );
            EngineError::Usage(format!(
                "no trace is named: {taken} taken for a value of its own; name the trace before it, \
                 or behind another option"
            ))
        })
    }

    /// How to read it, as meant.
    #[must_use]
    pub fn options(&self) -> TraceOptions {
        TraceOptions {
            format: self.custom_dataset_type.map(|format| match format {
                FormatFlag::BailianTrace => Format::Bailian,
                FormatFlag::MooncakeTrace => Format::Mooncake,
                FormatFlag::BasetenTrace => Format::Baseten,
                FormatFlag::RawPayload => Format::RawPayload,
                FormatFlag::AzureCsv => Format::AzureCsv,
                FormatFlag::BurstGptTrace => Format::BurstGpt,
                FormatFlag::Agentic => Format::Agentic,
                FormatFlag::RagPulse => Format::RagPulse,
                FormatFlag::Otel => Format::Otel,
            }),
            block_tokens: self.isl_block_size.map(NonZero::get),
            lenient: self.lenient,
            session_key: match self.session_key {
                SessionKeyFlag::Auto => SessionKey::Auto,
                SessionKeyFlag::Provided => SessionKey::Provided,
                SessionKeyFlag::PoorMan => SessionKey::PoorMan,
                SessionKeyFlag::None => SessionKey::None,
            },
            prompts_follow: false,
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
        let expected = TraceOptions {
            format: Some(Format::Mooncake),
            block_tokens: Some(64),
            lenient: true,
            ..TraceOptions::default()
        };
        assert_eq!(flags.expect("parses").options(), expected);
        let flags = parse("t --custom-dataset-type baseten_trace --session-key poor-man");
        let options = flags.expect("parses").options();
        assert_eq!(
            (options.format, options.session_key),
            (Some(Format::Baseten), SessionKey::PoorMan)
        );
        for name in ["agentic", "weka_trace", "kv_cache_tester"] {
            let flags = parse(&format!("t --custom-dataset-type {name}")).expect(name);
            assert_eq!(flags.options().format, Some(Format::Agentic));
        }
        assert!(parse("t --custom-dataset-type weka").is_err());
        assert!(parse("t --isl-block-size 0").is_err());
    }
}
