//! Numbers as people read them: a fitting unit, three significant digits, and the unit written.
//!
//! Every figure on screen goes through here, so that 41 µs looks the same on a card, in a table and
//! on an axis. Absent values are the caller's business (`None` has a word of its own,
//! [`NO_DATA`]); nothing here turns one into a zero.

use onbeat_shared::units::{NANOS_PER_MICRO, NANOS_PER_MILLI, NANOS_PER_SECOND};

/// What stands where there is no value.
pub const NO_DATA: &str = "no data";
/// The same where a table's cell is too narrow for words.
pub const NO_DATA_CELL: &str = "–";

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
        if size < NANOS_PER_MILLI as f64 {
            Self::Micros
        } else if size < NANOS_PER_SECOND as f64 {
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
            Self::Micros => NANOS_PER_MICRO as f64,
            Self::Millis => NANOS_PER_MILLI as f64,
            Self::Seconds => NANOS_PER_SECOND as f64,
        }
    }
}

/// A length of time: `41.2 µs`, `183 ms`, `2.41 s`, `3 min 12 s`.
#[must_use]
pub fn duration(nanos: f64) -> String {
    if !nanos.is_finite() {
        return NO_DATA.to_owned();
    }
    let seconds = nanos / NANOS_PER_SECOND as f64;
    if seconds.abs() >= 600.0 {
        return long_duration(seconds);
    }
    let unit = TimeUnit::fitting(round_to_three(nanos));
    format!("{} {}", number(nanos / unit.nanos()), unit.sign())
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

/// [`measured`] of a value that may be absent.
#[must_use]
pub fn measured_or_word(nanos: Option<f64>) -> String {
    nanos.map_or_else(|| NO_DATA.to_owned(), measured)
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
        let grouped = count(whole(value.abs()));
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

/// [`number`] with a unit (none if that is empty), or the word for no data.
#[must_use]
pub fn number_with(value: Option<f64>, unit: &str) -> String {
    match value {
        None => NO_DATA.to_owned(),
        Some(value) if unit.is_empty() => number(value),
        Some(value) => format!("{} {unit}", number(value)),
    }
}

/// A count with grouped thousands: `1,234,567`.
#[must_use]
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count with its noun, which takes an s unless there is one of it: `1 request`, `2 requests`.
#[must_use]
pub fn counted(value: u64, noun: &str) -> String {
    let plural = if value == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(value))
}

/// A share of one as per cent: `97.3 %`. What is not quite everything never reads as 100 %, and
/// what is not quite nothing never as 0 %.
#[must_use]
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return NO_DATA.to_owned();
    }
    let percent = share * 100.0;
    if percent > 99.9 && percent < 100.0 {
        return "> 99.9 %".to_owned();
    }
    if percent > 0.0 && percent < 0.1 {
        return "< 0.1 %".to_owned();
    }
    let text = format!("{percent:.1}");
    format!("{} %", text.strip_suffix(".0").unwrap_or(&text).replace('-', "−"))
}

/// A share of one with every nine it has: `50 %`, `99.9 %`, `99.999 %`.
#[must_use]
pub fn percentile(share: f64) -> String {
    if !share.is_finite() {
        return NO_DATA.to_owned();
    }
    // One digit more than it has nines tells it from its neighbours.
    let nines = -(1.0 - share.clamp(0.0, 1.0 - 1e-9)).log10();
    let decimals = usize::try_from(whole(nines.ceil().clamp(1.0, 8.0))).unwrap_or(1);
    let text = format!("{:.decimals$}", share * 100.0);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{} %", text.replace('-', "−"))
}

/// A number as it stands beside a line of a grid whose lines are `step` apart: with as many digits
/// as tell it from its neighbours.
#[must_use]
pub fn at_step(value: f64, step: f64) -> String {
    let rounded = number(value);
    if !(value.is_finite() && step > 0.0 && step < 1.0) {
        return rounded;
    }
    let decimals = whole(-step.log10().floor()).min(12);
    let decimals = usize::try_from(decimals).unwrap_or(0);
    let exact = format!("{value:.decimals$}");
    let exact = exact.trim_end_matches('0').trim_end_matches('.');
    // Three digits are enough nearly always.
    let digits = exact.chars().filter(char::is_ascii_digit).count();
    if digits <= 3 || value.abs() < 1.0 { rounded } else { exact.replace('-', "−") }
}

/// A number of bytes: `512 bytes`, `12.3 KiB`, `1.4 GiB`.
#[must_use]
pub fn bytes(value: u64) -> String {
    const STEP: f64 = 1024.0;
    if value < 1024 {
        return counted(value, "byte");
    }
    let mut size = value as f64 / STEP;
    let mut unit = "KiB";
    for next in ["MiB", "GiB", "TiB"] {
        if size < STEP {
            break;
        }
        size /= STEP;
        unit = next;
    }
    format!("{} {unit}", number(size))
}

