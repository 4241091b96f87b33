//! What went wrong between two ends of TLS, by name and in words.
//!
//! The names are outcome classes, the words are for a person. Neither holds anything of a key.

use std::fmt;
use std::io;

use onbeat_shared::foreign::shown;
use onbeat_shared::log::outcome::Class;
use rustls::{AlertDescription, CertificateError, Error};

use super::issuer::SelfSigned;
use crate::net::shortage::{Shortage, told};
use crate::render::Secret;
use crate::render::secret::scrubbed;

/// The kind of record that a server's part of a handshake comes in.
const HANDSHAKE: u8 = 22;

/// A session that could not be made or go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The name.
    pub class: Class,
    words: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.words)
    }
}

impl std::error::Error for Fault {}

impl From<Fault> for io::Error {
    fn from(fault: Fault) -> Self {
        Self::other(fault)
    }
}

/// The error, its words without what they repeat of secrets: the names in a certificate are the
/// server's. `spellings` are those of the secrets.
#[must_use]
pub fn without_secrets(error: io::Error, spellings: &[Secret]) -> io::Error {
    match error.get_ref().and_then(|fault| fault.downcast_ref::<Fault>()) {
        Some(Fault { class, words }) => {
            Fault::new(*class, scrubbed(words.clone(), spellings)).into()
        }
        None => error,
    }
}

/// The class of a failure that is TLS's.
#[must_use]
pub fn class_of(error: &io::Error) -> Option<Class> {
    error.get_ref()?.downcast_ref::<Fault>().map(|fault| fault.class)
}

impl Fault {
    pub(super) fn new(class: Class, words: impl Into<String>) -> Self {
        Self { class, words: words.into() }
    }

    /// The connection ended in the middle of the handshake.
    #[must_use]
    pub fn closed() -> Self {
        Self::new(
            Class::TlsClosed,
            "the connection was closed during the TLS handshake; perhaps nothing there speaks TLS, \
             and --url should begin with http://",
        )
    }

    /// There is no session any more.
    pub(super) fn over() -> Self {
        Self::new(Class::TlsBroken, "the TLS session is over")
    }

    /// A read or write failed in the middle of the handshake.
    #[must_use]
    pub fn broken_off(error: &io::Error) -> Self {
        if let Some(shortage) = Shortage::of(error) {
            return Self::new(shortage.class(), told(error));
        }
        match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Self::new(
                Class::ConnectTimeout,
                "the TLS handshake took too long; if nothing there speaks TLS, --url should \
                     begin with http://",
            ),
            _ => Self::new(
                Class::TlsClosed,
                format!("the connection broke during the TLS handshake ({error})"),
            ),
        }
    }

    /// Whether it only means that nothing was said, or no more: the end of a connection or of
    /// patience.
    #[must_use]
    pub fn is_no_verdict(&self) -> bool {
        matches!(self.class, Class::TlsClosed | Class::ConnectTimeout)
    }

    /// What `error` means during a handshake in which the server's first bytes were `greeting`.
    pub(super) fn in_handshake(error: &Error, greeting: &[u8]) -> Self {
        match error {
            Error::InvalidCertificate(error) => of_certificate(error),
            // Behind the server's choice of version and cipher it cannot mean that there is none.
            Error::AlertReceived(AlertDescription::HandshakeFailure)
                if greeting.first() == Some(&HANDSHAKE) =>
            {
                Self::new(
                    Class::TlsRefused,
                    "the server ended the handshake after it had chosen version and cipher, as \
                     servers do that want a certificate of ours, or another: give --cert and --key",
                )
            }
            Error::AlertReceived(alert) => of_alert(*alert),
            Error::PeerIncompatible(_) | Error::NoApplicationProtocol => {
                Self::new(Class::TlsNothingInCommon, format!("no TLS in common: {error}"))
            }
            _ if greeting.starts_with(b"HTTP/") => Self::new(
                Class::TlsNotTls,
                "the server answers in plain HTTP; --url should begin with http://",
            ),
            // Handshake, alert, and what comes behind them.
            _ if !greeting.first().is_some_and(|kind| (20..=23).contains(kind)) => {
                Self::new(Class::TlsNotTls, "what the server answers is not TLS")
            }
            _ => Self::new(Class::TlsFailed, format!("the TLS handshake failed: {error}")),
        }
    }

    /// What `error` means once there is a session.
    pub(super) fn in_session(error: &Error) -> Self {
        match error {
            // TLS 1.3: the client has finished before the server looks at its certificate.
            Error::AlertReceived(alert) if is_about_us(*alert) => of_alert(*alert),
            _ => Self::new(Class::TlsBroken, format!("the TLS session broke: {error}")),
        }
    }
}

