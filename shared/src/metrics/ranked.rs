//! The values of one distribution in order: what curves, percentiles at any share and counts below
//! any limit are read from.
//!
//! Percentiles are those of [`super::quantile::percentile`], so that a curve and a report agree. Up
//! to 10⁷ values are kept one by one; beyond that equal values of three significant digits share a
//! place and [`Ranked::is_binned`] says so. Smallest and largest are always exact.

use super::latency::count;
use super::quantile;

/// Values in ascending order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranked {
    /// Ascending.
    values: Vec<f64>,
    /// How many values there are up to and with each; empty where each stands for itself.
    up_to: Vec<u64>,
    count: u64,
}

impl From<Vec<f64>> for Ranked {
    /// Sorts the values; those that are not finite are left out.
    fn from(mut values: Vec<f64>) -> Self {
        values.retain(|value| value.is_finite());
        values.sort_unstable_by(f64::total_cmp);
        let count = values.len() as u64;
        Self { values, up_to: Vec::new(), count }
    }
}

impl Ranked {
    /// Values that occur several times each, ascending.
    pub(super) fn of_bins(bins: impl IntoIterator<Item = (f64, u64)>) -> Self {
        let mut ranked = Self::default();
        for (value, times) in bins.into_iter().filter(|&(_, times)| times > 0) {
            ranked.count += times;
            ranked.values.push(value);
            ranked.up_to.push(ranked.count);
        }
        ranked
    }

    /// How many values there are.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether there were more than 10⁷ values, so that they have three digits each.
    #[must_use]
    pub const fn is_binned(&self) -> bool {
        !self.up_to.is_empty()
    }

    /// The value of a rank, the smallest being of rank 0.
    #[must_use]
    pub fn at(&self, rank: u64) -> Option<f64> {
        let place = if self.is_binned() {
            self.up_to.partition_point(|&up_to| up_to <= rank)
        } else {
            usize::try_from(rank).ok()?
        };
        self.values.get(place).copied()
    }

    /// The smallest.
    #[must_use]
    pub fn min(&self) -> Option<f64> {
        self.values.first().copied()
    }

    /// The largest.
    #[must_use]
    pub fn max(&self) -> Option<f64> {
        self.values.last().copied()
    }

    /// The arithmetic mean.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let sum: f64 = if self.is_binned() {
            self.weighted().map(|(value, times)| value * count(times)).sum()
        } else {
            self.values.iter().sum()
        };
        (self.count > 0).then(|| sum / count(self.count))
    }

    /// The standard deviation of the values themselves, not an estimate beyond them.
    #[must_use]
    pub fn deviation(&self) -> Option<f64> {
        let mean = self.mean()?;
        let squares: f64 =
            self.weighted().map(|(value, times)| (value - mean).powi(2) * count(times)).sum();
        Some((squares / count(self.count)).sqrt())
    }

    /// Each value and how often it occurs.
    fn weighted(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let mut before = 0;
        self.values.iter().enumerate().map(move |(place, &value)| {
            let Some(&up_to) = self.up_to.get(place) else { return (value, 1) };
            let times = up_to - before;
            before = up_to;
            (value, times)
        })
    }

    /// How many values are less than a limit.
    #[must_use]
    pub fn below(&self, limit: f64) -> u64 {
        self.counted(self.values.partition_point(|&value| value < limit))
    }

    /// How many values are at most a limit.
    #[must_use]
    pub fn up_to(&self, limit: f64) -> u64 {
        self.counted(self.values.partition_point(|&value| value <= limit))
    }

    /// The value below which a share of the values lies, interpolated linearly between the two
    /// nearest. `None` without values.
    #[must_use]
    pub fn percentile(&self, share: f64) -> Option<f64> {
        if !self.is_binned() {
            return quantile::percentile(&self.values, share);
        }
        let place = share.clamp(0.0, 1.0) * count(self.count.checked_sub(1)?);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rank: not negative, and float-to-integer casts saturate"
        )]
        let below = place as u64;
        let low = self.at(below)?;
        let high = self.at(below + 1).unwrap_or(low);
        Some(low + (high - low) * (place - count(below)))
    }

    fn counted(&self, places: usize) -> u64 {
        match places.checked_sub(1) {
            None => 0,
            Some(last) if self.is_binned() => self.up_to[last],
            Some(_) => places as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_counts_agree_with_the_sorted_list() {
        let ranked = Ranked::from(vec![5.0, f64::NAN, 1.0, 3.0, 3.0, f64::INFINITY]);
        assert_eq!((ranked.count(), ranked.min(), ranked.max()), (4, Some(1.0), Some(5.0)));
        assert_eq!((ranked.below(3.0), ranked.up_to(3.0)), (1, 3));
        assert_eq!((ranked.below(0.0), ranked.up_to(9.0)), (0, 4));
        assert_eq!((ranked.at(2), ranked.at(4)), (Some(3.0), None));
        assert_eq!((ranked.percentile(0.5), ranked.mean()), (Some(3.0), Some(3.0)));
        let none = Ranked::from(Vec::new());
        assert_eq!((none.percentile(0.5), none.min(), none.below(1.0)), (None, None, 0));
        assert_eq!(none.mean(), None);
    }

    #[test]
    fn bins_answer_like_the_values_they_stand_for() {
        let binned = Ranked::of_bins([(1.0, 2), (4.0, 0), (7.0, 3), (9.0, 1)]);
        let each = Ranked::from(vec![1.0, 1.0, 7.0, 7.0, 7.0, 9.0]);
        assert!(binned.is_binned() && !each.is_binned());
        assert_eq!((binned.count(), binned.mean()), (each.count(), each.mean()));
        assert_eq!(binned.deviation(), each.deviation());
        assert_eq!(Ranked::from(vec![1.0, 3.0]).deviation(), Some(1.0));
        for step in 0..=100 {
            let share = f64::from(step) / 100.0;
            let found = binned.percentile(share).expect("values");
            let exact = each.percentile(share).expect("values");
            assert!((found - exact).abs() < 1e-9, "{share}");
            let limit = share * 10.0;
            assert_eq!(binned.below(limit), each.below(limit), "{limit}");
            assert_eq!(binned.up_to(limit), each.up_to(limit), "{limit}");
        }
    }
}
