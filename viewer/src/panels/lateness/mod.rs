//! Lateness: did requests leave when they were due, who kept them, and what of that is in TTFT?

mod beside;

use eframe::egui::{self, RichText, Ui};
use onbeat_shared::{
    import,
    metrics::{
        Report,
        client_part::NOTABLE_SHARE,
        lateness::{in_stall, lateness_ns},
        quantile::Statistic,
    },
    units::RunNanos,
};

use super::{Panel, PanelWish, Scene, verdict, verdict::Held};
use crate::opened::OpenedRun;
use crate::quantity::{self, NO_DATA, NO_DATA_CELL};
use crate::selection::Selection;
use crate::series::axes::Direction;
use crate::series::lateness::{Ask as LatenessAsk, Figures, Spread, over_time};
use crate::series::{Answer, Ask};
use crate::state::{Choices, Scale};
use crate::theme::{self, GRID, GUTTER, Palette, Type, data_colour};
use crate::widgets::{
    card::{self, Headline},
    rule::Rule,
    stale, switch,
    table::{Column, Table},
    time_plot::{self, TimePlot},
    xy_plot::{self, XyPlot},
};

/// The panel.
pub(super) const PANEL: Panel =
    Panel { name: "Lateness", about: "Did it leave on time?", plots: PLOTS, draw };

const OVER_TIME: &str = "lateness";
const SPREAD: &str = "lateness-spread";
const PLOTS: &[&str] = &[OVER_TIME, SPREAD];

/// Width of the tables beside the plots.
const SIDE_WIDTH: f32 = 380.0;
/// Below this width the tables go under the plots.
const TWO_COLUMNS: f32 = 860.0;
/// What the two plot cards need besides their plots.
const CHROME: f32 = 2.0 * theme::CARD_CHROME + time_plot::HEADING + xy_plot::HEADING + GUTTER;

fn draw(ui: &mut Ui, scene: &mut Scene<'_>) {
    ui.spacing_mut().item_spacing.y = GUTTER;
    let selection = scene.choices.selection();
    let order = scene.choices.lateness.order;
    let shown = scene.derived.ask(&Ask::Lateness(LatenessAsk::Figures { selection, order }));
    let figures = shown.answer.as_deref().and_then(Answer::lateness);
    let opened = scene.derived.subject();
    let foreign = import::measured_by(&opened.run);
    scene.with_report(|report, fresh| {
        ui.scope(|ui| {
            ui.spacing_mut().item_spacing.y = GUTTER;
            stale::fade(ui, "lateness", fresh && shown.fresh);
            verdict_ui(ui, report, &scene.choices.selection(), opened);
            card::row_ui(ui, &headlines(report, figures, foreign.is_some()));
        });
    });
    if ui.available_width() < TWO_COLUMNS {
        over_time_ui(ui, scene, 200.0);
        spread_ui(ui, scene, 180.0);
        percentiles_ui(ui, scene);
        beside::show(ui, scene, figures, 220.0);
        return;
    }
    let height = ui.available_height();
    let plots = (height - CHROME).max(230.0);
    let plots_width = ui.available_width() - SIDE_WIDTH - GUTTER;
    ui.horizontal_top(|ui| {
        ui.spacing_mut().item_spacing.x = GUTTER;
        ui.vertical(|ui| {
            ui.set_width(plots_width);
            ui.spacing_mut().item_spacing.y = GUTTER;
            over_time_ui(ui, scene, (plots * 0.55).floor());
            spread_ui(ui, scene, (plots * 0.45).floor());
        });
        ui.vertical(|ui| {
            ui.set_width(SIDE_WIDTH);
            ui.spacing_mut().item_spacing.y = GUTTER;
            let top = ui.cursor().top();
            percentiles_ui(ui, scene);
            let used = ui.cursor().top() - top;
            beside::show(ui, scene, figures, (height - used).max(200.0));
        });
    });
}

