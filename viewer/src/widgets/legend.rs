//! The names of a plot's lines beside its title, with their values at the cursor.
//!
//! Drawn from right to left, so that it ends where the plot ends; what finds no room is left out,
//! the explanation of how the picture was made first.

use eframe::egui::{RichText, Sense, Stroke, Ui, WidgetText, vec2};

use crate::quantity;
use crate::series::picture::{Line, Picture};
use crate::state::Choices;
use crate::theme::{GRID, Palette, Type};

/// Width of a line's sign.
const SIGN: f32 = 14.0;
/// Gap before the next entry.
const GAP: f32 = 2.0 * GRID;

/// Draws the legend into a layout that runs from right to left.
pub fn show(ui: &mut Ui, picture: &Picture, choices: &Choices) {
    ui.spacing_mut().item_spacing.x = GRID;
    for line in picture.lines.iter().rev() {
        let text = match choices.cursor {
            None => line.name.to_owned(),
            Some(time) => {
                let value = line.readout.at(time).map(|value| picture.axis.words(value));
                format!("{} {}", line.name, value.as_deref().unwrap_or(quantity::NO_DATA))
            }
        };
        if small_ui(ui, &text, SIGN + GRID) {
            sign_ui(ui, line);
            ui.add_space(GAP);
        }
    }
    let text = match choices.cursor {
        Some(time) => {
            let at = quantity::instant(time.0 as f64, choices.view().span() as f64);
            format!("at {at}")
        }
        None => picture.note.clone(),
    };
    small_ui(ui, &text, GAP);
}

/// Writes small text if it fits, with so much room beside it. Says whether it did.
fn small_ui(ui: &mut Ui, text: &str, beside: f32) -> bool {
    let colour = Palette::of(ui).weak;
    let text = WidgetText::from(RichText::new(text).font(Type::Small.font()).color(colour));
    let galley = text.into_galley(ui, None, f32::INFINITY, Type::Small.font());
    let fits = galley.size().x + beside <= ui.available_width();
    if fits {
        ui.label(galley);
    }
    fits
}

fn sign_ui(ui: &mut Ui, line: &Line) {
    let stroke = Stroke::new(2.0, Palette::of(ui).data[line.colour]);
    let (rect, _) = ui.allocate_exact_size(vec2(SIGN, 12.0), Sense::hover());
    let (y, middle) = (rect.center().y, rect.center().x);
    if line.dashed {
        ui.painter().hline(rect.left()..=middle - 2.0, y, stroke);
        ui.painter().hline(middle + 2.0..=rect.right(), y, stroke);
    } else {
        ui.painter().hline(rect.x_range(), y, stroke);
    }
}
