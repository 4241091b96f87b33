//! The window: which runs are open, which panels are shown, and what keys, drops, panels and
//! dialogs ask for.
//!
//! State in, widgets out. It computes nothing: runs are loaded by [`crate::load`], pictures made by
//! [`crate::derive`]; here they are only put in their places. No call here waits for a disk.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use eframe::egui::{
    self, CentralPanel, Context, Frame, Margin, Panel, ThemePreference, Ui, Vec2, ViewportCommand,
};

use crate::arguments::{Arguments, PanelChoice, ThemeChoice};
use crate::bars::{self, RangeLine};
use crate::dialog::{self, Dialog};
use crate::fields::Field;
use crate::filter_line::FilterLine;
use crate::keys::{self, Action};
use crate::notice::Notices;
use crate::output::{self, Output};
use crate::page;
use crate::panels::{self, PANELS, PanelWish};
use crate::platform;
use crate::recent::Recent;
use crate::screens::{self, Wish};
use crate::settings::{Settings, store::Store};
use crate::sheet;
use crate::tabs::{OpenTab, Tab, Tabs};
use crate::theme::{self, Palette};
use crate::tiles::Tiles;
use crate::top_bar::{self, TopBar, TopWish};

/// Below this width of the window the facts of the run give their room to the panels.
const NARROW: f32 = 760.0;
/// Below this one the list of panels and the menus fold, each into one of the top bar.
const FOLDED: f32 = 640.0;
/// The table of requests, in the settings.
const REQUESTS: &str = "requests";

/// What the window begins with.
#[derive(Debug, Default)]
pub struct Start {
    /// Runs to open.
    pub runs: Vec<PathBuf>,
    /// Panel to show, by its place; else those that were seen last.
    pub panel: Option<usize>,
    /// Colours; else those of the settings.
    pub theme: Option<ThemePreference>,
    /// Range in seconds.
    pub range: Option<(f64, f64)>,
    /// Filter.
    pub filter: Option<String>,
    /// The file with the settings; `None`: nothing is read or written.
    pub settings: Option<PathBuf>,
    /// Work everything out on the drawing thread; for tests.
    pub inline: bool,
}

impl Start {
    /// What the command line asks for.
    #[must_use]
    pub fn from_arguments(arguments: Arguments) -> Self {
        // A picture must not depend on who takes it.
        let apart = arguments.no_settings || arguments.screenshot.is_some();
        Self {
            runs: arguments.runs,
            panel: match arguments.panel {
                Some(PanelChoice::One(place)) => Some(place),
                Some(PanelChoice::All) | None => None,
            },
            theme: arguments.theme.map(ThemeChoice::preference),
            range: arguments.range,
            filter: arguments.filter,
            settings: if apart { None } else { platform::settings_file() },
            inline: false,
        }
    }
}

/// The window.
pub struct ViewerApp {
    /// The runs.
    pub tabs: Tabs,
    /// The panels on the page.
    pub tiles: Tiles,
    /// Runs opened last.
    pub recent: Recent,
    theme: ThemePreference,
    range_line: RangeLine,
    filter_line: FilterLine,
    sheet: bool,
    dialog: Option<Dialog>,
    notices: Notices,
    output: Output,
    /// The room that panels had in the last frame (points).
    page_size: Vec2,
    wishes: Vec<PanelWish>,
    title: String,
    store: Store,
    /// What is remembered and has no other place here.
    settings: Settings,
    /// Whether the welcome was drawn in the last frame.
    welcomed: bool,
    /// The shown run and the columns of its table of requests, as they were in the last frame.
    columns: Option<(PathBuf, BTreeSet<Field>)>,
    /// How large everything was drawn in the last frame; a wish for another takes effect after one.
    zoom: f32,
    home: Option<PathBuf>,
    started_in: Option<PathBuf>,
}