fn of_certificate(error: &CertificateError) -> Fault {
    use CertificateError as E;
    let class = match error {
        E::Expired | E::ExpiredContext { .. } => Class::TlsExpired,
        E::NotValidYet | E::NotValidYetContext { .. } => Class::TlsNotYetValid,
        E::NotValidForName | E::NotValidForNameContext { .. } => Class::TlsWrongName,
        // One of the issuer's name is trusted, and is another one.
        E::UnknownIssuer | E::BadSignature => Class::TlsUnknownIssuer,
        E::Other(other) if other.0.is::<SelfSigned>() => Class::TlsSelfSigned,
        _ => Class::TlsBadCertificate,
    };
    let trust = "--cacert FILE trusts one, --insecure any";
    let words = match (class, error) {
        (Class::TlsExpired, E::ExpiredContext { time, not_after }) => format!(
            "the server's certificate expired {} ago",
            span(time.as_secs().saturating_sub(not_after.as_secs()))
        ),
        (Class::TlsExpired, _) => "the server's certificate has expired".into(),
        (Class::TlsNotYetValid, E::NotValidYetContext { time, not_before }) => format!(
            "the server's certificate is valid only in {} from now; is the clock right?",
            span(not_before.as_secs().saturating_sub(time.as_secs()))
        ),
        (Class::TlsNotYetValid, _) => "the server's certificate is not valid yet".into(),
        (Class::TlsWrongName, E::NotValidForNameContext { expected, presented }) => format!(
            "the server's certificate is not for {}, but for {}",
            expected.to_str(),
            names(presented)
        ),
        (Class::TlsWrongName, _) => "the server's certificate is for another name".into(),
        (Class::TlsUnknownIssuer, E::BadSignature) => format!(
            "the server's certificate is not accepted: an authority of that name is trusted, but \
             another key signed it; is the file of --cacert an older one? ({trust})"
        ),
        (Class::TlsUnknownIssuer, _) => {
            format!("no authority that is trusted issued the server's certificate ({trust})")
        }
        (Class::TlsSelfSigned, _) => {
            format!("the server's certificate is self-signed and not trusted ({trust})")
        }
        _ => format!("the server's certificate is not accepted: {}", shown(&error.to_string())),
    };
    Fault::new(class, words)
}

/// The names in a certificate, as people write them.
fn names(presented: &[String]) -> String {
    if presented.is_empty() {
        return "nobody".to_owned();
    }
    let plain = |name: &String| {
        let inner = name.strip_prefix("DnsName(\"").and_then(|name| name.strip_suffix("\")"));
        inner.unwrap_or(name).to_owned()
    };
    shown(&presented.iter().map(plain).collect::<Vec<_>>().join(", "))
}

fn of_alert(alert: AlertDescription) -> Fault {
    use AlertDescription as A;
    match alert {
        A::ProtocolVersion | A::HandshakeFailure | A::InsufficientSecurity => Fault::new(
            Class::TlsNothingInCommon,
            format!(
                "the server says there is no TLS version or cipher in common ({alert:?}); Onbeat \
                 speaks 1.2 and 1.3"
            ),
        ),
        A::NoApplicationProtocol => {
            Fault::new(Class::TlsNothingInCommon, "the server does not offer HTTP/1.1 over TLS")
        }
        A::CertificateRequired => Fault::new(
            Class::TlsRefused,
            "the server wants a certificate of ours: give --cert and --key",
        ),
        alert if is_about_us(alert) => Fault::new(
            Class::TlsRefused,
            format!("the server refuses the certificate of --cert, or the lack of one ({alert:?})"),
        ),
        _ => Fault::new(
            Class::TlsFailed,
            format!("the server ended the TLS handshake with the alert {alert:?}"),
        ),
    }
}

/// Whether an alert is about our certificate.
fn is_about_us(alert: AlertDescription) -> bool {
    use AlertDescription as A;
    matches!(
        alert,
        A::CertificateRequired
            | A::NoCertificate
            | A::BadCertificate
            | A::UnsupportedCertificate
            | A::CertificateRevoked
            | A::CertificateExpired
            | A::CertificateUnknown
            | A::UnknownCA
            | A::AccessDenied
    )
}

/// Seconds in a unit that says something.
fn span(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        7_200..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_behind_the_choice_of_a_cipher_is_about_who_we_are() {
        let error = Error::AlertReceived(AlertDescription::HandshakeFailure);
        let at_once = Fault::in_handshake(&error, &[21, 3, 3]);
        assert_eq!(at_once.class, Class::TlsNothingInCommon);
        let later = Fault::in_handshake(&error, &[HANDSHAKE, 3, 3]);
        assert_eq!(later.class, Class::TlsRefused);
        assert!(later.to_string().contains("--cert"), "{later}");
    }

    #[test]
    fn names_in_a_certificate_are_plain() {
        assert_eq!(names(&[]), "nobody");
        let presented = ["DnsName(\"a.example\")".to_owned(), "IpAddress(1)".to_owned()];
        assert_eq!(names(&presented), "a.example, IpAddress(1)");
        let hostile = ["DnsName(\"a\u{1b}[2J\")".to_owned()];
        assert!(!names(&hostile).contains('\u{1b}'));
    }
}
