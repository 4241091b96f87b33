//! Shape: one number of every request against another, such as TTFT against input length.

use eframe::egui::{Align, Layout, RichText, Ui, vec2};

use super::{Panel, PanelWish, Scene};
use crate::fields::Field;
use crate::opened::OpenedRun;
use crate::quantity;
use crate::series::{
    Answer, Ask,
    number::Number,
    shape::{self, Pair},
};
use crate::state::{Choices, Scale};
use crate::theme::{self, GRID, GUTTER, Palette, Type};
use crate::widgets::{
    choice, switch,
    xy_plot::{self, XyPlot},
};

/// The panel.
pub(super) const PANEL: Panel =
    Panel { name: "Shape", about: "What does a number depend on?", plots: PLOTS, draw };

const PLOTS: &[&str] = &["shape first", "shape second"];

/// Below this width the plots stand below each other.
const TWO_COLUMNS: f32 = 820.0;
/// Height of a line of choices.
const CHOICES: f32 = 26.0 + GRID;
/// Width of the word before a choice.
const WORD: f32 = 40.0;
/// What a plot's card needs besides its plot.
const CHROME: f32 = theme::CARD_CHROME + xy_plot::HEADING + 2.0 * CHOICES;

fn draw(ui: &mut Ui, scene: &mut Scene<'_>) {
    ui.spacing_mut().item_spacing.y = GUTTER;
    let height = ui.available_height();
    if ui.available_width() < TWO_COLUMNS {
        for plot in [0, 1] {
            plot_ui(ui, scene, plot, 260.0);
        }
        return;
    }
    let half = ((ui.available_width() - GUTTER) / 2.0).floor();
    ui.horizontal_top(|ui| {
        ui.spacing_mut().item_spacing.x = GUTTER;
        for plot in [0, 1] {
            ui.vertical(|ui| {
                ui.set_width(half);
                plot_ui(ui, scene, plot, (height - CHROME).max(260.0).floor());
            });
        }
    });
}

fn plot_ui(ui: &mut Ui, scene: &mut Scene<'_>, plot: u8, height: f32) {
    let place = usize::from(plot);
    let id = PLOTS[place];
    theme::card(Palette::of(ui)).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.spacing_mut().item_spacing.y = 0.0;
        choices_ui(ui, scene.choices, place);
        let pair = scene.choices.shape.plots[place];
        let part = scene.choices.plots.get(id).and_then(crate::xy_view::XyView::zoomed);
        let ask = shape::Ask { plot, pair, selection: scene.choices.selection(), part };
        let shown = scene.derived.ask(&Ask::Shape(ask));
        let opened = scene.derived.subject();
        let describe = |request: u32| describe(opened, request as usize, pair);
        let title = format!("{} against {}", pair.up.name(), lower(pair.across.name()));
        let clicked = XyPlot {
            id,
            title: &title,
            height,
            picture: shown.answer.as_deref().and_then(Answer::picture),
            fresh: shown.fresh,
            describe: Some(&describe),
            controls: None,
            rules: &mut [],
        }
        .show(ui, scene.choices);
        scene.wish.extend(clicked.map(PanelWish::ShowRequest));
    });
}

/// A name within a title.
fn lower(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_lowercase().collect::<String>() + letters.as_str()
    })
}

const SCALES: &[(Scale, &str, &str)] = &[
    (Scale::Log, "Log", "By powers of ten"),
    (Scale::Linear, "Linear", "From zero, in even steps"),
];

fn choices_ui(ui: &mut Ui, choices: &mut Choices, place: usize) {
    let which = if place == 0 { "first plot" } else { "second plot" };
    let Pair { across, up, across_scale, up_scale, .. } = &mut choices.shape.plots[place];
    for (word, direction, number, scale) in
        [("Up", "upwards", up, up_scale), ("Across", "across", across, across_scale)]
    {
        let size = vec2(ui.available_width(), CHOICES);
        ui.allocate_ui_with_layout(size, Layout::left_to_right(Align::Center), |ui| {
            ui.set_min_size(size);
            ui.spacing_mut().item_spacing.x = 2.0 * GRID;
            let weak = Palette::of(ui).weak;
            let label = RichText::new(word).font(Type::Small.font()).color(weak);
            let column = vec2(WORD, CHOICES - GRID);
            ui.allocate_ui_with_layout(column, Layout::left_to_right(Align::Center), |ui| {
                ui.set_min_size(column);
                ui.label(label);
            });
            let numbers = Number::single().map(|number| (number, number.name(), number.about()));
            let width = (ui.available_width() - 140.0).clamp(120.0, 230.0);
            choice::show(ui, &format!("Number {direction}, {which}"), width, number, numbers);
            switch::show(ui, &format!("Scale {direction}, {which}"), scale, SCALES);
        });
    }
}

/// What to say about a request under the pointer.
fn describe(opened: &OpenedRun, i: usize, pair: Pair) -> String {
    let run = &opened.run;
    let words = |number: Number| {
        let value = number.value(opened, i).map(|value| number.words(value));
        format!("{}: {}", number.name(), value.as_deref().unwrap_or(quantity::NO_DATA))
    };
    let cached = Field::CachedShare.words(run, i);
    format!(
        "{}\n{}\ncached share: {}\nrequest {i}, session {}, turn {}",
        words(pair.up),
        words(pair.across),
        cached.as_deref().unwrap_or("unknown"),
        run.session_name(i).unwrap_or("without a name"),
        run.plan[i].turn,
    )
}
