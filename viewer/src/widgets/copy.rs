//! A table for the clipboard: lines of cells with tabs between them, as spreadsheets take them.
//!
//! Numbers are written in full and in one unit per column, which its heading names: seconds of the
//! run for instants, milliseconds for lengths of time, shares of one. What is not known is an empty
//! cell.

use std::fmt::Write as _;

use eframe::egui::{self, RichText, Ui};

use crate::series::picture::{Cell, Rows};
use crate::theme::{Palette, Type};

/// Rows that are copied at most, so that no frame is late; larger tables are for exports.
const MOST: usize = 20_000;
/// How long the button says that it has copied (seconds).
const SAID_S: f64 = 2.0;

/// A button that copies a plot's table.
pub fn button_ui(ui: &mut Ui, title: &str, rows: &Rows) {
    let palette = Palette::of(ui);
    let slot = ui.scope_id().with((title, "copied"));
    let now = ui.input(|input| input.time);
    let copied_at: Option<f64> = ui.data(|data| data.get_temp(slot));
    let said = copied_at.is_some_and(|at| now < at + SAID_S);
    let words = if said { "Copied" } else { "Copy" };
    let text = RichText::new(words).font(Type::Small.font()).color(palette.weak);
    let response = ui.add(egui::Button::new(text).frame_when_inactive(false));
    response.widget_info(|| {
        let state = if said { "copied" } else { "copy" };
        egui::WidgetInfo::labeled(egui::Role::Button, true, format!("{title}: {state} the table"))
    });
    let hint = if rows.len() > MOST {
        "Copy the first 20,000 rows for a spreadsheet; Ctrl+E exports all"
    } else {
        "Copy these rows for a spreadsheet"
    };
    if response.on_hover_text(hint).clicked() {
        ui.ctx().copy_text(tsv(rows));
        ui.data_mut(|data| data.insert_temp(slot, now));
        ui.ctx().request_repaint_after(std::time::Duration::from_secs_f64(SAID_S));
    }
}

/// The table as text.
#[must_use]
pub fn tsv(rows: &Rows) -> String {
    let mut text = String::new();
    for (place, heading) in rows.columns.iter().enumerate() {
        let unit = match heading.kind {
            Cell::Instant(_) => " (s)",
            Cell::Duration => " (ms)",
            Cell::Share | Cell::Percentile => " (share)",
            Cell::Number => "",
        };
        push(&mut text, place, &format!("{}{unit}", heading.name.replace(['\t', '\n'], " ")));
    }
    text.push('\n');
    for row in 0..rows.len().min(MOST) {
        for (place, (heading, cells)) in rows.columns.iter().zip(&rows.cells).enumerate() {
            let value = cells[row].map(|value| match heading.kind {
                Cell::Instant(_) => value / 1e9,
                Cell::Duration => value / 1e6,
                Cell::Number | Cell::Share | Cell::Percentile => value,
            });
            push(&mut text, place, "");
            if let Some(value) = value {
                // A string takes everything.
                let _ = write!(text, "{value}");
            }
        }
        text.push('\n');
    }
    text
}

fn push(text: &mut String, place: usize, cell: &str) {
    if place > 0 {
        text.push('\t');
    }
    text.push_str(cell);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::picture::Heading;

    #[test]
    fn a_table_is_copied_with_units_and_gaps() {
        let mut rows = Rows::new(vec![
            Heading::new("From", Cell::Instant(1e9)),
            Heading::new("p50", Cell::Duration),
            Heading::new("requests", Cell::Number),
        ]);
        rows.push(&[Some(1_500_000_000.0), Some(12_345_678.0), Some(3.0)]);
        rows.push(&[Some(2_000_000_000.0), None, Some(0.0)]);
        assert_eq!(tsv(&rows), "From (s)\tp50 (ms)\trequests\n1.5\t12.345678\t3\n2\t\t0\n");
    }

    #[test]
    fn a_long_table_is_cut() {
        let mut rows = Rows::new(vec![Heading::new("n", Cell::Number)]);
        for _ in 0..MOST + 5 {
            rows.push(&[Some(1.0)]);
        }
        assert_eq!(tsv(&rows).lines().count(), MOST + 1);
    }
}
