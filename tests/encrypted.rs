//! Requests over TLS: what arrives, what is refused before anything is sent, and how a connection's
//! end is taken.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use onbeat::net::target::Target;
use onbeat::net::tls::{Client, PIECE_BYTES, Phase, Session, TlsOptions};
use onbeat_shared::log::{Class, DoneFlags};
use onbeat_shared::run::Run;
use rustls::ServerConnection;
use rustls::version::{TLS12, TLS13};
use tests::scripted::{Scripted, answer, good_stream, request};
use tests::secured::{Authority, Identity, VALID, accept, say_goodbye, serve};
use tests::{Scenario, drivers, ends, mooncake};

const BOTH: &[&rustls::SupportedProtocolVersion] = &[&TLS13, &TLS12];

fn classes(run: &Run) -> Vec<&'static str> {
    (0..run.plan.len()).map(|i| run.requests.class(i).map_or("open", Class::name)).collect()
}

/// A scenario that trusts `authority` and goes to `localhost` at the port of `address`.
fn towards(address: SocketAddr, authority: &Authority, trace: &str) -> Scenario {
    let mut scenario = Scenario::new(trace);
    scenario.config.target =
        Target::parse(&format!("https://localhost:{}", address.port())).expect("a URL");
    scenario.config.way.tls.cacert = Some(authority.file());
    scenario
}

fn run(scenario: Scenario) -> Run {
    ends(move || scenario.run_as_meant())
}

/// Bytes of a server that its client has not seen yet, in the order they were written.
fn said_by(server: &mut ServerConnection) -> Vec<u8> {
    let mut bytes = Vec::new();
    while server.wants_write() {
        server.write_tls(&mut bytes).expect("memory takes everything");
    }
    bytes
}

/// Hands a server what its client has to say; what it understands.
fn tell(server: &mut ServerConnection, session: &mut Session) -> Vec<u8> {
    let mut plain = Vec::new();
    while !session.ready().is_empty() {
        let count = server.read_tls(&mut session.ready()).expect("memory gives everything");
        session.left(count);
        let state = server.process_new_packets().expect("the client keeps to TLS");
        let start = plain.len();
        plain.resize(start + state.plaintext_bytes_to_read(), 0);
        server.reader().read_exact(&mut plain[start..]).expect("it is there");
    }
    plain
}

#[test]
fn a_session_does_not_depend_on_how_its_bytes_were_split() {
    let authority = Authority::new();
    let trust = TlsOptions { cacert: Some(authority.file()), ..TlsOptions::default() };
    let client = Client::new("localhost", &trust).expect("one authority");
    for version in [&TLS13, &TLS12] {
        // Records so small that every message of the handshake is in several.
        for (fragment, split) in [(64, 1), (64, 7), (100, 1_000), (16_389, 1), (16_389, 4_096)] {
            let mut config = authority.issue("localhost", VALID).config(&[version], None);
            config.max_fragment_size = Some(fragment);
            let mut server = ServerConnection::new(Arc::new(config)).expect("good settings");
            let mut session = client.begin().expect("random numbers");
            let mut plain = Vec::new();
            let mut hear = |session: &mut Session, bytes: &[u8]| {
                for piece in bytes.chunks(split) {
                    session.receive(piece, &mut plain).expect("the server keeps to TLS");
                }
                std::mem::take(&mut plain)
            };
            while session.phase() == Phase::Handshake || server.is_handshaking() {
                assert!(tell(&mut server, &mut session).is_empty());
                assert!(hear(&mut session, &said_by(&mut server)).is_empty());
            }
            for round in 0..3_u8 {
                let answer: Vec<u8> = (0..50_000_u32).map(|i| i.to_le_bytes()[0] ^ round).collect();
                server.writer().write_all(&answer).expect("memory takes everything");
                assert!(hear(&mut session, &said_by(&mut server)) == answer, "{fragment} {split}");
                let mut arrived = Vec::new();
                for piece in answer.chunks(PIECE_BYTES) {
                    session.seal(piece).expect("it is open");
                    arrived.extend(tell(&mut server, &mut session));
                }
                assert!(arrived == answer, "{fragment} {split}");
                if version.version == TLS13.version {
                    server.refresh_traffic_keys().expect("TLS 1.3 has them");
                }
            }
        }
    }
}

/// What the user reads; nothing may have been sent and no log be left.
fn refused(scenario: Scenario) -> String {
    let log = scenario.log_path();
    let error = ends(move || scenario.fail());
    assert!(!log.exists(), "a run that did not start leaves no log");
    error.to_string()
}

