//! Cache: how much of the prompts a prefix cache could have had, how much the server says it had,
//! in which sessions the two part, and how large the server's cache seems to be. Where the server
//! was asked for its own numbers (`--scrape`), its queue and its cache's usage stand above.

use eframe::egui::{self, Color32, RichText, Ui};
use onbeat_shared::metrics::cache::Sums;

use super::{Panel, Scene, server};
use crate::fate;
use crate::quantity::{self, NO_DATA_CELL};
use crate::series::cache::{self, CurveAnswer, OutcomeRow, SessionColumn, SessionRow, Sessions};
use crate::series::{Answer, Ask};
use crate::theme::{self, GRID, GUTTER, Palette, Type, data_colour};
use crate::widgets::{
    canvas::empty_ui,
    grid::{Grid, GridColumn, GridKeys},
    rule::Rule,
    table::{Column, Table},
    time_plot,
    xy_plot::{self, XyPlot},
};

/// The panel.
pub(super) const PANEL: Panel =
    Panel { name: "Cache", about: "What could it reuse, what did it?", plots: PLOTS, draw };

const RATE: &str = "hit-rate";
const CURVE: &str = "cache-curve";
const PLOTS: &[&str] = &[RATE, CURVE, server::QUEUE, server::CACHE];
/// What is said where a table would be empty.
const NOTHING: &str = "No request left";

/// Share of the width that the left column has.
const LEFT: f32 = 0.58;
/// Share of the height that the server's own numbers have, where it was asked for them.
const SERVER_ROW: f32 = 0.28;
/// Below this width the columns go under each other.
const TWO_COLUMNS: f32 = 820.0;
/// Room for the sentence under the curve.
const WORDS_HEIGHT: f32 = 38.0;

fn draw(ui: &mut Ui, scene: &mut Scene<'_>) {
    ui.spacing_mut().item_spacing.y = GUTTER;
    let mut room = ui.available_height();
    let is_narrow = ui.available_width() < TWO_COLUMNS;
    if server::was_asked(scene) {
        let row = (room * SERVER_ROW).floor().max(160.0);
        server::row_ui(ui, scene, row, is_narrow);
        room -= row + GUTTER;
    }
    if is_narrow {
        rate_ui(ui, scene, 180.0);
        curve_ui(ui, scene, 200.0);
        sessions_ui(ui, scene, 260.0);
        outcomes_ui(ui, scene);
        return;
    }
    let (width, height) = (ui.available_width() - GUTTER, room - GUTTER);
    let left = (width * LEFT).floor();
    let upper = (height * 0.46).floor().max(200.0);
    let lower = (height - upper).max(160.0);
    let plot = upper - theme::CARD_CHROME - time_plot::HEADING;
    ui.horizontal_top(|ui| {
        ui.spacing_mut().item_spacing.x = GUTTER;
        ui.vertical(|ui| {
            ui.set_width(left);
            ui.spacing_mut().item_spacing.y = GUTTER;
            rate_ui(ui, scene, plot);
            sessions_ui(ui, scene, lower - theme::CARD_CHROME - time_plot::HEADING);
        });
        ui.vertical(|ui| {
            ui.set_width(width - left);
            ui.spacing_mut().item_spacing.y = GUTTER;
            let above = xy_plot::HEADING - time_plot::HEADING;
            curve_ui(ui, scene, plot - above - WORDS_HEIGHT);
            outcomes_ui(ui, scene);
        });
    });
}

fn rate_ui(ui: &mut Ui, scene: &mut Scene<'_>, height: f32) {
    theme::card(Palette::of(ui)).show(ui, |ui| {
        ui.set_width(ui.available_width());
        let (view, filter) = (scene.stretch_of(RATE), scene.choices.filter.clone());
        let ask = Ask::Cache(cache::Ask::OverTime { view, filter });
        scene.time_plot_ui(ui, (RATE, "Hit rate", height), &ask);
    });
}

fn curve_ui(ui: &mut Ui, scene: &mut Scene<'_>, height: f32) {
    let palette = Palette::of(ui);
    theme::card(palette).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.spacing_mut().item_spacing.y = GRID;
        let selection = scene.choices.selection();
        let shown = scene.derived.ask(&Ask::Cache(cache::Ask::Curve { selection }));
        let answer = shown.answer.as_deref().and_then(Answer::cache).and_then(cache::Answer::curve);
        let mut rules = answer.map_or_else(Vec::new, rules);
        XyPlot {
            id: CURVE,
            title: "Hit rate by cache size",
            height,
            picture: answer.map(|answer| &answer.picture),
            fresh: shown.fresh,
            describe: None,
            controls: None,
            rules: &mut rules,
        }
        .show(ui, scene.choices);
        let words = answer.map_or("", |answer| answer.words.as_str());
        let text = RichText::new(words).font(Type::Small.font()).color(palette.weak);
        ui.allocate_ui(egui::vec2(ui.available_width(), WORDS_HEIGHT - GRID), |ui| {
            ui.set_min_height(WORDS_HEIGHT - GRID);
            ui.add(egui::Label::new(text).wrap());
        });
    });
}

