//! The bar above everything: the open runs as tabs, and the menus.
//!
//! It shows what there is and asks for what was clicked; [`crate::app`] grants it. Everything in it
//! can be done with a key as well.

use std::path::{Path, PathBuf};

use eframe::egui::{
    self, Align, Button, Layout, RichText, ScrollArea, Sense, Spinner, ThemePreference, Ui, vec2,
};

use crate::keys;
use crate::panels::PANELS;
use crate::recent::Recent;
use crate::tabs::{Tab, Tabs};
use crate::theme::{GRID, Palette, Type};
use crate::tiles::{Arrangement, Direction, MOST, Tiles};

/// Height of a tab (points).
const TAB_HEIGHT: f32 = 30.0;
/// The widest tab (points); a longer name is cut.
const TAB_WIDTH: f32 = 220.0;

/// Height of the bar above a menu, and of what is around its entries (points).
const BELOW_BAR: f32 = 64.0;
/// Menus are not higher than this.
const TALLEST_MENU: f32 = 600.0;

/// What the top bar asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum TopWish {
    /// Nothing.
    #[default]
    None,
    /// The dialog that opens runs.
    Browse,
    /// The sheet that writes pictures, tables and pages.
    Export,
    /// Open this file.
    Open(PathBuf),
    /// Show the run at this place.
    Show(usize),
    /// Close the run at this place.
    Close(usize),
    /// The menu of recent runs was opened: ask which of them are still there.
    LookAtRecent,
    /// Forget the recent runs.
    ForgetRecent,
    /// The panel at this place.
    Panel(usize),
    /// Other colours.
    Theme(ThemePreference),
    /// Draw everything this large, 1 being usual.
    Scale(f32),
    /// Arrange the panels like this.
    Arrange(Arrangement),
    /// Split the tile with the focus.
    Split(Direction),
    /// Close the tile with the focus.
    CloseTile,
    /// The sheet of keys.
    Sheet,
}

/// What the top bar shows.
pub struct TopBar<'a> {
    /// The runs.
    pub tabs: &'a Tabs,
    /// Runs opened last.
    pub recent: &'a Recent,
    /// The panels on the page.
    pub tiles: &'a Tiles,
    /// Colours.
    pub theme: ThemePreference,
    /// The window is narrow: panels are in a menu here, and all other menus are one.
    pub folded: bool,
}

