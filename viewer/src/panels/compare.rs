//! Compare: this run and the others that are open, on the same axes, and what differs.

use std::path::Path;

use eframe::egui::{self, Align, ComboBox, Layout, RichText, ScrollArea, Sense, Ui, vec2};
use onbeat_shared::metrics::compare::{CAUTION, Differs};

use super::{Other, Panel, PanelWish, Scene};
use crate::opened::OpenedRun;
use crate::quantity;
use crate::series::compare::{self, COLOURS, Curves, Deltas, LETTERS, Peer};
use crate::series::number::Number;
use crate::series::{Answer, Ask};
use crate::state::{Choices, Scale};
use crate::theme::{self, GRID, GUTTER, Palette, Type};
use crate::widgets::{
    choice, switch,
    table::{Column, Table},
    xy_plot::{self, XyPlot},
};

/// The panel.
pub(super) const PANEL: Panel =
    Panel { name: "Compare", about: "What differs from another run?", plots: PLOTS, draw };

const CDF: &str = "compare cdf";
const PERCENTILES: &str = "compare percentiles";
const PLOTS: &[&str] = &[PERCENTILES, CDF];

/// Below this width everything stands in one column.
const TWO_COLUMNS: f32 = 820.0;
/// Share of the width that the plots have.
const PLOTS_SHARE: f32 = 0.38;
/// Height of the line of choices.
const CHOICES: f32 = 26.0 + GRID;
/// What two plots below each other need besides themselves.
const CHROME: f32 = 2.0 * (theme::CARD_CHROME + xy_plot::HEADING) + CHOICES + GUTTER;
/// Width of the list of numbers.
const NUMBER_WIDTH: f32 = 190.0;
/// Least width in which no number of the table is cut.
const ALL_COLUMNS: f32 = 540.0;
/// Stands in the place of an interval that too few values give; why is below the table.
const TOO_FEW: &str = "too few values";
/// Height of a run in the list of runs.
const RUN_ROW: f32 = 22.0;

fn draw(ui: &mut Ui, scene: &mut Scene<'_>) {
    if scene.others.is_empty() {
        nothing_ui(ui, scene);
        return;
    }
    ui.spacing_mut().item_spacing.y = GUTTER;
    let last = scene.others.len() - 1;
    scene.choices.compare.baseline = scene.choices.compare.baseline.min(last);
    let height = ui.available_height();
    if ui.available_width() < TWO_COLUMNS {
        runs_ui(ui, scene);
        curves_ui(ui, scene, 240.0);
        deltas_ui(ui, scene, 420.0);
        return;
    }
    let width = ((ui.available_width() - GUTTER) * PLOTS_SHARE).floor();
    let plot = ((height - CHROME) / 2.0).floor().max(160.0);
    ui.horizontal_top(|ui| {
        ui.spacing_mut().item_spacing.x = GUTTER;
        ui.vertical(|ui| {
            ui.set_width(width);
            ui.spacing_mut().item_spacing.y = GUTTER;
            curves_ui(ui, scene, plot);
        });
        ui.vertical(|ui| {
            ui.set_width(ui.available_width());
            ui.spacing_mut().item_spacing.y = GUTTER;
            let before = ui.cursor().top();
            runs_ui(ui, scene);
            let rest = height - (ui.cursor().top() - before);
            deltas_ui(ui, scene, rest);
        });
    });
}

/// There is no other run.
fn nothing_ui(ui: &mut Ui, scene: &mut Scene<'_>) {
    let palette = Palette::of(ui);
    let height = (ui.available_height() - theme::CARD_CHROME).max(160.0);
    theme::card(palette).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.set_min_height(height);
        ui.vertical_centered(|ui| {
            ui.add_space(height * 0.3);
            ui.label(RichText::new("Nothing to compare with").font(Type::Heading.font()));
            ui.add_space(2.0 * GRID);
            let words = "Open a second run (Ctrl+O, or drop its file here): its distributions are \
                         drawn over this one's, and a table says what differs and how surely.";
            ui.scope(|ui| {
                ui.set_max_width(ui.available_width().min(560.0));
                let words = RichText::new(words).color(palette.weak);
                ui.add(egui::Label::new(words).wrap().halign(Align::Center));
            });
            ui.add_space(GUTTER);
            if ui.button("Open another run…").clicked() {
                scene.wish.push(PanelWish::OpenRun);
            }
        });
    });
}

