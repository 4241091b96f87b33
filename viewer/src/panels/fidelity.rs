//! Fidelity: how far the replay was from what was recorded, as a card of the Overview.
//!
//! Four numbers of which zero is as recorded, each with what it means and rests on, or why it is
//! missing; or the same as a table. They are of the chosen requests, and numbers and words are
//! those of `onbeat report`: nothing is computed here.

use eframe::egui::{self, Align, Layout, RichText, Ui, vec2};
use onbeat_shared::metrics::fidelity::{Row, rows};

use super::Scene;
use crate::quantity::NO_DATA_CELL;
use crate::theme::{self, GRID, GUTTER, Palette, Type};
use crate::widgets::{
    table::{Column, Table},
    time_plot::table_button_ui,
};

/// Its identity among what `T` shows as tables.
pub(super) const ID: &str = "fidelity";

const TITLE: &str = "Fidelity";
/// Height of the line above the numbers.
const HEADING: f32 = 26.0;
/// Least width of a number's words.
const NUMBER_WIDTH: f32 = 250.0;
/// About what a number and its words take in height.
const NUMBER_HEIGHT: f32 = 114.0;

/// Draws the card; nothing while there is no report yet.
pub(super) fn show(ui: &mut Ui, scene: &mut Scene<'_>) {
    let known = scene.with_report(|report, fresh| (rows(&report.fidelity), fresh));
    let Some((rows, fresh)) = known else { return };
    let palette = Palette::of(ui);
    theme::card(palette).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.spacing_mut().item_spacing.y = GRID;
        let size = vec2(ui.available_width(), HEADING);
        ui.allocate_ui_with_layout(size, Layout::left_to_right(Align::Center), |ui| {
            ui.label(RichText::new(TITLE).font(Type::Title.font()));
            ui.label(small("error; 0 % is as recorded", palette));
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                table_button_ui(ui, ID, TITLE, scene.choices);
            });
        });
        if !fresh {
            ui.disable();
        }
        match scene.choices.is_table(ID) {
            true => table_ui(ui, &rows),
            false => numbers_ui(ui, &rows),
        }
    });
}

/// About how high the card is where it is so wide.
pub(super) fn height(width: f32) -> f32 {
    let lines = 4.0 / per_line(width - theme::CARD_CHROME) as f32;
    theme::CARD_CHROME + HEADING + GRID + lines * (NUMBER_HEIGHT + GUTTER)
}

/// How many numbers have room side by side.
fn per_line(width: f32) -> usize {
    match width {
        wide if wide >= 4.0 * NUMBER_WIDTH + 3.0 * GUTTER => 4,
        half if half >= 2.0 * NUMBER_WIDTH + GUTTER => 2,
        _ => 1,
    }
}

fn small(words: &str, palette: &Palette) -> RichText {
    RichText::new(words).font(Type::Small.font()).color(palette.weak)
}

/// The numbers side by side, in as many lines as their words need.
fn numbers_ui(ui: &mut Ui, rows: &[Row]) {
    let width = ui.available_width();
    let per_line = per_line(width);
    let each = ((width - GUTTER * (per_line as f32 - 1.0)) / per_line as f32).floor();
    ui.spacing_mut().item_spacing.y = GUTTER;
    for line in rows.chunks(per_line) {
        ui.horizontal_top(|ui| {
            ui.spacing_mut().item_spacing.x = GUTTER;
            for row in line {
                ui.vertical(|ui| {
                    ui.set_width(each);
                    number_ui(ui, row);
                });
            }
        });
    }
}

fn number_ui(ui: &mut Ui, row: &Row) {
    let palette = Palette::of(ui);
    let shown = ui.scope(|ui| {
        ui.spacing_mut().item_spacing = vec2(2.0 * GRID, 2.0);
        ui.horizontal(|ui| {
            ui.label(RichText::new(title(row.name)).color(palette.text));
            let colour = if row.recorded.is_empty() { palette.weak } else { palette.text };
            ui.label(RichText::new(&row.error).font(Type::Strong.font()).color(colour));
        });
        ui.add(egui::Label::new(small(&row.meaning, palette)).wrap());
        for (what, words) in [("recorded", &row.recorded), ("replayed", &row.replayed)] {
            if !words.is_empty() {
                ui.add(egui::Label::new(small(&format!("{what}: {words}"), palette)).wrap());
            }
        }
    });
    let label = format!("Fidelity: {} error {}. {}", row.name, row.error, row.meaning);
    let response = shown.response;
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Group, true, label.clone()));
}

/// A name as a title.
fn title(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    format!("{}{}", first.unwrap_or_default(), letters.as_str())
}

fn table_ui(ui: &mut Ui, rows: &[Row]) {
    let columns = [
        Column::text("", 0.8),
        Column { weight: 0.6, ..Column::number("error") },
        Column::text("recorded", 2.0),
        Column::text("replayed", 2.0),
    ];
    let cell = |row: usize, column: usize| {
        let row = &rows[row];
        let value = match column {
            0 => row.name,
            1 => &row.error,
            2 => &row.recorded,
            _ => &row.replayed,
        };
        if value.is_empty() { NO_DATA_CELL.to_owned() } else { value.to_owned() }
    };
    Table { name: TITLE, columns: &columns, rows: rows.len(), cell: &cell, row_headings: true }
        .show(ui);
    let palette = Palette::of(ui);
    for row in rows.iter().filter(|row| row.recorded.is_empty()) {
        let words = format!("{}: {}", row.name, row.meaning);
        ui.add(egui::Label::new(small(&words, palette)).wrap());
    }
}
