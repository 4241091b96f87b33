//! Limits of goals as people write, read and move them.
//!
//! A limit is kept in its kind's unit (milliseconds for durations). What is written here can be
//! typed back and means the same. Refusals say what was found and what would be right.

use onbeat_shared::metrics::{goal::GoalKind, goal_words::GoalUnit};

use crate::quantity;

/// Nanoseconds in the unit of a duration's limit.
pub const NANOS_PER_LIMIT: f64 = 1e6;

/// Significant digits of a limit that was dragged or moved by keys.
const DIGITS: i32 = 3;

/// Whether limits of this kind are lengths of time.
#[must_use]
pub fn is_duration(kind: GoalKind) -> bool {
    kind.unit() == GoalUnit::Millis
}

/// A limit on the scale of plots and cells: nanoseconds for a duration, else as it is.
#[must_use]
pub fn plotted(kind: GoalKind, limit: f64) -> f64 {
    if is_duration(kind) { limit * NANOS_PER_LIMIT } else { limit }
}

/// The limit at a place of such a scale, with three significant digits.
#[must_use]
pub fn from_plotted(kind: GoalKind, place: f64) -> f64 {
    rounded(if is_duration(kind) { place / NANOS_PER_LIMIT } else { place }, DIGITS)
}

/// `at most` as a sign, or `at least`.
#[must_use]
pub fn sign(kind: GoalKind) -> &'static str {
    if kind.has_lower_limit() { "≥" } else { "≤" }
}

/// A limit with its unit, exactly enough to be typed back.
#[must_use]
pub fn words(kind: GoalKind, limit: f64) -> String {
    let (value, unit) = match kind.unit() {
        GoalUnit::Millis if limit >= 1e3 => (limit / 1e3, "s"),
        GoalUnit::Millis if limit < 1.0 => (limit * 1e3, "µs"),
        other => (limit, other.sign()),
    };
    // Six digits are more than anyone sets a goal to, and hide what binary fractions add.
    let value = rounded(value, 6);
    if unit.is_empty() { format!("{value}") } else { format!("{value} {unit}") }
}

/// What was typed as a limit.
///
/// # Errors
/// In words: it is no number, has an unknown unit, or is not above zero.
pub fn parse(kind: GoalKind, text: &str) -> Result<f64, String> {
    let text = text.trim().trim_start_matches(['≤', '≥', '<', '>', '=']).trim();
    let unit_at = text
        .find(|sign: char| !(sign.is_ascii_digit() || matches!(sign, '.' | ',' | '-' | '+' | '_')))
        .unwrap_or(text.len());
    // `1e3` is a number too.
    let (number, unit) = match text.parse::<f64>() {
        Ok(_) => (text, ""),
        Err(_) => (text[..unit_at].trim(), text[unit_at..].trim()),
    };
    let example = example(kind);
    if number.is_empty() {
        return Err(format!("“{text}” has no number; write for example {example}"));
    }
    let value = number_of(number)
        .ok_or_else(|| format!("“{number}” is no number; write for example {example}"))?;
    let factor = factor(kind.unit(), unit).ok_or_else(|| {
        format!("“{unit}” is not a unit of {}; write {}", kind.label(), units(kind.unit()))
    })?;
    let limit = value * factor;
    if !(limit.is_finite() && limit > 0.0) {
        return Err(format!("A limit must be above zero; write for example {example}"));
    }
    Ok(limit)
}

/// A number whose thousands may be grouped by commas.
fn number_of(text: &str) -> Option<f64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let grouped = whole.split(',').skip(1).all(|group| group.len() == 3);
    if fraction.contains(',') || !grouped {
        return None;
    }
    text.replace([',', '_'], "").parse().ok().filter(|value: &f64| value.is_finite())
}

/// How many of the kind's unit there are in the typed one.
fn factor(unit: GoalUnit, typed: &str) -> Option<f64> {
    let typed = typed.to_lowercase();
    let is = |names: &[&str]| names.contains(&typed.as_str());
    if typed.is_empty() {
        return Some(1.0);
    }
    match unit {
        GoalUnit::Millis if is(&["ms", "msec", "milliseconds"]) => Some(1.0),
        GoalUnit::Millis if is(&["s", "sec", "second", "seconds"]) => Some(1e3),
        GoalUnit::Millis if is(&["µs", "μs", "us", "microseconds"]) => Some(1e-3),
        GoalUnit::Millis if is(&["ns"]) => Some(1e-6),
        GoalUnit::Millis if is(&["min", "minute", "minutes"]) => Some(60e3),
        GoalUnit::TokensPerSecond if is(&["tokens/s", "tok/s", "t/s", "tps", "/s"]) => Some(1.0),
        GoalUnit::Tokens if is(&["tokens", "token", "tok"]) => Some(1.0),
        GoalUnit::Tokens if is(&["k", "k tokens"]) => Some(1e3),
        GoalUnit::Kib if is(&["kib"]) => Some(1.0),
        GoalUnit::Kib if is(&["mib"]) => Some(1024.0),
        GoalUnit::Percent if is(&["%"]) => Some(1.0),
        _ => None,
    }
}

