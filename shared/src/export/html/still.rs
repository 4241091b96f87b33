//! One chart as SVG whose horizontal axis is no time: distributions, and what would hold at every
//! limit or size.
//!
//! It stands still: the page's script, which zooms time, leaves it alone. Axes are of per cent,
//! logarithmic with round marks, or of percentiles, on which each nine has the same width. What has
//! no place on its axis is not drawn, and a chart without a line says that there is no data.
//! Nothing is computed here but places.

use std::fmt::{self, Write};

use super::words::{Short, Shown};

/// Units of a chart's width and height, and where its plot is.
const WIDTH: f64 = 560.0;
const LEFT: f64 = 64.0;
const PLOT: f64 = 480.0;
const TOP: f64 = 8.0;
const HEIGHT: f64 = 190.0;
const FOOT: f64 = 22.0;
/// Percentiles that are marked, as shares.
const PERCENTILES: [f64; 7] = [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999];
/// Most marks on a logarithmic axis.
const MARKS: usize = 8;

/// How values lie on an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Axis {
    /// By powers of ten, as far as values go.
    Log,
    /// Shares from 0 up, by how many nines they have.
    Percentile,
    /// Per cent, all of them.
    Percent,
}

/// Values of one kind: places across and values up.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// Their name.
    pub(super) name: String,
    /// Their colour, a number of the style's.
    pub(super) colour: u8,
    /// Whether it is dashed.
    pub(super) dashed: bool,
    /// Across and up, ascending across.
    pub(super) points: Vec<(f64, f64)>,
}

/// A value that others are held against: across (a limit) or up (a rate), and its name.
#[derive(Clone, Debug)]
pub(super) struct Level {
    /// What it is called.
    pub(super) name: String,
    /// Its value.
    pub(super) value: f64,
    /// Whether it is a value of the horizontal axis.
    pub(super) is_across: bool,
}

/// One chart.
#[derive(Clone, Debug)]
pub(super) struct Still {
    /// What it shows.
    pub(super) title: &'static str,
    /// How it is to be read.
    pub(super) note: String,
    /// The horizontal axis.
    pub(super) across: Axis,
    /// The vertical axis.
    pub(super) up: Axis,
    /// What is drawn.
    pub(super) lines: Vec<Line>,
    /// What it is held against.
    pub(super) levels: Vec<Level>,
}

/// An axis with its ends, both as places, and its marks as values.
struct Scale {
    axis: Axis,
    from: f64,
    to: f64,
    marks: Vec<(f64, String)>,
}

impl Scale {
    fn of(axis: Axis, values: impl Iterator<Item = f64>) -> Self {
        let places: Vec<f64> = values.filter_map(|value| place(axis, value)).collect();
        let least = places.iter().copied().fold(f64::INFINITY, f64::min);
        let most = places.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (from, to) = if least <= most { (least, most) } else { (0.0, 1.0) };
        match axis {
            Axis::Percent => {
                let at = [0.0, 25.0, 50.0, 75.0, 100.0];
                let marks = at.map(|at| (at, format!("{at} %"))).to_vec();
                Self { axis, from: 0.0, to: 100.0, marks }
            }
            Axis::Log => {
                let room = ((to - from) * 0.03).max(0.1);
                let (from, to) = (from - room, to + room);
                let marks = decades(from, to).into_iter().map(|at| (at, power(at))).collect();
                Self { axis, from, to, marks }
            }
            Axis::Percentile => {
                let to = to.max(1.0);
                let at = PERCENTILES.into_iter().filter(|&share| {
                    place(Axis::Percentile, share).is_some_and(|place| place <= to + 1e-9)
                });
                let mark = |share: f64| (share, format!("p{}", Short(share * 100.0, 3)));
                Self { axis, from: 0.0, to, marks: at.map(mark).collect() }
            }
        }
    }

    /// Where a value lies, from 0 to 1; `None` if it has no place.
    fn at(&self, value: f64) -> Option<f64> {
        let share = (place(self.axis, value)? - self.from) / (self.to - self.from);
        (-0.001..=1.001).contains(&share).then(|| share.clamp(0.0, 1.0))
    }
}

