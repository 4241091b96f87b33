//! A server of every temper: whatever it does, the run ends, every request has one end, and the log
//! contradicts itself nowhere.
//!
//! One `u64` decides what each connection does to each request; it is in the name of a failure.
//! When the kernel delivers what is not decided, so a seed narrows a failure down and no more.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use onbeat::replayer::Stop;
use onbeat_shared::dice::Dice;
use onbeat_shared::log::Outcome;
use onbeat_shared::run::Run;
use tests::scripted::{Scripted, answer, good_stream, request};
use tests::{Scenario, Stopper, drivers, ends};

const REQUESTS: usize = 400;

/// What a connection does next.
struct Temper(Dice);

impl Temper {
    /// A number below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    /// Waits for the client to give up, at most a second, without an answer.
    fn sulk(stream: &TcpStream) {
        let _ = stream.set_read_timeout(Some(Duration::from_secs(1)));
        let mut end = [0; 4_096];
        while matches!((&*stream).read(&mut end), Ok(1..)) {}
    }

    /// Deals with one request; `false` ends the connection.
    fn serve(&mut self, stream: &mut TcpStream) -> bool {
        if self.below(12) == 0 {
            // An early answer, with the request unread: closing then resets.
            let mut some = [0; 10];
            let _ = stream.read(&mut some);
            answer(stream, b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
            return false;
        }
        if request(stream).is_none() {
            return false;
        }
        let whole = good_stream();
        let cut = usize::try_from(self.below(whole.len() as u64)).expect("a stream is short");
        match self.below(12) {
            0 => return false,
            1 => {
                answer(stream, &whole[..cut]);
                return false;
            }
            2 => {
                answer(stream, &whole[..cut]);
                Self::sulk(stream);
                return false;
            }
            3 => {
                answer(stream, &whole);
                let _ = stream.shutdown(Shutdown::Write);
                Self::sulk(stream);
                return false;
            }
            4 => {
                answer(stream, &[&whole[..], b"and more"].concat());
            }
            5 => {
                answer(stream, b"HTTP/1.1 429 Slow Down\r\nContent-Length: 2\r\n\r\n{}");
            }
            6 => {
                // In two parts, so that the client is closed on in mid-answer or not.
                let _ = stream.write_all(&whole[..cut]);
                let _ = stream.flush();
                answer(stream, &whole[cut..]);
                return self.below(2) == 0;
            }
            _ => answer(stream, &whole),
        }
        true
    }
}

/// Sessions of four turns, with a body beyond the socket's buffer now and then.
fn trace(temper: &mut Temper) -> String {
    (0..REQUESTS)
        .map(|row| {
            let turn = row % 4;
            let parent = if turn == 0 { "-1".to_owned() } else { (row - 1).to_string() };
            let input = if temper.below(40) == 0 { 600_000 } else { 20 + temper.below(2_000) };
            format!(
                "{{\"chat_id\": {row}, \"parent_chat_id\": {parent}, \"timestamp\": {}, \
                 \"input_length\": {input}, \"output_length\": 2, \"type\": \"text\", \
                 \"turn\": {}, \"hash_ids\": []}}\n",
                10.0 + (row / 4) as f64 * 0.01,
                turn + 1,
            )
        })
        .collect()
}

/// A run of `seed` against its server.
fn run(seed: u64, mut scenario: Scenario, stop: Stopper) -> Run {
    let server = Scripted::start(move |number, mut stream| {
        let mut temper = Temper(Dice(seed ^ (number as u64) << 32));
        let patience = Duration::from_millis(5 + temper.below(300));
        let _ = stream.set_read_timeout(Some(patience));
        if temper.below(15) == 0 {
            return;
        }
        while temper.serve(&mut stream) {}
    });
    scenario.config.limits.connect_ns = Some(500_000_000);
    scenario.config.limits.first_byte_ns = Some(150_000_000);
    scenario.config.limits.idle_ns = Some(100_000_000);
    scenario.config.limits.total_ns = Some(300_000_000);
    scenario.config.warm_connections = Some(20);
    scenario.config.drain_ns = 200_000_000;
    let (ran, run) = ends(move || {
        let mut stop = stop;
        scenario.run_watched(server.address, &mut stop)
    });
    ran.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    run.expect("a run that began leaves a log")
}

/// What must hold whatever the server did.
fn holds(seed: u64, run: &Run) {
    assert!(run.is_whole(), "seed {seed}");
    assert!(run.warnings.is_empty(), "seed {seed}: {:?}", run.warnings);
    for i in 0..REQUESTS {
        let requests = &run.requests;
        let outcome = requests.outcome(i).unwrap_or_else(|| panic!("seed {seed}: {i} is open"));
        let left = requests.sent(i).is_some();
        assert!(left || outcome != Outcome::Ok, "seed {seed}: {i} was answered and never sent");
        assert!(!left || outcome != Outcome::NeverSent, "seed {seed}: {i} left and was never sent");
        if let Some(after) = run.plan[i].after.filter(|_| left) {
            let before = requests.done(after.as_usize());
            assert!(requests.sent(i) >= before, "seed {seed}: {i} overtook its predecessor");
        }
    }
}

#[test]
fn a_server_of_every_temper_costs_no_request_its_end() {
    for driver in drivers() {
        for seed in 1..4 {
            let mut scenario = Scenario::new(&trace(&mut Temper(Dice(seed))));
            scenario.config.driver = Some(driver);
            let run = run(seed, scenario, Stopper::after(u64::MAX, Stop::Now));
            holds(seed, &run);
            let of = |outcome| {
                (0..REQUESTS).filter(|&i| run.requests.outcome(i) == Some(outcome)).count()
            };
            assert_eq!(of(Outcome::NeverSent), 0, "seed {seed}");
            assert!(
                of(Outcome::Ok) > 0 && of(Outcome::Ok) < REQUESTS,
                "seed {seed}: it has tempers"
            );
        }
    }
}

#[test]
fn it_can_be_left_in_the_middle() {
    for driver in drivers() {
        for (seed, how) in [(11, Stop::Now), (12, Stop::Drain)] {
            let mut scenario = Scenario::new(&trace(&mut Temper(Dice(seed))));
            scenario.config.driver = Some(driver);
            holds(seed, &run(seed, scenario, Stopper::after(100, how)));
        }
    }
}
