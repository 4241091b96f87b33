//! A report as text that a person reads in ten seconds: the verdict first, then what it rests on.
//!
//! Pure: a [`Report`] in, lines out, at most a hundred columns of ASCII, no colour. Units are in
//! the labels; what is not known is said in words, never shown as zero. Formulas come with
//! `verbose`. Nothing is computed here beyond shares of counts.

mod formulas;
mod hint;
pub(in crate::cli) mod page;
mod slices;
mod users;
mod hosts;

use std::io::{self, Write};

use jiff::Timestamp;
use onbeat_shared::counted::agreeing;
use onbeat_shared::log::Class;
use onbeat_shared::metrics::goal::GoalKind;
use onbeat_shared::metrics::report::{Report, Tokens};
use onbeat_shared::metrics::{Metric, Statistic};

use self::page::{Page, group, number, percent, plural};

/// Failures whose words are shown, the most frequent first.
const ERRORS: usize = 3;
use onbeat_shared::quantity::{duration, duration_us};
/// Characters of them.
const ERROR_CHARS: usize = 200;

/// Writes the summary of a run.
///
/// # Errors
/// If writing fails.
pub fn write(out: &mut dyn Write, report: &Report, verbose: bool) -> io::Result<()> {
    let mut page = Page::default();
    verdict(&mut page, report);
    page.blank();
    heading(&mut page, report);
    outcomes(&mut page, report);
    sending(&mut page, report);
    page.blank();
    table(&mut page, report, verbose);
    page.blank();
    throughput(&mut page, report);
    tokens(&mut page, report);
    cache(&mut page, report);
    goodput(&mut page, report);
    users::users(&mut page, report);
    hosts::hosts(&mut page, report);
    for words in &report.notes.warnings {
        page.entry("Warning", words);
    }
    users::periods(&mut page, report, verbose);
    slices::slices(&mut page, report);
    if verbose {
        formulas::formulas(&mut page, report.users.is_some());
    }
    out.write_all(page.text.as_bytes())
}

fn heading(page: &mut Page, report: &Report) {
    let run = &report.run;
    let started = i128::from(run.started_unix_ns);
    let started = Timestamp::from_nanosecond(started).ok().filter(|_| started > 0);
    let started = started.map_or_else(
        || "start unknown".to_owned(),
        |time| time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
    );
    let cores = plural(run.cores.len() as u64, "core");
    page.entry(
        "Run",
        &format!(
            "{}, {} ({}), {}, {cores} of {}, {started}",
            run.id, run.trace.name, run.trace.format, run.mode, run.host.hostname
        ),
    );
    if let Some(warm_up) = &run.warm_up {
        let count = plural(warm_up.requests, "request");
        let seconds =
            warm_up.duration_s.map_or_else(String::new, |s| format!(" in {} s", number(s)));
        let words = format!("{count} before zero{seconds}, {} ok; counted nowhere", warm_up.ok);
        page.entry("Warm-up", &words);
    }
    if let Some(tls) = &run.tls {
        page.entry("TLS", &tls.to_string());
    }
}

fn verdict(page: &mut Page, report: &Report) {
    let schedule = &report.schedule;
    let sent = format!("{} of {} sent", group(schedule.sent), plural(schedule.planned, "request"));
    let late = schedule.lateness_outside_stalls_us.map_or_else(
        || match schedule.lateness_us {
            None => "no lateness to judge".to_owned(),
            Some(_) => "host stalls hit every request: no lateness to judge".to_owned(),
        },
        |late| {
            format!(
                "p99 lateness {} outside host stalls (limit {})",
                duration(late.p99 * 1e3),
                duration_us(report.notes.max_lateness_us)
            )
        },
    );
    let stopped = if report.run.interrupted { ", stopped by the user" } else { "" };
    let held = if report.verdict.schedule_held { "HELD" } else { "NOT HELD" };
    page.entry("SCHEDULE", &format!("{held}: {sent}{stopped}; {late}"));
    for reason in &report.verdict.reasons {
        page.entry("", &format!("- {reason}"));
    }
}

