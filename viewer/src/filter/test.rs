//! One test of a request: a comparison, a flag, or whether a fact is there at all.

use onbeat_shared::run::Run;

use crate::fields::{FAILED, Field, Measure, Value};

/// How two numbers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// `==`
    Equal,
    /// `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    More,
    /// `>=`
    AtLeast,
}

impl Compare {
    /// Every comparison and how it is written, longer signs first.
    pub const ALL: [(&'static str, Self); 6] = [
        ("==", Self::Equal),
        ("!=", Self::Unequal),
        ("<=", Self::AtMost),
        (">=", Self::AtLeast),
        ("<", Self::Less),
        (">", Self::More),
    ];

    /// How it is written.
    #[must_use]
    pub fn sign(self) -> &'static str {
        Self::ALL.iter().find(|(_, compare)| *compare == self).map_or("==", |(sign, _)| sign)
    }

    fn holds(self, a: f64, b: f64) -> bool {
        match self {
            Self::Equal => a == b,
            Self::Unequal => a != b,
            Self::Less => a < b,
            Self::AtMost => a <= b,
            Self::More => a > b,
            Self::AtLeast => a >= b,
        }
    }
}

/// A number as it was typed, with its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amount {
    /// How many.
    pub number: f64,
    /// Of what; none is one.
    pub unit: Option<Unit>,
}

impl Amount {
    /// The number in the field's own unit.
    #[must_use]
    pub fn value(self) -> f64 {
        let Some(unit) = self.unit else { return self.number };
        if unit.sign == "%" {
            // A division of whole numbers is exact to the last bit where a product is not.
            return self.number / 100.0;
        }
        let product = self.number * unit.factor;
        // 4.1 times 1000 is a little less than 4100 in binary fractions.
        let whole = product.round();
        if (product - whole).abs() <= f64::EPSILON * whole.abs() { whole } else { product }
    }
}

/// A unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// As it is written.
    pub sign: &'static str,
    /// Its other spellings.
    pub others: &'static [&'static str],
    /// How much it is in the field's own unit.
    pub factor: f64,
}

const fn unit(sign: &'static str, others: &'static [&'static str], factor: f64) -> Unit {
    Unit { sign, others, factor }
}

const TIMES: &[Unit] = &[
    unit("ns", &[], 1.0),
    unit("us", &["µs", "μs"], 1e3),
    unit("ms", &[], 1e6),
    unit("s", &["sec"], 1e9),
    unit("min", &[], 60e9),
    unit("h", &[], 3_600e9),
];
const COUNTS: &[Unit] = &[unit("k", &["K"], 1e3), unit("M", &[], 1e6), unit("G", &[], 1e9)];
const SHARES: &[Unit] = &[unit("%", &[], 0.01)];
const BYTES: &[Unit] = &[
    unit("KiB", &["kib", "KIB"], 1_024.0),
    unit("MiB", &["mib", "MIB"], 1_048_576.0),
    unit("k", &["K", "kB", "KB"], 1e3),
    unit("M", &["MB"], 1e6),
];

/// The units that numbers of a measure may have.
#[must_use]
pub const fn units(measure: Measure) -> &'static [Unit] {
    match measure {
        Measure::Duration | Measure::Instant => TIMES,
        Measure::Count | Measure::Speed => COUNTS,
        Measure::Label => &[],
        Measure::Share => SHARES,
        Measure::Bytes => BYTES,
    }
}

/// The unit written like this, among a measure's.
#[must_use]
pub fn unit_named(measure: Measure, word: &str) -> Option<Unit> {
    let is = |unit: &&Unit| unit.sign == word || unit.others.contains(&word);
    units(measure).iter().find(is).copied()
}

/// How two texts are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// `==`: they are the same.
    Is,
    /// `!=`: they differ.
    Differs,
    /// `~`: the first contains the second, in upper or lower case (of ASCII).
    Contains,
}

impl Match {
    /// How it is written.
    #[must_use]
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Is => "==",
            Self::Differs => "!=",
            Self::Contains => "~",
        }
    }

    fn holds(self, text: &str, wanted: &str) -> bool {
        match self {
            Self::Is => text == wanted,
            Self::Differs => text != wanted,
            Self::Contains => contains(text, wanted),
        }
    }
}

fn contains(text: &str, wanted: &str) -> bool {
    let (text, wanted) = (text.as_bytes(), wanted.as_bytes());
    wanted.is_empty() || text.windows(wanted.len()).any(|part| part.eq_ignore_ascii_case(wanted))
}

/// One test of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// A yes-or-no fact is yes.
    Flag(Field),
    /// A fact is there.
    Has(Field),
    /// A fact is not there.
    Missing(Field),
    /// A number compared.
    Number(Field, Compare, Amount),
    /// A text, or one of a few words, compared.
    Text(Field, Match, Box<str>),
}

impl Test {
    /// Whether request `i` passes. A comparison with a value that it does not have is false.
    #[must_use]
    pub fn holds(&self, run: &Run, i: usize) -> bool {
        match self {
            Self::Flag(field) => match field.row().value {
                Value::Flag(value) => value(run, i) == Some(true),
                _ => false,
            },
            Self::Has(field) => field.is_known(run, i),
            Self::Missing(field) => !field.is_known(run, i),
            Self::Number(field, compare, amount) => {
                field.number(run, i).is_some_and(|value| compare.holds(value, amount.value()))
            }
            Self::Text(Field::Outcome, how, word)
                if &**word == FAILED && *how != Match::Contains =>
            {
                let failed = Self::Flag(Field::Failed).holds(run, i);
                Field::Outcome.is_known(run, i) && failed == (*how == Match::Is)
            }
            Self::Text(field, how, wanted) => {
                field.text(run, i).is_some_and(|text| how.holds(text, wanted))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_what_their_digits_say() {
        for (number, sign, value) in [
            (4.1, "k", 4_100.0),
            (2.3, "M", 2_300_000.0),
            (2.01, "ms", 2_010_000.0),
            (16.1, "s", 16_100_000_000.0),
            (0.1, "ns", 0.1),
            (7.0, "%", 0.07),
            (1.5, "KiB", 1_536.0),
        ] {
            let measures = [Measure::Duration, Measure::Count, Measure::Share, Measure::Bytes];
            let unit = measures.into_iter().find_map(|measure| unit_named(measure, sign));
            assert_eq!(Amount { number, unit }.value(), value, "{number} {sign}");
        }
    }
}
