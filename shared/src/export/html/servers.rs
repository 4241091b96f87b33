//! What the servers said of themselves, on the page's own axis of time: a chart of requests and one
//! of the cache for each, and a table of all.
//!
//! Numbers are [`crate::metrics::server`]'s. Where an asking failed, or a server does not say, is a
//! gap and no zero.

use super::chart::{Chart, Series, Shape, Span};
use super::page::{Dashboard, Numbers};
use super::series::PERCENT;
use crate::metrics::report::Report;
use crate::metrics::server::{HEADS, Quantity, rows};
use crate::run::{Run, Servers};
use crate::units::{NANOS_PER_SECOND, RunNanos};

/// Servers that have charts; the table has all.
const DRAWN_MAX: usize = 3;

/// Adds them to the dashboard of the cache, if any server was asked.
pub(super) fn beside(cache: Dashboard, run: &Run, report: &Report, span: &Span) -> Dashboard {
    let Some(servers) = run.servers.as_deref() else { return cache };
    let Dashboard { mut charts, table, .. } = cache;
    let stretches: Vec<_> =
        span.slots.iter().map(|&(start, end)| (instant(start), instant(end))).collect();
    for source in 0..servers.sources.len().min(DRAWN_MAX) {
        let of = Of { servers, source, stretches: &stretches };
        charts.extend([requests(&of), of_cache(&of)].into_iter().flatten());
    }
    let rows = rows(report.servers.as_deref().unwrap_or_default());
    let said = Numbers {
        heads: HEADS.into(),
        rows: rows.into_iter().map(Vec::from).collect(),
        is_words: true,
    };
    Dashboard { charts, table: table.or(Some(said)), ..cache }
}

/// A time of the page; slots are whole nanoseconds.
fn instant(seconds: f64) -> RunNanos {
    #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "of a run")]
    let nanos = (seconds * NANOS_PER_SECOND as f64).round() as i64;
    RunNanos(nanos)
}

struct Of<'a> {
    servers: &'a Servers,
    source: usize,
    stretches: &'a [(RunNanos, RunNanos)],
}

impl Of<'_> {
    /// A quantity over time; `None` if the server does not say it.
    fn series(&self, quantity: Quantity, shape: Shape, colour: u8) -> Option<Series> {
        let is_share = matches!(quantity, Quantity::CacheUsage | Quantity::HitRate);
        let (scale, unit) = if is_share { (100.0, PERCENT) } else { (1.0, "") };
        let means = quantity.means(self.servers, self.source, self.stretches);
        let values: Vec<_> = means.into_iter().map(|mean| mean.map(|mean| mean * scale)).collect();
        let is_said = values.iter().any(Option::is_some);
        let name = quantity.label();
        is_said.then_some(Series { name, unit, shape, is_right: false, colour, values })
    }

    fn chart(&self, title: &str, what: &str, series: [Option<Series>; 2]) -> Option<Chart> {
        let series: Vec<_> = series.into_iter().flatten().collect();
        let source = &self.servers.sources[self.source];
        let title = title.to_owned();
        let note = format!("{what}, on average, as it says itself; {source}");
        (!series.is_empty()).then_some(Chart { title, note, series, ..Chart::default() })
    }
}

fn requests(of: &Of<'_>) -> Option<Chart> {
    let series = [
        of.series(Quantity::Waiting, Shape::Area, 1),
        of.series(Quantity::Running, Shape::Line, 0),
    ];
    of.chart("Server: requests", "requests", series)
}

fn of_cache(of: &Of<'_>) -> Option<Chart> {
    let series = [
        of.series(Quantity::CacheUsage, Shape::Area, 3),
        of.series(Quantity::HitRate, Shape::Line, 1),
    ];
    let chart = of.chart("Server: cache", "%", series)?;
    Some(Chart { tops: [Some(100.0), None], ..chart })
}
