//! A row of choices of which exactly one holds, drawn as one control.

use eframe::egui::{self, Button, Response, RichText, Ui};

use crate::theme::{Palette, Type};

/// Draws the choices with their names; the chosen one is marked. Returns whether that changed.
pub fn show<T: Copy + PartialEq>(
    ui: &mut Ui,
    about: &str,
    chosen: &mut T,
    choices: &[(T, &str, &str)],
) -> bool {
    let mut changed = false;
    ui.horizontal(|ui| {
        ui.spacing_mut().item_spacing.x = 2.0;
        for &(value, name, explanation) in choices {
            let response = option_ui(ui, about, *chosen == value, name, explanation);
            if response.clicked() && *chosen != value {
                *chosen = value;
                changed = true;
            }
        }
    });
    changed
}

fn option_ui(ui: &mut Ui, about: &str, chosen: bool, name: &str, explanation: &str) -> Response {
    let palette = Palette::of(ui);
    let colour = if chosen { palette.accent } else { palette.weak };
    let font = if chosen { Type::Strong.font() } else { Type::Body.font() };
    let text = RichText::new(name).font(font).color(colour);
    let response = ui.add(Button::selectable(chosen, text));
    response.widget_info(|| {
        let label = format!("{about}: {name}");
        egui::WidgetInfo::selected(egui::Role::RadioButton, true, chosen, label)
    });
    response.on_hover_text(explanation)
}
