//! A plot over the run's time, sharing its range, view and cursor with every other one.
//!
//! It draws a finished [`Picture`] (or says that it is being made, or why there is none), turns
//! drags, wheels and clicks into [`Choices`], and can show itself as a table. The horizontal bounds
//! come from the choices alone, so all time plots of a panel always show the same stretch; egui's
//! own dragging and zooming is switched off. It computes nothing about the run.

use eframe::egui::{self, Align, Layout, Response, RichText, Spinner, Stroke, Ui, vec2};
use egui_plot::{AxisHints, PlotTransform};

use super::clip::Sight;
use super::rule::{self, Rule};
use super::time_scale::{self, TimeScale};
use super::{axis, canvas, copy, legend};
use crate::series::picture::{Picture, seconds};
use crate::state::Choices;
use crate::theme::{GRID, Palette, Type};

/// Draws more controls into a plot's heading.
pub type Controls<'a> = &'a mut dyn FnMut(&mut Ui, &mut Choices);

/// A plot to be drawn.
pub struct TimePlot<'a> {
    /// Identity, also of its table twin.
    pub id: &'static str,
    /// Its title.
    pub title: &'a str,
    /// Height of the plot, without its heading.
    pub height: f32,
    /// What it shows, once it is there.
    pub picture: Option<&'a Picture>,
    /// Whether the picture is what was asked for, or an older one while that is being made.
    pub fresh: bool,
    /// What to say about the request under the pointer.
    pub describe: Option<&'a dyn Fn(u32) -> String>,
    /// More controls in the heading.
    pub controls: Option<Controls<'a>>,
    /// Lines across it, some of which the user may move.
    pub rules: &'a mut [Rule],
}

/// What a plot needs above it: one line of controls, and the gap below that.
pub const HEADING: f32 = HEADING_LINE + GRID;
const HEADING_LINE: f32 = 26.0;
/// Height of the labels of times.
const LABELS: f32 = 14.0;

