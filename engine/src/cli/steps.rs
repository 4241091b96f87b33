//! `onbeat plan` of an agentic trace: its requests and what each waits for, one JSON object a line.
//!
//! The keys and their order are those of any plan, and its requests are those that users of a run
//! can come to: what they leave out is counted on stderr. A request's number is its place in the
//! whole trace, as in a log. `also_after` is there where a request waits for the ends of
//! sub-agents, too. `due_ns` is 0 for what waits for nothing: when a conversation
//! starts is up to the users that replay it.

use std::io::{self, BufWriter, Write};

use onbeat_shared::counted::{agreeing, counted};
use onbeat_shared::trace::Trace;
use onbeat_shared::trace::agentic::Agentic;

use crate::cli::plan::{Line, tell};
use crate::cli::printing;
use crate::error::EngineError;
use crate::plan::{Scripts, Step, Steps};
use crate::policy::options::UserOptions;
use crate::render::RenderOptions;
use crate::render::users::{SceneOptions, Scenes};

/// The texts of bodies, as users of these options send them.
///
/// # Errors
/// When the bodies cannot be written.
pub(super) fn scenes(
    trace: &Trace,
    scripts: &Scripts,
    users: &UserOptions,
    render: RenderOptions,
) -> Result<Scenes, EngineError> {
    let render = render.for_trace(trace, false)?;
    // As a run settles it, see `run::users`.
    let render = RenderOptions {
        seed: users.prompt_seed,
        legacy_max_tokens: true,
        generation: render.generation.for_model(&render.model),
        ..render
    };
    let options = SceneOptions {
        reply: users.reply,
        stream_all: users.stream_all,
        tool_role: users.tool_role,
        cores: 1,
        users: 0,
        players: 0,
    };
    Ok(Scenes::new(trace, scripts, &render, options)?)
}

/// What is printed of an agentic trace.
#[derive(Debug)]
pub(super) struct Shown<'a> {
    /// Where bodies come from, if they are shown.
    pub(super) scenes: Option<&'a Scenes>,
    /// Which conversations are played, and why others are not.
    pub(super) scripts: &'a Scripts,
    /// What their requests wait for.
    pub(super) steps: &'a Steps,
    /// At most so many requests.
    pub(super) limit: usize,
}

impl Shown<'_> {
    /// The requests.
    fn of(&self) -> impl Iterator<Item = (u32, &Step)> {
        let all = (0_u32..).zip(&self.steps.steps);
        all.filter_map(|(request, step)| Some((request, step.as_ref()?))).take(self.limit)
    }

    /// How many of the trace's requests there are, and why no more, if there are less.
    fn left_out(&self) -> Option<String> {
        let steps = &self.steps.steps;
        let planned = steps.iter().flatten().count();
        let mut why = self.scripts.pool.words();
        if let beyond @ 1.. = self.steps.beyond {
            let are = agreeing(beyond, "is", "are");
            why.push(format!("{} {are} beyond --max-context", counted(beyond, "request")));
        }
        (!why.is_empty()).then(|| {
            let requests = counted(steps.len() as u64, "request");
            let are = agreeing(planned as u64, "is", "are");
            format!("{planned} of {requests} {are} planned: {}", why.join(", "))
        })
    }
}

/// Prints the steps of an agentic trace, with their bodies where there are texts.
///
/// # Errors
/// When stdout cannot be written.
pub(super) fn run(
    trace: &Trace,
    agentic: &Agentic,
    shown: &Shown<'_>,
    out: &mut dyn Write,
) -> Result<u8, EngineError> {
    shown.left_out().iter().for_each(|words| tell(words));
    if let cut @ 1.. = shown.steps.cut {
        let (times, are) = (counted(cut, "think time"), agreeing(cut, "is", "are"));
        tell(&format!("{times} {are} longer than the gap to fill: cut to it"));
    }
    tell("conversations are planned as they were recorded: options of time do not count");
    let is_open = |scenes: &Scenes| shown.of().any(|(request, _)| scenes.is_open(request));
    if shown.scenes.is_some_and(is_open) {
        tell("prompts repeat the server's replies, which are yet to come: null stands for them");
    }
    let mut out = BufWriter::with_capacity(1 << 16, out);
    match print(trace, agentic, shown, &mut out).and_then(|()| out.flush()) {
        // Whoever closed the pipe has read what it wanted.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        Err(error) => Err(printing(error)),
        Ok(()) => Ok(0),
    }
}

