//! Draws lanes: strokes and boxes of finished answers, as one mesh, from back to front.
//!
//! Everything that is only filled goes into one mesh on whole pixels, so that thousands of bars
//! cost little and have sharp edges; only the few signs (crosses, triangles) are shapes of their
//! own.

use eframe::egui::{Color32, Mesh, Painter, Pos2, Rect, Shape, Stroke, pos2, vec2};
use onbeat_shared::{run::Left, units::RunNanos};

use super::hit::{Rows, row_rect};
use crate::fate::Fate;
use crate::series::timeline::bars::{Bar, Body, Kind, Lane, Shown, Strip};
use crate::series::timeline::shades::{PALEST, Shade};
use crate::theme::{self, Palette, data_colour};
use crate::widgets::time_scale::TimeScale;

/// Signs closer than this in one row are drawn once (points).
const SIGN_GAP: f32 = 5.0;
/// Half the size of a sign.
const SIGN: f32 = 3.0;

/// The colour of what can occur in a lane.
pub(super) const fn colour(palette: &Palette, kind: Kind) -> Color32 {
    match kind {
        Kind::Send => palette.data[data_colour::PURPLE],
        Kind::Prefill => palette.data[data_colour::ORANGE],
        Kind::Decode => palette.data[data_colour::BLUE],
        Kind::Tail => palette.data[data_colour::GREEN],
        Kind::Whole => palette.data[data_colour::GREY],
        Kind::Due => palette.text,
        Kind::Held => palette.warn,
        Kind::Failed => palette.bad,
        Kind::Cut | Kind::Open | Kind::Unsent => palette.weak,
        Kind::Completed => palette.good,
        Kind::Truncated => palette.warn,
        Kind::Stall => palette.data[data_colour::VERMILLION],
    }
}

/// The shading of a host stall.
pub(super) fn stall_colour(palette: &Palette) -> Color32 {
    theme::faded(colour(palette, Kind::Stall), 0.17)
}

/// A sheet that lanes are drawn on.
pub(super) struct Sheet<'a> {
    palette: &'a Palette,
    scale: TimeScale,
    rows: Rows,
    pixel: f32,
    mesh: Mesh,
    signs: Vec<Shape>,
}

impl<'a> Sheet<'a> {
    pub(super) fn new(
        palette: &'a Palette,
        scale: TimeScale,
        rows: Rows,
        pixels_per_point: f32,
    ) -> Self {
        let pixel = 1.0 / pixels_per_point.max(0.1);
        Self { palette, scale, rows, pixel, mesh: Mesh::default(), signs: Vec::new() }
    }

    /// Draws every lane in sight and puts all of it on the screen.
    pub(super) fn draw(mut self, painter: &Painter, shown: &Shown) {
        for (place, lane) in shown.rows.iter().enumerate() {
            let strip = self.rows.of_lane(shown.first + place);
            if strip.bottom() > self.rows.frame.top() && strip.top() < self.rows.frame.bottom() {
                if (shown.first + place) % 2 == 1 {
                    self.fill(strip, self.palette.stripe);
                }
                self.stalls(strip, lane, shown);
                self.user(strip, lane);
                match &lane.body {
                    Body::Bars { bars, rows } => self.bars(strip, bars, *rows),
                    Body::Strip(crowd) => self.crowd(strip, crowd),
                }
                self.unsent(strip, lane);
            }
        }
        painter.add(Shape::mesh(self.mesh));
        painter.extend(self.signs);
    }

    /// Fills a box, on whole pixels.
    fn fill(&mut self, rect: Rect, colour: Color32) {
        let snap = |at: f32| (at / self.pixel).round() * self.pixel;
        let from = pos2(snap(rect.left()), snap(rect.top()));
        let to = pos2(snap(rect.right()), snap(rect.bottom()));
        if to.x > from.x && to.y > from.y {
            self.mesh.add_colored_rect(Rect::from_min_max(from, to), colour);
        }
    }

    /// The part of a box between two instants that is in sight; at least a pixel wide.
    fn between(&self, strip: Rect, from: RunNanos, to: RunNanos) -> Option<Rect> {
        let frame = self.rows.frame;
        let (left, right) = (self.scale.x(from), self.scale.x(to));
        if right < frame.left() || left > frame.right() {
            return None;
        }
        let left = left.max(frame.left() - 1.0);
        let right = right.min(frame.right() + 1.0).max(left + self.pixel);
        Some(Rect::from_x_y_ranges(left..=right, strip.y_range()))
    }

    /// The same, but nothing where it would be narrower than half a pixel.
    fn visible(&self, strip: Rect, from: RunNanos, to: RunNanos) -> Option<Rect> {
        let is_seen = self.scale.x(to) - self.scale.x(from) >= 0.5 * self.pixel;
        is_seen.then(|| self.between(strip, from, to)).flatten()
    }

