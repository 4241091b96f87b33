//! What fills the window when there is no panel to show: the welcome, the progress, the problem;
//! and what lies over it: the place to drop a file.

use std::path::PathBuf;

use eframe::egui::{
    self, Align, Align2, Context, Id, LayerId, Layout, Order, ProgressBar, RichText, Spinner,
    TextFormat, TextStyle, Ui, text::LayoutJob, vec2,
};

use crate::load::Loading;
use crate::problem::Problem;
use crate::recent::Recent;
use crate::theme::{self, GRID, Palette, Type};
use crate::top_bar;

/// What a screen asks the window to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Nothing.
    None,
    /// Show the dialog that opens runs.
    Browse,
    /// Forget the recent runs.
    ForgetRecent,
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

/// Recent runs that fit a screen.
const RECENT_SHOWN: usize = 8;
/// Height of one of them.
const RECENT_ROW: f32 = 32.0;

/// Nothing is open.
pub fn welcome_ui(ui: &mut Ui, recent: &Recent) -> Wish {
    let rows = recent.paths().len().min(RECENT_SHOWN);
    let list = if rows > 0 { 64.0 + rows as f32 * RECENT_ROW } else { 0.0 };
    centred(ui, 180.0 + list, |ui| {
        let palette = Palette::of(ui);
        let mut wish = Wish::None;
        ui.label(RichText::new("Open a run").font(Type::Display.font()));
        ui.add_space(2.0 * GRID);
        ui.label("Drop files onto this window, or choose them.");
        ui.add_space(3.0 * GRID);
        let button = primary_button(ui, "Choose a file…");
        if button.on_hover_text("Ctrl+O").clicked() {
            wish = Wish::Browse;
        }
        ui.add_space(5.0 * GRID);
        if rows > 0 {
            recent_ui(ui, recent, &mut wish);
            ui.add_space(5.0 * GRID);
        }
        words_ui(ui, "No run yet? `onbeat demo` makes one in about ten seconds.", palette.weak);
        words_ui(ui, "Press `?` for the keys.", palette.weak);
        wish
    })
}

fn recent_ui(ui: &mut Ui, recent: &Recent, wish: &mut Wish) {
    let palette = Palette::of(ui);
    ui.horizontal(|ui| {
        let words = RichText::new("Recent").font(Type::Strong.font()).color(palette.weak);
        ui.label(words);
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            let words = RichText::new("Forget these").font(Type::Small.font()).color(palette.weak);
            if ui.add(egui::Button::new(words).frame(false)).clicked() {
                *wish = Wish::ForgetRecent;
            }
        });
    });
    ui.add_space(GRID);
    for path in recent.paths().iter().take(RECENT_SHOWN) {
        if top_bar::recent_row_ui(ui, path, recent.is_gone(path)) {
            *wish = Wish::Open(path.clone());
        }
    }
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
            if ui.button("Open another file…").clicked() {
                wish = Wish::Browse;
            }
            if ui.button("Close").clicked() {
                wish = Wish::Close;
            }
        });
        wish
    })
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
