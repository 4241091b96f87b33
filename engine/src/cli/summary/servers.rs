//! What servers said of themselves, in the summary of a run that asked them: a line for each.

use onbeat_shared::counted::agreeing;
use onbeat_shared::foreign::printable;
use onbeat_shared::metrics::report::Report;
use onbeat_shared::metrics::server::{Level, ServerReport};

use super::page::{Page, group, number, plural};

/// Shows each server that was asked, and says how often it did not answer.
pub(super) fn servers(page: &mut Page, report: &Report) {
    let mut label = "Server";
    for server in report.servers.iter().flatten() {
        let mut words = vec![ascii(&server.source)];
        words.extend(levels(server));
        words.extend(gaps(server));
        page.entry(label, &words.join("; "));
        label = "";
    }
}

fn levels(server: &ServerReport) -> Vec<String> {
    let plain = |level: &Level, name: &str| {
        format!("{name} {} on average, {} at most", number(level.mean), number(level.max))
    };
    let share = |value: f64| format!("{:.1} %", value * 100.0);
    let tokens = |tokens: f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let tokens = tokens.round() as u64;
        format!("{} tokens generated", group(tokens))
    };
    let found = [
        server.running.as_ref().map(|level| plain(level, "running")),
        server.waiting.as_ref().map(|level| plain(level, "waiting")),
        server.cache_usage.map(|level| {
            format!("cache {} full on average, {} at most", share(level.mean), share(level.max))
        }),
        server.prefix_hit_rate.map(|rate| format!("prefix hits {}", share(rate))),
        server.generated_tokens.map(tokens),
    ];
    let found: Vec<String> = found.into_iter().flatten().collect();
    if found.is_empty() { vec!["it said nothing of its queue or cache".to_owned()] } else { found }
}

/// What is missing.
fn gaps(server: &ServerReport) -> Vec<String> {
    let failed = (server.failed > 0).then(|| {
        let first = server
            .first_failure
            .as_deref()
            .map_or_else(String::new, |words| format!(", the first: {}", ascii(words)));
        let asked = plural(server.asked, "asking");
        format!("{} of {asked} failed and left gaps{first}", group(server.failed))
    });
    let left_out = server.left_out_series;
    let left_out = (left_out > 0).then(|| format!("{} series not recorded", group(left_out)));
    let impossible = server.impossible_values;
    let impossible = (impossible > 0).then(|| {
        format!(
            "WARNING: {} could not be (no number, below zero, a share above one) and {} missing",
            plural(impossible, "value"),
            agreeing(impossible, "is", "are")
        )
    });
    failed.into_iter().chain(left_out).chain(impossible).collect()
}

/// Foreign words as the summary may have them.
fn ascii(words: &str) -> String {
    printable(words).chars().map(|letter| if letter.is_ascii() { letter } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use onbeat_shared::log::sample;
    use onbeat_shared::metrics::{ReportOptions, report};
    use onbeat_shared::run::Run;

    use super::*;

    #[test]
    fn a_server_has_its_levels_and_its_gaps() {
        let run = Run::read(&sample::scraped(3).bytes()).expect("a log");
        let mut page = Page::default();
        servers(&mut page, &report(&run, &ReportOptions::default()));
        let words = page.text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.starts_with("Server http://127.0.0.1:8000/metrics; running "), "{words}");
        assert!(words.contains("; prefix hits 75.0 %; 4,000 tokens generated; "), "{words}");
        let gap = "1 of 9 askings failed and left gaps, the first: no answer within 1.0 s";
        assert!(words.contains(gap), "{words}");
        assert!(!words.contains("WARNING"), "{words}");
        let run = Run::read(&sample::log(3, 4)).expect("a log");
        let mut page = Page::default();
        servers(&mut page, &report(&run, &ReportOptions::default()));
        assert!(page.text.is_empty(), "nobody was asked");
    }

    #[test]
    fn values_that_could_not_be_are_a_warning() {
        let run = Run::read(&sample::scraped(3).bytes()).expect("a log");
        let mut report = report(&run, &ReportOptions::default());
        for server in report.servers.iter_mut().flatten() {
            server.impossible_values = 2;
        }
        let mut page = Page::default();
        servers(&mut page, &report);
        let words = page.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let told = "; WARNING: 2 values could not be (no number, below zero, a share above one) \
                    and are missing";
        assert!(words.contains(told), "{words}");
    }
}
