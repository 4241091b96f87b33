//! SLO: how many requests are good enough, when, and what another goal would make of it.
//!
//! Goals begin as the run's own. They move by typing, by keys in their field, and by dragging their
//! lines here and in the Latency panel; every figure follows, from the background, with the
//! previous one in sight until then.

mod goals;
pub(super) mod rules;

use eframe::egui::{ComboBox, RichText, Ui};
use onbeat_shared::metrics::goal::{Goal, GoalKind};

use super::{Panel, Scene};
use crate::quantity::{self, NO_DATA};
use crate::series::axes::Direction;
use crate::series::slo::{Answer as SloAnswer, Ask as SloAsk, Figures, Way};
use crate::series::{Answer, Ask};
use crate::state::Choices;
use crate::theme::{self, GRID, GUTTER, Palette, ROW_HEIGHT, Type};
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
    Panel { name: "SLO", about: "How many were good enough?", plots: PLOTS, draw };

const COMPLIANCE: &str = "compliance";
const CURVE: &str = "goodput-curve";
const PLOTS: &[&str] = &[COMPLIANCE, CURVE];

/// Width of the goals beside the plots.
const SIDE_WIDTH: f32 = 330.0;
/// What the card with the counts needs.
const COUNTS: f32 = theme::CARD_CHROME + 7.0 * ROW_HEIGHT + GRID;
/// Below this width the goals go above the plots.
const TWO_COLUMNS: f32 = 820.0;
/// What the two plot cards need besides their plots.
const CHROME: f32 = 2.0 * theme::CARD_CHROME + time_plot::HEADING + xy_plot::HEADING + GUTTER;

fn draw(ui: &mut Ui, scene: &mut Scene<'_>) {
    ui.spacing_mut().item_spacing.y = GUTTER;
    add_started(scene);
    let selection = scene.choices.selection();
    let goals = scene.choices.goals.clone();
    let shown = scene.derived.ask(&Ask::Slo(SloAsk::Figures { selection, goals }));
    let answer = shown.answer.as_deref().and_then(Answer::slo);
    let figures = match answer {
        Some(SloAnswer::Figures(figures)) => Some(figures),
        _ => None,
    };
    ui.scope(|ui| {
        ui.spacing_mut().item_spacing.y = GUTTER;
        stale::fade(ui, "goodput", shown.fresh);
        card::row_ui(ui, &headlines(figures));
    });
    if ui.available_width() < TWO_COLUMNS {
        goals::card_ui(ui, scene, figures, shown.fresh);
        compliance_ui(ui, scene, 180.0);
        curve_ui(ui, scene, 180.0);
        counts_ui(ui, figures, shown.fresh);
        return;
    }
    let plots = (ui.available_height() - CHROME).max(230.0);
    let plots_width = ui.available_width() - SIDE_WIDTH - GUTTER;
    ui.horizontal_top(|ui| {
        ui.spacing_mut().item_spacing.x = GUTTER;
        ui.vertical(|ui| {
            ui.set_width(plots_width);
            ui.spacing_mut().item_spacing.y = GUTTER;
            compliance_ui(ui, scene, (plots * 0.45).floor());
            curve_ui(ui, scene, (plots * 0.55).floor());
        });
        ui.vertical(|ui| {
            ui.set_width(SIDE_WIDTH);
            ui.spacing_mut().item_spacing.y = GUTTER;
            goals::card_ui(ui, scene, figures, shown.fresh);
            counts_ui(ui, figures, shown.fresh);
        });
    });
}

/// A goal that was asked for begins where its answer says, once that is there.
fn add_started(scene: &mut Scene<'_>) {
    let Some(kind) = scene.choices.slo.starting else { return };
    let selection = scene.choices.selection();
    let shown = scene.derived.ask(&Ask::Slo(SloAsk::Start { selection, kind }));
    if !shown.fresh {
        return;
    }
    if let Some(SloAnswer::Start(limit)) = shown.answer.as_deref().and_then(Answer::slo) {
        scene.choices.goals.add(Goal { kind, limit: *limit });
        scene.choices.slo.varied = Some(kind);
    }
    scene.choices.slo.starting = None;
}

/// The six numbers above the plots.
fn headlines(figures: Option<&Figures>) -> Vec<Headline> {
    let Some(figures) = figures else {
        let titles =
            ["Goodput", "Good requests", "Missed most", "With the wait", "Failed", "Cut off"];
        return titles.map(waiting).into();
    };
    let share = |share: Option<f64>| share.map_or_else(|| NO_DATA.to_owned(), quantity::percent);
    let rate = |rate: Option<f64>| {
        rate.map_or_else(|| NO_DATA.to_owned(), |rate| format!("{}/s", quantity::number(rate)))
    };
    let (good, of) = (quantity::count(figures.good), quantity::count(figures.of));
    vec![
        Headline {
            title: "Goodput",
            which: "of requests",
            value: share(figures.share),
            more: format!("{good} of {of}"),
            definition: "Successful requests that meet every goal, as a share of those that ended \
                         by themselves (failures included) or were cancelled by the plan",
            has_data: figures.share.is_some(),
        },
        Headline {
            title: "Good requests",
            which: "per second",
            value: rate(figures.rate),
            more: format!("of {} in all", rate(figures.rate_of_all)),
            definition: "Successful requests that meet every goal, per second from the first \
                         sending to the last end",
            has_data: figures.rate.is_some(),
        },
        missed_most(figures),
        Headline {
            title: "With the wait",
            which: "of requests",
            value: share(figures.effective_share),
            more: "waits count into TTFT".to_owned(),
            definition: "Effective goodput: the time from when a request could leave to its \
                         sending counts into TTFT",
            has_data: figures.effective_share.is_some(),
        },
        Headline {
            title: "Failed",
            which: if figures.failed == 1 { "request" } else { "requests" },
            value: quantity::count(figures.failed),
            more: match figures.cancelled {
                0 => "never good".to_owned(),
                some => format!("and {} cancelled by plan", quantity::count(some)),
            },
            definition: "Requests that ended by themselves without success, and those that the \
                         plan cancelled: they count, and are never good",
            has_data: true,
        },
        Headline {
            title: "Cut off",
            which: if figures.cut_off == 1 { "request" } else { "requests" },
            value: quantity::count(figures.cut_off),
            more: "in no share".to_owned(),
            definition: "Requests that the user, the run's end or that of the log cut off: whether \
                         they would have been good is not known",
            has_data: true,
        },
    ]
}

