//! Which requests a report is about: all of them, those of a time range, or those of a list.
//!
//! A request belongs to the range that holds its sending; one that never left, to the range that
//! holds its due time. One that has neither is in no range but the whole run. A list is for those
//! who have sorted requests into many ranges once ([`super::slices`]), or have looked for some.

use crate::run::Run;
use crate::units::RunNanos;

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

    fn has(&self, i: usize) -> bool {
        let requests = &self.run.requests;
        self.range.is_none()
            || requests.sent(i).or(requests.due(i)).is_some_and(|time| self.holds(time))
    }
}
