//! Lines cut to what of them can be seen.
//!
//! A plot that shows a microsecond of a run still has the run's lines, whose ends then lie millions
//! of points beyond the screen: dashing such a line takes gigabytes, and its coordinates have no
//! digits left. So a line is cut to the plot and a margin before it is drawn.

use egui_plot::PlotPoint;

/// How much of a plot's width and height is kept beyond each of its edges.
const MARGIN: f64 = 0.5;

/// A rectangle in a plot's own coordinates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sight {
    /// Left and right.
    pub xs: (f64, f64),
    /// Bottom and top.
    pub ys: (f64, f64),
}

impl Sight {
    /// It with the margin; of a line with an area below it only the sides are cut, as the area
    /// reaches to the ground.
    fn widened(self, filled: bool) -> Self {
        let wider = |(low, high): (f64, f64)| {
            let more = MARGIN * (high - low).abs();
            (low - more, high + more)
        };
        let ys = if filled { (f64::NEG_INFINITY, f64::INFINITY) } else { wider(self.ys) };
        Self { xs: wider(self.xs), ys }
    }

    fn holds(&self, point: PlotPoint) -> bool {
        (self.xs.0..=self.xs.1).contains(&point.x) && (self.ys.0..=self.ys.1).contains(&point.y)
    }

    /// The part of a stretch that lies in it.
    fn part(&self, from: PlotPoint, to: PlotPoint) -> Option<(PlotPoint, PlotPoint)> {
        let (dx, dy) = (to.x - from.x, to.y - from.y);
        let (mut enter, mut leave) = (0.0_f64, 1.0_f64);
        let sides = [
            (-dx, from.x - self.xs.0),
            (dx, self.xs.1 - from.x),
            (-dy, from.y - self.ys.0),
            (dy, self.ys.1 - from.y),
        ];
        for (towards, room) in sides {
            if towards == 0.0 {
                if room < 0.0 {
                    return None;
                }
            } else if towards < 0.0 {
                enter = enter.max(room / towards);
            } else {
                leave = leave.min(room / towards);
            }
        }
        let at = |share: f64| PlotPoint::new(from.x + share * dx, from.y + share * dy);
        (enter <= leave).then(|| {
            let first = if enter == 0.0 { from } else { at(enter) };
            (first, if leave == 1.0 { to } else { at(leave) })
        })
    }
}

/// What of a line lies in sight, in pieces; `None` when that is all of it.
#[must_use]
pub fn cut(line: &[PlotPoint], sight: Sight, filled: bool) -> Option<Vec<Vec<PlotPoint>>> {
    let sight = sight.widened(filled);
    if line.iter().all(|&point| sight.holds(point)) {
        return None;
    }
    let mut pieces: Vec<Vec<PlotPoint>> = Vec::new();
    let mut connected = false;
    for pair in line.windows(2) {
        let [from, to] = [pair[0], pair[1]];
        let Some((first, last)) = sight.part(from, to) else {
            connected = false;
            continue;
        };
        match pieces.last_mut() {
            Some(piece) if connected => piece.push(last),
            _ => pieces.push(vec![first, last]),
        }
        connected = last == to;
    }
    Some(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGHT: Sight = Sight { xs: (10.0, 12.0), ys: (0.0, 4.0) };

    fn points(line: &[(f64, f64)]) -> Vec<PlotPoint> {
        line.iter().map(|&(x, y)| PlotPoint::new(x, y)).collect()
    }

    #[test]
    fn a_line_in_sight_stays_as_it_is() {
        assert_eq!(cut(&points(&[(9.5, 0.0), (11.0, 3.0), (12.9, 5.9)]), SIGHT, false), None);
    }

    #[test]
    fn what_is_far_away_is_left_out() {
        let line = points(&[(-1_014.0, 1.0), (1_034.0, 1.0)]);
        let pieces = cut(&line, SIGHT, false).expect("it is cut");
        assert_eq!(pieces, [points(&[(9.0, 1.0), (13.0, 1.0)])]);
        let above = points(&[(0.0, 100.0), (20.0, 100.0)]);
        assert_eq!(cut(&above, SIGHT, false), Some(Vec::new()));
        assert_eq!(cut(&above, SIGHT, true), Some(vec![points(&[(9.0, 100.0), (13.0, 100.0)])]));
    }

    #[test]
    fn a_line_that_leaves_and_comes_back_is_in_pieces() {
        let line = points(&[(8.0, 1.0), (10.0, 1.0), (10.0, 9.0), (11.0, 9.0), (11.0, 1.0)]);
        let pieces = cut(&line, SIGHT, false).expect("it is cut");
        let expected =
            [points(&[(9.0, 1.0), (10.0, 1.0), (10.0, 6.0)]), points(&[(11.0, 6.0), (11.0, 1.0)])];
        assert_eq!(pieces, expected);
    }

    #[test]
    fn every_place_of_a_line_in_sight_is_kept_and_none_beyond() {
        // A line of many turns, near and far.
        let mut seed = 7_u64;
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 40) as f64 / f64::from(1 << 24)
        };
        let line: Vec<_> =
            (0..300).map(|_| PlotPoint::new(20.0 * next(), 30.0 * next() - 10.0)).collect();
        let pieces = cut(&line, SIGHT, false).expect("it is cut");
        let wide = SIGHT.widened(false);
        let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
        for point in pieces.iter().flatten() {
            assert!(point.x > wide.xs.0 - 1e-6 && point.x < wide.xs.1 + 1e-6);
            assert!(point.y > wide.ys.0 - 1e-6 && point.y < wide.ys.1 + 1e-6);
        }
        for pair in line.windows(2) {
            for step in 0..=40 {
                let share = f64::from(step) / 40.0;
                let x = pair[0].x + share * (pair[1].x - pair[0].x);
                let y = pair[0].y + share * (pair[1].y - pair[0].y);
                if !wide.holds(PlotPoint::new(x, y)) {
                    continue;
                }
                let on = |from: PlotPoint, to: PlotPoint| {
                    let whole = (to.x - from.x).hypot(to.y - from.y);
                    let by = (x - from.x).hypot(y - from.y) + (to.x - x).hypot(to.y - y);
                    near(whole, by)
                };
                let kept = pieces.iter().any(|piece| piece.windows(2).any(|p| on(p[0], p[1])));
                assert!(kept, "({x}, {y}) was lost");
            }
        }
    }
}
