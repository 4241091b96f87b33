//! The sheet of keys: everything in [`crate::keys`] and the panels' keys, on one page.
//!
//! It declares no key. What does not fit the window scrolls.

use eframe::egui::{self, Align, Context, Id, Layout, Modal, RichText, ScrollArea, Ui, vec2};

use crate::keys::{BINDINGS, LOCAL, MOUSE, Section, panel_key};
use crate::panels::PANELS;
use crate::theme::{GRID, Palette, Type};

/// Width of each column, and the gap between them.
const COLUMN: f32 = 366.0;
const GAP: f32 = 24.0;
/// Width of the keys themselves.
const KEYS_WIDTH: f32 = 92.0;
const PANEL_KEY_WIDTH: f32 = 24.0;
/// Height of a line.
const ROW: f32 = 22.0;

/// Draws it. Returns whether it should close.
pub fn show(ctx: &Context) -> bool {
    let frame = egui::Frame::window(&ctx.global_style()).inner_margin(20);
    let shown = Modal::new(Id::unique("keys")).frame(frame).show(ctx, |ui| {
        let room = ctx.content_rect().size() - vec2(64.0, 110.0);
        let columns = if room.x >= 3.0 * COLUMN + 2.0 * GAP { 3 } else { 2 };
        let width = columns as f32 * COLUMN + (columns - 1) as f32 * GAP;
        ui.set_width(width.min(room.x));
        let id = ui.unique_id();
        ctx.accesskit_node_builder(id, |node| {
            node.set_role(egui::accesskit::Role::Dialog);
            node.set_label("Keys and mouse, sheet");
        });
        let mut close = false;
        ui.horizontal(|ui| {
            ui.label(RichText::new("Keys and mouse").font(Type::Heading.font()));
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                close = ui.button("Close").clicked();
            });
        });
        ui.add_space(GRID);
        let area = ScrollArea::both()
            .max_height(room.y)
            // What lies over the page has room of its own, whatever it was given at first.
            .min_scrolled_height(room.y)
            .auto_shrink([false, true]);
        area.show(ui, |ui| columns_ui(ui, columns));
        close
    });
    shown.inner || shown.should_close()
}

fn columns_ui(ui: &mut Ui, columns: usize) {
    ui.horizontal_top(|ui| {
        ui.spacing_mut().item_spacing.x = GAP;
        ui.spacing_mut().interact_size.y = ROW;
        column_ui(ui, |ui| {
            panels_ui(ui);
            bindings_ui(ui, "Time", Section::Time);
            if columns < 3 {
                mouse_ui(ui);
            }
        });
        column_ui(ui, |ui| {
            bindings_ui(ui, "Runs and window", Section::Window);
            bindings_ui(ui, "Panels side by side", Section::Tiles);
            if columns < 3 {
                local_ui(ui);
            } else {
                mouse_ui(ui);
            }
        });
        if columns > 2 {
            column_ui(ui, local_ui);
        }
    });
}

fn column_ui(ui: &mut Ui, draw: impl FnOnce(&mut Ui)) {
    ui.vertical(|ui| {
        ui.set_width(COLUMN);
        ui.spacing_mut().item_spacing.y = 0.0;
        draw(ui);
    });
}

fn bindings_ui(ui: &mut Ui, title: &str, section: Section) {
    section_ui(ui, title);
    for binding in BINDINGS.iter().filter(|binding| binding.section == section) {
        key_ui(ui, binding.shown, binding.does);
    }
}

/// The panels, in two columns of their own: their keys are short.
fn panels_ui(ui: &mut Ui) {
    section_ui(ui, "Panels");
    let rows = PANELS.len().div_ceil(2);
    let line = |ui: &mut Ui, place: usize| {
        if let Some(panel) = PANELS.get(place) {
            key_of_width_ui(ui, PANEL_KEY_WIDTH, panel_key(place), panel.name);
        }
    };
    let (half, layout) = (vec2(COLUMN / 2.0, ROW), Layout::left_to_right(Align::Center));
    for row in 0..rows {
        ui.horizontal(|ui| {
            ui.spacing_mut().item_spacing.x = 0.0;
            ui.allocate_ui_with_layout(half, layout, |ui| {
                ui.set_min_width(half.x);
                line(ui, row);
            });
            line(ui, rows + row);
        });
    }
}

fn mouse_ui(ui: &mut Ui) {
    section_ui(ui, "Mouse, in plots over time");
    for (shown, does) in MOUSE {
        key_ui(ui, shown, does);
    }
}

/// Keys that single widgets take.
fn local_ui(ui: &mut Ui) {
    for local in LOCAL {
        section_ui(ui, local.place);
        for (shown, does) in local.lines {
            key_ui(ui, shown, does);
        }
    }
}

fn section_ui(ui: &mut Ui, words: &str) {
    let palette = Palette::of(ui);
    ui.add_space(2.0 * GRID);
    ui.label(RichText::new(words).font(Type::Strong.font()).color(palette.weak));
    ui.add_space(GRID);
}

fn key_ui(ui: &mut Ui, shown: &str, does: &str) {
    key_of_width_ui(ui, KEYS_WIDTH, shown, does);
}

fn key_of_width_ui(ui: &mut Ui, width: f32, shown: &str, does: &str) {
    ui.horizontal(|ui| {
        ui.spacing_mut().item_spacing.x = 2.0 * GRID;
        let size = vec2(width, ROW);
        ui.allocate_ui_with_layout(size, Layout::left_to_right(Align::Center), |ui| {
            ui.set_min_width(size.x);
            ui.label(RichText::new(shown).font(Type::Strong.font()));
        });
        ui.label(does);
    });
}
