//! What a plot that is not over time shows: the whole, or the part that its user zoomed into.
//!
//! Each such plot has a view of its own, kept by the plot's id in
//! [`Choices`](crate::state::Choices). Plain values and the rules by which they change; places are
//! those of the plot's axes. A view never leaves what there is to see.

use std::hash::{Hash, Hasher};

use crate::series::axes::{Across, Axes};

/// A rectangle of a plot, in places of its axes.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Left and right.
    pub xs: (f64, f64),
    /// Bottom and top.
    pub ys: (f64, f64),
}

impl Bounds {
    /// The same rectangle as whole numbers, for comparing and hashing.
    const fn bits(&self) -> [u64; 4] {
        [self.xs.0.to_bits(), self.xs.1.to_bits(), self.ys.0.to_bits(), self.ys.1.to_bits()]
    }

    /// Whether a place lies in it.
    #[must_use]
    pub fn contains(&self, x: f64, y: f64) -> bool {
        (self.xs.0..=self.xs.1).contains(&x) && (self.ys.0..=self.ys.1).contains(&y)
    }

    /// It with `share` of its size added on every side, as far as `whole` reaches.
    #[must_use]
    pub fn widened(&self, share: f64, whole: &Self) -> Self {
        let widened = |(low, high): (f64, f64), all: (f64, f64)| {
            let more = share * (high - low);
            ((low - more).max(all.0), (high + more).min(all.1))
        };
        Self { xs: widened(self.xs, whole.xs), ys: widened(self.ys, whole.ys) }
    }
}

impl PartialEq for Bounds {
    fn eq(&self, other: &Self) -> bool {
        self.bits() == other.bits()
    }
}

impl Eq for Bounds {}

impl Hash for Bounds {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bits().hash(state);
    }
}

/// What one plot shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct XyView {
    /// The part that is shown, if it is not all.
    zoomed: Option<Bounds>,
    /// The axes that the part was chosen on: on others its places mean nothing.
    axes: Option<Axes>,
    /// Where the pointer is across the plot (place), or where keys moved the cursor.
    pub cursor: Option<f64>,
}

/// What there is to see in a plot, and on which axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sight {
    /// All of it.
    pub whole: Bounds,
    /// The axes.
    pub axes: Axes,
}

impl Sight {
    fn narrowest(&self) -> (f64, f64) {
        let (width, height) =
            (self.whole.xs.1 - self.whole.xs.0, self.whole.ys.1 - self.whole.ys.0);
        let across = match self.axes.across {
            Across::Value(axis) => axis.narrowest(width),
            Across::Time => width * 1e-6,
        };
        (across, self.axes.height.narrowest(height))
    }
}

impl XyView {
    /// What is shown of all there is to see. A part chosen on other axes is forgotten.
    pub fn shown(&mut self, sight: &Sight) -> Bounds {
        if self.axes != Some(sight.axes) {
            *self = Self { zoomed: None, axes: Some(sight.axes), cursor: None };
        }
        let least = sight.narrowest();
        self.zoomed.map_or(sight.whole, |part| clamped(part, &sight.whole, least))
    }

    /// The part that was zoomed into, if any, for those who make a picture of it.
    #[must_use]
    pub const fn zoomed(&self) -> Option<Bounds> {
        self.zoomed
    }

    /// Zooms by `factor` (above 1: closer) around a place.
    pub fn zoom(&mut self, sight: &Sight, factor: f64, (x, y): (f64, f64)) {
        if !(factor.is_finite() && factor > 0.0) {
            return;
        }
        let Bounds { xs, ys } = self.shown(sight);
        let around = |(low, high): (f64, f64), at: f64| {
            (at - (at - low) / factor, at + (high - at) / factor)
        };
        let part = Bounds { xs: around(xs, x), ys: around(ys, y) };
        self.show(sight, part);
    }

    /// Moves by shares of what is shown: to the right and up.
    pub fn pan(&mut self, sight: &Sight, across: f64, up: f64) {
        let Bounds { xs, ys } = self.shown(sight);
        let moved = |(low, high): (f64, f64), share: f64| {
            let by = share * (high - low);
            (low + by, high + by)
        };
        let part = Bounds { xs: moved(xs, across), ys: moved(ys, up) };
        self.show(sight, part);
    }

