//! A plot over the run's time, sharing its range, view and cursor with every other one.
//!
//! It draws a finished [`Picture`] (or says that it is being made, or why there is none), turns
//! drags, wheels and clicks into [`Choices`], and can show itself as a table. The horizontal bounds
//! come from the choices alone, so all time plots of a panel always show the same stretch; egui's
//! own dragging and zooming is switched off. It computes nothing about the run.

use eframe::egui::{
    self, Align, Align2, CursorIcon, EventFilter, Layout, PointerButton, Pos2, Rangef, Rect,
    Response, RichText, Sense, Spinner, Stroke, TextureHandle, TextureOptions, Ui, UiBuilder, Vec2,
    pos2, vec2,
};
use egui_plot::{
    AxisHints, FilledArea, Line as PlotLine, LineStyle, MarkerShape, Plot, PlotImage, PlotPoint,
    PlotPoints, PlotTransform, PlotUi, Points,
};
use onbeat_shared::units::RunNanos;

use super::{axis, legend, table};
use crate::series::picture::{Density, HeightAxis, Line, Marks, Picture, instant_at, seconds};
use crate::state::{Choices, Stroke as BrushStroke};
use crate::theme::{self, AXIS_WIDTH, GRID, LINE_WIDTH, POINT_RADIUS, Palette, Type};

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
}

/// What a plot needs above it: one line of controls, and the gap below that.
pub const HEADING: f32 = HEADING_LINE + GRID;
const HEADING_LINE: f32 = 26.0;
/// How close the pointer must come to a request's mark (points).
const HOVER_RADIUS: f32 = 8.0;
/// Up to so many requests have larger marks.
const FEW_POINTS: usize = 1_000;
/// Wheel points that double the zoom.
const WHEEL_DOUBLING: f32 = 240.0;

impl TimePlot<'_> {
    /// Draws it.
    pub fn show(mut self, ui: &mut Ui, choices: &mut Choices) {
        ui.push_id(self.id, |ui| {
            ui.spacing_mut().item_spacing.y = GRID;
            self.heading_ui(ui, choices);
            let height = self.height;
            match self.picture {
                None => waiting_ui(ui, height),
                Some(picture) if choices.is_table(self.id) => self.table_ui(ui, picture),
                Some(picture) => {
                    self.plot_ui(ui, picture, choices);
                }
            }
        });
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
                self.table_button_ui(ui, choices);
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

    fn table_button_ui(&self, ui: &mut Ui, choices: &mut Choices) {
        let shown = choices.is_table(self.id);
        let palette = Palette::of(ui);
        let colour = if shown { palette.accent } else { palette.weak };
        let text = RichText::new("Table").font(Type::Small.font()).color(colour);
        let response = ui.add(egui::Button::selectable(shown, text));
        let title = self.title;
        response.widget_info(|| {
            let label = format!("{title}: show as table");
            egui::WidgetInfo::selected(egui::Role::CheckBox, true, shown, label)
        });
        if response.on_hover_text("Show these numbers as a table").clicked() {
            choices.toggle_table(self.id);
        }
    }

    fn table_ui(&self, ui: &mut Ui, picture: &Picture) {
        if let Some(reason) = &picture.empty {
            return empty_ui(ui, self.height, reason);
        }
        let columns: Vec<_> = picture
            .table
            .columns
            .iter()
            .enumerate()
            .map(|(place, heading)| match place {
                0 => table::Column::text(heading.name.clone(), 0.8),
                _ => table::Column::number(heading.name.clone()),
            })
            .collect();
        let cell = |row: usize, column: usize| picture.table.text(row, column);
        table::Table {
            name: self.title,
            columns: &columns,
            rows: picture.table.len(),
            cell: &cell,
            row_headings: true,
        }
        .show_scrolling(ui, self.height);
    }

    fn plot_ui(&self, ui: &mut Ui, picture: &Picture, choices: &mut Choices) {
        let palette = Palette::of(ui);
        let view = choices.view();
        let (from, to) = (seconds(view.start), seconds(view.end));
        let texture = density_texture(ui, self.id, picture);
        let height_axis = picture.axis;
        let plot = base_plot(self.id, self.height, palette)
            .custom_x_axes(vec![time_axis(to, palette)])
            .custom_y_axes(vec![height_axis_hints(height_axis, palette)])
            .x_grid_spacer(|input| {
                axis::time_marks(input.bounds.0, input.bounds.1, input.base_step_size)
            })
            .y_grid_spacer(move |input| {
                let (low, high) = input.bounds;
                match height_axis {
                    HeightAxis::LogTime => axis::decade_marks(low, high, input.base_step_size),
                    _ => axis::height_marks(low, high, input.base_step_size),
                }
            });
        let shown = plot.show(ui, |plot| {
            plot.set_plot_bounds_x(from..=to);
            plot.set_plot_bounds_y(picture.bounds.0..=picture.bounds.1);
            draw(plot, picture, palette, texture.as_ref());
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
        self.describe_to_reader(&response, picture);
        self.hover_ui(ui, &response, &shown.transform, picture);
        interact(ui, &response, &shown.transform, choices);
    }

    fn describe_to_reader(&self, response: &Response, picture: &Picture) {
        let label = format!("{} plot. {}", self.title, picture.summary);
        response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, label.clone()));
    }

    fn hover_ui(&self, ui: &Ui, response: &Response, transform: &PlotTransform, picture: &Picture) {
        let (Some(describe), Some(pointer)) = (self.describe, response.hover_pos()) else {
            return;
        };
        if response.dragged() {
            return;
        }
        let Marks::Points { points, requests } = &picture.marks else {
            return;
        };
        if let Some(place) = nearest(points, transform, pointer) {
            let palette = Palette::of(ui);
            let at = transform.position_from_point(&points[place]);
            ui.painter().circle_stroke(at, 5.0, Stroke::new(1.5, palette.text));
            let request = requests[place];
            response.clone().on_hover_ui_at_pointer(|ui| {
                ui.label(describe(request));
            });
        }
    }
}

