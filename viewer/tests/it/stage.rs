//! Puts the app on a stage without a window and finds things on it.

use std::path::PathBuf;

use eframe::egui::{ThemePreference, UiBuilder, Vec2, accesskit::Role};
use egui_kittest::{
    Harness, HarnessBuilder, Node,
    kittest::{NodeT as _, Queryable as _, by},
};
use onbeat_shared::{
    log::sample::{self, Sample},
    run::Run,
};
use onbeat_viewer::{
    app::{Start, ViewerApp},
    derive::Derived,
    opened::OpenedRun,
    state::Choices,
    tabs::{OpenTab, Tab},
    theme,
};

/// The app, made in its first frame, when there is a context.
pub(crate) struct Stage {
    start: Option<Start>,
    runs: Vec<OpenedRun>,
    app: Option<ViewerApp>,
}

pub(crate) type Play = Harness<'static, Stage>;

/// The window of a small laptop.
pub(crate) const SIZE: Vec2 = Vec2::new(1280.0, 800.0);

impl Stage {
    pub(crate) fn app(&self) -> &ViewerApp {
        self.app.as_ref().expect("the first frame has been drawn")
    }

    pub(crate) fn app_mut(&mut self) -> &mut ViewerApp {
        self.app.as_mut().expect("the first frame has been drawn")
    }

    /// The choices about the shown run.
    pub(crate) fn choices(&self) -> &Choices {
        match self.app().tabs.shown() {
            Some(Tab::Open(open)) => &open.choices,
            _ => panic!("no run is open"),
        }
    }

    /// The choices about the shown run, to be changed.
    pub(crate) fn choices_mut(&mut self) -> &mut Choices {
        match self.app_mut().tabs.shown_mut() {
            Some(Tab::Open(open)) => &mut open.choices,
            _ => panic!("no run is open"),
        }
    }

    pub(crate) fn run(&self) -> &OpenedRun {
        match self.app().tabs.shown() {
            Some(Tab::Open(open)) => open.derived.subject(),
            _ => panic!("no run is open"),
        }
    }
}

/// The run behind a sample, as if it had been opened from a file of this name.
pub(crate) fn opened(sample: &Sample, name: &str) -> OpenedRun {
    of_bytes(&sample.bytes(), name)
}

pub(crate) fn of_bytes(bytes: &[u8], name: &str) -> OpenedRun {
    let run = Run::read(bytes).expect("a readable log");
    OpenedRun::new(PathBuf::from(name), bytes.len() as u64, run)
}

/// The run most tests look at: about 17 s, 1,000 requests, some failures.
pub(crate) fn usual() -> OpenedRun {
    opened(&sample::sample(7, 1_000), "sample.beat")
}

/// The app with these runs open, each question answered within its frame.
pub(crate) fn with(runs: Vec<OpenedRun>) -> Play {
    start(Start { inline: true, ..Start::default() }, runs, |builder| builder)
}

pub(crate) fn start(
    begin: Start,
    runs: Vec<OpenedRun>,
    change: impl FnOnce(HarnessBuilder<Stage>) -> HarnessBuilder<Stage>,
) -> Play {
    let theme = begin.theme.unwrap_or(ThemePreference::Light);
    let begin = Start { theme: Some(theme), ..begin };
    let stage = Stage { start: Some(begin), runs, app: None };
    let builder = Harness::builder()
        .with_size(SIZE)
        .with_max_steps(12)
        .with_context_setup(move |ctx| theme::install(ctx, theme));
    change(builder).build_ui_state(
        |ui, stage: &mut Stage| {
            if let Some(begin) = stage.start.take() {
                let mut app = ViewerApp::new(ui.ctx(), begin);
                for run in stage.runs.drain(..) {
                    app.tabs.add(OpenTab::new(Derived::inline(run.into()), None));
                }
                stage.app = Some(app);
            }
            if let Some(app) = &mut stage.app {
                // The harness puts a margin around its ui; a window has none.
                let window = ui.ctx().content_rect();
                let mut whole = ui.new_child(UiBuilder::new().max_rect(window));
                whole.set_clip_rect(window);
                app.show(&mut whole);
            }
        },
        stage,
    )
}

/// Runs frames until loading threads have nothing left to do.
pub(crate) fn settle(play: &mut Play) {
    for _ in 0..100_000 {
        play.step();
        if play.state().app().is_settled() {
            play.run_ok();
            return;
        }
        std::thread::yield_now();
    }
    panic!("a loading thread never finished");
}

/// The node with this role whose label begins like this.
pub(crate) fn beginning<'a>(play: &'a Play, role: Role, label: &'a str) -> Node<'a> {
    let begins = move |node: &egui_kittest::kittest::AccessKitNode<'_>| {
        node.role() == role && node.label().is_some_and(|found| found.starts_with(label))
    };
    play.get(by().predicate(begins))
}

/// A node's label.
pub(crate) fn label(node: &Node<'_>) -> String {
    node.accesskit_node().label().expect("a label")
}

/// Whether a text stands anywhere on the screen.
pub(crate) fn reads(play: &Play, text: &str) -> bool {
    play.root().children_recursive().any(|node| {
        let node = node.accesskit_node();
        let holds = |words: Option<String>| words.is_some_and(|words| words.contains(text));
        holds(node.value()) || holds(node.label())
    })
}

/// The plot with this title.
pub(crate) fn plot<'a>(play: &'a Play, title: &'a str) -> Node<'a> {
    let begins = move |node: &egui_kittest::kittest::AccessKitNode<'_>| {
        node.role() == Role::Image
            && node.label().is_some_and(|found| found.starts_with(&format!("{title} plot.")))
    };
    play.get(by().predicate(begins))
}
