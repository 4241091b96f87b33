//! Lines right across a plot: a percentile, a goal, a capacity.
//!
//! Each has a name and a value in the axis' own values (nanoseconds, tokens, a share), not in
//! places of the plot. One that can be moved follows the pointer and, when it has the keyboard, the
//! arrow keys; it is a slider for screen readers. Where it comes to rest is a round value. What a
//! moved line means is its owner's business: [`Rule::moved`] says that its value is new.

use eframe::egui::{
    self, Align2, CursorIcon, EventFilter, Painter, Pos2, Rect, Response, Sense, Stroke, Ui,
    accesskit::Action, pos2, vec2,
};
use egui_plot::PlotTransform;

use crate::keys;
use crate::series::axes::{Axes, Direction, decimal_step};
use crate::theme::{self, GRID, Palette, Type};

/// A line right across a plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Its name, also its identity among the lines of its plot.
    pub name: String,
    /// Which way it runs.
    pub direction: Direction,
    /// Where, as a value of the axis it crosses (an instant in nanoseconds).
    pub value: f64,
    /// Place in [`Palette::data`].
    pub colour: usize,
    /// Drawn broken.
    pub dashed: bool,
    /// Its name stands at the end nearer to the plot's origin, left or below, where what rises to
    /// the right leaves room.
    pub named_at_origin: bool,
    /// Whether the user may move it.
    pub draggable: bool,
    /// Whether the user moved it in this frame; set by the plot.
    pub moved: bool,
}

impl Rule {
    /// A line from left to right at a height.
    #[must_use]
    pub fn horizontal(name: impl Into<String>, value: f64, colour: usize) -> Self {
        Self::of(Direction::Horizontal, name.into(), value, colour)
    }

    /// A line up and down at a value across.
    #[must_use]
    pub fn vertical(name: impl Into<String>, value: f64, colour: usize) -> Self {
        Self::of(Direction::Vertical, name.into(), value, colour)
    }

    const fn of(direction: Direction, name: String, value: f64, colour: usize) -> Self {
        Self {
            name,
            direction,
            value,
            colour,
            dashed: false,
            named_at_origin: false,
            draggable: false,
            moved: false,
        }
    }

    /// It as a broken line.
    #[must_use]
    pub const fn dashed(mut self) -> Self {
        self.dashed = true;
        self
    }

    /// It with its name at its left or lower end.
    #[must_use]
    pub const fn named_at_origin(mut self) -> Self {
        self.named_at_origin = true;
        self
    }

    /// It as one that the user may move.
    #[must_use]
    pub const fn draggable(mut self) -> Self {
        self.draggable = true;
        self
    }
}

/// How close the pointer must come to take hold of a line (points).
const REACH: f32 = 5.0;
/// Steps of an arrow key across a plot; with Shift they are ten times as long.
const KEY_STEPS: f64 = 200.0;
const LONG_STEPS: usize = 10;
/// Size of the grip of a line that can be moved.
const GRIP: egui::Vec2 = vec2(9.0, 14.0);
/// Size of the patch of a line's colour before its name.
const SWATCH: egui::Vec2 = vec2(3.0, 10.0);
/// Height of one row of names at the top of a plot.
const ROW: f32 = 16.0;
/// Rows of names that are tried.
const ROWS: u8 = 4;

/// Draws the lines over a plot and moves those that the user takes hold of.
pub fn show(ui: &mut Ui, plot: &str, transform: &PlotTransform, axes: Axes, rules: &mut [Rule]) {
    let mut names = Vec::new();
    for rule in rules {
        rule.moved = false;
        let line = Placed { transform, axes, direction: rule.direction };
        let Some(at) = line.on_screen(rule.value) else { continue };
        let shown = line.within_frame(at);
        // A goal beyond the edge stays at the edge, so that it can be fetched back.
        if shown != at && !rule.draggable {
            continue;
        }
        let response = rule.draggable.then(|| line.interact(ui, plot, rule, shown));
        line.draw(ui, rule, shown, response.as_ref());
        names.push((line, &*rule, shown));
    }
    // Names stand over all lines.
    let mut taken: Vec<Rect> = Vec::new();
    let painter = ui.painter().with_clip_rect(transform.frame().intersect(ui.clip_rect()));
    for (line, rule, at) in names {
        line.name(&painter, Palette::of(ui), rule, at, &mut taken);
    }
}

