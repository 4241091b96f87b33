//! The folder that a user-driven run leaves beside its log: kv-cache-tester's files, and pages with
//! its graphs.
//!
//! Everything is made from the log once the run is over, so an interrupted run has its files too,
//! and `onbeat export --as kv-cache-tester` makes the same ones later. A folder with files of an
//! earlier run is refused before the run starts, unless it is replaced with `--force` or gone on
//! with. A run that goes on (`--resume DIR`) writes the rows of the earlier one and then its own,
//! in tables whose periods are counted on; its other files are its own, and where DIR is its
//! folder, they replace the earlier ones. `progress.json` is written last. Of a run that was killed
//! there is `progress.json` only, which says where its log is: whoever goes on from it has its
//! files made from that first.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use onbeat_shared::counted::counted;
use onbeat_shared::export::html::{self, View};
use onbeat_shared::export::kv_cache_tester::{
    Equal, Export, PROGRESS_FILE, PROGRESS_VERSION, Part, Progress, Unfinished, write_json,
};
use onbeat_shared::foreign::{shown, shown_path};
use onbeat_shared::log::header::Manifest;
use onbeat_shared::metrics::report::Report;
use onbeat_shared::metrics::{ReportOptions, report};
use onbeat_shared::run::Run;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::output::to_file;
use crate::error::{EngineError, output};

/// Where a run's files go, and what they go on from.
#[derive(Clone, Debug)]
pub struct Results<S> {
    folder: PathBuf,
    graphs: bool,
    earlier: Option<Earlier<S>>,
    /// The run's log.
    log: PathBuf,
    /// Whether the folder is this run's already.
    kept: bool,
}

/// The run that another goes on from.
#[derive(Clone, Debug)]
pub struct Earlier<S> {
    folder: PathBuf,
    progress: Progress<S>,
}

impl<S> Earlier<S> {
    /// Where users and pool were when it ended.
    #[must_use]
    pub const fn state(&self) -> Option<&S> {
        self.progress.onbeat.state.as_ref()
    }

    /// What a run that goes on must have in common with it.
    #[must_use]
    pub const fn equal(&self) -> &Equal {
        &self.progress.onbeat.equal
    }

    /// How many assessment periods its tables have.
    #[must_use]
    pub const fn periods(&self) -> u32 {
        self.progress.onbeat.periods
    }
}

impl<S: DeserializeOwned> Earlier<S> {
    /// Reads the folder that `--resume` names.
    ///
    /// # Errors
    /// If it has no `progress.json` that a run can go on from, or a table of it is not one of ours.
    pub fn read(folder: &Path) -> Result<Self, EngineError> {
        let place = folder.join(PROGRESS_FILE);
        let wrong =
            |words: String| EngineError::Usage(format!("--resume {}: {words}", shown_path(folder)));
        let text = match fs::read(&place) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(wrong(format!(
                    "there is no {PROGRESS_FILE} in it; right would be the --output-dir of an \
                     earlier run"
                )));
            }
            Err(error) => return Err(EngineError::io("read", place, error)),
        };
        let progress: Progress<S> = serde_json::from_slice(&text).map_err(|error| {
            let error = shown(&error.to_string());
            wrong(format!(
                "its {PROGRESS_FILE} is not one that a run can go on from: {error}; \
                 kv-cache-tester's own has no state"
            ))
        })?;
        let version = progress.onbeat.version;
        if version > PROGRESS_VERSION {
            return Err(wrong(format!(
                "its {PROGRESS_FILE} has version {version}, this program reads up to \
                 {PROGRESS_VERSION}; use a newer onbeat"
            )));
        }
        if progress.onbeat.state.is_none() {
            return Err(wrong(format!(
                "its {PROGRESS_FILE} has no state: it was exported from a log, and only the files \
                 that a run itself leaves can be gone on from"
            )));
        }
        for part in Part::ALL {
            check_table(folder, part).map_err(wrong)?;
        }
        Ok(Self { folder: folder.to_owned(), progress })
    }
}

