//! Ways to a server other than one address: Unix sockets, and connections that leave from several
//! addresses of ours.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::IpAddr;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use onbeat_shared::log::Class;
use onbeat_shared::run::Run;
use tests::scripted::{Scripted, answer, good_stream, play, request};
use tests::{Scenario, drivers, ends, mooncake};

/// A scripted server on a socket in a folder of its own.
struct Local {
    folder: tempfile::TempDir,
    ended: Arc<AtomicBool>,
    /// Its end is an event that the acceptor may be waiting for.
    waiting: Option<mpsc::SyncSender<()>>,
    acceptor: Option<JoinHandle<()>>,
}

impl Local {
    /// Accepts connections after `delay`, with room for `queue` that wait for it.
    fn start(
        queue: i32,
        delay: Duration,
        script: impl Fn(usize, UnixStream) + Send + Sync + 'static,
    ) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let listener = UnixListener::bind(folder.path().join("server")).expect("bound");
        rustix::net::listen(&listener, queue).expect("it listens already");
        let ended = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&ended);
        let (waiting, over_early) = mpsc::sync_channel(1);
        let acceptor = std::thread::Builder::new()
            .name("local".to_owned())
            .spawn(move || {
                // Until then, or until nobody needs it any more.
                let _ = over_early.recv_timeout(delay);
                play(listener.incoming(), &over, script);
            })
            .expect("a thread");
        Self { folder, ended, waiting: Some(waiting), acceptor: Some(acceptor) }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("server")
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        drop(self.waiting.take());
        let _ = UnixStream::connect(self.path());
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

fn classes(run: &Run) -> Vec<&'static str> {
    (0..run.plan.len()).map(|i| run.requests.class(i).map_or("open", Class::name)).collect()
}

/// Where nobody listens: whoever goes there has not taken the other way.
fn nowhere() -> std::net::SocketAddr {
    "127.0.0.1:9".parse().expect("literal")
}

#[test]
fn requests_go_over_a_unix_socket_with_the_hosts_name_from_the_url() {
    for driver in drivers() {
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let heads = Arc::clone(&seen);
        let server = Local::start(128, Duration::ZERO, move |_, mut stream| {
            while let Some(bytes) = request(&mut stream) {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                heads.lock().expect("nobody panics with it").push(text);
                answer(&mut stream, &good_stream());
            }
        });
        // Bodies of 200 KB: more than a socket takes at once.
        let mut scenario = Scenario::new(&mooncake(20, 5, 40_000, 2));
        scenario.config.driver = Some(driver);
        scenario.config.way.unix_socket = Some(server.path());
        // After a long pause of the host all are due at once, and still some must share.
        scenario.config.warm_connections = Some(4);
        scenario.config.max_connections = Some(4);
        let run = ends(move || scenario.run_against(nowhere()));
        assert_eq!(classes(&run), ["ok"; 20]);
        let reused = (0..20).filter(|&i| run.requests.connection_reused(i) == Some(true)).count();
        assert!(reused > 0, "connections are used again");
        let seen = seen.lock().expect("nobody panics with it");
        assert_eq!(seen.len(), 20);
        assert!(seen.iter().all(|text| text.contains("Host: 127.0.0.1:9\r\n")), "{}", seen[0]);
    }
}

#[test]
fn a_unix_socket_whose_queue_is_full_is_waited_for() {
    for driver in drivers() {
        // Room for two; the probe and 30 connections of the warm-up come before any is accepted.
        let server = Local::start(1, Duration::from_millis(300), |_, mut stream| {
            while request(&mut stream).is_some() {
                answer(&mut stream, &good_stream());
            }
        });
        let mut scenario = Scenario::new(&mooncake(40, 1, 10, 2));
        scenario.config.driver = Some(driver);
        scenario.config.way.unix_socket = Some(server.path());
        scenario.config.warm_connections = Some(30);
        let run = ends(move || scenario.run_against(nowhere()));
        assert_eq!(classes(&run), ["ok"; 40]);
        let opened = run.connects.iter().filter(|connect| connect.class == Class::Ok).count();
        assert!(opened >= 30, "{opened} of the 30 were opened");
    }
}

