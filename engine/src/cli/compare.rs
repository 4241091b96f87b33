//! `onbeat compare`: what differs between runs, by how much and how surely, and gates on it.
//!
//! It only reads logs and renders what [`onbeat_shared::metrics::compare`] computes. Each log is
//! read whole; two are in memory at a time, the base and the one that is held against it.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use onbeat_shared::export::markdown;
use onbeat_shared::foreign::shown_path;
use onbeat_shared::metrics::compare::{self, Comparison, Subject};
use onbeat_shared::metrics::gate::{Judging, judge};
use onbeat_shared::metrics::report::Report;
use onbeat_shared::metrics::slo::Goals;
use onbeat_shared::metrics::{ReportOptions, report};
use onbeat_shared::run::Run;

use super::flags::gate::{GateFlags, exit_code};
use super::flags::number::whole;
use super::report::{GoalFlags, finish, read_log};
use super::summary;
use crate::error::EngineError;

/// Options of `onbeat compare`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The run that the others are held against.
    #[arg(value_name = "BASE.beat")]
    pub base: PathBuf,

    /// The others, each held against the base.
    #[arg(value_name = "NEW.beat", required = true)]
    pub new: Vec<PathBuf>,

    /// How the comparison is written.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,

    /// The p99 lateness outside host stalls above which a schedule did not hold (default: as each
    /// run was started with).
    #[arg(long, value_name = "MICROSECONDS", value_parser = whole::<u64>)]
    pub max_lateness_us: Option<u64>,

    /// Show every figure.
    #[arg(long, short)]
    pub verbose: bool,

    /// Goals of a good request, of all runs alike; by default those that the base was started with.
    #[command(flatten)]
    pub goals: GoalFlags,

    /// What makes it fail.
    #[command(flatten)]
    pub gates: GateFlags,
}

/// How a comparison is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs: the schema is in the repository.
    Json,
    /// For pull requests.
    Markdown,
}

/// A run that was read, with its numbers.
struct Opened {
    name: String,
    run: Run,
    report: Report,
}

impl Opened {
    fn read(path: &Path, args: &Args, goals: Option<&Goals>) -> Result<(Self, Goals), EngineError> {
        let run = read_log(path)?;
        let goals = match goals {
            Some(goals) => goals.clone(),
            None => args.goals.goals_or_of(&run)?,
        };
        let options = ReportOptions {
            slo: Some(goals.clone()),
            max_lateness_us: args.max_lateness_us,
            ..ReportOptions::default()
        };
        let report = report(&run, &options);
        Ok((Self { name: shown_path(path), run, report }, goals))
    }

    fn subject(&self) -> Subject<'_> {
        Subject { name: &self.name, run: &self.run, report: &self.report }
    }

    fn judging(&self) -> Judging<'_> {
        Judging { name: &self.name, report: &self.report }
    }
}

/// Prints the comparison. The exit code is 0 unless a gate failed.
///
/// # Errors
/// If a log cannot be read, the goals cannot be meant, or writing fails.
pub fn run(args: &Args, out: &mut dyn Write) -> Result<u8, EngineError> {
    // Wrong goals are said before anything is read.
    args.goals.goals()?;
    let comparison = compared(args)?;
    let judged = &comparison.gates;
    finish(match args.format {
        Format::Text => summary::compare::write(out, &comparison, args.verbose)
            .and_then(|()| summary::gates::write(out, judged, true)),
        Format::Json => serde_json::to_writer_pretty(&mut *out, &comparison)
            .map_err(io::Error::from)
            .and_then(|()| out.write_all(b"\n")),
        Format::Markdown => markdown::comparison(&comparison, args.verbose, out),
    })?;
    Ok(exit_code(judged))
}

