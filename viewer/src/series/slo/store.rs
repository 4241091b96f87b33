//! What goals need of a run and is worked out once: columns of numbers, groups of requests, the
//! order in time of those that count, and where values lie among thresholds.
//!
//! Kept with the run, the last few of each; at a million requests a column is 8 MB. Frames must not
//! ask.

use std::sync::{Arc, OnceLock};

use onbeat_shared::{
    metrics::{
        goal::GoalKind,
        scores::{Column, Group, Limited},
        slo::{self, Goals},
    },
    run::Run,
    units::RunNanos,
};

use super::curve::Thresholds;
use crate::opened::OpenedRun;
use crate::selection::{Kept, Selection};

/// Columns kept.
const COLUMNS: usize = 10;
/// Groups and thresholds kept.
const OTHERS: usize = 4;

/// What was worked out.
#[derive(Debug, Default)]
pub struct Store {
    columns: Kept<(GoalKind, bool), Arc<Column>>,
    groups: Kept<Selection, Arc<Group>>,
    thresholds: Kept<(Selection, GoalKind), Arc<Thresholds>>,
    counted: OnceLock<Box<[u32]>>,
}

/// Goals with their columns.
#[derive(Debug)]
pub struct Scored {
    columns: Vec<(Arc<Column>, f64)>,
}

impl Scored {
    /// As counting takes them.
    #[must_use]
    pub fn limited(&self) -> Vec<Limited<'_>> {
        self.columns.iter().map(|(column, limit)| (column.as_ref(), *limit)).collect()
    }
}

/// When a request counts in time: its sending, or its due time if it never left.
#[must_use]
pub fn placed(run: &Run, i: usize) -> Option<RunNanos> {
    run.requests.sent(i).or(run.requests.due(i))
}

impl OpenedRun {
    /// The numbers that goals of a kind compare.
    #[must_use]
    pub fn column(&self, kind: GoalKind, effective: bool) -> Arc<Column> {
        let make = || Arc::new(Column::of(&self.run, kind, effective));
        self.scores.columns.get(COLUMNS, (kind, effective), make)
    }

    /// Goals with their columns; `effective` counts the wait for the sending into TTFT.
    #[must_use]
    pub fn scored(&self, goals: &Goals, effective: bool) -> Scored {
        let with_column = |goal: &onbeat_shared::metrics::goal::Goal| {
            let is_ttft = goal.kind == onbeat_shared::metrics::Metric::Ttft.goal();
            (self.column(goal.kind, effective && is_ttft), goal.limit)
        };
        Scored { columns: goals.list().iter().map(with_column).collect() }
    }

    /// The requests of a selection, as far as goals are concerned.
    #[must_use]
    pub fn group(&self, selection: &Selection) -> Arc<Group> {
        self.scores.groups.get(OTHERS, selection.clone(), || {
            let chosen = self.chosen(selection);
            Arc::new(Group::of(&self.run, chosen.iter().map(|&i| i as usize)))
        })
    }

    /// Where the numbers of a selection's requests lie among thresholds.
    #[must_use]
    pub fn thresholds(&self, selection: &Selection, kind: GoalKind) -> Arc<Thresholds> {
        let group = self.group(selection);
        let column = self.column(kind, false);
        let key = (selection.clone(), kind);
        let make = || Arc::new(Thresholds::of(&column, &group));
        self.scores.thresholds.get(OTHERS, key, make)
    }

    /// Every request that counts in shares and has a place in time, by that.
    #[must_use]
    pub fn counted(&self) -> &[u32] {
        self.scores.counted.get_or_init(|| {
            let run = &self.run;
            let requests = u32::try_from(run.requests.len()).unwrap_or(u32::MAX);
            let counts = |&i: &u32| slo::counts(run, i as usize);
            let mut counted: Vec<u32> = (0..requests)
                .filter(counts)
                .filter(|&i| placed(run, i as usize).is_some())
                .collect();
            counted.sort_by_key(|&i| placed(run, i as usize));
            counted.into()
        })
    }
}
