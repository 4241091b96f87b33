//! What every plot is drawn with: the bare plot, the parts of a picture, the mark under the
//! pointer, and what stands in a plot's place while there is nothing to draw.
//!
//! [`super::time_plot`] and [`super::xy_plot`] differ in what lies across and in what a drag means;
//! everything here is the same in both.

use eframe::egui::{
    self, Align2, Layout, Pos2, Rangef, Rect, RichText, Sense, Spinner, TextureHandle,
    TextureOptions, Ui, UiBuilder, pos2, vec2,
};
use egui_plot::{
    AxisHints, FilledArea, Line as PlotLine, LineStyle, MarkerShape, Plot, PlotImage, PlotPoint,
    PlotPoints, PlotTransform, PlotUi, Points,
};

use super::clip::{self, Sight};
use super::{axis, table};
use crate::series::picture::{
    Density, HeightAxis, Line, Look, MarkGroup, Marks, Picture, Shape, Sign,
};
use crate::theme::{self, AXIS_WIDTH, GRID, LINE_WIDTH, POINT_RADIUS, Palette, Type};

/// How close the pointer must come to a request's mark (points).
const HOVER_RADIUS: f32 = 8.0;
/// Up to so many requests have larger marks.
const FEW_POINTS: usize = 1_000;

/// The request whose mark is closest to the pointer, and where that is, if one is close.
pub fn request_at(marks: &Marks, transform: &PlotTransform, pointer: Pos2) -> Option<(u32, Pos2)> {
    let close = |points: &[PlotPoint], requests: &[u32]| {
        let place = nearest(points, transform, pointer)?;
        Some((requests[place], transform.position_from_point(&points[place])))
    };
    match marks {
        Marks::Points { points, requests } => close(points, requests),
        Marks::Groups(groups) => groups
            .iter()
            .filter_map(|group| close(&group.points, &group.requests))
            .min_by(|a, b| a.1.distance_sq(pointer).total_cmp(&b.1.distance_sq(pointer))),
        Marks::None | Marks::Density(_) => None,
    }
}

/// The table twin of a picture, or why there is none, in the plot's place.
pub fn table_ui(ui: &mut Ui, name: &str, height: f32, picture: &Picture) {
    if let Some(reason) = &picture.empty {
        return empty_ui(ui, height, reason);
    }
    let count = picture.table.columns.len();
    let columns: Vec<_> = picture
        .table
        .columns
        .iter()
        .enumerate()
        .map(|(place, heading)| match place {
            // In a wide table every column needs its width.
            0 if count > 5 => table::Column::text(heading.name.clone(), 1.0),
            0 => table::Column::text(heading.name.clone(), 0.8),
            _ => table::Column::number(heading.name.clone()),
        })
        .collect();
    let cell = |row: usize, column: usize| picture.table.text(row, column);
    table::Table {
        name,
        columns: &columns,
        rows: picture.table.len(),
        cell: &cell,
        row_headings: true,
    }
    .show_scrolling(ui, height);
}

/// The vertical axis: its labels, and where its grid lines stand.
pub fn with_height_axis<'a>(
    plot: Plot<'a>,
    height_axis: HeightAxis,
    palette: &Palette,
) -> Plot<'a> {
    plot.custom_y_axes(vec![height_axis_hints(height_axis, palette)]).y_grid_spacer(move |input| {
        let ((low, high), per_point) = (input.bounds, input.base_step_size);
        match height_axis {
            HeightAxis::LogTime => axis::decade_marks(low, high, per_point),
            HeightAxis::Of(of) => axis::value_marks(of, (low, high), per_point, axis::HEIGHT_LABEL),
            HeightAxis::Number { .. } | HeightAxis::Time(_) => {
                axis::height_marks(low, high, per_point)
            }
        }
    })
}

