//! Who waits for whom in an agentic trace: every request's predecessors and its think time.
//!
//! A view of the scripts that users play (see [`crate::plan::script`]) as a plan shows them: with
//! think-only timing and without a longest delay. Conversations that are not played are left out,
//! and so is what nobody comes to: a request with more input than `--max-context` ends its part. A
//! user that begins within its conversation may begin behind one. A request follows the one before
//! it in its session. A sub-agent starts when it is reached: once the request before it has
//! ended, side by side with its neighbours, and at once at the start of a conversation. What comes
//! after sub-agents waits for the last request of each, too, and of those inside them; an empty one
//! is passed over. Where a script counts from the start of the request before, the recorded time
//! of that one's answer is taken off. Requests are numbered as they stand in their files, so that
//! one never waits for a later one. A schedule is not made here: users decide when to start.

use onbeat_shared::trace::Trace;
use onbeat_shared::trace::agentic::Agentic;
use onbeat_shared::units::RequestIndex;

use crate::plan::PlanError;
use crate::plan::script::{Cue, From, Script, ScriptOptions, Scripts, Turn, all};

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
    /// One for each record, in order; `None`: it is never sent.
    pub steps: Vec<Option<Step>>,
    /// Requests of conversations that are played which nobody comes to: they, or what comes before
    /// them, have more input tokens than is allowed.
    pub beyond: u64,
    /// Think times that were cut to the gap they fill.
    pub cut: u64,
}

/// Finds what every request of the conversations waits for that are in the pool of `scripts`, as
/// the same trace's `options` made them; with `within`, users may begin within a conversation.
///
/// # Errors
/// When the trace is not agentic.
///
/// # Panics
/// When the scripts are of another trace.
pub fn steps(
    trace: &Trace,
    scripts: &Scripts,
    options: &ScriptOptions,
    within: bool,
) -> Result<Steps, PlanError> {
    let options = ScriptOptions {
        max_delay_ns: i64::MAX,
        max_context: options.max_context,
        min_requests: options.min_requests,
        ..ScriptOptions::default()
    };
    let shown = all(trace, &options)?;
    let agentic = trace.recorded.agentic.as_ref().expect("scripts are of conversations");
    let mut found = Steps { steps: vec![None; trace.records.len()], beyond: 0, cut: shown.clamped };
    for (script, played) in shown.scripts.iter().zip(&scripts.scripts) {
        assert_eq!(script.records, played.records, "scripts of one trace");
        if played.in_pool {
            Walk { agentic, script, steps: &mut found.steps, within }.part(0, None);
            let own = &found.steps[script.records.start as usize..script.records.end as usize];
            found.beyond += own.iter().filter(|step| step.is_none()).count() as u64;
        }
    }
    Ok(found)
}

struct Walk<'a> {
    agentic: &'a Agentic,
    script: &'a Script,
    steps: &'a mut [Option<Step>],
    within: bool,
}

impl Walk<'_> {
    /// Goes through one part, which starts when `start` has ended; gives the requests that end it.
    fn part(&mut self, part: u16, start: Option<u32>) -> Vec<RequestIndex> {
        let (mut last, mut ends, mut behind) = (None, Vec::new(), false);
        let script = self.script;
        let cues = script.parts.get(usize::from(part)).map_or(&[][..], |part| &part.cues);
        for cue in cues {
            match cue {
                // A sub-agent is begun at its beginning, whoever begins it.
                Cue::Request(turn) if turn.too_long && (part > 0 || !self.within) => break,
                // Whoever comes to what is behind it has begun there, and never with a sub-agent.
                Cue::Request(turn) if turn.too_long => {
                    (last, ends, behind) = (None, Vec::new(), true);
                }
                Cue::Agent { .. } if behind => {}
                Cue::Request(turn) => {
                    behind = false;
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
        let think_ns = after.map(|_any| think_ns);
        self.steps[turn.record as usize] = Some(Step { after, think_ns, also_after: ends });
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

    /// The steps of a conversation as a user of these options plays it.
    fn planned(requests: &[String], options: &ScriptOptions, within: bool) -> Steps {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("t.json");
        let text = format!("{{\"models\":[],\"requests\":[{}]}}", requests.join(","));
        std::fs::write(&path, text).expect("written");
        let trace = crate::trace::read(&path, &crate::trace::TraceOptions::default());
        let trace = trace.expect("reads");
        let scripts = all(&trace, options).expect("conversations");
        steps(&trace, &scripts, options, within).expect("conversations")
    }

    fn plain(step: &Step) -> Waits {
        let also = step.also_after.iter().map(|request| request.0).collect();
        let think_s = step.think_ns.map(|nanos| nanos / 1_000_000_000);
        (step.after.map(|request| request.0), think_s, also)
    }

    /// What each request waits for, and how many think times were cut.
    fn found(requests: &[String]) -> (Vec<Waits>, u64) {
        let found = planned(requests, &ScriptOptions::default(), false);
        assert_eq!(found.beyond, 0);
        (found.steps.iter().flatten().map(plain).collect(), found.cut)
    }

    #[test]
    fn nobody_comes_to_what_is_behind_a_request_that_is_too_long() {
        let long = || request(5, "").replace("64", "99");
        let inner = agent(&[request(0, ""), long(), request(0, "")]);
        let behind = agent(&[request(0, "")]);
        let requests = [request(0, ""), inner, request(1, ""), long(), behind, request(9, "")];
        let options = ScriptOptions { max_context: 64, ..ScriptOptions::default() };
        let own = planned(&requests, &options, false);
        let waits: Vec<_> = own.steps.iter().map(|step| step.as_ref().map(plain)).collect();
        let second = Some((Some(0), Some(1), vec![1]));
        let first = Some((None, None, vec![]));
        let inside = Some((Some(0), Some(0), vec![]));
        let sent = [first.clone(), inside, None, None, second];
        assert_eq!(waits, [&sent[..], &[None, None, None]].concat());
        assert_eq!(own.beyond, 5);
        let within = planned(&requests, &options, true);
        let waits: Vec<_> = within.steps.iter().map(|step| step.as_ref().map(plain)).collect();
        assert_eq!(waits, [&sent[..], &[None, None, first]].concat(), "a user may begin there");
        // A conversation that is not played has no steps, and its requests are counted elsewhere.
        let none = planned(&requests, &ScriptOptions { min_requests: 9, ..options }, false);
        assert_eq!((none.steps, none.beyond), (vec![None; 8], 0));
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
