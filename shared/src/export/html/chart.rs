//! One chart as SVG: values by periods (or slices) over time.
//!
//! What is drawn from data lies in an inner viewport that is stretched to the plot's size, so that
//! the page's script zooms by one attribute; lines and dots keep their width. A value that is
//! `None` draws nothing, and lines end there: a gap is no zero. All charts of a page share their
//! axis of time and have it at the same place. Nothing is computed here but places.

use std::fmt::{self, Write};

use serde::Serialize;

use super::scale::Marks;
use super::words::{Short, Shown, rounded};

/// Units of a chart's width.
pub(super) const WIDTH: f64 = 1000.0;
/// Where the plot begins.
pub(super) const LEFT: f64 = 96.0;
/// Units of the plot's width.
pub(super) const PLOT: f64 = 850.0;
/// Where the plot's top is.
pub(super) const TOP: f64 = 8.0;
/// Room below the plot for the times.
pub(super) const FOOT: f64 = 22.0;
/// Units of a plot's height.
const HEIGHT: f64 = 170.0;
/// Room inside the plot above the highest mark and below zero, for the width of lines.
const MARGIN: f64 = 4.0;
/// Slots up to which lines have a dot at every value.
const DOTS_MAX: usize = 120;
/// A level this many times the largest value is not drawn: the values would be a flat line.
const LEVEL_REACH: f64 = 4.0;

/// The time that a page is about.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Span {
    /// Where it begins, in seconds from the schedule's zero.
    pub(super) start_s: f64,
    /// Where it ends.
    pub(super) end_s: f64,
    /// Begin and end of each period or slice, ascending.
    pub(super) slots: Vec<(f64, f64)>,
}

impl Span {
    /// An instant's place in the plot.
    pub(super) fn x(&self, time_s: f64) -> f64 {
        let length = self.end_s - self.start_s;
        if length > 0.0 { (time_s - self.start_s) / length * PLOT } else { PLOT / 2.0 }
    }
}

/// One chart.
#[derive(Clone, Debug, Default)]
pub(super) struct Chart {
    /// What it shows.
    pub(super) title: String,
    /// How it is to be read.
    pub(super) note: String,
    /// The largest value of each axis, left and right, where it is given.
    pub(super) tops: [Option<f64>; 2],
    /// What is drawn, from the back to the front.
    pub(super) series: Vec<Series>,
    /// A value that the left axis' values are held against, and its name.
    pub(super) level: Option<(String, f64)>,
}

/// Values of one kind, one per slot.
#[derive(Clone, Debug)]
pub(super) struct Series {
    /// Their name.
    pub(super) name: &'static str,
    /// Their unit, as it follows a number.
    pub(super) unit: &'static str,
    /// How they are drawn.
    pub(super) shape: Shape,
    /// Whether the right axis is theirs.
    pub(super) is_right: bool,
    /// Their colour, a number of the style's.
    pub(super) colour: u8,
    /// The values; `None` where there is no data.
    pub(super) values: Vec<Option<f64>>,
}

/// How values are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Line,
    Dashed,
    /// A line, filled down to zero.
    Area,
    /// Bars; several series of a chart stand on each other.
    Bars,
}

/// A chart's values for the script.
#[derive(Debug, Serialize)]
pub(super) struct ChartData<'a> {
    series: Vec<SeriesData<'a>>,
}

#[derive(Debug, Serialize)]
struct SeriesData<'a> {
    name: &'a str,
    unit: &'a str,
    values: Vec<Option<f64>>,
}

