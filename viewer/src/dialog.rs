//! The dialog that opens runs: folders, files, and one field that finds a name or takes a path.
//!
//! Everything can be done from that field: what is typed finds entries by a part of their name; a
//! path in it is gone to; arrows choose, Enter opens, Backspace in the empty field goes one folder
//! up. Folders are read by [`crate::browse`] in the background; until one is there the last one
//! stays in sight. The dialog asks to open files and opens none.

use std::path::{Path, PathBuf};

use eframe::egui::{
    self, Align, Context, Id, Key, Layout, Modal, Modifiers, Rect, RichText, ScrollArea, Sense,
    Spinner, TextEdit, Ui, UiBuilder, vec2,
};

use crate::browse::{self, Entry, Found, Listing, Look};
use crate::keys;
use crate::quantity;
use crate::theme::{GRID, Palette, ROW_HEIGHT, Type};
use crate::typed_path::{is_path, typed_path};

/// Accessible name of the field.
pub const FIELD: &str = "Name or path of a run to open";

/// Size of the dialog's content where the window has room for it.
const WIDTH: f32 = 660.0;
const ROWS_HEIGHT: f32 = (PAGE + 1) as f32 * ROW;
/// Height of a row of the list.
const ROW: f32 = ROW_HEIGHT + 2.0;
/// Width of the columns of sizes and ages.
const SIZE_WIDTH: f32 = 90.0;
const AGE_WIDTH: f32 = 100.0;
/// Folders shown of the path to the shown one.
const STEPS: usize = 5;

/// What the dialog asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Open these, in this order.
    Open(Vec<PathBuf>),
    /// Close the dialog.
    Close,
}

/// The dialog.
#[derive(Debug)]
pub struct Dialog {
    home: Option<PathBuf>,
    listing: Option<Listing>,
    look: Option<Look>,
    typed: String,
    /// Entries that are found, by their place in the listing.
    found: Vec<usize>,
    /// Which of them is chosen.
    chosen: usize,
    /// Files to be opened together.
    marked: Vec<PathBuf>,
    wrong: Option<String>,
    newest_first: bool,
    /// The chosen entry is to be brought into sight.
    reveal: bool,
    focus: bool,
}

/// What a key in the dialog asks for.
#[derive(Clone, Copy, PartialEq)]
enum Step {
    Move(isize),
    First,
    Last,
    Enter,
    Mark,
    Up,
}

/// Rows that Page Up and Page Down move by: all but one of those in sight.
const PAGE: isize = 14;

/// What the keys of [`keys::DIALOG`] ask for, in its order.
const STEPS_OF_KEYS: [Step; 10] = [
    Step::Move(-1),
    Step::Move(1),
    Step::Move(-PAGE),
    Step::Move(PAGE),
    Step::First,
    Step::Last,
    Step::Enter,
    Step::Mark,
    Step::Up,
    Step::Up,
];
/// The key that counts in an empty field only: else it takes a letter away.
const BACKSPACE_PLACE: usize = 8;

impl Dialog {
    /// A dialog that begins in a folder.
    #[must_use]
    pub fn open(start: PathBuf, home: Option<PathBuf>, newest_first: bool, ctx: &Context) -> Self {
        let mut dialog = Self::empty(home, newest_first);
        dialog.go(start, ctx);
        dialog
    }

    /// A dialog that shows a folder as it was read.
    #[must_use]
    pub fn showing(listing: Listing, home: Option<PathBuf>, newest_first: bool) -> Self {
        let mut dialog = Self::empty(home, newest_first);
        dialog.take(listing);
        dialog
    }

    fn empty(home: Option<PathBuf>, newest_first: bool) -> Self {
        Self {
            home,
            listing: None,
            look: None,
            typed: String::new(),
            found: Vec::new(),
            chosen: 0,
            marked: Vec::new(),
            wrong: None,
            newest_first,
            reveal: false,
            focus: true,
        }
    }

    /// Whether lists begin with the newest.
    #[must_use]
    pub const fn newest_first(&self) -> bool {
        self.newest_first
    }

