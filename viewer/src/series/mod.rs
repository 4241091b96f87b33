//! What can be asked about an open run, and the pure functions that answer.
//!
//! (run, range or view, choice) → numbers or a [`Picture`]. Each answer is worked out once on a
//! background thread (see [`crate::derive`]) and drawn as it is. Every number of a request comes
//! from `onbeat_shared::metrics`, so that the viewer, the reports and the exports agree.

pub mod axes;
pub mod cache;
pub mod compare;
pub mod density;
pub mod distribution;
pub mod flight;
pub mod flow;
pub mod latency;
pub mod lateness;
pub mod marks;
pub mod number;
pub mod picture;
#[cfg(test)]
mod properties;
pub mod rates;
pub mod requests;
pub mod server;
pub mod shape;
pub mod slo;
pub mod throughput;
pub mod timeline;
pub mod users;
pub mod xy;

use std::sync::Arc;

use onbeat_shared::metrics::{Report, ReportOptions};

use crate::derive::Question;
use crate::filter::Filter;
use crate::opened::OpenedRun;
use crate::selection::{Passing, Selection};
use crate::state::{Flow, Metric, Origin, Scale, TimeRange};
use picture::Picture;

/// A question about a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    /// All numbers of some requests.
    Report {
        /// Which.
        selection: Selection,
    },
    /// Which requests a selection chooses.
    Chosen {
        /// The selection.
        selection: Selection,
    },
    /// About the table of requests.
    Requests(requests::Ask),
    /// How one number is spread.
    Distribution(distribution::Ask),
    /// One number against another.
    Shape(shape::Ask),
    /// About goals.
    Slo(slo::Ask),
    /// About lateness.
    Lateness(lateness::Ask),
    /// About throughput.
    Throughput(throughput::Ask),
    /// About the cache.
    Cache(cache::Ask),
    /// What servers said of themselves.
    Server(server::Ask),
    /// About the timeline.
    Timeline(timeline::Ask),
    /// About users.
    Users(users::Ask),
    /// About this run and others.
    Compare(compare::Ask),
    /// Requests the schedule wanted and requests that left, per second.
    Rates {
        /// What the plot shows.
        view: TimeRange,
        /// Which requests count.
        filter: Option<Arc<Filter>>,
    },
    /// Requests in flight.
    Flight {
        /// What the plot shows.
        view: TimeRange,
        /// How many pixel columns it has.
        columns: usize,
        /// Which requests count.
        filter: Option<Arc<Filter>>,
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
        /// Which requests count.
        filter: Option<Arc<Filter>>,
    },
    /// Tokens or requests per second.
    Flow {
        /// What the plot shows.
        view: TimeRange,
        /// Which.
        flow: Flow,
        /// Which requests count.
        filter: Option<Arc<Filter>>,
    },
}

/// Where an answer is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// Numbers.
    Report,
    /// What a selection chooses.
    Chosen,
    /// The table of requests and its details.
    Requests(requests::Place),
    /// Plots of a distribution.
    Distribution(distribution::Place),
    /// A plot of one number against another.
    Shape(shape::Place),
    /// Goals.
    Slo(slo::Place),
    /// Lateness.
    Lateness(lateness::Place),
    /// Throughput.
    Throughput(throughput::Place),
    /// The cache.
    Cache(cache::Place),
    /// What servers said of themselves.
    Server(server::Plot),
    /// The timeline.
    Timeline(timeline::Place),
    /// Users.
    Users(users::Place),
    /// This run and others.
    Compare(compare::Place),
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
    /// Places of requests in the plan, ascending.
    Chosen(Arc<[u32]>),
    /// About the table of requests.
    Requests(requests::Answer),
    /// How one number is spread.
    Distribution(Box<distribution::Distribution>),
    /// About goals.
    Slo(Box<slo::Answer>),
    /// About lateness.
    Lateness(Box<lateness::Figures>),
    /// About throughput.
    Throughput(Box<throughput::Figures>),
    /// About the cache.
    Cache(Box<cache::Answer>),
    /// About the timeline.
    Timeline(Box<timeline::Answer>),
    /// About users.
    Users(Box<users::Answer>),
    /// About this run and others.
    Compare(Box<compare::Answer>),
}

impl Answer {
    /// The numbers, if it has them.
    #[must_use]
    pub fn report(&self) -> Option<&Report> {
        match self {
            Self::Report(report) => Some(report),
            _ => None,
        }
    }

    /// The plot, if it is one.
    #[must_use]
    pub fn picture(&self) -> Option<&Picture> {
        match self {
            Self::Picture(picture) => Some(picture),
            _ => None,
        }
    }

    /// The answer about goals, if it is one.
    #[must_use]
    pub fn slo(&self) -> Option<&slo::Answer> {
        match self {
            Self::Slo(answer) => Some(answer),
            _ => None,
        }
    }

    /// The answer about this run and others, if it is one.
    #[must_use]
    pub fn compare(&self) -> Option<&compare::Answer> {
        match self {
            Self::Compare(answer) => Some(answer),
            _ => None,
        }
    }

    /// The answer about the timeline, if it is one.
    #[must_use]
    pub fn timeline(&self) -> Option<&timeline::Answer> {
        match self {
            Self::Timeline(answer) => Some(answer),
            _ => None,
        }
    }

    /// The answer about users, if it is one and no plot.
    #[must_use]
    pub fn users(&self) -> Option<&users::Answer> {
        match self {
            Self::Users(answer) => Some(answer),
            _ => None,
        }
    }

