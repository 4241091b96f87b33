//! The window: which runs are open, which panel is shown, and what keys, drops and screens ask for.
//!
//! State in, widgets out. It computes nothing: runs are loaded by [`crate::load`], pictures made by
//! [`crate::derive`]; here they are only put in their places.

use std::path::{Path, PathBuf};

use eframe::egui::{
    self, CentralPanel, Context, Frame, Margin, Panel, ScrollArea, Stroke, ThemePreference, Ui,
    ViewportCommand,
};

use crate::arguments::{Arguments, ThemeChoice};
use crate::bars::{self, RangeLine, TopBar, TopWish};
use crate::keys::{self, Action};
use crate::panels::{PANELS, Scene};
use crate::screens::{self, Wish};
use crate::screenshot::Screenshot;
use crate::tabs::{OpenTab, Tab, Tabs};
use crate::theme::{self, Palette};

/// Below this width of the window the facts of the run give their room to the panels.
const NARROW: f32 = 760.0;

/// What the window begins with.
#[derive(Debug, Default)]
pub struct Start {
    /// Runs to open.
    pub runs: Vec<PathBuf>,
    /// Panel to show, by its place.
    pub panel: usize,
    /// Colours.
    pub theme: Option<ThemePreference>,
    /// Range in seconds.
    pub range: Option<(f64, f64)>,
    /// Picture to take.
    pub screenshot: Option<Screenshot>,
    /// Work everything out on the drawing thread; for tests.
    pub inline: bool,
}

impl Start {
    /// What the command line asks for.
    #[must_use]
    pub fn from_arguments(arguments: Arguments, screenshot: Option<Screenshot>) -> Self {
        let theme = match arguments.theme {
            ThemeChoice::System => ThemePreference::System,
            ThemeChoice::Light => ThemePreference::Light,
            ThemeChoice::Dark => ThemePreference::Dark,
        };
        Self {
            runs: arguments.runs,
            panel: arguments.panel.unwrap_or(0),
            theme: Some(theme),
            range: arguments.range,
            screenshot,
            inline: false,
        }
    }
}

/// The window.
pub struct ViewerApp {
    /// The runs.
    pub tabs: Tabs,
    panel: usize,
    theme: ThemePreference,
    top: TopBar,
    range_line: RangeLine,
    sheet: bool,
    screenshot: Option<Screenshot>,
    title: String,
}

impl ViewerApp {
    /// A window with fonts and colours installed, opening what it begins with.
    #[must_use]
    pub fn new(ctx: &Context, start: Start) -> Self {
        let theme = start.theme.unwrap_or(ThemePreference::System);
        theme::install(ctx, theme);
        let mut tabs = Tabs::default();
        tabs.first_range = start.range;
        tabs.inline = start.inline;
        for run in start.runs {
            tabs.open(run, ctx);
        }
        tabs.show(0);
        Self {
            tabs,
            panel: start.panel.min(PANELS.len() - 1),
            theme,
            top: TopBar::default(),
            range_line: RangeLine::default(),
            sheet: false,
            screenshot: start.screenshot,
            title: String::new(),
        }
    }

    /// Draws one frame.
    pub fn show(&mut self, ui: &mut Ui) {
        let ctx = ui.ctx().clone();
        self.tabs.poll(&ctx);
        self.take_drops(&ctx);
        if !self.sheet {
            for action in keys::pressed(&ctx) {
                self.act(action, &ctx);
            }
        }
        self.frame_ui(ui, &ctx);
        self.name_window(&ctx);
        if self.sheet && screens::keys_ui(&ctx) {
            self.sheet = false;
        }
        screens::drop_target_ui(&ctx);
        if let Some(screenshot) = &mut self.screenshot {
            screenshot.step(&ctx, self.tabs.is_settled());
        }
    }

