//! The goals as they can be typed, moved by keys, added, removed and reset.

use eframe::egui::{
    self, Align, Align2, Button, ComboBox, Key, Layout, Modifiers, Rect, RichText, ScrollArea,
    Sense, TextEdit, Ui, vec2,
};
use onbeat_shared::metrics::{
    Metric,
    goal::{Goal, GoalKind},
    slo::Goals,
};

use super::Scene;
use crate::quantity;
use crate::series::slo::{Figures, GoalFigures, compliance::COLOURS, limits};
use crate::state::Choices;
use crate::theme::{self, GRID, GUTTER, Palette, Type, data_colour};
use crate::widgets::stale;

/// Goals that people set most, offered where there is none.
const USUAL: [GoalKind; 4] = [
    GoalKind::AtMost(Metric::Ttft),
    GoalKind::AtMost(Metric::Itl),
    GoalKind::AtMost(Metric::E2e),
    GoalKind::DecodeSpeed,
];

/// What the card has above and below its list.
const AROUND: f32 = 88.0;
/// Width of a limit's field.
const FIELD: f32 = 104.0;
/// Size of the button that removes a goal.
const DROP: egui::Vec2 = vec2(18.0, 22.0);
/// Side of the mark that ties a goal to its line.
const MARK: f32 = 8.0;
/// Height of the bar that shows a goal's compliance.
const BAR: f32 = 5.0;

/// The card with the goals.
pub(super) fn card_ui(ui: &mut Ui, scene: &mut Scene<'_>, figures: Option<&Figures>, fresh: bool) {
    let own = Goals::of_run(&scene.derived.subject().run.manifest);
    let height = ui.available_height() - theme::CARD_CHROME - GUTTER - super::COUNTS;
    let palette = Palette::of(ui);
    theme::card(palette).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.spacing_mut().item_spacing.y = GRID;
        heading_ui(ui, scene.choices, &own);
        let about = "Good is what succeeds and meets all of these";
        ui.label(RichText::new(about).font(Type::Small.font()).color(palette.weak));
        ui.add_space(GRID);
        let list = (height - AROUND).max(120.0);
        ScrollArea::vertical().id_salt("goals").max_height(list).show(ui, |ui| {
            ui.spacing_mut().item_spacing.y = GRID;
            if scene.choices.goals.is_empty() {
                let words = "No goal yet: every request that succeeds counts as good.";
                ui.label(RichText::new(words).color(palette.weak));
            }
            for (place, goal) in scene.choices.goals.list().to_vec().into_iter().enumerate() {
                let found = figures.and_then(|figures| figures.of_goal(goal.kind));
                goal_ui(ui, scene.choices, place, goal, found, fresh);
                ui.add_space(GRID);
            }
        });
        add_ui(ui, scene.choices);
    });
}

fn heading_ui(ui: &mut Ui, choices: &mut Choices, own: &Goals) {
    ui.horizontal(|ui| {
        ui.label(RichText::new("Goals").font(Type::Title.font()));
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            let differs = choices.goals != *own;
            let text = if own.is_empty() { "Remove all" } else { "Reset" };
            let button = Button::new(RichText::new(text).font(Type::Small.font()));
            let explained = if own.is_empty() {
                "The run was started without goals"
            } else {
                "Back to the goals that the run was started with"
            };
            if ui.add_enabled(differs, button).on_hover_text(explained).clicked() {
                choices.goals = own.clone();
                choices.slo.draft = None;
                choices.slo.refused = None;
            }
        });
    });
}

fn goal_ui(
    ui: &mut Ui,
    choices: &mut Choices,
    place: usize,
    goal: Goal,
    figures: Option<&GoalFigures>,
    fresh: bool,
) {
    ui.push_id(("goal", goal.kind.name()), |ui| {
        let colour = COLOURS.get(place).copied().unwrap_or(data_colour::GREY);
        limit_line_ui(ui, choices, goal, colour);
        if let Some(refused) = refusal(choices, goal.kind) {
            let palette = Palette::of(ui);
            ui.label(RichText::new(refused).font(Type::Small.font()).color(palette.bad));
        }
        ui.scope(|ui| {
            stale::fade(ui, "goal", fresh);
            figures_ui(ui, figures, colour);
        });
    });
}