    /// The folder in sight.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.listing.as_ref().map(|listing| listing.folder.as_path())
    }

    /// Whether a folder is being read.
    #[must_use]
    pub const fn is_looking(&self) -> bool {
        self.look.is_some()
    }

    fn go(&mut self, place: PathBuf, ctx: &Context) {
        self.wrong = None;
        let ctx = ctx.clone();
        self.look = Some(Look::start(place, move || ctx.request_repaint()));
    }

    /// Takes in what was found at the place that was asked for.
    fn poll(&mut self) -> Option<Wish> {
        let found = self.look.as_ref()?.poll()?;
        self.look = None;
        match found {
            Found::Folder(listing) => {
                self.take(listing);
                None
            }
            Found::File(path) => Some(Wish::Open(vec![path])),
            Found::Refused { place, words } => {
                let name = onbeat_shared::foreign::shown_path(&place);
                self.wrong = Some(format!("{name}: {words}"));
                None
            }
        }
    }

    /// Shows a folder.
    fn take(&mut self, mut listing: Listing) {
        browse::order(&mut listing.entries, self.newest_first);
        let before = self.listing.replace(listing).map(|before| before.folder);
        self.typed.clear();
        self.marked.clear();
        self.find();
        self.choose_path(before.as_deref());
    }

    /// After going up, the folder one came from is chosen.
    fn choose_path(&mut self, path: Option<&Path>) {
        let Some(listing) = &self.listing else { return };
        let place = |&place: &usize| Some(listing.entries[place].path.as_path()) == path;
        self.chosen = self.found.iter().position(place).unwrap_or(0);
        self.reveal = true;
    }

    /// Works out which entries are found.
    fn find(&mut self) {
        let wanted = self.typed.trim().to_lowercase();
        let Some(listing) = &self.listing else { return };
        let entries = listing.entries.iter().enumerate();
        self.found = if is_path(&self.typed) {
            (0..listing.entries.len()).collect()
        } else {
            entries.filter(|(_, entry)| entry.folded.contains(&wanted)).map(|(i, _)| i).collect()
        };
        self.chosen = 0;
        self.reveal = true;
    }

    /// Draws it.
    pub fn show(&mut self, ctx: &Context) -> Option<Wish> {
        let mut wish = self.poll();
        let steps = self.steps(ctx);
        let frame = egui::Frame::window(&ctx.global_style()).inner_margin(20);
        let shown = Modal::new(Id::unique("open dialog")).frame(frame).show(ctx, |ui| {
            let room = ctx.content_rect().size() - vec2(72.0, 290.0);
            ui.set_width(WIDTH.min(room.x));
            let id = ui.unique_id();
            ctx.accesskit_node_builder(id, |node| {
                node.set_role(egui::accesskit::Role::Dialog);
                node.set_label("Open a run");
            });
            self.content_ui(ui, ROWS_HEIGHT.min(room.y).max(4.0 * ROW), &steps)
        });
        wish = wish.or(shown.inner);
        if wish.is_none() && shown.backdrop_response.clicked() {
            wish = Some(Wish::Close);
        }
        wish
    }

    /// Takes the keys that the dialog has for itself.
    fn steps(&self, ctx: &Context) -> Vec<Step> {
        let empty = self.typed.is_empty();
        let places = keys::DIALOG.take(ctx, field_id(), |place| place != BACKSPACE_PLACE || empty);
        places.into_iter().map(|place| STEPS_OF_KEYS[place]).collect()
    }

    fn content_ui(&mut self, ui: &mut Ui, rows: f32, steps: &[Step]) -> Option<Wish> {
        let mut wish = None;
        ui.horizontal(|ui| {
            ui.label(RichText::new("Open a run").font(Type::Heading.font()));
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                if ui.button("Close").clicked() {
                    wish = Some(Wish::Close);
                }
            });
        });
        ui.add_space(GRID);
        self.field_ui(ui);
        for step in steps {
            wish = wish.or_else(|| self.step(step, ui.ctx()));
        }
        ui.add_space(GRID);
        self.steps_ui(ui);
        ui.add_space(GRID);
        let opened = self.list_ui(ui, rows);
        ui.add_space(GRID);
        let pressed = self.footer_ui(ui);
        let asked = opened.or(pressed);
        wish.or_else(|| asked.and_then(|place| self.enter(place, ui.ctx()))).or_else(|| {
            let escaped = ui.input_mut(|input| input.consume_key(Modifiers::NONE, Key::Escape));
            escaped.then_some(Wish::Close)
        })
    }

    fn field_ui(&mut self, ui: &mut Ui) {
        let field = TextEdit::singleline(&mut self.typed)
            .id(field_id())
            .hint_text("Part of a name, or a path")
            .desired_width(f32::INFINITY)
            .margin(egui::Margin::symmetric(8, 6));
        let response = ui.add(field).accessible_name(FIELD);
        if std::mem::take(&mut self.focus) {
            response.request_focus();
        }
        if response.changed() {
            self.wrong = None;
            self.find();
        }
    }

    /// The folders above, the wish for another order, and what is going on.
    fn steps_ui(&mut self, ui: &mut Ui) {
        let palette = Palette::of(ui);
        let mut go = None;
        ui.horizontal(|ui| {
            ui.spacing_mut().item_spacing.x = GRID;
            if let Some(listing) = &self.listing {
                go = path_ui(ui, &listing.folder);
            }
            if let Some(look) = &self.look {
                ui.add(Spinner::new().size(14.0));
                let name = look.place().display().to_string();
                let words = RichText::new(format!("Reading {name}")).color(palette.weak);
                ui.add(egui::Label::new(words.font(Type::Small.font())).truncate());
            }
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                let before = self.newest_first;
                crate::widgets::switch::show(
                    ui,
                    "Order",
                    &mut self.newest_first,
                    &[
                        (false, "By name", "Names in alphabetical order"),
                        (true, "Newest first", "What was changed last comes first"),
                    ],
                );
                if before != self.newest_first {
                    self.order_anew();
                }
                let home = self.home.clone();
                if let Some(home) = home.filter(|_| ui.button("Home").clicked()) {
                    go = Some(home);
                }
            });
        });
        if let Some(place) = go {
            self.go(place, ui.ctx());
            self.focus = true;
        }
    }

    fn order_anew(&mut self) {
        if let Some(listing) = &mut self.listing {
            browse::order(&mut listing.entries, self.newest_first);
            self.find();
        }
        self.focus = true;
    }

    /// The list. Returns the entry that was clicked twice.
    fn list_ui(&mut self, ui: &mut Ui, height: f32) -> Option<usize> {
        let palette = *Palette::of(ui);
        let mut entered = None;
        let frame = egui::Frame::new()
            .fill(palette.card)
            .stroke(egui::Stroke::new(1.0, palette.edge))
            .corner_radius(4);
        frame.show(ui, |ui| {
            ui.set_width(ui.available_width());
            ui.set_height(height);
            if let Some(words) = self.nothing() {
                ui.centered_and_justified(|ui| {
                    ui.label(RichText::new(words).color(palette.weak));
                });
                return;
            }
            ui.spacing_mut().item_spacing.y = 0.0;
            let mut area = ScrollArea::vertical().id_salt("entries").auto_shrink([false, false]);
            if std::mem::take(&mut self.reveal) {
                // The chosen row in the middle, or as near to that as the list allows.
                let top = self.chosen as f32 * ROW - (height - ROW) / 2.0;
                area = area.vertical_scroll_offset(top.max(0.0));
            }
            area.show_rows(ui, ROW, self.found.len(), |ui, rows| {
                for row in rows {
                    entered = self.row_ui(ui, row).or(entered);
                }
            });
        });
        entered
    }

    /// Why the list is empty, if it is.
    fn nothing(&self) -> Option<String> {
        let Some(listing) = &self.listing else {
            return Some(if self.wrong.is_some() {
                String::new()
            } else {
                "Reading…".to_owned()
            });
        };
        if !self.found.is_empty() {
            return None;
        }
        Some(if listing.entries.is_empty() {
            "No run here: no file that ends in .beat, .jsonl, .json or .csv, and no folder."
                .to_owned()
        } else {
            format!("Nothing here has “{}” in its name.", self.typed.trim())
        })
    }

    /// One entry. Returns it when it was clicked twice.
    fn row_ui(&mut self, ui: &mut Ui, row: usize) -> Option<usize> {
        let entry = &self.listing.as_ref()?.entries[*self.found.get(row)?];
        let palette = Palette::of(ui);
        let (rect, response) =
            ui.allocate_exact_size(vec2(ui.available_width(), ROW), Sense::click());
        let marked = self.marked.contains(&entry.path);
        let chosen = row == self.chosen;
        if chosen || marked {
            ui.painter().rect_filled(rect, 3.0, palette.accent_soft);
        } else if response.hovered() {
            ui.painter().rect_filled(rect, 3.0, palette.stripe);
        }
        if chosen {
            let inside = egui::StrokeKind::Inside;
            let stroke = egui::Stroke::new(1.0, palette.accent);
            ui.painter().rect_stroke(rect, 3.0, stroke, inside);
        }
        entry_ui(ui, rect, entry, marked);
        let label = spoken(entry, marked);
        response.widget_info(|| {
            egui::WidgetInfo::selected(egui::Role::ListBoxOption, true, chosen, label.clone())
        });
        ui.ctx().accesskit_node_builder(response.id, |node| node.set_selected(chosen));
        if response.clicked() {
            let path = entry.path.clone();
            let is_file = !entry.is_folder;
            self.chosen = row;
            self.focus = true;
            if is_file && ui.input(|input| input.modifiers.command) {
                self.mark(path);
            }
        }
        response.double_clicked().then_some(row)
    }

    /// Says what is listed and what is not. Returns the entry to enter when the button was pressed.
    fn footer_ui(&self, ui: &mut Ui) -> Option<usize> {
        let palette = Palette::of(ui);
        let mut pressed = None;
        ui.horizontal(|ui| {
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                let words = match self.marked.len() {
                    0 => "Open".to_owned(),
                    count => format!("Open {}", quantity::counted(count as u64, "run")),
                };
                let words = RichText::new(words).font(Type::Strong.font()).color(palette.accent);
                let button = egui::Button::new(words).fill(palette.accent_soft);
                let able = !self.found.is_empty() || is_path(&self.typed);
                if ui.add_enabled(able, button).clicked() {
                    pressed = Some(self.chosen);
                }
                ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                    let (words, colour) = match &self.wrong {
                        Some(wrong) => (wrong.clone(), palette.bad),
                        None => (self.summary(), palette.weak),
                    };
                    let words = RichText::new(words).font(Type::Small.font()).color(colour);
                    ui.add(egui::Label::new(words).truncate());
                });
            });
        });
        pressed
    }

    fn summary(&self) -> String {
        let Some(listing) = &self.listing else { return String::new() };
        let files = listing.entries.iter().filter(|entry| !entry.is_folder).count() as u64;
        let mut words = quantity::counted(files, "file");
        if listing.others > 0 {
            let others = quantity::count(listing.others as u64);
            words = format!("{words}; {others} of other kinds are not listed");
        }
        if listing.cut {
            words.push_str("; more than can be listed, so type a part of the path");
        }
        format!("{words}. Ctrl+Space marks several.")
    }

    fn step(&mut self, step: &Step, ctx: &Context) -> Option<Wish> {
        let last = self.found.len().saturating_sub(1);
        match step {
            Step::Move(by) => self.chosen = self.chosen.saturating_add_signed(*by).min(last),
            Step::First => self.chosen = 0,
            Step::Last => self.chosen = last,
            Step::Enter => return self.enter(self.chosen, ctx),
            Step::Mark => {
                let listing = self.listing.as_ref()?;
                let entry = &listing.entries[*self.found.get(self.chosen)?];
                if !entry.is_folder {
                    self.mark(entry.path.clone());
                }
            }
            Step::Up => {
                let above = self.folder().and_then(Path::parent).map(Path::to_owned);
                if let Some(above) = above {
                    self.go(above, ctx);
                }
            }
        }
        self.reveal = true;
        None
    }

    /// Marks a file, or takes its mark away.
    fn mark(&mut self, path: PathBuf) {
        match self.marked.iter().position(|marked| *marked == path) {
            Some(place) => drop(self.marked.remove(place)),
            None => self.marked.push(path),
        }
    }

    /// Goes to what is typed, or opens what is marked or chosen.
    fn enter(&mut self, chosen: usize, ctx: &Context) -> Option<Wish> {
        if is_path(&self.typed) {
            let folder = self.folder().map(Path::to_owned);
            let path = typed_path(&self.typed, self.home.as_deref());
            self.go(folder.map_or(path.clone(), |folder| folder.join(path)), ctx);
            return None;
        }
        if !self.marked.is_empty() {
            return Some(Wish::Open(self.marked.clone()));
        }
        let entry = &self.listing.as_ref()?.entries[*self.found.get(chosen)?];
        let path = entry.path.clone();
        if entry.is_folder {
            self.go(path, ctx);
            return None;
        }
        Some(Wish::Open(vec![path]))
    }
}