fn print(
    trace: &Trace,
    agentic: &Agentic,
    shown: &Shown<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut text = Vec::new();
    let mut hash_ids = Vec::new();
    for (request, step) in shown.of() {
        let record = &trace.records[request as usize];
        hash_ids.clear();
        hash_ids.extend(trace.blocks_of(record).iter());
        let file = trace.recorded.files.get(trace.recorded.file_of(request) as usize);
        let file = file.map_or(&trace.source.name, |file| &file.name);
        let line = Line {
            request,
            row: record.row,
            source: &format!("{file}#{}", agentic.position(request)),
            session: &trace.session_name(record.session),
            turn: record.turn,
            due_ns: step.after.is_none().then_some(0),
            after: step.after.map(|after| after.0),
            think_ns: step.think_ns,
            input_tokens: Some(record.input_tokens),
            max_tokens: record.output_tokens,
            min_tokens: None,
            hash_ids: &hash_ids,
            copy: None,
            cancel_after_ns: None,
            also_after: step.also_after.iter().map(|request| request.0).collect(),
        };
        text.clear();
        serde_json::to_writer(&mut text, &line)?;
        if let Some(scenes) = shown.scenes {
            // The body is put in as it stands, so that its bytes are the ones that are sent.
            text.pop();
            text.extend_from_slice(b",\"body\":");
            scenes.append_body(request, &mut text);
            text.push(b'}');
        }
        text.push(b'\n');
        out.write_all(&text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::Value;

    use crate::cli::plan;

    #[derive(Debug, Parser)]
    struct Only {
        #[command(flatten)]
        args: plan::Args,
    }

    /// The lines of a plan of three requests, of which the last is too long to be sent.
    fn printed(line: &str) -> Vec<Value> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("t.json");
        let request = |input: u32, more: &str| {
            let ids: Vec<u32> = (1..=input / 64).collect();
            format!("{{\"t\":1,\"in\":{input},\"out\":9,\"hash_ids\":{ids:?}{more}}}")
        };
        let requests = [request(100, ""), request(300, ",\"type\":\"n\""), request(400, "")];
        let requests = requests.join(",");
        let text = format!("{{\"models\":[],\"tool_tokens\":100,\"requests\":[{requests}]}}");
        std::fs::write(&path, text).expect("written");
        let words = ["plan", path.to_str().expect("plain")];
        let words = words.into_iter().chain(line.split_whitespace());
        let only = Only::try_parse_from(words).expect("parses");
        let mut out = Vec::new();
        plan::run(&only.args, &mut out).expect("a plan");
        let text = String::from_utf8(out).expect("UTF-8");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    #[test]
    fn bodies_are_those_of_a_user_who_hears_what_was_recorded() {
        let lines = printed("--bodies --reply-mode recorded --max-context 300");
        let words = |body: &Value| -> Vec<usize> {
            let messages = body["messages"].as_array().expect("messages");
            let text = |message: &Value| message["content"].as_str().map(str::to_owned);
            let count = |text: String| text.split_whitespace().count();
            messages.iter().map(|message| text(message).map_or(0, count)).collect()
        };
        assert_eq!(words(&lines[0]["body"]), [100]);
        assert_eq!(words(&lines[1]["body"]), [100, 9, 191]);
        assert_eq!(lines[1]["body"]["stream"], false);
        assert_eq!(lines[1]["body"]["max_tokens"], 9, "as users ask");
        assert_eq!(lines.len(), 2, "the last one is never sent");
        let live = printed("--bodies --max-context 300 --stream-all");
        assert_eq!(words(&live[1]["body"]), [100, 0, 191]);
        assert_eq!(live[1]["body"]["messages"][1]["content"], Value::Null);
        assert_eq!(live[1]["body"]["stream"], true);
        let other = printed("--bodies --max-context 300 --prompt-seed 7 --warm-prefix-pct 0");
        assert_ne!(other[0]["body"], live[0]["body"]);
        assert_eq!(printed("")[1].get("body"), None);
    }
}
