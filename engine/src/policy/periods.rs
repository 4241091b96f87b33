//! What one assessment period came to, and what budgets leave for users that start in it.
//!
//! The director's own account, made from what cores tell: it is what the ramp decides by. The
//! report's periods are made from the log, by the same rules where they overlap. A number without
//! data is `None` and never 0. Times are arguments; nothing here knows what a user is.

use std::collections::HashMap;

use onbeat_shared::log::outcome::Class;
use onbeat_shared::log::users::RampReason;
use onbeat_shared::metrics::goal::SHORT_DECODE_NS;
use onbeat_shared::metrics::quantile::percentile;
use onbeat_shared::units::{NANOS_PER_SECOND, RunNanos};

use super::options::TtftMetric;

/// The period that is under way.
#[derive(Clone, Debug)]
pub struct Period {
    metric: TtftMetric,
    ttfts_ns: Vec<f64>,
    rates: f64,
    rated: u32,
    /// When players in back-off try again.
    limited_until: Vec<RunNanos>,
}

/// A period that is over.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// The metric over all first tokens that came in it, whether or not their requests had ended.
    pub ttft_ns: Option<i64>,
    /// The mean, over requests that succeeded in it, of their output tokens per second from the
    /// first to the last. Decodes too short to have a speed are left out.
    pub output_rate: Option<f64>,
    /// Players in back-off at its end.
    pub limited: u32,
}

impl Period {
    /// A period in which nothing has happened.
    #[must_use]
    pub const fn new(metric: TtftMetric) -> Self {
        Self { metric, ttfts_ns: Vec::new(), rates: 0.0, rated: 0, limited_until: Vec::new() }
    }

    /// A first token came.
    pub fn first_token(&mut self, ttft_ns: i64) {
        self.ttfts_ns.push(ttft_ns as f64);
    }

    /// A request ended.
    pub fn ended(&mut self, class: Class, tokens: u32, decode_ns: i64) {
        if class == Class::Ok && decode_ns > SHORT_DECODE_NS {
            self.rates += f64::from(tokens) * NANOS_PER_SECOND as f64 / decode_ns as f64;
            self.rated += 1;
        }
    }

    /// A player is in back-off until then.
    pub fn limited(&mut self, until: RunNanos) {
        self.limited_until.push(until);
    }

    /// The period is over; the next one begins.
    pub fn close(&mut self, end: RunNanos) -> Figures {
        self.limited_until.retain(|&until| until > end);
        let figures = Figures {
            ttft_ns: self.ttft_ns(),
            output_rate: (self.rated > 0).then(|| self.rates / f64::from(self.rated)),
            limited: u32::try_from(self.limited_until.len()).unwrap_or(u32::MAX),
        };
        self.ttfts_ns.clear();
        (self.rates, self.rated) = (0.0, 0);
        figures
    }

    fn ttft_ns(&mut self) -> Option<i64> {
        let all = &mut self.ttfts_ns;
        all.sort_unstable_by(f64::total_cmp);
        let &longest = all.last()?;
        let value = match self.metric {
            TtftMetric::Max => longest,
            TtftMetric::Avg => all.iter().sum::<f64>() / all.len() as f64,
            TtftMetric::P95 => percentile(all, 0.95)?,
        };
        #[expect(clippy::cast_possible_truncation, reason = "a time between two whole ones")]
        Some(value.round() as i64)
    }
}

/// The first request of a user that is to start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct First {
    /// Tokens of its prompt.
    pub input_tokens: u64,
    /// Tokens of its blocks.
    pub block_tokens: u64,
}

/// What users that start in one period may bring. Limits of 0 are none.
#[derive(Clone, Debug)]
pub struct Budgets {
    new_tokens_max: u64,
    working_set_max: u64,
    new_tokens: u64,
    /// Users that have not sent their first request, whose blocks nobody else counts yet.
    expected: HashMap<u32, u64>,
    expected_tokens: u64,
}

impl Budgets {
    /// Nothing is spent.
    #[must_use]
    pub fn new(new_tokens_max: u64, working_set_max: u64) -> Self {
        Self {
            new_tokens_max,
            working_set_max,
            new_tokens: 0,
            expected: HashMap::new(),
            expected_tokens: 0,
        }
    }

    /// Whether a user with this first request may start, while the working set has so many tokens.
    ///
    /// # Errors
    /// [`RampReason::WorkingSet`] or [`RampReason::NewTokens`], whatever has no room.
    pub fn check(&self, first: First, working_set: u64) -> Result<(), RampReason> {
        let in_use = working_set.saturating_add(self.expected_tokens);
        let exceeds = |most: u64, tokens: u64| most > 0 && tokens > most;
        if exceeds(self.working_set_max, in_use.saturating_add(first.block_tokens)) {
            return Err(RampReason::WorkingSet);
        }
        if exceeds(self.new_tokens_max, self.new_tokens.saturating_add(first.input_tokens)) {
            return Err(RampReason::NewTokens);
        }
        Ok(())
    }

    /// Whether nothing is spent, so that waiting would not help: neither a token of the period's
    /// budget nor of the working set.
    #[must_use]
    pub const fn is_whole(&self, working_set: u64) -> bool {
        self.new_tokens == 0
            && (self.working_set_max == 0 || working_set == 0 && self.expected_tokens == 0)
    }

