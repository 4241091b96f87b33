//! One TLS session with the server, without IO: ciphertext in, plaintext out, and the other way.
//!
//! Received bytes are decrypted where they lie; what is to be sent is encrypted into one buffer, in
//! pieces that its user chooses, so that a body of megabytes is never there twice. The buffers are
//! allocated with the session. rustls itself allocates: one buffer for each record it encrypts or
//! decrypts (`tests/tls_alloc.rs` counts them).

use std::fmt;
use std::sync::Arc;

use monoio::buf::Slice;
use onbeat_shared::log::outcome::Class;
use rustls::client::{ClientConfig, UnbufferedClientConnection};
use rustls::pki_types::ServerName;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncryptError, InsufficientSizeError, UnbufferedStatus,
};
use rustls::{Error, HandshakeKind};

use super::fault::Fault;
use super::outgoing::Outgoing;

/// Plaintext of the largest record.
pub const RECORD_BYTES: usize = 16 * 1024;
/// Most plaintext that is encrypted before some of it has left: two records.
pub const PIECE_BYTES: usize = 2 * RECORD_BYTES;
/// What a record adds to its plaintext, at most: a head, a nonce, an authenticator, a type.
const RECORD_OVERHEAD: usize = 64;
/// Room for a message of the handshake; it says so if it needs more.
const HANDSHAKE_BYTES: usize = 2_048;
/// Ciphertext of the largest record, and one read behind it.
const INCOMING_BYTES: usize = RECORD_BYTES + 2_304 + 32 * 1024;
/// Bytes of the server's greeting that are kept to name what it is.
const GREETING_BYTES: usize = 8;

/// Where a session is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// More of the handshake is needed.
    Handshake,
    /// Requests and answers go to and fro.
    Open,
    /// The server has said that nothing more will come.
    Closed,
}

/// What a finished handshake agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// `TLS 1.3` or `TLS 1.2`.
    pub version: String,
    /// The cipher suite's name.
    pub cipher: String,
    /// Whether an earlier session was resumed.
    pub resumed: bool,
}

/// A session.
pub struct Session {
    connection: UnbufferedClientConnection,
    /// Received and not yet used: at most a part of a record, from `start` on.
    incoming: Vec<u8>,
    start: usize,
    outgoing: Outgoing,
    phase: Phase,
    greeting: [u8; GREETING_BYTES],
    greeted: usize,
}

impl fmt::Debug for Session {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Session({:?})", self.phase)
    }
}

