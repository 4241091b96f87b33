//! The line in which the filter is typed: the field with what can follow, how many requests pass,
//! what is wrong and where.
//!
//! Every text that is a filter applies at once; while it is none, the last one that was stays, and
//! the line says so. Reading the text is [`crate::filter`]'s; counting is a question.

use std::sync::Arc;

use eframe::egui::{
    self, Align, Area, Button, CompletionPopup, Event, Galley, Id, Key, Layout, Order, RectAlign,
    RichText, Stroke, Suggestion, TextBuffer, TextEdit, Ui,
    text::{LayoutJob, TextFormat},
    vec2,
};

use crate::filter::{self, FilterError};
use crate::quantity;
use crate::series::{Answer, Ask};
use crate::state::Choices;
use crate::tabs::OpenTab;
use crate::theme::{self, GRID, Palette, Type};

/// Accessible name of the field.
pub const FILTER_FIELD: &str = "Filter of requests";
/// Height of the line.
pub const HEIGHT: f32 = 38.0;

/// What can be typed, in short.
const HELP: &str = "\
Which requests every number, plot and table speaks of, for example:
  ttft > 500ms && input > 8k && session == abc
  failed || (e2e >= 1.5 min && !stalled)
  error ~ \"out of memory\" || has(finish)
  cached_share < 50% and sent > 12s
Comparisons: == != < <= > >=, and ~ for \"contains\".
Join them with && || ! and parentheses, or and, or, not.
A comparison with a missing value is false; ttft == missing asks for it.
All names are in the list of columns of the Requests panel.";

/// Room that the words beside the field need.
const BESIDE: f32 = 300.0;
const FIELD_LEAST: f32 = 160.0;
const FIELD_MOST: f32 = 620.0;

/// What the line holds between frames.
#[derive(Default)]
pub struct FilterLine {
    /// The field wants the keyboard in the next frame.
    pub focus: bool,
}

impl FilterLine {
    /// Draws it.
    pub fn show(&mut self, ui: &mut Ui, open: &mut OpenTab) {
        let palette = Palette::of(ui);
        ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
            ui.spacing_mut().item_spacing.x = 2.0 * GRID;
            ui.label(RichText::new("Filter").color(palette.weak)).on_hover_text(HELP);
            self.field_ui(ui, &mut open.choices);
            let choices = &mut open.choices;
            if !choices.filter_text.is_empty() && clear_ui(ui) {
                choices.clear_filter();
            }
            count_ui(ui, open);
        });
    }

    fn field_ui(&mut self, ui: &mut Ui, choices: &mut Choices) {
        let palette = Palette::of(ui);
        let width = (ui.available_width() - BESIDE).clamp(FIELD_LEAST, FIELD_MOST);
        let mut text = choices.filter_text.clone();
        let wrong = choices.filter_wrong.clone();
        let typed = text.clone();
        let mut layouter = |ui: &Ui, buffer: &dyn TextBuffer, _wrap: f32| {
            // The wrong place is one of the text it was found in.
            let wrong = wrong.as_ref().filter(|_| buffer.as_str() == typed);
            laid_out(ui, palette, buffer.as_str(), wrong)
        };
        let field = TextEdit::singleline(&mut text)
            .hint_text("ttft > 500ms && input > 8k (Ctrl+F)")
            .desired_width(width)
            .char_limit(filter::LONGEST)
            .margin(egui::Margin::symmetric(8, 4))
            .layouter(&mut layouter);
        let popup = CompletionPopup::new(Id::unique("filter"))
            .align(RectAlign::BOTTOM_START)
            .word_boundary(filter::is_boundary);
        let shown = popup.show(ui, field, |query| {
            let before: String = query.text.chars().take(query.word_range.start.0).collect();
            let completions = filter::completions(&before, query.word);
            let suggestion = |completion: &filter::Completion| {
                Suggestion::new(completion.insert).description(completion.about)
            };
            completions.iter().map(suggestion).collect()
        });
        let response = shown.text_edit.response.response.accessible_name(FILTER_FIELD);
        if std::mem::take(&mut self.focus) {
            response.request_focus();
        }
        // Who has typed the filter goes on with what it leaves.
        // Tab and the pointer go on elsewhere by themselves.
        let by_key = ui.memory(|memory| memory.focused().is_none())
            && ui.input(|input| {
                !(input.pointer.any_pressed() || input.raw.events.iter().any(is_tab))
            });
        if response.lost_focus() && by_key {
            choices.requests.reveal = true;
        }
        if text != choices.filter_text {
            choices.type_filter(&text);
        }
        if !shown.is_open
            && let Some(wrong) = &choices.filter_wrong
        {
            wrong_ui(ui, response.rect, wrong, choices);
        }
    }
}

