//! One triangle: which pixels are in it, and how its colours run.
//!
//! Corners are rounded to 1/256 of a pixel; from there on, whether a pixel's centre lies inside is
//! integer arithmetic, and a centre on an edge belongs to the triangle that has the edge on its top
//! or left. So triangles that share an edge neither overlap nor leave a gap, as on a graphics card.

use std::ops::Range;

/// What varies over a triangle: red, green, blue, alpha (0 to 255), and the place in the texture.
pub(super) type Values = [f32; 6];

/// A corner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Corner {
    /// Where, in pixels.
    pub(super) at: [f64; 2],
    /// What stands there.
    pub(super) values: Values,
}

/// A triangle with an area.
#[derive(Clone, Debug)]
pub(super) struct Triangle {
    /// Opposite to each corner.
    edges: [Edge; 3],
    values: [Values; 3],
    area: f64,
    /// Lowest and highest corner, in parts of a pixel.
    top: i64,
    bottom: i64,
}

/// Where `level` is at least `least`, at a pixel's centre, is the inner side.
#[derive(Clone, Copy, Debug)]
struct Edge {
    /// The level at the centre of the pixel (0, 0).
    origin: i64,
    /// How it grows from pixel to pixel.
    across: i64,
    /// How it grows from row to row.
    down: i64,
    least: i64,
}

/// Parts of a pixel.
const PARTS: i64 = 256;
/// A pixel's centre.
const CENTRE: i64 = PARTS / 2;
/// Corners farther out than this many pixels are cut off first: products of their places in parts
/// still fit an integer.
const FAR: f64 = 1_048_576.0;

impl Triangle {
    /// A triangle; `None` if it has no area, or no place.
    pub(super) fn new(mut corners: [Corner; 3]) -> Option<Self> {
        if !corners.iter().flat_map(|corner| corner.at).all(|place| place.abs() <= FAR) {
            return None;
        }
        let mut at = corners.map(|corner| corner.at.map(parts));
        let area = cross(at[0], at[1], at[2]);
        if area == 0 {
            return None;
        }
        if area < 0 {
            at.swap(1, 2);
            corners.swap(1, 2);
        }
        let heights = at.map(|[_, y]| y);
        let [a, b, c] = at;
        Some(Self {
            edges: [Edge::between(b, c), Edge::between(c, a), Edge::between(a, b)],
            values: corners.map(|corner| corner.values),
            area: area.abs() as f64,
            top: heights.into_iter().min()?,
            bottom: heights.into_iter().max()?,
        })
    }

    /// The rows with pixel centres between the highest and the lowest corner.
    pub(super) fn rows(&self, from: usize, to: usize) -> Range<usize> {
        let first = -(CENTRE - self.top).div_euclid(PARTS);
        let last = (self.bottom - CENTRE).div_euclid(PARTS);
        let row = |row: i64| usize::try_from(row.max(0)).unwrap_or(0);
        row(first).max(from)..row(last + 1).min(to)
    }

    /// The pixels of a row that are inside, of those in `left..right`.
    pub(super) fn span(&self, y: usize, left: usize, right: usize) -> (usize, usize) {
        let as_level = |place: usize| i64::try_from(place).unwrap_or(i64::MAX);
        let (mut from, mut to) = (as_level(left), as_level(right));
        for edge in &self.edges {
            // Inside where `start + x * across >= 0`.
            let start = edge.origin + edge.down * as_level(y) - edge.least;
            if edge.across > 0 {
                from = from.max(-start.div_euclid(edge.across));
            } else if edge.across < 0 {
                to = to.min(start.div_euclid(-edge.across) + 1);
            } else if start < 0 {
                return (left, left);
            }
        }
        let place = |level: i64| usize::try_from(level.max(0)).unwrap_or(0);
        (place(from), place(to))
    }

    /// What stands at the centre of a pixel.
    pub(super) fn values(&self, x: usize, y: usize) -> Values {
        let share = |edge: &Edge| {
            let level = edge.origin as f64 + edge.across as f64 * x as f64;
            narrow((level + edge.down as f64 * y as f64) / self.area)
        };
        self.mixed(share(&self.edges[1]), share(&self.edges[2]))
    }

    /// How that changes from one pixel to the next.
    pub(super) fn steps(&self) -> Values {
        let share = |edge: &Edge| narrow(edge.across as f64 / self.area);
        self.difference(share(&self.edges[1]), share(&self.edges[2]))
    }

