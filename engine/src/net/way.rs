//! The way to the server, found before zero: its address, the addresses of ours that connections
//! leave from, and its path in the file system where it has one.
//!
//! Whether somebody answers there is found out in [`super::reach`]; a connection is made in
//! [`super::socket`]. Nothing here does IO.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use rustix::net::SocketAddrUnix;

use super::tls::{Client, TlsOptions};

/// How connections are made, apart from the server's URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WayOptions {
    /// Connect to this Unix socket instead of the URL's host.
    pub unix_socket: Option<PathBuf>,
    /// Addresses of this host that connections leave from, in turn; empty: the system's choice.
    pub local_addresses: Vec<IpAddr>,
    /// What is trusted and who we are, where the URL says `https`.
    pub tls: TlsOptions,
}

/// Where the server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// An address and a port.
    Tcp(SocketAddr),
    /// A socket in the file system.
    Unix(SocketAddrUnix),
}

/// Where every connection of a run goes to and comes from.
#[derive(Clone, Debug)]
pub struct Way {
    /// The server.
    pub peer: Peer,
    /// Our own addresses, taken in turn; empty: the system's choice.
    pub local: Vec<IpAddr>,
    /// Our side of TLS; `None`: plain HTTP.
    pub tls: Option<Client>,
}

impl Way {
    /// The way to `peer` from whatever address the system chooses.
    #[must_use]
    pub const fn to(peer: Peer) -> Self {
        Self { peer, local: Vec::new(), tls: None }
    }

    /// The address that connection number `turn` leaves from; `None` leaves it to the system.
    #[must_use]
    pub fn local(&self, turn: usize) -> Option<IpAddr> {
        self.local.get(turn % self.local.len().max(1)).copied()
    }
}

impl Peer {
    /// The socket at `path`.
    ///
    /// # Errors
    /// When the path is empty or longer than the system allows (107 bytes), in words.
    pub fn unix(path: &Path) -> Result<Self, String> {
        if path.as_os_str().is_empty() {
            return Err("the path is empty".to_owned());
        }
        match SocketAddrUnix::new(path) {
            Ok(address) => Ok(Self::Unix(address)),
            Err(_too_long) => Err(format!(
                "the path has {} bytes, and a socket's path has at most 107; use a shorter one, or \
                 a link",
                path.as_os_str().len()
            )),
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(out),
            Self::Unix(address) => {
                let path = address.path_bytes().unwrap_or_default();
                write!(out, "unix:{}", String::from_utf8_lossy(path))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_addresses_are_taken_in_turn() {
        let peer = Peer::Tcp("127.0.0.1:80".parse().expect("literal"));
        let mut way = Way::to(peer);
        assert_eq!(way.local(7), None);
        let addresses = ["127.0.0.2", "127.0.0.3"].map(|text| text.parse().expect("literal"));
        way.local = addresses.to_vec();
        assert_eq!([0, 1, 2].map(|turn| way.local(turn)), [0, 1, 0].map(|at| Some(addresses[at])));
    }

    #[test]
    fn a_path_that_no_socket_can_have_is_refused() {
        assert!(Peer::unix(Path::new("")).is_err_and(|words| words.contains("empty")));
        let long = "x".repeat(205);
        assert!(Peer::unix(Path::new(&long)).is_err_and(|words| words.contains("205 bytes")));
        let peer = Peer::unix(Path::new("server.sock")).expect("short");
        assert_eq!(peer.to_string(), "unix:server.sock");
    }
}
