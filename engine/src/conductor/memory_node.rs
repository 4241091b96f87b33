//! Memory close to the cores that send, on machines where memory has several places.
//!
//! A core's own blocks and slots lie close to it without being asked: the thread that touches
//! memory first decides, and that is the pinned core itself. The requests' bytes are written by
//! other threads before zero; [`prefer`] sees that they lie on the pacing cores' node if these
//! share one. Where there is nothing to gain or the kernel refuses, it says so and the run goes on.
//! This is one of the engine's named `unsafe` modules: nothing safe sets a memory policy.

use std::io;
use std::path::Path;

/// `MPOL_PREFERRED`: this node while it has room, others after that.
const PREFERRED: libc::c_int = 1;
/// Nodes that one word of a mask holds.
const NODES_MAX: u32 = libc::c_ulong::BITS;

/// What came of asking.
#[derive(Debug)]
pub enum MemoryNode {
    /// Memory comes from this node while it has room.
    Preferred(u32),
    /// All memory is equally close.
    Single,
    /// The pacing cores are on several nodes.
    Several,
    /// The kernel does not let this process.
    Refused(io::Error),
}

impl MemoryNode {
    /// The name in the manifest.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Preferred(node) => format!("node {node}"),
            Self::Single => "single".to_owned(),
            Self::Several => "several".to_owned(),
            Self::Refused(_) => "refused".to_owned(),
        }
    }

    /// What is missing and what would help, in words; `None` when nothing is.
    #[must_use]
    pub fn shortfall(&self) -> Option<String> {
        match self {
            Self::Preferred(_) => None,
            Self::Single => {
                Some("--numa-local: this machine has one memory node, so nothing changes".to_owned())
            }
            Self::Several => Some(
                "--numa-local: the pacing cores are on several memory nodes, so the requests' bytes \
                 cannot be close to all; choose cores of one node with --cores (see lscpu)"
                    .to_owned(),
            ),
            Self::Refused(error) => Some(format!(
                "--numa-local: not permitted ({error}); memory comes from where there is room. In \
                 a container, allow set_mempolicy in its seccomp profile or add CAP_SYS_NICE"
            )),
        }
    }
}

/// Prefers memory close to `cpus` for the calling thread and those it will start.
#[must_use]
pub fn prefer(cpus: &[u16]) -> MemoryNode {
    let choice = choose(Path::new("/sys/devices/system"), cpus);
    match choice {
        MemoryNode::Preferred(node) => {
            set_policy(node).map_or_else(MemoryNode::Refused, |()| choice)
        }
        other => other,
    }
}

/// What `system` (the kernel's folder of that name) says about `cpus`.
fn choose(system: &Path, cpus: &[u16]) -> MemoryNode {
    let nodes: Vec<u32> =
        (0..NODES_MAX).filter(|node| system.join(format!("node/node{node}")).is_dir()).collect();
    if nodes.len() < 2 {
        return MemoryNode::Single;
    }
    let node_of = |cpu: &u16| {
        let folder = system.join(format!("cpu/cpu{cpu}"));
        nodes.iter().copied().find(|node| folder.join(format!("node{node}")).exists())
    };
    let mut homes = cpus.iter().map(node_of);
    match homes.next().flatten() {
        Some(first) if homes.all(|home| home == Some(first)) => MemoryNode::Preferred(first),
        _ => MemoryNode::Several,
    }
}

#[expect(unsafe_code, reason = "nothing safe sets a memory policy")]
fn set_policy(node: u32) -> io::Result<()> {
    let mask: libc::c_ulong = 1 << node;
    // The kernel reads one bit less than it is told.
    let bits = libc::c_ulong::from(NODES_MAX) + 1;
    // SAFETY: the kernel reads one word from the mask during the call, which is as many bits as it
    // is told of, and a policy changes only where memory that is not yet there will come from.
    match unsafe { libc::syscall(libc::SYS_set_mempolicy, PREFERRED, &raw const mask, bits) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(homes: &[(u16, u32)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (cpu, node) in homes {
            for path in [format!("node/node{node}"), format!("cpu/cpu{cpu}/node{node}")] {
                std::fs::create_dir_all(folder.path().join(path)).expect("a folder");
            }
        }
        folder
    }

    #[test]
    fn the_node_is_that_of_all_pacing_cores() {
        let two = machine(&[(0, 0), (1, 1), (2, 0), (3, 1)]);
        let name = |cpus: &[u16]| choose(two.path(), cpus).name();
        assert_eq!(name(&[1, 3]), "node 1");
        assert_eq!(name(&[0]), "node 0");
        assert_eq!(name(&[0, 1]), "several");
        assert_eq!(name(&[9]), "several", "a CPU of which nothing is known");
        let one = machine(&[(0, 0), (1, 0)]);
        assert_eq!(choose(one.path(), &[0]).name(), "single");
    }

    #[test]
    fn whoever_gets_nothing_is_told_why() {
        assert!(MemoryNode::Preferred(1).shortfall().is_none());
        let refused = MemoryNode::Refused(rustix::io::Errno::PERM.into());
        for (node, words) in [
            (MemoryNode::Single, "one memory node"),
            (MemoryNode::Several, "--cores"),
            (refused, "set_mempolicy"),
        ] {
            assert!(node.shortfall().is_some_and(|said| said.contains(words)), "{node:?}");
        }
    }

    #[test]
    fn a_kernel_takes_the_policy_or_says_why_not() {
        let asked = std::thread::Builder::new().name("near".to_owned()).spawn(|| set_policy(0));
        match asked.expect("a thread").join().expect("no panic") {
            Ok(()) => {}
            Err(error) => assert!(
                matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS)),
                "a mask of one existing node is refused only by policy: {error}"
            ),
        }
    }
}
