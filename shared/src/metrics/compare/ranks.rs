//! Whether one run's values tend to be larger than another's, by their ranks alone.
//!
//! Runs of one plan: Wilcoxon's signed ranks of each request's difference; requests without any
//! difference are left out. Other runs: Mann and Whitney's U. Both with the variance that ties
//! leave, the normal approximation and its correction for continuity, two-sided. Ranks do not care
//! how long the tail is; they say nothing of how large a difference is, which the share of larger
//! values beside them and the intervals do. Requests are taken as independent, as everywhere here.

use serde::Serialize;

use super::super::Ranked;
use super::super::latency::count;
use super::paired::Pairs;

/// What a rank test found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RankTest {
    /// `wilcoxon_signed_rank` or `mann_whitney_u`.
    pub test: &'static str,
    /// How many pairs of values it is about: requests, or every value with every other.
    pub pairs: f64,
    /// The share of those in which the new run's value is the larger one, equal ones as half.
    pub larger_share: f64,
    /// How often chance alone would give as much, were neither run's values larger.
    pub p_value: f64,
}

/// Of runs of one plan; `None` if no request has a value in both.
#[must_use]
pub fn signed_rank(pairs: &Pairs) -> Option<RankTest> {
    let mut moves: Vec<f64> = pairs.both().map(|(before, after)| after - before).collect();
    let all = count(moves.len() as u64);
    if moves.is_empty() {
        return None;
    }
    let more = count(moves.iter().filter(|&&by| by > 0.0).count() as u64);
    let same = count(moves.iter().filter(|&&by| by == 0.0).count() as u64);
    moves.retain(|&by| by != 0.0);
    moves.sort_unstable_by(|a, b| a.abs().total_cmp(&b.abs()));
    let n = count(moves.len() as u64);
    let (mut up, mut ties, mut before) = (0.0, 0.0, 0.0);
    for group in moves.chunk_by(|a, b| a.abs().total_cmp(&b.abs()).is_eq()) {
        let size = count(group.len() as u64);
        let rank = before + f64::midpoint(size, 1.0);
        up += rank * count(group.iter().filter(|&&by| by > 0.0).count() as u64);
        ties += size * size * size - size;
        before += size;
    }
    let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - ties / 48.0;
    Some(RankTest {
        test: "wilcoxon_signed_rank",
        pairs: all,
        larger_share: (more + same / 2.0) / all,
        p_value: two_sided(up - n * (n + 1.0) / 4.0, variance),
    })
}

/// Of any runs; `None` if one of them has no values.
#[must_use]
pub fn mann_whitney(before: &Ranked, after: &Ranked) -> Option<RankTest> {
    let (n, m) = (count(before.count()), count(after.count()));
    if before.is_empty() || after.is_empty() {
        return None;
    }
    let (mut larger, mut ties) = (0.0, 0.0);
    let mut at = [0, 0];
    loop {
        let next = [before.at(at[0]), after.at(at[1])];
        let Some(value) = next.into_iter().flatten().reduce(f64::min) else { break };
        // As many as are equal, in each run.
        let size = [before, after].map(|run| run.up_to(value) - run.below(value)).map(count);
        larger += size[1] * (count(at[0]) + size[0] / 2.0);
        let both = size[0] + size[1];
        ties += both * both * both - both;
        at = [before.up_to(value), after.up_to(value)];
    }
    let all = n + m;
    let spread = if all > 1.0 { all + 1.0 - ties / (all * (all - 1.0)) } else { 0.0 };
    Some(RankTest {
        test: "mann_whitney_u",
        pairs: n * m,
        larger_share: larger / (n * m),
        p_value: two_sided(larger - n * m / 2.0, n * m / 12.0 * spread),
    })
}