    /// The figures of lateness, if it has them.
    #[must_use]
    pub fn lateness(&self) -> Option<&lateness::Figures> {
        match self {
            Self::Lateness(figures) => Some(figures),
            _ => None,
        }
    }

    /// How a number is spread, if it says so.
    #[must_use]
    pub fn distribution(&self) -> Option<&distribution::Distribution> {
        match self {
            Self::Distribution(found) => Some(found),
            _ => None,
        }
    }

    /// Means and peaks, if it has them.
    #[must_use]
    pub fn throughput(&self) -> Option<&throughput::Figures> {
        match self {
            Self::Throughput(figures) => Some(figures),
            _ => None,
        }
    }

    /// The answer about the cache, if it is one.
    #[must_use]
    pub fn cache(&self) -> Option<&cache::Answer> {
        match self {
            Self::Cache(answer) => Some(answer),
            _ => None,
        }
    }

    /// The answer about the table of requests, if it is one.
    #[must_use]
    pub const fn requests(&self) -> Option<&requests::Answer> {
        match self {
            Self::Requests(answer) => Some(answer),
            _ => None,
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
            Self::Chosen { .. } => Place::Chosen,
            Self::Requests(ref ask) => Place::Requests(ask.place()),
            Self::Distribution(ref ask) => Place::Distribution(ask.place()),
            Self::Shape(ref ask) => Place::Shape(ask.place()),
            Self::Slo(ref ask) => Place::Slo(ask.slot()),
            Self::Lateness(ref ask) => Place::Lateness(ask.slot()),
            Self::Throughput(ref ask) => Place::Throughput(ask.place()),
            Self::Cache(ref ask) => Place::Cache(ask.place()),
            Self::Server(ref ask) => Place::Server(ask.plot),
            Self::Timeline(ref ask) => Place::Timeline(ask.place()),
            Self::Users(ref ask) => Place::Users(ask.place()),
            Self::Compare(ref ask) => Place::Compare(ask.place()),
            Self::Rates { .. } => Place::Rates,
            Self::Flight { .. } => Place::Flight,
            Self::Latency { metric, origin, scale, .. } => Place::Latency(metric, origin, scale),
            Self::Flow { flow, .. } => Place::Flow(flow),
        }
    }

    fn answer(&self, opened: &OpenedRun) -> Answer {
        let passing = |filter: &Option<Arc<Filter>>| opened.passing(filter.as_ref());
        let picture = match *self {
            Self::Report { ref selection } if selection.is_everything() => {
                return Answer::Report(Box::new(opened.report().clone()));
            }
            Self::Report { ref selection } => {
                let report = opened.report_of(selection, &ReportOptions::default());
                return Answer::Report(Box::new(report));
            }
            Self::Chosen { ref selection } => return Answer::Chosen(opened.chosen(selection)),
            Self::Requests(ref ask) => return Answer::Requests(ask.answer(opened)),
            Self::Distribution(ref ask) => {
                return Answer::Distribution(Box::new(distribution::answer(opened, ask)));
            }
            Self::Shape(ref ask) => shape::picture(opened, ask),
            Self::Slo(ref ask) => return ask.answer(opened),
            Self::Lateness(ref ask) => return ask.answer(opened),
            Self::Throughput(ref ask) => return ask.answer(opened),
            Self::Cache(ref ask) => return ask.answer(opened),
            Self::Server(ref ask) => return ask.answer(opened),
            Self::Timeline(ref ask) => return Answer::Timeline(Box::new(ask.answer(opened))),
            Self::Users(ref ask) => return ask.answer(opened),
            Self::Compare(ref ask) => return Answer::Compare(Box::new(ask.answer(opened))),
            Self::Rates { view, ref filter } => rates::picture(opened, view, &passing(filter)),
            Self::Flight { view, columns, ref filter } => {
                flight::picture(opened, view, columns, &passing(filter))
            }
            Self::Latency { view, metric, origin, scale, ref filter } => {
                let choice = latency::Choice { metric, origin, scale };
                latency::picture(opened, view, choice, &passing(filter))
            }
            Self::Flow { view, flow, ref filter } => {
                flow::picture(opened, view, flow, &passing(filter))
            }
        };
        Answer::Picture(Box::new(picture))
    }
}

/// Share of a view that is worked out beyond both its edges, so that a pan finds something there.
const MARGIN: f64 = 0.5;
/// Steps across a view.
const STEPS: u32 = 150;

/// A view with the margin that pictures are made for.
fn with_margin(opened: &OpenedRun, view: TimeRange) -> TimeRange {
    view.widened(MARGIN).clipped(opened.whole().widened(0.02)).unwrap_or(view)
}

/// The part of a view in which something could happen: what tables have rows for.
fn within_run(opened: &OpenedRun, view: TimeRange) -> TimeRange {
    view.clipped(opened.whole()).unwrap_or(view)
}

/// What is said in the place of a picture when no request of the run passes the filter.
fn nothing_passes(passing: &Passing) -> Option<String> {
    (!passing.is_everything() && passing.count() == 0)
        .then(|| "No request passes the filter".to_owned())
}

/// A note on how a picture was made, which also says that not all requests count.
fn filtered(note: String, passing: &Passing) -> String {
    if passing.is_everything() { note } else { format!("{note}, filtered") }
}

/// Bounds for heights from zero to a little above the largest.
fn from_zero(largest: f64) -> (f64, f64) {
    if largest > 0.0 { (0.0, largest * 1.08) } else { (0.0, 1.0) }
}