const fn units(unit: GoalUnit) -> &'static str {
    match unit {
        GoalUnit::Millis => "µs, ms, s or min (ms if there is none)",
        GoalUnit::TokensPerSecond => "tokens/s, or nothing",
        GoalUnit::Tokens => "tokens or k, or nothing",
        GoalUnit::Kib => "KiB or MiB (KiB if there is none)",
        GoalUnit::Percent => "%, or nothing",
        GoalUnit::One => "no unit",
    }
}

fn example(kind: GoalKind) -> &'static str {
    match kind.unit() {
        GoalUnit::Millis => "500 ms",
        GoalUnit::TokensPerSecond => "30 tokens/s",
        GoalUnit::Tokens => "100 tokens",
        GoalUnit::Kib => "64 KiB",
        GoalUnit::Percent => "5 %",
        GoalUnit::One => "0.5",
    }
}

/// A key's step: one in the second digit of the limit, or with `far` one in the first.
#[must_use]
pub fn stepped(limit: f64, up: bool, far: bool) -> f64 {
    // Downward from a power of ten the smaller steps begin.
    let size = if up { limit } else { limit * (1.0 - 1e-9) };
    let digit = size.log10().floor() - if far { 0.0 } else { 1.0 };
    let step = 10_f64.powf(digit);
    let moved = if up { limit + step } else { limit - step };
    let moved = rounded(moved, DIGITS);
    if moved > 0.0 && moved.is_finite() { moved } else { limit }
}

/// A value with so many significant digits.
#[must_use]
pub fn rounded(value: f64, digits: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = usize::try_from(digits - 1).unwrap_or(0);
    // Through text, so that 0.3 is 0.3 and not 0.30000000000000004.
    format!("{value:.digits$e}").parse().unwrap_or(value)
}

/// A number of a request in its kind's unit, in words.
#[must_use]
pub fn measured(kind: GoalKind, value: f64) -> String {
    if is_duration(kind) {
        return quantity::measured(value * NANOS_PER_LIMIT);
    }
    if value == f64::INFINITY {
        return "too short to be slow".to_owned();
    }
    quantity::number_with(Some(value), kind.unit().sign())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(name: &str) -> GoalKind {
        GoalKind::from_name(name).expect("a name")
    }

    #[test]
    fn what_is_typed_is_what_is_meant() {
        for (name, typed, limit) in [
            ("ttft", "500", 500.0),
            ("ttft", " 500ms ", 500.0),
            ("ttft", "0.5 s", 500.0),
            ("ttft", "1,200 ms", 1_200.0),
            ("ttft", "≤ 2 min", 120_000.0),
            ("ttft", "250 µs", 0.25),
            ("ttft", "1e3", 1_000.0),
            ("decode_tps", ">= 30 tok/s", 30.0),
            ("cached_tokens", "8k", 8_000.0),
            ("http_req_data_sent", "2 MiB", 2_048.0),
            ("osl_mismatch_diff_pct", "5 %", 5.0),
            ("connection_reused", "0.5", 0.5),
        ] {
            let found = parse(kind(name), typed).expect(typed);
            assert!((found - limit).abs() < 1e-9 * limit, "{typed}: {found}");
        }
    }

    #[test]
    fn what_is_no_limit_is_refused_in_words() {
        for (name, typed, words) in [
            ("ttft", "", "has no number"),
            ("ttft", "soon", "has no number"),
            ("ttft", "5 h", "“h” is not a unit of TTFT; write µs, ms, s or min"),
            ("ttft", "0", "above zero"),
            ("ttft", "-3 ms", "above zero"),
            ("ttft", "0,5 s", "“0,5” is no number"),
            ("ttft", "1.2.3", "is no number"),
            ("decode_tps", "30 ms", "“ms” is not a unit of decode speed"),
            ("ttft", "inf", "“inf” is no number"),
        ] {
            let refused = parse(kind(name), typed).expect_err(typed);
            assert!(refused.contains(words), "{typed}: {refused}");
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        for kind in GoalKind::all() {
            for limit in [0.000_4, 0.037, 0.5, 1.0, 12.5, 500.0, 1_234.5, 65_000.0, 1e7] {
                let written = words(kind, limit);
                let read = parse(kind, &written).expect(&written);
                assert!((read - limit).abs() <= 1e-5 * limit, "{written} is {read}");
            }
        }
        assert_eq!(words(kind("ttft"), 500.0), "500 ms");
        assert_eq!(words(kind("ttft"), 1_250.0), "1.25 s");
        assert_eq!(words(kind("decode_tps"), 30.0), "30 tokens/s");
    }

    #[test]
    fn keys_step_in_the_second_digit_and_come_back() {
        for (from, up, far, to) in [
            (500.0, true, false, 510.0),
            (510.0, false, false, 500.0),
            (1_000.0, false, false, 990.0),
            (990.0, true, false, 1_000.0),
            (500.0, true, true, 600.0),
            (0.3, true, false, 0.31),
            (100.0, false, true, 90.0),
        ] {
            assert_eq!(stepped(from, up, far), to, "{from}");
        }
        let mut limit = 1.0;
        for _ in 0..2_000 {
            limit = stepped(limit, false, true);
            assert!(limit > 0.0);
        }
    }

    #[test]
    fn dragged_limits_are_round() {
        assert_eq!(from_plotted(kind("ttft"), 123_456_789.0), 123.0);
        assert_eq!(plotted(kind("ttft"), 123.0), 123_000_000.0);
        assert_eq!(from_plotted(kind("decode_tps"), 31.415), 31.4);
    }
}
