//! The timeline: one lane for each session or user, one bar for each request, with its phases.
//!
//! Only lanes in sight (and some beyond both edges) are worked out. A lane with more requests in
//! view than it has room for becomes a strip that tells how many were in which phase; failures stay
//! visible in it, however many requests share a pixel. Instants come from
//! [`onbeat_shared::metrics::phases`].

pub mod bars;
#[cfg(test)]
mod checks;
pub mod lanes;
pub mod shades;
pub mod words;

use std::sync::{Arc, OnceLock};

use onbeat_shared::{
    metrics::{
        held::{self, Wait},
        phases::Openings,
    },
    units::SessionIndex,
};

use crate::opened::OpenedRun;
use crate::selection::Kept;
use crate::state::TimeRange;
use bars::Shown;
use lanes::{Lanes, Order, Which};

/// A question of the panel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    /// What some lanes show.
    Lanes {
        /// The stretch of time in sight.
        view: TimeRange,
        /// How wide it is, in points.
        width: u16,
        /// The first lane.
        first: usize,
        /// How many.
        count: usize,
        /// Which lanes there are.
        which: Which,
    },
    /// The first lane with a request in a stretch of time.
    Busy {
        /// The stretch.
        view: TimeRange,
        /// Which lanes there are.
        which: Which,
    },
    /// The requests of all lanes as the rows of a table.
    Rows {
        /// Those that touch this stretch of time.
        stretch: TimeRange,
        /// Which lanes there are.
        which: Which,
    },
}

/// Where an answer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The lanes.
    Lanes,
    /// The way to a lane with requests.
    Busy,
    /// The table.
    Rows,
}

/// An answer.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Lanes.
    Lanes(Shown),
    /// A lane and its session's name, if there is one.
    Busy(Option<(usize, String)>),
    /// Requests, lane by lane.
    Rows(Vec<u32>),
}

/// What the user chose about the timeline.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimelineChoices {
    /// The order of lanes.
    pub order: Order,
    /// What a lane's name must contain.
    pub search: String,
    /// The lane at the top of what is in sight, with a fraction.
    pub top: f64,
}

impl TimelineChoices {
    /// The lanes that follow from it and a filter.
    #[must_use]
    pub fn which(&self, filter: Option<Arc<crate::filter::Filter>>) -> Which {
        Which { order: self.order, search: self.search.trim().into(), filter }
    }
}

impl Ask {
    /// Where its answer goes.
    #[must_use]
    pub const fn place(&self) -> Place {
        match self {
            Self::Lanes { .. } => Place::Lanes,
            Self::Busy { .. } => Place::Busy,
            Self::Rows { .. } => Place::Rows,
        }
    }

    /// Works it out.
    #[must_use]
    pub fn answer(&self, opened: &OpenedRun) -> Answer {
        match self {
            Self::Lanes { view, width, first, count, which } => {
                let window = bars::Window { view: *view, width: *width };
                let lanes = opened.timeline.lanes(opened, which);
                Answer::Lanes(bars::shown(opened, lanes, window, *first..first + count))
            }
            Self::Busy { view, which } => {
                let lanes = opened.timeline.lanes(opened, which);
                Answer::Busy(busy(opened, &lanes, *view))
            }
            Self::Rows { stretch, which } => {
                let lanes = opened.timeline.lanes(opened, which);
                Answer::Rows(rows(opened, &lanes, *stretch))
            }
        }
    }
}

impl Answer {
    /// The lanes, if it has them.
    #[must_use]
    pub const fn lanes(&self) -> Option<&Shown> {
        match self {
            Self::Lanes(shown) => Some(shown),
            Self::Rows(_) | Self::Busy(_) => None,
        }
    }

    /// The table's rows, if it has them.
    #[must_use]
    pub fn rows(&self) -> Option<&[u32]> {
        match self {
            Self::Rows(rows) => Some(rows.as_slice()),
            Self::Lanes(_) | Self::Busy(_) => None,
        }
    }
}

/// The first lane with a request that left and touches a stretch.
fn busy(opened: &OpenedRun, lanes: &Lanes, stretch: TimeRange) -> Option<(usize, String)> {
    let run = &opened.run;
    let touches = |&i: &u32| {
        let i = i as usize;
        run.requests.was_sent(i) && lanes::end_of(run, i) >= stretch.start
    };
    let is_busy = |&lane: &usize| lanes.all()[lanes.near(run, lane, stretch)].iter().any(touches);
    let lane = (0..lanes.len()).find(is_busy)?;
    Some((lane, lanes::name_of(run, lanes.head(lane).session).to_owned()))
}

/// Requests that left and touch a stretch, lane by lane.
fn rows(opened: &OpenedRun, lanes: &Lanes, stretch: TimeRange) -> Vec<u32> {
    let run = &opened.run;
    let mut rows = Vec::new();
    for lane in 0..lanes.len() {
        let near = &lanes.all()[lanes.near(run, lane, stretch)];
        rows.extend(near.iter().copied().filter(|&i| {
            let i = i as usize;
            run.requests.was_sent(i) && lanes::end_of(run, i) >= stretch.start
        }));
    }
    rows
}

/// Orders of lanes that are kept.
const KEPT: usize = 2;

/// What all pictures of one run's timeline need, each worked out when it is first asked for.
#[derive(Debug, Default)]
pub struct Cache {
    lanes: Kept<Which, Arc<Lanes>>,
    openings: OnceLock<Openings>,
    waits: OnceLock<Vec<Wait>>,
}

impl Cache {
    /// The lanes; a second asker waits for the first.
    fn lanes(&self, opened: &OpenedRun, which: &Which) -> Arc<Lanes> {
        self.lanes.get(KEPT, which.clone(), || Arc::new(lanes::lanes(opened, which)))
    }

    /// The run's connections.
    fn openings(&self, opened: &OpenedRun) -> &Openings {
        self.openings.get_or_init(|| Openings::of(&opened.run))
    }

    /// Every time that a user was held back, by user and then by time.
    pub(super) fn waits(&self, opened: &OpenedRun) -> &[Wait] {
        self.waits.get_or_init(|| held::waits(&opened.run))
    }

    /// Those of one user.
    pub(super) fn waits_of(&self, opened: &OpenedRun, session: SessionIndex) -> &[Wait] {
        let waits = self.waits(opened);
        let from = waits.partition_point(|wait| wait.session < session);
        let to = waits.partition_point(|wait| wait.session <= session);
        &waits[from..to]
    }
}
