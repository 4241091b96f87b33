//! The panels: one file each, listed here. A new panel is one file and one line.
//!
//! A panel draws an open run from answered questions and turns the user's wishes into choices. It
//! computes nothing: what takes more than a lookup is a question (see [`crate::series`]).

mod cache;
mod compare;
mod distribution;
mod fidelity;
mod latency;
mod lateness;
mod overview;
mod requests;
mod server;
mod shape;
mod slo;
mod throughput;
mod timeline;
mod users;
mod verdict;

use std::sync::Arc;

use eframe::egui::Ui;

use crate::derive::Derived;
use crate::opened::OpenedRun;
use crate::series::{Answer, Ask};
use crate::state::{Choices, TimeRange};
use crate::widgets::time_plot::TimePlot;

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
pub const PANELS: &[Panel] = &[
    overview::PANEL,
    latency::PANEL,
    distribution::PANEL,
    shape::PANEL,
    throughput::PANEL,
    cache::PANEL,
    slo::PANEL,
    lateness::PANEL,
    timeline::PANEL,
    users::PANEL,
    requests::PANEL,
    compare::PANEL,
];

/// The panel of this name, in any case.
#[must_use]
pub fn named(name: &str) -> Option<usize> {
    PANELS.iter().position(|panel| panel.name.eq_ignore_ascii_case(name))
}

/// What a panel asks the window to do; it is granted after the frame's panels were drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum PanelWish {
    /// Show everything about this request.
    ShowRequest(u32),
    /// Show the panel at this place of the list (see [`named`]).
    ShowPanel(usize),
    /// Let every number speak of the requests that this filter passes, and no others.
    Filter(String),
    /// Choose another run to open.
    OpenRun,
}

/// Another run that is open in this window.
#[derive(Clone, Debug)]
pub struct Other {
    /// Its tab's title.
    pub name: String,
    /// The run.
    pub opened: Arc<OpenedRun>,
}

/// What a panel draws from.
pub struct Scene<'a> {
    /// The run and everything worked out about it.
    pub derived: &'a Derived<Ask>,
    /// What the user chose.
    pub choices: &'a mut Choices,
    /// The other runs that are open, in the order of their tabs.
    pub others: &'a [Other],
    /// What is asked of the window.
    pub wish: &'a mut Vec<PanelWish>,
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

    /// A plot over time (its identity, title and height) that is nothing but the picture of an
    /// answer.
    fn time_plot_ui(&mut self, ui: &mut Ui, plot: (&'static str, &str, f32), ask: &Ask) {
        let (id, title, height) = plot;
        let shown = self.derived.ask(ask);
        TimePlot {
            id,
            title,
            height,
            picture: shown.answer.as_deref().and_then(Answer::picture),
            fresh: shown.fresh,
            describe: None,
            controls: None,
            rules: &mut [],
        }
        .show(ui, self.choices);
    }

    /// The numbers of the chosen range and filter, or the last ones while those are being worked
    /// out; the flag says whether they are the right ones. `None`, and nothing is drawn, while
    /// there are none yet.
    pub fn with_report<R>(
        &self,
        draw: impl FnOnce(&onbeat_shared::metrics::Report, bool) -> R,
    ) -> Option<R> {
        let opened = self.derived.subject();
        let selection = self.choices.selection();
        if let (true, Some(report)) = (selection.is_everything(), opened.known_report()) {
            return Some(draw(report, true));
        }
        let shown = self.derived.ask(&Ask::Report { selection });
        match shown.answer.as_deref().and_then(Answer::report) {
            Some(report) => Some(draw(report, shown.fresh)),
            None => opened.known_report().map(|report| draw(report, false)),
        }
    }
}
