//! The values of one number in two runs: held against each other request by request, or each run's
//! by themselves.
//!
//! Figures, intervals and rank tests of every comparison are made from these. Which requests have
//! a value is the caller's to say (of a part of a run, the others have none), and whether they are
//! paired is [`super::pairing()`]'s.

use std::sync::Arc;

use super::super::Ranked;
use super::super::bootstrap::{Difference, Figure, difference};
use super::{Pairs, RankTest, mann_whitney, signed_rank};

/// The values of one number in two runs.
#[derive(Clone, Debug)]
pub enum Values {
    /// Of the same requests.
    Paired(Pairs),
    /// Of requests that have no counterparts.
    Apart([Arc<Ranked>; 2]),
}

impl Values {
    /// Of each request of both runs; without pairs it does not matter whose a value is.
    #[must_use]
    pub fn new(before: Vec<Option<f64>>, after: Vec<Option<f64>>, paired: bool) -> Self {
        if paired {
            return Self::Paired(Pairs::new(before, after));
        }
        let ranked =
            |values: Vec<Option<f64>>| values.into_iter().flatten().collect::<Vec<f64>>().into();
        Self::Apart([before, after].map(|values| Arc::new(ranked(values))))
    }

    /// How a figure of the second run differs from that of the first, and how surely.
    #[must_use]
    pub fn difference(&self, figure: Figure) -> Option<Difference> {
        match self {
            Self::Paired(pairs) => pairs.difference(figure),
            Self::Apart([before, after]) => difference(before, after, figure),
        }
    }

    /// The figure of each run that has it.
    #[must_use]
    pub fn each(&self, figure: Figure) -> [Option<f64>; 2] {
        match self {
            Self::Paired(pairs) => pairs.ranked().each_ref().map(|ranked| figure.of(ranked)),
            Self::Apart(both) => both.each_ref().map(|ranked| figure.of(ranked)),
        }
    }

    /// Why there is no interval, if it is that values are few.
    #[must_use]
    pub fn too_few(&self, figure: Figure) -> Option<String> {
        let counts = match self {
            Self::Paired(pairs) => pairs.ranked().each_ref().map(Ranked::count),
            Self::Apart(both) => both.each_ref().map(|ranked| ranked.count()),
        };
        figure.too_few(counts[0].min(counts[1]))
    }

    /// Whether values moved at all, whatever the figures say.
    #[must_use]
    pub fn moved(&self) -> Option<RankTest> {
        match self {
            Self::Paired(pairs) => signed_rank(pairs),
            Self::Apart([before, after]) => mann_whitney(before, after),
        }
    }
}
