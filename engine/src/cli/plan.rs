//! `onbeat plan`: what would be sent and when, one JSON object a line, without sending anything.
//!
//! A stable interface: the keys and their order are those of the reference. Stdout carries nothing
//! else; warnings and the count of what is left out go to stderr. Bodies are made one at a time, so
//! that a plan of any size can be shown in little memory.

use std::collections::HashSet;
use std::io::{self, BufWriter, Write};

use clap::parser::ValueSource;
use clap::{ArgMatches, Command, FromArgMatches};
use onbeat_shared::counted::{agreeing, counted};
use onbeat_shared::foreign::printable;
use onbeat_shared::log::plan_row::PlanRow;
use onbeat_shared::trace::Trace;
use serde::Serialize;

use crate::cli::flags;
use crate::cli::flags::body::BodyFlags;
use crate::cli::flags::cancel::CancelFlags;
use crate::cli::flags::live::LiveFlags;
use crate::cli::flags::number::whole;
use crate::cli::flags::peers::PeerFlags;
use crate::cli::flags::run::RunFlags;
use crate::cli::flags::shard::{ShardFlags, StartFlags};
use crate::cli::flags::target::TargetFlags;
use crate::cli::flags::timing::TimingFlags;
use crate::cli::flags::trace::TraceFlags;
use crate::cli::flags::users::UserFlags;
use crate::cli::printing;
use crate::cli::report::GoalFlags;
use crate::cli::steps;
use crate::error::EngineError;
use crate::plan::{self, Plan};
use crate::render::{Preview, budget_bytes, check_prompts, settle_lengths};
use crate::trace;

/// The arguments of `onbeat plan`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    trace: TraceFlags,
    #[command(flatten)]
    timing: TimingFlags,
    #[command(flatten)]
    cancel: CancelFlags,
    #[command(flatten)]
    body: BodyFlags,
    #[command(flatten)]
    shard: ShardFlags,
    #[command(flatten)]
    unused: ReplayOnly,

    /// Add the JSON body of each request, exactly as it would be sent; null stands where a reply of
    /// the server would.
    #[arg(long)]
    bodies: bool,

    /// Print only the first so many requests (default: all).
    #[arg(long, value_name = "N", value_parser = whole::<u64>)]
    limit: Option<u64>,
}

/// Options of `replay` that a plan does not depend on: taken, so that a replay command can be shown
/// as a plan by changing one word, and said to change nothing. Among them are those of users, of
/// which a plan of an agentic trace depends on some.
#[derive(Clone, Debug)]
struct ReplayOnly {
    /// The long names of those that were typed, with their dashes.
    given: Vec<String>,
    users: UserFlags,
}

/// Which options of users a plan depends on: who is left out, and what their bodies are.
const OF_USERS: [&str; 9] = [
    "min-requests",
    "max-context",
    "advance-min",
    "advance-max",
    "prompt-seed",
    "warm-prefix-pct",
    "reply-mode",
    "stream-all",
    "tool-role",
];

