//! Decides how many users to add at the end of each assessment period.
//!
//! Two controllers. [`Controller::Cooldown`] is the documented one: four gates (TTFT, requests in
//! flight, cooldown, floor of the headroom), a cooldown that grows with the overload before it, and
//! careful first steps. [`Controller::Rolling`] looks at the mean of the last periods instead and
//! has no memory of overload. Pure: measurements arrive as arguments, the answer is a number, a
//! reason and what it was made from. Creating users, and what budgets say to each, is not done here
//! (see [`super::direction`]).
//!
//! Where the page has a limit, its words are taken literally: in flight must be *below* 75 %, TTFT
//! *below* its limit, headroom *above* 20 %. All comparisons are of whole nanoseconds, so that a
//! limit is met or not, whatever binary fractions make of it.

use std::collections::VecDeque;

use onbeat_shared::log::users::RampReason;
use serde::{Deserialize, Serialize};

/// Which controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controller {
    /// The documented one.
    Cooldown,
    /// The mean over so many periods, without cooldown.
    Rolling {
        /// Periods, at least 1.
        window: u32,
    },
}

/// What the ramp keeps to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Which controller.
    pub controller: Controller,
    /// TTFT must be below this.
    pub max_ttft_ns: i64,
    /// Mean output tokens per second and request must not be below this.
    pub min_output_rate: Option<f64>,
    /// The limit of requests in flight, of which the documented controller wants a quarter free; 0:
    /// none.
    pub max_concurrent: u32,
    /// Most users and sub-agents at once.
    pub max_users: u32,
    /// Most tokens of the working set, of which the rolling controller wants a tenth free; 0: none.
    pub max_working_set_tokens: u64,
}

/// What is known at the end of a period.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Inputs {
    /// TTFT of the period, by the metric that was asked for; `None`: no first token came.
    pub ttft_ns: Option<i64>,
    /// Mean output tokens per second and request of the period; `None`: no data, or not asked for.
    pub output_rate: Option<f64>,
    /// Users and sub-agents present.
    pub users: u32,
    /// Requests in flight.
    pub in_flight: u32,
    /// Users and sub-agents in back-off.
    pub limited: u32,
    /// Tokens of the working set.
    pub working_set_tokens: u64,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// How many users to add: never more than there is room for.
    pub add: u32,
    /// Why.
    pub reason: RampReason,
    /// The TTFT that was compared: of the period, or rolling.
    pub ttft_ns: Option<i64>,
    /// (limit − TTFT) / limit; below 0 when TTFT exceeds it.
    pub headroom: Option<f64>,
    /// Whether the period itself exceeded a limit; `None`: no data.
    pub exceeded: Option<bool>,
    /// The counts after this period.
    pub counts: Counts,
}

/// What the documented controller remembers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Good periods in a row.
    pub good: u32,
    /// Exceeded periods in a row.
    pub exceeded: u32,
    /// Good periods in a row that the cooldown asks for; 0: there is none.
    pub required: u32,
    /// Ramps since the last cooldown.
    pub ramps: u32,
}

/// A ramp with its memory.
#[derive(Clone, Debug)]
pub struct Ramp {
    settings: Settings,
    memory: Memory,
}

/// All that a ramp remembers: with it, a later run goes on where one was interrupted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Counts of periods.
    pub counts: Counts,
    /// TTFT of the last periods, the latest last; `None`: no data.
    pub history: VecDeque<Option<i64>>,
}

/// A floor of the headroom: 20 %.
const HEADROOM_FLOOR_PERCENT: i128 = 20;
/// Each so many per cent of headroom are one more user.
const HEADROOM_STEP_PERCENT: i128 = 15;
/// Ramps after a cooldown that add one user whatever the headroom.
const THROTTLED_RAMPS: u32 = 2;

impl Ramp {
    /// A ramp that goes on from what `memory` holds.
    #[must_use]
    pub const fn new(settings: Settings, memory: Memory) -> Self {
        Self { settings, memory }
    }

    /// What it remembers.
    #[must_use]
    pub const fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Decides at the end of a period.
    pub fn assess(&mut self, inputs: &Inputs) -> Decision {
        let exceeded = self.exceeded(inputs);
        self.count(exceeded);
        let (ttft_ns, verdict) = match self.settings.controller {
            Controller::Cooldown => (inputs.ttft_ns, self.documented(inputs)),
            Controller::Rolling { window } => {
                let mean = self.rolling(inputs.ttft_ns, window);
                (mean, self.by_mean(mean, inputs))
            }
        };
        let (add, reason) = match verdict {
            Ok((wanted, reason)) => {
                let room = self.settings.max_users.saturating_sub(inputs.users);
                if room == 0 { (0, RampReason::MaxUsers) } else { (wanted.min(room), reason) }
            }
            Err(closed) => (0, closed),
        };
        Decision {
            add,
            reason,
            ttft_ns,
            headroom: ttft_ns.map(|ttft_ns| self.headroom(ttft_ns)),
            exceeded,
            counts: self.memory.counts,
        }
    }