impl Session {
    /// A session whose first bytes are ready to leave.
    pub(super) fn begin(
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> Result<Self, Fault> {
        let connection = UnbufferedClientConnection::new(config, name)
            .map_err(|error| Fault::new(Class::ClientOther, format!("no TLS session: {error}")))?;
        let mut session = Self {
            connection,
            incoming: Vec::with_capacity(INCOMING_BYTES),
            start: 0,
            outgoing: Outgoing::with_room(PIECE_BYTES + 2 * RECORD_OVERHEAD),
            phase: Phase::Handshake,
            greeting: [0; GREETING_BYTES],
            greeted: 0,
        };
        session.advance(&mut Vec::new())?;
        Ok(session)
    }

    /// Where the session is.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// Takes what a read returned, appends its plaintext to `plain`, and says where that leaves the
    /// session. Bytes may be ready to leave afterwards, also when it failed.
    ///
    /// # Errors
    /// When the server does not keep to TLS, or is not who it should be. The session is over.
    pub fn receive(&mut self, bytes: &[u8], plain: &mut Vec<u8>) -> Result<Phase, Fault> {
        let (greeted, left) = (self.greeted, GREETING_BYTES - self.greeted);
        let kept = bytes.len().min(left);
        self.greeting[greeted..greeted + kept].copy_from_slice(&bytes[..kept]);
        self.greeted += kept;
        if self.phase == Phase::Closed {
            return Err(Fault::over());
        }
        self.incoming.extend_from_slice(bytes);
        self.advance(plain)
    }

    /// Encrypts `plain`, at most [`PIECE_BYTES`] of it, behind what waits to leave.
    ///
    /// # Errors
    /// When the session is over.
    pub fn seal(&mut self, plain: &[u8]) -> Result<(), Fault> {
        let records = plain.len().div_ceil(RECORD_BYTES);
        let room = plain.len() + records * RECORD_OVERHEAD;
        self.write(|traffic, outgoing| {
            encode(outgoing, room, |room| {
                traffic.encrypt(plain, room).map_err(|error| room_to_encrypt(&error))
            })
        })
    }

    /// Says goodbye, unless something else waits to leave; returns whether it did, and what there
    /// is to send then is [`Session::ready`].
    pub fn say_goodbye(&mut self) -> bool {
        if self.phase != Phase::Open || !self.outgoing.is_empty() {
            return false;
        }
        // A session that cannot even say that it is over is over.
        let said = self.write(|traffic, outgoing| {
            encode(outgoing, RECORD_OVERHEAD, |room| {
                traffic.queue_close_notify(room).map_err(|error| room_to_encrypt(&error))
            })
        });
        self.phase = Phase::Closed;
        said.is_ok()
    }

    /// Ciphertext that may leave now.
    #[must_use]
    pub fn ready(&self) -> &[u8] {
        self.outgoing.ready()
    }

    /// So many bytes of [`Session::ready`] have left.
    pub fn left(&mut self, count: usize) {
        self.outgoing.left(count);
    }

    /// Whether the driver has bytes of this session, which must leave before any other.
    #[must_use]
    pub const fn is_lent(&self) -> bool {
        self.outgoing.is_lent()
    }

    /// Lends [`Session::ready`] to the driver.
    pub fn lend(&mut self) -> Slice<Vec<u8>> {
        self.outgoing.lend()
    }

    /// Takes back what was lent; `count` bytes of it have left.
    pub fn give_back(&mut self, lent: Slice<Vec<u8>>, count: usize) {
        self.outgoing.give_back(lent, count);
    }

    /// What the handshake agreed on; `None` before its end.
    #[must_use]
    pub fn facts(&self) -> Option<Facts> {
        let version = match self.connection.protocol_version()? {
            rustls::ProtocolVersion::TLSv1_2 => "TLS 1.2".to_owned(),
            rustls::ProtocolVersion::TLSv1_3 => "TLS 1.3".to_owned(),
            other => format!("{other:?}"),
        };
        let cipher = format!("{:?}", self.connection.negotiated_cipher_suite()?.suite());
        Some(Facts { version, cipher, resumed: self.is_resumed() })
    }

    /// Whether an earlier session was resumed.
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        self.connection.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Processes what has been received, to its end.
    fn advance(&mut self, plain: &mut Vec<u8>) -> Result<Phase, Fault> {
        loop {
            let incoming = &mut self.incoming[self.start..];
            let UnbufferedStatus { mut discard, state, .. } =
                self.connection.process_tls_records(incoming);
            let mut phase = None;
            let mut failure = None;
            match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        match record {
                            Ok(record) => {
                                discard += record.discard;
                                plain.extend_from_slice(record.payload);
                            }
                            Err(error) => failure = Some(error),
                        }
                    }
                }
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    failure = encode(&mut self.outgoing, HANDSHAKE_BYTES, |room| {
                        data.encode(room).map_err(|error| room_for(&error))
                    })
                    .err();
                }
                // The buffer keeps the order, so it counts as sent.
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::BlockedHandshake) => phase = Some(Phase::Handshake),
                Ok(ConnectionState::WriteTraffic(_)) => phase = Some(Phase::Open),
                Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => {
                    phase = Some(Phase::Closed);
                }
                Ok(_) => failure = Some(Error::General("an unexpected state".into())),
                Err(error) => failure = Some(error),
            }
            self.used(discard);
            if let Some(error) = failure {
                self.take_alert();
                let phase = std::mem::replace(&mut self.phase, Phase::Closed);
                return Err(match phase {
                    Phase::Handshake => Fault::in_handshake(&error, &self.greeting[..self.greeted]),
                    Phase::Open | Phase::Closed => Fault::in_session(&error),
                });
            }
            if let Some(phase) = phase {
                self.phase = phase;
                self.compact();
                return Ok(phase);
            }
        }
    }

    /// Writes with the session's keys.
    fn write(
        &mut self,
        mut action: impl FnMut(
            &mut rustls::unbuffered::WriteTraffic<'_, rustls::client::ClientConnectionData>,
            &mut Outgoing,
        ) -> Result<(), Error>,
    ) -> Result<(), Fault> {
        if self.phase != Phase::Open {
            return Err(Fault::over());
        }
        loop {
            let incoming = &mut self.incoming[self.start..];
            let UnbufferedStatus { discard, state, .. } =
                self.connection.process_tls_records(incoming);
            let done = match state {
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    Some(action(&mut traffic, &mut self.outgoing))
                }
                // An answer to something received goes first.
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    encode(&mut self.outgoing, HANDSHAKE_BYTES, |room| {
                        data.encode(room).map_err(|error| room_for(&error))
                    })
                    .err()
                    .map(Err)
                }
                Ok(ConnectionState::TransmitTlsData(data)) => {
                    data.done();
                    None
                }
                Ok(_) => Some(Err(Error::General("the server has ended the session".into()))),
                Err(error) => Some(Err(error)),
            };
            self.used(discard);
            match done {
                None => {}
                Some(Ok(())) => return Ok(()),
                Some(Err(error)) => return Err(Fault::in_session(&error)),
            }
        }
    }

    /// After a failure: the alert that tells the server why, if there is one. Nothing that was
    /// received is looked at any more.
    fn take_alert(&mut self) {
        while self.connection.wants_write() {
            let incoming = &mut self.incoming[self.start..];
            let state = self.connection.process_tls_records(incoming).state;
            let Ok(ConnectionState::EncodeTlsData(mut data)) = state else { return };
            let encoded = encode(&mut self.outgoing, HANDSHAKE_BYTES, |room| {
                data.encode(room).map_err(|error| room_for(&error))
            });
            if encoded.is_err() {
                return;
            }
        }
    }

    fn used(&mut self, count: usize) {
        self.start += count;
        if self.start == self.incoming.len() {
            self.incoming.clear();
            self.start = 0;
        }
    }

    /// Moves a part of a record to the front, so that the buffer never grows.
    fn compact(&mut self) {
        if self.start > 0 {
            self.incoming.copy_within(self.start.., 0);
            self.incoming.truncate(self.incoming.len() - self.start);
            self.start = 0;
        }
    }
}

fn room_to_encrypt(error: &EncryptError) -> Option<usize> {
    match error {
        EncryptError::InsufficientSize(InsufficientSizeError { required_size }) => {
            Some(*required_size)
        }
        EncryptError::EncryptExhausted => None,
    }
}

fn room_for(error: &EncodeError) -> Option<usize> {
    match error {
        EncodeError::InsufficientSize(InsufficientSizeError { required_size }) => {
            Some(*required_size)
        }
        EncodeError::AlreadyEncoded => None,
    }
}

/// Lets `action` write where there is room for `room` bytes, or for as many as it then asks for.
fn encode(
    outgoing: &mut Outgoing,
    room: usize,
    mut action: impl FnMut(&mut [u8]) -> Result<usize, Option<usize>>,
) -> Result<(), Error> {
    let mut room = room;
    loop {
        match action(outgoing.room(room)) {
            Ok(count) => {
                outgoing.written(count);
                return Ok(());
            }
            Err(Some(needed)) if needed > room => room = needed,
            Err(_) => return Err(Error::EncryptError),
        }
    }
}
