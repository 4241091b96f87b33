//! What leaves the viewer: pictures, tables, pages.
//!
//! [`Output`] is the window's part: the sheet under Ctrl+E, the orders that are being carried out,
//! and a line for each that says how far it is. Everything is written on threads of their own,
//! whole or not at all, and never over a run. The words about how it went go to the window's
//! notices.

mod dialog;
pub mod file;
mod job;
pub mod order;
mod panel_picture;
pub mod png;

use std::{path::PathBuf, sync::Arc};

use crossbeam::channel::{Receiver, TryRecvError, bounded};
use eframe::egui::{
    self, Align2, Area, Context, Id, ProgressBar, RichText, Spinner, Ui, Vec2, vec2,
};
use onbeat_shared::foreign::shown_path;

pub use dialog::PATH_FIELD;
use dialog::{Dialog, Wish};
use file::Refusal;
use job::Job;
use order::{Done, Form, Order};

use crate::bars;
use crate::notice::Notices;
use crate::opened::Stand;
use crate::panels::PANELS;
use crate::quantity;
use crate::raster::Bitmap;
use crate::tabs::{OpenTab, Tab, Tabs};
use crate::theme::{self, GRID, Palette, Type};

/// What is on the screen.
#[derive(Clone, Copy)]
pub struct Screen<'a> {
    /// The runs.
    pub tabs: &'a Tabs,
    /// The place of the shown panel.
    pub panel: usize,
    /// Its size (points).
    pub size: Vec2,
}

impl Screen<'_> {
    fn open(&self) -> Option<&OpenTab> {
        match self.tabs.shown() {
            Some(Tab::Open(open)) => Some(open),
            _ => None,
        }
    }

    fn runs(&self) -> Vec<PathBuf> {
        self.tabs.all().iter().map(|tab| tab.path().to_owned()).collect()
    }
}

/// The window's exports.
#[derive(Default)]
pub struct Output {
    dialog: Option<Dialog>,
    /// A picture of the window that is being taken, without the sheet over it.
    shot: Option<Shot>,
    /// An order of which it is not known yet whether its file may be written.
    asked: Option<Job>,
    jobs: Vec<Job>,
}

/// Frames without the sheet before the window is pictured, and frames to wait for the picture.
const SHOT_FRAMES: u32 = 3;
const SHOT_PATIENCE: u32 = 600;
/// Width of the line about an order.
const LINE_WIDTH: f32 = 360.0;

struct Shot {
    path: PathBuf,
    replace: bool,
    frames: u32,
    picture: Option<Receiver<Bitmap>>,
}

impl Output {
    /// Opens the sheet, if a run is shown.
    pub fn open(&mut self, ctx: &Context, screen: Screen<'_>) {
        if let Some(open) = screen.open()
            && self.dialog.is_none()
        {
            let run = &open.derived.subject().path;
            self.dialog = Some(Dialog::new(ctx, run, PANELS[screen.panel].name));
        }
    }

