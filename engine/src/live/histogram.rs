//! Durations in buckets, as Prometheus has them: counts at most so large, their number, their sum.
//!
//! Bounds are 1, 2.5 and 5 of each power of ten, in seconds: [`LATENCY`] from 1 ms to 1,000 s,
//! [`TOKEN_GAP`] from 100 us to 10 s, [`LATENESS`] from 1 us to 1 s.

/// Upper bounds in nanoseconds with the text that names each, in seconds.
pub(super) type Bounds = &'static [(i64, &'static str)];

/// Of times to first token and whole answers.
pub(super) const LATENCY: Bounds = &[
    (1_000_000, "0.001"),
    (2_500_000, "0.0025"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (25_000_000, "0.025"),
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
    (250_000_000, "0.25"),
    (500_000_000, "0.5"),
    (1_000_000_000, "1"),
    (2_500_000_000, "2.5"),
    (5_000_000_000, "5"),
    (10_000_000_000, "10"),
    (25_000_000_000, "25"),
    (50_000_000_000, "50"),
    (100_000_000_000, "100"),
    (250_000_000_000, "250"),
    (500_000_000_000, "500"),
    (1_000_000_000_000, "1000"),
];

/// Of times between tokens.
pub(super) const TOKEN_GAP: Bounds = &[
    (100_000, "0.0001"),
    (250_000, "0.00025"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (2_500_000, "0.0025"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (25_000_000, "0.025"),
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
    (250_000_000, "0.25"),
    (500_000_000, "0.5"),
    (1_000_000_000, "1"),
    (2_500_000_000, "2.5"),
    (5_000_000_000, "5"),
    (10_000_000_000, "10"),
];

/// Of lateness.
pub(super) const LATENESS: Bounds = &[
    (1_000, "0.000001"),
    (2_500, "0.0000025"),
    (5_000, "0.000005"),
    (10_000, "0.00001"),
    (25_000, "0.000025"),
    (50_000, "0.00005"),
    (100_000, "0.0001"),
    (250_000, "0.00025"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (2_500_000, "0.0025"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (25_000_000, "0.025"),
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
    (250_000_000, "0.25"),
    (500_000_000, "0.5"),
    (1_000_000_000, "1"),
];

/// A distribution of durations.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    bounds: Bounds,
    /// Of each bound, and of what is larger than all.
    counts: Vec<u64>,
    sum_ns: f64,
}

impl Histogram {
    /// Without a value.
    pub(super) fn new(bounds: Bounds) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1], sum_ns: 0.0 }
    }

    /// Adds a duration in nanoseconds.
    pub(super) fn add(&mut self, ns: f64) {
        // Bounds stay far below 2^53, where doubles are exact.
        let place = self.bounds.partition_point(|&(bound, _)| (bound as f64) < ns);
        self.counts[place] += 1;
        self.sum_ns += ns;
    }

    /// How many values are at most each bound, with its name; the last are all of them.
    pub(super) fn at_most(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let names = self.bounds.iter().map(|&(_, name)| name).chain(["+Inf"]);
        names.zip(self.counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        }))
    }

    /// How many values there are.
    pub(super) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Their sum, in seconds.
    pub(super) fn sum_s(&self) -> f64 {
        self.sum_ns / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_grow_and_are_named_by_what_they_are() {
        for bounds in [LATENCY, TOKEN_GAP, LATENESS] {
            assert!(bounds.is_sorted_by(|a, b| a.0 < b.0));
            for &(ns, name) in bounds {
                let seconds: f64 = name.parse().expect("a number");
                assert!((seconds * 1e9 - ns as f64).abs() < 1e-3 * ns as f64, "{name} is {ns} ns");
            }
        }
    }

    #[test]
    fn a_bucket_holds_what_is_at_most_its_bound() {
        let mut histogram = Histogram::new(LATENESS);
        for ns in [-5.0, 1_000.0, 1_001.0, 2e9] {
            histogram.add(ns);
        }
        let found: Vec<_> = histogram.at_most().collect();
        assert_eq!(found[..2], [("0.000001", 2), ("0.0000025", 3)]);
        assert_eq!(found[LATENESS.len() - 1..], [("1", 3), ("+Inf", 4)]);
        assert_eq!(histogram.count(), 4);
        assert!((histogram.sum_s() - 2.000_001_996).abs() < 1e-12);
    }
}
