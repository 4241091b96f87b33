//! Decimal text to whole nanoseconds (or any power of ten), exactly.
//!
//! A trace writes `61.114` seconds; no binary fraction is that number, so times never pass through
//! `f32` or `f64` here: the digits are shifted and rounded as text, half to even, at the last place
//! an `i64` can keep. `NaN` and `Infinity` are not numbers, and what does not fit 64 bits is
//! refused. This file parses numbers only; it does not look for them in JSON.

use std::fmt;

/// A number as its digits: `(-1)^negative × 0.digits × 10^point`, without leading zeros.
#[derive(Clone, Copy, Debug)]
pub struct Decimal<'a> {
    negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: i64,
}

/// Why a text is no usable number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecimalError {
    /// It is not a decimal number.
    NotANumber,
    /// It is one, but does not fit 64 bits in the unit asked for.
    OutOfRange,
}

/// A positive fraction in lowest terms: a speed-up, as the user typed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// The upper number.
    pub numerator: u64,
    /// The lower number.
    pub denominator: u64,
}

impl<'a> Decimal<'a> {
    /// Reads `12`, `-0.5`, `+3.`, `.25` or `1e-3`.
    ///
    /// # Errors
    /// [`DecimalError::NotANumber`] for anything else, `NaN` and `Infinity` included.
    pub fn parse(text: &'a str) -> Result<Self, DecimalError> {
        let (negative, rest) = match text.as_bytes() {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        let (mantissa, exponent) = match rest.iter().position(|byte| matches!(byte, b'e' | b'E')) {
            Some(at) => (&rest[..at], parse_exponent(&rest[at + 1..])?),
            None => (rest, 0),
        };
        let (whole, fraction) = match mantissa.iter().position(|&byte| byte == b'.') {
            Some(at) => (&mantissa[..at], &mantissa[at + 1..]),
            None => (mantissa, &[][..]),
        };
        let digits = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
        if whole.is_empty() && fraction.is_empty() || !digits(whole) || !digits(fraction) {
            return Err(DecimalError::NotANumber);
        }
        Ok(Self { negative, whole, fraction, exponent })
    }

    /// The number times `10^power`, rounded half to even.
    ///
    /// # Errors
    /// [`DecimalError::OutOfRange`] when that is no `i64`.
    pub fn scaled(self, power: u32) -> Result<i64, DecimalError> {
        let mut digits =
            self.whole.iter().chain(self.fraction).map(|digit| i128::from(digit - b'0'));
        let whole = i64::try_from(self.whole.len()).ok().ok_or(DecimalError::OutOfRange)?;
        let places = whole.saturating_add(self.exponent).saturating_add(i64::from(power));
        let mut value: i128 = 0;
        // A value that is still zero may have any number of places before its first digit.
        for place in 0..places {
            let Some(digit) = digits.next() else {
                if value == 0 {
                    return Ok(0);
                }
                value = shifted(value, places - place)?;
                break;
            };
            value = value * 10 + digit;
            if value > i128::from(i64::MAX) + 1 {
                return Err(DecimalError::OutOfRange);
            }
        }
        if places >= 0 {
            value += round_up(value, digits);
        }
        let value = if self.negative { -value } else { value };
        i64::try_from(value).ok().ok_or(DecimalError::OutOfRange)
    }

    /// The number, if it is a whole one of 64 bits: `512.0` and `5.12e2` are, `512.0001` and
    /// `1e-30` are not.
    #[must_use]
    pub fn whole(self) -> Option<i64> {
        let places = i64::try_from(self.whole.len()).ok()?.saturating_add(self.exponent);
        let before = usize::try_from(places.max(0)).ok()?;
        let mut behind = self.whole.iter().chain(self.fraction).skip(before);
        if behind.all(|&digit| digit == b'0') { self.scaled(0).ok() } else { None }
    }

    /// The number as a fraction in lowest terms.
    ///
    /// # Errors
    /// [`DecimalError::OutOfRange`] when it is not positive or a side does not fit 64 bits.
    pub fn ratio(self) -> Result<Ratio, DecimalError> {
        let mut value: u128 = 0;
        let trailing = self.fraction.iter().rev().take_while(|&&digit| digit == b'0').count();
        let fraction = &self.fraction[..self.fraction.len() - trailing];
        for digit in self.whole.iter().chain(fraction) {
            value = value
                .checked_mul(10)
                .and_then(|value| value.checked_add(u128::from(digit - b'0')))
                .ok_or(DecimalError::OutOfRange)?;
        }
        if self.negative || value == 0 {
            return Err(DecimalError::OutOfRange);
        }
        let places = i64::try_from(fraction.len()).ok().ok_or(DecimalError::OutOfRange)?;
        let power = self.exponent.saturating_sub(places);
        let scale = u32::try_from(power.unsigned_abs())
            .ok()
            .and_then(|power| 10_u128.checked_pow(power))
            .ok_or(DecimalError::OutOfRange)?;
        let (numerator, denominator) = if power < 0 {
            (value, scale)
        } else {
            (value.checked_mul(scale).ok_or(DecimalError::OutOfRange)?, 1)
        };
        let common = greatest_common_divisor(numerator, denominator);
        let side = |side: u128| u64::try_from(side / common).ok().ok_or(DecimalError::OutOfRange);
        Ok(Ratio { numerator: side(numerator)?, denominator: side(denominator)? })
    }
}

impl Ratio {
    /// The ratio that changes nothing.
    pub const ONE: Self = Self { numerator: 1, denominator: 1 };