/// Where the lines of one direction lie in a plot on the screen.
#[derive(Clone, Copy)]
struct Placed<'a> {
    transform: &'a PlotTransform,
    axes: Axes,
    direction: Direction,
}

impl Placed<'_> {
    fn frame(&self) -> Rect {
        *self.transform.frame()
    }

    /// Where a value stands on the screen, along the axis that the line crosses.
    fn on_screen(&self, value: f64) -> Option<f32> {
        let place = self.axes.place(self.direction, value)?;
        let at = match self.direction {
            Direction::Horizontal => self.transform.position_from_point_y(place),
            Direction::Vertical => self.transform.position_from_point_x(place),
        };
        at.is_finite().then_some(at)
    }

    fn within_frame(&self, at: f32) -> f32 {
        let frame = self.frame();
        let range = match self.direction {
            Direction::Horizontal => frame.y_range(),
            Direction::Vertical => frame.x_range(),
        };
        at.clamp(range.min, range.max)
    }

    /// The place on the axis of a position on the screen.
    fn place_at(&self, pointer: Pos2) -> f64 {
        let frame = self.frame();
        let inside = pos2(
            pointer.x.clamp(frame.left(), frame.right()),
            pointer.y.clamp(frame.top(), frame.bottom()),
        );
        let point = self.transform.value_from_position(inside);
        match self.direction {
            Direction::Horizontal => point.y,
            Direction::Vertical => point.x,
        }
    }

    /// Places that one point of the screen and the whole frame stand for.
    fn scale(&self) -> (f64, f64) {
        let bounds = self.transform.bounds();
        let (span, points) = match self.direction {
            Direction::Horizontal => (bounds.height(), self.frame().height()),
            Direction::Vertical => (bounds.width(), self.frame().width()),
        };
        (span / f64::from(points.max(1.0)), span)
    }

    /// A round value near a place, where a step of `fine` places must make a difference.
    fn round(&self, place: f64, fine: f64) -> Option<f64> {
        let step = self.round_step(place, fine);
        let value = (self.axes.value(self.direction, place) / step).round() * step;
        self.axes.place(self.direction, value).map(|_| value)
    }

    fn round_step(&self, place: f64, fine: f64) -> f64 {
        let value = |place| self.axes.value(self.direction, place);
        decimal_step((value(place + fine) - value(place)).abs())
    }

    /// The value this many steps of the arrow keys away; `None` beyond what the axis can hold.
    fn stepped(&self, value: f64, steps: f64) -> Option<f64> {
        let (_, span) = self.scale();
        let place = self.axes.place(self.direction, value)?;
        let step = self.round_step(place, span / KEY_STEPS);
        let value = ((value / step).round() + steps) * step;
        self.axes.place(self.direction, value).map(|_| value)
    }

    fn interact(&self, ui: &Ui, plot: &str, rule: &mut Rule, at: f32) -> Response {
        let frame = self.frame();
        let rect = match self.direction {
            Direction::Horizontal => {
                Rect::from_x_y_ranges(frame.x_range(), at - REACH..=at + REACH)
            }
            Direction::Vertical => Rect::from_x_y_ranges(at - REACH..=at + REACH, frame.y_range()),
        };
        let id = ui.scope_id().with(("rule", &rule.name));
        let response = ui.interact(rect, id, Sense::click_and_drag());
        let before = rule.value;
        if response.dragged()
            && let Some(pointer) = response.interact_pointer_pos()
            && let Some(value) = self.round(self.place_at(pointer), self.scale().0)
        {
            rule.value = value;
        }
        if response.clicked() || response.drag_stopped() {
            // The last step is best made with the arrow keys.
            response.request_focus();
        }
        let steps = asked_steps(ui, &response);
        if steps != 0.0
            && let Some(value) = self.stepped(rule.value, steps)
        {
            rule.value = value;
        }
        rule.moved = rule.value.to_bits() != before.to_bits();
        self.describe(ui, plot, rule, &response);
        response.on_hover_and_drag_cursor(match self.direction {
            Direction::Horizontal => CursorIcon::ResizeVertical,
            Direction::Vertical => CursorIcon::ResizeHorizontal,
        })
    }

    fn describe(&self, ui: &Ui, plot: &str, rule: &Rule, response: &Response) {
        let label = format!("{plot}: {}", rule.name);
        response.widget_info(|| egui::WidgetInfo::slider(true, rule.value, label.clone()));
        let words = self.axes.words(self.direction, rule.value);
        ui.ctx().accesskit_node_builder(response.id, |node| {
            node.set_value(words);
            node.add_action(Action::Increment);
            node.add_action(Action::Decrement);
        });
    }

    fn draw(&self, ui: &Ui, rule: &Rule, at: f32, response: Option<&Response>) {
        let palette = Palette::of(ui);
        let frame = self.frame();
        let painter = ui.painter().with_clip_rect(frame.expand(GRIP.x).intersect(ui.clip_rect()));
        let held = response.is_some_and(|found| found.hovered() || found.dragged());
        let colour = palette.data[rule.colour];
        let stroke = Stroke::new(if held { 2.5 } else { 1.5 }, colour);
        let ends = match self.direction {
            Direction::Horizontal => [pos2(frame.left(), at), pos2(frame.right(), at)],
            Direction::Vertical => [pos2(at, frame.bottom()), pos2(at, frame.top())],
        };
        if rule.dashed {
            painter.extend(egui::Shape::dashed_line(&ends, stroke, 1.5 * GRID, GRID));
        } else {
            painter.line_segment(ends, stroke);
        }
        if let Some(response) = response {
            self.grip(&painter, ends[0], colour);
            if response.has_focus() {
                let around = Rect::from_two_pos(ends[0], ends[1]).expand(REACH);
                let stroke = Stroke::new(2.0, palette.accent);
                painter.rect_stroke(around, 2.0, stroke, egui::StrokeKind::Inside);
            }
        }
    }

    /// A handle at the axis that shows which lines can be moved.
    fn grip(&self, painter: &Painter, end: Pos2, colour: egui::Color32) {
        let size = match self.direction {
            Direction::Horizontal => GRIP,
            Direction::Vertical => vec2(GRIP.y, GRIP.x),
        };
        painter.rect_filled(Rect::from_center_size(end, size), 3.0, colour);
    }

    /// Writes name and value beside the line, where no other line's name stands; nowhere if there
    /// is no such place.
    fn name(
        &self,
        painter: &Painter,
        palette: &Palette,
        rule: &Rule,
        at: f32,
        taken: &mut Vec<Rect>,
    ) {
        let words = self.axes.words(self.direction, rule.value);
        let text = format!("{} {words}", rule.name);
        let galley = painter.layout_no_wrap(text, Type::Small.font(), palette.text);
        let frame = self.frame();
        let size = galley.size() + vec2(3.0 * GRID + SWATCH.x, 0.0);
        let places = candidates(self.direction, rule.named_at_origin, frame, at, size);
        let free = places.into_iter().find(|rect| {
            frame.contains_rect(*rect) && !taken.iter().any(|other| other.intersects(*rect))
        });
        let Some(rect) = free else { return };
        painter.rect_filled(rect, 3.0, theme::faded(palette.card, 0.85));
        // Its colour says whose name it is where lines are close to each other.
        let left = Align2::LEFT_CENTER.pos_in_rect(&rect) + vec2(GRID, 0.0);
        let swatch = Rect::from_min_size(left - vec2(0.0, SWATCH.y / 2.0), SWATCH);
        painter.rect_filled(swatch, 1.0, palette.data[rule.colour]);
        let text = left + vec2(SWATCH.x + GRID, -galley.size().y / 2.0);
        painter.galley(text, galley, palette.text);
        taken.push(rect.expand(1.0));
    }
}