/// One line: the verdict, and the bar it is held against.
fn verdict_ui(ui: &mut Ui, report: &Report, selection: &Selection, opened: &OpenedRun) {
    let palette = Palette::of(ui);
    let verdict = verdict::Shown::of(report, selection, opened);
    let (colour, fill) = verdict.colours(palette);
    let headline = &verdict.headline;
    let bar = match verdict.held {
        Held::Yes | Held::No => bar_words(report),
        Held::Unknown | Held::Nothing => String::new(),
    };
    let shown = theme::banner(fill, colour).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.spacing_mut().item_spacing.y = 3.0;
        ui.horizontal_wrapped(|ui| {
            ui.spacing_mut().item_spacing.x = 3.0 * GRID;
            ui.label(RichText::new(headline).font(Type::Heading.font()).color(colour));
            ui.label(RichText::new(&bar).color(palette.text));
        });
        for reason in verdict.reasons {
            ui.label(RichText::new(quantity::sentence(reason)).color(palette.text));
        }
    });
    let label = format!("Verdict: {headline}. {bar}");
    shown
        .response
        .widget_info(|| egui::WidgetInfo::labeled(egui::Role::Group, true, label.clone()));
}

fn limit_words(report: &Report) -> String {
    quantity::duration(report.notes.max_lateness_us as f64 * 1e3)
}

fn bar_words(report: &Report) -> String {
    let limit = limit_words(report);
    match &report.schedule.lateness_outside_stalls_us {
        None => {
            format!("The bar: 99 % outside host stalls within {limit}; none left outside them.")
        }
        Some(lateness) => format!(
            "The bar: 99 % of requests outside host stalls within {limit}. They left within {}.",
            quantity::duration(lateness.p99 * 1e3)
        ),
    }
}

fn micros(statistic: Option<&Statistic>, of: fn(&Statistic) -> f64) -> String {
    statistic.map_or_else(|| NO_DATA.to_owned(), |found| quantity::measured(of(found) * 1e3))
}

/// The six numbers; of a `foreign` run, whose file knows nothing of host stalls, those that rest
/// on them are missing.
fn headlines(report: &Report, figures: Option<&Figures>, foreign: bool) -> Vec<Headline> {
    let schedule = &report.schedule;
    let all = schedule.lateness_us.as_ref();
    let outside = schedule.lateness_outside_stalls_us.as_ref().filter(|_| !foreign);
    let mut headlines = vec![
        Headline {
            title: "Lateness",
            which: "median",
            value: micros(all, |found| found.p50),
            more: format!("p99 {}", micros(all, |found| found.p99)),
            definition: "Sent − max(due, ready), of all requests that left",
            has_data: all.is_some(),
        },
        Headline {
            title: "Outside host stalls",
            which: "p99",
            value: micros(outside, |found| found.p99),
            more: format!("the bar is {}", limit_words(report)),
            definition: "Lateness without requests that host stalls explain: what the verdict \
                         goes by",
            has_data: outside.is_some(),
        },
        Headline {
            title: "Latest request",
            which: "",
            value: micros(all, |found| found.max),
            more: format!("outside stalls {}", micros(outside, |found| found.max)),
            definition: "The largest lateness",
            has_data: all.is_some(),
        },
    ];
    headlines.push(beyond(report, figures, foreign));
    headlines.push(if foreign { no_stalls() } else { stalls(report, figures) });
    headlines.push(client(figures));
    headlines
}

fn beyond(report: &Report, figures: Option<&Figures>, foreign: bool) -> Headline {
    let title = "Beyond the bar";
    let Some(figures) = figures else { return waiting(title) };
    let share = match figures.sent {
        0 => NO_DATA.to_owned(),
        sent => quantity::percent(figures.beyond as f64 / sent as f64),
    };
    Headline {
        title,
        which: if figures.beyond == 1 { "request" } else { "requests" },
        value: quantity::count(figures.beyond),
        more: match figures.beyond {
            0 => format!("none above {}", limit_words(report)),
            _ if foreign => share,
            _ => format!("{share}, {} in stalls", quantity::count(figures.beyond_in_stalls)),
        },
        definition: "Requests that left later than the verdict's limit, whatever the cause",
        has_data: figures.sent > 0,
    }
}

const STALLS: &str = "Host stalls";
const STALL: &str = "Jumps of a sending core's own clock: the host took the processor away. A \
                     request is hit if stalls explain half of its lateness or more";