fn outcomes(page: &mut Page, report: &Report) {
    let outcomes = &report.outcomes;
    let mut parts = vec![format!("{} ok", group(outcomes.ok))];
    let (failed, ended) = (outcomes.failed(), outcomes.ended());
    if failed > 0 {
        let (failed, share, ended) = (group(failed), percent(failed, ended), group(ended));
        parts.push(format!("{failed} failed ({share} of the {ended} that ended by themselves)"));
    }
    let counts = [
        (outcomes.cancelled, "cancelled"),
        (outcomes.never_sent, "never sent"),
        (report.notes.open, "in flight when the log ends"),
        (report.notes.not_reached, "not reached when the log ends"),
    ];
    for (count, words) in counts.into_iter().filter(|(count, _)| *count > 0) {
        parts.push(format!("{} {words}", group(count)));
    }
    page.entry("Outcomes", &parts.join(", "));
    // What the line above says in words already is not a cause.
    let cause = |name: &str| name != "ok" && !name.ends_with("_when_log_ends");
    let mut classes: Vec<_> = outcomes.by_class.iter().filter(|(name, _)| cause(name)).collect();
    // Trouble of our own comes first, however little of it: it is none of the server's.
    let ours = |name: &str| name.starts_with("client_");
    classes.sort_by_key(|(name, count)| (!ours(name), std::cmp::Reverse(**count), (*name).clone()));
    let counted: Vec<_> =
        classes.iter().map(|(name, count)| format!("{name} {}", group(**count))).collect();
    if !counted.is_empty() {
        page.entry("", &counted.join(", "));
    }
    let said = |(name, _): &(&String, &u64)| {
        let words = report.notes.first_errors.get(name.as_str())?;
        let shown: String = words.chars().take(ERROR_CHARS).collect();
        let cut = if shown.len() < words.len() { "..." } else { "" };
        Some(format!("first {name}: {shown}{cut}"))
    };
    for words in classes.iter().filter_map(said).take(ERRORS) {
        page.entry("", &words);
    }
    let refusal = report.notes.first_errors.get(Class::Http4xx.name());
    if let Some(words) = refusal.and_then(|words| hint::of_refusal(words)) {
        page.entry("", &words);
    }
}

fn sending(page: &mut Page, report: &Report) {
    let schedule = &report.schedule;
    let rates = schedule.offered_rps.zip(schedule.achieved_rps);
    let mut words = match (rates, report.notes.sending_window_s) {
        (Some((offered, achieved)), Some(window)) => format!(
            "{} requests/s offered, {} achieved, over a sending window of {} s",
            number(offered),
            number(achieved),
            number(window)
        ),
        _ if report.users.is_some() => "users decide when: no rate was offered".to_owned(),
        _ => "no rate: fewer than two instants to send at".to_owned(),
    };
    if let Some(peak) = report.throughput.peak_in_flight {
        words += &format!("; at most {} in flight", group(peak));
    }
    page.entry("Sending", &words);
    let stalls = schedule.host_stalls;
    let words = match stalls.max_ms {
        Some(longest) => format!(
            "{}, {} ms in all, longest {} ms (the host took the processor away)",
            plural(stalls.count, "stall"),
            number(stalls.total_ms),
            number(longest)
        ),
        None => "no stall of the sending cores was seen".to_owned(),
    };
    page.entry("Host", &words);
    if schedule.render_underruns > 0 {
        let count = plural(schedule.render_underruns, "body");
        page.entry("", &format!("{count} not rendered when due"));
    }
}

fn table(page: &mut Page, report: &Report, verbose: bool) {
    let schedule = &report.schedule;
    page.line(&format!(
        "{:<22}{:>9}{:>11}{:>11}{:>11}{:>11}{:>11}{:>11}",
        "", "count", "mean", "p50", "p90", "p95", "p99", "max"
    ));
    row(page, "lateness, us", schedule.lateness_us.as_ref());
    row(page, "  outside stalls", schedule.lateness_outside_stalls_us.as_ref());
    row(page, "  lone requests", report.notes.lone_lateness_us.as_ref());
    row(page, "  in bursts", schedule.burst_lateness_us.as_ref());
    let latency = &report.latency;
    let short = [Metric::Ttft, Metric::TtftFromDue, Metric::Itl, Metric::E2e, Metric::E2eFromDue];
    for metric in Metric::ALL {
        if verbose || short.contains(&metric) {
            row(page, &format!("{}, ms", metric.label()), latency.of(metric).as_ref());
        }
    }
    if verbose {
        row(page, "ICL, ms", latency.icl_ms.as_ref());
        row(page, "connect, ms", latency.connect_ms.as_ref());
    }
    users::rows(page, report);
    row(page, "tokens/s per user", report.throughput.output_tokens_per_s_per_user.as_ref());
    let mut rule =
        "Latency is of successful requests; percentiles are interpolated linearly".to_owned();
    rule += &match report.notes.binned.as_slice() {
        [] => ", from exact values.".to_owned(),
        names => format!(", from exact values except (three digits): {}.", names.join(", ")),
    };
    page.paragraph(&rule);
    adjusted(page, report);
    if report.notes.answers_came_whole {
        page.paragraph(
            "Every answer came whole, not streamed: TTFT tells no more than e2e, and there is no ITL.",
        );
    }
}

