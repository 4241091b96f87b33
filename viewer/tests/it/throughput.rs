//! The Throughput panel, read through the accessibility tree and compared with its pictures.

use eframe::egui::{Key, ThemePreference, accesskit::Role};
use egui_kittest::SnapshotResults;
use onbeat_shared::{
    log::{
        sample::{self, Sample},
        sample_users,
    },
    units::RunNanos,
};
use onbeat_viewer::{panels, quantity, state::TimeRange};

use crate::pictures::{THEMES, compare, play};
use crate::stage::{self, Play, beginning, label, plot, reads};

const SECOND: i64 = 1_000_000_000;
const TITLES: [&str; 4] = ["Output tokens", "Input tokens", "Requests ended", "Requests at once"];

fn open(play: &mut Play) {
    let panel = panels::named("Throughput").expect("a panel");
    play.state_mut().app_mut().show_panel(panel);
    play.run();
}

/// Chooses from the fourth second to the ninth.
fn choose(play: &mut Play) {
    let range = TimeRange::between(RunNanos(4 * SECOND), RunNanos(9 * SECOND));
    play.state_mut().choices_mut().choose(range);
    play.run();
}

#[test]
fn four_plots_and_a_table_speak_of_the_chosen_stretch() {
    let mut play = stage::with(vec![stage::usual()]);
    open(&mut play);
    for title in TITLES {
        let words = label(&plot(&play, title));
        assert!(words.contains("at most"), "{words}");
    }
    beginning(&play, Role::Table, "Means and peaks");
    beginning(&play, Role::Table, "What passed in all");
    let whole = play.state().run().whole();
    let output: f64 = {
        let run = &play.state().run().run;
        let of = |i| onbeat_shared::metrics::tokens::completion(run, i);
        (0..run.requests.len()).filter_map(of).map(|tokens| tokens as f64).sum()
    };
    let mean = quantity::number(output / (whole.span() as f64 / SECOND as f64));
    assert!(reads(&play, &mean), "{mean} output tokens a second over the whole run");
    choose(&mut play);
    let [from, to] = [4.0, 9.0].map(|second| quantity::instant(second * 1e9, 5e9));
    assert!(reads(&play, &format!("from {from} to {to}")));
    assert!(reads(&play, "those of whole seconds"));
}

#[test]
fn plots_become_tables_and_come_back() {
    let mut play = stage::with(vec![stage::usual()]);
    open(&mut play);
    play.key_press(Key::T);
    play.run();
    for title in TITLES {
        beginning(&play, Role::Table, title);
    }
    play.key_press(Key::T);
    play.run();
    plot(&play, TITLES[3]);
}

#[test]
fn a_run_of_nothing_says_so() {
    let mut play = stage::with(vec![stage::opened(&Sample::new(), "nothing.beat")]);
    open(&mut play);
    assert!(label(&plot(&play, "Output tokens")).contains("no data"));
    assert!(label(&plot(&play, "Requests at once")).contains("no data"));
}

#[test]
fn throughput_looks_as_it_did() {
    let mut results = SnapshotResults::new();
    for (theme, name) in THEMES {
        let mut play = play(theme, &sample::log(7, 1_200));
        open(&mut play);
        results.add(compare(&mut play, &format!("throughput-{name}")));
    }
    let mut play = play(ThemePreference::Light, &sample_users::log(3, 8));
    open(&mut play);
    play.key_press(Key::T);
    play.run();
    results.add(compare(&mut play, "throughput-tables-light"));
}
