//! The ideal cache hits of every planned request, in send order.
//!
//! Block ids of Bailian and Mooncake are global to the file, so one cache serves all sessions.

use onbeat_shared::trace::Trace;
use onbeat_shared::trace::cache::IdealCache;

use crate::plan::schedule::Send;

/// Tokens an infinite cache would have of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdealTokens {
    /// By the longest known prefix.
    pub(crate) prefix: u32,
    /// By known blocks in any place.
    pub(crate) set: u32,
}

/// The hits of each request; `None` when the trace has no block ids at all.
pub(crate) fn hits(trace: &Trace, sends: &[Send]) -> Option<Vec<IdealTokens>> {
    if trace.blocks.is_empty() {
        return None;
    }
    let mut cache = IdealCache::new(trace);
    let ask = |send: &Send| {
        let hits = cache.ask(trace, &trace.records[send.record as usize]);
        IdealTokens { prefix: hits.prefix_tokens, set: hits.set_tokens }
    };
    Some(sends.iter().map(ask).collect())
}
