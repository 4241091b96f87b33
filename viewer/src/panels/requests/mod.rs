//! Requests: every request of the selection in a table that sorts and scrolls, and all there is to
//! know about the chosen one.
//!
//! The order of the rows and the details are answered questions; a frame writes the cells in sight.
//! The table has the keyboard's focus when the panel comes into sight, and takes the keys of
//! [`keys::REQUESTS`] then.

mod details;
mod session;
mod waterfall;

use eframe::egui::{self, Align, Color32, Id, Key, Layout, RichText, Spinner, Ui, vec2};
use onbeat_shared::run::Run;

use super::{Panel, Scene};
use crate::fate::Fate;
use crate::fields::{Field, Measure, Value};
use crate::keys;
use crate::quantity;
use crate::selection::Selection;
use crate::series::requests::{self, RequestsChoices, details::Details};
use crate::series::{Answer, Ask};
use crate::theme::{self, GRID, GUTTER, Palette, Type};
use crate::widgets::{
    canvas::waiting_ui,
    grid::{Grid, GridAct, GridColumn, GridKeys},
};

/// The panel.
pub(super) const PANEL: Panel =
    Panel { name: "Requests", about: "Which were slow, and why?", plots: &[], draw };

/// The table's share of the height beside the details.
const TABLE_SHARE: f32 = 0.42;
/// Below this height of the table there is no use in one.
const TABLE_LEAST: f32 = 170.0;
/// Below this width the details go under the table, with a height of their own.
const TWO_PARTS: f32 = 700.0;
const HEADING: f32 = 26.0 + GRID;
/// Room that the words about keys need.
const HINT_WIDTH: f32 = 300.0;

fn draw(ui: &mut Ui, scene: &mut Scene<'_>) {
    ui.spacing_mut().item_spacing.y = GUTTER;
    let derived = scene.derived;
    let selection = scene.choices.selection();
    let sort = scene.choices.requests.sort;
    let ask = requests::Ask::Rows { selection: selection.clone(), sort };
    let shown = derived.ask(&Ask::Requests(ask));
    let run = &derived.subject().run;
    let answer = shown.answer.as_deref().and_then(Answer::requests);
    let rows = answer.and_then(|answer| answer.rows(run));
    let chosen = scene.choices.requests.chosen.filter(|&i| (i as usize) < run.requests.len());
    let open = chosen.filter(|_| scene.choices.requests.details);
    let height = ui.available_height();
    let wide = ui.available_width() >= TWO_PARTS;
    let table = match open {
        Some(_) if wide => (height * TABLE_SHARE).max(TABLE_LEAST),
        Some(_) => (height * 0.6).max(TABLE_LEAST),
        None => height.max(TABLE_LEAST),
    };
    let act = theme::card(Palette::of(ui))
        .show(ui, |ui| {
            ui.set_width(ui.available_width());
            ui.spacing_mut().item_spacing.y = GRID;
            heading_ui(ui, scene.choices, run, rows, shown.fresh);
            let height = table - theme::CARD_CHROME - HEADING;
            match rows {
                None => {
                    waiting_ui(ui, height);
                    GridAct::default()
                }
                Some([]) => {
                    empty_ui(ui, scene, &selection, height);
                    GridAct::default()
                }
                Some(rows) => table_ui(ui, &mut scene.choices.requests, run, rows, height),
            }
        })
        .inner;
    let details = open.map(|request| {
        let shown = derived.ask(&Ask::Requests(requests::Ask::Details { request }));
        let hidden = hidden_words(&selection, run, request);
        let height = (height - table - GUTTER).max(if wide { 200.0 } else { 320.0 });
        details::show(ui, scene, &shown, request, hidden.as_deref(), height);
        shown
    });
    let details = details.as_ref().and_then(|shown| shown.answer.as_deref());
    let details = details.and_then(Answer::requests).and_then(|answer| answer.details(run));
    obey_keys(ui, &mut scene.choices.requests, rows.unwrap_or_default(), details, act);
}

fn heading_ui(
    ui: &mut Ui,
    choices: &mut crate::state::Choices,
    run: &Run,
    rows: Option<&[u32]>,
    fresh: bool,
) {
    let palette = Palette::of(ui);
    let size = vec2(ui.available_width(), HEADING - GRID);
    ui.allocate_ui_with_layout(size, Layout::left_to_right(Align::Center), |ui| {
        ui.label(RichText::new("Requests").font(Type::Title.font()));
        if let Some(rows) = rows {
            let words = quantity::counted(rows.len() as u64, "row");
            ui.label(RichText::new(words).font(Type::Small.font()).color(palette.weak));
        }
        if !fresh {
            ui.add(Spinner::new().size(14.0)).on_hover_text("Sorting…");
        }
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            columns_ui(ui, &mut choices.requests, run);
            let hint = "↑ ↓ choose, Enter details, N and P along the session";
            if ui.available_width() > HINT_WIDTH {
                ui.label(RichText::new(hint).font(Type::Small.font()).color(palette.weak));
            }
        });
    });
}

