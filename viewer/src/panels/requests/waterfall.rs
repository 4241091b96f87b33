//! One request's life as a waterfall: a line for each stretch, with its bar, its start and its
//! length in words. It is its own table twin: every number is written beside its bar.

use eframe::egui::{
    self, Align2, Color32, Painter, Rect, RichText, Sense, Stroke, Ui, WidgetInfo, pos2, vec2,
};
use onbeat_shared::{
    metrics::life::{Phase, PhaseKind},
    units::{NANOS_PER_SECOND, RunNanos},
};

use crate::quantity;
use crate::series::requests::details::{Waterfall, colour};
use crate::state::{Origin, TimeRange};
use crate::theme::{GRID, Palette, Type, faded};
use crate::widgets::axis;

const NAME_WIDTH: f32 = 96.0;
const NUMBER_WIDTH: f32 = 72.0;
const AXIS_HEIGHT: f32 = 20.0;
const LINE_LEAST: f32 = 18.0;
const LINE_MOST: f32 = 30.0;
/// A bar is never thinner than this, however short its stretch.
const BAR_LEAST: f32 = 2.0;
/// Ticks further apart than this are told apart (points).
const TICK_APART: f32 = 2.5;

/// Where things stand.
struct Frame<'a> {
    palette: &'a Palette,
    painter: Painter,
    /// The part with the bars.
    bars: Rect,
    span: TimeRange,
    /// Times are written from here.
    zero: RunNanos,
}

/// Draws it; times count from when the request was sent or due, if that is known.
pub(super) fn show(
    ui: &mut Ui,
    waterfall: &Waterfall,
    zero: RunNanos,
    origin: Origin,
    height: f32,
) {
    let lines = waterfall.phases.len() + usize::from(!waterfall.stalls.is_empty());
    let count = f32::from(u8::try_from(lines.max(1)).unwrap_or(u8::MAX));
    let line = ((height - AXIS_HEIGHT) / count).clamp(LINE_LEAST, LINE_MOST);
    let size = vec2(ui.available_width(), AXIS_HEIGHT + line * count);
    let (rect, _) = ui.allocate_exact_size(size, Sense::hover());
    let bars = Rect::from_min_max(
        pos2(rect.left() + NAME_WIDTH, rect.top() + AXIS_HEIGHT),
        pos2(rect.right() - 2.0 * NUMBER_WIDTH, rect.bottom()),
    );
    let frame = Frame {
        palette: Palette::of(ui),
        painter: ui.painter_at(rect),
        bars,
        span: waterfall.span.widened(0.01),
        zero,
    };
    frame.axis(rect, origin);
    for (place, phase) in waterfall.phases.iter().enumerate() {
        let top = bars.top() + line * f32::from(u8::try_from(place).unwrap_or(u8::MAX));
        let slot = Rect::from_min_size(pos2(rect.left(), top), vec2(rect.width(), line));
        frame.phase_ui(ui, slot, phase, waterfall);
    }
    if !waterfall.stalls.is_empty() {
        let slot = Rect::from_min_max(pos2(rect.left(), rect.bottom() - line), rect.max);
        frame.stalls_ui(ui, slot, &waterfall.stalls);
    }
}

