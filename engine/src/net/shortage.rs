//! What this host can run out of, or forbid, when a connection is opened: told apart from what a
//! server does, with its class and with the command that raises what was too little.
//!
//! Files below `/proc/sys` are read for the numbers in the words, and for nothing else; what cannot
//! be read is left out. Nothing is changed here.

use std::io;

use onbeat_shared::log::outcome::Class;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::EngineError;
use crate::error::lacking::{self, doubled};

/// What is lacking on our side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// The process may not open another file.
    Descriptors,
    /// Nobody on this host may.
    HostDescriptors,
    /// Every local port that leads to the server is taken, or has no address to leave from.
    Ports,
    /// The kernel has no memory for a connection.
    Memory,
    /// The kernel watches no further descriptor for this user.
    Watches,
    /// A rule of this host.
    Forbidden,
}

impl Shortage {
    /// What is lacking here, if that is why a connection failed.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<Self> {
        Some(match Errno::from_io_error(error)? {
            Errno::MFILE => Self::Descriptors,
            Errno::NFILE => Self::HostDescriptors,
            Errno::ADDRNOTAVAIL | Errno::ADDRINUSE => Self::Ports,
            Errno::NOBUFS | Errno::NOMEM => Self::Memory,
            Errno::NOSPC => Self::Watches,
            Errno::PERM | Errno::ACCESS => Self::Forbidden,
            _ => return None,
        })
    }

    /// What is lacking for opening any file at all, found out by opening one: who looks up a name
    /// is not told.
    #[must_use]
    pub fn of_files() -> Option<Self> {
        let opened = rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let shortage = Self::of(&opened.err()?.into())?;
        matches!(shortage, Self::Descriptors | Self::HostDescriptors | Self::Memory)
            .then_some(shortage)
    }

    /// Whether it is the same whichever address is connected to.
    #[must_use]
    pub const fn is_of_every_address(self) -> bool {
        !matches!(self, Self::Ports | Self::Forbidden)
    }

    /// The class of a request that found no connection for this reason.
    #[must_use]
    pub const fn class(self) -> Class {
        match self {
            Self::Descriptors | Self::HostDescriptors => Class::ClientNoDescriptor,
            Self::Ports => Class::ClientNoPort,
            Self::Memory | Self::Watches | Self::Forbidden => Class::ClientOther,
        }
    }

    /// What is lacking and the command that raises it, as one sentence without its full stop.
    #[must_use]
    pub fn words(self) -> String {
        match self {
            Self::Descriptors => format!("the server is not to blame: {}", lacking::files()),
            Self::HostDescriptors => {
                format!("the server is not to blame: {}", lacking::host_files())
            }
            Self::Ports => format!(
                "no local port is left for another connection to this server{}, or this host has \
                 no address to reach it from; to widen the range: sudo sysctl -w \
                 net.ipv4.ip_local_port_range=\"1024 65535\"; or leave from several addresses of \
                 this host (--local-address)",
                range().map_or_else(String::new, |range| format!(" (of those from {range})"))
            ),
            Self::Memory => {
                let raise = doubled("net/ipv4/tcp_mem").map_or_else(String::new, |more| {
                    format!(", or what TCP may take: sudo sysctl -w net.ipv4.tcp_mem=\"{more}\"")
                });
                format!(
                    "this host's kernel has no memory for another connection, and the server is \
                     not to blame; raise the control group's limit (memory.max) if it has one{raise}"
                )
            }
            Self::Watches => format!("the server is not to blame: {}", lacking::watches()),
            Self::Forbidden => "this host forbids the connection, and the server was not reached; \
                                its firewall's rules: sudo nft list ruleset"
                .to_owned(),
        }
    }

    /// The end of a run that cannot begin for this reason.
    #[must_use]
    pub fn error(self, error: &io::Error) -> EngineError {
        let source = io::Error::new(error.kind(), format!("{error}: {}", self.words()));
        EngineError::Io { action: "connect to the server", path: None, source }
    }
}

/// What is said of a failure to connect: of ours what is lacking, of any other the system's words.
#[must_use]
pub fn told(error: &io::Error) -> String {
    Shortage::of(error)
        .map_or_else(|| error.to_string(), |shortage| format!("{error}: {}", shortage.words()))
}

fn range() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut ports = text.split_whitespace();
    Some(format!("{} to {}", ports.next()?, ports.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: [(Errno, Shortage); 9] = [
        (Errno::MFILE, Shortage::Descriptors),
        (Errno::NFILE, Shortage::HostDescriptors),
        (Errno::ADDRNOTAVAIL, Shortage::Ports),
        (Errno::ADDRINUSE, Shortage::Ports),
        (Errno::NOBUFS, Shortage::Memory),
        (Errno::NOMEM, Shortage::Memory),
        (Errno::NOSPC, Shortage::Watches),
        (Errno::PERM, Shortage::Forbidden),
        (Errno::ACCESS, Shortage::Forbidden),
    ];

    #[test]
    fn what_is_ours_has_a_class_of_ours_and_a_command() {
        for (errno, shortage) in OURS {
            let error = io::Error::from(errno);
            assert_eq!(Shortage::of(&error), Some(shortage), "{error}");
            assert!(shortage.class().is_client_side(), "{error}");
            let words = told(&error);
            assert!(words.contains("sudo "), "{words}");
            assert!(!words.contains("Is the server running"), "{words}");
            let refused = shortage.error(&error);
            assert_eq!(refused.exit_code(), 1);
            assert!(refused.to_string().contains("could not connect to the server: "), "{refused}");
        }
    }

    #[test]
    fn what_a_server_does_is_none_of_ours() {
        for errno in [Errno::CONNREFUSED, Errno::TIMEDOUT, Errno::HOSTUNREACH, Errno::CONNRESET] {
            let error = io::Error::from(errno);
            assert_eq!(Shortage::of(&error), None, "{error}");
            assert_eq!(told(&error), error.to_string());
        }
        assert_eq!(Shortage::of(&io::Error::other("no number")), None);
        assert_eq!(Shortage::of_files(), None, "this test has descriptors left");
    }
}
