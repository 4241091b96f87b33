//! A table of up to millions of rows that scrolls evenly: sortable headings, one row chosen.
//!
//! Only the rows in sight are asked for and drawn. The place in the table is kept as a number of
//! rows, not of points: a million rows are more points than a 32-bit number can count. Each row is
//! one node for screen readers and tests, which says all its cells. With the keyboard a cursor goes
//! over the rows ([`GridKeys`]), and Enter is a click on its row. It knows no run and sorts
//! nothing: clicks on headings and rows are given back to whoever draws it.

use eframe::egui::{
    self, Color32, EventFilter, FontSelection, Id, Key, Rect, Response, RichText, ScrollArea,
    Sense, Stroke, StrokeKind, TextWrapMode, Ui, WidgetInfo, WidgetText, pos2, vec2,
};

use crate::keys;
use crate::quantity::NO_DATA_CELL;
use crate::theme::{GRID, Palette, ROW_HEIGHT, Type, faded};

/// One column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GridColumn {
    /// Its heading.
    pub heading: &'static str,
    /// What it is, for the tooltip.
    pub about: &'static str,
    /// Its width (points); all grow alike where there is more room.
    pub width: f32,
    /// Text is left-aligned, numbers right-aligned.
    pub is_text: bool,
}

/// A table to be drawn.
pub struct Grid<'a> {
    /// Accessible name, also the identity.
    pub name: &'a str,
    /// The columns.
    pub columns: &'a [GridColumn],
    /// How many rows there are.
    pub rows: usize,
    /// Height of it all, headings included.
    pub height: f32,
    /// The text of a cell at a row and column; `None` for no data.
    pub cell: &'a dyn Fn(usize, usize) -> Option<String>,
    /// The colour of a cell's text, if it has one of its own.
    pub colour: &'a dyn Fn(usize, usize) -> Option<Color32>,
    /// Whether a row is the chosen one.
    pub is_chosen: &'a dyn Fn(usize) -> bool,
    /// The column by which the rows are sorted, and whether the largest come first.
    pub sorted: Option<(usize, bool)>,
    /// A row that is to come into sight.
    pub reveal: Option<usize>,
    /// Who obeys the keys while it has the focus.
    pub keys: GridKeys,
}

/// Who obeys the keys while a table has the focus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridKeys {
    /// The table, by [`keys::TABLE`]: a cursor of its own goes over the rows.
    Cursor,
    /// Whoever draws it, by this identity.
    Owner(Id),
}

/// What the user did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GridAct {
    /// The row that was clicked, or on which Enter was pressed.
    pub row: Option<usize>,
    /// The column whose heading was clicked.
    pub heading: Option<usize>,
    /// How many whole rows are in sight: what a page is.
    pub page: usize,
    /// The first row in sight.
    pub first: usize,
}

const HEADING_HEIGHT: f32 = ROW_HEIGHT + 2.0;
const BAR_WIDTH: f32 = 10.0;
const THUMB_LEAST: f32 = 28.0;
/// Room for the bar that scrolls sideways.
const ACROSS: f32 = 10.0;

