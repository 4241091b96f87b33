//! When requests are sent: options as typed.
//!
//! Times are kept as typed and as whole nanoseconds, exactly: never through a float.

use std::num::NonZero;

use clap::Args;
use onbeat_shared::trace::decimal::{Decimal, DecimalError, Ratio};
use serde::Serialize;

use crate::cli::flags::Typed;
use crate::error::EngineError;
use crate::plan::{PlanMode, PlanOptions};

/// The schedule.
#[derive(Clone, Debug, Default, Args, Serialize)]
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

    /// Shorten gaps in which nothing is sent to this many seconds, after the speed-up (default: no
    /// cap).
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds)]
    pub max_idle_gap_cap_seconds: Option<Typed<i64>>,

    /// Plan only requests due within this many seconds of the schedule's zero (default: all).
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds)]
    pub benchmark_duration: Option<Typed<i64>>,

    /// Plan only this many requests, the first in send order (default: all).
    #[arg(long, visible_alias = "num-requests", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub request_count: Option<u64>,

    /// Lay this many copies of the trace over each other, each moved by an offset of its own and with
    /// sessions and text of its own: more load with the same bursts, pauses and shared prefixes
    /// (default: 1).
    #[arg(long, value_name = "N")]
    pub tile: Option<NonZero<u32>>,

    /// Send every request when it is due, also when the previous turn of its session has not ended.
    #[arg(long)]
    pub open_loop_strict: bool,
}

impl TimingFlags {
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
            request_count: self.request_count,
            copies: self.tile.map_or(1, NonZero::get),
            seed,
            mode: if self.open_loop_strict { PlanMode::OpenLoopStrict } else { PlanMode::OpenLoop },
            ..PlanOptions::default()
        })
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

fn millis(text: &str) -> Result<Typed<i64>, String> {
    typed(text, "milliseconds, like 60000", |number| number.scaled(6))
}

fn positive_seconds(text: &str) -> Result<Typed<i64>, String> {
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
                    --tile 3";
        let expected = PlanOptions {
            speedup: Ratio { numerator: 5, denominator: 2 },
            start_offset_ns: Some(-1_500_000),
            end_offset_ns: Some(60_000_000_000),
            idle_gap_cap_ns: Some(100),
            duration_ns: Some(10_000_000_000),
            request_count: Some(3),
            copies: 3,
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
            "--fixed-schedule-start-offset 2 --fixed-schedule-end-offset 1",
            "--fixed-schedule-start-offset 2 --fixed-schedule-auto-offset",
        ] {
            assert!(options(line).is_err(), "{line}");
        }
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
