//! Reads the settings file once, before there is a window, and writes it from a thread of its own.
//!
//! A frame never waits for the disk: [`Store::keep`] only notes what is to be written, and changes
//! within a short pause become one write. The file is replaced as a whole, so that a crash leaves
//! the old one or the new one; only its owner may read it. Nothing is written that did not change,
//! and a file that a later viewer wrote is left alone. Without a path nothing is read or written.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use onbeat_shared::foreign::shown_path;

use super::{BYTES_MAX, Settings, Unusable, merged};
use crate::platform;

/// How long changes are gathered before they are written.
const PAUSE: Duration = Duration::from_millis(400);
/// How long the end of the program waits for the last write, at most.
const LAST_WRITE: Duration = Duration::from_secs(2);

/// Keeps settings in a file, or nowhere.
#[derive(Debug, Default)]
pub struct Store {
    desk: Option<Arc<Desk>>,
    /// What the file holds, or will.
    kept: Settings,
    started: bool,
}

/// What was found when the window began.
#[derive(Debug, Default)]
pub struct Found {
    /// The settings, or the defaults.
    pub settings: Settings,
    /// Why they are the defaults, if there is more to say than that there was no file.
    pub words: Option<String>,
}

#[derive(Debug)]
struct Desk {
    path: PathBuf,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    wanted: Option<Settings>,
    /// Recent runs as the file had them when we last saw it.
    base: Vec<PathBuf>,
    closed: bool,
    /// The thread has ended, or never ran.
    done: bool,
    failed: Option<String>,
}

impl Store {
    /// Reads the file at a path, and will write there; `None` means neither.
    #[must_use]
    pub fn open(path: Option<PathBuf>) -> (Self, Found) {
        let Some(path) = path else { return (Self::default(), Found::default()) };
        let read = read(&path);
        let mut writable = true;
        let name = shown_path(&path);
        let (settings, words) = match read {
            Ok(None) => (Settings::default(), None),
            Ok(Some(Ok(settings))) => (settings, None),
            Ok(Some(Err(Unusable::Damaged(reason)))) => {
                let words = format!(
                    "The settings in {name} are damaged ({reason}), so the \
                    defaults are used. The next change of a setting replaces the file."
                );
                (Settings::default(), Some(words))
            }
            Ok(Some(Err(Unusable::Newer(version)))) => {
                writable = false;
                let words = format!(
                    "A later viewer wrote {name} (version {version}). The defaults \
                    are used, and nothing is saved."
                );
                (Settings::default(), Some(words))
            }
            Err(error) => {
                writable = false;
                let words = format!(
                    "The settings in {name} could not be read ({error}). The \
                    defaults are used, and nothing is saved."
                );
                (Settings::default(), Some(words))
            }
        };
        let state = State { base: settings.recent.clone(), ..State::default() };
        let desk = Desk { path, state: Mutex::new(state), changed: Condvar::new() };
        let desk = writable.then(|| Arc::new(desk));
        (Self { desk, kept: settings.clone(), started: false }, Found { settings, words })
    }

    /// Notes settings that are to be in the file from now on. Costs a comparison when they are.
    pub fn keep(&mut self, settings: &Settings) {
        if self.kept == *settings {
            return;
        }
        self.kept.clone_from(settings);
        let Some(desk) = &self.desk else { return };
        desk.lock().wanted = Some(settings.clone());
        desk.changed.notify_all();
        if !self.started {
            self.started = true;
            let desk = Arc::clone(desk);
            let thread = thread::Builder::new().name("onbeat-settings".to_owned());
            if let Err(error) = thread.spawn(move || desk.serve()) {
                self.started = false;
                // No thread, no file; what is remembered is only remembered in this window.
                if let Some(desk) = self.desk.take() {
                    desk.lock().failed = Some(error.to_string());
                }
            }
        }
    }

    /// Why the file could not be written, once.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        // A frame must not wait for a thread that is busy: it holds the lock for moments only, and
        // never while it writes.
        self.desk.as_ref().and_then(|desk| desk.lock().failed.take())
    }
}

impl Drop for Store {
    /// Lets the last change reach the disk, unless the disk takes too long.
    fn drop(&mut self) {
        let Some(desk) = self.desk.as_ref().filter(|_| self.started) else { return };
        let mut state = desk.lock();
        state.closed = true;
        desk.changed.notify_all();
        let ended = desk.changed.wait_timeout_while(state, LAST_WRITE, |state| !state.done);
        drop(ended);
    }
}

impl Desk {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread's life: waits for a change, gathers more of them, writes.
    fn serve(&self) {
        let mut state = self.lock();
        loop {
            state = self
                .changed
                .wait_while(state, |state| state.wanted.is_none() && !state.closed)
                .unwrap_or_else(PoisonError::into_inner);
            if !state.closed {
                state = match self.changed.wait_timeout_while(state, PAUSE, |state| !state.closed) {
                    Ok((state, _)) => state,
                    Err(poisoned) => poisoned.into_inner().0,
                };
            }
            let Some(settings) = state.wanted.take() else { break };
            let base = std::mem::take(&mut state.base);
            drop(state);
            let written = write(&self.path, settings, &base);
            state = self.lock();
            match written {
                Ok(recent) => state.base = recent,
                Err(error) => {
                    state.base = base;
                    let name = shown_path(&self.path);
                    state.failed = Some(format!("The settings were not saved in {name}: {error}."));
                }
            }
        }
        state.done = true;
        drop(state);
        self.changed.notify_all();
    }
}