fn place(axis: Axis, value: f64) -> Option<f64> {
    let place = match axis {
        Axis::Percent => value,
        Axis::Log => value.log10(),
        Axis::Percentile => -(1.0 - value).log10(),
    };
    place.is_finite().then_some(place)
}

/// Round values between two powers of ten, and not too many of them: 1, 2 and 5 of each, or ones.
fn decades(from: f64, to: f64) -> Vec<f64> {
    let within = |digits: &[f64], step: u32| -> Vec<f64> {
        let first = from.floor();
        let tens = (0..40_u32).map(|ten| first + f64::from(ten * step));
        let tens = tens.take_while(|ten| *ten <= to);
        let values = tens.flat_map(|ten| digits.iter().map(move |digit| digit * 10_f64.powf(ten)));
        values.filter(|value| (from..=to).contains(&value.log10())).collect()
    };
    let steps: [(&[f64], u32); 6] = [
        (&[1.0, 2.0, 3.0, 4.0, 5.0, 7.0], 1),
        (&[1.0, 2.0, 5.0], 1),
        (&[1.0, 3.0], 1),
        (&[1.0], 1),
        (&[1.0], 2),
        (&[1.0], 4),
    ];
    let fits = |found: &Vec<f64>| found.len() <= MARKS;
    steps.into_iter().map(|(digits, step)| within(digits, step)).find(fits).unwrap_or_default()
}

/// A round value as people write it.
fn power(value: f64) -> String {
    let (unit, sign) = match value {
        value if value >= 1e12 => return format!("{value:.0e}"),
        value if value >= 1e9 => (1e9, "G"),
        value if value >= 1e6 => (1e6, "M"),
        value if value >= 1e4 => (1e3, "k"),
        _ => (1.0, ""),
    };
    format!("{}{sign}", Short(value / unit, 9))
}

impl Still {
    /// Draws it.
    pub(super) fn draw(&self, out: &mut String) -> fmt::Result {
        let points = || self.lines.iter().flat_map(|line| line.points.iter().copied());
        let across = Scale::of(self.across, points().map(|point| point.0));
        let up = Scale::of(self.up, points().map(|point| point.1));
        write!(out, "<figure class=\"still\"><figcaption><b>{}</b> ", Shown(self.title))?;
        write!(out, "<small>{}</small><span class=\"legend\">", Shown(&self.note))?;
        for line in &self.lines {
            let dashed = if line.dashed { " dashed" } else { "" };
            let name = Shown(&line.name);
            write!(out, "<span class=\"key c{}{dashed}\">{name}</span>", line.colour)?;
        }
        for level in &self.levels {
            write!(out, "<span class=\"key level\">{}</span>", Shown(&level.name))?;
        }
        let (height, title) = (TOP + HEIGHT + FOOT, Shown(self.title));
        write!(
            out,
            "</span></figcaption><svg class=\"frame\" viewBox=\"0 0 {WIDTH} {height}\" \
             role=\"img\" aria-label=\"{title}\">"
        )?;
        axes(&across, &up, out)?;
        self.lines(&across, &up, out)?;
        self.levels(&across, &up, out)?;
        if points().next().is_none() {
            let (x, y) = (LEFT + PLOT / 2.0, TOP + HEIGHT / 2.0);
            write!(out, "<text class=\"none\" x=\"{x}\" y=\"{y}\">No data</text>")?;
        }
        out.push_str("</svg></figure>\n");
        Ok(())
    }

    fn lines(&self, across: &Scale, up: &Scale, out: &mut String) -> fmt::Result {
        for line in &self.lines {
            let class = if line.dashed { "line dashed" } else { "line" };
            write!(out, "<g class=\"c{}\"><path class=\"{class}\" d=\"", line.colour)?;
            let mut step = 'M';
            for &(x, y) in &line.points {
                let Some((x, y)) = across.at(x).zip(up.at(y)) else { continue };
                write!(out, "{step}{} {}", Short(to_x(x), 1), Short(to_y(y), 1))?;
                step = 'L';
            }
            out.push_str("\"/></g>");
        }
        Ok(())
    }

