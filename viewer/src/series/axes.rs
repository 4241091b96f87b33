//! What stands on an axis: a unit, a scale, a name.
//!
//! A value (nanoseconds, a number, a share of one) has a *place*: the figure that the plot counts
//! in, such as its common logarithm. [`Axis`] goes there and back and writes both in words. Where a
//! value has no place, such as zero on a logarithmic axis, it says so; nothing is moved to fit.

use onbeat_shared::units::NANOS_PER_SECOND;

use super::picture::HeightAxis;
use crate::quantity::{self, TimeUnit};

/// What lies across a plot.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Across {
    /// The run's time, in seconds from the schedule's zero.
    #[default]
    Time,
    /// Something else.
    Value(Axis),
}

/// What stands on an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    /// Its name, such as `input length`.
    pub label: &'static str,
    /// What its values are.
    pub unit: Unit,
    /// How they are spread.
    pub scale: AxisScale,
}

/// What the values of an axis are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Numbers of something, such as tokens; empty for plain numbers.
    Number(&'static str),
    /// Nanoseconds, written in this unit where the scale is linear.
    Time(TimeUnit),
    /// Shares of one, written in per cent.
    Share,
}

/// How values are spread over an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisScale {
    /// Even steps.
    Linear,
    /// Powers of ten: `log10(value)`.
    Log10,
    /// Shares towards one, each nine as wide as the last: `-log10(1 - share)`.
    Percentile,
}

/// The narrowest stretch that can be shown on a logarithmic axis (decades): three digits still tell
/// its grid lines apart.
const NARROWEST_LOG: f64 = 0.05;
/// What a logarithmic axis shows at least unless it is zoomed (decades): less would make much of
/// little.
const SHORTEST_LOG: f64 = 0.5;
/// The narrowest stretch on an axis of percentiles.
const NARROWEST_PERCENTILE: f64 = 0.2;
/// The same on a linear one, as a share of all of it.
const NARROWEST_SHARE: f64 = 1e-3;

impl Axis {
    /// Even steps of numbers.
    #[must_use]
    pub const fn linear(label: &'static str, unit: Unit) -> Self {
        Self { label, unit, scale: AxisScale::Linear }
    }

    /// Powers of ten.
    #[must_use]
    pub const fn log(label: &'static str, unit: Unit) -> Self {
        Self { label, unit, scale: AxisScale::Log10 }
    }

    /// Shares of the requests on a scale that gives every nine the same width.
    #[must_use]
    pub const fn percentile(label: &'static str) -> Self {
        Self { label, unit: Unit::Share, scale: AxisScale::Percentile }
    }

    /// Where a value stands; `None` where it has no place.
    #[must_use]
    pub fn place(self, value: f64) -> Option<f64> {
        let place = match self.scale {
            AxisScale::Linear => value / self.size(),
            AxisScale::Log10 if value > 0.0 => value.log10(),
            AxisScale::Percentile if (0.0..1.0).contains(&value) => -(1.0 - value).log10(),
            AxisScale::Log10 | AxisScale::Percentile => return None,
        };
        place.is_finite().then_some(place)
    }

    /// The value that stands at a place: the inverse of [`Self::place`].
    #[must_use]
    pub fn value(self, place: f64) -> f64 {
        match self.scale {
            AxisScale::Linear => place * self.size(),
            AxisScale::Log10 => 10_f64.powf(place),
            AxisScale::Percentile => 1.0 - 10_f64.powf(-place),
        }
    }

    /// What one of a linear axis' places is worth.
    const fn size(self) -> f64 {
        match self.unit {
            Unit::Number(_) => 1.0,
            Unit::Time(unit) => unit.nanos(),
            Unit::Share => 0.01,
        }
    }

    /// The label of a grid line that is `step` places away from its neighbours.
    #[must_use]
    pub fn mark(self, place: f64, step: f64) -> String {
        match (self.scale, self.unit) {
            (AxisScale::Linear, _) => quantity::at_step(place, step),
            (_, Unit::Time(_)) => quantity::duration(self.value(place)),
            (AxisScale::Log10, Unit::Share) => quantity::percent(self.value(place)),
            (AxisScale::Log10, Unit::Number(_)) => quantity::number(self.value(place)),
            (AxisScale::Percentile, _) => quantity::percentile(self.value(place)),
        }
    }

