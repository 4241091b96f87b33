//! Layers on top of each other over time: how many users did what.
//!
//! Few changes are drawn as they are; of many each step shows the mean, weighted by time, so that
//! the layers always add up to what they are a part of.

use std::sync::Arc;

use egui_plot::PlotPoint;
use onbeat_shared::units::RunNanos;

use crate::opened::OpenedRun;
use crate::quantity;
use crate::series::picture::{
    Band, Cell, Heading, HeightAxis, Line, Picture, Readout, Rows, Steps, seconds,
};
use crate::series::{STEPS, from_zero, with_margin, within_run};
use crate::state::TimeRange;

/// Most layers.
pub(super) const LAYERS: usize = 6;
/// Up to so many changes near the view are drawn as they are.
const FEW: usize = 1_200;
/// How strongly a layer is tinted.
const TINT: f32 = 0.55;

/// One instant from which on each layer has a height.
pub(super) type Change = (RunNanos, [f32; LAYERS]);

/// Layers, from the bottom up.
pub(super) struct Stack {
    /// Their names and colours.
    pub(super) layers: Vec<(&'static str, usize)>,
    /// Their heights, by time.
    pub(super) changes: Vec<Change>,
    /// What they count.
    pub(super) unit: &'static str,
}

/// A staircase of layers near a view.
struct Stairs {
    /// Where each stair begins and ends, in seconds.
    spans: Vec<(f64, f64)>,
    /// The heights of each.
    heights: Vec<[f32; LAYERS]>,
    note: String,
}

impl Stack {
    /// The plot for a view; `empty` says why there is none if nothing ever has a height.
    pub(super) fn picture(&self, opened: &OpenedRun, view: TimeRange, empty: &str) -> Picture {
        let wide = with_margin(opened, view);
        let stairs = self.stairs(opened, wide, view);
        let layers = self.layers.len();
        let total = |heights: &[f32; LAYERS]| heights[..layers].iter().sum::<f32>();
        let (from, to) = (seconds(view.start), seconds(view.end));
        let in_view = stairs.spans.iter().zip(&stairs.heights);
        let largest = in_view
            .filter(|((start, end), _)| *start < to && *end > from)
            .map(|(_, heights)| total(heights))
            .fold(0.0, f32::max);
        let nothing = self.changes.iter().all(|(_, heights)| total(heights) == 0.0);
        let (bands, lines) = self.drawn(&stairs);
        Picture {
            bands,
            lines,
            axis: HeightAxis::Number { unit: self.unit },
            bounds: from_zero(f64::from(largest)),
            table: self.table(opened, within_run(opened, view)),
            summary: self.summary(view, largest),
            note: stairs.note,
            empty: nothing.then(|| empty.to_owned()),
            ..Picture::default()
        }
    }

    /// The heights at an instant.
    fn at(&self, time: RunNanos) -> Option<[f32; LAYERS]> {
        let after = self.changes.partition_point(|change| change.0 <= time);
        after.checked_sub(1).map(|place| self.changes[place].1)
    }

    /// The changes within a stretch, cut to it, with the heights that hold at its start.
    fn within(&self, range: TimeRange) -> Vec<(RunNanos, RunNanos, [f32; LAYERS])> {
        let from = self.changes.partition_point(|change| change.0 <= range.start).saturating_sub(1);
        let to = self.changes.partition_point(|change| change.0 < range.end).max(from);
        let ends = self.changes[from..to].iter().skip(1).map(|change| change.0);
        let parts = self.changes[from..to].iter().zip(ends.chain([range.end]));
        parts
            .map(|(&(start, heights), end)| (start.max(range.start), end, heights))
            .filter(|(start, end, _)| start < end)
            .collect()
    }

    /// The mean of each layer over a stretch, weighted by time; `None` before the first change.
    fn mean(&self, range: TimeRange) -> Option<[f32; LAYERS]> {
        let parts = self.within(range);
        let first = parts.first()?.0;
        let length = range.end.0.saturating_sub(first.0).max(1) as f64;
        let mut sums = [0.0_f64; LAYERS];
        for (start, end, heights) in parts {
            let share = end.0.saturating_sub(start.0) as f64 / length;
            for (sum, height) in sums.iter_mut().zip(heights) {
                *sum += f64::from(height) * share;
            }
        }
        #[expect(clippy::cast_possible_truncation, reason = "a height on screen")]
        let mean = sums.map(|sum| sum as f32);
        Some(mean)
    }

    fn stairs(&self, opened: &OpenedRun, wide: TimeRange, view: TimeRange) -> Stairs {
        let known = wide.clipped(opened.whole()).unwrap_or(wide);
        let near = self.within(known);
        if near.len() <= FEW {
            return Stairs {
                spans: near.iter().map(|part| (seconds(part.0), seconds(part.1))).collect(),
                heights: near.iter().map(|part| part.2).collect(),
                note: "every change".to_owned(),
            };
        }
        let steps = Steps::of_width(known, Steps::covering(view, STEPS).width);
        let (mut spans, mut heights) = (Vec::new(), Vec::new());
        for place in 0..steps.count {
            let step = TimeRange { start: steps.start_of(place), end: steps.start_of(place + 1) };
            let Some(step) = step.clipped(known) else { continue };
            if let Some(mean) = self.mean(step) {
                spans.push((seconds(step.start), seconds(step.end)));
                heights.push(mean);
            }
        }
        let note = format!("mean of {}", quantity::duration(steps.width as f64));
        Stairs { spans, heights, note }
    }

