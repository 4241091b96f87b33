//! Whom the program trusts over TLS when nobody names an authority: the system's, and no other.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use onbeat_shared::log::Class;
use onbeat_shared::run::Run;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::{text, write_trace};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
    Content-Length: 80\r\n\r\n\
    data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n";

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

/// A server whose certificate is by an authority of a name, whose own will be in `file`.
fn serve(name: &str, file: &Path) -> SocketAddr {
    let mut authority = params(name);
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("random numbers");
    let root = authority.self_signed(&key).expect("a key signs");
    std::fs::write(file, root.pem()).expect("writable");
    let issuer = Issuer::new(authority, key);
    let key = KeyPair::generate().expect("random numbers");
    let own = params("localhost").signed_by(&key, &issuer).expect("a key signs");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider's own")
        .with_no_client_auth();
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let config = config.with_single_cert(vec![own.der().clone()], key).expect("they match");
    let config = Arc::new(config);
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port on loopback");
    let address = listener.local_addr().expect("it is bound");
    let serve = move || {
        for stream in listener.incoming().flatten() {
            let connection = ServerConnection::new(Arc::clone(&config)).expect("good settings");
            let mut stream = StreamOwned::new(connection, stream);
            let one = move || {
                let (mut bytes, mut buffer) = (Vec::new(), [0; 16_384]);
                while let Ok(count @ 1..) = stream.read(&mut buffer) {
                    bytes.extend_from_slice(&buffer[..count]);
                    if bytes.ends_with(b"}") {
                        bytes.clear();
                        let _ = stream.write_all(ANSWER);
                    }
                }
            };
            let named = std::thread::Builder::new().name("one".to_owned());
            named.spawn(one).expect("a thread");
        }
    };
    // It ends with the process.
    std::thread::Builder::new().name("all".to_owned()).spawn(serve).expect("a thread");
    address
}

#[test]
fn authorities_of_the_system_are_trusted_and_no_others() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name);
    let trace = write_trace(folder.path(), 3, 5);
    let address = serve("an authority", &at("root.pem"));
    serve("another", &at("other.pem"));
    serve("an authority", &at("namesake.pem"));
    let url = format!("https://localhost:{}", address.port());
    let outputs = ["root.pem", "other.pem", "namesake.pem"].map(|system| {
        let log = at(&format!("{system}.beat"));
        let output = Command::new(env!("CARGO_BIN_EXE_onbeat"))
            .args(["replay", &trace, "--model", "m", "--url", &url, "--output"])
            .arg(&log)
            // Where the library looks before it looks in the system's own places.
            .env("SSL_CERT_FILE", at(system))
            .env_remove("SSL_CERT_DIR")
            .env("OPENAI_API_KEY", "CANARY")
            .stdin(Stdio::null())
            .output();
        (output.expect("the binary was built"), log)
    });
    for ((refused, log), why) in outputs[1..].iter().zip([
        "no authority that is trusted issued",
        "an authority of that name is trusted, but another key signed",
    ]) {
        assert_eq!(refused.status.code(), Some(1));
        let words = text(&refused.stderr);
        assert!(words.contains(why), "{words}");
        assert!(!log.exists(), "a run that did not start leaves no log");
    }
    let (trusted, log) = &outputs[0];
    // A busy machine may miss its schedule, which is exit code 3.
    assert!([Some(0), Some(3)].contains(&trusted.status.code()), "{}", text(&trusted.stderr));
    let run = Run::read(&std::fs::read(log).expect("a log")).expect("it reads");
    assert!((0..3).all(|i| run.requests.class(i) == Some(Class::Ok)));
    assert!(run.manifest.tls.as_ref().is_some_and(|tls| tls.verified));
}
