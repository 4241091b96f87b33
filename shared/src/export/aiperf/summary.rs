//! AIPerf's summary of a run or of one slice of it: every metric with its figures.
//!
//! A record is valid if it succeeded and an error otherwise, cancelled ones included. Rates divide
//! by the time from the first start to the last end of all records, in a slice by the slice; AIPerf
//! divides by its phase, which begins a little earlier. What has no data has no entry, except
//! counts.

use super::curves::Curves;
use super::figures::{Entry, Figures};
use super::values::{
    CHUNK_GAPS, ERROR_ISL, REQUEST_METRICS, RequestMetric, end, is_mismatch, start,
};
use crate::export::has_record;
use crate::metrics::adjusted::Adjusted;
use crate::metrics::latency::{chunk_gaps_ns, count, e2e_ns, nanos};
use crate::metrics::quantile::percentile;
use crate::metrics::slo::Goals;
use crate::metrics::steps;
use crate::run::Run;

/// Above this p99 of lag AIPerf calls a replay degraded.
const DEGRADED_MS: f64 = 500.0;

/// Durations that AIPerf also shows with failures as infinite.
const ADJUSTED: [(&str, &str, &str); 4] = [
    ("request_latency", "adj_request_latency", "Request Latency (error-adjusted)"),
    ("time_to_first_token", "adj_time_to_first_token", "Time to First Token (error-adjusted)"),
    ("decode_duration", "adj_decode_duration", "Decode Duration (error-adjusted)"),
    ("inter_token_latency", "adj_inter_token_latency", "Inter Token Latency (error-adjusted)"),
];

/// Sums of what requests have: of which metric, and what they are called.
const SUMS: [(&str, &str, &str); 9] = [
    ("input_sequence_length", "total_isl", "Total Input Sequence Length"),
    ("output_sequence_length", "total_osl", "Total Output Sequence Length"),
    ("output_token_count", "total_output_tokens", "Total Output Tokens"),
    ("reasoning_token_count", "total_reasoning_tokens", "Total Reasoning Tokens"),
    ("usage_prompt_tokens", "total_usage_prompt_tokens", "Total Usage Prompt Tokens"),
    ("usage_completion_tokens", "total_usage_completion_tokens", "Total Usage Completion Tokens"),
    ("usage_total_tokens", "total_usage_total_tokens", "Total Usage Total Tokens"),
    ("usage_reasoning_tokens", "total_usage_reasoning_tokens", "Total Usage Reasoning Tokens"),
    (CACHE_READ, "total_usage_prompt_cache_read_tokens", "Total Usage Prompt Cache Read Tokens"),
];
const CACHE_READ: &str = "usage_prompt_cache_read_tokens";

/// The records a summary is about.
#[derive(Debug)]
pub(super) struct Records<'a> {
    pub(super) run: &'a Run,
    pub(super) goals: &'a Goals,
    /// Records of requests that succeeded.
    pub(super) valid: Vec<u32>,
    /// All other records.
    pub(super) errors: Vec<u32>,
}

impl<'a> Records<'a> {
    /// Those among the given requests that have a record.
    pub(super) fn among(
        run: &'a Run,
        goals: &'a Goals,
        requests: impl Iterator<Item = u32>,
    ) -> Self {
        let recorded = requests.filter(|&i| has_record(run, i as usize));
        let (valid, errors) = recorded.partition(|&i| run.requests.is_ok(i as usize));
        Self { run, goals, valid, errors }
    }

    /// Everything of the whole run.
    pub(super) fn summary(&self, curves: &Curves) -> Vec<Entry> {
        let mut entries = self.entries(curves.span().and_then(steps::seconds));
        entries.extend(curves.span().into_iter().flat_map(|window| curves.entries(window)));
        entries.extend(self.since_intended());
        entries.extend(self.lag());
        entries
    }

    /// Everything of a slice of time.
    pub(super) fn slice(&self, curves: &Curves, window: (i64, i64)) -> Vec<Entry> {
        let mut entries = self.entries(steps::seconds(window));
        entries.extend(curves.entries(window));
        entries
    }

    fn entries(&self, rate_s: Option<f64>) -> Vec<Entry> {
        let mut entries = self.distributions();
        self.sums(&mut entries);
        self.counts(&mut entries);
        self.rates(&mut entries, rate_s);
        self.goodput(&mut entries, rate_s);
        self.cache(&mut entries);
        self.adjusted(&mut entries);
        entries
    }