    fn frame_ui(&mut self, ui: &mut Ui, ctx: &Context) {
        let palette = *Palette::of(ui);
        let bar = |x, y| Frame::new().fill(palette.card).inner_margin(Margin::symmetric(x, y));
        let top = Panel::top("top").exact_size(46.0).resizable(false).frame(bar(14, 0));
        let wish = top.show(ui, |ui| self.top.show(ui, &mut self.tabs, self.theme)).inner;
        self.grant_top(wish, ctx);
        let (width, facts) =
            if ui.available_width() < NARROW { (120.0, false) } else { (172.0, true) };
        let rail = Panel::left("rail").exact_size(width).resizable(false).frame(bar(10, 10));
        let opened = match self.tabs.shown() {
            Some(Tab::Open(open)) => Some(std::sync::Arc::clone(open.derived.subject())),
            _ => None,
        };
        rail.show(ui, |ui| bars::rail_ui(ui, &mut self.panel, opened.as_deref(), facts));
        let page = Frame::new().fill(palette.page);
        let wish = CentralPanel::default().frame(page).show(ui, |ui| self.page_ui(ui)).inner;
        self.grant(wish, ctx);
    }

    fn page_ui(&mut self, ui: &mut Ui) -> Wish {
        match self.tabs.shown_mut() {
            None => screens::welcome_ui(ui),
            Some(Tab::Loading(loading)) => screens::loading_ui(ui, loading),
            Some(Tab::Failed(problem)) => screens::problem_ui(ui, problem),
            Some(Tab::Open(open)) => {
                open_ui(ui, open, &mut self.range_line, self.panel);
                Wish::None
            }
        }
    }

    /// The window bears the name of the shown run.
    fn name_window(&mut self, ctx: &Context) {
        let run = self.tabs.shown().map(Tab::name);
        let title = run.map_or_else(|| "Onbeat".to_owned(), |run| format!("{run} – Onbeat"));
        if title != self.title {
            self.title.clone_from(&title);
            ctx.send_viewport_cmd(ViewportCommand::Title(title));
        }
    }

    /// Opens files dropped onto the window.
    fn take_drops(&mut self, ctx: &Context) {
        let dropped: Vec<PathBuf> = ctx.input(|input| {
            input.raw.dropped_files.iter().map(|file| file.path().to_owned()).collect()
        });
        for path in dropped {
            self.tabs.open(path, ctx);
        }
    }

    fn act(&mut self, action: Action, ctx: &Context) {
        match action {
            Action::Open => self.top.focus_path = true,
            Action::Close => self.tabs.close(),
            Action::NextRun => self.tabs.next(),
            Action::Panel(place) if place < PANELS.len() => self.panel = place,
            Action::Panel(_) => {}
            Action::Sheet => self.sheet = true,
            Action::Theme => self.set_theme(bars::next_theme(self.theme), ctx),
            _ => {
                let panel = self.panel;
                if let Some(Tab::Open(open)) = self.tabs.shown_mut() {
                    act_on(open, action, panel);
                }
            }
        }
    }

    fn set_theme(&mut self, theme: ThemePreference, ctx: &Context) {
        self.theme = theme;
        ctx.set_theme(theme);
    }

    fn grant_top(&mut self, wish: TopWish, ctx: &Context) {
        if let Some(typed) = wish.open {
            self.tabs.open(typed_path(&typed, std::env::home_dir().as_deref()), ctx);
            self.top.path.clear();
        }
        if let Some(theme) = wish.theme {
            self.set_theme(theme, ctx);
        }
        self.sheet |= wish.sheet;
    }

    fn grant(&mut self, wish: Wish, ctx: &Context) {
        match wish {
            Wish::None => {}
            Wish::TypePath => {
                self.top.focus_path = true;
                ctx.request_repaint();
            }
            Wish::Open(path) => self.tabs.open(path, ctx),
            Wish::Retry => self.tabs.retry(ctx),
            Wish::Close => self.tabs.close(),
            Wish::Cancel => {
                if let Some(Tab::Loading(loading)) = self.tabs.shown() {
                    loading.cancel();
                }
            }
        }
    }
}

impl eframe::App for ViewerApp {
    fn ui(&mut self, ui: &mut Ui, _frame: &mut eframe::Frame) {
        self.show(ui);
    }

