//! Timeline: what each session or user did, request by request.
//!
//! Lanes scroll, whatever their number: only those in sight are asked for and drawn. The picture
//! shares the view, the range and the cursor with every time plot.

mod draw;
mod hit;
mod legend;
mod region;

use eframe::egui::{self, Align, Layout, RichText, Spinner, TextEdit, Ui, vec2};

use super::{Panel, PanelWish, Scene};
use crate::series::timeline::{self, lanes::Order, words};
use crate::series::{Answer, Ask};
use crate::theme::{self, GRID, Palette, Type};
use crate::widgets::{
    choice,
    grid::{Grid, GridKeys},
    switch,
    time_plot::table_button_ui,
};

/// The panel.
pub(super) const PANEL: Panel =
    Panel { name: "Timeline", about: "Who did what when?", plots: PLOTS, draw };

const TIMELINE: &str = "timeline";
const PLOTS: &[&str] = &[TIMELINE];
/// Height of each of the two lines above the lanes.
const LINE: f32 = 26.0;
/// Least height of the lanes and their times; the smallest window has so much.
const LEAST: f32 = 120.0;
/// Width of the search field.
const SEARCH: f32 = 170.0;
/// Below this width the search field is smaller and the orders of lanes unfold from a list.
const NARROW: f32 = 700.0;
const NARROW_SEARCH: f32 = 90.0;
const NARROW_ORDER: f32 = 130.0;

fn draw(ui: &mut Ui, scene: &mut Scene<'_>) {
    let height = ui.available_height();
    theme::card(Palette::of(ui)).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.spacing_mut().item_spacing.y = GRID;
        controls_ui(ui, scene);
        let body = (height - theme::CARD_CHROME - 2.0 * (LINE + GRID)).max(LEAST);
        if scene.choices.is_table(TIMELINE) {
            table_ui(ui, scene, body + LINE);
        } else {
            region::show(ui, scene, body, TIMELINE);
        }
    });
}

fn controls_ui(ui: &mut Ui, scene: &mut Scene<'_>) {
    let users = scene.derived.subject().run.users.is_some();
    let size = vec2(ui.available_width(), LINE);
    let is_narrow = size.x < NARROW;
    ui.allocate_ui_with_layout(size, Layout::left_to_right(Align::Center), |ui| {
        ui.label(RichText::new("Timeline").font(Type::Title.font()));
        let who = if users { "User" } else { "Session" };
        let chosen = &mut scene.choices.timeline;
        let before = (chosen.order, chosen.search.len());
        order_ui(ui, &mut chosen.order, is_narrow);
        ui.add_space(2.0 * GRID);
        let width = if is_narrow { NARROW_SEARCH } else { SEARCH };
        search_ui(ui, &mut chosen.search, who, width);
        if before != (chosen.order, chosen.search.len()) {
            chosen.top = 0.0;
        }
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            table_button_ui(ui, TIMELINE, "Timeline", scene.choices);
        });
    });
}

/// In which order lanes stand: all orders side by side, or in a list where there is no room.
fn order_ui(ui: &mut Ui, order: &mut Order, is_narrow: bool) {
    const ABOUT: &str = "Order of lanes";
    const ORDERS: [(Order, &str, &str); 4] = [
        (Order::First, "By start", "Whoever sent first stands first"),
        (Order::Most, "Most requests", "Whoever sent the most requests stands first"),
        (Order::Longest, "Longest", "Longest from the first sending to the last end first"),
        (Order::Name, "By name", "By name, numbers in it by their value"),
    ];
    if is_narrow {
        choice::show(ui, ABOUT, NARROW_ORDER, order, ORDERS.into_iter());
        return;
    }
    ui.add_space(3.0 * GRID);
    switch::show(ui, ABOUT, order, &ORDERS);
}

fn search_ui(ui: &mut Ui, search: &mut String, who: &str, width: f32) {
    let palette = Palette::of(ui);
    let hint = RichText::new(format!("{who} …")).color(palette.weak);
    let response =
        ui.add(TextEdit::singleline(search).hint_text(hint).desired_width(width).char_limit(200));
    response.widget_info(|| {
        let label = format!("{who} to look for");
        egui::WidgetInfo::labeled(egui::Role::TextInput, true, label)
    });
    if search.is_empty() {
        return;
    }
    let clear = ui.small_button("×");
    clear.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Button, true, "All lanes again"));
    if clear.on_hover_text("All lanes again").clicked() {
        search.clear();
    }
}

/// Every request of the lanes, in their order.
fn table_ui(ui: &mut Ui, scene: &mut Scene<'_>, height: f32) {
    let stretch = scene.stretch_of(TIMELINE);
    let which = scene.choices.timeline.which(scene.choices.filter.clone());
    let shown = scene.derived.ask(&Ask::Timeline(timeline::Ask::Rows { stretch, which }));
    let Some(rows) = shown.answer.as_deref().and_then(Answer::timeline).and_then(|a| a.rows())
    else {
        ui.add(Spinner::new());
        return;
    };
    let opened = scene.derived.subject();
    let cell = |row: usize, column: usize| words::cell(opened, rows[row] as usize, column);
    let act = Grid {
        name: "Timeline",
        columns: &words::COLUMNS,
        rows: rows.len(),
        height,
        cell: &cell,
        colour: &|_row, _column| None,
        is_chosen: &|_row| false,
        sorted: None,
        reveal: None,
        keys: GridKeys::Cursor,
    }
    .show(ui);
    scene.wish.extend(act.row.map(|row| PanelWish::ShowRequest(rows[row])));
}