/// The list from which columns are chosen.
fn columns_ui(ui: &mut Ui, choices: &mut RequestsChoices, run: &Run) {
    let menu = ui.menu_button("Columns", |ui| {
        ui.set_min_width(300.0);
        if ui.button("As at first").clicked() {
            choices.reset_columns();
        }
        egui::ScrollArea::vertical().max_height(420.0).show(ui, |ui| {
            for &field in Field::ALL.iter().filter(|field| field.belongs_to(run)) {
                let mut shown = choices.columns.contains(&field);
                let row = field.row();
                let words = format!("{}: {} ({})", row.heading, row.about, row.name);
                if ui.checkbox(&mut shown, words).changed() {
                    choices.toggle(field);
                }
            }
        });
    });
    menu.response.on_hover_text("Choose the columns");
}

fn table_ui(
    ui: &mut Ui,
    choices: &mut RequestsChoices,
    run: &Run,
    rows: &[u32],
    height: f32,
) -> GridAct {
    let fields: Vec<Field> =
        choices.columns.iter().copied().filter(|field| field.belongs_to(run)).collect();
    let columns: Vec<GridColumn> = fields.iter().map(|&field| column(field)).collect();
    let palette = Palette::of(ui);
    take_focus(ui, choices.reveal);
    let reveal = if std::mem::take(&mut choices.reveal) {
        choices.chosen.and_then(|chosen| rows.iter().position(|&request| request == chosen))
    } else {
        None
    };
    let place = fields.iter().position(|&field| field == choices.sort.field);
    let act = Grid {
        name: "Requests",
        columns: &columns,
        rows: rows.len(),
        height,
        cell: &|row, column| fields[column].words(run, rows[row] as usize),
        colour: &|row, column| colour(palette, run, fields[column], rows[row]),
        is_chosen: &|row| choices.chosen == Some(rows[row]),
        sorted: place.map(|place| (place, choices.sort.descending)),
        reveal,
        keys: GridKeys::Owner(focus_id()),
    }
    .show(ui);
    if let Some(row) = act.row {
        choices.show(rows[row]);
    }
    if let Some(place) = act.heading {
        choices.sort_by(fields[place]);
    }
    act
}

/// How failures look; what was cut off or never sent is none.
fn colour(palette: &Palette, run: &Run, field: Field, request: u32) -> Option<Color32> {
    let tells = matches!(field, Field::Outcome | Field::Class | Field::Status | Field::Error);
    (tells && Fate::of(run, request as usize) == Fate::Failed).then_some(palette.bad)
}

/// How a field's column looks.
fn column(field: Field) -> GridColumn {
    let row = field.row();
    let width: f32 = match row.value {
        Value::Number(Measure::Label, _) => 50.0,
        Value::Number(Measure::Count | Measure::Speed, _) => 66.0,
        Value::Number(Measure::Share, _) => 92.0,
        Value::Number(Measure::Instant, _) => 78.0,
        Value::Number(..) => 76.0,
        Value::Word(..) => 96.0,
        Value::Flag(_) => 62.0,
        Value::Text(_) => 118.0,
    };
    // A heading is never wider than its column: about 6.4 points a letter.
    let heading = 6.4 * f32::from(u8::try_from(row.heading.len()).unwrap_or(40)) + 22.0;
    GridColumn {
        heading: row.heading,
        about: row.about,
        width: width.max(heading),
        is_text: field.is_text(),
    }
}

/// Why there is no row, and what can be done about it.
fn empty_ui(ui: &mut Ui, scene: &mut Scene<'_>, selection: &Selection, height: f32) {
    let palette = Palette::of(ui);
    let words = match (&selection.filter, selection.range) {
        (None, None) => "This run has no requests.",
        (None, Some(_)) => "No request was sent in this range.",
        (Some(_), None) => "No request passes the filter.",
        (Some(_), Some(_)) => "No request of this range passes the filter.",
    };
    let size = vec2(ui.available_width(), height);
    ui.allocate_ui_with_layout(size, Layout::top_down(Align::Center), |ui| {
        ui.set_min_size(size);
        ui.add_space((height / 2.0 - 60.0).max(0.0));
        ui.label(RichText::new(words).font(Type::Heading.font()));
        if let Some(filter) = &selection.filter {
            let text = RichText::new(filter.text()).monospace().color(palette.weak);
            ui.add(egui::Label::new(text).truncate());
            ui.add_space(GRID);
            if ui.button("Clear the filter").clicked() {
                scene.choices.clear_filter();
            }
        }
        if selection.range.is_some() && ui.button("Look at the whole run").clicked() {
            scene.choices.clear_range();
        }
    });
}

