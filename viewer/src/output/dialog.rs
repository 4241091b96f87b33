//! The sheet under Ctrl+E: what to write, and where.
//!
//! It proposes a free name beside the run and never waits for a disk: names are looked up on a
//! thread of their own, and whether the file may be written is found out by whoever writes it. A
//! refusal comes back here, in words, with the path still in its field.

use std::{
    path::{Path, PathBuf},
    thread,
};

use crossbeam::channel::{Receiver, bounded};
use eframe::egui::{
    self, Align, Button, Context, Id, Key, Label, Layout, Modal, RadioButton, RichText, TextEdit,
    Ui, vec2,
};

use super::file::{self, Refusal};
use super::order::Form;
use crate::platform;
use crate::theme::{GRID, Palette, Type};
use crate::typed_path::typed_path;

/// Accessible name of the path field.
pub const PATH_FIELD: &str = "Path of the file to write";

/// Width of the sheet's content.
const WIDTH: f32 = 540.0;
/// Width of the names in the list.
const NAME_WIDTH: f32 = 216.0;
/// Height of a line of the list.
const LINE: f32 = 26.0;

/// What the sheet asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// Nothing.
    None,
    /// To go away.
    Close,
    /// Write this.
    Write {
        /// What.
        form: Form,
        /// Where.
        path: PathBuf,
        /// Whether to replace what is there.
        replace: bool,
    },
}

/// The sheet.
pub(super) struct Dialog {
    form: Form,
    path: String,
    /// The path is as it was proposed.
    untouched: bool,
    proposals: [PathBuf; Form::ALL.len()],
    better: Option<Receiver<[PathBuf; Form::ALL.len()]>>,
    run: PathBuf,
    refusal: Option<Refusal>,
    busy: bool,
    wants_focus: bool,
}

impl Dialog {
    /// A sheet about a run of which this panel is shown.
    pub(super) fn new(ctx: &Context, run: &Path, panel: &'static str) -> Self {
        let plain = Form::ALL.map(|form| {
            let stem = run.file_stem().unwrap_or(run.as_os_str()).to_string_lossy();
            run.with_file_name(format!("{stem}-{}.{}", form.subject(panel), form.extension()))
        });
        let (sender, better) = bounded(1);
        let (place, wake) = (run.to_owned(), ctx.clone());
        let looking = thread::Builder::new().name("onbeat-names".to_owned()).spawn(move || {
            let home = platform::home();
            let found = Form::ALL.map(|form| {
                file::proposal(&place, &form.subject(panel), form.extension(), home.as_deref())
            });
            // Nobody listens any more when the sheet was closed meanwhile.
            let _ = sender.send(found);
            wake.request_repaint();
        });
        let mut dialog = Self {
            form: Form::default(),
            path: String::new(),
            untouched: true,
            proposals: plain,
            better: looking.is_ok().then_some(better),
            run: run.to_owned(),
            refusal: None,
            busy: false,
            wants_focus: true,
        };
        dialog.propose();
        dialog
    }

    /// Says that something is being looked into.
    pub(super) const fn wait(&mut self) {
        self.busy = true;
    }

    /// Shows why nothing was written. If it was for want of rights, a place in the user's own
    /// folder is proposed.
    pub(super) fn refuse(&mut self, refusal: Refusal) {
        if matches!(refusal, Refusal::Forbidden(_))
            && let Some(home) = platform::home()
            && let Some(name) = Path::new(&self.path).file_name()
            && !Path::new(&self.path).starts_with(&home)
        {
            self.path = home.join(name).display().to_string();
            self.untouched = false;
        }
        self.refusal = Some(refusal);
        self.busy = false;
        self.wants_focus = true;
    }

    /// Draws it; `of` says which requests it would speak of.
    pub(super) fn show(&mut self, ctx: &Context, of: &str) -> Wish {
        self.take_better();
        let frame = egui::Frame::window(&ctx.global_style()).inner_margin(20);
        let shown = Modal::new(Id::unique("export")).frame(frame).show(ctx, |ui| {
            ui.set_width(WIDTH.min(ctx.content_rect().width() - 80.0));
            let id = ui.unique_id();
            ui.ctx().accesskit_node_builder(id, |node| {
                node.set_role(egui::accesskit::Role::Dialog);
                node.set_label("Export, sheet");
            });
            let close = heading_ui(ui, of);
            self.forms_ui(ui);
            ui.add_space(3.0 * GRID);
            let entered = self.path_ui(ui);
            ui.add_space(2.0 * GRID);
            let pressed = self.foot_ui(ui);
            match (close, pressed.or(entered)) {
                (true, _) => Wish::Close,
                (false, Some(replace)) => self.write(replace),
                (false, None) => Wish::None,
            }
        });
        if shown.should_close() && shown.inner == Wish::None { Wish::Close } else { shown.inner }
    }

    fn write(&self, replace: bool) -> Wish {
        let path = typed_path(&self.path, platform::home().as_deref());
        Wish::Write { form: self.form, path, replace }
    }

