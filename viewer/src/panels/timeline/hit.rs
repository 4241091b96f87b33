//! What is under the pointer in the timeline: a request, a crowd of them, or nothing.

use eframe::egui::{Pos2, Rect};

use crate::series::timeline::bars::{Body, Lane, Shown};
use crate::widgets::time_scale::TimeScale;

/// How far beside a bar it can still be pointed at (points).
const REACH: f32 = 3.0;

/// What is pointed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hit {
    /// One request.
    Request(u32),
    /// A request that never left.
    Unsent(u32),
    /// A step of a crowded lane.
    Crowd {
        /// The lane, among those shown.
        lane: usize,
        /// The step.
        step: usize,
    },
}

/// Where lanes stand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    /// The frame.
    pub(super) frame: Rect,
    /// The lane at its top, with a fraction.
    pub(super) top: f64,
    /// Height of a lane.
    pub(super) height: f32,
}

impl Rows {
    /// The strip of the screen that a lane has.
    pub(super) fn of_lane(&self, lane: usize) -> Rect {
        #[expect(clippy::cast_possible_truncation, reason = "a place on screen")]
        let offset = ((lane as f64 - self.top) * f64::from(self.height)) as f32;
        let top = self.frame.top() + offset;
        Rect::from_x_y_ranges(self.frame.x_range(), top..=top + self.height)
    }

    /// The lane at a height.
    pub(super) fn lane_at(&self, y: f32) -> Option<usize> {
        let lane = self.top + f64::from((y - self.frame.top()) / self.height);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not below zero, and rounding down is meant"
        )]
        let lane = (lane >= 0.0 && self.frame.y_range().contains(y)).then_some(lane as usize);
        lane
    }
}

/// The part of a lane that one of its rows has.
pub(super) fn row_rect(lane: Rect, row: u8, rows: u8) -> Rect {
    let inner = lane.shrink2(eframe::egui::vec2(0.0, 3.0));
    let height = inner.height() / f32::from(rows.max(1));
    let top = inner.top() + f32::from(row) * height;
    let gap = if rows > 1 { 0.5 } else { 0.0 };
    Rect::from_x_y_ranges(inner.x_range(), top + gap..=top + height - gap)
}

/// What is at a place.
pub(super) fn hit(shown: &Shown, scale: &TimeScale, rows: &Rows, at: Pos2) -> Option<Hit> {
    let place = rows.lane_at(at.y)?.checked_sub(shown.first)?;
    let lane = shown.rows.get(place)?;
    let strip = rows.of_lane(shown.first + place);
    match &lane.body {
        Body::Bars { .. } => bar_at(lane, scale, strip, at),
        Body::Strip(strip) => {
            let step = (scale.time_at(at).0.saturating_sub(strip.start.0) as f64) / strip.width;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "not below zero, and rounding down is meant"
            )]
            let step = (step >= 0.0).then_some(step as usize)?;
            let found = strip.steps.get(step)?;
            let is_empty = found.total() <= 0.0 && found.failed == 0;
            (!is_empty).then_some(Hit::Crowd { lane: place, step })
        }
    }
}

/// The bar that is pointed at, or the closest one within reach.
fn bar_at(lane: &Lane, scale: &TimeScale, strip: Rect, at: Pos2) -> Option<Hit> {
    let Body::Bars { bars, rows } = &lane.body else { return None };
    let right = scale.frame().right();
    let distance = |from: f32, to: f32| (from - at.x).max(at.x - to).max(0.0);
    let bars = bars.iter().filter_map(|bar| {
        let row = row_rect(strip, bar.row, *rows);
        let is_in_row = *rows == 1 || (row.top() - 1.0..=row.bottom() + 1.0).contains(&at.y);
        let own = &bar.phases;
        let from = scale.x(own.connect.unwrap_or(own.sent));
        let away = distance(from, own.end.map_or(right, |end| scale.x(end)));
        (is_in_row && away <= REACH).then_some((away, Hit::Request(bar.request)))
    });
    let unsent = lane.unsent.iter().filter_map(|&(due, request)| {
        let away = distance(scale.x(due), scale.x(due));
        (away <= REACH).then_some((away, Hit::Unsent(request)))
    });
    bars.chain(unsent).min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, hit)| hit)
}
