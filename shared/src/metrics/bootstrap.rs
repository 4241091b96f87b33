//! How sure a difference between two runs is: bootstrap confidence intervals.
//!
//! A bootstrap asks what the figure would have been had other requests of the same kind been drawn:
//! it draws as many values as there are, with replacement, [`RESAMPLES`] times. The draws of a
//! quantile need no values to be drawn: the order statistics of a resample stand at ranks whose
//! distribution is known (the uniform order statistics, of the Beta distribution), which is the
//! same bootstrap at a fixed cost for a million requests. Here the runs are drawn apart; two runs
//! of one plan are drawn together by [`super::compare`]. Requests are taken as independent. Those
//! of one run are not quite: they share queues, so a true interval is somewhat wider, and one run
//! says nothing about the next day. Whoever shows an interval says so. Seeded: the same values give
//! the same interval everywhere.

use super::Ranked;
use super::latency::count;
use super::quantile::percentile;
use crate::dice::Dice;

/// Resamples of each side.
pub const RESAMPLES: usize = 2_000;
/// Share of resamples within an interval.
pub const CONFIDENCE: f64 = 0.95;
/// Values of each run below which no interval is drawn: draws of a few say how they lie, not how
/// much others would differ, and of one not even that.
pub const LEAST: u64 = 6;
/// What all draws begin with.
const SEED: u64 = 0x6F6E_6265_6174;
/// Up to so many values a mean is resampled value by value; above, the mean of a resample is as
/// good as normally distributed.
pub(super) const FEW: u64 = 400;

/// A figure of a run's values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// The arithmetic mean.
    Mean,
    /// The value below which this share lies, from 0 to 1.
    Quantile(f64),
}

impl Figure {
    /// It, of some values; `None` without any.
    #[must_use]
    pub fn of(self, values: &Ranked) -> Option<f64> {
        match self {
            Self::Mean => values.mean(),
            Self::Quantile(share) => values.percentile(share),
        }
    }
}

/// A figure of two runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Of the first run.
    pub before: f64,
    /// Of the second run.
    pub after: f64,
    /// Lowest and highest plausible `after − before`.
    pub absolute: (f64, f64),
    /// Lowest and highest plausible `after ÷ before − 1`; `None` where `before` may be zero.
    pub relative: Option<(f64, f64)>,
}

impl Difference {
    /// `after − before`.
    #[must_use]
    pub fn change(&self) -> f64 {
        self.after - self.before
    }

    /// `after ÷ before − 1`; `None` where `before` is zero.
    #[must_use]
    pub fn relative_change(&self) -> Option<f64> {
        (self.before != 0.0).then(|| self.after / self.before - 1.0)
    }

    /// A difference whose intervals come from [`RESAMPLES`] draws of both figures. A draw of
    /// nothing (a resample without a value) is left out; `None` if all are.
    pub(super) fn of_draws(
        before: f64,
        after: f64,
        mut draw: impl FnMut(&mut Dice) -> Option<(f64, f64)>,
    ) -> Option<Self> {
        let mut dice = Dice(SEED);
        let mut absolute = Vec::with_capacity(RESAMPLES);
        let mut relative = Vec::with_capacity(RESAMPLES);
        for _ in 0..RESAMPLES {
            let Some((first, second)) = draw(&mut dice) else { continue };
            absolute.push(second - first);
            if first != 0.0 {
                relative.push(second / first - 1.0);
            }
        }
        let is_sure = !absolute.is_empty() && relative.len() == absolute.len();
        let relative = is_sure.then(|| interval(relative)).flatten();
        Some(Self { before, after, absolute: interval(absolute)?, relative })
    }

    /// Whether no change at all is implausible.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        self.absolute.0 > 0.0 || self.absolute.1 < 0.0
    }
}

/// How a figure of the second run's values differs from that of the first's. `None` when one of
/// them has fewer than [`LEAST`] values.
#[must_use]
pub fn difference(before: &Ranked, after: &Ranked, figure: Figure) -> Option<Difference> {
    if before.count().min(after.count()) < LEAST {
        return None;
    }
    let (first, second) = (figure.of(before)?, figure.of(after)?);
    let (one, other) = (Resampled::of(before, figure)?, Resampled::of(after, figure)?);
    Difference::of_draws(first, second, |dice| Some((one.draw(dice), other.draw(dice))))
}

/// Where the middle of the drawn values lies; `None` without any.
fn interval(mut drawn: Vec<f64>) -> Option<(f64, f64)> {
    drawn.sort_unstable_by(f64::total_cmp);
    let at = |share| percentile(&drawn, share);
    Some((at(f64::midpoint(0.0, 1.0 - CONFIDENCE))?, at(f64::midpoint(1.0, CONFIDENCE))?))
}

