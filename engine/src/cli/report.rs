//! `onbeat report`: the numbers of a run, finished or not, as text, as JSON or as a page.
//!
//! It only reads the log and renders what [`onbeat_shared::metrics`] computes. A log is read into
//! memory rather than mapped: one that is still being written or replaced must not be able to kill
//! the reader, and a command that ends at once needs no more.

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use onbeat_shared::export::{html, markdown};
use onbeat_shared::foreign::shown_path;
use onbeat_shared::log::{Decoder, LogError};
use onbeat_shared::metrics::gate::{Judged, Judging, judge};
use onbeat_shared::metrics::goal::{Goal, GoalKind};
use onbeat_shared::metrics::slo::Goals;
use onbeat_shared::metrics::{Metric, ReportOptions, report};
use onbeat_shared::run::Run;

use super::flags::gate::{GateFlags, exit_code};
use super::flags::number::{real, whole};
use super::flags::target::{nanos, seconds};
use super::inputs::check_apart;
use super::output::to_file;
use super::{printing, summary};
use crate::error::{EngineError, output};
use crate::policy::options::{Slo, UserOptions};

/// Bytes of a log that tell it from anything else: its header, and the mark of what follows it.
const LOOK_BYTES: u64 = 4_096;

/// Options of `onbeat report`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The run log.
    #[arg(value_name = "RUN.beat")]
    pub log: PathBuf,

    /// How the report is written.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,

    /// Write the report as one page for a browser into this file, and nothing to stdout. Charts of
    /// a run without users are by slices: of --slice-duration, or of a length that suits the run.
    #[arg(long, value_name = "FILE", conflicts_with = "format")]
    pub html: Option<PathBuf>,

    /// Replace the file of --html if it exists.
    #[arg(long, requires = "html")]
    pub force: bool,

    /// The p99 lateness outside host stalls above which the schedule did not hold (default: as the
    /// run was started with).
    #[arg(long, value_name = "MICROSECONDS", value_parser = whole::<u64>)]
    pub max_lateness_us: Option<u64>,

    /// Show every metric, with its formula.
    #[arg(long, short)]
    pub verbose: bool,

    /// Goals of a good request.
    #[command(flatten)]
    pub goals: GoalFlags,

    /// Slices of the run to report as well.
    #[command(flatten)]
    pub slices: SliceFlags,

    /// What makes it fail.
    #[command(flatten)]
    pub gates: GateFlags,
}

/// The slices of a run, as typed.
#[derive(Clone, Copy, Debug, Default, clap::Args, schemars::JsonSchema)]
#[command(next_help_heading = "Goals and slices")]
pub struct SliceFlags {
    /// Report the run also in slices of this length, from the first sending on.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub slice_duration: Option<f64>,
}

impl SliceFlags {
    /// Their length in nanoseconds.
    #[must_use]
    pub fn length_ns(&self) -> Option<i64> {
        self.slice_duration.map(nanos)
    }

    /// The same, or that with which the run was started.
    #[must_use]
    pub fn length_ns_or_of(&self, run: &Run) -> Option<i64> {
        let own = || run.manifest.config["slices"]["slice_duration"].as_f64();
        let own = || own().filter(|seconds| seconds.is_finite() && *seconds > 0.0).map(nanos);
        self.length_ns().or_else(own)
    }
}

/// How a report is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs: the schema is in the repository.
    Json,
    /// For a browser: one page with charts that fetches nothing.
    Html,
    /// For pull requests: the verdict, the main figures, fidelity and gates.
    Markdown,
}

/// Goals of a good request, as typed.
#[derive(Clone, Debug, Default, clap::Args, serde::Serialize, schemars::JsonSchema)]
#[command(next_help_heading = "Goals and slices")]
pub struct GoalFlags {
    /// Goals as name:limit pairs, for example "ttft:500 itl:50": durations in milliseconds, at
    /// most; speeds and token counts, at least. The names are AIPerf's tags of a request's numbers
    /// or those of vllm bench; an unknown one is answered with all of them. An itl is the mean of
    /// a request, (last token - first) / (tokens - 1): vllm bench's tpot, which is taken as well.
    #[arg(long, value_name = "GOALS")]
    pub goodput: Option<String>,

