//! How sure a difference is between two runs of one plan: requests are drawn, not values.
//!
//! A long prompt is slow in both runs. Drawn together, a request brings its values of both, and
//! what the runs have in common cancels in the difference: the interval is as narrow as the plan
//! allows. A request that has a value in one run only (it failed in the other) is drawn with that
//! one, so figures are those of the reports. Quantiles need no values to be drawn: a request is
//! below or above the quantile or missing in either run, which makes nine cells, and the weights of
//! cells in a resample are known (Dirichlet's, whose sums are the Beta ranks of
//! [`super::super::bootstrap`]). So a million requests cost what a hundred do. Seeded.

use super::super::Ranked;
use super::super::bootstrap::{Difference, FEW, Figure, LEAST, gamma, normal, rank};
use super::super::latency::count;
use crate::dice::Dice;

/// The rank of a request without a value.
const MISSING: u32 = u32::MAX;
/// Places of the cells.
const BELOW: usize = 0;
const ABOVE: usize = 1;
const ABSENT: usize = 2;

/// A part and what it is of, for each request of a run; both zero where the request has none.
pub type Parts = Vec<[f64; 2]>;

/// The values of the same requests in two runs.
#[derive(Clone, Debug)]
pub struct Pairs {
    values: [Vec<Option<f64>>; 2],
    ranked: [Ranked; 2],
    /// Each request's place among its run's values.
    ranks: [Vec<u32>; 2],
}

impl Pairs {
    /// Takes the values of both runs, by request; values that are not finite are none.
    ///
    /// # Panics
    /// If the runs have not as many requests.
    #[must_use]
    pub fn new(before: Vec<Option<f64>>, after: Vec<Option<f64>>) -> Self {
        assert_eq!(before.len(), after.len(), "runs of one plan have as many requests");
        let finite = |values: Vec<Option<f64>>| -> Vec<Option<f64>> {
            values.into_iter().map(|value| value.filter(|value| value.is_finite())).collect()
        };
        let values = [finite(before), finite(after)];
        let ranked = [0, 1].map(|run| Ranked::from(known(&values[run]).collect::<Vec<f64>>()));
        let ranks = [0, 1].map(|run| ranks(&values[run]));
        Self { values, ranked, ranks }
    }

    /// The values of one run in order, the first run's or the second's.
    #[must_use]
    pub const fn ranked(&self) -> &[Ranked; 2] {
        &self.ranked
    }

    /// The values of requests that have one in both runs.
    pub fn both(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let [before, after] = &self.values;
        before.iter().zip(after).filter_map(|(before, after)| before.zip(*after))
    }

    /// How a figure of the second run differs from that of the first. `None` when one of them has
    /// fewer values than [`Figure::least`].
    #[must_use]
    pub fn difference(&self, figure: Figure) -> Option<Difference> {
        match figure {
            _ if self.ranked.iter().any(|ranked| ranked.count() < figure.least()) => None,
            Figure::Quantile(share) => self.quantile(share),
            Figure::Mean => {
                let parts = |values: &[Option<f64>]| -> Parts {
                    values.iter().map(|value| value.map_or([0.0; 2], |v| [v, 1.0])).collect()
                };
                ratio_difference(&parts(&self.values[0]), &parts(&self.values[1]), true)
            }
        }
    }

    fn quantile(&self, share: f64) -> Option<Difference> {
        let one = Order::of(&self.ranked[0], share)?;
        let other = Order::of(&self.ranked[1], share)?;
        let cells = self.cells([one.low, other.low]);
        let draw = |dice: &mut Dice| {
            let weights = cells.map(|row| row.map(|cell| weight(dice, cell)));
            let [below, above] = [BELOW, ABOVE].map(|at| weights[at].iter().sum::<f64>());
            // One draw for both: of equal runs every resample is equal, too.
            let step = 1.0 - dice.unit();
            let first = one.value(below / (below + above), step);
            let [below, above] = [BELOW, ABOVE].map(|at| weights.iter().map(|row| row[at]).sum());
            let (below, above): (f64, f64) = (below, above);
            Some((first, other.value(below / (below + above), step)))
        };
        let of = |ranked: &Ranked| ranked.percentile(share);
        Difference::of_draws(of(&self.ranked[0])?, of(&self.ranked[1])?, draw)
    }

