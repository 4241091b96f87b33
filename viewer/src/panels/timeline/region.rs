//! The part of the panel that scrolls: names on the left, bars on the right, times below.

use eframe::egui::{
    self, Align2, Button, Key, Modifiers, Rect, Response, RichText, Sense, Spinner, Stroke, Ui,
    UiBuilder, Vec2, pos2, vec2,
};
use onbeat_shared::units::RunNanos;

use super::hit::{Hit, Rows, hit};
use super::{draw::Sheet, legend};
use crate::keys;
use crate::panels::{PanelWish, Scene};
use crate::quantity;
use crate::series::timeline::{
    self,
    bars::{Body, Lane, Shown},
    words,
};
use crate::series::{Answer, Ask};
use crate::state::TimeRange;
use crate::theme::{GRID, LANE_HEIGHT, Palette, Type};
use crate::widgets::{
    canvas, scroll_bar,
    time_scale::{self, TimeScale},
};

/// Height of the line of times below the lanes.
const AXIS: f32 = 20.0;
/// Lanes are asked for in blocks of so many, so that scrolling by one does not ask anew.
const BLOCK: usize = 16;
/// Indent of a sub-agent's name.
const INDENT: f32 = 12.0;
/// Deeper sub-agents are indented no further.
const DEEPEST: u8 = 4;
/// A click on a crowd zooms in by this.
const CROWD_ZOOM: f64 = 6.0;

/// Draws the legend, the lanes and the axis in `height` points.
pub(super) fn show(ui: &mut Ui, scene: &mut Scene<'_>, height: f32, id: &'static str) {
    let width = ui.available_width();
    let view = scene.choices.view();
    let names = names_width(width);
    let frame_size = vec2((width - names - scroll_bar::WIDTH).max(60.0), height - AXIS);
    let most = f64::from(frame_size.y / LANE_HEIGHT);
    let shown = scene.derived.ask(&Ask::Timeline(timeline::Ask::Lanes {
        view,
        width: width_in_steps(frame_size.x),
        first: first_of_block(scene.choices.timeline.top),
        count: lanes_to_ask_for(most),
        which: scene.choices.timeline.which(scene.choices.filter.clone()),
    }));
    let lanes = shown.answer.as_deref().and_then(Answer::timeline).and_then(|a| a.lanes());
    legend::show(ui, lanes, shown.fresh, super::LINE);
    let (all, _) = ui.allocate_exact_size(vec2(width, height), Sense::hover());
    let Some(lanes) = lanes else {
        let middle = Rect::from_center_size(all.center(), Vec2::splat(22.0));
        ui.put(middle, Spinner::new().size(22.0));
        return;
    };
    let frame = Rect::from_min_size(all.min + vec2(names, 0.0), frame_size);
    let total = lanes.lanes.len();
    let lane_height = lane_height(frame_size.y, total);
    let page = f64::from(frame_size.y / lane_height);
    let top = scroll(ui, all, scene.choices.timeline.top, total, page);
    scene.choices.timeline.top = top;
    let rows = Rows { frame, top, height: lane_height };
    let scale = TimeScale::of_view(frame, view);
    let column = Rect::from_min_max(all.min, pos2(frame.left(), frame.bottom()));
    names_ui(ui, scene, lanes, &rows, column);
    let response = bars_ui(ui, scene, lanes, &rows, &scale, id);
    time_scale::labels_ui(ui, &scale, 3.0);
    if lanes.empty.is_none() && !is_something_there(lanes, &rows, view) {
        elsewhere_ui(ui, scene, frame, page);
    }
    let bar = Rect::from_min_size(
        pos2(frame.right(), frame.top()),
        vec2(scroll_bar::WIDTH, frame.height()),
    );
    let mut top = scene.choices.timeline.top;
    scroll_bar::show(ui, bar, "Lanes", total, page, &mut top);
    scene.choices.timeline.top = top;
    act(ui, scene, lanes, &response, &rows, &scale);
}

/// The room for the names of lanes.
fn names_width(width: f32) -> f32 {
    (width * 0.2).clamp(90.0, 210.0).round()
}

/// Few lanes are taller, so that they fill the frame.
fn lane_height(room: f32, total: usize) -> f32 {
    (room / total.max(1) as f32).floor().clamp(LANE_HEIGHT, 1.6 * LANE_HEIGHT)
}

/// The width in steps, so that dragging the window's edge does not ask anew for each point.
fn width_in_steps(width: f32) -> u16 {
    let steps = (1..=80_u16).find(|&steps| f32::from(steps) * 100.0 >= width).unwrap_or(80);
    steps * 100
}

fn first_of_block(top: f64) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not below zero, and rounding down is meant"
    )]
    let top = top.max(0.0) as usize;
    (top / BLOCK * BLOCK).saturating_sub(BLOCK)
}

/// The lanes in sight, and a block and more on both sides.
fn lanes_to_ask_for(page: f64) -> usize {
    let fitting = (1..=64_usize).find(|&blocks| (blocks * BLOCK) as f64 >= page).unwrap_or(64);
    (fitting + 3) * BLOCK
}

