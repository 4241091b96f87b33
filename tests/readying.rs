//! What is asked of servers before zero: readiness that is waited for, and the model's name.

use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use onbeat::net::target::Target;
use onbeat::readiness::{Look, Readiness};
use rustls::version::TLS13;
use tests::scripted::{Scripted, answer, good_stream, request};
use tests::secured::{Authority, VALID, serve};
use tests::{Scenario, ends, mooncake};

const BUSY: &[u8] = b"HTTP/1.1 503 Loading\r\nContent-Length: 0\r\n\r\n";

fn list(names: &[&str]) -> Vec<u8> {
    let models: Vec<_> = names.iter().map(|name| serde_json::json!({ "id": name })).collect();
    let body = serde_json::json!({ "object": "list", "data": models }).to_string();
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// The first line of a request.
fn line(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).lines().next().unwrap_or_default().to_owned()
}

/// Whether a request is the look for one token, rather than one of the workload.
fn is_look(bytes: &[u8]) -> bool {
    String::from_utf8_lossy(bytes).contains("\"content\":\"Lo\"")
}

#[test]
fn the_model_is_the_first_that_the_server_lists() {
    let server = Scripted::start(|_, mut stream| {
        while let Some(bytes) = request(&mut stream) {
            let names = line(&bytes).starts_with("GET /v1/models ");
            answer(&mut stream, &if names { list(&["first", "second"]) } else { good_stream() });
        }
    });
    let mut scenario = Scenario::new(&mooncake(2, 1, 10, 1));
    scenario.config.readiness.ask_model = true;
    let run = ends(move || scenario.run_against(server.address));
    assert_eq!(run.manifest.model, "first");
    assert!((0..2).all(|i| run.requests.is_ok(i)));
}

#[test]
fn a_server_without_a_list_is_asked_for_the_default_model() {
    let server = Scripted::start(|_, mut stream| {
        while let Some(bytes) = request(&mut stream) {
            let names = line(&bytes).starts_with("GET ");
            let no = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec();
            answer(&mut stream, &if names { no } else { good_stream() });
        }
    });
    let mut scenario = Scenario::new(&mooncake(1, 1, 10, 1));
    scenario.config.readiness.ask_model = true;
    let run = ends(move || scenario.run_against(server.address));
    assert_eq!(run.manifest.model, "default");
}

#[test]
fn over_tls_the_list_is_read_as_well() {
    let authority = Authority::new();
    let config = authority.issue("localhost", VALID).config(&[&TLS13], None);
    let server = serve(config, |_, stream| {
        while let Some(bytes) = request(stream) {
            let names = line(&bytes).starts_with("GET ");
            answer(stream, &if names { list(&["sealed"]) } else { good_stream() });
        }
    });
    let mut scenario = Scenario::new(&mooncake(1, 1, 10, 1));
    scenario.config.target =
        Target::parse(&format!("https://localhost:{}", server.address.port())).expect("a URL");
    scenario.config.way.tls.cacert = Some(authority.file());
    scenario.config.readiness.ask_model = true;
    let run = ends(move || scenario.run_as_meant());
    assert_eq!(run.manifest.model, "sealed");
    assert!(run.requests.is_ok(0));
}

#[test]
fn a_run_begins_once_its_server_lists_the_model_and_answers() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&asked);
    let looks = AtomicUsize::new(0);
    let server = Scripted::start(move |_, mut stream: TcpStream| {
        while let Some(bytes) = request(&mut stream) {
            let look = looks.fetch_add(1, Ordering::Relaxed);
            let names = line(&bytes).starts_with("GET ");
            let mut asked = notes.lock().expect("no panic");
            let reply = match (look, names) {
                (0, _) => BUSY.to_vec(),
                (1, true) => list(&["another"]),
                (_, true) => list(&["another", "default"]),
                (3 | 4, false) => BUSY.to_vec(),
                (_, false) => good_stream(),
            };
            asked.push(match (names, is_look(&bytes)) {
                (true, _) => "models",
                (false, true) => "inference",
                (false, false) => "request",
            });
            drop(asked);
            answer(&mut stream, &reply);
        }
    });
    let mut scenario = Scenario::new(&mooncake(1, 1, 10, 1));
    scenario.config.readiness = Readiness {
        timeout_ns: Some(60_000_000_000),
        interval_ns: 1_000_000,
        look: Look::Both,
        ask_model: false,
    };
    let run = ends(move || scenario.run_against(server.address));
    assert!(run.requests.is_ok(0));
    let expected = ["models", "models", "models", "inference", "inference", "inference", "request"];
    assert_eq!(*asked.lock().expect("no panic"), expected);
}

#[test]
fn a_server_that_does_not_get_ready_is_told_by_name() {
    let server = Scripted::start(|_, mut stream| {
        if request(&mut stream).is_some() {
            answer(&mut stream, BUSY);
        }
    });
    let mut scenario = Scenario::new(&mooncake(1, 1, 10, 1));
    scenario.config.target = Target::parse(&server.address.to_string()).expect("an address");
    scenario.config.readiness =
        Readiness { timeout_ns: Some(50_000_000), interval_ns: 5_000_000, ..Readiness::default() };
    let address = server.address.to_string();
    let words = ends(move || scenario.fail()).to_string();
    assert!(words.contains(&address) && words.contains("was not ready within 0.05 s"), "{words}");
    assert!(words.contains("status 503"), "{words}");
}

#[test]
fn nobody_there_is_waited_for_as_well() {
    let mut scenario = Scenario::new(&mooncake(1, 1, 10, 1));
    // Nothing listens on the port that the kernel has just given and taken back.
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port on loopback");
    let address = taken.local_addr().expect("it is bound").to_string();
    drop(taken);
    scenario.config.target = Target::parse(&address).expect("an address");
    scenario.config.readiness =
        Readiness { timeout_ns: Some(20_000_000), interval_ns: 5_000_000, ..Readiness::default() };
    let words = ends(move || scenario.fail()).to_string();
    assert!(words.contains("not ready") && words.contains("refused"), "{words}");
}
