//! The verdict as panels show it: of a run that is still being read or written, of a part of one,
//! and where nobody can tell, in words of its own.
//!
//! Whether a schedule held is the report's to say; here is only how that is put.

use eframe::egui::Color32;
use onbeat_shared::{
    import,
    metrics::{Report, verdict},
};

use crate::opened::{OpenedRun, Stand};
use crate::selection::Selection;
use crate::theme::Palette;

/// Whether the schedule held, as far as the log goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// It did.
    Yes,
    /// It did not.
    No,
    /// Another tool's file does not say when requests were scheduled.
    Unknown,
    /// There is no request that could have been late.
    Nothing,
}

/// A verdict to be drawn.
pub(super) struct Shown<'a> {
    /// Whether the schedule held.
    pub(super) held: Held,
    /// That in words.
    pub(super) headline: String,
    /// Why it did not hold, or why nobody can tell.
    pub(super) reasons: Vec<&'a str>,
}

impl<'a> Shown<'a> {
    /// The verdict of a report about this selection of a run.
    pub(super) fn of(report: &'a Report, selection: &Selection, opened: &OpenedRun) -> Self {
        let all = *selection == Selection::default();
        if !all && report.schedule.planned == 0 {
            let headline = match &selection.filter {
                None => "No request in this range",
                Some(_) => "No request passes the filter",
            };
            return Self { held: Held::Nothing, headline: headline.to_owned(), reasons: vec![] };
        }
        let goes_on = opened.stand != Stand::Complete;
        // That there is no footer yet is no reason while more is to come.
        let counts = |reason: &&str| !goes_on || !reason.starts_with(verdict::NO_FOOTER);
        let reasons = report.verdict.reasons.iter().map(String::as_str);
        let reasons: Vec<&str> = reasons.filter(counts).collect();
        let held = if import::measured_by(&opened.run).is_some() {
            Held::Unknown
        } else if report.verdict.schedule_held || (goes_on && reasons.is_empty()) {
            Held::Yes
        } else {
            Held::No
        };
        let left_out = match held {
            Held::Yes | Held::No => report.verdict.left_out.words(held == Held::Yes),
            Held::Unknown | Held::Nothing => String::new(),
        };
        Self { held, headline: words(held, goes_on, selection) + &left_out, reasons }
    }

    /// The colour of its words, and that of what they stand on.
    pub(super) const fn colours(&self, palette: &Palette) -> (Color32, Color32) {
        match self.held {
            Held::Yes => (palette.good, palette.good_soft),
            Held::No => (palette.bad, palette.bad_soft),
            Held::Unknown | Held::Nothing => (palette.warn, palette.warn_soft),
        }
    }
}

fn words(held: Held, goes_on: bool, selection: &Selection) -> String {
    let verdict = match (held, goes_on) {
        (Held::Yes, false) => "The schedule held",
        (Held::Yes, true) => "The schedule has held so far",
        (Held::No, _) => "The schedule did not hold",
        (Held::Unknown | Held::Nothing, _) => return "Nobody can tell how late it was".to_owned(),
    };
    match (selection.range, &selection.filter) {
        (None, None) => verdict.to_owned(),
        (Some(_), None) => format!("{verdict} in this range"),
        (_, Some(_)) => format!("{verdict} for these requests"),
    }
}
