//! Users: what the users of a run did, what the ramp decided and why, and who was held back.
//!
//! Only a run that users drive (an agentic trace) has any of this; for every other the panel says
//! what kind of run would, and where to look instead.

use eframe::egui::{self, Align, Layout, RichText, Ui, vec2};
use onbeat_shared::import;

use super::{Panel, PanelWish, Scene};
use crate::series::users::{Ask as UsersAsk, Below, Listing, Sort, listing};
use crate::series::{Answer, Ask, users};
use crate::state::Choices;
use crate::theme::{self, GRID, GUTTER, Palette, Type};
use crate::widgets::{
    canvas::waiting_ui,
    choice,
    grid::{Grid, GridColumn, GridKeys},
    switch,
    time_plot::{self, TimePlot},
};

/// The panel.
pub(super) const PANEL: Panel =
    Panel { name: "Users", about: "Who was there, who waited?", plots: PLOTS, draw };

const STATES: &str = "user-states";
const BELOW: &str = "users-below";
const PLOTS: &[&str] = &[STATES, BELOW];

/// Height of the line of switches above a table.
const LINE: f32 = 26.0;
/// Below this width what the lower plot shows unfolds from a list, which is so wide.
const NARROW: f32 = 560.0;
const CHOICE_WIDTH: f32 = 96.0;
/// What the card with the two plots needs besides them.
const PLOT_CHROME: f32 = theme::CARD_CHROME + 2.0 * time_plot::HEADING + GUTTER;
/// What the card with the table needs besides it.
const TABLE_CHROME: f32 = theme::CARD_CHROME + LINE + GRID;

fn draw(ui: &mut Ui, scene: &mut Scene<'_>) {
    if scene.derived.subject().run.users.is_none() {
        return without_users_ui(ui, scene);
    }
    ui.spacing_mut().item_spacing.y = GUTTER;
    let height = ui.available_height();
    let free = height - PLOT_CHROME - TABLE_CHROME - GUTTER;
    let plot = (free * 0.27).clamp(100.0, 220.0).floor();
    theme::card(Palette::of(ui)).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.spacing_mut().item_spacing.y = 0.0;
        states_ui(ui, scene, plot);
        ui.add_space(GUTTER);
        below_ui(ui, scene, plot);
    });
    theme::card(Palette::of(ui)).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.spacing_mut().item_spacing.y = GRID;
        listing_ui(ui, scene, (free - 2.0 * plot).max(160.0));
    });
}

/// A run of another kind: what would show something here.
fn without_users_ui(ui: &mut Ui, scene: &mut Scene<'_>) {
    let palette = Palette::of(ui);
    let height = (ui.available_height() - theme::CARD_CHROME).max(160.0);
    theme::card(palette).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.set_min_height(height);
        ui.vertical_centered(|ui| {
            ui.add_space(height * 0.3);
            let (heading, words) = nobody(import::measured_by(&scene.derived.subject().run));
            ui.label(RichText::new(heading).font(Type::Heading.font()));
            ui.add_space(GRID);
            ui.scope(|ui| {
                ui.set_max_width(ui.available_width().min(560.0));
                let words = RichText::new(words).color(palette.weak);
                ui.add(egui::Label::new(words).wrap().halign(Align::Center));
            });
            ui.add_space(GUTTER);
            if ui.button("See its sessions in the timeline").clicked() {
                scene.wish.extend(super::named("Timeline").map(PanelWish::ShowPanel));
            }
        });
    });
}

/// Why there are no users: heading and words.
fn nobody(tool: Option<&str>) -> (&'static str, String) {
    match tool {
        Some(tool) => (
            "No data about users",
            format!(
                "{tool}'s file lists requests. Whether users sent them, what a ramp decided and \
                 who was held back by a limit is not in it."
            ),
        ),
        None => (
            "This run has no users",
            "Its requests were sent on a schedule. Users are simulated people who wait for each \
             answer before they go on; a run of an agentic trace has them (onbeat replay \
             --trace-directory …), and here stands what they did, how many the ramp added and why, \
             and who was held back by a limit."
                .to_owned(),
        ),
    }
}

