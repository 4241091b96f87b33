//! Which CPU a thread runs on, and how often it was taken away.
//!
//! Pinning keeps a pacing core's caches and timers in one place. It does not reserve the CPU: that
//! is the host administrator's to do (`isolcpus`, a cpuset), and the lateness in the report says
//! whether it was needed.

use std::io;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Pins the calling thread to one CPU.
///
/// # Errors
/// When the CPU does not exist or the process may not use it.
pub fn pin(cpu: u16) -> io::Result<()> {
    let mut set = CpuSet::new();
    if usize::from(cpu) >= CpuSet::MAX_CPU {
        return Err(io::Error::from(rustix::io::Errno::INVAL));
    }
    set.set(usize::from(cpu));
    sched_setaffinity(None, &set)?;
    Ok(())
}

/// Keeps a thread, or the calling one, off some CPUs, unless it may use no others; whether it is.
///
/// # Errors
/// When the system does not allow it, or there is no such thread.
pub fn keep_off(thread: Option<Pid>, cpus: &[u16]) -> io::Result<bool> {
    let mut set = sched_getaffinity(thread)?;
    for &cpu in cpus.iter().filter(|&&cpu| usize::from(cpu) < CpuSet::MAX_CPU) {
        set.unset(usize::from(cpu));
    }
    let has_others = set.count() > 0;
    if has_others {
        sched_setaffinity(thread, &set)?;
    }
    Ok(has_others)
}

/// Keeps the calling thread off some CPUs for as long as it lives, as far as the system allows;
/// threads started meanwhile are kept off as well.
#[derive(Debug)]
pub struct Apart {
    before: Option<CpuSet>,
}

impl Apart {
    /// Off `cpus`, unless the thread may use no others.
    #[must_use]
    pub fn from(cpus: &[u16]) -> Self {
        let before = sched_getaffinity(None).ok();
        // Where the system does not allow it, the cores have to share.
        let _ = keep_off(None, cpus);
        Self { before }
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = sched_setaffinity(None, before);
        }
    }
}

/// The CPUs this process may use, in ascending order.
///
/// # Errors
/// When the system does not say.
pub fn allowed_cpus() -> io::Result<Vec<u16>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&cpu| set.is_set(cpu))
        .filter_map(|cpu| u16::try_from(cpu).ok())
        .collect())
}

/// How often the kernel took the CPU away from the calling thread; 0 where it does not say.
#[must_use]
pub fn involuntary_switches() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"))
        .and_then(|count| count.trim().parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_can_be_pinned_to_any_allowed_cpu() {
        let cpus = allowed_cpus().expect("the system says");
        assert!(!cpus.is_empty());
        let last = *cpus.last().expect("at least one");
        std::thread::Builder::new()
            .name("pin".to_owned())
            .spawn(move || {
                pin(last).expect("allowed");
                assert_eq!(allowed_cpus().expect("the system says"), [last]);
            })
            .expect("a thread")
            .join()
            .expect("no panic");
        assert!(pin(u16::MAX).is_err());
    }

    #[test]
    fn a_thread_that_keeps_apart_comes_back() {
        let allowed = || allowed_cpus().expect("the system says");
        let all = allowed();
        let taken = [all[0]];
        let seen = std::thread::Builder::new()
            .name("apart".to_owned())
            .spawn(move || {
                let apart = Apart::from(&taken);
                let meanwhile = allowed();
                drop(apart);
                (meanwhile, allowed())
            })
            .expect("a thread")
            .join()
            .expect("no panic");
        let others = if all.len() > 1 { all[1..].to_vec() } else { all.clone() };
        assert_eq!(seen, (others, all));
    }
}
