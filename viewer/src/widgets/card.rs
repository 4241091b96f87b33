//! A headline number: what it is, the number, and two lines that put it in its place.

use eframe::egui::{self, RichText, Ui, vec2};

use crate::theme::{self, GRID, Palette, Type};

/// A headline number in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headline {
    /// What it is, such as `Time to first token`.
    pub title: &'static str,
    /// Which of the many values stands large, such as `median`.
    pub which: &'static str,
    /// The number with its unit, or the word for no data.
    pub value: String,
    /// More of the same distribution.
    pub more: String,
    /// How it is defined, for the tooltip.
    pub definition: &'static str,
    /// Whether there is a number at all.
    pub has_data: bool,
}

/// Room that the words beside a number need at least.
const LEAST: f32 = 24.0;
/// Height of a card's content.
const HEIGHT: f32 = 66.0;

/// Draws headlines side by side, in as many rows as their width needs.
pub fn row_ui(ui: &mut Ui, headlines: &[Headline]) {
    let gap = theme::GUTTER;
    let width = ui.available_width();
    let per_row = if width >= 900.0 {
        6
    } else if width >= 480.0 {
        3
    } else {
        2
    };
    let card = (width - gap * (per_row as f32 - 1.0)) / per_row as f32;
    for row in headlines.chunks(per_row) {
        ui.horizontal_top(|ui| {
            ui.spacing_mut().item_spacing.x = gap;
            for headline in row {
                headline_ui(ui, headline, card);
            }
        });
    }
}

fn headline_ui(ui: &mut Ui, headline: &Headline, width: f32) {
    let palette = Palette::of(ui);
    let frame = theme::card(palette);
    let inner = width - frame.total_margin().sum().x;
    let shown = frame.show(ui, |ui| {
        ui.set_width(inner);
        ui.set_height(HEIGHT);
        ui.vertical(|ui| lines_ui(ui, headline));
    });
    let id = ui.unique_id().with(headline.title);
    let response = ui.interact(shown.response.rect, id, egui::Sense::hover());
    let label =
        format!("{}: {} {}. {}", headline.title, headline.which, headline.value, headline.more);
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Group, true, label.clone()));
    response.on_hover_text(headline.definition);
}

fn lines_ui(ui: &mut Ui, headline: &Headline) {
    let palette = Palette::of(ui);
    ui.spacing_mut().item_spacing = vec2(1.5 * GRID, 3.0);
    let small = |text: &str| RichText::new(text).font(Type::Small.font()).color(palette.weak);
    ui.add(egui::Label::new(small(headline.title)).truncate());
    ui.horizontal(|ui| {
        let colour = if headline.has_data { palette.text } else { palette.weak };
        let value = RichText::new(&headline.value).font(Type::Value.font()).color(colour);
        ui.add(egui::Label::new(value).truncate());
        // Beside a very long number there is no room, and the card would grow over the next.
        if headline.has_data && ui.available_width() > LEAST {
            ui.add(egui::Label::new(small(headline.which)).truncate());
        }
    });
    ui.add(egui::Label::new(small(&headline.more)).truncate());
}