fn states_ui(ui: &mut Ui, scene: &mut Scene<'_>, height: f32) {
    let ask = Ask::Users(UsersAsk::States { view: scene.stretch_of(STATES) });
    scene.time_plot_ui(ui, (STATES, "Users and the ramp's decisions", height), &ask);
}

const fn below_title(below: Below) -> &'static str {
    match below {
        Below::Ttft => "Time to first token",
        Below::Held => "Users held back",
        Below::Limits => "Use of limits",
    }
}

fn below_ui(ui: &mut Ui, scene: &mut Scene<'_>, height: f32) {
    let below = scene.choices.users.below;
    let ask = Ask::Users(UsersAsk::Below { view: scene.stretch_of(BELOW), below });
    let shown = scene.derived.ask(&ask);
    let is_narrow = ui.available_width() < NARROW;
    let mut controls = |ui: &mut Ui, choices: &mut Choices| {
        const ABOUT: &str = "Lower plot";
        const PLOTS: [(Below, &str, &str); 3] = [
            (Below::Ttft, "First token", "Time to first token of each period, and its limit"),
            (Below::Held, "Held back", "Users that a limit kept waiting, at once"),
            (Below::Limits, "Limits", "How much of each limit and budget was used"),
        ];
        let chosen = &mut choices.users.below;
        if is_narrow {
            choice::show(ui, ABOUT, CHOICE_WIDTH, chosen, PLOTS.into_iter());
        } else {
            switch::show(ui, ABOUT, chosen, &PLOTS);
        }
    };
    TimePlot {
        id: BELOW,
        title: below_title(below),
        height,
        picture: shown.answer.as_deref().and_then(Answer::picture),
        fresh: shown.fresh,
        describe: None,
        controls: Some(&mut controls),
        rules: &mut [],
    }
    .show(ui, scene.choices);
}

fn listing_ui(ui: &mut Ui, scene: &mut Scene<'_>, height: f32) {
    let size = vec2(ui.available_width(), LINE);
    ui.allocate_ui_with_layout(size, Layout::left_to_right(Align::Center), |ui| {
        switch::show(
            ui,
            "Table",
            &mut scene.choices.users.listing,
            &[
                (Listing::Periods, "Periods", "Every assessment period and its decision"),
                (Listing::Waits, "Held back", "Every time that a user was held back"),
                (Listing::People, "Users", "Every user and sub-agent"),
            ],
        );
        note_ui(ui, scene);
    });
    match scene.choices.users.listing {
        Listing::Periods => periods_ui(ui, scene, height),
        Listing::Waits => waits_ui(ui, scene, height),
        Listing::People => people_ui(ui, scene, height),
    }
}

/// What is said beside the switch.
fn note_ui(ui: &mut Ui, scene: &mut Scene<'_>) {
    let words = match scene.choices.users.listing {
        Listing::Periods => period_note(scene),
        Listing::Waits => {
            let sort = scene.choices.users.waits;
            let ask = UsersAsk::Waits { range: range_of(scene), sort };
            let shown = scene.derived.ask(&Ask::Users(ask));
            match shown.answer.as_deref().and_then(Answer::users) {
                Some(users::Answer::Waits(_, held)) => listing::held_words(held),
                _ => String::new(),
            }
        }
        Listing::People => "Choose one to see its requests alone, everywhere".to_owned(),
    };
    let words = match &scene.choices.filter {
        Some(_) => format!("Of all requests, whatever the filter. {words}"),
        None => words,
    };
    let palette = Palette::of(ui);
    ui.add_space(2.0 * GRID);
    let said = words.clone();
    let words = RichText::new(words).font(Type::Small.font()).color(palette.weak);
    ui.add(egui::Label::new(words).truncate()).on_hover_text(said);
}

fn period_note(scene: &Scene<'_>) -> String {
    let facts = scene.derived.subject().run.manifest.users.as_deref();
    let Some(facts) = facts.filter(|facts| facts.max_ttft_ns > 0) else {
        return "↑: at or above what the ramp allows".to_owned();
    };
    let limit = crate::quantity::duration(facts.max_ttft_ns as f64);
    format!("The ramp compares TTFT ({}) with {limit}; ↑: not below it", facts.ttft_metric)
}

