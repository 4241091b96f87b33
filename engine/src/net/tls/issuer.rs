//! The ordinary verifier, with two additions: it tells a certificate that signed itself from one
//! whose authority is not known, and accepts one that `--cacert` names itself.
//!
//! webpki decides. It refuses a certificate that may sign others as a server's, which is what
//! `openssl req -x509` makes; whoever names that very certificate means that very server. Issuer
//! and subject are compared as the certificate writes them, with a walk over its outermost
//! elements.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};

/// A verifier that names self-signed certificates.
#[derive(Debug)]
pub(super) struct Issuer {
    inner: Arc<WebPkiServerVerifier>,
    named: Vec<CertificateDer<'static>>,
}

/// "The certificate is its own issuer, and is not trusted."
#[derive(Debug)]
pub(super) struct SelfSigned;

impl fmt::Display for SelfSigned {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("self-signed")
    }
}

impl std::error::Error for SelfSigned {}

impl Issuer {
    /// Decides as `inner` does, but accepts the certificates `named` where they are valid and for
    /// the right name.
    pub(super) const fn new(
        inner: Arc<WebPkiServerVerifier>,
        named: Vec<CertificateDer<'static>>,
    ) -> Self {
        Self { inner, named }
    }
}

impl ServerCertVerifier for Issuer {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verdict = self.inner.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verdict {
            // Whether it is valid now has been looked at before.
            Err(Error::InvalidCertificate(CertificateError::Other(fault)))
                if format!("{:?}", fault.0) == "CaUsedAsEndEntity"
                    && self.named.iter().any(|named| named == end_entity) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            Err(Error::InvalidCertificate(fault))
                if !has_a_name(&fault) && is_self_signed(end_entity) =>
            {
                let fault = CertificateError::Other(OtherError(Arc::new(SelfSigned)));
                Err(Error::InvalidCertificate(fault))
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Whether a fault says more than that the issuer is not trusted. An authority's own certificate,
/// shown as a server's, and one with the name of a trusted authority, fail in ways of their own.
fn has_a_name(fault: &CertificateError) -> bool {
    matches!(
        fault,
        CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. }
            | CertificateError::NotValidForName
            | CertificateError::NotValidForNameContext { .. }
    )
}

/// Whether issuer and subject of a certificate are the same; not if it cannot be read.
fn is_self_signed(certificate: &[u8]) -> bool {
    names(certificate).is_some_and(|(issuer, subject)| issuer == subject)
}

/// Issuer and subject as written: the third and fifth element behind the optional version.
fn names(certificate: &[u8]) -> Option<(&[u8], &[u8])> {
    const VERSION: u8 = 0xA0;
    let (_, outer, _) = element(certificate)?;
    let (_, mut rest, _) = element(outer)?;
    if rest.first() == Some(&VERSION) {
        rest = element(rest)?.2;
    }
    let mut next = || {
        let (_, content, behind) = element(rest)?;
        rest = behind;
        Some(content)
    };
    let (_serial, _signature) = (next()?, next()?);
    let issuer = next()?;
    let _validity = next()?;
    Some((issuer, next()?))
}

/// The first DER element of `bytes`: its tag, its content, and what is behind it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7F => (usize::from(first), rest),
        // Up to four bytes of length: certificates are far smaller.
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7F))?;
            let length = digits.iter().fold(0, |sum, &digit| (sum << 8) | usize::from(digit));
            (length, rest)
        }
        _ => return None,
    };
    let (content, behind) = rest.split_at_checked(length)?;
    Some((tag, content, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_certificates_have_no_names() {
        for length in 0..6 {
            assert!(!is_self_signed(&[0x30, 0x82, 0xFF, 0xFF, 0x30, 0x80][..length]));
        }
        // A version, a serial number, an algorithm, and then twice the same name.
        let inner = [0xA0, 1, 2, 2, 1, 7, 0x30, 0, 0x30, 1, 9, 0x30, 0, 0x30, 1, 9];
        let signed = |inner: &[u8]| {
            let length = u8::try_from(inner.len()).expect("short");
            [&[0x30, length + 2, 0x30, length], inner].concat()
        };
        assert!(is_self_signed(&signed(&inner)));
        assert!(is_self_signed(&signed(&inner[3..])), "the version may be left out");
        let mut other = inner;
        other[15] = 8;
        assert!(!is_self_signed(&signed(&other)));
    }
}
