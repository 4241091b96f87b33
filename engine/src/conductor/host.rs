//! What the log says about the machine, and the limits a run needs raised.
//!
//! Names and numbers only; nothing here changes how requests are sent.

use std::io;

use onbeat_shared::log::header::Host;
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors a run on one core needs besides its connections: rings, timers, log, terminal.
const OTHER_DESCRIPTORS: u64 = 64;
/// What of them is yet to be opened when that is asked.
const DESCRIPTORS_TO_COME: u64 = 32;
/// And on each further core.
const DESCRIPTORS_PER_CORE: u64 = 8;

/// This machine, as far as the system tells.
#[must_use]
pub fn describe() -> Host {
    let system = rustix::system::uname();
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map(|rest| rest.trim_start_matches([' ', '\t', ':']).to_owned());
    let cpus = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    Host {
        hostname: system.nodename().to_string_lossy().into_owned(),
        kernel: system.release().to_string_lossy().into_owned(),
        cpu: cpu.unwrap_or_default(),
        cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
    }
}

/// Descriptors that a run on `cores` cores needs besides its connections, before it has any. What
/// whoever started the process left open counts.
#[must_use]
pub fn other_files(cores: usize) -> u64 {
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count) as u64;
    OTHER_DESCRIPTORS.max(open + DESCRIPTORS_TO_COME)
        + DESCRIPTORS_PER_CORE * cores.saturating_sub(1) as u64
}

/// Raises the soft limit on open files as far as the hard limit allows and returns how many
/// connections of so many cores that leaves room for.
#[must_use]
pub fn connection_room(cores: usize) -> u64 {
    raise_files().saturating_sub(other_files(cores))
}

/// Raises the soft limit on open files as far as the hard limit allows and returns what it is.
pub fn raise_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let maximum = limit.maximum.unwrap_or(u64::MAX);
    let wanted = Rlimit { current: limit.maximum, maximum: limit.maximum };
    match setrlimit(Resource::Nofile, wanted) {
        Ok(()) => maximum,
        Err(_) => limit.current.unwrap_or(u64::MAX),
    }
}

/// Why there is no room for so many connections, and the command that would make it.
#[must_use]
pub fn more_connections(wanted: usize, cores: usize) -> String {
    let command = raise_for(wanted, cores);
    format!("the limit on open files leaves room for no more; to raise it: {command}")
}

/// The command that makes room for so many connections of so many cores.
#[must_use]
pub fn raise_for(wanted: usize, cores: usize) -> String {
    let files = wanted as u64 + other_files(cores);
    format!("sudo prlimit --nofile={files}:{files} --pid $$")
}

/// How much of the memory is locked.
#[derive(Debug)]
pub enum MemoryLock {
    /// All of it, and all that will be allocated.
    Whole,
    /// What there was; a limit keeps what comes later from being locked safely.
    AtStart,
    /// Nothing, because.
    Refused(io::Error),
}

impl MemoryLock {
    /// The name in the manifest.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::AtStart => "at_start",
            Self::Refused(_) => "refused",
        }
    }

    /// What is not locked, why, and the command that would allow it; `None` when all is.
    #[must_use]
    pub fn shortfall(&self) -> Option<String> {
        const COMMAND: &str = "sudo prlimit --memlock=unlimited --pid $$";
        match self {
            Self::Whole => None,
            Self::AtStart => Some(format!(
                "--lock-memory: only the memory in use before zero is locked, because what this \
                 process may lock is limited; to allow all: {COMMAND}"
            )),
            Self::Refused(error) => Some(format!(
                "--lock-memory: no memory is locked ({error}: more than this process may lock); to \
                 allow it: {COMMAND}"
            )),
        }
    }
}

/// Keeps the process's memory from being swapped out, as far as the system allows.
///
/// Memory that is yet to come is locked only where no limit applies: under one, an allocation in
/// the middle of a run would fail when it is reached.
#[must_use]
pub fn lock_memory() -> MemoryLock {
    let everything = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE;
    let hard = getrlimit(Resource::Memlock).maximum;
    let raised = Rlimit { current: hard, maximum: hard };
    let free = Rlimit { current: None, maximum: None };
    if setrlimit(Resource::Memlock, free).is_ok() {
        return match mlockall(everything) {
            Ok(()) => MemoryLock::Whole,
            Err(error) => MemoryLock::Refused(error.into()),
        };
    }
    // Under a limit of nothing this works only for a process to which limits do not apply.
    let nothing = Rlimit { current: Some(0), maximum: hard };
    let exempt = setrlimit(Resource::Memlock, nothing).is_ok() && mlockall(everything).is_ok();
    // A process may always raise its soft limit to the hard one; if not, the next call says so.
    let _ = setrlimit(Resource::Memlock, raised);
    if exempt {
        return MemoryLock::Whole;
    }
    match mlockall(MlockAllFlags::CURRENT) {
        Ok(()) => MemoryLock::AtStart,
        Err(error) => MemoryLock::Refused(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_a_kernel_and_room_for_connections() {
        let host = describe();
        assert!(!host.kernel.is_empty() && host.cpus > 0);
        assert!(connection_room(1) > connection_room(2));
    }

    #[test]
    fn a_limit_on_connections_is_said_with_the_command() {
        let words = more_connections(30_000, 1);
        let files = 30_000 + other_files(1);
        let command = format!("sudo prlimit --nofile={files}:{files} --pid $$");
        assert!(files >= 30_064 && words.ends_with(&command), "{words}");
    }

    #[test]
    fn what_is_not_locked_is_said_with_the_command() {
        assert!(MemoryLock::Whole.shortfall().is_none());
        let refused = MemoryLock::Refused(rustix::io::Errno::NOMEM.into());
        assert_eq!(refused.name(), "refused");
        for lock in [MemoryLock::AtStart, refused] {
            let words = lock.shortfall().expect("something is missing");
            assert!(words.ends_with("sudo prlimit --memlock=unlimited --pid $$"), "{words}");
        }
    }
}
