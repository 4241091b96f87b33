//! Goals, and how many requests meet them.
//!
//! A goal is met at its limit. A request counts into goodput if it succeeded and meets every goal;
//! a goal on a number that the request lacks is missed. Shares are of all requests that ended by
//! themselves, failures included; requests that were cut off (by the plan, the user or the run's
//! end) or never left are in neither part. *Effective* goodput counts the wait for the sending into
//! TTFT: first token − max(due, ready).

use std::fmt;

use super::latency::{self, Metric, count, nanos};
use super::selection::Selection;
use super::tokens;
use crate::log::Outcome;
use crate::run::Run;

/// A decode this short meets any decode-speed goal: too short to measure a speed.
pub const SHORT_DECODE_NS: i64 = 100_000_000;

/// Goals that a request must meet, all of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Goals {
    /// The goals; no two of the same kind.
    list: Vec<Goal>,
}

/// One limit on one number of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// On what.
    pub kind: GoalKind,
    /// The limit, in the kind's unit.
    pub limit: f64,
}

/// What a goal is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GoalKind {
    /// At most this many milliseconds.
    AtMost(Metric),
    /// At least this many tokens per second while decoding: completion tokens / decode time, or a
    /// decode of at most 0.1 s.
    DecodeSpeed,
    /// At least this many tokens per second: 1 / ITL.
    PerUserSpeed,
}

impl GoalKind {
    /// Its key in the report, unit included.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AtMost(metric) => metric.name(),
            Self::DecodeSpeed => "decode_tokens_per_s",
            Self::PerUserSpeed => "output_tokens_per_s_per_user",
        }
    }

    /// The kind people mean by a name: ours, AIPerf's or vLLM's.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.strip_suffix("_ms").unwrap_or(name);
        Some(match name {
            "ttft" | "time_to_first_token" => Self::AtMost(Metric::Ttft),
            "ttft_from_due" => Self::AtMost(Metric::TtftFromDue),
            "ttfo" | "time_to_first_output_token" => Self::AtMost(Metric::FirstOutputToken),
            "ttst" | "time_to_second_token" => Self::AtMost(Metric::Ttst),
            "itl" | "tpot" | "inter_token_latency" => Self::AtMost(Metric::Itl),
            "ntpot" => Self::AtMost(Metric::Ntpot),
            "decode" | "decode_duration" => Self::AtMost(Metric::Decode),
            "e2e" | "e2el" | "request_latency" => Self::AtMost(Metric::E2e),
            "e2e_from_due" => Self::AtMost(Metric::E2eFromDue),
            "send" => Self::AtMost(Metric::Send),
            "first_byte" => Self::AtMost(Metric::FirstByte),
            "decode_tps" | "decode_tokens_per_s" => Self::DecodeSpeed,
            "output_token_throughput_per_user" | "output_tokens_per_s_per_user" => {
                Self::PerUserSpeed
            }
            _ => return None,
        })
    }
}

impl Goal {
    /// Whether request `i`'s numbers meet the goal, whatever its outcome. `effective` counts the
    /// wait for the sending into TTFT.
    #[must_use]
    pub fn is_met(&self, run: &Run, i: usize, effective: bool) -> bool {
        match self.kind {
            GoalKind::AtMost(Metric::Ttft) if effective => latency::effective_ttft_ns(run, i)
                .is_some_and(|ttft| nanos(ttft) / 1e6 <= self.limit),
            GoalKind::AtMost(metric) => {
                metric.value_ns(run, i).is_some_and(|value| value / 1e6 <= self.limit)
            }
            GoalKind::DecodeSpeed => decode_speed_is_met(run, i, self.limit),
            GoalKind::PerUserSpeed => {
                latency::tokens_per_s_per_user(run, i).is_some_and(|speed| speed >= self.limit)
            }
        }
    }
}

fn decode_speed_is_met(run: &Run, i: usize, limit: f64) -> bool {
    let Some(decode) = latency::decode_ns(run, i) else { return false };
    let speed = |tokens| count(tokens) / (nanos(decode) / 1e9) >= limit;
    decode <= SHORT_DECODE_NS || tokens::completion(run, i).is_some_and(speed)
}

/// Why a text is no goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoalError {
    found: String,
    problem: &'static str,
}

impl fmt::Display for GoalError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "goal {:?}: {}; write name:limit, for example \"ttft:500 itl:50\" (milliseconds; names: \
             ttft, ttft_from_due, ttst, itl, ntpot, decode, e2e, e2e_from_due, send, first_byte; at \
             least so many tokens per second: decode_tps, output_token_throughput_per_user)",
            self.found, self.problem
        )
    }
}

impl std::error::Error for GoalError {}

impl Goals {
    /// Reads goals as AIPerf's `--goodput` writes them: `name:limit` pairs separated by spaces.
    ///
    /// # Errors
    /// If a pair has no colon, an unknown name, a limit that is no positive number, or a name
    /// twice.
    pub fn parse(text: &str) -> Result<Self, GoalError> {
        let mut goals = Self::default();
        for pair in text.split_whitespace() {
            let wrong = |problem| GoalError { found: pair.to_owned(), problem };
            let (name, limit) = pair.split_once(':').ok_or_else(|| wrong("it has no colon"))?;
            let kind = GoalKind::from_name(name).ok_or_else(|| wrong("unknown name"))?;
            let limit: f64 = limit.parse().map_err(|_error| wrong("the limit is no number"))?;
            if !(limit.is_finite() && limit > 0.0) {
                return Err(wrong("the limit is not above zero"));
            }
            if !goals.add(Goal { kind, limit }) {
                return Err(wrong("a second limit for the same name"));
            }
        }
        Ok(goals)
    }

