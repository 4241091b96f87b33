//! `onbeat export`: a run's tables as files for other programs, or the files of another tool.
//!
//! Columns and formats are [`onbeat_shared::export`]'s; here is only where they go. An existing
//! file is never replaced unless asked, then only a regular one and only by a whole table. What is
//! written is as private as the log it is made from: only its owner may read it. A file
//! that could not be written whole is taken away again. Of several files none is written unless
//! all may be.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use onbeat_shared::counted::counted;
use onbeat_shared::export::hive::Partitioned;
use onbeat_shared::export::{self, Beside, TextFormat, aiperf, chrome_trace, hdr, vllm_bench};
use onbeat_shared::foreign::shown_path;
use onbeat_shared::metrics::{ReportOptions, report};
use onbeat_shared::run::{Run, State};

use super::inputs::check_apart;
use super::report::{GoalFlags, SliceFlags, finish, read_log};
use super::results;
use crate::error::EngineError;
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

    /// Replace files that exist.
    #[arg(long)]
    pub force: bool,

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

/// Reads the log, and says on stderr what of it is missing: tables have no place for that.
fn whole_or_said(path: &Path) -> Result<Run, EngineError> {
    let (run, shown) = (read_log(path)?, shown_path(path));
    if run.damaged_bytes > 0 {
        let bytes = counted(run.damaged_bytes, "byte");
        eprintln!("{shown}: {bytes} of the log are damaged: what was in them is not written");
    }
    if matches!(run.state, State::Unfinished { .. }) {
        eprintln!(
            "{shown}: the log has no footer (the run was killed, or goes on): requests without an \
             end are written as far as they came"
        );
    }
    Ok(run)
}

