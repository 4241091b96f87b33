//! Numbers as typed: what is none is refused in words that say what would be right.
//!
//! A number below zero reaches these words, too, and is not taken for another option: see
//! `crate::cli::command`. Times, factors and shares have readers of their own beside their options.

use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;

/// A whole number, from as small as its type takes on.
///
/// # Errors
/// What would be right.
pub(crate) fn whole<N: FromStr<Err = ParseIntError>>(text: &str) -> Result<N, String> {
    text.parse().map_err(|error: ParseIntError| {
        let least = i32::from("0".parse::<N>().is_err());
        match error.kind() {
            IntErrorKind::PosOverflow => "give a smaller number".to_owned(),
            _ => format!("give a whole number, {least} or more"),
        }
    })
}

/// A number with or without a fraction; which of them make sense is the caller's to say.
///
/// # Errors
/// What would be right.
pub(crate) fn real(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| "give a number, like 0.5".to_owned())
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;

    use super::*;

    #[test]
    fn what_is_no_number_is_refused_in_words() {
        assert_eq!(whole::<u32>("0"), Ok(0));
        assert_eq!(whole::<NonZero<u32>>("7").map(NonZero::get), Ok(7));
        for wrong in ["-1", "1.5", "x", "", "1e3", "0x10"] {
            let right = Err("give a whole number, 0 or more".to_owned());
            assert_eq!(whole::<u64>(wrong), right, "{wrong}");
        }
        for wrong in ["0", "-1", "-0", "none"] {
            let right = Err("give a whole number, 1 or more".to_owned());
            assert_eq!(whole::<NonZero<usize>>(wrong), right, "{wrong}");
        }
        assert_eq!(whole::<u16>("65536"), Err("give a smaller number".to_owned()));
        assert_eq!(real("-2.5"), Ok(-2.5));
        for wrong in ["NaN", "inf", "1,5", ""] {
            assert_eq!(real(wrong), Err("give a number, like 0.5".to_owned()), "{wrong}");
        }
    }
}