    /// A value with its unit.
    #[must_use]
    pub fn words(self, value: f64) -> String {
        match (self.scale, self.unit) {
            (AxisScale::Percentile, _) => quantity::percentile(value),
            (_, Unit::Time(_)) => quantity::measured(value),
            (_, Unit::Share) => quantity::percent(value),
            (_, Unit::Number("")) => quantity::number(value),
            (_, Unit::Number(unit)) => format!("{} {unit}", quantity::number(value)),
        }
    }

    /// Unit and scale in words, as they stand beside a plot's title. Labels of times on a
    /// logarithmic axis have their unit each.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match (self.scale, self.unit) {
            (AxisScale::Linear, Unit::Number(unit)) => unit,
            (AxisScale::Linear, Unit::Time(unit)) => unit.sign(),
            (AxisScale::Linear, Unit::Share) => "%",
            (AxisScale::Log10, _) => "log scale",
            (AxisScale::Percentile, _) => "",
        }
    }

    /// What is written below a horizontal axis.
    #[must_use]
    pub fn title(self) -> String {
        let noted: Vec<&str> = match (self.scale, self.unit) {
            (AxisScale::Percentile, _) => Vec::new(),
            (AxisScale::Linear, _) => vec![self.unit()],
            (AxisScale::Log10, Unit::Number(unit)) => vec![unit, "log scale"],
            (AxisScale::Log10, _) => vec!["log scale"],
        };
        // "Tokens (tokens)" says nothing twice.
        let label = self.label.to_lowercase();
        let said = |word: &&str| !word.is_empty() && !label.contains(word);
        let noted: Vec<&str> = noted.into_iter().filter(said).collect();
        if noted.is_empty() {
            return self.label.to_owned();
        }
        format!("{} ({})", self.label, noted.join(", "))
    }

    /// Places that show everything between two values with a little room around; what has no place
    /// is left out. A linear axis begins at zero unless values lie below.
    #[must_use]
    pub fn bounds(self, least: f64, most: f64) -> (f64, f64) {
        let fallback = match self.scale {
            AxisScale::Linear | AxisScale::Percentile => (0.0, 1.0),
            AxisScale::Log10 if matches!(self.unit, Unit::Time(_)) => (6.0, 9.0),
            AxisScale::Log10 => (0.0, 3.0),
        };
        let (Some(low), Some(high)) = (self.place(least), self.place(most)) else {
            return fallback;
        };
        if low > high {
            return fallback;
        }
        match self.scale {
            AxisScale::Percentile => (low, high.max(low + 1.0)),
            AxisScale::Log10 => {
                let room = (0.03 * (high - low)).max(0.04);
                let short = (SHORTEST_LOG - (high - low)).max(0.0) / 2.0;
                (low - room - short, high + room + short)
            }
            AxisScale::Linear => {
                let from = low.min(0.0);
                let room = 0.05 * (high.max(0.0) - from);
                let high = if high > 0.0 || low < 0.0 { high.max(0.0) + room } else { 1.0 };
                (if from < 0.0 { from - room } else { 0.0 }, high)
            }
        }
    }

    /// The same without zero where all values lie far from it, for plots in which heights are
    /// compared by where they stand and not by how tall they are.
    #[must_use]
    pub fn close_bounds(self, least: f64, most: f64) -> (f64, f64) {
        match (self.scale, self.place(least), self.place(most)) {
            (AxisScale::Linear, Some(low), Some(high)) if low > 0.4 * high && low < high => {
                let room = 0.08 * (high - low);
                (low - room, high + room)
            }
            _ => self.bounds(least, most),
        }
    }

    /// The narrowest stretch (places) that can be looked at, where `whole` is all there is.
    #[must_use]
    pub fn narrowest(self, whole: f64) -> f64 {
        let least = match self.scale {
            AxisScale::Linear => NARROWEST_SHARE * whole,
            AxisScale::Log10 => NARROWEST_LOG,
            AxisScale::Percentile => NARROWEST_PERCENTILE,
        };
        least.min(whole)
    }
}

/// Both axes of a plot, for what can lie along either of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axes {
    /// What lies across.
    pub across: Across,
    /// What stands up.
    pub height: HeightAxis,
}

/// Which way a line through a plot runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From left to right: at one height.
    Horizontal,
    /// Up and down: at one value across.
    Vertical,
}

impl Axes {
    /// Where a value stands on the axis that a line of this direction crosses. Instants are
    /// nanoseconds.
    #[must_use]
    pub fn place(self, direction: Direction, value: f64) -> Option<f64> {
        match (direction, self.across) {
            (Direction::Horizontal, _) => self.height.place(value),
            (Direction::Vertical, Across::Value(axis)) => axis.place(value),
            (Direction::Vertical, Across::Time) => Some(value / NANOS_PER_SECOND as f64),
        }
    }

