//! What fills the window when there is no panel to show: the welcome, the progress, the problem;
//! and what lies over it: the sheet of keys, the place to drop a file.

use std::path::PathBuf;

use eframe::egui::{
    self, Align, Align2, Context, Id, LayerId, Layout, Modal, Order, ProgressBar, RichText,
    Spinner, TextFormat, TextStyle, Ui, text::LayoutJob, vec2,
};

use crate::keys::{BINDINGS, MOUSE};
use crate::load::Loading;
use crate::panels::PANELS;
use crate::problem::Problem;
use crate::theme::{self, GRID, Palette, Type};

/// What a screen asks the window to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Nothing.
    None,
    /// Put the cursor into the path field.
    TypePath,
    /// Open this file.
    Open(PathBuf),
    /// Try the shown file again.
    Retry,
    /// Close the shown file.
    Close,
    /// Stop opening.
    Cancel,
}

/// Width of the text on a full screen.
const TEXT_WIDTH: f32 = 540.0;

/// Nothing is open.
pub fn welcome_ui(ui: &mut Ui) -> Wish {
    centred(ui, 170.0, |ui| {
        let palette = Palette::of(ui);
        ui.label(RichText::new("Open a run").font(Type::Display.font()));
        ui.add_space(2.0 * GRID);
        ui.label("Drop a .beat file onto this window, or type its path.");
        ui.add_space(3.0 * GRID);
        let wish =
            if primary_button(ui, "Type a path").clicked() { Wish::TypePath } else { Wish::None };
        ui.add_space(5.0 * GRID);
        words_ui(ui, "No run yet? `onbeat demo` makes one in about ten seconds.", palette.weak);
        words_ui(ui, "Press `?` for the keys.", palette.weak);
        wish
    })
}

/// A run is on its way.
pub fn loading_ui(ui: &mut Ui, loading: &Loading) -> Wish {
    let progress = loading.progress();
    let name = loading.path().display().to_string();
    centred(ui, 120.0, |ui| {
        let palette = Palette::of(ui);
        ui.horizontal(|ui| {
            ui.add(Spinner::new().size(20.0));
            ui.label(RichText::new("Opening").font(Type::Display.font()));
        });
        ui.add(egui::Label::new(RichText::new(name).color(palette.weak)).truncate());
        ui.add_space(3.0 * GRID);
        ui.visuals_mut().extreme_bg_color = palette.edge;
        let width = ui.available_width();
        let bar = ProgressBar::new(progress).desired_width(width).desired_height(8.0);
        let response = ui.add(bar.fill(palette.accent));
        response.widget_info(|| {
            let mut info =
                egui::WidgetInfo::labeled(egui::Role::ProgressIndicator, true, "Opening the run");
            info.value = Some(f64::from(progress));
            info
        });
        ui.add_space(3.0 * GRID);
        if ui.button("Stop").clicked() { Wish::Cancel } else { Wish::None }
    })
}

/// A file that cannot be shown: what is wrong, what was found, what to do.
pub fn problem_ui(ui: &mut Ui, problem: &Problem) -> Wish {
    let rows = problem.others.len() as f32;
    centred(ui, 180.0 + rows * 30.0, |ui| {
        let palette = Palette::of(ui);
        let mut wish = Wish::None;
        ui.label(RichText::new(problem.headline()).font(Type::Display.font()).color(palette.bad));
        let path = problem.path.display().to_string();
        ui.add(egui::Label::new(RichText::new(path).color(palette.weak)).wrap());
        ui.add_space(3.0 * GRID);
        words_ui(ui, &problem.found(), palette.text);
        ui.add_space(GRID);
        words_ui(ui, &problem.remedy(), palette.text);
        ui.add_space(3.0 * GRID);
        for other in &problem.others {
            let name = other.file_name().unwrap_or(other.as_os_str()).to_string_lossy();
            if ui.button(format!("Open {name}")).clicked() {
                wish = Wish::Open(other.clone());
            }
        }
        if !problem.others.is_empty() {
            ui.add_space(3.0 * GRID);
        }
        ui.horizontal(|ui| {
            if primary_button(ui, "Try again").clicked() {
                wish = Wish::Retry;
            }
            if ui.button("Type another path").clicked() {
                wish = Wish::TypePath;
            }
            if ui.button("Close").clicked() {
                wish = Wish::Close;
            }
        });
        wish
    })
}

/// Width of each column of the sheet of keys, and the gap between them.
const SHEET_COLUMN: f32 = 350.0;
const SHEET_GAP: f32 = 32.0;