/// What a file holds; `None` when there is none.
fn read(path: &Path) -> io::Result<Option<Result<Settings, Unusable>>> {
    let metadata = match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found?,
    };
    // A pipe would make us wait, a device may never end.
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut text = Vec::new();
    File::open(path)?.take(BYTES_MAX as u64 + 1).read_to_end(&mut text)?;
    Ok(Some(Settings::parse(&text)))
}

/// Writes the settings, with the runs that another window has added; says which runs those are now.
fn write(path: &Path, mut settings: Settings, base: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    // Who keeps settings elsewhere and a link to them here wants them written there.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    match read(&path)? {
        Some(Ok(theirs)) => settings.recent = merged(&settings.recent, base, &theirs.recent),
        Some(Err(Unusable::Newer(_))) => {
            return Err(io::Error::other("a later viewer has written it meanwhile"));
        }
        Some(Err(Unusable::Damaged(_))) | None => {}
    }
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    platform::create_private_folder(folder)?;
    let beside = folder.join(format!(".viewer-{}.json", std::process::id()));
    // Left over from a process of the same number that was ended while it wrote.
    let _ = fs::remove_file(&beside);
    let mut file = platform::create_private(&beside)?;
    let written = file
        .write_all(settings.text().as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| platform::replace(&beside, &path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written.map(|()| settings.recent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::ThemeChoice;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a folder")
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        let name = |entry: io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
        entries.map(name).map(|name| name.to_string_lossy().into_owned()).collect()
    }

    fn with_run(name: &str) -> Settings {
        Settings { recent: vec![PathBuf::from(name)], ..Settings::default() }
    }

    #[test]
    fn without_a_path_nothing_is_kept() {
        let (mut store, found) = Store::open(None);
        assert_eq!((found.settings, found.words), (Settings::default(), None));
        store.keep(&with_run("/a.beat"));
        assert_eq!(store.failure(), None);
    }

    #[test]
    fn what_changed_is_in_the_file_when_the_window_closes() {
        let folder = folder();
        let path = folder.path().join("deeper/viewer.json");
        let (mut store, found) = Store::open(Some(path.clone()));
        assert_eq!(found.words, None);
        store.keep(&Settings::default());
        drop(store);
        assert!(!path.exists(), "nothing had changed");
        let (mut store, _) = Store::open(Some(path.clone()));
        let dark = Settings { theme: ThemeChoice::Dark, ..with_run("/a.beat") };
        store.keep(&with_run("/a.beat"));
        store.keep(&dark);
        drop(store);
        let (_, found) = Store::open(Some(path.clone()));
        assert_eq!(found.settings, dark);
        assert_eq!(
            names(path.parent().expect("a folder")),
            ["viewer.json"],
            "nothing else is left"
        );
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = path.metadata().expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn two_windows_share_a_file() {
        let folder = folder();
        let path = folder.path().join("viewer.json");
        let (mut one, _) = Store::open(Some(path.clone()));
        let (mut two, _) = Store::open(Some(path.clone()));
        one.keep(&with_run("/one.beat"));
        drop(one);
        two.keep(&with_run("/two.beat"));
        drop(two);
        let (_, found) = Store::open(Some(path));
        let expected: Vec<PathBuf> = vec!["/two.beat".into(), "/one.beat".into()];
        assert_eq!(found.settings.recent, expected);
    }

    #[test]
    fn a_damaged_file_gives_defaults_and_a_word_and_is_replaced_by_the_next_change() {
        let folder = folder();
        let path = folder.path().join("viewer.json");
        fs::write(&path, "{ not json").expect("written");
        let (mut store, found) = Store::open(Some(path.clone()));
        assert_eq!(found.settings, Settings::default());
        assert!(found.words.expect("a word").contains("viewer.json are damaged"));
        store.keep(&with_run("/a.beat"));
        drop(store);
        let (_, found) = Store::open(Some(path));
        assert_eq!((found.settings, found.words), (with_run("/a.beat"), None));
    }

    #[test]
    fn a_later_viewers_file_and_what_is_no_file_are_left_alone() {
        let folder = folder();
        let path = folder.path().join("viewer.json");
        let later = r#"{"onbeat_viewer_settings": 9}"#;
        fs::write(&path, later).expect("written");
        let (mut store, found) = Store::open(Some(path.clone()));
        assert!(found.words.expect("a word").contains("A later viewer wrote"));
        store.keep(&with_run("/a.beat"));
        drop(store);
        assert_eq!(fs::read_to_string(&path).expect("there"), later);
        let (mut store, found) = Store::open(Some(folder.path().to_owned()));
        assert!(found.words.expect("a word").contains("not a regular file"));
        store.keep(&with_run("/a.beat"));
        drop(store);
        assert_eq!(names(folder.path()), ["viewer.json"]);
    }

    #[test]
    fn a_place_that_takes_no_file_is_told() {
        let folder = folder();
        let blocked = folder.path().join("blocked");
        fs::write(&blocked, "a file where a folder should be").expect("written");
        let desk = Desk {
            path: blocked.join("viewer.json"),
            state: Mutex::new(State {
                wanted: Some(with_run("/a.beat")),
                closed: true,
                ..State::default()
            }),
            changed: Condvar::new(),
        };
        desk.serve();
        let state = desk.lock();
        assert!(state.done);
        assert!(state.failed.as_ref().expect("told").contains("were not saved in"));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link() {
        let folder = folder();
        let (link, real) = (folder.path().join("viewer.json"), folder.path().join("dotfiles.json"));
        fs::write(&real, Settings::default().text()).expect("written");
        std::os::unix::fs::symlink(&real, &link).expect("linked");
        let (mut store, _) = Store::open(Some(link.clone()));
        store.keep(&with_run("/a.beat"));
        drop(store);
        assert!(link.is_symlink());
        assert!(fs::read_to_string(&real).expect("there").contains("a.beat"));
    }
}
