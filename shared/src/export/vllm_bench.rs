//! A run as the JSON of `vllm bench serve --save-result --save-detailed`, for tools that read that.
//!
//! Keys and units are vLLM's: seconds in lists, milliseconds in statistics. Lists have one entry
//! per request that was sent or failed to be, in send order; a failed one has the zeros that vLLM
//! gives it and says why in `errors`, as do lengths that nobody knows. vLLM cancels nothing: what
//! was cancelled counts in `failed`. A request whose end is not in the log is in no list and no
//! count. Here `itl` is the gap between content events (our ICL) and
//! `tpot` the time per token (our ITL). Answers' texts are not in a log, so `generated_texts` are
//! empty. `queue_times` are what a request waited for its sending, `latencies` end with the last
//! token.

use std::io::{self, Write};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use super::has_record;
use crate::metrics::latency::{Metric, chunk_gaps_ns, count, nanos};
use crate::metrics::quantile::{Collector, Statistic};
use crate::metrics::selection::Selection;
use crate::metrics::slo::Goals;
use crate::metrics::throughput::{Window, in_flight_at_send, peak_output_tokens_per_s};
use crate::metrics::tokens;
use crate::run::Run;
use crate::units::RunNanos;

/// Writes the run.
///
/// # Errors
/// If writing fails.
pub fn write(run: &Run, goals: &Goals, out: &mut dyn Write) -> io::Result<()> {
    write_of(&Selection::new(run, None), goals, out)
}

/// The same of some requests.
///
/// # Errors
/// If writing fails.
pub fn write_of(chosen: &Selection<'_>, goals: &Goals, out: &mut dyn Write) -> io::Result<()> {
    let mut out = io::BufWriter::with_capacity(1 << 16, out);
    serde_json::to_writer(&mut out, &document(chosen, goals))?;
    out.write_all(b"\n")?;
    out.flush()
}

fn document(chosen: &Selection<'_>, goals: &Goals) -> Value {
    let run = chosen.run();
    let requests: Vec<usize> = chosen.requests().filter(|&i| has_record(run, i)).collect();
    let mut object = head(run, requests.len());
    totals(&mut object, chosen, goals, &requests);
    details(&mut object, run, &requests);
    statistics(&mut object, chosen);
    Value::Object(object)
}

