//! Servers that speak TLS: certificates made for one test, and a script for each connection.
//!
//! The certificates are worth nothing outside the process that made them. A server does what its
//! script says once the handshake is done; one that is to fail in the handshake is an ordinary
//! scripted server whose script plays it.

use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    RootCertStore, ServerConfig, ServerConnection, StreamOwned, SupportedProtocolVersion,
};

use crate::scripted::Scripted;

/// The server's end of a connection.
pub type Secured = StreamOwned<ServerConnection, TcpStream>;

/// An authority that exists for one test.
pub struct Authority {
    folder: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
    root: CertificateDer<'static>,
}

/// A certificate and its key.
#[derive(Clone)]
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: Arc<KeyPair>,
    pem: String,
}

/// When a certificate is valid: years from and to.
pub type Years = (i32, i32);

/// Now, for a long time.
pub const VALID: Years = (2020, 2120);

impl Authority {
    /// A new authority.
    ///
    /// # Panics
    /// When no key or folder can be had.
    #[must_use]
    pub fn new() -> Self {
        // Two of one name would be taken for each other.
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let mut params = params(&format!("authority {number}"), VALID);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("random numbers");
        let certificate = params.self_signed(&key).expect("a key signs");
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("root.pem"), certificate.pem()).expect("writable");
        let root = certificate.der().clone();
        Self { folder, issuer: Issuer::new(params, key), root }
    }

    /// The file for `--cacert`.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("root.pem")
    }

    /// A certificate for `name`.
    ///
    /// # Panics
    /// When no key can be had.
    #[must_use]
    pub fn issue(&self, name: &str, years: Years) -> Identity {
        let key = KeyPair::generate().expect("random numbers");
        let certificate = params(name, years).signed_by(&key, &self.issuer).expect("a key signs");
        let (chain, pem) = (vec![certificate.der().clone()], certificate.pem());
        Identity { chain, key: Arc::new(key), pem }
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Identity {
    /// A certificate for `name` that signed itself.
    ///
    /// # Panics
    /// When no key can be had.
    #[must_use]
    pub fn self_signed(name: &str) -> Self {
        let key = KeyPair::generate().expect("random numbers");
        let certificate = params(name, VALID).self_signed(&key).expect("a key signs");
        let (chain, pem) = (vec![certificate.der().clone()], certificate.pem());
        Self { chain, key: Arc::new(key), pem }
    }

    /// A certificate for `name` that signed itself and may sign others: an authority's and a
    /// server's in one, as `openssl req -x509` makes it.
    ///
    /// # Panics
    /// When no key can be had.
    #[must_use]
    pub fn own_authority(name: &str) -> Self {
        let mut params = params(name, VALID);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("random numbers");
        let certificate = params.self_signed(&key).expect("a key signs");
        let (chain, pem) = (vec![certificate.der().clone()], certificate.pem());
        Self { chain, key: Arc::new(key), pem }
    }

    /// Certificate and key in one PEM file of `folder`, for `--cert`.
    ///
    /// # Panics
    /// When the folder is not writable.
    #[must_use]
    pub fn file(&self, folder: &std::path::Path) -> PathBuf {
        let path = folder.join("identity.pem");
        let text = format!("{}{}", self.pem, self.key.serialize_pem());
        std::fs::write(&path, text).expect("writable");
        path
    }

    /// A server's settings with this certificate; it wants one of `clients` if there is any.
    ///
    /// # Panics
    /// When the settings contradict each other.
    #[must_use]
    pub fn config(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        clients: Option<&Authority>,
    ) -> ServerConfig {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .expect("versions the provider has");
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots.add(authority.root.clone()).expect("an authority's certificate");
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                        .build()
                        .expect("there is a root");
                builder.with_client_cert_verifier(verifier)
            }
        };
        let key = PrivateKeyDer::try_from(self.key.serialize_der()).expect("a key");
        let mut config = builder.with_single_cert(self.chain.clone(), key).expect("they match");
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config
    }
}

fn params(name: &str, (from, to): Years) -> CertificateParams {
    let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params.not_before = rcgen::date_time_ymd(from, 1, 1);
    params.not_after = rcgen::date_time_ymd(to, 1, 1);
    params
}

/// Starts a server; `script` gets each connection whose handshake went well, with its number.
pub fn serve(
    config: ServerConfig,
    script: impl Fn(usize, &mut Secured) + Send + Sync + 'static,
) -> Scripted {
    let config = Arc::new(config);
    Scripted::start(move |number, stream| {
        // A client that never finishes its handshake does not keep a thread for ever.
        let _ = stream.set_read_timeout(Some(Duration::from_secs(30)));
        if let Some(mut stream) = accept(&config, stream) {
            script(number, &mut stream);
        }
    })
}

/// The server's side of a handshake; `None` when it failed.
pub fn accept(config: &Arc<ServerConfig>, mut stream: TcpStream) -> Option<Secured> {
    let mut connection = ServerConnection::new(Arc::clone(config)).expect("good settings");
    while connection.is_handshaking() {
        if connection.complete_io(&mut stream).is_err() {
            // The alert that says why.
            let _ = connection.write_tls(&mut stream);
            return None;
        }
    }
    Some(StreamOwned::new(connection, stream))
}

/// Says that nothing more will come.
pub fn say_goodbye(stream: &mut Secured) {
    stream.conn.send_close_notify();
    let _ = stream.conn.write_tls(&mut stream.sock);
}