#[test]
fn requests_arrive_whole_and_sessions_resume_before_zero() {
    let authority = Authority::new();
    for (version, name) in [(&TLS13, "TLS 1.3"), (&TLS12, "TLS 1.2")] {
        for driver in drivers() {
            let config = authority.issue("localhost", VALID).config(&[version], None);
            let seen: Arc<Mutex<Vec<(String, usize)>>> = Arc::default();
            let arrived = Arc::clone(&seen);
            let server = serve(config, move |_, stream| {
                while let Some(bytes) = request(stream) {
                    let sni = stream.conn.server_name().unwrap_or_default().to_owned();
                    assert!(bytes.ends_with(b"}"), "a whole body");
                    arrived.lock().expect("nobody panics with it").push((sni, bytes.len()));
                    answer(stream, &good_stream());
                }
            });
            // Three megabytes and a few hundred bytes by turns.
            let trace: String = (0..12)
                .map(|row| {
                    let input = if row % 4 == 0 { 600_000 } else { 10 };
                    format!(
                        "{{\"timestamp\":{},\"input_length\":{input},\"output_length\":2,\
                         \"hash_ids\":[{row}]}}\n",
                        row * 20
                    )
                })
                .collect();
            let mut scenario = towards(server.address, &authority, &trace);
            scenario.config.driver = Some(driver);
            scenario.config.warm_connections = Some(8);
            let run = run(scenario);
            assert_eq!(classes(&run), ["ok"; 12], "{name}");
            let tls = run.manifest.tls.clone().expect("it was encrypted");
            assert_eq!(tls.version, name);
            assert!(tls.verified);
            assert_eq!(tls.connections, 8);
            // A session of TLS 1.2 serves all. A ticket of TLS 1.3 serves one, which brings more;
            // on a machine that is busy for long enough, others do not wait for them.
            let least = if version.version == TLS12.version { 8 } else { 1 };
            assert!(tls.resumed >= least, "{name}: {} resumed", tls.resumed);
            let seen = seen.lock().expect("nobody panics with it");
            assert!(seen.iter().all(|(sni, _)| sni == "localhost"));
            let arrived: usize = seen.iter().map(|(_, bytes)| bytes).sum();
            let sent: u64 = (0..12).filter_map(|i| run.requests.sent_bytes(i)).sum();
            assert_eq!(arrived as u64, sent, "plaintext is what is counted");
        }
    }
}

#[test]
fn plain_connections_are_not_among_those_that_could_resume() {
    let authority = Authority::new();
    let secure = serve(authority.issue("localhost", VALID).config(BOTH, None), |_, stream| {
        while request(stream).is_some() {
            answer(stream, &good_stream());
        }
    });
    let plain = Scripted::start(|_, mut stream| {
        while request(&mut stream).is_some() {
            answer(&mut stream, &good_stream());
        }
    });
    for driver in drivers() {
        let mut scenario = towards(secure.address, &authority, &mooncake(4, 5, 10, 2));
        scenario.config.driver = Some(driver);
        scenario.config.more_targets =
            vec![Target::parse(&plain.address.to_string()).expect("an address")];
        scenario.config.warm_connections = Some(11);
        let run = run(scenario);
        assert_eq!(classes(&run), ["ok"; 4]);
        let tls = run.manifest.tls.as_ref().expect("one server has it");
        assert_eq!(tls.connections, 6, "five are plain");
        assert!(tls.resumed <= 6);
    }
}

#[test]
fn a_certificate_can_be_for_an_address() {
    let authority = Authority::new();
    for (name, fits) in [("127.0.0.1", true), ("127.0.0.2", false)] {
        let config = authority.issue(name, VALID).config(BOTH, None);
        let server = serve(config, |_, stream| {
            while request(stream).is_some() {
                answer(stream, &good_stream());
            }
        });
        let mut scenario = towards(server.address, &authority, &mooncake(3, 5, 10, 2));
        scenario.config.target =
            Target::parse(&format!("https://{}", server.address)).expect("a URL");
        if fits {
            assert_eq!(classes(&run(scenario)), ["ok"; 3]);
        } else {
            let said = refused(scenario);
            assert!(said.contains("is not for 127.0.0.1, but for"), "{said}");
        }
    }
}

