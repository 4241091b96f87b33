//! The ideal cache hits of every planned request, in send order.
//!
//! Block ids of Bailian and Mooncake are global to the file, so one cache serves all sessions of a
//! copy; those of a conversation may hold in it alone. Copies share nothing.

use onbeat_shared::trace::Trace;
use onbeat_shared::trace::cache::ScopedCache;

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
    let mut hits = vec![IdealTokens { prefix: 0, set: 0 }; sends.len()];
    let by_copy = by_copy(sends);
    for copy in by_copy.chunk_by(|&a, &b| sends[a as usize].copy == sends[b as usize].copy) {
        let mut cache = ScopedCache::new(trace);
        for &request in copy {
            let found = cache.ask(trace, sends[request as usize].record);
            hits[request as usize] =
                IdealTokens { prefix: found.prefix_tokens, set: found.set_tokens };
        }
    }
    Some(hits)
}

/// The requests, one copy of the trace after the other, each in send order.
fn by_copy(sends: &[Send]) -> Vec<u32> {
    let mut requests: Vec<u32> = (0_u32..).take(sends.len()).collect();
    if sends.iter().any(|send| send.copy > 0) {
        requests.sort_by_key(|&request| sends[request as usize].copy);
    }
    requests
}
