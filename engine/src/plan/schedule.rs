//! Which rows are sent, when each is due, and in which order they leave.
//!
//! Pure arithmetic on whole nanoseconds. Two requests due at one instant leave in file order.
//! Unless every row is on its own, a turn never stands before the previous turn of its session,
//! even when its timestamp is smaller: its place in the order is then right behind, and its due
//! time stays its own. In the closed loop only a session's first turn is due at a time; where the
//! later ones stand is where the record has them.

use std::collections::{HashMap, HashSet};

use onbeat_shared::counted::counted;
use onbeat_shared::trace::Trace;
use onbeat_shared::trace::record::Record;
use onbeat_shared::units::NANOS_PER_SECOND;

use crate::limits::REQUESTS_MAX;
use crate::plan::arrivals::{self, Arrivals};
use crate::plan::{LeftOut, PlanError, PlanMode, PlanOptions, sample, tile};

/// One request in send order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Send {
    /// Place of its record in the trace.
    pub(crate) record: u32,
    /// The copy of the trace it belongs to.
    pub(crate) copy: u32,
    /// When it is due, from the schedule's zero.
    pub(crate) due_ns: i64,
}

/// All requests in send order.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    pub(crate) sends: Vec<Send>,
    pub(crate) left_out: LeftOut,
    pub(crate) warnings: Vec<String>,
}

/// Computes the schedule.
pub(crate) fn of(trace: &Trace, options: &PlanOptions) -> Result<Schedule, PlanError> {
    let mut left_out = LeftOut::default();
    let mut sends = timed(trace, options, &mut left_out)?;
    if let Some(arrivals) = check_times(trace, options)? {
        arrivals::spread(trace, &mut sends, arrivals, options.seed)?;
    }
    sends.sort_by_key(|send| (send.due_ns, send.record));
    if options.copies > 1 {
        tile::overlay(trace, &mut sends, options.copies, options.seed)?;
        left_out.multiply(options.copies);
        sends.sort_unstable_by_key(|send| (send.due_ns, send.copy, send.record));
    }
    capped_and_in_order(trace, options, &mut sends);
    if let Some(duration_ns) = options.duration_ns {
        let before = sends.len();
        sends.retain(|send| send.due_ns < duration_ns);
        left_out.beyond_duration = (before - sends.len()) as u64;
    }
    if let Some(count) = options.request_count {
        let before = sends.len();
        sends.truncate(usize::try_from(count).unwrap_or(usize::MAX));
        left_out.beyond_count = (before - sends.len()) as u64;
    }
    if sends.is_empty() {
        return Err(PlanError::Nothing(nothing(trace, &left_out)));
    }
    if sends.len() > REQUESTS_MAX {
        return Err(PlanError::TooManyRequests(sends.len() as u64));
    }
    let first_ns = sends.iter().map(|send| send.due_ns).min().unwrap_or(0);
    let mut warnings = Vec::new();
    if first_ns > 0 {
        warnings.push(format!(
            "the first request is due {:.3} s after the schedule's zero, which is \
             --fixed-schedule-start-offset",
            first_ns as f64 / NANOS_PER_SECOND as f64
        ));
    }
    Ok(Schedule { sends, left_out, warnings })
}

/// The rate that sessions arrive at; `None`: at their own times.
fn check_times(trace: &Trace, options: &PlanOptions) -> Result<Option<Arrivals>, PlanError> {
    let words = match (trace.recorded.untimed, options.arrivals) {
        (true, None) => {
            let row = trace.records.first().map_or(1, |record| record.row);
            return Err(PlanError::Untimed(trace.source.name.clone(), row));
        }
        (true, Some(_)) if options.start_offset_ns.or(options.end_offset_ns).is_some() => {
            "--fixed-schedule-start-offset and --fixed-schedule-end-offset need timestamps, which \
             the trace's rows do not have; --request-count takes the first rows"
        }
        (false, Some(_)) if !options.ignore_times => {
            "the trace has timestamps of its own; add --no-fixed-schedule to send it at \
             --request-rate instead, or leave that out"
        }
        (false, None) if options.ignore_times => {
            "--no-fixed-schedule leaves the trace's timestamps out; give the rate to send it at, \
             like --request-rate 10"
        }
        (_, arrivals) => return Ok(arrivals),
    };
    Err(PlanError::Unfit(words.to_owned()))
}

/// The window's first and last instant on the trace's own clock.
fn window(trace: &Trace, options: &PlanOptions) -> (Option<i64>, i64) {
    // Offsets are on the trace's own clock, or from its first row where that clock began in 1970.
    let origin = trace.origin().filter(|_| trace.source.format.counts_from_1970());
    let origin_ns = origin.map_or(0, |at| at.0);
    let on_clock = |offset_ns: i64| origin_ns.saturating_add(offset_ns);
    let end_ns = options.end_offset_ns.map_or(i64::MAX, on_clock);
    (options.start_offset_ns.map(on_clock), end_ns)
}

/// The rows that are sampled, inside the window and not too long, in file order.
pub(crate) fn inside(trace: &Trace, options: &PlanOptions, left_out: &mut LeftOut) -> Vec<u32> {
    let (start_ns, end_ns) = window(trace, options);
    let kept = options.sample.map(|share| sample::kept(trace, share, options.seed));
    let is_kept =
        |record: &Record| kept.as_ref().is_none_or(|kept| kept[record.session.as_usize()]);
    let max_input = options.max_input_tokens.unwrap_or(u32::MAX);
    let mut inside: Vec<u32> = Vec::with_capacity(trace.records.len());
    for (record, place) in trace.records.iter().zip(0_u32..) {
        if !is_kept(record) {
            left_out.not_sampled += 1;
        } else if start_ns.is_some_and(|start_ns| record.at.0 < start_ns) {
            left_out.before_start += 1;
        } else if record.at.0 > end_ns {
            left_out.after_end += 1;
        } else if record.input_tokens > max_input {
            left_out.too_long += 1;
        } else {
            inside.push(place);
        }
    }
    inside
}

