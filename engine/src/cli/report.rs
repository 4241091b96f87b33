//! `onbeat report`: the numbers of a run, finished or not, as text or JSON.
//!
//! It only reads the log and renders what [`onbeat_shared::metrics`] computes. A log is read into
//! memory rather than mapped: one that is still being written or replaced must not be able to kill
//! the reader, and a command that ends at once needs no more.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use onbeat_shared::metrics::slo::{Goal, GoalKind, Goals};
use onbeat_shared::metrics::{Metric, ReportOptions, report};
use onbeat_shared::run::Run;

use super::{printing, summary};
use crate::error::EngineError;

/// Options of `onbeat report`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The run log.
    #[arg(value_name = "RUN.beat")]
    pub log: PathBuf,

    /// How the report is written.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,

    /// Goals of a good request.
    #[command(flatten)]
    pub goals: GoalFlags,

    /// The p99 lateness outside host stalls above which the schedule did not hold [default: as the
    /// run was started with].
    #[arg(long, value_name = "MICROSECONDS")]
    pub max_lateness_us: Option<u64>,

    /// Show every metric, with its formula.
    #[arg(long, short)]
    pub verbose: bool,
}

/// How a report is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs: the schema is in the repository.
    Json,
}

/// Goals of a good request, as typed.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct GoalFlags {
    /// Goals as name:limit pairs, for example "ttft:500 itl:50" (milliseconds).
    #[arg(long, value_name = "GOALS")]
    pub goodput: Option<String>,

    /// Goal: time to first token, at most.
    #[arg(long, value_name = "SECONDS")]
    pub slo_ttft: Option<f64>,

    /// Goal: tokens per second while decoding, at least.
    #[arg(long, value_name = "TOKENS_PER_SECOND")]
    pub slo_decode_tps: Option<f64>,
}

impl GoalFlags {
    /// The goals as meant.
    ///
    /// # Errors
    /// If a limit is no positive number or two options limit the same number.
    pub fn goals(&self) -> Result<Goals, EngineError> {
        let mut goals = match &self.goodput {
            Some(text) => Goals::parse(text)
                .map_err(|error| EngineError::Usage(format!("--goodput: {error}")))?,
            None => Goals::default(),
        };
        let seconds = self.slo_ttft.map(|seconds| seconds * 1e3);
        let more = [
            ("--slo-ttft", GoalKind::AtMost(Metric::Ttft), seconds),
            ("--slo-decode-tps", GoalKind::DecodeSpeed, self.slo_decode_tps),
        ];
        for (flag, kind, limit) in more {
            let Some(limit) = limit else { continue };
            if !(limit.is_finite() && limit > 0.0) {
                return Err(EngineError::Usage(format!("{flag}: the limit must be above zero")));
            }
            if !goals.add(Goal { kind, limit }) {
                return Err(EngineError::Usage(format!(
                    "{flag}: --goodput already limits {}; keep one of them",
                    kind.name()
                )));
            }
        }
        Ok(goals)
    }
}

/// Prints the report. The exit code is 0 whatever the run's verdict: reporting it succeeded.
///
/// # Errors
/// If the log cannot be read, the goals cannot be meant, or printing fails.
pub fn run(args: &Args, out: &mut dyn Write) -> Result<u8, EngineError> {
    let slo = Some(args.goals.goals()?);
    let run = read_log(&args.log)?;
    let options = ReportOptions { range: None, slo, max_lateness_us: args.max_lateness_us };
    let report = report(&run, &options);
    let written = match args.format {
        Format::Text => summary::write(out, &report, args.verbose),
        Format::Json => serde_json::to_writer_pretty(&mut *out, &report)
            .map_err(io::Error::from)
            .and_then(|()| out.write_all(b"\n")),
    };
    finish(written)
}

/// Reads a run log.
pub(super) fn read_log(path: &Path) -> Result<Run, EngineError> {
    let bytes =
        std::fs::read(path).map_err(|error| EngineError::io("read the run log", path, error))?;
    Run::read(&bytes).map_err(|error| EngineError::Input(format!("{}: {error}", path.display())))
}

/// The exit code of a command whose output was written to stdout. Whoever closed the pipe has read
/// what it wanted.
pub(super) fn finish(written: io::Result<()>) -> Result<u8, EngineError> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(printing(error)),
        _ => Ok(0),
    }
}