    /// Goal: time to first token, at most (default: none; for users of an agentic trace 5, or in a
    /// report what their run was started with).
    #[arg(long, value_name = "SECONDS", value_parser = real)]
    pub slo_ttft: Option<f64>,

    /// Goal: tokens per second while decoding, at least (default: none; for users of an agentic
    /// trace 30, or in a report what their run was started with).
    #[arg(long, value_name = "TOKENS_PER_SECOND", value_parser = real)]
    pub slo_decode_tps: Option<f64>,
}

impl GoalFlags {
    /// The goals of an agentic run: kv-cache-tester's where the user has none of these.
    ///
    /// # Errors
    /// If a limit is no positive number.
    pub fn for_users(&self) -> Result<Slo, EngineError> {
        self.goals()?;
        let slo = UserOptions::default().slo;
        Ok(Slo {
            ttft_ns: self.slo_ttft.map_or(slo.ttft_ns, nanos),
            decode_tps: self.slo_decode_tps.unwrap_or(slo.decode_tps),
        })
    }

    /// The goals as meant.
    ///
    /// # Errors
    /// If a limit is no positive number or two options limit the same number.
    pub fn goals(&self) -> Result<Goals, EngineError> {
        let mut goals = match &self.goodput {
            // A variable of a script that is not set, as a rule: whoever asks for goals means some.
            Some(text) if text.trim().is_empty() => {
                return Err(EngineError::Usage(format!(
                    "--goodput {text:?} has no goal; write name:limit, for example \"ttft:500 \
                     itl:50\", or leave the option out"
                )));
            }
            Some(text) => Goals::parse(text)
                .map_err(|error| EngineError::Usage(format!("--goodput: {error}")))?,
            None => Goals::default(),
        };
        let ttft_ms = self.slo_ttft.map(|seconds| seconds * 1e3);
        let more = [
            ("--slo-ttft", GoalKind::AtMost(Metric::Ttft), ttft_ms),
            ("--slo-decode-tps", GoalKind::DecodeSpeed, self.slo_decode_tps),
        ];
        for (flag, kind, limit) in more {
            let Some(limit) = limit else { continue };
            if !(limit.is_finite() && limit > 0.0) {
                return Err(EngineError::Usage(format!("{flag}: the limit must be above zero")));
            }
            if !goals.add(Goal { kind, limit }) {
                return Err(EngineError::Usage(format!(
                    "{flag}: --goodput already limits {}; keep one of them",
                    kind.name()
                )));
            }
        }
        Ok(goals)
    }

    /// The goals as meant or, where none is named, those that were typed when the run was started.
    ///
    /// # Errors
    /// As [`Self::goals`].
    pub fn goals_or_of(&self, run: &Run) -> Result<Goals, EngineError> {
        let goals = self.goals()?;
        Ok(if goals.is_empty() { Goals::typed(&run.manifest) } else { goals })
    }
}

/// Joins goals that were typed behind `--goodput` as words of their own, as `vllm bench serve`
/// takes them, into the one word that AIPerf takes.
pub(super) fn goals_together(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut together: Vec<OsString> = Vec::new();
    let mut goals_go_on = false;
    for word in words {
        let is_goal = is_goal(&word);
        if let Some(goals) = together.last_mut().filter(|_| goals_go_on && is_goal) {
            goals.push(" ");
            goals.push(word);
            continue;
        }
        goals_go_on = is_goal && together.last().is_some_and(|flag| flag == "--goodput");
        together.push(word);
    }
    together
}

fn is_goal(word: &OsStr) -> bool {
    word.to_str().and_then(|word| word.split_once(':')).is_some_and(|(name, limit)| {
        GoalKind::from_name(name).is_some() && limit.parse::<f64>().is_ok()
    })
}

