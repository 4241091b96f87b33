//! Lengths of time and numbers as people read them: a fitting unit, three significant digits, and
//! the unit written.
//!
//! The verdict, the page and the viewer say them in these words, so that 18.2 ms is never 18175 us
//! elsewhere. Columns of tables that name their unit once are not its business, nor is rounding
//! anything that is computed with.

use crate::counted::grouped;

/// Nanoseconds in a microsecond, a millisecond and a second.
const MICRO: f64 = 1e3;
const MILLI: f64 = 1e6;
const SECOND: f64 = 1e9;

/// What stands where there is no value.
pub const NO_DATA: &str = "no data";

/// A unit of time that a whole axis or column shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// 10⁻⁶ s.
    Micros,
    /// 10⁻³ s.
    Millis,
    /// Seconds.
    Seconds,
}

impl TimeUnit {
    /// The unit in which a value of about this many nanoseconds is a handy number.
    #[must_use]
    pub fn fitting(nanos: f64) -> Self {
        let size = nanos.abs();
        if size < MILLI {
            Self::Micros
        } else if size < SECOND {
            Self::Millis
        } else {
            Self::Seconds
        }
    }

    /// Its sign.
    #[must_use]
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Micros => "µs",
            Self::Millis => "ms",
            Self::Seconds => "s",
        }
    }

    /// Nanoseconds in one.
    #[must_use]
    pub const fn nanos(self) -> f64 {
        match self {
            Self::Micros => MICRO,
            Self::Millis => MILLI,
            Self::Seconds => SECOND,
        }
    }
}

/// A length of time: `41.2 µs`, `183 ms`, `2.41 s`, `3 min 12 s`.
#[must_use]
pub fn duration(nanos: f64) -> String {
    if !nanos.is_finite() {
        return NO_DATA.to_owned();
    }
    let seconds = nanos / SECOND;
    if seconds.abs() >= 600.0 {
        return long_duration(seconds);
    }
    let unit = TimeUnit::fitting(round_to_three(nanos));
    format!("{} {}", number(nanos / unit.nanos()), unit.sign())
}

/// [`duration`] of whole nanoseconds.
#[must_use]
pub fn duration_ns(nanos: i64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
    let nanos = nanos as f64;
    duration(nanos)
}

/// [`duration`] of whole microseconds, as limits are given.
#[must_use]
pub fn duration_us(micros: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
    let micros = micros as f64;
    duration(micros * MICRO)
}

/// A measured length of time, with all of its three digits so that a column of them lines up:
/// `47.0 ms` where [`duration`] says `47 ms`.
#[must_use]
pub fn measured(nanos: f64) -> String {
    let short = duration(nanos);
    let Some((number, unit)) = short.split_once(' ').filter(|(_, unit)| !unit.contains(' ')) else {
        return short;
    };
    // A leading zero is no significant digit.
    let digits: String = number.chars().filter(char::is_ascii_digit).collect();
    let significant = digits.trim_start_matches('0').len();
    if nanos == 0.0 || significant >= 3 || !nanos.is_finite() {
        return short;
    }
    let point = if number.contains('.') { "" } else { "." };
    let missing = 3 - significant;
    format!("{number}{point}{} {unit}", "0".repeat(missing))
}

fn long_duration(seconds: f64) -> String {
    let sign = if seconds < 0.0 { "−" } else { "" };
    let whole = whole(seconds.abs());
    let (hours, minutes, rest) = (whole / 3600, whole / 60 % 60, whole % 60);
    if hours > 0 {
        format!("{sign}{hours} h {minutes:02} min")
    } else {
        format!("{sign}{minutes} min {rest:02} s")
    }
}

/// A number with three significant digits and grouped thousands: `0.0412`, `18.3`, `12,345`.
#[must_use]
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return NO_DATA.to_owned();
    }
    let rounded = round_to_three(value);
    let size = rounded.abs();
    if size == 0.0 {
        // Minus zero is zero.
        return "0".to_owned();
    }
    if size >= 100.0 {
        let grouped = grouped(whole(value.abs()));
        return if value < 0.0 { format!("−{grouped}") } else { grouped };
    }
    let decimals = if size >= 10.0 {
        1
    } else if size >= 1.0 {
        2
    } else {
        // 0.0412 has its first digit at the second place after the point.
        2 + whole(-size.log10().floor()).min(9)
    };
    let decimals = usize::try_from(decimals).unwrap_or(2);
    let text = format!("{rounded:.decimals$}");
    // "20.0" and "3.50" say no more than "20" and "3.5".
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    };
    text.replace('-', "−")
}

fn round_to_three(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10_f64.powf(2.0 - value.abs().log10().floor());
    (value * scale).round() / scale
}

/// The nearest whole number of a value that is not negative; the ends of the range for others.
#[must_use]
pub fn whole(value: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float-to-integer cast saturates, which is what is wanted"
    )]
    let whole = value.round() as u64;
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_take_the_unit_that_fits() {
        for (nanos, text) in [
            (0.0, "0 µs"),
            (41.0, "0.041 µs"),
            (41_234.0, "41.2 µs"),
            (999_960.0, "1 ms"),
            (182_600_000.0, "183 ms"),
            (999_999_999.0, "1 s"),
            (2_414_000_000.0, "2.41 s"),
            (75_000_000_000.0, "75 s"),
            (692_000_000_000.0, "11 min 32 s"),
            (7_500_000_000_000.0, "2 h 05 min"),
            (-3_000_000.0, "−3 ms"),
            (f64::NAN, "no data"),
        ] {
            assert_eq!(duration(nanos), text, "{nanos}");
        }
    }

    #[test]
    fn measured_durations_keep_their_three_digits() {
        for (nanos, text) in [
            (47_000_000.0, "47.0 ms"),
            (45_812_345.0, "45.8 ms"),
            (1_000_000_000.0, "1.00 s"),
            (7_100_000.0, "7.10 ms"),
            (-2_000.0, "−2.00 µs"),
            (50.0, "0.0500 µs"),
            (183_000_000.0, "183 ms"),
            (692_000_000_000.0, "11 min 32 s"),
            (0.0, "0 µs"),
            (f64::NAN, "no data"),
        ] {
            assert_eq!(measured(nanos), text, "{nanos}");
        }
    }

    #[test]
    fn numbers_have_three_digits_and_groups() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (0.041_234, "0.0412"),
            (0.5, "0.5"),
            (1.0, "1"),
            (3.456, "3.46"),
            (18.34, "18.3"),
            (99.96, "100"),
            (1_234.6, "1,235"),
            (-1_234_567.0, "−1,234,567"),
            (-0.5, "−0.5"),
        ] {
            assert_eq!(number(value), text, "{value}");
        }
    }
}