fn compared(args: &Args) -> Result<Comparison, EngineError> {
    let (base, goals) = Opened::read(&args.base, args, None)?;
    let mut comparison = compare::compare(base.subject(), &[], &goals);
    let (gates, accepted) = (&args.gates.fail_on, args.gates.accepts_not_held());
    if !gates.is_empty() {
        comparison.gates.extend(onbeat_shared::metrics::gate::held(base.judging(), accepted));
    }
    for path in &args.new {
        let (new, _) = Opened::read(path, args, Some(&goals))?;
        let against = compare::against(base.subject(), new.subject(), &goals);
        let judged = judge(gates, new.judging(), Some((base.judging(), &against)), accepted);
        comparison.gates.extend(judged);
        comparison.runs.push(against);
    }
    Ok(comparison)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use onbeat_shared::log::sample::{self, Sample};

    use super::*;

    #[derive(Debug, Parser)]
    struct Only {
        #[command(flatten)]
        args: Args,
    }

    /// Two runs of one plan, the second with other outcomes, and one of another plan.
    struct Runs {
        folder: tempfile::TempDir,
    }

    impl Runs {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            let put = |name: &str, sample: &Sample| {
                std::fs::write(folder.path().join(name), sample.bytes()).expect("room");
            };
            let base = sample::sample(4, 120);
            put("base.beat", &base);
            let mut new = sample::sample(4, 120);
            new.manifest.driver = "epoll".to_owned();
            put("new.beat", &new);
            put("other.beat", &sample::sample(5, 90));
            let mut torn = sample::sample(4, 120);
            torn.closed = false;
            put("torn.beat", &torn);
            Self { folder }
        }

        fn told(&self, line: &str) -> Result<(u8, String), EngineError> {
            let at = |word: &str| match word.ends_with(".beat") {
                true => self.folder.path().join(word).display().to_string(),
                false => word.replace('~', " "),
            };
            let words = std::iter::once("onbeat".to_owned()).chain(line.split(' ').map(at));
            let args = Only::try_parse_from(words).expect("parses").args;
            let mut out = Vec::new();
            let code = run(&args, &mut out)?;
            Ok((code, String::from_utf8(out).expect("text")))
        }
    }

    #[test]
    fn runs_of_one_plan_are_paired_and_others_are_not() {
        let runs = Runs::new();
        let (code, text) = runs.told("base.beat new.beat other.beat").expect("a comparison");
        assert_eq!(code, 0);
        assert!(text.contains("paired by request: same trace and same plan"), "{text}");
        assert!(text.contains("NOT paired: 120 requests are planned in one and 90"), "{text}");
        assert!(text.contains("driver: io_uring -> epoll"), "{text}");
        assert!(text.contains("TTFT, ms p99") && text.contains("wilcoxon signed rank"), "{text}");
        let unstretched = text.lines().filter(|line| !line.contains(".beat"));
        assert!(unstretched.map(str::len).all(|len| len <= 100), "{text}");
        assert!(text.is_ascii(), "{text}");
    }

    #[test]
    fn gates_decide_the_exit_code_in_every_format() {
        let runs = Runs::new();
        for format in ["text", "json", "markdown"] {
            let told = |gate: &str| {
                let line = format!("base.beat new.beat --format {format} --fail-on {gate}");
                runs.told(&line).expect("a comparison")
            };
            let (code, text) = told("ttft_ms.p99~>~+5%");
            assert_eq!(code, 0, "{text}");
            assert!(text.contains("ttft"), "{text}");
            let (code, text) = told("ttft_ms.p99~>=~+0%");
            assert_eq!(code, 3, "{text}");
            assert_eq!(told("met.itl_ms.share~<~10%").0, 3, "unknown is not zero");
        }
    }

    #[test]
    fn a_run_that_did_not_hold_passes_no_gate_unless_it_is_accepted_and_said() {
        let runs = Runs::new();
        let gate = "--fail-on error_rate~>~50%";
        for pair in ["base.beat torn.beat", "torn.beat base.beat"] {
            assert_eq!(runs.told(pair).expect("no gate").0, 0);
            let (code, text) = runs.told(&format!("{pair} {gate}")).expect("a gate");
            assert_eq!(code, 3, "{text}");
            let (code, text) =
                runs.told(&format!("{pair} {gate} --accept-not-held")).expect("a gate");
            assert_eq!(code, 0, "{text}");
            assert!(text.contains("did not hold") && text.contains("accepted all the same"));
        }
    }

    #[test]
    fn the_json_is_the_same_every_time_and_what_is_missing_is_null() {
        let runs = Runs::new();
        let json = || runs.told("base.beat new.beat --format json").expect("a comparison").1;
        let first = json();
        assert_eq!(first, json());
        let json: serde_json::Value = serde_json::from_str(&first).expect("JSON");
        assert_eq!(json["schema_version"], 1);
        let figures = json["runs"][0]["figures"].as_array().expect("figures");
        let goodput = figures.iter().find(|row| row["name"] == "goodput_share").expect("a row");
        assert!(goodput["base"].is_null() && goodput["difference"].is_null(), "{goodput}");
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let runs = Runs::new();
        let error = runs.told("base.beat none.beat").expect_err("no such file");
        assert!(error.to_string().contains("none.beat"), "{error}");
    }
}