/// What another tool's file does not tell.
fn no_stalls() -> Headline {
    Headline {
        title: STALLS,
        value: NO_DATA.to_owned(),
        more: "the file does not tell".to_owned(),
        definition: STALL,
        ..Headline::default()
    }
}

fn stalls(report: &Report, figures: Option<&Figures>) -> Headline {
    let stalls = &report.schedule.host_stalls;
    let hit =
        figures.map_or_else(|| "…".to_owned(), |figures| quantity::counted(figures.hit, "request"));
    Headline {
        title: STALLS,
        which: match stalls.max_ms {
            None => "",
            Some(_) if stalls.count == 1 => "stall",
            Some(_) => "stalls",
        },
        value: quantity::count(stalls.count),
        more: match stalls.max_ms {
            None => "no core's clock jumped".to_owned(),
            Some(longest) => {
                format!("≤ {}, {hit} hit", quantity::duration(longest * 1e6))
            }
        },
        definition: STALL,
        has_data: true,
    }
}

fn client(figures: Option<&Figures>) -> Headline {
    let title = "Client's part of TTFT";
    let Some(figures) = figures else { return waiting(title) };
    let client = &figures.client;
    let share = |share: Option<f64>| share.map_or_else(|| NO_DATA.to_owned(), quantity::percent);
    let notable = quantity::percent(NOTABLE_SHARE);
    Headline {
        title,
        which: "p99, at most",
        value: share(client.p99),
        more: match client.notable {
            _ if client.requests == 0 => "the log does not tell".to_owned(),
            0 => format!("none above {notable}"),
            some => format!("{} above {notable}", quantity::counted(some, "request")),
        },
        definition: "Lateness, send time and host stalls before the first token, as a share of \
                     TTFT: an upper bound of what this machine can have added to it",
        has_data: client.p99.is_some(),
    }
}

fn waiting(title: &'static str) -> Headline {
    Headline { title, value: "…".to_owned(), ..Headline::default() }
}

fn over_time_ui(ui: &mut Ui, scene: &mut Scene<'_>, height: f32) {
    theme::card(Palette::of(ui)).show(ui, |ui| {
        ui.set_width(ui.available_width());
        let ask = LatenessAsk::OverTime {
            view: scene.stretch_of(OVER_TIME),
            filter: scene.choices.filter.clone(),
            scale: scene.choices.lateness.scale,
        };
        let shown = scene.derived.ask(&Ask::Lateness(ask));
        let opened = scene.derived.subject();
        let describe = |request: u32| describe(opened, request as usize);
        let mut controls = |ui: &mut Ui, choices: &mut Choices| {
            switch::show(
                ui,
                "Scale of lateness",
                &mut choices.lateness.scale,
                &[
                    (Scale::Log, "Log", "Heights by powers of ten"),
                    (Scale::Linear, "Linear", "Heights from zero, in even steps"),
                ],
            );
        };
        let mut rules = [limit_rule(opened, Direction::Horizontal)];
        let clicked = TimePlot {
            id: OVER_TIME,
            title: "Lateness over time",
            height,
            picture: shown.answer.as_deref().and_then(Answer::picture),
            fresh: shown.fresh,
            describe: Some(&describe),
            controls: Some(&mut controls),
            rules: &mut rules,
        }
        .show(ui, scene.choices);
        scene.wish.extend(clicked.map(PanelWish::ShowRequest));
    });
}

/// The verdict's limit as a line.
fn limit_rule(opened: &OpenedRun, direction: Direction) -> Rule {
    let (name, limit, colour) = ("the bar", over_time::limit_ns(opened), data_colour::GREY);
    match direction {
        Direction::Horizontal => Rule::horizontal(name, limit, colour),
        Direction::Vertical => Rule::vertical(name, limit, colour),
    }
    .dashed()
}