    /// Whether the period exceeded a limit. Without data there is no overload.
    fn exceeded(&self, inputs: &Inputs) -> Option<bool> {
        let late = inputs.ttft_ns.map(|ttft_ns| ttft_ns >= self.settings.max_ttft_ns);
        match (late, self.is_slow(inputs)) {
            (Some(true), _) | (_, true) => Some(true),
            (late, false) => late,
        }
    }

    fn is_slow(&self, inputs: &Inputs) -> bool {
        let limits = inputs.output_rate.zip(self.settings.min_output_rate);
        limits.is_some_and(|(rate, least)| rate < least)
    }

    /// The table of cooldowns.
    fn count(&mut self, exceeded: Option<bool>) {
        let counts = &mut self.memory.counts;
        match exceeded {
            None => {}
            Some(false) => {
                counts.good = counts.good.saturating_add(1);
                counts.exceeded = 0;
            }
            Some(true) => {
                counts.exceeded = counts.exceeded.saturating_add(1);
                counts.good = 0;
                counts.ramps = 0;
                counts.required = match counts.exceeded {
                    0..=2 => 2,
                    3..=9 => 3,
                    10.. => 5,
                };
            }
        }
    }

    /// The documented gates, in their order; what passes them all, or the first that is closed.
    fn documented(&mut self, inputs: &Inputs) -> Result<(u32, RampReason), RampReason> {
        let settings = &self.settings;
        let ttft_ns = self.below_limit(inputs.ttft_ns, inputs)?;
        let most = u64::from(settings.max_concurrent);
        if most > 0 && u64::from(inputs.in_flight) * 4 >= most * 3 {
            return Err(RampReason::InFlight);
        }
        let enough_headroom = self.percent_over(ttft_ns, HEADROOM_FLOOR_PERCENT) > 0;
        let wanted = self.by_headroom(ttft_ns);
        let counts = &mut self.memory.counts;
        if counts.good < counts.required {
            return Err(RampReason::Cooldown);
        }
        counts.required = 0;
        if !enough_headroom {
            return Err(RampReason::Headroom);
        }
        counts.ramps = counts.ramps.saturating_add(1);
        if counts.ramps <= THROTTLED_RAMPS {
            return Ok((1, RampReason::Throttled));
        }
        Ok((wanted, RampReason::Ramped))
    }

    /// Remembers the period's TTFT; the mean of those that the window holds.
    fn rolling(&mut self, ttft_ns: Option<i64>, window: u32) -> Option<i64> {
        let history = &mut self.memory.history;
        history.push_back(ttft_ns);
        while history.len() > window.max(1) as usize {
            history.pop_front();
        }
        let known = || history.iter().flatten();
        let count = i128::try_from(known().count()).ok().filter(|&count| count > 0)?;
        let sum: i128 = known().map(|&ttft_ns| i128::from(ttft_ns)).sum();
        // A mean of values is not above the largest of them.
        Some(i64::try_from(sum / count).unwrap_or(i64::MAX))
    }

    /// The gates of the rolling controller.
    fn by_mean(&self, mean: Option<i64>, inputs: &Inputs) -> Result<(u32, RampReason), RampReason> {
        if inputs.limited > 0 {
            return Err(RampReason::Limited);
        }
        let ttft_ns = self.below_limit(mean, inputs)?;
        let most = u128::from(self.settings.max_working_set_tokens);
        if most > 0 && u128::from(inputs.working_set_tokens) * 10 > most * 9 {
            return Err(RampReason::WorkingSet);
        }
        if self.percent_over(ttft_ns, HEADROOM_FLOOR_PERCENT) < 0 {
            return Err(RampReason::Headroom);
        }
        Ok((self.by_headroom(ttft_ns), RampReason::Ramped))
    }

    /// The gate that both controllers begin with.
    fn below_limit(&self, ttft_ns: Option<i64>, inputs: &Inputs) -> Result<i64, RampReason> {
        match ttft_ns {
            _ if self.is_slow(inputs) => Err(RampReason::OutputRate),
            None => Err(RampReason::NoData),
            Some(ttft_ns) if ttft_ns >= self.settings.max_ttft_ns => Err(RampReason::Ttft),
            Some(ttft_ns) => Ok(ttft_ns),
        }
    }

