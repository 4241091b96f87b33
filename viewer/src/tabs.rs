//! The runs that are open, being opened, or could not be.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use eframe::egui::Context;
use onbeat_shared::{metrics::slo::Goals, run::State};

use crate::bars;
use crate::derive::Derived;
use crate::fields::Field;
use crate::load::{Loading, Phase};
use crate::opened::{OpenedRun, Stand};
use crate::panels::Other;
use crate::problem::{Kind, Problem};
use crate::real_path::RealPath;
use crate::series::Ask;
use crate::series::picture::instant_at;
use crate::state::{Choices, Scale, TimeRange};

/// For how long (s) a run that is read or written waits for its pictures before it goes on without
/// them.
const PATIENCE: f64 = 1.0;

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
    /// The thread that brings later states of the run, until there are none.
    loading: Option<Loading>,
    /// What is shown stands still.
    held: bool,
    /// When it was renewed last, in seconds of the window.
    renewed: f64,
    asked: Option<Asked>,
    /// That the run ended while it was followed, until that is said.
    ended: Option<String>,
}

/// A range that was asked for before all of the run was there.
struct Asked {
    /// From when to when (s).
    seconds: (f64, f64),
    /// What could be chosen of it.
    chosen: Option<TimeRange>,
    /// The user was told that it is not there.
    told: bool,
}

impl OpenTab {
    /// An open run of which nothing is chosen yet; `range` in seconds is chosen at once.
    #[must_use]
    pub fn new(derived: Derived<Ask>, range: Option<(f64, f64)>) -> Self {
        let mut choices = Choices::new(derived.subject().whole());
        choices.goals = Goals::of_run(&derived.subject().run.manifest);
        // The scale on which the most can be seen.
        choices.scale = if derived.subject().long_tail { Scale::Log } else { Scale::Linear };
        let asked = range.map(|seconds| Asked { seconds, chosen: None, told: false });
        let (loading, held, renewed, ended) = (None, false, 0.0, None);
        let mut open = Self { derived, choices, loading, held, renewed, asked, ended };
        open.choose_asked();
        open
    }

    /// The same, with the thread that brings later states of the run.
    #[must_use]
    pub fn growing(mut self, loading: Loading) -> Self {
        self.loading = Some(loading);
        self
    }

    /// Whether the run is being read or written.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.loading.as_ref().map_or(Phase::Ended, Loading::phase)
    }

    /// How much of the log has been read, from 0 to 1.
    #[must_use]
    pub fn progress(&self) -> f32 {
        self.loading.as_ref().map_or(1.0, Loading::progress)
    }

    /// Whether what is shown stands still although the run goes on.
    #[must_use]
    pub const fn is_paused(&self) -> bool {
        self.held
    }

    /// Lets what is shown stand still, or go along with the run again.
    pub const fn hold(&mut self, still: bool) {
        self.held = still;
    }

    /// Whether all there is to show for now is shown.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let has_news = |loading: &Loading| !self.held && !loading.is_settled();
        self.derived.is_idle() && !self.loading.as_ref().is_some_and(has_news)
    }

    /// Takes in a later state of the run, if there is one and its turn has come; `now` in seconds
    /// of the window.
    fn poll(&mut self, now: f64) -> Option<Problem> {
        let loading = self.loading.as_ref().filter(|_| !self.held)?;
        let phase = loading.phase();
        // A state nobody has seen is not replaced by the next.
        if !self.derived.is_idle() && now < self.renewed + PATIENCE && phase != Phase::Ended {
            return None;
        }
        match loading.poll() {
            Some(Ok(opened)) => {
                let before = self.derived.subject();
                let unfinished = matches!(before.run.state, State::Unfinished { .. });
                if unfinished && !matches!(before.stand, Stand::Part(_)) {
                    self.ended = ended_words(&opened);
                }
                self.choices.grow(opened.whole());
                self.derived.renew(Arc::new(opened));
                self.renewed = now;
                self.choose_asked();
            }
            Some(Err(problem)) => return Some(problem),
            None if phase == Phase::Ended => self.loading = None,
            None => {}
        }
        None
    }

    /// Chooses the range that was asked for at the start, as far as the run goes, unless another
    /// one was chosen since.
    fn choose_asked(&mut self) {
        if let Some(asked) = &mut self.asked
            && asked.chosen == self.choices.range()
        {
            let (from, to) = asked.seconds;
            self.choices.choose(between_seconds(from, to, self.derived.subject().whole()));
            asked.chosen = self.choices.range();
        }
    }

    /// That the range that was asked for at the start is not in the run, now that all there is of
    /// it has been read; `None` if it is, or if none was asked for.
    #[must_use]
    pub fn missed(&self) -> Option<String> {
        let asked = self.asked.as_ref().filter(|asked| asked.chosen.is_none())?;
        let opened = self.derived.subject();
        if self.choices.range().is_some() || opened.stand != Stand::Complete {
            return None;
        }
        let (from, to) = asked.seconds;
        Some(format!(
            "{}: nothing is in --range {}..{}: {}; all of it is shown",
            opened.name(),
            typed(from),
            typed(to),
            bars::extent_words(opened.whole())
        ))
    }
}

