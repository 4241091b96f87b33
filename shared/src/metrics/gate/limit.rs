//! What a gate holds a number against, as typed: a sign, and a limit that the number can be beyond.
//!
//! A share lies between nothing and all, so a limit that no share can be beyond would make a gate
//! that never fails, whatever becomes of a run: it is refused, with what was probably meant.
//! Nothing is judged here.

use super::names::Place;

/// What is right, for every error.
pub(super) const RIGHT: &str = "right would be like 'ttft_ms.p99 > 800', 'error_rate > 1%' or, \
                                against a base, 'ttft_ms.p99 > +5%'";

/// How a value is held against a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Above,
    AtLeast,
    Below,
    AtMost,
}

impl Order {
    /// Every sign, the longer ones first.
    pub(super) const SIGNS: [(&str, Self); 4] =
        [(">=", Self::AtLeast), ("<=", Self::AtMost), (">", Self::Above), ("<", Self::Below)];

    pub(super) fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::Above => value > limit,
            Self::AtLeast => value >= limit,
            Self::Below => value < limit,
            Self::AtMost => value <= limit,
        }
    }
}

/// What a value is held against.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Limit {
    /// The value itself.
    Value(f64),
    /// Its difference from the base's.
    Change(f64),
    /// That as a share of the base's.
    Relative(f64),
}

impl Limit {
    /// Reads what follows the sign.
    ///
    /// # Errors
    /// In words, if it is no number, or one that decides without looking at the run.
    pub(super) fn parse(text: &str, order: Order, place: &Place) -> Result<Self, String> {
        let is_change = text.starts_with(['+', '-', '−']);
        let (digits, is_percent) = match text.strip_suffix('%') {
            Some(digits) => (digits.trim_end(), true),
            None => (text, false),
        };
        let number =
            digits.replace('−', "-").parse::<f64>().ok().filter(|number| number.is_finite());
        let Some(number) = number else {
            let unit = place.unit().trim();
            let hint = match unit.is_empty() {
                true => String::new(),
                false => format!(" (its unit is in its name: {unit})"),
            };
            return Err(format!("{text:?} is no limit{hint}; {RIGHT}"));
        };
        let limit = match (is_change, is_percent) {
            (true, true) => Self::Relative(number / 100.0),
            (true, false) => Self::Change(number),
            (false, true) if place.is_share() => Self::Value(number / 100.0),
            (false, true) => {
                return Err(format!(
                    "{} is no share, so {text} says nothing; a change in per cent has a sign, like \
                     +{text}",
                    place.short()
                ));
            }
            (false, false) => Self::Value(number),
        };
        limit.beyond(text, is_percent, order, place).map_or(Ok(limit), Err)
    }

    /// Why a limit decides of a share without looking at it; `None` if it does not, or is of
    /// something else.
    fn beyond(self, text: &str, is_percent: bool, order: Order, place: &Place) -> Option<String> {
        let name = place.short();
        // One per cent may become fifty, so a relative change knows no bound.
        let (least, limit, is_change) = match self {
            Self::Value(limit) => (0.0, limit, false),
            Self::Change(limit) => (-1.0, limit, true),
            Self::Relative(_) => return None,
        };
        let meant = match is_change {
            true => format!("{} ({text} percentage points)", hundredth(text)),
            false => format!("{text}%"),
        };
        if place.is_excess() {
            // How far off something is has no bound, but a bare five is as a rule five per cent.
            let unit = if is_change { "percentage points" } else { "%" };
            return (limit.abs() > 1.0 && !is_percent).then(|| {
                let is = limit * 100.0;
                let all = if is_change { String::new() } else { format!(" Else write {is}%") };
                format!(
                    "{name} is a share of what was recorded, so {text} is {is} {unit}; did you \
                     mean {meant}?{all}"
                )
            });
        }
        let ends = [least, 1.0].map(|value| order.holds(value, limit));
        if !place.is_share() || ends[0] != ends[1] {
            return None;
        }
        let what = if ends[0] { "always" } else { "never" };
        Some(match (is_change, is_percent || limit == 0.0) {
            (true, _) => format!(
                "{name} is a share and changes by −1 to 1, so that {what} holds; did you mean \
                 {meant}, or {text}% of the base's value?"
            ),
            (false, false) => {
                format!("{name} is a share of 1, so that {what} holds; did you mean {meant}?")
            }
            (false, true) => format!(
                "{name} is a share, of 0 % to 100 %, so that {what} holds; right would be a limit \
                 between, like 5%"
            ),
        })
    }
}

/// What was typed as per cent, as a share, with its sign.
fn hundredth(text: &str) -> String {
    let share = text.replace('−', "-").parse::<f64>().unwrap_or_default() / 100.0;
    format!("{share:+}")
}

#[cfg(test)]
mod tests {
    use super::super::Gate;

    #[test]
    fn a_limit_that_no_share_can_be_beyond_is_refused_with_what_was_meant() {
        for (text, words) in [
            ("error_rate > 5", "a share of 1, so that never holds; did you mean 5%?"),
            ("error_rate > 1", "never holds; did you mean 1%?"),
            ("error_rate >= 1.5", "never holds; did you mean 1.5%?"),
            ("error_rate > 500%", "of 0 % to 100 %, so that never holds"),
            ("error_rate > 100%", "never holds"),
            ("error_rate >= 0", "always holds"),
            ("goodput_share < 95", "always holds; did you mean 95%?"),
            ("goodput_share < 0", "never holds"),
            ("reported_hit_rate <= 80", "always holds; did you mean 80%?"),
            ("met.ttft_ms.share < 99", "did you mean 99%?"),
            ("error_rate > +60", "mean +0.6 (+60 percentage points), or +60% of the base's value?"),
            ("error_rate > +1", "never holds; did you mean +0.01"),
            ("reported_hit_rate < -5", "never holds; did you mean -0.05"),
            ("reported_hit_rate < −5", "did you mean -0.05"),
            ("arrival_error > 5", "so 5 is 500 %; did you mean 5%? Else write 500%"),
            ("arrival_error > +5", "5 is 500 percentage points; did you mean +0.05"),
        ] {
            let error = Gate::parse(text).expect_err(text).to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
        for text in [
            "error_rate > 0",
            "error_rate > 99.9%",
            "error_rate >= 100%",
            "error_rate > 0.05",
            "error_rate > +0.6",
            "error_rate > +500%",
            "reported_hit_rate < -0.05",
            "goodput_share < 100%",
            "arrival_error > 500%",
            "ttft_ms.p99 > 800",
            "http_error > 5",
            "requests_per_s < 50",
        ] {
            Gate::parse(text).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    #[test]
    fn counts_of_errors_are_no_shares() {
        for name in ["http_error", "connect_error", "protocol_error", "stream_error"] {
            let error = Gate::parse(&format!("{name} > 5%")).expect_err(name).to_string();
            assert!(error.contains(&format!("{name} is no share, so 5% says nothing")), "{error}");
        }
    }
}
