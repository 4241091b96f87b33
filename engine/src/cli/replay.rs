//! `onbeat replay`: arguments as typed → one run → its summary and exit code.
//!
//! Exit codes: 0 the run finished and its schedule held, 1 the run or its input failed, 2 wrong
//! usage, 3 it finished but a gate failed, 130 interrupted. Whatever happens after the first
//! request has left, the log stays and the summary of what there is gets printed.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use onbeat_shared::counted::{counted, grouped};
use onbeat_shared::foreign::shown_path;
use onbeat_shared::log::header::Manifest;
use onbeat_shared::metrics::gate::{Judging, judge};
use onbeat_shared::metrics::report::Report;
use onbeat_shared::metrics::{self, ReportOptions};
use serde_json::json;

use crate::cli::flags;
use crate::cli::flags::body::BodyFlags;
use crate::cli::flags::cancel::CancelFlags;
use crate::cli::flags::gate::{GATE_FAILED, GateFlags, exit_code};
use crate::cli::flags::live::LiveFlags;
use crate::cli::flags::peers::PeerFlags;
use crate::cli::flags::run::RunFlags;
use crate::cli::flags::shard::{ShardFlags, StartFlags};
use crate::cli::flags::target::{TargetFlags, nanos};
use crate::cli::flags::timing::TimingFlags;
use crate::cli::flags::trace::TraceFlags;
use crate::cli::flags::users::UserFlags;
use crate::cli::inputs;
use crate::cli::progress::Terminal;
use crate::cli::report::{self, GoalFlags, SliceFlags};
use crate::cli::results::{self, Earlier, Results};
use crate::cli::summary;
use crate::clock::{monotonic_ns, unix_ns};
use crate::conductor::Watch;
use crate::error::{EngineError, INTERRUPTED, lacking};
use crate::plan::PlanOptions;
use crate::policy::direction::state::DirectorState;
use crate::policy::options::UserOptions;
use crate::replayer::Stop;
use crate::replayer::counters::Snapshot;
use crate::run::{Ran, Resumed, RunConfig, run as carry_out};
use crate::trace::{self, Given};

/// How often it is looked whether the user wants the end of the lingering.
const GLANCE: Duration = Duration::from_millis(50);

/// The arguments of `onbeat replay`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    trace: TraceFlags,
    #[command(flatten)]
    timing: TimingFlags,
    #[command(flatten)]
    cancel: CancelFlags,
    #[command(flatten)]
    users: UserFlags,
    #[command(flatten)]
    target: TargetFlags,
    #[command(flatten)]
    body: BodyFlags,
    #[command(flatten)]
    peers: PeerFlags,
    #[command(flatten)]
    run: RunFlags,
    #[command(flatten)]
    live: LiveFlags,
    #[command(flatten)]
    shard: ShardFlags,
    #[command(flatten)]
    start: StartFlags,
    #[command(flatten)]
    goals: GoalFlags,
    #[command(flatten)]
    slices: SliceFlags,
    #[command(flatten)]
    gates: GateFlags,
}

impl Args {
    /// The run as meant.
    ///
    /// # Errors
    /// When an option has no usable value.
    pub fn config(&self) -> Result<RunConfig, EngineError> {
        let path = self.trace.path_beside(&self.greedy())?.to_owned();
        let (target, more_targets) = self.target.targets()?;
        Ok(RunConfig {
            trace_options: self.trace.options(),
            given: self.given(),
            plan: PlanOptions {
                warm_up: self.run.warmup_request_count,
                ..self.cancel.apply(self.timing.options(self.body.seed)?)
            },
            users: UserOptions {
                files: self.run.artifact_dir.clone().or_else(|| self.users.files.resume.clone()),
                ..self.users.options(self.body.seed, &self.goals)?
            },
            render: self.body.options()?,
            target,
            more_targets,
            readiness: self.target.readiness(self.body.model.is_none()),
            reuse: self.target.reuse(),
            way: self.target.way(),
            cores: self.run.core_choice(),
            pacing: self.run.pacing_kind(),
            wishes: self.run.wishes(),
            driver: self.target.driver_kind(),
            limits: self.target.limits(),
            warm_connections: self.target.warm_connections,
            max_connections: self.target.connections(self.timing.names_a_schedule())?,
            shard: self.shard.part(|name| std::env::var(name).ok())?,
            start_unix_ns: self.start.zero(unix_ns())?,
            trust: self.start.trust(),
            drain_ns: self.run.drain_ns(),
            stop_after_failures: self.run.failures_in_a_row(),
            live: self.live.options(&self.target)?,
            memory: self.body.render_budget,
            output: self.run.log_path(&time_stamp(), self.users.files.resume.as_deref()),
            overwrite: self.run.force,
            max_lateness_us: self.run.max_lateness_us,
            resumed: None,
            config: self.resolved(&path),
            trace: path,
        })
    }

