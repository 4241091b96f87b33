//! A table of any length: only the rows in sight are laid out.
//!
//! Columns have a name, a unit in the name and a width; numbers are right-aligned so that their
//! digits stand under each other. Every visible cell is a label of its own, so that a screen reader
//! and the tests read it.

use eframe::egui::{
    self, Align, Color32, Layout, Rect, RichText, ScrollArea, Sense, Ui, UiBuilder, Vec2, vec2,
};

use crate::theme::{GRID, Palette, ROW_HEIGHT, Type};

/// One column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its heading, with the unit.
    pub heading: String,
    /// Width as a share of the others.
    pub weight: f32,
    /// Text is left-aligned, numbers right-aligned.
    pub is_text: bool,
}

impl Column {
    /// A column of numbers.
    #[must_use]
    pub fn number(heading: impl Into<String>) -> Self {
        Self { heading: heading.into(), weight: 1.0, is_text: false }
    }

    /// A column of words.
    #[must_use]
    pub fn text(heading: impl Into<String>, weight: f32) -> Self {
        Self { heading: heading.into(), weight, is_text: true }
    }
}

/// A table to be drawn: `cell(row, column)` gives the text of one cell.
pub struct Table<'a> {
    /// Accessible name, also the identity.
    pub name: &'a str,
    /// The columns.
    pub columns: &'a [Column],
    /// How many rows there are.
    pub rows: usize,
    /// The text of a cell.
    pub cell: &'a dyn Fn(usize, usize) -> String,
    /// Whether the first column is a heading for its row.
    pub row_headings: bool,
}