    /// How many requests are among the lowest so many of each run, above them, or absent; and the
    /// one gap between order statistics more than there are values, above both.
    fn cells(&self, low: [u64; 2]) -> [[u64; 3]; 3] {
        let mut cells = [[0; 3]; 3];
        let place = |rank: u32, low: u64| match rank {
            MISSING => ABSENT,
            rank if u64::from(rank) < low => BELOW,
            _ => ABOVE,
        };
        for (&before, &after) in self.ranks[0].iter().zip(&self.ranks[1]) {
            cells[place(before, low[0])][place(after, low[1])] += 1;
        }
        cells[ABOVE][ABOVE] += 1;
        cells
    }
}

fn known(values: &[Option<f64>]) -> impl Iterator<Item = f64> + '_ {
    values.iter().filter_map(|value| *value)
}

fn ranks(values: &[Option<f64>]) -> Vec<u32> {
    let mut order: Vec<(f64, u32)> =
        (0..).zip(values).filter_map(|(place, value)| Some(((*value)?, place))).collect();
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut ranks = vec![MISSING; values.len()];
    for (rank, (_, place)) in (0..).zip(order) {
        ranks[place as usize] = rank;
    }
    ranks
}

fn weight(dice: &mut Dice, shape: u64) -> f64 {
    if shape == 0 { 0.0 } else { gamma(dice, shape) }
}

/// A quantile between two order statistics.
struct Order<'a> {
    values: &'a Ranked,
    /// The rank of the lower one, from 1.
    low: u64,
    /// How far the quantile is on the way to the next.
    part: f64,
}

impl<'a> Order<'a> {
    fn of(values: &'a Ranked, share: f64) -> Option<Self> {
        let place = count(values.count().checked_sub(1)?) * share.clamp(0.0, 1.0);
        Some(Self { values, low: rank(place.floor()) + 1, part: place - place.floor() })
    }

    /// Its value in a resample whose lower order statistic lies at this share of the values. How
    /// far the next one is says `step`, above zero and up to one (a Beta rank of shape one).
    fn value(&self, first: f64, step: f64) -> f64 {
        let n = self.values.count();
        let at = |share: f64| {
            let place = rank(share * count(n)).min(n - 1);
            self.values.at(place).expect("below the count")
        };
        let value = at(first);
        if self.part == 0.0 || self.low == n {
            return value;
        }
        let next = at(first + (1.0 - first) * (1.0 - step.powf(1.0 / count(n - self.low))));
        value + self.part * (next - value)
    }
}

/// How a ratio of sums over requests differs: of cached tokens to all, of a sum to a count. With
/// `paired`, both lists are of the same requests, which are drawn together. `None` when one of them
/// has fewer than [`LEAST`] requests that are part of something.
///
/// # Panics
/// If paired lists differ in length.
#[must_use]
pub fn ratio_difference(
    before: &[[f64; 2]],
    after: &[[f64; 2]],
    paired: bool,
) -> Option<Difference> {
    assert!(!paired || before.len() == after.len(), "paired lists are of the same requests");
    let known = |parts: &[[f64; 2]]| parts.iter().filter(|part| part[1] > 0.0).count() as u64;
    if known(before).min(known(after)) < LEAST {
        return None;
    }
    // What is part of nothing in either run is not drawn: of many requests, those of a part of the
    // run may be a few.
    let counts = |place: usize| {
        let is_known = |parts: &[[f64; 2]]| parts.get(place).is_some_and(|part| part[1] > 0.0);
        is_known(before) || is_known(after)
    };
    let kept = |parts: &[[f64; 2]]| -> Parts {
        let own = parts.iter().enumerate();
        let own = own.filter(|(place, part)| if paired { counts(*place) } else { part[1] > 0.0 });
        own.map(|(_, part)| *part).collect()
    };
    let (before, after) = (&kept(before), &kept(after));
    let (first, second) = (ratio(before.iter().copied())?, ratio(after.iter().copied())?);
    if before.len().max(after.len()) as u64 <= FEW {
        return Difference::of_draws(first, second, |dice| {
            let drawn = |dice: &mut Dice, n: usize| -> Vec<usize> {
                (0..n).map(|_| dice.place(n)).collect()
            };
            let one = drawn(dice, before.len());
            let other = if paired { one.clone() } else { drawn(dice, after.len()) };
            Some((ratio(one.iter().map(|&i| before[i]))?, ratio(other.iter().map(|&i| after[i]))?))
        })
        .map(|found| found.widened(before.len().min(after.len()) as u64));
    }
    // The mean of many is as good as normally distributed, and so is a ratio of two of them.
    let one: Vec<f64> = influences(before, first);
    let other: Vec<f64> = influences(after, second);
    let squares = |list: &[f64]| list.iter().map(|one| one * one).sum::<f64>().sqrt();
    let errors = [squares(&one), squares(&other)];
    let common: f64 = match paired {
        true => one.iter().zip(&other).map(|(a, b)| a * b).sum(),
        false => 0.0,
    };
    let product = errors[0] * errors[1];
    let correlation = if product > 0.0 { (common / product).clamp(-1.0, 1.0) } else { 0.0 };
    let rest = (1.0 - correlation * correlation).sqrt();
    Difference::of_draws(first, second, |dice| {
        let (a, b) = (normal(dice), normal(dice));
        Some((first + errors[0] * a, second + errors[1] * (correlation * a + rest * b)))
    })
}

