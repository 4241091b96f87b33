//! The frame around the panels: the list of panels with the facts of the run, and the line that
//! says which stretch of time all numbers speak of. The bar above them is [`crate::top_bar`].

use eframe::egui::{self, Align, Button, Id, Key, Layout, RichText, TextEdit, Ui, vec2};
use onbeat_shared::{import, metrics::selection::parse_seconds, run::Run};

use crate::following;
use crate::keys;
use crate::opened::{OpenedRun, Stand};
use crate::panels::PANELS;
use crate::quantity;
use crate::state::{Choices, TimeRange};
use crate::tabs::{OpenTab, between_seconds};
use crate::theme::{self, GRID, Palette, Type};
use crate::tiles::Tiles;

/// Height of a panel's line in the list, and the least where the window is low.
const RAIL_ROW: f32 = 30.0;
const RAIL_ROW_MIN: f32 = 22.0;
/// Room below the list that the facts need to be worth showing.
const FACTS_MIN: f32 = 120.0;

/// Widths of the line about the range (points): below the first it has only what must be there,
/// above the last everything.
const SMALL: f32 = 560.0;
const MEDIUM: f32 = 760.0;
const LARGE: f32 = 960.0;
/// Width of the field of the range, and where the window is narrow; its margins.
const FIELD_WIDTH: f32 = 150.0;
const FIELD_LEAST: f32 = 104.0;
const FIELD_MARGIN: f32 = 8.0;
/// Room for a button beside it, for words on what plots show, and the least for the range itself.
const BUTTON_WIDTH: f32 = 94.0;
const VIEW_WORDS_WIDTH: f32 = 210.0;
const WORDS_LEAST: f32 = 60.0;
/// The widest that words on a wrong range are.
const WRONG_WIDTH: f32 = 340.0;

/// The list of panels; below it, where there is room, the facts of the run.
pub fn rail_ui(ui: &mut Ui, tiles: &mut Tiles, opened: Option<&OpenedRun>, facts: bool) {
    ui.spacing_mut().item_spacing.y = 2.0;
    let seen = tiles.panels();
    let share = ui.available_height() / PANELS.len() as f32 - 2.0;
    let row = share.clamp(RAIL_ROW_MIN, RAIL_ROW);
    ui.spacing_mut().interact_size.y = row;
    if row < RAIL_ROW {
        ui.spacing_mut().button_padding.y = 0.0;
    }
    for (place, entry) in PANELS.iter().enumerate() {
        let chosen = tiles.panel() == place;
        let palette = Palette::of(ui);
        let (font, colour) = if chosen {
            (Type::Strong.font(), palette.accent)
        } else {
            (Type::Body.font(), palette.text)
        };
        let text = RichText::new(entry.name).font(font).color(colour);
        let key = RichText::new(keys::panel_key(place)).font(Type::Small.font());
        let button = Button::selectable(chosen, text)
            .right_text(key.color(palette.weak))
            .min_size(vec2(ui.available_width(), row));
        let response = ui.add_enabled(opened.is_some(), button);
        response.widget_info(|| {
            let label = format!("{} panel", entry.name);
            egui::WidgetInfo::selected(egui::Role::Tab, opened.is_some(), chosen, label)
        });
        if !chosen && seen.contains(&place) {
            // Seen in another tile.
            let rect = response.rect;
            let mark = egui::Rect::from_min_size(rect.min, vec2(2.0, rect.height()));
            ui.painter().rect_filled(mark, 1.0, palette.accent);
        }
        if response.on_hover_text(entry.about).clicked() {
            tiles.show(place);
        }
    }
    if let Some(opened) = opened.filter(|_| facts && ui.available_height() > FACTS_MIN) {
        ui.add_space(4.0 * GRID);
        facts_ui(ui, opened);
    }
}

fn facts_ui(ui: &mut Ui, opened: &OpenedRun) {
    let palette = Palette::of(ui);
    ui.separator();
    ui.add_space(2.0 * GRID);
    ui.spacing_mut().item_spacing.y = 1.0;
    egui::ScrollArea::vertical().id_salt("facts").auto_shrink([false, true]).show(ui, |ui| {
        for (name, value) in facts(opened) {
            let name = RichText::new(name).font(Type::Small.font()).color(palette.weak);
            ui.add(egui::Label::new(name).selectable(false));
            ui.add(egui::Label::new(RichText::new(value).font(Type::Small.font())).wrap());
            ui.add_space(1.5 * GRID);
        }
    });
}

