//! A vertical scroll bar over any number of rows, with its place kept in rows.
//!
//! For what is drawn by hand: egui's own areas count in points, which are too coarse for millions
//! of rows. The place is the caller's; the bar only changes it.

use eframe::egui::{self, Rect, Sense, Ui, vec2};

use crate::theme::{self, Palette};

/// Width of the bar (points).
pub const WIDTH: f32 = 8.0;
/// The shortest handle (points).
const HANDLE: f32 = 24.0;

/// Brings a place into what can be shown: `total` rows, of which `page` fit.
#[must_use]
pub fn clamped(top: f64, total: usize, page: f64) -> f64 {
    let last = (total as f64 - page).max(0.0);
    if top.is_finite() { top.clamp(0.0, last) } else { 0.0 }
}

/// Draws the bar into `rect`; dragging it changes `top`. Nothing is drawn where all rows fit.
pub fn show(ui: &Ui, rect: Rect, name: &str, total: usize, page: f64, top: &mut f64) {
    let rows = total as f64;
    if rows <= page || rect.height() <= HANDLE {
        return;
    }
    let palette = Palette::of(ui);
    let response = ui.interact(rect, ui.scope_id().with(name), Sense::drag());
    let room = rect.height();
    #[expect(clippy::cast_possible_truncation, reason = "a share of a height on screen")]
    let handle = (room * (page / rows) as f32).max(HANDLE).min(room);
    let way = f64::from((room - handle).max(1.0));
    let last = rows - page;
    if response.dragged() {
        *top = clamped(*top + f64::from(response.drag_delta().y) / way * last, total, page);
    }
    #[expect(clippy::cast_possible_truncation, reason = "a place on screen")]
    let offset = (*top / last * way) as f32;
    let at = Rect::from_min_size(rect.min + vec2(0.0, offset), vec2(rect.width(), handle));
    let strength = if response.dragged() || response.hovered() { 0.9 } else { 0.45 };
    let colour = theme::faded(palette.weak, strength);
    ui.painter().rect_filled(at.shrink2(vec2(1.5, 1.0)), 3.0, colour);
    let place = *top;
    response.widget_info(|| {
        egui::WidgetInfo::slider(true, place, format!("{name}: first row of {total}"))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_stay_within_the_rows() {
        assert_eq!(clamped(-3.0, 100, 10.0), 0.0);
        assert_eq!(clamped(95.0, 100, 10.0), 90.0);
        assert_eq!(clamped(5.0, 3, 10.0), 0.0, "all fit");
        assert_eq!(clamped(f64::NAN, 100, 10.0), 0.0);
    }
}
