//! Before zero: does the server accept a connection, from every address that is to be used, and is
//! it the server it should be?
//!
//! Over TLS the first session of a run is made here, alone, so that the others can resume it.
//!
//! Blocks, for three seconds an address and ten for a handshake at most. What it finds out is the
//! [`Way`] that the cores then take; what it cannot find is said in words that name the option, and
//! nothing has been sent.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use onbeat_shared::foreign::shown_path;
use rustix::io::Errno;
use rustix::net::SocketFlags;
use rustix::net::sockopt::{Timeout, set_socket_timeout};

use super::shortage::Shortage;
use super::socket;
use super::target::Target;
use super::tls::{self, Client, Fault, Phase, Session};
use super::way::{Peer, Way, WayOptions};
use crate::clock::monotonic_ns;
use crate::error::EngineError;

/// How long the server may take to accept a probe.
const PROBE: Duration = Duration::from_secs(3);
/// How long the whole handshake may take: a server that drips its part byte by byte is not there.
const GREETING: Duration = Duration::from_secs(10);
/// How long to wait for a ticket behind a handshake, or for the server's word on our certificate. A
/// server that has either to say says it at once.
const AFTERWORD: Duration = Duration::from_millis(300);

/// The way to a server, and what was found there.
#[derive(Debug)]
pub struct Reached {
    /// The way.
    pub way: Way,
    /// What the first TLS session agreed on; `None`: plain HTTP.
    pub tls: Option<tls::Facts>,
}

/// A run's options, as JSON, with the addresses that were reached: a host may have several.
#[must_use]
pub fn resolved(mut options: serde_json::Value, reached: &[Reached]) -> serde_json::Value {
    if let Some(options) = options.as_object_mut() {
        let addresses = reached.iter().map(|reached| reached.way.peer.to_string());
        options.insert("addresses".to_owned(), addresses.collect());
    }
    options
}

/// The way to `target`, tried.
///
/// # Errors
/// When an option cannot be meant or nobody accepts a connection.
pub fn reach(target: &Target, options: &WayOptions) -> Result<Reached, EngineError> {
    let client = match target.is_secure() {
        true => Some(Client::new(target.host(), &options.tls)?),
        false => None,
    };
    let (mut way, socket) = match &options.unix_socket {
        Some(path) => {
            if !options.local_addresses.is_empty() {
                return Err(EngineError::Usage(
                    "--local-address: a connection to --unix-socket has no address of its own; \
                     leave one of the two out"
                        .into(),
                ));
            }
            reach_unix(path)?
        }
        None => reach_tcp(target, &options.local_addresses)?,
    };
    let Some(mut client) = client else { return Ok(Reached { way, tls: None }) };
    let facts = greet(socket, &client, GREETING).map_err(|fault| {
        EngineError::Run(match fault.class.is_client_side() {
            true => format!("could not connect to the server: {fault}"),
            false => format!("{target} ({}): {fault}", way.peer),
        })
    })?;
    client.settle();
    way.tls = Some(client);
    Ok(Reached { way, tls: Some(facts) })
}

/// The first session of a run: makes it, and waits for what the server adds behind the handshake.
fn greet(
    socket: Option<OwnedFd>,
    client: &Client,
    patience: Duration,
) -> Result<tls::Facts, Fault> {
    let patience_ns = i64::try_from(patience.as_nanos()).unwrap_or(i64::MAX);
    let until_ns = monotonic_ns().saturating_add(patience_ns);
    // Whatever kind of stream socket it is: it is read from and written to.
    let Some(mut stream) = socket.map(TcpStream::from) else { return Err(Fault::closed()) };
    let mut session = client.begin()?;
    while session.phase() == Phase::Handshake {
        if monotonic_ns() > until_ns {
            return Err(Fault::broken_off(&io::ErrorKind::TimedOut.into()));
        }
        flush(&mut stream, &mut session).map_err(|error| Fault::broken_off(&error))?;
        read(&mut stream, &mut session)?;
    }
    flush(&mut stream, &mut session).map_err(|error| Fault::broken_off(&error))?;
    let facts = session.facts().ok_or_else(Fault::closed)?;
    // A stream without this limit would only wait longer.
    let _ = stream.set_read_timeout(Some(AFTERWORD));
    while !client.may_resume() && session.phase() == Phase::Open && monotonic_ns() < until_ns {
        match read(&mut stream, &mut session) {
            Ok(()) => {}
            // Nothing to add.
            Err(fault) if fault.is_no_verdict() => break,
            Err(fault) => return Err(fault),
        }
    }
    if session.say_goodbye() {
        let _ = flush(&mut stream, &mut session);
    }
    Ok(facts)
}

