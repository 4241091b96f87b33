//! Who waits for whom in an agentic trace: every request's predecessors and its think time.
//!
//! A view of the scripts that users play (see [`crate::plan::script`]) as a plan shows them: with
//! think-only timing, without a longest delay, and all conversations. A request follows the one
//! before it in its session. A sub-agent starts when it is reached: once the request before it has
//! ended, side by side with its neighbours, and at once at the start of a conversation. What comes
//! after sub-agents waits for the last request of each, too, and of those inside them; an empty one
//! is passed over. Where a script counts from the start of the request before, the recorded time
//! of that one's answer is taken off. Requests are numbered as they stand in their files, so that
//! one never waits for a later one. A schedule is not made here: users decide when to start.

use onbeat_shared::trace::Trace;
use onbeat_shared::trace::agentic::Agentic;
use onbeat_shared::units::RequestIndex;

use crate::plan::script::{Cue, From, Script, ScriptOptions, Turn, all};

/// What one request waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The request before it, or before the sub-agent that it starts.
    pub after: Option<RequestIndex>,
    /// How long it waits after the end of that one.
    pub think_ns: Option<i64>,
    /// Last requests of the sub-agents before it: it waits for the end of each.
    pub also_after: Vec<RequestIndex>,
}

/// What every request of a trace waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// One for each record, in order.
    pub steps: Vec<Step>,
    /// Think times that were cut to the gap they fill.
    pub cut: u64,
}

/// Finds what every request waits for; `None` when the trace is not agentic.
#[must_use]
pub fn steps(trace: &Trace) -> Option<Steps> {
    let agentic = trace.recorded.agentic.as_ref()?;
    let options = ScriptOptions {
        max_delay_ns: i64::MAX,
        max_context: u32::MAX,
        min_requests: 0,
        ..ScriptOptions::default()
    };
    let scripts = all(trace, &options).ok()?;
    let mut steps = vec![Step::default(); trace.records.len()];
    for script in &scripts.scripts {
        Walk { agentic, script, steps: &mut steps }.part(0, None);
    }
    Some(Steps { steps, cut: scripts.clamped })
}

struct Walk<'a> {
    agentic: &'a Agentic,
    script: &'a Script,
    steps: &'a mut [Step],
}

impl Walk<'_> {
    /// Goes through one part, which starts when `start` has ended; gives the requests that end it.
    fn part(&mut self, part: u16, start: Option<u32>) -> Vec<RequestIndex> {
        let (mut last, mut ends) = (None, Vec::new());
        let script = self.script;
        let cues = script.parts.get(usize::from(part)).map_or(&[][..], |part| &part.cues);
        for cue in cues {
            match cue {
                Cue::Request(turn) => {
                    self.request(turn, last, start, std::mem::take(&mut ends));
                    last = Some(turn.record);
                }
                Cue::Agent { part, .. } => ends.extend(self.part(*part, last.or(start))),
                Cue::Nothing => {}
            }
        }
        if ends.is_empty() {
            ends.extend(last.map(RequestIndex));
        }
        ends
    }

    fn request(
        &mut self,
        turn: &Turn,
        last: Option<u32>,
        start: Option<u32>,
        mut ends: Vec<RequestIndex>,
    ) {
        let mut after = last.or(start).map(RequestIndex);
        if after.is_none() && !ends.is_empty() {
            // Nothing but sub-agents came before it.
            after = Some(ends.remove(0));
        }
        let think_ns = match (turn.wait.from, last) {
            (From::Start, Some(last)) => {
                let api_ns = self.agentic.calls[last as usize].api_ns.unwrap_or(0);
                turn.wait.ns.saturating_sub(api_ns).max(0)
            }
            _ => turn.wait.ns,
        };
        let step = &mut self.steps[turn.record as usize];
        step.think_ns = after.map(|_any| think_ns);
        step.after = after;
        step.also_after = ends;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(t: u32, more: &str) -> String {
        format!("{{\"t\":{t},\"in\":64,\"out\":1,\"hash_ids\":[1]{more}}}")
    }

    fn agent(requests: &[String]) -> String {
        format!("{{\"type\":\"subagent\",\"t\":1,\"requests\":[{}]}}", requests.join(","))
    }

    /// Of a request: its predecessor, its think time in seconds, and whom else it waits for.
    type Waits = (Option<u32>, Option<i64>, Vec<u32>);

    /// What each request waits for, and how many think times were cut.
    fn found(requests: &[String]) -> (Vec<Waits>, u64) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("t.json");
        let text = format!("{{\"models\":[],\"requests\":[{}]}}", requests.join(","));
        std::fs::write(&path, text).expect("written");
        let trace = crate::trace::read(&path, &crate::trace::TraceOptions::default());
        let steps = steps(&trace.expect("reads")).expect("conversations");
        let plain = |step: &Step| {
            let also = step.also_after.iter().map(|request| request.0).collect();
            let think_s = step.think_ns.map(|nanos| nanos / 1_000_000_000);
            (step.after.map(|request| request.0), think_s, also)
        };
        (steps.steps.iter().map(plain).collect(), steps.cut)
    }

    #[test]
    fn a_parent_waits_for_all_its_sub_agents() {
        let inner = agent(&[request(0, "")]);
        let first = agent(&[request(0, ""), inner]);
        let second = agent(&[request(0, ""), request(3, "")]);
        let thinks = request(20, ",\"think_time\":4");
        let (steps, cut) = found(&[request(0, ""), first, second, agent(&[]), thinks]);
        let expected = [
            (None, None, vec![]),
            (Some(0), Some(0), vec![]),
            (Some(1), Some(0), vec![]),
            (Some(0), Some(0), vec![]),
            (Some(3), Some(3), vec![]),
            // The first sub-agent ends with the one inside it.
            (Some(0), Some(4), vec![2, 4]),
        ];
        assert_eq!((steps, cut), (expected.to_vec(), 0));
    }

    #[test]
    fn a_conversation_may_start_with_sub_agents() {
        let both = [agent(&[request(0, "")]), agent(&[request(0, "")]), request(9, "")];
        let expected = [(None, None, vec![]), (None, None, vec![]), (Some(0), Some(0), vec![1])];
        assert_eq!(found(&both).0, expected);
    }

    #[test]
    fn think_times_beyond_the_gap_are_cut_and_missing_ones_are_what_the_answer_leaves() {
        let requests = [
            request(0, ",\"api_time\":2"),
            request(10, ""),
            request(15, ",\"think_time\":60"),
            request(12, ",\"think_time\":60"),
        ];
        let (steps, cut) = found(&requests);
        let think: Vec<_> = steps.iter().map(|(_, think_s, _)| *think_s).collect();
        assert_eq!((think, cut), (vec![None, Some(8), Some(5), Some(0)], 2));
    }
}