#[test]
fn connections_that_a_unix_server_never_accepts_end_at_the_connect_limit() {
    for driver in drivers() {
        // It accepts nothing until the run is over.
        let server = Local::start(1, Duration::from_secs(60), |_, _| {});
        let mut scenario = Scenario::new(&mooncake(3, 1, 10, 2));
        scenario.config.driver = Some(driver);
        scenario.config.way.unix_socket = Some(server.path());
        scenario.config.warm_connections = Some(20);
        scenario.config.limits.connect_ns = Some(200_000_000);
        scenario.config.limits.first_byte_ns = Some(100_000_000);
        let run = ends(move || scenario.run_against(nowhere()));
        let late = run.connects.iter().filter(|connect| connect.class == Class::ConnectTimeout);
        assert!(late.count() >= 10, "there was room for two");
        assert_eq!(classes(&run).len(), 3);
        assert!(classes(&run).iter().all(|class| *class != "ok" && *class != "open"));
    }
}

#[test]
fn limits_strike_and_breaks_are_named_on_a_unix_socket_too() {
    for driver in drivers() {
        let server = Local::start(128, Duration::ZERO, |_, mut stream| {
            let Some(bytes) = request(&mut stream) else { return };
            if String::from_utf8_lossy(&bytes).contains("\"max_completion_tokens\":7") {
                let whole = good_stream();
                answer(&mut stream, &whole[..whole.len() / 2]);
                return;
            }
            let _ = stream.read(&mut [0]);
        });
        let trace = concat!(
            "{\"timestamp\":0,\"input_length\":5,\"output_length\":7,\"hash_ids\":[1]}\n",
            "{\"timestamp\":1,\"input_length\":5,\"output_length\":8,\"hash_ids\":[2]}\n",
        );
        let mut scenario = Scenario::new(trace);
        scenario.config.driver = Some(driver);
        scenario.config.way.unix_socket = Some(server.path());
        scenario.config.limits.first_byte_ns = Some(300_000_000);
        let run = ends(move || scenario.run_against(nowhere()));
        assert_eq!(classes(&run), ["truncated_body", "first_byte_timeout"]);
    }
}

#[test]
fn a_unix_server_that_goes_during_the_run_is_an_outcome() {
    for driver in drivers() {
        let folder: Arc<Mutex<Option<PathBuf>>> = Arc::default();
        let path = Arc::clone(&folder);
        let server = Local::start(128, Duration::ZERO, move |_, mut stream| {
            if request(&mut stream).is_some() {
                let path = path.lock().expect("nobody panics with it").clone();
                let _ = std::fs::remove_file(path.expect("told before the run"));
                answer(&mut stream, tests::scripted::LAST_ANSWER);
            }
        });
        *folder.lock().expect("nobody panics with it") = Some(server.path());
        let mut scenario = Scenario::new(&mooncake(2, 1_000, 10, 2));
        scenario.config.driver = Some(driver);
        scenario.config.way.unix_socket = Some(server.path());
        scenario.config.warm_connections = Some(1);
        let run = ends(move || scenario.run_against(nowhere()));
        assert_eq!(classes(&run), ["ok", "connect_failed"]);
        // The acceptor cannot be woken through a path that is gone.
        std::mem::forget(server);
    }
}

#[test]
fn a_socket_that_cannot_be_one_is_refused_before_anything_is_sent() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut scenario = Scenario::new(&mooncake(1, 1, 10, 2));
    scenario.config.way.unix_socket = Some(folder.path().join("none"));
    let log = scenario.log_path();
    let error = scenario.fail();
    assert!(error.to_string().contains("no such socket"), "{error}");
    assert!(!log.exists());
}

