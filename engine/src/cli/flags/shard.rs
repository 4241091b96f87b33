//! One run on several machines: which part this one sends, and when all of them start.
//!
//! `--shard auto` reads what Kubernetes, Slurm and MPI launchers tell their processes; variables
//! that contradict each other, or of which one is missing, are refused rather than guessed at.
//! Nothing here reads a clock: `--start-at` is what was typed until the run begins.

use clap::Args;
use jiff::Timestamp;
use onbeat_shared::counted::counted;
use onbeat_shared::quantity::duration_ns;
use onbeat_shared::trace::decimal::Decimal;
use serde::Serialize;

use super::number::whole;
use crate::clock_state::{MAX_ERROR_NS, Trust};
use crate::error::EngineError;
use crate::plan::Shard;

/// Which part of the plan.
#[derive(Clone, Debug, Default, Args, Serialize, schemars::JsonSchema)]
#[command(next_help_heading = "Several machines")]
pub struct ShardFlags {
    /// Send this part of the plan: I of N, counting from 0, or `auto` for what a Kubernetes Indexed
    /// Job, Slurm or an MPI launcher says. Sessions are divided whole, balanced by tokens; all
    /// parts together are the plan. Limits of the whole run are divided as well.
    #[arg(long, value_name = "I/N|auto", value_parser = shard)]
    pub shard: Option<ShardFlag>,
}

/// `--shard` as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", untagged)]
pub enum ShardFlag {
    /// By the environment.
    Auto,
    /// This one.
    Given {
        /// Its number, from 0.
        index: u32,
        /// How many there are.
        count: u32,
    },
}

/// When the schedule's zero is.
#[derive(Clone, Debug, Default, Args, Serialize, schemars::JsonSchema)]
#[command(next_help_heading = "Several machines")]
pub struct StartFlags {
    /// Make this instant of the wall clock the schedule's zero: RFC 3339, like
    /// 2026-01-31T12:00:00Z, the same for all machines of a run; or from now, like +30s, for one
    /// machine that is to wait; 31 days ahead at most (default: as soon as everything is ready).
    #[arg(long, value_name = "TIME|+LENGTH", value_parser = start)]
    pub start_at: Option<StartFlag>,

    /// With --start-at, refuse to start where the clock is not synchronised or may be wrong by more
    /// than this many milliseconds, as the kernel says; `any` starts whatever it says (default: 1).
    #[arg(long, value_name = "MS|any", value_parser = trust, requires = "start_at")]
    pub max_clock_error: Option<ClockErrorFlag>,
}

/// `--start-at` as typed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(into = "String")]
#[schemars(with = "String")]
pub enum StartFlag {
    /// An instant: as typed, and in nanoseconds since 1970.
    At(String, u64),
    /// So long from when the program reads it: as typed, and in nanoseconds.
    After(String, u64),
}

/// `--max-clock-error` as typed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(into = "String")]
#[schemars(with = "String")]
pub struct ClockErrorFlag {
    text: String,
    trust: Trust,
}

impl From<StartFlag> for String {
    fn from(flag: StartFlag) -> Self {
        match flag {
            StartFlag::At(text, _) | StartFlag::After(text, _) => text,
        }
    }
}

impl From<ClockErrorFlag> for String {
    fn from(flag: ClockErrorFlag) -> Self {
        flag.text
    }
}

impl ShardFlags {
    /// The part as meant; `variable` gives a variable of the environment.
    ///
    /// # Errors
    /// When it is to be found in the environment, and is not, or in two ways that contradict.
    pub fn part(
        &self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Shard>, EngineError> {
        let found = match self.shard {
            None => return Ok(None),
            Some(ShardFlag::Given { index, count }) => Shard::new(index, count),
            Some(ShardFlag::Auto) => auto(variable),
        };
        found.map(Some).map_err(|words| EngineError::Usage(format!("--shard {words}")))
    }
}

impl StartFlags {
    /// The zero in nanoseconds since 1970, for a program that reads its options at `now`.
    ///
    /// # Errors
    /// When it has passed, or is further ahead than anybody means.
    pub fn zero(&self, now_unix_ns: u64) -> Result<Option<u64>, EngineError> {
        let zero = match &self.start_at {
            None => return Ok(None),
            Some(StartFlag::After(_, after)) => now_unix_ns.saturating_add(*after),
            Some(StartFlag::At(_, at)) => *at,
        };
        let text = self.start_at.clone().map(String::from).unwrap_or_default();
        let meant = Some(utc(zero)).filter(|utc| *utc != text);
        let meant = meant.map_or_else(String::new, |utc| format!(" ({utc})"));
        let clock = format!("by this machine's clock, which shows {}", utc(now_unix_ns));
        if zero <= now_unix_ns {
            let past = apart(now_unix_ns - zero);
            return Err(EngineError::Usage(format!(
                "--start-at {text}{meant} is {past} in the past {clock}; give a time that leaves \
                 every machine room to read its trace and connect"
            )));
        }
        let ahead = zero - now_unix_ns;
        if ahead > AHEAD_MAX_NS {
            let ahead = apart(ahead);
            return Err(EngineError::Usage(format!(
                "--start-at {text}{meant} is {ahead} ahead {clock}, and {WAITS_AT_MOST}; check the \
                 date, or start the command closer to it"
            )));
        }
        Ok(Some(zero))
    }

