//! `onbeat export`: a run's tables as files for other programs, or the files of another tool.
//!
//! Columns and formats are [`onbeat_shared::export`]'s; here is only what is asked for and what the
//! log lacks. An existing file is never replaced unless asked, then only a regular one and only by
//! a whole table. Exports of several files are `parts`'; how a file gets to its place is
//! `output`'s.

mod parts;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use onbeat_shared::counted::{agreeing, counted};
use onbeat_shared::export::{self, Beside, TextFormat, chrome_trace, hdr, vllm_bench, without_end};
use onbeat_shared::foreign::shown_path;
use onbeat_shared::metrics::selection::{Selection, parse_range};
use onbeat_shared::run::{Run, State};
use onbeat_shared::units::RunNanos;

use super::inputs::check_apart;
use super::output::to_file;
use super::plan::tell;
use super::report::{GoalFlags, SliceFlags, finish, read_log};
use crate::error::{EngineError, output};
use crate::trace::recorded_answers;

/// Options of `onbeat export`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The run log.
    #[arg(value_name = "RUN.beat")]
    pub log: PathBuf,

    /// Write what another tool writes or reads instead of a table: aiperf and kv-cache-tester are
    /// several files, in the folder --output. Intervals of hdr are --slice-duration long (default:
    /// one second).
    #[arg(long = "as", value_enum, value_name = "TOOL", conflicts_with_all = ["format", "table"])]
    pub tool: Option<Tool>,

    /// How the table is written.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,

    /// Which table.
    #[arg(long, value_enum, default_value_t, value_name = "TABLE")]
    pub table: Table,

    /// Cut the table into Parquet files by the values of these columns, in folders below --output:
    /// `run,outcome` gives run=ID/outcome=ok/part-0.parquet, as DuckDB, Polars and Spark read it.
    /// Columns are those of the table of requests, and the run's id, run.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', conflicts_with = "tool")]
    pub partition_by: Vec<String>,

    /// Add what the trace recorded of the answers' texts, from this trace file or folder: the one
    /// that was replayed. A log holds no text.
    #[arg(long, value_name = "TRACE")]
    pub recorded_text: Option<PathBuf>,

    /// The file to write, or the folder for several; without it, text goes to stdout.
    #[arg(long, short, value_name = "PATH")]
    pub output: Option<PathBuf>,

    /// Replace files that exist, and take away what an earlier export left in the folder --output
    /// and this one does not write: parts of the same columns (of the same run, where run is one of
    /// them), slices of AIPerf.
    #[arg(long)]
    pub force: bool,

    /// Only requests that were sent in this range, in seconds from the first instant of the
    /// schedule: 12.5..20, 5.. or ..5. One that never left counts where it was due.
    #[arg(long, value_name = "A..B", value_parser = parse_range, allow_hyphen_values = true)]
    pub range: Option<(RunNanos, RunNanos)>,

    /// Goals for the columns that say whether they were met.
    #[command(flatten)]
    pub goals: GoalFlags,

    /// Slices of the run, in files of their own.
    #[command(flatten)]
    pub slices: SliceFlags,
}

/// Whose files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Tool {
    /// AIPerf's: a line per request, the summary as JSON and CSV, slices where asked for.
    Aiperf,
    /// The JSON of vllm bench serve --save-result --save-detailed.
    VllmBench,
    /// Those of kv-cache-tester's Trace Replay Tester, of a run with users: a row per assessment
    /// period, per request and per event of a user's life, and pages with graphs.
    KvCacheTester,
    /// HdrHistogram's interval log (V2): a histogram per metric and interval, tagged.
    Hdr,
    /// A timeline for Perfetto and chrome://tracing: sessions, connections, cores, host stalls.
    ChromeTrace,
}

/// How a table is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Comma-separated values with a header line; absent values are empty.
    #[default]
    Csv,
    /// Parquet, zstd-compressed; absent values are null. Needs --output.
    Parquet,
    /// One JSON object per line; absent values are null.
    Jsonl,
}

/// Which table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Table {
    /// One row per planned request, in send order.
    #[default]
    Requests,
    /// One row per content event, by request and then by time.
    Chunks,
    /// One row per value that a server said of itself (--scrape), by time.
    Scraped,
}

/// Reads the log, and says on stderr what of it is missing: the files have no place for that.
fn log_of(args: &Args) -> Result<Run, EngineError> {
    let run = read_log(&args.log)?;
    let shown = shown_path(&args.log);
    lacks(args, &run).iter().for_each(|words| tell(&format!("{shown}: {words}")));
    Ok(run)
}

/// What the log does not have, and the files therefore neither.
fn lacks(args: &Args, run: &Run) -> Vec<String> {
    let mut lacks = run.warnings.clone();
    if matches!(run.state, State::Unfinished { .. }) {
        lacks.push(
            "the log has no footer (the run was killed, or goes on): what came of its last \
             requests is not known"
                .to_owned(),
        );
    }
    let chosen = Selection::new(run, args.range);
    if args.range.is_some() && chosen.requests().next().is_none() {
        lacks.push("no request was sent in --range, and the files have none".to_owned());
    }
    let open = without_end(&chosen);
    if open > 0 && matches!(args.tool, Some(Tool::Aiperf | Tool::VllmBench)) {
        lacks.push(format!(
            "{} {} sent and {} no end in the log: as neither a success nor a failure, {} left out",
            counted(open, "request"),
            agreeing(open, "was", "were"),
            agreeing(open, "has", "have"),
            agreeing(open, "it is", "they are")
        ));
    }
    lacks
}

