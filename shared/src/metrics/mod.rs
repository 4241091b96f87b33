//! One definition per number. Engine, exports and viewer all read theirs here.
//!
//! | module | what it defines |
//! |---|---|
//! | [`latency`] | TTFT, ITL and all other durations of one request, each with its formula |
//! | [`lateness`] | how late a request left, and whether the host or a burst explains it |
//! | [`tokens`] | token counts of one request and who counted them |
//! | [`schedule`] | what was offered and achieved, lateness in its parts |
//! | [`throughput`] | duration, rates, peaks, requests in flight |
//! | [`steps`] | what holds until it changes, weighted by time |
//! | [`concurrency`] | requests at once, in all, in prefill and in decode |
//! | [`cache`] | ideal and reported hit rates |
//! | [`goal`] | what goals may be about, by all their names |
//! | [`slo`] | goodput |
//! | [`quantile`] | percentiles, mean, deviation |
//! | [`adjusted`] | percentiles if failures had taken forever |
//! | [`slices`] | a run in slices of equal length |
//! | [`selection`] | which requests a report is about |
//! | [`verdict`] | whether the schedule held, and why not |
//! | [`mod@report`] | all of it for one run, as every output shows it |
//!
//! Rules everywhere: a number without data is `None`, never 0; failures and unfinished requests
//! never enter the latency of successful ones; differences that overflow are `None`. Functions of
//! one request take its place in the plan, allocate nothing and do not look at its outcome.

pub mod adjusted;
mod assemble;
pub mod attribution;
pub mod cache;
pub mod concurrency;
pub mod goal;
pub mod latency;
pub mod lateness;
pub mod periods;
pub mod quantile;
pub mod report;
pub mod schedule;
pub mod selection;
pub mod slices;
pub mod slo;
mod states;
pub mod steps;
pub mod throughput;
pub mod tokens;
pub mod users;
pub mod verdict;

#[cfg(test)]
mod checks;
#[cfg(test)]
mod period_checks;

pub use assemble::report;
pub use attribution::periods;
pub use latency::Metric;
pub use quantile::Statistic;
pub use report::{Report, ReportOptions};
pub use selection::Selection;
