//! A report as text that a person reads in ten seconds: the verdict first, then what it rests on.
//!
//! Pure: a [`Report`] in, lines out, at most [`WIDTH`] columns of ASCII, no colour. Units are in the
//! labels; what is not known is said in words, never shown as zero. Formulas come with `verbose`.
//! Nothing is computed here beyond shares of counts.

use std::io::{self, Write};

use jiff::Timestamp;
use onbeat_shared::log::Outcome;
use onbeat_shared::metrics::report::{Outcomes, Report};
use onbeat_shared::metrics::{Metric, Statistic};

/// No line is longer.
pub const WIDTH: usize = 100;
/// Where the text of a line begins, after its label.
const INDENT: usize = 13;

/// Writes the summary of a run.
///
/// # Errors
/// If writing fails.
pub fn write(out: &mut dyn Write, report: &Report, verbose: bool) -> io::Result<()> {
    let mut page = Page::default();
    heading(&mut page, report);
    verdict(&mut page, report);
    page.blank();
    outcomes(&mut page, report);
    sending(&mut page, report);
    page.blank();
    table(&mut page, report, verbose);
    page.blank();
    throughput(&mut page, report);
    tokens(&mut page, report);
    cache(&mut page, report);
    goodput(&mut page, report);
    for words in &report.notes.warnings {
        page.entry("Warning", words);
    }
    if verbose {
        formulas(&mut page);
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
}

fn verdict(page: &mut Page, report: &Report) {
    let schedule = &report.schedule;
    let sent = format!("{} of {} requests sent", group(schedule.sent), group(schedule.planned));
    let late = schedule.lateness_outside_stalls_us.map_or_else(
        || "no lateness to judge".to_owned(),
        |late| {
            format!(
                "p99 lateness {} us outside host stalls (limit {})",
                number(late.p99),
                group(report.notes.max_lateness_us)
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
    let failed = failed(outcomes);
    let ended = outcomes.ok + failed;
    if failed > 0 {
        let share = percent(failed, ended);
        parts.push(format!("{} failed ({share} of those that ended)", group(failed)));
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
    let mut classes: Vec<_> = outcomes.by_class.iter().filter(|(name, _)| *name != "ok").collect();
    classes.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
    let classes: Vec<_> =
        classes.iter().map(|(name, count)| format!("{name} {}", group(**count))).collect();
    if !classes.is_empty() {
        page.entry("", &classes.join(", "));
    }
}

/// Requests that ended by themselves without success.
fn failed(outcomes: &Outcomes) -> u64 {
    Outcome::ALL
        .into_iter()
        .filter(|outcome| !matches!(outcome, Outcome::Ok | Outcome::Cancelled | Outcome::NeverSent))
        .map(|outcome| outcomes.count(outcome))
        .sum()
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
            "Every answer came whole, not streamed: TTFT equals e2e, and there is no ITL.",
        );
    }
}

/// What the 99th percentiles were if failures had taken forever, where there are any.
fn adjusted(page: &mut Page, report: &Report) {
    if failed(&report.outcomes) == 0 {
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
    let tokens = |rate: Option<f64>, what: &str| {
        rate.map_or_else(|| format!("{what} no data"), |rate| format!("{what} {}", number(rate)))
    };
    page.entry(
        "Throughput",
        &format!(
            "{} requests/s; tokens/s: {}, {}, {}, {}",
            number(requests),
            tokens(rates.input_tokens_per_s, "input"),
            tokens(rates.output_tokens_per_s, "output"),
            tokens(rates.total_tokens_per_s, "total"),
            tokens(rates.peak_output_tokens_per_s, "peak output in one second"),
        ),
    );
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
            n => format!("{} of another length", plural(n, "answer")),
        };
        page.entry("", &format!("planned output {}: {differ}", group(planned)));
    }
}

fn cache(page: &mut Page, report: &Report) {
    let cache = &report.cache;
    let share = |rate: f64| format!("{:.1} %", rate * 100.0);
    let ideal = cache.ideal_hit_rate.map_or_else(
        || "ideal hit rate unknown (the trace has no block ids)".to_owned(),
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
    let (Some(good), Some(rate)) = (slo.goodput_requests, slo.goodput_rps) else {
        page.entry("Goodput", "no data");
        return;
    };
    page.entry(
        "Goodput",
        &format!(
            "{} meet every goal ({} of all that ended, failures included), {} requests/s; with the \
             wait for sending {}",
            plural(good, "request"),
            share(slo.goodput_share),
            number(rate),
            share(slo.effective_goodput_share)
        ),
    );
    for (name, limit) in &slo.goals {
        let met = &slo.met[name];
        let sign = if name.ends_with("_ms") { "<=" } else { ">=" };
        page.entry(
            "",
            &format!("{name} {sign} {limit}: {} ({})", group(met.count), share(met.share)),
        );
    }
}

fn formulas(page: &mut Page) {
    page.blank();
    page.line("Formulas (sent: right before the write of the first byte; times are monotonic)");
    let mut formula = |name: &str, words: &str| page.line(&format!("  {name:<20} {words}"));
    formula("lateness", "sent - max(due, ready)");
    for metric in Metric::ALL {
        formula(metric.label(), metric.formula());
    }
    formula("ICL", "gaps between successive content events, pooled");
    formula("connect", "connection open - connect started");
    formula("tokens/s per user", "1 / ITL");
    formula("offered", "requests that could leave / (last - first instant to leave)");
    formula("achieved", "of these, requests that left within the limit / the same window");
    formula("ideal hit rate", "longest prefix of blocks already sent / input tokens");
    formula("reported hit rate", "cached tokens / prompt tokens, answers that report both");
    formula("goodput", "successful requests that meet every goal / duration");
}

/// Lines of text with labels at the left.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn blank(&mut self) {
        self.text.push('\n');
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// A label and words, wrapped behind it.
    fn entry(&mut self, label: &str, words: &str) {
        self.wrapped(&format!("{label:<INDENT$}"), words);
    }

    fn paragraph(&mut self, words: &str) {
        self.wrapped("", words);
    }

    fn wrapped(&mut self, first: &str, words: &str) {
        let indent = first.len();
        let mut line = first.to_owned();
        for word in words.split_whitespace() {
            let word = ascii(word);
            if line.len() > indent && line.len() + 1 + word.len() > WIDTH {
                self.line(&line);
                line = " ".repeat(indent);
            }
            if line.len() > indent {
                line.push(' ');
            }
            line.push_str(&word);
        }
        self.line(&line);
    }
}

/// A word that any terminal shows: names come from files and may hold anything.
fn ascii(word: &str) -> String {
    word.chars().map(|c| if c.is_ascii_graphic() { c } else { '?' }).collect()
}

/// A count with its thousands apart.
fn group(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number with at least three digits and no more than it needs.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 1_000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    if decimals > 0 {
        return text;
    }
    let digits = text.trim_start_matches('-');
    let sign = &text[..text.len() - digits.len()];
    match digits.parse() {
        Ok(count) => format!("{sign}{}", group(count)),
        Err(_) => text,
    }
}

fn percent(part: u64, whole: u64) -> String {
    // Tenths of a per cent, rounded half up, in integers.
    let tenths = (u128::from(part) * 2_000 + u128::from(whole)) / (2 * u128::from(whole).max(1));
    format!("{}.{} %", tenths / 10, tenths % 10)
}

fn plural(count: u64, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{} {stem}ies", group(count)),
        (_, None) => format!("{} {noun}s", group(count)),
    }
}
