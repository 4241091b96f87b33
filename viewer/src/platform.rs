//! What differs between systems: where a user's settings are kept, where home is, and how a file is
//! made that nobody else may read, or is refused for its size.
//!
//! The viewer's only module with code for one system. Everything else is the same on Linux, macOS
//! and Windows. It reads the environment and makes files and folders; it decides nothing else.

use std::{
    env,
    ffi::OsString,
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

/// The kinds of system that keep settings in different places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum System {
    /// Linux and everything else that follows freedesktop.org.
    Freedesktop,
    Mac,
    Windows,
}

const THIS: System = if cfg!(windows) {
    System::Windows
} else if cfg!(target_os = "macos") {
    System::Mac
} else {
    System::Freedesktop
};

/// Where the viewer's settings belong; `None` where the environment names no place.
#[must_use]
pub fn settings_file() -> Option<PathBuf> {
    settings_file_on(THIS, &|name| env::var_os(name))
}

/// The user's home folder.
#[must_use]
pub fn home() -> Option<PathBuf> {
    env::home_dir().filter(|home| !home.as_os_str().is_empty())
}

/// The folder the viewer was started in, unless that is the root, where no user keeps runs.
#[must_use]
pub fn started_in() -> Option<PathBuf> {
    env::current_dir().ok().filter(|folder| folder.parent().is_some())
}

/// Makes a limit on the size of files an error of the write that hits it, which is then said, and
/// not the end of the process.
pub fn take_limits_as_errors() {
    #[cfg(unix)]
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default());
}

/// Makes a new file that only its owner may read or write.
///
/// # Errors
/// The operating system's; also when there is such a file already.
pub fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options.open(path)
}

/// Makes a folder that only its owner may enter, and what is missing above it.
///
/// # Errors
/// The operating system's.
pub fn create_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(path)
}

/// Lets `to` be what `from` is, at once: whoever looks sees the old file or the new one.
///
/// # Errors
/// The operating system's.
pub fn replace(from: &Path, to: &Path) -> io::Result<()> {
    // On Windows too, where `rename` replaces since the standard library asks for it.
    fs::rename(from, to)
}

fn settings_file_on(
    system: System,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Option<PathBuf> {
    // A relative path would mean another place in each folder one starts in.
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| is_whole(path));
    let folder = match system {
        System::Freedesktop => absolute("XDG_CONFIG_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".config")))?,
        System::Mac => absolute("HOME")?.join("Library/Application Support"),
        System::Windows => absolute("APPDATA")?,
    };
    Some(folder.join("onbeat").join("viewer.json"))
}

/// Whether a path begins at a root; paths of Windows count wherever this runs, for the tests.
fn is_whole(path: &Path) -> bool {
    path.is_absolute() || path.to_str().is_some_and(|path| path.get(1..3) == Some(":\\"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_system_keeps_settings_where_its_users_look() {
        let variable = |name: &str| match name {
            "HOME" => Some("/home/me".into()),
            "APPDATA" => Some("C:\\Users\\me\\AppData".into()),
            _ => None,
        };
        let found = |system| settings_file_on(system, &variable).expect("a place");
        let linux = Path::new("/home/me/.config/onbeat/viewer.json");
        assert_eq!(found(System::Freedesktop), linux);
        let mac = Path::new("/home/me/Library/Application Support/onbeat/viewer.json");
        assert_eq!(found(System::Mac), mac);
        assert!(found(System::Windows).starts_with("C:\\Users\\me\\AppData"));
    }

    #[test]
    fn a_named_folder_counts_if_it_is_absolute() {
        let with = |folder: &'static str| {
            settings_file_on(System::Freedesktop, &|name| match name {
                "XDG_CONFIG_HOME" => Some(folder.into()),
                "HOME" => Some("/home/me".into()),
                _ => None,
            })
        };
        assert_eq!(with("/etc/me"), Some("/etc/me/onbeat/viewer.json".into()));
        assert_eq!(with("here"), Some("/home/me/.config/onbeat/viewer.json".into()));
        assert_eq!(settings_file_on(System::Freedesktop, &|_| None), None);
    }

    #[cfg(unix)]
    #[test]
    fn private_files_and_folders_are_their_owners_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("a/b");
        create_private_folder(&inner).expect("made");
        create_private_folder(&inner).expect("there already");
        let path = inner.join("file");
        create_private(&path).expect("made");
        let mode = |path: &Path| path.metadata().expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(&inner), mode(&path)), (0o700, 0o600));
        let again = create_private(&path).expect_err("it is there");
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
    }
}
