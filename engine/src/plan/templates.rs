//! The plan of a run whose users decide what is sent: the trace's requests as templates.
//!
//! Row and record are the same number, and sessions are the trace's. Nothing is due; a template
//! names the request it follows as recorded, what its part waits, and what an infinite cache would
//! have of it when its conversation is played alone and in file order. Which templates are sent, by
//! whom, how often and on which core is decided during the run.

use onbeat_shared::counted::{agreeing, counted};
use onbeat_shared::log::plan_row::PlanRow;
use onbeat_shared::log::recorded_row::RecordedRow;
use onbeat_shared::trace::Trace;
use onbeat_shared::trace::agentic::Kind;
use onbeat_shared::units::{CoreIndex, RequestIndex, SessionIndex};

use crate::plan::script::{Cue, Script, Scripts};
use crate::plan::{LeftOut, Plan, PlanMode};

/// Makes scripts into the plan that their requests are templates of.
///
/// # Panics
/// When the scripts are of another trace.
#[must_use]
pub fn templates(trace: &Trace, scripts: &Scripts) -> Plan {
    let mut rows: Vec<PlanRow> = (0_u32..)
        .zip(&trace.records)
        .map(|(record, facts)| PlanRow {
            request: RequestIndex(record),
            session: facts.session,
            turn: facts.turn,
            core: CoreIndex(0),
            target: 0,
            row: facts.row,
            due: None,
            after: None,
            source: trace.recorded.file_of(record),
            think_ns: None,
            input_tokens: Some(facts.input_tokens),
            max_tokens: Some(facts.output_tokens.unwrap_or(1).max(1)),
            min_tokens: None,
            ideal_cached_tokens: None,
            ideal_set_tokens: None,
            blocks: facts.block_count,
            body_bytes: None,
        })
        .collect();
    let has_blocks = !trace.blocks.is_empty();
    for script in &scripts.scripts {
        place(script, 0, None, has_blocks, &mut rows);
    }
    Plan {
        rows,
        record_of: (0_u32..).take(trace.records.len()).collect(),
        copy_of: Vec::new(),
        copies: 1,
        cancel_after: Vec::new(),
        recorded: recorded(trace),
        sessions: names(trace),
        mode: PlanMode::Users,
        left_out: LeftOut::default(),
        warnings: warnings(scripts),
        part: None,
    }
}

/// Fills in what a part's requests follow, wait and share.
fn place(
    script: &Script,
    part: usize,
    start: Option<RequestIndex>,
    has_blocks: bool,
    rows: &mut [PlanRow],
) {
    let Some(part) = script.parts.get(part) else { return };
    let mut last = start;
    for cue in &part.cues {
        match cue {
            Cue::Request(turn) => {
                let row = &mut rows[turn.record as usize];
                row.after = last;
                row.think_ns = last.map(|_any| turn.wait.ns);
                let shared = script.shared_of(turn).first().map_or(0, |shared| shared.tokens);
                row.ideal_cached_tokens = has_blocks.then_some(shared);
                row.ideal_set_tokens = has_blocks.then_some(turn.overlap);
                last = Some(RequestIndex(turn.record));
            }
            Cue::Agent { part, .. } => place(script, usize::from(*part), last, has_blocks, rows),
            Cue::Nothing => {}
        }
    }
}

fn names(trace: &Trace) -> Vec<String> {
    let sessions = u32::try_from(trace.sessions.len()).expect("no more sessions than entries");
    (0..sessions).map(|session| trace.session_name(SessionIndex(session))).collect()
}

/// What the trace recorded of the answers.
fn recorded(trace: &Trace) -> Vec<RecordedRow> {
    let calls = trace.recorded.agentic.iter().flat_map(|agentic| &agentic.calls);
    let rows = (0_u32..).zip(calls).map(|(request, call)| RecordedRow {
        request: RequestIndex(request),
        cached_tokens: None,
        duration_ns: call.api_ns,
        first_token_ns: call.first_token_ns,
        cancelled: None,
        streamed: match call.kind {
            Kind::Streamed => Some(true),
            Kind::Whole => Some(false),
            Kind::Unknown => None,
        },
        place: Some(call.place),
    });
    rows.filter(|row| !row.is_empty()).collect()
}

/// What whoever plays the scripts should know.
fn warnings(scripts: &Scripts) -> Vec<String> {
    let mut warnings = Vec::new();
    let left_out = scripts.pool.words();
    if !left_out.is_empty() {
        warnings.push(format!("not played: {}", left_out.join(", ")));
    }
    if scripts.clamped > 0 {
        let are = agreeing(scripts.clamped, "is", "are");
        let times = counted(scripts.clamped, "think time");
        warnings.push(format!("{times} {are} longer than the gap to fill: cut to it"));
    }
    warnings
}
