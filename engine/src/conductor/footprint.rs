//! What a run takes of memory beside its requests, before it is taken.
//!
//! A budget that the user names is for the whole process. The trace and the plan are there when
//! this is asked, so that what they take is measured; what the run is yet to take is counted here.
//! Too little is refused with what would be enough, before anything is sent.

use onbeat_shared::log::block::BLOCK_BYTES;
use onbeat_shared::trace::Trace;

use crate::error::EngineError;
use crate::plan::Plan;
use crate::render::Resident;
use crate::replayer::sink::BLOCKS_PER_CORE;

/// Fewest blocks of a core's log under a small budget: 131,000 records, which an ordinary disk
/// writes in a few milliseconds.
const BLOCKS_LEAST: usize = 64;
/// What part of the budget all cores' log blocks may be.
const LOG_PART: u64 = 8;
/// A request's place among those that each core knows: when it is due, what it waits for, what
/// waits for it.
const PLACE_BYTES: u64 = 48;
/// A request's place in its core's queues.
const QUEUED_BYTES: u64 = 32;
/// Where a recorded text lies.
const TEXT_PLACE_BYTES: u64 = 16;
/// What reading prompts takes at a time, and later some hundred connections and the threads: each
/// connection has a buffer of 32 KiB. Measured, and rounded up.
const SPARE_BYTES: u64 = 24 << 20;

/// What is proposed for rendered requests beside all that.
const WINDOW_BYTES: u64 = 48 << 20;

/// How many blocks a core's log has.
#[must_use]
pub fn log_blocks(budget: Option<u64>, cores: usize) -> usize {
    let Some(budget) = budget else { return BLOCKS_PER_CORE };
    let blocks = budget / LOG_PART / cores.max(1) as u64 / BLOCK_BYTES as u64;
    usize::try_from(blocks).unwrap_or(usize::MAX).clamp(BLOCKS_LEAST, BLOCKS_PER_CORE)
}

/// What is held beside recorded texts and rendered requests under a budget for the whole process,
/// which has so much now that the trace was read and planned.
///
/// # Errors
/// When that is more than the budget.
pub fn held(
    budget: u64,
    resident: Resident,
    trace: &Trace,
    plan: &Plan,
    cores: usize,
) -> Result<u64, EngineError> {
    let now = resident.now.saturating_sub(trace.recorded.texts.memory_bytes());
    let log = log_blocks(Some(budget), cores) as u64 * cores as u64 * BLOCK_BYTES as u64;
    let requests = plan.rows.len() as u64 * (PLACE_BYTES * cores as u64 + QUEUED_BYTES);
    let has_texts = trace.recorded.has_texts();
    let is_open = trace.recorded.texts.is_empty();
    let places =
        if has_texts && is_open { trace.records.len() as u64 * TEXT_PLACE_BYTES } else { 0 };
    let held = now + log + requests + places + SPARE_BYTES;
    let needed = held.max(resident.peak);
    if needed < budget {
        return Ok(held);
    }
    Err(EngineError::Run(format!(
        "--render-budget {budget}: without any request rendered this run takes {needed} bytes, {} \
         of them for the trace and its plan; right would be {} or more, or a shorter trace",
        resident.peak,
        needed + WINDOW_BYTES,
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_has_all_its_blocks_unless_memory_is_short() {
        assert_eq!(log_blocks(None, 3), BLOCKS_PER_CORE);
        assert_eq!(log_blocks(Some(1 << 40), 3), BLOCKS_PER_CORE);
        assert_eq!(log_blocks(Some(128 << 20), 1), 256);
        assert_eq!(log_blocks(Some(128 << 20), 2), 128);
        assert_eq!(log_blocks(Some(1), 64), BLOCKS_LEAST);
    }
}