fn runs_ui(ui: &mut Ui, scene: &mut Scene<'_>) {
    let palette = Palette::of(ui);
    theme::card(palette).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.spacing_mut().item_spacing.y = 0.0;
        let shown = scene.derived.subject();
        run_ui(ui, 0, &own_name(shown, scene.others), shown);
        for (place, other) in scene.others.iter().take(LETTERS.len() - 1).enumerate() {
            run_ui(ui, place + 1, &other.name, &other.opened);
        }
        let left_out = (scene.others.len() + 1).saturating_sub(LETTERS.len());
        if left_out > 0 {
            let words = format!("{} more are open and not compared", left_out);
            ui.label(RichText::new(words).font(Type::Small.font()).color(palette.weak));
        }
    });
}

/// The shown run's name, told apart from others of the same name like those are.
fn own_name(shown: &OpenedRun, others: &[Other]) -> String {
    let name = shown.name();
    let folder = shown.path.parent().and_then(Path::file_name);
    match folder.filter(|_| others.iter().any(|other| other.opened.name() == name)) {
        Some(folder) => format!("{}/{name}", folder.to_string_lossy()),
        None => name,
    }
}

/// A run in the list: its letter in its colour, its name, its size.
fn run_ui(ui: &mut Ui, place: usize, name: &str, opened: &OpenedRun) {
    let palette = Palette::of(ui);
    let size = vec2(ui.available_width(), RUN_ROW);
    ui.allocate_ui_with_layout(size, Layout::left_to_right(Align::Center), |ui| {
        ui.spacing_mut().item_spacing.x = 2.0 * GRID;
        let (rect, _) = ui.allocate_exact_size(vec2(18.0, 3.0), Sense::hover());
        ui.painter().rect_filled(rect, 1.5, palette.data[COLOURS[place]]);
        ui.label(RichText::new(LETTERS[place]).font(Type::Strong.font()));
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            let facts = format!(
                "{}, {}",
                quantity::counted(opened.run.requests.len() as u64, "request"),
                quantity::duration(opened.whole().span() as f64)
            );
            ui.label(RichText::new(facts).font(Type::Small.font()).color(palette.weak));
            ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                ui.add(egui::Label::new(name).truncate());
                if place == 0 {
                    let words = RichText::new("this run").font(Type::Small.font());
                    ui.label(words.color(palette.weak));
                }
            });
        });
    });
}

fn curves_ui(ui: &mut Ui, scene: &mut Scene<'_>, height: f32) {
    let compare::CompareChoices { number, scale, .. } = scene.choices.compare;
    let peers = scene.others.iter().take(LETTERS.len() - 1);
    let ask = Ask::Compare(compare::Ask::Curves {
        number,
        scale,
        selection: scene.choices.selection(),
        peers: peers.map(|other| Peer(std::sync::Arc::clone(&other.opened))).collect(),
    });
    let shown = scene.derived.ask(&ask);
    let curves = shown.answer.as_deref().and_then(Answer::compare).and_then(|found| match found {
        compare::Answer::Curves(curves) => Some(&**curves),
        compare::Answer::Deltas(_) => None,
    });
    let plot_ui = |ui: &mut Ui, choices: &mut Choices, id, title: &str| {
        let picture = curves.map(|curves: &Curves| match id {
            CDF => &curves.cdf,
            _ => &curves.percentiles,
        });
        let (fresh, describe, controls) = (shown.fresh, None, None);
        let rules = &mut [];
        XyPlot { id, title, height, picture, fresh, describe, controls, rules }.show(ui, choices);
    };
    theme::card(Palette::of(ui)).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.spacing_mut().item_spacing.y = 0.0;
        choices_ui(ui, scene.choices);
        ui.add_space(GRID);
        plot_ui(ui, scene.choices, PERCENTILES, "Percentiles");
    });
    theme::card(Palette::of(ui)).show(ui, |ui| {
        ui.set_width(ui.available_width());
        plot_ui(ui, scene.choices, CDF, "Cumulative share");
    });
}