    /// A user starts, and is charged to this period.
    pub fn charge(&mut self, user: u32, first: First) {
        self.new_tokens = self.new_tokens.saturating_add(first.input_tokens);
        self.expect(user, first);
    }

    /// A user starts that no budget holds back: those of the beginning.
    pub fn expect(&mut self, user: u32, first: First) {
        self.expected.insert(user, first.block_tokens);
        self.expected_tokens += first.block_tokens;
    }

    /// The user has sent something, or left: its blocks are counted elsewhere from now on.
    pub fn begun(&mut self, user: u32) {
        self.expected_tokens -= self.expected.remove(&user).unwrap_or(0);
    }

    /// Tokens charged to this period so far.
    #[must_use]
    pub const fn new_tokens(&self) -> u64 {
        self.new_tokens
    }

    /// The next period begins.
    pub const fn renew(&mut self) {
        self.new_tokens = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn ttft(metric: TtftMetric, ms: &[i64]) -> Option<i64> {
        let mut period = Period::new(metric);
        ms.iter().for_each(|ms| period.first_token(ms * MS));
        period.close(RunNanos(0)).ttft_ns
    }

    #[test]
    fn the_three_metrics_are_numpys() {
        // numpy.percentile(ms, 95), numpy.mean(ms)
        let ms = [15, 20, 35, 40, 50, 10];
        assert_eq!(ttft(TtftMetric::Max, &ms), Some(50 * MS));
        assert_eq!(ttft(TtftMetric::P95, &ms), Some(47_500_000));
        assert_eq!(ttft(TtftMetric::Avg, &ms), Some(28_333_333));
        let hundred: Vec<i64> = (1..=100).collect();
        assert_eq!(ttft(TtftMetric::P95, &hundred), Some(95_050_000));
        for metric in [TtftMetric::Max, TtftMetric::Avg, TtftMetric::P95] {
            assert_eq!(ttft(metric, &[]), None);
            assert_eq!(ttft(metric, &[7]), Some(7 * MS));
        }
    }

    #[test]
    fn output_rate_is_the_mean_of_requests_that_succeeded() {
        let mut period = Period::new(TtftMetric::P95);
        assert_eq!(period.close(RunNanos(0)).output_rate, None);
        period.ended(Class::Ok, 100, 1_000 * MS);
        period.ended(Class::Ok, 100, 2_000 * MS);
        period.ended(Class::ResetMidAnswer, 1, 2_000 * MS);
        period.ended(Class::Ok, 1, 100 * MS);
        assert_eq!(period.close(RunNanos(0)).output_rate, Some(75.0));
        period.ended(Class::Ok, 1, 0);
        assert_eq!(period.close(RunNanos(0)).output_rate, None, "no decode with a speed");
    }

    #[test]
    fn players_are_limited_until_they_try_again() {
        let mut period = Period::new(TtftMetric::P95);
        period.limited(RunNanos(50));
        period.limited(RunNanos(200));
        assert_eq!(period.close(RunNanos(100)).limited, 1);
        assert_eq!(period.close(RunNanos(199)).limited, 1);
        assert_eq!(period.close(RunNanos(200)).limited, 0);
    }

    fn first(input_tokens: u64, block_tokens: u64) -> First {
        First { input_tokens, block_tokens }
    }

    #[test]
    fn new_tokens_are_charged_to_the_period_in_which_users_start() {
        let mut budgets = Budgets::new(1_000, 0);
        assert_eq!(budgets.check(first(1_000, 9), u64::MAX), Ok(()));
        assert_eq!(budgets.check(first(1_001, 9), 0), Err(RampReason::NewTokens));
        budgets.charge(1, first(600, 0));
        assert_eq!(budgets.check(first(400, 9), 0), Ok(()));
        assert_eq!(budgets.check(first(401, 9), 0), Err(RampReason::NewTokens));
        assert_eq!((budgets.new_tokens(), budgets.is_whole(7)), (600, false));
        budgets.renew();
        assert_eq!(budgets.check(first(1_000, 9), 0), Ok(()));
        assert!(budgets.is_whole(7));
        assert_eq!(Budgets::new(0, 0).check(first(u64::MAX, 9), 0), Ok(()), "0 is no limit");
    }

    #[test]
    fn the_working_set_has_room_for_the_blocks_of_all_that_are_to_start() {
        let mut budgets = Budgets::new(500, 1_000);
        assert_eq!(budgets.check(first(10, 300), 700), Ok(()));
        assert_eq!(budgets.check(first(9_999, 301), 700), Err(RampReason::WorkingSet));
        budgets.expect(1, first(9_999, 200));
        assert_eq!(budgets.new_tokens(), 0);
        assert_eq!(budgets.check(first(10, 200), 700), Err(RampReason::WorkingSet));
        assert!(!budgets.is_whole(0));
        budgets.begun(1);
        budgets.begun(1);
        assert_eq!(budgets.check(first(10, 200), 700), Ok(()));
        assert!(budgets.is_whole(0) && !budgets.is_whole(1));
    }
}
