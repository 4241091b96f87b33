//! What conversations are like, in numbers: sub-agents, pauses, times, prefixes, duplicates.
//!
//! Definitions. A *gap* is the time from one request of a session to its next one, start to start,
//! where both are in file order; *overlapping* requests start before the recorded end of the one
//! before them. A think time is *longer than its gap* when it exceeds the gap by more than a
//! second, which no client can have waited. A step *extends* when its block ids start with all ids
//! of the request before it, else *shrinks* when it has fewer ids, and else *rewrites*. What has no
//! data is `None`.

use serde::Serialize;

use crate::trace::Trace;
use crate::trace::agentic::{Agentic, Kind};
use crate::trace::cache::ScopedCache;
use crate::units::NANOS_PER_SECOND;

/// The summary of an agentic trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Conversations {
    /// Conversations.
    pub count: u64,
    /// Sub-agents in them, empty ones included.
    pub sub_agents: u64,
    /// Sub-agents without any request.
    pub empty_sub_agents: u64,
    /// Requests of sub-agents.
    pub sub_agent_requests: u64,
    /// Deepest nesting: 0 without sub-agents.
    pub depth: u32,
    /// Requests whose answer came as a stream.
    pub streamed: u64,
    /// Requests whose answer came in one piece.
    pub whole: u64,
    /// Requests with an unknown type.
    pub unknown_type: u64,
    /// From the start of one request to the next one of the session.
    pub gap_s: Option<Seconds>,
    /// From a request to the end of its answer, as recorded.
    pub api_time_s: Option<Seconds>,
    /// From the end of an answer to the next request, as recorded.
    pub think_time_s: Option<Seconds>,
    /// From a request to its first token, as recorded.
    pub first_token_s: Option<Seconds>,
    /// Requests without `api_time`.
    pub without_api_time: u64,
    /// Requests with a predecessor, without `think_time`.
    pub without_think_time: u64,
    /// Requests whose think time is longer than their gap.
    pub think_longer_than_gap: u64,
    /// Requests that start before the recorded end of the one before them.
    pub overlapping: u64,
    /// Steps that add to the block ids of the request before.
    pub extending_steps: u64,
    /// Steps to fewer block ids.
    pub shrinking_steps: u64,
    /// All other steps.
    pub rewriting_steps: u64,
    /// Requests that recorded no output.
    pub without_output: u64,
    /// Mean over conversations of their own ideal hit rates.
    pub mean_hit_rate: Option<f64>,
}

/// A distribution of seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Seconds {
    /// How many values there are.
    pub count: u64,
    /// 10th percentile.
    pub p10: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

impl Seconds {
    fn of(mut nanos: Vec<i64>) -> Option<Self> {
        nanos.sort_unstable();
        let seconds: Vec<f64> =
            nanos.into_iter().map(|nanos| nanos as f64 / NANOS_PER_SECOND as f64).collect();
        let quantile = |share| crate::trace::stats::quantile(&seconds, share);
        Some(Self {
            count: seconds.len() as u64,
            max: *seconds.last()?,
            p10: quantile(0.10),
            p50: quantile(0.50),
            p90: quantile(0.90),
            p99: quantile(0.99),
        })
    }
}

impl Conversations {
    /// Summarises the conversations of a trace; `None` when it has none.
    #[must_use]
    pub fn of(trace: &Trace) -> Option<Self> {
        let agentic = trace.recorded.agentic.as_ref()?;
        let mut found = Self {
            count: agentic.conversations.len() as u64,
            sub_agents: agentic.groups.len() as u64,
            empty_sub_agents: agentic.groups.iter().filter(|own| own.entries.is_empty()).count()
                as u64,
            sub_agent_requests: agentic.calls.iter().filter(|call| call.group.is_some()).count()
                as u64,
            depth: depth(agentic),
            mean_hit_rate: mean_hit_rate(trace, agentic),
            ..Self::default()
        };
        for call in &agentic.calls {
            match call.kind {
                Kind::Streamed => found.streamed += 1,
                Kind::Whole => found.whole += 1,
                Kind::Unknown => found.unknown_type += 1,
            }
            found.without_api_time += u64::from(call.api_ns.is_none());
            found.without_output += u64::from(call.output_tokens == 0);
        }
        let calls = || agentic.calls.iter();
        found.api_time_s = Seconds::of(calls().filter_map(|call| call.api_ns).collect());
        found.first_token_s = Seconds::of(calls().filter_map(|call| call.first_token_ns).collect());
        found.steps(trace, agentic);
        Some(found)
    }

    /// Adds what concerns a request and the one before it in its session.
    fn steps(&mut self, trace: &Trace, agentic: &Agentic) {
        let mut last: Vec<Option<usize>> = vec![None; trace.sessions.len()];
        let (mut gaps, mut thinks) = (Vec::new(), Vec::new());
        for (place, record) in trace.records.iter().enumerate() {
            let before = last[record.session.as_usize()].replace(place);
            let call = &agentic.calls[place];
            let Some(before) = before else { continue };
            let gap_ns = record.at.0.saturating_sub(trace.records[before].at.0);
            gaps.push(gap_ns);
            match call.think_ns {
                Some(think_ns) => {
                    thinks.push(think_ns);
                    self.think_longer_than_gap +=
                        u64::from(think_ns > gap_ns.saturating_add(NANOS_PER_SECOND));
                }
                None => self.without_think_time += 1,
            }
            let api_ns = agentic.calls[before].api_ns;
            self.overlapping += u64::from(api_ns.is_some_and(|api_ns| gap_ns < api_ns));
            let old = trace.blocks_of(&trace.records[before]);
            let new = trace.blocks_of(record);
            if old.common_prefix(new) == old.len() {
                self.extending_steps += 1;
            } else if new.len() < old.len() {
                self.shrinking_steps += 1;
            } else {
                self.rewriting_steps += 1;
            }
        }
        self.gap_s = Seconds::of(gaps);
        self.think_time_s = Seconds::of(thinks);
    }
}

fn depth(agentic: &Agentic) -> u32 {
    let depth_of = |group: &crate::trace::agentic::Group| {
        let mut depth = 1;
        let mut parent = group.parent;
        while let Some(number) = parent {
            depth += 1;
            parent = agentic.groups[number as usize].parent;
        }
        depth
    };
    agentic.groups.iter().map(depth_of).max().unwrap_or(0)
}

/// Each conversation alone in an infinite cache, in file order.
fn mean_hit_rate(trace: &Trace, agentic: &Agentic) -> Option<f64> {
    let mut cache = ScopedCache::new(trace);
    let mut rates = Vec::with_capacity(agentic.conversations.len());
    for conversation in &agentic.conversations {
        let (mut hits, mut input) = (0_u64, 0_u64);
        for record in conversation.records.clone() {
            input += u64::from(trace.records[record as usize].input_tokens);
            hits += u64::from(cache.ask(trace, record).prefix_tokens);
        }
        if input > 0 {
            rates.push(hits as f64 / input as f64);
        }
    }
    (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
}
