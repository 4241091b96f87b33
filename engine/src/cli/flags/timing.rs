//! When requests are sent: options as typed.
//!
//! Times are kept as typed and as whole nanoseconds, exactly: never through a float.

use std::num::NonZero;

use clap::{Args, ValueEnum};
use onbeat_shared::trace::decimal::{Decimal, DecimalError, Ratio};
use serde::Serialize;

use crate::cli::flags::Typed;
use crate::cli::flags::number::whole;
use crate::error::EngineError;
use crate::plan::{Arrivals, Factor, Pattern, PlanMode, PlanOptions, Share, Synthesis};

/// The schedule.
#[derive(Clone, Debug, Default, Args, Serialize, schemars::JsonSchema)]
#[command(next_help_heading = "Schedule")]
pub struct TimingFlags {
    /// Run the trace's clock this many times faster; 0.5 is half as fast (default: 1).
    #[arg(long, value_name = "FACTOR", value_parser = speedup)]
    pub replay_speedup: Option<Typed<Ratio>>,

    /// Leave out rows before this time of the trace's clock, in milliseconds, which becomes the
    /// schedule's zero (default: the first row's time is the zero).
    #[arg(long, value_name = "MS", value_parser = millis, allow_negative_numbers = true)]
    pub fixed_schedule_start_offset: Option<Typed<i64>>,

    /// Leave out rows after this time of the trace's clock, in milliseconds (default: none).
    #[arg(long, value_name = "MS", value_parser = millis, allow_negative_numbers = true)]
    pub fixed_schedule_end_offset: Option<Typed<i64>>,

    /// Make the first request's time the schedule's zero; it is so anyway without a start offset.
    #[arg(long, conflicts_with = "fixed_schedule_start_offset")]
    pub fixed_schedule_auto_offset: bool,

    /// Send on the trace's schedule; it is so anyway.
    #[arg(long)]
    pub fixed_schedule: bool,

    /// Leave the trace's timestamps out, for --request-rate.
    #[arg(long, conflicts_with = "fixed_schedule")]
    pub no_fixed_schedule: bool,

    /// Start this many sessions a second, for rows without timestamps; a row without a session is
    /// one of its own.
    #[arg(long, value_name = "RATE", value_parser = rate, conflicts_with = "fixed_schedule")]
    pub request_rate: Option<Typed<Ratio>>,

    /// How evenly sessions arrive at --request-rate (default: poisson; gamma with
    /// --arrival-smoothness).
    #[arg(long, visible_alias = "request-rate-mode", value_enum, value_name = "PATTERN")]
    #[arg(requires = "request_rate")]
    pub arrival_pattern: Option<PatternFlag>,

    /// The gamma distribution's shape: below 1 sessions come in bursts, above 1 evenly (default:
    /// 1).
    #[arg(long, visible_alias = "vllm-burstiness", value_name = "SHAPE", value_parser = shape)]
    #[arg(requires = "request_rate")]
    pub arrival_smoothness: Option<Typed<Factor>>,