    /// How far the clock is trusted.
    #[must_use]
    pub fn trust(&self) -> Trust {
        self.max_clock_error.as_ref().map_or(Trust::Within(MAX_ERROR_NS), |flag| flag.trust)
    }

    /// What the user should know about what was typed.
    #[must_use]
    pub fn warnings(&self, shard: Option<Shard>) -> Vec<String> {
        let count = shard.map_or(1, Shard::count);
        let words = match &self.start_at {
            Some(StartFlag::After(text, _)) if count > 1 => format!(
                "--start-at {text} counts from when this process began: other shards that are given \
                 the same begin at another instant, and their logs cannot be merged. Give all of \
                 them one time, like $(date -u -d '+30 sec' +%FT%TZ) of one machine"
            ),
            None if count > 1 => "this shard starts as soon as it is ready, others when they are: \
                                  their logs cannot be merged; give all of them one --start-at"
                .to_owned(),
            _ => return Vec::new(),
        };
        vec![words]
    }
}

/// Furthest that a zero may be ahead. A trace that is read and connections that are planned for an
/// instant years from now are a mistyped date.
const AHEAD_MAX_NS: u64 = 31 * 86_400 * 1_000_000_000;
/// The same in words.
const WAITS_AT_MOST: &str = "a run waits 31 days at most";

/// An instant as RFC 3339 in UTC, to the millisecond.
fn utc(unix_ns: u64) -> String {
    let millis = i64::try_from(unix_ns / 1_000_000).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(millis).map_or_else(|_| unix_ns.to_string(), |at| at.to_string())
}

/// How far two instants are apart, in a unit that fits; years are of 365.25 days.
fn apart(ns: u64) -> String {
    const DAY_NS: u64 = 86_400 * 1_000_000_000;
    let days = ns / DAY_NS;
    match days {
        0..2 => duration_ns(i64::try_from(ns).unwrap_or(i64::MAX)),
        2..731 => counted(days, "day"),
        _ => format!("{:.1} years", days as f64 / 365.25),
    }
}

fn shard(text: &str) -> Result<ShardFlag, String> {
    if text == "auto" {
        return Ok(ShardFlag::Auto);
    }
    let right = "give I/N, counting from 0, like 0/4, or auto";
    let (index, count) = text.split_once('/').ok_or_else(|| right.to_owned())?;
    let number = |part: &str| whole::<u32>(part).map_err(|_no_number| right.to_owned());
    let (index, count) = (number(index)?, number(count)?);
    Shard::new(index, count).map(|_| ShardFlag::Given { index, count })
}

/// Whether a time of day has a second 60, which the parser takes for 59.
fn is_leap_second(text: &str) -> bool {
    let Some((_, time)) = text.split_once(['T', 't', ' ']) else { return false };
    let digits: String = time.chars().filter(|&c| c != ':').take(6).collect();
    digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.ends_with("60")
}

fn start(text: &str) -> Result<StartFlag, String> {
    let right = "give a time like 2026-01-31T12:00:00Z, or a length like +30s";
    if let Some(length) = text.strip_prefix('+') {
        // The longest unit that fits first: "ms" ends in "s".
        let units = [("ms", 6), ("s", 9), ("m", 9), ("h", 9)];
        let found = units.iter().find_map(|&(unit, scale)| {
            let number = length.strip_suffix(unit)?;
            let ns = Decimal::parse(number).and_then(|number| number.scaled(scale)).ok()?;
            let times = match unit {
                "m" => 60,
                "h" => 3_600,
                _ => 1,
            };
            Some(u64::try_from(ns).ok()?.saturating_mul(times)).filter(|&ns| ns > 0)
        });
        return match found {
            None => Err(right.to_owned()),
            Some(ns) if ns > AHEAD_MAX_NS => {
                let ahead = apart(ns);
                Err(format!("that is {ahead} ahead, and {WAITS_AT_MOST}; give less, like +30s"))
            }
            Some(ns) => Ok(StartFlag::After(text.to_owned(), ns)),
        };
    }
    if is_leap_second(text) {
        return Err(format!(
            "no clock here has a second 60, give 59 or the next minute's 0; {right}"
        ));
    }
    let time: Timestamp = text.parse().map_err(|error| format!("{error}; {right}"))?;
    let ns = u64::try_from(time.as_nanosecond()).map_err(|_beyond| match time.as_nanosecond() {
        ..0 => format!("that is before 1970; {right}"),
        _ => format!("{WAITS_AT_MOST}; {right}"),
    })?;
    Ok(StartFlag::At(text.to_owned(), ns))
}

fn trust(text: &str) -> Result<ClockErrorFlag, String> {
    let right = "give milliseconds above 0, like 1 or 0.5, or any";
    let trust = match text {
        "any" => Trust::Any,
        _ => {
            let ns = Decimal::parse(text).and_then(|number| number.scaled(6)).ok();
            let ns = ns.and_then(|ns: i64| u64::try_from(ns).ok()).filter(|&ns| ns > 0);
            Trust::Within(ns.ok_or_else(|| right.to_owned())?)
        }
    };
    Ok(ClockErrorFlag { text: text.to_owned(), trust })
}

/// Which variables tell a process its number and how many there are.
const LAUNCHERS: [[&str; 2]; 4] = [
    ["JOB_COMPLETION_INDEX", "JOB_COMPLETIONS"],
    ["SLURM_PROCID", "SLURM_NTASKS"],
    ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"],
    ["PMI_RANK", "PMI_SIZE"],
];

/// The part that the environment says.
fn auto(variable: impl Fn(&str) -> Option<String>) -> Result<Shard, String> {
    let mut found: Option<(Shard, [&str; 2])> = None;
    for names in LAUNCHERS {
        let [index, count] = names.map(&variable);
        let (index, count) = match (index, count) {
            (None, None) => continue,
            (Some(index), Some(count)) => (index, count),
            (one, _) => {
                let [set, missing] = if one.is_some() { names } else { [names[1], names[0]] };
                return Err(format!(
                    "auto: {set} is set and {missing} is not; set both, or give I/N"
                ));
            }
        };
        let number = |name: &str, text: &str| {
            whole::<u32>(text.trim()).map_err(|right| format!("auto: {name} is {text:?}; {right}"))
        };
        let shard = Shard::new(number(names[0], &index)?, number(names[1], &count)?)
            .map_err(|words| format!("auto: {} and {}: {words}", names[0], names[1]))?;
        match found {
            Some((other, before)) if other != shard => {
                return Err(format!(
                    "auto: {} and {} say {other}, {} and {} say {shard}; give the one that is \
                     meant as I/N",
                    before[0], before[1], names[0], names[1]
                ));
            }
            _ => found = Some((shard, names)),
        }
    }
    found.map(|(shard, _)| shard).ok_or_else(|| {
        let pairs: Vec<String> = LAUNCHERS.iter().map(|names| names.join(" and ")).collect();
        format!("auto: none of these is set: {}; give I/N, like 0/4", pairs.join("; "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(variables: &[(&str, &str)]) -> Result<String, String> {
        let variable = |name: &str| {
            variables.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned())
        };
        auto(variable).map(|shard| shard.to_string())
    }

    #[test]
    fn a_shard_counts_from_zero() {
        assert_eq!(shard("2/3"), Ok(ShardFlag::Given { index: 2, count: 3 }));
        assert_eq!(shard("auto"), Ok(ShardFlag::Auto));
        let last = shard("3/3").expect_err("one too many");
        assert_eq!(last, "shards count from 0: of 3 the last is 2/3");
        for wrong in ["", "1", "a/b", "-1/2", "1/0", "0/10001", "1/2/3"] {
            assert!(shard(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn launchers_say_which_shard_this_is() {
        for [index, count] in LAUNCHERS {
            assert_eq!(said(&[(index, "1"), (count, "4")]), Ok("1/4".to_owned()));
            let half = said(&[(index, "1")]).expect_err("how many?");
            assert!(half.contains(&format!("{index} is set and {count} is not")), "{half}");
            let half = said(&[(count, "4")]).expect_err("which?");
            assert!(half.contains(&format!("{count} is set and {index} is not")), "{half}");
        }
        let none = said(&[]).expect_err("nothing is set");
        assert!(none.contains("JOB_COMPLETION_INDEX") && none.contains("give I/N"), "{none}");
        let beyond = said(&[("PMI_RANK", "4"), ("PMI_SIZE", "4")]).expect_err("of four");
        assert!(beyond.contains("the last is 3/4"), "{beyond}");
        let word = said(&[("SLURM_PROCID", "x"), ("SLURM_NTASKS", "4")]).expect_err("no number");
        assert!(word.contains("SLURM_PROCID is \"x\"; give a whole number"), "{word}");
    }

    #[test]
    fn launchers_that_contradict_are_refused() {
        let slurm = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4")];
        let mpi = |rank| [("OMPI_COMM_WORLD_RANK", rank), ("OMPI_COMM_WORLD_SIZE", "4")];
        assert_eq!(said(&[slurm, mpi("0")].concat()), Ok("0/4".to_owned()));
        let words = said(&[slurm, mpi("2")].concat()).expect_err("two numbers");
        assert!(words.contains("say 0/4") && words.contains("say 2/4"), "{words}");
    }

    #[test]
    fn a_start_is_an_instant_or_a_length() {
        let at = start("1970-01-01T00:00:02.5+00:00").expect("RFC 3339");
        assert!(matches!(at, StartFlag::At(_, 2_500_000_000)), "{at:?}");
        for (text, ns) in [
            ("+30s", 30_000_000_000),
            ("+250ms", 250_000_000),
            ("+1.5m", 90_000_000_000),
            ("+1h", 3_600_000_000_000),
        ] {
            assert_eq!(start(text), Ok(StartFlag::After(text.to_owned(), ns)));
        }
        for wrong in
            ["", "+", "+30", "+0s", "+-1s", "tomorrow", "2026-01-31", "1969-01-01T00:00:00Z"]
        {
            assert!(start(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_start_in_the_past_is_refused() {
        let flags = |text: &str| StartFlags {
            start_at: Some(start(text).expect("a start")),
            max_clock_error: None,
        };
        let early = flags("1970-01-01T00:00:05Z");
        assert_eq!(early.zero(4_000_000_000).expect("to come"), Some(5_000_000_000));
        let words = early.zero(6_500_000_000).expect_err("past").to_string();
        assert!(words.contains("is 1.5 s in the past"), "{words}");
        assert!(words.contains("clock, which shows 1970-01-01T00:00:06.5Z; give"), "{words}");
        assert_eq!(flags("+2s").zero(1).expect("to come"), Some(2_000_000_001));
        let east = flags("1970-01-01T02:00:05+02:00").zero(90_000_000_000_000).expect_err("past");
        let words = "(1970-01-01T00:00:05Z) is 24 h 59 min in the past";
        assert!(east.to_string().contains(words), "{east}");
    }

    #[test]
    fn a_second_60_is_refused_and_not_taken_for_another() {
        for text in ["2026-11-30T18:59:60Z", "2026-11-30 18:59:60.5+02:00", "20261130T185960Z"] {
            let words = start(text).expect_err("a leap second");
            assert!(words.contains("no clock here has a second 60"), "{words}");
        }
        assert!(start("2026-11-30T18:60:00Z").is_err());
        for text in ["2026-11-30T18:59:59.60Z", "2026-11-30T10:06:00Z", "20261130T180600Z"] {
            assert!(start(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_start_that_nobody_waits_for_is_refused() {
        let flags = |text: &str| StartFlags {
            start_at: Some(start(text).expect("a start")),
            max_clock_error: None,
        };
        for (text, ahead) in [
            ("1970-02-02T00:00:00Z", "is 32 days ahead"),
            ("2026-01-31T14:00:00+02:00", "(2026-01-31T12:00:00Z) is 56.1 years ahead"),
        ] {
            let words = flags(text).zero(0).expect_err("far").to_string();
            assert!(words.contains(ahead) && words.contains("31 days at most"), "{words}");
            assert!(words.contains("check the date"), "{words}");
        }
        assert!(flags("1970-02-01T00:00:00Z").zero(0).is_ok());
        for far in ["+745h", "+9999999h", "9999-01-01T00:00:00Z"] {
            let words = start(far).expect_err("far");
            assert!(words.contains("31 days at most"), "{far}: {words}");
        }
        assert!(start("+744h").is_ok());
        let words = start("1969-01-01T00:00:00Z").expect_err("before clocks");
        assert!(words.contains("before 1970"), "{words}");
    }

    #[test]
    fn shards_without_one_instant_are_told() {
        let two = Shard::new(1, 2).ok();
        let none = StartFlags::default();
        assert!(none.warnings(two)[0].contains("cannot be merged"));
        assert!(none.warnings(None).is_empty());
        let after = StartFlags { start_at: start("+30s").ok(), max_clock_error: None };
        assert!(after.warnings(two)[0].contains("counts from when this process began"));
        assert!(after.warnings(None).is_empty());
        let at = StartFlags { start_at: start("2099-01-01T00:00:00Z").ok(), ..none };
        assert!(at.warnings(two).is_empty());
    }

    #[test]
    fn a_clock_is_trusted_within_a_bound_or_whatever_it_says() {
        assert_eq!(StartFlags::default().trust(), Trust::Within(1_000_000));
        assert_eq!(trust("0.5").map(|flag| flag.trust), Ok(Trust::Within(500_000)));
        assert_eq!(trust("any").map(|flag| flag.trust), Ok(Trust::Any));
        for wrong in ["0", "-1", "x", "1ms"] {
            assert!(trust(wrong).is_err(), "{wrong}");
        }
    }
}