fn height_axis_hints<'a>(height_axis: HeightAxis, palette: &Palette) -> AxisHints<'a> {
    AxisHints::new_y()
        .formatter(move |mark, _range| height_axis.label(mark.value, mark.step_size))
        .label_spacing(Rangef::new(1.0, 2.0))
        .min_thickness(AXIS_WIDTH)
        .tick_label_color(palette.weak)
        .tick_label_font(Type::Small.font())
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

/// A plot without habits of its own.
pub fn base_plot<'a>(id: &str, height: f32, palette: &Palette) -> Plot<'a> {
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

/// Puts the picture's parts into the plot, from back to front.
pub fn draw<'a>(
    plot: &mut PlotUi<'a>,
    picture: &'a Picture,
    sight: Sight,
    palette: &Palette,
    texture: Option<&TextureHandle>,
) {
    plot.set_plot_bounds_x(sight.xs.0..=sight.xs.1);
    plot.set_plot_bounds_y(sight.ys.0..=sight.ys.1);
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
    if let Marks::Groups(groups) = &picture.marks {
        let few = groups.iter().map(|group| group.points.len()).sum::<usize>() <= FEW_POINTS;
        for group in groups {
            plot.points(marked(group, few, palette));
        }
    }
    for line in &picture.lines {
        for segment in &line.segments {
            match clip::cut(segment, sight, line.filled) {
                None => plot.line(styled(line, PlotPoints::Borrowed(segment), palette)),
                Some(pieces) => {
                    for piece in pieces {
                        plot.line(styled(line, PlotPoints::Owned(piece), palette));
                    }
                }
            }
        }
    }
    signs(plot, &picture.signs, palette);
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

/// Signs, one layer for each shape.
fn signs(plot: &mut PlotUi<'_>, signs: &[Sign], palette: &Palette) {
    for (shape, marker, radius, name) in [
        (Shape::Dot, MarkerShape::Circle, 3.0, "dots"),
        (Shape::Cross, MarkerShape::Cross, 4.5, "crosses"),
        (Shape::Up, MarkerShape::Up, 5.5, "triangles"),
    ] {
        let own: Vec<&Sign> = signs.iter().filter(|sign| sign.shape == shape).collect();
        let Some(first) = own.first() else { continue };
        let colour = palette.data[first.colour];
        let places = PlotPoints::Owned(own.iter().map(|sign| sign.at).collect());
        let points = Points::new(name, places).shape(marker).radius(radius);
        plot.points(points.color(colour).allow_hover(false));
    }
}

/// The sign closest to the pointer, if one is close.
pub fn sign_at<'a>(
    signs: &'a [Sign],
    transform: &PlotTransform,
    pointer: Pos2,
) -> Option<&'a Sign> {
    let distance = |sign: &Sign| transform.position_from_point(&sign.at).distance(pointer);
    let closest = signs.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
    (distance(closest) <= HOVER_RADIUS).then_some(closest)
}

fn styled<'a>(line: &Line, segment: PlotPoints<'a>, palette: &Palette) -> PlotLine<'a> {
    let colour = palette.data[line.colour];
    let styled = PlotLine::new(line.name, segment)
        .color(colour)
        .width(LINE_WIDTH)
        // egui_plot would fold several points of one pixel column into a band, which swallows the
        // uprights of a staircase; these points are thinned already.
        .allow_band(false)
        .allow_hover(false);
    let styled = if line.filled { styled.fill(0.0).fill_alpha(0.10) } else { styled };
    if line.dashed { styled.style(LineStyle::dashed_dense()) } else { styled }
}

/// Shape and colour of marks; what is unknown is hollow.
#[must_use]
pub fn shape_of(look: Look, palette: &Palette) -> (MarkerShape, egui::Color32, bool) {
    const SHAPES: [MarkerShape; 4] =
        [MarkerShape::Circle, MarkerShape::Square, MarkerShape::Diamond, MarkerShape::Up];
    match look {
        Look::Step(step) => {
            (SHAPES[step % SHAPES.len()], palette.steps[step % palette.steps.len()], true)
        }
        Look::Kind(colour) => (SHAPES[colour % SHAPES.len()], palette.data[colour], true),
        Look::Unknown => (MarkerShape::Circle, palette.data[theme::data_colour::GREY], false),
    }
}

fn marked<'a>(group: &'a MarkGroup, few: bool, palette: &Palette) -> Points<'a> {
    let (shape, colour, filled) = shape_of(group.look, palette);
    let radius = if few { 1.7 * POINT_RADIUS } else { 1.3 * POINT_RADIUS };
    Points::new(group.name, PlotPoints::Borrowed(&group.points))
        .shape(shape)
        .radius(radius)
        .filled(filled)
        .color(theme::faded(colour, 0.8))
        .allow_hover(false)
}

/// While a picture is being made.
pub fn waiting_ui(ui: &mut Ui, height: f32) {
    let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), height), Sense::hover());
    let mut inner = ui.new_child(
        UiBuilder::new()
            .max_rect(rect)
            .layout(Layout::centered_and_justified(egui::Direction::TopDown)),
    );
    inner.add(Spinner::new().size(22.0));
}

/// Why there is nothing, in the middle of a plot's frame.
pub fn reason_ui(ui: &Ui, frame: Rect, reason: &str) {
    let palette = Palette::of(ui);
    let painter = ui.painter().with_clip_rect(frame.intersect(ui.clip_rect()));
    let width = (frame.width() - 4.0 * GRID).max(4.0 * GRID);
    let words = painter.layout(reason.to_owned(), Type::Body.font(), palette.weak, width);
    let place = Align2::CENTER_CENTER.anchor_size(frame.center(), words.size());
    // Grid lines do not go through the words.
    painter.rect_filled(place.expand2(vec2(2.0 * GRID, GRID)), 3.0, palette.card);
    painter.galley(place.min, words, palette.weak);
}

/// Why there is nothing, in a plot's place.
pub fn empty_ui(ui: &mut Ui, height: f32, reason: &str) {
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
pub fn density_texture(ui: &Ui, id: &str, picture: &Picture) -> Option<TextureHandle> {
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
