//! `onbeat merge`: the logs of one run's shards become the log of that run.
//!
//! What belongs together and how it is put together is [`onbeat_shared::log::merge`]'s; here are
//! the files. Logs are read in pieces, twice, and never held whole. The merged log appears under
//! its name once all of it is written.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use onbeat_shared::counted::{counted, grouped};
use onbeat_shared::foreign::shown_path;
use onbeat_shared::log::merge::{MergeError, Outcome, Source, merge};
use onbeat_shared::log::{HostPart, Manifest};

use super::inputs;
use super::plan::tell;
use super::report::finish;
use crate::conductor::log_file::LogFile;
use crate::error::EngineError;
use crate::error::output::refused;

/// Bytes that are written at once.
const WRITE_BYTES: usize = 1 << 20;

/// Options of `onbeat merge`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The logs, one of each shard.
    #[arg(value_name = "SHARD.beat", required = true)]
    pub logs: Vec<PathBuf>,

    /// The merged log.
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,

    /// Merge what there is where logs of some shards are missing; the merged log names them.
    #[arg(long)]
    pub allow_missing: bool,

    /// Replace the merged log if it exists.
    #[arg(long)]
    pub force: bool,
}

/// Merges logs.
///
/// # Errors
/// When they do not belong together, or cannot be read or written.
pub fn run(args: &Args, out: &mut dyn Write) -> Result<u8, EngineError> {
    inputs::check_apart(&args.output, args.logs.iter().map(PathBuf::as_path))?;
    inputs::check_is_log(&args.output)?;
    let sources: Vec<Source<'_>> =
        args.logs.iter().map(|path| source(path)).collect::<Result<_, _>>()?;
    let log = LogFile::create(&args.output, args.force)?;
    let failed = |error| refused("write the merged log", &args.output, error);
    let file = log.writer().map_err(failed)?;
    let mut writer = BufWriter::with_capacity(WRITE_BYTES, &file);
    let outcome =
        merge(&sources, args.allow_missing, &mut writer).map_err(|error| match error {
            MergeError::Write(error) => failed(error),
            other => EngineError::Input(other.to_string()),
        })?;
    writer.flush().map_err(failed)?;
    drop(writer);
    file.sync_data().map_err(failed)?;
    log.keep()?;
    outcome.warnings.iter().for_each(|words| tell(words));
    finish(told(&outcome, &args.output, out))
}

fn source(path: &Path) -> Result<Source<'_>, EngineError> {
    // Looked at before it is opened: opening a pipe that nobody writes to would wait forever.
    let meta = std::fs::metadata(path)
        .map_err(|error| EngineError::io("read the run log", path, error))?;
    if !meta.is_file() {
        return Err(EngineError::Input(format!(
            "{}: is not a regular file; right would be a shard's run log, like shard-0.beat",
            shown_path(path)
        )));
    }
    Ok(Source {
        name: shown_path(path),
        open: Box::new(move || Ok(Box::new(File::open(path)?) as Box<dyn Read>)),
    })
}

/// What was merged, and how wrong the machines' clocks may have been.
fn told(outcome: &Outcome, output: &Path, out: &mut dyn Write) -> std::io::Result<()> {
    let Manifest { merged, planned, users, .. } = &outcome.manifest;
    let Some(merged) = merged else { return Ok(()) };
    let count = merged.hosts.len() as u64;
    let what = match users {
        Some(_) => merged.hosts.iter().map(|host| u64::from(host.requests)).sum(),
        None => u64::from(*planned),
    };
    writeln!(
        out,
        "{}: {} of {}",
        shown_path(output),
        counted(what, "request"),
        counted(count, "shard")
    )?;
    if !merged.missing.is_empty() {
        writeln!(out, "{}", merged.missing_words())?;
    }
    merged.hosts.iter().try_for_each(|host| {
        let requests = grouped(u64::from(host.requests));
        let stopped = if host.interrupted { ", STOPPED by its user before its end" } else { "" };
        writeln!(out, "  {}: {requests} requests, {}{stopped}", host.name(), clock_words(host))
    })?;
    if merged.hosts.iter().any(|host| host.interrupted) {
        writeln!(out, "The run was not sent whole: --fail-on fails it, unless --accept-not-held")?;
    }
    Ok(())
}

/// How wrong a machine's clock may have been.
pub(super) fn clock_words(host: &HostPart) -> String {
    match host.start.clock {
        None => "clock: not known".to_owned(),
        Some(clock) if !clock.synchronised => "clock: not synchronised".to_owned(),
        Some(clock) => format!("clock: within {:.3} ms", clock.max_error_ns as f64 / 1e6),
    }
}