impl Chart {
    /// What the script shows beside the pointer.
    pub(super) fn data(&self) -> ChartData<'_> {
        let of = |series: &Series| -> Vec<Option<f64>> {
            series.values.iter().map(|value| value.map(rounded)).collect()
        };
        let series = self.series.iter();
        let series =
            series.map(|one| SeriesData { name: one.name, unit: one.unit, values: of(one) });
        ChartData { series: series.collect() }
    }

    /// Draws it as the page's chart number `number`.
    pub(super) fn draw(&self, number: usize, span: &Span, out: &mut String) -> fmt::Result {
        let marks = [self.marks(false), self.marks(true)];
        write!(out, "<figure class=\"chart\" data-chart=\"{number}\"><figcaption>")?;
        write!(out, "<b>{}</b> <small>{}</small>", Shown(&self.title), Shown(&self.note))?;
        self.draw_legend(out)?;
        let height = TOP + HEIGHT + FOOT;
        let title = Shown(&self.title);
        write!(
            out,
            "</figcaption><svg class=\"frame\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
             aria-label=\"{title}\">"
        )?;
        self.draw_axes(&marks, out)?;
        draw_times(span, TOP, HEIGHT, out)?;
        open_plot(TOP, HEIGHT, out)?;
        let mut below = vec![0.0; span.slots.len()];
        for (place, series) in self.series.iter().enumerate() {
            let drawing = Drawing { span, top: marks[usize::from(series.is_right)].top() };
            write!(out, "<g class=\"c{}\" data-series=\"{place}\">", series.colour)?;
            drawing.series(series, &mut below, out)?;
            out.push_str("</g>");
        }
        if let Some((_name, level)) = self.shown_level() {
            let y = place(level, marks[0].top());
            write!(out, "<path class=\"level\" d=\"M0 {}H{PLOT}\"/>", Short(y, 2))?;
        }
        out.push_str("</svg>");
        if self.series.iter().all(|series| series.values.iter().all(Option::is_none)) {
            let (x, y) = (LEFT + PLOT / 2.0, TOP + HEIGHT / 2.0);
            write!(out, "<text class=\"none\" x=\"{x}\" y=\"{y}\">No data</text>")?;
        }
        close_frame(TOP, HEIGHT, out)?;
        out.push_str("</figure>\n");
        Ok(())
    }

    /// The level, unless it is far above everything.
    fn shown_level(&self) -> Option<(&str, f64)> {
        let (name, level) = self.level.as_ref()?;
        let most = self.most(false).unwrap_or(*level);
        (*level <= most * LEVEL_REACH).then_some((name.as_str(), *level))
    }

    /// The largest value of an axis, bars on each other.
    fn most(&self, is_right: bool) -> Option<f64> {
        let own = self.series.iter().filter(|series| series.is_right == is_right);
        let (bars, lines): (Vec<_>, Vec<_>) = own.partition(|one| one.shape == Shape::Bars);
        let slots = bars.iter().map(|one| one.values.len()).max().unwrap_or(0);
        let piles = (0..slots).filter_map(|slot| {
            let known = bars.iter().filter_map(|one| *one.values.get(slot)?);
            known.reduce(|sum, value| sum + value)
        });
        let singles = lines.iter().flat_map(|one| one.values.iter().flatten().copied());
        piles.chain(singles).filter(|value| value.is_finite()).reduce(f64::max)
    }

    fn marks(&self, is_right: bool) -> Marks {
        if let Some(top) = self.tops[usize::from(is_right)] {
            return Marks::values(top);
        }
        let most = self.most(is_right).unwrap_or(0.0);
        let level = self.shown_level().filter(|_| !is_right).map_or(0.0, |(_name, level)| level);
        let mut own = self.series.iter().filter(|series| series.is_right == is_right);
        let whole =
            |series: &Series| series.values.iter().flatten().all(|value| value.fract() == 0.0);
        match own.all(whole) && level == 0.0 {
            true => Marks::counts(most),
            false => Marks::values(most.max(level)),
        }
    }

    fn draw_legend(&self, out: &mut String) -> fmt::Result {
        out.push_str("<span class=\"legend\">");
        for (place, series) in self.series.iter().enumerate() {
            let side = if series.is_right { " (right)" } else { "" };
            let dashed = if series.shape == Shape::Dashed { " dashed" } else { "" };
            write!(
                out,
                "<button class=\"key c{}{dashed}\" data-series=\"{place}\">{}{side}</button>",
                series.colour,
                Shown(series.name)
            )?;
        }
        if let Some((name, level)) = &self.level {
            let above = if self.shown_level().is_none() { ", above this chart" } else { "" };
            let level = Short(*level, 3);
            let unit = self.series.iter().find(|series| !series.is_right);
            let unit = unit.map_or("", |series| series.unit);
            write!(
                out,
                "<span class=\"key level\">{} {level}{}{above}</span>",
                Shown(name),
                Shown(unit)
            )?;
        }
        out.push_str("</span>");
        Ok(())
    }

    fn draw_axes(&self, marks: &[Marks; 2], out: &mut String) -> fmt::Result {
        out.push_str("<g class=\"y\">");
        for &at in &marks[0].at {
            let y = TOP + place(at, marks[0].top());
            let (right, label) = (LEFT + PLOT, LEFT - 8.0);
            write!(out, "<path d=\"M{LEFT} {y:.1}H{right}\"/>")?;
            write!(out, "<text x=\"{label}\" y=\"{:.1}\">{}</text>", y + 3.5, marks[0].value(at))?;
        }
        out.push_str("</g>");
        if self.series.iter().any(|series| series.is_right) {
            out.push_str("<g class=\"y right\">");
            for &at in &marks[1].at {
                let (x, y) = (LEFT + PLOT + 8.0, TOP + place(at, marks[1].top()) + 3.5);
                write!(out, "<text x=\"{x}\" y=\"{y:.1}\">{}</text>", marks[1].value(at))?;
            }
            out.push_str("</g>");
        }
        Ok(())
    }
}