impl TopBar<'_> {
    /// Draws it.
    pub fn show(&self, ui: &mut Ui) -> TopWish {
        let mut wish = TopWish::None;
        ui.horizontal_centered(|ui| {
            ui.spacing_mut().item_spacing.x = 2.0 * GRID;
            brand_ui(ui, !self.folded);
            if self.folded && self.has_open() {
                self.panels_ui(ui, &mut wish);
            }
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                if self.folded {
                    self.folded_ui(ui, &mut wish);
                } else {
                    self.menus_ui(ui, &mut wish);
                }
                ui.add_space(2.0 * GRID);
                ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                    self.tabs_ui(ui, &mut wish);
                });
            });
        });
        wish
    }

    fn has_open(&self) -> bool {
        matches!(self.tabs.shown(), Some(Tab::Open(_)))
    }

    /// The list of panels as a menu.
    fn panels_ui(&self, ui: &mut Ui, wish: &mut TopWish) {
        let shown = self.tiles.panel();
        let list = |ui: &mut Ui| {
            ui.set_min_width(170.0);
            for (place, panel) in PANELS.iter().enumerate() {
                let key = RichText::new(keys::panel_key(place)).font(Type::Small.font());
                let button = Button::selectable(place == shown, panel.name).right_text(key);
                if ui.add(button).on_hover_text(panel.about).clicked() {
                    *wish = TopWish::Panel(place);
                    ui.close();
                }
            }
        };
        let menu = menu_ui(ui, &format!("{} ▾", PANELS[shown].name), list);
        named(&menu, &format!("Panels menu, {} is shown", PANELS[shown].name));
    }

    /// All other menus as one.
    fn folded_ui(&self, ui: &mut Ui, wish: &mut TopWish) {
        let menu = menu_ui(ui, "Menu ▾", |ui| {
            ui.set_min_width(170.0);
            let open = self.has_open();
            for (there, name, key, asked) in [
                (true, "Open…", "Ctrl+O", TopWish::Browse),
                (open, "Export…", "Ctrl+E", TopWish::Export),
                (true, "Keys and mouse", "?", TopWish::Sheet),
            ] {
                if there && ui.add(Button::new(name).shortcut_text(key)).clicked() {
                    *wish = asked;
                    ui.close();
                }
            }
            if !self.recent.paths().is_empty()
                && menu_ui(ui, "Recent", |ui| self.recent_ui(ui, wish)).clicked()
            {
                *wish = TopWish::LookAtRecent;
            }
            menu_ui(ui, "View", |ui| self.view_ui(ui, wish));
        });
        named(&menu, "Menu");
    }

    /// From right to left.
    fn menus_ui(&self, ui: &mut Ui, wish: &mut TopWish) {
        let help = ui.button("?").on_hover_text("Keys and mouse (?)");
        help.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Button, true, "Keys and mouse"));
        if help.clicked() {
            *wish = TopWish::Sheet;
        }
        let view = menu_ui(ui, "View ▾", |ui| self.view_ui(ui, wish));
        named(&view, "View menu");
        if !self.recent.paths().is_empty() {
            let recent = menu_ui(ui, "Recent ▾", |ui| self.recent_ui(ui, wish));
            named(&recent, "Recent runs menu");
            if recent.clicked() {
                *wish = TopWish::LookAtRecent;
            }
        }
        if self.has_open() {
            let button = ui.button("Export…");
            if button.on_hover_text("Write a picture, a table or a page (Ctrl+E)").clicked() {
                *wish = TopWish::Export;
            }
        }
        if ui.button("Open…").on_hover_text("Open a run (Ctrl+O)").clicked() {
            *wish = TopWish::Browse;
        }
    }

    fn tabs_ui(&self, ui: &mut Ui, wish: &mut TopWish) {
        let titles = self.tabs.titles();
        let area = ScrollArea::horizontal()
            .id_salt("tabs")
            .max_height(TAB_HEIGHT)
            .min_scrolled_width(0.0)
            .auto_shrink([false, true])
            .scroll_bar_visibility(
                egui::containers::scroll_area::ScrollBarVisibility::AlwaysHidden,
            );
        ui.vertical(|ui| {
            ui.add_space(((ui.available_height() - TAB_HEIGHT) / 2.0).max(0.0));
            area.show(ui, |ui| self.strip_ui(ui, &titles, wish));
        });
    }

    fn strip_ui(&self, ui: &mut Ui, titles: &[String], wish: &mut TopWish) {
        ui.horizontal(|ui| {
            ui.spacing_mut().item_spacing.x = GRID;
            for (place, (tab, title)) in self.tabs.all().iter().zip(titles).enumerate() {
                let shown = place == self.tabs.place();
                match tab_ui(ui, tab, title, shown) {
                    TabWish::None => {}
                    TabWish::Show => *wish = TopWish::Show(place),
                    TabWish::Close => *wish = TopWish::Close(place),
                }
            }
        });
    }

    fn recent_ui(&self, ui: &mut Ui, wish: &mut TopWish) {
        ui.set_min_width(300.0);
        for path in self.recent.paths() {
            let gone = self.recent.is_gone(path);
            if recent_row_ui(ui, path, gone) {
                *wish = TopWish::Open(path.clone());
                ui.close();
            }
        }
        ui.separator();
        if ui.button("Forget these").clicked() {
            *wish = TopWish::ForgetRecent;
            ui.close();
        }
    }

    fn view_ui(&self, ui: &mut Ui, wish: &mut TopWish) {
        ui.set_min_width(220.0);
        section_ui(ui, "Colours");
        for (value, name) in THEMES {
            if ui.radio(self.theme == value, name).clicked() {
                *wish = TopWish::Theme(value);
                ui.close();
            }
        }
        section_ui(ui, "Size");
        ui.horizontal(|ui| {
            let scale = ui.ctx().zoom_factor();
            for (name, about, to) in [
                ("−".to_owned(), "Smaller (Ctrl −)", scale - 0.1),
                (format!("{:.0} %", scale * 100.0), "Usual size (Ctrl 0)", 1.0),
                ("+".to_owned(), "Larger (Ctrl +)", scale + 0.1),
            ] {
                let button = ui.button(name).on_hover_text(about);
                named(&button, about);
                if button.clicked() {
                    *wish = TopWish::Scale(to);
                }
            }
        });
        section_ui(ui, "Panels");
        for (arrangement, name) in [
            (Arrangement::One, "One panel"),
            (Arrangement::Columns, "Two side by side"),
            (Arrangement::Rows, "Two, one above the other"),
            (Arrangement::Four, "Four"),
        ] {
            if ui.button(name).clicked() {
                *wish = TopWish::Arrange(arrangement);
                ui.close();
            }
        }
        ui.separator();
        let count = self.tiles.len();
        for (able, name, key, asked) in [
            (count < MOST, "Split to the right", "S", TopWish::Split(Direction::Columns)),
            (count < MOST, "Split below", "Shift+S", TopWish::Split(Direction::Rows)),
            (count > 1, "Close this tile", "X", TopWish::CloseTile),
        ] {
            let button = Button::new(name).shortcut_text(key);
            if ui.add_enabled(able, button).clicked() {
                *wish = asked;
                ui.close();
            }
        }
    }
}

/// A menu that scrolls where the window is too low for all of it.
fn menu_ui(ui: &mut Ui, name: &str, draw: impl FnOnce(&mut Ui)) -> egui::Response {
    let menu = ui.menu_button(name, |ui| {
        let room = ui.ctx().content_rect().height() - BELOW_BAR;
        if room > TALLEST_MENU {
            draw(ui);
        } else {
            ui.set_max_height(room);
            ScrollArea::vertical().max_height(room).show(ui, draw);
        }
    });
    menu.response
}