impl ViewerApp {
    /// A window with fonts and colours installed, opening what it begins with. Reads the settings.
    #[must_use]
    pub fn new(ctx: &Context, start: Start) -> Self {
        let (store, found) = Store::open(start.settings);
        let settings = found.settings;
        let theme = start.theme.unwrap_or(settings.theme.preference());
        theme::install(ctx, theme);
        let zoom = ctx.zoom_factor();
        ctx.set_zoom_factor(settings.scale);
        let mut tabs = Tabs::default();
        tabs.first_range = start.range;
        tabs.first_filter = start.filter;
        tabs.inline = start.inline;
        let columns = settings.columns.get(REQUESTS).into_iter().flatten();
        let columns: BTreeSet<Field> = columns.filter_map(|name| Field::named(name)).collect();
        tabs.first_columns = Some(columns).filter(|columns| !columns.is_empty());
        for run in start.runs {
            tabs.open(run, ctx);
        }
        tabs.show(0);
        let mut notices = Notices::default();
        if let Some(words) = found.words {
            notices.warn(words);
        }
        let restored = || Tiles::restored(&settings.layout);
        Self {
            tabs,
            tiles: start.panel.map_or_else(restored, Tiles::one),
            recent: Recent::new(settings.recent.clone()),
            theme,
            range_line: RangeLine::default(),
            filter_line: FilterLine::default(),
            sheet: false,
            dialog: None,
            notices,
            output: Output::default(),
            page_size: Vec2::ZERO,
            wishes: Vec::new(),
            title: String::new(),
            store,
            settings,
            welcomed: false,
            columns: None,
            zoom,
            home: platform::home(),
            started_in: platform::started_in(),
        }
    }

    /// Shows the panel at this place, and no other.
    pub fn show_panel(&mut self, place: usize) {
        self.tiles = Tiles::one(place);
    }

    /// Draws one frame.
    pub fn show(&mut self, ui: &mut Ui) {
        let ctx = ui.ctx().clone();
        self.tabs.poll(&ctx);
        for path in self.tabs.take_opened() {
            self.recent.add(&path);
        }
        for words in self.tabs.take_ended() {
            self.notices.say(words + ".");
        }
        for words in self.tabs.take_missed() {
            self.notices.warn(words + ".");
        }
        self.take_drops(&ctx);
        if !self.sheet && self.dialog.is_none() && !self.output.is_open() {
            for action in keys::pressed(&ctx) {
                self.act(action, &ctx);
            }
        }
        self.frame_ui(ui, &ctx);
        self.grant_panels(&ctx);
        self.name_window(&ctx);
        self.over_ui(&ctx);
        self.remember(&ctx);
    }

    /// Shows a dialog that opens runs.
    pub fn show_dialog(&mut self, dialog: Dialog) {
        self.dialog = Some(dialog);
    }