#[test]
fn faults_of_the_certificate_are_named_before_anything_is_sent() {
    let authority = Authority::new();
    let other = Authority::new();
    for (identity, words) in [
        (authority.issue("localhost", (2000, 2001)), "expired"),
        (authority.issue("localhost", (2100, 2120)), "valid only in"),
        (authority.issue("elsewhere.example", VALID), "is not for localhost, but for"),
        (other.issue("localhost", VALID), "no authority that is trusted"),
        (Identity::self_signed("localhost"), "self-signed"),
    ] {
        let requests = Arc::new(AtomicUsize::new(0));
        let arrived = Arc::clone(&requests);
        let server = serve(identity.config(BOTH, None), move |_, stream| {
            // Whatever comes behind the handshake would be a request.
            if matches!(stream.read(&mut [0; 100]), Ok(1..)) {
                arrived.fetch_add(1, Ordering::Relaxed);
            }
        });
        let mut scenario = towards(server.address, &authority, &mooncake(2, 1, 10, 2));
        scenario.config.render.api_key = Some(onbeat::render::Secret::new("CANARY"));
        let said = refused(scenario);
        assert!(said.contains(words), "{said}");
        assert_eq!(requests.load(Ordering::Relaxed), 0, "no request left");
    }
}

/// The server's end of a connection, and all that came in through it.
struct Tapped(TcpStream, Arc<Mutex<Vec<u8>>>);

impl Read for Tapped {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.0.read(buffer)?;
        self.1.lock().expect("nobody panics with it").extend_from_slice(&buffer[..count]);
        Ok(count)
    }
}

impl Write for Tapped {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

impl Drop for Tapped {
    fn drop(&mut self) {
        // Whatever else the client has to say.
        let _ = std::io::copy(self, &mut std::io::sink());
    }
}

#[test]
fn faults_of_the_handshake_are_named_before_anything_is_sent() {
    type Script = fn(Tapped);
    const SCRIPTS: [(Script, &str); 4] = [
        (
            |mut stream| {
                let _ = request(&mut stream);
                answer(&mut stream, b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
            },
            "plain HTTP",
        ),
        (|mut stream| drop(stream.read(&mut [0; 4_096])), "closed during the TLS handshake"),
        (
            |mut stream| {
                let _ = stream.read(&mut [0; 4_096]);
                // An alert: protocol_version.
                answer(&mut stream, &[0x15, 3, 3, 0, 2, 2, 70]);
                let _ = stream.read(&mut [0; 4_096]);
            },
            "no TLS version or cipher in common",
        ),
        (
            |mut stream| {
                let _ = stream.read(&mut [0; 4_096]);
                answer(&mut stream, b"SSH-2.0-OpenSSH_9.2\r\n");
                let _ = stream.read(&mut [0; 4_096]);
            },
            "is not TLS",
        ),
    ];
    let authority = Authority::new();
    for (script, words) in SCRIPTS {
        let heard: Arc<Mutex<Vec<u8>>> = Arc::default();
        let tap = Arc::clone(&heard);
        let server = Scripted::start(move |_, stream| {
            // A server that waits for a whole HTTP head does not wait for ever.
            let _ = stream.set_read_timeout(Some(std::time::Duration::from_millis(200)));
            script(Tapped(stream, Arc::clone(&tap)));
        });
        let mut scenario = towards(server.address, &authority, &mooncake(2, 1, 10, 2));
        scenario.config.render.api_key = Some(onbeat::render::Secret::new("CANARY"));
        let said = refused(scenario);
        assert!(said.contains(words), "{said}");
        let heard = heard.lock().expect("nobody panics with it");
        assert_eq!(heard.first(), Some(&0x16), "the client's first words are TLS");
        for secret in [&b"CANARY"[..], b"POST "] {
            assert!(!heard.windows(secret.len()).any(|part| part == secret), "{words}");
        }
    }
}

#[test]
fn a_certificate_that_is_its_own_authority_is_trusted_where_it_is_named() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, words) in [("localhost", None), ("elsewhere.example", Some("is not for localhost"))]
    {
        let identity = Identity::own_authority(name);
        let server = serve(identity.config(BOTH, None), |_, stream| {
            while request(stream).is_some() {
                answer(stream, &good_stream());
            }
        });
        let stranger = towards(server.address, &authority, &mooncake(3, 5, 10, 2));
        let said = refused(stranger);
        assert!(said.contains("self-signed"), "{said}");
        let mut known = towards(server.address, &authority, &mooncake(3, 5, 10, 2));
        known.config.way.tls.cacert = Some(identity.file(folder.path()));
        match words {
            None => assert_eq!(classes(&run(known)), ["ok"; 3]),
            Some(words) => {
                let said = refused(known);
                assert!(said.contains(words), "{said}");
            }
        }
    }
}

