//! One stream socket: opened without blocking, written to at once, hung up to end a pending read.
//!
//! monoio's `TcpStream` carries Unix sockets too: it knows a descriptor that can be received from
//! and sent to, and asks for nothing else.
//!
//! The sockets stay in blocking mode under io_uring (a non-blocking one would make the ring answer
//! "try again" instead of waiting) and non-blocking under epoll. Direct sends never block in either
//! case: they carry `MSG_DONTWAIT`. A pending read is never dropped; [`Wire::hang_up`] makes it
//! complete. This is one of the engine's named `unsafe` modules.

use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use monoio::net::TcpStream;
use onbeat_shared::log::outcome::Class;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendFlags, Shutdown, SocketFlags, SocketType,
};

use super::shortage::Shortage;
use super::tls;
use super::way::{Peer, Way};

/// The descriptor of a connection whose owner is a task elsewhere.
///
/// Whoever holds a `Wire` must drop it before the tasks that own the stream let go of it; the
/// replayer keeps it in the connection's slot and clears it as soon as the reading task has seen
/// the connection's end, or the connecting one its failure.
#[derive(Debug)]
pub struct Wire {
    descriptor: RawFd,
}

impl Wire {
    /// The wire of a stream that the caller keeps alive for as long as this value exists.
    #[must_use]
    pub(crate) fn of(stream: &TcpStream) -> Self {
        Self { descriptor: stream.as_raw_fd() }
    }

