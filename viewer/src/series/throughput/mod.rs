//! Throughput: what passed over the wire in each step of time, what was under way, and how much of
//! either on average and at most.
//!
//! These are facts of stretches of time, of all requests, whatever became of them; the report's
//! rates are facts of requests, and of successful ones only. The plots of tokens and requests are
//! [`super::flow`]'s.

pub mod concurrency;
pub mod load;

use std::sync::Arc;

use onbeat_shared::{
    metrics::{
        concurrency::Phase,
        flows::{Amounts, Grid, Kind},
    },
    units::{NANOS_PER_SECOND, RunNanos},
};

use super::Answer as AnyAnswer;
use super::picture::round_step;
use crate::filter::Filter;
use crate::opened::OpenedRun;
use crate::selection::Selection;
use crate::state::TimeRange;

/// A question about throughput.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    /// Requests at once, in all and by phase.
    Concurrency {
        /// What the plot shows.
        view: TimeRange,
        /// Of which requests.
        filter: Option<Arc<Filter>>,
        /// How many pixel columns it has.
        columns: usize,
    },
    /// Means and peaks.
    Figures {
        /// Of which stretch and requests.
        selection: Selection,
    },
}

/// Where an answer is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The plot of requests at once.
    Concurrency,
    /// The table of means and peaks.
    Figures,
}

/// Means over a stretch of time, and peaks in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// What passed, per second.
    pub rates: Vec<Figure>,
    /// Requests at once.
    pub levels: Vec<Figure>,
    /// The step that peaks of rates are about (ns); `None`: the stretch has no whole one.
    pub step: Option<i64>,
    /// The stretch.
    pub stretch: TimeRange,
}

/// One of those.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// What it is.
    pub name: &'static str,
    /// How much passed in all, if it is a rate.
    pub total: Option<f64>,
    /// Over the stretch.
    pub mean: Option<f64>,
    /// In the step that has most, or at the instant that has.
    pub peak: Option<f64>,
}

impl Ask {
    /// Its place on screen.
    #[must_use]
    pub const fn place(&self) -> Place {
        match self {
            Self::Concurrency { .. } => Place::Concurrency,
            Self::Figures { .. } => Place::Figures,
        }
    }

    /// Works it out.
    #[must_use]
    pub fn answer(&self, opened: &OpenedRun) -> AnyAnswer {
        match self {
            Self::Concurrency { view, filter, columns } => {
                let passing = opened.passing(filter.as_ref());
                let picture = concurrency::picture(opened, *view, *columns, &passing);
                AnyAnswer::Picture(Box::new(picture))
            }
            Self::Figures { selection } => {
                AnyAnswer::Throughput(Box::new(figures(opened, selection)))
            }
        }
    }
}

const FLOWS: [(&str, Kind); 5] = [
    ("output tokens", Kind::Output),
    ("input tokens", Kind::Input),
    ("requests completed", Kind::Completed),
    ("failed", Kind::Failed),
    ("cancelled", Kind::Cancelled),
];

const PHASES: [(&str, Phase); 3] =
    [("in flight", Phase::InFlight), ("in prefill", Phase::Prefill), ("in decode", Phase::Decode)];

/// Means and peaks of the chosen stretch.
#[must_use]
pub fn figures(opened: &OpenedRun, selection: &Selection) -> Figures {
    let whole = opened.whole();
    let stretch = selection.range.and_then(|range| range.clipped(whole)).unwrap_or(whole);
    let load = opened.load(&opened.passing(selection.filter.as_ref()));
    let flows = load.flows(opened);
    let seconds = stretch.span() as f64 / NANOS_PER_SECOND as f64;
    let has_any = !opened.by_sent().is_empty();
    // What ends the run belongs to it.
    let end = if stretch.end == whole.end {
        RunNanos(whole.end.0.saturating_add(1))
    } else {
        stretch.end
    };
    let sums = flows.between(&opened.run, (stretch.start, end));
    let grid = whole_steps(stretch, stretch.end == whole.end);
    let peaks = grid.map(|grid| largest(&flows.amounts(&opened.run, grid), grid.width));
    let rates = FLOWS.map(|(name, kind)| {
        let at = kind as usize;
        let mean = has_any.then_some(sums[at] / seconds);
        let peak = peaks.filter(|_| has_any).map(|peaks| peaks[at]);
        Figure { name, total: has_any.then_some(sums[at]), mean, peak }
    });
    let levels = PHASES.map(|(name, phase)| {
        let levels = load.levels(opened, phase);
        let spread = levels.spread((stretch.start, stretch.end)).filter(|_| has_any);
        let mean = spread.map(|spread| spread.mean);
        let peak = spread.map(|spread| f64::from(spread.highest));
        Figure { name, total: None, mean, peak }
    });
    let (rates, levels) = (rates.to_vec(), levels.to_vec());
    Figures { rates, levels, step: grid.map(|grid| grid.width), stretch }
}

