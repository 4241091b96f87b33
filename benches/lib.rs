//! What every bench needs: its size, a loop that measures, one line of JSON as the result.
//!
//! Promises that each result carries a checksum of the work, equal in every round and on every
//! machine, so that a bench that stopped doing its work is noticed and two revisions can be shown
//! to have done the same. `--bench` (which only `cargo bench` passes) asks for the real size;
//! anything else runs small, once, to show that it still works: such times mean nothing. There are
//! no thresholds here: numbers are compared between two revisions on one machine.

use std::hint::black_box;

use onbeat::clock::monotonic_ns;
use serde_json::json;

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
    filter: Option<String>,
}

impl Bencher {
    /// Reads the command line: `--bench`, `--test`, and a word that a bench's name must contain.
    #[must_use]
    pub fn from_arguments(arguments: impl IntoIterator<Item = String>) -> Self {
        let (mut bench, mut test, mut filter) = (false, false, None);
        for argument in arguments {
            match argument.as_str() {
                "--bench" => bench = true,
                "--test" => test = true,
                flag if flag.starts_with('-') => {}
                _ => filter = Some(argument),
            }
        }
        Self { size: if bench && !test { Size::Real } else { Size::Small }, filter }
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
        self.filter.as_deref().is_none_or(|word| name.contains(word))
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
        while times.len() < self.pick(1, *ROUNDS.start())
            || (self.size == Size::Real && total < MEASURED_NS_MIN && times.len() < *ROUNDS.end())
            || times.len().is_multiple_of(2)
        {
            let started = monotonic_ns();
            let again = black_box(round());
            let took = monotonic_ns() - started;
            assert_eq!(again, checksum, "{name}: a round did other work than the first");
            total += took;
            times.push(took);
        }
        println!("{}", self.result(name, unit, items, &mut times, checksum));
    }

    /// One result as a line of JSON; without times at small size, where they mean nothing.
    fn result(
        &self,
        name: &str,
        unit: &str,
        items: usize,
        times: &mut [i64],
        checksum: u64,
    ) -> serde_json::Value {
        times.sort_unstable();
        // Two decimals: a clock read alone costs more than what is cut off.
        let per_item = |time: i64| (time as f64 / items.max(1) as f64 * 100.0).round() / 100.0;
        let mut line = json!({
            "bench": name,
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
    fn checksums_tell_bytes_apart() {
        assert_ne!(checksum(b"ab"), checksum(b"ba"));
        assert_eq!(checksum(b""), 0xcbf2_9ce4_8422_2325);
    }
}