fn refusal(choices: &Choices, kind: GoalKind) -> Option<String> {
    let (draft, _) = choices.slo.draft.as_ref()?;
    choices.slo.refused.clone().filter(|_| *draft == kind)
}

/// One line: the goal's mark, name, limit, and the way to drop it.
fn limit_line_ui(ui: &mut Ui, choices: &mut Choices, goal: Goal, colour: usize) {
    let palette = Palette::of(ui);
    ui.horizontal(|ui| {
        ui.spacing_mut().item_spacing.x = 1.5 * GRID;
        let (rect, _) = ui.allocate_exact_size(vec2(MARK, MARK), Sense::hover());
        ui.painter().rect_filled(rect, 2.0, palette.data[colour]);
        let name = format!("{} {}", goal.kind.label(), limits::sign(goal.kind));
        let label = ui.label(RichText::new(name).font(Type::Strong.font()));
        label.on_hover_text(goal.kind.formula());
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            ui.spacing_mut().item_spacing.x = GRID;
            let text = RichText::new("×").font(Type::Small.font()).color(palette.weak);
            let drop = ui.add(Button::new(text).frame(false).min_size(DROP));
            let named = drop.accessible_name(format!("Remove the goal on {}", goal.kind.label()));
            if named.on_hover_text("Remove this goal").clicked() {
                choices.goals.remove(goal.kind);
                choices.slo.forget_draft(goal.kind);
            }
            limit_ui(ui, choices, goal);
        });
    });
}

/// The field with the limit. Enter, Tab or a click elsewhere takes what was typed, Esc drops it,
/// and the arrow keys move the limit.
fn limit_ui(ui: &mut Ui, choices: &mut Choices, goal: Goal) {
    let id = ui.unique_id().with("limit");
    if ui.memory(|memory| memory.has_focus(id))
        && let Some(limit) = moved_by_keys(ui, goal.limit)
    {
        choices.goals.set(Goal { limit, ..goal });
        choices.slo.forget_draft(goal.kind);
    }
    let limit = choices.goals.limit(goal.kind).unwrap_or(goal.limit);
    let draft = choices.slo.draft.as_ref().filter(|draft| draft.0 == goal.kind);
    let mut text = draft.map_or_else(|| limits::words(goal.kind, limit), |draft| draft.1.clone());
    let field = TextEdit::singleline(&mut text)
        .id(id)
        .desired_width(FIELD)
        .align(Align2::RIGHT_CENTER)
        .char_limit(40)
        .margin(egui::Margin::symmetric(6, 3));
    let response = ui.add(field).accessible_name(limit_name(goal.kind));
    if response.changed() {
        choices.slo.draft = Some((goal.kind, text));
        choices.slo.refused = None;
    }
    if response.lost_focus() {
        if ui.input(|input| input.key_pressed(Key::Escape)) {
            choices.slo.forget_draft(goal.kind);
        }
        take_draft(choices, goal.kind);
    }
    response.on_hover_text("Type a limit with its unit, or move it with ↑ and ↓ (Shift: far)");
}

/// Accessible name of a limit's field.
pub(super) fn limit_name(kind: GoalKind) -> String {
    let most = if kind.has_lower_limit() { "at least" } else { "at most" };
    format!("Goal: {} {most}", kind.label())
}

fn moved_by_keys(ui: &Ui, limit: f64) -> Option<f64> {
    let keys = [
        (Modifiers::NONE, Key::ArrowUp, true, false),
        (Modifiers::NONE, Key::ArrowDown, false, false),
        (Modifiers::SHIFT, Key::ArrowUp, true, true),
        (Modifiers::SHIFT, Key::ArrowDown, false, true),
    ];
    ui.input_mut(|input| {
        let mut moved = None;
        for (modifiers, key, up, far) in keys {
            if input.modifiers.matches_exact(modifiers) {
                for _ in 0..input.count_and_consume_key(modifiers, key) {
                    moved = Some(limits::stepped(moved.unwrap_or(limit), up, far));
                }
            }
        }
        moved
    })
}

