//! The runs that were opened last, and which of them are still there.
//!
//! Whether a file is there is asked on threads of its own, one for each file, so that a disk that
//! does not answer holds up neither the window nor the other files. Until an answer has come a file
//! counts as there: opening it will tell.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use crate::settings::RECENT_MAX;

/// The runs that were opened last.
#[derive(Debug, Default)]
pub struct Recent {
    paths: Vec<PathBuf>,
    known: Known,
}

type Known = Arc<Mutex<HashMap<PathBuf, Presence>>>;

#[derive(Clone, Copy, Debug, Default)]
struct Presence {
    /// A thread is asking.
    asking: bool,
    gone: bool,
}

impl Recent {
    /// The list as it was remembered.
    #[must_use]
    pub fn new(paths: Vec<PathBuf>) -> Self {
        Self { paths, known: Known::default() }
    }

    /// A list of which it is known what is gone.
    #[must_use]
    pub fn known(runs: Vec<(PathBuf, bool)>) -> Self {
        let presence = |gone| Presence { asking: false, gone };
        let known = runs.iter().map(|(path, gone)| (path.clone(), presence(*gone))).collect();
        let paths = runs.into_iter().map(|(path, _)| path).collect();
        Self { paths, known: Arc::new(Mutex::new(known)) }
    }

    /// The runs, the latest first.
    #[must_use]
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Puts a run that was opened at the front.
    pub fn add(&mut self, path: &Path) {
        // Relative paths mean another file in another folder; what is no text cannot be kept.
        let Ok(path) = std::path::absolute(path) else { return };
        if path.to_str().is_none() {
            return;
        }
        self.paths.retain(|known| *known != path);
        lock(&self.known).remove(&path);
        self.paths.insert(0, path);
        self.paths.truncate(RECENT_MAX);
    }

    /// Forgets them all.
    pub fn clear(&mut self) {
        self.paths.clear();
        lock(&self.known).clear();
    }

    /// Whether a run is known to be no longer there.
    #[must_use]
    pub fn is_gone(&self, path: &Path) -> bool {
        lock(&self.known).get(path).is_some_and(|presence| presence.gone)
    }

    /// Asks about all of them anew; `wake` is called with each answer.
    pub fn look(&self, wake: impl Fn() + Clone + Send + 'static) {
        for path in &self.paths {
            let presence = &mut lock(&self.known);
            let presence = presence.entry(path.clone()).or_default();
            if presence.asking {
                continue;
            }
            let (path, wake, known) = (path.clone(), wake.clone(), Arc::clone(&self.known));
            let thread = thread::Builder::new().name("onbeat-recent".to_owned());
            // Where no thread can be had the file counts as there.
            let started = thread.spawn(move || {
                let gone = matches!(path.try_exists(), Ok(false));
                if let Some(presence) = lock(&known).get_mut(&path) {
                    *presence = Presence { asking: false, gone };
                }
                wake();
            });
            presence.asking = started.is_ok();
        }
    }

    /// Whether an answer is still to come; for tests and pictures.
    #[must_use]
    pub fn is_asking(&self) -> bool {
        lock(&self.known).values().any(|presence| presence.asking)
    }
}

/// A map of plain values is whole at every unlock.
fn lock(known: &Known) -> MutexGuard<'_, HashMap<PathBuf, Presence>> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_comes_first_and_once() {
        let mut recent = Recent::default();
        for i in 0..20 {
            recent.add(Path::new(&format!("/runs/{i}.beat")));
        }
        recent.add(Path::new("/runs/12.beat"));
        assert_eq!(recent.paths().len(), RECENT_MAX);
        assert_eq!(recent.paths()[0], Path::new("/runs/12.beat"));
        assert_eq!(recent.paths()[1], Path::new("/runs/19.beat"));
        assert_eq!(recent.paths().iter().filter(|path| path.ends_with("12.beat")).count(), 1);
        recent.clear();
        assert!(recent.paths().is_empty());
    }

    #[test]
    fn relative_paths_become_absolute() {
        let mut recent = Recent::default();
        recent.add(Path::new("a.beat"));
        assert!(recent.paths()[0].is_absolute());
    }

    #[test]
    fn what_is_gone_is_known_after_looking() {
        let folder = tempfile::tempdir().expect("a folder");
        let (there, gone) = (folder.path().join("there.beat"), folder.path().join("gone.beat"));
        std::fs::write(&there, "x").expect("written");
        let recent = Recent::new(vec![there.clone(), gone.clone()]);
        assert!(!recent.is_gone(&gone), "nobody has looked yet");
        recent.look(|| {});
        while recent.is_asking() {
            thread::yield_now();
        }
        assert!(!recent.is_gone(&there));
        assert!(recent.is_gone(&gone));
        std::fs::write(&gone, "x").expect("written");
        recent.look(|| {});
        while recent.is_asking() {
            thread::yield_now();
        }
        assert!(!recent.is_gone(&gone), "it came back");
    }
}
