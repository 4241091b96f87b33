//! Which kernel interface moves the bytes: io_uring, or epoll where io_uring is forbidden.
//!
//! Containers often forbid io_uring with a seccomp filter, and small memlock limits make it fail.
//! [`DriverKind::probe`] finds out once, before any core starts, and says why in words; the log
//! records what ran. Both drivers run the same code.

use std::future::Future;
use std::io;

use monoio::{IoUringDriver, LegacyDriver, Runtime, RuntimeBuilder};

/// Submission slots of a core's ring; monoio 0.2.4 panics when a full ring cannot be flushed, so
/// there is room for a burst.
const RING_ENTRIES: u32 = 4_096;

/// How a core's sockets are driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverKind {
    /// io_uring.
    IoUring,
    /// epoll, monoio's legacy driver.
    Epoll,
}

impl DriverKind {
    /// The name in logs and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::IoUring => "io_uring",
            Self::Epoll => "epoll",
        }
    }

    /// io_uring if a ring can be built and every operation we need is there; otherwise epoll and
    /// the reason, in words.
    #[must_use]
    pub fn probe() -> (Self, Option<String>) {
        match ring() {
            Ok(_) if monoio::utils::detect_uring() => (Self::IoUring, None),
            Ok(_) => (Self::Epoll, Some("this kernel's io_uring lacks operations we need".into())),
            Err(error) => (Self::Epoll, Some(reason(&error))),
        }
    }

    /// Runs `future` to its end on a runtime of this kind, on the calling thread.
    ///
    /// # Errors
    /// When the runtime cannot be built; that of a ring says why, and what would do.
    pub fn block_on<F: Future>(self, future: F) -> io::Result<F::Output> {
        match self {
            Self::IoUring => Ok(ring().map_err(|error| refused(&error))?.block_on(future)),
            Self::Epoll => Ok(RuntimeBuilder::<LegacyDriver>::new().build()?.block_on(future)),
        }
    }
}

/// A runtime on a ring.
///
/// Without cooperative task running every answer that arrives interrupts the core in the middle of
/// what it does, to say so: a burst of a thousand requests took 1.7 times as long to leave. The
/// core enters the kernel every few microseconds anyway, and learns it then. Kernels before 5.19
/// do not know the flag.
fn ring() -> io::Result<Runtime<IoUringDriver>> {
    let mut cooperative = io_uring::IoUring::builder();
    cooperative.setup_coop_taskrun();
    let build = |builder: io_uring::Builder| {
        RuntimeBuilder::<IoUringDriver>::new()
            .uring_builder(builder)
            .with_entries(RING_ENTRIES)
            .build()
    };
    match build(cooperative) {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            build(io_uring::IoUring::builder())
        }
        built => built,
    }
}

/// What whoever asked for a ring is told when there is none.
fn refused(error: &io::Error) -> io::Error {
    use rustix::io::Errno;
    let allowing = match Errno::from_io_error(error) {
        Some(Errno::PERM | Errno::ACCESS) => {
            ", or allow it: a seccomp profile that does (docker run --security-opt \
             seccomp=unconfined), and sudo sysctl -w kernel.io_uring_disabled=0"
        }
        _ => "",
    };
    let words = format!("{}; use --driver epoll, which needs no ring{allowing}", reason(error));
    io::Error::new(error.kind(), words)
}

fn reason(error: &io::Error) -> String {
    use rustix::io::Errno;
    match Errno::from_io_error(error) {
        Some(Errno::PERM | Errno::ACCESS) => "io_uring is forbidden here (EPERM: a container's \
             seccomp profile, or kernel.io_uring_disabled)"
            .into(),
        Some(Errno::NOMEM) => {
            "io_uring found too little lockable memory (ENOMEM; to raise it, `ulimit -l`: sudo \
             prlimit --memlock=unlimited --pid $$)"
                .into()
        }
        Some(Errno::NOSYS) => "this kernel has no io_uring (ENOSYS)".into(),
        _ => format!("io_uring could not be set up ({error})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_explained() {
        let words = |errno: rustix::io::Errno| reason(&io::Error::from(errno));
        assert!(words(rustix::io::Errno::PERM).contains("seccomp"));
        assert!(words(rustix::io::Errno::NOMEM).contains("ulimit -l"));
        assert!(words(rustix::io::Errno::NOSYS).contains("ENOSYS"));
    }

    #[test]
    fn who_asked_for_a_ring_learns_what_would_do() {
        let words = |errno: rustix::io::Errno| refused(&io::Error::from(errno)).to_string();
        let forbidden = words(rustix::io::Errno::PERM);
        for part in ["forbidden here (EPERM", "use --driver epoll", "io_uring_disabled=0"] {
            assert!(forbidden.contains(part), "{forbidden}");
        }
        let old = words(rustix::io::Errno::NOSYS);
        assert!(old.ends_with("use --driver epoll, which needs no ring"), "{old}");
    }

    #[test]
    fn whatever_the_probe_finds_runs() {
        let (kind, _) = DriverKind::probe();
        assert_eq!(kind.block_on(async { 7 }).expect("the probe built one"), 7);
        assert_eq!(DriverKind::Epoll.block_on(async { 8 }).expect("epoll is everywhere"), 8);
    }
}