    /// The nearest number that a float can be, for who shows it.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// `value` divided by this ratio, rounded half to even.
    #[must_use]
    pub fn divide(self, value: i128) -> Option<i64> {
        fraction_of(value, self.denominator, self.numerator)
    }

    /// `value` multiplied by this ratio, rounded half to even.
    #[must_use]
    pub fn multiply(self, value: i128) -> Option<i64> {
        fraction_of(value, self.numerator, self.denominator)
    }
}

/// `value · numerator / denominator`, rounded half to even.
fn fraction_of(value: i128, numerator: u64, denominator: u64) -> Option<i64> {
    let product = value.checked_mul(i128::from(numerator))?;
    let divisor = i128::from(denominator);
    let (quotient, rest) = (product.div_euclid(divisor), product.rem_euclid(divisor));
    let up = match (rest * 2).cmp(&divisor) {
        std::cmp::Ordering::Less => 0,
        std::cmp::Ordering::Equal => quotient & 1,
        std::cmp::Ordering::Greater => 1,
    };
    i64::try_from(quotient + up).ok()
}

fn parse_exponent(text: &[u8]) -> Result<i64, DecimalError> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(DecimalError::NotANumber);
    }
    // Saturating is exact enough: such a number is zero or out of range whatever its digits are.
    let size = digits
        .iter()
        .fold(0_i64, |size, digit| size.saturating_mul(10).saturating_add(i64::from(digit - b'0')));
    Ok(if negative { -size } else { size })
}

/// `value × 10^places`, while it can still fit 64 bits.
fn shifted(value: i128, places: i64) -> Result<i128, DecimalError> {
    let shift = u32::try_from(places).ok().filter(|&places| places <= 18);
    shift.map(|places| value * 10_i128.pow(places)).ok_or(DecimalError::OutOfRange)
}

/// 1 when the digits cut off are more than half, or half and the value odd.
fn round_up(value: i128, mut cut: impl Iterator<Item = i128>) -> i128 {
    match cut.next() {
        None | Some(0..=4) => 0,
        Some(5) if cut.all(|digit| digit == 0) => value & 1,
        Some(_) => 1,
    }
}

fn greatest_common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl fmt::Display for DecimalError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::NotANumber => "not a decimal number",
            Self::OutOfRange => "out of range",
        })
    }
}

