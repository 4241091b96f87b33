//! A run as one page for a browser: its facts, its numbers, its charts, with nothing to fetch.
//!
//! A user-driven run has the four dashboards of kv-cache-tester's Trace Replay Tester over its
//! assessment periods; any other run has those that make sense without users, over slices of its
//! time. Charts are SVG that is drawn here; a small script of ours adds what a pointer shows, zoom
//! and dark colours. Numbers are the report's, and what has no data is a gap. Everything that came
//! from a trace or a server is escaped.

mod by_period;
mod by_slice;
mod chart;
mod facts;
mod lateness;
mod lives;
mod page;
mod scale;
mod series;
mod servers;
mod spread;
mod still;
mod timeline;
mod words;

use std::fmt;
use std::io::{self, Write};

use page::{Dashboard, Page};

use crate::metrics::report::Report;
use crate::metrics::selection::Selection;
use crate::metrics::throughput::Window;
use crate::run::Run;

/// One of kv-cache-tester's pages: a dashboard of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// TTFT, throughput and users.
    Performance,
    /// Cache hit rate and what users did.
    Cache,
    /// Each user's life.
    Users,
    /// Back-off, budgets, effective TTFT and goodput.
    Limits,
}

impl View {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Performance, Self::Cache, Self::Users, Self::Limits];

    /// The name of the tool's file.
    #[must_use]
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::Performance => "trace_replay_performance_over_time.html",
            Self::Cache => "trace_replay_cache_hit_over_time.html",
            Self::Users => "trace_replay_user_timeline.html",
            Self::Limits => "trace_replay_rate_limiting.html",
        }
    }

    const fn id(self) -> &'static str {
        match self {
            Self::Performance => "performance",
            Self::Cache => "cache",
            Self::Users => "users",
            Self::Limits => "limits",
        }
    }
}

/// The name of the page with all dashboards.
pub const INDEX_FILE: &str = "index.html";

/// The length of slices that suits a run without users, in nanoseconds: what a report must be asked
/// for so that its page has charts. `None` if nothing was sent, or for a run with users.
#[must_use]
pub fn slice_ns(run: &Run) -> Option<i64> {
    if run.users.is_some() {
        return None;
    }
    let Window { start, end } = Window::of(&Selection::new(run, None))?;
    Some(by_slice::slice_ns(end.0.saturating_sub(start.0)))
}

/// Writes the page of a run and its report, or only one dashboard of it.
///
/// # Errors
/// If writing fails.
pub fn write(
    run: &Run,
    report: &Report,
    only: Option<View>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut page = page(run, report);
    if let Some(view) = only {
        page.dashboards.retain(|dashboard| dashboard.id == view.id());
    }
    put(&page, out)
}

/// Writes the page of a run whose report is about a part of its requests only; `part` says in words
/// which. The page says so too, and that its charts, and what users did, are the whole run's.
///
/// # Errors
/// If writing fails.
pub fn write_part(run: &Run, report: &Report, part: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut page = page(run, report);
    let users = if run.users.is_some() { ", and what users did," } else { "" };
    let words = format!(
        "The numbers are of a part of the run: {part}. The charts{users} are of the whole run."
    );
    page.notes.insert(0, words);
    put(&page, out)
}