/// Writes the table, or another tool's files.
///
/// # Errors
/// If the log cannot be read, a file exists or cannot be written, or the options contradict.
pub fn run(args: &Args, out: &mut dyn Write) -> Result<u8, EngineError> {
    check(args)?;
    if !args.partition_by.is_empty() {
        return partitioned(args).map(|()| 0);
    }
    match (args.tool, &args.output) {
        (None, None) if args.format == Format::Parquet => Err(EngineError::Usage(
            "--format parquet is not text: name a file with --output FILE".to_owned(),
        )),
        (Some(Tool::Aiperf), None) => Err(no_folder("aiperf")),
        (Some(Tool::KvCacheTester), None) => Err(no_folder("kv-cache-tester")),
        (Some(Tool::KvCacheTester), Some(folder)) => {
            let run = whole_or_said(&args.log)?;
            let slo = Some(args.goals.goals_or_of(&run)?);
            let options = ReportOptions { slo, ..ReportOptions::default() };
            let is_free = |path: &Path| {
                apart(args, path)?;
                may_write(path, args.force).map(|_replaces| ())
            };
            results::export(&run, &report(&run, &options), folder, is_free).map(|()| 0)
        }
        (Some(Tool::Aiperf), Some(folder)) => {
            as_aiperf(args, &whole_or_said(&args.log)?, folder).map(|()| 0)
        }
        (Some(tool @ (Tool::VllmBench | Tool::Hdr | Tool::ChromeTrace)), output) => {
            let run = whole_or_said(&args.log)?;
            let goals = args.goals.goals_or_of(&run)?;
            let write = |out: &mut dyn Write| match tool {
                Tool::Hdr => {
                    let length_ns = args.slices.length_ns_or_of(&run);
                    hdr::write(&run, length_ns.unwrap_or(hdr::INTERVAL_NS), out)
                }
                Tool::ChromeTrace => chrome_trace::write(&run, out),
                _ => vllm_bench::write(&run, &goals, out),
            };
            match output {
                None => finish(write(out)),
                Some(path) => to_file(path, args.force, |mut file| write(&mut file)).map(|()| 0),
            }
        }
        (None, output) => {
            let run = whole_or_said(&args.log)?;
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
    if args.recorded_text.is_some() && (args.tool.is_some() || args.table != Table::Requests) {
        return Err(EngineError::Usage(
            "--recorded-text adds columns to the table of requests; leave it or the other out"
                .to_owned(),
        ));
    }
    args.output.as_ref().map_or(Ok(()), |path| apart(args, path))
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
    export::write_text(run, args.table.into(), format, beside, out)
}

/// A table as a file, text or not.
fn table_file(args: &Args, run: &Run, beside: &Beside<'_>, mut file: &File) -> io::Result<()> {
    match args.format {
        Format::Csv | Format::Jsonl => table(args, run, beside, &mut file),
        Format::Parquet => export::write_parquet(run, args.table.into(), beside, file),
    }
}

/// The answers that the trace recorded, where they are asked for.
fn recorded_texts(args: &Args, run: &Run) -> Result<Option<Vec<Option<String>>>, EngineError> {
    let Some(path) = &args.recorded_text else { return Ok(None) };
    Ok(Some(recorded_answers(path, &run.manifest.trace, &run.plan)?))
}

/// A table in parts, into folders that are made if they are not there; none of them unless all may
/// be.
fn partitioned(args: &Args) -> Result<(), EngineError> {
    let Some(folder) = args.output.as_ref().filter(|_| args.format == Format::Parquet) else {
        return Err(EngineError::Usage(
            "--partition-by cuts a table into Parquet files: add --format parquet and --output DIR"
                .to_owned(),
        ));
    };
    let run = whole_or_said(&args.log)?;
    let texts = recorded_texts(args, &run)?;
    let goals = args.goals.goals_or_of(&run)?;
    let beside = Beside { goals: &goals, recorded_texts: texts.as_deref() };
    let parts = Partitioned::new(&run, args.table.into(), beside, &args.partition_by)
        .map_err(|words| EngineError::Usage(format!("--partition-by: {words}")))?;
    for path in parts.paths().map(|path| folder.join(path)) {
        apart(args, &path)?;
        may_write(&path, args.force)?;
    }
    for path in parts.paths() {
        let place = folder.join(&path);
        let around = place.parent().unwrap_or(folder);
        fs::create_dir_all(around).map_err(|error| EngineError::io("create", around, error))?;
        to_file(&place, args.force, |file| parts.write(&path, file))?;
    }
    Ok(())
}

/// AIPerf's files, into a folder that is made if it is not there.
fn as_aiperf(args: &Args, run: &Run, folder: &Path) -> Result<(), EngineError> {
    let goals = args.goals.goals_or_of(run)?;
    let export = aiperf::Export::new(run, &goals, args.slices.length_ns_or_of(run));
    fs::create_dir_all(folder).map_err(|error| EngineError::io("create", folder, error))?;
    let place = |part: aiperf::Part| folder.join(part.file_name());
    for path in export.parts().into_iter().map(place) {
        apart(args, &path)?;
        may_write(&path, args.force)?;
    }
    for part in export.parts() {
        to_file(&place(part), args.force, |mut file| export.write(part, &mut file))?;
    }
    Ok(())
}

/// Writes a file whole, or leaves what was there.
pub(super) fn to_file(
    path: &Path,
    force: bool,
    write: impl FnOnce(&File) -> io::Result<()>,
) -> Result<(), EngineError> {
    let (file, place) = claim(path, force)?;
    let placed = write(&file).and_then(|()| fs::rename(&place, path));
    placed.map_err(|error| {
        // Half a table would be taken for a whole one. If even this fails, the error below stands.
        let _kept = fs::remove_file(&place);
        EngineError::io("write", path, error)
    })
}

/// A new file that only its owner may read, and its name until the table is whole: `path` itself,
/// or one beside it while an older file keeps that name. Nothing that was there before is ever
/// written to or taken away.
fn claim(path: &Path, force: bool) -> Result<(File, PathBuf), EngineError> {
    let place = if may_write(path, force)? { beside(path) } else { path.to_owned() };
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&place);
    Ok((file.map_err(|error| EngineError::io("create", &place, error))?, place))
}

/// Whether there is a file that is to be replaced.
///
/// # Errors
/// When what is there is to stay.
pub(super) fn may_write(path: &Path, force: bool) -> Result<bool, EngineError> {
    match fs::symlink_metadata(path) {
        Ok(_) if !force => Err(EngineError::Usage(format!(
            "{} exists; name another file or add --force to replace it",
            shown_path(path)
        ))),
        Ok(meta) if !meta.is_file() => Err(EngineError::Usage(format!(
            "{} is not a regular file, and --force replaces nothing else",
            shown_path(path)
        ))),
        Ok(_) => Ok(true),
        // Making the file says what is wrong, if anything is.
        Err(_) => Ok(false),
    }
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", rustix::process::getpid().as_raw_nonzero()));
    path.with_file_name(name)
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

#[cfg(test)]
mod tests {
    use onbeat_shared::log::{sample, sample_users};

    use super::*;

    fn args(log: &Path, format: Format, table: Table) -> Args {
        Args {
            log: log.to_owned(),
            tool: None,
            format,
            table,
            partition_by: Vec::new(),
            recorded_text: None,
            output: None,
            force: false,
            goals: GoalFlags::default(),
            slices: SliceFlags::default(),
        }
    }

    #[test]
    fn text_goes_to_stdout_and_files_are_never_replaced_unasked() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("run.beat");
        fs::write(&log, sample::log(1, 20)).expect("room");
        let mut csv = Vec::new();
        run(&args(&log, Format::Csv, Table::Requests), &mut csv).expect("a table");
        assert_eq!(csv.iter().filter(|&&byte| byte == b'\n').count(), 21);

        let file = folder.path().join("requests.csv");
        let mut to_file = args(&log, Format::Csv, Table::Requests);
        to_file.output = Some(file.clone());
        let mut nothing = Vec::new();
        run(&to_file, &mut nothing).expect("a new file");
        assert!(nothing.is_empty());
        assert_eq!(fs::read(&file).expect("the file"), csv);
        let error = run(&to_file, &mut nothing).expect_err("it exists");
        assert!(error.to_string().contains("--force"), "{error}");
        fs::write(&file, "x".repeat(100_000)).expect("room");
        to_file.force = true;
        run(&to_file, &mut nothing).expect("replaced");
        assert_eq!(fs::read(&file).expect("the file"), csv);
    }

    #[test]
    fn only_a_regular_file_is_replaced_and_only_by_a_whole_table() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("run.beat");
        fs::write(&log, sample::log(1, 20)).expect("room");
        let (kept, link) = (folder.path().join("kept"), folder.path().join("link"));
        fs::write(&kept, "older").expect("room");
        std::os::unix::fs::symlink(&kept, &link).expect("a link");
        let mut forced = args(&log, Format::Csv, Table::Requests);
        forced.force = true;
        for place in [&link, Path::new("/dev/full"), folder.path()] {
            forced.output = Some(place.to_owned());
            let error = run(&forced, &mut Vec::new()).expect_err("no regular file");
            assert!(error.to_string().contains("not a regular file"), "{error}");
            assert!(fs::symlink_metadata(place).is_ok(), "{} is gone", place.display());
        }
        assert_eq!(fs::read(&kept).expect("still there"), b"older");
        forced.output = Some(kept);
        run(&forced, &mut Vec::new()).expect("replaced");
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 3, "nothing beside it");
    }

    #[test]
    fn the_log_itself_is_never_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("profile_export.jsonl");
        fs::write(&log, sample::log(1, 20)).expect("room");
        let mut forced = args(&log, Format::Csv, Table::Requests);
        forced.force = true;
        for (tool, output) in [
            (None, log.as_path()),
            (Some(Tool::VllmBench), &log),
            (Some(Tool::Aiperf), folder.path()),
        ] {
            (forced.tool, forced.output) = (tool, Some(output.to_owned()));
            let error = run(&forced, &mut Vec::new()).expect_err("it is the input");
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains("--force replaces no input"), "{error}");
        }
        assert_eq!(fs::read(&log).expect("still there"), sample::log(1, 20));
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1);
    }

    #[test]
    fn parquet_needs_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("run.beat");
        fs::write(&log, sample::log(1, 20)).expect("room");
        let mut parquet = args(&log, Format::Parquet, Table::Chunks);
        let error = run(&parquet, &mut Vec::new()).expect_err("no file named");
        assert_eq!(error.exit_code(), 2);
        let file = folder.path().join("chunks.parquet");
        parquet.output = Some(file.clone());
        run(&parquet, &mut Vec::new()).expect("a file");
        let bytes = fs::read(&file).expect("the file");
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    }

    #[test]
    fn a_file_that_cannot_be_made_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("run.beat");
        fs::write(&log, sample::log(1, 20)).expect("room");
        let mut args = args(&log, Format::Jsonl, Table::Requests);
        args.output = Some(folder.path().join("none/requests.jsonl"));
        let error = run(&args, &mut Vec::new()).expect_err("no such folder");
        assert!(error.to_string().contains("create"), "{error}");
    }

    #[test]
    fn aiperfs_files_go_into_a_folder_all_or_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("run.beat");
        fs::write(&log, sample::log(1, 20)).expect("room");
        let mut args = args(&log, Format::Csv, Table::Requests);
        args.tool = Some(Tool::Aiperf);
        args.slices = SliceFlags { slice_duration: Some(0.25) };
        assert_eq!(run(&args, &mut Vec::new()).expect_err("no folder").exit_code(), 2);
        let place = folder.path().join("new/artifacts");
        args.output = Some(place.clone());
        let mut out = Vec::new();
        run(&args, &mut out).expect("files");
        assert!(out.is_empty());
        assert_eq!(fs::read_dir(&place).expect("made").count(), 5);
        let lines = fs::read_to_string(place.join("profile_export.jsonl")).expect("a file");
        assert_eq!(lines.lines().count(), 20);
        // One that is there already keeps all others from being written.
        for name in ["profile_export.jsonl", "profile_export_aiperf.json"] {
            fs::remove_file(place.join(name)).expect("it was there");
        }
        let error = run(&args, &mut out).expect_err("three are there");
        assert!(error.to_string().contains("--force"), "{error}");
        assert_eq!(fs::read_dir(&place).expect("made").count(), 3);
        args.force = true;
        run(&args, &mut out).expect("replaced");
        assert_eq!(fs::read_dir(&place).expect("made").count(), 5);
    }

    #[test]
    fn kv_cache_testers_files_are_of_runs_with_users_all_or_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("run.beat");
        fs::write(&log, sample::log(1, 20)).expect("room");
        let mut args = args(&log, Format::Csv, Table::Requests);
        args.tool = Some(Tool::KvCacheTester);
        assert_eq!(run(&args, &mut Vec::new()).expect_err("no folder").exit_code(), 2);
        let place = folder.path().join("results");
        args.output = Some(place.clone());
        let error = run(&args, &mut Vec::new()).expect_err("no users");
        assert!(error.to_string().contains("not driven by users"), "{error}");
        assert!(!place.exists());
        fs::write(&log, sample_users::log(1, 6)).expect("room");
        run(&args, &mut Vec::new()).expect("files");
        assert_eq!(fs::read_dir(&place).expect("made").count(), 10);
        let table = place.join("summary_trace_replay.csv");
        let written = fs::read(&table).expect("a table");
        fs::remove_file(place.join("detailed_results.csv")).expect("it was there");
        let error = run(&args, &mut Vec::new()).expect_err("the others are there");
        assert!(error.to_string().contains("--force"), "{error}");
        assert!(!place.join("detailed_results.csv").exists());
        args.force = true;
        run(&args, &mut Vec::new()).expect("replaced");
        assert_eq!(fs::read(&table).expect("a table"), written);
    }

    #[test]
    fn vllms_json_goes_to_stdout_or_a_file_and_has_no_slices() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("run.beat");
        fs::write(&log, sample::log(1, 20)).expect("room");
        let mut args = args(&log, Format::Csv, Table::Requests);
        args.tool = Some(Tool::VllmBench);
        let mut out = Vec::new();
        run(&args, &mut out).expect("JSON");
        let json: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
        assert_eq!(json["num_prompts"], 20);
        let file = folder.path().join("bench.json");
        args.output = Some(file.clone());
        run(&args, &mut Vec::new()).expect("a file");
        assert_eq!(fs::read(&file).expect("the file"), out);
        args.slices = SliceFlags { slice_duration: Some(1.0) };
        let error = run(&args, &mut out).expect_err("slices");
        assert!(error.to_string().contains("--as aiperf"), "{error}");
    }
    #[test]
    fn histograms_and_timelines_go_to_stdout_or_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("run.beat");
        fs::write(&log, sample::log(1, 20)).expect("room");
        for (tool, start) in [(Tool::Hdr, "#[Histogram log"), (Tool::ChromeTrace, "[\n{")] {
            let mut args = args(&log, Format::Csv, Table::Requests);
            args.tool = Some(tool);
            let mut out = Vec::new();
            run(&args, &mut out).expect("text");
            assert!(out.starts_with(start.as_bytes()), "{}", String::from_utf8_lossy(&out));
            let file = folder.path().join(start.len().to_string());
            args.output = Some(file.clone());
            run(&args, &mut Vec::new()).expect("a file");
            assert_eq!(fs::read(&file).expect("the file"), out);
            args.slices = SliceFlags { slice_duration: Some(0.1) };
            args.force = true;
            assert_eq!(run(&args, &mut out).is_ok(), tool == Tool::Hdr, "only it has intervals");
        }
    }

    #[test]
    fn a_table_in_parts_is_files_of_its_owner_all_or_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("run.beat");
        fs::write(&log, sample::log(4, 200)).expect("room");
        let mut args = args(&log, Format::Csv, Table::Requests);
        args.partition_by = vec!["run".to_owned(), "outcome".to_owned()];
        let place = folder.path().join("runs");
        args.output = Some(place.clone());
        let error = run(&args, &mut Vec::new()).expect_err("no Parquet");
        assert!(error.to_string().contains("--format parquet"), "{error}");
        args.format = Format::Parquet;
        run(&args, &mut Vec::new()).expect("files");
        let id = Run::read(&sample::log(4, 200)).expect("a log").manifest.run_id;
        let ok = place.join(format!("run={id}/outcome=ok/part-0.parquet"));
        let written = fs::read(&ok).expect("the file");
        assert!(written.starts_with(b"PAR1"));
        // One that is there already keeps all others from being written.
        let around = place.join(format!("run={id}"));
        let folders = fs::read_dir(around).expect("made").map(|entry| entry.expect("one").path());
        let other = folders.map(|folder| folder.join("part-0.parquet")).find(|path| *path != ok);
        let other = other.expect("some requests failed");
        fs::remove_file(&other).expect("it was there");
        let error = run(&args, &mut Vec::new()).expect_err("one is there");
        assert!(error.to_string().contains("--force"), "{error}");
        assert!(!other.exists());
        args.force = true;
        run(&args, &mut Vec::new()).expect("replaced");
        assert!(other.exists());
        args.partition_by = vec!["e2e_ms".to_owned()];
        let error = run(&args, &mut Vec::new()).expect_err("fractions");
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().starts_with("--partition-by: e2e_ms has fractions"), "{error}");
    }
}
