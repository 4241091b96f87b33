//! The numbers of a request that distributions are made of and that stand against each other.
//!
//! Nearly all are fields (see [`crate::fields`]); besides there are the gaps between chunks, of
//! which a request has many, and the requests in flight when it left. A number is looked at for
//! successful requests, except where a failure has it just as well: what was sent and how late.

use std::sync::{Arc, OnceLock};

use onbeat_shared::metrics::{
    Metric, Ranked,
    goal::{Figure, GoalKind},
    latency::chunk_gaps_ns,
    quantile::Collector,
    throughput,
};

use super::axes::{Axis, AxisScale, Unit};
use super::picture::Cell;
use crate::fields::{Field, Measure, Value};
use crate::opened::OpenedRun;
use crate::quantity::TimeUnit;
use crate::selection::{Kept, Selection};
use crate::state::Scale;

/// A number of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Number {
    /// One of its facts.
    Of(Field),
    /// The time between two of its chunks: many for each request.
    ChunkGap,
    /// Requests in flight right after it left, itself included.
    InFlight,
}

/// Names for people, in the order of the choice. A fact that is not here has no distribution worth
/// looking at.
const NAMES: &[(Number, &str)] = &[
    (Number::Of(Field::Ttft), "Time to first token"),
    (Number::Of(Field::TtftDue), "Time to first token, from due"),
    (Number::Of(Field::FirstOutput), "Time to first output token"),
    (Number::Of(Field::Ttst), "Time to second token"),
    (Number::Of(Field::Itl), "Time between tokens"),
    (Number::ChunkGap, "Gap between chunks"),
    (Number::Of(Field::LongestGap), "Longest gap between chunks"),
    (Number::Of(Field::Ntpot), "End to end per token"),
    (Number::Of(Field::Decode), "Decode time"),
    (Number::Of(Field::Speed), "Decode speed per user"),
    (Number::Of(Field::E2e), "End to end"),
    (Number::Of(Field::E2eDue), "End to end, from due"),
    (Number::Of(Field::FirstByte), "Time to first byte"),
    (Number::Of(Field::Send), "Time to send"),
    (Number::Of(Field::Lateness), "Send lateness"),
    (Number::Of(Field::Queue), "Queue time"),
    (Number::Of(Field::Input), "Input length"),
    (Number::Of(Field::Cached), "Cached input"),
    (Number::Of(Field::CachedShare), "Cached share"),
    (Number::Of(Field::Output), "Output length"),
    (Number::Of(Field::Reasoning), "Reasoning length"),
    (Number::Of(Field::Chunks), "Chunks"),
    (Number::InFlight, "Requests in flight"),
    (Number::Of(Field::Turn), "Turn"),
];

impl Number {
    /// Every number, in the order of the choice.
    pub fn all() -> impl Iterator<Item = Self> + Clone {
        NAMES.iter().map(|&(number, _)| number)
    }

    /// Those of which a request has one.
    pub fn single() -> impl Iterator<Item = Self> + Clone {
        Self::all().filter(|&number| number != Self::ChunkGap)
    }

