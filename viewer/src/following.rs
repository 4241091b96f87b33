//! Says that a run is still being read or written, and lets the user stop it from moving.
//!
//! Always as wide as its longest words, so that nothing beside it jumps.

use eframe::egui::{self, Align, Button, Layout, RichText, Ui, vec2};

use crate::load::Phase;
use crate::tabs::OpenTab;
use crate::theme::{GRID, Palette, Type};

/// Accessible name of the switch.
pub const FOLLOW: &str = "Follow the run";

const READING_WIDTH: f32 = 96.0;
const LIVE_WIDTH: f32 = 112.0;
const HEIGHT: f32 = 26.0;
/// Radius of the dot that means "live".
const DOT: f32 = 4.0;

/// The room that it takes.
#[must_use]
pub fn width(open: &OpenTab) -> f32 {
    match open.phase() {
        Phase::Reading => READING_WIDTH + 2.0 * GRID,
        Phase::Live => LIVE_WIDTH + 2.0 * GRID,
        Phase::Waiting | Phase::Ended if open.is_paused() => LIVE_WIDTH + 2.0 * GRID,
        Phase::Waiting | Phase::Ended => 0.0,
    }
}

/// Draws it, if there is anything to say.
pub fn show(ui: &mut Ui, open: &mut OpenTab) {
    match open.phase() {
        Phase::Reading => reading_ui(ui, open.progress()),
        Phase::Live => live_ui(ui, open),
        Phase::Waiting | Phase::Ended if open.is_paused() => live_ui(ui, open),
        Phase::Waiting | Phase::Ended => {}
    }
}

fn reading_ui(ui: &mut Ui, progress: f32) {
    let palette = Palette::of(ui);
    let words = format!("Reading… {:.0} %", (progress * 100.0).floor());
    let layout = Layout::left_to_right(Align::Center);
    let place = ui.allocate_ui_with_layout(vec2(READING_WIDTH, HEIGHT), layout, |ui| {
        ui.set_min_width(READING_WIDTH);
        let text = RichText::new(words).font(Type::Small.font()).color(palette.accent);
        ui.add(egui::Label::new(text).selectable(false));
    });
    place.response.widget_info(|| {
        let mut info =
            egui::WidgetInfo::labeled(egui::Role::ProgressIndicator, true, "Reading the run");
        info.value = Some(f64::from(progress));
        info
    });
}

fn live_ui(ui: &mut Ui, open: &mut OpenTab) {
    let palette = Palette::of(ui);
    let follows = !open.is_paused();
    let (words, colour, explanation) = if follows {
        ("Following", palette.good, "The run is being written. Click to hold still what is shown")
    } else {
        ("Held still", palette.weak, "Click to show what has happened since, and to follow the run")
    };
    let text = RichText::new(format!("    {words}")).font(Type::Small.font());
    let button = Button::selectable(follows, text).min_size(vec2(LIVE_WIDTH, HEIGHT));
    let response = ui.add(button);
    let dot = response.rect.left_center() + vec2(3.0 * GRID, 0.0);
    ui.painter().circle_filled(dot, DOT, colour);
    response
        .widget_info(|| egui::WidgetInfo::selected(egui::Role::CheckBox, true, follows, FOLLOW));
    if response.on_hover_text(explanation).clicked() {
        open.hold(follows);
    }
}