#[test]
fn whoever_is_insecure_is_told_so() {
    let authority = Authority::new();
    let config = Identity::self_signed("elsewhere.example").config(BOTH, None);
    let server = serve(config, |_, stream| {
        while request(stream).is_some() {
            answer(stream, &good_stream());
        }
    });
    let mut scenario = towards(server.address, &authority, &mooncake(3, 5, 10, 2));
    scenario.config.way.tls.cacert = None;
    scenario.config.way.tls.insecure = true;
    let run = run(scenario);
    assert_eq!(classes(&run), ["ok"; 3]);
    let tls = run.manifest.tls.clone().expect("it was encrypted");
    assert!(!tls.verified && tls.to_string().contains("NOT VERIFIED"));
}

#[test]
fn a_server_may_ask_who_we_are() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    for version in [&TLS13, &TLS12] {
        let config = authority.issue("localhost", VALID).config(&[version], Some(&authority));
        let server = serve(config, |_, stream| {
            while request(stream).is_some() {
                answer(stream, &good_stream());
            }
        });
        let anonymous = towards(server.address, &authority, &mooncake(3, 5, 10, 2));
        let said = refused(anonymous);
        assert!(said.contains("wants a certificate") || said.contains("--cert"), "{said}");
        let mut known = towards(server.address, &authority, &mooncake(3, 5, 10, 2));
        known.config.way.tls.cert = Some(authority.issue("client", VALID).file(folder.path()));
        assert_eq!(classes(&run(known)), ["ok"; 3]);
    }
}