/// Prints the report. The exit code is 0 whatever the run's verdict (reporting it succeeded), but
/// for gates that failed.
///
/// # Errors
/// If the log cannot be read, the goals cannot be meant, or writing fails.
pub fn run(args: &Args, out: &mut dyn Write) -> Result<u8, EngineError> {
    // Wrong goals are said before anything is read.
    args.goals.goals()?;
    args.gates.check_absolute()?;
    if let Some(file) = &args.html {
        check_apart(file, std::iter::once(args.log.as_path()))?;
        output::check(file, args.force)?;
    }
    let run = read_log(&args.log)?;
    let slo = Some(args.goals.goals_or_of(&run)?);
    let is_page = args.html.is_some() || args.format == Format::Html;
    let own = || html::slice_ns(&run).filter(|_| is_page);
    let options = ReportOptions {
        slo,
        max_lateness_us: args.max_lateness_us,
        slice_ns: args.slices.length_ns_or_of(&run).or_else(own),
        ..ReportOptions::default()
    };
    let mut report = report(&run, &options);
    let name = shown_path(&args.log);
    let judging = Judging { name: &name, report: &report };
    report.gates = judge(&args.gates.fail_on, judging, None, args.gates.accepts_not_held());
    let judged = &report.gates;
    if let Some(file) = &args.html {
        let page = |mut file: &File| html::write(&run, &report, None, &mut file);
        to_file(file, args.force, page)?;
        return said(judged, &mut io::stderr());
    }
    let written = match args.format {
        Format::Text => summary::write(out, &report, args.verbose)
            .and_then(|()| summary::gates::write(out, judged, false)),
        Format::Markdown => markdown::report(&report, out),
        Format::Json => serde_json::to_writer_pretty(&mut *out, &report)
            .map_err(io::Error::from)
            .and_then(|()| out.write_all(b"\n")),
        Format::Html => html::write(&run, &report, None, out),
    };
    finish(written)?;
    match args.format {
        Format::Text | Format::Markdown => Ok(exit_code(judged)),
        // They are in what was written, too; whoever started it sees here why it failed.
        Format::Json | Format::Html => said(judged, &mut io::stderr()),
    }
}

/// Says what became of gates beside what was asked for, and gives the exit code.
fn said(judged: &[Judged], out: &mut dyn Write) -> Result<u8, EngineError> {
    finish(summary::gates::write(out, judged, false))?;
    Ok(exit_code(judged))
}

/// Reads a run log. Nothing is opened that may have no end, and nothing read whole that does not
/// begin like a log.
pub(super) fn read_log(path: &Path) -> Result<Run, EngineError> {
    let failed = |error| EngineError::io("read the run log", path, error);
    let wrong = |words: &dyn Display| EngineError::Input(format!("{}: {words}", shown_path(path)));
    // Looked at before it is opened: opening a pipe that nobody writes to would wait forever.
    let meta = std::fs::metadata(path).map_err(failed)?;
    if !meta.is_file() {
        let found = if meta.is_dir() { "is a folder" } else { "is not a regular file" };
        return Err(wrong(&format_args!("{found}; right would be a run log, like run.beat")));
    }
    let mut file = File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    (&mut file).take(LOOK_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    if let Err(error @ (LogError::Empty | LogError::NotALog { .. })) = Decoder::new(&bytes) {
        return Err(wrong(&error));
    }
    file.read_to_end(&mut bytes).map_err(failed)?;
    Run::read(&bytes).map_err(|error| wrong(&error))
}

/// The exit code of a command whose output was written to stdout. Whoever closed the pipe has read
/// what it wanted.
pub(super) fn finish(written: io::Result<()>) -> Result<u8, EngineError> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(printing(error)),
        _ => Ok(0),
    }
}

#[cfg(test)]
mod tests {
    use onbeat_shared::log::sample;
    use onbeat_shared::metrics::gate::Gate;

    use super::*;

    fn args(log: &Path, format: Format) -> Args {
        Args {
            log: log.to_owned(),
            format,
            html: None,
            force: false,
            goals: GoalFlags::default(),
            max_lateness_us: None,
            slices: SliceFlags::default(),
            verbose: false,
            gates: GateFlags::default(),
        }
    }

