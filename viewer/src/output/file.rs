//! Where something is written: which name to propose, what must not be replaced, and writing that
//! leaves either a whole file or nothing.
//!
//! A file is written beside its place under another name, flushed to the disk, and moved into its
//! place only then; like the run it comes from, only its owner may read it. No run that is open is
//! ever replaced, and another file only when that was asked for. Refusals say what is wrong in
//! words for the person who typed the path.

use std::{
    ffi::OsString,
    fmt,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use onbeat_shared::foreign::shown_path;

use crate::platform::create_private;

/// Names that are tried for a file that is being written.
const NAMES_MAX: u32 = 1_000;

/// Why a file was not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is a run that is open.
    Run(PathBuf),
    /// A folder has this name.
    Folder(PathBuf),
    /// Something that is no regular file has this name.
    Special(PathBuf),
    /// There is such a file, and it was not to be replaced.
    Exists(PathBuf),
    /// The folder it should go to is not there.
    NoFolder(PathBuf),
    /// We may not write there.
    Forbidden(PathBuf),
    /// There is no room.
    Full(PathBuf),
    /// The user stopped it.
    Stopped,
    /// The operating system refused, for another reason.
    Io(PathBuf, String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, words: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(path) => write!(
                words,
                "{} is a run that is open and is not replaced; name another file.",
                shown_path(path)
            ),
            Self::Folder(path) => {
                write!(words, "{} is a folder; name a file in it.", shown_path(path))
            }
            Self::Special(path) => {
                write!(words, "{} is not a regular file; name another.", shown_path(path))
            }
            Self::Exists(path) => write!(words, "{} exists already.", shown_path(path)),
            Self::NoFolder(path) => {
                write!(words, "There is no folder {}.", shown_path(folder_of(path)))
            }
            Self::Forbidden(path) => {
                write!(words, "{} may not be written; choose a folder of yours.", shown_path(path))
            }
            Self::Full(path) => write!(
                words,
                "{} was not written: the disk is full. Make room or choose another disk.",
                shown_path(path)
            ),
            Self::Stopped => words.write_str("Stopped; nothing was written."),
            Self::Io(path, reason) => {
                write!(words, "{} was not written: {reason}", shown_path(path))
            }
        }
    }
}

/// Marks an error as the user's wish to stop.
#[derive(Debug)]
pub(super) struct Stopped;

impl fmt::Display for Stopped {
    fn fmt(&self, words: &mut fmt::Formatter<'_>) -> fmt::Result {
        words.write_str("stopped")
    }
}

impl std::error::Error for Stopped {}

impl Refusal {
    fn of(path: &Path, error: &io::Error) -> Self {
        let path = path.to_owned();
        if error.get_ref().is_some_and(|cause| cause.is::<Stopped>()) {
            return Self::Stopped;
        }
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::NoFolder(path),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::Forbidden(path)
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full(path),
            io::ErrorKind::AlreadyExists => Self::Exists(path),
            io::ErrorKind::IsADirectory => Self::Folder(path),
            _ => Self::Io(path, error.to_string()),
        }
    }
}

/// A path with the right end, if it has none and is not a folder.
#[must_use]
pub fn ended(path: &Path, extension: &str) -> PathBuf {
    if path.extension().is_some() || path.file_name().is_none() || path.is_dir() {
        return path.to_owned();
    }
    path.with_extension(extension)
}

/// Whether a file may be written: `true` if it would replace one.
///
/// # Errors
/// If it is one of the open runs, or no regular file.
pub fn check(path: &Path, runs: &[PathBuf]) -> Result<bool, Refusal> {
    let same = |run: &PathBuf| match (fs::canonicalize(path), fs::canonicalize(run)) {
        (Ok(path), Ok(run)) => path == run,
        // What cannot be followed is compared as it is written.
        _ => path == run.as_path(),
    };
    if runs.iter().any(same) {
        return Err(Refusal::Run(path.to_owned()));
    }
    if path.file_name().is_none() || ends_with_separator(path) {
        return Err(Refusal::Folder(path.to_owned()));
    }
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => Err(Refusal::Folder(path.to_owned())),
        Ok(found) if !found.is_file() => Err(Refusal::Special(path.to_owned())),
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = folder_of(path);
            if folder.is_dir() { Ok(false) } else { Err(Refusal::NoFolder(path.to_owned())) }
        }
        Err(error) => Err(Refusal::of(path, &error)),
    }
}