    /// The options that take all values behind them, as far as they were typed.
    fn greedy(&self) -> Vec<(&'static str, Vec<String>)> {
        let metrics = self.live.server_metrics.as_ref();
        let metrics =
            metrics.map(|urls| urls.iter().map(|url| url.as_typed().to_owned()).collect());
        let greedy =
            [("--gpu-telemetry", self.peers.gpu_telemetry.clone()), ("--server-metrics", metrics)];
        greedy.into_iter().filter_map(|(name, values)| Some((name, values?))).collect()
    }

    /// What was typed of options that mean nothing for some traces.
    fn given(&self) -> Given {
        let mut given = flags::given(&self.trace, &self.timing, &self.cancel, &self.body);
        given.of_users = self.users.given().to_vec();
        given.in_vain = self.users.warnings();
        if self.run.warmup_request_count > 0 {
            given.of_schedule.push("--warmup-request-count");
        }
        given
    }

    /// What the log keeps of the options: everything but the secrets, which print as `[secret]`,
    /// and the folders of this machine, which say nothing about the run.
    fn resolved(&self, trace: &Path) -> serde_json::Value {
        let mut trace_flags = json!(self.trace);
        let name = trace.file_name().map(|name| name.to_string_lossy().into_owned());
        trace_flags["trace"] = json!(name);
        for folder in ["input_file", "trace_directory"] {
            if let Some(flags) = trace_flags.as_object_mut() {
                flags.remove(folder);
            }
        }
        let mut run_flags = json!(self.run);
        for folder in ["output", "artifact_dir"] {
            if let Some(flags) = run_flags.as_object_mut() {
                flags.remove(folder);
            }
        }
        // A URL that holds a secret has been refused before this is asked for.
        json!({
            "trace": trace_flags,
            "schedule": json!(self.timing),
            "cancellations": json!(self.cancel),
            "users": json!(self.users),
            "server": json!(self.target),
            "requests": json!(self.body),
            "goals": json!(self.goals),
            "slices": json!({"slice_duration": self.slices.slice_duration}),
            "run": run_flags,
            "live": json!(self.live),
            "machines": {"shard": json!(self.shard), "start": json!(self.start)},
        })
    }
}

/// Replays, and prints the summary.
///
/// # Errors
/// When nothing could be sent, or the log could not be read back.
pub fn run(args: &Args, out: &mut dyn Write) -> Result<u8, EngineError> {
    // Wrong goals are said before the run, not after it.
    args.goals.goals()?;
    args.gates.check_absolute()?;
    let mut config = args.config()?;
    let tls = &config.way.tls;
    let files = [&tls.cacert, &tls.cert, &tls.key, &args.body.api_key_file];
    let files = files.into_iter().flatten().chain([&config.trace]);
    inputs::check_apart(&config.output, files.map(PathBuf::as_path))?;
    let mut terminal = Terminal::new(args.run.ui);
    let typed = [args.timing.warnings(), args.body.warnings(), args.peers.warnings()];
    let machines = args.start.warnings(config.shard);
    let live = args.live.warnings();
    typed.iter().flatten().chain(&machines).chain(&live).for_each(|warning| terminal.say(warning));
    args.run.make_folder()?;
    let mut results = results(&mut config, args.run.force, &mut terminal)?;
    let mut watch = Keeping { terminal: &mut terminal, results: results.as_mut(), told: false };
    let ran = carry_out(config, &mut watch);
    terminal.finish();
    let ran = ran?;
    let conclusion = Conclusion {
        goals: &args.goals,
        slices: args.slices,
        gates: &args.gates,
        failed_share_max: args.run.failed_request_threshold,
        verbose: args.run.verbose,
        results: results.as_ref(),
    };
    let code = conclude(&ran, &conclusion, out).and_then(|code| {
        report::finish(look_again(&ran.log, out))?;
        Ok(code)
    });
    linger(&ran, args.live.prometheus_linger_seconds, out, &mut terminal);
    code
}

