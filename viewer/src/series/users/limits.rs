//! How much of each limit and budget was used at the end of every assessment period.

use onbeat_shared::metrics::periods::Period;
use onbeat_shared::units::RunNanos;

use super::by_period::{Figure, period_lines, table};
use super::listing::periods_in;
use crate::opened::OpenedRun;
use crate::quantity;
use crate::series::picture::{Cell, HeightAxis, Picture};
use crate::series::{from_zero, with_margin, within_run};
use crate::state::TimeRange;
use crate::theme::data_colour;

/// A share in per cent, of a limit that is set (0 is none).
fn of_limit(used: Option<f64>, limit: f64) -> Option<f64> {
    used.filter(|_| limit > 0.0).map(|used| used / limit * 100.0)
}

/// The plot for a view.
pub(super) fn picture(opened: &OpenedRun, view: TimeRange) -> Picture {
    let periods = opened.people.periods(opened);
    let limits = opened.run.manifest.users.as_deref().map(|facts| &facts.limits);
    let limit = |of: fn(&onbeat_shared::log::UserLimits) -> f64| limits.map_or(0.0, of);
    let concurrent = limit(|limits| f64::from(limits.concurrent));
    let prefill = limit(|limits| f64::from(limits.prefill));
    let decode = limit(|limits| f64::from(limits.decode));
    let new_tokens = limit(|limits| limits.new_tokens_per_period as f64);
    let working_set = limit(|limits| limits.working_set_tokens as f64);
    let in_flight = |p: &Period| of_limit(Some(p.requests.in_flight as f64), concurrent);
    let prefilling = |p: &Period| of_limit(Some(p.requests.prefilling as f64), prefill);
    let decoding = |p: &Period| of_limit(Some(p.requests.decoding as f64), decode);
    let input = |p: &Period| p.ramp?.input_budget_share.map(|share| share * 100.0);
    let output = |p: &Period| p.ramp?.output_budget_share.map(|share| share * 100.0);
    let fresh = |p: &Period| of_limit(Some(p.ramp?.new_tokens as f64), new_tokens);
    let set = |p: &Period| of_limit(Some(p.ramp?.working_set_tokens as f64), working_set);
    let figure = |name, colour, dashed, value| Figure { name, colour, dashed, value };
    let all: [Figure<'_>; 7] = [
        figure("in flight", data_colour::BLUE, false, &in_flight),
        figure("in prefill", data_colour::PURPLE, false, &prefilling),
        figure("in decode", data_colour::GREEN, false, &decoding),
        figure("input tokens/min", data_colour::ORANGE, false, &input),
        figure("output tokens/min", data_colour::GREY, false, &output),
        figure("new tokens", data_colour::VERMILLION, true, &fresh),
        figure("working set", data_colour::BLUE, true, &set),
    ];
    let is_set = |figure: &Figure<'_>| periods.iter().any(|p| (figure.value)(p).is_some());
    let figures: Vec<Figure<'_>> = all.into_iter().filter(is_set).collect();
    let largest = periods[periods_in(periods, view)]
        .iter()
        .flat_map(|period| figures.iter().filter_map(|figure| (figure.value)(period)))
        .fold(100.0, f64::max);
    let axis = HeightAxis::Number { unit: "% of the limit" };
    Picture {
        lines: period_lines(periods, &figures, axis, with_margin(opened, view)),
        bounds: from_zero(largest),
        axis,
        table: table(periods, &figures, Cell::Number, within_run(opened, view)),
        note: "at the end of each period".to_owned(),
        summary: summary(&figures, view, largest),
        empty: figures.is_empty().then(|| {
            "This run had no limit on requests in flight, tokens or its working set".to_owned()
        }),
        ..Picture::default()
    }
}

fn summary(figures: &[Figure<'_>], view: TimeRange, largest: f64) -> String {
    let span = view.span() as f64;
    let words = |time: RunNanos| quantity::instant(time.0 as f64, span);
    let names: Vec<&str> = figures.iter().map(|figure| figure.name).collect();
    format!(
        "From {} to {}: limits on {}; none above {} % at the end of a period.",
        words(view.start),
        words(view.end),
        if names.is_empty() { "nothing".to_owned() } else { names.join(", ") },
        quantity::number(largest)
    )
}