    fn distributions(&self) -> Vec<Entry> {
        let of = |metric: &RequestMetric, requests: &[u32]| {
            let values = requests.iter().filter_map(|&i| metric.value(self.run, i as usize));
            let figures = Figures::of(metric.unit, values)?;
            Some(Entry { tag: metric.tag, header: metric.header, figures })
        };
        let mut entries: Vec<Entry> =
            REQUEST_METRICS.iter().filter_map(|metric| of(metric, &self.valid)).collect();
        let gaps = self.valid.iter().flat_map(|&i| chunk_gaps_ns(self.run, i as usize));
        if let Some(figures) = Figures::of(CHUNK_GAPS.unit, gaps.map(|gap| nanos(gap) / 1e6)) {
            entries.push(Entry { tag: CHUNK_GAPS.tag, header: CHUNK_GAPS.header, figures });
        }
        if let Some(entry) = of(&ERROR_ISL, &self.errors) {
            entries.push(entry);
            let sum = entry.figures.sum.unwrap_or_default();
            let header = "Total Error Input Sequence Length";
            let figures = Figures::one("tokens", sum);
            entries.push(Entry { tag: "total_error_isl", header, figures });
        }
        entries
    }

    fn sums(&self, entries: &mut Vec<Entry>) {
        for (of, tag, header) in SUMS {
            if let Some(sum) = sum_of(entries, of) {
                entries.push(Entry { tag, header, figures: Figures::one("tokens", sum) });
            }
        }
        let mismatches: Vec<bool> =
            self.valid.iter().filter_map(|&i| is_mismatch(self.run, i as usize)).collect();
        if !mismatches.is_empty() {
            let missed = mismatches.iter().filter(|&&missed| missed).count() as u64;
            let figures = Figures::counted("requests", missed);
            entries.push(Entry {
                tag: "osl_mismatch_count",
                header: "OSL Mismatch Count",
                figures,
            });
        }
    }

    fn counts(&self, entries: &mut Vec<Entry>) {
        let (valid, errors) = (self.valid.len() as u64, self.errors.len() as u64);
        let all = valid + errors;
        let mut push = |tag, header, figures| entries.push(Entry { tag, header, figures });
        push("request_count", "Request Count", Figures::counted("requests", valid));
        if errors > 0 {
            push(
                "error_request_count",
                "Error Request Count",
                Figures::counted("requests", errors),
            );
        }
        if all > 0 {
            let header = "Completed Requests (Success + Error)";
            push("completed_request_count", header, Figures::counted("requests", all));
            let share = 100.0 * count(errors) / count(all);
            push("request_error_rate", "Request Error Rate", Figures::one("%", share));
        }
        if let Some(duration) = self.duration_s() {
            push("benchmark_duration", "Benchmark Duration", Figures::one("sec", duration));
        }
    }

    fn rates(&self, entries: &mut Vec<Entry>, rate_s: Option<f64>) {
        let Some(seconds) = rate_s.filter(|_| !self.valid.is_empty()) else { return };
        let input = sum_of(entries, "input_sequence_length");
        let output = sum_of(entries, "output_sequence_length");
        let rows = [
            (
                "request_throughput",
                "Request Throughput",
                "requests/sec",
                Some(count(self.valid.len() as u64)),
            ),
            ("input_token_throughput", "Input Token Throughput", "tokens/sec", input),
            ("output_token_throughput", "Output Token Throughput", "tokens/sec", output),
            (
                "total_token_throughput",
                "Total Token Throughput",
                "tokens/sec",
                input.zip(output).map(|(input, output)| input + output),
            ),
        ];
        for (tag, header, unit, amount) in rows {
            if let Some(amount) = amount {
                entries.push(Entry { tag, header, figures: Figures::one(unit, amount / seconds) });
            }
        }
    }

    fn goodput(&self, entries: &mut Vec<Entry>, rate_s: Option<f64>) {
        if self.goals.is_empty() {
            return;
        }
        let good = |&&i: &&u32| self.goals.is_good(self.run, i as usize, false);
        let good = self.valid.iter().filter(good).count() as u64;
        let all = (self.valid.len() + self.errors.len()) as u64;
        let mut push = |tag, header, figures| entries.push(Entry { tag, header, figures });
        push("good_request_count", "Good Request Count", Figures::counted("requests", good));
        if let Some(seconds) = rate_s.filter(|_| !self.valid.is_empty()) {
            push("goodput", "Goodput", Figures::one("requests/sec", count(good) / seconds));
        }
        if all > 0 {
            let share = Figures::one("ratio", count(good) / count(all));
            push("good_request_fraction", "GoodRequestFraction", share);
        }
    }

