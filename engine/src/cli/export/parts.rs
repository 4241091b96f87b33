//! Exports of several files into a folder: tables in parts, AIPerf's files and kv-cache-tester's.
//!
//! All of them are written or none. What an earlier export left in the folder and this one does not
//! replace would be read as a part of it: it is refused, and taken away where `--force` says so.
//! Files of other names and folders of other layouts are never touched.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use onbeat_shared::counted::counted;
use onbeat_shared::export::hive::{self, Partitioned};
use onbeat_shared::export::html::{self, View};
use onbeat_shared::export::kv_cache_tester::{self, PROGRESS_FILE, write_json};
use onbeat_shared::export::{Beside, aiperf};
use onbeat_shared::foreign::{shown, shown_path};
use onbeat_shared::metrics::selection::Selection;
use onbeat_shared::metrics::{ReportOptions, report};

use super::{Args, Format, apart, log_of, recorded_texts};
use crate::cli::output::Together;
use crate::cli::results;
use crate::error::{EngineError, output};

/// A table in parts, into folders that are made if they are not there.
pub(super) fn partitioned(args: &Args) -> Result<(), EngineError> {
    let Some(folder) = args.output.as_ref().filter(|_| args.format == Format::Parquet) else {
        return Err(EngineError::Usage(
            "--partition-by cuts a table into Parquet files: add --format parquet and --output DIR"
                .to_owned(),
        ));
    };
    let run = log_of(args)?;
    let texts = recorded_texts(args, &run)?;
    let goals = args.goals.goals_or_of(&run)?;
    let beside = Beside { goals: &goals, recorded_texts: texts.as_deref() };
    let chosen = Selection::new(&run, args.range);
    let parts = Partitioned::new(&chosen, args.table.into(), beside, &args.partition_by)
        .map_err(|words| EngineError::Usage(format!("--partition-by: {words}")))?;
    let paths: Vec<String> = parts.paths().collect();
    for path in paths.iter().map(|path| folder.join(path)) {
        apart(args, &path)?;
        free(&path, args.force)?;
    }
    let earlier = earlier(folder, &parts, &paths)?;
    if let Some(one) = earlier.first().filter(|_| !args.force) {
        return Err(EngineError::Usage(format!(
            "{} has {} of an earlier export that this one does not replace, such as {}, and \
             whoever reads the folder would count both; name another folder, or take them away \
             with --force",
            shown_path(folder),
            counted(earlier.len() as u64, "file"),
            shown(one)
        )));
    }
    let mut files = Together::default();
    for path in &paths {
        let place = folder.join(path);
        files.folder(place.parent().unwrap_or(folder))?;
        files.write(&place, args.force, |file| parts.write(path, file))?;
    }
    files.keep()?;
    earlier.iter().try_for_each(|path| take_away(folder, path))
}

/// Whether a file may be written. Its folders will be made.
fn free(path: &Path, force: bool) -> Result<(), EngineError> {
    match fs::symlink_metadata(path) {
        Ok(_) => output::check(path, force).map(|_replaces| ()),
        Err(_) => Ok(()),
    }
}

/// Files of earlier exports that would be read together with this one's: those of the same columns,
/// of other runs aside where the run is one of them.
fn earlier(
    folder: &Path,
    parts: &Partitioned<'_>,
    paths: &[String],
) -> Result<Vec<String>, EngineError> {
    let own = parts.run_id();
    let new: HashSet<&str> = paths.iter().map(String::as_str).collect();
    let mut earlier = Vec::new();
    for path in exported(folder)? {
        let Some((columns, run)) = hive::cut_by(&path) else { continue };
        if columns != parts.columns() {
            return Err(EngineError::Usage(format!(
                "{} has {} of an export that was cut by {}, and no reader takes both for one \
                 table; name another folder, or remove it",
                shown_path(folder),
                shown(&path),
                columns.join(",")
            )));
        }
        let is_beside = run.is_some_and(|run| run != own);
        if !is_beside && !new.contains(path.as_str()) {
            earlier.push(path);
        }
    }
    earlier.sort_unstable();
    Ok(earlier)
}

