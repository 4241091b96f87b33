//! Asks the kernel to run a pacing thread before every ordinary one, where that does no harm.
//!
//! `SCHED_FIFO` keeps ordinary threads off the core. But the kernel keeps a part of every second
//! for them: a real-time thread that polls all the time is stopped for 50 ms in each second, which
//! is far worse than what it was meant to prevent. So a core that polls asks for it only where that
//! limit is off; whoever gets nothing is told why and what would help, and the run goes on. This is
//! one of the engine's named `unsafe` modules: nothing safe asks for a scheduling class.

use std::io;

use super::Pacing;

/// Above every ordinary thread, and below the kernel's own interrupt threads (50).
const PRIORITY: i32 = 1;

/// What came of asking.
#[derive(Debug)]
pub enum Realtime {
    /// The thread runs before every ordinary one.
    First,
    /// The kernel would stop a polling thread; it allows this many microseconds in each second.
    Throttled(i64),
    /// The kernel does not let this process.
    Refused(io::Error),
}

impl Realtime {
    /// The name in the manifest.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::First => "fifo",
            Self::Throttled(_) => "throttled",
            Self::Refused(_) => "refused",
        }
    }

    /// What is missing and what would help, in words; `None` when nothing is.
    #[must_use]
    pub fn shortfall(&self) -> Option<String> {
        match self {
            Self::First => None,
            Self::Throttled(runtime_us) => Some(format!(
                "--realtime: the kernel lets real-time threads run for {runtime_us} us of each \
                 second and then stops them, which is worse for a core that polls than going \
                 without; the run goes on at ordinary priority. To lift that: \
                 sudo sysctl -w kernel.sched_rt_runtime_us=-1"
            )),
            Self::Refused(error) => Some(format!(
                "--realtime: not permitted ({error}); the run goes on at ordinary priority. To \
                 permit it: sudo setcap cap_sys_nice+ep \"$(command -v onbeat)\""
            )),
        }
    }
}

/// Asks for the calling thread, which waits as `pacing` says.
#[must_use]
pub fn ask(pacing: Pacing) -> Realtime {
    let limit = std::fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us");
    match limit.ok().and_then(|text| throttle(pacing, &text)) {
        Some(runtime_us) => Realtime::Throttled(runtime_us),
        None => go_first().map_or_else(Realtime::Refused, |()| Realtime::First),
    }
}

/// How long a thread that waits in this way may run in each second, if it would reach that.
fn throttle(pacing: Pacing, limit: &str) -> Option<i64> {
    // One that sleeps until a request is due uses a small part of its core.
    let polls = pacing != Pacing::Sleep;
    limit.trim().parse().ok().filter(|&runtime_us| polls && runtime_us >= 0)
}

#[expect(unsafe_code, reason = "nothing safe asks for a scheduling class")]
fn go_first() -> io::Result<()> {
    // SAFETY: all zeroes is a valid `sched_param`, a struct of integers on every Linux.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = PRIORITY;
    // SAFETY: 0 names the calling thread, and the kernel only reads the struct during the call.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_that_polls_does_not_ask_where_it_would_be_stopped() {
        let hybrid = Pacing::Hybrid { margin_ns: 1 };
        assert_eq!(throttle(Pacing::Spin, "950000\n"), Some(950_000));
        assert_eq!(throttle(hybrid, "950000\n"), Some(950_000));
        assert_eq!(throttle(Pacing::Sleep, "950000\n"), None);
        assert_eq!(throttle(Pacing::Spin, "-1\n"), None);
        assert_eq!(throttle(Pacing::Spin, "unknown"), None);
    }

    #[test]
    fn whoever_gets_nothing_is_told_the_command() {
        assert!(Realtime::First.shortfall().is_none());
        let throttled = Realtime::Throttled(950_000).shortfall().expect("words");
        assert!(throttled.contains("950000 us of each second"), "{throttled}");
        assert!(throttled.ends_with("sysctl -w kernel.sched_rt_runtime_us=-1"), "{throttled}");
        let refused = io::Error::from(rustix::io::Errno::PERM);
        let words = Realtime::Refused(refused).shortfall().expect("words");
        assert!(words.contains("setcap cap_sys_nice"), "{words}");
    }

    #[test]
    fn the_kernel_says_what_was_granted() {
        let asked = std::thread::Builder::new()
            .name("first".to_owned())
            .spawn(|| {
                let granted = matches!(ask(Pacing::Sleep), Realtime::First);
                let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("procfs");
                // The policy is the 41st field; the name in parentheses may hold blanks.
                let behind_name = stat.rsplit(')').next().expect("a name");
                let policy = behind_name.split_whitespace().nth(38).map(str::to_owned);
                (granted, policy.expect("41 fields"))
            })
            .expect("a thread");
        let (granted, policy) = asked.join().expect("no panic");
        assert_eq!(policy == libc::SCHED_FIFO.to_string(), granted, "policy {policy}");
    }
}
