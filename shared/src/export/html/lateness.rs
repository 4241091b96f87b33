//! The dashboard of the sender's own part: how late requests left over time, what host stalls did,
//! each core, and what part of a TTFT the client itself could have caused.
//!
//! Numbers are [`crate::metrics`]'s. Requests are placed by their sending, stalls by where they
//! begin, into the slots that the page is about.

use super::chart::{Chart, Series, Shape, Span};
use super::facts::{number, percent};
use super::page::{Dashboard, Numbers};
use super::series::right;
use super::spread;
use crate::counted::grouped;
use crate::metrics::client_part::ClientShare;
use crate::metrics::cores::{CoreWork, cores};
use crate::metrics::fidelity::{self, Row};
use crate::metrics::hosts;
use crate::metrics::latency::{count, nanos};
use crate::metrics::lateness::lateness_ns;
use crate::metrics::quantile::{Collector, Statistic};
use crate::metrics::report::Report;
use crate::quantity::duration;
use crate::run::Run;
use crate::units::RunNanos;

/// The dashboard.
pub(super) fn dashboard(run: &Run, report: &Report, span: &Span) -> Dashboard {
    Dashboard {
        id: "lateness",
        title: "Lateness",
        note: client(run),
        charts: vec![over_time(run, report, span)],
        stills: vec![spread::lateness(run, report), spread::client_part(run)],
        table: Some(by_core(run)),
        timeline: None,
    }
}

/// The slot of an instant.
fn slot(span: &Span, time: RunNanos) -> Option<usize> {
    let seconds = nanos(time.0) / 1e9;
    let place = span.slots.partition_point(|slot| slot.1 <= seconds);
    // The last slot ends with what happened last.
    let place = place.min(span.slots.len().checked_sub(1)?);
    (span.slots[place].0 <= seconds).then_some(place)
}

fn over_time(run: &Run, report: &Report, span: &Span) -> Chart {
    let mut late: Vec<Collector> = vec![Collector::new(); span.slots.len()];
    let mut stalled = vec![0.0; span.slots.len()];
    for i in 0..run.requests.len() {
        let found = run.requests.sent(i).and_then(|sent| slot(span, sent));
        if let (Some(slot), Some(by)) = (found, lateness_ns(run, i)) {
            late[slot].push(nanos(by));
        }
    }
    for stall in run.stalls.all() {
        if let Some(slot) = slot(span, stall.start) {
            stalled[slot] += count(stall.length_ns) / 1e6;
        }
    }
    let late: Vec<Option<Statistic>> = late.into_iter().map(|one| one.statistic(1e3)).collect();
    let line = |name, shape, colour, figure: fn(&Statistic) -> f64| Series {
        name,
        unit: " µs",
        shape,
        is_right: false,
        colour,
        values: late.iter().map(|one| one.as_ref().map(figure)).collect(),
    };
    let stalls = Series {
        name: "host stalls",
        unit: " ms",
        shape: Shape::Bars,
        is_right: false,
        colour: 5,
        values: stalled.into_iter().map(Some).collect(),
    };
    Chart {
        title: "Send lateness".to_owned(),
        note: "microseconds, by the slice of the sending; host stalls of all cores, in ms"
            .to_owned(),
        series: vec![
            right(stalls),
            line("p50", Shape::Line, 0, |one| one.p50),
            line("p99", Shape::Line, 1, |one| one.p99),
            line("max", Shape::Dashed, 4, |one| one.max),
        ],
        level: Some(("Limit of the p99".to_owned(), count(report.notes.max_lateness_us))),
        ..Chart::default()
    }
}

/// What part of a TTFT the client could have caused, in a sentence.
fn client(run: &Run) -> String {
    let successful = (0..run.requests.len()).filter(|&i| run.requests.is_ok(i));
    let share = ClientShare::of(run, successful);
    let (Some(p50), Some(p99), Some(longest)) = (share.p50, share.p99, share.longest_ns) else {
        return "What part of a TTFT the client could have caused is not known.".to_owned();
    };
    format!(
        "At most {} of a TTFT could be the client's own doing (late sending, slow writing, a \
         stalled core) for half of the requests, {} for 99 % of them; the longest such time is {}.",
        percent(p50.min(1.0)),
        percent(p99.min(1.0)),
        duration(nanos(longest))
    )
}

fn by_core(run: &Run) -> Numbers {
    let heads = vec![
        "core",
        "CPU",
        "sent",
        "lateness p50 µs",
        "p99 µs",
        "max µs",
        "host stalls",
        "in all, ms",
        "longest, ms",
        "requests hit",
    ];
    let none = || "no data".to_owned();
    let row = |(core, work): (u16, CoreWork)| {
        let late = |figure: fn(&Statistic) -> f64| {
            work.lateness_us.as_ref().map(figure).map_or_else(none, number)
        };
        vec![
            core.to_string(),
            work.cpu.map_or_else(none, |cpu| cpu.to_string()),
            grouped(work.sent),
            late(|late| late.p50),
            late(|late| late.p99),
            late(|late| late.max),
            grouped(work.stalls),
            number(count(work.stalled_ns) / 1e6),
            work.longest_ns.map_or_else(none, |ns| number(count(ns) / 1e6)),
            grouped(work.hit),
        ]
    };
    let works = cores(run, 0..run.requests.len(), None);
    let rows = works.into_iter().map(|(core, work)| row((core.0, work))).collect();
    Numbers { heads, rows, is_words: false }
}

/// How faithful the replay was to what was recorded, as a table.
pub(super) fn fidelity(report: &Report) -> Dashboard {
    let row =
        |row: Row| vec![row.name.to_owned(), row.error, row.recorded, row.replayed, row.meaning];
    let table = Numbers {
        heads: vec!["", "error", "recorded", "replayed", "which means"],
        rows: fidelity::rows(&report.fidelity).into_iter().map(row).collect(),
        is_words: true,
    };
    Dashboard {
        id: "fidelity",
        title: "Fidelity",
        note: "How far the replay was from what was recorded; 0 % is as recorded.".to_owned(),
        table: Some(table),
        ..Dashboard::default()
    }
}

/// What each machine of a merged run did; `None` for a run of one.
pub(super) fn machines(report: &Report) -> Option<Dashboard> {
    if report.hosts.is_empty() {
        return None;
    }
    let heads =
        vec!["host", "shard", "sent", "late p50 µs", "p99 µs", "max µs", "host stalls", "clock"];
    let rows = hosts::rows(&report.hosts).into_iter().map(Vec::from).collect();
    Some(Dashboard {
        id: "machines",
        title: "Machines",
        note: "Lateness is by each machine's own clock from its own zero; two zeros lie apart by what \
               the clocks were wrong."
            .to_owned(),
        table: Some(Numbers { heads, rows, is_words: true }),
        ..Dashboard::default()
    })
}
