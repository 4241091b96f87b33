//! A report and a comparison as Markdown, for pull requests and issues.
//!
//! Short: the verdict, the figures that people ask for, fidelity, gates; whoever wants all has the
//! page or the JSON. Names and messages come from traces and servers: they stand in code spans,
//! where nothing is markup, a mention or a link, and no line or table ends early.

use std::fmt::{self, Write as _};
use std::io::{self, Write};

use crate::counted::{counted, grouped};
use crate::foreign;
use crate::metrics::Statistic;
use crate::metrics::compare::{Against, CAUTION, Compared, Comparison, Side, without_interval};
use crate::metrics::fidelity;
use crate::metrics::gate::{Judged, number, percent};
use crate::metrics::hosts;
use crate::metrics::report::Report;
use crate::metrics::server;
use crate::metrics::stopped;

/// Writes a report, its gates included.
///
/// # Errors
/// If writing fails.
pub fn report(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    put(out, |text| {
        verdict(text, report)?;
        gates(text, &report.gates, false)?;
        figures(text, report)?;
        load(text, report)?;
        of_fidelity(text, report)?;
        of_hosts(text, report)?;
        of_servers(text, report)?;
        notes(text, report)
    })
}

/// Writes a comparison, its gates included; with `verbose` every figure.
///
/// # Errors
/// If writing fails.
pub fn comparison(comparison: &Comparison, verbose: bool, out: &mut dyn Write) -> io::Result<()> {
    put(out, |text| {
        writeln!(text, "### Comparison\n")?;
        side(text, "Base", &comparison.base)?;
        gates(text, &comparison.gates, true)?;
        for against in &comparison.runs {
            text.push('\n');
            side(text, "New", &against.run)?;
            of_run(text, against, verbose)?;
        }
        writeln!(text, "\n<sub>{CAUTION}</sub>")
    })
}