/// Draws a figure of resamples of some values.
enum Resampled<'a> {
    /// Value by value.
    Means(&'a Ranked),
    /// A mean and its standard error.
    Normal(f64, f64),
    /// The value at rank `low` (from 1), and `part` of the way to the next.
    Ranks { values: &'a Ranked, low: u64, part: f64 },
}

impl<'a> Resampled<'a> {
    /// `None` without values.
    fn of(values: &'a Ranked, figure: Figure) -> Option<Self> {
        let n = values.count();
        Some(match figure {
            Figure::Mean if n <= FEW => Self::Means(values),
            Figure::Mean => Self::Normal(values.mean()?, values.deviation()? / count(n).sqrt()),
            Figure::Quantile(share) => {
                let place = count(n.checked_sub(1)?) * share.clamp(0.0, 1.0);
                let low = rank(place.floor());
                Self::Ranks { values, low: low + 1, part: place - place.floor() }
            }
        })
    }

    fn draw(&self, dice: &mut Dice) -> f64 {
        match *self {
            Self::Means(values) => {
                let n = values.count();
                let sum: f64 = (0..n).filter_map(|_| values.at(dice.below(n))).sum();
                sum / count(n)
            }
            Self::Normal(mean, error) => mean + error * normal(dice),
            Self::Ranks { values, low, part } => {
                let n = values.count();
                let at = |share: f64| {
                    let place = rank(share * count(n)).min(n - 1);
                    values.at(place).expect("below the count")
                };
                // The smaller of two neighbouring ranks, and how far the rest lies above it.
                let first = beta(dice, low, n + 1 - low);
                let value = at(first);
                if part == 0.0 || low == n {
                    return value;
                }
                let next = at(first + (1.0 - first) * beta(dice, 1, n - low));
                value + part * (next - value)
            }
        }
    }
}

/// A place among values as a rank.
pub(super) fn rank(place: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative, and float-to-integer casts saturate"
    )]
    let rank = place as u64;
    rank
}

/// Above zero and below one, for logarithms.
fn share(dice: &mut Dice) -> f64 {
    (count(dice.roll() >> 12) + 0.5) / count(1 << 52)
}

/// Normal, by Box and Muller.
pub(super) fn normal(dice: &mut Dice) -> f64 {
    let radius = (-2.0 * share(dice).ln()).sqrt();
    radius * (std::f64::consts::TAU * share(dice)).cos()
}

/// Gamma of a whole shape of at least 1, by Marsaglia and Tsang.
pub(super) fn gamma(dice: &mut Dice, shape: u64) -> f64 {
    let d = count(shape) - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(dice);
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 && share(dice).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d * v;
        }
    }
}

/// Beta of two whole shapes of at least 1.
fn beta(dice: &mut Dice, a: u64, b: u64) -> f64 {
    let (one, other) = (gamma(dice, a), gamma(dice, b));
    one / (one + other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(seed: u64, n: usize, shift: f64) -> Ranked {
        let mut dice = Dice(seed);
        // Skewed, as latencies are.
        Ranked::from((0..n).map(|_| shift - share(&mut dice).ln()).collect::<Vec<f64>>())
    }

    /// The interval of a bootstrap that draws every value.
    fn by_drawing(before: &Ranked, after: &Ranked, share: f64) -> (f64, f64) {
        let mut dice = Dice(99);
        let mut draw = |values: &Ranked| {
            let n = values.count();
            let drawn: Vec<f64> = (0..n).filter_map(|_| values.at(dice.below(n))).collect();
            Ranked::from(drawn).percentile(share).expect("some")
        };
        interval((0..RESAMPLES).map(|_| draw(after) - draw(before)).collect()).expect("some")
    }

    #[test]
    fn ranks_stand_for_drawn_values() {
        let (before, after) = (sample(1, 200, 0.0), sample(2, 260, 0.3));
        for share in [0.5, 0.9, 0.99] {
            let quick = difference(&before, &after, Figure::Quantile(share)).expect("some");
            let slow = by_drawing(&before, &after, share);
            let width = slow.1 - slow.0;
            for (quick, slow) in [(quick.absolute.0, slow.0), (quick.absolute.1, slow.1)] {
                let apart = (quick - slow).abs();
                assert!(apart < 0.12 * width, "p{share}: {quick} against {slow} of {width}");
            }
        }
    }

    #[test]
    fn the_truth_lies_in_about_19_of_20_intervals() {
        for figure in [Figure::Mean, Figure::Quantile(0.5), Figure::Quantile(0.95)] {
            let inside = (0..100)
                .filter(|seed| {
                    let before = sample(2 * seed + 1, 450, 0.0);
                    let after = sample(2 * seed + 1_001, 300, 0.5);
                    let found = difference(&before, &after, figure).expect("some");
                    (found.absolute.0..=found.absolute.1).contains(&0.5)
                })
                .count();
            assert!((88..=100).contains(&inside), "{figure:?}: {inside} of 100");
        }
    }

    #[test]
    fn equal_runs_differ_by_nothing_clear() {
        let values = sample(5, 1_000, 1.0);
        let found = difference(&values, &values, Figure::Quantile(0.5)).expect("some");
        assert!(!found.is_clear() && found.change() == 0.0);
        let shifted = sample(6, 1_000, 2.0);
        let found = difference(&values, &shifted, Figure::Mean).expect("some");
        assert!(found.is_clear() && found.relative_change().expect("not from zero") > 0.3);
        let relative = found.relative.expect("not from zero");
        assert!(relative.0 > 0.2 && relative.1 < 0.8);
    }

    #[test]
    fn few_values_and_none() {
        let of = |values: &[f64]| Ranked::from(values.to_vec());
        assert_eq!(difference(&of(&[]), &of(&[1.0]), Figure::Mean), None);
        assert_eq!(difference(&of(&[1.0]), &of(&[]), Figure::Quantile(0.5)), None);
        let same = |value: f64, n: usize| of(&vec![value; n]);
        for share in [0.0, 0.5, 1.0] {
            let figure = Figure::Quantile(share);
            assert_eq!(difference(&same(1.0, 5), &same(3.0, 6), figure), None);
            let found = difference(&same(1.0, 6), &same(3.0, 6), figure).expect("enough");
            assert_eq!(found.absolute, (2.0, 2.0));
        }
        let found = difference(&same(0.0, 6), &same(1.0, 7), Figure::Mean).expect("enough");
        assert_eq!((found.relative, found.relative_change()), (None, None));
    }
}
