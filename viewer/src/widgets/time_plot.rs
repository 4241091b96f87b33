//! A plot over the run's time, sharing its range, view and cursor with every other one.
//!
//! It draws a finished [`Picture`] (or says that it is being made, or why there is none), turns
//! drags, wheels and clicks into [`Choices`], and can show itself as a table. The horizontal bounds
//! come from the choices alone, so all time plots of a panel always show the same stretch; egui's
//! own dragging and zooming is switched off. It computes nothing about the run.

use eframe::egui::{
    self, Align, Align2, CursorIcon, EventFilter, Layout, PointerButton, Pos2, Rangef, Rect,
    Response, RichText, Spinner, Stroke, Ui, Vec2, pos2, vec2,
};
use egui_plot::{AxisHints, PlotTransform};
use onbeat_shared::units::RunNanos;

use super::rule::{self, Rule};
use super::{axis, canvas, legend};
use crate::series::picture::{Picture, instant_at, seconds};
use crate::state::{Choices, Stroke as BrushStroke};
use crate::theme::{self, GRID, Palette, Type};

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
/// Wheel points that double the zoom.
pub(super) const WHEEL_DOUBLING: f32 = 240.0;

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
            .custom_x_axes(vec![time_axis(to, palette)])
            .x_grid_spacer(|input| {
                axis::time_marks(input.bounds.0, input.bounds.1, input.base_step_size)
            });
        let plot = canvas::with_height_axis(plot, picture.axis, palette);
        let shown = plot.show(ui, |plot| {
            plot.set_plot_bounds_x(from..=to);
            plot.set_plot_bounds_y(picture.bounds.0..=picture.bounds.1);
            canvas::draw(plot, picture, palette, texture.as_ref());
        });
        let response = shown.response;
        let frame = *shown.transform.frame();
        ui.painter().rect_stroke(
            frame,
            0.0,
            Stroke::new(1.0, palette.edge),
            egui::StrokeKind::Inside,
        );
        overlay_ui(ui, &shown.transform, choices, palette);
        if let Some(reason) = &picture.empty {
            let font = Type::Body.font();
            ui.painter().text(frame.center(), Align2::CENTER_CENTER, reason, font, palette.weak);
        }
        rule::show(ui, self.title, &shown.transform, picture.axes(), self.rules);
        self.describe_to_reader(&response, picture);
        let request = self.hover_ui(ui, &response, &shown.transform, picture);
        interact(ui, &response, &shown.transform, choices);
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
        let describe = self.describe?;
        let pointer = response.hover_pos().filter(|_| !response.dragged())?;
        let (request, at) = canvas::request_at(&picture.marks, transform, pointer)?;
        ui.painter().circle_stroke(at, 5.0, Stroke::new(1.5, Palette::of(ui).text));
        response.clone().on_hover_ui_at_pointer(|ui| {
            ui.label(describe(request));
        });
        Some(request)
    }
}