/// Prints a plan.
///
/// # Errors
/// When the trace cannot be read, the options leave nothing to send, or stdout cannot be written.
pub fn run(args: &Args, out: &mut dyn Write) -> Result<u8, EngineError> {
    let options = args.cancel.apply(args.timing.options(args.body.seed)?);
    let mut render = args.body.options()?;
    let greedy = ["--gpu-telemetry", "--server-metrics"].into_iter();
    let greedy = greedy.filter(|name| args.unused.given.iter().any(|given| given == name));
    let path =
        args.trace.path_beside(&greedy.map(|name| (name, Vec::new())).collect::<Vec<_>>())?;
    let mut trace = trace::read(path, &args.trace.options())?;
    let shard = args.shard.part(|name| std::env::var(name).ok())?;
    let limit = args.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    if let Some(agentic) = &trace.recorded.agentic {
        tell_of_options(args, &trace);
        let users = args.unused.users.options(args.body.seed, &GoalFlags::default())?;
        let mut scripts = plan::scripts(&trace, &users.script)?;
        if let Some(shard) = shard {
            scripts.shard(&trace, shard)?;
        }
        let within = users.advance.max > 0.0;
        let steps = plan::steps(&trace, &scripts, &users.script, within)?;
        let texts = |render| steps::scenes(&trace, &scripts, &users, render);
        let scenes = args.bodies.then(|| texts(render)).transpose()?;
        let scenes = scenes.as_ref();
        let shown = steps::Shown { scenes, scripts: &scripts, steps: &steps, limit };
        return steps::run(&trace, agentic, &shown, out);
    }
    trace::check_scheduled(path, &trace)?;
    let synthesised = plan::synthesise(&mut trace, &options)?;
    let mut plan = plan::build(&trace, &options)?;
    if let Some(shard) = shard {
        plan = plan.shard(&trace, shard)?;
    }
    settle_lengths(&mut plan, &trace, &render);
    // What replay refuses is refused here, shown or not.
    render = render.for_trace(&trace, options.force_min_tokens)?;
    if args.bodies {
        check_prompts(&plan, &trace)?;
        let wanted: HashSet<u32> = plan.record_of.iter().take(limit).copied().collect();
        let memory = budget_bytes(&render);
        trace::load_prompts(path, &mut trace, &|record| wanted.contains(&record), memory)?;
    }
    tell_what_is_odd(args, &trace, &plan, &synthesised);
    let mut out = BufWriter::with_capacity(1 << 16, out);
    let bodies = args.bodies.then(|| Preview::new(&plan, &trace, &render)).transpose()?;
    if bodies.as_ref().is_some_and(|bodies| bodies.is_open(limit)) {
        tell(
            "later turns repeat the server's replies, which are yet to come: null stands for them",
        );
    }
    let printed = print(&plan, &trace, bodies.as_ref(), limit, &mut out).and_then(|()| out.flush());
    match printed {
        // Whoever closed the pipe has read what it wanted.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        Err(error) => Err(printing(error)),
        Ok(()) => Ok(0),
    }
}

/// Warnings of the trace, and which of the options that were typed change nothing.
fn tell_of_options(args: &Args, trace: &Trace) {
    for warning in &trace.warnings {
        tell(&warning.to_string());
    }
    let mut given = flags::given(&args.trace, &args.timing, &args.cancel, &args.body);
    let shown = |name: &&String| is_shown(name.trim_start_matches("--"));
    given.of_users = args.unused.given.iter().filter(shown).cloned().collect();
    let typed = [args.timing.warnings(), args.body.warnings()].concat();
    let vain = trace::without_meaning(&given, trace);
    typed.iter().chain(&vain).chain(&args.unused.told()).for_each(|warning| tell(warning));
}

/// Warnings, and how many rows are left out.
fn tell_what_is_odd(args: &Args, trace: &Trace, plan: &Plan, synthesised: &[String]) {
    tell_of_options(args, trace);
    plan.warnings.iter().chain(synthesised).for_each(|warning| tell(warning));
    let left_out = plan.left_out.words();
    if !left_out.is_empty() {
        let planned = plan.part.as_ref().map_or(plan.rows.len(), |part| part.planned as usize);
        let all = trace.source.rows * u64::from(plan.copies);
        let copies = if plan.copies == 1 { "" } else { " of all copies" };
        let (rows, are) = (counted(all, "row"), agreeing(planned as u64, "is", "are"));
        tell(&format!("{planned} of {rows}{copies} {are} planned: {}", left_out.join(", ")));
    }
}

