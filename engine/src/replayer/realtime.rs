//! Asks the kernel to run a pacing thread before every ordinary one, where that does no harm.
//!
//! `SCHED_FIFO` keeps ordinary threads off the core. But the kernel keeps a part of every second
//! for them: a real-time thread that polls all the time is stopped for 50 ms in each second, which
//! is far worse than what it was meant to prevent. So a core that polls asks for it only where that
//! limit is known to be off; whoever gets nothing is told why and what would help, and the run
//! goes on. This is one of the engine's named `unsafe` modules: nothing safe asks for a scheduling
//! class.

use std::io;

use super::Pacing;

/// Where the kernel says how long real-time threads may run in each second.
const LIMIT: &str = "/proc/sys/kernel/sched_rt_runtime_us";

/// Above every ordinary thread, and below the kernel's own interrupt threads (50).
const PRIORITY: i32 = 1;

/// What came of asking.
#[derive(Debug)]
pub enum Realtime {
    /// The thread runs before every ordinary one.
    First,
    /// The kernel would stop a polling thread; it allows this many microseconds in each second.
    Throttled(i64),
    /// Whether the kernel would stop a polling thread is not known, because.
    Unknown(String),
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
            Self::Unknown(_) => "unknown",
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
            Self::Unknown(why) => Some(format!(
                "--realtime: it is unknown whether the kernel stops real-time threads that poll \
                 ({LIMIT}: {why}), which would be worse than going without; the run goes on at \
                 ordinary priority. --pacing sleep does not poll, and needs not know"
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
    objection(pacing, std::fs::read_to_string(LIMIT))
        .unwrap_or_else(|| go_first().map_or_else(Realtime::Refused, |()| Realtime::First))
}

/// Why a thread that waits in this way had better not ask, going by what [`LIMIT`] holds.
fn objection(pacing: Pacing, limit: io::Result<String>) -> Option<Realtime> {
    // One that sleeps until a request is due uses a small part of its core.
    if pacing == Pacing::Sleep {
        return None;
    }
    let text = match limit {
        Ok(text) => text,
        Err(error) => return Some(Realtime::Unknown(error.to_string())),
    };
    match text.trim().parse() {
        Ok(runtime_us) if runtime_us >= 0 => Some(Realtime::Throttled(runtime_us)),
        Ok(_off) => None,
        Err(_no_number) => Some(Realtime::Unknown(format!("{:?} is no number", text.trim()))),
    }
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
        let throttled = |pacing, limit: &str| match objection(pacing, Ok(limit.to_owned())) {
            Some(Realtime::Throttled(runtime_us)) => Some(runtime_us),
            other => other.map(|other| panic!("{other:?}")),
        };
        assert_eq!(throttled(Pacing::Spin, "950000\n"), Some(950_000));
        assert_eq!(throttled(hybrid, "950000\n"), Some(950_000));
        assert_eq!(throttled(Pacing::Sleep, "950000\n"), None);
        assert_eq!(throttled(Pacing::Spin, "-1\n"), None);
    }

    #[test]
    fn a_limit_that_cannot_be_read_is_unknown_and_not_lifted() {
        let hidden = || Err(io::Error::from(rustix::io::Errno::ACCESS));
        for limit in [hidden(), Ok("much\n".to_owned())] {
            let unknown = objection(Pacing::Spin, limit).expect("a core that polls does not ask");
            assert_eq!(unknown.name(), "unknown");
            let words = unknown.shortfall().expect("words");
            assert!(words.contains("it is unknown whether the kernel stops"), "{words}");
            assert!(words.contains(&format!("({LIMIT}: ")), "{words}");
        }
        assert!(objection(Pacing::Sleep, hidden()).is_none());
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
