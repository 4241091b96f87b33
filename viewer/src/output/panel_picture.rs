//! A panel as a picture: twice as fine as the screen, without bars, with a line above it that says
//! of which run and which requests it speaks.

use std::{cell::Cell, sync::Arc};

use eframe::egui::{
    self, CentralPanel, Context, Frame, Margin, RichText, ScrollArea, ThemePreference, Ui, vec2,
};

use super::order::Order;
use crate::bars;
use crate::derive::Derived;
use crate::headless::Headless;
use crate::panels::{PANELS, Scene};
use crate::raster::Bitmap;
use crate::theme::{self, GRID, GUTTER, Palette, Type};

/// Pixels to a point.
const SCALE: f32 = 2.0;
/// The line above the panel, with the gap below it.
const LINE: f32 = 34.0;
/// Smallest and largest sides of a picture (points).
const SIDES: (f32, f32) = (480.0, 4_000.0);

/// Draws the panel, as high as what is in it; `None` once `go_on` says no.
pub(super) fn picture(order: &Order, go_on: &dyn Fn() -> bool) -> Option<Bitmap> {
    let side = |points: f32| points.round().clamp(SIDES.0, SIDES.1);
    let mut screen = Headless::new(vec2(side(order.size.x), side(order.size.y)), SCALE);
    let theme = if order.dark { ThemePreference::Dark } else { ThemePreference::Light };
    theme::install(screen.context(), theme);
    let ground = |_: &Context| Palette::for_mode(order.dark).page;
    let derived = Derived::inline(Arc::clone(&order.opened));
    let mut choices = order.choices.clone();
    choices.stroke = None;
    choices.cursor = None;
    let needed = Cell::new(0.0_f32);
    let mut draw = |ui: &mut Ui| {
        // Nobody is there to be asked.
        let mut wish = Vec::new();
        let others = &order.others;
        let mut scene = Scene { derived: &derived, choices: &mut choices, others, wish: &mut wish };
        needed.set(page_ui(ui, order, &mut scene));
        true
    };
    let picture = screen.picture(ground, go_on, &mut draw)?;
    let height = needed.get().ceil();
    if height <= screen.size().y {
        return Some(picture);
    }
    screen.set_height(side(height));
    screen.picture(ground, go_on, &mut draw)
}

/// Draws the page and says how high it would have to be to show everything.
fn page_ui(ui: &mut Ui, order: &Order, scene: &mut Scene<'_>) -> f32 {
    let palette = Palette::of(ui);
    let frame = Frame::new().fill(palette.page).inner_margin(Margin::same(12));
    CentralPanel::default()
        .frame(frame)
        .show(ui, |ui| {
            line_ui(ui, order.panel, &order.of, scene);
            let height = ui.available_height();
            let shown = ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| {
                ui.set_max_height(height);
                bars::incomplete_ui(ui, scene.derived.subject());
                (PANELS[order.panel].draw)(ui, scene);
            });
            shown.content_size.y + LINE + 2.0 * GUTTER
        })
        .inner
}

fn line_ui(ui: &mut Ui, panel: usize, of: &str, scene: &Scene<'_>) {
    let palette = Palette::of(ui);
    let opened = scene.derived.subject();
    let size = vec2(ui.available_width(), LINE - GUTTER);
    let layout = egui::Layout::left_to_right(egui::Align::Center);
    ui.allocate_ui_with_layout(size, layout, |ui| {
        ui.set_min_height(size.y);
        ui.spacing_mut().item_spacing.x = 2.0 * GRID;
        ui.label(RichText::new(PANELS[panel].name).font(Type::Heading.font()));
        ui.label(RichText::new(opened.name()).font(Type::Strong.font()));
        ui.add(egui::Label::new(RichText::new(of).color(palette.weak)).truncate());
    });
    ui.add_space(GUTTER - ui.spacing().item_spacing.y);
}