/// What the server says it had, and the size of a cache that would have had as much.
fn rules(answer: &CurveAnswer) -> Vec<Rule> {
    let reported =
        answer.reported.map(|rate| Rule::horizontal("reported", rate, data_colour::BLUE));
    let capacity = answer.capacity.map(|size| Rule::vertical("about", size, data_colour::GREY));
    let reported = reported.map(Rule::named_at_origin);
    reported.into_iter().chain(capacity).map(Rule::dashed).collect()
}

fn sessions_ui(ui: &mut Ui, scene: &mut Scene<'_>, height: f32) {
    theme::card(Palette::of(ui)).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.spacing_mut().item_spacing.y = GRID;
        let (selection, sort) = (scene.choices.selection(), scene.choices.cache.sort);
        let ask = Ask::Cache(cache::Ask::Sessions { selection, sort });
        let shown = scene.derived.ask(&ask);
        let answer = shown.answer.as_deref().and_then(Answer::cache);
        let sessions = answer.and_then(cache::Answer::sessions);
        let count = sessions.map_or(0, |sessions| sessions.rows.len());
        heading_ui(ui, "Sessions", &quantity::counted(count as u64, "session"));
        let Some(sessions) = sessions else { return };
        if sessions.rows.is_empty() {
            empty_ui(ui, height, NOTHING);
            return;
        }
        if let Some(column) = grid_ui(ui, scene, sessions, height) {
            scene.choices.cache.sort = sort.clicked(column);
        }
    });
}

const COLUMNS: [GridColumn; 6] = [
    GridColumn { heading: "session", about: "The session's name", width: 150.0, is_text: true },
    GridColumn {
        heading: "requests",
        about: "Requests that left in the stretch of time",
        width: 70.0,
        is_text: false,
    },
    GridColumn {
        heading: "input tokens",
        about: "Their prompt tokens, as the server counts them where it does",
        width: 90.0,
        is_text: false,
    },
    GridColumn {
        heading: "ideal hits",
        about: "Tokens of prefixes sent before / input tokens as recorded",
        width: 82.0,
        is_text: false,
    },
    GridColumn {
        heading: "reported hits",
        about: "Cached tokens / prompt tokens, over requests that report both",
        width: 92.0,
        is_text: false,
    },
    GridColumn {
        heading: "difference",
        about: "Reported minus ideal, in percentage points",
        width: 80.0,
        is_text: false,
    },
];

/// Draws the table; the column whose heading was clicked.
fn grid_ui(
    ui: &mut Ui,
    scene: &Scene<'_>,
    sessions: &Sessions,
    height: f32,
) -> Option<SessionColumn> {
    let run = &scene.derived.subject().run;
    let sort = scene.choices.cache.sort;
    let sorted = SessionColumn::ALL.iter().position(|&column| column == sort.column);
    let palette = Palette::of(ui);
    let cell = |row: usize, column: usize| -> Option<String> {
        let row: &SessionRow = sessions.rows.get(row)?;
        match SessionColumn::ALL[column] {
            SessionColumn::Session => row.name(run).map(str::to_owned),
            SessionColumn::Requests => Some(quantity::count(u64::from(row.requests))),
            SessionColumn::Input => Some(quantity::count(row.input())),
            SessionColumn::Ideal => row.ideal().map(quantity::percent),
            SessionColumn::Reported => row.reported().map(quantity::percent),
            SessionColumn::Difference => row.difference().map(points),
        }
    };
    let colour = |row: usize, column: usize| -> Option<Color32> {
        let difference = sessions.rows.get(row)?.difference()?;
        let is_worse = SessionColumn::ALL[column] == SessionColumn::Difference && difference < -0.1;
        is_worse.then_some(palette.bad)
    };
    let grid = Grid {
        name: "Sessions",
        columns: &COLUMNS,
        rows: sessions.rows.len(),
        height,
        cell: &cell,
        colour: &colour,
        is_chosen: &|_| false,
        sorted: sorted.map(|column| (column, sort.descending)),
        reveal: None,
        keys: GridKeys::Cursor,
    };
    let act = grid.show(ui);
    act.heading.map(|column| SessionColumn::ALL[column])
}