/// Σ part / Σ whole.
pub(super) fn ratio(parts: impl Iterator<Item = [f64; 2]>) -> Option<f64> {
    let (part, whole) = parts.fold((0.0, 0.0), |sum, [part, of]| (sum.0 + part, sum.1 + of));
    (whole > 0.0).then(|| part / whole)
}

/// By how much each request pulls a ratio away from where it is.
fn influences(parts: &[[f64; 2]], ratio: f64) -> Vec<f64> {
    let whole: f64 = parts.iter().map(|[_, whole]| whole).sum();
    parts.iter().map(|[part, of]| (part - ratio * of) / whole).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::bootstrap::{RESAMPLES, difference};
    use super::*;

    /// What the same requests take in two runs: mostly their own length, and some chance. One in
    /// ten has no value in one of them.
    fn runs(seed: u64, n: usize, shift: f64) -> [Vec<Option<f64>>; 2] {
        let mut dice = Dice(seed);
        let mut runs = [Vec::new(), Vec::new()];
        for _ in 0..n {
            let length = 3.0 * normal(&mut dice).exp();
            for (run, shift) in runs.iter_mut().zip([0.0, shift]) {
                let value = length + shift + 0.2 * normal(&mut dice);
                run.push((dice.below(20) > 0).then_some(value));
            }
        }
        runs
    }

    fn pairs(seed: u64, n: usize, shift: f64) -> Pairs {
        let [before, after] = runs(seed, n, shift);
        Pairs::new(before, after)
    }

    /// The interval of a bootstrap that draws every request.
    fn by_drawing([before, after]: &[Vec<Option<f64>>; 2], share: f64) -> (f64, f64) {
        let mut dice = Dice(77);
        let mut drawn: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                let places: Vec<usize> = before.iter().map(|_| dice.place(before.len())).collect();
                let of = |values: &[Option<f64>]| {
                    let drawn = places.iter().filter_map(|&i| values[i]);
                    Ranked::from(drawn.collect::<Vec<_>>()).percentile(share).expect("some")
                };
                of(after) - of(before)
            })
            .collect();
        drawn.sort_unstable_by(f64::total_cmp);
        (drawn[RESAMPLES / 40], drawn[RESAMPLES - RESAMPLES / 40])
    }

    #[test]
    fn cells_stand_for_drawn_requests() {
        let runs = runs(3, 300, 0.4);
        let pairs = Pairs::new(runs[0].clone(), runs[1].clone());
        for share in [0.5, 0.9] {
            let quick = pairs.difference(Figure::Quantile(share)).expect("some").absolute;
            let slow = by_drawing(&runs, share);
            let width = slow.1 - slow.0;
            for (quick, slow) in [(quick.0, slow.0), (quick.1, slow.1)] {
                let apart = (quick - slow).abs();
                assert!(apart < 0.25 * width, "p{share}: {quick} against {slow} of {width}");
            }
        }
    }

    #[test]
    fn the_truth_lies_in_about_19_of_20_intervals() {
        let shift = 0.1;
        let cases = [(Figure::Mean, 120), (Figure::Mean, 500), (Figure::Quantile(0.5), 200)];
        for (figure, n) in cases {
            let inside = (0..60)
                .filter(|&seed| {
                    let found = pairs(1_000 + seed, n, shift).difference(figure);
                    let (low, high) = found.expect("some").absolute;
                    (low..=high).contains(&shift)
                })
                .count();
            assert!((52..=60).contains(&inside), "{figure:?} of {n}: {inside} of 60");
        }
    }

    #[test]
    fn what_runs_have_in_common_cancels_only_when_they_are_paired() {
        let pairs = pairs(9, 600, 0.3);
        let width = |of: Difference| of.absolute.1 - of.absolute.0;
        for figure in [Figure::Mean, Figure::Quantile(0.5), Figure::Quantile(0.9)] {
            let paired = pairs.difference(figure).expect("some");
            let [before, after] = pairs.ranked();
            let apart = difference(before, after, figure).expect("some");
            assert!((paired.before - apart.before).abs() < 1e-9, "{figure:?}");
            assert!((paired.after - apart.after).abs() < 1e-9, "{figure:?}");
            assert!(width(paired) < 0.8 * width(apart), "{figure:?}: {paired:?} {apart:?}");
        }
        assert!(pairs.difference(Figure::Mean).expect("some").is_clear());
        let [before, after] = pairs.ranked();
        assert!(!difference(before, after, Figure::Mean).expect("some").is_clear());
    }

    #[test]
    fn ratios_are_of_sums_and_missing_requests_weigh_nothing() {
        let before = [[10.0, 100.0], [0.0, 0.0], [30.0, 100.0]].repeat(3);
        let after = [[20.0, 100.0], [5.0, 10.0], [60.0, 90.0]].repeat(3);
        let found = ratio_difference(&before, &after, true).expect("some");
        assert_eq!((found.before, found.after), (0.2, 0.425));
        assert_eq!(ratio_difference(&[[0.0, 0.0]], &[[1.0, 2.0]], true), None);
        assert_eq!(ratio_difference(&[], &[[1.0, 2.0]], false), None);
        // Many of a kind: 1 of 4 against 1 of 2.
        let many = |share: u64| -> Parts {
            (0..4_000).map(|i| [f64::from(u8::from(i % share == 0)), 1.0]).collect()
        };
        let found = ratio_difference(&many(4), &many(2), false).expect("some");
        let (low, high) = found.absolute;
        let error = (0.25_f64 * 0.75 / 4_000.0 + 0.25 / 4_000.0).sqrt();
        assert!(((high - low) / (2.0 * 1.96 * error) - 1.0).abs() < 0.1, "{found:?}");
    }

    #[test]
    fn the_same_requests_give_the_same_interval_and_no_value_gives_none() {
        let found = pairs(5, 50, 0.5).difference(Figure::Quantile(0.9));
        assert_eq!(found, pairs(5, 50, 0.5).difference(Figure::Quantile(0.9)));
        let none = Pairs::new(vec![None, Some(f64::NAN)], vec![Some(1.0), Some(2.0)]);
        assert_eq!(none.difference(Figure::Quantile(0.5)), None);
        assert_eq!(none.difference(Figure::Mean), None);
        let of = |n: usize| Pairs::new(vec![Some(1.0); n], vec![Some(3.0); n]);
        let cases = [(Figure::Mean, 6), (Figure::Quantile(0.9), 50), (Figure::Quantile(0.99), 500)];
        for (figure, least) in cases {
            assert_eq!(of(least - 1).difference(figure), None);
            assert_eq!(of(least).difference(figure).expect("enough").absolute, (2.0, 2.0));
        }
    }

    #[test]
    fn chance_alone_is_seldom_called_clear() {
        // At the fewest values that get an interval: of requests whose lengths matter much, little
        // and not at all. One in twenty is what the intervals promise; of 200, 14 are 7 %.
        let cases = [
            (Figure::Quantile(0.5), 10),
            (Figure::Quantile(0.9), 50),
            (Figure::Quantile(0.99), 500),
        ];
        for (figure, n) in cases {
            for (common, own) in [(1.0, 0.3), (0.7, 0.7), (0.0, 1.0)] {
                let clear = (0..200_u64)
                    .filter(|seed| {
                        let mut dice = Dice(seed * 7_919 + 31 * n + 11);
                        let mut runs = [Vec::new(), Vec::new()];
                        for _ in 0..n {
                            let length = common * normal(&mut dice);
                            for run in &mut runs {
                                run.push(Some((length + own * normal(&mut dice)).exp()));
                            }
                        }
                        let [before, after] = runs;
                        Pairs::new(before, after).difference(figure).expect("enough").is_clear()
                    })
                    .count();
                assert!(clear <= 14, "{figure:?} of {n}, {common}: {clear} of 200");
            }
        }
    }
}
