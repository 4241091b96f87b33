//! What TLS costs the hot path in calls to the allocator: two for each record, and one more for a
//! request now and then.
//!
//! rustls allocates a buffer for each record it encrypts or decrypts and frees it when the record
//! has been copied out, and its queues grow once; nothing of ours does. A binary of its own,
//! because an allocator belongs to a whole process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use onbeat::net::target::Target;
use onbeat_shared::log::Class;
use rustls::version::{TLS12, TLS13};
use tests::scripted::{answer, good_stream, request};
use tests::secured::{Authority, VALID, serve};
use tests::{Scenario, drivers, ends, mooncake};

#[global_allocator]
static ALLOCATOR: tests::alloc::Watching = tests::alloc::Watching;

const REQUESTS: usize = 100;
/// A request of 900 tokens is one record, and its answer comes in two.
const RECORDS: usize = 3;
/// Taken and given back: ciphertext of a record that leaves, plaintext of one that arrives.
const CALLS_PER_RECORD: usize = 2;
/// What a connection's queues inside rustls take once.
const CALLS_PER_CONNECTION: usize = 1;

#[test]
fn a_record_costs_two_calls_to_the_allocator() {
    let authority = Authority::new();
    for version in [&TLS13, &TLS12] {
        for driver in drivers() {
            let served = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&served);
            let config = authority.issue("localhost", VALID).config(&[version], None);
            let server = serve(config, move |_, stream| {
                while request(stream).is_some() {
                    let whole = good_stream();
                    let (first, second) = whole.split_at(whole.len() / 2);
                    answer(stream, first);
                    answer(stream, second);
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
            let mut scenario = Scenario::new(&mooncake(REQUESTS, 2, 900, 2));
            scenario.config.target =
                Target::parse(&format!("https://localhost:{}", server.address.port()))
                    .expect("a URL");
            scenario.config.way.tls.cacert = Some(authority.file());
            scenario.config.driver = Some(driver);
            scenario.config.warm_connections = Some(REQUESTS);
            let run = ends(move || scenario.run_as_meant());
            assert!((0..REQUESTS).all(|i| run.requests.class(i) == Some(Class::Ok)));
            assert_eq!(served.load(Ordering::Relaxed), REQUESTS);
            let zero = run.anchors.iter().find(|anchor| anchor.time.0 == 0).expect("zero");
            let zero_ns = zero.monotonic_ns.expect("both clocks were read").cast_signed();
            let ends = (0..REQUESTS).filter_map(|i| run.requests.done(i)).max();
            let last_ns = ends.expect("requests ended").0;
            let calls = tests::alloc::calls_between(zero_ns, zero_ns + last_ns);
            let most = REQUESTS * (RECORDS * CALLS_PER_RECORD + CALLS_PER_CONNECTION);
            assert!(calls > 0, "it was seen");
            assert!(calls <= most, "{calls} calls for {REQUESTS} requests, at most {most}");
        }
    }
}