    /// Its name for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        let named = NAMES.iter().find(|(number, _)| *number == self);
        match (named, self) {
            (Some((_, name)), _) => name,
            (None, Self::Of(field)) => field.row().heading,
            (None, Self::ChunkGap | Self::InFlight) => "",
        }
    }

    /// What it is, in a few words.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Of(field) => field.row().about,
            Self::ChunkGap => "from one content event of an answer to the next",
            Self::InFlight => "right after the request left, itself included",
        }
    }

    /// What it counts.
    #[must_use]
    pub const fn measure(self) -> Measure {
        match self {
            Self::Of(field) => match field.row().value {
                Value::Number(measure, _) => measure,
                _ => Measure::Count,
            },
            Self::ChunkGap => Measure::Duration,
            Self::InFlight => Measure::Count,
        }
    }

    /// Whether failures count too.
    #[must_use]
    pub const fn of_failures_too(self) -> bool {
        matches!(
            self,
            Self::InFlight
                | Self::Of(
                    Field::Lateness | Field::Send | Field::Queue | Field::Input | Field::Turn
                )
        )
    }

    /// Its value for request `i`; `None` where it has none, or may have none (see
    /// [`Self::of_failures_too`]), and for what a request has many of.
    #[must_use]
    pub fn value(self, opened: &OpenedRun, i: usize) -> Option<f64> {
        let requests = &opened.run.requests;
        let counts = requests.is_ok(i) || (self.of_failures_too() && requests.was_sent(i));
        let value = match self {
            _ if !counts => None,
            Self::Of(field) => field.number(&opened.run, i),
            Self::InFlight => opened.numbers.in_flight(opened)[i].map(f64::from),
            Self::ChunkGap => None,
        };
        value.filter(|value| value.is_finite())
    }

    /// What a goal on it is of, if there can be one.
    #[must_use]
    pub const fn goal(self) -> Option<GoalKind> {
        Some(match self {
            Self::Of(Field::Ttft) => GoalKind::AtMost(Metric::Ttft),
            Self::Of(Field::TtftDue) => GoalKind::AtMost(Metric::TtftFromDue),
            Self::Of(Field::FirstOutput) => GoalKind::AtMost(Metric::FirstOutputToken),
            Self::Of(Field::Ttst) => GoalKind::AtMost(Metric::Ttst),
            Self::Of(Field::Itl) => GoalKind::AtMost(Metric::Itl),
            Self::Of(Field::Ntpot) => GoalKind::AtMost(Metric::Ntpot),
            Self::Of(Field::Decode) => GoalKind::AtMost(Metric::Decode),
            Self::Of(Field::E2e) => GoalKind::AtMost(Metric::E2e),
            Self::Of(Field::E2eDue) => GoalKind::AtMost(Metric::E2eFromDue),
            Self::Of(Field::Send) => GoalKind::AtMost(Metric::Send),
            Self::Of(Field::FirstByte) => GoalKind::AtMost(Metric::FirstByte),
            Self::Of(Field::Speed) => GoalKind::Of(Figure::PerUserSpeed),
            Self::Of(Field::LongestGap) => GoalKind::Of(Figure::LongestGap),
            _ => return None,
        })
    }

    /// The axis it stands on; `most` is the largest value, for the unit of times.
    #[must_use]
    pub fn axis(self, scale: Scale, most: f64) -> Axis {
        let unit = match self {
            Self::Of(Field::Input | Field::Cached | Field::Output | Field::Reasoning) => {
                Unit::Number("tokens")
            }
            _ => match self.measure() {
                Measure::Duration | Measure::Instant => Unit::Time(TimeUnit::fitting(most)),
                Measure::Share => Unit::Share,
                Measure::Speed => Unit::Number("tokens/s"),
                Measure::Bytes => Unit::Number("bytes"),
                Measure::Count | Measure::Label => Unit::Number(""),
            },
        };
        // Shares go from nothing to everything; powers of ten would say nothing.
        let scale = match scale {
            Scale::Log if unit != Unit::Share => AxisScale::Log10,
            Scale::Log | Scale::Linear => AxisScale::Linear,
        };
        Axis { label: self.name(), unit, scale }
    }

    /// How its values are written in a table.
    #[must_use]
    pub const fn cell(self) -> Cell {
        match self.measure() {
            Measure::Duration | Measure::Instant => Cell::Duration,
            Measure::Share => Cell::Share,
            _ => Cell::Number,
        }
    }

    /// Its value with its unit.
    #[must_use]
    pub fn words(self, value: f64) -> String {
        self.axis(Scale::Linear, value).words(value)
    }

    /// Its values for some requests, in order.
    #[must_use]
    pub fn ranked(self, opened: &OpenedRun, requests: &[u32]) -> Ranked {
        let mut collector = match self.measure() {
            // Binned beyond 10⁷ values: nanoseconds and tokens are whole, shares and speeds not.
            Measure::Share | Measure::Speed => Collector::with_steps(1e6),
            _ => Collector::new(),
        };
        let run = &opened.run;
        for i in requests.iter().map(|&i| i as usize) {
            if self == Self::ChunkGap {
                if run.requests.is_ok(i) {
                    collector.extend(chunk_gaps_ns(run, i).map(|gap| gap as f64));
                }
            } else if let Some(value) = self.value(opened, i) {
                collector.push(value);
            }
        }
        collector.ranked()
    }
}