/// A message as a sentence: a capital at its start and a full stop.
#[must_use]
pub fn sentence(message: &str) -> String {
    let mut letters = message.chars();
    let first: String =
        letters.next().map(|letter| letter.to_uppercase().collect()).unwrap_or_default();
    let rest = letters.as_str();
    let stop = if rest.ends_with(['.', '!', '?', ':']) { "" } else { "." };
    format!("{first}{rest}{stop}")
}

/// An instant of a run, as fine as is needed to tell it from others within `span` (all ns):
/// `12.3 s`, `12:34`, `1:02:03`.
#[must_use]
pub fn instant(nanos: f64, span: f64) -> String {
    let seconds = nanos / NANOS_PER_SECOND as f64;
    let span = (span / NANOS_PER_SECOND as f64).abs();
    if seconds.abs() >= 600.0 && span >= 60.0 {
        return clock_time(seconds);
    }
    // A hundredth of the span must be visible.
    let decimals = (2.0 - span.max(1e-9).log10().floor()).clamp(0.0, 9.0);
    let decimals = usize::try_from(whole(decimals)).unwrap_or_default();
    let text = format!("{seconds:.decimals$}").replace('-', "−");
    // Minus zero is zero.
    let text = if text.trim_start_matches('−').chars().all(|sign| matches!(sign, '0' | '.')) {
        text.replace('−', "")
    } else {
        text
    };
    format!("{text} s")
}

/// Minutes and seconds, with hours when there are any.
#[must_use]
pub fn clock_time(seconds: f64) -> String {
    let sign = if seconds < 0.0 { "−" } else { "" };
    let whole = whole(seconds.abs());
    let (hours, minutes, rest) = (whole / 3600, whole / 60 % 60, whole % 60);
    if hours > 0 {
        format!("{sign}{hours}:{minutes:02}:{rest:02}")
    } else {
        format!("{sign}{minutes}:{rest:02}")
    }
}

fn round_to_three(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10_f64.powf(2.0 - value.abs().log10().floor());
    (value * scale).round() / scale
}

/// The nearest whole number of a value that is not negative; the ends of the range for others.
fn whole(value: f64) -> u64 {
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
        assert_eq!(measured_or_word(None), "no data");
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
        assert_eq!(number_with(None, "tokens/s"), "no data");
        assert_eq!(counted(1, "request"), "1 request");
        assert_eq!(counted(1_500, "request"), "1,500 requests");
    }

    #[test]
    fn shares_do_not_claim_more_than_they_are() {
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(percent(0.999_99), "> 99.9 %");
        assert_eq!(percent(0.000_01), "< 0.1 %");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(0.973), "97.3 %");
        assert_eq!(percent(0.007_2), "0.7 %");
    }

    #[test]
    fn percentiles_have_all_their_nines() {
        for (share, text) in [
            (0.0, "0 %"),
            (0.5, "50 %"),
            (0.125, "12.5 %"),
            (0.95, "95 %"),
            (0.99, "99 %"),
            (0.995, "99.5 %"),
            (0.999, "99.9 %"),
            (0.999_95, "99.995 %"),
            (1.0, "100 %"),
            (f64::NAN, "no data"),
        ] {
            assert_eq!(percentile(share), text, "{share}");
        }
    }

    #[test]
    fn grid_lines_have_digits_that_tell_them_apart() {
        for (value, step, text) in [
            (50.0, 10.0, "50"),
            (0.25, 0.05, "0.25"),
            (123.5, 0.5, "123.5"),
            (-12.34, 0.02, "−12.34"),
            (1_234.0, 1.0, "1,234"),
            (2.5, 0.5, "2.5"),
            (100.0, 0.5, "100"),
            (0.041, 0.001, "0.041"),
        ] {
            assert_eq!(at_step(value, step), text, "{value} in steps of {step}");
        }
    }

    #[test]
    fn sizes_and_instants() {
        assert_eq!(bytes(1), "1 byte");
        assert_eq!(bytes(12_600), "12.3 KiB");
        assert_eq!(bytes(1_500_000_000), "1.4 GiB");
        assert_eq!(instant(12_340_000_000.0, 60e9), "12.3 s");
        assert_eq!(instant(-1.0, 60e9), "0.0 s");
        assert_eq!(instant(12_345_678_900.0, 1e6), "12.34568 s");
        assert_eq!(instant(754e9, 1_000e9), "12:34");
        assert_eq!(instant(3_723e9, 5_000e9), "1:02:03");
    }
}
