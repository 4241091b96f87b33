//! Where times stand on screen, and what the pointer does there: shared by everything over time.
//!
//! Wheel zooms, drag brushes, middle or shift-drag pans, double-click fits; the chosen range, the
//! stroke being drawn and the cursor lie over whatever is shown. It knows no run and no plot, only
//! a frame and the stretch of time that it stands for.

use eframe::egui::{
    self, CursorIcon, EventFilter, PointerButton, Pos2, Rect, Response, Stroke, Ui, Vec2, pos2,
    remap,
};
use onbeat_shared::units::RunNanos;

use super::axis;
use crate::series::picture::{instant_at, seconds};
use crate::state::{Choices, Stroke as BrushStroke, TimeRange};
use crate::theme::{self, GRID, Palette, Type};

/// Wheel points that double the zoom.
pub(super) const WHEEL_DOUBLING: f32 = 240.0;
/// Nothing is drawn farther outside its frame than this (points).
const FAR: f64 = 1e6;

/// A frame whose width stands for a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeScale {
    frame: Rect,
    /// First and last time, in seconds.
    from: f64,
    to: f64,
}

impl TimeScale {
    /// A frame that shows the time between two instants in seconds.
    #[must_use]
    pub const fn new(frame: Rect, from: f64, to: f64) -> Self {
        Self { frame, from, to }
    }

    /// A frame that shows a view.
    #[must_use]
    pub fn of_view(frame: Rect, view: TimeRange) -> Self {
        Self::new(frame, seconds(view.start), seconds(view.end))
    }

    /// The frame.
    #[must_use]
    pub const fn frame(&self) -> Rect {
        self.frame
    }

    /// Where a time stands, in points; what lies far outside is brought nearer.
    #[must_use]
    pub fn x(&self, time: RunNanos) -> f32 {
        let span = (self.to - self.from).max(f64::MIN_POSITIVE);
        // A frame without width or time has every time at its left edge.
        let share = ((seconds(time) - self.from) / span).clamp(-FAR, FAR);
        let offset = (share * f64::from(self.frame.width())).clamp(-FAR, FAR);
        #[expect(clippy::cast_possible_truncation, reason = "a place on screen")]
        let x = self.frame.left() + offset as f32;
        x
    }

    /// The time at a place on the screen, brought into the frame.
    #[must_use]
    pub fn time_at(&self, at: Pos2) -> RunNanos {
        let inside = at.x.clamp(self.frame.left(), self.frame.right().max(self.frame.left()));
        let range = f64::from(self.frame.left())..=f64::from(self.frame.right());
        if self.frame.width() <= 0.0 {
            return instant_at(self.from);
        }
        instant_at(remap(f64::from(inside), range, self.from..=self.to))
    }
}

/// The marks of the time axis: where, and what is written there.
pub fn marks(scale: &TimeScale) -> Vec<(f32, String)> {
    let per_point = (scale.to - scale.from) / f64::from(scale.frame.width().max(1.0));
    let place = |mark: egui_plot::GridMark| {
        let label = axis::time_label(mark.value, mark.step_size, scale.to);
        (scale.x(instant_at(mark.value)), label)
    };
    axis::time_marks(scale.from, scale.to, per_point).into_iter().map(place).collect()
}

/// Writes the times `gap` points below the frame. None sticks out of it to the right, where its
/// card ends, or to the left, where the lowest of the heights stands.
pub fn labels_ui(ui: &Ui, scale: &TimeScale, gap: f32) {
    let palette = Palette::of(ui);
    let frame = scale.frame();
    let mut taken = frame.left();
    for (x, label) in marks(scale) {
        let galley = ui.painter().layout_no_wrap(label, Type::Small.font(), palette.weak);
        if let Some(left) = label_at(frame, x, galley.size().x, taken) {
            taken = left + galley.size().x;
            ui.painter().galley(pos2(left, frame.bottom() + gap), galley, palette.weak);
        }
    }
}

/// Where the label of a place begins: in its middle, or beside it at the frame's ends; nowhere if
/// it would lie over what is `taken` to the left of it.
fn label_at(frame: Rect, x: f32, width: f32, taken: f32) -> Option<f32> {
    let is_first = taken <= frame.left();
    let least = if is_first { frame.left() } else { taken + 2.0 * GRID };
    let left = (x - width / 2.0).min(frame.right() - width);
    let left = if is_first { left.max(least) } else { left };
    (left >= least && left + width <= frame.right() + 0.5).then_some(left)
}

