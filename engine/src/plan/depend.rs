//! Sessions as the plan numbers them, and which request waits for which.
//!
//! In the open loop a turn waits for the end of the previous planned turn of its session; in the
//! closed one it then thinks as long as the record says: from the end of that turn's recorded
//! answer to its own start. In the strict one nothing waits but a row without a time of its own,
//! which always waits its delay after the turn before it. An edge always points to a smaller
//! request index.

use onbeat_shared::trace::Trace;
use onbeat_shared::units::{RequestIndex, SessionIndex};

use crate::plan::schedule::Send;
use crate::plan::{PlanMode, PlanOptions};

/// A request's session, its place in it, and what it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) session: SessionIndex,
    pub(crate) turn: u32,
    pub(crate) after: Option<RequestIndex>,
    /// What it waits after that, where its own time does not count.
    pub(crate) think_ns: Option<i64>,
}

/// The links of all requests and the names of their sessions.
#[derive(Clone, Debug)]
pub(crate) struct Chains {
    pub(crate) links: Vec<Link>,
    pub(crate) names: Vec<String>,
}

/// What is known of a trace's session once one of its requests was met.
#[derive(Clone, Copy)]
struct Met {
    session: SessionIndex,
    turns: u32,
    last: RequestIndex,
}

/// Numbers the sessions in order of their first request, and links their turns.
pub(crate) fn chains(trace: &Trace, sends: &[Send], options: &PlanOptions) -> Chains {
    // In the strict order a later turn may leave first: places in the session are by turn even so.
    let turns = turns(trace, sends);
    let copies = sends.iter().map(|send| send.copy as usize + 1).max().unwrap_or(0);
    let mut met: Vec<Option<Met>> = vec![None; trace.sessions.len() * copies];
    let mut names = Vec::new();
    let mut links = Vec::with_capacity(sends.len());
    for (request, send) in (0_u32..).zip(sends) {
        let request = RequestIndex(request);
        let known = trace.records[send.record as usize].session;
        let slot = &mut met[send.copy as usize * trace.sessions.len() + known.as_usize()];
        // A row without a time of its own waits for the turn before it whatever the rule.
        let delay = trace.recorded.delay_ns.get(send.record as usize).copied().flatten();
        let waits = options.mode != PlanMode::OpenLoopStrict || delay.is_some();
        let after = slot.as_ref().filter(|_| waits).map(|met| met.last);
        let thinks = options.mode == PlanMode::ClosedLoop || delay.is_some();
        let think = |after: RequestIndex| {
            let before = &sends[after.as_usize()];
            let think_ns = match delay {
                Some(delay_ns) => options.speedup.divide(i128::from(delay_ns)).unwrap_or(i64::MAX),
                None => think_ns(trace, before, send, options),
            };
            options.think_cap_ns.map_or(think_ns, |cap_ns| think_ns.min(cap_ns))
        };
        let think_ns = after.filter(|_| thinks).map(think);
        let number = || {
            names.push(name(trace, known, send.copy));
            let session = u32::try_from(names.len() - 1).expect("no more sessions than requests");
            Met { session: SessionIndex(session), turns: 0, last: request }
        };
        let met = slot.get_or_insert_with(number);
        let turn = turns.as_ref().map_or(met.turns, |turns| turns[request.as_usize()]);
        met.turns += 1;
        met.last = request;
        links.push(Link { session: met.session, turn, after, think_ns });
    }
    Chains { links, names }
}

/// The time from the recorded end of a turn to the start of the next one, 0 when they overlap. The
/// end of a turn that was recorded without a duration is its start.
fn think_ns(trace: &Trace, before: &Send, send: &Send, options: &PlanOptions) -> i64 {
    let gap_ns = send.due_ns.saturating_sub(before.due_ns).max(0);
    let recorded = trace.recorded.duration_ns.get(before.record as usize).copied().flatten();
    let service_ns = options.clock().divide(i128::from(recorded.unwrap_or(0))).unwrap_or(i64::MAX);
    gap_ns.saturating_sub(service_ns).max(0)
}

/// What a copy's session is called: as recorded in the first copy, with the copy's number in
/// others.
fn name(trace: &Trace, session: SessionIndex, copy: u32) -> String {
    let name = trace.session_name(session);
    if copy == 0 { name } else { format!("{name}~{copy}") }
}

/// Place of each request among the planned turns of its session; `None` when it is the order of
/// sending anyway.
fn turns(trace: &Trace, sends: &[Send]) -> Option<Vec<u32>> {
    let record = |request: u32| &trace.records[sends[request as usize].record as usize];
    let session = |request: u32| (sends[request as usize].copy, record(request).session);
    let mut by_turn: Vec<u32> = (0_u32..).take(sends.len()).collect();
    by_turn.sort_by_key(|&request| (session(request), record(request).turn));
    let same = |pair: &[u32]| session(pair[0]) == session(pair[1]);
    if by_turn.windows(2).all(|pair| !same(pair) || pair[0] < pair[1]) {
        return None;
    }
    let mut turns = vec![0; sends.len()];
    for pair in by_turn.windows(2).filter(|pair| same(pair)) {
        turns[pair[1] as usize] = turns[pair[0] as usize] + 1;
    }
    Some(turns)
}
