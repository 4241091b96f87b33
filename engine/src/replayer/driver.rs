//! Which kernel interface moves the bytes: io_uring, or epoll where io_uring is forbidden.
//!
//! Containers often forbid io_uring with a seccomp filter, and small memlock limits make it fail.
//! [`DriverKind::probe`] and [`DriverKind::check`] find out once, before anything is asked of a
//! server, and say why in words; the log records what ran. Both drivers run the same code.

use std::future::Future;
use std::io;

use io_uring::{IoUring, Probe, opcode};
use monoio::{IoUringDriver, LegacyDriver, Runtime, RuntimeBuilder};
use rustix::io::Errno;

use crate::error::lacking;

/// Submission slots of a core's ring; monoio 0.2.4 panics when a full ring cannot be flushed, so
/// there is room for a burst.
const RING_ENTRIES: u32 = 4_096;
/// Memory of such a ring: an entry of 64 bytes and a number for each submission, and twice as many
/// completions of 16 bytes.
const RING_BYTES: u32 = RING_ENTRIES * (64 + 4 + 2 * 16);

/// What a ring is asked for: monoio's ways to wait for a socket, to read, to write, to let go.
const OPERATIONS: [u8; 5] = [
    opcode::PollAdd::CODE,
    opcode::Recv::CODE,
    opcode::Send::CODE,
    opcode::AsyncCancel::CODE,
    opcode::Close::CODE,
];

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

    /// io_uring if there can be a ring for each of so many cores, and every operation we need is
    /// there; otherwise epoll and the reason, in words.
    #[must_use]
    pub fn probe(cores: usize) -> (Self, Option<String>) {
        match try_rings(cores) {
            Ok(()) => (Self::IoUring, None),
            Err(error) => (Self::Epoll, Some(reason(&error))),
        }
    }

    /// Whether so many cores can be driven like this.
    ///
    /// # Errors
    /// Why not, and what would do.
    pub fn check(self, cores: usize) -> io::Result<()> {
        match self {
            Self::IoUring => try_rings(cores).map_err(|error| refused(&error)),
            Self::Epoll => Ok(()),
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

/// Builds a ring for each of so many cores, all at a time, and enters each: a filter may allow the
/// one and forbid the other, and a core whose ring cannot be entered would wait without end.
fn try_rings(cores: usize) -> io::Result<()> {
    let rings = (0..cores.max(1)).map(|_core| of_kernel(|builder| builder.build(RING_ENTRIES)));
    let rings: Vec<IoUring> = rings.collect::<io::Result<_>>()?;
    for ring in &rings {
        match ring.submit() {
            // It is there, and has other things to do.
            Err(error) if is_passing(&error) => {}
            entered => {
                entered?;
            }
        }
    }
    let mut known = Probe::new();
    rings[0].submitter().register_probe(&mut known)?;
    match OPERATIONS.iter().all(|&operation| known.is_supported(operation)) {
        true => Ok(()),
        false => Err(io::Error::from(io::ErrorKind::Unsupported)),
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::INTR | Errno::AGAIN | Errno::BUSY))
}

/// A runtime on a ring.
fn ring() -> io::Result<Runtime<IoUringDriver>> {
    of_kernel(|builder| {
        RuntimeBuilder::<IoUringDriver>::new()
            .uring_builder(builder.clone())
            .with_entries(RING_ENTRIES)
            .build()
    })
}

/// What `build` makes with the flags that this kernel knows.
///
/// Without cooperative task running every answer that arrives interrupts the core in the middle of
/// what it does, to say so: a burst of a thousand requests took 1.7 times as long to leave. The
/// core enters the kernel every few microseconds anyway, and learns it then. Kernels before 5.19
/// do not know the flag.
fn of_kernel<T>(build: impl Fn(&io_uring::Builder) -> io::Result<T>) -> io::Result<T> {
    let mut cooperative = IoUring::builder();
    cooperative.setup_coop_taskrun();
    match build(&cooperative) {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => build(&IoUring::builder()),
        built => built,
    }
}

/// What whoever asked for a ring is told when there is none.
fn refused(error: &io::Error) -> io::Error {
    let words = match Errno::from_io_error(error) {
        // The other driver needs them as well.
        Some(Errno::MFILE | Errno::NFILE) => reason(error),
        Some(Errno::PERM | Errno::ACCESS) => format!(
            "{}; use --driver epoll, which needs no ring, or allow it: a seccomp profile that does \
             (docker run --security-opt seccomp=unconfined), and sudo sysctl -w \
             kernel.io_uring_disabled=0",
            reason(error)
        ),
        _ => format!("{}; use --driver epoll, which needs no ring", reason(error)),
    };
    io::Error::new(error.kind(), words)
}

fn reason(error: &io::Error) -> String {
    match Errno::from_io_error(error) {
        Some(Errno::PERM | Errno::ACCESS) => "io_uring is forbidden here (EPERM: a container's \
             seccomp profile, or kernel.io_uring_disabled)"
            .into(),
        Some(Errno::NOMEM) => format!(
            "io_uring found too little lockable memory (ENOMEM; each core's ring takes about {} \
             KiB; to raise it, `ulimit -l`: sudo prlimit --memlock=unlimited --pid $$)",
            RING_BYTES >> 10
        ),
        Some(Errno::NOSYS) => "this kernel has no io_uring (ENOSYS)".into(),
        Some(Errno::MFILE) => format!("io_uring found no descriptor: {}", lacking::files()),
        Some(Errno::NFILE) => format!("io_uring found no descriptor: {}", lacking::host_files()),
        None if error.kind() == io::ErrorKind::Unsupported => {
            "this kernel's io_uring lacks operations we need".into()
        }
        _ => format!("io_uring could not be set up ({error})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_explained() {
        let words = |errno: Errno| reason(&io::Error::from(errno));
        assert!(words(Errno::PERM).contains("seccomp"));
        assert!(words(Errno::NOMEM).contains("ulimit -l"));
        assert!(words(Errno::NOSYS).contains("ENOSYS"));
        assert!(words(Errno::NOMEM).contains("400 KiB"));
        let unknown = reason(&io::ErrorKind::Unsupported.into());
        assert!(unknown.contains("lacks operations"), "{unknown}");
    }

    #[test]
    fn who_asked_for_a_ring_learns_what_would_do() {
        let words = |errno: Errno| refused(&io::Error::from(errno)).to_string();
        let forbidden = words(Errno::PERM);
        for part in ["forbidden here (EPERM", "use --driver epoll", "io_uring_disabled=0"] {
            assert!(forbidden.contains(part), "{forbidden}");
        }
        let old = words(Errno::NOSYS);
        assert!(old.ends_with("use --driver epoll, which needs no ring"), "{old}");
        // Which would lack them as well.
        let files = words(Errno::MFILE);
        assert!(files.contains("--nofile=") && !files.contains("--driver epoll"), "{files}");
    }

    #[test]
    fn whatever_the_probe_finds_runs() {
        let (kind, _) = DriverKind::probe(2);
        assert_eq!(kind.block_on(async { 7 }).expect("the probe built one"), 7);
        assert_eq!(DriverKind::Epoll.block_on(async { 8 }).expect("epoll is everywhere"), 8);
    }
}
