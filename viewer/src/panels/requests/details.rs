//! What there is to know about the chosen request: its waterfall, its facts, the turns of its
//! session and its neighbours. Every row of these leads to its own request.

use eframe::egui::{self, Align, Button, Color32, Layout, RichText, ScrollArea, Spinner, Ui, vec2};
use onbeat_shared::run::Run;

use super::{Scene, colour, column, session, turn_beside, waterfall};
use crate::derive::Shown;
use crate::fate::Fate;
use crate::fields::Field;
use crate::quantity;
use crate::series::Answer;
use crate::series::requests::{
    RequestsChoices,
    details::{Details, Group},
};
use crate::state::Origin;
use crate::theme::{self, GRID, GUTTER, Palette, Type};
use crate::widgets::{
    grid::{Grid, GridColumn, GridKeys},
    switch,
    table::{Column, Table},
};

const FACTS_WIDTH: f32 = 246.0;
const NEAR_WIDTH: f32 = 322.0;
/// Below this width everything stands in one column.
const SIDE_BY_SIDE: f32 = 860.0;
const HEADING: f32 = 26.0 + GRID;
/// From this height on the turns of the session are drawn over time as well.
const WITH_STRIP: f32 = 270.0;

/// Draws the details of a request: those asked for, or the last ones while these are being made.
pub(super) fn show(
    ui: &mut Ui,
    scene: &mut Scene<'_>,
    shown: &Shown<Answer>,
    request: u32,
    hidden: Option<&str>,
    height: f32,
) {
    let derived = scene.derived;
    let run = &derived.subject().run;
    let answer = shown.answer.as_deref().and_then(Answer::requests);
    let details = answer.and_then(|answer| answer.details(run));
    let choices = &mut scene.choices.requests;
    theme::card(Palette::of(ui)).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.spacing_mut().item_spacing.y = GRID;
        let top = ui.cursor().top();
        heading_ui(ui, choices, run, request, details.filter(|_| shown.fresh));
        if let Some(hidden) = hidden {
            let palette = Palette::of(ui);
            ui.label(RichText::new(hidden).font(Type::Small.font()).color(palette.warn));
        }
        let Some(details) = details else {
            ui.add(Spinner::new().size(20.0));
            return;
        };
        if !shown.fresh {
            ui.disable();
        }
        error_ui(ui, details);
        let used = ui.cursor().top() - top;
        body_ui(ui, choices, run, details, height - theme::CARD_CHROME - used);
    });
}

fn heading_ui(
    ui: &mut Ui,
    choices: &mut RequestsChoices,
    run: &Run,
    request: u32,
    details: Option<&Details>,
) {
    let palette = Palette::of(ui);
    let i = request as usize;
    let size = vec2(ui.available_width(), HEADING - GRID);
    ui.allocate_ui_with_layout(size, Layout::left_to_right(Align::Center), |ui| {
        ui.label(RichText::new(format!("Request {request}")).font(Type::Heading.font()));
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            let close = ui.button("Close").on_hover_text("Close the details (Enter)");
            if close.clicked() {
                choices.details = false;
            }
            turns_ui(ui, choices, details);
            origin_ui(ui, choices, run, i);
            ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                outcome_ui(ui, run, request);
                let session = Field::Session.words(run, i);
                let words = format!(
                    "{}, turn {}",
                    session
                        .map_or_else(|| "no session name".to_owned(), |it| format!("session {it}")),
                    run.plan[i].turn
                );
                ui.add(egui::Label::new(RichText::new(words).color(palette.weak)).truncate());
            });
        });
    });
}

fn turns_ui(ui: &mut Ui, choices: &mut RequestsChoices, details: Option<&Details>) {
    // From right to left.
    for (name, forward, key) in [("Next turn", true, "N"), ("Previous turn", false, "P")] {
        let to = details.and_then(|details| turn_beside(details, forward));
        let button = ui.add_enabled(to.is_some(), Button::new(name));
        let about = format!(
            "The {} request of the session ({key})",
            if forward { "next" } else { "previous" }
        );
        if button.on_hover_text(about).clicked()
            && let Some(to) = to
        {
            choices.show(to);
        }
    }
}

fn origin_ui(ui: &mut Ui, choices: &mut RequestsChoices, run: &Run, i: usize) {
    ui.add_space(GRID);
    let known = run.requests.sent(i).is_some() && run.requests.due(i).is_some();
    ui.add_enabled_ui(known, |ui| {
        switch::show(
            ui,
            "Times of the request",
            &mut choices.origin,
            &[
                (Origin::Sent, "From sent", "Times count from when it was sent"),
                (Origin::Due, "From due", "Times count from when it was due"),
            ],
        );
    });
}

