//! A list of choices that unfolds from the one that holds, for lists too long for a row.

use eframe::egui::{ComboBox, RichText, Ui};

use crate::theme::Type;

/// Draws the chosen one; the list of all unfolds from it. `choices` gives each value, its name and
/// what it is. Returns whether the choice changed.
pub fn show<T: Copy + PartialEq>(
    ui: &mut Ui,
    about: &str,
    width: f32,
    chosen: &mut T,
    choices: impl Iterator<Item = (T, &'static str, &'static str)> + Clone,
) -> bool {
    let before = *chosen;
    let name = choices.clone().find(|choice| choice.0 == before).map_or("", |choice| choice.1);
    let text = RichText::new(name).font(Type::Strong.font());
    let list = ComboBox::from_id_salt(about).selected_text(text).width(width).height(600.0);
    let shown = list.truncate().show_ui(ui, |ui| {
        for (value, name, explanation) in choices {
            ui.selectable_value(chosen, value, name).on_hover_text(explanation);
        }
    });
    shown.response.accessible_name(about);
    *chosen != before
}
