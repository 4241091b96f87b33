//! Numbers as people read them: commas between thousands, so many places, or "unknown".

pub(super) use onbeat_shared::counted::{agreeing, counted, grouped};

pub(super) fn known(value: Option<f64>, places: usize) -> String {
    value.map_or_else(|| "unknown".to_owned(), |value| decimal(value, places))
}

/// A number with so many places and commas between thousands.
pub(super) fn decimal(value: f64, places: usize) -> String {
    // Halves go up, as people round; formatting alone would take them to the even digit.
    let factor = 10_f64.powi(i32::try_from(places).unwrap_or(0));
    let value = (value * factor).round() / factor;
    let plain = format!("{value:.places$}");
    match plain.split_once('.') {
        Some((whole, fraction)) => format!("{}.{fraction}", commas(whole)),
        None => commas(&plain),
    }
}

fn commas(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    let mut out = sign.to_owned();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_commas_between_thousands() {
        assert_eq!(decimal(-1234.56, 1), "-1,234.6");
        assert_eq!(decimal(999.0, 0), "999");
    }
}
