//! Latency: how long requests took, when, and how that is spread; with the throughput beside it.

use eframe::egui::{Align, Layout, RichText, Ui, vec2};
use onbeat_shared::metrics::{Report, quantile::Statistic, report::Latency};

use super::slo::rules;
use super::{Panel, PanelWish, Scene};
use crate::opened::OpenedRun;
use crate::quantity;
use crate::series::axes::Direction;
use crate::series::{Answer, Ask, latency};
use crate::state::{Choices, Flow, Metric, Origin, Scale};
use crate::theme::{self, GRID, GUTTER, Palette, Type};
use crate::widgets::{
    switch,
    table::{Column, Table},
    time_plot::{self, TimePlot},
};

/// The panel.
pub(super) const PANEL: Panel =
    Panel { name: "Latency", about: "How long did requests take?", plots: PLOTS, draw };

const LATENCY: &str = "latency";
const FLOW: &str = "flow";
const PLOTS: &[&str] = &[LATENCY, FLOW];

/// Width of the percentile table.
const SIDE_WIDTH: f32 = 316.0;
/// Below this width the table goes under the plots.
const TWO_COLUMNS: f32 = 820.0;
/// Room that the switches need side by side.
const SWITCHES_WIDTH: f32 = 620.0;
/// Height of the line of switches.
const SWITCHES: f32 = 26.0 + GRID;
/// What the two plot cards need besides their plots.
const CHROME: f32 = 2.0 * (theme::CARD_CHROME + time_plot::HEADING) + SWITCHES + GUTTER;

fn draw(ui: &mut Ui, scene: &mut Scene<'_>) {
    ui.spacing_mut().item_spacing.y = GUTTER;
    let height = ui.available_height();
    if ui.available_width() < TWO_COLUMNS {
        latency_ui(ui, scene, 260.0);
        flow_ui(ui, scene, 140.0);
        percentiles_ui(ui, scene);
        return;
    }
    let plots_width = ui.available_width() - SIDE_WIDTH - GUTTER;
    let plots = (height - CHROME).max(300.0);
    ui.horizontal_top(|ui| {
        ui.spacing_mut().item_spacing.x = GUTTER;
        ui.vertical(|ui| {
            ui.set_width(plots_width);
            ui.spacing_mut().item_spacing.y = GUTTER;
            latency_ui(ui, scene, (plots * 0.66).floor());
            flow_ui(ui, scene, (plots * 0.34).floor());
        });
        ui.vertical(|ui| {
            ui.set_width(SIDE_WIDTH);
            percentiles_ui(ui, scene);
        });
    });
}

fn latency_ui(ui: &mut Ui, scene: &mut Scene<'_>, height: f32) {
    theme::card(Palette::of(ui)).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.spacing_mut().item_spacing.y = 0.0;
        choices_ui(ui, scene.choices);
        ui.add_space(GRID);
        let Choices { metric, origin, scale, .. } = *scene.choices;
        let filter = scene.choices.filter.clone();
        let view = scene.stretch_of(LATENCY);
        let ask = Ask::Latency { view, metric, origin, scale, filter };
        let shown = scene.derived.ask(&ask);
        let opened = scene.derived.subject();
        let describe = |request: u32| describe(opened, request as usize, metric, origin);
        let goal = rules::on_latency(metric, origin);
        let mut lines = Vec::from_iter(rules::of(scene.choices, goal, Direction::Horizontal));
        let clicked = TimePlot {
            id: LATENCY,
            title: title(metric, origin),
            height,
            picture: shown.answer.as_deref().and_then(Answer::picture),
            fresh: shown.fresh,
            describe: Some(&describe),
            controls: None,
            rules: &mut lines,
        }
        .show(ui, scene.choices);
        rules::take(scene.choices, goal, &lines);
        scene.wish.extend(clicked.map(PanelWish::ShowRequest));
    });
}