impl TimePlot<'_> {
    /// Draws it. Gives the request whose mark was clicked.
    pub fn show(mut self, ui: &mut Ui, choices: &mut Choices) -> Option<u32> {
        let shown = ui.push_id(self.id, |ui| {
            ui.spacing_mut().item_spacing.y = GRID;
            self.heading_ui(ui, choices);
            let height = self.height;
            match self.picture {
                None => canvas::waiting_ui(ui, height),
                Some(picture) if choices.is_table(self.id) => {
                    canvas::table_ui(ui, self.title, height, picture);
                }
                Some(picture) => return self.plot_ui(ui, picture, choices),
            }
            None
        });
        shown.inner
    }

    fn heading_ui(&mut self, ui: &mut Ui, choices: &mut Choices) {
        let palette = Palette::of(ui);
        let width = ui.available_width();
        let layout = Layout::left_to_right(Align::Center);
        ui.allocate_ui_with_layout(vec2(width, HEADING_LINE), layout, |ui| {
            ui.label(RichText::new(self.title).font(Type::Title.font()));
            if let Some(picture) = self.picture
                && !picture.axis.unit().is_empty()
            {
                let unit = RichText::new(picture.axis.unit()).font(Type::Small.font());
                ui.label(unit.color(palette.weak));
            }
            if let Some(controls) = &mut self.controls {
                controls(ui, choices);
            }
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                table_button_ui(ui, self.id, self.title, choices);
                if let Some(picture) = self.picture.filter(|_| choices.is_table(self.id)) {
                    copy::button_ui(ui, self.title, &picture.table);
                }
                if self.picture.is_some() && !self.fresh {
                    ui.add(Spinner::new().size(14.0)).on_hover_text("Working…");
                }
                if let Some(picture) = self.picture
                    && !choices.is_table(self.id)
                {
                    ui.add_space(GRID);
                    legend::show(ui, picture, choices);
                }
            });
        });
    }

    fn plot_ui(&mut self, ui: &mut Ui, picture: &Picture, choices: &mut Choices) -> Option<u32> {
        let palette = Palette::of(ui);
        let view = choices.view();
        let (from, to) = (seconds(view.start), seconds(view.end));
        let texture = canvas::density_texture(ui, self.id, picture);
        let plot = canvas::base_plot(self.id, self.height, palette)
            .custom_x_axes(vec![time_axis()])
            .x_grid_spacer(|input| {
                axis::time_marks(input.bounds.0, input.bounds.1, input.base_step_size)
            });
        let plot = canvas::with_height_axis(plot, picture.axis, palette);
        let shown = plot.show(ui, |plot| {
            let sight = Sight { xs: (from, to), ys: picture.bounds };
            canvas::draw(plot, picture, sight, palette, texture.as_ref());
        });
        let response = shown.response;
        let frame = *shown.transform.frame();
        ui.painter().rect_stroke(
            frame,
            0.0,
            Stroke::new(1.0, palette.edge),
            egui::StrokeKind::Inside,
        );
        let scale = scale_of(&shown.transform);
        time_scale::labels_ui(ui, &scale, 0.0);
        time_scale::overlay_ui(ui, &scale, choices, palette);
        if let Some(reason) = &picture.empty {
            canvas::reason_ui(ui, frame, reason);
        }
        rule::show(ui, self.title, &shown.transform, picture.axes(), self.rules);
        self.describe_to_reader(&response, picture);
        let request = self.hover_ui(ui, &response, &shown.transform, picture);
        time_scale::interact(ui, &response, &scale, choices);
        request.filter(|_| response.clicked())
    }

    fn describe_to_reader(&self, response: &Response, picture: &Picture) {
        let label = format!("{} plot. {}", self.title, picture.summary);
        response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, label.clone()));
    }

    /// Says what is known of the request under the pointer, if there is one.
    fn hover_ui(
        &self,
        ui: &Ui,
        response: &Response,
        transform: &PlotTransform,
        picture: &Picture,
    ) -> Option<u32> {
        let pointer = response.hover_pos().filter(|_| !response.dragged())?;
        if let Some(sign) = canvas::sign_at(&picture.signs, transform, pointer) {
            response.clone().on_hover_ui_at_pointer(|ui| {
                ui.label(&sign.words);
            });
        }
        let describe = self.describe?;
        let (request, at) = canvas::request_at(&picture.marks, transform, pointer)?;
        ui.painter().circle_stroke(at, 5.0, Stroke::new(1.5, Palette::of(ui).text));
        response.clone().on_hover_ui_at_pointer(|ui| {
            ui.label(describe(request));
        });
        Some(request)
    }
}

/// The button that shows a plot as its table.
pub(crate) fn table_button_ui(ui: &mut Ui, id: &'static str, title: &str, choices: &mut Choices) {
    let shown = choices.is_table(id);
    let palette = Palette::of(ui);
    let colour = if shown { palette.accent } else { palette.weak };
    let text = RichText::new("Table").font(Type::Small.font()).color(colour);
    let response = ui.add(egui::Button::selectable(shown, text));
    response.widget_info(|| {
        let label = format!("{title}: show as table");
        egui::WidgetInfo::selected(egui::Role::CheckBox, true, shown, label)
    });
    if response.on_hover_text("Show these numbers as a table").clicked() {
        choices.toggle_table(id);
    }
}

/// Room for the labels of times, which are written by [`time_scale::labels_ui`].
fn time_axis<'a>() -> AxisHints<'a> {
    AxisHints::new_x().formatter(|_mark, _range| String::new()).min_thickness(LABELS)
}

/// Where times stand in a plot.
fn scale_of(transform: &PlotTransform) -> TimeScale {
    let bounds = transform.bounds();
    TimeScale::new(*transform.frame(), bounds.min()[0], bounds.max()[0])
}