    /// The value at a place: the inverse of [`Self::place`].
    #[must_use]
    pub fn value(self, direction: Direction, place: f64) -> f64 {
        match (direction, self.across) {
            (Direction::Horizontal, _) => self.height.value(place),
            (Direction::Vertical, Across::Value(axis)) => axis.value(place),
            (Direction::Vertical, Across::Time) => place * NANOS_PER_SECOND as f64,
        }
    }

    /// A value with its unit.
    #[must_use]
    pub fn words(self, direction: Direction, value: f64) -> String {
        match (direction, self.across) {
            (Direction::Horizontal, _) => self.height.words(value),
            (Direction::Vertical, Across::Value(axis)) => axis.words(value),
            (Direction::Vertical, Across::Time) => {
                quantity::instant(value, 10.0 * NANOS_PER_SECOND as f64)
            }
        }
    }
}

/// The smallest 1, 2 or 5 times a power of ten that is at least `least`.
#[must_use]
pub fn decimal_step(least: f64) -> f64 {
    if !(least.is_finite() && least > 0.0) {
        return 1.0;
    }
    let power = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|digit| digit * power)
        .find(|&step| step >= least * (1.0 - 1e-9))
        .unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATENCY: Axis = Axis::log("latency", Unit::Time(TimeUnit::Millis));
    const INPUT: Axis = Axis::log("input length", Unit::Number("tokens"));
    const SHARE: Axis = Axis::linear("share", Unit::Share);
    const NINES: Axis = Axis::percentile("share of requests");

    #[test]
    fn values_go_there_and_back_on_every_axis() {
        let linear = Axis::linear("latency", Unit::Time(TimeUnit::Millis));
        for axis in [LATENCY, INPUT, SHARE, NINES, linear] {
            for value in [1e-3, 0.25, 0.5, 0.9, 0.999] {
                let place = axis.place(value).expect("a share has a place on every axis");
                assert!((axis.value(place) - value).abs() < 1e-9, "{axis:?} at {value}");
            }
        }
        assert_eq!(LATENCY.place(0.0), None);
        assert_eq!(LATENCY.place(-1.0), None);
        assert_eq!(NINES.place(1.0), None, "the last request would stand infinitely far away");
        assert_eq!(NINES.place(0.99).map(f64::round), Some(2.0));
        assert_eq!(SHARE.place(f64::NAN), None);
    }

    #[test]
    fn axes_say_what_they_are() {
        assert_eq!(LATENCY.title(), "latency (log scale)");
        assert_eq!(INPUT.title(), "input length (tokens, log scale)");
        assert_eq!(SHARE.title(), "share (%)");
        assert_eq!(NINES.title(), "share of requests");
        assert_eq!(Axis::linear("requests", Unit::Number("requests")).title(), "requests");
        assert_eq!(INPUT.words(1_234.0), "1,234 tokens");
        assert_eq!(LATENCY.words(47e6), "47.0 ms");
        assert_eq!(NINES.words(0.999), "99.9 %");
        assert_eq!(SHARE.words(0.5), "50 %");
        assert_eq!(SHARE.mark(50.0, 10.0), "50");
        assert_eq!(LATENCY.mark(6.0, 1.0), "1 ms");
        assert_eq!(INPUT.mark(3.0, 1.0), "1,000");
    }

    #[test]
    fn bounds_hold_everything_that_has_a_place() {
        for (axis, least, most) in [
            (LATENCY, 2e6, 3e9),
            (LATENCY, 5e6, 5e6),
            (INPUT, 1.0, 90_000.0),
            (SHARE, 0.0, 0.97),
            (NINES, 0.0, 0.999),
            (Axis::linear("x", Unit::Number("")), -5.0, -2.0),
            (Axis::linear("x", Unit::Number("")), 0.0, 0.0),
        ] {
            let (low, high) = axis.bounds(least, most);
            assert!(low < high, "{axis:?}");
            for value in [least, most] {
                let place = axis.place(value).expect("a place");
                assert!((low..=high).contains(&place), "{axis:?}: {place} in {low}..{high}");
            }
        }
        let linear = Axis::linear("x", Unit::Number(""));
        assert_eq!(linear.close_bounds(50.0, 60.0), (49.2, 60.8));
        assert_eq!(linear.close_bounds(5.0, 60.0), linear.bounds(5.0, 60.0));
        let (low, high) = LATENCY.bounds(f64::INFINITY, f64::NEG_INFINITY);
        assert!(low < high, "no values, bounds all the same");
    }
}