/// Where a line's name may stand, best first.
fn candidates(
    direction: Direction,
    at_origin: bool,
    frame: Rect,
    at: f32,
    size: egui::Vec2,
) -> Vec<Rect> {
    let gap = 3.0;
    let mut places = Vec::new();
    match direction {
        Direction::Vertical => {
            for row in 0..ROWS {
                let inwards = gap + f32::from(row) * ROW;
                let (left, right) = (at - gap - size.x, at + gap);
                // What rises to the right leaves room above on the left, below on the right.
                let (top, sides) = if at_origin {
                    (frame.bottom() - inwards - size.y, [right, left])
                } else {
                    (frame.top() + inwards, [left, right])
                };
                places.extend(sides.map(|x| pos2(x, top)));
            }
        }
        Direction::Horizontal => {
            for column in 0..ROWS {
                let inwards = gap + f32::from(column) * (size.x + gap);
                let x = if at_origin {
                    frame.left() + inwards
                } else {
                    frame.right() - inwards - gap - size.x
                };
                places.push(pos2(x, at - 1.0 - size.y));
                places.push(pos2(x, at + 1.0));
            }
        }
    }
    places.into_iter().map(|corner| Rect::from_min_size(corner, size)).collect()
}

/// How many steps keys and assistive technology ask for; above zero towards larger values.
fn asked_steps(ui: &Ui, response: &Response) -> f64 {
    let mut up = 0;
    let mut down = 0;
    ui.input(|input| {
        up += input.num_accesskit_action_requests(response.id, Action::Increment);
        down += input.num_accesskit_action_requests(response.id, Action::Decrement);
    });
    if response.has_focus() {
        let filter = EventFilter {
            horizontal_arrows: true,
            vertical_arrows: true,
            ..EventFilter::default()
        };
        ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, filter));
    }
    for place in keys::RULE.take(ui.ctx(), response.id, |_| true) {
        match place {
            0 | 1 => up += 1,
            2 | 3 => down += 1,
            4 | 5 => up += LONG_STEPS,
            _ => down += LONG_STEPS,
        }
    }
    up as f64 - down as f64
}