/// An answer that ends with its connection, finished or not.
fn until_close(finish: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n\
         data: {{\"choices\":[{{\"index\":0,\"text\":\" a\"{finish}}}]}}\n\n"
    )
    .into_bytes()
}

#[test]
fn an_end_that_was_not_announced_is_never_a_success_unless_the_answer_was_framed() {
    let authority = Authority::new();
    for driver in drivers() {
        for version in [&TLS13, &TLS12] {
            let config = authority.issue("localhost", VALID).config(&[version], None);
            let server = serve(config, |_, stream| {
                let Some(bytes) = request(stream) else { return };
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let asked =
                    |tokens: u32| text.contains(&format!("\"max_completion_tokens\":{tokens}"));
                if asked(2) {
                    // Framed and whole, then closed without a word.
                    answer(stream, &good_stream());
                } else if asked(3) {
                    // Not framed, finished as far as it goes, closed without a word.
                    answer(stream, &until_close(",\"finish_reason\":\"stop\""));
                } else if asked(4) {
                    answer(stream, &until_close(",\"finish_reason\":\"stop\""));
                    say_goodbye(stream);
                } else {
                    // Framed and cut.
                    let whole = good_stream();
                    answer(stream, &whole[..whole.len() - 20]);
                }
                let _ = stream.sock.shutdown(std::net::Shutdown::Write);
                let _ = stream.sock.read(&mut [0; 1_000]);
            });
            let trace: String = (2..6)
                .map(|tokens| {
                    format!(
                        "{{\"timestamp\":{},\"input_length\":5,\"output_length\":{tokens},\
                         \"hash_ids\":[1]}}\n",
                        tokens * 10
                    )
                })
                .collect();
            let mut scenario = towards(server.address, &authority, &trace);
            scenario.config.driver = Some(driver);
            // Every request gets a connection of its own.
            scenario.config.warm_connections = Some(4);
            let run = run(scenario);
            assert_eq!(classes(&run), ["ok", "reset_mid_answer", "ok", "reset_mid_answer"]);
        }
    }
}

#[test]
fn a_handshake_that_fails_during_the_run_is_an_outcome() {
    let authority = Authority::new();
    for driver in drivers() {
        let config = Arc::new(authority.issue("localhost", VALID).config(BOTH, None));
        // The probe and the warm-up's connection are good, and answer one request.
        let server = Scripted::start(move |number, mut stream| match number {
            0 | 1 => {
                let Some(mut stream) = accept(&config, stream) else { return };
                if request(&mut stream).is_some() {
                    answer(&mut stream, tests::scripted::LAST_ANSWER);
                    say_goodbye(&mut stream);
                }
            }
            2 => drop(stream.read(&mut [0; 4_096])),
            _ => {
                let _ = stream.read(&mut [0; 4_096]);
                answer(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n");
            }
        });
        let mut scenario = towards(server.address, &authority, &mooncake(3, 300, 10, 1));
        scenario.config.driver = Some(driver);
        scenario.config.warm_connections = Some(1);
        let run = run(scenario);
        assert_eq!(classes(&run), ["ok", "tls_closed", "tls_not_tls"]);
        assert!(run.error_text(1).is_some_and(|words| words.contains("closed during the TLS")));
        assert!(run.error_text(2).is_some_and(|words| words.contains("plain HTTP")));
        assert_eq!(run.requests.sent(1), None, "nothing leaves on a connection without a session");
    }
}

#[test]
fn a_closed_idle_session_costs_no_request() {
    let authority = Authority::new();
    for driver in drivers() {
        let config = authority.issue("localhost", VALID).config(BOTH, None);
        // Answers once and says goodbye, or dies of the second request without a word.
        let server = serve(config, |number, stream| {
            if request(stream).is_none() {
                return;
            }
            answer(stream, &good_stream());
            if number % 2 == 0 {
                say_goodbye(stream);
            } else {
                let _ = request(stream);
            }
        });
        let mut scenario = towards(server.address, &authority, &mooncake(6, 60, 10, 2));
        scenario.config.driver = Some(driver);
        scenario.config.warm_connections = Some(2);
        let run = run(scenario);
        assert_eq!(classes(&run), ["ok"; 6]);
    }
}

#[test]
fn new_keys_in_the_middle_of_an_answer_are_taken() {
    let authority = Authority::new();
    for driver in drivers() {
        let config = authority.issue("localhost", VALID).config(&[&TLS13], None);
        let server = serve(config, |_, stream| {
            while request(stream).is_some() {
                let whole = good_stream();
                let (first, second) = whole.split_at(whole.len() / 2);
                answer(stream, first);
                stream.conn.refresh_traffic_keys().expect("TLS 1.3 has them");
                answer(stream, second);
            }
        });
        // One session: each turn leaves as the one before it ends, on the same connection.
        let trace: String = (0..6)
            .map(|turn| {
                format!(
                    "{{\"chat_id\":{turn},\"parent_chat_id\":{},\"timestamp\":1.0,\
                     \"input_length\":5,\"output_length\":2,\"type\":\"text\",\"turn\":{},\
                     \"hash_ids\":[1]}}\n",
                    turn - 1,
                    turn + 1
                )
            })
            .collect();
        let mut scenario = towards(server.address, &authority, &trace);
        scenario.config.driver = Some(driver);
        scenario.config.warm_connections = Some(1);
        let run = run(scenario);
        assert_eq!(classes(&run), ["ok"; 6]);
        let reused = (0..6).filter(|&i| run.requests.connection_reused(i) == Some(true)).count();
        assert_eq!(reused, 5, "one connection lives through several sets of keys");
    }
}

#[test]
fn an_early_answer_is_read_while_ciphertext_still_waits() {
    let authority = Authority::new();
    for driver in drivers() {
        let config = authority.issue("localhost", VALID).config(BOTH, None);
        // Reads a little of ten megabytes, answers, and stays without reading on.
        let kept = Mutex::new(Vec::new());
        let server = serve(config, move |_, stream| {
            let _ = stream.read(&mut [0; 1_000]);
            answer(stream, b"HTTP/1.1 413 Payload Too Large\r\nContent-Length: 9\r\n\r\ntoo large");
            let held = stream.sock.try_clone().expect("a descriptor");
            kept.lock().expect("nobody panics with it").push(held);
        });
        let mut scenario = towards(server.address, &authority, &mooncake(3, 5, 2_000_000, 2));
        scenario.config.driver = Some(driver);
        let run = run(scenario);
        for i in 0..3 {
            assert_eq!(run.requests.status(i), Some(413), "{i}");
            assert!(run.requests.flags(i).has(DoneFlags::EARLY_ANSWER));
        }
    }
}

#[test]
fn files_that_cannot_be_used_are_refused_by_name() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let empty = folder.path().join("empty.pem");
    std::fs::File::create(&empty).and_then(|mut file| file.write_all(b"no PEM")).expect("writable");
    let address = "127.0.0.1:9".parse().expect("literal");
    let mut scenario = towards(address, &authority, &mooncake(1, 1, 10, 2));
    scenario.config.way.tls.cacert = Some(empty.clone());
    let said = refused(scenario);
    assert!(said.contains("--cacert") && said.contains("no certificate"), "{said}");
    let mut scenario = towards(address, &authority, &mooncake(1, 1, 10, 2));
    scenario.config.way.tls.cert = Some(authority.file());
    let said = refused(scenario);
    assert!(said.contains("no private key"), "{said}");
    let mut scenario = towards(address, &authority, &mooncake(1, 1, 10, 2));
    scenario.config.way.tls.cert = Some(folder.path().join("none.pem"));
    assert!(refused(scenario).contains("cannot be read"));
}
