//! Time to first token of each assessment period, against what the ramp allows.

use onbeat_shared::metrics::periods::Period;
use onbeat_shared::units::RunNanos;

use super::by_period::{Figure, period_lines, table};
use super::listing::periods_in;
use crate::opened::OpenedRun;
use crate::quantity::{self, TimeUnit};
use crate::series::picture::{Cell, HeightAxis, Picture};
use crate::series::{from_zero, with_margin, within_run};
use crate::state::TimeRange;
use crate::theme::data_colour;

fn median(period: &Period) -> Option<f64> {
    period.ttft_ms.as_ref().map(|ttft| ttft.p50 * 1e6)
}

fn p95(period: &Period) -> Option<f64> {
    period.ttft_ms.as_ref().map(|ttft| ttft.p95 * 1e6)
}

fn compared(period: &Period) -> Option<f64> {
    period.ramp?.ttft_ms.map(|ttft| ttft * 1e6)
}

/// The largest value over the smallest from which heights are powers of ten.
const WIDE: f64 = 25.0;

/// The plot for a view.
pub(super) fn picture(opened: &OpenedRun, view: TimeRange) -> Picture {
    let periods = opened.people.periods(opened);
    let facts = opened.run.manifest.users.as_deref();
    let limit = facts.map(|facts| facts.max_ttft_ns).filter(|&limit| limit > 0);
    let figures = [
        Figure { name: "p50", colour: data_colour::BLUE, dashed: false, value: &median },
        Figure { name: "p95", colour: data_colour::ORANGE, dashed: false, value: &p95 },
        Figure {
            name: "what the ramp compares",
            colour: data_colour::PURPLE,
            dashed: true,
            value: &compared,
        },
    ];
    let limit_line = |_: &Period| limit.map(|limit| limit as f64);
    let allowed = Figure {
        name: "allowed",
        colour: data_colour::VERMILLION,
        dashed: true,
        value: &limit_line,
    };
    let figures: Vec<Figure<'_>> =
        figures.into_iter().chain(limit.is_some().then_some(allowed)).collect();
    let near = &periods[periods_in(periods, view)];
    let values = || {
        near.iter().flat_map(|period| figures.iter().filter_map(|figure| (figure.value)(period)))
    };
    let largest = values().fold(0.0, f64::max);
    let smallest = values().fold(f64::INFINITY, f64::min);
    // Where the limit is far away, even steps would press all else to the ground.
    let is_wide = smallest > 0.0 && largest > WIDE * smallest;
    let axis =
        if is_wide { HeightAxis::LogTime } else { HeightAxis::Time(TimeUnit::fitting(largest)) };
    let bounds = match axis {
        HeightAxis::LogTime => (smallest.log10() - 0.15, largest.log10() + 0.15),
        _ => from_zero(axis.place(largest).unwrap_or(0.0)),
    };
    let no_data = periods.iter().all(|period| period.ttft_ms.is_none());
    Picture {
        lines: period_lines(periods, &figures, axis, with_margin(opened, view)),
        bounds,
        axis,
        table: table(periods, &figures, Cell::Duration, within_run(opened, view)),
        note: "by assessment period".to_owned(),
        summary: summary(periods, view, limit),
        empty: no_data.then(|| "No period has a request with a first token".to_owned()),
        ..Picture::default()
    }
}

fn summary(periods: &[Period], view: TimeRange, limit: Option<i64>) -> String {
    let span = view.span() as f64;
    let words = |time: RunNanos| quantity::instant(time.0 as f64, span);
    let inside = periods.iter().filter(|period| view.contains(RunNanos(period.start_ns)));
    let highest = inside.clone().filter_map(p95).fold(f64::NEG_INFINITY, f64::max);
    let highest = highest.is_finite().then_some(highest);
    let allowed = limit.map(|limit| format!(" of {} allowed", quantity::duration(limit as f64)));
    format!(
        "From {} to {}: {}; the highest p95 of one is {}{}.",
        words(view.start),
        words(view.end),
        quantity::counted(inside.count() as u64, "period"),
        quantity::measured_or_word(highest),
        allowed.unwrap_or_default()
    )
}
