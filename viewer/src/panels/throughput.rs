//! Throughput: what passed over the wire, and how much was under way, over time and on average.

use eframe::egui::{RichText, Ui};

use super::{Panel, Scene, overview};
use crate::quantity;
use crate::series::throughput::{self, Figure, Figures};
use crate::series::{Answer, Ask};
use crate::state::Flow;
use crate::theme::{self, GRID, GUTTER, Palette, Type};
use crate::widgets::{
    table::{Column, Table},
    time_plot,
};

/// The panel.
pub(super) const PANEL: Panel =
    Panel { name: "Throughput", about: "How much passed, and when?", plots: PLOTS, draw };

const OUTPUT: &str = "output-flow";
const INPUT: &str = "input-flow";
const REQUESTS: &str = "request-flow";
const CONCURRENCY: &str = "concurrency";
const PLOTS: &[&str] = &[OUTPUT, INPUT, REQUESTS, CONCURRENCY];

/// The plots of rates, from the top.
const FLOWS: [(&str, &str, Flow); 3] = [
    (OUTPUT, "Output tokens", Flow::OutputTokens),
    (INPUT, "Input tokens", Flow::InputTokens),
    (REQUESTS, "Requests ended", Flow::Requests),
];

/// Width of the table beside the plots.
const SIDE_WIDTH: f32 = 316.0;
/// Below this width the table goes under the plots.
const TWO_COLUMNS: f32 = 820.0;
/// What the card with the four plots needs besides them.
const CHROME: f32 = theme::CARD_CHROME + 4.0 * time_plot::HEADING + 3.0 * GUTTER;

fn draw(ui: &mut Ui, scene: &mut Scene<'_>) {
    ui.spacing_mut().item_spacing.y = GUTTER;
    if ui.available_width() < TWO_COLUMNS {
        plots_ui(ui, scene, 120.0);
        figures_ui(ui, scene);
        return;
    }
    let height = ((ui.available_height() - CHROME) / 4.0).floor().max(72.0);
    let width = ui.available_width() - SIDE_WIDTH - GUTTER;
    ui.horizontal_top(|ui| {
        ui.spacing_mut().item_spacing.x = GUTTER;
        ui.vertical(|ui| {
            ui.set_width(width);
            plots_ui(ui, scene, height);
        });
        ui.vertical(|ui| {
            ui.set_width(SIDE_WIDTH);
            figures_ui(ui, scene);
        });
    });
}

fn plots_ui(ui: &mut Ui, scene: &mut Scene<'_>, height: f32) {
    theme::card(Palette::of(ui)).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.spacing_mut().item_spacing.y = 0.0;
        let filter = scene.choices.filter.clone();
        for (id, title, flow) in FLOWS {
            let ask = Ask::Flow { view: scene.stretch_of(id), filter: filter.clone(), flow };
            scene.time_plot_ui(ui, (id, title, height), &ask);
            ui.add_space(GUTTER);
        }
        let columns = overview::plot_columns(ui);
        let view = scene.stretch_of(CONCURRENCY);
        let ask = Ask::Throughput(throughput::Ask::Concurrency { view, filter, columns });
        scene.time_plot_ui(ui, (CONCURRENCY, "Requests at once", height), &ask);
    });
}

fn figures_ui(ui: &mut Ui, scene: &Scene<'_>) {
    let palette = Palette::of(ui);
    theme::card(palette).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.spacing_mut().item_spacing.y = GRID;
        let selection = scene.choices.selection();
        let ask = Ask::Throughput(throughput::Ask::Figures { selection });
        let shown = scene.derived.ask(&ask);
        let small = |text: String| RichText::new(text).font(Type::Small.font()).color(palette.weak);
        let Some(figures) = shown.answer.as_deref().and_then(Answer::throughput) else {
            ui.label(small("Working…".to_owned()));
            return;
        };
        if !shown.fresh {
            ui.disable();
        }
        ui.label(RichText::new("On average and at most").font(Type::Title.font()));
        ui.label(small(stretch_words(figures)));
        means_ui(ui, figures);
        ui.add_space(GUTTER);
        ui.label(RichText::new("In all").font(Type::Title.font()));
        totals_ui(ui, &figures.rates);
        ui.add_space(GUTTER);
        ui.label(small(explanation(figures)));
    });
}

fn means_ui(ui: &mut Ui, figures: &Figures) {
    let columns = [Column::text("", 1.9), Column::number("mean"), Column::number("peak")];
    let rates = figures.rates.len();
    let cell = |row: usize, column: usize| {
        let figure = if row < rates { figures.rates[row] } else { figures.levels[row - rates] };
        match column {
            0 if row < rates => format!("{}/s", figure.name),
            0 => figure.name.to_owned(),
            1 => number(figure.mean),
            _ => number(figure.peak),
        }
    };
    let (name, rows) = ("Means and peaks", rates + figures.levels.len());
    Table { name, columns: &columns, rows, cell: &cell, row_headings: true }.show(ui);
}

fn totals_ui(ui: &mut Ui, rates: &[Figure]) {
    let columns = [Column::text("", 1.9), Column::number(""), Column::number("")];
    let cell = |row: usize, column: usize| match column {
        0 => rates[row].name.to_owned(),
        1 => String::new(),
        _ => number(rates[row].total),
    };
    let rows = rates.len();
    Table { name: "What passed in all", columns: &columns, rows, cell: &cell, row_headings: true }
        .show(ui);
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| quantity::NO_DATA_CELL.to_owned(), quantity::number)
}

fn stretch_words(figures: &Figures) -> String {
    let (start, end) = (figures.stretch.start.0 as f64, figures.stretch.end.0 as f64);
    let span = figures.stretch.span() as f64;
    format!("from {} to {}", quantity::instant(start, span), quantity::instant(end, span))
}

/// What the numbers are, for whoever compares them with others.
fn explanation(figures: &Figures) -> String {
    let peaks = match figures.step {
        Some(step) => format!("Peaks of rates are those of {}.", step_words(step)),
        None => "The stretch is too short for peaks of rates.".to_owned(),
    };
    format!(
        "Everything that passed in this stretch of time, whatever became of the request; the \
         report's rates count successful requests only. Output tokens count when their chunk came, \
         input tokens at the first token, requests at their end. {peaks}"
    )
}

fn step_words(step: i64) -> String {
    if step == onbeat_shared::units::NANOS_PER_SECOND {
        return "whole seconds".to_owned();
    }
    format!("steps of {}", quantity::duration(step as f64))
}
