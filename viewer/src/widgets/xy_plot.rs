//! A plot that is not over time: a distribution, one number of requests against another, a curve.
//!
//! It draws a finished [`Picture`] whose `across` says what lies across, has a view of its own
//! ([`XyView`], kept by id in the choices), and can show itself as a table. The wheel zooms both
//! ways, a drag moves, a double click shows everything; with the keyboard the same by arrows, plus,
//! minus, F, comma and full stop. Every line's value at the pointer stands in the legend.

use eframe::egui::{
    self, Align, CursorIcon, Layout, Pos2, Rangef, Response, RichText, Spinner, Stroke, Ui, Vec2,
    vec2,
};
use egui_plot::{AxisHints, Plot, PlotTransform};

use super::clip;
use super::rule::{self, Rule};
use super::time_plot::{self, Controls};
use super::{axis, canvas, copy, legend, time_scale};
use crate::keys;
use crate::series::axes::{Across, Axis, AxisScale};
use crate::series::picture::Picture;
use crate::state::Choices;
use crate::theme::{GRID, Palette, Type};
use crate::xy_view::{Bounds, Sight, XyView};

/// A plot to be drawn.
pub struct XyPlot<'a> {
    /// Identity, also of its table twin and its view.
    pub id: &'static str,
    /// Its title.
    pub title: &'a str,
    /// Height of the plot with its axes, without its heading.
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

/// What a plot needs above it: a line of controls, the legend, and the gaps below them.
pub const HEADING: f32 = HEADING_LINE + GRID + LEGEND_LINE + GRID;
const HEADING_LINE: f32 = 26.0;
const LEGEND_LINE: f32 = 18.0;
/// How close to the edges a labelled grid line may stand (points).
const EDGE: f64 = 14.0;
/// How much the plus key zooms.
const KEY_ZOOM: f64 = 1.5;
/// How far an arrow key moves, as a share of what is shown.
const KEY_PAN: f64 = 0.1;
/// How far a full stop moves the cursor; with Shift ten times as far.
const KEY_CURSOR: f64 = 0.005;

impl XyPlot<'_> {
    /// Draws it. Gives the request whose mark was clicked.
    pub fn show(mut self, ui: &mut Ui, choices: &mut Choices) -> Option<u32> {
        let mut view = choices.plots.remove(self.id).unwrap_or_default();
        let shown = ui.push_id(self.id, |ui| {
            ui.spacing_mut().item_spacing.y = GRID;
            self.heading_ui(ui, choices);
            let is_table = choices.is_table(self.id);
            self.legend_ui(ui, is_table, view.cursor);
            match self.picture {
                None => canvas::waiting_ui(ui, self.height),
                Some(picture) if is_table => {
                    canvas::table_ui(ui, self.title, self.height, picture);
                }
                Some(picture) => return self.plot_ui(ui, picture, &mut view),
            }
            None
        });
        choices.plots.insert(self.id, view);
        shown.inner
    }

    fn heading_ui(&mut self, ui: &mut Ui, choices: &mut Choices) {
        let width = ui.available_width();
        let layout = Layout::left_to_right(Align::Center);
        ui.allocate_ui_with_layout(vec2(width, HEADING_LINE), layout, |ui| {
            ui.label(RichText::new(self.title).font(Type::Title.font()));
            if let Some(picture) = self.picture
                && !picture.axis.unit().is_empty()
            {
                let unit = RichText::new(picture.axis.unit()).font(Type::Small.font());
                ui.label(unit.color(Palette::of(ui).weak));
            }
            if let Some(controls) = &mut self.controls {
                controls(ui, choices);
            }
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                time_plot::table_button_ui(ui, self.id, self.title, choices);
                if let Some(picture) = self.picture.filter(|_| choices.is_table(self.id)) {
                    copy::button_ui(ui, self.title, &picture.table);
                }
                if self.picture.is_some() && !self.fresh {
                    ui.add(Spinner::new().size(14.0)).on_hover_text("Working…");
                }
            });
        });
    }

    fn legend_ui(&self, ui: &mut Ui, is_table: bool, cursor: Option<f64>) {
        let size = vec2(ui.available_width(), LEGEND_LINE);
        ui.allocate_ui_with_layout(size, Layout::left_to_right(Align::Center), |ui| {
            ui.set_min_size(size);
            match self.picture {
                Some(picture) if is_table => legend::note_ui(ui, picture),
                Some(picture) => legend::show_across(ui, picture, cursor),
                None => {}
            }
        });
    }

    fn plot_ui(&mut self, ui: &mut Ui, picture: &Picture, view: &mut XyView) -> Option<u32> {
        let palette = Palette::of(ui);
        let sight = Sight { whole: whole(picture), axes: picture.axes() };
        let bounds = view.shown(&sight);
        let texture = canvas::density_texture(ui, self.id, picture);
        let plot = canvas::base_plot(self.id, self.height, palette);
        let plot = match picture.across {
            Across::Value(axis) => with_value_axis(plot, axis, palette),
            Across::Time => plot,
        };
        let plot = canvas::with_height_axis(plot, picture.axis, palette);
        let shown = plot.show(ui, |plot| {
            let sight = clip::Sight { xs: bounds.xs, ys: bounds.ys };
            canvas::draw(plot, picture, sight, palette, texture.as_ref());
        });
        let response = shown.response;
        let frame = *shown.transform.frame();
        let edge = Stroke::new(1.0, palette.edge);
        ui.painter().rect_stroke(frame, 0.0, edge, egui::StrokeKind::Inside);
        if let Some(reason) = &picture.empty {
            canvas::reason_ui(ui, frame, reason);
        }
        if let Some(cursor) = view.cursor.filter(|_| !picture.lines.is_empty()) {
            let x = shown.transform.position_from_point_x(cursor);
            ui.painter().with_clip_rect(frame).vline(
                x,
                frame.y_range(),
                Stroke::new(1.0, palette.cursor),
            );
        }
        rule::show(ui, self.title, &shown.transform, picture.axes(), self.rules);
        let label = format!("{} plot. {}", self.title, picture.summary);
        response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, label.clone()));
        let request = self.hover_ui(ui, &response, &shown.transform, picture);
        interact(ui, &response, &shown.transform, &sight, view);
        request.filter(|_| response.clicked())
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