/// That a run that was followed has ended, if its log says so.
fn ended_words(opened: &OpenedRun) -> Option<String> {
    let words = match opened.run.state {
        State::Finished => "the run has finished",
        State::Interrupted => "the run was stopped by its user",
        State::Unfinished { .. } => return None,
    };
    Some(format!("{}: {words}", opened.name()))
}

/// An instant of a range as it could be typed.
fn typed(seconds: f64) -> String {
    match seconds.abs() {
        f64::INFINITY => String::new(),
        ..1e15 => seconds.to_string(),
        _ => format!("{seconds:e}"),
    }
}

/// The stretch between two instants in seconds; an infinite one means the run's own end.
#[must_use]
pub fn between_seconds(from: f64, to: f64, whole: TimeRange) -> TimeRange {
    let instant = |seconds: f64| seconds.is_finite().then(|| instant_at(seconds));
    let (from, to) = (instant(from), instant(to));
    // What begins after the run, or ends before it, has none of it.
    let start = from.unwrap_or_else(|| to.map_or(whole.start, |to| to.min(whole.start)));
    let end = to.unwrap_or_else(|| from.map_or(whole.end, |from| from.max(whole.end)));
    TimeRange::between(start, end)
}

/// All runs, one of them shown.
#[derive(Default)]
pub struct Tabs {
    tabs: Vec<Tab>,
    /// Where each tab's path leads in the end; as many as tabs.
    reals: Vec<Option<RealPath>>,
    shown: usize,
    /// The columns that tables of requests begin with; `None`: as they come.
    pub first_columns: Option<BTreeSet<Field>>,
    /// Files that were opened since somebody last asked.
    opened: Vec<PathBuf>,
    /// A range in seconds that runs opened from the command line begin with.
    pub first_range: Option<(f64, f64)>,
    /// A filter that they begin with.
    pub first_filter: Option<String>,
    /// Questions are answered on the asking thread; for tests.
    pub inline: bool,
}

impl Tabs {
    /// Starts to open a file and shows it; a file that is already open is shown again.
    pub fn open(&mut self, path: PathBuf, ctx: &Context) {
        if let Some(place) = self.tabs.iter().position(|tab| tab.path() == path) {
            if matches!(self.tabs[place], Tab::Failed(_)) {
                self.remove(place);
            } else {
                self.shown = place;
                return;
            }
        }
        let wake = ctx.clone();
        let real = RealPath::ask(path.clone(), move || wake.request_repaint());
        let wake = ctx.clone();
        let loading = Loading::start(path, move || wake.request_repaint());
        self.push(Tab::Loading(loading), Some(real));
    }

    /// Adds an open run and shows it.
    pub fn add(&mut self, tab: OpenTab) {
        self.push(Tab::Open(Box::new(tab)), None);
    }

    /// Adds a file that cannot be shown and shows why.
    pub fn add_problem(&mut self, problem: Problem) {
        self.push(Tab::Failed(problem), None);
    }

    fn push(&mut self, tab: Tab, real: Option<RealPath>) {
        self.tabs.push(tab);
        self.reals.push(real);
        self.shown = self.tabs.len() - 1;
    }

    /// Takes in what loading threads have finished.
    pub fn poll(&mut self, ctx: &Context) {
        let now = ctx.input(|input| input.time);
        let mut cancelled = None;
        for place in 0..self.tabs.len() {
            let news = match &mut self.tabs[place] {
                Tab::Loading(loading) => loading.poll(),
                Tab::Open(open) => open.poll(now).map(Err),
                Tab::Failed(_) => None,
            };
            match news {
                None => {}
                Some(Ok(opened)) => self.open_with(place, opened, ctx),
                Some(Err(problem)) if problem.kind == Kind::Cancelled => cancelled = Some(place),
                Some(Err(problem)) => self.tabs[place] = Tab::Failed(problem),
            }
        }
        if let Some(place) = cancelled {
            self.remove(place);
        }
        self.merge_same();
    }

