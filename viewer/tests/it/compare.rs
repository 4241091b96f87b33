//! Runs beside each other: what the Compare panel says and how it looks. What the numbers are is
//! tested where they are made, in `series/compare`.

use eframe::egui::{ThemePreference, accesskit::Role};
use egui_kittest::{SnapshotResults, kittest::Queryable as _};
use onbeat_shared::log::sample;
use onbeat_viewer::{app::Start, opened::OpenedRun};

use crate::pictures::{self, Software};
use crate::stage::{self, Play};

/// Two runs, of which the later one is shown.
fn two_runs() -> Vec<OpenedRun> {
    let (before, after) = (sample::sample(7, 600), sample::sample(8, 500));
    vec![stage::opened(&before, "before.beat"), stage::opened(&after, "after.beat")]
}

fn show(play: &mut Play) {
    play.run();
    stage::beginning(play, Role::Tab, "Compare panel").click();
    stage::settle(play);
}

#[test]
fn one_run_has_nothing_to_compare_with() {
    let mut play = stage::with(vec![stage::usual()]);
    show(&mut play);
    assert!(stage::reads(&play, "Nothing to compare with"));
}

#[test]
fn two_runs_have_lines_and_a_table_of_differences() {
    let mut play = stage::with(two_runs());
    show(&mut play);
    for words in ["after.beat", "before.beat", "TTFT p99", "95 % interval"] {
        assert!(stage::reads(&play, words), "{words}");
    }
    assert!(stage::reads(&play, "requests planned"), "what was run differently");
    stage::beginning(&play, Role::ComboBox, "Compared number").click();
    play.run();
    play.get_by_label("Time between tokens").click();
    stage::settle(&mut play);
    let chosen = play.state().choices().compare.number;
    assert_eq!(chosen.name(), "Time between tokens");
}

#[test]
fn comparisons_look_as_they_did() {
    let mut results = SnapshotResults::new();
    for (theme, name) in
        [(ThemePreference::Light, "compare-light"), (ThemePreference::Dark, "compare-dark")]
    {
        let start = Start { theme: Some(theme), inline: true, ..Start::default() };
        let mut play = stage::start(start, two_runs(), |builder| {
            builder.renderer(Software::default()).with_render_cursor(false)
        });
        show(&mut play);
        results.add(pictures::compare(&mut play, name));
    }
}
