//! `--tile`: copies of the trace laid over each other, for a rate that no speed-up could give
//! without pressing bursts and pauses together.
//!
//! Each copy is the whole schedule again, turned round by an offset of its own: what is pushed
//! beyond the end comes back at the start, whole sessions at a time, so that the rate is even from
//! the first second and every gap inside a session stays as recorded. The first copy is the
//! schedule itself. A copy's sessions are its own and so is its text (`render` keys text by copy):
//! prefixes are shared inside a copy as recorded, and never between copies.
//!
//! Offsets are drawn from the seed alone: copy `k` of a schedule that goes round in `P` nanoseconds
//! is moved by `P · m(m(seed + 3) + k) / 2^64`, `m` being one step of SplitMix64 as in `prompt`.

use onbeat_shared::trace::Trace;

use crate::limits::REQUESTS_MAX;
use crate::plan::PlanError;
use crate::plan::schedule::Send;

/// Adds copies 1 to `copies - 1` to a schedule that holds copy 0, in order of its due times.
pub(crate) fn overlay(
    trace: &Trace,
    sends: &mut Vec<Send>,
    copies: u32,
    seed: u64,
) -> Result<(), PlanError> {
    let count = sends.len();
    let all = count as u64 * u64::from(copies);
    if all > REQUESTS_MAX as u64 {
        return Err(PlanError::TooManyRequests(all));
    }
    let (Some(first), Some(last)) = (sends.first(), sends.last()) else { return Ok(()) };
    let first_ns = i128::from(first.due_ns);
    let span_ns = i128::from(last.due_ns) - first_ns;
    // Between a copy's last request and its own first one lies a mean gap, as between any two.
    let round_ns = span_ns + span_ns / (count as i128 - 1).max(1);
    let starts = session_starts(trace, sends);
    sends.reserve_exact(count * (copies as usize - 1));
    for copy in 1..copies {
        let offset_ns = offset(seed, copy, round_ns);
        for place in 0..count {
            let send = sends[place];
            let record = &trace.records[send.record as usize];
            let start_ns = i128::from(starts[record.session.as_usize()]);
            let beyond = start_ns + offset_ns - first_ns >= round_ns;
            let moved_ns = if beyond { offset_ns - round_ns } else { offset_ns };
            let due_ns = i64::try_from(i128::from(send.due_ns) + moved_ns);
            let due_ns = due_ns.map_err(|_beyond_64_bits| PlanError::DueOutOfRange(record.row))?;
            sends.push(Send { due_ns, copy, ..send });
        }
    }
    Ok(())
}

/// A block id of a copy of the trace: another one for each copy, the same for the same id, and
/// never negative for those who read it as a signed number.
#[must_use]
pub fn id_of_copy(id: u64, copy: u32) -> u64 {
    if copy == 0 { id } else { step(step(id).wrapping_add(u64::from(copy))) >> 1 }
}

/// When each session's earliest request is due.
fn session_starts(trace: &Trace, sends: &[Send]) -> Vec<i64> {
    let mut starts = vec![i64::MAX; trace.sessions.len()];
    for send in sends {
        let start = &mut starts[trace.records[send.record as usize].session.as_usize()];
        *start = send.due_ns.min(*start);
    }
    starts
}

/// How far a copy is moved: from 0 to below `round_ns`.
fn offset(seed: u64, copy: u32, round_ns: i128) -> i128 {
    const OFFSETS: u64 = 3;
    let draw = step(step(seed.wrapping_add(OFFSETS)).wrapping_add(u64::from(copy)));
    let round_ns = u128::try_from(round_ns).unwrap_or(0);
    // Split, since the product may have more than 128 bits.
    let (high, low) = (round_ns >> 32, round_ns & 0xffff_ffff);
    let scaled = (high * u128::from(draw) + ((low * u128::from(draw)) >> 32)) >> 32;
    i128::try_from(scaled).expect("below the time of one round")
}

/// One step of SplitMix64.
const fn step(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_fill_the_round_and_depend_on_seed_and_copy() {
        let round_ns = 3_537_000_000_000_i128;
        let mut tenths = [0; 10];
        for copy in 1..=1_000 {
            let place = offset(7, copy, round_ns) * 10 / round_ns;
            tenths[usize::try_from(place).expect("below ten")] += 1;
        }
        assert!(tenths.iter().all(|&count| (60..140).contains(&count)), "{tenths:?}");
        assert_ne!(offset(7, 1, round_ns), offset(8, 1, round_ns));
        assert_eq!(offset(7, 1, 0), 0);
        let longest = i128::from(u64::MAX) * 2;
        assert!((0..100).all(|copy| (0..longest).contains(&offset(0, copy, longest))));
    }
}
