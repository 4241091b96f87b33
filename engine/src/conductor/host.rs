//! What the log says about the machine, and the limits a run needs raised.
//!
//! Names and numbers only; nothing here changes how requests are sent.

use onbeat_shared::log::header::Host;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors a run needs besides its connections: rings, timers, log, terminal.
const OTHER_DESCRIPTORS: u64 = 64;

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

/// Raises the soft limit on open files as far as the hard limit allows and returns how many
/// connections that leaves room for.
#[must_use]
pub fn connection_room() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let maximum = limit.maximum.unwrap_or(u64::MAX);
    let wanted = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let current = match setrlimit(Resource::Nofile, wanted) {
        Ok(()) => maximum,
        Err(_) => limit.current.unwrap_or(u64::MAX),
    };
    current.saturating_sub(OTHER_DESCRIPTORS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_a_kernel_and_room_for_connections() {
        let host = describe();
        assert!(!host.kernel.is_empty() && host.cpus > 0);
        assert!(connection_room() > 0);
    }
}