/// Files below a folder that an export may have written, as paths from there. Links are not
/// followed.
fn exported(folder: &Path) -> Result<Vec<String>, EngineError> {
    let mut found = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(within) = folders.pop() {
        let place = folder.join(&within);
        let failed = |error| EngineError::io("look into", &place, error);
        let entries = match fs::read_dir(&place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            // Making it a folder says what is wrong.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => continue,
            entries => entries.map_err(failed)?,
        };
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let kind = entry.file_type().map_err(failed)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if kind.is_dir() && hive::is_step(&name) {
                folders.push(format!("{within}{name}/"));
            } else if kind.is_file() && name == hive::FILE_NAME {
                found.push(format!("{within}{name}"));
            }
        }
    }
    Ok(found)
}

/// Removes a file below a folder, and the folders around it that are empty then.
fn take_away(folder: &Path, path: &str) -> Result<(), EngineError> {
    let place = folder.join(path);
    fs::remove_file(&place).map_err(|error| output::refused("remove", &place, error))?;
    let around = Path::new(path).ancestors().skip(1);
    // One that has another file stays.
    let _stopped = around
        .take_while(|around| !around.as_os_str().is_empty())
        .try_for_each(|around| fs::remove_dir(folder.join(around)));
    Ok(())
}

/// AIPerf's files, into a folder that is made if it is not there.
pub(super) fn as_aiperf(args: &Args, folder: &Path) -> Result<(), EngineError> {
    let run = log_of(args)?;
    let goals = args.goals.goals_or_of(&run)?;
    let chosen = Selection::new(&run, args.range);
    let export = aiperf::Export::of(&chosen, &goals, args.slices.length_ns_or_of(&run));
    let place = |part: aiperf::Part| folder.join(part.file_name());
    let of_earlier = aiperf::Part::ALL.into_iter().filter(|part| !export.parts().contains(part));
    let of_earlier: Vec<PathBuf> = of_earlier.map(place).collect();
    all_free(args, aiperf::Part::ALL.map(place).iter())?;
    let mut files = Together::default();
    files.folder(folder)?;
    for part in export.parts() {
        files.write(&place(part), args.force, |mut file| export.write(part, &mut file))?;
    }
    files.keep()?;
    gone(&of_earlier)
}

/// kv-cache-tester's files and its pages, into a folder that is made if it is not there. What a run
/// could go on from is in no log.
pub(super) fn as_kv_cache_tester(args: &Args, folder: &Path) -> Result<(), EngineError> {
    let run = log_of(args)?;
    let slo = Some(args.goals.goals_or_of(&run)?);
    let report = report(&run, &ReportOptions { slo, ..ReportOptions::default() });
    let periods = report.periods.as_deref().unwrap_or_default();
    let Some(export) = kv_cache_tester::Export::new(&run, periods) else {
        return Err(EngineError::Usage(
            "--as kv-cache-tester: the run was not driven by users, so it has no assessment \
             periods; use --as aiperf or a table"
                .to_owned(),
        ));
    };
    let place = |name: &str| folder.join(name);
    let is_missing = |part: &kv_cache_tester::Part| !export.parts().contains(part);
    let missing = kv_cache_tester::Part::ALL.into_iter().filter(is_missing);
    let of_earlier: Vec<PathBuf> = missing.map(|part| place(part.file_name())).collect();
    all_free(args, results::names().map(place).collect::<Vec<_>>().iter())?;
    let mut files = Together::default();
    files.folder(folder)?;
    // What is written first gets its name last: this one says that the others are there.
    let progress = export.progress(None::<()>, None);
    files.write(&place(PROGRESS_FILE), args.force, |mut file| write_json(&progress, &mut file))?;
    for part in export.parts() {
        files.write(&place(part.file_name()), args.force, |mut file| {
            export.write(part, &mut file)
        })?;
    }
    let views = View::ALL.map(|view| (view.file_name(), Some(view)));
    for (name, view) in [(html::INDEX_FILE, None)].into_iter().chain(views) {
        files.write(&place(name), args.force, |mut file| {
            html::write(&run, &report, view, &mut file)
        })?;
    }
    files.keep()?;
    gone(&of_earlier)
}

/// Refuses files of which one may not be written.
fn all_free<'a>(
    args: &Args,
    mut paths: impl Iterator<Item = &'a PathBuf>,
) -> Result<(), EngineError> {
    paths.try_for_each(|path| {
        apart(args, path)?;
        free(path, args.force)
    })
}

/// Takes away files that this export does not have: they are of an earlier one.
fn gone(files: &[PathBuf]) -> Result<(), EngineError> {
    files.iter().filter(|path| path.is_file()).try_for_each(|path| {
        fs::remove_file(path).map_err(|error| output::refused("remove", path, error))
    })
}