fn choices_ui(ui: &mut Ui, choices: &mut Choices) {
    let size = vec2(ui.available_width(), CHOICES - GRID);
    ui.allocate_ui_with_layout(size, Layout::left_to_right(Align::Center), |ui| {
        ui.spacing_mut().item_spacing.x = 4.0 * GRID;
        let chosen = &mut choices.compare;
        let numbers = Number::all().map(|number| (number, number.name(), number.about()));
        choice::show(ui, "Compared number", NUMBER_WIDTH, &mut chosen.number, numbers.clone());
        switch::show(
            ui,
            "Scale",
            &mut chosen.scale,
            &[
                (Scale::Log, "Log", "Values by powers of ten"),
                (Scale::Linear, "Linear", "Values from zero, in even steps"),
            ],
        );
    });
}

fn deltas_ui(ui: &mut Ui, scene: &mut Scene<'_>, height: f32) {
    let baseline = scene.choices.compare.baseline;
    let ask = Ask::Compare(compare::Ask::Deltas {
        selection: scene.choices.selection(),
        goals: scene.choices.goals.clone(),
        baseline: Peer(std::sync::Arc::clone(&scene.others[baseline].opened)),
    });
    let shown = scene.derived.ask(&ask);
    let deltas = shown.answer.as_deref().and_then(Answer::compare).and_then(|found| match found {
        compare::Answer::Deltas(deltas) => Some(deltas),
        compare::Answer::Curves(_) => None,
    });
    theme::card(Palette::of(ui)).show(ui, |ui| {
        ui.set_width(ui.available_width());
        let inner = (height - theme::CARD_CHROME).max(160.0);
        ui.set_min_height(inner);
        ui.spacing_mut().item_spacing.y = GRID;
        let name = own_name(scene.derived.subject(), scene.others);
        baseline_ui(ui, &name, scene.others, &mut scene.choices.compare.baseline);
        let Some(deltas) = deltas else {
            ui.add(egui::Spinner::new().size(16.0));
            return;
        };
        if !shown.fresh {
            ui.disable();
        }
        let body = (inner - 26.0 - GRID).max(120.0);
        ScrollArea::vertical().id_salt("deltas").max_height(body).auto_shrink([false, false]).show(
            ui,
            |ui| {
                ui.spacing_mut().item_spacing.y = 2.0 * GRID;
                small_ui(ui, &deltas.pairing);
                deltas_table_ui(ui, deltas, LETTERS[baseline + 1]);
                small_ui(ui, &format!("{CAUTION} {}", deltas.without_interval()));
                moved_ui(ui, deltas);
                setup_ui(ui, deltas, LETTERS[baseline + 1]);
            },
        );
    });
}

/// Against which run.
fn baseline_ui(ui: &mut Ui, shown: &str, others: &[Other], baseline: &mut usize) {
    let palette = Palette::of(ui);
    ui.horizontal(|ui| {
        ui.spacing_mut().item_spacing.x = 2.0 * GRID;
        ui.label(RichText::new("What differs").font(Type::Title.font()));
        let words = RichText::new("A held against").color(palette.weak);
        ui.label(words).on_hover_text(format!("A is {shown}"));
        let name = |place: usize| format!("{} {}", LETTERS[place + 1], others[place].name);
        let list = ComboBox::from_id_salt("baseline").selected_text(name(*baseline)).width(200.0);
        let list = list.truncate().show_ui(ui, |ui| {
            for place in 0..others.len().min(LETTERS.len() - 1) {
                ui.selectable_value(baseline, place, name(place));
            }
        });
        list.response.accessible_name("Baseline");
    });
}

