//! One metric of a summary: the set of figures AIPerf writes for it, some of which it may lack.

use serde::Serialize;

use crate::metrics::adjusted::Adjusted;
use crate::metrics::latency::count;
use crate::metrics::quantile::Collector;
use crate::metrics::steps::TimeWeighted;

/// A metric with its figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) tag: &'static str,
    pub(super) header: &'static str,
    pub(super) figures: Figures,
}

/// The figures, in AIPerf's order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Figures {
    pub(super) unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) avg: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) p1: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) p5: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) p10: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) p25: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) p50: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) p75: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) p90: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) p95: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) p99: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) min: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) std: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sum: Option<f64>,
}

/// The columns of AIPerf's tables.
pub(super) const COLUMNS: [&str; 14] = [
    "avg", "min", "max", "sum", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "std",
];

impl Figures {
    /// A distribution of values; `None` without any.
    pub(super) fn of(unit: &'static str, values: impl IntoIterator<Item = f64>) -> Option<Self> {
        // A millionth: a nanosecond of a millisecond.
        let mut collector = Collector::with_steps(1e6);
        let mut sum = 0.0;
        for value in values {
            sum += value;
            collector.push(value);
        }
        let s = collector.statistic(1.0)?;
        Some(Self {
            unit,
            avg: Some(s.mean),
            p1: Some(s.p1),
            p5: Some(s.p5),
            p10: Some(s.p10),
            p25: Some(s.p25),
            p50: Some(s.p50),
            p75: Some(s.p75),
            p90: Some(s.p90),
            p95: Some(s.p95),
            p99: Some(s.p99),
            min: Some(s.min),
            max: Some(s.max),
            std: Some(s.std),
            count: Some(s.count),
            sum: Some(sum),
        })
    }

    /// A single number.
    pub(super) fn one(unit: &'static str, value: f64) -> Self {
        Self { unit, avg: Some(value), ..Self::default() }
    }

    /// A count.
    pub(super) fn counted(unit: &'static str, value: u64) -> Self {
        Self::one(unit, count(value))
    }

    /// Percentiles with failures as infinite: what is infinite is left out.
    pub(super) fn adjusted(unit: &'static str, a: &Adjusted) -> Self {
        Self {
            unit,
            p1: a.p1,
            p5: a.p5,
            p10: a.p10,
            p25: a.p25,
            p50: a.p50,
            p75: a.p75,
            p90: a.p90,
            p95: a.p95,
            p99: a.p99,
            min: a.min,
            count: Some(a.count),
            ..Self::default()
        }
    }

    /// Figures weighted by time, times `scale`.
    pub(super) fn weighted(unit: &'static str, scale: f64, w: &TimeWeighted) -> Self {
        let scaled = |value: f64| Some(value * scale);
        Self {
            unit,
            avg: scaled(w.mean),
            p50: scaled(w.p50),
            p90: scaled(w.p90),
            p95: scaled(w.p95),
            p99: scaled(w.p99),
            min: scaled(w.min),
            max: scaled(w.max),
            std: scaled(w.std),
            ..Self::default()
        }
    }

    /// The figures in the order of [`COLUMNS`].
    pub(super) const fn columns(&self) -> [Option<f64>; 14] {
        [
            self.avg, self.min, self.max, self.sum, self.p1, self.p5, self.p10, self.p25, self.p50,
            self.p75, self.p90, self.p95, self.p99, self.std,
        ]
    }

    /// Whether it has a percentile, and so belongs in the table of distributions.
    pub(super) fn has_percentiles(&self) -> bool {
        self.columns()[4..13].iter().any(Option::is_some)
    }
}
