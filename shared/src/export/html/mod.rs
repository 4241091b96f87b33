//! A run as one page for a browser: its facts, its numbers, its charts, with nothing to fetch.
//!
//! A user-driven run has the four dashboards of kv-cache-tester's Trace Replay Tester over its
//! assessment periods; any other run has those that make sense without users, over slices of its
//! time. Charts are SVG that is drawn here; a small script of ours adds what a pointer shows, zoom
//! and dark colours. Numbers are the report's, and what has no data is a gap. Everything that came
//! from a trace or a server is escaped: see [`words`].

mod by_period;
mod by_slice;
mod chart;
mod facts;
mod lives;
mod page;
mod scale;
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
    let text = page.text().map_err(|fmt::Error| io::Error::other("the page has no text"))?;
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn page(run: &Run, report: &Report) -> Page {
    let (span, dashboards, numbers, slot): (_, Vec<Dashboard>, _, _) = match &run.users {
        Some(users) => {
            let periods = report.periods.as_deref().unwrap_or_default();
            let dashboards = by_period::dashboards(run, users, report, periods);
            (by_period::span(periods), dashboards, by_period::numbers(periods), "period")
        }
        None => {
            let slices = report.slices.as_deref().unwrap_or_default();
            let dashboards = by_slice::dashboards(report, slices);
            (by_slice::span(slices), dashboards, by_slice::numbers(slices), "slice")
        }
    };
    Page {
        title: facts::title(run),
        lead: facts::lead(run, report),
        verdict: facts::verdict(report),
        cards: facts::cards(run, report),
        notes: facts::notes(report),
        dashboards,
        span,
        slot,
        numbers: (!numbers.rows.is_empty()).then_some(numbers),
    }
}
