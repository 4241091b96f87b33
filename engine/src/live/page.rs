//! Our numbers in Prometheus' text format, version 0.0.4.
//!
//! Counters end in `_total`, times are in seconds, and every label is known beforehand, so that no
//! answer of a server makes a series. Each metric has its help and type. What is not known yet has
//! no line.

use std::fmt::Write as _;

use onbeat_shared::foreign::printable;

use super::figures::Moment;
use super::histogram::Histogram;

/// What the page is, for `Content-Type`.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The page of a moment.
pub(super) fn page(moment: &Moment) -> String {
    let mut page = Page(String::with_capacity(16 << 10));
    page.run(moment);
    page.requests(moment);
    page.tokens(moment);
    page.client(moment);
    let sums = &moment.sums;
    for (name, help, histogram) in [
        (
            "onbeat_time_to_first_token_seconds",
            "First token - sent, of successful requests.",
            &sums.ttft,
        ),
        (
            "onbeat_inter_token_latency_seconds",
            "(Last token - first token) / (completion tokens - 1), of successful requests.",
            &sums.token_gap,
        ),
        (
            "onbeat_request_latency_seconds",
            "Last token (end of an answer without content events) - sent, of successful requests.",
            &sums.latency,
        ),
        (
            "onbeat_send_lateness_seconds",
            "Sent - max(due, ready), of requests that left.",
            &sums.lateness,
        ),
    ] {
        page.histogram(name, help, histogram);
    }
    page.0
}

struct Page(String);

impl Page {
    fn run(&mut self, moment: &Moment) {
        let about = &moment.about;
        self.head("onbeat_run_info", "gauge", "What runs; always 1.");
        let labels = [
            ("run_id", about.run_id.as_str()),
            ("trace", &about.trace),
            ("mode", &about.mode),
            ("model", &about.model),
            ("version", env!("CARGO_PKG_VERSION")),
        ];
        let labels = labels.map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
        self.line("onbeat_run_info", &labels.join(","), 1);
        if let Some(seconds) = moment.elapsed_s {
            self.one("onbeat_run_seconds", "gauge", "Time since the schedule's zero.", seconds);
        }
        let finished = u8::from(moment.finished);
        let help = "1 once the run is over and its numbers are final.";
        self.one("onbeat_run_finished", "gauge", help, finished);
    }

    fn requests(&mut self, moment: &Moment) {
        if let Some(planned) = moment.about.planned {
            self.one("onbeat_requests_planned", "gauge", "Requests that the plan has.", planned);
        }
        let help = "Requests whose time in the plan has come; those without one, once they left.";
        self.one("onbeat_requests_due_total", "counter", help, moment.due);
        let help = "Requests whose first byte was written.";
        self.one("onbeat_requests_sent_total", "counter", help, moment.sums.sent);
        let help = "Requests that left and have not ended.";
        self.one("onbeat_requests_in_flight", "gauge", help, moment.in_flight);
        let name = "onbeat_requests_done_total";
        self.head(name, "counter", "Requests that ended or will never leave, by how and why.");
        for &(class, count) in &moment.sums.done {
            let outcome = class.outcome().name();
            let labels = format!("outcome=\"{outcome}\",class=\"{}\"", class.name());
            self.line(name, &labels, count);
        }
    }

    fn tokens(&mut self, moment: &Moment) {
        let sums = &moment.sums;
        for (name, help, value) in [
            (
                "onbeat_prompt_tokens_total",
                "Prompt tokens of successful requests: the server's count, else as recorded.",
                sums.prompt_tokens,
            ),
            (
                "onbeat_completion_tokens_total",
                "Completion tokens of successful requests: the server's count, else as counted.",
                sums.completion_tokens,
            ),
            (
                "onbeat_cached_tokens_total",
                "Cached prompt tokens of successful requests, as reported.",
                sums.cached_tokens,
            ),
            (
                "onbeat_reasoning_tokens_total",
                "Reasoning tokens of successful requests, as reported.",
                sums.reasoning_tokens,
            ),
            (
                "onbeat_content_events_total",
                "Content events of all answers, as they arrive.",
                sums.content_events,
            ),
            (
                "onbeat_sent_bytes_total",
                "Bytes of requests that the kernel accepted, heads included.",
                sums.sent_bytes,
            ),
            (
                "onbeat_received_bytes_total",
                "Bytes of answers that ended, heads included.",
                sums.received_bytes,
            ),
        ] {
            self.one(name, "counter", help, value);
        }
    }

    fn client(&mut self, moment: &Moment) {
        let sums = &moment.sums;
        let help = "Connections that were opened.";
        self.one("onbeat_connections_opened_total", "counter", help, sums.connections);
        let help = "Jumps of a sending core's clock.";
        self.one("onbeat_host_stalls_total", "counter", help, sums.stalls);
        let help = "Their length, over all cores.";
        let seconds = sums.stalled_ns as f64 / 1e9;
        self.one("onbeat_host_stall_seconds_total", "counter", help, seconds);
        let help = "Records of the log that found no room.";
        self.one("onbeat_lost_records_total", "counter", help, sums.lost_records);
    }

    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.head(name, "histogram", help);
        for (bound, count) in histogram.at_most() {
            self.line(&format!("{name}_bucket"), &format!("le=\"{bound}\""), count);
        }
        self.line(&format!("{name}_sum"), "", histogram.sum_s());
        self.line(&format!("{name}_count"), "", histogram.count());
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl std::fmt::Display) {
        self.head(name, kind, help);
        self.line(name, "", value);
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let help = help.replace('\\', r"\\").replace('\n', r"\n");
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn line(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }
}

/// A label's value with what would end it, or a terminal obey, escaped.
fn escaped(value: &str) -> String {
    printable(value).replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::exposition::{self, Sample};
    use super::super::figures::Figures;
    use super::*;

    #[test]
    fn every_metric_has_help_and_type_once_and_hostile_labels_stay_labels() {
        let model = "a\"b\\c\nonbeat_requests_sent_total 99\u{1b}[2J\u{9b}1m";
        let figures = Figures::named(["run", "t.jsonl", "open", model]);
        let page = page(&figures.moment());
        let mut types = BTreeMap::new();
        for line in page.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').expect("a kind");
                assert_eq!(types.insert(name.to_owned(), kind.to_owned()), None, "{name} twice");
                assert!(page.contains(&format!("# HELP {name} ")), "{name} has no help");
            }
        }
        let samples: Vec<Sample<'_>> = exposition::samples(&page).collect();
        assert!(samples.len() > 100);
        for sample in &samples {
            let family = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|end| sample.name.strip_suffix(end).filter(|it| types.contains_key(*it)));
            let family = family.unwrap_or(sample.name);
            assert!(types.contains_key(family), "{} has no type", sample.name);
            let counter = types[family] == "counter";
            assert_eq!(counter, sample.name.ends_with("_total"), "{}", sample.name);
        }
        let sent: Vec<_> =
            samples.iter().filter(|it| it.name == "onbeat_requests_sent_total").collect();
        assert_eq!(sent.len(), 1, "{page}");
        let label = r#"model="a\"b\\c\nonbeat_requests_sent_total 99\\u{1b}[2J\\u{9b}1m""#;
        assert!(page.contains(label), "{page}");
        assert!(!page.contains("onbeat_run_seconds"), "it has not begun");
    }
}
