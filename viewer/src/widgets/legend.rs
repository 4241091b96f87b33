//! The names of a plot's lines beside its title, with their values at the cursor.
//!
//! Over time it is drawn from right to left, so that it ends where the plot ends; elsewhere it has
//! a line of its own below the title. What finds no room is left out, the explanation of how the
//! picture was made first.

use std::sync::Arc;

use eframe::egui::{Align, Galley, Layout, RichText, Sense, Shape, Stroke, Ui, WidgetText, vec2};
use egui_plot::MarkerShape;

use super::canvas;
use crate::quantity;
use crate::series::axes::Across;
use crate::series::picture::{Line, Look, Marks, Picture};
use crate::state::Choices;
use crate::theme::{GRID, Palette, Type};

/// Width of a line's sign.
const SIGN: f32 = 14.0;
/// Width of a mark's sign.
const MARK: f32 = 8.0;
/// Gap before the next entry.
const GAP: f32 = 2.0 * GRID;

/// Draws the legend into a layout that runs from right to left.
pub fn show(ui: &mut Ui, picture: &Picture, choices: &Choices) {
    ui.spacing_mut().item_spacing.x = GRID;
    for line in picture.lines.iter().rev() {
        let text = match choices.cursor {
            None => line.name.to_owned(),
            Some(time) => {
                let value = line.readout.at(time).map(|value| picture.axis.words(value));
                format!("{} {}", line.name, value.as_deref().unwrap_or(quantity::NO_DATA))
            }
        };
        if small_ui(ui, &text, SIGN + GRID) {
            sign_ui(ui, line);
            ui.add_space(GAP);
        }
    }
    let text = match choices.cursor {
        Some(time) => {
            let at = quantity::instant(time.0 as f64, choices.view().span() as f64);
            format!("at {at}")
        }
        None => picture.note.clone(),
    };
    small_ui(ui, &text, GAP);
}

/// Writes small text if it fits, with so much room beside it. Says whether it did.
fn small_ui(ui: &mut Ui, text: &str, beside: f32) -> bool {
    let galley = small(ui, text);
    let fits = galley.size().x + beside <= ui.available_width();
    if fits {
        ui.label(galley);
    }
    fits
}

fn fits(ui: &Ui, text: &str, beside: f32) -> bool {
    small(ui, text).size().x + beside <= ui.available_width()
}

fn small(ui: &Ui, text: &str) -> Arc<Galley> {
    let colour = Palette::of(ui).weak;
    let text = WidgetText::from(RichText::new(text).font(Type::Small.font()).color(colour));
    text.into_galley(ui, None, f32::INFINITY, Type::Small.font())
}

fn sign_ui(ui: &mut Ui, line: &Line) {
    let stroke = Stroke::new(2.0, Palette::of(ui).data[line.colour]);
    let (rect, _) = ui.allocate_exact_size(vec2(SIGN, 12.0), Sense::hover());
    let (y, middle) = (rect.center().y, rect.center().x);
    if line.dashed {
        ui.painter().hline(rect.left()..=middle - 2.0, y, stroke);
        ui.painter().hline(middle + 2.0..=rect.right(), y, stroke);
    } else {
        ui.painter().hline(rect.x_range(), y, stroke);
    }
}

/// Draws the legend of a plot that is not over time into a layout that runs from left to right:
/// lines, groups of marks and, where room is left, how the picture was made.
pub fn show_across(ui: &mut Ui, picture: &Picture, cursor: Option<f64>) {
    ui.spacing_mut().item_spacing.x = GRID;
    let across = match picture.across {
        Across::Value(axis) => Some(axis),
        Across::Time => None,
    };
    if let (Some(place), Some(axis)) = (cursor, across) {
        small_ui(ui, &format!("at {}", axis.words(axis.value(place))), GAP);
        ui.add_space(GAP);
    }
    for line in &picture.lines {
        let text = match cursor {
            None => line.name.to_owned(),
            Some(place) => {
                let value = line.place_at(place).map(|y| picture.axis.words(picture.axis.value(y)));
                format!("{} {}", line.name, value.as_deref().unwrap_or(quantity::NO_DATA))
            }
        };
        if fits(ui, &text, SIGN + 2.0 * GRID) {
            sign_ui(ui, line);
            small_ui(ui, &text, 0.0);
            ui.add_space(GAP);
        }
    }
    if let Marks::Groups(groups) = &picture.marks {
        for group in groups {
            if fits(ui, group.name, SIGN + 2.0 * GRID) {
                mark_ui(ui, group.look);
                small_ui(ui, group.name, 0.0);
                ui.add_space(GAP);
            }
        }
    }
    if cursor.is_none() {
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| note_ui(ui, picture));
    }
}

/// Writes how a picture was made, if there is room.
pub fn note_ui(ui: &mut Ui, picture: &Picture) {
    small_ui(ui, &picture.note, 0.0);
}

/// The sign of a group of marks: one of them.
fn mark_ui(ui: &mut Ui, look: Look) {
    let (shape, colour, filled) = canvas::shape_of(look, Palette::of(ui));
    let (rect, _) = ui.allocate_exact_size(vec2(MARK, 12.0), Sense::hover());
    let (middle, radius) = (rect.center(), 3.5);
    let corners = |list: &[(f32, f32)]| {
        let points = list.iter().map(|&(x, y)| middle + radius * vec2(x, y)).collect();
        Shape::convex_polygon(points, colour, Stroke::NONE)
    };
    let painter = ui.painter();
    match shape {
        MarkerShape::Square => {
            painter.add(corners(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]));
        }
        MarkerShape::Diamond => {
            painter.add(corners(&[(0.0, -1.2), (1.2, 0.0), (0.0, 1.2), (-1.2, 0.0)]));
        }
        MarkerShape::Up => {
            painter.add(corners(&[(0.0, -1.1), (1.1, 0.8), (-1.1, 0.8)]));
        }
        _ if filled => {
            painter.circle_filled(middle, radius, colour);
        }
        _ => {
            painter.circle_stroke(middle, radius, Stroke::new(1.2, colour));
        }
    }
}