    /// Hands `parts` to the kernel without waiting; says how many bytes it took, or `None` when it
    /// has no room for any.
    ///
    /// # Errors
    /// What broke the connection.
    pub fn send_now(&self, parts: &[IoSlice<'_>]) -> Result<Option<usize>, Errno> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        loop {
            let mut no_control = SendAncillaryBuffer::default();
            match rustix::net::sendmsg(self.borrow(), parts, &mut no_control, flags) {
                Ok(taken) => return Ok(Some(taken)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN | Errno::NOBUFS) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether the kernel has something for us that nobody has looked at yet: bytes, an end, an
    /// error, or, with `room`, room for bytes, which a connection has once it is open.
    #[must_use]
    pub fn has_news(&self, room: bool) -> bool {
        let wanted = if room { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let mut looked_at = [PollFd::from_borrowed_fd(self.borrow(), wanted)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        // What cannot be asked is not known to be there.
        rustix::event::poll(&mut looked_at, Some(&at_once)).is_ok_and(|count| count > 0)
    }

    /// Ends the connection in both directions, so that a pending read or write completes.
    pub fn hang_up(&self) {
        // A connection that is already gone needs no hanging up.
        let _ = rustix::net::shutdown(self.borrow(), Shutdown::Both);
    }

    #[expect(unsafe_code, reason = "the descriptor's owner is another task of this core")]
    fn borrow(&self) -> BorrowedFd<'_> {
        // SAFETY: the stream that owns the descriptor outlives this value (see the type's
        // contract).
        unsafe { BorrowedFd::borrow_raw(self.descriptor) }
    }
}

/// Starts connection number `turn` along `way` and returns at once; [`finish_connect`] tells how it
/// went. `None`: the server is there and its queue is full, which only a Unix socket's server says;
/// try again.
///
/// # Errors
/// What the system refused: no descriptor, no local port, no route.
pub fn begin_connect(way: &Way, turn: usize) -> io::Result<Option<TcpStream>> {
    let socket = of_peer(way, turn, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
    match connect(&socket, &way.peer) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(Errno::AGAIN) if matches!(way.peer, Peer::Unix(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    TcpStream::from_std(std::net::TcpStream::from(socket)).map(Some)
}

/// A socket for connection number `turn` along `way`, bound where the way says so.
pub(super) fn of_peer(way: &Way, turn: usize, flags: SocketFlags) -> Result<OwnedFd, Errno> {
    let family = match (&way.peer, way.local(turn)) {
        (Peer::Unix(_), _) => {
            return rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
        }
        (Peer::Tcp(_), Some(own)) => {
            let socket = bound_to(own, flags)?;
            rustix::net::sockopt::set_tcp_nodelay(&socket, true)?;
            return Ok(socket);
        }
        (Peer::Tcp(SocketAddr::V4(_)), None) => AddressFamily::INET,
        (Peer::Tcp(SocketAddr::V6(_)), None) => AddressFamily::INET6,
    };
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    // Head and body leave in one segment if they fit; nothing ever waits for an acknowledgement.
    rustix::net::sockopt::set_tcp_nodelay(&socket, true)?;
    Ok(socket)
}

/// A TCP socket that will leave from `own`. Its port is chosen when it connects, so that one port
/// can serve connections to several servers, and none is taken before it is needed.
pub(super) fn bound_to(own: IpAddr, flags: SocketFlags) -> Result<OwnedFd, Errno> {
    let family = if own.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    choose_port_late(&socket)?;
    rustix::net::bind(&socket, &SocketAddr::new(own, 0))?;
    Ok(socket)
}

#[expect(unsafe_code, reason = "rustix has no call for IP_BIND_ADDRESS_NO_PORT")]
fn choose_port_late(socket: &OwnedFd) -> Result<(), Errno> {
    let on: libc::c_int = 1;
    let size = libc::socklen_t::try_from(size_of_val(&on)).expect("four bytes");
    // SAFETY: the descriptor is open, and the option reads `size` bytes from `on`, which outlives
    // the call.
    let refused = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            (&raw const on).cast(),
            size,
        )
    };
    if refused == 0 {
        return Ok(());
    }
    Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO))
}

/// Connects `socket` to `peer`, waiting if the socket does.
pub(super) fn connect(socket: &OwnedFd, peer: &Peer) -> Result<(), Errno> {
    match peer {
        Peer::Tcp(address) => rustix::net::connect(socket, address),
        Peer::Unix(address) => rustix::net::connect(socket, address),
    }
}

/// Waits until a connection begun with [`begin_connect`] is open or has failed.
///
/// # Errors
/// Why it failed.
pub async fn finish_connect(stream: &TcpStream) -> io::Result<()> {
    loop {
        match stream.writable(false).await {
            // A signal that somebody handled says nothing about the connection.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            ready => break ready?,
        }
    }
    let wire = Wire::of(stream);
    rustix::net::sockopt::socket_error(wire.borrow())??;
    // A hang-up while connecting leaves no error behind, but no peer either.
    rustix::net::getpeername(wire.borrow())?;
    if !monoio::utils::is_legacy() {
        rustix::io::ioctl_fionbio(wire.borrow(), false)?;
    }
    Ok(())
}

/// What a failure to connect is called.
#[must_use]
pub fn connect_class(error: &io::Error) -> Class {
    if let Some(class) = tls::class_of(error) {
        return class;
    }
    if let Some(shortage) = Shortage::of(error) {
        return shortage.class();
    }
    match Errno::from_io_error(error) {
        Some(Errno::CONNREFUSED) => Class::ConnectRefused,
        Some(Errno::TIMEDOUT) => Class::ConnectTimeout,
        _ => Class::ConnectFailed,
    }
}

/// What a failure to read is called when it is ours; `None` when the connection broke.
#[must_use]
pub fn read_class(error: &io::Error) -> Option<Class> {
    matches!(Errno::from_io_error(error), Some(Errno::NOMEM | Errno::NOBUFS | Errno::FAULT))
        .then_some(Class::ClientOther)
}

/// Whether a read that failed so may be made again: a signal came, or nothing was there.
#[must_use]
pub fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}

/// What a failure to write is called when it is ours; `None` when the connection broke, which its
/// pending read knows more about.
#[must_use]
pub fn write_class(error: Errno) -> Option<Class> {
    match error {
        Errno::PIPE
        | Errno::CONNRESET
        | Errno::CONNABORTED
        | Errno::NOTCONN
        | Errno::TIMEDOUT
        | Errno::HOSTUNREACH
        | Errno::NETUNREACH
        | Errno::NETDOWN => None,
        _ => Some(Class::ClientOther),
    }
}

#[cfg(test)]
impl Wire {
    /// Ends our direction only: the next write fails and the pending read does not end.
    pub(crate) fn shut_for_writing(&self) {
        rustix::net::shutdown(self.borrow(), Shutdown::Write).expect("it is open");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_trouble_is_not_blamed_on_the_server() {
        let of = |errno: Errno| connect_class(&io::Error::from(errno));
        for ours in [Errno::MFILE, Errno::ADDRNOTAVAIL, Errno::NOBUFS, Errno::NOSPC, Errno::PERM] {
            assert!(of(ours).is_client_side(), "{ours:?}");
        }
        assert_eq!(of(Errno::CONNREFUSED), Class::ConnectRefused);
        assert_eq!(of(Errno::HOSTUNREACH), Class::ConnectFailed);
        assert_eq!(write_class(Errno::NOMEM), Some(Class::ClientOther));
        assert_eq!(write_class(Errno::PERM), Some(Class::ClientOther), "a firewall of this host");
        assert_eq!(write_class(Errno::PIPE), None);
        let read = |errno: Errno| read_class(&io::Error::from(errno));
        assert_eq!(read(Errno::NOMEM), Some(Class::ClientOther));
        assert_eq!(read(Errno::CONNRESET), None);
        assert!(is_passing(&Errno::INTR.into()) && !is_passing(&Errno::CONNRESET.into()));
    }
}