    /// Moves the cursor by a share of what is shown, from its middle when there is none yet.
    pub fn step_cursor(&mut self, sight: &Sight, share: f64) {
        let (low, high) = self.shown(sight).xs;
        let from = self.cursor.unwrap_or_else(|| f64::midpoint(low, high));
        self.cursor = Some((from + share * (high - low)).clamp(low, high));
    }

    /// Shows everything.
    pub const fn fit(&mut self) {
        self.zoomed = None;
    }

    fn show(&mut self, sight: &Sight, part: Bounds) {
        let part = clamped(part, &sight.whole, sight.narrowest());
        self.zoomed = (part != sight.whole).then_some(part);
    }
}

/// A part moved and resized until it lies in the whole and is no smaller than `least`.
fn clamped(part: Bounds, whole: &Bounds, least: (f64, f64)) -> Bounds {
    let clamp = |(low, high): (f64, f64), all: (f64, f64), least: f64| {
        let span = (high - low).clamp(least.min(all.1 - all.0), all.1 - all.0);
        if !span.is_finite() || span >= all.1 - all.0 {
            return all;
        }
        // What is too narrow grows around its middle.
        let low = f64::midpoint(low, high) - span / 2.0;
        let low = low.clamp(all.0, all.1 - span);
        (low, low + span)
    };
    Bounds { xs: clamp(part.xs, whole.xs, least.0), ys: clamp(part.ys, whole.ys, least.1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::axes::{Axis, Unit};
    use crate::series::picture::HeightAxis;

    fn sight() -> Sight {
        let across = Axis::linear("x", Unit::Number(""));
        let height = HeightAxis::Of(Axis::log("y", Unit::Number("")));
        Sight {
            whole: Bounds { xs: (0.0, 100.0), ys: (0.0, 4.0) },
            axes: Axes { across: Across::Value(across), height },
        }
    }

    #[test]
    fn zooming_keeps_the_place_under_the_pointer() {
        let (mut view, sight) = (XyView::default(), sight());
        view.zoom(&sight, 4.0, (25.0, 1.0));
        let Bounds { xs, ys } = view.shown(&sight);
        assert_eq!((xs, ys), ((18.75, 43.75), (0.75, 1.75)));
        view.zoom(&sight, 0.25, (25.0, 1.0));
        assert_eq!(view.shown(&sight), sight.whole);
        assert_eq!(view.zoomed(), None, "all of it is no part");
        view.zoom(&sight, f64::NAN, (0.0, 0.0));
        assert_eq!(view.zoomed(), None);
    }

    #[test]
    fn a_view_never_leaves_what_there_is_nor_becomes_a_point() {
        let (mut view, sight) = (XyView::default(), sight());
        view.zoom(&sight, 1e12, (100.0, 4.0));
        let Bounds { xs, ys } = view.shown(&sight);
        assert!((xs.1 - xs.0 - 0.1).abs() < 1e-9 && (ys.1 - ys.0 - 0.05).abs() < 1e-9);
        view.pan(&sight, 1e9, -1e9);
        let Bounds { xs, ys } = view.shown(&sight);
        assert_eq!((xs.1, ys.0), (100.0, 0.0));
        view.fit();
        assert_eq!(view.shown(&sight), sight.whole);
        view.step_cursor(&sight, 7.0);
        assert_eq!(view.cursor, Some(100.0));
    }

    #[test]
    fn other_axes_forget_the_part_and_other_data_move_it() {
        let (mut view, mut sight) = (XyView::default(), sight());
        view.zoom(&sight, 4.0, (90.0, 3.0));
        sight.whole.xs = (0.0, 50.0);
        assert_eq!(view.shown(&sight).xs, (25.0, 50.0), "moved into what is left");
        sight.axes.height = HeightAxis::Number { unit: "" };
        assert_eq!(view.shown(&sight), sight.whole);
    }
}