fn put(page: &Page, out: &mut dyn Write) -> io::Result<()> {
    let text = page.text().map_err(|fmt::Error| io::Error::other("the page has no text"))?;
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn page(run: &Run, report: &Report) -> Page {
    let (span, mut dashboards, numbers, slot): (_, Vec<Dashboard>, _, _) = match &run.users {
        Some(users) => {
            let periods = report.periods.as_deref().unwrap_or_default();
            let dashboards = by_period::dashboards(run, users, report, periods);
            (by_period::span(periods), dashboards, by_period::numbers(periods), "period")
        }
        None => {
            let slices = report.slices.as_deref().unwrap_or_default();
            let dashboards = by_slice::dashboards(run, report, slices);
            (by_slice::span(slices), dashboards, by_slice::numbers(slices), "slice")
        }
    };
    dashboards.extend(lateness::machines(report));
    Page {
        title: facts::title(run),
        lead: facts::lead(run, report),
        verdict: facts::verdict(report),
        gates: facts::gates(report),
        cards: facts::cards(run, report),
        notes: facts::notes(report),
        dashboards,
        span,
        slot,
        numbers: (!numbers.rows.is_empty()).then_some(numbers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::sample::{self, Sample};
    use crate::log::{Class, sample_users};
    use crate::metrics::hosts::HostReport;
    use crate::metrics::{ReportOptions, report};

    #[test]
    fn a_page_of_a_part_says_of_which() {
        let run = Run::read(&sample::log(3, 200)).expect("a log");
        let range = Some((crate::units::RunNanos(0), crate::units::RunNanos(1_000_000_000)));
        let options = ReportOptions { range, slice_ns: slice_ns(&run), ..ReportOptions::default() };
        let report = report(&run, &options);
        let mut out = Vec::new();
        write_part(&run, &report, "0 s to 1 s", &mut out).expect("memory takes everything");
        let text = String::from_utf8(out).expect("text");
        assert!(text.contains("are of a part of the run: 0 s to 1 s. The charts are of the whole"));
        assert!(!written(&run, None).contains("of a part of the run"));
    }

    fn written(run: &Run, only: Option<View>) -> String {
        let options = ReportOptions { slice_ns: slice_ns(run), ..ReportOptions::default() };
        let report = report(run, &options);
        let mut out = Vec::new();
        write(run, &report, only, &mut out).expect("memory takes everything");
        String::from_utf8(out).expect("text")
    }

    fn read(sample: &Sample) -> Run {
        Run::read(&sample.bytes()).expect("a log")
    }

    /// What the script of the page reads.
    fn data(page: &str) -> serde_json::Value {
        let start = page.find("id=\"data\">").expect("data") + "id=\"data\">".len();
        let end = start + page[start..].find("</script>").expect("its end");
        serde_json::from_str(&page[start..end]).expect("JSON")
    }

    #[test]
    fn users_have_the_four_dashboards() {
        let run = Run::read(&sample_users::log(1, 9)).expect("a log");
        let page = written(&run, None);
        for id in ["performance", "cache", "users", "limits", "lateness", "fidelity"] {
            assert!(page.contains(&format!("<section id=\"{id}\">")), "{id}");
        }
        let data = data(&page);
        let periods = data["slots"].as_array().expect("slots").len();
        assert_eq!(periods, 4, "the last one is partial");
        for chart in data["charts"].as_array().expect("charts") {
            for series in chart["series"].as_array().expect("series") {
                let values = series["values"].as_array().expect("values");
                assert_eq!(values.len(), periods, "{}", series["name"]);
            }
        }
        assert_eq!(data["timeline"]["row"].as_array().map(Vec::len), Some(run.requests.len()));
        let figures = ["class=\"chart", "class=\"still"].map(|class| page.matches(class).count());
        let stills = page.matches("class=\"stills\"").count();
        let captions = page.matches("<figcaption>").count();
        assert_eq!(figures.iter().sum::<usize>() - stills, captions);
    }

    #[test]
    fn what_the_plan_cancelled_was_not_cut_off() {
        let ended = |classes: &[Class]| {
            let mut sample = Sample::new();
            for (k, &class) in (0_i64..).zip(classes) {
                let request = sample.send(k * 1_000_000);
                sample.done(request, k * 1_000_000 + 10, class);
            }
            written(&read(&sample), None)
        };
        let planned = ended(&[Class::Ok, Class::CancelledByPlan, Class::CancelledByPlan]);
        assert!(
            planned.contains("Cancelled as planned") && !planned.contains("Cut off at the end")
        );
        let cut = ended(&[Class::Ok, Class::Interrupted]);
        assert!(cut.contains("Cut off at the end") && !cut.contains("Cancelled as planned"));
    }

    #[test]
    fn one_dashboard_can_stand_alone() {
        let run = Run::read(&sample_users::log(1, 9)).expect("a log");
        for view in View::ALL {
            let page = written(&run, Some(view));
            assert_eq!(page.matches("<section ").count(), 1, "{}", view.file_name());
            assert!(page.contains(&format!("<section id=\"{}\">", view.id())));
        }
    }

    #[test]
    fn machines_have_a_table_where_there_are_several() {
        let run = Run::read(&sample::log(1, 20)).expect("a log");
        let mut report = report(&run, &ReportOptions::default());
        let text = |report: &Report| page(&run, report).text().expect("text");
        assert!(!text(&report).contains("<section id=\"machines\">"));
        report.hosts = ["h0", "<q>"].map(HostReport::named).into();
        let text = text(&report);
        assert!(text.contains("<section id=\"machines\">") && text.contains("&lt;q&gt;"));
        assert!(!text.contains("<q>"), "a name is no markup");
    }

    #[test]
    fn a_run_without_users_has_its_own_dashboards() {
        let run = Run::read(&sample::log(1, 200)).expect("a log");
        let page = written(&run, None);
        for id in ["overview", "latency", "throughput", "cache", "slo", "lateness", "fidelity"] {
            assert!(page.contains(&format!("<section id=\"{id}\">")), "{id}");
        }
        let sent: u64 = data(&page)["charts"]
            .as_array()
            .expect("charts")
            .iter()
            .flat_map(|chart| chart["series"].as_array().expect("series"))
            .filter(|series| ["ok", "failed", "cancelled"].iter().any(|n| series["name"] == *n))
            .flat_map(|series| series["values"].as_array().expect("values"))
            .filter_map(serde_json::Value::as_f64)
            .map(|value| format!("{value}").parse::<u64>().expect("a count"))
            .sum();
        assert_eq!(sent, 200, "every request is in one slice");
    }

    #[test]
    fn servers_that_were_asked_have_charts_and_a_table_beside_the_cache() {
        let run = read(&sample::scraped(3));
        let page = written(&run, None);
        let cache = page.find("<section id=\"cache\">").expect("the cache");
        let cache = &page[cache..][..page[cache..].find("</section>").expect("its end")];
        for words in ["Server: requests", "Server: cache", "no answer within 1.0 s", "4,000"] {
            assert!(cache.contains(words), "{words}");
        }
        let charts = data(&page);
        let charts = charts["charts"].as_array().expect("charts");
        let series = charts.iter().flat_map(|chart| chart["series"].as_array().expect("series"));
        let waiting = series.filter(|one| one["name"] == "waiting").collect::<Vec<_>>();
        let [waiting] = &waiting[..] else { panic!("{waiting:?}") };
        let values = waiting["values"].as_array().expect("values");
        assert_eq!(values.len(), data(&page)["slots"].as_array().expect("slots").len());
        let known: Vec<_> = values.iter().map(|value| !value.is_null()).collect();
        let changes = known.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!(changes >= 2, "a failed asking is a gap: {known:?}");
        let other = written(&read(&sample::sample(3, 20)), None);
        assert!(!other.contains("Server: requests"));
    }

    #[test]
    fn a_run_that_was_killed_or_never_sent_has_a_page() {
        let mut killed = sample_users::sample(1, 9);
        killed.closed = false;
        assert!(written(&read(&killed), None).contains("the run was killed or goes on"));
        let empty = written(&read(&Sample::new()), None);
        assert!(empty.contains("No data") && empty.ends_with("</html>\n"));
    }

    #[test]
    fn hostile_names_are_text_everywhere() {
        let plain = written(&read(&sample_users::sample(1, 9)), None);
        let mut sample = sample_users::sample(1, 9);
        let hostile = "</script><script>alert(1)</script>\"'><img src=x>\u{202e}";
        sample.manifest.model = hostile.to_owned();
        sample.manifest.trace.name = hostile.to_owned();
        sample.manifest.targets = vec![hostile.to_owned()];
        sample.manifest.host.hostname = hostile.to_owned();
        let facts = sample.manifest.users.as_mut().expect("users");
        facts.trace_ids.iter_mut().for_each(|id| *id = hostile.to_owned());
        let page = written(&read(&sample), None);
        for mark in ["<script", "</script", "<img", "<title", "\u{202e}"] {
            assert_eq!(page.matches(mark).count(), plain.matches(mark).count(), "{mark}");
        }
        assert!(page.contains("&lt;img src=x&gt;"));
        let names = &data(&page)["timeline"]["names"];
        assert!(names[0].as_str().is_some_and(|name| name.contains("<img src=x>")), "{names}");
    }
}