fn outcome_ui(ui: &mut Ui, run: &Run, request: u32) {
    let palette = Palette::of(ui);
    let i = request as usize;
    let word = Field::Outcome.words(run, i);
    let word = word.or_else(|| Field::Class.words(run, i)).unwrap_or_default();
    let fill: (Color32, Color32) = match Fate::of(run, i) {
        Fate::Ok => (palette.good, palette.good_soft),
        Fate::Failed => (palette.bad, palette.bad_soft),
        Fate::Cut | Fate::Open | Fate::Unsent => (palette.warn, palette.warn_soft),
    };
    egui::Frame::new()
        .fill(fill.1)
        .corner_radius(4.0)
        .inner_margin(egui::Margin::symmetric(6, 1))
        .show(ui, |ui| {
            ui.label(RichText::new(word).font(Type::Strong.font()).color(fill.0));
        });
}

fn error_ui(ui: &mut Ui, details: &Details) {
    let Some(error) = &details.error else { return };
    let palette = Palette::of(ui);
    ScrollArea::vertical().id_salt("error").max_height(54.0).show(ui, |ui| {
        let text = RichText::new(error).monospace().color(palette.bad);
        ui.add(egui::Label::new(text).wrap());
    });
}

fn body_ui(ui: &mut Ui, choices: &mut RequestsChoices, run: &Run, details: &Details, height: f32) {
    let width = ui.available_width();
    if width < SIDE_BY_SIDE {
        waterfall_ui(ui, choices, run, details, 240.0);
        facts_ui(ui, details, 260.0);
        near_ui(ui, choices, run, details, 320.0);
        return;
    }
    let left = width - FACTS_WIDTH - NEAR_WIDTH - 2.0 * GUTTER;
    ui.horizontal_top(|ui| {
        ui.spacing_mut().item_spacing.x = GUTTER;
        let part = |ui: &mut Ui, width: f32, draw: &mut dyn FnMut(&mut Ui)| {
            ui.allocate_ui_with_layout(vec2(width, height), Layout::top_down(Align::Min), |ui| {
                ui.set_min_size(vec2(width, height));
                ui.set_max_width(width);
                draw(ui);
            });
        };
        part(ui, left, &mut |ui| {
            let strip = height >= WITH_STRIP;
            let below = if strip { session::HEIGHT + GRID } else { 0.0 };
            waterfall_ui(ui, choices, run, details, height - below);
            if strip && let Some(turn) = session::show(ui, run, details) {
                choices.show(turn);
            }
        });
        part(ui, FACTS_WIDTH, &mut |ui| facts_ui(ui, details, height));
        part(ui, NEAR_WIDTH, &mut |ui| near_ui(ui, choices, run, details, height));
    });
}

fn title_ui(ui: &mut Ui, title: &str, note: &str) {
    let palette = Palette::of(ui);
    ui.horizontal(|ui| {
        ui.spacing_mut().item_spacing.x = 2.0 * GRID;
        ui.label(RichText::new(title).font(Type::Title.font()));
        if !note.is_empty() {
            ui.label(RichText::new(note).font(Type::Small.font()).color(palette.weak));
        }
    });
}

/// Height of [`title_ui`] and the gap below it.
const TITLE: f32 = 26.0 + GRID;

fn waterfall_ui(ui: &mut Ui, choices: &RequestsChoices, run: &Run, details: &Details, height: f32) {
    let palette = Palette::of(ui);
    let i = details.request as usize;
    let events = quantity::counted(details.waterfall.chunks as u64, "content event");
    title_ui(ui, "Waterfall", &events);
    if details.waterfall.phases.is_empty() {
        ui.label(RichText::new("Nothing is known but its place in the plan.").color(palette.weak));
        return;
    }
    let requests = &run.requests;
    let origins = match choices.origin {
        Origin::Sent => [(requests.sent(i), Origin::Sent), (requests.due(i), Origin::Due)],
        Origin::Due => [(requests.due(i), Origin::Due), (requests.sent(i), Origin::Sent)],
    };
    let known = origins.into_iter().find_map(|(time, origin)| Some((time?, origin)));
    let (zero, origin) = known.unwrap_or((details.waterfall.span.start, choices.origin));
    waterfall::show(ui, &details.waterfall, zero, origin, height - TITLE);
}

fn facts_ui(ui: &mut Ui, details: &Details, height: f32) {
    ScrollArea::vertical()
        .id_salt("facts of the request")
        .max_height(height)
        .min_scrolled_height(height)
        .auto_shrink([false, false])
        .show(ui, |ui| {
            // The bar must not lie over the values.
            ui.set_width(FACTS_WIDTH - 3.0 * GRID);
            for group in &details.facts {
                group_ui(ui, group);
            }
        });
}

