//! What a process may not have more of: in words, with the limit and the command that raises it.
//!
//! For failures that no file and no server is to blame for: descriptors, threads, room, sizes,
//! memory. Limits and files below `/proc` and `/sys` are read for the numbers in the words, and for
//! nothing else; what cannot be read is left out. Nothing is changed here.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// Open files that no run here has needed more of; the kernel allows a process as many unless
/// `fs.nr_open` says otherwise.
const FILES_MANY: u64 = 1 << 20;

/// What the system lacks that `action` failed for, and what would help; `None` where it is another
/// failure.
pub(crate) fn step(action: &str, error: &io::Error) -> Option<String> {
    Some(match Errno::from_io_error(error)? {
        // Nothing but a thread is refused like this here; memory for its stack is as well.
        Errno::AGAIN | Errno::NOMEM if action.contains("thread") => threads(),
        Errno::MFILE => files(),
        Errno::NFILE => host_files(),
        // No file is written where a core waits for its sockets.
        Errno::NOSPC if action.contains("core") => watches(),
        Errno::NOSPC | Errno::DQUOT => {
            "make room (df -h, quota), or name a place on another disk (--output)".to_owned()
        }
        Errno::FBIG => {
            let limit = getrlimit(Resource::Fsize).current;
            let limit = limit.map_or_else(String::new, |bytes| format!(" of {bytes} bytes"));
            format!(
                "this process has reached its limit{limit} on the size of a file; to raise it: \
                 sudo prlimit --fsize=unlimited --pid $$"
            )
        }
        Errno::NOMEM => "the kernel has no memory for it; to lift this process's own limits: sudo \
                         prlimit --as=unlimited --data=unlimited --pid $$; its control group may \
                         have one, too (memory.max)"
            .to_owned(),
        _ => return None,
    })
}

/// That this process may open no more files, and what would let it.
pub(crate) fn files() -> String {
    let limit = getrlimit(Resource::Nofile).current;
    let limit = limit.map_or_else(String::new, |limit| format!(" of {limit}"));
    format!(
        "this process has reached its limit{limit} on open files; to raise it: sudo prlimit \
         --nofile={FILES_MANY}:{FILES_MANY} --pid $$"
    )
}

/// That nobody on this host may, and what would let them.
pub(crate) fn host_files() -> String {
    let more = doubled("fs/file-max").unwrap_or_else(|| (FILES_MANY * 4).to_string());
    format!(
        "this host has no file descriptor left for anybody; to raise their number: sudo sysctl -w \
         fs.file-max={more}"
    )
}

/// That the kernel watches no more descriptors for this user, and what would let it.
pub(crate) fn watches() -> String {
    let more = doubled("fs/epoll/max_user_watches");
    let more = more.unwrap_or_else(|| (FILES_MANY * 4).to_string());
    format!(
        "this host's kernel watches no further descriptor for this user; to raise their number: \
         sudo sysctl -w fs.epoll.max_user_watches={more}"
    )
}

/// That this process may have no more threads, and what would let it.
pub(crate) fn threads() -> String {
    if let Some((file, limit)) = group_of_threads() {
        return format!(
            "the control group of this process may have no more than {limit} threads; to raise \
             that: echo max | sudo tee {}",
            file.display()
        );
    }
    let limit = getrlimit(Resource::Nproc).current;
    let limit = limit.map_or_else(String::new, |limit| format!(" of {limit} (ulimit -u)"));
    let space = getrlimit(Resource::As).current;
    let space = space.map_or_else(String::new, |bytes| {
        format!(
            ", and this process, which needs room for each one's stack, its limit of {} MiB \
                 on address space (ulimit -v)",
            bytes >> 20
        )
    });
    format!(
        "this user has reached a limit{limit} on processes and threads{space}; to raise it: sudo \
         prlimit --nproc=unlimited --as=unlimited --pid $$"
    )
}