    /// The share of prompt tokens that were cached, over requests that report both.
    fn cache(&self, entries: &mut Vec<Entry>) {
        let requests = &self.run.requests;
        let (mut read, mut prompt) = (0, 0);
        for i in self.valid.iter().map(|&i| i as usize) {
            if let (Some(r), Some(p)) = (requests.cached_tokens(i), requests.prompt_tokens(i)) {
                read += u64::from(r);
                prompt += u64::from(p);
            }
        }
        if prompt > 0 {
            let figures = Figures::one("%", 100.0 * count(read) / count(prompt));
            let (tag, header) =
                ("overall_usage_prompt_cache_read_pct", "Overall Usage Prompt Cache Read %");
            entries.push(Entry { tag, header, figures });
        }
    }

    fn adjusted(&self, entries: &mut Vec<Entry>) {
        let errors = self.errors.len() as u64;
        for (of, tag, header) in ADJUSTED.into_iter().filter(|_| errors > 0) {
            let Some(metric) = REQUEST_METRICS.iter().find(|metric| metric.tag == of) else {
                continue;
            };
            let values = self.valid.iter().filter_map(|&i| metric.value(self.run, i as usize));
            let mut values: Vec<f64> = values.collect();
            values.sort_unstable_by(f64::total_cmp);
            if let Some(adjusted) = Adjusted::of(&values, errors, 1.0).filter(|a| a.min.is_some()) {
                let figures = Figures::adjusted(metric.unit, &adjusted);
                entries.push(Entry { tag, header, figures });
            }
        }
    }

    /// Latency from when a request could have left, with its wait for that.
    fn since_intended(&self) -> Vec<Entry> {
        let all = || self.valid.iter().chain(&self.errors).map(|&i| i as usize);
        let intended = |i: usize| self.run.requests.intended(i);
        let waited = |i| Some(start(self.run, i)?.0.checked_sub(intended(i)?.0)?.max(0));
        let took = |i| Some(end(self.run, i)?.0.checked_sub(intended(i)?.0)?.max(0));
        let waits = Figures::of("ms", all().filter_map(waited).map(|wait| nanos(wait) / 1e6));
        let took = Figures::of("ms", all().filter_map(took).map(|took| nanos(took) / 1e6));
        [
            ("credit_to_start_latency", "Credit-to-Start Latency", waits),
            ("effective_latency", "Effective Latency (CO-aware)", took),
        ]
        .into_iter()
        .filter_map(|(tag, header, figures)| Some(Entry { tag, header, figures: figures? }))
        .collect()
    }

    /// Lateness against the schedule, from the least late request on.
    fn lag(&self) -> Vec<Entry> {
        let all = self.valid.iter().chain(&self.errors).map(|&i| i as usize);
        let late = |i| Some(self.run.requests.sent(i)?.0 - self.run.requests.due(i)?.0);
        let mut late: Vec<i64> = all.filter_map(late).collect();
        late.sort_unstable();
        let Some(&least) = late.first() else { return Vec::new() };
        let lag: Vec<f64> = late.iter().map(|late| nanos(late - least) / 1e6).collect();
        let at = |share| percentile(&lag, share).unwrap_or_default();
        let (p50, p90, p99) = (at(0.5), at(0.9), at(0.99));
        let degraded = u64::from(p99 > DEGRADED_MS);
        [
            ("replay_sched_lag_p50", "Replay Schedule Lag p50", Figures::one("ms", p50)),
            ("replay_sched_lag_p90", "Replay Schedule Lag p90", Figures::one("ms", p90)),
            ("replay_sched_lag_p99", "Replay Schedule Lag p99", Figures::one("ms", p99)),
            (
                "replay_sched_degraded",
                "Replay Schedule Degraded",
                Figures::counted("count", degraded),
            ),
        ]
        .map(|(tag, header, figures)| Entry { tag, header, figures })
        .to_vec()
    }

    /// AIPerf's duration: from the first valid start to the last valid token.
    fn duration_s(&self) -> Option<f64> {
        let valid = || self.valid.iter().map(|&i| i as usize);
        let first = valid().filter_map(|i| start(self.run, i)).min()?;
        let last = valid()
            .filter_map(|i| start(self.run, i)?.0.checked_add(e2e_ns(self.run, i)?))
            .max()?;
        steps::seconds((first.0, last))
    }
}

fn sum_of(entries: &[Entry], tag: &str) -> Option<f64> {
    entries.iter().find(|entry| entry.tag == tag)?.figures.sum
}