fn missed_most(figures: &Figures) -> Headline {
    let title = "Missed most";
    let definition = "The goal that the most successful requests miss, and how many would be good \
                      without it";
    match figures.worst() {
        Some(worst) => Headline {
            title,
            which: "",
            value: worst.goal.kind.label().to_owned(),
            more: format!(
                "{} miss it, {} only it",
                quantity::count(worst.missed),
                quantity::count(worst.alone)
            ),
            definition,
            has_data: true,
        },
        None => Headline {
            title,
            which: "",
            value: if figures.goals.is_empty() { "no goal" } else { "none" }.to_owned(),
            more: "every success is good".to_owned(),
            definition,
            has_data: false,
        },
    }
}

/// Who counts, who does not, and who is good.
fn counts_ui(ui: &mut Ui, figures: Option<&Figures>, fresh: bool) {
    let Some(figures) = figures else { return };
    theme::card(Palette::of(ui)).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.spacing_mut().item_spacing.y = GRID;
        stale::fade(ui, "counts", fresh);
        ui.label(RichText::new("Requests").font(Type::Title.font()));
        let rows: [(&str, u64, Option<f64>); 6] = [
            ("counted", figures.of, None),
            ("good", figures.good, figures.share),
            ("successful, not good", figures.succeeded - figures.good, figures.short_share),
            ("failed", figures.failed, figures.failed_share),
            ("cancelled by plan", figures.cancelled, figures.cancelled_share),
            ("cut off, not counted", figures.cut_off, None),
        ];
        let columns = [Column::text("", 1.6), Column::number(""), Column::number("")];
        let cell = |row: usize, column: usize| {
            let (name, count, share) = rows[row];
            match column {
                0 => name.to_owned(),
                1 => quantity::count(count),
                _ => share.map_or_else(String::new, quantity::percent),
            }
        };
        Table {
            name: "Requests by goodness",
            columns: &columns,
            rows: rows.len(),
            cell: &cell,
            row_headings: true,
        }
        .show(ui);
    });
}

fn waiting(title: &'static str) -> Headline {
    Headline { title, value: "…".to_owned(), ..Headline::default() }
}

fn compliance_ui(ui: &mut Ui, scene: &mut Scene<'_>, height: f32) {
    theme::card(Palette::of(ui)).show(ui, |ui| {
        ui.set_width(ui.available_width());
        let Choices { goals, slo, .. } = &*scene.choices;
        let ask = SloAsk::Compliance {
            view: scene.stretch_of(COMPLIANCE),
            filter: scene.choices.filter.clone(),
            goals: goals.clone(),
            way: slo.way,
        };
        let shown = scene.derived.ask(&Ask::Slo(ask));
        let mut controls = |ui: &mut Ui, choices: &mut Choices| {
            switch::show(
                ui,
                "Goodput",
                &mut choices.slo.way,
                &[
                    (Way::Share, "Share", "Good requests as a share of those that count"),
                    (Way::Rate, "Per second", "Good requests per second"),
                ],
            );
        };
        TimePlot {
            id: COMPLIANCE,
            title: "Compliance over time",
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

fn curve_ui(ui: &mut Ui, scene: &mut Scene<'_>, height: f32) {
    theme::card(Palette::of(ui)).show(ui, |ui| {
        ui.set_width(ui.available_width());
        let Some(kind) = scene.choices.slo.varied(&scene.choices.goals) else {
            return goals::no_goal_ui(ui, scene.choices, height + xy_plot::HEADING);
        };
        let ask = SloAsk::Curve {
            selection: scene.choices.selection(),
            kind,
            others: scene.choices.goals.without(kind),
            way: scene.choices.slo.way,
        };
        let shown = scene.derived.ask(&Ask::Slo(ask));
        let mut rules: Vec<Rule> =
            rules::of(scene.choices, kind, Direction::Vertical).into_iter().collect();
        let mut controls = |ui: &mut Ui, choices: &mut Choices| varied_ui(ui, choices, kind);
        XyPlot {
            id: CURVE,
            title: "Goodput by threshold",
            height,
            picture: shown.answer.as_deref().and_then(Answer::picture),
            fresh: shown.fresh,
            describe: None,
            controls: Some(&mut controls),
            rules: &mut rules,
        }
        .show(ui, scene.choices);
        rules::take(scene.choices, kind, &rules);
    });
}

/// Which goal varies.
fn varied_ui(ui: &mut Ui, choices: &mut Choices, kind: GoalKind) {
    let shown =
        ComboBox::from_id_salt("varied goal").selected_text(kind.label()).show_ui(ui, |ui| {
            for goal in choices.goals.list() {
                ui.selectable_value(&mut choices.slo.varied, Some(goal.kind), goal.kind.label());
            }
        });
    shown.response.accessible_name("Goal that varies");
}
