//! `soak`: long runs in which every byte counts, by command.
//!
//! ```text
//! cargo run --release -p tests --bin soak -- rounds 1000
//! cargo run --release -p tests --bin soak -- streams 18000 60
//! cargo run --release -p tests --bin soak -- resets 10000
//! cargo run --release -p tests --bin soak -- early 1000
//! cargo run --release -p tests --bin soak -- long 28800
//! ```
//!
//! Half of the rounds and of the rest is on io_uring where it is allowed. With `onbeat` as
//! its first word it is Onbeat, so that what is tested is what was just compiled. Ends with 1 if
//! anything is not accounted for.

use std::process::ExitCode;
use std::time::Duration;

use onbeat::clock::monotonic_ns;
use tests::drivers;
use tests::hardship::Product;
use tests::soak::long;
use tests::soak::resets::{self, Early};
use tests::soak::rounds::{self, Limit, Wish};
use tests::soak::streams;

#[global_allocator]
static MEMORY: onbeat::last_words::LastWords = onbeat::last_words::LastWords;

const USAGE: &str = "usage: soak rounds COUNT [FIRST] | streams COUNT SECONDS [DRIVER [WORD...]] | \
                     resets COUNT | early COUNT | long SECONDS [RATE [DRIVER]]";
/// Streams of a round, tokens of each, and the time between two.
const STREAMS: usize = 200;
const TOKENS: usize = 300;
const GAP: Duration = Duration::from_millis(3);
/// Kinds of limits.
const KINDS: usize = 5;
/// Requests a second of a long run, tokens of each, and how often it is looked at.
const RATE: usize = 100;
const TOKENS_LONG: usize = 20;
const LOOK_MS: u64 = 1_000;
/// What a long run may add to its memory in an hour, and to its lateness in all; connections that a
/// pause of the machine may have made it open.
const BYTES_AN_HOUR_MAX: f64 = 1e6;
const DRIFT_NS_MAX: i64 = 50_000;
const FILES_MORE_MAX: usize = 32;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if words.first() == Some(&"onbeat") {
        return onbeat::cli::start(std::env::args_os().skip(1));
    }
    let number = |place: usize| words.get(place).and_then(|word| word.parse::<usize>().ok());
    let begun_ns = monotonic_ns();
    let good = match (words.first().copied(), number(1)) {
        (Some("rounds"), Some(count)) => play(number(2).unwrap_or(0), count),
        (Some("streams"), Some(count)) => open(count, number(2).unwrap_or(60), &words),
        (Some("resets"), Some(count)) => reset(count),
        (Some("early"), Some(count)) => early(count),
        (Some("long"), Some(seconds)) => steady(seconds, number(2).unwrap_or(RATE), &words),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    println!("{:.1} s", (monotonic_ns() - begun_ns) as f64 / 1e9);
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The limits in turn: one that a server on a busy machine keeps, just above the gap, on it, below
/// it, and on the whole answer.
fn limit(round: usize) -> Limit {
    match round % KINDS {
        0 => Limit::Idle(GAP * 20),
        1 => Limit::Idle(GAP * 2),
        2 => Limit::Idle(GAP),
        3 => Limit::Idle(GAP / 2),
        _ => Limit::Total(GAP * u32::try_from(TOKENS / 2).expect("a few")),
    }
}

fn play(first: usize, count: usize) -> bool {
    let drivers = drivers();
    let mut sums = [(0, 0, 0, 0, 0); KINDS];
    let mut found = 0;
    for number in first..first + count {
        let driver = drivers[number / KINDS % drivers.len()];
        let (streams, tokens, gap) = (STREAMS, TOKENS, GAP);
        let wish = Wish { driver, streams, tokens, gap, limit: limit(number) };
        match rounds::play(&wish) {
            Ok(round) => {
                let sum = &mut sums[number % KINDS];
                sum.0 += 1;
                sum.1 += round.tokens;
                sum.2 += round.ok;
                sum.3 += round.given_up;
                sum.4 += round.paused;
            }
            Err(words) => {
                found += 1;
                println!("FOUND round {number}, {:?}: {words}", wish.limit);
            }
        }
    }
    for (kind, (rounds, tokens, ok, given_up, paused)) in sums.into_iter().enumerate() {
        println!(
            "{rounds} rounds, {:?}: {tokens} of {} tokens counted, {ok} streams ok, {given_up} \
             given up, {paused} whose server paused for longer",
            limit(kind),
            rounds * STREAMS * TOKENS
        );
    }
    found == 0
}

fn product() -> Product {
    let program = std::env::current_exe().expect("this program has a path");
    Product { program, first: vec!["onbeat".to_owned()] }
}

fn open(streams: usize, seconds: usize, words: &[&str]) -> bool {
    let wish = streams::Wish {
        streams,
        tokens: seconds,
        step_ms: 1_000,
        driver: words.get(3).copied().unwrap_or("epoll").to_owned(),
        more: words.iter().skip(4).map(|word| (*word).to_owned()).collect(),
    };
    let told = match streams::open(&product(), &wish) {
        Ok(told) => told,
        Err(words) => {
            println!("FOUND {words}");
            return false;
        }
    };
    let expected = (streams * seconds) as u64;
    println!(
        "{} of {streams} streams ok, {} at once, {} of {expected} tokens; resident {} KiB before, \
         {} KiB while open: {} bytes a stream; lateness p50, p99 outside stalls {:?} us; exit {:?}",
        told.ok,
        told.at_once,
        told.tokens,
        told.before_bytes >> 10,
        told.open_bytes >> 10,
        told.bytes_each(streams),
        told.late_us,
        told.code
    );
    let good = told.ok == streams && told.tokens == expected && told.at_once == streams;
    if !good {
        println!("{}", told.words);
    }
    good
}

fn reset(count: usize) -> bool {
    drivers().into_iter().all(|driver| {
        let told = resets::mid_stream(count * resets::ONE_IN, 1, driver);
        println!("{}: of {count} streams that were reset {told:?} as they were", driver.name());
        told == Ok(count)
    })
}

fn early(count: usize) -> bool {
    drivers().into_iter().all(|driver| {
        [Early::Closed, Early::HalfClosed].into_iter().all(|how| {
            let told = resets::early(count, how, driver);
            println!("{}, {how:?}: {count} early answers: {told:?}", driver.name());
            told.is_ok()
        })
    })
}

fn steady(seconds: usize, rate: usize, words: &[&str]) -> bool {
    let driver = words.get(3).copied().unwrap_or("epoll").to_owned();
    let wish = long::Wish { seconds, rate, tokens: TOKENS_LONG, look_ms: LOOK_MS, driver };
    let told = match long::run(&product(), &wish) {
        Ok(told) => told,
        Err(words) => {
            println!("FOUND {words}");
            return false;
        }
    };
    let [ok, all] = told.ok;
    let expected = (all * TOKENS_LONG) as u64;
    println!(
        "{ok} of {all} requests ok, {} of {expected} tokens; exit {:?}",
        told.tokens, told.code
    );
    let (Some(growth), Some(late)) = (told.growth(), told.late_ns) else {
        println!("too short to say what grows\n{}", told.words);
        return false;
    };
    println!(
        "{} looks: resident {} KiB, then {} KiB, {:+.0} bytes an hour; at most {} descriptors, then \
         {}; median lateness {} ns, then {} ns",
        told.looks.len(),
        growth.bytes[0] >> 10,
        growth.bytes[1] >> 10,
        growth.bytes_an_hour,
        growth.files[0],
        growth.files[1],
        late[0],
        late[1]
    );
    let good = ok == seconds * rate
        && told.tokens == expected
        && growth.bytes_an_hour < BYTES_AN_HOUR_MAX
        && growth.files[1] <= growth.files[0] + FILES_MORE_MAX
        && late[1] - late[0] < DRIFT_NS_MAX;
    if !good {
        println!("{}", told.words);
    }
    good
}