    fn levels(&self, across: &Scale, up: &Scale, out: &mut String) -> fmt::Result {
        for level in &self.levels {
            let scale = if level.is_across { across } else { up };
            let Some(at) = scale.at(level.value) else { continue };
            if level.is_across {
                let x = Short(to_x(at), 1);
                write!(out, "<path class=\"level\" d=\"M{x} {TOP}v{HEIGHT}\"/>")?;
            } else {
                let y = Short(to_y(at), 1);
                write!(out, "<path class=\"level\" d=\"M{LEFT} {y}h{PLOT}\"/>")?;
            }
        }
        Ok(())
    }
}

fn axes(across: &Scale, up: &Scale, out: &mut String) -> fmt::Result {
    out.push_str("<g class=\"up\">");
    for (value, label) in &up.marks {
        let Some(y) = up.at(*value).map(to_y) else { continue };
        let (x, label, text) = (LEFT - 8.0, Shown(label), y + 3.5);
        write!(out, "<path d=\"M{LEFT} {y:.1}h{PLOT}\"/>")?;
        write!(out, "<text x=\"{x}\" y=\"{text:.1}\">{label}</text>")?;
    }
    out.push_str("</g><g class=\"across\">");
    for (value, label) in &across.marks {
        let Some(x) = across.at(*value).map(to_x) else { continue };
        let (y, label) = (TOP + HEIGHT + 16.0, Shown(label));
        write!(out, "<path d=\"M{x:.1} {TOP}v{HEIGHT}\"/>")?;
        write!(out, "<text x=\"{x:.1}\" y=\"{y}\">{label}</text>")?;
    }
    out.push_str("</g>");
    Ok(())
}

fn to_x(share: f64) -> f64 {
    LEFT + share * PLOT
}

fn to_y(share: f64) -> f64 {
    TOP + (1.0 - share) * HEIGHT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn still(across: Axis, up: Axis, points: Vec<(f64, f64)>) -> String {
        let line = Line { name: "all".to_owned(), colour: 0, dashed: false, points };
        let levels = vec![
            Level { name: "goal".to_owned(), value: 0.9, is_across: true },
            Level { name: "far".to_owned(), value: 1e9, is_across: false },
        ];
        let chart =
            Still { title: "T", note: "n".to_owned(), across, up, lines: vec![line], levels };
        let mut out = String::new();
        chart.draw(&mut out).expect("text");
        out
    }

    #[test]
    fn nines_and_powers_of_ten_are_marked() {
        let text =
            still(Axis::Percentile, Axis::Log, vec![(0.0, 2.0), (0.9, 30.0), (0.999, 900.0)]);
        for label in [">p0<", ">p50<", ">p90<", ">p99<", ">p99.9<", ">3<", ">10<", ">300<"] {
            assert!(text.contains(label), "{label} in {text}");
        }
        assert!(!text.contains("p99.99<"), "{text}");
        // The goal lies within, a third of the way; the other level does not.
        assert!(text.contains("<path class=\"level\" d=\"M224 8v190\"/>"), "{text}");
        assert_eq!(text.matches("class=\"level\"").count(), 1, "{text}");
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }

    #[test]
    fn what_has_no_place_is_not_drawn() {
        let text =
            still(Axis::Log, Axis::Percent, vec![(0.0, 5.0), (10.0, f64::NAN), (10.0, 50.0)]);
        assert!(text.contains("d=\"M304 103\""), "{text}");
        let none = still(Axis::Percentile, Axis::Log, Vec::new());
        assert!(none.contains("No data"), "{none}");
        for axis in [Axis::Log, Axis::Percentile, Axis::Percent] {
            let one = still(axis, axis, vec![(0.5, 0.5)]);
            assert!(!one.contains("NaN") && !one.contains("inf"), "{one}");
        }
    }
}
