//! The turns of a session over time, one bar each; a click looks at another.

use eframe::egui::{
    self, Align2, CursorIcon, Rect, RichText, Sense, Stroke, StrokeKind, Ui, WidgetInfo, pos2, vec2,
};
use onbeat_shared::run::Run;

use crate::fate::Fate;
use crate::fields::Field;
use crate::quantity;
use crate::series::picture::seconds;
use crate::series::requests::details::Details;
use crate::state::TimeRange;
use crate::theme::{GRID, Palette, Type, data_colour};
use crate::widgets::axis;

/// Height of it all.
pub(super) const HEIGHT: f32 = TITLE + LANE + AXIS;
const TITLE: f32 = 24.0;
const LANE: f32 = 26.0;
const AXIS: f32 = 20.0;
/// How close the pointer must come to a bar.
const REACH: f32 = 6.0;

/// Draws it; the answer is the turn that was clicked.
pub(super) fn show(ui: &mut Ui, run: &Run, details: &Details) -> Option<u32> {
    let palette = Palette::of(ui);
    let size = vec2(ui.available_width(), HEIGHT);
    let (rect, response) = ui.allocate_exact_size(size, Sense::click());
    let turns = &details.turn_spans;
    let title = RichText::new("Session over time").font(Type::Title.font());
    let top = Rect::from_min_size(rect.min, vec2(rect.width(), TITLE));
    ui.put(top, |ui: &mut Ui| {
        ui.with_layout(egui::Layout::left_to_right(egui::Align::Center), |ui| ui.label(title))
            .response
    });
    let lane = Rect::from_min_size(rect.min + vec2(0.0, TITLE), vec2(rect.width(), LANE));
    let Some(whole) = whole(turns) else {
        let words = "None of its requests left.";
        let at = lane.left_center();
        ui.painter().text(at, Align2::LEFT_CENTER, words, Type::Body.font(), palette.weak);
        return None;
    };
    let whole = whole.widened(0.01);
    let x = |time: onbeat_shared::units::RunNanos| {
        let share = (time.0.saturating_sub(whole.start.0)) as f64 / whole.span() as f64;
        #[expect(clippy::cast_possible_truncation, reason = "a place on screen")]
        let share = share as f32;
        lane.left() + share.clamp(0.0, 1.0) * lane.width()
    };
    axis_ui(ui, lane, whole);
    let bar = |span: &TimeRange| {
        let left = x(span.start);
        let right = x(span.end).max(left + 2.0);
        Rect::from_x_y_ranges(left..=right, lane.shrink2(vec2(0.0, 1.5 * GRID)).y_range())
    };
    for (turn, span) in turns {
        let fill = match Fate::of(run, *turn as usize) {
            Fate::Failed => palette.bad,
            Fate::Cut => palette.weak,
            Fate::Ok | Fate::Open | Fate::Unsent => palette.data[data_colour::BLUE],
        };
        let rect = bar(span);
        ui.painter().rect_filled(rect, 2.0, fill);
        if *turn == details.request {
            let ring = Stroke::new(2.0, palette.text);
            ui.painter().rect_stroke(rect.expand(2.0), 3.0, ring, StrokeKind::Inside);
        }
    }
    response.widget_info(|| WidgetInfo::labeled(egui::Role::Image, true, summary(details, whole)));
    let pointed = response.hover_pos().and_then(|pointer| {
        let away = |span: &TimeRange| bar(span).distance_to_pos(pos2(pointer.x, lane.center().y));
        let nearest = turns.iter().min_by(|a, b| away(&a.1).total_cmp(&away(&b.1)))?;
        (away(&nearest.1) <= REACH).then_some(nearest.0)
    });
    let clicked = response.clicked();
    if let Some(turn) = pointed {
        let words = words(run, turn);
        let response = response.on_hover_cursor(CursorIcon::PointingHand);
        response.on_hover_text_at_pointer(words);
    }
    pointed.filter(|_| clicked)
}

fn whole(turns: &[(u32, TimeRange)]) -> Option<TimeRange> {
    let start = turns.iter().map(|(_, span)| span.start).min()?;
    let end = turns.iter().map(|(_, span)| span.end).max()?;
    Some(TimeRange::between(start, end))
}

fn axis_ui(ui: &Ui, lane: Rect, whole: TimeRange) {
    let palette = Palette::of(ui);
    let (from, to) = (seconds(whole.start), seconds(whole.end));
    let painter = ui.painter();
    painter.hline(lane.x_range(), lane.bottom(), Stroke::new(1.0, palette.edge));
    let per_point = (to - from) / f64::from(lane.width().max(1.0));
    for mark in axis::time_marks(from, to, per_point) {
        #[expect(clippy::cast_possible_truncation, reason = "a place on screen")]
        let share = ((mark.value - from) / (to - from)) as f32;
        let x = lane.left() + share * lane.width();
        painter.vline(x, lane.y_range(), Stroke::new(1.0, palette.grid));
        let label = axis::time_label(mark.value, mark.step_size, to);
        let label = painter.layout_no_wrap(label, Type::Small.font(), palette.weak);
        let left = x - label.size().x / 2.0;
        if left >= lane.left() && left + label.size().x <= lane.right() {
            painter.galley(pos2(left, lane.bottom() + 3.0), label, palette.weak);
        }
    }
}

fn words(run: &Run, turn: u32) -> String {
    let of = |field: Field| {
        let words = field.words(run, turn as usize);
        words.unwrap_or_else(|| quantity::NO_DATA.to_owned())
    };
    format!(
        "turn {}, request {turn}\nsent {}, e2e {}\n{}",
        of(Field::Turn),
        of(Field::Sent),
        of(Field::E2e),
        of(Field::Outcome)
    )
}

fn summary(details: &Details, whole: TimeRange) -> String {
    let span = whole.span() as f64;
    format!(
        "Session over time: {} from {} to {}",
        quantity::counted(details.turns.len() as u64, "request"),
        quantity::instant(whole.start.0 as f64, span),
        quantity::instant(whole.end.0 as f64, span)
    )
}
