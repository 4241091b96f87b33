//! The page of an open run: the line about the range, and below it one panel or several, side by
//! side.
//!
//! All panels draw from the same run and the same choices, so range, view, cursor and filter are
//! one in all of them. With several, each stands in a tile with a line of its own that names it and
//! lets another be chosen; where the window is too small for all of them, the one with the focus
//! has the page.

use eframe::egui::{
    self, Align, CentralPanel, ComboBox, CursorIcon, Frame, Layout, Margin, Panel, Rect, RichText,
    ScrollArea, Sense, Stroke, Ui, UiBuilder, vec2,
};

use crate::bars::{self, RangeLine};
use crate::filter_line::{self, FilterLine};
use crate::panels::{Other, PANELS, PanelWish, Scene};
use crate::tabs::OpenTab;
use crate::theme::{GRID, Palette, Type};
use crate::tiles::{Border, Direction, Placed, Tiles};

/// Height of the line above a tile's panel.
const TILE_LINE: f32 = 28.0;

/// Draws the page. Panels leave in `wishes` what they ask of the window.
pub fn show(
    ui: &mut Ui,
    open: &mut OpenTab,
    tiles: &mut Tiles,
    (range_line, filter_line): (&mut RangeLine, &mut FilterLine),
    others: &[Other],
    wishes: &mut Vec<PanelWish>,
) {
    let palette = *Palette::of(ui);
    let line =
        Frame::new().fill(palette.page).stroke(Stroke::NONE).inner_margin(Margin::symmetric(12, 0));
    Panel::top("range")
        .exact_size(42.0)
        .resizable(false)
        .show_separator_line(false)
        .frame(line)
        .show(ui, |ui| range_line.show(ui, open));
    Panel::top("filter")
        .exact_size(filter_line::HEIGHT)
        .resizable(false)
        .show_separator_line(false)
        .frame(line)
        .show(ui, |ui| filter_line.show(ui, open));
    let margin = Margin { left: 12, right: 12, top: 0, bottom: 12 };
    open.choices.pointed = false;
    CentralPanel::default().frame(Frame::new().inner_margin(margin)).show(ui, |ui| {
        let area = ui.available_rect_before_wrap();
        if tiles.len() == 1 || !tiles.fit(area) {
            let panel = tiles.panel();
            if tiles.len() > 1 {
                ui.spacing_mut().item_spacing.y = GRID;
                tile_line_ui(ui, tiles, tiles.focus(), panel, false);
            }
            panel_ui(ui, open, panel, others, wishes, true);
        } else {
            tiles_ui(ui, area, open, tiles, others, wishes);
        }
    });
    forget_cursor(ui.ctx(), open);
}

/// Every tile, and the borders between them.
fn tiles_ui(
    ui: &mut Ui,
    area: Rect,
    open: &mut OpenTab,
    tiles: &mut Tiles,
    others: &[Other],
    wishes: &mut Vec<PanelWish>,
) {
    let (placed, borders) = tiles.places(area);
    take_focus(ui, &placed, tiles);
    for (place, Placed { panel, rect }) in placed.into_iter().enumerate() {
        let builder = UiBuilder::new().id_salt(("tile", panel)).max_rect(rect);
        let mut tile = ui.new_child(builder.layout(Layout::top_down(Align::Min)));
        tile.set_clip_rect(rect.expand(2.0).intersect(ui.clip_rect()));
        tile.spacing_mut().item_spacing.y = GRID;
        tile_line_ui(&mut tile, tiles, place, panel, true);
        panel_ui(&mut tile, open, panel, others, wishes, place == 0);
    }
    for border in borders {
        border_ui(ui, &border, tiles);
    }
    ui.allocate_rect(area, Sense::hover());
}

/// A press anywhere in a tile gives it the focus.
fn take_focus(ui: &Ui, placed: &[Placed], tiles: &mut Tiles) {
    let pressed = ui
        .input(|input| input.pointer.any_pressed().then(|| input.pointer.interact_pos()).flatten());
    let Some(pressed) = pressed else { return };
    // Not through a menu or a dialog that lies over the page.
    if ui.ctx().layer_id_at(pressed).is_some_and(|layer| layer != ui.layer_id()) {
        return;
    }
    if let Some(place) = placed.iter().position(|tile| tile.rect.contains(pressed)) {
        tiles.focus_on(place);
    }
}

