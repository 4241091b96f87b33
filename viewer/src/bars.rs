//! The frame around the panels: the bar with the runs and the path, the list of panels with the
//! facts of the run, the line that says which stretch of time all numbers speak of.

use eframe::egui::{
    self, Align, Button, ComboBox, Id, Key, Layout, RichText, Sense, TextEdit, ThemePreference, Ui,
    vec2,
};
use onbeat_shared::run::Run;

use crate::arguments;
use crate::opened::OpenedRun;
use crate::panels::PANELS;
use crate::quantity;
use crate::state::Choices;
use crate::tabs::{OpenTab, Tabs, between_seconds};
use crate::theme::{self, GRID, Palette, Type};

/// Accessible name of the path field.
pub const PATH_FIELD: &str = "Path of a run to open";

/// What the top bar holds between frames.
#[derive(Default)]
pub struct TopBar {
    /// What is typed as a path.
    pub path: String,
    /// The path field wants the keyboard in the next frame.
    pub focus_path: bool,
}

/// What the top bar asks for.
#[derive(Default)]
pub struct TopWish {
    /// A path was typed.
    pub open: Option<String>,
    /// The sheet of keys.
    pub sheet: bool,
    /// Another theme.
    pub theme: Option<ThemePreference>,
}

impl TopBar {
    /// Draws it.
    pub fn show(&mut self, ui: &mut Ui, tabs: &mut Tabs, theme: ThemePreference) -> TopWish {
        let mut wish = TopWish::default();
        ui.horizontal_centered(|ui| {
            ui.spacing_mut().item_spacing.x = 2.0 * GRID;
            brand_ui(ui);
            ui.add_space(2.0 * GRID);
            runs_ui(ui, tabs);
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                let help = ui.button("?").on_hover_text("Keys and mouse");
                help.widget_info(|| {
                    egui::WidgetInfo::labeled(egui::Role::Button, true, "Keys and mouse")
                });
                wish.sheet = help.clicked();
                wish.theme = theme_ui(ui, theme);
                ui.add_space(2.0 * GRID);
                wish.open = self.path_ui(ui);
            });
        });
        wish
    }

    fn path_ui(&mut self, ui: &mut Ui) -> Option<String> {
        let pressed = ui.button("Open").clicked();
        let width = (ui.available_width() - 4.0 * GRID).clamp(80.0, 280.0);
        let field = TextEdit::singleline(&mut self.path)
            .id(Id::unique("path"))
            .hint_text("Path of a .beat file (Ctrl+O)")
            .desired_width(width)
            .margin(egui::Margin::symmetric(8, 5));
        let response = ui.add(field).accessible_name(PATH_FIELD);
        if std::mem::take(&mut self.focus_path) {
            response.request_focus();
        }
        let entered = response.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
        let path = self.path.trim();
        ((entered || pressed) && !path.is_empty()).then(|| path.to_owned())
    }
}

/// Three beats, evenly spaced.
fn brand_ui(ui: &mut Ui) {
    let palette = Palette::of(ui);
    let (rect, _) = ui.allocate_exact_size(vec2(22.0, 20.0), Sense::hover());
    for (place, height) in [10.0, 18.0, 10.0, 14.0].into_iter().enumerate() {
        let x = rect.left() + 2.0 + 6.0 * place as f32;
        let beat = egui::Rect::from_center_size(egui::pos2(x, rect.center().y), vec2(3.0, height));
        ui.painter().rect_filled(beat, 1.5, palette.accent);
    }
    ui.label(RichText::new("Onbeat").font(Type::Heading.font()));
}

fn runs_ui(ui: &mut Ui, tabs: &mut Tabs) {
    let Some(name) = tabs.shown().map(crate::tabs::Tab::name) else {
        return;
    };
    let width = (ui.available_width() * 0.35).clamp(80.0, 320.0);
    if tabs.all().len() == 1 {
        let text = RichText::new(name).font(Type::Strong.font());
        ui.allocate_ui_with_layout(vec2(width, 26.0), Layout::left_to_right(Align::Center), |ui| {
            ui.add(egui::Label::new(text).truncate());
        });
        return;
    }
    let mut chosen = tabs.place();
    let names: Vec<_> = tabs.all().iter().map(crate::tabs::Tab::name).collect();
    let shown = ComboBox::from_id_salt("runs").selected_text(name).width(width).show_ui(ui, |ui| {
        for (place, name) in names.iter().enumerate() {
            ui.selectable_value(&mut chosen, place, name);
        }
    });
    shown.response.accessible_name("Shown run");
    tabs.show(chosen);
}

const THEMES: [(ThemePreference, &str); 3] = [
    (ThemePreference::System, "System"),
    (ThemePreference::Light, "Light"),
    (ThemePreference::Dark, "Dark"),
];