pub(super) fn flush(stream: &mut TcpStream, session: &mut Session) -> io::Result<()> {
    while !session.ready().is_empty() {
        match stream.write(session.ready()) {
            Ok(count) => session.left(count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// One read of the first session; nothing but TLS's own messages is expected.
fn read(stream: &mut TcpStream, session: &mut Session) -> Result<(), Fault> {
    let mut buffer = [0; 4_096];
    let count = match stream.read(&mut buffer) {
        Ok(0) => return Err(Fault::closed()),
        Ok(count) => count,
        Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
        Err(error) => return Err(Fault::broken_off(&error)),
    };
    let received = session.receive(&buffer[..count], &mut Vec::new());
    if received.is_err() {
        // The alert that says why; whether it arrives changes nothing.
        let _ = flush(stream, session);
    }
    received.map(|_phase| ())
}

/// A way, and the connection that was made along it, if there was room for one.
type Found = (Way, Option<OwnedFd>);

fn reach_unix(path: &Path) -> Result<Found, EngineError> {
    let peer = Peer::unix(path).map_err(|words| {
        EngineError::Usage(format!("--unix-socket {}: {words}", shown_path(path)))
    })?;
    let way = Way::to(peer);
    match probe(&way, 0) {
        // The server is there, and busy: its queue is full.
        Err(Errno::AGAIN) => Ok((way, None)),
        Ok(socket) => Ok((way, Some(socket))),
        Err(error) => Err(match of_every_address(error) {
            Some(ours) => ours,
            None => EngineError::Run(format!(
                "--unix-socket {}: {}",
                shown_path(path),
                unix_words(error)
            )),
        }),
    }
}

/// What is wrong with a socket's path, as far as a connection tells.
fn unix_words(error: Errno) -> String {
    match error {
        Errno::NOENT => "there is no such socket. Is the server running?".into(),
        // Also what connecting to a plain file says.
        Errno::CONNREFUSED => {
            "nobody listens there: it is no socket, or its server has gone".into()
        }
        Errno::NOTDIR => "a part of the path is no folder".into(),
        Errno::ACCESS | Errno::PERM => {
            "this user may not connect to it (permission denied); it takes the right to write to \
             the socket and to enter its folders"
                .into()
        }
        Errno::PROTOTYPE => "it is a socket of another kind, not a stream socket".into(),
        other => format!("{}", io::Error::from(other)),
    }
}

/// The end of a run that cannot begin, if that is the fault of this host whatever is connected to.
fn of_every_address(error: Errno) -> Option<EngineError> {
    let error = io::Error::from(error);
    let shortage = Shortage::of(&error).filter(|shortage| shortage.is_of_every_address())?;
    Some(shortage.error(&error))
}

/// The addresses of a server, looked up.
///
/// # Errors
/// When nobody knows the name, or nobody could be asked.
pub fn addresses(target: &Target) -> Result<Vec<SocketAddr>, EngineError> {
    target.resolve().map_err(|error| match Shortage::of_files() {
        Some(shortage) => shortage.error(&io::Error::other(error)),
        None => EngineError::Usage(error.to_string()),
    })
}

fn reach_tcp(target: &Target, local: &[IpAddr]) -> Result<Found, EngineError> {
    let addresses = addresses(target)?;
    for &own in local {
        is_ours(own)?;
    }
    let usable = usable(&addresses, local)?;
    let mut refusals = Vec::new();
    for address in usable {
        let way = Way { local: local.to_vec(), ..Way::to(Peer::Tcp(address)) };
        let probes = (0..local.len().max(1))
            .map(|turn| probe(&way, turn).map_err(|error| (way.local(turn), error)))
            .collect::<Result<Vec<_>, _>>();
        match probes {
            Ok(mut sockets) => return Ok((way, sockets.pop())),
            Err((own, error)) => {
                if let Some(ours) = of_every_address(error) {
                    return Err(ours);
                }
                refusals.push(Refusal { address, own, error: error.into() });
            }
        }
    }
    Err(refused(target, &refusals))
}

/// An address that accepts no connection.
struct Refusal {
    address: SocketAddr,
    own: Option<IpAddr>,
    error: io::Error,
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.address)?;
        if let Some(own) = self.own {
            write!(out, " from --local-address {own}")?;
        }
        write!(out, ": {}", self.error)
    }
}

/// The end of a run whose server was not reached at any of its addresses.
fn refused(target: &Target, refusals: &[Refusal]) -> EngineError {
    /// A name that has more is likely a whole cluster's.
    const SHOWN: usize = 4;
    let ours = |refusal: &&Refusal| Shortage::of(&refusal.error).is_some();
    // A family that this host does not have tells less than any other refusal.
    let (ours, theirs): (Vec<_>, Vec<_>) = refusals.iter().partition(ours);
    if let (true, Some(first)) = (theirs.is_empty(), ours.first())
        && let Some(shortage) = Shortage::of(&first.error)
    {
        return shortage.error(&first.error);
    }
    let mut all: Vec<String> = theirs.iter().take(SHOWN).map(ToString::to_string).collect();
    if theirs.len() > SHOWN {
        all.push(format!("and {} more", theirs.len() - SHOWN));
    }
    EngineError::Run(format!(
        "{target} does not accept connections ({}). Is the server running, and is --url right?",
        all.join("; ")
    ))
}

/// The server's addresses that can be reached from ours: of the same family.
fn usable(server: &[SocketAddr], local: &[IpAddr]) -> Result<Vec<SocketAddr>, EngineError> {
    let Some(first) = local.first() else { return Ok(server.to_vec()) };
    if let Some(other) = local.iter().find(|own| own.is_ipv4() != first.is_ipv4()) {
        return Err(EngineError::Usage(format!(
            "--local-address: {first} and {other} are of different families; give IPv4 addresses \
             only, or IPv6 addresses only"
        )));
    }
    let usable: Vec<_> =
        server.iter().copied().filter(|address| address.is_ipv4() == first.is_ipv4()).collect();
    if usable.is_empty() {
        let (ours, theirs) = if first.is_ipv4() { ("IPv4", "IPv6") } else { ("IPv6", "IPv4") };
        return Err(EngineError::Usage(format!(
            "--local-address {first} is {ours}, and the server has {theirs} addresses only"
        )));
    }
    Ok(usable)
}

/// Refuses an address that this host does not have.
fn is_ours(own: IpAddr) -> Result<(), EngineError> {
    // The kernel takes these for "any", so that connections would not leave from them.
    let is_everybodys = own.is_unspecified()
        || own.is_multicast()
        || matches!(own, IpAddr::V4(address) if address.is_broadcast());
    if is_everybodys {
        return Err(EngineError::Usage(format!(
            "--local-address {own} is no address of one host; `ip address` lists this one's"
        )));
    }
    match socket::bound_to(own, SocketFlags::CLOEXEC) {
        Ok(_) => Ok(()),
        Err(Errno::ADDRNOTAVAIL) => Err(EngineError::Usage(format!(
            "--local-address {own} is no address of this host; `ip address` lists them, and \
             `sudo ip address add {own}/{} dev DEVICE` adds one",
            if own.is_ipv4() { 32 } else { 128 }
        ))),
        Err(error) => Err(of_every_address(error).unwrap_or_else(|| {
            EngineError::Usage(format!(
                "--local-address {own} cannot be used: {}",
                io::Error::from(error)
            ))
        })),
    }
}

/// A connection that waits until it is open.
pub(super) fn probe(way: &Way, turn: usize) -> Result<OwnedFd, Errno> {
    /// Signals do not come more often than that.
    const TRIES: usize = 5;
    let mut connected = Err(Errno::INTR);
    for _ in 0..TRIES {
        connected = connect_once(way, turn);
        // A process that was stopped meanwhile, or got a signal: that says nothing of the server.
        if connected.as_ref().err() != Some(&Errno::INTR) {
            break;
        }
    }
    connected
}

fn connect_once(way: &Way, turn: usize) -> Result<OwnedFd, Errno> {
    let socket = socket::of_peer(way, turn, SocketFlags::CLOEXEC)?;
    // Connecting goes by the limit on sending.
    set_socket_timeout(&socket, Timeout::Send, Some(PROBE))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(PROBE))?;
    match socket::connect(&socket, &way.peer) {
        Ok(()) => Ok(socket),
        Err(Errno::INPROGRESS) => Err(Errno::TIMEDOUT),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words<T>(result: Result<T, EngineError>) -> String {
        match result {
            Ok(_) => "fine".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn an_address_of_another_host_is_refused_by_name() {
        // Documentation addresses: nobody has them.
        let foreign = "192.0.2.7".parse().expect("literal");
        let refused = words(is_ours(foreign));
        assert!(refused.contains("192.0.2.7 is no address of this host"), "{refused}");
        assert_eq!(words(is_ours("127.0.0.9".parse().expect("literal"))), "fine");
        for everybodys in ["0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255"] {
            let refused = words(is_ours(everybodys.parse().expect("literal")));
            assert!(refused.contains("is no address of one host"), "{everybodys}: {refused}");
        }
    }

    #[test]
    fn a_handshake_that_drips_is_over_in_time() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port on loopback");
        let ours = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
        let (mut theirs, _) = listener.accept().expect("it has connected");
        let server = std::thread::Builder::new().name("dripping".to_owned()).spawn(move || {
            // A record of the handshake that would be long, a byte at a time.
            let _ = theirs.write_all(&[0x16, 3, 3, 0x3f, 0]);
            let _ = theirs.set_read_timeout(Some(Duration::from_millis(20)));
            let mut buffer = [0; 4_096];
            while theirs.write_all(&[2]).is_ok() && !matches!(theirs.read(&mut buffer), Ok(0)) {}
        });
        let client = Client::new("localhost", &tls::TlsOptions::default()).expect("a client");
        let fault = greet(Some(ours.into()), &client, Duration::from_millis(300));
        let words = fault.expect_err("no server drips so long").to_string();
        assert!(words.starts_with("the TLS handshake took too long"), "{words}");
        server.expect("a thread").join().expect("it ends with the connection");
    }

    #[test]
    fn families_are_not_mixed() {
        let four: IpAddr = "127.0.0.2".parse().expect("literal");
        let six: IpAddr = "::1".parse().expect("literal");
        let server = ["127.0.0.1:1".parse().expect("literal"), "[::1]:1".parse().expect("literal")];
        assert_eq!(usable(&server, &[six]).expect("one fits"), server[1..]);
        assert_eq!(usable(&server, &[]).expect("all fit"), server);
        assert!(words(usable(&server, &[four, six])).contains("different families"));
        assert!(words(usable(&server[..1], &[six])).contains("IPv4 addresses only"));
    }

    #[test]
    fn a_server_of_several_addresses_is_blamed_with_all_that_refused() {
        let target = Target::parse("http://host:9").expect("a URL");
        let refusal = |address: &str, error: Errno| {
            let address = address.parse().expect("literal");
            Refusal { address, own: None, error: error.into() }
        };
        let told = |all: &[Refusal]| refused(&target, all).to_string();
        let both = told(&[
            refusal("127.0.0.1:9", Errno::CONNREFUSED),
            refusal("[::1]:9", Errno::TIMEDOUT),
        ]);
        assert!(both.contains("(127.0.0.1:9: Connection refused"), "{both}");
        assert!(both.contains("; [::1]:9: Connection timed out"), "{both}");
        let one = told(&[
            refusal("[::1]:9", Errno::ADDRNOTAVAIL),
            refusal("127.0.0.1:9", Errno::CONNREFUSED),
        ]);
        assert!(!one.contains("[::1]") && one.contains("127.0.0.1:9: Connection refused"), "{one}");
        let ours = told(&[refusal("[::1]:9", Errno::ADDRNOTAVAIL)]);
        assert!(ours.contains("ip_local_port_range") && !ours.contains("Is the server"), "{ours}");
        let many: Vec<_> =
            (1..=7).map(|n| refusal(&format!("10.0.0.{n}:9"), Errno::CONNREFUSED)).collect();
        let many = told(&many);
        assert!(many.contains("10.0.0.4:9: ") && many.contains("; and 3 more)"), "{many}");
        assert!(!many.contains("10.0.0.5"), "{many}");
    }

    #[test]
    fn what_is_wrong_with_a_socket_is_said() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| folder.path().join(name);
        assert!(words(reach_unix(&at("none"))).contains("no such socket"));
        std::fs::write(at("file"), "").expect("writable");
        assert!(words(reach_unix(&at("file"))).contains("it is no socket"));
        let _datagrams = std::os::unix::net::UnixDatagram::bind(at("datagrams")).expect("bound");
        assert!(words(reach_unix(&at("datagrams"))).contains("another kind"));
        drop(std::os::unix::net::UnixListener::bind(at("left")).expect("bound"));
        assert!(words(reach_unix(&at("left"))).contains("its server has gone"));
        let _server = std::os::unix::net::UnixListener::bind(at("server")).expect("bound");
        assert_eq!(words(reach_unix(&at("server"))), "fine");
        assert!(unix_words(Errno::ACCESS).contains("permission denied"));
    }
}
