//! Lateness: how late requests left, what the host did meanwhile, and what of a TTFT could be ours.
//!
//! All definitions are the shared crate's ([`onbeat_shared::metrics::lateness`], `cores`,
//! `client_part`). Lateness is of requests that left, whatever became of them; the client's part of
//! TTFT is of successful ones.

pub mod facts;
pub mod figures;
pub mod over_time;
pub mod spread;

use std::sync::Arc;

use super::Answer as AnyAnswer;
use crate::filter::Filter;
use crate::opened::OpenedRun;
use crate::selection::Selection;
use crate::state::{Scale, TimeRange};
pub use figures::{Figures, StallRow};

/// How the spread of lateness is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Spread {
    /// How many requests in each step of lateness.
    #[default]
    Histogram,
    /// The lateness at each percentile.
    Percentiles,
}

/// What stands beside the plots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Beside {
    /// Host stalls one by one.
    #[default]
    Stalls,
    /// Each core's work.
    Cores,
    /// Each machine's, in a run that was merged from several.
    Hosts,
    /// What of TTFT the client could have caused.
    Client,
    /// What the precision rests on.
    Clock,
}

/// The order of host stalls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StallOrder {
    /// As they happened.
    #[default]
    Time,
    /// The longest first.
    Length,
    /// Those that hit the most requests first.
    Hit,
}

/// What the user chose about the panel.
#[derive(Clone, Debug, PartialEq)]
pub struct LatenessChoices {
    /// How heights are drawn.
    pub scale: Scale,
    /// How the spread is drawn.
    pub spread: Spread,
    /// What stands beside the plots.
    pub beside: Beside,
    /// The order of host stalls.
    pub order: StallOrder,
}

impl Default for LatenessChoices {
    fn default() -> Self {
        Self {
            // Microseconds for most, milliseconds for those behind a stall.
            scale: Scale::Log,
            spread: Spread::default(),
            beside: Beside::default(),
            order: StallOrder::default(),
        }
    }
}

/// A question about lateness.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    /// Cores, stalls, and the client's part.
    Figures {
        /// Of which requests.
        selection: Selection,
        /// Host stalls in this order.
        order: StallOrder,
    },
    /// Lateness of each request over time.
    OverTime {
        /// What the plot shows.
        view: TimeRange,
        /// Of which requests.
        filter: Option<Arc<Filter>>,
        /// How heights are drawn.
        scale: Scale,
    },
    /// How lateness is spread.
    Spread {
        /// Of which requests.
        selection: Selection,
        /// Drawn how.
        spread: Spread,
    },
}

/// Where an answer is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// Figures.
    Figures,
    /// The plot over time.
    OverTime(Scale),
    /// The spread.
    Spread(Spread),
}

impl Ask {
    /// Where the answer is shown.
    #[must_use]
    pub const fn slot(&self) -> Place {
        match self {
            Self::Figures { .. } => Place::Figures,
            Self::OverTime { scale, .. } => Place::OverTime(*scale),
            Self::Spread { spread, .. } => Place::Spread(*spread),
        }
    }

    /// The answer.
    #[must_use]
    pub fn answer(&self, opened: &OpenedRun) -> AnyAnswer {
        let picture = match self {
            Self::Figures { selection, order } => {
                let figures = figures::figures(opened, selection, *order);
                return AnyAnswer::Lateness(Box::new(figures));
            }
            Self::OverTime { view, filter, scale } => {
                over_time::picture(opened, *view, filter.as_ref(), *scale)
            }
            Self::Spread { selection, spread } => spread::picture(opened, selection, *spread),
        };
        AnyAnswer::Picture(Box::new(picture))
    }
}