fn ends_with_separator(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    bytes.last().is_some_and(|&last| std::path::is_separator(char::from(last)))
}

/// Writes a file whole, or leaves what was there. Says how many bytes it has.
///
/// # Errors
/// If there is such a file and it is not to be replaced, or if it cannot be written.
pub fn write(
    path: &Path,
    replace: bool,
    fill: impl FnOnce(&File) -> io::Result<()>,
) -> Result<u64, Refusal> {
    let refuse = |error: io::Error| Refusal::of(path, &error);
    if !replace && fs::symlink_metadata(path).is_ok() {
        return Err(Refusal::Exists(path.to_owned()));
    }
    let (file, beside) = create_beside(path).map_err(refuse)?;
    let written = fill(&file).and_then(|()| {
        file.sync_all()?;
        let bytes = file.metadata()?.len();
        drop(file);
        if replace {
            fs::rename(&beside, path)?
        } else {
            settle(&beside, path)?
        }
        Ok(bytes)
    });
    written.map_err(|error| {
        // Half a file would be taken for a whole one. If even this fails, the error below stands.
        let _ = fs::remove_file(&beside);
        refuse(error)
    })
}

/// Gives a finished file its name, unless another has taken that meanwhile.
fn settle(beside: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(beside, path) {
        Ok(()) => {
            // The file has its name; should the other one stay, nothing is lost.
            let _ = fs::remove_file(beside);
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // Not every file system gives a file two names.
        Err(_) => fs::rename(beside, path),
    }
}

/// Creates a file under the name that it has while it is written: one that nobody left there, as in
/// a container every process may have the same number.
fn create_beside(path: &Path) -> io::Result<(File, PathBuf)> {
    let mut number = 0;
    loop {
        let mut name = OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        let more = if number == 0 { String::new() } else { format!("-{number}") };
        name.push(format!(".{}{more}.part", std::process::id()));
        let beside = path.with_file_name(name);
        match create_private(&beside) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < NAMES_MAX => {
                number += 1;
            }
            created => return created.map(|file| (file, beside)),
        }
    }
}

/// The folder a file is in.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A name that is free, for something about a run: `run-latency.png`, or with a number. In the
/// run's folder, or in `home` if that folder may not be written to.
#[must_use]
pub fn proposal(run: &Path, about: &str, extension: &str, home: Option<&Path>) -> PathBuf {
    let folder = folder_of(run);
    let read_only = fs::metadata(folder).is_ok_and(|found| found.permissions().readonly());
    match home {
        Some(home) if read_only => free(home, run, about, extension),
        _ => free(folder, run, about, extension),
    }
}

