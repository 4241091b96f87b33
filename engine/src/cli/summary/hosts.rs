//! Lateness by machine, in the summary of a run that was merged from several.

use onbeat_shared::metrics::Statistic;
use onbeat_shared::metrics::hosts::HostReport;
use onbeat_shared::metrics::report::Report;

use super::page::{Page, group, number};

/// Machines that are shown one by one; of more, the latest.
const ROWS: usize = 16;
/// Characters of a machine's name.
const NAME_CHARS: usize = 21;

/// Writes the table, if there are several machines.
pub(super) fn hosts(page: &mut Page, report: &Report) {
    if report.hosts.is_empty() {
        return;
    }
    page.blank();
    page.line(&format!(
        "{:<22}{:>6}{:>10}{:>10}{:>10}{:>11}{:>10}{:>19}",
        "Lateness by host, us", "shard", "sent", "p50", "p99", "max", "stalls", "clock"
    ));
    let mut shown: Vec<&HostReport> = report.hosts.iter().collect();
    if shown.len() > ROWS {
        let p99 = |host: &HostReport| host.lateness_us.map_or(0.0, |late| late.p99);
        shown.sort_by(|a, b| p99(b).total_cmp(&p99(a)));
    }
    for host in shown.iter().take(ROWS) {
        row(page, host);
    }
    if let Some(more) = shown.len().checked_sub(ROWS).filter(|&more| more > 0) {
        page.line(&format!("{more} more, whose p99 is less"));
    }
    page.paragraph(
        "Lateness is by each host's own clock from its own zero; the zeros of two hosts lie apart by \
         what their clocks were wrong.",
    );
}

fn row(page: &mut Page, host: &HostReport) {
    let name: String = host.host.chars().take(NAME_CHARS).collect();
    let figure = |of: fn(&Statistic) -> f64| {
        host.lateness_us.as_ref().map_or_else(|| "-".to_owned(), |late| number(of(late)))
    };
    let clock = match (host.clock_synchronised, host.clock_max_error_ms) {
        (Some(true), Some(error)) => format!("within {} ms", number(error)),
        (Some(false), _) => "not synchronised".to_owned(),
        _ => "not known".to_owned(),
    };
    page.line(&format!(
        "{name:<22}{:>6}{:>10}{:>10}{:>10}{:>11}{:>10}{clock:>19}",
        host.shard,
        group(host.sent),
        figure(|late| late.p50),
        figure(|late| late.p99),
        figure(|late| late.max),
        group(host.host_stalls.count),
    ));
}
