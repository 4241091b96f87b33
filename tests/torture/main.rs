//! `torture`: every system call of the program made to fail, one after the other, by command.
//!
//! Prints what came of each call and number, and each failure that was not stood; ends with 1 then.
//! Its first word `onbeat` makes it the program that is tortured: what is tested is what was just
//! compiled. How is the library's.

use std::collections::BTreeMap;
use std::process::ExitCode;

use tests::torture::{BLOWS, Blow, Fate, Rack};

#[global_allocator]
static MEMORY: onbeat::last_words::LastWords = onbeat::last_words::LastWords;

const USAGE: &str =
    "usage: torture [--calls NAME,…] [--driver epoll|io_uring] [--from N] [--to N] [--step N]";

struct Wish {
    calls: Vec<String>,
    driver: String,
    numbers: (u32, u32),
    step: usize,
}

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    if words.nth(1).is_some_and(|word| word == "onbeat") {
        return onbeat::cli::start(std::iter::once("onbeat".into()).chain(words));
    }
    let wish = match read(std::env::args().skip(1)) {
        Ok(wish) => wish,
        Err(wrong) => {
            eprintln!("torture: {wrong}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let program = std::env::current_exe().expect("this program has a path");
    let rack = match Rack::new(&program) {
        Ok(rack) => rack,
        Err(why) => {
            eprintln!("torture: {why}");
            return ExitCode::FAILURE;
        }
    };
    let mut broken = 0;
    for (call, errnos) in BLOWS {
        if wish.calls.is_empty() || wish.calls.iter().any(|wished| wished == call) {
            broken += errnos.iter().map(|errno| strike_all(&rack, &wish, call, errno)).sum::<u32>();
        }
    }
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Lets a call fail with one number, each time from the first wished to the last; returns how many
/// of these were not stood.
fn strike_all(rack: &Rack, wish: &Wish, call: &str, errno: &str) -> u32 {
    let mut fates: BTreeMap<String, u32> = BTreeMap::new();
    let mut broken = 0;
    for nth in (wish.numbers.0..=wish.numbers.1).step_by(wish.step) {
        let name = match rack.strike(&Blow { call, errno, nth, driver: &wish.driver }) {
            Fate::Missed => break,
            Fate::Early => "before the program began".to_owned(),
            Fate::Stood(code) => format!("exit code {code}"),
            Fate::OutOfMemory => "the runtime had no memory".to_owned(),
            Fate::Broken(why) => {
                broken += 1;
                println!("BROKEN {call} {errno} {nth} {}: {why}", wish.driver);
                "broken".to_owned()
            }
        };
        *fates.entry(name).or_default() += 1;
    }
    let told: Vec<String> = fates.iter().map(|(name, count)| format!("{count} {name}")).collect();
    println!("{call:<15} {errno:<14} {}", told.join(", "));
    broken
}

fn read(mut words: impl Iterator<Item = String>) -> Result<Wish, String> {
    let mut wish =
        Wish { calls: Vec::new(), driver: "epoll".to_owned(), numbers: (1, 200), step: 1 };
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} wants a value"))?;
        let number = || value.parse().map_err(|error| format!("{word} {value}: {error}"));
        match word.as_str() {
            "--calls" => wish.calls = value.split(',').map(str::to_owned).collect(),
            "--driver" => wish.driver = value,
            "--from" => wish.numbers.0 = number()?,
            "--to" => wish.numbers.1 = number()?,
            "--step" => wish.step = usize::try_from(number()?).unwrap_or(1).max(1),
            _ => return Err(format!("{word} is no option")),
        }
    }
    let known = |call: &String| BLOWS.iter().any(|(name, _)| name == call);
    match wish.calls.iter().find(|call| !known(call)) {
        Some(stranger) => Err(format!("--calls {stranger}: not one of those that fail here")),
        None => Ok(wish),
    }
}