/// What was typed becomes the limit, or is refused and stays to be mended.
fn take_draft(choices: &mut Choices, kind: GoalKind) {
    let Some((_, text)) = choices.slo.draft.clone().filter(|draft| draft.0 == kind) else {
        return;
    };
    match limits::parse(kind, &text) {
        Ok(limit) => {
            choices.goals.set(Goal { kind, limit });
            choices.slo.forget_draft(kind);
        }
        Err(refused) => choices.slo.refused = Some(refused),
    }
}

/// A bar and a line of words: how many meet the goal, how many miss it and why.
fn figures_ui(ui: &mut Ui, figures: Option<&GoalFigures>, colour: usize) {
    let palette = Palette::of(ui);
    let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), BAR), Sense::hover());
    ui.painter().rect_filled(rect, BAR / 2.0, palette.grid);
    let Some(figures) = figures else {
        ui.label(RichText::new("…").font(Type::Small.font()).color(palette.weak));
        return;
    };
    if let Some(share) = figures.share {
        #[expect(clippy::cast_possible_truncation, reason = "a share needs no more")]
        let width = rect.width() * share as f32;
        let full = Rect::from_min_size(rect.min, vec2(width, BAR));
        ui.painter().rect_filled(full, BAR / 2.0, palette.data[colour]);
    }
    let text = RichText::new(words(figures)).font(Type::Small.font()).color(palette.weak);
    ui.add(egui::Label::new(text).wrap());
}

fn words(figures: &GoalFigures) -> String {
    let Some(share) = figures.share else { return "no request counts here".to_owned() };
    let share = quantity::percent(share);
    let unknown = match figures.unknown {
        0 => String::new(),
        some => format!(", {} without the number", quantity::count(some)),
    };
    if figures.missed == 0 {
        return format!("{share} meet it; no success misses it");
    }
    format!(
        "{share} meet it; {} miss it, {} only it{unknown}",
        quantity::count(figures.missed),
        quantity::count(figures.alone),
    )
}

/// The list of goals that are not there yet.
fn add_ui(ui: &mut Ui, choices: &mut Choices) {
    let shown = ComboBox::from_id_salt("add goal")
        .selected_text("Add a goal…")
        .width(ui.available_width() - 2.0 * GRID)
        .height(420.0)
        .show_ui(ui, |ui| {
            let there = |kind: &GoalKind| choices.goals.limit(*kind).is_some();
            for kind in GoalKind::all().filter(|kind| !there(kind)).collect::<Vec<_>>() {
                let name = format!("{} {}", kind.label(), limits::sign(kind));
                if ui.selectable_label(false, name).on_hover_text(kind.formula()).clicked() {
                    choices.slo.starting = Some(kind);
                }
            }
        });
    shown.response.accessible_name("Add a goal");
}

/// Where the curve would be: what to do to have one.
pub(super) fn no_goal_ui(ui: &mut Ui, choices: &mut Choices, height: f32) {
    let palette = Palette::of(ui);
    ui.set_min_height(height);
    ui.vertical_centered(|ui| {
        ui.add_space((height * 0.5 - 50.0).max(0.0));
        ui.label(RichText::new("Goodput by threshold").font(Type::Heading.font()));
        ui.add_space(GRID);
        let words = "This run has no goals. Begin with one; it starts where 95 % meet it.";
        ui.label(RichText::new(words).color(palette.weak));
        ui.add_space(GUTTER);
        let width = 96.0;
        let row = USUAL.len() as f32 * (width + 2.0 * GRID);
        ui.allocate_ui_with_layout(vec2(row, 28.0), Layout::left_to_right(Align::Center), |ui| {
            for kind in USUAL {
                let button = Button::new(kind.label()).min_size(vec2(width, 28.0));
                let explained = kind.formula();
                let response = ui.add(button).on_hover_text(explained);
                if response.accessible_name(format!("Add a goal on {}", kind.label())).clicked() {
                    choices.slo.starting = Some(kind);
                }
            }
        });
    });
}