/// The whole steps inside a stretch: seconds, or shorter ones where it has few of those. The last
/// one may reach beyond the end of the run, where nothing passes.
fn whole_steps(stretch: TimeRange, ends_run: bool) -> Option<Grid> {
    /// A stretch of fewer seconds has shorter steps.
    const SECONDS: i64 = 5;
    /// How many of those.
    const SHORT_STEPS: i64 = 50;
    /// No more steps than that: twelve days of seconds. A damaged log may claim centuries.
    const STEPS_MOST: i64 = 1 << 20;
    let span = stretch.span();
    let long = span >= SECONDS * NANOS_PER_SECOND;
    let width = if long {
        NANOS_PER_SECOND.max(round_step(span / STEPS_MOST))
    } else {
        round_step(span / SHORT_STEPS).max(1)
    };
    let first = stretch.start.0.div_euclid(width);
    let start = first.checked_mul(width).filter(|&start| start >= stretch.start.0);
    let first = if start.is_some() { first } else { first + 1 };
    let last = stretch.end.0.div_euclid(width) + i64::from(ends_run);
    let count = usize::try_from(last - first).ok().filter(|&count| count > 0)?;
    Some(Grid { start: RunNanos(first.saturating_mul(width)), width, count })
}

/// The most of each kind in any step, per second.
fn largest(steps: &[Amounts], width: i64) -> Amounts {
    let seconds = width as f64 / NANOS_PER_SECOND as f64;
    let most = |kind: usize| steps.iter().map(|amounts| amounts[kind]).fold(0.0, f64::max);
    std::array::from_fn(|kind| most(kind) / seconds)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use onbeat_shared::{
        log::{Class, sample, sample::Sample},
        metrics::tokens,
        run::Run,
    };

    use super::*;

    const SECOND: i64 = NANOS_PER_SECOND;

    fn opened(sample: &Sample) -> OpenedRun {
        let run = Run::read(&sample.bytes()).expect("a readable log");
        OpenedRun::new(PathBuf::from("sample.beat"), 0, run)
    }

    fn range(start: i64, end: i64) -> TimeRange {
        TimeRange { start: RunNanos(start), end: RunNanos(end) }
    }

    #[test]
    fn means_and_peaks_are_those_of_the_stretch() {
        let mut sample = Sample::new();
        let one = sample.send(0);
        sample.chunks(one, &[SECOND, 3 * SECOND / 2, 4 * SECOND]);
        sample.done(one, 5 * SECOND, Class::Ok);
        let other = sample.send(4 * SECOND);
        sample.done(other, 6 * SECOND, Class::Http429);
        let opened = opened(&sample);
        let selection = Selection { range: Some(range(SECOND, 6 * SECOND)), filter: None };
        let found = figures(&opened, &selection);
        let of = |name: &str| {
            let mut rows = found.rates.iter().chain(&found.levels);
            let row = rows.find(|row| row.name == name).expect("a row");
            (row.mean.expect("data"), row.peak.expect("data"))
        };
        assert_eq!(found.step, Some(SECOND));
        assert_eq!(found.rates[0].total, Some(3.0));
        assert_eq!(of("output tokens"), (3.0 / 5.0, 2.0));
        assert_eq!(of("input tokens"), (100.0 / 5.0, 100.0));
        assert_eq!(of("requests completed"), (1.0 / 5.0, 1.0));
        assert_eq!(of("failed"), (1.0 / 5.0, 1.0), "at the run's very end");
        assert_eq!(of("in flight"), ((4.0 + 2.0) / 5.0, 2.0));
        assert_eq!(of("in prefill"), (0.0, 0.0), "nobody knows the failed one's phase");
        assert_eq!(of("in decode"), (4.0 / 5.0, 1.0));
    }

    #[test]
    fn a_filter_leaves_the_others_out() {
        let sample = sample::sample(5, 300);
        let opened = opened(&sample);
        let filter = Some(Arc::new(Filter::parse("turn == 0").expect("a filter")));
        let chosen = opened.chosen(&Selection { range: None, filter: filter.clone() });
        let expected: u64 = chosen
            .iter()
            .filter(|&&i| opened.run.requests.first_token(i as usize).is_some())
            .filter_map(|&i| tokens::prompt(&opened.run, i as usize))
            .sum();
        let seconds = opened.whole().span() as f64 / SECOND as f64;
        let found = figures(&opened, &Selection { range: None, filter });
        let input = found.rates[1].mean.expect("data") * seconds;
        assert!((input - expected as f64).abs() < 1e-6, "{input} {expected}");
    }

    #[test]
    fn a_run_of_nothing_has_no_figures() {
        let opened = opened(&Sample::new());
        let found = figures(&opened, &Selection::default());
        let mut rows = found.rates.iter().chain(&found.levels);
        assert!(rows.all(|row| row.mean.is_none() && row.peak.is_none()));
    }
}