/// The mark closest to the pointer, if one is close.
fn nearest(points: &[PlotPoint], transform: &PlotTransform, pointer: Pos2) -> Option<usize> {
    let reach = |offset: f32| transform.value_from_position(pos2(pointer.x + offset, pointer.y)).x;
    let from = points.partition_point(|point| point.x < reach(-HOVER_RADIUS));
    let to = points.partition_point(|point| point.x <= reach(HOVER_RADIUS));
    let distance =
        |place: usize| transform.position_from_point(&points[place]).distance_sq(pointer);
    (from..to)
        .min_by(|&a, &b| distance(a).total_cmp(&distance(b)))
        .filter(|&place| distance(place) <= HOVER_RADIUS * HOVER_RADIUS)
}

fn base_plot<'a>(id: &str, height: f32, palette: &Palette) -> Plot<'a> {
    Plot::new(id)
        .height(height)
        .allow_zoom(false)
        .allow_drag(false)
        .allow_scroll(false)
        .allow_boxed_zoom(false)
        .allow_axis_zoom_drag(false)
        .allow_double_click_reset(false)
        .show_x(false)
        .show_y(false)
        .show_background(false)
        .grid_spacing(Rangef::new(1.0, 2.0))
        .grid_color(palette.grid)
        .sense(Sense::click_and_drag())
}

fn time_axis<'a>(end: f64, palette: &Palette) -> AxisHints<'a> {
    AxisHints::new_x()
        .formatter(move |mark, _range| axis::time_label(mark.value, mark.step_size, end))
        .label_spacing(Rangef::new(1.0, 2.0))
        .tick_label_color(palette.weak)
        .tick_label_font(Type::Small.font())
}

fn height_axis_hints<'a>(height_axis: HeightAxis, palette: &Palette) -> AxisHints<'a> {
    AxisHints::new_y()
        .formatter(move |mark, _range| height_axis.label(mark.value))
        .label_spacing(Rangef::new(1.0, 2.0))
        .min_thickness(AXIS_WIDTH)
        .tick_label_color(palette.weak)
        .tick_label_font(Type::Small.font())
}

/// Puts the picture's parts into the plot, from back to front.
fn draw<'a>(
    plot: &mut PlotUi<'a>,
    picture: &'a Picture,
    palette: &Palette,
    texture: Option<&TextureHandle>,
) {
    if let (Marks::Density(density), Some(texture)) = (&picture.marks, texture) {
        plot.image(density_image(density, texture));
    }
    for band in &picture.bands {
        let colour = theme::faded(palette.data[band.colour], band.strength);
        plot.add(
            FilledArea::new(band.name, &band.xs, &band.low, &band.high)
                .fill_color(colour)
                .allow_hover(false),
        );
    }
    if let Marks::Points { points, .. } = &picture.marks {
        let colour = theme::faded(palette.data[theme::data_colour::GREY], 0.6);
        // A few marks may be large; many would hide each other.
        let radius = if points.len() <= FEW_POINTS { 1.5 * POINT_RADIUS } else { POINT_RADIUS };
        plot.points(
            Points::new("requests", PlotPoints::Borrowed(points))
                .radius(radius)
                .color(colour)
                .allow_hover(false),
        );
    }
    for line in &picture.lines {
        for segment in &line.segments {
            plot.line(styled(line, segment, palette));
        }
    }
    if !picture.crosses.is_empty() {
        plot.points(
            Points::new("failed", PlotPoints::Borrowed(&picture.crosses))
                .shape(MarkerShape::Cross)
                .radius(4.0)
                .color(palette.bad)
                .allow_hover(false),
        );
    }
}