/// A value's place in a plot whose highest mark is `top`.
fn place(value: f64, top: f64) -> f64 {
    HEIGHT - MARGIN - value / top * (HEIGHT - 2.0 * MARGIN)
}

/// One series on its way into the plot.
struct Drawing<'a> {
    span: &'a Span,
    top: f64,
}

impl Drawing<'_> {
    fn series(&self, series: &Series, below: &mut [f64], out: &mut String) -> fmt::Result {
        match series.shape {
            Shape::Bars => self.bars(series, below, out),
            Shape::Area => {
                self.fill(series, out)?;
                self.line(series, "line", out)
            }
            Shape::Line => self.line(series, "line", out),
            Shape::Dashed => self.line(series, "line dashed", out),
        }
    }

    /// The values that follow each other without a gap, as places.
    fn runs(&self, series: &Series) -> Vec<Vec<(f64, f64)>> {
        let mut runs = vec![Vec::new()];
        let mut before = f64::NEG_INFINITY;
        for (&(start, end), value) in self.span.slots.iter().zip(&series.values) {
            // Slots in which nothing happened may be left out: that is a gap, too.
            if start > before + (end - start) * 1e-3 {
                runs.push(Vec::new());
            }
            before = end;
            match value.filter(|value| value.is_finite()) {
                Some(value) => {
                    let point = (self.span.x(f64::midpoint(start, end)), place(value, self.top));
                    runs.last_mut().expect("one is there from the start").push(point);
                }
                None => runs.push(Vec::new()),
            }
        }
        runs.retain(|run| !run.is_empty());
        runs
    }

    fn line(&self, series: &Series, class: &str, out: &mut String) -> fmt::Result {
        let runs = self.runs(series);
        write!(out, "<path class=\"{class}\" d=\"")?;
        for run in runs.iter().filter(|run| run.len() > 1) {
            points(run, out)?;
        }
        out.push_str("\"/><path class=\"dots\" d=\"");
        for run in &runs {
            // A value between two gaps would not be seen without its dot.
            if run.len() == 1 || self.span.slots.len() <= DOTS_MAX {
                for &(x, y) in run {
                    write!(out, "M{} {}h.01", Short(x, 2), Short(y, 2))?;
                }
            }
        }
        out.push_str("\"/>");
        Ok(())
    }

    fn fill(&self, series: &Series, out: &mut String) -> fmt::Result {
        out.push_str("<path class=\"fill\" d=\"");
        for run in self.runs(series).iter().filter(|run| run.len() > 1) {
            points(run, out)?;
            let floor = place(0.0, self.top);
            let (first, last) = (run[0].0, run[run.len() - 1].0);
            write!(out, "L{} {floor}L{} {floor}Z", Short(last, 2), Short(first, 2))?;
        }
        out.push_str("\"/>");
        Ok(())
    }

    fn bars(&self, series: &Series, below: &mut [f64], out: &mut String) -> fmt::Result {
        out.push_str("<path class=\"bars\" d=\"");
        let slots = self.span.slots.iter().zip(&series.values).zip(below);
        for ((&(start, end), value), below) in slots {
            let Some(value) = value.filter(|value| value.is_finite() && *value > 0.0) else {
                continue;
            };
            let gap = (end - start) * 0.06;
            let (left, right) = (self.span.x(start + gap), self.span.x(end - gap));
            let (low, high) = (place(*below, self.top), place(*below + value, self.top));
            *below += value;
            let [left, right, low, high] = [left, right, low, high].map(|at| Short(at, 2));
            write!(out, "M{left} {low}V{high}H{right}V{low}Z")?;
        }
        out.push_str("\"/>");
        Ok(())
    }
}

fn points(run: &[(f64, f64)], out: &mut String) -> fmt::Result {
    for (place, &(x, y)) in run.iter().enumerate() {
        let step = if place == 0 { 'M' } else { 'L' };
        write!(out, "{step}{} {}", Short(x, 2), Short(y, 2))?;
    }
    Ok(())
}

/// The marks of time below a plot; the script marks a zoomed axis anew.
pub(super) fn draw_times(span: &Span, top: f64, height: f64, out: &mut String) -> fmt::Result {
    let marks = Marks::times(span.start_s, span.end_s);
    out.push_str("<g class=\"x\">");
    for &at in &marks.at {
        let x = LEFT + span.x(at);
        let (bottom, text) = (top + height, top + height + 16.0);
        write!(out, "<path d=\"M{x:.1} {top}V{bottom}\"/>")?;
        write!(out, "<text x=\"{x:.1}\" y=\"{text}\">{}</text>", marks.time(at))?;
    }
    out.push_str("</g>");
    Ok(())
}

