//! A report as text that a person reads in ten seconds: the verdict first, then what it rests on.
//!
//! Pure: a [`Report`] in, lines out, at most a hundred columns of ASCII, no colour. Units are in
//! the labels; what is not known is said in words, never shown as zero. Formulas come with
//! `verbose`. Nothing is computed here beyond shares of counts.

pub(in crate::cli) mod compare;
mod fidelity;
mod formulas;
pub(in crate::cli) mod gates;
mod hint;
mod hosts;
pub(in crate::cli) mod page;
mod servers;
mod slices;
#[cfg(test)]
mod tests;
mod users;

use std::io::{self, Write};

use jiff::Timestamp;
use onbeat_shared::counted::agreeing;
use onbeat_shared::log::Class;
use onbeat_shared::metrics::goal::GoalKind;
use onbeat_shared::metrics::report::{Report, Tokens};
use onbeat_shared::metrics::stopped;
use onbeat_shared::metrics::tokens::length_hint;
use onbeat_shared::metrics::verdict::NO_FOOTER;
use onbeat_shared::metrics::{Metric, Statistic};
use onbeat_shared::quantity::{duration, duration_us};
use onbeat_shared::run::End;

use self::page::{Page, group, number, percent, plural};

/// Failures whose words are shown, the most frequent first.
const ERRORS: usize = 3;
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
    hosts::hosts(&mut page, report);
    page.blank();
    throughput(&mut page, report);
    tokens(&mut page, report);
    cache(&mut page, report);
    servers::servers(&mut page, report);
    goodput(&mut page, report);
    fidelity::fidelity(&mut page, report, verbose);
    users::users(&mut page, report);
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
    let stopped = stopped::by_whom(report).map_or_else(String::new, |how| format!(", {how}"));
    let held = if report.verdict.schedule_held { "HELD" } else { "NOT HELD" };
    let left_out = report.verdict.left_out.words(report.verdict.schedule_held);
    page.entry("SCHEDULE", &format!("{held}{left_out}: {sent}{stopped}; {late}"));
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
    let is_open = |reason: &String| reason.starts_with(NO_FOOTER);
    let open = match report.verdict.reasons.iter().any(is_open) {
        true => "in flight when the log ends",
        false => "sent and without an end in the log",
    };
    let counts = [
        (outcomes.cancelled, "cancelled"),
        (outcomes.never_sent, "never sent"),
        (report.notes.open, open),
        (report.notes.not_reached, "not reached when the log ends"),
        (report.notes.lost, "not known (parts of the log are damaged or missing)"),
    ];
    for (count, words) in counts.into_iter().filter(|(count, _)| *count > 0) {
        parts.push(format!("{} {words}", group(count)));
    }
    page.entry("Outcomes", &parts.join(", "));
    // What the line above says in words already is not a cause.
    let without = [End::Open, End::NotReached, End::Lost].map(End::name);
    let cause = |name: &str| name != "ok" && !without.contains(&name);
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
    for class in [Class::Http4xx, Class::HttpRedirect] {
        let refusal = report.notes.first_errors.get(class.name());
        if let Some(words) = refusal.and_then(|words| hint::of_refusal(words)) {
            page.entry("", &words);
        }
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
    let waits = schedule.session_waits.and_then(|waits| Some((waits, waits.max_ms?)));
    if let Some((waits, longest)) = waits {
        let turns = plural(waits.count, "turn");
        let was = agreeing(waits.count, "was", "were");
        page.entry(
            "",
            &format!(
                "{turns} {was} due before the earlier answer of the session had ended, and offered \
                 only then: {} of waiting in all, {} at most",
                duration(waits.total_ms * 1e6),
                duration(longest * 1e6)
            ),
        );
    }
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
    if verbose {
        row(page, "prompt tokens", report.tokens.prompt_tokens.as_ref());
        row(page, "completion tokens", report.tokens.completion_tokens.as_ref());
    }
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
        if let Some(words) = length_hint(report) {
            page.entry("", words);
        }
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