impl std::error::Error for DecimalError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanos(text: &str) -> Result<i64, DecimalError> {
        Decimal::parse(text)?.scaled(9)
    }

    #[test]
    fn seconds_become_nanoseconds_without_loss() {
        for (text, expected) in [
            ("61.114", 61_114_000_000),
            ("62.5", 62_500_000_000),
            ("0", 0),
            ("-0.0", 0),
            ("-1.000000001", -1_000_000_001),
            ("1e3", 1_000_000_000_000),
            ("12.5e-3", 12_500_000),
            ("0.30000000000000004", 300_000_000),
            ("1699999999.999999999", 1_699_999_999_999_999_999),
            ("9223372036.854775807", i64::MAX),
            ("-9223372036.854775808", i64::MIN),
            (".25", 250_000_000),
            ("+3.", 3_000_000_000),
            ("0e999999999999999999999", 0),
            ("1e-999999999999999999999", 0),
            ("0.000000000000000000000001e24", 1_000_000_000),
        ] {
            assert_eq!(nanos(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn the_last_place_rounds_half_to_even() {
        for (text, expected) in [
            ("0.0000000005", 0),
            ("0.0000000015", 2),
            ("0.0000000025", 2),
            ("0.00000000250000000001", 3),
            ("-0.0000000015", -2),
            ("0.00000000049999", 0),
            ("0.00000000005", 0),
            ("0.0000000009", 1),
        ] {
            assert_eq!(nanos(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_or_no_i64_is_refused() {
        for text in ["", "-", ".", "NaN", "Infinity", "1e", "0x10", "1_000", "1 ", "--1", "1.2.3"] {
            assert_eq!(nanos(text), Err(DecimalError::NotANumber), "{text}");
        }
        for text in ["9223372036.854775808", "1e999", "-1e20", "9223372036.8547758075"] {
            assert_eq!(nanos(text), Err(DecimalError::OutOfRange), "{text}");
        }
    }

    #[test]
    fn a_whole_number_is_one_to_the_last_digit() {
        for (text, expected) in [
            ("512", Some(512)),
            ("512.0", Some(512)),
            ("-5.12e2", Some(-512)),
            ("51200e-2", Some(512)),
            ("0.000e-99", Some(0)),
            ("0e999999999999999999999", Some(0)),
            ("1.0000000000000000000000000000000000000", Some(1)),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("1e999", None),
            ("512.0001", None),
            ("512.00000000000000000000000000000001", None),
            ("1e-30", None),
            ("1e-999999999999999999999", None),
            ("0.5", None),
        ] {
            assert_eq!(Decimal::parse(text).expect("a number").whole(), expected, "{text}");
        }
    }

    #[test]
    fn a_speed_up_is_a_fraction_in_lowest_terms() {
        for (text, numerator, denominator) in
            [("20", 20, 1), ("1.0", 1, 1), ("0.5", 1, 2), ("1.25", 5, 4), ("1e3", 1000, 1)]
        {
            let ratio = Decimal::parse(text).and_then(Decimal::ratio);
            assert_eq!(ratio, Ok(Ratio { numerator, denominator }), "{text}");
        }
        for text in ["0", "-1", "1e30", "1e-30", "0.000"] {
            let ratio = Decimal::parse(text).and_then(Decimal::ratio);
            assert_eq!(ratio, Err(DecimalError::OutOfRange), "{text}");
        }
    }

    #[test]
    fn dividing_by_a_ratio_rounds_half_to_even() {
        let twice = Ratio { numerator: 2, denominator: 1 };
        let values = [(0, 0), (1, 0), (2, 1), (3, 2), (-1, 0), (-3, -2), (5, 2)];
        for (value, expected) in values {
            assert_eq!(twice.divide(value), Some(expected), "{value}");
        }
        let slow = Ratio { numerator: 1, denominator: 1000 };
        assert_eq!(slow.divide(i128::from(i64::MAX)), None);
    }
}
