//! The slices of a run as a table, under the summary when they are asked for.

use onbeat_shared::metrics::Statistic;
use onbeat_shared::metrics::report::{Report, SliceReport};

use super::page::{Page, group, number};

/// Shows the slices, if there are any to show.
pub(super) fn slices(page: &mut Page, report: &Report) {
    let Some(slices) = &report.slices else { return };
    page.blank();
    if slices.is_empty() {
        page.paragraph("No slices: nothing was sent.");
        return;
    }
    page.line(&format!(
        "{:>10}{:>8}{:>8}{:>8}{:>10}{:>11}{:>11}{:>11}{:>10}{:>11}",
        "slice, s",
        "sent",
        "ok",
        "failed",
        "req/s",
        "out tok/s",
        "TTFT p50",
        "TTFT p99",
        "ITL p50",
        "in flight"
    ));
    for slice in slices {
        page.line(&row(slice));
    }
    let mut rule =
        "Slices begin at the first sending; a request belongs to the one it was sent in, \
                    its rate and latency too; tokens count where they arrived; times in ms."
            .to_owned();
    if slices.last().is_some_and(|slice| !slice.complete) {
        rule += " The last one ends with the run.";
    }
    page.paragraph(&rule);
}

fn row(slice: &SliceReport) -> String {
    let shown = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
    let of = |statistic: Option<Statistic>, figure: fn(&Statistic) -> f64| {
        shown(statistic.as_ref().map(figure))
    };
    let (ttft, itl) = (slice.latency.ttft_ms, slice.latency.itl_ms);
    format!(
        "{:>10}{:>8}{:>8}{:>8}{:>10}{:>11}{:>11}{:>11}{:>10}{:>11}",
        number(seconds(slice.start_ns)),
        group(slice.sent),
        group(slice.outcomes.ok),
        group(slice.outcomes.failed()),
        shown(slice.throughput.requests_per_s),
        shown(slice.arrived_output_tokens_per_s),
        of(ttft, |s| s.p50),
        of(ttft, |s| s.p99),
        of(itl, |s| s.p50),
        shown(slice.concurrency.effective.map(|figures| figures.mean)),
    )
}

#[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
const fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}
