//! When the host took cores away, as the timeline shades it.
//!
//! Many stalls that lie close are drawn as one, which knows how much of its time was stalled: a
//! hundred short ones must not look like one long one.

use onbeat_shared::{run::Stall, units::CoreIndex};

use crate::opened::OpenedRun;
use crate::state::TimeRange;

/// Most stalls of a core that are shaded one by one.
const STALLS_MAX: usize = 400;
/// The least of its shading that a stall has, however short it was.
pub const PALEST: f32 = 0.5;

/// When a core was stalled, drawn as one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shade {
    /// From the first stall in it to the end of the last.
    pub span: TimeRange,
    /// The share of that time that was stalled.
    pub share: f32,
}

/// Each core's stalls near the view; of many, those closer than a point are one.
pub(super) fn stalls(
    opened: &OpenedRun,
    wide: TimeRange,
    per_point: f64,
) -> Vec<(CoreIndex, Vec<Shade>)> {
    let all = opened.run.stalls.all();
    let mut cores = Vec::new();
    for own in all.chunk_by(|a, b| a.core == b.core) {
        let from = own.partition_point(|stall| stall.end() < wide.start);
        let to = own.partition_point(|stall| stall.start < wide.end).max(from);
        let near = if to - from <= STALLS_MAX { 0.0 } else { per_point };
        let shades = shades(&own[from..to], near);
        if let (Some(stall), false) = (own.first(), shades.is_empty()) {
            cores.push((stall.core, shades));
        }
    }
    cores
}

/// Stalls of a core, by time; those that are so near to each other are one.
fn shades(stalls: &[Stall], near: f64) -> Vec<Shade> {
    // What each spans, and how much of that was stalled.
    let mut spans: Vec<(TimeRange, i64)> = Vec::new();
    for stall in stalls {
        let (start, end) = (stall.start, stall.end());
        let last = spans.last_mut();
        match last.filter(|last| start.0.saturating_sub(last.0.end.0) as f64 <= near) {
            Some((span, stalled)) => {
                *stalled += end.0.saturating_sub(start.max(span.end).0).max(0);
                span.end = span.end.max(end);
            }
            None => spans.push((TimeRange::between(start, end), end.0.saturating_sub(start.0))),
        }
    }
    let share = |span: TimeRange, stalled: i64| stalled as f64 / span.span().max(1) as f64;
    let shade = |(span, stalled)| {
        #[expect(clippy::cast_possible_truncation, reason = "a share of one")]
        let share = share(span, stalled).clamp(0.0, 1.0) as f32;
        Shade { span, share }
    };
    spans.into_iter().map(shade).collect()
}

#[cfg(test)]
mod tests {
    use onbeat_shared::units::RunNanos;

    use super::*;

    /// In microseconds.
    fn stall(start: i64, length: u64) -> Stall {
        Stall { core: CoreIndex(0), start: RunNanos(start * 1_000), length_ns: length * 1_000 }
    }

    #[test]
    fn what_lies_close_is_one_that_knows_how_much_was_stalled() {
        let all = [stall(0, 10), stall(5, 10), stall(50, 10), stall(500, 20)];
        let found = |near: f64| -> Vec<(i64, i64, f32)> {
            let micros = |time: RunNanos| time.0 / 1_000;
            let shades = shades(&all, near * 1e3);
            let shades = shades.iter();
            shades.map(|one| (micros(one.span.start), micros(one.span.end), one.share)).collect()
        };
        assert_eq!(found(0.0), [(0, 15, 1.0), (50, 60, 1.0), (500, 520, 1.0)]);
        assert_eq!(found(40.0), [(0, 60, 25.0 / 60.0), (500, 520, 1.0)]);
    }
}
