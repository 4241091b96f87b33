//! Where a file may be written, and in which words it is said where it may not.
//!
//! Everything that makes a file of the user's choice asks here, so that a folder that is missing, a
//! folder where a file should be, a name that is taken and a disk that is full are said alike: the
//! path, what was found, and what would be right. Whether an output is read by the same command is
//! not known here.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use onbeat_shared::counted::grouped;
use onbeat_shared::foreign::shown_path;

use super::{EngineError, lacking};

/// Most bytes of a file's name: what Linux and nearly every file system allow.
const NAME_BYTES_MAX: usize = 255;

/// Whether a file that is there is to be replaced. Nothing is written or opened.
///
/// # Errors
/// When what is there is to stay, when a name is none of a file, and when the folder that it would
/// be in is not there.
pub fn check(path: &Path, force: bool) -> Result<bool, EngineError> {
    let shown = shown_path(path);
    if path == Path::new("-") {
        return Err(EngineError::Usage(
            "- is no file: only text goes to stdout, and it does where the option is left out; \
             write ./- for a file of that name"
                .to_owned(),
        ));
    }
    // A name that ends in a slash is a folder's, whether it is there or not.
    let ends_in_slash = path.as_os_str().as_encoded_bytes().ends_with(b"/");
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() || (ends_in_slash && path.is_dir()) => Err(EngineError::Usage(
            format!("{shown} is a folder and not a regular file; name a file in it"),
        )),
        Ok(meta) if force && !meta.is_file() => Err(EngineError::Usage(format!(
            "{shown} is not a regular file, and --force replaces nothing else; name another file"
        ))),
        Ok(_) if !force => Err(EngineError::Usage(format!(
            "{shown} exists; name another file, or replace it with --force"
        ))),
        Ok(_) => Ok(true),
        Err(_) if ends_in_slash => Err(EngineError::Usage(format!(
            "{shown} is a folder's name, and there is none; name a file"
        ))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => match folder_of(path) {
            folder if folder.is_dir() => Ok(false),
            _ => Err(refused("create", path, error)),
        },
        Err(error) => Err(refused("create", path, error)),
    }
}

/// Makes a folder for several files, and those around it; those that were made, outermost first.
///
/// # Errors
/// When it cannot be made.
pub fn make_folder(folder: &Path) -> Result<Vec<PathBuf>, EngineError> {
    let missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.is_dir();
    let mut made: Vec<PathBuf> =
        folder.ancestors().take_while(missing).map(Path::to_owned).collect();
    made.reverse();
    fs::create_dir_all(folder).map_err(|error| refused("create the folder", folder, error))?;
    Ok(made)
}