fn group_ui(ui: &mut Ui, group: &Group) {
    title_ui(ui, group.name, "");
    let columns = [Column::text("", 1.0), Column::number("")];
    let cell = |row: usize, column: usize| {
        let (name, value) = &group.facts[row];
        match (column, value) {
            (0, _) => (*name).to_owned(),
            (_, Some(value)) => value.clone(),
            (_, None) => quantity::NO_DATA_CELL.to_owned(),
        }
    };
    Table {
        name: group.name,
        columns: &columns,
        rows: group.facts.len(),
        cell: &cell,
        row_headings: true,
    }
    .show(ui);
    ui.add_space(GRID);
}

fn near_ui(ui: &mut Ui, choices: &mut RequestsChoices, run: &Run, details: &Details, height: f32) {
    let room = (height - 2.0 * TITLE - GRID).max(120.0);
    // A short session leaves its room to the neighbours.
    let rows = f32::from(u8::try_from(details.turns.len().min(20)).unwrap_or(20)) + 1.4;
    let turns = (rows * theme::ROW_HEIGHT).min(room * 0.5);
    let count = quantity::counted(details.turns.len() as u64, "request");
    title_ui(ui, "Session", &count);
    turns_table_ui(ui, choices, run, details, turns);
    title_ui(ui, "Neighbours", "by when they were sent");
    if details.neighbours.is_empty() {
        let palette = Palette::of(ui);
        ui.label(RichText::new("It never left, so none was near it.").color(palette.weak));
        return;
    }
    neighbours_ui(ui, choices, run, details, room - turns);
}

/// A column of a small table.
fn narrow(field: Field, width: f32) -> GridColumn {
    GridColumn { width, ..column(field) }
}

fn turns_table_ui(
    ui: &mut Ui,
    choices: &mut RequestsChoices,
    run: &Run,
    details: &Details,
    height: f32,
) {
    const FIELDS: [(Field, f32); 5] = [
        (Field::Turn, 38.0),
        (Field::Sent, 66.0),
        (Field::Ttft, 62.0),
        (Field::E2e, 70.0),
        (Field::Outcome, 76.0),
    ];
    let columns = FIELDS.map(|(field, width)| narrow(field, width));
    let palette = Palette::of(ui);
    let turns = &details.turns;
    let act = Grid {
        name: "Turns of the session",
        columns: &columns,
        rows: turns.len(),
        height,
        cell: &|row, column| FIELDS[column].0.words(run, turns[row] as usize),
        colour: &|row, column| colour(palette, run, FIELDS[column].0, turns[row]),
        is_chosen: &|row| turns[row] == details.request,
        sorted: None,
        keys: GridKeys::Cursor,
        reveal: reveal(ui, "turns", details, || {
            turns.iter().position(|&turn| turn == details.request)
        }),
    }
    .show(ui);
    if let Some(row) = act.row {
        choices.show(turns[row]);
    }
}

fn neighbours_ui(
    ui: &mut Ui,
    choices: &mut RequestsChoices,
    run: &Run,
    details: &Details,
    height: f32,
) {
    const FIELDS: [(Field, f32); 3] =
        [(Field::Number, 62.0), (Field::Sent, 78.0), (Field::E2e, 74.0)];
    let mut columns = FIELDS.map(|(field, width)| narrow(field, width)).to_vec();
    columns.push(GridColumn {
        heading: "Near by",
        about: "how it is near",
        width: 84.0,
        is_text: true,
    });
    let palette = Palette::of(ui);
    let near = &details.neighbours;
    let request = |row: usize| near[row].request;
    let act = Grid {
        name: "Neighbours",
        columns: &columns,
        rows: near.len(),
        height,
        cell: &|row, column| match FIELDS.get(column) {
            Some((field, _)) => field.words(run, request(row) as usize),
            None => Some(near[row].how.word().to_owned()),
        },
        colour: &|row, column| {
            let field = FIELDS.get(column).map_or(Field::Number, |field| field.0);
            colour(palette, run, field, request(row))
        },
        is_chosen: &|row| request(row) == details.request,
        sorted: None,
        keys: GridKeys::Cursor,
        reveal: reveal(ui, "neighbours", details, || {
            (0..near.len()).find(|&row| request(row) == details.request)
        }),
    }
    .show(ui);
    if let Some(row) = act.row {
        choices.show(request(row));
    }
}

/// The row to bring into sight: once, when another request is looked at.
fn reveal(
    ui: &Ui,
    table: &str,
    details: &Details,
    row: impl FnOnce() -> Option<usize>,
) -> Option<usize> {
    let key = ui.scope_id().with(table);
    let last: Option<u32> = ui.data(|data| data.get_temp(key));
    if last == Some(details.request) {
        return None;
    }
    ui.data_mut(|data| data.insert_temp(key, details.request));
    row()
}