/// Goes on serving the final numbers, if they are served and that is wanted; a user who has stopped
/// the run waits for nothing.
fn linger(ran: &Ran, seconds: f64, out: &mut dyn Write, terminal: &mut Terminal) {
    let Some(serving) = ran.conducted.serving.as_ref().filter(|_| seconds > 0.0) else { return };
    // What cannot be printed has been, or will be, told where it was printed.
    let _ = out.flush();
    let until_ns = monotonic_ns().saturating_add(nanos(seconds));
    if !terminal.was_interrupted() {
        let address = serving.address();
        terminal.say(&format!(
            "the run's final numbers stay at http://{address}/metrics for {seconds} s; Ctrl-C ends \
             that"
        ));
    }
    while monotonic_ns() < until_ns && !terminal.was_interrupted() {
        #[expect(clippy::disallowed_methods, reason = "the run is over, and nothing is timed")]
        std::thread::sleep(GLANCE);
    }
}

/// Says where the log is, and what shows it again.
fn look_again(log: &Path, out: &mut dyn Write) -> io::Result<()> {
    let shown = as_typed(log);
    writeln!(
        out,
        "\nThe run is in {shown}. Look at it again:\n  onbeat report {shown}\n  \
         onbeat-viewer {shown}"
    )
}

/// A path as one word of a shell's line.
fn as_typed(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+=:,@%".contains(letter);
    if !text.is_empty() && text.chars().all(plain) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The terminal, and the folder that is kept up to date meanwhile.
struct Keeping<'a> {
    terminal: &'a mut Terminal,
    results: Option<&'a mut Results<DirectorState>>,
    /// The user knows that it cannot be.
    told: bool,
}

impl Watch for Keeping<'_> {
    fn say(&mut self, words: &str) {
        self.terminal.say(words);
    }

    fn look(&mut self, elapsed_ns: i64, planned: u64, counters: &Snapshot) {
        self.terminal.look(elapsed_ns, planned, counters);
    }

    fn keep(&mut self, manifest: &Manifest, state: &DirectorState) {
        let results = self.results.as_mut();
        let kept = results.map_or(Ok(()), |results| results.keep(manifest, state.clone()));
        if let Err(error) = kept
            && !self.told
        {
            self.told = true;
            self.terminal.say(&format!("a killed run could not be gone on from: {error}"));
        }
    }

    fn begin(&mut self) -> bool {
        self.terminal.begin()
    }

    fn stop(&mut self) -> Stop {
        self.terminal.stop()
    }
}

/// The folder for what users of an agentic trace leave beside the log, if there is to be one; with
/// `--resume`, what the run goes on from is read.
fn results(
    config: &mut RunConfig,
    force: bool,
    terminal: &mut Terminal,
) -> Result<Option<Results<DirectorState>>, EngineError> {
    if !trace::is_agentic(&config.trace, &config.trace_options)? {
        return Ok(None);
    }
    if let Some(folder) = &config.users.resume
        && let Some(words) = results::complete::<DirectorState>(folder)?
    {
        terminal.say(&words);
    }
    let earlier = config.users.resume.as_deref().map(Earlier::<DirectorState>::read).transpose()?;
    if let (Some(earlier), Some(folder)) = (&earlier, &config.users.resume) {
        let state = earlier.state().expect("who has none is refused").clone();
        let equal = earlier.equal().clone();
        config.resumed = Some(Resumed { folder: folder.clone(), state, equal });
    }
    let Some(folder) = &config.users.files else { return Ok(None) };
    let graphs = config.users.graphs;
    Results::prepare(folder, graphs, earlier, &config.output, force).map(Some)
}

/// What is to become of a run that took place.
#[derive(Clone, Copy, Debug)]
pub struct Conclusion<'a> {
    /// The goals that its summary is about.
    pub goals: &'a GoalFlags,
    /// The slices it shows.
    pub slices: SliceFlags,
    /// What makes it fail besides.
    pub gates: &'a GateFlags,
    /// The share of failed requests from which on the run has failed.
    pub failed_share_max: f64,
    /// Whether the summary tells more.
    pub verbose: bool,
    /// Where its users' tables go.
    pub results: Option<&'a Results<DirectorState>>,
}

