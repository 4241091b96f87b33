//! Goals and what meets them: figures, compliance over time, and goodput against a threshold.
//!
//! Goals move many times a second while one is dragged, so nothing here looks at requests one by
//! one then: the numbers that goals compare are columns, made once and kept with the run (see
//! [`onbeat_shared::metrics::scores`]), and what a drag changes is counted over them in a few
//! milliseconds at a million requests. Requests that did not succeed are never good.

pub mod compliance;
pub mod curve;
pub mod figures;
pub mod limits;
pub mod store;

use std::sync::Arc;

use onbeat_shared::metrics::{goal::GoalKind, slo::Goals};

use super::Answer as AnyAnswer;
use crate::filter::Filter;
use crate::opened::OpenedRun;
use crate::selection::Selection;
use crate::state::TimeRange;
pub use figures::{Figures, GoalFigures};

/// How goodput is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Way {
    /// As a share of the requests that count.
    #[default]
    Share,
    /// As requests per second.
    Rate,
}

/// What the user chose about goals, beside the goals themselves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SloChoices {
    /// The goal whose threshold varies; `None`: the first.
    pub varied: Option<GoalKind>,
    /// How goodput is counted.
    pub way: Way,
    /// A limit that is being typed.
    pub draft: Option<(GoalKind, String)>,
    /// Why the typed limit was refused.
    pub refused: Option<String>,
    /// A goal to be added as soon as it is known where it should begin.
    pub starting: Option<GoalKind>,
}

impl SloChoices {
    /// The goal whose threshold varies, if there is any goal.
    #[must_use]
    pub fn varied(&self, goals: &Goals) -> Option<GoalKind> {
        let chosen = self.varied.filter(|&kind| goals.limit(kind).is_some());
        chosen.or(goals.list().first().map(|goal| goal.kind))
    }

    /// What was typed as the limit of a kind is no longer wanted.
    pub fn forget_draft(&mut self, kind: GoalKind) {
        if self.draft.as_ref().is_some_and(|draft| draft.0 == kind) {
            self.draft = None;
            self.refused = None;
        }
    }
}

/// A question about goals.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    /// How many requests meet them.
    Figures {
        /// Of which requests.
        selection: Selection,
        /// Which.
        goals: Goals,
    },
    /// The same over time.
    Compliance {
        /// What the plot shows.
        view: TimeRange,
        /// Of which requests.
        filter: Option<Arc<Filter>>,
        /// Which.
        goals: Goals,
        /// Counted how.
        way: Way,
    },
    /// Goodput for every limit of one goal.
    Curve {
        /// Of which requests.
        selection: Selection,
        /// The goal whose limit varies.
        kind: GoalKind,
        /// The other goals.
        others: Goals,
        /// Counted how.
        way: Way,
    },
    /// Where a new goal should begin.
    Start {
        /// Of which requests.
        selection: Selection,
        /// On what.
        kind: GoalKind,
    },
}

/// Where an answer is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// Figures.
    Figures,
    /// The plot over time.
    Compliance(Way),
    /// The plot over thresholds; one of another goal is no stand-in.
    Curve(GoalKind, Way),
    /// A new goal.
    Start,
}

/// An answer that is no picture.
#[derive(Clone, Debug)]
pub enum Answer {
    /// How many requests meet the goals.
    Figures(Figures),
    /// A limit in the kind's unit.
    Start(f64),
}

impl Ask {
    /// Where the answer is shown.
    #[must_use]
    pub const fn slot(&self) -> Place {
        match self {
            Self::Figures { .. } => Place::Figures,
            Self::Compliance { way, .. } => Place::Compliance(*way),
            Self::Curve { kind, way, .. } => Place::Curve(*kind, *way),
            Self::Start { .. } => Place::Start,
        }
    }

    /// The answer.
    #[must_use]
    pub fn answer(&self, opened: &OpenedRun) -> AnyAnswer {
        let picture = match self {
            Self::Figures { selection, goals } => {
                let figures = figures::figures(opened, selection, goals);
                return AnyAnswer::Slo(Box::new(Answer::Figures(figures)));
            }
            Self::Start { selection, kind } => {
                let limit = figures::start(opened, selection, *kind);
                return AnyAnswer::Slo(Box::new(Answer::Start(limit)));
            }
            Self::Compliance { view, filter, goals, way } => {
                compliance::picture(opened, *view, filter.as_ref(), goals, *way)
            }
            Self::Curve { selection, kind, others, way } => {
                curve::picture(opened, selection, *kind, others, *way)
            }
        };
        AnyAnswer::Picture(Box::new(picture))
    }
}