/// Makes the files of a run that was killed from its log, as it would have done at its end, so that
/// another can go on from it with all rows. Returns what the user should know; of a folder that has
/// no such run, or none that can be gone on from, nothing: [`Earlier::read`] says why.
///
/// # Errors
/// If a file cannot be written.
pub fn complete<S>(folder: &Path) -> Result<Option<String>, EngineError>
where
    S: Clone + Serialize + DeserializeOwned,
{
    let Ok(Earlier { mut progress, .. }) = Earlier::<S>::read(folder) else { return Ok(None) };
    let Some(unfinished) = progress.onbeat.unfinished.take() else { return Ok(None) };
    let run_id = progress.onbeat.run_ids.pop().unwrap_or_default();
    let (log, run) = match log_of(&run_id, &unfinished.log, folder) {
        Ok(found) => found,
        Err(words) => {
            return Ok(Some(format!(
                "the run in {} was killed, and its rows are in no table: {words}",
                shown_path(folder)
            )));
        }
    };
    for name in tables() {
        cut(&folder.join(name), unfinished.earlier_bytes.get(name).copied())?;
    }
    let numbers = report(&run, &ReportOptions::default());
    let state = progress.onbeat.state.clone();
    let earlier = (!progress.onbeat.run_ids.is_empty())
        .then(|| Earlier { folder: folder.to_owned(), progress });
    let results = Results { folder: folder.to_owned(), graphs: true, earlier, log, kept: true };
    let written = results.write(&run, &numbers, state)?;
    Ok(Some(format!(
        "the run in {} was killed: its {} are made from its log {}",
        shown_path(folder),
        counted(written.len() as u64, "file"),
        shown_path(&results.log)
    )))
}

/// Finds a run's log: where it was, or in the folder, which may have been moved with it. Or says
/// why not.
fn log_of(run_id: &str, log: &Path, folder: &Path) -> Result<(PathBuf, Run), String> {
    let read = |place: PathBuf| match super::report::read_log(&place) {
        Ok(run) if run.manifest.run_id == run_id => Ok((place, run)),
        Ok(_) => Err(format!("{} is the log of another run", shown_path(&place))),
        Err(error) => Err(error.to_string()),
    };
    read(log.to_owned()).or_else(|words| {
        let beside = log.file_name().map(|name| folder.join(name));
        beside.and_then(|place| read(place).ok()).ok_or(words)
    })
}

/// Takes what is behind so many bytes off a table, or the whole table away.
fn cut(place: &Path, bytes: Option<u64>) -> Result<(), EngineError> {
    let Ok(meta) = fs::symlink_metadata(place) else { return Ok(()) };
    match bytes {
        // Nothing is written through a link.
        Some(_) if !meta.is_file() => return output::check(place, true).map(|_replaces| ()),
        Some(bytes) if meta.len() <= bytes => Ok(()),
        Some(bytes) => File::options().write(true).open(place).and_then(|file| file.set_len(bytes)),
        None => fs::remove_file(place),
    }
    .map_err(|error| EngineError::io("cut", place, error))
}

/// Whether a table of an earlier run, if there is one, has our columns.
fn check_table(folder: &Path, part: Part) -> Result<(), String> {
    let Some(head) = part.head() else { return Ok(()) };
    let name = part.file_name();
    let text = match fs::read(folder.join(name)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("its {name} cannot be read: {error}")),
    };
    if text.split(|&byte| byte == b'\n').next() != Some(head.as_bytes()) {
        return Err(format!(
            "its {name} has other columns than this program writes, so no rows can be added"
        ));
    }
    Ok(())
}

/// The tables' names.
fn tables() -> impl Iterator<Item = &'static str> {
    Part::ALL.into_iter().filter(|part| part.is_table()).map(Part::file_name)
}

/// Every name that a run's files may have.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let parts = Part::ALL.map(Part::file_name);
    let views = View::ALL.map(View::file_name);
    parts.into_iter().chain(views).chain([html::INDEX_FILE, PROGRESS_FILE])
}