/// The system's refusal to make or write a file or folder, with what would be right.
#[must_use]
#[expect(clippy::needless_pass_by_value, reason = "as `map_err` hands it on")]
pub fn refused(action: &'static str, path: &Path, error: io::Error) -> EngineError {
    use io::ErrorKind as Kind;
    let shown = shown_path(path);
    let folder = folder_of(path);
    let place = shown_path(&folder);
    let not_a_folder =
        path.ancestors().skip(1).find(|above| fs::metadata(above).is_ok_and(|meta| !meta.is_dir()));
    let name = path.file_name().map_or(0, |name| name.len());
    let lacking = lacking::step(action, &error);
    let words = match error.kind() {
        Kind::NotFound if !folder.is_dir() && not_a_folder.is_none() => format!(
            "there is no folder {place}; make it first (mkdir -p {place}), or name a file elsewhere"
        ),
        Kind::NotADirectory | Kind::NotFound | Kind::AlreadyExists if not_a_folder.is_some() => {
            let above = not_a_folder.map(shown_path).unwrap_or_default();
            format!("{above} is a file, and not a folder; name a place in a folder")
        }
        Kind::AlreadyExists | Kind::NotADirectory if path.exists() && !path.is_dir() => {
            "it is a file, and not a folder; name a folder, or one that is yet to be made"
                .to_owned()
        }
        Kind::PermissionDenied => format!(
            "this user may not write in {place}; name a place where they may, or change who may \
             write there ({error})"
        ),
        Kind::ReadOnlyFilesystem => {
            format!("the file system of {place} is read-only; name a place on another one")
        }
        Kind::StorageFull | Kind::QuotaExceeded => {
            format!("there is no room ({error}); make room, or name a place on another disk")
        }
        _ if lacking.is_some() => format!("{error}; {}", lacking.unwrap_or_default()),
        _ if name > NAME_BYTES_MAX => format!(
            "its name has {} bytes, and a name has at most {NAME_BYTES_MAX}; name it shorter",
            grouped(name as u64)
        ),
        _ => format!("{error}; name a place elsewhere"),
    };
    EngineError::Input(format!("could not {action} {shown}: {words}"))
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    /// What is said of a place below a folder that has a file `file` and a link `link` to it.
    fn told(name: &str, force: bool) -> Result<bool, String> {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("file"), "precious").expect("room");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path().join("file"), link).expect("a link");
        let path = folder.path().join(name);
        let shown = shown_path(&path);
        let place = shown_path(folder.path());
        check(&path, force).map_err(|error| {
            let words = error.to_string();
            assert!(words.contains(&shown), "{words}");
            words.replace(&*place, "PLACE")
        })
    }

    #[test]
    fn each_place_that_is_none_is_said_with_what_would_be_right() {
        assert_eq!((told("new", false), told("file", true)), (Ok(false), Ok(true)));
        let words = |name, force| told(name, force).expect_err(name);
        assert!(words("file", false).contains("exists; name another file, or replace it"));
        assert!(words("link", true).contains("is not a regular file, and --force replaces"));
        for force in [false, true] {
            assert!(words("", force).contains("is a folder and not a regular file; name a file"));
        }
        assert_eq!(
            words("none/deep/new", false),
            "could not create PLACE/none/deep/new: there is no folder PLACE/none/deep; make it \
             first (mkdir -p PLACE/none/deep), or name a file elsewhere"
        );
        assert_eq!(
            words("file/new", true),
            "could not create PLACE/file/new: PLACE/file is a file, and not a folder; name a place \
             in a folder"
        );
        assert!(words("new/", false).contains("is a folder's name"));
        let long = "x".repeat(256);
        assert!(words(&long, false).contains("its name has 256 bytes, and a name has at most 255"));
        let error = check(Path::new("-"), true).expect_err("no file");
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("stdout") && error.to_string().contains("./-"));
        assert!(check(Path::new("surely-not-there"), false).is_ok(), "in the current folder");
    }

    #[test]
    fn what_the_system_refuses_is_said_in_words() {
        let path = Path::new("/some/where");
        let words = |kind: io::ErrorKind| refused("create", path, kind.into()).to_string();
        assert!(words(io::ErrorKind::StorageFull).contains("make room"));
        assert!(words(io::ErrorKind::ReadOnlyFilesystem).contains("/some is read-only"));
        assert!(words(io::ErrorKind::PermissionDenied).contains("may not write in /some"));
        for (errno, command) in [
            (Errno::MFILE, "sudo prlimit --nofile="),
            (Errno::NFILE, "sudo sysctl -w fs.file-max="),
            (Errno::FBIG, "sudo prlimit --fsize=unlimited"),
            (Errno::NOSPC, "make room"),
        ] {
            let words = refused("create", path, errno.into()).to_string();
            assert!(words.contains(command), "{words}");
        }
        let words = words(io::ErrorKind::Other);
        assert!(words.starts_with("could not create /some/where: "), "{words}");
        assert!(words.ends_with("; name a place elsewhere"), "{words}");
    }

    #[test]
    fn folders_are_made_and_named_unless_a_file_is_in_the_way() {
        let folder = tempfile::tempdir().expect("a folder");
        let deep = folder.path().join("a/b");
        let made = make_folder(&deep).expect("made");
        assert_eq!(made, [folder.path().join("a"), deep.clone()]);
        assert_eq!(make_folder(&deep).expect("there"), Vec::<PathBuf>::new());
        let file = folder.path().join("file");
        fs::write(&file, "precious").expect("room");
        for place in [file.clone(), file.join("below")] {
            let words = make_folder(&place).expect_err("a file").to_string();
            assert!(words.contains("is a file, and not a folder"), "{words}");
        }
    }
}