    /// Whether the sheet lies over the window.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.dialog.is_some()
    }

    /// Whether nothing is being written.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.shot.is_none() && self.asked.is_none() && self.jobs.is_empty()
    }

    /// Draws the sheet and the lines, and takes in what has been written.
    pub fn show(&mut self, ctx: &Context, screen: Screen<'_>, notices: &mut Notices) {
        self.collect(notices);
        self.take_shot(ctx, screen, notices);
        let open = screen.open();
        if open.is_none() {
            self.dialog = None;
        }
        if let (Some(dialog), Some(open), None) = (&mut self.dialog, open, &self.shot) {
            let of = of_words(open);
            match dialog.show(ctx, &of) {
                Wish::None => {}
                Wish::Close => {
                    self.dialog = None;
                    self.asked = None;
                }
                Wish::Write { form: Form::Window, path, replace } => {
                    self.shot = Some(Shot { path, replace, frames: 0, picture: None });
                    ctx.request_repaint();
                }
                Wish::Write { form, path, replace } => {
                    self.begin(ctx, screen, form, path, replace, None);
                }
            }
        }
        self.lines_ui(ctx);
    }

    fn begin(
        &mut self,
        ctx: &Context,
        screen: Screen<'_>,
        form: Form,
        path: PathBuf,
        replace: bool,
        window: Option<Bitmap>,
    ) {
        let Some(open) = screen.open() else { return };
        let order = Order {
            form,
            path,
            replace,
            runs: screen.runs(),
            opened: Arc::clone(open.derived.subject()),
            choices: open.choices.clone(),
            of: of_words(open),
            others: screen.tabs.others(),
            panel: screen.panel,
            size: screen.size,
            dark: ctx.global_style().visuals.dark_mode,
            window,
        };
        if let Some(dialog) = &mut self.dialog {
            dialog.wait();
        }
        let wake = ctx.clone();
        self.asked = Some(Job::start(order, move || wake.request_repaint()));
        ctx.request_repaint();
    }

    /// Takes in what threads have finished.
    fn collect(&mut self, notices: &mut Notices) {
        if let Some(job) = self.asked.take() {
            match job.poll() {
                Some(Ok(done)) => {
                    self.dialog = None;
                    notices.say(words(&done));
                }
                Some(Err(refusal)) => match &mut self.dialog {
                    Some(dialog) => dialog.refuse(refusal),
                    None => notices.warn(refusal.to_string()),
                },
                None if job.progress().is_accepted() => {
                    self.dialog = None;
                    self.jobs.push(job);
                }
                None => self.asked = Some(job),
            }
        }
        self.jobs.retain(|job| match job.poll() {
            None => true,
            Some(Ok(done)) => {
                notices.say(words(&done));
                false
            }
            Some(Err(Refusal::Stopped)) => {
                notices.say(Refusal::Stopped.to_string());
                false
            }
            Some(Err(refusal)) => {
                notices.warn(refusal.to_string());
                false
            }
        });
    }

    /// Takes the window's picture once the sheet is no longer in it.
    fn take_shot(&mut self, ctx: &Context, screen: Screen<'_>, notices: &mut Notices) {
        let Some(shot) = &mut self.shot else { return };
        shot.frames += 1;
        ctx.request_repaint();
        let Some(picture) = &shot.picture else {
            if shot.frames >= SHOT_FRAMES {
                let (sender, picture) = bounded(1);
                let wake = ctx.clone();
                ctx.request_screenshot(move |image| {
                    let _ = sender.send(Bitmap::of(&image));
                    wake.request_repaint();
                });
                shot.picture = Some(picture);
            }
            return;
        };
        let taken = match picture.try_recv() {
            Ok(picture) => Some(picture),
            Err(TryRecvError::Empty) if shot.frames < SHOT_PATIENCE => return,
            Err(_) => None,
        };
        let Some(shot) = self.shot.take() else { return };
        match taken {
            Some(picture) => {
                let Shot { path, replace, .. } = shot;
                self.begin(ctx, screen, Form::Window, path, replace, Some(picture));
            }
            None => {
                self.dialog = None;
                notices.warn("The window gave no picture of itself; nothing was written.");
            }
        }
    }

    /// A line for each order, at the lower edge.
    fn lines_ui(&mut self, ctx: &Context) {
        if self.jobs.is_empty() {
            return;
        }
        ctx.request_repaint_after(std::time::Duration::from_millis(100));
        Area::new(Id::unique("exports"))
            .order(egui::Order::Foreground)
            .anchor(Align2::CENTER_BOTTOM, vec2(0.0, -4.0 * GRID))
            .show(ctx, |ui| {
                ui.spacing_mut().item_spacing.y = 2.0 * GRID;
                for job in &self.jobs {
                    line_ui(ui, job);
                }
            });
    }
}

/// Of which requests it is, in words; also that there will be more of them.
fn of_words(open: &OpenTab) -> String {
    let opened = open.derived.subject();
    let mut words = bars::range_words(&open.choices, opened);
    if open.choices.range().is_some() {
        words.push_str(match opened.stand {
            Stand::Complete => "",
            Stand::Part(_) => ", of the part of the log that has been read so far",
            Stand::Growing => ", of what has been written so far",
        });
    }
    if let Some(filter) = &open.choices.selection().filter {
        words.push_str(&format!("; only those that pass: {}", filter.text()));
    }
    words
}

fn line_ui(ui: &mut Ui, job: &Job) {
    let palette = Palette::of(ui);
    theme::card(palette).shadow(ui.visuals().popup_shadow).show(ui, |ui| {
        ui.set_width(LINE_WIDTH.min(ui.ctx().content_rect().width() - 64.0));
        ui.horizontal(|ui| {
            let name = job.path().file_name().unwrap_or_default().to_string_lossy();
            ui.label(RichText::new(format!("Writing {name}")).font(Type::Strong.font()));
            ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                if ui.button("Stop").clicked() {
                    job.progress().stop();
                }
                let width = ui.available_width();
                match job.progress().share() {
                    Some(share) => {
                        let bar = ProgressBar::new(share).desired_width(width).desired_height(8.0);
                        let response = ui.add(bar.fill(palette.accent));
                        response.widget_info(|| {
                            let role = egui::Role::ProgressIndicator;
                            let mut info =
                                egui::WidgetInfo::labeled(role, true, format!("Writing {name}"));
                            info.value = Some(f64::from(share));
                            info
                        });
                    }
                    None => {
                        ui.add(Spinner::new().size(16.0));
                    }
                }
            });
        });
    });
}

/// What was written, in words.
fn words(done: &Done) -> String {
    let size = quantity::bytes(done.bytes);
    let path = shown_path(&done.path);
    match done.requests {
        Some(requests) => {
            format!("Saved {path} ({}, {size})", quantity::counted(requests, "request"))
        }
        None => format!("Saved {path} ({size})"),
    }
}
