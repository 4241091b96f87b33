//! The verdict as panels show it: of a run that is still being read or written, and of a part of
//! one, in words of its own.
//!
//! Whether a schedule held is the report's to say; here is only how that is put.

use eframe::egui::Color32;
use onbeat_shared::metrics::{Report, verdict};

use crate::opened::Stand;
use crate::selection::Selection;
use crate::theme::Palette;

/// A verdict to be drawn.
pub(super) struct Shown<'a> {
    /// Whether the schedule held, as far as the log goes.
    pub(super) held: bool,
    /// That in words.
    pub(super) headline: String,
    /// Why it did not hold.
    pub(super) reasons: Vec<&'a str>,
}

impl<'a> Shown<'a> {
    /// The verdict of a report about this selection of a run that stands so far.
    pub(super) fn of(report: &'a Report, selection: &Selection, stand: Stand) -> Self {
        let goes_on = stand != Stand::Complete;
        // That there is no footer yet is no reason while more is to come.
        let counts = |reason: &&str| !goes_on || !reason.starts_with(verdict::NO_FOOTER);
        let reasons = report.verdict.reasons.iter().map(String::as_str);
        let reasons: Vec<&str> = reasons.filter(counts).collect();
        let held = report.verdict.schedule_held || (goes_on && reasons.is_empty());
        Self { held, headline: words(held, goes_on, selection), reasons }
    }

    /// The colour of its words, and that of what they stand on.
    pub(super) const fn colours(&self, palette: &Palette) -> (Color32, Color32) {
        if self.held { (palette.good, palette.good_soft) } else { (palette.bad, palette.bad_soft) }
    }
}

fn words(held: bool, goes_on: bool, selection: &Selection) -> String {
    let verdict = match (held, goes_on) {
        (true, false) => "The schedule held",
        (true, true) => "The schedule has held so far",
        (false, _) => "The schedule did not hold",
    };
    match (selection.range, &selection.filter) {
        (None, None) => verdict.to_owned(),
        (Some(_), None) => format!("{verdict} in this range"),
        (_, Some(_)) => format!("{verdict} for these requests"),
    }
}