/// What the 99th percentiles were if failures had taken forever, where there are any.
fn adjusted(page: &mut Page, report: &Report) {
    if report.outcomes.failed() == 0 {
        return;
    }
    let shown = |value: Option<f64>| {
        value.map_or_else(|| "infinite".to_owned(), |value| format!("{} ms", number(value)))
    };
    page.paragraph(&format!(
        "Counting each failure as never answered, p99 TTFT is {} and p99 e2e {}.",
        shown(report.notes.ttft_ms_p99_failures_as_infinite),
        shown(report.notes.e2e_ms_p99_failures_as_infinite)
    ));
}

fn row(page: &mut Page, label: &str, statistic: Option<&Statistic>) {
    let Some(s) = statistic else {
        page.line(&format!("{label:<22}{:>9}  no data", 0));
        return;
    };
    let mut line = format!("{label:<22}{:>9}", group(s.count));
    for value in [s.mean, s.p50, s.p90, s.p95, s.p99, s.max] {
        line += &format!("{:>11}", number(value));
    }
    page.line(&line);
}

fn throughput(page: &mut Page, report: &Report) {
    let rates = &report.throughput;
    let (Some(requests), Some(window)) = (rates.requests_per_s, report.notes.rate_window_s) else {
        page.entry("Throughput", "no data");
        return;
    };
    let tokens: Vec<_> = [
        (rates.input_tokens_per_s, "input"),
        (rates.output_tokens_per_s, "output"),
        (rates.total_tokens_per_s, "total"),
        (rates.peak_output_tokens_per_s, "peak output in one second"),
    ]
    .into_iter()
    .filter_map(|(rate, what)| Some(format!("{what} {}", number(rate?))))
    .collect();
    let tokens = if tokens.is_empty() { "no data".to_owned() } else { tokens.join(", ") };
    page.entry("Throughput", &format!("{} requests/s; tokens/s: {tokens}", number(requests)));
    let sending = report.notes.requests_per_s_of_sending_window.map_or_else(String::new, |rate| {
        format!("; {} requests/s of the sending window", number(rate))
    });
    page.entry(
        "",
        &format!(
            "successful requests over {} s, first sending to last end{sending}",
            number(window)
        ),
    );
}

fn tokens(page: &mut Page, report: &Report) {
    let tokens = &report.tokens;
    let known = |count: Option<u64>| count.map_or_else(|| "no data".to_owned(), group);
    let counted = match tokens.source {
        None => "",
        Some("usage") => " (server usage)",
        Some("chunks") => " (content events: no answer reports usage)",
        Some(_) => " (server usage; content events where an answer reports none)",
    };
    let prompts = match report.notes.prompt_source {
        Some("recorded") => " (as recorded)",
        Some("mixed") => " (server usage, else as recorded)",
        _ => "",
    };
    let mut words = format!(
        "prompt {}{prompts}, completion {}{counted}",
        known(tokens.prompt),
        known(tokens.completion)
    );
    if let Some(reasoning) = tokens.reasoning {
        words += &format!(", of it reasoning {}", group(reasoning));
    }
    page.entry("Tokens", &words);
    if let (Some(planned), Some(differ)) = (tokens.planned_output, tokens.output_mismatch_requests)
    {
        let differ = match differ {
            0 => "every answer has its planned length".to_owned(),
            n => format!("{} of another length{}", plural(n, "answer"), shortfall(tokens)),
        };
        page.entry("", &format!("planned output {}: {differ}", group(planned)));
    }
}

