//! The slices of a run as a table, under the summary when they are asked for.

use onbeat_shared::metrics::Statistic;
use onbeat_shared::metrics::report::{Outcomes, Report, SliceReport};

use super::page::{Page, WIDTH, group, number, plural};

/// Heads of the columns, and whether one is left out where all its cells are zero.
const COLUMNS: [(&str, bool); 12] = [
    ("slice, s", false),
    ("sent", false),
    ("ok", false),
    ("failed", false),
    ("cancelled", true),
    ("no end", true),
    ("req/s", false),
    ("out tok/s", false),
    ("TTFT p50", false),
    ("TTFT p99", false),
    ("ITL p50", false),
    ("in flight", false),
];

/// Shows the slices, if there are any to show.
pub(super) fn slices(page: &mut Page, report: &Report) {
    let Some(slices) = &report.slices else { return };
    page.blank();
    if slices.is_empty() {
        page.paragraph("No slices: nothing was sent.");
        return;
    }
    table(page, &slices.iter().map(cells).collect::<Vec<_>>());
    let mut rule =
        "Slices begin at the first sending; a request belongs to the one it was sent in, \
                    its rate and latency too; tokens count where they arrived; times in ms."
            .to_owned();
    let ended = |outcomes: &Outcomes| outcomes.ended() + outcomes.cancelled;
    let sliced: u64 = slices.iter().map(|slice| ended(&slice.outcomes)).sum();
    let unsent = ended(&report.outcomes).saturating_sub(sliced);
    if unsent > 0 {
        let count = plural(unsent, "request");
        rule += &format!(" In none: {count} that ended before leaving, without a connection.");
    }
    if slices.last().is_some_and(|slice| !slice.complete) {
        rule += " The last one ends with the run.";
    }
    page.paragraph(&rule);
}

/// Right-aligned columns as wide as they must be.
fn table(page: &mut Page, rows: &[[String; COLUMNS.len()]]) {
    let is_shown = |column: usize| !COLUMNS[column].1 || rows.iter().any(|row| row[column] != "0");
    let shown: Vec<usize> = (0..COLUMNS.len()).filter(|&column| is_shown(column)).collect();
    let width = |&column: &usize| {
        let cells = rows.iter().map(|row| row[column].len());
        cells.chain([COLUMNS[column].0.len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = shown.iter().map(width).collect();
    let room = WIDTH.saturating_sub(widths.iter().sum());
    let gap = (room / shown.len()).clamp(1, 3);
    let mut line = |cells: Vec<&str>| {
        let mut line = String::new();
        for (cell, width) in cells.into_iter().zip(&widths) {
            line += &format!("{cell:>0$}", width + gap);
        }
        page.line(&line);
    };
    line(shown.iter().map(|&column| COLUMNS[column].0).collect());
    for row in rows {
        line(shown.iter().map(|&column| row[column].as_str()).collect());
    }
}

fn cells(slice: &SliceReport) -> [String; COLUMNS.len()] {
    let shown = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
    let of = |statistic: Option<Statistic>, figure: fn(&Statistic) -> f64| {
        shown(statistic.as_ref().map(figure))
    };
    let (ttft, itl) = (slice.latency.ttft_ms, slice.latency.itl_ms);
    [
        number(seconds(slice.start_ns)),
        group(slice.sent),
        group(slice.outcomes.ok),
        group(slice.outcomes.failed()),
        group(slice.outcomes.cancelled),
        group(slice.outcomes.in_flight()),
        shown(slice.throughput.requests_per_s),
        shown(slice.arrived_output_tokens_per_s),
        of(ttft, |s| s.p50),
        of(ttft, |s| s.p99),
        of(itl, |s| s.p50),
        shown(slice.concurrency.effective.map(|figures| figures.mean)),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
const fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}
