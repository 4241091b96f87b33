//! What can be asked about an open run, and the pure functions that answer.
//!
//! (run, range or view, choice) → numbers or a [`Picture`]. Each answer is worked out once on a
//! background thread (see [`crate::derive`]) and drawn as it is. Every number of a request comes
//! from `onbeat_shared::metrics`, so that the viewer, the reports and the exports agree.

pub mod flight;
pub mod flow;
pub mod latency;
pub mod picture;
#[cfg(test)]
mod properties;
pub mod rates;

use onbeat_shared::metrics::{self, Report, ReportOptions};

use crate::derive::Question;
use crate::opened::OpenedRun;
use crate::state::{Flow, Metric, Origin, Scale, TimeRange};
use picture::Picture;

/// A question about a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    /// All numbers of a stretch.
    Report {
        /// Which.
        range: TimeRange,
    },
    /// Requests the schedule wanted and requests that left, per second.
    Rates {
        /// What the plot shows.
        view: TimeRange,
    },
    /// Requests in flight.
    Flight {
        /// What the plot shows.
        view: TimeRange,
        /// How many pixel columns it has.
        columns: usize,
    },
    /// One latency of each request.
    Latency {
        /// What the plot shows.
        view: TimeRange,
        /// Which.
        metric: Metric,
        /// From where.
        origin: Origin,
        /// How heights are drawn.
        scale: Scale,
    },
    /// Tokens or requests per second.
    Flow {
        /// What the plot shows.
        view: TimeRange,
        /// Which.
        flow: Flow,
    },
}

/// Where an answer is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// Numbers.
    Report,
    /// The plot of rates.
    Rates,
    /// The plot of requests in flight.
    Flight,
    /// The plot of a latency; an older answer about another latency is no stand-in.
    Latency(Metric, Origin, Scale),
    /// The plot of throughput.
    Flow(Flow),
}

/// An answer.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Numbers.
    Report(Box<Report>),
    /// A plot.
    Picture(Box<Picture>),
}

impl Answer {
    /// The numbers, if it has them.
    #[must_use]
    pub fn report(&self) -> Option<&Report> {
        match self {
            Self::Report(report) => Some(report),
            Self::Picture(_) => None,
        }
    }

    /// The plot, if it is one.
    #[must_use]
    pub fn picture(&self) -> Option<&Picture> {
        match self {
            Self::Picture(picture) => Some(picture),
            Self::Report(_) => None,
        }
    }
}

impl Question for Ask {
    type Slot = Place;
    type Subject = OpenedRun;
    type Answer = Answer;

    fn slot(&self) -> Place {
        match *self {
            Self::Report { .. } => Place::Report,
            Self::Rates { .. } => Place::Rates,
            Self::Flight { .. } => Place::Flight,
            Self::Latency { metric, origin, scale, .. } => Place::Latency(metric, origin, scale),
            Self::Flow { flow, .. } => Place::Flow(flow),
        }
    }

    fn answer(&self, opened: &OpenedRun) -> Answer {
        let picture = match *self {
            Self::Report { range } => {
                let range = Some((range.start, range.end));
                let options = ReportOptions { range, ..ReportOptions::default() };
                return Answer::Report(Box::new(metrics::report(&opened.run, &options)));
            }
            Self::Rates { view } => rates::picture(opened, view),
            Self::Flight { view, columns } => flight::picture(opened, view, columns),
            Self::Latency { view, metric, origin, scale } => {
                latency::picture(opened, view, latency::Choice { metric, origin, scale })
            }
            Self::Flow { view, flow } => flow::picture(opened, view, flow),
        };
        Answer::Picture(Box::new(picture))
    }
}

/// Share of a view that is worked out beyond both its edges, so that a pan finds something there.
const MARGIN: f64 = 0.5;
/// Steps across a view.
const STEPS: u32 = 150;

/// What requests that ended without success are called together.
const fn unsuccessful(some_were_cancelled: bool) -> &'static str {
    if some_were_cancelled { "failed or cancelled" } else { "failed" }
}

/// A view with the margin that pictures are made for.
fn with_margin(opened: &OpenedRun, view: TimeRange) -> TimeRange {
    view.widened(MARGIN).clipped(opened.whole().widened(0.02)).unwrap_or(view)
}

/// The part of a view in which something could happen: what tables have rows for.
fn within_run(opened: &OpenedRun, view: TimeRange) -> TimeRange {
    view.clipped(opened.whole()).unwrap_or(view)
}

/// Bounds for heights from zero to a little above the largest.
fn from_zero(largest: f64) -> (f64, f64) {
    if largest > 0.0 { (0.0, largest * 1.08) } else { (0.0, 1.0) }
}
