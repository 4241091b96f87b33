//! Percentiles of durations if every failure had taken forever.
//!
//! Failures leave the statistics of successful requests; a server that drops the slow ones would
//! look fast. Here each failure counts as an infinite duration, so that a percentile is null where
//! the answer is infinite. Percentiles are nearest ranks (a value that was measured, or infinity);
//! at a tie between two ranks the even one, as numpy does. A failure is a request that ended by
//! itself without success; one that was cancelled or cut off is in neither part: how long it would
//! have taken is not known.

use serde::Serialize;

use super::latency::Metric;
use super::quantile::error_adjusted;
use super::selection::Selection;
use super::slo;

/// One duration, failures as infinite.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Adjusted {
    /// Values and failures together.
    pub count: u64,
    /// How many of them are failures.
    pub failures: u64,
    /// Smallest; null if it is infinite, as all that follow.
    pub min: Option<f64>,
    /// 1st percentile.
    pub p1: Option<f64>,
    /// 5th percentile.
    pub p5: Option<f64>,
    /// 10th percentile.
    pub p10: Option<f64>,
    /// 25th percentile.
    pub p25: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 75th percentile.
    pub p75: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// 99.99th percentile.
    pub p9999: Option<f64>,
}

/// Durations of all requests that ended by themselves, failures as infinite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct FailuresAsInfinite {
    /// First token − sent.
    pub ttft_ms: Option<Adjusted>,
    /// First token − due.
    pub ttft_from_due_ms: Option<Adjusted>,
    /// (Last token − first token) / (completion tokens − 1).
    pub itl_ms: Option<Adjusted>,
    /// Last token − first token.
    pub decode_ms: Option<Adjusted>,
    /// Last token − sent.
    pub e2e_ms: Option<Adjusted>,
    /// Last token − due.
    pub e2e_from_due_ms: Option<Adjusted>,
}

impl Adjusted {
    /// From values in ascending order, each divided by `unit`, and a number of failures; `None`
    /// where there is neither.
    #[must_use]
    pub fn of(sorted: &[f64], failures: u64, unit: f64) -> Option<Self> {
        let count = sorted.len() as u64 + failures;
        let at = |share: f64| error_adjusted(sorted, failures, share).map(|value| value / unit);
        (count > 0).then(|| Self {
            count,
            failures,
            min: at(0.0),
            p1: at(0.01),
            p5: at(0.05),
            p10: at(0.1),
            p25: at(0.25),
            p50: at(0.5),
            p75: at(0.75),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            p9999: at(0.9999),
        })
    }
}

impl FailuresAsInfinite {
    /// The durations of the chosen requests.
    #[must_use]
    pub fn of(selection: &Selection<'_>) -> Self {
        let run = selection.run();
        let failed = |&i: &usize| slo::failed(run, i);
        let failures = selection.requests().filter(failed).count() as u64;
        let of = |metric: Metric| {
            let values = selection.successful().filter_map(|i| metric.value_ns(run, i));
            let mut values: Vec<f64> = values.collect();
            values.sort_unstable_by(f64::total_cmp);
            Adjusted::of(&values, failures, 1e6)
        };
        Self {
            ttft_ms: of(Metric::Ttft),
            ttft_from_due_ms: of(Metric::TtftFromDue),
            itl_ms: of(Metric::Itl),
            decode_ms: of(Metric::Decode),
            e2e_ms: of(Metric::E2e),
            e2e_from_due_ms: of(Metric::E2eFromDue),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Class;
    use crate::log::sample::Sample;
    use crate::run::Run;

    const MS: i64 = 1_000_000;

    #[test]
    fn the_slow_ones_that_failed_are_not_forgotten() {
        let mut sample = Sample::new();
        for k in 0..5 {
            let request = sample.send(k * MS);
            match k {
                0..3 => {
                    sample.chunks(request, &[(k + 10) * MS, (k + 30) * MS]);
                    sample.done(request, (k + 30) * MS, Class::Ok);
                }
                3 => sample.done(request, 900 * MS, Class::TotalTimeout),
                _ => sample.done(request, 20 * MS, Class::Interrupted),
            }
        }
        let run = Run::read(&sample.bytes()).expect("a log");
        let all = FailuresAsInfinite::of(&Selection::new(&run, None));
        let ttft = all.ttft_ms.expect("three answers");
        assert_eq!((ttft.count, ttft.failures), (4, 1), "what was cut off is in neither part");
        assert_eq!((ttft.min, ttft.p50), (Some(10.0), Some(10.0)), "rank 1.5 goes to 2");
        assert_eq!((ttft.p90, ttft.p9999), (None, None));
        assert_eq!(Adjusted::of(&[], 0, 1.0), None);
    }
}
