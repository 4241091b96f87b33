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
pub(crate) const FILES_MANY: u64 = 1 << 20;

/// What the system lacks that `action` failed for, and what would help; `None` where it is another
/// failure.
pub(super) fn step(action: &str, error: &io::Error) -> Option<String> {
    Some(match Errno::from_io_error(error)? {
        // Nothing but a thread is refused like this here; memory for its stack is as well.
        Errno::AGAIN | Errno::NOMEM if action.contains("thread") => threads(),
        Errno::MFILE => files(),
        Errno::NFILE => host_files(),
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

/// That this process may have no more threads, and what would let it.
pub(crate) fn threads() -> String {
    if let Some((file, limit)) = group_of_threads() {
        return format!(
            "the control group of this process may have {limit} threads and has them; to raise \
             it: echo max | sudo tee {}",
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

/// The control group above this process that has as many threads as it may have: its file, and how
/// many those are.
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
        Path::new(own.trim_start_matches('/')).ancestors().find_map(|group| {
            let number = |name: &str| {
                let text = std::fs::read_to_string(root.join(group).join(name)).ok()?;
                text.trim().parse::<u64>().ok()
            };
            let limit = number("pids.max")?;
            (number("pids.current")? >= limit).then(|| (root.join(group).join("pids.max"), limit))
        })
    })
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
    fn another_failure_lacks_nothing() {
        for errno in [Errno::NOENT, Errno::IO, Errno::CONNREFUSED] {
            assert_eq!(step("read", &errno.into()), None);
        }
        assert_eq!(step("read", &Errno::AGAIN.into()), None, "no thread");
        assert_eq!(step("read", &io::Error::other("no number")), None);
    }
}
