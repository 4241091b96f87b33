//! How long a blocked player waits: 0.2 s, twice as long each time, 30 s at most, ± 25 %.
//!
//! The share is drawn from the seed and from whom it is for, so that players that were blocked
//! together do not come back together, and a run with the same seed draws the same.

use onbeat_shared::units::{NANOS_PER_MILLI, NANOS_PER_SECOND};

const FIRST_NS: i64 = 200 * NANOS_PER_MILLI;
const MOST_NS: i64 = 30 * NANOS_PER_SECOND;
/// Doublings after which it is the most anyway.
const DOUBLINGS_MAX: u32 = 8;
/// A quarter is so many of these.
const QUARTER: i64 = 1 << 20;

/// The wait after being blocked for the `count`-th time in a row, from 1.
pub(super) fn backoff_ns(count: u32, draw: u64) -> i64 {
    let doublings = count.saturating_sub(1).min(DOUBLINGS_MAX);
    let ns = (FIRST_NS << doublings).min(MOST_NS);
    // From three quarters to five: a share of 21 bits and its upper end.
    let share = i64::try_from(draw >> 43).unwrap_or(0).min(2 * QUARTER);
    ns / 4 / QUARTER * (3 * QUARTER + share) + ns / 4 % QUARTER * (3 * QUARTER + share) / QUARTER
}

/// A number drawn from a seed and from what it is for.
pub(super) fn drawn(seed: u64, keys: [u64; 3]) -> u64 {
    keys.into_iter().fold(mixed(seed), |drawn, key| mixed(drawn ^ key))
}

/// One step of SplitMix64.
const fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_up_to_a_cap_within_a_quarter() {
        for (count, middle_ms) in [
            (1, 200),
            (2, 400),
            (3, 800),
            (4, 1_600),
            (5, 3_200),
            (6, 6_400),
            (7, 12_800),
            (8, 25_600),
            (9, 30_000),
            (10, 30_000),
            (u32::MAX, 30_000),
        ] {
            let middle_ns = middle_ms * NANOS_PER_MILLI;
            assert_eq!(backoff_ns(count, 0), middle_ns / 4 * 3, "{count}");
            let most = backoff_ns(count, u64::MAX);
            assert!(most <= middle_ns / 4 * 5 && most > middle_ns / 4 * 5 - 20_000, "{count}");
            assert_eq!(backoff_ns(count, 1 << 63), middle_ns, "{count}");
        }
    }

    #[test]
    fn draws_are_spread_and_the_same_again() {
        let all: Vec<i64> = (0..10_000).map(|key| backoff_ns(1, drawn(1, [key, 0, 0]))).collect();
        let mean_ns = all.iter().sum::<i64>() / 10_000;
        assert!((mean_ns - FIRST_NS).abs() < NANOS_PER_MILLI, "{mean_ns}");
        assert!(all.iter().min() < Some(&(151 * NANOS_PER_MILLI)));
        assert!(all.iter().max() > Some(&(249 * NANOS_PER_MILLI)));
        assert_eq!(drawn(9, [1, 2, 3]), drawn(9, [1, 2, 3]));
        assert_ne!(drawn(9, [1, 2, 3]), drawn(9, [1, 3, 2]));
        assert_ne!(drawn(9, [1, 2, 3]), drawn(8, [1, 2, 3]));
    }
}