/// Writes the table, or another tool's files.
///
/// # Errors
/// If the log cannot be read, a file exists or cannot be written, or the options contradict.
pub fn run(args: &Args, out: &mut dyn Write) -> Result<u8, EngineError> {
    check(args)?;
    if !args.partition_by.is_empty() {
        return parts::partitioned(args).map(|()| 0);
    }
    match (args.tool, &args.output) {
        (None, None) if args.format == Format::Parquet => Err(EngineError::Usage(
            "--format parquet is not text: name a file with --output FILE".to_owned(),
        )),
        (Some(Tool::Aiperf), None) => Err(no_folder("aiperf")),
        (Some(Tool::KvCacheTester), None) => Err(no_folder("kv-cache-tester")),
        (Some(Tool::KvCacheTester), Some(folder)) => {
            parts::as_kv_cache_tester(args, folder).map(|()| 0)
        }
        (Some(Tool::Aiperf), Some(folder)) => parts::as_aiperf(args, folder).map(|()| 0),
        (Some(tool @ (Tool::VllmBench | Tool::Hdr | Tool::ChromeTrace)), output) => {
            free(args, output.as_deref())?;
            let run = log_of(args)?;
            let goals = args.goals.goals_or_of(&run)?;
            let chosen = Selection::new(&run, args.range);
            let write = |out: &mut dyn Write| match tool {
                Tool::Hdr => {
                    let length_ns = args.slices.length_ns_or_of(&run);
                    hdr::write(&run, length_ns.unwrap_or(hdr::INTERVAL_NS), out)
                }
                Tool::ChromeTrace => chrome_trace::write_of(&chosen, out),
                _ => vllm_bench::write_of(&chosen, &goals, out),
            };
            match output {
                None => finish(write(out)),
                Some(path) => to_file(path, args.force, |mut file| write(&mut file)).map(|()| 0),
            }
        }
        (None, output) => {
            free(args, output.as_deref())?;
            let run = log_of(args)?;
            let texts = recorded_texts(args, &run)?;
            let goals = args.goals.goals_or_of(&run)?;
            let beside = Beside { goals: &goals, recorded_texts: texts.as_deref() };
            match output {
                None => finish(table(args, &run, &beside, out)),
                Some(path) => {
                    to_file(path, args.force, |file| table_file(args, &run, &beside, file))
                        .map(|()| 0)
                }
            }
        }
    }
}

/// Refuses a file that cannot be written before a long log is read.
fn free(args: &Args, output: Option<&Path>) -> Result<(), EngineError> {
    output.map_or(Ok(()), |path| output::check(path, args.force).map(|_replaces| ()))
}

/// Refuses what contradicts, before anything is read.
fn check(args: &Args) -> Result<(), EngineError> {
    args.goals.goals()?;
    if args.slices.slice_duration.is_some() && !matches!(args.tool, Some(Tool::Aiperf | Tool::Hdr))
    {
        return Err(EngineError::Usage(
            "--slice-duration: there are no slices; add --as aiperf or --as hdr, or use onbeat \
             report"
                .to_owned(),
        ));
    }
    if args.range.is_some() && (args.table == Table::Scraped || !ranged(args.tool)) {
        return Err(EngineError::Usage(
            "--range chooses requests; it goes with --table requests or chunks and with --as \
             aiperf, vllm-bench and chrome-trace"
                .to_owned(),
        ));
    }
    if args.recorded_text.is_some() && (args.tool.is_some() || args.table != Table::Requests) {
        return Err(EngineError::Usage(
            "--recorded-text adds columns to the table of requests; leave it or the other out"
                .to_owned(),
        ));
    }
    args.output.as_ref().map_or(Ok(()), |path| apart(args, path))
}

/// Whether what is written is about requests one by one.
fn ranged(tool: Option<Tool>) -> bool {
    !matches!(tool, Some(Tool::Hdr | Tool::KvCacheTester))
}

fn no_folder(tool: &str) -> EngineError {
    EngineError::Usage(format!(
        "--as {tool} writes several files: name a folder for them with --output DIR"
    ))
}

/// Refuses to replace what is read.
fn apart(args: &Args, output: &Path) -> Result<(), EngineError> {
    let read = [Some(&args.log), args.recorded_text.as_ref()];
    check_apart(output, read.into_iter().flatten().map(PathBuf::as_path))
}

/// A table as text.
fn table(args: &Args, run: &Run, beside: &Beside<'_>, out: &mut dyn Write) -> io::Result<()> {
    let format = match args.format {
        Format::Csv => TextFormat::Csv,
        Format::Jsonl => TextFormat::JsonLines,
        Format::Parquet => return Err(io::ErrorKind::Unsupported.into()),
    };
    let chosen = Selection::new(run, args.range).requests();
    export::write_text_of(run, chosen, args.table.into(), format, beside, out)
}

/// A table as a file, text or not.
fn table_file(args: &Args, run: &Run, beside: &Beside<'_>, mut file: &File) -> io::Result<()> {
    match args.format {
        Format::Csv | Format::Jsonl => table(args, run, beside, &mut file),
        Format::Parquet => {
            let chosen = Selection::new(run, args.range).requests();
            export::write_parquet_of(run, chosen, args.table.into(), beside, file)
        }
    }
}

/// The answers that the trace recorded, where they are asked for.
fn recorded_texts(args: &Args, run: &Run) -> Result<Option<Vec<Option<String>>>, EngineError> {
    let Some(path) = &args.recorded_text else { return Ok(None) };
    Ok(Some(recorded_answers(path, &run.manifest.trace, &run.plan)?))
}

impl From<Table> for export::Table {
    fn from(table: Table) -> Self {
        match table {
            Table::Requests => Self::Requests,
            Table::Chunks => Self::Chunks,
            Table::Scraped => Self::Scraped,
        }
    }
}