/// The chosen range, or the whole run.
fn range_of(scene: &Scene<'_>) -> crate::state::TimeRange {
    let whole = scene.choices.whole();
    scene.choices.range().unwrap_or_else(|| whole.widened(0.001))
}

/// A table of the panel; gives the row that was clicked.
fn grid_ui(
    ui: &mut Ui,
    name: &str,
    columns: &[GridColumn],
    rows: usize,
    height: f32,
    sort: Option<&mut Sort>,
    cell: &dyn Fn(usize, usize) -> Option<String>,
) -> Option<usize> {
    let sorted = sort.as_ref().map(|sort| (sort.column, sort.descending));
    let act = Grid {
        name,
        columns,
        rows,
        height,
        cell,
        colour: &|_row, _column| None,
        is_chosen: &|_row| false,
        sorted,
        reveal: None,
        keys: GridKeys::Cursor,
    }
    .show(ui);
    if let (Some(column), Some(sort)) = (act.heading, sort) {
        *sort = sort.clicked(column, columns[column].is_text);
    }
    act.row
}

fn periods_ui(ui: &mut Ui, scene: &mut Scene<'_>, height: f32) {
    let ask = Ask::Users(UsersAsk::Periods { range: range_of(scene) });
    let shown = scene.derived.ask(&ask);
    let answer = shown.answer.as_deref().and_then(Answer::users);
    let Some(users::Answer::Periods(all, range)) = answer else { return waiting_ui(ui, height) };
    let periods = &all[range.clone()];
    let facts = scene.derived.subject().run.manifest.users.as_deref();
    let limit = facts.filter(|facts| facts.max_ttft_ns > 0);
    let limit = limit.map(|facts| facts.max_ttft_ns as f64 / 1e6);
    let cell = |row: usize, column: usize| listing::period_cell(&periods[row], limit, column);
    let name = "Assessment periods";
    grid_ui(ui, name, &listing::PERIODS, periods.len(), height, None, &cell);
}

fn waits_ui(ui: &mut Ui, scene: &mut Scene<'_>, height: f32) {
    let mut sort = scene.choices.users.waits;
    let ask = Ask::Users(UsersAsk::Waits { range: range_of(scene), sort });
    let shown = scene.derived.ask(&ask);
    let answer = shown.answer.as_deref().and_then(Answer::users);
    let Some(users::Answer::Waits(waits, _)) = answer else { return waiting_ui(ui, height) };
    let opened = scene.derived.subject();
    let cell = |row: usize, column: usize| listing::wait_cell(opened, &waits[row], column);
    let name = "Times held back";
    let count = waits.len();
    let row = grid_ui(ui, name, &listing::WAITS, count, height, Some(&mut sort), &cell);
    let filter = row.and_then(|row| listing::filter_of(opened, waits[row].session.0));
    scene.choices.users.waits = sort;
    scene.wish.extend(filter.map(PanelWish::Filter));
}

fn people_ui(ui: &mut Ui, scene: &mut Scene<'_>, height: f32) {
    let mut sort = scene.choices.users.people;
    let ask = Ask::Users(UsersAsk::People { range: range_of(scene), sort });
    let shown = scene.derived.ask(&ask);
    let answer = shown.answer.as_deref().and_then(Answer::users);
    let Some(users::Answer::People(people)) = answer else { return waiting_ui(ui, height) };
    let opened = scene.derived.subject();
    let cell = |row: usize, column: usize| listing::person_cell(opened, people[row], column);
    let name = "Users and sub-agents";
    let count = people.len();
    let row = grid_ui(ui, name, &listing::PEOPLE, count, height, Some(&mut sort), &cell);
    let filter = row.and_then(|row| listing::filter_of(opened, people[row]));
    scene.choices.users.people = sort;
    scene.wish.extend(filter.map(PanelWish::Filter));
}