    fn stalls(&mut self, strip: Rect, lane: &Lane, shown: &Shown) {
        let shade = stall_colour(self.palette);
        for (core, spans) in &shown.stalls {
            if lane.core.is_some_and(|own| own != *core) {
                continue;
            }
            for &Shade { span, share } in spans {
                // A stall that is shorter than a pixel is as wide as one, and paler for it: a
                // hundred short ones are not to look like a host that was away all the time.
                let pixels = (self.scale.x(span.end) - self.scale.x(span.start)) / self.pixel;
                let strength = (share * pixels.min(1.0)).max(PALEST);
                if let Some(rect) = self.between(strip, span.start, span.end) {
                    self.fill(rect, theme::faded(shade, strength));
                }
            }
        }
    }

    /// The time of a lane's user: from its start to its end, and when it was held back.
    fn user(&mut self, strip: Rect, lane: &Lane) {
        let middle = strip.center().y;
        let line =
            |half: f32| Rect::from_x_y_ranges(strip.x_range(), middle - half..=middle + half);
        if let Some(life) = lane.life {
            let end = life.ended.map_or(RunNanos(i64::MAX), |(end, _)| end);
            if let Some(rect) = self.between(line(self.pixel / 2.0), life.started, end) {
                self.fill(rect, theme::faded(self.palette.weak, 0.55));
            }
            if let Some((end, left)) = life.ended {
                self.farewell(pos2(self.scale.x(end), middle), left);
            }
        }
        for wait in &lane.waits {
            if let Some(rect) = self.between(line(1.5), wait.from, wait.to) {
                self.fill(rect, colour(self.palette, Kind::Held));
            }
        }
    }

    /// How a user left.
    fn farewell(&mut self, at: Pos2, left: Left) {
        match left {
            Left::Completed => {
                self.signs.push(Shape::circle_filled(at, SIGN, self.palette.good));
            }
            Left::Truncated => {
                let half = vec2(0.0, 2.0 * SIGN);
                let stroke = Stroke::new(2.0, self.palette.warn);
                self.signs.push(Shape::line_segment([at - half, at + half], stroke));
            }
            Left::Stopped => {}
        }
    }

    fn bars(&mut self, strip: Rect, bars: &[Bar], rows: u8) {
        let mut last_sign = [f32::NEG_INFINITY; 16];
        // A turn that was due before the one before it had ended must not be drawn over that.
        for bar in bars {
            if let Some(due) = bar.due {
                self.due(row_rect(strip, bar.row, rows), due, bar.phases.sent);
            }
        }
        for bar in bars {
            let rect = row_rect(strip, bar.row, rows);
            self.phases(rect, bar);
            self.ticks(rect, bar);
            let own = &bar.phases;
            let end = own.end.map_or(self.rows.frame.right(), |end| self.scale.x(end));
            let near = &mut last_sign[usize::from(bar.row).min(15)];
            if bar.fate != Fate::Ok && end - *near >= SIGN_GAP {
                *near = end;
                self.ending(pos2(end, rect.center().y), bar.fate, rect.height());
            }
        }
    }

    /// A mark at the time a request was due, and a line until it left; nothing where both are one
    /// place on screen.
    fn due(&mut self, rect: Rect, due: RunNanos, sent: RunNanos) {
        let ink = colour(self.palette, Kind::Due);
        if (self.scale.x(sent) - self.scale.x(due)).abs() < 1.0 {
            return;
        }
        let middle = rect.center().y;
        let line = Rect::from_x_y_ranges(rect.x_range(), middle..=middle + self.pixel);
        if let Some(way) = self.visible(line, due, sent) {
            self.fill(way, theme::faded(ink, 0.55));
        }
        let tall = Rect::from_x_y_ranges(rect.x_range(), rect.top() - 2.0..=rect.bottom());
        if let Some(mark) = self.between(tall, due, due) {
            self.fill(mark, ink);
        }
    }

    fn phases(&mut self, rect: Rect, bar: &Bar) {
        let palette = self.palette;
        let own = &bar.phases;
        let end = own.end.unwrap_or(RunNanos(i64::MAX));
        let all = self.between(rect, own.connect.unwrap_or(own.sent), end);
        let Some(all) = all else { return };
        // Whatever is too short for a phase of its own shows the longest wait's colour.
        let body = if bar.is_whole() { Kind::Whole } else { Kind::Prefill };
        self.fill(all, colour(palette, body));
        let first = own.first_token.unwrap_or(end);
        let last = own.last_token.unwrap_or(end);
        let last = if own.end.is_none() && own.first_token.is_some() { end } else { last };
        let connect = own.connect.unwrap_or(own.sent);
        for (kind, from, to) in [
            (Kind::Send, connect, own.accepted),
            (Kind::Decode, first, last),
            (Kind::Tail, last, end),
        ] {
            if let Some(part) = self.visible(rect, from, to) {
                self.fill(part, colour(palette, kind));
            }
        }
        if bar.fate == Fate::Failed {
            self.outline(all, palette.bad);
        }
    }

