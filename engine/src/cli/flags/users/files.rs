//! What an agentic run leaves beside its log: options as typed.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

/// Files of an agentic run, in kv-cache-tester's formats.
#[derive(Clone, Debug, Default, Args, Serialize, schemars::JsonSchema)]
#[command(next_help_heading = "Files of an agentic run")]
pub struct FilesFlags {
    /// Go on with the interrupted run whose files are in this folder: with its conversations and
    /// users, at each one's place; --test-duration counts anew (default: begin a new run).
    #[arg(long, value_name = "DIR")]
    #[serde(skip)]
    pub resume: Option<PathBuf>,

    /// Write no page with graphs into --output-dir.
    #[arg(long)]
    pub skip_graphs: bool,

    /// Print without colours; it is so anyway.
    #[arg(long)]
    pub no_color: bool,
}