/// The colours one can choose, with their names.
pub const THEMES: [(ThemePreference, &str); 3] = [
    (ThemePreference::System, "As the system"),
    (ThemePreference::Light, "Light"),
    (ThemePreference::Dark, "Dark"),
];

/// The theme after this one.
#[must_use]
pub const fn next_theme(theme: ThemePreference) -> ThemePreference {
    match theme {
        ThemePreference::System => ThemePreference::Light,
        ThemePreference::Light => ThemePreference::Dark,
        ThemePreference::Dark => ThemePreference::System,
    }
}

/// A run that was opened before, as a row of a menu or screen; one that is gone cannot be chosen.
/// Returns whether it was.
pub fn recent_row_ui(ui: &mut Ui, path: &Path, gone: bool) -> bool {
    let palette = Palette::of(ui);
    let (name, folder) = crate::tabs::name_and_folder(path);
    let (words, colour) = if gone {
        (format!("no longer there – {folder}"), palette.weak)
    } else {
        (folder, palette.text)
    };
    let button = Button::new(RichText::new(&name).font(Type::Strong.font()).color(colour))
        .right_text(RichText::new(words).font(Type::Small.font()).color(palette.weak))
        .truncate()
        .min_size(vec2(ui.available_width(), 28.0));
    let response = ui.add_enabled(!gone, button);
    let label = if gone { format!("{name}, no longer there") } else { format!("Open {name}") };
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Button, !gone, label.clone()));
    response.on_hover_text(path.display().to_string()).clicked()
}

enum TabWish {
    None,
    Show,
    Close,
}

fn tab_ui(ui: &mut Ui, tab: &Tab, title: &str, shown: bool) -> TabWish {
    let palette = Palette::of(ui);
    let mut wish = TabWish::None;
    let fill = if shown { palette.accent_soft } else { palette.page };
    let frame = egui::Frame::new()
        .fill(fill)
        .stroke(egui::Stroke::new(1.0, if shown { palette.accent } else { palette.edge }))
        .corner_radius(4)
        .inner_margin(egui::Margin { left: 10, right: 4, top: 0, bottom: 0 });
    let drawn = frame.show(ui, |ui| {
        ui.spacing_mut().item_spacing.x = GRID;
        ui.set_max_width(TAB_WIDTH);
        ui.set_height(TAB_HEIGHT - 2.0);
        let (font, colour) = match (tab, shown) {
            (Tab::Failed(_), _) => (Type::Body.font(), palette.bad),
            (_, true) => (Type::Strong.font(), palette.text),
            (_, false) => (Type::Body.font(), palette.weak),
        };
        if matches!(tab, Tab::Loading(_)) {
            ui.add(Spinner::new().size(12.0));
        }
        let text = RichText::new(title).font(font).color(colour);
        let button = Button::new(text).frame(false).truncate();
        let room = TAB_WIDTH - 28.0;
        let response = ui
            .scope(|ui| {
                ui.set_max_width(room);
                ui.add(button)
            })
            .inner;
        response.widget_info(|| {
            egui::WidgetInfo::selected(egui::Role::Tab, true, shown, format!("Run {title}"))
        });
        let path = tab.path().display().to_string();
        let response = response.on_hover_text(path);
        if response.clicked() {
            wish = TabWish::Show;
        }
        let close = ui.add(Button::new(RichText::new("×").color(palette.weak)).frame(false));
        named(&close, &format!("Close {title}"));
        if close.on_hover_text("Close this run (Ctrl+W)").clicked() || response.middle_clicked() {
            wish = TabWish::Close;
        }
    });
    // A tab that keys have shown comes into sight, once.
    let last = egui::Id::unique("shown tab");
    let id = drawn.response.id;
    if shown && ui.data(|data| data.get_temp(last)) != Some(id) {
        ui.data_mut(|data| data.insert_temp(last, id));
        drawn.response.scroll_to_me(None);
    }
    wish
}

/// Three even beats, and the name.
fn brand_ui(ui: &mut Ui, with_name: bool) {
    let palette = Palette::of(ui);
    let (rect, _) = ui.allocate_exact_size(vec2(18.0, 20.0), Sense::hover());
    for (place, height) in [10.0, 18.0, 10.0].into_iter().enumerate() {
        let x = rect.left() + 3.0 + 6.0 * place as f32;
        let beat = egui::Rect::from_center_size(egui::pos2(x, rect.center().y), vec2(3.0, height));
        ui.painter().rect_filled(beat, 1.5, palette.accent);
    }
    if with_name {
        ui.label(RichText::new("Onbeat").font(Type::Heading.font()));
    }
}

fn section_ui(ui: &mut Ui, words: &str) {
    let palette = Palette::of(ui);
    ui.add_space(GRID);
    ui.label(RichText::new(words).font(Type::Small.font()).color(palette.weak));
}

fn named(response: &egui::Response, name: &str) {
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Button, true, name));
}