#[cfg(test)]
mod tests {
    use egui_plot::PlotBounds;

    use super::*;
    use crate::quantity::TimeUnit;
    use crate::series::axes::{Across, Axis, Unit};
    use crate::series::picture::HeightAxis;

    fn axes() -> Axes {
        let time = Unit::Time(TimeUnit::Millis);
        Axes {
            across: Across::Value(Axis::log("latency", time)),
            height: HeightAxis::Of(Axis::linear("share", Unit::Share)),
        }
    }

    fn transform() -> PlotTransform {
        let frame = Rect::from_min_size(pos2(50.0, 10.0), vec2(400.0, 200.0));
        PlotTransform::new(frame, PlotBounds::from_min_max([6.0, 0.0], [9.0, 100.0]), false)
    }

    #[test]
    fn a_dragged_line_comes_to_rest_at_a_round_value() {
        let transform = transform();
        let placed = Placed { transform: &transform, axes: axes(), direction: Direction::Vertical };
        // 500 ms is log10(5e8) = 8.699 on an axis from 6 to 9.
        let at = placed.on_screen(5e8).expect("a place");
        assert!((at - (50.0 + 400.0 * 2.699 / 3.0)).abs() < 0.1, "{at}");
        let place = placed.place_at(pos2(at + 0.3, 100.0));
        assert_eq!(placed.round(place, placed.scale().0), Some(5e8));
        let level =
            Placed { transform: &transform, axes: axes(), direction: Direction::Horizontal };
        let place = level.place_at(pos2(60.0, 31.2));
        let value = level.round(place, level.scale().0).expect("a value");
        assert!((value - 0.895).abs() < 1e-9 || (value - 0.89).abs() < 1e-9, "{value}");
        assert_eq!(level.place_at(pos2(0.0, -900.0)), 100.0, "held within the plot");
    }

    #[test]
    fn every_arrow_key_moves_and_there_is_a_way_back() {
        let transform = transform();
        let placed = Placed { transform: &transform, axes: axes(), direction: Direction::Vertical };
        for value in [1e6, 47e6, 5e8, 9.99e8] {
            let up = placed.stepped(value, 1.0).expect("up");
            let down = placed.stepped(value, -1.0).expect("down");
            assert!(down < value && value < up, "{down} < {value} < {up}");
            assert!(up / value < 1.2, "{up} after {value}");
        }
        // Below zero a logarithmic axis has no place to go.
        assert_eq!(placed.stepped(1e6, -1e9), None);
    }

    #[test]
    fn names_do_not_lie_over_each_other() {
        let frame = Rect::from_min_size(pos2(0.0, 0.0), vec2(400.0, 200.0));
        let mut taken: Vec<Rect> = Vec::new();
        for at in [200.0, 204.0, 210.0, 390.0] {
            let free = candidates(Direction::Vertical, false, frame, at, vec2(80.0, 14.0))
                .into_iter()
                .find(|rect| {
                    frame.contains_rect(*rect) && !taken.iter().any(|other| other.intersects(*rect))
                });
            taken.push(free.expect("there is room"));
        }
    }
}
