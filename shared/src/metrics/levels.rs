//! How many intervals hold at once, as a function of time that answers for any stretch at once.
//!
//! The same function as [`super::steps::Steps`] of the same intervals, in twelve bytes a change,
//! with the extremes and the area of groups of changes beside it: lowest, highest and mean over a
//! stretch cost a few hundred steps however long the stretch is, so a plot of a million requests
//! can be redrawn at every zoom. Before the first change it is zero; each value holds until the
//! next change.

use crate::units::RunNanos;

/// Changes, or groups of a tier, in one group. Few in tests, so that a few hundred changes have
/// several tiers.
const GROUP: usize = if cfg!(test) { 4 } else { 64 };

/// A whole number that changes with time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Levels {
    times: Vec<i64>,
    values: Vec<u32>,
    /// Lowest and highest of each group of values, of each group of those, and so on.
    tiers: Vec<Vec<(u32, u32)>>,
    /// The area up to the first change of each group.
    areas: Vec<f64>,
}

/// What a stretch of time has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Lowest value that holds at any instant of it.
    pub lowest: u32,
    /// Weighted by time.
    pub mean: f64,
    /// Highest value.
    pub highest: u32,
}

impl Levels {
    /// How many of these intervals hold at each instant: each holds from its start up to its end,
    /// and one that ends before it starts never does. At one instant ends come before starts.
    #[must_use]
    pub fn of_intervals(intervals: impl IntoIterator<Item = (i64, i64)>) -> Self {
        let (mut starts, mut ends) = (Vec::new(), Vec::new());
        for (start, end) in intervals.into_iter().filter(|(start, end)| start < end) {
            starts.push(start);
            ends.push(end);
        }
        starts.sort_unstable();
        ends.sort_unstable();
        let mut levels = Self::default();
        let (mut started, mut ended) = (0, 0);
        while ended < ends.len() {
            let next = starts.get(started).copied().unwrap_or(i64::MAX).min(ends[ended]);
            started += starts[started..].iter().take_while(|&&start| start == next).count();
            ended += ends[ended..].iter().take_while(|&&end| end == next).count();
            let value = u32::try_from(started - ended).unwrap_or(u32::MAX);
            if levels.values.last().copied().unwrap_or(0) != value {
                levels.times.push(next);
                levels.values.push(value);
            }
        }
        levels.index();
        levels
    }

    /// Builds what answers for groups.
    fn index(&mut self) {
        let extremes = |group: &[(u32, u32)]| {
            let lowest = group.iter().map(|range| range.0).min().unwrap_or(0);
            (lowest, group.iter().map(|range| range.1).max().unwrap_or(0))
        };
        let own: Vec<_> = self.values.iter().map(|&value| (value, value)).collect();
        let mut tier: Vec<_> = own.chunks(GROUP).map(extremes).collect();
        while tier.len() > 1 {
            let next = tier.chunks(GROUP).map(extremes).collect();
            self.tiers.push(std::mem::replace(&mut tier, next));
        }
        self.tiers.push(tier);
        let mut area = 0.0;
        for place in 0..self.times.len() {
            if place % GROUP == 0 {
                self.areas.push(area);
            }
            if let Some(next) = self.times.get(place + 1) {
                area += f64::from(self.values[place]) * length(self.times[place], *next);
            }
        }
    }