/// What hides a request from the table, if anything does.
fn hidden_words(selection: &Selection, run: &Run, request: u32) -> Option<String> {
    let i = request as usize;
    if selection.holds(run, i) {
        return None;
    }
    let only = |selection: Selection| !selection.holds(run, i);
    let by_range = only(Selection { filter: None, ..selection.clone() });
    let by_filter = only(Selection { range: None, ..selection.clone() });
    let what = match (by_range, by_filter) {
        (true, true) => "lies outside the range and does not pass the filter",
        (true, false) => "lies outside the range",
        _ => "does not pass the filter",
    };
    Some(format!("This request {what}: it is not in the table."))
}

/// The table's identity for the keyboard.
fn focus_id() -> Id {
    Id::unique("table of requests")
}

/// Gives the table the focus when the panel comes into sight, or when a request is to be looked at.
fn take_focus(ui: &Ui, reveal: bool) {
    let key = focus_id().with("drawn");
    let now = ui.ctx().cumulative_frame_nr();
    let before: Option<u64> = ui.data(|data| data.get_temp(key));
    ui.data_mut(|data| data.insert_temp(key, now));
    let appears = before.is_none_or(|before| before + 1 < now);
    if (appears || reveal) && !ui.ctx().text_edit_focused() {
        ui.memory_mut(|memory| memory.request_focus(focus_id()));
    }
}

/// What the keys of the table do.
fn obey_keys(
    ui: &Ui,
    choices: &mut RequestsChoices,
    rows: &[u32],
    details: Option<&Details>,
    act: GridAct,
) {
    let taken = keys::REQUESTS.take(ui.ctx(), focus_id(), |_place| true);
    let keys = taken.into_iter().map(|place| keys::REQUESTS.keys[place].1);
    for key in keys {
        ui.ctx().request_repaint();
        obey(choices, rows, details, act, key);
    }
}

fn obey(
    choices: &mut RequestsChoices,
    rows: &[u32],
    details: Option<&Details>,
    act: GridAct,
    key: Key,
) {
    if let (Key::N | Key::P, Some(details)) = (key, details) {
        if let Some(turn) = turn_beside(details, key == Key::N) {
            choices.show(turn);
        }
        return;
    }
    if key == Key::Enter {
        choices.details = !choices.details || choices.chosen.is_none();
        // The table has another height then.
        choices.reveal = true;
    }
    let Some(last) = rows.len().checked_sub(1) else { return };
    // Only a key press looks for the row, not every frame.
    let at = choices.chosen.and_then(|chosen| rows.iter().position(|&row| row == chosen));
    let page = act.page.max(1);
    let place = match (key, at) {
        (Key::Home, _) => 0,
        (Key::End, _) => last,
        (Key::N | Key::P, _) | (Key::Enter, Some(_)) => return,
        (_, None) => act.first.min(last),
        (Key::ArrowUp, Some(at)) => at.saturating_sub(1),
        (Key::PageUp, Some(at)) => at.saturating_sub(page),
        (Key::PageDown, Some(at)) => (at + page).min(last),
        (_, Some(at)) => (at + 1).min(last),
    };
    choices.chosen = Some(rows[place]);
    choices.reveal = true;
}

/// The session's next request, or its previous one.
fn turn_beside(details: &Details, next: bool) -> Option<u32> {
    let at = details.turns.iter().position(|&turn| turn == details.request)?;
    let to = if next { at + 1 } else { at.checked_sub(1)? };
    details.turns.get(to).copied()
}

#[cfg(test)]
mod tests {
    use onbeat_shared::{
        log::{Class, sample::Sample},
        metrics::slo,
    };

    use super::*;

    #[test]
    fn only_failures_look_bad() {
        let mut sample = Sample::new();
        for &class in Class::ALL {
            let request = sample.send(0);
            sample.done(request, 1_000_000, class);
        }
        let run = Run::read(&sample.bytes()).expect("a readable log");
        let palette = Palette::for_mode(false);
        let looks_bad = |i: &u32| colour(palette, &run, Field::Outcome, *i).is_some();
        let requests = 0..u32::try_from(run.requests.len()).expect("few");
        let bad: Vec<u32> = requests.clone().filter(looks_bad).collect();
        let failed: Vec<u32> = requests.filter(|&i| slo::failed(&run, i as usize)).collect();
        assert_eq!(bad, failed);
        assert!(!failed.is_empty() && failed.len() + 1 < Class::ALL.len(), "{failed:?}");
    }
}