/// Opens the viewport that is stretched.
pub(super) fn open_plot(top: f64, height: f64, out: &mut String) -> fmt::Result {
    write!(
        out,
        "<svg class=\"plot\" x=\"{LEFT}\" y=\"{top}\" width=\"{PLOT}\" height=\"{height}\" \
         viewBox=\"0 0 {PLOT} {height}\" preserveAspectRatio=\"none\">"
    )
}

/// What the pointer needs, over everything; and the end of the drawing.
pub(super) fn close_frame(top: f64, height: f64, out: &mut String) -> fmt::Result {
    write!(
        out,
        "<path class=\"cursor\" d=\"M0 {top}v{height}\"/><rect class=\"chosen\" y=\"{top}\" \
         height=\"{height}\"/><rect class=\"catch\" x=\"{LEFT}\" y=\"{top}\" width=\"{PLOT}\" \
         height=\"{height}\"/></svg>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span() -> Span {
        let slots = (0..4).map(|slot| (f64::from(slot) * 10.0, f64::from(slot) * 10.0 + 10.0));
        Span { start_s: 0.0, end_s: 40.0, slots: slots.collect() }
    }

    fn series(shape: Shape, values: [Option<f64>; 4]) -> Series {
        let values = values.to_vec();
        Series { name: "p50", unit: " s", shape, is_right: false, colour: 1, values }
    }

    fn drawn(chart: &Chart) -> String {
        let mut out = String::new();
        chart.draw(0, &span(), &mut out).expect("a String takes everything");
        out
    }

    #[test]
    fn a_value_is_at_the_middle_of_its_period_and_a_gap_stays_one() {
        let values = [Some(0.5), Some(1.0), None, Some(2.0)];
        let chart = Chart {
            title: "TTFT".to_owned(),
            series: vec![series(Shape::Line, values)],
            ..Chart::default()
        };
        let out = drawn(&chart);
        // 850 units for 40 s, 162 of 170 units of height for values from 0 to 2.
        assert!(out.contains("<path class=\"line\" d=\"M106.25 125.5L318.75 85\"/>"), "{out}");
        let dots = "<path class=\"dots\" d=\"M106.25 125.5h.01M318.75 85h.01M743.75 4h.01\"/>";
        assert!(out.contains(dots), "{out}");
    }

    #[test]
    fn bars_stand_on_each_other_and_nothing_is_drawn_for_nothing() {
        let chart = Chart {
            series: vec![
                series(Shape::Bars, [Some(3.0), Some(0.0), None, Some(1.0)]),
                series(Shape::Bars, [Some(1.0), None, None, Some(1.0)]),
            ],
            ..Chart::default()
        };
        let out = drawn(&chart);
        let [first, second] = [0, 1].map(|place| {
            let start = out.find(&format!("<g class=\"c1\" data-series=\"{place}\">"));
            out[start.expect("drawn")..].split("</g>").next().expect("closed").to_owned()
        });
        assert!(first.contains("M12.75 166V44.5H199.75V166Z"), "{first}");
        assert!(second.contains("M12.75 44.5V4H199.75V44.5Z"), "{second}");
        assert_eq!((first.matches('Z').count(), second.matches('Z').count()), (2, 2));
    }

    #[test]
    fn no_data_is_said_and_a_far_level_is_only_named() {
        let level = Some(("Threshold".to_owned(), 2.0));
        let mut chart =
            Chart { series: vec![series(Shape::Line, [None; 4])], level, ..Chart::default() };
        let out = drawn(&chart);
        assert!(out.contains(">No data<") && out.contains("class=\"level\" d="), "{out}");
        chart.series[0].values = vec![Some(0.1); 4];
        let out = drawn(&chart);
        assert!(!out.contains(">No data<") && !out.contains("class=\"level\" d="), "{out}");
        assert!(out.contains("Threshold 2 s, above this chart"), "{out}");
        chart.series[0].values = vec![Some(1.9); 4];
        assert!(drawn(&chart).contains("<path class=\"level\" d=\"M0 4H850\"/>"));
    }

    #[test]
    fn data_for_the_script_has_null_where_there_is_none() {
        let values = [Some(1.0), None, Some(1.234_567_8), Some(0.0)];
        let chart = Chart { series: vec![series(Shape::Area, values)], ..Chart::default() };
        let json = serde_json::to_string(&chart.data()).expect("JSON's own types");
        assert_eq!(
            json,
            "{\"series\":[{\"name\":\"p50\",\"unit\":\" s\",\"values\":[1.0,null,1.23457,0.0]}]}"
        );
    }
}