/// All there is to see; something sensible where a picture has no bounds.
fn whole(picture: &Picture) -> Bounds {
    let sound = |(low, high): (f64, f64)| {
        let is_sound = low.is_finite() && high.is_finite() && low < high;
        if is_sound { (low, high) } else { (0.0, 1.0) }
    };
    Bounds { xs: sound(picture.reach), ys: sound(picture.bounds) }
}

fn with_value_axis<'a>(plot: Plot<'a>, of: Axis, palette: &Palette) -> Plot<'a> {
    let title = RichText::new(of.title()).font(Type::Small.font()).color(palette.weak);
    let hints = AxisHints::new_x()
        .label(title)
        .formatter(move |mark, _range| of.mark(mark.value, mark.step_size))
        .label_spacing(Rangef::new(1.0, 2.0))
        .tick_label_color(palette.weak)
        .tick_label_font(Type::Small.font());
    plot.custom_x_axes(vec![hints]).x_grid_spacer(move |input| {
        let per_point = input.base_step_size;
        let mut marks = axis::value_marks(of, input.bounds, per_point, axis::VALUE_LABEL);
        let (first, last) = input.bounds;
        // A label at the very right would stick out of its card, one at the very left would lie
        // over the lowest of the heights; no height stands as low as the first percentile.
        let left = if of.scale == AxisScale::Percentile { 0.0 } else { 2.0 * EDGE };
        marks.retain(|mark| {
            last - mark.value >= EDGE * per_point && mark.value - first >= left * per_point
        });
        marks
    })
}

/// What pointer and keyboard want.
fn interact(
    ui: &Ui,
    response: &Response,
    transform: &PlotTransform,
    sight: &Sight,
    view: &mut XyView,
) {
    let frame = *transform.frame();
    if let Some(pointer) = response.hover_pos() {
        view.cursor = Some(transform.value_from_position(pointer).x);
        wheel(ui, transform, pointer, sight, view);
    } else if ui.input(|input| input.pointer.delta() != Vec2::ZERO) {
        // A cursor that keys move stays, as the pointer does not move then.
        view.cursor = None;
    }
    if response.dragged() {
        let moved = response.drag_delta() / frame.size().max(Vec2::splat(1.0));
        view.pan(sight, -f64::from(moved.x), f64::from(moved.y));
        ui.ctx().set_cursor_icon(CursorIcon::Grabbing);
    }
    if response.double_clicked() {
        view.fit();
    }
    if response.has_focus() {
        time_scale::keep_arrows(ui, response, frame);
        press(ui, response, sight, view);
    }
}

fn wheel(ui: &Ui, transform: &PlotTransform, pointer: Pos2, sight: &Sight, view: &mut XyView) {
    let (scroll, pinch) = ui.input(|input| (input.smooth_scroll_delta, input.zoom_delta()));
    let mut factor = f64::from(pinch);
    if scroll.y != 0.0 {
        factor *= f64::from(scroll.y / time_scale::WHEEL_DOUBLING).exp2();
    }
    if factor != 1.0 {
        let around = transform.value_from_position(pointer);
        view.zoom(sight, factor, (around.x, around.y));
    }
    if scroll.x != 0.0 {
        view.pan(sight, -f64::from(scroll.x / transform.frame().width().max(1.0)), 0.0);
    }
    if scroll != Vec2::ZERO {
        // The page under the plot must not scroll as well.
        ui.input_mut(|input| input.smooth_scroll_delta = Vec2::ZERO);
    }
}

/// Keys of a plot that has the keyboard.
fn press(ui: &Ui, response: &Response, sight: &Sight, view: &mut XyView) {
    for place in keys::XY_PLOT.take(ui.ctx(), response.id, |_| true) {
        let zoom = match place {
            0 => return view.pan(sight, -KEY_PAN, 0.0),
            1 => return view.pan(sight, KEY_PAN, 0.0),
            2 => return view.pan(sight, 0.0, KEY_PAN),
            3 => return view.pan(sight, 0.0, -KEY_PAN),
            4..7 => KEY_ZOOM,
            7 => 1.0 / KEY_ZOOM,
            8 | 9 => return view.fit(),
            10 => return view.step_cursor(sight, -KEY_CURSOR),
            11 => return view.step_cursor(sight, KEY_CURSOR),
            12 => return view.step_cursor(sight, -10.0 * KEY_CURSOR),
            _ => return view.step_cursor(sight, 10.0 * KEY_CURSOR),
        };
        let Bounds { xs, ys } = view.shown(sight);
        let x = view.cursor.unwrap_or_else(|| f64::midpoint(xs.0, xs.1));
        view.zoom(sight, zoom, (x, f64::midpoint(ys.0, ys.1)));
    }
}