fn head(run: &Run, sent: usize) -> Map<String, Value> {
    let manifest = &run.manifest;
    let chat = manifest.endpoint.ends_with("/chat/completions");
    let backend = if chat { "openai-chat" } else { "openai" };
    let started = Timestamp::from_nanosecond(i128::from(run.started_unix_ns()));
    let date = started.map(|time| time.to_zoned(TimeZone::UTC).strftime("%Y%m%d-%H%M%S"));
    let values = [
        ("date", json!(date.map(|date| date.to_string()).unwrap_or_default())),
        ("backend", json!(backend)),
        ("endpoint_type", json!(backend)),
        ("label", Value::Null),
        ("model_id", json!(manifest.model)),
        ("tokenizer_id", json!(manifest.model)),
        ("num_prompts", json!(sent)),
        ("request_rate", json!("inf")),
        ("burstiness", json!(1.0)),
        ("max_concurrency", Value::Null),
        ("onbeat_version", json!(manifest.onbeat_version)),
        ("onbeat_run_id", json!(manifest.run_id)),
        ("onbeat_mode", json!(manifest.mode)),
    ];
    values.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn totals(
    object: &mut Map<String, Value>,
    chosen: &Selection<'_>,
    goals: &Goals,
    requests: &[usize],
) {
    let run = chosen.run();
    let duration = Window::of(chosen).and_then(Window::seconds);
    let ok: Vec<usize> = requests.iter().copied().filter(|&i| run.requests.is_ok(i)).collect();
    let sum =
        |of: fn(&Run, usize) -> Option<u64>| -> u64 { ok.iter().filter_map(|&i| of(run, i)).sum() };
    let (input, output) = (sum(tokens::prompt), sum(tokens::completion));
    let rate = |amount: u64| duration.map(|seconds| count(amount) / seconds);
    let good = ok.iter().filter(|&&i| goals.is_good(run, i, false)).count() as u64;
    let in_flight = in_flight_at_send(run);
    let in_flight = chosen.requests().filter_map(|i| in_flight[i]);
    let values = [
        ("duration", json!(duration)),
        ("completed", json!(ok.len())),
        ("failed", json!(requests.len() - ok.len())),
        ("total_input_tokens", json!(input)),
        ("total_output_tokens", json!(output)),
        ("request_throughput", json!(rate(ok.len() as u64))),
        ("request_goodput", json!(rate(good).filter(|_| !goals.is_empty()))),
        ("output_throughput", json!(rate(output))),
        ("total_token_throughput", json!(rate(input.saturating_add(output)))),
        ("max_output_tokens_per_s", json!(peak_output_tokens_per_s(chosen))),
        ("max_concurrent_requests", json!(in_flight.max())),
    ];
    object.extend(values.map(|(key, value)| (key.to_owned(), value)));
}

fn details(object: &mut Map<String, Value>, run: &Run, requests: &[usize]) {
    let mut list = |key: &str, value: &dyn Fn(usize) -> Value| {
        let values = requests.iter().map(|&i| value(i));
        object.insert(key.to_owned(), values.collect());
    };
    let ok = |i: usize| run.requests.is_ok(i);
    let seconds = |i, metric: Metric| {
        let value = metric.value_ns(run, i).filter(|_| ok(i));
        json!(value.unwrap_or(0.0) / 1e9)
    };
    let since_zero = |time: Option<RunNanos>| json!(time.map(|time| nanos(time.0) / 1e9));
    list("input_lens", &|i| json!(tokens::prompt(run, i).unwrap_or(0)));
    list("output_lens", &|i| json!(tokens::completion(run, i).filter(|_| ok(i)).unwrap_or(0)));
    list("ttfts", &|i| seconds(i, Metric::Ttft));
    list("itls", &|i| {
        let gaps = chunk_gaps_ns(run, i).filter(|_| ok(i));
        gaps.map(|gap| nanos(gap) / 1e9).collect()
    });
    list("latencies", &|i| seconds(i, Metric::E2e));
    list("start_times", &|i| since_zero(run.requests.sent(i).or(run.requests.intended(i))));
    list("queue_times", &|i| {
        let waited = run.requests.sent(i).zip(run.requests.intended(i));
        let waited = waited.and_then(|(sent, intended)| sent.0.checked_sub(intended.0));
        json!(waited.map(|waited| nanos(waited) / 1e9))
    });
    list("generated_texts", &|_i| json!(""));
    list("errors", &|i| json!(error(run, i)));
}

/// What went wrong, in words; empty for a request that succeeded.
fn error(run: &Run, i: usize) -> String {
    let Some(class) = run.requests.class(i).filter(|_| !run.requests.is_ok(i)) else {
        return String::new();
    };
    let class = class.name();
    run.error_text(i).map_or_else(|| class.to_owned(), |words| format!("{class}: {words}"))
}

fn statistics(object: &mut Map<String, Value>, chosen: &Selection<'_>) {
    let run = chosen.run();
    let of = |metric: Metric| {
        let mut collector = Collector::new();
        collector.extend(chosen.successful().filter_map(|i| metric.value_ns(run, i)));
        collector.statistic(1e6)
    };
    let mut gaps = Collector::new();
    gaps.extend(chosen.successful().flat_map(|i| chunk_gaps_ns(run, i)).map(nanos));
    let rows: [(&str, Option<Statistic>); 4] = [
        ("ttft", of(Metric::Ttft)),
        ("tpot", of(Metric::Itl)),
        ("itl", gaps.statistic(1e6)),
        ("e2el", of(Metric::E2e)),
    ];
    for (name, statistic) in rows {
        let mut put = |figure: &str, value: fn(&Statistic) -> f64| {
            let value = statistic.as_ref().map(value);
            object.insert(format!("{figure}_{name}_ms"), json!(value));
        };
        put("mean", |s| s.mean);
        put("median", |s| s.p50);
        put("std", |s| s.std);
        put("p50", |s| s.p50);
        put("p90", |s| s.p90);
        put("p95", |s| s.p95);
        put("p99", |s| s.p99);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Class;
    use crate::log::sample::Sample;

    const MS: i64 = 1_000_000;

    #[test]
    fn keys_units_and_values_are_those_of_vllm() {
        let mut sample = Sample::new();
        let answered = sample.plan(0);
        sample.dispatch(answered, 0, MS);
        sample.chunks(answered, &[101 * MS, 121 * MS, 131 * MS]);
        sample.usage(answered, 131 * MS, [Some(50), Some(4), None]);
        sample.done(answered, 132 * MS, Class::Ok);
        let failed = sample.send(10 * MS);
        sample.done(failed, 501 * MS, Class::Http429);
        let never = sample.plan(20 * MS);
        sample.done(never, 502 * MS, Class::NotReached);
        let run = Run::read(&sample.bytes()).expect("a log");
        let goals = Goals::parse("ttft:370 tpot:60 e2el:1000").expect("goals");
        let mut out = Vec::new();
        write(&run, &goals, &mut out).expect("memory takes everything");
        let json: Value = serde_json::from_slice(&out).expect("JSON");
        assert_eq!(json["date"], "20260102-030405");
        assert_eq!((&json["completed"], &json["failed"]), (&json!(1), &json!(1)));
        assert_eq!(json["num_prompts"], 2, "what never left is no prompt");
        assert_eq!(json["duration"], 0.5);
        assert_eq!(json["request_throughput"], 2.0);
        assert_eq!(json["request_goodput"], 2.0);
        assert_eq!(json["output_throughput"], 8.0);
        assert_eq!(json["total_token_throughput"], 108.0);
        assert_eq!(json["max_concurrent_requests"], 2);
        assert_eq!(json["input_lens"], json!([50, 100]));
        assert_eq!(json["output_lens"], json!([4, 0]));
        assert_eq!(json["ttfts"], json!([0.1, 0.0]));
        assert_eq!(json["itls"], json!([[0.02, 0.01], []]));
        assert_eq!(json["latencies"], json!([0.13, 0.0]));
        assert_eq!(json["start_times"], json!([0.001, 0.01]));
        assert_eq!(json["queue_times"], json!([0.001, 0.0]));
        assert_eq!(json["errors"], json!(["", "http_429"]));
        assert_eq!((&json["mean_ttft_ms"], &json["p99_ttft_ms"]), (&json!(100.0), &json!(100.0)));
        assert_eq!((&json["median_tpot_ms"], &json["mean_itl_ms"]), (&json!(10.0), &json!(15.0)));
        assert_eq!((&json["std_itl_ms"], &json["mean_e2el_ms"]), (&json!(5.0), &json!(130.0)));
    }

    /// A run that was killed: what was in flight then neither succeeded nor failed.
    #[test]
    fn what_was_in_flight_when_the_log_ends_is_no_failure() {
        let mut sample = Sample::new();
        let answered = sample.send(0);
        sample.done(answered, 100 * MS, Class::Ok);
        let failed = sample.send(10 * MS);
        sample.done(failed, 50 * MS, Class::Http429);
        let open = sample.send(20 * MS);
        sample.chunks(open, &[90 * MS]);
        sample.closed = false;
        let run = Run::read(&sample.bytes()).expect("a log");
        let json = document(&Selection::new(&run, None), &Goals::default());
        assert_eq!((&json["completed"], &json["failed"]), (&json!(1), &json!(1)));
        assert_eq!(json["num_prompts"], 2);
        assert_eq!(json["errors"], json!(["", "http_429"]));
        assert_eq!(json["start_times"], json!([0.0, 0.01]));
        assert_eq!(crate::export::without_end(&Selection::new(&run, None)), 1);
    }

    #[test]
    fn a_run_without_an_answer_has_nulls_and_no_zero() {
        let run = Run::read(&Sample::new().bytes()).expect("a log");
        let json = document(&Selection::new(&run, None), &Goals::default());
        for key in ["duration", "request_throughput", "mean_ttft_ms", "p99_e2el_ms"] {
            assert!(json[key].is_null(), "{key}");
        }
        assert_eq!((&json["completed"], &json["ttfts"]), (&json!(0), &json!([])));
        assert!(json["request_goodput"].is_null(), "no goals");
    }
}
