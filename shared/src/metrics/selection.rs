//! Which requests a report is about: all of them, those of a time range, or those of a list.
//!
//! A request belongs to the range that holds its sending; one that never left, to the range that
//! holds its due time. One that has neither is in no range but the whole run. A list is for those
//! who have sorted requests into many ranges once ([`super::slices`]), or have looked for some.

use crate::run::Run;
use crate::units::{NANOS_PER_SECOND, RunNanos};

/// Two instants in seconds as people write them, `12..20.5`; either may be left out, and an `s` may
/// follow.
///
/// # Errors
/// What would be right.
pub fn parse_seconds(text: &str) -> Result<(f64, f64), String> {
    let wrong =
        || format!("{text:?} is no range; write two instants in seconds, for example 12.5..20");
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let instant = |text: &str, otherwise: f64| {
        let text = text.trim().trim_end_matches('s').trim_end().replace('−', "-");
        if text.is_empty() { Some(otherwise) } else { text.parse::<f64>().ok() }
    };
    let from = instant(from, f64::NEG_INFINITY).ok_or_else(wrong)?;
    let to = instant(to.trim_start_matches('.'), f64::INFINITY).ok_or_else(wrong)?;
    (from < to).then_some((from, to)).ok_or_else(wrong)
}

/// The same, as instants of a run.
///
/// # Errors
/// What would be right.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "float-to-integer casts saturate, and no run lasts so long that a nanosecond matters"
)]
pub fn parse_range(text: &str) -> Result<(RunNanos, RunNanos), String> {
    let instant = |seconds: f64| RunNanos((seconds * NANOS_PER_SECOND as f64).round() as i64);
    parse_seconds(text).map(|(from, to)| (instant(from), instant(to)))
}

/// A choice of requests.
#[derive(Clone, Copy, Debug)]
pub struct Selection<'a> {
    run: &'a Run,
    range: Option<(RunNanos, RunNanos)>,
    list: Option<&'a [u32]>,
}

impl<'a> Selection<'a> {
    /// The whole run, or requests in `start..end`.
    #[must_use]
    pub const fn new(run: &'a Run, range: Option<(RunNanos, RunNanos)>) -> Self {
        Self { run, range, list: None }
    }

    /// The requests of a list, ascending; with a range, all of them must lie in it. Without a list
    /// as [`Self::new`].
    #[must_use]
    pub const fn of_list(
        run: &'a Run,
        range: Option<(RunNanos, RunNanos)>,
        list: Option<&'a [u32]>,
    ) -> Self {
        Self { run, range, list }
    }

    /// The run it chooses from.
    #[must_use]
    pub const fn run(&self) -> &'a Run {
        self.run
    }

    /// Whether it is the whole run.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.range.is_none() && self.list.is_none()
    }

    /// Where the range begins, if it has a begin.
    #[must_use]
    pub fn begins(&self) -> Option<RunNanos> {
        self.range.map(|(start, _)| start).filter(|start| start.0 > i64::MIN)
    }

    /// Whether an instant lies in the range.
    #[must_use]
    pub fn holds(&self, time: RunNanos) -> bool {
        self.range.is_none_or(|(start, end)| start <= time && time < end)
    }

    /// The chosen requests' places in the plan, ascending.
    pub fn requests(&self) -> impl Iterator<Item = usize> + use<'a> {
        let selection = *self;
        let searched = if self.list.is_some() { 0 } else { self.run.requests.len() };
        let listed = self.list.unwrap_or_default().iter().map(|&i| i as usize);
        listed.chain((0..searched).filter(move |&i| selection.has(i)))
    }

    /// The chosen requests with a complete and successful answer.
    pub fn successful(&self) -> impl Iterator<Item = usize> + use<'a> {
        let requests = &self.run.requests;
        self.requests().filter(move |&i| requests.is_ok(i))
    }

    /// Whether request `i` lies in the range.
    #[must_use]
    pub fn has(&self, i: usize) -> bool {
        let requests = &self.run.requests;
        self.range.is_none()
            || requests.sent(i).or(requests.due(i)).is_some_and(|time| self.holds(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_may_be_open() {
        assert_eq!(parse_seconds("12.5..20"), Ok((12.5, 20.0)));
        assert_eq!(parse_seconds(" 12.5 s .. 20 s "), Ok((12.5, 20.0)));
        assert_eq!(parse_seconds("5.."), Ok((5.0, f64::INFINITY)));
        assert_eq!(parse_seconds("..5"), Ok((f64::NEG_INFINITY, 5.0)));
        assert_eq!(parse_seconds("-1..1"), Ok((-1.0, 1.0)));
        for wrong in ["", "5", "7..3", "a..b", "3..3", "NaN..4"] {
            assert!(parse_seconds(wrong).is_err(), "{wrong}");
        }
        let instants = |from, to| Ok((RunNanos(from), RunNanos(to)));
        assert_eq!(parse_range("-0.1..2.000000003"), instants(-100_000_000, 2_000_000_003));
        assert_eq!(parse_range("1.."), instants(1_000_000_000, i64::MAX));
        assert_eq!(parse_range("..1e99"), instants(i64::MIN, i64::MAX));
    }
}
