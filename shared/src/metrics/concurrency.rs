//! How many requests were in the server at once, over time.
//!
//! A request is in flight from its sending to its end, in prefill from its sending to its first
//! content event, and in decode from there to its end. One that has no first content event is in
//! flight and in neither phase: nobody knows which it was in. All outcomes count. Figures are
//! weighted by time from the first sending to the last end.

use serde::Serialize;

use super::selection::Selection;
use super::steps::{Steps, TimeWeighted};
use super::throughput::{Window, last_stamp};
use crate::run::Run;
use crate::units::RunNanos;

/// What a request in the server is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Either phase: from sending to end.
    InFlight,
    /// From sending to first content event.
    Prefill,
    /// From first content event to end.
    Decode,
}

/// From when to when request `i` was in a phase; `None` if it never was, as far as is known. A
/// request without an end is in its last phase until `open_until`, or else until it was last heard
/// of.
#[must_use]
pub fn phase(
    run: &Run,
    i: usize,
    phase: Phase,
    open_until: Option<RunNanos>,
) -> Option<(RunNanos, RunNanos)> {
    let requests = &run.requests;
    let sent = requests.sent(i)?;
    let end = || match requests.done(i) {
        Some(done) => done,
        None => open_until.or(last_stamp(run, i)).unwrap_or(sent),
    };
    match phase {
        Phase::InFlight => Some((sent, end())),
        Phase::Prefill => Some((sent, requests.first_token(i)?)),
        Phase::Decode => Some((requests.first_token(i)?, end())),
    }
}

/// Requests at once, in all and by phase, as functions of time.
#[derive(Clone, Debug, Default)]
pub struct Curves {
    /// From sending to end.
    pub in_flight: Steps,
    /// From sending to first content event.
    pub prefill: Steps,
    /// From first content event to end.
    pub decode: Steps,
}

/// Requests at once, weighted by time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Concurrency {
    /// From sending to end.
    pub effective: Option<TimeWeighted>,
    /// From sending to first content event.
    pub prefill: Option<TimeWeighted>,
    /// From first content event to end.
    pub decode: Option<TimeWeighted>,
}

impl Curves {
    /// The curves of the chosen requests.
    #[must_use]
    pub fn of(selection: &Selection<'_>) -> Self {
        let run = selection.run();
        let spans = |of: Phase| {
            let span = move |i: usize| {
                let (start, end) = phase(run, i, of, None)?;
                Some((start.0, end.0))
            };
            Steps::of_intervals(selection.requests().filter_map(span))
        };
        Self {
            in_flight: spans(Phase::InFlight),
            prefill: spans(Phase::Prefill),
            decode: spans(Phase::Decode),
        }
    }

    /// Their figures over a window of time.
    #[must_use]
    pub fn figures(&self, window: (i64, i64)) -> Concurrency {
        Concurrency {
            effective: self.in_flight.weighted(window),
            prefill: self.prefill.weighted(window),
            decode: self.decode.weighted(window),
        }
    }
}

/// The figures of the chosen requests, from the first of their sendings to the last of their ends.
#[must_use]
pub fn concurrency(selection: &Selection<'_>) -> Concurrency {
    Window::of(selection)
        .map(|window| Curves::of(selection).figures((window.start.0, window.end.0)))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Class;
    use crate::log::sample::Sample;
    use crate::run::Run;

    const MS: i64 = 1_000_000;

    #[test]
    fn phases_split_at_the_first_token() {
        let mut sample = Sample::new();
        let answered = sample.send(0);
        sample.chunks(answered, &[40 * MS, 100 * MS]);
        sample.done(answered, 100 * MS, Class::Ok);
        let failed = sample.send(50 * MS);
        sample.done(failed, 200 * MS, Class::Http429);
        sample.plan(300 * MS);
        let run = Run::read(&sample.bytes()).expect("a log");
        let found = concurrency(&Selection::new(&run, None));
        let mean = |figures: Option<TimeWeighted>| figures.expect("figures").mean;
        assert_eq!(mean(found.effective), 1.25);
        assert_eq!(found.effective.expect("figures").max, 2.0);
        assert_eq!(mean(found.prefill), 0.2, "40 of 200 ms; the failed one is in no phase");
        assert_eq!(mean(found.decode), 0.3);
        let none = Run::read(&Sample::new().bytes()).expect("a log");
        assert_eq!(concurrency(&Selection::new(&none, None)), Concurrency::default());
    }
}