/// The control group above this process that has refused a thread, or has as many as it may have:
/// its file, and how many those are.
fn group_of_threads() -> Option<(PathBuf, u64)> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (names, own) = (parts.next()?, parts.next()?);
        let root = match names {
            "" => Path::new("/sys/fs/cgroup"),
            "pids" => Path::new("/sys/fs/cgroup/pids"),
            _ => return None,
        };
        let own = Path::new(own.trim_start_matches('/'));
        own.ancestors().find_map(|group| refusing(&root.join(group)))
    })
}

/// The same of one group's folder. What it has now may be less than when it refused.
fn refusing(folder: &Path) -> Option<(PathBuf, u64)> {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let limit = number(&read("pids.max")?)?;
    let refused = read("pids.events").unwrap_or_default();
    let refused = refused.lines().find_map(|line| number(line.strip_prefix("max")?)).unwrap_or(0);
    let is_full = refused > 0 || number(&read("pids.current")?)? >= limit;
    is_full.then(|| (folder.join("pids.max"), limit))
}

/// The numbers of a kernel's setting, each doubled.
pub(crate) fn doubled(setting: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/sys/{setting}")).ok()?;
    // The kernel's own numbers have a sign.
    let double = |word: &str| Some(word.parse::<i64>().ok()?.saturating_mul(2).to_string());
    let numbers: Option<Vec<String>> = text.split_whitespace().map(double).collect();
    numbers.filter(|numbers| !numbers.is_empty()).map(|numbers| numbers.join(" "))
}

#[cfg(test)]
mod tests {
    use crate::error::EngineError;

    use super::*;

    #[test]
    fn what_is_lacking_comes_with_the_command_that_raises_it() {
        for (action, errno, command) in [
            ("open", Errno::MFILE, "sudo prlimit --nofile="),
            ("open", Errno::NFILE, "sudo sysctl -w fs.file-max="),
            ("write the run log", Errno::FBIG, "sudo prlimit --fsize=unlimited"),
            ("write the run log", Errno::NOSPC, "make room"),
            ("write the run log", Errno::DQUOT, "make room"),
            ("map", Errno::NOMEM, "sudo prlimit --as=unlimited"),
            ("run a pacing core", Errno::NOSPC, "sudo sysctl -w fs.epoll.max_user_watches="),
            ("start a thread", Errno::AGAIN, "sudo prlimit --nproc=unlimited"),
            ("start a thread to read", Errno::NOMEM, "sudo prlimit --nproc=unlimited"),
        ] {
            let told = [
                EngineError::io(action, "file", errno.into()),
                EngineError::Io { action, path: None, source: errno.into() },
            ];
            for words in told.map(|error| error.to_string()) {
                assert!(words.contains(command), "{words}");
                assert!(!words.contains("server"), "{words}");
            }
        }
    }

    #[test]
    fn a_control_group_that_refused_a_thread_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).expect("room");
        };
        write("pids.max", "max\n");
        write("pids.current", "3\n");
        write("pids.events", "max 0\n");
        assert_eq!(refusing(folder.path()), None, "no limit");
        write("pids.max", "4\n");
        assert_eq!(refusing(folder.path()), None, "room for one");
        write("pids.current", "4\n");
        assert_eq!(refusing(folder.path()).map(|(_, limit)| limit), Some(4));
        // A thread that was there has ended since.
        write("pids.current", "3\n");
        write("pids.events", "max 1\n");
        let (file, limit) = refusing(folder.path()).expect("it refused one");
        assert_eq!((file, limit), (folder.path().join("pids.max"), 4));
    }

    #[test]
    fn another_failure_lacks_nothing() {
        for errno in [Errno::NOENT, Errno::IO, Errno::CONNREFUSED] {
            assert_eq!(step("read", &errno.into()), None);
        }
        assert_eq!(step("read", &Errno::AGAIN.into()), None, "no thread");
        assert_eq!(step("read", &io::Error::other("no number")), None);
    }
}