    /// Shorten gaps in which nothing is sent to this many seconds, after the speed-up (default: no
    /// cap).
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds)]
    pub max_idle_gap_cap_seconds: Option<Typed<i64>>,

    /// Keep only this share of the sessions, chosen by --seed as AIPerf chooses them (default:
    /// all).
    #[arg(long, value_name = "RATIO", value_parser = share)]
    pub trace_session_sample_ratio: Option<Typed<Option<Share>>>,

    /// Leave out rows with more input tokens than this (default: none).
    #[arg(long, visible_alias = "synthesis-max-isl", value_name = "TOKENS")]
    #[arg(value_parser = whole::<u32>)]
    pub max_isl: Option<u32>,

    /// Ask for at most this many output tokens (default: as recorded).
    #[arg(long, visible_alias = "synthesis-max-osl", value_name = "TOKENS")]
    #[arg(value_parser = whole::<NonZero<u32>>)]
    pub max_osl: Option<NonZero<u32>>,

    /// Run the trace's timestamps, but no delays, this many times faster; another name for a
    /// Mooncake or Bailian trace's --replay-speedup.
    #[arg(long, value_name = "FACTOR", value_parser = speedup, conflicts_with = "replay_speedup")]
    pub synthesis_speedup_ratio: Option<Typed<Ratio>>,

    /// Make prompts' shared prefixes this many times as long (default: 1).
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    pub synthesis_prefix_len_multiplier: Option<Typed<Factor>>,

    /// Deal the rows to this many prefix trees that share nothing (default: 1).
    #[arg(long, value_name = "N", value_parser = whole::<NonZero<u32>>)]
    pub synthesis_prefix_root_multiplier: Option<NonZero<u32>>,

    /// Make what prompts do not share this many times as long (default: 1).
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    pub synthesis_prompt_len_multiplier: Option<Typed<Factor>>,

    /// Ask for this many times as many output tokens, before --max-osl (default: 1).
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    pub synthesis_output_len_multiplier: Option<Typed<Factor>>,

    /// Ask for no fewer output tokens than recorded where prompts are recorded too; it is so
    /// anyway.
    #[arg(long, overrides_with = "no_force_min_tokens")]
    pub force_min_tokens: bool,

    /// Let answers end by themselves, for servers that refuse `min_tokens`.
    #[arg(long, overrides_with = "force_min_tokens")]
    pub no_force_min_tokens: bool,

    /// Plan only requests due within this many seconds of the schedule's zero (default: all).
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds)]
    pub benchmark_duration: Option<Typed<i64>>,

    /// Plan only this many requests, the first in send order (default: all).
    #[arg(long, visible_aliases = ["num-requests", "num-prompts"], value_name = "N")]
    #[arg(value_parser = whole::<NonZero<u64>>)]
    pub request_count: Option<NonZero<u64>>,

    /// Lay this many copies of the trace over each other, each moved by an offset of its own and
    /// with sessions and text of its own: more load with the same bursts, pauses and shared
    /// prefixes (default: 1).
    #[arg(long, value_name = "N", value_parser = whole::<NonZero<u32>>)]
    pub tile: Option<NonZero<u32>>,

    /// Send requests when they are due, but not before the previous turn of their session has
    /// ended; it is so anyway.
    #[arg(long, overrides_with = "no_open_loop_replay")]
    pub open_loop_replay: bool,

    /// Send a session's first request when it is due, and each other one after the end of the one
    /// before it and the recorded time between: the closed loop.
    #[arg(long, overrides_with = "open_loop_replay", conflicts_with = "open_loop_strict")]
    pub no_open_loop_replay: bool,

    /// In the closed loop, wait at most this many seconds between the turns of a session (default:
    /// as recorded).
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub inter_turn_delay_cap_seconds: Option<Typed<i64>>,

    /// Send every request when it is due, also when the previous turn of its session has not ended.
    #[arg(long)]
    pub open_loop_strict: bool,
}

/// `--arrival-pattern` as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PatternFlag {
    /// Always the same time between two.
    Constant,
    /// An exponentially distributed time between two.
    Poisson,
    /// A gamma distributed time between two, see --arrival-smoothness.
    Gamma,
}

impl TimingFlags {
    fn arrivals(&self) -> Result<Option<Arrivals>, EngineError> {
        let smoothness = self.arrival_smoothness.as_ref().map(|typed| typed.value);
        let pattern = match (self.arrival_pattern, smoothness) {
            (Some(PatternFlag::Gamma), _) | (None, Some(_)) => {
                Pattern::Gamma(smoothness.unwrap_or(Factor::ONE))
            }
            (Some(_), Some(_)) => {
                return Err(EngineError::Usage(
                    "--arrival-smoothness belongs to --arrival-pattern gamma".to_owned(),
                ));
            }
            (Some(PatternFlag::Constant), None) => Pattern::Constant,
            (Some(PatternFlag::Poisson) | None, None) => Pattern::Poisson,
        };
        Ok(self.request_rate.as_ref().map(|rate| Arrivals { rate: rate.value, pattern }))
    }

