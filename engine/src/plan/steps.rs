//! Who waits for whom in an agentic trace: every request's predecessors and its think time.
//!
//! A request follows the one before it in its session, after its think time. A sub-agent starts
//! when it is reached: once the request before it has ended, side by side with its neighbours, and
//! at once at the start of a conversation. What comes after sub-agents waits for the last request
//! of each, too, and of those inside them; an empty one is passed over. Think times that are longer
//! than the recorded gap are cut to it and counted; where there is none, it is the gap without the
//! recorded time of the answer before. Requests are numbered as they stand in their files, so that
//! one never waits for a later one. A schedule is not made here: users decide when to start.

use onbeat_shared::trace::Trace;
use onbeat_shared::trace::agentic::{Agentic, Entry};
use onbeat_shared::units::RequestIndex;

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
    let steps = vec![Step::default(); trace.records.len()];
    let mut walk = Walk { trace, agentic, found: Steps { steps, cut: 0 } };
    for conversation in &agentic.conversations {
        walk.list(&conversation.entries, None);
    }
    Some(walk.found)
}

struct Walk<'a> {
    trace: &'a Trace,
    agentic: &'a Agentic,
    found: Steps,
}

impl Walk<'_> {
    /// Goes through one session, which starts when `start` has ended; gives the requests that end
    /// it.
    fn list(&mut self, entries: &[Entry], start: Option<u32>) -> Vec<RequestIndex> {
        let mut last = None;
        let mut ends = Vec::new();
        for entry in entries {
            match *entry {
                Entry::Request(record) => {
                    self.request(record, last, start, std::mem::take(&mut ends));
                    last = Some(record);
                }
                Entry::Group(group) => {
                    let agentic = self.agentic;
                    let entries = &agentic.groups[group as usize].entries;
                    ends.extend(self.list(entries, last.or(start)));
                }
            }
        }
        if ends.is_empty() {
            ends.extend(last.map(RequestIndex));
        }
        ends
    }

    fn request(
        &mut self,
        record: u32,
        last: Option<u32>,
        start: Option<u32>,
        mut ends: Vec<RequestIndex>,
    ) {
        let think_ns = last.map(|last| self.think_ns(last, record));
        let mut after = last.or(start).map(RequestIndex);
        if after.is_none() && !ends.is_empty() {
            // Nothing but sub-agents came before it.
            after = Some(ends.remove(0));
        }
        let step = &mut self.found.steps[record as usize];
        step.think_ns = think_ns.or_else(|| after.map(|_any| 0));
        step.after = after;
        step.also_after = ends;
    }

    fn think_ns(&mut self, last: u32, record: u32) -> i64 {
        let at = |record: u32| self.trace.records[record as usize].at.0;
        let gap_ns = at(record).saturating_sub(at(last)).max(0);
        match self.agentic.calls[record as usize].think_ns {
            Some(think_ns) => {
                self.found.cut += u64::from(think_ns > gap_ns);
                think_ns.min(gap_ns)
            }
            None => {
                let api_ns = self.agentic.calls[last as usize].api_ns.unwrap_or(0);
                gap_ns.saturating_sub(api_ns).max(0)
            }
        }
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
