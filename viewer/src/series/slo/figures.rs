//! How many requests meet goals, and which goal costs the most.

use onbeat_shared::metrics::{
    goal::{Goal, GoalKind},
    quantile,
    scores::Tally,
    slo::Goals,
};

use super::limits;
use crate::opened::OpenedRun;
use crate::selection::Selection;

/// Figures of one goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GoalFigures {
    /// Which.
    pub goal: Goal,
    /// Successful requests that meet it.
    pub met: u64,
    /// Their share of those that count; `None` if none counts.
    pub share: Option<f64>,
    /// Successful requests that miss it.
    pub missed: u64,
    /// Of these, requests that lack the number.
    pub unknown: u64,
    /// Of the missing ones, requests that meet all other goals.
    pub alone: u64,
}

/// Figures of all goals together.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Each goal's own.
    pub goals: Vec<GoalFigures>,
    /// Requests that count.
    pub of: u64,
    /// Of these, successful ones.
    pub succeeded: u64,
    /// Of these, failed ones.
    pub failed: u64,
    /// Of these, requests that the plan cancelled.
    pub cancelled: u64,
    /// Requests that were cut off, which do not count.
    pub cut_off: u64,
    /// Successful requests that meet every goal.
    pub good: u64,
    /// Their share; `None` if none counts.
    pub share: Option<f64>,
    /// The share of those that succeed and miss a goal.
    pub short_share: Option<f64>,
    /// The share of the failed.
    pub failed_share: Option<f64>,
    /// The share of the cancelled.
    pub cancelled_share: Option<f64>,
    /// The rate of the good; `None` if that cannot be told.
    pub rate: Option<f64>,
    /// The rate of all that count.
    pub rate_of_all: Option<f64>,
    /// The share if the wait for the sending counts into TTFT.
    pub effective_share: Option<f64>,
}

impl Figures {
    /// The goal that the most requests miss, if any is missed.
    #[must_use]
    pub fn worst(&self) -> Option<&GoalFigures> {
        self.goals.iter().filter(|goal| goal.missed > 0).max_by_key(|goal| goal.missed)
    }

    /// Those of one goal.
    #[must_use]
    pub fn of_goal(&self, kind: GoalKind) -> Option<&GoalFigures> {
        self.goals.iter().find(|figures| figures.goal.kind == kind)
    }
}

/// The figures of a selection.
#[must_use]
pub fn figures(opened: &OpenedRun, selection: &Selection, goals: &Goals) -> Figures {
    let group = opened.group(selection);
    let tally = Tally::of(&group, &opened.scored(goals, false).limited());
    let has_ttft = goals.limit(onbeat_shared::metrics::Metric::Ttft.goal()).is_some();
    let effective = if has_ttft {
        Tally::of(&group, &opened.scored(goals, true).limited()).good
    } else {
        tally.good
    };
    let succeeded = group.successful.len() as u64;
    let of_goal = |(place, &goal): (usize, &Goal)| GoalFigures {
        goal,
        met: tally.met[place],
        share: group.share(tally.met[place]),
        missed: succeeded - tally.met[place],
        unknown: tally.unknown[place],
        alone: tally.alone[place],
    };
    Figures {
        goals: goals.list().iter().enumerate().map(of_goal).collect(),
        of: group.of,
        succeeded,
        failed: group.failed,
        cancelled: group.cancelled,
        cut_off: group.cut_off,
        good: tally.good,
        share: group.share(tally.good),
        short_share: group.share(succeeded - tally.good),
        failed_share: group.share(group.failed),
        cancelled_share: group.share(group.cancelled),
        rate: group.rate(tally.good),
        rate_of_all: group.rate(group.of),
        effective_share: group.share(effective),
    }
}

/// Where a new goal begins if no request has its number, in its unit.
const NOWHERE: f64 = 100.0;

/// Where a new goal should begin: where 95 % of the successful requests meet it, roundly.
#[must_use]
pub fn start(opened: &OpenedRun, selection: &Selection, kind: GoalKind) -> f64 {
    let group = opened.group(selection);
    let column = opened.column(kind, false);
    let mut values: Vec<f64> = group
        .successful
        .iter()
        .filter_map(|&i| column.value(i as usize))
        .filter(|value| value.is_finite())
        .collect();
    values.sort_unstable_by(f64::total_cmp);
    let share = if kind.has_lower_limit() { 0.05 } else { 0.95 };
    let found = quantile::percentile(&values, share).map(|value| limits::rounded(value, 2));
    found.filter(|&limit| limit > 0.0).unwrap_or(NOWHERE)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use onbeat_shared::{
        log::sample,
        metrics::{ReportOptions, report},
        run::Run,
    };

    use super::*;

    fn opened() -> OpenedRun {
        let run = Run::read(&sample::log(6, 500)).expect("a log");
        OpenedRun::new(PathBuf::from("sample.beat"), 0, run)
    }

    #[test]
    fn figures_are_the_reports() {
        let opened = opened();
        for text in ["", "ttft:30", "ttft:40 itl:11 e2e:400 decode_tps:90"] {
            let goals = Goals::parse(text).expect("goals");
            let found = figures(&opened, &Selection::default(), &goals);
            let slo = Some(goals.clone());
            let expected = report(&opened.run, &ReportOptions { slo, ..Default::default() }).slo;
            if text.is_empty() {
                assert_eq!(found.good, found.succeeded, "no goal is missed");
                continue;
            }
            assert_eq!(Some(found.good), expected.goodput_requests);
            assert_eq!(found.share, expected.goodput_share);
            assert_eq!(found.rate, expected.goodput_rps);
            assert_eq!(found.effective_share, expected.effective_goodput_share);
            for goal in &found.goals {
                assert_eq!(goal.share, expected.met[goal.goal.kind.name()].share);
                assert_eq!(goal.met + goal.missed, found.succeeded);
            }
        }
    }

    #[test]
    fn a_new_goal_begins_where_most_meet_it() {
        let opened = opened();
        for kind in GoalKind::all() {
            let limit = start(&opened, &Selection::default(), kind);
            assert!(limit > 0.0 && limit.is_finite(), "{}", kind.name());
        }
        let mut goals = Goals::default();
        for kind in ["ttft", "itl", "e2e", "decode_tps"].map(GoalKind::from_name) {
            let kind = kind.expect("a name");
            let limit = start(&opened, &Selection::default(), kind);
            goals.set(Goal { kind, limit });
        }
        let found = figures(&opened, &Selection::default(), &goals);
        for goal in &found.goals {
            let share = goal.met as f64 / (goal.met + goal.missed) as f64;
            assert!((0.85..1.0).contains(&share), "{}: {share}", goal.goal.kind.name());
        }
        assert!(found.worst().is_some());
    }
}
