//! `simulate`: as many simulated runs as are wished, by command.
//!
//! Prints what they came to, and each seed whose run breaks an invariant, with what it breaks; ends
//! with 1 then. What is simulated is the library's.

use std::process::ExitCode;
use std::time::Duration;

use onbeat::clock::monotonic_ns;
use tests::sim::{self, Figures};

const USAGE: &str = "usage: simulate [--runs N] [--first SEED] [--threads N]";
/// Runs between two looks at how far it is.
const PIECE: u64 = 1_000;
/// Seeds that break something, told at most.
const TOLD_MAX: usize = 10;

struct Wish {
    runs: u64,
    first: u64,
    threads: u64,
}

fn main() -> ExitCode {
    let wish = match read(std::env::args().skip(1)) {
        Ok(wish) => wish,
        Err(wrong) => {
            eprintln!("simulate: {wrong}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    // Each broken run's panic is told once, by its seed.
    std::panic::set_hook(Box::new(|_panic| {}));
    let start_ns = monotonic_ns();
    let parts: Vec<_> = std::thread::scope(|scope| {
        let spawn = |thread| {
            std::thread::Builder::new()
                .name(format!("simulate-{thread}"))
                .spawn_scoped(scope, {
                    let wish = &wish;
                    move || part(wish, thread)
                })
                .expect("a thread")
        };
        let threads: Vec<_> = (0..wish.threads).map(spawn).collect();
        threads.into_iter().map(|thread| thread.join().expect("panics are caught")).collect()
    });
    let took = Duration::from_nanos((monotonic_ns() - start_ns).unsigned_abs());
    let mut figures = Figures::default();
    let mut broken = Vec::new();
    for (part, seeds) in parts {
        figures = figures.and(&part);
        broken.extend(seeds);
    }
    tell(&figures, took);
    for words in broken.iter().take(TOLD_MAX) {
        println!("BROKEN {words}");
    }
    if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// One thread's share: every so manieth piece.
fn part(wish: &Wish, thread: u64) -> (Figures, Vec<String>) {
    let mut figures = Figures::default();
    let mut broken = Vec::new();
    let end = wish.first + wish.runs;
    let mut from = wish.first + thread * PIECE;
    while from < end && broken.len() < TOLD_MAX {
        for seed in from..end.min(from + PIECE) {
            match sim::run_all([seed]) {
                Ok(one) => figures = figures.and(&one),
                Err(words) => broken.push(words),
            }
        }
        from += wish.threads * PIECE;
    }
    (figures, broken)
}

fn tell(figures: &Figures, took: Duration) {
    let Figures { runs, requests, sent, tokens, reads, events, virtual_ns, .. } = figures;
    println!("{runs} runs in {:.1} s, {events} events", took.as_secs_f64());
    println!("{requests} requests, {sent} left, {tokens} content events, {reads} reads");
    println!(
        "{} s of virtual time, {} bytes of logs",
        virtual_ns / 1_000_000_000,
        figures.log_bytes
    );
    for (class, count) in &figures.classes {
        println!("{count:>12} {}", class.name());
    }
}

fn read(mut words: impl Iterator<Item = String>) -> Result<Wish, String> {
    let mut wish = Wish { runs: 10_000, first: 0, threads: 1 };
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} wants a value"))?;
        let number = value.parse().map_err(|error| format!("{word} {value}: {error}"))?;
        match word.as_str() {
            "--runs" => wish.runs = number,
            "--first" => wish.first = number,
            "--threads" => wish.threads = number,
            _ => return Err(format!("{word} is no option")),
        }
    }
    if wish.threads == 0 { Err("--threads 0: at least 1".to_owned()) } else { Ok(wish) }
}
