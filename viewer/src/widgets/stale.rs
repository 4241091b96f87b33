//! Numbers of an older question, shown until those of the newer one are there.
//!
//! They fade slowly: an answer that takes a frame or two, as while a line is dragged, must not make
//! the page flicker, and one that takes long must not pass for the right one.

use eframe::egui::Ui;

/// Seconds until old numbers look as old as they can.
const FADING: f32 = 0.4;
/// How much of them is left then.
const OLDEST: f32 = 0.45;

/// Fades everything that is drawn into this `Ui` from here on, if it is old; `what` tells it from
/// other such things on the page.
pub fn fade(ui: &mut Ui, what: &'static str, fresh: bool) {
    let id = ui.scope_id().with(("stale", what));
    let age = ui.ctx().animate_bool_with_time(id, !fresh, FADING);
    if age > 0.0 {
        ui.multiply_opacity(1.0 - (1.0 - OLDEST) * age);
    }
}