impl Grid<'_> {
    /// Draws it.
    pub fn show(&self, ui: &mut Ui) -> GridAct {
        ui.push_id(self.name, |ui| {
            let id = ui.unique_id();
            ui.ctx().accesskit_node_builder(id, |node| {
                node.set_role(egui::accesskit::Role::Table);
                node.set_label(self.name);
                node.set_row_count(self.rows);
                node.set_column_count(self.columns.len());
            });
            let room = ui.available_width();
            let least = self.columns.iter().map(|column| column.width).sum::<f32>() + BAR_WIDTH;
            let stretch = ((room - BAR_WIDTH) / (least - BAR_WIDTH)).max(1.0);
            let fits = least <= room;
            ScrollArea::horizontal()
                .id_salt("across")
                .auto_shrink([false, true])
                .show(ui, |ui| {
                    let size = vec2(least.max(room), self.height);
                    let (rect, response) = ui.allocate_exact_size(size, Sense::hover());
                    let below = if fits { 0.0 } else { ACROSS };
                    // A row is in sight or not, but for the one on its way.
                    let rows = ((self.height - below - HEADING_HEIGHT) / ROW_HEIGHT).floor();
                    let height = HEADING_HEIGHT + rows.max(1.0) * ROW_HEIGHT;
                    let rect = rect.with_max_y(rect.top() + height);
                    self.parts_ui(ui, rect, &response, stretch)
                })
                .inner
        })
        .inner
    }

    fn parts_ui(&self, ui: &mut Ui, rect: Rect, response: &Response, stretch: f32) -> GridAct {
        let heading = rect.with_max_y(rect.top() + HEADING_HEIGHT);
        let body = rect.with_min_y(heading.bottom());
        let sight = body.intersect(ui.clip_rect());
        let in_sight = f64::from(body.height() / ROW_HEIGHT);
        let last = (self.rows as f64 - in_sight).max(0.0);
        let key = ui.scope_id().with("first");
        let mut first: f64 = ui.data(|data| data.get_temp(key)).unwrap_or(0.0);
        let cursor = self.cursor(ui, first, whole(in_sight).max(1));
        let reveal = self.reveal.or(cursor.row.filter(|_| cursor.moved));
        first = revealed(reveal, first, in_sight);
        first = scrolled(ui, response, first);
        first = first.clamp(0.0, last);
        let clicked = self.rows_ui(ui, body, first, stretch, cursor.row);
        if let Some(row) = clicked {
            ui.data_mut(|data| data.insert_temp(cursor_id(ui), row));
        }
        let row = clicked.or(cursor.row.filter(|_| cursor.entered));
        let heading = self.heading_ui(ui, heading, stretch);
        let mut next = first;
        if last > 0.0 {
            let edge = sight.right().max(body.left() + BAR_WIDTH);
            let from = pos2(edge - BAR_WIDTH, body.top());
            let bar = Rect::from_min_max(from, pos2(edge, body.bottom()));
            next = bar_ui(ui, self.name, bar, first, in_sight, last).clamp(0.0, last);
        }
        ui.data_mut(|data| data.insert_temp(key, next));
        self.focus_ui(ui, rect, clicked.is_some() || heading.is_some());
        GridAct { row, heading, page: whole(in_sight).max(1), first: whole(first.ceil()) }
    }

    /// Lets it have the focus: by the tabulator, or by a click on a row.
    fn focus_ui(&self, ui: &Ui, rect: Rect, clicked: bool) {
        let id = self.focus_id(ui);
        let sight = rect.intersect(ui.clip_rect());
        let response = ui.interact(sight, id, Sense::focusable_noninteractive());
        let name = self.name;
        response.widget_info(|| {
            WidgetInfo::labeled(egui::Role::Grid, true, format!("{name}: rows, by arrow keys"))
        });
        if clicked {
            response.request_focus();
        }
        if response.has_focus() {
            // The arrow keys are the rows', not ways to another widget.
            let arrows = EventFilter { vertical_arrows: true, ..EventFilter::default() };
            ui.memory_mut(|memory| memory.set_focus_lock_filter(id, arrows));
            let accent = Stroke::new(2.0, Palette::of(ui).accent);
            ui.painter().hline(sight.x_range(), sight.top() + HEADING_HEIGHT - 1.0, accent);
        }
    }

    fn focus_id(&self, ui: &Ui) -> Id {
        match self.keys {
            GridKeys::Owner(id) => id,
            GridKeys::Cursor => ui.scope_id().with("keys"),
        }
    }

    /// Where its own cursor is, after this frame's keys; nowhere while it has not the focus.
    fn cursor(&self, ui: &Ui, first: f64, page: usize) -> Cursor {
        let id = self.focus_id(ui);
        let is_own = self.keys == GridKeys::Cursor && self.rows > 0;
        if !is_own || !ui.memory(|memory| memory.has_focus(id)) {
            return Cursor::default();
        }
        let last = self.rows - 1;
        let kept: Option<usize> = ui.data(|data| data.get_temp(cursor_id(ui)));
        let mut at = kept.unwrap_or_else(|| whole(first.ceil())).min(last);
        let (mut moved, mut entered) = (false, false);
        for place in keys::TABLE.take(ui.ctx(), id, |_place| true) {
            // The first key finds the cursor where it is.
            let step = |to: usize| if kept.is_some() { to } else { at };
            (at, moved) = match keys::TABLE.keys[place].1 {
                Key::ArrowUp => (step(at.saturating_sub(1)), true),
                Key::ArrowDown => (step((at + 1).min(last)), true),
                Key::PageUp => (at.saturating_sub(page), true),
                Key::PageDown => ((at + page).min(last), true),
                Key::Home => (0, true),
                Key::End => (last, true),
                _ => {
                    entered = true;
                    (at, moved)
                }
            };
        }
        if moved || entered {
            ui.ctx().request_repaint();
            ui.data_mut(|data| data.insert_temp(cursor_id(ui), at));
        }
        let row = (kept.is_some() || moved || entered).then_some(at);
        Cursor { row, moved, entered }
    }

    fn rows_ui(
        &self,
        ui: &mut Ui,
        body: Rect,
        first: f64,
        stretch: f32,
        cursor: Option<usize>,
    ) -> Option<usize> {
        let mut clicked = None;
        let clip = body.intersect(ui.clip_rect());
        let start = whole(first.floor());
        let count = whole(f64::from(body.height() / ROW_HEIGHT).ceil()) + 1;
        for row in start..self.rows.min(start + count) {
            #[expect(clippy::cast_possible_truncation, reason = "a place on screen")]
            let offset = ((row as f64 - first) * f64::from(ROW_HEIGHT)) as f32;
            let top = body.top() + offset;
            let line = Rect::from_min_size(pos2(body.left(), top), vec2(body.width(), ROW_HEIGHT));
            if !line.intersects(clip) {
                continue;
            }
            let has_cursor = cursor == Some(row);
            if self.row_ui(ui, line, clip, row, stretch, has_cursor).clicked() {
                clicked = Some(row);
            }
        }
        clicked
    }

    fn row_ui(
        &self,
        ui: &mut Ui,
        line: Rect,
        clip: Rect,
        row: usize,
        stretch: f32,
        has_cursor: bool,
    ) -> Response {
        let palette = Palette::of(ui);
        let chosen = (self.is_chosen)(row);
        // A row is no stop of the tabulator: the arrow keys move between them.
        let response = ui.interact(line.intersect(clip), ui.scope_id().with(row), Sense::CLICK);
        let painter = ui.painter().with_clip_rect(clip);
        let ground = if chosen || response.hovered() {
            Some(palette.accent_soft)
        } else {
            (!row.is_multiple_of(2)).then_some(palette.stripe)
        };
        if let Some(ground) = ground {
            painter.rect_filled(line, 0.0, ground);
        }
        let (mut label, mut cut) = (String::new(), None);
        let mut left = line.left();
        for (place, column) in self.columns.iter().enumerate() {
            let slot = Rect::from_min_size(
                pos2(left, line.top()),
                vec2(column.width * stretch, ROW_HEIGHT),
            );
            left = slot.right();
            let text = (self.cell)(row, place);
            if let Some(text) = &text {
                let before = if label.is_empty() { "" } else { ", " };
                label.push_str(&format!("{before}{} {text}", column.heading));
            }
            if !slot.intersects(clip) {
                continue;
            }
            let colour = match &text {
                None => palette.weak,
                Some(_) => (self.colour)(row, place).unwrap_or(palette.text),
            };
            let text = text.unwrap_or_else(|| NO_DATA_CELL.to_owned());
            let text = RichText::new(text).font(Type::Body.font()).color(colour);
            let is_cut = cell_ui(ui, &painter, slot, text, column.is_text);
            if is_cut && response.hover_pos().is_some_and(|at| slot.contains(at)) {
                cut = (self.cell)(row, place);
            }
        }
        if chosen {
            let mark = line.with_max_x(line.left() + 3.0);
            painter.rect_filled(mark, 0.0, palette.accent);
        }
        if has_cursor {
            let stroke = Stroke::new(1.0, palette.accent);
            painter.rect_stroke(line.shrink(0.5), 0.0, stroke, StrokeKind::Inside);
        }
        let selected = chosen || has_cursor;
        response
            .widget_info(|| WidgetInfo::selected(egui::Role::Row, true, selected, label.clone()));
        match cut {
            Some(words) => response.on_hover_text(words),
            None => response,
        }
    }

    fn heading_ui(&self, ui: &mut Ui, rect: Rect, stretch: f32) -> Option<usize> {
        let palette = Palette::of(ui);
        let clip = rect.intersect(ui.clip_rect());
        let painter = ui.painter().with_clip_rect(clip);
        painter.rect_filled(rect, 0.0, palette.card);
        let mut clicked = None;
        let mut left = rect.left();
        for (place, column) in self.columns.iter().enumerate() {
            let slot = Rect::from_min_size(
                pos2(left, rect.top()),
                vec2(column.width * stretch, rect.height()),
            );
            left = slot.right();
            let sorted = self.sorted.filter(|sorted| sorted.0 == place).map(|sorted| sorted.1);
            let id = ui.scope_id().with(("heading", place));
            let response = ui.interact(slot.intersect(clip), id, Sense::click());
            let lit = response.hovered() || response.has_focus();
            if lit {
                painter.rect_filled(slot, 0.0, palette.accent_soft);
            }
            let colour = if sorted.is_some() || lit { palette.accent } else { palette.weak };
            let arrow = match sorted {
                None => "",
                Some(true) => " ↓",
                Some(false) => " ↑",
            };
            let text = RichText::new(format!("{}{arrow}", column.heading));
            cell_ui(
                ui,
                &painter,
                slot,
                text.font(Type::Small.font()).color(colour),
                column.is_text,
            );
            response.widget_info(|| {
                let how = match sorted {
                    None => "",
                    Some(true) => ", sorted from the largest",
                    Some(false) => ", sorted from the smallest",
                };
                let label = format!("Sort by {}{how}", column.heading);
                WidgetInfo::labeled(egui::Role::ColumnHeader, true, label)
            });
            if response.on_hover_text(column.about).clicked() {
                clicked = Some(place);
            }
        }
        painter.hline(rect.x_range(), rect.bottom() - 0.5, Stroke::new(1.0, palette.edge));
        clicked
    }
}

