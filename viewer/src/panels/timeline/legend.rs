//! What the colours and signs of the timeline mean: only those that occur in it.

use eframe::egui::{
    Align, Color32, Layout, Rect, RichText, Sense, Shape, Spinner, Stroke, Ui, pos2, vec2,
};

use super::draw::{colour, stall_colour};
use crate::series::timeline::bars::{Kind, Shown};
use crate::theme::{self, GRID, Palette, Type};

/// Size of a sign.
const SIGN: f32 = 10.0;

/// Room between the things on the line.
const GAP: f32 = 1.5 * GRID;
/// Room for how many more there are.
const MORE: f32 = 56.0;

/// Draws it on one line. What finds no room is left out, the explanation first; how many signs that
/// are is said, and which when it is pointed at.
pub(super) fn show(ui: &mut Ui, shown: Option<&Shown>, fresh: bool, height: f32) {
    let palette = Palette::of(ui);
    let size = vec2(ui.available_width(), height);
    ui.allocate_ui_with_layout(size, Layout::left_to_right(Align::Center), |ui| {
        ui.spacing_mut().item_spacing.x = GAP;
        let Some(shown) = shown else { return };
        let kinds: Vec<Kind> = shown.kinds.iter().copied().collect();
        let (fitting, hidden) = kinds.split_at(fitting(ui, &kinds));
        for &kind in fitting {
            sign_ui(ui, palette, kind);
            let words = RichText::new(words(kind)).font(Type::Small.font()).color(palette.weak);
            ui.label(words);
            ui.add_space(GRID);
        }
        let hidden: Vec<_> = hidden.iter().map(|&kind| words(kind)).collect();
        if !hidden.is_empty() {
            let more = format!("{} more", hidden.len());
            let more = RichText::new(more).font(Type::Small.font()).color(palette.weak);
            ui.label(more).on_hover_text(hidden.join(", "));
        }
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            if !fresh {
                ui.add(Spinner::new().size(14.0));
            }
            let note = RichText::new(&shown.note).font(Type::Small.font()).color(palette.weak);
            ui.add(eframe::egui::Label::new(note).truncate());
        });
    });
}

/// How many of the signs have room beside each other.
fn fitting(ui: &Ui, kinds: &[Kind]) -> usize {
    let width = |&kind: &Kind| {
        let words = words(kind).to_owned();
        let words = ui.painter().layout_no_wrap(words, Type::Small.font(), Color32::WHITE);
        SIGN + words.size().x + GRID + 3.0 * GAP
    };
    let room = ui.available_width();
    let mut end = 0.0;
    let mut ends = Vec::new();
    for width in kinds.iter().map(width) {
        end += width;
        ends.push(end);
    }
    if end <= room {
        return kinds.len();
    }
    ends.partition_point(|&end| end <= room - MORE)
}

const fn words(kind: Kind) -> &'static str {
    match kind {
        Kind::Send => "connect, send",
        Kind::Prefill => "to first token",
        Kind::Decode => "decode",
        Kind::Tail => "tail",
        Kind::Whole => "in one piece",
        Kind::Due => "due",
        Kind::Held => "held back",
        Kind::Failed => "failed",
        Kind::Cut => "cancelled",
        Kind::Open => "no end in the log",
        Kind::Unsent => "never sent",
        Kind::Completed => "user completed",
        Kind::Truncated => "user truncated",
        Kind::Stall => "host stall",
    }
}

fn sign_ui(ui: &mut Ui, palette: &Palette, kind: Kind) {
    let (rect, _) = ui.allocate_exact_size(vec2(SIGN, SIGN), Sense::hover());
    let (centre, ink) = (rect.center(), colour(palette, kind));
    let painter = ui.painter();
    match kind {
        Kind::Send | Kind::Prefill | Kind::Decode | Kind::Tail | Kind::Whole => {
            painter.rect_filled(rect, 2.0, ink);
        }
        Kind::Stall => {
            painter.rect_filled(rect.expand2(vec2(0.0, 2.0)), 0.0, stall_colour(palette));
        }
        Kind::Held => {
            painter.rect_filled(Rect::from_center_size(centre, vec2(SIGN, 3.0)), 0.0, ink);
        }
        Kind::Due => {
            painter.rect_filled(Rect::from_center_size(centre, vec2(1.0, SIGN + 2.0)), 0.0, ink);
            let line = Rect::from_x_y_ranges(centre.x..=rect.right(), centre.y..=centre.y + 1.0);
            painter.rect_filled(line, 0.0, theme::faded(ink, 0.55));
        }
        Kind::Failed => {
            let stroke = Stroke::new(1.8, ink);
            for way in [vec2(3.5, 3.5), vec2(3.5, -3.5)] {
                painter.line_segment([centre - way, centre + way], stroke);
            }
        }
        Kind::Completed => {
            painter.circle_filled(centre, 3.0, ink);
        }
        Kind::Cut | Kind::Truncated => {
            painter.rect_filled(Rect::from_center_size(centre, vec2(2.0, SIGN)), 0.0, ink);
        }
        Kind::Open => {
            let (x, y) = (rect.left() + 2.0, centre.y);
            let points = vec![pos2(x, y - 3.5), pos2(x + 7.0, y), pos2(x, y + 3.5)];
            painter.add(Shape::convex_polygon(points, ink, Stroke::NONE));
        }
        Kind::Unsent => {
            painter.circle_stroke(centre, 3.5, Stroke::new(1.0, ink));
        }
    }
}
