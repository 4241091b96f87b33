//! A sample run beside which a server was asked for its own numbers.
//!
//! The numbers are smooth and made up; one asking in the middle gets no answer. Not part of the
//! public interface, and no statement about how servers behave.

use super::Record;
use super::sample::{Sample, sample};
use super::scraped::{Scraped, SeriesKind, number_of, text_records};
use crate::units::{CoreIndex, RunNanos};

const SOURCE: &str = "http://127.0.0.1:8000/metrics";
const SECOND: i64 = 1_000_000_000;
/// The asking that gets no answer.
const FAILS_AT: i64 = 4;

/// What the made-up server says, with its value at a second.
type Metric = (&'static str, SeriesKind, fn(f64) -> f64);

const METRICS: [Metric; 6] = [
    ("vllm:num_requests_running", SeriesKind::Gauge, |at| (3.0 + at).min(8.0)),
    ("vllm:num_requests_waiting", SeriesKind::Gauge, |at| (at - 3.0).max(0.0)),
    ("vllm:kv_cache_usage_perc", SeriesKind::Gauge, |at| (at / 10.0).min(1.0)),
    ("vllm:prefix_cache_queries_total", SeriesKind::Counter, |at| 1_000.0 * at.max(0.0)),
    ("vllm:prefix_cache_hits_total", SeriesKind::Counter, |at| 750.0 * at.max(0.0)),
    ("vllm:generation_tokens_total", SeriesKind::Counter, |at| 500.0 * at.max(0.0)),
];

/// A run of eight seconds that was scraped each second.
#[must_use]
pub fn scraped(seed: u64) -> Sample {
    with_scrapes(sample(seed, 400))
}

/// The same beside any run.
///
/// # Panics
/// Never: the instants are small.
#[must_use]
pub fn with_scrapes(mut sample: Sample) -> Sample {
    let mut push = |fact| sample.push(CoreIndex::CONDUCTOR, fact);
    let source = number_of(SOURCE);
    let failure = "no answer within 1.0 s";
    for text in [SOURCE, failure] {
        text_records(number_of(text), text).for_each(&mut push);
    }
    for second in 0..9_i32 {
        let start = i64::from(second) * SECOND;
        let failed = i64::from(second) == FAILS_AT;
        let end = start + if failed { SECOND } else { SECOND / 250 };
        let (time, within_ns) = (RunNanos(start.midpoint(end)), (end - start).unsigned_abs() / 2);
        let metrics = if failed { &[][..] } else { &METRICS[..] };
        for &(name, kind, value) in metrics {
            let text = format!("{SOURCE} {name}{{model_name=\"sample-model\"}}");
            let series = number_of(&text);
            if second == 0 {
                text_records(series, &text).for_each(&mut push);
            }
            let value = value(f64::from(second));
            push(Record::Scraped(Scraped::Value { series, time, within_ns, kind, value }));
        }
        push(Record::Scraped(Scraped::Asked {
            source,
            start: RunNanos(start),
            end: RunNanos(end),
            status: (!failed).then_some(200),
            values: u16::try_from(metrics.len()).expect("a few"),
            left_out: 0,
            impossible: 0,
            failure: failed.then(|| number_of(failure)),
        }));
    }
    sample
}
