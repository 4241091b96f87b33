//! Which figures of two runs are compared, and of which requests each is made.
//!
//! Names are those of the JSON report, so that a gate and a row of the comparison speak of the same
//! number. Durations and lengths are of successful requests, lateness of all that left, shares of
//! those that ended by themselves.

use serde::Serialize;

use super::super::bootstrap::Figure;
use super::super::cache::ideal;
use super::super::latency::{Metric, count, nanos, tokens_per_s_per_user};
use super::super::lateness::{in_stall, lateness_ns};
use super::super::slo::{self, Goals};
use super::super::tokens;
use super::paired::Parts;
use crate::run::Run;

/// Which direction is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Good {
    /// Smaller values are better.
    Less,
    /// Larger values are better.
    More,
    /// Neither is better.
    Neither,
}

/// A number of which every request has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    /// A duration, in ms.
    Of(Metric),
    /// Lateness in µs.
    Lateness,
    /// That of requests that no host stall explains: what a verdict is of.
    LatenessOutsideStalls,
    /// Output tokens per second once the first one is there.
    Speed,
    /// Prompt tokens.
    Prompt,
    /// Completion tokens.
    Completion,
}

/// What is compared of a duration.
const OF_DURATIONS: &[(Figure, &str)] = &[
    (Figure::Mean, "mean"),
    (Figure::Quantile(0.5), "p50"),
    (Figure::Quantile(0.9), "p90"),
    (Figure::Quantile(0.95), "p95"),
    (Figure::Quantile(0.99), "p99"),
    (Figure::Quantile(0.999), "p999"),
];
/// What is compared of a length.
const OF_LENGTHS: &[(Figure, &str)] = &[(Figure::Mean, "mean"), (Figure::Quantile(0.5), "p50")];

impl Number {
    /// All of them, in the order of the table.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let late = [Self::LatenessOutsideStalls, Self::Lateness];
        let more = late.into_iter().chain([Self::Speed, Self::Prompt, Self::Completion]);
        Metric::ALL.into_iter().map(Self::Of).chain(more)
    }

    /// Its key in the report.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Of(metric) => metric.name(),
            Self::Lateness => "lateness_us",
            Self::LatenessOutsideStalls => "lateness_outside_stalls_us",
            Self::Speed => "output_tokens_per_s_per_user",
            Self::Prompt => "prompt_tokens",
            Self::Completion => "completion_tokens",
        }
    }

    /// Its name for people, with its unit.
    pub(super) fn label(self) -> String {
        match self {
            Self::Of(metric) => format!("{}, ms", metric.label()),
            Self::Lateness => "lateness, us".to_owned(),
            Self::LatenessOutsideStalls => "late outside stalls, us".to_owned(),
            Self::Speed => "tokens/s per user".to_owned(),
            Self::Prompt => "prompt tokens".to_owned(),
            Self::Completion => "completion tokens".to_owned(),
        }
    }

    /// The unit of its values.
    pub(super) const fn unit(self) -> &'static str {
        match self {
            Self::Of(_) => "ms",
            Self::Lateness | Self::LatenessOutsideStalls => "us",
            Self::Speed => "tokens/s",
            Self::Prompt | Self::Completion => "tokens",
        }
    }

    /// Whether people see it without asking for all. Of lateness that is what verdicts are of: the
    /// host's stalls say nothing of what differs between runs.
    pub(super) const fn is_main(self) -> bool {
        use Metric::{E2e, Itl, Ttft};
        matches!(self, Self::Of(Ttft | Itl | E2e) | Self::LatenessOutsideStalls | Self::Speed)
    }

    /// Which direction is good.
    pub(super) const fn good(self) -> Good {
        match self {
            Self::Of(_) | Self::Lateness | Self::LatenessOutsideStalls => Good::Less,
            Self::Speed => Good::More,
            Self::Prompt | Self::Completion => Good::Neither,
        }
    }

    /// The figures that are compared of it.
    pub(super) const fn figures(self) -> &'static [(Figure, &'static str)] {
        match self {
            Self::Prompt | Self::Completion => OF_LENGTHS,
            _ => OF_DURATIONS,
        }
    }

    /// Its value for each request of a run.
    pub(super) fn values(self, run: &Run) -> Vec<Option<f64>> {
        (0..run.requests.len()).map(|i| self.value(run, i)).collect()
    }

    fn value(self, run: &Run, i: usize) -> Option<f64> {
        let late = || lateness_ns(run, i).map(|late| nanos(late) / 1e3);
        match self {
            Self::Lateness => return late(),
            Self::LatenessOutsideStalls => {
                return late().filter(|_| in_stall(run, i) != Some(true));
            }
            _ => {}
        }
        if !run.requests.is_ok(i) {
            return None;
        }
        match self {
            Self::Of(metric) => metric.value_ns(run, i).map(|ns| ns / 1e6),
            Self::Speed => tokens_per_s_per_user(run, i),
            Self::Prompt => tokens::prompt(run, i).map(count),
            Self::Completion => tokens::completion(run, i).map(count),
            Self::Lateness | Self::LatenessOutsideStalls => None,
        }
    }
}

