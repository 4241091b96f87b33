//! The users of a run that users drive: what they did, what the ramp decided, who was held back.
//!
//! States, periods and waits are `onbeat_shared`'s. They are facts of the whole run: a filter
//! chooses requests and changes nothing here; the chosen range says which rows the tables have. A
//! run without users has none of these pictures; the panel says so.

mod by_period;
mod held;
mod limits;
pub mod listing;
mod ramp;
mod stack;
mod states;
mod ttft;

use std::{
    cmp::Ordering,
    sync::{Arc, OnceLock},
};

use onbeat_shared::metrics::{
    attribution::UserGoals,
    held::{Held, Wait},
    periods,
    periods::Period,
    states::{StatesAt, over_time},
};

use super::picture::Picture;
use crate::opened::OpenedRun;
use crate::state::TimeRange;

/// What the lower plot shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Below {
    /// Time to first token of each period, and the ramp's limit.
    #[default]
    Ttft,
    /// How many users were held back, by which limit.
    Held,
    /// How much of each limit and budget was used.
    Limits,
}

/// Which table is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Listing {
    /// Assessment periods.
    #[default]
    Periods,
    /// Times that users were held back.
    Waits,
    /// The users.
    People,
}

/// Which column a table is sorted by, and which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sort {
    /// The column.
    pub column: usize,
    /// Largest first.
    pub descending: bool,
}

impl Sort {
    /// An order, turned round if the largest is to come first.
    #[must_use]
    pub const fn directed(self, order: Ordering) -> Ordering {
        if self.descending { order.reverse() } else { order }
    }

    /// What a click on a column's heading makes of it: numbers begin with the largest, words with
    /// the first, and a second click turns them round.
    #[must_use]
    pub const fn clicked(self, column: usize, is_text: bool) -> Self {
        if self.column == column {
            Self { column, descending: !self.descending }
        } else {
            Self { column, descending: !is_text }
        }
    }
}

/// What the user chose in the panel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsersChoices {
    /// The lower plot.
    pub below: Below,
    /// The table.
    pub listing: Listing,
    /// How the table of users is sorted.
    pub people: Sort,
    /// How the table of waits is sorted.
    pub waits: Sort,
}

impl Default for UsersChoices {
    fn default() -> Self {
        Self {
            below: Below::default(),
            listing: Listing::default(),
            people: Sort::default(),
            waits: Sort { column: listing::WAIT_FROM, descending: false },
        }
    }
}

/// A question of the panel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    /// Users by state, and the ramp's decisions.
    States {
        /// What the plot shows.
        view: TimeRange,
    },
    /// The lower plot.
    Below {
        /// What the plot shows.
        view: TimeRange,
        /// Which.
        below: Below,
    },
    /// Assessment periods.
    Periods {
        /// Those that lie in or touch this.
        range: TimeRange,
    },
    /// Times that users were held back.
    Waits {
        /// Those that begin in this.
        range: TimeRange,
        /// In which order.
        sort: Sort,
    },
    /// The users.
    People {
        /// Those that were there in this.
        range: TimeRange,
        /// In which order.
        sort: Sort,
    },
}

/// Where an answer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The upper plot.
    States,
    /// The lower plot.
    Below(Below),
    /// The table of periods.
    Periods,
    /// The table of waits.
    Waits,
    /// The table of users.
    People,
}

/// An answer that is no plot.
#[derive(Clone, Debug)]
pub enum Answer {
    /// All periods, and which of them are meant.
    Periods(Arc<[Period]>, std::ops::Range<usize>),
    /// Waits, and what each limit did.
    Waits(Vec<Wait>, Vec<Held>),
    /// Users, by their place.
    People(Vec<u32>),
}

impl Ask {
    /// Where its answer goes.
    #[must_use]
    pub const fn place(&self) -> Place {
        match *self {
            Self::States { .. } => Place::States,
            Self::Below { below, .. } => Place::Below(below),
            Self::Periods { .. } => Place::Periods,
            Self::Waits { .. } => Place::Waits,
            Self::People { .. } => Place::People,
        }
    }

    /// Works it out.
    #[must_use]
    pub fn answer(&self, opened: &OpenedRun) -> super::Answer {
        let picture = match *self {
            Self::States { view } => states::picture(opened, view),
            Self::Below { view, below } => below_picture(opened, view, below),
            Self::Periods { range } => {
                let all = Arc::clone(opened.people.periods(opened));
                let touched = listing::periods_in(&all, range);
                return Answer::Periods(all, touched).into();
            }
            Self::Waits { range, sort } => {
                let (waits, held) = listing::waits(opened, range, sort);
                return Answer::Waits(waits, held).into();
            }
            Self::People { range, sort } => {
                return Answer::People(listing::people(opened, range, sort)).into();
            }
        };
        super::Answer::Picture(Box::new(picture))
    }
}

impl From<Answer> for super::Answer {
    fn from(answer: Answer) -> Self {
        Self::Users(Box::new(answer))
    }
}

fn below_picture(opened: &OpenedRun, view: TimeRange, below: Below) -> Picture {
    match below {
        Below::Ttft => ttft::picture(opened, view),
        Below::Held => held::picture(opened, view),
        Below::Limits => limits::picture(opened, view),
    }
}

/// What all pictures of one run's users need, each worked out when it is first asked for.
#[derive(Debug, Default)]
pub struct Cache {
    periods: OnceLock<Arc<[Period]>>,
    changes: OnceLock<Arc<[StatesAt]>>,
}

impl Cache {
    /// The assessment periods, with the run's own goals.
    fn periods(&self, opened: &OpenedRun) -> &Arc<[Period]> {
        let run = &opened.run;
        self.periods.get_or_init(|| periods(run, UserGoals::of(run)).into())
    }

    /// The users' states, at every change.
    fn changes(&self, opened: &OpenedRun) -> &Arc<[StatesAt]> {
        self.changes.get_or_init(|| over_time(&opened.run).into())
    }
}

/// What is said where a plot of users has nothing to show.
const NO_USERS: &str = "No user is in this log";