/// The theme after this one.
#[must_use]
pub fn next_theme(theme: ThemePreference) -> ThemePreference {
    match theme {
        ThemePreference::System => ThemePreference::Light,
        ThemePreference::Light => ThemePreference::Dark,
        ThemePreference::Dark => ThemePreference::System,
    }
}

fn theme_ui(ui: &mut Ui, theme: ThemePreference) -> Option<ThemePreference> {
    let name = THEMES.iter().find(|(value, _)| *value == theme).map_or("System", |theme| theme.1);
    let mut chosen = theme;
    let shown = ComboBox::from_id_salt("theme").selected_text(name).width(76.0).show_ui(ui, |ui| {
        for (value, name) in THEMES {
            ui.selectable_value(&mut chosen, value, name);
        }
    });
    shown.response.accessible_name("Colours").on_hover_text("Colours");
    (chosen != theme).then_some(chosen)
}

/// The list of panels; below it, where there is room, the facts of the run.
pub fn rail_ui(ui: &mut Ui, panel: &mut usize, opened: Option<&OpenedRun>, facts: bool) {
    ui.spacing_mut().item_spacing.y = 2.0;
    for (place, entry) in PANELS.iter().enumerate() {
        let chosen = *panel == place;
        let palette = Palette::of(ui);
        let (font, colour) = if chosen {
            (Type::Strong.font(), palette.accent)
        } else {
            (Type::Body.font(), palette.text)
        };
        let text = RichText::new(entry.name).font(font).color(colour);
        let key = RichText::new((place + 1).to_string()).font(Type::Small.font());
        let button = Button::selectable(chosen, text)
            .right_text(key.color(palette.weak))
            .min_size(vec2(ui.available_width(), 30.0));
        let response = ui.add_enabled(opened.is_some(), button);
        response.widget_info(|| {
            let label = format!("{} panel", entry.name);
            egui::WidgetInfo::selected(egui::Role::Tab, opened.is_some(), chosen, label)
        });
        if response.on_hover_text(entry.about).clicked() {
            *panel = place;
        }
    }
    if let Some(opened) = opened.filter(|_| facts) {
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
        ("Sent from", format!("{}, {}", manifest.host.hostname, cores(&opened.run))),
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

fn cores(run: &Run) -> String {
    quantity::counted(run.manifest.cores.len() as u64, "core")
}

/// What the range line holds between frames.
#[derive(Default)]
pub struct RangeLine {
    typed: String,
    wrong: Option<String>,
}

impl RangeLine {
    /// Draws it.
    pub fn show(&mut self, ui: &mut Ui, open: &mut OpenTab) {
        let palette = Palette::of(ui);
        ui.horizontal_centered(|ui| {
            ui.spacing_mut().item_spacing.x = 2.0 * GRID;
            ui.label(RichText::new("Numbers for").color(palette.weak));
            let words = range_words(&open.choices, open.derived.subject());
            let words = RichText::new(words).font(Type::Strong.font());
            ui.add(egui::Label::new(words).truncate());
            if open.choices.range().is_some() {
                if ui.button("Whole run").on_hover_text("Clear the range (Esc)").clicked() {
                    open.choices.clear_range();
                }
                if ui.button("Zoom to it").on_hover_text("Fit the view (F)").clicked() {
                    open.choices.fit();
                }
            }
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                self.field_ui(ui, &mut open.choices);
                if open.choices.is_zoomed() {
                    let button = ui.button("Show all").on_hover_text("Show the whole run (Home)");
                    if button.clicked() {
                        open.choices.fit_whole();
                    }
                    let words = RichText::new(view_words(&open.choices)).color(palette.weak);
                    ui.label(words.font(Type::Small.font()));
                }
                if let Some(wrong) = &self.wrong {
                    ui.label(RichText::new(wrong).font(Type::Small.font()).color(palette.bad));
                }
            });
        });
    }

    fn field_ui(&mut self, ui: &mut Ui, choices: &mut Choices) {
        let field = TextEdit::singleline(&mut self.typed)
            .id(Id::unique("range"))
            .hint_text("Range, e.g. 12..20.5 s")
            .desired_width(150.0)
            .margin(egui::Margin::symmetric(8, 4));
        let response = ui.add(field).accessible_name("Range in seconds");
        if response.changed() {
            self.wrong = None;
        }
        if response.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter)) {
            match arguments::range(&self.typed) {
                Ok((from, to)) => {
                    choices.choose(between_seconds(from, to, choices.whole()));
                    self.typed.clear();
                }
                Err(wrong) => self.wrong = Some(wrong),
            }
        }
    }
}

/// Which stretch the numbers speak of, in words.
fn range_words(choices: &Choices, opened: &OpenedRun) -> String {
    let planned = opened.run.requests.len() as u64;
    match choices.range() {
        None => format!(
            "the whole run: {}, {}",
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