/// What to say about a request under the pointer.
fn describe(opened: &OpenedRun, i: usize) -> String {
    let run = &opened.run;
    let late = lateness_ns(run, i).map(|late| late as f64);
    let instant = |time: Option<RunNanos>| {
        time.map_or_else(|| NO_DATA.to_owned(), |time| quantity::instant(time.0 as f64, 1e8))
    };
    let core = run.requests.core(i).map_or_else(|| NO_DATA.to_owned(), |core| core.0.to_string());
    let burst = if run.requests.in_burst(i) { ", in a burst" } else { "" };
    let stalled = if in_stall(run, i) == Some(true) { "\na host stall explains it" } else { "" };
    format!(
        "{} late\nrequest {i} on core {core}{burst}\ncould leave at {}, left at {}{stalled}",
        quantity::measured_or_word(late),
        instant(run.requests.intended(i)),
        instant(run.requests.sent(i)),
    )
}

fn spread_ui(ui: &mut Ui, scene: &mut Scene<'_>, height: f32) {
    theme::card(Palette::of(ui)).show(ui, |ui| {
        ui.set_width(ui.available_width());
        let spread = scene.choices.lateness.spread;
        let selection = scene.choices.selection();
        let shown = scene.derived.ask(&Ask::Lateness(LatenessAsk::Spread { selection, spread }));
        let mut controls = |ui: &mut Ui, choices: &mut Choices| {
            switch::show(
                ui,
                "Spread of lateness",
                &mut choices.lateness.spread,
                &[
                    (Spread::Histogram, "Histogram", "How many requests were how late"),
                    (Spread::Percentiles, "Percentiles", "How late the latest of them were"),
                ],
            );
        };
        let across = match spread {
            Spread::Histogram => Direction::Vertical,
            Spread::Percentiles => Direction::Horizontal,
        };
        let mut rules = [limit_rule(scene.derived.subject(), across)];
        XyPlot {
            id: SPREAD,
            title: "Spread of lateness",
            height,
            picture: shown.answer.as_deref().and_then(Answer::picture),
            fresh: shown.fresh,
            describe: None,
            controls: Some(&mut controls),
            rules: &mut rules,
        }
        .show(ui, scene.choices);
    });
}

/// A row of the percentile table: its name and how to find its number.
type Row = (&'static str, fn(&Statistic) -> f64);

const ROWS: &[Row] = &[
    ("mean", |found| found.mean),
    ("p50", |found| found.p50),
    ("p90", |found| found.p90),
    ("p99", |found| found.p99),
    ("p99.9", |found| found.p999),
    ("max", |found| found.max),
];

fn percentiles_ui(ui: &mut Ui, scene: &mut Scene<'_>) {
    let foreign = import::measured_by(&scene.derived.subject().run).is_some();
    theme::card(Palette::of(ui)).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.spacing_mut().item_spacing.y = GRID;
        scene.with_report(|report, fresh| {
            stale::fade(ui, "percentiles", fresh);
            ui.label(RichText::new("Percentiles").font(Type::Title.font()));
            percentile_table_ui(ui, report, foreign);
        });
    });
}

fn percentile_table_ui(ui: &mut Ui, report: &Report, foreign: bool) {
    let columns = [
        Column::text("", 0.75),
        Column::number("all"),
        Column::number("no stall"),
        Column::number("lone"),
        Column::number("in bursts"),
        Column::number("in stalls"),
    ];
    let parts = [
        &report.schedule.lateness_us,
        &report.schedule.lateness_outside_stalls_us,
        &report.notes.lone_lateness_us,
        &report.schedule.burst_lateness_us,
        &report.notes.lateness_in_stalls_us,
    ];
    // Another tool's file says nothing of bursts and stalls.
    let part = |place: usize| parts[place].as_ref().filter(|_| place == 0 || !foreign);
    let cell = |row: usize, column: usize| {
        let Some(place) = column.checked_sub(1) else {
            return if row == 0 { "count".to_owned() } else { ROWS[row - 1].0.to_owned() };
        };
        match (part(place), row) {
            (Some(found), 0) => quantity::count(found.count),
            (None, 0) if !foreign => "0".to_owned(),
            (Some(found), row) => quantity::measured(ROWS[row - 1].1(found) * 1e3),
            (None, _) => NO_DATA_CELL.to_owned(),
        }
    };
    Table {
        name: "Lateness percentiles",
        columns: &columns,
        rows: ROWS.len() + 1,
        cell: &cell,
        row_headings: true,
    }
    .show(ui);
}