/// What was run, where, in short.
fn facts(opened: &OpenedRun) -> Vec<(&'static str, String)> {
    let manifest = &opened.run.manifest;
    let whole = opened.whole();
    let mut facts = vec![
        ("Trace", manifest.trace.name.clone()),
        ("Mode", manifest.mode.replace('_', " ")),
        ("Duration", quantity::duration(whole.span() as f64)),
        ("Model", manifest.model.clone()),
        ("Target", target(&opened.run)),
        ("Sent from", sender(&opened.run)),
        ("Driver", manifest.driver.clone()),
        ("Run", manifest.run_id.clone()),
        ("Log", quantity::bytes(opened.file_bytes)),
    ];
    facts.retain(|(_, value)| !value.is_empty());
    facts
}

fn target(run: &Run) -> String {
    match run.manifest.targets.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}

/// Another tool's file says nothing of the machine.
fn sender(run: &Run) -> String {
    if import::measured_by(run).is_some() {
        return String::new();
    }
    let cores = quantity::counted(run.manifest.cores.len() as u64, "core");
    match run.manifest.host.hostname.as_str() {
        "" => cores,
        name => format!("{name}, {cores}"),
    }
}

/// What the range line holds between frames.
#[derive(Default)]
pub struct RangeLine {
    typed: String,
    wrong: Option<String>,
}

impl RangeLine {
    /// Draws it. Where the window is narrow, what a key does as well gives its room to the words.
    pub fn show(&mut self, ui: &mut Ui, open: &mut OpenTab) {
        let palette = Palette::of(ui);
        ui.horizontal_centered(|ui| {
            ui.spacing_mut().item_spacing.x = 2.0 * GRID;
            let width = ui.available_width();
            let (chosen, zoomed) = (open.choices.range().is_some(), open.choices.is_zoomed());
            let (buttons, all) = (chosen && width >= MEDIUM, zoomed && (width >= SMALL || !chosen));
            let field = if width >= SMALL { FIELD_WIDTH } else { FIELD_LEAST };
            let beside = [
                (true, field + 2.0 * FIELD_MARGIN),
                (chosen, BUTTON_WIDTH),
                (buttons, BUTTON_WIDTH),
                (all, BUTTON_WIDTH),
                (zoomed && width >= LARGE, VIEW_WORDS_WIDTH),
                (true, following::width(open)),
            ];
            let beside: f32 = beside.iter().filter(|(there, _)| *there).map(|(_, w)| w).sum();
            if width >= SMALL {
                ui.label(RichText::new("Numbers for").color(palette.weak));
            }
            let words = range_words(&open.choices, open.derived.subject());
            let label = egui::Label::new(RichText::new(&words).font(Type::Strong.font()));
            let room = (ui.available_width() - beside - 2.0 * GRID).max(WORDS_LEAST);
            ui.scope(|ui| {
                ui.set_max_width(room);
                ui.add(label.truncate());
            });
            if chosen {
                if ui.button("Whole run").on_hover_text("Clear the range (Esc)").clicked() {
                    open.choices.clear_range();
                }
                if buttons && ui.button("Zoom to it").on_hover_text("Fit the view (F)").clicked() {
                    open.choices.fit();
                }
            }
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                self.field_ui(ui, field, &mut open.choices);
                following::show(ui, open);
                if all {
                    let button = ui.button("Show all").on_hover_text("Show the whole run (Home)");
                    if button.clicked() {
                        open.choices.fit_whole();
                    }
                }
                if zoomed && width >= LARGE {
                    let words = RichText::new(view_words(&open.choices)).color(palette.weak);
                    ui.label(words.font(Type::Small.font()));
                }
            });
        });
    }

    fn field_ui(&mut self, ui: &mut Ui, width: f32, choices: &mut Choices) {
        let field = TextEdit::singleline(&mut self.typed)
            .id(Id::unique("range"))
            .hint_text(if width < FIELD_WIDTH { "12..20.5 s" } else { "Range, e.g. 12..20.5 s" })
            .desired_width(width)
            .margin(egui::Margin::symmetric(8, 4));
        let response = ui.add(field).accessible_name("Range in seconds");
        if response.changed() {
            self.wrong = None;
        }
        if response.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter)) {
            match parse_seconds(&self.typed) {
                Ok((from, to)) => {
                    let whole = choices.whole();
                    if choices.choose(between_seconds(from, to, whole)) {
                        self.typed.clear();
                    } else {
                        self.wrong = Some(format!("Nothing is there: {}", extent_words(whole)));
                    }
                }
                Err(wrong) => self.wrong = Some(wrong),
            }
        }
        if let Some(wrong) = &self.wrong {
            wrong_ui(ui, response.rect, wrong);
        }
    }
}

