//! A file under a name of its own until it is whole.
//!
//! What ends the program at once, a `kill -9` or a machine that goes down, leaves no half of a file
//! under the name that the user chose, and no earlier file of that name is lost. What it may leave
//! is the file under its other name, which the next one does not mind. Where a file may be is
//! [`super::output`]'s business, and when it is whole is its writer's.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

/// Most bytes of a file's name that stay in its other name.
const KEPT_BYTES: usize = 200;
/// Names that are tried: in a container every process may have the same number, and so may one on
/// another host that shares the folder.
const NAMES_MAX: u32 = 1_000;

/// Creates the file that is to be at `path`, readable by its owner only, and says where it is until
/// [`settle`] puts it there. Its name there ends in `ending`; one that is `hidden` begins with a
/// dot.
///
/// # Errors
/// When the system refuses.
pub fn create(path: &Path, hidden: bool, ending: &str) -> io::Result<(File, PathBuf)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let begin = &name[..name.floor_char_boundary(KEPT_BYTES)];
    let (dot, process) = (if hidden { "." } else { "" }, std::process::id());
    let mut number = 0;
    loop {
        let more = if number == 0 { String::new() } else { format!("-{number}") };
        let beside = path.with_file_name(format!("{dot}{begin}.{process}{more}.{ending}"));
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < NAMES_MAX => {
                number += 1;
            }
            opened => return opened.map(|file| (file, beside)),
        }
    }
}

/// Gives a file its name; takes the name of another only if that is to be `replaced`.
///
/// # Errors
/// When there is another, or the system refuses.
pub fn settle(beside: &Path, path: &Path, replaced: bool) -> io::Result<()> {
    if replaced {
        return fs::rename(beside, path);
    }
    match renameat_with(CWD, beside, CWD, path, RenameFlags::NOREPLACE) {
        // Not every file system can tell.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => match fs::symlink_metadata(path) {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => fs::rename(beside, path),
        },
        named => Ok(named?),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_an_earlier_process_left_is_in_nobodys_way() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("é".repeat(127));
        let made = [false, true].map(|hidden| {
            let (_, left) = create(&path, hidden, "part").expect("room");
            let (file, beside) = create(&path, hidden, "part").expect("another name");
            assert_ne!(left, beside);
            let mode = file.metadata().expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            assert!(!path.exists());
            beside
        });
        settle(&made[0], &path, false).expect("nobody has the name");
        let error = settle(&made[1], &path, false).expect_err("it is taken");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        settle(&made[1], &path, true).expect("it may be taken");
        assert!(path.exists() && !made[1].exists());
    }
}