/// A ratio of sums over requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ratio {
    /// Failed requests of those that ended by themselves.
    Errors,
    /// Requests that meet every goal.
    Goodput,
    /// Cached prompt tokens of all, as reported.
    Reported,
    /// The same for an endless cache.
    Ideal,
}

impl Ratio {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 4] = [Self::Errors, Self::Goodput, Self::Reported, Self::Ideal];

    /// Its key in the report.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Errors => "error_rate",
            Self::Goodput => "goodput_share",
            Self::Reported => "reported_hit_rate",
            Self::Ideal => "ideal_hit_rate",
        }
    }

    /// Its name for people.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Errors => "error rate",
            Self::Goodput => "goodput",
            Self::Reported => "reported hit rate",
            Self::Ideal => "ideal hit rate",
        }
    }

    /// Which direction is good.
    #[must_use]
    pub const fn good(self) -> Good {
        match self {
            Self::Errors => Good::Less,
            Self::Goodput | Self::Reported => Good::More,
            Self::Ideal => Good::Neither,
        }
    }

    /// Part and whole for each request of a run.
    pub(super) fn parts(self, run: &Run, goals: &Goals) -> Parts {
        (0..run.requests.len()).map(|i| self.part(run, i, goals).unwrap_or_default()).collect()
    }

    /// Part and whole of request `i`; `None` where it has none.
    #[must_use]
    pub fn part(self, run: &Run, i: usize, goals: &Goals) -> Option<[f64; 2]> {
        let flag = |is: bool| [f64::from(u8::from(is)), 1.0];
        let tokens = |part: Option<u32>, whole: Option<u32>| {
            run.requests.was_sent(i).then_some([f64::from(part?), f64::from(whole?)])
        };
        match self {
            Self::Errors => {
                let failed = slo::failed(run, i);
                (failed || run.requests.is_ok(i)).then(|| flag(failed))
            }
            Self::Goodput => (!goals.is_empty() && slo::counts(run, i))
                .then(|| flag(goals.is_good(run, i, false))),
            Self::Reported => tokens(run.requests.cached_tokens(i), run.requests.prompt_tokens(i)),
            Self::Ideal => {
                let (could, of) = ideal(run, i).unzip();
                tokens(could, of)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Against, Subject, Verdict, against};
    use super::*;
    use crate::log::sample::Sample;
    use crate::log::{Class, Record};
    use crate::metrics::gate::{Gate, Judging, judge};
    use crate::metrics::report::Report;
    use crate::metrics::{ReportOptions, report};
    use crate::units::{CoreIndex, RunNanos};

    const MS: i64 = 1_000_000;

    /// 600 requests, each so many ms late; a stall explains the lateness of every tenth, which is
    /// so many ms more.
    fn run(late: i64, stalled: i64) -> (Run, Report) {
        let mut sample = Sample::new();
        for k in 0..600 {
            let due = k * 100 * MS;
            let more = if k % 10 == 0 { stalled * MS } else { 0 };
            let sent = due + late * MS / 100 + more;
            let request = sample.plan(due);
            sample.dispatch(request, due, sent);
            sample.done(request, sent + MS, Class::Ok);
            if more > 0 {
                let (start, length_ns) = (RunNanos(due), more.unsigned_abs());
                sample.push(CoreIndex(0), Record::Stall { start, length_ns });
            }
        }
        let run = Run::read(&sample.bytes()).expect("a log");
        let numbers = report(&run, &ReportOptions::default());
        (run, numbers)
    }

    fn compared(base: &(Run, Report), new: &(Run, Report)) -> Against {
        let [base, new] = [("base", base), ("new", new)].map(|(name, (run, report))| Subject {
            name,
            run,
            report,
        });
        against(base, new, &Goals::default())
    }

    #[test]
    fn lateness_is_judged_as_verdicts_judge_it() {
        let (calm, noisy) = (run(10, 0), run(10, 30));
        let found = compared(&calm, &noisy);
        let row = |name: &str| found.figures.iter().find(|row| row.name == name).expect("a row");
        let (plain, outside) = (row("lateness_us.p99"), row("lateness_outside_stalls_us.p99"));
        assert_eq!((plain.verdict, plain.is_main), (Verdict::Worse, false), "{plain:?}");
        assert_eq!((outside.verdict, outside.is_main), (Verdict::Unclear, true), "{outside:?}");
        assert_eq!((outside.base, outside.new), (Some(100.0), Some(100.0)), "{outside:?}");
        let reported = noisy.1.schedule.lateness_outside_stalls_us.expect("some").p99;
        assert_eq!(outside.new, Some(reported));
        let gates = ["lateness_outside_stalls_us.p99 > +5%", "lateness_us.p99 > +5%"];
        let gates = gates.map(|gate| Gate::parse(gate).expect(gate));
        let [base, new] = [&calm, &noisy].map(|(_, report)| Judging { name: "x", report });
        let judged = judge(&gates, new, Some((base, &found)), true);
        let judged: Vec<bool> = judged.iter().map(|one| one.failed).collect();
        assert_eq!(judged, [false, true]);
    }
}