    fn synthesis(&self) -> Synthesis {
        let factor =
            |typed: &Option<Typed<Factor>>| typed.as_ref().map_or(Factor::ONE, |typed| typed.value);
        Synthesis {
            speedup: self.synthesis_speedup_ratio.as_ref().map_or(Ratio::ONE, |typed| typed.value),
            prefix: factor(&self.synthesis_prefix_len_multiplier),
            roots: self.synthesis_prefix_root_multiplier.unwrap_or(NonZero::<u32>::MIN),
            prompt: factor(&self.synthesis_prompt_len_multiplier),
            output: factor(&self.synthesis_output_len_multiplier),
        }
    }

    /// Whether the user said what decides when requests are sent.
    #[must_use]
    pub const fn names_a_schedule(&self) -> bool {
        self.request_rate.is_some() || self.fixed_schedule
    }

    /// The schedule's options as meant, for one core and one server; `seed` is that of the run.
    ///
    /// # Errors
    /// When the window ends before it starts.
    pub fn options(&self, seed: u64) -> Result<PlanOptions, EngineError> {
        let value = |typed: &Option<Typed<i64>>| typed.as_ref().map(|typed| typed.value);
        let start_offset_ns = value(&self.fixed_schedule_start_offset);
        let end_offset_ns = value(&self.fixed_schedule_end_offset);
        if start_offset_ns.zip(end_offset_ns).is_some_and(|(start, end)| start > end) {
            return Err(EngineError::Usage(
                "--fixed-schedule-start-offset is after --fixed-schedule-end-offset".to_owned(),
            ));
        }
        Ok(PlanOptions {
            speedup: self.replay_speedup.as_ref().map_or(Ratio::ONE, |typed| typed.value),
            start_offset_ns,
            end_offset_ns,
            idle_gap_cap_ns: value(&self.max_idle_gap_cap_seconds),
            duration_ns: value(&self.benchmark_duration),
            request_count: self.request_count.map(NonZero::get),
            sample: self.trace_session_sample_ratio.as_ref().and_then(|typed| typed.value),
            max_input_tokens: self.max_isl,
            max_output_tokens: self.max_osl.map(NonZero::get),
            force_min_tokens: !self.no_force_min_tokens,
            think_cap_ns: value(&self.inter_turn_delay_cap_seconds),
            arrivals: self.arrivals()?,
            ignore_times: self.no_fixed_schedule,
            synthesis: self.synthesis(),
            copies: self.tile.map_or(1, NonZero::get),
            seed,
            mode: match (self.no_open_loop_replay, self.open_loop_strict) {
                (true, _) => PlanMode::ClosedLoop,
                (false, true) => PlanMode::OpenLoopStrict,
                (false, false) => PlanMode::OpenLoop,
            },
            ..PlanOptions::default()
        })
    }
}

impl TimingFlags {
    /// What the user should know about what was typed.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let idle = self.inter_turn_delay_cap_seconds.is_some() && !self.no_open_loop_replay;
        let words = "--inter-turn-delay-cap-seconds changes nothing in the open loop, where \
                     requests have times and no delays";
        idle.then(|| words.to_owned()).into_iter().collect()
    }
}

