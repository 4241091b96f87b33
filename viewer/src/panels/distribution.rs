//! Distribution: how one number is spread over the selected requests, against the whole run.

use eframe::egui::{Align, Layout, RichText, Ui, vec2};

use super::slo::rules as goals;
use super::{Panel, Scene};
use crate::series::Ask;
use crate::series::axes::Direction;
use crate::series::distribution::{self, Distribution, DistributionChoices};
use crate::series::number::Number;
use crate::series::picture::Picture;
use crate::state::{Choices, Scale};
use crate::theme::{self, GRID, GUTTER, Palette, Type};
use crate::widgets::{
    choice,
    rule::Rule,
    switch,
    table::{Column, Table},
    xy_plot::{self, XyPlot},
};

/// The panel.
pub(super) const PANEL: Panel = Panel {
    name: "Distribution",
    about: "How is a number spread over the requests?",
    plots: PLOTS,
    draw,
};

const PERCENTILES: &str = "distribution percentiles";
const CDF: &str = "distribution cdf";
const HISTOGRAM: &str = "distribution histogram";
const PLOTS: &[&str] = &[PERCENTILES, CDF, HISTOGRAM];

/// Width of the table of percentiles: of one column, and of two.
const SIDE_WIDTH: (f32, f32) = (236.0, 316.0);
/// Below this width everything stands in one column.
const TWO_COLUMNS: f32 = 820.0;
/// Height of the line of choices.
const CHOICES: f32 = 26.0 + GRID;
/// What the two rows of plots need besides their plots.
const CHROME: f32 = 2.0 * (theme::CARD_CHROME + xy_plot::HEADING) + CHOICES + GUTTER;
/// Width of the list of numbers.
const NUMBER_WIDTH: f32 = 230.0;

fn draw(ui: &mut Ui, scene: &mut Scene<'_>) {
    ui.spacing_mut().item_spacing.y = GUTTER;
    let DistributionChoices { number, scale, against_whole } = scene.choices.distribution;
    let selection = scene.choices.selection();
    let ask = Ask::Distribution(distribution::Ask { number, scale, selection, against_whole });
    let shown = scene.derived.ask(&ask);
    let found = shown.answer.as_deref().and_then(crate::series::Answer::distribution);
    let of = Shown { found, fresh: shown.fresh };
    let height = ui.available_height();
    if ui.available_width() < TWO_COLUMNS {
        of.percentiles_ui(ui, scene.choices, 240.0);
        of.cdf_ui(ui, scene.choices, 200.0);
        of.histogram_ui(ui, scene.choices, 200.0);
        of.figures_ui(ui, number);
        return;
    }
    let has_whole = found.is_some_and(|found| found.has_whole);
    let side = if has_whole { SIDE_WIDTH.1 } else { SIDE_WIDTH.0 };
    let width = ui.available_width() - side - GUTTER;
    let plots = (height - CHROME).max(320.0);
    ui.horizontal_top(|ui| {
        ui.spacing_mut().item_spacing.x = GUTTER;
        ui.vertical(|ui| {
            ui.set_width(width);
            ui.spacing_mut().item_spacing.y = GUTTER;
            of.percentiles_ui(ui, scene.choices, (plots * 0.54).floor());
            let height = (plots * 0.46).floor();
            ui.horizontal_top(|ui| {
                ui.spacing_mut().item_spacing.x = GUTTER;
                let half = ((width - GUTTER) / 2.0).floor();
                for draw in [Shown::cdf_ui, Shown::histogram_ui] {
                    ui.vertical(|ui| {
                        ui.set_width(half);
                        draw(&of, ui, scene.choices, height);
                    });
                }
            });
        });
        ui.vertical(|ui| {
            ui.set_width(side);
            of.figures_ui(ui, number);
        });
    });
}

/// What there is to draw.
struct Shown<'a> {
    found: Option<&'a Distribution>,
    fresh: bool,
}

