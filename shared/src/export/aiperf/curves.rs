//! AIPerf's curves over time: concurrency, throughput and tokens in flight of a whole run.
//!
//! Phases are those of successful requests; all records are in flight from start to end. A request
//! prefills its prompt evenly until its first token and decodes evenly between content events; its
//! first token came with the first event and belongs to no rate. With very many content events the
//! decode is taken as even over the whole answer, as AIPerf does where it does not keep them.

use super::figures::{Entry, Figures};
use super::values::{end, input, output, start};
use crate::metrics::latency::{count, nanos};
use crate::metrics::steps::Steps;
use crate::run::Run;

/// Content events beyond which they are not looked at one by one.
const EVENTS_MAX: usize = 10_000_000;

/// A unit's name, and how many of it are one of ours: rates are kept per nanosecond.
type Unit = (&'static str, f64);
const REQUESTS: Unit = ("requests", 1.0);
const TOKENS: Unit = ("tokens", 1.0);
const RATE: Unit = ("tokens/sec", 1e9);
const USER: Unit = ("tokens/sec/user", 1e9);

/// The curves of a run.
#[derive(Debug)]
pub(super) struct Curves {
    concurrency: Steps,
    prefill: Steps,
    decode: Steps,
    prefill_rate: Steps,
    decode_rate: Steps,
    total_rate: Steps,
    prefill_rate_per_user: Steps,
    decode_rate_per_user: Steps,
    tokens: Steps,
}

/// One successful request's phases.
struct Phases {
    start: i64,
    token: i64,
    end: i64,
    input: Option<f64>,
    output: Option<f64>,
    i: usize,
}

impl Curves {
    /// The curves of successful and of failed records.
    pub(super) fn of(run: &Run, valid: &[u32], errors: &[u32]) -> Self {
        let span = |&i: &u32| Some((start(run, i as usize)?.0, end(run, i as usize)?.0));
        let concurrency = Steps::of_intervals(valid.iter().chain(errors).filter_map(span));
        let phases: Vec<Phases> = valid.iter().filter_map(|&i| Phases::of(run, i)).collect();
        let by_events = run.chunks.len() <= EVENTS_MAX
            && phases.iter().any(|phases| run.chunks.count(phases.i) > 1);
        let prefill = Steps::of_intervals(phases.iter().map(|p| (p.start, p.token)));
        let decode = Steps::of_intervals(phases.iter().map(|p| (p.token, p.end)));
        let even: Vec<_> = phases.iter().filter_map(Phases::decode_rate).collect();
        let prefills: Vec<_> = phases.iter().filter_map(Phases::prefill_rate).collect();
        let total_rate = rates(prefills.iter().chain(&even).copied());
        let prefill_rate = rates(prefills.into_iter());
        let decode_rate = if by_events {
            rates(phases.iter().flat_map(|phases| phases.event_rates(run)))
        } else {
            rates(even.into_iter())
        };
        let tokens = phases.iter().flat_map(|phases| phases.tokens(run, by_events)).collect();
        Self {
            prefill_rate_per_user: prefill_rate.over(&prefill),
            decode_rate_per_user: decode_rate.over(&decode),
            concurrency,
            prefill,
            decode,
            prefill_rate,
            decode_rate,
            total_rate,
            tokens: Steps::from_changes(tokens),
        }
    }

    /// First and last instant of a record.
    pub(super) fn span(&self) -> Option<(i64, i64)> {
        self.concurrency.span()
    }

    /// The figures over a window of time.
    pub(super) fn entries(&self, window: (i64, i64)) -> Vec<Entry> {
        let effective = [
            ("effective_concurrency", "Effective Concurrency", REQUESTS, &self.concurrency),
            ("effective_decode_throughput", "Effective Decode Throughput", RATE, &self.decode_rate),
            (
                "effective_prefill_throughput",
                "Effective Prefill Throughput",
                RATE,
                &self.prefill_rate,
            ),
            (
                "effective_decode_concurrency",
                "Effective Decode Concurrency",
                REQUESTS,
                &self.decode,
            ),
            (
                "effective_prefill_concurrency",
                "Effective Prefill Concurrency",
                REQUESTS,
                &self.prefill,
            ),
            ("effective_total_throughput", "Effective Total Throughput", RATE, &self.total_rate),
            (
                "effective_decode_throughput_per_user",
                "Effective Decode Throughput Per User",
                USER,
                &self.decode_rate_per_user,
            ),
            (
                "effective_prefill_throughput_per_user",
                "Effective Prefill Throughput Per User",
                USER,
                &self.prefill_rate_per_user,
            ),
            ("tokens_in_flight", "Tokens In Flight", TOKENS, &self.tokens),
        ]
        .map(|(tag, header, unit, steps)| (tag, header, unit, steps.weighted(window)));
        let active = self.active();
        let active = active.map(|(tag, header, unit, steps, mask)| {
            (tag, header, unit, steps.weighted_where(mask, window))
        });
        let entries = effective.into_iter().chain(active);
        entries
            .filter_map(|(tag, header, (unit, scale), figures)| {
                let figures = Figures::weighted(unit, scale, &figures?);
                Some(Entry { tag, header, figures })
            })
            .collect()
    }

    /// The curves that AIPerf also looks at only while there is something, and what that is.
    fn active(&self) -> [(&'static str, &'static str, Unit, &Steps, &Steps); 5] {
        [
            (
                "active_decode_throughput",
                "Active Decode Throughput",
                RATE,
                &self.decode_rate,
                &self.decode,
            ),
            (
                "active_prefill_throughput",
                "Active Prefill Throughput",
                RATE,
                &self.prefill_rate,
                &self.prefill,
            ),
            (
                "active_decode_throughput_per_user",
                "Active Decode Throughput Per User",
                USER,
                &self.decode_rate_per_user,
                &self.decode,
            ),
            (
                "active_prefill_throughput_per_user",
                "Active Prefill Throughput Per User",
                USER,
                &self.prefill_rate_per_user,
                &self.prefill,
            ),
            (
                "active_total_throughput",
                "Active Total Throughput",
                RATE,
                &self.total_rate,
                &self.concurrency,
            ),
        ]
    }
}

impl Phases {
    fn of(run: &Run, i: u32) -> Option<Self> {
        let i = i as usize;
        Some(Self {
            start: start(run, i)?.0,
            token: run.requests.first_token(i)?.0,
            end: end(run, i)?.0,
            input: input(run, i),
            output: output(run, i),
            i,
        })
    }

    /// Start, end and rate of its prefill.
    fn prefill_rate(&self) -> Option<(i64, i64, f64)> {
        let length = nanos(self.token.saturating_sub(self.start));
        (length > 0.0).then_some((self.start, self.token, self.input? / length))
    }

    /// Start, end and rate of its decode if that was even.
    fn decode_rate(&self) -> Option<(i64, i64, f64)> {
        let length = nanos(self.end.saturating_sub(self.token));
        let tokens = self.output.filter(|&tokens| tokens >= 1.0)?;
        (length > 0.0).then_some((self.token, self.end, (tokens - 1.0) / length))
    }

    /// The same between its content events that came one after the other.
    fn event_rates<'a>(&self, run: &'a Run) -> impl Iterator<Item = (i64, i64, f64)> + use<'a> {
        let times = run.chunks.row(self.i).times();
        let gaps = move || times.windows(2).map(|pair| (pair[0], pair[1])).filter(|(a, b)| b > a);
        let whole = count(gaps().count() as u64);
        let tokens = self.output.filter(|&tokens| tokens >= 1.0).map(|tokens| tokens - 1.0);
        gaps().filter_map(move |(from, to)| {
            Some((from, to, tokens? / whole / nanos(to.saturating_sub(from))))
        })
    }

    /// The changes of the tokens a server holds for it.
    fn tokens(&self, run: &Run, by_events: bool) -> Vec<(i64, f64)> {
        let prompt = self.input.filter(|_| self.token > self.start).unwrap_or(0.0);
        let times = run.chunks.row(self.i).times();
        let mut changes = vec![(self.start, prompt)];
        let Some(output) = self.output.filter(|&tokens| tokens >= 1.0) else {
            changes.push((self.end, -prompt));
            return changes;
        };
        if !by_events {
            changes.push((self.token, output));
        } else if times.len() > 1 {
            let each = (output - 1.0) / count(times.len() as u64 - 1);
            changes.push((self.token, 1.0));
            // What came with the end must be there before it is freed.
            let before_end = self.end.saturating_sub(1);
            changes.extend(times[1..].iter().map(|&time| (time.min(before_end), each)));
        } else {
            changes.push((self.end, -prompt));
            return changes;
        }
        changes.push((self.end, -(prompt + output)));
        changes
    }
}

fn rates(intervals: impl Iterator<Item = (i64, i64, f64)>) -> Steps {
    Steps::from_changes(
        intervals.flat_map(|(start, end, rate)| [(start, rate), (end, -rate)]).collect(),
    )
}
