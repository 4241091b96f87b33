//! `onbeat plan` of an agentic trace: its requests and what each waits for, one JSON object a line.
//!
//! The keys and their order are those of any plan. `also_after` is there where a request waits for
//! the ends of sub-agents, too. `due_ns` is 0 for what waits for nothing: when a conversation
//! starts is up to the users that replay it.

use std::io::{self, BufWriter, Write};

use onbeat_shared::counted::{agreeing, counted};
use onbeat_shared::trace::Trace;
use onbeat_shared::trace::agentic::Agentic;

use crate::cli::plan::{Line, tell};
use crate::cli::printing;
use crate::error::EngineError;
use crate::plan::Steps;

/// Prints the steps of an agentic trace, at most so many.
///
/// # Errors
/// When stdout cannot be written.
pub(super) fn run(
    trace: &Trace,
    agentic: &Agentic,
    steps: &Steps,
    limit: usize,
    out: &mut dyn Write,
) -> Result<u8, EngineError> {
    for warning in &trace.warnings {
        tell(&warning.to_string());
    }
    if steps.cut > 0 {
        let (times, are) = (counted(steps.cut, "think time"), agreeing(steps.cut, "is", "are"));
        tell(&format!("{times} {are} longer than the gap to fill: cut to it"));
    }
    tell(
        "conversations are planned as they were recorded: options of time and bodies do not count",
    );
    let mut out = BufWriter::with_capacity(1 << 16, out);
    match print(trace, agentic, steps, limit, &mut out).and_then(|()| out.flush()) {
        // Whoever closed the pipe has read what it wanted.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        Err(error) => Err(printing(error)),
        Ok(()) => Ok(0),
    }
}

fn print(
    trace: &Trace,
    agentic: &Agentic,
    steps: &Steps,
    limit: usize,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut hash_ids = Vec::new();
    for ((request, record), step) in (0_u32..).zip(&trace.records).zip(&steps.steps).take(limit) {
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
        serde_json::to_writer(&mut *out, &line)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}