    fn outline(&mut self, rect: Rect, ink: Color32) {
        let width = (1.0_f32).max(self.pixel);
        let (x, y) = (rect.x_range(), rect.y_range());
        for edge in [
            Rect::from_x_y_ranges(x, y.min..=y.min + width),
            Rect::from_x_y_ranges(x, y.max - width..=y.max),
            Rect::from_x_y_ranges(x.min..=x.min + width, y),
            Rect::from_x_y_ranges(x.max - width..=x.max, y),
        ] {
            self.fill(edge, ink);
        }
    }

    fn ticks(&mut self, rect: Rect, bar: &Bar) {
        let inner = rect.shrink2(vec2(0.0, rect.height() * 0.2));
        for &tick in &bar.ticks {
            if let Some(mark) = self.between(inner, RunNanos(tick), RunNanos(tick)) {
                self.fill(mark, self.palette.card);
            }
        }
    }

    /// The sign of a request that did not end with a complete answer.
    fn ending(&mut self, at: Pos2, fate: Fate, height: f32) {
        let frame = self.rows.frame;
        if at.x < frame.left() - SIGN || at.x > frame.right() + SIGN {
            return;
        }
        let weak = self.palette.weak;
        match fate {
            Fate::Failed => self.cross(at),
            Fate::Cut => {
                let half = (height / 2.0 + 1.0).max(SIGN);
                let bar = Rect::from_center_size(at, vec2(2.0, 2.0 * half));
                self.fill(bar, weak);
            }
            Fate::Open => {
                let at = pos2(at.x.min(frame.right() - 2.0 * SIGN), at.y);
                let tip = at + vec2(2.0 * SIGN, 0.0);
                let points = vec![at - vec2(0.0, SIGN), tip, at + vec2(0.0, SIGN)];
                self.signs.push(Shape::convex_polygon(points, weak, Stroke::NONE));
            }
            Fate::Ok | Fate::Unsent => {}
        }
    }

    /// A cross on a ground of its own, so that it is seen on bars too.
    fn cross(&mut self, at: Pos2) {
        let stroke = Stroke::new(1.8, self.palette.bad);
        self.signs.push(Shape::circle_filled(at, SIGN + 1.5, self.palette.card));
        for way in [vec2(SIGN, SIGN), vec2(SIGN, -SIGN)] {
            self.signs.push(Shape::line_segment([at - way, at + way], stroke));
        }
    }

    /// Requests that never left, where they were due.
    fn unsent(&mut self, strip: Rect, lane: &Lane) {
        let mut last = f32::NEG_INFINITY;
        for &(due, _) in &lane.unsent {
            let x = self.scale.x(due);
            if self.rows.frame.x_range().contains(x) && x - last >= SIGN_GAP {
                last = x;
                let stroke = Stroke::new(1.0, self.palette.weak);
                let at = pos2(x, strip.center().y);
                self.signs.push(Shape::circle_stroke(at, SIGN, stroke));
            }
        }
    }

    /// A lane with more requests than pixels: how many were in which phase, of the most at once.
    fn crowd(&mut self, strip: Rect, crowd: &Strip) {
        let inner = strip.shrink2(vec2(0.0, 2.0));
        let peak = crowd.peak.max(f32::MIN_POSITIVE);
        let mut last_cross = f32::NEG_INFINITY;
        for (place, step) in crowd.steps.iter().enumerate() {
            let time = |place: usize| {
                let nanos = crowd.start.0 as f64 + crowd.width * place as f64;
                crate::series::picture::instant_at(nanos * 1e-9)
            };
            let (from, to) = (time(place), time(place + 1));
            let total = step.total();
            let Some(column) = self.between(inner, from, to).filter(|_| total > 0.0) else {
                continue;
            };
            // Even one request for a moment has a pixel.
            let height = (total / peak * inner.height()).max(self.pixel);
            let mut bottom = inner.bottom();
            for (kind, part) in [
                (Kind::Decode, step.decoding),
                (Kind::Whole, step.whole),
                (Kind::Prefill, step.waiting),
            ] {
                let top = bottom - height * part / total;
                let rect = Rect::from_x_y_ranges(column.x_range(), top..=bottom);
                self.fill(rect, colour(self.palette, kind));
                bottom = top;
            }
            let middle = column.center().x;
            if step.failed > 0 && middle - last_cross >= 2.0 * SIGN_GAP {
                last_cross = middle;
                self.cross(pos2(middle, strip.top() + SIGN + 2.0));
            }
        }
    }
}