/// The rows that are [`inside`], with their due times, in file order.
fn timed(
    trace: &Trace,
    options: &PlanOptions,
    left_out: &mut LeftOut,
) -> Result<Vec<Send>, PlanError> {
    let inside = inside(trace, options, left_out);
    let (start_ns, _) = window(trace, options);
    let clock = options.clock();
    let first = inside.iter().map(|&place| trace.records[place as usize].at.0).min();
    let zero_ns = start_ns.or(first).unwrap_or(0);
    let send = |record: u32| {
        let row = &trace.records[record as usize];
        let offset_ns = i128::from(row.at.0) - i128::from(zero_ns);
        let due_ns = clock.divide(offset_ns).ok_or(PlanError::DueOutOfRange(row.row))?;
        Ok(Send { record, copy: 0, due_ns })
    };
    inside.into_iter().map(send).collect()
}

/// Shortens the idle gaps, and puts the requests in the order they leave in.
fn capped_and_in_order(trace: &Trace, options: &PlanOptions, sends: &mut Vec<Send>) {
    match (options.mode, options.idle_gap_cap_ns) {
        (PlanMode::ClosedLoop, Some(cap_ns)) => {
            // Which turn is a session's first is known once they are in order.
            turns_in_order(trace, sends);
            cap_gaps_of_starts(trace, sends, cap_ns);
            sends.sort_by_key(|send| (send.due_ns, send.copy, send.record));
        }
        (_, Some(cap_ns)) => cap_gaps(sends, cap_ns),
        (_, None) => {}
    }
    if options.mode != PlanMode::OpenLoopStrict {
        turns_in_order(trace, sends);
    }
}

/// Shortens the gaps between neighbours; the first keeps its time.
fn cap_gaps(sends: &mut [Send], cap_ns: i64) {
    let mut removed_ns: i64 = 0;
    for place in 1..sends.len() {
        let before_ns = sends[place - 1].due_ns;
        // The neighbour before was moved already, so the recorded gap is found by moving this one.
        let gap_ns = sends[place].due_ns - removed_ns - before_ns;
        removed_ns += (gap_ns - cap_ns).max(0);
        sends[place].due_ns -= removed_ns;
    }
}

/// Shortens the gaps between neighbouring sessions' starts; a session moves as a whole.
fn cap_gaps_of_starts(trace: &Trace, sends: &mut [Send], cap_ns: i64) {
    let session = |send: &Send| (send.copy, trace.records[send.record as usize].session);
    let mut met = HashSet::new();
    let starts: Vec<Send> =
        sends.iter().filter(|send| met.insert(session(send))).copied().collect();
    let mut capped = starts.clone();
    capped.sort_by_key(|send| (send.due_ns, send.copy, send.record));
    let recorded = capped.clone();
    cap_gaps(&mut capped, cap_ns);
    let moved =
        recorded.iter().zip(&capped).map(|(old, new)| (session(old), old.due_ns - new.due_ns));
    let moved: HashMap<_, i64> = moved.collect();
    for send in sends {
        send.due_ns -= moved[&session(send)];
    }
}

/// Puts no turn before the previous turn of its session.
fn turns_in_order(trace: &Trace, sends: &mut Vec<Send>) {
    let record = |send: &Send| &trace.records[send.record as usize];
    // The latest place in time of each session so far: its turns come at that place or later.
    let key = |send: &Send| (send.due_ns, send.copy, send.record);
    let mut by_turn: Vec<u32> = (0_u32..).take(sends.len()).collect();
    by_turn.sort_by_key(|&place| {
        let send = &sends[place as usize];
        (send.copy, record(send).session, record(send).turn)
    });
    let session = |send: &Send| (send.copy, record(send).session);
    let mut keys = vec![(0_i64, 0_u32, 0_u32, 0_u32); sends.len()];
    let mut moved = false;
    let mut previous: Option<&Send> = None;
    let mut latest = (0_i64, 0_u32, 0_u32);
    for &place in &by_turn {
        let send = &sends[place as usize];
        let follows = previous.is_some_and(|other| session(other) == session(send));
        let own = key(send);
        moved |= follows && own < latest;
        latest = if follows { own.max(latest) } else { own };
        keys[place as usize] = (latest.0, latest.1, latest.2, record(send).turn);
        previous = Some(send);
    }
    if moved {
        let mut keyed: Vec<_> = keys.into_iter().zip(sends.iter().copied()).collect();
        keyed.sort_by_key(|(key, _)| *key);
        *sends = keyed.into_iter().map(|(_, send)| send).collect();
    }
}

/// Why nothing is left.
fn nothing(trace: &Trace, left_out: &LeftOut) -> String {
    let all = counted(trace.records.len() as u64, "row");
    format!("of the trace's {all}, {}", left_out.words().join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_capped_and_the_first_keeps_its_time() {
        let mut sends: Vec<Send> = [50, 100, 60_100, 60_200, 60_200]
            .into_iter()
            .zip(0_u32..)
            .map(|(due_ns, record)| Send { record, copy: 0, due_ns })
            .collect();
        cap_gaps(&mut sends, 500);
        let dues: Vec<i64> = sends.iter().map(|send| send.due_ns).collect();
        assert_eq!(dues, [50, 100, 600, 700, 700]);
    }
}