/// The line above a tile's panel: which it is, and the wish to close it.
fn tile_line_ui(ui: &mut Ui, tiles: &mut Tiles, place: usize, panel: usize, all: bool) {
    let palette = *Palette::of(ui);
    let focused = tiles.focus() == place;
    let size = vec2(ui.available_width(), TILE_LINE);
    ui.allocate_ui_with_layout(size, Layout::left_to_right(Align::Center), |ui| {
        ui.set_min_size(size);
        let (font, colour) = if focused {
            (Type::Strong.font(), palette.accent)
        } else {
            (Type::Body.font(), palette.text)
        };
        let mut chosen = panel;
        let name = RichText::new(PANELS[panel].name).font(font).color(colour);
        let combo = ComboBox::from_id_salt(("panel of tile", panel)).selected_text(name);
        let shown = combo.width(130.0).show_ui(ui, |ui| {
            for (place, panel) in PANELS.iter().enumerate() {
                ui.selectable_value(&mut chosen, place, panel.name);
            }
        });
        let number = place + 1;
        shown.response.accessible_name(format!("Panel of tile {number}"));
        if chosen != panel {
            tiles.show_in(place, chosen);
        }
        let words = if all {
            PANELS[panel].about.to_owned()
        } else {
            format!("{number} of {}: the window is too small for all", tiles.len())
        };
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            let close = ui.add(egui::Button::new("×").frame(false));
            let label = format!("Close tile {number}");
            close
                .widget_info(|| egui::WidgetInfo::labeled(egui::Role::Button, true, label.clone()));
            if close.on_hover_text("Close this tile (X)").clicked() {
                tiles.close(place);
            }
            ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                let words = RichText::new(words).font(Type::Small.font()).color(palette.weak);
                ui.add(egui::Label::new(words).truncate().selectable(false));
            });
        });
    });
    // Colour is not alone in marking the focus: the line under it is thicker too.
    let rect = ui.min_rect();
    let (width, colour) = if focused { (2.0, palette.accent) } else { (1.0, palette.edge) };
    let y = rect.top() + TILE_LINE - 1.0;
    ui.painter().hline(ui.max_rect().x_range(), y, Stroke::new(width, colour));
}

/// A panel in what room there is, scrolling when it needs more.
fn panel_ui(
    ui: &mut Ui,
    open: &mut OpenTab,
    panel: usize,
    others: &[Other],
    wishes: &mut Vec<PanelWish>,
    with_banner: bool,
) {
    let id = ui.unique_id();
    ui.ctx().accesskit_node_builder(id, |node| {
        node.set_role(egui::accesskit::Role::Main);
        node.set_label(PANELS[panel].name);
    });
    let height = ui.available_height();
    let area = ScrollArea::vertical().id_salt(("panel", panel)).auto_shrink([false, false]);
    area.show(ui, |ui| {
        ui.set_max_height(height);
        if with_banner {
            bars::incomplete_ui(ui, open.derived.subject());
        }
        let mut scene =
            Scene { derived: &open.derived, choices: &mut open.choices, others, wish: wishes };
        (PANELS[panel].draw)(ui, &mut scene);
    });
}

/// A border between two tiles that the mouse takes hold of; keys resize the tile with the focus.
fn border_ui(ui: &mut Ui, border: &Border, tiles: &mut Tiles) {
    let palette = *Palette::of(ui);
    let id = egui::Id::unique(("border between tiles", border.split));
    let response = ui.interact(border.rect, id, Sense::drag());
    let columns = border.direction == Direction::Columns;
    let cursor = if columns { CursorIcon::ResizeHorizontal } else { CursorIcon::ResizeVertical };
    let response = response.on_hover_and_drag_cursor(cursor);
    ui.ctx().accesskit_node_builder(id, |node| {
        node.set_role(egui::accesskit::Role::Splitter);
        node.set_label("Border between tiles (Shift and arrows move it)");
    });
    if let Some(pointer) = response.interact_pointer_pos().filter(|_| response.dragged()) {
        let whole = border.whole;
        let share = if columns {
            (pointer.x - whole.left()) / whole.width()
        } else {
            (pointer.y - whole.top()) / whole.height()
        };
        tiles.set_share(border.split, share);
    }
    if response.hovered() || response.dragged() {
        let middle = border.rect.center();
        let stroke = Stroke::new(2.0, palette.accent);
        if columns {
            ui.painter().vline(middle.x, border.rect.y_range(), stroke);
        } else {
            ui.painter().hline(border.rect.x_range(), middle.y, stroke);
        }
    }
}

/// The cursor follows the pointer: once that has moved and is in no plot, it is gone. A cursor that
/// keys move stays, as the pointer does not move then.
fn forget_cursor(ctx: &egui::Context, open: &mut OpenTab) {
    let moved = ctx.input(|input| input.pointer.delta() != egui::Vec2::ZERO);
    if moved && !open.choices.pointed {
        open.choices.cursor = None;
    }
}