impl Shown<'_> {
    fn percentiles_ui(&self, ui: &mut Ui, choices: &mut Choices, height: f32) {
        theme::card(Palette::of(ui)).show(ui, |ui| {
            ui.set_width(ui.available_width());
            ui.spacing_mut().item_spacing.y = 0.0;
            choices_ui(ui, choices);
            ui.add_space(GRID);
            let picture = self.found.map(|found| &found.percentiles);
            self.plot_ui(ui, choices, (PERCENTILES, "Percentiles"), height, picture, &mut []);
        });
    }

    fn cdf_ui(&self, ui: &mut Ui, choices: &mut Choices, height: f32) {
        let picture = self.found.map(|found| &found.cdf);
        self.marked_ui(ui, choices, (CDF, "Cumulative share"), height, picture);
    }

    fn histogram_ui(&self, ui: &mut Ui, choices: &mut Choices, height: f32) {
        let picture = self.found.map(|found| &found.histogram);
        self.marked_ui(ui, choices, (HISTOGRAM, "Histogram"), height, picture);
    }

    /// A plot with lines at the percentiles and, where there is one, at the goal.
    fn marked_ui(
        &self,
        ui: &mut Ui,
        choices: &mut Choices,
        names: (&'static str, &str),
        height: f32,
        picture: Option<&Picture>,
    ) {
        let marks = self.found.map(|found| found.marks.as_slice()).unwrap_or_default();
        let rule = |&(name, value, colour): &(&'static str, f64, usize)| {
            let rule = Rule::vertical(name, value, colour).dashed();
            // A cumulative share fills the plot above on the left.
            if names.0 == CDF { rule.named_at_origin() } else { rule }
        };
        let mut rules: Vec<Rule> = marks.iter().map(rule).collect();
        let goal = choices.distribution.number.goal();
        rules.extend(goal.and_then(|kind| goals::of(choices, kind, Direction::Vertical)));
        theme::card(Palette::of(ui)).show(ui, |ui| {
            ui.set_width(ui.available_width());
            self.plot_ui(ui, choices, names, height, picture, &mut rules);
        });
        if let Some(kind) = goal {
            goals::take(choices, kind, &rules);
        }
    }

    fn plot_ui(
        &self,
        ui: &mut Ui,
        choices: &mut Choices,
        (id, title): (&'static str, &str),
        height: f32,
        picture: Option<&Picture>,
        rules: &mut [Rule],
    ) {
        let (fresh, describe, controls) = (self.fresh, None, None);
        XyPlot { id, title, height, picture, fresh, describe, controls, rules }.show(ui, choices);
    }

    fn figures_ui(&self, ui: &mut Ui, number: Number) {
        let palette = Palette::of(ui);
        theme::card(palette).show(ui, |ui| {
            ui.set_width(ui.available_width());
            ui.spacing_mut().item_spacing.y = GRID;
            ui.label(RichText::new(number.name()).font(Type::Title.font()));
            let small =
                |text: &str| RichText::new(text).font(Type::Small.font()).color(palette.weak);
            ui.label(small(number.about()));
            let Some(found) = self.found else { return };
            if !self.fresh {
                ui.disable();
            }
            figures_table_ui(ui, found);
            ui.add_space(GRID);
            ui.spacing_mut().item_spacing.y = 1.0;
            for words in &found.words {
                ui.label(small(words));
            }
        });
    }
}

fn choices_ui(ui: &mut Ui, choices: &mut Choices) {
    let is_part = !choices.selection().is_everything();
    let size = vec2(ui.available_width(), CHOICES - GRID);
    ui.allocate_ui_with_layout(size, Layout::left_to_right(Align::Center), |ui| {
        ui.spacing_mut().item_spacing.x = 5.0 * GRID;
        let chosen = &mut choices.distribution;
        let numbers = Number::all().map(|number| (number, number.name(), number.about()));
        choice::show(ui, "Number", NUMBER_WIDTH, &mut chosen.number, numbers);
        switch::show(
            ui,
            "Scale",
            &mut chosen.scale,
            &[
                (Scale::Log, "Log", "Values by powers of ten"),
                (Scale::Linear, "Linear", "Values from zero, in even steps"),
            ],
        );
        if is_part {
            switch::show(
                ui,
                "Compared with",
                &mut chosen.against_whole,
                &[
                    (true, "With whole run", "The whole run stands beside the selection"),
                    (false, "Selection only", "Nothing but the selection"),
                ],
            );
        }
    });
}

fn figures_table_ui(ui: &mut Ui, found: &Distribution) {
    let columns = if found.has_whole {
        vec![Column::text("", 0.7), Column::number("selection"), Column::number("whole run")]
    } else {
        vec![Column::text("", 0.7), Column::number("")]
    };
    let cell = |row: usize, column: usize| {
        let figure = &found.figures[row];
        let value = match column {
            0 => return figure.name.to_owned(),
            1 => &figure.chosen,
            _ => &figure.whole,
        };
        value.clone().unwrap_or_else(|| crate::quantity::NO_DATA_CELL.to_owned())
    };
    Table {
        name: "Figures of the distribution",
        columns: &columns,
        rows: found.figures.len(),
        cell: &cell,
        row_headings: true,
    }
    .show(ui);
}