fn deltas_table_ui(ui: &mut Ui, deltas: &Deltas, letter: &str) {
    let columns = [
        Column::text("", 1.5),
        Column { weight: 0.85, ..Column::number(letter) },
        Column { weight: 0.85, ..Column::number("A") },
        Column { weight: 0.95, ..Column::number("change") },
        Column { weight: 0.75, ..Column::number("relative") },
        Column { weight: 1.7, ..Column::number("95 % interval") },
        Column::text("", 0.7),
    ];
    // Where there is no room for all, what follows from the others is left out.
    let shown = if ui.available_width() < ALL_COLUMNS {
        &[0, 2, 3, 5, 6][..]
    } else {
        &[0, 1, 2, 3, 4, 5, 6]
    };
    let columns: Vec<Column> = shown.iter().map(|&column| columns[column].clone()).collect();
    let cell = |row: usize, place: usize| {
        let row = &deltas.rows[row];
        let value = match shown[place] {
            0 => return row.name.clone(),
            1 => &row.baseline,
            2 => &row.shown,
            3 => &row.change,
            4 => &row.relative,
            5 if row.too_few.is_some() => return TOO_FEW.to_owned(),
            5 => &row.interval,
            _ => return row.word.to_owned(),
        };
        value.clone().unwrap_or_else(|| quantity::NO_DATA_CELL.to_owned())
    };
    Table {
        name: "What differs",
        columns: &columns,
        rows: deltas.rows.len(),
        cell: &cell,
        row_headings: true,
    }
    .show(ui);
}

fn small_ui(ui: &mut Ui, words: &str) {
    let palette = Palette::of(ui);
    ui.label(RichText::new(words).font(Type::Small.font()).color(palette.weak));
}

/// Rank tests: whether values are larger at all, however long the tail is.
fn moved_ui(ui: &mut Ui, deltas: &Deltas) {
    if deltas.moved.is_empty() {
        return;
    }
    ui.label(RichText::new("Whether values moved").font(Type::Title.font()));
    let columns = [
        Column::text("", 1.2),
        Column::number("A is larger in"),
        Column::number("by chance"),
        Column::text("rank test", 1.4),
    ];
    let cell = |row: usize, column: usize| {
        let moved = &deltas.moved[row];
        let value = match column {
            0 => moved.name,
            1 => return format!("{} of pairs", moved.larger),
            2 => &moved.chance,
            _ => moved.test,
        };
        value.to_owned()
    };
    Table {
        name: "Whether values moved",
        columns: &columns,
        rows: deltas.moved.len(),
        cell: &cell,
        row_headings: true,
    }
    .show(ui);
}

fn setup_ui(ui: &mut Ui, deltas: &Deltas, letter: &str) {
    ui.label(RichText::new("What was run differently").font(Type::Title.font()));
    if deltas.setup.is_empty() {
        let palette = Palette::of(ui);
        ui.label(RichText::new("Nothing that the logs tell.").color(palette.weak));
        return;
    }
    let columns = [Column::text("", 1.0), Column::text(letter, 2.0), Column::text("A", 2.0)];
    let cell = |row: usize, column: usize| {
        let Differs { what, base, new } = &deltas.setup[row];
        let value = match column {
            0 => what,
            1 => base,
            _ => new,
        };
        if value.is_empty() { quantity::NO_DATA_CELL.to_owned() } else { value.clone() }
    };
    Table {
        name: "What was run differently",
        columns: &columns,
        rows: deltas.setup.len(),
        cell: &cell,
        row_headings: true,
    }
    .show(ui);
}