/// What was worked out about a whole run and is asked again with every selection.
#[derive(Debug, Default)]
pub struct Numbers {
    in_flight: OnceLock<Vec<Option<u32>>>,
    ranked: Kept<Number, Arc<Ranked>>,
}

/// How many distributions of a whole run are kept.
const KEPT: usize = 3;

impl Numbers {
    fn in_flight(&self, opened: &OpenedRun) -> &[Option<u32>] {
        self.in_flight.get_or_init(|| throughput::in_flight_at_send(&opened.run))
    }

    /// The values of a number over the whole run. Frames must not ask.
    #[must_use]
    pub fn of_whole(&self, opened: &OpenedRun, number: Number) -> Arc<Ranked> {
        self.ranked.get(KEPT, number, || {
            Arc::new(number.ranked(opened, &opened.chosen(&Selection::default())))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, path::PathBuf};

    use onbeat_shared::{log::sample, run::Run};

    use super::*;

    fn opened() -> OpenedRun {
        let run = Run::read(&sample::log(3, 300)).expect("a readable log");
        OpenedRun::new(PathBuf::from("sample.beat"), 0, run)
    }

    #[test]
    fn every_number_has_a_name_and_is_a_number() {
        let names: BTreeSet<_> = Number::all().map(Number::name).collect();
        assert_eq!(names.len(), NAMES.len());
        for number in Number::all() {
            assert!(!number.name().is_empty() && !number.about().is_empty());
            if let Number::Of(field) = number {
                assert!(matches!(field.row().value, Value::Number(..)), "{field:?}");
            }
        }
    }

    #[test]
    fn values_agree_with_the_report() {
        let opened = opened();
        let everything: Vec<u32> = (0..300).collect();
        let latency = &opened.report().latency;
        for (number, statistic) in [
            (Number::Of(Field::Ttft), &latency.ttft_ms),
            (Number::Of(Field::Itl), &latency.itl_ms),
            (Number::Of(Field::E2e), &latency.e2e_ms),
            (Number::ChunkGap, &latency.icl_ms),
        ] {
            let statistic = statistic.as_ref().expect("data");
            let ranked = number.ranked(&opened, &everything);
            assert_eq!(ranked.count(), statistic.count, "{number:?}");
            for (share, value) in
                [(0.5, statistic.p50), (0.99, statistic.p99), (1.0, statistic.max)]
            {
                let found = ranked.percentile(share).expect("data") / 1e6;
                assert!((found - value).abs() < 1e-9, "{number:?}: {found}, not {value}");
            }
        }
    }

    #[test]
    fn failures_have_a_lateness_and_no_latency() {
        let opened = opened();
        let requests = &opened.run.requests;
        let failed = (0..300)
            .find(|&i| requests.was_sent(i) && !requests.is_ok(i))
            .expect("the sample has failures");
        assert_eq!(Number::Of(Field::E2e).value(&opened, failed), None);
        assert!(Number::Of(Field::Lateness).value(&opened, failed).is_some());
        assert!(Number::InFlight.value(&opened, failed).is_some());
        let peak = (0..300).filter_map(|i| Number::InFlight.value(&opened, i)).fold(0.0, f64::max);
        assert_eq!(Some(peak), opened.report().throughput.peak_in_flight.map(|most| most as f64));
    }

    #[test]
    fn the_whole_runs_values_are_worked_out_once() {
        let opened = opened();
        let number = Number::Of(Field::Ttft);
        let first = opened.numbers.of_whole(&opened, number);
        assert!(Arc::ptr_eq(&first, &opened.numbers.of_whole(&opened, number)));
        for number in Number::all().take(KEPT + 1) {
            let _ = opened.numbers.of_whole(&opened, number);
        }
        assert_eq!(opened.numbers.ranked.count(), KEPT);
    }
}