fn put(out: &mut dyn Write, write: impl FnOnce(&mut String) -> fmt::Result) -> io::Result<()> {
    let mut text = String::new();
    write(&mut text).map_err(|fmt::Error| io::Error::other("the page has no text"))?;
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn verdict(text: &mut String, report: &Report) -> fmt::Result {
    let schedule = &report.schedule;
    let (mark, word) = if report.verdict.schedule_held {
        ("\u{2705}", "Schedule held")
    } else {
        ("\u{274c}", "Schedule **not** held: these are not the numbers of the schedule")
    };
    let left_out = report.verdict.left_out.words(report.verdict.schedule_held);
    let sent = grouped(schedule.sent);
    let late = schedule.lateness_outside_stalls_us.map_or_else(String::new, |late| {
        let limit = grouped(report.notes.max_lateness_us);
        format!(", p99 lateness {} µs outside host stalls (limit {limit})", number(late.p99))
    });
    let of = match report.users {
        Some(_) => counted(schedule.sent, "request"),
        None => format!("{sent} of {}", counted(schedule.planned, "request")),
    };
    writeln!(text, "### {mark} {word}{left_out}\n\n{of} sent{late}.\n")?;
    for reason in &report.verdict.reasons {
        writeln!(text, "- {}", Code(reason))?;
    }
    if !report.verdict.reasons.is_empty() {
        text.push('\n');
    }
    let run = &report.run;
    let duration = run.duration_s.map_or_else(String::new, |s| format!(", {} s", number(s)));
    let stopped = stopped::by_whom(report).map_or_else(String::new, |how| format!(", {how}"));
    let torn = if run.torn { ", the log is torn" } else { "" };
    writeln!(
        text,
        "Run {} of trace {} ({}), {} from {}{duration}{stopped}{torn}\n",
        Code(&run.id),
        Code(&run.trace.name),
        Code(&run.trace.format),
        Code(&run.mode),
        Code(&run.host.hostname)
    )
}

fn figures(text: &mut String, report: &Report) -> fmt::Result {
    writeln!(text, "| | count | mean | p50 | p90 | p95 | p99 | max |")?;
    writeln!(text, "|---|--:|--:|--:|--:|--:|--:|--:|")?;
    let latency = &report.latency;
    let rows = [
        ("TTFT, ms", latency.ttft_ms),
        ("ITL, ms", latency.itl_ms),
        ("end to end, ms", latency.e2e_ms),
        ("end to end from due, ms", latency.e2e_from_due_ms),
        ("tokens/s per user", report.throughput.output_tokens_per_s_per_user),
        ("lateness, µs", report.schedule.lateness_us),
    ];
    for (name, statistic) in rows {
        statistic_row(text, name, statistic)?;
    }
    text.push('\n');
    Ok(())
}

fn statistic_row(text: &mut String, name: &str, statistic: Option<Statistic>) -> fmt::Result {
    let Some(s) = statistic else {
        return writeln!(text, "| {name} | 0 | no data | | | | | |");
    };
    write!(text, "| {name} | {} |", grouped(s.count))?;
    for value in [s.mean, s.p50, s.p90, s.p95, s.p99, s.max] {
        write!(text, " {} |", number(value))?;
    }
    text.push('\n');
    Ok(())
}

fn load(text: &mut String, report: &Report) -> fmt::Result {
    let none = || "no data".to_owned();
    let rate = |value: Option<f64>| value.map_or_else(none, |rate| format!("{}/s", number(rate)));
    let share = |value: Option<f64>| value.map_or_else(none, percent);
    let (outcomes, rates, cache) = (&report.outcomes, &report.throughput, &report.cache);
    let failed = format!("{} ({})", grouped(outcomes.failed()), share(outcomes.error_rate));
    let mut rows = vec![
        ("succeeded", grouped(outcomes.ok)),
        ("failed", failed),
        ("cancelled, never sent", {
            format!("{}, {}", grouped(outcomes.cancelled), grouped(outcomes.never_sent))
        }),
        ("requests offered, achieved", {
            let schedule = &report.schedule;
            format!("{}, {}", rate(schedule.offered_rps), rate(schedule.achieved_rps))
        }),
        ("requests succeeded", rate(rates.requests_per_s)),
        ("input tokens", rate(rates.input_tokens_per_s)),
        ("output tokens", rate(rates.output_tokens_per_s)),
        ("most in flight", rates.peak_in_flight.map_or_else(none, grouped)),
        ("cache hits, ideal", {
            let of_all = |hits| format!("{} of the input that was sent", percent(hits));
            cache.ideal_hit_rate.map_or_else(none, of_all)
        }),
        ("cache hits, reported", {
            let answers = counted(cache.requests_reporting, "answer");
            cache
                .reported_hit_rate
                .map_or_else(none, |hits| format!("{} of the input of {answers}", percent(hits)))
        }),
    ];
    let unknown = report.notes.open + report.notes.not_reached + report.notes.lost;
    if unknown > 0 {
        rows.insert(3, ("end not in the log", grouped(unknown)));
    }
    if !report.slo.goals.is_empty() {
        let goals: Vec<_> =
            report.slo.goals.iter().map(|(name, limit)| format!("{name} {limit}")).collect();
        rows.push(("goals", goals.join(", ")));
        rows.push(("goodput", {
            format!("{} ({})", rate(report.slo.goodput_rps), share(report.slo.goodput_share))
        }));
    }
    writeln!(text, "| | |\n|---|--:|")?;
    rows.iter().try_for_each(|(name, value)| writeln!(text, "| {name} | {value} |"))?;
    for (class, words) in &report.notes.first_errors {
        writeln!(text, "| first `{class}` | {} |", Code(words))?;
    }
    text.push('\n');
    Ok(())
}

fn of_fidelity(text: &mut String, report: &Report) -> fmt::Result {
    writeln!(text, "| fidelity | error | recorded | replayed | |\n|---|--:|---|---|---|")?;
    for row in fidelity::rows(&report.fidelity) {
        let fidelity::Row { name, error, recorded, replayed, meaning } = row;
        writeln!(text, "| {name} | {error} | {recorded} | {replayed} | {meaning} |")?;
    }
    Ok(())
}

/// Lateness by machine, where there are several.
fn of_hosts(text: &mut String, report: &Report) -> fmt::Result {
    if report.hosts.is_empty() {
        return Ok(());
    }
    let heads = "| host | shard | sent | late p50, \u{b5}s | p99 | max | host stalls | clock |";
    writeln!(text, "\n{heads}\n|---|--:|--:|--:|--:|--:|--:|---|")?;
    hosts::rows(&report.hosts).iter().try_for_each(|row| {
        let [host, numbers @ ..] = row;
        writeln!(text, "| {} | {} |", Code(host), numbers.join(" | "))
    })
}

/// What servers said of themselves, where they were asked.
fn of_servers(text: &mut String, report: &Report) -> fmt::Result {
    let Some(servers) = report.servers.as_deref().filter(|servers| !servers.is_empty()) else {
        return Ok(());
    };
    let rule = "--:|".repeat(server::HEADS.len() - 2);
    writeln!(text, "\n| {} |\n|---|{rule}---|", server::HEADS.join(" | "))?;
    server::rows(servers).iter().try_for_each(|row| {
        let [source, numbers @ .., failure] = row;
        let failure = if failure.is_empty() { String::new() } else { Code(failure).to_string() };
        writeln!(text, "| {} | {} | {failure} |", Code(source), numbers.join(" | "))
    })
}

fn notes(text: &mut String, report: &Report) -> fmt::Result {
    if !report.notes.warnings.is_empty() {
        text.push('\n');
    }
    warnings(text, &report.notes.warnings)
}

fn warnings(text: &mut String, warnings: &[String]) -> fmt::Result {
    warnings.iter().try_for_each(|words| writeln!(text, "- \u{26a0}\u{fe0f} {}", Code(words)))
}

fn gates(text: &mut String, judged: &[Judged], with_run: bool) -> fmt::Result {
    if judged.is_empty() {
        return Ok(());
    }
    let run = if with_run { " run |" } else { "" };
    let rule = if with_run { "---|" } else { "" };
    writeln!(text, "\n| gate |{run} | |\n|---|{rule}---|---|")?;
    for one in judged {
        let mark = if one.failed { "\u{274c} fail" } else { "\u{2705} pass" };
        let run = if with_run { format!(" {} |", Code(&one.run)) } else { String::new() };
        writeln!(text, "| {} |{run} {mark} | {} |", Code(&one.gate), Code(&one.words))?;
    }
    text.push('\n');
    Ok(())
}

fn side(text: &mut String, what: &str, side: &Side) -> fmt::Result {
    let stopped = if side.interrupted { ", \u{274c} **stopped** before its end" } else { "" };
    let held = match side.schedule_held {
        true => "schedule held",
        false => "\u{274c} schedule **not** held",
    };
    writeln!(
        text,
        "{what}: {}, run {} of trace {}, {} sent, {} ok, {held}{}{stopped}",
        Code(&side.name),
        Code(&side.id),
        Code(&side.trace),
        grouped(side.sent),
        grouped(side.ok),
        side.left_out.words(side.schedule_held)
    )?;
    side.reasons.iter().try_for_each(|reason| writeln!(text, "- {}", Code(reason)))?;
    warnings(text, &side.warnings)
}

fn of_run(text: &mut String, against: &Against, verbose: bool) -> fmt::Result {
    let how = if against.pairing.paired { "paired by request" } else { "**not** paired" };
    writeln!(text, "\nRequests are {how}: {}.\n", Code(&against.pairing.why))?;
    writeln!(text, "| | base | new | change | ratio | 95 % interval of change | |")?;
    writeln!(text, "|---|--:|--:|--:|--:|--:|---|")?;
    for row in against.figures.iter().filter(|row| verbose || row.is_main) {
        figure(text, row)?;
    }
    let rows = against.figures.iter().filter(|row| verbose || row.is_main);
    for (labels, why) in without_interval(rows) {
        writeln!(text, "\n<sub>No interval of {labels}: {why}.</sub>")?;
    }
    if against.setup.is_empty() {
        return Ok(());
    }
    writeln!(text, "\n| run differently | base | new |\n|---|---|---|")?;
    for one in &against.setup {
        let [what, base, new] = [&one.what, &one.base, &one.new].map(|words| Code(words));
        writeln!(text, "| {what} | {base} | {new} |")?;
    }
    Ok(())
}

fn figure(text: &mut String, row: &Compared) -> fmt::Result {
    let none = || "no data".to_owned();
    let value = |value: Option<f64>| value.map_or_else(none, |value| row.shown(value));
    let change = row.difference.map_or_else(none, |by| row.change(by));
    let ratio = row.ratio.map_or_else(String::new, |ratio| format!("{ratio:.3}"));
    let interval = row.interval().unwrap_or_default();
    let (base, new) = (value(row.base), value(row.new));
    let verdict = row.verdict.word(row.difference_interval);
    let bold = if verdict == "worse" { "**" } else { "" };
    let label = row.label.replace(", us", ", µs");
    writeln!(
        text,
        "| {label} | {base} | {new} | {change} | {ratio} | {interval} | {bold}{verdict}{bold} |"
    )
}

/// Foreign words as a code span: nothing in it is markup.
struct Code<'a>(&'a str);