    /// Each layer's area, and its upper edge as a line with the layer's own height as its value.
    fn drawn(&self, stairs: &Stairs) -> (Vec<Band>, Vec<Line>) {
        let mut low = vec![0.0_f64; 2 * stairs.spans.len()];
        let xs: Vec<f64> = stairs.spans.iter().flat_map(|&(start, end)| [start, end]).collect();
        let (mut bands, mut lines) = (Vec::new(), Vec::new());
        for (layer, &(name, colour)) in self.layers.iter().enumerate() {
            let own = stairs.heights.iter().flat_map(|heights| [f64::from(heights[layer]); 2]);
            let high: Vec<f64> = low.iter().zip(own).map(|(low, own)| low + own).collect();
            let segments = edge(&xs, &low, &high);
            let steps: Vec<(RunNanos, f64)> =
                self.changes.iter().map(|change| (change.0, f64::from(change.1[layer]))).collect();
            lines.push(Line {
                name,
                colour,
                dashed: false,
                filled: false,
                segments,
                readout: Readout::Steps(Arc::from(steps)),
            });
            bands.push(Band {
                name,
                colour,
                strength: TINT,
                xs: xs.clone(),
                low,
                high: high.clone(),
            });
            low = high;
        }
        (bands, lines)
    }

    fn table(&self, opened: &OpenedRun, view: TimeRange) -> Rows {
        let steps = Steps::covering(view, STEPS);
        let mut columns = vec![Heading::new("from", Cell::Instant(steps.width as f64))];
        columns.extend(self.layers.iter().map(|(name, _)| Heading::new(*name, Cell::Number)));
        let mut rows = Rows::new(columns);
        for place in 0..steps.count {
            let start = steps.start_of(place);
            let step = TimeRange { start, end: steps.start_of(place + 1) };
            let mean = step.clipped(opened.whole()).and_then(|step| self.mean(step));
            let mut row = vec![Some(start.0 as f64)];
            let layers = 0..self.layers.len();
            row.extend(layers.map(|layer| mean.map(|mean| f64::from(mean[layer]))));
            rows.push(&row);
        }
        rows
    }

    fn summary(&self, view: TimeRange, largest: f32) -> String {
        let span = view.span() as f64;
        let words = |time: RunNanos| quantity::instant(time.0 as f64, span);
        let at_end = self.at(view.end).map(|heights| {
            let layers = self.layers.iter().zip(heights);
            let parts: Vec<_> = layers
                .map(|((name, _), height)| format!("{} {name}", quantity::number(height.into())))
                .collect();
            format!("; at the end {}", parts.join(", "))
        });
        format!(
            "From {} to {}: at most {} {}{}.",
            words(view.start),
            words(view.end),
            quantity::number(largest.into()),
            self.unit,
            at_end.unwrap_or_default()
        )
    }
}

/// The upper edge of a layer, where it has a height at all.
fn edge(xs: &[f64], low: &[f64], high: &[f64]) -> Vec<Vec<PlotPoint>> {
    let points: Vec<Option<PlotPoint>> = xs
        .iter()
        .zip(low.iter().zip(high))
        .map(|(&x, (low, &high))| (high > *low).then(|| PlotPoint::new(x, high)))
        .collect();
    points
        .split(Option::is_none)
        .filter(|part| !part.is_empty())
        .map(|part| part.iter().flatten().copied().collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack() -> Stack {
        let heights = |a: f32, b: f32| [a, b, 0.0, 0.0, 0.0, 0.0];
        Stack {
            layers: vec![("a", 0), ("b", 1)],
            changes: vec![
                (RunNanos(0), heights(1.0, 0.0)),
                (RunNanos(10), heights(3.0, 1.0)),
                (RunNanos(30), heights(0.0, 5.0)),
            ],
            unit: "users",
        }
    }

    fn range(start: i64, end: i64) -> TimeRange {
        TimeRange { start: RunNanos(start), end: RunNanos(end) }
    }

    #[test]
    fn means_are_weighted_by_time() {
        let stack = stack();
        assert_eq!(stack.mean(range(0, 20)).map(|mean| mean[..2].to_vec()), Some(vec![2.0, 0.5]));
        assert_eq!(stack.mean(range(12, 14)).map(|mean| mean[0]), Some(3.0));
        assert_eq!(stack.mean(range(40, 90)).map(|mean| mean[1]), Some(5.0));
        assert_eq!(stack.mean(range(-10, 0)), None, "nothing is known before the first change");
        assert_eq!(stack.mean(range(-10, 10)).map(|mean| mean[0]), Some(1.0), "of what is known");
    }

    #[test]
    fn layers_stand_on_each_other() {
        let stack = stack();
        let near = stack.within(range(0, 40));
        let stairs = Stairs {
            spans: near.iter().map(|part| (seconds(part.0), seconds(part.1))).collect(),
            heights: near.iter().map(|part| part.2).collect(),
            note: String::new(),
        };
        let (bands, lines) = stack.drawn(&stairs);
        assert_eq!(bands[0].high, [1.0, 1.0, 3.0, 3.0, 0.0, 0.0]);
        assert_eq!(bands[1].low, bands[0].high);
        assert_eq!(bands[1].high, [1.0, 1.0, 4.0, 4.0, 5.0, 5.0]);
        assert_eq!(lines[1].readout.at(RunNanos(15)), Some(1.0), "its own height");
    }
}
