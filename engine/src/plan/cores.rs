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

use crate::plan::Plan;

/// Bytes of a word of prompt text, on average.
const WORD_BYTES: u64 = 5;
/// Bytes of a request around its prompt, and what its answer costs beside: about 600.
const REQUEST_BYTES: u64 = 600;

impl Plan {
    /// Deals the sessions of a schedule anew, to so many cores; nothing else of it changes.
    ///
    /// # Panics
    /// When the plan is of another trace.
    pub fn deal(&mut self, trace: &Trace, cores: u16) {
        let mut bytes = vec![0_u64; self.sessions.len()];
        for (row, &record) in self.rows.iter().zip(&self.record_of) {
            let tokens = u64::from(trace.records[record as usize].input_tokens);
            bytes[row.session.as_usize()] += tokens * WORD_BYTES + REQUEST_BYTES;
        }
        let mut loads: BinaryHeap<Reverse<(u64, u16)>> =
            (0..cores.max(1)).map(|core| Reverse((0, core))).collect();
        let deal = |bytes: u64| {
            let Reverse((load, core)) = loads.pop().expect("there is at least one core");
            loads.push(Reverse((load + bytes, core)));
            CoreIndex(core)
        };
        let cores: Vec<CoreIndex> = bytes.into_iter().map(deal).collect();
        for row in &mut self.rows {
            row.core = cores[row.session.as_usize()];
        }
    }
}
