//! `hardship`: kills runs and takes their disks away, by command.
//!
//! ```text
//! cargo run --release -p tests --bin hardship -- kills 200
//! cargo run --release -p tests --bin hardship -- full
//! cargo run --release -p tests --bin hardship -- slow
//! ```
//!
//! It is also the program that all this happens to: with `onbeat` as its first word it is Onbeat,
//! so that what is tested is what was just compiled. Ends with 1 if anything is found.

use std::process::ExitCode;

use tests::hardship::disk::{self, Told};
use tests::hardship::{Noting, Product, kills};

const USAGE: &str = "usage: hardship kills COUNT [FIRST SEED] | full | slow";
/// Moments are drawn from so many nanoseconds after the first request.
const MOMENTS_NS: u64 = 1_500_000_000;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if words.first() == Some(&"onbeat") {
        return onbeat::cli::start(std::env::args_os().skip(1));
    }
    let program = std::env::current_exe().expect("this program has a path");
    let product = Product { program, first: vec!["onbeat".to_owned()] };
    let server = Noting::start();
    let good = match words.as_slice() {
        ["kills", rest @ ..] => {
            let numbers: Vec<u64> = rest.iter().filter_map(|word| word.parse().ok()).collect();
            let count = numbers.first().copied().unwrap_or(5);
            kill(&product, &server, count, numbers.get(1).copied().unwrap_or(0))
        }
        ["full"] => tell(Some(disk::full(&product, &server)), disk::check_full),
        ["slow"] => tell(disk::slow(&product, &server), disk::check_slow),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn kill(product: &Product, server: &Noting, count: u64, first: u64) -> bool {
    let (mut opened, mut worst, mut lacking, mut arrived) = (0, 0.0_f64, 0, 0);
    for seed in first..first + count {
        match kills::drawn(product, server, seed, MOMENTS_NS) {
            Ok(loss) => {
                opened += 1;
                worst = worst.max(loss.seconds);
                arrived += loss.arrived;
                lacking += loss.arrived.saturating_sub(loss.kept);
            }
            Err(words) => println!("FOUND {words}"),
        }
    }
    println!(
        "{opened} of {count} logs of killed runs open and invent nothing; {lacking} of {arrived} \
         requests are lost, at most the last {worst:.3} s of a run"
    );
    opened == count
}

fn tell(told: Option<Told>, check: fn(&Told) -> Result<(), String>) -> bool {
    let Some(told) = told else {
        println!("this system has no such disk to offer (one must be root)");
        return true;
    };
    println!("exit code {:?}, {} requests arrived\n{}", told.code, told.arrived, told.words);
    let Some(run) = &told.run else { return false };
    let lost: u64 = run.losses.iter().map(|loss| loss.count).sum();
    println!(
        "the log: {:?}, {} requests sent, {lost} records said to be lost, {}\n{:?}",
        run.state,
        (0..run.plan.len()).filter(|&i| run.requests.was_sent(i)).count(),
        disk::lateness_in_words(run),
        run.warnings
    );
    let wrong = check(&told).err();
    if let Some(words) = &wrong {
        println!("FOUND {words}");
    }
    wrong.is_none()
}
