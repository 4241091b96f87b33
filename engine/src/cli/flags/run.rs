//! How a run is carried out and where it is written: options as typed.

use std::num::NonZero;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::number::whole;
use super::target::{nanos, seconds_or_none};
use crate::cli::progress::Ui;
use crate::error::{EngineError, output};
use crate::limits::CORES_MAX;
use crate::replayer::Pacing;
use crate::run::{CoreChoice, Wishes};

/// Cores, pacing and output.
#[derive(Clone, Debug, Args, Serialize, schemars::JsonSchema)]
#[command(next_help_heading = "Run")]
pub struct RunFlags {
    /// Cores that send: `auto`, a number of them, or a list of CPUs like `2,3` or `4-7`. Unless
    /// listed, CPUs on which no other replay of this host paces are taken first.
    #[arg(long, default_value = "auto", value_name = "N|LIST", value_parser = cores)]
    pub cores: CoresFlag,

    /// How a core waits: spin polls all the time, sleep is late by the host's wake-up error,
    /// hybrid sleeps until 4 to 8 ms before a request is due and polls from there.
    #[arg(long, value_enum, default_value_t, value_name = "WAY")]
    pub pacing: PacingFlag,

    /// Send so many of the first requests once before the run, one after the other; no statistic
    /// counts them. A server that caches prefixes has then seen their prompts.
    #[arg(long, visible_aliases = ["num-warmup-requests", "num-warmups"], default_value_t,
        value_name = "REQUESTS", value_parser = whole::<u32>)]
    pub warmup_request_count: u32,

    /// Keep all memory from being swapped out; where that is not allowed, say so and go on.
    #[arg(long)]
    pub lock_memory: bool,

    /// Run pacing threads before every ordinary one (SCHED_FIFO). Where the kernel would stop a
    /// core that polls, or does not allow it, say so and go on.
    #[arg(long)]
    pub realtime: bool,

    /// Keep the requests' bytes on the memory node of the pacing cores; where that is not possible,
    /// say so and go on.
    #[arg(long)]
    pub numa_local: bool,

    /// After a stop, let requests in flight finish for this many seconds.
    #[arg(long, default_value = "10", value_name = "SECONDS", value_parser = seconds_or_none)]
    pub drain_seconds: f64,

    /// End the run once so many requests in a row have failed, with none in between that succeeded
    /// (default: never; whatever fails, everything is sent on its time). A run of users has
    /// --max-consecutive-errors.
    #[arg(long, value_name = "N", value_parser = whole::<NonZero<u64>>)]
    pub stop_after_failures: Option<NonZero<u64>>,

    /// The run log; folders on the way to it are made (default: run-TIME.beat in the artifact
    /// directory).
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Folder for the run log when --output names none (default: the current one), and for an
    /// agentic run's tables, page and state.
    #[arg(long, visible_alias = "output-dir", value_name = "DIR")]
    pub artifact_dir: Option<PathBuf>,

    /// Replace the run log if it exists.
    #[arg(long)]
    pub force: bool,

    /// The p99 lateness outside host stalls, in microseconds, above which the schedule did not
    /// hold.
    #[arg(long, default_value = "1000", value_name = "MICROSECONDS", value_parser = whole::<u64>)]
    pub max_lateness_us: u64,

    /// Exit with 3 when this share of the requests that ended by themselves did not succeed, or
    /// more: 1 is all of them, 0.05 one in twenty. Cancelled ones are not among them.
    #[arg(long, default_value_t = FAILED_SHARE_MAX, value_name = "SHARE", value_parser = share)]
    pub failed_request_threshold: f64,

    /// Show every metric in the summary, with its formula.
    #[arg(long, short, alias = "extra-verbose", overrides_with = "verbose")]
    pub verbose: bool,

    /// How progress is shown on stderr.
    #[arg(long, visible_alias = "ui-type", value_enum, default_value_t, value_name = "WAY")]
    pub ui: Ui,
}

/// The share of failed requests from which a run is no success unless the user says otherwise: all.
pub const FAILED_SHARE_MAX: f64 = 1.0;

/// A share above nothing and up to everything.
fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err("a share above 0 and up to 1, like 0.05".to_owned()),
    }
}

/// `--cores` as typed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CoresFlag {
    /// By the plan's peak rate.
    Auto,
    /// So many.
    Count(u16),
    /// These CPUs.
    List(Vec<u16>),
}

/// `--pacing` as typed.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum PacingFlag {
    /// Poll all the time.
    Spin,
    /// Sleep first, poll at the end.
    #[default]
    Hybrid,
    /// Sleep only.
    Sleep,
}

impl RunFlags {
    /// The cores as meant.
    #[must_use]
    pub fn core_choice(&self) -> CoreChoice {
        match &self.cores {
            CoresFlag::Auto => CoreChoice::Auto,
            CoresFlag::Count(count) => CoreChoice::Count(*count),
            CoresFlag::List(cpus) => CoreChoice::List(cpus.clone()),
        }
    }

