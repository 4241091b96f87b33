//! Rates, peaks, and how many requests are in flight.
//!
//! The run's duration goes from the first sending to the last end, over all outcomes; rates count
//! successful requests and divide by it. The *sending window* goes from the first to the last
//! instant at which a request could leave ([`super::schedule`]); a slow last answer does not dilute
//! it. Output tokens are counted when their content event came, prompt tokens at the first token.

use std::collections::BTreeMap;

use super::latency::{count, nanos, tokens_per_s_per_user};
use super::quantile::{Collector, Statistic};
use super::selection::Selection;
use super::tokens::{self, Source};
use crate::run::Run;
use crate::units::{NANOS_PER_SECOND, RunNanos};

/// From the first sending to the last end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// First sending.
    pub start: RunNanos,
    /// Last end; for a request without an end, its last stamp.
    pub end: RunNanos,
}

impl Window {
    /// The window of the chosen requests; `None` if none of them left.
    #[must_use]
    pub fn of(selection: &Selection<'_>) -> Option<Self> {
        let run = selection.run();
        selection.requests().fold(None, |window, i| Self::with(window, run, i))
    }

    /// A window that holds request `i` as well, if that left.
    pub(super) fn with(window: Option<Self>, run: &Run, i: usize) -> Option<Self> {
        let Some(start) = run.requests.sent(i) else { return window };
        let end = last_stamp(run, i).unwrap_or(start);
        let (first, last) = window.map_or((start, end), |window| (window.start, window.end));
        Some(Self { start: first.min(start), end: last.max(end) })
    }

    /// Its length in seconds; `None` if that is not above zero.
    #[must_use]
    pub fn seconds(self) -> Option<f64> {
        let length = self.end.0.checked_sub(self.start.0).filter(|&length| length > 0)?;
        Some(nanos(length) / 1e9)
    }
}

/// When request `i` ended or, without an end, when it was last heard of.
#[must_use]
pub fn last_stamp(run: &Run, i: usize) -> Option<RunNanos> {
    let requests = &run.requests;
    requests.done(i).or_else(|| {
        [requests.sent(i), requests.sent_end(i), requests.first_byte(i), requests.last_token(i)]
            .into_iter()
            .flatten()
            .max()
    })
}

/// Sums over successful requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Successful requests.
    pub requests: u64,
    /// Prompt tokens, where any request has a count.
    pub prompt: Option<u64>,
    /// Completion tokens, where any request has a count.
    pub completion: Option<u64>,
    /// Reasoning tokens, where any request reports them.
    pub reasoning: Option<u64>,
    /// Cached tokens, where any request reports them.
    pub cached: Option<u64>,
    /// Planned output, where any request has a limit.
    pub planned_output: Option<u64>,
    /// Requests whose completion differs from the planned output, where both are known.
    pub output_mismatches: Option<u64>,
    /// By how many tokens their answers were too short in all; below zero: too long.
    pub output_shortfall: i64,
    /// Who counted prompt tokens.
    pub prompt_source: Option<Source>,
    /// Who counted completion tokens.
    pub completion_source: Option<Source>,
}

impl Totals {
    /// The sums over the chosen successful requests.
    #[must_use]
    pub fn of(selection: &Selection<'_>) -> Self {
        let run = selection.run();
        let requests = &run.requests;
        let mut totals = Self::default();
        for i in selection.successful() {
            totals.requests += 1;
            let (prompt, completion) = (tokens::prompt(run, i), tokens::completion(run, i));
            if prompt.is_some() {
                let reported = requests.prompt_tokens(i).is_some();
                totals.prompt_source = Some(Source::joined(totals.prompt_source, reported));
            }
            if completion.is_some() {
                let reported = requests.completion_tokens(i).is_some();
                totals.completion_source = Some(Source::joined(totals.completion_source, reported));
            }
            add(&mut totals.prompt, prompt);
            add(&mut totals.completion, completion);
            add(&mut totals.reasoning, requests.reasoning_tokens(i).map(u64::from));
            add(&mut totals.cached, requests.cached_tokens(i).map(u64::from));
            let planned = run.plan[i].max_tokens.map(u64::from);
            add(&mut totals.planned_output, planned);
            let differs = planned.zip(completion).map(|(a, b)| u64::from(a != b));
            add(&mut totals.output_mismatches, differs);
            if let Some((planned, came)) = planned.zip(completion) {
                let lacks = planned.cast_signed().saturating_sub(came.cast_signed());
                totals.output_shortfall = totals.output_shortfall.saturating_add(lacks);
            }
        }
        totals
    }
}

fn add(sum: &mut Option<u64>, value: Option<u64>) {
    if let Some(value) = value {
        *sum = Some(sum.unwrap_or(0).saturating_add(value));
    }
}

/// A sum per second of a window; `None` if either is missing.
#[must_use]
pub fn per_second(sum: Option<u64>, seconds: Option<f64>) -> Option<f64> {
    Some(count(sum?) / seconds?)
}