    /// Adds a goal; `false` if there is one of its kind.
    pub fn add(&mut self, goal: Goal) -> bool {
        let is_new = self.list.iter().all(|other| other.kind != goal.kind);
        if is_new {
            self.list.push(goal);
        }
        is_new
    }

    /// The goals, in the order they were given.
    #[must_use]
    pub fn list(&self) -> &[Goal] {
        &self.list
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether request `i` succeeded and meets every goal.
    #[must_use]
    pub fn is_good(&self, run: &Run, i: usize, effective: bool) -> bool {
        run.requests.is_ok(i) && self.list.iter().all(|goal| goal.is_met(run, i, effective))
    }
}

/// Whether request `i` counts in shares: it was sent and ended by itself.
#[must_use]
pub fn counts(run: &Run, i: usize) -> bool {
    match run.requests.outcome(i) {
        Some(Outcome::Cancelled | Outcome::NeverSent) | None => false,
        Some(_) => true,
    }
}

/// How many of the chosen requests meet the goals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attainment {
    /// Requests that ended by themselves.
    pub of: u64,
    /// Successful requests that meet each goal, in the goals' order.
    pub met: Vec<u64>,
    /// Successful requests that meet all.
    pub good: u64,
    /// The same with the wait for the sending counted into TTFT.
    pub effective: u64,
}

impl Attainment {
    /// Counts over the chosen requests.
    #[must_use]
    pub fn of(selection: &Selection<'_>, goals: &Goals) -> Self {
        let run = selection.run();
        let mut attainment = Self { met: vec![0; goals.list.len()], ..Self::default() };
        for i in selection.requests().filter(|&i| counts(run, i)) {
            attainment.of += 1;
            if !run.requests.is_ok(i) {
                continue;
            }
            for (met, goal) in attainment.met.iter_mut().zip(&goals.list) {
                *met += u64::from(goal.is_met(run, i, false));
            }
            attainment.good += u64::from(goals.is_good(run, i, false));
            attainment.effective += u64::from(goals.is_good(run, i, true));
        }
        attainment
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Class;
    use crate::log::sample::Sample;

    const MS: i64 = 1_000_000;

    #[test]
    fn goals_read_and_refuse() {
        let goals = Goals::parse("time_to_first_token:370 itl:50.5").expect("two goals");
        assert_eq!(
            goals.list(),
            [
                Goal { kind: GoalKind::AtMost(Metric::Ttft), limit: 370.0 },
                Goal { kind: GoalKind::AtMost(Metric::Itl), limit: 50.5 }
            ]
        );
        for metric in Metric::ALL {
            assert_eq!(GoalKind::from_name(metric.name()), Some(GoalKind::AtMost(metric)));
        }
        for wrong in ["ttft", "ttft:", "ttft:-1", "ttft:nan", "speed:3", "itl:1 tpot:2"] {
            let error = Goals::parse(wrong).expect_err(wrong).to_string();
            assert!(error.contains("name:limit"), "{error}");
        }
    }

    #[test]
    fn failures_are_misses_and_cut_off_requests_are_apart() {
        // Case H06: 80 meet, 10 miss, 6 fail, 4 are cut off by the end of the run.
        let mut sample = Sample::new();
        for k in 0..100 {
            let request = sample.send(k * MS);
            let first = k * MS + if k < 80 { 100 * MS } else { 900 * MS };
            if k < 90 {
                sample.chunks(request, &[first, first + MS]);
            }
            let class = match k {
                0..90 => Class::Ok,
                90..96 => Class::ConnectRefused,
                _ => Class::CutAtEnd,
            };
            sample.done(request, first + 2 * MS, class);
        }
        let run = Run::read(&sample.bytes()).expect("a log");
        let goals = Goals::parse("ttft:500").expect("a goal");
        let attainment = Attainment::of(&Selection::new(&run, None), &goals);
        assert_eq!(attainment, Attainment { of: 96, met: vec![80], good: 80, effective: 80 });
    }

    #[test]
    fn waiting_for_the_sending_counts_into_effective_goodput() {
        let mut sample = Sample::new();
        let request = sample.plan(0);
        sample.dispatch(request, 0, 450 * MS);
        sample.chunks(request, &[550 * MS, 560 * MS]);
        sample.done(request, 560 * MS, Class::Ok);
        let run = Run::read(&sample.bytes()).expect("a log");
        let goals = Goals::parse("ttft:500 decode_tps:30").expect("goals");
        let attainment = Attainment::of(&Selection::new(&run, None), &goals);
        assert_eq!((attainment.good, attainment.effective), (1, 0));
        assert_eq!(attainment.met, [1, 1], "a decode of 10 ms is too short to be slow");
    }
}