    fn take_better(&mut self) {
        if let Some(better) = self.better.as_ref().and_then(|better| better.try_recv().ok()) {
            self.proposals = better;
            self.better = None;
            if self.untouched {
                self.propose();
            }
        }
    }

    fn propose(&mut self) {
        let place = Form::ALL.iter().position(|&form| form == self.form).unwrap_or(0);
        self.path = self.proposals[place].display().to_string();
        self.untouched = true;
    }

    fn forms_ui(&mut self, ui: &mut Ui) {
        let palette = Palette::of(ui);
        let before = self.form;
        ui.spacing_mut().item_spacing.y = 0.0;
        for form in Form::ALL {
            if matches!(form, Form::RequestsCsv | Form::Page) {
                ui.add_space(2.0 * GRID);
            }
            let layout = Layout::left_to_right(Align::Center);
            ui.allocate_ui_with_layout(vec2(ui.available_width(), LINE), layout, |ui| {
                ui.set_min_height(LINE);
                let size = vec2(NAME_WIDTH, LINE);
                ui.allocate_ui_with_layout(size, layout, |ui| {
                    ui.set_min_size(size);
                    let radio = RadioButton::new(self.form == form, form.name());
                    if ui.add(radio).clicked() {
                        self.form = form;
                    }
                });
                let about = RichText::new(form.about().replace('`', ""));
                let about = about.font(Type::Small.font()).color(palette.weak);
                ui.add(Label::new(about).truncate().selectable(false));
            });
        }
        if self.form != before {
            self.refusal = None;
            self.follow(before);
        }
    }

    /// Another form has been chosen: an untouched path becomes its proposal, a typed one keeps its
    /// place and gets the right end.
    fn follow(&mut self, before: Form) {
        if self.untouched {
            self.propose();
            return;
        }
        let path = PathBuf::from(&self.path);
        if path.extension().is_some_and(|end| end.eq_ignore_ascii_case(before.extension())) {
            self.path = path.with_extension(self.form.extension()).display().to_string();
        }
    }

    /// The path. Enter in it writes, and never replaces.
    fn path_ui(&mut self, ui: &mut Ui) -> Option<bool> {
        let label = RichText::new("Save as").font(Type::Small.font());
        ui.add(Label::new(label.color(Palette::of(ui).weak)).selectable(false));
        ui.add_space(GRID);
        let field = TextEdit::singleline(&mut self.path)
            .id(Id::unique("export path"))
            .desired_width(ui.available_width())
            .margin(egui::Margin::symmetric(8, 6));
        let response = ui.add(field).accessible_name(PATH_FIELD);
        if std::mem::take(&mut self.wants_focus) {
            response.request_focus();
        }
        if response.changed() {
            self.untouched = false;
            self.refusal = None;
        }
        let entered = response.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
        (entered && self.may_write() && !self.asks()).then_some(false)
    }

    /// What is wrong, and the button.
    fn foot_ui(&self, ui: &mut Ui) -> Option<bool> {
        let palette = Palette::of(ui);
        let mut wish = None;
        let size = vec2(ui.available_width(), 44.0);
        ui.allocate_ui_with_layout(size, Layout::right_to_left(Align::Center), |ui| {
            ui.set_min_height(size.y);
            let words = if self.asks() { "Replace it" } else { "Save" };
            let text = RichText::new(words).font(Type::Strong.font()).color(palette.accent);
            let button = Button::new(text).fill(palette.accent_soft).min_size(vec2(96.0, 30.0));
            if ui.add_enabled(self.may_write(), button).clicked() {
                wish = Some(self.asks());
            }
            let (words, colour) = match &self.refusal {
                Some(refusal) => (refusal.to_string(), palette.bad),
                None if self.is_the_run() => {
                    (Refusal::Run(self.run.clone()).to_string(), palette.bad)
                }
                None => (String::new(), palette.weak),
            };
            ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                if self.busy {
                    ui.spinner();
                }
                ui.add(Label::new(RichText::new(words).color(colour)).wrap());
            });
        });
        wish
    }

    /// Whether the next press would replace a file.
    const fn asks(&self) -> bool {
        matches!(self.refusal, Some(Refusal::Exists(_)))
    }

    fn is_the_run(&self) -> bool {
        Path::new(self.path.trim()) == self.run
    }

    fn may_write(&self) -> bool {
        !self.busy && !self.path.trim().is_empty() && !self.is_the_run()
    }
}

fn heading_ui(ui: &mut Ui, of: &str) -> bool {
    let palette = Palette::of(ui);
    let mut close = false;
    ui.horizontal(|ui| {
        ui.label(RichText::new("Export").font(Type::Heading.font()));
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            close = ui.button("Close").clicked();
        });
    });
    ui.add_space(GRID);
    ui.add(Label::new(RichText::new(format!("Of {of}")).color(palette.weak)).wrap());
    ui.add_space(3.0 * GRID);
    close
}