/// The chosen range, the stroke being drawn and the cursor, over what is shown.
pub fn overlay_ui(ui: &Ui, scale: &TimeScale, choices: &Choices, palette: &Palette) {
    let frame = scale.frame();
    let painter = ui.painter().with_clip_rect(frame.intersect(ui.clip_rect()));
    if let Some(range) = choices.range() {
        let (left, right) = (scale.x(range.start), scale.x(range.end));
        let sides = [
            Rect::from_x_y_ranges(frame.left()..=left, frame.y_range()),
            Rect::from_x_y_ranges(right..=frame.right(), frame.y_range()),
        ];
        for side in sides.into_iter().filter(|side| side.width() > 0.0) {
            painter.rect_filled(side, 0.0, palette.veil);
        }
        for edge in [left, right] {
            painter.vline(edge, frame.y_range(), Stroke::new(1.0, palette.accent));
        }
    }
    if let Some(stroke) = choices.stroke {
        let (a, b) = (scale.x(stroke.from), scale.x(stroke.to));
        let rect = Rect::from_x_y_ranges(a.min(b)..=a.max(b), frame.y_range());
        painter.rect_filled(rect, 0.0, theme::faded(palette.accent, 0.18));
        painter.vline(a, frame.y_range(), Stroke::new(1.0, palette.accent));
        painter.vline(b, frame.y_range(), Stroke::new(1.0, palette.accent));
    } else if let Some(cursor) = choices.cursor {
        painter.vline(scale.x(cursor), frame.y_range(), Stroke::new(1.0, palette.cursor));
    }
}

/// What the pointer wants.
pub fn interact(ui: &Ui, response: &Response, scale: &TimeScale, choices: &mut Choices) {
    if let Some(pointer) = response.hover_pos() {
        choices.cursor = Some(scale.time_at(pointer));
        choices.pointed = true;
        wheel(ui, scale, pointer, choices);
    }
    let panning = response.dragged_by(PointerButton::Middle)
        || (response.dragged_by(PointerButton::Primary) && ui.input(|input| input.modifiers.shift));
    if panning && choices.stroke.is_none() {
        let per_point = choices.view().span() as f64 / f64::from(scale.frame().width().max(1.0));
        let seconds = -f64::from(response.drag_delta().x) * per_point * 1e-9;
        choices.pan_by(instant_at(seconds).0);
        ui.ctx().set_cursor_icon(CursorIcon::Grabbing);
    } else if response.dragged_by(PointerButton::Primary) {
        brush(ui, response, scale, choices);
    }
    if response.drag_stopped() {
        choices.finish_stroke();
    }
    if response.double_clicked() {
        choices.fit();
    }
    if response.has_focus() {
        keep_arrows(ui, response, scale.frame());
    }
}

/// A stroke begins with its drag and follows it; where it began it stays, whatever the plot comes
/// to show meanwhile (a run that grows). Esc drops it, and then it stays dropped until the next
/// press.
fn brush(ui: &Ui, response: &Response, scale: &TimeScale, choices: &mut Choices) {
    let (origin, now) =
        ui.input(|input| (input.pointer.press_origin(), input.pointer.interact_pos()));
    if let (Some(origin), Some(now)) = (origin, now)
        && (response.drag_started() || choices.stroke.is_some())
    {
        let begun = choices.stroke.filter(|_| !response.drag_started());
        let from = begun.map_or_else(|| scale.time_at(origin), |stroke| stroke.from);
        choices.stroke = Some(BrushStroke { from, to: scale.time_at(now) });
    }
    ui.ctx().set_cursor_icon(CursorIcon::ResizeHorizontal);
}

fn wheel(ui: &Ui, scale: &TimeScale, pointer: Pos2, choices: &mut Choices) {
    let (scroll, pinch) = ui.input(|input| (input.smooth_scroll_delta, input.zoom_delta()));
    let mut factor = f64::from(pinch);
    if scroll.y != 0.0 {
        factor *= f64::from(scroll.y / WHEEL_DOUBLING).exp2();
    }
    if factor != 1.0 {
        choices.zoom(factor, scale.time_at(pointer));
    }
    if scroll.x != 0.0 {
        choices.pan(-f64::from(scroll.x / scale.frame().width().max(1.0)));
    }
    if scroll != Vec2::ZERO {
        // The page under the plot must not scroll as well.
        ui.input_mut(|input| input.smooth_scroll_delta = Vec2::ZERO);
    }
}