/// The button that shows a plot as its table.
pub(super) fn table_button_ui(ui: &mut Ui, id: &'static str, title: &str, choices: &mut Choices) {
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

fn time_axis<'a>(end: f64, palette: &Palette) -> AxisHints<'a> {
    AxisHints::new_x()
        .formatter(move |mark, _range| axis::time_label(mark.value, mark.step_size, end))
        .label_spacing(Rangef::new(1.0, 2.0))
        .tick_label_color(palette.weak)
        .tick_label_font(Type::Small.font())
}

/// The chosen range, the stroke being drawn and the cursor, over the plot.
fn overlay_ui(ui: &Ui, transform: &PlotTransform, choices: &Choices, palette: &Palette) {
    let frame = *transform.frame();
    let painter = ui.painter().with_clip_rect(frame.intersect(ui.clip_rect()));
    let place = |time| transform.position_from_point_x(seconds(time)).clamp(-1e6, 1e6);
    if let Some(range) = choices.range() {
        let (left, right) = (place(range.start), place(range.end));
        let sides = [
            Rect::from_x_y_ranges(frame.left()..=left, frame.y_range()),
            Rect::from_x_y_ranges(right..=frame.right(), frame.y_range()),
        ];
        for side in sides.into_iter().filter(|side| side.width() > 0.0) {
            painter.rect_filled(side, 0.0, palette.veil);
        }
        for edge in [left, right] {
            painter.vline(edge, frame.y_range(), Stroke::new(1.0, palette.accent));
        }
    }
    if let Some(stroke) = choices.stroke {
        let (a, b) = (place(stroke.from), place(stroke.to));
        let rect = Rect::from_x_y_ranges(a.min(b)..=a.max(b), frame.y_range());
        painter.rect_filled(rect, 0.0, theme::faded(palette.accent, 0.18));
        painter.vline(a, frame.y_range(), Stroke::new(1.0, palette.accent));
        painter.vline(b, frame.y_range(), Stroke::new(1.0, palette.accent));
    } else if let Some(cursor) = choices.cursor {
        painter.vline(place(cursor), frame.y_range(), Stroke::new(1.0, palette.cursor));
    }
}

/// What the pointer wants.
fn interact(ui: &Ui, response: &Response, transform: &PlotTransform, choices: &mut Choices) {
    let frame = *transform.frame();
    let time_at = |at: Pos2| {
        let inside = at.x.clamp(frame.left(), frame.right());
        instant_at(transform.value_from_position(pos2(inside, at.y)).x)
    };
    if let Some(pointer) = response.hover_pos() {
        choices.cursor = Some(time_at(pointer));
        choices.pointed = true;
        wheel(ui, transform, pointer, choices);
    }
    let panning = response.dragged_by(PointerButton::Middle)
        || (response.dragged_by(PointerButton::Primary) && ui.input(|input| input.modifiers.shift));
    if panning && choices.stroke.is_none() {
        let per_point = choices.view().span() as f64 / f64::from(frame.width().max(1.0));
        let seconds = -f64::from(response.drag_delta().x) * per_point * 1e-9;
        choices.pan_by(instant_at(seconds).0);
        ui.ctx().set_cursor_icon(CursorIcon::Grabbing);
    } else if response.dragged_by(PointerButton::Primary) {
        brush(ui, response, time_at, choices);
    }
    if response.drag_stopped() {
        choices.finish_stroke();
    }
    if response.double_clicked() {
        choices.fit();
    }
    if response.has_focus() {
        keep_arrows(ui, response, frame);
    }
}

/// A stroke begins with its drag and follows it. Esc drops it, and then it stays dropped until the
/// next press.
fn brush(ui: &Ui, response: &Response, time_at: impl Fn(Pos2) -> RunNanos, choices: &mut Choices) {
    let (origin, now) =
        ui.input(|input| (input.pointer.press_origin(), input.pointer.interact_pos()));
    if let (Some(origin), Some(now)) = (origin, now)
        && (response.drag_started() || choices.stroke.is_some())
    {
        choices.stroke = Some(BrushStroke { from: time_at(origin), to: time_at(now) });
    }
    ui.ctx().set_cursor_icon(CursorIcon::ResizeHorizontal);
}

fn wheel(ui: &Ui, transform: &PlotTransform, pointer: Pos2, choices: &mut Choices) {
    let (scroll, pinch) = ui.input(|input| (input.smooth_scroll_delta, input.zoom_delta()));
    let mut factor = f64::from(pinch);
    if scroll.y != 0.0 {
        factor *= f64::from(scroll.y / WHEEL_DOUBLING).exp2();
    }
    if factor != 1.0 {
        let around = instant_at(transform.value_from_position(pointer).x);
        choices.zoom(factor, around);
    }
    if scroll.x != 0.0 {
        choices.pan(-f64::from(scroll.x / transform.frame().width().max(1.0)));
    }
    if scroll != Vec2::ZERO {
        // The page under the plot must not scroll as well.
        ui.input_mut(|input| input.smooth_scroll_delta = Vec2::ZERO);
    }
}

/// A focused plot takes the arrow keys for panning and zooming, and shows that it is focused.
pub(super) fn keep_arrows(ui: &Ui, response: &Response, frame: Rect) {
    let filter =
        EventFilter { horizontal_arrows: true, vertical_arrows: true, ..EventFilter::default() };
    ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, filter));
    let stroke = Stroke::new(2.0, Palette::of(ui).accent);
    ui.painter().rect_stroke(frame, 0.0, stroke, egui::StrokeKind::Outside);
}