    /// 1 + headroom / 15, cut to a whole number.
    fn by_headroom(&self, ttft_ns: i64) -> u32 {
        let limit = i128::from(self.settings.max_ttft_ns).max(1);
        let free = i128::from(self.settings.max_ttft_ns) - i128::from(ttft_ns);
        let steps = free * 100 / (limit * HEADROOM_STEP_PERCENT);
        u32::try_from(steps.max(0) + 1).unwrap_or(u32::MAX)
    }

    /// Above 0 when the headroom is above so many per cent, 0 when it is just that.
    fn percent_over(&self, ttft_ns: i64, percent: i128) -> i128 {
        let limit = i128::from(self.settings.max_ttft_ns);
        (limit - i128::from(ttft_ns)) * 100 - limit * percent
    }

    fn headroom(&self, ttft_ns: i64) -> f64 {
        let limit = self.settings.max_ttft_ns.max(1) as f64;
        (self.settings.max_ttft_ns as f64 - ttft_ns as f64) / limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn settings() -> Settings {
        Settings {
            controller: Controller::Cooldown,
            max_ttft_ns: 2 * SECOND,
            min_output_rate: None,
            max_concurrent: 0,
            max_users: 1_000,
            max_working_set_tokens: 0,
        }
    }

    fn ramp(settings: Settings) -> Ramp {
        Ramp::new(settings, Memory::default())
    }

    /// A period with this much of the limit left, in per cent.
    fn headroom(percent: i64) -> Inputs {
        Inputs { ttft_ns: Some(2 * SECOND * (100 - percent) / 100), users: 1, ..Inputs::default() }
    }

    /// A ramp past its first two, careful steps.
    fn past_throttle(settings: Settings) -> Ramp {
        let counts = Counts { good: 9, ramps: 2, ..Counts::default() };
        Ramp::new(settings, Memory { counts, ..Memory::default() })
    }

    fn answer(ramp: &mut Ramp, inputs: &Inputs) -> (u32, RampReason) {
        let decision = ramp.assess(inputs);
        (decision.add, decision.reason)
    }

    #[test]
    fn gate_ttft_threshold() {
        let at = |ttft_ns| Inputs { ttft_ns: Some(ttft_ns), ..Inputs::default() };
        let mut ramp = past_throttle(settings());
        assert_eq!(answer(&mut ramp, &at(2 * SECOND)), (0, RampReason::Ttft));
        assert_eq!(answer(&mut ramp, &at(2 * SECOND - 1)), (0, RampReason::Cooldown));
        let decision = past_throttle(settings()).assess(&at(2 * SECOND - 1));
        assert_eq!((decision.add, decision.reason), (0, RampReason::Headroom), "it is good");
        assert_eq!(decision.exceeded, Some(false));
        assert_eq!(past_throttle(settings()).assess(&at(3 * SECOND)).headroom, Some(-0.5));
    }

    #[test]
    fn gate_in_flight_capacity() {
        let limited = Settings { max_concurrent: 50, ..settings() };
        for (in_flight, wanted) in [
            (0, (4, RampReason::Ramped)),
            (37, (4, RampReason::Ramped)),
            // 37.5 are 75 %.
            (38, (0, RampReason::InFlight)),
            (50, (0, RampReason::InFlight)),
        ] {
            let inputs = Inputs { in_flight, ..headroom(50) };
            assert_eq!(answer(&mut past_throttle(limited), &inputs), wanted, "{in_flight}");
        }
        let just = Settings { max_concurrent: 40, ..settings() };
        let inputs = Inputs { in_flight: 30, ..headroom(50) };
        assert_eq!(answer(&mut past_throttle(just), &inputs).1, RampReason::InFlight, "not below");
        let inputs = Inputs { in_flight: 9_999, ..headroom(50) };
        assert_eq!(answer(&mut past_throttle(settings()), &inputs).0, 4, "without a limit");
    }

    #[test]
    fn gate_headroom_floor() {
        for (percent, wanted) in [
            (0, RampReason::Ttft),
            (1, RampReason::Headroom),
            (19, RampReason::Headroom),
            (20, RampReason::Headroom),
            (21, RampReason::Ramped),
        ] {
            let decision = past_throttle(settings()).assess(&headroom(percent));
            assert_eq!(decision.reason, wanted, "{percent} %");
            assert_eq!(decision.add > 0, wanted == RampReason::Ramped, "{percent} %");
        }
    }

    #[test]
    fn table_of_cooldown_severity() {
        for (exceeded, required) in
            [(1, 2), (2, 2), (3, 3), (4, 3), (9, 3), (10, 5), (11, 5), (100, 5)]
        {
            let mut ramp = past_throttle(settings());
            for _ in 0..exceeded {
                assert_eq!(answer(&mut ramp, &headroom(-10)), (0, RampReason::Ttft));
            }
            assert_eq!(ramp.memory().counts.required, required, "{exceeded} exceeded");
            for good in 1..required {
                let decision = ramp.assess(&headroom(90));
                assert_eq!((decision.add, decision.reason), (0, RampReason::Cooldown));
                assert_eq!(decision.counts.good, good);
            }
            let decision = ramp.assess(&headroom(90));
            assert_eq!(
                (decision.add, decision.reason, decision.counts.required),
                (1, RampReason::Throttled, 0),
                "the {required}th good one, after {exceeded} exceeded"
            );
        }
    }

    #[test]
    fn a_bad_period_in_a_cooldown_begins_it_again() {
        let mut ramp = past_throttle(settings());
        for _ in 0..10 {
            ramp.assess(&headroom(-10));
        }
        for _ in 0..4 {
            assert_eq!(answer(&mut ramp, &headroom(90)).1, RampReason::Cooldown);
        }
        ramp.assess(&headroom(-10));
        assert_eq!(ramp.memory().counts, Counts { good: 0, exceeded: 1, required: 2, ramps: 0 });
        assert_eq!(answer(&mut ramp, &headroom(90)).1, RampReason::Cooldown);
        assert_eq!(answer(&mut ramp, &headroom(90)), (1, RampReason::Throttled));
    }

    #[test]
    fn ramp_rate_first_two_are_one_and_then_by_headroom() {
        let mut ramp = ramp(settings());
        assert_eq!(answer(&mut ramp, &headroom(75)), (1, RampReason::Throttled));
        assert_eq!(answer(&mut ramp, &headroom(75)), (1, RampReason::Throttled));
        assert_eq!(answer(&mut ramp, &headroom(75)), (6, RampReason::Ramped), "the page's example");
        for (percent, add) in [(21, 2), (29, 2), (30, 3), (44, 3), (45, 4), (90, 7), (100, 7)] {
            assert_eq!(answer(&mut ramp, &headroom(percent)), (add, RampReason::Ramped));
        }
        assert_eq!(answer(&mut ramp, &headroom(-1)), (0, RampReason::Ttft));
        assert_eq!(answer(&mut ramp, &headroom(75)), (0, RampReason::Cooldown));
        assert_eq!(answer(&mut ramp, &headroom(75)), (1, RampReason::Throttled));
        assert_eq!(answer(&mut ramp, &headroom(75)), (1, RampReason::Throttled));
        assert_eq!(answer(&mut ramp, &headroom(75)), (6, RampReason::Ramped));
    }

    #[test]
    fn a_period_without_data_changes_nothing() {
        let mut ramp = past_throttle(settings());
        ramp.assess(&headroom(-10));
        let before = ramp.memory().clone();
        let decision = ramp.assess(&Inputs::default());
        assert_eq!((decision.add, decision.reason), (0, RampReason::NoData));
        assert_eq!((decision.exceeded, decision.headroom, decision.ttft_ns), (None, None, None));
        assert_eq!(*ramp.memory(), before);
        assert_eq!(answer(&mut ramp, &headroom(90)).1, RampReason::Cooldown);
        ramp.assess(&Inputs::default());
        assert_eq!(answer(&mut ramp, &headroom(90)).0, 1, "the second good one in a row");
    }

    #[test]
    fn slow_output_counts_as_exceeded() {
        let fast = Settings { min_output_rate: Some(30.0), ..settings() };
        let at = |output_rate, inputs| Inputs { output_rate, ..inputs };
        let mut ramp = past_throttle(fast);
        assert_eq!(answer(&mut ramp, &at(Some(30.0), headroom(50))).0, 4, "not below");
        assert_eq!(answer(&mut ramp, &at(None, headroom(50))).0, 4, "no data is no overload");
        let decision = ramp.assess(&at(Some(29.9), headroom(50)));
        assert_eq!((decision.add, decision.reason), (0, RampReason::OutputRate));
        assert_eq!((decision.exceeded, decision.counts.required), (Some(true), 2));
        assert_eq!(answer(&mut ramp, &at(Some(29.9), Inputs::default())).1, RampReason::OutputRate);
        assert_eq!(ramp.memory().counts.exceeded, 2);
    }

    #[test]
    fn never_above_max_users() {
        let few = Settings { max_users: 10, ..settings() };
        for (users, wanted) in [
            (0, (6, RampReason::Ramped)),
            (4, (6, RampReason::Ramped)),
            (8, (2, RampReason::Ramped)),
            (10, (0, RampReason::MaxUsers)),
            (11, (0, RampReason::MaxUsers)),
        ] {
            let inputs = Inputs { users, ..headroom(75) };
            assert_eq!(answer(&mut past_throttle(few), &inputs), wanted, "{users} users");
        }
    }

    fn rolling(window: u32) -> Ramp {
        ramp(Settings { controller: Controller::Rolling { window }, ..settings() })
    }

    #[test]
    fn rolling_goes_by_the_mean_of_the_periods_that_have_data() {
        let mut ramp = rolling(3);
        assert_eq!(answer(&mut ramp, &headroom(75)), (6, RampReason::Ramped), "at once");
        assert_eq!(answer(&mut ramp, &Inputs::default()), (6, RampReason::Ramped));
        // (0.5 + 3.1) / 2 s
        let decision = ramp.assess(&headroom(-55));
        assert_eq!(decision.ttft_ns, Some(1_800_000_000));
        assert_eq!((decision.add, decision.reason), (0, RampReason::Headroom));
        // The first period has left the window.
        assert_eq!(answer(&mut ramp, &Inputs::default()), (0, RampReason::Ttft));
        assert_eq!(answer(&mut ramp, &Inputs::default()), (0, RampReason::Ttft));
        assert_eq!(answer(&mut ramp, &Inputs::default()), (0, RampReason::NoData));
    }

    #[test]
    fn rolling_rates_and_gates_are_those_of_the_present_code() {
        for (percent, wanted) in [
            (19, (0, RampReason::Headroom)),
            (20, (2, RampReason::Ramped)),
            (75, (6, RampReason::Ramped)),
            (96, (7, RampReason::Ramped)),
        ] {
            assert_eq!(answer(&mut rolling(1), &headroom(percent)), wanted, "{percent} %");
        }
        let limited = Inputs { limited: 1, ..headroom(75) };
        assert_eq!(answer(&mut rolling(1), &limited), (0, RampReason::Limited));
        let settings = Settings {
            controller: Controller::Rolling { window: 3 },
            max_working_set_tokens: 1_000,
            ..settings()
        };
        for (working_set_tokens, add) in [(900, 6), (901, 0)] {
            let inputs = Inputs { working_set_tokens, ..headroom(75) };
            assert_eq!(answer(&mut ramp(settings), &inputs).0, add, "{working_set_tokens}");
        }
    }

    /// What kv-cache-tester 94f6046 did at its period's ends, TTFT in nanoseconds.
    #[test]
    fn rolling_decides_as_the_tool_did() {
        let run = |max_users: u32, periods: &[(Option<i64>, u32, u32)]| {
            let controller = Controller::Rolling { window: 3 };
            let mut ramp = ramp(Settings { controller, max_users, ..settings() });
            let mut decide = |&(ttft_ns, users, limited): &(Option<i64>, u32, u32)| {
                ramp.assess(&Inputs { ttft_ns, users, limited, ..Inputs::default() }).add
            };
            periods.iter().map(&mut decide).collect::<Vec<u32>>()
        };
        let first = [(Some(280_820_052), 3, 0), (None, 8, 0), (None, 8, 0)];
        assert_eq!(run(8, &first), [5, 0, 0]);
        let again = [(Some(265_799_840), 3, 0), (None, 8, 0), (None, 8, 0)];
        assert_eq!(run(8, &again), [5, 0, 0]);
        let limited =
            [(Some(1_039_183_140), 6, 2), (Some(428_529_024), 6, 3), (Some(352_951_315), 6, 2)];
        assert_eq!(run(8, &limited), [0, 0, 0]);
        assert_eq!(run(3, &[(Some(698_738_098), 4, 0)]), [0], "with a sub-agent above the limit");
    }

    #[test]
    fn a_ramp_goes_on_from_its_memory() {
        let mut ramp = past_throttle(settings());
        for percent in [75, -10, -10, 75] {
            ramp.assess(&headroom(percent));
        }
        let text = serde_json::to_string(ramp.memory()).expect("plain data");
        let memory = serde_json::from_str(&text).expect("what was written");
        let mut resumed = Ramp::new(settings(), memory);
        for percent in [75, 75, 75, -3, 60] {
            assert_eq!(ramp.assess(&headroom(percent)), resumed.assess(&headroom(percent)));
        }
    }
}
