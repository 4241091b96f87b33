//! TLS towards the server: what is trusted, who we are, and the sessions of a run.
//!
//! rustls does the cryptography and the protocol, without IO: sockets stay where they are, and
//! bytes go in and out of a [`Session`]. Everything that can be refused is refused when a
//! [`Client`] is made, before anything is sent; no request is encrypted before the server's
//! certificate has been verified, or `--insecure` was given.

mod anybody;
mod fault;
mod issuer;
mod outgoing;
mod session;
mod tickets;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use onbeat_shared::foreign::shown_path;
use rustls::client::{ClientConfig, Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{RootCertStore, client::danger::ServerCertVerifier};

pub use self::fault::{Fault, class_of, without_secrets};
pub use self::session::{Facts, PIECE_BYTES, Phase, RECORD_BYTES, Session};

use self::anybody::Anybody;
use self::issuer::Issuer;
use self::tickets::Tickets;
use crate::error::EngineError;
use crate::net::shortage::Shortage;

/// What `--cacert`, `--cert`, `--key` and `--insecure` say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// Certificates of authorities to trust, besides those of the system.
    pub cacert: Option<PathBuf>,
    /// Our own certificate, with its chain, for servers that ask for one.
    pub cert: Option<PathBuf>,
    /// The private key of our certificate; `None`: it is in the same file.
    pub key: Option<PathBuf>,
    /// Accept whatever certificate the server shows.
    pub insecure: bool,
}

impl TlsOptions {
    /// The first option that was given, by name.
    #[must_use]
    pub fn first_given(&self) -> Option<&'static str> {
        [
            (self.cacert.is_some(), "--cacert"),
            (self.cert.is_some(), "--cert"),
            (self.key.is_some(), "--key"),
            (self.insecure, "--insecure"),
        ]
        .into_iter()
        .find_map(|(given, name)| given.then_some(name))
    }
}

/// Our side of every session of a run.
#[derive(Clone)]
pub struct Client {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    tickets: Arc<Tickets>,
    verified: bool,
    resumes: bool,
}

impl fmt::Debug for Client {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A configuration holds a private key.
        write!(out, "Client({:?})", self.name)
    }
}