/// Whether the tabulator was pressed, also where the list of completions has taken it.
const fn is_tab(event: &Event) -> bool {
    matches!(event, Event::Key { key: Key::Tab, pressed: true, .. })
}

/// The text with the wrong part of it underlined.
fn laid_out(ui: &Ui, palette: &Palette, text: &str, wrong: Option<&FilterError>) -> Arc<Galley> {
    let plain = TextFormat::simple(Type::Body.font(), palette.text);
    let marked = TextFormat {
        color: palette.bad,
        underline: Stroke::new(1.5, palette.bad),
        ..plain.clone()
    };
    let mut job = LayoutJob::default();
    let (start, end) = wrong.map_or((text.len(), text.len()), |wrong| {
        (wrong.place.min(text.len()), (wrong.place + wrong.length).min(text.len()))
    });
    for (part, format) in [(..start, &plain), (..end, &marked), (..text.len(), &plain)] {
        let from = job.text.len();
        job.append(&text[from..part.end.max(from)], 0.0, format.clone());
    }
    ui.fonts_mut(|fonts| fonts.layout_job(job))
}

/// What is wrong, below the field and over the panel.
fn wrong_ui(ui: &Ui, field: egui::Rect, wrong: &FilterError, choices: &Choices) {
    let palette = Palette::of(ui);
    let area = Area::new(ui.scope_id().with("what is wrong with the filter"))
        .order(Order::Foreground)
        .interactable(false)
        .fixed_pos(field.left_bottom() + vec2(0.0, GRID));
    area.show(ui.ctx(), |ui| {
        theme::banner(palette.bad_soft, palette.bad).show(ui, |ui| {
            ui.set_max_width(field.width().max(420.0));
            ui.spacing_mut().item_spacing.y = 2.0;
            let words = quantity::sentence(&wrong.words);
            ui.label(RichText::new(words).color(palette.bad));
            let still = match &choices.filter {
                Some(filter) => format!("Until then: {}", filter.text()),
                None => "Until then all requests count.".to_owned(),
            };
            let still = RichText::new(still).font(Type::Small.font()).color(palette.weak);
            ui.add(egui::Label::new(still).truncate());
        });
    });
}

fn clear_ui(ui: &mut Ui) -> bool {
    let button = ui.add(Button::new("Clear")).on_hover_text("All requests count again");
    button.widget_info(|| {
        egui::WidgetInfo::labeled(egui::Role::Button, true, "Clear the filter of requests")
    });
    button.clicked()
}

/// How many requests of the run everything speaks of now.
fn count_ui(ui: &mut Ui, open: &OpenTab) {
    if open.choices.filter.is_none() {
        return;
    }
    let palette = Palette::of(ui);
    let planned = open.derived.subject().run.requests.len() as u64;
    let shown = open.derived.ask(&Ask::Chosen { selection: open.choices.selection() });
    if let Some(Answer::Chosen(chosen)) = shown.answer.as_deref() {
        let words = format!(
            "{} of {}",
            quantity::count(chosen.len() as u64),
            quantity::counted(planned, "request")
        );
        let colour = if shown.fresh { palette.text } else { palette.weak };
        let words = RichText::new(words).font(Type::Strong.font()).color(colour);
        ui.add(egui::Label::new(words).truncate());
    }
    if !shown.fresh {
        ui.add(egui::Spinner::new().size(14.0));
    }
}