    #[test]
    fn gates_decide_the_exit_code_and_changes_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("run.beat");
        std::fs::write(&log, sample::log(1, 50)).expect("room");
        let gated = |format, gate: &str| {
            let mut args = args(&log, format);
            args.gates.fail_on = vec![Gate::parse(gate).expect("a gate")];
            let mut out = Vec::new();
            run(&args, &mut out).map(|code| (code, String::from_utf8(out).expect("text")))
        };
        for format in [Format::Text, Format::Json, Format::Html, Format::Markdown] {
            let (code, text) = gated(format, "ttft_ms.p99 > 1").expect("a report");
            assert_eq!(code, 3);
            let said =
                if format == Format::Html { "ttft_ms.p99 &gt; 1" } else { "ttft_ms.p99 > 1" };
            assert!(text.contains(said), "{text}");
            assert_eq!(gated(format, "ttft_ms.p99 > 100000").expect("a report").0, 0);
        }
        let (_, text) = gated(Format::Json, "ttft_ms.p99 > 1").expect("a report");
        let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let gate = &json["gates"][0];
        assert_eq!(
            (&gate["failed"], &gate["value"]),
            (&true.into(), &json["latency"]["ttft_ms"]["p99"])
        );
        let mut ungated = Vec::new();
        run(&args(&log, Format::Json), &mut ungated).expect("a report");
        let json: serde_json::Value = serde_json::from_slice(&ungated).expect("JSON");
        assert_eq!(json["gates"], serde_json::json!([]));
        let error = gated(Format::Text, "ttft_ms.p99 > +5%").expect_err("no base");
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("onbeat compare BASE.beat NEW.beat"), "{error}");
    }

    #[test]
    fn a_runs_own_goals_and_slices_need_not_be_named_again() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let log = folder.path().join("run.beat");
        let mut sample = sample::sample(3, 60);
        sample.manifest.config = serde_json::json!({
            "goals": {"goodput": "ttft:100000", "slo_ttft": null, "slo_decode_tps": null},
            "slices": {"slice_duration": 0.5},
        });
        std::fs::write(&log, sample.bytes()).expect("written");
        let told = |args: &Args| {
            let mut out = Vec::new();
            run(args, &mut out).expect("a report");
            serde_json::from_slice::<serde_json::Value>(&out).expect("JSON")
        };
        let own = told(&args(&log, Format::Json));
        let mut named = args(&log, Format::Json);
        named.goals.goodput = Some("ttft:100000".to_owned());
        named.slices.slice_duration = Some(0.5);
        assert_eq!(own, told(&named));
        named.goals.goodput = Some("ttft:0.001".to_owned());
        assert_ne!(own, told(&named), "what is named counts");
        let text = own.to_string();
        assert!(text.contains("ttft") && !own["slices"].is_null(), "{text}");
    }

    #[test]
    fn text_and_json_come_from_the_same_log() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("run.beat");
        std::fs::write(&log, sample::log(1, 50)).expect("room");
        let mut text = Vec::new();
        assert_eq!(run(&args(&log, Format::Text), &mut text).expect("a report"), 0);
        assert!(text.starts_with(b"SCHEDULE     HELD: 50 of 50 requests sent"));
        let mut json = Vec::new();
        run(&args(&log, Format::Json), &mut json).expect("a report");
        let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
        assert_eq!(json["schedule"]["sent"], 50);
        assert_eq!(json["schema_version"], 1);
    }

    #[test]
    fn a_page_goes_to_stdout_or_into_a_file_that_is_never_replaced_unasked() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("run.beat");
        std::fs::write(&log, sample::log(1, 50)).expect("room");
        let mut page = Vec::new();
        run(&args(&log, Format::Html), &mut page).expect("a page");
        assert!(page.starts_with(b"<!DOCTYPE html>"));
        let text = String::from_utf8(page.clone()).expect("text");
        assert!(!text.contains("\"slots\":[]"), "slices of its own, unasked");
        let file = folder.path().join("page.html");
        let mut named = args(&log, Format::Text);
        named.html = Some(file.clone());
        let mut nothing = Vec::new();
        assert_eq!(run(&named, &mut nothing).expect("a new file"), 0);
        assert!(nothing.is_empty());
        assert_eq!(std::fs::read(&file).expect("the file"), page);
        let error = run(&named, &mut nothing).expect_err("it exists");
        assert!(error.to_string().contains("--force"), "{error}");
        named.force = true;
        run(&named, &mut nothing).expect("replaced");
        named.html = Some(log.clone());
        let error = run(&named, &mut nothing).expect_err("it is the input");
        assert!(error.to_string().contains("--force replaces no input"), "{error}");
    }

    #[test]
    fn what_is_no_log_is_named_with_its_path() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("trace.jsonl");
        std::fs::write(&log, "{\"timestamp\": 0}\n").expect("room");
        let error = run(&args(&log, Format::Text), &mut Vec::new()).expect_err("no log");
        assert_eq!(error.exit_code(), 1);
        let words = error.to_string();
        assert!(words.contains("trace.jsonl: not an Onbeat run log"), "{words}");
        let error = run(&args(Path::new("/dev/zero"), Format::Text), &mut Vec::new());
        let words = error.expect_err("it has no end").to_string();
        assert!(words.contains("/dev/zero: is not a regular file"), "{words}");
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
        assert!(made.success());
        let error = run(&args(&pipe, Format::Text), &mut Vec::new());
        assert!(error.expect_err("nobody writes").to_string().contains("not a regular file"));
        // Far more than any machine has memory for.
        File::create(&log).and_then(|file| file.set_len(1 << 43)).expect("a sparse file");
        let error = run(&args(&log, Format::Text), &mut Vec::new()).expect_err("no log");
        assert!(error.to_string().contains("not an Onbeat run log"), "{error}");
        let missing = folder.path().join("none.beat");
        let error = run(&args(&missing, Format::Text), &mut Vec::new()).expect_err("no file");
        assert!(error.to_string().contains("none.beat"), "{error}");
    }

    #[test]
    fn goals_come_from_three_options_and_must_not_contradict() {
        let flags = |goodput: Option<&str>, ttft, tps| GoalFlags {
            goodput: goodput.map(str::to_owned),
            slo_ttft: ttft,
            slo_decode_tps: tps,
        };
        let goals = flags(Some("itl:50"), Some(0.5), Some(30.0)).goals().expect("goals");
        let limits: Vec<_> = goals.list().iter().map(|g| (g.kind.name(), g.limit)).collect();
        assert_eq!(limits, [("itl_ms", 50.0), ("ttft_ms", 500.0), ("decode_tokens_per_s", 30.0)]);
        for wrong in [
            flags(Some("ttft:1"), Some(1.0), None),
            flags(Some("speed:1"), None, None),
            flags(None, Some(-1.0), None),
            flags(None, None, Some(f64::NAN)),
        ] {
            assert_eq!(wrong.goals().expect_err("contradiction").exit_code(), 2, "{wrong:?}");
        }
    }

    #[test]
    fn goals_may_be_one_word_or_several() {
        let joined = |line: &str| -> Vec<String> {
            let words = goals_together(line.split(' ').map(OsString::from));
            words.into_iter().map(|word| word.into_string().expect("ASCII")).collect()
        };
        let several = joined("onbeat replay --goodput ttft:370 tpot:60 e2el:900 t.jsonl --force");
        assert_eq!(several[2..], ["--goodput", "ttft:370 tpot:60 e2el:900", "t.jsonl", "--force"]);
        assert_eq!(joined("onbeat report --goodput ttft:1 run.beat")[3..], ["ttft:1", "run.beat"]);
        assert_eq!(joined("onbeat report ttft:1 itl:2")[2..], ["ttft:1", "itl:2"], "no goals");
        for spelling in ["ttft:370 tpot:60", "time_to_first_token:370 inter_token_latency:60"] {
            let flags = GoalFlags { goodput: Some(spelling.to_owned()), ..GoalFlags::default() };
            let goals = flags.goals().expect("goals");
            let limits: Vec<_> = goals.list().iter().map(|g| (g.kind.name(), g.limit)).collect();
            assert_eq!(limits, [("ttft_ms", 370.0), ("itl_ms", 60.0)], "{spelling}");
        }
    }

    #[test]
    fn a_closed_pipe_is_no_failure() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("run.beat");
        std::fs::write(&log, sample::log(1, 5)).expect("room");
        for format in [Format::Text, Format::Json, Format::Html, Format::Markdown] {
            assert_eq!(run(&args(&log, format), &mut Closed).expect("success"), 0);
        }
    }
}