/// The sheet of keys. Returns whether it should close.
pub fn keys_ui(ctx: &Context) -> bool {
    let shown = Modal::new(Id::unique("keys")).frame(sheet_frame(ctx)).show(ctx, |ui| {
        ui.set_width(2.0 * SHEET_COLUMN + SHEET_GAP);
        let id = ui.unique_id();
        ui.ctx().accesskit_node_builder(id, |node| {
            node.set_role(egui::accesskit::Role::Dialog);
            node.set_label("Keys and mouse, sheet");
        });
        let mut close = false;
        ui.horizontal(|ui| {
            ui.label(RichText::new("Keys and mouse").font(Type::Heading.font()));
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                close = ui.button("Close").clicked();
            });
        });
        ui.add_space(2.0 * GRID);
        ui.horizontal_top(|ui| {
            ui.spacing_mut().item_spacing.x = SHEET_GAP;
            ui.vertical(|ui| {
                ui.set_width(SHEET_COLUMN);
                section_ui(ui, "Keys");
                for binding in BINDINGS {
                    key_ui(ui, binding.shown, binding.does);
                }
            });
            ui.vertical(|ui| {
                ui.set_width(SHEET_COLUMN);
                section_ui(ui, "Panels");
                for (place, panel) in PANELS.iter().enumerate() {
                    key_ui(ui, &(place + 1).to_string(), panel.name);
                }
                ui.add_space(3.0 * GRID);
                section_ui(ui, "Mouse, in plots over time");
                for (shown, does) in MOUSE {
                    key_ui(ui, shown, does);
                }
            });
        });
        close
    });
    shown.inner || shown.should_close()
}

/// The place to drop a file, over everything, while one hovers above the window.
pub fn drop_target_ui(ctx: &Context) {
    let hovering = ctx.input(|input| !input.raw.hovered_files.is_empty());
    if !hovering {
        return;
    }
    let dark = ctx.global_style().visuals.dark_mode;
    let palette = Palette::for_mode(dark);
    let painter = ctx.layer_painter(LayerId::new(Order::Foreground, Id::unique("drop")));
    let rect = ctx.content_rect();
    painter.rect_filled(rect, 0.0, theme::faded(palette.page, 0.92));
    let inner = rect.shrink(24.0);
    let stroke = egui::Stroke::new(2.0, palette.accent);
    painter.rect_stroke(inner, 8.0, stroke, egui::StrokeKind::Inside);
    let (words, font) = ("Drop to open", Type::Display.font());
    painter.text(inner.center(), Align2::CENTER_CENTER, words, font, palette.text);
}

fn sheet_frame(ctx: &Context) -> egui::Frame {
    egui::Frame::window(&ctx.global_style()).inner_margin(20)
}

fn section_ui(ui: &mut Ui, words: &str) {
    let palette = Palette::of(ui);
    ui.label(RichText::new(words).font(Type::Strong.font()).color(palette.weak));
}

fn key_ui(ui: &mut Ui, shown: &str, does: &str) {
    ui.horizontal(|ui| {
        ui.spacing_mut().item_spacing.x = 2.0 * GRID;
        let size = vec2(88.0, 22.0);
        ui.allocate_ui_with_layout(size, Layout::left_to_right(Align::Center), |ui| {
            ui.set_min_width(size.x);
            ui.label(RichText::new(shown).font(Type::Strong.font()));
        });
        ui.label(does);
    });
}

fn primary_button(ui: &mut Ui, words: &str) -> egui::Response {
    let palette = Palette::of(ui);
    let text = RichText::new(words).font(Type::Strong.font()).color(palette.accent);
    ui.add(egui::Button::new(text).fill(palette.accent_soft))
}

/// A sentence in which commands stand in backticks.
fn words_ui(ui: &mut Ui, words: &str, colour: egui::Color32) {
    let palette = Palette::of(ui);
    let mut job = LayoutJob::default();
    for (place, part) in words.split('`').enumerate() {
        let plain = place.is_multiple_of(2);
        let font = if plain { Type::Body.font() } else { TextStyle::Monospace.resolve(ui.style()) };
        let mut format = TextFormat::simple(font, colour);
        format.valign = Align::Center;
        if !plain {
            format.background = palette.page;
            format.color = palette.text;
            format.expand_bg = 2.0;
        }
        job.append(part, 0.0, format);
    }
    ui.add(egui::Label::new(job).wrap());
}

/// A card in the middle of the window.
fn centred<R>(ui: &mut Ui, height: f32, draw: impl FnOnce(&mut Ui) -> R) -> R {
    let room = ui.available_rect_before_wrap();
    let frame = theme::card(Palette::of(ui)).inner_margin(24);
    let margins = frame.total_margin().sum();
    let width = TEXT_WIDTH.min(room.width() - margins.x - 32.0);
    let top = ((room.height() - height - margins.y) * 0.4).max(16.0);
    let left = ((room.width() - width - margins.x) / 2.0).max(16.0);
    let rect = egui::Rect::from_min_max(room.min + vec2(left, top), room.max);
    let builder = egui::UiBuilder::new().max_rect(rect).layout(Layout::top_down(Align::Min));
    ui.scope_builder(builder, |ui| {
        let draw = |ui: &mut Ui| {
            ui.set_width(width);
            draw(ui)
        };
        frame.show(ui, draw).inner
    })
    .inner
}