fn choices_ui(ui: &mut Ui, choices: &mut Choices) {
    // Side by side where there is room, else one below the other.
    let layout = if ui.available_width() >= SWITCHES_WIDTH {
        Layout::left_to_right(Align::Center)
    } else {
        Layout::top_down(Align::Min)
    };
    let size = vec2(ui.available_width(), 26.0);
    ui.allocate_ui_with_layout(size, layout, |ui| {
        ui.spacing_mut().item_spacing = vec2(5.0 * GRID, GRID);
        switch::show(
            ui,
            "Latency",
            &mut choices.metric,
            &[
                (Metric::Ttft, "First token", "Time to first token"),
                (Metric::Itl, "Between tokens", "Mean time between the tokens of an answer"),
                (Metric::EndToEnd, "End to end", "Time to the last token"),
            ],
        );
        ui.add_enabled_ui(choices.metric != Metric::Itl, |ui| {
            switch::show(
                ui,
                "Measured from",
                &mut choices.origin,
                &[
                    (Origin::Sent, "From sent", "From the moment the request left"),
                    (
                        Origin::Due,
                        "From due",
                        "From the moment the schedule wanted it to leave: our own delay counts too",
                    ),
                ],
            );
        });
        switch::show(
            ui,
            "Scale",
            &mut choices.scale,
            &[
                (Scale::Linear, "Linear", "Heights from zero, in even steps"),
                (Scale::Log, "Log", "Heights by powers of ten"),
            ],
        );
    });
}

const fn title(metric: Metric, origin: Origin) -> &'static str {
    match (metric, origin) {
        (Metric::Ttft, Origin::Sent) => "Time to first token",
        (Metric::Ttft, Origin::Due) => "Time to first token, from due",
        (Metric::Itl, _) => "Time between tokens",
        (Metric::EndToEnd, Origin::Sent) => "End to end",
        (Metric::EndToEnd, Origin::Due) => "End to end, from due",
    }
}

/// What to say about a request under the pointer.
fn describe(opened: &OpenedRun, i: usize, metric: Metric, origin: Origin) -> String {
    let run = &opened.run;
    let requests = &run.requests;
    let plan = &run.plan[i];
    let value = quantity::measured_or_word(latency::value(opened, i, metric, origin));
    let sent = requests.sent(i).map(|sent| quantity::instant(sent.0 as f64, 1e8));
    let tokens = |count: Option<u32>| {
        count.map_or_else(|| quantity::NO_DATA.to_owned(), |count| quantity::count(count.into()))
    };
    format!(
        "{}: {value}\nrequest {i}, sent at {}\nsession {}, turn {}\ninput {}, output {} tokens",
        title(metric, origin),
        sent.as_deref().unwrap_or(quantity::NO_DATA),
        run.session_name(i).unwrap_or("without a name"),
        plan.turn,
        tokens(requests.prompt_tokens(i).or(plan.input_tokens)),
        tokens(requests.completion_tokens(i)),
    )
}

fn flow_ui(ui: &mut Ui, scene: &mut Scene<'_>, height: f32) {
    theme::card(Palette::of(ui)).show(ui, |ui| {
        ui.set_width(ui.available_width());
        let flow = scene.choices.flow;
        let (view, filter) = (scene.stretch_of(FLOW), scene.choices.filter.clone());
        let shown = scene.derived.ask(&Ask::Flow { view, flow, filter });
        let mut controls = |ui: &mut Ui, choices: &mut Choices| {
            switch::show(
                ui,
                "Throughput",
                &mut choices.flow,
                &[
                    (Flow::OutputTokens, "Output", "Output tokens, when their chunk arrived"),
                    (Flow::InputTokens, "Input", "Input tokens, at the first token"),
                    (Flow::Requests, "Requests", "Requests, when they ended"),
                ],
            );
        };
        TimePlot {
            id: FLOW,
            title: "Throughput",
            height,
            picture: shown.answer.as_deref().and_then(Answer::picture),
            fresh: shown.fresh,
            describe: None,
            controls: Some(&mut controls),
            rules: &mut [],
        }
        .show(ui, scene.choices);
    });
}

