//! The runs that are open, being opened, or could not be.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use eframe::egui::Context;
use onbeat_shared::{metrics::Report, units::RunNanos};

use crate::derive::Derived;
use crate::load::Loading;
use crate::opened::OpenedRun;
use crate::problem::{Kind, Problem};
use crate::series::Ask;
use crate::series::picture::instant_at;
use crate::state::{Choices, Scale, TimeRange};

/// The longest latency over the median from which the logarithmic scale is the better first view.
const LONG_TAIL: f64 = 12.0;

/// One run and everything about it.
pub enum Tab {
    /// On its way.
    Loading(Loading),
    /// Open.
    Open(Box<OpenTab>),
    /// It cannot be shown.
    Failed(Problem),
}

/// An open run and what the user chose about it.
pub struct OpenTab {
    /// The run and what is worked out about it.
    pub derived: Derived<Ask>,
    /// The choices.
    pub choices: Choices,
}

impl OpenTab {
    /// An open run of which nothing is chosen yet; `range` in seconds is chosen at once.
    #[must_use]
    pub fn new(derived: Derived<Ask>, range: Option<(f64, f64)>) -> Self {
        let whole = derived.subject().whole();
        let mut choices = Choices::new(whole);
        choices.scale = fitting_scale(&derived.subject().report);
        if let Some((from, to)) = range {
            choices.choose(between_seconds(from, to, whole));
        }
        Self { derived, choices }
    }
}

/// The scale on which the most can be seen: powers of ten where a few requests took so much longer
/// than the median that even steps would press all others to the ground.
fn fitting_scale(report: &Report) -> Scale {
    let long_tail =
        report.latency.ttft_ms.as_ref().is_some_and(|ttft| ttft.max > LONG_TAIL * ttft.p50);
    if long_tail { Scale::Log } else { Scale::Linear }
}

/// The stretch between two instants in seconds; an infinite one means the run's own end.
#[must_use]
pub fn between_seconds(from: f64, to: f64, whole: TimeRange) -> TimeRange {
    let instant = |seconds: f64, otherwise: RunNanos| {
        if seconds.is_finite() { instant_at(seconds) } else { otherwise }
    };
    TimeRange::between(instant(from, whole.start), instant(to, whole.end))
}

/// All runs, one of them shown.
#[derive(Default)]
pub struct Tabs {
    tabs: Vec<Tab>,
    shown: usize,
    /// A range in seconds that runs opened from the command line begin with.
    pub first_range: Option<(f64, f64)>,
    /// Questions are answered on the asking thread; for tests.
    pub inline: bool,
}

impl Tabs {
    /// Starts to open a file and shows it; a file that is already open is shown again.
    pub fn open(&mut self, path: PathBuf, ctx: &Context) {
        if let Some(place) = self.tabs.iter().position(|tab| tab.path() == path) {
            if matches!(self.tabs[place], Tab::Failed(_)) {
                self.tabs.remove(place);
            } else {
                self.shown = place;
                return;
            }
        }
        let ctx = ctx.clone();
        self.tabs.push(Tab::Loading(Loading::start(path, move || ctx.request_repaint())));
        self.shown = self.tabs.len() - 1;
    }

    /// Adds an open run and shows it.
    pub fn add(&mut self, tab: OpenTab) {
        self.tabs.push(Tab::Open(Box::new(tab)));
        self.shown = self.tabs.len() - 1;
    }

    /// Adds a file that cannot be shown and shows why.
    pub fn add_problem(&mut self, problem: Problem) {
        self.tabs.push(Tab::Failed(problem));
        self.shown = self.tabs.len() - 1;
    }

    /// Takes in what loading threads have finished.
    pub fn poll(&mut self, ctx: &Context) {
        let mut cancelled = None;
        for place in 0..self.tabs.len() {
            let Tab::Loading(loading) = &self.tabs[place] else { continue };
            match loading.poll() {
                None => {}
                Some(Ok(opened)) => {
                    let derived = self.derived(opened, ctx);
                    self.tabs[place] = Tab::Open(Box::new(OpenTab::new(derived, self.first_range)));
                }
                Some(Err(problem)) if problem.kind == Kind::Cancelled => cancelled = Some(place),
                Some(Err(problem)) => self.tabs[place] = Tab::Failed(problem),
            }
        }
        if let Some(place) = cancelled {
            self.remove(place);
        }
    }

    fn derived(&self, opened: OpenedRun, ctx: &Context) -> Derived<Ask> {
        let opened = Arc::new(opened);
        if self.inline {
            return Derived::inline(opened);
        }
        let ctx = ctx.clone();
        Derived::new(opened, move || ctx.request_repaint())
    }

    /// Closes the shown run.
    pub fn close(&mut self) {
        if self.shown < self.tabs.len() {
            self.remove(self.shown);
        }
    }

    fn remove(&mut self, place: usize) {
        self.tabs.remove(place);
        if self.shown > place || self.shown >= self.tabs.len() {
            self.shown = self.shown.saturating_sub(1);
        }
    }

    /// Opens the shown file once more.
    pub fn retry(&mut self, ctx: &Context) {
        if let Some(Tab::Failed(problem)) = self.tabs.get(self.shown) {
            let path = problem.path.clone();
            self.open(path, ctx);
        }
    }

    /// Shows the next run.
    pub fn next(&mut self) {
        self.shown = (self.shown + 1) % self.tabs.len().max(1);
    }

    /// Shows the run at a place.
    pub fn show(&mut self, place: usize) {
        self.shown = place.min(self.tabs.len().saturating_sub(1));
    }

    /// The shown run.
    pub fn shown_mut(&mut self) -> Option<&mut Tab> {
        self.tabs.get_mut(self.shown)
    }

    /// The shown run.
    #[must_use]
    pub fn shown(&self) -> Option<&Tab> {
        self.tabs.get(self.shown)
    }

    /// The shown run's place.
    #[must_use]
    pub const fn place(&self) -> usize {
        self.shown
    }

    /// All runs.
    #[must_use]
    pub fn all(&self) -> &[Tab] {
        &self.tabs
    }

    /// Whether nothing is being loaded or worked out.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.tabs.iter().all(|tab| match tab {
            Tab::Loading(_) => false,
            Tab::Open(open) => open.derived.is_idle(),
            Tab::Failed(_) => true,
        })
    }
}

impl Tab {
    /// Its file.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Loading(loading) => loading.path(),
            Self::Open(open) => &open.derived.subject().path,
            Self::Failed(problem) => &problem.path,
        }
    }

    /// Its file's name.
    #[must_use]
    pub fn name(&self) -> String {
        let path = self.path();
        path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
    }
}