    /// A picture shows no pointer, wherever it happens to be.
    fn raw_input_hook(&mut self, _ctx: &Context, raw: &mut egui::RawInput) {
        if self.screenshot.is_some() {
            raw.events.retain(|event| !matches!(event, egui::Event::PointerMoved(_)));
        }
    }

    fn clear_color(&self, visuals: &egui::Visuals) -> [f32; 4] {
        visuals.panel_fill.to_normalized_gamma_f32()
    }
}

/// A panel of an open run, with the line about the range above it.
fn open_ui(ui: &mut Ui, open: &mut OpenTab, range_line: &mut RangeLine, panel: usize) {
    let palette = *Palette::of(ui);
    let line =
        Frame::new().fill(palette.page).stroke(Stroke::NONE).inner_margin(Margin::symmetric(12, 0));
    Panel::top("range")
        .exact_size(42.0)
        .resizable(false)
        .show_separator_line(false)
        .frame(line)
        .show(ui, |ui| range_line.show(ui, open));
    let margin = Margin { left: 12, right: 12, top: 0, bottom: 12 };
    open.choices.pointed = false;
    CentralPanel::default().frame(Frame::new().inner_margin(margin)).show(ui, |ui| {
        let id = ui.unique_id();
        ui.ctx().accesskit_node_builder(id, |node| {
            node.set_role(egui::accesskit::Role::Main);
            node.set_label(PANELS[panel].name);
        });
        let height = ui.available_height();
        ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| {
            ui.set_max_height(height);
            bars::incomplete_ui(ui, open.derived.subject());
            let mut scene = Scene { derived: &open.derived, choices: &mut open.choices };
            (PANELS[panel].draw)(ui, &mut scene);
        });
    });
    forget_cursor(ui.ctx(), open);
}

/// The cursor follows the pointer: once that has moved and is in no plot, it is gone. A cursor that
/// keys move stays, as the pointer does not move then.
fn forget_cursor(ctx: &Context, open: &mut OpenTab) {
    let moved = ctx.input(|input| input.pointer.delta() != egui::Vec2::ZERO);
    if moved && !open.choices.pointed {
        open.choices.cursor = None;
    }
}

/// Keys that concern the shown run.
fn act_on(open: &mut OpenTab, action: Action, panel: usize) {
    let choices = &mut open.choices;
    match action {
        Action::Tables => choices.toggle_tables(PANELS[panel].plots),
        Action::Pan(hundredths) => choices.pan(f64::from(hundredths) / 100.0),
        Action::Zoom(closer) => choices.zoom_here(if closer { 1.5 } else { 1.0 / 1.5 }),
        Action::Fit => choices.fit(),
        Action::Whole => choices.fit_whole(),
        Action::Cursor(thousandths) => choices.step_cursor(f64::from(thousandths) / 1_000.0),
        Action::RangeStart => choices.start_at_cursor(),
        Action::RangeEnd => choices.end_at_cursor(),
        Action::Clear => {
            choices.clear();
        }
        Action::Open
        | Action::Close
        | Action::NextRun
        | Action::Panel(_)
        | Action::Theme
        | Action::Sheet => {}
    }
}

/// A typed or pasted path: quotes and `file://` around it are dropped, `~` is the home folder.
fn typed_path(typed: &str, home: Option<&Path>) -> PathBuf {
    let path = typed.trim().trim_matches(['"', '\'']);
    let path = path.strip_prefix("file://").unwrap_or(path);
    match (path.strip_prefix('~').map(|rest| rest.trim_start_matches('/')), home) {
        (Some(rest), Some(home)) if path == "~" || path.starts_with("~/") => home.join(rest),
        _ => PathBuf::from(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_paths_are_meant_paths() {
        let home = Some(Path::new("/me"));
        for (typed, meant) in [
            ("/runs/a.beat", "/runs/a.beat"),
            (" 'a b.beat' ", "a b.beat"),
            ("file:///runs/a.beat", "/runs/a.beat"),
            ("~/a.beat", "/me/a.beat"),
            ("~other/a.beat", "~other/a.beat"),
        ] {
            assert_eq!(typed_path(typed, home), Path::new(meant), "{typed}");
        }
    }
}