fn percentiles_ui(ui: &mut Ui, scene: &mut Scene<'_>) {
    let palette = Palette::of(ui);
    let origin = scene.choices.origin;
    theme::card(palette).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.spacing_mut().item_spacing.y = GRID;
        scene.with_report(|report, fresh| {
            if !fresh {
                ui.disable();
            }
            ui.label(RichText::new("Percentiles").font(Type::Title.font()));
            let from = match origin {
                Origin::Sent => "successful requests, from sent",
                Origin::Due => "successful requests, from due",
            };
            ui.label(RichText::new(from).font(Type::Small.font()).color(palette.weak));
            percentile_table_ui(ui, &report.latency, origin);
            ui.add_space(GUTTER);
            ui.label(RichText::new("Throughput").font(Type::Title.font()));
            throughput_table_ui(ui, report);
        });
    });
}

/// A row of the percentile table: its name and how to find its number.
type Row = (&'static str, fn(&Statistic) -> f64);

const ROWS: &[Row] = &[
    ("mean", |found| found.mean),
    ("min", |found| found.min),
    ("p5", |found| found.p5),
    ("p25", |found| found.p25),
    ("p50", |found| found.p50),
    ("p75", |found| found.p75),
    ("p90", |found| found.p90),
    ("p95", |found| found.p95),
    ("p99", |found| found.p99),
    ("p99.9", |found| found.p999),
    ("max", |found| found.max),
];

fn percentile_table_ui(ui: &mut Ui, found: &Latency, origin: Origin) {
    let columns = [
        Column::text("", 0.75),
        Column::number("first token"),
        Column::number("between"),
        Column::number("end to end"),
    ];
    let statistics = match origin {
        Origin::Sent => [&found.ttft_ms, &found.itl_ms, &found.e2e_ms],
        Origin::Due => [&found.ttft_from_due_ms, &found.itl_ms, &found.e2e_from_due_ms],
    };
    let cell = |row: usize, column: usize| {
        let Some(place) = column.checked_sub(1) else {
            return if row == 0 { "count".to_owned() } else { ROWS[row - 1].0.to_owned() };
        };
        match (statistics[place], row) {
            (Some(found), 0) => quantity::count(found.count),
            (None, 0) => "0".to_owned(),
            (Some(found), row) => quantity::measured(ROWS[row - 1].1(found) * 1e6),
            (None, _) => quantity::NO_DATA_CELL.to_owned(),
        }
    };
    Table {
        name: "Latency percentiles",
        columns: &columns,
        rows: ROWS.len() + 1,
        cell: &cell,
        row_headings: true,
    }
    .show(ui);
}

fn throughput_table_ui(ui: &mut Ui, report: &Report) {
    let throughput = &report.throughput;
    let user = throughput.output_tokens_per_s_per_user.as_ref();
    let rows: [(&str, Option<f64>, &str); 6] = [
        ("requests completed", throughput.requests_per_s, "/s"),
        ("input tokens", throughput.input_tokens_per_s, "/s"),
        ("output tokens", throughput.output_tokens_per_s, "/s"),
        ("most output tokens", throughput.peak_output_tokens_per_s, "/s"),
        ("per user, median", user.map(|user| user.p50), "tokens/s"),
        ("most in flight", throughput.peak_in_flight.map(|most| most as f64), ""),
    ];
    let columns = [Column::text("", 1.3), Column::number("")];
    let cell = |row: usize, column: usize| {
        let (name, value, unit) = rows[row];
        if column == 0 { name.to_owned() } else { quantity::number_with(value, unit) }
    };
    Table { name: "Rates", columns: &columns, rows: rows.len(), cell: &cell, row_headings: true }
        .show(ui);
}
