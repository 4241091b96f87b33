//! How much memory the rendered requests may take when the user does not say: half of what is free.
//! And how much the process has by now, for users who say how much it may have.
//!
//! Free is what the kernel calls available, or what the control group leaves when that is less, as
//! in containers. Where neither can be read, a gibibyte is assumed.

use std::fs;

/// Assumed when the system says nothing: enough for every public trace's first minutes.
const UNKNOWN_FREE_BYTES: u64 = 2 << 30;

/// What this process has of memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resident {
    /// Now.
    pub now: u64,
    /// At most so far.
    pub peak: u64,
}

/// What this process has of memory; `None` where the system does not say.
#[must_use]
pub fn resident() -> Option<Resident> {
    fs::read_to_string("/proc/self/status").ok().as_deref().and_then(resident_in)
}

fn resident_in(status: &str) -> Option<Resident> {
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    };
    Some(Resident { now: bytes("VmRSS:")?, peak: bytes("VmHWM:")? })
}

/// Half of the memory that is free now, in bytes.
pub(crate) fn default_budget() -> u64 {
    let host = fs::read_to_string("/proc/meminfo").ok().as_deref().and_then(available);
    let group = group_left();
    let free = [host, group].into_iter().flatten().min();
    free.unwrap_or(UNKNOWN_FREE_BYTES) / 2
}

/// `MemAvailable` of `/proc/meminfo`, in bytes.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// What a version 2 control group leaves; `None` without a limit.
fn group_left() -> Option<u64> {
    let number = |name: &str| -> Option<u64> {
        fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok()?.trim().parse().ok()
    };
    Some(number("memory.max")?.saturating_sub(number("memory.current")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_is_in_kibibytes() {
        let text = "MemTotal:       100 kB\nMemAvailable:    42 kB\n";
        assert_eq!(available(text), Some(42 << 10));
        assert_eq!(available("MemTotal: 1 kB\n"), None);
        assert!(default_budget() > 0);
    }

    #[test]
    fn a_process_knows_what_it_has() {
        let text = "VmPeak:\t 9 kB\nVmHWM:\t    7 kB\nVmRSS:\t    5 kB\n";
        assert_eq!(resident_in(text), Some(Resident { now: 5 << 10, peak: 7 << 10 }));
        assert_eq!(resident_in("VmRSS: 1 kB\n"), None);
        assert!(resident().is_none_or(|resident| resident.now > 0));
    }
}