    /// Whether nothing is being loaded, worked out or looked up.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.tabs.is_settled()
            && !self.recent.is_asking()
            && self.dialog.as_ref().is_none_or(|dialog| !dialog.is_looking())
    }

    fn frame_ui(&mut self, ui: &mut Ui, ctx: &Context) {
        let palette = *Palette::of(ui);
        let bar = |x, y| Frame::new().fill(palette.card).inner_margin(Margin::symmetric(x, y));
        let top = Panel::top("top").exact_size(46.0).resizable(false).frame(bar(14, 0));
        let top_bar = TopBar {
            tabs: &self.tabs,
            recent: &self.recent,
            tiles: &self.tiles,
            theme: self.theme,
            folded: ui.available_width() < FOLDED,
        };
        let folded = top_bar.folded;
        let wish = top.show(ui, |ui| top_bar.show(ui)).inner;
        self.grant_top(wish, ctx);
        let (width, facts) =
            if ui.available_width() < NARROW { (134.0, false) } else { (172.0, true) };
        let rail = Panel::left("rail").exact_size(width).resizable(false).frame(bar(10, 10));
        let opened = match self.tabs.shown() {
            Some(Tab::Open(open)) => Some(Arc::clone(open.derived.subject())),
            _ => None,
        };
        if !folded {
            rail.show(ui, |ui| bars::rail_ui(ui, &mut self.tiles, opened.as_deref(), facts));
        }
        self.welcome(ctx);
        let page = Frame::new().fill(palette.page);
        self.page_size = ui.available_size();
        let wish = CentralPanel::default().frame(page).show(ui, |ui| self.page_ui(ui)).inner;
        self.grant(wish, ctx);
    }

    fn page_ui(&mut self, ui: &mut Ui) -> Wish {
        let Self { tabs, tiles, recent, range_line, filter_line, wishes, .. } = self;
        let others = tabs.others();
        match tabs.shown_mut() {
            None => screens::welcome_ui(ui, recent),
            Some(Tab::Loading(loading)) => screens::loading_ui(ui, loading),
            Some(Tab::Failed(problem)) => screens::problem_ui(ui, problem),
            Some(Tab::Open(open)) => {
                page::show(ui, open, tiles, (range_line, filter_line), &others, wishes);
                Wish::None
            }
        }
    }

    /// What lies over the page.
    fn over_ui(&mut self, ctx: &Context) {
        if self.sheet && sheet::show(ctx) {
            self.sheet = false;
        }
        if let Some(dialog) = &mut self.dialog
            && let Some(wish) = dialog.show(ctx)
        {
            self.settings.newest_first = dialog.newest_first();
            self.settings.folder = dialog.folder().map(Path::to_owned);
            self.dialog = None;
            if let dialog::Wish::Open(paths) = wish {
                self.open(paths, ctx);
            }
            ctx.request_repaint();
        }
        let screen =
            output::Screen { tabs: &self.tabs, panel: self.tiles.panel(), size: self.page_size };
        self.output.show(ctx, screen, &mut self.notices);
        screens::drop_target_ui(ctx);
        self.notices.show(ctx);
    }

    /// Asks which recent runs are still there whenever the welcome comes into sight.
    fn welcome(&mut self, ctx: &Context) {
        let welcome = self.tabs.shown().is_none();
        if welcome && !self.welcomed {
            self.look_at_recent(ctx);
        }
        self.welcomed = welcome;
    }

    fn look_at_recent(&self, ctx: &Context) {
        let ctx = ctx.clone();
        self.recent.look(move || ctx.request_repaint());
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
        self.open(dropped, ctx);
    }

    fn open(&mut self, paths: Vec<PathBuf>, ctx: &Context) {
        for path in paths {
            self.tabs.open(path, ctx);
        }
    }

    /// The dialog that opens runs, in the folder of the shown run if there is one.
    fn browse(&mut self, ctx: &Context) {
        let beside = self.tabs.shown().and_then(|tab| tab.path().parent());
        let beside = beside.filter(|folder| !folder.as_os_str().is_empty()).map(Path::to_owned);
        let start = beside
            .or_else(|| self.settings.folder.clone())
            .or_else(|| self.started_in.clone())
            .or_else(|| self.home.clone())
            .unwrap_or_else(|| PathBuf::from(std::path::MAIN_SEPARATOR_STR));
        let start = std::path::absolute(&start).unwrap_or(start);
        let newest_first = self.settings.newest_first;
        self.show_dialog(Dialog::open(start, self.home.clone(), newest_first, ctx));
    }

    /// The sheet that writes pictures, tables and pages.
    fn export(&mut self, ctx: &Context) {
        let screen =
            output::Screen { tabs: &self.tabs, panel: self.tiles.panel(), size: self.page_size };
        self.output.open(ctx, screen);
    }

    fn act(&mut self, action: Action, ctx: &Context) {
        let panel = self.tiles.panel();
        match action {
            Action::Open => self.browse(ctx),
            Action::Export => self.export(ctx),
            Action::Find => self.filter_line.focus = true,
            Action::Close => self.tabs.close(),
            Action::NextRun(forward) => self.tabs.next(forward),
            Action::Panel(place) => self.tiles.show(place),
            Action::Sheet => self.sheet = true,
            Action::Theme => self.set_theme(top_bar::next_theme(self.theme), ctx),
            Action::Split(direction) => {
                if !self.tiles.split(direction) {
                    self.notices.say("There is no room for one more tile.");
                }
            }
            Action::CloseTile => self.tiles.close(self.tiles.focus()),
            Action::NextTile(forward) => self.tiles.focus_next(forward),
            Action::Resize(direction, by) => self.tiles.resize(direction, f32::from(by) / 100.0),
            _ => {
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
        match wish {
            TopWish::None => {}
            TopWish::Browse => self.browse(ctx),
            TopWish::Export => self.export(ctx),
            TopWish::Open(path) => self.tabs.open(path, ctx),
            TopWish::Show(place) => self.tabs.show(place),
            TopWish::Close(place) => self.tabs.close_at(place),
            TopWish::LookAtRecent => self.look_at_recent(ctx),
            TopWish::ForgetRecent => self.recent.clear(),
            TopWish::Panel(place) => self.tiles.show(place),
            TopWish::Theme(theme) => self.set_theme(theme, ctx),
            TopWish::Scale(scale) => ctx.set_zoom_factor(scale),
            TopWish::Arrange(arrangement) => self.tiles.arrange(arrangement),
            TopWish::Split(direction) => self.act(Action::Split(direction), ctx),
            TopWish::CloseTile => self.act(Action::CloseTile, ctx),
            TopWish::Sheet => self.sheet = true,
        }
    }

    fn grant(&mut self, wish: Wish, ctx: &Context) {
        match wish {
            Wish::None => {}
            Wish::Browse => self.browse(ctx),
            Wish::Open(path) => self.tabs.open(path, ctx),
            Wish::ForgetRecent => self.recent.clear(),
            Wish::Retry => self.tabs.retry(ctx),
            Wish::Close => self.tabs.close(),
            Wish::Cancel => {
                if let Some(Tab::Loading(loading)) = self.tabs.shown() {
                    loading.cancel();
                }
            }
        }
    }

    /// Grants what the panels asked for.
    fn grant_panels(&mut self, ctx: &Context) {
        for wish in std::mem::take(&mut self.wishes) {
            ctx.request_repaint();
            match wish {
                PanelWish::ShowRequest(request) => self.show_request(request),
                PanelWish::Filter(text) => {
                    if let Some(Tab::Open(open)) = self.tabs.shown_mut() {
                        open.choices.type_filter(&text);
                    }
                }
                PanelWish::ShowPanel(place) => self.tiles.show(place),
                PanelWish::OpenRun => self.browse(ctx),
            }
        }
    }

    /// Shows everything about a request: its details in the panel of requests.
    fn show_request(&mut self, request: u32) {
        if let Some(Tab::Open(open)) = self.tabs.shown_mut() {
            open.choices.requests.show(request);
        }
        if let Some(place) = panels::named("Requests") {
            self.tiles.show(place);
        }
    }

    /// Notes what is to be remembered.
    fn remember(&mut self, ctx: &Context) {
        let settings = &mut self.settings;
        settings.theme = ThemeChoice::of(self.theme);
        let zoom = ctx.zoom_factor();
        if zoom.to_bits() != self.zoom.to_bits() {
            self.zoom = zoom;
            settings.scale = zoom;
        }
        settings.layout = self.tiles.saved();
        if settings.recent != self.recent.paths() {
            settings.recent = self.recent.paths().to_vec();
        }
        self.remember_columns();
        self.store.keep(&self.settings);
        if let Some(words) = self.store.failure() {
            self.notices.warn(words);
        }
    }
}

impl ViewerApp {
    /// Notes the columns of the table of requests when they were changed in the shown run; runs
    /// that are opened later begin with them.
    fn remember_columns(&mut self) {
        let Some(Tab::Open(open)) = self.tabs.shown() else { return };
        let (path, columns) = (&open.derived.subject().path, &open.choices.requests.columns);
        let changed = match &self.columns {
            Some((seen, before)) if seen == path && before == columns => return,
            Some((seen, _)) => seen == path,
            None => false,
        };
        self.columns = Some((path.clone(), columns.clone()));
        if changed {
            let names = columns.iter().map(|field| field.row().name.to_owned()).collect();
            self.settings.columns.insert(REQUESTS.to_owned(), names);
            self.tabs.first_columns = Some(columns.clone());
        }
    }
}

impl eframe::App for ViewerApp {
    fn ui(&mut self, ui: &mut Ui, _frame: &mut eframe::Frame) {
        self.show(ui);
    }

    fn clear_color(&self, visuals: &egui::Visuals) -> [f32; 4] {
        visuals.panel_fill.to_normalized_gamma_f32()
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
        // The window's.
        _ => {}
    }
}