/// The proposal in another folder.
#[must_use]
pub fn free(folder: &Path, run: &Path, about: &str, extension: &str) -> PathBuf {
    let place = |number: u32| {
        let mut name = run.file_stem().unwrap_or(run.as_os_str()).to_owned();
        if !about.is_empty() {
            name.push(format!("-{about}"));
        }
        if number > 1 {
            name.push(format!("-{number}"));
        }
        name.push(format!(".{extension}"));
        if folder == Path::new(".") { PathBuf::from(name) } else { folder.join(name) }
    };
    let is_free = |path: &PathBuf| fs::symlink_metadata(path).is_err();
    (1..1_000).map(place).find(is_free).unwrap_or_else(|| place(1))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary folder")
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("readable");
        let name = |entry: io::Result<fs::DirEntry>| {
            entry.expect("an entry").file_name().to_string_lossy().into_owned()
        };
        let mut names: Vec<_> = entries.map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_whole_or_not_there() {
        let folder = folder();
        let path = folder.path().join("a.csv");
        let bytes = write(&path, false, |mut file| file.write_all(b"whole"));
        assert_eq!(bytes, Ok(5));
        let torn = |mut file: &File| {
            file.write_all(b"half")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        };
        assert_eq!(write(&path, true, torn), Err(Refusal::Full(path.clone())));
        assert_eq!(fs::read(&path).expect("kept"), b"whole");
        let other = folder.path().join("b.csv");
        assert_eq!(write(&other, false, torn), Err(Refusal::Full(other)));
        assert_eq!(names(folder.path()), ["a.csv"], "nothing is left beside it");
    }

    #[test]
    fn a_file_is_replaced_only_when_asked_even_if_it_came_meanwhile() {
        let folder = folder();
        let path = folder.path().join("a.csv");
        fs::write(&path, "mine").expect("room");
        let exists = Err(Refusal::Exists(path.clone()));
        assert_eq!(write(&path, false, |_| Ok(())), exists);
        let late = folder.path().join("late.csv");
        let meanwhile = write(&late, false, |_| fs::write(&late, "other's"));
        assert_eq!(meanwhile, Err(Refusal::Exists(late.clone())));
        assert_eq!(fs::read(&late).expect("kept"), b"other's");
        assert_eq!(write(&path, true, |mut file| file.write_all(b"new!!")), Ok(5));
        assert_eq!(fs::read(&path).expect("replaced"), b"new!!");
        assert_eq!(names(folder.path()), ["a.csv", "late.csv"]);
    }

    #[test]
    fn what_an_earlier_process_left_is_in_nobodys_way() {
        let folder = folder();
        let path = folder.path().join("a.csv");
        let (_, left) = create_beside(&path).expect("room");
        assert_eq!(write(&path, false, |mut file| file.write_all(b"whole")), Ok(5));
        let left = left.file_name().expect("a name").to_string_lossy().into_owned();
        assert_eq!(names(folder.path()), [left, "a.csv".to_owned()]);
    }

    #[test]
    fn runs_folders_and_devices_are_refused() {
        let folder = folder();
        let run = folder.path().join("run.beat");
        fs::write(&run, "a run").expect("room");
        let runs = [run.clone()];
        let again = folder.path().join(".").join("run.beat");
        for path in [&run, &again] {
            assert_eq!(check(path, &runs), Err(Refusal::Run(path.clone())));
        }
        assert_eq!(check(folder.path(), &runs), Err(Refusal::Folder(folder.path().to_owned())));
        let named_like_a_folder = folder.path().join("sub/");
        assert!(matches!(check(&named_like_a_folder, &runs), Err(Refusal::Folder(_))));
        let nowhere = folder.path().join("none/a.png");
        let refusal = check(&nowhere, &runs).expect_err("no folder");
        assert_eq!(refusal, Refusal::NoFolder(nowhere));
        assert!(refusal.to_string().ends_with("none."), "{refusal}");
        #[cfg(unix)]
        {
            let device = PathBuf::from("/dev/full");
            assert_eq!(check(&device, &runs), Err(Refusal::Special(device)));
            let link = folder.path().join("link.png");
            std::os::unix::fs::symlink(&run, &link).expect("a link");
            assert_eq!(check(&link, &runs), Err(Refusal::Run(link.clone())));
        }
        assert_eq!(ended(folder.path(), "png"), folder.path(), "a folder stays one");
        assert_eq!(ended(&folder.path().join("a"), "png"), folder.path().join("a.png"));
        assert_eq!(ended(Path::new("b.PNG"), "png"), Path::new("b.PNG"));
        assert_eq!(check(&folder.path().join("a.png"), &runs), Ok(false));
        fs::write(folder.path().join("a.png"), "x").expect("room");
        assert_eq!(check(&folder.path().join("a.png"), &runs), Ok(true));
    }

    #[test]
    fn proposals_are_free_and_stand_beside_the_run() {
        let folder = folder();
        let run = folder.path().join("run.beat");
        let propose = || proposal(&run, "latency", "png", None);
        assert_eq!(propose(), folder.path().join("run-latency.png"));
        fs::write(propose(), "x").expect("room");
        assert_eq!(propose(), folder.path().join("run-latency-2.png"));
        let here = proposal(Path::new("run.beat"), "", "html", None);
        assert_eq!(here, Path::new("run.html"), "no folder is put before a plain name");
    }

    #[test]
    fn every_refusal_is_a_sentence() {
        let path = || PathBuf::from("/a/b.png");
        for refusal in [
            Refusal::Run(path()),
            Refusal::Folder(path()),
            Refusal::Special(path()),
            Refusal::Exists(path()),
            Refusal::NoFolder(path()),
            Refusal::Forbidden(path()),
            Refusal::Full(path()),
            Refusal::Stopped,
        ] {
            let words = refusal.to_string();
            assert!(words.ends_with('.') && words.len() > 15, "{words}");
        }
    }
}
