//! What every bench needs: its size, a loop that measures, one line of JSON as the result.
//!
//! Promises that each result carries a checksum of the work, equal in every round and on every
//! machine, so that a bench that stopped doing its work is noticed and two revisions can be shown
//! to have done the same. `--bench` (which only `cargo bench` passes) asks for the real size;
//! anything else runs small, once, to show that it still works: such times mean nothing. There are
//! no thresholds here: numbers are compared between two revisions on one machine.

pub mod big_log;
pub mod cpu;
pub mod machine;
pub mod memory;
pub mod search;
pub mod steady;
pub mod traces;

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::Command;

use onbeat::clock::monotonic_ns;
use serde_json::{Value, json};

/// Runs this bench's program once more with these arguments, for what a process has only once
/// (such as its peak memory), and reads the line of JSON that it prints.
///
/// # Errors
/// When it cannot be run, fails (with its words), or prints no JSON.
pub fn by_child(arguments: &[&OsStr]) -> io::Result<Value> {
    let output = Command::new(std::env::current_exe()?).args(arguments).output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    serde_json::from_slice(&output.stdout).map_err(io::Error::other)
}

/// A share to three digits behind the point.
#[must_use]
pub fn share_of(part: Option<f64>, whole: u64) -> Option<f64> {
    part.map(|part| (part / whole as f64 * 1e3).round() / 1e3)
}

/// How much work a bench does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Enough to show that the bench works; its times mean nothing.
    Small,
    /// Enough to measure.
    Real,
}

/// Shortest time that the rounds of one bench take together, at real size.
const MEASURED_NS_MIN: i64 = 1_000_000_000;
/// Fewest and most rounds at real size; an odd number, so that the median is a round.
const ROUNDS: std::ops::RangeInclusive<usize> = 5..=1_001;

/// Runs the benches that the command line asks for and prints their results.
#[derive(Debug)]
pub struct Bencher {
    size: Size,
    words: Vec<String>,
    exact: bool,
    json: Option<File>,
}

impl Bencher {
    /// Reads the command line: `--bench`, `--test`, words of which a bench's name must contain one
    /// (or be one, with `--exact`), and `--json FILE` to which results are appended.
    ///
    /// # Panics
    /// When that file cannot be written to.
    #[must_use]
    pub fn from_arguments(arguments: impl IntoIterator<Item = String>) -> Self {
        let (mut bench, mut test, mut exact) = (false, false, false);
        let (mut words, mut json) = (Vec::new(), None);
        let mut rest = arguments.into_iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--bench" => bench = true,
                "--test" => test = true,
                "--exact" => exact = true,
                "--json" => json = rest.next(),
                flag if flag.starts_with('-') => {}
                _ => words.push(argument),
            }
        }
        let open = |path| OpenOptions::new().create(true).append(true).open(path);
        let json = json.map(|path| open(path).expect("--json names a file that can be written"));
        let size = if bench && !test { Size::Real } else { Size::Small };
        Self { size, words, exact, json }
    }

    /// One of two values, by size.
    pub fn pick<T>(&self, small: T, real: T) -> T {
        match self.size {
            Size::Small => small,
            Size::Real => real,
        }
    }

    /// Whether a bench of this name is asked for; for skipping costly preparation.
    #[must_use]
    pub fn wants(&self, name: &str) -> bool {
        let fits = |word: &String| if self.exact { name == word } else { name.contains(word) };
        self.words.is_empty() || self.words.iter().any(fits)
    }

    /// Prints a line of results, and keeps it where `--json` said.
    ///
    /// # Panics
    /// When that file refuses it.
    pub fn say(&self, line: &Value) {
        println!("{line}");
        if let Some(mut file) = self.json.as_ref() {
            writeln!(file, "{line}").expect("results can be kept");
        }
    }

    /// Measures `round`, which handles `items` of a `unit` and returns a checksum of its work.
    ///
    /// # Panics
    /// When two rounds have different checksums: the bench does not do what it says.
    pub fn measure(&self, name: &str, unit: &str, items: usize, mut round: impl FnMut() -> u64) {
        if !self.wants(name) {
            return;
        }
        // The first round warms caches and is not counted.
        let checksum = black_box(round());
        let mut times = Vec::new();
        let mut total = 0;
        while self.wants_more(times.len(), total) {
            let took = timed(name, checksum, &mut round);
            total += took;
            times.push(took);
        }
        self.say(&self.result(name, unit, items, &mut times, checksum));
    }

    /// Measures two ways to handle the same `items`, round by round in turn; the ratio is the first
    /// one's speed over the second's, of the medians.
    ///
    /// # Panics
    /// When two rounds of one way have different checksums.
    pub fn measure_pair(
        &self,
        name: &str,
        unit: &str,
        items: usize,
        (first_name, mut first): (&str, impl FnMut() -> u64),
        (second_name, mut second): (&str, impl FnMut() -> u64),
    ) {
        if !self.wants(name) {
            return;
        }
        let checksums = (black_box(first()), black_box(second()));
        let (mut firsts, mut seconds) = (Vec::new(), Vec::new());
        let mut total = 0;
        while self.wants_more(firsts.len(), total) {
            firsts.push(timed(name, checksums.0, &mut first));
            seconds.push(timed(name, checksums.1, &mut second));
            total += firsts[firsts.len() - 1];
        }
        let mut line = self.result(name, unit, items, &mut firsts, checksums.0);
        let other = self.result(name, unit, items, &mut seconds, checksums.1);
        line["first"] = json!(first_name);
        line["second"] = json!(second_name);
        line["second_checksum"] = other["checksum"].clone();
        if self.size == Size::Real {
            line["second_ns_per_item_median"] = other["ns_per_item_median"].clone();
            let ratio = seconds[seconds.len() / 2] as f64 / firsts[firsts.len() / 2] as f64;
            line["ratio_speed"] = json!((ratio * 1e3).round() / 1e3);
        }
        self.say(&line);
    }

    /// Whether a bench that ran so many rounds in so much time goes on.
    fn wants_more(&self, rounds: usize, total_ns: i64) -> bool {
        let too_few = rounds < self.pick(1, *ROUNDS.start());
        let too_short = total_ns < MEASURED_NS_MIN && rounds < *ROUNDS.end();
        too_few || (self.size == Size::Real && too_short) || rounds.is_multiple_of(2)
    }

    /// One result as a line of JSON; without times at small size, where they mean nothing.
    fn result(
        &self,
        name: &str,
        unit: &str,
        items: usize,
        times: &mut [i64],
        checksum: u64,
    ) -> Value {
        times.sort_unstable();
        // Two decimals: a clock read alone costs more than what is cut off.
        let per_item = |time: i64| (time as f64 / items.max(1) as f64 * 100.0).round() / 100.0;
        let mut line = json!({
            "bench": name,
            "command": format!("cargo bench -p benches --bench micro -- --exact {name}"),
            "size": self.pick("small", "real"),
            "unit": unit,
            "items": items,
            "checksum": format!("{checksum:016x}"),
        });
        if self.size == Size::Real {
            line["rounds"] = json!(times.len());
            line["ns_per_item_min"] = json!(per_item(times[0]));
            line["ns_per_item_median"] = json!(per_item(times[times.len() / 2]));
        }
        line
    }
}