/// How often a normal value of this variance is as far from zero.
fn two_sided(away: f64, variance: f64) -> f64 {
    if variance <= 0.0 {
        return 1.0;
    }
    let away = (away.abs() - 0.5).max(0.0) / variance.sqrt();
    libm::erfc(away / std::f64::consts::SQRT_2).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::super::super::bootstrap::normal;
    use super::*;
    use crate::dice::Dice;

    fn ranked(values: &[f64]) -> Ranked {
        Ranked::from(values.to_vec())
    }

    fn paired(before: &[f64], after: &[f64]) -> Pairs {
        let some = |values: &[f64]| values.iter().copied().map(Some).collect();
        Pairs::new(some(before), some(after))
    }

    #[test]
    fn textbook_values() {
        // The ages of SciPy's documentation: U = 17 of 20, p = 0.111 347.
        let (men, women) = ([19.0, 22.0, 16.0, 29.0, 24.0], [20.0, 11.0, 17.0, 12.0]);
        let found = mann_whitney(&ranked(&women), &ranked(&men)).expect("values");
        assert_eq!((found.pairs, found.larger_share), (20.0, 0.85));
        assert!((found.p_value - 0.111_346_886_5).abs() < 1e-9, "{found:?}");
        let turned = mann_whitney(&ranked(&men), &ranked(&women)).expect("values");
        assert!((turned.p_value - found.p_value).abs() < 1e-12 && turned.larger_share < 0.2);
        // Fisher's maize, from the same place: 15 differences, the negative ranks sum to 24.
        let by = [
            6.0, 8.0, 14.0, 16.0, 23.0, 24.0, 28.0, 29.0, 41.0, -48.0, 49.0, 56.0, 60.0, -67.0,
            75.0,
        ];
        let found = signed_rank(&paired(&[0.0; 15], &by)).expect("pairs");
        let z: f64 = (96.0 - 60.0 - 0.5) / 310.0_f64.sqrt();
        assert!((found.p_value - libm::erfc(z / 2.0_f64.sqrt())).abs() < 1e-12);
        assert!((found.p_value - 0.0438).abs() < 1e-4, "{found:?}");
        assert!((found.larger_share - 13.0 / 15.0).abs() < 1e-12);
    }

    /// Mean and variance of a statistic over all ways to deal the values.
    fn moments(found: &[f64]) -> (f64, f64) {
        let n = count(found.len() as u64);
        let mean = found.iter().sum::<f64>() / n;
        (mean, found.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / n)
    }

    #[test]
    fn ties_leave_the_variance_that_dealing_the_values_out_has() {
        // All ways to deal ten values, many of them equal, to runs of four and six.
        let values = [1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 5.0, 5.0, 5.0, 5.0];
        let mut found = Vec::new();
        for hand in (0_u32..1 << 10).filter(|hand| hand.count_ones() == 4) {
            let of = |wanted: bool| -> Vec<f64> {
                let is_in = |i: usize| (hand >> i & 1 == 1) == wanted;
                (0..10).filter(|&i| is_in(i)).map(|i| values[i]).collect()
            };
            let test = mann_whitney(&ranked(&of(true)), &ranked(&of(false))).expect("values");
            found.push(test.larger_share * 24.0);
        }
        let (mean, exact) = moments(&found);
        assert!((mean - 12.0).abs() < 1e-9);
        // n m / 12 · (N + 1 − Σ(t³ − t) / N(N − 1)) with ties of 2, 3, 1 and 4.
        let tied = 24.0 / 12.0 * (11.0 - (6.0 + 24.0 + 60.0) / 90.0);
        assert!((exact - tied).abs() < 1e-9, "{exact} {tied}");
        let test = mann_whitney(&ranked(&values[..4]), &ranked(&values[4..])).expect("values");
        let away = (test.larger_share * 24.0 - 12.0 - 0.5) / exact.sqrt();
        assert!((test.p_value - libm::erfc(away / 2.0_f64.sqrt())).abs() < 1e-12, "{test:?}");
    }

    #[test]
    fn signs_of_tied_differences_have_the_variance_of_all_signs() {
        let sizes = [1.0, 1.0, 1.0, 2.0, 2.0, 4.0, 7.0];
        let ranks = [2.0, 2.0, 2.0, 4.5, 4.5, 6.0, 7.0];
        let sums: Vec<f64> = (0_u32..1 << 7)
            .map(|signs| (0..7).filter(|i| signs >> i & 1 == 1).map(|i| ranks[i]).sum())
            .collect();
        let (mean, exact) = moments(&sums);
        let found = signed_rank(&paired(&[0.0; 7], &sizes)).expect("pairs");
        let away = (28.0 - mean - 0.5) / exact.sqrt();
        assert!((found.p_value - libm::erfc(away / 2.0_f64.sqrt())).abs() < 1e-12, "{found:?}");
        // Requests without any difference say nothing.
        let mut with_zero = sizes.to_vec();
        with_zero.extend([0.0, 0.0]);
        let same = signed_rank(&paired(&[0.0; 9], &with_zero)).expect("pairs");
        assert!((same.p_value - found.p_value).abs() < 1e-15 && same.larger_share < 1.0);
    }

    #[test]
    fn equal_values_show_nothing_and_none_say_nothing() {
        let equal = ranked(&[4.0; 9]);
        let found = mann_whitney(&equal, &equal).expect("values");
        assert_eq!((found.p_value, found.larger_share), (1.0, 0.5));
        let found = signed_rank(&paired(&[4.0; 9], &[4.0; 9])).expect("pairs");
        assert_eq!((found.p_value, found.larger_share), (1.0, 0.5));
        assert_eq!(mann_whitney(&ranked(&[]), &equal), None);
        assert_eq!(signed_rank(&Pairs::new(vec![None], vec![Some(1.0)])), None);
    }

    #[test]
    fn chance_alone_is_called_clear_once_in_twenty() {
        let mut dice = Dice(8);
        let mut clear = [0, 0];
        for _ in 0..400 {
            let mut drawn =
                |n: usize| -> Vec<f64> { (0..n).map(|_| normal(&mut dice).exp()).collect() };
            let (one, other, third) = (drawn(40), drawn(55), drawn(40));
            let apart = mann_whitney(&ranked(&one), &ranked(&other)).expect("values");
            clear[0] += u32::from(apart.p_value < 0.05);
            clear[1] += u32::from(signed_rank(&paired(&one, &third)).expect("some").p_value < 0.05);
        }
        assert!(clear.iter().all(|clear| (8..=34).contains(clear)), "{clear:?} of 400");
    }
}