/// What is focused takes the arrow keys for panning and zooming, and shows that it is focused.
pub(super) fn keep_arrows(ui: &Ui, response: &Response, frame: Rect) {
    let filter =
        EventFilter { horizontal_arrows: true, vertical_arrows: true, ..EventFilter::default() };
    ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, filter));
    let stroke = Stroke::new(2.0, Palette::of(ui).accent);
    ui.painter().rect_stroke(frame, 0.0, stroke, egui::StrokeKind::Outside);
}

#[cfg(test)]
mod tests {
    use eframe::egui::{pos2, vec2};

    use super::*;

    #[test]
    fn places_and_times_go_there_and_back() {
        let frame = Rect::from_min_size(pos2(100.0, 20.0), vec2(800.0, 300.0));
        let view = TimeRange::between(RunNanos(-5_000_000_000), RunNanos(15_000_000_000));
        let scale = TimeScale::of_view(frame, view);
        assert_eq!(scale.x(view.start), 100.0);
        assert_eq!(scale.x(view.end), 900.0);
        assert_eq!(scale.x(RunNanos(0)), 300.0);
        assert_eq!(scale.time_at(pos2(300.0, 0.0)), RunNanos(0));
        assert_eq!(scale.time_at(pos2(-50.0, 0.0)), view.start, "brought into the frame");
        assert_eq!(scale.x(RunNanos(i64::MAX)), 1e6 + 100.0, "brought nearer");
    }

    /// A damaged log may reach from one end of time to the other.
    #[test]
    fn the_closest_view_anywhere_has_instants_that_stand_apart() {
        let frame = Rect::from_min_size(pos2(0.0, 0.0), vec2(800.0, 300.0));
        let ends = [i64::MIN, i64::MIN + 1, -1, 0, 1, 10_i64.pow(15), i64::MAX - 1, i64::MAX];
        for (start, end) in ends.into_iter().flat_map(|start| ends.map(|end| (start, end))) {
            let whole = TimeRange::between(RunNanos(start), RunNanos(end));
            assert!(whole.span() >= 1_000);
            let mut choices = Choices::new(whole);
            let all = choices.view();
            for around in ends.map(RunNanos) {
                for factor in [1e30, 1e-30, 7.0] {
                    choices.zoom(factor, around);
                    choices.zoom_here(1e30);
                    choices.pan(0.3);
                    choices.step_cursor(0.3);
                    let view = choices.view();
                    assert!(all.start <= view.start && view.start < view.end);
                    assert!(view.end <= all.end);
                    if view.span() == all.span() {
                        continue;
                    }
                    let scale = TimeScale::of_view(frame, view);
                    let middle = scale.x(RunNanos(view.start.0 + view.span() / 2));
                    assert!((middle - 400.0).abs() < 2.0, "{middle}: {view:?} of {whole:?}");
                    assert!(scale.time_at(pos2(300.0, 0.0)) < scale.time_at(pos2(400.0, 0.0)));
                }
            }
        }
    }

    #[test]
    fn labels_stay_in_their_frame_and_apart() {
        let frame = Rect::from_min_size(pos2(100.0, 20.0), vec2(200.0, 300.0));
        let edge = frame.left();
        assert_eq!(label_at(frame, 200.0, 40.0, edge), Some(180.0));
        assert_eq!(label_at(frame, 104.0, 40.0, edge), Some(100.0), "not over the heights");
        assert_eq!(label_at(frame, 299.0, 40.0, 180.0), Some(260.0), "not out of the card");
        assert_eq!(label_at(frame, 200.0, 40.0, 176.0), None, "not over the one before");
        assert_eq!(label_at(frame, 200.0, 240.0, edge), None, "no room at all");
    }

    #[test]
    fn a_frame_without_width_does_no_harm() {
        let frame = Rect::from_min_size(pos2(100.0, 20.0), vec2(0.0, 0.0));
        let scale = TimeScale::new(frame, 3.0, 3.0);
        assert!(scale.x(RunNanos(0)).is_finite());
        assert_eq!(scale.time_at(pos2(100.0, 0.0)), RunNanos(3_000_000_000));
    }
}