    /// How the place in the texture changes from one row to the next.
    pub(super) fn steps_down(&self) -> [f32; 2] {
        let share = |edge: &Edge| narrow(edge.down as f64 / self.area);
        let [.., u, v] = self.difference(share(&self.edges[1]), share(&self.edges[2]));
        [u, v]
    }

    /// The colour, if all corners have the same.
    pub(super) fn one_colour(&self) -> Option<[f32; 4]> {
        let [first, second, third] = self.values.map(|[r, g, b, a, ..]| [r, g, b, a]);
        (first == second && second == third).then_some(first)
    }

    /// Whether all corners have the same place in the texture.
    pub(super) fn has_one_texel(&self) -> bool {
        let [first, second, third] = self.values.map(|[.., u, v]| [u, v]);
        first == second && second == third
    }

    /// The first corner's place in the texture.
    pub(super) const fn first_texel(&self) -> [f32; 2] {
        let [.., u, v] = self.values[0];
        [u, v]
    }

    fn mixed(&self, second: f32, third: f32) -> Values {
        let mut values = self.difference(second, third);
        for (value, first) in values.iter_mut().zip(self.values[0]) {
            *value += first;
        }
        values
    }

    fn difference(&self, second: f32, third: f32) -> Values {
        let mut values = Values::default();
        let [a, b, c] = &self.values;
        for (place, value) in values.iter_mut().enumerate() {
            *value = (b[place] - a[place]) * second + (c[place] - a[place]) * third;
        }
        values
    }
}

impl Edge {
    fn between(from: [i64; 2], to: [i64; 2]) -> Self {
        let (dx, dy) = (to[0] - from[0], to[1] - from[1]);
        let top_or_left = dy < 0 || (dy == 0 && dx > 0);
        Self {
            origin: cross(from, to, [CENTRE, CENTRE]),
            across: -dy * PARTS,
            down: dx * PARTS,
            least: i64::from(!top_or_left),
        }
    }
}

/// Twice the area of a triangle, above zero if its corners go clockwise on the screen.
const fn cross(a: [i64; 2], b: [i64; 2], c: [i64; 2]) -> i64 {
    (b[0] - a[0]) * (c[1] - a[1]) - (c[0] - a[0]) * (b[1] - a[1])
}

/// A place in parts of a pixel.
fn parts(place: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "it is at most FAR pixels")]
    let parts = (place * PARTS as f64).round() as i64;
    parts
}

/// A share of a triangle, or a change of one; colours and texels need no more.
fn narrow(share: f64) -> f32 {
    #[expect(clippy::cast_possible_truncation, reason = "no more digits are needed")]
    let share = share as f32;
    share
}

/// The triangle without what lies farther out than [`FAR`], in triangles.
pub(super) fn clipped(corners: [Corner; 3]) -> Vec<[Corner; 3]> {
    let places = || corners.iter().flat_map(|corner| corner.at);
    if places().all(|place| place.abs() <= FAR) {
        return vec![corners];
    }
    if !places().all(f64::is_finite) {
        return Vec::new();
    }
    let mut outline = corners.to_vec();
    for (axis, sign) in [(0, 1.0), (0, -1.0), (1, 1.0), (1, -1.0)] {
        outline = cut(&outline, |corner| FAR - sign * corner.at[axis]);
    }
    // Rounding may leave a corner a hair outside.
    for corner in &mut outline {
        corner.at = corner.at.map(|place| place.clamp(-FAR, FAR));
    }
    let fan = outline.windows(2).skip(1);
    fan.map(|pair| [outline[0], pair[0], pair[1]]).collect()
}

/// The part of an outline where `inside` is not negative.
fn cut(outline: &[Corner], inside: impl Fn(&Corner) -> f64) -> Vec<Corner> {
    let mut kept = Vec::with_capacity(outline.len() + 1);
    for (place, corner) in outline.iter().enumerate() {
        let next = &outline[(place + 1) % outline.len()];
        let (here, there) = (inside(corner), inside(next));
        if here >= 0.0 {
            kept.push(*corner);
        }
        if (here >= 0.0) != (there >= 0.0) {
            kept.push(between(corner, next, here / (here - there)));
        }
    }
    kept
}

fn between(a: &Corner, b: &Corner, share: f64) -> Corner {
    let mut middle = *a;
    for (place, other) in middle.at.iter_mut().zip(b.at) {
        *place += (other - *place) * share;
    }
    for (value, other) in middle.values.iter_mut().zip(b.values) {
        *value += (other - *value) * narrow(share);
    }
    middle
}