impl<S: Clone + Serialize> Results<S> {
    /// Makes the folder ready, before the run starts. `graphs` asks for the pages, `log` is where
    /// the run's log will be.
    ///
    /// # Errors
    /// If the folder cannot be made, or has files of an earlier run that are to stay.
    pub fn prepare(
        folder: &Path,
        graphs: bool,
        earlier: Option<Earlier<S>>,
        log: &Path,
        force: bool,
    ) -> Result<Self, EngineError> {
        output::make_folder(folder)?;
        let is_own = |earlier: &Earlier<S>| same(&earlier.folder, folder);
        let goes_on_here = earlier.as_ref().is_some_and(is_own);
        let there = names().find(|name| fs::symlink_metadata(folder.join(name)).is_ok());
        if let Some(name) = there.filter(|_| !force && !goes_on_here) {
            return Err(EngineError::Usage(format!(
                "--output-dir {folder} has {name} of an earlier run; name another folder, go on \
                 with that run (--resume {folder}), or add --force to replace its files",
                folder = shown_path(folder)
            )));
        }
        // A run that goes on may be started in another folder.
        let log = std::path::absolute(log).unwrap_or_else(|_no_folder| log.to_owned());
        Ok(Self { folder: folder.to_owned(), graphs, earlier, log, kept: goes_on_here })
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes where a run under way is, so that another can go on from there if it is killed. Its
    /// tables are written at its end.
    ///
    /// # Errors
    /// If the file could not be written.
    pub fn keep(&mut self, manifest: &Manifest, state: S) -> Result<(), EngineError> {
        if !self.kept {
            self.bring_along()?;
            self.kept = true;
        }
        let earlier = self.earlier.as_ref().map(|earlier| &earlier.progress);
        let mut progress = Progress::of(manifest, 0, Some(state), earlier);
        let meta = |name: &str| fs::metadata(self.folder.join(name)).ok();
        let bytes = |name: &str| Some((name.to_owned(), meta(name)?.len()));
        let earlier_bytes = tables().filter_map(bytes).collect();
        progress.onbeat.unfinished = Some(Unfinished { log: self.log.clone(), earlier_bytes });
        let place = self.folder.join(PROGRESS_FILE);
        to_file(&place, true, |mut file| write_json(&progress, &mut file))
    }

    /// Makes the folder's tables those of the runs that this one goes on from: whoever goes on from
    /// this one, killed, finds them beside its `progress.json`, and nobody else's.
    fn bring_along(&self) -> Result<(), EngineError> {
        for name in tables() {
            let to = self.folder.join(name);
            let from = self.earlier.as_ref().map(|earlier| earlier.folder.join(name));
            match from.filter(|from| from.is_file()) {
                Some(from) => to_file(&to, true, |mut out| {
                    io::copy(&mut File::open(from)?, &mut out).map(|_bytes| ())
                })?,
                None => cut(&to, None)?,
            }
        }
        Ok(())
    }

    /// Writes all files of a run that has ended, and gives their names. `state` is where its users
    /// and its pool were, `report` its numbers.
    ///
    /// # Errors
    /// The first file that could not be written; the others are written all the same.
    pub fn write(
        &self,
        run: &Run,
        report: &Report,
        state: Option<S>,
    ) -> Result<Vec<&'static str>, EngineError> {
        let earlier = self.earlier.as_ref();
        let periods = report.periods.as_deref().unwrap_or_default();
        let Some(export) = Export::new(run, periods) else { return Ok(Vec::new()) };
        let mut files = Files { folder: &self.folder, written: Vec::new(), failed: None };
        for part in Part::ALL {
            let rows = earlier
                .filter(|_| part.is_table())
                .map(|earlier| (rows(&earlier.folder.join(part.file_name())), earlier.periods()));
            match rows {
                Some((Ok(Some(before)), periods)) => files.put(part.file_name(), |out| {
                    out.write_all(&before)?;
                    export.write_after(part, periods, out)
                }),
                Some((Err(error), _)) => {
                    files.fail(EngineError::io("read", part.file_name(), error));
                }
                _ if export.parts().contains(&part) => {
                    files.put(part.file_name(), |out| export.write(part, out));
                }
                _ => files.take_away(part.file_name()),
            }
        }
        if self.graphs {
            pages(&mut files, run, report);
        } else {
            let views = View::ALL.map(View::file_name);
            views.into_iter().chain([html::INDEX_FILE]).for_each(|name| files.take_away(name));
        }
        let progress = export.progress(state, earlier.map(|earlier| &earlier.progress));
        files.put(PROGRESS_FILE, |out| write_json(&progress, out));
        files.failed.map_or(Ok(files.written), Err)
    }
}