/// What is wrong with a range, below its field and over the panel.
fn wrong_ui(ui: &Ui, field: egui::Rect, words: &str) {
    let palette = Palette::of(ui);
    let area = egui::Area::new(ui.scope_id().with("what is wrong with the range"))
        .order(egui::Order::Foreground)
        .interactable(false)
        .pivot(egui::Align2::RIGHT_TOP)
        .fixed_pos(field.right_bottom() + vec2(0.0, GRID));
    area.show(ui.ctx(), |ui| {
        theme::banner(palette.bad_soft, palette.bad).show(ui, |ui| {
            ui.set_max_width(WRONG_WIDTH);
            ui.label(RichText::new(quantity::sentence(words)).color(palette.bad));
        });
    });
}

/// Which stretch the numbers speak of, in words.
#[must_use]
pub fn range_words(choices: &Choices, opened: &OpenedRun) -> String {
    let planned = opened.run.requests.len() as u64;
    match choices.range() {
        None => format!(
            "{}: {}, {}",
            stand_words(opened.stand),
            quantity::duration(choices.whole().span() as f64),
            quantity::counted(planned, "request")
        ),
        Some(range) => {
            let span = range.span() as f64;
            let sent = opened.sent_in(range).len() as u64;
            format!(
                "{} to {}: {}, {} of {} sent",
                quantity::instant(range.start.0 as f64, span),
                quantity::instant(range.end.0 as f64, span),
                quantity::duration(span),
                quantity::count(sent),
                quantity::counted(planned, "request")
            )
        }
    }
}

/// From when to when a run goes, in words.
#[must_use]
pub fn extent_words(whole: TimeRange) -> String {
    let span = whole.span() as f64;
    format!(
        "the run goes from {} to {}",
        quantity::instant(whole.start.0 as f64, span),
        quantity::instant(whole.end.0 as f64, span)
    )
}

/// How much of the run there is, in words.
fn stand_words(stand: Stand) -> String {
    match stand {
        Stand::Complete => "the whole run".to_owned(),
        Stand::Part(thousandths) => {
            format!("the part read so far ({} %)", thousandths / 10)
        }
        Stand::Growing => "the run so far".to_owned(),
    }
}

fn view_words(choices: &Choices) -> String {
    let view = choices.view();
    let span = view.span() as f64;
    format!(
        "Plots show {} to {}",
        quantity::instant(view.start.0 as f64, span),
        quantity::instant(view.end.0 as f64, span)
    )
}

/// What stands above every panel of a log that is not whole.
pub fn incomplete_ui(ui: &mut Ui, opened: &OpenedRun) {
    let Some(incomplete) = &opened.incomplete else {
        return;
    };
    let palette = Palette::of(ui);
    let shown = theme::banner(palette.warn_soft, palette.warn).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.horizontal_wrapped(|ui| {
            let headline = RichText::new(&incomplete.headline).font(Type::Strong.font());
            ui.label(headline.color(palette.warn));
            ui.label(&incomplete.words);
        });
    });
    let label = &incomplete.headline;
    shown
        .response
        .widget_info(|| egui::WidgetInfo::labeled(egui::Role::Group, true, label.clone()));
    ui.add_space(theme::GUTTER);
}
