//! Numbers as people read them: a fitting unit, three significant digits, and the unit written.
//!
//! Every figure on screen goes through here, so that 41 µs looks the same on a card, in a table and
//! on an axis; lengths of time are put as `shared` puts them everywhere. Absent values are the
//! caller's business (`None` has a word of its own, [`NO_DATA`]); nothing here turns one into a
//! zero.

use onbeat_shared::quantity::whole;
use onbeat_shared::units::NANOS_PER_SECOND;

pub use onbeat_shared::counted::grouped as count;
pub use onbeat_shared::quantity::{NO_DATA, TimeUnit, duration, measured, number};

/// The same where a table's cell is too narrow for words.
pub const NO_DATA_CELL: &str = "–";

/// [`measured`] of a value that may be absent.
#[must_use]
pub fn measured_or_word(nanos: Option<f64>) -> String {
    nanos.map_or_else(|| NO_DATA.to_owned(), measured)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_has_a_word_and_counts_have_nouns() {
        assert_eq!(measured_or_word(None), "no data");
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