    /// The pacing as meant; the margin is measured at the start.
    #[must_use]
    pub const fn pacing_kind(&self) -> Pacing {
        match self.pacing {
            PacingFlag::Spin => Pacing::Spin,
            PacingFlag::Hybrid => Pacing::Hybrid { margin_ns: 0 },
            PacingFlag::Sleep => Pacing::Sleep,
        }
    }

    /// What is asked of the system.
    #[must_use]
    pub const fn wishes(&self) -> Wishes {
        Wishes {
            lock_memory: self.lock_memory,
            realtime: self.realtime,
            numa_local: self.numa_local,
        }
    }

    /// Failures in a row after which the run ends, if there is a limit.
    #[must_use]
    pub fn failures_in_a_row(&self) -> Option<u64> {
        self.stop_after_failures.map(NonZero::get)
    }

    /// The drain time in nanoseconds.
    #[must_use]
    pub fn drain_ns(&self) -> i64 {
        nanos(self.drain_seconds)
    }

    /// Makes the folder that the log goes to, if the user named one. It stays whatever becomes of
    /// the run: other shards of it may be about to write there.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn make_folder(&self) -> Result<(), EngineError> {
        let named = self.output.as_deref().and_then(Path::parent);
        let folder = if self.output.is_some() { named } else { self.artifact_dir.as_deref() };
        folder.map_or(Ok(()), |folder| output::make_folder(folder).map(|_made| ()))
    }

    /// The run log's path; `time` names it when the user did not. A run that goes on leaves it in
    /// the folder it goes on from.
    #[must_use]
    pub fn log_path(&self, time: &str, resumed: Option<&Path>) -> PathBuf {
        let folder = self.artifact_dir.as_deref().or(resumed).unwrap_or(Path::new("."));
        self.output.clone().unwrap_or_else(|| folder.join(format!("run-{time}.beat")))
    }
}

/// Reads `--cores`.
///
/// # Errors
/// What is wrong with it and what would be right.
pub fn cores(text: &str) -> Result<CoresFlag, String> {
    if text == "auto" {
        return Ok(CoresFlag::Auto);
    }
    let number = |part: &str| {
        whole::<u16>(part)
            .map_err(|_no_number| format!("{part:?} is no CPU number; write 2 or 0,2-3"))
    };
    if !text.contains([',', '-']) {
        let count = number(text)?;
        return match usize::from(count) {
            1..=CORES_MAX => Ok(CoresFlag::Count(count)),
            _ => Err(format!("between 1 and {CORES_MAX} cores can send")),
        };
    }
    let mut cpus = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(format!("{part:?} runs backwards"));
        }
        cpus.extend(first..=last);
        if cpus.len() > CORES_MAX {
            return Err(format!("at most {CORES_MAX} cores can send"));
        }
    }
    let mut once = cpus.clone();
    once.sort_unstable();
    once.dedup();
    if once.len() != cpus.len() || cpus.is_empty() {
        return Err("name each CPU once".to_owned());
    }
    Ok(CoresFlag::List(cpus))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_log_is_made_whichever_option_names_it() {
        #[derive(Debug, clap::Parser)]
        struct Only {
            #[command(flatten)]
            flags: RunFlags,
        }
        let flags = |words: [&str; 2]| {
            let words = [&["onbeat"], &words[..]].concat();
            <Only as clap::Parser>::try_parse_from(words).expect("parses").flags
        };
        let place = tempfile::tempdir().expect("a folder");
        let at = |name: &str| place.path().join(name).display().to_string();
        flags(["--output", &at("runs/first/0.beat")]).make_folder().expect("made");
        flags(["--output-dir", &at("runs/second")]).make_folder().expect("made");
        assert!(
            place.path().join("runs/first").is_dir() && place.path().join("runs/second").is_dir()
        );
        // Several shards make the same one.
        flags(["--output", &at("runs/first/1.beat")]).make_folder().expect("there");
        flags(["--output", "in-the-current-one.beat"]).make_folder().expect("nothing to make");
        std::fs::write(at("file"), "precious").expect("room");
        let error = flags(["--output", &at("file/0.beat")]).make_folder().expect_err("a file");
        assert!(error.to_string().contains("is a file, and not a folder"), "{error}");
    }

    #[test]
    fn cores_are_a_number_or_a_list() {
        assert_eq!(cores("auto"), Ok(CoresFlag::Auto));
        assert_eq!(cores("4"), Ok(CoresFlag::Count(4)));
        assert_eq!(cores("0,2-3"), Ok(CoresFlag::List(vec![0, 2, 3])));
        assert_eq!(cores("5,"), Ok(CoresFlag::List(vec![5])));
        for wrong in ["0", "x", "3-1", "1,1", ",", "0-65535"] {
            assert!(cores(wrong).is_err(), "{wrong} was taken");
        }
    }
}
