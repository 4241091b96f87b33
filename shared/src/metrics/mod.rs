//! One definition per number. Engine, exports and viewer all read theirs here.
//!
//! | module | what it defines |
//! |---|---|
//! | [`latency`] | TTFT, ITL and all other durations of one request, each with its formula |
//! | [`lateness`] | how late a request left, and whether the host or a burst explains it |
//! | [`tokens`] | token counts of one request and where they come from |
//! | [`throughput`] | rates, peaks, requests in flight |
//! | [`cache`] | ideal and reported hit rates |
//! | [`slo`] | goals, goodput |
//! | [`quantile`] | percentiles, mean, deviation |
//! | [`verdict`] | whether the schedule held, and why not |
//! | [`report`] | all of it for one run, as every output shows it |
//!
//! Rules everywhere: a number without data is `None`, never 0; failures and unfinished requests
//! never enter the latency of successful ones; differences that overflow are `None`.

pub mod report;
pub mod slo;

pub use report::{Report, ReportOptions};