impl Client {
    /// A client for the server called `host`, a name or an address.
    ///
    /// # Errors
    /// When a file cannot be read or used, or nothing would be trusted.
    pub fn new(host: &str, options: &TlsOptions) -> Result<Self, EngineError> {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned()).map_err(|_no_name| {
            EngineError::Usage(format!(
                "the host {host:?} of --url is neither a DNS name nor an address, so no \
                 certificate can be for it"
            ))
        })?;
        let provider = Arc::new(ring::default_provider());
        let verifier = verifier(options, &provider)?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| EngineError::Run(format!("TLS cannot be set up: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match identity(options)? {
            Some((chain, key)) => builder.with_client_auth_cert(chain, key).map_err(|error| {
                EngineError::Input(format!("--cert and --key do not go together: {error}"))
            })?,
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let tickets = Arc::new(Tickets::default());
        config.resumption = Resumption::store(Arc::clone(&tickets) as Arc<_>);
        Ok(Self {
            config: Arc::new(config),
            name,
            tickets,
            verified: !options.insecure,
            resumes: false,
        })
    }

    /// Begins a session; its first bytes are ready to leave.
    ///
    /// # Errors
    /// When the random numbers of the system cannot be had.
    pub fn begin(&self) -> Result<Session, Fault> {
        Session::begin(Arc::clone(&self.config), self.name.clone())
    }

    /// Whether a session begun now could resume an earlier one.
    #[must_use]
    pub fn may_resume(&self) -> bool {
        self.tickets.any()
    }

    /// Tickets that have come so far, to see whether more do; 0 when that cannot be told now.
    #[must_use]
    pub fn tickets_seen(&self) -> u64 {
        self.tickets.seen()
    }

    /// The first session is over: what the server gives to resume sessions with has arrived.
    pub fn settle(&mut self) {
        self.resumes = self.may_resume();
    }

    /// Whether this server lets sessions be resumed, as far as the first one has shown.
    #[must_use]
    pub const fn resumes(&self) -> bool {
        self.resumes
    }

    /// Whether the server's certificate is verified.
    #[must_use]
    pub const fn verified(&self) -> bool {
        self.verified
    }
}

/// Who says whether the server is who it should be.
fn verifier(
    options: &TlsOptions,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, EngineError> {
    let mut roots = RootCertStore::empty();
    let mut named = Vec::new();
    if let Some(path) = &options.cacert {
        named = certificates("--cacert", path)?;
        for certificate in &named {
            roots.add(certificate.clone()).map_err(|error| {
                EngineError::Input(format!(
                    "--cacert {}: a certificate in it cannot be an authority's: {error}",
                    shown_path(path)
                ))
            })?;
        }
    }
    if options.insecure {
        return Ok(Arc::new(Anybody::new(provider)));
    }
    let system = rustls_native_certs::load_native_certs();
    // Authorities that could not be read are missing, and a server of theirs would be refused.
    if let Some((shortage, error)) = system.errors.iter().find_map(lacking) {
        return Err(shortage.error(error));
    }
    roots.add_parsable_certificates(system.certs);
    if roots.is_empty() {
        let why = system.errors.first().map_or_else(String::new, |error| format!(" ({error})"));
        return Err(EngineError::Run(format!(
            "no authority is trusted: this system has no certificates{why}; install the package \
             ca-certificates, or name a file with --cacert"
        )));
    }
    let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map_err(|error| EngineError::Run(format!("TLS cannot be set up: {error}")))?;
    Ok(Arc::new(Issuer::new(inner, named)))
}

/// What this host lacks that an authority's file could not be read for, if that is why.
fn lacking(error: &rustls_native_certs::Error) -> Option<(Shortage, &io::Error)> {
    use rustls_native_certs::ErrorKind;
    let error = match &error.kind {
        ErrorKind::Io { inner, .. } | ErrorKind::Pem(pem::Error::Io(inner)) => inner,
        _ => return None,
    };
    let shortage = Shortage::of(error)?;
    let is_ours =
        matches!(shortage, Shortage::Descriptors | Shortage::HostDescriptors | Shortage::Memory);
    is_ours.then_some((shortage, error))
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// Our certificate and its key, if there are any.
fn identity(options: &TlsOptions) -> Result<Option<Identity>, EngineError> {
    let Some(cert) = &options.cert else {
        return match &options.key {
            None => Ok(None),
            Some(_) => Err(EngineError::Usage(
                "--key: give the certificate it belongs to as well, with --cert".into(),
            )),
        };
    };
    let chain = certificates("--cert", cert)?;
    let (option, path) = match &options.key {
        Some(key) => ("--key", key),
        None => ("--cert (without --key, the private key must be in the same file)", cert),
    };
    let key = PrivateKeyDer::from_pem_file(path)
        .map_err(|error| unusable(option, path, &error, "private key"))?;
    Ok(Some((chain, key)))
}

/// The certificates in a PEM file; at least one.
fn certificates(option: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, EngineError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let found = read.map_err(|error| unusable(option, path, &error, "certificate"))?;
    if found.is_empty() {
        return Err(unusable(option, path, &pem::Error::NoItemsFound, "certificate"));
    }
    Ok(found)
}

/// What is wrong with a PEM file, in words that never repeat its content.
fn unusable(option: &str, path: &Path, error: &pem::Error, what: &str) -> EngineError {
    let path = shown_path(path);
    EngineError::Input(match error {
        pem::Error::Io(error) => format!("{option} {path} cannot be read: {error}"),
        pem::Error::NoItemsFound => format!(
            "{option} {path} has no {what} in PEM form (a block that begins with `-----BEGIN`)"
        ),
        _ => format!("{option} {path} is no PEM file with a {what}: it is damaged"),
    })
}