impl Frame<'_> {
    fn x(&self, time: RunNanos) -> f32 {
        let share = time.0.saturating_sub(self.span.start.0) as f64 / self.span.span() as f64;
        #[expect(clippy::cast_possible_truncation, reason = "a place on screen")]
        let share = share as f32;
        self.bars.left() + share.clamp(0.0, 1.0) * self.bars.width()
    }

    fn since_zero(&self, time: RunNanos) -> f64 {
        time.0.saturating_sub(self.zero.0) as f64
    }

    fn axis(&self, rect: Rect, origin: Origin) {
        let nanos = NANOS_PER_SECOND as f64;
        let (from, to) = (self.since_zero(self.span.start), self.since_zero(self.span.end));
        let per_point = (to - from) / nanos / f64::from(self.bars.width().max(1.0));
        let line = Stroke::new(1.0, self.palette.grid);
        let mut free = f32::NEG_INFINITY;
        for mark in axis::time_marks(from / nanos, to / nanos, per_point) {
            let share = (mark.value * nanos - from) / (to - from);
            #[expect(clippy::cast_possible_truncation, reason = "a place on screen")]
            let x = self.bars.left() + share as f32 * self.bars.width();
            self.painter.vline(x, self.bars.y_range(), line);
            let text = self.painter.layout_no_wrap(
                // The word for no time at all would be in microseconds.
                if mark.value == 0.0 {
                    "0".to_owned()
                } else {
                    quantity::duration(mark.value * nanos)
                },
                Type::Small.font(),
                self.palette.weak,
            );
            let left = x - text.size().x / 2.0;
            if left > free && left + text.size().x < self.bars.right() + GRID {
                free = left + text.size().x + 2.0 * GRID;
                self.painter.galley(pos2(left, rect.top() + 2.0), text, self.palette.weak);
            }
        }
        let from = if origin == Origin::Due { "from due" } else { "from sent" };
        for (place, words) in [(1.0, "took"), (2.0, from)] {
            let right = rect.right() - (place - 1.0) * NUMBER_WIDTH - GRID;
            let at = pos2(right, rect.top() + 2.0);
            let font = Type::Small.font();
            self.painter.text(at, Align2::RIGHT_TOP, words, font, self.palette.weak);
        }
    }

    fn phase_ui(&self, ui: &mut Ui, slot: Rect, phase: &Phase, waterfall: &Waterfall) {
        let colour = self.palette.data[colour(phase.kind)];
        let took = phase.length_ns().map(|length| length as f64);
        let took = quantity::measured_or_word(took);
        let at = quantity::duration(self.since_zero(phase.start));
        let bar = self.bar(slot, phase.start, phase.end);
        let decodes = phase.kind == PhaseKind::Decode;
        self.painter.rect_filled(bar, 2.0, if decodes { faded(colour, 0.35) } else { colour });
        if decodes {
            self.ticks(bar, waterfall, colour);
        }
        let name = phase.kind.label();
        let mut about = format!("{name}: {took}, from {at}\n{}", phase.kind.formula());
        if decodes {
            let events = quantity::counted(waterfall.chunks as u64, "content event");
            about = format!("{about}\n{events}");
        }
        self.line_ui(ui, slot, (name, self.palette.text), [&at, &took], &about);
    }

    fn stalls_ui(&self, ui: &mut Ui, slot: Rect, stalls: &[TimeRange]) {
        for stall in stalls {
            let bar = self.bar(slot, stall.start, stall.end);
            self.painter.rect_filled(bar, 2.0, self.palette.warn);
        }
        let total: i64 = stalls.iter().map(|stall| stall.span()).fold(0, i64::saturating_add);
        let took = quantity::measured(total as f64);
        let at = stalls.first().map(|stall| quantity::duration(self.since_zero(stall.start)));
        let count = quantity::counted(stalls.len() as u64, "host stall");
        let about =
            format!("{count} of its core, {took} together: the host took the processor away");
        let name = ("host stalls", self.palette.warn);
        self.line_ui(ui, slot, name, [at.as_deref().unwrap_or_default(), &took], &about);
    }

    /// The words of a line, and what there is to say about it.
    fn line_ui(
        &self,
        ui: &mut Ui,
        slot: Rect,
        (name, colour): (&str, Color32),
        [at, took]: [&str; 2],
        about: &str,
    ) {
        let middle = slot.center().y;
        let font = Type::Body.font();
        let left = pos2(slot.left(), middle);
        self.painter.text(left, Align2::LEFT_CENTER, name, font.clone(), colour);
        for (place, words) in [(0.0, took), (1.0, at)] {
            let right = pos2(slot.right() - place * NUMBER_WIDTH - GRID, middle);
            let colour = if place == 0.0 { self.palette.text } else { self.palette.weak };
            self.painter.text(right, Align2::RIGHT_CENTER, words, font.clone(), colour);
        }
        let response = ui.interact(slot, ui.scope_id().with(name), Sense::HOVER);
        response.widget_info(|| WidgetInfo::labeled(egui::Role::ListItem, true, about));
        response.on_hover_ui_at_pointer(|ui| {
            ui.label(RichText::new(about));
        });
    }

    fn bar(&self, slot: Rect, from: RunNanos, to: RunNanos) -> Rect {
        let (left, right) = (self.x(from), self.x(to));
        let height = (slot.height() - 2.0 * GRID).max(8.0);
        let middle = slot.center().y;
        let right = right.max(left + BAR_LEAST).min(self.bars.right() + BAR_LEAST);
        Rect::from_min_max(pos2(left, middle - height / 2.0), pos2(right, middle + height / 2.0))
    }

    /// A tick for each content event, as far as they can be told apart; else the bar is full.
    fn ticks(&self, bar: Rect, waterfall: &Waterfall, colour: Color32) {
        let stroke = Stroke::new(1.0, colour);
        let mut last = f32::NEG_INFINITY;
        for &tick in &waterfall.ticks {
            let x = self.x(tick);
            if x - last < TICK_APART {
                // Too close: what lies between is full.
                let between = Rect::from_x_y_ranges(last.min(x)..=x.max(last), bar.y_range());
                self.painter.rect_filled(between, 0.0, faded(colour, 0.75));
            }
            self.painter.vline(x, bar.y_range(), stroke);
            last = x;
        }
    }
}
