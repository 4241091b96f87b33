//! One TCP socket: opened without blocking, written to at once, hung up to end a pending read.
//!
//! The sockets stay in blocking mode under io_uring (a non-blocking one would make the ring answer
//! "try again" instead of waiting) and non-blocking under epoll. Direct sends never block in either
//! case: they carry `MSG_DONTWAIT`. A pending read is never dropped; [`Wire::hang_up`] makes it
//! complete. This is one of the engine's named `unsafe` modules.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use monoio::net::TcpStream;
use onbeat_shared::log::outcome::Class;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendFlags, Shutdown, SocketFlags, SocketType,
};

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
    pub fn of(stream: &TcpStream) -> Self {
        Self { descriptor: stream.as_raw_fd() }
    }

    /// Hands `parts` to the kernel without waiting; says how many bytes it took.
    ///
    /// # Errors
    /// `AGAIN` when the socket's buffer is full, otherwise what broke the connection.
    pub fn send_now(&self, parts: &[IoSlice<'_>]) -> Result<usize, Errno> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        rustix::net::sendmsg(self.borrow(), parts, &mut SendAncillaryBuffer::default(), flags)
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

/// Starts a connection to `address` and returns at once; [`finish_connect`] tells how it went.
///
/// # Errors
/// What the system refused: no descriptor, no local port, no route.
pub fn begin_connect(address: SocketAddr) -> io::Result<TcpStream> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket: OwnedFd = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    // Head and body leave in one segment if they fit; nothing ever waits for an acknowledgement.
    rustix::net::sockopt::set_tcp_nodelay(&socket, true)?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    TcpStream::from_std(std::net::TcpStream::from(socket))
}

/// Waits until a connection begun with [`begin_connect`] is open or has failed.
///
/// # Errors
/// Why it failed.
pub async fn finish_connect(stream: &TcpStream) -> io::Result<()> {
    stream.writable(false).await?;
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
    match Errno::from_io_error(error) {
        Some(Errno::CONNREFUSED) => Class::ConnectRefused,
        Some(Errno::TIMEDOUT) => Class::ConnectTimeout,
        Some(Errno::MFILE | Errno::NFILE) => Class::ClientNoDescriptor,
        Some(Errno::ADDRNOTAVAIL) => Class::ClientNoPort,
        Some(Errno::NOBUFS | Errno::NOMEM) => Class::ClientOther,
        _ => Class::ConnectFailed,
    }
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
        assert!(of(Errno::MFILE).is_client_side());
        assert!(of(Errno::ADDRNOTAVAIL).is_client_side());
        assert_eq!(of(Errno::CONNREFUSED), Class::ConnectRefused);
        assert_eq!(of(Errno::HOSTUNREACH), Class::ConnectFailed);
        assert_eq!(write_class(Errno::NOMEM), Some(Class::ClientOther));
        assert_eq!(write_class(Errno::PERM), Some(Class::ClientOther), "a firewall of this host");
        assert_eq!(write_class(Errno::PIPE), None);
    }
}