/// A table's own cursor in one frame.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    row: Option<usize>,
    moved: bool,
    entered: bool,
}

fn cursor_id(ui: &Ui) -> Id {
    ui.scope_id().with("cursor")
}

/// The first row such that the one to reveal is in sight, with one more around it.
fn revealed(reveal: Option<usize>, first: f64, in_sight: f64) -> f64 {
    let Some(reveal) = reveal.map(|row| row as f64) else { return first };
    let room = ((in_sight - 1.0) / 2.0).clamp(0.0, 1.0);
    // From far away into the middle, from near just into sight.
    if (reveal - first).abs() > 2.0 * in_sight {
        return (reveal - in_sight / 2.0).floor();
    }
    first.min(reveal - room).max((reveal + 1.0 + room - in_sight).ceil())
}

/// One text in its slot, cut where it is too long. Gives whether it was.
fn cell_ui(ui: &Ui, painter: &egui::Painter, slot: Rect, text: RichText, is_text: bool) -> bool {
    let room = slot.shrink2(vec2(1.5 * GRID, 0.0));
    let text = WidgetText::from(text);
    let font = FontSelection::Default;
    let galley = text.into_galley(ui, Some(TextWrapMode::Truncate), room.width(), font);
    let left = if is_text { room.left() } else { room.right() - galley.size().x };
    let top = room.center().y - galley.size().y / 2.0;
    let is_cut = galley.elided;
    painter.galley(pos2(left, top), galley, Palette::of(ui).text);
    is_cut
}