/// 1 / ITL of each successful request.
#[must_use]
pub fn per_user(selection: &Selection<'_>) -> Option<Statistic> {
    let mut collector = Collector::with_steps(1_000.0);
    let run = selection.run();
    collector.extend(selection.successful().filter_map(|i| tokens_per_s_per_user(run, i)));
    collector.statistic(1.0)
}

/// Most completion tokens of successful requests in one second, seconds counted from the schedule's
/// zero. `None` for a run shorter than one second: it has no such second.
#[must_use]
pub fn peak_output_tokens_per_s(selection: &Selection<'_>) -> Option<f64> {
    Window::of(selection)?.seconds().filter(|&seconds| seconds >= 1.0)?;
    let run = selection.run();
    let mut seconds: BTreeMap<i64, f64> = BTreeMap::new();
    for i in selection.successful() {
        let Some(weight) = tokens::per_chunk_token(run, i) else { continue };
        // Events come in order, so the map is asked once per second and request.
        let mut current: Option<(i64, u64)> = None;
        for chunk in run.chunks.row(i).iter() {
            let second = chunk.time.0.div_euclid(NANOS_PER_SECOND);
            current = match current {
                Some((same, sum)) if same == second => Some((same, sum + u64::from(chunk.tokens))),
                before => {
                    pour(&mut seconds, before, weight);
                    Some((second, u64::from(chunk.tokens)))
                }
            };
        }
        pour(&mut seconds, current, weight);
    }
    seconds.into_values().max_by(f64::total_cmp)
}

fn pour(seconds: &mut BTreeMap<i64, f64>, part: Option<(i64, u64)>, weight: f64) {
    if let Some((second, tokens)) = part {
        *seconds.entry(second).or_insert(0.0) += count(tokens) * weight;
    }
}

/// Requests in flight right after each request was sent, itself included, over the whole run;
/// `None` for a request that never left. A request without an end stays in flight. Ends come before
/// sendings at the same instant.
#[must_use]
pub fn in_flight_at_send(run: &Run) -> Vec<Option<u32>> {
    let requests = &run.requests;
    let mut sends: Vec<(RunNanos, usize)> =
        (0..requests.len()).filter_map(|i| Some((requests.sent(i)?, i))).collect();
    sends.sort_unstable();
    let mut ends: Vec<RunNanos> = (0..requests.len())
        .filter(|&i| requests.was_sent(i))
        .filter_map(|i| requests.done(i))
        .collect();
    ends.sort_unstable();
    let mut in_flight = vec![None; requests.len()];
    let mut ended = 0;
    for (before, &(sent, i)) in sends.iter().enumerate() {
        while ends.get(ended).is_some_and(|&end| end <= sent) {
            ended += 1;
        }
        // An end before its own sending, in an unsound log, must not count below one.
        let now = (before + 1).saturating_sub(ended).max(1);
        in_flight[i] = u32::try_from(now).ok();
    }
    in_flight
}

/// Most requests in flight at once, among the chosen ones' sendings.
#[must_use]
pub fn peak_in_flight(selection: &Selection<'_>, in_flight: &[Option<u32>]) -> Option<u64> {
    selection.requests().filter_map(|i| in_flight[i]).max().map(u64::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Class;
    use crate::log::sample::Sample;

    const MS: i64 = 1_000_000;

    #[test]
    fn ends_come_before_sendings_at_the_same_instant() {
        let mut sample = Sample::new();
        for (sent, done) in [(0, 10), (5, 20), (10, 30), (40, 50)] {
            let request = sample.send(sent * MS);
            sample.done(request, done * MS, Class::Ok);
        }
        let never = sample.plan(41 * MS);
        let open = sample.send(45 * MS);
        let run = Run::read(&sample.bytes()).expect("a log");
        let in_flight = in_flight_at_send(&run);
        assert_eq!(in_flight[..4], [Some(1), Some(2), Some(2), Some(1)]);
        assert_eq!(in_flight[never.as_usize()], None);
        assert_eq!(in_flight[open.as_usize()], Some(2));
        let selection = Selection::new(&run, None);
        assert_eq!(peak_in_flight(&selection, &in_flight), Some(2));
        let window = Window::of(&selection).expect("some left");
        assert_eq!(window, Window { start: RunNanos(0), end: RunNanos(50 * MS) });
    }

    #[test]
    fn peaks_add_up_to_the_reported_tokens() {
        let mut sample = Sample::new();
        let request = sample.send(0);
        sample.chunks(request, &[100 * MS, 900 * MS, 1_500 * MS, 2_100 * MS]);
        // The server counts two tokens per event.
        sample.usage(request, 2_100 * MS, [Some(5), Some(8), None]);
        sample.done(request, 2_100 * MS, Class::Ok);
        let run = Run::read(&sample.bytes()).expect("a log");
        assert_eq!(peak_output_tokens_per_s(&Selection::new(&run, None)), Some(4.0));
    }
}
