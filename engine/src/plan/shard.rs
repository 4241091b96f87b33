//! Which core replays which session: whole sessions, balanced by the bytes they send.
//!
//! Sessions are dealt in order of their first request, each to the core with the fewest bytes so
//! far (the lowest number among equals), so that load is even over time too and the answer depends
//! on nothing but the schedule. Bytes are estimated from prompt lengths; exact ones are not known
//! before rendering and would not deal better.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use onbeat_shared::trace::Trace;
use onbeat_shared::units::CoreIndex;

use crate::plan::depend::Chains;
use crate::plan::schedule::Send;

/// Bytes of a word of prompt text, on average.
const WORD_BYTES: u64 = 5;
/// Bytes of a request around its prompt, and what its answer costs beside: about 600.
const REQUEST_BYTES: u64 = 600;

/// The core of each session.
pub(crate) fn cores(trace: &Trace, sends: &[Send], chains: &Chains, cores: u16) -> Vec<CoreIndex> {
    let mut bytes = vec![0_u64; chains.names.len()];
    for (send, link) in sends.iter().zip(&chains.links) {
        let tokens = u64::from(trace.records[send.record as usize].input_tokens);
        bytes[link.session.as_usize()] += tokens * WORD_BYTES + REQUEST_BYTES;
    }
    let mut loads: BinaryHeap<Reverse<(u64, u16)>> =
        (0..cores.max(1)).map(|core| Reverse((0, core))).collect();
    let deal = |bytes: u64| {
        let Reverse((load, core)) = loads.pop().expect("there is at least one core");
        loads.push(Reverse((load + bytes, core)));
        CoreIndex(core)
    };
    bytes.into_iter().map(deal).collect()
}