    /// A file that was opened by two of its names is shown once.
    fn merge_same(&mut self) {
        for real in self.reals.iter_mut().flatten() {
            real.poll();
        }
        let known = |place: usize| self.reals[place].as_ref().and_then(RealPath::known);
        let again = (1..self.tabs.len()).find_map(|place| {
            let real = known(place)?;
            let first = (0..place).find(|&first| known(first) == Some(real))?;
            Some((first, place))
        });
        if let Some((first, again)) = again {
            if self.shown == again {
                self.shown = first;
            }
            self.remove(again);
        }
    }

    /// Files that were opened since this was last asked.
    pub fn take_opened(&mut self) -> Vec<PathBuf> {
        std::mem::take(&mut self.opened)
    }

    /// What is to be said of runs that ended while they were followed, once each.
    pub fn take_ended(&mut self) -> Vec<String> {
        let ended = self.tabs.iter_mut().filter_map(|tab| match tab {
            Tab::Open(open) => open.ended.take(),
            Tab::Loading(_) | Tab::Failed(_) => None,
        });
        ended.collect()
    }

    /// What is to be said of runs without the range that was asked for, once each.
    pub fn take_missed(&mut self) -> Vec<String> {
        let open = self.tabs.iter_mut().filter_map(|tab| match tab {
            Tab::Open(open) => Some(open),
            Tab::Loading(_) | Tab::Failed(_) => None,
        });
        let words = open.filter_map(|open| {
            let words = open.missed()?;
            let told = std::mem::replace(&mut open.asked.as_mut()?.told, true);
            (!told).then_some(words)
        });
        words.collect()
    }

    /// A run that was on its way has something to show.
    fn open_with(&mut self, place: usize, opened: OpenedRun, ctx: &Context) {
        self.opened.push(opened.path.clone());
        let mut open = OpenTab::new(self.derived(opened, ctx), self.first_range);
        if let Some(columns) = &self.first_columns {
            open.choices.requests.columns.clone_from(columns);
        }
        if let Some(filter) = &self.first_filter {
            open.choices.type_filter(filter);
        }
        if let Tab::Loading(loading) = self.tabs.remove(place) {
            open = open.growing(loading);
        }
        self.tabs.insert(place, Tab::Open(Box::new(open)));
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

    /// Closes the run at a place.
    pub fn close_at(&mut self, place: usize) {
        if place < self.tabs.len() {
            self.remove(place);
        }
    }

    fn remove(&mut self, place: usize) {
        self.tabs.remove(place);
        self.reals.remove(place);
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

    /// Shows the next run, or the previous one.
    pub fn next(&mut self, forward: bool) {
        let count = self.tabs.len().max(1);
        self.shown = (self.shown + if forward { 1 } else { count - 1 }) % count;
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

    /// Names of the runs; of two files of one name, with the folder each is in.
    #[must_use]
    pub fn titles(&self) -> Vec<String> {
        let parts: Vec<_> = self.tabs.iter().map(|tab| name_and_folder(tab.path())).collect();
        let title = |(name, folder): &(String, String)| {
            let same = parts.iter().filter(|(other, _)| other == name).count();
            let parent = folder.rsplit(['/', '\\']).next().unwrap_or_default();
            if same > 1 && !parent.is_empty() { format!("{parent}/{name}") } else { name.clone() }
        };
        parts.iter().map(title).collect()
    }

    /// The runs that are open and not shown.
    #[must_use]
    pub fn others(&self) -> Vec<Other> {
        if self.tabs.len() < 2 {
            return Vec::new();
        }
        let tabs = self.tabs.iter().zip(self.titles()).enumerate();
        let open = tabs.filter(|(place, _)| *place != self.shown).filter_map(|(_, (tab, name))| {
            let Tab::Open(open) = tab else { return None };
            Some(Other { name, opened: Arc::clone(open.derived.subject()) })
        });
        open.collect()
    }

    /// Whether nothing is being loaded or worked out.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.tabs.iter().all(|tab| match tab {
            Tab::Loading(_) => false,
            Tab::Open(open) => open.is_settled(),
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
        name_and_folder(self.path()).0
    }
}

/// A file's name and the folder it is in, to be shown.
#[must_use]
pub fn name_and_folder(path: &Path) -> (String, String) {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let folder = path.parent().map(|folder| folder.display().to_string());
    (name, folder.unwrap_or_default())
}