impl fmt::Display for Code<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = foreign::shown(self.0);
        if words.trim().is_empty() {
            return Ok(());
        }
        // A fence longer than any inside; a bar ends a cell even here, unless it is escaped.
        let runs = words.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat(runs + 1);
        let gap = if runs > 0 { " " } else { "" };
        write!(out, "{fence}{gap}{}{gap}{fence}", words.replace('|', "\\|"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::sample::{self, Sample};
    use crate::metrics::gate::{Gate, Judging, judge};
    use crate::metrics::hosts::HostReport;
    use crate::metrics::slo::Goals;
    use crate::metrics::{ReportOptions, compare};
    use crate::run::Run;

    fn read(sample: &Sample) -> (Run, Report) {
        let run = Run::read(&sample.bytes()).expect("a log");
        let slo = Some(Goals::parse("ttft:100").expect("a goal"));
        let report =
            crate::metrics::report(&run, &ReportOptions { slo, ..ReportOptions::default() });
        (run, report)
    }

    fn page(sample: &Sample) -> String {
        let (_, mut numbers) = read(sample);
        let gates = [Gate::parse("ttft_ms.p99 > 1").expect("a gate")];
        numbers.gates = judge(&gates, Judging { name: "x", report: &numbers }, None, false);
        let mut out = Vec::new();
        report(&numbers, &mut out).expect("memory takes everything");
        String::from_utf8(out).expect("text")
    }

    fn compared(base: &Sample, new: &Sample) -> String {
        let (base, new) = (read(base), read(new));
        let subject = |run, report| compare::Subject { name: "x.beat", run, report };
        let goals = Goals::default();
        let found = compare::compare(subject(&base.0, &base.1), &[subject(&new.0, &new.1)], &goals);
        let mut out = Vec::new();
        comparison(&found, false, &mut out).expect("memory takes everything");
        String::from_utf8(out).expect("text")
    }

    /// Whether every table has as many cells in each row as in its rule.
    fn check_tables(text: &str) {
        let cells = |line: &str| line.replace("\\|", "").matches('|').count();
        let lines: Vec<&str> = text.lines().collect();
        for table in lines.chunk_by(|a, b| a.starts_with('|') && b.starts_with('|')) {
            let widths: Vec<usize> = table.iter().map(|line| cells(line)).collect();
            let is_table = table[0].starts_with('|');
            assert!(!is_table || widths.iter().all(|&w| w == widths[0]), "{table:#?}");
        }
    }

    #[test]
    fn a_report_has_its_verdict_figures_gates_and_fidelity() {
        let text = page(&sample::sample(3, 200));
        assert!(text.starts_with("### \u{2705} Schedule held"), "{text}");
        for part in ["| TTFT, ms | ", "| arrival | ", "\u{274c} fail", "| goodput | ", "| cache | "]
        {
            assert!(text.contains(part), "{part} in {text}");
        }
        check_tables(&text);
        let answers = read(&sample::sample(3, 200)).1.cache.requests_reporting;
        let of = format!(" of the input of {answers} answers |");
        let reported = text.lines().find(|line| line.starts_with("| cache hits, reported | "));
        assert!((1..200).contains(&answers) && reported.expect("a row").ends_with(&of), "{text}");
        let empty = page(&Sample::new());
        assert!(
            empty.starts_with("### \u{274c} Schedule **not** held") && empty.contains("no data")
        );
        check_tables(&empty);
    }

    #[test]
    fn machines_are_a_table_where_there_are_several() {
        let (_, mut numbers) = read(&sample::sample(3, 20));
        let written = |numbers: &Report| {
            let mut out = Vec::new();
            report(numbers, &mut out).expect("memory takes everything");
            String::from_utf8(out).expect("text")
        };
        assert!(!written(&numbers).contains("| host |"));
        numbers.hosts = ["h0", "a|b*c*"].map(HostReport::named).into();
        let text = written(&numbers);
        assert!(text.contains("| `a\\|b*c*` | 1 | 2 | no data |"), "{text}");
        assert!(text.contains("| 0 | not synchronised |"), "{text}");
        check_tables(&text);
    }

    #[test]
    fn servers_that_were_asked_are_a_table() {
        let text = page(&sample::scraped(3));
        let line = text.lines().find(|line| line.contains("| 9 | 1 |")).expect("a row");
        assert!(line.contains("| 75.0 % | 4,000 | 0 | 0 | `no answer within 1.0 s` |"), "{line}");
        check_tables(&text);
        assert!(!page(&sample::sample(3, 20)).contains("| server |"));
    }

    #[test]
    fn a_comparison_is_tables_too() {
        let text = compared(&sample::sample(3, 200), &sample::sample(4, 100));
        assert!(text.contains("**not** paired") && text.contains("| TTFT, ms p99 | "), "{text}");
        check_tables(&text);
    }

    #[test]
    fn hostile_names_are_words_in_a_code_span() {
        let hostile = "a|b`` <img src=x> [x](http://x) @somebody\n# head ![y](z) \u{202e}";
        let mut sample = sample::sample(3, 40);
        sample.manifest.run_id = hostile.to_owned();
        sample.manifest.trace.name = hostile.to_owned();
        sample.manifest.trace.format = hostile.to_owned();
        sample.manifest.mode = hostile.to_owned();
        sample.manifest.host.hostname = hostile.to_owned();
        sample.manifest.model = hostile.to_owned();
        sample.given_up = Some(hostile.to_owned());
        for text in [page(&sample), compared(&sample, &sample::sample(3, 40))] {
            check_tables(&text);
            assert!(!text.contains('\u{202e}') && !text.contains("\n# head"), "{text}");
            // Every occurrence lies between fences of three.
            for (at, _) in text.match_indices("<img") {
                let before = &text[..at];
                assert!(before.matches("```").count() % 2 == 1, "{before}");
            }
        }
    }
}