/// Prints the summary of a run that took place, writes what is to be written beside its log, and
/// says how it went, as an exit code.
///
/// # Errors
/// When the log could not be written whole or read back, or a file not be written.
pub fn conclude(
    ran: &Ran,
    conclusion: &Conclusion<'_>,
    out: &mut dyn Write,
) -> Result<u8, EngineError> {
    let failed_share_max = conclusion.failed_share_max;
    let incomplete = incomplete(ran);
    if let Some(words) = &incomplete {
        // Before all that is only of what the log has.
        report::finish(writeln!(out, "INCOMPLETE: {words}\n"))?;
    }
    let numbers = summarise(ran, conclusion, out)?;
    if let Some(words) = incomplete {
        return Err(EngineError::Run(words));
    }
    if let Some(failure) = &ran.conducted.failure {
        return Err(EngineError::Run(format!(
            "the run was given up: {failure}. What was recorded until then can be read"
        )));
    }
    if let Some(directed) = &ran.conducted.directed
        && let Some(why) = directed.end.given_up()
    {
        return Err(EngineError::Run(format!("the run was given up: {why}")));
    }
    if ran.conducted.interrupted {
        return Ok(INTERRUPTED);
    }
    let share = numbers.outcomes.failed_share();
    let failed = share.is_some_and(|share| share >= failed_share_max);
    if failed {
        let gate = writeln!(
            out,
            "\nFAILED: {} did not succeed, {:.1} % of the {} that ended by themselves; \
             --failed-request-threshold is {failed_share_max}",
            counted(numbers.outcomes.failed(), "request"),
            share.unwrap_or_default() * 100.0,
            numbers.outcomes.ended()
        );
        report::finish(gate)?;
    }
    report::finish(summary::gates::write(out, &numbers.gates, false))?;
    let held = numbers.verdict.schedule_held || conclusion.gates.accepts_not_held();
    Ok(if held && !failed { exit_code(&numbers.gates) } else { GATE_FAILED })
}

/// What is said of a log that could not be written whole.
fn incomplete(ran: &Ran) -> Option<String> {
    let error = ran.conducted.log_error.as_ref()?;
    let step = lacking::step("write the run log", error);
    let step = step.map_or_else(String::new, |words| format!(" ({words})"));
    let counters = &ran.conducted.counters;
    Some(format!(
        "the run log {} is incomplete: {error}{step}. {} had been sent and {} had ended when the \
         run was over; what was written until the failure can be read",
        shown_path(&ran.log),
        counted(counters.sent, "request"),
        grouped(counters.ended)
    ))
}

/// Prints the summary of the log and writes the files that go with it; returns its numbers.
fn summarise(
    ran: &Ran,
    conclusion: &Conclusion<'_>,
    out: &mut dyn Write,
) -> Result<Report, EngineError> {
    let run = report::read_log(&ran.log).map_err(|error| match ran.log.try_exists() {
        Ok(false) => EngineError::Run(format!(
            "the run log {} is gone: it or its folder was moved or taken away during the run; where \
             it was moved, `onbeat report` tells of it",
            shown_path(&ran.log)
        )),
        _ => error,
    })?;
    let slo = Some(conclusion.goals.goals()?);
    let slice_ns = conclusion.slices.length_ns();
    let options = ReportOptions { slo, slice_ns, ..ReportOptions::default() };
    let mut numbers = metrics::report(&run, &options);
    let (name, gates) = (shown_path(&ran.log), conclusion.gates);
    let judging = Judging { name: &name, report: &numbers };
    numbers.gates = judge(&gates.fail_on, judging, None, gates.accepts_not_held());
    report::finish(summary::write(out, &numbers, conclusion.verbose))?;
    if let Some(results) = conclusion.results {
        let state = ran.conducted.directed.as_ref().map(|directed| directed.state.clone());
        let written = results.write(&run, &numbers, state)?;
        let folder = shown_path(results.folder());
        report::finish(writeln!(out, "\n{folder} has {}.", written.join(", ")))?;
    }
    Ok(numbers)
}