/// A difference of two shares, in percentage points.
fn points(difference: f64) -> String {
    let text = format!("{:+.1}", difference * 100.0);
    match text.as_str() {
        "+0.0" | "-0.0" => "0 pp".to_owned(),
        text => format!("{} pp", text.replace('-', "−")),
    }
}

fn outcomes_ui(ui: &mut Ui, scene: &Scene<'_>) {
    theme::card(Palette::of(ui)).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.spacing_mut().item_spacing.y = GRID;
        let selection = scene.choices.selection();
        let shown = scene.derived.ask(&Ask::Cache(cache::Ask::Outcomes { selection }));
        let answer = shown.answer.as_deref().and_then(Answer::cache);
        heading_ui(ui, "By outcome", "requests that left");
        let Some(rows) = answer.and_then(cache::Answer::outcomes) else { return };
        if !shown.fresh {
            ui.disable();
        }
        if rows.is_empty() {
            empty_ui(ui, 2.0 * theme::ROW_HEIGHT, NOTHING);
            return;
        }
        outcome_table_ui(ui, rows);
        ui.add_space(GUTTER);
        heading_ui(ui, "In all", "over the requests that tell");
        sums_table_ui(ui, rows);
    });
}

/// The sums of all outcomes: rates, and the tokens that they are made of.
fn sums_table_ui(ui: &mut Ui, rows: &[OutcomeRow]) {
    let all = rows.iter().fold(Sums::default(), |all, row| all.with(&row.sums));
    let columns = [
        Column::text("", 1.35),
        Column::number("hit rate"),
        Column::number("hits"),
        Column::number("of tokens"),
    ];
    let lines = [("ideal", all.ideal), ("ideal, any place", all.set), ("reported", all.reported)];
    let cell = |row: usize, column: usize| {
        let (name, ratio) = lines[row];
        let tokens = |tokens: u64| match ratio.whole {
            0 => NO_DATA_CELL.to_owned(),
            _ => quantity::count(tokens),
        };
        match column {
            0 => name.to_owned(),
            1 => ratio.value().map_or_else(|| NO_DATA_CELL.to_owned(), quantity::percent),
            2 => tokens(ratio.part),
            _ => tokens(ratio.whole),
        }
    };
    let (name, rows) = ("Hit rates of all", lines.len());
    Table { name, columns: &columns, rows, cell: &cell, row_headings: true }.show(ui);
    ui.add_space(GRID);
    let words = format!(
        "{} of {} report cached tokens. Blocks sent before in any other place are of no use to a \
         prefix cache.",
        quantity::count(all.reporting),
        quantity::counted(all.requests, "request"),
    );
    let weak = Palette::of(ui).weak;
    ui.label(RichText::new(words).font(Type::Small.font()).color(weak));
}

fn outcome_table_ui(ui: &mut Ui, rows: &[OutcomeRow]) {
    let columns = [
        Column::text("", 1.35),
        Column::number("requests"),
        Column::number("input tokens"),
        Column::number("ideal"),
        Column::number("reported"),
    ];
    let rate = |rate: Option<f64>| rate.map_or_else(|| NO_DATA_CELL.to_owned(), quantity::percent);
    let cell = |row: usize, column: usize| {
        let OutcomeRow { outcome, sums } = &rows[row];
        match column {
            0 => outcome.map_or("in flight at the end", fate::outcome_words).to_owned(),
            1 => quantity::count(sums.requests),
            2 => quantity::count(sums.input),
            3 => rate(sums.ideal.value()),
            _ => rate(sums.reported.value()),
        }
    };
    let (name, rows) = ("Hit rates by outcome", rows.len());
    Table { name, columns: &columns, rows, cell: &cell, row_headings: true }.show(ui);
}

fn heading_ui(ui: &mut Ui, title: &str, about: &str) {
    let palette = Palette::of(ui);
    ui.horizontal(|ui| {
        ui.spacing_mut().item_spacing.x = 2.0 * GRID;
        ui.label(RichText::new(title).font(Type::Title.font()));
        ui.label(RichText::new(about).font(Type::Small.font()).color(palette.weak));
    });
}

#[cfg(test)]
mod tests {
    use super::points;

    #[test]
    fn differences_have_their_sign() {
        assert_eq!(points(-0.123), "−12.3 pp");
        assert_eq!(points(0.05), "+5.0 pp");
        assert_eq!(points(0.0001), "0 pp");
    }
}
