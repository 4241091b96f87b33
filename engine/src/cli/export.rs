//! `onbeat export`: a run's tables as files for other programs.
//!
//! Columns and formats are [`onbeat_shared::export`]'s; here is only where they go. An existing
//! file is never replaced unless asked, and a file that could not be written whole is taken away
//! again.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use onbeat_shared::export::{self, TextFormat};
use onbeat_shared::metrics::slo::Goals;
use onbeat_shared::run::Run;

use super::report::{GoalFlags, finish, read_log};
use crate::error::EngineError;

/// Options of `onbeat export`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The run log.
    #[arg(value_name = "RUN.beat")]
    pub log: PathBuf,

    /// How the table is written.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,

    /// Which table.
    #[arg(long, value_enum, default_value_t, value_name = "TABLE")]
    pub table: Table,

    /// The file to write; without it, text goes to stdout.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Replace the file if it exists.
    #[arg(long)]
    pub force: bool,

    /// Goals for the columns that say whether they were met.
    #[command(flatten)]
    pub goals: GoalFlags,
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
}

/// Writes the table.
///
/// # Errors
/// If the log cannot be read, the file exists or cannot be written, or the options contradict.
pub fn run(args: &Args, out: &mut dyn Write) -> Result<u8, EngineError> {
    let goals = args.goals.goals()?;
    if args.output.is_none() && args.format == Format::Parquet {
        return Err(EngineError::Usage(
            "--format parquet is not text: name a file with --output FILE".to_owned(),
        ));
    }
    let run = read_log(&args.log)?;
    match &args.output {
        None => finish(to_stdout(args, &run, &goals, out)),
        Some(path) => to_file(args, &run, &goals, path).map(|()| 0),
    }
}

fn to_stdout(args: &Args, run: &Run, goals: &Goals, out: &mut dyn Write) -> io::Result<()> {
    let format = match args.format {
        Format::Csv => TextFormat::Csv,
        Format::Jsonl => TextFormat::JsonLines,
        Format::Parquet => return Err(io::ErrorKind::Unsupported.into()),
    };
    export::write_text(run, args.table.into(), format, goals, out)
}

fn to_file(args: &Args, run: &Run, goals: &Goals, path: &Path) -> Result<(), EngineError> {
    let file = create(path, args.force)?;
    let table = args.table.into();
    let written = match args.format {
        Format::Csv => export::write_text(run, table, TextFormat::Csv, goals, &file),
        Format::Jsonl => export::write_text(run, table, TextFormat::JsonLines, goals, &file),
        Format::Parquet => export::write_parquet(run, table, goals, &file),
    };
    written.map_err(|error| {
        // Half a table would be taken for a whole one. If even this fails, the error below stands.
        let _kept = fs::remove_file(path);
        EngineError::io("write", path, error)
    })
}

fn create(path: &Path, force: bool) -> Result<File, EngineError> {
    let mut options = OpenOptions::new();
    options.write(true).truncate(force).create(force).create_new(!force);
    options.open(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => EngineError::Input(format!(
            "{} exists; name another file or add --force to replace it",
            path.display()
        )),
        _ => EngineError::io("create", path, error),
    })
}

impl From<Table> for export::Table {
    fn from(table: Table) -> Self {
        match table {
            Table::Requests => Self::Requests,
            Table::Chunks => Self::Chunks,
        }
    }
}

#[cfg(test)]
mod tests {
    use onbeat_shared::log::sample;

    use super::*;

    fn args(log: &Path, format: Format, table: Table) -> Args {
        Args {
            log: log.to_owned(),
            format,
            table,
            output: None,
            force: false,
            goals: GoalFlags::default(),
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
}