/// One line of the output. The last three keys are there only where they say something.
#[derive(Serialize, schemars::JsonSchema)]
pub(super) struct Line<'a> {
    /// Its place in send order, from zero.
    pub(super) request: u32,
    /// 1-based line or row of the trace.
    pub(super) row: u64,
    /// The file that it is from, without its folder.
    pub(super) source: &'a str,
    /// Name of its session.
    pub(super) session: &'a str,
    /// Turn in its session, from zero.
    pub(super) turn: u32,
    /// When it is due, in nanoseconds from zero; null: its predecessor decides.
    pub(super) due_ns: Option<i64>,
    /// The request whose end it waits for.
    pub(super) after: Option<u32>,
    /// How long after that end it is due, where that decides.
    pub(super) think_ns: Option<i64>,
    /// Prompt tokens.
    pub(super) input_tokens: Option<u32>,
    /// The limit on output tokens, as sent.
    pub(super) max_tokens: Option<u32>,
    /// The least output tokens, as sent.
    pub(super) min_tokens: Option<u32>,
    /// The ids of its prompt's blocks, as the trace has them.
    pub(super) hash_ids: &'a [u64],
    /// Its copy of the trace, from zero; only with --tile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) copy: Option<u32>,
    /// How long after its sending it is given up; only where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cancel_after_ns: Option<i64>,
    /// Ends of sub-agents that it waits for as well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) also_after: Vec<u32>,
}

fn print(
    plan: &Plan,
    trace: &Trace,
    bodies: Option<&Preview<'_>>,
    limit: usize,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut line = Vec::new();
    let mut hash_ids = Vec::new();
    for row in plan.rows.iter().take(limit) {
        let record = &trace.records[plan.record_of[row.request.as_usize()] as usize];
        hash_ids.clear();
        hash_ids.extend(trace.blocks_of(record).iter());
        line.clear();
        serde_json::to_writer(&mut line, &line_of(plan, trace, row, &hash_ids))?;
        if let Some(bodies) = bodies {
            // The body is put in as it stands, so that its bytes are the ones that are sent.
            let brace = line.pop();
            debug_assert_eq!(brace, Some(b'}'), "a line is one object");
            line.extend_from_slice(b",\"body\":");
            bodies.append(row.request, &mut line);
            line.push(b'}');
        }
        line.push(b'\n');
        out.write_all(&line)?;
    }
    Ok(())
}

fn line_of<'a>(plan: &'a Plan, trace: &'a Trace, row: &PlanRow, hash_ids: &'a [u64]) -> Line<'a> {
    Line {
        request: plan.number(row.request).0,
        row: row.row,
        source: trace
            .recorded
            .files
            .get(row.source as usize)
            .map_or(&trace.source.name, |f| &f.name),
        session: &plan.sessions[row.session.as_usize()],
        turn: row.turn,
        due_ns: row.due.map(|due| due.0),
        after: row.after.map(|after| plan.number(after).0),
        think_ns: row.think_ns,
        input_tokens: row.input_tokens,
        max_tokens: row.max_tokens,
        min_tokens: row.min_tokens,
        hash_ids,
        copy: (plan.copies > 1).then(|| plan.copy(row.request)),
        cancel_after_ns: plan.cancel_after(row.request),
        also_after: Vec::new(),
    }
}

/// A line on stderr; a stderr that nobody reads is no reason to stop.
pub(crate) fn tell(words: &str) {
    let _unread = writeln!(io::stderr(), "onbeat: {}", printable(words));
}

/// Whether a plan of some trace depends on an option of `replay` that is not of the schedule.
fn is_shown(name: &str) -> bool {
    OF_USERS.contains(&name)
}

impl ReplayOnly {
    fn options() -> Command {
        let options = <RunFlags as clap::Args>::augment_args(Command::new("replay"));
        let options = <GoalFlags as clap::Args>::augment_args(options);
        let options = <LiveFlags as clap::Args>::augment_args(options);
        let options = <StartFlags as clap::Args>::augment_args(options);
        let options = <PeerFlags as clap::Args>::augment_args(options);
        let options = <UserFlags as clap::Args>::augment_args(options);
        <TargetFlags as clap::Args>::augment_args(options)
    }

    fn told(&self) -> Option<String> {
        let vain = |name: &&String| !is_shown(name.trim_start_matches("--"));
        let given: Vec<&str> = self.given.iter().filter(vain).map(String::as_str).collect();
        let given = given.join(", ");
        (!given.is_empty()).then(|| format!("a plan does not depend on {given}"))
    }
}