fn styled<'a>(line: &Line, segment: &'a [PlotPoint], palette: &Palette) -> PlotLine<'a> {
    let colour = palette.data[line.colour];
    let styled = PlotLine::new(line.name, PlotPoints::Borrowed(segment))
        .color(colour)
        .width(LINE_WIDTH)
        // egui_plot would fold several points of one pixel column into a band, which swallows the
        // uprights of a staircase; these points are thinned already.
        .allow_band(false)
        .allow_hover(false);
    let styled = if line.filled { styled.fill(0.0).fill_alpha(0.10) } else { styled };
    if line.dashed { styled.style(LineStyle::dashed_dense()) } else { styled }
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
fn keep_arrows(ui: &Ui, response: &Response, frame: Rect) {
    let filter =
        EventFilter { horizontal_arrows: true, vertical_arrows: true, ..EventFilter::default() };
    ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, filter));
    let stroke = Stroke::new(2.0, Palette::of(ui).accent);
    ui.painter().rect_stroke(frame, 0.0, stroke, egui::StrokeKind::Outside);
}

fn waiting_ui(ui: &mut Ui, height: f32) {
    let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), height), Sense::hover());
    let mut inner = ui.new_child(
        UiBuilder::new()
            .max_rect(rect)
            .layout(Layout::centered_and_justified(egui::Direction::TopDown)),
    );
    inner.add(Spinner::new().size(22.0));
}

fn empty_ui(ui: &mut Ui, height: f32, reason: &str) {
    let palette = Palette::of(ui);
    let size = vec2(ui.available_width(), height);
    ui.allocate_ui_with_layout(
        size,
        Layout::centered_and_justified(egui::Direction::TopDown),
        |ui| {
            ui.label(RichText::new(reason).color(palette.weak));
        },
    );
}

/// The density picture as a texture, made anew only when the picture or the theme has changed.
fn density_texture(ui: &Ui, id: &str, picture: &Picture) -> Option<TextureHandle> {
    let Marks::Density(density) = &picture.marks else {
        return None;
    };
    let dark = ui.visuals().dark_mode;
    let key = (density.fingerprint, dark);
    let slot = ui.scope_id().with((id, "density"));
    let kept: Option<((u64, bool), TextureHandle)> = ui.data(|data| data.get_temp(slot));
    if let Some((kept_key, texture)) = kept
        && kept_key == key
    {
        return Some(texture);
    }
    let image = density.image(Palette::for_mode(dark));
    let texture = ui.ctx().load_texture(id, image, TextureOptions::NEAREST);
    ui.data_mut(|data| data.insert_temp(slot, (key, texture.clone())));
    Some(texture)
}

fn density_image(density: &Density, texture: &TextureHandle) -> PlotImage {
    let (left, right) = density.xs;
    let (low, high) = density.ys;
    #[expect(clippy::cast_possible_truncation, reason = "a size on screen needs no more than f32")]
    let size = vec2((right - left) as f32, (high - low) as f32);
    let centre = PlotPoint::new(f64::midpoint(left, right), f64::midpoint(low, high));
    PlotImage::new("requests", texture, centre, size).allow_hover(false)
}

impl Density {
    /// The grid as an image: darker where more requests are, by the logarithm of their number.
    #[must_use]
    pub fn image(&self, palette: &Palette) -> egui::ColorImage {
        let most = self.counts.iter().copied().max().unwrap_or(0).max(1);
        let share = |count: u32| (1.0 + f64::from(count)).log2() / (1.0 + f64::from(most)).log2();
        let pixels = self
            .counts
            .iter()
            .map(|&count| {
                #[expect(clippy::cast_possible_truncation, reason = "a share needs no more")]
                palette.density(if count == 0 { 0.0 } else { share(count) as f32 })
            })
            .collect();
        egui::ColorImage::new([self.columns, self.rows], pixels)
    }
}