fn typed<T>(
    text: &str,
    what: &str,
    read: impl FnOnce(Decimal<'_>) -> Result<T, DecimalError>,
) -> Result<Typed<T>, String> {
    let value = Decimal::parse(text).and_then(read);
    let value = value.map_err(|error| format!("{error}; give {what}"))?;
    Ok(Typed { text: text.to_owned(), value })
}

fn speedup(text: &str) -> Result<Typed<Ratio>, String> {
    typed(text, "a factor above 0 with at most 19 digits, like 20 or 0.5", |number| number.ratio())
}

fn rate(text: &str) -> Result<Typed<Ratio>, String> {
    typed(text, "sessions a second, above 0, like 10 or 0.5", |number| number.ratio())
}

fn factor(text: &str) -> Result<Typed<Factor>, String> {
    Ok(Typed { text: text.to_owned(), value: Factor::parse(text)? })
}

fn shape(text: &str) -> Result<Typed<Factor>, String> {
    let shape = factor(text)?;
    let usable = shape.value.value() >= 0.001;
    usable.then_some(shape).ok_or_else(|| "give a number from 0.001 on, like 0.5".to_owned())
}

fn millis(text: &str) -> Result<Typed<i64>, String> {
    typed(text, "milliseconds, like 60000", |number| number.scaled(6))
}

pub(super) fn seconds(text: &str) -> Result<Typed<i64>, String> {
    let seconds = typed(text, "seconds, like 2.5", |number| number.scaled(9))?;
    if seconds.value < 0 {
        return Err("give 0 seconds or more".to_owned());
    }
    Ok(seconds)
}

fn share(text: &str) -> Result<Typed<Option<Share>>, String> {
    let right = "give a share of the sessions above 0 and at most 1, like 0.25";
    let ratio: f64 = text.parse().map_err(|_no_number| right.to_owned())?;
    let value = Share::of(ratio).map_err(|found| format!("{found}; {right}"))?;
    Ok(Typed { text: text.to_owned(), value })
}

pub(super) fn positive_seconds(text: &str) -> Result<Typed<i64>, String> {
    let seconds = typed(text, "seconds, like 2.5", |number| number.scaled(9))?;
    if seconds.value <= 0 {
        return Err("give more than 0 seconds".to_owned());
    }
    Ok(seconds)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Only {
        #[command(flatten)]
        flags: TimingFlags,
    }

    fn options(line: &str) -> Result<PlanOptions, String> {
        let words = std::iter::once("onbeat").chain(line.split_whitespace());
        let only = Only::try_parse_from(words).map_err(|error| error.to_string())?;
        only.flags.options(5).map_err(|error| error.to_string())
    }

    #[test]
    fn numbers_are_exact() {
        let line = "--replay-speedup 2.50 --fixed-schedule-start-offset -1.5 \
                    --fixed-schedule-end-offset 60000 --max-idle-gap-cap-seconds 0.0000001 \
                    --benchmark-duration 10 --request-count 3 --open-loop-strict --fixed-schedule \
                    --tile 3 --trace-session-sample-ratio 0.5 --max-isl 100 --max-osl 7 \
                    --no-force-min-tokens";
        let expected = PlanOptions {
            speedup: Ratio { numerator: 5, denominator: 2 },
            start_offset_ns: Some(-1_500_000),
            end_offset_ns: Some(60_000_000_000),
            idle_gap_cap_ns: Some(100),
            duration_ns: Some(10_000_000_000),
            request_count: Some(3),
            sample: Share::of(0.5).expect("a share"),
            max_input_tokens: Some(100),
            max_output_tokens: Some(7),
            force_min_tokens: false,
            think_cap_ns: None,
            arrivals: None,
            ignore_times: false,
            synthesis: Synthesis::NONE,
            copies: 3,
            cancelling: None,
            replay_cancellations: false,
            warm_up: 0,
            seed: 5,
            mode: PlanMode::OpenLoopStrict,
            cores: 1,
            targets: 1,
        };
        assert_eq!(options(line), Ok(expected));
        let default = PlanOptions { seed: 5, ..PlanOptions::default() };
        assert_eq!(options("--fixed-schedule-auto-offset"), Ok(default.clone()));
        assert_eq!(options(""), Ok(default));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for line in [
            "--replay-speedup 0",
            "--replay-speedup -2",
            "--replay-speedup NaN",
            "--benchmark-duration 0",
            "--max-idle-gap-cap-seconds -1",
            "--request-count 0",
            "--tile 0",
            "--trace-session-sample-ratio 0",
            "--trace-session-sample-ratio 1.5",
            "--max-osl 0",
            "--inter-turn-delay-cap-seconds -1",
            "--no-open-loop-replay --open-loop-strict",
            "--fixed-schedule-start-offset 2 --fixed-schedule-end-offset 1",
            "--fixed-schedule-start-offset 2 --fixed-schedule-auto-offset",
        ] {
            assert!(options(line).is_err(), "{line}");
        }
    }

    #[test]
    fn the_closed_loop_has_a_cap_of_its_own() {
        let closed = options("--no-open-loop-replay --inter-turn-delay-cap-seconds 0.5");
        let closed = closed.expect("options");
        assert_eq!((closed.mode, closed.think_cap_ns), (PlanMode::ClosedLoop, Some(500_000_000)));
        let open = options("--no-open-loop-replay --open-loop-replay").expect("options");
        assert_eq!(open.mode, PlanMode::OpenLoop);
        let words = ["onbeat", "--inter-turn-delay-cap-seconds", "1"];
        let told = Only::try_parse_from(words).expect("parses").flags.warnings();
        assert!(told[0].contains("changes nothing"), "{told:?}");
    }

    #[test]
    fn rates_and_multipliers_are_taken_by_their_names() {
        let line = "--request-rate 2.5 --no-fixed-schedule --synthesis-speedup-ratio 4 \
                    --synthesis-prefix-len-multiplier 1.5 --synthesis-prefix-root-multiplier 3 \
                    --synthesis-prompt-len-multiplier 0 --synthesis-output-len-multiplier 2 \
                    --synthesis-max-isl 9 --synthesis-max-osl 8";
        let options = options(line).expect("options");
        let rate = Ratio { numerator: 5, denominator: 2 };
        assert_eq!(options.arrivals, Some(Arrivals { rate, pattern: Pattern::Poisson }));
        assert!(options.ignore_times);
        assert_eq!((options.max_input_tokens, options.max_output_tokens), (Some(9), Some(8)));
        let factor = |text| Factor::parse(text).expect("a factor");
        let synthesis = Synthesis {
            speedup: Ratio { numerator: 4, denominator: 1 },
            prefix: factor("1.5"),
            roots: NonZero::new(3).expect("above 0"),
            prompt: factor("0"),
            output: factor("2"),
        };
        assert_eq!((options.synthesis, options.clock()), (synthesis, synthesis.speedup));
    }

    #[test]
    fn a_smoothness_means_the_gamma_pattern() {
        let pattern = |line: &str| {
            let options = options(&format!("--request-rate 1 {line}"))?;
            Ok::<_, String>(options.arrivals.expect("a rate").pattern)
        };
        let half = Factor::parse("0.5").expect("a factor");
        assert_eq!(pattern("--arrival-smoothness 0.5"), Ok(Pattern::Gamma(half)));
        assert_eq!(pattern("--vllm-burstiness 0.5"), Ok(Pattern::Gamma(half)));
        assert_eq!(pattern("--arrival-pattern gamma"), Ok(Pattern::Gamma(Factor::ONE)));
        assert_eq!(pattern("--request-rate-mode constant"), Ok(Pattern::Constant));
        let words = pattern("--arrival-pattern poisson --arrival-smoothness 2");
        assert!(words.expect_err("no gamma").contains("--arrival-pattern gamma"));
        for wrong in [
            "--arrival-smoothness 0",
            "--fixed-schedule",
            "--synthesis-prefix-root-multiplier 0",
            "--synthesis-prompt-len-multiplier -1",
            "--synthesis-speedup-ratio 2 --replay-speedup 2",
        ] {
            assert!(pattern(wrong).is_err(), "{wrong}");
        }
        assert!(options("--arrival-pattern constant").is_err(), "a pattern of no rate");
        assert!(options("--request-rate 0").is_err());
    }

    #[test]
    fn a_log_shows_values_as_typed() {
        let words = ["onbeat", "--replay-speedup", "2.50"];
        let flags = Only::try_parse_from(words).expect("parses").flags;
        let json = serde_json::to_value(&flags).expect("serialises");
        assert_eq!(json["replay_speedup"], "2.50");
        assert_eq!(json["benchmark_duration"], serde_json::Value::Null);
    }
}