/// An earlier run's table, ready for more rows; `None` if it has none.
fn rows(place: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(place) {
        Ok(mut text) => {
            if text.last().is_some_and(|last| *last != b'\n') {
                text.push(b'\n');
            }
            Ok(Some(text).filter(|text| !text.is_empty()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn pages(files: &mut Files<'_>, run: &Run, report: &Report) {
    files.put(html::INDEX_FILE, |out| html::write(run, report, None, out));
    for view in View::ALL {
        files.put(view.file_name(), |out| html::write(run, report, Some(view), out));
    }
}

/// Files on their way into a folder.
struct Files<'a> {
    folder: &'a Path,
    written: Vec<&'static str>,
    failed: Option<EngineError>,
}

impl Files<'_> {
    /// Writes one whole, or leaves what was there.
    fn put(&mut self, name: &'static str, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
        match to_file(&self.folder.join(name), true, |mut file: &File| write(&mut file)) {
            Ok(()) => self.written.push(name),
            Err(error) => self.fail(error),
        }
    }

    /// A file of an earlier run that this one has no rows for would be taken for its own.
    fn take_away(&mut self, name: &'static str) {
        let place = self.folder.join(name);
        match fs::remove_file(&place) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                self.fail(EngineError::io("remove", place, error));
            }
            _ => {}
        }
    }

    fn fail(&mut self, error: EngineError) {
        self.failed.get_or_insert(error);
    }
}

fn same(one: &Path, other: &Path) -> bool {
    match (fs::canonicalize(one), fs::canonicalize(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use onbeat_shared::log::sample_users;
    use serde_json::{Value, json};

    use super::*;

    fn run() -> Run {
        Run::read(&sample_users::log(1, 6)).expect("a log")
    }

    fn prepare(
        folder: &Path,
        earlier: Option<Earlier<Value>>,
    ) -> Result<Results<Value>, EngineError> {
        Results::prepare(folder, true, earlier, Path::new("run.beat"), false)
    }

    fn write(results: &Results<Value>, run: &Run) -> Vec<&'static str> {
        let report = report(run, &ReportOptions::default());
        results.write(run, &report, Some(json!({"next": 7}))).expect("files")
    }

    /// A folder with the files of a run.
    fn left() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("results");
        write(&prepare(&place, None).expect("free"), &run());
        (folder, place)
    }

    #[test]
    fn a_run_that_was_killed_can_be_gone_on_from() {
        let folder = tempfile::tempdir().expect("a folder");
        let run = run();
        let gone = folder.path().join("gone.beat");
        let results = Results::prepare(folder.path(), true, None, &gone, false);
        let mut results = results.expect("free");
        results.keep(&run.manifest, json!({"next": 1})).expect("a file");
        results.keep(&run.manifest, json!({"next": 2})).expect("replaced");
        let earlier = Earlier::<Value>::read(folder.path()).expect("a state");
        assert_eq!((earlier.state(), earlier.periods()), (Some(&json!({"next": 2})), 0));
        assert_eq!(earlier.equal(), &Equal::of(&run.manifest));
        let words = complete::<Value>(folder.path()).expect("nothing is written");
        let words = words.expect("something to say");
        assert!(words.contains("in no table: ") && words.contains("gone.beat"), "{words}");
        // Its rows were never written; those of the run that goes on are the first.
        let results = prepare(folder.path(), Some(earlier)).expect("ours");
        write(&results, &run);
        let rows = lines(folder.path(), Part::Requests);
        assert_eq!(rows.len(), 1 + run.requests.len());
    }

    /// A killed run left its log: its rows are made from that before another goes on, wherever that
    /// one's files go, and a second kill loses none of them.
    #[test]
    fn the_rows_of_a_killed_run_are_made_from_its_log() {
        let folder = tempfile::tempdir().expect("a folder");
        let (first, second) = (folder.path().join("first"), folder.path().join("second"));
        let log = folder.path().join("killed.beat");
        fs::write(&log, sample_users::log(1, 6)).expect("room");
        let killed = |place: &Path, earlier| {
            let results = Results::prepare(place, true, earlier, &log, true);
            let mut results = results.expect("forced");
            results.keep(&run().manifest, json!({"next": 3})).expect("a file");
        };
        killed(&first, None);
        assert!(!first.join(Part::Requests.file_name()).exists());
        let words = complete::<Value>(&first).expect("files").expect("something to say");
        assert!(words.contains("was killed: its ") && words.contains("killed.beat"), "{words}");
        let requests = lines(&first, Part::Requests).len() - 1;
        assert_eq!(requests, run().requests.len());
        assert_eq!(complete::<Value>(&first).expect("nothing to do"), None);
        let earlier = Earlier::<Value>::read(&first).expect("a run to go on from");
        assert_eq!(earlier.state(), Some(&json!({"next": 3})));
        assert_eq!(earlier.periods() as usize, periods());
        assert_eq!(earlier.progress.onbeat.run_ids, [run().manifest.run_id]);
        // The other folder has files of another run, which are replaced.
        let foreign = Run::read(&sample_users::log(2, 9)).expect("a log");
        write(&prepare(&second, None).expect("free"), &foreign);
        killed(&second, Some(earlier));
        // Killed once more, while its tables were written.
        let table = Part::Requests.file_name();
        let rows = fs::read_to_string(second.join(table)).expect("those of the first");
        fs::write(second.join(table), format!("{rows}User-001,0\n")).expect("room");
        complete::<Value>(&second).expect("files").expect("something to say");
        assert_eq!(lines(&second, Part::Requests).len() - 1, 2 * requests);
        let twice = Earlier::<Value>::read(&second).expect("a run to go on from");
        assert_eq!(twice.periods() as usize, 2 * periods());
        assert_eq!(twice.progress.onbeat.run_ids.len(), 2);
        let third = folder.path().join("third");
        killed(&third, Some(twice));
        let place = third.join(PROGRESS_FILE);
        let text = fs::read_to_string(&place).expect("a file");
        let id = &run().manifest.run_id;
        fs::write(&place, text.replace(&format!("\"{id}\""), "\"other\"")).expect("room");
        let words = complete::<Value>(&third).expect("no file").expect("something to say");
        assert!(words.ends_with("killed.beat is the log of another run"), "{words}");
    }

    #[test]
    fn tables_that_are_brought_along_or_cut_go_through_no_link_and_are_private() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let (folder, place) = left();
        let table = place.join(Part::Requests.file_name());
        fs::set_permissions(&table, fs::Permissions::from_mode(0o644)).expect("ours");
        let at = |name: &str| folder.path().join(name);
        let (other, precious, log) = (at("other"), at("precious"), at("run.beat"));
        fs::write(&precious, "precious").expect("room");
        let keep = || {
            let earlier = Earlier::<Value>::read(&place).expect("a run to go on from");
            let results = Results::prepare(&other, true, Some(earlier), &log, true);
            results.expect("forced").keep(&run().manifest, json!({"next": 1}))
        };
        let brought = other.join(Part::Requests.file_name());
        keep().expect("room");
        let mode = fs::metadata(&brought).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::remove_file(&brought).expect("ours");
        symlink(&precious, &brought).expect("a link");
        for refused in [keep(), cut(&brought, Some(3))] {
            let words = refused.expect_err("through a link").to_string();
            assert!(words.contains("is not a regular file"), "{words}");
        }
        assert_eq!(fs::read(&precious).expect("there"), b"precious");
    }

    fn lines(folder: &Path, part: Part) -> Vec<String> {
        let text = fs::read_to_string(folder.join(part.file_name())).expect("a table");
        text.lines().map(str::to_owned).collect()
    }

    fn periods() -> usize {
        report(&run(), &ReportOptions::default()).periods.map_or(0, |periods| periods.len())
    }

    #[test]
    fn a_run_leaves_all_its_files_and_another_does_not_replace_them_unasked() {
        let (_folder, place) = left();
        for name in names() {
            assert!(place.join(name).is_file(), "{name}");
        }
        assert_eq!(fs::read_dir(&place).expect("readable").count(), names().count());
        let log = Path::new("run.beat");
        let again = |force| Results::<Value>::prepare(&place, true, None, log, force);
        let error = again(false).expect_err("they are there");
        assert_eq!(error.exit_code(), 2);
        let words = error.to_string();
        assert!(words.contains("--force") && words.contains("--resume"), "{words}");
        again(true).expect("asked for");
    }

    #[test]
    fn without_graphs_there_is_no_page() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = Path::new("run.beat");
        let results = Results::prepare(folder.path(), false, None, log, false).expect("free");
        let names = write(&results, &run());
        assert!(names.iter().all(|name| !name.ends_with(".html")), "{names:?}");
        assert_eq!(names.last(), Some(&PROGRESS_FILE), "it says that the rest is there");
        let (_folder, place) = left();
        let results = Results::prepare(&place, false, None, log, true).expect("asked for");
        write(&results, &run());
        assert!(!place.join(html::INDEX_FILE).exists(), "it showed another run");
    }

    #[test]
    fn a_run_that_goes_on_adds_its_rows_to_the_earlier_ones() {
        let (folder, place) = left();
        let rows = lines(&place, Part::Requests).len() - 1;
        let earlier = Earlier::<Value>::read(&place).expect("a run to go on from");
        assert_eq!(earlier.state(), Some(&json!({"next": 7})));
        assert_eq!(earlier.periods() as usize, periods());
        assert_eq!(earlier.equal(), &Equal::of(&run().manifest));
        let results = prepare(&place, Some(earlier));
        write(&results.expect("its own folder"), &run());
        assert_eq!(lines(&place, Part::Requests).len(), 2 * rows + 1);
        let table = lines(&place, Part::Periods);
        let numbers: Vec<_> = table[1..].iter().map(|line| line.split(',').next()).collect();
        let expected: Vec<String> = (1..=2 * periods()).map(|number| number.to_string()).collect();
        assert_eq!(numbers, expected.iter().map(|one| Some(one.as_str())).collect::<Vec<_>>());
        let twice = Earlier::<Value>::read(&place).expect("goes on from both");
        assert_eq!(twice.periods() as usize, 2 * periods());
        // Into another folder, the earlier rows come along.
        let other = folder.path().join("other");
        let results = prepare(&other, Some(twice)).expect("free");
        write(&results, &run());
        assert_eq!(lines(&other, Part::Requests).len(), 3 * rows + 1);
    }

    #[test]
    fn what_cannot_be_gone_on_from_is_refused_with_the_reason() {
        let words = |folder: &Path| {
            let error = Earlier::<Value>::read(folder).expect_err("no run to go on from");
            assert_eq!(error.exit_code(), 2);
            error.to_string()
        };
        let empty = tempfile::tempdir().expect("a folder");
        assert!(words(empty.path()).contains("there is no progress.json in it"));
        let tools = "{\"parameters\": {}, \"completed\": true}";
        fs::write(empty.path().join(PROGRESS_FILE), tools).expect("room");
        assert!(words(empty.path()).contains("kv-cache-tester's own has no state"));
        let (_folder, place) = left();
        fs::write(place.join(Part::Periods.file_name()), "period_number\n1\n").expect("room");
        assert!(words(&place).contains("summary_trace_replay.csv has other columns"));
        let (_folder, place) = left();
        let results = Results::<Value>::prepare(&place, true, None, Path::new("run.beat"), true);
        let report = report(&run(), &ReportOptions::default());
        results.expect("asked for").write(&run(), &report, None).expect("files");
        assert!(words(&place).contains("has no state"));
    }
}