/// The first row after the wheel was turned over the table; the page around it does not move then.
fn scrolled(ui: &Ui, response: &Response, first: f64) -> f64 {
    if !ui.rect_contains_pointer(response.rect) {
        return first;
    }
    let moved = ui.input_mut(|input| std::mem::take(&mut input.smooth_scroll_delta.y));
    first - f64::from(moved / ROW_HEIGHT)
}

/// The bar at the side: shows where in the table one is, and takes one elsewhere.
fn bar_ui(ui: &Ui, name: &str, bar: Rect, first: f64, in_sight: f64, last: f64) -> f64 {
    let palette = Palette::of(ui);
    let response = ui.interact(bar, ui.scope_id().with("bar"), Sense::click_and_drag());
    let rows = last + in_sight;
    #[expect(clippy::cast_possible_truncation, reason = "places on screen")]
    let (share, at) = ((in_sight / rows) as f32, (first.clamp(0.0, last) / last) as f32);
    let thumb = (bar.height() * share).clamp(THUMB_LEAST.min(bar.height()), bar.height());
    let track = (bar.height() - thumb).max(1.0);
    let mut first = first;
    if let Some(pointer) = response.interact_pointer_pos()
        && (response.dragged() || response.clicked())
    {
        let place = (pointer.y - thumb / 2.0 - bar.top()) / track;
        first = f64::from(place.clamp(0.0, 1.0)) * last;
    }
    let top = bar.top() + at.clamp(0.0, 1.0) * track;
    let rect = Rect::from_min_size(pos2(bar.left() + 2.0, top), vec2(bar.width() - 4.0, thumb));
    let lit = response.hovered() || response.dragged();
    ui.painter().rect_filled(bar, 0.0, palette.card);
    ui.painter().rect_filled(rect, 3.0, if lit { palette.weak } else { faded(palette.weak, 0.5) });
    response.widget_info(|| {
        WidgetInfo::labeled(egui::Role::ScrollBar, true, format!("{name}: scroll"))
    });
    first
}

/// A number of rows that is not negative.
fn whole(rows: f64) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float-to-integer cast saturates, which is what is wanted"
    )]
    let whole = rows as usize;
    whole
}
