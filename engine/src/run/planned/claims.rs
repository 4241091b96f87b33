//! CPUs that no other replay of this host paces on, as far as such are to be had.
//!
//! A CPU is claimed by binding an abstract Unix socket of its name: that is one step, the kernel
//! ends it with the process however that ends, and no file is left. A claim is advice and locks
//! nothing: a CPU that another replay has is used where no other is free, and that is said. Not
//! seen are replays in other network namespaces, as containers have, and other programs; where
//! there are no such sockets nothing is claimed and nothing said.

use std::io;
use std::ops::Deref;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The begin of a socket's name; the CPU's number is the rest.
const NAME: &str = "onbeat-cpu-";

/// CPUs to pace on, claimed for as long as this lives.
#[derive(Debug)]
pub(in crate::run) struct Claimed {
    cpus: Vec<u16>,
    /// Those that another replay had before.
    taken: Vec<u16>,
    _claims: Vec<UnixDatagram>,
}

impl Claimed {
    /// So many of `preferred`, the best first: those that nobody has, and only then others.
    pub(super) fn free_first(preferred: &[u16], count: usize) -> Self {
        Self::named(NAME, preferred, count)
    }

    /// All of `cpus`, whoever has them.
    pub(super) fn all(cpus: &[u16]) -> Self {
        Self::named(NAME, cpus, cpus.len())
    }

    fn named(name: &str, preferred: &[u16], count: usize) -> Self {
        let (mut cpus, mut taken, mut claims) = (Vec::new(), Vec::new(), Vec::new());
        for &cpu in preferred {
            if cpus.len() == count {
                break;
            }
            match claim(name, cpu) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => taken.push(cpu),
                claim => {
                    claims.extend(claim);
                    cpus.push(cpu);
                }
            }
        }
        taken.truncate(count - cpus.len());
        cpus.extend(&taken);
        // Whoever named them has given them an order.
        cpus.sort_by_key(|cpu| preferred.iter().position(|preferred| preferred == cpu));
        Self { cpus, taken, _claims: claims }
    }

    /// What is said where a CPU is another replay's as well.
    pub(super) fn warning(&self) -> Option<String> {
        let names: Vec<String> = self.taken.iter().map(u16::to_string).collect();
        let cpus = match names.as_slice() {
            [] => return None,
            [one] => format!("CPU {one}"),
            [others @ .., last] => format!("CPUs {} and {last}", others.join(", ")),
        };
        Some(format!(
            "another replay on this host paces on {cpus}, too: each takes it from the other, and \
             what that delays is told as the host's stalls; run one after the other, or give each \
             CPUs of its own (--cores)"
        ))
    }
}

impl Deref for Claimed {
    type Target = [u16];

    fn deref(&self) -> &[u16] {
        &self.cpus
    }
}

/// Holds a CPU against others who ask like this.
fn claim(name: &str, cpu: u16) -> io::Result<UnixDatagram> {
    UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(format!("{name}{cpu}"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name that no replay and no other test uses.
    fn own(name: &str) -> String {
        format!("onbeat-test-{}-{name}-", std::process::id())
    }

    #[test]
    fn free_cpus_come_first_and_a_shared_one_is_told() {
        let own = own("free");
        let claimed = |count| Claimed::named(&own, &[7, 6, 5], count);
        let first = claimed(1);
        assert_eq!((&first[..], first.warning()), (&[7][..], None));
        let second = claimed(1);
        assert_eq!((&second[..], second.warning()), (&[6][..], None));
        let third = claimed(2);
        assert_eq!(third[..], [7, 5]);
        let words = third.warning().expect("one is shared");
        assert!(words.contains("paces on CPU 7, too") && words.contains("--cores"), "{words}");
        let fourth = claimed(3);
        assert_eq!(fourth[..], [7, 6, 5], "as many as are wanted");
        assert!(fourth.warning().expect("all").contains("CPUs 7, 6 and 5"));
        drop(first);
        let fifth = claimed(1);
        assert_eq!((&fifth[..], fifth.warning()), (&[7][..], None), "its owner has ended");
    }

    #[test]
    fn cpus_that_are_named_are_taken_in_their_order_whoever_has_them() {
        let own = own("named");
        let _other = Claimed::named(&own, &[2], 1);
        let named = Claimed::named(&own, &[3, 2, 4], 3);
        assert_eq!(named[..], [3, 2, 4]);
        assert!(named.warning().expect("one is shared").contains("on CPU 2, too"));
    }

    #[test]
    fn what_cannot_be_asked_is_no_claim_and_no_warning() {
        // Longer than an address can be.
        let claimed = Claimed::named(&"x".repeat(200), &[1, 0], 1);
        assert_eq!((&claimed[..], claimed.warning()), (&[1][..], None));
    }
}