/// Wheels over the names, Alt and the wheel over the bars, and Page Up and Down scroll the lanes.
fn scroll(ui: &Ui, all: Rect, top: f64, total: usize, page: f64) -> f64 {
    let mut top = top;
    let over_names = |at: egui::Pos2| at.x < all.left() + names_width(all.width());
    let pointer = ui.input(|input| input.pointer.hover_pos());
    let is_here = pointer.is_some_and(|at| all.contains(at) && ui.clip_rect().contains(at));
    let alt = ui.input(|input| input.modifiers.alt);
    if is_here && (alt || pointer.is_some_and(over_names)) {
        let moved = ui.input_mut(|input| std::mem::take(&mut input.smooth_scroll_delta)).y;
        top -= f64::from(moved / LANE_HEIGHT);
    }
    if !ui.ctx().text_edit_focused() {
        let whole = (page - 1.0).max(1.0);
        let pressed = |key| {
            !keys::is_claimed(ui.ctx(), Modifiers::NONE, key)
                && ui.input_mut(|input| keys::took(input, Modifiers::NONE, key))
        };
        if pressed(Key::PageDown) {
            top += whole;
        }
        if pressed(Key::PageUp) {
            top -= whole;
        }
    }
    scroll_bar::clamped(top, total, page)
}

/// The names of the lanes in sight, each a button to the lane's request at the cursor.
fn names_ui(ui: &mut Ui, scene: &mut Scene<'_>, lanes: &Shown, rows: &Rows, column: Rect) {
    let palette = Palette::of(ui);
    let mut inner = ui.new_child(UiBuilder::new().max_rect(column).id_salt("lane names"));
    inner.set_clip_rect(column.intersect(ui.clip_rect()));
    for (place, lane) in lanes.rows.iter().enumerate() {
        let strip = rows.of_lane(lanes.first + place);
        if strip.bottom() <= column.top() || strip.top() >= column.bottom() {
            continue;
        }
        let line = Rect::from_x_y_ranges(column.x_range(), strip.y_range());
        if (lanes.first + place) % 2 == 1 {
            inner.painter().rect_filled(line, 0.0, palette.stripe);
        }
        if name_ui(&mut inner, lane, line, palette).clicked()
            && let Some(request) = at_cursor(lane, scene.choices.cursor, scene.choices.view().start)
        {
            scene.wish.push(PanelWish::ShowRequest(request));
        }
    }
}

fn name_ui(ui: &mut Ui, lane: &Lane, line: Rect, palette: &Palette) -> Response {
    let count = quantity::count(lane.requests as u64);
    let font = Type::Small.font();
    let right = pos2(line.right() - 2.0 * GRID, line.center().y);
    let number = ui.painter().text(right, Align2::RIGHT_CENTER, &count, font.clone(), palette.weak);
    let indent = INDENT * f32::from(lane.depth.min(DEEPEST));
    let left = line.left() + indent;
    if lane.depth > 0 {
        // The bend of a branch, so that the order of users is seen without reading.
        let (x, y) = (left - 0.6 * INDENT, line.center().y);
        let stroke = Stroke::new(1.0, palette.edge);
        ui.painter().line_segment([pos2(x, line.top()), pos2(x, y)], stroke);
        ui.painter().line_segment([pos2(x, y), pos2(left - 2.0, y)], stroke);
    }
    let room =
        Rect::from_min_max(pos2(left, line.top()), pos2(number.left() - GRID, line.bottom()));
    let colour = if lane.depth > 0 { palette.weak } else { palette.text };
    let text = RichText::new(&lane.name).font(font).color(colour);
    let mut child = ui.new_child(
        UiBuilder::new()
            .max_rect(room)
            .id_salt(lane.session.0)
            .layout(egui::Layout::left_to_right(egui::Align::Center)),
    );
    child.spacing_mut().button_padding = vec2(2.0, 0.0);
    child.spacing_mut().interact_size.y = 0.0;
    let response = child.add(Button::new(text).frame(false).truncate());
    response.widget_info(|| {
        let words = quantity::counted(lane.requests as u64, "request");
        let label = format!("Lane {}: {words}", lane.name);
        egui::WidgetInfo::labeled(egui::Role::Button, true, label)
    });
    response.on_hover_text("Show its request at the cursor")
}

/// The lane's request at the cursor, or the first one after it, or the last one.
fn at_cursor(lane: &Lane, cursor: Option<RunNanos>, start: RunNanos) -> Option<u32> {
    let Body::Bars { bars, .. } = &lane.body else { return None };
    let time = cursor.unwrap_or(start);
    let there = bars.iter().find(|bar| bar.phases.end.is_none_or(|end| end >= time));
    there.or(bars.last()).map(|bar| bar.request)
}