fn field_id() -> Id {
    Id::unique("open dialog field")
}

/// The folders on the way to this one, each a button. Returns the one that was pressed.
fn path_ui(ui: &mut Ui, folder: &Path) -> Option<PathBuf> {
    let palette = Palette::of(ui);
    let mut go = None;
    let steps: Vec<&Path> = folder.ancestors().collect();
    if steps.len() > STEPS {
        ui.label(RichText::new("…").color(palette.weak));
    }
    for (place, step) in steps.iter().take(STEPS).enumerate().rev() {
        let name = step.file_name().unwrap_or(step.as_os_str()).to_string_lossy();
        let font = if place == 0 { Type::Strong.font() } else { Type::Body.font() };
        let response = ui.add(egui::Button::new(RichText::new(name).font(font)).frame(false));
        let label = format!("Folder {}", step.display());
        response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Button, true, label.clone()));
        if response.clicked() {
            go = Some((*step).to_owned());
        }
        if place > 0 && step.file_name().is_some() {
            ui.label(RichText::new("/").color(palette.weak));
        }
    }
    go
}

/// Name, size and age in their columns.
fn entry_ui(ui: &mut Ui, rect: Rect, entry: &Entry, marked: bool) {
    let palette = Palette::of(ui);
    let inner = rect.shrink2(vec2(2.0 * GRID, 0.0));
    let mut cell = |right: f32, width: f32, layout: Layout, text: RichText| {
        let place = Rect::from_x_y_ranges(
            (inner.right() - right - width).max(inner.left())..=inner.right() - right,
            inner.y_range(),
        );
        let mut child = ui.new_child(UiBuilder::new().max_rect(place).layout(layout));
        child.add(egui::Label::new(text).truncate().selectable(false));
    };
    let name = match (entry.is_folder, marked) {
        (true, _) => RichText::new(format!("{}/", entry.name)).font(Type::Strong.font()),
        (false, true) => RichText::new(format!("• {}", entry.name)).color(palette.accent),
        (false, false) => RichText::new(&entry.name),
    };
    let columns = SIZE_WIDTH + AGE_WIDTH;
    let start = Layout::left_to_right(Align::Center);
    let end = Layout::right_to_left(Align::Center);
    let small = |text: String| RichText::new(text).font(Type::Small.font()).color(palette.weak);
    cell(columns, inner.width() - columns, start, name);
    cell(AGE_WIDTH, SIZE_WIDTH, end, small(entry.bytes.map(quantity::bytes).unwrap_or_default()));
    cell(0.0, AGE_WIDTH, end, small(entry.age.clone()));
}

/// An entry as a screen reader says it.
fn spoken(entry: &Entry, marked: bool) -> String {
    let mut words = if entry.is_folder { "Folder " } else { "" }.to_owned();
    words.push_str(&entry.name);
    if marked {
        words.push_str(", marked");
    }
    words
}
