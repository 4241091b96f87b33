//! A word to the user about something that happened: at the lower edge of the window, over
//! everything, until it is closed or its time is up.
//!
//! Good news leave by themselves, bad news stay. Screen readers are told as they appear.

use eframe::egui::{self, Align2, Area, Context, Id, Order, RichText, Ui, vec2};

use crate::theme::{self, GRID, Palette, Type};

/// How long good news stay (seconds).
const STAY_S: f64 = 4.0;
/// Width of the text.
const WIDTH: f32 = 420.0;
/// More at once would cover the page.
const MOST: usize = 3;

#[derive(Clone, Debug, PartialEq)]
struct Notice {
    words: String,
    bad: bool,
    /// When it leaves, in seconds of egui's clock; set in its first frame.
    until: Option<f64>,
}

/// What the window has to say.
#[derive(Debug, Default)]
pub struct Notices(Vec<Notice>);

impl Notices {
    /// Something went well.
    pub fn say(&mut self, words: impl Into<String>) {
        self.add(words.into(), false);
    }

    /// Something did not.
    pub fn warn(&mut self, words: impl Into<String>) {
        self.add(words.into(), true);
    }

    fn add(&mut self, words: String, bad: bool) {
        self.0.retain(|notice| notice.words != words);
        self.0.push(Notice { words, bad, until: None });
        let over = self.0.len().saturating_sub(MOST);
        self.0.drain(..over);
    }

    /// Draws them.
    pub fn show(&mut self, ctx: &Context) {
        if self.0.is_empty() {
            return;
        }
        let now = ctx.input(|input| input.time);
        for notice in self.0.iter_mut().filter(|notice| !notice.bad) {
            let until = *notice.until.get_or_insert(now + STAY_S);
            ctx.request_repaint_after(std::time::Duration::from_secs_f64((until - now).max(0.0)));
        }
        self.0.retain(|notice| notice.until.is_none_or(|until| now < until));
        let mut closed = None;
        Area::new(Id::unique("notices"))
            .order(Order::Foreground)
            .anchor(Align2::RIGHT_BOTTOM, vec2(-4.0 * GRID, -4.0 * GRID))
            .show(ctx, |ui| {
                ui.spacing_mut().item_spacing.y = 2.0 * GRID;
                for (place, notice) in self.0.iter().enumerate() {
                    if notice_ui(ui, notice) {
                        closed = Some(place);
                    }
                }
            });
        if let Some(place) = closed {
            self.0.remove(place);
        }
    }
}

/// One of them. Returns whether it was closed.
fn notice_ui(ui: &mut Ui, notice: &Notice) -> bool {
    let palette = Palette::of(ui);
    let (fill, edge) = if notice.bad {
        (palette.warn_soft, palette.warn)
    } else {
        (palette.good_soft, palette.good)
    };
    let mut closed = false;
    theme::banner(fill, edge).shadow(ui.visuals().popup_shadow).show(ui, |ui| {
        ui.set_width(WIDTH.min(ui.ctx().content_rect().width() - 64.0));
        let id = ui.unique_id();
        ui.ctx().accesskit_node_builder(id, |node| {
            node.set_role(egui::accesskit::Role::Alert);
            node.set_label(notice.words.clone());
        });
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Min), |ui| {
            let button = ui.add(egui::Button::new("×").frame(false));
            button.widget_info(|| {
                egui::WidgetInfo::labeled(egui::Role::Button, true, "Close the notice")
            });
            closed = button.clicked();
            ui.with_layout(egui::Layout::top_down(egui::Align::Min), |ui| {
                ui.add(
                    egui::Label::new(RichText::new(&notice.words).font(Type::Body.font())).wrap(),
                );
            });
        });
    });
    closed
}
