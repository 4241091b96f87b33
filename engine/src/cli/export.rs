//! `onbeat export`: a run's tables as files for other programs.
//!
//! Columns and formats are [`onbeat_shared::export`]'s; here is only where they go. An existing
//! file is never replaced unless asked, then only a regular one and only by a whole table. A file
//! that could not be written whole is taken away again.

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
    let (file, place) = claim(path, args.force)?;
    let table = args.table.into();
    let written = match args.format {
        Format::Csv => export::write_text(run, table, TextFormat::Csv, goals, &file),
        Format::Jsonl => export::write_text(run, table, TextFormat::JsonLines, goals, &file),
        Format::Parquet => export::write_parquet(run, table, goals, &file),
    };
    let placed = written.and_then(|()| fs::rename(&place, path));
    placed.map_err(|error| {
        // Half a table would be taken for a whole one. If even this fails, the error below stands.
        let _kept = fs::remove_file(&place);
        EngineError::io("write", path, error)
    })
}

/// A new file, and its name until the table is whole: `path` itself, or one beside it while an
/// older file keeps that name. Nothing that was there before is ever written to or taken away.
fn claim(path: &Path, force: bool) -> Result<(File, PathBuf), EngineError> {
    let place = match fs::symlink_metadata(path) {
        Ok(_) if !force => {
            return Err(EngineError::Usage(format!(
                "{} exists; name another file or add --force to replace it",
                path.display()
            )));
        }
        Ok(meta) if !meta.is_file() => {
            return Err(EngineError::Usage(format!(
                "{} is not a regular file, and --force replaces nothing else",
                path.display()
            )));
        }
        Ok(_) => beside(path),
        // Making the file says what is wrong, if anything is.
        Err(_) => path.to_owned(),
    };
    let file = OpenOptions::new().write(true).create_new(true).open(&place);
    Ok((file.map_err(|error| EngineError::io("create", &place, error))?, place))
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