    /// Whether it never changes, and so is zero everywhere.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// How often it changes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.times.len()
    }

    /// The value at an instant.
    #[must_use]
    pub fn at(&self, time: RunNanos) -> u32 {
        self.place(time.0).map_or(0, |place| self.values[place])
    }

    /// The changes after `start` and before `end`: when, and to what.
    pub fn changes(
        &self,
        (start, end): (RunNanos, RunNanos),
    ) -> impl ExactSizeIterator<Item = (RunNanos, u32)> + '_ {
        let from = self.times.partition_point(|&time| time <= start.0);
        let to = self.times.partition_point(|&time| time < end.0).max(from);
        (from..to).map(|place| (RunNanos(self.times[place]), self.values[place]))
    }

    /// What a stretch has; `None` if it is empty.
    #[must_use]
    pub fn spread(&self, (start, end): (RunNanos, RunNanos)) -> Option<Spread> {
        if start >= end {
            return None;
        }
        let from = self.times.partition_point(|&time| time <= start.0);
        let to = self.times.partition_point(|&time| time < end.0).max(from);
        let first = self.at(start);
        let (lowest, highest) = self.extremes(from, to, (first, first));
        let mean = (self.area(end.0) - self.area(start.0)) / length(start.0, end.0);
        // Sums of many products round; a mean lies between the extremes.
        let mean = mean.clamp(f64::from(lowest), f64::from(highest));
        Some(Spread { lowest, mean, highest })
    }

    /// The highest value in a stretch, and since when it first holds there.
    #[must_use]
    pub fn peak(&self, (start, end): (RunNanos, RunNanos)) -> Option<(RunNanos, u32)> {
        let highest = self.spread((start, end))?.highest;
        if self.at(start) == highest {
            return Some((start, highest));
        }
        let to = self.times.partition_point(|&time| time < end.0);
        let mut from = self.times.partition_point(|&time| time <= start.0);
        // Whole groups without it are passed over.
        while from < to && self.values[from] != highest {
            let group = from / GROUP;
            let skips = from % GROUP == 0 && self.tiers[0][group].1 < highest;
            from += if skips { GROUP } else { 1 };
        }
        (from < to).then(|| (RunNanos(self.times[from]), highest))
    }

    fn place(&self, time: i64) -> Option<usize> {
        self.times.partition_point(|&then| then <= time).checked_sub(1)
    }

    /// Lowest and highest of some values and those given.
    fn extremes(&self, from: usize, to: usize, given: (u32, u32)) -> (u32, u32) {
        let join = |a: (u32, u32), b: (u32, u32)| (a.0.min(b.0), a.1.max(b.1));
        let mut found = given;
        let (mut from, mut to) = (from, to);
        let own = |place: usize| (self.values[place], self.values[place]);
        let mut tier: Option<&Vec<(u32, u32)>> = None;
        for next in &self.tiers {
            let of = |place: usize| tier.map_or_else(|| own(place), |tier| tier[place]);
            while from < to && from % GROUP != 0 {
                found = join(found, of(from));
                from += 1;
            }
            while from < to && to % GROUP != 0 {
                to -= 1;
                found = join(found, of(to));
            }
            (from, to) = (from / GROUP, to / GROUP);
            tier = Some(next);
        }
        (from..to)
            .map(|place| tier.map_or_else(|| own(place), |tier| tier[place]))
            .fold(found, join)
    }

    /// The area from the first change up to an instant.
    fn area(&self, time: i64) -> f64 {
        let Some(last) = self.place(time) else { return 0.0 };
        let group = last / GROUP;
        let inside = (group * GROUP..last).map(|place| {
            f64::from(self.values[place]) * length(self.times[place], self.times[place + 1])
        });
        let open = f64::from(self.values[last]) * length(self.times[last], time);
        self.areas[group] + inside.sum::<f64>() + open
    }
}

/// From one instant to a later one, in nanoseconds.
#[expect(clippy::cast_precision_loss, reason = "below a day exact, and beyond it close enough")]
fn length(from: i64, to: i64) -> f64 {
    to.saturating_sub(from) as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, proptest};

    use super::*;
    use crate::metrics::steps::Steps;

    proptest! {
        /// Any stretch of any intervals: the same as a walk over all of them.
        #[test]
        fn any_stretch_is_as_a_walk_finds_it(
            intervals in prop::collection::vec((0_i64..400, 0_i64..40), 0..120),
            stretches in prop::collection::vec((-50_i64..450, 1_i64..300), 1..6),
        ) {
            let intervals: Vec<_> = intervals.iter().map(|&(from, length)| (from, from + length))
                .collect();
            let levels = Levels::of_intervals(intervals.iter().copied());
            let held = |time: i64| {
                let holds = |&&(from, to): &&(i64, i64)| from <= time && time < to;
                u32::try_from(intervals.iter().filter(holds).count()).expect("few")
            };
            let steps = Steps::of_intervals(intervals.iter().copied().filter(|(a, b)| a < b));
            for (start, span) in stretches {
                let range = (RunNanos(start), RunNanos(start + span));
                let values: Vec<u32> = (start..start + span).map(held).collect();
                let found = levels.spread(range).expect("not empty");
                assert_eq!(Some(&found.lowest), values.iter().min());
                assert_eq!(Some(&found.highest), values.iter().max());
                let mean = values.iter().map(|&value| f64::from(value)).sum::<f64>()
                    / values.len() as f64;
                assert!((found.mean - mean).abs() < 1e-6, "{} {mean}", found.mean);
                if let Some(weighted) = steps.weighted((start, start + span)) {
                    assert!((weighted.mean - found.mean).abs() < 1e-6);
                    assert_eq!(weighted.max, f64::from(found.highest));
                }
                let first = (start..).zip(&values).find(|&(_, value)| *value == found.highest);
                let peak = levels.peak(range).map(|(time, value)| (time.0, value));
                assert_eq!(peak, first.map(|(time, &value)| (time, value)));
                let mut value = held(start);
                let mut changes = levels.changes(range).peekable();
                for time in start..start + span {
                    if let Some((_, next)) = changes.next_if(|change| change.0.0 == time) {
                        value = next;
                    }
                    assert_eq!(value, held(time), "at {time}");
                }
                assert_eq!(levels.at(RunNanos(start)), held(start));
            }
        }
    }

    #[test]
    fn nothing_is_zero_everywhere() {
        let levels = Levels::of_intervals([(5, 5), (9, 3)]);
        assert!(levels.is_empty());
        let zero = Spread { lowest: 0, mean: 0.0, highest: 0 };
        assert_eq!(levels.spread((RunNanos(0), RunNanos(9))), Some(zero));
        assert_eq!(levels.peak((RunNanos(0), RunNanos(9))), Some((RunNanos(0), 0)));
        assert_eq!(levels.spread((RunNanos(9), RunNanos(9))), None);
    }
}