#[test]
fn connections_leave_from_the_local_addresses_in_turn() {
    for driver in drivers() {
        let seen: Arc<Mutex<BTreeMap<IpAddr, usize>>> = Arc::default();
        let from = Arc::clone(&seen);
        let all = Barrier::new(40);
        let server = Scripted::start(move |_, mut stream| {
            let peer = stream.peer_addr().expect("connected").ip();
            while request(&mut stream).is_some() {
                *from.lock().expect("nobody panics with it").entry(peer).or_default() += 1;
                // None is answered before all have come, so each has a connection of its own.
                all.wait();
                answer(&mut stream, &good_stream());
            }
        });
        let mut scenario = Scenario::new(&mooncake(40, 1, 10, 2));
        scenario.config.driver = Some(driver);
        scenario.config.warm_connections = Some(40);
        let own = ["127.0.0.2", "127.0.0.3"].map(|text| text.parse().expect("literal"));
        scenario.config.way.local_addresses = own.to_vec();
        let run = ends(move || scenario.run_against(server.address));
        assert_eq!(classes(&run), ["ok"; 40]);
        let seen = seen.lock().expect("nobody panics with it");
        assert_eq!(seen.keys().copied().collect::<Vec<_>>(), own);
        assert_eq!(seen.values().sum::<usize>(), 40);
        assert!(seen.values().all(|&count| count >= 10), "{seen:?}");
    }
}

#[test]
fn an_address_that_is_not_ours_is_refused_before_anything_is_sent() {
    let server = Scripted::start(|_, _| {});
    let mut scenario = Scenario::new(&mooncake(1, 1, 10, 2));
    scenario.config.target =
        onbeat::net::target::Target::parse(&server.address.to_string()).expect("an address");
    scenario.config.way.local_addresses = vec!["192.0.2.1".parse().expect("literal")];
    let error = scenario.fail();
    assert!(error.to_string().contains("no address of this host"), "{error}");
    assert_eq!(error.exit_code(), 2);
}

#[test]
fn a_dead_first_address_costs_a_try_before_the_run_and_nothing_in_it() {
    for driver in drivers() {
        // This host's name has two addresses, and only the second one is listened on.
        let Ok(listener) = std::net::TcpListener::bind(("::1", 0)) else { return };
        let port = listener.local_addr().expect("it is bound").port();
        let ended = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&ended);
        let acceptor = std::thread::Builder::new().name("second".to_owned()).spawn(move || {
            play(listener.incoming(), &over, |_, mut stream| {
                while request(&mut stream).is_some() {
                    answer(&mut stream, &good_stream());
                }
            });
        });
        let mut scenario = Scenario::new(&mooncake(10, 5, 10, 2));
        scenario.config.driver = Some(driver);
        scenario.config.warm_connections = Some(3);
        scenario.config.target =
            onbeat::net::target::Target::parse(&format!("localhost:{port}")).expect("a URL");
        let run = ends(move || scenario.run_as_meant());
        assert_eq!(classes(&run), ["ok"; 10]);
        // Whoever opens one in the run knows which address answers.
        assert!(run.connects.iter().all(|connect| connect.class == Class::Ok));
        ended.store(true, Ordering::Release);
        drop(std::net::TcpStream::connect(("::1", port)));
        acceptor.expect("a thread").join().expect("it ends");
    }
}

#[test]
fn a_host_that_nobody_knows_is_refused_before_anything_is_sent() {
    let mut scenario = Scenario::new(&mooncake(1, 1, 10, 2));
    // A name that never is anybody's (RFC 6761).
    scenario.config.target =
        onbeat::net::target::Target::parse("http://nobody.invalid:8000").expect("a URL");
    let log = scenario.log_path();
    let error = ends(move || scenario.fail());
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("\"nobody.invalid\" of --url could not"), "{error}");
    assert!(!log.exists(), "a run that did not start leaves no log");
}
