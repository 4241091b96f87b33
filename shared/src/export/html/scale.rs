//! Where a chart's axes have their marks, and what is written beside them.
//!
//! Marks are round numbers: values from zero on, times on the steps that clocks have. The script of
//! the page marks a zoomed axis by the same rule.

/// Steps between marks of time, in seconds.
const TIME_STEPS: [f64; 18] = [
    0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0,
    3_600.0, 7_200.0, 21_600.0,
];
/// Most marks on an axis of time.
const TIME_MARKS: f64 = 9.0;
/// Steps between marks of values, to be multiplied by a power of ten.
const VALUE_STEPS: [f64; 4] = [1.0, 2.0, 2.5, 5.0];
/// The same where values are counts.
const COUNT_STEPS: [f64; 3] = [1.0, 2.0, 5.0];
/// How many steps an axis of values has at least.
const VALUE_MARKS: f64 = 4.0;

/// Marks of an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Marks {
    /// Where they are, ascending; never empty for values.
    pub(super) at: Vec<f64>,
    /// From one to the next.
    pub(super) step: f64,
}

impl Marks {
    /// Marks from zero to the first one that is at least `most`.
    pub(super) fn values(most: f64) -> Self {
        Self::by_steps(most, &VALUE_STEPS, 0.0)
    }

    /// The same for counts: every mark is a whole number.
    pub(super) fn counts(most: f64) -> Self {
        Self::by_steps(most, &COUNT_STEPS, 1.0)
    }

    fn by_steps(most: f64, steps: &[f64], least: f64) -> Self {
        let most = if most.is_finite() && most > 0.0 { most } else { 1.0 };
        let raw = most / VALUE_MARKS;
        let power = 10_f64.powf(raw.log10().floor());
        let round = steps.iter().map(|step| step * power);
        let step = round.rev().find(|step| *step <= raw * 1.000_001);
        let step = step.unwrap_or(power).max(least);
        let mut at = vec![0.0];
        // A top that is a mark up to rounding gets no mark above it.
        while at.last().is_some_and(|last| *last < most * 0.999_999) {
            at.push(step * float(at.len()));
        }
        Self { at, step }
    }

    /// Marks inside a span of time.
    pub(super) fn times(start_s: f64, end_s: f64) -> Self {
        let least = (end_s - start_s) / TIME_MARKS;
        let step = TIME_STEPS.into_iter().find(|step| *step >= least);
        // Beyond the list: whole days.
        let step = step.unwrap_or_else(|| (least / 86_400.0).ceil() * 86_400.0);
        let mut at = Vec::new();
        let mut number = (start_s / step).ceil();
        while number * step <= end_s && float(at.len()) <= TIME_MARKS {
            at.push(number * step);
            number += 1.0;
        }
        Self { at, step }
    }

    /// The largest mark.
    pub(super) fn top(&self) -> f64 {
        self.at.last().copied().unwrap_or(1.0)
    }

    /// What is written beside a mark of values.
    pub(super) fn value(&self, value: f64) -> String {
        let (unit, sign) = match self.top() {
            top if top >= 1e9 => (1e9, "G"),
            top if top >= 1e6 => (1e6, "M"),
            top if top >= 1e4 => (1e3, "k"),
            _ => (1.0, ""),
        };
        if value == 0.0 {
            return "0".to_owned();
        }
        let step = self.step / unit;
        let decimals = (0..6).find(|&decimals| is_whole(step * 10_f64.powi(decimals)));
        let decimals = usize::try_from(decimals.unwrap_or(6)).unwrap_or(6);
        format!("{:.decimals$}{sign}", value / unit)
    }

    /// What is written beside a mark of time.
    pub(super) fn time(&self, time_s: f64) -> String {
        time(time_s, self.step)
    }
}

/// A time as clocks show it, with the digits that a step needs.
pub(super) fn time(time_s: f64, step: f64) -> String {
    let decimals = if step < 0.1 { 2 } else { usize::from(step < 1.0) };
    let sign = if time_s < 0.0 { "-" } else { "" };
    let size = time_s.abs();
    let (minutes, seconds) = ((size / 60.0).floor(), size % 60.0);
    if minutes < 60.0 {
        let width = if decimals == 0 { 2 } else { 3 + decimals };
        return format!("{sign}{minutes:.0}:{seconds:0width$.decimals$}");
    }
    let (hours, minutes) = ((minutes / 60.0).floor(), minutes % 60.0);
    format!("{sign}{hours:.0}:{minutes:02.0}:{:02.0}", seconds.floor())
}

fn is_whole(value: f64) -> bool {
    (value - value.round()).abs() < 1e-6
}

#[expect(clippy::cast_precision_loss, reason = "a handful of marks")]
const fn float(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_marked_at_round_numbers_from_zero() {
        let labels = |most: f64| {
            let marks = Marks::values(most);
            marks.at.iter().map(|&at| marks.value(at)).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(labels(2.0), "0 0.5 1.0 1.5 2.0");
        assert_eq!(labels(0.043), "0 0.01 0.02 0.03 0.04 0.05");
        assert_eq!(labels(100.0), "0 25 50 75 100");
        assert_eq!(labels(24_098.4), "0 5k 10k 15k 20k 25k");
        assert_eq!(labels(10_000.0), "0 2.5k 5.0k 7.5k 10.0k");
        assert_eq!(labels(7_000_000.0), "0 1M 2M 3M 4M 5M 6M 7M");
        assert_eq!(labels(3.0), "0 0.5 1.0 1.5 2.0 2.5 3.0");
        let counts = |most: f64| {
            let marks = Marks::counts(most);
            marks.at.iter().map(|&at| marks.value(at)).collect::<Vec<_>>().join(" ")
        };
        assert_eq!([1.0, 3.0, 10.0].map(counts), ["0 1", "0 1 2 3", "0 2 4 6 8 10"]);
        assert_eq!(counts(20_000.0), "0 5k 10k 15k 20k");
        for odd in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(labels(odd), "0 0.25 0.50 0.75 1.00", "{odd}");
        }
    }

    #[test]
    fn times_are_marked_where_clocks_are() {
        let labels = |start: f64, end: f64| {
            let marks = Marks::times(start, end);
            marks.at.iter().map(|&at| marks.time(at)).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(labels(0.0, 60.0), "0:00 0:10 0:20 0:30 0:40 0:50 1:00");
        assert_eq!(labels(0.0, 1_800.0), "0:00 5:00 10:00 15:00 20:00 25:00 30:00");
        assert_eq!(labels(3_500.0, 9_000.0), "1:00:00 1:30:00 2:00:00 2:30:00");
        assert_eq!(labels(1.2, 3.4), "0:01.5 0:02.0 0:02.5 0:03.0");
        assert_eq!(labels(5.0, 5.0), "0:05.00");
        assert!(Marks::times(0.0, 1e9).at.len() < 12);
    }
}
