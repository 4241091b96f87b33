//! The summary of runs whose right answers are known, as text.

use onbeat_shared::log::sample::{self, Sample};
use onbeat_shared::log::{Class, Record};
use onbeat_shared::metrics::slo::Goals;
use onbeat_shared::metrics::{ReportOptions, report};
use onbeat_shared::run::Run;
use onbeat_shared::units::{CoreIndex, RequestIndex, RunNanos};

use super::page::WIDTH;
use super::*;

const MS: i64 = 1_000_000;

fn text(sample: &Sample, goals: &str, verbose: bool) -> String {
    let run = Run::read(&sample.bytes()).expect("a log");
    let slo = Some(Goals::parse(goals).expect("goals"));
    let report = report(&run, &ReportOptions { slo, ..ReportOptions::default() });
    let mut out = Vec::new();
    write(&mut out, &report, verbose).expect("memory takes everything");
    let text = String::from_utf8(out).expect("text");
    for line in text.lines() {
        assert!(line.len() <= WIDTH, "{} columns: {line}", line.len());
    }
    assert!(text.is_ascii());
    text
}

#[test]
fn a_clean_run() {
    let mut sample = Sample::new();
    for k in 0..20 {
        let request = sample.plan(k * 100 * MS);
        let sent = k * 100 * MS + 20_000 + k * 500;
        sample.dispatch(request, k * 100 * MS, sent);
        let first = sent + (50 + k) * MS;
        sample.chunks(request, &[first, first + 10 * MS, first + 20 * MS]);
        sample.usage(request, first + 21 * MS, [Some(100), Some(3), None]);
        sample.done(request, first + 21 * MS, Class::Ok);
    }
    insta::assert_snapshot!(text(&sample, "ttft:60 itl:12", false), @r#"
    SCHEDULE     HELD: 20 of 20 requests sent; p99 lateness 29.4 us outside host stalls (limit 1 ms)

    Run          sample, sample.jsonl (bailian_trace), open_loop, 2 cores of sample-host, 2026-01-02
                 03:04:05 UTC
    Outcomes     20 ok
    Sending      10.53 requests/s offered, 10.53 achieved, over a sending window of 1.900 s; at most 1
                 in flight
    Host         no stall of the sending cores was seen

                              count       mean        p50        p90        p95        p99        max
    lateness, us                 20      24.75      24.75      28.55      29.02      29.41      29.50
      outside stalls             20      24.75      24.75      28.55      29.02      29.41      29.50
      lone requests              20      24.75      24.75      28.55      29.02      29.41      29.50
      in bursts                   0  no data
    TTFT, ms                     20      59.50      59.50      67.10      68.05      68.81      69.00
    TTFT from due, ms            20      59.52      59.52      67.13      68.08      68.84      69.03
    ITL, ms                      20      10.00      10.00      10.00      10.00      10.00      10.00
    e2e, ms                      20      79.50      79.50      87.10      88.05      88.81      89.00
    e2e from due, ms             20      79.52      79.52      87.13      88.08      88.84      89.03
    tokens/s per user            20      100.0      100.0      100.0      100.0      100.0      100.0
    Latency is of successful requests; percentiles are interpolated linearly, from exact values.

    Throughput   10.05 requests/s; tokens/s: input 1,005, output 30.15, total 1,035, peak output in one
                 second 30.00
                 successful requests over 1.990 s, first sending to last end; 10.53 requests/s of the
                 sending window
    Tokens       prompt 2,000, completion 60 (server usage)
                 planned output 200: 20 answers of another length, 7.000 tokens too short on average
                 servers stop where the model ends its answer: --extra-inputs ignore_eos:true (vLLM,
                 SGLang) makes answers as long as recorded
    Cache        ideal hit rate unknown (no request with block ids was sent); server: not reported
                 (vLLM: --enable-prompt-tokens-details, SGLang: --enable-cache-report)
    Goodput      11 requests meet every goal (55.0 % of 20: all that ended by themselves), 5.528
                 requests/s; with the wait for sending 50.0 %
                 itl_ms <= 12: 20 (100.0 %)
                 ttft_ms <= 60: 11 (55.0 %)
    Fidelity     arrival error 0.00 %: recorded gaps of 100.0 ms, p50 100.0, p99 100.0, variation 0;
                 replayed gaps of 100.0 ms, p50 100.0, p99 100.0, variation 0
                 input length error 0.00 %: recorded 2,000 tokens; replayed 2,000 tokens
                 output length error 70.0 %: recorded 200 tokens; replayed 60 tokens
                 cache no data (the server reports no cached tokens, or the trace has no block ids)
    "#);
}

#[test]
fn a_run_that_did_not_hold() {
    let mut sample = Sample::new();
    for k in 0..10 {
        let request = sample.plan(k * MS);
        sample.dispatch(request, k * MS, k * MS + 4 * MS);
        let class = if k % 2 == 0 { Class::Ok } else { Class::ResetMidAnswer };
        if class == Class::Ok {
            sample.chunks(request, &[(k + 90) * MS]);
        }
        sample.done(request, (k + 100) * MS, class);
    }
    // What a server says is shown, but never obeyed by a terminal.
    let (words, mut bytes) = (b"out of memory \x1b[2J", [0; 24]);
    bytes[..words.len()].copy_from_slice(words);
    let text_record = Record::Text { request: RequestIndex(1), part: 0, used: 18, bytes };
    sample.push(CoreIndex(0), text_record);
    let unsent = sample.plan(10 * MS);
    sample.done(unsent, 200 * MS, Class::NotReached);
    let start = RunNanos(50 * MS);
    sample.push(CoreIndex(0), Record::Stall { start, length_ns: 1_250_000 });
    insta::assert_snapshot!(text(&sample, "", false), @r#"
    SCHEDULE     NOT HELD: 10 of 11 requests sent; p99 lateness 4 ms outside host stalls (limit 1 ms)
                 - 1 of 11 planned requests was never sent; the run ended first: let it drain longer
                 (--drain-seconds) or plan fewer requests
                 - CLIENT SATURATED: 909.1 of the 1100.0 requests per second that were offered were sent
                 (82.6 %, at least 99 % are needed; time in host stalls is taken off), 100.0 % of them
                 more than 1 ms late; use more --cores or a lower --replay-speedup
                 - p99 lateness outside host stalls is 4 ms, above the limit of 1 ms
                 (--max-lateness-us); use more --cores, isolate them, or raise the limit knowingly

    Run          sample, sample.jsonl (bailian_trace), open_loop, 2 cores of sample-host, 2026-01-02
                 03:04:05 UTC
    Outcomes     5 ok, 5 failed (50.0 % of the 10 that ended by themselves), 1 never sent
                 reset_mid_answer 5, not_reached 1
                 first reset_mid_answer: out of memory ?[2J
    Sending      1,100 requests/s offered, 909.1 achieved, over a sending window of 0.010 s; at most 10
                 in flight
    Host         1 stall, 1.250 ms in all, longest 1.250 ms (the host took the processor away)

                              count       mean        p50        p90        p95        p99        max
    lateness, us                 10      4,000      4,000      4,000      4,000      4,000      4,000
      outside stalls             10      4,000      4,000      4,000      4,000      4,000      4,000
      lone requests              10      4,000      4,000      4,000      4,000      4,000      4,000
      in bursts                   0  no data
    TTFT, ms                      5      86.00      86.00      86.00      86.00      86.00      86.00
    TTFT from due, ms             5      90.00      90.00      90.00      90.00      90.00      90.00
    ITL, ms                       0  no data
    e2e, ms                       5      86.00      86.00      86.00      86.00      86.00      86.00
    e2e from due, ms              5      90.00      90.00      90.00      90.00      90.00      90.00
    tokens/s per user             0  no data
    Latency is of successful requests; percentiles are interpolated linearly, from exact values.
    Counting each failure as never answered, p99 TTFT is infinite and p99 e2e infinite.
    Every answer came whole, not streamed: TTFT tells no more than e2e, and there is no ITL.

    Throughput   47.62 requests/s; tokens/s: input 4,762, output 47.62, total 4,810
                 successful requests over 0.105 s, first sending to last end; 500.0 requests/s of the
                 sending window
    Tokens       prompt 500 (as recorded), completion 5 (content events: no answer reports usage)
                 planned output 50: 5 answers of another length, 9.000 tokens too short on average
    Cache        ideal hit rate unknown (no request with block ids was sent); server: not reported
                 (vLLM: --enable-prompt-tokens-details, SGLang: --enable-cache-report)
    Fidelity     arrival error 0.00 %: recorded gaps of 1.000 ms, p50 1.000, p99 1.000, variation 0;
                 replayed gaps of 1.000 ms, p50 1.000, p99 1.000, variation 0
                 input length no data (no server's count of prompt tokens beside a recorded length)
                 output length error 90.0 %: recorded 50 tokens; replayed 5 tokens
                 cache no data (the server reports no cached tokens, or the trace has no block ids)
    "#);
}

#[test]
fn what_was_cancelled_is_counted_everywhere() {
    let mut sample = Sample::new();
    for k in 0..10 {
        let request = sample.send(k * MS);
        sample.chunks(request, &[(k + 1) * MS, (k + 2) * MS]);
        let class = match k {
            0..6 => Class::Ok,
            6 => Class::Http429,
            7 | 8 => Class::CancelledByPlan,
            _ => Class::CutAtEnd,
        };
        sample.done(request, (k + 3) * MS, class);
    }
    sample.send(10 * MS);
    let refused = sample.plan(11 * MS);
    sample.done(refused, 11 * MS, Class::ConnectRefused);
    let run = Run::read(&sample.bytes()).expect("a log");
    let slo = Some(Goals::parse("e2e_output_token_throughput:100").expect("a goal"));
    let options = ReportOptions { slo, slice_ns: Some(5 * MS), ..ReportOptions::default() };
    let mut out = Vec::new();
    write(&mut out, &report(&run, &options), false).expect("memory takes everything");
    let text = String::from_utf8(out).expect("text");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "6 ok, 2 failed (25.0 % of the 8 that ended by themselves), 3 cancelled, 1 sent and without an end in the log",
        "6 requests meet every goal (60.0 % of 10: 8 that ended by themselves and 2 cancelled)",
        "2 requests cut off before the end, in no share",
        "e2e_output_tokens_per_s >= 100: 6 (60.0 %)",
        "slice, s sent ok failed cancelled no end",
        "0.000 5 5 0 0 0",
        "0.005 5 1 1 3 0",
        "0.010 1 0 0 0 1",
        "In none: 1 request that ended before leaving, without a connection.",
    ] {
        assert!(words.contains(part), "{part} is not in\n{text}");
    }
    assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
}

#[test]
fn a_run_without_data_says_so() {
    let text = text(&Sample::new(), "", false);
    assert!(text.starts_with("SCHEDULE     NOT HELD: 0 of 0 requests sent"), "{text}");
    assert!(text.contains("TTFT, ms                      0  no data"), "{text}");
    assert!(text.contains("Throughput   no data"), "{text}");
}

#[test]
fn every_metric_has_a_row_and_a_formula() {
    let text = text(&sample::sample(3, 400), "ttft:100 decode_tps:50", true);
    for metric in Metric::ALL {
        assert!(text.contains(&format!("{}, ms", metric.label())), "{}", metric.label());
        assert!(text.contains(metric.formula()), "{}", metric.formula());
    }
}

#[test]
fn names_from_files_cannot_disturb_the_terminal() {
    let mut sample = Sample::new();
    sample.manifest.trace.name = "a\u{1b}[31m\u{e9}.jsonl".to_owned();
    let text = text(&sample, "", false);
    assert!(text.contains("a?[31m?.jsonl"), "{text}");
}