impl Table<'_> {
    /// Draws it in full, without scrolling. Where no column has a heading there is no such line.
    pub fn show(&self, ui: &mut Ui) {
        self.named(ui, |table, ui| {
            let widths = table.widths(ui, true);
            if table.columns.iter().any(|column| !column.heading.is_empty()) {
                table.heading_ui(ui, &widths);
            }
            for row in 0..table.rows {
                table.row_ui(ui, &widths, row);
            }
        });
    }

    /// Draws it in `height` points, its rows scrolling under the headings.
    pub fn show_scrolling(&self, ui: &mut Ui, height: f32) {
        self.named(ui, |table, ui| {
            ui.set_min_height(height);
            let widths = table.widths(ui, false);
            table.heading_ui(ui, &widths);
            let body = (height - ROW_HEIGHT - 1.0).max(ROW_HEIGHT);
            ScrollArea::vertical()
                .id_salt(table.name)
                .max_height(body)
                .min_scrolled_height(body)
                .auto_shrink([false, false])
                .show_rows(ui, ROW_HEIGHT, table.rows, |ui, visible| {
                    let widths = table.widths(ui, false);
                    for row in visible {
                        table.row_ui(ui, &widths, row);
                    }
                });
        });
    }

    fn named(&self, ui: &mut Ui, draw: impl FnOnce(&Self, &mut Ui)) {
        ui.push_id(self.name, |ui| {
            ui.spacing_mut().item_spacing = Vec2::ZERO;
            let id = ui.unique_id();
            ui.ctx().accesskit_node_builder(id, |node| {
                node.set_role(egui::accesskit::Role::Table);
                node.set_label(self.name);
                node.set_row_count(self.rows);
                node.set_column_count(self.columns.len());
            });
            draw(self, ui);
        });
    }

    /// The columns' widths: their shares of the room. With `in_full`, where that would cut a text
    /// that has room elsewhere, what others do not need is given to it.
    fn widths(&self, ui: &Ui, in_full: bool) -> Vec<f32> {
        let room = ui.available_width();
        let total: f32 = self.columns.iter().map(|column| column.weight).sum();
        let share = |column: &Column| room * column.weight / total.max(f32::MIN_POSITIVE);
        let shares: Vec<f32> = self.columns.iter().map(share).collect();
        if !in_full {
            return shares;
        }
        let needs: Vec<f32> = (0..self.columns.len()).map(|place| self.need(ui, place)).collect();
        fitted(&shares, &needs)
    }

    /// The width that no text of a column is cut in.
    fn need(&self, ui: &Ui, place: usize) -> f32 {
        let width = |text: String, font: Type| {
            ui.painter().layout_no_wrap(text, font.font(), Color32::WHITE).size().x
        };
        let heading = width(self.columns[place].heading.clone(), Type::Small);
        let cells = (0..self.rows).map(|row| width((self.cell)(row, place), Type::Body));
        cells.fold(heading, f32::max) + 2.0 * GRID + 1.0
    }

    fn heading_ui(&self, ui: &mut Ui, widths: &[f32]) {
        let palette = Palette::of(ui);
        let rect = self.line_ui(ui, widths, |ui, place, column| {
            let text = RichText::new(&column.heading).font(Type::Small.font()).color(palette.weak);
            ui.add(egui::Label::new(text).truncate().selectable(false));
            let _ = place;
        });
        let stroke = egui::Stroke::new(1.0, palette.edge);
        ui.painter().hline(rect.x_range(), rect.bottom() - 0.5, stroke);
    }

    fn row_ui(&self, ui: &mut Ui, widths: &[f32], row: usize) {
        let palette = Palette::of(ui);
        if !row.is_multiple_of(2) {
            let rect = Rect::from_min_size(ui.cursor().min, vec2(ui.available_width(), ROW_HEIGHT));
            ui.painter().rect_filled(rect, 0.0, palette.stripe);
        }
        self.line_ui(ui, widths, |ui, place, _column| {
            let heading = self.row_headings && place == 0;
            let colour = if heading { palette.weak } else { palette.text };
            let text = RichText::new((self.cell)(row, place)).color(colour);
            ui.add(egui::Label::new(text).truncate());
        });
    }

    fn line_ui(
        &self,
        ui: &mut Ui,
        widths: &[f32],
        mut cell: impl FnMut(&mut Ui, usize, &Column),
    ) -> Rect {
        let width = ui.available_width();
        let (rect, _) = ui.allocate_exact_size(vec2(width, ROW_HEIGHT), Sense::hover());
        let mut left = rect.left();
        for (place, (column, &share)) in self.columns.iter().zip(widths).enumerate() {
            let slot = Rect::from_min_size(egui::pos2(left, rect.top()), vec2(share, ROW_HEIGHT));
            let inner = slot.shrink2(vec2(GRID, 0.0));
            let layout = if column.is_text {
                Layout::left_to_right(Align::Center)
            } else {
                Layout::right_to_left(Align::Center)
            };
            let mut child = ui.new_child(UiBuilder::new().max_rect(inner).layout(layout));
            cell(&mut child, place, column);
            left += share;
        }
        rect
    }
}

/// Shares of a line changed so that each is at least what it needs, as far as the others have more
/// than they need.
fn fitted(shares: &[f32], needs: &[f32]) -> Vec<f32> {
    let pairs = || shares.iter().zip(needs);
    let short: f32 = pairs().map(|(share, need)| (need - share).max(0.0)).sum();
    let spare: f32 = pairs().map(|(share, need)| (share - need).max(0.0)).sum();
    let moved = short.min(spare);
    let part = |of: f32, all: f32| if all > 0.0 { moved * of / all } else { 0.0 };
    pairs()
        .map(|(share, need)| {
            share + part((need - share).max(0.0), short) - part((share - need).max(0.0), spare)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::fitted;

    #[test]
    fn what_others_do_not_need_goes_to_the_column_that_is_short() {
        assert_eq!(fitted(&[50.0, 50.0], &[20.0, 50.0]), [50.0, 50.0], "nothing is short");
        assert_eq!(fitted(&[50.0, 50.0], &[20.0, 60.0]), [40.0, 60.0]);
        assert_eq!(
            fitted(&[40.0, 30.0, 30.0], &[20.0, 35.0, 20.0]),
            [40.0 - 5.0 * 20.0 / 30.0, 35.0, 30.0 - 5.0 * 10.0 / 30.0]
        );
        assert_eq!(fitted(&[50.0, 50.0], &[45.0, 80.0]), [45.0, 55.0], "as far as there is room");
        assert_eq!(fitted(&[50.0], &[80.0]), [50.0]);
    }
}
