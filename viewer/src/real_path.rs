//! Where a path leads in the end, so that one file is not opened twice by two of its names.
//!
//! Links and `..` are followed by the operating system, which may mean a slow disk; so it is asked
//! on a thread of its own, and until it has answered two names are two files.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
};

use crossbeam::channel::{Receiver, bounded};

/// A path whose end is asked for.
#[derive(Debug)]
pub struct RealPath {
    answer: Receiver<PathBuf>,
    known: Option<PathBuf>,
}

impl RealPath {
    /// Asks; `wake` is called when there is an answer.
    #[must_use]
    pub fn ask(path: PathBuf, wake: impl FnOnce() + Send + 'static) -> Self {
        let (sender, answer) = bounded(1);
        let thread = thread::Builder::new().name("onbeat-path".to_owned());
        // Without a thread, or an answer, a path is only itself.
        let _ = thread.spawn(move || {
            if let Ok(real) = fs::canonicalize(path) {
                let _ = sender.send(real);
                wake();
            }
        });
        Self { answer, known: None }
    }

    /// Takes in the answer, if it has come.
    pub fn poll(&mut self) {
        if let Ok(real) = self.answer.try_recv() {
            self.known = Some(real);
        }
    }

    /// Where the path leads, once that is known.
    #[must_use]
    pub fn known(&self) -> Option<&Path> {
        self.known.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn two_names_of_one_file_lead_to_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("run.beat");
        fs::write(&file, "x").expect("written");
        let link = folder.path().join("latest.beat");
        std::os::unix::fs::symlink(&file, &link).expect("linked");
        let dotted = folder.path().join("../").join(folder.path().file_name().expect("a name"));
        let real = |path: PathBuf| {
            let (sender, woken) = bounded(1);
            let mut real = RealPath::ask(path, move || sender.send(()).expect("we listen"));
            woken.recv().expect("an answer");
            real.poll();
            real.known().expect("known").to_owned()
        };
        assert_eq!(real(link), real(file));
        assert_eq!(real(dotted), real(folder.path().to_owned()));
    }

    #[test]
    fn what_is_not_there_leads_nowhere() {
        let mut real = RealPath::ask(PathBuf::from("/no/such/file.beat"), || {});
        real.poll();
        assert_eq!(real.known(), None);
    }
}
