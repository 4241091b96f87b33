//! Transitions of a core that no server can bring about on time: called one by one, inside a
//! runtime, against a listener that does what the test wants.

use std::future::Future;
use std::io::{self, Write};
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8};

use onbeat_shared::log::outcome::Class;
use onbeat_shared::units::{CoreIndex, RunNanos};

use super::core::{Core, CoreHandle};
use super::counters::{Counters, Snapshot};
use super::driver::DriverKind;
use super::sink::{Exchange as Blocks, Sink};
use super::slot::State;
use super::{Assignment, Pacing, Shared, Stop};
use crate::clock::monotonic_ns;
use crate::net::way::{Peer, Way};
use crate::pacer::Alarm;
use crate::plan::{self, PlanOptions};
use crate::policy::deadline::Limits;
use crate::policy::reuse::Strategy;
use crate::render::supply::{Source, Supply};
use crate::render::{self, RenderOptions};
use crate::trace::{self, TraceOptions};

/// So many requests, all due at zero.
pub(crate) fn burst(requests: usize) -> String {
    "{\"timestamp\":0,\"input_length\":2,\"output_length\":1,\"hash_ids\":[1]}\n".repeat(requests)
}

/// One core's orders to send all of a trace's text to `listener`.
pub(crate) fn job(listener: &TcpListener, trace: &str) -> (Assignment, Arc<Shared>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("trace.jsonl");
    std::fs::write(&path, trace).expect("the folder is writable");
    let trace = trace::load(&path, &TraceOptions::default()).expect("a trace");
    let plan = plan::build(&trace, &PlanOptions::default()).expect("a plan");
    let bodies = render::render(&plan, &trace, &RenderOptions::default()).expect("small");
    let assignment = Assignment {
        log_blocks: super::sink::BLOCKS_PER_CORE,
        core: CoreIndex(0),
        cpu: None,
        driver: DriverKind::Epoll,
        ways: vec![Arc::new(Way::to(Peer::Tcp(listener.local_addr().expect("it is bound"))))],
        reuse: Strategy::Pooled,
        streaming: true,
        pacing: Pacing::Sleep,
        realtime: false,
        limits: Limits::default(),
        warm_connections: vec![1],
        max_connections: None,
        drain_ns: 0,
        secrets: Arc::from([]),
        recorded_prompts: false,
    };
    let shared = Shared {
        plan: Arc::new(plan),
        source: Source::Whole(Arc::new(bodies)),
        users: None,
        zero_ns: AtomicI64::new(Shared::NO_ZERO),
        stop: AtomicU8::new(Stop::No as u8),
    };
    (assignment, Arc::new(shared))
}

/// A core with its warm-up done and its zero reached, and what is around it.
struct Bench {
    core: CoreHandle,
    alarm: Rc<Alarm>,
    blocks: Arc<Blocks>,
    listener: TcpListener,
}

impl Bench {
    /// A core over a trace's text, with `warm` open connections and `blocks` blocks for its
    /// records.
    async fn new(trace: &str, warm: usize, blocks: usize) -> Self {
        Self::limited(trace, warm, blocks, Limits::default()).await
    }

    /// The same under time limits.
    async fn limited(trace: &str, warm: usize, blocks: usize, limits: Limits) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port on loopback");
        let (mut assignment, shared) = job(&listener, trace);
        assignment.warm_connections = vec![warm];
        assignment.limits = limits;
        let alarm = Rc::new(Alarm::new().expect("a timer"));
        let blocks = Arc::new(Blocks::new(CoreIndex(0), blocks));
        let core = Core::new(
            assignment,
            Arc::clone(&shared.plan),
            Supply::of(&shared.source, CoreIndex(0)),
            None,
            Arc::new(Counters::new()),
            Sink::new(Arc::clone(&blocks)),
            Rc::clone(&alarm),
        );
        let bench = Self { core, alarm, blocks, listener };
        bench.core.borrow_mut().zero_ns = monotonic_ns();
        bench.core.borrow_mut().warm_up();
        bench.until(|core| !core.is_opening()).await;
        bench.core.borrow_mut().start(monotonic_ns());
        bench
    }

    /// Lets the core's tasks run until `state` holds.
    async fn until(&self, state: impl Fn(&Core) -> bool) {
        let patience_ns = monotonic_ns() + 30_000_000_000;
        while !state(&self.core.borrow()) {
            assert!(monotonic_ns() < patience_ns, "the state was not reached in half a minute");
            self.alarm.until(monotonic_ns() + 100_000).await.expect("a poll");
        }
    }
}

fn on_both_drivers<F: Future<Output = ()>>(test: impl Fn() -> F) {
    let (best, _) = DriverKind::probe(1);
    for driver in [best, DriverKind::Epoll] {
        driver.block_on(test()).expect("the probe built one");
    }
}

#[test]
fn a_due_request_is_not_put_on_the_connection_whose_end_is_being_read() {
    on_both_drivers(|| async {
        for read in [|| Ok(&[][..]), || Err(io::Error::from(io::ErrorKind::ConnectionReset))] {
            let bench = Bench::new(&burst(1), 1, 4).await;
            let mut core = bench.core.borrow_mut();
            assert!(!core.arrived(0, read()));
            assert!(core.slots[0].exchange.is_none());
            assert!(core.has_in_flight(), "it left on another connection, at once");
        }
    });
}

#[test]
fn a_due_request_is_not_put_on_a_connection_that_talks_out_of_turn() {
    on_both_drivers(|| async {
        let bench = Bench::new(&burst(1), 1, 4).await;
        let mut core = bench.core.borrow_mut();
        assert!(core.arrived(0, Ok(b"HTTP/1.1 408 Request Timeout\r\n\r\n")));
        assert!(core.slots[0].exchange.is_none());
    });
}

