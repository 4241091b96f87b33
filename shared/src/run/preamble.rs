//! What a log says before its records: the plan, the sessions' names, the trace's own answers.
//!
//! All of it is written before the first request leaves, so once a record has come nothing is added
//! to it any more. Sizes come from how long the log is, never from what it claims.

use std::sync::Arc;

use super::prefixes::{Collected, Prefixes};
use crate::log::prefix_rows::{PathRows, StretchRows};
use crate::log::{
    Manifest, PLAN_ROW_BYTES, PlanRow, PlanRows, RecordedRow, RecordedRows, SessionNames,
};
use crate::units::{CoreIndex, RequestIndex, SessionIndex};

/// What came before the records, as it comes.
#[derive(Debug, Default)]
pub(super) struct Preamble {
    plan: Arc<Vec<PlanRow>>,
    known: Vec<bool>,
    names: Vec<(usize, String)>,
    recorded: Vec<RecordedRow>,
    prefixes: Collected,
    has_plan: bool,
    plan_conflicts: u64,
}

/// What came before the records, once that is over.
#[derive(Clone, Debug, Default)]
pub(super) struct Tables {
    pub(super) plan: Arc<Vec<PlanRow>>,
    pub(super) names: Arc<Vec<String>>,
    pub(super) recorded: Arc<Vec<RecordedRow>>,
    pub(super) prefixes: Option<Arc<Prefixes>>,
    /// Whether any block of the plan was whole.
    pub(super) has_plan: bool,
    pub(super) plan_conflicts: u64,
    pub(super) lost_rows: u64,
    pub(super) lost_names: u64,
}

impl Preamble {
    /// Whether any block of the plan was whole.
    pub(super) const fn has_plan(&self) -> bool {
        self.has_plan
    }

    /// Takes rows of the plan; the log is so long after them. That bounds it, not the count that
    /// the manifest states.
    pub(super) fn plan(&mut self, rows: &PlanRows<'_>, stated: u32, log_bytes: usize) {
        self.has_plan = true;
        let limit = (stated as usize).min(log_bytes / PLAN_ROW_BYTES);
        let plan = Arc::make_mut(&mut self.plan);
        for row in rows.iter() {
            let i = row.request.as_usize();
            if i >= limit || self.known.get(i) == Some(&true) {
                self.plan_conflicts += 1;
                continue;
            }
            while plan.len() <= i {
                plan.push(lost_row(plan.len()));
                self.known.push(false);
            }
            plan[i] = row;
            self.known[i] = true;
        }
    }

    /// Takes names of sessions.
    pub(super) fn names(&mut self, names: &SessionNames<'_>) {
        let named = (names.first as usize..).zip(names.iter());
        self.names.extend(named.map(|(at, name)| (at, String::from_utf8_lossy(name).into_owned())));
    }

    /// Takes rows about recorded answers.
    pub(super) fn recorded(&mut self, rows: &RecordedRows<'_>) {
        self.recorded.extend(rows.iter());
    }

    /// Takes blocks that the same prompts have.
    pub(super) fn stretches(&mut self, rows: &StretchRows<'_>) {
        self.prefixes.stretches(rows);
    }

    /// Takes which of those prompts have.
    pub(super) fn paths(&mut self, rows: &PathRows<'_>) {
        self.prefixes.paths(rows);
    }

    /// Records have come, so a row of the plan that has not is a damaged one.
    pub(super) fn fill(&mut self, manifest: Option<&Manifest>, log_bytes: usize) {
        let Some(manifest) = manifest else { return };
        let limit = (manifest.planned as usize).min(log_bytes / PLAN_ROW_BYTES);
        let plan = Arc::make_mut(&mut self.plan);
        while plan.len() < limit {
            plan.push(lost_row(plan.len()));
            self.known.push(false);
        }
    }

    /// All of it in order. There are never more sessions than requests.
    pub(super) fn tables(&self) -> Tables {
        let requests = self.plan.len();
        let (mut names, mut lost_names) = (Vec::new(), 0);
        for (at, name) in &self.names {
            if *at >= requests {
                lost_names += 1;
                continue;
            }
            if names.len() <= *at {
                names.resize(at + 1, String::new());
            }
            names[*at].clone_from(name);
        }
        let rows = self.recorded.iter().filter(|row| row.request.as_usize() < requests);
        let mut recorded: Vec<_> = rows.copied().collect();
        recorded.sort_by_key(|row| row.request);
        // The first row about a request counts.
        recorded.dedup_by_key(|row| row.request);
        Tables {
            plan: Arc::clone(&self.plan),
            names: Arc::new(names),
            recorded: Arc::new(recorded),
            prefixes: self.prefixes.finish(requests).map(Arc::new),
            has_plan: self.has_plan,
            plan_conflicts: self.plan_conflicts,
            lost_rows: self.known.iter().filter(|&&known| !known).count() as u64,
            lost_names,
        }
    }
}

/// The place of a row that the log lost.
pub(super) fn lost_row(i: usize) -> PlanRow {
    PlanRow {
        request: RequestIndex(u32::try_from(i).unwrap_or(u32::MAX)),
        session: SessionIndex(u32::MAX),
        turn: 0,
        core: CoreIndex::CONDUCTOR,
        target: u16::MAX,
        row: 0,
        due: None,
        after: None,
        source: 0,
        think_ns: None,
        input_tokens: None,
        max_tokens: None,
        min_tokens: None,
        ideal_cached_tokens: None,
        ideal_set_tokens: None,
        blocks: 0,
        body_bytes: None,
    }
}