/// The engine's binary: what `ONBEAT` names, or the one beside this program's folder, released if
/// there is one. `None` when it was not built.
#[must_use]
pub fn engine_binary() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("ONBEAT") {
        return Some(PathBuf::from(named));
    }
    // target/PROFILE/deps/replay-HASH → target/release/onbeat or target/debug/onbeat.
    let own = std::env::current_exe().ok()?;
    let target = own.parent()?.parent()?.parent()?;
    ["release", "debug"]
        .iter()
        .map(|profile| target.join(profile).join("onbeat"))
        .find(|path| path.is_file())
}

/// How long one round took.
fn timed(name: &str, checksum: u64, round: &mut impl FnMut() -> u64) -> i64 {
    let started = monotonic_ns();
    let again = black_box(round());
    let took = monotonic_ns() - started;
    assert_eq!(again, checksum, "{name}: a round did other work than the first");
    took
}

/// FNV-1a over bytes: cheap, the same everywhere, and different for other work.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| mix(hash, u64::from(*byte)))
}

/// Adds one number to a checksum.
#[must_use]
pub fn mix(hash: u64, number: u64) -> u64 {
    (hash ^ number).wrapping_mul(0x0000_0100_0000_01b3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bencher(arguments: &[&str]) -> Bencher {
        Bencher::from_arguments(arguments.iter().map(ToString::to_string))
    }

    #[test]
    fn only_cargo_bench_asks_for_the_real_size() {
        assert_eq!(bencher(&[]).pick(1, 2), 1);
        assert_eq!(bencher(&["--bench"]).pick(1, 2), 2);
        assert_eq!(bencher(&["--bench", "--test"]).pick(1, 2), 1);
    }

    #[test]
    fn a_word_chooses_benches_by_name() {
        let some = bencher(&["--bench", "sse"]);
        assert!(some.wants("wire_sse") && !some.wants("log_write"));
        assert!(bencher(&[]).wants("anything"));
        assert!(bencher(&["sse", "log"]).wants("log_write"));
        assert!(!bencher(&["--exact", "log"]).wants("log_write"));
        some.measure("log_write", "record", 1, || unreachable!("it was not asked for"));
    }

    #[test]
    fn a_result_names_its_unit_and_its_work() {
        let line = bencher(&["--bench"]).result("a", "event", 10, &mut [300, 100, 200], 7);
        assert_eq!(line["ns_per_item_min"], 10.0);
        assert_eq!(line["ns_per_item_median"], 20.0);
        assert_eq!(line["checksum"], "0000000000000007");
        assert_eq!(line["size"], "real");
        let line = bencher(&[]).result("a", "event", 10, &mut [300], 7);
        assert!(line.get("ns_per_item_min").is_none(), "{line}");
    }

    #[test]
    #[should_panic(expected = "other work")]
    fn work_that_changes_between_rounds_is_noticed() {
        let mut round = 0;
        bencher(&[]).measure("a", "event", 1, || {
            round += 1;
            round
        });
    }

    #[test]
    fn two_ways_are_measured_in_turn() {
        let turns = std::cell::RefCell::new(String::new());
        let way = |letter: char| {
            let turns = &turns;
            move || {
                turns.borrow_mut().push(letter);
                u64::from(letter)
            }
        };
        bencher(&[]).measure_pair("a", "event", 1, ("first", way('a')), ("second", way('b')));
        assert_eq!(turns.into_inner(), "abab", "one round to warm up, one that counts");
    }

    #[test]
    fn results_are_kept_where_they_are_wanted() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("results.jsonl");
        let text = path.to_string_lossy().into_owned();
        for _ in 0..2 {
            bencher(&["--json", &text]).measure("a", "event", 1, || 7);
        }
        assert_eq!(std::fs::read_to_string(&path).expect("kept").lines().count(), 2);
    }

    #[test]
    fn checksums_tell_bytes_apart() {
        assert_ne!(checksum(b"ab"), checksum(b"ba"));
        assert_eq!(checksum(b""), 0xcbf2_9ce4_8422_2325);
    }
}