#[test]
fn a_write_that_fails_ends_its_connection_even_if_no_read_does() {
    on_both_drivers(|| async {
        let bench = Bench::new(&burst(1), 1, 4).await;
        let server = bench.listener.accept().expect("the warm-up's connection");
        if let Some(wire) = &bench.core.borrow().slots[0].wire {
            wire.shut_for_writing();
        }
        bench.core.borrow_mut().fire_due();
        // It had waited, and nobody knows why it broke: the request leaves on another.
        bench.until(|core| core.slots[0].state == State::Free).await;
        bench.until(|core| core.slots[1].state == State::Open).await;
        assert!(bench.core.borrow().slots[1].exchange.is_some());
        drop(server);
    });
}

#[test]
fn a_stopped_plan_longer_than_the_room_for_records_is_written_whole() {
    const REQUESTS: usize = 10_000;
    on_both_drivers(|| async {
        let bench = Bench::new(&burst(REQUESTS), 1, 2).await;
        let blocks = Arc::clone(&bench.blocks);
        let scribe = std::thread::Builder::new()
            .name("scribe".to_owned())
            .spawn(move || {
                let mut records = 0;
                // One tells of the warm-up's connection.
                while records < REQUESTS + 1 {
                    let Some(block) = blocks.full.pop() else {
                        std::thread::yield_now();
                        continue;
                    };
                    records += block.len();
                    blocks.give_back(block);
                }
            })
            .expect("a thread");
        let mut core = bench.core.borrow_mut();
        core.stop();
        core.give_up_unsent();
        core.sink.flush();
        assert_eq!((core.remaining, core.sink.lost_records()), (0, 0));
        scribe.join().expect("every record arrived");
    });
}

#[test]
fn the_next_turn_leaves_as_the_one_before_it_ends() {
    let turn = |id: u32, parent: i32| {
        format!(
            "{{\"chat_id\":{id},\"parent_chat_id\":{parent},\"timestamp\":1.0,\"input_length\":2,\
             \"output_length\":1,\"type\":\"text\",\"turn\":{id},\"hash_ids\":[1]}}\n"
        )
    };
    let trace = [turn(1, -1), turn(2, 1)].concat();
    on_both_drivers(|| async {
        let bench = Bench::new(&trace, 1, 4).await;
        let mut core = bench.core.borrow_mut();
        core.fire_due();
        assert_eq!(core.slots[0].exchange.as_ref().map(|turn| turn.request.0), Some(0));
        core.arrived(0, Ok(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"));
        assert_eq!(core.slots[0].exchange.as_ref().map(|turn| turn.request.0), Some(1));
        assert_eq!(core.remaining, 1);
    });
}

/// An answer of one token, as a stream that the server closes.
const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n\
      data: {\"choices\":[{\"index\":0,\"text\":\" a\",\"finish_reason\":\"stop\"}]}\n\n\
      data: [DONE]\n\n";

#[test]
fn what_has_arrived_before_its_core_looks_is_never_out_of_time() {
    let limits = Limits {
        first_byte_ns: Some(1_000_000),
        idle_ns: Some(1_000_000),
        total_ns: Some(2_000_000_000),
        ..Limits::default()
    };
    on_both_drivers(|| async {
        let bench = Bench::limited(&burst(1), 1, 4, limits).await;
        let (mut server, _) = bench.listener.accept().expect("the warm-up's connection");
        bench.core.borrow_mut().fire_due();
        server.write_all(ANSWER).expect("it is open");
        drop(server);
        // The core was away meanwhile: its limits pass before it has read anything.
        let late = RunNanos(bench.core.borrow().now().0 + 1_000_000_000);
        assert!(bench.core.borrow_mut().check_limits(late), "it looks again, and soon");
        bench.until(|core| core.remaining == 0).await;
        let counted = Snapshot::of([bench.core.borrow().counters.as_ref()]);
        assert_eq!((counted.tokens, counted.failed), (1, 0), "it was there in time");
    });
}

#[test]
fn what_waits_in_the_kernel_is_in_time_however_often_its_core_looks() {
    let limits = Limits { first_byte_ns: Some(1_000_000), ..Limits::default() };
    DriverKind::Epoll
        .block_on(async {
            let bench = Bench::limited(&burst(1), 1, 4, limits).await;
            let (mut server, _) = bench.listener.accept().expect("the warm-up's connection");
            bench.core.borrow_mut().fire_due();
            let looks = |first_ns: i64| {
                let mut core = bench.core.borrow_mut();
                (0..300).all(|look| core.check_limits(RunNanos(first_ns + look * 10_000_000)))
            };
            server.write_all(ANSWER).expect("it is open");
            assert!(looks(1_000_000_000), "no reader has had its turn");
            assert!(bench.core.borrow().slots[0].state == State::Open);
        })
        .expect("epoll is everywhere");
}

#[test]
fn a_limit_strikes_when_looks_in_a_row_have_found_nothing() {
    let limits = Limits { first_byte_ns: Some(1_000_000), ..Limits::default() };
    on_both_drivers(|| async {
        let bench = Bench::limited(&burst(1), 1, 4, limits).await;
        let server = bench.listener.accept().expect("the warm-up's connection");
        let mut core = bench.core.borrow_mut();
        core.fire_due();
        let late = core.now().0 + 1_000_000_000;
        let mut looks = 1;
        while core.check_limits(RunNanos(late + looks * 1_000_000)) {
            looks += 1;
        }
        assert_eq!(looks, 3);
        assert_eq!(core.slots[0].state, State::Closing);
        let doomed = core.slots[0].exchange.as_ref().and_then(|exchange| exchange.doomed);
        assert_eq!(doomed, Some(Class::FirstByteTimeout));
        drop(server);
    });
}