fn bars_ui(
    ui: &mut Ui,
    scene: &mut Scene<'_>,
    lanes: &Shown,
    rows: &Rows,
    scale: &TimeScale,
    id: &str,
) -> Response {
    let palette = Palette::of(ui);
    let frame = rows.frame;
    let response = ui.interact(frame, ui.scope_id().with(id), Sense::click_and_drag());
    let painter = ui.painter().with_clip_rect(frame.intersect(ui.clip_rect()));
    for (x, _) in time_scale::marks(scale) {
        painter.vline(x, frame.y_range(), Stroke::new(1.0, palette.grid));
    }
    Sheet::new(palette, *scale, *rows, ui.ctx().pixels_per_point()).draw(&painter, lanes);
    let edge = Stroke::new(1.0, palette.edge);
    ui.painter().rect_stroke(frame, 0.0, edge, egui::StrokeKind::Inside);
    if let Some(reason) = &lanes.empty {
        canvas::reason_ui(ui, frame, reason);
    }
    let label = format!("Timeline plot. {}", lanes.summary);
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, label.clone()));
    time_scale::overlay_ui(ui, scale, scene.choices, palette);
    time_scale::interact(ui, &response, scale, scene.choices);
    response
}

/// Whether a lane in sight has a request in view.
fn is_something_there(lanes: &Shown, rows: &Rows, view: TimeRange) -> bool {
    lanes.rows.iter().enumerate().any(|(place, lane)| {
        let strip = rows.of_lane(lanes.first + place);
        strip.intersects(rows.frame)
            && match &lane.body {
                Body::Bars { bars, .. } => bars.iter().any(|bar| {
                    bar.phases.sent < view.end && bar.phases.end.is_none_or(|end| end >= view.start)
                }),
                Body::Strip(_) => true,
            }
    })
}

/// The way to a lane that has requests in view, where those in sight have none.
fn elsewhere_ui(ui: &mut Ui, scene: &mut Scene<'_>, frame: Rect, page: f64) {
    let which = scene.choices.timeline.which(scene.choices.filter.clone());
    let ask = timeline::Ask::Busy { view: scene.choices.view(), which };
    let shown = scene.derived.ask(&Ask::Timeline(ask));
    let answer = shown.answer.as_deref().filter(|_| shown.fresh).and_then(Answer::timeline);
    let Some(timeline::Answer::Busy(found)) = answer else { return };
    let palette = Palette::of(ui);
    let middle = Rect::from_center_size(frame.center(), vec2(frame.width().min(420.0), 60.0));
    let mut inner = ui.new_child(
        UiBuilder::new().max_rect(middle).layout(egui::Layout::top_down(egui::Align::Center)),
    );
    let words = match found {
        Some(_) => "None of these lanes has a request in view",
        None => "No lane has a request in view",
    };
    inner.label(RichText::new(words).color(palette.weak));
    if let Some((lane, name)) = found
        && inner.button(format!("Go to {name}")).clicked()
    {
        // Not at the very top, so that its neighbours are seen too.
        scene.choices.timeline.top = (*lane as f64 - page / 4.0).max(0.0);
    }
}

/// What the pointer says and wants of single requests.
fn act(
    ui: &Ui,
    scene: &mut Scene<'_>,
    lanes: &Shown,
    response: &Response,
    rows: &Rows,
    scale: &TimeScale,
) {
    let Some(pointer) = response.hover_pos().filter(|_| !response.dragged()) else { return };
    let Some(found) = hit(lanes, scale, rows, pointer) else { return };
    ui.ctx().set_cursor_icon(egui::CursorIcon::PointingHand);
    let opened = scene.derived.subject();
    match found {
        Hit::Request(request) | Hit::Unsent(request) => {
            response.clone().on_hover_ui_at_pointer(|ui| {
                ui.label(words::describe(opened, request as usize));
            });
            if response.clicked() {
                scene.wish.push(PanelWish::ShowRequest(request));
            }
        }
        Hit::Crowd { lane, step } => {
            response.clone().on_hover_ui_at_pointer(|ui| {
                ui.label(crowd_words(&lanes.rows[lane], step));
            });
            if response.clicked() {
                scene.choices.zoom(CROWD_ZOOM, scale.time_at(pointer));
            }
        }
    }
}

fn crowd_words(lane: &Lane, step: usize) -> String {
    let Body::Strip(strip) = &lane.body else { return lane.name.clone() };
    let Some(found) = strip.steps.get(step) else { return lane.name.clone() };
    let number = |value: f32| quantity::number(f64::from(value));
    let failed = match found.failed {
        0 => String::new(),
        some => format!("\n{} failed here", quantity::count(some.into())),
    };
    let advice =
        if strip.is_deep { "Too many at once to be told apart" } else { "Click to look closer" };
    format!(
        "{}: on average over {}\n{} waiting for a token, {} receiving, {} in one piece{failed}\n\
         {advice}",
        lane.name,
        quantity::duration(strip.width),
        number(found.waiting),
        number(found.decoding),
        number(found.whole),
    )
}
