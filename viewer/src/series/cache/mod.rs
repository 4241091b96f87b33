//! The prefix cache: what was possible, what the server says it had, and how large its cache seems.
//!
//! All rates are sums of tokens over sums of tokens, of requests that left, and belong to the
//! instant of their sending. What a server does not report is unknown: a gap and a word.

pub mod curve;
pub mod over_time;
pub mod sessions;

use std::sync::Arc;

use onbeat_shared::{log::Outcome, metrics::cache::Sums};

use super::Answer as AnyAnswer;
use crate::filter::Filter;
use crate::opened::OpenedRun;
use crate::selection::Selection;
use crate::state::TimeRange;
pub use curve::CurveAnswer;
pub use sessions::{SessionColumn, SessionRow, SessionSort, Sessions};

/// What the user chose about the Cache panel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CacheChoices {
    /// The order of the table of sessions.
    pub sort: SessionSort,
}

/// A question about the cache.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    /// Hit rates over time.
    OverTime {
        /// What the plot shows.
        view: TimeRange,
        /// Of which requests.
        filter: Option<Arc<Filter>>,
    },
    /// The hit rate of caches of growing size.
    Curve {
        /// Of which requests.
        selection: Selection,
    },
    /// Hit rates of each session.
    Sessions {
        /// Of which requests.
        selection: Selection,
        /// In which order.
        sort: SessionSort,
    },
    /// Hit rates by what became of requests.
    Outcomes {
        /// Of which requests.
        selection: Selection,
    },
}

/// Where an answer is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The plot over time.
    OverTime,
    /// The plot over sizes.
    Curve,
    /// The table of sessions.
    Sessions,
    /// The table of outcomes.
    Outcomes,
}

/// An answer that is more than a picture.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Hit rates of caches of growing size.
    Curve(Box<CurveAnswer>),
    /// Hit rates of each session.
    Sessions(Sessions),
    /// Hit rates by outcome.
    Outcomes(Vec<OutcomeRow>),
}

/// What requests with one outcome had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutcomeRow {
    /// The outcome; `None`: in flight when the log ends.
    pub outcome: Option<Outcome>,
    /// Their tokens.
    pub sums: Sums,
}

impl Answer {
    /// The curve, if it is one.
    #[must_use]
    pub fn curve(&self) -> Option<&CurveAnswer> {
        match self {
            Self::Curve(curve) => Some(curve),
            Self::Sessions(_) | Self::Outcomes(_) => None,
        }
    }

    /// The sessions, if it is that.
    #[must_use]
    pub const fn sessions(&self) -> Option<&Sessions> {
        match self {
            Self::Sessions(sessions) => Some(sessions),
            Self::Curve(_) | Self::Outcomes(_) => None,
        }
    }

    /// The outcomes, if it is that.
    #[must_use]
    pub fn outcomes(&self) -> Option<&[OutcomeRow]> {
        match self {
            Self::Outcomes(rows) => Some(rows),
            Self::Curve(_) | Self::Sessions(_) => None,
        }
    }
}

impl Ask {
    /// Its place on screen.
    #[must_use]
    pub const fn place(&self) -> Place {
        match self {
            Self::OverTime { .. } => Place::OverTime,
            Self::Curve { .. } => Place::Curve,
            Self::Sessions { .. } => Place::Sessions,
            Self::Outcomes { .. } => Place::Outcomes,
        }
    }

    /// Works it out.
    #[must_use]
    pub fn answer(&self, opened: &OpenedRun) -> AnyAnswer {
        let answer = match self {
            Self::OverTime { view, filter } => {
                let passing = opened.passing(filter.as_ref());
                let picture = over_time::picture(opened, *view, &passing);
                return AnyAnswer::Picture(Box::new(picture));
            }
            Self::Curve { selection } => Answer::Curve(Box::new(curve::answer(opened, selection))),
            Self::Sessions { selection, sort } => {
                Answer::Sessions(sessions::sessions(opened, selection, *sort))
            }
            Self::Outcomes { selection } => Answer::Outcomes(outcomes(opened, selection)),
        };
        AnyAnswer::Cache(Box::new(answer))
    }
}

/// What the chosen requests had, by outcome; only outcomes that are there.
#[must_use]
pub fn outcomes(opened: &OpenedRun, selection: &Selection) -> Vec<OutcomeRow> {
    let run = &opened.run;
    let order = Outcome::ALL.map(Some).into_iter().chain([None]);
    let mut rows: Vec<OutcomeRow> =
        order.map(|outcome| OutcomeRow { outcome, sums: Sums::default() }).collect();
    for &i in opened.chosen(selection).iter() {
        let i = i as usize;
        if run.requests.was_sent(i) {
            let place = run.requests.outcome(i).map_or(rows.len() - 1, |outcome| outcome as usize);
            rows[place].sums.add(run, i);
        }
    }
    rows.retain(|row| row.sums.requests > 0);
    rows
}

/// A run to test with.
#[cfg(test)]
fn opened(sample: &onbeat_shared::log::sample::Sample) -> OpenedRun {
    let run = onbeat_shared::run::Run::read(&sample.bytes()).expect("a readable log");
    OpenedRun::new(std::path::PathBuf::from("sample.beat"), 0, run)
}

#[cfg(test)]
mod tests {
    use onbeat_shared::log::sample;

    use super::*;

    #[test]
    fn outcomes_add_up_to_all_that_left() {
        let opened = opened(&sample::sample(4, 400));
        let rows = outcomes(&opened, &Selection::default());
        assert!(rows.len() > 2 && rows[0].outcome == Some(Outcome::Ok));
        let requests: u64 = rows.iter().map(|row| row.sums.requests).sum();
        assert_eq!(requests, opened.by_sent().len() as u64);
        let ideal: u64 = rows.iter().map(|row| row.sums.ideal.part).sum();
        let all = opened.run.plan.iter().filter_map(|row| row.ideal_cached_tokens);
        assert_eq!(ideal, all.map(u64::from).sum::<u64>());
        let failed = rows.iter().filter(|row| row.outcome != Some(Outcome::Ok));
        assert!(failed.map(|row| row.sums.reported.value()).all(|rate| rate.is_none()));
    }
}
