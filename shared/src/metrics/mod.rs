//! One definition per number. Engine, exports and viewer all read theirs here.
//!
//! | module | what it defines |
//! |---|---|
//! | [`latency`] | TTFT, ITL and all other durations of one request, each with its formula |
//! | [`lateness`] | how late a request left, and whether the host or a burst explains it |
//! | [`client_part`] | how much of a TTFT the client could have caused, at most |
//! | [`cores`] | what each core did, and whom each host stall hit |
//! | [`tokens`] | token counts of one request and who counted them |
//! | [`schedule`] | what was offered and achieved, lateness in its parts |
//! | [`throughput`] | duration, rates, peaks, requests in flight |
//! | [`steps`] | what holds until it changes, weighted by time |
//! | [`concurrency`] | requests at once, in all, in prefill and in decode |
//! | [`flows`] | tokens and requests in steps of time, for any stretch at once |
//! | [`levels`] | how many hold at once, for any stretch at once |
//! | [`cache`] | ideal and reported hit rates |
//! | [`capacity`] | the ideal hit rate of caches of every size |
//! | [`goal`] | what goals may be about, by all their names |
//! | [`goal_words`] | what goals are called, and their units |
//! | [`slo`] | goodput |
//! | [`scores`] | the same over columns, for goals that move |
//! | [`quantile`] | percentiles, mean, deviation |
//! | [`ranked`] | a distribution's values in order |
//! | [`bootstrap`] | how sure a difference between two runs is |
//! | [`mod@compare`] | what differs between runs, in pairs where they sent the same |
//! | [`gate`] | what makes a run fail |
//! | [`fidelity`] | how faithful a replay was to what was recorded |
//! | [`adjusted`] | percentiles if failures had taken forever |
//! | [`phases`] | the parts of one exchange, for pictures |
//! | [`life`] | the stretches that one request's life is made of, from due to end |
//! | [`mod@periods`], [`states`], [`users`] | a user-driven run: periods, states, sums |
//! | [`held`] | when admission held users back, and by which limit |
//! | [`slices`] | a run in slices of equal length |
//! | [`server`] | what a server said of itself: queue, cache usage, hit rate |
//! | [`selection`] | which requests a report is about |
//! | [`verdict`], [`left_out`] | whether the schedule held, why not, and for which requests |
//! | [`stopped`] | whether its user stopped it, where, and how far it had come |
//! | [`warmth`] | whether a server had prompts before the run sent them |
//! | [`mod@report`] | all of it for one run, as every output shows it |
//!
//! Rules everywhere: a number without data is `None`, never 0; failures and unfinished requests
//! never enter the latency of successful ones; differences that overflow are `None`. Functions of
//! one request take its place in the plan, allocate nothing and do not look at its outcome.

pub mod adjusted;
mod assemble;
pub mod attribution;
pub mod bootstrap;
pub mod cache;
pub mod capacity;
pub mod client_part;
pub mod compare;
pub mod concurrency;
pub mod cores;
pub mod fidelity;
pub mod flows;
pub mod gate;
pub mod goal;
pub mod goal_words;
pub mod held;
pub mod hosts;
pub mod latency;
pub mod lateness;
pub mod left_out;
pub mod levels;
pub mod life;
pub mod periods;
pub mod phases;
pub mod quantile;
pub mod ranked;
pub mod report;
pub mod schedule;
pub mod scores;
pub mod selection;
pub mod server;
pub mod slices;
pub mod slo;
pub mod states;
pub mod steps;
pub mod stopped;
pub mod throughput;
pub mod tokens;
pub mod users;
pub mod verdict;
pub mod warmth;

#[cfg(test)]
mod checks;
#[cfg(test)]
mod period_checks;

pub use assemble::report;
pub use attribution::periods;
pub use latency::Metric;
pub use quantile::Statistic;
pub use ranked::Ranked;
pub use report::{Report, ReportOptions};
pub use selection::Selection;