/// By how much answers missed their planned length.
fn shortfall(tokens: &Tokens) -> String {
    let Some(mean) = tokens.output_mismatch_mean_shortfall else { return String::new() };
    let which = if mean < 0.0 { "long" } else { "short" };
    format!(", {} tokens too {which} on average", number(mean.abs()))
}

fn cache(page: &mut Page, report: &Report) {
    let cache = &report.cache;
    let share = |rate: f64| format!("{:.1} %", rate * 100.0);
    let ideal = cache.ideal_hit_rate.map_or_else(
        || "ideal hit rate unknown (no request with block ids was sent)".to_owned(),
        |rate| format!("ideal hit rate {} of input tokens (infinite prefix cache)", share(rate)),
    );
    let reported = match cache.reported_hit_rate {
        Some(rate) => format!(
            "server reports {} in {}",
            share(rate),
            plural(cache.requests_reporting, "answer")
        ),
        None => "server: not reported (vLLM: --enable-prompt-tokens-details, SGLang: \
                 --enable-cache-report)"
            .to_owned(),
    };
    page.entry("Cache", &format!("{ideal}; {reported}"));
}

fn goodput(page: &mut Page, report: &Report) {
    let slo = &report.slo;
    if slo.goals.is_empty() {
        return;
    }
    let share = |share: Option<f64>| {
        share.map_or_else(|| "no data".to_owned(), |s| format!("{:.1} %", s * 100.0))
    };
    let counted = (slo.goodput_requests, slo.of_requests, slo.goodput_rps);
    let (Some(good), Some(of), Some(rate)) = counted else {
        page.entry("Goodput", "no data");
        return;
    };
    let ended = report.outcomes.ended();
    let whom = match of.saturating_sub(ended) {
        0 => "all that ended by themselves".to_owned(),
        n => format!("{} that ended by themselves and {} cancelled", group(ended), group(n)),
    };
    page.entry(
        "Goodput",
        &format!(
            "{} {} every goal ({} of {}: {whom}), {} requests/s; with the wait for sending {}",
            plural(good, "request"),
            agreeing(good, "meets", "meet"),
            share(slo.goodput_share),
            group(of),
            number(rate),
            share(slo.effective_goodput_share)
        ),
    );
    if let Some(n) = slo.cut_off_requests.filter(|&n| n > 0) {
        let words = format!("{} cut off before the end, in no share", plural(n, "request"));
        page.entry("", &words);
    }
    for (name, limit) in &slo.goals {
        let met = &slo.met[name];
        let lower = GoalKind::from_name(name).is_some_and(GoalKind::has_lower_limit);
        let sign = if lower { ">=" } else { "<=" };
        page.entry(
            "",
            &format!("{name} {sign} {limit}: {} ({})", group(met.count), share(met.share)),
        );
    }
}

#[cfg(test)]
mod tests {
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
        SCHEDULE     HELD: 20 of 20 requests sent; p99 lateness 29.41 us outside host stalls (limit 1,000)

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
        Cache        ideal hit rate unknown (no request with block ids was sent); server: not reported
                     (vLLM: --enable-prompt-tokens-details, SGLang: --enable-cache-report)
        Goodput      11 requests meet every goal (55.0 % of 20: all that ended by themselves), 5.528
                     requests/s; with the wait for sending 50.0 %
                     itl_ms <= 12: 20 (100.0 %)
                     ttft_ms <= 60: 11 (55.0 %)
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
        SCHEDULE     NOT HELD: 10 of 11 requests sent; p99 lateness 4,000 us outside host stalls (limit
                     1,000)
                     - 1 of 11 planned requests was never sent; the run ended first: let it drain longer
                     (--drain-seconds) or plan fewer requests
                     - CLIENT SATURATED: 909.1 of the 1100.0 requests per second that were offered were sent
                     (82.6 %, at least 99 % are needed; time in host stalls is taken off), 100.0 % of them
                     more than 1000 us late; use more --cores or a lower --replay-speedup
                     - p99 lateness outside host stalls is 4000 us, above the limit of 1000 us
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
            "6 ok, 2 failed (25.0 % of the 8 that ended by themselves), 3 cancelled, 1 in flight",
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
}
