//! The panels: one file each, listed here. A new panel is one file and one line.
//!
//! A panel draws an open run from answered questions and turns the user's wishes into choices. It
//! computes nothing: what takes more than a lookup is a question (see [`crate::series`]).

mod latency;
mod overview;

use eframe::egui::Ui;

use crate::derive::Derived;
use crate::series::{Answer, Ask};
use crate::state::{Choices, TimeRange};

/// A panel.
pub struct Panel {
    /// Its name in the list, in `--panel` and for screen readers.
    pub name: &'static str,
    /// What it answers, in a few words.
    pub about: &'static str,
    /// The plots that `T` shows as tables.
    pub plots: &'static [&'static str],
    /// Draws it.
    pub draw: fn(&mut Ui, &mut Scene<'_>),
}

/// Every panel, in the order of the list and of the number keys.
pub const PANELS: &[Panel] = &[overview::PANEL, latency::PANEL];

/// The panel of this name, in any case.
#[must_use]
pub fn named(name: &str) -> Option<usize> {
    PANELS.iter().position(|panel| panel.name.eq_ignore_ascii_case(name))
}

/// What a panel draws from.
pub struct Scene<'a> {
    /// The run and everything worked out about it.
    pub derived: &'a Derived<Ask>,
    /// What the user chose.
    pub choices: &'a mut Choices,
}

impl Scene<'_> {
    /// The stretch that a plot shows: the view, or, of a plot shown as its table, the chosen range.
    #[must_use]
    pub fn stretch_of(&self, plot: &str) -> TimeRange {
        match self.choices.range() {
            Some(range) if self.choices.is_table(plot) => range,
            _ => self.choices.view(),
        }
    }

    /// The numbers of the chosen range, or the last ones while those are being worked out; the flag
    /// says whether they are the right ones.
    pub fn with_report<R>(
        &self,
        draw: impl FnOnce(&onbeat_shared::metrics::Report, bool) -> R,
    ) -> R {
        let Some(range) = self.choices.range() else {
            return draw(&self.derived.subject().report, true);
        };
        let shown = self.derived.ask(&Ask::Report { range });
        match shown.answer.as_deref().and_then(Answer::report) {
            Some(report) => draw(report, shown.fresh),
            None => draw(&self.derived.subject().report, false),
        }
    }
}