/// The time in a log's default name: UTC, to the second, sortable, without characters that a shell
/// or a file system minds.
fn time_stamp() -> String {
    let now = i128::from(unix_ns());
    jiff::Timestamp::from_nanosecond(now)
        .map(|time| time.strftime("%Y%m%dT%H%M%SZ").to_string())
        .unwrap_or_else(|_| now.to_string())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Only {
        #[command(flatten)]
        args: Args,
    }

    fn parse(words: &[&str]) -> Args {
        let words = std::iter::once(&"onbeat").chain(words);
        Only::try_parse_from(words).expect("parses").args
    }

    #[test]
    fn the_resolved_configuration_has_no_secret_and_no_folder() {
        let args = parse(&[
            "/home/me/traces/t.jsonl",
            "--api-key",
            "hunter2",
            "-H",
            "X-Key: hunter2",
            "--output",
            "/home/me/run.beat",
            "--replay-speedup",
            "20",
        ]);
        let text = args.config().expect("meant").config.to_string();
        assert!(!text.contains("hunter2") && !text.contains("/home/me"), "{text}");
        assert!(text.contains("t.jsonl") && text.contains("20"), "{text}");
    }

    #[test]
    fn a_log_s_path_can_be_typed_again() {
        for (path, typed) in [
            ("runs/run-20260102T030405Z.beat", "runs/run-20260102T030405Z.beat"),
            ("my runs/a.beat", "'my runs/a.beat'"),
            ("it's.beat", "'it'\\''s.beat'"),
        ] {
            let mut out = Vec::new();
            look_again(Path::new(path), &mut out).expect("memory takes everything");
            let words = String::from_utf8(out).expect("text");
            assert!(words.contains(&format!("onbeat report {typed}\n")), "{words}");
            assert!(words.ends_with(&format!("onbeat-viewer {typed}\n")), "{words}");
        }
    }

    #[test]
    fn a_trace_behind_an_option_that_takes_all_values_is_missed_in_words() {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = folder.path().join("t.csv").display().to_string();
        std::fs::write(&trace, "x").expect("room");
        for option in ["--gpu-telemetry", "--server-metrics"] {
            let words = ["--url", "http://127.0.0.1:9", option, "http://h:1/?k=hunter2", &trace];
            let told = parse(&words).config().expect_err("no trace").to_string();
            assert!(told.contains(&format!("{trace} follows {option} and is taken")), "{told}");
            assert!(told.ends_with("name the trace before it, or behind another option"), "{told}");
            let told = parse(&words[..4]).config().expect_err("no trace").to_string();
            assert!(told.contains(&format!("what follows {option} is taken")), "{told}");
            assert!(!told.contains("hunter2"), "{told}");
            // As AIPerf's own commands have it.
            for named in [&["--input-file", &trace, option][..], &[&trace, option, "h:1"]] {
                let args = parse(named);
                assert!(args.trace.path_beside(&args.greedy()).is_ok(), "{named:?}");
            }
        }
    }

    #[test]
    fn a_concurrency_alone_is_refused_with_what_to_give_instead() {
        let config = |line: &str| parse(&line.split(' ').collect::<Vec<_>>()).config();
        let words = config("t.jsonl --concurrency 8").expect_err("no schedule").to_string();
        assert!(words.contains("is no replay"), "{words}");
        for schedule in ["--fixed-schedule", "--request-rate 5"] {
            let config = config(&format!("t.jsonl --concurrency 8 {schedule}")).expect("meant");
            assert_eq!(config.max_connections, Some(8), "{schedule}");
        }
    }

    #[test]
    fn what_is_read_is_never_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name).display().to_string();
        let row = "{\"timestamp\":0,\"input_length\":1,\"output_length\":1}\n";
        let (trace, key) = (at("t.jsonl"), at("key.pem"));
        std::fs::write(&trace, row).expect("room");
        std::fs::write(&key, row).expect("room");
        for output in [trace.as_str(), &key] {
            let url = "https://127.0.0.1:9";
            let words = ["-o", output, "--force", "--cacert", &key, "--url", url, &trace];
            let error = run(&parse(&words), &mut Vec::new()).expect_err("it is read");
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains("--force replaces no input"), "{error}");
            assert_eq!(std::fs::read(output).expect("still there"), row.as_bytes());
        }
    }

    #[test]
    fn a_log_is_named_after_its_time() {
        let name = time_stamp();
        assert_eq!(name.len(), 16, "{name}");
        assert!(name.starts_with("20") && name.ends_with('Z'), "{name}");
    }
}
