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
use crate::counted::grouped;
use crate::dice::Dice;
use crate::quantity::number;

/// Resamples of each side.
pub const RESAMPLES: usize = 2_000;
/// Share of resamples within an interval.
pub const CONFIDENCE: f64 = 0.95;
/// Values of each run below which no interval is drawn: draws of a few say how they lie, not how
/// much others would differ, and of one not even that.
pub const LEAST: u64 = 6;
/// Values that lie above a quantile, and below it, where an interval of it is drawn. Of fewer, a
/// resample repeats the same one or two, and chance alone is called clear far too often
/// (`chance_alone_is_seldom_called_clear`).
pub const TAIL_LEAST: u64 = 5;
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

    /// Values of each run that an interval takes.
    #[must_use]
    pub fn least(self) -> u64 {
        let Self::Quantile(share) = self else { return LEAST };
        let beyond = share.min(1.0 - share).max(0.0);
        // Less than a value, for what a share lacks of its decimals.
        rank((count(TAIL_LEAST) / beyond - 1e-6).ceil()).max(LEAST)
    }

    /// Why so many values, of the run that has fewer, give no interval; `None` if they do, or if
    /// there are none.
    #[must_use]
    pub fn too_few(self, values: u64) -> Option<String> {
        let least = self.least();
        if values == 0 || values >= least {
            return None;
        }
        Some(match self {
            Self::Quantile(share) if share <= 0.0 || share >= 1.0 => {
                "no values lie beyond an end".to_owned()
            }
            Self::Quantile(share) => format!(
                "p{} takes {} values of each run, so that {TAIL_LEAST} lie beyond it; there are {}",
                number(share * 100.0),
                grouped(least),
                grouped(values)
            ),
            Self::Mean => format!("a mean takes {least} values of each run; there are {values}"),
        })
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

    /// As wide as a mean of so few values needs it: resamples spread like the values at hand, which
    /// spread less than those that they were drawn from (Student's t, and n for n − 1).
    pub(super) fn widened(self, values: u64) -> Self {
        let n = count(values);
        if n < 2.0 {
            return self;
        }
        let by = student(n - 1.0) / NORMAL * (n / (n - 1.0)).sqrt();
        let around = |middle: f64, (low, high): (f64, f64)| {
            (middle + (low - middle) * by, middle + (high - middle) * by)
        };
        Self {
            absolute: around(self.change(), self.absolute),
            relative: self.relative_change().zip(self.relative).map(|(at, all)| around(at, all)),
            ..self
        }
    }

    /// Whether no change at all is implausible.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        self.absolute.0 > 0.0 || self.absolute.1 < 0.0
    }
}

/// How a figure of the second run's values differs from that of the first's. `None` when one of
/// them has fewer values than [`Figure::least`].
#[must_use]
pub fn difference(before: &Ranked, after: &Ranked, figure: Figure) -> Option<Difference> {
    let fewer = before.count().min(after.count());
    if fewer < figure.least() {
        return None;
    }
    let (first, second) = (figure.of(before)?, figure.of(after)?);
    let (one, other) = (Resampled::of(before, figure)?, Resampled::of(after, figure)?);
    let found =
        Difference::of_draws(first, second, |dice| Some((one.draw(dice), other.draw(dice))));
    match figure {
        Figure::Mean => found.map(|found| found.widened(fewer)),
        Figure::Quantile(_) => found,
    }
}

/// How far from its middle 95 % of the normal distribution lie.
const NORMAL: f64 = 1.959_963_985;

/// The same of Student's t with so many degrees of freedom (Cornish and Fisher's expansion; within
/// 1 % from five degrees on).
fn student(freedom: f64) -> f64 {
    let z = NORMAL;
    z + (z.powi(3) + z) / (4.0 * freedom)
        + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * freedom * freedom)
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
        for share in [0.5, 0.9, 0.95] {
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
    fn a_mean_of_few_is_as_uncertain_as_student_says() {
        // From the tables.
        for (freedom, t) in [(5.0, 2.5706), (9.0, 2.2622), (29.0, 2.0452), (399.0, 1.9659)] {
            assert!((student(freedom) / t - 1.0).abs() < 0.01, "{freedom}: {}", student(freedom));
        }
    }

    #[test]
    fn few_values_and_none() {
        let of = |values: &[f64]| Ranked::from(values.to_vec());
        assert_eq!(difference(&of(&[]), &of(&[1.0]), Figure::Mean), None);
        assert_eq!(difference(&of(&[1.0]), &of(&[]), Figure::Quantile(0.5)), None);
        let same = |value: f64, n: usize| of(&vec![value; n]);
        let cases = [(0.5, 10), (0.9, 50), (0.1, 50), (0.95, 100), (0.99, 500)]
            .map(|(q, n)| (Figure::Quantile(q), n));
        for (figure, least) in cases.into_iter().chain([(Figure::Mean, 6)]) {
            assert_eq!(difference(&same(1.0, least - 1), &same(3.0, least), figure), None);
            assert!(figure.too_few(least as u64 - 1).is_some() && figure.too_few(0).is_none());
            let found = difference(&same(1.0, least), &same(3.0, least), figure).expect("enough");
            assert_eq!((found.absolute, figure.too_few(least as u64)), ((2.0, 2.0), None));
        }
        let words = Figure::Quantile(0.999).too_few(200).expect("few");
        let said = "p99.9 takes 5,000 values of each run, so that 5 lie beyond it; there are 200";
        assert_eq!(words, said);
        for end in [0.0, 1.0] {
            assert_eq!(difference(&same(1.0, 900), &same(3.0, 900), Figure::Quantile(end)), None);
        }
        let found = difference(&same(0.0, 6), &same(1.0, 7), Figure::Mean).expect("enough");
        assert_eq!((found.relative, found.relative_change()), (None, None));
    }
}