impl clap::Args for ReplayOnly {
    fn augment_args(command: Command) -> Command {
        let options = Self::options();
        let hidden = |option: &clap::Arg| option.get_long().is_none_or(|name| !is_shown(name));
        command.args(options.get_arguments().cloned().map(|option| {
            let hidden = hidden(&option);
            option.hide(hidden)
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ReplayOnly {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let typed = |option: &&clap::Arg| {
            matches.value_source(option.get_id().as_str()) == Some(ValueSource::CommandLine)
        };
        let name = |option: &clap::Arg| format!("--{}", option.get_long().unwrap_or_default());
        let given = Self::options().get_arguments().filter(typed).map(name).collect();
        Ok(Self { given, users: UserFlags::from_arg_matches(matches)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
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

    fn printed(trace: &str, line: &str) -> Result<String, String> {
        let mut file = tempfile::Builder::new().prefix("t").suffix(".jsonl").tempfile();
        let file = file.as_mut().expect("a temporary file");
        file.write_all(trace.as_bytes()).expect("written");
        let path = file.path().to_str().expect("a plain path");
        let words = ["onbeat", path].into_iter().chain(line.split_whitespace());
        let only = Only::try_parse_from(words).map_err(|error| error.to_string())?;
        let mut out = Vec::new();
        run(&only.args, &mut out).map_err(|error| error.to_string())?;
        let name = file.path().file_name().expect("a name").to_str().expect("plain").to_owned();
        Ok(String::from_utf8(out).expect("UTF-8").replace(&name, "t.jsonl"))
    }

    const TRACE: &str = "\
        {\"chat_id\":7,\"parent_chat_id\":-1,\"timestamp\":1.5,\"input_length\":20,\
        \"output_length\":4,\"turn\":1,\"hash_ids\":[3,18446744073709551615]}\n\
        {\"chat_id\":8,\"parent_chat_id\":7,\"timestamp\":2,\"input_length\":2,\
        \"output_length\":0,\"turn\":2}\n";

    #[test]
    fn a_line_has_its_keys_in_their_order() {
        let expected = "{\"request\":0,\"row\":1,\"source\":\"t.jsonl\",\"session\":\"7\",\
             \"turn\":0,\"due_ns\":0,\"after\":null,\"think_ns\":null,\"input_tokens\":20,\
             \"max_tokens\":4,\"min_tokens\":null,\"hash_ids\":[3,18446744073709551615]}\n\
             {\"request\":1,\"row\":2,\"source\":\"t.jsonl\",\"session\":\"7\",\"turn\":1,\
             \"due_ns\":250000000,\"after\":0,\"think_ns\":null,\"input_tokens\":2,\
             \"max_tokens\":1,\"min_tokens\":null,\"hash_ids\":[]}\n";
        let line = "--replay-speedup 2 --url http://elsewhere:1 --cores 2";
        assert_eq!(printed(TRACE, line), Ok(expected.to_owned()));
        let first = expected.lines().next().expect("two lines").to_owned() + "\n";
        assert_eq!(printed(TRACE, "--replay-speedup 2 --limit 1"), Ok(first));
    }

    #[test]
    fn bodies_are_objects_with_the_prompts_words() {
        let text = printed(TRACE, "--bodies --model m").expect("printed");
        let last = text.lines().last().expect("two lines");
        let line: serde_json::Value = serde_json::from_str(last).expect("JSON");
        let content = line["body"]["messages"][0]["content"].as_str().expect("a prompt");
        assert_eq!(content.matches(' ').count(), 2);
        assert_eq!(line["body"]["model"], "m");
        assert_eq!(line["body"]["max_completion_tokens"], 1);
    }

    #[test]
    fn lengths_are_those_that_are_sent() {
        let rows = "\
            {\"timestamp\":0,\"input_length\":2,\"output_length\":5}\n\
            {\"timestamp\":0,\"text_input\":\"a\",\"output_length\":5,\
            \"extra\":{\"min_tokens\":3}}\n\
            {\"timestamp\":0,\"output_length\":5,\
            \"payload\":{\"messages\":[1],\"max_tokens\":7}}\n";
        let options = "--max-osl 4 --extra-inputs max_completion_tokens:99";
        for line in [options.to_owned(), format!("{options} --bodies")] {
            let text = printed(rows, &line).expect("printed");
            let sent: Vec<serde_json::Value> =
                text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
            let said = |at: usize, key: &str| sent[at][key].as_u64();
            assert_eq!([0, 1, 2].map(|at| said(at, "max_tokens")), [Some(99), Some(99), Some(7)]);
            assert_eq!([0, 1, 2].map(|at| said(at, "min_tokens")), [None, Some(3), None]);
            if line.contains("--bodies") {
                assert_eq!(sent[1]["body"]["max_completion_tokens"], 99, "{text}");
                assert_eq!(sent[1]["body"]["min_tokens"], 3, "{text}");
                assert_eq!(sent[2]["body"]["max_tokens"], 7, "{text}");
            }
        }
    }

    #[test]
    fn every_option_that_may_mean_nothing_is_known_by_its_name() {
        let line = "t --model m --extra-inputs n:1 --no-streaming --no-include-usage \
                    --per-chunk-usage \
                    --use-legacy-max-tokens --max-osl 1 --synthesis-output-len-multiplier 2 \
                    --context-mode deltas_with_responses --max-isl 1 --omit-kv-hints \
                    --session-key none --no-force-min-tokens --replay-cancellations --lenient \
                    --isl-block-size 8 --temperature 0.5 --top-p 1 --top-k 5 \
                    --repetition-penalty 1";
        let words = ["onbeat"].into_iter().chain(line.split_whitespace());
        let args = Only::try_parse_from(words).expect("parses").args;
        let given =
            |args: &Args| flags::given(&args.trace, &args.timing, &args.cancel, &args.body).options;
        let mut typed = given(&args);
        let mut all: Vec<&str> = trace::options_with_meaning().collect();
        typed.sort_unstable();
        all.sort_unstable();
        assert_eq!(typed, all);
        assert!(typed.iter().all(|name| line.contains(name)), "{typed:?}");
        let args = Only::try_parse_from(["onbeat", "t"]).expect("parses").args;
        assert!(given(&args).is_empty(), "{:?}", given(&args));
    }

    #[test]
    fn options_a_plan_does_not_depend_on_are_told_and_hidden() {
        let words = ["onbeat", "t", "--url", "x", "--pacing", "spin"];
        let only = Only::try_parse_from(words).expect("parses");
        let told = only.args.unused.told().expect("two");
        assert!(told.contains("--url") && told.contains("--pacing"), "{told}");
        let help = Only::try_parse_from(["onbeat", "--help"]).expect_err("help").to_string();
        assert!(help.contains("--bodies") && !help.contains("--pacing"));
    }

    #[test]
    fn options_of_users_that_a_plan_depends_on_are_in_its_help() {
        let help = Only::try_parse_from(["onbeat", "--help"]).expect_err("help").to_string();
        for name in OF_USERS {
            assert!(help.contains(&format!("--{name}")), "{name}");
        }
        let words = ["onbeat", "t", "--max-context", "9", "--max-users", "3"];
        let only = Only::try_parse_from(words).expect("parses");
        let told = only.args.unused.told().expect("one");
        assert!(told.contains("--max-users") && !told.contains("--max-context"), "{told}");
    }

    #[test]
    fn a_prompt_too_long_to_be_sent_has_no_body() {
        let trace = "{\"timestamp\":0,\"input_length\":4294967294,\"output_length\":1}\n";
        assert!(printed(trace, "").is_ok());
        let words = printed(trace, "--bodies").expect_err("four thousand million words");
        assert!(
            words.contains(".jsonl: line 1: field \"input_length\": found 4294967294"),
            "{words}"
        );
    }

    #[test]
    fn a_bad_trace_prints_nothing() {
        let words = printed("{\"timestamp\":NaN,\"input_length\":1}", "").expect_err("refused");
        assert!(words.contains("line 1: field \"timestamp\": found NaN"), "{words}");
    }
}
