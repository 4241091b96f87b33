//! The table of requests and the details of one: the order of the rows, and everything the log says
//! about a request with its session and its neighbours.

pub mod details;
pub mod order;

use std::collections::BTreeSet;
use std::sync::Arc;

use onbeat_shared::run::Run;

use crate::fields::Field;
use crate::opened::OpenedRun;
use crate::selection::Selection;
use crate::state::Origin;
use details::Details;

/// By what the rows are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sort {
    /// The column.
    pub field: Field,
    /// The largest first.
    pub descending: bool,
}

impl Default for Sort {
    fn default() -> Self {
        Self { field: Field::Number, descending: false }
    }
}

/// What the user chose about the Requests panel.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestsChoices {
    /// By what the rows are sorted.
    pub sort: Sort,
    /// The columns that are shown.
    pub columns: BTreeSet<Field>,
    /// The request that is looked at.
    pub chosen: Option<u32>,
    /// Whether its details are shown.
    pub details: bool,
    /// From where the times of its details count.
    pub origin: Origin,
    /// The chosen request is to come into sight.
    pub reveal: bool,
}

/// The columns that are shown at first.
const FIRST_COLUMNS: [Field; 14] = [
    Field::Number,
    Field::Due,
    Field::Sent,
    Field::Lateness,
    Field::Session,
    Field::Turn,
    Field::Input,
    Field::Cached,
    Field::Output,
    Field::Ttft,
    Field::Itl,
    Field::E2e,
    Field::Outcome,
    Field::Status,
];

impl Default for RequestsChoices {
    fn default() -> Self {
        Self {
            sort: Sort::default(),
            columns: FIRST_COLUMNS.into(),
            chosen: None,
            details: false,
            origin: Origin::Sent,
            reveal: false,
        }
    }
}

impl RequestsChoices {
    /// Looks at a request: its details are shown and its row comes into sight.
    pub fn show(&mut self, request: u32) {
        self.chosen = Some(request);
        self.details = true;
        self.reveal = true;
    }

    /// Sorts by a column; by the same one again, the other way round. Numbers begin with the
    /// largest, as the slow ones are looked for.
    pub fn sort_by(&mut self, field: Field) {
        let descending = if self.sort.field == field {
            !self.sort.descending
        } else {
            !field.is_text() && field != Field::Number
        };
        self.sort = Sort { field, descending };
        self.reveal = self.chosen.is_some();
    }

    /// Shows a column, or hides it. The last one stays.
    pub fn toggle(&mut self, field: Field) {
        if !self.columns.remove(&field) || self.columns.is_empty() {
            self.columns.insert(field);
        }
    }

    /// The columns that are shown at first.
    pub fn reset_columns(&mut self) {
        self.columns = FIRST_COLUMNS.into();
    }
}

/// A question of the Requests panel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    /// Which requests the table has, in which order.
    Rows {
        /// Those of this selection.
        selection: Selection,
        /// Sorted so.
        sort: Sort,
    },
    /// All there is to know of a request.
    Details {
        /// Which.
        request: u32,
    },
}

/// Where the answer is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The table.
    Rows,
    /// The details.
    Details,
}

/// The answer.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The rows.
    Rows(Rows),
    /// The details; `None` if the run has no such request.
    Details(Option<Box<Details>>),
}

/// The rows of the table.
#[derive(Clone, Debug)]
pub struct Rows {
    /// Their requests, from the top.
    pub order: Arc<[u32]>,
    /// How many requests the run had when they were put in order. A log that is being written can
    /// be replaced by a shorter one; rows of more requests than there are must not be drawn.
    pub planned: usize,
}

impl Answer {
    /// The rows, if it has them and `run` has every one of them.
    #[must_use]
    pub fn rows(&self, run: &Run) -> Option<&[u32]> {
        match self {
            Self::Rows(rows) if rows.planned <= run.requests.len() => Some(&rows.order),
            _ => None,
        }
    }

    /// The details, if it is them and `run` has every request that they name.
    #[must_use]
    pub fn details(&self, run: &Run) -> Option<&Details> {
        match self {
            Self::Details(Some(details)) if details.planned <= run.requests.len() => Some(details),
            _ => None,
        }
    }
}

impl Ask {
    /// Where the answer is shown.
    #[must_use]
    pub const fn place(&self) -> Place {
        match self {
            Self::Rows { .. } => Place::Rows,
            Self::Details { .. } => Place::Details,
        }
    }

    /// The answer.
    #[must_use]
    pub fn answer(&self, opened: &OpenedRun) -> Answer {
        match self {
            Self::Rows { selection, sort } => Answer::Rows(Rows {
                order: order::rows(opened, selection, *sort),
                planned: opened.run.requests.len(),
            }),
            Self::Details { request } => {
                // A log that was replaced by a shorter one may not have it any more.
                let known = (*request as usize) < opened.run.requests.len();
                let details = known.then(|| details::details(opened, *request));
                Answer::Details(details.map(Box::new))
            }
        }
    }
}
